/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_WHATIF_WHATIFS_H
#define RP_SIM_WHATIF_WHATIFS_H
/*
 * What-ifs: named changes of a recorded run. Each is a row of one table and a file of its own; it
 * changes the overlay of the run and nothing else, so that it can be taken back and joined with
 * others.
 *
 *     scale:comm=0.5            name ':' subject '=' value
 *     cuda-graphs+bucket=25MB   joined: those that make new tasks first, then from left to right
 */
#include "sim/model/run.h"

struct rp_whatif_args {
    const char *text;    /* as it was given, for messages */
    const char *subject; /* behind ':', or NULL */
    const char *value;   /* behind '=', or NULL */
};

struct rp_whatif {
    const char *name;
    const char *form;    /* "scale:<what>=<factor>" */
    const char *summary; /* what it changes */
    const char *assumes; /* what must hold for it to be right */
    bool makes_tasks;    /* others of the same text apply to them, too */
    enum rp_code (*apply)(struct rp_sim_run *run, const struct rp_whatif_args *args,
                          struct rp_err *err);
};

/* In the order of the help; ended by NULL. */
extern const struct rp_whatif *const rp_whatifs[];

/* Applies one or several, joined with '+'. A malformed one is RP_USAGE and says what is right. */
enum rp_code rp_whatif_apply(struct rp_sim_run *run, const char *text, struct rp_err *err);

/* What they assume, joined with "; ", in the arena. */
enum rp_code rp_whatif_assumes(const char *text, struct rp_arena *arena, const char **out,
                               struct rp_err *err);

/* A factor such as "0.5", "2", "2x" or "50%", larger than 0. */
enum rp_code rp_whatif_factor(const struct rp_whatif_args *args, double *out, struct rp_err *err);

/* straggler on a pipeline's timeline. */
enum rp_code rp_whatif_straggler_timeline(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                          struct rp_err *err);

extern const struct rp_whatif rp_whatif_scale, rp_whatif_cuda_graphs, rp_whatif_fused_optimizer,
    rp_whatif_bucket, rp_whatif_ranks, rp_whatif_bandwidth, rp_whatif_latency, rp_whatif_straggler,
    rp_whatif_no_sync, rp_whatif_no_profiler, rp_whatif_dataloader, rp_whatif_overlap,
    rp_whatif_no_overlap, rp_whatif_parallel_update, rp_whatif_swap, rp_whatif_gpu, rp_whatif_dtype,
    rp_whatif_fuse, rp_whatif_recompute;

#endif
