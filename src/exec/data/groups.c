/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The groups of collectives, in the three ways that HLO has to write them:
 *
 *   {{0,1},{2,3}}                          listed
 *   [2,4]<=[4,2]T(1,0)                     numbers 0.. reshaped, transposed, cut
 *   mesh['a'=2,'b'=4] {'b'}                a grid of devices; a group runs along these axes
 *   mesh['a'=8], device_ids=([2,4]T(1,0)) {'a':(2)4}   with an order, along a part of an axis
 */
#include "exec/data/groups.h"

#include "exec/data/tensor.h"

#include <stdlib.h>
#include <string.h>

#define AXES 16
#define MOST 65536

static bool room(struct rp_arena *arena, struct rp_groups *g, size_t ids, size_t groups)
{
    g->ids = RP_ARENA_NEW(arena, int64_t, ids);
    g->begin = RP_ARENA_NEW(arena, size_t, groups + 1);
    return g->ids && g->begin;
}

/* Numbers 0.. as an array of dims, transposed (perm, or NULL) and read in order. */
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

/* Numbers from *at to the first of a byte of `stops`; false: too many. */
static bool numbers(const char **at, const char *end, const char *stops, int64_t *to, size_t most,
                    size_t *n)
{
    for (*n = 0; *at < end && !strchr(stops, **at); ++*at) {
        char *stop;

        if (**at < '0' || **at > '9')
            continue;
        if (*n == most)
            return false;
        to[(*n)++] = strtoll(*at, &stop, 10);
        *at = stop - 1;
    }
    return true;
}

/* "[4,2]T(1,0)" behind what was read so far, as the numbers it means. */
static bool reshaped(const char **at, const char *end, int64_t *dims, size_t *n, int64_t *perm,
                     size_t *nperm)
{
    *nperm = 0;
    if (!numbers(at, end, "]", dims, AXES, n) || !*n || *at >= end)
        return false;
    ++*at;
    if (*at < end && **at == 'T' && !numbers(at, end, ")", perm, AXES, nperm))
        return false;
    return !*nperm || (*nperm == *n && is_permutation(perm, *n));
}

static bool iota_groups(struct rp_arena *arena, const char *at, const char *end,
                        struct rp_groups *g)
{
    int64_t cut[2], dims[AXES], perm[AXES];
    size_t n, nperm, ncut, total;

    if (!numbers(&at, end, "<", cut, 2, &ncut) || ncut != 2 ||
        !reshaped(&at, end, dims, &n, perm, &nperm) || !total_of(dims, n, &total) || cut[0] < 1 ||
        cut[1] < 1 || cut[0] > MOST || cut[1] > MOST || (size_t)(cut[0] * cut[1]) != total ||
        !room(arena, g, total, (size_t)cut[0]))
        return false;
    count_up(dims, nperm ? perm : NULL, n, g->ids, total);
    g->ngroups = (size_t)cut[0];
    g->nids = total;
    for (size_t i = 0; i <= g->ngroups; i++)
        g->begin[i] = i * (size_t)cut[1];
    return true;
}

static bool listed_groups(struct rp_arena *arena, const char *at, const char *end,
                          struct rp_groups *g)
{
    size_t most = (size_t)(end - at) + 1;
    int depth = 0;

    if (!room(arena, g, most, most))
        return false;
    for (; at < end; at++) {
        char *stop;

        if (*at == '{' && ++depth == 2)
            g->begin[g->ngroups++] = g->nids;
        else if (*at == '}')
            depth--;
        else if (*at >= '0' && *at <= '9') {
            g->ids[g->nids++] = strtoll(at, &stop, 10);
            at = stop - 1;
        }
    }
    g->begin[g->ngroups] = g->nids;
    return true;
}

/* ---- meshes ---- */

struct axis {
    const char *name;
    size_t n;
};

struct mesh {
    struct axis axis[AXES];
    int64_t size[AXES];
    size_t naxes;
    /* every axis in up to three parts, of which `within` are the groups' */
    int64_t part[3 * AXES];
    size_t nparts, first[AXES + 1];
    size_t within[AXES], nwithin;
};

/* A name in quotes, behind which *at stands then. */
static bool quoted(const char **at, const char *end, struct axis *out)
{
    char quote;

    while (*at < end && **at != '\'' && **at != '"' && **at != ']' && **at != '}')
        ++*at;
    if (*at >= end || **at == ']' || **at == '}')
        return false;
    quote = *(*at)++;
    out->name = *at;
    while (*at < end && **at != quote)
        ++*at;
    out->n = (size_t)(*at - out->name);
    if (*at >= end)
        return false;
    ++*at;
    return true;
}

static bool mesh_axes(const char **at, const char *end, struct mesh *m)
{
    struct axis a;

    while (quoted(at, end, &a)) {
        char *stop;

        if (m->naxes == AXES || *at >= end || **at != '=')
            return false;
        m->axis[m->naxes] = a;
        m->size[m->naxes] = strtoll(*at + 1, &stop, 10);
        if (m->size[m->naxes] < 1 || m->size[m->naxes] > MOST)
            return false;
        m->naxes++;
        *at = stop;
    }
    return m->naxes && *at < end && *(*at)++ == ']';
}

