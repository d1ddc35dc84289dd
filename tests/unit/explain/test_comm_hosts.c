/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by host, and between pairs of hosts. */
#include "explain/comm/comm.h"
#include "unit.h"

#include <math.h>
#include <string.h>

enum { HOSTS = 4, COLLECTIVES = 6 };

static const char *const names[HOSTS] = {"a", "b", "c", "d"};

struct run {
    struct rp_arena arena;
    struct rp_comm_root root;
    struct rp_comm_rank ranks[HOSTS];
    struct rp_comm_collective list[COLLECTIVES];
    struct rp_comm_arrival arrivals[COLLECTIVES][2];
    int64_t numbers[COLLECTIVES][2];
};

/* A rank on each host; two transfers between each of a-b, b-c and c-d, of 1000 bytes. */
static void make(struct run *x, int64_t slow_ns)
{
    rp_arena_init(&x->arena);
    for (size_t r = 0; r < HOSTS; r++)
        x->ranks[r] = (struct rp_comm_rank){.host = names[r],
                                            .rank = (int64_t)r * 10,
                                            .margin_ns = r == 2 ? 70 : 10,
                                            .last_count = 1,
                                            .wait_ns = 5,
                                            .transfer_ns = 6};
    for (size_t i = 0; i < COLLECTIVES; i++) {
        size_t first = i / 2;

        x->arrivals[i][0] = (struct rp_comm_arrival){.rank = first, .lane = first};
        x->arrivals[i][1] = (struct rp_comm_arrival){.rank = first + 1, .lane = first + 1};
        x->numbers[i][0] = (int64_t)first * 10;
        x->numbers[i][1] = (int64_t)first * 10 + 10;
        x->list[i] = (struct rp_comm_collective){.kind = "send_recv",
                                                 .dimension = first ? rp_dimension_names[1] : NULL,
                                                 .ranks = x->numbers[i],
                                                 .nranks = 2,
                                                 .rank_count = 2,
                                                 .seen_count = 2,
                                                 .size_bytes = 1000,
                                                 .wait_ns = 8,
                                                 .min_dur_ns = first == 1 ? slow_ns : 100,
                                                 .arrivals = x->arrivals[i]};
    }
    x->root = (struct rp_comm_root){
        .ranks = x->ranks, .nranks = HOSTS, .collectives = x->list, .ncollectives = COLLECTIVES};
    assert_code(rp_comm_add_hosts(&x->root, 2, &x->arena, NULL), RP_OK);
}

static void links_are_compared_with_the_best(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    make(&x, 300);
    assert_int_equal(x.root.nlinks, 3);
    assert_int_equal(x.root.nlink_rows, 2);
    assert_string_equal(x.root.links[0].hosts[0], "b");
    assert_string_equal(x.root.links[0].hosts[1], "c");
    assert_int_equal(x.root.links[0].count, 2);
    assert_int_equal(x.root.links[0].size_bytes, 2000);
    assert_int_equal(x.root.links[0].transfer_ns, 600);
    assert_int_equal(x.root.links[0].wait_ns, 8);
    assert_true(fabs(x.root.links[0].slower_ratio - 2) < 1e-9);
    assert_true(fabs(x.root.links[0].bytes_per_s - 2000e9 / 600) < 1);
    assert_true(x.root.links[1].slower_ratio == 0);
    rp_arena_release(&x.arena);
}

/* Its transfers take 400 ns more than those elsewhere. */
static void a_path_that_costs_more_than_late_ranks_is_named(void **state)
{
    UNUSED_STATE(state);
    for (int64_t late_ns = 399; late_ns <= 400; late_ns++) {
        struct run x;
        bool named = false;

        make(&x, 300);
        x.root.margin_ns = late_ns;
        x.root.collective_count = x.root.matched_count = COLLECTIVES;
        x.root.given_count = x.root.world_size = HOSTS;
        x.root.matched_by = "group";
        assert_code(rp_comm_add_texts(&x.root, 2, &x.arena, NULL), RP_OK);
        for (size_t i = 0; i < x.root.nnotes; i++)
            named |= strstr(x.root.notes[i], "between hosts b and c took 3.0 times") != NULL;
        assert_int_equal(named, late_ns == 399);
        rp_arena_release(&x.arena);
    }
}

