/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every graph: run forward it gives the recording, slack is what a delay may be, and
   ranks that are joined wait for each other. */
#include "stepgraph/critical_path.h"
#include "stepgraph/graph_fixtures.h"
#include "stepgraph/join.h"

#include <inttypes.h>

static void check_replay(const struct rp_stepgraph *g)
{
    int64_t *start = calloc(g->nodes.n, sizeof *start);
    uint32_t i;

    assert_non_null(start);
    assert_int_equal(rp_sg_run(g, NULL, start), g->end_ns);
    for (i = 0; i < g->nodes.n; i++)
        assert_int_equal(start[i], g->nodes.at[i].start_ns);
    free(start);
}

/* Twice the durations and lags take twice the time. */
static void check_scaled(struct rp_stepgraph *g)
{
    int64_t *start = calloc(2 * g->nodes.n, sizeof *start), *dur = start + g->nodes.n;
    uint32_t i;

    assert_non_null(start);
    for (i = 0; i < g->nodes.n; i++)
        dur[i] = 2 * g->nodes.at[i].dur_ns;
    for (i = 0; i < g->edges.n; i++)
        g->edges.at[i].lag_ns *= 2;
    rp_sg_run(g, dur, start);
    for (i = 0; i < g->nodes.n; i++)
        assert_int_equal(start[i] - g->begin_ns, 2 * (g->nodes.at[i].start_ns - g->begin_ns));
    for (i = 0; i < g->edges.n; i++)
        g->edges.at[i].lag_ns /= 2;
    free(start);
}

/* A delay of a node by its slack does not move the end; one more does, by one. */
static void check_slack(struct rp_stepgraph *g)
{
    int64_t *start = calloc(2 * g->nodes.n, sizeof *start), *slack = start + g->nodes.n;
    uint32_t v, i;

    assert_non_null(start);
    rp_sg_slack(g, g->end_ns, slack);
    for (v = 1; v < g->nodes.n; v++) {
        int64_t more;

        assert_true(slack[v] >= 0);
        for (more = 0; more < 2; more++) {
            for (i = g->in.at[v]; i < g->in.at[v + 1]; i++)
                g->edges.at[i].lag_ns += slack[v] + more;
            assert_int_equal(rp_sg_run(g, NULL, start), g->end_ns + more);
            for (i = g->in.at[v]; i < g->in.at[v + 1]; i++)
                g->edges.at[i].lag_ns -= slack[v] + more;
        }
    }
    free(start);
}

/* All edges go forward in the order, and both rows of them agree. */
static void check_rows(const struct rp_stepgraph *g)
{
    uint32_t *place = calloc(g->nodes.n, sizeof *place), i, v;

    assert_non_null(place);
    assert_int_equal(g->order.n, g->nodes.n);
    for (i = 0; i < g->order.n; i++)
        place[g->order.at[i]] = i;
    for (v = 0; v < g->nodes.n; v++) {
        for (i = g->in.at[v]; i < g->in.at[v + 1]; i++) {
            assert_int_equal(g->edges.at[i].to, v);
            assert_true(place[g->edges.at[i].from] < place[v]);
        }
        for (i = g->out.at[v]; i < g->out.at[v + 1]; i++)
            assert_int_equal(g->edges.at[g->out_edges.at[i]].from, v);
        assert_true(v == 0 || rp_sg_binding(g, v) != RP_NONE);
    }
    free(place);
}

static void any_graph_gives_the_recording_again(void **state)
{
    struct random r = {11};
    int round;

    UNUSED_STATE(state);
    for (round = 0; round < 300; round++) {
        struct row rows[30];
        struct built b;

        random_rows(&r, rows, 30);
        b = build_graph(rows, 30);
        check_rows(&b.graph);
        check_replay(&b.graph);
        check_scaled(&b.graph);
        check_slack(&b.graph);
        release_graph(&b);
    }
}

/* Damaged times: nothing overflows, and the recording still comes back. */
static void absurd_times_do_no_harm(void **state)
{
    static const int64_t times[] = {
        INT64_MIN + 1, -INT64_C(5000000000000000000), -1, 0, 1, INT64_C(5000000000000000000),
        INT64_MAX - 1};
    struct random r = {41};
    int round;

    UNUSED_STATE(state);
    for (round = 0; round < 200; round++) {
        struct row rows[16];
        struct rp_path path;
        struct built b;
        size_t i;

        random_rows(&r, rows, 16);
        for (i = 0; i < 16; i++) {
            rows[i].ts = times[random_below(&r, 7)];
            rows[i].dur = random_below(&r, 2) ? random_below(&r, 20) : INT64_MAX / 2;
        }
        b = build_graph(rows, 16);
        check_rows(&b.graph);
        check_replay(&b.graph);
        assert_code(rp_path_find(&b.graph, INT64_MAX, &path, NULL), RP_OK);
        for (i = 1; i < path.parts.n; i++)
            assert_int_equal(path.parts.at[i - 1].end_ns, path.parts.at[i].begin_ns);
        rp_path_release(&path);
        release_graph(&b);
    }
}

