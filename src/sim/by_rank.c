/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes sums over the nodes of a rank, divided by the steps. Waiting in recorded collectives
 * lies between a rank's arrival and the moment from which its transfer runs; the model of a job
 * names its own pairs of nodes, and what the rank does between them is subtracted.
 *
 * Slack is one pass against the edges: a task may end as late as its successors may start, less the
 * lag. Tasks of a serial device depend on the previous one there. Parallel steps each have their
 * own end; others share the last end of all.
 */
#include "sim/simulate.h"

#include "base/filled.h"
#include "base/order.h"
#include "sim/engine/overlay.h"

#include <stdlib.h>
#include <string.h>

struct rank_sums {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    struct rp_sim_rank *ranks;
    size_t nranks;
    RP_VEC(uint32_t) hops;
};

/* ------------------------------------------------------------------ work and waiting */

/* How long at least one of the listed nodes runs between two moments. */
static int64_t busy_ns(const struct rank_sums *s, uint32_t *list, size_t n, int64_t from_ns,
                       int64_t to_ns)
{
    int64_t sum = 0, until = from_ns;

    qsort_r(list, n, sizeof *list, rp_sim_by_start, s->r->start_ns.at);
    for (size_t i = 0; i < n; i++) {
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
    uint32_t sa = rp_overlay_source(o, a), sb = rp_overlay_source(o, b);
    uint32_t ra = rp_overlay_task(o, a)->rank, rb = rp_overlay_task(o, b)->rank;

    if (sa != sb)
        return sa < sb ? -1 : 1;
    if (ra != rb)
        return ra < rb ? -1 : 1;
    return (a > b) - (a < b);
}

/* Lists hops of expanded collectives (sim/model/expand.h) by the transfer that they replace, and by
   rank. */
static enum rp_code list_hops(struct rank_sums *s, struct rp_err *err)
{
    uint32_t i, n = (uint32_t)rp_overlay_ntasks(&s->run->overlay);

    for (i = (uint32_t)rp_sim_nnodes(s->run); i < n; i++)
        if (rp_overlay_task(&s->run->overlay, i)->kind == RP_SG_COMM)
            RP_TRY(rp_vec_push(&s->hops, i, err));
    if (s->hops.n)
        qsort_r(s->hops.at, s->hops.n, sizeof *s->hops.at, by_source, (void *)(uintptr_t)s->run);
    return RP_OK;
}

/* The time that a rank spends sending instead of a transfer. */
static int64_t hops_ns(const struct rank_sums *s, uint32_t transfer, int64_t from_ns, int64_t to_ns)
{
    size_t low, end;

    RP_LOWER_BOUND(low, s->hops.n, rp_overlay_source(&s->run->overlay, s->hops.at[low]) < transfer);
    for (end = low;
         end < s->hops.n && rp_overlay_source(&s->run->overlay, s->hops.at[end]) == transfer;)
        end++;
    return end > low ? busy_ns(s, s->hops.at + low, end - low, from_ns, to_ns) : 0;
}

static void add_node(const struct rank_sums *s, uint32_t i, struct rp_sim_rank *to)
{
    const struct rp_sg_node *node = rp_sim_node(s->run, i);
    int64_t dur = s->r->end_ns.at[i] - s->r->start_ns.at[i], waited;

    switch (node->kind) {
    case RP_SG_HOST:
    case RP_SG_RUNTIME: /* what the host does before the steps is long, and no part of one */
        if (s->run->parts[0]->parallel_steps || rp_sim_note_of(s->run, i)->step != RP_NO_STEP)
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
        if (i + 1 >= rp_sim_nnodes(s->run) || node[1].kind != RP_SG_COMM ||
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

static enum rp_code add_waits(const struct rank_sums *s, struct rp_err *err)
{
    const struct rp_sim_part *part = s->run->parts[0];
    RP_VEC(uint32_t) list = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < part->waits.n; i++) {
        const struct rp_sim_wait *w = &part->waits.at[i];
        uint32_t rank = rp_sim_node(s->run, w->from)->rank;
        int64_t from = s->r->end_ns.at[w->from], to = s->r->start_ns.at[w->to];

        list.n = 0;
        for (uint32_t k = w->first; code == RP_OK && k < w->end; k++)
            code = rp_vec_push(&list, k, err);
        if (code != RP_OK || rank >= s->nranks || to <= from)
            continue;
        to -= list.n ? busy_ns(s, list.at, list.n, from, to) : 0;
        s->ranks[rank].waiting_ns = rp_ns_sum(s->ranks[rank].waiting_ns, to - from);
    }
    rp_vec_release(&list);
    return code;
}

/* ------------------------------------------------------------------ slack of tasks */

struct slack_ctx {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    int64_t *slack;
    RP_VEC(uint32_t) behind;  /* by task: the next one on its serial device, or UINT32_MAX */
    RP_VEC(uint32_t) missing; /* by task: predecessors that have no place yet */
    RP_VEC(uint32_t) order;   /* tasks, each after all those for which it waits */
    struct rp_err *err;
};

/* Adds dependencies on devices. Tasks that took no time may have run in any order, so only the
   others delay their successors. */
static enum rp_code add_device_order(struct slack_ctx *s)
{
    const struct rp_overlay *o = &s->run->overlay;
    uint32_t v, n = (uint32_t)rp_overlay_ntasks(o);
    RP_VEC_LOCAL(uint32_t, list);

    for (v = 0; v < n; v++) {
        uint32_t device = rp_overlay_task(o, v)->device;

        if (device != RP_NO_DEVICE && o->graph->devices.at[device].rule == RP_DEVICE_SERIAL &&
            s->r->end_ns.at[v] > s->r->start_ns.at[v])
            RP_TRY(rp_vec_push(&list, v, s->err));
    }
    RP_TRY(rp_device_order(o, s->r->start_ns.at, list.at, list.n, s->err));
    RP_TRY(rp_vec_nones(&s->behind, n, s->err));
    for (size_t i = 1; i < list.n; i++)
        if (rp_overlay_task(o, list.at[i - 1])->device == rp_overlay_task(o, list.at[i])->device)
            s->behind.at[list.at[i - 1]] = list.at[i];
    return RP_OK;
}

/* successors: walks over all tasks that follow a task directly. */
struct successors {
    uint32_t edge, end, added; /* first edges of the graph, then new ones, then the device's */
    bool on_device;
};

static struct successors successors_of(const struct slack_ctx *s, uint32_t task)
{
    const struct rp_overlay *o = &s->run->overlay;
    bool old = task < o->graph->tasks.n;

    return (struct successors){old ? o->graph->first.at[task] : 0,
                               old ? o->graph->first.at[task + 1] : 0, rp_overlay_newest(o, task),
                               s->behind.at[task] != UINT32_MAX};
}

static bool next_successor(const struct slack_ctx *s, uint32_t task, struct successors *at,
                           struct rp_task_edge *out)
{
    const struct rp_overlay *o = &s->run->overlay;

    while (at->edge < at->end) {
        uint32_t i = at->edge++;

        if (o->lag_ns.at[i] == RP_LAG_CUT)
            continue;
        *out = (struct rp_task_edge){o->lag_ns.at[i], o->graph->edges.at[i].to,
                                     o->graph->edges.at[i].flags};
        return true;
    }
    while (at->added != UINT32_MAX) {
        *out = o->edges.at[at->added].edge;
        at->added = o->edges.at[at->added].next;
        if (out->lag_ns != RP_LAG_CUT)
            return true;
    }
    if (!at->on_device)
        return false;
    at->on_device = false;
    *out = (struct rp_task_edge){.to = s->behind.at[task]};
    return true;
}

static void count_missing(struct slack_ctx *s, size_t n)
{
    struct rp_task_edge e;

    memset(s->missing.at, 0, n * sizeof *s->missing.at);
    for (uint32_t v = 0; v < n; v++)
        for (struct successors at = successors_of(s, v); next_successor(s, v, &at, &e);)
            s->missing.at[e.to]++;
}

/* Tasks in order grow from the front; those that may come next are a stack that grows from the
   end. */
static enum rp_code put_in_order(struct slack_ctx *s)
{
    size_t n = rp_overlay_ntasks(&s->run->overlay), top = n;
    struct rp_task_edge e;

    RP_TRY(rp_vec_reserve(&s->missing, n + 1, s->err));
    RP_TRY(rp_vec_reserve(&s->order, n + 1, s->err));
    count_missing(s, n);
    for (uint32_t v = (uint32_t)n; v-- > 0;)
        if (!s->missing.at[v])
            s->order.at[--top] = v;
    while (top < n) {
        uint32_t v = s->order.at[top++];
        s->order.at[s->order.n++] = v;
        for (struct successors at = successors_of(s, v); next_successor(s, v, &at, &e);)
            if (!--s->missing.at[e.to])
                s->order.at[--top] = e.to;
    }
    rp_vec_release(&s->missing);
    return RP_OK;
}

/* Sets the slack of tasks without successors: until the end of their step, or of all steps. */
static enum rp_code set_last_slack(struct slack_ctx *s)
{
    const struct rp_sim_part *part = s->run->parts[0];
    uint32_t v, n = (uint32_t)rp_overlay_ntasks(&s->run->overlay);
    size_t steps = part->parallel_steps ? part->nsteps : 0;
    int64_t *last = calloc(steps + 1, sizeof *last);

    RP_TRY(rp_err_need(last, s->err, "simulating"));
    for (v = 0; v < n; v++) {
        size_t step = rp_overlay_task(&s->run->overlay, v)->step;

        step = step < steps ? step : steps;
        last[step] = s->r->end_ns.at[v] > last[step] ? s->r->end_ns.at[v] : last[step];
    }
    for (v = 0; v < n; v++) {
        size_t step = rp_overlay_task(&s->run->overlay, v)->step;

        s->slack[v] = last[step < steps ? step : steps] - s->r->end_ns.at[v];
    }
    free(last);
    return RP_OK;
}

enum rp_code rp_sim_slack(const struct rp_sim_run *run, const struct rp_sim_result *result,
                          int64_t *slack_ns, struct rp_err *err)
{
    struct slack_ctx s = {.run = run, .r = result, .slack = slack_ns, .err = err};
    enum rp_code code = add_device_order(&s);

    if (code == RP_OK)
        code = put_in_order(&s);
    if (code == RP_OK)
        code = set_last_slack(&s);
    if (code == RP_OK) {
        /* Find how late a task may be, given the slack of its successors. */
        struct rp_task_edge e;

        for (size_t i = s.order.n; i-- > 0;) {
            uint32_t v = s.order.at[i];

            for (struct successors at = successors_of(&s, v); next_successor(&s, v, &at, &e);) {
                int64_t from =
                    e.flags & RP_EDGE_FROM_START ? s.r->start_ns.at[v] : s.r->end_ns.at[v];
                int64_t most = rp_ns_sum(s.slack[e.to], s.r->start_ns.at[e.to] - from - e.lag_ns);

                s.slack[v] = most < s.slack[v] ? most : s.slack[v];
            }
        }
    }
    rp_vec_release(&s.behind);
    rp_vec_release(&s.missing);
    rp_vec_release(&s.order);
    return code;
}

/* ------------------------------------------------------------------ slack of ranks */

/* Whether a node's slack counts: if ranks share collectives, that of their arrivals; else that of
   all work. */
static bool has_slack(const struct rp_sg_node *node, bool by_arrival)
{
    if (by_arrival)
        return node->kind == RP_SG_ARRIVE;
    return node->dur_ns > 0 &&
           (node->kind == RP_SG_COMPUTE || node->kind == RP_SG_HOST || node->kind == RP_SG_RUNTIME);
}

/* The mean over the steps of the least slack in each. */
static enum rp_code add_slack(const struct rank_sums *s, struct rp_err *err)
{
    size_t i, k, nsteps = s->run->parts[0]->nsteps;
    int64_t *slack = malloc((rp_overlay_ntasks(&s->run->overlay) + 1) * sizeof *slack);
    int64_t *least = malloc((s->nranks * nsteps + 1) * sizeof *least);
    enum rp_code code =
        slack && least ? rp_sim_slack(s->run, s->r, slack, err) : rp_err_nomem(err, "simulating");

    if (code == RP_OK) {
        /* least: by rank and step. */
        bool by_arrival = false;

        for (size_t m = 0; m < s->nranks * nsteps; m++)
            least[m] = INT64_MAX;
        for (size_t m = 0; m < rp_sim_nnodes(s->run) && !by_arrival; m++)
            by_arrival = rp_sim_node(s->run, m)->kind == RP_SG_ARRIVE;
        for (size_t m = 0; m < rp_sim_nnodes(s->run); m++) {
            const struct rp_sg_node *node = rp_sim_node(s->run, m);
            size_t step = rp_sim_note_of(s->run, m)->step;

            if (node->rank >= s->nranks || step >= nsteps || !has_slack(node, by_arrival))
                continue;
            int64_t *x = &least[node->rank * nsteps + step];
            *x = slack[m] < *x ? slack[m] : *x;
        }
    }
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

enum rp_code rp_sim_by_rank(const struct rp_sim_run *run, const struct rp_sim_result *result,
                            struct rp_arena *arena, struct rp_sim_answer *out, struct rp_err *err)
{
    struct rank_sums s = {.run = run, .r = result};
    int64_t steps = run->parts[0]->nsteps;

    s.nranks = run->nranks * run->parts[0]->nranks;
    if (s.nranks < 2)
        return RP_OK;
    s.ranks = out->by_rank = RP_ARENA_NEW(arena, struct rp_sim_rank, s.nranks);
    RP_TRY(rp_err_need(s.ranks, err, "simulating"));
    out->nby_rank = s.nranks;
    enum rp_code code = list_hops(&s, err);
    if (code == RP_OK) {
        /* Hops of one transfer may run at the same time: a rank sends in both directions of a ring.
         */
        const struct rank_sums *sums = &s;
        const struct rp_overlay *o = &sums->run->overlay;

        for (size_t i = 0, end = 0; i < sums->hops.n; i = end) {
            uint32_t source = rp_overlay_source(o, sums->hops.at[i]);
            uint32_t rank = rp_overlay_task(o, sums->hops.at[i])->rank;
            int64_t *sum = &sums->ranks[rank].comm_ns;

            while (end < sums->hops.n && rp_overlay_source(o, sums->hops.at[end]) == source &&
                   rp_overlay_task(o, sums->hops.at[end])->rank == rank)
                end++;
            *sum = rp_ns_sum(*sum, busy_ns(sums, sums->hops.at + i, end - i, INT64_MIN, INT64_MAX));
        }
    }
    for (uint32_t i = 0; code == RP_OK && i < rp_sim_nnodes(run); i++)
        if (rp_sim_node(run, i)->rank < s.nranks)
            add_node(&s, i, &s.ranks[rp_sim_node(run, i)->rank]);
    if (code == RP_OK)
        code = add_waits(&s, err);
    if (code == RP_OK)
        code = add_slack(&s, err);
    rp_vec_release(&s.hops);
    RP_TRY(code);
    for (uint32_t i = 0; i < s.nranks; i++) {
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
