/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls that are understood, by their target: marks of the partitioner and of memory spaces
 * (the operand as it is), TopK, the matrix products and convolutions that XLA:GPU calls libraries
 * for (the result is a tuple with scratch memory), and those of LAPACK for Cholesky and LU
 * factors and triangular solves that JAX uses on CPUs. Any
 * other is refused by its name.
 */
#include "exec/dot.h"
#include "exec/eval_kernels.h"
#include "exec/linalg.h"
#include "exec/reduce.h"
#include "exec/sort.h"
#include "exec/strided.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    SAME,
    TOPK,
    GEMM,
    CONV,
    CONV_INPUT,
    CONV_FILTER,
    CONV_BIAS,
    POTRF,
    GETRF,
    TRSM,
    BUFFER
};

struct custom {
    enum kind kind;
    struct rp_dot dot;
    struct rp_conv conv;
    struct rp_solve solve;
    double alpha, beta, side_scale;
    char activation[24];
    bool bias, lower;
    struct rp_value_shape filter; /* of a backward convolution: what the forward one had */
};

struct target {
    const char *name; /* '*' at the end: any that begins so */
    enum kind kind;
};
static const struct target targets[] = {
    {"Sharding", SAME},
    {"SPMDFullToShardShape", SAME},
    {"SPMDShardToFullShape", SAME},
    {"annotate_device_placement", SAME},
    {"MoveToHost", SAME},
    {"MoveToDevice", SAME},
    {"xla.sdy.*", SAME},
    {"LayoutConstraint", SAME},
    {"AllocateBuffer", BUFFER},
    {"TopK", TOPK},
    {"__cublas$gemm", GEMM},
    {"__cublas$lt$matmul", GEMM},
    {"__onednn$matmul", GEMM},
    {"__cudnn$convForward", CONV},
    {"__cudnn$convBackwardInput", CONV_INPUT},
    {"__cudnn$convBackwardFilter", CONV_FILTER},
    {"__cudnn$convBiasActivationForward", CONV_BIAS},
    {"lapack_spotrf_ffi", POTRF},
    {"lapack_dpotrf_ffi", POTRF},
    {"lapack_cpotrf_ffi", POTRF},
    {"lapack_zpotrf_ffi", POTRF},
    {"lapack_sgetrf_ffi", GETRF},
    {"lapack_dgetrf_ffi", GETRF},
    {"lapack_cgetrf_ffi", GETRF},
    {"lapack_zgetrf_ffi", GETRF},
    {"lapack_strsm_ffi", TRSM},
    {"lapack_dtrsm_ffi", TRSM},
    {"lapack_ctrsm_ffi", TRSM},
    {"lapack_ztrsm_ffi", TRSM},
};

static const struct target *find_target(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        size_t len = strlen(targets[i].name);

        if (targets[i].name[len - 1] == '*'
                ? n >= len - 1 && !memcmp(name, targets[i].name, len - 1)
                : n == len && !memcmp(name, targets[i].name, len))
            return &targets[i];
    }
    return NULL;
}

/* ---- the configuration, which is JSON in text ---- */

/* What stands behind "key": in it, or NULL. Quotes may be escaped. */
static const char *config(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                          const char **end)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_BACKEND_CONFIG);
    size_t len = strlen(key);

    if (!attr)
        return NULL;
    *end = attr->at + attr->n;
    for (const char *at = attr->at; (at = memmem(at, (size_t)(*end - at), key, len)) != NULL;
         at++) {
        const char *p = at + len;

        if (at == attr->at || (at[-1] != '"' && at[-1] != ' ' && at[-1] != '{' && at[-1] != ','))
            continue;
        while (p < *end && (*p == '"' || *p == '\\' || *p == ' '))
            p++;
        if (p < *end && (*p == ':' || *p == '=')) {
            p++;
            while (p < *end && *p == ' ')
                p++;
            return p < *end ? p : NULL;
        }
    }
    return NULL;
}

static double config_number(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                            double absent)
{
    const char *end, *at = config(plan, node, key, &end);

    while (at && at < end && (*at == '"' || *at == '\\'))
        at++;
    return at && at < end ? strtod(at, NULL) : absent;
}

