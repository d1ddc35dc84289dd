/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part's way in a step is followed from the push that its worker began in it: each next record is
 * the first of its kind that is not earlier. What a message took its receiver lies behind the later
 * of its own begin and the end of what came there before it; what it took its sender is at most
 * that, and at most the time to the sender's next message. A lag counts only if the sender had
 * nothing else to send just then. O(records log records), and the square of the parts of a worker.
 */
#include "sim/job_messages.h"

#include "facts/clock_sources.h"
#include "facts/intervals.h"
#include "sim/job_means_work.h"

#include <stdlib.h>

/* Clocks are right to this; a record may be so much earlier than what it followed. */
#define EARLY_NS 50000

struct end_of { /* of a message */
    uint64_t key;
    int64_t ns;
};

struct work_of { /* of a server for a part */
    uint64_t key; /* of the part, and whether it is the last copy */
    int64_t begin_ns, end_ns;
    uint32_t thread;
};

struct step_leg { /* a message in one step */
    int64_t sent_ns, got_ns; /* INT64_MIN: not found */
};

struct step_visit {
    struct step_leg leg[RP_JOB_MESSAGES];
    const struct work_of *sum;
    int64_t ready_ns;
};

struct sums {
    struct rp_mean out[RP_JOB_MESSAGES], in[RP_JOB_MESSAGES], sum;
};

struct lags { /* of a clock (worker or server) */
    struct rp_mean leg[RP_JOB_MESSAGES], sum, merge;
    double least[RP_JOB_MESSAGES]; /* where none counts */
};

struct follower {
    const struct rp_job_means *m;
    struct rp_job_legs *out;
    RP_VEC(struct end_of) sent, got; /* by key and time */
    RP_VEC(int64_t) *sends, *receives; /* by clock: all times, in order */
    RP_VEC(struct work_of) works;      /* by key and begin */
    RP_VEC(struct work_of) by_thread;  /* by thread and begin */
    size_t nclocks;
    double *wire;             /* by clock of sender and receiver */
    struct step_visit *visit; /* by part and worker: of one step */
    struct sums *sums;        /* likewise */
    struct rp_mean *merge;    /* by part */
    struct lags *lags;        /* by clock */
    size_t against_order[2];  /* choices of workers against: first come, lowest tensor */
    struct rp_map server_of;  /* by key: to whom it was pushed */
    struct rp_err *err;
};

/* ------------------------------------------------------------------ sorted records */

