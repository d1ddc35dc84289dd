/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks meet is a fact (rendezvous.h). The chain is walked from the end of the run
 * backwards: from the rank that ends last to its last collective, through that to the rank that
 * came last to it, and so on. Times of ranks are compared on the clock of the first. Linear in
 * collectives after sorting those of each rank by their ends.
 */
#include "explain/report/chain.h"

#include "facts/rendezvous.h"

#include <stdlib.h>
#include <string.h>

/* A meeting as one of its ranks sees it. */
struct member {
    int64_t end_ns; /* on the first rank's clock */
    uint32_t meeting, at;
};

struct linker {
    const struct rp_report_input *in;
    size_t n;
    struct rp_arena *arena;
    struct rp_chain *out;
    struct rp_rendezvous_list m;
    struct member **members; /* by rank, by end */
    size_t *nmembers;
};

static const struct rp_collective *collective_of(const struct linker *l, uint32_t rank, uint32_t at)
{
    return &l->in[rank].part->collectives.list.at[at];
}

static int64_t uncovered(const rp_interval_vec *compute, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return 0;
    return rp_ns_between(rp_union_covers(compute->at, compute->n, begin_ns, end_ns),
                         rp_ns_between(begin_ns, end_ns));
}

/* Waits and transfers of the ranks of a meeting, and who came last. */
static enum rp_code count_meeting(struct linker *l, const struct rp_rendezvous *m,
                                  rp_interval_vec *waits, struct rp_err *err)
{
    struct rp_chain_rank *last = &l->out->ranks[m->rank[m->last]];
    uint32_t i;

    last->last_count++;
    rp_ns_add(&last->margin_ns, rp_ns_between(m->second_ns, m->last_ns));
    for (i = 0; i < m->n; i++) {
        uint32_t r = m->rank[i];
        const struct rp_collective *c = collective_of(l, r, m->at[i]);
        int64_t came = rp_ns_between(l->m.offset_ns[r], m->last_ns);
        struct rp_interval wait = {c->begin_ns, came < c->end_ns ? came : c->end_ns};

        rp_ns_add(&l->out->ranks[r].wait_ns, rp_ns_between(c->begin_ns, came));
        rp_ns_add(&l->out->ranks[r].transfer_ns, rp_ns_between(came, c->end_ns));
        if (wait.end_ns > wait.begin_ns)
            RP_TRY(rp_vec_push(&waits[r], wait, err));
    }
    return RP_OK;
}

/* Several collectives of a rank may wait at once: what counts is the time in which any does. */
static enum rp_code count_meetings(struct linker *l, struct rp_err *err)
{
    rp_interval_vec *waits = RP_ARENA_NEW(l->arena, rp_interval_vec, l->n + 1);
    enum rp_code code = waits ? RP_OK : rp_err_nomem(err, "matching collectives");
    size_t i, r;

    for (i = 0; i < l->m.n && code == RP_OK; i++)
        code = count_meeting(l, &l->m.at[i], waits, err);
    for (r = 0; waits && r < l->n; r++) {
        waits[r].n = rp_union_sort(waits[r].at, waits[r].n);
        for (i = 0; i < waits[r].n; i++)
            rp_ns_add(
                &l->out->ranks[r].exposed_wait_ns,
                uncovered(&l->in[r].part->compute, waits[r].at[i].begin_ns, waits[r].at[i].end_ns));
        rp_vec_release(&waits[r]);
    }
    return code;
}

/* From the first start to the last end of what ranks meet in. */
static void measure_span(struct linker *l)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    size_t i;

    for (i = 0; i < l->m.n; i++) {
        first = l->m.at[i].first_ns < first ? l->m.at[i].first_ns : first;
        last = l->m.at[i].end_ns > last ? l->m.at[i].end_ns : last;
    }
    l->out->span_ns = l->m.n ? rp_ns_between(first, last) : 0;
}

/* Adds the gaps of a rank in [from, to) by cause, and what it copies there and does nothing else.
 */
