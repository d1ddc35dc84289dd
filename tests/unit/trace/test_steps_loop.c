/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of loops without marks: by optimizers, executables, data loaders and passes. */
#include "base/filled.h"
#include "trace/finish/loop_work.h"
#include "trace_fixtures.h"

#define MOST 4000

/* A thread that runs one thing after the other. */
struct loop_thread {
    struct row rows[MOST];
    size_t n;
    int64_t now;
};

static void run(struct loop_thread *t, const char *category, const char *name, int64_t ns)
{
    t->rows[t->n++] = (struct row){'X', category, name, 1, 1, t->now, ns};
    t->now += ns;
}

static void run_operators(struct loop_thread *t, const char *name, size_t count, int64_t ns)
{
    for (size_t i = 0; i < count; i++)
        run(t, "cpu_op", name, ns);
}

/* Twenty operators of 10 ns, then the optimizer, which runs two more: 220 ns. */
static void train(struct loop_thread *t, const char *optimizer, const char *model)
{
    int64_t begin;

    run_operators(t, model, 20, 10);
    begin = t->now;
    run_operators(t, "aten::_foreach_add_", 2, 10);
    t->rows[t->n++] = (struct row){'X', "user_annotation", optimizer, 1, 1, begin, 20};
}

#define OF(thread) trace_of((thread).rows, (thread).n)

/* A step ends with the optimizer; a loss that is read every fifth step makes no step of five. */
static void test_optimizer(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    run_operators(&t, "aten::normal_", 100, 10); /* start-up */
    for (int i = 0; i < 15; i++) {
        train(&t, "Optimizer.step#Adam.step", "aten::mm");
        if (i % 5 == 4)
            run(&t, "cpu_op", "aten::item", 10);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 15);
    assert_int_equal(trace->steps[0].source, RP_STEP_OPTIMIZER);
    assert_int_equal(trace->steps[0].begin_ns, 1000);
    assert_int_equal(trace->steps[0].end_ns, 1220);
    assert_int_equal(trace->steps[5].begin_ns, trace->steps[4].end_ns);
    assert_int_equal(trace->steps[5].end_ns - trace->steps[5].begin_ns, 230);
    assert_int_equal(trace->steps[14].flags, 0);
    rp_trace_free(trace);
}

/* A recorder that keeps long operators only: rounds differ a little by chance, and none is several,
   whatever lag happens to look alike. */
static void test_operators_by_chance(void **state)
{
    UNUSED_STATE(state);
    for (uint32_t seed = 1; seed <= 40; seed++) {
        static struct loop_thread t;
        struct rp_trace *trace;
        uint32_t random = seed * 2654435761u;

        t.n = 0;
        t.now = 0;
        for (int i = 0; i < 80; i++) {
            for (random = random * 1664525u + 1013904223u; (random >> 24) < 40;
                 random = random * 1664525u + 1013904223u)
                run_operators(&t, "aten::t", 1 + (random >> 20 & 1), 10);
            train(&t, "Optimizer.step#AdamW.step", "aten::mm");
        }
        trace = OF(t);
        assert_int_equal(trace->nsteps, 80);
        rp_trace_free(trace);
    }
}

/* Two optimizers of one class, for two networks: a step has both. */
static void test_two_optimizers(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 12; i++) {
        train(&t, "Optimizer.step#Adam.step", "aten::conv2d");
        train(&t, "Optimizer.step#Adam.step", "aten::conv_transpose2d");
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[3].begin_ns, 3 * 440);
    assert_int_equal(trace->steps[3].end_ns, 4 * 440);
    rp_trace_free(trace);
}

/* The same with equal work: the recorder tells the optimizers apart. */
static void test_optimizers_told_apart(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 24; i++) {
        train(&t, "Optimizer.step#Adam.step", "aten::mm");
        if (i) /* while there is one, nothing needs to be told */
            t.rows[t.n++] = (struct row){'i', "reprise", i % 2 ? "optimizer 2" : "optimizer 1",
                                         1,   1,         t.now - 1};
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[3].begin_ns, 3 * 440);
    assert_int_equal(trace->steps[3].end_ns, 4 * 440);
    rp_trace_free(trace);
}

/* An evaluation between two epochs is not a part of a step. */
static void test_evaluation(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    uint32_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 20; i++) {
        if (i == 10)
            run_operators(&t, "aten::linear", 200, 10);
        train(&t, "Optimizer.step#SGD.step", "aten::mm");
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 20);
    for (i = 0; i < 20; i++) {
        assert_int_equal(trace->steps[i].end_ns - trace->steps[i].begin_ns, 220);
        assert_int_equal(trace->steps[i].flags, i == 9 ? RP_STEP_BREAK_AFTER : 0);
    }
    assert_int_equal(trace->steps[10].begin_ns - trace->steps[9].end_ns, 2000);
    rp_trace_free(trace);
}

/* Ten steps of 22 operators and 220 ns; what runs between two of them is not a part of a step if it
   is more than a quarter, in operators and in time. */
static bool is_something_else(size_t operators, int64_t ns)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    bool is;

    t.n = 0;
    t.now = 0;
    for (int i = 0; i < 10; i++) {
        if (i == 5)
            run_operators(&t, "aten::linear", operators, ns);
        train(&t, "Optimizer.step#SGD.step", "aten::mm");
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 10);
    is = trace->steps[4].flags & RP_STEP_BREAK_AFTER;
    rp_trace_free(trace);
    return is;
}

