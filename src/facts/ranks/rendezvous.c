/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective of every rank gets a ticket with a key; tickets with the same key are one
 * rendezvous. The key is the process group and sequence number if all ranks have them, because the
 * order of collectives does not show groups of some of the ranks. Without sequence numbers it is
 * the order inside each group, if there are several groups; else the position in the stream, and
 * then only collectives that all ranks have under the same name match. Ranks without any collective
 * are ignored. If a rank recorded fewer collectives in a stream than others, they are aligned by
 * their end times (rendezvous_order.c).
 *
 * A truncated trace may lack any collectives, not just the last ones, because files are not in the
 * order of time. If only their order identifies collectives, such a rank is left out if it has
 * fewer than others, because it would seem late by the distance to its neighbour in the list.
 *
 * The order is misleading if ranks recorded different collectives: other steps, a sample, other
 * groups. The recorded times then contradict it. If collectives of the same name end together on
 * the recorded clocks, these are matched instead; if neither their order nor their ends make sense,
 * none are.
 */
#include "facts/ranks/rendezvous.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/clocks/sources.h"

#include <stdlib.h>

const char *const rp_rendezvous_rule_names[] = {
    [RP_RENDEZVOUS_BY_NONE] = "none",   [RP_RENDEZVOUS_BY_SEQUENCE] = "sequence",
    [RP_RENDEZVOUS_BY_GROUP] = "group", [RP_RENDEZVOUS_BY_ORDER] = "order",
    [RP_RENDEZVOUS_BY_NAME] = "name",   [RP_RENDEZVOUS_BY_TIME] = "time",
    [RP_RENDEZVOUS_BY_PEER] = "peer"};

struct ticket {
    uint64_t key[2];
    uint32_t rank, at;
};

struct matcher {
    const struct rp_collectives *const *ranks;
    size_t nranks;
    struct rp_arena *arena;
    struct rp_rendezvous_list *out;
    RP_VEC(struct ticket) tickets;
    size_t members; /* ranks with at least one collective */
    /* By rank and collective: position in its stream or, if matched by time, in the list of the
       rank that has most collectives; RP_NONE: no match. */
    uint32_t **place;
    bool *left_out;
    bool some_lack; /* a rank has fewer collectives in a stream than others */
    rp_rendezvous_pair_vec pairs;
    size_t npaired; /* operations in them */
    bool **peered;  /* by rank and collective: whether it knows its peer, and has no other match */
    size_t nothers; /* number of collectives that do not */
};

RP_ORDER(by_key, struct ticket, RP_UP(key[0]), RP_UP(key[1]), RP_UP(rank), RP_UP(at))

/* How many collectives of a rank are matched. */
static size_t count_of(const struct matcher *m, size_t rank)
{
    return m->left_out[rank] ? 0 : m->ranks[rank]->list.n;
}

/* ------------------------------------------------------------------ places in streams */

static size_t count_in(const struct rp_collectives *c, uint32_t stream)
{
    size_t i, n = 0;

    for (i = 0; i < c->list.n; i++)
        n += c->list.at[i].stream == stream;
    return n;
}

static size_t items_in(const struct rp_collectives *c, uint32_t stream,
                       struct rp_rendezvous_item *out)
{
    size_t i, n = 0;

    for (i = 0; i < c->list.n; i++)
        if (c->list.at[i].stream == stream)
            out[n++] = (struct rp_rendezvous_item){c->list.at[i].end_ns, c->list.at[i].name_hash};
    return n;
}

/* The positions of the collectives of one rank in a stream, among those of the rank that has most.
 */
static enum rp_code place_rank(struct matcher *m, size_t rank, uint32_t stream, size_t fullest,
                               struct rp_err *err)
{
    const struct rp_collectives *c = m->ranks[rank], *full = m->ranks[fullest];
    struct rp_rendezvous_item *all = malloc((full->list.n + 1) * sizeof *all);
    struct rp_rendezvous_item *some = malloc((c->list.n + 1) * sizeof *some);
    uint32_t *place = malloc((c->list.n + 1) * sizeof *place);
    size_t i, k = 0;

