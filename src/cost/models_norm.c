/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalizations. Forward, an element takes part in two sums (of itself and of its square: four
 * operations with the subtraction, two for RMS), is multiplied by the inverse deviation, and by a
 * weight and added to a bias if these are given. Backward, the normalized element is computed
 * again, then two sums, and the gradient from them.
 */
#include "cost/models.h"

#include <string.h>

enum { FORWARD = 5, FORWARD_RMS = 3, FORWARD_FIXED = 2, BACKWARD = 10, BACKWARD_RMS = 7 };

/* Finds the tensors beside x: weights, biases, statistics. Sets their number, their bytes and the
   size of the first. */
static uint32_t small_tensors(const struct rp_inputs *in, uint32_t from,
                              const struct rp_input_tensor *x, double *bytes)
{
    uint32_t i, n = 0;

    *bytes = 0;
    for (i = from; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (!t || t->n >= x->n)
            continue;
        *bytes += rp_input_bytes(t);
        n++;
    }
    return n;
}

/* Operators of libraries have results and residuals among their inputs, or work in place. */
static const char *model_library(const struct rp_inputs *in, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x = NULL;
    double bytes = 0;
    uint32_t i, large = 0;

    for (i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (t && (!x || t->n > x->n))
            x = t;
    }
    if (!x)
        return RP_NO_SHAPES;
    for (i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (!t)
            continue;
        if (t->size <= 0)
            return RP_NO_TYPES;
        bytes += rp_input_bytes(t);
        large += t->n == x->n;
    }
    /* one alone is normalized into another; both of the two of "fused_add" are read and written */
    if (large == 1)
        bytes += x->n * (double)x->size;
    else if (large == 2 && strstr(in->name, "add"))
        bytes += 2 * x->n * (double)x->size;
    out->flops = (FORWARD_RMS + 1 + (strstr(in->name, "add") != NULL)) * x->n;
    out->bytes = bytes;
    out->type = x->type;
    return NULL;
}

#define TRAINING 5
RP_FACT(TRAINING, "th argument", "of PyTorch's batch_norm: the flag, from 0");

const char *rp_model_norm(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x = rp_inputs_tensor(in, 0);
    double others;

    if (arg == RP_NORM_LIBRARY)
        return model_library(in, out);
    if (!x)
        return RP_NO_SHAPES;
    if (x->size <= 0)
        return RP_NO_TYPES;
    uint32_t affine = small_tensors(in, 1, x, &others);
    affine = affine < 2 ? affine : 2;
    if (arg == RP_NORM_BATCH) /* running statistics are among them */
        affine = (rp_inputs_tensor(in, 1) != NULL) + (rp_inputs_tensor(in, 2) != NULL);
    out->flops = x->n * (affine + (arg == RP_NORM_RMS ? FORWARD_RMS : FORWARD));
    if (arg == RP_NORM_BATCH && in->count > TRAINING &&
        !rp_inputs_flag(in, TRAINING)) /* not training */
        out->flops = x->n * (affine + FORWARD_FIXED);
    out->bytes = rp_input_bytes(x) + x->n * (double)x->size + others;
    out->type = x->type;
    return NULL;
}

/* Reads the flags of wanted gradients: the last list of three (two for RMS). */
static void read_mask(const struct rp_inputs *in, bool *weight, bool *bias)
{
    double mask[3];

    for (uint32_t i = in->count; i-- > 0;) {
        if (!in->at[i].text || !in->at[i].len || !memchr(in->at[i].text, 'e', in->at[i].len))
            continue; /* "True", "False" */
        uint32_t n = rp_inputs_ints(in, i, mask, 3);
        if (n >= 2) {
            *weight = mask[1] != 0;
            *bias = n > 2 && mask[2] != 0;
            return;
        }
    }
}

const char *rp_model_norm_backward(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *g = rp_inputs_tensor(in, 0), *x = rp_inputs_tensor(in, 1);
    bool weight = true, bias = arg != RP_NORM_RMS;
    double others, channels = 0;

    if (!g || !x)
        return RP_NO_SHAPES;
    if (g->size <= 0 || x->size <= 0)
        return RP_NO_TYPES;
    small_tensors(in, 2, x, &others);
    for (uint32_t i = in->count; i-- > 2;) /* the weights are the largest of the small tensors */
        if (rp_inputs_tensor(in, i) && in->at[i].tensor.n < x->n && in->at[i].tensor.n > channels)
            channels = in->at[i].tensor.n;
    read_mask(in, &weight, &bias);
    out->flops = x->n * ((arg == RP_NORM_RMS ? BACKWARD_RMS : BACKWARD) + 2 * weight + bias);
    out->bytes = rp_input_bytes(g) + rp_input_bytes(x) + x->n * (double)x->size + others +
                 (weight + bias) * channels * (double)x->size;
    out->type = x->type;
    return NULL;
}
