/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by each kind of evidence, and none where there is too little of it. */
#include "trace/finish/steps.h"
#include "trace_fixtures.h"

static void test_profiler_steps(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#11", 1, 1, 200, 90},
        {'X', "user_annotation", "ProfilerStep#10", 1, 1, 100, 90},
        {'X', "cpu_op", "ProfilerStep#10", 1, 1, 100, 90}, /* the same again */
        {'X', "gpu_user_annotation", "ProfilerStep#10", 0, 7, 150, 90},
        {'X', "user_annotation", "step 1", 1, 1, 300, 10},
        {'X', "user_annotation", "step 2", 1, 1, 310, 10},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 10);
    assert_int_equal(t->steps[1].number, 11);
    assert_int_equal(t->steps[1].begin_ns, 200);
    assert_int_equal(t->steps[1].end_ns, 290);
    assert_int_equal(t->steps[1].source, RP_STEP_PROFILER);
    assert_int_equal(t->steps[1].mark, event_n(t, 0));
    rp_trace_free(t);
}

/* Whatever follows the mark, it is one; without digits it has no number. */
static void test_profiler_step_without_number(void **state)
{
    static const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#abc", 1, 1, 100, 90}};
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 1);
    assert_int_equal(t->steps[0].number, 0);
    rp_trace_free(t);
}

static void test_steps_thread(void **state)
{
    static const struct row rows[] = {
        {'M', NULL, "thread_name", 1, 5, 0, 0, .text_key = "name", .text = "Steps"},
        {'X', NULL, "7", 1, 5, 10, 5},
        {'X', NULL, "8", 1, 5, 20, 5},
        {'X', NULL, "fusion", 1, 6, 10, 5, .key = "group_id", .value = 1},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[1].number, 8);
    assert_int_equal(t->steps[1].source, RP_STEP_RUN_ID);
    rp_trace_free(t);
}

static void test_step_num_and_groups(void **state)
{
    static const struct row marked[] = {
        {'X', NULL, "train", 1, 5, 10, 10, .key = "step_num", .value = 3},
        {'X', NULL, "inner", 1, 5, 12, 2, .key = "step_num", .value = 3},
        {'X', NULL, "train", 1, 5, 30, 10, .key = "step_num", .value = 4},
        {'X', NULL, "a thread with fewer", 1, 6, 50, 10, .key = "step_num", .value = 9},
        {'X', NULL, "without a number", 1, 5, 70, 10},
    };
    static const struct row grouped[] = {
        {'X', NULL, "a", 1, 5, 10, 5, .key = "group_id", .value = 1},
        {'X', NULL, "b", 1, 6, 12, 9, .text_key = "group_id", .text = "1"},
        {'X', NULL, "a", 1, 5, 30, 5, .key = "group_id", .value = 2},
        {'X', NULL, "z", 1, 5, 90, 5},
    };
    struct rp_trace *t = TRACE_OF(marked);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 3);
    assert_int_equal(t->steps[1].begin_ns, 30);
    rp_trace_free(t);
    t = TRACE_OF(grouped);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].begin_ns, 10);
    assert_int_equal(t->steps[0].end_ns, 21);
    assert_int_equal(t->steps[1].number, 2);
    rp_trace_free(t);
}

/* Groups are on the device if all of them are; each lasts from its first begin to its last end. */
static void groups_of_the_device(void **state)
{
    struct row rows[] = {
        {'X', "kernel", "a", 0, 7, 20, 5, 0, 7, .key = "group_id", .value = 1},
        {'X', "kernel", "b", 0, 7, 30, 5, 0, 7, .key = "group_id", .value = 1},
        {'X', "kernel", "a", 0, 7, 60, 5, 0, 7, .key = "group_id", .value = 2},
        {'X', "kernel", "b", 0, 8, 50, 30, 0, 8, .key = "group_id", .value = 2},
    };

    UNUSED_STATE(state);
    for (int host = 0; host < 2; host++) {
        struct rp_trace *t;

        if (host)
            rows[3] = (struct row){'X', NULL, "call", 1, 9, 50, 30, .key = "group_id", .value = 2};
        t = TRACE_OF(rows);
        assert_int_equal(t->nsteps, 2);
        for (int i = 0; i < 2; i++)
            assert_int_equal(t->steps[i].flags, host ? 0 : RP_STEP_ON_DEVICE);
        assert_int_equal(t->steps[0].begin_ns, 20);
        assert_int_equal(t->steps[0].end_ns, 35);
        assert_int_equal(t->steps[1].begin_ns, 50);
        assert_int_equal(t->steps[1].end_ns, 80);
        assert_int_equal(t->steps[0].mark, RP_NONE);
        assert_string_equal(rp_trace_str(t, t->steps[1].name), "group_id");
        rp_trace_free(t);
    }
}

