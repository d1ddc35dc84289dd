/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes against sums in 64 bits: of all signs, whole and cut tiles, rows and columns.
 */
#include "unit.h"

#include "exec/fast/product.h"

#include <stdlib.h>

static int64_t byte_at(const uint8_t *from, int64_t i, bool is_signed)
{
    return is_signed ? (int8_t)from[i] : from[i];
}

static void check_product(const struct rp_product *p, bool a_signed, bool b_signed)
{
    const uint8_t *a = p->a, *b = p->b;
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_product_bytes(p, a_signed, b_signed, NULL, &err), &err);
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                int64_t sum = 0;

                for (int64_t k = 0; k < p->k; k++)
                    sum +=
                        byte_at(a, batch * p->a_batch + i * p->a_row + k * p->a_column, a_signed) *
                        byte_at(b, batch * p->b_batch + k * p->b_row + j * p->b_column, b_signed);
                if (((const int32_t *)p->c)[(batch * p->m + i) * p->n + j] != sum)
                    fail_msg("%d x %d x %d, %d %d: [%d, %d] is not %lld", (int)p->m, (int)p->k,
                             (int)p->n, a_signed, b_signed, (int)i, (int)j, (long long)sum);
            }
}

static void all_signs_and_sizes(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 2},      {8, 64, 32},   {15, 70, 33},
                                        {16, 3, 40},  {32, 64, 32},   {33, 65, 31},  {40, 512, 64},
                                        {64, 600, 7}, {65, 1030, 96}, {300, 20, 70}, {20, 0, 4}};

    UNUSED_STATE(state);
    for (size_t s = 0; s < 16 * sizeof shapes / sizeof *shapes; s++) {
        int64_t m = shapes[s / 16][0], k = shapes[s / 16][1], n = shapes[s / 16][2], batch = 2;
        uint8_t *data = malloc((size_t)(batch * (m * k + k * n) + 1));
        int32_t *c = malloc((size_t)(batch * m * n) * sizeof *c);
        struct rp_product p = {.batch = batch, .m = m, .n = n, .k = k, .a = data, .c = c};
        bool a_turned = s & 1, b_turned = s & 2;

        assert_non_null(data);
        assert_non_null(c);
        for (int64_t i = 0; i < batch * (m * k + k * n); i++)
            data[i] =
                (uint8_t)(i % 7 == 0 ? 0x80 : i * i * 31 + 17 * i); /* with the least of all */
        p.b = data + batch * m * k;
        p.a_row = a_turned ? 1 : k;
        p.a_column = a_turned ? m : 1;
        p.a_batch = m * k;
        p.b_row = b_turned ? 1 : n;
        p.b_column = b_turned ? k : 1;
        p.b_batch = k * n;
        check_product(&p, s & 4, s & 8);
        free(data);
        free(c);
    }
}

int test_product_bytes(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_signs_and_sizes)};

    return cmocka_run_group_tests_name("product_bytes", tests, NULL, NULL);
}
