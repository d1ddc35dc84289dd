/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collectives of the ranks belong together is a fact (rendezvous.h). The chain is walked
 * backwards from the end of the run: from the rank that ends last to its last collective, through
 * that to the rank that arrived last, and so on. Times of ranks are compared on the clock of the
 * first. Linear in collectives after sorting those of each rank by their ends.
 */
#include "explain/report/report.h"

#include "base/order.h"
#include "facts/rendezvous.h"

#include <stdlib.h>
#include <string.h>

/* A rendezvous as one of its ranks sees it. */
struct member {
    int64_t end_ns; /* on the first rank's clock */
    uint32_t rendezvous, participant;
};

struct chain_ctx {
    const struct rp_ranks *ranks;
    size_t n;
    struct rp_arena *arena;
    struct rp_chain *out;
    const struct rp_collectives **lists;
    struct rp_rendezvous_list m;
    struct rp_late_ranks late;
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

/* What a time of a rank is on the clock of the first. */
static int64_t common_time(const struct chain_ctx *ctx, size_t rank, int64_t ns)
{
    return rp_clock_time(&ctx->m.clocks[rank], ns);
}

static int64_t uncovered(const rp_interval_vec *compute, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return 0;
    return rp_ns_between(rp_union_covers(compute->at, compute->n, begin_ns, end_ns),
                         rp_ns_between(begin_ns, end_ns));
}

/* What of an interval lies in the span of a rank. */
static struct rp_interval in_span(const struct chain_ctx *ctx, size_t rank, struct rp_interval i)
{
    const struct rp_breakdown *span = &part_of(ctx, rank)->whole;

    i.begin_ns = i.begin_ns > span->begin_ns ? i.begin_ns : span->begin_ns;
    i.end_ns = i.end_ns < span->end_ns ? i.end_ns : span->end_ns;
    return i;
}

/* Who arrived last, and what that cost the others. */
static void count_rendezvous(struct chain_ctx *ctx, const struct rp_rendezvous *m)
{
    struct rp_chain_rank *last = &ctx->out->ranks[m->rank[m->last]];
    struct rp_late late = rp_late_of(&ctx->late, m);

    last->last_count++;
    rp_ns_add(&last->margin_ns, m->delay_ns);
    if (late.cause &&
        strcmp(late.cause, "previous") != 0) /* it only says that it was late before */
        rp_late_add(&last->lates, late.cause, late.evidence, m->delay_ns);
}

/* Waits and transfers of the ranks. Several collectives of a rank may wait at once: what counts is
   the time in which any does. */
static enum rp_code count_all_rendezvous(struct chain_ctx *ctx, struct rp_err *err)
{
    rp_interval_vec *waits = RP_ARENA_NEW(ctx->arena, rp_interval_vec, ctx->n + 1);
    struct rp_rendezvous_sums *sums =
        RP_ARENA_NEW(ctx->arena, struct rp_rendezvous_sums, ctx->n + 1);
    enum rp_code code = waits && sums ? RP_OK : rp_err_nomem(err, "matching collectives");
    size_t i, r;

