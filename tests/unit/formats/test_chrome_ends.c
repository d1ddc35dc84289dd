/* SPDX-License-Identifier: Apache-2.0 */
/* How a Chrome trace may end, and what is not one. */
#include "chrome_fixture.h"

#include <stdlib.h>
#include <zlib.h>

static const char *const events[] = {
    ("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1.5,\"dur\":2,"
     "\"args\":{\"x\":[1,{\"y\":\"z\"}]}}"),
    "{\"ph\":\"s\",\"id\":1,\"pid\":1,\"tid\":2,\"ts\":2,\"cat\":\"c\",\"name\":\"f\"}",
    "{\"args\":{\"k\":\"\\u00e9\\\"}{\"},\"ph\":\"i\",\"name\":\"i\",\"ts\":3,\"s\":\"t\"}",
    "{\"ph\":\"X\",\"name\":\"last\",\"ts\":4,\"dur\":1}",
};

enum { NEVENTS = sizeof events / sizeof *events };

/* head, the events with their commas, tail; end[k] is where event k is complete. */
static size_t make(char *text, size_t cap, const char *head, const char *tail, size_t *end)
{
    size_t n = (size_t)snprintf(text, cap, "%s", head);

    for (size_t i = 0; i < NEVENTS; i++) {
        n += (size_t)snprintf(text + n, cap - n, "%s%s", i ? ",\n" : "", events[i]);
        end[i] = n;
    }
    return n + (size_t)snprintf(text + n, cap - n, "%s", tail);
}

static size_t complete(const size_t *end, size_t cut)
{
    size_t k = 0;

    while (k < NEVENTS && end[k] <= cut)
        k++;
    return k;
}

static int64_t nloaded(const struct rp_trace *t)
{
    return (int64_t)t->ev.n + t->flows.n;
}

/* Cut at every byte: what is complete is there, and nothing else. */
static void test_every_cut(void **state)
{
    static const char *const heads[] = {"{\"schemaVersion\":1,\"traceEvents\":[", "[ "};
    static const char *const tails[] = {"],\"traceName\":\"x\"}", "]"};
    char text[1000];
    size_t end[NEVENTS];

    UNUSED_STATE(state);
    for (int form = 0; form < 2; form++) {
        size_t n = make(text, sizeof text, heads[form], tails[form], end);

        for (size_t cut = 0; cut <= n; cut++) {
            struct rp_err err = RP_ERR_INIT;
            struct rp_import import = RP_IMPORT_INIT;
            char *copy = malloc(cut + 1); /* of its own, so that a sanitizer sees its end */
            enum rp_code code;

            memcpy(copy, text, cut);
            code = load_bytes(copy, cut, NULL, &import, &err);
            if (!complete(end, cut)) {
                assert_code(code, RP_FORMAT);
                assert_contains(err.text, "'t.json'");
            } else {
                assert_ok(code, &err);
                assert_int_equal(nloaded(import.trace), complete(end, cut));
                assert_int_equal(warns(import.trace, "truncated"), cut < n);
                if (form == 0)
                    assert_int_equal(import.trace->health.truncated, cut < n);
                rp_import_release(&import);
            }
            free(copy);
        }
    }
}

static size_t pack(const char *text, size_t n, uint8_t *out, size_t cap)
{
    z_stream z = {0};
    size_t len;

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    len = z.total_out;
    deflateEnd(&z);
    return len;
}

static void test_gzip(void **state)
{
    char text[1000];
    uint8_t packed[1000];
    size_t end[NEVENTS], n = make(text, sizeof text, "{\"traceEvents\":[", "]}", end);
    size_t len = pack(text, n, packed, sizeof packed);
    struct rp_read_options salvage = {.salvage = true};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    assert_ok(load_bytes(packed, len, NULL, &import, &err), &err);
    assert_int_equal(nloaded(import.trace), NEVENTS);
    assert_int_equal(import.content_bytes, n);
    rp_import_release(&import);

    for (size_t cut = 0; cut < len; cut++) { /* never a crash; whatever loads says so */
        if (load_bytes(packed, cut, NULL, &import, &err) == RP_OK) {
            assert_true(warns(import.trace, "truncated"));
            rp_import_release(&import);
        } else {
            assert_contains(err.text, "t.json");
        }
    }

    packed[len - 6] ^= 1; /* the checksum */
    assert_code(load_bytes(packed, len, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "t.json");
    assert_null(strstr(err.text, "trusted")); /* nobody knows where the damage is */
    assert_ok(load_bytes(packed, len, &salvage, &import, &err), &err);
    assert_int_equal(nloaded(import.trace), NEVENTS);
    assert_int_equal(import.trace->health.salvaged, 1);
    assert_true(warns(import.trace, "damaged"));
    rp_import_release(&import);
}

/* Stored blocks are inflated as they are: text that makes no sense, and a checksum that tells why.
 */
static size_t store(const char *text, size_t n, uint8_t *out, size_t cap)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 0, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n = z.total_out;
    deflateEnd(&z);
    return n;
}

