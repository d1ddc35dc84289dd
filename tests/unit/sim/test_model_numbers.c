/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the model of a run: on both sides of each edge, and what follows from each factor. */
#include "run_fixtures.h"
#include "sim/model/chains.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/steps.h"
#include "sim/model/transport.h"
#include "sim/predict.h"

#include <math.h>
#include <stdlib.h>

static const struct step_shape usual = {40000, false, false};

/* ------------------------------------------------------------------ the profiler's cost */

/* Of n views of a duration: the time of a quick operator that is found. */
static int64_t quick_of(size_t n, int64_t dur_ns)
{
    struct row *rows = calloc(n + 1, sizeof *rows);
    struct rp_sim_part part = {0};
    struct rp_trace *t;

    assert_non_null(rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct row){'X', "cpu_op", "aten::view", 1, 1, (int64_t)i * 2 * dur_ns, dur_ns};
    t = trace_of(rows, n);
    assert_code(rp_sim_cost_look(&part, t, NULL), RP_OK);
    rp_trace_free(t);
    free(rows);
    return part.quick_ns;
}

static void what_counts_as_a_quick_operator(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(quick_of(30, 700), 700);
    assert_int_equal(quick_of(29, 700), 0); /* too few */
    assert_int_equal(quick_of(30, 5000), 5000);
    assert_int_equal(quick_of(30, 5001), 0); /* it waited */
}

static void check_cost(const struct rp_sim_part *p, double span, double call, double frame)
{
    struct rp_sim_cost cost = rp_sim_cost_of(p);

    assert_true(fabs(cost.span_ns - span) < 0.01);
    assert_true(fabs(cost.call_ns - call) < 0.01);
    assert_true(fabs(cost.frame_ns - frame) < 0.01);
}

static void the_profilers_cost(void **state)
{
    struct rp_sim_part p = {.quick_ns = 600, .with_device = true, .nspans = 10};

    UNUSED_STATE(state);
    p.graph.end_ns = 1000000;
    check_cost(&p, 4.4 * 600, 2.8 * 600, 0.7 * 600);
    p.with_shapes = true;
    check_cost(&p, 1.25 * 4.4 * 600, 2.8 * 600, 0.7 * 600);
    p.with_shapes = false;
    p.quick_ns = 726; /* a host that is slower: by the root of 1.21 */
    check_cost(&p, 1.1 * 4.4 * 726, 1.1 * 2.8 * 726, 1.1 * 0.7 * 726);
    p.quick_ns = 1200; /* by a quarter at most */
    check_cost(&p, 1.25 * 4.4 * 1200, 1.25 * 2.8 * 1200, 1.25 * 0.7 * 1200);
    p.quick_ns = 300;
    check_cost(&p, 0.75 * 4.4 * 300, 0.75 * 2.8 * 300, 0.75 * 0.7 * 300);
    p.with_device = false;
    p.quick_ns = 600;
    check_cost(&p, 0.75 * 4.4 * 600, 0.75 * 2.8 * 600, 0.75 * 0.7 * 600);
    p.quick_ns = 0;
    check_cost(&p, 1000, 6500, 0);
    p.ncalls = p.nframes = 10;
    p.graph.end_ns = 75000; /* 75 us of cost: half of the time at most */
    check_cost(&p, 500, 3250, 0);
}

static int64_t step_with_cost(struct bench *b, double factor)
{
    size_t mark = rp_overlay_mark(&b->run.overlay);
    int64_t ns;

    b->run.cost_factor = factor;
    assert_code(rp_sim_cost_drop(&b->run, 1, NULL), RP_OK);
    ns = step_now(b);
    rp_overlay_undo(&b->run.overlay, mark);
    return ns;
}

/* With a debt that is never paid, each node and each gap keeps a tenth. */
static void a_node_keeps_its_own_part(void **state)
{
    size_t kept = 0, gaps = 0;
    int64_t lags[256];
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_true(b.run.overlay.lag_ns.n <= 256);
    memcpy(lags, b.run.overlay.lag_ns.at, b.run.overlay.lag_ns.n * sizeof *lags);
    b.parts[0].quick_ns = 600;
    b.run.cost_factor = 1;
    assert_code(rp_sim_cost_drop(&b.run, 1e6, NULL), RP_OK);
    for (uint32_t i = 0; i < b.run.graph->nodes.n; i++) {
        int64_t dur = b.run.graph->nodes.at[i].dur_ns, now = b.run.overlay.dur_ns.at[i];

        if (dur < 1000 || rp_sg_on_device(b.run.graph, i))
            continue;
        assert_int_equal(now, dur / 10);
        kept++;
    }
    for (size_t i = 0; i < b.run.tasks.edges.n; i++)
        gaps += lags[i] >= 1000 && b.run.overlay.lag_ns.at[i] == lags[i] / 10;
    assert_true(kept > 5);
    assert_true(gaps > 0);
    bench_release(&b);
}

