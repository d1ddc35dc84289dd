/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the mean step of a job with other groups of tensors and with fused operators: what costs.c
   learned replaces the recorded times. */
#include "job/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ operators */

enum rp_code rp_job_fuse_ops(struct rp_job_means *m, const struct rp_job_plan *plan,
                             struct rp_err *err)
{
    struct rp_map last = {0}; /* from name to cluster, for its members */
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < plan->nclusters; i++)
        for (size_t k = 0; code == RP_OK && k < plan->clusters[i].n; k++)
            code = rp_map_put(&last, rp_means_name_key(plan->clusters[i].ops[k]), (uint32_t)i, err);
    for (size_t r = 0; code == RP_OK && r < m->nranks; r++) {
        double *sum = calloc(plan->nclusters + 1, sizeof *sum);
        struct rp_mean_op **end = calloc(plan->nclusters + 1, sizeof *end);

        for (size_t i = 0; sum && end && i < m->ranks[r].ops.n; i++) {
            struct rp_mean_op *op = &m->ranks[r].ops.at[i];
            uint32_t at = rp_map_get(&last, rp_means_name_key(op->name));

            if (at == RP_MAP_NONE)
                continue;
            sum[at] += op->dur_ns;
            op->dur_ns = 0;
            if (end[at])
                op->gap_ns = 0; /* one launch */
            end[at] = op;
        }
        for (size_t i = 0; sum && end && i < plan->nclusters; i++)
            if (end[i])
                end[i]->dur_ns = sum[i] * plan->clusters[i].factor;
        code = rp_err_need(sum && end, err, "simulating a job");
        free(sum);
        free((void *)end);
    }
    rp_map_release(&last);
    return code;
}

void rp_job_ready(const struct rp_job_means *m, const struct rp_job_costs *costs, size_t rank,
                  double *out_ns)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    const struct rp_mean_rank *mean = &m->ranks[rank];
    struct rp_map op_at = {0};
    struct rp_err err = RP_ERR_INIT;
    double *ends = calloc(mean->ops.n + 1, sizeof *ends), at = mean->begin_ns;
    bool first = true;

    for (size_t i = 0; i < m->job->tensors.n; i++)
        out_ns[i] = 0;
    for (size_t i = 0; ends && i < mean->ops.n; i++) {
        const struct rp_mean_op *op = &mean->ops.at[i];

        if (op->is_update)
            continue;
        at += (first ? 0 : op->gap_ns) + op->dur_ns;
        first = false;
        ends[i] = at;
        rp_map_put(&op_at, rp_means_name_key(op->name), (uint32_t)i, &err);
    }
    for (size_t i = 0; ends && i < r->edges.n; i++) {
        const struct rp_job_edge *e = &r->edges.at[i];
        uint32_t t =
            e->to_tensor < 0 ? RP_MAP_NONE : rp_map_get(&costs->bytes_of, (uint64_t)e->to_tensor);
        uint32_t op =
            t == RP_MAP_NONE ? RP_MAP_NONE : rp_map_get(&op_at, rp_means_name_key(e->from));

        if (op != RP_MAP_NONE)
            out_ns[t] = fmax(out_ns[t], ends[op]);
    }
    rp_map_release(&op_at);
    free(ends);
}

/* ------------------------------------------------------------------ groups */

static enum rp_code name_groups(struct rp_job_means *m, const struct rp_job_plan *plan,
                                struct rp_err *err)
{
    rp_map_release(&m->group_of);
    rp_map_init(&m->group_of);
    m->ngroups = plan->ngroups;
    m->groups = RP_ARENA_NEW(&m->arena, const char *, plan->ngroups + 1);
    RP_TRY(rp_err_need(m->groups, err, "simulating a job"));
    for (size_t g = 0; g < plan->ngroups; g++) {
        size_t room = sizeof "+-9223372036854775808" * plan->groups[g].n + 1, size = 0;
        char *name = rp_arena_alloc(&m->arena, room, 1);

        RP_TRY(rp_err_need(name, err, "simulating a job"));
        for (size_t i = 0; i < plan->groups[g].n; i++) {
            size += (size_t)snprintf(name + size, room - size, i ? "+%lld" : "%lld",
                                     (long long)plan->groups[g].tensors[i]);
            RP_TRY(
                rp_map_put(&m->group_of, (uint64_t)plan->groups[g].tensors[i], (uint32_t)g, err));
        }
        m->groups[g] = name;
    }
    return RP_OK;
}

