/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path becomes rows: its segments, with the part of a collective before its last rank arrived as
 * a wait for that rank, and the time on the path added up by kind, and by name or cause.
 */
#include "explain/critpath/critpath.h"

#include "base/decides.h"
#include "base/order.h"
#include "explain/short_name.h"

#include <string.h>

bool rp_critpath_clip(const struct rp_scope *scope, const struct rp_path_segment *s,
                      int64_t *from_ns, struct rp_path_segment *piece)
{
    struct rp_interval keep = {INT64_MIN, INT64_MAX};
    int64_t from = s->begin_ns > *from_ns ? s->begin_ns : *from_ns;
    size_t i;

    if (scope && scope->limited)
        keep = (struct rp_interval){scope->begin_ns, scope->end_ns};
    if (scope && scope->njudged) {
        RP_LOWER_BOUND(i, scope->njudged, scope->judged[i].end_ns <= from);
        if (i == scope->njudged)
            return false;
        keep = scope->judged[i];
    }
    *piece = *s;
    piece->begin_ns = from > keep.begin_ns ? from : keep.begin_ns;
    piece->end_ns = s->end_ns < keep.end_ns ? s->end_ns : keep.end_ns;
    *from_ns = piece->end_ns;
    return piece->begin_ns < piece->end_ns;
}

int64_t rp_critpath_time(const struct rp_scope *scope, const struct rp_path_segment *s)
{
    struct rp_path_segment piece;
    int64_t at = INT64_MIN, sum = 0;

    while (rp_critpath_clip(scope, s, &at, &piece))
        rp_ns_add(&sum, rp_ns_between(piece.begin_ns, piece.end_ns));
    return sum;
}

struct path_rows {
    const struct rp_critpath_view *view;
    struct rp_critpath_path *out;
    struct rp_arena *arena;
    uint32_t *place; /* by kind and name or cause: row + 1 in names */
    size_t nwaits;   /* number of causes, and of ranks to wait for */
};

/* The cause of a wait, which for a wait for another rank is that rank. */
static const char *cause_text(struct path_rows *f, const struct rp_path_segment *s)
{
    const char *text = rp_path_cause_names[s->cause];

    if (s->peer == RP_NONE)
        return text;
    return rp_arena_textf(f->arena, "rank %d", f->view->ranks->parts[s->peer].number);
}

static void add_share(struct rp_critpath_share *s, int64_t ns)
{
    s->count++;
    rp_ns_add(&s->total_ns, ns);
}

/* The row of a name or a cause. */
static struct rp_critpath_share *share_of_segment(struct path_rows *f,
                                                  const struct rp_path_segment *s)
{
    bool wait = s->kind == RP_PATH_WAIT;
    uint32_t name = f->view->graph->nodes.at[s->node].name;
    size_t text = !wait                ? name + f->nwaits
                  : s->peer == RP_NONE ? s->cause
                                       : RP_PATH_CAUSES + s->peer;
    uint32_t *place = &f->place[text * RP_PATH_KINDS + s->kind];

    if (!*place) {
        f->out->names[f->out->nnames++] = (struct rp_critpath_share){
            .kind = rp_segment_kind_names[s->kind],
            .name = wait ? cause_text(f, s) : f->view->graph->names.at[name],
            .name_id = wait ? RP_NONE : name,
            .kind_id = s->kind,
            .gain_ns = RP_ABSENT_I64};
        *place = (uint32_t)f->out->nnames;
    }
    return &f->out->names[*place - 1];
}

static void fill_piece(struct path_rows *f, struct rp_path_segment s)
{
    const struct rp_sg_node *node = &f->view->graph->nodes.at[s.node];
    bool wait = s.kind == RP_PATH_WAIT;
    int64_t ns = rp_ns_between(s.begin_ns, s.end_ns);
    struct rp_critpath_share *row = share_of_segment(f, &s);

    f->out->segments[f->out->nsegments++] = (struct rp_critpath_segment){
        .kind = rp_segment_kind_names[s.kind],
        .name = wait ? NULL : row->name,
        .cause = wait ? row->name : NULL,
        .start_ns = s.begin_ns,
        .dur_ns = ns,
        .rank = f->view->ranks->parts[f->view->rank + node->rank].number,
        .track =
            wait || node->lane == RP_NONE ? RP_NONE : f->view->graph->lanes.at[node->lane].track};
    rp_ns_add(&f->out->length_ns, ns);
    add_share(&f->out->kinds[s.kind], ns);
    add_share(row, ns);
}

static void fill_segment(struct path_rows *f, struct rp_path_segment s)
{
    struct rp_path_segment piece;
    int64_t at = INT64_MIN;

    while (rp_critpath_clip(f->view->scope, &s, &at, &piece))
        fill_piece(f, piece);
}

RP_ORDER(by_total, struct rp_critpath_share, RP_DOWN(total_ns), strcmp(a->kind, b->kind),
         strcmp(a->name ? a->name : "", b->name ? b->name : ""))

static void finish_shares(struct rp_critpath_share *s, size_t n, int64_t whole_ns)
{
    for (size_t i = 0; i < n; i++)
        s[i].share = whole_ns > 0 ? (double)s[i].total_ns / (double)whole_ns : 0;
    rp_sort(s, n, sizeof *s, by_total);
}

