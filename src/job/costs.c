/* SPDX-License-Identifier: Apache-2.0 */
/* Learns what communication costs (costs.h). Linear in the records; the grid of a cycle is searched
   among 20,000 lengths. */
#include "job/costs.h"

#include "base/order.h"
#include "facts/times/intervals.h"
#include "sim/engine/simulator.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ lines */

struct fit {
    double n, x, y, xx, xy;
};

static void fit_add(struct fit *f, double x, double y)
{
    f->n++;
    f->x += x;
    f->y += y;
    f->xx += x * x;
    f->xy += x * y;
}

/* Neither latency nor slope is negative. *one_size tells that all sizes are the same. */
static struct rp_job_line fit_line(const struct fit *f, bool *one_size)
{
    double spread = f->xx - (f->n > 0 ? f->x * f->x / f->n : 0);
    struct rp_job_line line = {0, 0};

    if (f->n < 1 || f->x <= 0)
        return (struct rp_job_line){f->n > 0 ? f->y / f->n : 0, 0};
    if (spread <= 1e-6 * f->xx) {
        *one_size = true;
        return (struct rp_job_line){0, f->y / f->x};
    }
    line.by_byte = (f->xy - f->x * f->y / f->n) / spread;
    if (line.by_byte < 0)
        line.by_byte = 0;
    line.ns = (f->y - line.by_byte * f->x) / f->n;
    if (line.ns < 0)
        line = (struct rp_job_line){0, f->xy / f->xx};
    return line;
}

/* ------------------------------------------------------------------ sizes */

int64_t rp_job_tensor_bytes(const struct rp_job_costs *costs, int64_t tensor)
{
    uint32_t at = rp_map_get(&costs->bytes_of, (uint64_t)tensor);

    return at == RP_MAP_NONE ? -1 : costs->job->tensors.at[at].bytes;
}

/* Returns the bytes of a recorded group, "5+6"; -1 if one of its tensors is not known. */
static double group_bytes(const struct rp_job_costs *c, const char *name, size_t *n)
{
    double sum = 0;
    char *end;

    for (*n = 0;; name = end + 1) {
        int64_t bytes = rp_job_tensor_bytes(c, strtoll(name, &end, 10));

        if (end == name || bytes < 0)
            return -1;
        sum += (double)bytes;
        ++*n;
        if (*end != '+')
            return sum;
    }
}

/* ------------------------------------------------------------------ phases of a group */

static void learn_rank(struct rp_job_costs *c, const struct rp_job_means *m, size_t rank)
{
    struct rp_job_cost_rank *to = &c->ranks[rank];
    struct fit in = {0}, out = {0}, reduce = {0};
    double n = (double)m->ngroups;
    bool same = false;
    size_t g, members;

    for (g = 0; g < m->ngroups; g++) {
        const struct rp_mean_group *x = &m->ranks[rank].groups[g];
        double bytes = group_bytes(c, m->groups[g], &members);

        to->vote_lag_ns += x->vote_lag_ns / n;
        to->agree_lag_ns += x->agree_lag_ns / n;
        to->queue_lag_ns += x->queue_lag_ns / n;
        to->queue_ns += x->queue_ns / n;
        to->enter_lag_ns += x->enter_lag_ns / n;
        if (x->follow_lag_ns > to->follow_lag_ns || !g)
            to->follow_lag_ns = x->follow_lag_ns;
        if (members > 1) {
            fit_add(&in, bytes, x->in_ns);
            fit_add(&out, bytes, x->out_ns + x->leave_lag_ns);
        }
        fit_add(&reduce, bytes, x->reduce_ns);
    }
    c->copies_unknown = in.n < 1;
    to->in = fit_line(&in, &same);
    to->out = fit_line(&out, &same);
    to->reduce = fit_line(&reduce, c->has_transfers ? &same : &c->one_size);
}

/* ------------------------------------------------------------------ messages */

