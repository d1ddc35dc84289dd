/* SPDX-License-Identifier: Apache-2.0 */
/* A rank with several devices: a row for each, gaps and causes of each, the rank's numbers are
   those of the main one. */
#include "trace/trace_fixtures.h"

#include "explain/ask_fixture.h"
#include "explain/report/report.h"

extern const struct rp_question_row rp_ask_report;

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

int test_devices(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_has_a_row_for_each),
        cmocka_unit_test(one_device_is_a_row_too),
    };

    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
