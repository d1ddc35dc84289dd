/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A rank's part of a simulated run: its step graph, and what each what-if needs to know about
 * nodes. The trace is not needed afterwards.
 */
#include "facts/work/attribution.h"
#include "facts/work/recorder.h"
#include "stepgraph/graph.h"

/* Flags of a node. */
enum {
    RP_SIM_TIMES = 1,   /* stands for the mark of its step, which begins with the first of these */
    RP_SIM_OPENS = 2,   /* the first part of a recorded span: recording it cost time */
    RP_SIM_CALL = 4,    /* a call that the device's tracer intercepted, too */
    RP_SIM_REMOTE = 8,  /* runs on a thread of a host collective, or was launched there */
    RP_SIM_LOADER = 16, /* host node inside a data loader */
    RP_SIM_FRAME = 32,  /* of a Python frame */
    RP_SIM_ENDS = 64,   /* of the last step, whose mark ends with the last of these */
    RP_SIM_BEGINS = 128 /* device work that was launched inside the mark of its step */
};

struct rp_sim_note {
    uint32_t op;   /* index in the graph's names of the operator around it; 0: none */
    uint16_t step; /* the last step that had begun when it was launched; RP_NO_STEP */
    uint8_t phase; /* enum rp_phase */
    uint8_t flags;
};

/* A gradient that becomes ready in the backward pass: where, and how large. */
struct rp_sim_gradient {
    uint32_t node; /* the end of this host node */
    uint32_t work; /* and of this device node, the last before it, or RP_NONE */
    int64_t bytes; /* -1: not recorded */
    uint16_t step;
    uint16_t reserved[3]; /* 0, because parts are compared as bytes */
};

/* A wait of a rank from the end of one node to the start of another, without the nodes [first, end)
   that it runs meanwhile. */
struct rp_sim_wait {
    uint32_t from, to, first, end;
};

/* How long a kernel would take, relative to its time, by a cost model; ratio 0: unknown. For a
   product of the forward pass, also the tensors converted for it in both passes. */
struct rp_sim_ratio {
    float ratio, low, high;
    float casts, casts_ns; /* tensors converted in a pass; device time for them in both passes */
    float tf32; /* the same ratio for tf32; 0: the model does not know it, -1: it knows no products
                   in tf32, which run one by one */
    float masked,
        masked_half; /* for attention that gets a mask if the step is captured or compiled: the same
                        ratio, as recorded and in 16 bits; 0: it gets none */
    bool captured;   /* only if it is captured */
};

/* One of the Python frames that are one node (chains.h), in order. */
struct rp_sim_link {
    uint32_t node;           /* which it is a part of */
    uint32_t lag_ns, dur_ns; /* gap after the previous frame in the node; duration as recorded */
    uint32_t opens;          /* 1 if it is the first part of its span */
};

/* Launches of a judged step between two waits of the host (pieces.h). */
struct rp_sim_piece {
    uint32_t first, last; /* nodes of the host: its first and its last launch */
    uint32_t launches;    /* number of launches of compute */
    uint32_t kind;        /* the same number for what is launched again */
    uint32_t uses;        /* how often it occurs in the judged steps */
    uint16_t step;
    uint8_t open; /* the host does not wait before the next piece, which belongs to the next step */
    uint8_t reserved; /* 0, because digests store pieces as bytes */
};

struct rp_sim_part {
    struct rp_stepgraph graph;
    struct rp_collectives collectives;
    RP_VEC(struct rp_sim_note) notes; /* by node */
    RP_VEC(uint8_t)
    packed_nodes, packed_edges;            /* instead of graph.nodes with notes, and graph.edges */
    uint32_t npacked_nodes, npacked_edges; /* (pack.h); 0 if they are not packed */
    RP_VEC(struct rp_sim_link) links;      /* by node; empty if nodes are as recorded */
    RP_VEC(struct rp_sim_gradient) gradients;
    RP_VEC(int64_t)
    step_begin_ns, step_end_ns; /* of the marks, as recorded; end: begin of the next one, unless
                                   there is a break */
    RP_VEC(uint8_t) bare; /* by step: whether it was recorded without detail; empty if none was */
    uint32_t previous;    /* 1 + the node that ends the work of the step before the first one
                             (facts/times/step_times.h); 0 if there is none */
    bool previous_unrecorded; /* that node is the one that waited for that work */
    uint32_t nsteps;          /* at least 1: without steps, the recording counts as one */
    bool has_steps;           /* they are marked */
    bool marks_on_device;     /* ... by times on the device */
    int64_t measured_ns;      /* a step's time as recorded (facts/times/step_times.h) */
    int64_t distance_ns;   /* distance between the first device work (else the marks) of consecutive
                              steps */
    bool begins_on_device; /* ... every step has such work */
    RP_VEC(int64_t)
    head_ns;             /* by step: from its mark to the first task that stands for it; or empty */
    int64_t tail_ns;     /* from the last end of such tasks to that of the last mark; or absent */
    double spread_ratio; /* mean deviation of steps from that time; NaN for fewer than two
                            (rp_sim_spread) */
    uint32_t nranks;     /* number of ranks in it: 1, or all ranks of a job */
    uint32_t stages;     /* stages of a pipeline timeline; 0 if it is not one */
    bool parallel_steps; /* its steps do not follow each other, but each starts at 0 */
    size_t recorded_steps;              /* number of steps of a job or a timeline */
    RP_VEC(struct rp_sim_wait) waits;   /* of a job */
    RP_VEC(const char *) remarks;       /* notes for the answer */
    RP_VEC(uint32_t) devices;           /* by node; empty if none has one */
    RP_VEC(uint8_t) priorities;         /* by node; empty if none has one */
    RP_VEC(uint8_t) device_rules;       /* enum rp_sim_device_rule */
    RP_VEC(struct rp_sim_piece) pieces; /* in the order of time; none if no steps are marked */
    uint32_t turns;                     /* in the steps of the pieces (facts/work/turns.h) */
    RP_VEC(struct rp_sim_ratio) ratios; /* by node, for another number format; or empty */
    const char *wait_line; /* "train.py(31): step", where the host waits for the device most often,
                              in the arena; NULL: not recorded */
    const char *update; /* the mark of its optimizer, "Optimizer.step#AdamW.step", in the arena; or
                           NULL */
    const char *gpu;    /* name of the first device, in the arena; NULL: not recorded */
    int64_t pid;        /* of its host, if threads carry collectives; 0: not known, or not needed */
    double crowded; /* 0 to 1: how much threads of the ranks on its machine wait for a processor; 0:
                       not at all, or not known */
    int64_t quick_ns;        /* the time of an operator that does next to nothing; 0: not known */
    double unrecorded_ratio; /* time of a step without the recorder relative to that with it, as
                                measured; 0: it was not */
    int64_t world_size;      /* ranks of the job, recorded or not; 0: not known */
    double exposed_ratio;    /* share of the device's time in which it only communicates */
    bool start_up; /* its steps are mostly a start-up (facts/idle/gaps.h); not set by init */
    bool with_shapes, with_frames, with_device; /* what was recorded */
    struct rp_recorder recorder;
    uint32_t nspans, ncalls, nframes; /* numbers that the profiler recorded on the host */
};

extern const struct rp_type rp_sim_part_type; /* result/part.h */

/* Must be released also after a failure, unless its vectors were given to the arena
   (rp_part_adopt). Texts are in the arena. */
enum rp_code rp_sim_part_init(struct rp_sim_part *out, const struct rp_trace *trace,
                              struct rp_arena *arena, struct rp_err *err);
void rp_sim_part_release(struct rp_sim_part *part);
