/* SPDX-License-Identifier: Apache-2.0 */
/* Writes collectives of HLO in StableHLO's words: groups of devices, which StableHLO lists one by
   one, pairs and channels. */
#include "formats/write/stablehlo.h"
#include "program/opcodes.h"

#define MAX_DEVICES (1 << 20) /* most devices in groups that the file does not list one by one */

/* Device number `at` in the numbers 0, 1, .., seen as an array of `dims` that is transposed by
   `perm`. */
static int64_t iota_device(const struct rp_replica_groups *g, int64_t at)
{
    int64_t stride[RP_SHLO_RANK], next = 1, device = 0;

    for (size_t i = g->dims.n; i-- > 0;) {
        stride[i] = next;
        next *= g->dims.at[i];
    }
    for (size_t i = g->dims.n; i-- > 0;) {
        int64_t from = g->perm.n ? g->perm.at[i] : (int64_t)i;

        device += at % g->dims.at[from] * stride[from];
        at /= g->dims.at[from];
    }
    return device;
}

static bool is_iota(const struct rp_replica_groups *g)
{
    int64_t n = 1;
    uint64_t seen = 0;

    if (g->form != RP_GROUPS_IOTA || g->dims.n > RP_SHLO_RANK || !g->dims.n ||
        (g->perm.n && g->perm.n != g->dims.n))
        return false;
    for (size_t i = 0; i < g->dims.n; i++) {
        if (g->dims.at[i] < 1 || g->dims.at[i] > MAX_DEVICES / n)
            return false;
        n *= g->dims.at[i];
    }
    for (size_t i = 0; i < g->perm.n; i++) {
        if (g->perm.at[i] < 0 || g->perm.at[i] >= (int64_t)g->dims.n || seen >> g->perm.at[i] & 1)
            return false;
        seen |= UINT64_C(1) << g->perm.at[i];
    }
    return g->group_size > 0 && g->ngroups <= MAX_DEVICES &&
           (int64_t)g->ngroups * g->group_size == n;
}

static enum rp_code put_all_to_all(struct rp_shlo *w, uint32_t op, size_t group)
{
    size_t n;
    const int64_t *dims = rp_op_ints(w->p, op, RP_ATTR_DIMENSIONS, &n);

    if (!dims || n != 1 || !group)
        return rp_shlo_refuse_attr(w, op, dims ? RP_ATTR_REPLICA_GROUPS : RP_ATTR_DIMENSIONS);
    rp_shlo_int(w, "split_dimension", dims[0]);
    rp_shlo_int(w, "concat_dimension", dims[0]);
    rp_shlo_int(w, "split_count", (int64_t)group);
    return RP_OK;
}

enum rp_code rp_shlo_collective(struct rp_shlo *w, uint32_t op, uint16_t code)
{
    const struct rp_attr *pairs = rp_op_attr(w->p, op, RP_ATTR_SOURCE_TARGET_PAIRS),
                         *ids = rp_op_attr(w->p, op, RP_ATTR_USE_GLOBAL_DEVICE_IDS);
    int64_t channel = rp_op_int(w->p, op, RP_ATTR_CHANNEL_ID, 0);

    if (code == RP_OP_COLLECTIVE_PERMUTE) {
        if (!pairs || pairs->type != RP_VALUE_PAIRS)
            return rp_shlo_refuse_attr(w, op, RP_ATTR_SOURCE_TARGET_PAIRS);
        rp_shlo_table(w, "source_target_pairs", pairs->ints, pairs->n / 2, 2);
    } else {
        /* Makes a table of all groups, with shorter ones filled up with -1; returns its columns, or
           0. */
        const struct rp_attr *attr = rp_op_attr(w->p, op, RP_ATTR_REPLICA_GROUPS);
        const struct rp_replica_groups *g =
            attr && attr->type == RP_VALUE_GROUPS ? attr->groups : NULL;

        int64_t *table = NULL;
        size_t n = g ? g->ngroups : 0;
        size_t columns = 0;
        if (attr) {
            if (!g || (g->form != RP_GROUPS_LISTED && !is_iota(g)))
                return rp_shlo_refuse_attr(w, op, RP_ATTR_REPLICA_GROUPS);
            if (g->form == RP_GROUPS_IOTA)
                columns = (size_t)g->group_size;
            for (size_t i = 0; g->form == RP_GROUPS_LISTED && i < g->ngroups; i++)
                if (g->begin[i + 1] - g->begin[i] > columns)
                    columns = g->begin[i + 1] - g->begin[i];
            if (columns && g->ngroups > (size_t)MAX_DEVICES * 4 / columns)
                return rp_shlo_refuse_attr(w, op, RP_ATTR_REPLICA_GROUPS);
            table = RP_ARENA_NEW(&w->scratch, int64_t, g->ngroups * columns + 1);
            RP_TRY(rp_err_need(table, w->err, "writing groups of devices"));
            for (size_t i = 0; i < g->ngroups; i++)
                for (size_t k = 0; k < columns; k++) {
                    int64_t *to = &table[i * columns + k];

                    if (g->form == RP_GROUPS_IOTA)
                        *to = iota_device(g, (int64_t)(i * columns + k));
                    else
                        *to = k < g->begin[i + 1] - g->begin[i] ? g->ids.at[g->begin[i] + k] : -1;
                }
        }
        rp_shlo_table(w, "replica_groups", table, n, columns);
        if (code == RP_OP_ALL_TO_ALL)
            RP_TRY(put_all_to_all(w, op, columns));
    }
    if (channel > 0) {
        rp_shlo_key(w, "channel_handle");
        rp_out_printf(w->to, "#stablehlo.channel_handle<handle = %lld, type = 1>",
                      (long long)channel);
    }
    if (ids && ids->type == RP_VALUE_FLAG && ids->number)
        rp_out_text(w->to, w->listed ? ", use_global_device_ids" : " <{use_global_device_ids");
    w->listed = true;
    return RP_OK;
}
