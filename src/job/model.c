/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes nodes from means. The recorded steps are parallel, each starting at 0; if that would be too
 * many nodes, several steps become one mean step. Operators of a rank run in their recorded order;
 * updates run when their tensor is ready and the previous operators are done, one at a time. Groups
 * of tensors are agreed on by all ranks and run one after another on each rank. A chunk is sent on
 * when it was received, and received when the neighbour has sent it. If sends and receives never
 * overlap, one device runs all of them, first come, first served; otherwise each channel has a
 * sending and a receiving side, which keep the recorded order. Without a record of them a reduction
 * takes as long as it took after the arrival of the last rank. O(records).
 */
#include "job/model.h"
#include "base/each.h"

#include "job/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 2000000
RP_LIMIT(NODES_MAX, "nodes",
         "of a job's steps; if there are more, several steps become one mean step");

static const char *const texts[RP_MODEL_TEXTS] = {[VOTE] = "Horovod vote",
                                                  [AGREED] = "Horovod agreed",
                                                  [QUEUE] = "Horovod queue",
                                                  [COPY_IN] = "Horovod copy in",
                                                  [COPY_OUT] = "Horovod copy out",
                                                  [REDUCE] = "NCCL all-reduce",
                                                  [SEND] = "SEND",
                                                  [RECEIVE] = "RECV",
                                                  [BEGIN] = "begin",
                                                  [PUSH] = "BytePS push",
                                                  [PUSH_DONE] = "BytePS push done",
                                                  [PULL] = "BytePS pull",
                                                  [PULL_DONE] = "BytePS pull done",
                                                  [SUM] = "BytePS sum",
                                                  [MERGED] = "BytePS merged"};

static enum rp_code intern(struct rp_model_ctx *m, const char *text, uint32_t *id)
{
    uint64_t key = rp_hash_bytes(text, strlen(text));

    *id = rp_map_get(&m->name_of, key);
    if (*id != RP_MAP_NONE)
        return RP_OK;
    const char *copy = rp_arena_strdup(&m->part->graph.arena, text);
    RP_TRY(rp_err_need(copy, m->err, "simulating a job"));
    *id = (uint32_t)m->part->graph.names.n;
    RP_TRY(rp_map_put(&m->name_of, key, *id, m->err));
    return rp_vec_push(&m->part->graph.names, copy, m->err);
}

enum rp_code rp_model_add(struct rp_model_ctx *m, uint32_t rank, uint8_t kind, uint32_t name,
                          double dur_ns, uint32_t device, uint32_t *id)
{
    struct rp_sg_node node = {.dur_ns = (int64_t)llround(dur_ns),
                              .event = RP_NONE,
                              .name = name,
                              .lane = RP_NONE,
                              .rank = rank,
                              .collective = RP_NONE,
                              .kind = kind,
                              .flags = RP_SG_WORK};
    struct rp_sim_note note = {0, m->step, RP_PHASE_OTHER, RP_SIM_TIMES};

    *id = (uint32_t)m->part->graph.nodes.n;
    RP_TRY(rp_vec_push(&m->part->graph.nodes, node, m->err));
    RP_TRY(rp_vec_push(&m->part->devices, device, m->err));
    RP_TRY(rp_vec_push(&m->part->priorities, 0, m->err));
    return rp_vec_push(&m->part->notes, note, m->err);
}

enum rp_code rp_model_add_plain(struct rp_model_ctx *m, uint32_t rank, uint8_t kind, int text,
                                double dur_ns, uint32_t *id)
{
    return rp_model_add(m, rank, kind, m->name[text], dur_ns, RP_NO_DEVICE, id);
}

enum rp_code rp_model_link(struct rp_model_ctx *m, uint32_t from, uint32_t to, double lag_ns,
                           uint8_t kind)
{
    struct rp_sg_edge e = {
        .lag_ns = (int64_t)llround(lag_ns), .from = from, .to = to, .kind = kind};

    return rp_vec_push(&m->part->graph.edges, e, m->err);
}

enum rp_code rp_model_note_wait(struct rp_model_ctx *m, uint32_t from, uint32_t to, uint32_t first,
                                uint32_t end)
{
    struct rp_sim_wait wait = {from, to, first, end};

    return rp_vec_push(&m->part->waits, wait, m->err);
}

uint64_t rp_model_op_key(size_t rank, const char *name)
{
    return rp_hash_join(rp_hash_bytes(name, strlen(name)), rank);
}

