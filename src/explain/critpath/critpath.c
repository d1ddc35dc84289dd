/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a run: each has its own path; if they meet in collectives there is also one path
 * across them, which leads from a collective to the rank that arrived last. Slack is then computed
 * for the run.
 */
#include "explain/critpath/critpath.h"

#include "base/order.h"
#include "dataset/bulk.h"
#include "dataset/question.h"
#include "facts/host/outside.h"
#include "result/part.h"
#include "result/print_units.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ what is kept and shown */

#define KIND_DOC "host, runtime, compute, comm, memory or wait"

#define SEGMENT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_segment, member, type, unit, title, doc, flags)

static const struct rp_field segment_fields[] = {
    SEGMENT(kind, STR, NONE, NULL, KIND_DOC, 0),
    SEGMENT(name, STR, NONE, NULL, "the event; null in a wait", 0),
    SEGMENT(start_ns, I64, NS, NULL, "recorded start", 0),
    SEGMENT(dur_ns, I64, NS, NULL, "up to the next segment", 0),
    SEGMENT(cause, STR, NONE, NULL, "cause of a wait, else null", 0),
    RP_FIELD_END};
static const struct rp_type segment_type = {"segment", sizeof(struct rp_critpath_segment),
                                            segment_fields, NULL};

static const struct rp_field run_segment_fields[] = {
    SEGMENT(rank, I64, NONE, NULL, "where", 0),
    SEGMENT(kind, STR, NONE, NULL, KIND_DOC, 0),
    SEGMENT(name, STR, NONE, NULL, "the event; null in a wait", 0),
    SEGMENT(start_ns, I64, NS, NULL, "start on the clock of the first rank", 0),
    SEGMENT(dur_ns, I64, NS, NULL, "up to the next segment", 0),
    SEGMENT(cause, STR, NONE, NULL, "cause of a wait, else null", 0),
    RP_FIELD_END};
static const struct rp_type run_segment_type = {"segment", sizeof(struct rp_critpath_segment),
                                                run_segment_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_share, member, type, unit, title, doc, flags)

static const struct rp_field kind_fields[] = {
    SHARE(kind, STR, NONE, "kind", KIND_DOC, 0),
    SHARE(total_ns, I64, NS, "on the path", "sum of its segments", 0),
    SHARE(share, F64, RATIO, "share", "share of the window", 0),
    SHARE(count, I64, COUNT, "segments", "how many", 0), RP_FIELD_END};
static const struct rp_type kind_type = {"kind", sizeof(struct rp_critpath_share), kind_fields,
                                         NULL};

static const struct rp_field name_fields[] = {
    SHARE(total_ns, I64, NS, "on the path", "sum of its segments", 0),
    SHARE(share, F64, RATIO, "share", "share of the window", 0),
    SHARE(gain_ns, I64, NS, "gain", "how much earlier the recording ends if it takes no time",
          RP_NULLABLE),
    SHARE(count, I64, COUNT, "segments", "how many", 0),
    SHARE(kind, STR, NONE, "kind", KIND_DOC, 0),
    SHARE(name, STR, NONE, NULL, "name of the events, or the cause of the waits", 0),
    SHARE(label, STR, NONE, "name", "text output only", RP_SCREEN | RP_SHORTEN | RP_LABEL),
    RP_FIELD_END};
static const struct rp_type name_type = {"name", sizeof(struct rp_critpath_share), name_fields,
                                         NULL};

#define SLACK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_slack, member, type, unit, title, doc, flags)

static const struct rp_field slack_fields[] = {
    SLACK(slack_ns, I64, NS, "slack", "minimum over its parts", 0),
    SLACK(total_ns, I64, NS, "takes", "all its parts, on the path or not", 0),
    SLACK(path_ns, I64, NS, NULL, "time of those on the path", 0),
    SLACK(count, I64, COUNT, "parts", "how many", 0),
    SLACK(kind, STR, NONE, "kind", "host, runtime, compute, comm or memory", 0),
    SLACK(name, STR, NONE, NULL, "name of the events", 0),
    SLACK(label, STR, NONE, "name", "text output only", RP_SCREEN | RP_SHORTEN | RP_LABEL),
    RP_FIELD_END};
