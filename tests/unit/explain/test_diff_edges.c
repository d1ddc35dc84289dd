/* SPDX-License-Identifier: Apache-2.0 */
/* What `diff` calls comparable, unlike and mainly, on both sides of each edge. */
#include "diff_runs.h"

static bool has_note(const struct comparison *c, const char *text)
{
    for (size_t i = 0; i < c->root.nnotes; i++)
        if (strstr(c->root.notes[i], text))
            return true;
    return false;
}

/* One launched kernel in each step, 100 µs, and so much more idle time at the end of steps. */
static struct rp_trace *idles(int64_t kernel_ns, int64_t idle_ns)
{
    const struct call calls[] = {{NULL, "aten::mm", "[[8, 4], [4, 2]]", "gemm", kernel_ns}};
    const int64_t jitter[STEPS] = {idle_ns, idle_ns, idle_ns, idle_ns, idle_ns};

    return run_of(calls, 1, jitter);
}

static void what_mainly_changed_has_an_edge(void **state)
{
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, idles(100000, 0), idles(140000, 10800), &all_rows); /* 27 % of 40 µs */
    assert_string_equal(c.root.mainly_text, "compute +40.0 µs, idle +10.8 µs");
    rp_arena_release(&c.arena);
    compare_traces(&c, idles(100000, 0), idles(140000, 9200), &all_rows); /* 23 % */
    assert_string_equal(c.root.mainly_text, "compute +40.0 µs");
    rp_arena_release(&c.arena);
}

/* Kernels that wait for operators which run for so long before they launch; what the host mainly
   ran while the device waited. */
static const char *mainly_ran(const int64_t *host_us, size_t n, struct rp_arena *arena)
{
    static const char *const names[] = {"prepare", "augment", "decode", "resize", "crop", "pad"};
    struct row rows[32] = {{'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 1000, 1},
                           {'X', "kernel", "first", 0, 7, 1000, 1000, 1, 7}};
    struct rp_trace_diff_part part;
    int64_t at = 2000;
    size_t used = 2;
    struct rp_trace *t;
    const char *found;

    for (size_t i = 0; i < n; i++) {
        int64_t end = at + host_us[i] * 1000, corr = 2 + (int64_t)i;

        rows[used++] = (struct row){'X', "cpu_op", names[i], 1, 1, at, end - at};
        rows[used++] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, end - 500, 500, corr};
        rows[used++] = (struct row){'X', "kernel", "gemm", 0, 7, end, 1000, corr, 7};
        at = end + 1000;
    }
    t = finish_valid(build_rows(rows, used));
    assert_code(rp_trace_diff_rank(t, NULL, NULL, true, arena, &part, NULL), RP_OK);
    found = part.cause_host[RP_GAP_NOT_LAUNCHED];
    assert_code(rp_part_adopt(&rp_trace_diff_part_type, &part, arena, NULL), RP_OK);
    rp_trace_free(t);
    return found;
}

static void what_the_host_mainly_ran_has_an_edge(void **state)
{
    static const int64_t few[] = {275, 242, 242, 241}, many[] = {230, 193, 193, 192, 192};
    struct rp_arena arena = {0};

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    assert_string_equal(mainly_ran(few, 4, &arena), "prepare"); /* 27.5 % */
    assert_null(mainly_ran(many, 5, &arena));                   /* 23 % is the most */
    rp_arena_release(&arena);
}

/* ------------------------------------------------------------------ comparable */

/* Whether two runs on devices of the same name are; `libraries`: what the new one uses. */
static bool are_comparable(struct rp_trace *a, struct rp_trace *b, const char *libraries)
{
    struct rp_trace_diff_part parts[2];
    struct rp_trace_diff_input in[2] = {{&parts[0], 0}, {&parts[1], 0}};
    struct comparison c = {0};
    bool comparable;

    make_part(&c, a, &parts[0]);
    make_part(&c, b, &parts[1]);
    for (size_t i = 0; i < 2; i++) {
        parts[i].device = "NVIDIA H100";
        parts[i].libraries = i ? libraries : "pytorch 2.11.0";
    }
    assert_code(rp_trace_diff_join(&in[0], 1, &in[1], 1, &all_rows, &c.arena, &c.root, NULL),
                RP_OK);
    comparable = c.root.comparable;
    assert_int_equal(comparable, !strstr(c.root.verdict_text, "different programs"));
    if (comparable)
        assert_int_equal(c.root.aligned_share < 0.5, has_note(&c, "less than half of the time"));
    rp_arena_release(&c.arena);
    rp_trace_free(a);
    rp_trace_free(b);
    return comparable;
}

