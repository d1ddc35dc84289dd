/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_FAST_CONV_SPATIAL_H
#define RP_EXEC_FAST_CONV_SPATIAL_H
/* One spatial dimension of a convolution: where its results meet its input. */
#include <stdbool.h>
#include <stdint.h>

/* One spatial dimension. Results p = phase + phases * t meet the input at
   (phase * stride - low + k * dilation) / base + t * advance, where that is a whole number. */
struct rp_conv_spatial {
    int64_t in, out, window;
    int64_t stride, low, dilation, base;
    int64_t phases, advance;
    bool reversal;
    int64_t zeros; /* that stand in front of the padded input */
    int64_t padded;
    int64_t x_step, w_step, y_step; /* strides in elements */
};

/* From the first two lines of the struct the next ones, but the strides. */
void rp_conv_spatial_begin(struct rp_conv_spatial *d);
/* The place of the input that window place k of the phase's first result meets; false: none. */
bool rp_conv_spatial_meets(const struct rp_conv_spatial *d, int64_t phase, int64_t k, int64_t *at);
/* How many results a phase has. */
int64_t rp_conv_spatial_results(const struct rp_conv_spatial *d, int64_t phase);

#endif
