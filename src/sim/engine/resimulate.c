/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the method. The plain graph that the methods share is made from the overlay as the base
 * had it; it reads lags from the overlay, and before each update is patched with the durations and
 * degrees in which the overlay differs.
 */
#include "sim/engine/resimulate.h"

#include <string.h>

enum rp_code rp_resim_init(struct rp_resim *x, const struct rp_overlay *o, struct rp_err *err)
{
    memset(x, 0, sizeof *x);
    x->o = o;
    x->mark = rp_overlay_mark(o);
    RP_TRY(rp_simulate(o, &x->result, err));
    x->last_ns = x->result.last_ns;
    return RP_OK;
}

enum rp_code rp_resim_copy(struct rp_resim *x, const struct rp_resim *from,
                           const struct rp_overlay *o, struct rp_err *err)
{
    size_t n = from->result.end_ns.n;

    memset(x, 0, sizeof *x);
    x->o = o;
    x->mark = from->mark;
    x->result.last_ns = x->last_ns = from->last_ns;
    RP_TRY(rp_vec_reserve(&x->result.start_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->result.end_ns, n + 1, err));
    x->result.start_ns.n = x->result.end_ns.n = n;
    memcpy(x->result.start_ns.at, from->result.start_ns.at, n * sizeof *x->result.start_ns.at);
    memcpy(x->result.end_ns.at, from->result.end_ns.at, n * sizeof *x->result.end_ns.at);
    return RP_OK;
}

void rp_resim_release(struct rp_resim *x)
{
    rp_resim_undo(x);
    rp_resim_sweep_release(&x->sweep);
    rp_resim_tail_release(&x->tail);
    rp_sim_result_release(&x->result);
    rp_sim_result_release(&x->base);
    rp_vec_release(&x->patched);
}

/* ------------------------------------------------------------------ the plain graph */

static enum rp_code make_plain_graph(struct rp_resim *x, struct rp_err *err)
{
    struct rp_overlay base;
    enum rp_code code = rp_overlay_copy(&base, x->o, err);

    x->made = true;
    if (code == RP_OK) {
        rp_overlay_undo(&base, x->mark);
        code = rp_resim_tail_init(&x->tail, &base, &x->result, err);
    }
    x->tail.o = x->o;
    if (code == RP_OK && x->tail.g.fits)
        code = rp_resim_sweep_init(&x->sweep, &x->tail.g, x->tail.begun.at, x->tail.turn.at,
                                   &x->result, err);
    rp_overlay_release(&base);
    x->tail.g.lag_ns = x->o->lag_ns.at; /* number of edges, which never changes */
    x->tail.g.fits &= code == RP_OK;
    return code;
}

/* Patches one duration or lag as the overlay has it now; false if that is not plain. */
static bool patch_plain_graph(struct rp_resim *x, const struct rp_overlay_change *c)
{
    struct rp_plain_graph *g = &x->tail.g;

    if (c->what == RP_OVERLAY_SET_DUR) {
        struct rp_plain_task *t = &g->tasks.at[c->at];
        int64_t dur = x->o->dur_ns.at[c->at];

        t->dur_ns = (uint32_t)dur;
        return rp_plain_fits(dur) && (dur > 0 || t->device == RP_NO_DEVICE);
    }
    uint32_t to = g->edges[c->at].to;
    uint32_t lag = rp_plain_lag(x->o->lag_ns.at[c->at]);
    x->sweep.in.at[x->sweep.in_of.at[c->at]].lag_ns = lag;
    g->tasks.at[to].left = g->tasks.at[to].degree = (uint16_t)x->o->degree.at[to];
    return x->o->degree.at[to] <= UINT16_MAX &&
           (lag == RP_PLAIN_CUT || rp_plain_fits(x->o->lag_ns.at[c->at]));
}

/* Patches what was patched before with its current value, and what changed since the mark. */
static enum rp_code patch_all(struct rp_resim *x, bool *ok, struct rp_err *err)
{
    const struct rp_overlay_change *log = x->o->log.at;
    size_t i, n = x->o->log.n - x->mark;

    for (i = 0; i < x->patched.n; i++)
        *ok &= patch_plain_graph(x, &x->patched.at[i]);
    x->patched.n = 0;
    RP_TRY(rp_vec_reserve(&x->patched, n + 1, err));
    for (i = 0; i < n; i++)
        *ok &= patch_plain_graph(x, &log[x->mark + i]);
    if (n)
        memcpy(x->patched.at, log + x->mark, n * sizeof *log);
    x->patched.n = n;
    return RP_OK;
}

static uint32_t from_of(const struct rp_resim *x, uint32_t edge)
{
    return x->sweep.in.at[x->sweep.in_of.at[edge]].from & ~RP_PLAIN_FROM_START;
}

/* If an edge is cut, the task after it must not have been told anything; if one is put back, or the
   last one is cut, nothing can be kept. */
static size_t first_turn_of_cut(const struct rp_resim *x, uint32_t task, bool cut)
{
    const uint32_t *turn = x->tail.turn.at;
    size_t first = turn[task];

    if (!cut || !x->o->degree.at[task])
        return 0;
    for (uint32_t k = x->sweep.first.at[task]; k < x->sweep.first.at[task + 1]; k++) {
        uint32_t from = x->sweep.in.at[k].from & ~RP_PLAIN_FROM_START;

        first = turn[from] < first ? turn[from] : first;
    }
    return first;
}

