/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Infers the sizes of an operation's results from those of its operands. */
#include "program/program.h"

#define RP_INFER_RANK 64

struct rp_infer_dims {
    int64_t at[RP_INFER_RANK];
    size_t n;
};

struct rp_infer_op {
    const struct rp_program *p;
    uint32_t op; /* the operation whose attributes count */
    unsigned code;
    const struct rp_attr *set; /* attributes that replace those of the operation */
    size_t nset;
    const struct rp_infer_dims *operands;
    size_t n;
};

/* Finds the dimensions of result `part` (0 if there is only one). Returns false if they do not
   follow from the attributes and the dimensions of the operands, as for a reshape, or if these do
   not fit. */
bool rp_infer(const struct rp_infer_op *op, size_t part, struct rp_infer_dims *out);
