/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of launched graphs find their operators in the captures of the graphs. */
#include "facts/graphs/join.h"

#include "facts/arg_keys.h"
#include "facts/work/attribution.h"
#include "trace/trace_fixtures.h"

#define ROWS 256

struct rows {
    struct row at[ROWS];
    size_t n;
    int64_t now, correlation, rank;
};

static void add(struct rows *r, struct row row)
{
    assert_true(r->n < ROWS);
    r->at[r->n++] = row;
}

/* A capture: `kernels` has a letter for each, their operators are "<op>a", "<op>b", ...; in a
   module, under an annotation with the size of the batch. */
static void add_capture(struct rows *r, const char *annotation, const char *module, const char *op,
                        const char *kernels, bool named)
{
    static char texts[64][2][16];
    static size_t used;
    int64_t begin = r->now, n = (int64_t)strlen(kernels), i;

    add(r, (struct row){'X', "user_annotation", annotation, 1, 1, begin, 60 + 10 * n});
    add(r,
        (struct row){'X', "python_function", "capture.py(1): run", 1, 1, begin + 1, 57 + 10 * n});
    add(r, (struct row){'X', "cuda_runtime", "hipStreamBeginCapture", 1, 1, begin + 2, 3,
                        ++r->correlation});
    add(r, (struct row){'X', "python_function", module, 1, 1, begin + 10, 10 * n + 10});
    for (i = 0; i < n; i++) {
        char *name = texts[used % 64][0], *kernel = texts[used++ % 64][1];

        snprintf(name, 16, "%s%c", op, kernels[i]);
        snprintf(kernel, 16, "%c", kernels[i]);
        add(r, (struct row){'X', "cpu_op", name, 1, 1, begin + 12 + 10 * i, 8,
                            .text_key = "Input Dims", .text = "[[2, 3]]"});
        add(r, (struct row){
                   'X', "cuda_runtime", kernels[i] == '+' ? "hipMemcpyAsync" : "hipLaunchKernel", 1,
                   1, begin + 14 + 10 * i, 2, ++r->correlation,
                   .text_key = named && kernels[i] != '+' ? "kernel" : NULL, .text = kernel});
    }
    add(r, (struct row){'X', "cuda_runtime", "hipStreamEndCapture", 1, 1, begin + 30 + 10 * n, 3,
                        ++r->correlation});
    r->now += 100 + 10 * n;
}

static void add_launch(struct rows *r, const char *annotation, const char *kernels)
{
    static char names[128][2];
    int64_t begin = r->now, n = (int64_t)strlen(kernels), i;

    add(r, (struct row){'X', "user_annotation", annotation, 1, 1, begin, 20});
    add(r,
        (struct row){'X', "cuda_runtime", "hipGraphLaunch", 1, 1, begin + 5, 10, ++r->correlation});
    for (i = 0; i < n; i++) {
        names[(unsigned char)kernels[i]][0] = kernels[i];
        add(r, (struct row){'X', kernels[i] == '+' ? "gpu_memcpy" : "kernel",
                            names[(unsigned char)kernels[i]], 0, 7, begin + 30 + 10 * i, 10,
                            r->correlation, 7});
    }
    r->now += 100 + 10 * n;
}

struct joined {
    struct rp_trace *base, *capture[2];
    struct rp_captures captures[2];
    struct rp_graph_join join;
    struct rp_work work;
    struct rp_attribution owners;
};

static void join_traces(struct joined *j, const struct rows *run, const struct rows *const *capture,
                        size_t n)
{
    const struct rp_captures *list[2];
    size_t i;

    *j = (struct joined){.base = trace_of(run->at, run->n)};
    j->base->rank = run->rank;
    for (i = 0; i < n; i++) {
        if (capture[i]) {
            j->capture[i] = trace_of(capture[i]->at, capture[i]->n);
            j->capture[i]->rank = capture[i]->rank;
        }
        assert_code(rp_captures_init(&j->captures[i], capture[i] ? j->capture[i] : j->base, NULL),
                    RP_OK);
        list[i] = &j->captures[i];
    }
    assert_code(rp_graphs_join(&j->join, j->base, list, n, NULL), RP_OK);
    for (i = 0; i < n; i++) {
        rp_captures_release(&j->captures[i]);
        rp_trace_free(j->capture[i]); /* what was joined does not need it any more */
    }
    assert_code(rp_work_init(&j->work, j->join.trace ? j->join.trace : j->base, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&j->owners, &j->work, NULL), RP_OK);
}

