/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tables and thresholds of what-ifs change, and how far their intervals reach. */
#include "run_fixtures.h"
#include "sim/model/transport.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>

static const struct step_shape usual = {40000, false};

static void apply(struct bench *b, const char *text)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_whatif_apply(&b->run, text, &err), &err);
}

/* What a what-if makes of a node that takes so long. */
static int64_t time_after(struct bench *b, const char *node, int64_t dur_ns, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    uint32_t i = node_called(b, 0, node, 0);
    size_t mark = rp_overlay_mark(&b->run.overlay);
    int64_t after;

    assert_ok(rp_overlay_set_dur(&b->run.overlay, i, dur_ns, &err), &err);
    apply(b, text);
    after = b->run.overlay.dur_ns.at[i];
    rp_overlay_undo(&b->run.overlay, mark);
    return after;
}

/* Conversions of a product take 1,500 ns and 2 % of it. */
static void a_product_gains_by_its_time(void **state)
{
    static const struct {
        int64_t dur_ns;
        double factor;
    } rows[] = {{6000, 0.76},   {6001, 0.45},   {12000, 0.45},  {12001, 0.28},  {25000, 0.28},
                {25001, 0.19},  {50000, 0.19},  {50001, 0.13},  {100000, 0.13}, {100001, 0.09},
                {200000, 0.09}, {200001, 0.07}, {9000000, 0.07}};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double dur = (double)rows[i].dur_ns;
        int64_t want = llround(dur * rows[i].factor + 1500 + 0.02 * dur);

        assert_in_range(time_after(&b, "sgemm", rows[i].dur_ns, "dtype=bf16"), want - 1, want + 1);
    }
    bench_release(&b);
}

/* Products of a V100 in 16 bits are 8 times as fast as in 32, those of the device of the table 14.8
   times: the factors are larger by that, and none is a loss. */
static void a_product_gains_less_on_another_device(void **state)
{
    static const struct {
        int64_t dur_ns, least_ns, most_ns;
    } rows[] = {
        {6000, 6000 + 1620, 6000 + 1620},
        {12000, (int64_t)(1.8 * 0.45 * 12000) + 1740, (int64_t)(1.9 * 0.45 * 12000) + 1740}};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].gpu = "Tesla V100-SXM2-16GB";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_in_range(time_after(&b, "sgemm", rows[i].dur_ns, "dtype=fp16"), rows[i].least_ns,
                        rows[i].most_ns);
    b.parts[0].gpu = NULL;
    bench_release(&b);
}

/* aten::relu: half of what it takes above 2,000. aten::add: it stays in fp32. */
static void an_operator_gains_what_autocast_makes_of_it(void **state)
{
    static const struct {
        int64_t dur_ns, after_ns;
    } rows[] = {{1500, 1500}, {2000, 2000}, {3000, 2500}, {15000, 8500}, {60000, 31000}};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_in_range(time_after(&b, "elementwise_relu", rows[i].dur_ns, "dtype=bf16"),
                        rows[i].after_ns - 1, rows[i].after_ns + 1);
    assert_int_equal(time_after(&b, "elementwise_add", 60000, "dtype=bf16"), 60000);
    bench_release(&b);
}

/* The slow end of an interval is (1 + doubt) times the prediction, the fast one divides by it. */
static void intervals_reach_as_far_as_the_doubt(void **state)
{
    static const struct {
        const char *text, *node;
        double doubt;
    } rows[] = {{"gpu:H100=A100-40GB", "sgemm", 0.15},
                {"gpu:H100=MI300X", "sgemm", 0.4},
                {"gpu:H100=H100", "sgemm", 0},
                {"dtype=bf16", "elementwise_relu", 0.15}};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double middle = (double)time_after(&b, rows[i].node, 100000, rows[i].text), slow, fast;

        b.run.lean = RP_LEAN_SLOWER;
        slow = (double)time_after(&b, rows[i].node, 100000, rows[i].text);
        b.run.lean = RP_LEAN_FASTER;
        fast = (double)time_after(&b, rows[i].node, 100000, rows[i].text);
        b.run.lean = RP_LEAN_NONE;
        assert_true(fabs(slow / middle - (1 + rows[i].doubt)) < 1e-4);
        assert_true(fabs(middle / fast - (1 + rows[i].doubt)) < 1e-4);
    }
    bench_release(&b);
}

