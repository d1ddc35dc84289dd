/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a job's model, on both sides of their edges. */
#include "unit.h"

#include "job/costs.h"
#include "job/exchanges.h"

#include <stdlib.h>

#define US 1000
#define MS (1000 * US)

/* The cycle that is found where a rank votes n times, every 5 ms but for jitter_ns to both sides,
   and the fourth vote begins after_ns after the agreement before it. */
static double cycle_of(size_t n, int64_t jitter_ns, int64_t after_ns)
{
    struct rp_job_span spans[16];
    struct rp_job_rank rank = {.spans = {.at = spans, .n = n}};
    struct rp_job job = {.nranks = 1, .ranks = &rank};
    struct rp_job_cost_rank costs = {0};
    struct rp_job_costs c = {.job = &job, .nranks = 1, .ranks = &costs};

    for (size_t i = 0; i < n; i++) { /* without a pattern of its own */
        static const int jitter[16] = {-83, 97,  41, -69, 12,  -100, 76, -37,
                                       100, -58, 33, 88,  -91, -7,   64, -24};
        int64_t at = 5 * MS * (int64_t)i + jitter_ns * jitter[i] / 100;

        spans[i] = (struct rp_job_span){at, at + MS, 1, RP_JOB_SYNC};
    }
    spans[2].end_ns = spans[3].begin_ns - after_ns;
    assert_code(rp_job_learn_cycle(&c, NULL), RP_OK);
    return c.cycle_ns;
}

/* The resultants of votes that lie within 250 and 320 us of the grid are 0.977 and 0.963. */
static void votes_on_a_grid_tell_the_cycle(void **state)
{
    UNUSED_STATE(state);
    assert_float_equal(cycle_of(6, 0, MS), 5 * MS, 10);
    assert_true(cycle_of(5, 0, MS) == 0); /* too few */
    assert_float_equal(cycle_of(16, 250 * US, MS), 5 * MS, 30 * US);
    assert_true(cycle_of(16, 320 * US, MS) == 0);
}

static void a_vote_right_after_an_agreement_waited_for_it(void **state)
{
    UNUSED_STATE(state);
    assert_float_equal(cycle_of(6, 0, 20 * US + 1), 5 * MS, 10);
    assert_true(cycle_of(6, 0, 20 * US) == 0); /* five are left */
}

static void a_message_that_took_longer_had_waited(void **state)
{
    struct rp_message_side x = {-1, -1, {0, 0}};

    UNUSED_STATE(state);
    rp_message_side_take(&x, 1200, RP_PASS_LEAST);
    rp_message_side_take(&x, 1000, RP_PASS_LEAST);
    rp_message_side_take(&x, 1250, RP_PASS_USUAL);
    rp_message_side_take(&x, 1251, RP_PASS_USUAL); /* it waited */
    assert_float_equal(rp_message_side_ns(&x), 1250, 1e-9);
    rp_message_side_take(&x, 1249, RP_PASS_NOW);
    assert_float_equal(rp_message_side_ns(&x), 1249, 1e-9);
    rp_message_side_take(&x, 1251, RP_PASS_NOW);
    assert_float_equal(rp_message_side_ns(&x), 1250, 1e-9);
}

/* Steps of ten operators, and of n. */
static size_t steps_with(size_t n)
{
    static char names[10][8];
    struct rp_job_op ops[20];
    struct rp_job_edge edges[10];
    struct rp_job_rank rank = {
        .host = "a", .ops = {.at = ops, .n = 10 + n}, .edges = {.at = edges, .n = 9}};
    struct rp_job job = {.nranks = 1, .ranks = &rank};
    struct rp_job_means m;
    size_t found;

    for (size_t i = 0; i < 10; i++)
        snprintf(names[i], sizeof names[i], "op%zu", i);
    for (size_t i = 0; i < 9; i++)
        edges[i] = (struct rp_job_edge){names[i], names[i + 1], -1, -1};
    for (size_t i = 0; i < 10 + n; i++)
        ops[i] = (struct rp_job_op){names[i % 10], (int64_t)i * 10 * US, 5 * US, i < 10 ? 0 : 1};
    assert_code(rp_job_means_init(&m, &job, NULL), RP_OK);
    found = m.nsteps;
    rp_job_means_release(&m);
    return found;
}

static void a_step_that_was_cut_does_not_count(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_with(10), 2);
    assert_int_equal(steps_with(9), 2);
    assert_int_equal(steps_with(8), 1);
}

int test_job_numbers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(votes_on_a_grid_tell_the_cycle),
        cmocka_unit_test(a_vote_right_after_an_agreement_waited_for_it),
        cmocka_unit_test(a_message_that_took_longer_had_waited),
        cmocka_unit_test(a_step_that_was_cut_does_not_count),
    };

    return cmocka_run_group_tests_name("job_numbers", tests, NULL, NULL);
}
