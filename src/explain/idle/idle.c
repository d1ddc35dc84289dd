/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up gaps by cause and class. The evidence of a row is what was recorded in most of its time:
 * for late launches the host span, for waits of the device the work before the gap. Samples of call
 * stacks tell the line of the launching thread where no span does, and inside of long spans.
 */
#include "explain/idle/idle.h"

#include "base/hash.h"
#include "base/order.h"
#include "dataset/question.h"
#include "explain/idle/sampled.h"
#include "explain/short_name.h"
#include "facts/host/outside.h"
#include "facts/ranks/collectives.h"
#include "result/part.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ what is kept and shown */

#define CAUSE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_cause, member, type, unit, title, doc, flags)

/* "class" is the key in the answer; the member is cls, because of C++. */
#define CLASS(s, title) \
    RP_FIELD_AS("class", s, cls, STR, NONE, title, "not_launched, short, dependency or unlinked", 0)

static const struct rp_field cause_fields[] = {
    CAUSE(cause, STR, NONE, "cause", "why the device was idle", 0),
    CLASS(struct rp_idle_cause, NULL),
    CAUSE(total_ns, I64, NS, "idle", "sum of the gaps", 0),
    CAUSE(share, F64, RATIO, "share", "share of all idle time", RP_BAR),
    CAUSE(count, I64, COUNT, "gaps", "number of gaps with this cause", 0),
    CAUSE(longest_ns, I64, NS, "longest", "the most in one gap", 0),
    CAUSE(evidence, STR, NONE, "mainly", "what the host or the device did during most of it",
          RP_SHORTEN),
    CAUSE(sampled, STR, NONE, NULL, "the line in which most samples found the launching thread", 0),
    RP_FIELD_END};
const struct rp_type rp_idle_cause_type = {"cause", sizeof(struct rp_idle_cause), cause_fields,
                                           NULL};

#define GAP(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_gap, member, type, unit, title, doc, flags)

static const struct rp_field gap_fields[] = {
    GAP(rank, I64, NONE, "rank", "whose device", 0),
    GAP(device, I64, NONE, "device", "number of the device; null: not recorded", RP_NULLABLE),
    GAP(begin_ns, I64, NS, NULL, "recorded time at which it began", 0),
    GAP(dur_ns, I64, NS, "idle", "how long it was", 0),
    GAP(cause, STR, NONE, "cause", "why, for most of it", 0),
    GAP(cause_ns, I64, NS, NULL, "how much of it has that cause", 0),
    CLASS(struct rp_idle_gap, NULL),
    GAP(before, STR, NONE, NULL, "the work that ended last", 0),
    GAP(after, STR, NONE, NULL, "the work that ended the gap", 0),
    GAP(thread, STR, NONE, NULL, "the thread that launched it, or null", 0),
    GAP(host, STR, NONE, NULL, "what the thread ran meanwhile, or null", 0),
    GAP(sampled, STR, NONE, NULL, "the line in which most samples found the thread, or null", 0),
    GAP(host_label, STR, NONE, "the host ran", "text output only", RP_SCREEN | RP_SHORTEN),
    GAP(after_label, STR, NONE, "until", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type gap_type = {"gap", sizeof(struct rp_idle_gap), gap_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_rank, member, type, unit, title, doc, flags)

#define RANK_TIMES                                                                                 \
    RANK(window_ns, I64, NS, NULL, "first start to last end of device work", 0),                   \
        RANK(busy_ns, I64, NS, NULL, "time in which device work runs", 0),                         \
        RANK(idle_ns, I64, NS, NULL, "the rest of the window", 0),                                 \
        RANK(idle_share, F64, RATIO, NULL, "idle / window", 0),                                    \
        RANK(span_ns, I64, NS, "span", "span of the steps, as in 'report'", 0),                    \
        RANK(span_idle_ns, I64, NS, "idle", "time of the span in which no device work runs",       \
             RP_LARGEST),                                                                          \
        RANK(span_share, F64, RATIO, "share", "idle / span", 0),                                   \
        RANK(explained_share, F64, RATIO, "explained", "share of idle time with a known cause",    \
             0),                                                                                   \
        RANK(gap_count, I64, COUNT, NULL, "gaps of the window", 0),                                \
        RANK(                                                                                      \
            span_gap_count, I64, COUNT, "gaps",                                                    \
            "gaps of the span, including one before its first and one after its last device work", \
            0),                                                                                    \
        RP_FIELD_LIST(struct rp_idle_rank, causes, &rp_idle_cause_type, NULL,                      \
                      "idle time of the window by cause and class", 0),                            \
        RP_FIELD_LIST(struct rp_idle_rank, span_causes, &rp_idle_cause_type, NULL,                 \
                      "idle time of the span by cause and class", 0)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0), RANK_TIMES, RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_idle_rank), rank_fields, NULL};

static const struct rp_field device_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(device, I64, NONE, "device", "its number; null: not recorded", RP_NULLABLE),
    RANK(is_main, BOOL, NONE, NULL, "whether the rank's record is that of this device", 0),
    RANK_TIMES,
    RP_FIELD_END};
