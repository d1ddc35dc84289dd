/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns the clocks of a job. Without servers, its agreements (Sync) are rendezvous and the sends
 * and receives of its rings are messages. With servers (BytePS) a worker's log and the traces of
 * its ranks share a clock, and so do the two logs of a server; each pair of a send and a receive is
 * a message. Records that belong together are found by their subject and their occurrence number.
 * Sorting dominates.
 */
#include "base/each.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"
#include "facts/times/intervals.h"
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ rings */

struct sync { /* an agreement as one rank recorded it */
    uint64_t key;
    int64_t begin_ns, end_ns;
    uint32_t rank, nth;
};

struct job_step { /* a step of the rank whose records are read */
    int64_t begin_ns, id;
};

struct ring_facts {
    const struct rp_job *job;
    RP_VEC(struct job_step) steps;
    RP_VEC(struct sync) syncs;
    RP_VEC(struct rp_clock_participant) participants;
    rp_half_message_vec halves;
    struct rp_err *err;
};

RP_ORDER(sync_by_rank_key_time, struct sync, RP_UP(rank), RP_UP(key), RP_UP(begin_ns))
RP_ORDER(sync_by_key_nth, struct sync, RP_UP(key), RP_UP(nth), RP_UP(rank))
RP_ORDER(step_by_begin, struct job_step, RP_UP(begin_ns))

static void number_syncs(struct sync *s, size_t n)
{
    if (!n)
        return;
    qsort(s, n, sizeof *s, sync_by_rank_key_time);
    for (size_t i = 1; i < n; i++)
        s[i].nth = s[i].rank == s[i - 1].rank && s[i].key == s[i - 1].key ? s[i - 1].nth + 1 : 0;
    qsort(s, n, sizeof *s, sync_by_key_nth);
}

/* Lists when each step of the rank begins: ranks that recorded other steps must not be mixed up. */
static enum rp_code list_steps(struct ring_facts *f, uint32_t rank)
{
    const struct rp_job_rank *r = &f->job->ranks[rank];
    struct rp_map at = {0};
    enum rp_code code = RP_OK;

    f->steps.n = 0;
    for (size_t i = 0; code == RP_OK && i < r->ops.n; i++) {
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
    rp_sort(f->steps.at, f->steps.n, sizeof *f->steps.at, step_by_begin);
    return code;
}

/* Returns the number of the step that contains a moment; -1 before the first. */
static int64_t step_at(const struct ring_facts *f, int64_t ns)
{
    size_t i;

    RP_LOWER_BOUND(i, f->steps.n, f->steps.at[i].begin_ns <= ns);
    return i ? f->steps.at[i - 1].id : -1;
}

static enum rp_code list_syncs(struct ring_facts *f, uint32_t rank)
{
    const struct rp_job_rank *r = &f->job->ranks[rank];

    for (size_t i = 0; i < r->spans.n; i++) {
        const struct rp_job_span *s = &r->spans.at[i];
        struct sync sync = {(uint64_t)s->tensor, s->begin_ns, s->end_ns, rank, 0};

        sync.key = rp_hash_join(sync.key, (uint64_t)step_at(f, s->begin_ns));
        if (s->phase == RP_JOB_SYNC)
            RP_TRY(rp_vec_push(&f->syncs, sync, f->err));
    }
    return RP_OK;
}

/* Returns the index of the rank to which a rank sends on a channel, or SIZE_MAX. */
static size_t ring_successor(const struct rp_job *job, size_t rank, int32_t channel)
{
    const struct rp_job_rank *r = &job->ranks[rank];

    for (size_t i = 0; i < r->links.n; i++)
        for (size_t k = 0; r->links.at[i].channel == channel && k < job->nranks; k++)
            if (job->ranks[k].number == r->links.at[i].to)
                return k;
    return SIZE_MAX;
}

/* The receiver is part of the key, because both sides know it. */
static enum rp_code list_transfers(struct ring_facts *f, uint32_t rank)
{
    const struct rp_job_rank *r = &f->job->ranks[rank];

