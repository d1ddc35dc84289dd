/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON pull parser: skipping, raw text, decoding, salvage, compressed inputs, threads. */
#include "json_fixtures.h"

#include <zlib.h>

/* -------------------------------------------------------------------------- the rest of the API */

static struct rp_json *open_text(const char *text, uint32_t block, struct rp_input **in)
{
    struct rp_json_options options = {.block_bytes = block};
    struct rp_json *p;
    struct rp_err err;

    assert_ok(rp_input_open_memory("test", text, strlen(text), NULL, in, &err), &err);
    assert_ok(rp_json_open(*in, &options, &p, &err), &err);
    return p;
}

static void test_skip_and_raw(void **state)
{
    const char *text = "{\"a\": [1, {\"b\": \"]\"}] , \"c\" : 12 , \"d\": \"x\\n\", \"e\": { } }";

    UNUSED_STATE(state);
    for (uint32_t block = 1; block < 64; block++) {
        struct rp_json_token key, raw;
        struct rp_input *in;
        struct rp_json *p = open_text(text, block, &in);
        struct rp_err err;

        assert_int_equal(rp_json_value(p, &raw), RP_JSON_OBJECT);
        assert_true(rp_json_field(p, &key) && rp_json_key_is(&key, "a"));
        assert_int_equal(rp_json_offset(p), 6);
        assert_true(rp_json_raw(p, &raw));
        assert_int_equal(raw.kind, RP_JSON_ARRAY);
        assert_int_equal(raw.len, 15);
        assert_memory_equal(raw.text, "[1, {\"b\": \"]\"}]", 15);
        assert_true(rp_json_field(p, &key) && rp_json_key_is(&key, "c"));
        assert_true(rp_json_raw(p, &raw));
        assert_int_equal(raw.kind, RP_JSON_NUMBER);
        assert_int_equal(raw.len, 2);
        assert_true(rp_json_field(p, &key) && rp_json_key_is(&key, "d"));
        assert_true(rp_json_raw(p, &raw));
        assert_memory_equal(raw.text, "\"x\\n\"", 5);
        assert_true(rp_json_field(p, &key) && rp_json_key_is(&key, "e"));
        assert_true(rp_json_skip(p));
        assert_false(rp_json_field(p, &key));
        assert_ok(rp_json_finish(p, &err), &err);
        rp_json_close(p);
        rp_input_close(in);
    }
}

/* What was read after a key is not skipped, also if it was empty; what was not read is. */
static void test_next_skips_what_was_not_read(void **state)
{
    const char *text = "{\"a\": [1, {\"b\": 2}], \"c\": {}, \"d\": {\"e\": 3, \"f\": 4}, \"g\": 5}";

    UNUSED_STATE(state);
    for (uint32_t block = 1; block < 64; block++) {
        struct rp_json_token key, value;
        struct rp_input *in;
        struct rp_json *p = open_text(text, block, &in);
        struct rp_err err;

        assert_int_equal(rp_json_value(p, &value), RP_JSON_OBJECT);
        assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "a"));
        assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "c"));
        assert_int_equal(rp_json_value(p, &value), RP_JSON_OBJECT);
        assert_false(rp_json_next(p, &key));
        assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "d"));
        assert_int_equal(rp_json_value(p, &value), RP_JSON_OBJECT);
        assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "e"));
        assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "f"));
        assert_int_equal(rp_json_value(p, &value), RP_JSON_NUMBER);
        assert_false(rp_json_next(p, &key));
        assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "g"));
        assert_false(rp_json_next(p, &key));
        assert_ok(rp_json_finish(p, &err), &err);
        rp_json_close(p);
        rp_input_close(in);
    }
}

