/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Models of operators compute FLOPs and bytes from the recorded inputs. models.def lists which
 * operator has which model; a model is one function, and `arg` distinguishes its operators. It sets
 * flops, bytes, type and on_matrix, and returns NULL, or a static text that says why the operator
 * cannot be modelled.
 */
#include "base/decides.h"
#include "cost/inputs.h"
#include "cost/op_cost.h"

#include <math.h>

typedef const char *rp_cost_fn(const struct rp_inputs *in, int arg, struct rp_op_cost *out);

struct rp_cost_model {
    const char *pattern; /* a pattern of the operator's whole name, without a '_' at its end */
    rp_cost_fn *fn;
    int arg;
    bool claims;
};

/* Returns the first row that fits, or NULL. */
const struct rp_cost_model *rp_cost_model_of(const char *name);

/* Why an operator is not modelled. */
#define RP_NO_SHAPES    "its shapes were not recorded"
#define RP_NO_TYPES     "the types of its inputs were not recorded"
#define RP_NO_ARGUMENTS "its arguments were not recorded"
#define RP_NO_LIST      "the tensors in its lists were not recorded"
#define RP_ABOVE_PEAK   "by its shapes it would exceed what the device can do"
#define RP_NO_LENGTHS   "the lengths of its sequences were not recorded"
#define RP_NO_INDICES   "its indices were not recorded"
#define RP_ODD_SHAPES   "its shapes are not those of this operator"
#define RP_NO_MODEL     "there is no model of this operator"

rp_cost_fn rp_model_none; /* an operator without a model */

/* models_matmul.c */
enum rp_product_args { RP_PRODUCT_MM, RP_PRODUCT_ADDMM, RP_PRODUCT_BADDBMM, RP_PRODUCT_LINEAR };
rp_cost_fn rp_model_product;   /* arg: enum rp_product_args */
rp_cost_fn rp_model_scaled_mm; /* arg: 0 fp8 and fp4, 1 integers */
rp_cost_fn rp_model_grouped_mm;
rp_cost_fn rp_model_gemm; /* finds a product of two matrices in its inputs */
rp_cost_fn
    rp_model_experts; /* arg: index of the number of experts per token, or -1, and which layer */
#define RP_FIRST_LAYER  100 /* added if only one of the two layers is computed */
#define RP_SECOND_LAYER 200

/* models_conv.c: arg: index into its table of signatures */
enum rp_conv_args {
    RP_CONV_PLAIN,
    RP_CONV_SHORT,
    RP_CONV_TRANSPOSED,
    RP_CONV_CUDNN,
    RP_CONV_CUDNN_RELU,
    RP_CONV_CUDNN_TRANSPOSED,
    RP_CONV_MIOPEN,
    RP_CONV_MIOPEN_TRANSPOSED,
    RP_CONV_DEPTHWISE,
    RP_CONV_SLOW,
    RP_CONV_KINDS
};
rp_cost_fn rp_model_conv;
rp_cost_fn rp_model_conv_backward;

/* models_attention.c: arg: index into its table of signatures */
enum rp_attention_args {
#define RP_ATTENTION(id, ...) RP_ATTENTION_##id,
#include "cost/attention.def"
    RP_ATTENTION_KINDS
};
rp_cost_fn rp_model_attention;
rp_cost_fn rp_model_served_attention;

/* models_elements.c. arg: FLOPs per element of the result, unless noted otherwise. */
rp_cost_fn rp_model_elementwise;
rp_cost_fn rp_model_comparison; /* results have one byte */
rp_cost_fn rp_model_dropout;    /* with a mask of one byte */
rp_cost_fn rp_model_fill;       /* only writes */
rp_cost_fn rp_model_copy;
rp_cost_fn rp_model_concat;
rp_cost_fn rp_model_all_inputs; /* each tensor is moved once, including results */
rp_cost_fn rp_model_upsample;
rp_cost_fn rp_model_foreach; /* arg: FLOPs; plus RP_ONLY_READS if there is no result of its size */
rp_cost_fn rp_model_fused_optimizer;
rp_cost_fn rp_model_cache;  /* a cache of keys and values; arg: index of the places */
rp_cost_fn rp_model_rotary; /* positions, queries, keys, width, cosines and sines */
#define RP_INDEX_BYTES 8
RP_FACT(RP_INDEX_BYTES, "bytes", "of an index: those of PyTorch are int64");
#define RP_ONLY_READS 1000
RP_FACT(RP_ONLY_READS, "FLOPs", "a flag in the argument of a model, above all numbers of FLOPs");

/* models_triton.c: kernels written by Inductor. */
rp_cost_fn rp_model_triton;

/* models_reduce.c. arg: FLOPs per element of the input, and flags. */
enum {
    RP_REDUCE_INDEX = 100,      /* the result also has indices of 8 bytes */
    RP_REDUCE_INDEX_ONLY = 200, /* and nothing else */
    RP_REDUCE_SECOND = 1000,    /* the dimensions are the third input instead of the second */
    RP_REDUCE_BACKWARD = 10000  /* of softmax */
};
rp_cost_fn rp_model_reduce;
rp_cost_fn rp_model_scan; /* the result is as large as the input */
rp_cost_fn rp_model_softmax;
rp_cost_fn rp_model_topk;
rp_cost_fn rp_model_loss;
rp_cost_fn rp_model_nll;  /* arg: 0 forward, 1 backward */
rp_cost_fn rp_model_pool; /* arg: enum rp_pool_args */
enum rp_pool_args { RP_POOL_MAX, RP_POOL_MEAN, RP_POOL_ADAPTIVE, RP_POOL_BACKWARD };

/* models_norm.c */
enum rp_norm_args { RP_NORM_LAYER, RP_NORM_RMS, RP_NORM_BATCH, RP_NORM_LIBRARY };
rp_cost_fn rp_model_norm; /* arg: enum rp_norm_args */
rp_cost_fn rp_model_norm_backward;

/* models_embedding.c; arg: enum rp_embedding_args */
enum rp_embedding_args {
    RP_EMBEDDING_TABLE,
    RP_EMBEDDING_SELECT,
    RP_EMBEDDING_GATHER,
    RP_EMBEDDING_SCATTER,
    RP_EMBEDDING_BACKWARD,
    RP_EMBEDDING_BAG,
    RP_EMBEDDING_INDEX,
    RP_EMBEDDING_PUT
};
rp_cost_fn rp_model_embedding;

/* Returns the format in which products of such tensors are computed: tf32 for fp32 if the name of
   the kernel tells so. */
static inline uint8_t rp_product_type(const struct rp_inputs *in, const struct rp_input_tensor *t)
{
    return t->type == RP_NUMBER_FP32 && in->hint == RP_NUMBER_TF32 ? RP_NUMBER_TF32 : t->type;
}
