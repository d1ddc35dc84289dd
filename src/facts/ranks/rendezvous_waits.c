/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds who waits for whom in a rendezvous, and what a late rank costs.
 *
 *     all_reduce, all_gather, reduce_scatter, all_to_all, barrier   each waits for the last one
 *     broadcast, scatter      each waits for the root, and the root for nobody
 *     the same, in a ring     who ends with the last one has passed data on to it, and waits for it
 *     reduce, gather, others  the root waits for the last one; who only sends may leave before
 *     MPI_Wait of any of them it may have ended before its last rank began to wait
 *
 * Roots are rarely recorded. No participant ends before the root begins, and the root, which has
 * nothing to receive, does not end after all others. Of those that fit, the one that arrived last
 * is assumed to be the root. If none fits, nobody waits for a rank that comes after it left.
 *
 * A rank that is late delays all collectives that are under way at that time, but only once: if its
 * margins overlap in time, each moment counts for one of them. Sorting dominates the cost.
 */
#include "facts/ranks/rendezvous.h"

#include "base/order.h"
#include "facts/clocks/sources.h"

#include <stdlib.h>

static const struct rp_collective *collective_of(const struct rp_collectives *const *ranks,
                                                 const struct rp_rendezvous *m, uint32_t i)
{
    return &ranks[m->rank[i]]->list.at[m->at[i]];
}

static int64_t begin_of(const struct rp_rendezvous_list *list,
                        const struct rp_collectives *const *ranks, const struct rp_rendezvous *m,
                        uint32_t i)
{
    return rp_clock_time(&list->clocks[m->rank[i]], collective_of(ranks, m, i)->begin_ns);
}

static int64_t duration_of(const struct rp_collectives *const *ranks, const struct rp_rendezvous *m,
                           uint32_t i)
{
    const struct rp_collective *c = collective_of(ranks, m, i);

    return rp_ns_between(c->begin_ns, c->end_ns);
}

/* In a ring a rank passes on what it gets, so it ends when the next one has taken it. */
static bool passes_on(const struct rp_rendezvous_list *list,
                      const struct rp_collectives *const *ranks, const struct rp_rendezvous *m,
                      uint32_t i)
{
    int64_t end = rp_ns_sum(begin_of(list, ranks, m, i), duration_of(ranks, m, i)), after;

    if (i == m->source || i == m->last || m->source == m->last || end <= m->last_ns)
        return false;
    after = rp_ns_between(rp_ns_sum(m->last_ns, duration_of(ranks, m, m->last)), end);
    return after <= RP_CLOCK_TOLERANCE_NS && after >= -RP_CLOCK_TOLERANCE_NS;
}

static uint32_t gate_of(const struct rp_rendezvous_list *list,
                        const struct rp_collectives *const *ranks, const struct rp_rendezvous *m,
                        uint32_t i)
{
    return m->source == RP_NONE || passes_on(list, ranks, m, i) ? m->last : m->source;
}

uint32_t rp_rendezvous_awaited(const struct rp_rendezvous_list *list,
                               const struct rp_collectives *const *ranks,
                               const struct rp_rendezvous *m, uint32_t i)
{
    return rp_rendezvous_wait(list, ranks, m, i) > 0 ? gate_of(list, ranks, m, i) : i;
}

int64_t rp_rendezvous_wait(const struct rp_rendezvous_list *list,
                           const struct rp_collectives *const *ranks, const struct rp_rendezvous *m,
                           uint32_t i)
{
    uint32_t awaited = gate_of(list, ranks, m, i);
    int64_t gate = awaited == m->last ? m->last_ns : begin_of(list, ranks, m, awaited);
    int64_t ns = rp_ns_between(begin_of(list, ranks, m, i), gate), inside;

    if (ns <= 0)
        return 0;
    inside = duration_of(ranks, m, i);
    return ns <= inside ? ns : m->open ? 0 : inside;
}

