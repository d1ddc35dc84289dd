/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs of a small model: what is named, and that all numbers add up. */
#include "diff_runs.h"

#include "type_check.h"

/* Compares the plain model with another, and checks what must hold for any two. */
static void compare(struct comparison *c, const struct call *calls, size_t n, const int64_t *jitter)
{
    int64_t parts = 0, idle = 0, rows = 0, base = 0;
    size_t i;

    compare_traces(c, run_of(plain, CALLS, some), run_of(calls, n, jitter), &all_rows);
    for (i = 0; i < c->root.nparts; i++)
        parts += c->root.parts[i].delta_ns;
    for (i = 0; i < c->root.nidle_causes; i++)
        idle += c->root.idle_causes[i].delta_ns;
    for (i = 0; i < c->root.nrows; i++) {
        rows += c->root.rows[i].delta_ns;
        base += c->root.rows[i].base_ns;
    }
    assert_int_equal(parts, c->root.delta_ns);
    assert_int_equal(idle, c->root.parts[RP_DIFF_IDLE].delta_ns);
    assert_int_equal(rows, c->root.new_run.work_ns - c->root.base.work_ns);
    assert_int_equal(base, 105000);
}

static const struct rp_trace_diff_row *row_of(const struct comparison *c, const char *what)
{
    size_t i;

    for (i = 0; i < c->root.nrows; i++)
        if (!strcmp(c->root.rows[i].what, what))
            return &c->root.rows[i];
    fail_msg("no row '%s'", what);
    return NULL;
}

static void the_same_is_the_same(void **state)
{
    struct comparison c;
    size_t i;

    UNUSED_STATE(state);
    compare(&c, plain, CALLS, some);
    assert_string_equal(c.root.verdict, "same");
    assert_false(c.root.changed);
    assert_int_equal(c.root.delta_ns, 0);
    assert_int_equal(c.root.base.steps, STEPS);
    assert_int_equal(c.root.base.typical_steps, 1);
    assert_int_equal(c.root.nrows, 4);
    for (i = 0; i < c.root.nrows; i++)
        assert_string_equal(c.root.rows[i].change, "same");
    assert_int_equal(c.root.ncoverage, 1);
    assert_string_equal(c.root.coverage[0].rule, "tree");
    rp_arena_release(&c.arena);
}

static void a_slower_operator_is_named_first(void **state)
{
    struct call calls[CALLS];
    struct comparison c;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    calls[3].ns += 5000; /* the second gelu only */
    compare(&c, calls, CALLS, some);
    assert_string_equal(c.root.verdict, "slower");
    assert_true(c.root.changed);
    assert_int_equal(c.root.delta_ns, 5000);
    assert_string_equal(c.root.rows[0].what, "aten::gelu");
    assert_string_equal(c.root.rows[0].shape, "[8,2]");
    assert_string_equal(c.root.rows[0].change, "slower");
    assert_int_equal(c.root.rows[0].delta_ns, 5000);
    assert_int_equal(c.root.rows[0].base_count, 2);
    assert_int_equal(c.root.rows[1].delta_ns, 0);
    assert_int_equal(c.root.parts[RP_DIFF_COMPUTE].delta_ns, 5000);
    rp_arena_release(&c.arena);
}

static void another_kernel_is_said(void **state)
{
    struct call calls[CALLS];
    struct comparison c;
    const struct rp_trace_diff_row *row;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    calls[0].kernel = calls[2].kernel = "Cijk";
    calls[0].ns = calls[2].ns = 30000;
    compare(&c, calls, CALLS, some);
    row = row_of(&c, "aten::mm");
    assert_string_equal(row->change, "kernel");
    assert_int_equal(row->places, 2); /* the same change in two layers is one row */
    assert_int_equal(row->delta_ns, -20000);
    assert_string_equal(row->base_kernels[0], "gemm");
    assert_string_equal(row->new_kernels[0], "Cijk");
    assert_int_equal(c.root.nkernels, 1);
    assert_contains(c.root.kernels[0], "2 x gemm -> 2 x Cijk");
    rp_arena_release(&c.arena);
}

static void another_shape_keeps_its_place(void **state)
{
    struct call calls[CALLS];
    struct comparison c;
    const struct rp_trace_diff_row *row;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    calls[0].shape = calls[2].shape = "[[16, 4], [4, 2]]";
    compare(&c, calls, CALLS, some);
    row = row_of(&c, "aten::mm");
    assert_string_equal(row->change, "shape");
    assert_string_equal(row->shape, "[8,4] [4,2] -> [16,4] [4,2]");
    assert_string_equal(row->rule, "tree");
    rp_arena_release(&c.arena);
}