static const struct rp_type slack_type = {"slack", sizeof(struct rp_critpath_slack), slack_fields,
                                          NULL};

static const struct rp_field track_fields[] = {
    SLACK(track, STR, NONE, NULL, "the thread or stream", 0),
    SLACK(kind, STR, NONE, NULL, "thread or stream", 0),
    SLACK(rank, I64, NONE, NULL, "where", 0),
    SLACK(slack_ns, I64, NS, NULL, "minimum over its parts", 0),
    SLACK(total_ns, I64, NS, NULL, "all its parts, on the path or not", 0),
    SLACK(path_ns, I64, NS, NULL, "time of those on the path", 0),
    SLACK(count, I64, COUNT, NULL, "number of parts", 0),
    RP_FIELD_END};
static const struct rp_type track_type = {"track", sizeof(struct rp_critpath_slack), track_fields,
                                          NULL};

#define RANK_SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_rank_share, member, type, unit, title, doc, flags)

static const struct rp_field rank_share_fields[] = {
    RANK_SHARE(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK_SHARE(total_ns, I64, NS, "run's path", "time of the run's path on it", RP_LARGEST),
    RANK_SHARE(share, F64, RATIO, NULL, "share of the run's window", 0),
    RANK_SHARE(median_slack_ns, I64, NS, "slack", "median slack, weighted by time", RP_SMALLEST),
    RANK_SHARE(offset_ns, I64, NS, NULL, "added to its times for the clock of the first rank", 0),
    RANK_SHARE(window_ns, I64, NS, "own path", "of the rank", RP_SCREEN | RP_WIDE),
    RANK_SHARE(host_ns, I64, NS, "host", "on its own path", RP_SCREEN),
    RANK_SHARE(runtime_ns, I64, NS, "runtime", "on its own path", RP_SCREEN | RP_WIDE),
    RANK_SHARE(compute_ns, I64, NS, "compute", "on its own path", RP_SCREEN),
    RANK_SHARE(comm_ns, I64, NS, "transfer", "on its own path", RP_SCREEN),
    RANK_SHARE(memory_ns, I64, NS, "memory", "on its own path", RP_SCREEN | RP_WIDE),
    RANK_SHARE(other_rank_ns, I64, NS, "for ranks", "on its own path: waits for other ranks",
               RP_SCREEN),
    RANK_SHARE(wait_ns, I64, NS, "waits", "on its own path: other waits", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type rank_share_type = {"rank", sizeof(struct rp_critpath_rank_share),
                                               rank_share_fields, NULL};

#define PATH(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_path, member, type, unit, title, doc, flags)
#define PATH_LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_critpath_path, member, item, title, doc, flags)

#define WINDOW_FIELDS                                                                             \
    PATH(window_ns, I64, NS, NULL, "first start to last end of operators, calls and device work", \
         0),                                                                                      \
        PATH(length_ns, I64, NS, NULL, "sum of the segments: the same", 0),                       \
        PATH(replay_error_ns, I64, NS, NULL,                                                      \
             "largest difference between the recorded times and those of the graph run forward",  \
             0)
#define LIST_FIELDS                                                                          \
    PATH_LIST(kinds, &kind_type, "by kind", "time on the path", 0),                          \
        PATH_LIST(shown, &name_type, "by name", "text output only", RP_SCREEN),              \
        PATH_LIST(names, &name_type, NULL, "time on the path", 0),                           \
        PATH_LIST(next, &slack_type, "critical next, once the path is shorter by the slack", \
                  "text output only", RP_SCREEN),                                            \
        PATH_LIST(slack, &slack_type, NULL, "every name, least slack first", 0),             \
        PATH_LIST(tracks, &track_type, NULL, "threads and streams, least slack first", 0)

static const struct rp_field rank_fields[] = {
    PATH(path, STR, NONE, NULL, "the input", 0),
    PATH(rank, I64, NONE, NULL, "number of the process in its job", 0),
    PATH(summary, STR, NONE, "path", "text output only", RP_SCREEN),
    WINDOW_FIELDS,
    LIST_FIELDS,
    PATH_LIST(segments, &segment_type, NULL, "in time order, without gaps", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_critpath_path), rank_fields,
                                         NULL};

static const struct rp_field run_fields[] = {
    PATH(summary, STR, NONE, "run", "text output only", RP_SCREEN),
    PATH(joined, BOOL, NONE, NULL, "whether the ranks share collectives", 0),
    PATH(clock, STR, NONE, NULL, "recorded, or aligned by the ends of collectives", 0),
    PATH(meeting_count, I64, COUNT, NULL, "collectives that were matched across ranks", 0),
    WINDOW_FIELDS,
    PATH_LIST(rank_rows, &rank_share_type, "by rank", "text output only", RP_SCREEN),
    PATH_LIST(shares, &rank_share_type, NULL, "time of the path by rank", 0),
    LIST_FIELDS,
    PATH_LIST(segments, &run_segment_type, NULL, "in time order, without gaps", 0),
    RP_FIELD_END};
static const struct rp_type run_type = {"run", sizeof(struct rp_critpath_path), run_fields, NULL};

#define ROOT_LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_critpath_root, member, item, title, doc, flags)

static const struct rp_field root_fields[] = {
    RP_FIELD_RECORD(struct rp_critpath_root, run, &run_type, "critical path", "across the ranks",
                    0),
    ROOT_LIST(blocks, &rank_type, "critical path", "text output only", RP_BLOCKS | RP_SCREEN),
    ROOT_LIST(ranks, &rank_type, NULL, "one record per rank", 0),
    ROOT_LIST(notes, &rp_type_string, "notes", "limits of the recording", 0),
    ROOT_LIST(written, &rp_type_string, "written", "overlays, one per rank", 0),
    RP_FIELD_END};

static const struct rp_type critpath_type = {"critpath", sizeof(struct rp_critpath_root),
                                             root_fields, "ranks/segments"};

/* Everything that requires the trace of a rank. */
struct rp_critpath_part {
    struct rp_stepgraph graph;
    struct rp_collectives collectives;
    struct rp_path path;
    struct rp_scope scope; /* `judged` is not stored with the part: with_detail replaces it */
    size_t nwith_detail;   /* 0 if no step was recorded without detail */
    struct rp_interval *with_detail;
    struct rp_interval steps; /* from the begin of the first step to the end of the last; empty if
                                 there are none */
    int64_t until_ns;         /* the path ends here at the latest */
    const char *judged;       /* what is judged (rp_judged_words) */
    const char *outside;      /* what is not counted; NULL if everything is, or it is not known */
};

static const struct rp_field path_part_fields[] = {
    RP_PART_PLAIN(struct rp_path, begin_ns), RP_PART_PLAIN(struct rp_path, end_ns),
    RP_PART_PLAIN_VEC(struct rp_path, parts, struct rp_path_segment), RP_PART_END};
static const struct rp_type path_part_type = {"path_part", sizeof(struct rp_path), path_part_fields,
                                              NULL};

static const struct rp_field part_fields[] = {
    RP_PART_RECORD(struct rp_critpath_part, graph, &rp_stepgraph_type),
    RP_PART_RECORD(struct rp_critpath_part, collectives, &rp_collectives_type),
    RP_PART_RECORD(struct rp_critpath_part, path, &path_part_type),
    RP_PART_PLAIN(struct rp_critpath_part, scope.limited),
    RP_PART_PLAIN(struct rp_critpath_part, scope.by_launch),
    RP_PART_PLAIN(struct rp_critpath_part, scope.begin_ns),
    RP_PART_PLAIN(struct rp_critpath_part, scope.end_ns),
    RP_PART_PLAIN(struct rp_critpath_part, scope.span),
    RP_PART_PLAIN(struct rp_critpath_part, scope.step),
    RP_PART_PLAIN_LIST(struct rp_critpath_part, with_detail, struct rp_interval),
    RP_PART_PLAIN(struct rp_critpath_part, steps),
    RP_PART_PLAIN(struct rp_critpath_part, until_ns),
    RP_PART_TEXT(struct rp_critpath_part, judged),
    RP_PART_TEXT(struct rp_critpath_part, outside),
    RP_PART_END};
static const struct rp_type part_type = {"critpath_part", sizeof(struct rp_critpath_part),
                                         part_fields, NULL};

/* Keeps what lies between steps that were recorded without detail, except the breaks between two of
   them. */
static enum rp_code keep_detail(const struct rp_trace *trace, struct rp_arena *arena,
                                struct rp_critpath_part *out, struct rp_err *err)
{
    struct rp_interval *steps, *to;
    int64_t from = out->scope.begin_ns;

    RP_TRY(rp_step_times(trace, arena, &steps, err));
    to = out->with_detail = RP_ARENA_NEW(arena, struct rp_interval, trace->nsteps + 1);
    RP_TRY(rp_err_need(to, err, "choosing steps"));
    for (uint32_t i = 0; i < trace->nsteps; i++) {
        bool follows = i && trace->steps[i - 1].flags & RP_STEP_NO_DETAIL;

        if (!(trace->steps[i].flags & RP_STEP_NO_DETAIL))
            continue;
        if (steps[i].begin_ns >= out->scope.end_ns)
            break;
        if (steps[i].begin_ns > from && !follows)
            to[out->nwith_detail++] = (struct rp_interval){from, steps[i].begin_ns};
        from = steps[i].end_ns > from ? steps[i].end_ns : from;
    }
    if (from < out->scope.end_ns)
        to[out->nwith_detail++] = (struct rp_interval){from, out->scope.end_ns};
    return RP_OK;
}

/* Clips the path to what is judged: the steps, including the breaks between them, or the time of
   the device work. In steps without detail the path is not known. */
static enum rp_code clip_to_judged(const struct rp_trace *trace, const struct rp_scope *scope,
                                   struct rp_arena *arena, struct rp_critpath_part *out,
                                   struct rp_err *err)
{
    struct rp_judged judged;
    const struct rp_segments *s = &judged.segments;
    int64_t all_ns = rp_ns_between(trace->totals.work_begin_ns, trace->totals.work_end_ns);

    RP_TRY(rp_judged_find(trace, scope, arena, &judged, err));
    /* without steps the path to the first work begins where it was launched, unless most of the
       recording comes after the device work, or nearly all of it before and after */
    if (!trace->nsteps && judged.outside.after_ns <= all_ns / 2 &&
        rp_ns_sum(judged.outside.before_ns, judged.outside.after_ns) <= all_ns - all_ns / 10)
        judged.segments.n = 0;
    out->judged = rp_judged_words(&judged);
    if (!s->n)
        return RP_OK;
    out->until_ns = s->at[s->n - 1].end_ns;
    memset(judged.outside.break_ns, 0, sizeof judged.outside.break_ns);
    out->outside = rp_judged_text(&judged, arena);
    out->scope = (struct rp_scope){
        .limited = true, .begin_ns = s->at[0].begin_ns, .end_ns = s->at[s->n - 1].end_ns};
    return judged.outside.without_detail ? keep_detail(trace, arena, out, err) : RP_OK;
}

static enum rp_code critpath_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    struct rp_critpath_part *out = part->data;
    bool unrecorded = false;
    rp_event last;

    (void)settings;
    out->scope = *scope;
    out->until_ns = INT64_MAX;
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_EVENTS | RP_NEED_LINKS, err));
    int64_t begin_ns = rp_previous_step_end(loaded->trace, &last, &unrecorded);
    if (loaded->trace->nsteps)
        out->steps = rp_trace_span(loaded->trace);
    if (unrecorded) /* before that, the device ran what was launched before the recording */
        out->steps.begin_ns = begin_ns;
    out->scope.begin_ns = scope->span.begin_ns;
    out->scope.end_ns = scope->span.end_ns;
    return clip_to_judged(loaded->trace, scope, &part->arena, out, err);
}

