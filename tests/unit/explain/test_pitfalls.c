/* SPDX-License-Identifier: Apache-2.0 */
/* Unequal work under one name, and streams that only look parallel. */
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#define CALLS_MOST 30

/* Calls of one operator that take so long on the device, and one of another operator. */
static const char *unequal_of(const int64_t *ns, int n, int64_t other_ns, struct rp_arena *arena)
{
    struct row rows[3 * CALLS_MOST];
    struct rp_attribution a;
    struct rp_trace *t;
    struct rp_work w;
    const char *text;

    for (int i = 0; i <= n; i++) {
        int64_t at = i * 1000, dur = i < n ? ns[i] : other_ns;

        rows[3 * i] =
            (struct row){'X', "cpu_op", i < n ? "aten::copy_" : "aten::mm", 1, 1, at, 100};
        rows[3 * i + 1] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 10, 5, i + 1};
        rows[3 * i + 2] = (struct row){'X', "kernel", "k", 0, 7, at + 50, dur, i + 1, 7};
    }
    t = trace_of(rows, 3 * (size_t)n + (other_ns ? 3 : 0));
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
    assert_code(rp_pitfall_unequal(&w, &a, arena, &text, NULL), RP_OK);
    rp_attribution_release(&a);
    rp_work_release(&w);
    rp_trace_free(t);
    return text;
}

/* The same of `heavy` calls that take `long_ns`, `usual` that take 10 ns, and `little` of 1 ns. */
static bool is_unequal(int heavy, int64_t long_ns, int usual, int little, int64_t other_ns)
{
    struct rp_arena arena = RP_ARENA_INIT;
    int64_t ns[CALLS_MOST];
    bool found;
    int n = 0;

    while (n < heavy)
        ns[n++] = long_ns;
    while (n < heavy + usual)
        ns[n++] = 10;
    while (n < heavy + usual + little)
        ns[n++] = 1;
    found = unequal_of(ns, n, other_ns, &arena);
    rp_arena_release(&arena);
    return found;
}

static void unequal_work_has_edges(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_unequal(2, 900, 18, 0, 0));
    assert_false(is_unequal(3, 84, 21, 0, 0)); /* all three are needed, of 24 */
    assert_true(is_unequal(2, 85, 10, 8, 0));  /* the median is 10 ns */
    assert_false(is_unequal(2, 75, 10, 8, 0));
    assert_true(is_unequal(1, 900, 9, 0, 0));
    assert_false(is_unequal(1, 900, 8, 0, 0));      /* too few */
    assert_true(is_unequal(2, 900, 18, 0, 17000));  /* 1,980 of 18,980 ns */
    assert_false(is_unequal(2, 900, 18, 0, 19000)); /* of 20,980 */
}

/* Twenty calls of one operator of which `heavy` take 900 ns, the others 10 ns. */
static void check_unequal(int heavy, const char *expected)
{
    struct rp_arena arena = RP_ARENA_INIT;
    int64_t ns[20];
    const char *text;

    for (int i = 0; i < 20; i++)
        ns[i] = i < heavy ? 900 : 10;
    text = unequal_of(ns, 20, 0, &arena);
    if (expected)
        assert_contains(text, expected);
    else
        assert_null(text);
    rp_arena_release(&arena);
}

static void one_name_may_hide_unequal_work(void **state)
{
    UNUSED_STATE(state);
    check_unequal(2,
                  "'aten::copy_' hides unequal work: 2 of 20 calls take half of its device time, "
                  "up to 900 ns each, the median 10 ns");
    check_unequal(10, NULL); /* of two sizes both are usual */
    check_unequal(0, NULL);
}

