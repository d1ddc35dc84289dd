/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap and no-overlap: communication overlaps all work, or none. New edges lead from what
 * started earlier in the recording to what started later, like all edges of a step graph, so they
 * close no cycle.
 */
#include "base/hash.h"
#include "base/order.h"
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>

static const struct rp_sg_node *node_at(const struct rp_sim_run *run, uint32_t i)
{
    return rp_sim_node(run, i);
}

static bool is_transfer(const struct rp_sim_run *run, uint32_t i)
{
    return node_at(run, i)->kind == RP_SG_COMM;
}

/* Nodes in lanes have an order in time; those of the mean step of a job have none. */
static enum rp_whatif_verdict no_overlap_applies(const struct rp_sim_run *run,
                                                 const struct rp_whatif_args *args,
                                                 struct rp_err *why)
{
    return run->graph->lanes.n
               ? rp_sim_needs_comm(run, args, why)
               : RP_WHATIF_SAY(why, CANNOT, "the recording has no threads or streams");
}

/* ------------------------------------------------------------------ no-overlap */

/* The first node of a lane that started after a moment. */
static uint32_t first_after(const struct rp_sim_run *run, const struct rp_sg_lane *lane,
                            int64_t at_ns)
{
    uint32_t low;

    RP_LOWER_BOUND_FROM(low, lane->first, lane->end, node_at(run, low)->start_ns <= at_ns);
    return low;
}

static bool computes(const struct rp_sim_run *run, uint32_t i, bool on_host)
{
    return on_host ? rp_sim_is_host(run, i) : rp_sim_is_device_work(run, i);
}

/* Makes a transfer wait for what computes when it starts, and what comes then wait for the
   transfer. */
static enum rp_code stand_alone(struct rp_sim_run *run, uint32_t transfer, bool on_host,
                                struct rp_err *err)
{
    const struct rp_sg_node *x = node_at(run, transfer);

    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        uint32_t after, before;

        if (lane->rank != x->rank || lane->device == on_host || k == x->lane)
            continue;
        after = first_after(run, lane, x->start_ns);
        for (before = after;
             before > lane->first && (!computes(run, before - 1, on_host) ||
                                      node_at(run, before - 1)->start_ns >= x->start_ns);)
            before--;
        while (after < lane->end && !computes(run, after, on_host))
            after++;
        if (before > lane->first)
            RP_TRY(rp_overlay_link(&run->overlay, before - 1, transfer, 0, 0, err));
        if (after < lane->end)
            RP_TRY(rp_overlay_link(&run->overlay, transfer, after, 0, 0, err));
    }
    return RP_OK;
}

/* Buckets that another what-if made are new tasks: those of a step wait for the end of its backward
   pass on every rank. */
static enum rp_code hold_new(struct rp_sim_run *run, bool on_host, struct rp_err *err)
{
    size_t nsteps = run->parts[0]->nsteps, all = run->nranks * nsteps;
    uint32_t i, *last = malloc((all + 1) * sizeof *last);
    enum rp_code code = last ? RP_OK : rp_err_nomem(err, "simulating");

    if (last)
        memset(last, 0xff, all * sizeof *last);
    for (i = 0; i < rp_sim_nnodes(run) && last; i++) {
        uint16_t step = rp_sim_note_of(run, i)->step;
        uint32_t *slot = step < nsteps ? &last[node_at(run, i)->rank * nsteps + step] : NULL;

        if (slot && rp_sim_note_of(run, i)->phase == RP_PHASE_BACKWARD &&
            computes(run, i, on_host) &&
            (*slot == RP_NONE || node_at(run, i)->start_ns > node_at(run, *slot)->start_ns))
            *slot = i;
    }
    for (i = (uint32_t)run->tasks.tasks.n; i < rp_overlay_ntasks(&run->overlay) && code == RP_OK;
         i++) {
        const struct rp_task_row *task = rp_overlay_task(&run->overlay, i);

        for (size_t r = 0; r < run->nranks && task->kind == RP_SG_RENDEZVOUS && code == RP_OK; r++)
            if (task->step < nsteps && last[r * nsteps + task->step] != RP_NONE)
                code = rp_overlay_link(&run->overlay, last[r * nsteps + task->step], i, 0, 0, err);
    }
    free(last);
    return code;
}

static enum rp_code no_overlap_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                     struct rp_err *err)
{
    bool on_host = !rp_sim_has_device(run);

    (void)args;
    RP_TRY(rp_whatif_check(&rp_whatif_no_overlap, run, args, err));
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (is_transfer(run, i) && !run->gone.at[i])
            RP_TRY(stand_alone(run, i, on_host, err));
    return hold_new(run, on_host, err);
}