static void add_own(struct linker *l, size_t rank, int64_t from_ns, int64_t to_ns)
{
    const struct rp_report_part *p = l->in[rank].part;
    const rp_gap_vec *gaps = &p->gaps;
    size_t low = 0, high = gaps->n;

    if (p->on_device && from_ns < to_ns)
        rp_ns_add(&l->out->copies_ns,
                  rp_ns_between(rp_union_covers(p->kernels.at, p->kernels.n, from_ns, to_ns),
                                rp_union_covers(p->busy.at, p->busy.n, from_ns, to_ns)));

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

static int by_end(const void *pa, const void *pb)
{
    const struct member *a = pa, *b = pb;

    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return (a->meeting > b->meeting) - (a->meeting < b->meeting);
}

static enum rp_code list_members(struct linker *l, struct rp_err *err)
{
    size_t i, r;
    uint32_t k;

    l->members = RP_ARENA_NEW(l->arena, struct member *, l->n + 1);
    l->nmembers = RP_ARENA_NEW(l->arena, size_t, l->n + 1);
    for (r = 0; l->members && l->nmembers && r < l->n; r++) {
        l->members[r] =
            RP_ARENA_NEW(l->arena, struct member, l->in[r].part->collectives.list.n + 1);
        if (!l->members[r])
            return rp_err_nomem(err, "matching collectives");
    }
    if (!l->members || !l->nmembers)
        return rp_err_nomem(err, "matching collectives");
    for (i = 0; i < l->m.n; i++)
        for (k = 0; k < l->m.at[i].n; k++) {
            uint32_t rank = l->m.at[i].rank[k], at = l->m.at[i].at[k];

            l->members[rank][l->nmembers[rank]++] =
                (struct member){rp_ns_sum(collective_of(l, rank, at)->end_ns, l->m.offset_ns[rank]),
                                (uint32_t)i, at};
        }
    for (r = 0; r < l->n; r++)
        if (l->nmembers[r])
            qsort(l->members[r], l->nmembers[r], sizeof **l->members, by_end);
    return RP_OK;
}

/* By how much the others would have gone on earlier without the last rank: from the second last
   start on, while that rank does not compute, and no moment twice. */
static void add_margin(struct linker *l, const struct rp_rendezvous *m, int64_t *until)
{
    int64_t end = m->last_ns < *until ? m->last_ns : *until;
    uint32_t i, r;

    for (i = 0; i < m->n; i++) {
        r = m->rank[i];
        if (i != m->last &&
            rp_ns_sum(collective_of(l, r, m->at[i])->begin_ns, l->m.offset_ns[r]) == m->second_ns)
            break;
    }
    if (i == m->n || end <= m->second_ns)
        return;
    rp_ns_add(&l->out->margin_ns,
              uncovered(&l->in[r].part->compute, rp_ns_between(l->m.offset_ns[r], m->second_ns),
                        rp_ns_between(l->m.offset_ns[r], end)));
    *until = m->second_ns;
}

/* From meeting to meeting, backwards along the ranks that came last. */
static void walk(struct linker *l)
{
    size_t rank = l->out->lead;
    int64_t until = rp_ns_sum(l->in[rank].part->b.end_ns, l->m.offset_ns[rank]);
    int64_t waited = INT64_MAX;

    for (;;) {
        int64_t offset = l->m.offset_ns[rank], from;
        const struct rp_rendezvous *m;
        const struct rp_collective *c;

        while (l->nmembers[rank] && l->members[rank][l->nmembers[rank] - 1].end_ns > until)
            l->nmembers[rank]--;
        from = l->nmembers[rank] ? l->members[rank][l->nmembers[rank] - 1].end_ns
                                 : rp_ns_sum(l->in[rank].part->b.begin_ns, offset);
        add_own(l, rank, rp_ns_between(offset, from), rp_ns_between(offset, until));
        if (!l->nmembers[rank])
            return;
        m = &l->m.at[l->members[rank][--l->nmembers[rank]].meeting];
        rank = m->rank[m->last];
        c = collective_of(l, (uint32_t)rank, m->at[m->last]);
        rp_ns_add(&l->out->transfer_ns,
                  uncovered(&l->in[rank].part->compute, c->begin_ns, c->end_ns));
        add_margin(l, m, &waited);
        until = m->last_ns;
    }
}

static int64_t lost_alone(const struct rp_report_part *p)
{
    return rp_ns_sum(p->b.idle_ns, p->b.exposed_comm_ns);
}

/* Nothing ties the devices together: the rank with most idle time and exposed communication speaks
   for the run. */
static void alone(struct linker *l)
{
    const struct rp_report_part *p;
    size_t r;

    l->out->lead = 0;
    for (r = 1; r < l->n; r++)
        if (lost_alone(l->in[r].part) > lost_alone(l->in[l->out->lead].part))
            l->out->lead = r;
    p = l->in[l->out->lead].part;
    add_own(l, l->out->lead, p->b.begin_ns, p->b.end_ns);
    l->out->transfer_ns = p->b.exposed_comm_ns;
}

static enum rp_code meet(struct linker *l, struct rp_err *err)
{
    const struct rp_collectives **lists =
        RP_ARENA_NEW(l->arena, const struct rp_collectives *, l->n + 1);
    size_t r;

    if (!lists)
        return rp_err_nomem(err, "matching collectives");
    for (r = 0; r < l->n; r++) {
        lists[r] = &l->in[r].part->collectives;
        l->out->beside |= lists[r]->on_host && l->in[r].part->on_device;
    }
    RP_TRY(rp_rendezvous_find(lists, l->n, l->arena, &l->m, err));
    l->out->clocks_differ = l->m.clocks_differ;
    l->out->ncollectives = l->m.clocks_differ ? 0 : l->m.n;
    for (r = 0; r < l->n; r++)
        if (rp_ns_sum(l->in[r].part->b.end_ns, l->m.offset_ns[r]) >
            rp_ns_sum(l->in[l->out->lead].part->b.end_ns, l->m.offset_ns[l->out->lead]))
            l->out->lead = r;
    return RP_OK;
}

enum rp_code rp_chain_make(const struct rp_report_input *ranks, size_t n, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err)
{
    struct linker l = {.in = ranks, .n = n, .arena = arena, .out = out};
    int64_t waited = INT64_MAX;
    size_t i;

    *out = (struct rp_chain){0};
    out->ranks = RP_ARENA_NEW(arena, struct rp_chain_rank, n + 1);
    if (!out->ranks)
        return rp_err_nomem(err, "matching collectives");
    RP_TRY(meet(&l, err));
    if (!out->ncollectives) {
        alone(&l);
        return RP_OK;
    }
    RP_TRY(count_meetings(&l, err));
    measure_span(&l);
    if (!out->beside) {
        RP_TRY(list_members(&l, err));
        walk(&l);
        return RP_OK;
    }
    alone(&l);
    for (i = l.m.n; i > 0; i--)
        add_margin(&l, &l.m.at[i - 1], &waited);
    return RP_OK;
}
