/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The algorithm that a product asks for. HLO writes it as one word ("dot_bf16_bf16_f32_x3"),
   StableHLO as parts. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_dot_algorithm {
    const char *word;     /* of HLO */
    const char *operands; /* the type to which both are rounded: "tf32"; "f8" stands for any of
                             eight bits */
    const char *sum;      /* the type in which sums are formed */
    uint8_t products;     /* the products of parts of the operands that are added for one product */
    bool imprecise;       /* sums may be less exact than their type suggests */
};

extern const struct rp_dot_algorithm rp_dot_algorithms[];
extern const size_t rp_dot_nalgorithms;

/* Returns NULL if the algorithm is not known. */
const struct rp_dot_algorithm *rp_dot_algorithm_find(const char *word, size_t n);
