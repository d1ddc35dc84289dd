/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns from the messages of all parts. The time that a message takes its receiver begins at the
 * later of its own begin and the end of the previous message there; the time that it takes its
 * sender is at most its whole time, and at most that until the sender's next message. Both are
 * upper bounds: the smallest over all steps and workers is used, or for a single step its own value
 * if it is close. A lag counts only if the sender had nothing else to send at that time. O(records
 * log records), and quadratic in the parts of a worker.
 */
#include "job/exchanges.h"
#include "base/each.h"
#include "base/order.h"
#include "facts/times/intervals.h"
#include "job/job.h"

#include <math.h>
#include <stdlib.h>

#define NEAR 1.25
RP_DECISION(NEAR, "times the smallest bound", "a message that took longer had waited for another",
            "job/a_message_that_took_longer_had_waited");

/* ------------------------------------------------------------------ learning */

/* Bounds from above the time that a message took its sender and its receiver. */
static void bound_message(const struct rp_exchange_ctx *f, size_t part, size_t worker, int kind,
                          double *out_ns, double *in_ns)
{
    const struct rp_step_message *leg = &rp_exchange_at(f, part, worker)->message[kind];
    const struct rp_mean_part *p = &f->out->parts[part];
    size_t from = rp_exchange_clock(f, worker, p, kind, false),
           to = rp_exchange_clock(f, worker, p, kind, true);
    size_t i = rp_times_until(f->receives[to].at, f->receives[to].n, leg->got_ns - 1);
    size_t k = rp_times_until(f->sends[from].at, f->sends[from].n, leg->sent_ns);
    double begin = (double)leg->sent_ns + f->wire[from * f->nclocks + to];

    *out_ns = (double)leg->got_ns - begin;
    if (k < f->sends[from].n && (double)rp_ns_between(leg->sent_ns, f->sends[from].at[k]) < *out_ns)
        *out_ns = (double)rp_ns_between(leg->sent_ns, f->sends[from].at[k]);
    if (i && (double)f->receives[to].at[i - 1] > begin)
        begin = (double)f->receives[to].at[i - 1];
    *in_ns = (double)leg->got_ns - begin;
    *out_ns = *out_ns > 0 ? *out_ns : 0;
    *in_ns = *in_ns > 0 ? *in_ns : 0;
}

void rp_message_side_take(struct rp_message_side *x, double ns, int pass)
{
    if (pass == RP_PASS_LEAST)
        x->ns = x->ns < 0 || ns < x->ns ? ns : x->ns;
    else if (pass == RP_PASS_USUAL && ns <= NEAR * x->ns)
        rp_mean_count(&x->near, ns);
    else if (pass == RP_PASS_NOW)
        x->now_ns = ns;
}

double rp_message_side_ns(const struct rp_message_side *x)
{
    if (x->now_ns >= 0 && x->now_ns <= NEAR * x->ns)
        return x->now_ns;
    return x->near.n > 0 ? rp_mean_of(&x->near) : x->ns > 0 ? x->ns : 0;
}

static struct rp_message_side *side_of(const struct rp_exchange_ctx *f, size_t part, size_t worker,
                                       int kind, bool receiver)
{
    struct rp_exchange_sums *s = &f->sums[part * f->out->nworkers + worker];

    return receiver ? &s->in[kind] : &s->out[kind];
}

RP_ORDER(by_value, double, RP_COMPARE(*a, *b))

/* Returns the least value of a part over all workers; -1 if there is none. */
static double least_of_all(const struct rp_exchange_ctx *f, size_t part, int kind, bool receiver)
{
    double least = -1;

    for (size_t w = 0; w < f->out->nworkers; w++) {
        double ns = side_of(f, part, w, kind, receiver)->ns;

        least = ns >= 0 && (least < 0 || ns < least) ? ns : least;
    }
    return least;
}

/* A part has the same size for every worker: if it always took one of them longer than the others,
   by more than is usual for that worker, it must always have waited. */
