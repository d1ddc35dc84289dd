/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of a loop that nobody marked, by what it does once in each round:
 *
 *     an optimizer    "Optimizer.step#Adam.step" of PyTorch: a step ends where the range ends, so
 *                     that micro-batches and a closure inside of it are part of the step
 *     an executable   "jit_step" of JAX: a step begins where it is called; on the CPU, where calls
 *                     return before the work is done, where its first operation runs. Functions
 *                     and sessions of TensorFlow likewise
 *     a data loader   "enumerate(DataLoader)#….__next__": a step begins with the next batch. If
 * some batches are followed by a backward pass, the others are evaluations a graph
 * "cudaGraphLaunch": a step begins where it is launched. Of several graphs the one with most device
 * work a backward pass of PyTorch, where something updates parameters between two of them
 *                     (steps_backward.c); a step begins with its forward pass
 *     compiled code   "Torch-Compiled Region: 0/0": a step begins where it is called. Of several
 *                     regions that which takes most time, whatever it was compiled for (0/1)
 *     a forward pass  "aten::embedding": a language model looks its tokens up, in generation
 *                     once for each new token; a step begins there
 *
 * A round may do it several times (two optimizers, gradients that are accumulated). If the recorder
 * has distinguished optimizers, their order tells how often. Otherwise the work between two marks
 * is compared with that between those 2, 3, ... later, and the smallest distance at which it is the
 * same makes a round. Something occasional, such as a loss that is read every fifth step, hardly
 * changes the work, so it does not make a round of five; nor does an evaluation after every fifth
 * step, which adds work without a backward pass to a step like the others.
 *
 * A round with much more work than usual contains something else: an evaluation, a checkpoint. The
 * step is then the usual amount of work next to its mark, and the rest belongs to no step. The
 * begin of the first step is found in the same way. First steps that take far longer than usual are
 * warm-up: steps, but not counted.
 *
 * Linear in the events, except for sorting the outermost operators by time.
 */
#include "trace/finish/loop_work.h"
#include "trace/finish/steps_backward.h"

#include "base/decides.h"
#include "base/each.h"
#include "base/filled.h"
#include "base/order.h"
#include "trace/build/dense_ids.h"
#include "trace/device_calls.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_MARKS 3
RP_DECISION(LEAST_MARKS, "marks", "two are a coincidence: fewer are not a loop",
            "trace/three_rounds_are_a_loop");
#define LEAST_UNSURE \
    ((size_t)2 * LEAST_MARKS) /* number of marks if nothing shows that parameters are updated */
#define MORE 4
RP_DECISION(MORE, "parts of a usual round",
            "a round that has one more of them, in work and in time, has something else in it",
            "trace/a_quarter_more_is_something_else");
#define MOST_MARKS 16
RP_LIMIT(MOST_MARKS, "marks of a round",
         "each number is tried; with more marks, each mark is a step");
#define MOST_OWNERS ((size_t)4096)
RP_LIMIT(MOST_OWNERS, "optimizers of a round",
         "each number is tried; with more optimizers, the work between them is compared");
#define DEEPEST 32
RP_LIMIT(DEEPEST, "spans around an optimizer",
         "a backward pass around more is not seen, and each of its optimizers a mark");
#define SAMPLED_ROUND 64
RP_LIMIT(SAMPLED_ROUND, "rounds", "in the middle are compared: more would say the same");

enum loop_kind {
    LOOP_NONE,
    LOOP_OPTIMIZER,
    LOOP_EXECUTABLE,
    LOOP_LOADER,
    LOOP_REPLAY,
    LOOP_BACKWARD,
    LOOP_COMPILED,
    LOOP_FORWARD,
    LOOP_KINDS
};

struct loop_mark {
    rp_event event;
    int64_t begin_ns, end_ns, work_ns; /* work: device work launched in it */
    rp_str name;
    rp_str
        owner; /* "optimizer 2", if the recorder distinguishes those of one class; else RP_NONE */
};

