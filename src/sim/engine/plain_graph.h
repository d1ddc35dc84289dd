/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A task graph with its overlay in the form that runs fastest: what a run needs about a task is
 * stored together, in 16 bytes; edges and lags are those of the graph and the overlay.
 */
#include "sim/engine/overlay.h"

#define RP_PLAIN_CUT UINT32_MAX /* as a lag: the edge is ignored */
#define RP_PLAIN_MOST \
    (UINT32_C(1) << 29) /* number of tasks for which sums of all times stay below 2^63 */
#define RP_PLAIN_FROM_START (UINT32_C(1) << 31) /* flag in the number of a task */

struct rp_plain_task {
    uint16_t degree; /* number of edges into it that are not cut */
    uint16_t left;   /* ... that were not passed yet; all of them again when it is ready */
    uint32_t device;
    uint32_t dur_ns;
    uint32_t first; /* its first edge; that of the next task is the end */
};

struct rp_plain_graph {
    bool fits; /* it is plain (horizon.h); otherwise the rest is not filled */
    RP_VEC(struct rp_plain_task) tasks; /* by number; one more at the end */
    const struct rp_task_link *edges;   /* of the graph */
    const int64_t *lag_ns;              /* of the overlay */
    const struct rp_overlay *added;     /* overlay with new edges, or NULL if there are none */
    size_t n, ndevices;
    int64_t mean_ns; /* of a device's tasks */
};

/* Linear. It refers to the overlay and its graph. g must be released also after a failure. */
enum rp_code rp_plain_graph_init(struct rp_plain_graph *g, const struct rp_overlay *o,
                                 struct rp_err *err);
void rp_plain_graph_release(struct rp_plain_graph *g);

/* Durations and lags as a plain graph has them; larger ones do not fit. */
static inline bool rp_plain_fits(int64_t ns)
{
    return ns >= 0 && ns < RP_PLAIN_CUT;
}

static inline uint32_t rp_plain_lag(int64_t lag_ns)
{
    return lag_ns == RP_LAG_CUT ? RP_PLAIN_CUT : (uint32_t)lag_ns;
}
