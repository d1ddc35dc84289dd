/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, lanes and edges of the ranks are concatenated with their times shifted, names are merged
 * into one list, and every rendezvous gets a node. A collective begins at its rendezvous; the time
 * that a rank spent in it before was waiting, which is not a node. A rank whose collective ended
 * before the last rank arrived did not wait for it and is left as recorded.
 *
 * Times are on the clock of the first rank (rendezvous.h). In a broadcast or scatter the others
 * wait for its root: ranks that arrive later than the root are left as recorded, too.
 */
#include "stepgraph/join.h"

#include "base/strtab.h"
#include "stepgraph/build.h"

#include <string.h>

struct join_ctx {
    struct rp_stepgraph *out;
    const struct rp_sg_member *ranks;
    size_t n;
    struct rp_arena *arena;
    struct rp_sg_join *join;
    struct rp_strtab names;
};

/* ------------------------------------------------------------------ concatenating ranks */

static enum rp_code add_lanes(struct join_ctx *j, uint32_t r, uint32_t base, struct rp_err *err)
{
    const struct rp_stepgraph *g = j->ranks[r].graph;

    for (size_t i = 0; i < g->lanes.n; i++) {
        struct rp_sg_lane lane = g->lanes.at[i];

        lane.rank = r;
        lane.first += base;
        lane.end += base;
        RP_TRY(rp_vec_push(&j->out->lanes, lane, err));
    }
    j->out->nlanes = (uint32_t)j->out->lanes.n;
    return RP_OK;
}

static enum rp_code add_nodes(struct join_ctx *j, uint32_t r, const uint32_t *name_of,
                              struct rp_err *err)
{
    const struct rp_stepgraph *g = j->ranks[r].graph;
    uint32_t lanes = (uint32_t)j->out->lanes.n;

    if (j->out->nodes.n + g->nodes.n >= UINT32_MAX / 2)
        return rp_err_set(err, RP_LIMIT, "the run has more than %u nodes: use --rank",
                          UINT32_MAX / 2);
    RP_TRY(rp_vec_reserve(&j->out->nodes, g->nodes.n, err));
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct rp_sg_node node = g->nodes.at[i];

        node.start_ns = rp_sg_common_time(j->join, r, node.start_ns);
        node.name = name_of[node.name];
        node.lane += node.lane == RP_NONE ? 0 : lanes;
        node.rank = r;
        j->out->nodes.at[j->out->nodes.n++] = node;
    }
    return RP_OK;
}

static enum rp_code add_rank(struct join_ctx *j, uint32_t r, struct rp_err *err)
{
    const struct rp_stepgraph *g = j->ranks[r].graph;
    uint32_t base = (uint32_t)j->out->nodes.n, *name_of;
    int64_t begin = rp_sg_common_time(j->join, r, g->begin_ns);
    int64_t end = rp_sg_common_time(j->join, r, g->end_ns);

    name_of = RP_ARENA_NEW(j->arena, uint32_t, g->names.n + 1);
    RP_TRY(rp_err_need(name_of, err, "joining ranks"));
    j->join->first_node[r] = base;
    j->out->begin_ns = begin < j->out->begin_ns ? begin : j->out->begin_ns;
    j->out->end_ns = end > j->out->end_ns ? end : j->out->end_ns;
    j->out->ndropped += g->ndropped;

