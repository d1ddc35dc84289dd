/* SPDX-License-Identifier: Apache-2.0 */
/* Traces whose clock was set back while they were recorded, and others that only look like it. */
#include "trace/unfold.h"

#include "trace/meta.h"
#include "trace_fixtures.h"

enum { ROUNDS = 40, ROUND_NS = 100000, MOST_ROWS = 8 * ROUNDS };

struct run {
    struct row rows[MOST_ROWS];
    size_t n;
    int64_t at_ns, by_ns; /* its clock is set */
};

static int64_t shown_ns(const struct run *r, int64_t ns)
{
    return ns >= r->at_ns ? ns + r->by_ns : ns;
}

/* A call, its operator without an id, and a kernel 30 us later. */
static void add_round(struct run *r, int64_t ns, int64_t id)
{
    struct row op = {'X', "cpu_op", "aten::mm", 1, 1, shown_ns(r, ns), 9000};
    struct row call = {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, shown_ns(r, ns + 2000), 3000,
                       id};
    struct row work = {'X', "kernel", "gemm", 0, 7, shown_ns(r, ns + 30000), 50000, id, 7};

    r->rows[r->n++] = op;
    r->rows[r->n++] = call;
    r->rows[r->n++] = work;
}

static struct run run_of(int64_t at_ns, int64_t by_ns)
{
    struct run r = {.at_ns = at_ns, .by_ns = by_ns};

    for (int64_t i = 0; i < ROUNDS; i++)
        add_round(&r, 1000000 + i * ROUND_NS, i + 1);
    return r;
}

/* Whether each event begins where it did, and the trace is said to be moved by that much. */
static void assert_unfolded(struct run *r, int64_t moved_ns)
{
    struct rp_trace *t = trace_of(r->rows, r->n), *before = t;
    const int64_t in_round[] = {0, 2000, 30000};
    struct rp_err err = RP_ERR_INIT;
    char text[32];

    assert_ok(rp_trace_unfold(&t, NULL, &err), &err);
    assert_ok(rp_trace_validate(t, &err), &err);
    if (!moved_ns) {
        assert_ptr_equal(t, before);
    } else {
        snprintf(text, sizeof text, "%lld", (long long)moved_ns);
        assert_string_equal(rp_trace_meta(t, RP_SET_BACK_KEY), text);
        assert_int_equal(t->nwarnings, 1);
        for (rp_event e = 0; e < t->ev.n; e++) {
            int64_t n = arg_of(t, e, "n"), begin = 1000000 + n / 3 * ROUND_NS + in_round[n % 3];

            assert_int_equal(t->ev.ts_ns[e], begin);
        }
    }
    rp_trace_free(t);
}

static void test_set_back(void **state)
{
    struct run r = run_of(1000000 + 20 * ROUND_NS - 5000, -1000000);

    (void)state;
    assert_unfolded(&r, 1000000);
}

/* The second time after what was unfolded first. */
static void test_set_back_twice(void **state)
{
    struct run r = {.at_ns = INT64_MAX};

    (void)state;
    for (int64_t i = 0; i < ROUNDS; i++) {
        r.at_ns = i < 14 ? INT64_MAX : 0;
        r.by_ns = i < 28 ? -600000 : -1400000;
        add_round(&r, 1000000 + i * ROUND_NS, i + 1);
    }
    assert_unfolded(&r, 1400000);
}

static void test_nothing_to_unfold(void **state)
{
    struct run steady = run_of(INT64_MAX, 0), forward = run_of(3000000, 1000000);

    (void)state;
    assert_unfolded(&steady, 0);
    assert_unfolded(&forward, 0);
}

/* Ids of kernels in another order than their calls, as programs number them that write traces of
   their own; and the same ids again. */
static void test_other_ids(void **state)
{
    struct run r = {.at_ns = INT64_MAX}, again = {.at_ns = INT64_MAX};
    struct rp_trace *t, *before;

    (void)state;
    for (int64_t i = 0; i < ROUNDS; i++) {
        struct row work = {
            'X', "kernel", "gemm", 0, 7, 1030000 + i * ROUND_NS, 50000, i % 2 ? i + 1 : 1000 + i,
            7};

        r.rows[r.n++] = work;
        add_round(&again, 1000000 + i * ROUND_NS, i % 5 + 1);
    }
    before = t = trace_of(r.rows, r.n);
    assert_code(rp_trace_unfold(&t, NULL, NULL), RP_OK);
    assert_ptr_equal(t, before);
    rp_trace_free(t);
    assert_unfolded(&again, 0);
}

int test_unfold(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_back),
        cmocka_unit_test(test_set_back_twice),
        cmocka_unit_test(test_nothing_to_unfold),
        cmocka_unit_test(test_other_ids),
    };

    return cmocka_run_group_tests_name("unfold", tests, NULL, NULL);
}
