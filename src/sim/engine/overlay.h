/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes to a task graph that can be undone. The graph itself is not modified; an overlay holds
 * the durations and lags that differ, tasks and edges that are new, and a log by which any change
 * is undone in reverse order. So many what-ifs can be tried on one graph without copying it.
 *
 *     mark = rp_overlay_mark(&o);
 *     rp_overlay_set_dur(&o, task, 2 * rp_overlay_dur(&o, task), err);
 *     ... simulate ...
 *     rp_overlay_undo(&o, mark);
 */
#include "base/decides.h"
#include "sim/engine/task_graph.h"

struct rp_extra_edge {
    struct rp_task_edge edge;
    uint32_t from, next; /* next: the previous edge out of the same task, or UINT32_MAX */
};

enum { RP_OVERLAY_SET_DUR, RP_OVERLAY_SET_LAG, RP_OVERLAY_ADD_TASK, RP_OVERLAY_ADD_EDGE };

#define RP_OVERLAY_MOST (UINT32_C(1) << 30)
RP_LIMIT(RP_OVERLAY_MOST, "tasks, and edges",
         "a simulation has fewer of each: a change has 30 bits");
struct __attribute__((packed)) rp_overlay_change {
    int64_t old;
    uint32_t at : 30;
    uint32_t what : 2; /* one of the above */
};
_Static_assert(sizeof(struct rp_overlay_change) == 12, "a what-if may change every task");

struct rp_overlay {
    const struct rp_task_graph *graph;
    RP_VEC(int64_t) dur_ns;             /* by task, new ones at the end */
    RP_VEC(int64_t) lag_ns;             /* by edge of the graph; RP_LAG_CUT: ignored */
    RP_VEC(struct rp_task_row) tasks;   /* numbers of new tasks start at graph->tasks.n */
    RP_VEC(uint32_t) source;            /* by new task: the builder's own number */
    RP_VEC(struct rp_extra_edge) edges; /* new */
    RP_VEC(uint32_t)
    newest; /* by task: its newest new edge, or UINT32_MAX; empty before the first is added
               (rp_overlay_newest) */
    RP_VEC(uint32_t) degree; /* by task: number of edges into it that are not cut */
    RP_VEC(struct rp_overlay_change) log;
    bool starts_matter;        /* a new edge led, or leads, from the start of a task */
    bool device_starts_matter; /* ... of a device's task */
    bool prioritised;          /* a new task had, or has, a priority */
};

/* The graph is frozen and must outlive the overlay, which must be released also after a failure. */
enum rp_code rp_overlay_init(struct rp_overlay *o, const struct rp_task_graph *graph,
                             struct rp_err *err);
/* The same, but takes the columns of durations and lags from the graph, which cannot have another
   overlay then, instead of copying them. */
enum rp_code rp_overlay_take(struct rp_overlay *o, struct rp_task_graph *graph, struct rp_err *err);
void rp_overlay_release(struct rp_overlay *o);
/* Makes another overlay of the same graph with the same changes, which can also be undone. */
enum rp_code rp_overlay_copy(struct rp_overlay *out, const struct rp_overlay *o,
                             struct rp_err *err);

/* For the two below. A cut edge is not waited for at all. */
static inline enum rp_code rp_overlay_log(struct rp_overlay *o, unsigned what, uint32_t at,
                                          int64_t old, struct rp_err *err)
{
    struct rp_overlay_change c = {.old = old, .at = at & (RP_OVERLAY_MOST - 1), .what = what & 3};

    return rp_vec_push(&o->log, c, err);
}

static inline void rp_overlay_put_lag(struct rp_overlay *o, uint32_t edge, int64_t lag_ns)
{
    uint32_t *degree = &o->degree.at[o->graph->edges.at[edge].to];

    *degree += o->lag_ns.at[edge] == RP_LAG_CUT;
    *degree -= lag_ns == RP_LAG_CUT;
    o->lag_ns.at[edge] = lag_ns;
}

static inline enum rp_code rp_overlay_set_dur(struct rp_overlay *o, uint32_t task, int64_t dur_ns,
                                              struct rp_err *err)
{
    if (o->dur_ns.at[task] == dur_ns)
        return RP_OK;
    RP_TRY(rp_overlay_log(o, RP_OVERLAY_SET_DUR, task, o->dur_ns.at[task], err));
    o->dur_ns.at[task] = dur_ns;
    return RP_OK;
}

static inline enum rp_code rp_overlay_set_lag(struct rp_overlay *o, uint32_t edge, int64_t lag_ns,
                                              struct rp_err *err)
{
    if (o->lag_ns.at[edge] == lag_ns)
        return RP_OK;
    RP_TRY(rp_overlay_log(o, RP_OVERLAY_SET_LAG, edge, o->lag_ns.at[edge], err));
    rp_overlay_put_lag(o, edge, lag_ns);
    return RP_OK;
}

/* New tasks are numbered after those of the graph; edges may connect new and old ones. */
enum rp_code rp_overlay_add(struct rp_overlay *o, struct rp_task task, uint32_t *id,
                            struct rp_err *err);
enum rp_code rp_overlay_link(struct rp_overlay *o, uint32_t from, uint32_t to, int64_t lag_ns,
                             uint32_t flags, struct rp_err *err);

static inline size_t rp_overlay_ntasks(const struct rp_overlay *o)
{
    return o->graph->tasks.n + o->tasks.n;
}

static inline const struct rp_task_row *rp_overlay_task(const struct rp_overlay *o, uint32_t task)
{
    size_t n = o->graph->tasks.n;

    return task < n ? &o->graph->tasks.at[task] : &o->tasks.at[task - n];
}

static inline uint32_t rp_overlay_source(const struct rp_overlay *o, uint32_t new_task)
{
    return o->source.at[new_task - o->graph->tasks.n];
}

/* The newest of the new edges out of a task, or UINT32_MAX. */
static inline uint32_t rp_overlay_newest(const struct rp_overlay *o, uint32_t task)
{
    return task < o->newest.n ? o->newest.at[task] : UINT32_MAX;
}

static inline size_t rp_overlay_mark(const struct rp_overlay *o)
{
    return o->log.n;
}
/* A hash of the changes and of what they led to: equal changes in the same order give the same
   one. Linear in them. */
uint64_t rp_overlay_stamp(const struct rp_overlay *o);
/* Undoes every change since the mark. */
void rp_overlay_undo(struct rp_overlay *o, size_t mark);

/* The lags that n edges of the graph have without any change; edges are in ascending order. */
void rp_overlay_base_lags(const struct rp_overlay *o, const uint32_t *edges, size_t n,
                          int64_t *lag_ns);

/* Sorts tasks by (device, time), stably: at_ns is by task and not negative; every task has a
   device. Linear in the tasks and the devices. */
enum rp_code rp_device_order(const struct rp_overlay *o, const int64_t *at_ns, uint32_t *tasks,
                             size_t n, struct rp_err *err);
