/* SPDX-License-Identifier: Apache-2.0 */
/* What was recorded outside of the steps, and how it is said. */
#include "facts/host/outside.h"
#include "trace/trace_fixtures.h"

/* Six steps of 100 with four breaks of 100 between them; operators before, in, between and after
   them. */
static const struct row rows[] = {
    {'X', "cpu_op", "aten::rand", 1, 1, 950, 10},
    {'X', "user_annotation", "ProfilerStep#1", 1, 1, 1000, 100},
    {'X', "cpu_op", "aten::mul", 1, 1, 1010, 30},
    {'X', "user_annotation", "ProfilerStep#2", 1, 1, 1100, 100},
    {'X', "cpu_op", "aten::add", 1, 1, 1200, 20}, /* an evaluation, from the end of the step */
    {'X', "user_annotation", "ProfilerStep#3", 1, 1, 1300, 100},
    {'X', "python_function", "utils.py(9): Save_Checkpoint", 1, 1, 1420, 60},
    {'X', "cpu_op", "aten::to", 1, 1, 1430, 5},
    {'X', "user_annotation", "ProfilerStep#4", 1, 1, 1500, 100}, /* then nothing */
    {'X', "cpu_op", "aten::mul", 1, 1, 1700, 10},
    {'X', "user_annotation", "ProfilerStep#5", 1, 1, 1700, 100},
    {'X', "cpu_op", "autograd::engine::evaluate_function: X", 1, 1, 1810, 40},
    {'X', "user_annotation", "ProfilerStep#6", 1, 1, 1900, 100},
    {'X', "cpu_op", "aten::sum", 1, 1, 2010, 35},
};

struct outside {
    struct rp_trace *t;
    struct rp_arena arena;
    struct rp_step steps[6];
    struct rp_step *own;
};

/* The trace with breaks after steps 2 to 5, and a first step that is warm-up. */
static void outside_open(struct outside *o)
{
    o->t = TRACE_OF(rows);
    rp_arena_init(&o->arena);
    assert_int_equal(o->t->nsteps, 6);
    o->own = o->t->steps;
    memcpy(o->steps, o->own, sizeof o->steps);
    for (int i = 1; i < 5; i++)
        o->steps[i].flags |= RP_STEP_BREAK_AFTER;
    o->steps[0].flags |= RP_STEP_WARM_UP;
    o->t->steps = o->steps;
}

static void outside_close(struct outside *o)
{
    o->t->steps = o->own;
    rp_arena_release(&o->arena);
    rp_trace_free(o->t);
}

static void breaks_are_named_by_what_ran(void **state)
{
    struct outside o;
    struct rp_outside out;

    UNUSED_STATE(state);
    outside_open(&o);
    assert_code(rp_outside_measure(o.t, &o.arena, &out, NULL), RP_OK);
    assert_int_equal(out.nsteps, 6);
    assert_int_equal(out.before_ns, 50);
    assert_int_equal(out.after_ns, 45);
    assert_int_equal(out.warm_ups, 1);
    assert_int_equal(out.warm_up_ns, 100);
    assert_int_equal(out.without_detail, 0);
    for (int k = 0; k < RP_BREAKS; k++) {
        assert_int_equal(out.breaks[k], 1);
        assert_int_equal(out.break_ns[k], 100);
    }
    assert_float_equal(out.share, 40.0 / 140.0, 1e-12);
    assert_string_equal(out.mark, "ProfilerStep");
    assert_true(rp_outside_is_large(&out, o.t));
    outside_close(&o);
}

/* From 950 to 2045 a tenth is 109. */
static void a_tenth_is_large(void **state)
{
    struct rp_outside out = {.nsteps = 6, .before_ns = 30, .after_ns = 30, .warm_up_ns = 20};
    struct outside o;

    UNUSED_STATE(state);
    outside_open(&o);
    out.unrecorded_ns = 10;
    out.break_ns[RP_BREAK_PAUSE] = 19;
    assert_false(rp_outside_is_large(&out, o.t));
    out.break_ns[RP_BREAK_PAUSE] = 20;
    assert_true(rp_outside_is_large(&out, o.t));
    out = (struct rp_outside){.nsteps = 1, .without_detail = 1};
    assert_true(rp_outside_is_large(&out, o.t));
    outside_close(&o);
}

