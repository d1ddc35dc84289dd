/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What both engines need to know about the dimensions of products. */
#include "exec/eval/plan.h"
#include "program/window.h"

/* batch, left and right are products of the dimensions; perms put the operands into the order
   batch, free, contracted. */
struct rp_dot {
    uint32_t lhs_perm[RP_TENSOR_RANK], rhs_perm[RP_TENSOR_RANK];
    int64_t batch, left, right, inner;
    uint32_t rank[2], nbatch,
        ninner; /* numbers of dimensions: of the operands, and of these batch and contracted */
    bool lhs_plain, rhs_plain;     /* no transpose is needed */
    bool lhs_flipped, rhs_flipped; /* the order is batch, contracted, free already */
    bool tf32, bf16;               /* round operands to this first */
    bool split;                    /* split each into two parts of bf16, or else of TF32 */
};
RP_PREPARE(rp_dot_prepare);
/* Rounds f32 to ten bits of mantissa, ties away from zero, like the GPU's own conversion; may work
   in place. */
void rp_round_tf32(uint32_t *to, const uint32_t *from, size_t n);
/* Fills it from lists of dimensions, also for custom calls. */
enum rp_code rp_dot_fill(struct rp_dot *d, const struct rp_node *node,
                         const struct rp_value_shape *lhs, const struct rp_value_shape *rhs,
                         const int64_t *const lists[4], const size_t counts[4], struct rp_err *err);
/* Replaces operand 0 or 1 by the array of which it is a transposition by dims; returns whether a
   product can read that, plain or flipped. */
bool rp_dot_turn(struct rp_dot *d, uint32_t side, const int64_t *dims);
/* The one of f64, s64 and c128 that holds the type. */
unsigned rp_dot_elem(unsigned elem);
/* Converts an operand to that type, with dimensions in the order of perm; plain: they already
   are. */
enum rp_code rp_dot_side(struct rp_tensor *t, const uint32_t *perm, bool plain, unsigned wide,
                         struct rp_tensor **out, struct rp_err *err);
/* Converts the wide result, which is dropped, to that of the node. */
enum rp_code rp_dot_finish(struct rp_tensor *wide, const struct rp_node *node,
                           struct rp_tensor **out, struct rp_err *err);
/* The product in f64, s64 or c128, whichever holds the types, with dims [batch, left, right]. */
enum rp_code rp_dot_wide(const struct rp_dot *d, struct rp_tensor *lhs, struct rp_tensor *rhs,
                         unsigned elem, struct rp_tensor **out, struct rp_err *err);

struct rp_conv {
    struct rp_window window;
    struct rp_conv_dims dims;
    int64_t feature_groups, batch_groups;
};
RP_PREPARE(rp_conv_prepare);
enum rp_code rp_conv_fill(struct rp_plan *plan, const struct rp_node *node, struct rp_conv *c,
                          struct rp_err *err);
/* Writes to a new array of the shape. */
enum rp_code rp_conv_run(const struct rp_conv *c, struct rp_tensor *input, struct rp_tensor *kernel,
                         const struct rp_value_shape *shape, struct rp_tensor **out,
                         struct rp_err *err);
