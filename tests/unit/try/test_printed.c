/* SPDX-License-Identifier: Apache-2.0 */
/* What two programs print, compared without times and without what differs from run to run. */
#include "try/against.h"
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

static char why[200];

static enum rp_try_printed compare(const char *first, const char *again, const char *other)
{
    const char *const texts[] = {first, again, other};
    char paths[3][40];

    for (int i = 0; i < 3; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/reprise_printed_XXXXXX");
        FILE *f = fdopen(mkstemp(paths[i]), "w");
        assert_non_null(f);
        fputs(texts[i], f);
        fclose(f);
    }
    why[0] = '\0';
    enum rp_try_printed out =
        rp_try_printed((const char *const[3]){paths[0], paths[1], paths[2]}, why, sizeof why);
    for (int i = 0; i < 3; i++)
        unlink(paths[i]);
    return out;
}

static void what_is_the_same(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(compare("loss 0.5\n", "loss 0.5\n", "loss 0.5 \n"), RP_TRY_PRINTED_SAME);
    assert_int_equal(compare("id 1a loss 0.5", "id 2b loss 0.5", "id 3c loss 0.5"),
                     RP_TRY_PRINTED_SAME);
    assert_int_equal(compare("a\nloss 0.5\n", "a\nloss 0.5\n", "a\nloss 0.6\n"),
                     RP_TRY_PRINTED_OTHER);
    assert_string_equal(why, "'loss 0.5' instead of 'loss 0.6'");
    assert_int_equal(compare("done\n", "done\n", ""), RP_TRY_PRINTED_OTHER);
    assert_string_equal(why, "'done' instead of ''");
    assert_int_equal(compare("a b", "a", "a"), RP_TRY_PRINTED_UNSTEADY);
    assert_int_equal(compare("", "", ""), RP_TRY_PRINTED_NOTHING);
    assert_int_equal(compare("1", "2", "3"), RP_TRY_PRINTED_NOTHING);
}

static void times_and_our_folders_do_not_count(void **state)
{
    static const char *const times[][2] = {
        {"took 4 s", "took 3 s"},
        {"took 4.1s", "took 3.9s"},
        {"at [00:04, 12.5 it/s]", "at [00:03, 14.5 it/s]"},
        {"at 12.5it/s", "at 14.5it/s"},
        {"a step: 4 ms", "a step: 3 ms"},
        {"saved in /tmp/reprise-try-aaaaaa/other0/x", "saved in /tmp/reprise-try-bbbbbb/0/x"}};
    static const char *const others[][2] = {{"4 steps", "3 steps"}, {"s 4", "s 3"}, {"4", "3"}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (compare(times[i][0], times[i][0], times[i][1]) != RP_TRY_PRINTED_SAME)
            fail_msg("'%s': %s", times[i][0], why);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (compare(others[i][0], others[i][0], others[i][1]) != RP_TRY_PRINTED_OTHER)
            fail_msg("'%s'", others[i][0]);
}

int test_printed(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_the_same),
                                       cmocka_unit_test(times_and_our_folders_do_not_count)};

    return cmocka_run_group_tests_name("try/printed", tests, NULL, NULL);
}
