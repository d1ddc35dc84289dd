/* SPDX-License-Identifier: Apache-2.0 */
/* Each piece of a gap has one cause, and each gap one class. */
#include "facts/idle/gaps.h"
#include "trace/trace_fixtures.h"

#define US 1000
#define MS 1000000

#define MOST_PIECES 8

/* The pieces of the gaps of a trace in [begin, end). */
static size_t pieces_in(const struct row *rows, size_t n, int64_t begin, int64_t end,
                        struct rp_gap *out, char host[MOST_PIECES][64])
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_gap_finder *finder;
    rp_gap_vec gaps = {0};
    struct rp_work w;
    size_t i;

    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_gap_finder_new(w.trace, &finder, NULL), RP_OK);
    assert_code(rp_gaps_find_in(finder, &w, begin, end, &gaps, NULL), RP_OK);
    rp_gap_finder_free(finder);
    assert_in_range(gaps.n, 1, MOST_PIECES);
    n = gaps.n;
    for (i = 0; i < n; i++) {
        out[i] = gaps.at[i];
        snprintf(host[i], sizeof host[i], "%s",
                 out[i].host == RP_NONE ? "" : name_of(t, out[i].host));
    }
    rp_vec_release(&gaps);
    rp_work_release(&w);
    rp_trace_free(t);
    return n;
}

/* The cause of most of the only gap of a trace, and its class. */
static void only_gap(const struct row *rows, size_t n, enum rp_gap_cause cause,
                     enum rp_gap_class cls, const char *host)
{
    struct rp_gap piece[MOST_PIECES];
    char ran[MOST_PIECES][64];
    size_t i, main = 0, found = pieces_in(rows, n, INT64_MIN, INT64_MAX, piece, ran);

    for (i = 0; i < found; i++) {
        assert_int_equal(piece[i].continues, i > 0);
        assert_string_equal(rp_gap_class_names[piece[i].cls], rp_gap_class_names[cls]);
        if (piece[i].end_ns - piece[i].begin_ns > piece[main].end_ns - piece[main].begin_ns)
            main = i;
    }
    assert_string_equal(rp_gap_cause_names[piece[main].cause], rp_gap_cause_names[cause]);
    if (host)
        assert_string_equal(ran[main], host);
}

struct want {
    enum rp_gap_cause cause;
    int64_t begin_ns, end_ns;
    const char *host; /* NULL: any */
};

/* All pieces, in their order. */
static void all_pieces(const struct row *rows, size_t n, int64_t begin, int64_t end,
                       const struct want *want, size_t nwant)
{
    struct rp_gap piece[MOST_PIECES];
    char ran[MOST_PIECES][64];
    size_t i, found = pieces_in(rows, n, begin, end, piece, ran);

    for (i = 0; i < found && i < nwant; i++) {
        assert_string_equal(rp_gap_cause_names[piece[i].cause], rp_gap_cause_names[want[i].cause]);
        assert_int_equal(piece[i].begin_ns, want[i].begin_ns);
        assert_int_equal(piece[i].end_ns, want[i].end_ns);
        if (want[i].host)
            assert_string_equal(ran[i], want[i].host);
    }
    assert_int_equal(found, nwant);
}

#define PIECES(rows, ...) PIECES_IN(rows, INT64_MIN, INT64_MAX, __VA_ARGS__)
#define PIECES_IN(rows, begin, end, ...)                               \
    all_pieces((rows), sizeof(rows) / sizeof(rows)[0], (begin), (end), \
               (const struct want[]){__VA_ARGS__},                     \
               sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want))

#define ONLY_GAP(rows, cause, cls, host) \
    only_gap((rows), sizeof(rows) / sizeof(rows)[0], RP_GAP_##cause, RP_GAP_CLASS_##cls, (host))

#define LAUNCH(ts, corr)                                                    \
    {                                                                       \
        'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, (ts), 4 * US, (corr) \
    }
#define KERNEL(ts, dur, corr)                               \
    {                                                       \
        'X', "kernel", "gemm", 0, 7, (ts), (dur), (corr), 7 \
    }

static void a_late_host_is_to_blame(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(300 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(310 * US, 90 * US, 2),
                               {'X', "cpu_op", "aten::slow", 1, 1, 110 * US, 180 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, NOT_LAUNCHED, NOT_LAUNCHED, "aten::slow");
}

/* Of a gap with a part that is left out, both ends are gaps of their own. */
static void what_is_left_out_divides_a_gap(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), LAUNCH(300 * US, 2), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(310 * US, 90 * US, 2)};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_gap_finder *finder;
    rp_gap_vec gaps = {0};
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_gap_finder_new(t, &finder, NULL), RP_OK);
    assert_code(rp_gaps_find_in(finder, &w, 0, 150 * US, &gaps, NULL), RP_OK);
    assert_code(rp_gaps_find_in(finder, &w, 250 * US, 290 * US, &gaps, NULL), RP_OK);
    assert_int_equal(gaps.at[gaps.n - 1].begin_ns, 250 * US);
    assert_int_equal(gaps.at[gaps.n - 1].continues, 0);
    rp_vec_release(&gaps);
    rp_gap_finder_free(finder);
    rp_work_release(&w);
    rp_trace_free(t);
}

