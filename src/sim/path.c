/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk needs what led into a task: edges are turned around once, those that a what-if added
 * too. Of a serial device the task that ended when another started held it up.
 */
#include "sim/path.h"

#include "sim/engine/device_order.h"

#include <stdlib.h>
#include <string.h>

struct before {
    uint32_t from, next; /* next: of the same successor, or UINT32_MAX */
    int64_t lag_ns;
    uint32_t from_start;
};

struct walker {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    RP_VEC(struct before) edges;
    RP_VEC(uint32_t) newest;     /* by task, into edges */
    RP_VEC(uint32_t) device_end; /* tasks of devices by (device, end) */
};

static const char *const names[RP_SIM_PATH_PARTS] = {
    [RP_SG_ORIGIN] = "begin",    [RP_SG_HOST] = "host",          [RP_SG_RUNTIME] = "runtime calls",
    [RP_SG_COMPUTE] = "kernels", [RP_SG_COMM] = "communication", [RP_SG_MEMORY] = "copies",
    [RP_SG_ARRIVE] = "meeting",  [RP_SG_RENDEZVOUS] = "meeting", [RP_SIM_PATH_GAPS] = "gaps"};

const char *rp_sim_path_name(size_t part)
{
    return names[part];
}

const char *rp_sim_path_most(const struct rp_sim_path *path)
{
    size_t i, best = 0;

    for (i = 1; i < RP_SIM_PATH_PARTS; i++)
        if (path->ns[i] > path->ns[best])
            best = i;
    return path->total_ns > 0 ? names[best] : NULL;
}

/* ------------------------------------------------------------------ turning around */

static enum rp_code add_before(struct walker *w, uint32_t from, const struct rp_task_edge *e,
                               int64_t lag_ns, struct rp_err *err)
{
    struct before x = {from, w->newest.at[e->to], lag_ns, e->flags & RP_EDGE_FROM_START};

    if (lag_ns == RP_LAG_CUT)
        return RP_OK;
    w->newest.at[e->to] = (uint32_t)w->edges.n;
    return rp_vec_push(&w->edges, x, err);
}

static enum rp_code turn_around(struct walker *w, struct rp_err *err)
{
    const struct rp_overlay *o = &w->run->overlay;
    const struct rp_task_graph *g = o->graph;
    uint32_t v, i, n = (uint32_t)rp_overlay_ntasks(o);

    RP_TRY(rp_vec_reserve(&w->newest, (size_t)n + 1, err));
    memset(w->newest.at, 0xff, n * sizeof *w->newest.at);
    for (v = 0; v < g->tasks.n; v++)
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            RP_TRY(add_before(w, v, &g->edges.at[i], o->lag_ns.at[i], err));
    for (i = 0; i < o->edges.n; i++)
        RP_TRY(add_before(w, o->edges.at[i].from, &o->edges.at[i].edge, o->edges.at[i].edge.lag_ns,
                          err));
    for (v = 0; v < n; v++) {
        uint32_t device = rp_overlay_task(o, v)->device;

        if (device != RP_NO_DEVICE && g->devices.at[device].rule == RP_DEVICE_SERIAL)
            RP_TRY(rp_vec_push(&w->device_end, v, err));
    }
    return rp_device_order(o, w->r->end_ns.at, w->device_end.at, w->device_end.n, err);
}

/* ------------------------------------------------------------------ walking back */

/* A task of the same serial device that ended when this one started, or RP_NONE. */
static uint32_t held_by(const struct walker *w, uint32_t task)
{
    uint32_t device = rp_overlay_task(&w->run->overlay, task)->device;
    int64_t at = w->r->start_ns.at[task];
    size_t low = 0, high = w->device_end.n;

    if (device == RP_NO_DEVICE)
        return RP_NONE;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t x = w->device_end.at[middle];
        uint32_t d = rp_overlay_task(&w->run->overlay, x)->device;

        if (d < device || (d == device && w->r->end_ns.at[x] < at))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == w->device_end.n || w->device_end.at[low] == task ||
        rp_overlay_task(&w->run->overlay, w->device_end.at[low])->device != device ||
        w->r->end_ns.at[w->device_end.at[low]] != at ||
        w->r->start_ns.at[w->device_end.at[low]] >= at)
        return RP_NONE;
    return w->device_end.at[low];
}

