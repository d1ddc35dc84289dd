/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON pull parser: the grammar, where errors are found, and limits. */
#include "json_fixtures.h"

#include <sys/mman.h>

/* -------------------------------------------------------------------------- grammar */

static const struct {
    const char *text, *log;
} good[] = {
    {"{}", "{ } OK"},
    {" [ ] ", "[ ] OK"},
    {"\xef\xbb\xbf[]", "[ ] OK"},
    {"\xef\xbb\xbf \n {}\n", "{ } OK"},
    {"[1]", "[ n:1i ] OK"},
    {"[-0, 0, -12.5, 1e5, 1E+5, 1e-5, 0.25e1]",
     "[ n:-0i n:0i n:-12.5 n:1e5 n:1E+5 n:1e-5 n:0.25e1 ] OK"},
    {"[123456789012345678901234567890]", "[ n:123456789012345678901234567890i ] OK"},
    {"[ 1 , 2\t,\r\n3 ]", "[ n:1i n:2i n:3i ] OK"},
    {"[true,false,null]", "[ true false null ] OK"},
    {"[ true , false , null ]", "[ true false null ] OK"},
    {"[NaN, Infinity, -Infinity]", "[ n:NaN n:Infinity n:-Infinity ] OK"},
    {"[\"\", \"a\", \"a,b]{}:\"]", "[ s: s:a s:a,b]{}: ] OK"},
    {"[\"\\\"\", \"\\\\\", \"\\\\\\\"\", \"a\"]", "[ s:\\\"\\ s:\\\\\\ s:\\\\\\\"\\ s:a ] OK"},
    {"{\"a\":1}", "{ k:a n:1i } OK"},
    {"{\"a\" : {\"b\" : [ ] } , \"\" : \"x\"}", "{ k:a { k:b [ ] } k: s:x } OK"},
    {"{\"a\\\"\":\"\\\"\"}", "{ k:a\\\"\\ s:\\\"\\ } OK"},
    {"[[[[]],[]]]", "[ [ [ [ ] ] [ ] ] ] OK"},
    {"[{},{},{\"a\":{}}]", "[ { } { } { k:a { } } ] OK"},
    {"[{\"ph\": \"X\", \"ts\": 12.5,\n \"args\": {\n \"x\": 1\n }\n }\n]",
     "[ { k:ph s:X k:ts n:12.5 k:args { k:x n:1i } } ] OK"},
    {"1", "n:1i OK"},
    {" -1.5e3 ", "n:-1.5e3 OK"},
    {"\"x\"", "s:x OK"},
    {"null\n", "null OK"},
    {"[\"tab\there\", \"\x01\"]", "[ s:tab\there s:\x01 ] OK"},
    {"[\"\xff\xfe\xc3\"]", "[ s:\xff\xfe\xc3 ] OK"},
    {"[\"\\x\\u12\"]", "[ s:\\x\\u12\\ ] OK"}, /* escapes are not looked at here */
};

static void test_good(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t n = strlen(good[i].text);

        check_log(good[i].text, n, &(struct rp_json_options){0}, PULL, good[i].log);
        check_every_way(good[i].text, n, NULL);
    }
}

static const struct {
    const char *text;
    unsigned offset;
    const char *message;
} bad[] = {
    {"[1,]", 3, "expected a value at byte 3: [1,>>>]"},
    {"[,1]", 1, "expected a value"},
    {"[1 2]", 3, "expected ',' or ']' after an element"},
    {"[1 \"a\"]", 3, "expected ',' or ']' after an element"},
    {"[\"a\" \"b\"]", 5, "expected ',' or ']' after an element"},
    {"[\"a\"\"b\"\"c\"\"d\"\"e\"\"f\"]", 4, "expected ',' or ']'"},
    {"[[] []]", 4, "expected ',' or ']'"},
    {"[1}", 2, "expected ',' or ']'"},
    {"{\"a\":1]", 6, "expected ',' or '}' after a value"},
    {"{\"a\":1,}", 7, "unexpected ',' before '}'"},
    {"{\"a\":1 \"b\":2}", 7, "expected ',' or '}' after a value"},
    {"{\"a\":\"x\" \"b\":2}", 9, "expected ',' or '}' after a value at byte 9: "},
    {"{\"a\" 1}", 5, "expected ':' after a key at byte 5: {\"a\" >>>1}"},
    {"{\"a\"}", 4, "expected ':'"},
    {"{\"a\":}", 5, "expected a value"},
    {"{\"a\"::1}", 5, "expected a value"},
    {"{a:1}", 1, "expected a key in quotes"},
    {"{1:1}", 1, "expected a key in quotes"},
    {"{'a':1}", 1, "expected a key in quotes"},
    {"{,}", 1, "expected a key in quotes"},
    {"{[]:1}", 1, "expected a key in quotes"},
    {"{\"a\":1,,\"b\":2}", 7, "expected a key in quotes"},
    {"['a']", 1, "expected a value"},
    {"[/* c */ 1]", 1, "expected a value"},
    {"[1] // c", 4, "unexpected text after the end of the value"},
    {"[1] [2]", 4, "unexpected text after the end of the value"},
    {"{}}", 2, "unexpected text"},
    {"[01]", 2, "bad number"},
    {"[-01]", 3, "bad number"},
    {"[1.]", 3, "bad number"},
    {"[.5]", 1, "expected a value"},
    {"[+1]", 1, "expected a value"},
    {"[-]", 2, "bad number"},
    {"[1e]", 3, "bad number"},
    {"[1e+]", 4, "bad number"},
    {"[1.5.5]", 4, "bad number"},
    {"[0x10]", 2, "bad number"},
    {"[-x]", 2, "bad number"},
    {"[1a]", 2, "bad number"},
    {"[tru]", 4, "unknown word"},
    {"[trueish]", 5, "unknown word"},
    {"[True]", 1, "expected a value"},
    {"[nul]", 4, "unknown word"},
    {"[nan]", 2, "unknown word"},
    {"[-Inf]", 5, "bad number"},
    {"[true false]", 6, "expected ',' or ']'"},
    {"[\\\"a\"]", 1, "expected a value"},
    {"]", 0, "expected a value"},
    {"x", 0, "expected a value"},
    {"[\"a\"x]", 4, "expected ',' or ']'"},
    {"{\"name\": \"foo\"bar\", \"x\": 1}", 14, "expected ',' or '}'"},
    {"[\xc2\xa0]", 1, "expected a value"},
    {"[1\f]", 2, "bad number"},
    {"[1,\n\x00]", 4, "expected a value"},
};