static uint64_t place_key(size_t rank, const struct rp_mean_transfer *t, int32_t chunk,
                          bool is_send)
{
    uint64_t k = rp_hash_join((uint64_t)rank << 32 | t->group,
                              (uint64_t)(uint32_t)t->loop << 32 | (uint32_t)t->channel);

    return rp_hash_join(k, (uint64_t)(uint32_t)chunk << 32 | (uint64_t)(uint32_t)t->slice << 1 |
                               is_send);
}

static uint32_t *done_of(const struct rp_model_ctx *m, size_t rank, size_t g)
{
    return &m->done[rank * m->means.ngroups + g];
}

/* Each rank of the step has two devices: 0 runs the updates, 1 moves tensors. */
static uint32_t device_of(const struct rp_model_ctx *m, uint32_t rank, uint32_t which)
{
    return m->devices + 2 * rank + which;
}

/* ------------------------------------------------------------------ operators */

/* Names in dPRO begin with the phase of an operator, those of TensorFlow with the gradient tape. */
static uint8_t phase_of(const struct rp_mean_op *op)
{
    if (op->is_update)
        return RP_PHASE_OPTIMIZER;
    return !strncmp(op->name, "FW.", 3)                                        ? RP_PHASE_FORWARD
           : !strncmp(op->name, "BW.", 3) || !strncmp(op->name, "gradient", 8) ? RP_PHASE_BACKWARD
                                                                               : RP_PHASE_OTHER;
}

static enum rp_code add_ops(struct rp_model_ctx *m, uint32_t rank)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    uint32_t id, before = RP_NONE;

    for (size_t i = 0; i < r->ops.n; i++) {
        const struct rp_mean_op *op = &r->ops.at[i];
        uint32_t name;

        RP_TRY(intern(m, op->name, &name));
        RP_TRY(rp_model_add(m, rank, RP_SG_COMPUTE, name, op->dur_ns,
                            op->is_update ? device_of(m, rank, 0) : RP_NO_DEVICE, &id));
        m->part->notes.at[id].phase = phase_of(op);
        RP_TRY(rp_map_put(&m->op_node, rp_model_op_key(rank, op->name), id, m->err));
        if (op->is_update)
            continue;
        if (before != RP_NONE)
            RP_TRY(rp_model_link(m, before, id, op->gap_ns, RP_SG_STREAM));
        else
            RP_TRY(rp_model_link(m, m->begin, id, r->begin_ns, RP_SG_ORDER));
        before = id;
    }
    m->last[rank] = before;
    return RP_OK;
}

static enum rp_code link_updates(struct rp_model_ctx *m, uint32_t rank)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];

    /* The median gap between operators, which is the time that an update waits besides its
       inputs. */
    double sum = 0, n = 0;
    for (size_t i = 1; i < r->ops.n; i++)
        if (!r->ops.at[i].is_update) {
            sum += r->ops.at[i].gap_ns;
            n++;
        }
    double gap = n > 0 ? sum / n : 0;

    for (size_t i = 0; i < r->ops.n; i++)
        if (r->ops.at[i].is_update && m->last[rank] != RP_NONE)
            RP_TRY(rp_model_link(m, m->last[rank],
                                 rp_map_get(&m->op_node, rp_model_op_key(rank, r->ops.at[i].name)),
                                 gap, RP_SG_STREAM));
    return RP_OK;
}

/* ------------------------------------------------------------------ votes and agreements */

struct vote {
    uint32_t node, edges;
};

/* The votes of a rank for all groups wait for its gradients or, if none is known, for the begin of
   the step. */
static enum rp_code link_votes(struct rp_model_ctx *m, uint32_t rank, struct vote *votes)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    const struct rp_mean_rank *mean = &m->means.ranks[rank];

    for (size_t i = 0; i < r->edges.n; i++) {
        const struct rp_job_edge *e = &r->edges.at[i];
        uint32_t of =
            e->to_tensor < 0 ? RP_MAP_NONE : rp_map_get(&m->means.group_of, (uint64_t)e->to_tensor);
        uint32_t from = of == RP_MAP_NONE ? RP_MAP_NONE
                                          : rp_map_get(&m->op_node, rp_model_op_key(rank, e->from));

        if (from == RP_MAP_NONE)
            continue;
        votes[of].edges++;
        RP_TRY(rp_model_link(m, from, votes[of].node, mean->groups[of].vote_lag_ns, RP_SG_MEMBER));
    }
    for (size_t g = 0; g < m->means.ngroups; g++)
        if (!votes[g].edges)
            RP_TRY(rp_model_link(m, m->begin, votes[g].node,
                                 mean->begin_ns + mean->groups[g].vote_lag_ns, RP_SG_MEMBER));
    return RP_OK;
}

