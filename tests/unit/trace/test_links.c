/* SPDX-License-Identifier: Apache-2.0 */
/* Launches and their device work: by correlation, by arrows, by external id; arrows to spans. */
#include "trace_fixtures.h"

static bool is_device(const struct rp_trace *t, rp_event e)
{
    return rp_kind_is_device_work(t->ev.kind[e]);
}

/* Link of event n, checked to have these members (numbers of the file, -1 ends). */
static void assert_members(const struct rp_trace *t, int64_t n, const int64_t *members)
{
    rp_link link = t->ev.link[event_n(t, n)];
    uint32_t k;

    assert_int_not_equal(link, RP_NONE);
    for (k = t->links.offset[link]; k < t->links.offset[link + 1]; k++, members++)
        assert_int_equal(arg_of(t, t->links.member[k], "n"), *members);
    assert_int_equal(*members, -1);
}

static void test_by_correlation(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "k2", 0, 8, 80, 5, .corr = 7},
        {'X', "kernel", "k1", 0, 7, 90, 5, .corr = 7},
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 50, 5, .corr = 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 60, 5, .corr = -3},
        {'X', "kernel", "k3", 0, 7, 95, 5, .corr = -3},
        {'X', "kernel", "alone", 0, 7, 100, 5},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_members(t, 2, (int64_t[]){2, 0, 1, -1});
    assert_members(t, 4, (int64_t[]){3, 4, -1});
    assert_int_equal(t->links.native_id[t->ev.link[event_n(t, 4)]], -3);
    assert_int_equal(t->links.source[0], RP_LINK_CORRELATION);
    assert_int_equal(t->ev.link[event_n(t, 5)], RP_NONE);
    rp_trace_free(t);
}

static void test_by_arrows(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, 50, 20},
        {'X', "cuda_runtime", "launch", 1, 1, 50, 5},
        {'X', "kernel", "k", 0, 7, 90, 5},
        {'X', "kernel", "k of a lone end", 0, 7, 190, 5},
        {'s', "ac2g", "ac2g", 1, 1, 50, .id = 11},
        {'f', "ac2g", "ac2g", 0, 7, 90, .id = 11},
        {'f', "ac2g", "ac2g", 0, 7, 190, .id = 12},
        {'s', "fwdbwd", "fwdbwd", 1, 1, 50, .id = 3},
        {'f', "fwdbwd", "fwdbwd", 1, 1, 66, .id = 3},
        {'f', "fwdbwd", "fwdbwd", 1, 1, 70, .id = 3},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_members(t, 2, (int64_t[]){1, 2, -1});
    assert_int_equal(t->links.source[t->ev.link[event_n(t, 2)]], RP_LINK_FLOW);
    assert_int_equal(t->links.native_id[t->ev.link[event_n(t, 2)]], 11);
    assert_int_equal(t->ev.link[event_n(t, 3)], RP_NONE);
    assert_int_equal(t->flows.event[0], event_n(t, 1));
    assert_int_equal(t->flows.event[1], event_n(t, 2));
    assert_int_equal(t->flows.event[3], event_n(t, 0)); /* an operator for other arrows */
    assert_int_equal(t->flows.event[4], event_n(t, 0)); /* around it */
    assert_int_equal(t->flows.event[5], RP_NONE);       /* it ended just then */
    rp_trace_free(t);
}

/* A kernel that has a correlation id without a call takes the call of its arrow. */
static void test_arrow_completes_a_correlation(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "launch", 1, 1, 50, 5},
        {'X', "kernel", "k", 0, 7, 90, 5, .corr = 4},
        {'s', "ac2g", "ac2g", 1, 1, 50, .id = 11},
        {'f', "ac2g", "ac2g", 0, 7, 90, .id = 11},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_members(t, 1, (int64_t[]){0, 1, -1});
    assert_int_equal(t->links.n, 1);
    assert_int_equal(t->links.native_id[0], 4);
    rp_trace_free(t);
}

static void test_by_external_id(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, 50, 20, .external = 99},
        {'X', "kernel", "k1", 0, 7, 90, 5, .corr = 5, .external = 99},
        {'X', "kernel", "k2", 0, 7, 80, 5, .external = 99},
        {'X', "kernel", "k3", 0, 7, 95, 5, .external = 100},
        {'X', "cuda_runtime", "launch", 1, 1, 51, 5, .corr = 6},
        {'X', "kernel", "k4", 0, 7, 97, 5, .corr = 6, .external = 99},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_members(t, 1, (int64_t[]){0, 2, 1, -1});
    assert_int_equal(t->links.source[t->ev.link[event_n(t, 1)]], RP_LINK_EXTERNAL);
    assert_members(t, 5, (int64_t[]){4, 5, -1}); /* has a call: stays with it */
    assert_int_equal(t->ev.link[event_n(t, 3)], RP_NONE);
    assert_int_equal(t->links.n, 2); /* correlation 5 has nobody left */
    assert_int_equal(t->links.native_id[t->ev.link[event_n(t, 5)]], 6);
    assert_int_equal(t->links.native_id[t->ev.link[event_n(t, 1)]], 99);
    rp_trace_free(t);
}

/* Random correlations against looking at all pairs. */
static void test_random(void **state)
{
    struct random r = {3};
    int round;

    UNUSED_STATE(state);
    for (round = 0; round < 100; round++) {
        int64_t spread = round % 2 ? 1 : INT64_C(1) << 33; /* table and map */
        uint32_t n = 1 + random_below(&r, 60), i, j;
        struct rp_builder *b = build_rows(NULL, 0);
        struct rp_trace *t;

        for (i = 0; i < n; i++) {
            bool device = random_below(&r, 2);

            add_row(b, &(struct row){'X', device ? "kernel" : "cuda_runtime", "x", !device,
                                     random_below(&r, 3), random_below(&r, 30), 1,
                                     .corr = random_below(&r, 20) * spread});
        }
        t = finish_valid(b);
        for (i = 0; i < t->ev.n; i++)
            for (j = 0; j < t->ev.n; j++) {
                int64_t a = arg_of(t, i, "correlation"), c = arg_of(t, j, "correlation");

                assert_int_equal(a != NO_ARG && a == c,
                                 t->ev.link[i] != RP_NONE && t->ev.link[i] == t->ev.link[j]);
            }
        for (i = 0; i < t->links.n; i++)
            for (j = t->links.offset[i] + 1; j < t->links.offset[i + 1]; j++) {
                rp_event before = t->links.member[j - 1], e = t->links.member[j];

                assert_true(is_device(t, before) <= is_device(t, e));
                assert_true(is_device(t, before) != is_device(t, e) ||
                            t->ev.ts_ns[before] <= t->ev.ts_ns[e]);
            }
        rp_trace_free(t);
    }
}

int test_links(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_correlation),
        cmocka_unit_test(test_by_arrows),
        cmocka_unit_test(test_arrow_completes_a_correlation),
        cmocka_unit_test(test_by_external_id),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests_name("links", tests, NULL, NULL);
}
