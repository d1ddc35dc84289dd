/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: consecutive kernels become one. The time of a fused chain was measured
 * (sim/model/fusing.h).
 *
 * compile: torch.compile of the model. Between products of matrices its kernels are fused as far as
 * the next reduction, whose kernel ends a chain, and the host runs generated code, which takes a
 * part of the time for each remaining kernel, plus some time to enter a pass.
 *
 * A chain does not pass a wait of the host for the device: what is launched next may depend on the
 * value read.
 */
#include "base/filled.h"
#include "sim/model/fusing.h"
#include "sim/whatif/nodes.h"
#include "sim/whatif/repeats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILED_PART 0.55
RP_DECISION(
    COMPILED_PART, "of an operator that launches a kernel",
    "the host's time for a kernel of generated code: chosen for three networks measured on an "
    "H200, T5 47.9 -> 22.3 ms, a UNet 14.4 -> 12.8, a GPT in bf16 12.2 -> 10.1",
    "sim/a_pass_is_fused_and_compiled_for_itself");
#define ENTER_FORWARD_NS 700000
RP_DECISION(ENTER_FORWARD_NS, "ns", "guards, arguments, saved tensors; chosen with COMPILED_PART",
            "sim/a_compiled_pass_is_entered");
#define ENTER_BACKWARD_NS 2300000
RP_DECISION(ENTER_BACKWARD_NS, "ns", "chosen with COMPILED_PART",
            "sim/a_pass_is_fused_and_compiled_for_itself");
#define COMPILED_DOUBT 0.6
RP_DECISION(COMPILED_DOUBT, "of the host's time",
            "compiled steps of one of these networks differ by a third, up and down",
            "sim/a_compiled_pass_is_entered");
#define COMPILED_WORK_DOUBT 0.05
RP_DECISION(COMPILED_WORK_DOUBT, "of the device's time",
            "compiled steps of 15 networks were shorter by up to this, and not longer",
            "sim/a_compiled_pass_is_entered");

struct fuse_ctx {
    struct rp_sim_run *run;
    bool compile;
    bool no_optimizer, no_model; /* another what-if fuses their kernels */
    const char *pattern;
    size_t chains, fused; /* fused: number of kernels in the chains */
    rp_sim_task_vec matched;
    RP_VEC(uint32_t) launch_of; /* by task: the call that launched it, or RP_NONE */
    struct rp_arena scratch;
    uint32_t *piece; /* by task (repeats.h) */
};

/* Whether a node belongs to the model; its optimizer is not compiled. */
static bool is_compiled(const struct rp_sim_run *run, uint32_t i)
{
    const struct rp_sim_note *note = rp_sim_note_of(run, i);

    return note->step != RP_NO_STEP && note->phase != RP_PHASE_OPTIMIZER && !run->gone.at[i];
}

static bool is_link(const struct fuse_ctx *f, uint32_t i)
{
    if (f->compile)
        return rp_sim_is_kernel(f->run, i) && is_compiled(f->run, i) &&
               !(rp_sim_kernel_traits(f->run, i) & RP_KERNEL_PRODUCT);
    if (!rp_sim_is_kernel(f->run, i) || f->run->gone.at[i] ||
        (rp_sim_note_of(f->run, i)->phase == RP_PHASE_OPTIMIZER ? f->no_optimizer : f->no_model))
        return false;
    if (*f->pattern && strcmp(f->pattern, "all") != 0)
        return rp_sim_name_fits(f->run, f->pattern, i);
    return rp_sim_kernel_traits(f->run, i) & RP_KERNEL_POINTWISE;
}

/* Whether a kernel ends a chain, as a reduction does, because it is the last part of a generated
   kernel. */
static bool ends_chain(const struct fuse_ctx *f, uint32_t i)
{
    return f->compile && !(rp_sim_kernel_traits(f->run, i) & RP_KERNEL_POINTWISE);
}