static void a_wait_of_the_host_drains_the_device(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(300 * US, 2),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(310 * US, 90 * US, 2),
        {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 1, 20 * US, 81 * US, 9},
        {'X', "cpu_op", "aten::item", 1, 1, 110 * US, 180 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, SYNC_DRAIN, NOT_LAUNCHED, "cudaStreamSynchronize");
}

static void input_data_is_waited_for(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(300 * US, 2),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(310 * US, 90 * US, 2),
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20 * US, 81 * US, 9},
        {'X', "user_annotation", "enumerate(DataLoader)#Iter.__next__", 1, 1, 105 * US, 190 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, DATA_LOADER, NOT_LAUNCHED, "enumerate(DataLoader)#Iter.__next__");
}

static void a_call_far_above_its_median_is_a_stall(void **state)
{
    struct row rows[24] = {LAUNCH(0, 1), LAUNCH(30 * MS, 2), KERNEL(10 * US, 900 * US, 1),
                           KERNEL(31 * MS, 90 * US, 2)};
    int i;

    UNUSED_STATE(state);
    for (i = 4; i < 24; i++)
        rows[i] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, (100 + 10 * i) * US, 5 * US};
    rows[23] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, 500 * US, 29 * MS};
    ONLY_GAP(rows, HOST_STALL, NOT_LAUNCHED, "aten::mm");
}

static void a_thread_without_events_is_unrecorded(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), LAUNCH(30 * MS, 2), KERNEL(10 * US, 900 * US, 1),
                               KERNEL(31 * MS, 90 * US, 2)};

    UNUSED_STATE(state);
    ONLY_GAP(rows, HOST_UNRECORDED, NOT_LAUNCHED, NULL);
}

static void launched_work_has_latency_or_waits(void **state)
{
    const struct row close[] = {LAUNCH(0, 1), LAUNCH(20 * US, 2), KERNEL(10 * US, 90 * US, 1),
                                KERNEL(105 * US, 90 * US, 2)};
    const struct row streams[] = {LAUNCH(0, 1),
                                  LAUNCH(20 * US, 2),
                                  KERNEL(10 * US, 90 * US, 1),
                                  {'X', "kernel", "other", 0, 8, 200 * US, 9, 2, 8}};
    const struct row same[] = {LAUNCH(0, 1), LAUNCH(20 * US, 2), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(205 * US, 90 * US, 2)};
    const struct row copy[] = {LAUNCH(0, 1),
                               LAUNCH(20 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               {'X', "gpu_memcpy", "Memcpy", 0, 7, 200 * US, 9, 2, 7}};

    UNUSED_STATE(state);
    ONLY_GAP(close, LAUNCH_LATENCY, SHORT, "cudaLaunchKernel");
    ONLY_GAP(streams, EVENT_WAIT, DEPENDENCY, NULL);
    ONLY_GAP(same, DEVICE_WAIT, DEPENDENCY, NULL);
    ONLY_GAP(copy, COPY, DEPENDENCY, NULL);
}

static void without_a_launch_the_class_is_unlinked(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(205 * US, 90 * US, 3)};

    UNUSED_STATE(state);
    ONLY_GAP(rows, UNKNOWN, UNLINKED, NULL);
}