/* A rank votes when its gradients are ready; the last vote of all decides a group. */
static enum rp_code add_votes(struct rp_model_ctx *m, uint32_t *decided)
{
    size_t g, n = m->means.ngroups;
    RP_FREED struct vote *votes = calloc(n + 1, sizeof *votes);

    RP_TRY(rp_err_need(votes, m->err, "simulating a job"));
    for (g = 0; g < n; g++)
        RP_TRY(rp_model_add_plain(m, 0, RP_SG_RENDEZVOUS, VOTE, 0, &decided[g]));
    for (uint32_t rank = 0; rank < m->means.nranks; rank++) {
        for (g = 0; g < n; g++) {
            votes[g].edges = 0;
            RP_TRY(rp_model_add_plain(m, rank, RP_SG_ARRIVE, VOTE, 0, &votes[g].node));
            RP_TRY(rp_model_link(m, votes[g].node, decided[g], 0, RP_SG_MEMBER));
            RP_TRY(rp_model_note_wait(m, votes[g].node, decided[g], 0, 0));
        }
        RP_TRY(link_votes(m, rank, votes));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ transfers */

/* `in` is the node at whose end the rank enters the ring; `end` is the node that waits for all its
   transfers. */
static enum rp_code add_transfers(struct rp_model_ctx *m, uint32_t rank, size_t g, uint32_t in,
                                  uint32_t end)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    const struct rp_mean_group *x = &r->groups[g];
    uint32_t id = end, first = end + 1;

    for (size_t i = x->first; i < x->end; i++) {
        const struct rp_mean_transfer *t = &r->transfers.at[i];

        RP_TRY(rp_model_add(m, rank, RP_SG_COMM, m->name[t->is_send ? SEND : RECEIVE], t->dur_ns,
                            r->duplex ? RP_NO_DEVICE : device_of(m, rank, 1), &id));
        RP_TRY(rp_map_put(&m->transfer, place_key(rank, t, t->chunk, t->is_send), id, m->err));
    }
    m->enters[rank] = in;
    m->leaves[rank] = end;
    return rp_model_note_wait(m, in, end, first, id + 1);
}

/* Keeps the order of the sides of the channels: each transfer waits for the previous one. */
static enum rp_code keep_order(struct rp_model_ctx *m, uint32_t rank, size_t g)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    const struct rp_mean_group *x = &r->groups[g];
    RP_SCOPED(rp_map_release) struct rp_map before = {0};

    for (size_t i = x->first; i < x->end; i++) {
        const struct rp_mean_transfer *t = &r->transfers.at[i];
        uint32_t id = rp_map_get(&m->transfer, place_key(rank, t, t->chunk, t->is_send));
        uint64_t side = (uint64_t)(uint32_t)t->channel << 1 | t->is_send;
        uint32_t last = rp_map_get(&before, side);

        if (last != RP_MAP_NONE && last != id)
            RP_TRY(rp_model_link(m, last, id, 0, RP_SG_STREAM));
        RP_TRY(rp_map_put(&before, side, id, m->err));
    }
    return RP_OK;
}

static enum rp_code link_transfers(struct rp_model_ctx *m, uint32_t rank, size_t g)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    const struct rp_mean_group *x = &r->groups[g];

    for (size_t i = x->first; i < x->end; i++) {
        const struct rp_mean_transfer *t = &r->transfers.at[i];
        uint32_t id = m->leaves[rank] + 1 + (uint32_t)(i - x->first), from = RP_MAP_NONE;
        size_t peer = t->is_send ? rank : rp_job_sender(&m->means, rank, t->channel);

        if (peer != SIZE_MAX)
            from = rp_map_get(&m->transfer, place_key(peer, t, t->is_send ? t->chunk - 1 : t->chunk,
                                                      !t->is_send));
        if (from != RP_MAP_NONE)
            RP_TRY(rp_model_link(m, from, id, 0, RP_SG_EVENT));

        /* A send that passes on what its rank received needs no edge from where the rank enters the
           ring, and the receive before it needs none to where the rank leaves it. */
        double lag = m->means.ranks[rank].groups[t->group].enter_lag_ns;
        bool is_passed_on = !t->is_send && rp_map_get(&m->transfer, place_key(rank, t, t->chunk + 1,
                                                                              true)) != RP_MAP_NONE;
        if (!(t->is_send && from != RP_MAP_NONE))
            RP_TRY(rp_model_link(m, m->enters[rank], id, lag, RP_SG_STREAM));
        RP_TRY(is_passed_on ? RP_OK : rp_model_link(m, id, m->leaves[rank], 0, RP_SG_STREAM));
    }
    return r->duplex ? keep_order(m, rank, g) : RP_OK;
}

