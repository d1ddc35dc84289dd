/* SPDX-License-Identifier: Apache-2.0 */
/* Treats gradients as a chain (bucket_model.h). O(steps) per group. */
#include "opt/bucket_model.h"

#include <math.h>
#include <string.h>

/* By step: when the transport is idle again, and when the last bucket is copied back. */
struct bucket_state {
    double idle_ns, there_ns;
};

/* ------------------------------------------------------------------ the chain */

static void bucket_begin(const void *user, void *state)
{
    const struct rp_opt_bucket_model *m = user;

    memset(state, 0, m->nsteps * sizeof(struct bucket_state));
}

static void bucket_add(const void *user, void *state, size_t first, size_t end)
{
    const struct rp_opt_bucket_model *m = user;
    struct bucket_state *x = state;
    int64_t bytes = 0;

    for (size_t i = first; i < end; i++)
        bytes += m->bytes[i];
    double work = (double)rp_transport_ns(&m->costs.transport, bytes);
    double to = m->costs.to_ns_by_byte * (double)bytes;
    double back = m->costs.back_ns_by_byte * (double)bytes;
    for (size_t s = 0; s < m->nsteps; s++) {
        double ready = m->ready_ns[s * m->n + end - 1] + to;

        x[s].idle_ns = fmax(x[s].idle_ns, ready) + work;
        x[s].there_ns = fmax(x[s].there_ns, x[s].idle_ns + back);
    }
}

static double bucket_there(const void *user, const void *state)
{
    const struct rp_opt_bucket_model *m = user;
    const struct bucket_state *x = state;
    double sum = 0;

    for (size_t s = 0; s < m->nsteps; s++)
        sum += x[s].there_ns;
    return sum / (double)m->nsteps;
}

static double bucket_ready(const void *user, size_t tensor)
{
    const struct rp_opt_bucket_model *m = user;
    double sum = 0;

    for (size_t s = 0; s < m->nsteps; s++)
        sum += m->ready_ns[s * m->n + tensor];
    return sum / (double)m->nsteps;
}

/* ------------------------------------------------------------------ making it */

static void add_steps(struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                      const struct rp_sim_result *r)
{
    const struct rp_sim_part *p = x->run.parts[0];
    size_t low, high;

    for (low = 0; low < p->gradients.n; low = high) {
        for (high = low;
             high < p->gradients.n && p->gradients.at[high].step == p->gradients.at[low].step;)
            high++;
        if (p->gradients.at[low].step != RP_NO_STEP && high - low == m->n) {
            /* Add gradients [low, low + n) of all ranks; a gradient is not ready before those that
               precede it. */
            double *to = m->ready_ns + m->nsteps * m->n, last = 0;
            int64_t begin = INT64_MAX;

            for (size_t i = 0; i < m->n; i++)
                for (size_t rank = 0; rank < x->run.nranks; rank++) {
                    const struct rp_sim_gradient *g = &x->run.parts[rank]->gradients.at[low + i];

                    uint32_t first = rp_sim_first_node(&x->run, rank);
                    int64_t end = r->end_ns.at[first + g->node];
                    if (g->work != RP_NONE && r->end_ns.at[first + g->work] > end)
                        end = r->end_ns.at[first + g->work];

                    begin = end < begin ? end : begin;
                    last = fmax(last, (double)(end - begin));
                    to[i] = last;
                }
            m->nsteps++;
        }
    }
}

enum rp_code rp_opt_bucket_model_init(struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                                      struct rp_err *err)
{
    struct rp_sim_result r = {0};

    *m = (struct rp_opt_bucket_model){0};
    rp_arena_init(&m->arena);
    RP_TRY(rp_sim_bucket_costs(&x->run, &m->costs, err));

    /* Count the gradients of the first step that has any. */
    const struct rp_sim_part *p = x->run.parts[0];
    size_t i, first = 0;
    while (first < p->gradients.n && p->gradients.at[first].step == RP_NO_STEP)
        first++;
    while (first + m->n < p->gradients.n &&
           p->gradients.at[first + m->n].step == p->gradients.at[first].step)
        m->n++;
    m->bytes = RP_ARENA_NEW(&m->arena, int64_t, m->n + 1);
    m->ready_ns = RP_ARENA_NEW(&m->arena, double, p->gradients.n + m->n + 1);
    RP_TRY(rp_arena_check(&m->arena, "searching", err));
    for (i = 0; i < m->n; i++)
        m->bytes[i] = p->gradients.at[first + i].bytes;
    if (!m->n)
        return rp_err_set(err, RP_UNSUPPORTED, "bucket: no gradients belong to a step");

    enum rp_code code = rp_simulate(&x->run.overlay, &r, err);
    if (code == RP_OK)
        add_steps(m, x, &r);
    rp_sim_result_release(&r);
    m->chain = (struct rp_opt_chain){.n = m->n,
                                     .state_size = m->nsteps * sizeof(struct bucket_state),
                                     .user = m,
                                     .begin = bucket_begin,
                                     .add = bucket_add,
                                     .there_ns = bucket_there,
                                     .ready_ns = bucket_ready,
                                     .step_ns = bucket_there};
    return code;
}

void rp_opt_bucket_model_release(struct rp_opt_bucket_model *m)
{
    rp_arena_release(&m->arena);
}

/* ------------------------------------------------------------------ buckets */

void rp_opt_bucket_ends(const struct rp_opt_bucket_model *m, double mb, uint8_t *ends)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < m->n; i++) {
        bytes += m->bytes[i];
        ends[i] = (double)bytes >= mb * RP_SIM_MIB || i + 1 == m->n;
        bytes = ends[i] ? 0 : bytes;
    }
}

void rp_opt_bucket_recorded(const struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                            uint8_t *ends)
{
    const struct rp_collectives *c = &x->run.parts[0]->collectives;
    int64_t bytes = 0;

    for (size_t i = 0; i < m->n; i++) {
        bytes += m->bytes[i];
        ends[i] = i + 1 == m->n;
        for (size_t k = 0; k < c->list.n && !ends[i]; k++)
            ends[i] = c->list.at[k].kind == RP_COLL_ALL_REDUCE && c->list.at[k].in_bytes == bytes;
        bytes = ends[i] ? 0 : bytes;
    }
}
