/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Operations on few integers whose values are known: what programs compute shapes with. */
#include "program/infer.h"

#define RP_FOLD_MOST 64 /* elements of a value that is followed */

struct rp_known {
    const int64_t *at; /* elements, row-major; NULL: not known */
    unsigned elem;
    struct rp_infer_dims dims;
};

/* Whether values of this type are followed, and the number of elements is small enough. */
bool rp_fold_fits(unsigned elem, const struct rp_infer_dims *dims);

/* The elements of the result of `op` with these operands, whose type and dimensions `out` has;
   false where one is not known, or the operation is not one that shapes are computed with. */
bool rp_fold(const struct rp_program *p, uint32_t op, unsigned code,
             const struct rp_known *operands, size_t n, const struct rp_known *out,
             int64_t *elements);

/* A value as its type holds it. */
int64_t rp_fold_wrap(unsigned elem, int64_t value);
