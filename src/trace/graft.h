/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A trace with further host spans, copied from where its work was described: kernels of a graph
 * have no operators around their launch, but the recording of the graph's capture has. The copies
 * come after all events, on tracks of their own (kind async) and without a time, so that they are
 * ancestors of device work and nothing else:
 *
 *     capture     [ module [ operator [launch] ] ]
 *     here        [ cudaGraphLaunch ]<--- module <--- operator <--- rp_trace.captured[kernel]
 *
 * Ids of events, strings, tracks and shapes of the trace stay valid in the new one, which borrows
 * everything else from it.
 */
#include "base/hash.h"
#include "trace/trace.h"

#define RP_GRAFT_SPANS (16u << 20) /* the most copies in one trace */

struct rp_graft_source {
    const struct rp_trace *trace;
    uint32_t strings, origins, shapes,
        spilled_rows; /* where its own items begin in the new trace */
    rp_str *name;     /* by string: its id in the new trace; 0: none yet */
};

struct rp_graft_span {
    uint32_t source;
    rp_event event, parent; /* event: in the source; parent: in the new trace, or RP_NONE */
};

struct rp_graft {
    const struct rp_trace *base;
    RP_VEC(struct rp_graft_source) sources;
    RP_VEC(struct rp_graft_span) spans;
    RP_VEC(rp_event) captured; /* by event of the base */
    struct rp_map texts;       /* from the hash of a text to the string of the base */
};

/* Must be released also after a failure. */
enum rp_code rp_graft_init(struct rp_graft *g, const struct rp_trace *base, struct rp_err *err);
void rp_graft_release(struct rp_graft *g);

/* Adds a trace from which spans are copied, which may be the base itself. RP_LIMIT if it does not
   fit. */
enum rp_code rp_graft_source(struct rp_graft *g, const struct rp_trace *from, uint32_t *source,
                             struct rp_err *err);

/* Copies span e of a source; *out is its id in the new trace. The parent is another copy, or an
   event of the base. RP_LIMIT after RP_GRAFT_SPANS. */
enum rp_code rp_graft_span(struct rp_graft *g, uint32_t source, rp_event e, rp_event parent,
                           rp_event *out, struct rp_err *err);

/* Notes that a copy describes device work of the base. */
static inline void rp_graft_describe(struct rp_graft *g, rp_event work, rp_event copy)
{
    g->captured.at[work] = copy;
}

/* Makes the new trace. The base must outlive it, the sources need not. */
enum rp_code rp_graft_finish(struct rp_graft *g, struct rp_trace **out, struct rp_err *err);
