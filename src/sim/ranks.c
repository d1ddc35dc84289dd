/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over the nodes of a rank, divided by the steps. Waiting of recorded collectives lies between
 * a rank's arrival and the moment from which its transfer runs; the model of a job names its own
 * pairs of nodes, and what the rank does between them is taken off.
 */
#include "sim/ranks.h"

#include "sim/slack.h"

#include <stdlib.h>

struct summing {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    struct rp_sim_rank *ranks;
    size_t nranks;
    RP_VEC(uint32_t) hops;
};

/* ------------------------------------------------------------------ work and waiting */

static int by_start(const void *pa, const void *pb, void *starts)
{
    const int64_t *start = starts;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (start[a] != start[b])
        return start[a] < start[b] ? -1 : 1;
    return (a > b) - (a < b);
}

/* How long at least one of the listed nodes runs between two moments. */
static int64_t busy_ns(const struct summing *s, uint32_t *list, size_t n, int64_t from_ns,
                       int64_t to_ns)
{
    int64_t sum = 0, until = from_ns;
    size_t i;

    qsort_r(list, n, sizeof *list, by_start, s->r->start_ns.at);
    for (i = 0; i < n; i++) {
        int64_t begin = s->r->start_ns.at[list[i]], end = s->r->end_ns.at[list[i]];

        begin = begin > until ? begin : until;
        end = end < to_ns ? end : to_ns;
        if (end > begin) {
            sum += end - begin;
            until = end;
        }
    }
    return sum;
}

static int by_source(const void *pa, const void *pb, void *run)
{
    const struct rp_overlay *o = &((const struct rp_sim_run *)run)->overlay;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    uint32_t sa = rp_overlay_task(o, a)->source, sb = rp_overlay_task(o, b)->source;

    if (sa != sb)
        return sa < sb ? -1 : 1;
    return (a > b) - (a < b);
}

/* Hops of expanded collectives (sim/model/expand.h), by the transfer that they stand for. */
static enum rp_code list_hops(struct summing *s, struct rp_err *err)
{
    uint32_t i, n = (uint32_t)rp_overlay_ntasks(&s->run->overlay);

    for (i = (uint32_t)s->run->graph->nodes.n; i < n; i++)
        if (rp_overlay_task(&s->run->overlay, i)->kind == RP_SG_COMM)
            RP_TRY(rp_vec_push(&s->hops, i, err));
    if (s->hops.n)
        qsort_r(s->hops.at, s->hops.n, sizeof *s->hops.at, by_source, (void *)(uintptr_t)s->run);
    return RP_OK;
}

/* How long a rank sends in place of a transfer. */
static int64_t hops_ns(const struct summing *s, uint32_t transfer, int64_t from_ns, int64_t to_ns)
{
    size_t low = 0, high = s->hops.n, end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rp_overlay_task(&s->run->overlay, s->hops.at[middle])->source < transfer)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low;
         end < s->hops.n && rp_overlay_task(&s->run->overlay, s->hops.at[end])->source == transfer;)
        end++;
    return end > low ? busy_ns(s, s->hops.at + low, end - low, from_ns, to_ns) : 0;
}

static void add_node(const struct summing *s, uint32_t i, struct rp_sim_rank *to)
{
    const struct rp_sg_node *node = &s->run->graph->nodes.at[i];
    int64_t dur = s->r->end_ns.at[i] - s->r->start_ns.at[i], waited;

    switch (node->kind) {
    case RP_SG_HOST:
    case RP_SG_RUNTIME:
        to->host_ns = rp_ns_sum(to->host_ns, dur);
        break;
    case RP_SG_COMPUTE:
        to->compute_ns = rp_ns_sum(to->compute_ns, dur);
        break;
    case RP_SG_MEMORY:
        to->memory_ns = rp_ns_sum(to->memory_ns, dur);
        break;
    case RP_SG_COMM:
        to->comm_ns = rp_ns_sum(to->comm_ns, dur);
        break;
    case RP_SG_ARRIVE:
        if (i + 1 >= s->run->graph->nodes.n || node[1].kind != RP_SG_COMM ||
            s->run->parts[0]->waits.n)
            break;
        waited = s->r->start_ns.at[i + 1] - s->r->end_ns.at[i];
        waited -= hops_ns(s, i + 1, s->r->end_ns.at[i], s->r->start_ns.at[i + 1]);
        to->waiting_ns = rp_ns_sum(to->waiting_ns, waited);
        break;
    default:
        break;
    }
}

static enum rp_code add_waits(const struct summing *s, struct rp_err *err)
{
    const struct rp_sim_part *part = s->run->parts[0];
    RP_VEC(uint32_t) list = {0};
    enum rp_code code = RP_OK;
    size_t i;
    uint32_t k;

