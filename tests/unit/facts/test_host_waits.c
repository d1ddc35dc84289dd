/* SPDX-License-Identifier: Apache-2.0 */
/* Waits are added up by call, range and kind of thread; names that count are one. */
#include "facts/host/waits.h"
#include "trace/trace_fixtures.h"

static const struct row rows[] = {
    {'X', "user_annotation", "step 0", 1, 1, 0, 100},
    {'X', "blocking", "poll", 1, 1, 10, 40},
    {'X', "user_annotation", "step 1", 1, 1, 100, 100},
    {'X', "blocking", "poll", 1, 1, 110, 20},
    {'X', "user_annotation", "load", 1, 1, 150, 40},
    {'X', "blocking", "read", 1, 1, 160, 30},
    {'X', "user_annotation", "step 2", 1, 1, 200, 100},
    {'X', "collective_comm", "MPI_Barrier", 1, 1, 210, 50},
    {'X', "blocking", "poll", 1, 1, 215, 40},             /* part of the collective */
    {'X', "blocking", "pthread_cond_wait", 1, 2, 0, 300}, /* a worker */
    {'X', "blocking", "MPI_Waitall", 1, 1, 265, 20},
    {'X', "blocking", "poll", 1, 1, 266, 10}, /* part of another wait */
};

static void waits_have_places(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    static const struct rp_interval parts[] = {{0, 10}, {280, 300}};
    struct rp_host_waits w, sum = {0};

    UNUSED_STATE(state);
    assert_code(rp_host_waits_init(&w, t, &(struct rp_interval){0, 300}, 1, &arena, NULL), RP_OK);
    assert_int_equal(w.rows.n, 4);
    assert_string_equal(w.rows.at[0].call, "poll");
    assert_string_equal(w.rows.at[0].range, "step *");
    assert_int_equal(w.rows.at[0].total_ns, 60);
    assert_int_equal(w.rows.at[0].count, 2);
    assert_int_equal(w.rows.at[0].longest_ns, 40);
    assert_string_equal(w.rows.at[1].call, "read");
    assert_string_equal(w.rows.at[1].range, "load");
    assert_string_equal(w.rows.at[2].call, "MPI_Waitall");
    assert_true(w.rows.at[3].worker);
    assert_null(w.rows.at[3].range);
    assert_int_equal(w.threads, 1);
    assert_int_equal(w.workers, 1);
    assert_int_equal(w.main_ns, 110);
    assert_int_equal(w.worker_ns, 300);
    assert_code(rp_host_waits_join(&sum, &w, NULL), RP_OK);
    assert_code(rp_host_waits_join(&sum, &w, NULL), RP_OK);
    assert_int_equal(sum.rows.n, 4);
    assert_int_equal(sum.rows.at[0].total_ns, 120);
    assert_int_equal(sum.workers, 2);
    rp_host_waits_release(&sum);
    rp_host_waits_release(&w);
    /* only what lies in the span */
    assert_code(rp_host_waits_init(&w, t, &(struct rp_interval){30, 120}, 1, &arena, NULL), RP_OK);
    assert_int_equal(w.rows.at[0].total_ns, 20 + 10);
    assert_int_equal(w.worker_ns, 90);
    rp_host_waits_release(&w);
    assert_code(rp_host_waits_init(&w, t, parts, 2, &arena, NULL), RP_OK);
    assert_int_equal(w.worker_ns, 10 + 20);
    rp_host_waits_release(&w);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

static void calls_wait_for_something(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_wait_kind_of("pthread_cond_wait"), RP_WAIT_THREAD);
    assert_int_equal(rp_wait_kind_of("sem_wait"), RP_WAIT_THREAD);
    assert_int_equal(rp_wait_kind_of("epoll_wait"), RP_WAIT_INPUT);
    assert_int_equal(rp_wait_kind_of("recvmsg"), RP_WAIT_INPUT);
    assert_int_equal(rp_wait_kind_of("writev"), RP_WAIT_OUTPUT);
    assert_int_equal(rp_wait_kind_of("waitpid"), RP_WAIT_CHILD);
    assert_int_equal(rp_wait_kind_of("clock_nanosleep"), RP_WAIT_SLEEP);
    assert_int_equal(rp_wait_kind_of("MPI_Wait"), RP_WAIT_RANKS);
    assert_int_equal(rp_wait_kind_of("unheard_of"), RP_WAIT_OTHER);
}

