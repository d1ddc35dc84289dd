/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parts of a convolution: spatial dimensions, and blocks of results (rows of output features). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One spatial dimension. Results p = phase + phases * t meet the input at (phase * stride - low + k
 * dilation) / base + t * advance, if that is a whole number. */
struct rp_conv_spatial {
    int64_t in, out, window;
    int64_t stride, low, dilation, base;
    int64_t phases, advance;
    bool reversal;
    int64_t zeros; /* zeros in front of the padded input */
    int64_t padded;
    int64_t x_step, w_step, y_step; /* strides in elements */
};

/* Computes the members after the first two lines, except the strides. */
void rp_conv_spatial_begin(struct rp_conv_spatial *d);
/* Finds the place of the input that window place k meets for the first result of the phase; false
   if there is none. */
bool rp_conv_spatial_meets(const struct rp_conv_spatial *d, int64_t phase, int64_t k, int64_t *at);
/* The number of results in a phase. */
int64_t rp_conv_spatial_results(const struct rp_conv_spatial *d, int64_t phase);

#define RP_CONV_ROWS 8 /* at most, of a block */
#define RP_CONV_WIDE 32

/* One of the steps that every result of a phase adds up: offsets from its place in x, and into
   w. */
struct rp_conv_step {
    uint32_t a, b;
};

/* Sets c[row][o] to the sum over n steps of a[row][step.a] * b[step.b + o]; adds to c unless it is
   the first part. */
typedef void rp_conv_kernel_fn(size_t n, const struct rp_conv_step *step, const float *const *a,
                               const float *b, float *const *c, bool first);
struct rp_conv_kernel {
    rp_conv_kernel_fn *fn;
    int64_t rows, wide; /* of its block */
};

/* The narrowest block for n output features, or the widest one available. */
struct rp_conv_kernel rp_conv_kernel_for(int64_t n);
