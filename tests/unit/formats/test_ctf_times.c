/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a recording: which readings are kept, and the lines between them. */
#include "unit.h"

#include "formats/ctf/ctf.h"

#define GHZ 1000000000u
#define MS  1000000

static struct rp_ctf_times times_of(const struct rp_ctf_clock *read, size_t n)
{
    struct rp_ctf_times t = {.frequency = GHZ, .offset_ns = 77};
    struct rp_err err = RP_ERR_INIT;

    for (size_t i = 0; i < n; i++)
        assert_ok(rp_vec_push(&t.read, read[i], &err), &err);
    assert_ok(rp_ctf_times_settle(&t, &err), &err);
    return t;
}

static struct rp_ctf_clock reading(uint64_t ticks, int64_t ns, uint32_t width)
{
    return (struct rp_ctf_clock){
        .ticks = ticks, .monotonic_ns = ns, .realtime_ns = ns + 1000, .width = width};
}

#define KEPT(...)                                       \
    kept_of((const struct rp_ctf_clock[]){__VA_ARGS__}, \
            sizeof((const struct rp_ctf_clock[]){__VA_ARGS__}) / sizeof(struct rp_ctf_clock))

static size_t kept_of(const struct rp_ctf_clock *read, size_t n)
{
    struct rp_ctf_times t = times_of(read, n);
    size_t kept = t.read.n;

    rp_ctf_times_release(&t);
    return kept;
}

static void readings_must_be_good(void **state)
{
    struct rp_ctf_clock late = reading(5, 60 * MS, 10);

    UNUSED_STATE(state);
    /* 50 ms apart, and not less */
    assert_int_equal(KEPT(reading(0, 0, 10), reading(9, 50 * MS, 10)), 2);
    assert_int_equal(KEPT(reading(0, 0, 10), reading(9, 50 * MS - 1, 10)), 1);
    /* eight times the best width, and a microsecond */
    assert_int_equal(KEPT(reading(0, 0, 10), reading(9, 50 * MS, 1080)), 2);
    assert_int_equal(KEPT(reading(0, 0, 10), reading(9, 50 * MS, 1081)), 1);
    /* in the order of ticks, which differ */
    assert_int_equal(KEPT(reading(9, 50 * MS, 10), reading(0, 0, 10)), 2);
    assert_int_equal(KEPT(reading(9, 0, 10), reading(0, 50 * MS, 10)), 1);
    assert_int_equal(KEPT(reading(9, 0, 10), reading(9, 50 * MS, 10)), 1);
    /* times of this world */
    assert_int_equal(KEPT(reading(0, -1, 10)), 0);
    assert_int_equal(KEPT(reading(0, RP_TIME_MAX_NS - 1000, 10)), 1);
    assert_int_equal(KEPT(reading(0, RP_TIME_MAX_NS - 999, 10)), 0);
    assert_int_equal(KEPT(reading(0, 0, 10), late), 2);
    late.realtime_ns = -1;
    assert_int_equal(KEPT(reading(0, 0, 10), late), 1);
    late.realtime_ns = 0;
    assert_int_equal(KEPT(reading(0, 0, 10), late), 2);
    late.monotonic_ns = RP_TIME_MAX_NS;
    assert_int_equal(KEPT(reading(0, 0, 10), late), 2);
    late.monotonic_ns++;
    assert_int_equal(KEPT(reading(0, 0, 10), late), 1);
}

/* Between two readings times are on their line; before the first and after the last these go on. */
static void lines_join_readings(void **state)
{
    const struct rp_ctf_clock read[] = {reading(1000, 100 * MS, 1),
                                        reading(1000 + 100 * MS, 300 * MS, 1),
                                        reading(1000 + 200 * MS, 350 * MS, 1)};
    struct rp_ctf_times t = times_of(read, 3);

    UNUSED_STATE(state);
    assert_int_equal(t.base_ns, 1000);
    assert_int_equal(t.segments.n, 3);
    for (int round = 0; round < 2; round++) { /* forwards, and back again */
        assert_int_equal(rp_ctf_times_find(&t, 1000), 100 * MS);
        assert_int_equal(rp_ctf_times_find(&t, 1010), 100 * MS + 20);
        assert_int_equal(rp_ctf_times_find(&t, 1000 + 100 * MS - 5), 300 * MS - 10);
        assert_int_equal(rp_ctf_times_find(&t, 1000 + 100 * MS), 300 * MS);
        assert_int_equal(t.from, 1000 + 100 * MS);
        assert_int_equal(t.to, 1000 + 200 * MS);
        assert_int_equal(rp_ctf_times_find(&t, 1000 + 200 * MS), 350 * MS);
        assert_int_equal(rp_ctf_times_find(&t, 1000 + 200 * MS + 8), 350 * MS + 4);
        assert_true(t.to > 1000 + 200 * MS + 8);
    }
    assert_int_equal(rp_ctf_times_find(&t, 990), 100 * MS - 20);
    assert_int_equal(rp_ctf_times_find(&t, 0), 100 * MS - 2000);
    assert_int_equal(t.from, 1000);
    assert_int_equal(t.to, 1000 + 100 * MS);
    rp_ctf_times_release(&t);
}

/* Without a reading the description says how fast the counter is, and when it began. */
static void one_reading_or_none(void **state)
{
    const struct rp_ctf_clock one = reading(500, 9000, 1);
    struct rp_ctf_times t = times_of(NULL, 0);

    UNUSED_STATE(state);
    assert_int_equal(t.base_ns, 77);
    assert_int_equal(rp_ctf_times_find(&t, 0), 0);
    assert_int_equal(rp_ctf_times_find(&t, 12345), 12345);
    assert_int_equal(rp_ctf_times_find(&t, UINT64_MAX), RP_TIME_MAX_NS);
    rp_ctf_times_release(&t);
    t = times_of(&one, 1);
    assert_int_equal(rp_ctf_times_find(&t, 600), 9100);
    assert_int_equal(rp_ctf_times_find(&t, 0), 8500);
    rp_ctf_times_release(&t);
}

int test_ctf_times(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_must_be_good),
        cmocka_unit_test(lines_join_readings),
        cmocka_unit_test(one_reading_or_none),
    };

    return cmocka_run_group_tests_name("ctf_times", tests, NULL, NULL);
}
