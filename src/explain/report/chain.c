/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collectives of the ranks belong together is a fact (rendezvous.h). The chain is walked
 * backwards from the end of the run: from the rank that ends last to its last collective, through
 * that to the rank that arrived last, and so on. Times of ranks are compared on the clock of the
 * first. Linear in collectives after sorting those of each rank by their ends.
 */
#include "explain/report/report.h"

#include "base/order.h"
#include "facts/ranks/rendezvous.h"

#include <stdlib.h>
#include <string.h>

/* member: a rendezvous from the point of view of one of its ranks. */
struct member {
    int64_t end_ns, wait_ns; /* end: on the clock of the first rank */
    uint32_t rendezvous, participant;
};

struct chain_ctx {
    const struct rp_ranks *ranks;
    size_t n;
    struct rp_arena *arena;
    struct rp_chain *out;
    const struct rp_collectives **lists;
    struct rp_rendezvous_list m;
    struct rp_late *lates;   /* by rendezvous */
    struct member **members; /* by rank, by end */
    size_t *nmembers;
};

static const struct rp_report_part *part_of(const struct chain_ctx *ctx, size_t rank)
{
    return rp_report_part_of(ctx->ranks, rank);
}

static const struct rp_collective *collective_of(const struct chain_ctx *ctx, uint32_t rank,
                                                 uint32_t at)
{
    return &part_of(ctx, rank)->collectives.list.at[at];
}

/* Converts a time of a rank to the clock of the first. */
static int64_t common_time(const struct chain_ctx *ctx, size_t rank, int64_t ns)
{
    return rp_clock_time(&ctx->m.clocks[rank], ns);
}

int64_t rp_report_judged_ns(const struct rp_report_part *p, int64_t begin_ns, int64_t end_ns)
{
    return end_ns <= begin_ns ? 0 : rp_union_covers(p->judged.at, p->judged.n, begin_ns, end_ns);
}

/* The part of [begin, end) that is judged and in which no compute runs. Collectives are also
   recorded in steps without detail, but there nothing is known to run beside them. */
static int64_t uncovered(const struct rp_report_part *p, int64_t begin_ns, int64_t end_ns)
{
    const struct rp_interval *s = p->judged.at;
    int64_t sum = 0;

    for (size_t i = rp_union_first(s, p->judged.n, begin_ns);
         i < p->judged.n && s[i].begin_ns < end_ns; i++) {
        int64_t from = s[i].begin_ns > begin_ns ? s[i].begin_ns : begin_ns;
        int64_t to = s[i].end_ns < end_ns ? s[i].end_ns : end_ns;

        if (from < to)
            rp_ns_add(&sum, rp_ns_between(rp_union_covers(p->compute.at, p->compute.n, from, to),
                                          rp_ns_between(from, to)));
    }
    return sum;
}

/* The part of an interval inside the span of a rank. */
static struct rp_interval in_span(const struct chain_ctx *ctx, size_t rank, struct rp_interval i)
{
    const struct rp_breakdown *span = &part_of(ctx, rank)->whole;

    i.begin_ns = i.begin_ns > span->begin_ns ? i.begin_ns : span->begin_ns;
    i.end_ns = i.end_ns < span->end_ns ? i.end_ns : span->end_ns;
    return i;
}

static bool is_of_stages(const struct chain_ctx *ctx, const struct rp_rendezvous *m)
{
    return m->senders && rp_rendezvous_are_stages(&ctx->m, m->rank[0], m->rank[1]);
}

/* Measures how long the stages of pipelines wait for each other, which the schedule causes, not a
   rank. */
static enum rp_code measure_bubbles(struct chain_ctx *ctx, struct rp_err *err)
{
    rp_interval_vec *waits = ctx->m.stages ? calloc(ctx->n + 1, sizeof *waits) : NULL;
    int64_t sum = 0, nstages = 0;
    enum rp_code code = RP_OK;