    uint32_t id;
    for (size_t i = 0; i < g->names.n; i++) {
        RP_TRY(rp_strtab_intern(&j->names, g->names.at[i], strlen(g->names.at[i]), &id, err));
        while (j->out->names.n <= id)
            RP_TRY(rp_vec_push(&j->out->names, g->names.at[i], err));
        name_of[i] = id;
    }
    RP_TRY(add_nodes(j, r, name_of, err));
    RP_TRY(add_lanes(j, r, base, err));
    RP_TRY(rp_vec_reserve(&j->out->edges, g->edges.n, err));
    for (size_t i = 0; i < g->edges.n; i++) {
        struct rp_sg_edge e = g->edges.at[i];

        e.from += base;
        e.to += base;
        j->out->edges.at[j->out->edges.n++] = e;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ rendezvous */

static uint32_t arrival_of(const struct join_ctx *j, const struct rp_rendezvous *m, uint32_t i)
{
    uint32_t arrival = j->ranks[m->rank[i]].graph->arrivals.at[m->at[i]];

    return arrival == RP_NONE ? RP_NONE : arrival + j->join->first_node[m->rank[i]];
}

/* Finds when the last rank arrived for which the others wait, by the clocks that are used here. */
static bool last_arrival(const struct join_ctx *j, const struct rp_rendezvous *m, int64_t *last_ns,
                         uint32_t *last)
{
    uint32_t i, n = 0, source = m->source == RP_NONE ? RP_NONE : arrival_of(j, m, m->source);

    for (i = 0; i < m->n; i++) {
        uint32_t node = arrival_of(j, m, i);

        if (node == RP_NONE || (source != RP_NONE && j->out->nodes.at[node].start_ns >
                                                         j->out->nodes.at[source].start_ns))
            continue;
        if (n++ == 0 || j->out->nodes.at[node].start_ns > *last_ns) {
            *last_ns = j->out->nodes.at[node].start_ns;
            *last = m->rank[i];
        }
    }
    return n > 1;
}

/* Lets the collective of one rank begin when the last one has arrived. */
static enum rp_code hold(struct join_ctx *j, const struct rp_rendezvous *m, uint32_t i,
                         uint32_t meet, uint32_t last, struct rp_err *err)
{
    uint32_t arrival = arrival_of(j, m, i), r = m->rank[i];
    int64_t at = j->out->nodes.at[meet].start_ns;

    if (arrival == RP_NONE || j->out->nodes.at[arrival].start_ns > at)
        return RP_OK;
    struct rp_sg_node *node = &j->out->nodes.at[arrival + 1];
    RP_TRY(rp_sg_add_edge(j->out, arrival, meet, RP_SG_MEMBER, 0, err));
    if (rp_sg_end_ns(node) < at)
        return RP_OK;
    if (at >= node->start_ns) { /* of several partners, it waits for the last */
        node->dur_ns = rp_ns_between(at, rp_sg_end_ns(node));
        node->start_ns = at;
        j->join->last_arrival[r][m->at[i]] =
            (struct rp_sg_last_arrival){rp_sg_own_time(j->join, r, at), last};
    }
    return rp_sg_add_edge(j->out, meet, arrival + 1, RP_SG_MEMBER, 0, err);
}

static enum rp_code add_meeting(struct join_ctx *j, const struct rp_rendezvous *m,
                                struct rp_err *err)
{
    struct rp_sg_node meet = {
        .event = RP_NONE, .lane = RP_NONE, .collective = RP_NONE, .kind = RP_SG_RENDEZVOUS};
    uint32_t i, last = 0;

    if (!last_arrival(j, m, &meet.start_ns, &last))
        return RP_OK;
    meet.rank = last;
    RP_TRY(rp_vec_push(&j->out->nodes, meet, err));
    for (i = 0; i < m->n; i++)
        RP_TRY(hold(j, m, i, (uint32_t)j->out->nodes.n - 1, last, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code alloc_join(struct join_ctx *j, struct rp_err *err)
{
    struct rp_sg_join *join = j->join;

    join->first_node = RP_ARENA_NEW(j->arena, uint32_t, j->n + 1);
    join->last_arrival = RP_ARENA_NEW(j->arena, struct rp_sg_last_arrival *, j->n + 1);
    if (!join->first_node || !join->last_arrival)
        return rp_err_nomem(err, "joining ranks");
    for (size_t r = 0; r < j->n; r++) {
        size_t n = j->ranks[r].collectives->list.n;

        join->last_arrival[r] = RP_ARENA_NEW(j->arena, struct rp_sg_last_arrival, n + 1);
        if (!join->last_arrival[r])
            return rp_err_nomem(err, "joining ranks");
        for (size_t i = 0; i < n; i++)
            join->last_arrival[r][i] = (struct rp_sg_last_arrival){RP_NO_TS, RP_NONE};
    }
    return RP_OK;
}

static enum rp_code join_all(struct join_ctx *j, struct rp_err *err)
{
    struct rp_sg_node origin = {
        .event = RP_NONE, .lane = RP_NONE, .collective = RP_NONE, .kind = RP_SG_ORIGIN};
    struct rp_rendezvous_list *m = &j->join->rendezvous;

    j->join->aligned = m->clocks_differ;
    *j->out =
        (struct rp_stepgraph){.begin_ns = INT64_MAX, .end_ns = INT64_MIN, .nranks = (uint32_t)j->n};
    RP_TRY(rp_vec_push(&j->out->nodes, origin, err));
    for (uint32_t r = 0; r < j->n; r++)
        RP_TRY(add_rank(j, r, err));
    j->out->nodes.at[0].start_ns = j->out->begin_ns;
    for (uint32_t r = 0; r < j->n; r++)
        RP_TRY(rp_sg_add_edge(j->out, 0, j->join->first_node[r], RP_SG_AFTER, 0, err));
    for (size_t k = 0; k < m->n; k++)
        RP_TRY(add_meeting(j, &m->at[k], err));

    /* Nodes that began inside a collective which now begins later begin after its arrival. */
    struct rp_stepgraph *g = j->out;
    for (size_t i = 0; i < g->edges.n; i++) {
        struct rp_sg_edge *e = &g->edges.at[i];
        if ((e->flags & RP_SG_FROM_START) &&
            g->nodes.at[e->from].start_ns > g->nodes.at[e->to].start_ns)
            e->from--;
    }

    return rp_sg_freeze(j->out, err);
}

enum rp_code rp_sg_join(struct rp_stepgraph *out, const struct rp_sg_member *ranks, size_t n,
                        struct rp_arena *arena, struct rp_sg_join *join, struct rp_err *err)
{
    struct join_ctx j = {.out = out, .ranks = ranks, .n = n, .arena = arena, .join = join};
    const struct rp_collectives **lists = RP_ARENA_NEW(arena, const struct rp_collectives *, n + 1);

    *out = (struct rp_stepgraph){0};
    *join = (struct rp_sg_join){0};
    RP_TRY(rp_err_need(lists, err, "joining ranks"));
    for (size_t r = 0; r < n; r++)
        lists[r] = ranks[r].collectives;
    RP_TRY(rp_rendezvous_find(lists, n, arena, &join->rendezvous, err));
    RP_TRY(alloc_join(&j, err));
    if (!join->rendezvous.n)
        return RP_OK;
    enum rp_code code = rp_strtab_init(&j.names, err);
    if (code == RP_OK)
        code = join_all(&j, err);
    rp_strtab_release(&j.names);
    return code;
}
