/* SPDX-License-Identifier: Apache-2.0 */
/* The structural index: all variants agree with the plain one, wherever the text is split. */
#include "json_fixtures.h"

/* The index in two pieces, which must equal the whole. */
static void check_index(const struct rp_json_indexer *indexer, const char *text, size_t n,
                        size_t split, const uint32_t *want, size_t want_n,
                        const struct rp_json_index_state *want_state)
{
    struct rp_json_index_state s = {0};
    uint32_t got[1024];
    size_t got_n = indexer->run(&s, text, split, 7, got);

    got_n += indexer->run(&s, text + split, n - split, 7 + (uint32_t)split, got + got_n);
    assert_int_equal(got_n, want_n);
    assert_memory_equal(got, want, want_n * sizeof *want);
    assert_true(s.in_string == want_state->in_string && s.escaped == want_state->escaped);
    assert_int_equal(s.control_bytes, want_state->control_bytes);
    assert_int_equal(s.backslash != 0, want_state->backslash != 0);
}

static void check_index_text(const char *text, size_t n)
{
    struct rp_json_index_state s = {0};
    uint32_t want[1024];
    size_t want_n = rp_json_index_scalar(&s, text, n, 7, want);

    for (size_t v = 0; rp_json_indexer_at(v); v++)
        for (size_t split = 0; split <= n; split++)
            check_index(rp_json_indexer_at(v), text, n, split, want, want_n, &s);
}

static void test_index_variants(void **state)
{
    static const char *const alphabets[] = {"\"\\", "\"\\{}[],:a \n\x01", "\\\\\\\\\\\\\\\"a",
                                            "[]{},",
                                            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x1f\x20,\x0c"};
    uint64_t seed = 88172645463325252u;
    char text[400];

    UNUSED_STATE(state);
    for (int round = 0; round < 200; round++) {
        const char *alphabet = alphabets[round % 5];
        size_t n = 64 + random_next(&seed) % 330;

        for (size_t i = 0; i < n; i++)
            text[i] = alphabet[random_next(&seed) % strlen(alphabet)];
        check_index_text(text, n);
    }
    for (int round = 0; round < 50; round++) { /* any bytes */
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)random_next(&seed);
        check_index_text(text, sizeof text);
    }
    for (size_t n = 1; n < 200; n++) { /* runs of backslashes of every length */
        memset(text, '\\', n);
        text[0] = text[n] = text[n + 1] = '"';
        check_index_text(text, n + 2);
    }
}

static void test_index_positions(void **state)
{
    const char *text = "{\"a\\\"\": [\"b,\x02\", 1]} \\\"x, \"";
    static const uint32_t want[] = {0, 1, 5, 8, 9, 13, 14, 17, 18, 23, 25};

    UNUSED_STATE(state);
    for (size_t v = 0; rp_json_indexer_at(v); v++) {
        struct rp_json_index_state s = {0};
        uint32_t got[128];

        assert_int_equal(rp_json_indexer_at(v)->run(&s, text, strlen(text), 0, got), 11);
        assert_memory_equal(got, want, sizeof want);
        assert_true(s.in_string == UINT64_MAX);
        assert_int_equal(s.control_bytes, 1);
        assert_true(s.backslash);
    }
    assert_string_equal(rp_json_indexer_at(0)->name[0] == 's' ? "scalar" : "vector",
                        rp_json_indexer_at(1) ? "vector" : "scalar");
}

int test_json_index(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_variants),
        cmocka_unit_test(test_index_positions),
    };

    return cmocka_run_group_tests_name("json_index", tests, NULL, NULL);
}
