/* SPDX-License-Identifier: Apache-2.0 */
/* What a gap is, on both sides of every edge. */
#include "facts/idle/gaps.h"
#include "trace/trace_fixtures.h"

#define US 1000
#define MS 1000000

struct piece {
    enum rp_gap_cause cause;
    enum rp_gap_class cls;
    int64_t ns;
    char host[40];
};

/* The pieces of all gaps of a trace. */
static size_t pieces_of(const struct row *rows, size_t n, struct piece *out, size_t most)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_gap_finder *finder;
    rp_gap_vec gaps = {0};
    struct rp_work w;

    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_gap_finder_new(t, &finder, NULL), RP_OK);
    assert_code(rp_gaps_find(finder, &w, &gaps, NULL), RP_OK);
    assert_in_range(gaps.n, 1, most);
    for (size_t i = 0; i < gaps.n; i++) {
        out[i] = (struct piece){.cause = gaps.at[i].cause,
                                .cls = gaps.at[i].cls,
                                .ns = gaps.at[i].end_ns - gaps.at[i].begin_ns};
        if (gaps.at[i].host != RP_NONE)
            snprintf(out[i].host, sizeof out[i].host, "%s", name_of(t, gaps.at[i].host));
    }
    n = gaps.n;
    rp_vec_release(&gaps);
    rp_gap_finder_free(finder);
    rp_work_release(&w);
    rp_trace_free(t);
    return n;
}