/* The latency of a transfer is 200 ns; one of 100 ns is all latency. */
static void a_short_transfer_is_all_latency(void **state)
{
    struct step_shape shapes[] = {usual, usual};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    assert_int_equal(time_after(&b, "AllReduce", 100, "net.latency=2x"), 200);
    assert_int_equal(time_after(&b, "AllReduce", 100, "net.bandwidth=2x"), 100);
    assert_int_equal(time_after(&b, "AllReduce", 1000, "net.latency=2x"), 1200);
    assert_int_equal(time_after(&b, "AllReduce", 1000, "net.bandwidth=2x"), 600);
    bench_release(&b);
}

/* Transfers of 4,000 bytes take 20,000 ns and one of 400 bytes 4,000 ns: 2,000 of latency, which is
   half or twice that in other worlds, while a mean transfer takes as long. */
static void the_latency_is_not_known_well(void **state)
{
    static const struct {
        enum rp_sim_lean lean;
        double latency_ns;
    } rows[] = {{RP_LEAN_NONE, 2000}, {RP_LEAN_LESS_LATENCY, 1000}, {RP_LEAN_MORE_LATENCY, 4000}};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_int_equal(b.parts[0].collectives.list.n, 3);
    b.parts[0].collectives.list.at[1].in_bytes = 400;
    b.parts[0].collectives.list.at[1].end_ns = b.parts[0].collectives.list.at[1].begin_ns + 4000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_err err = RP_ERR_INIT;
        struct rp_transport t;

        b.run.lean = rows[i].lean;
        assert_ok(rp_transport_fit(&b.run, &t, &err), &err);
        assert_float_equal(t.latency_ns, rows[i].latency_ns, 1e-6);
        assert_float_equal(t.latency_ns + 2800 / t.bytes_per_ns, 44000. / 3,
                           rows[i].lean == RP_LEAN_NONE ? 100 : 1e-6);
    }
    bench_release(&b);
}

/*
 * A ring of 4 has 6 rounds instead of 2, and 3/2 of the bytes. On machines of their own: 3 times
 * the latency of 200 ns. On one machine: 6 times what a round takes a thread, and the bytes at half
 * the rate. Without a hint the geometric mean of both, where the latency is longer than that alone.
 */
static void threads_of_more_ranks_may_share_a_machine(void **state)
{
    struct step_shape shapes[] = {usual, usual};
    double apart = 600, bytes = 1.5 * 19800, shared;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    b.parts[0].collectives.on_host = b.parts[1].collectives.on_host = true;
    b.parts[0].pid = b.parts[1].pid = 0;
    shared = 6 * rp_transport_round_ns(&b.run);
    assert_true(shared > apart);
    assert_in_range(time_after(&b, "AllReduce", 20000, "ranks=4"),
                    (int64_t)(sqrt(apart * shared) + bytes * sqrt(2)) - 2,
                    (int64_t)(sqrt(apart * shared) + bytes * sqrt(2)) + 2);
    assert_int_equal(time_after(&b, "AllReduce", 20000, "ranks=2"), 20000);
    b.parts[0].pid = 100; /* started one after the other: probably on one machine */
    b.parts[1].pid = 101;
    assert_in_range(time_after(&b, "AllReduce", 20000, "ranks=4"),
                    (int64_t)(pow(apart, 0.1) * pow(shared, 0.9) + bytes * sqrt(2)) - 2,
                    (int64_t)(pow(apart, 0.1) * pow(shared, 0.9) + bytes * sqrt(2)) + 2);
    bench_release(&b);
}

/* A run of one rank, of rows of its own. */
static void rows_init(struct bench *b, const struct row *rows, size_t n)
{
    struct rp_err err = RP_ERR_INIT;

    memset(b, 0, sizeof *b);
    b->n = 1;
    b->traces[0] = trace_of(rows, n);
    rp_arena_init(&b->arenas[0]);
    assert_ok(rp_sim_part_init(&b->parts[0], b->traces[0], &b->arenas[0], &err), &err);
    b->list[0] = &b->parts[0];
    assert_ok(rp_sim_run_init(&b->run, b->list, 1, &err), &err);
}
#define ROWS_INIT(b, rows) rows_init((b), (rows), sizeof(rows) / sizeof(rows)[0])