    for (size_t i = 0; i < r->transfers.n; i++) {
        const struct rp_job_transfer *x = &r->transfers.at[i];
        size_t to = x->is_send ? ring_successor(f->job, rank, x->channel) : rank;
        struct rp_half_message half = {.key = rp_hash_bytes(x->tensors, strlen(x->tensors)),
                                       .ns = x->is_send ? x->begin_ns
                                                        : rp_ns_sum(x->begin_ns, x->dur_ns),
                                       .rank = rank,
                                       .is_begin = x->is_send};

        if (to == SIZE_MAX)
            continue;
        half.key = rp_hash_join(half.key, (uint64_t)(uint32_t)x->loop << 32 | (uint32_t)x->channel);
        half.key = rp_hash_join(half.key, (uint64_t)(uint32_t)x->chunk << 32 | (uint32_t)x->slice);
        half.key = rp_hash_join(rp_hash_join(half.key, to), (uint64_t)step_at(f, x->begin_ns));
        RP_TRY(rp_vec_push(&f->halves, half, f->err));
    }
    return RP_OK;
}

static enum rp_code list_ring_facts(struct ring_facts *f)
{
    for (uint32_t r = 0; r < f->job->nranks; r++) {
        RP_TRY(list_steps(f, r));
        RP_TRY(list_syncs(f, r));
        RP_TRY(list_transfers(f, r));
    }

    /* Each meeting of the ranks is a rendezvous of its participants. */
    uint32_t rendezvous = 0;
    number_syncs(f->syncs.at, f->syncs.n);
    for (size_t i = 0; i < f->syncs.n; i++) {
        const struct sync *s = &f->syncs.at[i];
        struct rp_clock_participant p = {0, s->rank, s->begin_ns, s->end_ns, true};
        rendezvous += i && (s->key != s[-1].key || s->nth != s[-1].nth);
        p.rendezvous = rendezvous;
        RP_TRY(rp_vec_push(&f->participants, p, f->err));
    }
    return RP_OK;
}

static enum rp_code clocks_of_rings(const struct rp_job *job, const uint32_t *clock_of,
                                    struct rp_arena *arena, struct rp_clocks *out,
                                    struct rp_err *err)
{
    struct ring_facts f = {.job = job, .err = err};
    rp_clock_message_vec messages = {0};
    enum rp_code code = list_ring_facts(&f);

    if (code == RP_OK)
        code = rp_half_messages_join(&f.halves, &messages, err);
    if (code == RP_OK) {
        struct rp_clock_input in = {.nranks = job->nranks,
                                    .clock_of = clock_of,
                                    .nparticipants = f.participants.n,
                                    .participants = f.participants.at,
                                    .nmessages = messages.n,
                                    .messages = messages.at,
                                    .tolerance_ns = RP_CLOCK_TOLERANCE_NS};

        code = rp_clocks_find(&in, arena, out, err);
    }
    RP_EACH(rp_vec_release, &f.steps, &f.syncs, &f.participants, &f.halves, &messages);
    return code;
}

/* ------------------------------------------------------------------ servers */

/* Returns the first rank of a worker: ranks of one host are adjacent, and the k-th host is worker
   k. */
static size_t rank_of_worker(const struct rp_job *job, size_t worker)
{
    size_t r, host = 0;

    for (r = 0; r < job->nranks; r++) {
        host += r && strcmp(job->ranks[r].host, job->ranks[r - 1].host) != 0;
        if (host == worker)
            return r;
    }
    return SIZE_MAX;
}

size_t rp_job_clock_of(const struct rp_job *job, int32_t id)
{
    if (!rp_job_is_party(id))
        return SIZE_MAX;
    return rp_job_is_server(id) ? job->nranks + rp_job_party(id)
                                : rank_of_worker(job, rp_job_party(id));
}

size_t rp_job_servers(const struct rp_job *job)
{
    size_t i, n = 0;

    for (i = 0; job->has_servers && i < job->nnodes; i++)
        if (rp_job_is_server(job->nodes[i].id) && rp_job_party(job->nodes[i].id) >= n)
            n = rp_job_party(job->nodes[i].id) + 1;
    return n;
}

uint64_t rp_job_message_key(const struct rp_job_half *h)
{
    uint64_t k = rp_hash_join((uint64_t)h->key, h->kind);

    return rp_hash_join(k, (uint64_t)(uint32_t)h->sender << 32 | (uint32_t)h->receiver);
}

static enum rp_code list_halves(const struct rp_job *job, size_t nclocks, rp_half_message_vec *out,
                                struct rp_err *err)
{
    for (size_t i = 0; i < job->nnodes; i++) {
        size_t clock = rp_job_clock_of(job, job->nodes[i].id);

        for (size_t k = 0; clock < nclocks && k < job->nodes[i].halves.n; k++) {
            const struct rp_job_half *h = &job->nodes[i].halves.at[k];
            struct rp_half_message half = {.key = rp_job_message_key(h),
                                           .ns = h->ns,
                                           .rank = (uint32_t)clock,
                                           .is_begin = h->sent};

            RP_TRY(rp_vec_push(out, half, err));
        }
    }
    return RP_OK;
}

/* If a log lacks a record, the messages after it are matched wrongly and seem to be received long
   before they were sent. Between two clocks, a message is dropped if its time is below the lowest
   tenth by more than the clocks may differ plus FAR times the distance from there to the median. */
#define FAR 3
RP_DECISION(FAR, "times the distance from the lowest tenth to the median",
            "so far below the lowest tenth a message of another match is, not a quick one",
            "job/a_message_that_is_far_too_quick_is_dropped");
static enum rp_code drop_mismatched(rp_clock_message_vec *v, size_t nclocks, struct rp_err *err)
{
    int64_t *took = malloc((v->n + 1) * sizeof *took), low, middle;
    size_t a, b, i, n, kept;

