/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and their statistics: exact sums, nearest-rank percentiles, self and inclusive time. */
#include "explain/ask_fixture.h"
#include "explain/report/answer.h"
#include "explain/top/top.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_top, rp_ask_report;

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

/* A hundred lengths, one of each: a percentile is its own number. */
static void each_column_has_its_percentile(void **state)
{
    struct row many[100];
    struct rp_top_root root;

    UNUSED_STATE(state);
    for (int64_t i = 0, at = 0; i < 100; i++) {
        int64_t dur = 1 + i * 37 % 100;

        many[i] = (struct row){'X', "kernel", "k", 0, 7, at, dur, i + 1, 7};
        at += dur;
    }
    ask(many, 100, "kernel", &root);
    assert_int_equal(root.nrows, 1);
    assert_int_equal(root.rows[0].count, 100);
    assert_int_equal(root.rows[0].total_ns, 5050);
    assert_int_equal(root.rows[0].mean_ns, 50);
    assert_int_equal(root.rows[0].min_ns, 1);
    assert_int_equal(root.rows[0].p50_ns, 50);
    assert_int_equal(root.rows[0].p90_ns, 90);
    assert_int_equal(root.rows[0].p99_ns, 99);
    assert_int_equal(root.rows[0].max_ns, 100);
    assert_int_equal(root.rows[0].std_ns, 29); /* the root of 9999 / 12 */
    assert_true(root.rows[0].share == 1);
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

/* Two launchers around everything, then two layers of two modules each. */
static const struct row model[] = {
    {'X', "python_function", "run.py(1): <module>", 1, 1, 0, 1000},
    {'X', "python_function", "run.py(9): main", 1, 1, 10, 900},
    {'X', "python_function", "nn.Module: Layer_0", 1, 1, 20, 100},
    {'X', "python_function", "nn.Module: Linear_0", 1, 1, 30, 20},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 31, 4, 1},
    {'X', "python_function", "nn.Module: Layer_1", 1, 1, 200, 100},
    {'X', "python_function", "nn.Module: Layer_7", 1, 1, 205, 80}, /* inside one of its row */
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 210, 4, 2},
    {'X', "kernel", "a", 0, 7, 400, 30, 1, 7},
    {'X', "kernel", "b", 0, 7, 500, 50, 2, 7},
};

static void numbered_modules_are_one_row(void **state)
{
    struct rp_trace *t = TRACE_OF(model), *const one[] = {t};
    struct rp_result *flat = ASK_TRACES(top, one, 1, {"by", "module"}, {"flat", NULL});
    const struct rp_top_root *each = flat->root;
    struct rp_top_root root;

    UNUSED_STATE(state);
    ask(model, sizeof model / sizeof model[0], "module", &root);
    assert_int_equal(root.nrows, 2);
    assert_string_equal(root.rows[0].name, "nn.Module: Layer_*");
    assert_int_equal(root.rows[0].modules, 3);
    assert_int_equal(root.rows[0].total_ns, 80); /* Layer_7 is counted in Layer_1 */
    assert_int_equal(root.rows[0].self_ns, 50);
    assert_string_equal(root.rows[1].name, "nn.Module: Linear_0");
    assert_int_equal(root.rows[1].modules, RP_ABSENT_I64);
    assert_contains(root.notes[0], "--flat");
    assert_int_equal(each->nrows, 4);
    assert_int_equal(each->nnotes, 0);
    rp_result_free(flat);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

static void launchers_are_no_rows(void **state)
{
    struct rp_trace *t = TRACE_OF(model), *const one[] = {t};
    struct rp_result *flat = ASK_TRACES(top, one, 1, {"by", "python"}, {"flat", NULL});
    const struct rp_top_root *each = flat->root;
    struct rp_top_root root;

    UNUSED_STATE(state);
    ask(model, sizeof model / sizeof model[0], "python", &root);
    assert_int_equal(root.nskipped, 2);
    assert_string_equal(root.skipped[0], "run.py(1): <module>");
    assert_string_equal(root.skipped[1], "run.py(9): main");
    assert_string_equal(root.rows[0].name, "nn.Module: Layer_*");
    assert_contains(root.notes[1], "2 frames around all of it are not listed, 'run.py(1): ");
    assert_int_equal(each->nskipped, 0);
    assert_int_equal(each->nrows, 6);
    rp_result_free(flat);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

/* Pipeline stages: each rank has other layers. */
static void modules_of_ranks_are_counted_once(void **state)
{
#define STAGE(a, b)                                                                               \
    {                                                                                             \
        {'X', "python_function", a, 1, 1, 0, 100},                                                \
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1, 4, 1},                             \
            {'X', "python_function", b, 1, 1, 200, 100},                                          \
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 201, 4, 2},                           \
            {'X', "kernel", "k", 0, 7, 400, 30, 1, 7}, {'X', "kernel", "k", 0, 7, 500, 50, 2, 7}, \
    }
    static const struct row first[] = STAGE("nn.Module: layers.0.attn", "nn.Module: layers.1.attn");
    static const struct row last[] = STAGE("nn.Module: layers.1.attn", "nn.Module: layers.12.attn");
    struct rp_trace *a = TRACE_OF(first), *b = TRACE_OF(last), *const both[] = {a, b};
    struct rp_result *result = ASK_TRACES(top, both, 2, {"by", "module"});
    const struct rp_top_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_string_equal(root->rows[0].name, "nn.Module: layers.*.attn");
    assert_int_equal(root->rows[0].modules, 3);
    assert_int_equal(root->rows[0].count, 4);
    assert_int_equal(root->rows[0].total_ns, 160);
    rp_result_free(result);
    rp_trace_free(a);
    rp_trace_free(b);
}

