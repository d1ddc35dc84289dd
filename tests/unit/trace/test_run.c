/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: numbers of ranks, duplicates, files without a number; digests. */
#include "trace/run.h"
#include "trace_fixtures.h"

static struct rp_trace *ranked(int32_t rank, int32_t world_size)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 50},
        {'X', "kernel", "k", 0, 7, 10, 20},
    };
    struct rp_builder *b = build_rows(rows, 2);

    rp_builder_borrow_trace(b)->rank = rank;
    rp_builder_borrow_trace(b)->world_size = world_size;
    return finish_valid(b);
}

/* Adds a rank; its trace goes, its digest stays. */
static void add_rank(struct rp_run *run, struct rp_trace *t, const char *name, size_t file)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_digest *digest;

    assert_ok(rp_digest_new(t, name, &digest, &err), &err);
    rp_trace_free(t);
    assert_ok(rp_run_add(run, &digest, file, &err), &err);
    assert_null(digest);
}

static void test_numbers(void **state)
{
    static const int32_t ranks[] = {3, RP_NO_RANK, 0, 3, RP_NO_RANK, 1};
    static const uint32_t files[] = {2, 5, 1, 0, 3, 4}; /* by number 0, 1, 2, 3, 4, 5 */
    enum { N = sizeof ranks / sizeof ranks[0] };
    struct rp_err err = RP_ERR_INIT;
    struct rp_run *run;
    int i;

    UNUSED_STATE(state);
    assert_ok(rp_run_new(&run, &err), &err);
    for (i = 0; i < N; i++) {
        char name[16];

        snprintf(name, sizeof name, "file%d", i);
        add_rank(run, ranked(ranks[i], 0), name, (size_t)i);
    }
    assert_ok(rp_run_settle(run, &err), &err);
    for (i = 0; i < N; i++) {
        assert_int_equal(run->ranks.at[i].number, i);
        assert_int_equal(run->ranks.at[i].file, files[i]);
    }
    assert_int_equal(run->world_size, N);
    rp_run_free(run);
    rp_run_free(NULL);
}

/* A file that states no number has it in its name; not where two claim it, or one states it. */
static void test_numbers_in_names(void **state)
{
    static const struct {
        int32_t stated;
        const char *name;
        int32_t number;
        bool named;
    } files[] = {
        {RP_NO_RANK, "run/Rank-7.json.gz", 7, true}, {5, "run/rank6.json", 5, false},
        {RP_NO_RANK, "a.tar!rank_5.json", 0, false}, {RP_NO_RANK, "rank9/x.json", 1, false},
        {RP_NO_RANK, "x/rank4.json", 2, false},      {RP_NO_RANK, "y/rank4.json", 3, false},
    };
    enum { N = sizeof files / sizeof files[0] };
    struct rp_err err = RP_ERR_INIT;
    struct rp_run *run;

    UNUSED_STATE(state);
    assert_ok(rp_run_new(&run, &err), &err);
    for (size_t i = 0; i < N; i++)
        add_rank(run, ranked(files[i].stated, 0), files[i].name, i);
    assert_ok(rp_run_settle(run, &err), &err);
    for (size_t i = 0; i < N; i++) {
        const struct rp_rank *rank = &run->ranks.at[i];

        assert_int_equal(rank->number, files[rank->file].number);
        assert_int_equal(rank->named, files[rank->file].named);
    }
    rp_run_free(run);
}

static void test_digest_outlives_its_trace(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    const struct rp_digest *d;
    struct rp_run *run;

    UNUSED_STATE(state);
    assert_ok(rp_run_new(&run, &err), &err);
    add_rank(run, ranked(2, 8), "a file", 0);
    assert_ok(rp_run_settle(run, &err), &err);
    d = run->ranks.at[0].digest;
    assert_string_equal(d->name, "a file");
    assert_int_equal(run->ranks.at[0].number, 2);
    assert_int_equal(run->world_size, 8);
    assert_int_equal(d->nsteps, 1);
    assert_string_equal(d->steps[0].name, "ProfilerStep#1");
    assert_int_equal(d->totals.gpu_busy_ns, 20);
    assert_int_equal(d->health.gpu_events, 1);
    rp_run_free(run);
}

/* Processes without a rank that run nothing of the job's work are not ranks beside others. */
static void test_launcher_is_no_rank(void **state)
{
    static const struct row waits[] = {{'X', "blocking", "poll", 1, 1, 0, 50}};
    static const struct row steps[] = {{'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 50}};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (int i = 0; i < 3; i++) { /* a launcher; one that works; a launcher alone */
        struct rp_builder *b = build_rows(i == 1 ? steps : waits, 1);
        struct rp_trace *t = rp_builder_borrow_trace(b);
        struct rp_run *run;

        t->rank = RP_NO_RANK;
        t->framework = str_of(b, "reprise");
        t->format = str_of(b, "ctf");
        t = finish_valid(b);
        assert_int_equal(rp_trace_is_launcher(t), i != 1);
        assert_ok(rp_run_new(&run, &err), &err);
        add_rank(run, t, "run/host", 0);
        if (i < 2)
            add_rank(run, ranked(0, 1), "run/rank0.host", 1);
        assert_ok(rp_run_settle(run, &err), &err);
        assert_int_equal(run->ranks.n, i == 1 ? 2 : 1);
        assert_int_equal(run->ranks.at[0].file, i == 2 ? 0 : 1);
        rp_run_free(run);
    }
}

int test_run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_in_names),
        cmocka_unit_test(test_digest_outlives_its_trace),
        cmocka_unit_test(test_launcher_is_no_rank),
    };

    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
