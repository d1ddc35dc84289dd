/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a training step: its profiler's cost, its optimizer, its backward pass, and
 * where it begins and ends. Three steps of 200 us on one thread:
 *
 *     thread    [12 views][tiny][gelu][GeluBackward0 [AccumulateGrad]][Optimizer.step ......][sync]
 *     stream 7                [tiny 1][gelu_fwd 20][gelu_bwd 30][multi_tensor 20]
 */
#include "outcomes/outcomes.h"
#include "run_fixtures.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/transport.h"
#include "sim/simulate.h"
#include "sim/whatif/optimizer_kind.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct recipe {
    const char *optimizer, *op, *reads; /* spans; reads: NULL or "aten::item" */
    bool shapes;
};

static const struct recipe adamw = {"Optimizer.step#AdamW.step", "aten::_foreach_mul_",
                                    "aten::item", false};

static size_t launch(struct row *out, int64_t host, int64_t corr, const char *kernel, int64_t at,
                     int64_t dur)
{
    out[0] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, host, 2000, corr};
    out[1] = (struct row){'X', "kernel", kernel, 0, 7, at, dur, corr, 7};
    return 2;
}

static size_t training_rows(struct row *out, int k, const struct recipe *r)
{
    static char marks[STEPS][24];
    int64_t at = 200000 * k, corr = 10 * k + 1;
    size_t n = 0;
    int i;

    snprintf(marks[k], sizeof marks[k], "ProfilerStep#%d", k);
    out[n++] = (struct row){'X', "user_annotation", marks[k], 1, 1, at, 199000};
    for (i = 0; i < 12; i++)
        out[n++] = (struct row){'X', "cpu_op", "aten::view", 1, 1, at + 1000 + 2000 * i, 500};
    if (r->shapes) {
        out[n - 1].text_key = "Input Dims";
        out[n - 1].text = "[[4]]";
    }
    out[n++] = (struct row){'X', "cpu_op", "aten::fill_", 1, 1, at + 26000, 6000};
    n += launch(out + n, at + 28000, corr, "tiny", at + 36000, 1000);
    out[n++] = (struct row){'X', "cpu_op", "aten::gelu", 1, 1, at + 33000, 6000};
    n += launch(out + n, at + 35000, corr + 1, "gelu_fwd", at + 42000, 20000);
    out[n++] = (struct row){'X',  "cpu_op", "autograd::engine::evaluate_function: GeluBackward0",
                            1,    1,        at + 62000,
                            20000};
    n += launch(out + n, at + 64000, corr + 2, "gelu_bwd", at + 75000, 30000);
    out[n++] =
        (struct row){'X', "cpu_op", "torch::autograd::AccumulateGrad", 1, 1, at + 72000, 4000};
    if (r->shapes) {
        out[n - 1].text_key = "Input Dims";
        out[n - 1].text = "[[3000, 1000]]";
        out[n - 1].text_key2 = "Input type";
        out[n - 1].text2 = "[\"float\"]";
    }
    out[n++] = (struct row){'X', "user_annotation", r->optimizer, 1, 1, at + 100000, 60000};
    out[n++] = (struct row){'X', "cpu_op", r->op, 1, 1, at + 105000, 10000};
    n += launch(out + n, at + 107000, corr + 3, "multi_tensor", at + 120000, 20000);
    if (r->reads)
        out[n++] = (struct row){'X', "cpu_op", r->reads, 1, 1, at + 130000, 3000};
    out[n++] = (struct row){'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, at + 165000, 20000};
    return n;
}

static void part_init(struct bench *b, struct rp_trace *t)
{
    struct rp_err err = RP_ERR_INIT;

    memset(b, 0, sizeof *b);
    b->n = 1;
    b->traces[0] = t;
    rp_arena_init(&b->arenas[0]);
    assert_ok(rp_sim_part_init(&b->parts[0], t, &b->arenas[0], &err), &err);
    b->list[0] = &b->parts[0];
    assert_ok(rp_sim_run_init(&b->run, b->list, 1, &err), &err);
}

static void training_init(struct bench *b, const struct recipe *r)
{
    struct row rows[STEPS * 32];
    size_t n = 0;
    int k;

    for (k = 0; k < STEPS; k++)
        n += training_rows(rows + n, k, r);
    part_init(b, trace_of(rows, n));
}

static void apply(struct bench *b, const char *text)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_whatif_apply(&b->run, text, &err), &err);
}

static int64_t dur_of(const struct bench *b, const char *part)
{
    return b->run.overlay.dur_ns.at[node_called(b, 0, part, 0)];
}

