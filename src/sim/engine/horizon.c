/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over rounds is the hot path of the simulation: each task of a device costs one access to
 * its edges, one to each successor, one insertion into a sorted line and one removal. What it uses
 * all the time is a `struct now` in the caller's frame, which the compiler takes apart into
 * registers. Devices are in blocks with the first moment of each, so that a round looks only at
 * blocks in which something can happen. A device takes few turns a round, so that devices stay
 * close in time and what they send to each other comes nearly in order. A failed allocation is
 * noted and returned at the end of the round.
 */
#include "sim/engine/horizon.h"

#include "base/decides.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
/* What bounds the time of a round; it does not affect the simulated times. */
#define BLOCK 32
RP_LIMIT(BLOCK, "devices", "a round looks at blocks first; any gives the same times");
#define SHIFT 24
RP_LIMIT(SHIFT, "places",
         "a task that goes back by more waits in a heap; any gives the same times");
#define ROOM 15
RP_LIMIT(ROOM, "tasks", "a line grows beyond it");
#define TURNS 4
RP_LIMIT(TURNS, "tasks of a device in a round", "the rest waits for the next; same times");
#define NEAR 32
RP_LIMIT(NEAR, "mean durations", "what is ready later waits in a heap; any gives the same times");

#define INLINE  static inline __attribute__((always_inline))
#define RARE(x) __builtin_expect(!!(x), 0)

struct now {
    struct rp_horizon *h;
    const struct rp_task_link *edges;
    const int64_t *lag_ns;
    const struct rp_overlay *added;
    struct rp_plain_task *tasks;
    struct rp_horizon_device *devices;
    int64_t *at_ns, *ready_ns, *head_end_ns, *block_end_ns;
    uint32_t *stack, *begun, *stale;
    size_t nstack, nstale, done;
    int64_t near_ns; /* later tasks go to the rest */
};

INLINE struct now now_of(struct rp_horizon *h)
{
    return (struct now){.h = h,
                        .edges = h->g->edges,
                        .lag_ns = h->g->lag_ns,
                        .added = h->g->added,
                        .tasks = h->g->tasks.at,
                        .devices = h->devices,
                        .at_ns = h->at_ns,
                        .ready_ns = h->ready_ns,
                        .head_end_ns = h->end_ns,
                        .block_end_ns = h->block_end_ns,
                        .stack = h->stack,
                        .begun = h->begun,
                        .stale = h->stale,
                        .nstale = h->nstale,
                        .done = h->done,
                        .near_ns = -1};
}

/* No path through a plain graph is long enough to exceed the range of time. */
INLINE int64_t later(int64_t at_ns, int64_t by_ns)
{
    return at_ns + by_ns;
}

/* ------------------------------------------------------------------ fetching ahead */

/* Columns may be larger than caches, so what a task's edges lead to is prefetched when the task
   comes to the head of its line. */
INLINE void fetch_edges(const struct now *s, uint32_t task)
{
    __builtin_prefetch(&s->edges[s->tasks[task].first]);
    __builtin_prefetch(&s->lag_ns[s->tasks[task].first]);
}

INLINE void fetch_successor(const struct now *s, uint32_t task)
{
    if (s->tasks[task].first == s->tasks[task + 1].first)
        return;
    uint32_t to = s->edges[s->tasks[task].first].to;
    __builtin_prefetch(&s->tasks[to], 1);
    __builtin_prefetch(&s->at_ns[to], 1);
}

/* ------------------------------------------------------------------ the line of a device */

INLINE bool before(int64_t ready_ns, uint32_t task, const struct rp_horizon_entry *e)
{
    return ready_ns < e->ready_ns || (ready_ns == e->ready_ns && task < e->task);
}

/* The entry after the last of a line is never ready. */
static const struct rp_horizon_entry never = {INT64_MAX, NONE};

static bool make_room(struct rp_horizon_device *d)
{
    struct rp_horizon_entry *at = d->near;

    if (d->head) {
        memmove(at, at + d->head, (d->n - d->head) * sizeof *at);
        d->n -= d->head;
        d->head = 0;
        if (d->n <= d->cap / 2)
            return true;
    }
    at = realloc(at, (2 * (size_t)d->cap + 1) * sizeof *at);
    if (!at)
        return false;
    d->near = at;
    d->cap = 2 * d->cap;
    return true;
}