static void check_streams(int64_t second_at, bool pitfall)
{
    const struct row rows[] = {{'X', "kernel", "a", 0, 7, 0, 100, 1, 7},
                               {'X', "kernel", "b", 0, 8, second_at, 100, 2, 8}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_work w;
    const char *text;

    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(
        rp_pitfall_streams(&w, second_at >= 100 ? 200 : 100 + second_at, &arena, &text, NULL),
        RP_OK);
    assert_int_equal(text != NULL, pitfall);
    rp_work_release(&w);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

static void streams_may_only_look_parallel(void **state)
{
    UNUSED_STATE(state);
    check_streams(95, true);
    check_streams(91, true);
    check_streams(89, false);
    check_streams(150, true);
    check_streams(50, false);
}

#define MS 1000000

/* Five steps, of which the second takes `odd` ms and runs a span of that name. */
/* Five steps, of which `warm` are warm-up. */
static const char *untypical_of(int64_t odd, const char *span, int warm, struct rp_arena *arena)
{
    struct row rows[6];
    struct rp_report_step steps[5] = {0};
    struct rp_trace *t;
    const char *text;
    int64_t at = 0;
    char names[5][32];
    int i;

    for (i = 0; i < 5; i++) {
        int64_t dur = i == 1 ? odd * MS : (20 + i) * MS;

        snprintf(names[i], sizeof names[i], "ProfilerStep#%d", i + 3);
        rows[i] = (struct row){'X', "user_annotation", names[i], 1, 1, at, dur};
        if (i == 1)
            rows[5] = (struct row){'X', "cpu_op", span, 1, 1, at + MS, dur / 2};
        steps[i] = (struct rp_report_step){.number = i + 3,
                                           .name = names[i],
                                           .requests = RP_ABSENT_I64,
                                           .tokens = RP_ABSENT_I64,
                                           .warm_up = i < warm,
                                           .b.window_ns = dur};
        at += dur;
    }
    t = TRACE_OF(rows);
    assert_code(rp_pitfall_steps(t, steps, 5, &(rp_interval_vec){0}, arena, &text, NULL), RP_OK);
    rp_trace_free(t);
    return text;
}

static const char *untypical(int64_t odd, const char *span, struct rp_arena *arena)
{
    return untypical_of(odd, span, 0, arena);
}

static void a_step_may_be_untypical(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    const char *text;

    UNUSED_STATE(state);
    assert_null(untypical(25, "aten::mm", &arena));
    text = untypical(90, "aten::mm", &arena);
    assert_contains(text, "1 of 5 steps is not typical: ProfilerStep#4 takes 90.0 ms");
    assert_contains(text, "(the trace does not show why); look at '--step 6' instead");
    assert_contains(untypical(90, "compile_fx_inner", &arena), "compilation ('compile_fx_inner')");
    assert_contains(untypical(90, "save_checkpoint", &arena), "a checkpoint ('save_checkpoint')");
    assert_contains(untypical(90, "Torch-Compiled Region", &arena), "the trace does not show why");
    assert_contains(untypical(90, "FSDP::pre_forward (_checkpoint_wrapped_module)", &arena),
                    "the trace does not show why");
    /* 90, 22, 23 and 24 ms: a median as everywhere, and of which steps it is */
    assert_contains(untypical_of(90, "aten::mm", 1, &arena),
                    "takes 90.0 ms, the median of these 4 23.5 ms");
    rp_arena_release(&arena);
}

/* n steps of 20 ms and one of `odd_ms`, in which a span of `ns` compiles, or the log says so. */
static const char *odd_step_by(int n, double odd_ms, int64_t ns, bool log, struct rp_arena *arena)
{
    struct rp_interval compile = {21 * MS, 21 * MS + ns};
    const rp_interval_vec compiles = {.at = &compile, .n = log};
    struct row rows[CALLS_MOST + 10];
    struct rp_report_step steps[CALLS_MOST + 8] = {0};
    struct rp_trace *t;
    const char *text;
    int64_t at = 0;

    for (int i = 0; i <= n; i++) {
        int64_t dur = i == 1 ? (int64_t)(odd_ms * MS) : 20 * MS;

        rows[i] = (struct row){
            'X', "user_annotation", rp_arena_textf(arena, "ProfilerStep#%d", i + 3), 1, 1, at, dur};
        steps[i] = (struct rp_report_step){.number = i + 3,
                                           .name = rows[i].name,
                                           .requests = RP_ABSENT_I64,
                                           .tokens = RP_ABSENT_I64,
                                           .b = {.begin_ns = at, .window_ns = dur}};
        at += dur;
    }
    rows[n + 1] = (struct row){'X', "cpu_op", log ? "aten::mm" : "compile_fx", 1, 1, 21 * MS, ns};
    t = trace_of(rows, (size_t)n + 2);
    assert_code(rp_pitfall_steps(t, steps, (size_t)n + 1, &compiles, arena, &text, NULL), RP_OK);
    rp_trace_free(t);
    return text;
}

static const char *odd_step(int n, double odd_ms, int64_t ns, struct rp_arena *arena)
{
    return odd_step_by(n, odd_ms, ns, false, arena);
}

static void untypical_steps_have_edges(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    assert_non_null(odd_step(22, 25, MS, &arena)); /* 5 of 465 ms */
    assert_null(odd_step(27, 25, MS, &arena));     /* of 565 ms */
    assert_null(odd_step(5, 23.9, MS, &arena));
    assert_non_null(odd_step(5, 24.1, MS, &arena));
    assert_contains(odd_step(5, 90, 4400000, &arena), "the trace does not show why");
    assert_contains(odd_step(5, 90, 4600000, &arena), "compilation ('compile_fx')");
    assert_contains(odd_step_by(5, 90, 4400000, true, &arena), "the trace does not show why");
    assert_contains(odd_step_by(5, 90, 4600000, true, &arena),
                    "compilation, as the log of torch.compile says");
    rp_arena_release(&arena);
}

int test_pitfalls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_name_may_hide_unequal_work),
        cmocka_unit_test(unequal_work_has_edges),
        cmocka_unit_test(untypical_steps_have_edges),
        cmocka_unit_test(streams_may_only_look_parallel),
        cmocka_unit_test(a_step_may_be_untypical),
    };

    return cmocka_run_group_tests_name("pitfalls", tests, NULL, NULL);
}