static void a_quarter_more_is_something_else(void **state)
{
    UNUSED_STATE(state);
    assert_false(is_something_else(5, 20));
    assert_true(is_something_else(6, 10));
    assert_false(is_something_else(6, 9)); /* 54 ns; 55 would be a quarter */
}

static uint32_t steps_with(int rounds)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    uint32_t n;

    t.n = 0;
    t.now = 0;
    for (int i = 0; i < rounds; i++)
        train(&t, "Optimizer.step#SGD.step", "aten::mm");
    trace = OF(t);
    n = trace->nsteps;
    rp_trace_free(trace);
    return n;
}

static void three_rounds_are_a_loop(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_with(2), 0);
    assert_int_equal(steps_with(3), 3);
}

/* Every second update has one operator more, of n. */
static uint32_t steps_of_pairs(size_t n)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    uint32_t found;

    t.n = 0;
    t.now = 0;
    for (int i = 0; i < 24; i++) {
        run_operators(&t, "AddmmBackward0", n, 10);
        if (i % 2)
            run(&t, "cpu_op", "MmBackward0", 10);
        run(&t, "user_annotation", "Optimizer.step#SGD.step", 10);
    }
    trace = OF(t);
    found = trace->nsteps;
    rp_trace_free(trace);
    return found;
}

static void rounds_are_the_same_up_to_two_percent(void **state)
{
    size_t n = 20;

    UNUSED_STATE(state);
    while (n < 140 && steps_of_pairs(n) == 12)
        n++;
    assert_int_equal(steps_of_pairs(n), 24);
    assert_in_range(n, 46, 54);
}

/* Rounds are compared by counts of names, of which nothing may be left for the next comparison. */
static void comparisons_leave_no_counts(void **state)
{
    static const char *const losses[] = {"loss", NULL};
    struct rp_loop_work work = {0};
    struct rp_builder *b;

    UNUSED_STATE(state);
    assert_code(rp_builder_new(NULL, &b, NULL), RP_OK);
    for (int i = 0; i < 3; i++) {
        struct rp_loop_item item = {5 * i, 5 * i + 1, str_of(b, i == 1 ? "loss" : "mm"), 0};

        assert_code(rp_vec_push(&work.items, item, NULL), RP_OK);
    }
    assert_code(rp_vec_zeros(&work.count, 64, NULL), RP_OK);
    for (int i = 0; i < 2; i++) {
        assert_false(rp_loop_work_adds(&work, b, 0, 10, 10, 20, losses)); /* it lacks the loss */
        assert_false(rp_loop_work_adds(&work, b, 10, 20, 0, 10, losses)); /* it has one more */
        assert_true(rp_loop_work_adds(&work, b, 10, 20, 0, 10, losses + 1));
        assert_float_equal(rp_loop_work_differs(&work, 0, 10, 10, 20), 0.5, 0);
    }
    rp_loop_work_release(&work);
    rp_builder_free(b);
}

/* Operators that begin at 0, 5, 10 and 15, of which the second lasts until 30. */
static void work_is_found_by_time(void **state)
{
    struct rp_loop_work work = {0};
    struct rp_builder *b;

    UNUSED_STATE(state);
    assert_code(rp_builder_new(NULL, &b, NULL), RP_OK);
    for (int i = 0; i < 4; i++) {
        struct rp_loop_item item = {5 * i, i == 1 ? 30 : 5 * i + 1,
                                    str_of(b, i == 2 ? "loss" : "mm"), 0};

        assert_code(rp_vec_push(&work.items, item, NULL), RP_OK);
    }
    assert_int_equal(rp_loop_work_count(&work, 0, 10), 2);
    assert_int_equal(rp_loop_work_count(&work, 0, 11), 3);
    assert_int_equal(rp_loop_work_count(&work, 1, 10), 1);
    assert_int_equal(rp_loop_work_count(&work, 5, 5), 0);
    assert_int_equal(rp_loop_work_begin(&work, 10, 1), 5);
    assert_int_equal(rp_loop_work_begin(&work, 11, 1), 10);
    assert_int_equal(rp_loop_work_begin(&work, 10, 2), 0);
    assert_int_equal(rp_loop_work_begin(&work, 10, 3), 0); /* there is no more */
    assert_int_equal(rp_loop_work_begin(&work, 0, 1), INT64_MAX);
    assert_int_equal(rp_loop_work_end(&work, 0, 1), 1);
    assert_int_equal(rp_loop_work_end(&work, 0, 3), 30);
    assert_int_equal(rp_loop_work_end(&work, 10, 1), 11);
    assert_int_equal(rp_loop_work_end(&work, 10, 2), 16);
    assert_int_equal(rp_loop_work_end(&work, 10, 9), 16);
    assert_int_equal(rp_loop_work_end(&work, 16, 1), INT64_MIN);
    assert_false(rp_loop_work_has(&work, b, 0, 10, "os"));
    assert_true(rp_loop_work_has(&work, b, 0, 11, "os"));
    assert_true(rp_loop_work_has(&work, b, 10, 11, "os"));
    assert_false(rp_loop_work_has(&work, b, 11, 20, "os"));
    assert_true(rp_loop_work_has_only(&work, b, 0, 10, "m"));
    assert_false(rp_loop_work_has_only(&work, b, 0, 11, "m"));
    assert_true(rp_loop_work_has_only(&work, b, 10, 11, "lo"));
    assert_false(rp_loop_work_has_only(&work, b, 10, 11, "os"));
    assert_true(rp_loop_work_has_only(&work, b, 11, 12, "x"));
    rp_loop_work_release(&work);
    rp_builder_free(b);
}

