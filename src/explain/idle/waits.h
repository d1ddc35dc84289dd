/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where host threads wait, as rows of a result for `idle` and `report`. */
#include "facts/host/waits.h"

#include <reprise/result.h>

struct rp_idle_wait {
    const char *threads, *call, *what, *range; /* threads: "main", "3 threads", "8 workers" */
    int64_t total_ns, mean_ns, count, longest_ns;
    double share; /* share in the time of those threads */
};
extern const struct rp_type rp_idle_wait_type;

struct rp_idle_wait_list {
    struct rp_idle_wait *at; /* first those of threads that work, then by time */
    size_t n, nshown;        /* nshown: the first rows, which deserve a line */
    int64_t main_ns;         /* of threads that work */
};

/* Lists the waits of all ranks; spans_ns is the sum of the spans in which they were counted. */
enum rp_code rp_idle_list_waits(const struct rp_host_waits *const *ranks, size_t n,
                                int64_t spans_ns, struct rp_arena *arena,
                                struct rp_idle_wait_list *out, struct rp_err *err);
