/* SPDX-License-Identifier: Apache-2.0 */
/* What each what-if changes, on a run of two ranks whose numbers are known. */
#include "run_fixtures.h"
#include "sim/whatif/nodes.h"

#include <math.h>

static const struct step_shape usual = {40000, false};

static void apply(struct bench *b, const char *text)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_whatif_apply(&b->run, text, &err), &err);
}

static int64_t dur_of(const struct bench *b, uint32_t rank, const char *part)
{
    return b->run.overlay.dur_ns.at[node_called(b, rank, part, 0)];
}

static void the_recording_is_repeated(void **state)
{
    struct step_shape shapes[] = {usual, usual};
    struct bench b;
    size_t n;

    UNUSED_STATE(state);
    for (n = 1; n <= 2; n++) {
        bench_init(&b, n, shapes);
        assert_int_equal(b.parts[0].nsteps, STEPS);
        assert_true(b.parts[0].begins_on_device);
        assert_int_equal(b.parts[0].measured_ns, 100000);
        assert_int_equal(b.run.nranks, n);
        assert_int_equal(step_now(&b), 100000);
        bench_release(&b);
    }
}

/* What holds a step up is there: cutting any one binding edge of the critical chain shows. */
static void a_graph_with_an_edge_cut_fails_its_own_test(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;
    size_t i, mark, shorter = 0;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    mark = rp_overlay_mark(&b.run.overlay);
    for (i = 0; i < b.run.tasks.edges.n; i++) {
        assert_ok(rp_overlay_set_lag(&b.run.overlay, (uint32_t)i, RP_LAG_CUT, &err), &err);
        shorter += step_now(&b) != 100000;
        rp_overlay_undo(&b.run.overlay, mark);
    }
    assert_true(shorter > 0);
    assert_int_equal(step_now(&b), 100000);
    bench_release(&b);
}

static void kernels_change_with_device_format_and_fusion(void **state)
{
    static const struct {
        const char *text;
        int64_t gemm, relu, add;
    } cases[] = {
        {"scale:gpu=0.5", 20000, 5000, 5000},
        {"gpu:H200=H100", 40000, 14328, 14328},       /* 4,800 / 3,350 of memory */
        {"gpu:H100=A100-40GB", 137436, 21543, 21543}, /* 67 / 19.5, and 3,350 / 1,555 */
        {"gpu:T4=B200", 4320, 2000, 2000},            /* nothing gets below the start of a kernel */
        {"dtype=bf16", 9900, 6000, 10000},      /* 0.19 up to 50 us; conversions 1,500 and 0.02 */
        {"tf32", 15200, 10000, 10000},          /* twice what bf16 takes: 0.38 */
        {"tf32+dtype=bf16", 9900, 6000, 10000}, /* a product has one format */
        {"batch=2x", 78000, 18000, 18000},      /* all but the first 2 us of a kernel */
        {"batch=50%", 21000, 6000, 6000},
        {"compile", 40000, 0, 10400},
        {"fuse", 40000, 0, 10400},
        {"fuse=elementwise_relu+dtype=bf16", 0, 0, 0}, /* no two of them in a row */
        {"swap=sgemm,elementwise_add", 10000, 10000, 40000},
        {"scale:elementwise_*=2+fuse", 40000, 0, 20800},
    };
    struct rp_err err = RP_ERR_INIT;
    struct bench b;
    size_t i, mark;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    mark = rp_overlay_mark(&b.run.overlay);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!cases[i].gemm) {
            assert_code(rp_whatif_apply(&b.run, cases[i].text, &err), RP_UNSUPPORTED);
        } else {
            apply(&b, cases[i].text);
            assert_int_equal(dur_of(&b, 0, "sgemm"), cases[i].gemm);
            assert_int_equal(dur_of(&b, 0, "elementwise_relu"), cases[i].relu);
            assert_int_equal(dur_of(&b, 0, "elementwise_add"), cases[i].add);
        }
        rp_overlay_undo(&b.run.overlay, mark);
        assert_int_equal(step_now(&b), 100000);
    }
    bench_release(&b);
}