/* The last 4 ns of a step of 220 ns may be missing. */
static void a_fiftieth_of_a_step_may_be_missing(void **state)
{
    UNUSED_STATE(state);
    for (int64_t missing = 4; missing <= 5; missing++) {
        static struct loop_thread t;
        struct rp_trace *trace;

        t.n = 0;
        t.now = 0;
        for (int i = 0; i < 10; i++)
            train(&t, "Optimizer.step#SGD.step", "aten::mm");
        t.rows[t.n++] =
            (struct row){'X', "reprise", "without detail", 1, 2, 4 * 220 - missing, 220 + missing};
        trace = OF(t);
        assert_int_equal(trace->nsteps, 10);
        assert_int_equal(trace->steps[3].flags & RP_STEP_NO_DETAIL,
                         missing == 5 ? RP_STEP_NO_DETAIL : 0);
        assert_int_equal(trace->steps[4].flags & RP_STEP_NO_DETAIL, RP_STEP_NO_DETAIL);
        rp_trace_free(trace);
    }
}

/* A pause without other work is part of the step: the loop waits for something. */
static void test_pause_belongs_to_step(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 10; i++) {
        t.now += i == 5 ? 1000 : 0;
        train(&t, "Optimizer.step#SGD.step", "aten::mm");
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 10);
    assert_int_equal(trace->steps[5].end_ns - trace->steps[5].begin_ns, 1220);
    assert_int_equal(trace->steps[4].flags, 0);
    rp_trace_free(trace);
}

/* The first steps are slow and not judged; a slow one later is a finding. */
static void test_warm_up(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    int i, k;

    UNUSED_STATE(state);
    for (i = 0; i < 10; i++) {
        for (k = 0; k < 20; k++)
            run(&t, "cpu_op", "aten::mm", i < 2 || i == 7 ? 100 : 10);
        t.rows[t.n++] =
            (struct row){'X', "user_annotation", "Optimizer.step#Adam.step", 1, 1, t.now - 5, 5};
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 10);
    for (i = 0; i < 10; i++)
        assert_int_equal(trace->steps[i].flags, i < 2 ? RP_STEP_WARM_UP : 0);
    rp_trace_free(trace);
}

/* Of most steps only the mark was recorded: they are steps, but not judged. */
static void test_steps_without_detail(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 30; i++) {
        if (i % 10 < 3) {
            train(&t, "Optimizer.step#Adam.step", "aten::mm");
        } else {
            t.now += 200;
            run(&t, "user_annotation", "Optimizer.step#Adam.step", 20);
        }
    }
    for (i = 0; i < 3; i++) /* the recorder notes it shortly after a step has ended */
        t.rows[t.n++] =
            (struct row){'X', "reprise", "without detail", 1, 2, 220 * (10 * i + 3) + 5, 220 * 7};
    trace = OF(t);
    assert_int_equal(trace->nsteps, 30);
    for (i = 0; i < 30; i++) {
        assert_int_equal(trace->steps[i].end_ns, 220 * (i + 1));
        /* nor is the step in which detail begins again */
        assert_int_equal(trace->steps[i].flags,
                         i == 0 || i % 10 == 1 || i % 10 == 2 ? 0 : RP_STEP_NO_DETAIL);
    }
    rp_trace_free(trace);
}

/* Where detail ends in a step, the work of its end is missing, and would look like idle time. */
static void test_detail_ends_in_a_step(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    int i, complete;

    UNUSED_STATE(state);
    for (complete = 1; complete >= 0; complete--) {
        t.n = 0;
        t.now = 0;
        for (i = 0; i < 30; i++)
            train(&t, "Optimizer.step#Adam.step", "aten::mm");
        for (i = 0; i < 30; i += complete ? 10 : 2)
            t.rows[t.n++] = (struct row){'X', "reprise",     "without detail",    1,
                                         2,   220 * i + 130, complete ? 440 : 220};
        trace = OF(t);
        assert_int_equal(trace->nsteps, 30);
        for (i = 1; i < 30; i++)
            assert_int_equal(trace->steps[i].flags & RP_STEP_NO_DETAIL,
                             (complete ? i % 10 <= 2 : i % 2) ? RP_STEP_NO_DETAIL : 0);
        rp_trace_free(trace);
    }
}

/* Of several executables the one that takes most time, not counting its first call, which compiles;
   two calls of it in a round, with another executable after them, are one step. */
