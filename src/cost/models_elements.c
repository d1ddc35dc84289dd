/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that do the same to each element, and copies. A function of an element counts as one
 * FLOP, however it is computed; comparisons and moves count as their rows in models.def tell.
 */
#include "cost/models.h"
#include "facts/torch_names.h"

#include <string.h>

static bool is_float(const struct rp_input_tensor *t)
{
    return t->type != RP_NUMBER_INT && t->type != RP_NUMBER_INT8 && t->type != RP_NUMBER_NONE;
}

static void broadcast(struct rp_input_tensor *to, const struct rp_input_tensor *t)
{
    uint32_t i, n = to->ndims > t->ndims ? to->ndims : t->ndims;
    struct rp_input_tensor all = {.ndims = (uint8_t)n, .type = to->type, .size = to->size, .n = 1};

    for (i = 0; i < n; i++) { /* from the last */
        double a = rp_input_last(to, i), b = rp_input_last(t, i);

        all.dim[n - 1 - i] = a == 1 ? b : a;
        all.n *= a == 1 ? b : a;
    }
    all.stored = all.n;
    *to = all;
}

/* Operators with one operand and with two; a tensor among the later inputs is the place of the
   result, as in torch.mul(a, b, out=c). */
static const char *const unary[] = {
    "abs",      "ceil",     "cos",      "erf",         "exp",         "expm1",       "floor",
    "gelu",     "log",      "log1p",    "log2",        "mish",        "neg",         "relu",
    "relu6",    "elu",      "rsqrt",    "sigmoid",     "reciprocal",  "sign",        "silu",
    "sin",      "sqrt",     "square",   "tan",         "tanh",        "hardswish",   "isnan",
    "isinf",    "round",    "softplus", "logical_not", "bitwise_not", "hardsigmoid", "leaky_relu",
    "hardtanh", "threshold"};
static const char *const binary[] = {"add",
                                     "sub",
                                     "rsub",
                                     "mul",
                                     "div",
                                     "true_divide",
                                     "floor_divide",
                                     "fmod",
                                     "remainder",
                                     "pow",
                                     "maximum",
                                     "minimum",
                                     "clamp_min",
                                     "clamp_max",
                                     "xlogy",
                                     "eq",
                                     "ne",
                                     "lt",
                                     "le",
                                     "gt",
                                     "ge",
                                     "logical_and",
                                     "logical_or",
                                     "logical_xor",
                                     "bitwise_and",
                                     "bitwise_or",
                                     "bitwise_xor",
                                     "gelu_backward",
                                     "silu_backward",
                                     "sigmoid_backward",
                                     "tanh_backward",
                                     "threshold_backward",
                                     "leaky_relu_backward",
                                     "elu_backward",
                                     "mish_backward",
                                     "softplus_backward"};

static bool is_among(const char *name, size_t len, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(name, names[i], len) && !names[i][len])
            return true;
    return false;
}

/* Returns how many of the first inputs are operands. */
static uint32_t operands_of(const struct rp_inputs *in)
{
    const char *name = in->name && rp_torch_op(in->name) != in->name ? rp_torch_op(in->name) : "";
    size_t len = strlen(name);
    uint32_t n = in->count;

    len -= len && name[len - 1] == '_';
    if (len && is_among(name, len, unary, sizeof unary / sizeof unary[0]))
        n = 1;
    else if (len && is_among(name, len, binary, sizeof binary / sizeof binary[0]))
        n = 2;
    return n < in->count ? n : in->count;
}

/* Finds the result of an element-wise operator, and the bytes of its inputs. */
static const char *shape_result(const struct rp_inputs *in, struct rp_input_tensor *result,
                                double *read)
{
    uint32_t i, pass, tensors = 0, operands = operands_of(in);

    *result = (struct rp_input_tensor){.n = 1, .stored = 1};
    *read = 0;
    for (pass = 0; pass < 2;
         pass++) /* tensors without dimensions count only if nothing else decides */
        for (i = 0; i < operands; i++) {
            const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

            if (!t || (t->ndims == 0) != (pass == 1))
                continue;
            if (t->size <= 0)
                return RP_NO_TYPES;
            tensors++;
            *read += rp_input_bytes(t);
            broadcast(result, t);
            if (!pass || result->type == RP_NUMBER_NONE || (is_float(t) && !is_float(result))) {
                /* Take the wider of two formats, as PyTorch promotes them. */
                if (result->type == RP_NUMBER_NONE || (is_float(t) && !is_float(result)) ||
                    (is_float(t) == is_float(result) && t->size > result->size)) {
                    result->type = t->type;
                    result->size = t->size;
                } else if (is_float(t) && t->size == result->size && t->size == 2 &&
                           t->type != result->type) {
                    result->type = RP_NUMBER_FP32;
                    result->size = 4;
                }
            }
        }
    if (!tensors)
        return RP_NO_SHAPES;
    if (in->in_place && rp_inputs_tensor(in, 0))
        *result = in->at[0].tensor;
    return NULL;
}