static void more_and_fewer_calls(void **state)
{
    struct call calls[CALLS + 2];
    struct comparison c;
    const struct rp_trace_diff_row *row;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    calls[CALLS] = (struct call){NULL, "aten::relu", "[[8, 2]]", "relu", 2000};
    calls[1].op = calls[3].op = "aten::silu";
    compare(&c, calls, CALLS + 1, some);
    assert_string_equal(row_of(&c, "aten::relu")->change, "added");
    assert_int_equal(row_of(&c, "aten::relu")->new_count, 1);
    assert_string_equal(row_of(&c, "aten::gelu")->change, "removed");
    rp_arena_release(&c.arena);

    /* of a name whose shapes all differ, and of which there are more, all stand against all */
    memcpy(calls, plain, sizeof plain);
    calls[1].shape = "[[8, 3]]";
    calls[3].shape = "[[8, 4]]";
    calls[CALLS] = (struct call){NULL, "aten::gelu", "[[8, 5]]", "gelu", 8000};
    compare(&c, calls, CALLS + 1, some);
    row = row_of(&c, "aten::gelu");
    assert_string_equal(row->change, "calls");
    assert_int_equal(row->base_count, 2);
    assert_int_equal(row->new_count, 3);
    assert_int_equal(row->delta_ns, 8000);
    rp_arena_release(&c.arena);
}

static void what_a_range_does_is_replaced(void **state)
{
    struct call calls[CALLS];
    struct comparison c;
    const struct rp_trace_diff_row *row;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    calls[4] = (struct call){"Optimizer.step", "aten::_fused_adamw_", NULL, "fused", 2000};
    compare(&c, calls, 5, some);
    row = row_of(&c, "Optimizer.step");
    assert_string_equal(row->change, "replaced");
    assert_string_equal(row->rule, "tree");
    assert_int_equal(row->delta_ns, 2000 - 9000);
    assert_int_equal(row->nbase_kernels, 2);
    assert_int_equal(row->base_host_ns, 1500); /* with the operators inside */
    assert_int_equal(row->new_host_ns, 500);
    assert_int_equal(row->base_works, 3);
    assert_int_equal(row->new_works, 1);
    rp_arena_release(&c.arena);
}

/* A range that only one run has does not hide what is in it. */
static void ranges_are_opened(void **state)
{
    struct call calls[CALLS];
    struct comparison c;
    size_t i;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    for (i = 0; i < CALLS; i++)
        calls[i].range = i < 4 ? "forward" : NULL;
    compare(&c, calls, CALLS, some);
    assert_int_equal(c.root.ncoverage, 1);
    assert_string_equal(c.root.coverage[0].rule, "tree");
    assert_int_equal(c.root.delta_ns, 0);
    rp_arena_release(&c.arena);
}

/* Operators that only call others do not stand between partners. */
static void wrappers_are_opened(void **state)
{
    struct call before = {NULL, "aten::addmm", NULL, "gemm", 9000, "linear"};
    struct call after = {NULL, "aten::addmm", NULL, "gemm", 8000, "linear/linear/to"};
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, run_of(&before, 1, some), run_of(&after, 1, some), &all_rows);
    assert_int_equal(c.root.nrows, 1);
    assert_string_equal(c.root.rows[0].what, "aten::addmm");
    assert_string_equal(c.root.rows[0].change, "faster");
    assert_string_equal(c.root.rows[0].rule, "tree");
    assert_string_equal(c.root.rows[0].place, "linear / linear / to");
    rp_arena_release(&c.arena);
}

/* What called another operator now does the work by itself: the call as a whole is compared. */
static void a_call_that_does_it_itself_is_replaced(void **state)
{
    struct call before = {NULL, "aten::addmm", NULL, "gemm", 9000, "linear"};
    struct call after = {NULL, NULL, NULL, "fused", 8000, "linear"};
    struct comparison c;
    int way;

    UNUSED_STATE(state);
    for (way = 0; way < 2; way++) {
        compare_traces(&c, run_of(way ? &after : &before, 1, some),
                       run_of(way ? &before : &after, 1, some), &all_rows);
        assert_int_equal(c.root.nrows, 1);
        assert_string_equal(c.root.rows[0].what, "linear");
        assert_string_equal(c.root.rows[0].change, "replaced");
        assert_int_equal(c.root.rows[0].delta_ns, way ? 1000 : -1000);
        rp_arena_release(&c.arena);
    }
}

