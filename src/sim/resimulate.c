/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order is topological over edges and over the sequence of each serial device. A bit for each
 * place in it says that the task there must be looked at; bits are taken from the front, so each
 * task is looked at behind all that it waits for. Where tasks of a device become ready in another
 * order than before they change places, and those that moved back are looked at again.
 *
 * Why sorting tells the order of a device: where its tasks take time and nothing waits for their
 * starts, all that is ready at a moment is known before a device chooses. It takes the smallest
 * (ready, number), so the sequence is sorted by it; and a sequence that is sorted by it is the one
 * that the simulator takes.
 */
#include "sim/resimulate.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Where more tasks than this change places, and more than a sixteenth, the order is another one. */
#define MOVES 64

static int64_t later(int64_t at_ns, int64_t by_ns)
{
    int64_t sum;

    return __builtin_add_overflow(at_ns, by_ns, &sum) ? INT64_MAX : sum;
}

static uint32_t device_of(const struct rp_resim *x, uint32_t task)
{
    return x->o->graph->tasks.at[task].device;
}

static bool is_serial(const struct rp_resim *x, uint32_t task)
{
    uint32_t d = device_of(x, task);

    return d != RP_NO_DEVICE && x->o->graph->devices.at[d].rule == RP_DEVICE_SERIAL;
}

/* ------------------------------------------------------------------ making */

static enum rp_code turn_around(struct rp_resim *x, struct rp_err *err)
{
    const struct rp_task_graph *g = x->o->graph;
    size_t n = g->tasks.n;
    uint32_t v, i, sum = 0;

    RP_TRY(rp_vec_reserve(&x->in, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->in_edges, g->edges.n + 1, err));
    RP_TRY(rp_vec_reserve(&x->from, g->edges.n + 1, err));
    memset(x->in.at, 0, (n + 1) * sizeof *x->in.at);
    for (v = 0; v < n; v++)
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++) {
            x->from.at[i] = v;
            x->in.at[g->edges.at[i].to]++;
        }
    for (v = 0; v <= n; v++) {
        sum += x->in.at[v];
        x->in.at[v] = sum;
    }
    for (i = (uint32_t)g->edges.n; i-- > 0;)
        x->in_edges.at[--x->in.at[g->edges.at[i].to]] = i;
    return RP_OK;
}

/* When the last of what it waits for lets a task go. */
static int64_t ready_of(const struct rp_resim *x, uint32_t task)
{
    const struct rp_task_graph *g = x->o->graph;
    int64_t ready = 0;
    uint32_t i;

    for (i = x->in.at[task]; i < x->in.at[task + 1]; i++) {
        uint32_t edge = x->in_edges.at[i], from = x->from.at[edge];
        int64_t lag = x->o->lag_ns.at[edge], at;

        if (lag == RP_LAG_CUT)
            continue;
        at = later(g->edges.at[edge].flags & RP_EDGE_FROM_START ? x->result.start_ns.at[from]
                                                                : x->result.end_ns.at[from],
                   lag);
        ready = at > ready ? at : ready;
    }
    return ready;
}

static int by_turn(const void *pa, const void *pb, void *resim)
{
    const struct rp_resim *x = resim;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (device_of(x, a) != device_of(x, b))
        return device_of(x, a) < device_of(x, b) ? -1 : 1;
    if (x->ready_ns.at[a] != x->ready_ns.at[b])
        return x->ready_ns.at[a] < x->ready_ns.at[b] ? -1 : 1;
    return (a > b) - (a < b);
}

/* The sequence of each serial device. exact_order: sorting gives what the run did. */
static enum rp_code line_up(struct rp_resim *x, struct rp_err *err)
{
    const struct rp_task_graph *g = x->o->graph;
    RP_VEC(uint32_t) list = {0};
    enum rp_code code = RP_OK;
    uint32_t v, n = (uint32_t)g->tasks.n;
    size_t i;

    x->exact_order = true;
    for (v = 0; v < n && code == RP_OK; v++) {
        x->before.at[v] = x->behind.at[v] = NONE;
        x->ready_ns.at[v] = ready_of(x, v);
        if (!is_serial(x, v))
            continue;
        x->exact_order &= x->o->dur_ns.at[v] > 0 && !g->starts_matter && !g->prioritised;
        code = rp_vec_push(&list, v, err);
    }
    if (list.n)
        qsort_r(list.at, list.n, sizeof *list.at, by_turn, x);
    for (i = 1; i < list.n; i++)
        if (device_of(x, list.at[i]) == device_of(x, list.at[i - 1])) {
            x->before.at[list.at[i]] = list.at[i - 1];
            x->behind.at[list.at[i - 1]] = list.at[i];
            x->exact_order &=
                x->result.start_ns.at[list.at[i]] >= x->result.end_ns.at[list.at[i - 1]];
        }
    rp_vec_release(&list);
    return code;
}

