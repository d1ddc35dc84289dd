/* SPDX-License-Identifier: Apache-2.0 */
/* Waits, margins, causes and bandwidth of ranks in a collective. */
#include "explain/ask_fixture.h"
#include "explain/comm/comm.h"
#include "trace/trace_fixtures.h"

#include <math.h>

extern const struct rp_question_row rp_ask_comm;

#define MS 1000000

/* A rank that idles until `launch` ms, computes for `work` ms, and meets the others in a collective
   of 1 MB a rank that ends at 40 ms. */
static struct rp_trace *rank_of(int64_t launch, int64_t work)
{
    int64_t begin = (launch + work) * MS;
    const struct row rows[] = {
        {'X', "cuda_runtime", "cudaMemsetAsync", 1, 1, 0, 4000, 4},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, launch * MS, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, launch * MS + 5000, 4000, 6},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 1000, 1000, 4, 7},
        {'X', "kernel", "gemm", 0, 7, launch * MS, work * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, begin, 40 * MS - begin, 6, 20, 0,
         "In msg nelems", 1000000, 0, "dtype", "Byte"},
    };

    return TRACE_OF(rows);
}

struct fixture {
    struct rp_result *result;
    struct rp_comm_root root;
};

static void set_up(struct fixture *f, const int64_t (*ranks)[2], size_t n)
{
    struct rp_trace *traces[3] = {NULL};
    size_t r;

    for (r = 0; r < n; r++)
        traces[r] = rank_of(ranks[r][0], ranks[r][1]);
    f->result = ASK_TRACES(comm, traces, n, {"limit", "10"});
    f->root = *(const struct rp_comm_root *)f->result->root;
    for (r = 0; r < n; r++)
        rp_trace_free(traces[r]);
}

static void tear_down(struct fixture *f)
{
    rp_result_free(f->result);
}

static void waits_and_margins_are_exact(void **state)
{
    const int64_t ranks[][2] = {{1, 9}, {1, 29}, {1, 11}};
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, ranks, 3);
    assert_int_equal(f.root.matched_count, 1);
    assert_int_equal(f.root.unmatched_count, 0);
    assert_int_equal(f.root.ranks[0].wait_ns, 20 * MS);
    assert_int_equal(f.root.ranks[0].transfer_ns, 10 * MS);
    assert_int_equal(f.root.ranks[1].last_count, 1);
    assert_int_equal(f.root.ranks[1].margin_ns, 18 * MS);
    assert_int_equal(f.root.rank_rows[0].rank, 1);
    assert_int_equal(f.root.collectives[0].skew_ns, 20 * MS);
    assert_int_equal(f.root.collectives[0].last_rank, 1);
    tear_down(&f);
}

static void slower_compute_is_the_cause(void **state)
{
    const int64_t ranks[][2] = {{1, 9}, {1, 29}, {1, 11}};
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, ranks, 3);
    assert_string_equal(f.root.collectives[0].cause, "compute");
    assert_string_equal(f.root.collectives[0].evidence, "gemm");
    assert_int_equal(f.root.collectives[0].cause_ns, 18 * MS);
    tear_down(&f);
}

static void a_late_launch_is_the_cause(void **state)
{
    const int64_t ranks[][2] = {{1, 9}, {1, 9}, {21, 9}};
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, ranks, 3);
    assert_int_equal(f.root.collectives[0].last_rank, 2);
    assert_int_equal(f.root.collectives[0].cause_ns, 20 * MS);
    assert_string_not_equal(f.root.collectives[0].cause, "compute");
    assert_string_equal(f.root.ranks[2].cause, f.root.collectives[0].cause);
    tear_down(&f);
}

static void bandwidth_counts_the_transfer_only(void **state)
{
    const int64_t ranks[][2] = {{1, 9}, {1, 29}};
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, ranks, 2);
    assert_int_equal(f.root.collectives[0].size_bytes, 1000000);
    assert_true(f.root.collectives[0].algorithm_bytes_per_s == 1e8);
    assert_true(f.root.collectives[0].bus_bytes_per_s == 1e8); /* 2 (n - 1) / n of two ranks */
    assert_int_equal(f.root.nsizes, 1);
    assert_int_equal(f.root.sizes[0].wait_ns, 10 * MS);
    tear_down(&f);
}