/* The same operators in another place are the same, and no change of shape. */
static void a_shape_that_moved_is_found(void **state)
{
    struct call calls[] = {{NULL, "aten::mm", "[[8, 4]]", "gemm", 9000, "first"},
                           {NULL, "aten::mm", "[[16, 4]]", "gemm", 18000, "second"}};
    struct call moved[] = {{NULL, "aten::mm", "[[16, 4]]", "gemm", 18000, "first"},
                           {NULL, "aten::mm", "[[8, 4]]", "gemm", 9000, "second"}};
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, run_of(calls, 2, some), run_of(moved, 2, some), &all_rows);
    assert_int_equal(c.root.nrows, 2);
    assert_string_equal(c.root.rows[0].change, "same");
    assert_string_equal(c.root.rows[0].rule, "name and shape");
    assert_int_equal(c.root.nlook, 0);
    rp_arena_release(&c.arena);
}

/* A range around the whole training is not a part of any step's tree. */
static void a_range_over_all_steps_does_not_count(void **state)
{
    static const char *const names[STEPS] = {"ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3",
                                             "ProfilerStep#4", "ProfilerStep#5"};
    struct row rows[1 + 3 * STEPS];
    struct comparison c;
    size_t n = 0;
    int s;

    UNUSED_STATE(state);
    rows[n++] = (struct row){'X', "user_annotation", "train", 1, 1, 0, 1000 * STEPS};
    for (s = 0; s < STEPS; s++) {
        rows[n++] = (struct row){'X', "user_annotation", names[s], 1, 1, 1000 * s, 1000};
        rows[n++] = (struct row){'X', "cuda_runtime", "launch", 1, 1, 1000 * s + 10, 5, s + 1};
        rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, 1000 * s + 100, 50, s + 1, 7};
    }
    compare_traces(&c, trace_of(rows + 1, n - 1), trace_of(rows, n), &all_rows);
    assert_int_equal(c.root.nrows, 1);
    assert_string_equal(c.root.rows[0].rule, "tree");
    assert_null(c.root.rows[0].place);
    assert_int_equal(c.root.rows[0].base_ns, 50);
    assert_int_equal(c.root.rows[0].base_count, 1);
    rp_arena_release(&c.arena);
}

/* Kernels of a graph have no operator: they are known by their names. */
static void graphs_are_aligned_by_kernel(void **state)
{
    struct call calls[CALLS];
    struct comparison c;
    size_t i;

    UNUSED_STATE(state);
    memcpy(calls, plain, sizeof plain);
    for (i = 0; i < CALLS; i++) {
        calls[i].op = NULL;
        calls[i].range = NULL;
    }
    calls[0].ns += 7000;
    compare(&c, calls, CALLS, some);
    assert_int_equal(c.root.ncoverage, 1);
    assert_string_equal(c.root.coverage[0].rule, "kernel");
    assert_string_equal(c.root.rows[0].what, "gemm");
    assert_int_equal(c.root.rows[0].delta_ns, 7000);
    rp_arena_release(&c.arena);
}

/* A fixed cost of the host shows as idle time with its cause, and in no operator. */
static void idle_has_causes(void **state)
{
    static const int64_t late[STEPS] = {20400, 19700, 20200, 19900, 20000};
    struct comparison c;

    UNUSED_STATE(state);
    compare(&c, plain, CALLS, late);
    assert_int_equal(c.root.delta_ns, 20000);
    assert_int_equal(c.root.parts[RP_DIFF_IDLE].delta_ns, 20000);
    assert_int_equal(c.root.rows[0].delta_ns, 0);
    rp_arena_release(&c.arena);
}

