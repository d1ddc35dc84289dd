/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slack of names, threads and streams, added up over the nodes that have them, and what a name on
 * the path could bring: the graph is run with no time for its nodes, and the end compared. Run with
 * the recorded durations it must give the recorded times; the largest difference is told.
 */
#include "explain/critpath/critpath.h"

#include <stdlib.h>
#include <string.h>

/* Names whose gain is asked for: each is a run over the whole graph. */
#define GAINS 10

struct adder {
    const struct rp_critpath_view *view;
    struct rp_critpath_path *out;
    struct rp_arena *arena;
    uint32_t *name_row, *lane_row; /* + 1 */
    const char **texts;
};

/* Time of a node inside the scope; false: none of it is. */
static bool time_in_scope(const struct rp_critpath_view *v, const struct rp_sg_node *n, int64_t *ns)
{
    struct rp_path_segment s = {.begin_ns = n->start_ns, .end_ns = rp_sg_end_ns(n)};

    if (n->lane == RP_NONE || n->kind == RP_SG_ARRIVE)
        return false;
    if (!rp_critpath_clip(v->scope, &s) && v->scope && v->scope->limited)
        return false;
    *ns = rp_ns_between(s.begin_ns, s.end_ns);
    return true;
}

static void add_to(struct rp_critpath_slack *row, int64_t ns, int64_t slack_ns)
{
    if (!row->count || slack_ns < row->slack_ns)
        row->slack_ns = slack_ns;
    row->count++;
    rp_ns_add(&row->total_ns, ns);
}

static bool name_row(struct adder *a, const struct rp_sg_node *n, struct rp_critpath_slack **row)
{
    uint32_t *place = &a->name_row[(size_t)n->name * RP_PATH_KINDS + rp_segment_kind_of(n)];

    if (!*place) {
        if (!a->texts[n->name])
            a->texts[n->name] = rp_arena_strdup(a->arena, a->view->graph->names.at[n->name]);
        a->out->slack[a->out->nslack++] = (struct rp_critpath_slack){
            .kind = rp_segment_kind_names[rp_segment_kind_of(n)], .name = a->texts[n->name]};
        *place = (uint32_t)a->out->nslack;
    }
    *row = &a->out->slack[*place - 1];
    return (*row)->name != NULL;
}

static bool lane_row(struct adder *a, const struct rp_sg_node *n, struct rp_critpath_slack **row)
{
    uint32_t *place = &a->lane_row[n->lane];
    const struct rp_sg_lane *lane = &a->view->graph->lanes.at[n->lane];

    if (!*place) {
        a->out->tracks[a->out->ntracks++] =
            (struct rp_critpath_slack){.kind = lane->device ? "stream" : "thread",
                                       .track = rp_arena_strdup(a->arena, lane->label),
                                       .rank = a->view->in[a->view->rank + lane->rank].number};
        *place = (uint32_t)a->out->ntracks;
    }
    *row = &a->out->tracks[*place - 1];
    return (*row)->track != NULL;
}

/* The time on the path, which has been added up by name, and by lane segment by segment. */
static void add_path(struct adder *a)
{
    const struct rp_path *path = a->view->path;
    size_t i;

    for (i = 0; i < path->parts.n; i++) {
        struct rp_path_segment s = path->parts.at[i];
        const struct rp_sg_node *n = &a->view->graph->nodes.at[s.node];
        uint32_t place;
        int64_t ns;

        if (s.kind == RP_PATH_WAIT || n->lane == RP_NONE || !rp_critpath_clip(a->view->scope, &s))
            continue;
        ns = rp_ns_between(s.begin_ns, s.end_ns);
        place = a->name_row[(size_t)n->name * RP_PATH_KINDS + s.kind];
        if (place)
            rp_ns_add(&a->out->slack[place - 1].path_ns, ns);
        if (a->lane_row[n->lane])
            rp_ns_add(&a->out->tracks[a->lane_row[n->lane] - 1].path_ns, ns);
    }
}

