/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_BUILD_APPEND_H
#define RP_TRACE_BUILD_APPEND_H
/*
 * Several traces into one: a frozen trace is added to a builder as if its file stood behind what is
 * there. Its processes get numbers of their own, its ids of calls, arrows and chains too, and its
 * times another clock, so that nothing of one trace can be taken for something of another.
 */
#include "trace/build/build.h"

/* An arrow to be drawn between two tracks of the trace that is appended. */
struct rp_append_arrow {
    rp_track from, to;
    int64_t from_ns, to_ns; /* of the trace */
    const char *name;
};

struct rp_append {
    uint32_t index;   /* of the trace among those that are joined */
    int64_t pid_step; /* more than any of them has processes: process k gets index * pid_step + k */
    const char *label; /* stands behind the names of its processes: "rank 3"; NULL: nothing */
    /* A time of a process on the clock of all; NULL: as it is. */
    int64_t (*time)(const void *user, uint32_t process, int64_t ns);
    const void *user;
    const struct rp_append_arrow *arrows;
    size_t narrows;
    bool meta; /* what the file says about itself is that of the whole */
};

/* The trace must be whole in memory (RP_NEED_ALL). O(events). */
enum rp_code rp_builder_append(struct rp_builder *b, const struct rp_trace *t,
                               const struct rp_append *how, struct rp_err *err);

#endif
