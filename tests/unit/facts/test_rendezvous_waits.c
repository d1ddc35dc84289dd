/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom in a collective, what a late rank costs, and on which clock that is judged. */
#include "facts/ranks/rendezvous.h"
#include "unit.h"

#include <string.h>

enum { RANKS = 8, PER_HOST = 2, ROUNDS = 40, LATE = 5 };
#define US 1000

struct run {
    struct rp_arena arena;
    struct rp_collectives ranks[RANKS];
    const struct rp_collectives *lists[RANKS];
    struct rp_rendezvous_list found;
};

static void add(struct run *x, int rank, uint8_t kind, uint32_t stream, int64_t begin, int64_t end)
{
    struct rp_collectives *c = &x->ranks[rank];
    struct rp_collective one = {.begin_ns = begin,
                                .end_ns = end,
                                .name = "collective",
                                .seq = -1,
                                .name_hash = 1,
                                .stream = stream,
                                .index = (uint32_t)(c->list.n / (c->nstreams ? c->nstreams : 1)),
                                .event = RP_NONE,
                                .launch = RP_NONE,
                                .kind = kind};

    assert_code(rp_vec_push(&c->list, one, NULL), RP_OK);
}

static void set_up(struct run *x, bool hosts, uint32_t nstreams)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    memset(x, 0, sizeof *x);
    rp_arena_init(&x->arena);
    for (int r = 0; r < RANKS; r++) {
        x->ranks[r].nstreams = nstreams;
        x->ranks[r].host = hosts ? names[r / PER_HOST] : NULL;
        x->lists[r] = &x->ranks[r];
    }
}

static void find(struct run *x)
{
    assert_code(rp_rendezvous_find(x->lists, RANKS, &x->arena, &x->found, NULL), RP_OK);
}

static void tear_down(struct run *x)
{
    for (int r = 0; r < RANKS; r++)
        rp_collectives_release(&x->ranks[r]);
    rp_arena_release(&x->arena);
}

static int64_t cost_of(const struct run *x, uint32_t rank)
{
    int64_t sum = 0;

    for (size_t i = 0; i < x->found.n; i++)
        if (x->found.at[i].rank[x->found.at[i].last] == rank)
            sum += x->found.at[i].delay_ns;
    return sum;
}

/* All-reduces every millisecond, to which one rank comes late_ns after the others; hosts have
   clocks of their own. The ends scatter by a microsecond, and each rank's are a little early or
   late. */
static void plant(struct run *x, bool hosts, int64_t apart_ns, int64_t late_ns, int64_t step_ns)
{
    set_up(x, hosts, 1);
    for (int i = 0; i < ROUNDS; i++)
        for (int r = 0; r < RANKS; r++) {
            int host = r / PER_HOST;
            int64_t clock = host * apart_ns + (host == 3 && i >= ROUNDS / 2 ? step_ns : 0);
            int64_t begin = (1000 + 1000 * i) * (int64_t)US + (r == LATE ? late_ns : 10 * r);
            int64_t end = (1600 + 1000 * i) * (int64_t)US + (i * 7 + r * 3) % 11 * 100 + 20 * r;

            add(x, r, RP_COLL_ALL_REDUCE, 0, begin + clock, end + clock);
        }
    find(x);
    assert_int_equal(x->found.n, ROUNDS);
}

static void clocks_of_hosts_are_aligned(void **state)
{
    static const int64_t apart[] = {0, 30 * US, -200 * US, 3000000 * (int64_t)US};
    struct run x;

    UNUSED_STATE(state);
    for (size_t k = 0; k < sizeof apart / sizeof apart[0]; k++) {
        plant(&x, true, apart[k], 100 * US, 0);
        assert_int_equal(x.found.clocks_differ, k > 0);
        assert_false(x.found.contradict);
        for (uint32_t r = 0; r < RANKS; r++)
            assert_true(r == LATE ? cost_of(&x, r) > 97 * US * ROUNDS &&
                                        cost_of(&x, r) < 103 * US * ROUNDS
                                  : cost_of(&x, r) == 0);
        tear_down(&x);
    }
}

/* A clock that is set during the recording moves what comes after. */
static void a_clock_that_is_set_is_no_delay(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    plant(&x, true, 50 * US, 100 * US, 50000 * (int64_t)US);
    assert_int_equal(x.found.clocks[7].nsteps, 1);
    assert_true(llabs(x.found.clocks[7].steps[0].add_ns + 50000LL * US) < 3 * US);
    assert_int_equal(x.found.clocks[0].nsteps + x.found.clocks[5].nsteps, 0);
    assert_true(cost_of(&x, LATE) > 97 * US * ROUNDS);
    assert_int_equal(cost_of(&x, 7), 0);
    for (int64_t ns = 0; ns < 45000 * (int64_t)US; ns += 777 * US) {
        int64_t own = rp_clock_own_time(&x.found.clocks[7], ns);

        assert_true(llabs(rp_clock_time(&x.found.clocks[7], own) - ns) <= 1);
    }
    tear_down(&x);
}

