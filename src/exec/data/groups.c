/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the groups of collectives, which HLO describes in three ways:
 *
 *   {{0,1},{2,3}}                          listed
 *   [2,4]<=[4,2]T(1,0)                     numbers 0.. reshaped, transposed, cut
 *   mesh['a'=2,'b'=4] {'b'}                a grid of devices; a group runs along these axes
 *   mesh['a'=8], device_ids=([2,4]T(1,0)) {'a':(2)4}   with an order, along a part of an axis
 */
#include "exec/data/groups.h"
#include "program/opcodes.h"

#include "exec/data/tile.h"

#include "exec/data/tensor.h"

#include <string.h>

#define AXES 16
#define MOST 65536

static bool groups_alloc(struct rp_arena *arena, struct rp_groups *g, size_t ids, size_t groups)
{
    g->ids = RP_ARENA_NEW(arena, int64_t, ids);
    g->begin = RP_ARENA_NEW(arena, size_t, groups + 1);
    return g->ids && g->begin;
}

/* Lists the numbers 0.. as an array of dims, transposed by perm (or NULL), in order. */
static void count_up(const int64_t *dims, const int64_t *perm, size_t n, int64_t *to, size_t total)
{
    int64_t stride[AXES], turned[AXES], index[AXES] = {0};

    rp_strides(dims, n, stride);
    for (size_t i = 0; i < n; i++)
        turned[i] = dims[perm ? perm[i] : (int64_t)i];
    for (size_t i = 0; i < total; i++) {
        to[i] = 0;
        for (size_t k = 0; k < n; k++)
            to[i] += index[k] * stride[perm ? perm[k] : (int64_t)k];
        rp_index_next(index, turned, n);
    }
}

static bool total_of(const int64_t *dims, size_t n, size_t *total)
{
    *total = 1;
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 1 || dims[i] > MOST)
            return false;
        *total *= (size_t)dims[i];
        if (*total > MOST)
            return false;
    }
    return true;
}

static bool is_permutation(const int64_t *perm, size_t n)
{
    unsigned seen = 0;

    for (size_t i = 0; i < n; i++) {
        if (perm[i] < 0 || perm[i] >= (int64_t)n)
            return false;
        seen |= 1u << perm[i];
    }
    return seen == (1u << n) - 1;
}

static bool is_reshape(struct rp_int_list dims, struct rp_int_list perm, size_t *total)
{
    return dims.n && dims.n <= AXES && (!perm.n || perm.n == dims.n) &&
           (!perm.n || is_permutation(perm.at, perm.n)) && total_of(dims.at, dims.n, total);
}

static void even_groups(struct rp_groups *g, size_t total, size_t size)
{
    g->nids = total;
    g->ngroups = total / size;
    for (size_t i = 0; i <= g->ngroups; i++)
        g->begin[i] = i * size;
}

static bool iota_groups(struct rp_arena *arena, const struct rp_replica_groups *from,
                        struct rp_groups *g)
{
    size_t total;

    if (!is_reshape(from->dims, from->perm, &total) || from->ngroups < 1 || from->ngroups > MOST ||
        from->group_size < 1 || from->group_size > MOST ||
        from->ngroups * (size_t)from->group_size != total ||
        !groups_alloc(arena, g, total, from->ngroups))
        return false;
    count_up(from->dims.at, from->perm.n ? from->perm.at : NULL, from->dims.n, g->ids, total);
    even_groups(g, total, (size_t)from->group_size);
    return true;
}

static bool listed_groups(struct rp_arena *arena, const struct rp_replica_groups *from,
                          struct rp_groups *g)
{
    if (!groups_alloc(arena, g, from->ids.n + 1, from->ngroups))
        return false;
    if (from->ids.n)
        memcpy(g->ids, from->ids.at, from->ids.n * sizeof *g->ids);
    g->nids = from->ids.n;
    g->ngroups = from->ngroups;
    for (size_t i = 0; i <= g->ngroups; i++)
        g->begin[i] = from->begin[i];
    return true;
}

/* ---- meshes ---- */