static void compare_workers(const struct rp_exchange_ctx *f, int kind, bool receiver,
                            double *ratios)
{
    size_t p, w, n;

    for (w = 0; w < f->out->nworkers; w++) {
        for (p = n = 0; p < f->out->nparts; p++) {
            double own = side_of(f, p, w, kind, receiver)->ns;
            double least = least_of_all(f, p, kind, receiver);

            if (own >= 0 && least > 0)
                ratios[n++] = own / least;
        }
        if (!n)
            continue;
        qsort(ratios, n, sizeof *ratios, by_value);
        double usual = ratios[n / 2];
        for (p = 0; p < f->out->nparts; p++) {
            struct rp_message_side *x = side_of(f, p, w, kind, receiver);
            double most = usual * least_of_all(f, p, kind, receiver);

            x->ns = x->ns > most ? most : x->ns;
        }
    }
}

/* A lag counts if the sender sent nothing between the event for which the message waited and the
   message itself, nor just before. */
static void learn_lag(struct rp_exchange_ctx *f, size_t clock, int kind, int64_t cause_ns,
                      int64_t sent_ns, double busy_ns)
{
    struct rp_sender_lags *l = &f->lags[clock];
    size_t k = rp_times_until(f->sends[clock].at, f->sends[clock].n, sent_ns - 1);
    double lag = (double)rp_ns_between(cause_ns, sent_ns);

    if (cause_ns == INT64_MIN)
        return;
    lag = lag > 0 ? lag : 0;
    if (l->least[kind] < 0 || lag < l->least[kind])
        l->least[kind] = lag;
    if (!k || (double)rp_ns_between(f->sends[clock].at[k - 1], cause_ns) > busy_ns)
        rp_mean_count(&l->message[kind], lag);
}