struct loop {
    struct rp_builder *b;
    enum loop_kind kind;
    bool at_end;            /* a step ends with its mark; otherwise it begins with it */
    RP_VEC(uint8_t) judged; /* by string: enum loop_kind + 1; 0: not examined */
    RP_VEC(struct loop_mark)
    marks; /* marks of one track in the order of time; the last one of each round */
    struct rp_loop_work work;
    size_t usual;     /* median amount of work in a round */
    int64_t usual_ns; /* its duration */
};

/* ------------------------------------------------------------------ marks */

/* The first row that fits decides; launches of graphs are in trace/device_calls.c. */
static const struct {
    enum rp_named how;
    const char *text;
    enum loop_kind kind;
} loop_names[] = {
    {RP_NAMED_BEGINS, "Optimizer.step#", LOOP_OPTIMIZER},
    {RP_NAMED_BEGINS, "enumerate(DataLoader)#", LOOP_LOADER},
    {RP_NAMED_BEGINS, "jit_", LOOP_EXECUTABLE}, /* JAX, and the next four */
    {RP_NAMED_BEGINS, "jit(", LOOP_EXECUTABLE},
    {RP_NAMED_BEGINS, "pjit_", LOOP_EXECUTABLE},
    {RP_NAMED_BEGINS, "pmap_", LOOP_EXECUTABLE},
    {RP_NAMED_BEGINS, "PjitFunction(", LOOP_EXECUTABLE},
    {RP_NAMED_BEGINS, "EagerLocalExecute: __inference_", LOOP_EXECUTABLE}, /* TensorFlow 2 */
    {RP_NAMED_IS, "SessionRun", LOOP_EXECUTABLE},                          /* TensorFlow 1 */
    {RP_NAMED_BEGINS, RP_BACKWARD_PREFIX, LOOP_BACKWARD},
    {RP_NAMED_BEGINS, "Torch-Compiled Region: ", LOOP_COMPILED},
    {RP_NAMED_IS, "aten::embedding", LOOP_FORWARD},
};

static enum loop_kind kind_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof loop_names / sizeof loop_names[0]; i++)
        if (rp_is_named(name, loop_names[i].how, loop_names[i].text))
            return loop_names[i].kind;
    return rp_device_call_does(name) & RP_DOES_LAUNCH_GRAPH ? LOOP_REPLAY : LOOP_NONE;
}

static bool is_mark(struct loop *w, rp_event e)
{
    struct rp_builder *b = w->b;
    uint8_t *judged = &w->judged.at[b->ev.name.at[e]], kind = b->ev.kind.at[e];

    if (w->kind == LOOP_REPLAY ? kind != RP_KIND_RUNTIME
                               : kind != RP_KIND_ANNOTATION && kind != RP_KIND_CPU_OP)
        return false;
    if (!rp_step_is_span(b, e) || (b->ev.flags.at[e] & RP_EVENT_ASYNC))
        return false;
    if (!*judged)
        *judged = (uint8_t)(1 + kind_of_name(rp_strtab_borrow(&b->str, b->ev.name.at[e])));
    return *judged == 1 + w->kind;
}

/* The track with most marks of the kind, or RP_NONE. */
static uint32_t busiest_track(struct loop *w)
{
    struct rp_builder *b = w->b;
    uint32_t best = RP_NONE, t;
    size_t most = 0;

    for (t = 0; t < b->tracks.n; t++) {
        size_t n = 0;

        for (rp_event e = b->tracks.at[t].first; e < b->tracks.at[t].end; e++)
            n += is_mark(w, e);
        if (n > most) {
            most = n;
            best = t;
        }
    }
    return best;
}

static bool is_owner(const struct rp_builder *b, rp_event e)
{
    return b->ev.kind.at[e] == RP_KIND_INSTANT &&
           rp_is_named(rp_strtab_borrow(&b->str, b->ev.name.at[e]), RP_NAMED_BEGINS, "optimizer ");
}

/* The marks of a track, without those inside another. */
static enum rp_code list_marks(struct loop *w, uint32_t track, struct rp_err *err)
{
    struct rp_builder *b = w->b;
    int64_t until = INT64_MIN;

