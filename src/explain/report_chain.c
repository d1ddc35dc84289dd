/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The i-th communication kernel of the k-th communication stream is one collective where its name
 * is the same on every rank. Times of ranks are compared on the clock of the first, moved by the
 * bases of the files. Linear in collectives times ranks, after sorting them.
 */
#include "explain/report_chain.h"

#include <stdlib.h>
#include <string.h>

/* A matched collective: where it stands in the list of each rank. */
struct meeting {
    int64_t last_ns; /* when the last rank came, on the first rank's clock */
    uint32_t last;   /* that rank */
    uint32_t *at;    /* by rank */
};

struct linker {
    const struct rp_report_input *in;
    size_t n;
    struct rp_arena *arena;
    struct rp_chain *out;
    size_t nmeetings;
    struct meeting *meetings;
    int64_t *offset_ns; /* add to a rank's time for the first rank's clock */
};

static const struct rp_report_comm *comm_of(const struct linker *l, size_t rank, uint32_t at)
{
    return &l->in[rank].part->comms.at[at];
}

static int64_t start_of(const struct linker *l, size_t rank, uint32_t at)
{
    return rp_ns_sum(comm_of(l, rank, at)->begin_ns, l->offset_ns[rank]);
}

/* Where stream k begins in a rank's list, and how many it has. */
static uint32_t stream_range(const struct rp_report_part *p, uint32_t k, uint32_t *count)
{
    uint32_t first = 0, i;

    while (first < p->comms.n && p->comms.at[first].stream < k)
        first++;
    for (i = first; i < p->comms.n && p->comms.at[i].stream == k; i++)
        ;
    *count = i - first;
    return first;
}

/* Notes a meeting where the names agree. */
static enum rp_code meet(struct linker *l, const uint32_t *first, uint32_t i, struct rp_err *err)
{
    struct meeting *m = &l->meetings[l->nmeetings];
    size_t r;

    m->at = RP_ARENA_NEW(l->arena, uint32_t, l->n);
    if (!m->at)
        return rp_err_nomem(err, "matching collectives");
    for (r = 0; r < l->n; r++) {
        m->at[r] = first[r] + i;
        if (comm_of(l, r, m->at[r])->name != comm_of(l, 0, m->at[0])->name)
            return RP_OK;
        if (r == 0 || start_of(l, r, m->at[r]) > m->last_ns) {
            m->last_ns = start_of(l, r, m->at[r]);
            m->last = (uint32_t)r;
        }
    }
    l->nmeetings++;
    return RP_OK;
}

static enum rp_code match(struct linker *l, struct rp_err *err)
{
    uint32_t *first = RP_ARENA_NEW(l->arena, uint32_t, l->n + 1), k, i, least, count;
    size_t r, most = SIZE_MAX;

    for (r = 0; r < l->n; r++)
        most = l->in[r].part->comms.n < most ? l->in[r].part->comms.n : most;
    l->meetings = RP_ARENA_NEW(l->arena, struct meeting, most + 1);
    if (!first || !l->meetings)
        return rp_err_nomem(err, "matching collectives");
    for (k = 0;; k++) {
        least = UINT32_MAX;
        for (r = 0; r < l->n; r++) {
            first[r] = stream_range(l->in[r].part, k, &count);
            least = count < least ? count : least;
        }
        if (least == 0)
            return RP_OK;
        for (i = 0; i < least; i++)
            RP_TRY(meet(l, first, i, err));
    }
}

/* A collective cannot end before its last rank came: where one in ten does, clocks differ. */
static bool clocks_differ(const struct linker *l)
{
    size_t i, r, wrong = 0;

    for (i = 0; i < l->nmeetings; i++) {
        bool early = false;

        for (r = 0; r < l->n; r++)
            early |= rp_ns_sum(comm_of(l, r, l->meetings[i].at[r])->end_ns, l->offset_ns[r]) <
                     l->meetings[i].last_ns;
        wrong += early;
    }
    return wrong * 10 > l->nmeetings;
}

static int64_t second_last(const struct linker *l, const struct meeting *m)
{
    int64_t second = INT64_MIN;
    size_t r;

    for (r = 0; r < l->n; r++)
        if (r != m->last && start_of(l, r, m->at[r]) > second)
            second = start_of(l, r, m->at[r]);
    return second;
}

static int64_t uncovered(const rp_interval_vec *compute, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return 0;
    return rp_ns_between(rp_union_covers(compute->at, compute->n, begin_ns, end_ns),
                         rp_ns_between(begin_ns, end_ns));
}