static enum rp_code make_graph(const struct rp_loaded *loaded, const struct rp_settings *settings,
                               struct rp_rank_part *part, struct rp_err *err)
{
    struct rp_critpath_part *out = part->data;
    struct rp_work work;
    enum rp_code code = rp_work_init(&work, loaded->trace, NULL, err);

    (void)settings;
    if (code == RP_OK)
        code = rp_collectives_init(&out->collectives, &work, NULL, &part->arena, err);
    if (code == RP_OK)
        code = rp_sg_init(&out->graph, &work, &out->collectives, err);
    rp_arena_adopt(&part->arena, &out->graph.arena);
    rp_work_release(&work);
    return code == RP_OK ? rp_path_find(&out->graph, out->until_ns, &out->path, err) : code;
}

static bool has_graph(const void *data)
{
    return ((const struct rp_critpath_part *)data)->graph.nodes.n > 0;
}

static void drop_graph(void *data)
{
    struct rp_critpath_part *part = data;

    part->graph = (struct rp_stepgraph){0};
    part->collectives = (struct rp_collectives){0};
    part->path = (struct rp_path){0};
}

/* About 500 bytes an event. */
static const struct rp_rank_bulk critpath_bulk = {.events_most = 2400000,
                                                  .ranks_most = 32,
                                                  .whole = true,
                                                  .has = has_graph,
                                                  .drop = drop_graph,
                                                  .make = make_graph};