    w->marks.n = 0;
    for (rp_event e = b->tracks.at[track].first; e < b->tracks.at[track].end; e++) {
        struct loop_mark mark = {e, b->ev.ts_ns.at[e], rp_build_end_ns(b, e),
                                 0, b->ev.name.at[e],  RP_NONE};

        if (mark.begin_ns < until && is_owner(b, e))
            w->marks.at[w->marks.n - 1].owner = mark.name;
        if (mark.begin_ns < until || !is_mark(w, e))
            continue;
        RP_TRY(rp_vec_push(&w->marks, mark, err));
        until = mark.end_ns;
    }
    return RP_OK;
}

/* Keeps the marks of the executable with most device work, or if none has any, of the one that
   takes longest; its first call does not count, because it may compile. */
static enum rp_code keep_main_executable(struct loop *w, struct rp_err *err)
{
    RP_VEC_LOCAL(double, sum);
    RP_VEC_LOCAL(uint32_t, count);
    size_t nstrings = w->b->str.n, kept = 0, i;
    rp_str best = RP_NONE;

    RP_TRY(rp_vec_reserve(&sum, 2 * nstrings, err));
    RP_TRY(rp_vec_zeros(&count, nstrings, err));
    double *work = sum.at, *host = sum.at + nstrings;

    for (i = 0; i < 2 * nstrings; i++)
        sum.at[i] = 0;

    /* Add the device work that was launched in marks to them. */
    struct rp_mark_view v = rp_mark_view_of_builder(w->b);
    struct rp_launch_known known = {.link = RP_NONE};
    size_t k;
    for (rp_event e = 0; e < v.nevents; e++) {
        if (!rp_kind_is_device_work(v.kind[e]) || !rp_mark_view_is_span(&v, e) ||
            v.link[e] == RP_NONE)
            continue;
        int64_t at = rp_steps_launched_next(&v, v.link[e], &known);
        RP_LOWER_BOUND(k, w->marks.n, w->marks.at[k].begin_ns <= at);
        if (k && at < w->marks.at[k - 1].end_ns &&
            __builtin_add_overflow(w->marks.at[k - 1].work_ns, v.dur_ns[e],
                                   &w->marks.at[k - 1].work_ns))
            w->marks.at[k - 1].work_ns = INT64_MAX;
    }

    for (i = 0; i < w->marks.n; i++) {
        const struct loop_mark *m = &w->marks.at[i];
        rp_str name = m->name;

        if (count.at[name]++) {
            work[name] += (double)m->work_ns;
            host[name] += (double)rp_step_between(m->begin_ns, m->end_ns);
        }
        if (count.at[name] >= LEAST_MARKS &&
            (best == RP_NONE || work[name] > work[best] ||
             (work[name] == work[best] && host[name] > host[best])))
            best = name;
    }
    for (i = 0; i < w->marks.n; i++)
        if (w->marks.at[i].name == best)
            w->marks.at[kept++] = w->marks.at[i];
    w->marks.n = kept;
    return RP_OK;
}

/* ------------------------------------------------------------------ runs on the host */

/* Operations of executables that XLA runs on the host. */
struct loop_runs {
    rp_id_vec id; /* run_id */
    RP_VEC(rp_event) op;
    RP_VEC(rp_str) module;
    RP_VEC(uint32_t) run; /* by operation: its run, numbered by appearance */
    uint32_t n;
};

static enum rp_code list_operations(struct rp_builder *b, struct loop_runs *r, struct rp_err *err)
{
    rp_str id = rp_build_find_str(b, "run_id"), module = rp_build_find_str(b, "hlo_module");

    for (rp_event e = 0; id != RP_NONE && module != RP_NONE && e < b->ev.n; e++) {
        struct rp_arg run, of;

        if (b->ev.kind.at[e] != RP_KIND_CPU_OP || !rp_step_is_span(b, e) ||
            !rp_args_find(&b->trace->args, b->ev.shape.at[e], b->ev.arg_row.at[e], id, &run) ||
            !rp_args_find(&b->trace->args, b->ev.shape.at[e], b->ev.arg_row.at[e], module, &of) ||
            run.type != RP_ARG_I64 || of.type != RP_ARG_STR)
            continue;
        RP_TRY(rp_vec_push(&r->id, run.v.i, err));
        RP_TRY(rp_vec_push(&r->op, e, err));
        RP_TRY(rp_vec_push(&r->module, of.v.s, err));
    }
    RP_TRY(rp_vec_reserve(&r->run, r->id.n + 1, err));
    return rp_dense_ids(r->id.at, r->id.n, r->run.at, &r->n, err);
}

