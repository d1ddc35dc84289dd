/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A plan: what to change in a training job, as the search found it. The question `optimize` prints
 * it, and exporters (opt/export/) write it as settings of frameworks. All of it is in the arena of
 * the result; texts are not NULL unless a comment says so; lists may be empty.
 *
 *     moves      in the order in which they are applied; their gains add up to baseline - best
 *     groups     how gradients are sent, in order          (a move of RP_OPT_TENSOR changed it)
 *     clusters   operators that become one kernel          (RP_OPT_FUSION)
 *     regions    parts of a step that become CUDA graphs   (RP_OPT_GRAPHS)
 *     casts      operators and their new number format     (RP_OPT_PRECISION)
 *
 * If no move changes them, groups describe the recording, and the other lists are empty.
 */
#include "base/decides.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The families of moves, as '--moves' names them. */
enum rp_opt_family {
    RP_OPT_TENSOR,    /* groups and parts of gradients, such as buckets */
    RP_OPT_FUSION,    /* fused operators: element-wise chains, the optimizer */
    RP_OPT_GRAPHS,    /* regions launched as one CUDA graph */
    RP_OPT_PRECISION, /* operators in 16 bits */
    RP_OPT_MEMORY,    /* operators that run again instead of keeping their results */
    RP_OPT_OVERLAP,   /* communication in parallel with compute, host with device, collective
                         algorithm */
    RP_OPT_BALANCE,   /* the work of one rank becomes like that of the others */
    RP_OPT_FAMILIES
};

/* The origin of the recording, which decides which exporters apply. */
enum rp_opt_source {
    RP_OPT_OTHER,
    RP_OPT_TORCH,      /* a trace of PyTorch */
    RP_OPT_JAX,        /* a trace of XLA */
    RP_OPT_TENSORFLOW, /* a trace of TensorFlow */
    RP_OPT_HOROVOD,    /* a dPRO directory: TensorFlow (or MXNet) with Horovod */
    RP_OPT_BYTEPS      /* ... and BytePS */
};

struct rp_opt_tensor {
    int64_t id; /* the id of Horovod and BytePS; otherwise its place in the order of readiness */
    const char *name; /* the name of the gradient; NULL if not recorded */
    int64_t bytes;    /* -1: not recorded */
    int64_t ready_ns; /* the time since the begin of the step, on the slowest rank */
};

struct rp_opt_group {   /* gradients that are sent together */
    size_t ntensors;    /* at least one */
    uint32_t *tensors;  /* indices of the plan's tensors, in the order in which they become ready */
    int64_t bytes;      /* -1: not known */
    int64_t part_bytes; /* it is sent in pieces of this size; 0 if it is not divided */
};

#define RP_OPT_CHAIN_MOST 256
RP_LIMIT(RP_OPT_CHAIN_MOST, "operators of a chain", "a longer one is not listed, or cut");

struct rp_opt_cluster {
    size_t nops;
    const char **ops;       /* names of operators or kernels, in order */
    const char *kind;       /* "element-wise", "optimizer" */
    int64_t count;          /* how often such a chain occurs per step and rank */
    int64_t saved_ns;       /* device time per step and rank */
    size_t ntensors;        /* gradients that its operators make; for a dPRO directory */
    const int64_t *tensors; /* their ids */
};

struct rp_opt_region {
    const char *name; /* "step", "forward", "backward", "optimizer", or a pattern of names */
};

struct rp_opt_cast {
    const char *op;          /* an operator, by its name in the framework */
    const char *dtype;       /* "bf16" */
    int64_t count;           /* kernels per step and rank */
    int64_t now_ns, then_ns; /* device time per step and rank */
};

struct rp_opt_move {
    const char *move; /* the name of the move: "tensor-fusion", "bucket", "cuda-graphs" … */
    enum rp_opt_family family;
    const char *what;    /* a description of the change for people */
    const char *apply;   /* how to apply it, in one line */
    const char *what_if; /* the change as 'simulate --what-if' takes it; NULL if it has none */
    const char *assumes; /* what must hold; "" */
    int64_t gain_ns;     /* how much shorter a step becomes, after the moves before it */
    int64_t gain_low_ns, gain_high_ns; /* the interval of the gain; RP_ABSENT_I64 if not known */
    int64_t step_ns;                   /* the time of a step with this move and those before it */
    int64_t tries; /* tries on this machine from which the interval comes, or 0 */
    bool sure;     /* the gain is larger than its uncertainty */
};

struct rp_opt_plan {
    enum rp_opt_source source;
    int64_t ranks; /* of the job */
    int64_t baseline_ns, best_ns;
    int64_t best_low_ns, best_high_ns; /* RP_ABSENT_I64 if not known */
    size_t nmoves;
    struct rp_opt_move *moves;

    size_t ntensors;
    struct rp_opt_tensor *tensors; /* in the order in which they become ready */
    size_t ngroups;
    struct rp_opt_group *groups; /* in the order in which they are sent */
    size_t nrecorded;
    struct rp_opt_group *recorded; /* the recorded groups; empty if not known */
    double bucket_cap_mb;          /* the best single size in MiB; NaN if none was searched */

    size_t nclusters;
    struct rp_opt_cluster *clusters;
    bool fused_optimizer;
    const char *optimizer; /* the name of the optimizer, "Adam"; NULL if not recognised */
    size_t nregions;
    struct rp_opt_region *regions;
    size_t ncasts;
    struct rp_opt_cast *casts;
    int64_t peak_bytes,
        peak_then_bytes; /* memory of the rank with the most; RP_ABSENT_I64 if not known */
};