static void test_bad(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t n = strlen(bad[i].text) + (bad[i].text[strlen(bad[i].text) - 1] == '\n' ? 2 : 0);
        struct rp_json_options options = {0};
        struct rp_input *in;
        struct rp_json *p;
        struct rp_err err;

        assert_ok(rp_input_open_memory("test", bad[i].text, n, NULL, &in, &err), &err);
        assert_ok(rp_json_open(in, &options, &p, &err), &err);
        rp_json_skip(p);
        if (rp_json_finish(p, &err) != RP_FORMAT || err.offset != bad[i].offset ||
            !strstr(err.text, bad[i].message) || rp_json_ended_early(p))
            fail_msg("%s: '%s' at %llu", bad[i].text, err.text, (unsigned long long)err.offset);
        assert_int_equal(rp_json_offset(p), bad[i].offset);
        rp_json_close(p);
        rp_input_close(in);
        check_every_way(bad[i].text, n, NULL);
    }
}

/* A document in which everything stands once; cut at every byte it ends early. */
static const char sample[] =
    "{\"schemaVersion\": 1, \"list\": [1, -2.5e-3, true, null, \"a\\\"b\", NaN],\n"
    " \"nested\": {\"a\": {\"b\": [[], {}, [{}]]}}, \"unit\":\"ms\",\n"
    " \"traceEvents\": [\n"
    "  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm, [x]\", \"pid\": 1, \"tid\": 2,\n"
    "   \"ts\": 1623143089861.125, \"dur\": 12,\n   \"args\": {\"External id\": 5\n   }\n  },\n"
    "  {\"ph\": \"M\", \"args\": {}}\n ]\n}";

static void test_early_end(void **state)
{
    struct rp_json_options options = {0};

    UNUSED_STATE(state);
    check_every_way(sample, sizeof sample - 1, NULL);
    for (size_t n = 0; n < sizeof sample - 1; n++) {
        char want[40];

        /* where it ends is where the input does */
        snprintf(want, sizeof want, "FORMAT@%zu early", n);
        check_log(sample, n, &options, SKIP, want);
        options.block_bytes = 1 + (uint32_t)(n % 70);
        check_log(sample, n, &options, SKIP, want);
        options.block_bytes = 0;
    }
}

/* A cut number is not given out: more digits might have come. */
static void test_early_end_number(void **state)
{
    struct rp_json_options options = {0};

    UNUSED_STATE(state);
    check_log("[1, 23", 6, &options, PULL, "[ n:1i FORMAT@6 early");
    check_log("[1, 23 ", 7, &options, PULL, "[ n:1i n:23i FORMAT@7 early");
    check_log("[1, tru", 7, &options, PULL, "[ n:1i FORMAT@7 early");
    check_log("[1, 2.", 6, &options, PULL, "[ n:1i FORMAT@6 early");
    check_log("[1, 2x", 6, &options, PULL, "[ n:1i FORMAT@5");
    check_log("", 0, &options, PULL, "FORMAT@0 early");
    check_log(" \n", 2, &options, PULL, "FORMAT@2 early");
}

/* -------------------------------------------------------------------------- limits */

