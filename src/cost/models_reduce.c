/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax, losses and pooling: the input is read once, and the smaller result
   written. */
#include "cost/models.h"

static const char *need_input(const struct rp_inputs *in, uint32_t i,
                              const struct rp_input_tensor **x)
{
    *x = rp_inputs_tensor(in, i);
    if (!*x)
        return RP_NO_SHAPES;
    return (*x)->size > 0 ? NULL : RP_NO_TYPES;
}

/* Counts the elements that are left when the dimensions in the list are reduced; an empty list
   stands for all. */
static double kept_elements(const struct rp_input_tensor *x, const double *dims, uint32_t n)
{
    bool reduced[RP_TENSOR_DIMS] = {false};
    double kept = 1;

    if (!n)
        return 1;
    for (uint32_t i = 0; i < n; i++) {
        double d = dims[i] < 0 ? dims[i] + x->ndims : dims[i];

        if (d >= 0 && d < x->ndims)
            reduced[(uint32_t)d] = true;
    }
    for (uint32_t i = 0; i < x->ndims; i++)
        kept *= reduced[i] ? 1 : x->dim[i];
    return kept;
}

const char *rp_model_reduce(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    uint32_t at = arg % RP_REDUCE_BACKWARD >= RP_REDUCE_SECOND ? 2 : 1, n;
    double dims[RP_TENSOR_DIMS], kept, each;
    const struct rp_input_tensor *x;
    const char *missing = need_input(in, 0, &x);
    int index = arg % RP_REDUCE_SECOND;

    if (missing)
        return missing;
    if (rp_inputs_tensor(in, 1) && in->at[1].tensor.ndims) /* max(a, b) */
        return rp_model_elementwise(in, 1, out);
    if (in->count > at && !in->at[at].text)
        return RP_NO_ARGUMENTS;
    n = rp_inputs_ints(in, at, dims, RP_TENSOR_DIMS);
    kept = kept_elements(x, dims, n);
    each = index >= RP_REDUCE_INDEX_ONLY   ? RP_INDEX_BYTES
           : index >= RP_REDUCE_INDEX && n ? (double)x->size + RP_INDEX_BYTES
                                           : (double)x->size;
    out->flops = arg % RP_REDUCE_INDEX * x->n;
    out->bytes = rp_input_bytes(x) + kept * each;
    out->type = x->type;
    return NULL;
}

const char *rp_model_scan(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x;
    const char *missing = need_input(in, 0, &x);

    if (missing)
        return missing;
    out->flops = arg % RP_REDUCE_INDEX * x->n;
    out->bytes = rp_input_bytes(x) +
                 x->n * ((double)x->size + (arg >= RP_REDUCE_INDEX ? RP_INDEX_BYTES : 0));
    out->type = x->type;
    return NULL;
}

/* _softmax(x, dim, to fp32); _softmax_backward_data(gradient, result, dim, type of x) */
const char *rp_model_softmax(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    bool backward = arg >= RP_REDUCE_BACKWARD;
    const struct rp_input_tensor *x, *y;
    const char *missing = need_input(in, 0, &x);
    double size, code;
    float found;

    if (!missing && backward)
        missing = need_input(in, 1, &y);
    if (missing)
        return missing;
    size = (double)x->size;
    if (!backward && rp_inputs_flag(in, 2))
        size = 4;
    if (backward && rp_inputs_int(in, 3, &code)) {
        rp_number_of_code((int64_t)code, &found);
        size = found > 0 ? (double)found : size;
    }
    out->flops = arg % RP_REDUCE_BACKWARD * x->n;
    out->bytes = rp_input_bytes(x) + x->n * size + (backward ? rp_input_bytes(y) : 0);
    out->type = x->type;
    return NULL;
}

/* topk(x, k, dim) */
const char *rp_model_topk(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x;
    const char *missing = need_input(in, 0, &x);
    double k, dim = -1, along;

    if (missing)
        return missing;
    if (!rp_inputs_int(in, 1, &k))
        return RP_NO_ARGUMENTS;
    if (!rp_inputs_int(in, 2, &dim))
        dim = -1;
    dim = dim < 0 ? dim + x->ndims : dim;
    along = dim >= 0 && dim < x->ndims ? x->dim[(uint32_t)dim] : 1;
    out->flops = arg * x->n;
    out->bytes = rp_input_bytes(x);
    if (along > 0)
        out->bytes += x->n / along * k * ((double)x->size + RP_INDEX_BYTES);
    out->type = x->type;
    return NULL;
}

