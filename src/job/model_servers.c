/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the nodes of a job with servers. Every worker and server has a device that sends and one
 * that receives; a thread of a server is a device, too. A message is two nodes, each of which keeps
 * its own device busy: the receiver can begin as soon as the first byte has crossed the wire. If
 * workers send the tensor with the lowest number first in the recording, they do so in the
 * simulation.
 */
#include "job/exchanges.h"
#include "job/model.h"

#include <math.h>

struct servers_ctx {
    struct rp_model_ctx *m;
    struct rp_job_exchanges legs;
    uint32_t out, in,
        threads; /* the first devices: of workers, then servers; threads are those of servers */
    uint32_t
        *there; /* by worker and group: the node after which all parts of its tensors are there */
};

/* Numbers workers first, then servers. */
static uint32_t place_of(const struct servers_ctx *t, uint32_t worker, const struct rp_mean_part *p,
                         bool at_server)
{
    return at_server ? (uint32_t)t->legs.nworkers + p->server : worker;
}

/* Returns the rank of a node: the first one of the worker; servers are numbered after all ranks. */
static uint32_t rank_at(const struct servers_ctx *t, uint32_t worker, const struct rp_mean_part *p,
                        bool at_server)
{
    uint32_t r = 0;

    if (at_server && p)
        return (uint32_t)t->m->means.nranks + p->server;
    while (t->legs.worker_of[r] != worker)
        r++;
    return r;
}

static uint8_t priority_of(const struct servers_ctx *t, const struct rp_mean_part *p)
{
    uint32_t g = rp_map_get(&t->m->means.group_of, (uint64_t)p->tensor);

    return g == RP_MAP_NONE
               ? UINT8_MAX
               : (uint8_t)(g * (uint32_t)UINT8_MAX / (uint32_t)(t->m->means.ngroups + 1));
}

/* Adds a message: its node at the sender, and the one at whose end it arrives, which is when the
   receiver has it, and a wire's time after all of it was sent. */
static enum rp_code add_message(struct servers_ctx *t, uint32_t worker,
                                const struct rp_mean_part *p, int kind, uint32_t *leaves,
                                uint32_t *came)
{
    const struct rp_mean_message *leg = &p->exchanges[worker].message[kind];
    bool ask = kind == RP_JOB_PUSH || kind == RP_JOB_PULL;
    struct rp_model_ctx *m = t->m;
    struct rp_sg_edge wire = {.kind = RP_SG_EVENT, .flags = RP_SG_FROM_START};
    uint32_t in;

    RP_TRY(rp_model_add(m, rank_at(t, worker, p, !ask), RP_SG_COMM, m->name[PUSH + kind],
                        leg->out_ns, t->out + place_of(t, worker, p, !ask), leaves));
    if (ask && t->legs.by_tensor)
        m->part->priorities.at[*leaves] = priority_of(t, p);
    RP_TRY(rp_model_add(m, rank_at(t, worker, p, ask), RP_SG_COMM, m->name[PUSH + kind], leg->in_ns,
                        t->in + place_of(t, worker, p, ask), &in));
    wire.from = *leaves;
    wire.to = in;
    wire.lag_ns = (int64_t)llround(leg->wire_ns);
    RP_TRY(rp_vec_push(&m->part->graph.edges, wire, m->err));
    RP_TRY(
        rp_model_add_plain(m, rank_at(t, worker, p, ask), RP_SG_RENDEZVOUS, PUSH + kind, 0, came));
    RP_TRY(rp_model_link(m, in, *came, 0, RP_SG_EVENT));
    return rp_model_link(m, *leaves, *came, leg->wire_ns, RP_SG_EVENT);
}

/* ------------------------------------------------------------------ a part */

/* Adds the messages from the arrival of the push to the arrival of the sum. */
static enum rp_code add_pull(struct servers_ctx *t, uint32_t worker, const struct rp_mean_part *p,
                             uint32_t merged, uint32_t pushed, uint32_t *there)
{
    const struct rp_mean_message *message = p->exchanges[worker].message;
    struct rp_model_ctx *m = t->m;
    uint32_t leaves, done, asked;

    RP_TRY(add_message(t, worker, p, RP_JOB_PUSH_DONE, &leaves, &done));
    RP_TRY(rp_model_link(m, pushed, leaves, message[RP_JOB_PUSH_DONE].lag_ns, RP_SG_EVENT));
    RP_TRY(add_message(t, worker, p, RP_JOB_PULL, &leaves, &asked));
    RP_TRY(rp_model_link(m, done, leaves, message[RP_JOB_PULL].lag_ns, RP_SG_EVENT));
    RP_TRY(add_message(t, worker, p, RP_JOB_PULL_DONE, &leaves, there));
    RP_TRY(rp_model_link(m, asked, leaves, message[RP_JOB_PULL_DONE].lag_ns, RP_SG_EVENT));
    return rp_model_link(m, merged, leaves, message[RP_JOB_PULL_DONE].lag_ns, RP_SG_EVENT);
}

