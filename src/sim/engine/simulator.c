/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator. Tasks without a device need no clock: they start when their last predecessor
 * allows it, and are run from a stack as soon as that is known. Tasks of a device become moments in
 * one heap, so that a device chooses among exactly the tasks that are ready then.
 *
 *     stack    tasks whose wait is over: without a device, or of a shared one
 *     heap     (time, END of a task | READY for its device), the earliest first
 *     idle     devices that choose when nothing more happens at this time
 *
 * A task that becomes ready at the current time joins the queue of its device at once, because the
 * order of a queue does not depend on who came first within one moment. So most tasks pass the heap
 * once.
 *
 * A shared device has a clock of its own that runs at 1/n while n tasks run: a task ends when that
 * clock has gone on by its duration. So an arrival or a departure moves one number, not n ends. It
 * counts in 1/SHARE of a nanosecond; the rounding of an end is below one nanosecond.
 */
#include "sim/engine/simulator.h"

#include "base/decides.h"
#include "base/filled.h"
#include "sim/engine/event_heap.h"
#include "sim/engine/horizon.h"

#include <stdlib.h>

#define SHARE 1024
RP_LIMIT(SHARE, "parts of a nanosecond", "the rounding of an end stays below one nanosecond");

enum moment { END, READY };

/* Tasks of one priority that wait for a serial device, ordered by (ready, number). */
struct line {
    struct rp_event_queue queue;
    struct line *next; /* of a larger priority */
    uint8_t priority;
};

struct device {
    struct line ready;          /* serial: tasks that wait for it; the first line has priority 0 */
    struct rp_event_heap queue; /* shared: running tasks by their end */
    size_t waiting;             /* serial: in all lines */
    struct rp_moment announced; /* shared: the end that is announced */
    int64_t clock, at_ns;       /* shared: its clock, as of at_ns */
    bool running;               /* serial: whether a task runs */
    bool picks;                 /* serial: it is in the list of idle devices */
    bool shared;
};

/* What the simulation needs about a task again and again, stored together. */
struct state {
    uint32_t degree; /* number of edges into it that were not passed yet */
    uint32_t device;
};

struct sim {
    const struct rp_overlay *o;
    struct rp_sim_result *r;
    struct rp_event_heap heap;
    RP_VEC(struct state) state; /* by task */
    RP_VEC(uint32_t) stack, idle;
    struct device *devices;
    int64_t now_ns;
    bool running; /* its first moment has come */
    size_t done;
};

/* A damaged recording may hold any number, so sums stop at the end of the range. */
static int64_t later(int64_t at_ns, int64_t by_ns)
{
    int64_t sum;

    return __builtin_add_overflow(at_ns, by_ns, &sum) ? INT64_MAX : sum;
}

static struct rp_moment moment_of(enum moment kind, int64_t at_ns, uint32_t task)
{
    return (struct rp_moment){at_ns, (uint64_t)kind << 32 | task};
}

static enum rp_code announce(struct sim *s, enum moment kind, int64_t at_ns, uint32_t task,
                             struct rp_err *err)
{
    return rp_heap_push(&s->heap, moment_of(kind, at_ns, task), err);
}

static enum rp_code queue_serial(struct sim *s, struct device *d, uint32_t task,
                                 struct rp_err *err);
static enum rp_code join_shared(struct sim *s, struct device *d, uint32_t task, int64_t now_ns,
                                struct rp_err *err);

/* Counts down what a task waits for; at zero it starts or queues. A task that starts now may let
   others start now, so it goes to the stack. */
static enum rp_code release_one(struct sim *s, uint32_t task, int64_t ready_ns, struct rp_err *err)
{
    struct state *state = &s->state.at[task];
    int64_t *start = &s->r->start_ns.at[task];

    *start = ready_ns > *start ? ready_ns : *start;
    if (--state->degree)
        return RP_OK;
    if (state->device == RP_NO_DEVICE)
        return rp_vec_push(&s->stack, task, err);
    if (s->running && *start == s->now_ns)
        return s->devices[state->device].shared
                   ? rp_vec_push(&s->stack, task, err)
                   : queue_serial(s, &s->devices[state->device], task, err);
    return announce(s, READY, *start, task, err);
}

enum pass { PASS_START = 1, PASS_END = 2 };

static enum rp_code pass_edge(struct sim *s, struct rp_task_edge e, uint32_t task, unsigned which,
                              struct rp_err *err)
{
    bool from_start = e.flags & RP_EDGE_FROM_START;
    int64_t anchor = from_start ? s->r->start_ns.at[task] : s->r->end_ns.at[task];

