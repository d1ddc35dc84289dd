/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk goes backward over the edges into each task, those that a what-if added included. On a
 * serial device a task may also be bound by the task that ended when it started.
 */
#include "sim/simulate.h"

#include "base/order.h"
#include "sim/engine/overlay.h"

#include <stdlib.h>
#include <string.h>

struct path_ctx {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    struct rp_sim_incoming in;
    RP_VEC(uint32_t) device_end; /* tasks of serial devices by (device, end) */
};

static const char *const path_names[RP_SIM_PATH_PARTS] = {
    [RP_SG_ORIGIN] = "begin",    [RP_SG_HOST] = "host",          [RP_SG_RUNTIME] = "runtime calls",
    [RP_SG_COMPUTE] = "kernels", [RP_SG_COMM] = "communication", [RP_SG_MEMORY] = "copies",
    [RP_SG_ARRIVE] = "meeting",  [RP_SG_RENDEZVOUS] = "meeting", [RP_SIM_PATH_GAPS] = "gaps"};

const char *rp_sim_path_name(size_t part)
{
    return path_names[part];
}

const char *rp_sim_path_most(const struct rp_sim_path *path)
{
    size_t i, best = 0;

    for (i = 1; i < RP_SIM_PATH_PARTS; i++)
        if (path->ns[i] > path->ns[best])
            best = i;
    return path->total_ns > 0 ? path_names[best] : NULL;
}

/* ------------------------------------------------------------------ what leads to a task */

static enum rp_code index_edges(struct path_ctx *w, struct rp_err *err)
{
    const struct rp_overlay *o = &w->run->overlay;
    uint32_t v, n = (uint32_t)rp_overlay_ntasks(o);

    RP_TRY(rp_sim_incoming_init(&w->in, o, err));
    for (v = 0; v < n; v++) {
        uint32_t device = rp_overlay_task(o, v)->device;

        if (device != RP_NO_DEVICE && o->graph->devices.at[device].rule == RP_DEVICE_SERIAL)
            RP_TRY(rp_vec_push(&w->device_end, v, err));
    }
    return rp_device_order(o, w->r->end_ns.at, w->device_end.at, w->device_end.n, err);
}

/* ------------------------------------------------------------------ walking back */

/* Whether the i-th task of device_end comes before a moment of a device. */
static bool ends_before(const struct path_ctx *w, size_t i, uint32_t device, int64_t ns)
{
    uint32_t task = w->device_end.at[i], d = rp_overlay_task(&w->run->overlay, task)->device;

    return d < device || (d == device && w->r->end_ns.at[task] < ns);
}

/* The task of the same serial device that ended when this one started, or RP_NONE. */
static uint32_t device_predecessor(const struct path_ctx *w, uint32_t task)
{
    uint32_t device = rp_overlay_task(&w->run->overlay, task)->device, found;
    int64_t at = w->r->start_ns.at[task];
    size_t i;

    if (device == RP_NO_DEVICE)
        return RP_NONE;
    RP_LOWER_BOUND(i, w->device_end.n, ends_before(w, i, device, at));
    if (i == w->device_end.n)
        return RP_NONE;
    found = w->device_end.at[i];
    return found == task || rp_overlay_task(&w->run->overlay, found)->device != device ||
                   w->r->end_ns.at[found] != at || w->r->start_ns.at[found] >= at
               ? RP_NONE
               : found;
}

/* The predecessor that the start of a task was bound by; of several the first that is found.
 *at_ns: the moment from which its lag counts. */
static uint32_t binding_predecessor(const struct path_ctx *w, uint32_t task, int64_t *at_ns)
{
    int64_t start = w->r->start_ns.at[task];
    uint32_t i;

    for (i = w->in.newest.at[task]; i != UINT32_MAX; i = w->in.edges.at[i].next) {
        const struct rp_sim_in_edge *e = &w->in.edges.at[i];

        *at_ns = e->from_start ? w->r->start_ns.at[e->from] : w->r->end_ns.at[e->from];
        if (start - *at_ns == e->lag_ns)
            return e->from;
    }
    *at_ns = start;
    return device_predecessor(w, task);
}

static void walk_path(const struct path_ctx *w, uint32_t task, int64_t from_ns, int64_t until_ns,
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
        task = binding_predecessor(w, task, &at);
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

/* Of parallel steps: the one whose time is nearest to a step's time. */
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
    struct path_ctx w = {.run = run, .r = result};
    size_t begin = 0, end = run->parts[0]->nsteps - 1;
    bool one = run->parts[0]->nsteps == 1 || run->parts[0]->parallel_steps;
    uint32_t first, last;
    enum rp_code code;

    memset(out, 0, sizeof *out);
    if (run->parts[0]->parallel_steps) {
        RP_TRY(usual_step(run, result, &begin, err));
        end = begin;
    }
    first = find_task(run, result, begin, false);
    last = find_task(run, result, end, one);
    if (first == RP_NONE || last == RP_NONE)
        return RP_OK;
    code = index_edges(&w, err);
    if (code == RP_OK)
        walk_path(&w, last, result->start_ns.at[first],
                  one ? result->end_ns.at[last] : result->start_ns.at[last], out);
    rp_sim_incoming_release(&w.in);
    rp_vec_release(&w.device_end);
    return code;
}
