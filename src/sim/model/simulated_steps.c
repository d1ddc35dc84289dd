/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the timers finds for each step of each rank when its mark begins and when its
 * device work ends; facts/times/step_times.h defines the times that follow.
 */
#include "sim/model/simulated_steps.h"

#include "facts/times/step_times.h"
#include "sim/model/steps.h"

#include <math.h>
#include <string.h>

struct steps_pass {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    struct rp_digest *digests; /* by rank: its steps */
    int64_t *mark_end_ns;      /* by rank; INT64_MIN if nothing stands for it */
    int64_t *first_ns;         /* by step of the first rank: begin of its first device work */
    struct rp_sim_steps *out;
};

/* ------------------------------------------------------------------ one pass over the timers */

static enum rp_code add_timer(struct rp_sim_run *run, uint32_t i, const struct rp_sim_note *note,
                              struct rp_err *err)
{
    struct rp_sim_timer t = {.first = i,
                             .end = i + 1,
                             .rank = run->nranks > 1 ? rp_sim_node(run, i)->rank : 0,
                             .step = note->step,
                             .flags = note->flags & (RP_SIM_TIMES | RP_SIM_BEGINS | RP_SIM_ENDS),
                             .on_device = rp_sim_on_device(run, i)};
    struct rp_sim_timer *last = run->timers.n ? &run->timers.at[run->timers.n - 1] : NULL;

    if (t.rank >= run->nranks || t.step >= run->parts[t.rank]->nsteps || (!t.on_device && !t.flags))
        return RP_OK;
    if (!last || last->end != i || last->rank != t.rank || last->step != t.step ||
        last->flags != t.flags || last->on_device != t.on_device)
        return rp_vec_push(&run->timers, t, err);
    last->end++;
    return RP_OK;
}

enum rp_code rp_sim_timers_find(struct rp_sim_run *run, struct rp_err *err)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        const struct rp_sim_note *note = rp_sim_note_of(run, i);

        RP_TRY(add_timer(run, i, note, err));
        if (rp_sim_node(run, i)->kind == RP_SG_COMM || note->flags & RP_SIM_REMOTE)
            RP_TRY(rp_vec_push(&run->comm, i, err));
        else if (rp_sim_node(run, i)->kind == RP_SG_COMPUTE)
            RP_TRY(rp_vec_push(&run->kernels, i, err));
    }
    return RP_OK;
}

static enum rp_code alloc_steps(struct steps_pass *p, struct rp_err *err)
{
    struct rp_arena *arena = &p->out->arena;

    p->out->ranks = RP_ARENA_NEW(arena, struct rp_sim_rank_steps, p->out->nranks + 1);
    p->digests = RP_ARENA_NEW(arena, struct rp_digest, p->out->nranks + 1);
    p->mark_end_ns = RP_ARENA_NEW(arena, int64_t, p->out->nranks + 1);
    p->first_ns = RP_ARENA_NEW(arena, int64_t, p->run->parts[0]->nsteps);
    RP_TRY(rp_arena_check(arena, "simulating", err));
    for (size_t i = 0; i < p->run->parts[0]->nsteps; i++)
        p->first_ns[i] = INT64_MAX;
    for (size_t r = 0; r < p->out->nranks; r++) {
        struct rp_digest *d = &p->digests[r];

        d->nsteps = p->run->parts[r]->nsteps;
        d->steps = RP_ARENA_NEW(arena, struct rp_digest_step, d->nsteps);
        p->out->ranks[r].n = d->nsteps;
        p->out->ranks[r].mark_ns = RP_ARENA_NEW(arena, int64_t, d->nsteps);
        p->mark_end_ns[r] = INT64_MIN;
        RP_TRY(rp_arena_check(arena, "simulating", err));
        for (size_t i = 0; i < d->nsteps; i++)
            d->steps[i] = (struct rp_digest_step){.begin_ns = INT64_MAX, .work_end_ns = RP_NO_TS};
    }
    return RP_OK;
}

static struct rp_digest_step *step_of(const struct steps_pass *p, uint32_t rank, uint16_t step)
{
    rank = p->out->nranks > 1 ? rank : 0;
    return rank < p->out->nranks && step < p->digests[rank].nsteps ? &p->digests[rank].steps[step]
                                                                   : NULL;
}

