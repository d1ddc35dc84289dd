/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_LOWER_LOWER_H
#define RP_LOWER_LOWER_H
/*
 * TensorFlow graphs as HLO, so that engines that know HLO run them: shapes are those of the feeds,
 * functions are put in place of their calls, and what TensorFlow takes as tensors but must be known
 * (shapes, axes, permutations) is computed here. Operators that are not known are named, all of
 * them.
 */
#include "formats/tensorflow/tensor.h"

/* What is fed: its tensor, type and shape; where its value is known it may be used as a shape. */
struct rp_lower_feed {
    const char *tensor;       /* "x:0" */
    struct rp_tf_value value; /* data NULL: not known */
};

struct rp_lowered { /* all zero: none */
    char *text;     /* HLO, which the program points into */
    size_t n;
    struct rp_arena arena; /* values of constants that the graph does not hold as they are */
    struct rp_program *program;
};

/* fetches: "y:0" each. RP_UNSUPPORTED and the names of the operators, or what of an operator is not
   known. Released in every case by rp_lowered_release. */
enum rp_code rp_tf_lower(struct rp_bytes graph, const struct rp_lower_feed *feeds, size_t nfeeds,
                         const char *const *fetches, size_t nfetches, struct rp_lowered *out,
                         struct rp_err *err);
void rp_lowered_release(struct rp_lowered *lowered);

#endif