    if (all && some && place) {
        size_t n = items_in(c, stream, some);

        rp_rendezvous_place(all, items_in(full, stream, all), some, n, place);
        for (i = 0; i < c->list.n; i++)
            if (c->list.at[i].stream == stream)
                m->place[rank][i] = place[k++];
    }
    k = all && some && place;
    free(all);
    free(some);
    free(place);
    return k ? RP_OK : rp_err_nomem(err, "matching collectives");
}

static enum rp_code place_stream(struct matcher *m, uint32_t stream, struct rp_err *err)
{
    size_t r, fullest = 0, most = 0, n;

    for (r = 0; r < m->nranks; r++) {
        n = m->left_out[r] ? 0 : count_in(m->ranks[r], stream);
        if (n > most) {
            most = n;
            fullest = r;
        }
    }
    for (r = 0; r < m->nranks; r++) {
        n = m->left_out[r] ? 0 : count_in(m->ranks[r], stream);
        if (n == most || !n)
            continue;
        m->some_lack = true;
        RP_TRY(place_rank(m, r, stream, fullest, err));
    }
    return RP_OK;
}

static enum rp_code find_places(struct matcher *m, struct rp_err *err)
{
    uint32_t s, nstreams = 0;

    m->place = RP_ARENA_NEW(m->arena, uint32_t *, m->nranks + 1);
    for (size_t r = 0; m->place && r < m->nranks; r++) {
        m->place[r] = RP_ARENA_NEW(m->arena, uint32_t, m->ranks[r]->list.n + 1);
        if (!m->place[r])
            return rp_err_nomem(err, "matching collectives");
        for (size_t i = 0; i < m->ranks[r]->list.n; i++)
            m->place[r][i] = m->ranks[r]->list.at[i].index;
        nstreams = m->ranks[r]->nstreams > nstreams ? m->ranks[r]->nstreams : nstreams;
    }
    for (s = 0; m->place && s < nstreams; s++)
        RP_TRY(place_stream(m, s, err));
    return m->place ? RP_OK : rp_err_nomem(err, "matching collectives");
}

/* ------------------------------------------------------------------ partners by time */

#define TOGETHER_NS 50000
RP_DECISION(
    TOGETHER_NS, "ns",
    "ends of one collective on clocks that agree are so close, and one percent of its duration: "
    "they differ by its last transfer and the conversion of device times",
    "facts/ends_are_paired_within_a_reach");
#define SPACING 8
RP_DECISION(SPACING, "parts of the usual time between two collectives",
            "an end that is farther away than one of them may be that of a neighbour",
            "facts/ends_are_paired_within_a_reach");

/* A collective of the rank that has most of them, on the clock of the first rank. */
struct partner {
    int64_t begin_ns, end_ns;
    uint64_t name;
    uint32_t at;
    bool taken;
};

RP_ORDER(by_end, struct partner, RP_UP(end_ns), RP_UP(at))

/* The partner that ends nearest to the collective and overlaps it, among those with its name. */
static struct partner *nearest_partner(struct partner *all, size_t n, int64_t most_ns,
                                       const struct partner *x)
{
    int64_t reach = rp_ns_sum(TOGETHER_NS, rp_ns_between(x->begin_ns, x->end_ns) / 100);
    struct partner *best = NULL;
    int64_t least = INT64_MAX, d;
    size_t i;

    reach = reach < most_ns ? reach : most_ns;
    RP_LOWER_BOUND(i, n, all[i].end_ns < rp_ns_sum(x->end_ns, -reach));
    for (; i < n && all[i].end_ns <= rp_ns_sum(x->end_ns, reach); i++) {
        d = rp_ns_between(all[i].end_ns, x->end_ns);
        d = d < 0 ? -d : d;
        if (all[i].taken || all[i].name != x->name || all[i].begin_ns > x->end_ns ||
            x->begin_ns > all[i].end_ns || d >= least)
            continue;
        best = &all[i];
        least = d;
    }
    return best;
}

/* How far apart the ends of one collective may be, because ends that are as close as those of the
   next collective prove nothing. */
static enum rp_code reach_of(const struct partner *all, size_t n, int64_t *out, struct rp_err *err)
{
    int64_t *spacing = malloc((n + 1) * sizeof *spacing);