/* The same, where the run leans. */
static int64_t time_leaning(struct bench *b, enum rp_sim_lean lean, const char *node,
                            int64_t dur_ns, const char *text)
{
    int64_t ns;

    b->run.lean = lean;
    ns = time_after(b, node, dur_ns, text);
    b->run.lean = RP_LEAN_NONE;
    return ns;
}

/* 0.19 of a product of 40 us, 1,500 ns and 2 % of it for conversions; of two kernels of 10 us in a
   row the last takes 1.04 times as long as the longer. */
static void medians_are_off_by_more(void **state)
{
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_int_equal(time_leaning(&b, RP_LEAN_SLOWER, "sgemm", 40000, "dtype=bf16"), 9880 + 2300);
    assert_int_equal(time_leaning(&b, RP_LEAN_SLOWER, "elementwise_add", 10000, "fuse"), 13520);
    assert_int_equal(time_leaning(&b, RP_LEAN_FASTER, "elementwise_add", 10000, "fuse"), 8000);
    bench_release(&b);
}

static void calls_that_take_memory_stay(void **state)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 500000},
        {'X', "cpu_op", "aten::empty", 1, 1, 1000, 300000},
        {'X', "cuda_runtime", "cudaMalloc", 1, 1, 2000, 100000},
        {'X', "cuda_runtime", "cudaFuncGetAttributes", 1, 1, 150000, 100000}};
    uint32_t call, other;
    struct bench b;

    UNUSED_STATE(state);
    ROWS_INIT(&b, rows);
    call = node_called(&b, 0, "cudaMalloc", 0);
    other = node_called(&b, 0, "cudaFuncGetAttributes", 0);
    assert_true(rp_sim_allocates(&b.run, call));
    assert_false(rp_sim_allocates(&b.run, other));
    assert_false(rp_sim_runs_model(&b.run, call));
    assert_true(rp_sim_runs_model(&b.run, other));
    assert_code(rp_overlay_set_dur(&b.run.overlay, call, 99999, NULL), RP_OK);
    assert_false(rp_sim_allocates(&b.run, call)); /* a cache answered it */
    assert_true(rp_sim_runs_model(&b.run, call));
    bench_release(&b);
}

/* An operator that fills the time between two launches, once all is one graph. */
static int64_t time_in_graph(int64_t dur_ns)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 3000000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
        {'X', "cpu_op", "aten::nonzero", 1, 1, 3000, dur_ns},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 3000 + dur_ns, 2000, 2},
        {'X', "kernel", "a", 0, 7, 10000, 5000, 1, 7},
        {'X', "kernel", "b", 0, 7, 2000000, 5000, 2, 7}};
    struct bench b;
    int64_t ns;

    ROWS_INIT(&b, rows);
    apply(&b, "cuda-graphs");
    ns = b.run.overlay.dur_ns.at[node_called(&b, 0, "aten::nonzero", 0)];
    bench_release(&b);
    return ns;
}

static void a_graph_keeps_what_the_host_does_for_long(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(time_in_graph(1000000), 1000000);
    assert_int_equal(time_in_graph(999999), 0);
}

/* How long after its launch, the second one, a kernel of a graph begins. */
static int64_t lag_in_graph(int64_t lag_ns)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 500000},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 3000, 2000, 2},
                               {'X', "kernel", "first", 0, 7, 10000, 5000, 1, 7},
                               {'X', "kernel", "second", 0, 7, 15000 + lag_ns, 5000, 2, 7}};
    struct rp_sim_result r = {0};
    struct bench b;
    int64_t ns;

    ROWS_INIT(&b, rows);
    apply(&b, "cuda-graphs");
    assert_code(rp_simulate(&b.run.overlay, &r, NULL), RP_OK);
    ns = r.start_ns.at[node_called(&b, 0, "second", 0)] -
         r.end_ns.at[node_called(&b, 0, "first", 0)];
    rp_sim_result_release(&r);
    bench_release(&b);
    return ns;
}

static void a_graph_keeps_waits_that_nothing_explains(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(lag_in_graph(100000), 300);
    assert_int_equal(lag_in_graph(100001), 100001);
}

