/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of edge: it is there, between the right nodes, and a delay of its predecessor reaches
 * its successor through it. A graph without the edge fails the second.
 */
#include "stepgraph/build.h"
#include "stepgraph/graph_fixtures.h"

/* The n-th node of a name, from 0. */
static uint32_t node_named(const struct rp_stepgraph *g, const char *name, int n)
{
    uint32_t i;

    for (i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].kind != RP_SG_ARRIVE &&
            !strcmp(g->names.at[g->nodes.at[i].name], name) && n-- == 0)
            return i;
    fail_msg("no node '%s'", name);
    return 0;
}

static const struct rp_sg_edge *edge_between(const struct rp_stepgraph *g, uint32_t from,
                                             uint32_t to, uint8_t kind)
{
    uint32_t i;

    for (i = g->in.at[to]; i < g->in.at[to + 1]; i++)
        if (g->edges.at[i].from == from && g->edges.at[i].kind == kind)
            return &g->edges.at[i];
    return NULL;
}

/* How much later a node starts when another one takes `more` longer. */
static int64_t delay_of(const struct rp_stepgraph *g, uint32_t from, uint32_t to, int64_t more)
{
    int64_t dur[64], start[64];
    uint32_t i;

    assert_true(g->nodes.n <= 64);
    for (i = 0; i < g->nodes.n; i++)
        dur[i] = g->nodes.at[i].dur_ns + (i == from ? more : 0);
    rp_sg_run(g, dur, start);
    return start[to] - g->nodes.at[to].start_ns;
}

#define MUCH 1000000

/* The edge is there, and a long delay reaches the successor, but for what was free before. */
static void check_edge(const struct built *b, uint32_t from, uint32_t to, uint8_t kind)
{
    const struct rp_sg_edge *e = edge_between(&b->graph, from, to, kind);
    int64_t delay = delay_of(&b->graph, from, to, MUCH);

    if (!e)
        fail_msg("no edge %s from %u to %u", rp_sg_edge_names[kind], from, to);
    assert_int_equal(e && e->flags & RP_SG_BINDING ? MUCH : delay, delay);
    assert_true(delay > MUCH / 2);
}

#define BUILD(rows) build_graph((rows), sizeof(rows) / sizeof(rows)[0])
#define NODE(name)  node_named(&b.graph, (name), 0)

static void spans_of_a_thread_follow_each_other(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "outer", 1, 1, 0, 40},
                               {'X', "cpu_op", "inner", 1, 1, 10, 10},
                               {'X', "cpu_op", "next", 1, 1, 45, 10}};
    struct built b = BUILD(rows);
    const struct rp_sg_edge *gap;

    UNUSED_STATE(state);
    check_edge(&b, NODE("outer"), NODE("inner"), RP_SG_ORDER);
    check_edge(&b, NODE("inner"), node_named(&b.graph, "outer", 1), RP_SG_ORDER);
    gap = edge_between(&b.graph, node_named(&b.graph, "outer", 1), NODE("next"), RP_SG_ORDER);
    assert_non_null(gap);
    assert_int_equal(gap->lag_ns, 5);
    release_graph(&b);
}

static void work_follows_its_launch(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "one", 1, 1, 0, 5, 5},
                               {'X', "kernel", "after", 0, 7, 20, 10, 5, 7},
                               {'X', "cuda_runtime", "two", 1, 1, 100, 50, 6},
                               {'X', "kernel", "inside", 0, 7, 120, 10, 6, 7}};
    struct built b = BUILD(rows);
    const struct rp_sg_edge *e;

    UNUSED_STATE(state);
    check_edge(&b, NODE("one"), NODE("after"), RP_SG_LAUNCH);
    e = edge_between(&b.graph, NODE("two"), NODE("inside"), RP_SG_LAUNCH);
    assert_non_null(e);
    assert_int_equal(e->lag_ns, 20);
    assert_int_equal(e->flags, RP_SG_FROM_START | RP_SG_BINDING);
    release_graph(&b);
}

static void work_of_a_stream_follows_each_other(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "one", 1, 1, 0, 5, 5},
                               {'X', "cuda_runtime", "two", 1, 1, 5, 5, 6},
                               {'X', "cuda_runtime", "three", 1, 1, 10, 5, 7},
                               {'X', "kernel", "first", 0, 7, 20, 50, 5, 7},
                               {'X', "kernel", "second", 0, 7, 72, 20, 6, 7},
                               {'X', "kernel", "overlapping", 0, 7, 80, 30, 7, 7}};
    struct built b = BUILD(rows);
    const struct rp_sg_edge *e;

    UNUSED_STATE(state);
    check_edge(&b, NODE("first"), NODE("second"), RP_SG_STREAM);
    e = edge_between(&b.graph, NODE("second"), NODE("overlapping"), RP_SG_STREAM);
    assert_non_null(e);
    assert_int_equal(e->lag_ns, 8);
    assert_true(e->flags & RP_SG_FROM_START);
    release_graph(&b);
}