static void config_word(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                        char *out, size_t cap)
{
    const char *end, *at = config(plan, node, key, &end);
    size_t n = 0;

    while (at && at < end && (*at == '"' || *at == '\\'))
        at++;
    while (at && at < end && n + 1 < cap &&
           ((*at >= 'A' && *at <= 'Z') || *at == '_' || (*at >= 'a' && *at <= 'z')))
        out[n++] = *at++;
    out[n] = '\0';
}

/* "[\"1\"]" or "[1,2]" */
static size_t config_list(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                          int64_t *out, size_t cap)
{
    const char *end, *at = config(plan, node, key, &end);
    size_t n = 0;

    for (; at && at < end && *at != ']' && n < cap; at++)
        if (*at >= '0' && *at <= '9') {
            char *stop;

            out[n++] = strtoll(at, &stop, 10);
            at = stop - 1;
        }
    return n;
}

/* ---- preparing ---- */

static const struct rp_value_shape *result_shape(const struct rp_node *node)
{
    return node->shape->elem == RP_ELEM_TUPLE && node->shape->nparts ? node->shape->parts[0]
                                                                     : node->shape;
}

static enum rp_code prepare_gemm(struct rp_plan *plan, struct rp_node *node, struct custom *c,
                                 struct rp_err *err)
{
    static const char *const keys[4] = {"lhs_contracting_dimensions", "rhs_contracting_dimensions",
                                        "lhs_batch_dimensions", "rhs_batch_dimensions"};
    const struct rp_value_shape *lhs = rp_node_operand(plan, node, 0), *rhs;
    int64_t dims[4][8];
    const int64_t *lists[4] = {dims[0], dims[1], dims[2], dims[3]};
    size_t counts[4];
    char epilogue[24];

    if (node->nin < 2)
        return rp_node_error(node, RP_FORMAT, err, "a product of one operand");
    rhs = rp_node_operand(plan, node, 1);
    for (size_t i = 0; i < 4; i++) {
        counts[i] = config_list(plan, node, keys[i], dims[i], 8);
        for (size_t k = 0; k < counts[i]; k++)
            if (dims[i][k] >= (int64_t)(i % 2 ? rhs : lhs)->rank)
                return rp_node_error(node, RP_FORMAT, err, "its dimensions do not fit");
    }
    if (!counts[0] && lhs->rank >= 2 && rhs->rank >= 2) { /* as oneDNN has it: rows by columns */
        dims[0][0] = (int64_t)lhs->rank - 1;
        dims[1][0] = (int64_t)rhs->rank - 2;
        counts[0] = counts[1] = 1;
        for (size_t k = 0; k + 2 < lhs->rank && k < 8; k++)
            dims[2][counts[2]++] = dims[3][counts[3]++] = (int64_t)k;
    }
    c->alpha = config_number(plan, node, "alpha_real", 1);
    c->beta = config_number(plan, node, "beta", 0);
    config_word(plan, node, "epilogue", epilogue, sizeof epilogue);
    c->bias = !strncmp(epilogue, "BIAS", 4);
    memcpy(c->activation,
           strstr(epilogue, "RELU")   ? "kRelu"
           : strstr(epilogue, "GELU") ? "kGelu"
           : strstr(epilogue, "SILU") ? "kSilu"
                                      : "kNone",
           6);
    if (strstr(epilogue, "AUX"))
        return rp_node_error(node, RP_UNSUPPORTED, err, "epilogue %s", epilogue);
    return rp_dot_fill(&c->dot, node, lhs, rhs, lists, counts, err);
}

static enum rp_code prepare_conv(struct rp_plan *plan, struct rp_node *node, struct custom *c,
                                 struct rp_err *err)
{
    size_t rank;

    if (node->nin < 2)
        return rp_node_error(node, RP_FORMAT, err, "a convolution of one operand");
    RP_TRY(rp_conv_fill(plan, node, &c->conv, err));
    rank = c->conv.dims.nspatial + 2;
    if (rp_node_operand(plan, node, 0)->rank != rank ||
        rp_node_operand(plan, node, 1)->rank != rank || result_shape(node)->rank != rank)
        return rp_node_error(node, RP_FORMAT, err, "its operands do not fit its dim_labels");
    c->alpha = config_number(plan, node, "conv_result_scale", 1);
    c->side_scale = config_number(plan, node, "side_input_scale", 0);
    config_word(plan, node, "activation_mode", c->activation, sizeof c->activation);
    return RP_OK;
}