static enum rp_code calibrate(struct bench *b, double step_ns)
{
    struct rp_err err = RP_ERR_INIT;

    return rp_sim_cost_calibrate(&b->run, llround(step_ns), &err);
}

static void a_measured_step_sets_the_cost(void **state)
{
    double with, twice, least;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].quick_ns = 1500;
    with = (double)step_with_cost(&b, 0);
    twice = (double)step_with_cost(&b, 2);
    least = (double)step_with_cost(&b, 16);
    assert_true((with - twice) / 0.1 > least / 1.04);
    assert_code(calibrate(&b, 1.001 * least / 1.05), RP_OK);
    assert_code(calibrate(&b, 0.999 * least / 1.05), RP_USAGE); /* too short */
    assert_code(calibrate(&b, 0.999 * (with - twice) / 0.1), RP_OK);
    assert_false(b.run.cost_flat);
    assert_code(calibrate(&b, 1.001 * (with - twice) / 0.1), RP_OK);
    assert_true(b.run.cost_flat); /* the step says nothing about the cost */
    assert_true(b.run.cost_factor == 1);
    assert_code(calibrate(&b, 1.01 * with), RP_OK);
    assert_false(b.run.cost_flat);
    assert_true(b.run.cost_factor == 0); /* it costs nothing */
    bench_release(&b);
}

/* ------------------------------------------------------------------ the transport */

/* A run of which only collectives are known: all-reduces one after another, each of ns. */
struct wire {
    struct rp_collective list[4];
    struct rp_sim_part part;
    const struct rp_sim_part *parts[1];
    struct rp_sim_run run;
};

static struct rp_transport fit_wire(struct wire *w, size_t n, const int64_t *bytes,
                                    const int64_t *ns, bool on_host, enum rp_sim_lean lean)
{
    struct rp_transport t;
    int64_t at = 0;

    w->part.collectives.list.at = w->list;
    w->part.collectives.list.n = n;
    w->part.collectives.on_host = on_host;
    w->parts[0] = &w->part;
    w->run.parts = w->parts;
    w->run.nranks = 1;
    w->run.lean = lean;
    for (size_t i = 0; i < n; i++) {
        w->list[i] = (struct rp_collective){.begin_ns = at,
                                            .end_ns = at + ns[i],
                                            .kind = RP_COLL_ALL_REDUCE,
                                            .in_bytes = bytes[i],
                                            .group_size = 2};
        at += 2 * ns[i];
    }
    assert_code(rp_transport_fit(&w->run, &t, NULL), RP_OK);
    return t;
}

/* Latency of two transfers of 4 MB in ns each. */
static double latency_of(int64_t ns, bool on_host, double crowded, enum rp_sim_lean lean)
{
    const int64_t bytes[] = {4000000, 4000000}, times[] = {ns, ns};
    struct wire w = {.part = {.crowded = crowded}};

    return fit_wire(&w, 2, bytes, times, on_host, lean).latency_ns;
}

static void check_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-6 * expected)
        fail_msg("%.9g is not %.9g", value, expected);
}

/* Two rounds. */
static void the_latency_of_crowded_threads(void **state)
{
    UNUSED_STATE(state);
    check_near(latency_of(4000000, true, 1, RP_LEAN_NONE), 1000000);
    check_near(latency_of(4000000, true, 0.5, RP_LEAN_NONE), 500000);
    check_near(latency_of(1500000, true, 1, RP_LEAN_NONE), 750000); /* half of it at most */
    check_near(latency_of(4000000, false, 1, RP_LEAN_NONE), 40000);
}

