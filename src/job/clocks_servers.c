/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of a job with servers (BytePS). A worker's log and the traces of its ranks share a clock;
 * the log of a server's messages and that of its work another. What was sent and what was received
 * are matched by their occurrence number. Sorting dominates.
 */
#include "base/hash.h"
#include "facts/intervals.h"
#include "job/clocks.h"

#include <stdlib.h>
#include <string.h>

/* Times are written in microseconds. */
#define ROUNDING_NS 2000

struct ticket {
    uint64_t key;
    int64_t ns;
    uint32_t clock;
    bool sent;
};

typedef RP_VEC(struct ticket) ticket_vec;

/* Ranks of one host stand together: the k-th host is worker k. */
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
    size_t rank;

    if (id < 8)
        return SIZE_MAX;
    if (id % 2 == 0)
        return job->nranks + (size_t)(id - 8) / 2;
    rank = rank_of_worker(job, (size_t)(id - 9) / 2);
    return rank;
}

size_t rp_job_servers(const struct rp_job *job)
{
    size_t i, n = 0;

    for (i = 0; i < job->nnodes; i++)
        if (job->nodes[i].id >= 8 && job->nodes[i].id % 2 == 0 &&
            (size_t)(job->nodes[i].id - 8) / 2 >= n)
            n = (size_t)(job->nodes[i].id - 8) / 2 + 1;
    return n;
}

static int by_clock_key_time(const void *pa, const void *pb)
{
    const struct ticket *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->sent != b->sent)
        return a->sent ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

uint64_t rp_job_message_key(const struct rp_job_half *h)
{
    uint64_t k = rp_hash_join((uint64_t)h->key, h->kind);

    return rp_hash_join(k, (uint64_t)(uint32_t)h->sender << 32 | (uint32_t)h->receiver);
}

static enum rp_code take_tickets(const struct rp_job *job, size_t nclocks, ticket_vec *out,
                                 struct rp_err *err)
{
    size_t i, k;

    for (i = 0; i < job->nnodes; i++)
        for (k = 0; k < job->nodes[i].halves.n; k++) {
            const struct rp_job_half *h = &job->nodes[i].halves.at[k];
            size_t clock = rp_job_clock_of(job, job->nodes[i].id);
            struct ticket t = {rp_job_message_key(h), h->ns, (uint32_t)clock, h->sent};

            if (clock < nclocks)
                RP_TRY(rp_vec_push(out, t, err));
        }
    return RP_OK;
}

/* The n-th of a key that was sent is the n-th that was received. */
static enum rp_code join_tickets(ticket_vec *v, rp_clock_message_vec *out, struct rp_err *err)
{
    struct ticket *t = v->at;
    size_t i, k, sent, end;