static void kernels_that_convert_layouts_go(void **state)
{
    struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 50000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
        {'X', "kernel", "void cudnn::ops::nchwToNhwcKernel<float>", 0, 7, 5000, 8000, 1, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 4000, 2000, 2},
        {'X', "kernel", "sm90_xmma_fprop_tf32_conv_nhwc", 0, 7, 13000, 20000, 2, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 7000, 2000, 3},
        {'X', "kernel", "elementwise_relu", 0, 7, 33000, 5000, 3, 7},
    };
    struct rp_err err = RP_ERR_INIT;
    struct bench b = {.n = 1, .traces = {trace_of(rows, sizeof rows / sizeof rows[0])}};

    UNUSED_STATE(state);
    rp_arena_init(&b.arenas[0]);
    assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
    b.list[0] = &b.parts[0];
    assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
    b.run.lean = RP_LEAN_SLOWER; /* at most as long as before, and a quarter of the conversions */
    apply(&b, "channels-last");
    assert_int_equal(dur_of(&b, 0, "nchwToNhwc"), 2000);
    assert_int_equal(dur_of(&b, 0, "fprop"), 20000);
    rp_overlay_undo(&b.run.overlay, 0);
    b.run.lean = RP_LEAN_FASTER;
    apply(&b, "channels-last");
    assert_int_equal(dur_of(&b, 0, "fprop"), 14450);
    rp_overlay_undo(&b.run.overlay, 0);
    b.run.lean = RP_LEAN_NONE;
    apply(&b, "channels-last");
    assert_int_equal(dur_of(&b, 0, "nchwToNhwc"), 0);
    assert_int_equal(dur_of(&b, 0, "fprop"), 17000);
    assert_int_equal(dur_of(&b, 0, "relu"), 5000);
    bench_release(&b);
}

/* Convolutions for `single_ns` in float32 and for 20 us in tf32. */
static enum rp_whatif_verdict layout_verdict(int64_t single_ns, int64_t *left_ns)
{
    struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 60000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
        {'X', "kernel", "void cudnn::ops::nchwToNhwcKernel<float>", 0, 7, 5000, 8000, 1, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 4000, 2000, 2},
        {'X', "kernel", "sm90_xmma_fprop_tf32_conv_nhwc", 0, 7, 13000, 20000, 2, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 7000, 2000, 3},
        {'X', "kernel", "implicit_convolve_sgemm", 0, 7, 33000, single_ns, 3, 7},
    };
    struct rp_err err = RP_ERR_INIT, why = RP_ERR_INIT;
    struct bench b = {.n = 1, .traces = {trace_of(rows, sizeof rows / sizeof rows[0])}};

    rp_arena_init(&b.arenas[0]);
    assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
    b.list[0] = &b.parts[0];
    assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
    enum rp_whatif_verdict verdict = rp_whatif_applies(&rp_whatif_channels_last, &b.run, &why);
    apply(&b, "channels-last");
    *left_ns = dur_of(&b, 0, "nchwToNhwc");
    bench_release(&b);
    return verdict;
}

static void convolutions_in_float32_keep_their_layout(void **state)
{
    int64_t left_ns;

    UNUSED_STATE(state);
    assert_int_equal(layout_verdict(18000, &left_ns), RP_WHATIF_APPLIES);
    assert_int_equal(left_ns, 0);
    assert_int_equal(layout_verdict(22000, &left_ns), RP_WHATIF_NOT);
    assert_int_equal(left_ns, 8000); /* nothing becomes shorter */
}

/* More samples: the loader has more to do, transfers of gradients and launches have not. */
static void a_larger_batch_is_loaded_too(void **state)
{
    struct step_shape shapes[] = {usual, usual};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    apply(&b, "batch=3x");
    assert_int_equal(dur_of(&b, 1, "DataLoader"), 3000);
    assert_int_equal(dur_of(&b, 1, "AllReduce"), 20000);
    assert_int_equal(dur_of(&b, 1, "cudaLaunchKernel"), 4000);
    bench_release(&b);
}

/* What is not known makes the interval: it holds the prediction, and its ends are on either side.
 */