/* ------------------------------------------------------------------ the profiler's cost */

static void the_cost_of_a_span_follows_quick_operators(void **state)
{
    struct recipe with_shapes = adamw;
    struct rp_sim_cost cost;
    struct bench b;
    double slow = sqrt(500 / 600.0);

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    assert_int_equal(b.parts[0].quick_ns, 500);
    assert_true(b.parts[0].with_device && !b.parts[0].with_shapes && !b.parts[0].with_frames);
    cost = rp_sim_cost_of(&b.parts[0]);
    assert_true(fabs(cost.span_ns - 4.4 * 500 * slow) < 1e-6);
    assert_true(fabs(cost.call_ns - 2.8 * 500 * slow) < 1e-6);
    assert_true(fabs(cost.frame_ns - 0.7 * 500 * slow) < 1e-6);
    bench_release(&b);

    with_shapes.shapes = true;
    training_init(&b, &with_shapes);
    assert_true(b.parts[0].with_shapes);
    assert_true(fabs(rp_sim_cost_of(&b.parts[0]).span_ns - 1.25 * cost.span_ns) < 1e-6);
    bench_release(&b);
}

/* Half of the recorded time is the most, whatever quick operators say. */
static void recording_never_costs_more_than_half(void **state)
{
    struct rp_sim_part p = {.quick_ns = 10000, .with_device = true, .nspans = 10, .ncalls = 10};
    struct rp_sim_cost cost;

    UNUSED_STATE(state);
    p.graph.end_ns = 1000000;
    cost = rp_sim_cost_of(&p);
    assert_true(fabs(10 * cost.span_ns + 10 * cost.call_ns - 500000) < 1e-3);
    assert_true(fabs(cost.span_ns / cost.call_ns - 4.4 / 2.8) < 1e-9);
    p.graph.end_ns = 2000000;
    assert_true(fabs(rp_sim_cost_of(&p).span_ns - 4.4 * 10000 * 1.25) < 1e-6);
}

static int64_t unprofiled(struct bench *b)
{
    struct rp_err err = RP_ERR_INIT;
    size_t mark = rp_overlay_mark(&b->run.overlay);
    int64_t step;

    assert_ok(rp_sim_cost_drop(&b->run, 1, &err), &err);
    step = step_now(b);
    rp_overlay_undo(&b->run.overlay, mark);
    return step;
}

static void the_cost_is_set_by_an_unprofiled_step(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;
    int64_t estimate;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    assert_int_equal(step_now(&b), 200000);
    estimate = unprofiled(&b);
    assert_in_range(estimate, 120000, 180000);
    assert_ok(rp_sim_cost_calibrate(&b.run, 180000, &err), &err);
    assert_true(b.run.cost_factor > 0 && b.run.cost_factor < 1);
    assert_in_range(unprofiled(&b), 179000, 181000);
    assert_ok(rp_sim_cost_calibrate(&b.run, estimate, &err), &err);
    assert_true(fabs(b.run.cost_factor - 1) < 0.05);
    assert_ok(rp_sim_cost_calibrate(&b.run, 250000, &err), &err); /* recording cost nothing */
    assert_true(b.run.cost_factor == 0);
    assert_int_equal(unprofiled(&b), 200000);
    assert_code(rp_sim_cost_calibrate(&b.run, 1000, &err), RP_USAGE);
    assert_non_null(strstr(err.text, "is too short"));
    bench_release(&b);
}

/* The recording says by itself how long a step is without it, as a part of the recorded one; what
   it says may be impossible, and then the estimate stays. */
static void the_cost_is_what_the_recording_says(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;
    int64_t estimate;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    estimate = unprofiled(&b);
    b.parts[0].unrecorded_ratio = 0.9;
    assert_ok(rp_sim_cost_take_measured(&b.run, &err), &err);
    assert_true(b.run.cost_known);
    assert_in_range(unprofiled(&b), 179000, 181000);
    b.parts[0].unrecorded_ratio = 0.001;
    assert_ok(rp_sim_cost_take_measured(&b.run, &err), &err);
    assert_false(b.run.cost_known);
    assert_int_equal(unprofiled(&b), estimate);
    bench_release(&b);
}

/* A recording of operators that launch has no quick ones: nothing is taken out until a step without
   the recorder is known. */