#define LAUNCH(ts, dur, corr)                                        \
    {                                                                \
        'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, ts, dur, corr \
    }
#define KERNEL(ts, dur, corr)                         \
    {                                                 \
        'X', "kernel", "gemm", 0, 7, ts, dur, corr, 7 \
    }

/* A gap from 1 ms on; its work was launched at launch, and starts after the gap. */
static struct piece gap_of(int64_t launch, int64_t gap)
{
    const struct row rows[] = {LAUNCH(0, 4 * US, 1), KERNEL(10 * US, 990 * US, 1),
                               LAUNCH(launch, 1, 2), KERNEL(MS + gap, 10 * US, 2)};
    struct piece p[4];
    size_t n = pieces_of(rows, 4, p, 4);

    return p[n - 1];
}

static void a_gap_is_short_below_the_tolerance(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(gap_of(500 * US, 9999).cls, RP_GAP_CLASS_SHORT);
    assert_int_equal(gap_of(500 * US, 10000).cls, RP_GAP_CLASS_DEPENDENCY);
}

static void launched_work_is_on_its_way(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(gap_of(500 * US, 19999).cause, RP_GAP_LAUNCH_LATENCY);
    assert_int_equal(gap_of(500 * US, 20000).cause, RP_GAP_DEVICE_WAIT);
    /* launched just before the gap */
    assert_int_equal(gap_of(MS - 20000 - 1, 30 * US).cause, RP_GAP_LAUNCH_LATENCY);
    assert_int_equal(gap_of(MS - 20001 - 1, 30 * US).cause, RP_GAP_DEVICE_WAIT);
}

static void what_waits_goes_on_soon(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(gap_of(MS - 1, 100 * US).cause, RP_GAP_LAUNCH_LATENCY);
    assert_int_equal(gap_of(MS - 1, 100 * US + 1).cause, RP_GAP_DEVICE_WAIT);
}

/* A gap that begins at 100 µs; the host is late by `late`, with what the rows say. */
static size_t late_gap(int64_t late, const struct row *ran, size_t n, struct piece *out,
                       size_t most)
{
    struct row rows[80] = {LAUNCH(0, 4 * US, 1), KERNEL(10 * US, 90 * US, 1),
                           LAUNCH(100 * US + late, 0, 2),
                           KERNEL(100 * US + late + 5 * US, 10 * US, 2)};

    assert_in_range(n, 0, 76);
    for (size_t i = 0; i < n; i++)
        rows[4 + i] = ran[i];
    return pieces_of(rows, 4 + n, out, most);
}

static void from_a_millisecond_on_there_is_a_cause(void **state)
{
    struct piece p[4];

    UNUSED_STATE(state);
    late_gap(MS - 1, NULL, 0, p, 4);
    assert_int_equal(p[0].cause, RP_GAP_NOT_LAUNCHED);
    late_gap(MS, NULL, 0, p, 4);
    assert_int_equal(p[0].cause, RP_GAP_HOST_UNRECORDED);
}

/* Of 6.4 ms a 64th is 100 µs. */
static void a_small_segment_joins_its_neighbour(void **state)
{
    UNUSED_STATE(state);
    for (int64_t load = 99999; load <= 100000; load++) {
        const struct row ran[] = {
            {'X', "cpu_op", "prepare", 1, 1, 100 * US, 6400 * US},
            {'X', "cpu_op", "DataLoader.next", 1, 1, 3000 * US, load},
        };
        struct piece p[8];
        size_t n = late_gap(6400 * US, ran, 2, p, 8), loads = 0;

        for (size_t i = 0; i < n; i++)
            loads += p[i].cause == RP_GAP_DATA_LOADER;
        assert_int_equal(loads, load == 100000);
    }
}

/* Work of 6.5 ms in calls of 80 µs: 64 of them have most of it and name it; 65 are helpers. */
static void a_helper_does_not_name_the_work(void **state)
{
    UNUSED_STATE(state);
    for (size_t calls = 64; calls <= 65; calls++) {
        struct row ran[66] = {{'X', "cpu_op", "prepare", 1, 1, 100 * US, 6500 * US}};
        struct piece p[8];

        for (size_t i = 0; i < calls; i++)
            ran[1 + i] =
                (struct row){'X', "cpu_op", "resize", 1, 1, 100 * US * (int64_t)(i + 1), 80 * US};
        late_gap(6500 * US, ran, 1 + calls, p, 8);
        assert_int_equal(p[0].cause, RP_GAP_HOST_WORK);
        assert_string_equal(p[0].host, calls == 64 ? "resize" : "prepare");
    }
}

/* The host waited for the device until the gap began: clocks may differ by 10 µs. Of two threads
   that wait, the one that waits longest is named. */
static void a_wait_that_ended_before_a_gap_drained_the_device(void **state)
{
    struct piece p[4];

    UNUSED_STATE(state);
    for (int64_t before = 10000; before <= 10001; before++) {
        const struct row ran[] = {
            {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 2, 20 * US, 80 * US - before}};

        late_gap(400 * US, ran, 1, p, 4);
        assert_int_equal(p[0].cause, before == 10000 ? RP_GAP_SYNC_DRAIN : RP_GAP_NOT_LAUNCHED);
    }
    for (int k = 0; k < 2; k++) {
        const struct row ran[] = {
            {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 2, 20 * US, (75 + 10 * k) * US},
            {'X', "cuda_runtime", "cudaEventSynchronize", 1, 3, 30 * US, 70 * US}};

        late_gap(400 * US, ran, 2, p, 4);
        assert_string_equal(p[0].host, k ? "cudaStreamSynchronize" : "cudaEventSynchronize");
    }
}

/* 1,023 or 1,024 launches wait in the stream when that of the work after the gap is made; some of
   them are the kernels of one graph, and some have no launch that was recorded. */
static enum rp_gap_cause after_waiting(int waiting, int of_one_graph, int unlinked)
{
    struct row *rows = calloc(4096, sizeof *rows);
    struct piece p[8];
    size_t n = 0;
    int64_t at = 3 * MS;

    rows[n++] = (struct row)LAUNCH(0, 1, 1);
    rows[n++] = (struct row)KERNEL(2 * MS, 1000 * US, 1); /* runs when the launch is made */
    rows[n++] = (struct row)LAUNCH(MS * 5 / 2, 1, 5000);
    for (int i = 0; i < waiting; i++, at += 10) {
        if (i >= unlinked)
            rows[n++] = (struct row)LAUNCH(100 + 100 * i, 1, 10 + i);
        rows[n++] = (struct row)KERNEL(at, 10, i >= unlinked ? 10 + i : 0);
    }
    if (of_one_graph)
        rows[n++] =
            (struct row){'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 100 + 100 * waiting, 1, 4};
    for (int i = 0; i < of_one_graph; i++, at += 10)
        rows[n++] = (struct row)KERNEL(at, 10, 4);
    rows[n++] = (struct row)KERNEL(at + 2 * MS, 10, 5000);
    n = pieces_of(rows, n, p, 8);
    free(rows);
    return p[n - 1].cause;
}

static void a_queue_of_a_stream_holds_1024_launches(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(after_waiting(1024, 0, 0), RP_GAP_QUEUE_FULL);
    assert_int_equal(after_waiting(1023, 0, 0), RP_GAP_DEVICE_WAIT);
    assert_int_equal(after_waiting(1023, 8, 0), RP_GAP_QUEUE_FULL); /* a graph is one launch */
    assert_int_equal(after_waiting(1022, 8, 0), RP_GAP_DEVICE_WAIT);
    assert_int_equal(after_waiting(1024, 0, 5), RP_GAP_QUEUE_FULL); /* each its own */
    assert_int_equal(after_waiting(1023, 0, 5), RP_GAP_DEVICE_WAIT);
}

/* What the thread called before the launch: what waits 500 µs for it waited for an event, but not
   for one before another launch. */
static void a_wait_for_an_event_is_of_the_next_launch(void **state)
{
    static const struct {
        const char *category, *first, *second;
        enum rp_gap_cause cause;
    } cases[] = {
        {"cuda_runtime", "cudaStreamWaitEvent", "cudaGetDevice", RP_GAP_EVENT_WAIT},
        {"cuda_runtime", "cudaGetDevice", "hipStreamWaitEvent", RP_GAP_EVENT_WAIT},
        {"cuda_runtime", "cudaStreamWaitEvent", "cudaLaunchKernel", RP_GAP_DEVICE_WAIT},
        {"cuda_runtime", "cudaGetDevice", "cudaGetDevice", RP_GAP_DEVICE_WAIT},
        {"cpu_op", "cudaStreamWaitEvent", "cudaGetDevice", RP_GAP_DEVICE_WAIT},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct row rows[] = {
            LAUNCH(0, 4 * US, 1),
            KERNEL(10 * US, 990 * US, 1),
            {'X', cases[i].category, cases[i].first, 1, 1, 400 * US, 10},
            {'X', "cuda_runtime", cases[i].second, 1, 1, 450 * US, 10},
            LAUNCH(500 * US, 1, 2),
            KERNEL(MS + 500 * US, 10 * US, 2),
        };
        struct piece p[4];

        assert_int_equal(pieces_of(rows, 6, p, 4), 1);
        assert_string_equal(rp_gap_cause_names[p[0].cause], rp_gap_cause_names[cases[i].cause]);
    }
}

/* What the host ran in a gap is cut into pieces without holes: 100 µs of it loads data. */
static void pieces_fill_a_gap(void **state)
{
    const struct row ran[] = {
        {'X', "cpu_op", "prepare", 1, 1, 100 * US, 6400 * US},
        {'X', "cpu_op", "DataLoader.next", 1, 1, 3000 * US, 100 * US},
    };
    struct piece p[8];
    int64_t loads = 0, all = 0;

    UNUSED_STATE(state);
    for (size_t i = 0, n = late_gap(6400 * US, ran, 2, p, 8); i < n; i++) {
        loads += p[i].cause == RP_GAP_DATA_LOADER ? p[i].ns : 0;
        all += p[i].ns;
    }
    assert_int_equal(loads, 100 * US);
    assert_int_equal(all, 6405 * US);
}

/* All idle time of the steps by cause, and whether most of it is a start-up. */
static void idle_time_is_added_up(void **state)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 700 * US},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 700 * US, 300 * US},
        LAUNCH(10 * US, 4 * US, 1),
        KERNEL(20 * US, 80 * US, 1),
        LAUNCH(400 * US, 0, 2),
        KERNEL(405 * US, 95 * US, 2),
        LAUNCH(710 * US, 0, 3),
        KERNEL(715 * US, 285 * US, 3),
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arena arena = RP_ARENA_INIT;
    int64_t ns[RP_GAP_CAUSES] = {0}, all = 0;

    UNUSED_STATE(state);
    ns[RP_GAP_LAUNCH_LATENCY] = 1; /* of another rank */
    assert_code(rp_gaps_sum(t, &arena, ns, NULL), RP_OK);
    for (size_t i = 0; i < RP_GAP_CAUSES; i++)
        all += ns[i];
    /* 20 before the first, 305 and 215 in between */
    assert_int_equal(all, 540 * US + 1);
    /* a call has 20 us for what it submits: up to 14, 405 and 715 */
    assert_int_equal(ns[RP_GAP_LAUNCH_LATENCY], (6 + 5 + 5) * US + 1);
    assert_int_equal(ns[RP_GAP_NOT_LAUNCHED], all - ns[RP_GAP_LAUNCH_LATENCY]);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