/* The first turn of the base that a change concerns; *back: an edge was cut in the base. */
static size_t first_turn(const struct rp_resim *x, bool *back)
{
    const struct rp_overlay *o = x->o;
    size_t i, first = x->tail.g.n;

    for (i = 0; i < x->patched.n; i++) {
        struct rp_overlay_change c = x->patched.at[i];
        bool is_lag = c.what == RP_OVERLAY_SET_LAG;
        size_t turn = x->tail.turn.at[is_lag ? from_of(x, c.at) : c.at];

        first = turn < first ? turn : first;
        if (!is_lag || (c.old != RP_LAG_CUT && o->lag_ns.at[c.at] != RP_LAG_CUT))
            continue;
        *back |= c.old == RP_LAG_CUT;
        turn = first_turn_of_cut(x, o->graph->edges.at[c.at].to, c.old != RP_LAG_CUT);
        first = turn < first ? turn : first;
    }
    return first;
}

/* ------------------------------------------------------------------ the ways */

static void find_last(struct rp_sim_result *r)
{
    int64_t last = 0;

    for (size_t i = 0; i < r->end_ns.n; i++)
        last = r->end_ns.at[i] > last ? r->end_ns.at[i] : last;
    r->last_ns = last;
}

/* Replaces the base's result by that of another run. */
static void put_apart(struct rp_resim *x, struct rp_sim_result *other)
{
    struct rp_sim_result now = *other;

    memset(other, 0, sizeof *other);
    x->base = x->result;
    x->result = now;
    x->apart = true;
}

static enum rp_code sweep(struct rp_resim *x, bool *ok, struct rp_err *err)
{
    *ok = rp_resim_sweep_may_end(&x->sweep, x->patched.n);
    if (!*ok)
        return RP_OK;
    for (size_t i = 0; i < x->patched.n; i++) {
        const struct rp_overlay_change *c = &x->patched.at[i];

        rp_resim_sweep_touch(
            &x->sweep, c->what == RP_OVERLAY_SET_LAG ? x->o->graph->edges.at[c->at].to : c->at);
    }
    RP_TRY(rp_resim_sweep_run(&x->sweep, ok, err));
    if (*ok)
        find_last(&x->result);
    x->visited = x->sweep.visited;
    return RP_OK;
}

/* If no device has changed its order so far, maybe none does. */
static enum rp_code replay(struct rp_resim *x, size_t from, bool *ok, struct rp_err *err)
{
    rp_resim_tail_keep(&x->tail, &x->result, from);
    RP_TRY(rp_resim_sweep_replay(&x->sweep, from, &x->tail.result, ok, err));
    if (!*ok)
        return RP_OK;
    find_last(&x->tail.result);
    x->visited = x->tail.g.n - from;
    return RP_OK;
}

/* Uses the cheapest method that works; *ok is false if none does. */
static enum rp_code run_part(struct rp_resim *x, bool *ok, struct rp_err *err)
{
    bool back = false, same_order;

    RP_TRY(sweep(x, ok, err));
    if (*ok)
        return RP_OK;
    same_order = !x->sweep.moved.n;
    rp_resim_sweep_undo(&x->sweep);
    size_t from = first_turn(x, &back);
    *ok = same_order && !back;
    if (*ok)
        RP_TRY(replay(x, from, ok, err));
    if (!*ok) {
        *ok = true;
        RP_TRY(rp_resim_tail_run(&x->tail, &x->result, from, ok, &x->visited, err));
    }
    x->tail.g.fits &= *ok; /* a run that did not finish leaves a state that cannot be continued */
    if (!*ok)
        return RP_OK;
    put_apart(x, &x->tail.result);
    x->in_tail = true;
    return RP_OK;
}

static enum rp_code run_all(struct rp_resim *x, struct rp_err *err)
{
    put_apart(x, &(struct rp_sim_result){.start_ns = {0}});
    x->whole = true;
    x->visited = rp_overlay_ntasks(x->o);
    return rp_simulate(x->o, &x->result, err);
}

enum rp_code rp_resim_update(struct rp_resim *x, struct rp_err *err)
{
    bool ok = true;

    rp_resim_undo(x);
    x->visited = 0;
    if (x->o->log.n == x->mark)
        return RP_OK;
    if (x->o->tasks.n || x->o->edges.n || x->runs++ == 0)
        return run_all(x, err);
    if (!x->made)
        RP_TRY(make_plain_graph(x, err));
    ok = x->tail.g.fits;
    if (ok)
        RP_TRY(patch_all(x, &ok, err));
    if (ok)
        RP_TRY(run_part(x, &ok, err));
    return ok ? RP_OK : run_all(x, err);
}

void rp_resim_undo(struct rp_resim *x)
{
    if (x->apart) {
        struct rp_sim_result other = x->result;

        x->result = x->base;
        memset(&x->base, 0, sizeof x->base);
        if (x->in_tail)
            x->tail.result = other;
        else
            rp_sim_result_release(&other);
        x->apart = x->in_tail = x->whole = false;
    }
    if (x->made && x->tail.g.fits)
        rp_resim_sweep_undo(&x->sweep);
    x->result.last_ns = x->last_ns;
}
