/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the phases of a dimension whose input is dilated: results that lie a multiple of
 * `phases` apart meet elements at the same places of the window, and no two phases share one, so
 * that all of them together have as many steps as the window has places.
 */
#include "exec/fast/conv.h"

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

bool rp_conv_spatial_meets(const struct rp_conv_spatial *d, int64_t phase, int64_t k, int64_t *at)
{
    int64_t i = phase * d->stride - d->low + k * d->dilation;

    *at = i / d->base;
    return i % d->base == 0;
}

int64_t rp_conv_spatial_results(const struct rp_conv_spatial *d, int64_t phase)
{
    return phase < d->out ? (d->out - phase + d->phases - 1) / d->phases : 0;
}

void rp_conv_spatial_begin(struct rp_conv_spatial *d)
{
    int64_t least = 0, most = d->in - 1, at;

    d->phases = d->base / gcd(d->stride, d->base);
    d->advance = d->phases * d->stride / d->base;
    for (int64_t phase = 0; phase < d->phases && phase < d->out; phase++)
        for (int64_t k = 0; k < d->window; k++)
            if (rp_conv_spatial_meets(d, phase, k, &at)) {
                int64_t last = at + (rp_conv_spatial_results(d, phase) - 1) * d->advance;

                least = at < least ? at : least;
                most = last > most ? last : most;
            }
    d->zeros = -least;
    d->padded = most + 1 - least;
}
