/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_WINDOWS_H
#define RP_SIM_WINDOWS_H
/*
 * Runs a plain task graph window by window. Plain: devices are serial and without priorities, what
 * they run takes time, and nothing waits for the start of it. Then a window of time as long as the
 * shortest task of a device holds no end of a task that begins in it:
 *
 *     window   [first moment, first moment + shortest task)
 *     ends     of all devices in it, in any order: they are known before it begins
 *     choices  of all devices in it, in any order: all that becomes ready in it is known by now, and
 *              a device takes the smallest (ready, number)
 *
 * So there is no queue of events, only the next moment of each device. Tasks without a device are
 * run as soon as the last of what they wait for is known. Results are those of simulator.h.
 *
 * A run can be cut at a moment: everything before it has happened, nothing from it on.
 */
#include "sim/event_heap.h"
#include "sim/simulator.h"

/* What a run asks about a task again and again, side by side. */
struct rp_window_task {
    int64_t ready_ns; /* by what has been passed so far */
    uint32_t left;    /* edges into it that were not passed yet */
    uint32_t device;
};

struct rp_window_entry {
    int64_t ready_ns;
    uint32_t task;
};

/* 64 bytes. `rest` holds waiting tasks that came far out of order, or are ready later. */
struct rp_window_device {
    struct rp_window_entry *near; /* [head, n): waiting tasks, sorted; most come in order */
    uint32_t head, n, cap;
    uint32_t running; /* a task or UINT32_MAX */
    int64_t free_ns;  /* when it is free, or was first */
    int64_t rest_ns;  /* when the first of `rest` is ready, or INT64_MAX */
    struct rp_event_queue *rest;
    uint32_t picks; /* it chooses at the end of the window */
    uint32_t reserved;
};

struct rp_windows {
    const struct rp_overlay *o;
    struct rp_sim_result *r;
    RP_VEC(struct rp_window_task) tasks;
    uint32_t *stack; /* room for tasks without a device whose wait is over */
    size_t ndevices;
    struct rp_window_device *devices;
    struct rp_event_queue *rests; /* by device */
    int64_t *next_ns;             /* by device: when its task ends, or its first task is ready */
    int64_t *block_ns;            /* the first of a block of devices */
    uint32_t *picks;              /* room for devices that choose in a window */
    int64_t shortest_ns;          /* of a device's tasks */
    size_t done;                  /* tasks that began */
    bool fits;                    /* the graph is plain */
    bool failed;                  /* out of memory */
};

/* Where the graph is not plain, w->fits is false, and nothing more may be asked. The result is
   filled by the run. Release w also after a failure. */
enum rp_code rp_windows_init(struct rp_windows *w, const struct rp_overlay *o,
                             struct rp_sim_result *r, struct rp_err *err);
void rp_windows_release(struct rp_windows *w);

/* What waits for nothing. */
void rp_windows_begin(struct rp_windows *w);
/* Everything before `until_ns` (INT64_MAX: all there is). */
enum rp_code rp_windows_go(struct rp_windows *w, int64_t until_ns, struct rp_err *err);

#endif
