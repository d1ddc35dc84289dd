/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of modules, operators and scopes: what adds up, what folds, what is left out; and the
   surroundings of one name. */
#include "explain/ask_fixture.h"
#include "explain/top/spans.h"
#include "explain/top/top.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_top;

#define SPAN(cat, name, ts, dur)      \
    {                                 \
        'X', cat, name, 1, 1, ts, dur \
    }
#define MODULE(name, ts, dur) SPAN("python_function", "nn.Module: " name, ts, dur)
#define OP(name, ts, dur, dims)                                                     \
    {                                                                               \
        'X', "cpu_op", name, 1, 1, ts, dur, 0, 0, 0, NULL, 0, 0, "Input Dims", dims \
    }
/* A launch, and its kernel long after. */
#define WORK(n, ts, dur)                                           \
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, (ts), 1, (n)}, \
    {                                                              \
        'X', "kernel", "k", 0, 7, 10000 + 100 * (n), (dur), (n), 7 \
    }
/* A block of 100 ns: two products of different shapes and an addition of its own. */
#define BLOCK(name, a, b, ts, n, dur)                                                            \
    MODULE(name, ts, 90), MODULE(a, (ts) + 1, 20), OP("aten::linear", (ts) + 2, 10, "[[8, 4]]"), \
        WORK(n, (ts) + 3, dur), MODULE(b, (ts) + 30, 20),                                        \
        OP("aten::linear", (ts) + 31, 10, "[[8, 16]]"), WORK((n) + 1, (ts) + 32, dur),           \
        OP("aten::add", (ts) + 60, 10, "[[8]]"), WORK((n) + 2, (ts) + 61, 2)

/* Three blocks alike and one that takes longer, in a model that a wrapper calls. */
static const struct row model[] = {
    MODULE("Wrapper_0", 0, 1000),
    MODULE("Model_0", 1, 990),
    BLOCK("Block_0", "Linear_0", "Linear_1", 100, 1, 20),
    BLOCK("Block_1", "Linear_2", "Linear_3", 200, 11, 21),
    BLOCK("Block_2", "Linear_4", "Linear_5", 300, 21, 19),
    BLOCK("Block_3", "Linear_6", "Linear_7", 400, 31, 40),
    OP("aten::loss", 2000, 20, "[[8]]"),
    WORK(50, 2001, 7),
    WORK(51, 3000, 5), /* outside of everything */
};

static const struct rp_tree_row *row_named(const struct rp_tree_root *root, const char *name)
{
    size_t i;

    for (i = 0; i < root->nrows; i++)
        if (!strcmp(root->rows[i].name, name))
            return &root->rows[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

/* Every row is its own work and its children. */
static void assert_adds_up(const struct rp_tree_root *root)
{
    int64_t top = 0;
    size_t i, k;

    for (i = 0; i < root->nrows; i++) {
        int64_t inside = 0;

        if (root->rows[i].parent == RP_ABSENT_I64)
            top += root->rows[i].total_ns;
        for (k = 0; k < root->nrows; k++)
            if (root->rows[k].parent == root->rows[i].id)
                inside += root->rows[k].total_ns;
        if (inside)
            assert_int_equal(root->rows[i].self_ns + inside, root->rows[i].total_ns);
    }
    assert_int_equal(top, root->whole_ns);
}

static void modules_are_a_tree(void **state)
{
    struct rp_trace *t = TRACE_OF(model), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"tree", NULL}, {"limit", "0"});
    const struct rp_tree_root *root = result->root;
    const struct rp_tree_row *row;

    UNUSED_STATE(state);
    assert_string_equal(root->of, "modules");
    assert_adds_up(root);
    row = row_named(root, "Wrapper_0 > Model_0"); /* the wrapper does nothing itself */
    assert_int_equal(row->total_ns, 42 + 44 + 40 + 82);
    row = row_named(root, "Block_0..2");
    assert_int_equal(row->members, 3);
    assert_int_equal(row->calls, 3);
    assert_int_equal(row->total_ns, 126);
    assert_int_equal(row->self_ns, 0);
    assert_string_equal(row->label, "  Block_0..2 ×3");
    row = row_named(root, "Linear_0,2..4"); /* not with Linear_1: other shapes */
    assert_int_equal(row->total_ns, 60);
    assert_int_equal(row->self_ns, 60); /* its only operator is not a row of its own */
    assert_int_equal(row_named(root, "Block_3")->total_ns, 82); /* takes twice as long */
    assert_int_equal(row_named(root, "aten::loss")->total_ns, 7);
    assert_int_equal(row_named(root, "(outside of modules)")->total_ns, 5);
    rp_result_free(result);
    rp_trace_free(t);
}

