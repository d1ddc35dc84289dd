/* SPDX-License-Identifier: Apache-2.0 */
/* Which work is slower than that of its peers, on both sides of each number that decides it. */
#include "base/err.h"
#include "places/peers.h"
#include "unit.h"

#include <math.h>

enum { MOST = 48 };
#define LONG_STEP 1e9 /* nothing is too little */
#define NO_STEP   1e-9

/* One key on n ranks, in one step. */
struct row {
    double ns;
    double spread;
    uint32_t n; /* how often */
};

static bool is_abnormal(const struct row *rows, size_t n, double step_ns, size_t rank)
{
    struct rp_arena arena;
    struct rp_peer_key keys[MOST];
    struct rp_peer_cell cells[MOST];
    struct rp_peer_rank ranks[MOST];
    bool out;

    rp_arena_init(&arena);
    for (size_t r = 0; r < n; r++) {
        keys[r] = (struct rp_peer_key){7, rows[r].ns / rows[r].n, rows[r].spread, rows[r].n, 0};
        cells[r] = (struct rp_peer_cell){0, 0, rows[r].n, rows[r].ns, 0};
        ranks[r] =
            (struct rp_peer_rank){.keys = &keys[r], .nkeys = 1, .cells = &cells[r], .ncells = 1};
    }
    assert_code(rp_peers_judge(ranks, n, step_ns, &arena, NULL), RP_OK);
    out = ranks[rank].factor[0] < 1;
    rp_arena_release(&arena);
    return out;
}

/* n ranks, every other one `by` slower than the rest, and the last one `last` slower. */
static bool last_of(size_t n, double by, double last)
{
    struct row rows[MOST];

    for (size_t r = 0; r < n; r++)
        rows[r] = (struct row){1000 * (1 + (r % 2 ? by : 0)), 0, 1};
    rows[n - 1].ns = 1000 * (1 + last);
    return is_abnormal(rows, n, NO_STEP, n - 1);
}

/* The deviation of values that are 0 or 0.02 is 1.48 * 0.01: five of these are 0.074. */
static void what_scatter_explains_is_normal(void **state)
{
    UNUSED_STATE(state);
    assert_false(last_of(40, 0.02, 0.07));
    assert_true(last_of(40, 0.02, 0.08));
}

static void small_differences_are_normal(void **state)
{
    UNUSED_STATE(state);
    assert_false(last_of(8, 0, 0.0095));
    assert_true(last_of(8, 0, 0.0105));
}

static void little_time_is_normal(void **state)
{
    const struct row rows[] = {
        {1000, 0, 1}, {1000, 0, 1}, {1000, 0, 1}, {1000, 0, 1}, {1100, 0, 1}};

    UNUSED_STATE(state);
    assert_false(is_abnormal(rows, 5, 105000, 4));
    assert_true(is_abnormal(rows, 5, 95000, 4));
}

/* Ranks that do it twice as often take twice as long for each: other work, or slower? */
static void mixed_work_is_compared_where_it_is_as_often(void **state)
{
    struct row rows[] = {{100, 0, 1}, {100, 0, 1}, {100, 0, 1},
                         {100, 0, 1}, {400, 0, 2}, {400, 0, 2}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 6; i++)
        rows[i].spread = 0.095;
    assert_true(is_abnormal(rows, 6, NO_STEP, 4));
    for (size_t i = 0; i < 6; i++)
        rows[i].spread = 0.105;
    assert_false(is_abnormal(rows, 6, NO_STEP, 4));
}

/* Half of the ranks are slow. Their distance makes a deviation of 0.74 of itself: at 5 % of that
   the fast half alone tells the scatter. And of a fast half that scatters itself, twice the
   deviation of its lower part counts: 2 * 0.016, five times. */
static void many_slow_cells_do_not_hide_each_other(void **state)
{
    struct row rows[MOST];
    double probe[] = {0.15, 0.17};

    UNUSED_STATE(state);
    assert_false(last_of(20, 0.062, 0.062));
    assert_true(last_of(20, 0.072, 0.072));
    for (size_t k = 0; k < 2; k++) {
        for (size_t r = 0; r < 30; r++)
            rows[r] = (struct row){r < 8 ? 1000 : r < 15 ? 1040 : 2000, 0, 1};
        rows[30] = (struct row){1000 * (1 + probe[k]), 0, 1};
        assert_int_equal(is_abnormal(rows, 31, NO_STEP, 30), k);
        assert_true(is_abnormal(rows, 31, NO_STEP, 29));
    }
}

/* Two or three ranks cannot show how far they scatter. */
static void few_cells_need_more(void **state)
{
    UNUSED_STATE(state);
    assert_false(last_of(2, 0, 0.09));
    assert_true(last_of(2, 0, 0.11));
    assert_false(last_of(3, 0, 0.09));
    assert_true(last_of(4, 0, 0.09));
}