    if (e.lag_ns == RP_LAG_CUT || !(which & (from_start ? PASS_START : PASS_END)))
        return RP_OK;
    return release_one(s, e.to, later(anchor, e.lag_ns), err);
}

/* Releases what waited for the start of a task, for its end, or for both. */
static enum rp_code pass_on(struct sim *s, uint32_t task, unsigned which, struct rp_err *err)
{
    const struct rp_overlay *o = s->o;
    const struct rp_task_graph *g = o->graph;

    if (which == PASS_START && !g->starts_matter && !o->starts_matter)
        return RP_OK;
    if (task < g->tasks.n)
        for (uint32_t i = g->first.at[task]; i < g->first.at[task + 1]; i++)
            RP_TRY(pass_edge(
                s, (struct rp_task_edge){o->lag_ns.at[i], g->edges.at[i].to, g->edges.at[i].flags},
                task, which, err));
    for (uint32_t i = rp_overlay_newest(o, task); i != UINT32_MAX; i = o->edges.at[i].next)
        RP_TRY(pass_edge(s, o->edges.at[i].edge, task, which, err));
    return RP_OK;
}

static enum rp_code finish(struct sim *s, uint32_t task, unsigned which, struct rp_err *err)
{
    s->done++;
    if (s->r->end_ns.at[task] > s->r->last_ns)
        s->r->last_ns = s->r->end_ns.at[task];
    return pass_on(s, task, which, err);
}