/* A product of which the model says that it takes 0.4 of its time in tf32. */
static void the_model_says_what_tf32_gains(void **state)
{
    struct rp_sim_ratio ratios[64];
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    for (size_t i = 0; i < 64; i++)
        ratios[i] = (struct rp_sim_ratio){.ratio = 0.2f, .low = 0.1f, .high = 0.3f, .tf32 = 0.4f};
    b.parts[0].ratios.at = ratios;
    b.parts[0].ratios.n = 64;
    assert_int_equal(time_after(&b, "sgemm", 40000, "tf32"), 16000);
    assert_int_equal(time_leaning(&b, RP_LEAN_SLOWER, "sgemm", 40000, "tf32"), 19200);
    memset(&b.parts[0].ratios, 0, sizeof b.parts[0].ratios);
    bench_release(&b);
}

/* What dtype says where products take so long in 16 bits, and 1,000 ns in 32. */
static enum rp_whatif_verdict verdict_of_dtype(int64_t half_ns, struct rp_err *err)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 500000},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 3000, 2000, 2},
                               {'X', "kernel", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", 0,
                                7, 10000, half_ns, 1, 7},
                               {'X', "kernel", "sgemm_128", 0, 7, 100000, 1000, 2, 7}};
    enum rp_whatif_verdict verdict;
    struct bench b;

    ROWS_INIT(&b, rows);
    b.parts[0].gpu = "NVIDIA H100 80GB HBM3";
    verdict = rp_whatif_applies(&rp_whatif_dtype, &b.run, err);
    bench_release(&b);
    return verdict;
}

static void a_run_in_16_bits_is_not_asked_again(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_int_equal(verdict_of_dtype(9000, &err), RP_WHATIF_APPLIES);
    assert_int_equal(verdict_of_dtype(9001, &err), RP_WHATIF_NOT);
    assert_contains(err.text, "run in 16 bits already");
}

/* What tf32 says where `kernel` takes 30 us of the 100 us of a step, and a product runs outside. */
static enum rp_whatif_verdict verdict_of_tf32(const char *kernel, int64_t dur_ns,
                                              struct rp_err *err)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 500000},
                               {'X', "cpu_op", "aten::mm", 1, 1, 500, 9000},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 3000, 2000, 2},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 2000, 3},
                               {'X', "kernel", "sgemm_128", 0, 7, 10000, 30000, 1, 7},
                               {'X', "kernel", kernel, 0, 7, 100000, dur_ns, 2, 7},
                               {'X', "kernel", "plain", 0, 7, 200000, 70000 - dur_ns, 3, 7},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 600000, 2000, 4},
                               {'X', "kernel", "sgemm_out", 0, 7, 610000, 50000, 4, 7}};
    struct rp_sim_ratio ratios[64];
    enum rp_whatif_verdict verdict;
    struct bench b;

    *err = (struct rp_err)RP_ERR_INIT;
    ROWS_INIT(&b, rows);
    for (size_t i = 0; i < 64; i++)
        ratios[i] = (struct rp_sim_ratio){.ratio = 0.2f};
    b.parts[0].ratios.at = ratios;
    b.parts[0].ratios.n = 64;
    b.parts[0].gpu = "NVIDIA H100 80GB HBM3";
    b.parts[0].recorder.framework = RP_FRAMEWORK_PYTORCH;
    verdict = rp_whatif_applies(&rp_whatif_tf32, &b.run, err);
    memset(&b.parts[0].ratios, 0, sizeof b.parts[0].ratios);
    bench_release(&b);
    return verdict;
}

static void products_in_fp32_are_a_part_of_the_step(void **state)
{
    struct rp_err err;

    UNUSED_STATE(state);
    assert_int_equal(verdict_of_tf32("sgemm_b", 20000, &err), RP_WHATIF_APPLIES);
    assert_contains(err.text, "take 50 % of the time of kernels");
    assert_int_equal(verdict_of_tf32("hgemm_b", 20000, &err), RP_WHATIF_APPLIES);
    assert_contains(err.text, "take 30 % of the time of kernels");
    assert_int_equal(verdict_of_tf32("cutlass_b", 29999, &err), RP_WHATIF_APPLIES);
    assert_int_equal(verdict_of_tf32("cutlass_b", 30000, &err), RP_WHATIF_UNSURE);
}

