/* SPDX-License-Identifier: Apache-2.0 */
/* Which place is named, and at what cost, on both sides of each number that decides it. */
#include "places/job_fixtures.h"
#include "places/transfers.h"

#include <math.h>

static const size_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* Every rank works for 1000 us and meets all others, for `steps` steps; `more` of it by step and
   rank. */
static struct rp_places run_of(struct job *j, size_t steps, int64_t meet,
                               int64_t (*more)(size_t step, size_t rank))
{
    for (size_t s = 0; s < steps; s++) {
        job_step(j, s);
        for (size_t r = 0; r < j->n; r++)
            job_work(j, r, "mm", 1000 * JOB_US + more(s, r));
        job_meet(j, all, j->n, meet);
    }
    return job_places(j);
}

static void assert_cost(const struct rp_places *p, size_t i, double ns)
{
    assert_true(fabs(p->at[i].cost_ns - ns) < 0.001 * ns + 2);
}

static void assert_ranks(const struct rp_places *p, size_t i, size_t n, uint32_t a, uint32_t b)
{
    assert_int_equal(p->at[i].nranks, n);
    assert_int_equal(p->at[i].ranks[0], a);
    assert_int_equal(p->at[i].ranks[n - 1], b);
}

static int64_t nothing(size_t step, size_t rank)
{
    (void)step;
    (void)rank;
    return 0;
}

static int64_t rank_2_is_slow(size_t step, size_t rank)
{
    (void)step;
    return rank == 2 ? 150 * JOB_US : 0;
}

static void a_healthy_job_has_none(void **state)
{
    struct job j = job_of(4);
    struct rp_places p = run_of(&j, 5, 100 * JOB_US, nothing);

    UNUSED_STATE(state);
    assert_true(p.known);
    assert_int_equal(p.n, 0);
    assert_true(p.error < 1e-6);
    assert_true(p.uneven_ns == 0);
    job_release(&j);
}

static void a_slow_rank_costs_what_it_costs(void **state)
{
    struct job j = job_of(4);
    struct rp_places p = run_of(&j, 5, 100 * JOB_US, rank_2_is_slow);

    UNUSED_STATE(state);
    assert_int_equal(p.n, 1);
    assert_string_equal(rp_place_kind_names[p.at[0].kind], "rank");
    assert_ranks(&p, 0, 1, 2, 2);
    assert_cost(&p, 0, 5 * 150 * JOB_US);
    assert_string_equal(p.at[0].what, "mm");
    assert_true(fabs(p.at[0].slower - 0.15) < 1e-6);
    assert_int_equal(p.at[0].nsteps, 5);
    assert_true(fabs(p.recorded_ns - 5 * 1250 * JOB_US) < 2);
    job_release(&j);
}

static int64_t grows;

static int64_t rank_2_grows(size_t step, size_t rank)
{
    (void)step;
    return rank == 2 ? grows : 0;
}

/* Of 1250 us a step 12 are below a hundredth, and 14 above. */
static void a_small_loss_is_nobodys(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(4);
        struct rp_places p;

        grows = (k ? 14 : 12) * JOB_US;
        p = run_of(&j, 10, 250 * JOB_US, rank_2_grows);
        assert_int_equal(p.n, k);
        job_release(&j);
    }
}

/* Rank 0 leaves a collective before the others, so that its transfer seems shorter than it is. */
static void a_model_that_is_off_blames_nobody(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(4);
        struct rp_places p;

        job_step(&j, 0);
        for (size_t r = 0; r < 4; r++)
            job_work(&j, r, "mm", (r == 2 ? 1150 : 1000) * JOB_US);
        job_meet(&j, all, 4, 100 * JOB_US);
        job_step(&j, 1);
        for (size_t r = 0; r < 4; r++)
            job_work(&j, r, "mm", 1000 * JOB_US);
        job_meet_unevenly(&j, all, 4, 100 * JOB_US, (k ? 46 : 54) * JOB_US);
        p = job_places(&j);
        assert_true(p.error > 0.01);
        assert_int_equal(p.n, k);
        job_release(&j);
    }
}

static int64_t the_second;

static int64_t two_are_slow(size_t step, size_t rank)
{
    (void)step;
    return rank == 0 ? 100 * JOB_US : rank == 2 ? the_second * JOB_US : 0;
}

/* Rank 0 explains 36 or 34 of 100 alone: then both are repaired together. */
static void two_slow_ranks_hide_each_other(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(8);
        struct rp_places p;

        the_second = k ? 64 : 66;
        p = run_of(&j, 32, 100 * JOB_US, two_are_slow);
        assert_true(p.n > 0);
        assert_ranks(&p, 0, k ? 1 : 2, 0, k ? 0 : 2);
        job_release(&j);
    }
}

