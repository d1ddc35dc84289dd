/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes mean times of the phases of a group of tensors: vote, agreement, queue, copies. An
 * agreement follows the last vote of all ranks, or the previous agreement if the last vote itself
 * waited for it (such votes begin directly after it). A lag is learned only from those occurrences
 * in which it determined the time.
 */
#include "base/each.h"
#include "base/order.h"
#include "facts/times/intervals.h"
#include "job/means.h"

#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ spans by step */

static uint64_t span_key(size_t step, uint8_t phase, int64_t tensor)
{
    return rp_hash_join(rp_hash_join(step, phase), (uint64_t)tensor);
}

enum rp_code rp_means_index_spans(struct rp_job_means *m, size_t rank, struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];

    for (size_t i = 0; i < r->spans.n; i++) {
        const struct rp_job_span *x = &r->spans.at[i];
        size_t step = rp_means_step(&m->work[rank], x->begin_ns);
        uint64_t key = span_key(step, x->phase, x->tensor);

        if (step != SIZE_MAX && rp_map_get(&m->work[rank].span_of, key) == RP_MAP_NONE)
            RP_TRY(rp_map_put(&m->work[rank].span_of, key, (uint32_t)i, err));
    }
    return RP_OK;
}

/* Returns the span of a phase of a group in a step, which is that of its first tensor, or NULL. */
static const struct rp_job_span *span_in(const struct rp_job_means *m, size_t rank, size_t group,
                                         size_t step, uint8_t phase)
{
    uint64_t key = span_key(step, phase, strtoll(m->groups[group], NULL, 10));
    uint32_t at = rp_map_get(&m->work[rank].span_of, key);

    return at == RP_MAP_NONE ? NULL : &m->job->ranks[rank].spans.at[at];
}

/* ------------------------------------------------------------------ the list of groups */

static enum rp_code add_group(struct rp_job_means *m, const char *name, struct rp_err *err)
{
    const char *at = name;
    char *end;

    for (;;) {
        int64_t tensor = strtoll(at, &end, 10);

        if (end == at)
            break;
        RP_TRY(rp_map_put(&m->group_of, (uint64_t)tensor, (uint32_t)m->ngroups, err));
        if (*end != '+')
            break;
        at = end + 1;
    }
    m->groups[m->ngroups++] = name;
    return RP_OK;
}

/* Lists groups in the order in which the first rank sends them. */
static enum rp_code groups_of_transfers(struct rp_job_means *m, size_t step, struct rp_err *err)
{
    const struct rp_means_order *order = &m->work[0].transfers;
    RP_SCOPED(rp_map_release) struct rp_map seen = {0};

    for (uint32_t i = order->first[step]; i < order->first[step + 1]; i++) {
        const char *name = m->job->ranks[0].transfers.at[order->at[i]].tensors;

        if (rp_map_get(&seen, rp_means_name_key(name)) != RP_MAP_NONE)
            continue;
        RP_TRY(rp_map_put(&seen, rp_means_name_key(name), 1, err));
        RP_TRY(add_group(m, name, err));
    }
    return RP_OK;
}

RP_ORDER(by_begin_and_tensor, struct rp_job_span *const, RP_COMPARE((*a)->begin_ns, (*b)->begin_ns),
         RP_COMPARE((*a)->tensor, (*b)->tensor))

/* Names a group "5+6" from adjacent spans. */
static enum rp_code name_group(struct rp_job_means *m, const struct rp_job_span *const *list,
                               size_t n, struct rp_err *err)
{
    size_t i, size = 0, room = sizeof "+-9223372036854775808" * n + 1;
    char *name = rp_arena_alloc(&m->arena, room, 1);

    RP_TRY(rp_err_need(name, err, "simulating a job"));
    for (i = 0; i < n; i++)
        size += (size_t)snprintf(name + size, room - size, i ? "+%lld" : "%lld",
                                 (long long)list[i]->tensor);
    return add_group(m, name, err);
}

/* Without transfers, tensors whose reduction begins at the same time were reduced together. */
static enum rp_code groups_of_spans(struct rp_job_means *m, size_t step, struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[0];
    const struct rp_job_span **list = malloc((r->spans.n + 1) * sizeof *list);
    enum rp_code code = rp_err_need(list, err, "simulating a job");
    size_t i, k, n = 0;

    for (i = 0; code == RP_OK && i < r->spans.n; i++)
        if (r->spans.at[i].phase == RP_JOB_REDUCE &&
            rp_means_step(&m->work[0], r->spans.at[i].begin_ns) == step)
            list[n++] = &r->spans.at[i];
    if (code == RP_OK)
        qsort((void *)list, n, sizeof *list, by_begin_and_tensor);
    for (i = 0; code == RP_OK && i < n; i = k) {
        for (k = i + 1; k < n && list[k]->begin_ns == list[i]->begin_ns;)
            k++;
        code = name_group(m, list + i, k - i, err);
    }
    free((void *)list);
    return code;
}