static enum rp_code add_times(const struct rp_rendezvous_list *list,
                              const struct rp_collectives *const *ranks,
                              const struct rp_rendezvous *m, rp_interval_vec *inside,
                              rp_interval_vec *waits, struct rp_err *err)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct rp_collective *c = collective_of(ranks, m, i);
        int64_t ns = rp_rendezvous_wait(list, ranks, m, i);
        struct rp_interval all = {c->begin_ns, c->end_ns};
        struct rp_interval wait = {c->begin_ns, rp_ns_sum(c->begin_ns, ns)};

        RP_TRY(rp_vec_push(&inside[m->rank[i]], all, err));
        if (ns > 0)
            RP_TRY(rp_vec_push(&waits[m->rank[i]], wait, err));
    }
    return RP_OK;
}

enum rp_code rp_rendezvous_sum(const struct rp_rendezvous_list *list,
                               const struct rp_collectives *const *ranks, size_t n,
                               struct rp_rendezvous_sums *out, rp_interval_vec *waits,
                               struct rp_err *err)
{
    rp_interval_vec *inside = calloc(n + 1, sizeof *inside);
    enum rp_code code = inside ? RP_OK : rp_err_nomem(err, "matching collectives");

    for (size_t i = 0; i < list->n && code == RP_OK; i++)
        code = add_times(list, ranks, &list->at[i], inside, waits, err);
    for (size_t i = 0; inside && i < n; i++) {
        inside[i].n = rp_union_sort(inside[i].at, inside[i].n);
        waits[i].n = rp_union_sort(waits[i].at, waits[i].n);
        out[i].wait_ns = rp_union_length(waits[i].at, waits[i].n);
        out[i].transfer_ns =
            rp_ns_between(out[i].wait_ns, rp_union_length(inside[i].at, inside[i].n));
        rp_vec_release(&inside[i]);
    }
    free(inside);
    return code;
}

/* ------------------------------------------------------------------ roots */

/* Whether a and b are on different clocks (of known hosts, or moved), so that they can be compared
   only within their uncertainty, which is returned; INT64_MAX: not at all. */
static int64_t doubt_of(const struct rp_clock *a, const struct rp_collectives *of_a,
                        const struct rp_clock *b, const struct rp_collectives *of_b)
{
    bool known = (of_a->boot && of_b->boot) || (of_a->host && of_b->host);

    if (a->clock == b->clock || (!known && !a->used && !b->used))
        return -1;
    if ((a->used && a->uncertainty_ns < 0) || (b->used && b->uncertainty_ns < 0))
        return INT64_MAX;
    return rp_ns_sum(a->uncertainty_ns > 0 ? a->uncertainty_ns : 0,
                     b->uncertainty_ns > 0 ? b->uncertainty_ns : 0);
}

/* The two earliest and latest ends of a rendezvous, so that one participant can be left out. */
struct ends {
    int64_t first_ns, next_ns, last_ns, before_ns;
    uint32_t first, next; /* who ends then */
};

static struct ends ends_of(const struct rp_rendezvous_list *list,
                           const struct rp_collectives *const *ranks, const struct rp_rendezvous *m)
{
    struct ends e = {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, 0, 0};

    for (uint32_t i = 0; i < m->n; i++) {
        int64_t end = rp_ns_sum(begin_of(list, ranks, m, i), duration_of(ranks, m, i));

        if (end < e.first_ns) {
            e.next_ns = e.first_ns;
            e.next = e.first;
            e.first_ns = end;
            e.first = i;
        } else if (end < e.next_ns) {
            e.next_ns = end;
            e.next = i;
        }
        if (end > e.last_ns) {
            e.before_ns = e.last_ns;
            e.last_ns = end;
        } else if (end > e.before_ns) {
            e.before_ns = end;
        }
    }
    return e;
}

static uint32_t find_source(const struct rp_rendezvous_list *list,
                            const struct rp_collectives *const *ranks,
                            const struct rp_rendezvous *m)
{
    struct ends e = ends_of(list, ranks, m);
    uint32_t i, source = RP_NONE;
    int64_t latest = 0;

    for (i = 0; i < m->n; i++) {
        int64_t begin = begin_of(list, ranks, m, i);
        int64_t end = rp_ns_sum(begin, duration_of(ranks, m, i));
        int64_t first = e.first == i ? e.next_ns : e.first_ns;
        uint32_t a = m->rank[i], b = m->rank[e.first == i ? e.next : e.first];
        bool sure = doubt_of(&list->clocks[a], ranks[a], &list->clocks[b], ranks[b]) < 0;
        int64_t last = end == e.last_ns ? e.before_ns : e.last_ns;

        if (begin > rp_ns_sum(first, sure ? 0 : RP_CLOCK_TOLERANCE_NS) ||
            end > rp_ns_sum(last, RP_CLOCK_TOLERANCE_NS) || (source != RP_NONE && begin <= latest))
            continue;
        source = i;
        latest = begin;
    }
    return source;
}