static void groups_and_dimensions_are_added_up(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    make(&x, 300);
    assert_int_equal(x.root.ngroups, 3);
    assert_int_equal(x.root.ngroup_rows, 2);
    assert_string_equal(x.root.groups[0].label, "10, 20");
    assert_string_equal(x.root.groups[0].dimension, "tp");
    assert_int_equal(x.root.groups[0].rank_count, 2);
    assert_int_equal(x.root.groups[0].count, 2);
    assert_true(fabs(x.root.groups[0].slower_ratio - 2) < 1e-9);
    assert_int_equal(x.root.ndimensions, 2);
    assert_string_equal(x.root.dimensions[0].dimension, "tp");
    assert_int_equal(x.root.dimensions[0].group_count, 2);
    assert_int_equal(x.root.dimensions[0].count, 4);
    assert_int_equal(x.root.dimensions[0].wait_ns, 16);
    assert_int_equal(x.root.dimensions[0].transfer_ns, 800);
    assert_null(x.root.dimensions[1].dimension);
    assert_int_equal(x.root.dimensions[1].size_bytes, 2000);
    rp_arena_release(&x.arena);
}

static void many_ranks_are_shortened(void **state)
{
    struct run x;
    int64_t numbers[9] = {0, 2, 4, 6, 8, 10, 12, 14, 16};
    static const char *const labels[] = {"0, 2", "0, 2, 4", "0, 2, 4, 6, 8, 10, 12, 14",
                                         "0, 2, 4, 6, 8, 10, 12, 14, …"};
    static const size_t counts[] = {2, 3, 8, 9};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        make(&x, 100);
        x.list[0].ranks = numbers;
        x.list[0].nranks = counts[i];
        x.root.ncollectives = 1;
        assert_code(rp_comm_add_hosts(&x.root, 2, &x.arena, NULL), RP_OK);
        assert_string_equal(x.root.groups[0].label, labels[i]);
        rp_arena_release(&x.arena);
    }
}

static void hosts_are_added_up(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    make(&x, 100);
    assert_int_equal(x.root.nhosts, HOSTS);
    assert_string_equal(x.root.hosts[0].host, "c");
    assert_int_equal(x.root.hosts[0].margin_ns, 70);
    assert_int_equal(x.root.hosts[0].nranks, 1);
    assert_int_equal(x.root.hosts[0].ranks[0], 20);
    rp_arena_release(&x.arena);
}

/* Ranks of unknown hosts, and one pair alone. */
static void nothing_is_guessed(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    make(&x, 100);
    x.root.nhosts = 0;
    x.ranks[3].host = NULL;
    x.root.ncollectives = 2;
    assert_code(rp_comm_add_hosts(&x.root, 2, &x.arena, NULL), RP_OK);
    assert_int_equal(x.root.nhosts, 0);
    assert_int_equal(x.root.nlinks, 1);
    assert_int_equal(x.root.nlink_rows, 0);
    assert_true(isnan(x.root.links[0].slower_ratio));
    rp_arena_release(&x.arena);
}

int test_comm_hosts(void);
int test_comm_hosts(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_compared_with_the_best),
        cmocka_unit_test(hosts_are_added_up),
        cmocka_unit_test(a_path_that_costs_more_than_late_ranks_is_named),
        cmocka_unit_test(groups_and_dimensions_are_added_up),
        cmocka_unit_test(many_ranks_are_shortened),
        cmocka_unit_test(nothing_is_guessed)};

    return cmocka_run_group_tests_name("comm_hosts", tests, NULL, NULL);
}