RP_ORDER(by_begin, struct loop_mark, RP_UP(begin_ns), RP_UP(end_ns), RP_UP(event))

/* Makes a mark for each run, from the begin of its first operation to the end of the last one. */
static enum rp_code mark_runs(struct loop *w, const struct loop_runs *r, struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&w->marks, r->n + 1, err));
    for (size_t i = 0; i < r->op.n; i++) {
        rp_event e = r->op.at[i];
        int64_t begin = w->b->ev.ts_ns.at[e], end = rp_build_end_ns(w->b, e);

        struct loop_mark *mark = &w->marks.at[r->run.at[i]];
        if (r->run.at[i] == w->marks.n) {
            *mark = (struct loop_mark){e, begin, end, 0, r->module.at[i], RP_NONE};
            w->marks.n++;
        }
        mark->begin_ns = begin < mark->begin_ns ? begin : mark->begin_ns;
        mark->end_ns = end > mark->end_ns ? end : mark->end_ns;
        RP_TRY(rp_loop_work_push(&w->work, w->b, e, err));
    }
    rp_sort(w->marks.at, w->marks.n, sizeof *w->marks.at, by_begin);
    rp_loop_work_sort(&w->work);
    return RP_OK;
}

static enum rp_code list_runs(struct loop *w, struct rp_err *err)
{
    struct loop_runs r = {0};
    enum rp_code code = list_operations(w->b, &r, err);

    if (code == RP_OK)
        code = mark_runs(w, &r, err);
    RP_EACH(rp_vec_release, &r.id, &r.op, &r.module, &r.run);
    return code;
}

/* ------------------------------------------------------------------ rounds */

static int64_t boundary(const struct loop *w, size_t i)
{
    return w->at_end ? w->marks.at[i].end_ns : w->marks.at[i].begin_ns;
}

static int64_t boundary_after(const struct loop *w, size_t i)
{
    return i + 1 < w->marks.n ? boundary(w, i + 1) : INT64_MAX;
}

/* How much rounds differ from those `lag` marks later, on average: 0 to 1. A recorder that keeps
   only long operators makes rounds a little different by chance, equally at every lag. */
static double difference(const struct loop *w, size_t lag)
{
    size_t n = w->marks.n - 1, from = n > SAMPLED_ROUND + lag ? (n - SAMPLED_ROUND - lag) / 2 : 0;
    double differ = 0;
    size_t count = 0, i;

    for (i = from; i + lag < n && count < SAMPLED_ROUND; i++) {
        double one = rp_loop_work_differs(&w->work, boundary(w, i), boundary(w, i + 1),
                                          boundary(w, i + lag), boundary(w, i + lag + 1));

        if (isnan(one))
            continue; /* recorded without detail */
        differ += one;
        count++;
    }
    return count ? differ / (double)count : 1;
}

static bool has_backward(const struct loop *w, int64_t begin_ns, int64_t end_ns)
{
    return rp_loop_work_has(&w->work, w->b, begin_ns, end_ns, "ackward");
}

/* Whether the round after mark `with` does what the one after mark `i` does, and additional work
   that trains nothing: an evaluation. An executable with such a name updates what others
   computed. */
static bool adds_evaluation(const struct loop *w, size_t i, size_t with)
{
    static const char *const trains[] = {"ackward", "apply", "update", "optim", NULL};

    return rp_loop_work_adds(&w->work, w->b, boundary(w, i), boundary(w, i + 1), boundary(w, with),
                             boundary(w, with + 1), trains);
}

static size_t work_of_round(const struct loop *w, size_t i)
{
    return rp_loop_work_count(&w->work, boundary(w, i), boundary(w, i + 1));
}

