/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies between arrays along any strides: transposes, slices, broadcasts (stride 0), reversals
 * (negative strides), pads and concatenations are all this one loop.
 */
#include "base/threads.h"
#include "exec/data/tensor.h"

struct rp_strided {
    size_t unit, rank;
    int64_t dims[RP_TENSOR_RANK];
    int64_t to[RP_TENSOR_RANK], from[RP_TENSOR_RANK]; /* in elements */
};

/* Dimensions that lie next to each other on both sides are joined first. */
void rp_strided_copy(const struct rp_strided *s, void *to, const void *from);

/* Does the same in pieces, as jobs of the pool, if it is long. pool may be NULL. */
enum rp_code rp_strided_spread(const struct rp_strided *s, void *to, const void *from,
                               struct rp_pool *pool, struct rp_err *err);

/* Shows the same bytes with another shape; the data is shared. */
enum rp_code rp_tensor_view(struct rp_tensor *t, unsigned elem, const int64_t *dims, size_t rank,
                            struct rp_tensor **out, struct rp_err *err);

/* Dimension i of the result is dimension perm[i] of t. */
enum rp_code rp_tensor_transpose(const struct rp_tensor *t, const uint32_t *perm,
                                 struct rp_tensor **out, struct rp_err *err);
/* Does the same, spread over the pool. */
enum rp_code rp_tensor_transpose_spread(const struct rp_tensor *t, const uint32_t *perm,
                                        struct rp_pool *pool, struct rp_tensor **out,
                                        struct rp_err *err);
