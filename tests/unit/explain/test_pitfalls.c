/* SPDX-License-Identifier: Apache-2.0 */
/* Unequal work under one name, and streams that only look parallel. */
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

/* Twenty calls of one operator of which `heavy` take 900 ns, the others 10 ns. */
static void check_unequal(int heavy, const char *expected)
{
    struct row rows[60];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_attribution a;
    struct rp_trace *t;
    struct rp_work w;
    const char *text;
    int i;

    for (i = 0; i < 20; i++) {
        int64_t at = i * 1000;

        rows[3 * i] = (struct row){'X', "cpu_op", "aten::copy_", 1, 1, at, 100};
        rows[3 * i + 1] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 10, 5, i + 1};
        rows[3 * i + 2] =
            (struct row){'X', "kernel", "copy", 0, 7, at + 50, i < heavy ? 900 : 10, i + 1, 7};
    }
    t = TRACE_OF(rows);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
    assert_code(rp_pitfall_unequal(&w, &a, &arena, &text, NULL), RP_OK);
    if (expected)
        assert_contains(text, expected);
    else
        assert_null(text);
    rp_attribution_release(&a);
    rp_work_release(&w);
    rp_trace_free(t);
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
    assert_code(rp_pitfall_steps(t, steps, 5, arena, &text, NULL), RP_OK);
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

int test_pitfalls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_name_may_hide_unequal_work),
        cmocka_unit_test(streams_may_only_look_parallel),
        cmocka_unit_test(a_step_may_be_untypical),
    };

    return cmocka_run_group_tests_name("pitfalls", tests, NULL, NULL);
}
