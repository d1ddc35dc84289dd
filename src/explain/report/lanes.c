/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the lanes of a rank: one sweep over the unions of the work of each device, linear in its
 * intervals. Idle time of the main device is split by cause, like its gaps; that of a host by what
 * it did in its pauses. All times are exact: the states of a lane add up to the breakdown of the
 * span.
 */
#include "base/decides.h"
#include "explain/report/report.h"
#include "explain/report/view.h"

#include "base/order.h"
#include "facts/times/step_times.h"
#include "result/part.h"

#include <string.h>

#define MOST_PIECES 65536
#define SPARE       4
#define MOST_LANES  64
RP_LIMIT(SPARE, "times as many pieces", "before neighbours are joined, which takes time");
RP_LIMIT(MOST_PIECES, "pieces of a lane, in a part", "beyond, neighbours become one mixed piece");
RP_LIMIT(MOST_LANES, "lanes of a rank", "further devices are not drawn");

RP_PART_TYPE(rp_report_lane_type, struct rp_report_lane, RP_REPORT_LANE);

typedef RP_VEC(struct rp_lane_piece) piece_vec;

/* ------------------------------------------------------------------ pieces */

static int64_t piece_ns(const struct rp_lane_piece *piece)
{
    int64_t sum = 0;

    for (int s = 0; s < RP_LANE_STATES; s++)
        rp_ns_add(&sum, piece->ns[s]);
    return sum;
}

/* The joined piece has the cause of most of its idle time. */
static void piece_join(struct rp_lane_piece *to, const struct rp_lane_piece *more)
{
    if (more->ns[RP_LANE_IDLE] > to->ns[RP_LANE_IDLE])
        to->cause = more->cause;
    for (int s = 0; s < RP_LANE_STATES; s++)
        rp_ns_add(&to->ns[s], more->ns[s]);
    if (to->state != more->state)
        to->state = RP_LANE_MIXED;
}

/* Joins neighbours shorter than `least` until they are as long together; long pieces of one state
   stay. So there are at most two pieces for each `least` of the lane. */
static size_t join_short(struct rp_lane_piece *pieces, size_t n, int64_t least_ns)
{
    bool open = false; /* whether the last piece may grow */
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        bool whole = pieces[i].state != RP_LANE_MIXED && piece_ns(&pieces[i]) >= least_ns;

        if (open && !whole)
            piece_join(&pieces[m - 1], &pieces[i]);
        else
            pieces[m++] = pieces[i];
        open = !whole && piece_ns(&pieces[m - 1]) < least_ns;
    }
    return m;
}

size_t rp_lane_coarsen(struct rp_lane_piece *pieces, size_t n, size_t most)
{
    int64_t total = 0, least;

    for (size_t i = 0; i < n; i++)
        rp_ns_add(&total, piece_ns(&pieces[i]));
    most = most < 2 ? 2 : most;
    for (least = total / (int64_t)most / SPARE + 1; n > most; least *= 2) {
        n = join_short(pieces, n, least);
        if (least > total - least)
            break;
    }
    while (n > most) { /* damaged files have such times */
        piece_join(&pieces[n - 2], &pieces[n - 1]);
        n--;
    }
    return n;
}

static enum rp_code piece_add(piece_vec *to, uint8_t state, uint8_t cause, int64_t ns,
                              struct rp_err *err)
{
    struct rp_lane_piece piece = {.state = state, .cause = cause};
    struct rp_lane_piece *last = to->n ? &to->at[to->n - 1] : NULL;

    if (ns <= 0)
        return RP_OK;
    piece.ns[state] = ns;
    if (last && last->state == state && last->cause == cause) {
        piece_join(last, &piece);
        return RP_OK;
    }
    if (to->n >= SPARE * (size_t)MOST_PIECES)
        to->n = rp_lane_coarsen(to->at, to->n, MOST_PIECES);
    return rp_vec_push(to, piece, err);
}