/* Without ranges and operators the first thread of a process is the one that works. */
static void main_threads_are_no_workers(void **state)
{
    static const struct row plain[] = {{'X', "blocking", "poll", 7, 7, 0, 10},
                                       {'X', "blocking", "poll", 7, 8, 0, 10}};
    struct rp_trace *t = TRACE_OF(plain);
    rp_track track;
    int workers = 0;

    UNUSED_STATE(state);
    for (track = 0; track < t->ntracks; track++)
        if (t->tracks[track].kind == RP_TRACK_THREAD) {
            workers += rp_track_is_worker(t, track);
            assert_int_equal(rp_track_is_worker(t, track), t->tracks[track].native_id == 8);
        }
    assert_int_equal(workers, 1);
    rp_trace_free(t);
}

/* Python code alone shows that a thread works, and that the other one does not. */
static void threads_of_python_work(void **state)
{
    static const struct row python[] = {{'X', "python_function", "train.py(7): step", 7, 7, 0, 10},
                                        {'X', "blocking", "poll", 7, 8, 0, 10}};
    struct rp_trace *t = TRACE_OF(python);

    UNUSED_STATE(state);
    for (rp_track track = 0; track < t->ntracks; track++)
        if (t->tracks[track].kind == RP_TRACK_THREAD)
            assert_int_equal(rp_track_is_worker(t, track), t->tracks[track].native_id == 8);
    rp_trace_free(t);
}

/* A program of which only calls were recorded runs its own code between them. */
static void code_runs_between_calls(void **state)
{
    static const struct row calls[] = {
        {'X', "mpi", "MPI_Init", 7, 7, 0, 100},
        {'X', "collective_comm", "MPI_Allreduce", 7, 7, 150, 20},
        {'X', "blocking", "read", 7, 7, 180, 10},
        {'X', "mpi", "MPI_Finalize", 7, 7, 200, 50},
        {'X', "blocking", "poll", 7, 8, 0, 10}, /* a worker */
        {'X', "blocking", "poll", 7, 8, 290, 10},
        {'X', "mpi", "MPI_Init", 9, 9, 300, 10}, /* another process */
        {'X', "mpi", "MPI_Finalize", 9, 9, 340, 10},
    };
    static const struct rp_scope scope = {.limited = true, .begin_ns = 120, .end_ns = 160};
    struct rp_trace *t = TRACE_OF(calls), *ranges = TRACE_OF(rows);
    rp_interval_vec work = {0};

    UNUSED_STATE(state);
    assert_true(rp_trace_has_calls_only(t));
    assert_false(rp_trace_has_calls_only(ranges));
    assert_code(rp_ranges_unite(t, NULL, &work, NULL), RP_OK);
    assert_int_equal(work.n, 4);
    assert_int_equal(work.at[0].begin_ns, 100);
    assert_int_equal(work.at[0].end_ns, 150);
    assert_int_equal(work.at[1].begin_ns, 170);
    assert_int_equal(work.at[1].end_ns, 180);
    assert_int_equal(work.at[2].begin_ns, 190);
    assert_int_equal(work.at[2].end_ns, 200);
    assert_int_equal(work.at[3].begin_ns, 310);
    assert_int_equal(work.at[3].end_ns, 340);
    work.n = 0;
    assert_code(rp_ranges_unite(t, &scope, &work, NULL), RP_OK);
    assert_int_equal(work.n, 1);
    assert_int_equal(work.at[0].begin_ns, 120);
    assert_int_equal(work.at[0].end_ns, 150);
    rp_vec_release(&work);
    rp_trace_free(ranges);
    rp_trace_free(t);
}