static enum rp_code run_stack(struct sim *s, struct rp_err *err)
{
    while (s->stack.n) {
        uint32_t task = s->stack.at[--s->stack.n], device = s->state.at[task].device;

        if (device != RP_NO_DEVICE) {
            RP_TRY(join_shared(s, &s->devices[device], task, s->now_ns, err));
            continue;
        }
        s->r->end_ns.at[task] = later(s->r->start_ns.at[task], s->o->dur_ns.at[task]);
        RP_TRY(finish(s, task, PASS_START | PASS_END, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ shared devices */

static void advance(struct device *d, int64_t now_ns)
{
    int64_t gone;

    if (d->queue.at.n && !__builtin_mul_overflow(now_ns - d->at_ns, SHARE, &gone))
        d->clock = later(d->clock, gone / (int64_t)d->queue.at.n);
    d->at_ns = now_ns;
}

static enum rp_code announce_next_end(struct sim *s, struct device *d, struct rp_err *err)
{
    int64_t n = (int64_t)d->queue.at.n, rest;

    d->announced.key = -1;
    if (!n)
        return RP_OK;
    rest = d->queue.at.at[0].key - d->clock;
    if (rest <= 0)
        rest = 0;
    else if (__builtin_mul_overflow(rest, n, &rest))
        rest = INT64_MAX;
    else
        rest = rest / SHARE + (rest % SHARE != 0);
    d->announced = moment_of(END, later(d->at_ns, rest), rp_moment_what(d->queue.at.at[0]));
    return rp_heap_push(&s->heap, d->announced, err);
}

static enum rp_code join_shared(struct sim *s, struct device *d, uint32_t task, int64_t now_ns,
                                struct rp_err *err)
{
    struct rp_moment m = {0, task};

    advance(d, now_ns);
    if (__builtin_mul_overflow(s->o->dur_ns.at[task], SHARE, &m.key))
        m.key = INT64_MAX;
    m.key = later(m.key, d->clock);
    RP_TRY(rp_heap_push(&d->queue, m, err));
    RP_TRY(announce_next_end(s, d, err));
    return pass_on(s, task, PASS_START, err);
}

static enum rp_code end_shared(struct sim *s, struct device *d, uint32_t task, int64_t now_ns,
                               struct rp_err *err)
{
    int64_t key = d->queue.at.at[0].key;

    advance(d, now_ns);
    d->clock = d->clock < key ? key : d->clock;
    rp_heap_pop(&d->queue);
    s->r->end_ns.at[task] = now_ns;
    RP_TRY(announce_next_end(s, d, err));
    return finish(s, task, PASS_END, err);
}

/* ------------------------------------------------------------------ serial devices */

static enum rp_code ask_to_pick(struct sim *s, struct device *d, struct rp_err *err)
{
    if (d->picks || d->running || !d->waiting)
        return RP_OK;
    d->picks = true;
    return rp_vec_push(&s->idle, (uint32_t)(d - s->devices), err);
}

/* The line of a priority; a new one is put in its place. */
static struct line *line_of(struct device *d, uint8_t priority)
{
    struct line *at = &d->ready, *line;

    while (at->next && at->next->priority <= priority)
        at = at->next;
    if (at->priority == priority)
        return at;
    line = calloc(1, sizeof *line);
    if (line) {
        line->priority = priority;
        line->next = at->next;
        at->next = line;
    }
    return line;
}

static enum rp_code queue_serial(struct sim *s, struct device *d, uint32_t task, struct rp_err *err)
{
    struct rp_moment m = {s->now_ns, task};
    uint8_t priority =
        s->o->graph->prioritised || s->o->prioritised ? rp_overlay_task(s->o, task)->priority : 0;
    struct line *line = priority || d->ready.next ? line_of(d, priority) : &d->ready;

    RP_TRY(rp_err_need(line, err, "simulating"));
    RP_TRY(rp_queue_push(&line->queue, m, err));
    d->waiting++;
    return ask_to_pick(s, d, err);
}

static enum rp_code arrive(struct sim *s, uint32_t task, uint32_t device, struct rp_err *err)
{
    struct device *d = &s->devices[device];

    return d->shared ? join_shared(s, d, task, s->now_ns, err) : queue_serial(s, d, task, err);
}

static uint32_t take_next(struct device *d)
{
    struct line *line = &d->ready;

    while (!rp_queue_count(&line->queue))
        line = line->next;
    d->waiting--;
    return rp_moment_what(rp_queue_pop(&line->queue));
}

static enum rp_code pick(struct sim *s, struct device *d, struct rp_err *err)
{
    uint32_t task = take_next(d);
    int64_t now_ns = s->now_ns;

    d->picks = false;
    d->running = true;
    s->r->start_ns.at[task] = now_ns;
    s->r->end_ns.at[task] = later(now_ns, s->o->dur_ns.at[task]);
    RP_TRY(announce(s, END, s->r->end_ns.at[task], task, err));
    return pass_on(s, task, PASS_START, err);
}

static enum rp_code end_serial(struct sim *s, struct device *d, uint32_t task, struct rp_err *err)
{
    d->running = false;
    RP_TRY(ask_to_pick(s, d, err));
    return finish(s, task, PASS_END, err);
}

/* Lets the first of the idle devices choose. */
static enum rp_code pick_first(struct sim *s, struct rp_err *err)
{
    size_t i, first = 0;

    for (i = 1; i < s->idle.n; i++)
        if (s->idle.at[i] < s->idle.at[first])
            first = i;
    uint32_t device = s->idle.at[first];
    s->idle.at[first] = s->idle.at[--s->idle.n];
    return pick(s, &s->devices[device], err);
}

/* ------------------------------------------------------------------ the run */

/* An announced end of a shared device counts only if no task was added or removed since. */
static enum rp_code happen(struct sim *s, struct rp_moment m, struct rp_err *err)
{
    uint32_t task = rp_moment_what(m), device = s->state.at[task].device;
    struct device *d = &s->devices[device];

    s->now_ns = m.key;
    if ((enum moment)(m.rank >> 32) == READY)
        return arrive(s, task, device, err);
    if (!d->shared)
        return end_serial(s, d, task, err);
    return m.key == d->announced.key && m.rank == d->announced.rank
               ? end_shared(s, d, task, m.key, err)
               : RP_OK;
}

/* A device chooses only when nothing more can happen at this time. */
static enum rp_code run_next_time(struct sim *s, struct rp_err *err)
{
    if (s->idle.n && (!s->heap.at.n || s->heap.at.at[0].key > s->now_ns))
        RP_TRY(pick_first(s, err));
    else
        RP_TRY(happen(s, rp_heap_pop(&s->heap), err));
    return run_stack(s, err);
}

static enum rp_code alloc_simulation(struct sim *s, struct rp_err *err)
{
    const struct rp_overlay *o = s->o;
    size_t i, n = rp_overlay_ntasks(o);

    s->r->start_ns.n = s->r->end_ns.n = 0;
    s->r->last_ns = 0;
    RP_TRY(rp_vec_zeros(&s->r->start_ns, n, err));
    RP_TRY(rp_vec_zeros(&s->r->end_ns, n, err));
    RP_TRY(rp_vec_reserve(&s->state, n + 1, err));
    s->devices = calloc(o->graph->devices.n + 1, sizeof *s->devices);
    RP_TRY(rp_err_need(s->devices, err, "simulating"));
    for (i = 0; i < o->graph->devices.n; i++)
        s->devices[i].shared = o->graph->devices.at[i].rule == RP_DEVICE_SHARED;
    for (i = 0; i < n; i++)
        s->state.at[i] = (struct state){o->degree.at[i], rp_overlay_task(o, (uint32_t)i)->device};
    s->r->start_ns.n = s->r->end_ns.n = s->state.n = n;
    return RP_OK;
}

/* Tasks without predecessors are released once, as if they had an edge. */
static enum rp_code release_sources(struct sim *s, struct rp_err *err)
{
    size_t i, n = s->state.n;

    for (i = n; i-- > 0;)
        if (!s->state.at[i].degree) {
            s->state.at[i].degree = 1;
            RP_TRY(release_one(s, (uint32_t)i, 0, err));
        }
    return RP_OK;
}

static enum rp_code run_simulation(struct sim *s, struct rp_err *err)
{
    size_t i, n;

    RP_TRY(alloc_simulation(s, err));
    RP_TRY(release_sources(s, err));
    RP_TRY(run_stack(s, err));
    s->running = true;
    while (s->heap.at.n || s->idle.n)
        RP_TRY(run_next_time(s, err));
    n = s->state.n;
    if (s->done == n)
        return RP_OK;
    for (i = 0; i < n && !s->state.at[i].degree; i++)
        ;
    return rp_err_set(err, RP_BUG, "the simulation is stuck: task %zu depends on itself", i);
}

static void release_lines(struct device *d)
{
    struct line *line = d->ready.next, *next;

    rp_queue_release(&d->ready.queue);
    for (; line; line = next) {
        next = line->next;
        rp_queue_release(&line->queue);
        free(line);
    }
}

static enum rp_code simulate_any(const struct rp_overlay *o, struct rp_sim_result *out,
                                 struct rp_err *err)
{
    struct sim s = {.o = o, .r = out};
    enum rp_code code = run_simulation(&s, err);

    for (size_t i = 0; s.devices && i < o->graph->devices.n; i++) {
        rp_vec_release(&s.devices[i].queue.at);
        release_lines(&s.devices[i]);
    }
    free(s.devices);
    rp_vec_release(&s.heap.at);
    rp_vec_release(&s.stack);
    rp_vec_release(&s.idle);
    rp_vec_release(&s.state);
    return code;
}

/* ------------------------------------------------------------------ plain graphs */

#define LARGE_TASKS 1000000
RP_LIMIT(LARGE_TASKS, "tasks", "beyond it ends are filled from starts, to save memory; same times");

static enum rp_code make_room(struct rp_sim_result *r, size_t n, struct rp_err *err)
{
    r->start_ns.n = r->end_ns.n = 0;
    r->last_ns = 0;
    RP_TRY(rp_vec_reserve_full(&r->start_ns, n + 1, err));
    r->start_ns.n = n;
    return RP_OK;
}

static enum rp_code fill_ends(const struct rp_overlay *o, struct rp_sim_result *r,
                              struct rp_err *err)
{
    int64_t last = 0;
    size_t i, n = r->start_ns.n;

    RP_TRY(rp_vec_reserve_full(&r->end_ns, n + 1, err));
    r->end_ns.n = n;
    for (i = 0; i < n; i++) {
        int64_t end = r->start_ns.at[i] + o->dur_ns.at[i];

        r->end_ns.at[i] = end;
        last = end > last ? end : last;
    }
    r->last_ns = last;
    return RP_OK;
}

/* *done is false if not every task was run. */
static enum rp_code simulate_plain(struct rp_plain_graph *g, struct rp_sim_result *out, bool *done,
                                   struct rp_err *err)
{
    RP_SCOPED(rp_horizon_release) struct rp_horizon h = {0};

    RP_TRY(make_room(out, g->n, err));
    RP_TRY(rp_horizon_init(&h, g, out->start_ns.at, err));
    rp_horizon_begin(&h);
    RP_TRY(rp_horizon_go(&h, INT64_MAX, err));
    *done = h.done == g->n;
    return RP_OK;
}

/* A plain graph needs no queue of events; if its run does not finish, the other method finds out
   why. */
enum rp_code rp_simulate(const struct rp_overlay *o, struct rp_sim_result *out, struct rp_err *err)
{
    struct rp_plain_graph g;
    bool done = false;

    if (rp_overlay_ntasks(o) > LARGE_TASKS) /* ends follow from starts, so they are filled later */
        rp_vec_release(&out->end_ns);
    enum rp_code code = rp_plain_graph_init(&g, o, err);
    if (code == RP_OK && g.fits)
        code = simulate_plain(&g, out, &done, err);
    rp_plain_graph_release(&g);
    if (code == RP_OK && done)
        code = fill_ends(o, out, err);
    return code == RP_OK && !done ? simulate_any(o, out, err) : code;
}

void rp_sim_result_release(struct rp_sim_result *r)
{
    rp_vec_release(&r->start_ns);
    rp_vec_release(&r->end_ns);
}
