/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bit for each position in the order marks a task that must be recomputed. Bits are taken from
 * the front, so that each task is recomputed after all that it waits for. A task affects only later
 * positions, except for tasks of a device that exchanged places and for edges that were cut in the
 * base; in these cases the sweep goes back. It ends when no bit is set, or gives up when it has
 * visited more tasks than another method would cost.
 */
#include "sim/engine/resim_sweep.h"

#include "base/decides.h"
#include "base/filled.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Visiting a task costs several times as much as in a replay, so if more than a part of the tasks
   is reached, or many of them change places, other methods are quicker. */
#define PART 64
RP_LIMIT(PART, "tasks for each look", "beyond it the tail is replayed; any gives the same times");
#define LOOKS 1024
RP_LIMIT(LOOKS, "looks", "however few tasks there are; any gives the same times");
#define MOVES 16
RP_LIMIT(MOVES, "looks for each task that changes places, and tasks that always may",
         "beyond it the tail is replayed; any gives the same times");

#define SAME_TASK 4
RP_LIMIT(SAME_TASK, "changes for each look",
         "of more a sweep is not begun; any gives the same times");

/* ------------------------------------------------------------------ making */

static enum rp_code turn_around(struct rp_resim_sweep *s, struct rp_err *err)
{
    const struct rp_plain_graph *g = s->g;
    size_t n = g->n, m = g->tasks.at[n].first;
    uint32_t v, i, sum = 0;

    RP_TRY(rp_vec_zeros(&s->first, n, err));
    RP_TRY(rp_vec_reserve(&s->in, m + 1, err));
    RP_TRY(rp_vec_reserve(&s->in_of, m + 1, err));
    for (i = 0; i < m; i++)
        s->first.at[g->edges[i].to]++;
    for (v = 0; v <= n; v++) {
        sum += s->first.at[v];
        s->first.at[v] = sum;
    }
    for (v = (uint32_t)n; v-- > 0;)
        for (i = g->tasks.at[v + 1].first; i-- > g->tasks.at[v].first;) {
            const struct rp_task_link *e = &g->edges[i];
            uint32_t at = --s->first.at[e->to];

            s->in.at[at] =
                (struct rp_resim_in){v | (e->flags & RP_EDGE_FROM_START ? RP_PLAIN_FROM_START : 0),
                                     rp_plain_lag(g->lag_ns[i])};
            s->in_of.at[i] = at;
        }
    return RP_OK;
}

/* When the last of its predecessors lets a task go. */
static inline int64_t ready_of(const struct rp_resim_sweep *s, const struct rp_sim_result *r,
                               uint32_t task)
{
    const struct rp_resim_in *e = &s->in.at[s->first.at[task]];
    const struct rp_resim_in *end = &s->in.at[s->first.at[task + 1]];
    int64_t ready = 0, at;

    for (; e < end; e++) {
        if (e->lag_ns == RP_PLAIN_CUT)
            continue;
        at = e->from & RP_PLAIN_FROM_START ? r->start_ns.at[e->from & ~RP_PLAIN_FROM_START]
                                           : r->end_ns.at[e->from];
        at += e->lag_ns;
        ready = at > ready ? at : ready;
    }
    return ready;
}

/* The sequence of each device is that in which its tasks were begun. */
static enum rp_code line_up(struct rp_resim_sweep *s, struct rp_err *err)
{
    uint32_t *last = malloc((s->g->ndevices + 1) * sizeof *last);

    RP_TRY(rp_err_need(last, err, "simulating"));
    memset(last, 0xff, (s->g->ndevices + 1) * sizeof *last);
    for (size_t i = 0; i < s->g->n; i++) {
        uint32_t task = s->order[i], device = s->g->tasks.at[task].device;

        s->before.at[task] = s->behind.at[task] = NONE;
        s->ready_ns.at[task] = ready_of(s, s->r, task);
        if (device == RP_NO_DEVICE)
            continue;
        s->before.at[task] = last[device];
        if (last[device] != NONE)
            s->behind.at[last[device]] = task;
        last[device] = task;
    }
    free(last);
    return RP_OK;
}

