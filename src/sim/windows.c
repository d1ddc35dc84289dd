/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over windows is the hot path of the simulation: per task of a device one look at its
 * edges, one at each successor, one insertion into a sorted line and one removal. What it uses all
 * the time is a `struct now` in the caller's frame, which the compiler takes apart into registers.
 * Devices stand in blocks with the first moment of each, so that a window looks only at blocks in
 * which something happens. A failure to get memory is noted and answered at the end of the window.
 */
#include "sim/windows.h"

#include <stdlib.h>
#include <string.h>

#define NONE  UINT32_MAX
#define BLOCK 32 /* devices */
#define SHIFT 16 /* a task that comes out of order goes back by at most so many places */

#define INLINE  static inline __attribute__((always_inline))
#define RARE(x) __builtin_expect(!!(x), 0)

struct now {
    struct rp_windows *w;
    const struct rp_overlay *o;
    const uint32_t *first;
    const struct rp_task_edge *edges;
    const int64_t *lag_ns, *dur_ns;
    struct rp_window_task *tasks;
    struct rp_window_device *devices;
    int64_t *start_ns, *end_ns, *next_ns, *block_ns;
    uint32_t *stack, *picks;
    size_t nstack, npicks, done, nold;
    int64_t window_ns; /* its end */
    int64_t last_ns;
    bool fresh; /* there are new tasks or edges */
};

INLINE struct now now_of(struct rp_windows *w)
{
    const struct rp_task_graph *g = w->o->graph;

    return (struct now){.w = w,
                        .o = w->o,
                        .first = g->first.at,
                        .edges = g->edges.at,
                        .lag_ns = w->o->lag_ns.at,
                        .dur_ns = w->o->dur_ns.at,
                        .tasks = w->tasks.at,
                        .devices = w->devices,
                        .start_ns = w->r->start_ns.at,
                        .end_ns = w->r->end_ns.at,
                        .next_ns = w->next_ns,
                        .block_ns = w->block_ns,
                        .stack = w->stack,
                        .picks = w->picks,
                        .done = w->done,
                        .nold = g->tasks.n,
                        .last_ns = w->r->last_ns,
                        .fresh = w->o->tasks.n || w->o->edges.n};
}

/* A damaged recording may hold any number: sums stop at the end of time. */
INLINE int64_t later(int64_t at_ns, int64_t by_ns)
{
    int64_t sum;

    return RARE(__builtin_add_overflow(at_ns, by_ns, &sum)) ? INT64_MAX : sum;
}

/* ------------------------------------------------------------------ fetching ahead */

/* What a task needs when it is chosen, its edges when it ends, and what they lead to: each is asked
   for one stage ahead, since columns are longer than caches and waiting for them is most of a run.
 */
INLINE void fetch_task(const struct now *s, uint32_t task)
{
    __builtin_prefetch(&s->dur_ns[task]);
    __builtin_prefetch(&s->start_ns[task], 1);
    __builtin_prefetch(&s->end_ns[task], 1);
    __builtin_prefetch(&s->first[task]);
}

INLINE void fetch_edges(const struct now *s, uint32_t task)
{
    uint32_t first = s->first[task];

    __builtin_prefetch(&s->edges[first]);
    __builtin_prefetch(&s->lag_ns[first]);
}

INLINE void fetch_successor(const struct now *s, uint32_t task)
{
    uint32_t first = s->first[task];

    if (first < s->first[task + 1])
        __builtin_prefetch(&s->tasks[s->edges[first].to], 1);
}

/* ------------------------------------------------------------------ waiting tasks */

INLINE bool before(int64_t ready_ns, uint32_t task, const struct rp_window_entry *e)
{
    return ready_ns < e->ready_ns || (ready_ns == e->ready_ns && task < e->task);
}

static bool make_room(struct rp_window_device *d)
{
    struct rp_window_entry *at = d->near;

    if (d->head) {
        memmove(at, at + d->head, (d->n - d->head) * sizeof *at);
        d->n -= d->head;
        d->head = 0;
        if (d->n < d->cap - d->cap / 4)
            return true;
    }
    at = realloc(at, (d->cap ? 2 * (size_t)d->cap : 16) * sizeof *at);
    if (!at)
        return false;
    d->near = at;
    d->cap = d->cap ? 2 * d->cap : 16;
    return true;
}

