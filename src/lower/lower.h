/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lowers TensorFlow graphs to HLO, for the engines that run HLO: shapes are those of the feeds,
 * functions are inlined, and values that TensorFlow takes as tensors but that HLO must know
 * (shapes, axes, permutations) are computed here. The error message names all operators that are
 * not supported.
 */
#include "formats/tensorflow/tensor.h"

/* A feed with its tensor, type and shape. If its value is known, it may be used as a shape. */
struct rp_lower_feed {
    const char *tensor;       /* "x:0" */
    struct rp_tf_value value; /* data NULL: not known */
};

/* Values that decide shapes and that the graph computes: they must have been computed from the same
   feeds before the rest can be lowered. */
#define RP_LOWER_COMPUTED 32
struct rp_lower_computed {
    size_t n;
    struct {
        uint32_t value; /* its number */
        struct rp_tf_value of;
    } list[RP_LOWER_COMPUTED];
    uint32_t wanted; /* set by rp_tf_lower: the value that *out computes, alone; 0: all is known */
};

/* fetches: "y:0" each. computed: NULL where such values are refused. RP_UNSUPPORTED and the names
   of the operators, or the part of an operator that is not supported; *out is NULL then. The
   program borrows constants from the graph and is freed by rp_program_free. */
enum rp_code rp_tf_lower(struct rp_bytes graph, const struct rp_lower_feed *feeds, size_t nfeeds,
                         const char *const *fetches, size_t nfetches,
                         struct rp_lower_computed *computed, struct rp_program **out,
                         struct rp_err *err);

/* Whether an operator is lowered at all. *opcode (may be NULL) is the opcode that it becomes if it
   is one operation for all types that HLO supports; otherwise RP_OP_COUNT. */
bool rp_tf_lower_knows(const char *op, size_t n, unsigned *opcode);
/* Whether it is lowered only if the values of its inputs are known before the program runs. */
bool rp_tf_lower_needs_known(const char *op);
/* Returns the operator at a place of the list of those that are lowered; NULL behind the last. */
const char *rp_tf_lower_at(size_t i);
