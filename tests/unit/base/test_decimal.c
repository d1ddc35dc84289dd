/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/decimal.h"

static const struct {
    const char *text;
    unsigned scale;
    int64_t value;
    unsigned flags;
} cases[] = {
    {"0", 3, 0, 0},
    {"-0", 3, 0, RP_DECIMAL_NEGATIVE},
    {"1", 3, 1000, 0},
    {"1.5", 3, 1500, RP_DECIMAL_FRACTION},
    {"1.0", 3, 1000, 0},
    {"1.000", 3, 1000, 0},
    {"-12.125", 3, -12125, RP_DECIMAL_FRACTION | RP_DECIMAL_NEGATIVE},
    {"1623143089861.125", 3, 1623143089861125, RP_DECIMAL_FRACTION},
    {"1623143089861125", 3, 1623143089861125000, 0},
    {"5521489136178.1235", 3, 5521489136178124, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"0.0005", 3, 0, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"0.0015", 3, 2, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"0.0025", 3, 2, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"0.00250000000000000000001", 3, 3, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"0.9996", 3, 1000, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"1e3", 3, 1000000, 0},
    {"1.5E+2", 3, 150000, 0},
    {"15e-1", 3, 1500, RP_DECIMAL_FRACTION},
    {"1e-30", 3, 0, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"0e999999999999", 3, 0, 0},
    {"9223372036854775.807", 3, INT64_MAX, RP_DECIMAL_FRACTION},
    {"9223372036854775.808", 3, INT64_MAX, RP_DECIMAL_FRACTION | RP_DECIMAL_RANGE},
    {"-9223372036854775.808", 3, INT64_MIN, RP_DECIMAL_FRACTION | RP_DECIMAL_NEGATIVE},
    {"-9223372036854775.809", 3, INT64_MIN,
     RP_DECIMAL_FRACTION | RP_DECIMAL_NEGATIVE | RP_DECIMAL_RANGE},
    {"1e400", 3, INT64_MAX, RP_DECIMAL_RANGE},
    {"99999999999999999999999999999999999999999999999999", 0, INT64_MAX, RP_DECIMAL_RANGE},
    {"9223372036854775807", 0, INT64_MAX, 0},
    {"-9223372036854775808", 0, INT64_MIN, RP_DECIMAL_NEGATIVE},
    {"00012", 0, 12, 0},
    {"1.5", 0, 2, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"2.5", 0, 2, RP_DECIMAL_FRACTION | RP_DECIMAL_ROUNDED},
    {"", 3, 0, RP_DECIMAL_INVALID},
    {"-", 3, 0, RP_DECIMAL_INVALID},
    {".", 3, 0, RP_DECIMAL_INVALID},
    {"1x", 3, 0, RP_DECIMAL_INVALID},
    {"NaN", 3, 0, RP_DECIMAL_INVALID},
    {"Infinity", 3, 0, RP_DECIMAL_INVALID},
    {"1e", 3, 0, RP_DECIMAL_INVALID},
    {"--1", 3, 0, RP_DECIMAL_INVALID},
    {"1.2.3", 3, 0, RP_DECIMAL_INVALID},
};

static void parses_exactly(void **state)
{
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 77;
        unsigned flags =
            rp_decimal_parse(cases[i].text, strlen(cases[i].text), cases[i].scale, &value);

        if (value != cases[i].value || flags != cases[i].flags)
            fail_msg("'%s': value %lld flags %u, expected %lld flags %u", cases[i].text,
                     (long long)value, flags, (long long)cases[i].value, cases[i].flags);
    }
}

static void formats_back(void **state)
{
    static const int64_t values[] = {0,     1,      -1,        999,       1000,
                                     -1000, 123456, INT64_MAX, INT64_MIN, 1000000007};
    unsigned scale;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (scale = 0; scale <= 18; scale++) {
            char text[24];
            size_t len = rp_decimal_format(values[i], scale, text);
            int64_t back;

            assert_int_equal(len, strlen(text));
            assert_false(rp_decimal_parse(text, len, scale, &back) &
                         (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE | RP_DECIMAL_ROUNDED));
            assert_true(back == values[i]);
        }
    }
}

/* The one-pass form and the general one must agree: an exponent of zero forces the latter. */
static void fast_and_slow_agree(void **state)
{
    uint64_t seed = 88172645463325252u;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 200000; i++) {
        char text[64], slow_text[72];
        int64_t fast, slow;
        unsigned a, b;

        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        snprintf(text, sizeof text, "%s%llu.%0*u", i & 1 ? "-" : "",
                 (unsigned long long)(seed >> (seed % 61)), (int)(seed % 5) + 1,
                 (unsigned)(seed >> 40) % 10);
        snprintf(slow_text, sizeof slow_text, "%se0", text);
        a = rp_decimal_parse(text, strlen(text), 3, &fast);
        b = rp_decimal_parse(slow_text, strlen(slow_text), 3, &slow);
        if (a != b || fast != slow)
            fail_msg("'%s': %lld/%u and %lld/%u", text, (long long)fast, a, (long long)slow, b);
    }
}

int test_decimal(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_exactly),
        cmocka_unit_test(formats_back),
        cmocka_unit_test(fast_and_slow_agree),
    };

    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
