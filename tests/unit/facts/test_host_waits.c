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

int test_host_waits(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_have_places),
                                       cmocka_unit_test(calls_wait_for_something),
                                       cmocka_unit_test(main_threads_are_no_workers),
                                       cmocka_unit_test(threads_of_python_work),
                                       cmocka_unit_test(code_runs_between_calls),
                                       cmocka_unit_test(ranges_work_between_waits),
                                       cmocka_unit_test(names_that_count_are_a_series)};

    return cmocka_run_group_tests_name("host_waits", tests, NULL, NULL);
}
