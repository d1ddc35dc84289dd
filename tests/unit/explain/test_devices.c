/* SPDX-License-Identifier: Apache-2.0 */
/* A rank with several devices: a row for each, gaps and causes of each, the rank's numbers are
   those of the main one. */
#include "trace/trace_fixtures.h"

#include "explain/ask_fixture.h"
#include "explain/diff/diff.h"
#include "explain/report/report.h"

extern const struct rp_question_row rp_ask_report, rp_ask_idle;

/* Two devices take turns: their union is never idle, each of them half of the time. Device 1 has
   the longer kernels. */
static const struct row turns[] = {
    {'X', "cuda_runtime", "cudaLaunchKernel", 9, 9, 0, 10, 1},
    {'X', "cuda_runtime", "cudaLaunchKernel", 9, 9, 10, 10, 2},
    {'X', "cuda_runtime", "cudaLaunchKernel", 9, 9, 20, 10, 3},
    {'X', "cuda_runtime", "cudaLaunchKernel", 9, 9, 30, 10, 4},
    {'X', "kernel", "a", 0, 7, 100000, 100000, 1, 7},
    {'X', "kernel", "b", 1, 7, 200000, 150000, 2, 7},
    {'X', "kernel", "a", 0, 7, 350000, 100000, 3, 7},
    {'X', "kernel", "b", 1, 7, 450000, 150000, 4, 7},
};

static void a_report_has_a_row_for_each(void **state)
{
    struct rp_trace *t = TRACE_OF(turns);
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = result->root;
    int64_t sum = 0;

    UNUSED_STATE(state);
    assert_int_equal(root->ndevices, 2);
    assert_int_equal(root->ndevice_rows, 2);
    assert_int_equal(root->devices[0].device, 0);
    assert_int_equal(root->devices[0].window_ns, 350000);
    assert_int_equal(root->devices[0].busy_ns, 200000);
    assert_int_equal(root->devices[0].idle_ns, 150000);
    assert_false(root->devices[0].is_main);
    assert_int_equal(root->devices[1].device, 1);
    assert_int_equal(root->devices[1].busy_ns, 300000);
    assert_true(root->devices[1].is_main);
    assert_int_equal(root->ranks[0].window_ns, 400000);
    assert_int_equal(root->ranks[0].busy_ns, 300000);
    assert_int_equal(root->ranks[0].idle_ns, 100000);
    for (size_t i = 0; i < root->nparts; i++)
        sum += root->parts[i].total_ns;
    assert_true(sum >= root->ranks[0].window_ns);
    assert_contains(root->notes[0], "rank 0 uses 2 devices: its times are those of device 1");
    rp_result_free(result);
    rp_trace_free(t);
}

/* The parts of diff are those of the main device; its operators have the work of both. */
static void diff_compares_the_main_device(void **state)
{
    struct rp_trace *t = TRACE_OF(turns);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace_diff_part part;

    UNUSED_STATE(state);
    assert_code(rp_trace_diff_rank(t, NULL, NULL, false, &arena, &part, NULL), RP_OK);
    assert_code(rp_part_adopt(&rp_trace_diff_part_type, &part, &arena, NULL), RP_OK);
    assert_int_equal(part.time_ns[RP_DIFF_COMPUTE], 300000);
    assert_int_equal(part.median_ns, 300000 + part.time_ns[RP_DIFF_IDLE]);
    assert_true(part.tree.total_ns > 300000);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

static void one_device_is_a_row_too(void **state)
{
    static const struct row rows[] = {{'X', "kernel", "a", 3, 7, 100, 50, 1, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->ndevices, 1);
    assert_int_equal(root->ndevice_rows, 0);
    assert_int_equal(root->devices[0].device, 3);
    assert_int_equal(root->devices[0].busy_ns, 50);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Idle of device 0: one gap of 150,000; of device 1: one of 100,000; of their union: none. */
static void each_device_has_its_gaps(void **state)
{
    struct rp_trace *t = TRACE_OF(turns);
    struct rp_result *result = ASK_TRACES(idle, &t, 1, {"by", "cause"});
    const struct rp_idle_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nranks, 1);
    assert_int_equal(root->ndevices, 2);
    assert_int_equal(root->devices[0].idle_ns, 150000);
    assert_int_equal(root->devices[0].gap_count, 1);
    assert_int_equal(root->devices[0].causes[0].total_ns, 150000);
    assert_int_equal(root->devices[1].idle_ns, 100000);
    assert_int_equal(root->ranks[0].idle_ns, 100000);
    assert_int_equal(root->ngaps, 4); /* of one device while only the other works, too */
    assert_int_equal(root->nstreams, 0);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Stream 7 runs from 0 to 100, stream 8 from 80 to 120 and from 200 to 210, both of device 0. */
static void streams_are_measured(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "a", 0, 7, 0, 60, 1, 7},   {'X', "kernel", "b", 0, 7, 50, 50, 2, 7},
        {'X', "kernel", "c", 0, 8, 80, 40, 3, 8},  {'X', "kernel", "c", 0, 8, 200, 10, 4, 8},
        {'X', "kernel", "d", 1, 7, 0, 1000, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(idle, &t, 1, {"by", "stream"});
    const struct rp_idle_root *root = result->root;
    const struct rp_idle_stream *s = root->streams;

    UNUSED_STATE(state);
    assert_int_equal(root->nstreams, 3);
    assert_string_equal(s[0].stream, "7");
    assert_int_equal(s[0].device, 0);
    assert_int_equal(s[0].count, 2);
    assert_int_equal(s[0].busy_ns, 100);
    assert_int_equal(s[0].alone_ns, 80);
    assert_int_equal(s[0].idle_ns, 110);
    assert_int_equal(s[0].longest_ns, 0);
    assert_string_equal(s[0].mainly, "a");
    assert_string_equal(s[1].stream, "8");
    assert_int_equal(s[1].busy_ns, 50);
    assert_int_equal(s[1].alone_ns, 30);
    assert_int_equal(s[1].longest_ns, 80);
    assert_int_equal(s[2].device, 1);
    assert_int_equal(s[2].alone_ns, 1000);
    rp_result_free(result);
    rp_trace_free(t);
}

int test_devices(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_has_a_row_for_each),
        cmocka_unit_test(diff_compares_the_main_device),
        cmocka_unit_test(one_device_is_a_row_too),
        cmocka_unit_test(each_device_has_its_gaps),
        cmocka_unit_test(streams_are_measured),
    };

    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
