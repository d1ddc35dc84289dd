/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and frees traces. Arrays are moved from the builder's vectors, never copied. */
#include "trace/trace_store.h"

#include <stdlib.h>

enum rp_code rp_trace_new(struct rp_trace **out, struct rp_err *err)
{
    struct rp_trace *trace = calloc(1, sizeof *trace);
    struct rp_trace_store *store = calloc(1, sizeof *store);

    *out = NULL;
    if (!trace || !store) {
        free(trace);
        free(store);
        return rp_err_nomem(err, "making a trace");
    }
    rp_arena_init(&trace->arena);
    trace->rank = RP_NO_RANK;
    trace->store = store;
    *out = trace;
    return RP_OK;
}

enum rp_code rp_store_adopt(struct rp_trace_store *store, void *at, size_t cap, size_t size,
                            struct rp_err *err)
{
    struct rp_store_block block = {at, cap, size};

    return cap ? rp_vec_push(&store->blocks, block, err) : RP_OK;
}

void rp_trace_free(struct rp_trace *trace)
{
    if (!trace)
        return;
    for (size_t i = 0; i < trace->store->blocks.n; i++) {
        struct rp_store_block *block = &trace->store->blocks.at[i];

        rp_vec_drop(block->at, block->cap, block->size);
    }
    rp_vec_release(&trace->store->blocks);
    free(trace->store);
    rp_arena_release(&trace->arena);
    free(trace);
}