/* The first start and the last end of those that are not gone; INT64_MAX and INT64_MIN if all
   are. */
static struct rp_interval span_of(const struct steps_pass *p, const struct rp_sim_timer *t)
{
    const int64_t *start = p->r->start_ns.at, *end = p->r->end_ns.at;
    struct rp_interval span = {INT64_MAX, INT64_MIN};

    for (uint32_t i = t->first; i < t->end; i++) {
        if (p->run->gone.at[i])
            continue;
        span.begin_ns = start[i] < span.begin_ns ? start[i] : span.begin_ns;
        span.end_ns = end[i] > span.end_ns ? end[i] : span.end_ns;
    }
    return span;
}

static void include_timer(const struct steps_pass *p, const struct rp_sim_timer *t)
{
    struct rp_digest_step *step = &p->digests[t->rank].steps[t->step];
    struct rp_interval span = span_of(p, t);

    if (t->flags & RP_SIM_TIMES && span.begin_ns < step->begin_ns)
        step->begin_ns = span.begin_ns;
    if (t->on_device && span.end_ns > step->work_end_ns)
        step->work_end_ns = span.end_ns;
    if (t->flags & RP_SIM_BEGINS && t->rank == 0 && span.begin_ns < p->first_ns[t->step])
        p->first_ns[t->step] = span.begin_ns;
    if (t->flags & RP_SIM_ENDS && span.end_ns > p->mark_end_ns[t->rank])
        p->mark_end_ns[t->rank] = span.end_ns;
}

/* ------------------------------------------------------------------ marks, then steps */

/* A step without tasks keeps its recorded distance from the previous one. */
static int64_t mark_begin(const struct steps_pass *p, size_t rank, size_t i)
{
    const struct rp_sim_part *part = p->run->parts[rank];
    const int64_t *recorded = part->step_begin_ns.at;
    int64_t begin = p->digests[rank].steps[i].begin_ns;

    if (begin != INT64_MAX)
        return begin - rp_sim_scaled(part->head_ns.at[i], p->run->edges_factor);
    return !i ? 0
              : rp_ns_sum(p->digests[rank].steps[i - 1].begin_ns,
                          rp_sim_scaled(rp_ns_between(recorded[i - 1], recorded[i]),
                                        p->run->edges_factor));
}

/* Where the work of the step before the first one ends. */
static int64_t previous_end(const struct steps_pass *p, size_t rank)
{
    const struct rp_sim_part *part = p->run->parts[rank];
    const int64_t *at = part->previous_unrecorded ? p->r->start_ns.at : p->r->end_ns.at;

    return part->previous ? at[rp_sim_first_node(p->run, rank) + part->previous - 1] : RP_NO_TS;
}

/* A device that a what-if made quicker than its host first does what was waiting for it, for as
   many steps as the host was ahead. During these, work ends at shorter intervals than it is
   launched, so the marks tell how long a step takes after many others. The result is scaled such
   that for the recording, the marks tell no more than its work. */
static enum rp_code steady_ns(const struct rp_sim_part *part, const struct rp_sim_rank_steps *steps,
                              struct rp_arena *arena, int64_t *out, struct rp_err *err)
{
    const struct rp_interval *end = &steps->times[steps->n - 1];
    int64_t *at = RP_ARENA_NEW(arena, int64_t, steps->n), recorded, simulated;
    int64_t last = rp_ns_between(end->begin_ns, end->end_ns);

    RP_TRY(rp_arena_check(arena, "simulating", err));
    memcpy(at, part->step_begin_ns.at, steps->n * sizeof *at);
    recorded = rp_sim_median_gap(part, at, steps->n);
    memcpy(at, steps->mark_ns, steps->n * sizeof *at);
    simulated = rp_sim_median_gap(part, at, steps->n);
    if (recorded > part->measured_ns)
        simulated = rp_sim_scaled(simulated, (double)part->measured_ns / (double)recorded);
    simulated = simulated < last ? simulated : last; /* it is done with that */
    *out = simulated > *out ? simulated : *out;
    return RP_OK;
}