/* XProf shows runtime calls on a line of their own: what the host did stands on another. */
static void a_line_of_calls_has_another_thread_beside_it(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(200 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(205 * US, 90 * US, 2),
                               {'X', "python_function", "train.py: f", 1, 2, 0, 300 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, NOT_LAUNCHED, NOT_LAUNCHED, "train.py: f");
}

/* While the host waits all the time it launches nothing: the work was there, as that of a graph. */
static void a_host_that_still_waits_drains_nothing(void **state)
{
    const struct row waits[] = {
        LAUNCH(0, 1),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(102 * US, 90 * US, 3),
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20 * US, 500 * US}};
    const struct row ends[] = {
        LAUNCH(0, 1),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(302 * US, 90 * US, 3),
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20 * US, 81 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(waits, LAUNCH_LATENCY, UNLINKED, NULL);
    ONLY_GAP(ends, SYNC_DRAIN, UNLINKED, "cudaDeviceSynchronize");
}

/* ------------------------------------------------------------------ where a gap is split */

#define CALL(name, ts, dur, corr)                              \
    {                                                          \
        'X', "cuda_runtime", (name), 1, 1, (ts), (dur), (corr) \
    }
#define OP(name, ts, dur)                        \
    {                                            \
        'X', "cpu_op", (name), 1, 1, (ts), (dur) \
    }
#define FRAME(name, ts, dur)                              \
    {                                                     \
        'X', "python_function", (name), 1, 1, (ts), (dur) \
    }

/* Launched 100 us after the gap began, it waits for half a second on the device. */
static void a_gap_is_split_where_its_work_was_launched(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), LAUNCH(200 * US, 2), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(500 * MS, 90 * US, 2), OP("aten::slow", 105 * US, 90 * US)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_NOT_LAUNCHED, 100 * US, 204 * US, "aten::slow"},
           {RP_GAP_DEVICE_WAIT, 204 * US, 500 * MS, ""});
}

/* A call that loads code submits when it returns; work that starts before was submitted before. */
static void work_is_launched_when_its_call_returns(void **state)
{
    const struct row after[] = {LAUNCH(0, 1),
                                CALL("cudaLaunchKernel", 200 * US, 10 * MS, 2),
                                KERNEL(10 * US, 90 * US, 1),
                                {'X', "kernel", "other", 0, 7, 10250 * US, 90 * US, 2, 7}};
    const struct row inside[] = {LAUNCH(0, 1),
                                 CALL("cudaLaunchKernel", 200 * US, 10 * MS, 2),
                                 KERNEL(10 * US, 90 * US, 1),
                                 {'X', "kernel", "other", 0, 7, 9 * MS, 90 * US, 2, 7}};
    const struct row again[] = {LAUNCH(0, 1), CALL("cudaLaunchKernel", 200 * US, 10 * MS, 2),
                                KERNEL(10 * US, 90 * US, 1), KERNEL(9 * MS, 90 * US, 2)};

    UNUSED_STATE(state);
    PIECES(after, {RP_GAP_START_UP, 100 * US, 10200 * US, "cudaLaunchKernel"},
           {RP_GAP_LAUNCH_LATENCY, 10200 * US, 10250 * US, NULL});
    PIECES(inside, {RP_GAP_START_UP, 100 * US, 9 * MS, "cudaLaunchKernel"});
    /* not the first of its name: no code is loaded */
    PIECES(again, {RP_GAP_HOST_WORK, 100 * US, 9 * MS, "cudaLaunchKernel"});
}

/* Where steps are marked, recording began later than the run. */
static void a_marked_step_does_not_start_up(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               CALL("cudaLaunchKernel", 200 * US, 10 * MS, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               {'X', "kernel", "other", 0, 7, 9 * MS, 90 * US, 2, 7},
                               {'X', "user_annotation", "ProfilerStep#7", 1, 1, 0, 20 * MS}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_HOST_WORK, 100 * US, 9 * MS, "cudaLaunchKernel"});
}

/* Unless later launches of that kernel show that only the first took long: it loads code. */
static void a_first_launch_in_a_marked_step_loads_code(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               CALL("cudaLaunchKernel", 200 * US, 10 * MS, 2),
                               CALL("cudaLaunchKernel", 11 * MS, 5 * US, 3),
                               KERNEL(10 * US, 90 * US, 1),
                               {'X', "kernel", "other", 0, 7, 9 * MS, 2005 * US, 2, 7},
                               {'X', "kernel", "other", 0, 7, 11005 * US, 90 * US, 3, 7},
                               {'X', "user_annotation", "ProfilerStep#7", 1, 1, 0, 20 * MS}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_START_UP, 100 * US, 9 * MS, "cudaLaunchKernel"});
}

