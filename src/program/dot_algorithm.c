/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of products that XLA knows. */
#include "program/dot_algorithm.h"

#include <string.h>

const struct rp_dot_algorithm rp_dot_algorithms[] = {
    {"dot_any_f8_any_f8_f32", "f8", "f32", 1, false},
    {"dot_any_f8_any_f8_f32_fast_accum", "f8", "f32", 1, true},
    {"dot_f16_f16_f16", "f16", "f16", 1, false},
    {"dot_f16_f16_f32", "f16", "f32", 1, false},
    {"dot_bf16_bf16_bf16", "bf16", "bf16", 1, false},
    {"dot_bf16_bf16_f32", "bf16", "f32", 1, false},
    {"dot_bf16_bf16_f32_x3", "bf16", "f32", 3, false},
    {"dot_bf16_bf16_f32_x6", "bf16", "f32", 6, false},
    {"dot_bf16_bf16_f32_x9", "bf16", "f32", 9, false},
    {"dot_tf32_tf32_f32", "tf32", "f32", 1, false},
    {"dot_tf32_tf32_f32_x3", "tf32", "f32", 3, false},
    {"dot_f32_f32_f32", "f32", "f32", 1, false},
    {"dot_f64_f64_f64", "f64", "f64", 1, false},
};
const size_t rp_dot_nalgorithms = sizeof rp_dot_algorithms / sizeof *rp_dot_algorithms;

const struct rp_dot_algorithm *rp_dot_algorithm_find(const char *word, size_t n)
{
    for (size_t i = 0; i < rp_dot_nalgorithms; i++)
        if (strlen(rp_dot_algorithms[i].word) == n &&
            memcmp(rp_dot_algorithms[i].word, word, n) == 0)
            return &rp_dot_algorithms[i];
    return NULL;
}