static void the_path_has_no_slack(void **state)
{
    struct random r = {23};
    int round;

    UNUSED_STATE(state);
    for (round = 0; round < 100; round++) {
        struct row rows[30];
        struct built b;
        struct rp_path path;
        int64_t *slack;
        size_t i;

        random_rows(&r, rows, 30);
        b = build_graph(rows, 30);
        slack = calloc(b.graph.nodes.n, sizeof *slack);
        assert_non_null(slack);
        rp_sg_slack(&b.graph, b.graph.end_ns, slack);
        assert_code(rp_path_find(&b.graph, INT64_MAX, &path, NULL), RP_OK);
        for (i = 0; i < path.parts.n; i++)
            assert_int_equal(slack[path.parts.at[i].node], 0);
        rp_path_release(&path);
        free(slack);
        release_graph(&b);
    }
}

/* A node as a line, and a line an edge into it. */
static void put_node(FILE *f, const struct rp_stepgraph *g, uint32_t v)
{
    const struct rp_sg_node *n = &g->nodes.at[v];
    uint32_t i;

    fprintf(f, "%" PRIu32 " %s", v, rp_sg_kind_names[n->kind]);
    if (g->nranks > 1 && n->lane != RP_NONE)
        fprintf(f, " rank %" PRIu32, n->rank);
    if (n->name)
        fprintf(f, " '%s'", g->names.at[n->name]);
    if (n->lane != RP_NONE)
        fprintf(f, " on %s", g->lanes.at[n->lane].label);
    fprintf(f, " %" PRId64 "+%" PRId64 "\n", n->start_ns, n->dur_ns);
    for (i = g->in.at[v]; i < g->in.at[v + 1]; i++) {
        const struct rp_sg_edge *e = &g->edges.at[i];

        fprintf(f, "  %s %" PRIu32 "%s lag %" PRId64 "%s%s\n", rp_sg_edge_names[e->kind], e->from,
                e->flags & RP_SG_FROM_START ? " start" : "", e->lag_ns,
                e->flags & RP_SG_BINDING ? " binding" : "",
                e->flags & RP_SG_INFERRED ? " inferred" : "");
    }
}

static void a_graph_as_text(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "op", 1, 1, 0, 30},
                               {'X', "cuda_runtime", "launch", 1, 1, 10, 5, 5},
                               {'X', "kernel", "gemm", 0, 7, 20, 50, 5, 7}};
    struct built b = build_graph(rows, 3);
    size_t size;
    char *text;
    FILE *f = open_memstream(&text, &size);

    UNUSED_STATE(state);
    assert_non_null(f);
    for (uint32_t v = 0; v < b.graph.nodes.n; v++)
        put_node(f, &b.graph, v);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, "0 origin 0+0\n"
                              "1 host 'op' on thread 1 0+10\n"
                              "  after 0 lag 0 binding inferred\n"
                              "2 runtime 'launch' on thread 1 10+5\n"
                              "  order 1 lag 0 binding\n"
                              "3 host 'op' on thread 1 15+15\n"
                              "  order 2 lag 0 binding\n"
                              "4 compute 'gemm' on stream 7 20+50\n"
                              "  launch 2 lag 5 binding\n");
    free(text);
    release_graph(&b);
}

/* Collectives of the host take time of their thread; what a profiler did itself does not. */
static void host_collectives_are_nodes_and_overhead_is_not(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, 0, 10},
        {'X', "collective_comm", "MPI_Allreduce", 1, 1, 20, 30},
        {'X', "cpu_op", "op2", 1, 1, 60, 10},
        {'X', "overhead", "flush", 1, 1, 52, 5},
        {'X', "collective_comm", "MPI_Barrier", 1, 1, 80, 20}, /* behind the last operator */
    };
    struct built b = build_graph(rows, 5);
    int64_t reduce_ns = 0, flush_ns = 0;

    UNUSED_STATE(state);
    for (uint32_t v = 0; v < b.graph.nodes.n; v++) {
        const char *name = b.graph.names.at[b.graph.nodes.at[v].name];

        reduce_ns += !strcmp(name, "MPI_Allreduce") ? b.graph.nodes.at[v].dur_ns : 0;
        flush_ns += !strcmp(name, "flush") ? b.graph.nodes.at[v].dur_ns : 0;
    }
    assert_int_equal(reduce_ns, 30);
    assert_int_equal(flush_ns, 0);
    assert_int_equal(b.graph.end_ns, 70);
    release_graph(&b);
}