/* The name of a kernel, for shortening; NULL if the row is about anything else. */
static const char *kernel_name(const char *kind, const char *name)
{
    return !strcmp(kind, "compute") || !strcmp(kind, "comm") ? name : NULL;
}

/* Shortens names of kernels such that no two rows look the same. */
static void label_rows(struct path_rows *f)
{
    struct rp_critpath_path *out = f->out;
    size_t i, n = out->nshown + out->nnext;
    const char **names = RP_ARENA_NEW(f->arena, const char *, n + 1);
    const char **labels = RP_ARENA_NEW(f->arena, const char *, n + 1);

    if (!names || !labels)
        return;
    for (i = 0; i < out->nshown; i++)
        names[i] = kernel_name(out->shown[i].kind, out->shown[i].name);
    for (i = 0; i < out->nnext; i++)
        names[out->nshown + i] = kernel_name(out->next[i].kind, out->next[i].name);
    rp_short_names(names, labels, n, f->arena);
    for (i = 0; i < out->nshown; i++)
        out->shown[i].label = labels[i] ? labels[i] : out->shown[i].name;
    for (i = 0; i < out->nnext; i++)
        out->next[i].label = labels[out->nshown + i] ? labels[out->nshown + i] : out->next[i].name;
}

#define NEXT_SHOWN 5
RP_LIMIT(NEXT_SHOWN, "rows on the screen",
         "names without any part on the path; the data has them all");

static void choose_shown(struct path_rows *f, size_t limit)
{
    struct rp_critpath_path *out = f->out;
    size_t i = 0, most = limit < NEXT_SHOWN ? limit : NEXT_SHOWN;

    out->shown = out->names;
    out->nshown = out->nnames < limit ? out->nnames : limit;
    for (i = 0; i < out->nslack && out->slack[i].slack_ns <= 0;)
        i++;
    out->next = out->slack + i;
    out->nnext = out->nslack - i < most ? out->nslack - i : most;
    label_rows(f);
}

static void allocate_rows(struct path_rows *f)
{
    size_t n = f->view->path->parts.n * (f->view->held ? 2 : 1) +
               (f->view->scope ? f->view->scope->njudged : 0); /* pieces */
    size_t names = f->view->graph->names.n, places;

    f->nwaits = RP_PATH_CAUSES + f->view->ranks->n;
    places = (names + f->nwaits) * RP_PATH_KINDS;
    f->place = RP_ARENA_NEW(f->arena, uint32_t, places);
    f->out->kinds = RP_ARENA_NEW(f->arena, struct rp_critpath_share, RP_PATH_KINDS);
    f->out->names = RP_ARENA_NEW(f->arena, struct rp_critpath_share, (n < places ? n : places) + 1);
    f->out->segments = RP_ARENA_NEW(f->arena, struct rp_critpath_segment, n + 1);
}

enum rp_code rp_critpath_describe(const struct rp_critpath_view *view, size_t limit,
                                  struct rp_arena *arena, struct rp_critpath_path *out,
                                  struct rp_err *err)
{
    struct path_rows f = {.view = view, .out = out, .arena = arena};

    struct rp_path_segment whole = {.begin_ns = view->path->begin_ns, .end_ns = view->path->end_ns};
    out->window_ns = rp_critpath_time(view->scope, &whole);
    allocate_rows(&f);
    RP_TRY(rp_arena_check(arena, "describing the critical path", err));
    for (size_t i = 0; i < view->path->parts.n; i++) {
        /* Add the part of a collective before its last rank arrived as a wait for that rank. */
        const struct rp_path_segment *s = &view->path->parts.at[i];
        const struct rp_sg_node *node = &f.view->graph->nodes.at[s->node];
        struct rp_path_segment wait = *s, rest = *s;
        const struct rp_sg_last_arrival *held =
            f.view->held && node->collective != RP_NONE ? &f.view->held[node->collective] : NULL;

        if (!held || held->until_ns == RP_NO_TS || held->until_ns <= s->begin_ns ||
            s->kind == RP_PATH_WAIT) {
            fill_segment(&f, *s);
            continue;
        }
        wait.end_ns = rest.begin_ns = held->until_ns < s->end_ns ? held->until_ns : s->end_ns;
        wait.kind = RP_PATH_WAIT;
        wait.cause = RP_PATH_OTHER_RANK;
        wait.peer = held->by;
        fill_segment(&f, wait);
        fill_segment(&f, rest);
    }

    size_t k, n = 0;
    for (k = 0; k < RP_PATH_KINDS; k++)
        if (f.out->kinds[k].count) {
            f.out->kinds[n] = f.out->kinds[k];
            f.out->kinds[n++].kind = rp_segment_kind_names[k];
        }
    f.out->nkinds = n;
    finish_shares(f.out->kinds, n, f.out->window_ns);
    finish_shares(f.out->names, f.out->nnames, f.out->window_ns);
    RP_TRY(rp_critpath_slack(view, arena, out, err));
    RP_TRY(rp_critpath_gains(view->graph, view->gains, out, err));
    choose_shown(&f, limit);
    return rp_arena_check(arena, "describing the critical path", err);
}
