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

int test_ddp_notes(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_of_a_recording_and_of_json)};

    return cmocka_run_group_tests_name("ddp_notes", tests, NULL, NULL);
}
