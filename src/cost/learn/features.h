/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_COST_LEARN_FEATURES_H
#define RP_COST_LEARN_FEATURES_H
/*
 * What a cost model sees of an operator. The first `nsizes` features grow with every dimension of
 * the shape, and predictions never fall with them; the others (alignment, number format, device) do
 * not depend on the size. So predictions are monotone in size by construction, among shapes of the
 * same alignment.
 */
#include "cost/learn/samples.h"

#define RP_FEATURES_MAX 24
#define RP_ORDER_DIMS   8

struct rp_features {
    uint8_t n, nsizes;
    float x[RP_FEATURES_MAX];
    double peak;                 /* FLOP/s that libraries reach, in parts of NVIDIA's */
    double compute_s, memory_s;  /* at the peaks of the device */
    double extra_s;              /* of rows what each costs, of products their whole tiles */
    bool aligned;                /* vectors and tiles need no special cases at their ends */
    double least_s;              /* what no kernel can be faster than */
    uint8_t norder, nalign;      /* for comparing shapes: */
    double order[RP_ORDER_DIMS]; /* larger is not faster */
    uint8_t align[4];            /* larger is not slower */
};

/* kind: treats the operator as one of this kind: that of the sample, or of its family (RP_OP_MATMUL
   also for batches and convolutions, which are products of matrices). */
void rp_features_of(const struct rp_sample *s, enum rp_op_kind kind, struct rp_features *out);

/* Whether a is no larger than b in any dimension, and no worse aligned: it is not slower. */
bool rp_features_below(const struct rp_features *a, const struct rp_features *b);

/* The peaks that features use; of a device that is not in the table those of the A100. */
const struct rp_device_peaks *rp_sample_device(const struct rp_sample *s, bool *known);

#endif
