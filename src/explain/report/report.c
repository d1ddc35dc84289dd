/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's part of the report: its breakdown, gaps, steps, communication kernels and a few sums.
 * Without device work the same is made of host operators: busy is the time in which one runs.
 */
#include "explain/report/report.h"

#include "explain/report/pitfalls.h"
#include "trace/names.h"

#include <stdio.h>
#include <stdlib.h>

#define TINY_NS         10000
#define MOST_COPY_NAMES 64

struct copy_name {
    rp_str name;
    int64_t ns;
};

struct maker {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_report_part *out;
    struct rp_work w;
    struct rp_work_unions u;
};

static const char *text(struct maker *m, rp_str s)
{
    return s ? rp_arena_copy(m->arena, rp_trace_str(m->t, s), rp_trace_str_len(m->t, s)) : NULL;
}

/* First device work of each step, by launch; INT64_MAX where a step has none. */
static void find_step_begins(const struct maker *m, int64_t *begin)
{
    const struct rp_trace *t = m->t;
    uint32_t s;
    size_t i;

    for (s = 0; s < t->nsteps; s++)
        begin[s] = INT64_MAX;
    for (i = 0; i < m->w.items.n; i++) {
        const struct rp_work_item *x = &m->w.items.at[i];
        uint32_t low = 0, high = t->nsteps;
        int64_t at;

        if (x->launch == RP_NONE)
            continue;
        at = t->ev.ts_ns[x->launch];
        while (low < high) { /* steps are in time order: the first that begins later */
            uint32_t middle = low + (high - low) / 2;

            if (t->steps[middle].begin_ns <= at)
                low = middle + 1;
            else
                high = middle;
        }
        if (low && at < t->steps[low - 1].end_ns && x->begin_ns < begin[low - 1])
            begin[low - 1] = x->begin_ns;
    }
}

/* The median distance between the beginnings of steps; of one step, its length. */
static int64_t step_time(const struct maker *m, const int64_t *begin, bool by_device,
                         int64_t *scratch)
{
    const struct rp_step *steps = m->t->steps;
    uint32_t i, n = m->t->nsteps;

    if (n == 0)
        return RP_ABSENT_I64;
    if (n == 1)
        return rp_ns_between(steps[0].begin_ns, steps[0].end_ns);
    for (i = 0; i + 1 < n; i++)
        scratch[i] = by_device ? rp_ns_between(begin[i], begin[i + 1])
                               : rp_ns_between(steps[i].begin_ns, steps[i + 1].begin_ns);
    n--;
    qsort(scratch, n, sizeof *scratch, rp_ns_order);
    return rp_ns_sum(scratch[(n - 1) / 2], scratch[n / 2]) / 2;
}

/* Idle time of a step with a cause. Gaps are in time order. */
static int64_t idle_in(const rp_gap_vec *gaps, uint8_t cause, int64_t begin_ns, int64_t end_ns)
{
    size_t low = 0, high = gaps->n;
    int64_t sum = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (gaps->at[middle].end_ns <= begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < gaps->n && gaps->at[low].begin_ns < end_ns; low++)
        if (gaps->at[low].cause == cause)
            rp_ns_add(&sum,
                      rp_ns_common(gaps->at[low].begin_ns, gaps->at[low].end_ns, begin_ns, end_ns));
    return sum;
}

static void copy_breakdown(struct rp_report_step *s)
{
    s->begin_ns = s->b.begin_ns;
    s->dur_ns = s->b.window_ns;
    s->busy_ns = s->b.busy_ns;
    s->compute_ns = s->b.compute_ns;
    s->comm_ns = s->b.comm_ns;
    s->exposed_comm_ns = s->b.exposed_comm_ns;
    s->memory_ns = s->b.memory_ns;
    s->idle_ns = s->b.idle_ns;
}

static bool all_begin(const int64_t *begin, uint32_t n)
{
    uint32_t i;

    for (i = 0; i < n && begin[i] != INT64_MAX && (!i || begin[i] >= begin[i - 1]); i++)
        ;
    return i == n;
}

static enum rp_code make_steps(struct maker *m, struct rp_err *err)
{
    struct rp_report_part *out = m->out;
    uint32_t i, n = m->t->nsteps;
    int64_t *begin = RP_ARENA_NEW(m->arena, int64_t, n + 1);
    int64_t *scratch = RP_ARENA_NEW(m->arena, int64_t, n + 1);
    bool by_device;