/* Of threads with as many numbers the first one. */
static void one_thread_has_the_numbers(void **state)
{
    static const struct row rows[] = {
        {'X', NULL, "one", 1, 5, 10, 10, .key = "step_num", .value = 1},
        {'X', NULL, "two", 1, 6, 10, 10, .key = "step_num", .value = 5},
        {'X', NULL, "two", 1, 6, 20, 10, .key = "step_num", .value = 6},
        {'X', NULL, "three", 1, 7, 10, 10, .key = "step_num", .value = 8},
        {'X', NULL, "four", 1, 8, 10, 10, .key = "step_num", .value = 2},
        {'X', NULL, "four", 1, 8, 20, 10, .key = "step_num", .value = 3},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 5);
    assert_int_equal(t->steps[1].number, 6); /* it begins where the first one ends */
    rp_trace_free(t);
}

/* Of several threads "Steps" the one with most of them, then with the longest ones, then the first.
 */
static void test_steps_threads(void **state)
{
    struct row rows[] = {
        {'M', NULL, "thread_name", 1, 5, 0, 0, .text_key = "name", .text = "Steps"},
        {'M', NULL, "thread_name", 1, 6, 0, 0, .text_key = "name", .text = "Steps"},
        {'M', NULL, "thread_name", 1, 7, 0, 0, .text_key = "name", .text = "Steps"},
        {'X', NULL, "1", 1, 5, 0, 10},
        {'X', NULL, "2", 1, 5, 100, 10},
        {'X', NULL, "11", 1, 6, 0, 10},
        {'X', NULL, "12", 1, 6, 100, 11},
        {'X', NULL, "20", 1, 7, 0, 1000},
    };
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int round = 0; round < 2; round++) {
        rows[6].dur = round ? 10 : 11;
        t = TRACE_OF(rows);
        assert_int_equal(t->nsteps, 2);
        assert_int_equal(t->steps[0].number, round ? 1 : 11);
        rp_trace_free(t);
    }
}

/* Of three with as many steps the longest, which is neither the first nor the last. */
static void the_longest_of_equal_threads(void **state)
{
    static const struct row rows[] = {
        {'M', NULL, "thread_name", 1, 5, 0, 0, .text_key = "name", .text = "Steps"},
        {'M', NULL, "thread_name", 1, 6, 0, 0, .text_key = "name", .text = "Steps"},
        {'M', NULL, "thread_name", 1, 7, 0, 0, .text_key = "name", .text = "Steps"},
        {'X', NULL, "1", 1, 5, 0, 5},
        {'X', NULL, "2", 1, 6, 0, 9},
        {'X', NULL, "3", 1, 7, 0, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 1);
    assert_int_equal(t->steps[0].number, 2);
    rp_trace_free(t);
}

static void test_xla_modules(void **state)
{
    static const struct row rows[] = {
        {'M', NULL, "thread_name", 1, 5, 0, 0, .text_key = "name", .text = "XLA Modules"},
        {'X', NULL, "jit_step(1)", 1, 5, 10, 50},
        {'X', NULL, "jit_add(2)", 1, 5, 60, 1},
        {'X', NULL, "jit_step(1)", 1, 5, 70, 50},
        {'X', NULL, "jit_add(2)", 1, 5, 120, 1},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_string_equal(rp_trace_str(t, t->steps[1].name), "jit_step(1)");
    assert_int_equal(t->steps[1].begin_ns, 70);
    rp_trace_free(t);
}

static void test_annotations(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "iteration 15", 1, 1, 0, 90},
        {'X', "user_annotation", "iteration 16", 1, 1, 100, 90},
        {'X', "user_annotation", "batch 1", 1, 1, 0, 40},
        {'X', "user_annotation", "batch 2", 1, 1, 100, 40},
        {'X', "user_annotation", "Optimizer.step#Adam.step", 1, 1, 50, 30},
        {'X', "user_annotation", "Optimizer.step#Adam.step", 1, 1, 150, 30},
        {'X', "user_annotation", "Optimizer.step#Adam.step", 1, 1, 190, 30},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 15);
    assert_int_equal(t->steps[0].source, RP_STEP_ANNOTATION);
    assert_string_equal(rp_trace_str(t, t->steps[1].name), "iteration 16");
    rp_trace_free(t);
}

