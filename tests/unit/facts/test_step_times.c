/* SPDX-License-Identifier: Apache-2.0 */
/* How long steps last: by their marks and by the device work that was launched in them. */
#include "facts/times/step_times.h"
#include "trace/copy.h"
#include "trace/trace_fixtures.h"

#include <reprise/result.h>

struct measured {
    struct rp_trace *t;
    struct rp_arena arena;
    struct rp_interval *at, span;
    int64_t median_ns;
};

/* The same with the rows of the file the other way round, so that streams come before threads. */
static void measure_reversed(const struct measured *m, const struct row *rows, size_t n)
{
    struct row *turned = malloc(n * sizeof *turned);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_interval *at;
    bool unrecorded, as_before;
    rp_event last, before;
    struct rp_trace *t;

    for (size_t i = 0; i < n; i++)
        turned[i] = rows[n - 1 - i];
    t = trace_of(turned, n);
    assert_int_equal(t->nsteps, m->t->nsteps);
    assert_code(rp_step_times(t, &arena, &at, NULL), RP_OK);
    for (uint32_t i = 0; i < t->nsteps; i++) {
        assert_int_equal(at[i].begin_ns, m->at[i].begin_ns);
        assert_int_equal(at[i].end_ns, m->at[i].end_ns);
    }
    assert_int_equal(rp_previous_step_end(t, &last, &unrecorded),
                     rp_previous_step_end(m->t, &before, &as_before));
    assert_int_equal(unrecorded, as_before);
    assert_int_equal(last == RP_NONE, before == RP_NONE);
    if (last != RP_NONE)
        assert_int_equal(t->ev.ts_ns[last], m->t->ev.ts_ns[before]);
    rp_trace_free(t);
    rp_arena_release(&arena);
    free(turned);
}

static struct measured measure(const struct row *rows, size_t n)
{
    struct measured m = {.t = trace_of(rows, n)};
    struct rp_interval *again;
    struct rp_digest *digest;
    bool unrecorded;
    rp_event last;
    uint32_t i;

    rp_arena_init(&m.arena);
    assert_code(rp_step_times(m.t, &m.arena, &m.at, NULL), RP_OK);
    assert_code(rp_step_median(m.at, m.t->nsteps, &m.arena, &m.median_ns, NULL), RP_OK);
    m.span = rp_trace_span(m.t);
    assert_code(rp_digest_new(m.t, "rows", &digest, NULL), RP_OK);
    assert_code(rp_step_times_of_digest(digest, rp_previous_step_end(m.t, &last, &unrecorded),
                                        &m.arena, &again, NULL),
                RP_OK);
    for (i = 0; i < m.t->nsteps; i++) {
        assert_true(m.at[i].begin_ns <= m.at[i].end_ns);
        assert_int_equal(m.at[i].end_ns,
                         i + 1 < m.t->nsteps ? m.at[i + 1].begin_ns : m.span.end_ns);
        assert_int_equal(again[i].begin_ns, m.at[i].begin_ns);
        assert_int_equal(again[i].end_ns, m.at[i].end_ns);
    }
    if (m.t->nsteps)
        assert_int_equal(m.span.begin_ns, m.at[0].begin_ns);
    rp_digest_free(digest);
    measure_reversed(&m, rows, n);
    return m;
}

#define MEASURE(rows) measure((rows), sizeof(rows) / sizeof(rows)[0])

static void measured_release(struct measured *m)
{
    rp_arena_release(&m->arena);
    rp_trace_free(m->t);
}

static void assert_begins(const struct measured *m, const int64_t *begins, uint32_t n)
{
    uint32_t i;

    assert_int_equal(m->t->nsteps, n);
    for (i = 0; i < n; i++)
        assert_int_equal(m->at[i].begin_ns, begins[i]);
}

/* Three marks of 10 each; the device takes 100 a step. */
static void the_host_runs_ahead(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 10},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 10, 10},
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 20, 10},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2, 4, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 12, 4, 6},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 22, 4, 7},
        {'X', "kernel", "a", 0, 7, 8, 100, 5, 7},
        {'X', "kernel", "a", 0, 7, 110, 101, 6, 7},
        {'X', "kernel", "a", 0, 7, 212, 100, 7, 7},
    };
    struct measured m = MEASURE(rows);
    struct rp_segments judged;

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){0, 108, 211}, 3);
    assert_code(rp_trace_segments(m.t, &m.arena, &judged, NULL), RP_OK);
    assert_int_equal(judged.n, 1); /* one step ends where the next begins */
    assert_int_equal(judged.at[0].begin_ns, 0);
    assert_int_equal(judged.at[0].end_ns, 312);
    assert_int_equal(m.t->steps[0].work_end_ns, 108);
    assert_int_equal(m.t->steps[2].work_end_ns, 312);
    assert_int_equal(m.span.end_ns, 312);
    assert_int_equal(m.median_ns, 103);
    measured_release(&m);
}