static void most_of_the_idle_time_is_a_start_up(void **state)
{
    int64_t ns[RP_GAP_CAUSES] = {0};

    UNUSED_STATE(state);
    assert_false(rp_gaps_start_up(ns));
    ns[0] = 20;
    ns[RP_GAP_CAUSES - 1] = 30;
    ns[RP_GAP_START_UP] = 50;
    assert_false(rp_gaps_start_up(ns));
    ns[RP_GAP_START_UP] = 51;
    assert_true(rp_gaps_start_up(ns));
    ns[RP_GAP_CAUSES - 1] = 32;
    assert_false(rp_gaps_start_up(ns));
}

/* A single span with half of the work names it, with a nanosecond less the one around it does. */
static void half_of_the_work_names_it(void **state)
{
    UNUSED_STATE(state);
    for (int64_t less = 0; less < 2; less++) {
        const struct row ran[] = {
            {'X', "cpu_op", "prepare", 1, 1, 100 * US, 6500 * US},
            {'X', "cpu_op", "normalize", 1, 1, 1000 * US, 3250 * US - less},
        };
        struct piece p[8];

        assert_true(late_gap(6500 * US, ran, 2, p, 8) >= 1);
        assert_int_equal(p[0].cause, RP_GAP_HOST_WORK);
        assert_string_equal(p[0].host, less ? "prepare" : "normalize");
    }
}