static void one_rank_has_no_waits(void **state)
{
    const int64_t ranks[][2] = {{1, 9}};
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, ranks, 1);
    assert_int_equal(f.root.matched_count, 0);
    assert_int_equal(f.root.ncollectives, 1);
    assert_int_equal(f.root.ranks[0].wait_ns, RP_ABSENT_I64);
    assert_int_equal(f.root.ranks[0].comm_ns, 30 * MS);
    assert_int_equal(f.root.nlongest, 1);
    assert_int_equal(f.root.nnotes, 1);
    tear_down(&f);
}

static void nothing_to_say_is_said(void **state)
{
    const struct row rows[] = {{'X', "kernel", "gemm", 0, 7, 10, 5, 2, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(comm, &t, 1, {"limit", "10"});
    const struct rp_comm_root *root = result->root;

    UNUSED_STATE(state);
    assert_string_equal(root->run_text, "no communication was recorded");
    assert_int_equal(root->ncollectives + root->nnotes, 0);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Two all-reduces, and a third that is told while it lasts, or only when it has ended. */
static struct rp_trace *lasting(bool begun, bool ended)
{
    const struct row rows[] = {
        {'X', "collective_comm", "gloo:all_reduce", 1, 1, MS, MS},
        {'X', "collective_comm", "gloo:all_reduce", 1, 1, 3 * MS, MS},
        {'X', ended ? "collective_comm" : "cpu_op", ended ? "gloo:all_reduce" : "work", 1, 1,
         8 * MS, 900 * MS},
        {'X', "in_flight", begun ? "gloo:all_reduce" : "gloo:x", 1, 2, (begun ? 8 : 3) * MS,
         300 * MS},
    };

    return trace_of(rows, begun ? 4 : 3);
}

static void what_has_not_ended_is_waited_in(void **state)
{
    struct rp_trace *t[] = {lasting(true, false), lasting(false, false)};
    struct rp_trace *all[] = {lasting(true, true), lasting(false, true)};
    struct rp_result *hang = ASK_TRACES(comm, t, 2, {"limit", "10"});
    struct rp_result *ended = ASK_TRACES(comm, all, 2, {"limit", "10"});
    const struct rp_comm_root *root = hang->root;

    UNUSED_STATE(state);
    assert_string_equal(root->check_text, "all_reduce: did not enter: rank 1; waiting: rank 0");
    assert_int_equal(root->matched_count, 2);
    assert_null(((const struct rp_comm_root *)ended->root)->check_text);
    rp_result_free(hang);
    rp_result_free(ended);
    for (size_t i = 0; i < 2; i++) {
        rp_trace_free(t[i]);
        rp_trace_free(all[i]);
    }
}

/* One process with two devices: each takes part on its own, and device 1 is late. */
static void devices_of_a_process_take_part(void **state)
{
    const struct row rows[] = {
        {'X', "kernel", "gemm", 0, 7, 0, 2 * MS, 1, 7},
        {'X', "kernel", "gemm", 1, 7, 0, 5 * MS, 2, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 2 * MS, 4 * MS, 3, 20, 0, "In msg nelems",
         1000000, 0, "dtype", "Byte"},
        {'X', "kernel", "ncclDevKernel_AllReduce", 1, 20, 5 * MS, MS, 4, 20, 0, "In msg nelems",
         1000000, 0, "dtype", "Byte"},
        {'X', "kernel", "fill", 2, 7, 0, MS, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(comm, &t, 1, {"limit", "10"});
    const struct rp_comm_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nranks, 2); /* device 2 has no collective */
    assert_int_equal(root->matched_count, 1);
    assert_int_equal(root->incomplete_count, 0);
    assert_int_equal(root->ranks[0].device, 0);
    assert_int_equal(root->ranks[0].wait_ns, 3 * MS);
    assert_int_equal(root->ranks[1].device, 1);
    assert_int_equal(root->ranks[1].last_count, 1);
    assert_string_equal(root->ranks[1].cause, "compute");
    assert_int_equal(root->collectives[0].last_device, 1);
    assert_int_equal(root->collectives[0].transfer_ns, MS);
    assert_true(root->collectives[0].algorithm_bytes_per_s == 1e9);
    assert_contains(root->run_text, "1 collective of 2 devices of 1 rank");
    assert_contains(root->delay_text, "device 1 of rank 0: arrived last");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Two devices of a kind: an all-reduce of 64 MB that takes `ms`. */
static bool is_called_slow(const char *gpu, int64_t ms)
{
    const struct row rows[] = {
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 2 * MS, ms * MS, 3, 20, 0,
         "In msg nelems", 64000000, 0, "dtype", "Byte"},
        {'X', "kernel", gpu, 0, 7, 0, MS, 1, 7},
    };
    struct rp_trace *t[] = {TRACE_OF(rows), TRACE_OF(rows)};
    struct rp_device device = {.memory_bytes = 1};
    struct rp_result *result;
    const struct rp_comm_root *root;
    bool slow = false;

    for (rp_str s = 0; s < t[0]->str.n; s++)
        if (!strcmp(rp_trace_str(t[0], s), gpu))
            device.name = s;
    for (size_t r = 0; r < 2; r++) {
        t[r]->devices = &device;
        t[r]->ndevices = 1;
    }
    result = ASK_TRACES(comm, t, 2, {"limit", "10"});
    root = result->root;
    assert_int_equal(root->matched_count, 1);
    for (size_t i = 0; i < root->nnotes; i++)
        slow |= !strncmp(root->notes[i], "slow link: 1 of 1 large", 23);
    rp_result_free(result);
    for (size_t r = 0; r < 2; r++) {
        t[r]->ndevices = 0;
        rp_trace_free(t[r]);
    }
    return slow;
}

static void a_slow_link_is_named(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_called_slow("NVIDIA H100 80GB HBM3", 20)); /* 3 GB/s of 450 */
    assert_false(is_called_slow("NVIDIA A100-SXM4-80GB", 1)); /* 64 GB/s of 300 */
    assert_true(is_called_slow("AMD Instinct MI300X", 20));
    assert_false(is_called_slow("NVIDIA H100 PCIe", 2)); /* 32 GB/s of 64 */
    assert_false(is_called_slow("NVIDIA X1", 20));       /* what its links carry is not known */
}

/* Two of eight ranks: who was last of all, and how fast the transfer was, nobody knows. */
static void ranks_that_were_not_given_are_not_judged(void **state)
{
    const struct row rows[] = {
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 2 * MS, 4 * MS, 3, 20, 0, "In msg nelems",
         1000000, 0, "dtype", "Byte", "Group size", 8},
    };
    struct rp_trace *t[] = {TRACE_OF(rows), TRACE_OF(rows)};
    struct rp_result *result = ASK_TRACES(comm, t, 2, {"limit", "10"});
    const struct rp_comm_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->matched_count, 1);
    assert_int_equal(root->incomplete_count, 1);
    assert_int_equal(root->collectives[0].rank_count, 8);
    assert_int_equal(root->collectives[0].seen_count, 2);
    assert_true(isnan(root->collectives[0].algorithm_bytes_per_s));
    assert_true(isnan(root->sizes[0].bus_bytes_per_s));
    assert_contains(root->notes[0], "1 of 1 collectives include ranks that were not given");
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

int test_comm(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_and_margins_are_exact),
        cmocka_unit_test(slower_compute_is_the_cause),
        cmocka_unit_test(a_late_launch_is_the_cause),
        cmocka_unit_test(what_has_not_ended_is_waited_in),
        cmocka_unit_test(bandwidth_counts_the_transfer_only),
        cmocka_unit_test(one_rank_has_no_waits),
        cmocka_unit_test(nothing_to_say_is_said),
        cmocka_unit_test(devices_of_a_process_take_part),
        cmocka_unit_test(a_slow_link_is_named),
        cmocka_unit_test(ranks_that_were_not_given_are_not_judged),
    };

    return cmocka_run_group_tests_name("comm", tests, NULL, NULL);
}