static void count_messages(struct rp_job_costs *c, const struct rp_job_means *m)
{
    const struct rp_mean_rank *r = &m->ranks[0];
    double most = 0; /* the most that one loop has carried */
    bool several = false;
    size_t g, i, members;

    for (g = 0; g < m->ngroups; g++) {
        double bytes = group_bytes(c, m->groups[g], &members);
        int32_t loops = 0;

        for (i = r->groups[g].first; i < r->groups[g].end; i++) {
            const struct rp_mean_transfer *t = &r->transfers.at[i];

            loops = t->loop + 1 > loops ? t->loop + 1 : loops;
            if (t->channel >= 0 && (size_t)t->channel + 1 > c->nchannels)
                c->nchannels = (size_t)t->channel + 1;
            if (t->slice >= 0 && (size_t)t->slice + 1 > c->nslices)
                c->nslices = (size_t)t->slice + 1;
            if (t->chunk >= 0 && (size_t)t->chunk + 1 > c->nchunks)
                c->nchunks = (size_t)t->chunk + 1;
        }
        if (loops > 0 && bytes / loops > most)
            most = bytes / loops;
        several |= loops > 1;
    }
    c->loop_bytes = several ? most : INFINITY;
}

#define LOOPS_MOST 64
RP_LIMIT(LOOPS_MOST, "loops of a transfer", "a larger one has larger loops");

size_t rp_job_loops(const struct rp_job_costs *costs, double bytes)
{
    double loops = isfinite(costs->loop_bytes) ? ceil(bytes / costs->loop_bytes) : 1;

    return loops < 1 ? 1 : loops > LOOPS_MOST ? LOOPS_MOST : (size_t)loops;
}

double rp_job_message_bytes(const struct rp_job_costs *costs, double bytes)
{
    double n = (double)(costs->nchannels * costs->nslices * costs->nranks);

    return bytes / (n * (double)rp_job_loops(costs, bytes));
}

static int32_t loops_recorded(const struct rp_mean_rank *r, size_t g)
{
    int32_t loops = 1;

    for (size_t i = r->groups[g].first; i < r->groups[g].end; i++)
        loops = r->transfers.at[i].loop + 1 > loops ? r->transfers.at[i].loop + 1 : loops;
    return loops;
}

static enum rp_code learn_messages(struct rp_job_costs *c, const struct rp_job_means *m,
                                   size_t rank, struct rp_err *err)
{
    const struct rp_mean_rank *r = &m->ranks[rank];
    struct rp_job_cost_rank *to = &c->ranks[rank];
    struct fit *fits = calloc(2 * c->nchannels + 1, sizeof *fits);
    size_t i, g, members;

    to->sends = RP_ARENA_NEW(&c->arena, struct rp_job_line, c->nchannels + 1);
    to->receives = RP_ARENA_NEW(&c->arena, struct rp_job_line, c->nchannels + 1);
    if (!fits || !to->sends || !to->receives) {
        free(fits);
        return rp_err_nomem(err, "simulating a job");
    }
    for (g = 0; g < m->ngroups; g++) {
        double bytes = group_bytes(c, m->groups[g], &members) /
                       (double)(c->nchannels * c->nslices * c->nranks) / loops_recorded(r, g);

        for (i = r->groups[g].first; i < r->groups[g].end; i++) {
            const struct rp_mean_transfer *t = &r->transfers.at[i];

            if (t->channel >= 0 && (size_t)t->channel < c->nchannels)
                fit_add(&fits[2 * (size_t)t->channel + t->is_send], bytes, t->dur_ns);
        }
    }
    for (i = 0; i < c->nchannels; i++) {
        to->receives[i] = fit_line(&fits[2 * i], &c->one_size);
        to->sends[i] = fit_line(&fits[2 * i + 1], &c->one_size);
    }
    free(fits);
    return RP_OK;
}

/* ------------------------------------------------------------------ the cycle */

#define CYCLE_MOST_NS 50e6
RP_LIMIT(CYCLE_MOST_NS, "ns",
         "Horovod's cycle is 1 to 5 ms: none is found above it, or below 0.001 of it");
#define CYCLE_STEP 1.0003
RP_LIMIT(CYCLE_STEP, "from cycle to cycle", "for the first guess, which is then refined");
#define CONCENTRATED 0.97
RP_DECISION(CONCENTRATED, "of the votes' resultant, 1: all on one point of the cycle",
            "votes at random moments do not reach it: those of a rank without a cycle are spread",
            "job/votes_on_a_grid_tell_the_cycle");
