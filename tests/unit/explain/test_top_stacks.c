/* SPDX-License-Identifier: Apache-2.0 */
/* `top --by line`: threads that wait are left out unless asked for; a library counts for the line
   that called it. */
#include "explain/top/stacks.h"
#include "explain/top/stacks_add.h"
#include "trace/trace_fixtures.h"

static uint32_t stack_of(struct rp_builder *b, uint32_t parent, const char *name, uint32_t line,
                         uint32_t kind)
{
    struct rp_call_frame frame = {str_of(b, name), str_of(b, line ? "train.py" : "libx.so"), line,
                                  kind};
    struct rp_err err = RP_ERR_INIT;
    uint32_t id;

    assert_ok(rp_builder_frame(b, &frame, &id, &err), &err);
    assert_ok(rp_builder_stack(b, parent, id, &id, &err), &err);
    return id;
}

/* main (3) > step (10) > gemm of a library: 40 ns on a processor, 60 ns waiting; step alone 5 ns */
static struct rp_trace *make_trace(void)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b;
    struct rp_trace *t;
    uint32_t process, step, gemm;
    rp_track track;

    assert_ok(rp_builder_new(NULL, &b, &err), &err);
    assert_ok(rp_builder_process(b, 7, 0, &process, &err), &err);
    assert_ok(rp_builder_track(b, process, 7, 0, true, &track, &err), &err);
    step =
        stack_of(b, stack_of(b, RP_NONE, "main", 3, RP_FRAME_PYTHON), "step", 10, RP_FRAME_PYTHON);
    gemm = stack_of(b, step, "gemm", 0, RP_FRAME_NATIVE);
    assert_ok(rp_builder_add_sample(b, &(struct rp_raw_sample){100, 40, track, gemm, RP_SAMPLE_RAN},
                                    &err),
              &err);
    assert_ok(rp_builder_add_sample(
                  b, &(struct rp_raw_sample){200, 60, track, gemm, RP_SAMPLE_WAITED}, &err),
              &err);
    assert_ok(rp_builder_add_sample(b, &(struct rp_raw_sample){300, 5, track, step, 0}, &err),
              &err);
    assert_ok(rp_builder_finish(b, &t, &err), &err);
    return t;
}

static void ask_in(const struct rp_trace *t, const struct rp_scope *scope, const char *by,
                   enum rp_stacks_width width, struct rp_arena *arena, struct rp_stacks_root *out)
{
    const struct rp_stacks_want want = {.by = by, .sort = "self", .in_steps = scope->njudged > 0};
    struct rp_stacks_part part = {0};
    const struct rp_stacks_part *parts[] = {&part};
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_stacks_make(t, scope, &(struct rp_stacks_how){.width = width}, arena, &part, &err),
              &err);
    assert_ok(rp_stacks_join(parts, 1, &want, arena, out, &err), &err);
    rp_vec_release(&part.frames);
    rp_vec_release(&part.nodes);
}

static void ask(const struct rp_trace *t, const char *by, enum rp_stacks_width width,
                struct rp_arena *arena, struct rp_stacks_root *out)
{
    ask_in(t, &(struct rp_scope){0}, by, width, arena, out);
}

/* What lies outside of the steps that are judged does not count: of samples, of Python functions,
   and of the device's idle time. */