static void guesses_lean_to_both_sides(void **state)
{
    static const char *const texts[] = {"batch=2x", "batch=0.5x", "tf32", "compile"};
    struct bench b;
    size_t i, mark;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    mark = rp_overlay_mark(&b.run.overlay);
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t sum[RP_LEANS];
        int lean;

        for (lean = RP_LEAN_NONE; lean < RP_LEANS; lean++) {
            b.run.lean = (enum rp_sim_lean)lean;
            b.run.leans = false;
            apply(&b, texts[i]);
            assert_true(b.run.leans);
            sum[lean] = dur_of(&b, 0, "sgemm") + dur_of(&b, 0, "elementwise_add") +
                        dur_of(&b, 0, "aten::mm");
            rp_overlay_undo(&b.run.overlay, mark);
        }
        assert_true(sum[RP_LEAN_FASTER] < sum[RP_LEAN_NONE]);
        assert_true(sum[RP_LEAN_NONE] < sum[RP_LEAN_SLOWER]);
    }
    b.run.lean = RP_LEAN_SLOWER;
    apply(&b, "batch=2x"); /* work to the power of 1.05, and of 0.85 */
    assert_int_equal(dur_of(&b, 0, "sgemm"), 2000 + llround(38000 * pow(2, 1.05)));
    rp_overlay_undo(&b.run.overlay, mark);
    b.run.lean = RP_LEAN_FASTER;
    apply(&b, "batch=2x");
    assert_int_equal(dur_of(&b, 0, "sgemm"), 2000 + llround(38000 * pow(2, 0.85)));
    bench_release(&b);
}

/* A category or the name of an operator means its kernels: the host launches them no faster. */
static void scaling_by_name_is_about_the_device(void **state)
{
    static const struct {
        const char *text;
        int64_t gemm, op;
    } cases[] = {{"scale:matmul=2", 80000, 1000},
                 {"scale:aten::mm=2", 80000, 1000},
                 {"scale:host:aten::mm=2", 40000, 2000},
                 {"scale:host:matmul=2", 40000, 2000},
                 {"scale:cudaDeviceSynchronize=2", 40000, 1000}};
    struct bench b;
    size_t i, mark;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    mark = rp_overlay_mark(&b.run.overlay);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        apply(&b, cases[i].text);
        assert_int_equal(dur_of(&b, 0, "sgemm"), cases[i].gemm);
        assert_int_equal(dur_of(&b, 0, "aten::mm"), cases[i].op);
        rp_overlay_undo(&b.run.overlay, mark);
    }
    bench_release(&b);
}

/* The latency is 1 % of 20,000, since all transfers are alike. */
static void transfers_change_with_ranks_and_network(void **state)
{
    static const struct {
        const char *text;
        int64_t comm;
    } cases[] = {
        {"ranks=4", 200 * 3 + 29700},
        {"ranks=2", 20000},
        {"ranks=1", 0},
        {"ranks:tree=4", 400 + 19800},
        {"net.bandwidth=2x", 200 + 9900},
        {"net.bandwidth=50%", 200 + 39600},
        {"net.latency=2x", 400 + 19800},
        {"net.latency=1us", 2000 + 19800},
        {"net.bandwidth=4GB/s", 200 + 1000}, /* 4,000 bytes over a link at 4 bytes a ns */
        {"net.bandwidth=32Gbps", 200 + 1000},
    };
    struct step_shape shapes[] = {usual, usual};
    struct bench b;
    size_t i, mark;
    uint32_t r;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    mark = rp_overlay_mark(&b.run.overlay);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        apply(&b, cases[i].text);
        for (r = 0; r < 2; r++)
            assert_int_equal(dur_of(&b, r, "AllReduce"), cases[i].comm);
        assert_int_equal(step_now(&b), 80000 + cases[i].comm);
        rp_overlay_undo(&b.run.overlay, mark);
    }
    bench_release(&b);
}

static void slow_ranks_become_usual_ones(void **state)
{
    struct step_shape shapes[] = {usual, {60000 - 14000, false}};
    struct bench b;
    size_t mark;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    mark = rp_overlay_mark(&b.run.overlay);
    apply(&b, "straggler=median"); /* the same kernel takes 40,000 elsewhere */
    assert_int_equal(dur_of(&b, 0, "sgemm"), 40000);
    assert_int_equal(dur_of(&b, 1, "sgemm"), 40000);
    assert_int_equal(dur_of(&b, 1, "elementwise_add"), 10000);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "straggler=remove:1");
    assert_int_equal(dur_of(&b, 0, "sgemm"), 40000);
    assert_int_equal(dur_of(&b, 1, "sgemm"), llround(46000 * 60.0 / 66));
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "straggler=remove:0"); /* it is not the slow one */
    assert_int_equal(dur_of(&b, 0, "sgemm"), 40000);
    rp_overlay_undo(&b.run.overlay, mark);
    /* Deviation 4,243; the slowest of 8 is expected 0.845 deviations behind that of 2. */
    apply(&b, "ranks=8");
    assert_int_equal(dur_of(&b, 0, "sgemm"), 40000);
    assert_in_range(dur_of(&b, 1, "sgemm"), 46000 + 2300, 46000 + 2700);
    bench_release(&b);
}