/* The mark of a server's step is not what the host ran. */
static void a_mark_of_a_server_is_not_what_runs(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(400 * US, 2),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(410 * US, 90 * US, 2),
        {'X', "user_annotation", "ProfilerStep#7", 1, 1, 0, 2 * MS},
        {'X', "user_annotation", "execute_16_context_0(0)_generation_16(16)", 1, 1, 0, 2 * MS}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_NOT_LAUNCHED, 100 * US, 404 * US, NULL},
           {RP_GAP_LAUNCH_LATENCY, 404 * US, 410 * US, "cudaLaunchKernel"});
}

/* A call that launches a graph submits node by node. */
static void a_graph_is_launched_as_long_as_its_call_runs(void **state)
{
    const struct row rows[] = {CALL("cudaGraphLaunch", 0, 300 * US, 1), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(500 * US, 90 * US, 1)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_NOT_LAUNCHED, 100 * US, 300 * US, "cudaGraphLaunch"},
           {RP_GAP_EVENT_WAIT, 300 * US, 500 * US, "cudaGraphLaunch"});
}

/* The call of a copy may wait until it is done. */
static void a_copy_is_launched_when_its_call_begins(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               CALL("cudaMemcpyAsync", 200 * US, 800 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 900 * US, 9, 2, 7}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_NOT_LAUNCHED, 100 * US, 200 * US, NULL},
           {RP_GAP_COPY, 200 * US, 900 * US, "cudaMemcpyAsync"});
}

/* When the gap begins all recorded work is done, so what an event waits for is not recorded. */
static void an_event_arrives_within_a_millisecond(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               CALL("cudaStreamWaitEvent", 12 * US, 2 * US, 9),
                               LAUNCH(20 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               {'X', "kernel", "other", 0, 8, 90 * MS, 9, 2, 8}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_DEVICE_WAIT, 100 * US, 90 * MS, ""});
}

/* ------------------------------------------------------------------ what the host ran */

static void a_long_wait_is_divided_by_what_the_host_ran(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(20 * MS, 2),
        KERNEL(10 * US, 990 * US, 1),
        KERNEL(20004 * US, 90 * US, 2),
        {'X', "user_annotation", "enumerate(DataLoader)#Iter.__next__", 1, 1, 1 * MS, 5 * MS},
        FRAME("preprocess", 6 * MS, 14 * MS),
        FRAME("resize", 6 * MS, 4 * MS),
        FRAME("normalize", 10 * MS, 10 * MS - 1 * US),
        FRAME("astype", 11 * MS, 2 * MS)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_DATA_LOADER, 1 * MS, 6 * MS, "enumerate(DataLoader)#Iter.__next__"},
           {RP_GAP_HOST_WORK, 6 * MS, 20004 * US, "normalize"});
}

/* Rounded times: the loader begins before the mark of the last step ends. */
static void spans_that_cross_are_both_there(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(20 * MS, 2),
        KERNEL(10 * US, 990 * US, 1),
        KERNEL(20004 * US, 90 * US, 2),
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 1 * MS + 1},
        {'X', "user_annotation", "enumerate(DataLoader)#Iter.__next__", 1, 1, 1 * MS, 19 * MS}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_DATA_LOADER, 1 * MS, 20004 * US, "enumerate(DataLoader)#Iter.__next__"});
}

/* What begins less than a microsecond before a wait ends is not part of it; what begins 2 us before
   it ends is. */
static void a_clock_cannot_tell_a_microsecond(void **state)
{
#define WAIT_UNTIL(ns)                                                            \
    {                                                                             \
        'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 10 * US, (ns)-10 * US \
    }
#define SAVED_AT(ns)                                               \
    {                                                              \
        'X', "user_annotation", "save", 1, 1, (ns), 20 * MS - (ns) \
    }
    const struct row close[] = {LAUNCH(0, 1),
                                LAUNCH(20 * MS, 2),
                                KERNEL(10 * US, 990 * US, 1),
                                KERNEL(20004 * US, 90 * US, 2),
                                WAIT_UNTIL(1010 * US),
                                SAVED_AT(1010 * US - 999)};
    const struct row apart[] = {LAUNCH(0, 1),
                                LAUNCH(20 * MS, 2),
                                KERNEL(10 * US, 990 * US, 1),
                                KERNEL(20004 * US, 90 * US, 2),
                                WAIT_UNTIL(1010 * US),
                                SAVED_AT(1008 * US)};

    UNUSED_STATE(state);
    PIECES(close, {RP_GAP_HOST_WORK, 1 * MS, 20004 * US, "save"});
    PIECES(apart, {RP_GAP_DEVICE_WAIT, 1 * MS, 20004 * US, NULL});
}

/* No function has half of the time: the one around them is named. */
static void host_work_is_named_by_what_has_half_of_it(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(10 * MS, 2),
                               KERNEL(10 * US, 990 * US, 1),
                               KERNEL(10004 * US, 90 * US, 2),
                               FRAME("main", 0, 30 * MS),
                               FRAME("preprocess", 1 * MS, 9 * MS),
                               FRAME("resize", 1 * MS, 3 * MS),
                               FRAME("normalize", 4 * MS, 3 * MS),
                               FRAME("crop", 7 * MS, 3 * MS)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_HOST_WORK, 1 * MS, 10004 * US, "preprocess"});
}

