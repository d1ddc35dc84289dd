/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective becomes the messages ("hops") of a ring or a tree. Its participants are the ranks
 * with an edge into the node of its rendezvous. A hop occupies the link that leaves the sending
 * rank. It starts once that rank has arrived and has received the data that it passes on; the
 * receiver has the data when the hop ends.
 *
 * Transfers that overlapped in the recording shared the links, so their recorded durations are too
 * long for a transfer alone. A hop therefore takes only its part of the transfer's own work
 * (transport.h), and if hops overlap, the simulation lets them share the link again. In a tree the
 * busiest link is busy for half of the transfer, and so is shared for half of it. If a rank needed
 * longer than the fastest one, the difference follows its last hop.
 */
#include "sim/model/expand.h"

#include "base/order.h"
#include "sim/model/transport.h"

#include <math.h>
#include <stdlib.h>

#define MOST_HOPS (1u << 24)
RP_LIMIT(MOST_HOPS, "hops of collectives", "more are refused");

struct participant {
    uint32_t rendezvous, rank, arrive, comm, edge; /* edge: from the rendezvous to the transfer */
    int64_t lag_ns;                                /* from its arrival to the rendezvous */
    double share;                                  /* its own work / its recorded duration */
};

struct expand_ctx {
    struct rp_sim_run *run;
    const struct rp_expand *how;
    RP_VEC(struct participant) members; /* hops of one rendezvous, by round, then participant */
    RP_VEC(uint32_t) hops;              /* group: the participants of a rendezvous */
    size_t nhops;                       /* in all */
    struct rp_err *err;
};

struct group { /* the participants of a rendezvous */
    const struct participant *at;
    uint32_t n;
    int64_t hop_ns;
};

/* ------------------------------------------------------------------ members */

RP_ORDER(by_rendezvous, struct participant, RP_UP(rendezvous), RP_UP(rank))

/* The edge between two tasks, or UINT32_MAX. */
static uint32_t edge_between(const struct rp_task_graph *g, uint32_t from, uint32_t to)
{
    for (uint32_t i = g->first.at[from]; i < g->first.at[from + 1]; i++)
        if (g->edges.at[i].to == to)
            return i;
    return UINT32_MAX;
}

static enum rp_code find_members(struct expand_ctx *x)
{
    const struct rp_task_graph *g = &x->run->tasks;

    for (uint32_t i = 0; i + 1 < rp_sim_nnodes(x->run); i++) {
        const struct rp_sg_node *node = rp_sim_node(x->run, i);
        struct participant m = {.rank = node->rank, .arrive = i, .comm = i + 1, .share = 1};

        if (node->kind != RP_SG_ARRIVE || node[1].kind != RP_SG_COMM)
            continue;
        for (uint32_t k = g->first.at[i]; k < g->first.at[i + 1]; k++)
            if (rp_sim_node(x->run, g->edges.at[k].to)->kind == RP_SG_RENDEZVOUS) {
                m.rendezvous = g->edges.at[k].to;
                m.lag_ns = x->run->overlay.lag_ns.at[k];
                m.edge = edge_between(g, m.rendezvous, m.comm);
                if (m.edge != UINT32_MAX && m.lag_ns != RP_LAG_CUT)
                    RP_TRY(rp_vec_push(&x->members, m, x->err));
                break;
            }
    }
    if (x->members.n)
        qsort(x->members.at, x->members.n, sizeof *x->members.at, by_rendezvous);
    return RP_OK;
}

/* Finds which part of a transfer's duration is its own work, and which comes from sharing the link
   with transfers that overlap it. Only the first rank of the collective is examined. */
static enum rp_code find_shares(struct expand_ctx *x)
{
    struct rp_transfer *list = malloc((x->members.n + 1) * sizeof *list);
    size_t i, n = 0;

    RP_TRY(rp_err_need(list, x->err, "simulating"));
    for (i = 0; i < x->members.n; i++) {
        const struct participant *m = &x->members.at[i];
        const struct rp_sg_node *node = rp_sim_node(x->run, m->comm);

        if (m->rank == x->members.at[0].rank && node->event != RP_NONE)
            list[n++] = (struct rp_transfer){
                .begin_ns = node->start_ns, .end_ns = rp_sg_end_ns(node), .at = (uint32_t)i};
    }
    rp_transfers_share(list, n);
    for (i = 0; i < n; i++)
        if (list[i].end_ns > list[i].begin_ns)
            x->members.at[list[i].at].share =
                list[i].work_ns / (double)(list[i].end_ns - list[i].begin_ns);
    free(list);
    return RP_OK;
}

/* ------------------------------------------------------------------ hops */

static uint32_t link_device(const struct expand_ctx *x, uint32_t rank, uint16_t step, uint32_t way)
{
    const struct rp_sim_part *first = x->run->parts[0];
    uint32_t ranks = (uint32_t)x->run->nranks * first->nranks;

    return x->run->links +
           2 * (ranks * (first->parallel_steps && step != RP_NO_STEP ? step : 0) + rank) + way;
}

