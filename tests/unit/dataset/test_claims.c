/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a folder are the ranks of a run; lists of ranks. */
#include "dataset/claims.h"
#include "dataset/selection.h"
#include "unit.h"

struct given {
    const char *name;
    int32_t rank;
    int64_t base_ns, begin_ns, end_ns; /* base 0: not recorded */
    uint32_t nevents;
    bool cut;
    enum rp_verdict verdict;
    size_t instead;
};

#define DAY INT64_C(86400000000000)

static void check_claims(const struct given *files, size_t n, bool keep_cut)
{
    struct rp_digest digests[8];
    struct rp_claim claims[8];
    struct rp_err err = RP_ERR_INIT;

    memset(digests, 0, sizeof digests);
    memset(claims, 0, sizeof claims);
    for (size_t i = 0; i < n; i++) {
        digests[i].name = files[i].name;
        digests[i].framework = "";
        digests[i].rank = files[i].rank;
        digests[i].world_size = 4;
        digests[i].has_base = files[i].base_ns != 0;
        digests[i].base_ns = files[i].base_ns;
        digests[i].totals.span_begin_ns = files[i].begin_ns;
        digests[i].totals.span_end_ns = files[i].end_ns;
        digests[i].nevents = files[i].nevents;
        digests[i].health.truncated = files[i].cut;
        claims[i].digest = &digests[i];
    }
    assert_ok(rp_claims_settle(claims, n, keep_cut, &err), &err);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(claims[i].verdict, files[i].verdict);
        if (claims[i].verdict == RP_VERDICT_COPY || claims[i].verdict == RP_VERDICT_CLASH)
            assert_int_equal(claims[i].instead, files[i].instead);
    }
}

/* The shorter name is the original, and a cut copy is none, wherever it begins. */
static void copies_are_no_ranks(void **state)
{
    static const struct given files[] = {
        {"copy_of_rank1.json", 1, DAY, 10, 90, 100, false, RP_VERDICT_COPY, 2},
        {"rank0.json", 0, DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank1.json", 1, DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank1_cut.json", 1, DAY, 20, 80, 60, true, RP_VERDICT_COPY, 2},
    };
    /* numbers in names are different, whatever is in the files */
    static const struct given alike[] = {
        {"rank0.json", -1, 0, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank1.json", -1, 0, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"a.json", -1, 0, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"ab.json", -1, 0, 10, 90, 100, false, RP_VERDICT_COPY, 2},
    };
    /* sums of a profiler that keeps no times */
    static const struct given sums[] = {
        {"cuda.json", -1, 0, 0, 0, 0, false, RP_VERDICT_RANK, 0},
        {"triton.json", -1, 0, 0, 0, 0, false, RP_VERDICT_RANK, 0},
    };

    UNUSED_STATE(state);
    check_claims(files, 4, false);
    check_claims(alike, 4, false);
    check_claims(sums, 2, false);
}

/* Of two files with one number the one that was recorded with the others is the rank. */
static void another_run_is_left_out(void **state)
{
    static const struct given files[] = {
        {"old/rank1.json", 1, DAY, 10, 90, 500, false, RP_VERDICT_CLASH, 2},
        {"rank0.json", 0, 9 * DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank1.json", 1, 9 * DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank5.json", 1, 0, 0, 0, 0, false, RP_VERDICT_CLASH, 0},
    };
    /* all of one number: no run, and nothing to choose */
    static const struct given singles[] = {
        {"a.json", 0, DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"b.json", 0, 9 * DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
    };
    /* every rank twice, in two recordings: those of the first file stay together */
    static const struct given twice[] = {
        {"rank0.1.json", 0, DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank0.2.json", 0, 9 * DAY, 10, 90, 300, false, RP_VERDICT_CLASH, 0},
        {"rank1.1.json", 1, DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank1.2.json", 1, 9 * DAY, 10, 90, 300, false, RP_VERDICT_CLASH, 2},
    };

    UNUSED_STATE(state);
    check_claims(files, 3, false);
    check_claims(singles, 2, false);
    check_claims(twice, 4, false);
}

static void empty_and_cut_traces_are_set_aside(void **state)
{
    static const struct given empty[] = {
        {"rank0.json", 0, DAY, 10, 90, 100, false, RP_VERDICT_RANK, 0},
        {"rank1.json", 1, 0, 0, 0, 0, false, RP_VERDICT_EMPTY, 0},
        {"rank9.json", 0, 0, 0, 0, 0, false, RP_VERDICT_CLASH, 0},
    };
    static const struct given cut[] = {
        {"rank0.json", 0, DAY, 10, 90, 1000, false, RP_VERDICT_RANK, 0},
        {"rank1.json", 1, DAY, 10, 90, 600, true, RP_VERDICT_CUT, 0},
        {"rank2.json", 2, DAY, 10, 90, 995, true, RP_VERDICT_RANK, 0}, /* its last bytes */
        {"rank3.json", 3, DAY, 10, 90, 1000, false, RP_VERDICT_RANK, 0},
        {"rank4.json", 4, DAY, 10, 90, 980, true, RP_VERDICT_RANK, 0},
        {"rank5.json", 5, DAY, 10, 90, 979, true, RP_VERDICT_CUT, 0},
    };
    static const struct given all_cut[] = {
        {"rank0.json", 0, DAY, 10, 90, 1000, true, RP_VERDICT_RANK, 0},
        {"rank1.json", 1, DAY, 10, 90, 600, true, RP_VERDICT_RANK, 0},
    };
    static const struct given kept[] = {
        {"rank0.json", 0, DAY, 10, 90, 1000, false, RP_VERDICT_RANK, 0},
        {"rank1.json", 1, DAY, 10, 90, 600, true, RP_VERDICT_RANK, 0},
    };

    UNUSED_STATE(state);
    check_claims(empty, 3, false);
    check_claims(cut, 6, false);
    check_claims(all_cut, 2, false);
    check_claims(kept, 2, true);
}

static void lists_of_ranks(void **state)
{
    static const char *const wrong[] = {"x", "1,", "1-", "-1", "1,,2", "1 2"};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_ranks_check(NULL, &err), &err);
    assert_ok(rp_ranks_check("0,3,8-15", &err), &err);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_code(rp_ranks_check(wrong[i], &err), RP_USAGE);
    assert_true(rp_rank_wanted("0,3,8-15", 3));
    assert_true(rp_rank_wanted("0,3,8-15", 15));
    assert_false(rp_rank_wanted("0,3,8-15", 7));
    assert_false(rp_rank_wanted("0,3,8-15", 16));
}

int test_claims(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_no_ranks), cmocka_unit_test(another_run_is_left_out),
        cmocka_unit_test(empty_and_cut_traces_are_set_aside), cmocka_unit_test(lists_of_ranks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
