/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Requests that take long: one thread answers them, one after the other, while the server serves
   the others. */
#include "http/request.h"
#include "http/server.h"

/* A request that the other thread answers. */
struct rp_http_job {
    struct rp_http_request request;
    uint64_t ticket; /* who waits for it */
    struct rp_out *body;
    const char *type;
    enum rp_code code;
    struct rp_err err;
    struct rp_http_job *next;
};

struct rp_http_slow;

/* *fd can be read when a job is done. */
enum rp_code rp_http_slow_new(const struct rp_http_server *server, struct rp_http_slow **out,
                              int *fd, struct rp_err *err);
/* Waits for the job that is being answered and drops the others. slow may be NULL. */
void rp_http_slow_free(struct rp_http_slow *slow);

/* Returns false if there is no memory for it. */
bool rp_http_slow_ask(struct rp_http_slow *slow, const struct rp_http_request *request,
                      uint64_t ticket);
/* Returns a finished job, or NULL; rp_http_job_free must free it. */
struct rp_http_job *rp_http_slow_take(struct rp_http_slow *slow);
void rp_http_job_free(struct rp_http_job *job);
