/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_BUILD_APPEND_H
#define RP_TRACE_BUILD_APPEND_H
/*
 * Joins several traces into one: a frozen trace is appended to a builder. Its processes and its ids
 * of calls, arrows and async chains are renumbered so that those of different traces never collide,
 * and its times are converted to a common clock.
 */
#include "trace/build/build.h"

/* An arrow to draw between two tracks of the appended trace. */
struct rp_append_arrow {
    rp_track from, to;
    int64_t from_ns, to_ns; /* of the trace */
    const char *name;
};

struct rp_append {
    uint32_t index;    /* of the trace among the joined ones */
    int64_t pid_step;  /* larger than the number of processes of any trace: process k gets index *
                          pid_step + k */
    const char *label; /* appended to the names of its processes: "rank 3"; NULL: nothing */
    /* Converts a time of a process to the common clock; NULL: unchanged. */
    int64_t (*time)(const void *user, uint32_t process, int64_t ns);
    const void *user;
    const struct rp_append_arrow *arrows;
    size_t narrows;
    bool meta; /* its metadata becomes that of the joined trace */
};

/* The trace must be verified completely (RP_NEED_ALL). O(events). */
enum rp_code rp_builder_append(struct rp_builder *b, const struct rp_trace *t,
                               const struct rp_append *how, struct rp_err *err);

#endif