RP_ORDER(by_tensor, struct rp_job_key, RP_UP(tensor), RP_UP(part))

/* With servers, tensors with the same keys travel together. */
static enum rp_code groups_of_keys(struct rp_job_means *m, struct rp_err *err)
{
    size_t i, n = m->job->keys.n;
    RP_FREED struct rp_job_key *keys = malloc((n + 1) * sizeof *keys);
    RP_SCOPED(rp_map_release) struct rp_map seen = {0};

    RP_TRY(rp_err_need(keys, err, "simulating a job"));
    for (i = 0; i < n; i++)
        keys[i] = m->job->keys.at[i];
    rp_sort(keys, n, sizeof *keys, by_tensor);
    for (i = 0; i < n; i++) {
        uint32_t g = rp_map_get(&seen, (uint64_t)keys[i].key);

        if (keys[i].part)
            continue;
        if (g == RP_MAP_NONE) {
            g = (uint32_t)m->ngroups;
            m->groups[m->ngroups++] = "";
            RP_TRY(rp_map_put(&seen, (uint64_t)keys[i].key, g, err));
        }
        RP_TRY(rp_map_put(&m->group_of, (uint64_t)keys[i].tensor, g, err));
    }
    return RP_OK;
}

enum rp_code rp_means_list_groups(struct rp_job_means *m, size_t step, struct rp_err *err)
{
    const uint32_t *first = m->work[0].transfers.first;
    size_t r, most = first[step + 1] - first[step] + m->job->ranks[0].spans.n + m->job->keys.n;