/* Whether among every `lag` rounds one is like the others and contains an evaluation. Rounds
   without any work were recorded without detail. */
static bool is_now_and_then(const struct loop *w, size_t lag)
{
    size_t from = (w->marks.n - 1 - lag) / 2, most = from, other, i;

    for (i = from; i < from + lag; i++)
        if (work_of_round(w, i) > work_of_round(w, most))
            most = i;
    for (other = from; other < from + lag && (other == most || !work_of_round(w, other)); other++)
        ;
    if (other == from + lag)
        return false;
    for (i = from; i < from + lag; i++)
        if (i != most && i != other &&
            rp_loop_work_differs(&w->work, boundary(w, i), boundary(w, i + 1), boundary(w, other),
                                 boundary(w, other + 1)) >= RP_SAME_WORK)
            return false;
    return adds_evaluation(w, other, most);
}

/* After how many marks the owners in the later half are repeated in the same order; 0 if they are
   not known, there is only one, or there is no order. */
static size_t owners_of_round(const struct loop *w)
{
    const struct loop_mark *m = w->marks.at;
    size_t from = w->marks.n / 2, lag, i;

    for (i = from; i < w->marks.n && m[i].owner == m[from].owner; i++)
        ;
    if (i == w->marks.n)
        return 0;
    for (lag = 2; lag <= MOST_OWNERS && 2 * lag <= w->marks.n - from; lag++) {
        size_t end = w->marks.n - from > 2 * MOST_OWNERS ? from + 2 * MOST_OWNERS : w->marks.n;

        for (i = from; i + lag < end && m[i].owner == m[i + lag].owner; i++)
            ;
        if (i + lag == end)
            return lag;
    }
    return 0;
}

static bool is_in_backward(const struct rp_builder *b, rp_event e)
{
    for (int depth = 0; depth < DEEPEST && (e = b->ev.parent.at[e]) != RP_NONE; depth++)
        if (rp_is_named(rp_strtab_borrow(&b->str, b->ev.name.at[e]), RP_NAMED_BEGINS,
                        RP_BACKWARD_PREFIX))
            return true;
    return false;
}

/* Rounds of so many marks are like each other, and so is every second one; work that depends on
   data may agree once by chance. */
static bool is_round(const struct loop *w, size_t lag, double one)
{
    return difference(w, lag) < one / 2 &&
           (2 * lag + 1 >= w->marks.n || difference(w, 2 * lag) < one / 2);
}

static size_t marks_of_round(const struct loop *w)
{
    double one = difference(w, 1);
    size_t lag = owners_of_round(w);

    if (lag)
        return lag;
    if (one < RP_SAME_WORK)
        return 1;
    for (lag = 2; lag <= MOST_MARKS && LEAST_MARKS * lag <= w->marks.n; lag++)
        if (is_round(w, lag, one))
            return w->kind != LOOP_LOADER && w->kind != LOOP_FORWARD && is_now_and_then(w, lag)
                       ? 1
                       : lag;
    return 1;
}

RP_ORDER(ascending, int64_t, RP_COMPARE(*a, *b))

/* Computes the medians of the rounds, and their work if they have any; others were recorded without
   detail. */
static enum rp_code measure_usual(struct loop *w, struct rp_err *err)
{
    size_t n = w->marks.n - 1, detailed = 0, i;
    RP_VEC_LOCAL(int64_t, v);

    RP_TRY(rp_vec_reserve(&v, 2 * n, err));
    for (i = 0; i < n; i++) {
        size_t count = rp_loop_work_count(&w->work, boundary(w, i), boundary(w, i + 1));

        v.at[i] = rp_step_between(boundary(w, i), boundary(w, i + 1));
        if (count)
            v.at[n + detailed++] = (int64_t)count;
    }
    qsort(v.at, n, sizeof *v.at, ascending);
    qsort(v.at + n, detailed, sizeof *v.at, ascending);
    w->usual_ns = v.at[(n - 1) / 2]; /* of two, the shorter one, because the first may be warm-up */
    w->usual = detailed ? (size_t)v.at[n + detailed / 2] : 0;
    return RP_OK;
}