static void put_aside(struct rp_windows *w, struct rp_window_device *d, int64_t ready_ns,
                      uint32_t task)
{
    struct rp_moment m = {ready_ns, task};

    w->failed |= rp_queue_push(d->rest, m, NULL) != RP_OK;
    d->rest_ns = ready_ns < d->rest_ns ? ready_ns : d->rest_ns;
}

/* Back from the end of the line to its place; where that is far, it waits among the rest. */
static void put_between(struct rp_windows *w, struct rp_window_device *d, int64_t ready_ns,
                        uint32_t task)
{
    struct rp_window_entry *at = d->near;
    uint32_t i = d->n, least = i - d->head > SHIFT ? i - SHIFT : d->head;

    if (least > d->head && before(ready_ns, task, &at[least - 1])) {
        put_aside(w, d, ready_ns, task);
        return;
    }
    for (; i > least && before(ready_ns, task, &at[i - 1]); i--)
        at[i] = at[i - 1];
    at[i] = (struct rp_window_entry){ready_ns, task};
    d->n++;
}

INLINE void put_near(struct rp_windows *w, struct rp_window_device *d, int64_t ready_ns,
                     uint32_t task)
{
    if (RARE(d->n == d->cap) && !make_room(d)) {
        w->failed = true;
        return;
    }
    if (d->head < d->n && before(ready_ns, task, &d->near[d->n - 1])) {
        put_between(w, d, ready_ns, task);
        return;
    }
    d->near[d->n++] = (struct rp_window_entry){ready_ns, task};
}

static void arrive_later(struct rp_windows *w, uint32_t device, int64_t ready_ns, uint32_t task)
{
    struct rp_window_device *d = &w->devices[device];
    int64_t *block = &w->block_ns[device / BLOCK];

    put_aside(w, d, ready_ns, task);
    if (d->running != NONE || d->picks || ready_ns >= w->next_ns[device])
        return;
    w->next_ns[device] = ready_ns;
    *block = ready_ns < *block ? ready_ns : *block;
}

INLINE void arrive(struct now *s, uint32_t device, int64_t ready_ns, uint32_t task)
{
    struct rp_window_device *d = &s->devices[device];

    if (s->nold > task)
        fetch_task(s, task);
    if (ready_ns >= s->window_ns) {
        arrive_later(s->w, device, ready_ns, task);
        return;
    }
    put_near(s->w, d, ready_ns, task);
    if (RARE(d->running == NONE && !d->picks)) {
        d->picks = true;
        s->picks[s->npicks++] = device;
    }
}

/* ------------------------------------------------------------------ edges */

INLINE void release_one(struct now *s, uint32_t task, int64_t ready_ns)
{
    struct rp_window_task *t = &s->tasks[task];

    ready_ns = ready_ns > t->ready_ns ? ready_ns : t->ready_ns;
    t->ready_ns = ready_ns;
    if (--t->left)
        return;
    if (t->device == NONE)
        s->stack[s->nstack++] = task;
    else
        arrive(s, t->device, ready_ns, task);
}

INLINE void pass_edge(struct now *s, const struct rp_task_edge *e, int64_t lag_ns, int64_t start_ns,
                      int64_t end_ns)
{
    if (!RARE(lag_ns == RP_LAG_CUT))
        release_one(s, e->to, later(e->flags & RP_EDGE_FROM_START ? start_ns : end_ns, lag_ns));
}

INLINE void pass_on(struct now *s, uint32_t task, int64_t start_ns, int64_t end_ns)
{
    uint32_t i, end;

    if (task < s->nold)
        for (i = s->first[task], end = s->first[task + 1]; i < end; i++)
            pass_edge(s, &s->edges[i], s->lag_ns[i], start_ns, end_ns);
    if (!s->fresh)
        return;
    for (i = s->o->newest.at[task]; i != NONE; i = s->o->edges.at[i].next)
        pass_edge(s, &s->o->edges.at[i].edge, s->o->edges.at[i].edge.lag_ns, start_ns, end_ns);
}

INLINE void keep(struct now *s, uint32_t task, int64_t start_ns, int64_t end_ns)
{
    s->start_ns[task] = start_ns;
    s->end_ns[task] = end_ns;
    s->last_ns = end_ns > s->last_ns ? end_ns : s->last_ns;
    s->done++;
}