/* A call of 4 ms that usually takes 10 µs; another thread launches in the middle of it. */
static void a_stall_has_two_gaps(void **state)
{
    struct row rows[40] = {
        LAUNCH(0, 4 * US, 1),
        KERNEL(10 * US, 990 * US, 1),
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 3000 * US, 0, 2},
        KERNEL(3005 * US, 95 * US, 2),
        LAUNCH(5100 * US, 0, 3),
        KERNEL(5105 * US, 10 * US, 3),
        {'X', "cpu_op", "aten::copy", 1, 1, 1000 * US, 4000 * US},
    };
    struct piece p[8];
    size_t n = 7, stalls = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 30; i++)
        rows[n++] = (struct row){'X', "cpu_op", "aten::copy", 1, 1, 10 * US + 20 * US * i, 10 * US};
    n = pieces_of(rows, n, p, 8);
    for (size_t i = 0; i < n; i++) {
        stalls += p[i].cause == RP_GAP_HOST_STALL;
        if (p[i].cause == RP_GAP_HOST_STALL) {
            assert_string_equal(p[i].host, "aten::copy");
            assert_true(p[i].ns > 1800 * US);
        }
    }
    assert_int_equal(stalls, 2);
}

/* Without any work all of a window is a gap. */
static void a_window_without_work_is_a_gap(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "prepare", 1, 1, 0, 20 * MS},
        {'X', "cpu_op", "more", 1, 1, 20 * MS, MS},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_gap_finder *finder;
    rp_gap_vec gaps = {0};
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_gap_finder_new(t, &finder, NULL), RP_OK);
    assert_code(rp_gaps_find(finder, &w, &gaps, NULL), RP_OK);
    assert_int_equal(gaps.n, 0);
    assert_code(rp_gaps_find_in(finder, &w, 1 * MS, 6 * MS, &gaps, NULL), RP_OK);
    assert_int_equal(gaps.n, 1);
    assert_int_equal(gaps.at[0].begin_ns, 1 * MS);
    assert_int_equal(gaps.at[0].end_ns, 6 * MS);
    assert_int_equal(gaps.at[0].before, RP_NONE);
    assert_int_equal(gaps.at[0].after, RP_NONE);
    assert_int_equal(gaps.at[0].cls, RP_GAP_CLASS_NOT_LAUNCHED);
    assert_int_equal(gaps.at[0].cause, RP_GAP_HOST_WORK);
    assert_string_equal(name_of(t, gaps.at[0].host), "prepare");
    rp_vec_release(&gaps);
    rp_gap_finder_free(finder);
    rp_work_release(&w);
    rp_trace_free(t);
}