static void a_known_step_sets_the_cost_without_quick_operators(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    b.parts[0].quick_ns = 0;
    b.run.cost_factor = rp_sim_cost_usual(&b.run);
    assert_false(rp_sim_cost_is_known(&b.run));
    assert_int_equal(unprofiled(&b), 200000);
    assert_ok(rp_sim_cost_calibrate(&b.run, 180000, &err), &err);
    assert_true(rp_sim_cost_is_known(&b.run) && !b.run.cost_flat);
    assert_in_range(unprofiled(&b), 179000, 181000);
    b.parts[0].nspans = b.parts[0].ncalls = 0;
    assert_code(rp_sim_cost_calibrate(&b.run, 180000, &err), RP_UNSUPPORTED);
    bench_release(&b);
}

/* Where the device limits the step, its length says nothing about the host's. */
static void a_step_of_the_device_keeps_the_estimate(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;
    size_t i;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    for (i = 0; i < STEPS; i++)
        assert_ok(
            rp_overlay_set_dur(&b.run.overlay, node_called(&b, 0, "gelu_bwd", i), 2000000, &err),
            &err);
    assert_ok(rp_sim_cost_calibrate(&b.run, step_now(&b) - 20000, &err), &err);
    assert_true(b.run.cost_flat && b.run.cost_factor == 1);
    bench_release(&b);
}

/* ------------------------------------------------------------------ the optimizer */

/* Spans, and what they tell: kind, implementation, whether the host counts, passes, passes fused.
 */
struct optimizer_case {
    struct recipe recipe;
    const char *name;
    enum rp_optimizer_style style;
    bool reads_host;
    double passes, fused;
};

#define ADAMW "Optimizer.step#AdamW.step"
#define SGD   "Optimizer.step#SGD.step"

static const struct optimizer_case optimizers[] = {
    {{ADAMW, "aten::_foreach_mul_", "aten::item"}, "AdamW", RP_OPTIMIZER_FOREACH, true, 20, 7},
    {{ADAMW, "aten::_foreach_mul_", NULL}, "AdamW", RP_OPTIMIZER_FOREACH, false, 24, 7},
    {{"Optimizer.step#Adam.step", "aten::lerp_", "aten::item"},
     "Adam",
     RP_OPTIMIZER_LOOP,
     true,
     18,
     7},
    {{SGD, "aten::mul_", NULL}, "SGD", RP_OPTIMIZER_LOOP, false, 8, 5},
    {{SGD, "aten::_foreach_add_", NULL}, "SGD", RP_OPTIMIZER_FOREACH, false, 3, 3},
    {{ADAMW, "aten::_fused_adamw_", NULL}, "AdamW", RP_OPTIMIZER_FUSED, false, 7, 7},
    {{"Optimizer.step#Lion.step", "aten::mul_", NULL},
     "optimizer",
     RP_OPTIMIZER_LOOP,
     false,
     20,
     7},
};

static void the_optimizer_is_known_by_its_spans(void **state)
{
    struct rp_optimizer_kind kind;
    struct bench b;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        training_init(&b, &optimizers[i].recipe);
        rp_optimizer_kind(&b.run, 0, &kind);
        assert_string_equal(kind.name, optimizers[i].name);
        assert_int_equal(kind.style, optimizers[i].style);
        assert_int_equal(kind.reads_host, optimizers[i].reads_host);
        assert_true(kind.passes == optimizers[i].passes && kind.fused == optimizers[i].fused);
        assert_true(kind.parameters == 1);
        bench_release(&b);
    }
}

static void fusing_saves_passes_over_memory(void **state)
{
    struct recipe sgd = {"Optimizer.step#SGD.step", "aten::_foreach_mul_", NULL, false};
    struct recipe fused = {"Optimizer.step#AdamW.step", "aten::_fused_adamw_", NULL, false};
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    apply(&b, "fused-optimizer");
    assert_int_equal(dur_of(&b, "multi_tensor"), 6650); /* 7/20 of what it takes above 1,000 */
    assert_int_equal(dur_of(&b, "gelu_bwd"), 30000);
    bench_release(&b);
    training_init(&b, &sgd);
    apply(&b, "fused-optimizer");
    assert_int_equal(dur_of(&b, "multi_tensor"), 11875); /* 5/8 */
    bench_release(&b);
    training_init(&b, &fused);
    assert_code(rp_whatif_apply(&b.run, "fused-optimizer", &err), RP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "AdamW is fused already"));
    bench_release(&b);
}