    RP_TRY(rp_err_need(spacing, err, "matching collectives"));
    for (size_t i = 1; i < n; i++)
        spacing[i - 1] = rp_ns_between(all[i - 1].end_ns, all[i].end_ns);
    if (n > 1)
        rp_ns_sort(spacing, n - 1);
    *out = n > 1 ? spacing[(n - 1) / 2] / SPACING : INT64_MAX;
    free(spacing);
    return RP_OK;
}

static void pair_rank(struct matcher *m, size_t rank, struct partner *all, size_t n,
                      int64_t most_ns)
{
    const struct rp_collectives *c = m->ranks[rank];
    int64_t offset = m->out->base_ns[rank];

    for (size_t i = 0; i < n; i++)
        all[i].taken = false;
    for (size_t i = 0; i < c->list.n; i++) {
        struct partner x = {rp_ns_sum(c->list.at[i].begin_ns, offset),
                            rp_ns_sum(c->list.at[i].end_ns, offset), c->list.at[i].name_hash, 0,
                            false};
        struct partner *found = nearest_partner(all, n, most_ns, &x);

        m->place[rank][i] = found ? found->at : RP_NONE;
        if (found)
            found->taken = true;
    }
}

/* Pairs the collectives of each rank with those of the rank that has most, which are their own
   partners. */
static enum rp_code find_partners(struct matcher *m, struct rp_err *err)
{
    size_t r, i, most = 0;
    int64_t reach = 0;
    struct partner *all;

    for (r = 1; r < m->nranks; r++)
        most = count_of(m, r) > count_of(m, most) ? r : most;
    m->place = RP_ARENA_NEW(m->arena, uint32_t *, m->nranks + 1);
    all = malloc((m->ranks[most]->list.n + 1) * sizeof *all);
    if (!m->place || !all) {
        free(all);
        return rp_err_nomem(err, "matching collectives");
    }
    for (i = 0; i < m->ranks[most]->list.n; i++) {
        const struct rp_collective *c = &m->ranks[most]->list.at[i];

        all[i] = (struct partner){rp_ns_sum(c->begin_ns, m->out->base_ns[most]),
                                  rp_ns_sum(c->end_ns, m->out->base_ns[most]), c->name_hash,
                                  (uint32_t)i, false};
    }
    qsort(all, m->ranks[most]->list.n, sizeof *all, by_end);
    enum rp_code code = reach_of(all, m->ranks[most]->list.n, &reach, err);
    for (r = 0; code == RP_OK && r < m->nranks; r++) {
        m->place[r] = RP_ARENA_NEW(m->arena, uint32_t, m->ranks[r]->list.n + 1);
        if (m->place[r])
            pair_rank(m, r, all, m->ranks[most]->list.n, reach);
    }
    free(all);
    RP_TRY(code);
    return rp_arena_check(m->arena, "matching collectives", err);
}

/* ------------------------------------------------------------------ tickets */

static enum rp_code write_tickets(struct matcher *m, struct rp_err *err)
{
    bool by_time = m->out->rule == RP_RENDEZVOUS_BY_TIME;
    bool by_order = m->out->rule == RP_RENDEZVOUS_BY_ORDER || by_time;

    m->tickets.n = 0;
    if (by_order)
        RP_TRY(by_time ? find_partners(m, err) : find_places(m, err));
    for (size_t r = 0; r < m->nranks; r++)
        for (size_t i = 0; i < count_of(m, r); i++) {
            const struct rp_collective *c = &m->ranks[r]->list.at[i];
            struct ticket t = {{c->key, 0}, (uint32_t)r, (uint32_t)i};

            if (by_order) {
                t.key[0] = by_time ? 0 : c->stream;
                t.key[1] = m->place[r][i];
            }
            if (!m->peered[r][i] && (by_order ? m->place[r][i] != RP_NONE : c->key != 0))
                RP_TRY(rp_vec_push(&m->tickets, t, err));
        }
    if (m->tickets.n)
        qsort(m->tickets.at, m->tickets.n, sizeof *m->tickets.at, by_key);
    return RP_OK;
}

static const struct rp_collective *collective_of(const struct matcher *m, const struct ticket *t)
{
    return &m->ranks[t->rank]->list.at[t->at];
}