    if (v->n)
        qsort(t, v->n, sizeof *t, by_clock_key_time);
    for (i = 0; i < v->n; i = end) {
        for (sent = i; sent < v->n && t[sent].key == t[i].key && t[sent].sent;)
            sent++;
        for (end = sent; end < v->n && t[end].key == t[i].key;)
            end++;
        for (k = 0; i + k < sent && sent + k < end; k++) {
            struct rp_clock_message m = {t[i + k].clock, t[sent + k].clock, t[i + k].ns,
                                         t[sent + k].ns};

            if (m.from != m.to)
                RP_TRY(rp_vec_push(out, m, err));
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ wrong pairs */

static int by_time(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

/* A log may lack a record: behind it what was received seems to be so long before it was sent.
   Between two clocks a message is left out that took less than the tenth part of the others by more
   than three times what lies between that and their median, and 100 us. */
static enum rp_code drop_wrong(rp_clock_message_vec *v, size_t nclocks, struct rp_err *err)
{
    int64_t *took = malloc((v->n + 1) * sizeof *took), low, middle;
    size_t a, b, i, n, kept;

    if (!took)
        return rp_err_nomem(err, "aligning clocks");
    for (a = 0; a < nclocks; a++)
        for (b = 0; b < nclocks; b++) {
            for (i = n = 0; i < v->n; i++)
                if (v->at[i].from == a && v->at[i].to == b)
                    took[n++] = rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns);
            if (n < 10)
                continue;
            qsort(took, n, sizeof *took, by_time);
            low = took[n / 10];
            middle = took[n / 2];
            low = rp_ns_between(rp_ns_sum(3 * rp_ns_between(low, middle), 100000), low);
            for (i = kept = 0; i < v->n; i++)
                if (v->at[i].from != a || v->at[i].to != b ||
                    rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns) >= low)
                    v->at[kept++] = v->at[i];
            v->n = kept;
        }
    free(took);
    return RP_OK;
}

/* ------------------------------------------------------------------ what is likely */

struct way {
    int64_t least_ns; /* INT64_MAX: nothing was sent */
    double support;   /* how many messages took hardly more */
};

static void find_ways(const rp_clock_message_vec *v, size_t nclocks, struct way *ways)
{
    size_t i;

    for (i = 0; i < nclocks * nclocks; i++)
        ways[i] = (struct way){INT64_MAX, 0};
    for (i = 0; i < v->n; i++) {
        struct way *x = &ways[v->at[i].from * nclocks + v->at[i].to];
        int64_t took = rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns);

        x->least_ns = took < x->least_ns ? took : x->least_ns;
    }
    for (i = 0; i < v->n; i++) {
        struct way *x = &ways[v->at[i].from * nclocks + v->at[i].to];

        x->support +=
            rp_ns_between(x->least_ns, rp_ns_between(v->at[i].sent_ns, v->at[i].received_ns)) <=
            ROUNDING_NS;
    }
}

/* Half the quickest way there and back between any two clocks: so much every message took. */
static int64_t least_way(const struct way *ways, size_t nclocks)
{
    int64_t least = INT64_MAX;
    size_t a, b;

    for (a = 0; a < nclocks; a++)
        for (b = 0; b < a; b++) {
            const struct way *there = &ways[a * nclocks + b], *back = &ways[b * nclocks + a];
            int64_t half = rp_ns_sum(there->least_ns, back->least_ns) / 2;

            if (there->least_ns != INT64_MAX && back->least_ns != INT64_MAX && half < least)
                least = half;
        }
    return least == INT64_MAX || least < 0 ? 0 : least;
}

/* Where even the quickest of one direction waited for others, the round trip is longer than it need
   be. Most of that is of the direction in which only few messages were so quick: its messages
   are taken to be that much quicker, and what any message takes is taken off all. */
static enum rp_code shorten(rp_clock_message_vec *v, size_t nclocks, struct rp_err *err)
{
    struct way *ways = malloc((nclocks * nclocks + 1) * sizeof *ways);
    int64_t least;
    size_t i;

    if (!ways)
        return rp_err_nomem(err, "aligning clocks");
    find_ways(v, nclocks, ways);
    least = least_way(ways, nclocks);
    for (i = 0; i < v->n; i++) {
        struct rp_clock_message *m = &v->at[i];
        const struct way *there = &ways[m->from * nclocks + m->to];
        const struct way *back = &ways[m->to * nclocks + m->from];
        double more = back->least_ns == INT64_MAX
                          ? 0
                          : (double)rp_ns_sum(there->least_ns, back->least_ns) - 2 * (double)least;
        double off = (double)least - ROUNDING_NS;

        off += more > 0 ? more * back->support / (there->support + back->support) : 0;
        m->received_ns -= off > 0 ? (int64_t)off : 0;
    }
    free(ways);
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

/* Ranks of a host share a clock; each server has its own. */
static void share_clocks(const struct rp_job *job, uint32_t *clock_of, size_t nclocks)
{
    uint32_t r;

    for (r = 0; r < nclocks; r++)
        clock_of[r] = r && r < job->nranks && !strcmp(job->ranks[r].host, job->ranks[r - 1].host)
                          ? clock_of[r - 1]
                          : r;
}

enum rp_code rp_clocks_of_servers(const struct rp_job *job, bool likely, struct rp_arena *arena,
                                  struct rp_clocks *out, struct rp_err *err)
{
    size_t n = job->nranks + rp_job_servers(job);
    uint32_t *clock_of = RP_ARENA_NEW(arena, uint32_t, n + 1);
    ticket_vec tickets = {0};
    rp_clock_message_vec messages = {0};
    enum rp_code code =
        clock_of ? take_tickets(job, n, &tickets, err) : rp_err_nomem(err, "aligning clocks");

    if (code == RP_OK)
        code = join_tickets(&tickets, &messages, err);
    if (code == RP_OK && likely)
        code = drop_wrong(&messages, n, err);
    if (code == RP_OK && likely)
        code = shorten(&messages, n, err);
    if (code == RP_OK) {
        struct rp_clock_input in = {.nranks = n,
                                    .clock_of = clock_of,
                                    .nmessages = messages.n,
                                    .messages = messages.at,
                                    .tolerance_ns = RP_CLOCK_TOLERANCE_NS};

        share_clocks(job, clock_of, n);
        code = rp_clocks_find(&in, arena, out, err);
    }
    rp_vec_release(&tickets);
    rp_vec_release(&messages);
    return code;
}