static void test_executables(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    run(&t, "user_annotation", "jit_init", 5000);
    for (int i = 0; i < 10; i++) {
        run(&t, "user_annotation", "jit_gradients", i ? 100 : 9000);
        run(&t, "user_annotation", "jit_gradients", 100);
        run(&t, "user_annotation", "jit_apply", 20);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 10);
    assert_int_equal(trace->steps[0].source, RP_STEP_EXECUTABLE);
    assert_int_equal(trace->steps[0].flags, RP_STEP_WARM_UP);
    assert_int_equal(trace->steps[1].begin_ns, 5000 + 9120);
    assert_int_equal(trace->steps[1].end_ns, 5000 + 9120 + 220);
    assert_int_equal(trace->steps[9].end_ns, 5000 + 9120 + 9 * 220);
    rp_trace_free(trace);
}

/* Two executables take turns, `jit_short` and the longer `jit_long`; a kernel is launched so long
   after each begin of the first one. The first call of the other one, which does not count,
   launches a long kernel. */
static const char *main_executable(int64_t launched_ns)
{
    static struct loop_thread t;
    static char name[32];
    struct rp_trace *trace;

    t.n = 0;
    t.now = 0;
    for (int i = 0; i < 8; i++) {
        int64_t begin = t.now, kernel = i ? 5 : 1000000;

        run(&t, "user_annotation", "jit_short", 30);
        t.now += 10;
        run(&t, "user_annotation", "jit_long", 100);
        t.rows[t.n++] = (struct row){
            'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, begin + (i ? launched_ns : 50),
            2,   i + 1};
        t.rows[t.n++] = (struct row){'X', "kernel", "k", 0, 7, t.now, kernel, i + 1, 7};
        t.now += 10;
    }
    trace = OF(t);
    assert_true(trace->nsteps >= 7);
    snprintf(name, sizeof name, "%s", rp_trace_str(trace, trace->steps[2].name));
    rp_trace_free(trace);
    return name;
}

/* Device work belongs to the call that it was launched in, and decides before the host's time. */
static void test_work_of_executables(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(main_executable(0), "jit_short");
    assert_string_equal(main_executable(28), "jit_short");
    assert_string_equal(main_executable(30), "jit_long"); /* in neither: the longer one */
    assert_string_equal(main_executable(38), "jit_long");
    assert_string_equal(main_executable(40), "jit_long");
}

/* A loop of evaluation has neither, but asks for batches. */
static void test_loader(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 8; i++) {
        run(&t, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            30);
        run_operators(&t, "aten::linear", 10, 10);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 8);
    assert_int_equal(trace->steps[0].source, RP_STEP_LOADER);
    assert_int_equal(trace->steps[2].begin_ns, 260);
    assert_int_equal(trace->steps[2].end_ns, 390);
    assert_int_equal(trace->steps[7].end_ns, 8 * 130);
    rp_trace_free(trace);
}

/* Generation: each token is a forward pass, in which both words and positions are looked up. */
static void test_forward(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    run_operators(&t, "aten::normal_", 50, 10);
    for (int i = 0; i < 12; i++) {
        run_operators(&t, "aten::embedding", 2, 10);
        run_operators(&t, "aten::linear", 30, 10);
        run(&t, "cpu_op", "aten::argmax", 10);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[0].source, RP_STEP_FORWARD);
    assert_int_equal(trace->steps[0].begin_ns, 500);
    assert_int_equal(trace->steps[11].end_ns, 500 + 12 * 330);
    rp_trace_free(trace);
}

/* One pass of a model whose layers all look something up: nothing repeats but the layers. With the
   names of all parts in each round, the same are passes. */
static void test_layers_are_no_steps(void **state)
{
    static const char *const parts[] = {"F (block.0)", "F (block.1)", "F (block.2)", "F (block.3)",
                                        "F (block.4)", "F (block.5)", "F (block.6)", "F (block.7)"};
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int passes = 0; passes < 2; passes++) {
        struct loop_thread t = {0};

        for (int i = 0; i < 8; i++) {
            run_operators(&t, "aten::embedding", 1, 10);
            for (int k = passes ? 0 : i; k <= (passes ? 7 : i); k++)
                run(&t, "user_annotation", parts[k], 10);
            run_operators(&t, "aten::linear", 30, 10);
        }
        trace = OF(t);
        assert_int_equal(trace->nsteps, passes ? 8 : 0);
        rp_trace_free(trace);
    }
}

/* Whether eight passes are steps: names after `name`, which has a place for a number, for parts of
   a model are in one pass each, in the first `once` of them; others are in all. */
static bool are_steps(const char *name, int once, int often)
{
    static const char *const parts[] = {"F (common.0)", "F (common.1)", "F (common.2)",
                                        "F (common.3)", "F (common.4)", "F (common.5)"};
    static struct loop_thread t;
    char names[8][40];
    struct rp_trace *trace;
    bool are;

    t.n = 0;
    t.now = 0;
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof names[i], "%s%d%s", name, i, strchr(name, '(') ? ")" : "");
        run_operators(&t, "aten::embedding", 1, 10);
        if (i < once)
            run(&t, "user_annotation", names[i], 10);
        for (int k = 0; k < often; k++)
            run(&t, "user_annotation", parts[k], 10);
        run_operators(&t, "aten::linear", 30, 10);
    }
    trace = OF(t);
    are = trace->nsteps == 8 && trace->steps[0].source == RP_STEP_FORWARD;
    rp_trace_free(trace);
    return are;
}