    ctx->out->stages = ctx->m.stages;
    if (!waits)
        return ctx->m.stages ? rp_err_nomem(err, "matching collectives") : RP_OK;
    for (size_t i = 0; i < 2 * ctx->m.n && code == RP_OK; i++) {
        const struct rp_rendezvous *m = &ctx->m.at[i / 2];
        uint32_t k = i % 2, rank = m->rank[k];
        int64_t begin = collective_of(ctx, rank, m->at[k])->begin_ns;
        struct rp_interval wait = {begin, begin};

        if (!is_of_stages(ctx, m))
            continue;
        wait.end_ns = rp_ns_sum(begin, rp_rendezvous_wait(&ctx->m, ctx->lists, m, k));
        wait = in_span(ctx, rank, wait);
        if (wait.begin_ns < wait.end_ns)
            code = rp_vec_push(&waits[rank], wait, err);
    }
    for (size_t r = 0; r < ctx->n; r++) {
        size_t n = waits[r].at ? rp_union_sort(waits[r].at, waits[r].n) : 0;

        for (size_t i = 0; i < n; i++)
            rp_ns_add(&ctx->out->ranks[r].stage_wait_ns,
                      uncovered(part_of(ctx, r), waits[r].at[i].begin_ns, waits[r].at[i].end_ns));
        nstages += ctx->m.stages[r].stage != RP_NONE;
        rp_ns_add(&sum, ctx->out->ranks[r].stage_wait_ns);
        rp_vec_release(&waits[r]);
    }
    ctx->out->bubble_ns = nstages ? sum / nstages : 0;
    free(waits);
    return code;
}

/* Counts waits and transfers of the ranks. Several collectives of a rank may wait at once, so the
   time counts in which any of them waits. */
static enum rp_code count_all_rendezvous(struct chain_ctx *ctx, struct rp_err *err)
{
    rp_interval_vec *waits = RP_ARENA_NEW(ctx->arena, rp_interval_vec, ctx->n + 1);
    struct rp_rendezvous_sums *sums =
        RP_ARENA_NEW(ctx->arena, struct rp_rendezvous_sums, ctx->n + 1);
    enum rp_code code = rp_err_need(waits && sums, err, "matching collectives");

    for (size_t i = 0; i < ctx->m.n; i++) {
        /* Count who arrived last, and what that cost the others. */
        const struct rp_rendezvous *m = &ctx->m.at[i];
        const struct rp_late *late = &ctx->lates[i];
        struct rp_chain_rank *last = &ctx->out->ranks[m->rank[m->last]];

        last->last_count++;
        rp_ns_add(&last->margin_ns, m->delay_ns);
        if (late->cause && late->cause != rp_late_previous && late->by == m->rank[m->last])
            rp_late_add(&last->lates, late, m->delay_ns);
    }
    if (code == RP_OK)
        code = rp_rendezvous_sum(&ctx->m, ctx->lists, ctx->n, sums, waits, err);
    for (size_t r = 0; waits && sums && r < ctx->n; r++) {
        struct rp_chain_rank *to = &ctx->out->ranks[r];

        to->wait_ns = sums[r].wait_ns;
        to->transfer_ns = sums[r].transfer_ns;
        for (size_t i = 0; i < waits[r].n; i++) {
            waits[r].at[i] = in_span(ctx, r, waits[r].at[i]);
            rp_ns_add(&to->exposed_wait_ns,
                      uncovered(part_of(ctx, r), waits[r].at[i].begin_ns, waits[r].at[i].end_ns));
        }
        if (code == RP_OK)
            code = rp_arena_adopt_column(ctx->arena, waits[r].at, waits[r].cap, sizeof *waits[r].at,
                                         err);
        if (code != RP_OK)
            rp_vec_release(&waits[r]);
    }
    ctx->out->waits = waits;
    return code;
}

