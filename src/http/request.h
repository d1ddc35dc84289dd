/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parses requests of HTTP/1.1, as far as a page of our own or Prometheus sends them. Others are
 * refused: a request without the token, from another site, for another host (DNS rebinding), with a
 * body, or with anything that two readers could understand differently.
 */
#include <stdbool.h>
#include <stddef.h>

#define RP_HTTP_REQUEST_MOST 16384 /* in bytes, with all headers */
#define RP_HTTP_TOKEN        32    /* hexadecimal digits */

struct rp_http_guard {
    char token[RP_HTTP_TOKEN + 1]; /* "": none is needed */
    unsigned port;
};

struct rp_http_request {
    char path[32];     /* the part after the token: "", "tile", "metrics" */
    char query[8192];  /* the part after the question mark, or "" */
    char accept[1024]; /* the header of that name; "" if there is none, or a longer one, so that any
                          type is accepted */
    bool head;         /* only the headers are wanted */
};

/*
 * Reads one request at the beginning of n bytes. Returns 0 if it is not complete, otherwise its
 * status: 200, or why it is refused (400, 403, 405, 414, 431). *used is its length if the status is
 * 200.
 */
int rp_http_parse(const char *bytes, size_t n, const struct rp_http_guard *guard,
                  struct rp_http_request *out, size_t *used);

/* Returns the weight, from 0 to 1, that the client gives a media type ("text/plain") in its
   Accept. */
double rp_http_weight(const struct rp_http_request *request, const char *type);

const char *rp_http_reason(int status); /* "Forbidden" */
