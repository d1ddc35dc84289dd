/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does dynamic-update-slice in place if nobody else holds the array or will read it: in a loop over
 * a cache or a list of results, only the new part is written.
 */
#include "exec/eval/strided.h"
#include "exec/fast/kernels.h"
#include "program/opcodes.h"

/* Whether the array is held once, and the array of which it is a view, too. */
static bool is_held_once(const struct rp_tensor *t)
{
    while (atomic_load_explicit(&t->users, memory_order_acquire) == 1) {
        if (!t->borrowed)
            return true;
        if (t->nparts != 1) /* not a view, but memory of another owner */
            return false;
        t = t->parts[0];
    }
    return false;
}

bool rp_fast_can_change(const struct rp_node *node, struct rp_tensor *const *in, uint32_t k)
{
    for (uint32_t i = 0; i < node->nin; i++)
        if (i != k && in[i] == in[k])
            return false;
    return rp_node_ends(node, node->in[k]) && is_held_once(in[k]);
}

RP_KERNEL(rp_fast_update_slice)
{
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t at = 0;

    if (node->nin != 2 + in[0]->rank || in[1]->rank != in[0]->rank || in[1]->elem != in[0]->elem ||
        !rp_fast_can_change(node, in, 0))
        return e->plan->reference[RP_OP_DYNAMIC_UPDATE_SLICE]->run(e, node, in, out, err);
    rp_strides(in[1]->dims, s.rank, s.from);
    rp_strides(in[0]->dims, s.rank, s.to);
    for (size_t k = 0; k < s.rank; k++) {
        const struct rp_tensor *start = in[2 + k];
        int64_t most = in[0]->dims[k] - in[1]->dims[k];
        int64_t v = start->n ? rp_tensor_integer(start, 0) : -1;

        if (most < 0 || !start->n)
            return rp_node_error(node, RP_FORMAT, err, "the update does not match the operand");
        if (start->elem == RP_ELEM_U64 && v < 0)
            v = INT64_MAX;
        s.dims[k] = in[1]->dims[k];
        at += (v < 0 ? 0 : v > most ? most : v) * s.to[k];
    }
    if (in[1]->n)
        RP_TRY(
            rp_strided_spread(&s, in[0]->data + at * (int64_t)s.unit, in[1]->data, e->pool, err));
    *out = rp_tensor_keep(in[0]);
    return RP_OK;
}