/* ------------------------------------------------------------------ steps */

/* Whether a round contains something else: clearly more work, and more time. */
static bool has_more(const struct loop *w, int64_t begin_ns, int64_t end_ns)
{
    size_t n = rp_loop_work_count(&w->work, begin_ns, end_ns);

    return n > w->usual + w->usual / MORE &&
           rp_step_between(begin_ns, end_ns) - w->usual_ns > w->usual_ns / MORE;
}

static struct rp_step step_of(const struct loop *w, size_t i)
{
    static const enum rp_step_source sources[LOOP_KINDS] = {
        [LOOP_OPTIMIZER] = RP_STEP_OPTIMIZER, [LOOP_EXECUTABLE] = RP_STEP_EXECUTABLE,
        [LOOP_LOADER] = RP_STEP_LOADER,       [LOOP_REPLAY] = RP_STEP_REPLAY,
        [LOOP_BACKWARD] = RP_STEP_BACKWARD,   [LOOP_COMPILED] = RP_STEP_COMPILED,
        [LOOP_FORWARD] = RP_STEP_FORWARD};
    struct rp_step step =
        rp_step_of_event(w->b, w->marks.at[i].event, sources[w->kind], (int64_t)i);

    step.name = w->marks.at[i].name;
    step.flags = 0; /* the host's */
    return step;
}

/* A step that ends with its mark begins after the previous one, or where its usual work begins. */
static void place_before_mark(const struct loop *w, size_t i, struct rp_step *step)
{
    int64_t after = i ? boundary(w, i - 1) : INT64_MIN, begin;

    step->end_ns = boundary(w, i);
    begin = i && !has_more(w, after, step->end_ns)
                ? after
                : rp_loop_work_begin(&w->work, step->end_ns, w->usual);
    begin = begin < w->marks.at[i].begin_ns ? begin : w->marks.at[i].begin_ns;
    step->begin_ns = begin > after ? begin : after;
}

/* A step that begins with its mark lasts until the next one, or until its usual work has ended. */
static void place_after_mark(const struct loop *w, size_t i, struct rp_step *step)
{
    int64_t next = boundary_after(w, i), end;

    step->begin_ns = boundary(w, i);
    end = i + 1 < w->marks.n && !has_more(w, step->begin_ns, next)
              ? next
              : rp_loop_work_end(&w->work, step->begin_ns, w->usual);
    end = end < w->marks.at[i].end_ns ? w->marks.at[i].end_ns : end;
    step->end_ns = end < next ? end : next;
}

static enum rp_code make_steps(struct loop *w, struct rp_err *err)
{
    for (size_t i = 0; i < w->marks.n; i++) {
        struct rp_step step = step_of(w, i);

        (w->at_end ? place_before_mark : place_after_mark)(w, i, &step);
        RP_TRY(rp_vec_push(&w->b->steps, step, err));
    }
    for (size_t i = 0; i + 1 < w->b->steps.n; i++)
        if (w->b->steps.at[i].end_ns < w->b->steps.at[i + 1].begin_ns)
            w->b->steps.at[i].flags |= RP_STEP_BREAK_AFTER;
    rp_steps_flag_warm_up(w->b, w->usual_ns);
    return RP_OK;
}

/* The calls of one track as marks and as work. */
static enum rp_code list_calls(struct loop *w, struct rp_err *err)
{
    uint32_t track = busiest_track(w);

    if (track == RP_NONE)
        return RP_OK;
    RP_TRY(list_marks(w, track, err));
    for (size_t i = 0; i < w->marks.n; i++)
        RP_TRY(rp_loop_work_push(&w->work, w->b, w->marks.at[i].event, err));
    return RP_OK;
}

/* Names launches after their graphs, if the device work tells which these are. */
static enum rp_code name_graphs(struct loop *w, struct rp_err *err)
{
    struct rp_builder *b = w->b;
    struct rp_mark_view v = rp_mark_view_of_builder(b);
    struct rp_launch_known known = {.link = RP_NONE};
    rp_str key = rp_build_find_str(b, "graph id");
    size_t i;

