/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a run: each has its own path; where they meet in collectives there is also one path
 * across them, which goes from a collective to the rank that came last, and slack is then that of
 * the run.
 */
#include "explain/critpath/critpath.h"

#include "result/print_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct joiner {
    const struct rp_critpath_input *in;
    size_t n, limit;
    struct rp_arena *arena;
    struct rp_critpath_run *run;
    struct rp_critpath_root *out;
    struct rp_scope scope; /* of the run */
    int64_t *slack;        /* of the run, by node */
};

void rp_critpath_run_release(struct rp_critpath_run *run)
{
    rp_path_release(&run->path);
    rp_sg_release(&run->graph);
}

static enum rp_code note(struct joiner *j, const char *text, struct rp_err *err)
{
    if (!text)
        return rp_err_nomem(err, "joining ranks");
    j->out->notes[j->out->nnotes++] = text;
    return RP_OK;
}

static enum rp_code summarize(struct joiner *j, struct rp_critpath_path *p, const char *who,
                              struct rp_err *err)
{
    char window[64];

    rp_units_format((double)p->window_ns, RP_UNIT_NS, window, sizeof window);
    p->summary =
        p->nsegments
            ? rp_arena_printf(j->arena, "%s: %s in %zu segments", who, window, p->nsegments)
            : rp_arena_printf(j->arena, "%s: no operators, calls or device work recorded", who);
    return p->summary ? RP_OK : rp_err_nomem(err, "joining ranks");
}

/* ------------------------------------------------------------------ one rank */

static enum rp_code slack_of(const struct rp_stepgraph *g, int64_t **out, struct rp_arena *arena,
                             struct rp_err *err)
{
    *out = RP_ARENA_NEW(arena, int64_t, g->nodes.n + 1);
    if (!*out)
        return rp_err_nomem(err, "finding slack");
    rp_sg_slack(g, g->end_ns, *out);
    return RP_OK;
}

static enum rp_code fill_rank(struct joiner *j, size_t r, struct rp_err *err)
{
    const struct rp_critpath_part *part = j->in[r].part;
    struct rp_critpath_path *p = &j->out->ranks[r];
    struct rp_critpath_view view = {.graph = &part->graph,
                                    .path = &part->path,
                                    .scope = &part->scope,
                                    .in = j->in,
                                    .nranks = j->n,
                                    .rank = (uint32_t)r};
    char who[40];
    int64_t *slack;

    p->rank = j->in[r].number;
    p->source = j->in[r].source;
    p->path = rp_arena_strdup(j->arena, j->in[r].path);
    if (!p->path)
        return rp_err_nomem(err, "joining ranks");
    if (j->slack) {
        view.slack_ns = j->slack + j->run->join.first_node[r];
        view.held = j->run->join.last_arrival[r];
    } else {
        RP_TRY(slack_of(&part->graph, &slack, j->arena, err));
        view.slack_ns = slack;
        view.gains = !part->scope.limited;
    }
    RP_TRY(rp_critpath_describe(&view, j->limit, j->arena, p, err));
    snprintf(who, sizeof who, "rank %lld", (long long)p->rank);
    return summarize(j, p, who, err);
}

/* ------------------------------------------------------------------ the run */

/* The scopes of the ranks, from the first begin to the last end. */
static void widen_scope(struct joiner *j)
{
    size_t r;

    for (r = 0; r < j->n; r++) {
        const struct rp_scope *s = &j->in[r].part->scope;
        int64_t begin = rp_ns_sum(s->begin_ns, j->run->join.offset_ns[r]);
        int64_t end = rp_ns_sum(s->end_ns, j->run->join.offset_ns[r]);

        if (!s->limited)
            continue;
        if (!j->scope.limited)
            j->scope = (struct rp_scope){.limited = true, .begin_ns = begin, .end_ns = end};
        j->scope.begin_ns = begin < j->scope.begin_ns ? begin : j->scope.begin_ns;
        j->scope.end_ns = end > j->scope.end_ns ? end : j->scope.end_ns;
    }
}

static void share_kinds(struct rp_critpath_rank_share *s, const struct rp_critpath_path *p)
{
    int64_t *const of[] = {&s->host_ns, &s->runtime_ns, &s->compute_ns,
                           &s->comm_ns, &s->memory_ns,  &s->wait_ns};
    size_t i, k;

    s->window_ns = p->window_ns;
    for (i = 0; i < p->nkinds; i++)
        for (k = 0; k < RP_PATH_KINDS; k++)
            if (p->kinds[i].kind == rp_segment_kind_names[k])
                *of[k] = p->kinds[i].total_ns;
    for (i = 0; i < p->nnames; i++)
        if (p->names[i].kind == rp_segment_kind_names[RP_PATH_WAIT] &&
            !strncmp(p->names[i].name, "rank ", 5)) {
            rp_ns_add(&s->other_rank_ns, p->names[i].total_ns);
            s->wait_ns = rp_ns_between(p->names[i].total_ns, s->wait_ns);
        }
}

/* The slack of a node, and its time as a weight. */
struct weighed {
    int64_t slack_ns, dur_ns;
};

static int by_slack(const void *pa, const void *pb)
{
    const struct weighed *a = pa, *b = pb;

    return (a->slack_ns > b->slack_ns) - (a->slack_ns < b->slack_ns);
}

