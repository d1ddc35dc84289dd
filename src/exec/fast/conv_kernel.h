/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_FAST_CONV_KERNEL_H
#define RP_EXEC_FAST_CONV_KERNEL_H
/* Blocks of results of a convolution: rows of output features. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_CONV_ROWS 8 /* at most, of a block */
#define RP_CONV_WIDE 32

/* What every result of a phase adds up: offsets from its place in x, and into w. */
struct rp_conv_step {
    uint32_t a, b;
};

/* c[row][o] = the sum over n steps of a[row][step.a] * b[step.b + o], added to c unless it is the
   first part. */
typedef void rp_conv_kernel_fn(size_t n, const struct rp_conv_step *step, const float *const *a,
                               const float *b, float *const *c, bool first);
struct rp_conv_kernel {
    rp_conv_kernel_fn *fn;
    int64_t rows, wide; /* of its block */
};

/* The narrowest block for n output features, or the widest that there is. */
struct rp_conv_kernel rp_conv_kernel_for(int64_t n);

#endif
