/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the reductions of both engines. */
#include "exec/eval/tape.h"
#include "program/window.h"

#define RP_REDUCE_MOST 16 /* limit for the operands of one reduction */

struct rp_reduce {
    size_t k; /* number of operands; as many initial values follow */
    bool reduced[RP_TENSOR_RANK];
    struct rp_tape *tape;
};

struct rp_reduce_window {
    struct rp_reduce reduce;
    struct rp_window window;
};
/* Returns RP_FORMAT if a stride or a dilation is below 1, or anything is so large that places
   overflow. */
enum rp_code rp_window_check(const struct rp_node *node, const struct rp_window *w,
                             struct rp_err *err);
RP_PREPARE(rp_reduce_window_prepare);

struct rp_select_attr { /* of select-and-scatter */
    struct rp_window window;
    struct rp_tape *select, *scatter;
};
RP_PREPARE(rp_select_prepare);

/* Dimensions that stay, and dimensions that are reduced. */
struct rp_reduce_dims {
    size_t rkept, rred, nout, nred;
    int64_t kept[RP_TENSOR_RANK], kept_stride[RP_TENSOR_RANK];
    int64_t red[RP_TENSOR_RANK], red_stride[RP_TENSOR_RANK];
};

RP_PREPARE(rp_reduce_prepare);
RP_KERNEL(rp_reduce_run);

/* Sums and products that are rounded at every step, in XLA's order for the CPU. */
bool rp_reduce_is_rounded(const struct rp_tape *tape, unsigned elem);
enum rp_code rp_reduce_rounded(const struct rp_reduce *a, struct rp_tensor *in,
                               const struct rp_tensor *init, struct rp_tensor *out,
                               struct rp_err *err);

/* Converts types narrower than f32 to f32, and keeps others; converts any type to another. Both
   return new uses. */
enum rp_code rp_tensor_wide(struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err);
enum rp_code rp_tensor_as(struct rp_tensor *t, unsigned elem, struct rp_tensor **out,
                          struct rp_err *err);
