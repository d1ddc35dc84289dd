/* SPDX-License-Identifier: Apache-2.0 */
/* Adjustments of clocks that satisfy what is certain, by hand. */
#include "facts/clocks/bounds.h"
#include "facts/clocks/steps.h"
#include "unit.h"

static const bool known[] = {true, true, true};
static const uint32_t no_rendezvous[] = {0};

/* Received 41 before it was sent: clock 1 must be at least 41 later, and clock 0 is never moved. */
static void the_first_clock_stays(void **state)
{
    const struct rp_clock_message messages[] = {{0, 1, 101, 60}};
    bool dropped[1] = {false};
    const struct rp_clock_facts f = {.nclocks = 2,
                                     .nmessages = 1,
                                     .messages = messages,
                                     .given_messages = messages,
                                     .first = no_rendezvous,
                                     .dropped = dropped,
                                     .known = known};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_clocks out = {0};
    int64_t adjust[2];

    UNUSED_STATE(state);
    assert_ok(rp_clock_fit(&f, &arena, adjust, &out, &err), &err);
    assert_true(out.consistent);
    assert_int_equal(adjust[0], 0);
    assert_int_equal(adjust[1], 41);
    rp_arena_release(&arena);
}

/* Messages in both directions, that took at most 60 and 30 on their clocks, bound the difference;
   the third clock is bound by nothing. */
static void messages_in_both_directions_bound_a_clock(void **state)
{
    const struct rp_clock_message messages[] = {{0, 1, 100, 160}, {1, 0, 200, 230}};
    bool dropped[2] = {false, false};
    struct rp_clock_facts f = {.nclocks = 3,
                               .nmessages = 2,
                               .messages = messages,
                               .given_messages = messages,
                               .first = no_rendezvous,
                               .dropped = dropped,
                               .known = known};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    int64_t low[3], high[3];

    UNUSED_STATE(state);
    assert_ok(rp_clock_bounds(&f, &arena, low, high, &err), &err);
    assert_int_equal(low[1], -60);
    assert_int_equal(high[1], 30);
    assert_true(low[2] == INT64_MIN && high[2] == INT64_MAX);
    f.tolerance_ns = 5;
    assert_ok(rp_clock_bounds(&f, &arena, low, high, &err), &err);
    assert_int_equal(low[1], -65);
    assert_int_equal(high[1], 35);
    assert_true(low[0] == 0 && high[0] == 0);
    dropped[1] = true; /* the way back is not used */
    assert_ok(rp_clock_bounds(&f, &arena, low, high, &err), &err);
    assert_int_equal(low[1], -65);
    assert_true(high[1] == INT64_MAX);
    rp_arena_release(&arena);
}

/* Rank 1 arrives at 50 and leaves at 80, rank 0 from 10 to 70: clock 1 may be at most 20 later and
   at most 70 earlier. If nobody waits for rank 1, its arrival bounds nothing. */
static void a_rendezvous_bounds_by_those_it_waits_for(void **state)
{
    struct rp_clock_participant v[] = {{0, 0, 10, 70, true}, {0, 1, 50, 80, true}};
    const uint32_t first[] = {0, 2};
    bool dropped[1] = {false};
    const struct rp_clock_facts f = {.nclocks = 2,
                                     .nrendezvous = 1,
                                     .nparticipants = 2,
                                     .participants = v,
                                     .given_participants = v,
                                     .first = first,
                                     .dropped = dropped,
                                     .known = known};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    int64_t low[2], high[2];

    UNUSED_STATE(state);
    assert_ok(rp_clock_bounds(&f, &arena, low, high, &err), &err);
    assert_int_equal(low[1], -70);
    assert_int_equal(high[1], 20);
    v[1].binds = false;
    assert_ok(rp_clock_bounds(&f, &arena, low, high, &err), &err);
    assert_int_equal(low[1], -70);
    assert_true(high[1] == INT64_MAX);
    rp_arena_release(&arena);
}

/* Ranks 0 and 1 share a clock: what only they do says nothing about clocks. */
static void only_what_relates_two_clocks_counts(void **state)
{
    static const uint32_t clock_of[] = {0, 0, 1};
    const struct rp_clock_participant v[] = {{0, 0, 0, 100, true},   {0, 1, 10, 100, true},
                                             {1, 0, 200, 300, true}, {1, 2, 210, 300, true},
                                             {2, 0, 400, 500, true}, {2, 1, 410, 500, true}};
    const struct rp_clock_message messages[] = {{0, 1, 50, 60}, {0, 2, 250, 260}};
    const struct rp_clock_input in = {.nranks = 3,
                                      .clock_of = clock_of,
                                      .nparticipants = 6,
                                      .nmessages = 2,
                                      .participants = v,
                                      .messages = messages};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_clocks out;

    UNUSED_STATE(state);
    assert_ok(rp_clocks_find(&in, &arena, &out, &err), &err);
    assert_int_equal(out.nrendezvous, 1);
    assert_int_equal(out.nmessages, 1);
    assert_int_equal(out.at[0].clock, out.at[1].clock);
    assert_int_not_equal(out.at[0].clock, out.at[2].clock);
    assert_int_equal(out.at[2].offset_ns, 0);
    rp_arena_release(&arena);
}

/* A clock that was set forward by 5 at 100, and by 7 more at 200. */
static void clocks_that_were_set(void **state)
{
    static const struct rp_clock_step steps[] = {{.from_ns = 100, .add_ns = 5},
                                                 {.from_ns = 200, .add_ns = 7}};

    UNUSED_STATE(state);
    assert_int_equal(rp_clock_steps_before(steps, 2, 99), 0);
    assert_int_equal(rp_clock_steps_before(steps, 2, 100), 5);
    assert_int_equal(rp_clock_steps_before(steps, 2, 199), 5);
    assert_int_equal(rp_clock_steps_before(steps, 2, 200), 12);
    assert_int_equal(rp_clock_steps_before(steps, 1, 200), 5);
}

int test_clock_bounds(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_clock_stays),
        cmocka_unit_test(messages_in_both_directions_bound_a_clock),
        cmocka_unit_test(clocks_that_were_set),
        cmocka_unit_test(a_rendezvous_bounds_by_those_it_waits_for),
        cmocka_unit_test(only_what_relates_two_clocks_counts),
    };

    return cmocka_run_group_tests_name("clock bounds", tests, NULL, NULL);
}