static void only_steps_count(void **state)
{
    static const struct row rows[] = {
        {'X', "python_function", "train.py(1): main", 1, 1, 0, 1000},
        {'X', "python_function", "train.py(9): load", 1, 1, 100, 300},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 450, 10, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 550, 10, 2},
        {'X', "kernel", "k", 0, 7, 470, 10, 1, 7},
        {'X', "kernel", "k", 0, 7, 570, 10, 2, 7},
    };
    const struct rp_interval late[] = {{150, 310}}, parts[] = {{350, 500}, {550, 600}},
                             none[] = {{5000, 6000}};
    struct rp_trace *sampled = make_trace(), *spans = trace_of(rows, 6);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_stacks_root out;

    UNUSED_STATE(state);
    ask_in(sampled, &(struct rp_scope){.njudged = 1, .judged = late}, "line", RP_STACKS_CPU, &arena,
           &out);
    assert_int_equal(out.whole_ns, 5);
    assert_int_equal(out.waited_ns, 60);
    ask_in(sampled, &(struct rp_scope){.njudged = 1, .judged = none}, "line", RP_STACKS_CPU, &arena,
           &out);
    assert_contains(out.notes[0], "recorded in the steps:");
    ask_in(spans, &(struct rp_scope){.njudged = 2, .judged = parts}, "line", RP_STACKS_CPU, &arena,
           &out);
    assert_int_equal(out.whole_ns, 150 + 50);
    assert_string_equal(out.rows[1].label, "train.py:9 load");
    assert_int_equal(out.rows[1].self_ns, 50);
    ask_in(spans, &(struct rp_scope){.njudged = 2, .judged = parts}, "line", RP_STACKS_IDLE, &arena,
           &out);
    assert_int_equal(out.whole_ns, 150 + 50 - 20);
    rp_arena_release(&arena);
    rp_trace_free(sampled);
    rp_trace_free(spans);
}

