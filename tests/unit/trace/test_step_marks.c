/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that servers mark: what their names say, and how marks become steps. */
#include "trace/step_marks.h"
#include "trace_fixtures.h"

static void assert_says(const struct rp_step_table *table, const char *name, uint8_t phase,
                        int64_t number, int64_t requests, int64_t tokens)
{
    struct rp_step_mark says;

    if (!rp_step_table_match(table, name, &says))
        fail_msg("'%s' is not matched", name);
    assert_int_equal(says.phase, phase);
    assert_int_equal(says.number, number);
    assert_int_equal(says.requests, requests);
    assert_int_equal(says.tokens, tokens);
}

#define NO RP_NO_COUNT

static void names_of_servers(void **state)
{
    static const struct {
        const char *name;
        uint8_t phase;
        int64_t number, requests, tokens;
    } names[] = {
        {"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
         RP_PHASE_DECODE, NO, 32, 32},
        {"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489"
         "sqsq37sqsk34489)",
         RP_PHASE_MIXED, NO, 46, 8192},
        {"execute_32_context_1(30)_generation_2(2)", RP_PHASE_MIXED, NO, 3, 32},
        {"execute_32_context_1(32)_generation_0(0)", RP_PHASE_PREFILL, NO, 1, 32},
        {"execute_context_3(512)_generation_2(50)", RP_PHASE_MIXED, NO, 5, 562},
        {"execute_context_0(0)_generation_0(0)", RP_PHASE_NONE, NO, 0, 0},
        {"execute_new_2_cached_5", RP_PHASE_NONE, NO, 7, NO},
        {"step[DECODE bs=32]", RP_PHASE_DECODE, NO, 32, 32},
        {"step[decode bs=8 g_sqsq=64 g_sqsk=100032 g_sk=100032]", RP_PHASE_DECODE, NO, 8, 8},
        {"step[EXTEND bs=15 toks=15360]", RP_PHASE_PREFILL, NO, 15, 15360},
        {"step[EXTEND bs=1 toks=1025 c_sqsq=1050625 c_sqsk=1050625 c_sk=1025]", RP_PHASE_PREFILL,
         NO, 1, 1025},
        {"step[EXTEND bs=3]", RP_PHASE_PREFILL, NO, 3, NO},
        {"step[prefill bs=2 toks=99]", RP_PHASE_PREFILL, NO, 2, 99},
        {"step[MIXED bs=66 c=2 g=64 c_sq=2048 c_sk=2048 c_sqsq=2 c_sqsk=2 g_sq=64 g_sk=6]",
         RP_PHASE_MIXED, NO, 66, 2112},
        {"step[mixed bs=6 ext=200 dec=4]", RP_PHASE_MIXED, NO, 6, 204},
        {"step[MIXED bs=2]", RP_PHASE_MIXED, NO, 2, NO},
        {"step[TARGET_VERIFY bs=4]", RP_PHASE_DECODE, NO, 4, NO},
        {"step[DRAFT_EXTEND bs=4]", RP_PHASE_NONE, NO, 4, NO},
        {"step[IDLE]", RP_PHASE_NONE, NO, NO, NO},
        {"step[idle bs=0]", RP_PHASE_NONE, NO, NO, NO},
        {"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs", RP_PHASE_DECODE,
         60000, 32, NO},
        {"[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 0 gen reqs", RP_PHASE_PREFILL, 7,
         2, 900},
        {"[Executor] _forward_step 12: 2 ctx reqs, 3 gen reqs", RP_PHASE_MIXED, 12, 5, NO},
        {"[Executor] _forward_step: 2 ctx reqs, 0 gen reqs", RP_PHASE_PREFILL, NO, 2, NO},
        {"prefill[bs=1 tok=1024 ctx=1024 sqsq=1048576]", RP_PHASE_PREFILL, NO, 1, 1024},
        {"decode[bs=64 tok=64 d=64]", RP_PHASE_DECODE, NO, 64, 64},
        {"denoise_step_07", RP_PHASE_NONE, 7, NO, NO},
        {"execute_diffusion_1_256x256", RP_PHASE_NONE, NO, 1, NO},
    };
    static const char *const others[] = {
        "",
        "step",
        "step 1",
        "step[",
        "step[DECODE bs=]",
        "step[DECODE bs=32",
        "Optimizer.step#SGD.step",
        "ProfilerStep#3",
        "execute_context_menu",
        "execute_32_context_x(1)_generation_2(2)",
        "execute_99999999999999999999_context_1(1)_generation_1(1)",
        "xexecute_new_2_cached_5",
        "execute_new_2_cached_5x",
    };
    struct rp_step_mark says;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_says(NULL, names[i].name, names[i].phase, names[i].number, names[i].requests,
                    names[i].tokens);
    for (i = 0; i < sizeof others / sizeof others[0]; i++)
        if (rp_step_table_match(NULL, others[i], &says))
            fail_msg("'%s' is matched", others[i]);
}