/* way 0: to the next rank, 1: to the previous one. */
static enum rp_code add_hop(struct expand_ctx *x, const struct participant *m, uint32_t way,
                            int64_t dur_ns, uint32_t *id)
{
    uint16_t step = rp_sim_note_of(x->run, m->comm)->step;
    struct rp_task hop = {.dur_ns = dur_ns,
                          .device = link_device(x, m->rank, step, way),
                          .rank = m->rank,
                          .source = m->comm,
                          .step = step,
                          .kind = RP_SG_COMM};

    if (++x->nhops > MOST_HOPS)
        return rp_err_set(x->err, RP_LIMIT, "expanded collectives have more than %u hops",
                          MOST_HOPS);
    RP_TRY(rp_overlay_add(&x->run->overlay, hop, id, x->err));
    return rp_vec_push(&x->hops, *id, x->err);
}

static enum rp_code link_after(struct expand_ctx *x, uint32_t from, uint32_t to, int64_t lag_ns)
{
    return rp_overlay_link(&x->run->overlay, from, to, lag_ns, RP_SIM_EDGE_OF_KIND(RP_SG_MEMBER),
                           x->err);
}

static enum rp_code after_arrival(struct expand_ctx *x, const struct participant *m, uint32_t hop)
{
    return link_after(x, m->arrive, hop, m->lag_ns);
}

/* A rank goes on when everything that leads to `to` is over: only then the rest of its transfer
   runs. */
static enum rp_code into_rest(struct expand_ctx *x, const struct participant *m, uint32_t hop)
{
    int64_t lag = x->run->overlay.lag_ns.at[m->edge];

    return link_after(x, hop, m->comm, lag == RP_LAG_CUT ? 0 : lag);
}

/* ------------------------------------------------------------------ ring */