/* Ranges work, except where their thread waits or is in a collective. */
static void ranges_work_between_waits(void **state)
{
    static const struct rp_interval wanted[] = {{0, 10},    {50, 110},  {130, 160},
                                                {190, 210}, {260, 265}, {285, 300}};
    static const struct rp_scope scope = {.limited = true, .begin_ns = 100, .end_ns = 200};
    struct rp_trace *t = TRACE_OF(rows);
    rp_interval_vec work = {0};
    int64_t sum = 0;

    UNUSED_STATE(state);
    assert_code(rp_ranges_unite(t, NULL, &work, NULL), RP_OK);
    assert_int_equal(work.n, 6);
    for (size_t i = 0; i < work.n; i++) {
        assert_int_equal(work.at[i].begin_ns, wanted[i].begin_ns);
        assert_int_equal(work.at[i].end_ns, wanted[i].end_ns);
    }
    work.n = 0;
    assert_code(rp_ranges_unite(t, &scope, &work, NULL), RP_OK);
    for (size_t i = 0; i < work.n; i++)
        sum += work.at[i].end_ns - work.at[i].begin_ns;
    assert_int_equal(sum, 10 + 30 + 10); /* of the ranges that begin in it: "step 1", "load" */
    rp_vec_release(&work);
    rp_trace_free(t);
}

static const char *series_in(const struct rp_trace *t, const struct rp_name_series *s,
                             const char *name)
{
    for (rp_str i = 0; i < t->str.n; i++)
        if (!strcmp(rp_trace_str(t, i), name))
            return rp_name_series_of(s, i);
    return "no such name";
}

static void names_that_count_are_a_series(void **state)
{
    static const struct row names[] = {
        {'X', "user_annotation", "step 0", 1, 1, 0, 5},
        {'X', "user_annotation", "step 1", 1, 1, 10, 5},
        {'X', "user_annotation", "step 2", 1, 1, 20, 5},
        {'X', "user_annotation", "layer 0", 1, 2, 0, 1}, /* come again: names of their own */
        {'X', "user_annotation", "layer 1", 1, 2, 2, 1},
        {'X', "user_annotation", "layer 2", 1, 2, 4, 1},
        {'X', "user_annotation", "layer 0", 1, 2, 6, 1},
        {'X', "user_annotation", "epoch 1", 1, 3, 0, 1}, /* too few */
        {'X', "user_annotation", "epoch 2", 1, 3, 2, 1},
        {'X', "user_annotation", "2024", 1, 4, 0, 1},
    };
    struct rp_trace *t = TRACE_OF(names);
    struct rp_name_series s;

    UNUSED_STATE(state);
    assert_code(rp_name_series_init(&s, t, NULL), RP_OK);
    assert_string_equal(series_in(t, &s, "step 1"), "step *");
    assert_null(series_in(t, &s, "layer 1"));
    assert_null(series_in(t, &s, "epoch 1"));
    assert_null(series_in(t, &s, "2024"));
    rp_name_series_release(&s);
    rp_trace_free(t);
}