/* 24 instead of 20 passes, two kernels for the one parameter, and 40 us. */
static void a_captured_adam_becomes_capturable(void **state)
{
    struct recipe already = {"Optimizer.step#AdamW.step", "aten::_foreach_mul_", NULL, false};
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    apply(&b, "cuda-graphs");
    assert_int_equal(dur_of(&b, "multi_tensor"), 24000 + 3200 + 40000);
    /* 28,000 before the first launch; from the last wait, of 20,000, to the next mark 35,000. */
    assert_int_equal(step_now(&b), 63000 + 1000 + 20000 + 30000 + 67200 + 3 * 300);
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "cuda-graphs=forward");
    assert_int_equal(dur_of(&b, "multi_tensor"), 20000);
    bench_release(&b);
    training_init(&b, &already);
    apply(&b, "cuda-graphs");
    assert_int_equal(step_now(&b), 63000 + 1000 + 20000 + 30000 + 20000 + 3 * 300);
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "cuda-graphs+fused-optimizer"); /* a fused one needs no more kernels */
    assert_int_equal(dur_of(&b, "multi_tensor"), 6650);
    bench_release(&b);
}

static void what_runs_again_is_in_the_backward_pass(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    apply(&b, "recompute=gelu_fwd");
    assert_int_equal(dur_of(&b, "gelu_bwd"), 50000);
    assert_int_equal(b.run.way, RP_WAY_LONGER);
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "recompute=gelu_fwd+scale:gpu=0.5"); /* which way is not known then */
    assert_int_equal(b.run.way, RP_WAY_ANY);
    bench_release(&b);
    training_init(&b, &adamw);
    assert_code(rp_whatif_apply(&b.run, "recompute=multi_tensor", &err), RP_UNSUPPORTED);
    assert_contains(err.text, "nothing outside the backward pass matches");
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "recompute=aten::gelu"); /* and what its operator launched, and the host's part */
    assert_int_equal(dur_of(&b, "gelu_bwd"), 50000);
    assert_int_equal(dur_of(&b, "GeluBackward0"), 2000 + 6000);
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "recompute"); /* 0.85 of what operators do before the backward pass */
    assert_int_equal(dur_of(&b, "gelu_bwd"), 30000 + 17850);
    assert_int_equal(dur_of(&b, "GeluBackward0"), 2000 + 15300);
    assert_int_equal(dur_of(&b, "multi_tensor"), 20000);
    bench_release(&b);
    training_init(&b, &adamw);
    b.run.lean = RP_LEAN_SLOWER; /* all of it, at most */
    apply(&b, "recompute");
    assert_int_equal(dur_of(&b, "gelu_bwd"), 30000 + 21000);
    bench_release(&b);
}

static void a_pass_is_fused_and_compiled_for_itself(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    assert_code(rp_whatif_apply(&b.run, "fuse=gelu_*", &err), RP_UNSUPPORTED);
    apply(&b, "fuse=*");
    assert_int_equal(dur_of(&b, "gelu_fwd"), 20800); /* and what is before it */
    assert_int_equal(dur_of(&b, "gelu_bwd"), 30000);
    assert_int_equal(dur_of(&b, "multi_tensor"), 20000);
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "compile");
    assert_int_equal(dur_of(&b, "gelu_bwd"), 30000);
    assert_int_equal(dur_of(&b, "GeluBackward0"), 1100 + 2300000);
    assert_int_equal(dur_of(&b, "aten::gelu"), 1100);
    assert_int_equal(dur_of(&b, "aten::_foreach_mul_"), 2000); /* the optimizer is not compiled */
    bench_release(&b);
    training_init(&b, &adamw);
    apply(&b, "cuda-graphs+compile"); /* in either order: no generated code runs on the host */
    assert_int_equal(dur_of(&b, "GeluBackward0"), 0);
    bench_release(&b);
}

/* 0.55 of 500, and the forward pass is entered; another run differs by 0.6, its kernels by less. */
static void a_compiled_pass_is_entered(void **state)
{
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    apply(&b, "compile");
    assert_int_equal(dur_of(&b, "aten::view"), 275 + 700000);
    bench_release(&b);
    training_init(&b, &adamw);
    b.run.lean = RP_LEAN_SLOWER;
    apply(&b, "compile");
    assert_int_equal(dur_of(&b, "aten::view"), 440 + 1120000);
    assert_int_equal(dur_of(&b, "gelu_bwd"), 30000); /* never longer than before */
    bench_release(&b);
    training_init(&b, &adamw);
    b.run.lean = RP_LEAN_FASTER;
    apply(&b, "compile");
    assert_int_equal(dur_of(&b, "gelu_bwd"), 28571); /* 30,000 / 1.05 */
    bench_release(&b);
}

/* Three gradients of 20 quick operators each, 30 us, of 180 us. */
static void a_fused_optimizer_takes_the_host_less(void **state)
{
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    apply(&b, "fused-optimizer");
    assert_int_equal(dur_of(&b, "aten::_foreach_mul_"), 333); /* a sixth of 2,000 */
    bench_release(&b);
}