    rp_map_release(&m->group_of);
    rp_map_init(&m->group_of);
    m->ngroups = 0;
    m->groups = RP_ARENA_NEW(&m->arena, const char *, most + 1);
    RP_TRY(rp_err_need(m->groups, err, "simulating a job"));
    if (m->job->has_servers)
        RP_TRY(groups_of_keys(m, err));
    else if (m->job->has_transfers)
        RP_TRY(groups_of_transfers(m, step, err));
    else
        RP_TRY(groups_of_spans(m, step, err));
    for (r = 0; r < m->nranks; r++) {
        m->ranks[r].groups = RP_ARENA_NEW(&m->arena, struct rp_mean_group, m->ngroups + 1);
        RP_TRY(rp_err_need(m->ranks[r].groups, err, "simulating a job"));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ votes and agreements */

struct vote { /* of a rank, for one group in one step */
    const struct rp_job_span *sync, *before;
    int64_t ready_ns; /* the end of the last gradient, or the begin of the step if none was found */
    bool waited;      /* it waited for the previous agreement */
};

struct sums { /* of a rank and group */
    struct rp_mean vote, agree,
        follow;          /* the lags in the cases in which each determined the time */
    struct rp_mean room; /* from the gradient to the agreement's end in the other cases */
    struct rp_mean lag, queue, in, out, enter, leave, reduce;
};

struct ring { /* of a rank and group in one step */
    int64_t begin_ns, end_ns;
};

struct groups_ctx {
    struct rp_job_means *m;
    struct sums *sums;    /* by rank, then group */
    struct sums *typical; /* by rank */
    struct vote *votes;   /* by rank, of one group and step */
    int64_t *ready_ns;    /* by rank, then group: of one step */
    struct ring *rings;   /* by rank, then group: of one step */
    int64_t *done_ns;     /* by rank: the end of the previous group */
    bool overlapping;     /* a vote began before the previous agreement ended */
};

/* Finds when the last gradient of each group is ready on a rank. */
static void find_ready(struct groups_ctx *l, size_t rank, size_t step)
{
    const struct rp_job_rank *r = &l->m->job->ranks[rank];
    int64_t *ready = l->ready_ns + rank * l->m->ngroups;

    for (size_t i = 0; i < l->m->ngroups; i++)
        ready[i] = l->m->work[rank].common.at[step]->begin_ns;
    for (size_t i = 0; i < r->edges.n; i++) {
        const struct rp_job_edge *e = &r->edges.at[i];
        uint32_t g =
            e->to_tensor < 0 ? RP_MAP_NONE : rp_map_get(&l->m->group_of, (uint64_t)e->to_tensor);
        const struct rp_job_op *op =
            g == RP_MAP_NONE ? NULL : rp_means_op(l->m, rank, e->from, step);

        if (op && rp_ns_sum(op->begin_ns, op->dur_ns) > ready[g])
            ready[g] = rp_ns_sum(op->begin_ns, op->dur_ns);
    }
}

/* Returns the last rank to vote, or NULL. */
static const struct vote *last_voter(const struct groups_ctx *l)
{
    const struct vote *last = NULL;

    for (size_t r = 0; r < l->m->nranks; r++)
        if (l->votes[r].sync && (!last || l->votes[r].sync->begin_ns > last->sync->begin_ns))
            last = &l->votes[r];
    return last;
}

static void learn_agreement(struct groups_ctx *l, size_t g)
{
    const struct vote *last = last_voter(l);

    for (size_t r = 0; r < l->m->nranks; r++) {
        const struct vote *v = &l->votes[r];
        struct sums *s = &l->sums[r * l->m->ngroups + g], *all = &l->typical[r];

        if (!v->sync)
            continue;
        if (v->waited) {
            rp_mean_count(&s->room, (double)rp_ns_between(v->ready_ns, v->sync->end_ns));
        } else {
            rp_mean_count(&s->vote, (double)rp_ns_between(v->ready_ns, v->sync->begin_ns));
            rp_mean_count(&all->vote, (double)rp_ns_between(v->ready_ns, v->sync->begin_ns));
        }
        if (last->waited && v->before) {
            double x = (double)rp_ns_between(v->before->end_ns, v->sync->end_ns);

            rp_mean_count(&s->follow, x);
            rp_mean_count(&all->follow, x);
        } else {
            double x = (double)rp_ns_between(last->sync->begin_ns, v->sync->end_ns);

            rp_mean_count(&s->agree, x);
            rp_mean_count(&all->agree, x);
        }
    }
}

/* ------------------------------------------------------------------ phases */

/* Finds the first begin and last end of the transfers of each group of a rank. */
static void find_rings(struct groups_ctx *l, size_t rank, size_t step)
{
    const struct rp_job_means *m = l->m;
    const struct rp_means_order *order = &m->work[rank].transfers;
    struct ring *rings = l->rings + rank * m->ngroups;

    for (size_t g = 0; g < m->ngroups; g++)
        rings[g] = (struct ring){INT64_MAX, INT64_MIN};
    for (uint32_t i = order->first[step]; i < order->first[step + 1]; i++) {
        const struct rp_job_transfer *x = &m->job->ranks[rank].transfers.at[order->at[i]];
        uint32_t of = rp_map_get(&m->group_of, (uint64_t)strtoll(x->tensors, NULL, 10));
        int64_t end = rp_ns_sum(x->begin_ns, x->dur_ns);

        if (of == RP_MAP_NONE)
            continue;
        if (x->begin_ns < rings[of].begin_ns)
            rings[of].begin_ns = x->begin_ns;
        if (end > rings[of].end_ns)
            rings[of].end_ns = end;
    }
}

static double span_ns(const struct rp_job_span *s)
{
    return s ? (double)rp_ns_between(s->begin_ns, s->end_ns) : 0;
}

static void learn_phases(struct groups_ctx *l, size_t rank, size_t g, size_t step,
                         int64_t arrival_ns)
{
    const struct rp_job_means *m = l->m;
    const struct rp_job_span *queue = span_in(m, rank, g, step, RP_JOB_QUEUE);
    const struct rp_job_span *in = span_in(m, rank, g, step, RP_JOB_COPY_IN);
    const struct rp_job_span *out = span_in(m, rank, g, step, RP_JOB_COPY_OUT);
    const struct rp_job_span *reduce = span_in(m, rank, g, step, RP_JOB_REDUCE);
    const struct rp_job_span *sync = l->votes[rank].sync;
    struct sums *s = &l->sums[rank * m->ngroups + g];
    struct ring ring = l->rings[rank * m->ngroups + g];
    int64_t from = l->done_ns[rank], end = INT64_MIN;

    from = sync && sync->end_ns > from ? sync->end_ns : from;
    if (queue && from != INT64_MIN)
        rp_mean_count(&s->lag, (double)rp_ns_between(from, queue->begin_ns));
    rp_mean_count(&s->queue, span_ns(queue));
    rp_mean_count(&s->in, span_ns(in));
    rp_mean_count(&s->out, span_ns(out));
    from = in ? in->end_ns : queue ? queue->end_ns : from;
    if (ring.begin_ns == INT64_MAX && reduce) {
        ring = (struct ring){reduce->begin_ns, reduce->end_ns};
        rp_mean_count(&s->reduce, (double)rp_ns_between(arrival_ns, reduce->end_ns));
    }
    if (ring.begin_ns != INT64_MAX && from != INT64_MIN)
        rp_mean_count(&s->enter, (double)rp_ns_between(from, ring.begin_ns));
    end = ring.begin_ns != INT64_MAX ? ring.end_ns : from;
    if (out && end != INT64_MIN)
        rp_mean_count(&s->leave, (double)rp_ns_between(end, out->begin_ns));
    l->done_ns[rank] = out ? out->end_ns : end;
}

static void learn_step(struct groups_ctx *l, size_t step)
{
    struct rp_job_means *m = l->m;

    for (size_t r = 0; r < m->nranks; r++) {
        find_ready(l, r, step);
        find_rings(l, r, step);
        l->done_ns[r] = INT64_MIN;
    }
    for (size_t g = 0; g < m->ngroups; g++) {
        /* When the last rank arrived at the reduction of a group. */
        int64_t last = INT64_MIN;
        for (size_t r = 0; r < m->nranks; r++) {
            const struct rp_job_span *x = span_in(m, r, g, step, RP_JOB_REDUCE);
            last = x && x->begin_ns > last ? x->begin_ns : last;
        }
        int64_t arrival = last;

        /* What the spans of each rank say about the group. */
        for (size_t r = 0; r < m->nranks; r++) {
            struct vote *v = &l->votes[r];
            v->sync = span_in(m, r, g, step, RP_JOB_SYNC);
            v->before = g ? span_in(m, r, g - 1, step, RP_JOB_SYNC) : NULL;
            v->ready_ns = l->ready_ns[r * m->ngroups + g];
            v->waited = false;
            if (!v->sync || !v->before)
                continue;
            int64_t behind = rp_ns_between(v->before->end_ns, v->sync->begin_ns);
            l->overlapping |= behind < -RP_JOB_ROUNDING_NS;
            v->waited =
                behind >= 0 && behind <= RP_JOB_DIRECTLY_NS && v->before->end_ns >= v->ready_ns;
        }
        learn_agreement(l, g);
        for (size_t r = 0; r < m->nranks; r++)
            learn_phases(l, r, g, step, arrival);
    }
}

/* ------------------------------------------------------------------ what was learned */

static double known_or(const struct rp_mean *own, const struct rp_mean *typical)
{
    return rp_mean_of(own->n > 0 ? own : typical);
}

/* A vote that always waited for the previous agreement may have been early: it is assumed as late
   as usual, but not so late that the agreement would have been later. */
static double vote_lag(const struct sums *s, const struct sums *all, double agree_ns)
{
    double usual = rp_mean_of(&all->vote), room;

    if (s->vote.n > 0 || s->room.n <= 0)
        return known_or(&s->vote, &all->vote);
    room = rp_mean_of(&s->room) - agree_ns;
    room = room > 0 ? room : 0;
    return usual < room ? usual : room;
}

static void fill_groups(const struct groups_ctx *l)
{
    struct rp_job_means *m = l->m;

    for (size_t r = 0; r < m->nranks; r++)
        for (size_t g = 0; g < m->ngroups; g++) {
            const struct sums *s = &l->sums[r * m->ngroups + g], *all = &l->typical[r];
            struct rp_mean_group *to = &m->ranks[r].groups[g];

            to->agree_lag_ns = known_or(&s->agree, &all->agree);
            to->vote_lag_ns = vote_lag(s, all, to->agree_lag_ns);
            to->follow_lag_ns = l->overlapping ? -1 : known_or(&s->follow, &all->follow);
            to->queue_lag_ns = rp_mean_of(&s->lag);
            to->queue_ns = rp_mean_of(&s->queue);
            to->in_ns = rp_mean_of(&s->in);
            to->out_ns = rp_mean_of(&s->out);
            to->enter_lag_ns = rp_mean_of(&s->enter);
            to->leave_lag_ns = rp_mean_of(&s->leave);
            to->reduce_ns = rp_mean_of(&s->reduce);
        }
}

enum rp_code rp_means_of_groups(struct rp_job_means *m, size_t first, size_t end,
                                struct rp_err *err)
{
    struct groups_ctx l = {.m = m};
    enum rp_code code = RP_OK;
    size_t s, n = m->nranks * m->ngroups + 1;

    l.sums = calloc(n, sizeof *l.sums);
    l.typical = calloc(m->nranks + 1, sizeof *l.typical);
    l.votes = calloc(m->nranks + 1, sizeof *l.votes);
    l.ready_ns = calloc(n, sizeof *l.ready_ns);
    l.rings = calloc(n, sizeof *l.rings);
    l.done_ns = calloc(m->nranks + 1, sizeof *l.done_ns);
    if (!l.rings || !l.sums || !l.typical || !l.votes || !l.ready_ns || !l.done_ns)
        code = rp_err_nomem(err, "simulating a job");
    for (s = first; code == RP_OK && s < end; s++)
        learn_step(&l, s);
    if (code == RP_OK)
        fill_groups(&l);
    RP_EACH(free, l.sums, l.typical, l.votes, l.ready_ns, l.rings, l.done_ns);
    return code;
}