/* Launching a kernel that no longer exists takes no time either. */
static enum rp_code drop_launch(struct fuse_ctx *f, uint32_t kernel, struct rp_err *err)
{
    uint32_t launch = f->compile ? RP_NONE : f->launch_of.at[kernel];

    return launch == RP_NONE ? RP_OK : rp_overlay_set_dur(&f->run->overlay, launch, 0, err);
}

static enum rp_code find_launches(struct fuse_ctx *f, struct rp_err *err)
{
    RP_TRY(rp_vec_nones(&f->launch_of, f->run->tasks.tasks.n, err));
    for (size_t k = 0; k < f->run->launches.n; k++)
        f->launch_of.at[f->run->launches.at[k].to] = f->run->launches.at[k].from;
    return RP_OK;
}

/* Puts the time of the whole chain into its last kernel. */
static enum rp_code fuse_chain(struct fuse_ctx *f, uint32_t first, uint32_t end, struct rp_err *err)
{
    struct rp_overlay *o = &f->run->overlay;
    int64_t longest = 0, sum = 0, fused;

    for (uint32_t i = first; i < end; i++) {
        RP_TRY(rp_sim_match(f->run, &f->matched, i, err));
        longest = o->dur_ns.at[i] > longest ? o->dur_ns.at[i] : longest;
        sum = rp_ns_sum(sum, o->dur_ns.at[i]);
    }
    fused = rp_sim_scaled(longest, rp_sim_fused_factor(longest) *
                                       rp_sim_lean_by(f->run, RP_SIM_TABLE_DOUBT));
    for (uint32_t i = first; i + 1 < end; i++) {
        RP_TRY(rp_overlay_set_dur(o, i, 0, err));

        /* The next kernel of the chain follows without a gap. */
        const struct rp_task_graph *g = &f->run->tasks;
        for (uint32_t k = g->first.at[i]; k < g->first.at[i + 1]; k++)
            if (RP_SIM_EDGE_KIND(g->edges.at[k].flags) == RP_SG_STREAM &&
                f->run->overlay.lag_ns.at[k] > 0)
                RP_TRY(rp_overlay_set_lag(&f->run->overlay, k, 0, err));
        RP_TRY(drop_launch(f, i, err));
    }
    f->chains++;
    f->fused += end - first;
    return rp_overlay_set_dur(o, end - 1, fused < sum ? fused : sum, err);
}

/* A compiler's unit is a pass: the end of the forward pass is not joined with the begin of the
   backward pass, nor that with the optimizer. PyTorch does not mark the forward pass. */
static bool same_pass(const struct rp_sim_note *a, const struct rp_sim_note *b)
{
    uint8_t pa = a->phase == RP_PHASE_FORWARD ? RP_PHASE_OTHER : a->phase;
    uint8_t pb = b->phase == RP_PHASE_FORWARD ? RP_PHASE_OTHER : b->phase;

    return a->step == b->step && pa == pb;
}

/* Fuses all chains of all streams, and says which. */
static enum rp_code fuse_all(struct fuse_ctx *f, struct rp_err *err)
{
    const struct rp_stepgraph *g = f->run->graph;
    char what[40];

    RP_TRY(find_launches(f, err));
    RP_TRY(rp_sim_list_pieces(f->run, false, &f->scratch, &f->piece, err));
    for (size_t k = 0; k < g->lanes.n; k++)
        if (g->lanes.at[k].device) {
            uint32_t i = g->lanes.at[k].first, end;

            while (i < g->lanes.at[k].end) {
                for (end = i; end < g->lanes.at[k].end && is_link(f, end) &&
                              same_pass(rp_sim_note_of(f->run, end), rp_sim_note_of(f->run, i)) &&
                              f->piece[end] == f->piece[i] &&
                              (end == i || !ends_chain(f, end - 1));)
                    end++;
                if (end > i + 1)
                    RP_TRY(fuse_chain(f, i, end, err));
                i = end > i ? end : i + 1;
            }
        }
    snprintf(what, sizeof what, "makes %zu of", f->chains);
    return f->chains ? rp_sim_say(f->run, what, &f->matched, err) : RP_OK;
}

