/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a plain task graph without a queue of events. Plain: devices are serial and without
 * priorities, what they run takes time, nothing waits for the start of it, durations and lags are
 * below four seconds, and no task waits for more than 65,535 others. Then a device runs its tasks
 * in the order of (ready, number), and all that a run must know is
 *
 *     horizon   the earliest end of any task that waits: whatever is not known to be ready yet
 *               waits for such an end, so it cannot be ready before the horizon
 *
 * Every device may run all of its waiting tasks that are ready before the horizon, in their order,
 * however late that makes them: no other task can come between. The end of a task is passed to its
 * successors when the task is begun. Tasks without a device run as soon as the ends of all their
 * predecessors are known. Results equal those of simulator.h.
 *
 * Proof that the horizon holds: of all tasks that were not begun let x be the first to end. What is
 * not known to be ready waits for an end of those tasks, and ends later than x; so x waits in its
 * device's line, at its head (the head would end earlier), and is begun as soon as the device is
 * free and x is ready. So x ends when its device says it would.
 *
 * A run can be cut at a moment: all tasks that start before it were begun, and no other.
 */
#include "sim/engine/event_heap.h"
#include "sim/engine/plain_graph.h"

struct rp_horizon_entry {
    int64_t ready_ns;
    uint32_t task;
};

/* The queue of a serial device. `rest` holds tasks that arrive far out of order, or become ready
   much later. */
struct rp_horizon_device {
    struct rp_horizon_entry *near; /* [head, n): sorted; most arrive nearly in order */
    uint32_t head, n, cap;
    bool stale;      /* its head may have changed */
    int64_t free_ns; /* when it is free */
    int64_t rest_ns; /* time at which the first of `rest` is ready, or INT64_MAX */
    struct rp_event_queue rest;
};

struct rp_horizon {
    struct rp_plain_graph *g;
    int64_t *at_ns;  /* by task: ready time by what has been passed so far; its start once begun */
    uint32_t *stack; /* room for tasks without a device whose wait is over */
    uint32_t *begun; /* if not NULL: tasks in the order in which they were begun */
    size_t ndevices;
    struct rp_horizon_device *devices;
    int64_t *ready_ns, *end_ns;             /* by device: times of its head, or INT64_MAX */
    int64_t *block_ready_ns, *block_end_ns; /* by block of devices: the earliest of these */
    uint32_t *list, *stale;                 /* room for devices */
    size_t nstale;
    size_t done; /* tasks that were begun */
    bool failed; /* out of memory */
};

/* at_ns has room for one number per task. h must be released also after a failure. */
enum rp_code rp_horizon_init(struct rp_horizon *h, struct rp_plain_graph *g, int64_t *at_ns,
                             struct rp_err *err);
void rp_horizon_release(struct rp_horizon *h);

/* Releases the tasks without predecessors. */
void rp_horizon_begin(struct rp_horizon *h);
/* Runs everything that starts before `until_ns` (INT64_MAX: all). */
enum rp_code rp_horizon_go(struct rp_horizon *h, int64_t until_ns, struct rp_err *err);
/* Adds a ready task to the queue of its device. */
void rp_horizon_put(struct rp_horizon *h, uint32_t task, int64_t ready_ns);
/* Empties all queues; all devices are free from 0 on. */
void rp_horizon_clear(struct rp_horizon *h);
