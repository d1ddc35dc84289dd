/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload: the optimizer and its state are in the memory of the host. After the backward pass the
 * gradients are copied there, the host updates the parameters, and these are copied back before the
 * next step. None of this overlaps.
 *
 *     thread   ... launches of the backward pass]       [to the host, update] [launch]
 *     stream       [backward .......................]...                      [back]
 */
#include "sim/whatif/nodes.h"
#include "sim/whatif/optimizer_kind.h"

#include <stdlib.h>

/* Both are estimates, which may be wrong by a factor of two. */
#define LINK_RATE 50e9
RP_DECISION(LINK_RATE, "bytes a second", "PCIe 5 from and to pinned memory",
            "sim/an_optimizer_on_the_host_copies_and_updates");
#define HOST_RATE 60e9
RP_DECISION(HOST_RATE, "bytes a second",
            "an update by as many threads as the memory of a server feeds",
            "sim/an_optimizer_on_the_host_copies_and_updates");

/* Of one rank and step: nodes, or RP_NONE. */
struct update {
    int64_t bytes;     /* bytes of all gradients; -1: not known */
    uint32_t host;     /* the optimizer's first host node after the backward pass */
    uint32_t device;   /* its first device node */
    uint32_t backward; /* the last device work of the backward pass */
    uint32_t launch;   /* its last on the host */
};

struct updates {
    struct rp_sim_run *run;
    struct update *at; /* by rank and step */
    size_t nsteps;
};

static struct update *update_of(const struct updates *u, uint32_t i)
{
    uint16_t step = rp_sim_note_of(u->run, i)->step;

    return step < u->nsteps ? &u->at[rp_sim_node(u->run, i)->rank * u->nsteps + step] : NULL;
}

static bool starts_before(const struct rp_sim_run *run, uint32_t i, uint32_t other)
{
    return other == RP_NONE || rp_sim_node(run, i)->start_ns < rp_sim_node(run, other)->start_ns;
}

/* The last node of the backward pass on the same side (device or host) as a node; NULL if it is on
   neither, or in no step. */
static uint32_t *last_backward_of(const struct updates *u, uint32_t i)
{
    struct update *x = update_of(u, i);
    bool host = rp_sim_is_host(u->run, i);

    return !x || (!host && !rp_sim_is_device_work(u->run, i)) ? NULL
           : host                                             ? &x->launch
                                                              : &x->backward;
}

/* Whether this belongs to the optimizer after the backward pass; zero_grad may come before it. */
static bool is_update(const struct updates *u, uint32_t i)
{
    const uint32_t *last = last_backward_of(u, i);

    return last && rp_sim_note_of(u->run, i)->phase == RP_PHASE_OPTIMIZER &&
           (*last == RP_NONE || starts_before(u->run, *last, i));
}

static void find_nodes(const struct updates *u)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(u->run); i++) {
        uint32_t *last = last_backward_of(u, i);

        if (last && rp_sim_note_of(u->run, i)->phase == RP_PHASE_BACKWARD &&
            (*last == RP_NONE || starts_before(u->run, *last, i)))
            *last = i;
    }
    for (uint32_t i = 0; i < rp_sim_nnodes(u->run); i++)
        if (is_update(u, i)) {
            struct update *x = update_of(u, i);
            uint32_t *first = rp_sim_is_host(u->run, i) ? &x->host : &x->device;

            if (starts_before(u->run, i, *first))
                *first = i;
        }
}

static void find_bytes(const struct updates *u)
{
    for (size_t rank = 0; rank < u->run->nranks; rank++) {
        const struct rp_sim_part *part = u->run->parts[rank];

        for (size_t i = 0; i < part->gradients.n; i++) {
            const struct rp_sim_gradient *g = &part->gradients.at[i];

            if (g->step >= u->nsteps)
                continue;
            struct update *x = &u->at[rank * u->nsteps + g->step];
            x->bytes = g->bytes < 0 || x->bytes < 0 ? -1 : rp_ns_sum(x->bytes, g->bytes);
        }
    }
}