/* mse_loss(x, target, reduction): 0 is none. */
const char *rp_model_loss(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x, *y;
    const char *missing = need_input(in, 0, &x);
    double reduction;

    if (!missing)
        missing = need_input(in, 1, &y);
    if (missing)
        return missing;
    if (!rp_inputs_int(in, 2, &reduction))
        reduction = 1;
    out->flops = arg * x->n;
    out->bytes =
        rp_input_bytes(x) + rp_input_bytes(y) + (reduction == 0 ? x->n : 1) * (double)x->size;
    out->type = x->type;
    return NULL;
}

/* nll_loss_forward(x, target, …) looks up one element for each target, nll_loss_backward(gradient,
   x, target, …) writes one: the rest of the gradient is filled by aten::zero_. */
const char *rp_model_nll(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x, *target;
    const char *missing = need_input(in, (uint32_t)arg, &x);

    if (!missing)
        missing = need_input(in, (uint32_t)arg + 1, &target);
    if (missing)
        return missing;
    out->flops = target->n;
    out->bytes = rp_input_bytes(target) + target->n * (double)x->size;
    out->type = x->type;
    return NULL;
}

/* ------------------------------------------------------------------ pooling */

/* Positions of the result and of a window, of max_pool2d(x, kernel, stride, padding, dilation). */
static const char *shape_pool(const struct rp_inputs *in, const struct rp_input_tensor *x, int arg,
                              double *places, double *window)
{
    double kernel[3], stride[3], padding[3];
    uint32_t nk = rp_inputs_ints(in, 1, kernel, 3), ns, np, i, spatial;

    if (!nk)
        return RP_NO_ARGUMENTS;
    ns = arg == RP_POOL_ADAPTIVE ? 0 : rp_inputs_ints(in, 2, stride, 3);
    np = arg == RP_POOL_ADAPTIVE ? 0 : rp_inputs_ints(in, 3, padding, 3);
    spatial = x->ndims > 2 ? (x->ndims - 2u < nk ? x->ndims - 2u : nk) : 1;
    *places = *window = 1;
    for (i = 0; i < spatial; i++) {
        double size = rp_input_last(x, spatial - 1 - i), step, out;

        if (arg == RP_POOL_ADAPTIVE) { /* the first list is the size of the result */
            *places *= kernel[i];
            *window *= kernel[i] > 0 ? size / kernel[i] : 1;
            continue;
        }
        step = ns ? stride[i < ns ? i : ns - 1] : kernel[i];
        out =
            step >= 1
                ? floor((size + 2 * (np ? padding[i < np ? i : np - 1] : 0) - kernel[i]) / step) + 1
                : 0;
        if (out < 1)
            return RP_ODD_SHAPES;
        *places *= out;
        *window *= kernel[i];
    }
    for (i = spatial; i < x->ndims; i++)
        *places *= rp_input_last(x, i);
    return NULL;
}

const char *rp_model_pool(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x, *g;
    const char *missing = need_input(in, 0, &x);
    double places, window;

    if (!missing && arg == RP_POOL_BACKWARD) { /* gradient, x, …, indices */
        missing = need_input(in, 1, &g);
        if (missing)
            return missing;
        out->flops = g->n;
        out->bytes = rp_input_bytes(x) + g->n * (double)g->size;
        for (uint32_t i = 2; i < in->count; i++)
            if (rp_inputs_tensor(in, i))
                out->bytes += rp_input_bytes(&in->at[i].tensor);
        out->type = x->type;
        return NULL;
    }
    if (!missing)
        missing = shape_pool(in, x, arg, &places, &window);
    if (missing)
        return missing;
    out->flops = places * window;
    out->bytes =
        rp_input_bytes(x) + places * ((double)x->size + (arg == RP_POOL_MAX ? RP_INDEX_BYTES : 0));
    out->type = x->type;
    return NULL;
}
