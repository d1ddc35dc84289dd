/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recorded run as a task graph, with one task for each node of the (joined) step graph, of the
 * same number. A run with the recorded durations and lags gives the recorded times; what-ifs change
 * an overlay.
 */
#include "sim/engine/simulator.h"
#include "sim/model/part.h"
#include "stepgraph/join.h"

/* Flags of task edges: RP_EDGE_FROM_START, and the kind of the step graph's edge above it. */
#define RP_SIM_EDGE_KIND(flags)   ((enum rp_sg_edge_kind)((flags) >> 1))
#define RP_SIM_EDGE_OF_KIND(kind) ((uint32_t)(kind) << 1)

/* Assumptions, for intervals, where the recording does not tell enough about its transport. */
enum rp_sim_lean {
    RP_LEAN_NONE,
    RP_LEAN_LESS_LATENCY,
    RP_LEAN_MORE_LATENCY, /* also between ranks that share the cores and links of a machine; and
                             work directly after a collective needs it */
    RP_LEAN_SLOWER,
    RP_LEAN_FASTER,
    RP_LEANS
};
#define RP_LEANS_ANY   ((1u << RP_LEANS) - 1)
#define RP_LEANS_RATES (1u << RP_LEAN_SLOWER | 1u << RP_LEAN_FASTER)

struct rp_sim_blocks; /* nodes of ranks that are packed (packed_run.h) */

/* The unpacked nodes of a rank, and what is known about them. */
struct rp_sim_block {
    uint32_t first, n;
    struct rp_sg_node *nodes;
    struct rp_sim_note *notes;
};

/* The direction of everything that a what-if changes: if it only makes work longer, no step can
   become shorter, although it may seem so in the few steps of a recording. */
enum rp_sim_way { RP_WAY_ANY, RP_WAY_LONGER, RP_WAY_SHORTER };

/* Nodes whose times tell when a step begins or ends (simulated_steps.h): neighbours that tell the
   same about the same step. */
struct rp_sim_timer {
    uint32_t first, end, rank; /* rank: 0 if the run has only one */
    uint16_t step;
    uint8_t flags; /* RP_SIM_TIMES, RP_SIM_BEGINS, RP_SIM_ENDS */
    bool on_device;
};

/* What the model of buckets lacks, for the changes of a stamp of the overlay. */
struct rp_sim_lack {
    uint64_t stamp;
    int64_t ns;
    bool known;
};

enum { RP_SIM_LACKS = 8 };

struct rp_sim_arc {
    uint32_t from, to;
};

/* What makes the work of late ranks usual, in terms of the recording. */
struct rp_sim_cut {
    uint32_t at;   /* a task, or the number of nodes plus that of an edge */
    int64_t of_ns; /* what was recorded; 0: `by` is a factor for what it takes now */
    double by;     /* ... of it, in ns, is too much */
};
struct rp_sim_cuts {
    bool known, by_chance; /* by_chance: some of them may be due to chance */
    size_t n;
    const struct rp_sim_cut *at; /* in the arena */
};

