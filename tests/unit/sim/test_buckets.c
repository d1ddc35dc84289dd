/* SPDX-License-Identifier: Apache-2.0 */
/* The what-if `bucket`: which bucket the copies into gradients wait for. */
#include "run_fixtures.h"
#include "sim/whatif/buckets.h"
#include "sim/whatif/nodes.h"

#define COPY "torch.distributed.ddp.reducer::copy_bucket_to_grad"

#define GRADIENT(ts)                                                                             \
    {                                                                                            \
        'X', "cpu_op", "torch::autograd::AccumulateGrad", 1, 1, (ts), 1000, 0, 0, 0, NULL, 0, 0, \
            "Input Dims", "[[1000]]", NULL, 0, "Input type", "[\"float\"]"                       \
    }

/* Two gradients, an all-reduce of both, and so many copies after it. */
static void buckets_init(struct bench *b, size_t copies)
{
    struct row rows[16] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 900000},
                           GRADIENT(1000),
                           GRADIENT(3000),
                           {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 1000, 1},
                           {'X', "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 20, 10000,
                            20000, 1, 20, 0, "In msg nelems", 2000, 0, "dtype", "Float",
                            "Group size", 2},
                           {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 7000, 25000}};
    struct rp_err err = RP_ERR_INIT;
    size_t n = 6;

    for (size_t i = 0; i < copies; i++)
        rows[n++] = (struct row){'X', "cpu_op", COPY, 1, 1, 40000 + 2000 * (int64_t)i, 1000};
    memset(b, 0, sizeof *b);
    b->n = 1;
    b->traces[0] = trace_of(rows, n);
    rp_arena_init(&b->arenas[0]);
    assert_ok(rp_sim_part_init(&b->parts[0], b->traces[0], &b->arenas[0], &err), &err);
    b->list[0] = &b->parts[0];
    assert_ok(rp_sim_run_init(&b->run, b->list, 1, &err), &err);
    assert_int_equal(b->parts[0].gradients.n, 2);
    assert_int_equal(b->parts[0].gradients.at[0].bytes, 4000);
}

/* How much later the first copy begins where the transfer of a bucket (0 or 1) takes a second. */
static int64_t wait_for(size_t copies, uint32_t bucket)
{
    struct rp_err err = RP_ERR_INIT;
    int64_t start[2];
    struct bench b;

    buckets_init(&b, copies);
    assert_ok(rp_whatif_apply(&b.run, "bucket=1,1", &err), &err);
    for (int slow = 0; slow < 2; slow++) {
        struct rp_sim_result r = {0};
        uint32_t n = 0;

        for (uint32_t i = (uint32_t)b.run.tasks.tasks.n; i < rp_overlay_ntasks(&b.run.overlay); i++)
            if (rp_overlay_task(&b.run.overlay, i)->kind == RP_SG_COMM && n++ == bucket && slow)
                assert_ok(rp_overlay_set_dur(&b.run.overlay, i, 1000000000, &err), &err);
        assert_int_equal(n, 2);
        assert_ok(rp_simulate(&b.run.overlay, &r, &err), &err);
        start[slow] = r.start_ns.at[node_called(&b, 0, COPY, 0)];
        rp_sim_result_release(&r);
    }
    bench_release(&b);
    return start[1] - start[0];
}

static void a_copy_waits_for_its_bucket(void **state)
{
    UNUSED_STATE(state);
    assert_true(wait_for(2, 0) > 900000000);
    assert_true(wait_for(2, 1) < 100000000);
}

/* Where the copies are not those of the gradients, all of them wait for all buckets. */
static void other_copies_wait_for_all(void **state)
{
    static const size_t others[] = {1, 3, 5};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 3; i++) {
        assert_true(wait_for(others[i], 0) > 900000000);
        assert_true(wait_for(others[i], 1) > 900000000);
    }
}

/* Two gradients of 4,000 bytes: the first fills a bucket of so many, and none of one more. */
static void a_bucket_is_full_at_its_size(void **state)
{
    static const char *const caps[] = {"bucket=0.003814697265625", "bucket=0.003815650939941406"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 2; i++) {
        struct rp_err err = RP_ERR_INIT;
        size_t n = 0;
        struct bench b;

        buckets_init(&b, 0);
        assert_ok(rp_whatif_apply(&b.run, caps[i], &err), &err);
        for (size_t k = 0; k < b.run.overlay.tasks.n; k++)
            n += b.run.overlay.tasks.at[k].kind == RP_SG_COMM;
        assert_int_equal(n, 2 - i);
        bench_release(&b);
    }
}

/* A thread carries an all-reduce of 8,000 bytes, between copies of 4,000 and 8,000 ns. */
static void copies_take_a_time_for_each_byte(void **state)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 900000},
        GRADIENT(1000),
        GRADIENT(3000),
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 2, 10000, 1000, 1},
        {'X', "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 0, 20, 12000, 4000, 1, 20},
        {'X', "user_annotation", "gloo:all_reduce", 1, 2, 20000, 20000, 0, 0, 0, "In msg nelems",
         2000, 0, "dtype", "Float", "Group size", 2},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 2, 41000, 1000, 2},
        {'X', "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 20, 43000, 8000, 2, 20},
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 7000, 50000}};
    struct rp_sim_bucket_costs costs = {0};
    struct rp_err err = RP_ERR_INIT;
    struct bench b = {.n = 1};

    UNUSED_STATE(state);
    b.traces[0] = TRACE_OF(rows);
    rp_arena_init(&b.arenas[0]);
    assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
    b.list[0] = &b.parts[0];
    assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
    assert_ok(rp_sim_bucket_costs(&b.run, &costs, &err), &err);
    assert_true(costs.to_ns_by_byte == 0.5);
    assert_true(costs.back_ns_by_byte == 1);
    bench_release(&b);
}

int test_buckets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_waits_for_its_bucket),
        cmocka_unit_test(other_copies_wait_for_all),
        cmocka_unit_test(a_bucket_is_full_at_its_size),
        cmocka_unit_test(copies_take_a_time_for_each_byte),
    };

    return cmocka_run_group_tests_name("buckets", tests, NULL, NULL);
}
