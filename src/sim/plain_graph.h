/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_PLAIN_GRAPH_H
#define RP_SIM_PLAIN_GRAPH_H
/*
 * A task graph with its overlay in the form in which it is run most quickly: 16 bytes a task and 8
 * an edge, side by side what is used together, in any order of the tasks. Tasks that follow each
 * other in time may so stand behind each other in memory.
 *
 *     place     0 1 2 3 …       where a task stands here
 *     number    7 3 4 0 …       its number in the task graph; decides between equals
 */
#include "sim/overlay.h"

#define RP_PLAIN_CUT        UINT32_MAX           /* as a lag: the edge holds nothing up */
#define RP_PLAIN_MOST       (UINT32_C(1) << 29)  /* tasks: sums of all times stay below 2^63 */
#define RP_PLAIN_FROM_START (UINT32_C(1) << 31)  /* in `to` */

struct rp_plain_task {
    uint32_t left; /* edges into it that were not passed yet */
    uint32_t device;
    uint32_t dur_ns;
    uint32_t first; /* edge; that of the next task is the end */
};

struct rp_plain_edge {
    uint32_t to; /* place; and RP_PLAIN_FROM_START */
    uint32_t lag_ns;
};

struct rp_plain_graph {
    bool fits;                          /* it is plain; else the rest is not filled */
    RP_VEC(struct rp_plain_task) tasks; /* by place; one more at the end */
    RP_VEC(struct rp_plain_edge) edges;
    RP_VEC(uint32_t) number; /* by place; empty: places are numbers */
    size_t n, ndevices;
    int64_t mean_ns; /* of a device's tasks */
};

/* order: numbers of all tasks in the order in which they shall stand, or NULL. Cut edges are kept
   where there is an order. Linear. Release g also after a failure. */
enum rp_code rp_plain_graph_init(struct rp_plain_graph *g, const struct rp_overlay *o,
                                 const uint32_t *order, struct rp_err *err);
void rp_plain_graph_release(struct rp_plain_graph *g);

static inline uint32_t rp_plain_number(const struct rp_plain_graph *g, uint32_t place)
{
    return g->number.n ? g->number.at[place] : place;
}

/* As a plain graph has it; larger ones do not fit. */
static inline bool rp_plain_fits(int64_t ns)
{
    return ns >= 0 && ns < RP_PLAIN_CUT;
}

#endif