/* What is below the uncertainty of two clocks is nobody's fault; on one clock it is. */
static void nobody_is_blamed_below_the_uncertainty(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    plant(&x, true, 200 * US, 300, 0);
    assert_true(x.found.uncertainty_ns > 150);
    for (size_t i = 0; i < x.found.n; i++)
        if (x.found.at[i].doubtful)
            assert_int_equal(x.found.at[i].delay_ns, 0);
    assert_true(x.found.ndoubtful > 0);
    tear_down(&x);
    set_up(&x, true, 1);
    for (int r = 0; r < RANKS; r++) {
        x.ranks[r].host = "one";
        add(&x, r, RP_COLL_ALL_REDUCE, 0, r == LATE ? 5 : 0, 100 + r);
    }
    find(&x);
    assert_int_equal(cost_of(&x, LATE), 5);
    tear_down(&x);
}

/* Five collectives under way at once: a rank that is late for all of them costs the time once. */
static void a_delay_counts_once(void **state)
{
    struct rp_rendezvous_sums sums[RANKS];
    rp_interval_vec waits[RANKS] = {0};
    struct run x;

    UNUSED_STATE(state);
    set_up(&x, false, 5);
    for (uint32_t s = 0; s < 5; s++)
        for (int r = 0; r < RANKS; r++)
            add(&x, r, RP_COLL_ALL_REDUCE, s, r == LATE ? 500 * US : s, 600 * US);
    find(&x);
    assert_int_equal(x.found.n, 5);
    assert_int_equal(cost_of(&x, LATE), 500 * US);
    for (size_t i = 0; i < 5; i++)
        assert_true(x.found.at[i].margin_ns >= 500 * US - 4);
    assert_code(rp_rendezvous_sum(&x.found, x.lists, RANKS, sums, waits, NULL), RP_OK);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(sums[r].wait_ns, r == LATE ? 0 : 500 * US);
        assert_int_equal(sums[r].transfer_ns, 100 * US);
        rp_vec_release(&waits[r]);
    }
    tear_down(&x);
}

/* A broadcast: everybody waits for the root (rank 0, or the late rank), nobody for a receiver. */
/* Three all-reduces: to the first one rank comes late, to the others another one. */
static void a_start_up_is_not_judged(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    set_up(&x, false, 1);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 3; i++) {
            int64_t at = 1000 * US * (i + 1), late = r == (i ? LATE : 2) ? 300 * US : 0;

            add(&x, r, RP_COLL_ALL_REDUCE, 0, at + late, at + 400 * US);
        }
    find(&x);
    assert_int_equal(x.found.n, 3);
    assert_int_equal(cost_of(&x, 2), 300 * US);
    for (int r = 0; r < RANKS; r++)
        x.ranks[r].first_step_ns = r ? 1400 * US : 1399 * US; /* on one rank it ends in the step */
    assert_int_equal(rp_rendezvous_drop_start_up(&x.found, x.lists), 0);
    x.ranks[0].first_step_ns = 1400 * US;
    assert_int_equal(rp_rendezvous_drop_start_up(&x.found, x.lists), 1);
    assert_int_equal(x.found.n, 2);
    assert_int_equal(cost_of(&x, 2), 0);
    assert_int_equal(cost_of(&x, LATE), 600 * US);
    for (int r = 0; r < RANKS; r++)
        x.ranks[r].first_step_ns = 9000 * US; /* all of them: there is nothing else to judge */
    assert_int_equal(rp_rendezvous_drop_start_up(&x.found, x.lists), 0);
    assert_int_equal(x.found.n, 2);
    tear_down(&x);
}

static void receivers_wait_for_the_root_only(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    for (int root_late = 0; root_late < 2; root_late++) {
        set_up(&x, true, 1);
        for (int r = 0; r < RANKS; r++) {
            int64_t begin = r == LATE ? 300 * US : 10 * r, root = root_late ? 300 * US : 0;
            int64_t end = (begin > root ? begin : root) + 200 * US;

            x.ranks[r].host = "one";
            add(&x, r, RP_COLL_BROADCAST, 0, begin,
                r == (root_late ? LATE : 0) ? end - 40 * US : end);
        }
        find(&x);
        assert_int_equal(x.found.n, 1);
        assert_int_equal(x.found.at[0].rank[x.found.at[0].last], LATE);
        assert_int_equal(cost_of(&x, LATE), root_late ? 300 * US - 70 : 0);
        for (uint32_t i = 0; i < RANKS; i++) {
            int64_t ns = rp_rendezvous_wait(&x.found, x.lists, &x.found.at[0], i);

            assert_true(root_late && i != LATE ? ns == 300 * US - 10 * i : ns <= 70);
        }
        tear_down(&x);
    }
}

