/* SPDX-License-Identifier: Apache-2.0 */
/* A run as a whole: its transport, its critical path, a job, and damaged numbers. */
#include "job/job.h"
#include "run_fixtures.h"
#include "sim/model/steps.h"
#include "sim/model/transport.h"
#include "sim/predict.h"
#include "sim/simulate.h"

#include <math.h>

static const struct step_shape usual = {40000, false, false};

static void the_median_gap_of_few_and_many(void **state)
{
    int64_t none[] = {5}, two[] = {5, 9}, even[] = {0, 10, 40, 50, 70},
            some[] = {0, 10, 40, 50, 70};
    uint8_t bare[] = {0, 1, 0, 1, 1};
    struct rp_sim_part part = {0};

    UNUSED_STATE(state);
    assert_int_equal(rp_sim_median_gap(&part, none, 1), 0);
    assert_int_equal(rp_sim_median_gap(&part, two, 2), 4);
    assert_int_equal(rp_sim_median_gap(&part, even, 5), 15); /* 10, 30, 10, 20 */
    part.bare.at = bare;
    part.bare.n = 5;
    assert_int_equal(rp_sim_median_gap(&part, some, 5), 10); /* 10, 10 */
}

/* Three transfers of 4,000 bytes in 20,000 ns each, alone: a hundredth is latency. */
static void the_transport_of_equal_transfers(void **state)
{
    struct step_shape shapes[] = {usual, usual};
    struct rp_err err = RP_ERR_INIT;
    struct rp_transport t;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    assert_ok(rp_transport_fit(&b.run, &t, &err), &err);
    assert_int_equal(t.n, STEPS);
    assert_true(fabs(t.latency_ns - 200) < 0.01);
    assert_true(fabs(t.bytes_per_ns - 4000 / 19800.0) < 1e-6);
    assert_in_range(rp_transport_ns(&t, 4000), 19999, 20001);
    assert_in_range(rp_transport_ns(&t, 8000), 39799, 39801);
    bench_release(&b);
}

/* Without its profiler or with it, the parts of the path are the path. */
static void the_critical_path_adds_up(void **state)
{
    static const char *const whatifs[] = {NULL, "scale:gpu=2", "no-sync", "cuda-graphs", "ranks=8"};
    struct step_shape shapes[] = {usual, {46000, false, false}};
    size_t i, k;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof whatifs / sizeof whatifs[0]; i++) {
        struct rp_err err = RP_ERR_INIT;
        struct rp_sim_result r = {0};
        struct rp_sim_steps steps;
        struct rp_sim_path path;
        struct bench b;
        int64_t sum = 0;

        bench_init(&b, 2, shapes);
        if (whatifs[i])
            assert_ok(rp_whatif_apply(&b.run, whatifs[i], &err), &err);
        assert_ok(rp_simulate(&b.run.overlay, &r, &err), &err);
        assert_ok(rp_sim_steps_init(&steps, &b.run, &r, &err), &err);
        assert_ok(rp_sim_path(&b.run, &r, &steps, &path, &err), &err);
        for (k = 0; k < RP_SIM_PATH_PARTS; k++)
            sum += path.ns[k];
        assert_true(sum <= path.total_ns && sum > path.total_ns - RP_SIM_PATH_PARTS);
        assert_int_equal(path.total_ns, steps.ranks[0].step_ns); /* the ranks wait for each other */
        assert_non_null(rp_sim_path_most(&path));
        rp_sim_steps_release(&steps);
        rp_sim_result_release(&r);
        bench_release(&b);
    }
}

