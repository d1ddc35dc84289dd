/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two forms of execution traces share: PyTorch's JSON and Chakra's nodes. */
#include "program/program.h"

/* Makes the shape of the first output from the texts "[[16, 256]]" and "['Tensor(float)']", which
   end at `end`; either may be NULL. Returns 0 if they do not say one. */
enum rp_code rp_exec_shape(struct rp_program *p, const char *shapes, const char *types,
                           const char *end, uint32_t *id, struct rp_err *err);

/* Dimensions of a tensor among the inputs or outputs of a node; n < 0 if it is not a tensor. */
#define RP_EXEC_DIMS 8
struct rp_exec_dims {
    int n;
    int64_t d[RP_EXEC_DIMS];
};

/* The arguments of a node. */
#define RP_EXEC_ARGS 10
struct rp_exec_node {
    char name[64]; /* cut */
    size_t nin, nout;
    struct rp_exec_dims in[RP_EXEC_ARGS], out[RP_EXEC_ARGS];
    double in_bytes, out_bytes; /* total size of the tensors among them */
};

/* The work of a node that has no nodes inside (exec_cost.c): operations of matrix products,
   convolutions, attention and element-wise operators by their shapes, and the bytes of everything
   that moves data. All are 0 if nothing is known. */
struct rp_cost rp_exec_cost(const struct rp_exec_node *node);