const char *rp_model_elementwise(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    struct rp_input_tensor result;
    double read;
    const char *missing = shape_result(in, &result, &read);

    if (missing)
        return missing;
    out->flops = arg * result.n;
    out->bytes = read + result.n * (double)result.size;
    out->type = result.type;
    return NULL;
}

const char *rp_model_comparison(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    struct rp_input_tensor result;
    double read;
    const char *missing = shape_result(in, &result, &read);

    if (missing)
        return missing;
    out->flops = arg * result.n;
    out->bytes = read + result.n * (in->in_place ? (double)result.size : 1);
    out->type = result.type;
    return NULL;
}

const char *rp_model_dropout(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x = rp_inputs_tensor(in, 0);

    if (!x)
        return RP_NO_SHAPES;
    if (x->size <= 0)
        return RP_NO_TYPES;
    out->flops = arg * x->n;
    out->bytes = rp_input_bytes(x) + x->n * ((double)x->size + 1);
    out->type = x->type;
    return NULL;
}

const char *rp_model_fill(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x = rp_inputs_tensor(in, 0);

    if (!x)
        return RP_NO_SHAPES;
    if (x->size <= 0)
        return RP_NO_TYPES;
    out->flops = arg * x->n;
    out->bytes = rp_input_bytes(x);
    out->type = x->type;
    return NULL;
}

/* copy_(to, from), or a copy of one tensor. */
const char *rp_model_copy(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *to = rp_inputs_tensor(in, 0), *from = rp_inputs_tensor(in, 1);

    (void)arg;
    if (!to)
        return RP_NO_SHAPES;
    if (to->size <= 0 || (from && from->size <= 0))
        return RP_NO_TYPES;
    out->flops = 0;
    out->bytes = from ? to->n * (double)to->size + rp_input_bytes(from)
                      : rp_input_bytes(to) + to->n * (double)to->size;
    out->type = to->type;
    return NULL;
}

/* Counts the elements of a list, or of every list among the inputs. */
static double list_elements(const struct rp_inputs *in, uint32_t i)
{
    double n = 0;

    for (uint32_t k = 0; k < in->at[i].count; k++)
        n += in->parts.at[in->at[i].first + k].stored;
    return n;
}

const char *rp_model_concat(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    (void)arg;
    if (!in->count || !in->at[0].is_list)
        return RP_NO_SHAPES;
    if (!in->at[0].count)
        return RP_NO_LIST;
    if (in->hint_size <= 0)
        return RP_NO_TYPES;
    out->flops = 0;
    out->bytes = 2 * list_elements(in, 0) * (double)in->hint_size;
    out->type = in->hint;
    return NULL;
}

const char *rp_model_all_inputs(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    double most = 0, bytes = 0;

    for (uint32_t i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (!t)
            continue;
        if (t->size <= 0)
            return RP_NO_TYPES;
        bytes += rp_input_bytes(t);
        if (t->n > most) {
            most = t->n;
            out->type = t->type;
        }
    }
    if (most <= 0)
        return RP_NO_SHAPES;
    out->flops = arg * most;
    out->bytes = bytes;
    return NULL;
}

#define PICTURE 3
RP_LIMIT(PICTURE, "dimensions", "of a picture; one with more of them has no model");