static const struct rp_type device_type = {"device", sizeof(struct rp_idle_rank), device_fields,
                                           NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct rp_idle_root, summary, STR, NONE, "idle", "text output only", RP_SCREEN),
    RP_FIELD_SHOWN(struct rp_idle_root, rows, &rank_type, "ranks", NULL, 0),
    RP_FIELD_SHOWN(struct rp_idle_root, some, &device_type, "devices", NULL, 0),
    RP_FIELD_LIST(struct rp_idle_root, ranks, &rank_type, NULL,
                  "one record per rank, that of its main device", 0),
    RP_FIELD_LIST(struct rp_idle_root, devices, &device_type, NULL,
                  "one record per device of a rank", 0),
    RP_FIELD_SHOWN(struct rp_idle_root, stream_rows, &rp_idle_stream_type, "streams", NULL, 0),
    RP_FIELD_LIST(struct rp_idle_root, streams, &rp_idle_stream_type, NULL,
                  "one record per stream of a device, with --by stream", 0),
    RP_FIELD_SHOWN(struct rp_idle_root, causes, &rp_idle_cause_type, "causes", NULL, 0),
    RP_FIELD_SHOWN(struct rp_idle_root, gap_rows, &gap_type, "longest gaps",
                   "rank, dur_ns, cause, host_label, after_label", 0),
    RP_FIELD_SHOWN(struct rp_idle_root, device_gaps, &gap_type, "longest gaps", NULL, 0),
    RP_FIELD_LIST(struct rp_idle_root, gaps, &gap_type, NULL, "the longest of all ranks", 0),
    RP_FIELD_SHOWN(struct rp_idle_root, wait_rows, &rp_idle_wait_type, "where the threads wait",
                   NULL, 0),
    RP_FIELD_LIST(struct rp_idle_root, waits, &rp_idle_wait_type, NULL,
                  "waits of host threads, where no device work was recorded", 0),
    RP_FIELD_LIST(struct rp_idle_root, notes, &rp_type_string, "notes",
                  "what of the recording does not count", 0),
    RP_FIELD_END};

static const struct rp_type idle_type = {"idle", sizeof(struct rp_idle_root), root_fields,
                                         "devices/causes"};

#define PART(kind, member) RP_PART_##kind(struct rp_idle_rank, member)

static const struct rp_field part_device_fields[] = {
    PART(PLAIN, device),
    PART(PLAIN, is_main),
    PART(PLAIN, window_ns),
    PART(PLAIN, busy_ns),
    PART(PLAIN, idle_ns),
    PART(PLAIN, gap_count),
    PART(PLAIN, span_ns),
    PART(PLAIN, span_idle_ns),
    PART(PLAIN, span_gap_count),
    PART(PLAIN, idle_share),
    PART(PLAIN, span_share),
    PART(PLAIN, explained_share),
    RP_PART_LIST(struct rp_idle_rank, causes, &rp_idle_cause_type),
    RP_PART_LIST(struct rp_idle_rank, span_causes, &rp_idle_cause_type),
    RP_PART_LIST(struct rp_idle_rank, gaps, &gap_type),
    RP_PART_END};
static const struct rp_type part_device_type = {"device", sizeof(struct rp_idle_rank),
                                                part_device_fields, NULL};

static const struct rp_field part_fields[] = {
    RP_PART_LIST(struct rp_idle_part, devices, &part_device_type),
    RP_PART_LIST(struct rp_idle_part, streams, &rp_idle_stream_type),
    RP_PART_RECORD(struct rp_idle_part, waits, &rp_host_waits_type),
    RP_PART_PLAIN(struct rp_idle_part, span_ns),
    RP_PART_PLAIN(struct rp_idle_part, collectives_ns),
    RP_PART_TEXT(struct rp_idle_part, outside),
    RP_PART_END};
static const struct rp_type part_type = {"idle_part", sizeof(struct rp_idle_part), part_fields,
                                         NULL};

/* ------------------------------------------------------------------ one rank by cause */

#define ROWS ((size_t)RP_GAP_CAUSES * RP_GAP_CLASSES)

/* name_time: the time of a row in which one name was recorded. */
struct name_time {
    uint32_t row;
    rp_str name;
    int64_t ns;
};

struct idle_sums {
    const struct rp_trace *t;
    const struct rp_work *w;
    struct rp_arena *arena;
    struct rp_idle_cause rows[ROWS];
    int64_t gap_ns[ROWS]; /* by row: time of the gap that is being added */
    struct rp_map known;  /* from (row, name) to the index in names */
    RP_VEC(struct name_time) names;
    struct rp_sampled sampled; /* by index into names */
};

/* The name that is blamed for a piece of a gap, or 0. */
static rp_str blamed_name(const struct idle_sums *s, const struct rp_gap *gap)
{
    const struct rp_work_item *items = s->w->items.at;

    if ((gap->cause == RP_GAP_EVENT_WAIT || gap->cause == RP_GAP_COPY) && gap->before != RP_NONE)
        return s->t->ev.name[items[gap->before].event];
    if ((gap->cause == RP_GAP_DEVICE_WAIT || gap->cause == RP_GAP_UNKNOWN) && gap->after != RP_NONE)
        return s->t->ev.name[items[gap->after].event];
    return gap->host == RP_NONE ? 0 : s->t->ev.name[gap->host];
}