/* The host ends at 20,000, its three kernels at 100,000: that is the end of the step. */
static void a_step_is_as_long_as_its_device_work(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 20000},
        {'X', "cpu_op", "aten::mm", 1, 1, 1000, 15000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2000, 2000, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 2000, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 8000, 2000, 3},
        {'X', "kernel", "gemm_a", 0, 7, 10000, 30000, 1, 7},
        {'X', "kernel", "gemm_b", 0, 7, 40000, 30000, 2, 7},
        {'X', "kernel", "gemm_c", 0, 7, 70000, 30000, 3, 7},
    };
    static const struct {
        const char *text;
        int64_t least, most;
    } cases[] = {{"scale:host=0.001", 90000, 99000}, {"cuda-graphs", 90000, 94000},
                 {"scale:gpu=10", 900000, 911000},   {"scale:gpu=0.5", 45000, 56000},
                 {"scale:all=2", 200000, 200000},    {"scale:gemm_b=3", 160000, 160000}};
    const struct rp_sim_part *list[1];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_answer answer = {0};
    struct rp_sim_part part;
    struct rp_trace *t = trace_of(rows, sizeof rows / sizeof rows[0]);
    size_t i;

    UNUSED_STATE(state);
    assert_ok(rp_sim_part_init(&part, t, &arena, &err), &err);
    list[0] = &part;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_sim_asked asked = {.whatifs = &cases[i].text, .nwhatifs = 1};

        answer = (struct rp_sim_answer){0};
        assert_ok(rp_sim_answer(list, 1, &asked, &arena, &answer, &err), &err);
        assert_int_equal(answer.baseline.step_ns, 100000);
        assert_int_equal(answer.baseline.simulated_step_ns, 100000);
        assert_in_range(answer.predictions[0].predicted_ns, cases[i].least, cases[i].most);
    }
    assert_string_equal(answer.predictions[0].changed, "scales 1 task: 'gemm_b' (1)");
    rp_sim_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* Kernels of two streams that never ran at a time do not begin to, however fast the host is. */
static void streams_that_took_turns_go_on_to(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 100000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 40000, 2000, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 70000, 2000, 3},
        {'X', "kernel", "gemm_a", 0, 7, 5000, 20000, 1, 7},
        {'X', "kernel", "gemm_b", 0, 9, 45000, 20000, 2, 9},
        {'X', "kernel", "gemm_c", 0, 7, 75000, 20000, 3, 7},
    };
    struct rp_trace *t = trace_of(rows, sizeof rows / sizeof rows[0]);
    const char *whatif = "cuda-graphs";
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_part part;
    const struct rp_sim_part *list[] = {&part};
    struct rp_sim_gain gain;
    struct rp_sim_now now;

    UNUSED_STATE(state);
    assert_ok(rp_sim_part_init(&part, t, &arena, &err), &err);
    assert_ok(rp_sim_predict(list, 1, &whatif, 1, &now, &gain, &err), &err);
    assert_int_equal(now.step_ns, 100000);
    assert_int_equal(now.unprofiled_ns, 100000);
    assert_in_range(gain.step_ns, 60000, 99000);
    rp_sim_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* ------------------------------------------------------------------ damaged numbers */

static void durations_up_to_the_end_of_time(void **state)
{
    static const char *const whatifs[] = {"scale:all=1000",    "scale:all=0.001",
                                          "cuda-graphs",       "fused-optimizer",
                                          "ranks=1000000",     "net.bandwidth=2x",
                                          "no-sync",           "overlap",
                                          "no-overlap",        "fuse",
                                          "dtype=bf16",        "recompute=sgemm",
                                          "gpu:T4=B200",       "dataloader=1000",
                                          "swap=sgemm,element"};
    static const int64_t sizes[] = {INT64_MAX / 4, INT64_MAX / 2 - 200000};
    size_t i, k;

    UNUSED_STATE(state);
    for (k = 0; k < 2; k++)
        for (i = 0; i < sizeof whatifs / sizeof whatifs[0]; i++) {
            struct step_shape huge = {sizes[k], false, false};
            struct rp_err err = RP_ERR_INIT;
            struct rp_sim_answer answer = {0};
            struct rp_arena arena;
            struct bench b;
            enum rp_code code;

            bench_init(&b, 1, &huge);
            rp_arena_init(&arena);
            struct rp_sim_asked asked = {.whatifs = &whatifs[i], .nwhatifs = 1};

            code = rp_sim_answer(b.list, 1, &asked, &arena, &answer, &err);
            assert_true(code == RP_OK || code == RP_UNSUPPORTED || code == RP_USAGE);
            rp_arena_release(&arena);
            bench_release(&b);
        }
}