/* The device waits for the host: steps are their marks, with what is between them. */
static void the_host_sets_the_pace(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 90},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 80},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 50, 4, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 95, 4, 6}, /* between the marks */
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 7},
        {'X', "kernel", "a", 0, 7, 60, 10, 5, 7},
        {'X', "kernel", "a", 0, 7, 99, 6, 6, 7},
        {'X', "kernel", "a", 0, 7, 155, 10, 7, 7},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){0, 105}, 2); /* the second waits for the first's work */
    assert_int_equal(m.span.end_ns, 180);
    assert_int_equal(m.median_ns, (105 + 75) / 2);
    measured_release(&m);
}

/* Two copies in a second of operators are not a window, with as many operators in the same time
   they are. */
static void two_copies_are_no_window(void **state)
{
    static struct row rows[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 1000000},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 400000, 10, 5, 7},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 408000, 10, 6, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(rp_trace_judged_span(t).end_ns, 1000000);
    rp_trace_free(t);
    rows[2].ts = 420000; /* a fiftieth of the time */
    t = TRACE_OF(rows);
    assert_int_equal(rp_trace_judged_span(t).begin_ns, 400000);
    assert_int_equal(rp_trace_judged_span(t).end_ns, 420010);
    rp_trace_free(t);
}

static void one_step(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 4, 4},
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 100, 90},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 5},
        {'X', "kernel", "early", 0, 7, 20, 500, 4, 7}, /* of no step: delays nothing */
        {'X', "kernel", "a", 0, 7, 160, 60, 5, 7},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){100}, 1);
    assert_int_equal(m.span.end_ns, 220);
    assert_int_equal(m.median_ns, 120);
    measured_release(&m);
}

/* Work of the step before, without a launch: it counts on the stream that also runs work of this
   step, and not on the other one, of which nothing is known. */
static void work_of_the_step_before(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 100, 90},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 5},
        {'X', "kernel", "old", 0, 7, 5, 30, 8, 7},
        {'X', "kernel", "old", 0, 9, 2, 18, 9, 9},
        {'X', "kernel", "older", 0, 9, 0, 1, 10, 9},
        {'X', "kernel", "a", 0, 9, 160, 60, 5, 9},
    };
    struct measured m = MEASURE(rows);
    bool unrecorded;
    rp_event last;

    UNUSED_STATE(state);
    assert_int_equal(rp_previous_step_end(m.t, &last, &unrecorded), 20);
    assert_false(unrecorded);
    assert_int_equal(m.t->ev.ts_ns[last], 2);
    measured_release(&m);
}

/* Work that was launched a millisecond before, while nothing ran, waited for what was not recorded.
 */
static void work_that_waits_for_what_was_not_recorded(void **state)
{
    UNUSED_STATE(state);
    for (int64_t wait = 999999; wait <= 1000000; wait++) {
        const struct row rows[] = {
            {'X', "user_annotation", "ProfilerStep#1", 1, 1, 100, 90},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 5},
            {'X', "kernel", "a", 0, 9, 154 + wait, 60, 5, 9},
        };
        struct rp_trace *t = trace_of(rows, 3);
        bool unrecorded;
        rp_event last;
        int64_t end = rp_previous_step_end(t, &last, &unrecorded);

        assert_int_equal(unrecorded, wait == 1000000);
        assert_int_equal(end, unrecorded ? 154 + wait : RP_NO_TS);
        rp_trace_free(t);
    }
}

/* Meanwhile a copy ran: for one percent of the wait, then for a nanosecond more. */
static void little_may_run_during_a_wait(void **state)
{
    UNUSED_STATE(state);
    for (int64_t ran = 20000; ran <= 20001; ran++) {
        const struct row rows[] = {
            {'X', "user_annotation", "ProfilerStep#1", 1, 1, 100, 90},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 5},
            {'X', "gpu_memcpy", "Memcpy DtoH", 0, 8, 1000, ran, 6, 8},
            {'X', "kernel", "a", 0, 9, 2000154, 60, 5, 9},
        };
        struct rp_trace *t = trace_of(rows, 4);
        bool unrecorded;
        rp_event last;

        rp_previous_step_end(t, &last, &unrecorded);
        assert_int_equal(unrecorded, ran == 20000);
        rp_trace_free(t);
    }
}