/* Whether tickets with the same key are a rendezvous. */
static bool tickets_agree(const struct matcher *m, const struct ticket *t, size_t n)
{
    bool some = m->out->rule == RP_RENDEZVOUS_BY_SEQUENCE ||
                m->out->rule == RP_RENDEZVOUS_BY_GROUP || m->out->rule == RP_RENDEZVOUS_BY_TIME ||
                (m->out->rule == RP_RENDEZVOUS_BY_ORDER && m->some_lack);

    if (n < 2 || (!some && n != m->members))
        return false;
    /* there are more ranks than the group has, so several groups look alike */
    if (collective_of(m, t)->group_size > 0 && n > (size_t)collective_of(m, t)->group_size)
        return false;
    for (size_t i = 1; i < n; i++)
        if (t[i].rank == t[i - 1].rank ||
            (m->out->rule == RP_RENDEZVOUS_BY_ORDER &&
             collective_of(m, &t[i])->name_hash != collective_of(m, &t[0])->name_hash))
            return false;
    return true;
}

static void add_start(struct rp_rendezvous *m, uint32_t i, int64_t begin_ns)
{
    if (i == 0) {
        m->first_ns = m->last_ns = begin_ns;
        m->second_ns = INT64_MIN;
    } else if (begin_ns > m->last_ns) {
        m->second_ns = m->last_ns;
        m->second = m->last;
        m->last_ns = begin_ns;
        m->last = i;
    } else if (begin_ns > m->second_ns) {
        m->second_ns = begin_ns;
        m->second = i;
    }
    if (begin_ns < m->first_ns)
        m->first_ns = begin_ns;
}

/* Sets the times of a rendezvous with the current offsets. */
static void set_times(const struct matcher *m, struct rp_rendezvous *x)
{
    x->last = x->second = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct rp_collective *c = &m->ranks[x->rank[i]]->list.at[x->at[i]];
        int64_t begin = rp_clock_time(&m->out->clocks[x->rank[i]], c->begin_ns);
        int64_t end = rp_ns_sum(begin, rp_ns_between(c->begin_ns, c->end_ns));

        add_start(x, i, begin);
        x->end_ns = i == 0 || end > x->end_ns ? end : x->end_ns;
        x->first_end_ns = i == 0 || end < x->first_end_ns ? end : x->first_end_ns;
    }
}

int64_t rp_collective_members(const struct rp_collectives *rank, const struct rp_collective *c)
{
    return c->group_size > 0 ? c->group_size : c->group ? 0 : rank->world_size;
}

static enum rp_code add_rendezvous(struct matcher *m, const struct ticket *t, size_t n,
                                   struct rp_err *err)
{
    struct rp_rendezvous *x = &m->out->at[m->out->n];

    *x = (struct rp_rendezvous){.n = (uint32_t)n};
    x->rank = RP_ARENA_NEW(m->arena, uint32_t, n);
    x->at = RP_ARENA_NEW(m->arena, uint32_t, n);
    if (!x->rank || !x->at)
        return rp_err_nomem(err, "matching collectives");
    for (uint32_t i = 0; i < n; i++) {
        x->rank[i] = t[i].rank;
        x->at[i] = t[i].at;
    }
    x->members = rp_collective_members(m->ranks[t->rank], collective_of(m, t));
    x->members = x->members > (int64_t)n ? x->members : (int64_t)n;
    set_times(m, x);
    m->out->n++;
    m->out->nlost -= n;
    return RP_OK;
}

/* Matches all except sends and receives that are matched by their peers. */
static enum rp_code match_by(struct matcher *m, enum rp_rendezvous_rule rule, struct rp_err *err)
{
    size_t i, end, r;

    m->out->rule = rule;
    m->out->n = m->out->nlost = 0;
    for (r = 0; r < m->nranks; r++)
        m->out->nlost += m->ranks[r]->list.n;
    RP_TRY(write_tickets(m, err));
    m->out->at = RP_ARENA_NEW(m->arena, struct rp_rendezvous, m->tickets.n / 2 + m->pairs.n + 1);
    RP_TRY(rp_err_need(m->out->at, err, "matching collectives"));
    for (i = 0; i < m->tickets.n; i = end) {
        const struct ticket *t = &m->tickets.at[i];

        for (end = i + 1; end < m->tickets.n && t->key[0] == m->tickets.at[end].key[0] &&
                          t->key[1] == m->tickets.at[end].key[1];
             end++)
            ;
        if (tickets_agree(m, t, end - i))
            RP_TRY(add_rendezvous(m, t, end - i, err));
    }
    if (!m->out->n && m->pairs.n)
        m->out->rule = RP_RENDEZVOUS_BY_PEER;