/* In more than half of the passes, and more of them than of those that are in several. */
static void layers_have_parts_of_their_own(void **state)
{
    UNUSED_STATE(state);
    assert_true(are_steps("F (block.", 1, 0));
    assert_true(are_steps("F (block.", 4, 0));
    assert_false(are_steps("F (block.", 5, 0));
    assert_false(are_steps("F (block.", 5, 4));
    assert_true(are_steps("F (block.", 5, 5));
    assert_false(are_steps("F (block.", 6, 5));
}

static void parts_of_a_model_are_numbered(void **state)
{
    UNUSED_STATE(state);
    assert_false(are_steps("block.", 8, 0));
    assert_false(are_steps("nn.Module: T5Block_", 8, 0));
    assert_true(are_steps("nn.Module: T5Block.", 8, 0));
    assert_true(are_steps("block_", 8, 0));
    assert_true(are_steps("block", 8, 0));
    assert_true(are_steps("block.x", 8, 0));
    assert_true(are_steps("block.4x", 8, 0));
    assert_false(are_steps("block.x.", 8, 0)); /* the second place */
}

/* Names that look like steps, but have none of the work in them, do not hide the loop. */
static void test_marks_in_start_up(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 5; i++)
        run(&t, "user_annotation", "pass batch-norm-step", 50);
    for (int i = 0; i < 10; i++)
        train(&t, "Optimizer.step#Adam.step", "aten::mm");
    trace = OF(t);
    assert_int_equal(trace->nsteps, 10);
    assert_int_equal(trace->steps[0].source, RP_STEP_OPTIMIZER);
    rp_trace_free(trace);
}

/* Of 40 rounds with an optimizer the first ones are also marked: 9 are a part of the program. */
static void steps_cover_a_quarter_of_what_others_do(void **state)
{
    UNUSED_STATE(state);
    for (int marked = 9; marked <= 11; marked += 2) {
        static struct loop_thread t;
        char name[40][24];
        struct rp_trace *trace;

        t.n = 0;
        t.now = 0;
        for (int i = 0; i < 40; i++) {
            snprintf(name[i], sizeof name[i], "iteration %d", i);
            if (i < marked)
                t.rows[t.n++] = (struct row){'X', "user_annotation", name[i], 1, 1, t.now, 220};
            train(&t, "Optimizer.step#Adam.step", "aten::mm");
        }
        trace = OF(t);
        assert_int_equal(trace->nsteps, marked == 11 ? 11 : 40);
        assert_int_equal(trace->steps[0].source,
                         marked == 11 ? RP_STEP_ANNOTATION : RP_STEP_OPTIMIZER);
        rp_trace_free(trace);
    }
}

/* The profiler pauses between windows: what lies between is not a part of a step. */
static void test_windows_of_the_profiler(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 0, 100},
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 100, 100},
        {'X', "user_annotation", "ProfilerStep#8", 1, 1, 5000, 100},
        {'X', "user_annotation", "ProfilerStep#9", 1, 1, 5200,
         100}, /* as long as a step: no pause */
        {'X', "cpu_op", "aten::mm", 1, 1, 5210, 10},
        /* steps 10 and 11 were not recorded, though the profiler left something behind */
        {'i', "cpu_instant_event", "[memory]", 1, 1, 5301, 0},
        {'X', "user_annotation", "ProfilerStep#12", 1, 1, 5350, 100},
    };
    struct rp_trace *trace = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(trace->nsteps, 5);
    assert_int_equal(trace->steps[3].flags, RP_STEP_BREAK_AFTER);
    assert_int_equal(trace->steps[0].flags, 0);
    assert_int_equal(trace->steps[1].flags, RP_STEP_BREAK_AFTER);
    assert_int_equal(trace->steps[2].flags, 0);
    rp_trace_free(trace);
}

/* Five updates of a critic for one of a generator, by optimizers of one class: a step has all. */
static void test_unequal_optimizers(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 5; k++) {
            run(&t, "cpu_op", "aten::randn", 10);
            train(&t, "Optimizer.step#RMSprop.step", "AddmmBackward0");
        }
        run_operators(&t, "AddmmBackward0", 3, 10);
        train(&t, "Optimizer.step#RMSprop.step", "AddmmBackward0");
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 8);
    assert_int_equal(trace->steps[3].end_ns - trace->steps[3].begin_ns, 5 * 230 + 250);
    rp_trace_free(trace);
}

/* An evaluation after every fifth step makes no step of five. */
static void test_regular_evaluation(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 25; i++) {
        run_operators(&t, "AddmmBackward0", 4, 10);
        train(&t, "Optimizer.step#Sign.step", "aten::linear");
        if (i % 5 == 4)
            run_operators(&t, "aten::linear", 60, 10);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 25);
    assert_int_equal(trace->steps[5].end_ns - trace->steps[5].begin_ns, 260);
    assert_int_equal(trace->steps[4].flags, RP_STEP_BREAK_AFTER);
    rp_trace_free(trace);
}

/* The steps found in 25 rounds of n operators, where an evaluation follows every fifth, and one of
   every five has another operator in place of one. */