/* ------------------------------------------------------------------ groups */

/* met is the rendezvous of all ranks if transfers were not recorded; otherwise RP_NONE. */
static enum rp_code add_group(struct rp_model_ctx *m, uint32_t rank, size_t g, uint32_t decided,
                              uint32_t met)
{
    const struct rp_mean_group *x = &m->means.ranks[rank].groups[g];
    uint32_t queue, in, end, out;

    /* Each rank learns that the group was decided, in the order of the groups. */
    uint32_t agreed;
    RP_TRY(rp_model_add_plain(m, rank, RP_SG_HOST, AGREED, 0, &agreed));
    RP_TRY(rp_model_link(m, decided, agreed, x->agree_lag_ns, RP_SG_MEMBER));
    if (g && x->follow_lag_ns >= 0)
        RP_TRY(rp_model_link(m, m->agreed[rank], agreed, x->follow_lag_ns, RP_SG_ORDER));
    m->agreed[rank] = agreed;
    RP_TRY(rp_model_add_plain(m, rank, RP_SG_HOST, QUEUE, x->queue_ns, &queue));
    RP_TRY(rp_model_link(m, m->agreed[rank], queue, x->queue_lag_ns, RP_SG_ORDER));
    if (g)
        RP_TRY(rp_model_link(m, *done_of(m, rank, g - 1), queue, x->queue_lag_ns, RP_SG_ORDER));
    RP_TRY(rp_model_add_plain(m, rank, RP_SG_MEMORY, COPY_IN, x->in_ns, &in));
    RP_TRY(rp_model_link(m, queue, in, 0, RP_SG_STREAM));
    RP_TRY(rp_model_add_plain(m, rank, RP_SG_RENDEZVOUS, REDUCE, 0, &end));
    RP_TRY(rp_model_link(m, in, end, 0, RP_SG_STREAM));
    if (met == RP_NONE)
        RP_TRY(add_transfers(m, rank, g, in, end));
    else {
        /* Without a record of transfers, adds a rendezvous of all ranks, then the time of each. */
        uint32_t arrive, work;
        RP_TRY(rp_model_add_plain(m, rank, RP_SG_ARRIVE, REDUCE, 0, &arrive));
        RP_TRY(rp_model_link(m, in, arrive, x->enter_lag_ns, RP_SG_STREAM));
        RP_TRY(rp_model_link(m, arrive, met, 0, RP_SG_MEMBER));
        RP_TRY(rp_model_note_wait(m, arrive, met, 0, 0));
        RP_TRY(rp_model_add_plain(m, rank, RP_SG_COMM, REDUCE, x->reduce_ns, &work));
        RP_TRY(rp_model_link(m, met, work, 0, RP_SG_MEMBER));
        RP_TRY(rp_model_link(m, work, end, 0, RP_SG_STREAM));
    }
    RP_TRY(rp_model_add_plain(m, rank, RP_SG_MEMORY, COPY_OUT, x->out_ns, &out));
    *done_of(m, rank, g) = out;
    return rp_model_link(m, end, out, x->leave_lag_ns, RP_SG_STREAM);
}

/* ------------------------------------------------------------------ steps */