INLINE void run_stack(struct now *s)
{
    while (s->nstack) {
        uint32_t task = s->stack[--s->nstack];
        int64_t start = s->tasks[task].ready_ns, end = later(start, s->dur_ns[task]);

        keep(s, task, start, end);
        pass_on(s, task, start, end);
    }
}

/* ------------------------------------------------------------------ a window */

INLINE int64_t first_of(const int64_t *at, size_t n)
{
    int64_t least = INT64_MAX;
    size_t i;

    for (i = 0; i < n; i++)
        least = at[i] < least ? at[i] : least;
    return least;
}

INLINE size_t block_end(size_t low, size_t n)
{
    return low + BLOCK < n ? low + BLOCK : n;
}

/* The devices to which something happens; tasks that end are asked for what follows them. */
INLINE void collect(struct now *s, size_t ndevices)
{
    size_t i, low;

    s->npicks = 0;
    for (low = 0; low < ndevices; low += BLOCK)
        if (s->block_ns[low / BLOCK] < s->window_ns)
            for (i = low; i < block_end(low, ndevices); i++) {
                s->picks[s->npicks] = (uint32_t)i;
                s->npicks += s->next_ns[i] < s->window_ns;
            }
    for (i = 0; i < s->npicks; i++) {
        struct rp_window_device *d = &s->devices[s->picks[i]];

        d->picks = true;
        if (d->running < s->nold)
            fetch_successor(s, d->running);
    }
}

INLINE void end_tasks(struct now *s)
{
    size_t i, n = s->npicks;

    for (i = 0; i < n; i++) {
        struct rp_window_device *d = &s->devices[s->picks[i]];
        uint32_t task = d->running;

        if (task == NONE)
            continue;
        d->running = NONE;
        pass_on(s, task, d->free_ns, d->free_ns);
        run_stack(s);
    }
}

/* The first of the rest comes before the first that is near. */
static void take_rest(struct rp_window_device *d, struct rp_window_entry *out)
{
    const struct rp_moment *m;

    *out = (struct rp_window_entry){d->rest_ns, rp_moment_what(rp_queue_pop(d->rest))};
    m = rp_queue_peek(d->rest);
    d->rest_ns = m ? m->key : INT64_MAX;
}

/* The smallest (ready, number) of those that wait. False where that is none before the end of the
   window: then *out says when. */
INLINE bool take(struct rp_window_device *d, int64_t window_ns, struct rp_window_entry *out)
{
    *out = d->near[d->head];
    if (d->head == d->n || RARE(d->rest_ns <= out->ready_ns)) {
        if (d->rest_ns >= window_ns || d->head == d->n) {
            out->ready_ns = d->rest_ns;
            if (d->rest_ns >= window_ns)
                return false;
            take_rest(d, out);
            return true;
        }
        if (d->rest_ns < out->ready_ns || rp_moment_what(*rp_queue_peek(d->rest)) < out->task) {
            take_rest(d, out);
            return true;
        }
    }
    d->head++;
    if (d->head == d->n)
        d->head = d->n = 0;
    return true;
}

INLINE void pick(struct now *s, uint32_t device)
{
    struct rp_window_device *d = &s->devices[device];
    struct rp_window_entry e;
    int64_t start;

    d->picks = false;
    if (!take(d, s->window_ns, &e)) {
        s->next_ns[device] = e.ready_ns;
        return;
    }
    start = e.ready_ns > d->free_ns ? e.ready_ns : d->free_ns;
    d->free_ns = later(start, s->dur_ns[e.task]);
    d->running = e.task;
    s->next_ns[device] = d->free_ns;
    keep(s, e.task, start, d->free_ns);
    if (e.task < s->nold)
        fetch_edges(s, e.task);
}

INLINE void choose(struct now *s, size_t ndevices)
{
    size_t i, b;

    for (i = 0; i < s->npicks; i++) {
        pick(s, s->picks[i]);
        s->block_ns[s->picks[i] / BLOCK] = INT64_MIN;
    }
    for (b = 0; b * BLOCK < ndevices; b++)
        if (s->block_ns[b] == INT64_MIN)
            s->block_ns[b] =
                first_of(s->next_ns + b * BLOCK, block_end(b * BLOCK, ndevices) - b * BLOCK);
}

