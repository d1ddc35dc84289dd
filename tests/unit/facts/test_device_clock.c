/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a device: which samples count, and when one clock is lower than another. */
#include "facts/work/device_clock.h"
#include "formats/chrome_fixture.h"

#define COUNTER(name, ts, value) \
    "{\"ph\":\"C\",\"pid\":1,\"name\":\"" name "\",\"ts\":" ts ",\"args\":{\"value\":" value "}}"

static void samples_of_judged_time_count(void **state)
{
    struct rp_import in = load(
        "[" COUNTER("device clock (MHz)", "5", "300.5") "," /* before it */
        COUNTER("device clock (MHz)", "10", "1980.5") "," COUNTER("device clock (MHz)", "20", "1410.5") "," COUNTER("device clock (MHz)", "30", "1755.5") "," COUNTER(
            "device temperature (C)", "20",
            "71.5") "," COUNTER("device temperature (C)", "25",
                                "84.5") "," COUNTER("device temperature (C)", "50",
                                                    "95.5") "," COUNTER("device held back by heat (ms)",
                                                                        "20",
                                                                        "100.5") "," COUNTER("device held back by heat (ms)",
                                                                                             "30",
                                                                                             "200.5") "," COUNTER("device held back by its power limit (ms)",
                                                                                                                  "30",
                                                                                                                  "7.5") "," COUNTER("another counter",
                                                                                                                                     "20",
                                                                                                                                     "9.5") "]");
    struct rp_interval at = {10000, 40000}, later = {60000, 70000};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_device_clock c;

    UNUSED_STATE(state);
    assert_code(rp_device_clock_find(in.trace, &(struct rp_segments){1, &at}, &arena, &c, NULL),
                RP_OK);
    assert_int_equal(c.samples, 3);
    assert_true(c.mhz == 1755.5 && c.low_mhz == 1410.5 && c.high_mhz == 1980.5);
    assert_true(c.most_celsius == 84.5 && c.heat_ms == 301 && c.power_ms == 7.5);
    assert_true(rp_device_clock_is_limited(&c));
    assert_string_equal(rp_device_clock_text(&c, &arena),
                        "1756 MHz (held back by its power limit for 7.50 ms, held back by heat for "
                        "301.0 ms, up to 84 \xc2\xb0"
                        "C)");
    assert_code(rp_device_clock_find(in.trace, &(struct rp_segments){1, &later}, &arena, &c, NULL),
                RP_OK);
    assert_int_equal(c.samples, 0);
    assert_false(rp_device_clock_is_limited(&c));
    rp_arena_release(&arena);
    rp_trace_free(in.trace);
}

static bool is_lower(double one, double varies, double other)
{
    struct rp_device_clock a = {.samples = 3, .mhz = one, .low_mhz = one - varies, .high_mhz = one};
    struct rp_device_clock b = {.samples = 3, .mhz = other, .low_mhz = other, .high_mhz = other};

    return rp_device_clock_is_lower(&a, &b);
}

static void a_lower_clock_is_beyond_what_clocks_vary_by(void **state)
{
    struct rp_device_clock none = {0}, some = {.samples = 1, .mhz = 1000, .high_mhz = 1000};

    UNUSED_STATE(state);
    assert_false(is_lower(1965, 0, 1980));
    assert_true(is_lower(1964, 0, 1980));
    assert_false(is_lower(1880, 100, 1980));
    assert_true(is_lower(1879, 100, 1980));
    assert_false(is_lower(1980, 0, 1879));
    assert_false(rp_device_clock_is_lower(&none, &some));
    assert_false(rp_device_clock_is_lower(&some, &none));
}

/* What held a clock back is told, and how hot the device was only then. */
static void what_held_a_clock_back(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_device_clock c = {.samples = 1, .mhz = 1500, .most_celsius = 70};

    UNUSED_STATE(state);
    assert_false(rp_device_clock_is_limited(&c));
    assert_string_equal(rp_device_clock_text(&c, &arena), "1500 MHz");
    c.power_ms = 2;
    assert_true(rp_device_clock_is_limited(&c));
    assert_string_equal(rp_device_clock_text(&c, &arena),
                        "1500 MHz (held back by its power limit for 2.00 ms, up to 70 \xc2\xb0"
                        "C)");
    c.power_ms = 0;
    c.heat_ms = 3;
    c.most_celsius = 0;
    assert_true(rp_device_clock_is_limited(&c));
    assert_string_equal(rp_device_clock_text(&c, &arena),
                        "1500 MHz (held back by heat for 3.00 ms)");
    rp_arena_release(&arena);
}

/* Samples at the edges of two judged times; an even number has the upper one in the middle. */
static void samples_at_the_edges_of_judged_time(void **state)
{
    struct rp_import in = load("[" COUNTER("device clock (MHz)", "10", "100.5") "," COUNTER(
        "device clock (MHz)", "20", "200.5") "," COUNTER("device clock (MHz)", "30",
                                                         "300.5") "," COUNTER("device clock (MHz)",
                                                                              "40", "50.5") "]");
    struct rp_interval at[] = {{10000, 20000}, {30000, 40000}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_device_clock c;

    UNUSED_STATE(state);
    assert_code(rp_device_clock_find(in.trace, &(struct rp_segments){2, at}, &arena, &c, NULL),
                RP_OK);
    assert_int_equal(c.samples, 2);
    assert_true(c.mhz == 300.5 && c.low_mhz == 100.5 && c.high_mhz == 300.5);
    rp_arena_release(&arena);
    rp_trace_free(in.trace);
}

int test_device_clock(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_held_a_clock_back),
        cmocka_unit_test(samples_at_the_edges_of_judged_time),
        cmocka_unit_test(samples_of_judged_time_count),
        cmocka_unit_test(a_lower_clock_is_beyond_what_clocks_vary_by),
    };

    return cmocka_run_group_tests_name("device_clock", tests, NULL, NULL);
}