/* Stream 9 waits for the first version of an event, so not for what was launched behind that. */
static void a_recorded_event_holds_up_its_version(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "cudaEventRecord", 1, 1, 5, 5, 20},
                               {'X', "cuda_runtime", "l2", 1, 1, 10, 5, 2},
                               {'X', "cuda_runtime", "cudaEventRecord", 1, 1, 15, 5, 21},
                               {'X', "cuda_runtime", "cudaStreamWaitEvent", 1, 1, 20, 5, 22},
                               {'X', "cuda_runtime", "l3", 1, 1, 25, 5, 3},
                               {'X', "kernel", "k1", 0, 7, 30, 50, 1, 7},
                               {'X', "kernel", "k2", 0, 7, 80, 10, 2, 7},
                               {'X', "kernel", "k3", 0, 9, 95, 50, 3, 9},
                               {'X', "cuda_sync", "Stream Wait Event", 0, 9, 21, 3, 22, 9, 0,
                                "wait_on_stream", 7, 0, NULL, NULL,
                                "wait_on_cuda_event_record_corr_id", 20}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("k1"), NODE("k3"), RP_SG_EVENT);
    assert_null(edge_between(&b.graph, NODE("k2"), NODE("k3"), RP_SG_EVENT));
    assert_int_equal(delay_of(&b.graph, NODE("k2"), NODE("k3"), MUCH), 0);
    release_graph(&b);
}

static void the_order_of_calls_tells_of_an_event(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "cudaEventRecord", 1, 1, 5, 5, 20},
                               {'X', "cuda_runtime", "cudaStreamWaitEvent", 1, 1, 10, 5, 21},
                               {'X', "cuda_runtime", "l2", 1, 1, 15, 5, 2},
                               {'X', "kernel", "k1", 0, 7, 30, 50, 1, 7},
                               {'X', "kernel", "k2", 0, 9, 81, 50, 2, 9}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("k1"), NODE("k2"), RP_SG_EVENT);
    assert_true(edge_between(&b.graph, NODE("k1"), NODE("k2"), RP_SG_EVENT)->flags &
                RP_SG_INFERRED);
    release_graph(&b);
}

static void a_device_wait_is_for_every_stream(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "l2", 1, 1, 5, 5, 2},
                               {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 10, 90, 3},
                               {'X', "kernel", "k1", 0, 7, 10, 50, 1, 7},
                               {'X', "kernel", "k2", 0, 9, 12, 68, 2, 9}};
    struct built b = BUILD(rows);
    uint32_t sync = NODE("cudaDeviceSynchronize");

    UNUSED_STATE(state);
    assert_int_equal(b.graph.nodes.at[sync].start_ns, 80); /* it waited before */
    check_edge(&b, NODE("k1"), sync, RP_SG_SYNC);
    check_edge(&b, NODE("k2"), sync, RP_SG_SYNC);
    release_graph(&b);
}

static void a_stream_wait_is_for_its_stream(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "l2", 1, 1, 5, 5, 2},
                               {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 1, 10, 90, 3},
                               {'X', "kernel", "k1", 0, 7, 10, 50, 1, 7},
                               {'X', "kernel", "k2", 0, 9, 12, 68, 2, 9},
                               {'X', "cuda_sync", "Stream Sync", 0, 7, 10, 90, 3, 7}};
    struct built b = BUILD(rows);
    uint32_t sync = NODE("cudaStreamSynchronize");

    UNUSED_STATE(state);
    assert_int_equal(b.graph.nodes.at[sync].start_ns, 60);
    check_edge(&b, NODE("k1"), sync, RP_SG_SYNC);
    assert_null(edge_between(&b.graph, NODE("k2"), sync, RP_SG_SYNC));
    release_graph(&b);
}

static bool has_sync_from(const struct built *b, uint32_t from)
{
    for (size_t i = 0; i < b->graph.edges.n; i++)
        if (b->graph.edges.at[i].from == from && b->graph.edges.at[i].kind == RP_SG_SYNC)
            return true;
    return false;
}

/* A blocking read ends after its copy, clFinish after the last command. */
static void check_opencl(const char *wait)
{
    const struct row rows[] = {{'X', "cuda_runtime", "clEnqueueNDRangeKernel", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "clEnqueueReadBuffer", 1, 1, 5, 95, 2},
                               {'X', "cuda_runtime", "clEnqueueNDRangeKernel", 1, 1, 100, 5, 3},
                               {'X', "cuda_runtime", wait, 1, 1, 105, 95},
                               {'X', "kernel", "k1", 0, 7, 10, 70, 1, 7},
                               {'X', "gpu_memcpy", "copy", 0, 7, 80, 15, 2, 7},
                               {'X', "kernel", "k2", 0, 7, 110, 80, 3, 7}};
    struct built b = BUILD(rows);

    check_edge(&b, NODE("k2"), NODE(wait), RP_SG_SYNC);
    assert_int_equal(b.graph.nodes.at[NODE(wait)].start_ns, 190);
    assert_true(has_sync_from(&b, NODE("copy")));
    release_graph(&b);
}

static void opencl_waits_for_its_commands(void **state)
{
    UNUSED_STATE(state);
    check_opencl("clFinish");
    check_opencl("clWaitForEvents");
}

