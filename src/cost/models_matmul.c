/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products take 2 m n k; each matrix is read once and the result written once. */
#include "cost/models.h"

static const char *set_product(const struct rp_inputs *in, const struct rp_input_tensor *a,
                               const struct rp_input_tensor *b, double batch, double m, double n,
                               double k, double out_size, struct rp_op_cost *out)
{
    if (a->size <= 0 || b->size <= 0)
        return RP_NO_TYPES;
    out->flops = 2 * batch * m * n * k;
    out->bytes = rp_input_bytes(a) + rp_input_bytes(b) + batch * m * n * out_size;
    out->type = rp_product_type(in, a);
    out->on_matrix = true;
    return NULL;
}

/* Multiplies the dimensions before the last `skip`, broadcast over those of another. */
static double leading(const struct rp_input_tensor *t, uint32_t skip)
{
    double n = 1;

    for (uint32_t i = 0; i + skip < t->ndims; i++)
        n *= t->dim[i];
    return n;
}

/* torch.matmul: vectors, matrices and batches of them. */
static const char *model_matmul(const struct rp_inputs *in, const struct rp_input_tensor *a,
                                const struct rp_input_tensor *b, struct rp_op_cost *out)
{
    double m = a->ndims > 1 ? rp_input_last(a, 1) : 1, k = rp_input_last(a, 0);
    double n = b->ndims > 1 ? rp_input_last(b, 0) : 1;
    double ba = leading(a, 2), bb = leading(b, 2);

    if (!a->ndims || !b->ndims || k != rp_input_last(b, b->ndims > 1 ? 1 : 0))
        return RP_ODD_SHAPES;
    return set_product(in, a, b, ba > bb ? ba : bb, m, n, k, (double)a->size, out);
}

/* Adds the tensor that is added, or a bias, unless it is multiplied by 0 (the number at `beta`). */
static void add_term(const struct rp_inputs *in, uint32_t i, uint32_t beta, struct rp_op_cost *out)
{
    const struct rp_input_tensor *t = rp_inputs_tensor(in, i);
    double factor;

    if (t && !(beta && rp_inputs_int(in, beta, &factor) && factor == 0))
        out->bytes += rp_input_bytes(t);
}

const char *rp_model_product(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    uint32_t first = arg == RP_PRODUCT_ADDMM || arg == RP_PRODUCT_BADDBMM;
    const struct rp_input_tensor *a = rp_inputs_tensor(in, first),
                                 *b = rp_inputs_tensor(in, first + 1);
    const char *missing;

    if (!a || !b)
        return RP_NO_SHAPES;
    if (arg == RP_PRODUCT_LINEAR) { /* x [..., k], weight [n, k] or [k] */
        double k = rp_input_last(a, 0), n = b->ndims > 1 ? b->dim[0] : 1;

        if (!a->ndims || !b->ndims || k != rp_input_last(b, 0))
            return RP_ODD_SHAPES;
        missing = set_product(in, a, b, 1, leading(a, 1), n, k, (double)a->size, out);
    } else {
        missing = model_matmul(in, a, b, out);
    }
    if (!missing && arg != RP_PRODUCT_MM)
        add_term(in, first ? 0 : 2, first ? 3 : 0, out);
    return missing;
}

/* Returns the size of the format that an input names by its code, otherwise `size`. */
static double coded_size(const struct rp_inputs *in, uint32_t i, double size)
{
    double code;
    float found;

    if (!rp_inputs_int(in, i, &code))
        return size;
    rp_number_of_code((int64_t)code, &found);
    return found > 0 ? (double)found : size;
}

/* Products of 8 bits and fewer: scales and the format of the result come with them, in two
   orders. */
const char *rp_model_scaled_mm(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *a = rp_inputs_tensor(in, 0), *b = rp_inputs_tensor(in, 1);
    double size = 4; /* of int8: 32 bits */

    if (!a || !b)
        return RP_NO_SHAPES;
    if (a->ndims != 2 || b->ndims != 2 || a->dim[1] != b->dim[0])
        return RP_ODD_SHAPES;
    if (!arg) {
        double code;
        bool old = rp_inputs_int(in, 3, &code) && !rp_inputs_tensor(in, 3);

        size = coded_size(in, old ? 3 : 6, 2);
    }
    const char *missing = set_product(in, a, b, 1, a->dim[0], b->dim[1], a->dim[1], size, out);
    for (uint32_t i = 2; !missing && i < in->count; i++)
        add_term(in, i, 0, out);
    return missing;
}

