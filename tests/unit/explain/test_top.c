/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and their statistics: exact sums, nearest-rank percentiles, self and inclusive time. */
#include "explain/ask_fixture.h"
#include "explain/top/top.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_top;

static struct rp_arena arena = RP_ARENA_INIT;

/* Two operators, one inside the other; a kernel of each. */
static const struct row rows[] = {
    {'X', "cpu_op", "aten::linear", 1, 1, 10, 50},
    {'X', "cpu_op", "aten::mm", 1, 1, 12, 20, 0, 0, 0, NULL, 0, 0, "Input Dims", "[[2,\n  3]\n]"},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 14, 4, 5},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 50, 4, 6},
    {'X', "kernel", "gemm", 0, 7, 20, 30, 5, 7},
    {'X', "kernel", "add", 0, 7, 60, 10, 6, 7},
    {'X', "kernel", "add", 0, 7, 80, 20, 9, 7},
};

static void ask(const struct row *given, size_t n, const char *by, struct rp_top_root *root)
{
    struct rp_trace *t = trace_of(given, n);

    assert_code(rp_top_of_trace(t, by, 0, &arena, root, NULL), RP_OK);
    rp_trace_free(t);
}

#define ASK(by, root) ask(rows, sizeof rows / sizeof rows[0], (by), (root))

static void kernels_are_summed_by_name(void **state)
{
    struct rp_top_root root;

    UNUSED_STATE(state);
    ASK("kernel", &root);
    assert_int_equal(root.nrows, 2);
    assert_int_equal(root.whole_ns, 60);
    assert_string_equal(root.rows[0].name, "add"); /* as much as gemm: by name */
    assert_int_equal(root.rows[0].count, 2);
    assert_int_equal(root.rows[0].total_ns, 30);
    assert_int_equal(root.rows[0].min_ns, 10);
    assert_int_equal(root.rows[0].p50_ns, 10);
    assert_int_equal(root.rows[0].p90_ns, 20);
    assert_int_equal(root.rows[0].std_ns, 5);
    assert_string_equal(root.rows[1].kind, "compute");
    rp_arena_release(&arena);
}

static void operators_have_inclusive_and_self_time(void **state)
{
    struct rp_top_root root;

    UNUSED_STATE(state);
    ASK("op", &root);
    assert_int_equal(root.nrows, 2);
    assert_string_equal(root.rows[0].name, "aten::linear");
    assert_int_equal(root.rows[0].total_ns, 40);
    assert_int_equal(root.rows[0].self_ns, 10);
    assert_int_equal(root.rows[1].total_ns, 30);
    assert_int_equal(root.rows[1].self_ns, 30);
    assert_int_equal(root.covered_ns, 40);
    ASK("shape", &root);
    assert_string_equal(root.rows[1].name, "aten::mm [[2, 3]]");
    rp_arena_release(&arena);
}

static void phases_and_streams_are_groups(void **state)
{
    struct rp_top_root root;

    UNUSED_STATE(state);
    ASK("phase", &root);
    assert_int_equal(root.nrows, 2);
    assert_string_equal(root.rows[0].name, "forward");
    assert_int_equal(root.covered_ns, 40);
    ASK("stream", &root);
    assert_string_equal(root.rows[0].name, "7");
    assert_int_equal(root.rows[0].count, 3);
    rp_arena_release(&arena);
}

static void recursion_counts_once(void **state)
{
    static const struct row nested[] = {
        {'X', "cpu_op", "f", 1, 1, 0, 100},
        {'X', "cpu_op", "f", 1, 1, 10, 50},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 14, 4, 5},
        {'X', "kernel", "k", 0, 7, 20, 30, 5, 7},
    };
    struct rp_top_root root;

    UNUSED_STATE(state);
    ask(nested, 4, "op", &root);
    assert_int_equal(root.nrows, 1);
    assert_int_equal(root.rows[0].total_ns, 30);
    assert_int_equal(root.rows[0].self_ns, 30);
    rp_arena_release(&arena);
}

static void without_a_device_host_time_counts(void **state)
{
    static const struct row host[] = {
        {'X', "cpu_op", "outer", 1, 1, 0, 100},
        {'X', "cpu_op", "inner", 1, 1, 10, 30},
    };
    struct rp_top_root root;

    UNUSED_STATE(state);
    ask(host, 2, "op", &root);
    assert_string_equal(root.measure, "host time");
    assert_int_equal(root.whole_ns, 100);
    assert_int_equal(root.rows[0].self_ns, 70);
    ask(host, 2, "kernel", &root);
    assert_int_equal(root.nrows, 0);
    assert_contains(root.notes[0], "--by op");
    rp_arena_release(&arena);
}

static void ranks_are_added_up(void **state)
{
    struct rp_trace *t = TRACE_OF(rows), *const both[] = {t, t};
    struct rp_result *result = ASK_TRACES(top, both, 2, {"sort", "max"}, {"limit", "1"});
    const struct rp_top_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_int_equal(root->row_count, 2);
    assert_string_equal(root->rows[0].name, "gemm");
    assert_int_equal(root->rows[0].count, 2);
    assert_int_equal(root->whole_ns, 120);
    rp_result_free(result);
    rp_trace_free(t);
}

/* XLA writes on its work what it is; its launches stand on a thread of their own. */
static void work_of_xla_names_its_instruction(void **state)
{
#define XLA(ts, dur, key, text)                                                       \
    {                                                                                 \
        'X', "kernel", "fusion.kd", 0, 7, (ts), (dur), 0, 7, 0, NULL, 0, 0, key, text \
    }
    static const struct row xla[] = {
        XLA(0, 10, "hlo_op", "dot.3"),
        XLA(20, 5, "hlo_op", "dot.3"),
        XLA(30, 7, "tf_op", "jit(f)/transpose(jvp(g))/mul"),
        XLA(40, 4, "tf_op", "jit(f)/mul"),
        XLA(50, 1, "tf_op", "XlaModule:"),
    };
    struct rp_top_root root;

    UNUSED_STATE(state);
    ask(xla, 5, "op", &root);
    assert_int_equal(root.nrows, 1);
    assert_string_equal(root.rows[0].name, "dot.3");
    assert_int_equal(root.rows[0].count, 2);
    assert_int_equal(root.covered_ns, 15);
    ask(xla, 5, "annotation", &root);
    assert_int_equal(root.nrows, 2);
    ask(xla, 5, "phase", &root);
    assert_int_equal(root.nrows, 3);
    assert_string_equal(root.rows[0].name, "other");
    assert_string_equal(root.rows[1].name, "backward");
    assert_int_equal(root.rows[2].total_ns, 4);
    rp_arena_release(&arena);
}

int test_top(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_summed_by_name),
        cmocka_unit_test(operators_have_inclusive_and_self_time),
        cmocka_unit_test(phases_and_streams_are_groups),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(without_a_device_host_time_counts),
        cmocka_unit_test(ranks_are_added_up),
        cmocka_unit_test(work_of_xla_names_its_instruction),
    };

    return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