static size_t steps_of_two;

static int64_t two_at_once(size_t step, size_t rank)
{
    return rank == (step < steps_of_two ? 0 : 2) || (rank == 4 && step < steps_of_two)
               ? 100 * JOB_US
               : 0;
}

/* Two ranks that are late together explain 72 or 68 of 100, and neither does alone. */
static void work_that_wanders_is_nobodys(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(8);
        struct rp_places p;

        steps_of_two = k ? 36 : 34;
        p = run_of(&j, 50, 100 * JOB_US, two_at_once);
        assert_true(p.n > 0);
        assert_ranks(&p, 0, k ? 2 : 3, 0, 4);
        job_release(&j);
    }
}

static int64_t three_in_turn(size_t step, size_t rank)
{
    return rank == step % 3 * 2 ? 100 * JOB_US : 0;
}

/* Three of six ranks, each late in a third of the steps, and three of five. */
static void most_of_the_ranks_are_no_place(void **state)
{
    UNUSED_STATE(state);
    for (size_t k = 0; k < 2; k++) {
        struct job j = job_of(5 + k);
        struct rp_places p = run_of(&j, 33, 100 * JOB_US, three_in_turn);

        assert_int_equal(p.n, k);
        assert_true(k || p.uneven_ns > 0);
        job_release(&j);
    }
}

static size_t steps_of_first;

/* Each rank but the first is late in two steps. */
static int64_t in_turn(size_t step, size_t rank)
{
    size_t late = step < steps_of_first ? 0 : 1 + (step - steps_of_first) / 2;

    return rank == late ? 100 * JOB_US : 0;
}

/* Chance deals out 2 of 32 steps, and up to 9.6 beyond that with seven deviations. */
static void what_chance_deals_out_is_nobodys(void **state)
{
    UNUSED_STATE(state);
    for (size_t k = 0; k < 2; k++) {
        struct job j = job_of(8);
        struct rp_places p;

        steps_of_first = 11 + k;
        p = run_of(&j, 32, 100 * JOB_US, in_turn);
        assert_int_equal(p.n, k);
        assert_true(p.uneven_ns > 0);
        job_release(&j);
    }
}

/* Another rank each step, of all there are. */
static int64_t wanders(size_t step, size_t rank)
{
    return rank == step % 8 ? 200 * JOB_US : 0;
}

static void uneven_work_has_no_place(void **state)
{
    struct job j = job_of(8);
    struct rp_places p = run_of(&j, 8, 100 * JOB_US, wanders);

    UNUSED_STATE(state);
    assert_int_equal(p.n, 0);
    assert_true(fabs(p.uneven_ns - 8 * 200 * JOB_US) < 10);
    job_release(&j);
}

static int64_t the_other;

static int64_t host_a_is_slow(size_t step, size_t rank)
{
    (void)step;
    return rank == 0 ? 200 * JOB_US : rank == 1 ? the_other * 2 * JOB_US : 0;
}

/* The other rank of the host is 35 or 25 of 100 as late. */
static void a_host_is_slow_where_most_of_its_ranks_are(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(8);
        struct rp_places p;

        the_other = k ? 33 : 27;
        p = run_of(&j, 5, 100 * JOB_US, host_a_is_slow);
        assert_true(p.n > 0);
        assert_int_equal(p.at[0].kind, k ? RP_PLACE_HOST : RP_PLACE_RANK);
        assert_cost(&p, 0, 5.0 * (k ? 200 : 200 - 2 * 27) * JOB_US);
        if (k)
            assert_string_equal(p.hosts[p.at[0].hosts[0]], "a");
        job_release(&j);
    }
}

/* Transfers from host b to c take `one` longer, from a to b `two`, one after the other. */
static struct rp_places link_of(struct job *j, size_t times, int64_t one, int64_t two, bool third)
{
    static const size_t ab[] = {1, 2}, bc[] = {2, 4}, cd[] = {5, 6}, da[] = {0, 7}, bd[] = {3, 6};

    for (size_t s = 0; s < 6; s++) {
        job_step(j, s);
        for (size_t r = 0; r < 8; r++)
            job_work(j, r, "mm", 1000 * JOB_US);
        job_meet(j, cd, 2, 1000 * JOB_US);
        job_meet(j, da, 2, 1000 * JOB_US);
        job_meet(j, ab, 2, (1000 + two) * JOB_US);
        for (size_t i = 0; i < times; i++)
            job_meet(j, bc, 2, (1000 + one) * JOB_US);
        if (third)
            job_meet(j, bd, 2, 1000 * JOB_US);
        job_meet(j, all, 8, 100 * JOB_US);
    }
    return job_places(j);
}

