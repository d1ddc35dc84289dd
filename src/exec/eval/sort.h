/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_EVAL_SORT_H
#define RP_EXEC_EVAL_SORT_H
/* Sorting positions by any comparison, stable; and the largest values of each line. */
#include "exec/data/tensor.h"

/* Whether position a must stand before b. */
typedef bool rp_before_fn(void *user, size_t a, size_t b);
/* spare: room for n. */
void rp_merge_sort(size_t *at, size_t *spare, size_t n, rp_before_fn *before, void *user);

/* Of the last dimension: (values, positions). */
enum rp_code rp_topk_run(struct rp_tensor *in, size_t k, bool largest, unsigned index_elem,
                         struct rp_tensor **out, struct rp_err *err);

#endif