static void users_add_patterns(void **state)
{
    static const char text[] = "# ours\n"
                               "\n"
                               "decode  tick {step}: {requests} x {tokens} tokens*\r\n"
                               "-\ttwo {prefill_requests,prefill_tokens} + {decode_requests}\n"
                               "  outer  request \\{{}\\}\n"
                               "mixed step[DECODE bs={requests}*]";
    struct rp_step_table table = {0};
    struct rp_step_mark says;

    UNUSED_STATE(state);
    assert_code(rp_step_table_parse(&table, "steps.txt", text, NULL), RP_OK);
    assert_int_equal(table.patterns.n, 4);
    assert_says(&table, "tick 3: 4 x 16 tokens (fast)", RP_PHASE_DECODE, 3, 4, 16);
    assert_says(&table, "two 5 + 0", RP_PHASE_PREFILL, NO, 5, 5);
    assert_says(&table, "two 5 + 1", RP_PHASE_MIXED, NO, 6, NO);
    assert_says(&table, "step[DECODE bs=32]", RP_PHASE_MIXED, NO, 32, NO); /* before ours */
    assert_says(&table, "step[EXTEND bs=32]", RP_PHASE_PREFILL, NO, 32, NO);
    assert_true(rp_step_table_match(&table, "request {7}", &says));
    assert_true(says.outer);
    rp_step_table_release(&table);
}

static void wrong_patterns_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"# fine\nfaster x{step}", "'p', line 2: expected prefill, decode"},
        {"decode", "line 1: expected"},
        {"decode a {word}", "'a {word}' has a field that is none of"},
        {"decode a {step", "a '{' without '}'"},
        {"decode a }", "has a '}' without '{'"},
        {"- **", "matches every name"},
        {"- {}", "matches every name"},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rp_step_table table = {0};
        struct rp_err err = RP_ERR_INIT;

        assert_code(rp_step_table_parse(&table, "p", wrong[i].text, &err), RP_USAGE);
        assert_contains(err.text, wrong[i].says);
        rp_step_table_release(&table);
    }
}

/* One mark is enough; a mark inside another adds its numbers; the device's copies do not count, nor
   do functions that have the name of a mark. */
static void marks_become_steps(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "execute_new_1_cached_2", 1, 1, 100, 50},
        {'X', "user_annotation", "step[EXTEND bs=9 toks=77]", 1, 1, 110, 30},
        {'X', "user_annotation", "step[DECODE bs=4]", 1, 1, 200, 50},
        {'X', "gpu_user_annotation", "step[DECODE bs=4]", 0, 7, 210, 60},
        {'X', "gpu_user_annotation", "step[DECODE bs=4]", 0, 7, 290, 60},
        {'X', "gpu_user_annotation", "step[DECODE bs=4]", 0, 7, 390, 60},
        {'X', "user_annotation", "step[DECODE bs=2]", 1, 2, 205, 10}, /* a second thread */
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 220, 4, 5},
        {'X', "kernel", "gemm", 0, 7, 230, 300, 5, 7},
        {'X', "python_function", "step[DECODE bs=4]", 1, 3, 100, 10},
        {'X', "python_function", "step[DECODE bs=4]", 1, 3, 200, 10},
        {'X', "python_function", "step[DECODE bs=4]", 1, 3, 300, 10},
        {'X', "python_function", "step[DECODE bs=4]", 1, 3, 400, 10},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_string_equal(rp_trace_str(t, t->steps[0].name), "execute_new_1_cached_2");
    assert_int_equal(t->steps[0].source, RP_STEP_MARKS);
    assert_int_equal(t->steps[0].number, 0);
    assert_int_equal(t->steps[0].phase, RP_PHASE_PREFILL);
    assert_int_equal(t->steps[0].requests, 3);
    assert_int_equal(t->steps[0].tokens, 77);
    assert_int_equal(t->steps[1].phase, RP_PHASE_DECODE);
    assert_int_equal(t->steps[1].number, 1);
    assert_int_equal(t->steps[1].work_end_ns, 530);
    rp_trace_free(t);
    t = trace_of(&rows[2], 1);
    assert_int_equal(t->nsteps, 1);
    rp_trace_free(t);
}