static void count_meeting(struct linker *l, const struct meeting *m)
{
    int64_t margin = rp_ns_between(second_last(l, m), m->last_ns);
    size_t r;

    l->out->ranks[m->last].last_count++;
    rp_ns_add(&l->out->ranks[m->last].margin_ns, margin);
    rp_ns_add(&l->out->margin_ns, margin);
    for (r = 0; r < l->n; r++) {
        const struct rp_report_comm *c = comm_of(l, r, m->at[r]);
        int64_t last = rp_ns_between(l->offset_ns[r], m->last_ns);
        int64_t until = last < c->end_ns ? last : c->end_ns;

        rp_ns_add(&l->out->ranks[r].wait_ns, rp_ns_between(c->begin_ns, last));
        rp_ns_add(&l->out->ranks[r].transfer_ns, rp_ns_between(last, c->end_ns));
        rp_ns_add(&l->out->ranks[r].exposed_wait_ns,
                  uncovered(&l->in[r].part->compute, c->begin_ns, until));
    }
}

/* Adds the gaps of a rank in [from, to) by cause. */
static void add_gaps(struct linker *l, size_t rank, int64_t from_ns, int64_t to_ns)
{
    const rp_gap_vec *gaps = &l->in[rank].part->gaps;
    size_t low = 0, high = gaps->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (gaps->at[middle].end_ns <= from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < gaps->n && gaps->at[low].begin_ns < to_ns; low++)
        rp_ns_add(&l->out->cause_ns[gaps->at[low].cause],
                  rp_ns_common(gaps->at[low].begin_ns, gaps->at[low].end_ns, from_ns, to_ns));
}

static int by_last(const void *pa, const void *pb)
{
    const struct meeting *a = pa, *b = pb;

    return (a->last_ns > b->last_ns) - (a->last_ns < b->last_ns);
}

/* From meeting to meeting along the ranks that came last. */
static enum rp_code walk(struct linker *l, struct rp_err *err)
{
    int64_t *free_ns = RP_ARENA_NEW(l->arena, int64_t, l->n + 1);
    size_t i, r;

    if (!free_ns)
        return rp_err_nomem(err, "matching collectives");
    for (r = 0; r < l->n; r++)
        free_ns[r] = l->in[r].part->b.begin_ns;
    if (l->nmeetings)
        qsort(l->meetings, l->nmeetings, sizeof *l->meetings, by_last);
    for (i = 0; i < l->nmeetings; i++) {
        const struct meeting *m = &l->meetings[i];
        const struct rp_report_comm *c = comm_of(l, m->last, m->at[m->last]);

        count_meeting(l, m);
        add_gaps(l, m->last, free_ns[m->last], c->begin_ns);
        rp_ns_add(&l->out->transfer_ns,
                  uncovered(&l->in[m->last].part->compute, c->begin_ns, c->end_ns));
        for (r = 0; r < l->n; r++)
            if (comm_of(l, r, m->at[r])->end_ns > free_ns[r])
                free_ns[r] = comm_of(l, r, m->at[r])->end_ns;
    }
    add_gaps(l, l->out->lead, free_ns[l->out->lead], l->in[l->out->lead].part->b.end_ns);
    return RP_OK;
}

static int64_t lost_alone(const struct rp_report_part *p)
{
    return rp_ns_sum(p->b.idle_ns, p->b.exposed_comm_ns);
}

/* Nothing ties the ranks together: the one with most idle time and exposed communication speaks for
   the run. */
static void alone(struct linker *l)
{
    const struct rp_report_part *p;
    size_t r;

    l->out->lead = 0;
    for (r = 1; r < l->n; r++)
        if (lost_alone(l->in[r].part) > lost_alone(l->in[l->out->lead].part))
            l->out->lead = r;
    p = l->in[l->out->lead].part;
    add_gaps(l, l->out->lead, p->b.begin_ns, p->b.end_ns);
    l->out->transfer_ns = p->b.exposed_comm_ns;
}

enum rp_code rp_chain_make(const struct rp_report_input *ranks, size_t n, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err)
{
    struct linker l = {.in = ranks, .n = n, .arena = arena, .out = out};
    size_t r;

    *out = (struct rp_chain){0};
    out->ranks = RP_ARENA_NEW(arena, struct rp_chain_rank, n + 1);
    l.offset_ns = RP_ARENA_NEW(arena, int64_t, n + 1);
    if (!out->ranks || !l.offset_ns)
        return rp_err_nomem(err, "matching collectives");
    for (r = 0; r < n; r++) {
        l.offset_ns[r] = rp_ns_between(ranks[0].part->base_ns, ranks[r].part->base_ns);
        if (rp_ns_sum(ranks[r].part->b.end_ns, l.offset_ns[r]) >
            rp_ns_sum(ranks[out->lead].part->b.end_ns, l.offset_ns[out->lead]))
            out->lead = r;
    }
    if (n > 1)
        RP_TRY(match(&l, err));
    out->clocks_differ = clocks_differ(&l);
    out->ncollectives = out->clocks_differ ? 0 : l.nmeetings;
    if (out->ncollectives)
        return walk(&l, err);
    alone(&l);
    return RP_OK;
}