/* The host could have launched ahead while it waited, but what it does after that takes longer. */
static void work_after_a_wait_is_not_the_wait(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(60 * MS, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(60004 * US, 90 * US, 2),
                               CALL("cudaDeviceSynchronize", 20 * US, 81 * US, 9),
                               OP("normalize_images", 101 * US, 59 * MS)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_HOST_WORK, 100 * US, 60004 * US, "normalize_images"});
}

/* The device has nothing to do that was recorded, and the host still waits for it. */
static void a_long_wait_for_an_idle_device_is_the_device(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), LAUNCH(60 * MS, 2), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(60004 * US, 90 * US, 2),
                               CALL("cudaStreamSynchronize", 20 * US, 59 * MS, 9)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_DEVICE_WAIT, 100 * US, 59020 * US, "cudaStreamSynchronize"},
           {RP_GAP_HOST_UNRECORDED, 59020 * US, 60004 * US, NULL});
}

static void initialisation_is_start_up(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(60 * MS, 2),
                               KERNEL(10 * US, 990 * US, 1),
                               KERNEL(60004 * US, 90 * US, 2),
                               OP("aten::cudnn_convolution", 1 * MS, 59 * MS),
                               CALL("cudaFree", 1 * MS, 20 * MS, 8),
                               CALL("cuModuleLoadData", 21 * MS, 20 * MS, 9),
                               CALL("cudaFree", 41 * MS, 19 * MS, 10)};
    const struct row warm[] = {LAUNCH(0, 1),
                               LAUNCH(60 * MS, 2),
                               KERNEL(10 * US, 990 * US, 1),
                               KERNEL(60004 * US, 90 * US, 2),
                               {'X', "user_annotation", "warmup", 1, 1, 1 * MS, 70 * MS},
                               OP("aten::mul", 1 * MS, 59 * MS)};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_START_UP, 1 * MS, 21 * MS, "cudaFree"},
           {RP_GAP_START_UP, 21 * MS, 41 * MS, "cuModuleLoadData"},
           {RP_GAP_ALLOCATION, 41 * MS, 60004 * US, "cudaFree"});
    PIECES(warm, {RP_GAP_START_UP, 1 * MS, 60004 * US, "aten::mul"});
}

/* The thread that launches next waits for the threads of the backward pass. */
static void a_thread_that_waits_for_another_is_not_asked(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(60 * MS, 2),
        KERNEL(10 * US, 990 * US, 1),
        KERNEL(60004 * US, 90 * US, 2),
        FRAME("<built-in method run_backward of torch._C._EngineBase object>", 100 * US,
              59 * MS + 900 * US),
        {'X', "cuda_runtime", "hipFree", 1, 2, 500 * US, 100 * US, 8},
        {'X', "cuda_runtime", "hipFree", 1, 2, 1 * MS, 59 * MS, 9}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_ALLOCATION, 1 * MS, 60004 * US, "hipFree"});
}

/* JAX's main thread waits for one of PJRT's, which launches nothing; the last to end is the one. */
static void what_a_thread_waits_for_is_the_cause(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(60 * MS, 2),
                               KERNEL(10 * US, 990 * US, 1),
                               KERNEL(60004 * US, 90 * US, 2),
                               FRAME("$api.py:3165 try_to_block", 100 * US, 59 * MS + 800 * US),
                               {'X', "user_annotation", "Early", 1, 2, 500 * US, 30 * MS},
                               {'X', "user_annotation", "Event", 1, 3, 500 * US, 59350 * US},
                               {'X', "user_annotation", "Later", 1, 4, 500 * US, 70 * MS}};

    UNUSED_STATE(state);
    PIECES(rows, {RP_GAP_HOST_WORK, 1 * MS, 60004 * US, "Event"});
}