/* Returns the longest time that a node takes to send a message: earlier ones are over. */
static double longest_send(const struct rp_exchange_ctx *f)
{
    double most = 0;

    for (size_t i = 0; i < f->out->nparts * f->out->nworkers; i++)
        for (size_t k = 0; k < RP_JOB_MESSAGES; k++)
            most = rp_message_side_ns(&f->sums[i].out[k]) > most
                       ? rp_message_side_ns(&f->sums[i].out[k])
                       : most;
    return most;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void learn_sum(struct rp_exchange_ctx *f, size_t part, size_t worker, int64_t *last_ns)
{
    const struct rp_step_exchange *v = rp_exchange_at(f, part, worker);
    struct rp_mean_part *p = &f->out->parts[part];
    struct rp_sender_lags *l = &f->lags[f->m->nranks + p->server];
    int64_t got = v->message[RP_JOB_PUSH].got_ns, idle;

    *last_ns = later(*last_ns, v->sum ? v->sum->end_ns : got);
    if (!v->sum)
        return;
    p->thread = v->sum->thread;
    if (!v->sum->doubtful) {
        rp_mean_count(&f->sums[part * f->out->nworkers + worker].sum,
                      (double)rp_ns_between(v->sum->begin_ns, v->sum->end_ns));
        rp_mean_count(&f->any_sum[part], (double)rp_ns_between(v->sum->begin_ns, v->sum->end_ns));
    }
    idle = rp_thread_free_ns(f, v->sum);
    if (idle == INT64_MIN || idle < got)
        rp_mean_count(&l->sum, (double)rp_ns_between(got, v->sum->begin_ns));
}

/* last_ns is when the last sum ended, and then when the last copy did. */
static void learn_merge(struct rp_exchange_ctx *f, size_t part, int64_t *last_ns)
{
    struct rp_mean_part *p = &f->out->parts[part];
    const struct rp_server_work *x =
        *last_ns == INT64_MIN
            ? NULL
            : rp_server_work_from(f, rp_server_work_key(p->key, true), *last_ns - RP_EARLY_NS);

    if (!x || x->begin_ns > f->until_ns)
        return;
    if (!x->doubtful)
        rp_mean_count(&f->merge[part], (double)rp_ns_between(x->begin_ns, x->end_ns));
    if (rp_thread_free_ns(f, x) <= *last_ns)
        rp_mean_count(&f->lags[f->m->nranks + p->server].merge,
                      (double)rp_ns_between(*last_ns, x->begin_ns));
    *last_ns = x->end_ns;
}

static void learn_part(struct rp_exchange_ctx *f, size_t part, double busy_ns, int pass)
{
    bool lags = pass == RP_PASS_LAGS;
    const struct rp_mean_part *p = &f->out->parts[part];
    int64_t merged = INT64_MIN;

    for (size_t w = 0; w < f->out->nworkers && lags; w++)
        learn_sum(f, part, w, &merged);
    if (lags)
        learn_merge(f, part, &merged);
    for (size_t w = 0; w < f->out->nworkers; w++) {
        const struct rp_step_exchange *v = rp_exchange_at(f, part, w);
        int64_t cause[RP_JOB_MESSAGES] = {v->ready_ns, v->message[RP_JOB_PUSH].got_ns,
                                          v->message[RP_JOB_PUSH_DONE].got_ns,
                                          later(v->message[RP_JOB_PULL].got_ns, merged)};

        for (int k = 0; k < RP_JOB_MESSAGES; k++) {
            if (v->message[k].sent_ns == INT64_MIN || v->message[k].got_ns == INT64_MIN)
                break;
            if (lags)
                learn_lag(f, rp_exchange_clock(f, w, p, k, false), k, cause[k],
                          v->message[k].sent_ns, busy_ns);
            else {
                struct rp_exchange_sums *s = &f->sums[part * f->out->nworkers + w];
                double out, in;
                bound_message(f, part, w, k, &out, &in);
                rp_message_side_take(&s->out[k], out, pass);
                rp_message_side_take(&s->in[k], in, pass);
            }
        }
    }
}

static void learn_steps(struct rp_exchange_ctx *f, size_t first, size_t end, int pass)
{
    double busy = pass == RP_PASS_LAGS ? longest_send(f) : 0;

    for (size_t s = first; s < end; s++) {
        for (size_t p = 0; p < f->out->nparts; p++) {
            for (size_t w = 0; w < f->out->nworkers; w++)
                rp_exchange_find(f, p, w, s);
            rp_exchange_match_sums(f, p);
            learn_part(f, p, busy, pass);
        }
        for (size_t w = 0; w < f->out->nworkers && pass == RP_PASS_LAGS; w++) {
            /* Counts for each of the two orders the choices between two ready parts that contradict
             * it. */
            size_t a, b, n = f->out->nparts;
            for (a = 0; a < n; a++)
                for (b = 0; b < n; b++) {
                    const struct rp_step_exchange *x = rp_exchange_at(f, a, w),
                                                  *y = rp_exchange_at(f, b, w);
                    if (x->message[0].sent_ns == INT64_MIN || y->ready_ns == INT64_MIN ||
                        x->ready_ns == INT64_MIN ||
                        y->message[0].sent_ns <= x->message[0].sent_ns ||
                        y->ready_ns + RP_EARLY_NS > x->message[0].sent_ns)
                        continue;
                    f->against_order[0] += y->ready_ns < x->ready_ns;
                    f->against_order[1] += f->out->parts[b].tensor < f->out->parts[a].tensor;
                }
        }
    }
}

/* Finds the least time that any message took between two nodes in either direction, which is the
   time of the wire. */
static void find_wires(struct rp_exchange_ctx *f, size_t first, size_t end)
{
    for (size_t s = 0; s < f->nclocks * f->nclocks; s++)
        f->wire[s] = -1;
    for (size_t s = first; s < end; s++)
        for (size_t p = 0; p < f->out->nparts; p++)
            for (size_t w = 0; w < f->out->nworkers; w++) {
                const struct rp_mean_part *x = &f->out->parts[p];

                rp_exchange_find(f, p, w, s);
                for (size_t k = 0; k < RP_JOB_MESSAGES; k++) {
                    const struct rp_step_message *leg = &rp_exchange_at(f, p, w)->message[k];
                    double *wire = &f->wire[rp_exchange_clock(f, w, x, (int)k, false) * f->nclocks +
                                            rp_exchange_clock(f, w, x, (int)k, true)];
                    double took = (double)rp_ns_between(leg->sent_ns, leg->got_ns);

                    if (leg->got_ns != INT64_MIN && (*wire < 0 || took < *wire))
                        *wire = took > 0 ? took : 0;
                }
            }
    for (size_t p = 0; p < f->nclocks; p++)
        for (size_t w = 0; w < p; w++) {
            double *there = &f->wire[p * f->nclocks + w], *back = &f->wire[w * f->nclocks + p];
            double least = *there < *back ? *there : *back;

            /* it takes its receiver at least the smallest time that can be written down */
            least -= fmin(least, RP_JOB_ROUNDING_NS);
            *there = *back = least > 0 ? least : 0;
        }
}

/* ------------------------------------------------------------------ what was learned */

static double lag_of(const struct rp_sender_lags *l, int kind)
{
    return l->message[kind].n > 0 ? rp_mean_of(&l->message[kind])
           : l->least[kind] > 0   ? l->least[kind]
                                  : 0;
}

static void fill_exchange(struct rp_exchange_ctx *f, size_t part, size_t worker)
{
    struct rp_mean_part *p = &f->out->parts[part];
    struct rp_mean_exchange *v = &p->exchanges[worker];
    const struct rp_exchange_sums *s = &f->sums[part * f->out->nworkers + worker];

    v->sum_ns = rp_mean_of(s->sum.n > 0 ? &s->sum : &f->any_sum[part]);
    v->sum_lag_ns = rp_mean_of(&f->lags[f->m->nranks + p->server].sum);
    for (int k = 0; k < RP_JOB_MESSAGES; k++) {
        size_t from = rp_exchange_clock(f, worker, p, k, false),
               to = rp_exchange_clock(f, worker, p, k, true);

        v->message[k] = (struct rp_mean_message){
            rp_message_side_ns(&s->out[k]), rp_message_side_ns(&s->in[k]),
            f->wire[from * f->nclocks + to], lag_of(&f->lags[from], k), s->in[k].ns >= 0};
    }
}

static enum rp_code fill_parts(struct rp_exchange_ctx *f)
{
    for (size_t p = 0; p < f->out->nparts; p++) {
        struct rp_mean_part *part = &f->out->parts[p];

        part->merge_ns = rp_mean_of(&f->merge[p]);
        part->merge_lag_ns = rp_mean_of(&f->lags[f->m->nranks + part->server].merge);
        for (size_t w = 0; w < f->out->nworkers; w++)
            fill_exchange(f, p, w);
    }
    f->out->by_tensor = f->against_order[1] < f->against_order[0];
    return RP_OK;
}

/* ------------------------------------------------------------------ parts and workers */

/* Makes a part for each key; tensors that travel together have the same keys. */
static enum rp_code list_parts(struct rp_exchange_ctx *f)
{
    const struct rp_job *job = f->m->job;
    struct rp_job_exchanges *out = f->out;
    RP_SCOPED(rp_map_release) struct rp_map seen = {0};

    out->parts = RP_ARENA_NEW(&out->arena, struct rp_mean_part, job->keys.n + 1);
    RP_TRY(rp_err_need(out->parts, f->err, "simulating a job"));
    for (size_t i = 0; i < job->keys.n; i++) {
        struct rp_mean_part p = {.key = job->keys.at[i].key, .tensor = job->keys.at[i].tensor};

        if (rp_map_get(&seen, (uint64_t)p.key) != RP_MAP_NONE)
            continue;
        RP_TRY(rp_map_put(&seen, (uint64_t)p.key, 1, f->err));
        p.server = rp_map_get(&f->server_of, (uint64_t)p.key);
        p.thread = UINT32_MAX;
        p.exchanges = RP_ARENA_NEW(&out->arena, struct rp_mean_exchange, out->nworkers + 1);
        RP_TRY(rp_err_need(p.exchanges, f->err, "simulating a job"));
        if (p.server < out->nservers)
            out->parts[out->nparts++] = p;
    }
    return RP_OK;
}

static enum rp_code learn_exchanges(struct rp_exchange_ctx *f, size_t first, size_t end)
{
    /* Ranks of one host are a worker. */
    const struct rp_job *job = f->m->job;
    f->out->worker_of = RP_ARENA_NEW(&f->out->arena, uint32_t, job->nranks + 1);
    RP_TRY(rp_err_need(f->out->worker_of, f->err, "simulating a job"));
    for (size_t r = 0; r < job->nranks; r++) {
        if (r && strcmp(job->ranks[r].host, job->ranks[r - 1].host) != 0)
            f->out->nworkers++;
        f->out->worker_of[r] = (uint32_t)f->out->nworkers;
    }
    f->out->nworkers++;
    f->out->nservers = rp_job_servers(job);
    f->nclocks = job->nranks + f->out->nservers;
    RP_TRY(f->out->nservers ? RP_OK
                            : rp_err_set(f->err, RP_FORMAT, "no log of a BytePS server was found"));
    f->sends = calloc(f->nclocks + 1, sizeof *f->sends);
    f->receives = calloc(f->nclocks + 1, sizeof *f->receives);
    RP_TRY(rp_err_need(f->sends && f->receives, f->err, "simulating a job"));
    RP_TRY(rp_exchange_index_records(f));
    RP_TRY(list_parts(f));

    /* Tables for every part and worker, and for every pair of clocks. */
    size_t n = f->out->nparts * f->out->nworkers + 1, i, k;
    f->exchanges = calloc(n, sizeof *f->exchanges);
    f->sums = calloc(n, sizeof *f->sums);
    f->merge = calloc(f->out->nparts + 1, sizeof *f->merge);
    f->any_sum = calloc(f->out->nparts + 1, sizeof *f->any_sum);
    f->lags = calloc(f->nclocks + 1, sizeof *f->lags);
    f->wire = calloc(f->nclocks * f->nclocks + 1, sizeof *f->wire);
    RP_TRY(rp_err_need(f->exchanges && f->sums && f->merge && f->any_sum && f->lags && f->wire,
                       f->err, "simulating a job"));
    for (i = 0; i < f->nclocks; i++)
        for (k = 0; k < RP_JOB_MESSAGES; k++)
            f->lags[i].least[k] = -1;
    for (i = 0; i < n; i++)
        for (k = 0; k < RP_JOB_MESSAGES; k++)
            f->sums[i].out[k] = f->sums[i].in[k] = (struct rp_message_side){-1, -1, {0, 0}};
    find_wires(f, 0, f->m->nsteps);
    learn_steps(f, 0, f->m->nsteps, RP_PASS_LEAST);

    /* Workers are compared by the messages of each kind. */
    double *ratios = malloc((f->out->nparts + 1) * sizeof *ratios);
    RP_TRY(rp_err_need(ratios, f->err, "simulating a job"));
    for (int kind = 0; kind < RP_JOB_MESSAGES; kind++) {
        compare_workers(f, kind, false, ratios);
        compare_workers(f, kind, true, ratios);
    }
    free(ratios);
    learn_steps(f, 0, f->m->nsteps, RP_PASS_USUAL);
    if (end == first + 1)
        learn_steps(f, first, end, RP_PASS_NOW);
    learn_steps(f, first, end, RP_PASS_LAGS);
    return fill_parts(f);
}

enum rp_code rp_job_exchanges_init(struct rp_job_exchanges *out, const struct rp_job_means *m,
                                   size_t first, size_t end, struct rp_err *err)
{
    struct rp_exchange_ctx f = {.m = m, .out = out, .err = err};

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    enum rp_code code = learn_exchanges(&f, first, end);
    for (size_t c = 0; f.sends && f.receives && c < f.nclocks; c++) {
        RP_EACH(rp_vec_release, &f.sends[c], &f.receives[c]);
    }
    RP_EACH(free, f.sends, f.receives);
    rp_map_release(&f.server_of);
    RP_EACH(rp_vec_release, &f.sent, &f.got, &f.works, &f.by_thread);
    RP_EACH(free, f.exchanges, f.sums, f.merge, f.any_sum, f.lags, f.wire);
    return code;
}

void rp_job_exchanges_release(struct rp_job_exchanges *l)
{
    rp_arena_release(&l->arena);
}
