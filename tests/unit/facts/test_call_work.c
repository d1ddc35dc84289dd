/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the inputs of a call explain how long it took. */
#include "facts/host/signs.h"
#include "facts/work/call_work.h"
#include "trace/trace_fixtures.h"

#define OP(name, ts, dur, dims)                                                     \
    {                                                                               \
        'X', "cpu_op", name, 1, 1, ts, dur, 0, 0, 0, NULL, 0, 0, "Input Dims", dims \
    }

static bool has_more(struct rp_call_work *w, int64_t n)
{
    bool out = false;

    assert_code(rp_call_has_more_work(w, event_n(w->t, n), &out, NULL), RP_OK);
    return out;
}

/* The usual call has 10 elements and takes 100; a core needs at most 20 for an element. */
static void more_elements_explain_a_longer_call(void **state)
{
    static const struct row rows[] = {
        OP("sum", 0, 900, "[[10, 10], []]"),   /* 100 elements in 900: a core needs 2000 */
        OP("sum", 1000, 900, "[[44]]"),        /* too few for 900, and only four times the usual */
        OP("sum", 2000, 2000, "[[40], [40]]"), /* eight times the usual, twenty times as long */
        OP("sum", 5000, 6400, "[[80]]"),       /* sixty-four times as long is the limit */
        OP("sum", 12000, 6500, "[[80]]"),      /* too long also for so many */
        OP("sum", 19000, 2000, "[[79]]"),
        OP("sum", 22000, 100, "[[10]]"),
        OP("sum", 22200, 100, "[[10]]"),
        OP("sum", 22400, 100, "[[10]]"),
        OP("sum", 22600, 100, "[[10]]"),
        OP("sum", 22800, 100, "[[10]]"),
        OP("sum", 23000, 100, "[[10]]"),
        OP("sum", 23200, 100, "[[10]]"),
        OP("sum", 23400, 100, "[[10]]"),
        {'X', "cpu_op", "sum", 1, 1, 24000, 9000}, /* nothing is known of its inputs */
        OP("sum", 34000, 9000, "[[]]"),
        OP("core", 44000, 2000, "[[10, 10]]"), /* 20 for each element */
        OP("more", 47000, 2020, "[[10, 10]]"),
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_call_work w;

    UNUSED_STATE(state);
    assert_code(rp_call_work_init(&w, t, NULL), RP_OK);
    assert_true(has_more(&w, 0));
    assert_false(has_more(&w, 1));
    assert_true(has_more(&w, 2));
    assert_true(has_more(&w, 3));
    assert_false(has_more(&w, 4));
    assert_false(has_more(&w, 5));
    assert_false(has_more(&w, 6) && t->ev.dur_ns[event_n(t, 6)] > 200);
    assert_false(has_more(&w, 14));
    assert_false(has_more(&w, 15));
    assert_true(has_more(&w, 16));
    assert_false(has_more(&w, 17));
    rp_call_work_release(&w);
    rp_trace_free(t);
}

/* As many elements in less than an eighth of the time: the size does not matter to this call. */
static void views_do_not_work(void **state)
{
    static const struct row rows[] = {
        OP("view", 0, 1600, "[[100]]"),     OP("view", 2000, 199, "[[50]]"),
        OP("other", 3000, 1600, "[[100]]"), OP("other", 5000, 200, "[[50]]"), /* an eighth */
        OP("least", 6000, 1600, "[[100]]"), OP("least", 8000, 100, "[[49]]"), /* not half of it */
        OP("calls", 9000, 1600, "[[100]]"), OP("inner", 9100, 50, "[[2]]"),   /* works below it */
        OP("next", 11000, 1600, "[[100]]"), OP("behind", 13000, 10, "[[2]]"),
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_call_work w;

    UNUSED_STATE(state);
    assert_code(rp_call_work_init(&w, t, NULL), RP_OK);
    assert_false(has_more(&w, 0));
    assert_true(has_more(&w, 2));
    assert_true(has_more(&w, 4));
    assert_false(has_more(&w, 6));
    assert_true(has_more(&w, 8));
    rp_call_work_release(&w);
    rp_trace_free(t);
}

static void texts_of_sizes(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_dims_elements("[[2, 3], [], [8]]"), 2 * 3 + 8 + (rp_dims_elements("[[]]")));
    assert_int_equal(rp_dims_elements("[[4, 5]]"), 20);
    assert_int_equal(rp_dims_elements("[[4000000000, 4000000000, 4000000000]]"), INT64_MAX);
    assert_true(rp_call_time_varies(RP_KIND_PYTHON, rp_host_signs("train.py(3): step")));
    assert_false(rp_call_time_varies(RP_KIND_CPU_OP, 0));
    assert_false(rp_call_time_varies(RP_KIND_PYTHON,
                                     rp_host_signs("<built-in function collect> gc.collect")));
}

/* A copy that waits for kernels, one that takes the time itself, one that ended long before the
   call did, and a call that launches a kernel. */
static void results_that_were_not_ready(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaMemcpy", 1, 1, 0, 1000, 1},
        {'X', "kernel", "a", 0, 7, 10, 960, 9, 7},
        {'X', "gpu_memcpy", "Memcpy DtoH", 0, 7, 980, 10, 1, 7},
        {'X', "cuda_runtime", "cudaMemcpy", 1, 1, 2000, 1000, 2},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 2010, 980, 2, 7},
        {'X', "cuda_runtime", "cudaMemcpy", 1, 1, 4000, 900000, 3},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 4010, 980, 3, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 910000, 1000, 4},
        {'X', "kernel", "b", 0, 7, 910500, 400, 4, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_interval spans[] = {
        {10, 970}, {980, 990}, {2010, 2990}, {4010, 4990}, {910500, 910900}};
    const rp_interval_vec busy = {.at = spans, .n = sizeof spans / sizeof spans[0]};

    UNUSED_STATE(state);
    assert_true(rp_call_waits_for_copy(t, event_n(t, 0)));
    assert_true(rp_call_waits_for_result(t, event_n(t, 0), &busy));
    assert_true(rp_call_waits_for_copy(t, event_n(t, 3)));
    assert_false(rp_call_waits_for_result(t, event_n(t, 3), &busy));
    assert_false(rp_call_waits_for_copy(t, event_n(t, 5)));
    assert_false(rp_call_waits_for_copy(t, event_n(t, 7)));
    assert_false(rp_call_waits_for_result(t, event_n(t, 7), &busy));
    rp_trace_free(t);
}