/* By time: the first node of a lane from a time on, and the last before it. */
static void nodes_are_found_by_time(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "a", 1, 1, 0, 10},
                               {'X', "cpu_op", "b", 1, 1, 20, 10},
                               {'X', "cpu_op", "c", 1, 2, 5, 10},
                               {'X', "cpu_op", "d", 1, 2, 30, 10}};
    struct built b = BUILD(rows);
    const struct rp_stepgraph *g = &b.graph;

    UNUSED_STATE(state);
    for (uint32_t lane = 0; lane < g->lanes.n; lane++) {
        uint32_t first = g->lanes.at[lane].first, end = g->lanes.at[lane].end;

        assert_true(first < end);
        assert_int_equal(rp_sg_node_from(g, lane, INT64_MIN), first);
        assert_int_equal(rp_sg_node_before(g, lane, g->nodes.at[first].start_ns), RP_NONE);
        assert_int_equal(rp_sg_node_before(g, lane, g->nodes.at[first].start_ns + 1), first);
        assert_int_equal(rp_sg_node_from(g, lane, g->nodes.at[end - 1].start_ns), end - 1);
        assert_int_equal(rp_sg_node_from(g, lane, g->nodes.at[end - 1].start_ns + 1), RP_NONE);
        assert_int_equal(rp_sg_node_before(g, lane, INT64_MAX), end - 1);
    }
    release_graph(&b);
}

static void an_event_wait_is_for_what_was_recorded(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "cudaEventRecord", 1, 1, 5, 1, 20},
                               {'X', "cuda_runtime", "l2", 1, 1, 6, 2, 2},
                               {'X', "cuda_runtime", "cudaEventSynchronize", 1, 1, 10, 90, 3},
                               {'X', "kernel", "k1", 0, 7, 10, 30, 1, 7},
                               {'X', "kernel", "k2", 0, 7, 40, 30, 2, 7},
                               {'X', "cuda_sync", "Event Sync", 0, -1, 10, 90, 3, -1, 0,
                                "wait_on_stream", 7, 0, NULL, NULL,
                                "wait_on_cuda_event_record_corr_id", 20}};
    struct built b = BUILD(rows);
    uint32_t sync = NODE("cudaEventSynchronize");

    UNUSED_STATE(state);
    assert_int_equal(b.graph.nodes.at[sync].start_ns, 40);
    check_edge(&b, NODE("k1"), sync, RP_SG_SYNC);
    release_graph(&b);
}

static void a_call_may_wait_for_its_copy(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 0, 90, 1},
                               {'X', "gpu_memcpy", "copy", 0, 7, 10, 50, 1, 7},
                               {'X', "cpu_op", "next", 1, 1, 90, 10}};
    struct built b = BUILD(rows);
    uint32_t rest = node_named(&b.graph, "cudaMemcpyAsync", 0);

    UNUSED_STATE(state);
    assert_int_equal(b.graph.nodes.at[rest].start_ns, 60);
    check_edge(&b, NODE("copy"), rest, RP_SG_SYNC);
    release_graph(&b);
}

/* A call that blocks waits for work that is not its own; one that may block only for its copy. */
static void a_call_that_blocks_waits_for_the_last_work(void **state)
{
    static const struct {
        const char *call;
        int64_t start_ns;
    } calls[] = {{"hipMemcpyWithStream", 60}, {"hipMemcpy", 60}, {"hipMemcpyAsync", 10}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 3; i++) {
        const struct row rows[] = {{'X', "cuda_runtime", "hipLaunchKernel", 1, 1, 0, 5, 1},
                                   {'X', "kernel", "k1", 0, 7, 6, 54, 1, 7},
                                   {'X', "cuda_runtime", calls[i].call, 1, 1, 10, 80},
                                   {'X', "cpu_op", "next", 1, 1, 90, 10}};
        struct built b = BUILD(rows);

        assert_int_equal(b.graph.nodes.at[node_named(&b.graph, calls[i].call, 0)].start_ns,
                         calls[i].start_ns);
        release_graph(&b);
    }
}

static void threads_hand_over_to_each_other(void **state)
{
    const struct row rows[] = {{'X', "user_annotation", "step", 1, 1, 0, 100},
                               {'X', "cpu_op", "forward", 1, 1, 5, 15},
                               {'X', "cpu_op", "backward", 1, 2, 30, 40},
                               {'X', "cpu_op", "update", 1, 1, 80, 10}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("step"), NODE("backward"), RP_SG_HAND_OFF);
    check_edge(&b, NODE("backward"), node_named(&b.graph, "step", 1), RP_SG_HAND_OFF);
    assert_int_equal(b.graph.nodes.at[node_named(&b.graph, "step", 1)].start_ns, 70);
    release_graph(&b);
}

/* What a thread does in a step before another one, which was busy from 10 to end_ns, too, has its
   work: from 30 to 70. */
