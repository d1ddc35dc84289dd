/* SPDX-License-Identifier: Apache-2.0 */
/* The file of outcomes, and what it does to intervals. */
#include "outcomes/change.h"
#include "outcomes/outcomes.h"
#include "rp_config.h"
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* An empty folder of its own for each test. */
static int open_folder(void **state)
{
    static char folder[64];

    strcpy(folder, "/tmp/reprise-unit-XXXXXX");
    *state = folder;
    return !mkdtemp(folder) || setenv("XDG_DATA_HOME", folder, 1);
}

static int close_folder(void **state)
{
    char path[128];

    snprintf(path, sizeof path, "%s/reprise/outcomes.tsv", (char *)*state);
    unlink(path);
    snprintf(path, sizeof path, "%s/reprise", (char *)*state);
    rmdir(path);
    return unsetenv("XDG_DATA_HOME") || rmdir(*state);
}

static struct rp_outcome outcome(int64_t parameters, double predicted, double measured)
{
    return (struct rp_outcome){.device = "GPU",
                               .framework = "torch 2.15.0",
                               .change = "dtype=bf16+compile",
                               .parameters = parameters,
                               .predicted = predicted,
                               .measured = measured};
}

static void add(int64_t parameters, double predicted, double measured)
{
    struct rp_outcome one = outcome(parameters, predicted, measured);
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_outcomes_add(&one, 1, &err), &err);
}

static size_t narrow(const char *device, const char *framework, const char *change, double *low,
                     double *high)
{
    struct rp_outcomes all = {0};
    struct rp_err err = RP_ERR_INIT;
    size_t n;

    assert_ok(rp_outcomes_read(&all, &err), &err);
    n = rp_outcomes_narrow(&all, device, framework, change, 0.8, low, high);
    rp_outcomes_release(&all);
    return n;
}

/* Of seven predictions that were right within 1 % the next one is sure within a part of the
   built-in interval, which is wider below. */
static void right_predictions_narrow_the_interval(void **state)
{
    double low = 0.4, high = 1.0;

    UNUSED_STATE(state);
    for (int i = 0; i < 7; i++)
        add(1000 + i, 0.7, 0.7 * (1 + 0.01 * (i % 3 - 1)));
    assert_int_equal(narrow("GPU", "torch", "compile+dtype=bf16", &low, &high), 7);
    /* 1.812 * sqrt(3/10 * (width / 1.645)^2 * 1.1), and next to nothing of the errors */
    assert_true(fabs(log(0.8 / low) / log(0.8 / 0.4) - 0.633) < 0.01);
    assert_true(fabs(log(high / 0.8) / log(1.0 / 0.8) - 0.633) < 0.03);
}

static void wrong_predictions_move_the_interval(void **state)
{
    double low = 0.78, high = 0.82;

    UNUSED_STATE(state);
    for (int i = 0; i < 7; i++)
        add(1000 + i, 0.7, 0.84 + 0.001 * i);
    assert_int_equal(narrow("GPU", "torch", "dtype=bf16+compile", &low, &high), 7);
    assert_true(low <= 0.8 && low > 0.7); /* the prediction stays inside */
    assert_true(high > 0.96);             /* a fifth more, as measured, and what is not sure */
}

static void what_does_not_fit_says_nothing(void **state)
{
    double low = 0.4, high = 1.0;

    UNUSED_STATE(state);
    assert_int_equal(narrow("GPU", "torch", "dtype=bf16+compile", &low, &high), 0); /* no file */
    add(1, 0.7, 0.7);
    add(2, 0.7, 0.7);
    add(2, 0.7, 0.7); /* the same program again */
    assert_int_equal(narrow("GPU", "torch", "dtype=bf16+compile", &low, &high), 0);
    add(3, 0.7, 0.7);
    assert_int_equal(narrow("GPU 2", "torch", "dtype=bf16+compile", &low, &high), 0);
    assert_int_equal(narrow("GPU", "tor", "dtype=bf16+compile", &low, &high), 0);
    assert_int_equal(narrow("GPU", "torch", "compile", &low, &high), 0);
    assert_int_equal(narrow("GPU", "torch", "scale:\"a+b\"=2", &low, &high), 0);
    assert_int_equal(narrow(NULL, "torch", "dtype=bf16+compile", &low, &high), 0);
    assert_true(low == 0.4 && high == 1.0);
    assert_int_equal(narrow("GPU", "torch", "dtype=bf16+compile", &low, &high), 3);
}

