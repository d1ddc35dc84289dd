/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the time of a step of a job with other groups of tensors, group by group, without
 * simulating the messages: the time of a ring comes from a table over its size, for which the
 * messages were simulated once (job/costs.h). The begin of the step is taken at several points of
 * the cycle in which ranks wake. O(ranks * points) a group.
 */
#include "opt/job_model.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define RING_SIZES 32
RP_LIMIT(RING_SIZES, "sizes",
         "whose rings are simulated; a plan that is chosen is simulated itself");
#define LOOPS_LISTED 8
RP_LIMIT(LOOPS_LISTED, "loops", "before and behind which a ring is simulated, too");

struct rp_opt_job_rank {
    double *ready_ns;  /* by tensor in order */
    double *update_ns; /* by tensor in order: updates of those before it */
    double last_ns;    /* when the last operator that is not an update ends, and the gap after it */
    double final_ns;   /* updates that need all tensors */
};

/* Returns the state of a point of the cycle: when the last group was agreed; then by rank when its
   lane is free, and when its updates are done. */
static double *state_of(const struct rp_opt_job_model *m, void *state, size_t phase)
{
    return (double *)state + phase * (1 + 2 * m->nranks);
}

/* ------------------------------------------------------------------ rings */

RP_ORDER(by_size, double, RP_COMPARE(*a, *b))

/* Covers sizes between the smallest tensor and all of them, and both sides of each size at which
   another loop begins. */
static enum rp_code make_table(struct rp_opt_job_model *m, struct rp_err *err)
{
    double sizes[RING_SIZES + 2 * LOOPS_LISTED], least = INFINITY, all = m->sum[m->n];
    size_t i, n = 0;