static void what_is_left_out_is_a_row(void **state)
{
    struct rp_trace *t = TRACE_OF(model), *const both[] = {t, t};
    struct rp_result *result = ASK_TRACES(top, both, 2, {"tree", NULL}, {"limit", "3"});
    const struct rp_tree_root *root = result->root;
    const struct rp_tree_row *row;

    UNUSED_STATE(state);
    assert_adds_up(root);
    assert_int_equal(root->whole_ns, 2 * 220);
    assert_int_equal(row_named(root, "Block_0..2")->total_ns, 252);
    row = row_named(root, "(1 more)"); /* aten::loss */
    assert_int_equal(row->total_ns, 14);
    assert_string_equal(row->kind, "rest");
    assert_contains(root->notes[0], "--limit 0");
    rp_result_free(result);
    result = ASK_TRACES(top, both, 2, {"tree", NULL}, {"depth", "1"}, {"limit", "0"});
    root = result->root;
    assert_int_equal(root->nrows, 3);
    assert_adds_up(root);
    rp_result_free(result);
    rp_trace_free(t);
}

/* A backward operator on a thread of its own, with the number of its forward operator. */
static void backward_work_belongs_to_its_module(void **state)
{
    static const struct row rows[] = {
        MODULE("Net_0", 0, 100),
        MODULE("Linear_0", 10, 50),
        {'X', "cpu_op", "aten::linear", 1, 1, 20, 20, 0, 0, 0, "Sequence number", 5},
        WORK(1, 21, 10),
        {'X', "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 1, 2, 200, 50, 0, 0,
         0, "Sequence number", 5, 0, NULL, NULL, "Fwd thread id", 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 210, 1, 2},
        {'X', "kernel", "k", 0, 7, 20000, 25, 2, 7},
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"tree", NULL});
    const struct rp_tree_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_string_equal(root->rows[0].name, "Net_0 > Linear_0");
    assert_int_equal(root->rows[0].total_ns, 35);
    assert_int_equal(root->rows[0].backward_ns, 25);
    rp_result_free(result);
    result = ASK_TRACES(top, one, 1, {"tree", NULL}, {"by", "op"}); /* as it was called */
    root = result->root;
    assert_int_equal(root->nrows, 2);
    assert_string_equal(root->rows[0].name, "AddmmBackward0");
    assert_int_equal(root->rows[0].backward_ns, 25);
    rp_result_free(result);
    rp_trace_free(t);
}

#define XLA(ts, dur, path)                                                                       \
    {                                                                                            \
        'X', "kernel", "fusion", 0, 7, (ts), (dur), 0, 7, 0, NULL, 0, 0, "tf_op", path, NULL, 0, \
            "hlo_module", "jit_f"                                                                \
    }

static void scopes_of_jax_are_a_tree(void **state)
{
    static const struct row rows[] = {
        XLA(0, 10, "jit(f)/jvp(GPT)/Block_0/dot_general"),
        XLA(20, 10, "jit(f)/jvp(GPT)/Block_1/dot_general"),
        XLA(40, 20, "jit(f)/transpose(jvp(GPT))/Block_0/dot_general"),
        XLA(70, 20, "jit(f)/transpose(jvp(GPT))/Block_1/dot_general"),
        XLA(100, 5, "jit(f)/add:"),
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"tree", NULL});
    const struct rp_tree_root *root = result->root;
    const struct rp_tree_row *row;

    UNUSED_STATE(state);
    assert_adds_up(root);
    row = row_named(root, "GPT > Block_0,1 > dot_general");
    assert_int_equal(row->total_ns, 60);
    assert_int_equal(row->backward_ns, 40);
    assert_int_equal(row->members, 2);
    assert_int_equal(row_named(root, "add")->total_ns, 5);
    assert_int_equal(row_named(root, "jit(f)")->total_ns, 65);
    rp_result_free(result);
    rp_trace_free(t);
}

static void without_a_device_spans_are_the_tree(void **state)
{
    static const struct row rows[] = {OP("outer", 0, 100, "[]"), OP("inner", 10, 30, "[]"),
                                      OP("inner", 50, 30, "[]")};
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"tree", NULL});
    const struct rp_tree_root *root = result->root;

    UNUSED_STATE(state);
    assert_string_equal(root->measure, "host time");
    assert_int_equal(root->nrows, 2);
    assert_int_equal(root->rows[0].self_ns, 40);
    assert_int_equal(root->rows[1].total_ns, 60);
    assert_int_equal(root->rows[1].parent, 0);
    rp_result_free(result);
    rp_trace_free(t);
}

static void components_of_scopes_lose_their_derivations(void **state)
{
    const char *at = "jit(step)/transpose(jvp(A/B))/jvp()/while/body/mul:", *begin;
    static const char *const want[] = {"jit(step)", "A/B", "while", "body", "mul"};
    bool backward = false;
    size_t len, i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_true(rp_scope_next(&at, &begin, &len, &backward));
        assert_int_equal(len, strlen(want[i]));
        assert_memory_equal(begin, want[i], len);
    }
    assert_false(rp_scope_next(&at, &begin, &len, &backward));
    assert_true(backward);
}