/* critpath_run: a run while its ranks are joined. */
struct critpath_run {
    struct rp_stepgraph graph; /* without nodes if the ranks share no collectives */
    struct rp_sg_join join;
    struct rp_path path;
};

struct critpath_joining {
    const struct rp_ranks *ranks;
    size_t limit;
    struct rp_arena *arena;
    struct critpath_run *run;
    struct rp_critpath_root *out;
    struct rp_scope scope; /* of the run */
    int64_t until_ns;
    int64_t *slack; /* of the run, by node */
};

static const struct rp_critpath_part *part_of(const struct critpath_joining *j, size_t r)
{
    return j->ranks->parts[r].data;
}

static void add_note(struct critpath_joining *j, const char *text)
{
    RP_NOTE(j->out, j->arena, text);
}

static void summarize(struct critpath_joining *j, struct rp_critpath_path *p, const char *who)
{
    p->summary =
        p->nsegments
            ? rp_arena_textf(j->arena, "%s: %s%s in %s", who, rp_units_time(j->arena, p->window_ns),
                             part_of(j, 0)->judged,
                             rp_units_count(j->arena, (int64_t)p->nsegments, "segment"))
            : rp_arena_textf(j->arena, "%s: no operators, calls or device work recorded", who);
}

/* ------------------------------------------------------------------ one rank */