static uint32_t steps_beside_evaluation(size_t n)
{
    static struct loop_thread t;

    t.n = 0;
    t.now = 0;
    for (int i = 0; i < 25; i++) {
        run_operators(&t, i % 5 == 2 ? "aten::sort" : "AddmmBackward0", 1, 10);
        run_operators(&t, "AddmmBackward0", n - 23, 10);
        train(&t, "Optimizer.step#Sign.step", "aten::linear");
        if (i % 5 == 4)
            run_operators(&t, "aten::linear", 60, 10);
    }
    struct rp_trace *trace = OF(t);
    uint32_t nsteps = trace->nsteps;
    rp_trace_free(trace);
    return nsteps;
}

/* With a fiftieth of other work, a round is another one, and five of them are a step. */
static void an_evaluation_follows_rounds_that_are_the_same(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_beside_evaluation(50), 5);
    assert_int_equal(steps_beside_evaluation(51), 25);
}

/* One operation of an executable that runs on the host, after the call of it. */
static void run_operation(struct loop_thread *t, const char *module, int64_t run_id, int64_t ns)
{
    t->rows[t->n++] = (struct row){'X', "cpu_op", "fusion", 1,      2, t->now,       ns,     0,
                                   0,   0,        "run_id", run_id, 0, "hlo_module", module, NULL,
                                   0,   "hlo_op", "fusion"};
    t->now += ns;
}

/* On the CPU calls of JAX return at once: the runs of the executable that works most are steps, and
   other executables between them are an evaluation. What has no text for its module, or no number
   for its run, is no such operation. */
static void test_runs_on_the_host(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;
    int64_t id = 0;

    UNUSED_STATE(state);
    run(&t, "cpu_op", "PjitFunction(init)", 90000); /* compiles */
    run_operation(&t, "jit_init", ++id, 10);
    for (int i = 0; i < 60; i++, t.now += 1000) {
        struct row number = {'X',
                             "cpu_op",
                             "fusion",
                             1,
                             2,
                             t.now,
                             1000,
                             .key = "run_id",
                             .value = ++id,
                             .key2 = "hlo_module",
                             .value2 = 1};
        struct row text = {'X',
                           "cpu_op",
                           "fusion",
                           1,
                           2,
                           t.now,
                           1000,
                           .text_key = "run_id",
                           .text = "a text",
                           .text_key2 = "hlo_module",
                           .text2 = "jit_other"};

        t.rows[t.n++] = i % 2 ? number : text;
    }
    for (int i = 0; i < 12; i++) {
        run(&t, "cpu_op", "PjitFunction(update)", 5);
        id++;
        for (int k = 0; k < 3; k++)
            run_operation(&t, "jit_update", id, 100);
        for (int k = 0; i % 4 == 3 && k < 6; k++)
            run_operation(&t, "jit_loss", ++id, 100);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[0].source, RP_STEP_EXECUTABLE);
    assert_string_equal(rp_trace_str(trace, trace->steps[0].name), "jit_update");
    assert_int_equal(trace->steps[3].flags, RP_STEP_BREAK_AFTER);
    rp_trace_free(trace);
}

/* Validation asks for batches as training does, but has no backward pass; and the last request of
   an epoch gets no batch. */
static void test_loader_of_validation(void **state)
{
    static const char next[] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 6; i++) {
            run(&t, "user_annotation", next, 30);
            run_operators(&t, "aten::linear", 10, 10);
            run_operators(&t, "AddmmBackward0", 10, 10);
        }
        run(&t, "user_annotation", next, 30);
        for (int i = 0; i < 8; i++) {
            run(&t, "user_annotation", next, 30);
            run_operators(&t, "aten::linear", 10, 10);
        }
        run(&t, "user_annotation", next, 30);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[0].source, RP_STEP_LOADER);
    assert_int_equal(trace->steps[5].end_ns - trace->steps[5].begin_ns, 230);
    assert_int_equal(trace->steps[5].flags, RP_STEP_BREAK_AFTER);
    rp_trace_free(trace);
}

/* Keras and other loops of TensorFlow call a function once a step. */
static void test_functions_of_tensorflow(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 10; i++)
            run(&t, "user_annotation", "EagerLocalExecute: __inference_train_7", 100);
        for (int i = 0; i < 4; i++)
            run(&t, "user_annotation", "EagerLocalExecute: __inference_test_9", 100);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 20);
    assert_int_equal(trace->steps[9].flags, RP_STEP_BREAK_AFTER);
    assert_int_equal(trace->steps[9].end_ns, 1000);
    rp_trace_free(trace);
}

/* An operator with the number of the next node, or 0: while the graph is off. */
static void run_numbered(struct loop_thread *t, const char *name, int64_t number, int64_t ns)
{
    run(t, "cpu_op", name, ns);
    if (number) {
        t->rows[t->n - 1].key = "Sequence number";
        t->rows[t->n - 1].value = number;
    }
}

/* An input, a forward pass of four operators, which makes two nodes each, and its backward pass:
 * 100 ns. */
static void run_passes(struct loop_thread *t, int64_t *number)
{
    run_numbered(t, "aten::randn", *number, 10);
    for (int k = 0; k < 4; k++, *number += 2)
        run_numbered(t, "aten::linear", *number, 10);
    run_numbered(t, "aten::ones_like", 0, 10);
    run_operators(t, "autograd::engine::evaluate_function: AddmmBackward0", 4, 10);
}