/* A fiftieth of 1,000 is 20. */
static void little_time_outside_is_not_named(void **state)
{
    struct rp_outside out = {.nsteps = 6, .before_ns = 20};
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    assert_null(rp_outside_text(&out, 1000, &arena));
    out.before_ns = 21;
    assert_contains(rp_outside_text(&out, 1000, &arena), "before the first step");
    rp_arena_release(&arena);
}

/* The same of one judged interval of 1,000; without operators and device work all of it is inside.
 */
static void the_last_interval_counts(void **state)
{
    struct rp_interval at = {0, 1000};
    struct rp_judged judged = {.segments = {1, &at}, .outside = {.nsteps = 6, .before_ns = 20}};
    static const struct row marks[] = {{'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100},
                                       {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 100}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(marks);
    struct rp_outside out;

    UNUSED_STATE(state);
    assert_null(rp_judged_text(&judged, &arena));
    judged.outside.before_ns = 21;
    assert_contains(rp_judged_text(&judged, &arena), "before the first step");
    assert_code(rp_outside_measure(t, &arena, &out, NULL), RP_OK);
    assert_float_equal(out.share, 1, 1e-12);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

static void what_is_judged(void **state)
{
    static const struct {
        int64_t ns;
        bool judged;
    } times[] = {{1099, false}, {1100, true},  {1199, true}, {1200, false},
                 {1300, true},  {1850, false}, {1999, true}, {2000, false}};
    struct rp_scope some = {.limited = true, .begin_ns = 1000, .end_ns = 1500};
    struct rp_judged judged;
    struct outside o;

    UNUSED_STATE(state);
    outside_open(&o);
    assert_code(rp_judged_find(o.t, NULL, &o.arena, &judged, NULL), RP_OK);
    assert_int_equal(judged.segments.n, 0); /* the profiler chose its steps */
    assert_null(rp_judged_text(&judged, &o.arena));
    assert_true(rp_judged_has(&judged, 1250));
    for (int i = 0; i < 6; i++)
        o.steps[i].source = RP_STEP_OPTIMIZER;
    assert_code(rp_judged_find(o.t, &some, &o.arena, &judged, NULL), RP_OK);
    assert_int_equal(judged.segments.n, 0);
    assert_code(rp_judged_find(o.t, NULL, &o.arena, &judged, NULL), RP_OK);
    assert_int_equal(judged.segments.n, 5);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_int_equal(rp_judged_has(&judged, times[i].ns), times[i].judged);
    assert_string_equal(rp_judged_text(&judged, &o.arena),
                        "not counted: 50 ns before the first step (start-up), "
                        "100 ns in the first step (warm-up), "
                        "100 ns in 1 evaluation or rollout between steps, "
                        "100 ns in 1 checkpoint between steps, "
                        "100 ns in 1 pause between steps, "
                        "100 ns in 1 break between steps, 45 ns after the last step");
    outside_close(&o);
}

static void small_parts_are_not_mentioned(void **state)
{
    struct rp_outside out = {
        .nsteps = 6, .warm_ups = 3, .warm_up_ns = 51, .unrecorded_ns = 50, .after_ns = 60};
    struct rp_arena arena;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    out.breaks[RP_BREAK_EVALUATION] = 2;
    out.break_ns[RP_BREAK_EVALUATION] = 70;
    assert_string_equal(
        rp_outside_text(&out, 2500, &arena),
        "not counted: 51 ns in the first 3 steps (warm-up), "
        "70 ns in 2 evaluations or rollouts between steps, 60 ns after the last step");
    assert_null(rp_outside_text(&out, 1000000, &arena));
    rp_arena_release(&arena);
}

static void what_the_steps_were_found_by(void **state)
{
    struct rp_outside out = {.nsteps = 25, .share = 0.984, .mark = "Optimizer.step"};
    struct rp_arena arena;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    out.source = RP_STEP_OPTIMIZER;
    assert_string_equal(rp_outside_steps_text(&out, true, &arena),
                        "25, by Optimizer.step, 98 % of the device time from the first one on");
    out.mark = "";
    assert_string_equal(rp_outside_steps_text(&out, false, &arena),
                        "25, by annotations, 98 % of the operators' time from the first one on");
    out.source = RP_STEP_FORWARD;
    assert_contains(rp_outside_steps_text(&out, true, &arena), "25, by forward passes, 98 %");
    out.source = RP_STEP_BACKWARD;
    assert_contains(rp_outside_steps_text(&out, false, &arena), "25, by backward passes, 98 %");
    out.source = RP_STEP_REPETITION;
    assert_contains(rp_outside_steps_text(&out, true, &arena),
                    "by a sequence of work that repeats");
    out.source = RP_STEP_SESSION;
    assert_null(rp_outside_steps_text(&out, true, &arena));
    out.source = RP_STEP_MARKS;
    assert_null(rp_outside_steps_text(&out, true, &arena));
    out.source = RP_STEP_RUN_ID;
    assert_null(rp_outside_steps_text(&out, true, &arena));
    out.source = RP_STEP_PROFILER;
    assert_null(rp_outside_steps_text(&out, true, &arena));
    out = (struct rp_outside){.source = RP_STEP_OPTIMIZER, .mark = "x"};
    assert_null(rp_outside_steps_text(&out, true, &arena));
    rp_arena_release(&arena);
}

/* Without steps: what a device does between its first and its last work. */
static void without_steps_device_work_is_judged(void **state)
{
    static const struct row end[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 100, 10, 1},
        {'X', "kernel", "k", 0, 7, 200, 100, 1, 7},
        {'X', "kernel", "k", 0, 7, 400, 100, 2, 7},
        {'X', "cuda_runtime", "cuModuleUnload", 1, 1, 510, 390},
    };
    static const struct row host[] = {{'X', "cuda_runtime", "cuInit", 1, 1, 100, 800}};
    struct rp_trace *t = TRACE_OF(end);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_judged judged;
    struct rp_segments s;

    UNUSED_STATE(state);
    assert_code(rp_trace_segments(t, &arena, &s, NULL), RP_OK);
    assert_int_equal(s.n, 1);
    assert_true(s.at[0].begin_ns == 200 && s.at[0].end_ns == 500);
    assert_code(rp_judged_find(t, NULL, &arena, &judged, NULL), RP_OK);
    assert_false(rp_judged_has(&judged, 510));
    assert_string_equal(rp_judged_text(&judged, &arena),
                        "not counted: 100 ns before the first device work (start-up), 400 ns after "
                        "the last device work (the end of the program)");
    rp_trace_free(t);
    t = TRACE_OF(host);
    assert_code(rp_trace_segments(t, &arena, &s, NULL), RP_OK);
    assert_true(s.at[0].begin_ns == 100 && s.at[0].end_ns == 900);
    assert_code(rp_judged_find(t, NULL, &arena, &judged, NULL), RP_OK);
    assert_null(rp_judged_text(&judged, &arena));
    rp_trace_free(t);
    rp_arena_release(&arena);
}

/* The device was recorded between the second and the third mark only. */
static void steps_beside_all_device_work_are_not_judged(void **state)
{
    static const struct row rows_of[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 100},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 1},
        {'X', "kernel", "k", 0, 7, 120, 70, 1, 7},
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 200, 100},
    };
    struct rp_trace *t = TRACE_OF(rows_of);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_outside out;
    struct rp_segments s;

    UNUSED_STATE(state);
    assert_code(rp_trace_segments(t, &arena, &s, NULL), RP_OK);
    assert_int_equal(s.n, 1);
    assert_true(s.at[0].begin_ns == 100 && s.at[0].end_ns == 200);
    assert_code(rp_outside_measure(t, &arena, &out, NULL), RP_OK);
    assert_true(out.beside == 2 && out.beside_ns == 200);
    assert_contains(rp_outside_text(&out, 100, &arena), "200 ns in 2 steps before or after all");
    rp_trace_free(t);
    rp_arena_release(&arena);
}