static enum rp_code slack_of(const struct rp_stepgraph *g, int64_t until_ns, int64_t **out,
                             struct rp_arena *arena, struct rp_err *err)
{
    *out = RP_ARENA_NEW(arena, int64_t, g->nodes.n + 1);
    RP_TRY(rp_err_need(*out, err, "finding slack"));
    rp_sg_slack(g, until_ns < g->end_ns ? until_ns : g->end_ns, *out);
    return RP_OK;
}

static enum rp_code fill_rank(struct critpath_joining *j, size_t r, struct rp_err *err)
{
    const struct rp_critpath_part *part = part_of(j, r);
    struct rp_critpath_path *p = &j->out->ranks[r];
    struct rp_scope scope = part->scope;
    struct rp_critpath_view view = {.graph = &part->graph,
                                    .path = &part->path,
                                    .scope = &scope,
                                    .ranks = j->ranks,
                                    .rank = (uint32_t)r};
    char who[40];
    int64_t *slack;

    scope.judged = part->with_detail;
    scope.njudged = part->nwith_detail;
    p->rank = j->ranks->parts[r].number;
    p->source = j->ranks->parts[r].source;
    p->in_source = j->ranks->parts[r].in_source;
    p->path = j->ranks->parts[r].path;
    if (j->slack) {
        view.slack_ns = j->slack + j->run->join.first_node[r];
        view.held = j->run->join.last_arrival[r];
    } else {
        RP_TRY(slack_of(&part->graph, part->until_ns, &slack, j->arena, err));
        view.slack_ns = slack;
        view.gains = !part->scope.limited;
    }
    RP_TRY(rp_critpath_describe(&view, j->limit, j->arena, p, err));
    snprintf(who, sizeof who, "rank %lld", (long long)p->rank);
    summarize(j, p, who);
    return RP_OK;
}

