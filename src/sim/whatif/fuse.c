/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: consecutive kernels become one. What a fused chain takes was measured (sim/model/fusing.h).
 */
#include "sim/model/fusing.h"
#include "sim/whatif/nodes.h"

#include <stdio.h>
#include <string.h>

/* By which part a chain of other operators, on another device, may take more or less. */
#define CHAIN_DOUBT 0.3

struct fuse_ctx {
    struct rp_sim_run *run;
    bool no_optimizer; /* its kernels are fused by another what-if */
    const char *pattern;
    size_t chains;
    rp_sim_task_vec matched;
    RP_VEC(uint32_t) launch_of; /* by task: the call that launched it, or RP_NONE */
};

static bool is_link(const struct fuse_ctx *f, uint32_t i)
{
    if (!rp_sim_is_kernel(f->run, i) || f->run->gone.at[i] ||
        (f->no_optimizer && rp_sim_note_of(f->run, i)->phase == RP_PHASE_OPTIMIZER))
        return false;
    if (*f->pattern && strcmp(f->pattern, "all") != 0)
        return rp_sim_name_fits(f->run, f->pattern, i);
    return rp_sim_kernel_traits(f->run, i) & RP_KERNEL_POINTWISE;
}

/* Launching what is no more takes no time either. */
static enum rp_code drop_launch(struct fuse_ctx *f, uint32_t kernel, struct rp_err *err)
{
    uint32_t launch = f->launch_of.at[kernel];

    return launch == RP_NONE ? RP_OK : rp_overlay_set_dur(&f->run->overlay, launch, 0, err);
}

static enum rp_code find_launches(struct fuse_ctx *f, struct rp_err *err)
{
    const struct rp_task_graph *g = &f->run->tasks;
    uint32_t v, i;

    RP_TRY(rp_vec_reserve(&f->launch_of, g->tasks.n + 1, err));
    memset(f->launch_of.at, 0xff, g->tasks.n * sizeof *f->launch_of.at);
    for (v = 0; v < g->tasks.n; v++)
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            if (RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_LAUNCH)
                f->launch_of.at[g->edges.at[i].to] = v;
    return RP_OK;
}

static enum rp_code close_gap(struct fuse_ctx *f, uint32_t kernel, struct rp_err *err)
{
    const struct rp_task_graph *g = &f->run->tasks;
    uint32_t i;

    for (i = g->first.at[kernel]; i < g->first.at[kernel + 1]; i++)
        if (RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_STREAM &&
            f->run->overlay.lag_ns.at[i] > 0)
            RP_TRY(rp_overlay_set_lag(&f->run->overlay, i, 0, err));
    return RP_OK;
}

/* The last of a chain becomes the whole of it. */
static enum rp_code fuse_chain(struct fuse_ctx *f, uint32_t first, uint32_t end, struct rp_err *err)
{
    struct rp_overlay *o = &f->run->overlay;
    int64_t longest = 0, sum = 0, fused;
    uint32_t i;

    for (i = first; i < end; i++) {
        RP_TRY(rp_sim_match(f->run, &f->matched, i, err));
        longest = o->dur_ns.at[i] > longest ? o->dur_ns.at[i] : longest;
        sum = rp_ns_sum(sum, o->dur_ns.at[i]);
    }
    fused =
        rp_sim_scaled(longest, rp_sim_fused_factor(longest) * rp_sim_lean_by(f->run, CHAIN_DOUBT));
    for (i = first; i + 1 < end; i++) {
        RP_TRY(rp_overlay_set_dur(o, i, 0, err));
        RP_TRY(close_gap(f, i, err));
        RP_TRY(drop_launch(f, i, err));
    }
    f->chains++;
    return rp_overlay_set_dur(o, end - 1, fused < sum ? fused : sum, err);
}

static enum rp_code fuse_lane(struct fuse_ctx *f, const struct rp_sg_lane *lane, struct rp_err *err)
{
    uint32_t i = lane->first, end;

    while (i < lane->end) {
        for (end = i; end < lane->end && is_link(f, end) &&
                      rp_sim_note_of(f->run, end)->step == rp_sim_note_of(f->run, i)->step;)
            end++;
        if (end > i + 1)
            RP_TRY(fuse_chain(f, i, end, err));
        i = end > i ? end : i + 1;
    }
    return RP_OK;
}

static enum rp_code fuse_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                               struct rp_err *err)
{
    struct fuse_ctx f = {.run = run,
                         .no_optimizer = rp_whatif_list_has(args->list, &rp_whatif_fused_optimizer),
                         .pattern = args->value ? args->value : ""};
    enum rp_code code = RP_OK;
    char what[40];
    size_t k;

    RP_TRY(rp_sim_need_kernels(run, "fuse", err));
    code = find_launches(&f, err);
    for (k = 0; k < run->graph->lanes.n && code == RP_OK; k++)
        if (run->graph->lanes.at[k].device)
            code = fuse_lane(&f, &run->graph->lanes.at[k], err);
    if (code == RP_OK && !f.chains)
        code = rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': no two such kernels follow each other on a stream", args->text);
    snprintf(what, sizeof what, "makes %zu of", f.chains);
    if (code == RP_OK)
        code = rp_sim_say(run, what, &f.matched, err);
    rp_vec_release(&f.matched);
    rp_vec_release(&f.launch_of);
    return code;
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
    .apply = fuse_apply};