static void release_joined(struct joined *j)
{
    rp_attribution_release(&j->owners);
    rp_work_release(&j->work);
    rp_graph_join_release(&j->join);
    rp_trace_free(j->base);
}

/* The operators of all items, as text. */
static const char *ops_of(const struct joined *j)
{
    static char text[256];
    const struct rp_trace *t = j->work.trace;
    size_t i;

    text[0] = '\0';
    for (i = 0; i < j->work.items.n; i++) {
        rp_event op = j->owners.owners.at[i].op;

        strcat(strcat(text, i ? " " : ""), op == RP_NONE ? "-" : rp_trace_str(t, t->ev.name[op]));
    }
    return text;
}

static const char *text_of(const struct rp_trace *t, rp_event e)
{
    return e == RP_NONE ? "-" : rp_trace_str(t, t->ev.name[e]);
}

static void kernels_get_their_operators(void **state)
{
    struct rows run = {0}, capture = {0};
    const struct rows *captures[] = {&capture};
    const struct rp_trace *t;
    struct rp_arg_key dims;
    struct joined j;
    rp_str shape = 0;
    uint32_t events;
    rp_event e;
    size_t i;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_decode", "nn.Module: Model_0", "op_", "ab+a", true);
    add_launch(&run, "step[DECODE bs=8]", "ab+a");
    join_traces(&j, &run, captures, 1);
    assert_non_null(j.join.trace);
    assert_int_equal(j.join.launches, 1);
    assert_int_equal(j.join.items, 4);
    assert_int_equal(j.join.matched, 4);
    assert_int_equal(j.join.matched_ns, 40);
    assert_int_equal(j.join.ambiguous, 0);
    assert_string_equal(ops_of(&j), "op_a op_b op_+ op_a");
    assert_int_equal(j.owners.coverage.op_ns, 40);
    assert_int_equal(j.owners.coverage.graph_ns, 40);
    assert_int_equal(j.owners.coverage.graph_op_ns, 40);
    t = j.join.trace;
    assert_code(rp_arg_key_init_dims(&dims, t, NULL), RP_OK);
    for (i = 0; i < 4; i++) {
        const struct rp_work_owner *owner = &j.owners.owners.at[i];

        assert_string_equal(text_of(t, owner->module), "nn.Module: Model_0");
        assert_string_equal(text_of(t, owner->python), "nn.Module: Model_0");
        assert_string_equal(text_of(t, owner->annotation), "step[DECODE bs=8]"); /* the launch's */
        assert_true(rp_arg_key_text(&dims, owner->op, &shape));
        assert_string_equal(rp_trace_str(t, shape), "[[2, 3]]");
    }
    rp_arg_key_release(&dims);
    /* one copy of the module, four operators; nothing of the frames around the capture */
    events = j.base->ev.n;
    assert_int_equal(t->ev.n, events + 5);
    for (e = events; e < t->ev.n; e++) {
        assert_true(t->ev.ts_ns[e] == RP_NO_TS);
        assert_true(t->captured[e] == RP_NONE);
        assert_string_not_equal(text_of(t, e), "capture.py(1): run");
    }
    assert_int_equal(t->ev.parent[events], j.work.items.at[0].launch);
    /* what the trace had is where it was */
    for (e = 0; e < events; e++) {
        assert_int_equal(t->ev.name[e], j.base->ev.name[e]);
        assert_int_equal(t->ev.ts_ns[e], j.base->ev.ts_ns[e]);
    }
    release_joined(&j);
}