/* ------------------------------------------------------------------ the run */

/* Joins the times that any rank recorded with detail. */
static enum rp_code join_detail(struct critpath_joining *j, struct rp_err *err)
{
    struct rp_interval *all;
    size_t r, i, n = 0;

    for (r = 0; r < j->ranks->n; r++)
        n += part_of(j, r)->nwith_detail;
    j->scope.judged = all = RP_ARENA_NEW(j->arena, struct rp_interval, n + 1);
    RP_TRY(rp_err_need(all, err, "joining ranks"));
    for (n = 0, r = 0; r < j->ranks->n; r++) {
        const struct rp_critpath_part *part = part_of(j, r);

        for (i = 0; i < part->nwith_detail; i++)
            all[n++] = (struct rp_interval){
                rp_sg_common_time(&j->run->join, r, part->with_detail[i].begin_ns),
                rp_sg_common_time(&j->run->join, r, part->with_detail[i].end_ns)};
        if (!part->nwith_detail)
            return RP_OK; /* everything of this rank is judged */
    }
    j->scope.njudged = rp_union_sort(all, n);
    return RP_OK;
}

static void share_kinds(struct rp_critpath_rank_share *s, const struct rp_critpath_path *p)
{
    int64_t *const of[] = {&s->host_ns, &s->runtime_ns, &s->compute_ns,
                           &s->comm_ns, &s->memory_ns,  &s->wait_ns};

    s->window_ns = p->window_ns;
    for (size_t i = 0; i < p->nkinds; i++)
        for (size_t k = 0; k < RP_PATH_KINDS; k++)
            if (p->kinds[i].kind == rp_segment_kind_names[k])
                *of[k] = p->kinds[i].total_ns;
    for (size_t i = 0; i < p->nnames; i++)
        if (p->names[i].kind == rp_segment_kind_names[RP_PATH_WAIT] &&
            !strncmp(p->names[i].name, "rank ", 5)) {
            rp_ns_add(&s->other_rank_ns, p->names[i].total_ns);
            s->wait_ns = rp_ns_between(p->names[i].total_ns, s->wait_ns);
        }
}

/* The slack of a node, and its time as a weight. */
struct weighted_slack {
    int64_t slack_ns, dur_ns;
};

RP_ORDER(by_slack, struct weighted_slack, RP_UP(slack_ns))

/* The median slack of a rank by time. The minimum would nearly always be that of its last work. */
static enum rp_code median_slack(const struct critpath_joining *j, size_t r, int64_t *out,
                                 struct rp_err *err)
{
    uint32_t first = j->run->join.first_node[r], i;
    size_t n = part_of(j, r)->graph.nodes.n, k;
    RP_VEC(struct weighted_slack) list = {0};
    int64_t whole = 0, sum = 0;

    RP_TRY(rp_vec_reserve(&list, n, err));
    for (i = first; i < first + n; i++) {
        const struct rp_sg_node *node = &j->run->graph.nodes.at[i];

        if (node->dur_ns <= 0)
            continue;
        list.at[list.n++] = (struct weighted_slack){j->slack[i], node->dur_ns};
        rp_ns_add(&whole, node->dur_ns);
    }
    rp_sort(list.at, list.n, sizeof *list.at, by_slack);
    for (k = 0; k < list.n && sum < whole / 2; k++)
        rp_ns_add(&sum, list.at[k].dur_ns);
    *out = list.n ? list.at[k ? k - 1 : 0].slack_ns : 0;
    rp_vec_release(&list);
    return RP_OK;
}

static enum rp_code share_ranks(struct critpath_joining *j, struct rp_err *err)
{
    struct rp_critpath_path *run = &j->out->run;