    for (i = 0; code == RP_OK && i < part->waits.n; i++) {
        const struct rp_sim_wait *w = &part->waits.at[i];
        uint32_t rank = s->run->graph->nodes.at[w->from].rank;
        int64_t from = s->r->end_ns.at[w->from], to = s->r->start_ns.at[w->to];

        list.n = 0;
        for (k = w->first; code == RP_OK && k < w->end; k++)
            code = rp_vec_push(&list, k, err);
        if (code != RP_OK || rank >= s->nranks || to <= from)
            continue;
        to -= list.n ? busy_ns(s, list.at, list.n, from, to) : 0;
        s->ranks[rank].waiting_ns = rp_ns_sum(s->ranks[rank].waiting_ns, to - from);
    }
    rp_vec_release(&list);
    return code;
}

/* ------------------------------------------------------------------ slack */

/* Where ranks meet, their arrivals count; else all their work. */
static bool counts(const struct rp_sg_node *node, bool meet)
{
    if (meet)
        return node->kind == RP_SG_ARRIVE;
    return node->dur_ns > 0 &&
           (node->kind == RP_SG_COMPUTE || node->kind == RP_SG_HOST || node->kind == RP_SG_RUNTIME);
}

/* least: by rank and step. */
static void find_least(const struct summing *s, const int64_t *slack, int64_t *least, size_t nsteps)
{
    const struct rp_stepgraph *g = s->run->graph;
    bool meet = false;
    size_t i;

    for (i = 0; i < s->nranks * nsteps; i++)
        least[i] = INT64_MAX;
    for (i = 0; i < g->nodes.n && !meet; i++)
        meet = g->nodes.at[i].kind == RP_SG_ARRIVE;
    for (i = 0; i < g->nodes.n; i++) {
        const struct rp_sg_node *node = &g->nodes.at[i];
        size_t step = s->run->notes.at[i].step;
        int64_t *x;

        if (node->rank >= s->nranks || step >= nsteps || !counts(node, meet))
            continue;
        x = &least[node->rank * nsteps + step];
        *x = slack[i] < *x ? slack[i] : *x;
    }
}

/* The mean over the steps of the least in each. */
static enum rp_code add_slack(const struct summing *s, struct rp_err *err)
{
    size_t i, k, nsteps = s->run->parts[0]->nsteps;
    int64_t *slack = malloc((rp_overlay_ntasks(&s->run->overlay) + 1) * sizeof *slack);
    int64_t *least = malloc((s->nranks * nsteps + 1) * sizeof *least);
    enum rp_code code =
        slack && least ? rp_sim_slack(s->run, s->r, slack, err) : rp_err_nomem(err, "simulating");

    if (code == RP_OK)
        find_least(s, slack, least, nsteps);
    for (i = 0; code == RP_OK && i < s->nranks; i++) {
        double sum = 0, n = 0;

        for (k = 0; k < nsteps; k++)
            if (least[i * nsteps + k] != INT64_MAX) {
                sum += (double)least[i * nsteps + k];
                n++;
            }
        s->ranks[i].slack_ns = n > 0 ? (int64_t)(sum / n) : RP_ABSENT_I64;
    }
    free(slack);
    free(least);
    return code;
}

/* ------------------------------------------------------------------ all of it */

enum rp_code rp_sim_ranks(const struct rp_sim_run *run, const struct rp_sim_result *result,
                          struct rp_arena *arena, struct rp_sim_answer *out, struct rp_err *err)
{
    struct summing s = {.run = run, .r = result};
    int64_t steps = run->parts[0]->nsteps;
    enum rp_code code;
    uint32_t i;

    s.nranks = run->nranks * run->parts[0]->nranks;
    if (s.nranks < 2)
        return RP_OK;
    s.ranks = out->by_rank = RP_ARENA_NEW(arena, struct rp_sim_rank, s.nranks);
    if (!s.ranks)
        return rp_err_nomem(err, "simulating");
    out->nby_rank = s.nranks;
    code = list_hops(&s, err);
    for (i = 0; code == RP_OK && i < s.hops.n; i++) {
        struct rp_sim_rank *to = &s.ranks[rp_overlay_task(&run->overlay, s.hops.at[i])->rank];

        to->comm_ns = rp_ns_sum(to->comm_ns, result->end_ns.at[s.hops.at[i]] -
                                                 result->start_ns.at[s.hops.at[i]]);
    }
    for (i = 0; code == RP_OK && i < run->graph->nodes.n; i++)
        if (run->graph->nodes.at[i].rank < s.nranks)
            add_node(&s, i, &s.ranks[run->graph->nodes.at[i].rank]);
    if (code == RP_OK)
        code = add_waits(&s, err);
    if (code == RP_OK)
        code = add_slack(&s, err);
    rp_vec_release(&s.hops);
    RP_TRY(code);
    for (i = 0; i < s.nranks; i++) {
        struct rp_sim_rank *x = &s.ranks[i];

        *x = (struct rp_sim_rank){i,
                                  x->host_ns / steps,
                                  x->compute_ns / steps,
                                  x->memory_ns / steps,
                                  x->comm_ns / steps,
                                  x->waiting_ns / steps,
                                  x->slack_ns};
    }
    return RP_OK;
}