/* ------------------------------------------------------------------ ranks */

/* A rank that comes to an all-reduce at `comes`, when its kernel begins; it ends at 200. */
static struct built rank_that_comes(int64_t comes, int64_t clock)
{
    const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, clock, comes - 10},
        {'X', "cuda_runtime", "launch", 1, 1, clock + comes - 10, 5, 5},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 9, clock + comes, 200 - comes, 5, 9},
        {'X', "cuda_runtime", "launch2", 1, 1, clock + comes, 5, 6},
        {'X', "kernel", "add", 0, 9, clock + 205, 10, 6, 9},
    };

    return build_graph(rows, 5);
}

struct joined {
    struct built rank[2];
    struct rp_stepgraph graph;
    struct rp_sg_join join;
    struct rp_arena arena;
};

static struct joined join_ranks(struct built a, struct built b)
{
    struct rp_err err = RP_ERR_INIT;
    struct joined j = {.rank = {a, b}};
    struct rp_sg_member members[2] = {{&j.rank[0].graph, &j.rank[0].collectives},
                                      {&j.rank[1].graph, &j.rank[1].collectives}};

    assert_ok(rp_sg_join(&j.graph, members, 2, &j.arena, &j.join, &err), &err);
    return j;
}

static void release_joined(struct joined *j)
{
    rp_sg_release(&j->graph);
    rp_arena_release(&j->arena);
    release_graph(&j->rank[0]);
    release_graph(&j->rank[1]);
}

static void ranks_wait_for_the_last(void **state)
{
    struct joined j = join_ranks(rank_that_comes(50, 0), rank_that_comes(150, 0));
    int64_t start[64], dur[64];
    uint32_t i, op = 0, add = 0;

    UNUSED_STATE(state);
    check_rows(&j.graph);
    check_replay(&j.graph);
    check_slack(&j.graph);
    assert_false(j.join.aligned);
    assert_int_equal(j.join.last_arrival[0][0].until_ns, 150);
    assert_int_equal(j.join.last_arrival[0][0].by, 1);
    assert_true(j.graph.nodes.n <= 64);
    for (i = 0; i < j.graph.nodes.n; i++) {
        const char *name = j.graph.names.at[j.graph.nodes.at[i].name];

        op = !strcmp(name, "op") && j.graph.nodes.at[i].rank == 1 ? i : op;
        add = !strcmp(name, "add") && j.graph.nodes.at[i].rank == 0 ? i : add;
        dur[i] = j.graph.nodes.at[i].dur_ns;
        if (j.graph.nodes.at[i].lane != RP_NONE) { /* it is among the nodes of its own lane */
            const struct rp_sg_lane *lane = &j.graph.lanes.at[j.graph.nodes.at[i].lane];

            assert_int_equal(lane->rank, j.graph.nodes.at[i].rank);
            assert_in_range(i, lane->first, lane->end - 1);
        }
    }
    dur[op] += 1000; /* the host of rank 1 is late: rank 0 goes on as much later */
    rp_sg_run(&j.graph, dur, start);
    assert_int_equal(start[add], j.graph.nodes.at[add].start_ns + 1000);
    release_joined(&j);
}

/* A kernel begins at 100 on the stream of the all-reduce, which rank 0 entered at 50 and which now
   begins at 150, when rank 1 comes: it began after rank 0 arrived. */
static void what_began_while_waiting_follows_the_arrival(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "launch", 1, 1, 40, 5, 5},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 9, 50, 150, 5, 9},
        {'X', "cuda_runtime", "launch2", 1, 1, 50, 5, 6},
        {'X', "kernel", "inner", 0, 9, 100, 20, 6, 9},
    };
    struct joined j = join_ranks(build_graph(rows, 4), rank_that_comes(150, 0));
    const struct rp_stepgraph *g = &j.graph;
    uint32_t inner = 0, found = RP_NONE;

    UNUSED_STATE(state);
    for (uint32_t v = 0; v < g->nodes.n; v++)
        inner = !strcmp(g->names.at[g->nodes.at[v].name], "inner") ? v : inner;
    for (uint32_t i = g->in.at[inner]; i < g->in.at[inner + 1]; i++)
        if (g->edges.at[i].kind == RP_SG_STREAM)
            found = g->edges.at[i].from;
    assert_int_equal(g->ndropped, 0);
    assert_int_not_equal(found, RP_NONE);
    assert_int_equal(g->nodes.at[found].kind, RP_SG_ARRIVE);
    assert_int_equal(g->nodes.at[found].start_ns, 50);
    check_replay(g);
    release_joined(&j);
}