    run->shares = RP_ARENA_NEW(j->arena, struct rp_critpath_rank_share, j->ranks->n + 1);
    RP_TRY(rp_err_need(run->shares, err, "joining ranks"));
    for (size_t r = 0; r < j->ranks->n; r++) {
        run->shares[r].rank = j->ranks->parts[r].number;
        run->shares[r].clock = j->run->join.rendezvous.clocks[r];
        run->shares[r].offset_ns = run->shares[r].clock.offset_ns;
        share_kinds(&run->shares[r], &j->out->ranks[r]);
    }
    for (size_t i = 0; i < j->run->path.parts.n; i++) {
        const struct rp_path_segment *s = &j->run->path.parts.at[i];

        rp_ns_add(&run->shares[j->run->graph.nodes.at[s->node].rank].total_ns,
                  rp_critpath_time(&j->scope, s));
    }
    for (size_t r = 0; r < j->ranks->n; r++) {
        struct rp_critpath_rank_share *s = &run->shares[r];

        s->share = run->window_ns > 0 ? (double)s->total_ns / (double)run->window_ns : 0;
        RP_TRY(median_slack(j, r, &s->median_slack_ns, err));
    }
    run->rank_rows = run->shares;
    run->nshares = run->nrank_rows = j->ranks->n;
    return RP_OK;
}

static enum rp_code fill_run(struct critpath_joining *j, struct rp_err *err)
{
    struct rp_critpath_path *run = &j->out->run;
    struct rp_critpath_view view = {.graph = &j->run->graph,
                                    .path = &j->run->path,
                                    .scope = &j->scope,
                                    .slack_ns = j->slack,
                                    .ranks = j->ranks,
                                    .gains = !j->scope.limited};
    char who[40];

    run->joined = true;
    run->clock = j->run->join.aligned ? "aligned" : "recorded";
    run->meeting_count = (int64_t)j->run->join.rendezvous.n;
    RP_TRY(rp_critpath_describe(&view, j->limit, j->arena, run, err));
    snprintf(who, sizeof who, "%zu ranks", j->ranks->n);
    summarize(j, run, who);
    if (j->run->join.aligned)
        add_note(j, rp_arena_textf(
                        j->arena,
                        "the clocks of the ranks differ: aligned by the ends of %s, to "
                        "± %s",
                        rp_units_count(j->arena, (int64_t)j->run->join.rendezvous.n, "collective"),
                        rp_units_time(j->arena, j->run->join.rendezvous.uncertainty_ns)));
    return RP_OK;
}

static enum rp_code join_graphs(struct critpath_joining *j, struct rp_err *err)
{
    struct rp_sg_member *members = RP_ARENA_NEW(j->arena, struct rp_sg_member, j->ranks->n + 1);

    RP_TRY(rp_err_need(members, err, "joining ranks"));
    for (size_t r = 0; r < j->ranks->n; r++)
        members[r] = (struct rp_sg_member){&part_of(j, r)->graph, &part_of(j, r)->collectives};
    RP_TRY(rp_sg_join(&j->run->graph, members, j->ranks->n, j->arena, &j->run->join, err));
    if (!j->run->graph.nodes.n) {
        add_note(j, "the ranks share no collectives: each has a path of its own");
        return RP_OK;
    }

    /* Widen the scope to those of all ranks, from the first begin to the last end. */
    j->until_ns = INT64_MIN;
    for (size_t r = 0; r < j->ranks->n; r++) {
        const struct rp_scope *s = &part_of(j, r)->scope;
        int64_t until = rp_sg_common_time(&j->run->join, r, part_of(j, r)->until_ns);
        int64_t begin = rp_sg_common_time(&j->run->join, r, s->begin_ns);
        int64_t end = rp_sg_common_time(&j->run->join, r, s->end_ns);

        j->until_ns = until > j->until_ns ? until : j->until_ns;
        if (!s->limited)
            continue;
        if (!j->scope.limited)
            j->scope = (struct rp_scope){.limited = true, .begin_ns = begin, .end_ns = end};
        j->scope.begin_ns = begin < j->scope.begin_ns ? begin : j->scope.begin_ns;
        j->scope.end_ns = end > j->scope.end_ns ? end : j->scope.end_ns;
    }
    RP_TRY(join_detail(j, err));

    RP_TRY(slack_of(&j->run->graph, j->until_ns, &j->slack, j->arena, err));
    return rp_path_find(&j->run->graph, j->until_ns, &j->run->path, err);
}