    for (i = 0; i < m->n; i++)
        least = fmin(least, m->sum[i + 1] - m->sum[i]);
    least = fmax(least, 1);
    for (i = 0; i < RING_SIZES; i++)
        sizes[n++] = least * pow(all / least, (double)i / (RING_SIZES - 1));
    for (i = 1; i <= LOOPS_LISTED && isfinite(m->costs.loop_bytes); i++)
        if ((double)i * m->costs.loop_bytes < all) {
            sizes[n++] = (double)i * m->costs.loop_bytes;
            sizes[n++] = (double)i * m->costs.loop_bytes + 1;
        }
    qsort(sizes, n, sizeof sizes[0], by_size);
    m->sizes = RP_ARENA_NEW(&m->arena, double, n);
    m->ring_ns = RP_ARENA_NEW(&m->arena, double, n * m->nranks);
    RP_TRY(rp_arena_check(&m->arena, "searching", err));
    for (i = 0; i < n; i++)
        if (!i || sizes[i] > sizes[i - 1]) {
            double bytes = sizes[i];
            double *to = m->ring_ns + m->nsizes * m->nranks;

            m->sizes[m->nsizes++] = bytes;
            RP_TRY(rp_job_ring_ns(&m->costs, bytes, to, err));
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ the chain */

static void job_begin(const void *user, void *state)
{
    const struct rp_opt_job_model *m = user;

    for (size_t p = 0; p < m->nphases; p++) {
        double *x = state_of(m, state, p);

        x[0] = -INFINITY;
        for (size_t r = 0; r < m->nranks; r++) {
            x[1 + r] = 0;
            x[1 + m->nranks + r] = m->ranks[r].last_ns;
        }
    }
}

static void add_at(const struct rp_opt_job_model *m, double *x, double voted, size_t first,
                   size_t end, const double *row, double part)
{
    double bytes = m->sum[end] - m->sum[first], enter = 0, *update = x + 1 + m->nranks;
    const double *low = row - (row > m->ring_ns ? m->nranks : 0);
    bool copies = end - first > 1;

    x[0] = voted = fmax(voted, x[0] + m->follow_ns);
    for (size_t r = 0; r < m->nranks; r++) {
        const struct rp_job_cost_rank *k = &m->costs.ranks[r];
        double at = x[1 + r] > voted ? x[1 + r] : voted;

        at += k->queue_lag_ns + k->queue_ns + k->enter_lag_ns;
        if (copies)
            at += rp_job_line_at(&k->in, bytes);
        enter = at > enter ? at : enter;
    }
    for (size_t r = 0; r < m->nranks; r++) {
        const struct rp_opt_job_rank *rank = &m->ranks[r];
        double done = enter + low[r] + (row[r] - low[r]) * part;

        if (copies)
            done += rp_job_line_at(&m->costs.ranks[r].out, bytes);
        x[1 + r] = done;
        update[r] =
            (update[r] > done ? update[r] : done) + rank->update_ns[end] - rank->update_ns[first];
    }
}

static void job_add(const void *user, void *state, size_t first, size_t end)
{
    const struct rp_opt_job_model *m = user;
    double bytes = m->sum[end] - m->sum[first], part;
    size_t p, above;

    RP_LOWER_BOUND(above, m->nsizes, m->sizes[above] < bytes);
    above = above < m->nsizes ? above : m->nsizes - 1;
    part = above ? (bytes - m->sizes[above - 1]) / (m->sizes[above] - m->sizes[above - 1]) : 1;
    for (p = 0; p < m->nphases; p++)
        add_at(m, state_of(m, state, p), m->agreed_ns[(end - 1) * m->nphases + p], first, end,
               m->ring_ns + above * m->nranks, part);
}

static double mean_of_last(const struct rp_opt_job_model *m, const void *state, bool updates)
{
    double sum = 0;

    for (size_t p = 0; p < m->nphases; p++) {
        const double *x = (const double *)state + p * (1 + 2 * m->nranks) + 1;
        double last = 0;

        for (size_t r = 0; r < m->nranks; r++)
            last = fmax(last, updates ? x[m->nranks + r] + m->ranks[r].final_ns : x[r]);
        sum += last;
    }
    return sum / (double)m->nphases;
}

static double job_there(const void *user, const void *state)
{
    return mean_of_last(user, state, false);
}

static double job_step(const void *user, const void *state)
{
    return mean_of_last(user, state, true);
}

static double job_ready(const void *user, size_t tensor)
{
    const struct rp_opt_job_model *m = user;

    return m->latest_ns[tensor];
}

/* ------------------------------------------------------------------ making it */

struct order {
    uint32_t tensor;
    double ready_ns;
    int64_t id;
};

/* Orders by readiness on the slowest rank; of equals the larger id comes first, as gradients come
   from the back. */
RP_ORDER(by_ready, struct order, RP_UP(ready_ns), RP_DOWN(id))

static enum rp_code order_tensors(struct rp_opt_job_model *m, const double *ready,
                                  struct rp_err *err)
{
    size_t i, r, n = m->job->tensors.n;
    struct order *list = calloc(n + 1, sizeof *list);

    RP_TRY(rp_err_need(list, err, "searching"));
    m->tensors = RP_ARENA_NEW(&m->arena, uint32_t, n + 1);
    m->sum = RP_ARENA_NEW(&m->arena, double, n + 1);
    m->latest_ns = RP_ARENA_NEW(&m->arena, double, n + 1);
    for (i = 0; i < n; i++) {
        list[i] = (struct order){(uint32_t)i, 0, m->job->tensors.at[i].id};
        for (r = 0; r < m->nranks; r++)
            list[i].ready_ns = fmax(list[i].ready_ns, ready[r * n + i]);
    }
    qsort(list, n, sizeof *list, by_ready);
    for (i = 0; m->tensors && m->sum && m->latest_ns && i < n; i++) {
        if (rp_map_get(&m->means.group_of, (uint64_t)list[i].id) == RP_MAP_NONE)
            continue; /* it was not sent in the recording */
        m->tensors[m->n] = list[i].tensor;
        m->latest_ns[m->n] = list[i].ready_ns;
        m->sum[m->n + 1] = m->sum[m->n] + (double)m->job->tensors.at[list[i].tensor].bytes;
        m->n++;
    }
    free(list);
    return rp_arena_check(&m->arena, "searching", err);
}

/* Finds which updates need which tensor. */
static enum rp_code find_updates(struct rp_opt_job_model *m, size_t rank, const uint32_t *place,
                                 struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    const struct rp_mean_rank *mean = &m->means.ranks[rank];
    struct rp_opt_job_rank *to = &m->ranks[rank];
    struct rp_map tensor_of = {0}; /* op -> tensor */
    double at = mean->begin_ns, gaps = 0, ngaps = 0, sum = 0;
    enum rp_code code = RP_OK;
    bool first = true;

    for (size_t i = 0; code == RP_OK && i < r->edges.n; i++) {
        const struct rp_job_edge *e = &r->edges.at[i];
        uint32_t t = e->from_tensor < 0 ? RP_MAP_NONE
                                        : rp_map_get(&m->costs.bytes_of, (uint64_t)e->from_tensor);

        if (t != RP_MAP_NONE && place[t] != RP_NONE)
            code = rp_map_put(&tensor_of, rp_means_name_key(e->to), place[t], err);
    }
    for (size_t i = 0; i < mean->ops.n; i++) {
        const struct rp_mean_op *op = &mean->ops.at[i];

        if (!op->is_update) {
            at += (first ? 0 : op->gap_ns) + op->dur_ns;
            gaps += first ? 0 : op->gap_ns;
            ngaps += !first;
            first = false;
            continue;
        }
        uint32_t t = rp_map_get(&tensor_of, rp_means_name_key(op->name));
        *(t == RP_MAP_NONE ? &to->final_ns : &to->update_ns[t]) += op->dur_ns;
    }
    for (size_t i = 0; i < m->n; i++) {
        double own = to->update_ns[i];

        to->update_ns[i] = sum;
        sum += own;
    }
    to->update_ns[m->n] = sum;
    to->last_ns = at + (ngaps > 0 ? gaps / ngaps : 0);
    rp_map_release(&tensor_of);
    return code;
}

static enum rp_code make_rank(struct rp_opt_job_model *m, size_t rank, const double *ready,
                              const uint32_t *place, struct rp_err *err)
{
    struct rp_opt_job_rank *r = &m->ranks[rank];

    r->ready_ns = RP_ARENA_NEW(&m->arena, double, m->n + 1);
    r->update_ns = RP_ARENA_NEW(&m->arena, double, m->n + 1);
    RP_TRY(rp_arena_check(&m->arena, "searching", err));
    for (size_t i = 0; i < m->n; i++)
        r->ready_ns[i] = ready[rank * m->job->tensors.n + m->tensors[i]];
    m->agree_ns += m->costs.ranks[rank].agree_lag_ns / (double)m->nranks;
    m->follow_ns = fmax(m->follow_ns, m->costs.ranks[rank].follow_lag_ns);
    return find_updates(m, rank, place, err);
}

/* Computes when a group that ends with a tensor is agreed on, by point of the cycle. Groups are
   sent in order, so a gradient that is ready later than its successors delays them, too. */
static enum rp_code make_agreements(struct rp_opt_job_model *m, struct rp_err *err)
{
    m->agreed_ns = RP_ARENA_NEW(&m->arena, double, m->n * m->nphases + 1);
    RP_TRY(rp_arena_check(&m->arena, "searching", err));
    for (size_t p = 0; p < m->nphases; p++) {
        double offset = (double)p * m->costs.cycle_ns / (double)m->nphases, last = 0;

        for (size_t i = 0; i < m->n; i++) {
            for (size_t r = 0; r < m->nranks; r++) {
                double ready = m->ranks[r].ready_ns[i];

                last = fmax(last, ready + rp_job_wake_ns(&m->costs, r, ready + offset));
            }
            m->agreed_ns[i * m->nphases + p] = last + m->agree_ns;
        }
    }
    return RP_OK;
}

static enum rp_code make_ranks(struct rp_opt_job_model *m, struct rp_err *err)
{
    size_t r, i, n = m->job->tensors.n;
    RP_FREED double *ready = calloc(m->nranks * n + 1, sizeof *ready);
    RP_FREED uint32_t *place = malloc((n + 1) * sizeof *place);

    RP_TRY(rp_err_need(ready && place, err, "searching"));
    for (r = 0; r < m->nranks; r++)
        rp_job_ready(&m->means, &m->costs, r, ready + r * n);
    RP_TRY(order_tensors(m, ready, err));
    for (i = 0; i < n; i++)
        place[i] = RP_NONE;
    for (i = 0; i < m->n; i++)
        place[m->tensors[i]] = (uint32_t)i;
    for (r = 0; r < m->nranks; r++)
        RP_TRY(make_rank(m, r, ready, place, err));
    return make_agreements(m, err);
}

enum rp_code rp_opt_job_model_init(struct rp_opt_job_model *m, const struct rp_job *job,
                                   const struct rp_job_plan *fused, struct rp_err *err)
{
    *m = (struct rp_opt_job_model){.job = job, .nranks = job->nranks, .follow_ns = -INFINITY};
    rp_arena_init(&m->arena);
    RP_TRY(rp_job_means_init(&m->means, job, err));
    RP_TRY(rp_job_means_take(&m->means, 0, m->means.nsteps, err));
    RP_TRY(rp_job_costs_init(&m->costs, &m->means, err));
    if (fused)
        RP_TRY(rp_job_fuse_ops(&m->means, fused, err));
    m->ranks = RP_ARENA_NEW(&m->arena, struct rp_opt_job_rank, m->nranks + 1);
    m->nphases = m->costs.cycle_ns > 0 ? RP_JOB_PHASES : 1;
    RP_TRY(rp_arena_check(&m->arena, "searching", err));
    RP_TRY(make_ranks(m, err));
    if (!m->n)
        return rp_err_set(err, RP_UNSUPPORTED, "tensor: no gradients are sent");
    RP_TRY(make_table(m, err));
    m->chain =
        (struct rp_opt_chain){.whole = true,
                              .n = m->n,
                              .state_size = m->nphases * (1 + 2 * m->nranks) * sizeof(double),
                              .user = m,
                              .begin = job_begin,
                              .add = job_add,
                              .there_ns = job_there,
                              .ready_ns = job_ready,
                              .step_ns = job_step};
    return RP_OK;
}

void rp_opt_job_model_release(struct rp_opt_job_model *m)
{
    rp_job_costs_release(&m->costs);
    rp_job_means_release(&m->means);
    rp_arena_release(&m->arena);
}

void rp_opt_job_recorded(const struct rp_opt_job_model *m, uint8_t *ends)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct rp_job_tensor *a = &m->job->tensors.at[m->tensors[i]];
        const struct rp_job_tensor *b =
            i + 1 < m->n ? &m->job->tensors.at[m->tensors[i + 1]] : NULL;

        ends[i] = !b || rp_map_get(&m->means.group_of, (uint64_t)a->id) !=
                            rp_map_get(&m->means.group_of, (uint64_t)b->id);
    }
}