enum rp_code rp_resim_sweep_init(struct rp_resim_sweep *s, const struct rp_plain_graph *g,
                                 const uint32_t *order, const uint32_t *place,
                                 struct rp_sim_result *base, struct rp_err *err)
{
    size_t n = g->n;

    memset(s, 0, sizeof *s);
    s->g = g;
    s->order = order;
    s->place = place;
    s->r = base;
    s->low = SIZE_MAX;
    RP_TRY(rp_vec_reserve(&s->before, n + 1, err));
    RP_TRY(rp_vec_reserve(&s->behind, n + 1, err));
    RP_TRY(rp_vec_reserve(&s->ready_ns, n + 1, err));
    RP_TRY(rp_vec_zeros(&s->dirty, n / 64, err));
    RP_TRY(turn_around(s, err));
    return line_up(s, err);
}

void rp_resim_sweep_release(struct rp_resim_sweep *s)
{
    rp_vec_release(&s->first);
    rp_vec_release(&s->in);
    rp_vec_release(&s->in_of);
    rp_vec_release(&s->before);
    rp_vec_release(&s->behind);
    rp_vec_release(&s->ready_ns);
    rp_vec_release(&s->dirty);
    rp_vec_release(&s->log);
    rp_vec_release(&s->moved);
}

/* ------------------------------------------------------------------ sweeping */

void rp_resim_sweep_touch(struct rp_resim_sweep *s, uint32_t task)
{
    size_t word = s->place[task] / 64;

    s->dirty.at[word] |= UINT64_C(1) << s->place[task] % 64;
    s->low = word < s->low ? word : s->low;
}

/* Exchanges b with a, which comes directly before it on the device. */
static void change_places(struct rp_resim_sweep *s, uint32_t a, uint32_t b)
{
    uint32_t before = s->before.at[a], behind = s->behind.at[b];

    if (before != NONE)
        s->behind.at[before] = b;
    if (behind != NONE)
        s->before.at[behind] = a;
    s->before.at[b] = before;
    s->behind.at[b] = a;
    s->before.at[a] = b;
    s->behind.at[a] = behind;
}

static bool in_turn(int64_t ready_a, uint32_t a, int64_t ready_b, uint32_t b)
{
    return ready_a != ready_b ? ready_a < ready_b : a < b;
}

/* Moves a task forward on its device as long as it comes before its turn. */
static enum rp_code find_turn(struct rp_resim_sweep *s, uint32_t task, struct rp_err *err)
{
    for (;;) {
        uint32_t before = s->before.at[task];

        if (before == NONE || in_turn(s->ready_ns.at[before], before, s->ready_ns.at[task], task))
            return RP_OK;
        RP_TRY(rp_vec_push(&s->moved, task, err));
        change_places(s, before, task);
        rp_resim_sweep_touch(s, before);
        if (s->behind.at[before] != NONE)
            rp_resim_sweep_touch(s, s->behind.at[before]);
    }
}

static enum rp_code note_change(struct rp_resim_sweep *s, uint32_t task, int64_t ready,
                                int64_t begin, int64_t end, struct rp_err *err)
{
    struct rp_resim_change old = {task, s->r->start_ns.at[task], s->r->end_ns.at[task],
                                  s->ready_ns.at[task]};

    RP_TRY(rp_vec_push(&s->log, old, err));
    s->ready_ns.at[task] = ready;
    s->r->start_ns.at[task] = begin;
    s->r->end_ns.at[task] = end;
    if (s->behind.at[task] != NONE)
        rp_resim_sweep_touch(s, s->behind.at[task]);
    if (begin != old.start_ns || end != old.end_ns)
        for (uint32_t i = s->g->tasks.at[task].first; i < s->g->tasks.at[task + 1].first; i++)
            rp_resim_sweep_touch(s, s->g->edges[i].to);
    return RP_OK;
}

/* The most tasks that a sweep visits. */
static size_t most_looks(const struct rp_resim_sweep *s)
{
    return LOOKS + s->g->n / PART;
}