    out->steps = RP_ARENA_NEW(m->arena, struct rp_report_step, n + 1);
    if (!out->steps || !begin || !scratch)
        return rp_err_nomem(err, "looking at steps");
    find_step_begins(m, begin);
    by_device = m->w.items.n && all_begin(begin, n);
    if (m->scope->limited)
        return RP_OK;
    out->steps_on_device = by_device;
    out->step_ns = step_time(m, begin, by_device, scratch);
    for (i = 0; i < n; i++) {
        const struct rp_step *step = &m->t->steps[i];
        struct rp_report_step *s = &out->steps[out->nsteps++];
        int64_t from = by_device ? begin[i] : step->begin_ns, to = step->end_ns;

        if (by_device)
            to = i + 1 < n ? begin[i + 1] : out->b.end_ns > from ? out->b.end_ns : from;
        *s = (struct rp_report_step){.number = step->number, .name = text(m, step->name)};
        s->b = rp_work_breakdown_of(&m->u, from, to);
        s->host_ns = rp_ns_between(step->begin_ns, step->end_ns);
        s->late_ns = idle_in(&out->gaps, RP_GAP_NOT_LAUNCHED, from, to);
        s->drain_ns = idle_in(&out->gaps, RP_GAP_SYNC_DRAIN, from, to);
        copy_breakdown(s);
    }
    return RP_OK;
}

static void sum_kernels(struct maker *m)
{
    struct rp_report_sums *sums = &m->out->sums;
    size_t i;

    for (i = 0; i < m->w.items.n; i++) {
        const struct rp_work_item *x = &m->w.items.at[i];
        int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);

        if (x->cls != RP_WORK_COMPUTE)
            continue;
        sums->kernels++;
        sums->tiny_kernels += dur < TINY_NS;
    }
    for (i = 0; i < m->out->gaps.n; i++) {
        const struct rp_gap *gap = &m->out->gaps.at[i];
        const struct rp_work_item *x = &m->w.items.at[gap->after];
        int64_t length = rp_ns_between(gap->begin_ns, gap->end_ns);

        rp_ns_add(&m->out->late_ns, gap->cls == RP_GAP_CLASS_NOT_LAUNCHED ? length : 0);
        if (gap->cause == RP_GAP_LAUNCH_LATENCY && x->cls == RP_WORK_COMPUTE &&
            rp_ns_between(x->begin_ns, x->end_ns) < TINY_NS)
            rp_ns_add(&sums->tiny_gap_ns, length);
    }
    sums->overhead_ns = m->t->totals.dur_ns[RP_KIND_OVERHEAD];
}

/* The copies and memsets, and the name that takes most of their time: there are few names. */
static enum rp_code sum_copies(struct maker *m, struct rp_err *err)
{
    struct rp_report_sums *sums = &m->out->sums;
    RP_VEC(struct copy_name) names = {0};
    enum rp_code code = RP_OK;
    rp_str best = 0;
    size_t i, k;

    for (i = 0; i < m->w.items.n && code == RP_OK; i++) {
        const struct rp_work_item *x = &m->w.items.at[i];
        struct copy_name fresh = {m->t->ev.name[x->event], 0};

        if (x->cls != RP_WORK_MEMORY)
            continue;
        sums->copies++;
        for (k = 0; k < names.n && names.at[k].name != fresh.name; k++)
            ;
        if (k == MOST_COPY_NAMES)
            continue;
        if (k == names.n)
            code = rp_vec_push(&names, fresh, err);
        if (code == RP_OK)
            rp_ns_add(&names.at[k].ns, rp_ns_between(x->begin_ns, x->end_ns));
    }
    for (k = 0; k < names.n; k++)
        if (names.at[k].ns > sums->copy_name_ns) {
            sums->copy_name_ns = names.at[k].ns;
            best = names.at[k].name;
        }
    sums->copy_name = text(m, best);
    rp_vec_release(&names);
    return code;
}

/* The union of what is no copy: work is in time order. */
static enum rp_code unite_kernels(struct maker *m, struct rp_err *err)
{
    size_t i;

    for (i = 0; i < m->w.items.n; i++) {
        const struct rp_work_item *x = &m->w.items.at[i];

        if (x->cls != RP_WORK_MEMORY)
            RP_TRY(rp_union_add(&m->out->kernels, x->begin_ns, x->end_ns, err));
    }
    return RP_OK;
}

static enum rp_code look_at_device(struct maker *m, struct rp_err *err)
{
    struct rp_report_part *out = m->out;
    struct rp_attribution a;
    enum rp_code code;

    out->on_device = true;
    out->b = rp_work_breakdown(&m->u);
    RP_TRY(rp_gaps_find(&m->w, &out->gaps, err));
    RP_TRY(rp_idle_add_up(&m->w, &out->gaps, m->arena, &out->idle_causes, &out->nidle_causes, err));
    code = rp_attribution_init(&a, &m->w, err);
    out->coverage = a.coverage;
    if (code == RP_OK)
        code = rp_pitfall_unequal(&m->w, &a, m->arena, &out->unequal, err);
    if (code == RP_OK)
        code = rp_pitfall_streams(&m->w, out->b.compute_ns, m->arena, &out->streams, err);
    rp_attribution_release(&a);
    RP_TRY(code);
    sum_kernels(m);
    RP_TRY(sum_copies(m, err));
    RP_TRY(unite_kernels(m, err));
    return rp_report_look_at_device(&m->w, &out->gaps, m->arena, &out->wrong, err);
}