static void limits_fail_beyond_the_noise_only(void **state)
{
    struct rp_trace_diff_options two = {PATHS, .fail_share = 0.02, .fail_ns = -1};
    struct rp_trace_diff_options time = {PATHS, .fail_share = -1, .fail_ns = 6000};
    struct call slow[CALLS], fast[CALLS];
    struct comparison c;

    UNUSED_STATE(state);
    memcpy(slow, plain, sizeof plain);
    memcpy(fast, plain, sizeof plain);
    slow[0].ns += 5000; /* 3 % of the step */
    fast[0].ns -= 5000;
    compare_traces(&c, run_of(plain, CALLS, some), run_of(slow, CALLS, some), &two);
    assert_true(c.root.failed);
    rp_arena_release(&c.arena);
    compare_traces(&c, run_of(plain, CALLS, some), run_of(slow, CALLS, some), &time);
    assert_false(c.root.failed); /* slower, but by less than was allowed */
    assert_true(c.root.changed);
    rp_arena_release(&c.arena);
    compare_traces(&c, run_of(plain, CALLS, some), run_of(fast, CALLS, some), &two);
    assert_false(c.root.failed);
    rp_arena_release(&c.arena);
    compare_traces(&c, run_of(plain, CALLS, much), run_of(slow, CALLS, much), &two);
    assert_false(c.root.failed);
    assert_string_equal(c.root.verdict, "within the noise");
    rp_arena_release(&c.arena);
    compare_traces(&c, run_of(plain, CALLS, none), run_of(slow, CALLS, none), &two);
    assert_int_equal(c.root.noise_ns, 0);
    assert_true(c.root.failed);
    rp_arena_release(&c.arena);
}

/* The second of two ranks got slower; the first only waits for it. */
static void ranks_are_paired_by_number(void **state)
{
    struct call ranks[2][CALLS + 1], slow[CALLS + 1];
    struct rp_trace_diff_part parts[4];
    struct rp_trace_diff_input in[4];
    struct comparison c = {0};
    struct rp_trace *t[4];
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 2; i++) {
        memcpy(ranks[i], plain, sizeof plain);
        ranks[i][CALLS] =
            (struct call){NULL, "c10d::allreduce_", NULL, "ncclDevKernel_AllReduce", 10000};
    }
    memcpy(slow, ranks[1], sizeof slow);
    slow[0].ns += 20000;
    ranks[1][CALLS].ns += 20000; /* waits */
    t[0] = run_of(ranks[0], CALLS + 1, some);
    t[1] = run_of(ranks[0], CALLS + 1, some);
    t[2] = run_of(ranks[1], CALLS + 1, some);
    t[3] = run_of(slow, CALLS + 1, some);
    for (i = 0; i < 4; i++) {
        make_part(&c, t[i], &parts[i]);
        in[i] = (struct rp_trace_diff_input){&parts[i], 3 + i % 2};
    }
    assert_code(rp_trace_diff_join(in, 2, in + 2, 2, &all_rows, &c.arena, &c.root, NULL), RP_OK);
    assert_int_equal(c.root.delta_ns, 20000);
    assert_int_equal(c.root.nranks, 2);
    assert_int_equal(c.root.ranks[0].rank, 4);
    assert_int_equal(c.root.ranks[0].compute_delta_ns, 20000);
    assert_int_equal(c.root.ranks[1].exposed_comm_delta_ns, 20000);
    assert_contains(c.root.notes[0], "rank 4 has the largest change of its own");
    assert_string_equal(c.root.rows[0].what, "aten::mm"); /* rows are means over the ranks */
    assert_int_equal(c.root.rows[0].delta_ns, 10000);
    assert_int_equal(c.root.rows[1].delta_ns, 10000);
    assert_int_equal(c.root.new_run.work_ns - c.root.base.work_ns, 20000);
    for (i = 0; i < 4; i++) {
        rp_trace_free(t[i]);
    }
    rp_arena_release(&c.arena);
}

static void without_a_device_host_time_counts(void **state)
{
    static const struct row before[] = {{'X', "cpu_op", "linear", 1, 1, 0, 100},
                                        {'X', "cpu_op", "mm", 1, 1, 10, 60},
                                        {'X', "cpu_op", "relu", 1, 1, 120, 30}};
    static const struct row after[] = {{'X', "cpu_op", "linear", 1, 1, 0, 140},
                                       {'X', "cpu_op", "mm", 1, 1, 10, 100},
                                       {'X', "cpu_op", "relu", 1, 1, 150, 30}};
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, TRACE_OF(before), TRACE_OF(after), &all_rows);
    assert_string_equal(c.root.measure, "host time");
    assert_int_equal(c.root.delta_ns, 30);
    assert_int_equal(c.root.noise_ns, RP_ABSENT_I64);
    assert_string_equal(c.root.rows[0].what, "mm");
    assert_int_equal(c.root.rows[0].delta_ns, 40);
    assert_int_equal(row_of(&c, "linear")->delta_ns, 0); /* by itself */
    rp_arena_release(&c.arena);
}