static int64_t own_work(int64_t end_ns)
{
    const struct row rows[] = {{'X', "user_annotation", "step", 1, 1, 0, 100},
                               {'X', "cpu_op", "forward", 1, 1, 5, 15},
                               {'X', "cpu_op", "before", 1, 2, 10, end_ns - 10},
                               {'X', "cpu_op", "backward", 1, 2, 30, 40},
                               {'X', "cpu_op", "update", 1, 1, 80, 10}};
    struct built b = BUILD(rows);
    int64_t sum = 0;

    for (uint32_t i = b.graph.lanes.at[0].first; i < b.graph.lanes.at[0].end; i++)
        sum += b.graph.nodes.at[i].start_ns < 70 ? b.graph.nodes.at[i].dur_ns : 0;
    release_graph(&b);
    return sum;
}

/* The other one was busy when this one became idle, at 20: it had the work already. */
static void work_is_given_when_a_thread_is_idle(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(own_work(20), 25); /* from 5 to 30 */
    assert_int_equal(own_work(21), 15);
}

static void a_sleeping_thread_is_woken_by_a_busy_one(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "load", 1, 2, 0, 1000},
                               {'X', "cpu_op", "main", 1, 1, 0, 90000},
                               {'X', "cpu_op", "enqueue", 1, 1, 49000, 2000},
                               {'X', "cpu_op", "worker", 1, 2, 50000, 1000}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("enqueue"), NODE("worker"), RP_SG_HAND_OFF);
    release_graph(&b);
}

/* The launch is over at 15, work of another stream at 4000. */
static void a_free_stream_waited_for_another(void **state)
{
    struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 5},
                         {'X', "cuda_runtime", "l2", 1, 1, 10, 5, 6},
                         {'X', "kernel", "k1", 0, 7, 20, 3980, 5, 7},
                         {'X', "kernel", "k2", 0, 9, 15 + 5000, 10, 6, 9}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    assert_null(edge_between(&b.graph, NODE("k1"), NODE("k2"), RP_SG_EVENT));
    release_graph(&b);
    rows[3].ts = 15 + 5001;
    b = BUILD(rows);
    assert_non_null(edge_between(&b.graph, NODE("k1"), NODE("k2"), RP_SG_EVENT));
    release_graph(&b);
    rows[2].ts = 6;
    rows[2].dur = 9; /* over when k2 was launched: that is no reason */
    b = BUILD(rows);
    assert_null(edge_between(&b.graph, NODE("k1"), NODE("k2"), RP_SG_EVENT));
    release_graph(&b);
    rows[2].dur++;
    b = BUILD(rows);
    assert_non_null(edge_between(&b.graph, NODE("k1"), NODE("k2"), RP_SG_EVENT));
    release_graph(&b);
}

static bool is_woken_after(int64_t gap_ns)
{
    const struct row rows[] = {{'X', "cpu_op", "load", 1, 2, 0, 1000},
                               {'X', "cpu_op", "main", 1, 1, 0, 90000},
                               {'X', "cpu_op", "worker", 1, 2, 1000 + gap_ns, 1000}};
    struct built b = BUILD(rows);
    bool woken = edge_between(&b.graph, NODE("main"), NODE("worker"), RP_SG_HAND_OFF);

    release_graph(&b);
    return woken;
}

static void a_short_gap_is_no_sleep(void **state)
{
    UNUSED_STATE(state);
    assert_false(is_woken_after(19999));
    assert_true(is_woken_after(20000));
}

/* One of another process that is busy just then, or stopped meanwhile. */
static void another_process_may_wake_a_thread(void **state)
{
    struct row rows[] = {{'X', "cpu_op", "main", 1, 1, 0, 90000},
                         {'X', "cpu_op", "load", 2, 2, 0, 1000},
                         {'X', "cpu_op", "worker", 2, 2, 50000, 1000}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    assert_non_null(edge_between(&b.graph, NODE("main"), NODE("worker"), RP_SG_HAND_OFF));
    release_graph(&b);
    rows[0].dur = 40000;
    b = BUILD(rows);
    assert_non_null(edge_between(&b.graph, NODE("main"), NODE("worker"), RP_SG_HAND_OFF));
    release_graph(&b);
    rows[0].dur = 900; /* before the thread fell asleep */
    b = BUILD(rows);
    assert_null(edge_between(&b.graph, NODE("main"), NODE("worker"), RP_SG_HAND_OFF));
    release_graph(&b);
}

#define GLOO(tid, ts, dur)                                               \
    {                                                                    \
        'X', "user_annotation", "gloo:all_reduce", 1, (tid), (ts), (dur) \
    }

/* Two threads carry collectives; one of them also copied something once. */
static void a_carrier_gets_its_collectives_from_the_thread_that_works(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "first", 1, 1, 0, 200000},
                               {'X', "cpu_op", "copy", 1, 2, 100000, 5000},
                               GLOO(2, 110000, 4890000),
                               GLOO(3, 210000, 5790000),
                               {'X', "cpu_op", "work", 1, 1, 6010000, 13990000},
                               {'X', "cpu_op", "second", 1, 1, 20000000, 200000},
                               GLOO(2, 20100000, 4900000),
                               GLOO(3, 20150000, 4900000)};
    struct built b = BUILD(rows);
    uint32_t collective = node_named(&b.graph, "gloo:all_reduce", 1);

    UNUSED_STATE(state);
    check_edge(&b, NODE("second"), collective - 1, RP_SG_HAND_OFF); /* to its arrival */
    release_graph(&b);
}

