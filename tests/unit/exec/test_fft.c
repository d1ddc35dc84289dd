/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of every small length, and of lengths with large factors, by their definition.
 */
#include "unit.h"

#include "exec/ref/fft.h"

#include <math.h>
#include <stdlib.h>

static void transforms_as_defined(size_t n, int sign)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_fft f;
    rp_c128 *in = calloc(3 * n, sizeof *in), *out = in + n, *work;

    assert_ok(rp_fft_init(&f, n, sign, &err), &err);
    work = calloc(rp_fft_work(&f) + 1, sizeof *work);
    for (size_t k = 0; k < n; k++)
        in[k] = CMPLX((double)(k * 7 % 11) - 5, (double)(k * k % 13) - 6);
    rp_fft_run(&f, in, out, work);
    for (size_t k = 0; k < n; k++) {
        rp_c128 sum = 0;

        for (size_t j = 0; j < n; j++)
            sum += in[j] * cexp(CMPLX(0, sign * 2 * M_PI * (double)(j * k % n) / (double)n));
        assert_true(cabs(sum - out[k]) < 1e-11 * (double)n);
    }
    rp_fft_release(&f);
    free(in);
    free(work);
}

static void every_length(void **state)
{
    static const size_t more[] = {134, 210, 256, 487, 512, 1000, 1009, 1024, 1072};

    UNUSED_STATE(state);
    for (size_t n = 1; n <= 130; n++) {
        transforms_as_defined(n, -1);
        transforms_as_defined(n, 1);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        transforms_as_defined(more[i], i % 2 ? 1 : -1);
}

int test_fft(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length),
    };

    return cmocka_run_group_tests_name("fft", tests, NULL, NULL);
}