/* Parameters are updated by hand: a step begins with its input and has all micro-batches and the
   update; a loss that is read and an evaluation now and then change nothing. */
static void test_updates_by_hand(void **state)
{
    UNUSED_STATE(state);
    for (int batches = 1; batches <= 2; batches++) {
        struct loop_thread t = {0};
        struct rp_trace *trace;
        int64_t number = 7, each = 100 * batches + 60;

        run_operators(&t, "aten::normal_", 30, 10);
        for (int i = 0; i < 20; i++) {
            for (int k = 0; k < batches; k++)
                run_passes(&t, &number);
            for (int k = 0; k < 6; k++)
                run_numbered(&t, "aten::sub_", 0, 10);
            if (i % 5 == 4)
                run_numbered(&t, "aten::item", number, 1);
            for (int k = 0; i == 11 && k < 80; k++)
                run_numbered(&t, "aten::linear", 0, 10);
        }
        trace = OF(t);
        assert_int_equal(trace->nsteps, 20);
        assert_int_equal(trace->steps[0].source, RP_STEP_BACKWARD);
        assert_int_equal(trace->steps[0].begin_ns, 300);
        assert_int_equal(trace->steps[1].begin_ns, 300 + each);
        assert_int_equal(trace->steps[1].end_ns, 300 + 2 * each);
        assert_int_equal(trace->steps[11].end_ns, 300 + 12 * each + 2);
        assert_int_equal(trace->steps[11].flags, RP_STEP_BREAK_AFTER);
        assert_int_equal(trace->steps[12].begin_ns, 300 + 12 * each + 802);
        rp_trace_free(trace);
    }
}

/* torch.func updates parameters with the graph on: the operators between two passes are the update,
   up to the one that makes a node. Without any of them passes are micro-batches of one step. */
static void test_updates_with_the_graph_on(void **state)
{
    UNUSED_STATE(state);
    for (int updates = 0; updates <= 6; updates += 6) {
        struct loop_thread t = {0};
        struct rp_trace *trace;
        int64_t number = 7;

        for (int i = 0; i < 12; i++) {
            for (int k = 0; k < 4; k++, number += 2)
                run_numbered(&t, "aten::linear", number, 10);
            run_operators(&t, "autograd::engine::evaluate_function: AddmmBackward0", 4, 10);
            for (int k = 0; k < updates; k++)
                run_numbered(&t, "aten::sub", number, 10);
        }
        trace = OF(t);
        assert_int_equal(trace->nsteps, updates ? 12 : 0);
        if (updates)
            assert_int_equal(trace->steps[3].begin_ns, 3 * 140);
        rp_trace_free(trace);
    }
}

/* Hooks of the backward pass update each of 20 parameters when its gradient is there: the last
   update ends the step, whether the recorder told these optimizers apart or not. */
static void test_updates_in_backward(void **state)
{
    static const char *const owner[] = {
        "optimizer 1",  "optimizer 2",  "optimizer 3",  "optimizer 4",  "optimizer 5",
        "optimizer 6",  "optimizer 7",  "optimizer 8",  "optimizer 9",  "optimizer 10",
        "optimizer 11", "optimizer 12", "optimizer 13", "optimizer 14", "optimizer 15",
        "optimizer 16", "optimizer 17", "optimizer 18", "optimizer 19", "optimizer 20"};

    UNUSED_STATE(state);
    for (int told = 0; told < 2; told++) {
        struct loop_thread t = {0};
        struct rp_trace *trace;

        for (int i = 0; i < 10; i++) {
            run_operators(&t, "aten::linear", 20, 10);
            for (int k = 0; k < 20; k++) {
                run(&t, "cpu_op", "autograd::engine::evaluate_function: AccumulateGrad", 10);
                t.rows[t.n++] = (struct row){
                    'X', "user_annotation", "Optimizer.step#SGD.step", 1, 1, t.now - 8, 6};
                if (told)
                    t.rows[t.n++] = (struct row){'i', "reprise", owner[k], 1, 1, t.now - 3};
            }
        }
        trace = OF(t);
        assert_int_equal(trace->nsteps, 10);
        assert_int_equal(trace->steps[0].source, RP_STEP_OPTIMIZER);
        assert_int_equal(trace->steps[4].begin_ns, 4 * 400 - 2);
        assert_int_equal(trace->steps[4].end_ns, 5 * 400 - 2);
        rp_trace_free(trace);
    }
}

/* Of some steps only the optimizer was recorded: a log that is written every fifth step makes no
   step of five or ten. */
static void test_optimizer_without_detail(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 30; i++) {
        if (i % 10 >= 1 && i % 10 <= 3)
            run(&t, "user_annotation", "Optimizer.step#AdamW.step", 220);
        else
            train(&t, "Optimizer.step#AdamW.step", "MmBackward0");
        if (i % 5 == 4)
            run_operators(&t, "aten::item", 4, 10);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 30);
    assert_int_equal(trace->steps[0].source, RP_STEP_OPTIMIZER);
    rp_trace_free(trace);
}

