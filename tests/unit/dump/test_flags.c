/* SPDX-License-Identifier: Apache-2.0 */
/* The table of flags, and the list of words of `dump`. */
#include "unit.h"

#include "dump/table.h"
#include "dump/words.h"

#include <string.h>

static const struct rp_flag *flag_of(const char *name)
{
    const struct rp_flag *flag = rp_flag_find(name, strlen(name));

    assert_non_null(flag);
    return flag;
}

static void words_are_the_values_of_the_option(void **state)
{
    static const char *const words[] = {
#define WORD_NAME(word) #word,
        RP_DUMP_WORDS(WORD_NAME)
#undef WORD_NAME
    };
    char all[256] = "";

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        strcat(all, i ? "|" : "");
        strcat(all, words[i]);
    }
    assert_string_equal(all, RP_DUMP_WORD_LIST);
}

static void every_flag_is_there_once_and_explained(void **state)
{
    size_t n;
    const struct rp_flag *flags = rp_flags(&n);

    UNUSED_STATE(state);
    assert_true(n > 400);
    for (size_t i = 0; i < n; i++) {
        bool anywhere = flags[i].kind != RP_FLAG_XLA;

        assert_ptr_equal(rp_flag_find(flags[i].name, strlen(flags[i].name)), &flags[i]);
        assert_true(flags[i].meaning && *flags[i].meaning);
        for (size_t r = 0; r < RP_XLA_RELEASES; r++)
            anywhere |= flags[i].in[r];
        if (!anywhere || flags[i].type == RP_FLAG_TEXT || !flags[i].fallback)
            assert_true(anywhere);
        else if (!rp_flag_takes(&flags[i], flags[i].fallback, strlen(flags[i].fallback)))
            fail_msg("default '%s' of '%s'", flags[i].fallback, flags[i].name);
        /* what is gone says so, and the reverse */
        if (flags[i].kind == RP_FLAG_XLA && !flags[i].in[RP_XLA_RELEASES - 1] &&
            !strstr(flags[i].name, "experimental") && !strstr(flags[i].name, "unsupported"))
            assert_non_null(strstr(flags[i].caution, "removed"));
        else if (flags[i].kind == RP_FLAG_XLA && flags[i].in[RP_XLA_RELEASES - 1])
            assert_true(!flags[i].caution || strncmp(flags[i].caution, "removed", 7) != 0);
    }
}

static void releases_are_numbers(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < RP_XLA_RELEASES; i++)
        assert_int_equal(rp_release_number(rp_xla_releases[i].name), rp_xla_releases[i].version);
    assert_int_equal(rp_release_number("2.21.0"), 2021000);
    assert_int_equal(rp_release_number("0.9.0.1"), 9000);
    assert_int_equal(rp_release_number("0.7.0.dev20250701"), 7000);
    assert_int_equal(rp_release_number(""), 0);
    assert_int_equal(rp_release_number("99999.1"), 999001000);
}

/* xla_gpu_graph_level is in 0.4.30 and 0.6.2; xla_dump_emitter_re is in 0.10.2 only. */
static void a_release_between_two_is_unsure_where_they_differ(void **state)
{
    const struct rp_flag *old = flag_of("xla_gpu_graph_level");
    const struct rp_flag *fresh = flag_of("xla_dump_emitter_re");
    const struct rp_flag *always = flag_of("xla_dump_to");

    UNUSED_STATE(state);
    assert_int_equal(rp_flag_known_to(old, 4030), RP_FLAG_KNOWN);
    assert_int_equal(rp_flag_known_to(old, 5000), RP_FLAG_KNOWN);
    assert_int_equal(rp_flag_known_to(old, 7000), RP_FLAG_UNSURE);
    assert_int_equal(rp_flag_known_to(old, 8001), RP_FLAG_UNKNOWN);
    assert_int_equal(rp_flag_known_to(old, 11002), RP_FLAG_UNKNOWN);
    assert_int_equal(rp_flag_known_to(fresh, 8001), RP_FLAG_UNKNOWN);
    assert_int_equal(rp_flag_known_to(fresh, 9000), RP_FLAG_UNSURE);
    assert_int_equal(rp_flag_known_to(fresh, 10002), RP_FLAG_KNOWN);
    assert_int_equal(rp_flag_known_to(fresh, 11002), RP_FLAG_UNSURE);
    assert_int_equal(rp_flag_known_to(fresh, 0), RP_FLAG_UNSURE);
    assert_int_equal(rp_flag_known_to(always, 0), RP_FLAG_KNOWN);
    assert_int_equal(rp_flag_known_to(always, 4013), RP_FLAG_UNSURE);
    assert_int_equal(rp_flag_known_to(flag_of("xla_reduce_precision"), 4030), RP_FLAG_UNKNOWN);
    assert_int_equal(rp_flag_known_to(flag_of("JAX_DUMP_IR_TO"), 10002), RP_FLAG_UNKNOWN);
}

static void values_are_checked_by_type(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_flag_takes(flag_of("xla_dump_hlo_as_text"), "True", 4));
    assert_true(rp_flag_takes(flag_of("xla_dump_hlo_as_text"), "0", 1));
    assert_false(rp_flag_takes(flag_of("xla_dump_hlo_as_text"), "yes", 3));
    assert_false(rp_flag_takes(flag_of("xla_dump_hlo_as_text"), "", 0));
    assert_true(rp_flag_takes(flag_of("xla_dump_max_hlo_modules"), "-1", 2));
    assert_false(rp_flag_takes(flag_of("xla_dump_max_hlo_modules"), "1x", 2));
    assert_true(rp_flag_takes(flag_of("xla_dump_to"), "", 0));
}

static void the_nearest_name_is_offered(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(rp_flag_nearest(RP_FLAG_XLA, "xla_cpu_fastmath"),
                        "xla_cpu_enable_fast_math");
    assert_string_equal(rp_flag_nearest(RP_FLAG_XLA, "xla_dump_as_hlo_text"),
                        "xla_dump_hlo_as_text");
    assert_string_equal(rp_flag_nearest(RP_FLAG_TF, "tf_xla_cluster_debug"),
                        "tf_xla_clustering_debug");
    assert_string_equal(rp_flag_nearest(RP_FLAG_XLA, "help"), "");
    assert_string_equal(rp_flag_nearest(RP_FLAG_XLA, ""), "");
}

int test_flags(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_the_values_of_the_option),
        cmocka_unit_test(every_flag_is_there_once_and_explained),
        cmocka_unit_test(releases_are_numbers),
        cmocka_unit_test(a_release_between_two_is_unsure_where_they_differ),
        cmocka_unit_test(values_are_checked_by_type),
        cmocka_unit_test(the_nearest_name_is_offered),
    };

    return cmocka_run_group_tests_name("dump flags", tests, NULL, NULL);
}