/* What let the task start: of several the first that was found. *at_ns: when that was, its lag
   before. */
static uint32_t step_back(const struct walker *w, uint32_t task, int64_t *at_ns)
{
    int64_t start = w->r->start_ns.at[task];
    uint32_t i;

    for (i = w->newest.at[task]; i != UINT32_MAX; i = w->edges.at[i].next) {
        const struct before *e = &w->edges.at[i];

        *at_ns = e->from_start ? w->r->start_ns.at[e->from] : w->r->end_ns.at[e->from];
        if (start - *at_ns == e->lag_ns)
            return e->from;
    }
    *at_ns = start;
    return held_by(w, task);
}

static void walk(const struct walker *w, uint32_t task, int64_t from_ns, int64_t until_ns,
                 struct rp_sim_path *out)
{
    int64_t now = until_ns;
    size_t most = rp_overlay_ntasks(&w->run->overlay);

    while (task != RP_NONE && now > from_ns && out->tasks < most) {
        int64_t start = w->r->start_ns.at[task], at = start;
        uint8_t kind = rp_overlay_task(&w->run->overlay, task)->kind;

        start = start > from_ns ? start : from_ns;
        if (now > start) {
            out->ns[kind] += now - start;
            now = start;
        }
        out->tasks++;
        task = step_back(w, task, &at);
        at = at > from_ns ? at : from_ns;
        if (now > at) {
            out->ns[RP_SIM_PATH_GAPS] += now - at;
            now = at;
        }
    }
    out->total_ns = until_ns - now;
}

/* The first work of a step, or of one step only its last end. */
static uint32_t find_task(const struct rp_sim_run *run, const struct rp_sim_result *r, size_t step,
                          bool last)
{
    uint32_t best = RP_NONE;
    size_t i;

    for (i = 0; i < run->notes.n; i++) {
        uint32_t x = (uint32_t)i;

        if (!rp_sim_times_step(run, i) || run->notes.at[i].step != step)
            continue;
        if (best == RP_NONE || (last ? r->end_ns.at[x] > r->end_ns.at[best]
                                     : r->start_ns.at[x] < r->start_ns.at[best]))
            best = x;
    }
    return best;
}

/* Of steps beside each other: the one whose time is nearest to a step's time. */
static enum rp_code usual_step(const struct rp_sim_run *run, const struct rp_sim_result *r,
                               size_t *out, struct rp_err *err)
{
    size_t s, n = run->parts[0]->nsteps;
    int64_t mean, nearest = INT64_MAX;

    RP_TRY(rp_sim_step_ns(run, r, &mean, err));
    for (s = 0; s < n; s++) {
        uint32_t last = find_task(run, r, s, true);
        int64_t off = last == RP_NONE ? INT64_MAX : llabs(r->end_ns.at[last] - mean);

        if (off < nearest) {
            nearest = off;
            *out = s;
        }
    }
    return RP_OK;
}

enum rp_code rp_sim_path(const struct rp_sim_run *run, const struct rp_sim_result *result,
                         struct rp_sim_path *out, struct rp_err *err)
{
    struct walker w = {.run = run, .r = result};
    size_t begin = 0, end = run->parts[0]->nsteps - 1;
    bool one = run->parts[0]->nsteps == 1 || run->parts[0]->beside;
    uint32_t first, last;
    enum rp_code code;

    memset(out, 0, sizeof *out);
    if (run->parts[0]->beside) {
        RP_TRY(usual_step(run, result, &begin, err));
        end = begin;
    }
    first = find_task(run, result, begin, false);
    last = find_task(run, result, end, one);
    if (first == RP_NONE || last == RP_NONE)
        return RP_OK;
    code = turn_around(&w, err);
    if (code == RP_OK)
        walk(&w, last, result->start_ns.at[first],
             one ? result->end_ns.at[last] : result->start_ns.at[last], out);
    rp_vec_release(&w.edges);
    rp_vec_release(&w.newest);
    rp_vec_release(&w.device_end);
    return code;
}