/* Letters of a LAPACK call are numbers in its configuration: uplo = 76 : ui8 is 'L'. */
static bool letter(const struct rp_plan *plan, const struct rp_node *node, const char *key, char is)
{
    const char *end, *at = config(plan, node, key, &end);

    while (at && at < end && (*at == '"' || *at == '\\' || *at == '\''))
        at++;
    return at && at < end &&
           (*at == is || (*at >= '0' && *at <= '9' && strtol(at, NULL, 10) == is));
}

static enum rp_code prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_CUSTOM_CALL_TARGET);
    struct custom *c = RP_NODE_NEW(plan, struct custom);
    const char *name = attr ? attr->at : "";
    size_t n = attr ? attr->n : 0;
    const struct target *target;

    if (!c)
        return rp_err_nomem(err, "planning");
    node->attrs = c;
    if (n >= 2 && *name == '"') {
        name++;
        n -= 2;
    }
    target = find_target(name, n);
    if (!target)
        return rp_node_error(node, RP_UNSUPPORTED, err, "the custom call '%.*s' is not known here",
                             (int)n, name);
    c->kind = target->kind;
    c->alpha = 1;
    if (c->kind == SAME && node->nin < 1)
        return rp_node_error(node, RP_FORMAT, err, "it has no operand");
    if (c->kind == GEMM)
        return prepare_gemm(plan, node, c, err);
    if (c->kind >= CONV && c->kind <= CONV_BIAS)
        return prepare_conv(plan, node, c, err);
    if ((c->kind == POTRF || c->kind == GETRF || c->kind == TRSM) &&
        (node->nin < (c->kind == TRSM ? 2u : 1u) || rp_node_operand(plan, node, 0)->rank < 2 ||
         (c->kind == TRSM ? node->shape->elem == RP_ELEM_TUPLE
                          : node->shape->elem != RP_ELEM_TUPLE ||
                                node->shape->nparts != (c->kind == GETRF ? 3u : 2u))))
        return rp_node_error(node, RP_FORMAT, err, "its operands or results do not fit");
    if (c->kind == TOPK && (node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts != 2 ||
                            !node->shape->parts[0]->rank))
        return rp_node_error(node, RP_FORMAT, err, "its result is no pair of arrays");
    c->lower = letter(plan, node, "uplo", 'L');
    c->solve = (struct rp_solve){.left = letter(plan, node, "side", 'L'),
                                 .lower = c->lower,
                                 .unit = letter(plan, node, "diag", 'U'),
                                 .transpose = letter(plan, node, "trans_x", 'T'),
                                 .adjoint = letter(plan, node, "trans_x", 'C')};
    return RP_OK;
}

/* ---- products and convolutions ---- */

static double activate(const struct custom *c, double x)
{
    if (!strcmp(c->activation, "kRelu"))
        return x > 0 || x != x ? x : 0;
    if (!strcmp(c->activation, "kGelu"))
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    if (!strcmp(c->activation, "kSilu"))
        return x / (1 + exp(-x));
    return x;
}

/* alpha * product + beta * third operand + bias, activated. */
static enum rp_code gemm(const struct rp_node *node, const struct custom *c,
                         struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_value_shape *shape = result_shape(node);
    uint32_t third = 2, bias = 2 + (c->beta != 0);
    struct rp_tensor *wide, *narrow = NULL;
    enum rp_code code;

    RP_TRY(rp_dot_wide(&c->dot, in[0], in[1], shape->elem, &wide, err));
    if ((c->beta != 0 && node->nin <= third) || (c->bias && node->nin <= bias))
        code = rp_node_error(node, RP_FORMAT, err, "an operand is missing");
    else if (wide->elem == RP_ELEM_F64) {
        double *w = (double *)(void *)wide->data;

        for (size_t i = 0; i < wide->n; i++) {
            w[i] *= c->alpha;
            if (c->beta != 0)
                w[i] += c->beta * rp_tensor_number(in[third], i);
            if (c->bias)
                w[i] += rp_tensor_number(in[bias], i % in[bias]->n);
            w[i] = activate(c, w[i]);
        }
        code = rp_tensor_as(wide, shape->elem, &narrow, err);
    } else {
        code = rp_tensor_as(wide, shape->elem, &narrow, err);
    }
    rp_tensor_drop(wide);
    if (code == RP_OK)
        code = rp_tensor_view(narrow, shape->elem, shape->dims, shape->rank, out, err);
    rp_tensor_drop(narrow);
    return code;
}

