/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The strings and arguments of a trace as strict JSON: control characters are escaped, bytes that
 * are not UTF-8 become \ufffd, NaN and Infinity become strings. Valid raw JSON stays as it is; what
 * is not JSON at all becomes a string.
 */
#include "io/emit.h"
#include "trace/trace.h"

/* Texts that are made once and written often. */
struct rp_pieces {
    struct rp_emit text; /* memory */
    uint32_t *offset;    /* n + 1 */
    uint32_t n, cap;
};

enum rp_code rp_pieces_init(struct rp_pieces *p, uint32_t n, struct rp_err *err);
/* Makes a piece of what was written to p->text since the last one; at most n times. */
void rp_pieces_end(struct rp_pieces *p);
/* Returns the first error that occurred while they were made. */
enum rp_code rp_pieces_check(const struct rp_pieces *p, struct rp_err *err);
void rp_pieces_release(struct rp_pieces *p);

static inline const char *rp_piece(const struct rp_pieces *p, uint32_t i, size_t *len)
{
    *len = p->offset[i + 1] - p->offset[i];
    return p->text.buffer + p->offset[i];
}

struct rp_emit_json {
    const struct rp_trace *trace;
    uint8_t *seen;         /* for each string, what is known about it */
    struct rp_pieces keys; /* keys of argument columns, as ,"key": */
};

enum rp_code rp_emit_json_init(struct rp_emit_json *j, const struct rp_trace *trace,
                               struct rp_err *err);
void rp_emit_json_release(struct rp_emit_json *j); /* may be zeroed */

/* These write a string with its quotes; raw JSON; the object of an event's arguments ("{}" if there
   are none). */
void rp_emit_json_str(struct rp_emit *e, struct rp_emit_json *j, rp_str s);
void rp_emit_json_raw(struct rp_emit *e, struct rp_emit_json *j, rp_str s);
void rp_emit_json_args(struct rp_emit *e, struct rp_emit_json *j, uint16_t shape, uint32_t row);
