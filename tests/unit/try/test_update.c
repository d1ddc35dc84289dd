/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of parameters, as the hook writes them, compared. */
#include "try/session.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *create(char *path)
{
    if (strstr(path, "XXXXXX"))
        return fdopen(mkstemp(path), "w");
    return fopen(path, "w");
}

/* The same values after two numbers of steps. */
static const char *write_update(char *path, const char *line, const float *values, size_t n)
{
    FILE *f = create(path);

    fprintf(f, "%s\n2 20\n", line);
    fwrite(values, sizeof *values, n, f);
    fwrite(values, sizeof *values, n, f);
    fclose(f);
    return path;
}

static void write_blocks(char *path, const char *steps, const float *values, size_t n)
{
    FILE *f = create(path);

    fprintf(f, "x\n%s\n", steps);
    fwrite(values, sizeof *values, n, f);
    fclose(f);
}

static struct rp_try_difference compare(const char *line_a, const float *a, const char *line_b,
                                        const float *b, size_t n)
{
    char one[] = "/tmp/reprise-unit-XXXXXX", two[] = "/tmp/reprise-unit-XXXXXX";
    struct rp_try_difference d = {0};
    struct rp_err err = RP_ERR_INIT;

    write_update(one, line_a, a, n);
    write_update(two, line_b, b, n);
    assert_ok(rp_try_compare(one, two, &d, &err), &err);
    unlink(one);
    unlink(two);
    return d;
}

static void updates_are_compared_by_their_size(void **state)
{
    const float a[] = {3, 4}, b[] = {3, 4}, zeroed[] = {3, 0}, bad[] = {3, NAN}, none[] = {0, 0};
    struct rp_try_difference d = compare("same", a, "same", b, 2);

    UNUSED_STATE(state);
    assert_true(d.exact && d.ratio[1] == 0);
    d = compare("x", a, "y", b, 2); /* parameters that are not in the sample differ */
    assert_true(!d.exact && d.ratio[1] == 0);
    d = compare("x", zeroed, "y", b, 2);
    assert_true(fabs(d.ratio[1] - 0.8) < 1e-9 && fabs(d.size[1] - 0.6) < 1e-9);
    d = compare("x", bad, "y", b, 2);
    assert_true(isnan(d.ratio[1]));
    d = compare("x", a, "y", none, 2);
    assert_true(d.ratio[1] == 1);
}

/* Each number of steps has its own difference. */
static void updates_are_compared_after_several_numbers_of_steps(void **state)
{
    char one[] = "/tmp/reprise-unit-XXXXXX", two[] = "/tmp/reprise-unit-XXXXXX";
    const float a[] = {1, 0, 3, 4}, b[] = {1, 0, 3, 0};
    struct rp_try_difference d;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    write_update(one, "x", a, 2); /* twice the same two values ... */
    write_update(two, "y", a, 2);
    assert_ok(rp_try_compare(one, two, &d, &err), &err);
    assert_int_equal(d.n, 2);
    assert_int_equal(d.steps[0], 2);
    assert_int_equal(d.steps[1], 20);
    assert_true(d.ratio[0] == 0 && d.ratio[1] == 0);
    unlink(one);
    unlink(two);
    write_blocks(one, "1 5", a, 4); /* ... and values that differ after the fifth step */
    write_blocks(two, "1 5", b, 4);
    assert_ok(rp_try_compare(two, one, &d, &err), &err);
    assert_true(d.ratio[0] == 0 && fabs(d.ratio[1] - 0.8) < 1e-9);
    unlink(two);
    write_blocks(two, "1 6", b, 4);
    assert_code(rp_try_compare(two, one, &d, &err), RP_FORMAT);
    unlink(two);
    write_blocks(two, "1 x", b, 4);
    assert_code(rp_try_compare(two, one, &d, &err), RP_FORMAT);
    assert_contains(err.text, "is not an update of parameters");
    unlink(one);
    unlink(two);
}

static void updates_of_other_models_are_not_compared(void **state)
{
    char one[] = "/tmp/reprise-unit-XXXXXX", two[] = "/tmp/reprise-unit-XXXXXX";
    const float values[] = {1, 2, 3};
    struct rp_try_difference d;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    write_update(one, "a", values, 3);
    write_update(two, "a", values, 2);
    assert_code(rp_try_compare(one, two, &d, &err), RP_FORMAT);
    assert_contains(err.text, "different numbers of parameters");
    unlink(one);
    unlink(two);
    assert_code(rp_try_compare(one, two, &d, &err), RP_IO);
}

/* The files of a job's processes: that of the first has no number. */
static void every_process_is_compared(void **state)
{
    static const float same[] = {3, 4}, other[] = {6, 8};
    char one[] = "/tmp/reprise-unit-XXXXXX", two[] = "/tmp/reprise-unit-XXXXXX", moved[32];
    char one_1[32], two_1[32], moved_1[32];
    struct rp_try_difference d;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    write_update(one, "x", same, 2);
    write_update(two, "x", same, 2);
    snprintf(one_1, sizeof one_1, "%s.1", one);
    snprintf(two_1, sizeof two_1, "%s.1", two);
    snprintf(moved, sizeof moved, "%s-to", one);
    snprintf(moved_1, sizeof moved_1, "%s-to.1", one);
    write_update(one_1, "y", other, 2);
    assert_int_equal(rp_try_compare(one, two, &d, &err), RP_FORMAT);
    assert_non_null(strstr(err.text, "different numbers of processes"));
    write_update(two_1, "x", same, 2);
    err = (struct rp_err)RP_ERR_INIT;
    assert_ok(rp_try_compare(one, two, &d, &err), &err);
    assert_true(!d.exact && d.ratio[1] == 1 && d.size[1] == 2);
    rp_try_move_update(one, moved);
    assert_ok(rp_try_compare(moved, two, &d, &err), &err);
    assert_true(d.ratio[1] == 1 && access(one_1, F_OK) && !access(moved_1, F_OK));
    unlink(moved);
    unlink(moved_1);
    unlink(two);
    unlink(two_1);
}

int test_update(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_process_is_compared),
        cmocka_unit_test(updates_are_compared_by_their_size),
        cmocka_unit_test(updates_are_compared_after_several_numbers_of_steps),
        cmocka_unit_test(updates_of_other_models_are_not_compared)};

    return cmocka_run_group_tests_name("update", tests, NULL, NULL);
}