/* A kernel of that duration on the device, launched by the last row. */
static void launched(struct loop_thread *t, const char *name, int64_t ns, int64_t graph)
{
    t->rows[t->n - 1].corr = (int64_t)t->n;
    t->rows[t->n] = (struct row){'X',
                                 "kernel",
                                 name,
                                 0,
                                 7,
                                 t->now,
                                 ns,
                                 .corr = (int64_t)t->n,
                                 .key = graph ? "graph id" : NULL,
                                 .value = graph};
    t->n++;
    t->now += ns;
}

/* Replays of a captured step: the graph with most device work marks them, not another one, and not
   the forward passes that ran before it was captured. */
static void test_graph_launches(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++) {
        run_operators(&t, "aten::embedding", 1, 10);
        run_operators(&t, "aten::mm", 20, 10);
    }
    for (int i = 0; i < 12; i++) {
        run(&t, "cuda_runtime", "cudaGraphLaunch", 5);
        launched(&t, "prepare", 10, 1);
        run(&t, "cuda_runtime", "cudaGraphLaunch", 5);
        launched(&t, "gemm", 80, 2);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[0].source, RP_STEP_REPLAY);
    assert_string_equal(rp_trace_str(trace, trace->steps[0].name), "launches of graph 2");
    assert_int_equal(trace->steps[5].end_ns - trace->steps[5].begin_ns, 100);
    rp_trace_free(trace);
}

/* Before it trains, a program may try compiled kernels on the device for longer than it trains. */
static void test_optimizer_after_trials(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    for (int i = 0; i < 6; i++) {
        run(&t, "cpu_op", "aten::embedding", 10);
        launched(&t, "trial", 5000, 0);
    }
    for (int i = 0; i < 12; i++) {
        run(&t, "cpu_op", "aten::mm", 10);
        launched(&t, "gemm", 80, 0);
        run(&t, "user_annotation", "Optimizer.step#Adam.step", 10);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[0].source, RP_STEP_OPTIMIZER);
    rp_trace_free(trace);
}

/* A step that is compiled as a whole is a region, also after it was compiled again; a smaller
   region in each step is a part of it. */
static void test_compiled_regions(void **state)
{
    static struct loop_thread t;
    struct rp_trace *trace;

    UNUSED_STATE(state);
    run_operators(&t, "aten::normal_", 30, 10);
    for (int i = 0; i < 12; i++) {
        run(&t, "cpu_op", i < 4 ? "Torch-Compiled Region: 0/0" : "Torch-Compiled Region: 0/1", 80);
        run(&t, "cpu_op", "Torch-Compiled Region: 1/0", 20);
    }
    trace = OF(t);
    assert_int_equal(trace->nsteps, 12);
    assert_int_equal(trace->steps[0].source, RP_STEP_COMPILED);
    assert_string_equal(rp_trace_str(trace, trace->steps[5].name), "Torch-Compiled Region: 0");
    assert_int_equal(trace->steps[5].begin_ns, 300 + 5 * 100);
    assert_int_equal(trace->steps[5].end_ns, 300 + 6 * 100);
    rp_trace_free(trace);
}

int test_steps_loop(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer),
        cmocka_unit_test(test_operators_by_chance),
        cmocka_unit_test(test_two_optimizers),
        cmocka_unit_test(test_optimizers_told_apart),
        cmocka_unit_test(test_unequal_optimizers),
        cmocka_unit_test(test_regular_evaluation),
        cmocka_unit_test(an_evaluation_follows_rounds_that_are_the_same),
        cmocka_unit_test(test_runs_on_the_host),
        cmocka_unit_test(test_loader_of_validation),
        cmocka_unit_test(test_functions_of_tensorflow),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_pause_belongs_to_step),
        cmocka_unit_test(a_quarter_more_is_something_else),
        cmocka_unit_test(three_rounds_are_a_loop),
        cmocka_unit_test(rounds_are_the_same_up_to_two_percent),
        cmocka_unit_test(comparisons_leave_no_counts),
        cmocka_unit_test(work_is_found_by_time),
        cmocka_unit_test(a_fiftieth_of_a_step_may_be_missing),
        cmocka_unit_test(steps_cover_a_quarter_of_what_others_do),
        cmocka_unit_test(test_warm_up),
        cmocka_unit_test(test_steps_without_detail),
        cmocka_unit_test(test_detail_ends_in_a_step),
        cmocka_unit_test(test_executables),
        cmocka_unit_test(test_work_of_executables),
        cmocka_unit_test(test_loader),
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_layers_are_no_steps),
        cmocka_unit_test(layers_have_parts_of_their_own),
        cmocka_unit_test(parts_of_a_model_are_numbered),
        cmocka_unit_test(test_marks_in_start_up),
        cmocka_unit_test(test_windows_of_the_profiler),
        cmocka_unit_test(test_updates_by_hand),
        cmocka_unit_test(test_updates_with_the_graph_on),
        cmocka_unit_test(test_updates_in_backward),
        cmocka_unit_test(test_compiled_regions),
        cmocka_unit_test(test_optimizer_without_detail),
        cmocka_unit_test(test_graph_launches),
        cmocka_unit_test(test_optimizer_after_trials),
    };

    return cmocka_run_group_tests_name("steps_loop", tests, NULL, NULL);
}