    RP_TRY(rp_err_need(took, err, "aligning clocks"));
    for (a = 0; a < nclocks; a++)
        for (b = 0; b < nclocks; b++) {
            for (i = n = 0; i < v->n; i++)
                if (v->at[i].from == a && v->at[i].to == b)
                    took[n++] = rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns);
            if (n < 10)
                continue;
            rp_ns_sort(took, n);
            low = took[n / 10];
            middle = took[n / 2];
            low = rp_ns_between(
                rp_ns_sum(FAR * rp_ns_between(low, middle), INT64_C(2) * RP_EARLY_NS), low);
            for (i = kept = 0; i < v->n; i++)
                if (v->at[i].from != a || v->at[i].to != b ||
                    rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns) >= low)
                    v->at[kept++] = v->at[i];
            v->n = kept;
        }
    free(took);
    return RP_OK;
}

struct direction {    /* messages from one clock to another */
    int64_t least_ns; /* INT64_MAX if nothing was sent */
    double support;   /* number of messages that took hardly longer than the fastest one */
};

static void find_directions(const rp_clock_message_vec *v, size_t nclocks,
                            struct direction *directions)
{
    for (size_t i = 0; i < nclocks * nclocks; i++)
        directions[i] = (struct direction){INT64_MAX, 0};
    for (size_t i = 0; i < v->n; i++) {
        struct direction *x = &directions[v->at[i].from * nclocks + v->at[i].to];
        int64_t took = rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns);

        x->least_ns = took < x->least_ns ? took : x->least_ns;
    }
    for (size_t i = 0; i < v->n; i++) {
        struct direction *x = &directions[v->at[i].from * nclocks + v->at[i].to];

        x->support +=
            rp_ns_between(x->least_ns, rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns)) <=
            INT64_C(2) * RP_JOB_ROUNDING_NS;
    }
}

/* Returns half the shortest round trip between any two clocks: every message took at least that. */
static int64_t least_message_ns(const struct direction *directions, size_t nclocks)
{
    int64_t least = INT64_MAX;

    for (size_t a = 0; a < nclocks; a++)
        for (size_t b = 0; b < a; b++) {
            const struct direction *there = &directions[a * nclocks + b],
                                   *back = &directions[b * nclocks + a];
            int64_t half = rp_ns_sum(there->least_ns, back->least_ns) / 2;

            if (there->least_ns != INT64_MAX && back->least_ns != INT64_MAX && half < least)
                least = half;
        }
    return least == INT64_MAX || least < 0 ? 0 : least;
}

/* If even the fastest message of one direction waited for others, the round trip is longer than
   necessary. Most of the excess belongs to the direction in which only few messages were as fast:
   its messages are shortened by that much, and all messages by the least time of a message. */
static enum rp_code shorten_messages(rp_clock_message_vec *v, size_t nclocks, struct rp_err *err)
{
    struct direction *directions = malloc((nclocks * nclocks + 1) * sizeof *directions);

    RP_TRY(rp_err_need(directions, err, "aligning clocks"));
    find_directions(v, nclocks, directions);
    int64_t least = least_message_ns(directions, nclocks);
    for (size_t i = 0; i < v->n; i++) {
        struct rp_clock_message *m = &v->at[i];
        const struct direction *there = &directions[m->from * nclocks + m->to];
        const struct direction *back = &directions[m->to * nclocks + m->from];
        double more = back->least_ns == INT64_MAX
                          ? 0
                          : (double)rp_ns_sum(there->least_ns, back->least_ns) - 2 * (double)least;
        double off = (double)least - 2 * RP_JOB_ROUNDING_NS;

        off += more > 0 ? more * back->support / (there->support + back->support) : 0;
        m->received_ns -= off > 0 ? (int64_t)off : 0;
    }
    free(directions);
    return RP_OK;
}

