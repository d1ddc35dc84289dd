/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_TRACE_LIFE_H
#define RP_FACTS_TRACE_LIFE_H
/*
 * What a recording of ours tells about the life of its program: whether it ended by itself, the
 * last thing that it did, and how long a step takes while nothing is recorded
 * (docs/formats/ctf.md).
 */
#include "trace/trace.h"

struct rp_trace_life {
    bool cut;        /* the process that was recorded most never said that it ends */
    int64_t process; /* its number */
    rp_event last;   /* where it is cut: of its events the one that began last */
    int64_t last_ns; /* when it began, since the first event of the recording */
    int64_t recorded_ns, unrecorded_ns; /* a step with and without the recorder; 0: not measured */
};

void rp_trace_life_find(const struct rp_trace *trace, struct rp_trace_life *out);

#endif
