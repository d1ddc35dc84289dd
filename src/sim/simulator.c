/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator. Tasks without a device need no clock: they start when the last of what they wait
 * for allows it, and are run from a stack as soon as that is known. Tasks of a device become
 * moments in one heap, so that a device chooses among all that is ready then, and nothing that is
 * not.
 *
 *     stack    tasks without a device whose wait is over
 *     heap     (time, END of a task | READY for its device), the earliest first
 *     idle     devices that choose when nothing more happens at this time
 *
 * What becomes ready at this very time joins the queue of its device at once: the order of a queue
 * does not depend on who came first within one moment. So most tasks pass the heap once.
 *
 * A shared device has a clock of its own that runs at 1/n while n tasks run: a task ends when that
 * clock has gone on by its duration. So an arrival or a departure moves one number, not n ends. It
 * counts in 1/SHARE of a nanosecond; the rounding of an end is below one nanosecond.
 */
#include "sim/simulator.h"

#include "sim/event_heap.h"

#include <stdlib.h>
#include <string.h>

#define SHARE 1024

enum moment { END, READY };

struct device {
    struct rp_event_queue ready; /* serial: tasks that wait for it */
    struct rp_event_heap queue;  /* shared: running ones by their end */
    uint32_t running;            /* serial: whether a task runs */
    uint32_t version;            /* shared: of the end that is announced */
    int64_t clock, at_ns;        /* shared: its clock, as of at_ns */
    bool picks;                  /* serial: it is among the idle */
};

struct sim {
    const struct rp_overlay *o;
    struct rp_sim_result *r;
    struct rp_event_heap heap;
    RP_VEC(uint32_t) stack, degree, idle;
    struct device *devices;
    int64_t now_ns;
    bool running; /* the first moment has come */
    size_t done;
};

/* A damaged recording may hold any number: sums stop at the end of time. */
static int64_t later(int64_t at_ns, int64_t by_ns)
{
    int64_t sum;

    return __builtin_add_overflow(at_ns, by_ns, &sum) ? INT64_MAX : sum;
}

static enum rp_code announce(struct sim *s, enum moment kind, int64_t at_ns, uint32_t what,
                             uint32_t version, struct rp_err *err)
{
    struct rp_moment m = {at_ns, (uint64_t)kind << 32 | what, what, version};

    return rp_heap_push(&s->heap, m, err);
}

static enum rp_code arrive(struct sim *s, uint32_t task, const struct rp_task *t,
                           struct rp_err *err);

/* One thing less to wait for; the last makes the task start or queue. */
static enum rp_code release_one(struct sim *s, uint32_t task, int64_t ready_ns, struct rp_err *err)
{
    const struct rp_task *t;

    if (ready_ns > s->r->start_ns.at[task])
        s->r->start_ns.at[task] = ready_ns;
    if (--s->degree.at[task])
        return RP_OK;
    t = rp_overlay_task(s->o, task);
    if (t->device == RP_NO_DEVICE)
        return rp_vec_push(&s->stack, task, err);
    if (s->running && s->r->start_ns.at[task] == s->now_ns)
        return arrive(s, task, t, err);
    return announce(s, READY, s->r->start_ns.at[task], task, 0, err);
}

enum pass { PASS_START = 1, PASS_END = 2 };

static enum rp_code pass_edge(struct sim *s, const struct rp_task_edge *e, int64_t lag_ns,
                              uint32_t task, unsigned which, struct rp_err *err)
{
    bool from_start = e->flags & RP_EDGE_FROM_START;
    int64_t anchor = from_start ? s->r->start_ns.at[task] : s->r->end_ns.at[task];

    if (lag_ns == RP_LAG_CUT || !(which & (from_start ? PASS_START : PASS_END)))
        return RP_OK;
    return release_one(s, e->to, later(anchor, lag_ns), err);
}

/* What waited for the start of a task, for its end, or for both. */
static enum rp_code pass_on(struct sim *s, uint32_t task, unsigned which, struct rp_err *err)
{
    const struct rp_overlay *o = s->o;
    const struct rp_task_graph *g = o->graph;
    uint32_t i;

    if (task < g->tasks.n)
        for (i = g->first.at[task]; i < g->first.at[task + 1]; i++)
            RP_TRY(pass_edge(s, &g->edges.at[i], o->lag_ns.at[i], task, which, err));
    for (i = o->newest.at[task]; i != UINT32_MAX; i = o->edges.at[i].next)
        RP_TRY(pass_edge(s, &o->edges.at[i].edge, o->edges.at[i].edge.lag_ns, task, which, err));
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
        uint32_t task = s->stack.at[--s->stack.n];

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

    d->version++;
    if (!n)
        return RP_OK;
    rest = d->queue.at.at[0].key - d->clock;
    if (rest <= 0)
        rest = 0;
    else if (__builtin_mul_overflow(rest, n, &rest))
        rest = INT64_MAX;
    else
        rest = rest / SHARE + (rest % SHARE != 0);
    return announce(s, END, later(d->at_ns, rest), d->queue.at.at[0].what, d->version, err);
}

static enum rp_code join_shared(struct sim *s, struct device *d, uint32_t task, int64_t now_ns,
                                struct rp_err *err)
{
    struct rp_moment m = {0, task, task, 0};

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
    if (d->picks || d->running || !rp_queue_count(&d->ready))
        return RP_OK;
    d->picks = true;
    return rp_vec_push(&s->idle, (uint32_t)(d - s->devices), err);
}