struct mesh {
    int64_t size[AXES];
    /* each axis has up to three parts; `within` are the groups' parts */
    int64_t part[3 * AXES];
    size_t nparts;
    size_t within[AXES], nwithin;
};

/* Cuts axes where the groups want a part; each axis can be wanted once. */
static bool mesh_parts(const struct rp_replica_groups *from, struct mesh *m)
{
    const struct rp_mesh_part *wanted[AXES] = {NULL};
    size_t order[AXES];

    if (!from->nparts || from->nparts > AXES)
        return false;
    for (size_t i = 0; i < from->nparts; i++) {
        const struct rp_mesh_part *part = &from->parts[i];

        if (wanted[part->axis])
            return false;
        wanted[part->axis] = part;
        order[part->axis] = i;
    }
    m->nwithin = from->nparts;
    for (size_t i = 0; i < from->naxes; i++) {
        int64_t before = wanted[i] && wanted[i]->size ? wanted[i]->before : 1;
        int64_t size = wanted[i] && wanted[i]->size ? wanted[i]->size : m->size[i];

        if (!wanted[i]) {
            m->part[m->nparts++] = m->size[i];
            continue;
        }
        if (before < 1 || size < 1 || before > MOST || size > MOST ||
            m->size[i] % (before * size) != 0)
            return false;
        m->part[m->nparts++] = before;
        m->within[order[i]] = m->nparts;
        m->part[m->nparts++] = size;
        m->part[m->nparts++] = m->size[i] / before / size;
    }
    return m->nparts <= AXES;
}

static bool mesh_devices(const struct rp_replica_groups *from, int64_t *to, size_t total)
{
    size_t all;

    if (from->dims.n) {
        if (!is_reshape(from->dims, from->perm, &all) || all != total)
            return false;
        count_up(from->dims.at, from->perm.n ? from->perm.at : NULL, from->dims.n, to, total);
        return true;
    }
    if (from->ids.n && from->ids.n != total)
        return false;
    for (size_t i = 0; i < total; i++)
        to[i] = from->ids.n ? from->ids.at[i] : (int64_t)i;
    return true;
}

static bool mesh_groups(struct rp_arena *arena, const struct rp_replica_groups *from,
                        struct rp_groups *g)
{
    struct mesh m = {.nparts = 0};
    int64_t perm[AXES], index[AXES] = {0}, stride[AXES], dims[AXES];
    size_t total, size = 1, n = 0;

    if (!from->naxes || from->naxes > AXES)
        return false;
    for (size_t i = 0; i < from->naxes; i++)
        m.size[i] = from->axes[i].size;
    if (!total_of(m.size, from->naxes, &total) || !mesh_parts(from, &m) ||
        !groups_alloc(arena, g, total, total))
        return false;
    int64_t *devices = RP_ARENA_NEW(arena, int64_t, total);
    if (!devices || !mesh_devices(from, devices, total))
        return false;
    for (size_t i = 0; i < m.nparts; i++) {
        bool inside = false;

        for (size_t k = 0; k < m.nwithin; k++)
            inside |= m.within[k] == i;
        if (!inside)
            perm[n++] = (int64_t)i;
    }
    for (size_t k = 0; k < m.nwithin; k++) {
        size *= (size_t)m.part[m.within[k]];
        perm[n++] = (int64_t)m.within[k];
    }
    rp_strides(m.part, m.nparts, stride);
    for (size_t i = 0; i < n; i++)
        dims[i] = m.part[perm[i]];
    for (size_t i = 0; i < total; i++) {
        int64_t at = 0;

        for (size_t k = 0; k < n; k++)
            at += index[k] * stride[perm[k]];
        g->ids[i] = devices[at];
        rp_index_next(index, dims, n);
    }
    even_groups(g, total, size);
    return true;
}