#define VOTES_LEAST 6
RP_DECISION(VOTES_LEAST, "votes of a rank", "fewer lie on some cycle by chance",
            "job/votes_on_a_grid_tell_the_cycle");

typedef RP_VEC(int64_t) time_vec;

RP_ORDER(by_begin, struct rp_job_span, RP_UP(begin_ns))

/* Lists when a rank voted, except for votes that waited for the previous agreement. */
static enum rp_code collect_votes(const struct rp_job_rank *r, time_vec *out, struct rp_err *err)
{
    struct rp_job_span *list = malloc((r->spans.n + 1) * sizeof *list);
    enum rp_code code = rp_err_need(list, err, "simulating a job");
    int64_t end = INT64_MIN, begin = INT64_MIN;
    size_t i, n = 0;

    out->n = 0;
    for (i = 0; code == RP_OK && i < r->spans.n; i++)
        if (r->spans.at[i].phase == RP_JOB_SYNC)
            list[n++] = r->spans.at[i];
    rp_sort(list, n, sizeof *list, by_begin);
    for (i = 0; code == RP_OK && i < n; i++) {
        if (list[i].begin_ns == begin)
            continue;
        if (end == INT64_MIN || rp_ns_between(end, list[i].begin_ns) > RP_JOB_DIRECTLY_NS)
            code = rp_vec_push(out, list[i].begin_ns, err);
        begin = list[i].begin_ns;
        end = list[i].end_ns;
    }
    free(list);
    return code;
}

/* Computes how closely the votes lie at one point of a cycle, 0 to 1, and at which. */
static double concentration(const time_vec *votes, double cycle_ns, double *phase_ns)
{
    double x = 0, y = 0, tau = 2 * M_PI;

    for (size_t i = 0; i < votes->n; i++) {
        double at = tau * fmod((double)(votes->at[i] - votes->at[0]), cycle_ns) / cycle_ns;

        x += cos(at);
        y += sin(at);
    }
    *phase_ns = (double)votes->at[0] + atan2(y, x) / tau * cycle_ns;
    return sqrt(x * x + y * y) / (double)votes->n;
}

/* Returns the least value of all ranks; 0 as soon as one is below `above`. */
static double concentration_of_all(const struct rp_job_costs *c, const time_vec *votes,
                                   double cycle_ns, double above)
{
    double least = 1, phase;

    for (size_t r = 0; r < c->nranks && least > above; r++)
        least = fmin(least, concentration(&votes[r], cycle_ns, &phase));
    return least > above ? least : 0;
}

/* Finds the longest cycle on which the votes of every rank lie. */
static void find_cycle(struct rp_job_costs *c, const time_vec *votes)
{
    double cycle = CYCLE_MOST_NS, best = 0, width = CYCLE_STEP - 1;

    while (cycle > CYCLE_MOST_NS / 1000) {
        double x = concentration_of_all(c, votes, cycle, CONCENTRATED);

        if (best > 0 && x <= 0)
            break; /* the end of its peak */
        if (x > best) {
            best = x;
            c->cycle_ns = cycle;
        }
        cycle /= CYCLE_STEP;
    }
    for (; best > 0 && width > 1e-9; width /= 2)
        for (size_t r = 0; r < 2; r++) {
            cycle = c->cycle_ns * (r ? 1 + width : 1 - width);
            double x = concentration_of_all(c, votes, cycle, best);
            if (x > best) {
                best = x;
                c->cycle_ns = cycle;
            }
        }
    c->cycle_ns =
        10 * round(c->cycle_ns / 10); /* rounded, so that it is the same on every machine */
    for (size_t r = 0; r < c->nranks && c->cycle_ns > 0; r++) {
        concentration(&votes[r], c->cycle_ns, &c->ranks[r].phase_ns);
        c->ranks[r].phase_ns = 10 * round(c->ranks[r].phase_ns / 10);
    }
}