/* ------------------------------------------------------------------ a job */

static struct rp_job_op op(const char *name, int64_t begin_ns, int64_t dur_ns, int64_t step)
{
    return (struct rp_job_op){name, begin_ns, dur_ns, step};
}

static void fill_rank(struct rp_job_rank *r, int32_t number, int64_t slower)
{
    static const struct rp_job_edge edges[] = {{"FW.a", "BW.a", -1, -1}, {"BW.a", "UPD.a", -1, -1}};
    struct rp_err err = RP_ERR_INIT;
    int64_t step;

    memset(r, 0, sizeof *r);
    rp_arena_init(&r->arena);
    r->host = "host0";
    r->local = r->number = number;
    for (step = 0; step < 2; step++) {
        int64_t at = 1000 * step;

        assert_ok(rp_vec_push(&r->ops, op("FW.a", at, 100, step), &err), &err);
        assert_ok(rp_vec_push(&r->ops, op("BW.a", at + 120, 200 + slower, step), &err), &err);
        assert_ok(rp_vec_push(&r->ops, op("UPD.a", at + 340 + slower, 30, step), &err), &err);
    }
    assert_ok(rp_vec_push(&r->edges, edges[0], &err), &err);
    assert_ok(rp_vec_push(&r->edges, edges[1], &err), &err);
}

/* Forward 100, a gap of 20, backward 200, a gap of 20, update 30. */
static void a_job_of_operators_alone(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_job job = {.nranks = 2, .ranks = calloc(2, sizeof *job.ranks)};
    struct rp_sim_part part = {0};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_sim_result r = {0};
    struct rp_sim_run run;
    int64_t step_ns;

    UNUSED_STATE(state);
    assert_non_null(job.ranks);
    fill_rank(&job.ranks[0], 0, 0);
    fill_rank(&job.ranks[1], 1, 50);
    assert_ok(rp_sim_part_of_job(&part, &job, &err), &err);
    assert_int_equal(part.nranks, 2);
    assert_int_equal(part.recorded_steps, 2);
    assert_int_equal(part.measured_ns, 420);
    assert_ok(rp_sim_run_init(&run, parts, 1, &err), &err);
    assert_ok(rp_simulate(&run.overlay, &r, &err), &err);
    assert_ok(rp_sim_step_ns(&run, &r, &step_ns, &err), &err);
    assert_int_equal(step_ns, 420);
    assert_ok(rp_whatif_apply(&run, "scale:backward=2", &err), &err);
    assert_ok(rp_simulate(&run.overlay, &r, &err), &err);
    assert_ok(rp_sim_step_ns(&run, &r, &step_ns, &err), &err);
    assert_int_equal(step_ns, 670);
    rp_sim_result_release(&r);
    rp_sim_run_release(&run);
    rp_sim_part_release(&part);
    rp_job_release(&job);
}

static void a_job_without_its_graph_is_refused(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_job job = {.nranks = 1, .ranks = calloc(1, sizeof *job.ranks)};
    struct rp_sim_part part = {0};

    UNUSED_STATE(state);
    assert_non_null(job.ranks);
    fill_rank(&job.ranks[0], 0, 0);
    job.ranks[0].edges.n = 0;
    assert_code(rp_sim_part_of_job(&part, &job, &err), RP_FORMAT);
    assert_contains(err.text, "dag.gml");
    rp_sim_part_release(&part);
    rp_job_release(&job);
}

int test_sim_run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_gap_of_few_and_many),
        cmocka_unit_test(the_transport_of_equal_transfers),
        cmocka_unit_test(the_critical_path_adds_up),
        cmocka_unit_test(a_step_is_as_long_as_its_device_work),
        cmocka_unit_test(streams_that_took_turns_go_on_to),
        cmocka_unit_test(durations_up_to_the_end_of_time),
        cmocka_unit_test(a_job_of_operators_alone),
        cmocka_unit_test(a_job_without_its_graph_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
