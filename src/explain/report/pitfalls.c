/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds pitfalls of reading a timeline. The mean of an operator misleads if a few long calls among
 * many short ones take most of its time; such calls must be examined by shape. Two streams with
 * kernels side by side on the screen need not run at once; only the overlap of their times tells. A
 * step that is much longer than the others is a bad example.
 */
#include "explain/report/report.h"

#include "base/hash.h"
#include "base/named.h"
#include "facts/host/outside.h"
#include "facts/times/intervals.h"
#include "result/print_units.h"

#include <string.h>

#define UNEQUAL     8
#define FEW_CALLS   10
#define LEAST_SHARE 0.1
#define ODD_SHARE   0.01
#define APART_SHARE 0.1
#define REASON_PART 20
RP_DECISION(UNEQUAL, "times the median call",
            "among calls that differ by less, the mean still says what a call takes",
            "explain/unequal_work_has_edges");
RP_DECISION(
    FEW_CALLS, "calls, one of",
    "few: as many as nobody finds by looking at some calls. An operator with fewer is looked "
    "at as it is",
    "explain/unequal_work_has_edges");
RP_DECISION(LEAST_SHARE, "of the device time", "what takes less misleads nobody",
            "explain/unequal_work_has_edges");
RP_DECISION(ODD_SHARE, "of the steps", "what they last longer, if they are named: as of a finding",
            "explain/untypical_steps_have_edges");
RP_DECISION(APART_SHARE, "of a stream's time beside others",
            "less is launching at the ends of kernels", "explain/streams_may_only_look_parallel");
RP_DECISION(REASON_PART, "of a step, one part in",
            "a shorter span does not make a step longer by a fifth or more",
            "explain/untypical_steps_have_edges");

struct op_call { /* of an operator */
    rp_event op;
    int64_t ns;
};

struct op_kind {
    rp_str name;
    int64_t count, total_ns, most_ns;
    int64_t heavy, median_ns; /* count_heavy */
};

struct op_calls {
    const struct rp_trace *t;
    struct rp_map by_op, by_name;
    RP_VEC(struct op_call) list;
    RP_VEC(struct op_kind) kinds;
    RP_VEC(int64_t) times;
};

static enum rp_code add_item(struct op_calls *c, rp_event op, int64_t ns, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)c->list.n, at;
    struct op_call call = {op, 0};

    RP_TRY(rp_map_intern(&c->by_op, op, fresh, &at, err));
    if (at == fresh)
        RP_TRY(rp_vec_push(&c->list, call, err));
    rp_ns_add(&c->list.at[at].ns, ns);
    return RP_OK;
}

static enum rp_code collect_calls(struct op_calls *c, const struct rp_work *work,
                                  const struct rp_attribution *places, struct rp_err *err)
{
    for (size_t i = 0; i < work->items.n; i++) {
        const struct rp_work_item *x = &work->items.at[i];

        if (places->owners.at[i].op != RP_NONE && x->cls == RP_WORK_COMPUTE)
            RP_TRY(
                add_item(c, places->owners.at[i].op, rp_ns_between(x->begin_ns, x->end_ns), err));
    }
    for (size_t i = 0; i < c->list.n; i++) {
        const struct op_call *call = &c->list.at[i];
        rp_str name = c->t->ev.name[call->op];
        uint32_t fresh = (uint32_t)c->kinds.n, at;
        struct op_kind kind = {.name = name}, *k;

        RP_TRY(rp_map_intern(&c->by_name, name, fresh, &at, err));
        if (at == fresh)
            RP_TRY(rp_vec_push(&c->kinds, kind, err));
        k = &c->kinds.at[at];
        k->count++;
        rp_ns_add(&k->total_ns, call->ns);
        k->most_ns = call->ns > k->most_ns ? call->ns : k->most_ns;
    }
    return RP_OK;
}

/* Among operators with few such calls, the one that takes most time. */
static enum rp_code worst_kind(struct op_calls *c, int64_t device_ns, const struct op_kind **out,
                               struct rp_err *err)
{
    *out = NULL;
    for (size_t i = 0; i < c->kinds.n; i++) {
        struct op_kind *k = &c->kinds.at[i];

        if (k->count < FEW_CALLS || (double)k->total_ns < LEAST_SHARE * (double)device_ns ||
            (*out && k->total_ns <= (*out)->total_ns))
            continue;

        /* How many of the longest calls of an operator take half of its time; 0 if they are not
         * few. */
        int64_t left = k->total_ns / 2;
        size_t m;
        c->times.n = 0;
        for (m = 0; m < c->list.n; m++)
            if (c->t->ev.name[c->list.at[m].op] == k->name)
                RP_TRY(rp_vec_push(&c->times, c->list.at[m].ns, err));
        rp_ns_sort(c->times.at, c->times.n);
        for (m = c->times.n; m > 0 && left > 0; m--)
            left -= c->times.at[m - 1];
        k->heavy = (int64_t)(c->times.n - m);
        k->median_ns = c->times.at[c->times.n / 2];
        if (k->heavy > k->count / FEW_CALLS || c->times.at[m] / UNEQUAL < k->median_ns)
            k->heavy = 0;

        if (k->heavy)
            *out = k;
    }
    return RP_OK;
}

