/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Products of arrays: what both engines know about their dimensions. */
#include "exec/eval/plan.h"
#include "program/window.h"

/* batch, left and right are products of the dimensions; perms bring the operands into the order
   batch, free, contracted. */
struct rp_dot {
    uint32_t lhs_perm[RP_TENSOR_RANK], rhs_perm[RP_TENSOR_RANK];
    int64_t batch, left, right, inner;
    uint32_t rank[2], nbatch, ninner; /* dimensions: of the operands, of which batch, contracted */
    bool lhs_plain, rhs_plain;        /* no transpose is needed */
    bool lhs_flipped, rhs_flipped;    /* batch, contracted, free already */
    bool tf32, bf16;                  /* operands are rounded to it first */
    bool split;                       /* into two parts each, of bf16 or else of TF32 */
};
enum rp_code rp_dot_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
/* f32 to ten bits of mantissa, ties away from zero, as the GPU's own conversion does; in place too.
 */
void rp_round_tf32(uint32_t *to, const uint32_t *from, size_t n);
/* From lists of dimensions: for custom calls too. */
enum rp_code rp_dot_fill(struct rp_dot *d, const struct rp_node *node,
                         const struct rp_value_shape *lhs, const struct rp_value_shape *rhs,
                         const int64_t *const lists[4], const size_t counts[4], struct rp_err *err);
/* Operand 0 or 1 becomes the array whose transposition by dims it is; whether that lies as a
   product reads it, plain or flipped. */
bool rp_dot_turn(struct rp_dot *d, uint32_t side, const int64_t *dims);
/* f64, s64 or c128, whichever holds the type. */
unsigned rp_dot_elem(unsigned elem);
/* An operand in that type, its dimensions in the order of perm; plain: they are already. */
enum rp_code rp_dot_side(struct rp_tensor *t, const uint32_t *perm, bool plain, unsigned wide,
                         struct rp_tensor **out, struct rp_err *err);
/* The wide result, which is dropped, as that of the node. */
enum rp_code rp_dot_finish(struct rp_tensor *wide, const struct rp_node *node,
                           struct rp_tensor **out, struct rp_err *err);
/* The product in f64, s64 or c128, whichever holds the types, of dims [batch, left, right]. */
enum rp_code rp_dot_wide(const struct rp_dot *d, struct rp_tensor *lhs, struct rp_tensor *rhs,
                         unsigned elem, struct rp_tensor **out, struct rp_err *err);

struct rp_conv {
    struct rp_window window;
    struct rp_conv_dims dims;
    int64_t feature_groups, batch_groups;
};
enum rp_code rp_conv_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
enum rp_code rp_conv_fill(struct rp_plan *plan, const struct rp_node *node, struct rp_conv *c,
                          struct rp_err *err);
/* Into a new array of the shape. */
enum rp_code rp_conv_run(const struct rp_conv *c, struct rp_tensor *input, struct rp_tensor *kernel,
                         const struct rp_value_shape *shape, struct rp_tensor **out,
                         struct rp_err *err);