/* Whether a line of code says more than what was recorded: the host ran something for long, or it
   is unknown what it ran. */
static bool needs_line(const struct rp_gap *gap)
{
    return gap->cause == RP_GAP_HOST_WORK || gap->cause == RP_GAP_HOST_WAIT ||
           gap->cause == RP_GAP_HOST_UNRECORDED || gap->cause == RP_GAP_DATA_LOADER ||
           (gap->cause == RP_GAP_NOT_LAUNCHED && gap->host == RP_NONE);
}

/* A gap counts once in each of its rows, however many pieces it has there. */
static enum rp_code add_piece(struct idle_sums *s, const struct rp_gap *gap, struct rp_err *err)
{
    struct name_time fresh = {.row = gap->cause * RP_GAP_CLASSES + gap->cls,
                              .name = blamed_name(s, gap)};
    struct rp_idle_cause *row = &s->rows[fresh.row];
    int64_t length = rp_ns_between(gap->begin_ns, gap->end_ns);
    uint32_t at;

    if (!gap->continues)
        memset(s->gap_ns, 0, sizeof s->gap_ns);
    row->count += !s->gap_ns[fresh.row];
    rp_ns_add(&row->total_ns, length);
    rp_ns_add(&s->gap_ns[fresh.row], length);
    if (s->gap_ns[fresh.row] > row->longest_ns)
        row->longest_ns = s->gap_ns[fresh.row];
    RP_TRY(rp_map_intern(&s->known, (uint64_t)fresh.row << 32 | fresh.name, (uint32_t)s->names.n,
                         &at, err));
    if (at == s->names.n)
        RP_TRY(rp_vec_push(&s->names, fresh, err));
    rp_ns_add(&s->names.at[at].ns, length);
    return needs_line(gap) ? rp_sampled_add(&s->sampled, at, rp_gap_thread(s->w, gap),
                                            gap->begin_ns, gap->end_ns, err)
                           : RP_OK;
}

static double percent_of(const struct idle_sums *s, uint32_t row, int64_t ns)
{
    return 100.0 * (double)ns / (double)s->rows[row].total_ns;
}

/* "decode at image.py:88 (41 % of it, waiting for the GIL)" */
static const char *place_text(const struct idle_sums *s, const struct rp_sampled_place *place)
{
    const struct name_time *of = &s->names.at[place->key];

    return rp_arena_textf(s->arena, "%s (%.0f %% of it%s)",
                          rp_sampled_text(&s->sampled, place, false, s->arena),
                          percent_of(s, of->row, rp_sampled_ns(&s->sampled, place, of->ns)),
                          rp_sampled_gil(&s->sampled, place, s->arena));
}

/* "cudaStreamSynchronize (83 % of it)" */
static const char *name_text(const struct idle_sums *s, const struct name_time *name)
{
    char label[160] = "nothing recorded on the thread";

    if (name->name) {
        rp_short_name(rp_trace_str(s->t, name->name), label, sizeof label);

        /* Cut names of over 60 letters in the middle, because evidence is part of a sentence. */
        size_t len = strlen(label);
        if (len > 60) {
            memmove(label + 44, label + len - 14, 15);
            memcpy(label + 41, "\xe2\x80\xa6", 3); /* an ellipsis */
        }
    }
    return rp_arena_textf(s->arena, "%s (%.0f %% of it)", label,
                          percent_of(s, name->row, name->ns));
}

/* Sets a name with the main line of its time; or only a line, which counts among the names where
   nothing was recorded. */
static void set_evidence(const struct idle_sums *s, uint32_t row, struct rp_idle_cause *out)
{
    /* The name with most of a row's time. "No name" wins only with half of it. */
    const struct name_time *best = NULL;

    for (size_t i = 0; i < s->names.n; i++) {
        const struct name_time *n = &s->names.at[i];

        if (n->row == row && (n->name || n->ns >= s->rows[row].total_ns / 2) &&
            (!best || n->ns > best->ns))
            best = n;
    }

    uint32_t unnamed = rp_map_get(&s->known, (uint64_t)row << 32);
    const struct rp_sampled_place *place =
        unnamed == RP_MAP_NONE ? NULL : rp_sampled_main(&s->sampled, unnamed);
    bool alone = place && (!best || !best->name ||
                           rp_sampled_ns(&s->sampled, place, s->names.at[unnamed].ns) > best->ns);

    if (!alone)
        place = best ? rp_sampled_main(&s->sampled, (uint32_t)(best - s->names.at)) : NULL;
    if (place)
        out->sampled = rp_sampled_text(&s->sampled, place, true, s->arena);
    if (alone)
        out->evidence = place_text(s, place);
    else if (best)
        out->evidence =
            place ? rp_arena_textf(s->arena, "%s; %s", name_text(s, best), place_text(s, place))
                  : name_text(s, best);
}

RP_ORDER(by_total, struct rp_idle_cause, RP_DOWN(total_ns), strcmp(a->cause, b->cause))