static void kernels_may_be_missing(void **state)
{
    struct rows run = {0}, capture = {0};
    const struct rows *captures[] = {&capture};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_decode", "nn.Module: Model_0", "op_", "abcabcd", true);
    add_launch(&run, "step[DECODE bs=8]", "abcacd");   /* a 'b' was lost */
    add_launch(&run, "step[DECODE bs=8]", "abcxabcd"); /* nobody captured 'x' */
    join_traces(&j, &run, captures, 1);
    assert_int_equal(j.join.items, 14);
    assert_int_equal(j.join.matched, 13);
    assert_string_equal(ops_of(&j),
                        "op_a op_b op_c op_a op_c op_d op_a op_b op_c - op_a op_b op_c op_d");
    release_joined(&j);
}

static void an_operator_counts_once_a_launch(void **state)
{
    struct rows run = {0}, capture = {0};
    const struct rows *captures[] = {&capture};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_decode", "nn.Module: Model_0", "op_", "ab", true);
    add_launch(&run, "step[DECODE bs=8]", "ab");
    add_launch(&run, "step[DECODE bs=7]", "ab");
    join_traces(&j, &run, captures, 1);
    assert_int_equal(j.join.launches, 2);
    assert_int_equal(j.join.matched, 4);
    assert_int_not_equal(j.owners.owners.at[0].op, j.owners.owners.at[2].op);
    assert_int_not_equal(j.owners.owners.at[0].module, j.owners.owners.at[2].module);
    assert_string_equal(text_of(j.join.trace, j.owners.owners.at[2].annotation),
                        "step[DECODE bs=7]");
    release_joined(&j);
}

/* Equal kernels in captures of several sizes: the smallest batch that holds the launch's. */
static void the_batch_size_decides(void **state)
{
    struct rows run = {0}, small = {0}, large = {0};
    const struct rows *captures[] = {&small, &large};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&small, "capture_4_decode", "nn.Module: Model_0", "small_", "ab", true);
    add_capture(&large, "capture_8_decode", "nn.Module: Model_0", "large_", "ab", true);
    add_launch(&run, "step[DECODE bs=5]", "ab");
    add_launch(&run, "execute_3_context_0(0)_generation_3(3)", "ab");
    add_launch(&run, "decode[bs=3/8 tok=3]", "ab"); /* padded to 8 */
    join_traces(&j, &run, captures, 2);
    assert_string_equal(ops_of(&j), "large_a large_b small_a small_b large_a large_b");
    assert_int_equal(j.join.ambiguous, 0);
    assert_int_equal(j.join.used.n, 2);
    assert_int_equal(j.join.used.at[0], 1);
    assert_int_equal(j.join.used.at[1], 1);
    release_joined(&j);
}

/* Launches of two sizes are two cases, however near these are. */
static void sizes_are_told_apart(void **state)
{
    struct rows run = {0}, captured[2] = {0};
    const struct rows *captures[] = {&captured[0], &captured[1]};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&captured[0], "capture_2_decode", "nn.Module: Model_0", "two_", "a", true);
    add_capture(&captured[1], "capture_3_decode", "nn.Module: Model_0", "three_", "a", true);
    add_launch(&run, "step[DECODE bs=2]", "a");
    add_launch(&run, "step[DECODE bs=3]", "a");
    add_launch(&run, "step[DECODE bs=1]", "a");
    join_traces(&j, &run, captures, 2);
    assert_string_equal(ops_of(&j), "two_a three_a two_a");
    release_joined(&j);
}

/* The capture of the same rank is taken where there is one, else the first. */
static void the_rank_decides(void **state)
{
    static const char *const want[] = {"one_a", "two_a", "one_a"};

    UNUSED_STATE(state);
    for (int rank = 1; rank <= 3; rank++) {
        struct rows run = {.rank = rank}, one = {.rank = 1}, two = {.rank = 2};
        const struct rows *captures[] = {&one, &two};
        struct joined j;

        add_capture(&one, "capture_4_decode", "nn.Module: Model_0", "one_", "a", true);
        add_capture(&two, "capture_4_decode", "nn.Module: Model_0", "two_", "a", true);
        add_launch(&run, "step[DECODE bs=4]", "a");
        join_traces(&j, &run, captures, 2);
        assert_string_equal(ops_of(&j), want[rank - 1]);
        release_joined(&j);
    }
}