static void how_far_latency_is_unknown(void **state)
{
    const int64_t bytes[] = {4000000, 1000000}, ns[] = {4000000, 1600000};
    struct wire w = {0};

    UNUSED_STATE(state);
    check_near(latency_of(4000000, true, 0, RP_LEAN_MORE_LATENCY), 1500000);
    check_near(latency_of(2000000, true, 0, RP_LEAN_MORE_LATENCY), 1400000); /* 0.7 of it at most */
    check_near(latency_of(4000000, false, 0, RP_LEAN_MORE_LATENCY), 60000);
    check_near(latency_of(4000000, true, 0, RP_LEAN_LESS_LATENCY), 0);
    /* two sizes tell it: half or twice */
    check_near(fit_wire(&w, 2, bytes, ns, true, RP_LEAN_NONE).latency_ns, 600000);
    check_near(fit_wire(&w, 2, bytes, ns, true, RP_LEAN_MORE_LATENCY).latency_ns, 1200000);
    check_near(fit_wire(&w, 2, bytes, ns, true, RP_LEAN_LESS_LATENCY).latency_ns, 300000);
}

static void larger_transfers_of_the_host_are_slower(void **state)
{
    const int64_t bytes[] = {4000000}, ns[] = {4000000};
    struct wire w = {0};
    struct rp_transport t = fit_wire(&w, 1, bytes, ns, true, RP_LEAN_NONE);

    UNUSED_STATE(state);
    check_near(t.slower_by_twice, 0.08);
    check_near((double)rp_transport_ns(&t, 8000000), 40000 + 1.08 * 2 * 3960000);
    check_near((double)rp_transport_ns(&t, 64000000), floor(40000 + pow(1.08, 3) * 16 * 3960000));
    check_near(fit_wire(&w, 1, bytes, ns, true, RP_LEAN_SLOWER).slower_by_twice, 0.2);
    assert_true(fit_wire(&w, 1, bytes, ns, true, RP_LEAN_FASTER).slower_by_twice == 0);
    assert_true(fit_wire(&w, 1, bytes, ns, false, RP_LEAN_SLOWER).slower_by_twice == 0);
}

static void transfers_of_another_run_differ(void **state)
{
    struct rp_transport t = {.spread_ratio = 0.079};

    UNUSED_STATE(state);
    check_near(rp_transport_doubt(&t), 0.08);
    t.spread_ratio = 0.081;
    check_near(rp_transport_doubt(&t), 0.081);
}

/* ------------------------------------------------------------------ steps and gradients */

static void one_step_spreads_as_usual(void **state)
{
    struct rp_sim_part part = {.spread_ratio = NAN, .has_steps = true};

    UNUSED_STATE(state);
    check_near(rp_sim_spread(&part), 0.03);
    part.has_steps = false;
    assert_true(rp_sim_spread(&part) == 0);
    part.spread_ratio = 0.01;
    check_near(rp_sim_spread(&part), 0.01);
}

/* The bytes that 250 elements of a gradient are found to have, where so many elements of a type are
   sent; -1: not known. */
static int64_t gradient_bytes(int64_t sent, const char *dtype)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 99000},
                               {'X', "cpu_op", "torch::autograd::AccumulateGrad", 1, 1, 1000, 9000,
                                0, 0, 0, NULL, 0, 0, "Input Dims", "[[250]]"},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 12000, 4000, 1},
                               {'X', "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 20,
                                20000, 20000, 1, 20, 0, "In msg nelems", sent, 0, "dtype", dtype,
                                "Group size", 2}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = trace_of(rows, sizeof rows / sizeof rows[0]);
    struct rp_sim_part part;
    int64_t bytes;

    assert_code(rp_sim_part_init(&part, t, &arena, NULL), RP_OK);
    assert_int_equal(part.gradients.n, 1);
    bytes = part.gradients.at[0].bytes;
    rp_sim_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
    return bytes;
}

static void gradients_are_sized_by_what_is_sent(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(gradient_bytes(250, "Float"), 1000);
    assert_int_equal(gradient_bytes(250, "Half"), 500);
    assert_int_equal(gradient_bytes(250, "Double"), 2000);
    assert_int_equal(gradient_bytes(274, "Float"), 1000);
    assert_int_equal(gradient_bytes(276, "Float"), -1); /* over a tenth: other things were sent */
    assert_int_equal(gradient_bytes(226, "Float"), 1000);
    assert_int_equal(gradient_bytes(224, "Float"), -1);
}