/* A value that is damaged ends the object, and the error is kept. */
static void test_next_stops_at_damage(void **state)
{
    struct rp_json_token key, value;
    struct rp_input *in;
    struct rp_json *p = open_text("{\"a\": [1, 2}, \"b\": 3}", 0, &in);
    struct rp_err err;

    UNUSED_STATE(state);
    rp_json_value(p, &value);
    assert_true(rp_json_next(p, &key) && rp_json_key_is(&key, "a"));
    assert_false(rp_json_next(p, &key));
    assert_code(rp_json_finish(p, &err), RP_FORMAT);
    rp_json_close(p);
    rp_input_close(in);
}

/* The text before an error is shown even where it stood in earlier blocks. */
static void test_context(void **state)
{
    UNUSED_STATE(state);
    for (uint32_t block = 1; block < 30; block++) {
        struct rp_input *in;
        struct rp_json *p = open_text("{\"aaaa\": 1, \"bb\": [2, 3], \"cccc\" 4}", block, &in);
        struct rp_err err;

        assert_false(rp_json_skip(p));
        assert_code(rp_json_finish(p, &err), RP_FORMAT);
        assert_int_equal(err.offset, 33);
        assert_contains(err.text, "expected ':' after a key at byte 33: ");
        assert_contains(err.text, "aaa\": 1, \"bb\": [2, 3], \"cccc\" >>>4");
        rp_json_close(p);
        rp_input_close(in);
    }
}

/* A key is still there after its value was read, whatever the block size. */
static void test_key_outlives_value(void **state)
{
    UNUSED_STATE(state);
    for (uint32_t block = 1; block < 200; block++) {
        struct rp_json_token key, value;
        struct rp_input *in;
        struct rp_json *p =
            open_text("{\"first\": \"one\", \"second\": 22222222222222}", block, &in);

        assert_int_equal(rp_json_value(p, &value), RP_JSON_OBJECT);
        assert_true(rp_json_field(p, &key));
        assert_int_equal(rp_json_value(p, &value), RP_JSON_STRING);
        assert_true(rp_json_key_is(&key, "first") && rp_json_key_is(&value, "one"));
        assert_true(rp_json_field(p, &key));
        assert_int_equal(rp_json_value(p, &value), RP_JSON_NUMBER);
        assert_true(rp_json_key_is(&key, "second") && rp_json_key_is(&value, "22222222222222"));
        rp_json_close(p);
        rp_input_close(in);
    }
}

static void test_unescape(void **state)
{
    static const struct {
        const char *text, *want;
        uint32_t bad;
    } cases[] = {
        {"", "", 0},
        {"plain", "plain", 0},
        {"a\\nb\\t\\r\\b\\f\\\"\\\\\\/", "a\nb\t\r\b\f\"\\/", 0},
        {"\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac", 0},
        {"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!", 0},
        {"\\ud83d", "\xef\xbf\xbd", 0},
        {"\\ude00x", "\xef\xbf\xbdx", 0},
        {"\\ud83d\\u0041",
         "\xef\xbf\xbd"
         "A",
         0},
        {"\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80", 0},
        {"C:\\Users\\x", "C:\\Users\\x", 2},
        {"\\u12", "\\u12", 1},
        {"\\u12g4\\n", "\\u12g4\n", 1},
        {"end\\", "end\\", 1},
        {"\xc3\xa9\\n\xff", "\xc3\xa9\n\xff", 0},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64], same[64];
        uint32_t wrong = 0;
        size_t len = strlen(cases[i].text), n = rp_json_unescape(cases[i].text, len, out, &wrong);

        assert_int_equal(n, strlen(cases[i].want));
        assert_memory_equal(out, cases[i].want, n);
        assert_int_equal(wrong, cases[i].bad);
        memcpy(same, cases[i].text, len);
        assert_int_equal(rp_json_unescape(same, len, same, NULL), n);
        assert_memory_equal(same, cases[i].want, n);
    }
    assert_int_equal(rp_json_unescape("\\u0000", 6, (char[6]){1}, NULL), 1);
}