/* A link explains 87 or 83 of 100 of what all links of its host do. */
static void the_smallest_place_is_named(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(8);
        struct rp_places p = link_of(&j, 1, k ? 870 : 830, k ? 130 : 170, true);

        assert_true(p.n > 0);
        assert_int_equal(p.at[0].kind, k ? RP_PLACE_LINK : RP_PLACE_NIC);
        assert_int_equal(p.at[0].nhosts, k ? 2 : 1);
        assert_string_equal(p.hosts[p.at[0].hosts[0]], "b");
        assert_cost(&p, 0, 6.0 * (k ? 870 : 1000) * JOB_US);
        job_release(&j);
    }
}

/* One link is most of it, but all others of its host are slow, too: by 0.6 or 0.2 as much. */
static void a_card_is_slow_where_its_paths_are(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 3; k++) {
        struct job j = job_of(8);
        struct rp_places p = link_of(&j, 4, 870, k == 1 ? 100 : 400, k == 2);

        assert_true(p.n > 0);
        assert_int_equal(p.at[0].kind, k ? RP_PLACE_LINK : RP_PLACE_NIC);
        assert_string_equal(p.hosts[p.at[0].hosts[0]], "b");
        job_release(&j);
    }
}

/* Rank 0 is slow in one work, and faster in another: nobody waits for it. */
static void what_hides_costs_nothing(void **state)
{
    static const size_t ranks[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct job j = job_of(8);
    struct rp_places p;

    UNUSED_STATE(state);
    for (size_t s = 0; s < 5; s++) {
        job_step(&j, s);
        for (size_t r = 0; r < 8; r++) {
            job_work(&j, r, "mm", (r == 0 ? 1500 : 1000) * JOB_US);
            job_work(&j, r, "add", (r == 0 ? 500 : 1000) * JOB_US);
        }
        job_meet(&j, ranks, 8, 100 * JOB_US);
    }
    p = job_places(&j);
    assert_int_equal(p.n, 0);
    assert_true(p.repaired_ns == p.run_ns);
    job_release(&j);
}

/* The clock of host b is set forward while its ranks work on step 5: the time belongs to nobody. */
static void a_clock_that_is_set_is_no_work(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct job j = job_of(4);
        struct rp_places p;

        for (size_t s = 0; s < 12; s++) {
            job_step(&j, s);
            for (size_t r = 0; r < 4; r++)
                job_work(&j, r, "mm", (1000 + (k && r == 1 ? 150 : 0)) * JOB_US);
            job_meet(&j, all, 4, 100 * JOB_US);
            for (size_t r = 2; r < 4 && s == 5; r++)
                job_set_clock(&j, r, 50000 * JOB_US);
        }
        p = job_places(&j);
        assert_int_equal(j.found.nset, 2);
        assert_true(p.known && p.error < 0.001);
        assert_int_equal(p.n, k);
        if (k) {
            assert_ranks(&p, 0, 1, 1, 1);
            assert_cost(&p, 0, 12 * 150 * JOB_US);
        }
        assert_true(p.uneven_ns == 0);
        job_release(&j);
    }
}

/* Rank 2 saves a checkpoint in two of eight steps, which the others do not; where they
   meet without it nobody knows whether it should. */
static void what_only_one_rank_does_is_abnormal(void **state)
{
    static const size_t others[] = {0, 1, 3};

    UNUSED_STATE(state);
    for (int stages = 0; stages < 2; stages++) {
        struct job j = job_of(4);
        struct rp_places p;

        for (size_t s = 0; s < 8; s++) {
            job_step(&j, s);
            for (size_t r = 0; r < 4; r++)
                job_work(&j, r, "mm", 1000 * JOB_US);
            if (s % 4 == 3)
                job_work(&j, 2, "save", 3000 * JOB_US);
            if (stages)
                job_meet(&j, others, 3, 100 * JOB_US);
            job_meet(&j, all, 4, 100 * JOB_US);
        }
        p = job_places(&j);
        assert_int_equal(p.n, !stages);
        if (!stages) {
            assert_int_equal(p.at[0].ranks[0], 2);
            assert_true(fabs(p.at[0].cost_ns - 6000 * JOB_US) < 10 * JOB_US);
            assert_string_equal(p.at[0].what, "save");
            assert_true(p.at[0].more);
        }
        job_release(&j);
    }
}