/* Backward convolutions run the loops of the forward one, which is what window and dim_labels are
   of, and add into the operand that is asked for. x, w, y: arrays of the forward convolution. */
struct backward {
    const struct custom *c;
    const int64_t *x, *w, *y; /* dims */
    int64_t xs[RP_TENSOR_RANK], ws[RP_TENSOR_RANK], ys[RP_TENSOR_RANK];
};

static void backward_one(const struct backward *b, const int64_t *out, const double *left,
                         const double *right, double *to)
{
    const struct rp_conv *v = &b->c->conv;
    const struct rp_conv_dims *d = &v->dims;
    int64_t k[RP_TENSOR_RANK] = {0}, size[RP_TENSOR_RANK], f = out[d->output_feature], y = 0;
    int64_t features = b->w[d->kernel_input];
    int64_t group = f / (b->y[d->output_feature] / v->feature_groups);

    for (size_t i = 0; i < d->nspatial; i++)
        size[i] = v->window.dim[i].size;
    for (size_t i = 0; i < d->nspatial + 2; i++)
        y += out[i] * b->ys[i];
    do {
        int64_t x = out[d->output_batch] * b->xs[d->input_batch] +
                    group * features * b->xs[d->input_feature];
        int64_t w = f * b->ws[d->kernel_output];
        bool inside = true;

        for (size_t i = 0; i < d->nspatial; i++) {
            const struct rp_window_dim *wd = &v->window.dim[i];
            int64_t at =
                out[d->output_spatial[i]] * wd->stride - wd->pad_low + k[i] * wd->window_dilation;

            inside &= at >= 0 && at < b->x[d->input_spatial[i]];
            x += at * b->xs[d->input_spatial[i]];
            w += (wd->reversal ? wd->size - 1 - k[i] : k[i]) * b->ws[d->kernel_spatial[i]];
        }
        for (int64_t i = 0; inside && i < features; i++) {
            int64_t xi = x + i * b->xs[d->input_feature], wi = w + i * b->ws[d->kernel_input];

            if (b->c->kind == CONV_INPUT)
                to[xi] += left[y] * right[wi];
            else
                to[wi] += left[xi] * right[y];
        }
    } while (rp_index_next(k, size, d->nspatial));
}

static enum rp_code conv_backward(const struct rp_node *node, const struct custom *c,
                                  struct rp_tensor *const *in, struct rp_tensor **out,
                                  struct rp_err *err)
{
    const struct rp_value_shape *shape = result_shape(node);
    bool input = c->kind == CONV_INPUT;
    struct backward b = {.c = c,
                         .x = input ? shape->dims : in[0]->dims,
                         .w = input ? in[1]->dims : shape->dims,
                         .y = input ? in[0]->dims : in[1]->dims};
    size_t rank = c->conv.dims.nspatial + 2;
    int64_t index[RP_TENSOR_RANK] = {0};
    struct rp_tensor *l = NULL, *r = NULL, *to = NULL;
    enum rp_code code;