/* The exposed part of intervals of a rank; takes over their memory. */
static int64_t exposed_of(const struct chain_ctx *ctx, size_t rank, rp_interval_vec *of)
{
    int64_t sum = 0;

    of->n = of->at ? rp_union_sort(of->at, of->n) : 0;
    for (size_t i = 0; i < of->n; i++)
        rp_ns_add(&sum, uncovered(part_of(ctx, rank), of->at[i].begin_ns, of->at[i].end_ns));
    rp_vec_release(of);
    return sum;
}

/* Adds the transfers at a place (RP_PLACES + 1: at any) to the intervals of their ranks, or only
   the time that slow links take too long. */
static enum rp_code add_transfers(const struct chain_ctx *ctx, const struct rp_topology *t,
                                  unsigned place, bool slow, rp_interval_vec *to,
                                  struct rp_err *err)
{
    for (size_t i = 0; i < ctx->m.n; i++) {
        const struct rp_rendezvous *m = &ctx->m.at[i];
        int64_t excess = slow ? rp_topology_excess(t, m) : 0;

        if (slow ? excess <= 0 : place <= RP_PLACES && rp_topology_place(t, m) != place)
            continue;
        for (uint32_t k = 0; k < m->n; k++) {
            const struct rp_collective *c = collective_of(ctx, m->rank[k], m->at[k]);
            int64_t wait = rp_rendezvous_wait(&ctx->m, ctx->lists, m, k);
            struct rp_interval x = {rp_ns_sum(c->begin_ns, wait), c->end_ns};

            if (slow && rp_ns_between(x.begin_ns, x.end_ns) > excess)
                x.begin_ns = rp_ns_sum(x.end_ns, -excess);
            x = in_span(ctx, m->rank[k], x);
            if (x.begin_ns < x.end_ns)
                RP_TRY(rp_vec_push(&to[m->rank[k]], x, err));
        }
    }
    return RP_OK;
}

/* Computes the mean, over the ranks, of the transfers at a place while no compute runs. */
static enum rp_code measure_place(const struct chain_ctx *ctx, const struct rp_topology *t,
                                  unsigned place, bool slow, int64_t *out, struct rp_err *err)
{
    rp_interval_vec *times = calloc(ctx->n + 1, sizeof *times);
    enum rp_code code = times ? add_transfers(ctx, t, place, slow, times, err)
                              : rp_err_nomem(err, "matching collectives");
    int64_t sum = 0;

    for (size_t r = 0; times && r < ctx->n; r++)
        rp_ns_add(&sum, exposed_of(ctx, r, &times[r]));
    free(times);
    *out = sum / (int64_t)(ctx->n ? ctx->n : 1);
    return code;
}

/* Finds where the exposed transfers run, and whether links are slow. Time at two places at once
   counts as between nodes. */
static enum rp_code measure_places(struct chain_ctx *ctx, struct rp_err *err)
{
    struct rp_chain *out = ctx->out;
    struct rp_topology t = {.list = &ctx->m,
                            .ranks = ctx->lists,
                            .world_size = ctx->ranks->world_size,
                            .device = part_of(ctx, 0)->on_device ? part_of(ctx, 0)->device : NULL};
    int64_t all, known;

    t.world_size = t.world_size > (int64_t)ctx->n ? t.world_size : (int64_t)ctx->n;
    rp_topology_judge(&t);
    RP_TRY(measure_place(ctx, &t, RP_PLACES + 1, false, &all, err));
    RP_TRY(
        measure_place(ctx, &t, RP_PLACE_BETWEEN, false, &out->exposed_ns[RP_PLACE_BETWEEN], err));
    RP_TRY(measure_place(ctx, &t, RP_PLACE_NODE, false, &out->exposed_ns[RP_PLACE_NODE], err));
    RP_TRY(measure_place(ctx, &t, RP_PLACES, true, &out->slow_ns, err));
    RP_TRY(
        measure_place(ctx, &t, RP_PLACE_UNKNOWN, false, &out->exposed_ns[RP_PLACE_UNKNOWN], err));
    known = rp_ns_between(out->exposed_ns[RP_PLACE_BETWEEN], all);
    if (out->exposed_ns[RP_PLACE_NODE] > known)
        out->exposed_ns[RP_PLACE_NODE] = known;
    for (int i = 0; i < RP_PLACES; i++)
        out->slow_link[i] = rp_topology_text(&t, (enum rp_place)i, ctx->arena);
    return RP_OK;
}