/* One thing less before a task; the last puts it into the order. */
static void pass(struct rp_resim *x, uint32_t *left, uint32_t to)
{
    if (!--left[to])
        x->order.at[x->order.n++] = to;
}

/* Breadth first: neighbours in time are neighbours in the order. Cut edges count, since an update
   may put them back. */
static void put_in_order(struct rp_resim *x, uint32_t *left)
{
    const struct rp_task_graph *g = x->o->graph;
    uint32_t v, i, n = (uint32_t)g->tasks.n;
    size_t k;

    for (v = 0; v < n; v++) {
        left[v] = x->in.at[v + 1] - x->in.at[v] + (x->before.at[v] != NONE);
        if (!left[v])
            x->order.at[x->order.n++] = v;
    }
    for (k = 0; k < x->order.n; k++) {
        v = x->order.at[k];
        x->place.at[v] = (uint32_t)k;
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            pass(x, left, g->edges.at[i].to);
        if (x->behind.at[v] != NONE)
            pass(x, left, x->behind.at[v]);
    }
}

static enum rp_code make_order(struct rp_resim *x, struct rp_err *err)
{
    size_t n = x->o->graph->tasks.n;
    uint32_t *left = malloc((n + 1) * sizeof *left);

    if (!left)
        return rp_err_nomem(err, "simulating");
    put_in_order(x, left);
    free(left);
    /* An edge that is cut may lead against the order of a device: then no order has them all. */
    x->exact_order &= x->order.n == n;
    return RP_OK;
}

enum rp_code rp_resim_init(struct rp_resim *x, const struct rp_overlay *o, struct rp_err *err)
{
    size_t n = o->graph->tasks.n;

    memset(x, 0, sizeof *x);
    x->o = o;
    x->mark = rp_overlay_mark(o);
    RP_TRY(rp_simulate(o, &x->result, err));
    x->last_ns = x->result.last_ns;
    if (o->tasks.n || o->edges.n)
        return RP_OK; /* exact_order is false: updates run everything */
    RP_TRY(rp_vec_reserve(&x->before, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->behind, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->ready_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->order, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->place, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->dirty, n / 64 + 1, err));
    memset(x->dirty.at, 0, (n / 64 + 1) * sizeof *x->dirty.at);
    RP_TRY(turn_around(x, err));
    RP_TRY(line_up(x, err));
    return make_order(x, err);
}

void rp_resim_release(struct rp_resim *x)
{
    rp_resim_undo(x);
    rp_resim_tail_release(&x->tail);
    rp_sim_result_release(&x->result);
    rp_sim_result_release(&x->base);
    rp_vec_release(&x->in);
    rp_vec_release(&x->in_edges);
    rp_vec_release(&x->from);
    rp_vec_release(&x->order);
    rp_vec_release(&x->place);
    rp_vec_release(&x->before);
    rp_vec_release(&x->behind);
    rp_vec_release(&x->ready_ns);
    rp_vec_release(&x->dirty);
    rp_vec_release(&x->log);
    rp_vec_release(&x->moved);
}

/* ------------------------------------------------------------------ updating */

static void touch(struct rp_resim *x, uint32_t task)
{
    size_t word = x->place.at[task] / 64;

    x->dirty.at[word] |= UINT64_C(1) << x->place.at[task] % 64;
    x->first = word < x->first ? word : x->first;
}

/* On a device, b behind a changes places with it. */
static void change_places(struct rp_resim *x, uint32_t a, uint32_t b)
{
    uint32_t before = x->before.at[a], behind = x->behind.at[b];

    if (before != NONE)
        x->behind.at[before] = b;
    if (behind != NONE)
        x->before.at[behind] = a;
    x->before.at[b] = before;
    x->behind.at[b] = a;
    x->before.at[a] = b;
    x->behind.at[a] = behind;
}

/* Marks what the overlay's log names; false where a change is of another kind. */
static bool touch_changes(struct rp_resim *x)
{
    const struct rp_overlay *o = x->o;
    size_t i;

    if (!x->exact_order || o->tasks.n || o->edges.n)
        return false;
    for (i = x->mark; i < o->log.n; i++) {
        const struct rp_overlay_change *c = &o->log.at[i];
        uint32_t task = c->what == RP_OVERLAY_SET_LAG ? o->graph->edges.at[c->at].to : c->at;

        touch(x, task);
    }
    return true;
}

