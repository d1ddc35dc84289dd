/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of gradients, as a recording notes them and as a trace in JSON has them. */
#include "facts/ranks/ddp_notes.h"
#include "trace/trace_fixtures.h"

static size_t count(const char *first, const char *second, int64_t *last)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_ddp_sizes sizes = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t;
    size_t n;

    assert_ok(rp_builder_add_meta(b, str_of(b, "gradients.0.0"), str_of(b, first), false, &err),
              &err);
    if (second)
        assert_ok(
            rp_builder_add_meta(b, str_of(b, "gradients.0.3"), str_of(b, second), false, &err),
            &err);
    t = finish_valid(b);
    assert_ok(rp_ddp_sizes_read(t, &sizes, &err), &err);
    n = sizes.list.n;
    *last = n ? sizes.list.at[n - 1] : 0;
    rp_vec_release(&sizes.list);
    rp_trace_free(t);
    return n;
}

static void sizes_of_a_recording_and_of_json(void **state)
{
    int64_t last;

    UNUSED_STATE(state);
    assert_int_equal(count("4096 65536 128", NULL, &last), 3);
    assert_int_equal(last, 128);
    assert_int_equal(count("\"4096 65536 128\"", NULL, &last), 3);
    assert_int_equal(last, 128);
    assert_int_equal(count("1 2 3", "4 5", &last), 5); /* long lists are several notes */
    assert_int_equal(last, 5);
    assert_int_equal(count("4096 99999999999999999999", NULL, &last), 0);
    assert_int_equal(count("", NULL, &last), 0);
    assert_int_equal(count("many", NULL, &last), 0);
}

/* A size of a terabyte is the largest that is believed; notes of two models are not told apart. */
static void sizes_that_mean_nothing(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_ddp_sizes sizes = {0};
    struct rp_trace *t;
    int64_t last;

    UNUSED_STATE(state);
    assert_int_equal(count("4096 1099511627776", NULL, &last), 2);
    assert_int_equal(last, INT64_C(1099511627776));
    assert_int_equal(count("4096 1099511627777 5", NULL, &last), 0);
    assert_code(rp_builder_add_meta(b, str_of(b, "gradients.0.0"), str_of(b, "1 2"), false, NULL),
                RP_OK);
    assert_code(rp_builder_add_meta(b, str_of(b, "gradients.1.0"), str_of(b, "3"), false, NULL),
                RP_OK);
    t = finish_valid(b);
    assert_code(rp_ddp_sizes_read(t, &sizes, NULL), RP_OK);
    assert_int_equal(sizes.list.n, 0);
    rp_trace_free(t);
}

/* Two processors for each rank are enough, one is half of them. */
static void ranks_may_be_crowded(void **state)
{
    static const struct {
        const char *processors, *ranks;
        double crowded;
    } rows[] = {{"4", "2", 0}, {"3", "2", 0.5}, {"2", "2", 1},    {"1", "2", 1},  {"16", "2", 0},
                {"0", "2", 0}, {"1", "1", 0},   {"7", "4", 0.25}, {NULL, "2", 0}, {"1", NULL, 0}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rp_builder *b = build_rows(NULL, 0);
        struct rp_trace *t;

        if (rows[i].processors)
            assert_code(rp_builder_add_meta(b, str_of(b, "host.processors"),
                                            str_of(b, rows[i].processors), false, NULL),
                        RP_OK);
        if (rows[i].ranks)
            assert_code(rp_builder_add_meta(b, str_of(b, "host.ranks"), str_of(b, rows[i].ranks),
                                            false, NULL),
                        RP_OK);
        t = finish_valid(b);
        assert_float_equal(rp_ddp_crowded(t), rows[i].crowded, 1e-12);
        rp_trace_free(t);
    }
}

int test_ddp_notes(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_of_a_recording_and_of_json),
                                       cmocka_unit_test(sizes_that_mean_nothing),
                                       cmocka_unit_test(ranks_may_be_crowded)};

    return cmocka_run_group_tests_name("ddp_notes", tests, NULL, NULL);
}