static void finish_rows(struct idle_sums *s, struct rp_idle_cause *out, size_t *nout)
{
    int64_t idle = 0;

    for (uint32_t row = 0; row < ROWS; row++)
        rp_ns_add(&idle, s->rows[row].total_ns);
    for (uint32_t row = 0; row < ROWS; row++) {
        struct rp_idle_cause *c = &s->rows[row];

        if (!c->count)
            continue;
        c->cause = rp_gap_cause_names[row / RP_GAP_CLASSES];
        c->cls = rp_gap_class_names[row % RP_GAP_CLASSES];
        set_evidence(s, row, c);
        c->share = idle > 0 ? (double)c->total_ns / (double)idle : 0;
        out[(*nout)++] = *c;
    }
    qsort(out, *nout, sizeof *out, by_total);
}

enum rp_code rp_idle_add_up(const struct rp_work *work, const rp_gap_vec *gaps,
                            struct rp_arena *arena, struct rp_idle_cause **out, size_t *nout,
                            struct rp_err *err)
{
    struct idle_sums s = {.t = work->trace, .w = work, .arena = arena};

    *nout = 0;
    *out = RP_ARENA_NEW(arena, struct rp_idle_cause, ROWS);
    RP_TRY(rp_err_need(*out, err, "explaining idle time"));
    enum rp_code code = rp_sampled_init(&s.sampled, work->trace, err);
    for (size_t i = 0; i < gaps->n && code == RP_OK; i++)
        code = add_piece(&s, &gaps->at[i], err);
    if (code == RP_OK)
        finish_rows(&s, *out, nout);
    rp_map_release(&s.known);
    rp_vec_release(&s.names);
    rp_sampled_release(&s.sampled);
    return code == RP_OK ? rp_arena_check(arena, "explaining idle time", err) : code;
}

/* ------------------------------------------------------------------ the part of a rank */

struct idle_ctx {
    struct rp_gap_finder *finder;
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_idle_rank *out;
    struct rp_work w;
    struct rp_work_unions unions;
    rp_gap_vec gaps;
    const struct rp_judged *judged;
    const struct rp_segments *span; /* the time that 'report' judges */
};

static const char *trace_text(const struct idle_ctx *ctx, rp_str s)
{
    return rp_arena_text(ctx->arena, rp_trace_str(ctx->t, s));
}

/* whole_gap: a gap with all its pieces. */
struct whole_gap {
    int64_t begin_ns, end_ns, cause_ns;
    const struct rp_gap *main; /* a piece with the cause that has most time */
};

static const char *thread_text(const struct idle_ctx *ctx, const struct rp_gap *gap)
{
    rp_event launch = gap->after == RP_NONE ? RP_NONE : ctx->w.items.at[gap->after].launch;

    if (launch == RP_NONE)
        return NULL;
    const struct rp_track_info *track = &ctx->t->tracks[ctx->t->ev.track[launch]];
    return track->text ? trace_text(ctx, track->text)
                       : rp_arena_textf(ctx->arena, "%lld", (long long)track->native_id);
}

/* Finds the main line of the launching thread in the piece that names the gap. */
static enum rp_code sample_gap(const struct idle_ctx *ctx, const struct rp_gap *gap,
                               struct rp_idle_gap *out, struct rp_err *err)
{
    RP_SCOPED(rp_sampled_release) struct rp_sampled sampled = {0};
    const struct rp_sampled_place *place = NULL;

    RP_TRY(rp_sampled_init(&sampled, ctx->t, err));
    if (needs_line(gap))
        RP_TRY(rp_sampled_add(&sampled, 0, rp_gap_thread(&ctx->w, gap), gap->begin_ns, gap->end_ns,
                              err));
    place = rp_sampled_main(&sampled, 0);
    if (place) {
        out->sampled = rp_sampled_text(&sampled, place, true, ctx->arena);
        if (!out->host)
            out->host_label = rp_sampled_text(&sampled, place, false, ctx->arena);
    }
    return RP_OK;
}

static struct rp_idle_gap describe_gap(const struct idle_ctx *ctx, const struct whole_gap *whole)
{
    const struct rp_gap *gap = whole->main;
    const struct rp_work_item *items = ctx->w.items.at;
    const rp_str *name = ctx->t->ev.name;
    const char *after = gap->after == RP_NONE ? "the end of the step"
                                              : trace_text(ctx, name[items[gap->after].event]);
    const char *host = gap->host == RP_NONE ? NULL : trace_text(ctx, name[gap->host]);
    char label[160];

    rp_short_name(after ? after : "", label, sizeof label);
    return (struct rp_idle_gap){.device = ctx->out->device,
                                .begin_ns = whole->begin_ns,
                                .dur_ns = rp_ns_between(whole->begin_ns, whole->end_ns),
                                .cause_ns = whole->cause_ns,
                                .cause = rp_gap_cause_names[gap->cause],
                                .cls = rp_gap_class_names[gap->cls],
                                .before = gap->before == RP_NONE
                                              ? "the begin of the step"
                                              : trace_text(ctx, name[items[gap->before].event]),
                                .after = after,
                                .host = host,
                                .host_label = host,
                                .thread = thread_text(ctx, gap),
                                .after_label = rp_arena_text(ctx->arena, label)};
}

RP_ORDER(by_length, struct whole_gap,
         RP_COMPARE(rp_ns_between(b->begin_ns, b->end_ns), rp_ns_between(a->begin_ns, a->end_ns)),
         RP_UP(begin_ns))