/* A broadcast in a ring: the root has left, and the others, who pass on what they get, wait for the
   last one. */
static void who_passes_on_waits_for_the_last(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    set_up(&x, true, 1);
    for (int r = 0; r < RANKS; r++) {
        x.ranks[r].host = "one";
        add(&x, r, RP_COLL_BROADCAST, 0,
            r == LATE ? 300 * US
            : r       ? 20 * US + 10 * r
                      : 0,
            r == LATE ? 316 * US
            : r       ? 322 * US
                      : 15 * US);
    }
    find(&x);
    assert_int_equal(x.found.n, 1);
    assert_int_equal(x.found.at[0].source, 0);
    assert_int_equal(cost_of(&x, LATE), 280 * US - 70);
    for (uint32_t i = 0; i < RANKS; i++) {
        int64_t ns = rp_rendezvous_wait(&x.found, x.lists, &x.found.at[0], i);

        assert_int_equal(ns, i && i != LATE ? 280 * US - 10 * i : 0);
        if (ns)
            assert_int_equal(rp_rendezvous_awaited(&x.found, x.lists, &x.found.at[0], i),
                             x.found.at[0].last);
    }
    tear_down(&x);
}

/* The root may seem to leave last, by what two clocks may differ: it is compared with the one that
   leaves before it, which is among the first here. */
static void the_root_may_leave_last_within_the_tolerance(void **state)
{
    UNUSED_STATE(state);
    for (int64_t more = 10; more <= 11; more++) {
        struct run x;

        set_up(&x, true, 1);
        for (int r = 0; r < RANKS; r++) {
            x.ranks[r].host = "one";
            add(&x, r, RP_COLL_BROADCAST, 0, r == LATE ? 50 * US : 10 * r,
                r == LATE ? (200 + more) * US : (r ? 199 : 200) * US);
        }
        find(&x);
        assert_int_equal(x.found.n, 1);
        assert_int_equal(x.found.at[0].rank[x.found.at[0].source] == LATE, more == 10);
        tear_down(&x);
    }
}

/* Who comes after somebody has left with the data is not the root, also if another one left later
   still. */
static void the_root_comes_before_anybody_leaves(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    set_up(&x, true, 1);
    for (int r = 0; r < RANKS; r++) {
        x.ranks[r].host = "one";
        add(&x, r, RP_COLL_BROADCAST, 0, r == LATE ? 300 * US : 10 * r,
            r == LATE        ? 400 * US
            : r == RANKS - 1 ? 600 * US
            : r == 0         ? 160 * US
                             : 200 * US);
    }
    find(&x);
    assert_int_equal(x.found.n, 1);
    assert_int_not_equal(x.found.at[0].rank[x.found.at[0].source], LATE);
    assert_int_equal(cost_of(&x, LATE), 0);
    tear_down(&x);

    set_up(&x, true, 1); /* only the first rank has left */
    for (int r = 0; r < RANKS; r++) {
        x.ranks[r].host = "one";
        add(&x, r, RP_COLL_BROADCAST, 0, r == LATE ? 300 * US : 10 * r,
            r == 0      ? 160 * US
            : r == LATE ? 400 * US
                        : 500 * US);
    }
    find(&x);
    assert_int_not_equal(x.found.at[0].rank[x.found.at[0].source], LATE);
    tear_down(&x);
}

/* A reduce on the host: senders leave at once, the root waits for the last of them. */
static void senders_do_not_wait(void **state)
{
    struct run x;

    UNUSED_STATE(state);
    set_up(&x, true, 1);
    for (int r = 0; r < RANKS; r++) {
        int64_t begin = r == LATE ? 300 * US : 0;

        x.ranks[r].host = "one";
        x.ranks[r].on_host = true;
        add(&x, r, RP_COLL_REDUCE, 0, begin, r == 0 ? 320 * US : begin + 5 * US);
    }
    find(&x);
    assert_int_equal(cost_of(&x, LATE), 300 * US);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(rp_rendezvous_wait(&x.found, x.lists, &x.found.at[0], i),
                         i == 0 ? 300 * US : 0);
    tear_down(&x);
}

int test_rendezvous_waits(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_of_hosts_are_aligned),
        cmocka_unit_test(a_clock_that_is_set_is_no_delay),
        cmocka_unit_test(nobody_is_blamed_below_the_uncertainty),
        cmocka_unit_test(a_delay_counts_once),
        cmocka_unit_test(a_start_up_is_not_judged),
        cmocka_unit_test(receivers_wait_for_the_root_only),
        cmocka_unit_test(who_passes_on_waits_for_the_last),
        cmocka_unit_test(the_root_comes_before_anybody_leaves),
        cmocka_unit_test(the_root_may_leave_last_within_the_tolerance),
        cmocka_unit_test(senders_do_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