/* Of several the one that covers most, wherever it stands. */
static void annotations_that_cover_most(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "batch 7", 1, 1, 0, 40},
        {'X', "user_annotation", "batch 8", 1, 1, 50, 40},
        {'X', "user_annotation", "iteration 15", 1, 2, 5, 60},
        {'X', "user_annotation", "iteration 16", 1, 2, 100, 90},
        {'X', "user_annotation", "step 1", 1, 3, 0, 30},
        {'X', "user_annotation", "step 2", 1, 3, 40, 30},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 15);
    assert_int_equal(t->steps[0].begin_ns, 5);
    assert_int_equal(t->steps[0].end_ns, 65);
    assert_int_equal(t->steps[1].number, 16);
    rp_trace_free(t);
}

/* The steps of ranges of 50 ns with these names, each so long after the begin of the one before. */
static uint32_t annotated(const char *const *names, size_t n, int64_t after_ns)
{
    struct row rows[4];
    struct rp_trace *t;
    uint32_t found;

    for (size_t i = 0; i < n; i++)
        rows[i] = (struct row){'X', "user_annotation", names[i], 1, 1, (int64_t)i * after_ns, 50};
    t = trace_of(rows, n);
    found = t->nsteps;
    rp_trace_free(t);
    return found;
}

/* They cover half of the time, one after another; two are enough if their numbers rise. */
static void annotations_have_edges(void **state)
{
    static const char *const rising[] = {"step 1", "step 2", "step 3"};
    static const char *const falling[] = {"step 3", "step 2", "step 1"};
    static const char *const equal[] = {"step 3", "step 3", "step 3"};
    static const char *const plain[] = {"train_step", "train_step", "train_step"};

    UNUSED_STATE(state);
    assert_int_equal(annotated(rising, 1, 50), 0);
    assert_int_equal(annotated(rising, 2, 150), 2);
    assert_int_equal(annotated(rising, 2, 151), 2); /* of 201 ns, rounded */
    assert_int_equal(annotated(rising, 2, 152), 0);
    assert_int_equal(annotated(rising, 2, 50), 2);
    assert_int_equal(annotated(rising, 2, 49), 0); /* they overlap */
    assert_int_equal(annotated(falling, 2, 50), 0);
    assert_int_equal(annotated(falling, 3, 50), 3);
    assert_int_equal(annotated(equal, 2, 50), 0);
    assert_int_equal(annotated(plain, 2, 50), 0);
    assert_int_equal(annotated(plain, 3, 50), 3);
}

/* Twice without a number, far apart, overlapping: no steps. */
static void test_weak_annotations(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "train_step", 1, 1, 0, 90},
        {'X', "user_annotation", "train_step", 1, 1, 100, 90},
        {'X', "user_annotation", "iter 1", 1, 2, 0, 1},
        {'X', "user_annotation", "iter 2", 1, 2, 1000, 1},
        {'X', "user_annotation", "step 1", 1, 3, 0, 90},
        {'X', "user_annotation", "step 2", 1, 3, 50, 90},
        {'X', "user_annotation", "optimizer step 1", 1, 4, 0, 90},
        {'X', "user_annotation", "optimizer step 2", 1, 4, 90, 90},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 0);
    rp_trace_free(t);
}

static size_t period_of(const rp_str *names, size_t n)
{
    size_t period;

    assert_code(rp_steps_find_period(names, n, &period, NULL), RP_OK);
    return period;
}

