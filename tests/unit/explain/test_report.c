/* SPDX-License-Identifier: Apache-2.0 */
/* The report of ranks that meet in collectives: who sets the pace, and what it costs. */
#include "explain/report/chain.h"
#include "trace/trace_fixtures.h"

#define MS 1000000

/* A rank that computes for `work` ms, then meets the others in a collective that ends at 40 ms, and
   ends at 60. */
static struct rp_trace *rank_of(int64_t work)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 60 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10000, 4000, 7},
        {'X', "kernel", "gemm", 0, 7, 10000, work * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 15000 + work * MS, (40 - work) * MS, 6,
         20},
        {'X', "kernel", "gemm", 0, 7, 15000 + 40 * MS, 20 * MS, 7, 7},
    };

    return TRACE_OF(rows);
}

struct fixture {
    struct rp_arena arena;
    struct rp_trace *traces[3];
    struct rp_report_part parts[3];
    struct rp_report_input in[3];
};

static void set_up(struct fixture *f, const int64_t *work)
{
    int r;

    *f = (struct fixture){0};
    for (r = 0; r < 3; r++) {
        f->traces[r] = rank_of(work[r]);
        assert_code(rp_report_rank(f->traces[r], NULL, &f->arena, &f->parts[r], NULL), RP_OK);
        f->in[r] = (struct rp_report_input){&f->parts[r], "a.json", r};
    }
}

static void tear_down(struct fixture *f)
{
    int r;

    for (r = 0; r < 3 && f->traces[r]; r++) {
        rp_report_part_release(&f->parts[r]);
        rp_trace_free(f->traces[r]);
    }
    rp_arena_release(&f->arena);
}

static void the_last_rank_sets_the_pace(void **state)
{
    const int64_t work[] = {10, 30, 12};
    struct rp_chain chain;
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, work);
    assert_code(rp_chain_make(f.in, 3, &f.arena, &chain, NULL), RP_OK);
    assert_int_equal(chain.ncollectives, 1);
    assert_int_equal(chain.margin_ns, 18 * MS);
    assert_int_equal(chain.ranks[1].last_count, 1);
    assert_int_equal(chain.ranks[0].wait_ns, 20 * MS);
    assert_int_equal(chain.ranks[0].transfer_ns, 10 * MS);
    assert_int_equal(chain.ranks[0].exposed_wait_ns, 20 * MS);
    assert_int_equal(chain.transfer_ns, 10 * MS);
    tear_down(&f);
}

static void findings_are_ranked_and_parts_add_up(void **state)
{
    const int64_t work[] = {10, 30, 12};
    struct rp_report_root root;
    int64_t sum = 0, windows = 0;
    struct fixture f;
    size_t i;

    UNUSED_STATE(state);
    set_up(&f, work);
    assert_code(rp_report_join(f.in, 3, 3, &f.arena, &root, NULL), RP_OK);
    assert_int_equal(root.nranks, 3);
    assert_int_equal(root.ranks[1].compute_ns, 50 * MS);
    assert_int_equal(root.ranks[1].exposed_comm_ns, 10 * MS);
    assert_int_equal(root.nsteps, 3);
    for (i = 0; i < root.nparts; i++)
        sum += root.parts[i].total_ns;
    for (i = 0; i < root.nranks; i++)
        windows += root.ranks[i].window_ns;
    assert_int_equal(sum, windows);
    assert_true(root.nfindings >= 2);
    assert_string_equal(root.findings[0].id, "straggler");
    assert_int_equal(root.findings[0].lost_ns, 18 * MS);
    assert_contains(root.findings[0].evidence[0], "rank 1 came last 1 of 1 times");
    assert_string_equal(root.findings[1].id, "exposed-comm");
    tear_down(&f);
}

static void clocks_that_differ_are_noticed(void **state)
{
    const int64_t work[] = {10, 30, 12};
    struct rp_chain chain;
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, work);
    f.parts[1].collectives.base_ns = 900 * (int64_t)MS;
    assert_code(rp_chain_make(f.in, 3, &f.arena, &chain, NULL), RP_OK);
    assert_true(chain.clocks_differ);
    assert_int_equal(chain.ncollectives, 0);
    tear_down(&f);
}

static void a_host_only_trace_gets_a_report(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "a", 1, 1, 0, 10},
        {'X', "cpu_op", "b", 1, 2, 5, 10},
        {'X', "cpu_op", "c", 1, 1, 30, 10},
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_report_part part;
    struct rp_report_input in = {&part, "a.json", 0};
    struct rp_report_root root;

    UNUSED_STATE(state);
    assert_code(rp_report_rank(t, NULL, &arena, &part, NULL), RP_OK);
    assert_code(rp_report_join(&in, 1, 1, &arena, &root, NULL), RP_OK);
    assert_false(part.on_device);
    assert_int_equal(root.ranks[0].window_ns, 40);
    assert_int_equal(root.ranks[0].busy_ns, 25);
    assert_int_equal(root.ranks[0].idle_ns, 15);
    assert_contains(root.run_text, "host only");
    rp_report_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* Joins ranks made of rows; the parts and traces stay until the arena goes. */
