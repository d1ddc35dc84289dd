/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A length is split into its factors (Cooley and Tukey): first every p-th number is transformed,
 * then transforms of p numbers join the results. A length with a factor above FACTOR_MOST becomes a
 * convolution (Bluestein), which transforms of a power of two compute. Both take n log n steps.
 * Products of complex numbers are written out, since those of C look for infinities.
 */
#include "exec/ref/fft.h"

#include <math.h>
#include <stdlib.h>

#define FACTOR_MOST 61

static inline rp_c128 times(rp_c128 a, rp_c128 b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* ---- planning ---- */

/* exp(sign * pi i k / half), exact at the quarters. */
static rp_c128 turn(size_t k, size_t half, int sign)
{
    double angle = M_PI * (double)k / (double)half;

    if (2 * k % half == 0) {
        static const double quarters[] = {1, 0, -1, 0};
        size_t q = 2 * k / half % 4;

        return CMPLX(quarters[q], sign * quarters[(q + 3) % 4]);
    }
    return CMPLX(cos(angle), sign * sin(angle));
}

/* Returns false if a factor is too large. */
static bool find_factors(struct rp_fft *f)
{
    size_t rest = f->n, at = 0;

    for (; rest && rest % 4 == 0; rest /= 4)
        f->factor[at++] = 4;
    for (size_t p = 2; rest > 1 && p <= FACTOR_MOST; p++)
        for (; rest % p == 0; rest /= p)
            f->factor[at++] = p;
    return rest == 1;
}

static enum rp_code plan_convolution(struct rp_fft *f, struct rp_err *err)
{
    size_t m = 1;
    rp_c128 *spread;

    while (m < 2 * f->n)
        m *= 2;
    f->power = calloc(1, sizeof *f->power);
    f->chirp = malloc(f->n * sizeof *f->chirp);
    f->filter = malloc(m * sizeof *f->filter);
    spread = calloc(m, sizeof *spread);
    if (!f->power || !f->chirp || !f->filter || !spread) {
        free(spread);
        return rp_err_nomem(err, "planning a Fourier transform");
    }
    for (size_t j = 0; j < f->n; j++) {
        f->chirp[j] = turn(j * j % (2 * f->n), f->n, f->sign);
        spread[j] = conj(f->chirp[j]);
        if (j)
            spread[m - j] = spread[j];
    }
    if (rp_fft_init(f->power, m, -1, err) == RP_OK)
        rp_fft_run(f->power, spread, f->filter, NULL);
    free(spread);
    return rp_err_need(f->power->roots, err, "planning a Fourier transform");
}

enum rp_code rp_fft_init(struct rp_fft *f, size_t n, int sign, struct rp_err *err)
{
    *f = (struct rp_fft){.n = n, .sign = sign};
    if (!find_factors(f))
        return plan_convolution(f, err);
    f->roots = malloc((n + 1) * sizeof *f->roots);
    RP_TRY(rp_err_need(f->roots, err, "planning a Fourier transform"));
    for (size_t k = 0; k < n; k++)
        f->roots[k] = turn(2 * k, n, sign);
    return RP_OK;
}

void rp_fft_release(struct rp_fft *f)
{
    if (f->power)
        rp_fft_release(f->power);
    free(f->power);
    free(f->roots);
    free(f->chirp);
    free(f->filter);
}

size_t rp_fft_work(const struct rp_fft *f)
{
    return f->power ? 2 * f->power->n : 0;
}

/* ---- running ---- */

/* Transforms n numbers, every `step`-th, into out; there is one level for each factor. */
static void transform(const struct rp_fft *f, const rp_c128 *in, size_t step, size_t n,
                      size_t level, rp_c128 *out)
{
    size_t p = f->factor[level];

    if (n == 1) {
        *out = *in;
        return;
    }
    size_t m = n / p;
    for (size_t q = 0; q < p; q++)
        transform(f, in + q * step, step * p, m, level + 1, out + q * m);
    if (p == 2) {
        for (size_t k = 0; k < m; k++) {
            rp_c128 a = out[k], b = times(out[m + k], f->roots[k * step]);

            out[k] = a + b;
            out[m + k] = a - b;
        }
    } else if (p == 4) {
        for (size_t k = 0; k < m; k++) {
            rp_c128 a = out[k], b = times(out[m + k], f->roots[k * step]);
            rp_c128 c = times(out[2 * m + k], f->roots[2 * k * step]);
            rp_c128 d = times(out[3 * m + k], f->roots[3 * k * step]);
            rp_c128 even = a + c, odd = a - c, sum = b + d, gap = b - d;
            rp_c128 quarter = CMPLX(-f->sign * cimag(gap), f->sign * creal(gap));

            out[k] = even + sum;
            out[m + k] = odd + quarter;
            out[2 * m + k] = even - sum;
            out[3 * m + k] = odd - quarter;
        }
    } else {
        rp_c128 part[FACTOR_MOST + 1];
        size_t apart = f->n / p;

        for (size_t k = 0; k < m; k++) {
            for (size_t q = 0; q < p; q++)
                part[q] = times(out[q * m + k], f->roots[q * k * step]);
            for (size_t r = 0; r < p; r++) {
                rp_c128 sum = part[0];

                for (size_t q = 1, at = r; q < p; q++, at += r) {
                    at -= at >= p ? p : 0;
                    sum += times(part[q], f->roots[at * apart]);
                }
                out[r * m + k] = sum;
            }
        }
    }
}

void rp_fft_run(const struct rp_fft *f, const rp_c128 *in, rp_c128 *out, rp_c128 *work)
{
    if (f->power && work) {
        /* A length with a large prime factor is a convolution whose length is a power of two. */
        size_t m = f->power->n;
        rp_c128 *wave = work + m;

        for (size_t j = 0; j < m; j++)
            work[j] = j < f->n ? times(in[j], f->chirp[j]) : 0;
        rp_fft_run(f->power, work, wave, NULL);
        for (size_t j = 0; j < m; j++)
            work[j] = conj(times(
                wave[j], f->filter[j])); /* the inverse is the forward transform of conjugates */
        rp_fft_run(f->power, work, wave, NULL);
        for (size_t k = 0; k < f->n; k++)
            out[k] = times(conj(wave[k]) / (double)m, f->chirp[k]);
    } else
        transform(f, in, 1, f->n, 0, out);
}
