/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_EVAL_KERNELS_H
#define RP_EXEC_EVAL_KERNELS_H
/* The kernels of the reference engine, a table a family; each ends with a row without `run`. */
#include "exec/eval/plan.h"

extern const struct rp_kernel rp_kernels_control[];
extern const struct rp_kernel rp_kernels_element[];
extern const struct rp_kernel rp_kernels_move[];
extern const struct rp_kernel rp_kernels_reduce[];
extern const struct rp_kernel rp_kernels_window[];
extern const struct rp_kernel rp_kernels_dot[];
extern const struct rp_kernel rp_kernels_conv[];
extern const struct rp_kernel rp_kernels_gather[];
extern const struct rp_kernel rp_kernels_sort[];
extern const struct rp_kernel rp_kernels_random[];
extern const struct rp_kernel rp_kernels_linalg[];
extern const struct rp_kernel rp_kernels_norm[];
extern const struct rp_kernel rp_kernels_collective[];
extern const struct rp_kernel rp_kernels_custom[];

/* All of them, by opcode; RP_OP_COUNT entries. */
void rp_kernels_reference(const struct rp_kernel **by_code);

enum rp_code rp_kernel_same(struct rp_eval *e, const struct rp_node *node,
                            struct rp_tensor *const *in, struct rp_tensor **out,
                            struct rp_err *err);

/* Attributes of operations that have a list of dimensions only: broadcast, transpose ... */
struct rp_dims_attr {
    const int64_t *at;
    size_t n;
};

#endif