/* From the first start to the last end of matched collectives. */
static void measure_span(struct chain_ctx *ctx)
{
    int64_t first = INT64_MAX, last = INT64_MIN;

    for (size_t i = 0; i < ctx->m.n; i++) {
        first = ctx->m.at[i].first_ns < first ? ctx->m.at[i].first_ns : first;
        last = ctx->m.at[i].end_ns > last ? ctx->m.at[i].end_ns : last;
    }
    ctx->out->span_ns = ctx->m.n ? rp_ns_between(first, last) : 0;
}

/* Adds the gaps of a rank in [from, to) by cause, and the time in which it only copies. */
static void add_own_time(struct chain_ctx *ctx, size_t rank, int64_t from_ns, int64_t to_ns)
{
    const struct rp_report_part *p = part_of(ctx, rank);
    const rp_gap_vec *gaps = &p->gaps;
    size_t i;

    if (p->on_device && from_ns < to_ns)
        rp_ns_add(&ctx->out->copies_ns,
                  rp_ns_between(rp_union_covers(p->kernels.at, p->kernels.n, from_ns, to_ns),
                                rp_union_covers(p->busy.at, p->busy.n, from_ns, to_ns)));
    RP_LOWER_BOUND(i, gaps->n, gaps->at[i].end_ns <= from_ns);
    for (; i < gaps->n && gaps->at[i].begin_ns < to_ns; i++)
        rp_ns_add(&ctx->out->cause_ns[gaps->at[i].cause],
                  rp_ns_common(gaps->at[i].begin_ns, gaps->at[i].end_ns, from_ns, to_ns));
}

/* Ordered by time; if one operation has several pairs, the one that it waited for comes last. */
RP_ORDER(by_end, struct member, RP_UP(end_ns), RP_UP(wait_ns), RP_UP(rendezvous))

static enum rp_code list_members(struct chain_ctx *ctx, struct rp_err *err)
{
    ctx->members = RP_ARENA_NEW(ctx->arena, struct member *, ctx->n + 1);
    ctx->nmembers = RP_ARENA_NEW(ctx->arena, size_t, ctx->n + 1);
    for (size_t r = 0; ctx->members && r < ctx->n; r++) {
        const struct rp_collectives *c = &part_of(ctx, r)->collectives;

        ctx->members[r] = RP_ARENA_NEW(ctx->arena, struct member, c->list.n + c->messages.n + 1);
    }
    RP_TRY(rp_arena_check(ctx->arena, "matching collectives", err));
    for (size_t i = 0; i < ctx->m.n; i++)
        for (uint32_t k = 0; k < ctx->m.at[i].n; k++) {
            uint32_t rank = ctx->m.at[i].rank[k], at = ctx->m.at[i].at[k];

            ctx->members[rank][ctx->nmembers[rank]++] = (struct member){
                common_time(ctx, rank, collective_of(ctx, rank, at)->end_ns),
                rp_rendezvous_wait(&ctx->m, ctx->lists, &ctx->m.at[i], k), (uint32_t)i, k};
        }
    for (size_t r = 0; r < ctx->n; r++)
        rp_sort(ctx->members[r], ctx->nmembers[r], sizeof **ctx->members, by_end);
    return RP_OK;
}

/* Adds by how much the others would have continued earlier without the last rank: the time after
   the second last arrival in which that rank does not compute, counting no moment twice. */
