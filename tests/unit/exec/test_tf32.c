/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to TF32, alone and while our own products pack their operands. */
#include "unit.h"

#include "exec/fast/gemm.h"
#include "exec/ref/dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float rounded(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, 4);
    rp_round_tf32(&bits, &bits, 1);
    memcpy(&x, &bits, 4);
    return x;
}

static void rounding(void **state)
{
    UNUSED_STATE(state);
    assert_true(rounded(1 + 0x1p-12f) == 1);
    assert_true(rounded(1 + 0x1p-11f) == 1 + 0x1p-10f); /* ties away from zero */
    assert_true(rounded(-1 - 0x1p-11f) == -1 - 0x1p-10f);
    assert_true(rounded(1 + 0x1p-10f) == 1 + 0x1p-10f);
    assert_true(rounded(0) == 0 && rounded(INFINITY) == INFINITY && rounded(-INFINITY) < 0);
    assert_true(isnan(rounded(NAN)));
}

/* The largest difference from a sum in f64 of rounded operands. */
static double off(const struct rp_gemm *g)
{
    double most = 0;

    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;

            for (int64_t k = 0; k < g->k; k++)
                sum += (double)rounded(g->a[i * g->a_row + k * g->a_column]) *
                       (double)rounded(g->b[k * g->b_row + j * g->b_column]);
            most = fmax(most, fabs(sum - (double)g->c[i * g->n + j]));
        }
    return most;
}

/* Whole and cut tiles, panels of full and of half width, operands as rows and as columns. */
static void products(void **state)
{
    static const int64_t shapes[][3] = {{2, 2, 3},     {5, 16, 300},  {17, 33, 16},
                                        {64, 48, 257}, {250, 70, 19}, {9, 1030, 40}};

    UNUSED_STATE(state);
    for (size_t s = 0; s < 4 * sizeof shapes / sizeof *shapes; s++) {
        int64_t m = shapes[s / 4][0], n = shapes[s / 4][1], k = shapes[s / 4][2];
        float *data = malloc((size_t)(m * k + k * n + m * n) * sizeof *data);
        struct rp_gemm g = {.batch = 1, .m = m, .n = n, .k = k, .tf32 = true};
        struct rp_err err = RP_ERR_INIT;
        double near;

        assert_non_null(data);
        for (int64_t i = 0; i < m * k + k * n; i++)
            data[i] = sinf((float)i * 1.7f);
        g.a = data;
        g.b = data + m * k;
        g.c = data + m * k + k * n;
        g.a_row = s & 1 ? 1 : k;
        g.a_column = s & 1 ? m : 1;
        g.b_row = s & 2 ? 1 : n;
        g.b_column = s & 2 ? k : 1;
        assert_ok(rp_gemm_run(&g, NULL, NULL, &err), &err);
        near = off(&g);
        g.tf32 = false;
        assert_ok(rp_gemm_run(&g, NULL, NULL, &err), &err);
        assert_true(20 * near < off(&g)); /* sums in f32 are not exact */
        free(data);
    }
}

int test_tf32(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounding), cmocka_unit_test(products)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
