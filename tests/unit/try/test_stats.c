/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts about rounds with planted noise: how often they are false, and whether a planted
   difference is found. */
#include "try/stats.h"
#include "unit.h"

#include <math.h>

/* A generator of our own, so that the test is the same everywhere. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

/* Noise as machines have it: a normal part, and now and then a turn that takes much longer. */
static double noise(uint64_t *state, double size)
{
    double normal = 0;

    for (int i = 0; i < 12; i++)
        normal += uniform(state) - 0.5;
    return size * normal + (uniform(state) < 0.1 ? 20 * size * uniform(state) : 0);
}

/* One variant against the unchanged program, as the rounds do it. */
static enum rp_try_verdict play(uint64_t *state, double effect, double size, size_t variants,
                                struct rp_try_interval *interval)
{
    double values[96], sorted[96];
    enum rp_try_verdict verdict = RP_TRY_UNDECIDED;
    size_t n = 0;

    for (size_t l = 0; l < RP_TRY_LOOKS; l++) {
        while (n < rp_try_looks[l])
            values[n++] = effect + noise(state, size) - noise(state, size);
        memcpy(sorted, values, sizeof values);
        *interval = rp_try_median(sorted, n, rp_try_error(variants));
        verdict = rp_try_judge(interval, 0, l + 1 == RP_TRY_LOOKS);
        if (rp_try_enough(interval, verdict))
            break;
    }
    return verdict;
}

static void no_difference_is_rarely_called_one(void **state)
{
    uint64_t seed = 7;
    int wrong = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 2000; i++) { /* tables of eight variants, of which none differs */
        bool any = false;

        for (int v = 0; v < 8; v++) {
            struct rp_try_interval interval;
            enum rp_try_verdict verdict = play(&seed, 0, 0.02, 8, &interval);

            any |= verdict == RP_TRY_FASTER || verdict == RP_TRY_SLOWER;
        }
        wrong += any;
    }
    assert_in_range(wrong, 0, 100); /* 5 % of the tables */
}

static void a_difference_is_found_within_its_interval(void **state)
{
    uint64_t seed = 3;
    int found = 0, inside = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 500; i++) {
        struct rp_try_interval interval;

        found += play(&seed, log(0.9), 0.03, 8, &interval) == RP_TRY_FASTER;
        inside += interval.low <= log(0.9) + 0.02 && interval.high >= log(0.9) - 0.02;
    }
    assert_in_range(found, 490, 500);
    assert_in_range(inside, 490, 500);
}

static void few_rounds_say_nothing(void **state)
{
    double values[3] = {-0.5, -0.5, -0.5};
    struct rp_try_interval interval = rp_try_median(values, 3, rp_try_error(1));

    UNUSED_STATE(state);
    assert_true(isinf(interval.low) && isinf(interval.high));
    assert_int_equal(rp_try_judge(&interval, 0, false), RP_TRY_UNDECIDED);
    assert_int_equal(rp_try_judge(&interval, 0, true), RP_TRY_NOISY);
}

static void the_interval_is_that_of_the_sign_test(void **state)
{
    double values[12];
    struct rp_try_interval interval;

    UNUSED_STATE(state);
    for (int i = 0; i < 12; i++)
        values[i] = 11 - i;
    /* 2 * P(at most 2 of 12 heads) = 0.0386, of at most 3: 0.146 */
    interval = rp_try_median(values, 12, 0.04);
    assert_true(interval.low == 2 && interval.high == 9 && interval.median == 5.5);
}

static void a_control_that_differs_hides_small_differences(void **state)
{
    struct rp_try_interval good = {0, -0.01, 0.02}, wide = {-0.06, -0.3, 0.2},
                           off = {0.02, 0.01, 0.02};
    struct rp_try_interval small = {-0.05, -0.055, -0.045}, large = {-0.3, -0.4, -0.2};

    UNUSED_STATE(state);
    assert_true(rp_try_floor(&good) == 0);
    assert_true(rp_try_floor(&wide) == 0.06);
    assert_true(rp_try_floor(&off) == 0.02);
    assert_int_equal(rp_try_judge(&small, rp_try_floor(&good), false), RP_TRY_FASTER);
    assert_int_equal(rp_try_judge(&small, rp_try_floor(&wide), false), RP_TRY_UNDECIDED);
    assert_int_equal(rp_try_judge(&large, rp_try_floor(&wide), false), RP_TRY_FASTER);
}