/* Joins the gap that begins with a piece; sets *next to the first piece of the next one. */
static struct whole_gap join_pieces(const rp_gap_vec *gaps, size_t first, size_t *next)
{
    struct whole_gap whole = {.begin_ns = gaps->at[first].begin_ns};
    int64_t sum[RP_GAP_CAUSES] = {0};
    size_t i = first;

    do {
        const struct rp_gap *piece = &gaps->at[i];
        int64_t *ns = &sum[piece->cause];

        rp_ns_add(ns, rp_ns_between(piece->begin_ns, piece->end_ns));
        if (*ns > whole.cause_ns) {
            whole.cause_ns = *ns;
            whole.main = piece;
        }
        whole.end_ns = piece->end_ns;
    } while (++i < gaps->n && gaps->at[i].continues);
    *next = i;
    return whole;
}

/* Breaks down intervals. */
static struct rp_breakdown sum_segments(const struct idle_ctx *ctx, const struct rp_segments *s)
{
    struct rp_breakdown b = rp_work_breakdown_of(&ctx->unions, s->at[0].begin_ns, s->at[0].end_ns);

    for (size_t i = 1; i < s->n; i++) {
        struct rp_breakdown more =
            rp_work_breakdown_of(&ctx->unions, s->at[i].begin_ns, s->at[i].end_ns);

        rp_breakdown_add(&b, &more);
    }
    return b;
}

/* Explains the gaps of the span, from its begin to its end, which the screen shows. */
static enum rp_code explain_span(struct idle_ctx *ctx, size_t limit, struct rp_err *err)
{
    struct rp_idle_rank *out = ctx->out;
    struct rp_breakdown b = sum_segments(ctx, ctx->span);
    int64_t unknown = 0;

    ctx->gaps.n = 0;
    rp_segments_keep_work(ctx->span, &ctx->w); /* as 'report' does, so that causes agree */
    for (size_t i = 0; i < ctx->span->n; i++)
        RP_TRY(rp_gaps_find_in(ctx->finder, &ctx->w, ctx->span->at[i].begin_ns,
                               ctx->span->at[i].end_ns, &ctx->gaps, err));
    RP_TRY(rp_idle_add_up(&ctx->w, &ctx->gaps, ctx->arena, &out->span_causes, &out->nspan_causes,
                          err));
    out->span_ns = b.window_ns;
    out->span_idle_ns = b.idle_ns;
    out->span_share = b.window_ns > 0 ? (double)b.idle_ns / (double)b.window_ns : 0;
    for (size_t i = 0; i < out->nspan_causes; i++)
        if (!strcmp(out->span_causes[i].cause, rp_gap_cause_names[RP_GAP_UNKNOWN]))
            rp_ns_add(&unknown, out->span_causes[i].total_ns);
    out->explained_share = b.idle_ns > 0 ? 1 - (double)unknown / (double)b.idle_ns : 1;

    /* Count the gaps and list the longest. */
    struct whole_gap *all = RP_ARENA_NEW(ctx->arena, struct whole_gap, ctx->gaps.n + 1);
    size_t i, n = 0;
    RP_TRY(rp_err_need(all, err, "explaining idle time"));
    for (i = 0; i < ctx->gaps.n;)
        all[n++] = join_pieces(&ctx->gaps, i, &i);
    ctx->out->span_gap_count = (int64_t)n;
    ctx->out->gaps = RP_ARENA_NEW(ctx->arena, struct rp_idle_gap, (n < limit ? n : limit) + 1);
    rp_sort(all, n, sizeof *all, by_length);
    for (i = 0; i < n && i < limit && ctx->out->gaps; i++) {
        ctx->out->gaps[i] = describe_gap(ctx, &all[i]);
        RP_TRY(sample_gap(ctx, all[i].main, &ctx->out->gaps[i], err));
        ctx->out->ngaps++;
    }
    return RP_OK;
}

/* Explains the gaps of the device window, or of the steps that are judged. */
static enum rp_code explain_window(struct idle_ctx *ctx, struct rp_err *err)
{
    const struct rp_segments *s = &ctx->judged->segments;
    struct rp_breakdown b = s->n ? sum_segments(ctx, s) : rp_work_breakdown(&ctx->unions);
    struct rp_idle_rank *out = ctx->out;

    ctx->gaps.n = 0;
    if (s->n)
        rp_segments_keep_work(s, &ctx->w);
    for (size_t i = 0; i < s->n; i++)
        RP_TRY(rp_gaps_find_in(ctx->finder, &ctx->w, s->at[i].begin_ns, s->at[i].end_ns, &ctx->gaps,
                               err));
    if (!s->n)
        RP_TRY(rp_gaps_find(ctx->finder, &ctx->w, &ctx->gaps, err));
    out->window_ns = b.window_ns;
    out->busy_ns = b.busy_ns;
    out->idle_ns = b.idle_ns;

    int64_t n = 0;
    for (size_t i = 0; i < ctx->gaps.n; i++)
        n += !ctx->gaps.at[i].continues;
    out->gap_count = n;
    out->idle_share = b.window_ns > 0 ? (double)b.idle_ns / (double)b.window_ns : 0;
    return rp_idle_add_up(&ctx->w, &ctx->gaps, ctx->arena, &out->causes, &out->ncauses, err);
}