bool rp_report_is_host_work(const struct rp_trace *trace, const struct rp_scope *scope, rp_event e)
{
    const struct rp_events *ev = &trace->ev;
    uint8_t kind = ev->kind[e];
    int64_t ts = ev->ts_ns[e];

    if (ev->dur_ns[e] < 0 || ts == RP_NO_TS)
        return false;
    if (scope->limited && (ts < scope->begin_ns || ts >= scope->end_ns))
        return false;
    /* without operators, what was named by hand is all there is */
    if (!trace->totals.count[RP_KIND_CPU_OP] &&
        (kind == RP_KIND_ANNOTATION || kind == RP_KIND_OTHER))
        return true;
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_TRANSFER ||
           rp_event_is_host_collective(trace, e);
}

/* Whether a host span is communication: by its kind, or by the name of a collective. */
static bool host_comm(const struct maker *m, rp_event e)
{
    uint8_t kind = m->t->ev.kind[e];

    return kind == RP_KIND_TRANSFER || m->t->str.name_class[m->t->ev.name[e]] == RP_NAME_COMM ||
           rp_event_is_host_collective(m->t, e);
}

/* Host operators instead of device work: the unions are filled from them. */
static enum rp_code look_at_host(struct maker *m, struct rp_err *err)
{
    rp_interval_vec *all = &m->u.all, *cls = m->u.cls;
    rp_track last = RP_NONE;
    rp_event e;
    int c;

    for (e = 0; e < m->t->ev.n; e++) {
        struct rp_interval i = {m->t->ev.ts_ns[e], rp_event_end_ns(m->t, e)};

        if (!rp_report_is_host_work(m->t, m->scope, e))
            continue;
        RP_TRY(rp_vec_push(all, i, err));
        RP_TRY(rp_vec_push(&cls[host_comm(m, e) ? RP_WORK_COMM : RP_WORK_COMPUTE], i, err));
        m->out->sums.host_ops++;
        rp_ns_add(&m->out->sums.host_op_ns,
                  rp_event_around(m->t, m->t->ev.parent[e], RP_KIND_CPU_OP) == RP_NONE
                      ? rp_ns_between(i.begin_ns, i.end_ns)
                      : 0);
        m->out->sums.host_threads += m->t->ev.track[e] != last;
        last = m->t->ev.track[e];
    }
    all->n = rp_union_sort(all->at, all->n);
    for (c = 0; c < RP_WORK_CLASSES; c++)
        cls[c].n = rp_union_sort(cls[c].at, cls[c].n);
    m->out->b = rp_work_breakdown(&m->u);
    RP_TRY(rp_report_find_pauses(m->t, all, m->arena, &m->out->pauses, err));
    return rp_latency_find(m->t, m->arena, &m->out->latency, err);
}

static enum rp_code make_part(struct maker *m, struct rp_err *err)
{
    struct rp_report_part *out = m->out;

    RP_TRY(rp_work_init(&m->w, m->t, m->scope, err));
    RP_TRY(rp_work_unite(&m->w, &m->u, err));
    RP_TRY(m->w.items.n ? look_at_device(m, err) : look_at_host(m, err));
    RP_TRY(make_steps(m, err));
    RP_TRY(rp_pitfall_steps(m->t, out->steps, out->nsteps, m->arena, &out->untypical, err));
    RP_TRY(rp_host_calls_init(&out->calls, m->t, m->scope, rp_stall_usual.floor_ns, m->arena, err));
    RP_TRY(rp_collectives_init(&out->collectives, &m->w, m->scope, m->arena, err));
    out->compute = m->u.cls[RP_WORK_COMPUTE];
    m->u.cls[RP_WORK_COMPUTE] = (rp_interval_vec){0};
    out->busy = m->u.all;
    m->u.all = (rp_interval_vec){0};
    out->limited = m->scope->limited;
    out->health = m->t->health;
    out->device = m->t->ndevices ? text(m, m->t->devices[0].name) : NULL;
    out->framework = text(m, m->t->framework);
    return RP_OK;
}

enum rp_code rp_report_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            struct rp_arena *arena, struct rp_report_part *out, struct rp_err *err)
{
    static const struct rp_scope whole = {0};
    struct maker m = {.t = trace, .scope = scope ? scope : &whole, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_report_part){.step_ns = RP_ABSENT_I64};
    code = make_part(&m, err);
    rp_work_release(&m.w);
    rp_work_unions_release(&m.u);
    return code;
}

void rp_report_part_release(struct rp_report_part *part)
{
    rp_vec_release(&part->gaps);
    rp_collectives_release(&part->collectives);
    rp_host_calls_release(&part->calls);
    rp_vec_release(&part->compute);
    rp_vec_release(&part->busy);
    rp_vec_release(&part->kernels);
}
