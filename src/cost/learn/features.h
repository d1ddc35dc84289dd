/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The properties of an operator that a cost model uses. The first `nsizes` features grow with every
 * dimension of the shape, and fits never fall with them; the others (alignment, number format,
 * device) do not depend on the size. So predictions are monotone in size by construction, among
 * shapes of the same alignment, but for convolutions: libraries choose their algorithm by the
 * shape, and a larger one may be faster.
 */
#include "cost/learn/samples.h"

#define RP_FEATURES_MAX 24
#define RP_ORDER_DIMS   8

/* The properties by which convolutions are compared. */
enum rp_conv_trait {
    RP_CONV_BATCH,
    RP_CONV_CHANNELS,
    RP_CONV_HEIGHT,
    RP_CONV_FILTERS,
    RP_CONV_KERNEL,
    RP_CONV_STRIDE,
    RP_CONV_CHANNELS_ALIGNED,
    RP_CONV_FILTERS_ALIGNED,
    RP_CONV_NUMBER_BYTES,
    RP_CONV_PIXELS,
    RP_CONV_POINTWISE,
    RP_CONV_TIME_AT_PEAKS,
    RP_CONV_FLOPS_A_BYTE,
    RP_CONV_TRAITS
};

struct rp_features {
    uint8_t n, nsizes;
    float x[RP_FEATURES_MAX];
    double peak;                 /* FLOP/s that libraries reach, relative to NVIDIA's */
    double compute_s, memory_s;  /* at the peaks of the device */
    double extra_s;              /* for rows the cost of each row, for products their whole tiles */
    bool aligned;                /* vectors and tiles need no special cases at their ends */
    double least_s;              /* no kernel can be faster than this */
    uint8_t norder, nalign;      /* for comparing shapes: */
    double order[RP_ORDER_DIMS]; /* larger is not faster */
    uint8_t align[4];            /* larger is not slower */
    float trait[RP_CONV_TRAITS]; /* for convolutions: weighted, so that distances can be computed */
};

/* `kind` is the kind as which the operator is treated: that of the sample, or of its family
   (RP_OP_MATMUL also for batches and convolutions, which are products of matrices). */
void rp_features_of(const struct rp_sample *s, enum rp_op_kind kind, struct rp_features *out);

/* Whether an operator that is larger in every dimension is never faster. */
static inline bool rp_op_is_monotone(uint8_t kind)
{
    return kind != RP_OP_CONV && kind != RP_OP_FUSED;
}

/* Whether a is not larger than b in any dimension and not worse aligned, and so not slower. */
bool rp_features_below(const struct rp_features *a, const struct rp_features *b);

/* Returns the peaks that features use; for a device that is not in the table those of the A100. */
const struct rp_device_peaks *rp_sample_device(const struct rp_sample *s, bool *known);
