/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute: operators of the forward pass run again in the backward pass (activation
 * checkpointing). Their device work is put into the first backward work of the step, the host's
 * part into the first backward work of a thread. The sum does not depend on when a block is
 * recomputed in the backward pass. Without a pattern, the usual form is assumed: every block of the
 * network keeps only its input.
 *
 *     stream   [forward ......][again|backward ....]
 */
#include "sim/whatif/nodes.h"

#include <stdlib.h>

#define BLOCKS_PART 0.85
RP_DECISION(
    BLOCKS_PART, "of the forward pass",
    "runs again without a pattern; not the embedding, the head and the loss: a GPT and a "
    "convolutional network on an H200 took 0.73 and 0.94 of a third of both passes. It is 1 at "
    "most, and as much less at least",
    "sim/what_runs_again_is_in_the_backward_pass");

/* For one rank and step, on the device and on the host. */
struct place {
    int64_t again_ns;
    uint32_t first; /* first node of the backward pass, or RP_NONE */
    bool any;       /* something runs again */
};

struct places {
    struct rp_sim_run *run;
    struct place *at; /* by rank, step and side */
    size_t nsteps;
};

static struct place *place_of(const struct places *p, uint32_t i)
{
    const struct rp_sg_node *node = rp_sim_node(p->run, i);
    uint16_t step = rp_sim_note_of(p->run, i)->step;
    bool device = rp_sim_is_device_work(p->run, i);

    if (step >= p->nsteps || (!device && !rp_sim_is_host(p->run, i)))
        return NULL;
    return &p->at[(node->rank * p->nsteps + step) * 2 + device];
}

/* Whether a node belongs to the forward pass and runs again. Without a pattern, these are the
   operators before the backward pass, but batches are not copied again. */
static bool runs_again(const struct places *p, const struct place *x, const char *pattern,
                       uint32_t i)
{
    const struct rp_sim_note *note = rp_sim_note_of(p->run, i);

    if (note->phase == RP_PHASE_BACKWARD || note->phase == RP_PHASE_OPTIMIZER)
        return false;
    if (pattern)
        return rp_sim_name_fits(p->run, pattern, i);
    return x->first != RP_NONE && note->op && !(note->flags & RP_SIM_LOADER) &&
           (rp_sim_is_host(p->run, i) || rp_sim_is_kernel(p->run, i)) &&
           rp_sim_node(p->run, i)->start_ns < rp_sim_node(p->run, x->first)->start_ns;
}

static enum rp_code find_recomputed(const struct places *p, const char *pattern,
                                    rp_sim_task_vec *matched, size_t *n, struct rp_err *err)
{
    /* The first node of the backward pass at each place. */
    for (uint32_t i = 0; i < rp_sim_nnodes(p->run); i++) {
        struct place *x = place_of(p, i);

        if (x && rp_sim_note_of(p->run, i)->phase == RP_PHASE_BACKWARD &&
            (x->first == RP_NONE ||
             rp_sim_node(p->run, i)->start_ns < rp_sim_node(p->run, x->first)->start_ns))
            x->first = i;
    }
    for (uint32_t i = 0; i < rp_sim_nnodes(p->run); i++) {
        struct place *x = place_of(p, i);

        if (!x || !runs_again(p, x, pattern, i))
            continue;
        x->again_ns = rp_ns_sum(x->again_ns, p->run->overlay.dur_ns.at[i]);
        x->any = true;
        (*n)++;
        RP_TRY(rp_sim_match(p->run, matched, i, err));
    }
    return RP_OK;
}

/* Puts the repeated work before the first backward node. */
static enum rp_code extend_backward(const struct places *p, const struct place *x, double part,
                                    struct rp_err *err)
{
    if (x->first == RP_NONE || !x->any)
        return RP_OK;
    return rp_overlay_set_dur(
        &p->run->overlay, x->first,
        rp_ns_sum(p->run->overlay.dur_ns.at[x->first], rp_sim_scaled(x->again_ns, part)), err);
}

static enum rp_whatif_verdict recompute_applies(const struct rp_sim_run *run,
                                                const struct rp_whatif_args *args,
                                                struct rp_err *why)
{
    return (args && args->value) || rp_sim_trains(run)
               ? RP_WHATIF_APPLIES
               : RP_WHATIF_SAY(why, CANNOT,
                               "no backward pass of a recorded forward pass was found");
}

static enum rp_code recompute_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                    struct rp_err *err)
{
    struct places p = {.run = run, .nsteps = run->parts[0]->nsteps};
    rp_sim_task_vec matched = {0};
    enum rp_code code = RP_OK;
    size_t i, n = 0, placed = 0, all = run->nranks * run->parts[0]->nranks * p.nsteps * 2;
    double part = args->value ? 1 : BLOCKS_PART * rp_sim_lean_by(run, 1 / BLOCKS_PART - 1);

    if (args->value && !*args->value)
        return rp_err_set(err, RP_USAGE,
                          "'%s': expected recompute, or names of operators or kernels, as in "
                          "recompute=aten::gelu",
                          args->text);
    RP_TRY(rp_whatif_check(&rp_whatif_recompute, run, args, err));
    p.at = calloc(all + 1, sizeof *p.at);
    RP_TRY(rp_err_need(p.at, err, "simulating"));
    for (i = 0; i < all; i++)
        p.at[i].first = RP_NONE;
    if (args->list->n == 1)
        run->way = RP_WAY_LONGER;
    code = find_recomputed(&p, args->value, &matched, &n, err);
    for (i = 0; i < all && code == RP_OK; i++) {
        placed += p.at[i].first != RP_NONE && p.at[i].any;
        code = extend_backward(&p, &p.at[i], part, err);
    }
    free(p.at);
    if (code == RP_OK && n && placed)
        code = rp_sim_say(run, "runs again", &matched, err);
    rp_vec_release(&matched);
    if (code == RP_OK && n && !placed)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "recompute: no step has a backward pass after '%s': nothing would run "
                          "again",
                          args->value);
    if (code == RP_OK && !n && !args->value)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "recompute: no backward pass of a recorded forward pass was found");
    if (code == RP_OK && !n)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': nothing outside the backward pass matches '%s'", args->text,
                          args->value);
    return code;
}

const struct rp_whatif rp_whatif_recompute = {
    .name = "recompute",
    .form = "recompute[=<pattern>]",
    .summary = "the blocks of the forward pass, or operators that match the pattern, run again in "
               "the backward pass (activation checkpointing), so that their results need no memory",
    .assumes = "they take the same time again, 0.72 to 1 of the forward pass where no pattern is "
               "given; freed memory is not used for larger batches",
    .value = RP_WHATIF_NAME,
    .applies = recompute_applies,
    .apply = recompute_apply};
