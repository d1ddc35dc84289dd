/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sizes of what an operation gives, from those of what it takes. */
#include "program/program.h"

#define RP_INFER_RANK 64

struct rp_infer_dims {
    int64_t at[RP_INFER_RANK];
    size_t n;
};

struct rp_infer_op {
    const struct rp_program *p;
    uint32_t op; /* whose attributes count */
    unsigned code;
    const struct rp_attr *set; /* attributes in place of its own */
    size_t nset;
    const struct rp_infer_dims *operands;
    size_t n;
};

/* The dimensions of result `part` (0 where there is one). False where they do not follow from the
   attributes and the dimensions of the operands, as of a reshape, or where these do not fit. */
bool rp_infer(const struct rp_infer_op *op, size_t part, struct rp_infer_dims *out);