static bool in_turn(const struct rp_resim *x, uint32_t a, uint32_t b)
{
    int64_t of_a, of_b;

    if (a == NONE || b == NONE)
        return true;
    of_a = x->ready_ns.at[a];
    of_b = x->ready_ns.at[b];
    return of_a != of_b ? of_a < of_b : a < b;
}

/* Moves a task forward on its device as long as it comes before its turn. */
static enum rp_code find_turn(struct rp_resim *x, uint32_t task, struct rp_err *err)
{
    while (!in_turn(x, x->before.at[task], task)) {
        uint32_t before = x->before.at[task];

        RP_TRY(rp_vec_push(&x->moved, task, err));
        change_places(x, before, task);
        touch(x, before);
        if (x->behind.at[before] != NONE)
            touch(x, x->behind.at[before]);
    }
    return RP_OK;
}

static void touch_behind(struct rp_resim *x, uint32_t task)
{
    if (x->behind.at[task] != NONE)
        touch(x, x->behind.at[task]);
}

static enum rp_code note_change(struct rp_resim *x, uint32_t task, int64_t ready, int64_t begin,
                                int64_t end, struct rp_err *err)
{
    const struct rp_task_graph *g = x->o->graph;
    struct rp_resim_change old = {task, x->result.start_ns.at[task], x->result.end_ns.at[task],
                                  x->ready_ns.at[task]};
    uint32_t i;

    RP_TRY(rp_vec_push(&x->log, old, err));
    x->ready_ns.at[task] = ready;
    x->result.start_ns.at[task] = begin;
    x->result.end_ns.at[task] = end;
    touch_behind(x, task);
    if (begin != old.start_ns || end != old.end_ns)
        for (i = g->first.at[task]; i < g->first.at[task + 1]; i++)
            touch(x, g->edges.at[i].to);
    return RP_OK;
}

/* A task again. *ok becomes false where only a full run can tell. */
static enum rp_code look_at(struct rp_resim *x, uint32_t task, bool *ok, struct rp_err *err)
{
    int64_t ready = ready_of(x, task), dur = x->o->dur_ns.at[task], begin, end;
    uint32_t before;

    x->visited++;
    if (device_of(x, task) != RP_NO_DEVICE && (!is_serial(x, task) || dur <= 0))
        *ok = false;
    if (ready != x->ready_ns.at[task])
        RP_TRY(note_change(x, task, ready, x->result.start_ns.at[task], x->result.end_ns.at[task],
                           err));
    if (is_serial(x, task))
        RP_TRY(find_turn(x, task, err));
    before = x->before.at[task];
    begin =
        before != NONE && x->result.end_ns.at[before] > ready ? x->result.end_ns.at[before] : ready;
    end = later(begin, dur);
    return begin == x->result.start_ns.at[task] && end == x->result.end_ns.at[task]
               ? RP_OK
               : note_change(x, task, ready, begin, end, err);
}

/*
 * Takes the bits from the front. What a task touches stands behind it, but for tasks of a device
 * that changed places: then the walk goes back. It ends when everything agrees; where that takes
 * longer than a full run may, it gives up: a look costs about four times as much as in a full run.
 */
static enum rp_code sweep(struct rp_resim *x, bool *ok, struct rp_err *err)
{
    size_t words = x->order.n / 64 + 1, most = x->order.n / 4;

    while (x->first < words && *ok) {
        size_t word = x->first, place;

        if (!x->dirty.at[word]) {
            x->first++;
            continue;
        }
        place = 64 * word + (size_t)__builtin_ctzll(x->dirty.at[word]);
        x->dirty.at[word] &= x->dirty.at[word] - 1;
        RP_TRY(look_at(x, x->order.at[place], ok, err));
        *ok &= !x->moved.n || (x->visited <= most && x->moved.n <= MOVES + x->visited / 16);
    }
    return RP_OK;
}

static void clean(struct rp_resim *x)
{
    if (x->dirty.cap)
        memset(x->dirty.at, 0, (x->o->graph->tasks.n / 64 + 1) * sizeof *x->dirty.at);
    rp_resim_undo(x);
}

/* The result of another run is put in the place of the base's. */
static void swap_results(struct rp_resim *x, struct rp_sim_result *other)
{
    x->base = x->result;
    x->result = *other;
    memset(other, 0, sizeof *other);
    x->apart = true;
}

static enum rp_code run_all(struct rp_resim *x, struct rp_err *err)
{
    struct rp_sim_result other = x->base;