/* Links the gradients of a part's tensors on the ranks of a worker. */
static enum rp_code link_gradients(struct servers_ctx *t, uint32_t worker,
                                   const struct rp_mean_part *p, uint32_t push)
{
    struct rp_model_ctx *m = t->m;
    uint32_t g = rp_map_get(&m->means.group_of, (uint64_t)p->tensor);
    size_t r, i, n = 0;

    for (r = 0; r < m->means.nranks; r++)
        for (i = 0; t->legs.worker_of[r] == worker && i < m->job->ranks[r].edges.n; i++) {
            const struct rp_job_edge *e = &m->job->ranks[r].edges.at[i];

            if (e->to_tensor < 0 || rp_map_get(&m->means.group_of, (uint64_t)e->to_tensor) != g)
                continue;
            uint32_t from = rp_map_get(&m->op_node, rp_model_op_key(r, e->from));
            if (from == RP_MAP_NONE)
                continue;
            n++;
            RP_TRY(rp_model_link(m, from, push, p->exchanges[worker].message[RP_JOB_PUSH].lag_ns,
                                 RP_SG_MEMBER));
        }
    return n ? RP_OK : rp_model_link(m, m->begin, push, 0, RP_SG_MEMBER);
}

static enum rp_code add_part(struct servers_ctx *t, const struct rp_mean_part *p)
{
    struct rp_model_ctx *m = t->m;
    uint32_t w, g = rp_map_get(&m->means.group_of, (uint64_t)p->tensor), merged;

    if (g == RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_model_add(m, rank_at(t, 0, p, true), RP_SG_HOST, m->name[MERGED], p->merge_ns,
                        p->thread == UINT32_MAX ? RP_NO_DEVICE : t->threads + p->thread, &merged));
    for (w = 0; w < t->legs.nworkers; w++) {
        uint32_t pushed, leaves, there;

        if (!p->exchanges[w].message[RP_JOB_PUSH].known)
            continue;

        /* The server adds what the worker pushed to the sum. */
        const struct rp_mean_exchange *v = &p->exchanges[w];
        uint32_t sum;
        RP_TRY(add_message(t, w, p, RP_JOB_PUSH, &leaves, &pushed));
        RP_TRY(rp_model_add(m, rank_at(t, w, p, true), RP_SG_HOST, m->name[SUM], v->sum_ns,
                            p->thread == UINT32_MAX ? RP_NO_DEVICE : t->threads + p->thread, &sum));
        m->part->priorities.at[sum] = 1; /* the last copy has priority */
        RP_TRY(rp_model_link(m, pushed, sum, v->sum_lag_ns, RP_SG_EVENT));
        RP_TRY(rp_model_link(m, sum, merged, p->merge_lag_ns, RP_SG_MEMBER));
        RP_TRY(link_gradients(t, w, p, leaves));
        if (!p->exchanges[w].message[RP_JOB_PULL_DONE].known)
            continue;
        RP_TRY(add_pull(t, w, p, merged, pushed, &there));
        RP_TRY(rp_model_link(m, there, t->there[w * m->means.ngroups + g], 0, RP_SG_MEMBER));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

/* After its last gradient a rank waits until its last update, except during the updates in
   between. */
static enum rp_code add_wait(struct servers_ctx *t, uint32_t rank)
{
    struct rp_model_ctx *m = t->m;
    const struct rp_mean_rank *r = &m->means.ranks[rank];
    uint32_t first = UINT32_MAX, last = RP_NONE, end = 0;

    for (size_t i = 0; i < r->ops.n; i++) {
        uint32_t id = rp_map_get(&m->op_node, rp_model_op_key(rank, r->ops.at[i].name));

        first = id < first ? id : first;
        end = id + 1 > end ? id + 1 : end;
        last = r->ops.at[i].is_update ? id : last;
    }
    return last == RP_NONE || m->last[rank] == RP_NONE
               ? RP_OK
               : rp_model_note_wait(m, m->last[rank], last, first, end);
}

static enum rp_code add_all(struct servers_ctx *t)
{
    struct rp_model_ctx *m = t->m;
    size_t i, n = t->legs.nworkers * m->means.ngroups;

    size_t k, places = t->legs.nworkers + t->legs.nservers;
    t->out = (uint32_t)t->m->part->device_rules.n;
    t->in = t->out + (uint32_t)places;
    t->threads = t->in + (uint32_t)places;
    for (k = 0; k < 2 * places + t->legs.nthreads; k++)
        RP_TRY(rp_vec_push(&t->m->part->device_rules, RP_DEVICE_SERIAL, t->m->err));
    t->there = RP_ARENA_NEW(&t->legs.arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(t->there, m->err, "simulating a job"));
    for (i = 0; i < n; i++)
        RP_TRY(rp_model_add_plain(m, rank_at(t, (uint32_t)(i / m->means.ngroups), NULL, false),
                                  RP_SG_RENDEZVOUS, PULL_DONE, 0, &t->there[i]));
    for (i = 0; i < t->legs.nparts; i++)
        RP_TRY(add_part(t, &t->legs.parts[i]));
    for (uint32_t r = 0; r < m->means.nranks; r++) {
        for (i = 0; i < m->means.ngroups; i++)
            m->done[r * m->means.ngroups + i] =
                t->there[t->legs.worker_of[r] * m->means.ngroups + i];
        RP_TRY(add_wait(t, r));
    }
    return RP_OK;
}

enum rp_code rp_model_add_servers(struct rp_model_ctx *m)
{
    struct servers_ctx t = {.m = m};
    enum rp_code code = rp_job_exchanges_init(&t.legs, &m->means, m->first, m->end, m->err);

    if (code == RP_OK)
        code = add_all(&t);
    rp_job_exchanges_release(&t.legs);
    return code;
}