static enum rp_code clocks_of_servers(const struct rp_job *job, bool likely,
                                      const uint32_t *clock_of, size_t n, struct rp_arena *arena,
                                      struct rp_clocks *out, struct rp_err *err)
{
    rp_half_message_vec halves = {0};
    rp_clock_message_vec messages = {0};
    enum rp_code code = list_halves(job, n, &halves, err);

    if (code == RP_OK)
        code = rp_half_messages_join(&halves, &messages, err);
    if (code == RP_OK && likely)
        code = drop_mismatched(&messages, n, err);
    if (code == RP_OK && likely)
        code = shorten_messages(&messages, n, err);
    if (code == RP_OK) {
        struct rp_clock_input in = {.nranks = n,
                                    .clock_of = clock_of,
                                    .nmessages = messages.n,
                                    .messages = messages.at,
                                    .tolerance_ns = RP_CLOCK_TOLERANCE_NS};

        code = rp_clocks_find(&in, arena, out, err);
    }
    RP_EACH(rp_vec_release, &halves, &messages);
    return code;
}

/* ------------------------------------------------------------------ both */

enum rp_code rp_clocks_of_job(const struct rp_job *job, bool likely, struct rp_arena *arena,
                              struct rp_clocks *out, struct rp_err *err)
{
    size_t n = job->nranks + rp_job_servers(job);
    uint32_t *clock_of = RP_ARENA_NEW(arena, uint32_t, n + 1);

    RP_TRY(rp_err_need(clock_of, err, "aligning clocks"));

    /* Sets for each rank the first rank of its host; a server has its own clock. */
    uint32_t r, k;
    for (r = 0; r < job->nranks; r++) {
        for (k = 0; strcmp(job->ranks[k].host, job->ranks[r].host) != 0; k++)
            ;
        clock_of[r] = k;
    }
    for (; r < n; r++)
        clock_of[r] = r;
    return job->has_servers ? clocks_of_servers(job, likely, clock_of, n, arena, out, err)
                            : clocks_of_rings(job, clock_of, arena, out, err);
}

static void align_span(const struct rp_clock *clock, int64_t *begin_ns, int64_t *dur_ns)
{
    int64_t end = rp_clock_time(clock, rp_ns_sum(*begin_ns, *dur_ns));

    *begin_ns = rp_clock_time(clock, *begin_ns);
    *dur_ns = rp_ns_between(*begin_ns, end);
}

enum rp_code rp_job_align(struct rp_job *job, struct rp_err *err)
{
    struct rp_clocks clocks;

    RP_TRY(rp_clocks_of_job(job, true, &job->arena, &clocks, err));
    for (size_t i = 0; i < job->nnodes; i++) {
        size_t clock = rp_job_clock_of(job, job->nodes[i].id);

        if (clock < clocks.n) {
            struct rp_job_node *node = &job->nodes[i];
            for (size_t k = 0; k < node->halves.n; k++)
                node->halves.at[k].ns = rp_clock_time(&clocks.at[clock], node->halves.at[k].ns);
            for (size_t k = 0; k < node->ops.n; k++)
                align_span(&clocks.at[clock], &node->ops.at[k].begin_ns, &node->ops.at[k].dur_ns);
        }
    }
    for (size_t r = 0; r < job->nranks; r++) {
        struct rp_job_rank *x = &job->ranks[r];

        for (size_t i = 0; i < x->ops.n; i++)
            align_span(&clocks.at[r], &x->ops.at[i].begin_ns, &x->ops.at[i].dur_ns);
        for (size_t i = 0; i < x->transfers.n; i++)
            align_span(&clocks.at[r], &x->transfers.at[i].begin_ns, &x->transfers.at[i].dur_ns);
        for (size_t i = 0; i < x->spans.n; i++) {
            x->spans.at[i].begin_ns = rp_clock_time(&clocks.at[r], x->spans.at[i].begin_ns);
            x->spans.at[i].end_ns = rp_clock_time(&clocks.at[r], x->spans.at[i].end_ns);
        }
    }
    return RP_OK;
}