/* ------------------------------------------------------------------ the sweep */

/* sweep: a union of intervals, and the first of them that is not over. */
struct sweep {
    const struct rp_interval *at;
    size_t n, i;
    bool inside;
};

/* Moves on to a time; returns the next one at which the union begins or ends. */
static int64_t sweep_to(struct sweep *s, int64_t t)
{
    while (s->i < s->n && s->at[s->i].end_ns <= t)
        s->i++;
    s->inside = s->i < s->n && s->at[s->i].begin_ns <= t;
    if (s->i == s->n)
        return INT64_MAX;
    return s->inside ? s->at[s->i].end_ns : s->at[s->i].begin_ns;
}

static uint8_t state_of(const struct sweep *compute, const struct sweep *comm,
                        const struct sweep *memory)
{
    if (compute->inside)
        return comm->inside ? RP_LANE_BOTH : RP_LANE_COMPUTE;
    return comm->inside ? RP_LANE_COMM : memory->inside ? RP_LANE_COPY : RP_LANE_IDLE;
}

/* Idle time, by the causes of the gaps in it. */
static enum rp_code add_idle(piece_vec *to, const rp_gap_vec *gaps, size_t *at, int64_t begin_ns,
                             int64_t end_ns, struct rp_err *err)
{
    while (gaps && *at < gaps->n && gaps->at[*at].end_ns <= begin_ns)
        (*at)++;
    while (begin_ns < end_ns) {
        const struct rp_gap *gap = gaps && *at < gaps->n ? &gaps->at[*at] : NULL;
        bool known = gap && gap->begin_ns <= begin_ns && gap->end_ns > begin_ns;
        int64_t until = known ? gap->end_ns : gap ? gap->begin_ns : end_ns;

        until = until > begin_ns && until < end_ns ? until : end_ns;
        RP_TRY(piece_add(to, RP_LANE_IDLE, known ? gap->cause : RP_GAP_CAUSES,
                         rp_ns_between(begin_ns, until), err));
        *at += known && gap->end_ns <= until;
        begin_ns = until;
    }
    return RP_OK;
}

static enum rp_code sweep_lane(const struct rp_work_unions *u, const rp_gap_vec *gaps,
                               struct rp_interval span, piece_vec *to, struct rp_err *err)
{
    struct sweep s[RP_WORK_CLASSES];
    size_t gap = 0;
    int64_t t, next;

