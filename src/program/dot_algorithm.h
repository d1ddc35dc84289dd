/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The algorithm that a product asks for: one word in HLO ("dot_bf16_bf16_f32_x3"), its parts in
   StableHLO. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_dot_algorithm {
    const char *word;     /* of HLO */
    const char *operands; /* the type that both are rounded to: "tf32"; "f8": any of eight bits */
    const char *sum;      /* the type that is added in */
    uint8_t products;     /* of parts of the operands that are added for one product */
    bool imprecise;       /* sums may lose more than their type says */
};

extern const struct rp_dot_algorithm rp_dot_algorithms[];
extern const size_t rp_dot_nalgorithms;

/* NULL: not known. */
const struct rp_dot_algorithm *rp_dot_algorithm_find(const char *word, size_t n);