/* Most of the later work has no launch either: launches were not recorded, and what runs before the
   only one may be of this step. */
static void launches_that_were_not_recorded(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 190},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 5},
        {'X', "kernel", "a", 0, 9, 20, 30, 8, 9},
        {'X', "kernel", "b", 0, 9, 160, 10, 5, 9},
        {'X', "kernel", "c", 0, 9, 170, 10, 11, 9},
        {'X', "kernel", "d", 0, 9, 180, 10, 12, 9},
    };
    struct measured m = MEASURE(rows);
    bool unrecorded;
    rp_event last;

    UNUSED_STATE(state);
    assert_int_equal(rp_previous_step_end(m.t, &last, &unrecorded), RP_NO_TS);
    assert_begins(&m, (const int64_t[]){0}, 1);
    assert_int_equal(m.median_ns, 190);
    measured_release(&m);
}

static void steps_without_device_work(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 90},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 50},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){0, 100}, 2);
    assert_int_equal(m.t->steps[0].work_end_ns, RP_NO_TS);
    assert_int_equal(m.span.end_ns, 150);
    assert_int_equal(m.median_ns, 75);
    measured_release(&m);
}

/* Work without a recorded launch belongs to the step in which it starts. */
static void work_without_a_launch(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 90},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 50},
        {'X', "kernel", "a", 0, 7, 95, 20, 5, 7},
        {'X', "kernel", "b", 0, 7, 120, 60, 6, 7},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){0, 115}, 2);
    assert_int_equal(m.t->steps[1].work_end_ns, 180);
    assert_int_equal(m.span.end_ns, 180);
    measured_release(&m);
}

/* Marks of two threads: a step lasts until the next one begins, whatever its mark says. */
static void marks_that_overlap(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100},
        {'X', "user_annotation", "ProfilerStep#2", 1, 2, 40, 100},
        {'X', "user_annotation", "ProfilerStep#3", 1, 3, 40, 110},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 60, 4, 5},
        {'X', "kernel", "a", 0, 7, 70, 100, 5, 7},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){0, 40, 40}, 3);
    assert_int_equal(m.t->steps[1].work_end_ns, RP_NO_TS);
    assert_int_equal(m.t->steps[2].work_end_ns, 170);
    assert_int_equal(m.span.end_ns, 170);
    measured_release(&m);
}

/* Work of a step that ends after that of later ones delays them all, and none becomes negative. */
static void times_at_the_limits(void **state)
{
    const int64_t far = RP_TIME_MAX_NS;
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, -far, 10},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 0, 10},
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, far - 30, 30},
        {'X', "kernel", "a", 0, 7, -far, far, 5, 7},
        {'X', "kernel", "b", 0, 7, 5, far - 20, 6, 7},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_begins(&m, (const int64_t[]){-far, 0, far - 15}, 3);
    assert_int_equal(m.span.end_ns, far);
    measured_release(&m);
}

/* Steps that were found on the device own the work that starts in them: its launches are earlier.
 */
static void steps_of_the_device(void **state)
{
    struct row rows[4 * 12];
    struct measured m;
    int64_t i, k;

    UNUSED_STATE(state);
    for (i = 0; i < 12; i++)
        for (k = 0; k < 2; k++) {
            int64_t corr = 2 * i + k + 1;

            rows[4 * i + 2 * k] =
                (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, corr, 1, corr};
            rows[4 * i + 2 * k + 1] = (struct row){'X',
                                                   k ? "kernel" : "gpu_memcpy",
                                                   k ? "gemm" : "Memcpy HtoD (Pageable -> Device)",
                                                   0,
                                                   7,
                                                   1000 * (i + 1) + 400 * k,
                                                   400,
                                                   corr,
                                                   7};
        }
    m = MEASURE(rows);
    assert_true(m.t->nsteps >= 3);
    assert_int_equal(m.t->steps[0].source, RP_STEP_REPETITION);
    assert_int_equal(m.t->steps[0].flags, RP_STEP_ON_DEVICE);
    assert_int_equal(m.median_ns, 1000);
    for (i = 0; i < m.t->nsteps; i++)
        assert_int_equal(m.t->steps[i].work_end_ns, m.t->steps[i].begin_ns + 800);
    measured_release(&m);
}