const struct rp_whatif rp_whatif_no_overlap = {
    .name = "no-overlap",
    .form = "no-overlap",
    .summary = "a rank computes nothing while it communicates",
    .assumes = "transfers and kernels take as long alone as they took concurrently",
    .applies = no_overlap_applies,
    .apply = no_overlap_apply};

/* ------------------------------------------------------------------ overlap */

/* By rank and step: the first node that needs the transferred data, which is that of the optimizer
   after the backward pass, or the begin of the next step. The optimizer also sets gradients to zero
   before the forward pass. Of an optimizer on a device it is a kernel: the host launches it long
   before, and does not wait. */
struct ends {
    uint32_t *node;
    int64_t *backward_ns; /* begin of its last node; INT64_MIN if there is none */
    size_t nsteps;
};

static uint32_t *end_of(const struct ends *e, uint32_t rank, uint16_t step)
{
    return step < e->nsteps ? &e->node[rank * e->nsteps + step] : NULL;
}

static void take_earlier(const struct rp_sim_run *run, uint32_t *slot, uint32_t i)
{
    if (*slot == RP_NONE || node_at(run, i)->start_ns < node_at(run, *slot)->start_ns)
        *slot = i;
}

static void find_ends(const struct rp_sim_run *run, const struct ends *e)
{
    uint32_t i, n = (uint32_t)rp_sim_nnodes(run);
    bool on_host = !rp_sim_has_device(run);

    memset(e->node, 0xff, run->nranks * e->nsteps * sizeof *e->node);
    for (i = 0; i < run->nranks * e->nsteps; i++)
        e->backward_ns[i] = INT64_MIN;
    for (i = 0; i < n; i++) {
        uint32_t *slot = end_of(e, node_at(run, i)->rank, rp_sim_note_of(run, i)->step);

        if (slot && rp_sim_note_of(run, i)->phase == RP_PHASE_BACKWARD &&
            node_at(run, i)->start_ns > e->backward_ns[slot - e->node])
            e->backward_ns[slot - e->node] = node_at(run, i)->start_ns;
    }
    for (i = 0; i < n; i++) {
        uint32_t *slot = end_of(e, node_at(run, i)->rank, rp_sim_note_of(run, i)->step);

        if (slot && rp_sim_note_of(run, i)->phase == RP_PHASE_OPTIMIZER &&
            !rp_sim_is_comm(run, i) && computes(run, i, on_host) &&
            node_at(run, i)->start_ns > e->backward_ns[slot - e->node])
            take_earlier(run, slot, i);
    }
    for (i = 0; i < n; i++) {
        uint16_t step = rp_sim_note_of(run, i)->step;
        uint32_t *slot = step ? end_of(e, node_at(run, i)->rank, (uint16_t)(step - 1)) : NULL;

        if (slot && rp_sim_note_of(run, i)->flags & RP_SIM_TIMES &&
            (*slot == RP_NONE || rp_sim_note_of(run, *slot)->step == step))
            take_earlier(run, slot, i);
    }
}

/* ------------------------------------------------------------------ what may be needed */

/* A kind of transfer by what the recording says, except its group, which differs between ranks. */
static uint64_t transfer_kind(const struct rp_sim_run *run, uint32_t i)
{
    const struct rp_sg_node *x = node_at(run, i);
    const struct rp_collectives *list = &rp_sim_part_of(run, i)->collectives;

    if (x->collective >= list->list.n)
        return 0;
    const struct rp_collective *c = &list->list.at[x->collective];
    return rp_hash_join(rp_hash_join(c->kind, (uint64_t)c->in_bytes), (uint64_t)c->group_size) | 1;
}

/* Whether the device computes while the rank is in a transfer, including waits. */
static bool computes_beside(const struct rp_sim_run *run, uint32_t transfer)
{
    const struct rp_sg_node *x = node_at(run, transfer);
    const struct rp_collectives *list = &rp_sim_part_of(run, transfer)->collectives;
    int64_t end = rp_sg_end_ns(x), begin = x->start_ns;

    if (x->collective < list->list.n)
        begin = rp_ns_sum(end, -rp_ns_between(list->list.at[x->collective].begin_ns,
                                              list->list.at[x->collective].end_ns));
    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        uint32_t last;

        if (lane->rank != x->rank || !lane->device || k == x->lane)
            continue;
        RP_LOWER_BOUND_FROM(last, lane->first, lane->end, node_at(run, last)->start_ns < end);
        while (last > lane->first && !computes(run, last - 1, false))
            last--;
        if (last > lane->first && rp_sg_end_ns(node_at(run, last - 1)) > begin)
            return true;
    }
    return false;
}

