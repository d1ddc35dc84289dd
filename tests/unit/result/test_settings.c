/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "result/settings.h"

static const struct rp_option options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "rows", 0},
    {"seed", 0, RP_OPT_INT, "N", NULL, "an integer", 0},
    {"threads", 0, RP_OPT_INT, "0..1024", NULL, "an integer of a range", 0},
    {"shift", 0, RP_OPT_INT, "-5..5", NULL, "a range below 0", 0},
    {"size", 0, RP_OPT_BYTES, "SIZE", NULL, "a size", 0},
    {"after", 0, RP_OPT_DURATION, "TIME", NULL, "a time", 0},
    {"over", 0, RP_OPT_RATIO, "SHARE", "2%", "a share", 0},
    {"all", 0, RP_OPT_FLAG, NULL, NULL, "a flag", 0},
    {"by", 0, RP_OPT_CHOICE, "op|kernel", "op", "a choice", 0},
    {"name", 0, RP_OPT_TEXT, "TEXT", NULL, "a text", RP_OPT_REPEAT},
    RP_OPTION_END};

static const struct {
    const char *name, *value;
    int64_t expected;
} good[] = {
    {"limit", "7", 7},
    {"limit", "0", 0},
    {"seed", "12", 12},
    {"seed", "9223372036854775807", INT64_MAX},
    {"threads", "0", 0},
    {"threads", "1024", 1024},
    {"shift", "-5", -5},
    {"shift", "5", 5},
    {"limit", "10k", 10000},
    {"limit", "1.5k", 1500},
    {"size", "25MB", 25000000},
    {"size", "64MiB", 67108864},
    {"size", "100", 100},
    {"after", "10us", 10000},
    {"after", "1.5ms", 1500000},
    {"after", "100.5s", INT64_C(100500000000)},
    {"after", "2min", INT64_C(120000000000)},
    {"after", "5", 5},
};

static const struct rp_setting bad[] = {
    {"limit", "many"}, {"limit", ""},       {"limit", "1.5"},  {"limit", "9999999999999999999"},
    {"limit", NULL},   {"size", "5 MB"},    {"size", "12XB"},  {"after", "10usec"},
    {"over", "much"},  {"over", "nan"},     {"over", "2%%"},   {"all", "maybe"},
    {"by", "kern"},    {"by", "op|kernel"}, {"after", "1e3s"}, {"limt", "1"},
    {"limit", "-3"},   {"limit", "-3k"},    {"seed", "-1"},    {"seed", "1k"},
    {"seed", "1.0k"},  {"seed", "1.5"},     {"threads", "1k"}, {"threads", "1025"},
    {"threads", "-1"}, {"threads", ""},     {"shift", "-6"},   {"shift", "6"},
    {"after", "-1ms"}, {"size", "-1"},      {"over", "inf"},   {"over", "1e999"},
};

static void values(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_settings s;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct rp_setting given = {good[i].name, good[i].value};

        assert_ok(rp_settings_init(&s, options, &given, 1, &err), &err);
        if (rp_settings_int(&s, good[i].name) != good[i].expected)
            fail_msg("%s: %lld", good[i].value, (long long)rp_settings_int(&s, good[i].name));
    }
}

static void refused(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_settings s;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (rp_settings_init(&s, options, &bad[i], 1, &err) != RP_USAGE)
            fail_msg("--%s '%s' was taken", bad[i].name, bad[i].value);
        assert_contains(err.text, bad[i].name);
    }
}

static void fallbacks_and_repeats(void **state)
{
    const struct rp_setting given[] = {{"name", "a"}, {"all", NULL}, {"name", "b"}, {"over", "5%"}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_settings s;

    UNUSED_STATE(state);
    assert_ok(rp_settings_init(&s, options, given, 4, &err), &err);
    assert_int_equal(rp_settings_int(&s, "limit"), 20);
    assert_false(rp_settings_has(&s, "limit"));
    assert_true(rp_settings_flag(&s, "all"));
    assert_string_equal(rp_settings_text(&s, "by"), "op");
    assert_string_equal(rp_settings_nth(&s, "name", 0), "a");
    assert_string_equal(rp_settings_nth(&s, "name", 1), "b");
    assert_null(rp_settings_nth(&s, "name", 2));
    assert_true(rp_settings_ratio(&s, "over") == 0.05);
    assert_null(rp_settings_text(&s, "size"));
    assert_int_equal(rp_settings_int(&s, "size"), 0);
}

static void closest(void **state)
{
    static const char *const words[] = {"info", "report", "top", NULL};

    UNUSED_STATE(state);
    assert_string_equal(rp_closest_word("inof", words), "info");
    assert_string_equal(rp_closest_word("reprot", words), "report");
    assert_null(rp_closest_word("simulate", words));
}

int test_settings(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refused),
        cmocka_unit_test(fallbacks_and_repeats),
        cmocka_unit_test(closest),
    };

    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
