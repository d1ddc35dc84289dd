/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of jobs with planted lateness. */
#include "unit.h"

#include "metrics/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, SLICES = RP_WINDOW_SLICES, STEPS = 100 };
#define MS 1e6

static struct rp_window_rank ranks[RANKS];

/* Steps of 10 ms: 1 ms of input, 5 of the device, 2 of collectives, 2 of the host, each of which is
   up to half a percent longer, the same in every run. */
static void make_job(size_t slices)
{
    unsigned seed = 1;

    memset(ranks, 0, sizeof ranks);
    for (size_t r = 0; r < RANKS; r++) {
        ranks[r].host = r < 2 ? "a" : "b";
        ranks[r].clock = 1900;
        for (size_t i = 0; i < slices; i++) {
            struct rp_window_slice *s = &ranks[r].slice[i];
            double longer = 1 + (double)(seed = (seed * 1103515245u + 12345u) & 0x7fffffff) / 4e11;

            *s = (struct rp_window_slice){.steps = STEPS,
                                          .step_ns = STEPS * 10 * MS,
                                          .collective_ns = STEPS * 2 * MS,
                                          .input_ns = STEPS * MS * longer,
                                          .device_ns = STEPS * 5 * MS * longer};
        }
    }
}

/* A rank takes so much longer in the slices from first on: it waits less for the others. */
static void delay(size_t rank, size_t first, size_t slices, double ns, double *part)
{
    size_t at = (size_t)((char *)part - (char *)&ranks[rank].slice[0]);

    for (size_t i = first; i < slices; i++) {
        ranks[rank].slice[i].collective_ns -= STEPS * ns;
        if (part)
            *(double *)(void *)((char *)&ranks[rank].slice[i] + at) += STEPS * ns;
    }
}

static struct rp_window_late judge(size_t slices)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_window_late late;

    assert_ok(rp_window_judge(ranks, RANKS, slices, &late, &err), &err);
    return late;
}

static void nobody_is_late_in_a_healthy_job(void **state)
{
    (void)state;
    make_job(SLICES);
    assert_int_equal(judge(SLICES).rank, RANKS);
    assert_int_equal(judge(1).rank, RANKS);
}

static void a_late_rank_is_named_with_its_cause(void **state)
{
    struct rp_window_late late;

    (void)state;
    make_job(SLICES);
    delay(2, 0, SLICES, 1 * MS, NULL);
    late = judge(SLICES);
    assert_int_equal(late.rank, 2);
    assert_int_equal(late.cause, RP_WINDOW_HOST);
    assert_false(late.whole_host);
    assert_true(fabs(late.late_ns - 1 * MS) < 0.1 * MS);
    assert_true(fabs(late.share - 0.1) < 0.01);
    make_job(SLICES);
    delay(1, 0, SLICES, 1 * MS, &ranks[1].slice[0].input_ns);
    late = judge(SLICES);
    assert_int_equal(late.rank, 1);
    assert_int_equal(late.cause, RP_WINDOW_INPUT);
    make_job(SLICES);
    delay(3, 0, SLICES, 1 * MS, &ranks[3].slice[0].device_ns);
    late = judge(SLICES);
    assert_int_equal(late.rank, 3);
    assert_int_equal(late.cause, RP_WINDOW_DEVICE);
}

static void one_pause_is_nobodys_lateness(void **state)
{
    (void)state;
    make_job(SLICES);
    delay(2, SLICES - 3, SLICES, 1 * MS, NULL);
    assert_int_equal(judge(SLICES).rank, RANKS);
    make_job(SLICES);
    delay(2, SLICES - 4, SLICES, 1 * MS, NULL);
    assert_int_equal(judge(SLICES).rank, 2);
    assert_true(fabs(judge(SLICES).late_ns - 1 * MS) < 0.1 * MS);
}

static void a_rank_without_a_processor_is_named_so(void **state)
{
    (void)state;
    make_job(SLICES);
    delay(0, 0, SLICES, 1 * MS, NULL);
    for (size_t i = 0; i < SLICES; i++)
        ranks[0].slice[i].delay_ns = STEPS * 0.55 * MS;
    assert_int_equal(judge(SLICES).cause, RP_WINDOW_PROCESSOR);
    for (size_t i = 0; i < SLICES; i++)
        ranks[0].slice[i].delay_ns = STEPS * 0.45 * MS;
    assert_int_equal(judge(SLICES).cause, RP_WINDOW_HOST);
}

