/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a rank's collectives those of another are, by their ends alone. */
#include "unit.h"

#include "facts/ranks/rendezvous.h"

#include <stdbool.h>

#define ALL 60

/* Three a step of about 2 ms, never quite the same. */
static void make(struct rp_rendezvous_item *all)
{
    int64_t now = 0;
    uint32_t noise = 12345;
    size_t i;

    for (i = 0; i < ALL; i++) {
        noise = noise * 1664525 + 1013904223;
        now += (i % 3 ? 400000 : 1200000) + (noise >> 16) % 50000;
        all[i] = (struct rp_rendezvous_item){now, 7};
    }
}

/* Leaves out what `lost` says, on a clock that is off by hours and drifts by 20 ppm. */
static size_t record(const struct rp_rendezvous_item *all, bool (*lost)(size_t),
                     struct rp_rendezvous_item *out, uint32_t *want)
{
    size_t i, n = 0;

    for (i = 0; i < ALL; i++)
        if (!lost(i)) {
            want[n] = (uint32_t)i;
            out[n] = all[i];
            out[n].end_ns += 7200000000000 + all[i].end_ns / 50000 + (int64_t)(i % 5) * 300;
            n++;
        }
    return n;
}

static bool lost_one(size_t i)
{
    return i == 17;
}

static bool began_late(size_t i)
{
    return i < 21;
}

static bool ended_early(size_t i)
{
    return i > 40;
}

static bool lost_many(size_t i)
{
    return i % 3 == 1 || i == 30;
}

static void the_right_places(void **state)
{
    bool (*const losses[])(size_t) = {lost_one, began_late, ended_early, lost_many};
    struct rp_rendezvous_item all[ALL], some[ALL];
    uint32_t want[ALL], place[ALL];
    size_t i, k, n;

    UNUSED_STATE(state);
    make(all);
    for (i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        n = record(all, losses[i], some, want);
        rp_rendezvous_place(all, ALL, some, n, place);
        for (k = 0; k < n; k++)
            assert_int_equal(place[k], want[k]);
    }
}

/* Whatever the times are, places grow and fit. */
static void hostile_times(void **state)
{
    struct rp_rendezvous_item all[8] = {{INT64_MAX, 0}, {INT64_MIN, 0}, {0, 0}, {0, 0},
                                        {5, 0},         {-5, 0},        {1, 1}, {INT64_MAX, 1}};
    struct rp_rendezvous_item some[3] = {{INT64_MIN, 0}, {INT64_MAX, 0}, {INT64_MIN, 1}};
    uint32_t place[3];

    UNUSED_STATE(state);
    rp_rendezvous_place(all, 8, some, 3, place);
    assert_true(place[0] < place[1] && place[1] < place[2] && place[2] < 8);
    rp_rendezvous_place(all, 3, some, 3, place);
    assert_int_equal(place[0], 0);
    assert_int_equal(place[2], 2);
    rp_rendezvous_place(all, 8, some, 0, place);
}

/* The second is nearest to the last of all, which is left for the third. What follows is of
   another list. */
static void room_is_left_for_the_rest(void **state)
{
    struct rp_rendezvous_item all[5] = {{0, 7}, {10, 7}, {20, 7}, {5000, 7}, {5010, 7}};
    struct rp_rendezvous_item some[3] = {{0, 7}, {5000, 7}, {5010, 7}};
    uint32_t place[3];

    UNUSED_STATE(state);
    rp_rendezvous_place(all, 4, some, 3, place);
    assert_true(place[0] < 2);
    assert_int_equal(place[1], 2);
    assert_int_equal(place[2], 3);
}

/* Steps that are all alike but for one pause: it tells the position, if it is among the first 64.
 */
static void the_first_64_tell_the_position(void **state)
{
    UNUSED_STATE(state);
    for (size_t pause = 63; pause <= 64; pause++) {
        struct rp_rendezvous_item all[200], some[90];
        uint32_t place[90];

        for (size_t i = 0; i < 200; i++)
            all[i] = (struct rp_rendezvous_item){
                1000000 * (int64_t)i + (i >= 60 + pause ? 400000 : 0), 7};
        for (size_t i = 0; i < 90; i++)
            some[i] = all[60 + i];
        rp_rendezvous_place(all, 200, some, 90, place);
        assert_int_equal(place[0], pause == 63 ? 60 : 0);
    }
}

int test_rendezvous_order(void);
int test_rendezvous_order(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_places), cmocka_unit_test(room_is_left_for_the_rest),
        cmocka_unit_test(the_first_64_tell_the_position), cmocka_unit_test(hostile_times)};

    return cmocka_run_group_tests_name("rendezvous_order", tests, NULL, NULL);
}