bool rp_groups_of(struct rp_arena *arena, const struct rp_attr *attr, struct rp_groups *out)
{
    memset(out, 0, sizeof *out);
    if (attr->type == RP_VALUE_PAIRS) {
        if (!groups_alloc(arena, out, (size_t)attr->n + 1, attr->n / 2))
            return false;
        if (attr->n)
            memcpy(out->ids, attr->ints, attr->n * sizeof *out->ids);
        even_groups(out, attr->n, 2);
        return true;
    }
    if (attr->type != RP_VALUE_GROUPS)
        return false;
    switch (attr->groups->form) {
    case RP_GROUPS_IOTA:
        return iota_groups(arena, attr->groups, out);
    case RP_GROUPS_MESH:
        return mesh_groups(arena, attr->groups, out);
    default:
        return listed_groups(arena, attr->groups, out);
    }
}

/* ---- how many there are ---- */

static unsigned module_number(const struct rp_program *p, uint32_t key)
{
    int64_t value = rp_program_int(p, key, 1);

    return value > 0 && value <= MOST ? (unsigned)value : 1;
}

bool rp_program_is_whole(const struct rp_program *p)
{
    for (uint32_t op = 0; op < p->code.n; op++) {
        const struct rp_attr *target = rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET);

        if (target && (rp_attr_is(target, "xla.sdy.GlobalToLocalShape") ||
                       rp_attr_is(target, "SPMDFullToShardShape")))
            return true;
    }
    return false;
}

/* Whether partitions differ: by collectives, by their numbers, or by parts in the view of one
   device. */
static bool has_parts(const struct rp_program *p)
{
    for (uint32_t op = 0; op < p->code.n; op++)
        if (rp_op_info[p->code.at[op]].class_ == RP_CLASS_COLLECTIVE ||
            p->code.at[op] == RP_OP_PARTITION_ID || p->code.at[op] == RP_OP_REPLICA_ID)
            return true;
    return rp_program_is_whole(p);
}

/* The number of devices in the meshes that Shardy's programs name. */
static unsigned mesh_size(const struct rp_program *p)
{
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == RP_ATTR_FRONTEND_ATTRIBUTES)
            return rp_sdy_devices(rp_attr_map_find(&p->module_attrs.at[i], "xla.sdy.meshes"));
    return 1;
}

/* The most devices that a sharding names, over all operations, or only parameters. */
static unsigned sharded_devices(const struct rp_program *p, bool parameters)
{
    int64_t most = 1;

    for (uint32_t op = 0; op < p->code.n; op++) {
        const struct rp_attr *attr = rp_op_attr(p, op, RP_ATTR_SHARDING);
        int64_t total = 1;

        if (!attr || attr->type != RP_VALUE_SHARDING || attr->sharding->type != RP_SHARDING_OTHER ||
            (parameters && p->code.at[op] != RP_OP_PARAMETER))
            continue;
        for (size_t i = 0; i < attr->sharding->tiles.n && total <= MOST; i++)
            total *= attr->sharding->tiles.at[i];
        most = total > most && total <= MOST ? total : most;
    }
    return (unsigned)most;
}

unsigned rp_program_runs(const struct rp_program *p)
{
    static const uint32_t keys[] = {RP_ATTR_REPLICA_GROUPS, RP_ATTR_SOURCE_TARGET_PAIRS};
    unsigned said =
        module_number(p, RP_ATTR_NUM_PARTITIONS) * module_number(p, RP_ATTR_REPLICA_COUNT);
    struct rp_arena arena = {0};
    int64_t most = 0;

    if (!strcmp(p->language, "stablehlo") && !has_parts(p))
        return 1; /* with whole arrays, every partition is the same */
    if (said == 1 && has_parts(p))
        said = mesh_size(p);
    if (said == 1 && (p->placement || has_parts(p)))
        said = sharded_devices(p, p->placement != NULL);
    for (uint32_t op = 0; said == 1 && op < p->code.n; op++)
        for (size_t k = 0; k < 2; k++) {
            const struct rp_attr *attr = rp_op_attr(p, op, keys[k]);
            struct rp_groups g;

            if (!attr || !rp_groups_of(&arena, attr, &g))
                continue;
            for (size_t i = 0; i < g.nids; i++)
                most = g.ids[i] > most ? g.ids[i] : most;
        }
    rp_arena_release(&arena);
    return said > 1 || most >= 4096 ? said : (unsigned)most + 1;
}