/* The numbers that decide, from both sides; logarithms. */
static void verdicts_have_edges(void **state)
{
    static const struct {
        struct rp_try_interval interval;
        double floor;
        bool last;
        enum rp_try_verdict verdict;
    } cases[] = {{{0, -0.0095, 0.0095}, 0, false, RP_TRY_EQUAL},
                 {{0, -0.0105, 0.0105}, 0, false, RP_TRY_UNDECIDED},
                 {{0, -0.048, 0.048}, 0, true, RP_TRY_EQUAL},
                 {{0, -0.052, 0.052}, 0, true, RP_TRY_NOISY}};
    struct rp_try_interval near = {0.01, -0.029, 0.029}, far = {0.01, -0.031, 0.031},
                           narrow = {0.5, 0.405, 0.595}, wide = {0.5, 0.395, 0.605};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rp_try_judge(&cases[i].interval, cases[i].floor, cases[i].last),
                         cases[i].verdict);
    assert_true(rp_try_floor(&near) == 0 && rp_try_floor(&far) == 0.01);
    assert_true(rp_try_enough(&narrow, RP_TRY_SLOWER));
    assert_false(rp_try_enough(&wide, RP_TRY_SLOWER));
    /* five percent, shared by four looks at each of eight variants */
    assert_float_equal(rp_try_error(8), 0.05 / 4 / 8, 1e-9);
}

/* The table of Student's distribution, of two sides. */
static void students_distribution_is_that_of_the_table(void **state)
{
    static const struct {
        size_t degrees;
        double error, t;
    } rows[] = {{1, 0.05, 12.706}, {2, 0.05, 4.303}, {3, 0.01, 5.841},
                {4, 0.05, 2.776},  {9, 0.01, 3.250}, {30, 0.001, 3.646}};
    const double values[] = {1, 2, 3, 4, 5};
    struct rp_try_interval mean;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_float_equal(rp_try_student(rows[i].degrees, rows[i].error), rows[i].t, 1e-3);
    mean = rp_try_mean(values, 5, 0.05);
    assert_float_equal(mean.median, 3, 1e-9);
    assert_float_equal(mean.high - 3, 2.776 * sqrt(0.5), 1e-3);
    assert_true(isinf(rp_try_mean(values, 1, 0.05).high));
    assert_true(rp_try_little() > 0.0099 && rp_try_little() < 0.0101);
}

/* Programs whose processes have luck of their own, by two witnesses that are disturbed, the second
   less; whether anything was decided, and after how many rounds. */
static bool duel(uint64_t *state, double effect, double luck, size_t *rounds)
{
    double wall[RP_TRY_PROCESSES], spent[RP_TRY_PROCESSES], error = rp_try_process_error(1);
    size_t n = 0;

    for (size_t l = 0; l < RP_TRY_PROCESS_LOOKS; l++) {
        for (; n < rp_try_process_looks[l]; n++) {
            spent[n] = effect + noise(state, luck / 4) - noise(state, luck / 4);
            wall[n] = spent[n] + noise(state, luck) - noise(state, luck);
        }
        for (int k = 0; k < 2; k++) {
            struct rp_try_interval x = rp_try_mean(k ? spent : wall, n, error);

            *rounds = n;
            if (x.low > 0 || x.high < 0)
                return true;
        }
    }
    return false;
}

static void the_same_program_is_undecided_and_three_percent_are_found(void **state)
{
    uint64_t seed = 11;
    size_t wrong = 0, found = 0, rounds;

    UNUSED_STATE(state);
    for (int i = 0; i < 2000; i++) {
        wrong += duel(&seed, 0, 0.02, &rounds);
        found += duel(&seed, 0.03, 0.02, &rounds) && rounds <= 24;
    }
    assert_true(wrong <= 100); /* five percent */
    assert_true(found >= 1900);
    assert_float_equal(rp_try_process_error(2), 0.05 / 11 / 2 / 2, 1e-9);
}

int test_stats(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_difference_is_rarely_called_one),
        cmocka_unit_test(a_difference_is_found_within_its_interval),
        cmocka_unit_test(few_rounds_say_nothing),
        cmocka_unit_test(the_interval_is_that_of_the_sign_test),
        cmocka_unit_test(a_control_that_differs_hides_small_differences),
        cmocka_unit_test(students_distribution_is_that_of_the_table),
        cmocka_unit_test(the_same_program_is_undecided_and_three_percent_are_found),
        cmocka_unit_test(verdicts_have_edges)};

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