static int by_key_time(const void *pa, const void *pb)
{
    const struct end_of *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

static int by_time(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

static int by_key_begin(const void *pa, const void *pb)
{
    const struct work_of *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static int by_thread_begin(const void *pa, const void *pb)
{
    const struct work_of *a = pa, *b = pb;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static uint64_t work_key(int64_t key, bool merged)
{
    return rp_hash_join((uint64_t)key, merged);
}

static enum rp_code take_halves(struct follower *f, const struct rp_job_node *node, size_t clock)
{
    size_t i;

    for (i = 0; i < node->halves.n; i++) {
        const struct rp_job_half *h = &node->halves.at[i];
        struct end_of x = {rp_job_message_key(h), h->ns};

        if (h->kind == RP_JOB_PUSH && h->receiver >= 8 && h->receiver % 2 == 0)
            RP_TRY(rp_map_put(&f->server_of, (uint64_t)h->key, (uint32_t)(h->receiver - 8) / 2,
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

static enum rp_code take_works(struct follower *f, const struct rp_job_node *node,
                               struct rp_map *threads)
{
    size_t i;

    for (i = 0; i < node->ops.n; i++) {
        const struct rp_job_server_op *op = &node->ops.at[i];
        uint64_t lane = rp_hash_join((uint64_t)(uint32_t)node->id, (uint64_t)op->thread);
        struct work_of x = {work_key(op->key, op->merged), op->begin_ns,
                            rp_ns_sum(op->begin_ns, op->dur_ns), rp_map_get(threads, lane)};

        if (x.thread == RP_MAP_NONE) {
            x.thread = (uint32_t)f->out->nthreads++;
            RP_TRY(rp_map_put(threads, lane, x.thread, f->err));
        }
        RP_TRY(rp_vec_push(&f->works, x, f->err));
        RP_TRY(rp_vec_push(&f->by_thread, x, f->err));
    }
    return RP_OK;
}

static void sort_all(struct follower *f)
{
    size_t c;

    if (f->sent.n)
        qsort(f->sent.at, f->sent.n, sizeof *f->sent.at, by_key_time);
    if (f->got.n)
        qsort(f->got.at, f->got.n, sizeof *f->got.at, by_key_time);
    for (c = 0; c < f->nclocks; c++) {
        if (f->sends[c].n)
            qsort(f->sends[c].at, f->sends[c].n, sizeof *f->sends[c].at, by_time);
        if (f->receives[c].n)
            qsort(f->receives[c].at, f->receives[c].n, sizeof *f->receives[c].at, by_time);
    }
    if (f->works.n) {
        qsort(f->works.at, f->works.n, sizeof *f->works.at, by_key_begin);
        qsort(f->by_thread.at, f->by_thread.n, sizeof *f->by_thread.at, by_thread_begin);
    }
}

static enum rp_code take_records(struct follower *f)
{
    const struct rp_job *job = f->m->job;
    struct rp_map threads;
    enum rp_code code = RP_OK;
    size_t i;

    rp_map_init(&threads);
    for (i = 0; code == RP_OK && i < job->nnodes; i++) {
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

/* The first of a key that is not earlier; INT64_MIN: none. */
static int64_t first_after(const struct end_of *list, size_t n, uint64_t key, int64_t ns)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list[middle].key < key || (list[middle].key == key && list[middle].ns < ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && list[low].key == key ? list[low].ns : INT64_MIN;
}

/* How many of the times are not later than this one. */
static size_t count_until(const int64_t *list, size_t n, int64_t ns)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list[middle] <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct work_of *work_after(const struct follower *f, uint64_t key, int64_t ns)
{
    size_t low = 0, high = f->works.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct work_of *x = &f->works.at[middle];

        if (x->key < key || (x->key == key && x->begin_ns < ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->works.n && f->works.at[low].key == key ? &f->works.at[low] : NULL;
}

/* When the thread became free before this piece of work. */
static int64_t free_before(const struct follower *f, const struct work_of *x)
{
    size_t low = 0, high = f->by_thread.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by_thread_begin(&f->by_thread.at[middle], x) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low && f->by_thread.at[low - 1].thread == x->thread ? f->by_thread.at[low - 1].end_ns
                                                               : INT64_MIN;
}

/* ------------------------------------------------------------------ following a part */

static size_t clock_at(const struct follower *f, size_t worker, const struct rp_mean_part *p,
                       int kind, bool receiver)
{
    bool at_worker = (kind == RP_JOB_PUSH || kind == RP_JOB_PULL) != receiver;

    return at_worker ? rp_job_clock_of(f->m->job, (int32_t)(9 + 2 * worker))
                     : f->m->nranks + p->server;
}

static uint64_t message_key(const struct rp_mean_part *p, size_t worker, int kind)
{
    int32_t of_worker = (int32_t)(9 + 2 * worker), of_server = (int32_t)(8 + 2 * p->server);
    bool ask = kind == RP_JOB_PUSH || kind == RP_JOB_PULL;
    struct rp_job_half h = {.key = p->key,
                            .sender = ask ? of_worker : of_server,
                            .receiver = ask ? of_server : of_worker,
                            .kind = (uint8_t)kind};

    return rp_job_message_key(&h);
}

static struct step_visit *visit_of(const struct follower *f, size_t part, size_t worker)
{
    return &f->visit[part * f->out->nworkers + worker];
}

/* When the last gradient of a part's tensors was ready on a worker. */
static int64_t ready_ns(const struct follower *f, size_t worker, int64_t tensor, size_t step)
{
    const struct rp_job *job = f->m->job;
    uint32_t g = rp_map_get(&f->m->group_of, (uint64_t)tensor);
    int64_t last = INT64_MIN;
    size_t r, i;

    for (r = 0; r < job->nranks; r++)
        for (i = 0; f->out->worker_of[r] == worker && i < job->ranks[r].edges.n; i++) {
            const struct rp_job_edge *e = &job->ranks[r].edges.at[i];
            const struct rp_job_op *op;

            if (e->to_tensor < 0 || rp_map_get(&f->m->group_of, (uint64_t)e->to_tensor) != g)
                continue;
            op = rp_means_op(f->m, r, e->from, step);
            if (op && rp_ns_sum(op->begin_ns, op->dur_ns) > last)
                last = rp_ns_sum(op->begin_ns, op->dur_ns);
        }
    return last;
}

static void follow(struct follower *f, size_t part, size_t worker, size_t step)
{
    const struct rp_mean_part *p = &f->out->parts[part];
    struct step_visit *v = visit_of(f, part, worker);
    size_t rank = rp_job_clock_of(f->m->job, (int32_t)(9 + 2 * worker));
    int64_t at = f->m->work[rank].common.at[step]->begin_ns;
    int kind;

    memset(v, 0, sizeof *v);
    for (kind = 0; kind < RP_JOB_MESSAGES; kind++) {
        uint64_t key = message_key(p, worker, kind);

        v->leg[kind].sent_ns = v->leg[kind].got_ns = INT64_MIN;
        if (at == INT64_MIN)
            continue;
        at = first_after(f->sent.at, f->sent.n, key, at);
        if (at != INT64_MIN && rp_means_step(&f->m->work[rank], at) != step && kind == 0)
            at = INT64_MIN;
        v->leg[kind].sent_ns = at;
        if (at != INT64_MIN)
            at = first_after(f->got.at, f->got.n, key, at - EARLY_NS);
        v->leg[kind].got_ns = at;
        at = at == INT64_MIN ? at : at - EARLY_NS;
    }
    v->ready_ns = ready_ns(f, worker, p->tensor, step);
}

/* The i-th copy or sum is of the i-th push that came. */
static void match_sums(struct follower *f, size_t part)
{
    size_t w, i, n = f->out->nworkers;
    uint64_t key = work_key(f->out->parts[part].key, false);
    int64_t last = INT64_MIN;
    const struct work_of *sum = NULL;

    for (i = 0; i < n; i++) {
        struct step_visit *next = NULL;

        for (w = 0; w < n; w++) {
            struct step_visit *v = visit_of(f, part, w);
            int64_t at = v->leg[RP_JOB_PUSH].got_ns;

            if (at != INT64_MIN && !v->sum && (!next || at < next->leg[RP_JOB_PUSH].got_ns))
                next = v;
        }
        if (!next)
            return;
        last = next->leg[RP_JOB_PUSH].got_ns - EARLY_NS;
        sum = sum ? sum + 1 : work_after(f, key, last);
        if (!sum || sum == f->works.at + f->works.n || sum->key != key)
            return;
        next->sum = sum;
    }
}

/* ------------------------------------------------------------------ learning */

/* What a message took both sides. */
static void learn_leg(struct follower *f, size_t part, size_t worker, int kind)
{
    const struct step_leg *leg = &visit_of(f, part, worker)->leg[kind];
    const struct rp_mean_part *p = &f->out->parts[part];
    struct sums *s = &f->sums[part * f->out->nworkers + worker];
    size_t from = clock_at(f, worker, p, kind, false), to = clock_at(f, worker, p, kind, true);
    size_t i = count_until(f->receives[to].at, f->receives[to].n, leg->got_ns - 1);
    size_t k = count_until(f->sends[from].at, f->sends[from].n, leg->sent_ns);
    double begin = (double)leg->sent_ns + f->wire[from * f->nclocks + to], in, out;

    if (i && (double)f->receives[to].at[i - 1] > begin)
        begin = (double)f->receives[to].at[i - 1];
    in = (double)leg->got_ns - begin;
    in = in > 0 ? in : 0;
    out = k < f->sends[from].n ? (double)rp_ns_between(leg->sent_ns, f->sends[from].at[k]) : in;
    rp_mean_count(&s->in[kind], in);
    rp_mean_count(&s->out[kind], out < in ? out : in);
}

/* A lag counts if the sender sent nothing between what the message waited for and itself, nor just
   before. */
static void learn_lag(struct follower *f, size_t clock, int kind, int64_t cause_ns, int64_t sent_ns,
                      double busy_ns)
{
    struct lags *l = &f->lags[clock];
    size_t k = count_until(f->sends[clock].at, f->sends[clock].n, sent_ns - 1);
    double lag = (double)rp_ns_between(cause_ns, sent_ns);

    if (cause_ns == INT64_MIN)
        return;
    lag = lag > 0 ? lag : 0;
    if (l->least[kind] < 0 || lag < l->least[kind])
        l->least[kind] = lag;
    if (!k || (double)rp_ns_between(f->sends[clock].at[k - 1], cause_ns) > busy_ns)
        rp_mean_count(&l->leg[kind], lag);
}

/* The longest that anything takes a node to send: what was sent before that is over. */
static double longest_send(const struct follower *f)
{
    size_t i, k;
    double most = 0;

    for (i = 0; i < f->out->nparts * f->out->nworkers; i++)
        for (k = 0; k < RP_JOB_MESSAGES; k++)
            most = rp_mean_of(&f->sums[i].out[k]) > most ? rp_mean_of(&f->sums[i].out[k]) : most;
    return most;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void learn_sum(struct follower *f, size_t part, size_t worker, int64_t *last_ns)
{
    const struct step_visit *v = visit_of(f, part, worker);
    struct rp_mean_part *p = &f->out->parts[part];
    struct lags *l = &f->lags[f->m->nranks + p->server];
    int64_t got = v->leg[RP_JOB_PUSH].got_ns, idle;

    *last_ns = later(*last_ns, v->sum ? v->sum->end_ns : got);
    if (!v->sum)
        return;
    p->thread = v->sum->thread;
    rp_mean_count(&f->sums[part * f->out->nworkers + worker].sum,
                  (double)rp_ns_between(v->sum->begin_ns, v->sum->end_ns));
    idle = free_before(f, v->sum);
    if (idle == INT64_MIN || idle < got)
        rp_mean_count(&l->sum, (double)rp_ns_between(got, v->sum->begin_ns));
}

/* last_ns: when the last sum ended; then when the last copy did. */
static void learn_merge(struct follower *f, size_t part, int64_t *last_ns)
{
    struct rp_mean_part *p = &f->out->parts[part];
    const struct work_of *x = *last_ns == INT64_MIN
                                  ? NULL
                                  : work_after(f, work_key(p->key, true), *last_ns - EARLY_NS);

    if (!x)
        return;
    rp_mean_count(&f->merge[part], (double)rp_ns_between(x->begin_ns, x->end_ns));
    if (free_before(f, x) <= *last_ns)
        rp_mean_count(&f->lags[f->m->nranks + p->server].merge,
                      (double)rp_ns_between(*last_ns, x->begin_ns));
    *last_ns = x->end_ns;
}

static void learn_part(struct follower *f, size_t part, double busy_ns, bool lags)
{
    const struct rp_mean_part *p = &f->out->parts[part];
    int64_t merged = INT64_MIN;
    size_t w;
    int k;

    for (w = 0; w < f->out->nworkers && lags; w++)
        learn_sum(f, part, w, &merged);
    if (lags)
        learn_merge(f, part, &merged);
    for (w = 0; w < f->out->nworkers; w++) {
        const struct step_visit *v = visit_of(f, part, w);
        int64_t cause[RP_JOB_MESSAGES] = {v->ready_ns, v->leg[RP_JOB_PUSH].got_ns,
                                          v->leg[RP_JOB_PUSH_DONE].got_ns,
                                          later(v->leg[RP_JOB_PULL].got_ns, merged)};

        for (k = 0; k < RP_JOB_MESSAGES; k++) {
            if (v->leg[k].sent_ns == INT64_MIN || v->leg[k].got_ns == INT64_MIN)
                break;
            if (lags)
                learn_lag(f, clock_at(f, w, p, k, false), k, cause[k], v->leg[k].sent_ns, busy_ns);
            else
                learn_leg(f, part, w, k);
        }
    }
}

/* Which of two parts that both could be sent went first, against the two orders. */
static void learn_order(struct follower *f, size_t worker)
{
    size_t a, b, n = f->out->nparts;

    for (a = 0; a < n; a++)
        for (b = 0; b < n; b++) {
            const struct step_visit *x = visit_of(f, a, worker), *y = visit_of(f, b, worker);

            if (x->leg[0].sent_ns == INT64_MIN || y->ready_ns == INT64_MIN ||
                x->ready_ns == INT64_MIN || y->leg[0].sent_ns <= x->leg[0].sent_ns ||
                y->ready_ns + EARLY_NS > x->leg[0].sent_ns)
                continue;
            f->against_order[0] += y->ready_ns < x->ready_ns;
            f->against_order[1] += f->out->parts[b].tensor < f->out->parts[a].tensor;
        }
}

static void learn_steps(struct follower *f, size_t first, size_t end, bool lags)
{
    double busy = lags ? longest_send(f) : 0;
    size_t s, p, w;

    for (s = first; s < end; s++) {
        for (p = 0; p < f->out->nparts; p++) {
            for (w = 0; w < f->out->nworkers; w++)
                follow(f, p, w, s);
            match_sums(f, p);
            learn_part(f, p, busy, lags);
        }
        for (w = 0; w < f->out->nworkers && lags; w++)
            learn_order(f, w);
    }
}

/* The least that any message took between two nodes: what is left is the wire. */
static void find_wires(struct follower *f, size_t first, size_t end)
{
    size_t s, p, w, k;

    for (s = 0; s < f->nclocks * f->nclocks; s++)
        f->wire[s] = -1;
    for (s = first; s < end; s++)
        for (p = 0; p < f->out->nparts; p++)
            for (w = 0; w < f->out->nworkers; w++) {
                const struct rp_mean_part *x = &f->out->parts[p];

                follow(f, p, w, s);
                for (k = 0; k < RP_JOB_MESSAGES; k++) {
                    const struct step_leg *leg = &visit_of(f, p, w)->leg[k];
                    double *wire = &f->wire[clock_at(f, w, x, (int)k, false) * f->nclocks +
                                            clock_at(f, w, x, (int)k, true)];
                    double took = (double)rp_ns_between(leg->sent_ns, leg->got_ns);

                    if (leg->got_ns != INT64_MIN && (*wire < 0 || took < *wire))
                        *wire = took > 0 ? took : 0;
                }
            }
    for (s = 0; s < f->nclocks * f->nclocks; s++)
        f->wire[s] = f->wire[s] > 1000 ? f->wire[s] - 1000 : 0; /* even the least was received */
}

/* ------------------------------------------------------------------ what was learned */

static double lag_of(const struct lags *l, int kind)
{
    return l->leg[kind].n > 0 ? rp_mean_of(&l->leg[kind]) : l->least[kind] > 0 ? l->least[kind] : 0;
}

static void put_visit(struct follower *f, size_t part, size_t worker)
{
    struct rp_mean_part *p = &f->out->parts[part];
    struct rp_mean_visit *v = &p->visits[worker];
    const struct sums *s = &f->sums[part * f->out->nworkers + worker];
    int k;

    v->sum_ns = rp_mean_of(&s->sum);
    v->sum_lag_ns = rp_mean_of(&f->lags[f->m->nranks + p->server].sum);
    for (k = 0; k < RP_JOB_MESSAGES; k++) {
        size_t from = clock_at(f, worker, p, k, false), to = clock_at(f, worker, p, k, true);

        v->leg[k] = (struct rp_mean_leg){
            rp_mean_of(&s->out[k]), rp_mean_of(&s->in[k]), f->wire[from * f->nclocks + to],
            lag_of(&f->lags[from], k), s->in[k].n > 0};
    }
}

static enum rp_code put_parts(struct follower *f)
{
    size_t p, w;

    for (p = 0; p < f->out->nparts; p++) {
        struct rp_mean_part *part = &f->out->parts[p];

        part->merge_ns = rp_mean_of(&f->merge[p]);
        part->merge_lag_ns = rp_mean_of(&f->lags[f->m->nranks + part->server].merge);
        for (w = 0; w < f->out->nworkers; w++)
            put_visit(f, p, w);
    }
    f->out->by_tensor = f->against_order[1] < f->against_order[0];
    return RP_OK;
}

/* ------------------------------------------------------------------ parts and workers */

/* A part for each key; tensors that travel together have the same keys. */
static enum rp_code list_parts(struct follower *f)
{
    const struct rp_job *job = f->m->job;
    struct rp_job_legs *out = f->out;
    struct rp_map seen;
    enum rp_code code = RP_OK;
    size_t i;

    rp_map_init(&seen);
    out->parts = RP_ARENA_NEW(&out->arena, struct rp_mean_part, job->keys.n + 1);
    if (!out->parts)
        code = rp_err_nomem(f->err, "simulating a job");
    for (i = 0; code == RP_OK && i < job->keys.n; i++) {
        struct rp_mean_part p = {.key = job->keys.at[i].key, .tensor = job->keys.at[i].tensor};

        if (rp_map_get(&seen, (uint64_t)p.key) != RP_MAP_NONE)
            continue;
        code = rp_map_put(&seen, (uint64_t)p.key, 1, f->err);
        p.server = rp_map_get(&f->server_of, (uint64_t)p.key);
        p.thread = UINT32_MAX;
        p.visits = RP_ARENA_NEW(&out->arena, struct rp_mean_visit, out->nworkers + 1);
        if (code == RP_OK && !p.visits)
            code = rp_err_nomem(f->err, "simulating a job");
        if (code == RP_OK && p.server < out->nservers)
            out->parts[out->nparts++] = p;
    }
    rp_map_release(&seen);
    return code;
}

static enum rp_code number_workers(struct follower *f)
{
    const struct rp_job *job = f->m->job;
    size_t r;

    f->out->worker_of = RP_ARENA_NEW(&f->out->arena, uint32_t, job->nranks + 1);
    if (!f->out->worker_of)
        return rp_err_nomem(f->err, "simulating a job");
    for (r = 0; r < job->nranks; r++) {
        if (r && strcmp(job->ranks[r].host, job->ranks[r - 1].host) != 0)
            f->out->nworkers++;
        f->out->worker_of[r] = (uint32_t)f->out->nworkers;
    }
    f->out->nworkers++;
    f->out->nservers = rp_job_servers(job);
    f->nclocks = job->nranks + f->out->nservers;
    return f->out->nservers ? RP_OK
                            : rp_err_set(f->err, RP_FORMAT, "no log of a BytePS server was found");
}

static enum rp_code allocate(struct follower *f)
{
    size_t n = f->out->nparts * f->out->nworkers + 1, i, k;

    f->visit = calloc(n, sizeof *f->visit);
    f->sums = calloc(n, sizeof *f->sums);
    f->merge = calloc(f->out->nparts + 1, sizeof *f->merge);
    f->lags = calloc(f->nclocks + 1, sizeof *f->lags);
    f->wire = calloc(f->nclocks * f->nclocks + 1, sizeof *f->wire);
    if (!f->visit || !f->sums || !f->merge || !f->lags || !f->wire)
        return rp_err_nomem(f->err, "simulating a job");
    for (i = 0; i < f->nclocks; i++)
        for (k = 0; k < RP_JOB_MESSAGES; k++)
            f->lags[i].least[k] = -1;
    return RP_OK;
}

static enum rp_code learn(struct follower *f, size_t first, size_t end)
{
    RP_TRY(number_workers(f));
    f->sends = calloc(f->nclocks + 1, sizeof *f->sends);
    f->receives = calloc(f->nclocks + 1, sizeof *f->receives);
    if (!f->sends || !f->receives)
        return rp_err_nomem(f->err, "simulating a job");
    RP_TRY(take_records(f));
    RP_TRY(list_parts(f));
    RP_TRY(allocate(f));
    find_wires(f, 0, f->m->nsteps);
    learn_steps(f, first, end, false);
    learn_steps(f, first, end, true);
    return put_parts(f);
}

enum rp_code rp_job_legs_init(struct rp_job_legs *out, const struct rp_job_means *m, size_t first,
                              size_t end, struct rp_err *err)
{
    struct follower f = {.m = m, .out = out, .err = err};
    enum rp_code code;
    size_t c;

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    rp_map_init(&f.server_of);
    code = learn(&f, first, end);
    for (c = 0; f.sends && f.receives && c < f.nclocks; c++) {
        rp_vec_release(&f.sends[c]);
        rp_vec_release(&f.receives[c]);
    }
    free(f.sends);
    free(f.receives);
    rp_map_release(&f.server_of);
    rp_vec_release(&f.sent);
    rp_vec_release(&f.got);
    rp_vec_release(&f.works);
    rp_vec_release(&f.by_thread);
    free(f.visit);
    free(f.sums);
    free(f.merge);
    free(f.lags);
    free(f.wire);
    return code;
}

void rp_job_legs_release(struct rp_job_legs *l)
{
    rp_arena_release(&l->arena);
}
