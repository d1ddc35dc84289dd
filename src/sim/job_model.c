/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From means to nodes. Operators of a rank run in their recorded order, updates when their tensor
 * is there and the operators in front are done, one at a time. Groups of tensors are agreed by all
 * ranks and run one after another on each rank. A chunk goes on when it was received; it is
 * received when the neighbour sent it. Where sends and receives never overlap, one mover does all
 * of them, first come, first served; else each channel has a sending and a receiving side, which
 * keep the recorded order.
 */
#include "sim/job_model.h"

#include "base/hash.h"
#include "sim/task_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct maker {
    const struct rp_job *job;
    struct rp_job_means means;
    struct rp_sim_part *part;
    struct rp_err *err;
    struct rp_map op_node;   /* hash of (rank, name) -> node */
    struct rp_map transfer;  /* hash of place -> node */
    RP_VEC(uint32_t) done;   /* by rank and group: node after which its tensors are there */
    RP_VEC(uint32_t) enters; /* by rank: node at whose end it enters the ring of the group */
    RP_VEC(uint32_t) leaves; /* by rank: node that waits for all its transfers */
    RP_VEC(uint32_t) agreed; /* by group */
    uint32_t send_name, receive_name, phase_name;
};

static enum rp_code intern(struct maker *m, const char *text, uint32_t *id)
{
    const char *copy = rp_arena_strdup(&m->part->graph.arena, text);

    if (!copy)
        return rp_err_nomem(m->err, "simulating a job");
    *id = (uint32_t)m->part->graph.names.n;
    return rp_vec_push(&m->part->graph.names, copy, m->err);
}

static enum rp_code add(struct maker *m, uint32_t rank, uint8_t kind, uint32_t name, double dur_ns,
                        uint32_t device, uint32_t *id)
{
    struct rp_sg_node node = {.dur_ns = (int64_t)llround(dur_ns),
                              .event = RP_NONE,
                              .name = name,
                              .lane = RP_NONE,
                              .rank = rank,
                              .collective = RP_NONE,
                              .kind = kind,
                              .flags = RP_SG_WORK};
    struct rp_sim_note note = {0, 0, RP_PHASE_OTHER, RP_SIM_TIMES};

    *id = (uint32_t)m->part->graph.nodes.n;
    RP_TRY(rp_vec_push(&m->part->graph.nodes, node, m->err));
    RP_TRY(rp_vec_push(&m->part->devices, device, m->err));
    return rp_vec_push(&m->part->notes, note, m->err);
}

static enum rp_code link(struct maker *m, uint32_t from, uint32_t to, double lag_ns, uint8_t kind)
{
    struct rp_sg_edge e = {
        .lag_ns = (int64_t)llround(lag_ns), .from = from, .to = to, .kind = kind};

    return rp_vec_push(&m->part->graph.edges, e, m->err);
}

static uint64_t op_key(size_t rank, const char *name)
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

/* ------------------------------------------------------------------ operators */

/* dPRO's names begin with what an operator belongs to. */
static uint8_t phase_of(const struct rp_mean_op *op)
{
    if (op->is_update)
        return RP_PHASE_OPTIMIZER;
    return !strncmp(op->name, "FW.", 3)   ? RP_PHASE_FORWARD
           : !strncmp(op->name, "BW.", 3) ? RP_PHASE_BACKWARD
                                          : RP_PHASE_OTHER;
}

/* Devices of rank r: 2r its stream for updates, 2r + 1 its mover. */
static enum rp_code add_ops(struct maker *m, uint32_t rank, uint32_t *last)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    uint32_t id, before = RP_NONE;
    size_t i;

    for (i = 0; i < r->ops.n; i++) {
        const struct rp_mean_op *op = &r->ops.at[i];
        uint32_t name;

        RP_TRY(intern(m, op->name, &name));
        RP_TRY(add(m, rank, RP_SG_COMPUTE, name, op->dur_ns,
                   op->is_update ? 2 * rank : RP_NO_DEVICE, &id));
        m->part->notes.at[id].phase = phase_of(op);
        RP_TRY(rp_map_put(&m->op_node, op_key(rank, op->name), id, m->err));
        if (op->is_update)
            continue;
        if (before != RP_NONE)
            RP_TRY(link(m, before, id, op->gap_ns, RP_SG_STREAM));
        before = id;
    }
    *last = before;
    return RP_OK;
}

