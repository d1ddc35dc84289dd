/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a what-if asks about the nodes of a run, and how it changes them. */
#include "base/decides.h"
#include "sim/model/names.h"
#include "sim/whatif/whatifs.h"

/* Whether this is work of a thread that does not just carry collectives. */
static inline bool rp_sim_is_host(const struct rp_sim_run *run, uint32_t node)
{
    uint8_t kind = rp_sim_node(run, node)->kind;

    return (kind == RP_SG_HOST || kind == RP_SG_RUNTIME) &&
           !(rp_sim_note_of(run, node)->flags & RP_SIM_REMOTE);
}
/* Whether this is a kernel, copy or memset of a device that is not a collective; if not
   rp_sim_is_kernel, a copy or memset. */
static inline bool rp_sim_is_device_work(const struct rp_sim_run *run, uint32_t node)
{
    uint8_t kind = rp_sim_node(run, node)->kind;

    return (kind == RP_SG_COMPUTE || kind == RP_SG_MEMORY) &&
           !(rp_sim_note_of(run, node)->flags & RP_SIM_REMOTE);
}
/* Whether this is a collective, a send, a receive, or what a thread does for one. */
static inline bool rp_sim_is_comm(const struct rp_sim_run *run, uint32_t node)
{
    return rp_sim_node(run, node)->kind == RP_SG_COMM ||
           rp_sim_note_of(run, node)->flags & RP_SIM_REMOTE;
}
/* Whether any device ran kernels; otherwise operators of the host are the compute. */
bool rp_sim_has_device(const struct rp_sim_run *run);
/* Whether a pattern fits: with * or ?, the whole name of the node or of its operator; plain text, a
   part of the node's name or the operator's whole name. */
bool rp_sim_name_fits(const struct rp_sim_run *run, const char *pattern, uint32_t node);

/* Whether operators of PyTorch were recorded; whether a step trains, that is, has a backward
   pass. */
bool rp_sim_is_torch(const struct rp_sim_part *part);

/* Whether a node belongs to a step, if there are steps: before the first one a compiler may have
   tried kernels. */
bool rp_sim_in_steps(const struct rp_sim_run *run, uint32_t node);

/* The recorder's options for shapes and for memory; NULL if it has none. */
const char *rp_sim_shapes_option(const struct rp_sim_part *part);
const char *rp_sim_memory_option(const struct rp_sim_part *part);

/* Conditions of rows (`applies`): kernels, or communication, must have been recorded. */
enum rp_whatif_verdict rp_sim_needs_kernels(const struct rp_sim_run *run,
                                            const struct rp_whatif_args *args, struct rp_err *why);
enum rp_whatif_verdict rp_sim_needs_comm(const struct rp_sim_run *run,
                                         const struct rp_whatif_args *args, struct rp_err *why);
bool rp_sim_trains(const struct rp_sim_run *run);

const char *rp_sim_node_name(const struct rp_sim_run *run, uint32_t node);

/* What the name of a kernel tells (kernels.c). */
enum {
    RP_KERNEL_KNOWN = 1, /* always set */
    RP_KERNEL_MATRIX = 2,
    RP_KERNEL_CONVOLUTION = 4, /* neither: on elements */
    RP_KERNEL_HALF = 8,        /* it computes with at most 16 bits */
    RP_KERNEL_SINGLE = 16,     /* it computes with 32; the names of many kernels tell neither */
    RP_KERNEL_TF32 = 32,
    RP_KERNEL_DEPTHWISE = 64,
    RP_KERNEL_POINTWISE = 128, /* generated for one element-wise operator, so it can be fused */
    RP_KERNEL_LAYOUT = 256,    /* converts the layout of tensors around convolutions */
    RP_KERNEL_PRODUCT = RP_KERNEL_MATRIX | RP_KERNEL_CONVOLUTION
};
unsigned rp_kernel_traits(const char *name);
/* The traits of the kernel that a node is; each name is examined once. */
unsigned rp_sim_kernel_traits(const struct rp_sim_run *run, uint32_t node);
static inline bool rp_sim_is_kernel(const struct rp_sim_run *run, uint32_t node)
{
    return rp_sim_node(run, node)->kind == RP_SG_COMPUTE && rp_sim_is_device_work(run, node);
}