static enum rp_code build_with(struct rp_model_ctx *m, uint32_t *decided)
{
    m->devices = (uint32_t)m->part->device_rules.n;
    for (size_t i = 0; i < 2 * m->means.nranks; i++)
        RP_TRY(rp_vec_push(&m->part->device_rules, RP_DEVICE_SERIAL, m->err));
    RP_TRY(rp_model_add_plain(m, 0, RP_SG_ORIGIN, BEGIN, 0, &m->begin));
    for (uint32_t rank = 0; rank < m->means.nranks; rank++)
        RP_TRY(add_ops(m, rank));
    if (m->job->has_servers) {
        RP_TRY(rp_model_add_servers(m));
    } else {
        RP_TRY(add_votes(m, decided));

        uint32_t rank, met = RP_NONE;
        for (size_t g = 0; g < m->means.ngroups; g++) {
            if (!m->job->has_transfers)
                RP_TRY(rp_model_add_plain(m, 0, RP_SG_RENDEZVOUS, REDUCE, 0, &met));
            for (rank = 0; rank < m->means.nranks; rank++)
                RP_TRY(add_group(m, rank, g, decided[g], met));
            for (rank = 0; rank < m->means.nranks; rank++)
                RP_TRY(link_transfers(m, rank, g));
        }
    }
    for (uint32_t rank = 0; rank < m->means.nranks; rank++) {
        RP_TRY(link_updates(m, rank));

        /* Links data: from a tensor's communication to its update, and between operators. Edges
           within one stream that runs in order add nothing. */
        const struct rp_job_rank *r = &m->job->ranks[rank];
        for (size_t i = 0; i < r->edges.n; i++) {
            const struct rp_job_edge *e = &r->edges.at[i];
            uint32_t to = rp_map_get(&m->op_node, rp_model_op_key(rank, e->to)), from, g;
            if (e->to_tensor >= 0 || to == RP_MAP_NONE)
                continue;
            if (e->from_tensor >= 0) {
                g = rp_map_get(&m->means.group_of, (uint64_t)e->from_tensor);
                if (g != RP_MAP_NONE)
                    RP_TRY(rp_model_link(m, *done_of(m, rank, g), to, 0, RP_SG_MEMBER));
                continue;
            }
            from = rp_map_get(&m->op_node, rp_model_op_key(rank, e->from));
            if (from != RP_MAP_NONE && m->part->devices.at[to] != RP_NO_DEVICE)
                RP_TRY(rp_model_link(m, from, to, 0, RP_SG_ORDER));
        }
    }
    return RP_OK;
}

/* Builds the step from which the means are. */
static enum rp_code build(struct rp_model_ctx *m)
{
    size_t n = m->means.nranks * m->means.ngroups;
    uint32_t *decided = calloc(m->means.ngroups + 1, sizeof *decided);

    RP_EACH(rp_map_release, &m->op_node, &m->transfer);
    rp_map_init(&m->op_node);
    rp_map_init(&m->transfer);
    m->done = calloc(n + 1, sizeof *m->done);
    m->agreed = calloc(m->means.nranks + 1, sizeof *m->agreed);
    m->last = calloc(m->means.nranks + 1, sizeof *m->last);
    m->enters = calloc(m->means.nranks + 1, sizeof *m->enters);
    m->leaves = calloc(m->means.nranks + 1, sizeof *m->leaves);
    enum rp_code code = decided && m->done && m->agreed && m->last && m->enters && m->leaves
                            ? build_with(m, decided)
                            : rp_err_nomem(m->err, "simulating a job");
    RP_EACH(free, decided, m->done, m->agreed, m->last, m->enters, m->leaves);
    return code;
}

/* Estimates the nodes of a step: about as many as records. */
static size_t nodes_a_step(const struct rp_job_means *m)
{
    size_t r, n = 0;

    for (r = 0; r < m->nranks; r++)
        n += m->job->ranks[r].ops.n + m->job->ranks[r].transfers.n + m->job->ranks[r].spans.n;
    return n / (m->nsteps + 1) + 1;
}

/* For another plan, builds the mean of all steps, begun at several points of the cycle in which its
   ranks wake, if they have one. */
static enum rp_code build_plan(struct rp_model_ctx *m, const struct rp_job_plan *plan)
{
    struct rp_job_costs costs;

    RP_TRY(rp_job_means_take(&m->means, 0, m->means.nsteps, m->err));
    enum rp_code code = rp_job_costs_init(&costs, &m->means, m->err);
    size_t n = costs.cycle_ns > 0 ? NODES_MAX / nodes_a_step(&m->means) + 1 : 1;
    n = n < RP_JOB_PHASES ? n : RP_JOB_PHASES;
    if (code == RP_OK)
        code = rp_job_fuse_ops(&m->means, plan, m->err);
    for (size_t i = 0; code == RP_OK && i < n; i++) {
        code =
            rp_job_regroup(&m->means, &costs, plan, (double)i * costs.cycle_ns / (double)n, m->err);
        m->step = (uint16_t)i;
        m->first = 0;
        m->end = m->means.nsteps;
        if (code == RP_OK)
            code = build(m);
    }
    m->part->nsteps = (uint32_t)n;
    rp_job_costs_release(&costs);
    return code;
}