/* 12 MB of gradients at 50 GB/s, 7 passes over them at 60 GB/s, and the way back. */
static void an_optimizer_on_the_host_copies_and_updates(void **state)
{
    struct recipe with_shapes = adamw;
    struct rp_err err = RP_ERR_INIT;
    struct bench b;
    size_t mark;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    assert_code(rp_whatif_apply(&b.run, "offload", &err), RP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "record_shapes"));
    bench_release(&b);
    with_shapes.shapes = true;
    training_init(&b, &with_shapes);
    mark = rp_overlay_mark(&b.run.overlay);
    apply(&b, "offload");
    assert_int_equal(dur_of(&b, "Optimizer.step"), 240000 + 1400000);
    assert_int_equal(dur_of(&b, "multi_tensor"), 240000);
    assert_int_equal(dur_of(&b, "aten::_foreach_mul_"), 0);
    assert_true(step_now(&b) > 200000 + 1800000);
    rp_overlay_undo(&b.run.overlay, mark);
    assert_int_equal(step_now(&b), 200000);
    b.run.lean = RP_LEAN_FASTER;
    apply(&b, "offload");
    assert_int_equal(dur_of(&b, "multi_tensor"), 120000);
    bench_release(&b);
}

static void more_samples_do_not_make_more_parameters(void **state)
{
    struct bench b;

    UNUSED_STATE(state);
    training_init(&b, &adamw);
    apply(&b, "batch=2x");
    assert_int_equal(dur_of(&b, "tiny"), 1000);
    assert_int_equal(dur_of(&b, "gelu_fwd"), 38000);
    assert_int_equal(dur_of(&b, "gelu_bwd"), 58000);
    assert_int_equal(dur_of(&b, "multi_tensor"), 20000);
    bench_release(&b);
}

/* ------------------------------------------------------------------ where steps begin */

/* Marks with unrecorded time before the first and behind the last span. */
static void steps_without_device_work_go_from_mark_to_mark(void **state)
{
    struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 50000},
        {'X', "cpu_op", "aten::mm", 1, 1, 10000, 20000},
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 50000, 60000},
        {'X', "cpu_op", "aten::mm", 1, 1, 75000, 20000},
    };
    struct bench b;

    UNUSED_STATE(state);
    part_init(&b, trace_of(rows, 4));
    assert_int_equal(b.parts[0].measured_ns, 55000); /* of 50,000 and 60,000 */
    assert_int_equal(step_now(&b), 55000);           /* not the 65,000 between the spans */
    apply(&b, "scale:all=2");
    assert_int_equal(step_now(&b), 110000);
    bench_release(&b);
    part_init(&b, trace_of(rows, 2));
    assert_int_equal(b.parts[0].measured_ns, 50000);
    assert_int_equal(step_now(&b), 50000); /* not the 20,000 of the span */
    apply(&b, "scale:aten::mm=2");
    assert_int_equal(step_now(&b), 70000);
    bench_release(&b);
}

/* The mark's thread recorded nothing, or nothing was recorded in the step at all. */
static void steps_whose_thread_is_empty_are_timed_by_others(void **state)
{
    struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 50000},
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 50000, 70000},
        {'X', "user_annotation", "ProfilerStep#2", 1, 1, 120000, 40000},
        {'X', "cpu_op", "aten::mm", 1, 2, 10000, 20000},
        {'X', "cpu_op", "aten::mm", 1, 2, 60000, 20000},
        {'X', "cpu_op", "aten::mm", 1, 2, 130000, 20000},
        {'X', "cpu_op", "aten::mm", 1, 2, 170000, 20000},
    };
    struct bench b;

    UNUSED_STATE(state);
    part_init(&b, trace_of(rows, 7));
    assert_int_equal(b.parts[0].measured_ns, 50000); /* of 50,000, 70,000 and 40,000 */
    assert_int_equal(step_now(&b), 50000);
    bench_release(&b);
    rows[4].ts = 125000; /* the second step is empty */
    rows[5].ts = 146000;
    part_init(&b, trace_of(rows, 7));
    assert_int_equal(step_now(&b), 50000);
    bench_release(&b);
}

/* ------------------------------------------------------------------ the transport's doubts */