static void names_of_ranges_are_whole(void **state)
{
    static const struct row server[] = {
        {'X', "user_annotation", "execute_2_context_1(30)_generation_1(1)", 1, 1, 0, 100},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 14, 4, 5},
        {'X', "kernel", "void f<float>(int)", 0, 7, 20, 30, 5, 7},
    };
    struct rp_top_root root;

    UNUSED_STATE(state);
    ask(server, 3, "annotation", &root);
    assert_string_equal(root.rows[0].label, "execute_2_context_1(30)_generation_1(1)");
    ask(server, 3, "kernel", &root);
    assert_string_equal(root.rows[0].label, "f");
    assert_string_equal(root.rows[0].name, "void f<float>(int)");
    rp_arena_release(&arena);
}

/* Of a thread's device time `inside` is launched in a frame "main" and `outside` beside it; another
   thread launches `other` in its only frame, "work". Whether the frame is left out. */
static bool is_skipped(const char *frame, int64_t inside, int64_t outside, int64_t other)
{
    const struct row python[] = {
        {'X', "python_function", "run.py(1): main", 1, 1, 0, 1000},
        {'X', "python_function", "run.py(9): step", 1, 1, 10, 500},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 4, 1},
        {'X', "python_function", "run.py(20): end", 1, 1, 1990, 100},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2000, 4, 2},
        {'X', "python_function", "run.py(30): work", 1, 2, 0, 1000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 20, 4, 3},
        {'X', "python_function", "run.py(40): read", 1, 2, 15, 100},
        {'X', "kernel", "a", 0, 7, 10000, inside, 1, 7},
        {'X', "kernel", "b", 0, 7, 20000, outside, 2, 7},
        {'X', "kernel", "c", 0, 8, 30000, other, 3, 8},
    };
    struct rp_top_root root;
    bool found = false;

    ask(python, sizeof python / sizeof *python, "python", &root);
    for (size_t i = 0; i < root.nskipped; i++)
        found = found || strstr(root.skipped[i], frame);
    rp_arena_release(&arena);
    return found;
}

static void frames_around_everything_are_skipped(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_skipped("main", 995, 5, 1000));
    assert_false(is_skipped("main", 950, 50, 1000));
    /* of a thread with 11 % of all time, and with 9 % */
    assert_true(is_skipped("work", 800, 90, 110));
    assert_false(is_skipped("work", 800, 110, 90));
}

