/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the simulator runs: tasks that take time, edges that say what waits for what, and devices
 * that tasks share. It knows nothing of traces; step graphs and the records of other tools are
 * converted to it.
 *
 *     task a --lag--> task b        b is ready when a ended (or began) plus the lag
 *
 * A task without a device starts when it is ready. A serial device runs one task at a time, of
 * those that are ready the one with the smallest (priority, ready time, number). A shared device
 * runs all of them at once, each at 1/n of the rate: a link, a transport, a core with several
 * threads.
 *
 * Times are integer nanoseconds, ids dense and 32-bit. Edges are kept by predecessor. 20 bytes a
 * task, 13 an edge.
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

#define RP_NO_DEVICE UINT32_MAX
#define RP_NO_STEP   UINT16_MAX
#define RP_LAG_CUT   INT64_MIN /* an edge with this lag is ignored */

/* A task as it is stored; its duration is in a separate column. */
struct rp_task_row {
    uint32_t device; /* or RP_NO_DEVICE */
    uint32_t rank;
    uint16_t step; /* or RP_NO_STEP */
    uint8_t kind;  /* the builder's own number */
    uint8_t priority;
};
_Static_assert(sizeof(struct rp_task_row) == 12, "a task is 12 bytes and a duration");

/* A task as it is added. */
struct rp_task {
    int64_t dur_ns;
    uint32_t device, rank; /* as above */
    uint32_t source;       /* for a task that an overlay adds: the builder's own number */
    uint16_t step;
    uint8_t kind, priority;
};

static inline struct rp_task_row rp_task_row_of(const struct rp_task *t)
{
    return (struct rp_task_row){t->device, t->rank, t->step, t->kind, t->priority};
}

static inline struct rp_task rp_task_of_row(const struct rp_task_row *row, int64_t dur_ns)
{
    return (struct rp_task){.dur_ns = dur_ns,
                            .device = row->device,
                            .rank = row->rank,
                            .step = row->step,
                            .kind = row->kind,
                            .priority = row->priority};
}

enum { RP_EDGE_FROM_START = 1 };

/* An edge as it is stored, without its lag. */
struct __attribute__((packed)) rp_task_link {
    uint32_t to;
    uint8_t flags;
};
_Static_assert(sizeof(struct rp_task_link) == 5, "an edge is 5 bytes and a lag");

struct rp_task_edge {
    int64_t lag_ns;
    uint32_t to;
    uint32_t flags;
};

enum rp_sim_device_rule { RP_DEVICE_SERIAL, RP_DEVICE_SHARED };

struct rp_sim_device {
    const char *label;
    enum rp_sim_device_rule rule;
};

struct rp_task_graph {
    struct rp_arena arena; /* labels */
    RP_VEC(struct rp_task_row) tasks;
    RP_VEC(struct rp_sim_device) devices;
    RP_VEC(struct rp_task_link) edges; /* ordered by predecessor once frozen */
    RP_VEC(int64_t) dur_ns, lag_ns;    /* by task; by edge; empty after an overlay took them */
    RP_VEC(uint32_t) from;             /* by edge, until frozen */
    RP_VEC(uint32_t) first;            /* n + 1 entries: where the edges out of a task begin */
    bool prioritised;                  /* a task of a device has a priority */
    bool starts_matter;                /* an edge leads from the start of a task */
    bool device_starts_matter;         /* ... of a device's task; known once frozen */
};

void rp_task_graph_init(struct rp_task_graph *g);
void rp_task_graph_release(struct rp_task_graph *g);

/* Reserves space for more tasks and edges, if their number is known. */
enum rp_code rp_task_graph_reserve(struct rp_task_graph *g, size_t tasks, size_t edges,
                                   struct rp_err *err);
/* Ids are given in the order of the calls. Labels are copied. */
enum rp_code rp_task_graph_add_device(struct rp_task_graph *g, const char *label,
                                      enum rp_sim_device_rule rule, uint32_t *id,
                                      struct rp_err *err);
enum rp_code rp_task_graph_add(struct rp_task_graph *g, struct rp_task task, uint32_t *id,
                               struct rp_err *err);
/* lag_ns is not negative; flags: RP_EDGE_FROM_START or 0, and above it, up to 255, the builder's
 * own. */
enum rp_code rp_task_graph_link(struct rp_task_graph *g, uint32_t from, uint32_t to, int64_t lag_ns,
                                uint32_t flags, struct rp_err *err);
/* Sorts the edges, once, after all tasks and edges were added. Linear. */
enum rp_code rp_task_graph_freeze(struct rp_task_graph *g, struct rp_err *err);
/* The number of tasks in a frozen graph that can never start, because they wait for themselves, or
   for such a task. Linear. */
enum rp_code rp_task_graph_stuck(const struct rp_task_graph *g, size_t *out, struct rp_err *err);