static void fuse_release(struct fuse_ctx *f)
{
    rp_vec_release(&f->matched);
    rp_vec_release(&f->launch_of);
    rp_arena_release(&f->scratch);
}

static enum rp_whatif_verdict fuse_applies(const struct rp_sim_run *run,
                                           const struct rp_whatif_args *args, struct rp_err *why)
{
    if (rp_sim_needs_kernels(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    return args ? RP_WHATIF_APPLIES : rp_sim_compiles(run, true, why);
}

static enum rp_code fuse_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                               struct rp_err *err)
{
    RP_SCOPED(fuse_release)
    struct fuse_ctx f = {.run = run,
                         .no_model = rp_whatif_list_has(args->list, &rp_whatif_compile),
                         .no_optimizer = rp_whatif_list_has(args->list, &rp_whatif_fused_optimizer),
                         .pattern = args->value ? args->value : ""};

    RP_TRY(rp_whatif_check(&rp_whatif_fuse, run, args, err));
    RP_TRY(fuse_all(&f, err));
    if (!f.chains && !f.no_model)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': no two such kernels follow each other on a stream", args->text);
    return RP_OK;
}

static const struct rp_whatif_move fuse_move = {
    .family = "fusion",
    .effort = 3,
    .apply = "compile the operators around these kernels (torch.compile, jax.jit, "
             "tf.function(jit_compile=True))"};

const struct rp_whatif rp_whatif_fuse = {
    .name = "fuse",
    .form = "fuse[=<pattern>]",
    .summary = "consecutive element-wise kernels (or kernels that match the pattern) become one",
    .assumes =
        "each kernel reads what the previous one wrote, sizes are similar, and a fused chain "
        "takes 1.04 to 1.36 times its longest kernel, as measured on one H200",
    .value = RP_WHATIF_NAME,
    .move = &fuse_move,
    .applies = fuse_applies,
    .apply = fuse_apply};

/* ------------------------------------------------------------------ compile */

/* Generated code calls the operator of a convolution, which takes as long as before. */
static bool calls_library(const struct rp_sim_run *run, uint32_t i)
{
    const char *op = rp_sim_part_of(run, i)->graph.names.at[rp_sim_note_of(run, i)->op];

    return rp_sim_means(op, RP_SIM_CONVOLVES);
}

/* The time to enter is put before the first operator of each pass of a step: `entered` has a flag
   for each rank, step and pass. */
static enum rp_code compile_host(struct rp_sim_run *run, double factor, bool *entered,
                                 struct rp_err *err)
{
    double lean = rp_sim_lean_by(run, COMPILED_DOUBT);
    int64_t enter_ns[] = {rp_sim_scaled(ENTER_FORWARD_NS, lean),
                          rp_sim_scaled(ENTER_BACKWARD_NS, lean)};
    size_t nsteps = run->parts[0]->nsteps;

    factor *= lean;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        const struct rp_sim_note *note = rp_sim_note_of(run, i);
        size_t pass = (rp_sim_node(run, i)->rank * nsteps + note->step) * 2 +
                      (note->phase == RP_PHASE_BACKWARD);
        int64_t ns = 0;

        if (!rp_sim_runs_model(run, i))
            continue;
        if (note->step < nsteps && !entered[pass]) {
            entered[pass] = true;
            ns = enter_ns[note->phase == RP_PHASE_BACKWARD];
        }
        RP_TRY(rp_sim_scale_model_code(run, i, calls_library(run, i) ? lean : factor, err));
        ns = rp_ns_sum(ns, run->overlay.dur_ns.at[i]);
        RP_TRY(rp_overlay_set_dur(&run->overlay, i, ns, err));
    }
    return RP_OK;
}