static enum rp_code check_updates(const struct updates *u, size_t n, struct rp_err *err)
{
    bool any = false, sized = true;

    for (size_t i = 0; i < n; i++) {
        const struct update *x = &u->at[i];

        if (x->host == RP_NONE || x->device == RP_NONE)
            continue;
        any = true;
        sized &= x->bytes > 0;
    }
    if (!any)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "offload: no device work of an optimizer was found behind a backward "
                          "pass");
    return sized ? RP_OK
                 : rp_err_set(err, RP_UNSUPPORTED,
                              "offload: how large the gradients are was not recorded: use %s",
                              rp_sim_shapes_option(u->run->parts[0]));
}

/* The rest of the optimizer takes no time. */
static enum rp_code empty_optimizer(const struct updates *u, struct rp_err *err)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(u->run); i++)
        if (is_update(u, i))
            RP_TRY(rp_overlay_set_dur(&u->run->overlay, i, 0, err));
    return RP_OK;
}

static enum rp_code update_on_host(const struct updates *u, const struct update *x,
                                   struct rp_err *err)
{
    struct rp_overlay *o = &u->run->overlay;
    double lean = rp_sim_lean_by(u->run, 1), bytes = (double)x->bytes;
    struct rp_optimizer_kind kind;
    double copy_ns = bytes / LINK_RATE * 1e9 * lean, update_ns;

    if (x->host == RP_NONE || x->device == RP_NONE)
        return RP_OK;
    rp_optimizer_kind(u->run, rp_sim_node(u->run, x->host)->rank, &kind);
    update_ns = bytes * kind.fused / HOST_RATE * 1e9 * lean;
    RP_TRY(rp_overlay_set_dur(o, x->host, (int64_t)(copy_ns + update_ns), err));
    RP_TRY(rp_overlay_set_dur(o, x->device, (int64_t)copy_ns, err));
    return x->backward == RP_NONE ? RP_OK : rp_overlay_link(o, x->backward, x->host, 0, 0, err);
}

/* In some recordings, an update without a backward pass is found only while it is placed. */
static enum rp_whatif_verdict offload_applies(const struct rp_sim_run *run,
                                              const struct rp_whatif_args *args, struct rp_err *why)
{
    (void)args;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_update(run, i))
            return RP_WHATIF_APPLIES;
    return RP_WHATIF_SAY(why, CANNOT,
                         "no device work of an optimizer was found behind a backward pass");
}

static enum rp_code offload_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                  struct rp_err *err)
{
    struct updates u = {.run = run, .nsteps = run->parts[0]->nsteps};
    size_t i, n = run->nranks * run->parts[0]->nranks * u.nsteps;

    RP_TRY(rp_whatif_check(&rp_whatif_offload, run, args, err));
    u.at = calloc(n + 1, sizeof *u.at);
    RP_TRY(rp_err_need(u.at, err, "simulating"));
    for (i = 0; i < n; i++)
        u.at[i] = (struct update){0, RP_NONE, RP_NONE, RP_NONE, RP_NONE};
    find_nodes(&u);
    find_bytes(&u);
    enum rp_code code = check_updates(&u, n, err);
    if (code == RP_OK)
        code = empty_optimizer(&u, err);
    for (i = 0; i < n && code == RP_OK; i++)
        code = update_on_host(&u, &u.at[i], err);
    free(u.at);
    return code;
}

const struct rp_whatif rp_whatif_offload = {
    .name = "offload",
    .form = "offload",
    .summary = "the optimizer and its state are on the host: gradients are copied there, updated "
               "parameters back, which frees the memory of the state",
    .assumes =
        "nothing overlaps, the link carries 50 GB/s and the host updates at 60 GB/s: guesses "
        "that may be half or twice as much",
    .applies = offload_applies,
    .apply = offload_apply};