static void each_call_waits_for_something(void **state)
{
    static const struct {
        const char *call;
        enum rp_wait_kind kind;
    } calls[] = {{"MPI_Recv", RP_WAIT_RANKS},      {"c10d::wait", RP_WAIT_RANKS},
                 {"pthread_join", RP_WAIT_THREAD}, {"sem_timedwait", RP_WAIT_THREAD},
                 {"futex", RP_WAIT_THREAD},        {"readv", RP_WAIT_INPUT},
                 {"pread64", RP_WAIT_INPUT},       {"recvfrom", RP_WAIT_INPUT},
                 {"poll", RP_WAIT_INPUT},          {"ppoll", RP_WAIT_INPUT},
                 {"select", RP_WAIT_INPUT},        {"epoll_pwait", RP_WAIT_INPUT},
                 {"accept4", RP_WAIT_INPUT},       {"connect", RP_WAIT_INPUT},
                 {"write", RP_WAIT_OUTPUT},        {"pwrite64", RP_WAIT_OUTPUT},
                 {"sendmsg", RP_WAIT_OUTPUT},      {"fsync", RP_WAIT_OUTPUT},
                 {"fdatasync", RP_WAIT_OUTPUT},    {"wait4", RP_WAIT_CHILD},
                 {"nanosleep", RP_WAIT_SLEEP},     {"clock_nanosleep", RP_WAIT_SLEEP},
                 {"usleep", RP_WAIT_SLEEP},        {"sleep", RP_WAIT_SLEEP},
                 {"my_read", RP_WAIT_OTHER}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        assert_int_equal(rp_wait_kind_of(calls[i].call), calls[i].kind);
}

/* Waits of two ranks: those of one call, range and kind of thread are one row. */
static void waits_of_ranks_are_joined(void **state)
{
    struct rp_host_wait first[] = {
        {.call = "poll", .range = "step", .total_ns = 50, .count = 2, .longest_ns = 40},
        {.call = "poll", .total_ns = 5, .count = 1, .longest_ns = 5}};
    struct rp_host_wait second[] = {
        {.call = "poll", .range = "step", .total_ns = 70, .count = 3, .longest_ns = 60},
        {.call = "poll", .range = "step", .worker = true, .total_ns = 7, .count = 1},
        {.call = "read", .range = "step", .total_ns = 500, .count = 1},
        {.call = "poll", .range = "load", .total_ns = 9, .count = 1},
        {.call = "poll", .total_ns = 3, .count = 1, .longest_ns = 3}};
    const struct rp_host_waits a = {.rows = {.at = first, .n = 2},
                                    .threads = 1,
                                    .workers = 2,
                                    .main_ns = 55,
                                    .worker_ns = 3},
                               b = {.rows = {.at = second, .n = 5},
                                    .threads = 3,
                                    .workers = 4,
                                    .main_ns = 100,
                                    .worker_ns = 7};
    static const struct {
        const char *call, *range;
        int64_t total, count, longest;
        bool worker;
    } want[] = {{"read", "step", 500, 1, 0, false},
                {"poll", "step", 120, 5, 60, false},
                {"poll", "load", 9, 1, 0, false},
                {"poll", NULL, 8, 2, 5, false},
                {"poll", "step", 7, 1, 0, true}};
    struct rp_host_waits sum = {0};

    UNUSED_STATE(state);
    assert_code(rp_host_waits_join(&sum, &a, NULL), RP_OK);
    assert_code(rp_host_waits_join(&sum, &b, NULL), RP_OK);
    rp_host_waits_sort(&sum);
    assert_int_equal(sum.rows.n, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct rp_host_wait *x = &sum.rows.at[i];

        assert_string_equal(x->call, want[i].call);
        assert_string_equal(x->range ? x->range : "", want[i].range ? want[i].range : "");
        assert_int_equal(x->total_ns, want[i].total);
        assert_int_equal(x->count, want[i].count);
        assert_int_equal(x->longest_ns, want[i].longest);
        assert_int_equal(x->worker, want[i].worker);
    }
    assert_int_equal(sum.threads, 4);
    assert_int_equal(sum.workers, 6);
    assert_int_equal(sum.main_ns, 155);
    assert_int_equal(sum.worker_ns, 10);
    rp_host_waits_release(&sum);
}

/* Rows of equal times are in the order of their calls, then of their ranges. */
static void equal_waits_are_in_order(void **state)
{
    struct rp_host_wait rows_of[] = {{.call = "read", .total_ns = 5},
                                     {.call = "poll", .range = "b", .total_ns = 5},
                                     {.call = "poll", .range = "a", .total_ns = 5},
                                     {.call = "poll", .total_ns = 5}};
    struct rp_host_waits w = {.rows = {.at = rows_of, .n = 4}};

    UNUSED_STATE(state);
    rp_host_waits_sort(&w);
    assert_null(w.rows.at[0].range);
    assert_string_equal(w.rows.at[1].range, "a");
    assert_string_equal(w.rows.at[2].range, "b");
    assert_string_equal(w.rows.at[3].call, "read");
}

/* Calls on two queues of one program: while one is empty a call of the other may run. */
static void queues_of_calls_are_one_program(void **state)
{
    static const struct {
        const char *queue;
        int64_t ts, dur;
    } calls[] = {{"first", 0, 100}, {"first", 300, 100}, {"second", 150, 100}, {"second", 500, 50}};
    struct rp_builder *b = build_rows(NULL, 0);
    rp_interval_vec work = {0};
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++) {
        struct rp_raw raw = {.ts_ns = calls[i].ts,
                             .dur_ns = calls[i].dur,
                             .name = str_of(b, "call"),
                             .origin = origin_of(b, 'X', "collective_comm")};
        uint32_t process;

        assert_code(rp_builder_process(b, 1, 0, &process, NULL), RP_OK);
        assert_code(
            rp_builder_track(b, process, 0, str_of(b, calls[i].queue), true, &raw.track, NULL),
            RP_OK);
        assert_code(rp_builder_shape(b, NULL, 0, &raw.shape, NULL), RP_OK);
        assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
    }
    t = finish_valid(b);
    assert_true(rp_trace_has_calls_only(t));
    assert_code(rp_ranges_unite(t, NULL, &work, NULL), RP_OK);
    /* from 0 to 550 without 0 to 100, 150 to 250, 300 to 400 and 500 to 550 */
    assert_int_equal(work.n, 3);
    assert_true(work.at[0].begin_ns == 100 && work.at[0].end_ns == 150);
    assert_true(work.at[1].begin_ns == 250 && work.at[1].end_ns == 300);
    assert_true(work.at[2].begin_ns == 400 && work.at[2].end_ns == 500);
    rp_vec_release(&work);
    rp_trace_free(t);
}