enum rp_code rp_pitfall_unequal(const struct rp_work *work, const struct rp_attribution *places,
                                struct rp_arena *arena, const char **out, struct rp_err *err)
{
    struct op_calls c = {.t = work->trace};
    const struct op_kind *worst = NULL;

    *out = NULL;
    enum rp_code code = collect_calls(&c, work, places, err);
    if (code == RP_OK)
        code = worst_kind(&c, places->coverage.device_ns, &worst, err);
    if (worst) {
        *out = rp_arena_textf(
            arena,
            "'%.80s' hides unequal work: %lld of %s take half of its device time, up to %s each, "
            "the median %s; see 'reprise top --by shape'",
            rp_trace_str(work->trace, worst->name), (long long)worst->heavy,
            rp_units_count(arena, (int64_t)worst->count, "call"),
            rp_units_time(arena, worst->most_ns), rp_units_time(arena, worst->median_ns));
        code = rp_arena_check(arena, "looking for pitfalls", err);
    }
    rp_map_release(&c.by_op);
    rp_map_release(&c.by_name);
    rp_vec_release(&c.list);
    rp_vec_release(&c.kinds);
    rp_vec_release(&c.times);
    return code;
}

/* Sums up the time in which each stream computes; counts those with a significant share. */
static int64_t sum_streams(const struct rp_work *work, int64_t *until, int64_t *busy,
                           int64_t compute_ns, int *several, int64_t *least)
{
    int64_t sum = 0;

    for (size_t i = 0; i < work->streams.n; i++)
        until[i] = INT64_MIN;
    for (size_t i = 0; i < work->items.n; i++) {
        const struct rp_work_item *x = &work->items.at[i];
        int64_t from = x->begin_ns > until[x->stream] ? x->begin_ns : until[x->stream];

        if (x->cls != RP_WORK_COMPUTE || x->end_ns <= from)
            continue;
        rp_ns_add(&busy[x->stream], rp_ns_between(from, x->end_ns));
        until[x->stream] = x->end_ns;
    }
    for (size_t i = 0; i < work->streams.n; i++) {
        if ((double)busy[i] < LEAST_SHARE * (double)compute_ns || !busy[i])
            continue;
        (*several)++;
        *least = busy[i] < *least ? busy[i] : *least;
        rp_ns_add(&sum, busy[i]);
    }
    return sum;
}

enum rp_code rp_pitfall_streams(const struct rp_work *work, int64_t compute_ns,
                                struct rp_arena *arena, const char **out, struct rp_err *err)
{
    int64_t *until = RP_ARENA_NEW(arena, int64_t, work->streams.n + 1);
    int64_t *busy = RP_ARENA_NEW(arena, int64_t, work->streams.n + 1);
    int64_t sum, both, least = INT64_MAX;
    int several = 0;

    *out = NULL;
    RP_TRY(rp_arena_check(arena, "looking for pitfalls", err));
    sum = sum_streams(work, until, busy, compute_ns, &several, &least);
    both = sum > compute_ns ? rp_ns_between(compute_ns, sum) : 0;
    if (several < 2 || (double)both > APART_SHARE * (double)least)
        return RP_OK;
    *out = rp_arena_textf(arena,
                          "%d streams compute, but only %.1f %% of the time of the least busy one "
                          "overlaps with another: they look parallel but are not",
                          several, 100.0 * (double)both / (double)least);
    return rp_arena_check(arena, "looking for pitfalls", err);
}

/* The longest host span in a step whose name is one of the words, or RP_NONE. */
static rp_event longest_named(const struct rp_trace *t, const struct rp_step *step,
                              const char *const *words)
{
    rp_event e, best = RP_NONE;

    for (e = 0; e < t->ev.n; e++) {
        int64_t dur = t->ev.dur_ns[e],
                least = rp_ns_between(step->begin_ns, step->end_ns) / REASON_PART;

        if (dur > least && e != step->mark && !rp_kind_is_device_work(t->ev.kind[e]) &&
            t->ev.ts_ns[e] >= step->begin_ns && t->ev.ts_ns[e] < step->end_ns &&
            (best == RP_NONE || dur > t->ev.dur_ns[best]) &&
            rp_has_word(rp_trace_str(t, t->ev.name[e]), words) &&
            !strcasestr(rp_trace_str(t, t->ev.name[e]),
                        "compiled") && /* such a span runs what was compiled */
            !rp_name_recomputes(rp_trace_str(t, t->ev.name[e])))
            best = e;
    }
    return best;
}

/* Whether the recording was paused in a step, which is then as long as the pause. */
static bool paused_in(const struct rp_trace *t, const struct rp_step *step)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.kind[e] == RP_KIND_INSTANT && t->ev.ts_ns[e] >= step->begin_ns &&
            t->ev.ts_ns[e] < step->end_ns &&
            !strcmp(rp_trace_str(t, t->ev.name[e]), RP_PAUSED_NAME))
            return true;
    return false;
}