/* Four of eleven calls are small: the usual one is in the middle. */
static void the_usual_call_is_the_median(void **state)
{
    struct row rows[12];
    struct rp_call_work w;
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < 10; i++)
        rows[i] = (struct row)OP("mix", 1000 * i, i < 4 ? 10 : 100, i < 4 ? "[[1]]" : "[[10]]");
    rows[10] = (struct row)OP("mix", 20000, 2000, "[[79]]");
    rows[11] = (struct row)OP("mix", 30000, 2000, "[[80]]");
    t = TRACE_OF(rows);
    assert_code(rp_call_work_init(&w, t, NULL), RP_OK);
    assert_false(has_more(&w, 10));
    assert_true(has_more(&w, 11));
    rp_call_work_release(&w);
    rp_trace_free(t);
}

/* The copy ends with its call, and a tenth of the call is its own. */
static void a_result_was_not_ready_by_a_tenth(void **state)
{
    static const struct {
        int64_t copy_ts, copy_dur, kernel_dur;
        bool copy, result;
    } cases[] = {{99900, 100, 90000, true, true},
                 {99900, 100, 89999, true, false},
                 {99900, 101, 90000, false, false},
                 {-1, 1000, 90000, false, false}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct row rows[] = {
            {'X', "cuda_runtime", "cudaMemcpy", 1, 1, 0, 100000, 1},
            {'X', "gpu_memcpy", "Memcpy DtoH", 0, 7, cases[i].copy_ts, cases[i].copy_dur, 1, 7},
        };
        struct rp_interval spans[] = {{0, cases[i].kernel_dur}};
        const rp_interval_vec busy = {.at = spans, .n = 1};
        struct rp_trace *t = TRACE_OF(rows);

        assert_int_equal(rp_call_waits_for_copy(t, event_n(t, 0)), cases[i].copy);
        assert_int_equal(rp_call_waits_for_result(t, event_n(t, 0), &busy), cases[i].result);
        rp_trace_free(t);
    }
}

int test_call_work(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_usual_call_is_the_median),
                                       cmocka_unit_test(a_result_was_not_ready_by_a_tenth),
                                       cmocka_unit_test(more_elements_explain_a_longer_call),
                                       cmocka_unit_test(views_do_not_work),
                                       cmocka_unit_test(texts_of_sizes),
                                       cmocka_unit_test(results_that_were_not_ready)};

    return cmocka_run_group_tests_name("call_work", tests, NULL, NULL);
}