struct rp_sim_run {
    struct rp_arena arena;
    size_t nranks;
    const struct rp_sim_part *const *parts;
    const uint32_t *weights;          /* NULL, or by rank: how many equal ranks it represents */
    struct rp_stepgraph joined;       /* graph of several ranks that share collectives */
    const struct rp_stepgraph *graph; /* the joined one, or that of the only rank */
    struct rp_sg_join join;
    RP_VEC(struct rp_sim_note) notes; /* by task of the graph */
    RP_VEC(struct rp_sim_timer) timers;
    RP_VEC(uint32_t) comm;    /* nodes that communicate */
    RP_VEC(uint32_t) kernels; /* nodes, as rp_sim_is_kernel */
    RP_VEC(struct rp_sim_arc)
    launches, waits; /* edges that launch, and that end a wait for the
                         device; by their begin */
    size_t nnodes;
    const struct rp_sim_block *
        *block; /* NULL if nothing is packed; else the last one that was used */
    struct rp_sim_blocks
        *blocks; /* NULL, or where nodes and notes are; then graph and notes have none */
    struct rp_sim_part *unpacked; /* NULL, or the parts with unpacked nodes */
    const struct rp_sim_part **unpacked_list;
    size_t nunpacked;
    struct rp_task_graph tasks; /* device r is what the collectives of part r share */
    uint32_t links; /* its first device for hops (expand.h): two for each rank, and with parallel
                       steps for each step */
    uint32_t *kernel_device; /* by rank: the device of kernels whose streams ran one at a time; or
                                RP_NO_DEVICE */
    struct rp_overlay overlay;
    bool dropped;       /* the profiler's cost is removed */
    double cost_factor; /* the profiler's cost as a multiple of the estimate */
    bool cost_known;    /* the recorder measured it */
    bool cost_flat;     /* a given step tells nothing about the cost, so the estimate is used */
    double
        edges_factor; /* factor for the time of a step before its first and after its last task */
    enum rp_sim_way way;
    enum rp_sim_lean lean;
    unsigned leans;      /* a what-if depends on something unknown, such as the transport: a bit
                            for each lean that makes a difference */
    bool uses_transport; /* ... on the transport */
    const char *latency_doubt, *rate_doubt; /* if so, what it is; static texts */
    struct rp_arena *says; /* NULL, or the arena for what what-ifs say about their changes: */
    const char *said;      /* texts joined by "; "; NULL: nothing */
    struct rp_sim_lack lacks[RP_SIM_LACKS]; /* those with the newest stamps */
    struct rp_sim_cuts cuts[2];             /* without, and with RP_LEAN_MORE_LATENCY */
    RP_VEC(uint8_t) gone;    /* by task: a what-if has removed it, so it does not time steps */
    uint16_t *kernel_traits; /* by name: what it tells about a kernel, as what-ifs ask; 0: not asked
                               yet */
};

/* If ranks share no collectives, only the first is simulated. Parts must outlive the run, which
   must be released also after a failure. */
enum rp_code rp_sim_run_init(struct rp_sim_run *run, const struct rp_sim_part *const *parts,
                             size_t n, struct rp_err *err);
void rp_sim_run_release(struct rp_sim_run *run);

/* A node and what is known about it, by the number of its task. The pointers stay valid until nodes
   of several other ranks were asked for. */
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

static inline bool rp_sim_on_device(const struct rp_sim_run *run, size_t node)
{
    uint32_t lane = rp_sim_node(run, node)->lane;

    return lane != RP_NONE && run->graph->lanes.at[lane].device;
}

/* The part to which a node belongs; a job is one part with many ranks. */
static inline const struct rp_sim_part *rp_sim_part_of(const struct rp_sim_run *run, uint32_t node)
{
    return run->parts[run->nranks > 1 ? rp_sim_node(run, node)->rank : 0];
}

static inline uint32_t rp_sim_first_node(const struct rp_sim_run *run, size_t rank)
{
    return run->nranks > 1 ? run->join.first_node[rank] : 0;
}

/* Where they end; a job is one part with many ranks, whose nodes are mixed. */
static inline uint32_t rp_sim_end_node(const struct rp_sim_run *run, size_t rank)
{
    return run->nranks > 1 && rank + 1 < run->nranks ? run->join.first_node[rank + 1]
                                                     : (uint32_t)run->nnodes;
}

/* Scales and rounds; RP_LAG_CUT stays, and results are at most INT64_MAX / 2. */
static inline int64_t rp_sim_scaled(int64_t ns, double factor)
{
    double x = (double)ns * factor;

    if (ns == RP_LAG_CUT || x > (double)(INT64_MAX / 2))
        return ns == RP_LAG_CUT ? ns : INT64_MAX / 2;
    int64_t whole = (int64_t)x; /* as llround, which is a call */
    double rest = x - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

/* Whether the steps of most ranks are mostly a start-up, so that predictions about them say nothing
   about later steps. */
bool rp_sim_starts_up(const struct rp_sim_run *run);
#define RP_SIM_START_UP "the steps are mostly a start-up, which later steps do not repeat"