static void bad_lines_are_left_out(void **state)
{
    static const char head[] = "1\t" RP_VERSION "\thost\tGPU\ttorch 2\t";
    static const char *const bad[] = {"",
                                      "7\tcompile\t0.9\t",
                                      "7\tcompile\t0.9\t0.8\tmore",
                                      "-7\tcompile\t0.9\t0.8",
                                      "7\tCOMPILE me\t0.9\t0.8",
                                      "7\ttf32+compile\t0.9\t0.8",
                                      "7\tcompile\tnan\t0.8",
                                      "7\tcompile\t0.9\tinf",
                                      "7\tcompile\t0.9\t1e9",
                                      "7\tcompile\t0\t0.8",
                                      "99999999999999999999\tcompile\t0.9\t0.8"};
    struct rp_outcomes all = {0};
    struct rp_err err = RP_ERR_INIT;
    char text[4096];
    size_t n = 0, nbad = sizeof bad / sizeof bad[0];

    UNUSED_STATE(state);
    for (size_t i = 0; i < nbad; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s\n", head, bad[i]);
    n += (size_t)snprintf(text + n, sizeof text - n, "\n%s7\tcompile\t0.9\t0.8\n", head);
    n += (size_t)snprintf(text + n, sizeof text - n, "2%s7\tcompile\t0.9\t0.8\n", head + 1);
    memcpy(text + n, "1\t0\0\t\n", 6);
    n += 6;
    n += (size_t)snprintf(text + n, sizeof text - n, "%s7\tcompile\t0.9\t0.8", head); /* cut */
    assert_ok(rp_outcomes_parse(&all, text, n, &err), &err);
    assert_int_equal(all.list.n, 1);
    assert_int_equal(all.nrefused, nbad + 3);
    rp_outcomes_release(&all);
}

static void *add_many(void *first)
{
    for (int64_t i = 0; i < 25; i++)
        add(*(int64_t *)first + i, 0.7, 0.7);
    return NULL;
}

static void writers_at_the_same_time_lose_nothing(void **state)
{
    int64_t first[] = {0, 1000, 2000, 3000};
    pthread_t threads[4];
    struct rp_outcomes all = {0};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &first[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_ok(rp_outcomes_read(&all, &err), &err);
    assert_int_equal(all.list.n, 100);
    assert_int_equal(all.nrefused, 0);
    rp_outcomes_release(&all);
}

static void a_cut_line_does_not_spoil_the_next(void **state)
{
    struct rp_outcomes all = {0};
    struct rp_err err = RP_ERR_INIT;
    char path[256];
    FILE *f;

    UNUSED_STATE(state);
    add(1, 0.7, 0.7);
    assert_true(rp_outcomes_path(path, sizeof path));
    f = fopen(path, "a");
    fputs("1\t0.1", f);
    fclose(f);
    add(2, 0.7, 0.7);
    assert_ok(rp_outcomes_read(&all, &err), &err);
    assert_int_equal(all.list.n, 2);
    assert_int_equal(all.nrefused, 1);
    rp_outcomes_release(&all);
    assert_ok(rp_outcomes_forget(&err), &err);
    all = (struct rp_outcomes){0};
    assert_ok(rp_outcomes_read(&all, &err), &err);
    assert_int_equal(all.list.n, 0);
    rp_outcomes_release(&all);
}

int test_outcomes(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)
    const struct CMUnitTest tests[] = {
        TEST(right_predictions_narrow_the_interval), TEST(wrong_predictions_move_the_interval),
        TEST(what_does_not_fit_says_nothing),        TEST(bad_lines_are_left_out),
        TEST(writers_at_the_same_time_lose_nothing), TEST(a_cut_line_does_not_spoil_the_next)};
#undef TEST

    return cmocka_run_group_tests_name("outcomes", tests, NULL, NULL);
}