static void traces_without_steps(void **state)
{
    static const struct row work[] = {
        {'X', "user_annotation", "setup", 1, 1, 0, 500},
        {'X', "cpu_op", "aten::add", 1, 1, 100, 10},
        {'X', "kernel", "a", 0, 7, 150, 50, 5, 7},
    };
    static const struct row names[] = {{'X', "user_annotation", "setup", 1, 1, 3, 500}};
    struct measured m = MEASURE(work);

    UNUSED_STATE(state);
    assert_int_equal(m.t->nsteps, 0);
    assert_int_equal(m.median_ns, RP_ABSENT_I64);
    assert_int_equal(m.span.begin_ns, 100);
    assert_int_equal(m.span.end_ns, 200);
    measured_release(&m);
    m = MEASURE(names);
    assert_int_equal(m.span.begin_ns, 3);
    assert_int_equal(m.span.end_ns, 503);
    measured_release(&m);
}

/* The device copied in the first two of three steps and ran no kernel: the third is beside its
 * work. */
static void copies_are_device_work(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 100},
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 200, 100},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 10, 4, 5},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 110, 4, 6},
        {'X', "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 7, 20, 50, 5, 7},
        {'X', "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 7, 120, 50, 6, 7},
    };
    struct measured m = MEASURE(rows);

    UNUSED_STATE(state);
    assert_int_equal(m.t->nsteps, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(rp_step_is_judged(m.t, i, m.at[i]), i < 2);
    assert_false(
        rp_step_is_judged(m.t, 1, (struct rp_interval){170, 200})); /* the work ends at 170 */
    assert_true(rp_step_is_judged(m.t, 1, (struct rp_interval){169, 200}));
    assert_false(rp_step_is_judged(m.t, 1, (struct rp_interval){0, 20})); /* and begins at 20 */
    assert_true(rp_step_is_judged(m.t, 1, (struct rp_interval){0, 21}));
    assert_int_equal(rp_whole_steps(m.t), 3);
    m.t->steps[2].flags |= RP_STEP_CUT_OFF;
    assert_int_equal(rp_whole_steps(m.t), 2);
    m.span = rp_trace_span(m.t); /* up to the step that was cut off */
    assert_int_equal(m.span.begin_ns, 0);
    assert_int_equal(m.span.end_ns, 200);
    measured_release(&m);
}

/* Where the work of one step belongs, and how long it is shown: to the next mark, or to the end of
   its own if there is a break. */
static void a_step_is_a_scope(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 90},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 100, 80},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 50, 4, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 95, 4, 6}, /* between the marks */
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 7},
        {'X', "kernel", "a", 0, 7, 60, 10, 5, 7},
        {'X', "kernel", "a", 0, 7, 99, 6, 6, 7},
        {'X', "kernel", "a", 0, 7, 155, 40, 7, 7},
    };
    struct measured m = MEASURE(rows);
    struct rp_scope s = rp_scope_of_step(m.t, 0);

    UNUSED_STATE(state);
    assert_true(s.limited && s.by_launch);
    assert_int_equal(s.step, 1);
    assert_int_equal(s.begin_ns, 0);
    assert_int_equal(s.end_ns, 100);
    assert_int_equal(s.span.begin_ns, 0);
    assert_int_equal(s.span.end_ns, 105);
    s = rp_scope_of_step(m.t, 1);
    assert_int_equal(s.step, 2);
    assert_int_equal(s.begin_ns, 100);
    assert_int_equal(s.end_ns, 180);
    assert_int_equal(s.span.begin_ns, 105);
    assert_int_equal(s.span.end_ns, 195);
    m.t->steps[0].flags |= RP_STEP_BREAK_AFTER | RP_STEP_ON_DEVICE;
    m.t->steps[0].work_end_ns = 70;
    s = rp_scope_of_step(m.t, 0);
    assert_false(s.by_launch);
    assert_int_equal(s.end_ns, 90);
    assert_int_equal(s.span.end_ns, 90);
    measured_release(&m);
}