/* Of 100 µs of the base so much is not in the new run. */
static bool is_comparable_without(int64_t ns)
{
    const struct call base[] = {{NULL, "aten::mm", "[[8, 4], [4, 2]]", "gemm", 100000 - ns},
                                {NULL, "aten::sort", "[[512]]", "sort", ns}};
    const struct call fresh[] = {{NULL, "aten::mm", "[[8, 4], [4, 2]]", "gemm", 100000 - ns}};

    return are_comparable(run_of(base, 2, none), run_of(fresh, 1, none), "pytorch 2.11.0");
}

/* An operator without shapes takes 40 of 100 µs, and `times` as long in another kernel; `gone` ns
   of the base are not in the new run. */
static bool is_comparable_unlike(int64_t times, int64_t gone, const char *libraries)
{
    const struct call base[] = {{NULL, "aten::mm", NULL, "gemm", 40000},
                                {NULL, "aten::gelu", "[[8, 2]]", "gelu", 60000 - gone},
                                {NULL, "aten::sort", "[[512]]", "sort", gone}};
    const struct call fresh[] = {{NULL, "aten::mm", NULL, "sgemm", 40000 * times},
                                 {NULL, "aten::gelu", "[[8, 2]]", "gelu", 60000 - gone}};

    return are_comparable(run_of(base, gone ? 3 : 2, none), run_of(fresh, 2, none), libraries);
}

static void comparable_runs_have_edges(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_comparable_without(45000));
    assert_false(is_comparable_without(55000));
    /* calls that take over 16 times as long are not counterparts where the libraries differ, ... */
    assert_true(is_comparable_unlike(15, 0, "jax 0.7"));
    assert_false(is_comparable_unlike(17, 0, "jax 0.7"));
    /* ... or where more than a quarter of the time has none anyway: 40 of 100 µs, and 27 */
    assert_false(is_comparable_unlike(20, 27000, "pytorch 2.11.0"));
    assert_true(is_comparable_unlike(20, 23000, "pytorch 2.11.0"));
}

/* ------------------------------------------------------------------ phases */

/* A server's hundred steps, so many of them prefill. */
static struct rp_trace *serves(int prefill)
{
    struct row rows[100];

    for (int i = 0; i < 100; i++)
        rows[i] = (struct row){'X',
                               "user_annotation",
                               i < prefill ? "step[EXTEND bs=1 toks=9]" : "step[DECODE bs=2]",
                               1,
                               1,
                               i * 100,
                               90};
    return finish_valid(build_rows(rows, 100));
}

static void another_mix_of_phases_has_an_edge(void **state)
{
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, serves(20), serves(31), &all_rows);
    assert_true(has_note(&c, "different shares of prefill and decode"));
    rp_arena_release(&c.arena);
    compare_traces(&c, serves(20), serves(29), &all_rows);
    assert_false(has_note(&c, "different shares of prefill and decode"));
    rp_arena_release(&c.arena);
}

/* ------------------------------------------------------------------ names */

/* Whether operators with these names are one that only has another number. */
static bool is_same_name(const char *a, const char *b)
{
    const struct call base[] = {{NULL, a, NULL, "gemm", 40000}};
    const struct call fresh[] = {{NULL, b, NULL, "sgemm", 40000}};
    struct comparison c;
    bool same;

    compare_traces(&c, run_of(base, 1, none), run_of(fresh, 1, none), &all_rows);
    same = c.root.aligned_share == 1;
    rp_arena_release(&c.arena);
    return same;
}

static void digests_in_names_have_edges(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_same_name("cabcdefghijk1234_call", "czyxwvutsrqp1234_call"));  /* 16, 4 */
    assert_false(is_same_name("cabcdefghij1234_call", "czyxwvutsrq1234_call"));   /* 15 */
    assert_false(is_same_name("cabcdefghijkl123_call", "czyxwvutsrqpo123_call")); /* 3 digits */
    assert_true(is_same_name("layer_3", "layer_14"));
}

