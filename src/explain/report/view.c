/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of all ranks: their lanes on one clock, with a limited total number of pieces, so that a
 * page of a large run is not larger than one of a small run; and the tables of `top`, added up as
 * that question does.
 */
#include "explain/report/view.h"
#include "base/decides.h"
#include "explain/report/report.h"

#include <string.h>

#define MOST_LANES  512
#define MOST_PIECES 120000
#define LEAST       512
#define MOST_ROWS   200
#define FAR_APART   4
#define MOST_DOTS   400
RP_LIMIT(FAR_APART, "spans of the longest rank", "lanes that are further apart each begin at 0");
RP_LIMIT(MOST_LANES, "lanes", "of the page, which says how many are left out");
RP_LIMIT(MOST_PIECES, "pieces of all lanes", "beyond, neighbours become one mixed piece");
RP_LIMIT(LEAST, "pieces of each lane", "whatever their number");
RP_LIMIT(MOST_ROWS, "rows of a table", "of the page; top has all");
RP_LIMIT(MOST_DOTS, "operators", "of the plot of the page; roofline has all");

const char *const rp_view_top_words[RP_VIEW_TOPS] = {"category", "kernel", "op"};
static const char *const top_titles[RP_VIEW_TOPS] = {"Categories", "Kernels", "Operators"};

struct view_ctx {
    const struct rp_ranks *ranks;
    const struct rp_chain *chain;
    struct rp_arena *arena;
    struct rp_report_root *root;
    struct rp_report_view *out;
    int64_t first_ns, longest_ns; /* begin of the earliest lane, on the first rank's clock */
};

static const struct rp_report_part *part_of(const struct view_ctx *ctx, size_t rank)
{
    return rp_report_part_of(ctx->ranks, rank);
}

/* Converts a time of a rank to the clock of the first. */
static int64_t common_time(const struct view_ctx *ctx, size_t rank, int64_t ns)
{
    return ctx->chain->clocks ? rp_clock_time(&ctx->chain->clocks[rank], ns) : ns;
}

/* If traces are unrelated, or ranks were recorded one after the other, their clocks leave the lanes
   far apart; then each lane begins at 0. */
static void find_begin(struct view_ctx *ctx)
{
    int64_t first = INT64_MAX, last = INT64_MIN;

    for (size_t r = 0; r < ctx->ranks->n; r++) {
        const struct rp_breakdown *span = &part_of(ctx, r)->whole;
        int64_t begin = common_time(ctx, r, span->begin_ns);
        int64_t end = common_time(ctx, r, span->end_ns);

        first = begin < first ? begin : first;
        last = end > last ? end : last;
        ctx->longest_ns = span->window_ns > ctx->longest_ns ? span->window_ns : ctx->longest_ns;
    }
    ctx->first_ns = first;
    ctx->out->aligned = !ctx->ranks->unrelated && last >= first &&
                        rp_ns_between(first, last) / FAR_APART <= ctx->longest_ns;
    ctx->out->span_ns = ctx->out->aligned ? rp_ns_between(first, last) : ctx->longest_ns;
}

static int64_t time_from_begin(const struct view_ctx *ctx, size_t rank, int64_t ns)
{
    return ctx->out->aligned ? rp_ns_between(ctx->first_ns, common_time(ctx, rank, ns))
                             : rp_ns_between(part_of(ctx, rank)->whole.begin_ns, ns);
}

static const char *lane_name(const struct view_ctx *ctx, size_t rank,
                             const struct rp_report_lane *lane)
{
    int number = ctx->ranks->parts[rank].number;

    if (part_of(ctx, rank)->nlanes < 2)
        return rp_arena_textf(ctx->arena, "rank %d", number);
    if (ctx->ranks->n < 2 && lane->device != RP_ABSENT_I64)
        return rp_arena_textf(ctx->arena, "GPU %lld", (long long)lane->device);
    if (lane->device == RP_ABSENT_I64)
        return rp_arena_textf(ctx->arena, "rank %d, device", number);
    return rp_arena_textf(ctx->arena, "rank %d, GPU %lld", number, (long long)lane->device);
}