/* Equal transfers of 4,000 bytes in 20,000 ns do not tell latency from rate. */
static void a_transport_leans_to_what_is_not_known(void **state)
{
    static const struct {
        enum rp_sim_lean lean;
        int64_t latency_ns, same_ns, double_ns;
    } cases[] = {
        {RP_LEAN_NONE, 200, 20000, 39800},           {RP_LEAN_LESS_LATENCY, 0, 20000, 40000},
        {RP_LEAN_MORE_LATENCY, 14000, 20000, 26000}, {RP_LEAN_SLOWER, 216, 21600, 42984},
        {RP_LEAN_FASTER, 185, 18518, 36851},
    };
    struct step_shape shapes[] = {{40000, false, false}, {40000, false, false}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_transport t;
    struct bench b;
    size_t i;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        b.run.lean = cases[i].lean;
        assert_ok(rp_transport_fit(&b.run, &t, &err), &err);
        assert_true(t.one_size);
        assert_in_range((int64_t)(t.latency_ns + 0.5), cases[i].latency_ns,
                        cases[i].latency_ns + 1);
        assert_in_range(rp_transport_ns(&t, 4000), cases[i].same_ns - 1, cases[i].same_ns + 1);
        assert_in_range(rp_transport_ns(&t, 8000), cases[i].double_ns - 2, cases[i].double_ns + 2);
    }
    bench_release(&b);
}

/* For twice the bytes of the largest that was recorded a byte takes longer, up to eight times. */
static void larger_transfers_than_recorded_are_slower(void **state)
{
    static const struct {
        int64_t bytes, ns;
    } cases[] = {{500, 510},   {1000, 1010},  {2000, 2170},
                 {4000, 4676}, {8000, 10088}, {16000, 20165}};
    struct rp_transport t = {
        .bytes_per_ns = 1, .latency_ns = 10, .n = 3, .most_bytes = 1000, .slower_by_twice = 0.08};
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_in_range(rp_transport_ns(&t, cases[i].bytes), cases[i].ns - 1, cases[i].ns + 1);
    t.slower_by_twice = 0;
    assert_int_equal(rp_transport_ns(&t, 16000), 16010);
}

/* Processes that were started together share a machine: then more ranks wait for its cores. */
static void ranks_of_one_machine_wait_for_its_cores(void **state)
{
    static const struct {
        int64_t pids[2];
        bool shared;
    } cases[] = {{{100, 101}, true},
                 {{101, 100}, true},
                 {{100, 9000}, false},
                 {{7, 7}, false},
                 {{0, 1}, false}};
    struct step_shape shapes[] = {{40000, false, false}, {40000, false, false}};
    struct rp_err err = RP_ERR_INIT;
    int64_t apart_ns = 0;
    size_t i, k;

    UNUSED_STATE(state);
    for (k = 0; k < 2; k++) /* first those that do not */
        for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct bench b;
            int64_t step;

            if (cases[i].shared != (k == 1))
                continue;
            bench_init(&b, 2, shapes);
            b.parts[0].collectives.on_host = b.parts[1].collectives.on_host = true;
            b.parts[0].pid = cases[i].pids[0];
            b.parts[1].pid = cases[i].pids[1];
            assert_ok(rp_whatif_apply(&b.run, "ranks=8", &err), &err);
            step = step_now(&b);
            if (!k)
                assert_true(!apart_ns || step == apart_ns);
            else
                assert_true(step > 2 * apart_ns);
            apart_ns = k ? apart_ns : step;
            bench_release(&b);
        }
}

/* What is not known changes a step with and without the what-if alike: the change is known better
   than either. */