/* Three quarters of the ranks may be slow, and the others are the reference. */
static void most_may_be_slow(void **state)
{
    const struct row rows[] = {
        {1000, 0, 1}, {1200, 0, 1}, {1200, 0, 1}, {1200, 0, 1}, {1000, 0, 1}};

    UNUSED_STATE(state);
    for (size_t r = 0; r < 5; r++)
        assert_int_equal(is_abnormal(rows, 5, NO_STEP, r), rows[r].ns > 1000);
}

/* A pause in one of five steps of one rank; all its other time is as it was. */
static void a_pause_is_of_its_step(void **state)
{
    struct rp_peer_key keys[4];
    struct rp_peer_cell cells[4][5];
    struct rp_peer_rank ranks[4];
    struct rp_arena arena;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    for (size_t r = 0; r < 4; r++) {
        keys[r] = (struct rp_peer_key){7, 1000, 0, 1, 0};
        for (uint32_t s = 0; s < 5; s++)
            cells[r][s] = (struct rp_peer_cell){0, s, 1, r == 2 && s == 3 ? 50000 : 1000, 0};
        ranks[r] =
            (struct rp_peer_rank){.keys = &keys[r], .nkeys = 1, .cells = cells[r], .ncells = 5};
    }
    assert_code(rp_peers_judge(ranks, 4, NO_STEP, &arena, NULL), RP_OK);
    for (size_t r = 0; r < 4; r++)
        for (size_t s = 0; s < 5; s++)
            assert_true(fabs(ranks[r].factor[s] - (r == 2 && s == 3 ? 0.02 : 1)) < 1e-9);
    rp_arena_release(&arena);
}

/* Steps are 1, 2 and 4 times as long on all ranks; the last is a tenth slower in all of them. */
static void steps_may_be_longer_for_all(void **state)
{
    struct rp_peer_key keys[8];
    struct rp_peer_cell cells[8][3];
    struct rp_peer_rank ranks[8];
    struct rp_arena arena;

    UNUSED_STATE(state);
    for (size_t n = 2; n <= 8; n++) {
        rp_arena_init(&arena);
        for (size_t r = 0; r < n; r++) {
            double slow = r == n - 1 ? 1.1 : 1;

            keys[r] = (struct rp_peer_key){7, 2000 * slow, 0, 1, 0};
            for (uint32_t s = 0; s < 3; s++)
                cells[r][s] = (struct rp_peer_cell){0, s, 1, (1000 << s) * slow, 0};
            ranks[r] =
                (struct rp_peer_rank){.keys = &keys[r], .nkeys = 1, .cells = cells[r], .ncells = 3};
        }
        assert_code(rp_peers_judge(ranks, n, NO_STEP, &arena, NULL), RP_OK);
        for (size_t r = 0; r < n; r++)
            for (size_t s = 0; s < 3; s++)
                assert_true(fabs(ranks[r].factor[s] - (r == n - 1 ? 1 / 1.1 : 1)) < 1e-9);
        rp_arena_release(&arena);
    }
}

/* Ranks of one role that call a key twice instead of once. */
static void more_work_of_a_role_is_abnormal(void **state)
{
    UNUSED_STATE(state);
    for (uint64_t role = 0; role < 2; role++) {
        struct rp_peer_key keys[4];
        struct rp_peer_cell cells[4];
        struct rp_peer_rank ranks[4];
        struct rp_arena arena;

        rp_arena_init(&arena);
        for (size_t r = 0; r < 4; r++) {
            uint32_t n = r == 1 ? 2 : 1;

            keys[r] = (struct rp_peer_key){7, 1000, 0, n, 0};
            cells[r] = (struct rp_peer_cell){0, 0, n, 1000 * n, 0};
            ranks[r] = (struct rp_peer_rank){
                .keys = &keys[r], .nkeys = 1, .cells = &cells[r], .ncells = 1, .role = role};
        }
        assert_code(rp_peers_judge(ranks, 4, NO_STEP, &arena, NULL), RP_OK);
        for (size_t r = 0; r < 4; r++)
            assert_true(ranks[r].factor[0] == (role && r == 1 ? 0.5 : 1));
        rp_arena_release(&arena);
    }
}

/* What only one rank does is compared with what is usual of it. */
static void nothing_is_compared_with_nothing(void **state)
{
    const struct row rows[] = {{1000, 0, 1}};

    UNUSED_STATE(state);
    assert_false(is_abnormal(rows, 1, NO_STEP, 0));
    assert_true(isnan(rp_peers_low(NULL, 0)));
}

int test_peers(void);
int test_peers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_scatter_explains_is_normal),
        cmocka_unit_test(small_differences_are_normal),
        cmocka_unit_test(little_time_is_normal),
        cmocka_unit_test(mixed_work_is_compared_where_it_is_as_often),
        cmocka_unit_test(many_slow_cells_do_not_hide_each_other),
        cmocka_unit_test(few_cells_need_more),
        cmocka_unit_test(most_may_be_slow),
        cmocka_unit_test(a_pause_is_of_its_step),
        cmocka_unit_test(steps_may_be_longer_for_all),
        cmocka_unit_test(more_work_of_a_role_is_abnormal),
        cmocka_unit_test(nothing_is_compared_with_nothing),
    };

    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