static double bytes_of(const struct rp_job_costs *c, const struct rp_job_plan_group *g)
{
    double sum = 0;

    for (size_t i = 0; i < g->n; i++)
        sum += (double)rp_job_tensor_bytes(c, g->tensors[i]);
    return sum;
}

static double last_ready(const struct rp_job_costs *c, const struct rp_job_plan_group *g,
                         const double *ready)
{
    double last = 0;

    for (size_t i = 0; i < g->n; i++) {
        uint32_t at = rp_map_get(&c->bytes_of, (uint64_t)g->tensors[i]);

        if (at != RP_MAP_NONE)
            last = fmax(last, ready[at]);
    }
    return last;
}

static enum rp_code regroup_rank(struct rp_job_means *m, const struct rp_job_costs *c, size_t rank,
                                 const struct rp_job_plan *plan, double offset_ns,
                                 const double *ready, struct rp_err *err)
{
    struct rp_mean_rank *r = &m->ranks[rank];
    const struct rp_job_cost_rank *x = &c->ranks[rank];

    r->groups = RP_ARENA_NEW(&m->arena, struct rp_mean_group, plan->ngroups + 1);
    RP_TRY(rp_err_need(r->groups, err, "simulating a job"));
    r->transfers.n = 0;
    for (size_t g = 0; g < plan->ngroups; g++) {
        double bytes = bytes_of(c, &plan->groups[g]);
        bool copies = plan->groups[g].n > 1;

        r->groups[g] =
            (struct rp_mean_group){.vote_lag_ns = rp_job_wake_ns(
                                       c, rank, last_ready(c, &plan->groups[g], ready) + offset_ns),
                                   .agree_lag_ns = x->agree_lag_ns,
                                   .follow_lag_ns = x->follow_lag_ns,
                                   .queue_lag_ns = x->queue_lag_ns,
                                   .queue_ns = x->queue_ns,
                                   .in_ns = copies ? rp_job_line_at(&x->in, bytes) : 0,
                                   .out_ns = copies ? rp_job_line_at(&x->out, bytes) : 0,
                                   .enter_lag_ns = x->enter_lag_ns,
                                   .reduce_ns = rp_job_line_at(&x->reduce, bytes)};

        /* Adds the messages of a group, in the order in which costs.c numbers them. */
        size_t i, k, loops = rp_job_loops(c, bytes);
        size_t n = c->nchunks * loops * c->nslices * c->nchannels;
        double each = rp_job_message_bytes(c, bytes);
        r->groups[g].first = r->transfers.n;
        for (i = 0; c->has_transfers && i < n; i++)
            for (k = 0; k < 2; k++) {
                size_t channel = i % c->nchannels, slice = i / c->nchannels % c->nslices;
                struct rp_mean_transfer t = {
                    .dur_ns = rp_job_line_at(k ? &c->ranks[rank].sends[channel]
                                               : &c->ranks[rank].receives[channel],
                                             each),
                    .begin_ns = (int64_t)i,
                    .group = (uint32_t)g,
                    .loop = (int32_t)(i / c->nchannels / c->nslices % loops),
                    .channel = (int32_t)channel,
                    .chunk = (int32_t)(i / c->nchannels / c->nslices / loops),
                    .slice = (int32_t)slice,
                    .is_send = k == 1};
                RP_TRY(rp_vec_push(&r->transfers, t, err));
            }
        r->groups[g].end = r->transfers.n;
    }
    return RP_OK;
}

enum rp_code rp_job_regroup(struct rp_job_means *m, const struct rp_job_costs *costs,
                            const struct rp_job_plan *plan, double offset_ns, struct rp_err *err)
{
    RP_FREED double *ready = calloc(m->job->tensors.n + 1, sizeof *ready);

    RP_TRY(ready ? name_groups(m, plan, err) : rp_err_nomem(err, "simulating a job"));
    for (size_t r = 0; r < m->nranks; r++) {
        rp_job_ready(m, costs, r, ready);
        RP_TRY(regroup_rank(m, costs, r, plan, offset_ns, ready, err));
    }
    return RP_OK;
}