static enum rp_code measure_rank(struct steps_pass *p, size_t rank, struct rp_err *err)
{
    const struct rp_sim_part *part = p->run->parts[rank];
    struct rp_sim_rank_steps *out = &p->out->ranks[rank];
    struct rp_digest *d = &p->digests[rank];
    struct rp_digest_step *last = &d->steps[d->nsteps - 1];

    for (size_t i = 0; i < d->nsteps; i++) {
        int64_t begin = mark_begin(p, rank, i);

        if (i && begin < d->steps[i - 1].begin_ns)
            begin = d->steps[i - 1].begin_ns; /* so that the marks keep their order */
        d->steps[i].begin_ns = out->mark_ns[i] = begin;
    }
    last->end_ns =
        p->mark_end_ns[rank] != INT64_MIN
            ? rp_ns_sum(p->mark_end_ns[rank], rp_sim_scaled(part->tail_ns, p->run->edges_factor))
            : rp_ns_sum(last->begin_ns,
                        rp_sim_scaled(rp_ns_between(part->step_begin_ns.at[d->nsteps - 1],
                                                    part->step_end_ns.at[d->nsteps - 1]),
                                      p->run->edges_factor));
    out->mark_end_ns = last->end_ns;
    RP_TRY(rp_step_times_of_digest(d, previous_end(p, rank), &p->out->arena, &out->times, err));
    struct rp_interval *detailed = RP_ARENA_NEW(&p->out->arena, struct rp_interval, out->n + 1);
    RP_TRY(rp_arena_check(&p->out->arena, "simulating", err));
    memcpy(detailed, out->times, out->n * sizeof *detailed);
    RP_TRY(rp_step_median(detailed, rp_sim_keep_detailed(part, detailed, out->n), &p->out->arena,
                          &out->step_ns, err));
    return out->n > 2 ? steady_ns(part, out, &p->out->arena, &out->step_ns, err) : RP_OK;
}

/* The mean over the ranks, some of which represent several. */
static int64_t mean_of_ranks(const struct rp_sim_run *run, const struct rp_sim_steps *steps)
{
    int64_t sum = 0, n = 0;

    for (size_t r = 0; r < run->nranks; r++)
        for (uint32_t k = run->weights ? run->weights[r] : 1; k > 0; k--, n++)
            rp_ns_add(&sum, steps ? steps->ranks[r].step_ns : run->parts[r]->measured_ns);
    return n ? sum / n : 0;
}

static enum rp_code measure_all(struct steps_pass *p, struct rp_err *err)
{
    uint32_t i, n = (uint32_t)rp_overlay_ntasks(&p->run->overlay);

    RP_TRY(alloc_steps(p, err));
    if (p->run->parts[0]->parallel_steps) {
        p->out->ranks[0].times =
            RP_ARENA_NEW(&p->out->arena, struct rp_interval, p->out->ranks[0].n);
        RP_TRY(rp_arena_check(&p->out->arena, "simulating", err));

        /* Parallel steps all begin at 0, and belong to no rank in particular. */
        struct rp_sim_rank_steps *all = &p->out->ranks[0];
        double sum = 0;
        memset(all->times, 0, all->n * sizeof *all->times);
        for (size_t m = 0; m < p->run->timers.n; m++) {
            const struct rp_sim_timer *t = &p->run->timers.at[m];
            struct rp_interval *step = &all->times[t->step];
            int64_t end = span_of(p, t).end_ns;

            if (t->flags & RP_SIM_TIMES && end > step->end_ns)
                step->end_ns = end;
        }
        for (size_t m = 0; m < all->n; m++)
            sum += (double)all->times[m].end_ns;
        p->out->step_ns = p->out->distance_ns = all->step_ns = llround(sum / (double)all->n);

        return RP_OK;
    }
    for (size_t k = 0; k < p->run->timers.n; k++)
        include_timer(p, &p->run->timers.at[k]);
    for (i = (uint32_t)rp_sim_nnodes(p->run); i < n; i++) {
        /* Of the tasks that a what-if added, all work is device work. */
        const struct rp_task_row *task = rp_overlay_task(&p->run->overlay, i);
        struct rp_digest_step *step = step_of(p, task->rank, task->step);
        bool work =
            task->kind == RP_SG_COMPUTE || task->kind == RP_SG_COMM || task->kind == RP_SG_MEMORY;

        if (step && work && p->r->end_ns.at[i] > step->work_end_ns)
            step->work_end_ns = p->r->end_ns.at[i];
    }
    for (size_t r = 0; r < p->out->nranks; r++)
        RP_TRY(measure_rank(p, r, err));