/* Whether the next work needs the result: a receiver waits for data, and outside of the backward
   pass a step continues with it. After the last kernel, or before the optimizer, they are
   gradients. */
static bool is_input(const struct rp_sim_run *run, uint32_t transfer)
{
    const struct rp_collective *c =
        &rp_sim_part_of(run, transfer)->collectives.list.at[node_at(run, transfer)->collective];
    const struct rp_sim_note *note = rp_sim_note_of(run, transfer);

    if (c->kind == RP_COLL_SEND_RECV)
        return true;
    if ((c->kind != RP_COLL_ALL_REDUCE && c->kind != RP_COLL_ALL_TO_ALL) ||
        note->phase == RP_PHASE_BACKWARD || note->phase == RP_PHASE_OPTIMIZER)
        return false;

    /* The first kernel of the rank after a transfer, or RP_NONE. */
    uint32_t next = RP_NONE;
    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        uint32_t i = lane->end;

        if (lane->rank == node_at(run, transfer)->rank && lane->device)
            i = first_after(run, lane, rp_sg_end_ns(node_at(run, transfer)) - 1);
        while (i < lane->end && !rp_sim_is_kernel(run, i))
            i++;
        if (i < lane->end &&
            (next == RP_NONE || node_at(run, i)->start_ns < node_at(run, next)->start_ns))
            next = i;
    }

    return next != RP_NONE && rp_sim_note_of(run, next)->step == note->step &&
           rp_sim_note_of(run, next)->phase != RP_PHASE_OPTIMIZER;
}

/* How transfers of a kind run. */
enum { BESIDE_WORK, ALONE, INPUT };

/* Finds kinds of transfers. If no rank ever computes beside a kind, nothing shows that the next
   work does not need the result; for some of these kinds it does. */
static enum rp_code find_kinds(const struct rp_sim_run *run, struct rp_map *kinds,
                               struct rp_err *err)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        uint64_t kind = is_transfer(run, i) && !run->gone.at[i] ? transfer_kind(run, i) : 0;
        uint32_t is = kind ? rp_map_get(kinds, kind) : BESIDE_WORK;

        if (kind && is != BESIDE_WORK)
            RP_TRY(rp_map_put(kinds, kind,
                              computes_beside(run, i)           ? BESIDE_WORK
                              : is == INPUT || is_input(run, i) ? INPUT
                                                                : ALONE,
                              err));
    }
    return RP_OK;
}

/* Sums the time of transfers, and of those whose result is the next kernel's input. */
static void sum_transfers(const struct rp_sim_run *run, const struct rp_map *kinds, int64_t *all_ns,
                          int64_t *input_ns)
{
    *all_ns = *input_ns = 0;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (is_transfer(run, i) && !run->gone.at[i]) {
            rp_ns_add(all_ns, run->overlay.dur_ns.at[i]);
            if (rp_map_get(kinds, transfer_kind(run, i)) == INPUT)
                rp_ns_add(input_ns, run->overlay.dur_ns.at[i]);
        }
}

/* Whether a transfer stays in place: an input while others move, or one that may be an input if the
   run leans to that. */
static bool stays(const struct rp_sim_run *run, const struct rp_map *kinds, bool inputs,
                  uint32_t transfer)
{
    uint32_t kind = rp_map_get(kinds, transfer_kind(run, transfer));

    return (kind == INPUT && inputs) ||
           ((kind == INPUT || kind == ALONE) && run->lean == RP_LEAN_MORE_LATENCY);
}

/* The last node before it on its lane that is not communication, or RP_NONE. */
static uint32_t before_on_lane(const struct rp_sim_run *run, uint32_t i)
{
    uint32_t lane = node_at(run, i)->lane;

    while (i > 0 && lane != RP_NONE && node_at(run, i - 1)->lane == lane) {
        i--;
        if (!is_transfer(run, i) && node_at(run, i)->kind != RP_SG_ARRIVE)
            return i;
    }
    return RP_NONE;
}

