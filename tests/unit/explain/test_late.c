/* SPDX-License-Identifier: Apache-2.0 */
/* Why a rank is late: what it did itself, or another one before it. */
#include "explain/comm/late.h"
#include "unit.h"

enum { RANKS = 4, EACH = 2 };

/* Ranks 0 and 1 meet, then 1 and 2, 3. Rank `slow` computes for 100 ns, the others for 10. */
struct meeting {
    struct rp_collective list[RANKS][EACH];
    struct rp_collectives of[RANKS];
    const struct rp_collectives *lists[RANKS];
    struct rp_comm_lead leads[RANKS][EACH];
    const struct rp_comm_lead *lead_of[RANKS];
    struct rp_clock clocks[RANKS];
    struct rp_rendezvous both[2];
    uint32_t rank[2][3], at[2][3];
    struct rp_arena arena;
    struct rp_late *lates;
};

static void meet(struct meeting *x, size_t slow, int64_t late_ns)
{
    struct rp_rendezvous_list list = {.n = 2, .at = x->both, .clocks = x->clocks};

    *x = (struct meeting){.rank = {{0, 1}, {1, 2, 3}}, .at = {{0, 0}, {1, 0, 0}}};
    for (size_t r = 0; r < RANKS; r++) {
        int64_t end_ns = r == slow ? 100 : 10;

        x->list[r][0] = (struct rp_collective){.name = "first", .begin_ns = end_ns, .end_ns = 120};
        x->list[r][1] = (struct rp_collective){.name = "second", .begin_ns = 121, .end_ns = 200};
        x->leads[r][0] = (struct rp_comm_lead){.compute_ns = end_ns, .kernel = "gemm"};
        x->leads[r][1] = (struct rp_comm_lead){.since_ns = late_ns, .compute_ns = 1};
        x->of[r].list.at = x->list[r];
        x->of[r].list.n = r == 1 ? 2 : 1;
        x->lists[r] = &x->of[r];
        x->lead_of[r] = x->leads[r];
        x->clocks[r] = (struct rp_clock){0};
    }
    x->both[0] =
        (struct rp_rendezvous){.n = 2, .rank = x->rank[0], .at = x->at[0], .last = slow == 1};
    x->both[1] = (struct rp_rendezvous){.n = 3, .rank = x->rank[1], .at = x->at[1], .last = 0};
    rp_arena_init(&x->arena);
    assert_code(rp_late_find(&(struct rp_late_ranks){RANKS, x->lists, x->lead_of}, &list, &x->arena,
                             &x->lates, NULL),
                RP_OK);
}

static void another_rank_is_named(void **state)
{
    struct meeting x;

    UNUSED_STATE(state);
    meet(&x, 0, 120);
    assert_string_equal(x.lates[0].cause, "compute");
    assert_int_equal(x.lates[0].by, 0);
    assert_string_equal(x.lates[1].cause, "compute");
    assert_string_equal(x.lates[1].evidence, "gemm");
    assert_int_equal(x.lates[1].by, 0);
    rp_arena_release(&x.arena);
}

static void a_rank_that_was_late_before_is_late_for_that(void **state)
{
    struct meeting x;

    UNUSED_STATE(state);
    meet(&x, 1, 120);
    assert_string_equal(x.lates[1].cause, "compute");
    assert_int_equal(x.lates[1].by, 1);
    rp_arena_release(&x.arena);
}

/* The first collective lost 90 ns: that is most of 180, and not of 181. */
static void most_of_it_was_lost_before(void **state)
{
    struct meeting x;

    UNUSED_STATE(state);
    meet(&x, 0, 180);
    assert_string_equal(x.lates[1].cause, "compute");
    rp_arena_release(&x.arena);
    meet(&x, 0, 181);
    assert_ptr_equal(x.lates[1].cause, rp_late_previous);
    assert_string_equal(x.lates[1].evidence, "first");
    assert_int_equal(x.lates[1].by, 1);
    rp_arena_release(&x.arena);
}

/* Rank 0 is late by 40 ns at each of three collectives with rank 1, which is late by all of that at
   the next with others: no single one is most of it. */