static void the_host_waits_less(void **state)
{
    struct bench b;
    size_t mark;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    mark = rp_overlay_mark(&b.run.overlay);
    apply(&b, "dataloader=free");
    assert_int_equal(dur_of(&b, 0, "DataLoader"), 0);
    assert_int_equal(step_now(&b), 99000);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "dataloader=0.5x");
    assert_int_equal(dur_of(&b, 0, "DataLoader"), 500);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "no-sync");
    assert_true(step_now(&b) < 100000);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "cuda-graphs");
    /* 2,000 before the first launch; from the end of the wait to the next mark 10,000. */
    assert_int_equal(step_now(&b), 12000 + 80000 + 3 * 300);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "cuda-graphs=aten::add");
    assert_int_equal(dur_of(&b, 0, "aten::add"), 0);
    assert_true(dur_of(&b, 0, "aten::mm") > 0);
    bench_release(&b);
}

/* The host waits for a kernel, and goes on 2 us after it. */
static bool gains_at_least(int64_t wait_ns)
{
    struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 100000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 2000, 1},
        {'X', "kernel", "gemm", 0, 7, 5000, wait_ns - 3000, 1, 7},
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 4000, wait_ns},
        {'X', "cpu_op", "aten::add", 1, 1, 5000 + wait_ns, 94000 - wait_ns},
    };
    struct rp_err err = RP_ERR_INIT;
    struct bench b = {.n = 1, .traces = {trace_of(rows, sizeof rows / sizeof rows[0])}};

    rp_arena_init(&b.arenas[0]);
    assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
    b.list[0] = &b.parts[0];
    assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
    int64_t before = step_now(&b);
    size_t mark = rp_overlay_mark(&b.run.overlay);
    apply(&b, "no-sync");
    assert_true(step_now(&b) < before);
    rp_overlay_undo(&b.run.overlay, mark);
    b.run.lean = RP_LEAN_SLOWER;
    apply(&b, "no-sync");
    bool gains = step_now(&b) < before;
    assert_true(gains || b.run.leans);
    bench_release(&b);
    return gains;
}

static void short_waits_may_stay(void **state)
{
    UNUSED_STATE(state);
    assert_false(gains_at_least(31000)); /* 2 us of it are the call after the wait */
    assert_true(gains_at_least(33000));
}

static enum rp_whatif_verdict verdict_on(const struct rp_whatif *row, struct step_shape shape)
{
    struct rp_err why = RP_ERR_INIT;
    struct bench b;

    bench_init(&b, 1, &shape);
    enum rp_whatif_verdict verdict = rp_whatif_applies(row, &b.run, &why);
    assert_true(*why.text);
    bench_release(&b);
    return verdict;
}

static void a_device_that_works_gains_nothing_by_a_larger_batch(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(verdict_on(&rp_whatif_batch, (struct step_shape){66000, true}),
                     RP_WHATIF_APPLIES);
    assert_int_equal(verdict_on(&rp_whatif_batch, (struct step_shape){78000, true}), RP_WHATIF_NOT);
    assert_int_equal(verdict_on(&rp_whatif_dataloader, usual), RP_WHATIF_APPLIES);
}

/* The kernels end at 70,000 of each step. The transfer begins there, or beside the last two. */
static void communication_beside_and_alone(void **state)
{
    struct step_shape shapes[] = {usual, {40000, false, true}};
    struct bench b;
    size_t mark;

    UNUSED_STATE(state);
    bench_init(&b, 1, &shapes[0]);
    mark = rp_overlay_mark(&b.run.overlay);
    apply(&b, "no-overlap");
    assert_int_equal(step_now(&b), 100000);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "overlap"); /* the host goes on at 72,000, the next step when the transfer is done */
    assert_int_equal(step_now(&b), 90000); /* the first and the last; between them 80,000 */
    assert_true(b.run.leans);
    rp_overlay_undo(&b.run.overlay, mark);
    b.run.lean = RP_LEAN_MORE_LATENCY; /* nothing ever runs beside it: what follows may need it */
    apply(&b, "overlap");
    assert_int_equal(step_now(&b), 100000);
    bench_release(&b);
    bench_init(&b, 1, &shapes[1]);
    assert_int_equal(step_now(&b), 100000);
    mark = rp_overlay_mark(&b.run.overlay);
    apply(&b, "overlap");
    assert_false(b.run.leans);
    rp_overlay_undo(&b.run.overlay, mark);
    apply(&b, "no-overlap"); /* the last kernel waits for the transfer: 10,000 more */
    assert_int_equal(step_now(&b), 110000);
    bench_release(&b);
}

