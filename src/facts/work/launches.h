/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Launches and the queues they fill. A launch waits in the queue of its stream from the start of
 * the host call to the start of the work. A call that starts several items, like that of a graph,
 * is one launch in the queue of its first item.
 *
 *     host     [ call ]
 *     queue    +1......................-1
 *     stream                           [ work ]
 *                     |<--- delay ---->|
 */
#include "facts/work/work.h"

struct rp_launch {
    rp_event call;
    uint32_t item;     /* index of the first item that it started */
    uint32_t items;    /* number of items it started */
    int64_t call_ns;   /* duration of the host call */
    int64_t device_ns; /* duration of the work; for several items, the sum */
    int64_t delay_ns; /* from the end of the call to the start of the work; 0 if it began earlier */
};

struct rp_queues {
    uint32_t nstreams;
    uint32_t *begin;               /* nstreams + 1 */
    int64_t *launched, *started;   /* by stream, each in ascending order */
    RP_VEC(struct rp_launch) list; /* ordered by their first work */
};

/* Work without a recorded launch is skipped. `out` must be released also after a failure. O(n log
   n). */
enum rp_code rp_queues_init(struct rp_queues *out, const struct rp_work *work, struct rp_err *err);
void rp_queues_release(struct rp_queues *q);

/* The number of launches of a stream that wait at a time. */
int64_t rp_queue_length(const struct rp_queues *q, uint32_t stream, int64_t at_ns);