/* A recording of our own has the start-up of its program; what a profiler recorded was chosen. */
static void a_scope_is_what_is_judged(void **state)
{
    static const struct row end[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 100, 10, 1},
        {'X', "kernel", RP_OUR_FRAMEWORK, 0, 7, 200, 100, 1, 7},
        {'X', "cuda_runtime", "cuModuleUnload", 1, 1, 510, 390},
    };

    UNUSED_STATE(state);
    for (int ours = 0; ours < 2; ours++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_scope scope = {0};
        const char *text = "before";
        struct rp_trace *t = TRACE_OF(end);

        if (ours)
            t->framework = find_str(t, RP_OUR_FRAMEWORK);
        assert_code(rp_judged_scope(t, &scope, &arena, &text, NULL), RP_OK);
        assert_int_equal(scope.njudged, ours);
        if (ours) {
            assert_int_equal(scope.judged[0].begin_ns, 200);
            assert_int_equal(scope.judged[0].end_ns, 300);
            assert_contains(text, "before the first device work");
        } else {
            assert_null(text);
        }
        rp_arena_release(&arena);
        rp_trace_free(t);
    }
}

static void slow_calls_of_what_is_judged_are_kept(void **state)
{
    static const struct row some[] = {{'X', "cpu_op", "a", 1, 1, 90, 5},
                                      {'X', "cpu_op", "b", 1, 1, 100, 5},
                                      {'X', "cpu_op", "c", 1, 1, 199, 5},
                                      {'X', "cpu_op", "d", 1, 1, 200, 5}};
    struct rp_interval at = {100, 200};
    struct rp_judged judged = {.segments = {1, &at}}, all = {0};
    struct rp_trace *t = TRACE_OF(some);
    struct rp_slow_call calls[4];
    struct rp_host_calls host = {0};

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++)
        calls[i] = (struct rp_slow_call){.event = event_n(t, i), .self_ns = i};
    host.slow.at = calls;
    host.slow.n = 4;
    rp_judged_keep_calls(&all, t, &host);
    assert_int_equal(host.slow.n, 4);
    rp_judged_keep_calls(&judged, t, &host);
    assert_int_equal(host.slow.n, 2);
    assert_int_equal(host.slow.at[0].self_ns, 1);
    assert_int_equal(host.slow.at[1].self_ns, 2);
    assert_string_equal(rp_judged_words(&all), "");
    assert_string_equal(rp_judged_words(&judged), " from the first to the last device work");
    judged.outside.nsteps = 2;
    assert_string_equal(rp_judged_words(&judged), " in the judged steps");
    rp_trace_free(t);
}