    /* Sends and receives that their peers identify. */
    for (size_t k = 0; k < m->pairs.n; k++) {
        const struct rp_rendezvous_pair *p = &m->pairs.at[k];
        struct ticket t[2] = {{{0, 0}, p->rank[0], p->at[0]}, {{0, 0}, p->rank[1], p->at[1]}};
        struct rp_rendezvous *x = &m->out->at[m->out->n];
        RP_TRY(add_rendezvous(m, t, 2, err));
        x->members = 2;
        x->senders = p->senders;
        m->out->nlost += 2;
    }
    m->out->nlost -= m->npaired;
    return RP_OK;
}

/* Whether no rank can leave before all have arrived; kernels of unknown kinds count as such. */
static bool synchronizes(const struct matcher *m, const struct rp_rendezvous *x)
{
    const struct rp_collectives *rank = m->ranks[x->rank[0]];

    const struct rp_collective *first = &rank->list.at[x->at[0]];

    return rp_collective_is_mutual(first) || (first->kind == RP_COLL_OTHER && !rank->on_host);
}

/* Whether times contradict: a collective cannot end before its last rank arrives, but one in ten
   does. */
static bool times_contradict(const struct matcher *m)
{
    size_t i, n = 0, wrong = 0;

    for (i = 0; i < m->out->n; i++) {
        if (!synchronizes(m, &m->out->at[i]))
            continue;
        n++;
        wrong += m->out->at[i].first_end_ns < m->out->at[i].last_ns;
    }
    return wrong * 10 > n;
}

RP_ORDER(by_last, struct rp_rendezvous, RP_UP(last_ns), RP_UP(rank[0]), RP_UP(at[0]))

/* Finds the clocks of the hosts. If ranks that name the same host contradict each other on one
   clock (containers often share a name), finds those of the ranks. */
static enum rp_code find_clocks(struct matcher *m, struct rp_clocks *clocks, struct rp_err *err)
{
    uint32_t *clock_of = RP_ARENA_NEW(m->arena, uint32_t, m->nranks + 1);
    bool shared;

    RP_TRY(rp_err_need(clock_of, err, "aligning clocks"));
    RP_TRY(rp_clocks_share(m->ranks, m->nranks, clock_of, &shared, err));
    RP_TRY(rp_clocks_of_rendezvous(m->ranks, m->nranks, m->out, clock_of, NULL, m->arena, clocks,
                                   err));
    if (!shared || !clocks->nconflicts)
        return RP_OK;
    return rp_clocks_of_rendezvous(m->ranks, m->nranks, m->out, NULL, NULL, m->arena, clocks, err);
}

void rp_rendezvous_settle_clock(const struct rp_collectives *rank, int64_t base_ns, bool trusted,
                                struct rp_clock *clock)
{
    size_t n = rank->list.n;
    /* The accuracy with which device times are converted to the clock of a host that ranks may
       share. */
    int64_t least = rank->host || rank->boot ? RP_CLOCK_RESOLUTION_NS : RP_CLOCK_TOLERANCE_NS;
    bool differs = n && rp_clock_differs(clock, base_ns, least, rank->list.at[0].begin_ns,
                                         rank->list.at[n - 1].end_ns);

    clock->used = clock->known && (differs || !trusted);
    if (clock->used)
        return;
    clock->offset_ns = base_ns;
    clock->drift_ppb = 0;
    clock->nsteps = 0;
}

static void note_clock(struct rp_rendezvous_list *list, const struct rp_clock *c, int64_t base_ns)
{
    int64_t apart = rp_ns_between(base_ns, c->offset_ns);

    apart = apart < 0 ? rp_ns_between(apart, 0) : apart;
    list->clocks_differ |= c->used && (c->clock || c->nsteps);
    list->apart_ns = c->used && apart > list->apart_ns ? apart : list->apart_ns;
    if (c->uncertainty_ns > list->uncertainty_ns)
        list->uncertainty_ns = c->uncertainty_ns;
    list->nset += c->nsteps > 0;
}