static void add_margin(struct chain_ctx *ctx, const struct rp_rendezvous *m, int64_t *until)
{
    int64_t end = rp_ns_sum(m->second_ns, m->margin_ns), waited;
    uint32_t r = m->rank[m->second];
    const struct rp_collective *c = collective_of(ctx, r, m->at[m->second]);

    if (m->members > (int64_t)m->n)
        return; /* a rank that was not given may have been later */
    end = end < *until ? end : *until;
    if (m->doubtful || end <= m->second_ns || is_of_stages(ctx, m))
        return;
    waited = rp_ns_sum(c->begin_ns, rp_ns_between(m->second_ns, end));
    rp_ns_add(&ctx->out->margin_ns,
              uncovered(part_of(ctx, r), c->begin_ns, waited < c->end_ns ? waited : c->end_ns));
    *until = m->second_ns;
}

/* Walks backwards from rendezvous to rendezvous, along the ranks that the others waited for, to the
   begin of the span. */
static void walk_chain(struct chain_ctx *ctx)
{
    size_t rank = ctx->out->lead;
    int64_t own_until = part_of(ctx, rank)->whole.end_ns, waited = INT64_MAX;

    for (;;) {
        const struct rp_breakdown *span = &part_of(ctx, rank)->whole;
        int64_t until = common_time(ctx, rank, own_until);
        int64_t begin = common_time(ctx, rank, span->begin_ns);
        struct rp_interval c;

        while (ctx->nmembers[rank] && ctx->members[rank][ctx->nmembers[rank] - 1].end_ns > until)
            ctx->nmembers[rank]--;
        const struct member *member =
            ctx->nmembers[rank] ? &ctx->members[rank][--ctx->nmembers[rank]] : NULL;
        if (!member || member->end_ns <= begin) {
            add_own_time(ctx, rank, span->begin_ns, own_until);
            return;
        }
        const struct rp_rendezvous *m = &ctx->m.at[member->rendezvous];
        add_own_time(ctx, rank,
                     collective_of(ctx, (uint32_t)rank, m->at[member->participant])->end_ns,
                     own_until);
        uint32_t by = rp_rendezvous_awaited(&ctx->m, ctx->lists, m, member->participant);
        rank = m->rank[by];
        c.begin_ns = collective_of(ctx, (uint32_t)rank, m->at[by])->begin_ns;
        c.end_ns = collective_of(ctx, (uint32_t)rank, m->at[by])->end_ns;
        own_until = c.begin_ns;
        c = in_span(ctx, rank, c);
        rp_ns_add(&ctx->out->transfer_ns, uncovered(part_of(ctx, rank), c.begin_ns, c.end_ns));
        add_margin(ctx, m, &waited);
    }
}

static int64_t lost_alone(const struct rp_report_part *p)
{
    return rp_ns_sum(p->whole.idle_ns, p->whole.exposed_comm_ns);
}

/* If nothing synchronizes the devices, the rank with most idle time and exposed communication
   represents the run. */
static void follow_one_rank(struct chain_ctx *ctx)
{
    ctx->out->lead = 0;
    for (size_t r = 1; r < ctx->n; r++)
        if (lost_alone(part_of(ctx, r)) > lost_alone(part_of(ctx, ctx->out->lead)))
            ctx->out->lead = r;
    const struct rp_report_part *p = part_of(ctx, ctx->out->lead);
    add_own_time(ctx, ctx->out->lead, p->whole.begin_ns, p->whole.end_ns);
    ctx->out->transfer_ns = p->whole.exposed_comm_ns;
}

static enum rp_code match_collectives(struct chain_ctx *ctx, struct rp_err *err)
{
    const struct rp_comm_lead **leads =
        RP_ARENA_NEW(ctx->arena, const struct rp_comm_lead *, ctx->n + 1);