/* An outer range is a step where nothing else is marked in it. */
static void outer_ranges(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "execute_diffusion_2_64x64", 1, 1, 100, 50},
        {'X', "user_annotation", "execute_diffusion_1_64x64", 1, 1, 200, 50},
        {'X', "user_annotation", "denoise_step_0", 1, 1, 210, 10},
        {'X', "user_annotation", "denoise_step_1", 1, 1, 220, 10},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 3);
    assert_int_equal(t->steps[0].requests, 2);
    assert_string_equal(rp_trace_str(t, t->steps[1].name), "denoise_step_0");
    assert_int_equal(t->steps[2].number, 1);
    rp_trace_free(t);
}

/* One mark in each of the profiler's steps describes it; several are the steps. */
static void marks_and_the_profiler(void **state)
{
    static const struct row one[] = {
        {'X', "user_annotation", "ProfilerStep#8", 1, 1, 100, 90},
        {'X', "user_annotation", "step[DECODE bs=4]", 1, 1, 110, 50},
        {'X', "user_annotation", "ProfilerStep#9", 1, 1, 200, 90},
    };
    static const struct row several[] = {
        {'X', "user_annotation", "ProfilerStep#8", 1, 1, 100, 90},
        {'X', "user_annotation", "step[DECODE bs=4]", 1, 1, 110, 20},
        {'X', "user_annotation", "step[DECODE bs=5]", 1, 1, 140, 20},
    };
    struct rp_trace *t = TRACE_OF(one);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 8);
    assert_int_equal(t->steps[0].phase, RP_PHASE_DECODE);
    assert_int_equal(t->steps[0].requests, 4);
    assert_int_equal(t->steps[1].phase, RP_PHASE_NONE);
    rp_trace_free(t);
    t = TRACE_OF(several);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[1].requests, 5);
    rp_trace_free(t);
}

/* Where only the device has them, they have the times of the device. */
static void marks_of_the_device(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1, 4, 5},
        {'X', "gpu_user_annotation", "step[DECODE bs=4]", 0, 7, 210, 60},
        {'X', "kernel", "gemm", 0, 7, 215, 30, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 1);
    assert_int_equal(t->steps[0].flags, RP_STEP_ON_DEVICE);
    assert_int_equal(t->steps[0].work_end_ns, 245);
    rp_trace_free(t);
}

/* The user's patterns apply to a finished trace, and again. */
static void a_finished_trace_is_marked(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "iteration 5", 1, 1, 0, 90},
        {'X', "user_annotation", "tick 1 of 7", 1, 1, 10, 20},
        {'X', "user_annotation", "tick 2 of 8", 1, 1, 60, 20},
        {'X', "user_annotation", "iteration 6", 1, 1, 100, 90},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 65, 4, 5},
        {'X', "kernel", "gemm", 0, 7, 70, 30, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_step_table table = {0};
    int i;

    UNUSED_STATE(state);
    assert_int_equal(t->steps[0].source, RP_STEP_ANNOTATION);
    assert_code(rp_trace_mark_steps(t, &table, NULL), RP_OK);
    assert_int_equal(t->steps[0].source, RP_STEP_ANNOTATION); /* nothing found */
    assert_code(rp_step_table_parse(&table, "p", "decode tick {step} of {requests}", NULL), RP_OK);
    for (i = 0; i < 2; i++) {
        assert_code(rp_trace_mark_steps(t, &table, NULL), RP_OK);
        assert_int_equal(t->nsteps, 2);
        assert_int_equal(t->steps[1].source, RP_STEP_MARKS);
        assert_int_equal(t->steps[1].number, 2);
        assert_int_equal(t->steps[1].requests, 8);
        assert_int_equal(t->steps[1].work_end_ns, 100);
        assert_code(rp_trace_validate(t, NULL), RP_OK);
    }
    rp_step_table_release(&table);
    rp_trace_free(t);
}

