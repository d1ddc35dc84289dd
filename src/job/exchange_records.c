/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the messages of a part in a step from the push that its worker began in it: each next
 * record is the first of its kind that is not earlier. Records are sorted once and found by
 * bisection.
 */
#include "base/order.h"
#include "facts/times/intervals.h"
#include "job/exchanges.h"
#include "job/job.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ sorted records */

RP_ORDER(by_key_time, struct rp_message_end, RP_UP(key), RP_UP(ns))

RP_ORDER(by_time, int64_t, RP_COMPARE(*a, *b))

RP_ORDER(by_key_begin, struct rp_server_work, RP_UP(key), RP_UP(begin_ns))

RP_ORDER(by_thread_begin, struct rp_server_work, RP_UP(thread), RP_UP(begin_ns))

uint64_t rp_server_work_key(int64_t key, bool merged)
{
    return rp_hash_join((uint64_t)key, merged);
}

static enum rp_code take_halves(struct rp_exchange_ctx *f, const struct rp_job_node *node,
                                size_t clock)
{
    for (size_t i = 0; i < node->halves.n; i++) {
        const struct rp_job_half *h = &node->halves.at[i];
        struct rp_message_end x = {rp_job_message_key(h), h->ns};

        if (h->kind == RP_JOB_PUSH && rp_job_is_server(h->receiver))
            RP_TRY(rp_map_put(&f->server_of, (uint64_t)h->key, (uint32_t)rp_job_party(h->receiver),
                              f->err));
        if (h->sent) {
            RP_TRY(rp_vec_push(&f->sent, x, f->err));
            RP_TRY(rp_vec_push(&f->sends[clock], h->ns, f->err));
        } else {
            RP_TRY(rp_vec_push(&f->got, x, f->err));
            RP_TRY(rp_vec_push(&f->receives[clock], h->ns, f->err));
        }
    }
    return RP_OK;
}

static enum rp_code take_works(struct rp_exchange_ctx *f, const struct rp_job_node *node,
                               struct rp_map *threads)
{
    for (size_t i = 0; i < node->ops.n; i++) {
        const struct rp_job_server_op *op = &node->ops.at[i];
        uint64_t lane = rp_hash_join((uint64_t)(uint32_t)node->id, (uint64_t)op->thread);
        struct rp_server_work x = {.key = rp_server_work_key(op->key, op->merged),
                                   .begin_ns = op->begin_ns,
                                   .end_ns = rp_ns_sum(op->begin_ns, op->dur_ns),
                                   .thread = rp_map_get(threads, lane)};

        if (x.thread == RP_MAP_NONE) {
            x.thread = (uint32_t)f->out->nthreads++;
            RP_TRY(rp_map_put(threads, lane, x.thread, f->err));
        }
        RP_TRY(rp_vec_push(&f->works, x, f->err));
        RP_TRY(rp_vec_push(&f->by_thread, x, f->err));
    }
    return RP_OK;
}

static void sort_all(struct rp_exchange_ctx *f)
{
    rp_sort(f->sent.at, f->sent.n, sizeof *f->sent.at, by_key_time);
    rp_sort(f->got.at, f->got.n, sizeof *f->got.at, by_key_time);
    for (size_t c = 0; c < f->nclocks; c++) {
        rp_sort(f->sends[c].at, f->sends[c].n, sizeof *f->sends[c].at, by_time);
        rp_sort(f->receives[c].at, f->receives[c].n, sizeof *f->receives[c].at, by_time);
    }
    if (!f->works.n)
        return;
    qsort(f->works.at, f->works.n, sizeof *f->works.at, by_thread_begin);

    /* Marks records that overlap as doubtful, since a thread does one thing at a time. */
    for (size_t i = 1; i < f->works.n; i++) {
        struct rp_server_work *x = &f->works.at[i - 1];
        if (x->thread == x[1].thread && x->end_ns > x[1].begin_ns) {
            x->end_ns = x[1].begin_ns;
            x->doubtful = true;
        }
    }
    memcpy(f->by_thread.at, f->works.at, f->works.n * sizeof *f->works.at);
    qsort(f->works.at, f->works.n, sizeof *f->works.at, by_key_begin);
}

enum rp_code rp_exchange_index_records(struct rp_exchange_ctx *f)
{
    const struct rp_job *job = f->m->job;
    struct rp_map threads = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < job->nnodes; i++) {
        size_t clock = rp_job_clock_of(job, job->nodes[i].id);

        if (clock >= f->nclocks)
            continue;
        code = take_halves(f, &job->nodes[i], clock);
        if (code == RP_OK)
            code = take_works(f, &job->nodes[i], &threads);
    }
    rp_map_release(&threads);
    sort_all(f);
    return code;
}

/* Returns the first time of a key that is not earlier; INT64_MIN if there is none. */
static int64_t first_after(const struct rp_message_end *list, size_t n, uint64_t key, int64_t ns)
{
    size_t low;

    RP_LOWER_BOUND(low, n, list[low].key < key || (list[low].key == key && list[low].ns < ns));
    return low < n && list[low].key == key ? list[low].ns : INT64_MIN;
}

/* Returns how many of the times are not later than this one. */
size_t rp_times_until(const int64_t *list, size_t n, int64_t ns)
{
    size_t low;

    RP_LOWER_BOUND(low, n, list[low] <= ns);
    return low;
}

const struct rp_server_work *rp_server_work_from(const struct rp_exchange_ctx *f, uint64_t key,
                                                 int64_t ns)
{
    const struct rp_server_work *x = f->works.at;
    size_t i;

    RP_LOWER_BOUND(i, f->works.n, x[i].key < key || (x[i].key == key && x[i].begin_ns < ns));
    return i < f->works.n && x[i].key == key ? &x[i] : NULL;
}