static void put_aside(struct rp_horizon *h, struct rp_horizon_device *d,
                      const struct rp_horizon_entry *e)
{
    struct rp_moment m = {e->ready_ns, e->task};

    h->failed |= rp_queue_push(&d->rest, m, NULL) != RP_OK;
    d->rest_ns = e->ready_ns < d->rest_ns ? e->ready_ns : d->rest_ns;
}

/* Moves a task back from the end of the line to its place; if that is far, it waits among the
   rest. */
INLINE void put_near(struct rp_horizon *h, struct rp_horizon_device *d,
                     const struct rp_horizon_entry *e)
{
    if (RARE(d->n == d->cap) && !make_room(d)) {
        h->failed = true;
        return;
    }
    struct rp_horizon_entry *at = d->near;
    uint32_t i = d->n;
    uint32_t least = i - d->head > SHIFT ? i - SHIFT : d->head;
    if (RARE(least > d->head) && before(e->ready_ns, e->task, &at[least - 1])) {
        put_aside(h, d, e);
        return;
    }
    for (; i > least && before(e->ready_ns, e->task, &at[i - 1]); i--)
        at[i] = at[i - 1];
    at[i] = *e;
    at[++d->n] = never;
}

/* Finds the smallest (ready, number) of those that wait, or `never`; returns whether it is near. */
INLINE bool look(const struct rp_horizon_device *d, struct rp_horizon_entry *out)
{
    *out = d->near[d->head];
    if (RARE(d->rest_ns <= out->ready_ns) && d->rest_ns != INT64_MAX) {
        struct rp_horizon_entry far = {d->rest_ns, rp_moment_what(*rp_queue_peek(&d->rest))};

        if (before(far.ready_ns, far.task, out)) {
            *out = far;
            return false;
        }
    }
    return true;
}

static void drop_rest(struct rp_horizon_device *d)
{
    rp_queue_pop(&d->rest);
    const struct rp_moment *m = rp_queue_peek(&d->rest);
    d->rest_ns = m ? m->key : INT64_MAX;
}

INLINE void drop(struct rp_horizon_device *d, bool near)
{
    if (RARE(!near))
        drop_rest(d);
    else
        d->head++;
}

/* Avoids a branch, which would be unpredictable. */
INLINE void make_stale(struct now *s, uint32_t device, bool so)
{
    struct rp_horizon_device *d = &s->devices[device];

    s->stale[s->nstale] = device;
    s->nstale += so & !d->stale;
    d->stale |= so;
}

INLINE void arrive(struct now *s, uint32_t device, int64_t ready_ns, uint32_t task)
{
    struct rp_horizon_device *d = &s->devices[device];
    struct rp_horizon_entry e = {ready_ns, task};

    fetch_edges(s, task);
    if (RARE(ready_ns > s->near_ns))
        put_aside(s->h, d, &e);
    else
        put_near(s->h, d, &e);
    make_stale(s, device, ready_ns <= s->ready_ns[device]);
}

/* ------------------------------------------------------------------ edges */

INLINE void release_one(struct now *s, uint32_t task, int64_t ready_ns)
{
    struct rp_plain_task *t = &s->tasks[task];
    int64_t *at = &s->at_ns[task], known = *at;

    known = t->left == t->degree ? INT64_MIN : known; /* at_ns is left over from another run */
    ready_ns = ready_ns > known ? ready_ns : known;
    *at = ready_ns;
    if (--t->left)
        return;
    t->left = t->degree;
    if (t->device == NONE)
        s->stack[s->nstack++] = task;
    else
        arrive(s, t->device, ready_ns, task);
}

INLINE void pass_edge(struct now *s, uint32_t to, uint32_t flags, int64_t lag_ns, int64_t start_ns,
                      int64_t end_ns)
{
    if (RARE(lag_ns == RP_LAG_CUT))
        return;
    release_one(s, to, later(RARE(flags & RP_EDGE_FROM_START) ? start_ns : end_ns, lag_ns));
}