/* Whether a rank waits in collectives at `begin`, and when that changes next. */
static bool waits_at(const rp_interval_vec *waits, size_t *at, int64_t t, int64_t *next)
{
    while (*at < waits->n && waits->at[*at].end_ns <= t)
        (*at)++;
    if (*at == waits->n)
        return false;
    if (waits->at[*at].begin_ns > t) {
        *next = waits->at[*at].begin_ns < *next ? waits->at[*at].begin_ns : *next;
        return false;
    }
    *next = waits->at[*at].end_ns < *next ? waits->at[*at].end_ns : *next;
    return true;
}

/* Copies the pieces of a lane; communication in which the rank waits for others becomes a state of
   its own. In a mixed piece it is unknown which part that is, so it is at most its
   communication. */
static size_t split_waits(const struct rp_report_lane *lane, const rp_interval_vec *waits,
                          struct rp_lane_piece *to)
{
    int64_t t = lane->begin_ns, end;
    size_t i, n = 0, at = 0;

    for (i = 0; i < lane->npieces; i++, t = end) {
        struct rp_lane_piece p = lane->pieces[i];

        end = t;
        for (int s = 0; s < RP_LANE_STATES; s++)
            rp_ns_add(&end, p.ns[s]);
        if (p.state == RP_LANE_MIXED) {
            int64_t wait = rp_union_covers(waits->at, waits->n, t, end), comm = p.ns[RP_LANE_COMM];

            p.ns[RP_LANE_WAIT] = wait < comm ? wait : comm;
            p.ns[RP_LANE_COMM] = rp_ns_between(p.ns[RP_LANE_WAIT], comm);
        }
        while (p.state == RP_LANE_COMM && t < end) {
            int64_t next = end;
            bool wait = waits_at(waits, &at, t, &next);
            struct rp_lane_piece part = {.state = wait ? RP_LANE_WAIT : RP_LANE_COMM,
                                         .cause = p.cause};

            part.ns[part.state] = rp_ns_between(t, next);
            to[n++] = part;
            t = next;
        }
        if (p.state != RP_LANE_COMM)
            to[n++] = p;
    }
    return n;
}

static void add_lane(struct view_ctx *ctx, size_t rank, const struct rp_report_lane *lane,
                     size_t most)
{
    static const rp_interval_vec none = {0};
    const rp_interval_vec *waits = ctx->chain->waits && !ctx->chain->beside && lane->is_main
                                       ? &ctx->chain->waits[rank]
                                       : &none;
    struct rp_view_lane *to = &ctx->out->lanes[ctx->out->nlanes];

    *to = (struct rp_view_lane){.name = lane_name(ctx, rank, lane),
                                .rank = ctx->ranks->parts[rank].number,
                                .at_ns = time_from_begin(ctx, rank, lane->begin_ns),
                                .is_main = lane->is_main};
    to->pieces = RP_ARENA_NEW(ctx->arena, struct rp_lane_piece, lane->npieces + 2 * waits->n + 1);
    if (!to->pieces)
        return;
    to->npieces = rp_lane_coarsen(to->pieces, split_waits(lane, waits, to->pieces), most);
    for (size_t i = 0; i < to->npieces; i++)
        for (int s = 0; s < RP_LANE_STATES; s++)
            rp_ns_add(&to->ns[s], to->pieces[i].ns[s]);
    for (int s = 0; s < RP_LANE_STATES; s++)
        rp_ns_add(&to->total_ns, to->ns[s]);
    ctx->out->on_host |= lane->on_host;
    ctx->out->nlanes++;
}

static void join_lanes(struct view_ctx *ctx)
{
    size_t r, i, n = 0, most;

    for (r = 0; r < ctx->ranks->n; r++)
        n += part_of(ctx, r)->nlanes;
    ctx->out->left_out = n > MOST_LANES ? n - MOST_LANES : 0;
    n -= ctx->out->left_out;
    most = n && MOST_PIECES / n > LEAST ? MOST_PIECES / n : LEAST;
    ctx->out->lanes = RP_ARENA_NEW(ctx->arena, struct rp_view_lane, n + 1);
    for (r = 0; r < ctx->ranks->n && ctx->out->lanes; r++)
        for (i = 0; i < part_of(ctx, r)->nlanes && ctx->out->nlanes < n; i++)
            add_lane(ctx, r, &part_of(ctx, r)->lanes[i], most);
}