/* It carries the next collective before the thread that waited for the first goes on. */
static void a_thread_follows_the_collective_it_waited_for(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "issue", 1, 1, 0, 200000},
                               GLOO(2, 150000, 3000000),
                               GLOO(2, 3155000, 4000000),
                               {'X', "cpu_op", "copy", 1, 1, 3160000, 100000},
                               {'X', "cpu_op", "update", 1, 1, 7200000, 10000000}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, node_named(&b.graph, "gloo:all_reduce", 0), NODE("copy"), RP_SG_HAND_OFF);
    check_edge(&b, node_named(&b.graph, "gloo:all_reduce", 1), NODE("update"), RP_SG_HAND_OFF);
    release_graph(&b);
}

/* The collective is over long before: it does not bind, but what comes after it never comes before.
 */
static void a_thread_that_sleeps_does_not_overtake_a_collective(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "issue", 1, 1, 0, 200000},
                               GLOO(2, 150000, 1000000),
                               {'X', "cpu_op", "work", 1, 1, 20000000, 30000000}};
    struct built b = BUILD(rows);
    uint32_t collective = NODE("gloo:all_reduce"), work = NODE("work");
    const struct rp_sg_edge *e = edge_between(&b.graph, collective, work, RP_SG_HAND_OFF);

    UNUSED_STATE(state);
    assert_non_null(e);
    assert_false(e->flags & RP_SG_BINDING);
    assert_int_equal(delay_of(&b.graph, collective, work, MUCH), 0);
    assert_int_equal(delay_of(&b.graph, collective, work, 25 * MUCH), 6150000);
    assert_int_equal(delay_of(&b.graph, NODE("issue"), work, MUCH), MUCH);
    release_graph(&b);
}

/* FSDP gathers parameters inside of an operator of the backward pass. The carrier copies the
   result; nobody gave it that. */
static void an_operator_waits_for_a_collective(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "backward", 1, 1, 0, 20000000},
                               {'X', "blocking", "c10d::Work::wait", 1, 1, 1000000, 14100000},
                               {'X', "cpu_op", "view", 1, 2, 900000, 5000},
                               GLOO(2, 910000, 14000000),
                               {'X', "cpu_op", "copy", 1, 2, 14940000, 60000},
                               {'X', "cpu_op", "next", 1, 1, 20100000, 100000},
                               {'X', "cpu_op", "view", 1, 2, 40000000, 5000},
                               GLOO(2, 40010000, 1000000)};
    struct built b = BUILD(rows);
    uint32_t copy = NODE("copy"), go_on = rp_sg_node_from(&b.graph, 0, 1000001), i;

    UNUSED_STATE(state);
    assert_int_equal(b.graph.nodes.at[go_on].start_ns - b.graph.nodes.at[0].start_ns, 15100000);
    check_edge(&b, copy, go_on, RP_SG_HAND_OFF);
    assert_int_equal(delay_of(&b.graph, NODE("gloo:all_reduce"), go_on, MUCH), MUCH);
    for (i = b.graph.in.at[copy]; i < b.graph.in.at[copy + 1]; i++)
        assert_int_not_equal(b.graph.edges.at[i].kind, RP_SG_HAND_OFF);
    assert_non_null(
        edge_between(&b.graph, NODE("next"), node_named(&b.graph, "view", 1), RP_SG_HAND_OFF));
    release_graph(&b);
}

/* Whether what begins after_ns after the end of a collective is taken to have waited for something
   else. */
static bool is_loose_after(int64_t after_ns)
{
    const struct row rows[] = {{'X', "cpu_op", "issue", 1, 1, 0, 200000},
                               GLOO(2, 150000, 350000),
                               {'X', "cpu_op", "work", 1, 1, 500000 + after_ns, 30000000}};
    struct built b = BUILD(rows);
    const struct rp_sg_edge *e =
        edge_between(&b.graph, NODE("gloo:all_reduce"), NODE("work"), RP_SG_HAND_OFF);
    bool loose = e && e->flags & RP_SG_LOOSE;

    assert_non_null(e);
    release_graph(&b);
    return loose;
}

static void only_a_long_sleep_is_for_something_else(void **state)
{
    UNUSED_STATE(state);
    assert_false(is_loose_after(999999));
    assert_true(is_loose_after(1000000));
}

/* Whether a thread that begins before_ns before the end of a collective was woken by its carrier.
 */
static bool wakes_before_its_end(int64_t before_ns)
{
    const struct row rows[] = {{'X', "cpu_op", "issue", 1, 1, 0, 200000},
                               GLOO(2, 150000, 3000000),
                               {'X', "cpu_op", "go", 1, 1, 3150000 - before_ns, 10000000}};
    struct built b = BUILD(rows);
    bool woken = edge_between(&b.graph, NODE("gloo:all_reduce"), NODE("go"), RP_SG_HAND_OFF);

    release_graph(&b);
    return woken;
}