/* aten::_grouped_mm and its relatives: tokens of all groups one after the other. */
const char *rp_model_grouped_mm(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *a = rp_inputs_tensor(in, 0), *b = rp_inputs_tensor(in, 1),
                                 *ends = rp_inputs_tensor(in, 2);
    double m, n, k, groups = ends ? ends->n : 1;

    (void)arg;
    if (!a || !b)
        return RP_NO_SHAPES;
    if (a->ndims == 2 &&
        b->ndims == 3) { /* rows are in groups, and the weights have either orientation */
        k = a->dim[1];
        n = b->dim[1] == k ? b->dim[2] : b->dim[1];
        if (b->dim[1] != k && b->dim[2] != k)
            return RP_ODD_SHAPES;
        return set_product(in, a, b, 1, a->dim[0], n, k, (double)a->size, out);
    }
    if (a->ndims == 3 && b->ndims == 2) /* columns in groups */
        return a->dim[2] == b->dim[0]
                   ? set_product(in, a, b, 1, a->dim[1], b->dim[1], a->dim[2], (double)a->size, out)
                   : RP_ODD_SHAPES;
    if (a->ndims == 3 && b->ndims == 3)
        return model_matmul(in, a, b, out);
    if (a->ndims != 2 || b->ndims != 2)
        return RP_ODD_SHAPES;
    /* the sum is in groups: gradients of weights, with a result for each group */
    if (a->dim[1] == b->dim[0]) {
        m = a->dim[0];
        n = b->dim[1];
        k = a->dim[1];
    } else if (a->dim[0] == b->dim[0]) {
        m = a->dim[1];
        n = b->dim[1];
        k = a->dim[0];
    } else {
        return RP_ODD_SHAPES;
    }
    return set_product(in, a, b, groups, m, n, k / groups, (double)a->size, out);
}

/* ------------------------------------------------------------------ libraries */

/* Finds n of b as a weight [n, k], or as [k, n]; 0 if they do not fit. */
static double columns(const struct rp_input_tensor *b, double k)
{
    if (rp_input_last(b, 0) == k)
        return rp_input_last(b, 1);
    return rp_input_last(b, 1) == k ? rp_input_last(b, 0) : 0;
}

/* Operators of libraries pass (a, b, …) or (out, a, b, …), with scales and a bias. */
const char *rp_model_gemm(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *t[4];
    uint32_t i, n = 0;

    (void)arg;
    for (i = 0; i < in->count && n < sizeof t / sizeof *t; i++)
        if (rp_inputs_tensor(in, i) && in->at[i].tensor.ndims > 1)
            t[n++] = &in->at[i].tensor;
    if (n < 2)
        return RP_NO_SHAPES;
    /* (out, a, b) */
    if (n > 2 && leading(t[0], 1) == leading(t[1], 1) && t[2]->ndims == t[1]->ndims &&
        columns(t[2], rp_input_last(t[1], 0)) == rp_input_last(t[0], 0))
        return set_product(in, t[1], t[2], leading(t[1], 2), rp_input_last(t[1], 1),
                           rp_input_last(t[0], 0), rp_input_last(t[1], 0), (double)t[0]->size, out);
    double found = columns(t[1], rp_input_last(t[0], 0));
    if (found <= 0)
        return RP_ODD_SHAPES;
    double size =
        t[0]->size >= 2 ? (double)t[0]->size : 2; /* results of smaller formats have 16 bits */
    if (t[1]->ndims > 2)                          /* a batch of weights */
        return set_product(in, t[0], t[1], leading(t[1], 2), rp_input_last(t[0], 1), found,
                           rp_input_last(t[0], 0), size, out);
    return set_product(in, t[0], t[1], 1, leading(t[0], 1), found, rp_input_last(t[0], 0), size,
                       out);
}

/* Finds the number of experts that a token uses: a number among the inputs, or the width of the
   tensor [tokens, experts of a token]. */
static double experts_of_token(const struct rp_inputs *in, int arg, double tokens, double experts)
{
    double found;

    if (arg >= 0 && rp_inputs_int(in, (uint32_t)arg, &found) && found >= 1)
        return found;
    for (uint32_t i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (t && t->ndims == 2 && t->dim[0] == tokens && t->dim[1] <= 64 && t->dim[1] <= experts)
            return t->dim[1];
    }
    return 0;
}

/* Fused experts: hidden [t, h], weights [e, n, h] and, for both layers in one, [e, h, n / 2]. */
const char *rp_model_experts(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *hidden = NULL, *w[2] = {NULL, NULL};
    int layer = arg < 0 ? 0 : arg / RP_FIRST_LAYER;
    uint32_t i, n = 0, rows = 0;

    for (i = 0; i < in->count && n < 2; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (t && t->ndims == 3 && t->dim[0] > 1)
            w[n++] = t;
        else if (t && t->ndims == 2 && !n && (!rows++ || !hidden))
            hidden = t;
    }
    if (!hidden || !n)
        return RP_NO_SHAPES;
    double each =
        experts_of_token(in, arg < 0 ? arg : arg % RP_FIRST_LAYER, hidden->dim[0], w[0]->dim[0]);
    if (each <= 0)
        return RP_NO_ARGUMENTS;
    if (hidden->size <= 0 || w[0]->size <= 0)
        return RP_NO_TYPES;
    double pairs = hidden->dim[0] * each; /* pairs of a token and an expert */
    double used = pairs < w[0]->dim[0] ? pairs / w[0]->dim[0] : 1;
    out->bytes = 2 * rp_input_bytes(hidden);
    out->flops = 0;
    for (i = 0; i < n; i++) {
        if (layer && i + 1 != (uint32_t)layer)
            continue;
        out->flops += 2 * pairs * w[i]->dim[1] * w[i]->dim[2];
        out->bytes += used * rp_input_bytes(w[i]);
    }
    out->type = w[0]->size < hidden->size ? w[0]->type : rp_product_type(in, hidden);
    out->on_matrix = true;
    return NULL;
}
