/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of a job without servers. Its agreements (Sync) are meetings, the sends and receives
 * of its rings are messages; records that belong together are found by what they are of and by
 * their occurrence number. Sorting dominates.
 */
#include "job/clocks.h"

#include "base/hash.h"
#include "base/vec.h"
#include "facts/intervals.h"

#include <stdlib.h>
#include <string.h>

struct ticket { /* of a Sync, or of a send or receive */
    uint64_t key;
    int64_t begin_ns, end_ns;
    uint32_t rank, nth;
    bool is_send;
};

struct job_step { /* of the rank whose records are taken */
    int64_t begin_ns, id;
};

struct job_facts {
    const struct rp_job *job;
    RP_VEC(struct job_step) steps;
    RP_VEC(struct ticket) syncs;
    RP_VEC(struct ticket) transfers;
    RP_VEC(struct rp_clock_participant) visits;
    RP_VEC(struct rp_clock_message) messages;
    struct rp_err *err;
};

/* Tickets of one key by time, so that they can be counted. */
static int by_key_time(const void *pa, const void *pb)
{
    const struct ticket *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->is_send != b->is_send)
        return a->is_send ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static int by_key_nth(const void *pa, const void *pb)
{
    const struct ticket *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->nth != b->nth)
        return a->nth < b->nth ? -1 : 1;
    if (a->is_send != b->is_send)
        return a->is_send ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* They come rank by rank. */
static void count_tickets(struct ticket *t, size_t n)
{
    size_t i, end;

    for (i = 0; i < n; i = end) {
        for (end = i + 1; end < n && t[end].rank == t[i].rank;)
            end++;
        qsort(t + i, end - i, sizeof *t, by_key_time);
    }
    for (i = 1; i < n; i++)
        t[i].nth = t[i].rank == t[i - 1].rank && t[i].key == t[i - 1].key &&
                           t[i].is_send == t[i - 1].is_send
                       ? t[i - 1].nth + 1
                       : 0;
    if (n)
        qsort(t, n, sizeof *t, by_key_nth);
}