/* "'a'" or "'a':(2)4": the part of that size, of which 2 are before. */
static bool mesh_part(const char **at, const char *end, const struct mesh *m, size_t *which,
                      int64_t *before, int64_t *size)
{
    struct axis a;
    char *stop;

    if (!quoted(at, end, &a))
        return false;
    for (*which = 0; *which < m->naxes; ++*which)
        if (m->axis[*which].n == a.n && !memcmp(m->axis[*which].name, a.name, a.n))
            break;
    if (*which == m->naxes)
        return false;
    *before = 1;
    *size = m->size[*which];
    if (*at + 2 < end && (*at)[0] == ':' && (*at)[1] == '(') {
        *before = strtoll(*at + 2, &stop, 10);
        *at = stop;
        if (*at >= end || **at != ')')
            return false;
        *size = strtoll(*at + 1, &stop, 10);
        *at = stop;
    }
    return *before > 0 && *size > 0 && *before <= MOST && *size <= MOST &&
           m->size[*which] % (*before * *size) == 0;
}

/* Axes cut where the groups want a part; an axis can be wanted once. */
static bool mesh_parts(const char *at, const char *end, struct mesh *m)
{
    int64_t before[AXES], size[AXES];
    size_t order[AXES], n = 0, wanted[AXES];
    bool used[AXES] = {false};

    while (n < AXES && mesh_part(&at, end, m, &wanted[n], &before[n], &size[n])) {
        if (used[wanted[n]])
            return false;
        used[wanted[n]] = true;
        order[wanted[n]] = n;
        n++;
    }
    if (!n || at >= end || *at != '}')
        return false;
    m->nwithin = n;
    for (size_t i = 0; i < m->naxes; i++) {
        if (!used[i]) {
            m->part[m->nparts++] = m->size[i];
            continue;
        }
        m->part[m->nparts++] = before[order[i]];
        m->within[order[i]] = m->nparts;
        m->part[m->nparts++] = size[order[i]];
        m->part[m->nparts++] = m->size[i] / before[order[i]] / size[order[i]];
    }
    return m->nparts <= AXES;
}

/* "device_ids=(0,2,1,3)" or "device_ids=([2,2]T(1,0))"; absent: in order. */
static bool mesh_devices(const char *at, const char *end, int64_t *to, size_t total)
{
    int64_t dims[AXES], perm[AXES];
    size_t n, nperm, all;

    while (at < end && *at != '(' && *at != '{')
        at++;
    if (at >= end || *at == '{') {
        for (size_t i = 0; i < total; i++)
            to[i] = (int64_t)i;
        return true;
    }
    if (at + 1 < end && at[1] == '[') {
        if (!reshaped(&at, end, dims, &n, perm, &nperm) || !total_of(dims, n, &all) || all != total)
            return false;
        count_up(dims, nperm ? perm : NULL, n, to, total);
        return true;
    }
    return numbers(&at, end, ")", to, total, &n) && n == total;
}

static bool mesh_groups(struct rp_arena *arena, const char *at, const char *end,
                        struct rp_groups *g)
{
    struct mesh m = {.naxes = 0};
    const char *axes = at;
    int64_t perm[AXES], index[AXES] = {0}, stride[AXES], dims[AXES], *devices;
    size_t total, size = 1, n = 0;

    while (axes < end && *axes != '{')
        axes++;
    if (!mesh_axes(&at, end, &m) || !total_of(m.size, m.naxes, &total) ||
        !mesh_parts(axes, end, &m) || !room(arena, g, total, total))
        return false;
    devices = RP_ARENA_NEW(arena, int64_t, total);
    if (!devices || !mesh_devices(at, end, devices, total))
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
        int64_t from = 0;

        for (size_t k = 0; k < n; k++)
            from += index[k] * stride[perm[k]];
        g->ids[i] = devices[from];
        rp_index_next(index, dims, n);
    }
    g->nids = total;
    g->ngroups = total / size;
    for (size_t i = 0; i <= g->ngroups; i++)
        g->begin[i] = i * size;
    return true;
}

bool rp_groups_parse(struct rp_arena *arena, const struct rp_attr *attr, struct rp_groups *out)
{
    const char *end = attr->at + attr->n;

    memset(out, 0, sizeof *out);
    if (attr->n && attr->at[0] == '[')
        return iota_groups(arena, attr->at, end, out);
    if (attr->n > 5 && !memcmp(attr->at, "mesh[", 5))
        return mesh_groups(arena, attr->at + 5, end, out);
    return listed_groups(arena, attr->at, end, out);
}

/* ---- how many there are ---- */

static unsigned module_number(const struct rp_program *p, const char *key)
{
    for (size_t i = 0; i < p->module_attrs.n; i++) {
        const struct rp_attr *a = &p->module_attrs.at[i];
        int64_t value;
        size_t n;

        if (!strcmp(rp_program_text(p, a->key), key) && rp_attr_ints(a, &value, 1, &n) && n == 1 &&
            value > 0 && value <= MOST)
            return (unsigned)value;
    }
    return 1;
}

unsigned rp_program_runs(const struct rp_program *p)
{
    static const uint32_t keys[] = {RP_ATTR_REPLICA_GROUPS, RP_ATTR_SOURCE_TARGET_PAIRS};
    unsigned said = module_number(p, "num_partitions") * module_number(p, "replica_count");
    struct rp_arena arena = {0};
    int64_t most = 0;

    for (uint32_t op = 0; said == 1 && op < p->code.n; op++)
        for (size_t k = 0; k < 2; k++) {
            const struct rp_attr *attr = rp_op_attr(p, op, keys[k]);
            struct rp_groups g;

            if (!attr || !rp_groups_parse(&arena, attr, &g))
                continue;
            for (size_t i = 0; i < g.nids; i++)
                most = g.ids[i] > most ? g.ids[i] : most;
        }
    rp_arena_release(&arena);
    return said > 1 || most >= 4096 ? said : (unsigned)most + 1;
}