/* Where more than half of the products are in 16 bits, the other operators are in 32 on purpose. */
static void mixed_precision_has_an_edge(void **state)
{
    static const struct {
        int64_t half_ns, relu_ns; /* products take 1,000 ns in 32 bits */
    } rows[] = {{999, 8500}, {1000, 8500}, {1001, 15000}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row row[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 500000},
                                  {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
                                  {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 3000, 2000, 2},
                                  {'X', "cpu_op", "aten::relu", 1, 1, 6000, 3000},
                                  {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 7000, 1000, 3},
                                  {'X', "kernel", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn",
                                   0, 7, 10000, rows[i].half_ns, 1, 7},
                                  {'X', "kernel", "sgemm_128", 0, 7, 100000, 1000, 2, 7},
                                  {'X', "kernel", "elementwise_relu", 0, 7, 200000, 15000, 3, 7}};
        struct bench b;

        ROWS_INIT(&b, row);
        assert_in_range(time_after(&b, "elementwise_relu", 15000, "dtype=bf16"),
                        rows[i].relu_ns - 1, rows[i].relu_ns + 1);
        bench_release(&b);
    }
}

/* Of 20 us in a ring of 4, as ranks of one machine take it, and as unrelated ones do. */
static void processes_of_one_machine_are_numbered_so(void **state)
{
    struct step_shape shapes[] = {usual, usual};
    int64_t one_machine, unknown;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    b.parts[0].collectives.on_host = b.parts[1].collectives.on_host = true;
    b.parts[0].pid = 100;
    b.parts[1].pid = 101;
    one_machine = time_after(&b, "AllReduce", 20000, "ranks=4");
    b.parts[1].pid = 100;
    unknown = time_after(&b, "AllReduce", 20000, "ranks=4");
    assert_true(unknown < one_machine);
    b.parts[1].pid = 100 + 256;
    assert_int_equal(time_after(&b, "AllReduce", 20000, "ranks=4"), one_machine);
    b.parts[1].pid = 100 + 257;
    assert_int_equal(time_after(&b, "AllReduce", 20000, "ranks=4"), unknown);
    bench_release(&b);
}

static void a_run_without_an_optimizer_cannot_fuse_it(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_code(rp_whatif_apply(&b.run, "fused-optimizer", &err), RP_UNSUPPORTED);
    assert_contains(err.text, "no device work of an optimizer");
    bench_release(&b);
}

/* What a kernel of an operator takes after `text`. */
static int64_t kernel_after(const char *text, const char *op, const char *kernel, int64_t dur_ns)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 5000000},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
                               {'X', "cpu_op", op, 1, 1, 6000, 3000},
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 7000, 1000, 2},
                               {'X', "kernel", "sgemm_128", 0, 7, 10000, 10000, 1, 7},
                               {'X', "kernel", kernel, 0, 7, 30000, dur_ns, 2, 7}};
    struct bench b;
    int64_t after;

    ROWS_INIT(&b, rows);
    after = time_after(&b, kernel, dur_ns, text);
    bench_release(&b);
    return after;
}

/* Of what an operator takes above an empty kernel of 2,000 ns, a part in 16 bits. */
static void operators_gain_what_was_measured(void **state)
{
    static const struct {
        const char *op;
        double factor;
    } rows[] = {
        {"aten::cudnn_batch_norm_backward", 1.19},
        {"aten::cudnn_batch_norm", 1.59},
        {"aten::clamp_min", 0.5},
        {"aten::threshold_backward", 0.5},
        {"aten::relu_", 0.5},
        {"aten::leaky_relu", 0.5},
        {"aten::hardswish_", 0.5},
        {"aten::hardtanh", 0.5},
        {"aten::silu", 0.56},
        {"aten::gelu", 0.72},
        {"aten::cat", 0.6},
        {"aten::copy_", 0.6},
        {"aten::native_dropout", 0.75},
        {"aten::add_", 0.62},
        {"aten::sum", 0.87},
        {"aten::mul", 0.85},
        {"aten::div", 0.8},
        {"aten::mean", 0.8},
        {"aten::softmax", 1},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t after = kernel_after("dtype=bf16", rows[i].op, "plain", 102000);

        if (llabs(after - llround(2000 + 100000 * rows[i].factor)) > 1)
            fail_msg("%s: %lld", rows[i].op, (long long)after);
    }
    assert_int_equal(kernel_after("dtype=bf16", "aten::cudnn_batch_norm", "bn_nhwc", 102000),
                     102000);
}

