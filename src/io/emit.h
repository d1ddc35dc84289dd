/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fast text output: a buffer that the caller fills in place, in front of an output, a gzip stream
 * into one, or growing memory. Numbers are formatted without printf. The first error is kept and
 * returned by close.
 *
 *     char *to = rp_emit_room(&e, 48);
 *     to = rp_put_i64(to, ts);
 *     *to++ = ',';
 *     e.at = to;
 */
#include "base/err.h"
#include "io/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RP_EMIT_ROOM   4096 /* the largest n of rp_emit_room */
#define RP_PUT_I64_MAX 20
#define RP_PUT_US_MAX  21
#define RP_PUT_F64_MAX 32

struct rp_emit {
    char *at, *end; /* the free part of the buffer */
    char *buffer;
    struct rp_out *out;        /* NULL: memory */
    struct rp_emit_gzip *gzip; /* NULL: not compressed */
    struct rp_err failure;     /* the first failure; those of the output are kept there */
};

/* Opens a path as rp_out_open does; the output is compressed if it ends in ".gz", with level 1 to 9
   (0 means 6). After a failure there is nothing to close. */
enum rp_code rp_emit_open(struct rp_emit *e, const char *path, int level, struct rp_err *err);
enum rp_code rp_emit_open_memory(struct rp_emit *e, struct rp_err *err);

/* Writes the rest and frees the buffer; returns the first error. */
enum rp_code rp_emit_close(struct rp_emit *e, struct rp_err *err);
/* Frees the buffer and removes the unfinished file. e may be zeroed or closed. */
void rp_emit_abandon(struct rp_emit *e);

void rp_emit_make_room(struct rp_emit *e, size_t n);

/* Ensures that at least n bytes are free at e->at; n is at most RP_EMIT_ROOM. The caller moves
   e->at. */
static inline char *rp_emit_room(struct rp_emit *e, size_t n)
{
    if (__builtin_expect((size_t)(e->end - e->at) < n, 0))
        rp_emit_make_room(e, n);
    return e->at;
}

void rp_emit_long(struct rp_emit *e, const char *bytes, size_t n);

/* Writes any number of bytes. */
static inline void rp_emit_bytes(struct rp_emit *e, const char *bytes, size_t n)
{
    if (__builtin_expect((size_t)(e->end - e->at) < n, 0)) {
        rp_emit_long(e, bytes, n);
        return;
    }
    memcpy(e->at, bytes, n);
    e->at += n;
}

static inline void rp_emit_char(struct rp_emit *e, char c)
{
    *rp_emit_room(e, 1) = c;
    e->at++;
}

static inline void rp_emit_text(struct rp_emit *e, const char *text)
{
    rp_emit_bytes(e, text, strlen(text));
}

void rp_emit_i64(struct rp_emit *e, int64_t v);

/* For output to memory: these return its length and discard it. */
static inline size_t rp_emit_length(const struct rp_emit *e)
{
    return (size_t)(e->at - e->buffer);
}

static inline void rp_emit_reset(struct rp_emit *e)
{
    e->at = e->buffer;
}

/* These write at `to`, without a NUL, and return the end. */
char *rp_put_i64(char *to, int64_t v);
/* Writes nanoseconds as microseconds, exactly: 1500 as 1.5, 2000 as 2. */
char *rp_put_us(char *to, int64_t ns);
/* Writes a finite double as the shortest text that reads back as the same double, with a point or
   an exponent so that it stays one. */
char *rp_put_f64(char *to, double v);
