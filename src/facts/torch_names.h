/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The meaning of names of frameworks, as far as only explanations need it; torch_names.c is the one
   place to add a name. Causes of host time are in facts/host/signs.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rp_torch_sign {
    RP_TORCH_LIBRARY = 1,       /* a frame that is not the user's own code */
    RP_TORCH_MODULE = 2,        /* a frame that is a module */
    RP_TORCH_LOADS = 4,         /* an operator that copies what was loaded */
    RP_TORCH_LOADER = 8,        /* the loader of data */
    RP_TORCH_ZEROES = 16,       /* frees gradients */
    RP_TORCH_OPTIMIZER = 32,    /* a frame of an optimizer */
    RP_TORCH_PASS_BACK = 64,    /* a frame of the backward pass */
    RP_TORCH_GENERATED = 128,   /* a kernel of a compiler that fuses */
    RP_TORCH_FILLS = 256,       /* an operator that writes known values */
    RP_TORCH_KEEPS_SIZE = 512,  /* a reduction with a result as large as its input */
    RP_TORCH_ADAM = 1024,       /* an operator that divides by a root */
    RP_TORCH_FUSED = 2048,      /* an operator that does the work of many in one kernel */
    RP_TORCH_FREES = 4096,      /* a call that returns memory to the driver */
    RP_TORCH_ALLOCATES = 8192,  /* a call that takes memory from it */
    RP_TORCH_SAME_CALL = 16384, /* a call that is recorded as two spans */
    RP_TORCH_STEP = 32768,      /* a mark of the profiler */
    RP_TORCH_PLANS = 65536,    /* an operator whose library plans or tries kernels for each shape */
    RP_TORCH_ATTENDS = 131072, /* attention */
    RP_TORCH_CONVOLVES = 262144,
    RP_TORCH_BATCHED = 524288,     /* an operator that multiplies many matrices */
    RP_TORCH_MATRICES = 1048576,   /* ... or two */
    RP_TORCH_SOFTMAX = 2097152,    /* an operator or a kernel */
    RP_TORCH_BACKWARDS = 1 << 22,  /* an operator of the backward pass */
    RP_TORCH_CAUSAL = 1 << 23,     /* attention that looks back only */
    RP_TORCH_ADDS = 1 << 24,       /* a matrix product whose first operand is added */
    RP_TORCH_EMBEDS = 1 << 25,     /* reads or updates a table of vectors */
    RP_TORCH_LOOKS_UP = 1 << 26,   /* the lookup itself */
    RP_TORCH_NORMALIZES = 1 << 27, /* rows */
    RP_TORCH_COPIES = 1 << 28,     /* its first input is what it writes */
    RP_TORCH_WAITS = 1 << 29,      /* for a collective */
    RP_TORCH_SENDS = 1 << 30       /* the operator around a collective that has its arguments */
};

/* Whether a name of n bytes has one of the signs. */
bool rp_torch_is(const char *name, size_t n, uint32_t signs);
bool rp_torch_means(const char *name, uint32_t signs); /* the same of a whole text */

/* "Linear_0" for "nn.Module: Linear_0"; "mm" for "aten::mm". Other names stay. */
const char *rp_torch_module(const char *name);
const char *rp_torch_op(const char *name);
