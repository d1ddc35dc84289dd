/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recorded run as a task graph: one task a node of the (joined) step graph, with the same number.
 * A run with the recorded durations and lags gives the recorded times; what-ifs change an overlay.
 */
#include "sim/engine/simulator.h"
#include "sim/model/part.h"
#include "stepgraph/join.h"

/* Flags of task edges: RP_EDGE_FROM_START, and the kind of the step graph's edge above it. */
#define RP_SIM_EDGE_KIND(flags)   ((enum rp_sg_edge_kind)((flags) >> 1))
#define RP_SIM_EDGE_OF_KIND(kind) ((uint32_t)(kind) << 1)

/* What is assumed where the recording does not tell enough about its transport, for intervals. */
enum rp_sim_lean {
    RP_LEAN_NONE,
    RP_LEAN_LESS_LATENCY,
    RP_LEAN_MORE_LATENCY, /* and ranks that share the cores and links of a machine; and what comes
                             right after a collective needs it */
    RP_LEAN_SLOWER,
    RP_LEAN_FASTER,
    RP_LEANS
};

struct rp_sim_blocks; /* nodes of ranks that are packed (packed_run.h) */

/* Nodes of a rank that are unpacked, and what is known about them. */
struct rp_sim_block {
    uint32_t first, n;
    struct rp_sg_node *nodes;
    struct rp_sim_note *notes;
};

/* What a what-if does to all that it changes: no step can become shorter where it only makes work
   longer, though the few steps of a recording may be measured so. */
enum rp_sim_way { RP_WAY_ANY, RP_WAY_LONGER, RP_WAY_SHORTER };

/* What the model of buckets lacks, with the changes of a stamp of the overlay. */
struct rp_sim_lack {
    uint64_t stamp;
    int64_t ns;
    bool known;
};

enum { RP_SIM_LACKS = 8 };

struct rp_sim_run {
    struct rp_arena arena;
    size_t nranks;
    const struct rp_sim_part *const *parts;
    const uint32_t *weights;          /* NULL, or by rank: how many equal ranks it stands for */
    struct rp_stepgraph joined;       /* of several ranks that share collectives */
    const struct rp_stepgraph *graph; /* the joined one, or that of the only rank */
    struct rp_sg_join join;
    RP_VEC(struct rp_sim_note) notes; /* by task of the graph */
    size_t nnodes;
    const struct rp_sim_block **block; /* NULL: nothing is packed; else the last that was used */
    struct rp_sim_blocks
        *blocks; /* NULL, or where nodes and notes are: graph and notes have none */
    struct rp_sim_part *unpacked; /* NULL, or the parts with their nodes */
    const struct rp_sim_part **unpacked_list;
    size_t nunpacked;
    struct rp_task_graph tasks; /* device r: what the collectives of part r share */
    uint32_t links; /* its first device for hops (expand.h): two per rank, and with parallel
                       steps two for each */
    uint32_t *kernel_device; /* by rank: where kernels of its streams ran one at a time; or
                                RP_NO_DEVICE */
    struct rp_overlay overlay;
    bool dropped;        /* the profiler's cost is removed */
    double cost_factor;  /* the profiler's cost, in multiples of the estimate */
    bool cost_known;     /* the recorder measured it */
    bool cost_flat;      /* a given step says nothing about it: it is the estimate */
    double edges_factor; /* scales the time of a step before its first and after its last task */
    enum rp_sim_way way;
    enum rp_sim_lean lean;
    bool leans;          /* a what-if depends on what is not known, such as the transport */
    bool uses_transport; /* ... on the transport */
    const char *latency_doubt, *rate_doubt; /* then: what its leans are about; static texts */
    struct rp_arena *says;                  /* NULL, or where what-ifs say what they changed: */
    const char *said;                       /* "; " between them; NULL: nothing */
    struct rp_sim_lack lacks[RP_SIM_LACKS]; /* the newest of their stamps */
    RP_VEC(uint8_t) gone;                   /* by task: a what-if removed it, it times no steps */
    uint8_t *kernel_traits; /* by name: what it tells of a kernel, as what-ifs ask; 0: not yet */
};

/* If ranks share no collectives, only the first is simulated. Parts outlive the run. Release it
   also after a failure. */
enum rp_code rp_sim_run_init(struct rp_sim_run *run, const struct rp_sim_part *const *parts,
                             size_t n, struct rp_err *err);
void rp_sim_run_release(struct rp_sim_run *run);

/* A node and what is known about it, by the number of its task. What they point to stays as it is
   until nodes of several other ranks were asked for. */
const struct rp_sim_block *rp_sim_block_of(const struct rp_sim_run *run, size_t node);

static inline const struct rp_sim_block *rp_sim_block(const struct rp_sim_run *run, size_t node)
{
    const struct rp_sim_block *b = *run->block;

    return node - b->first < b->n ? b : rp_sim_block_of(run, node);
}

static inline size_t rp_sim_nnodes(const struct rp_sim_run *run)
{
    return run->nnodes;
}

static inline const struct rp_sg_node *rp_sim_node(const struct rp_sim_run *run, size_t node)
{
    const struct rp_sim_block *b;

    if (!run->block)
        return &run->graph->nodes.at[node];
    b = rp_sim_block(run, node);
    return &b->nodes[node - b->first];
}

static inline const struct rp_sim_note *rp_sim_note_of(const struct rp_sim_run *run, size_t node)
{
    const struct rp_sim_block *b;

    if (!run->block)
        return &run->notes.at[node];
    b = rp_sim_block(run, node);
    return &b->notes[node - b->first];
}

/* Whether a node is work of a device. */
static inline bool rp_sim_on_device(const struct rp_sim_run *run, size_t node)
{
    uint32_t lane = rp_sim_node(run, node)->lane;

    return lane != RP_NONE && run->graph->lanes.at[lane].device;
}

/* The part that a node belongs to: a job is one part of many ranks. */
static inline const struct rp_sim_part *rp_sim_part_of(const struct rp_sim_run *run, uint32_t node)
{
    return run->parts[run->nranks > 1 ? rp_sim_node(run, node)->rank : 0];
}

/* Where the nodes of a rank begin. */
static inline uint32_t rp_sim_first_node(const struct rp_sim_run *run, size_t rank)
{
    return run->nranks > 1 ? run->join.first_node[rank] : 0;
}

/* Where they end: a job is one part of many ranks, whose nodes are mixed. */
static inline uint32_t rp_sim_end_node(const struct rp_sim_run *run, size_t rank)
{
    return run->nranks > 1 && rank + 1 < run->nranks ? run->join.first_node[rank + 1]
                                                     : (uint32_t)run->nnodes;
}

/* Rounded; RP_LAG_CUT stays, and results are at most INT64_MAX / 2. */
int64_t rp_sim_scaled(int64_t ns, double factor);

/* Whether the steps of most ranks are mostly a start-up: predictions about them say nothing about
   the steps that follow. */
bool rp_sim_starts_up(const struct rp_sim_run *run);
#define RP_SIM_START_UP "the steps are mostly a start-up, which later steps do not repeat"