/* Whether a recorded wait is for the collective that ends after_ns after it. */
static bool is_waited_for(int64_t after_ns)
{
    const struct row rows[] = {{'X', "cpu_op", "backward", 1, 1, 0, 20000000},
                               {'X', "blocking", "c10d::Work::wait", 1, 1, 1000000, 14000000},
                               GLOO(2, 910000, 15000000 + after_ns - 910000)};
    struct built b = BUILD(rows);
    uint32_t go_on = rp_sg_node_from(&b.graph, 0, 1000001);
    bool waited =
        go_on != RP_NONE && edge_between(&b.graph, NODE("gloo:all_reduce"), go_on, RP_SG_HAND_OFF);

    release_graph(&b);
    return waited;
}

/* The lane of the carrier that a wait is for, which begins at 11 ms and takes so long, beside two
   collectives of the second thread and one of the third, which end at these times. */
static uint32_t carrier_waited_for(int64_t wait_ns, int64_t first_ns, int64_t second_ns,
                                   int64_t third_ns)
{
    const struct row rows[] = {{'X', "cpu_op", "backward", 1, 1, 0, 40000000},
                               {'X', "blocking", "c10d::Work::wait", 1, 1, 11000000, wait_ns},
                               GLOO(2, 1000000, first_ns - 1000000),
                               GLOO(2, first_ns + 500000, second_ns - first_ns - 500000),
                               GLOO(3, 5000000, third_ns - 5000000)};
    struct built b = BUILD(rows);
    uint32_t go_on = rp_sg_node_from(&b.graph, 0, 11000001), lane = RP_NONE;

    for (uint32_t i = go_on == RP_NONE ? 0 : b.graph.in.at[go_on];
         go_on != RP_NONE && i < b.graph.in.at[go_on + 1]; i++)
        if (b.graph.edges.at[i].kind == RP_SG_HAND_OFF)
            lane = b.graph.nodes.at[b.graph.edges.at[i].from].lane;
    release_graph(&b);
    return lane;
}

static void a_wait_is_for_the_last_of_all_carriers(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(carrier_waited_for(9100000, 10000000, 30000000, 20000000), 2);
    assert_int_equal(carrier_waited_for(9100000, 10000000, 20000000, 19999999), 1);
    assert_int_equal(carrier_waited_for(9100000, 10000000, 20000000, 20000000), 2);
    /* however short the wait is */
    assert_int_equal(carrier_waited_for(1, 10000000, 30000000, 11100000), 2);
    assert_int_equal(carrier_waited_for(0, 10000000, 30000000, 11100000), RP_NONE);
}

/* A thread that was busy for no time stopped when it began: it is not there to wake another. */
static void an_empty_span_ends(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "before", 1, 1, 0, 1000000},
                               {'X', "cpu_op", "blink", 1, 2, 5000000, 0},
                               {'X', "cpu_op", "again", 1, 3, 6000000, 1000000},
                               {'X', "cpu_op", "after", 1, 1, 9000000, 1000000}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    assert_non_null(edge_between(&b.graph, NODE("again"), NODE("after"), RP_SG_HAND_OFF));
    assert_null(edge_between(&b.graph, NODE("before"), NODE("again"), RP_SG_HAND_OFF));
    release_graph(&b);
}

static void a_carrier_that_leaves_wakes(void **state)
{
    UNUSED_STATE(state);
    assert_true(wakes_before_its_end(199999));
    assert_false(wakes_before_its_end(200000));
    assert_true(is_waited_for(200000));
    assert_false(is_waited_for(200001));
}

static void a_gradient_follows_its_operator(void **state)
{
    struct row arrows[] = {{'X', "cpu_op", "forward", 1, 1, 0, 10},
                           {'X', "cpu_op", "other", 1, 1, 10, 10},
                           {'X', "cpu_op", "backward", 1, 2, 10, 10}, /* as soon as possible */
                           {'s', "fwdbwd", "fwdbwd", 1, 1, 0, 0, 0, 0, 0, NULL, 0, 4},
                           {'f', "fwdbwd", "fwdbwd", 1, 2, 10, 0, 0, 0, 0, NULL, 0, 4}};
    const struct row numbers[] = {
        {'X', "cpu_op", "forward", 1, 1, 0, 10, 0, 0, 0, "Sequence number", 4},
        {'X', "cpu_op", "other", 1, 1, 10, 10, 0, 0, 0, "Sequence number", 5},
        {'X', "cpu_op", "backward", 1, 2, 30, 10, 0, 0, 0, "Sequence number", 4, 0, NULL, NULL,
         "Fwd thread id", 1}};
    struct built b = BUILD(arrows);

    UNUSED_STATE(state);
    assert_non_null(edge_between(&b.graph, NODE("forward"), NODE("backward"), RP_SG_FORWARD));
    release_graph(&b);
    arrows[2].ts = arrows[4].ts = 9; /* it cannot have waited */
    b = BUILD(arrows);
    assert_null(edge_between(&b.graph, NODE("forward"), NODE("backward"), RP_SG_FORWARD));
    release_graph(&b);
    b = BUILD(numbers);
    assert_non_null(edge_between(&b.graph, NODE("forward"), NODE("backward"), RP_SG_FORWARD));
    assert_null(edge_between(&b.graph, NODE("other"), NODE("backward"), RP_SG_FORWARD));
    release_graph(&b);
}