/* ------------------------------------------------------------------ detail */

/* Eight steps of 1 ms with four calls each in those with a '+'; of the others only the mark. */
static struct rp_trace *detailed(const char *steps)
{
    struct maker *m = calloc(1, sizeof *m);
    char names[8][32];
    struct rp_trace *t;

    for (int s = 0; s < 8; s++) {
        int64_t begin = s * 1000000;

        snprintf(names[s], sizeof names[s], "ProfilerStep#%d", s);
        add(m, (struct row){'X', "user_annotation", names[s], 1, 1, begin, 1000000});
        for (int i = 0; i < 4 && steps[s] == '+'; i++) {
            int64_t at = begin + i * 100000, corr = 1 + s * 4 + i;

            add(m, (struct row){'X', "cpu_op", "aten::addcdiv_", 1, 1, at, 50000});
            add(m, (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 100, 50, corr});
            add(m, (struct row){'X', "kernel", "addcdiv", 0, 7, at + 10000, 80000, corr, 7});
        }
        if (steps[s] != '+')
            add(m, (struct row){'X', "user_annotation", "without detail", 1, 9, begin, 1000000});
    }
    t = trace_of(m->rows, m->n);
    free(m);
    return t;
}

static void steps_without_detail_are_not_compared(void **state)
{
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, detailed("++++++++"), detailed("++-+--+-"), &all_rows);
    assert_int_equal(c.root.base.steps, 8);
    assert_int_equal(c.root.new_run.steps, 4);
    assert_int_equal(c.root.nrows, 1);
    assert_int_equal(c.root.rows[0].base_count, 4);
    assert_int_equal(c.root.rows[0].new_count, 4);
    assert_int_equal(c.root.rows[0].delta_ns, 0);
    assert_int_equal(c.root.rows[0].noise_ns, 0);
    for (size_t i = 0; i < c.root.nparts; i++)
        assert_int_equal(c.root.parts[i].delta_ns, 0);
    rp_arena_release(&c.arena);
    /* where none has any, their lengths are all that is known */
    compare_traces(&c, detailed("--------"), detailed("--------"), &all_rows);
    assert_int_equal(c.root.base.steps, 8);
    assert_int_equal(c.root.base.step_ns, 1000000);
    rp_arena_release(&c.arena);
}

/* Two steps of one launched kernel each; before the first, work that was launched earlier. */
static struct rp_trace *continued(bool earlier)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 1000000},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 1000000, 1000000},
        {'X', "cpu_op", "aten::mm", 1, 1, 10000, 50000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 11000, 1000, 1},
        {'X', "kernel", "gemm", 0, 7, 300000, 100000, 1, 7},
        {'X', "cpu_op", "aten::mm", 1, 1, 1010000, 50000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1011000, 1000, 2},
        {'X', "kernel", "gemm", 0, 7, 1300000, 100000, 2, 7},
        {'X', "kernel", "stale", 0, 7, 20000, 80000, 99, 7},
    };

    return finish_valid(build_rows(rows, sizeof rows / sizeof *rows - !earlier));
}

static void work_launched_before_the_recording_is_not_compared(void **state)
{
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, continued(false), continued(true), &all_rows);
    assert_int_equal(c.root.base.work_ns, 100000);
    assert_int_equal(c.root.new_run.work_ns, 100000);
    assert_true(c.root.aligned_share == 1);
    rp_arena_release(&c.arena);
}

int test_diff_edges(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_mainly_changed_has_an_edge),
        cmocka_unit_test(what_the_host_mainly_ran_has_an_edge),
        cmocka_unit_test(comparable_runs_have_edges),
        cmocka_unit_test(another_mix_of_phases_has_an_edge),
        cmocka_unit_test(digests_in_names_have_edges),
        cmocka_unit_test(steps_without_detail_are_not_compared),
        cmocka_unit_test(work_launched_before_the_recording_is_not_compared),
    };

    return cmocka_run_group_tests_name("diff_edges", tests, NULL, NULL);
}
