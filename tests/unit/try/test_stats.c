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
    mean = rp_try_center(values, 5, 0.05);
    assert_float_equal(mean.median, 3, 1e-9);
    assert_float_equal(mean.high - 3, 2.776 * sqrt(0.5), 1e-3);
    assert_true(isinf(rp_try_center(values, 1, 0.05).high));
    assert_true(rp_try_little() > 0.0099 && rp_try_little() < 0.0101);
}

/* Noise of processes: normal; with one in eight that is disturbed; of a machine that becomes slower
   and faster; and luck of each process in two sizes. */
enum kind { NORMAL, DISTURBED, DRIFTING, TWO_SIZES, KINDS };

static double process(uint64_t *state, enum kind kind, double size, double *drift)
{
    double x = 0;

    for (int i = 0; i < 12; i++)
        x += size * (uniform(state) - 0.5);
    if (kind == DISTURBED && uniform(state) < 0.12)
        x += 0.1 + 0.6 * uniform(state);
    if (kind == DRIFTING)
        x += *drift = 0.98 * *drift + 0.05 * (2 * uniform(state) - 1);
    return kind == TWO_SIZES ? (x > 0 ? size : -size) + x / 5 : x;
}

/* Two programs, whose order changes every round, with this noise by the clock and a quarter of it
   in processor time if that is a witness; after how many rounds which is faster, or 0 if that is
   not decided. */
static int duel(uint64_t *state, enum kind kind, double effect, double size, size_t most,
                size_t witnesses)
{
    double logs[2][RP_TRY_PROCESSES], drift = 0, error = rp_try_process_error(1, witnesses);

    for (size_t n = 0; n < most;) {
        for (size_t k = 0; k < witnesses; k++) {
            double sign = n % 2 ? 1 : -1, share = k ? size / 4 : size;
            double first = process(state, kind, share, &drift);

            logs[k][n] = effect + sign * (process(state, kind, share, &drift) - first);
        }
        if (!rp_try_is_look(rp_try_process_looks, ++n) && n < most)
            continue;
        for (size_t k = 0; k < witnesses; k++) {
            struct rp_try_interval x = rp_try_center(logs[k], n, error);

            if (x.low > 0 || x.high < 0)
                return x.low > 0 ? (int)n : -(int)n;
        }
    }
    return 0;
}

/* What five minutes allow of a program of a second, and of one of four. */
static void the_same_program_is_undecided_and_three_percent_are_found(void **state)
{
    static const struct {
        enum kind kind;
        size_t most, witnesses;
        size_t found; /* of 200, at least, with a difference of 3 % and noise of 5 % */
    } rows[] = {{NORMAL, 140, 1, 190},    {DISTURBED, 140, 1, 110}, {DRIFTING, 140, 1, 170},
                {TWO_SIZES, 140, 1, 170}, {NORMAL, 35, 1, 45},      {NORMAL, 35, 2, 198},
                {DRIFTING, 35, 2, 150}};
    uint64_t seed = 11;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t wrong = 0, found = 0;

        for (int k = 0; k < 200; k++)
            found += duel(&seed, rows[i].kind, 0.03, 0.05, rows[i].most, rows[i].witnesses) > 0;
        for (int k = 0; k < 400; k++)
            wrong += duel(&seed, rows[i].kind, 0, 0.05, rows[i].most, rows[i].witnesses) != 0;
        assert_true(found >= rows[i].found);
        assert_true(wrong <= 20 + 8); /* five percent, and what 400 runs may have above it */
    }
    assert_float_equal(rp_try_process_error(2, 2), 0.0045 / 2 / 2, 1e-9);
}

static void one_disturbed_round_does_not_hide_a_difference(void **state)
{
    double values[22];
    struct rp_try_interval x;

    UNUSED_STATE(state);
    for (int i = 0; i < 22; i++)
        values[i] = 0.03 + 0.001 * (i % 5 - 2);
    values[0] = 2;
    x = rp_try_center(values, 13, 0.0045);
    assert_true(x.low > 0.028 && x.low < 0.03 && x.median < 0.031);
    x = rp_try_center(values, 12, 0.0045); /* the mean of them is moved */
    assert_true(x.low < -0.3 && x.median > 0.19);
    values[0] = -2;
    x = rp_try_center(values, 22, 0.0045);
    assert_true(x.low > 0.02 && x.high < 0.032);
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
        cmocka_unit_test(one_disturbed_round_does_not_hide_a_difference),
        cmocka_unit_test(verdicts_have_edges)};

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
