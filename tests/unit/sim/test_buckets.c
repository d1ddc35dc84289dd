/* SPDX-License-Identifier: Apache-2.0 */
/* The what-if `bucket`: which bucket the copies into gradients wait for. */
#include "run_fixtures.h"
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

int test_buckets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_waits_for_its_bucket),
        cmocka_unit_test(other_copies_wait_for_all),
    };

    return cmocka_run_group_tests_name("buckets", tests, NULL, NULL);
}