/* A device's task has no edges from its start, so start_ns is its end. */
INLINE void pass_on(struct now *s, uint32_t task, int64_t start_ns, int64_t end_ns)
{
    uint32_t i = s->tasks[task].first, end = s->tasks[task + 1].first;

    for (; i < end; i++)
        pass_edge(s, s->edges[i].to, s->edges[i].flags, s->lag_ns[i], start_ns, end_ns);
    if (!RARE(s->added))
        return;
    for (i = rp_overlay_newest(s->added, task); i != NONE; i = s->added->edges.at[i].next) {
        const struct rp_task_edge *e = &s->added->edges.at[i].edge;

        pass_edge(s, e->to, e->flags, e->lag_ns, start_ns, end_ns);
    }
}

INLINE void keep(struct now *s, uint32_t task, int64_t start_ns)
{
    s->at_ns[task] = start_ns;
    if (s->begun)
        s->begun[s->done] = task;
    s->done++;
}

INLINE void run_stack(struct now *s)
{
    while (s->nstack) {
        uint32_t task = s->stack[--s->nstack];
        int64_t start = s->at_ns[task];

        keep(s, task, start);
        pass_on(s, task, start, later(start, s->tasks[task].dur_ns));
    }
}

/* ------------------------------------------------------------------ a round */

INLINE int64_t first_of(const int64_t *at, size_t n)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < n; i++)
        least = at[i] < least ? at[i] : least;
    return least;
}

INLINE size_t block_end(size_t low, size_t n)
{
    return low + BLOCK < n ? low + BLOCK : n;
}

/* Collects devices whose head is ready before the horizon. */
static size_t collect(struct rp_horizon *h, int64_t horizon_ns)
{
    size_t i, low, n = 0;

    for (low = 0; low < h->ndevices; low += BLOCK)
        if (h->block_ready_ns[low / BLOCK] < horizon_ns)
            for (i = low; i < block_end(low, h->ndevices); i++) {
                h->list[n] = (uint32_t)i;
                n += h->ready_ns[i] < horizon_ns;
            }
    return n;
}

INLINE void fetch_head(const struct now *s, const struct rp_horizon_device *d)
{
    if (d->near[d->head].task != NONE)
        fetch_successor(s, d->near[d->head].task);
}

INLINE void set_head(struct now *s, uint32_t device, int64_t ready_ns, int64_t end_ns)
{
    s->ready_ns[device] = ready_ns;
    s->head_end_ns[device] = end_ns;
    s->block_end_ns[device / BLOCK] = INT64_MIN;
}

/* Runs what a device has before the horizon, in its order; then finds what it has next. */
INLINE void take_turns(struct now *s, uint32_t device, int64_t horizon_ns, int64_t until_ns)
{
    struct rp_horizon_device *d = &s->devices[device];
    struct rp_horizon_entry e;
    int64_t start, end;

    for (int i = 0;; i++) {
        bool near = look(d, &e);

        if (e.ready_ns == INT64_MAX) {
            d->head = d->n = 0;
            d->near[0] = never;
            set_head(s, device, INT64_MAX, INT64_MAX);
            return;
        }
        start = e.ready_ns > d->free_ns ? e.ready_ns : d->free_ns;
        end = later(start, s->tasks[e.task].dur_ns);
        if (e.ready_ns >= horizon_ns || start >= until_ns || i == TURNS)
            break;
        drop(d, near);
        d->free_ns = end;
        keep(s, e.task, start);
        pass_on(s, e.task, start, end);
        run_stack(s);
    }
    set_head(s, device, e.ready_ns, end);
}

/* Updates the heads of the lines that changed, and when they would end. */
INLINE void refresh(struct now *s, size_t ndevices)
{
    for (size_t i = 0; i < s->nstale; i++) {
        struct rp_horizon_device *d = &s->devices[s->stale[i]];
        struct rp_horizon_entry e;
        int64_t end = INT64_MAX;

        look(d, &e);
        if (e.ready_ns != INT64_MAX)
            end = later(e.ready_ns > d->free_ns ? e.ready_ns : d->free_ns, s->tasks[e.task].dur_ns);
        set_head(s, s->stale[i], e.ready_ns, end);
        d->stale = false;
    }
    s->nstale = 0;
    for (size_t i = 0; i * BLOCK < ndevices; i++)
        if (s->block_end_ns[i] == INT64_MIN) {
            size_t low = i * BLOCK, count = block_end(low, ndevices) - low;

            s->block_end_ns[i] = first_of(s->head_end_ns + low, count);
            s->h->block_ready_ns[i] = first_of(s->ready_ns + low, count);
        }
}