static void test_token_limits(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_json_options options = {.limits = &limits};
    static const char *const fits[] = {"[\"0123456789\"]", "{\"0123456789\":1}", "[1234567890]",
                                       "[12345678.5]"};
    static const struct {
        const char *text, *want;
    } over[] = {{"[1, \"0123456789a\"]", "LIMIT@4"},
                {"{\"0123456789a\":1}", "LIMIT@1"},
                {"[ 12345678901]", "LIMIT@2"},
                {"[1,123456789.5]", "LIMIT@3"},
                {"[1,123456789e5]", "LIMIT@3"}};

    UNUSED_STATE(state);
    limits.token_bytes = 10;
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++)
        check_log(fits[i], strlen(fits[i]), &options, SKIP, "OK");
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        check_log(over[i].text, strlen(over[i].text), &options, SKIP, over[i].want);
        check_every_way(over[i].text, strlen(over[i].text), &limits);
    }
    check_log("[ [1,2,3,4] ]", 13, &options, RAW, "[ r:[1,2,3,4] ] OK");
    check_log("[ [1,2,3,4,5] ]", 15, &options, RAW, "[ LIMIT@2");
    check_every_way("[ [1,2,3,4,5] ]", 15, &limits);
}

/* A string of 3 GB: the file is a mapping of zeros that are never written. */
static void test_huge_string(void **state)
{
    size_t n = (size_t)3 << 30;
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    char *text =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    UNUSED_STATE(state);
    if (text == MAP_FAILED)
        skip();
    limits.token_bytes = 8 << 20; /* as with 64 MiB, but quicker */
    memcpy(text, "[1, \"", 5);
    check_log(text, n, &(struct rp_json_options){.limits = &limits}, SKIP, "LIMIT@4");
    check_log(text, n, &(struct rp_json_options){.limits = &limits, .threaded = true}, SKIP,
              "LIMIT@4");
    memcpy(text, "[1, 222", 7);
    memset(text + 7, '2', 10 << 20);
    check_log(text, n, &(struct rp_json_options){.limits = &limits}, SKIP, "LIMIT@4");
    munmap(text, n);
}

/* White space is not a token: more of it than the limit is fine. */
static void test_huge_space(void **state)
{
    size_t n = 1 << 20;
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_json_options options = {.limits = &limits, .block_bytes = 4096};
    char *text = malloc(n);

    UNUSED_STATE(state);
    assert_non_null(text);
    limits.token_bytes = 100;
    memset(text, ' ', n);
    text[0] = '[';
    memcpy(text + n / 2, "1,2,", 4);
    memcpy(text + n - 2, "3]", 2);
    check_log(text, n, &options, PULL, "[ n:1i n:2i n:3i ] OK");
    memcpy(text + n - 2, "3}", 2);
    check_log(text, n, &options, PULL, "[ n:1i n:2i n:3i FORMAT@1048575");
    free(text);
}

static void test_depth(void **state)
{
    size_t n = 100000000;
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_json_options options = {.limits = &limits};
    char *text = malloc(n);

    UNUSED_STATE(state);
    if (!text)
        skip();
    memset(text, '[', n);
    check_log(text, n, &options, SKIP, "LIMIT@1024");
    limits.depth = 3;
    check_log("[[[]]]", 6, &options, SKIP, "OK");
    check_log("[[[[]]]]", 8, &options, SKIP, "LIMIT@3");
    check_log("[{\"a\":[{}]}]", 12, &options, SKIP, "LIMIT@7");
    check_every_way("[{\"a\":[{}]}]", 12, &limits);
    limits.depth = UINT32_MAX; /* a byte a level, and no recursion */
    n = 4000000;
    check_log(text, n, &options, SKIP, "FORMAT@4000000 early");
    memset(text + n / 2, ']', n / 2);
    check_log(text, n, &options, SKIP, "OK");
    limits.depth = 0;
    check_log("1", 1, &options, SKIP, "OK");
    check_log("[]", 2, &options, SKIP, "LIMIT@0");
    free(text);
}

static void test_input_limit(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_input *in;
    struct rp_json *p;
    struct rp_err err;

    UNUSED_STATE(state);
    limits.input_bytes = 4;
    assert_ok(rp_input_open_memory("test", "[1,2,3]", 7, NULL, &in, &err), &err);
    assert_ok(rp_json_open(in, &(struct rp_json_options){.limits = &limits}, &p, &err), &err);
    assert_false(rp_json_skip(p));
    assert_code(rp_json_finish(p, &err), RP_LIMIT);
    assert_true(rp_json_ended_early(p));
    assert_contains(err.text, "limit of 4 bytes");
    rp_json_close(p);
    rp_input_close(in);
}

int test_json(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_bad),
        cmocka_unit_test(test_early_end),    cmocka_unit_test(test_early_end_number),
        cmocka_unit_test(test_token_limits), cmocka_unit_test(test_huge_string),
        cmocka_unit_test(test_huge_space),   cmocka_unit_test(test_depth),
        cmocka_unit_test(test_input_limit),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
