/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parts of a convolution: its spatial dimensions, and blocks of results (rows of output features).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One spatial dimension. Results p = phase + phases * t meet the input at
   (phase * stride - low + k * dilation) / base + t * advance, where that is a whole number. */
struct rp_conv_spatial {
    int64_t in, out, window;
    int64_t stride, low, dilation, base;
    int64_t phases, advance;
    bool reversal;
    int64_t zeros; /* in front of the padded input */
    int64_t padded;
    int64_t x_step, w_step, y_step; /* strides in elements */
};

/* From the first two lines of the struct the next ones, but the strides. */
void rp_conv_spatial_begin(struct rp_conv_spatial *d);
/* The place of the input that window place k of the phase's first result meets; false: none. */
bool rp_conv_spatial_meets(const struct rp_conv_spatial *d, int64_t phase, int64_t k, int64_t *at);
/* How many results a phase has. */
int64_t rp_conv_spatial_results(const struct rp_conv_spatial *d, int64_t phase);

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