enum rp_code rp_job_learn_cycle(struct rp_job_costs *c, struct rp_err *err)
{
    time_vec *votes = calloc(c->nranks + 1, sizeof *votes);
    enum rp_code code = rp_err_need(votes, err, "simulating a job");
    bool enough = true;

    for (size_t r = 0; code == RP_OK && r < c->nranks; r++) {
        code = collect_votes(&c->job->ranks[r], &votes[r], err);
        enough &= votes[r].n >= VOTES_LEAST;
    }
    if (code == RP_OK && enough)
        find_cycle(c, votes);
    for (size_t r = 0; votes && r < c->nranks; r++)
        rp_vec_release(&votes[r]);
    free(votes);
    return code;
}

double rp_job_wake_ns(const struct rp_job_costs *costs, size_t rank, double at_ns)
{
    if (!(costs->cycle_ns > 0))
        return costs->ranks[rank].vote_lag_ns;
    double wait = fmod(costs->ranks[rank].phase_ns - at_ns, costs->cycle_ns);
    return wait < 0 ? wait + costs->cycle_ns : wait;
}

/* ------------------------------------------------------------------ a ring alone */

struct ring {
    const struct rp_job_costs *c;
    struct rp_task_graph g;
    size_t loops;
    double bytes; /* of a message */
    struct rp_err *err;
};

/* Numbers messages as the recorded rings begin theirs: by chunk, loop, slice, channel. */
static uint32_t message(const struct ring *x, size_t rank, size_t chunk, size_t loop, size_t slice,
                        size_t channel, bool send)
{
    const struct rp_job_costs *c = x->c;
    size_t at = ((chunk * x->loops + loop) * c->nslices + slice) * c->nchannels + channel;

    return (uint32_t)((at * c->nranks + rank) * 2 + send);
}

static enum rp_code ring_tasks(struct ring *x)
{
    const struct rp_job_costs *c = x->c;
    size_t i, r, k, n = c->nchunks * x->loops * c->nslices * c->nchannels;
    uint32_t id;

    for (r = 0; r < c->nranks && !c->duplex; r++)
        RP_TRY(rp_task_graph_add_device(&x->g, "", RP_DEVICE_SERIAL, &id, x->err));
    for (i = 0; i < n; i++)
        for (r = 0; r < c->nranks; r++)
            for (k = 0; k < 2; k++) {
                const struct rp_job_line *line = k ? &c->ranks[r].sends[i % c->nchannels]
                                                   : &c->ranks[r].receives[i % c->nchannels];
                double ns = rp_job_line_at(line, x->bytes);
                struct rp_task t = {.dur_ns = llround(fmin(ns, 1e9 * 1e6)),
                                    .device = c->duplex ? RP_NO_DEVICE : (uint32_t)r,
                                    .rank = (uint32_t)r,
                                    .step = RP_NO_STEP};

                RP_TRY(rp_task_graph_add(&x->g, t, NULL, x->err));
            }
    return RP_OK;
}

/* A message must be sent before it is received, and received before it is passed on; a side of a
   channel handles one after the other. */
static enum rp_code ring_edges(struct ring *x)
{
    const struct rp_job_costs *c = x->c;

    for (size_t ch = 0; ch < c->nchannels; ch++)
        for (size_t r = 0; r < c->nranks; r++) {
            size_t from = c->sender[r * c->nchannels + ch];
            uint32_t last[2] = {RP_NONE, RP_NONE};

            for (size_t l = 0; l < x->loops; l++)
                for (size_t k = 0; k < c->nchunks; k++)
                    for (size_t s = 0; s < c->nslices; s++) {
                        uint32_t send = message(x, r, k, l, s, ch, true);
                        uint32_t got = message(x, r, k, l, s, ch, false);

                        if (from != SIZE_MAX)
                            RP_TRY(rp_task_graph_link(&x->g, message(x, from, k, l, s, ch, true),
                                                      got, 0, 0, x->err));
                        if (k + 1 < c->nchunks)
                            RP_TRY(rp_task_graph_link(
                                &x->g, got, message(x, r, k + 1, l, s, ch, true), 0, 0, x->err));
                        if (c->duplex && last[1] != RP_NONE)
                            RP_TRY(rp_task_graph_link(&x->g, last[1], send, 0, 0, x->err));
                        if (c->duplex && last[0] != RP_NONE)
                            RP_TRY(rp_task_graph_link(&x->g, last[0], got, 0, 0, x->err));
                        last[1] = send;
                        last[0] = got;
                    }
        }
    return rp_task_graph_freeze(&x->g, x->err);
}