    memset(&x->base, 0, sizeof x->base);
    swap_results(x, &other);
    x->whole = true;
    x->visited = rp_overlay_ntasks(x->o);
    return rp_simulate(x->o, &x->result, err);
}

/* Where an edge is cut, the task behind it must not have been told anything; where one is put back,
   or was the last, nothing can be kept. */
static size_t first_turn_of_cut(const struct rp_resim *x, uint32_t task, bool cut)
{
    const uint32_t *turn = x->tail.turn.at;
    size_t first = turn[task];
    uint32_t k;

    if (!cut || !x->o->degree.at[task])
        return 0;
    for (k = x->in.at[task]; k < x->in.at[task + 1]; k++) {
        uint32_t from = x->from.at[x->in_edges.at[k]];

        first = turn[from] < first ? turn[from] : first;
    }
    return first;
}

/* The first turn of the base that a change concerns. */
static size_t first_turn(const struct rp_resim *x)
{
    const struct rp_overlay *o = x->o;
    size_t i, first = SIZE_MAX;

    for (i = x->mark; i < o->log.n; i++) {
        const struct rp_overlay_change *c = &o->log.at[i];
        bool is_lag = c->what == RP_OVERLAY_SET_LAG;
        size_t turn = x->tail.turn.at[is_lag ? x->from.at[c->at] : c->at];

        first = turn < first ? turn : first;
        if (!is_lag || (c->old != RP_LAG_CUT && o->lag_ns.at[c->at] != RP_LAG_CUT))
            continue;
        turn = first_turn_of_cut(x, o->graph->edges.at[c->at].to, c->old != RP_LAG_CUT);
        first = turn < first ? turn : first;
    }
    return first;
}

/* The tail is made from the overlay as the base had it. */
static enum rp_code make_tail(struct rp_resim *x, struct rp_err *err)
{
    struct rp_overlay base;
    enum rp_code code = rp_overlay_copy(&base, x->o, err);

    if (code == RP_OK) {
        rp_overlay_undo(&base, x->mark);
        code = rp_resim_tail_init(&x->tail, &base, &x->result, err);
    }
    x->tail.o = x->o;
    rp_overlay_release(&base);
    return code;
}

/* Everything behind the change, where that can be told; made ready for it by the second call, since
   that costs more than a run. */
static enum rp_code run_tail(struct rp_resim *x, bool *ok, struct rp_err *err)
{
    *ok = false;
    if (!x->in.cap || x->o->tasks.n || x->o->edges.n || x->runs++ == 0)
        return RP_OK;
    if (!x->tail.o)
        RP_TRY(make_tail(x, err));
    if (!x->tail.g.fits)
        return RP_OK;
    *ok = true;
    RP_TRY(rp_resim_tail_run(&x->tail, &x->result, x->mark, first_turn(x), ok, &x->visited, err));
    if (!*ok)
        return RP_OK;
    swap_results(x, &x->tail.result);
    x->in_tail = true;
    return RP_OK;
}

static void find_last(struct rp_sim_result *r)
{
    int64_t last = 0;
    size_t i;

    for (i = 0; i < r->end_ns.n; i++)
        last = r->end_ns.at[i] > last ? r->end_ns.at[i] : last;
    r->last_ns = last;
}

enum rp_code rp_resim_update(struct rp_resim *x, struct rp_err *err)
{
    bool ok;

    rp_resim_undo(x);
    x->visited = 0;
    x->first = SIZE_MAX;
    ok = touch_changes(x);
    if (ok)
        RP_TRY(sweep(x, &ok, err));
    if (ok) {
        find_last(&x->result);
        return RP_OK;
    }
    clean(x);
    RP_TRY(run_tail(x, &ok, err));
    return ok ? RP_OK : run_all(x, err);
}

void rp_resim_undo(struct rp_resim *x)
{
    if (x->apart) {
        struct rp_sim_result other = x->result;

        x->result = x->base;
        memset(&x->base, 0, sizeof x->base);
        *(x->in_tail ? &x->tail.result : &x->base) = other;
        x->apart = x->in_tail = x->whole = false;
    }
    x->result.last_ns = x->last_ns;
    while (x->log.n) {
        const struct rp_resim_change *c = &x->log.at[--x->log.n];

        x->result.start_ns.at[c->task] = c->start_ns;
        x->result.end_ns.at[c->task] = c->end_ns;
        x->ready_ns.at[c->task] = c->ready_ns;
    }
    while (x->moved.n) {
        uint32_t task = x->moved.at[--x->moved.n];

        change_places(x, task, x->behind.at[task]);
    }
}