static enum rp_code join_all(struct critpath_joining *j, struct rp_err *err)
{
    struct rp_critpath_root *out = j->out;
    size_t r, n = j->ranks->n;

    out->ranks = RP_ARENA_NEW(j->arena, struct rp_critpath_path, n + 1);
    RP_TRY(rp_arena_check(j->arena, "joining ranks", err));
    if (j->ranks->ncaptures)
        add_note(j, j->ranks->graphs);
    if (n > 1)
        RP_TRY(join_graphs(j, err));
    for (r = 0; r < n; r++)
        RP_TRY(fill_rank(j, r, err));
    out->nranks = n;

    /* Note that `report` is about the steps, but a path about the whole recording. */
    const struct rp_critpath_part *p = part_of(j, 0);
    int64_t window = rp_ns_between(p->graph.begin_ns, p->graph.end_ns);
    int64_t steps =
        rp_ns_common(p->graph.begin_ns, p->graph.end_ns, p->steps.begin_ns, p->steps.end_ns);
    if (p->outside)
        add_note(j, p->outside);
    if (!p->scope.limited && steps > 0 && rp_ns_between(steps, window) > window / 10)
        add_note(j, rp_arena_textf(j->arena,
                                   "%s of the %s are before the first step and after the last, "
                                   "which 'report' does not count: '--step N' shows one step",
                                   rp_units_time(j->arena, rp_ns_between(steps, window)),
                                   rp_units_time(j->arena, window)));

    if (j->slack) {
        RP_TRY(fill_run(j, err));
        return share_ranks(j, err);
    }
    out->blocks = out->ranks;
    out->nblocks = n;
    return RP_OK;
}

static enum rp_code critpath_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                  struct rp_result *result, struct rp_err *err)
{
    struct critpath_run run = {0};
    struct critpath_joining j = {.ranks = ranks,
                                 .limit = rp_settings_limit(settings, "limit"),
                                 .arena = &result->arena,
                                 .run = &run,
                                 .out = result->root};
    enum rp_code code = join_all(&j, err);

    rp_path_release(&run.path);
    rp_arena_adopt(&result->arena, &run.graph.arena); /* holds the names that the result shows */
    rp_sg_release(&run.graph);
    return code == RP_OK ? rp_arena_check(&result->arena, "joining ranks", err) : code;
}

/* ------------------------------------------------------------------ the question */

extern const struct rp_question_row rp_ask_critpath;

static enum rp_code critpath_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    const char *overlay = rp_settings_text(settings, "overlay");

    RP_TRY(rp_ask_ranks(ctx, dataset, settings, &rp_ask_critpath.ranks, result, err));
    return overlay ? rp_critpath_write_overlays(ctx, dataset, overlay, &result->arena, result->root,
                                                err)
                   : RP_OK;
}

static const struct rp_option critpath_options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "10",
     "show the N names with most time on the path; 0: all (JSON and CSV always have all)", 0},
    {"overlay", 0, RP_OPT_PATH, "FILE", NULL,
     "write the trace with the path drawn over it, for a viewer; of several ranks a folder", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_critpath = {
    .question =
        {.name = "critpath",
         .group = "traces",
         .summary = "the critical path: the chain of events that determines the time",
         .details =
             "Builds a graph of what ran and what it waited for: threads, launches, "
             "streams, events, synchronisations, collectives of all ranks. The path leads "
             "from the last end backwards, from each event to what it had to wait for, and "
             "covers the recording without gaps; every segment is part of an event, or a "
             "wait with its cause. Also shown: how much time would be saved if a name took none, "
             "and the slack of what is not on the path.",
         .examples = "reprise critpath trace.json.gz\twhat to make faster\n"
                     "reprise critpath run/\tacross the ranks of a run\n"
                     "reprise critpath --csv trace.json.gz\tevery segment\n"
                     "reprise critpath --overlay path.json.gz trace.json.gz\tto look at in "
                     "a viewer\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = critpath_options,
         .type = &critpath_type},
    .ranks = {.part = &part_type,
              .waits = true,
              .bulk = &critpath_bulk,
              .rank = critpath_rank,
              .join = critpath_join},
    .run = critpath_run};