static int by_slack(const void *pa, const void *pb)
{
    const struct rp_critpath_slack *a = pa, *b = pb;
    int order;

    if (a->slack_ns != b->slack_ns)
        return a->slack_ns < b->slack_ns ? -1 : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    order = strcmp(a->kind, b->kind);
    if (!order && a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return order ? order : strcmp(a->name ? a->name : a->track, b->name ? b->name : b->track);
}

static bool add_nodes(struct adder *a)
{
    const struct rp_stepgraph *g = a->view->graph;
    struct rp_critpath_slack *row;
    int64_t ns;
    size_t i;

    for (i = 0; i < g->nodes.n; i++) {
        if (!time_in_scope(a->view, &g->nodes.at[i], &ns))
            continue;
        if (!name_row(a, &g->nodes.at[i], &row))
            return false;
        add_to(row, ns, a->view->slack_ns[i]);
        if (!lane_row(a, &g->nodes.at[i], &row))
            return false;
        add_to(row, ns, a->view->slack_ns[i]);
    }
    return true;
}

enum rp_code rp_critpath_slack(const struct rp_critpath_view *view, const char **texts,
                               struct rp_arena *arena, struct rp_critpath_path *out,
                               struct rp_err *err)
{
    struct adder a = {.view = view, .out = out, .arena = arena, .texts = texts};
    size_t places = view->graph->names.n * RP_PATH_KINDS;

    a.name_row = RP_ARENA_NEW(arena, uint32_t, places + 1);
    a.lane_row = RP_ARENA_NEW(arena, uint32_t, (size_t)view->graph->nlanes + 1);
    out->slack = RP_ARENA_NEW(arena, struct rp_critpath_slack,
                              (view->graph->nodes.n < places ? view->graph->nodes.n : places) + 1);
    out->tracks = RP_ARENA_NEW(arena, struct rp_critpath_slack, (size_t)view->graph->nlanes + 1);
    if (!a.name_row || !a.lane_row || !out->slack || !out->tracks || !add_nodes(&a))
        return rp_err_nomem(err, "adding up slack");
    add_path(&a);
    if (out->nslack)
        qsort(out->slack, out->nslack, sizeof *out->slack, by_slack);
    if (out->ntracks)
        qsort(out->tracks, out->ntracks, sizeof *out->tracks, by_slack);
    return RP_OK;
}

/* ------------------------------------------------------------------ running the graph */

struct runner {
    const struct rp_stepgraph *g;
    struct rp_critpath_path *out;
    struct rp_critpath_share *asked[GAINS];
    size_t nasked;
    RP_VEC(int64_t) dur, start;      /* by node */
    RP_VEC(uint32_t) members[GAINS]; /* nodes of each name that is asked for */
};

static enum rp_code find_members(struct runner *r, struct rp_err *err)
{
    size_t i, k;

    for (k = 0; k < r->out->nnames && r->nasked < GAINS; k++)
        if (r->out->names[k].name_id != RP_NONE)
            r->asked[r->nasked++] = &r->out->names[k];
    for (i = 0; i < r->g->nodes.n; i++) {
        const struct rp_sg_node *n = &r->g->nodes.at[i];

        for (k = 0; k < r->nasked; k++)
            if (n->name == r->asked[k]->name_id && rp_segment_kind_of(n) == r->asked[k]->kind_id)
                RP_TRY(rp_vec_push(&r->members[k], (uint32_t)i, err));
    }
    return RP_OK;
}

/* The end without the time of one name. */
static int64_t end_without(struct runner *r, size_t k)
{
    int64_t end;
    size_t i;

    for (i = 0; i < r->members[k].n; i++)
        r->dur.at[r->members[k].at[i]] = 0;
    end = rp_sg_run(r->g, r->dur.at, r->start.at);
    for (i = 0; i < r->members[k].n; i++)
        r->dur.at[r->members[k].at[i]] = r->g->nodes.at[r->members[k].at[i]].dur_ns;
    return end;
}

static void replay(struct runner *r)
{
    int64_t worst = 0;
    size_t i;

    rp_sg_run(r->g, NULL, r->start.at);
    for (i = 0; i < r->g->nodes.n; i++) {
        int64_t error = rp_ns_between(r->g->nodes.at[i].start_ns, r->start.at[i]);

        error = error < 0 ? rp_ns_between(error, 0) : error;
        worst = error > worst ? error : worst;
        r->dur.at[i] = r->g->nodes.at[i].dur_ns;
    }
    r->out->replay_error_ns = worst;
}

enum rp_code rp_critpath_gains(const struct rp_stepgraph *g, bool gains,
                               struct rp_critpath_path *out, struct rp_err *err)
{
    struct runner r = {.g = g, .out = out};
    enum rp_code code = rp_vec_reserve(&r.dur, g->nodes.n, err);
    size_t k;

    if (code == RP_OK)
        code = rp_vec_reserve(&r.start, g->nodes.n, err);
    if (code == RP_OK)
        replay(&r);
    if (code == RP_OK && gains)
        code = find_members(&r, err);
    for (k = 0; code == RP_OK && k < r.nasked; k++)
        r.asked[k]->gain_ns = rp_ns_between(end_without(&r, k), g->end_ns);
    for (k = 0; k < GAINS; k++)
        rp_vec_release(&r.members[k]);
    rp_vec_release(&r.dur);
    rp_vec_release(&r.start);
    return code;
}
