/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Fourier transforms of one length, in double complex: planned once, run for many lines. */
#include "base/err.h"
#include "exec/data/complex.h"
#include "exec/eval/plan.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_FFT_FACTORS 64

struct rp_fft {
    size_t n;
    int sign;                      /* -1: forward */
    size_t factor[RP_FFT_FACTORS]; /* factors of n, if all are small */
    rp_c128 *roots;       /* n numbers exp(sign * 2 pi i k / n); NULL: computed by a convolution */
    struct rp_fft *power; /* the forward transform for a length that is a power of two */
    rp_c128 *chirp, *filter; /* n factors; the transform of their conjugates */
};

/* Call rp_fft_release in every case. */
enum rp_code rp_fft_init(struct rp_fft *f, size_t n, int sign, struct rp_err *err);
void rp_fft_release(struct rp_fft *f);
/* The work space that a run needs, in numbers. */
size_t rp_fft_work(const struct rp_fft *f);
/* `out` does not overlap; an inverse transform is not divided by n. */
void rp_fft_run(const struct rp_fft *f, const rp_c128 *in, rp_c128 *out, rp_c128 *work);

/* ---- the operation ---- */

enum rp_fft_type { RP_FFT, RP_IFFT, RP_RFFT, RP_IRFFT };
struct rp_fft_attr {
    enum rp_fft_type type;
    const int64_t *length; /* length for each of the last n dimensions */
    size_t n;
};
RP_PREPARE(rp_fft_prepare);
static inline int rp_fft_sign(const struct rp_fft_attr *a)
{
    return a->type == RP_FFT || a->type == RP_RFFT ? -1 : 1;
}