bool rp_resim_sweep_may_end(const struct rp_resim_sweep *s, size_t nchanges)
{
    return nchanges / SAME_TASK <= most_looks(s);
}

enum rp_code rp_resim_sweep_run(struct rp_resim_sweep *s, bool *ok, struct rp_err *err)
{
    size_t words = s->g->n / 64 + 1, most = most_looks(s);

    s->visited = 0;
    while (s->low < words && *ok) {
        size_t word = s->low, place;

        if (!s->dirty.at[word]) {
            s->low++;
            continue;
        }
        place = 64 * word + (size_t)__builtin_ctzll(s->dirty.at[word]);
        s->dirty.at[word] &= s->dirty.at[word] - 1;

        uint32_t task = s->order[place];
        int64_t ready = ready_of(s, s->r, task), begin, end;
        s->visited++;
        if (ready != s->ready_ns.at[task])
            RP_TRY(
                note_change(s, task, ready, s->r->start_ns.at[task], s->r->end_ns.at[task], err));
        RP_TRY(find_turn(s, task, err));
        uint32_t before = s->before.at[task];
        begin = before != NONE && s->r->end_ns.at[before] > ready ? s->r->end_ns.at[before] : ready;
        end = begin + s->g->tasks.at[task].dur_ns;
        if (begin != s->r->start_ns.at[task] || end != s->r->end_ns.at[task])
            RP_TRY(note_change(s, task, ready, begin, end, err));
        *ok = s->visited <= most && s->moved.n <= MOVES + s->visited / MOVES;
    }
    return RP_OK;
}

void rp_resim_sweep_undo(struct rp_resim_sweep *s)
{
    for (; s->low < s->g->n / 64 + 1; s->low++)
        s->dirty.at[s->low] = 0;
    s->low = SIZE_MAX;
    while (s->log.n) {
        const struct rp_resim_change *c = &s->log.at[--s->log.n];

        s->r->start_ns.at[c->task] = c->start_ns;
        s->r->end_ns.at[c->task] = c->end_ns;
        s->ready_ns.at[c->task] = c->ready_ns;
    }
    while (s->moved.n) {
        uint32_t task = s->moved.at[--s->moved.n];

        change_places(s, task, s->behind.at[task]);
    }
}

/* ------------------------------------------------------------------ replaying */

struct lane { /* lane: what a device ran last */
    int64_t ready_ns, free_ns;
    uint32_t task; /* NONE: as in the base */
};

/* Appends a task to its device; false if it should come earlier. */
static bool append_to_lane(const struct rp_resim_sweep *s, struct lane *lane, uint32_t task,
                           int64_t ready, int64_t *begin)
{
    uint32_t before = s->before.at[task];

    if (lane->task == NONE && before != NONE)
        *lane = (struct lane){s->ready_ns.at[before], s->r->end_ns.at[before], before};
    if (lane->task != NONE && !in_turn(lane->ready_ns, lane->task, ready, task))
        return false;
    *begin = ready > lane->free_ns ? ready : lane->free_ns;
    *lane = (struct lane){ready, *begin + s->g->tasks.at[task].dur_ns, task};
    return true;
}

enum rp_code rp_resim_sweep_replay(const struct rp_resim_sweep *s, size_t from,
                                   struct rp_sim_result *out, bool *ok, struct rp_err *err)
{
    struct lane *lanes = calloc(s->g->ndevices + 1, sizeof *lanes);

    RP_TRY(rp_err_need(lanes, err, "simulating"));
    for (size_t i = 0; i < s->g->ndevices; i++)
        lanes[i].task = NONE;
    for (size_t i = from; i < s->g->n && *ok; i++) {
        uint32_t task = s->order[i], device = s->g->tasks.at[task].device;
        int64_t begin = ready_of(s, out, task);

        if (device != RP_NO_DEVICE)
            *ok = append_to_lane(s, &lanes[device], task, begin, &begin);
        out->start_ns.at[task] = begin;
        out->end_ns.at[task] = begin + s->g->tasks.at[task].dur_ns;
    }
    free(lanes);
    return RP_OK;
}