/* Each step that was recorded without detail is counted, and how long steps last on the device is
   what the recorder's events say. */
static void steps_without_detail(void **state)
{
    static const double ms[] = {3.5, 1.5, 2.5, 9};
    struct rp_builder *b = build_rows(rows, sizeof rows / sizeof rows[0]);
    struct rp_step steps[6], *own;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_judged judged;
    struct rp_outside out;
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++) {
        struct rp_arg arg = {.key = str_of(b, "value"), .type = RP_ARG_F64, .v = {.f = ms[i]}};
        struct rp_raw raw = {.ts_ns = 1000 + 10 * i,
                             .dur_ns = RP_OPEN_NS,
                             .name = str_of(b, i < 3 ? "step on the device (ms)" : "other"),
                             .track = track_of(b, 1, 9),
                             .origin = origin_of(b, 'C', NULL),
                             .nargs = 1,
                             .args = &arg};

        assert_code(rp_builder_shape(b, &arg, 1, &raw.shape, NULL), RP_OK);
        assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
    }
    t = finish_valid(b);
    assert_code(rp_outside_measure(t, &arena, &out, NULL), RP_OK);
    assert_int_equal(out.device_steps, 0); /* all have detail */
    own = t->steps;
    memcpy(steps, own, sizeof steps);
    t->steps = steps;
    steps[1].flags |= RP_STEP_NO_DETAIL;
    steps[2].flags |= RP_STEP_NO_DETAIL;
    for (int i = 0; i < 6; i++)
        steps[i].source = RP_STEP_OPTIMIZER;
    assert_code(rp_outside_measure(t, &arena, &out, NULL), RP_OK);
    assert_int_equal(out.without_detail, 2);
    assert_int_equal(out.device_steps, 3);
    assert_int_equal(out.device_ns, 2500000);
    assert_int_equal(out.beside, 0);
    judged = (struct rp_judged){.segments = {1, &(struct rp_interval){0, 1000}},
                                .outside = {.nsteps = 6, .without_detail = 2}};
    assert_string_equal(rp_judged_text(&judged, &arena),
                        "not counted: 2 of 6 steps, recorded without detail");
    judged.outside.before_ns = 100;
    assert_string_equal(rp_judged_text(&judged, &arena),
                        "not counted: 100 ns before the first step (start-up), 2 of 6 steps, "
                        "recorded without detail");
    t->steps = own;
    rp_arena_release(&arena);
    rp_trace_free(t);
}