/* The user's patterns describe the profiler's steps, and again: what was said before is gone. */
static void the_profilers_steps_are_described_again(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#8", 1, 1, 0, 90},
        {'X', "user_annotation", "tick 1 of 7", 1, 1, 10, 20},
        {'X', "user_annotation", "ProfilerStep#9", 1, 1, 100, 90},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_step_table seven = {0}, one = {0};

    UNUSED_STATE(state);
    assert_code(rp_step_table_parse(&seven, "p", "decode tick {} of {requests}", NULL), RP_OK);
    assert_code(rp_step_table_parse(&one, "p", "prefill tick {requests} of {}", NULL), RP_OK);
    assert_code(rp_trace_mark_steps(t, &seven, NULL), RP_OK);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].source, RP_STEP_PROFILER);
    assert_int_equal(t->steps[0].number, 8);
    assert_int_equal(t->steps[0].requests, 7);
    assert_int_equal(t->steps[0].phase, RP_PHASE_DECODE);
    assert_code(rp_trace_mark_steps(t, &one, NULL), RP_OK);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].requests, 1);
    assert_int_equal(t->steps[0].phase, RP_PHASE_PREFILL);
    assert_int_equal(t->steps[1].phase, RP_PHASE_NONE);
    rp_step_table_release(&seven);
    rp_step_table_release(&one);
    rp_trace_free(t);
}

/* Names that the user gives: ranges, without those inside another; a long pause is a break. */
static void named_ranges_are_steps(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "iteration 5", 1, 1, 0, 900},
        {'X', "user_annotation", "inner 1", 1, 1, 10, 40},
        {'X', "user_annotation", "inner 1 again", 1, 1, 20, 10},
        {'X', "cpu_op", "aten::mm", 1, 1, 52, 5},
        {'X', "user_annotation", "inner 2", 1, 1, 60, 50},
        {'X', "user_annotation", "inner 3", 1, 1, 300, 50}, /* after something else */
        {'X', "user_annotation", "inner 9", 1, 2, 300, 50}, /* a second thread */
        {'X', "user_annotation", "iteration 6", 1, 1, 1000, 90},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 65, 4, 5},
        {'X', "kernel", "inner 7", 0, 7, 70, 60, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    bool found;

    UNUSED_STATE(state);
    assert_code(rp_trace_name_steps(t, "outer", &found, NULL), RP_OK);
    assert_false(found);
    assert_int_equal(t->nsteps, 2);
    assert_code(rp_trace_name_steps(t, "inner", &found, NULL), RP_OK);
    assert_true(found);
    assert_int_equal(t->nsteps, 3);
    assert_int_equal(t->steps[0].number, 1);
    assert_int_equal(t->steps[1].begin_ns, 60);
    assert_int_equal(t->steps[1].work_end_ns, 130);
    assert_int_equal(t->steps[0].flags, 0);
    assert_int_equal(t->steps[1].flags, RP_STEP_BREAK_AFTER);
    assert_code(rp_trace_validate(t, NULL), RP_OK);
    rp_trace_free(t);
}

/* Marks without a duration: a step lasts until the next one. */
static void named_marks_are_steps(void **state)
{
    static const struct row rows[] = {
        {'i', "user_annotation", "epoch", 1, 1, 0},  {'i', "user_annotation", "tick", 1, 1, 100},
        {'X', "cpu_op", "aten::mm", 1, 1, 110, 5},   {'i', "user_annotation", "tick", 1, 1, 200},
        {'i', "user_annotation", "tick", 1, 1, 320},
    };
    struct rp_trace *t = TRACE_OF(rows);
    bool found;

    UNUSED_STATE(state);
    assert_code(rp_trace_name_steps(t, "tick", &found, NULL), RP_OK);
    assert_true(found);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].begin_ns, 100);
    assert_int_equal(t->steps[0].end_ns, 200);
    assert_int_equal(t->steps[1].end_ns, 320);
    assert_int_equal(t->steps[1].number, 1);
    rp_trace_free(t);
}

int test_step_marks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_servers),
        cmocka_unit_test(users_add_patterns),
        cmocka_unit_test(wrong_patterns_are_named),
        cmocka_unit_test(marks_become_steps),
        cmocka_unit_test(outer_ranges),
        cmocka_unit_test(marks_and_the_profiler),
        cmocka_unit_test(marks_of_the_device),
        cmocka_unit_test(a_finished_trace_is_marked),
        cmocka_unit_test(the_profilers_steps_are_described_again),
        cmocka_unit_test(named_ranges_are_steps),
        cmocka_unit_test(named_marks_are_steps),
    };

    return cmocka_run_group_tests_name("step marks", tests, NULL, NULL);
}
