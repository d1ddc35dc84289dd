/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Owns the arrays of a trace: memory of vectors, or the bytes of a native file together with which
 * sections of it are verified. Inside src/trace only.
 */
#include "base/vec.h"
#include "trace/trace.h"

#include <stdatomic.h>

struct rp_store_block {
    void *at;
    size_t cap, size; /* arguments of rp_vec_drop */
};

struct rp_trace_store {
    RP_VEC(struct rp_store_block) blocks;
    const uint8_t *bytes; /* of the native file; NULL for a built trace */
    size_t nbytes;
    _Atomic unsigned verified; /* RP_NEED_* */
};

/* An empty trace that rp_trace_free accepts. */
enum rp_code rp_trace_new(struct rp_trace **out, struct rp_err *err);

/* The store takes ownership of this array; at must not be NULL if cap is not 0. */
enum rp_code rp_store_adopt(struct rp_trace_store *store, void *at, size_t cap, size_t size,
                            struct rp_err *err);

/* Moves a vector into the store and leaves the vector empty. `to` may be a pointer to const. */
#define rp_store_take(store, to, v, err)                                         \
    (rp_store_adopt((store), (v)->at, (v)->cap, sizeof *(v)->at, (err)) == RP_OK \
         ? (*(to) = (v)->at, (v)->at = NULL, (v)->n = (v)->cap = 0, RP_OK)       \
         : RP_NOMEM)