    if (b.x[c->conv.dims.input_feature] !=
            b.w[c->conv.dims.kernel_input] * c->conv.feature_groups ||
        b.y[c->conv.dims.output_feature] != b.w[c->conv.dims.kernel_output] ||
        b.x[c->conv.dims.input_batch] != b.y[c->conv.dims.output_batch])
        return rp_node_error(node, RP_FORMAT, err, "its features or batches do not fit");
    for (size_t i = 0; i < c->conv.dims.nspatial; i++)
        if (c->conv.window.dim[i].size != b.w[c->conv.dims.kernel_spatial[i]])
            return rp_node_error(node, RP_FORMAT, err, "its window does not fit its kernel");
    rp_strides(b.x, rank, b.xs);
    rp_strides(b.w, rank, b.ws);
    rp_strides(b.y, rank, b.ys);
    code = rp_tensor_as(in[0], RP_ELEM_F64, &l, err);
    if (code == RP_OK)
        code = rp_tensor_as(in[1], RP_ELEM_F64, &r, err);
    if (code == RP_OK)
        code = rp_tensor_new(RP_ELEM_F64, shape->dims, rank, &to, err);
    if (code == RP_OK) {
        double *sum = (double *)(void *)to->data;

        memset(to->data, 0, rp_tensor_bytes(to));
        do
            backward_one(&b, index, (double *)(void *)l->data, (double *)(void *)r->data, sum);
        while (rp_index_next(index, b.y, rank));
        for (size_t i = 0; i < to->n; i++)
            sum[i] *= c->alpha;
        code = rp_tensor_as(to, shape->elem, out, err);
    }
    rp_tensor_drop(l);
    rp_tensor_drop(r);
    rp_tensor_drop(to);
    return code;
}

/* activation(alpha * conv + side_scale * side + bias) */
static enum rp_code conv_forward(const struct rp_node *node, const struct custom *c,
                                 struct rp_tensor *const *in, struct rp_tensor **out,
                                 struct rp_err *err)
{
    const struct rp_value_shape *shape = result_shape(node);
    struct rp_value_shape wide = *shape;
    struct rp_tensor *t;
    enum rp_code code;

    if (rp_elem_is_complex(shape->elem) || c->kind == CONV)
        return rp_conv_run(&c->conv, in[0], in[1], shape, out, err);
    wide.elem = RP_ELEM_F64;
    RP_TRY(rp_conv_run(&c->conv, in[0], in[1], &wide, &t, err));
    for (size_t i = 0; i < t->n; i++) {
        double *v = (double *)(void *)t->data + i;
        size_t inner = 1, features = (size_t)shape->dims[c->conv.dims.output_feature];

        for (size_t k = (size_t)c->conv.dims.output_feature + 1; k < shape->rank; k++)
            inner *= (size_t)shape->dims[k];
        *v *= c->alpha;
        if (node->nin > 3)
            *v += c->side_scale * rp_tensor_number(in[3], i);
        if (node->nin > 2 && in[2]->n == features)
            *v += rp_tensor_number(in[2], i / inner % features);
        *v = activate(c, *v);
    }
    code = rp_tensor_as(t, shape->elem, out, err);
    rp_tensor_drop(t);
    return code;
}

/* ---- LAPACK ---- */

/* (factor, info): the triangle that is not the factor's is the operand's. */
static enum rp_code potrf(const struct rp_node *node, const struct custom *c,
                          struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *parts[2] = {NULL, NULL};
    size_t n = (size_t)in[0]->dims[in[0]->rank - 1];
    enum rp_code code = rp_cholesky_run(in[0], c->lower, &parts[0], err);

    if (code == RP_OK)
        code = rp_shape_tensor(node->shape->parts[1], &parts[1], err);
    if (code != RP_OK) {
        rp_tensor_drop(parts[0]);
        return code;
    }
    for (size_t i = 0; i < parts[0]->n; i++) {
        size_t row = i / n % n, column = i % n;

        if (c->lower ? column > row : column < row)
            memcpy(parts[0]->data + i * in[0]->unit, in[0]->data + i * in[0]->unit, in[0]->unit);
    }
    for (size_t b = 0; b < parts[1]->n; b++) {
        int64_t info = 0;

        for (size_t k = 0; k < n && !info; k++)
            if (rp_tensor_number(parts[0], b * n * n + k * n + k) !=
                rp_tensor_number(parts[0], b * n * n + k * n + k))
                info = (int64_t)k + 1;
        rp_tensor_set_integer(parts[1], b, info);
    }
    return rp_tensor_tuple(parts, 2, out, err);
}

