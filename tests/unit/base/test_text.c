/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/text.h"

static void positions(void **state)
{
    static const char text[] = "one\ntwo\n\nfour";
    struct rp_text_pos pos;

    UNUSED_STATE(state);
    pos = rp_text_position(text, strlen(text), 5);
    assert_int_equal(pos.line, 2);
    assert_int_equal(pos.column, 2);
    assert_int_equal(pos.line_begin, 4);
    assert_int_equal(pos.line_end, 7);
    pos = rp_text_position(text, strlen(text), strlen(text));
    assert_int_equal(pos.line, 4);
    assert_int_equal(pos.column, 5);
    pos = rp_text_position("", 0, 9);
    assert_int_equal(pos.line, 1);
    assert_int_equal(pos.column, 1);
}

static void carets(void **state)
{
    static const char text[] = "HloModule m\n  ROOT %r = ad(%a)\n";
    struct rp_err err = RP_ERR_INIT;
    char wide[300];

    UNUSED_STATE(state);
    assert_code(rp_text_error(&err, RP_FORMAT, text, strlen(text), 24, "unknown opcode '%s'", "ad"),
                RP_FORMAT);
    assert_string_equal(err.text, "unknown opcode 'ad' at line 2, column 13\n"
                                  "    ROOT %r = ad(%a)\n"
                                  "              ^");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, 13);
    memset(wide, 'x', sizeof wide);
    wide[200] = '!';
    rp_text_error(&err, RP_FORMAT, wide, sizeof wide, 200, "here");
    assert_contains(err.text, "here at line 1, column 201\n  xxxx");
    assert_int_equal(strchr(strchr(err.text, '\n') + 1, '!') - (strchr(err.text, '\n') + 1),
                     strchr(err.text, '^') - (strrchr(err.text, '\n') + 1));
}

static void excerpts(void **state)
{
    char out[280];

    UNUSED_STATE(state);
    rp_text_excerpt(out, sizeof out, "{\"a\":\x01}", 7, 5);
    assert_string_equal(out, "{\"a\":>>>\\x01}");
    rp_text_excerpt(out, sizeof out, "", 0, 0);
    assert_string_equal(out, ">>>");
    rp_text_escape(out, 8, "aaaaaaaaaaaaaaaa", 16);
    assert_true(strlen(out) < 8);
}

static void distances(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_text_distance("info", "info"), 0);
    assert_int_equal(rp_text_distance("infp", "info"), 1);
    assert_int_equal(rp_text_distance("ifno", "info"), 1);
    assert_int_equal(rp_text_distance("", "info"), 4);
    assert_int_equal(rp_text_distance("kitten", "sitting"), 3);
}

int test_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),
        cmocka_unit_test(carets),
        cmocka_unit_test(excerpts),
        cmocka_unit_test(distances),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
