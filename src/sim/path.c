/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk goes backward over the edges into each task, those that a what-if added included. On a
 * serial device a task may also be bound by the task that ended when it started.
 */
#include "sim/simulate.h"

#include "base/order.h"
#include "facts/times/intervals.h"
#include "sim/engine/overlay.h"

#include <string.h>

struct path_ctx {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    struct rp_sim_incoming in;
    RP_VEC(uint32_t) device_end; /* tasks of serial devices, ordered by (device, end) */
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

/* Finds the predecessor that determined the start of a task; of several, the first that is found.
   at_ns: the moment from which its lag counts. */
static uint32_t binding_predecessor(const struct path_ctx *w, uint32_t task, int64_t *at_ns)
{
    int64_t start = w->r->start_ns.at[task];

    for (uint32_t i = w->in.newest.at[task]; i != UINT32_MAX; i = w->in.next.at[i]) {
        struct rp_sim_in_edge e = rp_sim_in_edge(&w->in, i);

        *at_ns = e.from_start ? w->r->start_ns.at[e.from] : w->r->end_ns.at[e.from];
        if (rp_ns_between(*at_ns, start) == e.lag_ns)
            return e.from;
    }
    *at_ns = start;

    /* The task of the same serial device that ended when this one started, or RP_NONE. */
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

/* Walks back and returns how far it came. */
static int64_t walk_path(const struct path_ctx *w, uint32_t task, int64_t from_ns, int64_t until_ns,
                         struct rp_sim_path *out)
{
    int64_t now = until_ns;
    size_t seen, most = rp_overlay_ntasks(&w->run->overlay);

    for (seen = 0; task != RP_NONE && now > from_ns && seen < most; seen++) {
        int64_t start = w->r->start_ns.at[task], at = start;
        uint8_t kind = rp_overlay_task(&w->run->overlay, task)->kind;

        start = start > from_ns ? start : from_ns;
        if (now > start) {
            rp_ns_add(&out->ns[kind], rp_ns_between(start, now));
            now = start;
        }
        task = binding_predecessor(w, task, &at);
        at = at > from_ns ? at : from_ns;
        if (now > at) {
            rp_ns_add(&out->ns[RP_SIM_PATH_GAPS], rp_ns_between(at, now));
            now = at;
        }
    }
    return now;
}

/* ------------------------------------------------------------------ which step */

/* Where the walk through a step begins. */
struct step_end {
    uint32_t task;
    int64_t at_ns;
};

static bool is_of_rank(const struct path_ctx *w, uint32_t i, uint32_t rank)
{
    return !w->run->gone.at[i] && rp_sim_note_of(w->run, i)->step != RP_NO_STEP &&
           (w->run->nranks == 1 || rp_sim_node(w->run, i)->rank == rank);
}

/* Finds the first of the tasks that stand for the mark of a step. */
static struct step_end find_mark(const struct path_ctx *w, uint32_t rank, size_t step,
                                 int64_t end_ns)
{
    struct step_end best = {RP_NONE, end_ns};

    for (uint32_t i = 0; i < rp_sim_nnodes(w->run); i++)
        if (is_of_rank(w, i, rank) && rp_sim_note_of(w->run, i)->step == step &&
            rp_sim_note_of(w->run, i)->flags & RP_SIM_TIMES &&
            (best.task == RP_NONE || w->r->start_ns.at[i] < w->r->start_ns.at[best.task]))
            best.task = i;
    return best;
}

static void take_later(struct step_end *best, uint32_t task, int64_t at_ns, int64_t limit_ns)
{
    if (at_ns <= limit_ns && (best->task == RP_NONE || at_ns > best->at_ns))
        *best = (struct step_end){task, at_ns};
}

/* Finds the device work, or the task for the last mark, that ended last. */
static struct step_end find_last(const struct path_ctx *w, uint32_t rank, size_t step,
                                 int64_t end_ns)
{
    const struct rp_sim_run *run = w->run;
    struct step_end best = {RP_NONE, 0};
    uint32_t i, n = (uint32_t)rp_overlay_ntasks(&run->overlay);
    bool parallel = run->parts[0]->parallel_steps;

    for (i = 0; i < rp_sim_nnodes(run); i++) {
        const struct rp_sim_note *note = rp_sim_note_of(run, i);

        if (is_of_rank(w, i, rank) && (!parallel || note->step == step) &&
            (parallel || rp_sim_on_device(run, i) || note->flags & RP_SIM_ENDS))
            take_later(&best, i, w->r->end_ns.at[i], end_ns);
    }
    for (; i < n; i++)
        if (parallel ? rp_overlay_task(&run->overlay, i)->step == step
                     : rp_overlay_task(&run->overlay, i)->step <= step)
            take_later(&best, i, w->r->end_ns.at[i], end_ns);
    return best;
}

/* Walks from the end of the step back to its begin; time without a task is a gap. */
static void walk_step(const struct path_ctx *w, const struct rp_sim_rank_steps *rank, uint32_t r,
                      size_t step, struct rp_sim_path *out)
{
    struct rp_interval time = rank->times[step];
    bool by_mark = !w->run->parts[0]->parallel_steps && step + 1 < rank->n &&
                   rank->mark_ns[step + 1] == time.end_ns;
    struct step_end end = {RP_NONE, 0};
    int64_t left = time.end_ns;

    if (by_mark)
        end = find_mark(w, r, step + 1, time.end_ns);
    if (end.task == RP_NONE) /* also if the next step has no tasks */
        end = find_last(w, r, step, time.end_ns);
    if (end.task != RP_NONE && end.at_ns > time.begin_ns) {
        rp_ns_add(&out->ns[RP_SIM_PATH_GAPS], rp_ns_between(end.at_ns, time.end_ns));
        left = walk_path(w, end.task, time.begin_ns, end.at_ns, out);
    }
    rp_ns_add(&out->ns[RP_SIM_PATH_GAPS], rp_ns_between(time.begin_ns, left));
    rp_ns_add(&out->total_ns, rp_ns_between(time.begin_ns, time.end_ns));
}

enum rp_code rp_sim_path(const struct rp_sim_run *run, const struct rp_sim_result *result,
                         struct rp_sim_steps *steps, struct rp_sim_path *out, struct rp_err *err)
{
    struct path_ctx w = {.run = run, .r = result};
    struct rp_sim_usual usual;

    memset(out, 0, sizeof *out);
    RP_TRY(rp_sim_steps_usual(run, steps, &usual, err));
    enum rp_code code = index_edges(&w, err);
    for (size_t i = 0; code == RP_OK && i < 2; i++)
        walk_step(&w, &steps->ranks[usual.rank], (uint32_t)usual.rank, usual.steps[i], out);
    for (size_t i = 0; i < RP_SIM_PATH_PARTS; i++)
        out->ns[i] /= 2;
    out->total_ns /= 2;
    rp_sim_incoming_release(&w.in);
    rp_vec_release(&w.device_end);
    return code;
}