/* A mark of the program's own is no work of the host: what ran inside of it was not recorded. */
static void marks_of_steps_do_not_work(void **state)
{
    struct row rows[12];
    struct piece p[8];
    size_t n = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"train_step 0", "train_step 1", "train_step 2",
                                            "train_step 3"};

        rows[n++] = (struct row){'X', "user_annotation", names[i], 1, 1, 10 * MS * i, 10 * MS};
        rows[n++] = (struct row)LAUNCH(10 * MS * i + 100 * US, 4 * US, i + 1);
        rows[n++] = (struct row)KERNEL(10 * MS * i + 110 * US, MS, i + 1);
    }
    n = pieces_of(rows, n, p, 8);
    for (size_t i = 0; i < n; i++)
        if (p[i].ns > MS)
            assert_string_equal(rp_gap_cause_names[p[i].cause],
                                rp_gap_cause_names[RP_GAP_HOST_UNRECORDED]);
}

/* Of two pieces of work that end together the later one is before the gap; of what ran in a short
   gap the longest is named. */
static void what_is_before_a_gap_and_in_it(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 4 * US, 1),
        LAUNCH(5 * US, 4 * US, 3),
        KERNEL(10 * US, 90 * US, 1),
        {'X', "kernel", "relu", 0, 8, 50 * US, 50 * US, 3, 8},
        {'X', "user_annotation", "DataLoader.long", 1, 1, 110 * US, 150 * US},
        {'X', "user_annotation", "DataLoader.short", 1, 1, 270 * US, 100 * US},
        LAUNCH(400 * US, 0, 2),
        KERNEL(405 * US, 10 * US, 2),
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_gap_finder *finder;
    rp_gap_vec gaps = {0};
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_gap_finder_new(t, &finder, NULL), RP_OK);
    assert_code(rp_gaps_find(finder, &w, &gaps, NULL), RP_OK);
    assert_int_equal(gaps.n, 2);
    assert_int_equal(gaps.at[0].cause, RP_GAP_DATA_LOADER);
    assert_string_equal(name_of(t, gaps.at[0].host), "DataLoader.long");
    assert_string_equal(name_of(t, w.items.at[gaps.at[0].before].event), "relu");
    assert_int_equal(gaps.at[0].after, 2);
    assert_int_equal(gaps.at[1].cause, RP_GAP_LAUNCH_LATENCY);
    assert_int_equal(gaps.at[1].begin_ns, 400 * US);
    assert_true(gaps.at[1].continues);
    rp_vec_release(&gaps);
    rp_gap_finder_free(finder);
    rp_work_release(&w);
    rp_trace_free(t);
}

int test_gap_edges(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_before_a_gap_and_in_it),
        cmocka_unit_test(a_window_without_work_is_a_gap),
        cmocka_unit_test(marks_of_steps_do_not_work),
        cmocka_unit_test(half_of_the_work_names_it),
        cmocka_unit_test(a_stall_has_two_gaps),
        cmocka_unit_test(idle_time_is_added_up),
        cmocka_unit_test(most_of_the_idle_time_is_a_start_up),
        cmocka_unit_test(a_gap_is_short_below_the_tolerance),
        cmocka_unit_test(launched_work_is_on_its_way),
        cmocka_unit_test(what_waits_goes_on_soon),
        cmocka_unit_test(from_a_millisecond_on_there_is_a_cause),
        cmocka_unit_test(a_small_segment_joins_its_neighbour),
        cmocka_unit_test(a_helper_does_not_name_the_work),
        cmocka_unit_test(a_wait_that_ended_before_a_gap_drained_the_device),
        cmocka_unit_test(a_queue_of_a_stream_holds_1024_launches),
        cmocka_unit_test(a_wait_for_an_event_is_of_the_next_launch),
        cmocka_unit_test(pieces_fill_a_gap),
    };

    return cmocka_run_group_tests_name("gap_edges", tests, NULL, NULL);
}
