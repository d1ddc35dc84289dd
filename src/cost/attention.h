/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Computes the work of attention from its shape: two products for each pair of a query and a key
 * that it sees, and five in the backward pass.
 */
#include "cost/op_cost.h"

struct rp_attention_shape {
    double sequences, heads, kv_heads, queries,
        keys; /* queries and keys are those of one sequence */
    double width, value_width;
};

/* Counts the pairs of one sequence and head: query i sees the keys from i + offset - left to i +
   offset + right; a negative left or right means no limit. */
double rp_attention_pairs(double queries, double keys, double offset, double left, double right);

/* Sets flops, bytes, type and on_matrix. `pairs` are those of one sequence and head; `size` is that
   of an element. */
void rp_attention_cost(const struct rp_attention_shape *a, double pairs, bool backward,
                       enum rp_number type, double size, struct rp_op_cost *out);