/* The tables by the time of a kernel: up to so long, by such a factor. */
static void kernels_gain_by_their_time(void **state)
{
    static const struct {
        const char *op, *kernel;
        int64_t dur_ns;
        double factor, convert_ns; /* conversions: 1,500 ns and 2 % */
    } rows[] = {
        {"fusion", "plain", 15000, 1, 0},
        {"fusion", "plain", 15001, 0.92, 0},
        {"fusion", "plain", 30000, 0.92, 0},
        {"fusion", "plain", 30001, 0.84, 0},
        {"fusion", "plain", 60000, 0.84, 0},
        {"fusion", "plain", 60001, 0.75, 0},
        {"aten::conv", "fprop_conv", 12000, 1.16, 1500 + 240},
        {"aten::conv", "fprop_conv", 12001, 0.92, 1500 + 240},
        {"aten::conv", "fprop_conv", 25000, 0.92, 1500 + 500},
        {"aten::conv", "fprop_conv", 25001, 0.7, 1500 + 500},
        {"aten::conv", "fprop_conv", 50000, 0.7, 1500 + 1000},
        {"aten::conv", "fprop_conv", 50001, 0.52, 1500 + 1000},
        {"aten::conv", "conv_f32f32_f32f32", 100000, 0.1, 1500 + 2000},
        {"aten::attention", "fmha_f32", 40000, 0.33, 1500 + 800},
        {"aten::attention", "fmha_f32", 40001, 0.22, 1500 + 800},
        {"aten::attention", "fmha_f32", 120000, 0.22, 1500 + 2400},
        {"aten::attention", "fmha_f32", 120001, 0.17, 1500 + 2400},
        {"aten::conv", "dwconv", 6000, 0.9, 0},
        {"aten::conv", "dwconv", 6001, 0.75, 0},
        {"aten::conv", "dwconv", 12000, 0.75, 0},
        {"aten::conv", "dwconv", 12001, 0.65, 0},
        {"aten::conv", "dwconv", 25000, 0.65, 0},
        {"aten::conv", "dwconv", 25001, 0.57, 0},
        {"aten::conv", "dwconv", 50000, 0.57, 0},
        {"aten::conv", "dwconv", 50001, 0.51, 0},
        {"aten::conv", "at::native::dwconv", 50001, 1, 0},
        {"aten::conv", "wgrad2d_grouped", 50000, 0.08, 0},
        {"aten::_cudnn_rnn", "sgemm_b", 50000, 0.19, 0},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t after = kernel_after("dtype=bf16", rows[i].op, rows[i].kernel, rows[i].dur_ns);
        double want = (double)rows[i].dur_ns * rows[i].factor + rows[i].convert_ns;

        if (fabs((double)after - want) > 2)
            fail_msg("%s of %lld: %lld", rows[i].kernel, (long long)rows[i].dur_ns,
                     (long long)after);
    }
}

int test_whatif_numbers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_gains_by_its_time),
        cmocka_unit_test(a_product_gains_less_on_another_device),
        cmocka_unit_test(an_operator_gains_what_autocast_makes_of_it),
        cmocka_unit_test(intervals_reach_as_far_as_the_doubt),
        cmocka_unit_test(a_short_transfer_is_all_latency),
        cmocka_unit_test(the_latency_is_not_known_well),
        cmocka_unit_test(threads_of_more_ranks_may_share_a_machine),
        cmocka_unit_test(medians_are_off_by_more),
        cmocka_unit_test(calls_that_take_memory_stay),
        cmocka_unit_test(a_graph_keeps_what_the_host_does_for_long),
        cmocka_unit_test(a_graph_keeps_waits_that_nothing_explains),
        cmocka_unit_test(the_model_says_what_tf32_gains),
        cmocka_unit_test(a_run_in_16_bits_is_not_asked_again),
        cmocka_unit_test(products_in_fp32_are_a_part_of_the_step),
        cmocka_unit_test(mixed_precision_has_an_edge),
        cmocka_unit_test(processes_of_one_machine_are_numbered_so),
        cmocka_unit_test(a_run_without_an_optimizer_cannot_fuse_it),
        cmocka_unit_test(operators_gain_what_was_measured),
        cmocka_unit_test(kernels_gain_by_their_time),
    };

    return cmocka_run_group_tests_name("whatif_numbers", tests, NULL, NULL);
}
