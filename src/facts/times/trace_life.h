/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads what a recording of ours tells about the life of its program: whether it ended by itself,
 * the last thing that it did, and how long a step takes while nothing is recorded
 * (docs/formats/ctf.md).
 */
#include "trace/trace.h"

struct rp_trace_life {
    int64_t process; /* number of the process with most events */
    int64_t last_ns; /* when its last event began, since the first event of the recording */
    int64_t recorded_ns,
        unrecorded_ns; /* time of a step with and without the recorder; 0: not measured */
    rp_event last;     /* if it is cut: the event that began last */
    bool cut;          /* it never reported its end */
    uint8_t unused[3];
};

void rp_trace_life_find(const struct rp_trace *trace, struct rp_trace_life *out);