/* Moves all times to the clocks that the rendezvous show. trusted: the recorded times do not
   contradict each other, so a clock that differs by at most its uncertainty stays as recorded. */
static enum rp_code align_clocks(struct matcher *m, bool trusted, struct rp_err *err)
{
    struct rp_clocks clocks;

    RP_TRY(find_clocks(m, &clocks, err));
    m->out->trusted = trusted;
    m->out->apart_ns = m->out->uncertainty_ns = 0;
    m->out->nset = 0;
    for (size_t r = 0; r < m->nranks; r++) {
        m->out->clocks[r] = clocks.at[r];
        rp_rendezvous_settle_clock(m->ranks[r], m->out->base_ns[r], trusted, &m->out->clocks[r]);
        note_clock(m->out, &m->out->clocks[r], m->out->base_ns[r]);
    }
    for (size_t i = 0; i < m->out->n; i++)
        set_times(m, &m->out->at[i]);
    qsort(m->out->at, m->out->n, sizeof *m->out->at, by_last);
    return RP_OK;
}

/* Whether times contradict the matches although clocks were moved: in one of ten, by more than a
   millisecond and more than two clocks drift apart in that time. Sorted by last_ns. */
static bool makes_no_sense(const struct rp_rendezvous_list *m)
{
    int64_t most = m->n ? rp_ns_between(m->at[0].last_ns, m->at[m->n - 1].last_ns) /
                              (1000000 / RP_CLOCK_DRIFT_PPM)
                        : 0;
    size_t i, wrong = 0;

    for (i = 0; i < m->n; i++)
        wrong +=
            rp_ns_between(m->at[i].first_end_ns, m->at[i].last_ns) > rp_ns_sum(RP_LONG_NS, most);
    return wrong * 10 > m->n;
}

static void use_recorded(struct rp_rendezvous_list *list, size_t n)
{
    for (size_t r = 0; r < n; r++)
        list->clocks[r] = (struct rp_clock){.offset_ns = list->base_ns[r], .clock = (uint32_t)r};
    list->clocks_differ = false;
}

#define MOSTLY 0.6
RP_DECISION(
    MOSTLY, "of the collectives of each rank",
    "end together: the recorded clocks are right, more so than not; the rest lies in steps that only "
    "one of them recorded",
    "facts/most_must_end_together");
#define AT_LEAST 0.2
RP_DECISION(
    AT_LEAST, "of the collectives of each rank",
    "end together where their order makes no sense: chance pairs less, as ends must be nearer "
    "than an eighth of their distance",
    "facts/some_must_end_together");

/* The smallest share, over the ranks, of collectives in the common time that are matched. */
static double matched_share(const struct matcher *m)
{
    /* The time in which all ranks recorded collectives, on the recorded clocks. */
    struct rp_interval common = {INT64_MIN, INT64_MAX};

    for (size_t r = 0; r < m->nranks; r++) {
        const struct rp_collectives *c = m->ranks[r];
        int64_t offset = m->out->base_ns[r], begin, end;

        if (!count_of(m, r))
            continue;
        begin = rp_ns_sum(c->list.at[0].begin_ns, offset);
        end = rp_ns_sum(c->list.at[c->list.n - 1].end_ns, offset);
        common.begin_ns = begin > common.begin_ns ? begin : common.begin_ns;
        common.end_ns = end < common.end_ns ? end : common.end_ns;
    }

    double least = 1;
    size_t r, i, k, *all = RP_ARENA_NEW(m->arena, size_t, 2 * m->nranks + 1);

    if (!all)
        return 0;
    for (i = 0; i < m->out->n; i++)
        for (k = 0; k < m->out->at[i].n; k++)
            all[2 * (size_t)m->out->at[i].rank[k]]++;
    for (r = 0; r < m->nranks; r++) {
        for (i = 0; i < count_of(m, r); i++) {
            const struct rp_collective *c = &m->ranks[r]->list.at[i];

            all[2 * r + 1] += rp_ns_sum(c->end_ns, m->out->base_ns[r]) >= common.begin_ns &&
                              rp_ns_sum(c->begin_ns, m->out->base_ns[r]) <= common.end_ns;
        }
        if (!count_of(m, r))
            continue;
        if (!all[2 * r] || !all[2 * r + 1])
            return 0;
        if ((double)all[2 * r] / (double)all[2 * r + 1] < least)
            least = (double)all[2 * r] / (double)all[2 * r + 1];
    }
    return least;
}

