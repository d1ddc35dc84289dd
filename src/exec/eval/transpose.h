/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Transposes four rows of four 32-bit elements, at any address, in registers; row lengths are in
   elements. */
#include <stdint.h>

typedef uint32_t rp_one __attribute__((aligned(1), may_alias));
typedef uint32_t rp_four __attribute__((vector_size(16), aligned(1), may_alias));

static inline void rp_turn_four(const void *in, int64_t in_row, void *out, int64_t out_row)
{
    const rp_one *x = in;
    rp_one *y = out;
    rp_four a = *(const rp_four *)(const void *)x, b = *(const rp_four *)(const void *)(x + in_row);
    rp_four c = *(const rp_four *)(const void *)(x + 2 * in_row);
    rp_four d = *(const rp_four *)(const void *)(x + 3 * in_row);
    rp_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    rp_four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    rp_four ef = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    rp_four gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);

    *(rp_four *)(void *)y = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(rp_four *)(void *)(y + out_row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(rp_four *)(void *)(y + 2 * out_row) = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    *(rp_four *)(void *)(y + 3 * out_row) = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
}
