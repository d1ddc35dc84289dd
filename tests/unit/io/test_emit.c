/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers put: numbers that read back as themselves, and raw JSON that is JSON. */
#include "io/emit.h"
#include "io/json_strict.h"
#include "unit.h"

#include <stdlib.h>

static void times_and_integers(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {{0, "0"},           {1000, "1"},    {1500, "1.5"},
                 {1, "0.001"},       {10, "0.01"},   {123456789, "123456.789"},
                 {-1500, "-1.5"},    {-1, "-0.001"}, {INT64_MAX, "9223372036854775.807"},
                 {999999, "999.999"}};
    char text[RP_PUT_F64_MAX + 1];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        *rp_put_us(text, cases[i].ns) = '\0';
        assert_string_equal(text, cases[i].text);
    }
    *rp_put_i64(text, INT64_MIN) = '\0';
    assert_string_equal(text, "-9223372036854775808");
    *rp_put_i64(text, 1234567) = '\0';
    assert_string_equal(text, "1234567");
}

static void doubles(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.0, "0.0"},      {-0.0, "-0.0"},
                 {1.0, "1.0"},      {0.1, "0.1"},
                 {-2.5, "-2.5"},    {3.0303030, "3.030303"},
                 {1e300, "1e+300"}, {1e-7, "1e-07"},
                 {0.001, "0.001"},  {1e15, "1000000000000000.0"}};
    char text[RP_PUT_F64_MAX + 1];
    uint64_t bits = 88172645463325252u;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        *rp_put_f64(text, cases[i].v) = '\0';
        assert_string_equal(text, cases[i].text);
    }
    for (int i = 0; i < 20000; i++) {
        double v, short_v;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&v, &bits, sizeof v);
        if (!(v - v == 0)) /* not finite */
            continue;
        *rp_put_f64(text, v) = '\0';
        assert_true(strtod(text, NULL) == v);
        assert_true(strpbrk(text, ".e") != NULL);
        short_v = (double)(int64_t)(bits >> 20) / 1e6;
        *rp_put_f64(text, short_v) = '\0';
        assert_true(strtod(text, NULL) == short_v);
    }
}

static void raw_values(void **state)
{
    static const struct {
        const char *text;
        enum rp_raw_state want;
        const char *cleaned;
    } cases[] = {
        {"1", RP_RAW_CLEAN, NULL},
        {"[]", RP_RAW_CLEAN, NULL},
        {"{\"a\": [1, -2.5e3, {\"b\": null}], \"c\": \"\\u00e4\\n\"}", RP_RAW_CLEAN, NULL},
        {"[[[]], {}, true]", RP_RAW_CLEAN, NULL},
        {"NaN", RP_RAW_UNCLEAN, "\"NaN\""},
        {"[-Infinity, NaN]", RP_RAW_UNCLEAN, "[\"-Infinity\", \"NaN\"]"},
        {"[\n  1,\n\t2\n]", RP_RAW_UNCLEAN, "[1,2]"},
        {"[\"NaN\n\", \"\\x\"]", RP_RAW_UNCLEAN, "[\"NaN\\n\", \"\\\\x\"]"},
        {"\"\xff\xc3\xa4\"", RP_RAW_UNCLEAN, "\"\\ufffd\xc3\xa4\""},
        {"", RP_RAW_BROKEN, NULL},
        {"[1,]", RP_RAW_BROKEN, NULL},
        {"{\"a\"}", RP_RAW_BROKEN, NULL},
        {"{\"a\":1", RP_RAW_BROKEN, NULL},
        {"[1}", RP_RAW_BROKEN, NULL},
        {"1 2", RP_RAW_BROKEN, NULL},
        {"01", RP_RAW_BROKEN, NULL},
        {"1.", RP_RAW_BROKEN, NULL},
        {"hello", RP_RAW_BROKEN, NULL},
        {"\"open", RP_RAW_BROKEN, NULL},
        {"\"open\\", RP_RAW_BROKEN, NULL},
    };
    struct rp_err err = RP_ERR_INIT;
    struct rp_emit e;

    UNUSED_STATE(state);
    assert_ok(rp_emit_open_memory(&e, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = strlen(cases[i].text);

        assert_int_equal(rp_json_raw_check(cases[i].text, n), cases[i].want);
        if (!cases[i].cleaned)
            continue;
        rp_emit_reset(&e);
        rp_json_put_cleaned(&e, cases[i].text, n);
        rp_emit_char(&e, '\0');
        assert_string_equal(e.buffer, cases[i].cleaned);
    }
    rp_emit_abandon(&e);
}

int test_emit(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_and_integers),
        cmocka_unit_test(doubles),
        cmocka_unit_test(raw_values),
    };

    return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
