/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses between operators have a cause, and add up. */
#include "explain/ask_fixture.h"
#include "explain/report/report.h"
#include "explain/report/view.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_report, rp_ask_idle;

static void pauses_have_causes(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 1000},
        {'X', "cpu_op", "a", 1, 1, 0, 100},
        {'X', "user_annotation", "enumerate(DataLoader)#next", 1, 1, 110, 80},
        {'X', "cpu_op", "b", 1, 1, 200, 100},
        {'X', "python_function", "train.py(7): loop", 1, 1, 310, 80},
        {'X', "cpu_op", "c", 1, 1, 400, 100},
        {'X', "overhead", "flush", 1, 2, 500, 95},
        {'X', "cpu_op", "d", 1, 1, 600, 100},
        {'X', "cpu_op", "e", 1, 1, 800, 100},
        {'X', "cpu_op", "f", 1, 1, 1500, 100},
    };
    static const uint8_t causes[] = {RP_PAUSE_DATA, RP_PAUSE_PYTHON, RP_PAUSE_PROFILER,
                                     RP_PAUSE_NOTHING, RP_PAUSE_OUTSIDE};
    rp_interval_vec busy = {0};
    rp_gap_vec each = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_segments all = {1, &(struct rp_interval){0, 1600}};
    struct rp_segments wide = {1, &(struct rp_interval){-50, 1900}};
    struct rp_segments narrow = {1, &(struct rp_interval){350, 1000}};
    struct rp_report_pauses p;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].category, "cpu_op"))
            assert_code(rp_union_add(&busy, rows[i].ts, rows[i].ts + rows[i].dur, NULL), RP_OK);
    assert_code(rp_report_find_pauses(t, &busy, &all, &arena, &p, &each, NULL), RP_OK);
    assert_int_equal(each.n, 5);
    for (i = 0; i < each.n; i++)
        assert_int_equal(each.at[i].cause, RP_LANE_PAUSES + causes[i]);
    assert_true(each.at[4].begin_ns == 900 && each.at[4].end_ns == 1500);
    assert_int_equal(p.ns[RP_PAUSE_DATA], 100);
    assert_string_equal(p.mainly[RP_PAUSE_DATA], "enumerate(DataLoader)#next");
    assert_int_equal(p.ns[RP_PAUSE_PYTHON], 100);
    assert_int_equal(p.ns[RP_PAUSE_PROFILER], 100);
    assert_int_equal(p.ns[RP_PAUSE_NOTHING], 100);
    assert_int_equal(p.ns[RP_PAUSE_OUTSIDE], 600);
    assert_int_equal(p.longest_ns[RP_PAUSE_OUTSIDE], 600);
    assert_null(p.mainly[RP_PAUSE_NOTHING]);
    /* the span may be longer than the operators, or shorter */
    assert_code(rp_report_find_pauses(t, &busy, &wide, &arena, &p, NULL, NULL), RP_OK);
    assert_int_equal(p.ns[RP_PAUSE_OUTSIDE], 600 + 50 + 300);
    assert_code(rp_report_find_pauses(t, &busy, &narrow, &arena, &p, NULL, NULL), RP_OK);
    assert_int_equal(p.ns[RP_PAUSE_DATA], 0);
    assert_int_equal(p.ns[RP_PAUSE_PYTHON], 50);
    assert_int_equal(p.ns[RP_PAUSE_NOTHING], 100 + 100);
    rp_vec_release(&busy);
    rp_vec_release(&each);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

/* Of several threads the first cause counts, and each as long as its span runs. */
static void pauses_follow_all_threads(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "a", 1, 1, 0, 100},
        {'X', "cpu_op", "b", 1, 1, 200, 100},
        {'X', "cpu_op", "c", 1, 1, 400, 100},
        {'X', "cpu_op", "d", 1, 1, 600, 100},
        {'X', "cpu_op", "e", 1, 1, 800, 100},
        {'X', "python_function", "x.py(1): f", 1, 2, 0, 650},
        {'X', "user_annotation", "enumerate(DataLoader)#next", 1, 3, 300, 110},
        {'X', "user_annotation", "range", 1, 3, 500, 90},
        {'X', "python_function", "y.py(1): g", 1, 4, 120, 100},
    };
    rp_interval_vec busy = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_segments all = {1, &(struct rp_interval){0, 900}};
    struct rp_report_pauses p;

    UNUSED_STATE(state);
    for (int64_t i = 0; i < 5; i++)
        assert_code(rp_union_add(&busy, 200 * i, 200 * i + 100, NULL), RP_OK);
    assert_code(rp_report_find_pauses(t, &busy, &all, &arena, &p, NULL, NULL), RP_OK);
    assert_int_equal(p.ns[RP_PAUSE_PYTHON], 200); /* before b and before d */
    assert_string_equal(p.mainly[RP_PAUSE_PYTHON], "x.py(1): f");
    assert_int_equal(p.ns[RP_PAUSE_DATA], 100);
    assert_int_equal(p.ns[RP_PAUSE_SPAN], 0);
    assert_int_equal(p.ns[RP_PAUSE_NOTHING], 100);
    rp_vec_release(&busy);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