/* ------------------------------------------------------------------ delays */

/* How long after the second last arrival somebody was still waiting for the last one. */
static int64_t margin_of(const struct rp_rendezvous_list *list,
                         const struct rp_collectives *const *ranks, const struct rp_rendezvous *m)
{
    int64_t most = m->second_ns;
    uint32_t i;

    if (m->source != RP_NONE && m->source != m->last) { /* it only receives */
        for (i = 0; i < m->n && !passes_on(list, ranks, m, i);)
            i++;
        return i < m->n ? rp_ns_between(m->second_ns, m->last_ns) : 0;
    }
    for (i = 0; i < m->n && most < m->last_ns; i++) {
        int64_t end = rp_ns_sum(begin_of(list, ranks, m, i), duration_of(ranks, m, i));

        if (i != m->last && end > most && (!m->open || end >= m->last_ns))
            most = end < m->last_ns ? end : m->last_ns;
    }
    return rp_ns_between(m->second_ns, most);
}

/* Whether another rank may have arrived later than the last one. */
static bool is_doubtful(const struct rp_rendezvous_list *list,
                        const struct rp_collectives *const *ranks, const struct rp_rendezvous *m)
{
    uint32_t i, last = m->rank[m->last];

    for (i = 0; i < m->n; i++) {
        uint32_t r = m->rank[i];
        int64_t doubt = doubt_of(&list->clocks[last], ranks[last], &list->clocks[r], ranks[r]);

        if (i != m->last && rp_ns_between(begin_of(list, ranks, m, i), m->last_ns) <= doubt)
            return true;
    }
    return false;
}

/* A delay of a rank, in time. */
struct delay {
    uint32_t rank;
    int64_t begin_ns, end_ns;
    struct rp_rendezvous *of;
};

RP_ORDER(by_rank_begin, struct delay, RP_UP(rank), RP_UP(begin_ns), RP_UP(end_ns), RP_UP(of))

enum rp_code rp_rendezvous_set_delays(struct rp_rendezvous_list *list,
                                      const struct rp_collectives *const *ranks, struct rp_err *err)
{
    struct delay *all = malloc((list->n + 1) * sizeof *all);
    int64_t until = INT64_MIN;
    size_t i, n = 0;

    RP_TRY(rp_err_need(all, err, "matching collectives"));
    list->ndoubtful = 0;
    for (i = 0; i < list->n; i++) {
        struct rp_rendezvous *m = &list->at[i];

        uint8_t kind = collective_of(ranks, m, 0)->kind;
        m->open = false;
        for (uint32_t k = 0; k < m->n; k++)
            m->open = m->open || !rp_collective_is_mutual(collective_of(ranks, m, k));
        m->source = RP_NONE;
        if (kind == RP_COLL_BROADCAST || kind == RP_COLL_SCATTER)
            m->source = find_source(list, ranks, m);
        m->margin_ns = margin_of(list, ranks, m);
        m->doubtful = m->margin_ns > 0 && is_doubtful(list, ranks, m);
        m->delay_ns = 0;
        list->ndoubtful += m->doubtful;
        if (m->margin_ns > 0 && !m->doubtful &&
            !(m->senders && rp_rendezvous_are_stages(list, m->rank[0], m->rank[1])))
            all[n++] = (struct delay){m->rank[m->last], m->second_ns,
                                      rp_ns_sum(m->second_ns, m->margin_ns), m};
    }
    if (n)
        qsort(all, n, sizeof *all, by_rank_begin);
    for (i = 0; i < n; i++) {
        int64_t begin = all[i].begin_ns;

        if (!i || all[i].rank != all[i - 1].rank)
            until = INT64_MIN;
        begin = begin > until ? begin : until;
        if (all[i].end_ns <= begin)
            continue;
        all[i].of->delay_ns = rp_ns_between(begin, all[i].end_ns);
        until = all[i].end_ns;
    }
    free(all);
    return RP_OK;
}