    for (rp_event e = 0; key != RP_NONE && e < v.nevents; e++) {
        struct rp_arg arg;
        char name[48];

        if (!rp_kind_is_device_work(v.kind[e]) || v.link[e] == RP_NONE ||
            !rp_args_find(&b->trace->args, b->ev.shape.at[e], b->ev.arg_row.at[e], key, &arg) ||
            arg.type != RP_ARG_I64)
            continue;
        int64_t at = rp_steps_launched_next(&v, v.link[e], &known);
        RP_LOWER_BOUND(i, w->marks.n, w->marks.at[i].begin_ns <= at);
        if (!i || at >= w->marks.at[i - 1].end_ns ||
            w->marks.at[i - 1].name != b->ev.name.at[w->marks.at[i - 1].event])
            continue;
        int len = snprintf(name, sizeof name, "launches of graph %" PRId64, arg.v.i);
        RP_TRY(rp_strtab_intern(&b->str, name, (size_t)len, &w->marks.at[i - 1].name, err));
    }
    return RP_OK;
}

static enum rp_code find_replays(struct loop *w, struct rp_err *err)
{
    RP_TRY(list_calls(w, err));
    RP_TRY(name_graphs(w, err));
    return keep_main_executable(w, err);
}

/* Finds the calls of the executable with most work; on the CPU its runs, which begin after the
   calls. */
static enum rp_code find_executable(struct loop *w, struct rp_err *err)
{
    RP_TRY(list_runs(w, err));
    if (!w->marks.n)
        RP_TRY(list_calls(w, err));
    return keep_main_executable(w, err);
}

/* Marks the first backward pass after each update, with the forward passes before them; the first
   of these is assumed as long as the second one. None if nothing updates parameters, or if only a
   few passes might do so, which are trials of operators. */
static enum rp_code mark_backward(struct loop *w, struct rp_err *err)
{
    rp_backward_vec passes = {0};
    enum rp_code code = rp_backward_passes(w->b, &w->work, &passes, err);
    size_t updates[RP_BACKWARD_UPDATED + 1] = {0}, i;

    w->marks.n = 0;
    for (i = 1; i < passes.n; i++)
        updates[passes.at[i].update]++;
    enum rp_backward_update least = updates[RP_BACKWARD_UPDATED] + 1 < LEAST_MARKS
                                        ? RP_BACKWARD_MAYBE_UPDATED
                                        : RP_BACKWARD_UPDATED;
    if (least == RP_BACKWARD_MAYBE_UPDATED && updates[least] + 1 < LEAST_UNSURE)
        passes.n = 0;
    for (i = 0; code == RP_OK && updates[least] && i < passes.n; i++) {
        const struct rp_backward *pass = &passes.at[i];
        struct loop_mark mark = {
            pass->event, pass->begin_ns, pass->end_ns, 0, w->b->ev.name.at[pass->event], RP_NONE};

        if (i && pass->update < least) {
            w->marks.at[w->marks.n - 1].end_ns = pass->end_ns;
            continue;
        }
        if (w->marks.n == 1)
            w->marks.at[0].begin_ns = rp_loop_work_begin(
                &w->work, w->b->ev.ts_ns.at[w->marks.at[0].event], pass->forward);
        code = rp_vec_push(&w->marks, mark, err);
    }
    rp_vec_release(&passes);
    return code;
}

static enum rp_code find_marks(struct loop *w, struct rp_err *err)
{
    uint32_t track = busiest_track(w);

