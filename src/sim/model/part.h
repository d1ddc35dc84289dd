/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A rank's part of a simulated run: its step graph, and what what-ifs need to know about each node.
 * The trace is not needed afterwards.
 */
#include "facts/work/attribution.h"
#include "facts/work/recorder.h"
#include "stepgraph/graph.h"

/* Flags of a node. */
enum {
    RP_SIM_TIMES = 1,   /* stands for the mark of its step: the first of them begins with it */
    RP_SIM_OPENS = 2,   /* the first part of a recorded span: recording it cost time */
    RP_SIM_CALL = 4,    /* of a call that the device's tracer intercepted too */
    RP_SIM_REMOTE = 8,  /* runs on a thread of a host collective, or was launched there */
    RP_SIM_LOADER = 16, /* of the host: inside a data loader */
    RP_SIM_FRAME = 32,  /* of a Python frame */
    RP_SIM_ENDS = 64,   /* of the last step: the last of them ends with its mark */
    RP_SIM_BEGINS = 128 /* device work that was launched inside the mark of its step */
};

struct rp_sim_note {
    uint32_t op;   /* the operator around it: into the graph's names; 0: none */
    uint16_t step; /* the last that had begun when it was launched; RP_NO_STEP */
    uint8_t phase; /* enum rp_phase */
    uint8_t flags;
};

/* A gradient that becomes ready in the backward pass: where, and how large. */
struct rp_sim_gradient {
    uint32_t node; /* the end of this host node */
    uint32_t work; /* and of this device node, the last before it, or RP_NONE */
    int64_t bytes; /* -1: not recorded */
    uint16_t step;
    uint16_t reserved[3]; /* 0: parts are compared as bytes */
};

/* A rank waits from the end of one node to the start of another, except for the nodes [first, end)
   that it runs meanwhile. */
struct rp_sim_wait {
    uint32_t from, to, first, end;
};

/* How long a kernel would take, in parts of its time, by a cost model; ratio 0: it does not say. Of
   a product of the forward pass also what is converted for it, in both passes. */
struct rp_sim_ratio {
    float ratio, low, high;
    float casts, casts_ns; /* tensors of a pass; time of the device in both */
    float tf32;            /* the same as ratio, for tf32; 0: the model does not say, -1: it says
                              nothing about products in it, which run one by one */
    float masked, masked_half; /* of attention that is passed a mask while the step is captured or
                                  compiled: the same, as recorded and once it is in 16 bits; 0: it
                                  is not passed one */
    bool captured;             /* only while it is captured */
};

/* One of the Python frames that are one node (chains.h), in order. */
struct rp_sim_link {
    uint32_t node;           /* which it is a part of */
    uint32_t lag_ns, dur_ns; /* after the one before it in the node; as recorded */
    uint32_t opens;          /* it is the first part of its span */
};

/* Launches of a judged step between two waits of the host (pieces.h). */
struct rp_sim_piece {
    uint32_t first, last; /* nodes of the host: its first and its last launch */
    uint32_t launches;    /* of compute */
    uint32_t kind;        /* the same for what is launched again */
    uint32_t uses;        /* how often that is in the judged steps */
    uint16_t step;
    uint8_t open;     /* the host does not wait before the next one, which is of the next step */
    uint8_t reserved; /* 0: digests store pieces as bytes */
};

struct rp_sim_part {
    struct rp_stepgraph graph;
    struct rp_collectives collectives;
    RP_VEC(struct rp_sim_note) notes;           /* by node */
    RP_VEC(uint8_t) packed_nodes, packed_edges; /* instead of graph.nodes, notes; graph.edges */
    uint32_t npacked_nodes, npacked_edges;      /* (pack.h); 0: they are not packed */
    RP_VEC(struct rp_sim_link) links;           /* by node; or empty: nodes are as recorded */
    RP_VEC(struct rp_sim_gradient) gradients;
    RP_VEC(int64_t)
    step_begin_ns, step_end_ns; /* of the marks, as recorded; end: where the next
                                   one begins, if there is no break between */
    RP_VEC(uint8_t) bare;       /* by step: it was recorded without detail; or empty: none */
    uint32_t previous;          /* 1 + the node that ends the work of the step before the first
                                   (facts/times/step_times.h); 0: there is none */
    bool previous_unrecorded;   /* it is the one that waited for that work */
    uint32_t nsteps;            /* at least 1: without steps the recording is one */
    bool has_steps;             /* they are marked */
    bool marks_on_device;       /* ... by times of device work */
    int64_t measured_ns;        /* a step's time as recorded (facts/times/step_times.h) */
    int64_t distance_ns;        /* of the first device work (else the marks) of consecutive steps */
    bool begins_on_device;      /* ... every step has such work */
    RP_VEC(int64_t)
    head_ns;             /* by step: from its mark to the first task that stands for it; or empty */
    int64_t tail_ns;     /* from the last end of such tasks to that of the last mark; or absent */
    double spread_ratio; /* how far steps are from that time, on average; NaN: fewer than two
                            (rp_sim_spread) */
    uint32_t nranks;     /* that it holds: 1, or all of a job */
    uint32_t stages;     /* of a pipeline timeline; 0: it is not one */
    bool parallel_steps; /* its steps do not follow each other: each starts at 0 */
    size_t recorded_steps;              /* of a job or a timeline */
    RP_VEC(struct rp_sim_wait) waits;   /* of a job */
    RP_VEC(const char *) remarks;       /* notes for the answer */
    RP_VEC(uint32_t) devices;           /* by node, or empty: none has one */
    RP_VEC(uint8_t) priorities;         /* by node, or empty: none has one */
    RP_VEC(uint8_t) device_rules;       /* enum rp_sim_device_rule */
    RP_VEC(struct rp_sim_piece) pieces; /* in time order; none where no steps are marked */
    RP_VEC(struct rp_sim_ratio) ratios; /* by node, or empty: of another number format */
    const char *update; /* the mark of its optimizer, "Optimizer.step#AdamW.step", in the arena; or
                           NULL */
    const char *gpu;    /* name of the first device, in the arena; NULL: not recorded */
    int64_t pid;    /* of its host, where threads carry collectives; 0: not known, or not needed */
    double crowded; /* 0 to 1: threads of the ranks that share its machine wait for a
                       processor; 0: they need not, or it is not known */
    int64_t quick_ns;        /* the time of an operator that does next to nothing; 0: not known */
    double unrecorded_ratio; /* a step without the recorder / with it, as measured; 0: it was not */
    int64_t world_size;      /* ranks of the job, recorded or not; 0: not known */
    double exposed_ratio;    /* of the device's time: it communicates, and nothing else runs */
    bool start_up; /* its steps are mostly a start-up (facts/idle/gaps.h); not set by init */
    bool with_shapes, with_frames, with_device; /* what was recorded */
    struct rp_recorder recorder;
    uint32_t nspans, ncalls, nframes; /* that the profiler recorded on the host */
};

extern const struct rp_type rp_sim_part_type; /* result/part.h */

/* Release it also after a failure, or give its vectors to the arena (rp_part_adopt). Texts are in
   the arena. */
enum rp_code rp_sim_part_init(struct rp_sim_part *out, const struct rp_trace *trace,
                              struct rp_arena *arena, struct rp_err *err);
void rp_sim_part_release(struct rp_sim_part *part);