/* Counts the kernels of the model. Sets `generated` if a compiler made one of them. */
static size_t count_kernels(const struct rp_sim_run *run, bool *generated)
{
    size_t n = 0;

    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];

        if (!is_compiled(run, i))
            continue;
        n++;
        *generated = *generated || (!(rp_sim_kernel_traits(run, i) & RP_KERNEL_PRODUCT) &&
                                    rp_sim_means(rp_sim_node_name(run, i), RP_SIM_GENERATED));
    }
    return n;
}

/* If so, the host runs none of the generated code, whichever what-if is applied first. */
static bool graphs_launch_model(const struct rp_whatif_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->calls[i].row == &rp_whatif_cuda_graphs &&
            (!list->calls[i].args.value || strcmp(list->calls[i].args.value, "optimizer") != 0))
            return true;
    return false;
}

static enum rp_whatif_verdict compile_applies(const struct rp_sim_run *run,
                                              const struct rp_whatif_args *args, struct rp_err *why)
{
    bool generated = false;

    if (rp_sim_needs_kernels(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    size_t n = count_kernels(run, &generated);
    if (generated || !n)
        return RP_WHATIF_SAY(why, CANNOT, "%s",
                             generated ? "a compiler generated kernels of the step already"
                                       : "no kernel of a step is outside the optimizer");
    if (args)
        return RP_WHATIF_APPLIES;
    if (!rp_sim_is_torch(run->parts[0]) || !rp_sim_trains(run))
        return RP_WHATIF_SAY(why, UNSURE, "it was measured for training steps of PyTorch only");
    return run->parts[0]->recorder.compiled
               ? RP_WHATIF_SAY(why, NOT, "regions of torch.compile were recorded: it is compiled")
               : rp_sim_compiles(run, false, why);
}

static enum rp_code compile_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                  struct rp_err *err)
{
    RP_SCOPED(fuse_release) struct fuse_ctx f = {.run = run, .compile = true, .pattern = ""};
    bool generated = false;
    RP_FREED bool *entered = NULL;
    size_t before, passes = run->nranks * run->parts[0]->nranks * run->parts[0]->nsteps * 2;

    RP_TRY(rp_whatif_check(&rp_whatif_compile, run, args, err));
    before = count_kernels(run, &generated);
    entered = calloc(passes + 1, sizeof *entered);
    RP_TRY(rp_err_need(entered, err, "simulating"));

    double lean = rp_sim_lean_by(run, COMPILED_WORK_DOUBT);
    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];

        if (!is_compiled(run, i))
            continue;
        RP_TRY(rp_sim_scale_node(run, i, lean < 1 ? lean : 1, err));
        if (rp_sim_is_masked(run, i, true))
            RP_TRY(rp_sim_mask_attention(run, i, args->list, err));
    }
    RP_TRY(fuse_all(&f, err));
    if (!graphs_launch_model(args->list))
        RP_TRY(compile_host(run,
                            COMPILED_PART * (double)(before - f.fused + f.chains) / (double)before,
                            entered, err));
    return RP_OK;
}

static const struct rp_whatif_move compile_move = {
    .family = "fusion",
    .effort = 3,
    .apply = "model.compile() before the first step, inside DistributedDataParallel"};

const struct rp_whatif rp_whatif_compile = {
    .name = "compile",
    .form = "compile",
    .summary = "the model is compiled (torch.compile): kernels between products become one up to "
               "each reduction, and generated code launches what is left",
    .assumes =
        "it compiles without breaks of its graph; the host takes 0.55 of its time for "
        "each kernel that is left, and 3 ms a step more, as of three networks on one H200; a "
        "fused chain takes 1.04 to 1.36 times its longest kernel",
    .makes_tasks = true,
    .move = &compile_move,
    .applies = compile_applies,
    .apply = compile_apply};