/* upsample_nearest2d(x, output_size, scales…): one of the two. */
const char *rp_model_upsample(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *x = rp_inputs_tensor(in, 0);
    double size[PICTURE], n = 1;
    uint32_t i, given, spatial;

    if (!x || x->ndims < 3)
        return RP_NO_SHAPES;
    if (x->size <= 0)
        return RP_NO_TYPES;
    spatial = x->ndims - 2u;
    given = spatial <= PICTURE ? rp_inputs_ints(in, 1, size, PICTURE) : 0;
    if (given == spatial) {
        n = x->dim[0] * x->dim[1];
        for (i = 0; i < spatial; i++)
            n *= size[i];
    } else {
        given = spatial <= PICTURE ? rp_inputs_ints(in, in->count - 1, size, PICTURE) : 0;
        if (given != spatial)
            return RP_NO_ARGUMENTS;
        for (n = x->dim[0] * x->dim[1], i = 0; i < spatial; i++)
            n *= floor(x->dim[i + 2] * size[i]);
    }
    out->flops = arg * n;
    out->bytes = rp_input_bytes(x) + n * (double)x->size;
    out->type = x->type;
    return NULL;
}

/* ------------------------------------------------------------------ lists of parameters */

static double hinted_size(const struct rp_inputs *in)
{
    return in->hint_size > 0 ? (double)in->hint_size : 4;
}

/* _foreach_add_([a…], [b…]): lists are read, and one of the size of the first is written. */
const char *rp_model_foreach(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    double read = 0, first = 0;
    uint32_t i, lists = 0;

    for (i = 0; i < in->count; i++) {
        if (!in->at[i].is_list)
            continue;
        if (!in->at[i].count)
            return RP_NO_LIST;
        first = lists++ ? first : list_elements(in, i);
        read += list_elements(in, i);
    }
    if (!lists)
        return RP_NO_SHAPES;
    out->flops = arg % RP_ONLY_READS * first;
    out->bytes = (read + (arg >= RP_ONLY_READS ? 0 : first)) * hinted_size(in);
    out->type = in->hint != RP_NUMBER_NONE ? in->hint : RP_NUMBER_FP32;
    return NULL;
}

/* _fused_adamw_(parameters, gradients, states…): all are read, all but the gradients are written;
   the steps, one number each, count for nothing. */
const char *rp_model_fused_optimizer(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    double moved = 0, n = 0;
    uint32_t i, lists = 0;

    for (i = 0; i < in->count; i++) {
        if (!in->at[i].is_list)
            continue;
        if (!in->at[i].count) {
            if (lists < 2)
                return RP_NO_LIST;
            continue;
        }
        double elements = list_elements(in, i);
        n = lists ? n : elements;
        if (elements >= n)
            moved += lists == 1 ? elements : 2 * elements;
        lists++;
    }
    if (!lists)
        return RP_NO_SHAPES;
    out->flops = arg * n;
    out->bytes = moved * hinted_size(in);
    out->type = in->hint != RP_NUMBER_NONE ? in->hint : RP_NUMBER_FP32;
    return NULL;
}

/* ------------------------------------------------------------------ servers */

/* Keys and values of new tokens are written to their places in the cache. */
const char *rp_model_cache(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *k = rp_inputs_tensor(in, 0), *v = rp_inputs_tensor(in, 1),
                                 *places = rp_inputs_tensor(in, (uint32_t)arg);

    if (!k || !v)
        return RP_NO_SHAPES;
    if (k->size <= 0 || v->size <= 0)
        return RP_NO_TYPES;
    out->flops = 0;
    out->bytes =
        2 * (rp_input_bytes(k) + rp_input_bytes(v)) + (places ? rp_input_bytes(places) : 0);
    out->type = k->type;
    return NULL;
}

/* Each pair of elements is rotated in place: six operations for two. */
const char *rp_model_rotary(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *at = rp_inputs_tensor(in, 0), *q = rp_inputs_tensor(in, 1),
                                 *k = rp_inputs_tensor(in, 2), *table = rp_inputs_tensor(in, 4);

    if (!at || !q || !k)
        return RP_NO_SHAPES;
    if (q->size <= 0 || k->size <= 0 || at->size <= 0)
        return RP_NO_TYPES;
    out->flops = arg * (q->n + k->n);
    out->bytes = 2 * (rp_input_bytes(q) + rp_input_bytes(k)) + rp_input_bytes(at);
    if (table && table->ndims == 2)
        out->bytes += at->n * table->dim[1] * (double)table->size;
    out->type = q->type;
    return NULL;
}
