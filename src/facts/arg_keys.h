/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads one argument of many events: the key is looked up once for a trace and its column once for
 * each shape, so that an event costs one table lookup. Needs RP_NEED_ARGS.
 */
#include "base/vec.h"
#include "trace/trace.h"

#include <stdbool.h>

struct rp_arg_key {
    const struct rp_trace *trace;
    rp_str key;              /* RP_NONE: no event has it */
    RP_VEC(uint32_t) column; /* by shape; UINT32_MAX: the shape has no such key */
};

enum rp_code rp_arg_key_init(struct rp_arg_key *k, const struct rp_trace *trace, const char *key,
                             struct rp_err *err);
/* The shapes of an operator's inputs, "Input Dims". */
enum rp_code rp_arg_key_init_dims(struct rp_arg_key *k, const struct rp_trace *trace,
                                  struct rp_err *err);
void rp_arg_key_release(struct rp_arg_key *k);

/* The argument of an event; false if it has none. */
bool rp_arg_key_find(const struct rp_arg_key *k, rp_event e, struct rp_arg *out);

/* The same for numbers and for texts (also raw JSON); false if it has another type. */
bool rp_arg_key_int(const struct rp_arg_key *k, rp_event e, int64_t *out);
bool rp_arg_key_text(const struct rp_arg_key *k, rp_event e, rp_str *out);
