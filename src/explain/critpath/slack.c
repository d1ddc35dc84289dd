/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slack of a name, thread or stream is the minimum over its nodes. To find how much a name on
 * the path could gain, the graph is run with zero time for its nodes, and the ends are compared.
 * Run with the recorded durations it must reproduce the recorded times; the largest difference is
 * reported.
 */
#include "explain/critpath/critpath.h"

#include "base/decides.h"
#include "base/order.h"

#include <string.h>

#define GAINS 10
RP_LIMIT(GAINS, "names", "each is a run over the whole graph; the gain of the others is null");

struct slack_rows {
    const struct rp_critpath_view *view;
    struct rp_critpath_path *out;
    uint32_t *name_row, *lane_row; /* + 1 */
};

/* The time of a node inside the scope; false if it has none. */
static bool time_in_scope(const struct rp_critpath_view *v, const struct rp_sg_node *n, int64_t *ns)
{
    struct rp_path_segment s = {.begin_ns = n->start_ns, .end_ns = rp_sg_end_ns(n)};

    if (n->lane == RP_NONE || n->kind == RP_SG_ARRIVE)
        return false;
    *ns = rp_critpath_time(v->scope, &s);
    return *ns > 0 || !v->scope || !v->scope->limited;
}

static void add_to(struct rp_critpath_slack *row, int64_t ns, int64_t slack_ns)
{
    if (!row->count || slack_ns < row->slack_ns)
        row->slack_ns = slack_ns;
    row->count++;
    rp_ns_add(&row->total_ns, ns);
}

static struct rp_critpath_slack *name_row(struct slack_rows *a, const struct rp_sg_node *n)
{
    uint8_t kind = rp_segment_kind_of(n);
    uint32_t *place = &a->name_row[(size_t)n->name * RP_PATH_KINDS + kind];

    if (!*place) {
        a->out->slack[a->out->nslack++] = (struct rp_critpath_slack){
            .kind = rp_segment_kind_names[kind], .name = a->view->graph->names.at[n->name]};
        *place = (uint32_t)a->out->nslack;
    }
    return &a->out->slack[*place - 1];
}

static struct rp_critpath_slack *lane_row(struct slack_rows *a, const struct rp_sg_node *n)
{
    uint32_t *place = &a->lane_row[n->lane];
    const struct rp_sg_lane *lane = &a->view->graph->lanes.at[n->lane];

    if (!*place) {
        a->out->tracks[a->out->ntracks++] = (struct rp_critpath_slack){
            .kind = lane->device ? "stream" : "thread",
            .track = lane->label,
            .rank = a->view->ranks->parts[a->view->rank + lane->rank].number};
        *place = (uint32_t)a->out->ntracks;
    }
    return &a->out->tracks[*place - 1];
}

RP_ORDER(by_slack, struct rp_critpath_slack, RP_UP(slack_ns), RP_DOWN(total_ns),
         strcmp(a->kind, b->kind), RP_UP(rank),
         strcmp(a->name ? a->name : a->track, b->name ? b->name : b->track))

static void add_nodes(struct slack_rows *a)
{
    const struct rp_stepgraph *g = a->view->graph;
    int64_t ns;

    for (size_t i = 0; i < g->nodes.n; i++) {
        if (!time_in_scope(a->view, &g->nodes.at[i], &ns) || a->view->slack_ns[i] == INT64_MAX)
            continue;
        add_to(name_row(a, &g->nodes.at[i]), ns, a->view->slack_ns[i]);
        add_to(lane_row(a, &g->nodes.at[i]), ns, a->view->slack_ns[i]);
    }
}

enum rp_code rp_critpath_slack(const struct rp_critpath_view *view, struct rp_arena *arena,
                               struct rp_critpath_path *out, struct rp_err *err)
{
    struct slack_rows a = {.view = view, .out = out};
    size_t places = view->graph->names.n * RP_PATH_KINDS;

    a.name_row = RP_ARENA_NEW(arena, uint32_t, places + 1);
    a.lane_row = RP_ARENA_NEW(arena, uint32_t, (size_t)view->graph->nlanes + 1);
    out->slack = RP_ARENA_NEW(arena, struct rp_critpath_slack,
                              (view->graph->nodes.n < places ? view->graph->nodes.n : places) + 1);
    out->tracks = RP_ARENA_NEW(arena, struct rp_critpath_slack, (size_t)view->graph->nlanes + 1);
    RP_TRY(rp_arena_check(arena, "adding up slack", err));
    add_nodes(&a);