    for (int c = 0; c < RP_WORK_CLASSES; c++)
        s[c] = (struct sweep){.at = u->cls[c].at, .n = u->cls[c].n};
    for (t = span.begin_ns; t < span.end_ns; t = next) {
        next = span.end_ns;
        for (int c = 0; c < RP_WORK_CLASSES; c++) {
            int64_t change = sweep_to(&s[c], t);

            next = change < next ? change : next;
        }
        uint8_t state = state_of(&s[RP_WORK_COMPUTE], &s[RP_WORK_COMM], &s[RP_WORK_MEMORY]);
        if (state == RP_LANE_IDLE)
            RP_TRY(add_idle(to, gaps, &gap, t, next, err));
        else
            RP_TRY(piece_add(to, state, RP_GAP_CAUSES, rp_ns_between(t, next), err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the lanes of a rank */

struct lanes_ctx {
    const struct rp_trace *trace;
    struct rp_report_part *part;
    struct rp_arena *arena;
    struct rp_interval span;
};

static enum rp_code keep_lane(struct lanes_ctx *ctx, struct rp_report_lane lane, piece_vec *pieces,
                              struct rp_err *err)
{
    lane.npieces = rp_lane_coarsen(pieces->at, pieces->n, MOST_PIECES);
    lane.pieces = RP_ARENA_NEW(ctx->arena, struct rp_lane_piece, lane.npieces + 1);
    lane.begin_ns = ctx->span.begin_ns;
    RP_TRY(rp_err_need(lane.pieces, err, "drawing a timeline"));
    if (lane.npieces && pieces->at)
        memcpy(lane.pieces, pieces->at, lane.npieces * sizeof *lane.pieces);
    ctx->part->lanes[ctx->part->nlanes++] = lane;
    return RP_OK;
}

/* Draws operators of the host: busy time without an operator is communication. */
static enum rp_code draw_host(struct lanes_ctx *ctx, struct rp_err *err)
{
    const struct rp_report_part *p = ctx->part;
    struct rp_work_unions u = {.cls[RP_WORK_COMPUTE] = p->compute, .cls[RP_WORK_MEMORY] = p->busy};
    struct rp_report_lane lane = {.device = RP_ABSENT_I64, .is_main = true, .on_host = true};
    struct rp_segments span = {1, &ctx->span};
    struct rp_report_pauses sums;
    piece_vec pieces = {0};
    rp_gap_vec pauses = {0};
    enum rp_code code =
        rp_report_find_pauses(ctx->trace, &p->busy, &span, ctx->arena, &sums, &pauses, err);

    if (code == RP_OK)
        code = sweep_lane(&u, &pauses, ctx->span, &pieces, err);
    for (size_t i = 0; i < pieces.n; i++)
        if (pieces.at[i].state == RP_LANE_COPY) {
            pieces.at[i].state = RP_LANE_COMM;
            pieces.at[i].ns[RP_LANE_COMM] = pieces.at[i].ns[RP_LANE_COPY];
            pieces.at[i].ns[RP_LANE_COPY] = 0;
        }
    if (code == RP_OK)
        code = keep_lane(ctx, lane, &pieces, err);
    rp_vec_release(&pieces);
    rp_vec_release(&pauses);
    return code;
}

static enum rp_code draw_device(struct lanes_ctx *ctx, const struct rp_work *work, uint16_t device,
                                bool is_main, struct rp_err *err)
{
    int64_t number = work->devices.at[device].number;
    struct rp_report_lane lane = {.device = number < 0 ? RP_ABSENT_I64 : number,
                                  .is_main = is_main};
    struct rp_work_unions unions = {0};
    struct rp_work own = {0};
    piece_vec pieces = {0};
    enum rp_code code = rp_work_of_device(work, device, &own, err);

    if (code == RP_OK)
        code = rp_work_unite(&own, &unions, err);
    if (code == RP_OK)
        code = sweep_lane(&unions, is_main ? &ctx->part->gaps : NULL, ctx->span, &pieces, err);
    if (code == RP_OK)
        code = keep_lane(ctx, lane, &pieces, err);
    rp_vec_release(&pieces);
    rp_work_unions_release(&unions);
    rp_work_release(&own);
    return code;
}

enum rp_code rp_report_draw_lanes(const struct rp_trace *trace, const struct rp_scope *scope,
                                  struct rp_arena *arena, struct rp_report_part *part,
                                  struct rp_err *err)
{
    struct lanes_ctx ctx = {.trace = trace,
                            .part = part,
                            .arena = arena,
                            .span = {part->whole.begin_ns, part->whole.end_ns}};
    struct rp_work work = {0};
    enum rp_code code = rp_work_init(&work, trace, scope, err);
    size_t n = work.devices.n, i, chosen;

    part->nlanes = 0;
    part->lanes = RP_ARENA_NEW(arena, struct rp_report_lane, n + 1);
    if (code == RP_OK && !part->lanes)
        code = rp_err_nomem(err, "drawing a timeline");
    if (code == RP_OK && !part->on_device)
        code = draw_host(&ctx, err);
    chosen = code == RP_OK && work.items.n ? rp_work_main_device(&work) : 0;
    for (i = 0; i < n && part->on_device && code == RP_OK; i++)
        if (i < MOST_LANES || i == chosen)
            code = draw_device(&ctx, &work, (uint16_t)i, i == chosen, err);
    rp_work_release(&work);
    return code;
}
