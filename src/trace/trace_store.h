/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_TRACE_STORE_H
#define RP_TRACE_TRACE_STORE_H
/*
 * What owns the arrays of a trace: blocks taken over from vectors, or the bytes of a native file
 * together with what of them has been verified. Inside src/trace only.
 */
#include "base/vec.h"
#include "trace/trace.h"

#include <stdatomic.h>

struct rp_store_block {
    void *at;
    size_t cap, size; /* as rp_vec_drop wants them */
};

struct rp_trace_store {
    RP_VEC(struct rp_store_block) blocks;
    const uint8_t *bytes; /* of the native file; NULL for a built trace */
    size_t nbytes;
    _Atomic unsigned verified; /* RP_NEED_* */
};

/* A trace with an empty store: nothing in it is NULL that rp_trace_free would mind. */
enum rp_code rp_trace_new(struct rp_trace **out, struct rp_err *err);

/* From now on the store frees this array; at must not be NULL where cap is not 0. */
enum rp_code rp_store_adopt(struct rp_trace_store *store, void *at, size_t cap, size_t size,
                            struct rp_err *err);

/* Moves a vector into the store; the vector is empty then. `to` may be a pointer to const. */
#define rp_store_take(store, to, v, err)                                         \
    (rp_store_adopt((store), (v)->at, (v)->cap, sizeof *(v)->at, (err)) == RP_OK \
         ? (*(to) = (v)->at, (v)->at = NULL, (v)->n = (v)->cap = 0, RP_OK)       \
         : RP_NOMEM)

#endif
