/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/err.h"

#include <errno.h>

static void set_and_context(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_code(rp_err_set_at(&err, RP_FORMAT, 812, "unexpected '%c' at byte %d", '}', 812),
                RP_FORMAT);
    assert_int_equal(err.offset, 812);
    assert_code(rp_err_prefix(&err, RP_FORMAT, "'%s'", "x.json"), RP_FORMAT);
    assert_code(rp_err_context(&err, RP_FORMAT, "while loading rank %d", 3), RP_FORMAT);
    assert_string_equal(err.text, "'x.json': unexpected '}' at byte 812\n  while loading rank 3");
    rp_err_set(&err, RP_FORMAT, "'%s'", "a\nreprise: done\x1b[2J");
    rp_err_prefix(&err, RP_FORMAT, "b");
    assert_string_equal(err.text, "b: 'a\n  reprise: done\\x1b[2J'");
    assert_int_equal(err.len, strlen(err.text));
}

static void os_text(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_code(rp_err_set_os(&err, ENOENT, "cannot open '%s'", "x"), RP_IO);
    assert_string_equal(err.text, "cannot open 'x': No such file or directory");
    assert_int_equal(err.os_errno, ENOENT);
}

static void null_is_allowed(void **state)
{
    UNUSED_STATE(state);
    assert_code(rp_err_set(NULL, RP_LIMIT, "x"), RP_LIMIT);
    assert_code(rp_err_set_os(NULL, 1, "x"), RP_IO);
    assert_code(rp_err_set_at(NULL, RP_FORMAT, 1, "x"), RP_FORMAT);
    assert_code(rp_err_prefix(NULL, RP_FORMAT, "x"), RP_FORMAT);
    assert_code(rp_err_context(NULL, RP_FORMAT, "x"), RP_FORMAT);
    assert_code(rp_err_nomem(NULL, "x"), RP_NOMEM);
    rp_err_clear(NULL);
}

static void long_text_is_cut(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char text[3000];
    int i;

    UNUSED_STATE(state);
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rp_err_set(&err, RP_FORMAT, "first %s", text);
    for (i = 0; i < 5; i++) {
        rp_err_prefix(&err, RP_FORMAT, "%s", text);
        rp_err_context(&err, RP_FORMAT, "%s", text);
    }
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(err.len, sizeof err.text - 1);
}

static void codes_have_statuses(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_code_exit_status(RP_OK), 0);
    assert_int_equal(rp_code_exit_status(RP_USAGE), 2);
    assert_int_equal(rp_code_exit_status(RP_FORMAT), 3);
    assert_int_equal(rp_code_exit_status(RP_LIMIT), 3);
    assert_int_equal(rp_code_exit_status(RP_IO), 4);
    assert_int_equal(rp_code_exit_status(RP_BUG), 5);
    assert_int_equal(rp_code_exit_status((enum rp_code)999), 5);
    assert_string_equal(rp_code_name(RP_NOMEM), "NOMEM");
    assert_string_equal(rp_code_text(RP_NOMEM), "out of memory");
}

int test_err(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_and_context),     cmocka_unit_test(os_text),
        cmocka_unit_test(null_is_allowed),     cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(codes_have_statuses),
    };

    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
