/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Times in which threads were ready and did not run, as `reprise record` counts them ten times a
 * second (capture/core/processors.c), and what it says about the machine.
 */
#include "base/vec.h"
#include "facts/times/intervals.h"
#include "trace/trace.h"

/* In [begin, end) a thread ran for so long, and was ready without a processor for so long. */
struct rp_ready {
    int64_t begin_ns, end_ns, ready_ns, ran_ns;
    rp_track thread;
};

/* Of the machine, sums of what was counted meanwhile: in so much of over_ns some thread of it
   waited; the limit of a cgroup (0: none) stopped its threads for throttled_ns. */
struct rp_machine {
    int64_t looks, over_ns, some_waited_ns, throttled_ns;
    int64_t load_percent;              /* the sum of the looks */
    int64_t processors, limit_percent; /* as last seen: that the process may use; of the limit */
};

struct rp_processors {
    RP_VEC(struct rp_ready) ready; /* by thread and time */
    struct rp_machine machine;
};

/* Needs the arguments. Release it also after a failure. Linear in the events. */
enum rp_code rp_processors_find(const struct rp_trace *trace, struct rp_processors *out,
                                struct rp_err *err);
void rp_processors_release(struct rp_processors *p);

/* The first of a thread that ends after a time; those of other threads follow. */
size_t rp_ready_first(const struct rp_processors *p, rp_track thread, int64_t after_ns);