static void what_cannot_be_asked_is_said(void **state)
{
    static const struct {
        const char *text;
        enum rp_code code;
        const char *says;
    } cases[] = {
        {"", RP_USAGE, "missing"},
        {"fuse+", RP_USAGE, "missing"},
        {"fuze", RP_USAGE, "did you mean 'fuse'"},
        {"ranks=0", RP_USAGE, "ranks=8"},
        {"ranks=2.5", RP_USAGE, "ranks=8"},
        {"ranks=1e300", RP_USAGE, "ranks=8"},
        {"ranks", RP_USAGE, "ranks=8"},
        {"ranks:star=4", RP_USAGE, "tree"},
        {"net.bandwidth=fast", RP_USAGE, "100Gbps"},
        {"net.bandwidth=2", RP_USAGE, "100Gbps"},
        {"net.bandwidth=-2x", RP_USAGE, "100Gbps"},
        {"net.latency=nanus", RP_USAGE, "10us"},
        {"straggler=slow", RP_USAGE, "remove:<rank>"},
        {"straggler=remove:-1", RP_USAGE, "remove:<rank>"},
        {"straggler=remove:7", RP_UNSUPPORTED, "ranks 0 to 1"},
        {"no-sync=1", RP_USAGE, "no value"},
        {"dataloader=-1", RP_USAGE, "dataloader=free"},
        {"gpu=Voodoo", RP_USAGE, "known devices: GB200, B200"},
        {"gpu=H100", RP_UNSUPPORTED, "gpu:H100=H100"},
        {"dtype=fp4", RP_USAGE, "bf16"},
        {"swap=a", RP_USAGE, "swap=A,B"},
        {"swap=sgemm,nothing", RP_UNSUPPORTED, "both"},
        {"fuse=nothing", RP_UNSUPPORTED, "follow each other"},
        {"recompute", RP_UNSUPPORTED, "no backward pass"},
        {"recompute=", RP_USAGE, "recompute=aten::gelu"},
        {"channels-last", RP_UNSUPPORTED, "nchwToNhwc"},
        {"offload", RP_UNSUPPORTED, "optimizer"},
        {"batch", RP_USAGE, "factor"},
        {"batch=0x", RP_USAGE, "factor"},
        {"tf32=1", RP_USAGE, "no value"},
        {"recompute=nothing", RP_UNSUPPORTED, "matches 'nothing'"},
        {"recompute=sgemm", RP_UNSUPPORTED, "no step has a backward pass"},
        {"cuda-graphs=nothing", RP_UNSUPPORTED, "belongs to 'nothing'"},
        {"cuda-graphs=", RP_USAGE, "backward"},
        {"parallel-update", RP_UNSUPPORTED, "gradient"},
        {"bucket=1MB", RP_UNSUPPORTED, "AccumulateGrad"},
        {"scale:all=0", RP_USAGE, "factor"},
        {"scale:nothing=2", RP_UNSUPPORTED, "matches 'nothing'"},
        {"scale:no+thing=2", RP_UNSUPPORTED, "matches 'no+thing'"},
        {"scale:\"fuse+fuse\"=2", RP_UNSUPPORTED, "matches 'fuse+fuse'"},
        {"swap=\"a,b\",c", RP_UNSUPPORTED, "both 'a,b' and 'c'"},
    };
    struct step_shape shapes[] = {usual, usual};
    struct bench b;
    size_t i, mark;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    mark = rp_overlay_mark(&b.run.overlay);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_err err = RP_ERR_INIT;
        enum rp_code code = rp_whatif_apply(&b.run, cases[i].text, &err);

        if (code != cases[i].code || !strstr(err.text, cases[i].says))
            fail_msg("'%s': %s: %s", cases[i].text, rp_code_name(code), err.text);
        rp_overlay_undo(&b.run.overlay, mark);
    }
    bench_release(&b);
}