/* Ranges are work without the waits and collectives in them; workers that wait are no cause. */
static void ranges_do_not_run_while_they_wait(void **state)
{
    enum { MS = 1000000 };
    static const struct row rows[] = {
        {'X', "user_annotation", "step 0", 1, 1, 0 * MS, 10 * MS},
        {'X', "blocking", "poll", 1, 1, 1 * MS, 6 * MS},
        {'X', "user_annotation", "step 1", 1, 1, 10 * MS, 10 * MS},
        {'X', "collective_comm", "MPI_Allreduce", 1, 1, 12 * MS, 3 * MS},
        {'X', "user_annotation", "step 2", 1, 1, 20 * MS, 10 * MS},
        {'X', "blocking", "pthread_cond_wait", 1, 2, 0 * MS, 30 * MS},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_string_equal(root->parts[0].part, "user code");
    assert_int_equal(root->parts[0].total_ns, 21 * MS);
    assert_string_equal(root->parts[1].part, "exposed communication");
    assert_int_equal(root->parts[1].total_ns, 3 * MS);
    assert_string_equal(root->parts[2].part, "waiting");
    assert_int_equal(root->parts[2].total_ns, 6 * MS);
    assert_int_equal(root->nparts, 3);
    assert_string_equal(root->findings[0].id, "host-wait");
    assert_string_equal(root->findings[0].title,
                        "the program waits for input of another process, a socket or file");
    assert_non_null(strstr(root->findings[0].evidence[0], "mainly poll in 'step *', 6.00 ms"));
    assert_int_equal(root->nwaits, 2);
    assert_string_equal(root->waits[0].threads, "main");
    assert_string_equal(root->waits[0].call, "poll");
    assert_string_equal(root->waits[1].threads, "1 worker");
    assert_int_equal(root->nwait_rows, 1);
    rp_result_free(result);
    result = ask_traces(&rp_ask_idle, &t, 1, NULL, 0);
    assert_string_equal(((const struct rp_idle_root *)result->root)->waits[0].range, "step *");
    rp_result_free(result);
    rp_trace_free(t);
}

/* A rank that sleeps before it meets the others is late because it waits. */
static void late_ranks_wait(void **state)
{
    enum { MS = 1000000 };
    struct rp_trace *t[2];
    struct rp_result *result;
    const struct rp_report_root *root;

    UNUSED_STATE(state);
    for (int r = 0; r < 2; r++) {
        struct row rows[12];

        for (int i = 0; i < 4; i++) {
            static const char *const steps[] = {"step 0", "step 1", "step 2", "step 3"};
            int64_t at = 10 * i * MS, late = r ? 5 * MS : MS;

            rows[3 * i] = (struct row){'X', "user_annotation", steps[i], 1, 1, at, 10 * MS};
            rows[3 * i + 1] = (struct row){'X', "blocking", "nanosleep", 1, 1, at + 1000, late};
            rows[3 * i + 2] = (struct row){'X',
                                           "collective_comm",
                                           "MPI_Barrier",
                                           1,
                                           1,
                                           at + 2000 + late,
                                           8 * MS - late,
                                           .key = "Seq",
                                           .value = i,
                                           .text_key = "Process Group Name",
                                           .text = "MPI_COMM_WORLD"};
        }
        t[r] = TRACE_OF(rows);
    }
    result = ask_traces(&rp_ask_report, t, 2, NULL, 0);
    root = result->root;
    assert_string_equal(root->findings[0].id, "straggler");
    assert_non_null(strstr(root->findings[0].evidence[0], "rank 1 arrived last 4 of 4 times"));
    assert_non_null(strstr(root->findings[0].evidence[0], "waited longer than the others"));
    assert_non_null(strstr(root->findings[0].evidence[0], "nanosleep"));
    assert_int_equal(root->nrank_rows, 0);
    assert_int_equal(root->nhost_rank_rows, 2);
    assert_int_equal(root->host_rank_rows[0].wait_ns, 16 * MS);
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

/* Operators that a data loader runs are input data, also those of functions of tf.data, which run
   on other threads; XLA's executor runs what it waits for. */
static void operators_of_the_input_are_input_data(void **state)
{
    enum { MS = 1000000 };
    static const struct row rows[] = {
        {'X', "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1,
         1, 0, 30 * MS},
        {'X', "cpu_op", "aten::stack", 1, 1, 5 * MS, 20 * MS},
        {'X', "cpu_op", "aten::linear", 1, 1, 30 * MS, 10 * MS},
        {'X', "user_annotation", "InstantiatedCapturedFunction::RunAsync", 1, 2, 39 * MS, 1 * MS,
         .key = "id", .value = 77},
        {'X', "user_annotation", "ExecutorState::Process", 1, 3, 40 * MS, 40 * MS, .key = "id",
         .value = 77},
        {'X', "cpu_op", "PyFunc", 1, 3, 41 * MS, 38 * MS},
        {'X', "user_annotation", "ExecutorState::Process", 1, 3, 80 * MS, 5 * MS, .key = "id",
         .value = 78},
        {'X', "cpu_op", "MatMul", 1, 3, 80 * MS, 5 * MS},
        {'X', "user_annotation", "ThunkExecutor::Execute (wait for completion)", 1, 3, 85 * MS,
         15 * MS},
        {'X', "cpu_op", "fusion", 1, 3, 99 * MS, 1 * MS},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_string_equal(root->parts[0].part, "operators");
    assert_int_equal(root->parts[0].total_ns, 30 * MS);
    assert_string_equal(root->parts[1].part, "no operator: input data");
    assert_int_equal(root->parts[1].total_ns, 65 * MS); /* from the first operator on */
    assert_string_equal(root->findings[0].id, "data-loader");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Launches were recorded and their kernels were not. */
static void lost_device_work_is_said(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "aten::normal_", 1, 1, 0, 8000000},
        {'X', "cpu_op", "aten::mm", 1, 1, 8000000, 30000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 8010000, 6000, 1},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 8020000, 6000, 2},
        {'X', "cuda_runtime", "cudaGetDevice", 1, 1, 8027000, 1000},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;
    bool said = false;

    UNUSED_STATE(state);
    assert_contains(root->run_text, "device work was not recorded");
    for (size_t i = 0; i < root->nnotes; i++)
        said |= strstr(root->notes[i], "not recorded: 2 calls launch or copy") != NULL;
    assert_true(said);
    assert_string_equal(root->hot[0].name, "aten::normal_");
    rp_result_free(result);
    rp_trace_free(t);
}

/* A step that is far longer than the others says what its thread ran longer. */
static void an_atypical_step_says_what_took_longer(void **state)
{
    enum { MS = 1000000 };
    struct row rows[13];
    struct rp_result *result;
    const struct rp_report_root *root;
    struct rp_trace *t;
    int64_t at = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++) {
        static const char *const steps[] = {"ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3",
                                            "ProfilerStep#4"};
        int64_t dur = i == 2 ? 60 * MS : 10 * MS;

        rows[3 * i] = (struct row){'X', "user_annotation", steps[i], 1, 1, at, dur};
        rows[3 * i + 1] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 1000, 5000, i + 1};
        rows[3 * i + 2] = (struct row){'X', "kernel", "k", 0, 7, at + 10000, 9 * MS, i + 1, 7};
        if (i == 2)
            rows[12] =
                (struct row){'X', "user_annotation", "save_state", 1, 1, at + 10 * MS, 49 * MS};
        at += dur;
    }
    t = TRACE_OF(rows);
    result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    root = result->root;
    assert_string_equal(root->findings[0].id, "atypical-step");
    assert_contains(
        root->findings[0].evidence[0],
        "ProfilerStep#3 took 60.0 ms, the median step 10.0 ms: 'save_state' ran 49.0 ms "
        "longer");
    rp_result_free(result);
    rp_trace_free(t);
}

int test_report_host(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pauses_have_causes),
                                       cmocka_unit_test(pauses_follow_all_threads),
                                       cmocka_unit_test(ranges_do_not_run_while_they_wait),
                                       cmocka_unit_test(late_ranks_wait),
                                       cmocka_unit_test(operators_of_the_input_are_input_data),
                                       cmocka_unit_test(lost_device_work_is_said),
                                       cmocka_unit_test(an_atypical_step_says_what_took_longer)};

    return cmocka_run_group_tests_name("report_host", tests, NULL, NULL);
}