static enum rp_code run_ring(struct ring *x, double *out_ns)
{
    struct rp_overlay o = {0};
    struct rp_sim_result result = {0};
    enum rp_code code = rp_overlay_init(&o, &x->g, x->err);

    if (code == RP_OK)
        code = rp_simulate(&o, &result, x->err);
    for (size_t i = 0; i < x->c->nranks; i++)
        out_ns[i] = 0;
    for (size_t i = 0; code == RP_OK && i < x->g.tasks.n; i++) {
        double *to = &out_ns[x->g.tasks.at[i].rank];

        *to = fmax(*to, (double)result.end_ns.at[i]);
    }
    rp_sim_result_release(&result);
    rp_overlay_release(&o);
    return code;
}

enum rp_code rp_job_ring_ns(const struct rp_job_costs *costs, double bytes, double *out_ns,
                            struct rp_err *err)
{
    struct ring x = {.c = costs,
                     .loops = rp_job_loops(costs, bytes),
                     .bytes = rp_job_message_bytes(costs, bytes),
                     .err = err};

    if (!costs->has_transfers) {
        for (size_t r = 0; r < costs->nranks; r++)
            out_ns[r] = rp_job_line_at(&costs->ranks[r].reduce, bytes);
        return RP_OK;
    }
    rp_task_graph_init(&x.g);
    enum rp_code code = ring_tasks(&x);
    if (code == RP_OK)
        code = ring_edges(&x);
    if (code == RP_OK)
        code = run_ring(&x, out_ns);
    rp_task_graph_release(&x.g);
    return code;
}

/* ------------------------------------------------------------------ all of it */

enum rp_code rp_job_costs_init(struct rp_job_costs *out, const struct rp_job_means *means,
                               struct rp_err *err)
{
    *out = (struct rp_job_costs){.job = means->job, .nranks = means->nranks};
    rp_arena_init(&out->arena);
    if (means->job->has_servers)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "tensor: groups of tensors that travel through BytePS servers cannot be "
                          "searched");
    out->has_transfers = means->job->has_transfers;
    out->duplex = means->ranks[0].duplex;
    out->loop_bytes = INFINITY;
    out->ranks = RP_ARENA_NEW(&out->arena, struct rp_job_cost_rank, out->nranks + 1);
    RP_TRY(rp_err_need(out->ranks, err, "simulating a job"));

    /* Messages are counted by the sizes of the tensors, which all must be known. */
    size_t i, n;
    for (i = 0; i < out->job->tensors.n; i++)
        RP_TRY(rp_map_put(&out->bytes_of, (uint64_t)out->job->tensors.at[i].id, (uint32_t)i, err));
    for (i = 0; i < means->ngroups; i++)
        if (group_bytes(out, means->groups[i], &n) <= 0)
            return rp_err_set(err, RP_UNSUPPORTED,
                              "tensor: the sizes of gradients are not known: metadata.json with "
                              "their shapes is needed");
    if (out->has_transfers)
        count_messages(out, means);
    out->sender = RP_ARENA_NEW(&out->arena, size_t, out->nranks * out->nchannels + 1);
    RP_TRY(rp_err_need(out->sender, err, "simulating a job"));
    for (size_t r = 0; r < out->nranks; r++)
        for (size_t ch = 0; ch < out->nchannels; ch++)
            out->sender[r * out->nchannels + ch] = rp_job_sender(means, r, (int32_t)ch);
    for (size_t r = 0; r < out->nranks; r++) {
        learn_rank(out, means, r);
        if (out->has_transfers)
            RP_TRY(learn_messages(out, means, r, err));
    }
    return rp_job_learn_cycle(out, err);
}

void rp_job_costs_release(struct rp_job_costs *costs)
{
    rp_map_release(&costs->bytes_of);
    rp_arena_release(&costs->arena);
}