static void kernels_decide_before_the_size(void **state)
{
    struct rows run = {0}, small = {0}, large = {0};
    const struct rows *captures[] = {&small, &large};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&small, "capture_4_decode", "nn.Module: Model_0", "small_", "abcd", true);
    add_capture(&large, "capture_8_decode", "nn.Module: Model_0", "large_", "abcx", true);
    add_launch(&run, "forward", "abcd");
    add_launch(&run, "forward", "abc"); /* both fit, and nothing tells which */
    join_traces(&j, &run, captures, 2);
    assert_string_equal(ops_of(&j), "small_a small_b small_c small_d small_a small_b small_c");
    assert_int_equal(j.join.ambiguous, 1);
    release_joined(&j);
}

/* Layers that are captured one by one have equal graphs: in the order of their capture. */
static void layers_take_turns(void **state)
{
    struct rows run = {0}, capture = {0};
    const struct rows *captures[] = {&capture};
    struct joined j;
    size_t i;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_mixed", "nn.Module: Layer_0", "op_", "ab", true);
    add_capture(&capture, "capture_8_mixed", "nn.Module: Layer_1", "op_", "ab", true);
    for (i = 0; i < 4; i++)
        add_launch(&run, "step[DECODE bs=8]", "ab");
    join_traces(&j, &run, captures, 1);
    for (i = 0; i < 8; i++)
        assert_string_equal(text_of(j.join.trace, j.owners.owners.at[i].module),
                            i / 2 % 2 ? "nn.Module: Layer_1" : "nn.Module: Layer_0");
    release_joined(&j);
}

/* CUDA's captures do not name kernels: only as many of the same kinds match. */
static void names_may_be_unknown(void **state)
{
    struct rows run = {0}, capture = {0};
    const struct rows *captures[] = {&capture};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_decode", "nn.Module: Model_0", "op_", "ab+c", false);
    add_launch(&run, "step[DECODE bs=8]", "xy+z");
    add_launch(&run, "step[DECODE bs=8]", "xyz");
    join_traces(&j, &run, captures, 1);
    assert_string_equal(ops_of(&j), "op_a op_b op_+ op_c - - -");
    assert_int_equal(j.join.matched, 4);
    release_joined(&j);
}

/* On several streams kernels run in any order: without names they are not matched by it. */
static void several_streams_need_names(void **state)
{
    struct rows run = {0}, named = {0}, nameless = {0};
    const struct rows *captures[] = {&nameless}, *both[] = {&nameless, &named};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&nameless, "capture_8_decode", "nn.Module: Model_0", "wrong_", "abcd", false);
    add_capture(&named, "capture_8_decode", "nn.Module: Model_0", "op_", "abcd", true);
    add_launch(&run, "step[DECODE bs=8]", "acbd");
    run.at[3].tid = run.at[3].stream = 8; /* 'c' runs beside 'b' */
    join_traces(&j, &run, captures, 1);
    assert_string_equal(ops_of(&j), "- - - -");
    assert_int_equal(j.join.unordered, 1);
    release_joined(&j);
    join_traces(&j, &run, both, 2);
    assert_string_equal(ops_of(&j), "op_a op_c op_b op_d");
    assert_int_equal(j.join.unordered, 0);
    release_joined(&j);
}

static void a_trace_may_have_its_own_captures(void **state)
{
    struct rows run = {0};
    const struct rows *captures[] = {NULL};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&run, "capture_8_decode", "nn.Module: Model_0", "op_", "ab", true);
    add_launch(&run, "step[DECODE bs=8]", "ab");
    add_launch(&run, "step[DECODE bs=8]", "ab");
    join_traces(&j, &run, captures, 1);
    assert_string_equal(ops_of(&j), "op_a op_b op_a op_b");
    assert_int_equal(j.join.trace->str.n, j.base->str.n); /* nothing was appended */
    assert_string_equal(text_of(j.join.trace, j.owners.owners.at[0].annotation),
                        "step[DECODE bs=8]");
    release_joined(&j);
}