enum rp_code rp_horizon_go(struct rp_horizon *h, int64_t until_ns, struct rp_err *err)
{
    size_t i, n, blocks = (h->ndevices + BLOCK - 1) / BLOCK, before_round;
    struct now s = now_of(h);

    do {
        refresh(&s, h->ndevices);
        int64_t horizon = first_of(h->block_end_ns, blocks);
        if (horizon == INT64_MAX)
            break;
        s.near_ns = horizon + NEAR * h->g->mean_ns;
        before_round = s.done;
        n = collect(h, horizon);
        for (i = 0; i < n; i++)
            fetch_head(&s, &h->devices[h->list[i]]);
        for (i = 0; i < n; i++)
            take_turns(&s, h->list[i], horizon, until_ns);
    } while (s.done > before_round && !h->failed);
    h->done = s.done;
    h->nstale = s.nstale;
    return h->failed ? rp_err_nomem(err, "simulating") : RP_OK;
}

/* Releases tasks that wait for nothing; others are released by their edges. */
void rp_horizon_begin(struct rp_horizon *h)
{
    struct now s = now_of(h);
    size_t i, n = h->g->n, nsources = 0;

    for (i = 0; i < n; i++)
        if (!s.tasks[i].degree)
            s.stack[n - ++nsources] = (uint32_t)i;
    while (nsources) {
        uint32_t task = s.stack[n - nsources--];

        s.at_ns[task] = 0;
        if (s.tasks[task].device == NONE)
            s.stack[s.nstack++] = task;
        else
            arrive(&s, s.tasks[task].device, 0, task);
        run_stack(&s);
    }
    h->done = s.done;
    h->nstale = s.nstale;
}

void rp_horizon_put(struct rp_horizon *h, uint32_t task, int64_t ready_ns)
{
    struct now s = now_of(h);

    arrive(&s, h->g->tasks.at[task].device, ready_ns, task);
    h->nstale = s.nstale;
}

/* ------------------------------------------------------------------ set-up */

enum rp_code rp_horizon_init(struct rp_horizon *h, struct rp_plain_graph *g, int64_t *at_ns,
                             struct rp_err *err)
{
    size_t n = g->ndevices, blocks = n / BLOCK + 1;

    memset(h, 0, sizeof *h);
    h->g = g;
    h->at_ns = at_ns;
    h->stack = malloc((g->n + 1) * sizeof *h->stack);
    h->devices = calloc(n + 1, sizeof *h->devices);
    h->ready_ns = malloc((2 * n + 2 * blocks) * sizeof *h->ready_ns);
    h->list = malloc((2 * n + 2) * sizeof *h->list);
    if (!h->stack || !h->devices || !h->ready_ns || !h->list)
        return rp_err_nomem(err, "simulating");
    h->end_ns = h->ready_ns + n;
    h->block_ready_ns = h->end_ns + n;
    h->block_end_ns = h->block_ready_ns + blocks;
    h->stale = h->list + n + 1;
    for (; h->ndevices < n; h->ndevices++) {
        struct rp_horizon_device *d = &h->devices[h->ndevices];

        d->near = malloc((ROOM + 1) * sizeof *d->near);
        RP_TRY(rp_err_need(d->near, err, "simulating"));
        d->cap = ROOM;
    }
    rp_horizon_clear(h);
    return RP_OK;
}

void rp_horizon_clear(struct rp_horizon *h)
{
    for (size_t i = 0; i < 2 * h->ndevices + 2 * (h->ndevices / BLOCK + 1); i++)
        h->ready_ns[i] = INT64_MAX;
    for (size_t i = 0; i < h->ndevices; i++) {
        struct rp_horizon_device *d = &h->devices[i];

        d->head = d->n = 0;
        if (d->near)
            d->near[0] = never;
        d->stale = false;
        d->free_ns = 0;
        d->rest_ns = INT64_MAX;
        d->rest.head = d->rest.run.n = d->rest.rest.at.n = 0;
    }
    h->nstale = 0;
    h->done = 0;
}

void rp_horizon_release(struct rp_horizon *h)
{
    for (size_t i = 0; h->devices && i < h->ndevices; i++) {
        free(h->devices[i].near);
        rp_queue_release(&h->devices[i].rest);
    }
    free(h->devices);
    free(h->ready_ns);
    free(h->list);
    free(h->stack);
}