static void test_periods(void **state)
{
    rp_str names[4000];
    struct random r = {4};
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 4000; i++)
        names[i] = (rp_str)(i % 7);
    assert_int_equal(period_of(names, 4000), 7);
    assert_int_equal(period_of(names, 21), 7);
    assert_int_equal(period_of(names, 20), 0);
    for (i = 0; i < 4000; i++) /* 20 layers of 9, then 5 of the rest: the step, not the layer */
        names[i] = (rp_str)(i % 185 < 180 ? i % 185 % 9 : 100 + i % 185);
    assert_int_equal(period_of(names, 4000), 185);
    for (i = 0; i < 4000; i += 50) /* two of a hundred differ */
        names[i] = 500 + random_below(&r, 50);
    assert_int_equal(period_of(names, 4000), 185);
    for (i = 0; i < 4000; i++)
        names[i] = 1;
    assert_int_equal(period_of(names, 4000), 0);
    for (i = 0; i < 4000; i++)
        names[i] = random_below(&r, 30);
    assert_int_equal(period_of(names, 4000), 0);
}

/* Four elements repeat, but for one in `length`: a step of four, if these are few. */
static size_t period_but_for_one(size_t length)
{
    rp_str names[1700];

    for (size_t i = 0; i < 4 * length; i++)
        names[i] = (rp_str)(i % length == length / 2 ? 99 : i % length % 4);
    return period_of(names, 4 * length);
}

static void a_short_period_may_differ_a_little(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(period_but_for_one(404), 4); /* 8 of 1,612: 4,963 in a million */
    assert_int_equal(period_but_for_one(400), 400);
}

/* Four steps of six kernels with a pause in front of each; warm-up in front of the first. */
static void test_repetition(void **state)
{
    static const char *const names[] = {"embed", "gemm", "softmax", "gemm2", "loss", "adam"};
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int step, k;

    UNUSED_STATE(state);
    add_row(b, &(struct row){'X', "kernel", "loss", 0, 7, 100, 10});
    add_row(b, &(struct row){'X', "kernel", "adam", 0, 7, 120, 10});
    for (step = 0; step < 4; step++)
        for (k = 0; k < 6; k++)
            add_row(b,
                    &(struct row){'X', "kernel", names[k], 0, 7, (step + 1) * 1000 + k * 20, 10});
    t = finish_valid(b);
    assert_int_equal(t->nsteps, 4);
    assert_int_equal(t->steps[0].source, RP_STEP_REPETITION);
    assert_int_equal(t->steps[0].begin_ns, 1000);
    assert_int_equal(t->steps[0].end_ns, 2000);
    assert_int_equal(t->steps[3].begin_ns, 4000);
    assert_int_equal(t->steps[3].end_ns, 4110);
    rp_trace_free(t);
}

/* Layers of one step repeat as well, and so does the work of one graph. */
static void test_layers_are_no_steps(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 240; i++) {
        char name[16];

        snprintf(name, sizeof name, "k%d", i % 10);
        add_row(b, &(struct row){'X', "kernel", name, 0, 7, i * 10, 5});
    }
    t = finish_valid(b);
    assert_int_equal(t->nsteps, 0);
    rp_trace_free(t);
    b = build_rows(NULL, 0);
    for (i = 0; i < 240; i++)
        add_row(b,
                &(struct row){'X', "kernel", i % 3 ? "gemm" : "adam", 0, 7, i * 10, 5, .corr = 4});
    t = finish_valid(b);
    assert_int_equal(t->nsteps, 0);
    rp_trace_free(t);
}

/* Other work behind the loop is not a step. */
static void test_repetition_ends(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 430; i++) {
        char name[16];

        snprintf(name, sizeof name, "%s%d", i % 10 ? "k" : "adam", i < 400 ? i % 10 : i);
        add_row(b, &(struct row){'X', "kernel", name, 0, 7, i * 10 + i / 10 * 50, 5});
    }
    t = finish_valid(b);
    assert_int_equal(t->nsteps, 40);
    rp_trace_free(t);
}

/* Without a device: outermost operators. A kernel more in one step moves the others. */
static void test_repetition_of_operators(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int64_t at = 0;
    int step, k;

    UNUSED_STATE(state);
    for (step = 0; step < 20; step++, at += 100)
        for (k = 0; k < 40 + (step == 2); k++, at += 10) {
            char name[16];

            snprintf(name, sizeof name, "%s%d", k ? "op" : "embedding", k);
            add_row(b, &(struct row){'X', "cpu_op", name, 1, 1, at, 8});
            add_row(b, &(struct row){'X', "cpu_op", "child", 1, 1, at + 1, 3});
        }
    t = finish_valid(b);
    assert_int_equal(t->nsteps, 20);
    for (step = 0; step < 20; step++)
        assert_int_equal(t->steps[step].begin_ns, step * 500 + (step > 2 ? 10 : 0));
    rp_trace_free(t);
}