/* In each round a member passes on what it got in the one before. */
static enum rp_code add_ring(struct expand_ctx *x, const struct group *g, uint32_t rounds,
                             uint32_t way, int64_t hop_ns)
{
    size_t base = x->hops.n;
    uint32_t i, k, id;

    for (k = 0; k < rounds; k++)
        for (i = 0; i < g->n; i++) {
            uint32_t from = way ? (i + 1) % g->n : (i + g->n - 1) % g->n;

            RP_TRY(add_hop(x, &g->at[i], way, hop_ns, &id));
            RP_TRY(after_arrival(x, &g->at[i], id));
            if (k)
                RP_TRY(link_after(x, x->hops.at[base + (size_t)(k - 1) * g->n + from], id, 0));
            if (k + 1 == rounds) {
                uint32_t to = way ? (i + g->n - 1) % g->n : (i + 1) % g->n;

                RP_TRY(into_rest(x, &g->at[to], id));
                RP_TRY(into_rest(x, &g->at[i], id));
            }
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ tree */

/* Adds a binomial tree with member 0 at its root: in round k, members with bit k set (and no lower
   one) send their sum to the one without it; then the way back. last: by member, what it waits
   for. */
static enum rp_code add_tree(struct expand_ctx *x, const struct group *g, bool up, uint32_t *last)
{
    uint32_t depth = 0, k, i, id;

    while (1u << depth < g->n)
        depth++;
    for (k = 0; k < depth; k++) {
        uint32_t bit = 1u << (up ? k : depth - 1 - k);

        for (i = bit; i < g->n; i += 2 * bit) {
            uint32_t from = up ? i : i - bit, to = up ? i - bit : i;

            RP_TRY(add_hop(x, &g->at[from], 0, g->hop_ns, &id));
            RP_TRY(after_arrival(x, &g->at[from], id));
            if (last[from] != RP_NONE)
                RP_TRY(link_after(x, last[from], id, 0));
            if (up && last[to] != RP_NONE)
                RP_TRY(link_after(x, last[to], id, 0)); /* a rank receives one at a time */
            last[to] = id;
            RP_TRY(into_rest(x, &g->at[from], id));
            RP_TRY(into_rest(x, &g->at[to], id));
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ servers */

/* In round k a member sends its part to the k + 1st after it; when all parts for its own sum have
   come, it sends the sum to all. */
static enum rp_code add_servers(struct expand_ctx *x, const struct group *g)
{
    size_t base = x->hops.n;
    uint32_t i, k, from, id;

    for (k = 0; k + 1 < g->n; k++)
        for (i = 0; i < g->n; i++) {
            RP_TRY(add_hop(x, &g->at[i], 0, g->hop_ns, &id));
            RP_TRY(after_arrival(x, &g->at[i], id));
        }
    for (k = 0; k + 1 < g->n; k++)
        for (i = 0; i < g->n; i++) {
            RP_TRY(add_hop(x, &g->at[i], 0, g->hop_ns, &id));
            RP_TRY(after_arrival(x, &g->at[i], id));
            for (from = 1; from < g->n; from++) /* its part came from all others */
                RP_TRY(link_after(
                    x, x->hops.at[base + (size_t)(from - 1) * g->n + (i + g->n - from) % g->n], id,
                    0));
            RP_TRY(into_rest(x, &g->at[i], id));
            RP_TRY(into_rest(x, &g->at[(i + k + 1) % g->n], id));
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ a collective */

/* The number of successive hops; 0: the collective is left whole. A job's reductions are
   all-reduces. */
static uint32_t rounds_of(const struct expand_ctx *x, const struct group *g)
{
    uint32_t node = g->at[0].comm;
    uint32_t at = rp_sim_node(x->run, node)->collective;
    const struct rp_collective *c =
        at == RP_NONE ? NULL : &rp_sim_part_of(x->run, node)->collectives.list.at[at];
    uint8_t kind = c ? c->kind : RP_COLL_ALL_REDUCE;
    uint32_t depth = 0;

    while (1u << depth < g->n)
        depth++;
    if (g->n < 2 || (c && c->group_size > 0 && c->group_size != g->n))
        return 0;
    if (kind == RP_COLL_ALL_REDUCE)
        return x->how->shape == RP_EXPAND_TREE ? 2 * depth : 2 * (g->n - 1);
    return kind == RP_COLL_ALL_GATHER || kind == RP_COLL_REDUCE_SCATTER ? g->n - 1 : 0;
}

static enum rp_code add_hops(struct expand_ctx *x, const struct group *g, uint32_t rounds,
                             uint32_t *last)
{
    bool all_reduce = rounds != g->n - 1 || g->n == 2;

    for (uint32_t i = 0; i < g->n; i++)
        last[i] = RP_NONE;
    if (x->how->shape == RP_EXPAND_TREE && all_reduce) {
        RP_TRY(add_tree(x, g, true, last));
        return add_tree(x, g, false, last);
    }
    if (x->how->backend == RP_BACKEND_BYTEPS && all_reduce && rounds == 2 * (g->n - 1))
        return add_servers(x, g);
    RP_TRY(
        add_ring(x, g, rounds, 0, x->how->backend == RP_BACKEND_GLOO ? g->hop_ns / 2 : g->hop_ns));
    if (x->how->backend == RP_BACKEND_BYTEPS)
        return RP_OK;
    return add_ring(x, g, rounds, x->how->backend == RP_BACKEND_NCCL,
                    x->how->backend == RP_BACKEND_GLOO ? g->hop_ns - g->hop_ns / 2 : g->hop_ns);
}

/* The time of the quickest member becomes hops; for the others, only the excess remains. */
static enum rp_code expand_group(struct expand_ctx *x, struct group *g, uint32_t rounds)
{
    struct rp_overlay *o = &x->run->overlay;
    uint32_t i, *last = malloc((g->n + 1) * sizeof *last);
    int64_t least = INT64_MAX;
    double share = 1;
    enum rp_code code = last ? RP_OK : rp_err_nomem(x->err, "simulating");

    for (i = 0; i < g->n; i++) {
        least = o->dur_ns.at[g->at[i].comm] < least ? o->dur_ns.at[g->at[i].comm] : least;
        share = g->at[i].share < share ? g->at[i].share : share;
    }
    if (x->how->shape == RP_EXPAND_TREE && share > 0)
        share = 1 / (1 + (1 / share - 1) / 2);
    g->hop_ns = (int64_t)llround((double)least * share / rounds);
    x->hops.n = 0;
    if (code == RP_OK)
        code = add_hops(x, g, rounds, last);
    for (i = 0; code == RP_OK && i < g->n; i++) {
        code = rp_overlay_set_dur(o, g->at[i].comm, o->dur_ns.at[g->at[i].comm] - least, x->err);
        if (code == RP_OK)
            code = rp_overlay_set_lag(o, g->at[i].edge, RP_LAG_CUT, x->err);
    }
    free(last);
    return code;
}

static enum rp_code expand_all(struct expand_ctx *x, size_t *expanded, size_t *left)
{
    size_t i, end;

    for (i = 0; i < x->members.n; i = end) {
        struct group g = {.at = &x->members.at[i]};

        for (end = i + 1; end < x->members.n && x->members.at[end].rendezvous == g.at->rendezvous;)
            end++;
        g.n = (uint32_t)(end - i);
        uint32_t rounds = rounds_of(x, &g);
        *expanded += rounds > 0;
        *left += !rounds;
        if (rounds)
            RP_TRY(expand_group(x, &g, rounds));
    }
    return RP_OK;
}

enum rp_code rp_sim_expand(struct rp_sim_run *run, const struct rp_expand *how, size_t *expanded,
                           size_t *left, struct rp_err *err)
{
    struct expand_ctx x = {.run = run, .how = how, .err = err};

    *expanded = *left = 0;
    if (how->shape == RP_EXPAND_WHOLE)
        return RP_OK;
    enum rp_code code = find_members(&x);
    if (code == RP_OK)
        code = find_shares(&x);
    if (code == RP_OK)
        code = expand_all(&x, expanded, left);
    rp_vec_release(&x.members);
    rp_vec_release(&x.hops);
    return code;
}