    if (track == RP_NONE)
        return RP_OK;
    RP_TRY(list_marks(w, track, err));
    if (w->kind == LOOP_COMPILED) {
        /* Name compiled regions without the number of the compilation. Names are copied, because
           their table may move. */
        for (size_t i = 0; i < w->marks.n; i++) {
            const char *name = rp_strtab_borrow(&w->b->str, w->marks.at[i].name);
            const char *slash = strchr(name, '/');
            size_t len = slash ? (size_t)(slash - name) : 0;
            char copy[64];

            if (!len || len > sizeof copy)
                continue;
            memcpy(copy, name, len);
            RP_TRY(rp_strtab_intern(&w->b->str, copy, len, &w->marks.at[i].name, err));
        }
    }
    RP_TRY(rp_loop_work_init(&w->work, w->b, w->b->tracks.at[track].process, err));
    if (w->kind == LOOP_LOADER && rp_build_find_str(w->b, "without detail") == RP_NONE) {
        /* If batches are followed by backward passes, those without one are evaluations, and the
           last request of an epoch gets no batch; both are dropped. */
        size_t with_backward = 0, kept = 0, i;

        for (i = 0; i < w->marks.n; i++)
            with_backward += has_backward(w, boundary(w, i), boundary_after(w, i));
        for (i = 0; i < w->marks.n; i++)
            if (with_backward >= LEAST_MARKS
                    ? has_backward(w, boundary(w, i), boundary_after(w, i))
                    : rp_loop_work_count(&w->work, w->marks.at[i].end_ns, boundary_after(w, i)) > 0)
                w->marks.at[kept++] = w->marks.at[i];
        w->marks.n = kept;
    }
    if (w->kind == LOOP_OPTIMIZER && w->marks.n && !owners_of_round(w)) {
        /* If hooks of the backward pass update each parameter when its gradient is ready, the last
           of these optimizers in a pass is the mark. */
        struct loop_mark *m = w->marks.at;
        size_t kept = 0, i;

        for (i = 0; i < w->marks.n; i++) {
            if (kept && is_in_backward(w->b, m[i].event) &&
                is_in_backward(w->b, m[kept - 1].event) &&
                rp_loop_work_has_only(&w->work, w->b, m[kept - 1].end_ns, m[i].begin_ns,
                                      RP_BACKWARD_PREFIX))
                m[kept - 1] = m[i];
            else
                m[kept++] = m[i];
        }
        w->marks.n = kept;
    }
    return w->kind == LOOP_BACKWARD   ? mark_backward(w, err)
           : w->kind == LOOP_COMPILED ? keep_main_executable(w, err)
                                      : RP_OK;
}

static enum rp_code find_loop(struct loop *w, struct rp_err *err)
{
    w->at_end = w->kind == LOOP_OPTIMIZER;
    RP_TRY((w->kind == LOOP_EXECUTABLE ? find_executable
            : w->kind == LOOP_REPLAY   ? find_replays
                                       : find_marks)(w, err));
    if (w->marks.n < LEAST_MARKS || !w->work.items.n)
        return RP_OK;

    /* Keep one mark for each round: the last one, or if a step begins with its mark, the first
     * one. */
    size_t lag = marks_of_round(w), i, n = 0;
    for (i = w->at_end ? lag - 1 : 0; i < w->marks.n; i += lag)
        w->marks.at[n++] = w->marks.at[i];
    w->marks.n = n;

    if (w->marks.n < 2)
        return RP_OK;
    RP_TRY(measure_usual(w, err));
    return w->usual ? make_steps(w, err) : RP_OK;
}

static enum rp_code steps_by(struct rp_builder *b, enum loop_kind kind, struct rp_err *err)
{
    struct loop w = {.b = b, .kind = kind};
    enum rp_code code = rp_vec_zeros(&w.judged, b->str.n, err);

    if (code == RP_OK)
        code = find_loop(&w, err);
    RP_EACH(rp_vec_release, &w.judged, &w.marks);
    rp_loop_work_release(&w.work);
    return code;
}

/* Each kind of loop is one of the ways in which steps.c looks for steps. */
#define STEPS_BY(name, kind)                                                  \
    enum rp_code rp_steps_by_##name(struct rp_builder *b, struct rp_err *err) \
    {                                                                         \
        return steps_by(b, kind, err);                                        \
    }
STEPS_BY(optimizer, LOOP_OPTIMIZER)
STEPS_BY(executable, LOOP_EXECUTABLE)
STEPS_BY(loader, LOOP_LOADER)
STEPS_BY(replay, LOOP_REPLAY)
STEPS_BY(backward, LOOP_BACKWARD)
STEPS_BY(compiled, LOOP_COMPILED)
STEPS_BY(forward, LOOP_FORWARD)