    /* Add the time on the path, by name from the sums, and by lane segment by segment. */
    const struct rp_path *path = a.view->path;
    for (size_t i = 0; i < path->parts.n; i++) {
        struct rp_path_segment s = path->parts.at[i];
        const struct rp_sg_node *n = &a.view->graph->nodes.at[s.node];
        int64_t ns;

        ns = s.kind == RP_PATH_WAIT || n->lane == RP_NONE ? 0 : rp_critpath_time(a.view->scope, &s);
        if (ns <= 0)
            continue;
        uint32_t place = a.name_row[(size_t)n->name * RP_PATH_KINDS + s.kind];
        if (place)
            rp_ns_add(&a.out->slack[place - 1].path_ns, ns);
        if (a.lane_row[n->lane])
            rp_ns_add(&a.out->tracks[a.lane_row[n->lane] - 1].path_ns, ns);
    }

    rp_sort(out->slack, out->nslack, sizeof *out->slack, by_slack);
    rp_sort(out->tracks, out->ntracks, sizeof *out->tracks, by_slack);
    return RP_OK;
}

/* ------------------------------------------------------------------ running the graph */

struct gain_runs {
    const struct rp_stepgraph *g;
    struct rp_critpath_path *out;
    struct rp_critpath_share *asked[GAINS];
    size_t nasked;
    RP_VEC(int64_t) dur, start;      /* by node */
    RP_VEC(uint32_t) members[GAINS]; /* nodes that have each of these names */
};

static enum rp_code find_members(struct gain_runs *r, struct rp_err *err)
{
    for (size_t k = 0; k < r->out->nnames && r->nasked < GAINS; k++)
        if (r->out->names[k].name_id != RP_NONE)
            r->asked[r->nasked++] = &r->out->names[k];
    for (size_t i = 0; i < r->g->nodes.n; i++) {
        const struct rp_sg_node *n = &r->g->nodes.at[i];

        for (size_t k = 0; k < r->nasked; k++)
            if (n->name == r->asked[k]->name_id && rp_segment_kind_of(n) == r->asked[k]->kind_id)
                RP_TRY(rp_vec_push(&r->members[k], (uint32_t)i, err));
    }
    return RP_OK;
}

/* The end of the run if everything with this name took no time. */
static int64_t end_without(struct gain_runs *r, size_t k)
{
    for (size_t i = 0; i < r->members[k].n; i++)
        r->dur.at[r->members[k].at[i]] = 0;
    int64_t end = rp_sg_run(r->g, r->dur.at, r->start.at);
    for (size_t i = 0; i < r->members[k].n; i++)
        r->dur.at[r->members[k].at[i]] = r->g->nodes.at[r->members[k].at[i]].dur_ns;
    return end;
}

enum rp_code rp_critpath_gains(const struct rp_stepgraph *g, bool gains,
                               struct rp_critpath_path *out, struct rp_err *err)
{
    struct gain_runs r = {.g = g, .out = out};
    enum rp_code code = rp_vec_reserve(&r.dur, g->nodes.n, err);

    if (code == RP_OK)
        code = rp_vec_reserve(&r.start, g->nodes.n, err);
    if (code == RP_OK) {
        int64_t worst = 0;

        rp_sg_run(r.g, NULL, r.start.at);
        for (size_t i = 0; i < r.g->nodes.n; i++) {
            int64_t error = rp_ns_between(r.g->nodes.at[i].start_ns, r.start.at[i]);

            error = error < 0 ? rp_ns_between(error, 0) : error;
            worst = error > worst ? error : worst;
            r.dur.at[i] = r.g->nodes.at[i].dur_ns;
        }
        r.out->replay_error_ns = worst;
    }
    if (code == RP_OK && gains)
        code = find_members(&r, err);
    for (size_t k = 0; code == RP_OK && k < r.nasked; k++)
        r.asked[k]->gain_ns = rp_ns_between(end_without(&r, k), g->end_ns);
    for (size_t k = 0; k < GAINS; k++)
        rp_vec_release(&r.members[k]);
    rp_vec_release(&r.dur);
    rp_vec_release(&r.start);
    return code;
}