/* A delay passes through two groups, and counts once. */
static void a_delay_counts_once(void **state)
{
    static const size_t first[] = {0, 1, 2, 3}, second[] = {3, 4, 5, 6};
    struct job j = job_of(7);
    struct rp_places p;

    UNUSED_STATE(state);
    for (size_t s = 0; s < 5; s++) {
        job_step(&j, s);
        for (size_t r = 0; r < 7; r++)
            job_work(&j, r, "mm", (r == 1 ? 1300 : 1000) * JOB_US);
        job_meet(&j, first, 4, 100 * JOB_US);
        job_meet(&j, second, 4, 100 * JOB_US);
        job_meet(&j, all, 7, 100 * JOB_US);
    }
    p = job_places(&j);
    assert_int_equal(p.n, 1);
    assert_ranks(&p, 0, 1, 1, 1);
    assert_cost(&p, 0, 5 * 300 * JOB_US);
    job_release(&j);
}

/* ------------------------------------------------------------------ transfers */

/* What is cut of the transfers of two pairs of hosts: of the first they take 1000 us and every
   other one `by` more, of the second `more` more; or only the last does. */
static double cut_of(int64_t by, int64_t more, bool only_last, size_t *count)
{
    static const size_t ac[] = {0, 4}, bd[] = {2, 6};
    struct rp_err err = RP_ERR_INIT;
    struct job j = job_of(8);
    struct rp_place_transfers t;
    struct rp_rerun x;
    uint32_t hosts[] = {0, 0, 1, 1, 2, 2, 3, 3};
    double most = 0;

    for (size_t s = 0; s < 6; s++) {
        int64_t one = 1000 + (s % 2 ? by : 0);

        job_step(&j, s);
        for (size_t r = 0; r < 8; r++)
            job_work(&j, r, "mm", 1000 * JOB_US);
        job_meet(&j, ac, 2, one * JOB_US);
        job_meet(&j, bd, 2, (!only_last ? 1000 + more : s == 5 ? 1000 + more : one) * JOB_US);
        job_meet(&j, all, 8, 100 * JOB_US);
    }
    job_end(&j);
    assert_ok(rp_rerun_init(&x, j.courses, j.lists, j.n, &j.found, &err), &err);
    assert_ok(rp_place_transfers_judge(&t, &x, &j.found, hosts, &j.arena, &err), &err);
    *count = 0;
    for (size_t i = 0; i < x.nslots; i++) {
        *count += x.slots[i].cut_ns > 0;
        most = x.slots[i].cut_ns > most ? x.slots[i].cut_ns : most;
    }
    rp_rerun_release(&x);
    job_release(&j);
    return most;
}

/* A tenth of the best counts where that does not scatter; else four deviations: those of transfers
   that take 1000 or 1100 us are 74 from 1050. */
static void a_slow_group_is_beyond_the_scatter_of_the_best(void **state)
{
    size_t n;

    UNUSED_STATE(state);
    assert_true(cut_of(0, 95, false, &n) == 0);
    assert_true(fabs(cut_of(0, 105, false, &n) - 105 * JOB_US) < 1);
    assert_int_equal(n, 6);
    assert_true(cut_of(100, 330, false, &n) == 0);
    assert_true(cut_of(100, 365, false, &n) > 0);
}

static void one_slow_transfer_is_far_from_the_others(void **state)
{
    size_t n;

    UNUSED_STATE(state);
    assert_true(cut_of(0, 480, true, &n) == 0);
    assert_true(fabs(cut_of(0, 520, true, &n) - 520 * JOB_US) < 1);
    assert_int_equal(n, 1);
    assert_true(cut_of(100, 770, true, &n) == 0);
    assert_true(fabs(cut_of(100, 820, true, &n) - 770 * JOB_US) < 1);
}

int test_places(void);
int test_places(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_job_has_none),
        cmocka_unit_test(a_slow_rank_costs_what_it_costs),
        cmocka_unit_test(a_small_loss_is_nobodys),
        cmocka_unit_test(a_model_that_is_off_blames_nobody),
        cmocka_unit_test(two_slow_ranks_hide_each_other),
        cmocka_unit_test(work_that_wanders_is_nobodys),
        cmocka_unit_test(what_chance_deals_out_is_nobodys),
        cmocka_unit_test(most_of_the_ranks_are_no_place),
        cmocka_unit_test(uneven_work_has_no_place),
        cmocka_unit_test(a_host_is_slow_where_most_of_its_ranks_are),
        cmocka_unit_test(the_smallest_place_is_named),
        cmocka_unit_test(a_card_is_slow_where_its_paths_are),
        cmocka_unit_test(what_hides_costs_nothing),
        cmocka_unit_test(a_clock_that_is_set_is_no_work),
        cmocka_unit_test(what_only_one_rank_does_is_abnormal),
        cmocka_unit_test(a_delay_counts_once),
        cmocka_unit_test(a_slow_group_is_beyond_the_scatter_of_the_best),
        cmocka_unit_test(one_slow_transfer_is_far_from_the_others),
    };

    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