static void the_middle_half_and_the_spread(void **state)
{
    static const size_t taken[] = {0, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6};
    static const int64_t values[] = {100, 104, 98, 1000, 102};
    int64_t scratch[5];
    double spread[2] = {3, 4}, one[2] = {-1, 4}, neither[2] = {-1, -1}, steps[2] = {1, 1};
    size_t n, from, got;

    UNUSED_STATE(state);
    for (n = 0; n < sizeof taken / sizeof taken[0]; n++) {
        rp_diff_middle_half(n, &from, &got);
        assert_int_equal(got, taken[n]);
        assert_int_equal(2 * from + got, n);
    }
    /* median 102, deviations 0 2 2 4 898: the hiccup does not count */
    assert_int_equal((int64_t)(1e6 * rp_diff_spread(values, 5, scratch)),
                     (int64_t)(1e6 * 1.206 * 1.4826 * 2));
    assert_true(rp_diff_spread(values, 1, scratch) < 0);
    assert_int_equal((int64_t)(1000 * rp_diff_noise(spread, steps)), 15000);
    assert_true(rp_diff_noise(one, steps) > 16.97 && rp_diff_noise(one, steps) < 16.98);
    assert_true(rp_diff_noise(neither, steps) < 0);
}

/* Normal values: the sum of twelve uniform ones. */
static int64_t noisy(uint64_t *seed)
{
    int64_t sum = 0;
    int i;

    for (i = 0; i < 12; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (int64_t)(*seed >> 44);
    }
    return 10000000 + sum;
}

/* The step time of n values, and their spread. */
static double measure(uint64_t *seed, size_t n, double *spread)
{
    int64_t values[16], scratch[16];
    size_t i, k;

    for (i = 0; i < n; i++) { /* in order */
        int64_t value = noisy(seed);

        for (k = i; k && values[k - 1] > value; k--)
            values[k] = values[k - 1];
        values[k] = value;
    }
    *spread = rp_diff_spread(values, n, scratch);
    return rp_diff_median(values, n);
}

/* Two runs of the same speed are rarely called different: the figures of docs/definitions.md. */
static void equal_runs_rarely_differ(void **state)
{
    static const struct {
        size_t n;
        double most;
    } cases[] = {{2, 0.035}, {3, 0.055}, {6, 0.013}, {10, 0.01}};
    uint64_t seed = 7;
    size_t c;

    UNUSED_STATE(state);
    for (c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int i, slower = 0, rounds = 20000;

        for (i = 0; i < rounds; i++) {
            double spread[2], count = (double)cases[c].n / (1.2533 * 1.2533);
            const double steps[2] = {count, count};
            double base = measure(&seed, cases[c].n, &spread[0]);
            double fresh = measure(&seed, cases[c].n, &spread[1]);

            slower += fresh - base > rp_diff_noise(spread, steps);
        }
        assert_true(slower > 0);
        assert_true((double)slower / rounds < cases[c].most);
    }
}

/* A faster kernel that starts later: the step is what counts, with the time before the kernel. */
static void idle_before_the_first_kernel_counts(void **state)
{
    static const struct row early[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 50000, 4000, 5},
        {'X', "kernel", "gemm", 0, 7, 60000, 30000, 5, 7},
    };
    static const struct row late[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 110000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 70000, 4000, 5},
        {'X', "kernel", "gemm", 0, 7, 80000, 20000, 5, 7},
    };
    struct comparison c;
    int64_t idle = 0;
    size_t i;

    UNUSED_STATE(state);
    compare_traces(&c, TRACE_OF(early), TRACE_OF(late), &all_rows);
    assert_int_equal(c.root.base.step_ns, 100000);
    assert_int_equal(c.root.delta_ns, 10000);
    assert_string_equal(c.root.verdict, "slower");
    assert_int_equal(c.root.parts[RP_DIFF_COMPUTE].delta_ns, -10000);
    assert_int_equal(c.root.parts[RP_DIFF_IDLE].delta_ns, 20000);
    for (i = 0; i < c.root.nidle_causes; i++)
        idle += c.root.idle_causes[i].delta_ns;
    assert_int_equal(idle, 20000);
    assert_string_equal(c.root.mainly_text, "idle +20.0 µs, compute -10.0 µs");
    rp_arena_release(&c.arena);
}