    ctx->lists = RP_ARENA_NEW(ctx->arena, const struct rp_collectives *, ctx->n + 1);
    RP_TRY(rp_arena_check(ctx->arena, "matching collectives", err));
    for (size_t r = 0; r < ctx->n; r++) {
        ctx->lists[r] = &part_of(ctx, r)->collectives;
        leads[r] = part_of(ctx, r)->leads;
        ctx->out->beside |= ctx->lists[r]->on_host && part_of(ctx, r)->on_device;
    }
    RP_TRY(rp_rendezvous_find(ctx->lists, ctx->n, ctx->arena, &ctx->m, err));
    if (ctx->ranks->unrelated)
        rp_rendezvous_drop(&ctx->m, ctx->n);
    rp_rendezvous_drop_start_up(&ctx->m, ctx->lists);
    RP_TRY(rp_late_find(&(struct rp_late_ranks){ctx->n, ctx->lists, leads}, &ctx->m, ctx->arena,
                        &ctx->lates, err));
    ctx->out->matched = ctx->m;
    ctx->out->lists = ctx->lists;
    ctx->out->clocks = ctx->m.clocks;
    ctx->out->clocks_differ = ctx->m.clocks_differ;
    ctx->out->apart_ns = ctx->m.apart_ns;
    ctx->out->contradict = ctx->m.contradict;
    ctx->out->ndoubtful = ctx->m.ndoubtful;
    ctx->out->nset = ctx->m.nset;
    ctx->out->uncertainty_ns = ctx->m.uncertainty_ns;
    ctx->out->ncollectives = ctx->m.contradict ? 0 : ctx->m.n;
    for (size_t r = 0; r < ctx->n; r++)
        if (common_time(ctx, r, part_of(ctx, r)->whole.end_ns) >
            common_time(ctx, ctx->out->lead, part_of(ctx, ctx->out->lead)->whole.end_ns))
            ctx->out->lead = r;
    return RP_OK;
}

/* Finds which places are slow, if the collectives synchronize the devices. */
static enum rp_code find_places(struct chain_ctx *ctx, struct rp_err *err)
{
    const struct rp_course **courses =
        RP_ARENA_NEW(ctx->arena, const struct rp_course *, ctx->n + 1);
    const char **hosts = RP_ARENA_NEW(ctx->arena, const char *, ctx->n + 1);
    struct rp_places_input in = {.n = ctx->n,
                                 .courses = courses,
                                 .lists = ctx->lists,
                                 .hosts = hosts,
                                 .rendezvous = &ctx->m,
                                 .world_size = ctx->ranks->world_size};

    RP_TRY(rp_err_need(courses && hosts, err, "comparing ranks"));
    for (size_t r = 0; r < ctx->n; r++) {
        courses[r] = &part_of(ctx, r)->course;
        hosts[r] = part_of(ctx, r)->host;
    }
    return rp_places_find(&in, ctx->arena, &ctx->out->places, err);
}

enum rp_code rp_chain_make(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err)
{
    struct chain_ctx ctx = {.ranks = ranks, .n = ranks->n, .arena = arena, .out = out};
    int64_t waited = INT64_MAX;

    *out = (struct rp_chain){0};
    out->ranks = RP_ARENA_NEW(arena, struct rp_chain_rank, ranks->n + 1);
    RP_TRY(rp_err_need(out->ranks, err, "matching collectives"));
    RP_TRY(match_collectives(&ctx, err));
    if (!out->ncollectives) {
        follow_one_rank(&ctx);
        return RP_OK;
    }
    RP_TRY(count_all_rendezvous(&ctx, err));
    RP_TRY(find_places(&ctx, err));
    RP_TRY(measure_bubbles(&ctx, err));
    RP_TRY(measure_places(&ctx, err));
    measure_span(&ctx);
    if (!out->beside) {
        RP_TRY(list_members(&ctx, err));
        walk_chain(&ctx);
        return RP_OK;
    }
    follow_one_rank(&ctx);
    for (size_t i = ctx.m.n; i > 0; i--)
        add_margin(&ctx, &ctx.m.at[i - 1], &waited);
    return RP_OK;
}