static enum rp_code explain_device(struct idle_ctx *ctx, size_t limit, struct rp_err *err)
{
    RP_TRY(rp_work_unite(&ctx->w, &ctx->unions, err));
    RP_TRY(explain_window(ctx, err));
    return explain_span(ctx, limit, err);
}

/* Each device has its own gaps: if it waits, it is not busy just because another one computes. */
static enum rp_code explain_each(const struct rp_work *work, const struct rp_judged *judged,
                                 const struct rp_segments *span, struct rp_gap_finder *finder,
                                 size_t limit, struct rp_arena *arena, struct rp_idle_part *out,
                                 struct rp_err *err)
{
    uint16_t i, n = (uint16_t)work->devices.n, chosen = n ? rp_work_main_device(work) : 0;

    out->devices = RP_ARENA_NEW(arena, struct rp_idle_rank, n + 1);
    RP_TRY(rp_err_need(out->devices, err, "explaining idle time"));
    for (i = 0; i < n; i++) {
        int64_t number = work->devices.at[i].number;
        struct idle_ctx ctx = {.t = work->trace,
                               .judged = judged,
                               .span = span,
                               .arena = arena,
                               .finder = finder,
                               .out = &out->devices[i]};
        enum rp_code code = rp_work_of_device(work, i, &ctx.w, err);

        out->devices[out->ndevices++] = (struct rp_idle_rank){
            .device = number < 0 ? RP_ABSENT_I64 : number, .is_main = i == chosen};
        if (code == RP_OK)
            code = explain_device(&ctx, limit, err);
        rp_vec_release(&ctx.gaps);
        rp_work_unions_release(&ctx.unions);
        rp_work_release(&ctx.w);
        RP_TRY(code);
    }
    return RP_OK;
}

static enum rp_code explain_devices(const struct rp_work *work, const struct rp_judged *judged,
                                    const struct rp_segments *span, size_t limit,
                                    struct rp_arena *arena, struct rp_idle_part *out,
                                    struct rp_err *err)
{
    struct rp_gap_finder *finder;

    RP_TRY(rp_gap_finder_new(work->trace, &finder, err));
    enum rp_code code = explain_each(work, judged, span, finder, limit, arena, out, err);
    rp_gap_finder_free(finder);
    return code;
}

static bool by_stream(const struct rp_settings *settings)
{
    return !strcmp(rp_settings_text(settings, "by"), "stream");
}

static size_t gap_limit(const struct rp_settings *settings)
{
    int64_t limit = rp_settings_int(settings, "limit");

    return limit > 0 ? (size_t)limit : SIZE_MAX;
}

/* Measures collectives of the host, which mostly run on threads of their own. */
static enum rp_code measure_collectives(const struct rp_trace *trace,
                                        const struct rp_segments *span, int64_t *out,
                                        struct rp_err *err)
{
    rp_interval_vec all = {0};
    enum rp_code code = RP_OK;

    for (rp_event e = 0; e < trace->ev.n && code == RP_OK; e++)
        if (rp_event_is_host_collective(trace, e) && trace->ev.ts_ns[e] != RP_NO_TS &&
            trace->ev.dur_ns[e] > 0)
            code = rp_vec_push(
                &all, ((struct rp_interval){trace->ev.ts_ns[e], rp_event_end_ns(trace, e)}), err);
    all.n = rp_union_sort(all.at, all.n);
    *out = rp_union_common(all.at, all.n, span->at, span->n);
    rp_vec_release(&all);
    return code;
}

static enum rp_code explain_waits(const struct rp_trace *trace, const struct rp_segments *span,
                                  struct rp_arena *arena, struct rp_idle_part *out,
                                  struct rp_err *err)
{
    out->span_ns = rp_union_length(span->at, span->n);
    RP_TRY(measure_collectives(trace, span, &out->collectives_ns, err));
    return rp_host_waits_init(&out->waits, trace, span->at, span->n, arena, err);
}

static enum rp_code idle_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                              const struct rp_settings *settings, struct rp_rank_part *part,
                              struct rp_err *err)
{
    struct rp_idle_part *out = part->data;
    RP_SCOPED(rp_work_release) struct rp_work work = {0};
    struct rp_interval selected = scope->span;
    struct rp_segments span = {1, &selected};
    struct rp_judged judged;