static void a_window_is_a_scope(void **state)
{
    static const struct row rows[] = {{'X', "cpu_op", "aten::mm", 1, 1, 100, 80}};
    static const struct {
        int64_t begin, end, span_begin, span_end;
    } cases[] = {{110, 120, 110, 120},
                 {50, 120, 100, 120},
                 {110, 900, 110, 180},
                 {200, 300, 200, 200},
                 {0, 50, 100, 100}};
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_scope s = rp_scope_of_window(t, cases[i].begin, cases[i].end);

        assert_true(s.limited && !s.by_launch);
        assert_int_equal(s.step, 0);
        assert_int_equal(s.begin_ns, cases[i].begin);
        assert_int_equal(s.end_ns, cases[i].end);
        assert_int_equal(s.span.begin_ns, cases[i].span_begin);
        assert_int_equal(s.span.end_ns, cases[i].span_end);
    }
    rp_trace_free(t);
}

/* Work is kept if it touches a segment from before, and begins before its end. */
static void work_of_segments(void **state)
{
    static const struct {
        int64_t ts, dur;
        bool kept;
    } items[] = {{-20, 19, false}, {-20, 20, true}, {0, 1, true},    {49, 500, true},
                 {50, 10, false},  {50, 49, false}, {50, 50, true},  {99, 2, true},
                 {149, 9, true},   {150, 9, false}, {160, 0, false}, {70, 400, true}};
    enum { N = sizeof items / sizeof items[0] };
    struct rp_interval at[] = {{0, 50}, {100, 150}};
    const struct rp_segments s = {2, at};

    UNUSED_STATE(state);
    for (size_t i = 0; i < N; i++) {
        const struct row row[] = {{'X', "kernel", "k", 0, 7, items[i].ts, items[i].dur, 0, 7}};
        struct rp_trace *t = TRACE_OF(row);
        struct rp_work w;

        assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
        rp_segments_keep_work(&s, &w);
        assert_int_equal(w.items.n, items[i].kept);
        rp_work_release(&w);
        rp_trace_free(t);
    }
}

#define STEPS "\"steps\":[{\"name\":\"ProfilerStep#1\",\"begin_ns\":0,\"end_ns\":90}]}"

/* A part of a recording says where the step before it ended; the first work of its own waits for
   that. */
static void a_part_knows_the_step_before(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "b", 0, 8, 170, 10, 6, 8},
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 100, 90},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 150, 4, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 155, 4, 6},
        {'X', "kernel", "a", 0, 7, 160, 10, 5, 7},
    };
    static const struct {
        const char *meta;
        int64_t end;
    } cases[] = {{"{\"previous_end_ns\":-20," STEPS, RP_NO_TS},
                 {"{\"previous_end_ns\":20," STEPS, 120},
                 {"{\"other\":20}", RP_NO_TS}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_builder *b = build_rows(rows, 5);
        struct rp_trace *t;
        bool unrecorded;
        rp_event last;

        assert_code(
            rp_builder_add_meta(b, str_of(b, RP_CUT_KEY), str_of(b, cases[i].meta), false, NULL),
            RP_OK);
        t = finish_valid(b);
        assert_int_equal(t->totals.span_begin_ns, 100);
        assert_int_equal(rp_previous_step_end(t, &last, &unrecorded), cases[i].end);
        assert_int_equal(unrecorded, cases[i].end != RP_NO_TS);
        if (cases[i].end != RP_NO_TS)
            assert_int_equal(t->ev.ts_ns[last], 160);
        else
            assert_int_equal(last, RP_NONE);
        rp_trace_free(t);
    }
}

int test_step_times(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_knows_the_step_before),
        cmocka_unit_test(the_host_runs_ahead),
        cmocka_unit_test(a_step_is_a_scope),
        cmocka_unit_test(a_window_is_a_scope),
        cmocka_unit_test(work_of_segments),
        cmocka_unit_test(the_host_sets_the_pace),
        cmocka_unit_test(one_step),
        cmocka_unit_test(work_of_the_step_before),
        cmocka_unit_test(work_that_waits_for_what_was_not_recorded),
        cmocka_unit_test(little_may_run_during_a_wait),
        cmocka_unit_test(launches_that_were_not_recorded),
        cmocka_unit_test(steps_without_device_work),
        cmocka_unit_test(work_without_a_launch),
        cmocka_unit_test(marks_that_overlap),
        cmocka_unit_test(times_at_the_limits),
        cmocka_unit_test(steps_of_the_device),
        cmocka_unit_test(traces_without_steps),
        cmocka_unit_test(two_copies_are_no_window),
        cmocka_unit_test(copies_are_device_work),
    };

    return cmocka_run_group_tests_name("step times", tests, NULL, NULL);
}