static void the_interval_of_a_change_is_that_of_two_runs(void **state)
{
    static const char *const whatifs[] = {"scale:all=2", "ranks=4", "scale:compute=0.5"};
    struct step_shape shapes[] = {{40000, false, false}, {44000, false, false}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_asked asked = {.whatifs = whatifs, .nwhatifs = 3};
    struct rp_sim_answer answer = {0};
    struct rp_arena arena;
    struct bench b;
    size_t i;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    bench_init(&b, 2, shapes);
    assert_ok(rp_sim_answer(b.list, 2, &asked, &arena, &answer, &err), &err);
    assert_int_equal(answer.npredictions, 3);
    for (i = 0; i < answer.npredictions; i++) {
        const struct rp_sim_prediction *p = &answer.predictions[i];

        if (p->low_ns == RP_ABSENT_I64) {
            assert_true(isnan(p->change_low_ratio) && isnan(p->change_high_ratio));
            continue;
        }
        assert_true(p->change_low_ratio <= p->change_ratio + 1e-9);
        assert_true(p->change_high_ratio >= p->change_ratio - 1e-9);
        assert_non_null(p->uncertain);
    }
    assert_true(answer.predictions[1].change_low_ratio < answer.predictions[1].change_high_ratio);
    assert_string_equal(answer.predictions[1].uncertain,
                        "the latency of the transport is estimated");
    bench_release(&b);
    rp_arena_release(&arena);
}

/* Seven outcomes of a change on this device that were as predicted: the intervals of the change and
   of the step become narrower at both ends. */
static void outcomes_narrow_both_ends(void **state)
{
    static const char *const whatifs[] = {"compile"};
    struct rp_sim_asked asked = {.whatifs = whatifs, .nwhatifs = 1};
    struct step_shape shape = {40000, false, false};
    struct rp_sim_prediction p[2];
    char folder[] = "/tmp/reprise-sim-test-XXXXXX", path[64];
    struct bench b;

    UNUSED_STATE(state);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_DATA_HOME", folder, 1), 0);
    bench_init(&b, 1, &shape);
    b.parts[0].gpu = "NVIDIA H200";
    for (int i = 0; i < 2; i++) {
        struct rp_err err = RP_ERR_INIT;
        struct rp_sim_answer answer = {0};
        struct rp_arena arena = RP_ARENA_INIT;

        assert_ok(rp_sim_answer(b.list, 1, &asked, &arena, &answer, &err), &err);
        p[i] = answer.predictions[0];
        assert_int_equal(p[i].tries, i ? 7 : 0);
        for (int k = 0; !i && k < 7; k++)
            assert_ok(rp_outcomes_add(&(struct rp_outcome){.device = "NVIDIA H200",
                                                           .framework = "torch 2.9",
                                                           .change = "compile",
                                                           .parameters = k,
                                                           .predicted = 0.7,
                                                           .measured = 0.7},
                                      1, &err),
                      &err);
        rp_arena_release(&arena);
    }
    assert_true(p[1].low_ns > p[0].low_ns && p[1].high_ns < p[0].high_ns);
    assert_true(p[1].change_low_ratio > p[0].change_low_ratio);
    assert_true(p[1].change_high_ratio < p[0].change_high_ratio);
    b.parts[0].gpu = NULL;
    bench_release(&b);
    snprintf(path, sizeof path, "%s/reprise/outcomes.tsv", folder);
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    unsetenv("XDG_DATA_HOME");
}

/* A collective that no node of the graph stands for is no reason to refuse. */
static void a_collective_without_work_is_no_error(void **state)
{
    struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 50000},
        {'X', "cpu_op", "aten::mm", 1, 1, 10000, 20000},
        {'X', "user_annotation", "gloo:all_reduce", 1, 2, 60000, 5000, 0, 0, 0, "In msg nelems",
         1000, 0, "dtype", "Float", "Group size", 2},
    };
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_asked asked = {0};
    struct rp_sim_answer answer = {0};
    struct rp_arena arena;
    struct bench b;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    part_init(&b, trace_of(rows, 3));
    assert_ok(rp_sim_answer(b.list, 1, &asked, &arena, &answer, &err), &err);
    assert_int_equal(answer.baseline.simulated_ns, 50000);
    assert_int_equal(answer.baseline.unprofiled_low_ns, 48544); /* one step: 3 % either way */
    assert_int_equal(answer.baseline.unprofiled_high_ns, 51500);
    bench_release(&b);
    rp_arena_release(&arena);
}

/* ------------------------------------------------------------------ what holds a step up */

/* Without the edges of a kind something starts at another time: none is there for nothing. */
static void check_kind(struct bench *b, enum rp_sg_edge_kind kind)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_result before = {0}, after = {0};
    size_t mark = rp_overlay_mark(&b->run.overlay), cut = 0;
    uint32_t i;

    assert_ok(rp_simulate(&b->run.overlay, &before, &err), &err);
    for (i = 0; i < b->run.graph->nodes.n; i++) /* the recorded times, exactly */
        assert_int_equal(before.start_ns.at[i] - before.start_ns.at[1],
                         b->run.graph->nodes.at[i].start_ns - b->run.graph->nodes.at[1].start_ns);
    for (i = 0; i < b->run.tasks.edges.n; i++)
        if (RP_SIM_EDGE_KIND(b->run.tasks.edges.at[i].flags) == kind) {
            cut++;
            assert_ok(rp_overlay_set_lag(&b->run.overlay, i, RP_LAG_CUT, &err), &err);
        }
    assert_ok(rp_simulate(&b->run.overlay, &after, &err), &err);
    if (!cut || !memcmp(before.start_ns.at, after.start_ns.at, before.start_ns.n * 8))
        fail_msg("%zu edges of kind %s, and nothing waits for them", cut, rp_sg_edge_names[kind]);
    rp_overlay_undo(&b->run.overlay, mark);
    rp_sim_result_release(&before);
    rp_sim_result_release(&after);
}