/* Matches by the ends on the recorded clocks, if that matches this share of each rank's
   collectives; else the list stays. */
static enum rp_code try_by_time(struct matcher *m, double share, bool *done, struct rp_err *err)
{
    struct rp_rendezvous_list before = *m->out;

    *done = false;
    use_recorded(m->out, m->nranks);
    RP_TRY(match_by(m, RP_RENDEZVOUS_BY_TIME, err));
    *done = m->out->n >= 2 && matched_share(m) >= share;
    if (!*done) {
        *m->out = before;
        return RP_OK;
    }
    qsort(m->out->at, m->out->n, sizeof *m->out->at, by_last);
    return RP_OK;
}

/* Handles recorded times that contradict the matches by order: clocks, or collectives, differ. */
static enum rp_code settle_times(struct matcher *m, struct rp_err *err)
{
    bool contradict = times_contradict(m), done = false;

    if (!contradict || m->out->rule != RP_RENDEZVOUS_BY_ORDER)
        return align_clocks(m, !contradict, err);
    if (!m->some_lack) { /* a clock that was set explains everything */
        RP_TRY(align_clocks(m, false, err));
        if (m->out->nset && !times_contradict(m))
            return RP_OK;
    }
    RP_TRY(try_by_time(m, MOSTLY, &done, err));
    if (done)
        return RP_OK;
    RP_TRY(align_clocks(m, false, err));
    if (!makes_no_sense(m->out))
        return RP_OK;
    RP_TRY(try_by_time(m, AT_LEAST, &done, err));
    if (!done) {
        rp_rendezvous_drop(m->out, m->nranks);
        m->out->dropped = true;
    }
    return RP_OK;
}

/* Leaves out cut ranks that lack collectives, unless sequence numbers identify these. */
static enum rp_code leave_out_cut(struct matcher *m, struct rp_err *err)
{
    bool sequenced = true;
    size_t r, most = 0;

    m->left_out = RP_ARENA_NEW(m->arena, bool, m->nranks + 1);
    RP_TRY(rp_err_need(m->left_out, err, "matching collectives"));
    for (r = 0; r < m->nranks; r++) {
        const struct rp_collectives *c = m->ranks[r];

        most = c->list.n > most ? c->list.n : most;
        sequenced = sequenced && (!c->list.n || c->sequenced);
    }
    for (r = 0; r < m->nranks; r++)
        if (m->ranks[r]->cut && m->ranks[r]->list.n < most && !sequenced)
            m->left_out[r] = true;
    return RP_OK;
}

/* Tries the rules in order of preference until one matches something. */
static enum rp_code match_collectives(struct matcher *m, struct rp_err *err)
{
    bool sequenced = true, grouped = true, mixed = false, on_host = true;
    uint64_t group = 0;

    RP_TRY(leave_out_cut(m, err));

    /* Find which collectives know their peers, and the pairs of these. */
    m->peered = RP_ARENA_NEW(m->arena, bool *, m->nranks + 1);
    for (size_t r = 0; m->peered && r < m->nranks; r++) {
        const struct rp_collectives *c = m->ranks[r];

        m->peered[r] = RP_ARENA_NEW(m->arena, bool, c->list.n + 1);
        for (size_t i = 0; m->peered[r] && i < c->messages.n; i++)
            if (c->messages.at[i].at < c->list.n)
                m->peered[r][c->messages.at[i].at] = true;
        for (size_t i = 0; m->peered[r] && i < count_of(m, r); i++)
            m->nothers += !m->peered[r][i];
    }
    RP_TRY(rp_arena_check(m->arena, "matching sends and receives", err));
    RP_TRY(rp_rendezvous_find_pairs(m->ranks, m->nranks, m->left_out, &m->pairs, &m->npaired, err));