/* Names the states like the parts of the answer. */
static void name_states(struct view_ctx *ctx)
{
    const struct rp_report_part *p = part_of(ctx, 0);

    ctx->out->busy = p->on_device ? "compute" : p->by_ranges ? "user code" : "operators";
    ctx->out->rest = p->on_device ? "idle" : p->by_ranges ? "no range" : "no operator";
}

/* The steps of the answer are those of all ranks, one rank after the other. */
static void place_steps(struct view_ctx *ctx)
{
    size_t r, i, n = 0;

    ctx->out->step_at_ns = RP_ARENA_NEW(ctx->arena, int64_t, ctx->root->nsteps + 1);
    for (r = 0; r < ctx->ranks->n && ctx->out->step_at_ns; r++)
        for (i = 0; i < part_of(ctx, r)->nsteps && n < ctx->root->nsteps; i++)
            ctx->out->step_at_ns[n++] =
                time_from_begin(ctx, r, part_of(ctx, r)->steps[i].b.begin_ns);
}

static enum rp_code join_top(struct view_ctx *ctx, size_t k, struct rp_err *err)
{
    const struct rp_top_part **parts =
        RP_ARENA_NEW(ctx->arena, const struct rp_top_part *, ctx->ranks->n + 1);
    struct rp_view_top *top = &ctx->out->tops[k];

    top->by = rp_view_top_words[k];
    top->title = top_titles[k];
    top->root = RP_ARENA_NEW(ctx->arena, struct rp_top_root, 1);
    RP_TRY(rp_err_need(parts && top->root, err, "adding up ranks"));
    for (size_t r = 0; r < ctx->ranks->n; r++)
        parts[r] = &part_of(ctx, r)->tops[k];
    return rp_top_join(parts, ctx->ranks->n, top->by, "total", MOST_ROWS, ctx->arena, top->root,
                       err);
}

/* Keeps the rows with most time, in their order. */
static void limit_roof(struct view_ctx *ctx, struct rp_roof_root *roof)
{
    int64_t *times = RP_ARENA_NEW(ctx->arena, int64_t, roof->nknown + 1), least;
    size_t i, n = 0;

    if (!times || roof->nknown <= MOST_DOTS)
        return;
    for (i = 0; i < roof->nknown; i++)
        times[i] = roof->known[i].device_ns;
    rp_ns_sort(times, roof->nknown);
    least = times[roof->nknown - MOST_DOTS];
    for (i = 0; i < roof->nknown && n < MOST_DOTS; i++)
        if (roof->known[i].device_ns >= least)
            roof->known[n++] = roof->known[i];
    roof->nknown = n;
}

static enum rp_code join_roof(struct view_ctx *ctx, struct rp_err *err)
{
    const struct rp_roof_options options = {.by = RP_ROOF_SHAPE, .achievable = RP_ROOF_ACHIEVABLE};
    const struct rp_roof_part **parts =
        RP_ARENA_NEW(ctx->arena, const struct rp_roof_part *, ctx->ranks->n + 1);

    ctx->out->roof = RP_ARENA_NEW(ctx->arena, struct rp_roof_root, 1);
    RP_TRY(rp_err_need(parts && ctx->out->roof, err, "adding up ranks"));
    for (size_t r = 0; r < ctx->ranks->n; r++)
        parts[r] = &part_of(ctx, r)->roof;
    RP_TRY(
        rp_roof_join(parts, ctx->ranks->n, &options, "shape", 0, ctx->arena, ctx->out->roof, err));
    limit_roof(ctx, ctx->out->roof);
    return RP_OK;
}

enum rp_code rp_report_join_view(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                 struct rp_result *result, struct rp_err *err)
{
    struct rp_report_root *root = result->root;
    struct view_ctx ctx = {.ranks = ranks, .chain = chain, .arena = &result->arena, .root = root};

    root->view = ctx.out = RP_ARENA_NEW(&result->arena, struct rp_report_view, 1);
    RP_TRY(rp_err_need(ctx.out, err, "drawing a timeline"));
    name_states(&ctx);
    find_begin(&ctx);
    join_lanes(&ctx);
    place_steps(&ctx);
    for (size_t k = 0; k < RP_VIEW_TOPS; k++)
        RP_TRY(join_top(&ctx, k, err));
    RP_TRY(join_roof(&ctx, err));
    RP_TRY(rp_report_join_pairs(ranks, chain, ctx.arena, ctx.out, err));
    return rp_arena_check(&result->arena, "drawing a timeline", err);
}