/* Long calls of a function of Python, and of an operator with more to do, are work. */
static void more_work_is_no_stall(void **state)
{
    struct row rows[46] = {LAUNCH(0, 1), LAUNCH(60 * MS, 2), KERNEL(10 * US, 990 * US, 1),
                           KERNEL(60004 * US, 90 * US, 2)};
    size_t n = 4;

    UNUSED_STATE(state);
    for (int64_t i = 0; i < 20; i++) {
        rows[n++] = (struct row)FRAME("<built-in function array>", 61 * MS + i * MS, 2 * US);
        rows[n++] = (struct row)OP("aten::copy_", 61 * MS + i * MS + 10 * US, 3 * US);
    }
    rows[n++] = (struct row)FRAME("<built-in function array>", 1 * MS, 40 * MS);
    rows[n] = (struct row)OP("aten::copy_", 41 * MS, 19 * MS);
    rows[n].text_key = "Input Dims";
    rows[n++].text = "[[1, 128, 3, 224, 224]]";
    assert_int_equal(n, sizeof rows / sizeof rows[0]);
    PIECES(rows, {RP_GAP_HOST_WORK, 1 * MS, 60004 * US, "<built-in function array>"});
}

/* ------------------------------------------------------------------ the edges of a span */

static void idle_before_the_first_and_after_the_last_work_has_a_cause(void **state)
{
    const struct row rows[] = {LAUNCH(30 * MS, 1), KERNEL(30004 * US, 90 * US, 1),
                               FRAME("load_image", 0, 30 * MS),
                               FRAME("save_image", 31 * MS, 10 * MS)};

    UNUSED_STATE(state);
    PIECES_IN(rows, 0, 41 * MS, {RP_GAP_HOST_WORK, 0, 30004 * US, "load_image"},
              {RP_GAP_HOST_WORK, 30094 * US, 41 * MS, "save_image"});
    /* and what lies outside is cut off */
    PIECES_IN(rows, 10 * MS, 31 * MS, {RP_GAP_HOST_WORK, 10 * MS, 30004 * US, "load_image"},
              {RP_GAP_NOT_LAUNCHED, 30094 * US, 31 * MS, NULL});
}

int test_gaps(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_host_is_to_blame),
        cmocka_unit_test(what_is_left_out_divides_a_gap),
        cmocka_unit_test(a_wait_of_the_host_drains_the_device),
        cmocka_unit_test(input_data_is_waited_for),
        cmocka_unit_test(a_call_far_above_its_median_is_a_stall),
        cmocka_unit_test(a_thread_without_events_is_unrecorded),
        cmocka_unit_test(launched_work_has_latency_or_waits),
        cmocka_unit_test(without_a_launch_the_class_is_unlinked),
        cmocka_unit_test(a_host_that_still_waits_drains_nothing),
        cmocka_unit_test(a_line_of_calls_has_another_thread_beside_it),
        cmocka_unit_test(a_gap_is_split_where_its_work_was_launched),
        cmocka_unit_test(work_is_launched_when_its_call_returns),
        cmocka_unit_test(a_marked_step_does_not_start_up),
        cmocka_unit_test(a_first_launch_in_a_marked_step_loads_code),
        cmocka_unit_test(a_mark_of_a_server_is_not_what_runs),
        cmocka_unit_test(a_graph_is_launched_as_long_as_its_call_runs),
        cmocka_unit_test(a_copy_is_launched_when_its_call_begins),
        cmocka_unit_test(an_event_arrives_within_a_millisecond),
        cmocka_unit_test(a_long_wait_is_divided_by_what_the_host_ran),
        cmocka_unit_test(spans_that_cross_are_both_there),
        cmocka_unit_test(a_clock_cannot_tell_a_microsecond),
        cmocka_unit_test(host_work_is_named_by_what_has_half_of_it),
        cmocka_unit_test(work_after_a_wait_is_not_the_wait),
        cmocka_unit_test(a_long_wait_for_an_idle_device_is_the_device),
        cmocka_unit_test(initialisation_is_start_up),
        cmocka_unit_test(a_thread_that_waits_for_another_is_not_asked),
        cmocka_unit_test(what_a_thread_waits_for_is_the_cause),
        cmocka_unit_test(more_work_is_no_stall),
        cmocka_unit_test(idle_before_the_first_and_after_the_last_work_has_a_cause),
    };

    return cmocka_run_group_tests_name("gaps", tests, NULL, NULL);
}