static void checkpoints_of_activations_save_nothing(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_name_recomputes("torch/utils/checkpoint.py(3): f"));
    assert_true(rp_name_recomputes("CheckpointFunctionBackward"));
    assert_true(rp_name_recomputes("checkpoint_wrapper"));
    assert_false(rp_name_recomputes("save_checkpoint"));
    assert_false(rp_name_recomputes("torch.save"));
}

/* A nanosecond before the device's work and one after it are around it. */
static void what_is_around_device_work(void **state)
{
    static const struct row some[] = {
        {'X', "cpu_op", "aten::a", 1, 1, 199, 1},
        {'X', "kernel", "k", 0, 7, 200, 100, 1, 7},
        {'X', "cpu_op", "aten::b", 1, 1, 250, 51},
    };
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct rp_trace *t = trace_of(some + k, 3 - 2 * (size_t)k);
        struct rp_outside out;

        assert_code(rp_outside_measure(t, &arena, &out, NULL), RP_OK);
        assert_int_equal(out.nsteps, 0);
        assert_int_equal(out.before_ns, !k);
        assert_int_equal(out.after_ns, !k);
        rp_trace_free(t);
    }
    rp_arena_release(&arena);
}

int test_outside(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_around_device_work),
        cmocka_unit_test(a_scope_is_what_is_judged),
        cmocka_unit_test(slow_calls_of_what_is_judged_are_kept),
        cmocka_unit_test(steps_without_detail),
        cmocka_unit_test(checkpoints_of_activations_save_nothing),
        cmocka_unit_test(without_steps_device_work_is_judged),
        cmocka_unit_test(steps_beside_all_device_work_are_not_judged),
        cmocka_unit_test(breaks_are_named_by_what_ran),
        cmocka_unit_test(a_tenth_is_large),
        cmocka_unit_test(little_time_outside_is_not_named),
        cmocka_unit_test(the_last_interval_counts),
        cmocka_unit_test(what_is_judged),
        cmocka_unit_test(small_parts_are_not_mentioned),
        cmocka_unit_test(what_the_steps_were_found_by)};

    return cmocka_run_group_tests_name("outside", tests, NULL, NULL);
}