static int by_begin(const void *pa, const void *pb)
{
    const struct job_step *a = pa, *b = pb;

    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* When each step of the rank begins: ranks that recorded other steps must not be mixed up. */
static enum rp_code take_steps(struct job_facts *f, uint32_t rank)
{
    const struct rp_job_rank *r = &f->job->ranks[rank];
    struct rp_map at;
    enum rp_code code = RP_OK;
    size_t i;

    rp_map_init(&at);
    f->steps.n = 0;
    for (i = 0; code == RP_OK && i < r->ops.n; i++) {
        struct job_step s = {r->ops.at[i].begin_ns, r->ops.at[i].step};
        uint32_t known = rp_map_get(&at, (uint64_t)s.id);

        if (known < f->steps.n) {
            if (s.begin_ns < f->steps.at[known].begin_ns)
                f->steps.at[known].begin_ns = s.begin_ns;
            continue;
        }
        code = rp_map_put(&at, (uint64_t)s.id, (uint32_t)f->steps.n, f->err);
        if (code == RP_OK)
            code = rp_vec_push(&f->steps, s, f->err);
    }
    rp_map_release(&at);
    if (f->steps.n)
        qsort(f->steps.at, f->steps.n, sizeof *f->steps.at, by_begin);
    return code;
}

/* The number of the step in which a moment lies; -1 before the first. */
static int64_t step_at(const struct job_facts *f, int64_t ns)
{
    size_t low = 0, high = f->steps.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (f->steps.at[middle].begin_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? f->steps.at[low - 1].id : -1;
}

static enum rp_code take_syncs(struct job_facts *f, uint32_t rank)
{
    const struct rp_job_rank *r = &f->job->ranks[rank];
    size_t i;

    for (i = 0; i < r->spans.n; i++) {
        const struct rp_job_span *s = &r->spans.at[i];
        struct ticket t = {(uint64_t)s->tensor, s->begin_ns, s->end_ns, rank, 0, false};

        t.key = rp_hash_join(t.key, (uint64_t)step_at(f, s->begin_ns));
        if (s->phase == RP_JOB_SYNC)
            RP_TRY(rp_vec_push(&f->syncs, t, f->err));
    }
    return RP_OK;
}

/* To whom the rank sends on a channel, by its place among the ranks; SIZE_MAX: not known. */
static size_t next_of(const struct rp_job *job, size_t rank, int32_t channel)
{
    const struct rp_job_rank *r = &job->ranks[rank];
    size_t i, k;

    for (i = 0; i < r->links.n; i++)
        for (k = 0; r->links.at[i].channel == channel && k < job->nranks; k++)
            if (job->ranks[k].number == r->links.at[i].to)
                return k;
    return SIZE_MAX;
}

/* The key has the receiver in it: both sides know who that is. */
static enum rp_code take_transfers(struct job_facts *f, uint32_t rank)
{
    const struct rp_job_rank *r = &f->job->ranks[rank];
    size_t i;

    for (i = 0; i < r->transfers.n; i++) {
        const struct rp_job_transfer *x = &r->transfers.at[i];
        size_t to = x->is_send ? next_of(f->job, rank, x->channel) : rank;
        struct ticket t = {rp_hash_bytes(x->tensors, strlen(x->tensors)),
                           x->begin_ns,
                           rp_ns_sum(x->begin_ns, x->dur_ns),
                           rank,
                           0,
                           x->is_send};

        if (to == SIZE_MAX)
            continue;
        t.key = rp_hash_join(t.key, (uint64_t)(uint32_t)x->loop << 32 | (uint32_t)x->channel);
        t.key = rp_hash_join(t.key, (uint64_t)(uint32_t)x->chunk << 32 | (uint32_t)x->slice);
        t.key = rp_hash_join(rp_hash_join(t.key, to), (uint64_t)step_at(f, x->begin_ns));
        RP_TRY(rp_vec_push(&f->transfers, t, f->err));
    }
    return RP_OK;
}

static enum rp_code make_visits(struct job_facts *f)
{
    uint32_t meeting = 0;
    size_t i;

    count_tickets(f->syncs.at, f->syncs.n);
    for (i = 0; i < f->syncs.n; i++) {
        const struct ticket *t = &f->syncs.at[i];
        struct rp_clock_participant v = {0, t->rank, t->begin_ns, t->end_ns, true};

        meeting += i && (t->key != t[-1].key || t->nth != t[-1].nth);
        v.rendezvous = meeting;
        RP_TRY(rp_vec_push(&f->visits, v, f->err));
    }
    return RP_OK;
}

static enum rp_code make_messages(struct job_facts *f)
{
    size_t i;

    count_tickets(f->transfers.at, f->transfers.n);
    for (i = 1; i < f->transfers.n; i++) {
        const struct ticket *send = &f->transfers.at[i - 1], *receive = send + 1;
        struct rp_clock_message m = {send->rank, receive->rank, send->begin_ns, receive->end_ns};

        if (send->key == receive->key && send->nth == receive->nth && send->is_send &&
            !receive->is_send)
            RP_TRY(rp_vec_push(&f->messages, m, f->err));
    }
    return RP_OK;
}

/* By rank: the first rank of its host. */
static void share_clocks(const struct rp_job *job, uint32_t *clock_of)
{
    uint32_t r, k;

    for (r = 0; r < job->nranks; r++) {
        for (k = 0; strcmp(job->ranks[k].host, job->ranks[r].host) != 0; k++)
            ;
        clock_of[r] = k;
    }
}

static enum rp_code take_facts(struct job_facts *f)
{
    uint32_t r;

    for (r = 0; r < f->job->nranks; r++) {
        RP_TRY(take_steps(f, r));
        RP_TRY(take_syncs(f, r));
        RP_TRY(take_transfers(f, r));
    }
    RP_TRY(make_visits(f));
    return make_messages(f);
}

enum rp_code rp_clocks_of_job(const struct rp_job *job, struct rp_arena *arena,
                              struct rp_clocks *out, struct rp_err *err)
{
    struct job_facts f = {.job = job, .err = err};
    uint32_t *clock_of = RP_ARENA_NEW(arena, uint32_t, job->nranks + 1);
    enum rp_code code = clock_of ? take_facts(&f) : rp_err_nomem(err, "aligning clocks");

    if (code == RP_OK) {
        struct rp_clock_input in = {.nranks = job->nranks,
                                    .clock_of = clock_of,
                                    .nparticipants = f.visits.n,
                                    .participants = f.visits.at,
                                    .nmessages = f.messages.n,
                                    .messages = f.messages.at,
                                    .tolerance_ns = RP_CLOCK_TOLERANCE_NS};

        share_clocks(job, clock_of);
        code = rp_clocks_find(&in, arena, out, err);
    }
    rp_vec_release(&f.steps);
    rp_vec_release(&f.syncs);
    rp_vec_release(&f.transfers);
    rp_vec_release(&f.visits);
    rp_vec_release(&f.messages);
    return code;
}

static void shift(const struct rp_clock *clock, int64_t *begin_ns, int64_t *dur_ns)
{
    int64_t end = rp_clock_time(clock, rp_ns_sum(*begin_ns, *dur_ns));

    *begin_ns = rp_clock_time(clock, *begin_ns);
    *dur_ns = rp_ns_between(*begin_ns, end);
}

static void shift_node(const struct rp_clock *clock, struct rp_job_node *node)
{
    size_t i;

    for (i = 0; i < node->halves.n; i++)
        node->halves.at[i].ns = rp_clock_time(clock, node->halves.at[i].ns);
    for (i = 0; i < node->ops.n; i++)
        shift(clock, &node->ops.at[i].begin_ns, &node->ops.at[i].dur_ns);
}

enum rp_code rp_job_align(struct rp_job *job, struct rp_err *err)
{
    struct rp_clocks clocks;
    enum rp_code code = job->has_servers
                            ? rp_clocks_of_servers(job, true, &job->arena, &clocks, err)
                            : rp_clocks_of_job(job, &job->arena, &clocks, err);
    size_t r, i;

    for (i = 0; code == RP_OK && i < job->nnodes; i++) {
        size_t clock = rp_job_clock_of(job, job->nodes[i].id);

        if (clock < clocks.n)
            shift_node(&clocks.at[clock], &job->nodes[i]);
    }

    for (r = 0; code == RP_OK && r < job->nranks; r++) {
        struct rp_job_rank *x = &job->ranks[r];

        for (i = 0; i < x->ops.n; i++)
            shift(&clocks.at[r], &x->ops.at[i].begin_ns, &x->ops.at[i].dur_ns);
        for (i = 0; i < x->transfers.n; i++)
            shift(&clocks.at[r], &x->transfers.at[i].begin_ns, &x->transfers.at[i].dur_ns);
        for (i = 0; i < x->spans.n; i++) {
            x->spans.at[i].begin_ns = rp_clock_time(&clocks.at[r], x->spans.at[i].begin_ns);
            x->spans.at[i].end_ns = rp_clock_time(&clocks.at[r], x->spans.at[i].end_ns);
        }
    }
    return code;
}