/* What a thread does that carries collectives is communication: it does not run the model. */
static void threads_that_carry_collectives_are_remote(void **state)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 900000},
                               {'X', "cpu_op", "aten::mm", 1, 1, 1000, 500000},
                               {'X', "cpu_op", "aten::copy_", 1, 2, 400000, 5000},
                               {'X', "user_annotation", "gloo:all_reduce", 1, 2, 410000, 200000, 0,
                                0, 0, "In msg nelems", 1000, 0, "dtype", "Float", "Group size", 2}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = trace_of(rows, sizeof rows / sizeof rows[0]);
    struct rp_sim_part part;
    size_t own = 0, remote = 0;

    UNUSED_STATE(state);
    assert_code(rp_sim_part_init(&part, t, &arena, NULL), RP_OK);
    for (size_t i = 0; i < part.graph.nodes.n; i++) {
        const char *name = part.graph.names.at[part.graph.nodes.at[i].name];

        own += !strcmp(name, "aten::mm") && !(part.notes.at[i].flags & RP_SIM_REMOTE);
        remote += !strcmp(name, "aten::copy_") && part.notes.at[i].flags & RP_SIM_REMOTE;
    }
    assert_true(own > 0);
    assert_true(remote > 0);
    rp_sim_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* A step of a function that calls others, then launches; n calls. What it takes without the
   profiler, and with a graph; *nodes: of its part. */
static void predict_frames(bool join, size_t calls, struct rp_sim_now *now,
                           struct rp_sim_gain *gain, size_t *nodes)
{
    static const char *const graphs[] = {"cuda-graphs"};
    struct row *rows = calloc(calls + 40, sizeof *rows);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_part part;
    const struct rp_sim_part *parts = &part;
    struct rp_trace *t;
    size_t i, n = 0;

    assert_non_null(rows);
    rows[n++] = (struct row){'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 4000000};
    for (i = 0; i < 30; i++)
        rows[n++] = (struct row){'X', "cpu_op", "aten::view", 1, 1, 1000 + 2000 * (int64_t)i, 600};
    rows[n++] = (struct row){'X', "python_function", "train.py(1): step", 1, 1, 100000, 3000000};
    for (i = 0; i < calls; i++)
        rows[n++] = (struct row){'X', "python_function",          "model.py(7): helper",      1,
                                 1,   200000 + 1000 * (int64_t)i, 100 + 7 * (int64_t)(i % 90)};
    rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2900000, 4000, 1};
    rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, 2910000, 500000, 1, 7};
    t = trace_of(rows, n);
    assert_code(rp_sim_part_init(&part, t, &arena, NULL), RP_OK);
    if (join)
        assert_code(rp_sim_chains_join(&part, NULL), RP_OK);
    *nodes = part.graph.nodes.n;
    assert_code(rp_sim_predict(&parts, 1, graphs, 1, now, gain, NULL), RP_OK);
    rp_sim_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
    free(rows);
}

/* Frames between two operators are one node, which pays for the recording of each of them. */
static void joined_frames_take_as_long(void **state)
{
    struct rp_sim_now apart, joined;
    struct rp_sim_gain gain_apart, gain_joined;
    size_t many, few;

    UNUSED_STATE(state);
    predict_frames(false, 500, &apart, &gain_apart, &many);
    predict_frames(true, 500, &joined, &gain_joined, &few);
    assert_true(many > 1000);
    assert_true(few < many - 990);
    assert_int_equal(joined.step_ns, apart.step_ns);
    assert_int_equal(joined.simulated_ns, apart.simulated_ns);
    assert_true(apart.unprofiled_ns < apart.step_ns);
    assert_int_equal(joined.unprofiled_ns, apart.unprofiled_ns);
    assert_int_equal(gain_joined.step_ns, gain_apart.step_ns);
}

int test_model_numbers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts_as_a_quick_operator),
        cmocka_unit_test(the_profilers_cost),
        cmocka_unit_test(a_node_keeps_its_own_part),
        cmocka_unit_test(a_measured_step_sets_the_cost),
        cmocka_unit_test(the_latency_of_crowded_threads),
        cmocka_unit_test(how_far_latency_is_unknown),
        cmocka_unit_test(larger_transfers_of_the_host_are_slower),
        cmocka_unit_test(transfers_of_another_run_differ),
        cmocka_unit_test(one_step_spreads_as_usual),
        cmocka_unit_test(gradients_are_sized_by_what_is_sent),
        cmocka_unit_test(threads_that_carry_collectives_are_remote),
        cmocka_unit_test(joined_frames_take_as_long),
    };

    return cmocka_run_group_tests_name("model_numbers", tests, NULL, NULL);
}