/* Whether a part of a step that explains its length was compiling. */
static bool compiled_in(const struct rp_step *step, const rp_interval_vec *compiles)
{
    int64_t least = rp_ns_between(step->begin_ns, step->end_ns) / REASON_PART;

    for (size_t i = 0; i < compiles->n; i++)
        if (rp_ns_common(compiles->at[i].begin_ns, compiles->at[i].end_ns, step->begin_ns,
                         step->end_ns) > least)
            return true;
    return false;
}

/* "compilation ('torch/_dynamo/convert_frame.py(…)')" */
static const char *step_reason(const struct rp_trace *t, size_t at, const struct rp_report_step *on,
                               const rp_interval_vec *compiles, struct rp_arena *arena)
{
    static const char *const compile[] = {"compile", "dynamo", "inductor",
                                          "autotun", "nvrtc",  NULL};
    static const char *const save[] = {"checkpoint", "save_", ".save", "torch/serialization", NULL};
    struct rp_step whole = t->steps[at], *step = &whole;
    int64_t end_ns = rp_ns_sum(on->b.begin_ns, on->b.window_ns);
    const char *what = "compilation";

    /* a step on the device ends where the next begins, so it includes what the host does before
       that */
    step->end_ns = step->end_ns > end_ns ? step->end_ns : end_ns;
    rp_event e = longest_named(t, step, compile);

    if (e == RP_NONE) {
        e = longest_named(t, step, save);
        what = "a checkpoint";
    }
    if (e != RP_NONE)
        return rp_arena_textf(arena, "%s ('%.60s')", what, rp_trace_str(t, t->ev.name[e]));
    if (compiled_in(step, compiles))
        return "compilation, as the log of torch.compile says";
    if (paused_in(t, step))
        return "the recording was paused in it";
    if (at == 0)
        return "the first step: warm-up";
    return on->longer ? on->longer : "the trace does not show why";
}

bool rp_report_steps_alike(const struct rp_report_step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (steps[i].phase || steps[i].requests != RP_ABSENT_I64 ||
            steps[i].tokens != RP_ABSENT_I64)
            return false;
    return true;
}

/* Lists steps that can be compared: for a server those that decode, else all but warm-up. */
static size_t list_alike(const struct rp_report_step *steps, size_t n, size_t *at)
{
    bool alike = rp_report_steps_alike(steps, n);
    size_t i, count = 0;

    for (i = 0; i < n; i++)
        if ((alike && !steps[i].warm_up && !steps[i].no_detail) ||
            (steps[i].phase && !strcmp(steps[i].phase, "decode")))
            at[count++] = i;
    return count;
}

enum rp_code rp_pitfall_steps(const struct rp_trace *trace, const struct rp_report_step *steps,
                              size_t nsteps, const rp_interval_vec *compiles,
                              struct rp_arena *arena, const char **out, struct rp_err *err)
{
    int64_t *v = RP_ARENA_NEW(arena, int64_t, nsteps + 1), usual;
    size_t *at = RP_ARENA_NEW(arena, size_t, nsteps + 1);
    bool alike = rp_report_steps_alike(steps, nsteps);
    size_t i, n, worst, typical, odd = 0;
    int64_t all = 0, more = 0;

    *out = NULL;
    RP_TRY(rp_arena_check(arena, "looking for pitfalls", err));
    n = list_alike(steps, nsteps, at);
    if (n < RP_STEPS_COMPARED || nsteps != trace->nsteps)
        return RP_OK;
    for (i = 0; i < n; i++)
        v[i] = rp_report_own_ns(&steps[at[i]]);
    rp_ns_sort(v, n);
    usual = rp_ns_median(v, n);
    worst = typical = at[0];
    for (i = 0; i < n; i++) {
        int64_t ns = rp_report_own_ns(&steps[at[i]]);

        rp_ns_add(&all, ns);
        if ((double)ns > RP_ATYPICAL * (double)usual) {
            odd++;
            rp_ns_add(&more, rp_ns_between(usual, ns));
        }
        worst = ns > rp_report_own_ns(&steps[worst]) ? at[i] : worst;
        if (rp_ns_apart(ns, usual) <= rp_ns_apart(rp_report_own_ns(&steps[typical]), usual))
            typical = at[i];
    }
    if (!odd || (double)more < ODD_SHARE * (double)all)
        return RP_OK;
    *out = rp_arena_textf(
        arena,
        "%zu of %zu %s %s not typical: %.120s takes %s, the median %s %s (%s); look at "
        "'--step %lld' instead",
        odd, n, alike ? "steps" : "decode steps", odd == 1 ? "is" : "are", steps[worst].name,
        rp_units_time(arena, rp_report_own_ns(&steps[worst])),
        !alike       ? "decode step"
        : n < nsteps ? rp_arena_textf(arena, "of these %zu", n)
                     : "step",
        rp_units_time(arena, usual), step_reason(trace, worst, &steps[worst], compiles, arena),
        (long long)steps[typical].number);
    return rp_arena_check(arena, "looking for pitfalls", err);
}