/* Anything else that a program does shows that more than its calls was recorded. */
static void only_calls_were_recorded(void **state)
{
    static const char *const others[] = {"user_annotation", "cpu_op", "cuda_runtime",
                                         "python_function", "kernel", NULL};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct row some[] = {
            {'X', "collective_comm", "MPI_Allreduce", 7, 7, 150, 20},
            {'X', others[i] ? others[i] : "blocking", "other", 7, 7, 10, 20},
        };
        struct rp_trace *t = TRACE_OF(some), *alone = trace_of(some + 1, 1);

        assert_int_equal(rp_trace_has_calls_only(t), !others[i]);
        assert_false(rp_trace_has_calls_only(alone));
        rp_trace_free(t);
        rp_trace_free(alone);
    }
}

int test_host_waits(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_calls_were_recorded),
                                       cmocka_unit_test(each_call_waits_for_something),
                                       cmocka_unit_test(waits_of_ranks_are_joined),
                                       cmocka_unit_test(equal_waits_are_in_order),
                                       cmocka_unit_test(queues_of_calls_are_one_program),
                                       cmocka_unit_test(waits_have_places),
                                       cmocka_unit_test(calls_wait_for_something),
                                       cmocka_unit_test(main_threads_are_no_workers),
                                       cmocka_unit_test(threads_of_python_work),
                                       cmocka_unit_test(code_runs_between_calls),
                                       cmocka_unit_test(ranges_work_between_waits),
                                       cmocka_unit_test(names_that_count_are_a_series)};

    return cmocka_run_group_tests_name("host_waits", tests, NULL, NULL);
}