static void what_does_not_fit_is_left(void **state)
{
    struct rows run = {0}, capture = {0};
    const struct rows *captures[] = {&capture};
    struct joined j;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_decode", "nn.Module: Model_0", "op_", "abcdef", true);
    add_launch(&run, "step[DECODE bs=8]", "abxyzw");
    join_traces(&j, &run, captures, 1);
    assert_null(j.join.trace);
    assert_int_equal(j.join.launches, 1);
    assert_int_equal(j.join.matched, 0);
    assert_int_equal(j.join.used.at[0], 0);
    release_joined(&j);
}

static void what_a_capture_is(void **state)
{
    struct rows capture = {0}, both = {0};
    struct rp_captures c;
    struct rp_trace *t;

    UNUSED_STATE(state);
    add_capture(&capture, "capture_8_decode", "nn.Module: Model_0", "op_", "ab", true);
    t = trace_of(capture.at, capture.n);
    assert_code(rp_captures_init(&c, t, NULL), RP_OK);
    assert_int_equal(c.graphs.n, 1);
    assert_int_equal(c.graphs.at[0].size, 8);
    assert_int_equal(c.nodes.n, 2);
    assert_true(rp_captures_are_all(&c));
    rp_captures_release(&c);
    rp_trace_free(t);
    add_capture(&both, "capture_8_decode", "nn.Module: Model_0", "op_", "ab", true);
    add_launch(&both, "step[DECODE bs=8]", "ab");
    t = trace_of(both.at, both.n);
    assert_code(rp_captures_init(&c, t, NULL), RP_OK);
    assert_true(c.launches_graphs);
    assert_false(rp_captures_are_all(&c));
    rp_captures_release(&c);
    rp_trace_free(t);
}

static void batch_sizes_in_names(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_batch_size_of_name("capture_32_DECODE"), 32);
    assert_int_equal(rp_batch_size_of_name("capture_9"), 9);
    assert_int_equal(rp_batch_size_of_name("capture_0x"), 0);
    assert_int_equal(rp_batch_size_of_name("capture_:9"), -1);
    assert_int_equal(rp_batch_size_of_name("capture_/9"), -1);
    assert_int_equal(rp_batch_size_of_name("step[DECODE bs=7]"), 7);
    assert_int_equal(rp_batch_size_of_name("step[DECODE bs=7 g_sq=128]"), 7);
    assert_int_equal(rp_batch_size_of_name("decode[bs=117/128 tok=117 d=117]"), 128);
    assert_int_equal(rp_batch_size_of_name("execute_64_context_0(0)_generation_64(64)"), 64);
    assert_int_equal(rp_batch_size_of_name("execute_context_0(0)_generation_64(64)"), -1);
    assert_int_equal(rp_batch_size_of_name("capture_x"), -1);
    assert_int_equal(rp_batch_size_of_name("step[DECODE tok=7]"), -1);
    assert_int_equal(rp_batch_size_of_name("decode[tok=7]"), -1);
    assert_int_equal(rp_batch_size_of_name("my bs=3"), -1);
    assert_int_equal(rp_batch_size_of_name("step[DECODE bs=99999999999999999999]"), -1);
}

int test_graph_join(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_get_their_operators),
        cmocka_unit_test(kernels_may_be_missing),
        cmocka_unit_test(an_operator_counts_once_a_launch),
        cmocka_unit_test(the_batch_size_decides),
        cmocka_unit_test(sizes_are_told_apart),
        cmocka_unit_test(the_rank_decides),
        cmocka_unit_test(kernels_decide_before_the_size),
        cmocka_unit_test(layers_take_turns),
        cmocka_unit_test(names_may_be_unknown),
        cmocka_unit_test(several_streams_need_names),
        cmocka_unit_test(a_trace_may_have_its_own_captures),
        cmocka_unit_test(what_does_not_fit_is_left),
        cmocka_unit_test(what_a_capture_is),
        cmocka_unit_test(batch_sizes_in_names),
    };

    return cmocka_run_group_tests_name("graph join", tests, NULL, NULL);
}
