/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A small HTTP server on the loopback interface, for the pages of `view` and for metrics. */
#include "base/err.h"

#include <stdbool.h>

struct rp_http_request;
struct rp_out;

struct rp_http_server {
    unsigned port; /* 0: any that is free */
    int stop_fd;   /* the server ends when this can be read; -1 if never */
    bool any_user; /* it answers all programs of this machine, without a token in the address */
    bool keep;     /* it does not end when the last page is closed */
    /* Writes the body of an answer, and may set its type: "text/html". RP_USAGE becomes 400,
       RP_MISSING 404, and other failures 500; their text is the answer. */
    enum rp_code (*answer)(void *user, const struct rp_http_request *request, struct rp_out *body,
                           const char **type, struct rp_err *err);
    /* Whether a request takes long; NULL if none does. A thread of their own answers such requests,
       one after the other, while others are answered. */
    bool (*slow)(void *user, const struct rp_http_request *request);
    /* Called once when the server listens, with "http://127.0.0.1:PORT/" and the token. */
    void (*ready)(void *user, const char *address);
    void *user;
};

/* Serves until stop_fd can be read, or the browser has closed the last page. */
enum rp_code rp_http_serve(const struct rp_http_server *options, struct rp_err *err);