/* Returns when the thread became free before this piece of work. */
int64_t rp_thread_free_ns(const struct rp_exchange_ctx *f, const struct rp_server_work *x)
{
    size_t low;

    RP_LOWER_BOUND(low, f->by_thread.n, by_thread_begin(&f->by_thread.at[low], x) < 0);
    return low && f->by_thread.at[low - 1].thread == x->thread ? f->by_thread.at[low - 1].end_ns
                                                               : INT64_MIN;
}

/* ------------------------------------------------------------------ following a part */

size_t rp_exchange_clock(const struct rp_exchange_ctx *f, size_t worker,
                         const struct rp_mean_part *p, int kind, bool receiver)
{
    bool at_worker = (kind == RP_JOB_PUSH || kind == RP_JOB_PULL) != receiver;

    return at_worker ? rp_job_clock_of(f->m->job, (int32_t)(9 + 2 * worker))
                     : f->m->nranks + p->server;
}

struct rp_step_exchange *rp_exchange_at(const struct rp_exchange_ctx *f, size_t part, size_t worker)
{
    return &f->exchanges[part * f->out->nworkers + worker];
}

/* Returns when the last gradient of a part's tensors was ready on a worker. */
static int64_t ready_ns(const struct rp_exchange_ctx *f, size_t worker, int64_t tensor, size_t step)
{
    const struct rp_job *job = f->m->job;
    uint32_t g = rp_map_get(&f->m->group_of, (uint64_t)tensor);
    int64_t last = INT64_MIN;

    for (size_t r = 0; r < job->nranks; r++)
        for (size_t i = 0; f->out->worker_of[r] == worker && i < job->ranks[r].edges.n; i++) {
            const struct rp_job_edge *e = &job->ranks[r].edges.at[i];

            if (e->to_tensor < 0 || rp_map_get(&f->m->group_of, (uint64_t)e->to_tensor) != g)
                continue;
            const struct rp_job_op *op = rp_means_op(f->m, r, e->from, step);
            if (op && rp_ns_sum(op->begin_ns, op->dur_ns) > last)
                last = rp_ns_sum(op->begin_ns, op->dur_ns);
        }
    return last;
}

/* A record after the end of the step belongs to the next step, so that of this step is lost. */
static int64_t in_step(const struct rp_exchange_ctx *f, int64_t ns)
{
    return ns <= f->until_ns ? ns : INT64_MIN;
}

void rp_exchange_find(struct rp_exchange_ctx *f, size_t part, size_t worker, size_t step)
{
    const struct rp_mean_part *p = &f->out->parts[part];
    struct rp_step_exchange *v = rp_exchange_at(f, part, worker);
    size_t rank = rp_job_clock_of(f->m->job, (int32_t)(9 + 2 * worker));
    int64_t at = f->m->work[rank].common.at[step]->begin_ns;

    memset(v, 0, sizeof *v);
    f->until_ns = INT64_MIN;
    for (size_t w = 0; w < f->out->nworkers; w++) {
        size_t other = rp_job_clock_of(f->m->job, (int32_t)(9 + 2 * w));
        int64_t end = f->m->work[other].common.at[step]->end_ns;

        f->until_ns = end > f->until_ns ? end : f->until_ns;
    }
    for (int kind = 0; kind < RP_JOB_MESSAGES; kind++) {
        int32_t of_worker = (int32_t)(9 + 2 * worker), of_server = (int32_t)(8 + 2 * p->server);
        bool ask = kind == RP_JOB_PUSH || kind == RP_JOB_PULL;
        struct rp_job_half h = {.key = p->key,
                                .sender = ask ? of_worker : of_server,
                                .receiver = ask ? of_server : of_worker,
                                .kind = (uint8_t)kind};
        uint64_t key = rp_job_message_key(&h);

        v->message[kind].sent_ns = v->message[kind].got_ns = INT64_MIN;
        if (at == INT64_MIN)
            continue;
        at = in_step(f, first_after(f->sent.at, f->sent.n, key, at));
        if (at != INT64_MIN && rp_means_step(&f->m->work[rank], at) != step && kind == 0)
            at = INT64_MIN;
        v->message[kind].sent_ns = at;
        if (at != INT64_MIN)
            at = in_step(f, first_after(f->got.at, f->got.n, key, at - RP_EARLY_NS));
        v->message[kind].got_ns = at;
        at = at == INT64_MIN ? at : at - RP_EARLY_NS;
    }
    v->ready_ns = ready_ns(f, worker, p->tensor, step);
}

/* The i-th copy or sum belongs to the i-th push that arrived. */
void rp_exchange_match_sums(struct rp_exchange_ctx *f, size_t part)
{
    size_t w, i, n = f->out->nworkers;
    uint64_t key = rp_server_work_key(f->out->parts[part].key, false);
    int64_t last = INT64_MIN;
    const struct rp_server_work *sum = NULL;

    for (i = 0; i < n; i++) {
        struct rp_step_exchange *next = NULL;

        for (w = 0; w < n; w++) {
            struct rp_step_exchange *v = rp_exchange_at(f, part, w);
            int64_t at = v->message[RP_JOB_PUSH].got_ns;

            if (at != INT64_MIN && !v->sum && (!next || at < next->message[RP_JOB_PUSH].got_ns))
                next = v;
        }
        if (!next)
            return;
        last = next->message[RP_JOB_PUSH].got_ns - RP_EARLY_NS;
        sum = sum ? sum + 1 : rp_server_work_from(f, key, last);
        if (!sum || sum == f->works.at + f->works.n || sum->key != key ||
            sum->begin_ns > f->until_ns)
            return;
        next->sum = sum;
    }
}