static enum rp_code build_steps(struct rp_model_ctx *m)
{
    size_t nsteps = m->means.nsteps, n = NODES_MAX / nodes_a_step(&m->means) + 1, i;

    n = n < nsteps ? n : nsteps;
    n = n < RP_NO_STEP - 1 ? n : RP_NO_STEP - 1;
    for (i = 0; i < n; i++) {
        RP_TRY(rp_job_means_take(&m->means, i * nsteps / n, (i + 1) * nsteps / n, m->err));
        m->step = (uint16_t)i;
        m->first = i * nsteps / n;
        m->end = (i + 1) * nsteps / n;
        RP_TRY(build(m));
    }
    m->part->nsteps = (uint32_t)n;
    return RP_OK;
}

static enum rp_code describe(struct rp_model_ctx *m, const struct rp_job_plan *plan)
{
    struct rp_sim_part *p = m->part;

    RP_TRY(rp_vec_push(&p->graph.names, "", m->err));
    for (size_t i = 0; i < RP_MODEL_TEXTS; i++)
        RP_TRY(intern(m, texts[i], &m->name[i]));
    for (size_t i = 0; i < m->job->remarks.n; i++)
        RP_TRY(rp_vec_push(&p->remarks, m->job->remarks.at[i], m->err));
    p->parallel_steps = true;
    p->recorded_steps = m->means.nsteps;
    p->nranks = p->graph.nranks = (uint32_t)m->means.nranks;
    p->spread_ratio = m->means.spread_ratio;
    p->measured_ns = p->distance_ns = (int64_t)llround(m->means.iteration_ns);
    if (m->means.left_out) {
        const char *text = rp_arena_printf(
            &p->graph.arena, "left out, since incomplete on some rank: %zu of the steps",
            m->means.left_out);

        RP_TRY(text ? rp_vec_push(&p->remarks, text, m->err)
                    : rp_err_nomem(m->err, "simulating a job"));
    }
    RP_TRY(plan ? build_plan(m, plan) : build_steps(m));

    /* Records that contradict each other would make a node wait for itself, which is an error. */
    const struct rp_stepgraph *g = &m->part->graph;
    struct rp_task_graph order;
    enum rp_code code = RP_OK;
    size_t i, stuck = 0;
    rp_task_graph_init(&order);
    for (i = 0; code == RP_OK && i < g->nodes.n; i++)
        code = rp_task_graph_add(&order, (struct rp_task){0}, NULL, m->err);
    for (i = 0; code == RP_OK && i < g->edges.n; i++)
        code = rp_task_graph_link(&order, g->edges.at[i].from, g->edges.at[i].to, 0, 0, m->err);
    if (code == RP_OK)
        code = rp_task_graph_freeze(&order, m->err);
    if (code == RP_OK)
        code = rp_task_graph_stuck(&order, &stuck, m->err);
    rp_task_graph_release(&order);
    return code != RP_OK || !stuck
               ? code
               : rp_err_set(m->err, RP_FORMAT,
                            "the records of the job contradict each other: %zu of %zu tasks "
                            "depend on themselves",
                            stuck, g->nodes.n);
}

enum rp_code rp_sim_part_of_job(struct rp_sim_part *out, const struct rp_job *job,
                                struct rp_err *err)
{
    return rp_sim_part_of_plan(out, job, NULL, err);
}

enum rp_code rp_sim_part_of_plan(struct rp_sim_part *out, const struct rp_job *job,
                                 const struct rp_job_plan *plan, struct rp_err *err)
{
    struct rp_model_ctx m = {.job = job, .part = out, .err = err};

    memset(out, 0, sizeof *out);
    out->recorder.framework = job->has_servers ? RP_FRAMEWORK_BYTEPS : RP_FRAMEWORK_HOROVOD;
    rp_arena_init(&out->graph.arena);
    enum rp_code code = rp_job_means_init(&m.means, job, err);
    if (code == RP_OK)
        code = describe(&m, plan);
    rp_job_means_release(&m.means);
    RP_EACH(rp_map_release, &m.op_node, &m.transfer, &m.name_of);
    return code;
}
