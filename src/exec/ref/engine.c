/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ref`: every operation by its own simple kernel, in one thread. Other engines are compared with
 * it, so it prefers exactness (sums in f64) to speed.
 */
#include "exec/eval/engine.h"
#include "exec/ref/kernels.h"

#include <stdio.h>

void rp_kernels_reference(const struct rp_kernel **by_code)
{
    static const struct rp_kernel *const families[] = {
        rp_kernels_control, rp_kernels_element, rp_kernels_move,   rp_kernels_reduce,
        rp_kernels_dot,     rp_kernels_conv,    rp_kernels_gather, rp_kernels_sort,
        rp_kernels_random,  rp_kernels_linalg,  rp_kernels_norm,   rp_kernels_collective,
        rp_kernels_custom,  rp_kernels_special, rp_kernels_scan,   rp_kernels_ragged};

    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct rp_kernel *k = families[f]; k->run; k++)
            by_code[k->code] = k;
}

static enum rp_code ref_probe(const char *where, char *found, size_t cap, struct rp_err *err)
{
    (void)where;
    (void)err;
    snprintf(found, cap, "built in");
    return RP_OK;
}

extern const struct rp_engine rp_engine_ref;

static enum rp_code ref_compile(const char *where, const struct rp_engine_program *program,
                                const struct rp_engine_options *options, struct rp_executable **out,
                                struct rp_err *err)
{
    (void)where;
    return rp_eval_compile(&rp_engine_ref, program, options, rp_kernels_reference, NULL, false, out,
                           err);
}

const struct rp_engine rp_engine_ref = {
    .name = "ref",
    .summary = "the reference: one operation at a time, in one thread",
    .probe = ref_probe,
    .compile = ref_compile,
    .upload = rp_eval_upload,
    .run = rp_eval_run,
    .fetch = rp_eval_fetch,
    .times = rp_eval_times,
    .spans = rp_eval_spans,
    .release = rp_eval_release,
};
