/* SPDX-License-Identifier: Apache-2.0 */
/* Texts without their secrets: JSON, what only looks like JSON, and what must stay as it is. */
#include "unit.h"

#include "trace/secrets.h"

static void assert_clean(const char *key, const char *text, const char *want, bool json)
{
    struct rp_secret_words words = {.arena = RP_ARENA_INIT};
    int64_t counts[RP_SECRETS] = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_emit to;

    assert_ok(rp_secrets_learn(&words, key, text, strlen(text), json, &err), &err);
    assert_ok(rp_emit_open_memory(&to, &err), &err);
    if (json)
        rp_secrets_clean_json(&words, key, text, strlen(text), &to, counts);
    else
        rp_secrets_clean(&words, RP_SECRET_IN_VALUE, key, text, strlen(text), &to, counts);
    rp_emit_char(&to, '\0');
    assert_string_equal(to.buffer, want);
    rp_emit_abandon(&to);
    rp_secret_words_release(&words);
}

static void test_json(void **state)
{
    UNUSED_STATE(state);
    assert_clean("", "{\"a\": 1.5e3, \"b\": [true, null, NaN, -2], \"c\": \"x\"}",
                 "{\"a\": 1.5e3, \"b\": [true, null, NaN, -2], \"c\": \"x\"}", true);
    assert_clean("", "{\"password\": \"x\", \"token\": 5, \"env\": {\"A\": \"b\"}}",
                 "{\"password\": \"<token>\", \"token\": 5, \"env\": \"<environment>\"}", true);
    /* keys are texts, too; the user whose home a key names is known afterwards */
    assert_clean("", "{\"/home/ann/run.py\": 3, \"by\": \"ann\"}",
                 "{\"<path>/run.py\": 3, \"by\": \"<user>\"}", true);
}

/* A value of JSON is expected, and something else comes. */
static void test_no_json(void **state)
{
    UNUSED_STATE(state);
    assert_clean("note", "rank 3 is at 10.20.30.40:29500", "rank 3 is at <address>", true);
    assert_clean("note", "Authorization: Bearer c2VjcmV0YmVhcmVy", "Authorization: <token>", true);
    assert_clean("note", "00:1b:2c:3d:4e:5f", "<address>", true);
    assert_clean("hostname", "gpu7", "<host>", true);
    assert_clean("count", "17", "17", true);
    assert_clean("note", "", "", true);
}

/* Texts that begin like JSON: lines of logs, values as Python prints them. */
static void test_like_json(void **state)
{
    UNUSED_STATE(state);
    assert_clean("line", "[rank0]: connect to 10.1.2.3:29500", "[rank0]: connect to <address>",
                 false);
    assert_clean("line", "[10.1.2.3, 10.1.2.4]", "[<address>, <address>]", false);
    assert_clean("line", "[1, 2, 3]", "[1, 2, 3]", false);
    assert_clean("line", "{'auth_token': 'abc', 'n': 3}", "{'auth_token': '<token>', 'n': 3}",
                 false);
    assert_clean("line", "{'env': {'A': 'b', 'C': [1]}, 'n': 3}", "{'env': <environment>, 'n': 3}",
                 false);
    assert_clean("line", "{\"a\": \"cut in its mid", "{\"a\": \"cut in its mid", false);
}

int test_secrets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_no_json),
        cmocka_unit_test(test_like_json),
    };

    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