/* The forward operator is recorded, but took no time of its own: the node before its end is of what
   ran before it, and its gradient does not follow that. */
static void a_gradient_follows_nothing_earlier(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "before", 1, 1, 0, 10},
        {'X', "cpu_op", "forward", 1, 1, 20, 0, 0, 0, 0, "Sequence number", 4},
        {'X', "cpu_op", "backward", 1, 2, 30, 10, 0, 0, 0, "Sequence number", 4, 0, NULL, NULL,
         "Fwd thread id", 1}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    assert_null(edge_between(&b.graph, NODE("before"), NODE("backward"), RP_SG_FORWARD));
    release_graph(&b);
}

/* A gradient cannot begin before its operator ends, and what has no number has no gradient. */
static void numbers_that_mean_nothing(void **state)
{
    const struct row early[] = {
        {'X', "cpu_op", "forward", 1, 1, 0, 40, 0, 0, 0, "Sequence number", 4},
        {'X', "cpu_op", "backward", 1, 2, 30, 20, 0, 0, 0, "Sequence number", 4, 0, NULL, NULL,
         "Fwd thread id", 1}};
    const struct row none[] = {
        {'X', "cpu_op", "forward", 1, 1, 0, 10, 0, 0, 0, "Sequence number", -1},
        {'X', "cpu_op", "backward", 1, 2, 30, 20, 0, 0, 0, "Sequence number", -1, 0, NULL, NULL,
         "Fwd thread id", 1}};
    struct built b = BUILD(early);

    UNUSED_STATE(state);
    assert_null(edge_between(&b.graph, NODE("forward"), NODE("backward"), RP_SG_FORWARD));
    assert_int_equal(b.graph.ndropped, 0);
    release_graph(&b);
    b = BUILD(none);
    assert_null(edge_between(&b.graph, NODE("forward"), NODE("backward"), RP_SG_FORWARD));
    release_graph(&b);
}

/* Both threads stop at 20: neither took over from the other, and "third" was handed nothing. */
static void threads_that_stop_together(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "one", 1, 1, 0, 20},
                               {'X', "cpu_op", "two", 1, 2, 0, 20},
                               {'X', "cpu_op", "three", 1, 1, 30, 10}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    assert_null(edge_between(&b.graph, NODE("two"), NODE("three"), RP_SG_HAND_OFF));
    release_graph(&b);
}

static void work_of_a_graph_hangs_together(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 0, 5, 1},
                               {'X', "kernel", "a", 0, 7, 10, 20, 1, 7},
                               {'X', "kernel", "b", 0, 7, 31, 20, 1, 7},
                               {'X', "kernel", "c", 0, 9, 20000, 20, 1, 9}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("cudaGraphLaunch"), NODE("a"), RP_SG_LAUNCH);
    check_edge(&b, NODE("a"), NODE("b"), RP_SG_IN_GRAPH);
    check_edge(&b, NODE("b"), NODE("c"), RP_SG_IN_GRAPH);
    assert_null(edge_between(&b.graph, NODE("cudaGraphLaunch"), NODE("b"), RP_SG_LAUNCH));
    release_graph(&b);
}

static void what_has_no_reason_follows_the_latest_end(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "one", 1, 1, 0, 10},
                               {'X', "kernel", "lonely", 0, 7, 100, 10, 9, 7}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("one"), NODE("lonely"), RP_SG_AFTER);
    release_graph(&b);
}

/* Work that starts before its launch, and a wait that its work outlasts, give no edge. */
static void impossible_edges_are_left_out(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "launch", 1, 1, 50, 5, 5},
                               {'X', "kernel", "early", 0, 7, 20, 50, 5, 7}};
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    assert_null(edge_between(&b.graph, NODE("launch"), NODE("early"), RP_SG_LAUNCH));
    assert_int_equal(b.graph.ndropped, 1);
    release_graph(&b);
}

/* The event is recorded behind "a"; only the next launch waits for it. An operator that is called
   as the recording function is does not record. */
static void a_wait_holds_up_the_next_launch(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "launch", 1, 1, 0, 1, 1},
        {'X', "cuda_runtime", "cudaEventRecord", 1, 1, 2, 1},
        {'X', "cuda_runtime", "launch", 1, 1, 4, 1, 2},
        {'X', "cpu_op", "cudaEventRecord", 1, 1, 6, 1},
        {'X', "cuda_runtime", "cudaStreamWaitEvent", 1, 1, 8, 1},
        {'X', "cuda_runtime", "launch", 1, 1, 10, 1, 3},
        {'X', "cuda_runtime", "launch", 1, 1, 12, 1, 4},
        {'X', "kernel", "a", 0, 7, 20, 10, 1, 7},
        {'X', "kernel", "d", 0, 7, 30, 5, 2, 7},
        {'X', "kernel", "b", 0, 8, 40, 10, 3, 8},
        {'X', "kernel", "c", 0, 9, 60, 10, 4, 9},
    };
    struct built b = BUILD(rows);

    UNUSED_STATE(state);
    check_edge(&b, NODE("a"), NODE("b"), RP_SG_EVENT);
    assert_null(edge_between(&b.graph, NODE("d"), NODE("b"), RP_SG_EVENT));
    assert_null(edge_between(&b.graph, NODE("a"), NODE("c"), RP_SG_EVENT));
    release_graph(&b);
}