static void test_decode_and_stats(void **state)
{
    struct rp_json_token key, value;
    struct rp_input *in;
    struct rp_json *p = open_text(
        "{\"a\\u0062\": \"x\\ty\\z\", \"c\": \"\x01\t\", \"d\": [NaN, -Infinity]}", 0, &in);
    struct rp_json_stats stats;

    UNUSED_STATE(state);
    rp_json_value(p, &value);
    assert_true(rp_json_field(p, &key) && key.has_escapes && rp_json_decode(p, &key));
    assert_true(rp_json_key_is(&key, "ab") && !key.has_escapes);
    rp_json_value(p, &value);
    assert_true(value.has_escapes && rp_json_decode(p, &value));
    assert_true(rp_json_key_is(&value, "x\ty\\z"));
    assert_true(rp_json_field(p, &key) && !key.has_escapes && rp_json_decode(p, &key));
    assert_true(rp_json_skip(p));
    assert_true(rp_json_field(p, &key) && rp_json_skip(p));
    assert_false(rp_json_field(p, &key));
    stats = rp_json_stats(p);
    assert_int_equal(stats.control_bytes, 2);
    assert_int_equal(stats.non_finite, 2);
    assert_int_equal(stats.bad_escapes, 1);
    assert_false(stats.truncated);
    rp_json_close(p);
    rp_input_close(in);
}

/* Calls in the wrong place are errors, not crashes. */
static void test_misuse(void **state)
{
    struct rp_json_token t;
    struct rp_input *in;
    struct rp_json *p = open_text("[\"a\", \"b\"]", 0, &in);
    struct rp_err err;

    UNUSED_STATE(state);
    assert_false(rp_json_element(p));
    assert_code(rp_json_finish(p, &err), RP_BUG);
    rp_json_close(p);
    rp_input_close(in);

    p = open_text("[\"a\", \"b\"]", 0, &in);
    rp_json_value(p, &t);
    assert_false(rp_json_field(p, &t));
    assert_code(rp_json_finish(p, &err), RP_BUG);
    assert_int_equal(rp_json_value(p, &t), RP_JSON_NONE);
    assert_false(rp_json_element(p));
    assert_false(rp_json_skip(p));
    assert_false(rp_json_raw(p, &t));
    rp_json_close(p);
    rp_input_close(in);

    p = open_text("[\"a\"]", 0, &in);
    rp_json_value(p, &t);
    rp_json_element(p);
    rp_json_value(p, &t);
    assert_int_equal(rp_json_value(p, &t), RP_JSON_NONE);
    assert_code(rp_json_finish(p, &err), RP_FORMAT);
    rp_json_close(p);
    rp_input_close(in);

    p = open_text("[1]", 0, &in);
    rp_json_value(p, &t);
    assert_code(rp_json_finish(p, NULL), RP_BUG);
    rp_json_close(p);
    rp_input_close(in);
    rp_json_close(NULL);
}

/* -------------------------------------------------------------------------- resync */

/* Reads an array of {"i": n}; appends the numbers, and the bytes skipped in brackets. */
static char *salvage(const char *text, size_t n, const struct rp_json_options *options,
                     const char *const *keys)
{
    struct rp_json_token t;
    struct rp_input *in;
    struct rp_json *p;
    struct rp_err err;
    struct log log = {0};
    uint64_t skipped;
    char number[40];

    assert_ok(rp_input_open_memory("test", text, n, NULL, &in, &err), &err);
    assert_ok(rp_json_open(in, options, &p, &err), &err);
    rp_json_value(p, &t);
    for (;;) {
        while (rp_json_element(p)) {
            if (rp_json_value(p, &t) != RP_JSON_OBJECT)
                continue;
            while (rp_json_field(p, &t))
                if (rp_json_value(p, &t) == RP_JSON_NUMBER)
                    log_token(&log, "", &t);
        }
        if (!rp_json_failed(p) || !rp_json_resync(p, 1, keys, &skipped))
            break;
        snprintf(number, sizeof number, "<%llu> ", (unsigned long long)skipped);
        log_text(&log, number);
    }
    log_end(&log, p);
    rp_json_close(p);
    rp_input_close(in);
    return log.text;
}