/* On the host a model is made first, and something else may come between: here after 12 steps, no
   whole number of periods long. A step before it ends with its work. */
static void test_repetition_goes_on(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int64_t at = 0;
    int step, k;

    UNUSED_STATE(state);
    for (k = 0; k < 60; k++, at += 10) {
        char name[16];

        snprintf(name, sizeof name, "init%d", k);
        add_row(b, &(struct row){'X', "cpu_op", name, 1, 1, at, 8});
    }
    for (step = 0; step < 60; step++, at += 100) {
        for (k = 0; step == 12 && k < 17; k++, at += 10)
            add_row(b, &(struct row){'X', "cpu_op", k % 3 ? "check" : "compare", 1, 1, at, 8});
        for (k = 0; k < 10; k++, at += 10) {
            char name[16];

            snprintf(name, sizeof name, "%s%d", k == 9 ? "aten::item" : "op", k);
            add_row(b, &(struct row){'X', "cpu_op", name, 1, 1, at, 8});
        }
    }
    t = finish_valid(b);
    assert_int_equal(t->nsteps, 60);
    assert_int_equal(t->steps[11].end_ns - t->steps[11].begin_ns, 98);
    assert_true(t->steps[11].flags & RP_STEP_BREAK_AFTER);
    assert_int_equal(t->steps[12].begin_ns, 600 + 12 * 200 + 170);
    rp_trace_free(t);
}

/* `passes` through a model of a stem, some layers and a head, behind operators that make it. */
static uint32_t steps_of_model(int made, int layers, int passes, const char *stem, bool own)
{
    static const char *const layer[] = {"conv", "norm", "relu", "conv", "norm", "add", "relu"};
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int64_t at = 0;
    uint32_t n;

    if (own)
        rp_builder_borrow_trace(b)->framework = str_of(b, "reprise");
    for (int k = 0; k < made; k++, at += 10)
        add_row(b, &(struct row){'X', "cpu_op", k % 5 ? "normal_" : "fill_", 1, 1, at, 8});
    for (int pass = 0; pass < passes; pass++) {
        add_row(b, &(struct row){'X', "cpu_op", stem, 1, 1, at, 8});
        at += 10;
        for (int k = 0; k < layers * 7; k++, at += 10)
            add_row(b, &(struct row){'X', "cpu_op", layer[k % 7], 1, 1, at, 8});
        add_row(b, &(struct row){'X', "cpu_op", "linear", 1, 1, at, 8});
        at += 10;
    }
    t = finish_valid(b);
    n = t->nsteps;
    if (n) {
        assert_int_equal(t->steps[0].source, RP_STEP_REPETITION);
        assert_int_equal(t->steps[0].begin_ns, made * 10);
        assert_int_equal(t->steps[1].begin_ns, made * 10 + (layers * 7 + 2) * 10);
    }
    rp_trace_free(t);
    return n;
}

static uint32_t steps_of_passes(int passes, const char *stem, bool own)
{
    return steps_of_model(400, 8, passes, stem, own);
}

/* A loop of a model alone, of which a recording has the whole run. One pass is not as many as it
   has layers. */
static void test_passes_through_a_model(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_of_passes(20, "pool", true), 20);
    assert_int_equal(steps_of_passes(6, "pool", true), 6);
    assert_int_equal(steps_of_passes(20, "pool", false), 0);
    assert_int_equal(steps_of_passes(1, "pool", true), 0);
    assert_int_equal(steps_of_passes(1, "aten::embedding", true), 0);
}

/* Four pictures of some passes through a model of eight layers: steps are the passes, of which a
   picture has five or more, else the pictures. */