static void a_run_without_communication_says_so(void **state)
{
    static const char *const texts[] = {"ranks=2", "net.bandwidth=2x", "net.latency=2x",
                                        "overlap", "no-overlap",       "straggler=median"};
    struct step_shape alone = {40000, true};
    struct bench b;
    size_t i;

    UNUSED_STATE(state);
    bench_init(&b, 1, &alone);
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_code(rp_whatif_apply(&b.run, texts[i], &err), RP_UNSUPPORTED);
    }
    bench_release(&b);
}

static void names_of_kernels_tell_16_bits(void **state)
{
    static const char *const half[] = {"nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT",
                                       "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
                                       "nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT",
                                       "Cijk_Ailk_Bjlk_BBS_BH_MT128x128x32",
                                       "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn",
                                       "pytorch_flash::flash_fwd_kernel"};
    static const char *const single[] = {
        "nvjet_sss_tf32_128x256_TNT", "nvjet_sm90_sss_128x128_TNT",    "nvjet_", "nvjet_sm90",
        "ampere_sgemm_128x64_tn",     "Cijk_Ailk_Bljk_SB_MT128x128x32"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof half / sizeof half[0]; i++)
        assert_true(rp_kernel_traits(half[i]) & RP_KERNEL_HALF);
    for (i = 0; i < sizeof single / sizeof single[0]; i++)
        assert_false(rp_kernel_traits(single[i]) & RP_KERNEL_HALF);
    assert_true(rp_kernel_traits("cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4") &
                RP_KERNEL_TF32);
    assert_false(rp_kernel_traits("cutlass_80_simt_sgemm_128x64_8x5_nt_align1") & RP_KERNEL_TF32);
}

/* Each alone, undone: the same bits. */
static void every_what_if_can_be_taken_back(void **state)
{
    static const char *const texts[] = {"scale:all=3",      "cuda-graphs",
                                        "ranks=16",         "net.bandwidth=3x",
                                        "net.latency=10us", "no-sync",
                                        "straggler=median", "no-profiler",
                                        "dataloader=free",  "overlap",
                                        "no-overlap",       "swap=sgemm,elementwise",
                                        "dtype=bf16",       "fuse",
                                        "scale:sgemm=2",    "cuda-graphs=forward+fuse",
                                        "gpu:H100=A100",    "overlap+fuse+ranks=4",
                                        "batch=2x",         "tf32",
                                        "compile",          "batch=2x+compile+cuda-graphs"};
    struct step_shape shapes[] = {usual, {46000, false}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_result before = {0}, after = {0};
    struct bench b;
    size_t i, mark;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    mark = rp_overlay_mark(&b.run.overlay);
    assert_ok(rp_simulate(&b.run.overlay, &before, &err), &err);
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        apply(&b, texts[i]);
        assert_true(step_now(&b) > 0);
        rp_overlay_undo(&b.run.overlay, mark);
        assert_ok(rp_simulate(&b.run.overlay, &after, &err), &err);
        assert_int_equal(after.start_ns.n, before.start_ns.n);
        assert_memory_equal(after.start_ns.at, before.start_ns.at, before.start_ns.n * 8);
        assert_memory_equal(after.end_ns.at, before.end_ns.at, before.end_ns.n * 8);
    }
    rp_sim_result_release(&before);
    rp_sim_result_release(&after);
    bench_release(&b);
}

int test_whatifs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recording_is_repeated),
        cmocka_unit_test(a_graph_with_an_edge_cut_fails_its_own_test),
        cmocka_unit_test(kernels_change_with_device_format_and_fusion),
        cmocka_unit_test(kernels_that_convert_layouts_go),
        cmocka_unit_test(convolutions_in_float32_keep_their_layout),
        cmocka_unit_test(a_larger_batch_is_loaded_too),
        cmocka_unit_test(guesses_lean_to_both_sides),
        cmocka_unit_test(scaling_by_name_is_about_the_device),
        cmocka_unit_test(transfers_change_with_ranks_and_network),
        cmocka_unit_test(slow_ranks_become_usual_ones),
        cmocka_unit_test(the_host_waits_less),
        cmocka_unit_test(short_waits_may_stay),
        cmocka_unit_test(a_device_that_works_gains_nothing_by_a_larger_batch),
        cmocka_unit_test(communication_beside_and_alone),
        cmocka_unit_test(what_cannot_be_asked_is_said),
        cmocka_unit_test(a_run_without_communication_says_so),
        cmocka_unit_test(every_what_if_can_be_taken_back),
        cmocka_unit_test(names_of_kernels_tell_16_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