static void join_rows(const struct row *const *rows, const size_t *n, size_t nranks,
                      struct fixture *f, struct rp_report_root *root)
{
    size_t r;

    *f = (struct fixture){0};
    for (r = 0; r < nranks; r++) {
        f->traces[r] = trace_of(rows[r], n[r]);
        assert_code(rp_report_rank(f->traces[r], NULL, &f->arena, &f->parts[r], NULL), RP_OK);
        f->in[r] = (struct rp_report_input){&f->parts[r], "a.json", (int32_t)r};
    }
    assert_code(rp_report_join(f->in, nranks, (int32_t)nranks, &f->arena, root, NULL), RP_OK);
}

/* Rank 0 computes beside a collective for 20 ms, but the other one comes after 18 of them. */
static void an_overlap_may_be_a_wait(void **state)
{
    static const struct row early[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "kernel", "gemm", 0, 7, MS, 25 * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 2 * MS, 20 * MS, 6, 20}};
    static const struct row late[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "kernel", "gemm", 0, 7, MS, 19 * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 20 * MS, 2 * MS, 6, 20}};
    const struct row *const rows[] = {early, late};
    const size_t n[] = {4, 4};
    struct rp_report_root root;
    struct fixture f;

    UNUSED_STATE(state);
    join_rows(rows, n, 2, &f, &root);
    assert_int_equal(root.npitfalls, 1);
    assert_contains(root.pitfalls[0], "rank 0: 18.0 ms of the 20.0 ms of communication beside "
                                      "compute is waiting for other ranks, not transfer");
    assert_contains(root.pace_text, "1 collectives tie the ranks together, 20.0 ms from the first");
    tear_down(&f);
}

/* Collectives of gloo run on threads; matched by name, the waits count once. */
static void collectives_of_the_host_are_matched(void **state)
{
    static const struct row early[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 10 * MS},
        {'X', "user_annotation", "gloo:all_reduce", 1, 2, 10 * MS, 12 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 22 * MS, 5 * MS}};
    static const struct row late[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 20 * MS},
        {'X', "user_annotation", "gloo:all_reduce", 1, 2, 20 * MS, 2 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 22 * MS, 5 * MS}};
    const struct row *const rows[] = {early, late};
    const size_t n[] = {3, 3};
    struct rp_report_root root;
    struct fixture f;
    size_t i;

    UNUSED_STATE(state);
    join_rows(rows, n, 2, &f, &root);
    assert_int_equal(root.ranks[0].wait_ns, 10 * MS);
    assert_int_equal(root.ranks[0].transfer_ns, 2 * MS);
    assert_int_equal(root.ranks[1].last_count, 1);
    assert_int_equal(root.ranks[1].margin_ns, 10 * MS);
    assert_int_equal(root.span_ns, 12 * MS);
    for (i = 0; i < root.nparts; i++)
        if (!strcmp(root.parts[i].part, "waiting for other ranks"))
            break;
    assert_true(i < root.nparts);
    assert_int_equal(root.parts[i].total_ns, 10 * MS);
    assert_string_equal(root.findings[0].id, "straggler");
    assert_int_equal(root.findings[0].lost_ns, 10 * MS);
    tear_down(&f);
}

static void an_empty_trace_gets_a_report(void **state)
{
    static const struct row rows[] = {{'i', "x", "moment", 1, 1, 0, 0}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_report_part part;
    struct rp_report_input in = {&part, "a.json", 0};
    struct rp_report_root root;

    UNUSED_STATE(state);
    assert_code(rp_report_rank(t, NULL, &arena, &part, NULL), RP_OK);
    assert_code(rp_report_join(&in, 1, 1, &arena, &root, NULL), RP_OK);
    assert_int_equal(root.ranks[0].window_ns, 0);
    assert_int_equal(root.nfindings, 0);
    rp_report_part_release(&part);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

int test_report(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_rank_sets_the_pace),
        cmocka_unit_test(findings_are_ranked_and_parts_add_up),
        cmocka_unit_test(clocks_that_differ_are_noticed),
        cmocka_unit_test(a_host_only_trace_gets_a_report),
        cmocka_unit_test(an_overlap_may_be_a_wait),
        cmocka_unit_test(collectives_of_the_host_are_matched),
        cmocka_unit_test(an_empty_trace_gets_a_report),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