enum rp_code rp_windows_go(struct rp_windows *w, int64_t until_ns, struct rp_err *err)
{
    size_t n = w->ndevices, blocks = (n + BLOCK - 1) / BLOCK;
    struct now s = now_of(w);
    int64_t first;

    while ((first = first_of(s.block_ns, blocks)) < until_ns && !w->failed) {
        s.window_ns = later(first, w->shortest_ns);
        s.window_ns = s.window_ns < until_ns ? s.window_ns : until_ns;
        collect(&s, n);
        end_tasks(&s);
        choose(&s, n);
    }
    w->done = s.done;
    w->r->last_ns = s.last_ns;
    return w->failed ? rp_err_nomem(err, "simulating") : RP_OK;
}

void rp_windows_begin(struct rp_windows *w)
{
    struct now s = now_of(w);
    size_t i, n = w->tasks.n;

    s.window_ns = INT64_MIN;
    for (i = 0; i < n; i++)
        if (!w->o->degree.at[i]) {
            s.tasks[i].left = 1;
            release_one(&s, (uint32_t)i, 0);
            run_stack(&s);
        }
    w->done = s.done;
    w->r->last_ns = s.last_ns;
}

/* ------------------------------------------------------------------ set-up */

static void set_up_tasks(struct rp_windows *w, size_t n)
{
    const struct rp_overlay *o = w->o;
    int64_t shortest = INT64_MAX;
    bool serial = true;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t device = rp_overlay_task(o, (uint32_t)i)->device;
        int64_t dur = o->dur_ns.at[i];

        w->tasks.at[i] = (struct rp_window_task){0, o->degree.at[i], device};
        if (device == RP_NO_DEVICE)
            continue;
        serial &= o->graph->devices.at[device].rule == RP_DEVICE_SERIAL;
        shortest = dur < shortest ? dur : shortest;
    }
    w->tasks.n = n;
    w->shortest_ns = shortest;
    w->fits = serial && shortest > 0;
}

static enum rp_code set_up_devices(struct rp_windows *w, struct rp_err *err)
{
    size_t i, n = w->o->graph->devices.n;

    w->devices = calloc(n + 1, sizeof *w->devices);
    w->rests = calloc(n + 1, sizeof *w->rests);
    w->next_ns = malloc((n + 1) * sizeof *w->next_ns);
    w->block_ns = malloc((n / BLOCK + 1) * sizeof *w->block_ns);
    w->picks = malloc((n + 1) * sizeof *w->picks);
    if (!w->devices || !w->rests || !w->next_ns || !w->block_ns || !w->picks)
        return rp_err_nomem(err, "simulating");
    w->ndevices = n;
    for (i = 0; i < n; i++) {
        w->devices[i] = (struct rp_window_device){
            .running = NONE, .rest_ns = INT64_MAX, .rest = &w->rests[i]};
        w->next_ns[i] = w->block_ns[i / BLOCK] = INT64_MAX;
        if (!make_room(&w->devices[i]))
            return rp_err_nomem(err, "simulating");
    }
    return RP_OK;
}

enum rp_code rp_windows_init(struct rp_windows *w, const struct rp_overlay *o,
                             struct rp_sim_result *r, struct rp_err *err)
{
    size_t n = rp_overlay_ntasks(o);

    memset(w, 0, sizeof *w);
    w->o = o;
    w->r = r;
    if (o->graph->prioritised || o->prioritised || o->graph->device_starts_matter ||
        o->device_starts_matter)
        return RP_OK;
    r->start_ns.n = r->end_ns.n = 0;
    r->last_ns = 0;
    RP_TRY(rp_vec_reserve(&r->start_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&r->end_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&w->tasks, n + 1, err));
    w->stack = malloc((n + 1) * sizeof *w->stack);
    if (!w->stack)
        return rp_err_nomem(err, "simulating");
    r->start_ns.n = r->end_ns.n = n;
    set_up_tasks(w, n);
    return w->fits ? set_up_devices(w, err) : RP_OK;
}

void rp_windows_release(struct rp_windows *w)
{
    size_t i;

    for (i = 0; w->devices && w->rests && i < w->ndevices; i++) {
        free(w->devices[i].near);
        rp_queue_release(&w->rests[i]);
    }
    free(w->devices);
    free(w->rests);
    free(w->next_ns);
    free(w->block_ns);
    free(w->picks);
    free(w->stack);
    rp_vec_release(&w->tasks);
}