static uint32_t steps_of_pictures(int passes, int64_t first_ns)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int64_t at = 0;
    uint32_t n;

    for (int picture = 0; picture < 4; picture++) {
        add_row(b, &(struct row){'X', "kernel", "random", 0, 7, at += 50, 8});
        at += picture ? 0 : first_ns;
        for (int k = 0; k < passes * 41; k++) {
            char name[16];

            snprintf(name, sizeof name, "k%d", k % 41 ? k % 41 % 5 : 9);
            at += k % 41 ? 10 : 15;
            add_row(b, &(struct row){'X', "kernel", name, 0, 7, at, 8});
        }
        add_row(b, &(struct row){'X', "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 0, 7,
                                 at += 10, 8});
    }
    t = finish_valid(b);
    n = t->nsteps;
    assert_int_equal(t->steps[0].flags & RP_STEP_WARM_UP ? 1 : 0, first_ns > 0);
    rp_trace_free(t);
    return n;
}

static void steps_are_passes_of_a_picture(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_of_pictures(20, 0), 80);
    assert_int_equal(steps_of_pictures(5, 600), 20);
    assert_int_equal(steps_of_pictures(4, 0), 4);
}

/* Layers of 7 operators are found in passes of 30, which have four of them, but not in 23. */
static void layers_are_in_a_quarter_of_a_pass(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_of_model(0, 4, 40, "pool", true), 40);
    assert_int_equal(steps_of_model(0, 3, 40, "pool", true), 0);
}

/* The first quarter is skipped: five passes of seven are left, but only four of six. */
static void five_passes_through_a_model(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_of_model(0, 8, 7, "pool", true), 7);
    assert_int_equal(steps_of_model(0, 8, 6, "pool", true), 0);
}

/* The first quarter is skipped: of 440 passes 330 are left, of 360 only 270. */
static void more_passes_than_a_model_has_layers(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_of_model(0, 0, 440, "pool", true), 440);
    assert_int_equal(steps_of_model(0, 0, 360, "pool", true), 0);
    assert_int_equal(steps_of_model(0, 0, 440, "pool", false), 0);
}

/* 20 periods of five kernels; the program waits for the first ones, or an operator does. */
static uint32_t steps_of_waits(int waits, bool in_operator)
{
    static const char *const kernel[] = {"route", "sort", "grouped", "silu", "add"};
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;

    for (int step = 0; step < 20; step++) {
        int64_t at = step * 200;

        for (int k = 0; k < 5; k++)
            add_row(b, &(struct row){'X', "kernel", kernel[k], 0, 7, at + 20 * k, 15});
        if (in_operator)
            add_row(b, &(struct row){'X', "cpu_op", "aten::nonzero", 1, 1, at + 50, 80});
        if (step < waits)
            add_row(b,
                    &(struct row){'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, at + 60, 50});
    }
    t = finish_valid(b);
    uint32_t n = t->nsteps;
    rp_trace_free(t);
    return n;
}

static void periods_that_the_program_waits_for(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_of_waits(19, false), 20);
    assert_int_equal(steps_of_waits(17, false), 0);
    assert_int_equal(steps_of_waits(19, true), 0);
}

int test_steps(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiler_steps),
        cmocka_unit_test(test_profiler_step_without_number),
        cmocka_unit_test(test_steps_thread),
        cmocka_unit_test(test_step_num_and_groups),
        cmocka_unit_test(groups_of_the_device),
        cmocka_unit_test(one_thread_has_the_numbers),
        cmocka_unit_test(test_steps_threads),
        cmocka_unit_test(the_longest_of_equal_threads),
        cmocka_unit_test(test_xla_modules),
        cmocka_unit_test(test_annotations),
        cmocka_unit_test(annotations_that_cover_most),
        cmocka_unit_test(annotations_have_edges),
        cmocka_unit_test(test_weak_annotations),
        cmocka_unit_test(test_periods),
        cmocka_unit_test(test_repetition),
        cmocka_unit_test(test_layers_are_no_steps),
        cmocka_unit_test(test_repetition_ends),
        cmocka_unit_test(test_repetition_of_operators),
        cmocka_unit_test(test_repetition_goes_on),
        cmocka_unit_test(test_passes_through_a_model),
        cmocka_unit_test(steps_are_passes_of_a_picture),
        cmocka_unit_test(a_short_period_may_differ_a_little),
        cmocka_unit_test(layers_are_in_a_quarter_of_a_pass),
        cmocka_unit_test(five_passes_through_a_model),
        cmocka_unit_test(more_passes_than_a_model_has_layers),
        cmocka_unit_test(periods_that_the_program_waits_for),
    };

    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