static void waiting_is_left_out(void **state)
{
    struct rp_trace *t = make_trace();
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_stacks_root out;

    UNUSED_STATE(state);
    ask(t, "line", RP_STACKS_CPU, &arena, &out);
    assert_int_equal(out.whole_ns, 45);
    assert_int_equal(out.waited_ns, 60);
    assert_contains(out.notes[0], "'--width wall'");
    ask(t, "line", RP_STACKS_WALL, &arena, &out);
    assert_int_equal(out.whole_ns, 105);
    assert_int_equal(out.waited_ns, 0);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

static void a_library_counts_for_its_caller(void **state)
{
    struct rp_trace *t = make_trace();
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_stacks_root out;

    UNUSED_STATE(state);
    ask(t, "line", RP_STACKS_CPU, &arena, &out);
    assert_int_equal(out.row_count, 2);
    assert_string_equal(out.rows[0].label, "train.py:10 step");
    assert_int_equal(out.rows[0].self_ns, 45);
    assert_int_equal(out.rows[0].count, 2);
    assert_int_equal(out.rows[1].total_ns, 45); /* main, with what it calls */
    ask(t, "function", RP_STACKS_CPU, &arena, &out);
    assert_int_equal(out.row_count, 3);
    assert_string_equal(out.rows[0].name, "gemm");
    assert_int_equal(out.rows[0].self_ns, 40);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* The same run twice, the second time with more samples of gemm than chance explains. */
static struct rp_trace *make_run(int ngemm, int nstep)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b;
    struct rp_trace *t;
    uint32_t process, step, gemm;
    rp_track track;

    assert_ok(rp_builder_new(NULL, &b, &err), &err);
    assert_ok(rp_builder_process(b, 7, 0, &process, &err), &err);
    assert_ok(rp_builder_track(b, process, 7, 0, true, &track, &err), &err);
    step = stack_of(b, RP_NONE, "step", 10, RP_FRAME_PYTHON);
    gemm = stack_of(b, step, "gemm", 20, RP_FRAME_PYTHON);
    for (int i = 0; i < ngemm + nstep; i++)
        assert_ok(
            rp_builder_add_sample(b,
                                  &(struct rp_raw_sample){i * 100, 100, track,
                                                          i < ngemm ? gemm : step, RP_SAMPLE_RAN},
                                  &err),
            &err);
    assert_ok(rp_builder_finish(b, &t, &err), &err);
    return t;
}

static void runs_differ_by_more_than_chance(void **state)
{
    const struct rp_stacks_want want = {.by = "line"};
    const struct rp_scope all = {0};
    struct rp_trace *t[] = {make_run(100, 50), make_run(200, 56)};
    struct rp_stacks_part part[2];
    const struct rp_stacks_part *base[] = {&part[0]}, *fresh[] = {&part[1]};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_stacks_diff_root out;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    memset(part, 0, sizeof part);
    for (int i = 0; i < 2; i++)
        assert_ok(rp_stacks_make(t[i], &all, &(struct rp_stacks_how){0}, &arena, &part[i], &err),
                  &err);
    assert_ok(rp_stacks_diff(base, 1, fresh, 1, &want, &arena, &out, &err), &err);
    assert_int_equal(out.nrows, 2);
    assert_string_equal(out.rows[0].label, "train.py:20 gemm");
    assert_string_equal(out.rows[0].change, "more");
    assert_int_equal(out.rows[0].delta_ns, 10000);
    assert_int_equal(out.rows[0].noise_ns, 3465); /* 2 * 100 * sqrt(100 + 200) */
    assert_string_equal(out.rows[1].change, "noise");
    assert_int_equal(out.rows[1].base_ns, 5000);
    assert_int_equal(out.delta_ns, 10600);
    for (int i = 0; i < 2; i++) {
        rp_vec_release(&part[i].frames);
        rp_vec_release(&part[i].nodes);
        rp_trace_free(t[i]);
    }
    rp_arena_release(&arena);
}

/* Steps of 100 to 200, with a break behind it, 300 to 400, and 400 to 500: what ends at or after
   each time, and the step that a weight of that time belongs to. */
static void steps_have_two_ends(void **state)
{
    static struct rp_step steps[] = {
        {.begin_ns = 100, .end_ns = 200, .number = 7, .flags = RP_STEP_BREAK_AFTER},
        {.begin_ns = 300, .end_ns = 390, .number = 8},
        {.begin_ns = 400, .end_ns = 500, .number = 9}};
    const struct rp_trace t = {.steps = steps, .nsteps = 3};
    static const struct {
        int64_t ts_ns, end_ns;
        const char *part;
    } rows[] = {
        {50, 100, "outside of steps"},
        {99, 100, "outside of steps"},
        {100, 200, "step 7"},
        {199, 200, "step 7"},
        {200, 300, "outside of steps"},
        {299, 300, "outside of steps"},
        {300, 400, "step 8"},
        {395, 400, "step 8"}, /* no break: until the next one */
        {400, 500, "step 9"},
        {499, 500, "step 9"},
        {500, INT64_MAX, "outside of steps"},
    };
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct rp_stacks_how by_step = {.split = RP_STACKS_BY_STEP}, whole = {0};
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_stacks_part part = {0};
        struct rp_stacks_adder a;

        rp_stacks_adder_init(&a, &t, &whole, &arena, &part);
        assert_true(rp_stacks_part_end_ns(&a, rows[i].ts_ns) == INT64_MAX);
        rp_stacks_adder_release(&a);
        rp_stacks_adder_init(&a, &t, &by_step, &arena, &part);
        assert_true(rp_stacks_part_end_ns(&a, rows[i].ts_ns) == rows[i].end_ns);
        assert_ok(rp_vec_push(&part.frames, ((struct rp_stacks_frame){.name = "f"}), &err), &err);
        assert_ok(rp_stacks_add_path(&a, RP_NONE, 0, &err), &err);
        assert_ok(
            rp_stacks_add(&a, &(struct rp_stacks_weighed){0, RP_NONE, rows[i].ts_ns, 5, 1}, &err),
            &err);
        assert_int_equal(part.frames.n, 2);
        if (strcmp(part.frames.at[1].name, rows[i].part))
            fail_msg("%d: '%s'", (int)rows[i].ts_ns, part.frames.at[1].name);
        rp_stacks_adder_release(&a);
        rp_vec_release(&part.frames);
        rp_vec_release(&part.nodes);
        rp_arena_release(&arena);
    }
}

int test_top_stacks(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_left_out), cmocka_unit_test(only_steps_count),
        cmocka_unit_test(a_library_counts_for_its_caller),
        cmocka_unit_test(runs_differ_by_more_than_chance), cmocka_unit_test(steps_have_two_ends)};

    return cmocka_run_group_tests_name("top stacks", tests, NULL, NULL);
}