/* A call inside of a call of the same name, of 100 µs: how many calls these are. */
static int64_t calls_within(const char *name, int64_t inner)
{
    const struct row jax[] = {{'X', "cpu_op", name, 1, 1, 0, 100},
                              {'X', "cpu_op", name, 1, 1, 1, inner}};
    struct rp_top_root root;
    int64_t count;

    ask(jax, 2, "op", &root);
    assert_int_equal(root.nrows, 1);
    assert_int_equal(root.rows[0].total_ns, 100);
    assert_int_equal(root.rows[0].self_ns, 100);
    count = root.rows[0].count;
    rp_arena_release(&arena);
    return count;
}

static void the_two_spans_of_a_call_are_one(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(calls_within("PjitFunction(step)", 95), 1);
    assert_int_equal(calls_within("PjitFunction(step)", 80), 2);
    assert_int_equal(calls_within("aten::step", 95), 2);
}

/* What a report calls hot are the own times of operators; work without one goes by its name. */
static void report_says_the_same(void **state)
{
    struct rp_trace *t = TRACE_OF(rows), *const both[] = {t, t};
    struct rp_result *report = ask_traces(&rp_ask_report, both, 2, NULL, 0);
    struct rp_result *top = ASK_TRACES(top, both, 2, {"by", "op"}, {"sort", "self"});
    const struct rp_report_root *hot = report->root;
    const struct rp_top_root *ops = top->root;

    UNUSED_STATE(state);
    assert_int_equal(hot->nhot, 3);
    for (size_t i = 0, at = 0; i < ops->nrows; i++, at++) {
        at += !strcmp(hot->hot[at].name, "add");
        assert_string_equal(hot->hot[at].name, ops->rows[i].name);
        assert_int_equal(hot->hot[at].ns, ops->rows[i].self_ns);
    }
    assert_string_equal(hot->hot[0].name, "aten::mm");
    assert_true(hot->hot[0].share == 0.5 && hot->hot[0].modelled);
    assert_string_equal(hot->hot[1].name, "add"); /* without a launch; 40 of 120 */
    assert_int_equal(hot->hot[1].ns, 40);
    assert_false(hot->hot[1].modelled);
    assert_string_equal(hot->hot[2].name, "aten::linear");
    assert_contains(hot->hot_text,
                    "aten::mm 50.0 %, add 33.3 %, aten::linear 16.7 % of the device");
    rp_result_free(report);
    rp_result_free(top);
    rp_trace_free(t);
}

static void own_time_on_the_host_is_hot(void **state)
{
    static const struct row ops[] = {
        {'X', "cpu_op", "outer", 1, 1, 0, 100},
        {'X', "cpu_op", "inner", 1, 1, 10, 70},
    };
    static const struct row calls[] = {
        {'X', "cuda_runtime", "cuModuleLoad", 1, 1, 0, 30},
        {'X', "cuda_runtime", "cuInit", 1, 1, 40, 10},
    };
    struct rp_trace *t = TRACE_OF(ops);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nhot, 2);
    assert_string_equal(root->hot[0].name, "inner");
    assert_true(root->hot[0].share == 0.7);
    assert_int_equal(root->hot[1].ns, 30);
    rp_result_free(result);
    rp_trace_free(t);
    t = TRACE_OF(calls);
    result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    root = result->root;
    assert_string_equal(root->hot[0].name, "cuModuleLoad");
    assert_true(root->hot[0].share == 0.75);
    rp_result_free(result);
    rp_trace_free(t);
}

int test_top(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_summed_by_name),
        cmocka_unit_test(each_column_has_its_percentile),
        cmocka_unit_test(operators_have_inclusive_and_self_time),
        cmocka_unit_test(phases_and_streams_are_groups),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(without_a_device_host_time_counts),
        cmocka_unit_test(ranks_are_added_up),
        cmocka_unit_test(work_of_xla_names_its_instruction),
        cmocka_unit_test(numbered_modules_are_one_row),
        cmocka_unit_test(launchers_are_no_rows),
        cmocka_unit_test(modules_of_ranks_are_counted_once),
        cmocka_unit_test(names_of_ranges_are_whole),
        cmocka_unit_test(frames_around_everything_are_skipped),
        cmocka_unit_test(the_two_spans_of_a_call_are_one),
        cmocka_unit_test(report_says_the_same),
        cmocka_unit_test(own_time_on_the_host_is_hot),
    };

    return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