    RP_TRY(rp_judged_find(loaded->trace, scope, &part->arena, &judged, err));
    if (!scope->limited)
        RP_TRY(rp_trace_segments(loaded->trace, &part->arena, &span, err));
    out->outside = rp_judged_text(&judged, &part->arena);
    if (!loaded->trace->nsteps) /* each device has a window of its own */
        judged.segments.n = 0;
    RP_TRY(rp_work_init(&work, loaded->trace, scope, err));
    RP_TRY(explain_devices(&work, &judged, &span, gap_limit(settings), &part->arena, out, err));
    if (by_stream(settings))
        RP_TRY(rp_idle_find_streams(&work, &part->arena, &out->streams, &out->nstreams, err));
    if (!work.items.n)
        RP_TRY(explain_waits(loaded->trace, &span, &part->arena, out, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ all ranks */

/* Adds a rank's row to the one of the same cause; the evidence is that of the largest row. */
static void add_cause(struct rp_idle_root *out, const struct rp_idle_cause *c, int64_t *largest)
{
    size_t i;

    for (i = 0; i < out->ncauses && strcmp(out->causes[i].cause, c->cause) != 0; i++)
        ;
    struct rp_idle_cause *sum = &out->causes[i];
    if (i == out->ncauses) {
        *sum = (struct rp_idle_cause){.cause = c->cause};
        largest[i] = -1;
        out->ncauses++;
    }
    rp_ns_add(&sum->total_ns, c->total_ns);
    sum->count += c->count;
    if (c->longest_ns > sum->longest_ns)
        sum->longest_ns = c->longest_ns;
    if (c->total_ns > largest[i]) {
        largest[i] = c->total_ns;
        sum->evidence = c->evidence;
    }
}

static bool has_no_work(const struct rp_idle_rank *device)
{
    return device->span_ns > 0 && device->span_idle_ns >= device->span_ns;
}

/* Whether a device is unused rather than idle: it has no work in the explained time, but another
   device of its rank has. Devices of a rank follow each other. */
static bool is_unused(const struct rp_idle_root *out, size_t r)
{
    const struct rp_idle_rank *d = out->devices;
    size_t first = r, i;

    while (first && d[first - 1].rank == d[r].rank)
        first--;
    for (i = first; has_no_work(&d[r]) && i < out->ndevices && d[i].rank == d[r].rank; i++)
        if (!has_no_work(&d[i]))
            return true;
    return false;
}

RP_ORDER(by_duration, struct rp_idle_gap, RP_DOWN(dur_ns), RP_UP(rank), RP_UP(device),
         RP_UP(begin_ns))

static void join_gaps(struct rp_idle_root *out, size_t limit, struct rp_arena *arena)
{
    size_t r, i, total = 0;

    for (r = 0; r < out->ndevices; r++)
        total += out->devices[r].ngaps;
    out->gaps = RP_ARENA_NEW(arena, struct rp_idle_gap, total + 1);
    for (r = 0; r < out->ndevices && out->gaps; r++)
        for (i = 0; i < out->devices[r].ngaps && !is_unused(out, r); i++) {
            out->gaps[out->ngaps] = out->devices[r].gaps[i];
            out->gaps[out->ngaps++].rank = out->devices[r].rank;
        }
    rp_sort(out->gaps, out->ngaps, sizeof *out->gaps, by_duration);
    if (out->ngaps > limit)
        out->ngaps = limit;
    out->gap_rows = out->device_gaps = out->gaps;
    *(out->ndevices > out->nranks ? &out->ndevice_gaps : &out->ngap_rows) = out->ngaps;
}

/* "49.6 ms of 58.2 ms (85.2 %) in 932 gaps; 100.0 % of it explained" */
static void summarize(struct rp_idle_root *out, struct rp_arena *arena)
{
    int64_t window = 0, idle = 0, count = 0, unknown = 0;

    for (size_t r = 0; r < out->ndevices; r++) {
        if (is_unused(out, r))
            continue;
        rp_ns_add(&window, out->devices[r].span_ns);
        rp_ns_add(&idle, out->devices[r].span_idle_ns);
        count += out->devices[r].span_gap_count;
    }
    for (size_t i = 0; i < out->ncauses; i++)
        if (!strcmp(out->causes[i].cause, rp_gap_cause_names[RP_GAP_UNKNOWN]))
            unknown = out->causes[i].total_ns;
    if (!window)
        return;
    out->summary =
        rp_arena_textf(arena, "%s of %s (%.1f %%) in %s%s; %.1f %% of it explained",
                       rp_units_time(arena, idle), rp_units_time(arena, window),
                       100.0 * (double)idle / (double)window, rp_units_count(arena, count, "gap"),
                       out->ndevices > out->nranks ? " of all devices"
                       : out->nranks > 1           ? " of all ranks"
                                                   : "",
                       idle ? 100.0 - 100.0 * (double)unknown / (double)idle : 100.0);
}

/* Joins the devices of all ranks, and the main device of each rank. */
static void join_devices(const struct rp_ranks *ranks, struct rp_idle_root *out)
{
    for (size_t r = 0; r < ranks->n; r++) {
        const struct rp_idle_part *part = ranks->parts[r].data;

        out->ranks[r] = (struct rp_idle_rank){.explained_share = 1};
        for (size_t i = 0; i < part->ndevices; i++) {
            struct rp_idle_rank *device = &out->devices[out->ndevices++];

            *device = part->devices[i];
            device->rank = ranks->parts[r].number;
            device->path = ranks->parts[r].path;
            if (device->is_main)
                out->ranks[r] = *device;
        }
        for (size_t i = 0; i < part->nstreams; i++) {
            out->streams[out->nstreams] = part->streams[i];
            out->streams[out->nstreams++].rank = ranks->parts[r].number;
        }
        out->ranks[r].rank = ranks->parts[r].number;
        out->ranks[r].path = ranks->parts[r].path;
    }
    out->nranks = ranks->n;
}

/* Without device work: shows where the threads wait instead. */
static enum rp_code join_waits(const struct rp_ranks *ranks, struct rp_idle_root *out,
                               struct rp_arena *arena, struct rp_err *err)
{
    const struct rp_host_waits **waits =
        RP_ARENA_NEW(arena, const struct rp_host_waits *, ranks->n + 1);
    struct rp_idle_wait_list list;
    int64_t spans = 0, collectives = 0;

    RP_TRY(rp_err_need(waits, err, "listing waits"));
    for (size_t r = 0; r < ranks->n; r++) {
        const struct rp_idle_part *part = ranks->parts[r].data;

        waits[r] = &part->waits;
        rp_ns_add(&spans, part->span_ns);
        rp_ns_add(&collectives, part->collectives_ns);
    }
    RP_TRY(rp_idle_list_waits(waits, ranks->n, spans, arena, &list, err));
    out->waits = out->wait_rows = list.at;
    out->nwaits = list.n;
    out->nwait_rows = list.nshown;
    out->summary =
        list.n && spans > 0
            ? rp_arena_textf(arena,
                             "no device work was recorded; the threads that work wait for %s of %s "
                             "(%.1f %%)",
                             rp_units_time(arena, list.main_ns), rp_units_time(arena, spans),
                             100.0 * (double)list.main_ns / (double)spans)
            : "no device work was recorded, so there is no idle time to explain";
    if (collectives > 0)
        RP_NOTE(
            out, arena,
            rp_arena_textf(arena,
                           "collectives run for %s of %s (%.1f %%), mostly on threads of their "
                           "own: 'reprise comm' shows how long ranks wait for each other in them, "
                           "and 'reprise report' how much of that delays the steps",
                           rp_units_time(arena, collectives), rp_units_time(arena, spans),
                           100.0 * (double)collectives / (double)spans));
    return RP_OK;
}

static enum rp_code idle_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err)
{
    struct rp_idle_root *out = result->root;
    struct rp_arena *arena = &result->arena;
    size_t i, ndevices = 0, nstreams = 0;

    for (i = 0; i < ranks->n; i++) {
        ndevices += ((const struct rp_idle_part *)ranks->parts[i].data)->ndevices;
        nstreams += ((const struct rp_idle_part *)ranks->parts[i].data)->nstreams;
    }
    out->ranks = RP_ARENA_NEW(arena, struct rp_idle_rank, ranks->n + 1);
    out->devices = RP_ARENA_NEW(arena, struct rp_idle_rank, ndevices + 1);
    out->streams = RP_ARENA_NEW(arena, struct rp_idle_stream, nstreams + 1);
    out->causes = RP_ARENA_NEW(arena, struct rp_idle_cause, RP_GAP_CAUSES + 1);
    RP_TRY(rp_arena_check(arena, "explaining idle time", err));
    join_devices(ranks, out);
    out->rows = out->ranks;
    out->some = out->devices;
    out->stream_rows = out->streams;
    if (out->ndevices > out->nranks)
        out->nsome = out->ndevices;
    else if (ranks->n > 1 && out->ndevices)
        out->nrows = out->nranks;

    /* The causes of all devices that work, with their shares of the idle time. */
    int64_t largest[RP_GAP_CAUSES], idle = 0;
    for (size_t r = 0; r < out->ndevices; r++) {
        if (is_unused(out, r))
            continue;
        rp_ns_add(&idle, out->devices[r].span_idle_ns);
        for (size_t k = 0; k < out->devices[r].nspan_causes; k++)
            add_cause(out, &out->devices[r].span_causes[k], largest);
    }
    for (size_t k = 0; k < out->ncauses; k++)
        out->causes[k].share = idle > 0 ? (double)out->causes[k].total_ns / (double)idle : 0;
    qsort(out->causes, out->ncauses, sizeof *out->causes, by_total);
    join_gaps(out, gap_limit(settings), arena);
    summarize(out, arena);

    size_t n = 0;
    for (size_t r = 0; r < out->ndevices; r++)
        n += is_unused(out, r);
    if (n)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%s without work in this time: not counted as idle",
                               rp_units_count(arena, (int64_t)n, "device")));
    if (!out->summary)
        RP_TRY(join_waits(ranks, out, arena, err));
    if (ranks->n && ((const struct rp_idle_part *)ranks->parts[0].data)->outside)
        RP_NOTE(out, arena, ((const struct rp_idle_part *)ranks->parts[0].data)->outside);
    out->nstream_rows = out->nstreams;
    out->ncauses = by_stream(settings) ? 0 : out->ncauses;
    return rp_arena_check(arena, "explaining idle time", err);
}

/* ------------------------------------------------------------------ the row */

static const struct rp_option options[] = {
    {"by", 'b', RP_OPT_CHOICE, "cause|stream", "cause",
     "show idle time by cause, or how busy each stream is", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "show the N longest gaps; 0: all", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_idle = {
    .question = {.name = "idle",
                 .group = "traces",
                 .summary = "why devices are idle: every gap has a cause",
                 .details =
                     "A gap is a time in which no kernel, copy or memset runs on any stream of a "
                     "device. It is split where its work was launched, and each piece has one "
                     "cause, derived from what was recorded; the causes add up to the idle time "
                     "exactly.",
                 .examples = "reprise idle trace.json.gz\twhy the device waits\n"
                             "reprise idle --limit 0 --csv run/\tevery cause of every rank\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &idle_type},
    .ranks = {.part = &part_type, .rank = idle_rank, .join = idle_join}};