/* ------------------------------------------------------------------ focus */

static const struct rp_focus_row *related(const struct rp_focus_root *root, const char *relation,
                                          const char *name)
{
    size_t i;

    for (i = 0; i < root->nrows; i++)
        if (!strcmp(root->rows[i].relation, relation) && !strcmp(root->rows[i].name, name))
            return &root->rows[i];
    fail_msg("no %s '%s'", relation, name);
    return NULL;
}

static void focus_has_callers_and_callees(void **state)
{
    struct rp_trace *t = TRACE_OF(model), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"focus", "aten::linear"});
    const struct rp_focus_root *root = result->root;

    UNUSED_STATE(state);
    assert_true(root->exact);
    assert_int_equal(root->calls, 8);
    assert_int_equal(root->total_ns, 2 * (20 + 21 + 19 + 40));
    assert_int_equal(related(root, "caller", "Linear_*")->calls, 8);
    assert_int_equal(related(root, "callee", "k")->total_ns, root->total_ns);
    assert_int_equal(related(root, "shape", "[[8, 16]]")->calls, 4);
    assert_contains(root->notes[0], "with_stack=True");
    rp_result_free(result);
    result = ASK_TRACES(top, one, 1, {"focus", "Block_3"});
    root = result->root;
    assert_int_equal(related(root, "callee", "Linear_*")->total_ns, 80);
    assert_int_equal(related(root, "callee", "aten::add")->total_ns, 2);
    assert_int_equal(related(root, "caller", "Model_0")->total_ns, 82);
    assert_int_equal(related(root, "shape", "aten::add [[8]]")->calls, 1);
    rp_result_free(result);
    result = ASK_TRACES(top, one, 1, {"focus", "block"}); /* a part of names */
    root = result->root;
    assert_false(root->exact);
    assert_int_equal(root->nmatches, 4);
    rp_result_free(result);
    result = ASK_TRACES(top, one, 1, {"focus", "nothing"});
    assert_int_equal(result->answer, RP_ANSWER_NO);
    rp_result_free(result);
    rp_trace_free(t);
}

/* ------------------------------------------------------------------ categories */

static void categories_are_groups(void **state)
{
    static const struct row rows[] = {
        SPAN("cpu_op", "aten::mm", 0, 10),
        WORK(1, 1, 30),
        SPAN("cpu_op", "aten::add", 20, 10),
        WORK(2, 21, 5),
        SPAN("user_annotation", "Optimizer.step#SGD.step", 100, 100),
        SPAN("cpu_op", "aten::add_", 110, 10), /* one at a time, but the optimizer */
        WORK(3, 111, 6),
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"by", "category"});
    const struct rp_top_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 3);
    assert_string_equal(root->rows[0].name, "matmul");
    assert_int_equal(root->rows[0].total_ns, 30);
    assert_string_equal(root->rows[1].name, "optimizer");
    assert_string_equal(root->rows[2].name, "elementwise");
    assert_int_equal(root->covered_ns, 41);
    rp_result_free(result);
    rp_trace_free(t);
}

/* How many of three blocks are alike, of 100, 100 and 2 + 2 * dur ns. */
static int64_t alike_blocks(int64_t dur)
{
    const struct row blocks[] = {
        MODULE("Model_0", 1, 990),
        BLOCK("Block_0", "Linear_0", "Linear_1", 100, 1, 49),
        BLOCK("Block_1", "Linear_2", "Linear_3", 200, 11, 49),
        BLOCK("Block_2", "Linear_4", "Linear_5", 300, 21, dur),
    };
    struct rp_trace *t = TRACE_OF(blocks), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(top, one, 1, {"tree", NULL}, {"limit", "0"});
    const struct rp_tree_root *root = result->root;
    int64_t members = 0;

    for (size_t i = 0; i < root->nrows; i++)
        if (strstr(root->rows[i].name, "Block_0"))
            members = root->rows[i].members;
    rp_result_free(result);
    rp_trace_free(t);
    return members;
}

static void alike_siblings_have_an_edge(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(alike_blocks(58), 3); /* 118 ns */
    assert_int_equal(alike_blocks(60), 2); /* 122 ns */
}

int test_top_tree(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_a_tree),
        cmocka_unit_test(what_is_left_out_is_a_row),
        cmocka_unit_test(backward_work_belongs_to_its_module),
        cmocka_unit_test(scopes_of_jax_are_a_tree),
        cmocka_unit_test(without_a_device_spans_are_the_tree),
        cmocka_unit_test(components_of_scopes_lose_their_derivations),
        cmocka_unit_test(focus_has_callers_and_callees),
        cmocka_unit_test(categories_are_groups),
        cmocka_unit_test(alike_siblings_have_an_edge),
    };

    return cmocka_run_group_tests_name("top_tree", tests, NULL, NULL);
}