static void test_resync(void **state)
{
    static const char *const keys[] = {"i", "ph", NULL};
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"[{\"i\":1},\n{\"i\":2}]", "1i 2i OK"},
        {"[{\"i\":1},{\"x\":\"a\"b\"},{\"i\":3},{\"i\":4}]", "1i <4> 3i 4i OK"},
        {"[{\"i\":1},{\"x\":\"a},\n {\"i\":3},{\"i\":4}]", "1i <6> 4i OK"},
        {"[{\"i\":1},{\"i\":2 \"k\":0} , { \"i\":3},{\"i\":4}]", "1i 2i <9> 3i 4i OK"},
        {"[{\"i\":1} {\"i\":2},{\"i\":3}]", "1i <0> 2i 3i OK"},
        {"[{\"i\":1}, ,,{\"i\":2},{\"i\":3}]", "1i <2> 2i 3i OK"},
        {"[{\"i\":1},{\"i\":x},{\"zz\":3},{\"ph\":4}]", "1i <12> 4i OK"},
        {"[{\"i\":1},{\"i\":x}]", "1i FORMAT@14"},
        {"[{\"i\":1},{\"i\":x},{\"i\":y},{\"i\":3}]", "1i <3> <3> 3i OK"},
        {"[{\"i\":1},{\"i\":x},{\"i\":3},{\"i\":4", "1i <3> 3i FORMAT@31 early"},
        {"[{\"i\":1},{\"i\":2}}},{\"i\":3}]", "1i 2i <3> 3i OK"},
        {"[{\"i\":1},]", "1i FORMAT@9"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t block = 0; block < 60; block++) {
            for (int threaded = 0; threaded < 2; threaded++) {
                struct rp_json_options options = {.block_bytes = block, .threaded = threaded};
                char *got = salvage(cases[i].text, strlen(cases[i].text), &options, keys);

                if (strcmp(got, cases[i].want) != 0)
                    fail_msg("case %zu, block %u: '%s', not '%s'", i, block, got, cases[i].want);
                free(got);
            }
        }
    }
}

/* Many errors in a large array: all the whole elements come out, in order, on every path. */
static void test_resync_many(void **state)
{
    size_t cap = 4 << 20, n = 0;
    char *text = malloc(cap), *first, *second;
    static const char *const breaks[] = {"{\"i\":1\"},", "{\"i\":\"x\"y\"},\n", "{\"i\":tru },"};

    UNUSED_STATE(state);
    assert_non_null(text);
    text[n++] = '[';
    for (int i = 0; n < cap - 200; i++) {
        n += (size_t)snprintf(text + n, 60, "{\"i\":%d, \"s\": \"a,}{[\"},\n", i);
        if (i % 97 == 5)
            n += (size_t)snprintf(text + n, 60, "%s", breaks[i % 3]);
    }
    n += (size_t)snprintf(text + n, 60, "{\"i\":0}]");
    first = salvage(text, n, &(struct rp_json_options){.threaded = true}, NULL);
    second = salvage(text, n, &(struct rp_json_options){.block_bytes = 1000}, NULL);
    assert_string_equal(first, second);
    assert_contains(first, "0i OK");
    assert_contains(first, "\x20"
                           "104i "); /* after the element behind the second break */
    free(first);
    free(second);
    free(text);
}

static void test_resync_refused(void **state)
{
    struct rp_json_token t;
    struct rp_input *in;
    struct rp_json *p = open_text("{\"a\": x},{\"a\": 1}", 0, &in);
    uint64_t skipped = 7;

    UNUSED_STATE(state);
    assert_false(rp_json_resync(p, 1, NULL, &skipped)); /* no error */
    assert_int_equal(skipped, 0);
    rp_json_value(p, &t);
    rp_json_field(p, &t);
    rp_json_value(p, &t);
    assert_true(rp_json_failed(p));
    assert_false(rp_json_resync(p, 1, NULL, &skipped)); /* not an array */
    assert_false(rp_json_resync(p, 0, NULL, &skipped));
    assert_false(rp_json_resync(p, 9, NULL, &skipped));
    rp_json_close(p);
    rp_input_close(in);
}