    for (size_t r = 0; r < m->nranks; r++) {
        if (!count_of(m, r))
            continue;
        if (!m->members++)
            group = m->ranks[r]->group_hash;
        grouped = grouped && m->ranks[r]->grouped;
        mixed = mixed || m->ranks[r]->mixed || m->ranks[r]->group_hash != group;
        sequenced = sequenced && m->ranks[r]->sequenced;
        on_host = on_host && m->ranks[r]->on_host;
    }
    if (sequenced)
        RP_TRY(match_by(m, RP_RENDEZVOUS_BY_SEQUENCE, err));
    else if (grouped && mixed)
        RP_TRY(match_by(m, RP_RENDEZVOUS_BY_GROUP, err));
    else if (on_host)
        RP_TRY(match_by(m, RP_RENDEZVOUS_BY_NAME, err));
    if (!m->out->n || (m->out->rule == RP_RENDEZVOUS_BY_PEER && m->nothers))
        RP_TRY(match_by(m, RP_RENDEZVOUS_BY_ORDER, err));
    if (m->out->n)
        qsort(m->out->at, m->out->n, sizeof *m->out->at, by_last);
    return RP_OK;
}

void rp_rendezvous_drop(struct rp_rendezvous_list *list, size_t n)
{
    for (size_t i = 0; i < list->n; i++)
        list->nlost += list->at[i].n;
    use_recorded(list, n);
    list->n = 0;
    list->rule = RP_RENDEZVOUS_BY_NONE;
    list->contradict = false;
    list->ndoubtful = list->nset = 0;
    list->stages = NULL;
}

static bool is_of_start_up(const struct rp_collectives *const *ranks, const struct rp_rendezvous *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct rp_collectives *c = ranks[m->rank[i]];

        if (c->list.at[m->at[i]].end_ns > c->first_step_ns)
            return false;
    }
    return true;
}

size_t rp_rendezvous_drop_start_up(struct rp_rendezvous_list *list,
                                   const struct rp_collectives *const *ranks)
{
    size_t i, n = 0, kept = 0;

    for (i = 0; i < list->n; i++)
        n += is_of_start_up(ranks, &list->at[i]);
    if (n == list->n)
        return 0;
    for (i = 0; n && i < list->n; i++)
        if (!is_of_start_up(ranks, &list->at[i]))
            list->at[kept++] = list->at[i];
        else
            list->ndoubtful -= list->at[i].doubtful;
    list->n -= n;
    return n;
}

/* Recordings of one boot use the same clock. Their bases differ only by how the time of day was
   adjusted in between, so the base of the first is used for all. */
static int64_t base_of(const struct rp_collectives *const *ranks, size_t rank)
{
    for (size_t r = 0; ranks[rank]->boot && r < rank; r++)
        if (ranks[r]->boot == ranks[rank]->boot)
            return ranks[r]->base_ns;
    return ranks[rank]->base_ns;
}

enum rp_code rp_rendezvous_find(const struct rp_collectives *const *ranks, size_t n,
                                struct rp_arena *arena, struct rp_rendezvous_list *out,
                                struct rp_err *err)
{
    struct matcher m = {.ranks = ranks, .nranks = n, .arena = arena, .out = out};
    enum rp_code code = RP_OK;

    *out = (struct rp_rendezvous_list){.rule = RP_RENDEZVOUS_BY_NONE};
    out->clocks = RP_ARENA_NEW(arena, struct rp_clock, n + 1);
    out->base_ns = RP_ARENA_NEW(arena, int64_t, n + 1);
    if (!out->clocks || !out->base_ns)
        return rp_err_nomem(err, "matching collectives");
    for (size_t r = 0; r < n; r++) {
        out->base_ns[r] = rp_ns_between(ranks[0]->base_ns, base_of(ranks, r));
        out->nlost += ranks[r]->list.n;
    }
    use_recorded(out, n);
    if (n > 1)
        code = match_collectives(&m, err);
    if (!out->n)
        out->rule = RP_RENDEZVOUS_BY_NONE;
    if (code == RP_OK && out->n)
        code = settle_times(&m, err);
    if (code == RP_OK && out->n) {
        out->contradict = times_contradict(&m);
        code = rp_rendezvous_find_stages(out, ranks, n, arena, err);
        if (code == RP_OK)
            code = rp_rendezvous_set_delays(out, ranks, err);
    }
    rp_vec_release(&m.tickets);
    rp_vec_release(&m.pairs);
    return code;
}