    /* Measured like in the recording; a step whose work a what-if removed begins with its mark. */
    const struct rp_sim_rank_steps *rank = &p->out->ranks[0];
    for (size_t k = 0; k < rank->n; k++)
        if (!p->run->parts[0]->begins_on_device || p->first_ns[k] == INT64_MAX)
            p->first_ns[k] = rank->mark_ns[k];
    p->out->distance_ns =
        rank->n > 1 ? rp_sim_median_gap(p->run->parts[0], p->first_ns, rank->n) : rank->step_ns;

    p->out->step_ns = mean_of_ranks(p->run, p->out);
    return RP_OK;
}

enum rp_code rp_sim_steps_init(struct rp_sim_steps *out, const struct rp_sim_run *run,
                               const struct rp_sim_result *result, struct rp_err *err)
{
    struct steps_pass p = {.run = run, .r = result, .out = out};

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    out->nranks = run->nranks;
    return measure_all(&p, err);
}

void rp_sim_steps_release(struct rp_sim_steps *steps)
{
    rp_arena_release(&steps->arena);
}

enum rp_code rp_sim_step_ns(const struct rp_sim_run *run, const struct rp_sim_result *result,
                            int64_t *out, struct rp_err *err)
{
    RP_SCOPED(rp_sim_steps_release) struct rp_sim_steps steps = {0};

    RP_TRY(rp_sim_steps_init(&steps, run, result, err));
    *out = steps.step_ns;
    return RP_OK;
}

/* ------------------------------------------------------------------ the usual one */

/* The index of the number that has this place in sorted order. */
static size_t at_place(const int64_t *ns, size_t n, size_t place, struct rp_arena *arena)
{
    int64_t *sorted = RP_ARENA_NEW(arena, int64_t, n), at;
    size_t i, same;

    if (!sorted)
        return 0; /* the arena keeps the failure */
    memcpy(sorted, ns, n * sizeof *sorted);
    rp_ns_sort(sorted, n);
    at = sorted[place];
    for (same = 0; same < place && sorted[place - 1 - same] == at;)
        same++;
    for (i = 0; i < n; i++)
        if (ns[i] == at && same-- == 0)
            return i;
    return 0;
}

enum rp_code rp_sim_steps_usual(const struct rp_sim_run *run, struct rp_sim_steps *steps,
                                struct rp_sim_usual *out, struct rp_err *err)
{
    size_t *step, i, n = steps->nranks;
    int64_t *ns = RP_ARENA_NEW(&steps->arena, int64_t, n);

    *out = (struct rp_sim_usual){0};
    RP_TRY(rp_arena_check(&steps->arena, "simulating", err));
    for (i = 0; i < n; i++)
        ns[i] = steps->ranks[i].step_ns;
    out->rank = at_place(ns, n, (n - 1) / 2, &steps->arena);
    const struct rp_sim_rank_steps *rank = &steps->ranks[out->rank];
    ns = RP_ARENA_NEW(&steps->arena, int64_t, rank->n);
    step = RP_ARENA_NEW(&steps->arena, size_t, rank->n);
    RP_TRY(rp_arena_check(&steps->arena, "simulating", err));
    for (i = n = 0; i < rank->n; i++)
        if (!rp_sim_step_is_bare(run->parts[out->rank], i)) {
            step[n] = i;
            ns[n++] = rp_ns_between(rank->times[i].begin_ns, rank->times[i].end_ns);
        }
    if (!n) /* a damaged digest may say that none has detail */
        return rp_arena_check(&steps->arena, "simulating", err);
    out->steps[0] = step[at_place(ns, n, (n - 1) / 2, &steps->arena)];
    out->steps[1] = step[at_place(ns, n, n / 2, &steps->arena)];
    return rp_arena_check(&steps->arena, "simulating", err);
}

int64_t rp_sim_measured_ns(const struct rp_sim_run *run)
{
    return mean_of_ranks(run, NULL);
}
