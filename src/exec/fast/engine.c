/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fast` evaluates like `ref`, but with fused loops (loop.c), quick kernels for products,
 * convolutions and reductions, and threads. Operations for which it has no kernel use the
 * reference's.
 */
#include "exec/eval/engine.h"
#include "exec/fast/gemm.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <malloc.h>
#include <stdio.h>

static const struct rp_kernel own[] = {
    {RP_OP_DOT, rp_fast_dot_prepare, rp_fast_dot},
    {RP_OP_CONVOLUTION, rp_fast_conv_prepare, rp_fast_conv},
    {RP_OP_REDUCE, rp_fast_reduce_prepare, rp_fast_reduce},
    {RP_OP_REDUCE_WINDOW, rp_reduce_window_prepare, rp_fast_reduce_window},
    {RP_OP_SELECT_AND_SCATTER, rp_select_prepare, rp_fast_select_and_scatter},
    {RP_OP_DYNAMIC_UPDATE_SLICE, NULL, rp_fast_update_slice},
    {RP_OP_GATHER, rp_gather_prepare, rp_fast_gather},
    {RP_OP_FFT, rp_fast_fft_prepare, rp_fast_fft},
    {RP_OP_WHILE, rp_fast_while_prepare, rp_fast_while},
    {RP_OP_SCATTER, rp_scatter_prepare, rp_fast_scatter},
    {RP_OP_FOREIGN, rp_special_prepare, rp_fast_special},
    {RP_OP_SORT, rp_fast_sort_prepare, rp_fast_sort},
};

void rp_kernels_fast(const struct rp_kernel **by_code)
{
    rp_kernels_reference(by_code);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        by_code[own[i].code] = &own[i];
}

/* Chooses kernels such that operations run one after the other, and each result can be moved
   (exec/eval/vary.h). */
static void kernels_varied(const struct rp_kernel **by_code)
{
    const struct rp_kernel *reference[RP_OP_COUNT] = {0};

    rp_kernels_reference(reference);
    rp_kernels_fast(by_code);
    by_code[RP_OP_WHILE] = reference[RP_OP_WHILE];
}

static enum rp_code fast_improve(struct rp_plan *plan, struct rp_err *err)
{
    const struct rp_kernel **reference =
        RP_ARENA_NEW(&plan->arena, const struct rp_kernel *, RP_OP_COUNT);

    RP_TRY(rp_err_need(reference, err, "planning"));
    rp_kernels_reference(reference);
    plan->reference = reference;
    struct rp_blas *blas = RP_NODE_NEW(plan, struct rp_blas);
    if (blas && rp_blas_open(blas))
        plan->blas = blas;
    if (plan->varies)
        return RP_OK;
    RP_TRY(rp_calls_inline(plan, err));
    RP_TRY(rp_equals_merge(plan, err));
    RP_TRY(rp_turned_fold(plan, err));
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];

        for (uint32_t k = 0; k < g->n && g->nodes[0].kernel; k++)
            if (g->nodes[k].code == RP_OP_REDUCE && !g->nodes[k].skip)
                g->nodes[k].takes_unaligned = rp_fast_reduce_takes_unaligned(g, &g->nodes[k]);
    }
    RP_TRY(rp_blocks_form(plan, err));
    RP_TRY(rp_loops_form(plan, err));
    rp_calls_finish(plan);
    RP_TRY(rp_invariants_mark(plan, err));
    return rp_short_loops_form(plan, err);
}

static enum rp_code fast_probe(const char *where, char *found, size_t cap, struct rp_err *err)
{
    struct rp_blas blas;

    (void)where;
    (void)err;
    if (rp_blas_open(&blas))
        snprintf(found, cap, "built in; matrix products by %s", blas.name);
    else
        snprintf(found, cap, "built in; own matrix products");
    return RP_OK;
}

extern const struct rp_engine rp_engine_fast;

static enum rp_code fast_compile(const char *where, const struct rp_engine_program *program,
                                 const struct rp_engine_options *options,
                                 struct rp_executable **out, struct rp_err *err)
{
    (void)where;
    /* Every run allocates and frees its arrays anew: memory given back to the system in between
       would return as fresh pages each time. This setting is for the whole process. */
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
    return rp_eval_compile(&rp_engine_fast, program, options,
                           options->vary ? kernels_varied : rp_kernels_fast, fast_improve, true,
                           out, err);
}

const struct rp_engine rp_engine_fast = {
    .name = "fast",
    .summary = "the default: fused loops, blocked matrix products, threads",
    .probe = fast_probe,
    .compile = fast_compile,
    .upload = rp_eval_upload,
    .run = rp_eval_run,
    .fetch = rp_eval_fetch,
    .times = rp_eval_times,
    .spans = rp_eval_spans,
    .release = rp_eval_release,
};
