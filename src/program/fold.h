/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates operations on few integers whose values are known, which is how programs compute
   shapes. */
#include "program/infer.h"

#define RP_FOLD_MOST 64 /* the most elements of a value that is followed */

struct rp_known {
    const int64_t *at; /* the elements in row-major order; NULL if they are not known */
    unsigned elem;
    struct rp_infer_dims dims;
};

/* Whether values of this type and this number of elements are followed. */
bool rp_fold_fits(unsigned elem, const struct rp_infer_dims *dims);

/* Computes the elements of the result of `op` from these operands; `out` has its type and
   dimensions. Returns false if an operand is not known, or if the operation is not one with which
   shapes are computed. */
bool rp_fold(const struct rp_program *p, uint32_t op, unsigned code,
             const struct rp_known *operands, size_t n, const struct rp_known *out,
             int64_t *elements);

/* Wraps a value to the range of its type. */
int64_t rp_fold_wrap(unsigned elem, int64_t value);