/* (factors, pivots, info), a matrix after the other. */
static enum rp_code getrf(const struct rp_node *node, struct rp_tensor *const *in,
                          struct rp_tensor **out, struct rp_err *err)
{
    size_t rows = (size_t)in[0]->dims[in[0]->rank - 2],
           columns = (size_t)in[0]->dims[in[0]->rank - 1];
    size_t least = rows < columns ? rows : columns;
    struct rp_tensor *wide = NULL, *parts[3] = {NULL, NULL, NULL};
    int64_t *pivot = calloc(least + 1, sizeof *pivot);
    enum rp_code code = pivot ? rp_tensor_new(RP_ELEM_C128, in[0]->dims, in[0]->rank, &wide, err)
                              : rp_err_nomem(err, "factoring");

    for (size_t i = 1; i < 3 && code == RP_OK; i++)
        code = rp_shape_tensor(node->shape->parts[i], &parts[i], err);
    for (size_t i = 0; code == RP_OK && i < wide->n; i++)
        ((rp_c128 *)(void *)wide->data)[i] =
            rp_complex(rp_tensor_number(in[0], i), rp_tensor_imaginary(in[0], i));
    for (size_t b = 0; code == RP_OK && least && b < wide->n / (rows * columns); b++) {
        int64_t info =
            rp_lu((rp_c128 *)(void *)wide->data + b * rows * columns, rows, columns, pivot);

        for (size_t i = 0; i < least && b * least + i < parts[1]->n; i++)
            rp_tensor_set_integer(parts[1], b * least + i, pivot[i]);
        if (b < parts[2]->n)
            rp_tensor_set_integer(parts[2], b, info);
    }
    if (code == RP_OK)
        code = rp_tensor_as(wide, in[0]->elem, &parts[0], err);
    rp_tensor_drop(wide);
    free(pivot);
    if (code == RP_OK)
        return rp_tensor_tuple(parts, 3, out, err);
    rp_tensor_drop(parts[1]);
    rp_tensor_drop(parts[2]);
    return code;
}

/* ---- all ---- */

/* The rest of a result that is a tuple: memory that the library would have used. */
static enum rp_code with_scratch(const struct rp_node *node, struct rp_tensor *first,
                                 struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *parts[8] = {first};
    uint32_t n = 1;
    enum rp_code code = RP_OK;

    if (node->shape->elem != RP_ELEM_TUPLE) {
        *out = first;
        return RP_OK;
    }
    for (; n < node->shape->nparts && n < 8 && code == RP_OK; n++) {
        code = rp_shape_tensor(node->shape->parts[n], &parts[n], err);
        if (code == RP_OK)
            memset(parts[n]->data, 0, rp_tensor_bytes(parts[n]));
    }
    if (code == RP_OK)
        return rp_tensor_tuple(parts, n, out, err);
    for (uint32_t i = 0; i < n; i++)
        rp_tensor_drop(parts[i]);
    return code;
}

static enum rp_code custom(struct rp_eval *e, const struct rp_node *node,
                           struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    const struct custom *c = node->attrs;
    struct rp_tensor *first = NULL;

    (void)e;
    switch (c->kind) {
    case SAME:
        *out = rp_tensor_keep(in[0]);
        return RP_OK;
    case TOPK:
        return rp_topk_run(in[0], (size_t)result_shape(node)->dims[result_shape(node)->rank - 1],
                           true, node->shape->parts[1]->elem, out, err);
    case POTRF:
        return potrf(node, c, in, out, err);
    case GETRF:
        return getrf(node, in, out, err);
    case TRSM:
        return rp_solve_run(&c->solve, in[0], in[1], out, err);
    case GEMM:
        RP_TRY(gemm(node, c, in, &first, err));
        break;
    case CONV:
    case CONV_BIAS:
        RP_TRY(conv_forward(node, c, in, &first, err));
        break;
    case CONV_INPUT:
    case CONV_FILTER:
        RP_TRY(conv_backward(node, c, in, &first, err));
        break;
    default:
        RP_TRY(rp_shape_tensor(result_shape(node), &first, err));
        memset(first->data, 0, rp_tensor_bytes(first));
    }
    return with_scratch(node, first, out, err);
}

const struct rp_kernel rp_kernels_custom[] = {
    {RP_OP_CUSTOM_CALL, prepare, custom},
    {0, NULL, NULL},
};