static void every_kind_of_edge_holds_something_up(void **state)
{
    static const enum rp_sg_edge_kind kinds[] = {RP_SG_ORDER, RP_SG_LAUNCH, RP_SG_STREAM,
                                                 RP_SG_SYNC, RP_SG_MEMBER};
    struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    struct row rows[] = {
        /* a thread hands over to another and back */
        {'X', "cpu_op", "aten::mm", 1, 1, 1000, 10000},
        {'X', "cpu_op", "MmBackward0", 1, 2, 50000, 20000},
        {'X', "cpu_op", "aten::add_", 1, 1, 100000, 10000},
        /* one launch, three kernels */
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 120000, 5000, 9},
        {'X', "kernel", "a", 0, 7, 130000, 10000, 9, 7},
        {'X', "kernel", "b", 0, 7, 141000, 10000, 9, 7},
        {'X', "kernel", "c", 0, 7, 152000, 10000, 9, 7},
    };
    struct bench b;
    size_t k;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        check_kind(&b, kinds[k]);
    bench_release(&b);
    part_init(&b, trace_of(rows, sizeof rows / sizeof rows[0]));
    check_kind(&b, RP_SG_HAND_OFF);
    check_kind(&b, RP_SG_IN_GRAPH);
    bench_release(&b);
}

/* What began inside a call, or beside another kernel, does not wait for its end. */
static void what_began_beside_something_still_does(void **state)
{
    struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000, 9000, 1},
        {'X', "kernel", "first", 0, 7, 5000, 20000, 1, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 11000, 2000, 2},
        {'X', "kernel", "second", 0, 7, 22000, 10000, 2, 7}, /* 3,000 before its end */
    };
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_result r = {0};
    struct bench b;
    uint32_t call, first, second;

    UNUSED_STATE(state);
    part_init(&b, trace_of(rows, 4));
    call = node_called(&b, 0, "cudaLaunchKernel", 0);
    first = node_called(&b, 0, "first", 0);
    second = node_called(&b, 0, "second", 0);
    assert_ok(rp_overlay_set_dur(&b.run.overlay, call, 9500, &err), &err);
    assert_ok(rp_overlay_set_dur(&b.run.overlay, first, 19000, &err), &err);
    assert_ok(rp_simulate(&b.run.overlay, &r, &err), &err);
    assert_int_equal(r.start_ns.at[first] - r.start_ns.at[call], 4000);
    assert_int_equal(r.start_ns.at[second] - r.start_ns.at[first], 17500); /* its launch is later */
    rp_sim_result_release(&r);
    bench_release(&b);
}

int test_training(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cost_of_a_span_follows_quick_operators),
        cmocka_unit_test(recording_never_costs_more_than_half),
        cmocka_unit_test(the_cost_is_what_the_recording_says),
        cmocka_unit_test(the_cost_is_set_by_an_unprofiled_step),
        cmocka_unit_test(a_known_step_sets_the_cost_without_quick_operators),
        cmocka_unit_test(a_step_of_the_device_keeps_the_estimate),
        cmocka_unit_test(the_optimizer_is_known_by_its_spans),
        cmocka_unit_test(fusing_saves_passes_over_memory),
        cmocka_unit_test(a_captured_adam_becomes_capturable),
        cmocka_unit_test(what_runs_again_is_in_the_backward_pass),
        cmocka_unit_test(a_pass_is_fused_and_compiled_for_itself),
        cmocka_unit_test(a_compiled_pass_is_entered),
        cmocka_unit_test(a_fused_optimizer_takes_the_host_less),
        cmocka_unit_test(an_optimizer_on_the_host_copies_and_updates),
        cmocka_unit_test(more_samples_do_not_make_more_parameters),
        cmocka_unit_test(steps_without_device_work_go_from_mark_to_mark),
        cmocka_unit_test(steps_whose_thread_is_empty_are_timed_by_others),
        cmocka_unit_test(a_transport_leans_to_what_is_not_known),
        cmocka_unit_test(larger_transfers_than_recorded_are_slower),
        cmocka_unit_test(ranks_of_one_machine_wait_for_its_cores),
        cmocka_unit_test(the_interval_of_a_change_is_that_of_two_runs),
        cmocka_unit_test(outcomes_narrow_both_ends),
        cmocka_unit_test(a_collective_without_work_is_no_error),
        cmocka_unit_test(every_kind_of_edge_holds_something_up),
        cmocka_unit_test(what_began_beside_something_still_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