/* The slack that half of a rank's time has: the least is that of its last work in most runs. */
static enum rp_code median_slack(const struct joiner *j, size_t r, int64_t *out, struct rp_err *err)
{
    uint32_t first = j->run->join.first_node[r], i;
    size_t n = j->in[r].part->graph.nodes.n, k;
    RP_VEC(struct weighed) list = {0};
    int64_t whole = 0, sum = 0;

    RP_TRY(rp_vec_reserve(&list, n, err));
    for (i = first; i < first + n; i++) {
        const struct rp_sg_node *node = &j->run->graph.nodes.at[i];

        if (node->dur_ns <= 0)
            continue;
        list.at[list.n++] = (struct weighed){j->slack[i], node->dur_ns};
        rp_ns_add(&whole, node->dur_ns);
    }
    if (list.n)
        qsort(list.at, list.n, sizeof *list.at, by_slack);
    for (k = 0; k < list.n && sum < whole / 2; k++)
        rp_ns_add(&sum, list.at[k].dur_ns);
    *out = list.n ? list.at[k ? k - 1 : 0].slack_ns : 0;
    rp_vec_release(&list);
    return RP_OK;
}

static enum rp_code share_ranks(struct joiner *j, struct rp_err *err)
{
    struct rp_critpath_path *run = &j->out->run;
    size_t r, i;

    run->shares = RP_ARENA_NEW(j->arena, struct rp_critpath_rank_share, j->n + 1);
    if (!run->shares)
        return rp_err_nomem(err, "joining ranks");
    for (r = 0; r < j->n; r++) {
        run->shares[r].rank = j->in[r].number;
        run->shares[r].offset_ns = j->run->join.offset_ns[r];
        share_kinds(&run->shares[r], &j->out->ranks[r]);
    }
    for (i = 0; i < j->run->path.parts.n; i++) {
        struct rp_path_segment s = j->run->path.parts.at[i];

        if (rp_critpath_clip(&j->scope, &s))
            rp_ns_add(&run->shares[j->run->graph.nodes.at[s.node].rank].total_ns,
                      rp_ns_between(s.begin_ns, s.end_ns));
    }
    for (r = 0; r < j->n; r++) {
        struct rp_critpath_rank_share *s = &run->shares[r];

        s->share = run->window_ns > 0 ? (double)s->total_ns / (double)run->window_ns : 0;
        RP_TRY(median_slack(j, r, &s->median_slack_ns, err));
    }
    run->rank_rows = run->shares;
    run->nshares = run->nrank_rows = j->n;
    return RP_OK;
}

static enum rp_code fill_run(struct joiner *j, struct rp_err *err)
{
    struct rp_critpath_path *run = &j->out->run;
    struct rp_critpath_view view = {.graph = &j->run->graph,
                                    .path = &j->run->path,
                                    .scope = &j->scope,
                                    .slack_ns = j->slack,
                                    .in = j->in,
                                    .nranks = j->n,
                                    .gains = !j->scope.limited};
    char who[40];

    run->joined = true;
    run->clock = j->run->join.aligned ? "aligned" : "recorded";
    run->meeting_count = (int64_t)j->run->join.rendezvous.n;
    RP_TRY(rp_critpath_describe(&view, j->limit, j->arena, run, err));
    snprintf(who, sizeof who, "%zu ranks", j->n);
    RP_TRY(summarize(j, run, who, err));
    if (j->run->join.aligned)
        RP_TRY(note(j,
                    rp_arena_printf(j->arena,
                                    "the clocks of the ranks disagree: aligned by the median "
                                    "distance of the ends of %zu collectives",
                                    j->run->join.rendezvous.n),
                    err));
    return RP_OK;
}

static enum rp_code join_graphs(struct joiner *j, struct rp_err *err)
{
    struct rp_sg_member *members = RP_ARENA_NEW(j->arena, struct rp_sg_member, j->n + 1);
    size_t r;

    if (!members)
        return rp_err_nomem(err, "joining ranks");
    for (r = 0; r < j->n; r++)
        members[r] = (struct rp_sg_member){&j->in[r].part->graph, &j->in[r].part->collectives};
    RP_TRY(rp_sg_join(&j->run->graph, members, j->n, j->arena, &j->run->join, err));
    if (!j->run->graph.nodes.n)
        return note(j, "the ranks do not meet in collectives: each has a path of its own", err);
    widen_scope(j);
    RP_TRY(slack_of(&j->run->graph, &j->slack, j->arena, err));
    return rp_path_find(&j->run->graph, &j->run->path, err);
}

enum rp_code rp_critpath_join(const struct rp_critpath_input *in, size_t n, size_t limit,
                              struct rp_arena *arena, struct rp_critpath_run *run,
                              struct rp_critpath_root *out, struct rp_err *err)
{
    struct joiner j = {.in = in, .n = n, .limit = limit, .arena = arena, .run = run, .out = out};
    size_t r;

    out->ranks = RP_ARENA_NEW(arena, struct rp_critpath_path, n + 1);
    out->notes = RP_ARENA_NEW(arena, const char *, 4);
    if (!out->ranks || !out->notes)
        return rp_err_nomem(err, "joining ranks");
    if (n > 1)
        RP_TRY(join_graphs(&j, err));
    for (r = 0; r < n; r++)
        RP_TRY(fill_rank(&j, r, err));
    out->nranks = n;
    if (j.slack) {
        RP_TRY(fill_run(&j, err));
        return share_ranks(&j, err);
    }
    out->blocks = out->ranks;
    out->nblocks = n;
    return RP_OK;
}