    for (i = 0; i < ctx->m.n; i++)
        count_rendezvous(ctx, &ctx->m.at[i]);
    if (code == RP_OK)
        code = rp_rendezvous_sum(&ctx->m, ctx->lists, ctx->n, sums, waits, err);
    for (r = 0; waits && sums && r < ctx->n; r++) {
        struct rp_chain_rank *to = &ctx->out->ranks[r];

        to->wait_ns = sums[r].wait_ns;
        to->transfer_ns = sums[r].transfer_ns;
        for (i = 0; i < waits[r].n; i++) {
            waits[r].at[i] = in_span(ctx, r, waits[r].at[i]);
            rp_ns_add(&to->exposed_wait_ns,
                      uncovered(&part_of(ctx, r)->compute, waits[r].at[i].begin_ns,
                                waits[r].at[i].end_ns));
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

/* From the first start to the last end of matched collectives. */
static void measure_span(struct chain_ctx *ctx)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    size_t i;

    for (i = 0; i < ctx->m.n; i++) {
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

RP_ORDER(by_end, struct member, RP_UP(end_ns), RP_UP(rendezvous))

static enum rp_code list_members(struct chain_ctx *ctx, struct rp_err *err)
{
    size_t i, r;
    uint32_t k;

    ctx->members = RP_ARENA_NEW(ctx->arena, struct member *, ctx->n + 1);
    ctx->nmembers = RP_ARENA_NEW(ctx->arena, size_t, ctx->n + 1);
    for (r = 0; ctx->members && r < ctx->n; r++)
        ctx->members[r] =
            RP_ARENA_NEW(ctx->arena, struct member, part_of(ctx, r)->collectives.list.n + 1);
    RP_TRY(rp_arena_check(ctx->arena, "matching collectives", err));
    for (i = 0; i < ctx->m.n; i++)
        for (k = 0; k < ctx->m.at[i].n; k++) {
            uint32_t rank = ctx->m.at[i].rank[k], at = ctx->m.at[i].at[k];

            ctx->members[rank][ctx->nmembers[rank]++] = (struct member){
                common_time(ctx, rank, collective_of(ctx, rank, at)->end_ns), (uint32_t)i, k};
        }
    for (r = 0; r < ctx->n; r++)
        if (ctx->nmembers[r])
            qsort(ctx->members[r], ctx->nmembers[r], sizeof **ctx->members, by_end);
    return RP_OK;
}

/* By how much the others would have continued earlier without the last rank: from the second last
   arrival on, while that rank does not compute, and no moment twice. */
static void add_margin(struct chain_ctx *ctx, const struct rp_rendezvous *m, int64_t *until)
{
    int64_t end = rp_ns_sum(m->second_ns, m->margin_ns), begin;
    uint32_t r = m->rank[m->second];

    if (m->members > (int64_t)m->n)
        return; /* a rank that was not given may have been later */
    end = end < *until ? end : *until;
    if (m->doubtful || end <= m->second_ns)
        return;
    begin = collective_of(ctx, r, m->at[m->second])->begin_ns;
    rp_ns_add(&ctx->out->margin_ns, uncovered(&part_of(ctx, r)->compute, begin,
                                              rp_ns_sum(begin, rp_ns_between(m->second_ns, end))));
    *until = m->second_ns;
}

/* From rendezvous to rendezvous, backwards along the ranks that the others waited for, to the begin
   of the span. */
static void walk_chain(struct chain_ctx *ctx)
{
    size_t rank = ctx->out->lead;
    int64_t until = common_time(ctx, rank, part_of(ctx, rank)->whole.end_ns);
    int64_t waited = INT64_MAX;

    for (;;) {
        const struct rp_clock *clock = &ctx->m.clocks[rank];
        int64_t begin = common_time(ctx, rank, part_of(ctx, rank)->whole.begin_ns), from;
        const struct rp_rendezvous *m;
        const struct member *member;
        struct rp_interval c;
        uint32_t by;

        while (ctx->nmembers[rank] && ctx->members[rank][ctx->nmembers[rank] - 1].end_ns > until)
            ctx->nmembers[rank]--;
        from = ctx->nmembers[rank] ? ctx->members[rank][ctx->nmembers[rank] - 1].end_ns : begin;
        from = from > begin ? from : begin;
        add_own_time(ctx, rank, rp_clock_own_time(clock, from), rp_clock_own_time(clock, until));
        if (!ctx->nmembers[rank] || from == begin)
            return;
        member = &ctx->members[rank][--ctx->nmembers[rank]];
        m = &ctx->m.at[member->rendezvous];
        by = rp_rendezvous_awaited(&ctx->m, ctx->lists, m, member->participant);
        rank = m->rank[by];
        c.begin_ns = collective_of(ctx, (uint32_t)rank, m->at[by])->begin_ns;
        c.end_ns = collective_of(ctx, (uint32_t)rank, m->at[by])->end_ns;
        until = common_time(ctx, rank, c.begin_ns);
        c = in_span(ctx, rank, c);
        rp_ns_add(&ctx->out->transfer_ns,
                  uncovered(&part_of(ctx, rank)->compute, c.begin_ns, c.end_ns));
        add_margin(ctx, m, &waited);
    }
}

static int64_t lost_alone(const struct rp_report_part *p)
{
    return rp_ns_sum(p->whole.idle_ns, p->whole.exposed_comm_ns);
}

/* Nothing synchronizes the devices: the rank with most idle time and exposed communication
   represents the run. */
static void follow_one_rank(struct chain_ctx *ctx)
{
    const struct rp_report_part *p;
    size_t r;

    ctx->out->lead = 0;
    for (r = 1; r < ctx->n; r++)
        if (lost_alone(part_of(ctx, r)) > lost_alone(part_of(ctx, ctx->out->lead)))
            ctx->out->lead = r;
    p = part_of(ctx, ctx->out->lead);
    add_own_time(ctx, ctx->out->lead, p->whole.begin_ns, p->whole.end_ns);
    ctx->out->transfer_ns = p->whole.exposed_comm_ns;
}

static enum rp_code match_collectives(struct chain_ctx *ctx, struct rp_err *err)
{
    const struct rp_comm_lead **leads =
        RP_ARENA_NEW(ctx->arena, const struct rp_comm_lead *, ctx->n + 1);
    size_t r;

    ctx->lists = RP_ARENA_NEW(ctx->arena, const struct rp_collectives *, ctx->n + 1);
    ctx->late.scratch = RP_ARENA_NEW(ctx->arena, int64_t, ctx->n + 1);
    RP_TRY(rp_arena_check(ctx->arena, "matching collectives", err));
    for (r = 0; r < ctx->n; r++) {
        ctx->lists[r] = &part_of(ctx, r)->collectives;
        leads[r] = part_of(ctx, r)->leads;
        ctx->out->beside |= ctx->lists[r]->on_host && part_of(ctx, r)->on_device;
    }
    RP_TRY(rp_rendezvous_find(ctx->lists, ctx->n, ctx->arena, &ctx->m, err));
    if (ctx->ranks->unrelated)
        rp_rendezvous_drop(&ctx->m, ctx->n);
    ctx->late.lists = ctx->lists;
    ctx->late.leads = leads;
    ctx->late.clocks = ctx->out->clocks = ctx->m.clocks;
    ctx->out->clocks_differ = ctx->m.clocks_differ;
    ctx->out->apart_ns = ctx->m.apart_ns;
    ctx->out->contradict = ctx->m.contradict;
    ctx->out->ndoubtful = ctx->m.ndoubtful;
    ctx->out->nset = ctx->m.nset;
    ctx->out->uncertainty_ns = ctx->m.uncertainty_ns;
    ctx->out->ncollectives = ctx->m.contradict ? 0 : ctx->m.n;
    for (r = 0; r < ctx->n; r++)
        if (common_time(ctx, r, part_of(ctx, r)->whole.end_ns) >
            common_time(ctx, ctx->out->lead, part_of(ctx, ctx->out->lead)->whole.end_ns))
            ctx->out->lead = r;
    return RP_OK;
}

enum rp_code rp_chain_make(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err)
{
    struct chain_ctx ctx = {.ranks = ranks, .n = ranks->n, .arena = arena, .out = out};
    int64_t waited = INT64_MAX;
    size_t i;

    *out = (struct rp_chain){0};
    out->ranks = RP_ARENA_NEW(arena, struct rp_chain_rank, ranks->n + 1);
    if (!out->ranks)
        return rp_err_nomem(err, "matching collectives");
    RP_TRY(match_collectives(&ctx, err));
    if (!out->ncollectives) {
        follow_one_rank(&ctx);
        return RP_OK;
    }
    RP_TRY(count_all_rendezvous(&ctx, err));
    measure_span(&ctx);
    if (!out->beside) {
        RP_TRY(list_members(&ctx, err));
        walk_chain(&ctx);
        return RP_OK;
    }
    follow_one_rank(&ctx);
    for (i = ctx.m.n; i > 0; i--)
        add_margin(&ctx, &ctx.m.at[i - 1], &waited);
    return RP_OK;
}