static void delays_before_add_up(void **state)
{
    struct meeting x;
    struct rp_collective often[4] = {{0}};
    struct rp_comm_lead slow[4] = {{0}}, fast[4] = {{0}};
    uint32_t at[3][2] = {{0, 0}, {1, 1}, {2, 2}}, last_at[3] = {3, 0, 0};
    struct rp_rendezvous all[4];
    struct rp_rendezvous_list list = {.n = 4, .at = all, .clocks = x.clocks};

    UNUSED_STATE(state);
    meet(&x, 0, 120);
    for (int i = 0; i < 4; i++) {
        often[i] = (struct rp_collective){
            .name = "often", .begin_ns = 100 * i + 40, .end_ns = 100 * (i + 1)};
        slow[i] = (struct rp_comm_lead){.compute_ns = 80, .kernel = "gemm"};
        fast[i] = (struct rp_comm_lead){.compute_ns = 40, .since_ns = i == 3 ? 240 : 0};
        all[i] = (struct rp_rendezvous){.n = 2, .rank = x.rank[0], .at = at[i % 3], .last = 0};
    }
    all[3] = (struct rp_rendezvous){.n = 3, .rank = x.rank[1], .at = last_at, .last = 0};
    for (size_t r = 0; r < RANKS; r++) {
        x.of[r].list.at = often;
        x.of[r].list.n = r > 1 ? 1 : 4 - !r;
        x.lead_of[r] = r ? fast : slow;
    }
    x.lead_of[2] = x.lead_of[3] = &(struct rp_comm_lead){.since_ns = 120, .compute_ns = 40};
    rp_arena_release(&x.arena);
    rp_arena_init(&x.arena);
    assert_code(rp_late_find(&(struct rp_late_ranks){RANKS, x.lists, x.lead_of}, &list, &x.arena,
                             &x.lates, NULL),
                RP_OK);
    assert_string_equal(x.lates[3].cause, "compute");
    assert_int_equal(x.lates[3].by, 0);
    assert_int_equal(x.lates[3].ns, 120);
    rp_arena_release(&x.arena);
}

/* Rank 0 computes after the first collective what the others compute beside it; its host is late.
   Where the others compute less, it is its compute. */
static void compute_beside_the_collective_before_counts(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct meeting x;
        uint32_t rank[3] = {0, 1, 2}, at[2][3] = {{0, 0, 0}, {1, 1, 1}};
        struct rp_rendezvous all[2];
        struct rp_rendezvous_list list = {.n = 2, .at = all, .clocks = x.clocks};

        meet(&x, 0, 120);
        for (int i = 0; i < 2; i++)
            all[i] = (struct rp_rendezvous){.n = 3, .rank = rank, .at = at[i], .last = 0};
        for (size_t r = 0; r < 3; r++) {
            x.of[r].list.n = 2;
            x.leads[r][0] = (struct rp_comm_lead){.compute_ns = 10, .overlap_ns = r && k ? 50 : 0};
            x.leads[r][1] = (struct rp_comm_lead){.since_ns = 120,
                                                  .compute_ns = r ? 10 : 60,
                                                  .idle_ns = r ? 0 : 30,
                                                  .idle = "not_launched"};
        }
        rp_arena_release(&x.arena);
        rp_arena_init(&x.arena);
        assert_code(rp_late_find(&(struct rp_late_ranks){RANKS, x.lists, x.lead_of}, &list,
                                 &x.arena, &x.lates, NULL),
                    RP_OK);
        assert_string_equal(x.lates[1].cause, k ? "not_launched" : "compute");
        rp_arena_release(&x.arena);
    }
}

/* Each cause of each rank counts alone. */
static void the_cause_of_most_is_the_main_one(void **state)
{
    struct rp_late_sums sums = {0};
    const struct rp_late own = {.cause = "compute", .evidence = "gemm", .ns = 5, .by = 1};
    const struct rp_late other = {.cause = "compute", .evidence = "gelu", .ns = 5, .by = 2};

    UNUSED_STATE(state);
    assert_null(rp_late_main(&sums).cause);
    rp_late_add(&sums, &own, 30);
    rp_late_add(&sums, &other, 20);
    assert_int_equal(rp_late_main(&sums).by, 1);
    rp_late_add(&sums, &other, 11);
    assert_int_equal(rp_late_main(&sums).by, 2);
    assert_int_equal(rp_late_main(&sums).ns, 31);
}

/* The evidence is that of the collective with most of it; of several, the first. */
static void the_longest_delay_is_the_evidence(void **state)
{
    const struct rp_late first = {.cause = "compute", .evidence = "gemm"};
    const struct rp_late then = {.cause = "compute", .evidence = "gelu"};
    struct rp_late_sums sums = {0};

    UNUSED_STATE(state);
    rp_late_add(&sums, &first, 30);
    rp_late_add(&sums, &then, 30);
    assert_string_equal(rp_late_main(&sums).evidence, "gemm");
    rp_late_add(&sums, &then, 31);
    assert_string_equal(rp_late_main(&sums).evidence, "gelu");
}

int test_late(void);
int test_late(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_rank_is_named),
        cmocka_unit_test(a_rank_that_was_late_before_is_late_for_that),
        cmocka_unit_test(most_of_it_was_lost_before),
        cmocka_unit_test(delays_before_add_up),
        cmocka_unit_test(compute_beside_the_collective_before_counts),
        cmocka_unit_test(the_cause_of_most_is_the_main_one),
        cmocka_unit_test(the_longest_delay_is_the_evidence),
    };

    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