static void a_processor_that_comes_back_is_nobodys_lateness(void **state)
{
    (void)state;
    make_job(SLICES);
    delay(0, 1, SLICES, 1 * MS, NULL);
    for (size_t i = 1; i < SLICES; i++)
        ranks[0].slice[i].delay_ns = STEPS * 0.9 * MS;
    assert_int_equal(judge(SLICES).rank, RANKS);
    /* late in half of the slices, for a bit more than half of that time without a processor */
    make_job(SLICES);
    delay(0, SLICES / 2, SLICES, 1 * MS, NULL);
    for (size_t i = SLICES / 2; i < SLICES; i++)
        ranks[0].slice[i].delay_ns = STEPS * 0.55 * MS;
    assert_int_equal(judge(SLICES).rank, RANKS);
    for (size_t i = SLICES / 2; i < SLICES; i++)
        ranks[0].slice[i].delay_ns = STEPS * 0.45 * MS;
    assert_int_equal(judge(SLICES).cause, RP_WINDOW_HOST);
}

static void a_low_clock_is_the_cause(void **state)
{
    (void)state;
    make_job(SLICES);
    delay(3, 0, SLICES, 1 * MS, &ranks[3].slice[0].device_ns);
    ranks[3].clock = 1900 * 0.966;
    assert_int_equal(judge(SLICES).cause, RP_WINDOW_CLOCK);
    ranks[3].clock = 1900 * 0.974;
    assert_int_equal(judge(SLICES).cause, RP_WINDOW_DEVICE);
    ranks[3].clock = NAN;
    assert_int_equal(judge(SLICES).cause, RP_WINDOW_DEVICE);
}

static void a_slow_host_is_named_as_one(void **state)
{
    struct rp_window_late late;

    (void)state;
    make_job(SLICES);
    delay(0, 0, SLICES, 1 * MS, NULL);
    delay(1, 0, SLICES, 1 * MS, NULL);
    late = judge(SLICES);
    assert_true(late.rank < 2 && late.whole_host);
}

static void a_slice_has_some_steps(void **state)
{
    (void)state;
    assert_false(rp_window_is_slice(3));
    assert_true(rp_window_is_slice(4));
}

static void a_short_past_is_not_compared_with(void **state)
{
    (void)state;
    assert_false(rp_window_is_past(60));
    assert_true(rp_window_is_past(70));
}

static void steps_are_longer_only_beyond_their_past(void **state)
{
    double past[8] = {11, 9, 9, 11, 9, 11, 9, 11};

    (void)state;
    assert_false(rp_window_is_longer(16.5, past, 8)); /* 11 + 3 * (11 - 9) */
    for (size_t i = 0; i < 8; i++)
        past[i] = i % 2 ? 9 : 11;
    assert_true(rp_window_is_longer(17.5, past, 8));
    for (size_t i = 0; i < 8; i++)
        past[i] = i % 2 ? 9 : 11;
    assert_false(rp_window_is_longer(17.5, past, 7));
}

static void an_alert_that_comes_back_soon_is_no_news(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    rp_window_told told = {0};

    (void)state;
    assert_true(rp_window_is_news(&told, "rank 2", &err));
    assert_true(rp_window_is_news(&told, "steps", &err));
    for (int look = 0; look < 8; look++)
        rp_window_forget_told(&told, 8);
    assert_false(rp_window_is_news(&told, "rank 2", &err));
    rp_window_forget_told(&told, 8);
    assert_true(rp_window_is_news(&told, "steps", &err));
    rp_window_forget_told(&told, 0);
    assert_int_equal(told.n, 0);
    rp_vec_release(&told);
}

static void a_job_that_stands_still_is_told(void **state)
{
    (void)state;
    assert_false(rp_window_is_still(9e9, 0, 0));
    assert_true(rp_window_is_still(11e9, 0, 0));
    assert_false(rp_window_is_still(38e9, 2e9, 2e9));
    assert_true(rp_window_is_still(42e9, 2e9, 2e9));
    assert_false(rp_window_is_still(42e9, 2e9, 30e9)); /* as its longest step */
}

int test_window(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_late_in_a_healthy_job),
        cmocka_unit_test(a_late_rank_is_named_with_its_cause),
        cmocka_unit_test(one_pause_is_nobodys_lateness),
        cmocka_unit_test(a_rank_without_a_processor_is_named_so),
        cmocka_unit_test(a_processor_that_comes_back_is_nobodys_lateness),
        cmocka_unit_test(steps_are_longer_only_beyond_their_past),
        cmocka_unit_test(an_alert_that_comes_back_soon_is_no_news),
        cmocka_unit_test(a_low_clock_is_the_cause),
        cmocka_unit_test(a_slow_host_is_named_as_one),
        cmocka_unit_test(a_slice_has_some_steps),
        cmocka_unit_test(a_short_past_is_not_compared_with),
        cmocka_unit_test(a_job_that_stands_still_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
