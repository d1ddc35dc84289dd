/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows tensors that were sent between processes (facts/ranks/tensor_transfers.h): how long the
 * receiver waited before the tensor was made, and how long the transfer took after that.
 */
#include "explain/comm/comm.h"

#include "base/order.h"
#include "facts/ranks/tensor_transfers.h"

#include <math.h>

static const char *copy_string(const struct rp_trace *t, rp_str s, struct rp_arena *arena)
{
    return rp_arena_copy(arena, rp_trace_str(t, s), rp_trace_str_len(t, s));
}

static void set_times(const struct rp_tensor_transfer *x, struct rp_comm_transfer *to)
{
    int64_t from = x->ready_ns > x->begin_ns ? x->ready_ns : x->begin_ns;

    to->begin_ns = x->begin_ns;
    to->wait_ns = to->transfer_ns = RP_ABSENT_I64;
    to->bytes_per_s = NAN;
    if (x->ready_ns == RP_NO_TS || from > x->end_ns)
        return; /* times were not recorded, or clocks differ */
    to->wait_ns = rp_ns_between(x->begin_ns, from);
    to->transfer_ns = rp_ns_between(from, x->end_ns);
    if (x->bytes > 0 && to->transfer_ns > 0)
        to->bytes_per_s = (double)x->bytes * 1e9 / (double)to->transfer_ns;
}

static enum rp_code copy_all(const struct rp_trace *t, const rp_tensor_transfer_vec *all,
                             const struct rp_scope *scope, struct rp_arena *arena,
                             struct rp_comm_part *out, struct rp_err *err)
{
    out->transfers = RP_ARENA_NEW(arena, struct rp_comm_transfer, all->n + 1);
    RP_TRY(rp_err_need(out->transfers, err, "looking at transfers"));
    for (size_t i = 0; i < all->n; i++) {
        const struct rp_tensor_transfer *x = &all->at[i];
        struct rp_comm_transfer *to = &out->transfers[out->ntransfers];

        if (!rp_scope_has(scope, x->begin_ns))
            continue;
        to->edge = copy_string(t, x->edge, arena);
        to->from = copy_string(t, x->from, arena);
        to->to = copy_string(t, x->to, arena);
        to->size_bytes = x->bytes < 0 ? RP_ABSENT_I64 : x->bytes;
        set_times(x, to);
        out->ntransfers++;
    }
    return rp_arena_check(arena, "looking at transfers", err);
}

enum rp_code rp_comm_find_transfers(const struct rp_trace *trace, const struct rp_scope *scope,
                                    struct rp_arena *arena, struct rp_comm_part *out,
                                    struct rp_err *err)
{
    rp_tensor_transfer_vec all = {0};
    enum rp_code code = rp_tensor_transfers_find(trace, &all, err);

    if (code == RP_OK && all.n)
        code = copy_all(trace, &all, scope, arena, out, err);
    rp_vec_release(&all);
    return code;
}

RP_ORDER(by_length, struct rp_comm_transfer, RP_DOWN(transfer_ns), RP_UP(begin_ns))

enum rp_code rp_comm_join_transfers(const struct rp_ranks *ranks, size_t limit,
                                    struct rp_arena *arena, struct rp_comm_root *out,
                                    struct rp_err *err)
{
    size_t r, i, all = 0;

    for (r = 0; r < ranks->n; r++)
        all += ((const struct rp_comm_part *)ranks->parts[r].data)->ntransfers;
    out->transfers = RP_ARENA_NEW(arena, struct rp_comm_transfer, 2 * all + 1);
    RP_TRY(rp_err_need(out->transfers, err, "looking at transfers"));
    for (r = 0; r < ranks->n; r++) {
        const struct rp_comm_part *part = ranks->parts[r].data;

        for (i = 0; i < part->ntransfers; i++) {
            out->transfers[out->ntransfers] = part->transfers[i];
            out->transfers[out->ntransfers++].rank = ranks->parts[r].number;
        }
    }
    out->slowest = out->transfers + all;
    for (i = 0; i < all; i++)
        out->slowest[i] = out->transfers[i];
    rp_sort(out->slowest, all, sizeof *out->slowest, by_length);
    out->nslowest = all < limit ? all : limit;
    return RP_OK;
}