/* The middle of the gaps between operators: what an update waits for besides what it needs. */
static double usual_gap(const struct rp_mean_rank *r)
{
    double sum = 0, n = 0;
    size_t i;

    for (i = 1; i < r->ops.n; i++)
        if (!r->ops.at[i].is_update) {
            sum += r->ops.at[i].gap_ns;
            n++;
        }
    return n > 0 ? sum / n : 0;
}

static enum rp_code link_updates(struct maker *m, uint32_t rank, uint32_t last)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    double gap = usual_gap(r);
    size_t i;

    for (i = 0; i < r->ops.n; i++)
        if (r->ops.at[i].is_update && last != RP_NONE)
            RP_TRY(link(m, last, rp_map_get(&m->op_node, op_key(rank, r->ops.at[i].name)), gap,
                        RP_SG_STREAM));
    return RP_OK;
}

static size_t group_with(const struct maker *m, int64_t tensor)
{
    size_t g;

    for (g = 0; g < m->means.ngroups; g++)
        if (rp_job_group_has(m->means.groups[g], tensor))
            return g;
    return SIZE_MAX;
}

/* Data: from a tensor's communication to its update, and between operators. Those of one stream
   that run in order say nothing new. */
static enum rp_code link_data(struct maker *m, uint32_t rank)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    size_t i;

    for (i = 0; i < r->edges.n; i++) {
        const struct rp_job_edge *e = &r->edges.at[i];
        uint32_t to = rp_map_get(&m->op_node, op_key(rank, e->to));
        uint32_t from = rp_map_get(&m->op_node, op_key(rank, e->from));
        size_t g = e->from_tensor >= 0 ? group_with(m, e->from_tensor) : SIZE_MAX;

        if (e->to_tensor >= 0 || to == RP_MAP_NONE)
            continue;
        if (g != SIZE_MAX)
            RP_TRY(link(m, m->done.at[rank * m->means.ngroups + g], to, 0, RP_SG_MEMBER));
        else if (e->from_tensor < 0 && from != RP_MAP_NONE &&
                 m->part->devices.at[to] != RP_NO_DEVICE)
            RP_TRY(link(m, from, to, 0, RP_SG_ORDER));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ groups */

/* A rank votes when its gradients are ready; the last vote is the agreement. */
static enum rp_code add_votes(struct maker *m, size_t g)
{
    uint32_t rank, vote, agreed;
    size_t i;

    RP_TRY(add(m, 0, RP_SG_MEET, m->phase_name, 0, RP_NO_DEVICE, &agreed));
    m->agreed.at[g] = agreed;
    for (rank = 0; rank < m->means.nranks; rank++) {
        const struct rp_job_rank *r = &m->job->ranks[rank];

        RP_TRY(add(m, rank, RP_SG_ARRIVE, m->phase_name, 0, RP_NO_DEVICE, &vote));
        for (i = 0; i < r->edges.n; i++) {
            const struct rp_job_edge *e = &r->edges.at[i];
            uint32_t from = rp_map_get(&m->op_node, op_key(rank, e->from));

            if (e->to_tensor >= 0 && from != RP_MAP_NONE &&
                rp_job_group_has(m->means.groups[g], e->to_tensor))
                RP_TRY(
                    link(m, from, vote, m->means.ranks[rank].groups[g].sync_lag_ns, RP_SG_MEMBER));
        }
        RP_TRY(link(m, vote, agreed, 0, RP_SG_MEMBER));
    }
    return RP_OK;
}

static size_t sender_to(const struct maker *m, size_t rank, int32_t channel)
{
    size_t r, i;

    for (r = 0; r < m->means.nranks; r++)
        for (i = 0; i < m->job->ranks[r].links.n; i++)
            if (m->job->ranks[r].links.at[i].channel == channel &&
                m->job->ranks[r].links.at[i].to == m->job->ranks[rank].number)
                return r;
    return SIZE_MAX;
}

/* The first transfer of a rank that belongs to this group or a later one; they are by group. */
static size_t first_of_group(const struct rp_mean_rank *r, size_t g)
{
    size_t low = 0, high = r->transfers.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->transfers.at[middle].group < g)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The transfers [low, high) of a rank belong to one group. */
static void transfers_of(const struct rp_mean_rank *r, size_t g, size_t *low, size_t *high)
{
    *low = first_of_group(r, g);
    *high = first_of_group(r, g + 1);
}

static enum rp_code add_transfers(struct maker *m, uint32_t rank, size_t g)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    size_t i, low, high;
    uint32_t id;

    transfers_of(r, g, &low, &high);
    for (i = low; i < high; i++) {
        const struct rp_mean_transfer *t = &r->transfers.at[i];

        RP_TRY(add(m, rank, RP_SG_COMM, t->is_send ? m->send_name : m->receive_name, t->dur_ns,
                   r->duplex ? RP_NO_DEVICE : 2 * rank + 1, &id));
        RP_TRY(rp_map_put(&m->transfer, place_key(rank, t, t->chunk, t->is_send), id, m->err));
    }
    return RP_OK;
}

