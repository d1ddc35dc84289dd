/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kernels of the reference engine, with one table for each family; each ends with a row without
   `run`. */
#include "exec/eval/plan.h"

extern const struct rp_kernel rp_kernels_element[];
extern const struct rp_kernel rp_kernels_move[];
extern const struct rp_kernel rp_kernels_reduce[];
extern const struct rp_kernel rp_kernels_window[];
extern const struct rp_kernel rp_kernels_dot[];
extern const struct rp_kernel rp_kernels_ragged[];
extern const struct rp_kernel rp_kernels_conv[];
extern const struct rp_kernel rp_kernels_gather[];
extern const struct rp_kernel rp_kernels_sort[];
extern const struct rp_kernel rp_kernels_random[];
extern const struct rp_kernel rp_kernels_linalg[];
extern const struct rp_kernel rp_kernels_norm[];
extern const struct rp_kernel rp_kernels_collective[];
extern const struct rp_kernel rp_kernels_custom[];
extern const struct rp_kernel rp_kernels_special[];
extern const struct rp_kernel rp_kernels_scan[];

/* Lists all by opcode; RP_OP_COUNT entries. */
void rp_kernels_reference(const struct rp_kernel **by_code);

/* Attributes of operations that have only a list of dimensions: broadcast, transpose ... */
struct rp_dims_attr {
    const int64_t *at;
    size_t n;
};
static inline bool rp_dims_has(struct rp_dims_attr dims, int64_t dim)
{
    size_t i = 0;

    while (i < dims.n && dims.at[i] != dim)
        i++;
    return i < dims.n;
}

/* Attributes of a gather, or of a scatter, whose updates correspond to windows. */
struct rp_gather {
    struct rp_dims_attr offset, collapsed, map, operand_batch, index_batch, sizes;
    int64_t vector_dim;
    bool plain; /* for a scatter: the update just replaces */
    struct rp_tape *tape;
    size_t k; /* operands of a scatter */
};
RP_PREPARE(rp_gather_prepare);
RP_PREPARE(rp_scatter_prepare);

/* Functions that HLO has no opcode for, by the name of their operation. */
RP_PREPARE(rp_special_prepare);

/* ---- what operations share with custom calls ---- */

/* Sorting positions by any comparison, stable; and the largest values of each line. */

struct rp_sort { /* attributes of a sort */
    int64_t dim;
    struct rp_tape *tape; /* compares parameters 2 i and 2 i + 1, from operand i */
};
RP_PREPARE(rp_sort_prepare);

/* Whether position a comes before b. */
typedef bool rp_before_fn(void *user, size_t a, size_t b);
/* spare has room for n. */
void rp_merge_sort(size_t *at, size_t *spare, size_t n, rp_before_fn *before, void *user);

/* Finds the first value along a dimension, by the function that the node calls; each operand is
   followed by an initial value. This is an approximate top-k, done exactly. */
enum rp_code rp_first_prepare(struct rp_plan *plan, struct rp_node *node, int64_t dim,
                              struct rp_err *err);
RP_KERNEL(rp_first_run);
/* Gives (values, positions) in the last dimension. */
enum rp_code rp_topk_run(const struct rp_eval *e, struct rp_tensor *in, size_t k, bool largest,
                         unsigned index_elem, struct rp_tensor **out, struct rp_err *err);

/* ThreeFry 2x32 with 20 rounds for two words; the low halves come first. */
void rp_threefry(uint64_t key, uint64_t counter, uint32_t out[2]);