/* The time of a kernel that does next to nothing, whatever its data. */
#define RP_SIM_EMPTY_KERNEL_NS 2000
RP_DECISION(
    RP_SIM_EMPTY_KERNEL_NS, "ns", "on an H200, with the gap before the next kernel",
    "sim/an_operator_gains_what_autocast_makes_of_it, sim/more_samples_do_not_make_more_parameters");

/* The relative error of a prediction. If it follows from kernels that were measured: */
#define RP_SIM_MEASURED_DOUBT 0.15
RP_DECISION(RP_SIM_MEASURED_DOUBT, "of the time",
            "the middle half of what was measured lies within it: operators under autocast, masked "
            "attention, fused updates (-15 to +9 %), devices of one maker (docs/definitions.md)",
            "sim/intervals_reach_as_far_as_the_doubt");
/* ... if it is the median of unlike kernels of such a duration: */
#define RP_SIM_TABLE_DOUBT 0.3
RP_DECISION(RP_SIM_TABLE_DOUBT, "of the time",
            "the middle half of the 1,920 operators, and of the 40 chains, that the medians are of",
            "sim/medians_are_off_by_more");

/* What a cost model says about a node; NULL if no model was asked. */
const struct rp_sim_ratio *rp_sim_ratio_of(const struct rp_sim_run *run, uint32_t node);

/* Whether attention gets a mask in a compiled or captured step, although it is causal by a flag as
   long as the host may ask the device (sim/kernel_ratios.c). */
bool rp_sim_is_masked(const struct rp_sim_run *run, uint32_t node, bool compiled);
enum rp_code rp_sim_mask_attention(struct rp_sim_run *run, uint32_t node,
                                   const struct rp_whatif_list *list, struct rp_err *err);

static inline enum rp_code rp_sim_scale_node(struct rp_sim_run *run, uint32_t node, double factor,
                                             struct rp_err *err)
{
    return rp_overlay_set_dur(&run->overlay, node,
                              rp_sim_scaled(run->overlay.dur_ns.at[node], factor), err);
}
/* How long the thread of a node did nothing before it. For the rest of a call that waited for the
   device, which is a node of its own, this is the wait. */
int64_t rp_sim_waited_ns(const struct rp_sim_run *run, uint32_t node);
/* Whether a long call allocates or frees device memory, or launches kernels that do. */
bool rp_sim_allocates(const struct rp_sim_run *run, uint32_t node);
/* Whether the host runs operators of the model here: not of its optimizer, nor work that prepares
   its input, waits, or allocates memory for long. */
bool rp_sim_runs_model(const struct rp_sim_run *run, uint32_t node);
/* Scales the time of such a node, and that until the next one, which is spent in code around
   operators. */
enum rp_code rp_sim_scale_model_code(struct rp_sim_run *run, uint32_t node, double factor,
                                     struct rp_err *err);

/* Makes the slowest rank of each step as slow as the slowest of n is expected to be, from how much
   the recorded ranks differ. Does nothing if only one rank was recorded. */
enum rp_code rp_sim_expect_slowest(struct rp_sim_run *run, double n, struct rp_err *err);

/* The factor for a duration that may be longer or shorter by that part: 1, or the end to which the
   run leans. Intervals come from it. */
double rp_sim_lean_by(struct rp_sim_run *run, double part);

/* The tasks that a what-if selected, and how it says so: "96 tasks: 'aten::mm' (64), 'aten::add'
   (32)", the most frequent names first. Only if the run wants to know (rp_sim_run.says). */
typedef RP_VEC(uint32_t) rp_sim_task_vec;
enum rp_code rp_sim_match(const struct rp_sim_run *run, rp_sim_task_vec *list, uint32_t task,
                          struct rp_err *err);
/* `what` is put before it, or is NULL. Releases the list. */
enum rp_code rp_sim_say(struct rp_sim_run *run, const char *what, rp_sim_task_vec *list,
                        struct rp_err *err);

/* Handles straggler=median beside devices (repair.c). */
enum rp_code rp_whatif_repair(struct rp_sim_run *run, struct rp_err *err);

/* Handles straggler on the timeline of a pipeline (straggler_timeline.c). */
enum rp_code rp_whatif_straggler_timeline(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                          struct rp_err *err);