/* The side of a channel: what it did before must be over. */
static enum rp_code keep_order(struct maker *m, uint32_t rank, size_t low, size_t high)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    uint32_t before[2][64];
    size_t i;

    memset(before, 0xff, sizeof before);
    for (i = low; i < high; i++) {
        const struct rp_mean_transfer *t = &r->transfers.at[i];
        uint32_t id = rp_map_get(&m->transfer, place_key(rank, t, t->chunk, t->is_send));
        uint32_t *side = &before[t->is_send][t->channel % 64];

        if (*side != UINT32_MAX)
            RP_TRY(link(m, *side, id, 0, RP_SG_STREAM));
        *side = id;
    }
    return RP_OK;
}

/* A send that passes on what its rank received needs no edge of its own from where the rank enters
   the ring, nor does what it passes on need one to where the rank leaves it. */
static enum rp_code link_ends(struct maker *m, uint32_t rank, const struct rp_mean_transfer *t,
                              uint32_t id, bool passes_on)
{
    bool is_passed_on = !t->is_send && rp_map_get(&m->transfer, place_key(rank, t, t->chunk + 1,
                                                                          true)) != RP_MAP_NONE;

    if (!passes_on)
        RP_TRY(link(m, m->enters.at[rank], id, 0, RP_SG_STREAM));
    return is_passed_on ? RP_OK : link(m, id, m->leaves.at[rank], 0, RP_SG_STREAM);
}

static enum rp_code link_transfers(struct maker *m, uint32_t rank, size_t g)
{
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    size_t i, low, high;

    transfers_of(r, g, &low, &high);
    for (i = low; i < high; i++) {
        const struct rp_mean_transfer *t = &r->transfers.at[i];
        uint32_t id = m->leaves.at[rank] + 1 + (uint32_t)(i - low), from = RP_MAP_NONE;
        size_t peer = t->is_send ? rank : sender_to(m, rank, t->channel);

        if (peer != SIZE_MAX)
            from = rp_map_get(&m->transfer, place_key(peer, t, t->is_send ? t->chunk - 1 : t->chunk,
                                                      !t->is_send));
        if (from != RP_MAP_NONE)
            RP_TRY(link(m, from, id, 0, RP_SG_EVENT));
        RP_TRY(link_ends(m, rank, t, id, t->is_send && from != RP_MAP_NONE));
    }
    return r->duplex ? keep_order(m, rank, low, high) : RP_OK;
}

static enum rp_code add_group(struct maker *m, uint32_t rank, size_t g)
{
    const struct rp_mean_group *x = &m->means.ranks[rank].groups[g];
    uint32_t agreed, queue, in, end, out;

