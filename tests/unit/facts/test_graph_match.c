/* SPDX-License-Identifier: Apache-2.0 */
/* Which captured node an executed kernel is. */
#include "facts/graphs/match.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* A letter is a kernel, '?' one without a name, '+' a copy, '=' a memset. */
static uint64_t token_of(char c)
{
    switch (c) {
    case '?':
        return RP_TOKEN_ANY;
    case '+':
        return RP_TOKEN_COPY;
    case '=':
        return RP_TOKEN_SET;
    default:
        return (uint64_t)c + RP_TOKEN_NAMES;
    }
}

/* The matches as text: one character a node that was executed, the index of the captured one as a
   digit, or '.'. */
static const char *match(const char *captured, const char *executed)
{
    static char text[64];
    uint64_t a[64], b[64], work = RP_MATCH_WORK;
    uint32_t n = (uint32_t)strlen(captured), m = (uint32_t)strlen(executed), node_of[64], count, i;
    uint32_t found = 0;

    for (i = 0; i < n; i++)
        a[i] = token_of(captured[i]);
    for (i = 0; i < m; i++)
        b[i] = token_of(executed[i]);
    assert_code(rp_graph_match(a, n, b, m, node_of, &count, &work, NULL), RP_OK);
    for (i = 0; i < m; i++) {
        text[i] = node_of[i] == UINT32_MAX ? '.' : (char)('0' + node_of[i]);
        found += node_of[i] != UINT32_MAX;
    }
    text[m] = '\0';
    assert_int_equal(found, count);
    return text;
}

static void equal_sequences(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(match("abcab", "abcab"), "01234");
    assert_string_equal(match("a+=b", "a+=b"), "0123");
    assert_string_equal(match("", ""), "");
}

/* The kernels behind a difference keep their places: the second 'a' stays the second layer's. */
static void a_few_differences(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(match("abcabc", "abcac"), "01235");     /* one was not executed */
    assert_string_equal(match("abcabc", "abcxabc"), "012.345"); /* one was not captured */
    assert_string_equal(match("abcabc", "bcabc"), "12345");
    assert_string_equal(match("abcabc", "abcab"), "01234");
    assert_string_equal(match("abcabc", "aycabc"), "0.2345"); /* another kernel does it */
    assert_string_equal(match("abc", "xyz"), "...");
    assert_string_equal(match("pxqxr", "qxyz"), "23.."); /* the second 'x', behind 'q' */
    assert_string_equal(match("pxqxr", "zqxy"), ".23.");
}

/* Two streams run at the same time: what is in another order is found by name. */
static void another_order(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(match("abcdef", "adbecf"), "031425");
    assert_string_equal(match("aabb", "abab"), "0213");
}

static void without_names_only_kinds_count(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(match("??+?", "ab+c"), "0123");
    assert_string_equal(match("??+?", "abc+"), "....");
    assert_string_equal(match("???", "ab"), "..");
    assert_string_equal(match("?b+", "abc"), "...");
    assert_string_equal(match("a?", "ab+"), "...");
    assert_string_equal(match("??", "abc"), "...");
}

static void many_differences_end(void **state)
{
    enum { N = 20000 };
    uint64_t *a = calloc(N, sizeof *a), *b = calloc(N, sizeof *b), work = RP_MATCH_WORK;
    uint32_t *node_of = calloc(N, sizeof *node_of), matched, i;

    UNUSED_STATE(state);
    for (i = 0; i < N; i++) {
        a[i] = 1000 + i;
        b[i] = 1000 + (N - 1 - i);
    }
    assert_code(rp_graph_match(a, N, b, N, node_of, &matched, &work, NULL), RP_OK);
    assert_int_equal(matched, N); /* by name */
    assert_int_equal(node_of[0], N - 1);
    work = 10; /* spent */
    assert_code(rp_graph_match(a, N, b, N, node_of, &matched, &work, NULL), RP_OK);
    assert_int_equal(matched, N);
    free(a);
    free(b);
    free(node_of);
}

static void names_become_tokens(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_graph_token("gemm", 4) == rp_graph_token("gemm.kd", 7));
    assert_true(rp_graph_token("gemm", 4) != rp_graph_token("gemn", 4));
    assert_true(rp_graph_token("gemm", 4) >= RP_TOKEN_NAMES);
    assert_int_equal(rp_graph_token("__amd_rocclr_fillBufferAligned", 30), RP_TOKEN_SET);
    assert_int_equal(rp_graph_token("__amd_rocclr_copyBuffer", 23), RP_TOKEN_COPY);
}

/* What is left of the budget: a place costs one, and one more for each node that fits from there.
 */
static uint64_t cost_of(const char *captured, const char *executed)
{
    uint64_t a[16], b[16], work = 100;
    uint32_t n = (uint32_t)strlen(captured), m = (uint32_t)strlen(executed), node_of[16], count;

    for (uint32_t i = 0; i < n; i++)
        a[i] = token_of(captured[i]);
    for (uint32_t i = 0; i < m; i++)
        b[i] = token_of(executed[i]);
    assert_code(rp_graph_match(a, n, b, m, node_of, &count, &work, NULL), RP_OK);
    return 100 - work;
}

static void a_search_has_a_cost(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(cost_of("abcabc", "abcabc"), 0);
    assert_int_equal(cost_of("abcabc", "aycabc"), 4);
    assert_int_equal(cost_of("pqrs", "xpqry"), 10);
}

int test_graph_match(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_has_a_cost),
        cmocka_unit_test(equal_sequences),
        cmocka_unit_test(a_few_differences),
        cmocka_unit_test(another_order),
        cmocka_unit_test(without_names_only_kinds_count),
        cmocka_unit_test(many_differences_end),
        cmocka_unit_test(names_become_tokens),
    };

    return cmocka_run_group_tests_name("graph match", tests, NULL, NULL);
}