/* Kernels begin 5 after their launches, but the last waits for the one before it: its launch could
   have been 5 before, as usual, and not the 85 that were recorded. */
static void edges_that_do_not_bind_have_the_usual_lag(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},   {'X', "kernel", "k1", 0, 7, 10, 20, 1, 7},
        {'X', "cuda_runtime", "l2", 1, 1, 100, 5, 2}, {'X', "kernel", "k2", 0, 7, 110, 20, 2, 7},
        {'X', "cuda_runtime", "l3", 1, 1, 200, 5, 3}, {'X', "kernel", "k3", 0, 7, 210, 100, 3, 7},
        {'X', "cuda_runtime", "l4", 1, 1, 220, 5, 4}, {'X', "kernel", "k4", 0, 7, 310, 20, 4, 7},
    };
    struct built b = BUILD(rows);
    const struct rp_sg_edge *launch = edge_between(&b.graph, NODE("l4"), NODE("k4"), RP_SG_LAUNCH);

    UNUSED_STATE(state);
    check_edge(&b, NODE("k3"), NODE("k4"), RP_SG_STREAM);
    assert_non_null(launch);
    assert_false(launch->flags & RP_SG_BINDING);
    assert_int_equal(launch->lag_ns, 5);
    release_graph(&b);
}

/* The launch of k2 returns when k1 ends: that it was launched is why it begins. */
static void of_two_reasons_the_launch_binds(void **state)
{
    const struct row rows[] = {{'X', "cuda_runtime", "l1", 1, 1, 0, 5, 1},
                               {'X', "cuda_runtime", "l2", 1, 1, 25, 5, 2},
                               {'X', "kernel", "k1", 0, 7, 10, 20, 1, 7},
                               {'X', "kernel", "k2", 0, 7, 35, 20, 2, 7}};
    struct built b = BUILD(rows);
    const struct rp_sg_edge *launch = edge_between(&b.graph, NODE("l2"), NODE("k2"), RP_SG_LAUNCH);
    const struct rp_sg_edge *stream = edge_between(&b.graph, NODE("k1"), NODE("k2"), RP_SG_STREAM);

    UNUSED_STATE(state);
    assert_true(launch && launch->flags & RP_SG_BINDING);
    assert_true(stream && !(stream->flags & RP_SG_BINDING));
    release_graph(&b);
}

int test_step_edges(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_of_a_thread_follow_each_other),
        cmocka_unit_test(work_follows_its_launch),
        cmocka_unit_test(a_wait_holds_up_the_next_launch),
        cmocka_unit_test(edges_that_do_not_bind_have_the_usual_lag),
        cmocka_unit_test(work_of_a_stream_follows_each_other),
        cmocka_unit_test(a_recorded_event_holds_up_its_version),
        cmocka_unit_test(the_order_of_calls_tells_of_an_event),
        cmocka_unit_test(a_device_wait_is_for_every_stream),
        cmocka_unit_test(a_stream_wait_is_for_its_stream),
        cmocka_unit_test(nodes_are_found_by_time),
        cmocka_unit_test(opencl_waits_for_its_commands),
        cmocka_unit_test(an_event_wait_is_for_what_was_recorded),
        cmocka_unit_test(a_call_may_wait_for_its_copy),
        cmocka_unit_test(a_call_that_blocks_waits_for_the_last_work),
        cmocka_unit_test(threads_hand_over_to_each_other),
        cmocka_unit_test(work_is_given_when_a_thread_is_idle),
        cmocka_unit_test(a_sleeping_thread_is_woken_by_a_busy_one),
        cmocka_unit_test(a_carrier_gets_its_collectives_from_the_thread_that_works),
        cmocka_unit_test(a_thread_follows_the_collective_it_waited_for),
        cmocka_unit_test(a_thread_that_sleeps_does_not_overtake_a_collective),
        cmocka_unit_test(an_operator_waits_for_a_collective),
        cmocka_unit_test(a_gradient_follows_its_operator),
        cmocka_unit_test(a_gradient_follows_nothing_earlier),
        cmocka_unit_test(numbers_that_mean_nothing),
        cmocka_unit_test(threads_that_stop_together),
        cmocka_unit_test(work_of_a_graph_hangs_together),
        cmocka_unit_test(what_has_no_reason_follows_the_latest_end),
        cmocka_unit_test(impossible_edges_are_left_out),
        cmocka_unit_test(of_two_reasons_the_launch_binds),
        cmocka_unit_test(a_free_stream_waited_for_another),
        cmocka_unit_test(a_short_gap_is_no_sleep),
        cmocka_unit_test(another_process_may_wake_a_thread),
        cmocka_unit_test(only_a_long_sleep_is_for_something_else),
        cmocka_unit_test(an_empty_span_ends),
        cmocka_unit_test(a_carrier_that_leaves_wakes),
        cmocka_unit_test(a_wait_is_for_the_last_of_all_carriers),
    };

    return cmocka_run_group_tests_name("step_edges", tests, NULL, NULL);
}