    RP_TRY(add(m, rank, RP_SG_HOST, m->phase_name, 0, RP_NO_DEVICE, &agreed));
    RP_TRY(link(m, m->agreed.at[g], agreed, x->agree_lag_ns, RP_SG_MEMBER));
    RP_TRY(add(m, rank, RP_SG_HOST, m->phase_name, x->queue_ns, RP_NO_DEVICE, &queue));
    RP_TRY(link(m, agreed, queue, x->queue_lag_ns, RP_SG_ORDER));
    if (g)
        RP_TRY(link(m, m->done.at[rank * m->means.ngroups + g - 1], queue, x->queue_lag_ns,
                    RP_SG_ORDER));
    RP_TRY(add(m, rank, RP_SG_MEMORY, m->phase_name, x->in_ns, RP_NO_DEVICE, &in));
    RP_TRY(link(m, queue, in, 0, RP_SG_STREAM));
    RP_TRY(add(m, rank, RP_SG_MEET, m->phase_name, 0, RP_NO_DEVICE, &end));
    RP_TRY(link(m, in, end, 0, RP_SG_STREAM));
    m->enters.at[rank] = in;
    m->leaves.at[rank] = end;
    RP_TRY(add_transfers(m, rank, g));
    RP_TRY(add(m, rank, RP_SG_MEMORY, m->phase_name, x->out_ns, RP_NO_DEVICE, &out));
    m->done.at[rank * m->means.ngroups + g] = out;
    return link(m, end, out, 0, RP_SG_STREAM);
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code add_devices(struct maker *m)
{
    size_t i;

    for (i = 0; i < 2 * m->means.nranks; i++)
        RP_TRY(rp_vec_push(&m->part->device_rules, RP_DEVICE_SERIAL, m->err));
    return RP_OK;
}

static enum rp_code build(struct maker *m)
{
    size_t g, n = m->means.nranks * m->means.ngroups;
    uint32_t rank, *last = calloc(m->means.nranks + 1, sizeof *last);
    enum rp_code code = last ? RP_OK : rp_err_nomem(m->err, "simulating a job");

    if (code == RP_OK)
        code = rp_vec_reserve(&m->done, n + 1, m->err);
    if (code == RP_OK)
        code = rp_vec_reserve(&m->agreed, m->means.ngroups + 1, m->err);
    if (code == RP_OK)
        code = rp_vec_reserve(&m->enters, m->means.nranks + 1, m->err);
    if (code == RP_OK)
        code = rp_vec_reserve(&m->leaves, m->means.nranks + 1, m->err);
    for (rank = 0; code == RP_OK && rank < m->means.nranks; rank++)
        code = add_ops(m, rank, &last[rank]);
    for (g = 0; code == RP_OK && g < m->means.ngroups; g++) {
        code = add_votes(m, g);
        for (rank = 0; code == RP_OK && rank < m->means.nranks; rank++)
            code = add_group(m, rank, g);
        for (rank = 0; code == RP_OK && rank < m->means.nranks; rank++)
            code = link_transfers(m, rank, g);
    }
    for (rank = 0; code == RP_OK && rank < m->means.nranks; rank++) {
        code = link_updates(m, rank, last[rank]);
        if (code == RP_OK)
            code = link_data(m, rank);
    }
    free(last);
    return code;
}

static enum rp_code describe(struct maker *m)
{
    struct rp_sim_part *p = m->part;

    rp_arena_init(&p->graph.arena);
    RP_TRY(rp_vec_push(&p->graph.names, "", m->err));
    RP_TRY(intern(m, "SEND", &m->send_name));
    RP_TRY(intern(m, "RECV", &m->receive_name));
    RP_TRY(intern(m, "Horovod", &m->phase_name));
    RP_TRY(add_devices(m));
    p->nsteps = 1;
    p->recorded_steps = m->means.nsteps;
    p->nranks = (uint32_t)m->means.nranks;
    p->spread_ratio = NAN;
    p->measured_ns = (int64_t)llround(m->means.iteration_ns);
    return build(m);
}

enum rp_code rp_sim_part_of_job(struct rp_sim_part *out, const struct rp_job *job,
                                struct rp_err *err)
{
    struct maker m = {.job = job, .part = out, .err = err};
    enum rp_code code;

    memset(out, 0, sizeof *out);
    rp_map_init(&m.op_node);
    rp_map_init(&m.transfer);
    code = rp_job_means_init(&m.means, job, err);
    if (code == RP_OK)
        code = describe(&m);
    rp_job_means_release(&m.means);
    rp_map_release(&m.op_node);
    rp_map_release(&m.transfer);
    rp_vec_release(&m.done);
    rp_vec_release(&m.agreed);
    rp_vec_release(&m.enters);
    rp_vec_release(&m.leaves);
    return code;
}