/* -------------------------------------------------------------------------- compressed inputs */

static size_t gzip(const char *text, size_t n, unsigned char *out, size_t cap)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return (size_t)z.total_out;
}

static size_t make_numbers(char *text, size_t cap)
{
    uint64_t seed = 99;
    size_t n = (size_t)snprintf(text, cap, "[0");

    while (n < cap - 60)
        n += (size_t)snprintf(text + n, 60, ", {\"v\": %llu}",
                              (unsigned long long)random_next(&seed));
    return n + (size_t)snprintf(text + n, 60, "]");
}

static void test_gzip(void **state)
{
    size_t cap = 2 << 20, n, packed_n;
    char *text = malloc(cap), *log, *plain;
    unsigned char *packed = malloc(cap);
    struct rp_json_options options = {.threaded = true};

    UNUSED_STATE(state);
    assert_true(text && packed);
    n = make_numbers(text, cap);
    packed_n = gzip(text, n, packed, cap);
    plain = make_log(text, n, &options, PULL);
    log = make_log((char *)packed, packed_n, &options, PULL);
    assert_string_equal(log, plain);
    free(log);

    /* cut short: all before it, then an early end */
    log = make_log((char *)packed, packed_n / 2, &options, PULL);
    assert_contains(log, "FORMAT@");
    assert_contains(log, " early");
    assert_memory_equal(log, plain, strlen(log) / 2);
    assert_true(strlen(log) > strlen(plain) / 3);
    free(log);

    /* damaged in the checksum: everything is there, and yet an error */
    packed[packed_n - 6] ^= 1;
    log = make_log((char *)packed, packed_n, &options, PULL);
    assert_null(strstr(log, "early"));
    assert_contains(log, "] FORMAT@");
    assert_memory_equal(log, plain, strlen(plain) - 2);
    free(log);
    free(plain);
    free(text);
    free(packed);
}

/* Closing while the other thread is busy, and large inputs with and without it. */
static void test_threads(void **state)
{
    size_t cap = 4 << 20, n;
    char *text = malloc(cap), *one, *two;
    struct rp_json_token t;
    struct rp_input *in;
    struct rp_json *p;
    struct rp_err err;

    UNUSED_STATE(state);
    assert_non_null(text);
    n = make_numbers(text, cap);
    one = make_log(text, n, &(struct rp_json_options){0}, RAW);
    two = make_log(text, n, &(struct rp_json_options){.threaded = true}, RAW);
    assert_string_equal(one, two);
    for (int steps = 0; steps < 60; steps++) {
        struct rp_json_options options = {.threaded = true, .block_bytes = 64};

        assert_ok(rp_input_open_memory("test", text, n, NULL, &in, &err), &err);
        assert_ok(rp_json_open(in, &options, &p, &err), &err);
        if (steps)
            rp_json_value(p, &t);
        for (int i = 1; i < steps && rp_json_element(p); i++)
            rp_json_skip(p);
        rp_json_close(p);
        rp_input_close(in);
    }
    free(one);
    free(two);
    free(text);
}

int test_json_api(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skip_and_raw),
        cmocka_unit_test(test_next_skips_what_was_not_read),
        cmocka_unit_test(test_next_stops_at_damage),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_key_outlives_value),
        cmocka_unit_test(test_unescape),
        cmocka_unit_test(test_decode_and_stats),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_resync),
        cmocka_unit_test(test_resync_many),
        cmocka_unit_test(test_resync_refused),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests_name("json_api", tests, NULL, NULL);
}