static void test_damaged_gzip(void **state)
{
    static const char text[] = "{\"traceEvents\":[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1},"
                               "{\"ph\":\"i\",\"name\":\"b\",\"ts\":2},"
                               "{\"ph\":\"i\",\"name\":\"c\",\"ts\":3}]}";
    struct rp_read_options salvage = {.salvage = true};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    char bad[sizeof text];
    uint8_t packed[1000];
    size_t len = store(text, sizeof text - 1, packed, sizeof packed);
    uint8_t *colon = memmem(packed, len, "\"b\"", 3);

    UNUSED_STATE(state);
    colon[-1] = 'x';
    assert_code(load_bytes(packed, len, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "not reliable from byte 61 on");
    assert_ok(load_bytes(packed, len, &salvage, &import, &err), &err);
    assert_int_equal(nloaded(import.trace), 1);
    assert_int_equal(import.trace->health.skipped_bytes, 0);
    assert_true(warns(import.trace, "not reliable from byte 61 on"));
    rp_import_release(&import);

    assert_code(load_bytes(packed, len - 3, NULL, &import, &err), RP_FORMAT); /* and cut */
    assert_contains(err.text, "the compressed data is damaged");

    /* the same text, but the file says so: looked through as without compression */
    memcpy(bad, text, sizeof text);
    strstr(bad, "\"b\"")[-1] = 'x';
    len = store(bad, sizeof text - 1, packed, sizeof packed);
    assert_code(load_bytes(packed, len, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "expected ':' after a key at byte 61");
    assert_ok(load_bytes(packed, len, &salvage, &import, &err), &err);
    assert_int_equal(nloaded(import.trace), 2);
    find(import.trace, "c");
    rp_import_release(&import);
}

static void test_garbage(void **state)
{
    static const char text[] = "{\"traceEvents\":[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1},"
                               "{\"ph\":\"i\",\"na\"\x03me\":\"b\",\"ts\":2},"
                               "{\"ph\":\"i\",\"name\":\"c\",\"ts\":3}],\"k\":1}";
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    REFUSE(text, RP_FORMAT, "'t.json'", "byte 59");
    import = load_salvaged(text);
    find(import.trace, "a");
    find(import.trace, "c");
    assert_int_equal(import.trace->ev.n, 2);
    assert_int_equal(import.trace->health.salvaged, 1);
    assert_true(import.trace->health.skipped_bytes > 0);
    assert_int_equal(import.trace->health.control_bytes, 0); /* the one that was skipped */
    assert_int_equal(import.trace->nwarnings, 0);            /* health tells */
    assert_int_equal(import.trace->nmeta, 1);
    rp_import_release(&import);

    /* nothing to go on with */
    REFUSE("[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1} oops", RP_FORMAT, "byte 30");
    import = load_salvaged("[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1} oops");
    assert_int_equal(import.trace->ev.n, 1);
    rp_import_release(&import);

    REFUSE("[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1}] more", RP_FORMAT, "byte 31");
    import = load_salvaged("[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1}] more");
    assert_int_equal(import.trace->ev.n, 1);
    rp_import_release(&import);
}

#define EVENT(name) "{\"ph\":\"i\",\"name\":\"" name "\",\"ts\":1}"

/* One too many at the end is nothing lost; elsewhere it is an error, and salvage loses nothing. */
static void test_commas(void **state)
{
    static const char *const harmless[] = {
        "{\"traceEvents\":[" EVENT("a") "," EVENT("b") ",]}",
        "{\"traceEvents\":[" EVENT("a") "," EVENT("b") "\n,\n] ,\n}",
        "[" EVENT("a") "," EVENT("b") ", ]",
    };
    static const char *const broken[] = {
        "{\"traceEvents\":[,," EVENT("a") "," EVENT("b") "]}",
        "[" EVENT("a") " " EVENT("b") "]",
        "[" EVENT("a") ",, ," EVENT("b") "]",
    };
    struct rp_import import;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        import = load(harmless[i]);
        assert_int_equal(import.trace->ev.n, 2);
        assert_int_equal(import.trace->nwarnings, 1);
        assert_true(warns(import.trace, "comma"));
        rp_import_release(&import);
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        REFUSE(broken[i], RP_FORMAT, "byte");
        import = load_salvaged(broken[i]);
        assert_int_equal(import.trace->ev.n, 2);
        assert_int_equal(import.trace->health.salvaged, 1);
        assert_int_equal(warns(import.trace, "commas"), !import.trace->health.skipped_bytes);
        rp_import_release(&import);
    }
    REFUSE("[" EVENT("a") ",,]", RP_FORMAT, "byte");
    REFUSE("[{\"ph\":\"i\",\"ts\":1,\"args\":{\"a\":1,}}]", RP_FORMAT, "unexpected ','");
}

static void test_not_a_trace(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    REFUSE("", RP_FORMAT, "'t.json' is empty");
    REFUSE("   \n ", RP_FORMAT, "unknown format");
    REFUSE("hello", RP_FORMAT, "unknown format", "first bytes: hello", "chrome-json");
    REFUSE("{\"a\":[1,2,3]}", RP_FORMAT, "unknown format");
    REFUSE("[1,2,3]", RP_FORMAT, "unknown format");
    REFUSE("[]", RP_FORMAT, "'t.json'");
    REFUSE("[{}]", RP_FORMAT, "not a trace");
    REFUSE("[", RP_FORMAT, "'t.json'");
    REFUSE("[{\"name\":\"x\",\"ts\":1}]", RP_FORMAT, "unknown format");
    REFUSE("[[0,\"malloc\",1]]", RP_FORMAT, "unknown format");
    REFUSE("{\"schema\":\"1.0.1\",\"nodes\":[{\"id\":1}]}", RP_FORMAT, "unknown format");
    REFUSE("{\"traceEvents\":{\"ph\":1}}", RP_FORMAT, "'traceEvents' is not a list", "byte");
    REFUSE("{\"traceEvents\":7}", RP_FORMAT, "'traceEvents' is not a list");
    REFUSE("{\"traceEvents\":[1,2]}", RP_FORMAT, "none of the 2 elements");
    assert_code(load_bytes("\0\0\0\0", 4, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "\\x00\\x00");
}

/* A header longer than what is sniffed, with and without the list behind it. */
static void test_long_header(void **state)
{
    size_t n = 100000, len;
    char *text = calloc(1, n + 200);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    len = (size_t)snprintf(text, 200, "{\"x\":\"");
    memset(text + len, 'a', n);
    len += n;
    strcpy(text + len, "\",\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}]}");
    assert_ok(load_bytes(text, strlen(text), NULL, &import, &err), &err);
    assert_int_equal(import.trace->ev.n, 1);
    rp_import_release(&import);
    strcpy(text + len, "\",\"other\":[{\"ph\":\"i\",\"ts\":1}]}");
    REFUSE(text, RP_FORMAT, "no list of events");
    free(text);
}

static void test_limits(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_read_options options = {.limits = &limits};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    char text[1000];
    size_t end[NEVENTS], n = make(text, sizeof text, "[", "]", end);

    UNUSED_STATE(state);
    limits.events = 2;
    assert_code(load_bytes(text, n, &options, &import, &err), RP_LIMIT);
    assert_contains(err.text, "'t.json'");
    limits = RP_LIMITS_DEFAULT;
    limits.depth = 3;
    assert_code(load_bytes(text, n, &options, &import, &err), RP_LIMIT);
    limits = RP_LIMITS_DEFAULT;
    limits.token_bytes = 10;
    assert_code(load_bytes(text, n, &options, &import, &err), RP_LIMIT);
}

static bool stop_at_once(void *user, uint64_t done, uint64_t total)
{
    ++*(int *)user;
    assert_true(done <= total);
    return false;
}

static void test_progress(void **state)
{
    size_t each = 28, n = 20000, len = 0;
    char *text = calloc(n, each);
    int calls = 0;
    struct rp_read_options options = {.progress = stop_at_once, .progress_user = &calls};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "%c{\"ph\":\"i\",\"ts\":1}", i ? ',' : '[');
    strcpy(text + len, "]");
    assert_code(load_bytes(text, strlen(text), &options, &import, &err), RP_CANCELLED);
    assert_int_equal(calls, 1);
    free(text);
}

int test_chrome_ends(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),    cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_garbage),      cmocka_unit_test(test_not_a_trace),
        cmocka_unit_test(test_long_header),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_commas),       cmocka_unit_test(test_progress),
        cmocka_unit_test(test_damaged_gzip),
    };

    return cmocka_run_group_tests_name("chrome_ends", tests, NULL, NULL);
}