static enum rp_code queue_serial(struct sim *s, struct device *d, uint32_t task,
                                 const struct rp_task *t, struct rp_err *err)
{
    struct rp_moment m = {t->priority, (uint64_t)s->now_ns, task, 0};

    RP_TRY(rp_queue_push(&d->ready, m, err));
    return ask_to_pick(s, d, err);
}

static enum rp_code arrive(struct sim *s, uint32_t task, const struct rp_task *t,
                           struct rp_err *err)
{
    struct device *d = &s->devices[t->device];

    return s->o->graph->devices.at[t->device].rule == RP_DEVICE_SHARED
               ? join_shared(s, d, task, s->now_ns, err)
               : queue_serial(s, d, task, t, err);
}

static enum rp_code pick(struct sim *s, struct device *d, struct rp_err *err)
{
    uint32_t task = rp_queue_pop(&d->ready).what;
    int64_t now_ns = s->now_ns;

    d->picks = false;
    d->running = 1;
    s->r->start_ns.at[task] = now_ns;
    s->r->end_ns.at[task] = later(now_ns, s->o->dur_ns.at[task]);
    RP_TRY(announce(s, END, s->r->end_ns.at[task], task, 0, err));
    return pass_on(s, task, PASS_START, err);
}

static enum rp_code end_serial(struct sim *s, struct device *d, uint32_t task, struct rp_err *err)
{
    d->running = 0;
    RP_TRY(ask_to_pick(s, d, err));
    return finish(s, task, PASS_END, err);
}

/* The first of the idle devices chooses. */
static enum rp_code pick_first(struct sim *s, struct rp_err *err)
{
    size_t i, first = 0;
    uint32_t device;

    for (i = 1; i < s->idle.n; i++)
        if (s->idle.at[i] < s->idle.at[first])
            first = i;
    device = s->idle.at[first];
    s->idle.at[first] = s->idle.at[--s->idle.n];
    return pick(s, &s->devices[device], err);
}

/* ------------------------------------------------------------------ the run */

static enum rp_code happen(struct sim *s, struct rp_moment m, struct rp_err *err)
{
    const struct rp_task *t = rp_overlay_task(s->o, m.what);
    struct device *d = &s->devices[t->device];

    s->now_ns = m.key;
    if ((enum moment)(m.rank >> 32) == READY)
        return arrive(s, m.what, t, err);
    if (s->o->graph->devices.at[t->device].rule == RP_DEVICE_SERIAL)
        return end_serial(s, d, m.what, err);
    return m.version == d->version ? end_shared(s, d, m.what, m.key, err) : RP_OK;
}

/* A device chooses only when nothing more can happen at this time. */
static enum rp_code go_on(struct sim *s, struct rp_err *err)
{
    if (s->idle.n && (!s->heap.at.n || s->heap.at.at[0].key > s->now_ns))
        RP_TRY(pick_first(s, err));
    else
        RP_TRY(happen(s, rp_heap_pop(&s->heap), err));
    return run_stack(s, err);
}

static enum rp_code set_up(struct sim *s, struct rp_err *err)
{
    const struct rp_overlay *o = s->o;
    size_t n = rp_overlay_ntasks(o);

    s->r->start_ns.n = s->r->end_ns.n = 0;
    s->r->last_ns = 0;
    RP_TRY(rp_vec_reserve(&s->r->start_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&s->r->end_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&s->degree, n + 1, err));
    s->devices = calloc(o->graph->devices.n + 1, sizeof *s->devices);
    if (!s->devices)
        return rp_err_nomem(err, "simulating");
    memset(s->r->start_ns.at, 0, n * sizeof *s->r->start_ns.at);
    memset(s->r->end_ns.at, 0, n * sizeof *s->r->end_ns.at);
    if (n)
        memcpy(s->degree.at, o->degree.at, n * sizeof *s->degree.at);
    s->r->start_ns.n = s->r->end_ns.n = s->degree.n = n;
    return RP_OK;
}

/* What waits for nothing is released once more than it has edges. */
static enum rp_code begin(struct sim *s, struct rp_err *err)
{
    size_t i, n = s->degree.n;

    for (i = n; i-- > 0;)
        if (!s->degree.at[i]) {
            s->degree.at[i] = 1;
            RP_TRY(release_one(s, (uint32_t)i, 0, err));
        }
    return RP_OK;
}

static enum rp_code run(struct sim *s, struct rp_err *err)
{
    size_t i, n;

    RP_TRY(set_up(s, err));
    RP_TRY(begin(s, err));
    RP_TRY(run_stack(s, err));
    s->running = true;
    while (s->heap.at.n || s->idle.n)
        RP_TRY(go_on(s, err));
    n = s->degree.n;
    if (s->done == n)
        return RP_OK;
    for (i = 0; i < n && !s->degree.at[i]; i++)
        ;
    return rp_err_set(err, RP_BUG, "the simulation cannot go on: task %zu waits for itself", i);
}

enum rp_code rp_simulate(const struct rp_overlay *o, struct rp_sim_result *out, struct rp_err *err)
{
    struct sim s = {.o = o, .r = out};
    enum rp_code code = run(&s, err);
    size_t i;

    for (i = 0; s.devices && i < o->graph->devices.n; i++) {
        rp_vec_release(&s.devices[i].queue.at);
        rp_queue_release(&s.devices[i].ready);
    }
    free(s.devices);
    rp_vec_release(&s.heap.at);
    rp_vec_release(&s.stack);
    rp_vec_release(&s.idle);
    rp_vec_release(&s.degree);
    return code;
}

void rp_sim_result_release(struct rp_sim_result *r)
{
    rp_vec_release(&r->start_ns);
    rp_vec_release(&r->end_ns);
}
