/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations that count, and one argument of many events. */
#include "facts/arg_keys.h"
#include "facts/times/name_series.h"
#include "trace/trace_fixtures.h"

static void annotations_that_count_are_a_series(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "step 8", 1, 1, 0, 5},
        {'X', "user_annotation", "step 9", 1, 1, 10, 5},
        {'X', "user_annotation", "step 10", 1, 1, 20, 5},
        {'X', "user_annotation", "layer 0", 1, 1, 30, 1}, /* layer 1 comes again */
        {'X', "user_annotation", "layer 1", 1, 1, 32, 1},
        {'X', "user_annotation", "layer 2", 1, 1, 34, 1},
        {'X', "user_annotation", "layer 1", 1, 1, 36, 1},
        {'X', "user_annotation", "pair 0", 1, 1, 40, 1}, /* two are not enough */
        {'X', "user_annotation", "pair 1", 1, 1, 42, 1},
        {'X', "user_annotation", "10", 1, 1, 50, 1}, /* nothing but the number */
        {'X', "user_annotation", "11", 1, 1, 52, 1},
        {'X', "user_annotation", "12", 1, 1, 54, 1},
        {'X', "user_annotation", "step", 1, 1, 56, 1},
        {'X', "cpu_op", "op 0", 1, 1, 60, 1}, /* operators do not count */
        {'X', "cpu_op", "op 1", 1, 1, 62, 1},
        {'X', "cpu_op", "op 2", 1, 1, 64, 1},
    };
    static const char *const none[] = {"layer 0", "layer 1", "layer 2", "pair 0", "pair 1", "10",
                                       "12",      "step",    "op 0",    "op 2",   "n"};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_name_series s;

    UNUSED_STATE(state);
    assert_code(rp_name_series_init(&s, t, NULL), RP_OK);
    assert_string_equal(rp_name_series_of(&s, find_str(t, "step 8")), "step *");
    assert_string_equal(rp_name_series_of(&s, find_str(t, "step 9")), "step *");
    assert_string_equal(rp_name_series_of(&s, find_str(t, "step 10")), "step *");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (rp_name_series_of(&s, find_str(t, none[i])))
            fail_msg("'%s' is of a series", none[i]);
    rp_name_series_release(&s);
    rp_trace_free(t);
}

/* A name of 240 bytes counts, one more does not. */
static void long_names_do_not_count(void **state)
{
    char names[6][250];
    struct row rows[6];
    struct rp_name_series s;
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < 6; i++) {
        int n = i < 3 ? 239 : 240;

        memset(names[i], 'a' + i / 3, sizeof names[i]);
        snprintf(names[i] + n, sizeof names[i] - (size_t)n, "%d", i % 3);
        rows[i] = (struct row){'X', "user_annotation", names[i], 1, 1, 10 * i, 5};
    }
    t = TRACE_OF(rows);
    assert_code(rp_name_series_init(&s, t, NULL), RP_OK);
    assert_int_equal(strlen(rp_name_series_of(&s, find_str(t, names[1]))), 240);
    assert_null(rp_name_series_of(&s, find_str(t, names[4])));
    rp_name_series_release(&s);
    rp_trace_free(t);
}

static void an_argument_is_of_one_type(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "number", 1, 1, 0, 5, 0, 0, 0, "size", -7},
        {'X', "cpu_op", "text", 1, 1, 10, 5, 0, 0, 0, NULL, 0, 0, "size", "large"},
        {'X', "cpu_op", "none", 1, 1, 20, 5},
        {'X', "cpu_op", "dims", 1, 1, 30, 5, 0, 0, 0, NULL, 0, 0, "Input dims", "[[2, 3]]"},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arg_key size, other, dims;
    struct rp_arg arg;
    int64_t number = 1;
    rp_str text = 1;

    UNUSED_STATE(state);
    assert_code(rp_arg_key_init(&size, t, "size", NULL), RP_OK);
    assert_true(rp_arg_key_int(&size, event_n(t, 0), &number));
    assert_int_equal(number, -7);
    assert_false(rp_arg_key_text(&size, event_n(t, 0), &text));
    assert_true(rp_arg_key_text(&size, event_n(t, 1), &text));
    assert_string_equal(rp_trace_str(t, text), "large");
    assert_false(rp_arg_key_int(&size, event_n(t, 1), &number));
    assert_false(rp_arg_key_find(&size, event_n(t, 2), &arg));
    assert_true(rp_arg_key_find(&size, event_n(t, 0), &arg));
    assert_int_equal(arg.type, RP_ARG_I64);
    assert_int_equal(arg.key, size.key);
    assert_code(rp_arg_key_init(&other, t, "siz", NULL), RP_OK);
    assert_false(rp_arg_key_find(&other, event_n(t, 0), &arg));
    assert_code(rp_arg_key_init_dims(&dims, t, NULL), RP_OK);
    assert_true(rp_arg_key_text(&dims, event_n(t, 3), &text));
    assert_string_equal(rp_trace_str(t, text), "[[2, 3]]");
    rp_arg_key_release(&size);
    rp_arg_key_release(&other);
    rp_arg_key_release(&dims);
    rp_trace_free(t);
}

/* Events beyond the number of different shapes keep their arguments in lists. */
static void arguments_of_many_shapes(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_arg_key size, last;
    struct rp_trace *t;
    int64_t number;
    char key[16];

    UNUSED_STATE(state);
    for (int i = 0; i < RP_SHAPE_MAX + 3; i++) {
        const struct row row = {
            'X',  "cpu_op", "op", 1, 1, 10 * i, 5,    0,
            0,    0,        key,  i, 0, NULL,   NULL, i >= RP_SHAPE_MAX ? "size" : NULL,
            7 * i};

        snprintf(key, sizeof key, "k%d", i);
        add_row(b, &row);
    }
    t = finish_valid(b);
    assert_code(rp_arg_key_init(&size, t, "size", NULL), RP_OK);
    assert_code(rp_arg_key_init(&last, t, key, NULL), RP_OK);
    for (int i = 0; i < RP_SHAPE_MAX + 3; i++) {
        rp_event e = (rp_event)i;

        assert_int_equal(rp_arg_key_int(&size, e, &number), i >= RP_SHAPE_MAX);
        if (i >= RP_SHAPE_MAX)
            assert_int_equal(number, 7 * i);
        assert_int_equal(rp_arg_key_int(&last, e, &number), i == RP_SHAPE_MAX + 2);
    }
    rp_arg_key_release(&size);
    rp_arg_key_release(&last);
    rp_trace_free(t);
}

int test_name_series(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arguments_of_many_shapes),
                                       cmocka_unit_test(annotations_that_count_are_a_series),
                                       cmocka_unit_test(long_names_do_not_count),
                                       cmocka_unit_test(an_argument_is_of_one_type)};

    return cmocka_run_group_tests_name("name_series", tests, NULL, NULL);
}