static void the_path_hops_to_the_last_rank(void **state)
{
    struct joined j = join_ranks(rank_that_comes(50, 0), rank_that_comes(150, 0));
    struct rp_path path;
    size_t i;

    UNUSED_STATE(state);
    assert_code(rp_path_find(&j.graph, INT64_MAX, &path, NULL), RP_OK);
    for (i = 0; i < path.parts.n; i++)
        if (path.parts.at[i].end_ns <= 150)
            assert_int_equal(j.graph.nodes.at[path.parts.at[i].node].rank, 1);
    assert_int_equal(path.parts.at[0].begin_ns, 0);
    assert_int_equal(path.parts.at[path.parts.n - 1].end_ns, 215);
    rp_path_release(&path);
    release_joined(&j);
}

static void clocks_that_disagree_are_aligned(void **state)
{
    struct joined j = join_ranks(rank_that_comes(50, 0), rank_that_comes(150, 1000000));

    UNUSED_STATE(state);
    assert_true(j.join.aligned);
    assert_int_equal(j.join.rendezvous.clocks[1].offset_ns, -1000000);
    assert_int_equal(j.join.last_arrival[1][0].until_ns, 1000150);
    assert_int_equal(j.graph.end_ns, 215);
    check_replay(&j.graph);
    release_joined(&j);
}

static void ranks_that_do_not_meet_are_not_joined(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "op", 1, 1, 0, 30}};
    struct joined j = join_ranks(build_graph(rows, 1), build_graph(rows, 1));

    UNUSED_STATE(state);
    assert_int_equal(j.graph.nodes.n, 0);
    release_joined(&j);
}

/* Rank 0 gathers alone at the end: nobody comes last there. */
static void a_collective_without_others_has_no_last_arrival(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "launch", 1, 1, 40, 5, 5},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 9, 50, 150, 5, 9},
        {'X', "cuda_runtime", "launch2", 1, 1, 50, 5, 6},
        {'X', "kernel", "ncclDevKernel_AllGather", 0, 9, 210, 20, 6, 9},
    };
    struct joined j = join_ranks(build_graph(rows, 4), rank_that_comes(150, 0));

    UNUSED_STATE(state);
    assert_int_equal(j.join.last_arrival[0][0].until_ns, 150);
    assert_int_equal(j.join.last_arrival[0][1].until_ns, RP_NO_TS);
    assert_int_equal(j.join.last_arrival[0][1].by, RP_NONE);
    release_joined(&j);
}

static void any_two_ranks_give_the_recording_again(void **state)
{
    struct random r = {31};
    int round, met = 0;

    UNUSED_STATE(state);
    for (round = 0; round < 200; round++) {
        struct row rows[2][24];
        struct joined j;

        random_rows(&r, rows[0], 24);
        random_rows(&r, rows[1], 24);
        j = join_ranks(build_graph(rows[0], 24), build_graph(rows[1], 24));
        if (j.graph.nodes.n) {
            met++;
            check_rows(&j.graph);
            check_replay(&j.graph);
            check_slack(&j.graph);
        }
        release_joined(&j);
    }
    assert_true(met > 50);
}

int test_step_graph(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_graph_gives_the_recording_again),
        cmocka_unit_test(absurd_times_do_no_harm),
        cmocka_unit_test(the_path_has_no_slack),
        cmocka_unit_test(a_graph_as_text),
        cmocka_unit_test(host_collectives_are_nodes_and_overhead_is_not),
        cmocka_unit_test(a_collective_without_others_has_no_last_arrival),
        cmocka_unit_test(ranks_wait_for_the_last),
        cmocka_unit_test(what_began_while_waiting_follows_the_arrival),
        cmocka_unit_test(the_path_hops_to_the_last_rank),
        cmocka_unit_test(clocks_that_disagree_are_aligned),
        cmocka_unit_test(ranks_that_do_not_meet_are_not_joined),
        cmocka_unit_test(any_two_ranks_give_the_recording_again),
    };

    return cmocka_run_group_tests_name("step_graph", tests, NULL, NULL);
}