static enum rp_code let_go(struct rp_sim_run *run, uint32_t transfer, const struct ends *ends,
                           struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;
    uint32_t i, before = before_on_lane(run, transfer), *end;

    for (i = g->first.at[transfer]; i < g->first.at[transfer + 1]; i++) {
        uint32_t to = g->edges.at[i].to;
        uint8_t kind = node_at(run, to)->kind;

        if (kind == RP_SG_COMM || kind == RP_SG_RENDEZVOUS ||
            run->overlay.lag_ns.at[i] == RP_LAG_CUT ||
            rp_sim_note_of(run, to)->flags & RP_SIM_REMOTE)
            continue;
        if (before != RP_NONE && node_at(run, to)->lane == node_at(run, transfer)->lane)
            RP_TRY(rp_overlay_link(&run->overlay, before, to, 0, 0, err));
        RP_TRY(rp_overlay_set_lag(&run->overlay, i, RP_LAG_CUT, err));
    }
    end = end_of(ends, node_at(run, transfer)->rank, rp_sim_note_of(run, transfer)->step);
    if (!end || *end == RP_NONE || node_at(run, *end)->start_ns <= node_at(run, transfer)->start_ns)
        return RP_OK;
    return rp_overlay_link(&run->overlay, transfer, *end, 0, 0, err);
}

/* Inputs of the next kernel cannot overlap with it: tensor-parallel all-reduces, receives. */
static enum rp_whatif_verdict judge_inputs(const struct rp_sim_run *run, struct rp_err *why)
{
    int64_t all_ns, input_ns;
    struct rp_map kinds = {0};
    enum rp_code code = find_kinds(run, &kinds, why);
    sum_transfers(run, &kinds, &all_ns, &input_ns);
    rp_map_release(&kinds);
    if (code != RP_OK || !input_ns)
        return RP_WHATIF_APPLIES;
    if (input_ns == all_ns)
        return RP_WHATIF_SAY(why, NOT,
                             "nothing ever runs beside it, and the kernels that follow in the "
                             "forward pass need its result");
    return RP_WHATIF_SAY(why, PART,
                         "%.0f %% of the time of communication is for inputs of the next kernel, "
                         "beside which nothing ever runs",
                         100 * (double)input_ns / (double)all_ns);
}

/* A user of DistributedDataParallel cannot do better: it starts all-reduces as gradients become
   ready, and waits for them at the end of the backward pass. */
static enum rp_whatif_verdict overlap_applies(const struct rp_sim_run *run,
                                              const struct rp_whatif_args *args, struct rp_err *why)
{
    if (no_overlap_applies(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    for (size_t i = 0; !args && i < run->graph->names.n; i++)
        if (rp_sim_means(run->graph->names.at[i], RP_SIM_REDUCER))
            return RP_WHATIF_SAY(why, NOT,
                                 "DistributedDataParallel overlaps its all-reduces with the "
                                 "backward pass already");
    return args || !rp_sim_has_device(run) ? RP_WHATIF_APPLIES : judge_inputs(run, why);
}

static enum rp_code overlap_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                  struct rp_err *err)
{
    struct ends ends = {.nsteps = run->parts[0]->nsteps};
    int64_t all_ns = 0, input_ns = 0;
    struct rp_map kinds = {0};
    enum rp_code code = RP_OK;

    (void)args;
    RP_TRY(rp_whatif_check(&rp_whatif_overlap, run, args, err));
    ends.node = malloc((run->nranks * ends.nsteps + 1) * sizeof *ends.node);
    ends.backward_ns = malloc((run->nranks * ends.nsteps + 1) * sizeof *ends.backward_ns);
    if (!ends.node || !ends.backward_ns)
        code = rp_err_nomem(err, "simulating");
    else
        find_ends(run, &ends);
    if (code == RP_OK && rp_sim_has_device(run))
        code = find_kinds(run, &kinds, err);
    for (size_t k = 0; k < kinds.cap; k++)
        if (kinds.value[k] == ALONE || kinds.value[k] == INPUT) {
            run->leans = RP_LEANS_ANY;
            run->latency_doubt = "what comes after a collective may need its result";
        }
    sum_transfers(run, &kinds, &all_ns, &input_ns);
    for (uint32_t i = 0; i < rp_sim_nnodes(run) && code == RP_OK; i++)
        if (is_transfer(run, i) && !run->gone.at[i] && !stays(run, &kinds, input_ns < all_ns, i))
            code = let_go(run, i, &ends, err);
    rp_map_release(&kinds);
    free(ends.node);
    free(ends.backward_ns);
    return code;
}

static const struct rp_whatif_move overlap_move = {
    .family = "overlap",
    .effort = 6,
    .apply = "start collectives with async_op=True on a stream of their own, and wait for them "
             "just before their results are used"};

const struct rp_whatif rp_whatif_overlap = {
    .name = "overlap",
    .form = "overlap",
    .summary =
        "communication overlaps all work: only the optimizer, or the next step, waits for it",
    .assumes =
        "nothing in the forward and backward pass needs its result (so this is a lower bound), "
        "and communication and work do not slow each other down",
    .move = &overlap_move,
    .applies = overlap_applies,
    .apply = overlap_apply};