static void servers_are_compared_by_phase(void **state)
{
    static const struct row base[] = {
        {'X', "user_annotation", "step[EXTEND bs=1 toks=9]", 1, 1, 0, 90},
        {'X', "user_annotation", "step[DECODE bs=2]", 1, 1, 100, 10},
        {'X', "user_annotation", "step[DECODE bs=2]", 1, 1, 110, 12},
    };
    static const struct row fresh[] = {
        {'X', "user_annotation", "step[DECODE bs=2]", 1, 1, 100, 20},
        {'X', "user_annotation", "step[DECODE bs=2]", 1, 1, 120, 20},
    };
    struct comparison c;
    bool noted = false;
    size_t i;

    UNUSED_STATE(state);
    compare_traces(&c, TRACE_OF(base), TRACE_OF(fresh), &all_rows);
    assert_int_equal(c.root.nphases, 2);
    assert_string_equal(c.root.phases[0].phase, "prefill");
    assert_int_equal(c.root.phases[0].base_ns, 100);
    assert_int_equal(c.root.phases[0].new_ns, RP_ABSENT_I64);
    assert_int_equal(c.root.phases[1].base_steps, 2);
    assert_int_equal(c.root.phases[1].base_ns, 11);
    assert_int_equal(c.root.phases[1].delta_ns, 9);
    for (i = 0; i < c.root.nnotes; i++)
        noted = noted || strstr(c.root.notes[i], "different shares of prefill and decode");
    assert_true(noted);
    rp_arena_release(&c.arena);
}

static void nothing_recorded_is_no_change(void **state)
{
    struct comparison c;

    UNUSED_STATE(state);
    compare_traces(&c, trace_of(NULL, 0), trace_of(NULL, 0), &all_rows);
    assert_int_equal(c.root.delta_ns, 0);
    assert_int_equal(c.root.nrows, 0);
    assert_false(c.root.changed);
    rp_arena_release(&c.arena);
}

/* A gate does not pass because nothing was recorded. */
static void a_limit_needs_something_to_compare(void **state)
{
    struct rp_trace_diff_options two = {PATHS, .fail_share = 0.02, .fail_ns = -1};
    struct rp_trace *t[2] = {run_of(plain, CALLS, some), trace_of(NULL, 0)};
    struct rp_trace_diff_part parts[2];
    struct rp_trace_diff_input in[2] = {{&parts[0], 0}, {&parts[1], 0}};
    struct comparison c = {0};
    struct rp_err err = RP_ERR_INIT;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 2; i++)
        make_part(&c, t[i], &parts[i]);
    assert_code(rp_trace_diff_join(&in[0], 1, &in[1], 1, &two, &c.arena, &c.root, &err), RP_FORMAT);
    assert_contains(err.text, "'b.json' has no recorded work");
    assert_code(rp_trace_diff_join(&in[0], 1, &in[1], 1, &all_rows, &c.arena, &c.root, &err),
                RP_OK);
    assert_contains(c.root.notes[0], "no work was recorded in the new run");
    for (i = 0; i < 2; i++) {
        rp_trace_free(t[i]);
    }
    rp_arena_release(&c.arena);
}

static void its_keys_promise_their_units(void **state)
{
    char why[200];

    UNUSED_STATE(state);
    if (!rp_type_check(&rp_trace_diff_type, why, sizeof why))
        fail_msg("%s", why);
}

int test_trace_diff(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_the_same),
        cmocka_unit_test(a_slower_operator_is_named_first),
        cmocka_unit_test(another_kernel_is_said),
        cmocka_unit_test(another_shape_keeps_its_place),
        cmocka_unit_test(more_and_fewer_calls),
        cmocka_unit_test(what_a_range_does_is_replaced),
        cmocka_unit_test(ranges_are_opened),
        cmocka_unit_test(wrappers_are_opened),
        cmocka_unit_test(a_call_that_does_it_itself_is_replaced),
        cmocka_unit_test(a_shape_that_moved_is_found),
        cmocka_unit_test(a_range_over_all_steps_does_not_count),
        cmocka_unit_test(graphs_are_aligned_by_kernel),
        cmocka_unit_test(idle_has_causes),
        cmocka_unit_test(limits_fail_beyond_the_noise_only),
        cmocka_unit_test(ranks_are_paired_by_number),
        cmocka_unit_test(without_a_device_host_time_counts),
        cmocka_unit_test(the_middle_half_and_the_spread),
        cmocka_unit_test(equal_runs_rarely_differ),
        cmocka_unit_test(idle_before_the_first_kernel_counts),
        cmocka_unit_test(servers_are_compared_by_phase),
        cmocka_unit_test(nothing_recorded_is_no_change),
        cmocka_unit_test(a_limit_needs_something_to_compare),
        cmocka_unit_test(its_keys_promise_their_units),
    };

    return cmocka_run_group_tests_name("trace_diff", tests, NULL, NULL);
}
