/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured operators: interprets names and shapes, and merges rows of one operator that are in any
 * order. The table below only fills what rows leave out; rows of operators that it does not know
 * must give FLOPs and bytes.
 */
#include "cost/learn/samples.h"

#include "base/order.h"
#include "facts/torch_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const rp_op_kind_names[RP_OP_KINDS] = {"elements", "rows",      "matmul", "bmm",
                                                   "conv2d",   "attention", "fused"};

static const struct rp_op_name op_names[] = {
    {"matmul", RP_OP_MATMUL, true, 0, 0},
    {"mm", RP_OP_MATMUL, true, 0, 0},
    {"linear", RP_OP_MATMUL, true, 0, 0},
    {"bmm", RP_OP_BMM, true, 0, 0},
    {"conv2d", RP_OP_CONV, true, 0, 0},
    {"conv2d_backward", RP_OP_CONV, true, 0, 0},
    {"sdpa_backward", RP_OP_ATTENTION, true, 0, 0},
    {"sdpa", RP_OP_ATTENTION, true, 0, 0},
    {"sdpa_causal", RP_OP_ATTENTION, true, 0, 0},
    {"sdpa_causal_backward", RP_OP_ATTENTION, true, 0, 0},
    {"softmax", RP_OP_ROWS, false, 5, 2},
    {"layernorm", RP_OP_ROWS, false, 5, 2},
    {"layer_norm", RP_OP_ROWS, false, 5, 2},
    {"sum", RP_OP_ROWS, false, 5, 1},
    {"add", RP_OP_ELEMENTS, false, 1, 3},
    {"sub", RP_OP_ELEMENTS, false, 1, 3},
    {"mul", RP_OP_ELEMENTS, false, 1, 3},
    {"div", RP_OP_ELEMENTS, false, 1, 3},
    {"copy", RP_OP_ELEMENTS, false, 1, 2},
    {"exp", RP_OP_ELEMENTS, false, 1, 2},
    {"gelu", RP_OP_ELEMENTS, false, 1, 2},
    {"relu", RP_OP_ELEMENTS, false, 1, 2},
    {"neg", RP_OP_ELEMENTS, false, 1, 2},
    {"abs", RP_OP_ELEMENTS, false, 1, 2},
    {"tanh", RP_OP_ELEMENTS, false, 1, 2},
    {"sigmoid", RP_OP_ELEMENTS, false, 1, 2},
    {"rsqrt", RP_OP_ELEMENTS, false, 1, 2},
    {"square", RP_OP_ELEMENTS, false, 1, 2},
    {"addc", RP_OP_ELEMENTS, false, 1, 2},
    {"mulc", RP_OP_ELEMENTS, false, 1, 2},
};

/* The numbers in the shape of a kind, as messages name them. */
static const struct {
    uint8_t least, most;
    const char *form;
} shape_forms[RP_OP_KINDS] = {
    [RP_OP_ELEMENTS] = {1, RP_SHAPE_DIMS, "any dimensions, as 1048576 or 64x1024"},
    [RP_OP_ROWS] = {2, 2, "rows x columns, as 4096x1024"},
    [RP_OP_MATMUL] = {3, 3, "M x K x N, as 4096x1024x1024"},
    [RP_OP_BMM] = {4, 4, "batch x M x K x N, as 16x512x64x512"},
    [RP_OP_CONV] = {7, 7,
                    "batch x channels x height x width x filters x kernel x stride, as "
                    "32x64x56x56x64x3x1"},
    [RP_OP_ATTENTION] = {4, 4, "batch x heads x length x width of a head, as 8x16x1024x64"},
    [RP_OP_FUSED] = {1, RP_SHAPE_DIMS, "any dimensions, as 1048576"},
};

void rp_samples_release(struct rp_samples *samples)
{
    rp_vec_release(&samples->rows);
    rp_vec_release(&samples->sources);
    rp_arena_release(&samples->arena);
}

const struct rp_op_name *rp_op_name_of(const char *op, size_t len)
{
    if (len > 6 && !strncmp(op, "aten::", 6)) {
        op += 6;
        len -= 6;
    }
    while (len > 1 && op[len - 1] == '_')
        len--;
    for (size_t i = 0; i < sizeof op_names / sizeof op_names[0]; i++)
        if (strlen(op_names[i].name) == len && !strncmp(op_names[i].name, op, len))
            return &op_names[i];
    return NULL;
}

enum rp_number rp_number_of_word(const char *word, size_t len)
{
    static const struct {
        const char *word;
        enum rp_number type;
    } words[] = {
        {"f64", RP_NUMBER_FP64},      {"fp64", RP_NUMBER_FP64}, {"float64", RP_NUMBER_FP64},
        {"f32", RP_NUMBER_FP32},      {"fp32", RP_NUMBER_FP32}, {"float32", RP_NUMBER_FP32},
        {"float", RP_NUMBER_FP32},    {"tf32", RP_NUMBER_TF32}, {"bf16", RP_NUMBER_BF16},
        {"bfloat16", RP_NUMBER_BF16}, {"f16", RP_NUMBER_FP16},  {"fp16", RP_NUMBER_FP16},
        {"float16", RP_NUMBER_FP16},  {"half", RP_NUMBER_FP16}, {"fp8", RP_NUMBER_FP8},
        {"f8", RP_NUMBER_FP8},        {"fp4", RP_NUMBER_FP4},   {"int8", RP_NUMBER_INT8},
        {"i8", RP_NUMBER_INT8},       {"int", RP_NUMBER_INT}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == len && !strncasecmp(words[i].word, word, len))
            return words[i].type;
    return RP_NUMBER_NONE;
}

double rp_number_bytes(enum rp_number type)
{
    static const double bytes[RP_NUMBERS] = {
        [RP_NUMBER_FP64] = 8,  [RP_NUMBER_FP32] = 4, [RP_NUMBER_TF32] = 4,
        [RP_NUMBER_BF16] = 2,  [RP_NUMBER_FP16] = 2, [RP_NUMBER_FP8] = 1,
        [RP_NUMBER_FP4] = 0.5, [RP_NUMBER_INT8] = 1, [RP_NUMBER_INT] = 4};

    return bytes[type];
}

enum rp_code rp_sample_shape_parse(const char *text, size_t len, struct rp_sample *s,
                                   struct rp_err *err)
{
    const char *end = text + len;
    double value;

    s->ndims = 0;
    while (text < end) {
        for (value = 0; text < end && *text >= '0' && *text <= '9'; text++)
            value = value * 10 + (*text - '0');
        if (value < 1 || value > RP_SAMPLE_MOST_DIM || s->ndims == RP_SHAPE_DIMS ||
            (text < end && (!strchr("xX*,", *text) || text + 1 == end)))
            break;
        s->dim[s->ndims++] = value;
        if (text++ >= end)
            return RP_OK;
    }
    if (s->ndims && text > end)
        return RP_OK;
    return rp_err_set(err, RP_USAGE, "'%.*s': a shape is 1 to %d numbers above 0, as 4096x1024",
                      (int)len, end - len, RP_SHAPE_DIMS);
}

const char *rp_sample_shape_text(const struct rp_sample *s, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    for (int i = 0; i < s->ndims && at + 1 < size; i++) {
        int n = snprintf(buf + at, size - at, "%s%.0f", i ? "x" : "", s->dim[i]);

        at += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

double rp_sample_elements(const struct rp_sample *s)
{
    double n = 1;

    for (int i = 0; i < s->ndims; i++)
        n *= s->dim[i];
    return n;
}

double rp_conv_out(double size, double kernel, double stride)
{
    double n = floor((size + 2 * floor(kernel / 2) - kernel) / stride) + 1;

    return n < 1 ? 1 : n;
}

/* Computes the least work of a known operator: each input is read and each output written once. */
static void work_of(const struct rp_sample *s, const struct rp_op_name *name, double *flops,
                    double *elements)
{
    const double *d = s->dim;
    double h, w;
    bool back;

    switch (s->kind) {
    case RP_OP_MATMUL:
        *flops = 2 * d[0] * d[1] * d[2];
        *elements = d[0] * d[1] + d[1] * d[2] + d[0] * d[2];
        break;
    case RP_OP_BMM:
        *flops = 2 * d[0] * d[1] * d[2] * d[3];
        *elements = d[0] * (d[1] * d[2] + d[2] * d[3] + d[1] * d[3]);
        break;
    case RP_OP_CONV:
        h = rp_conv_out(d[2], d[5], d[6]);
        w = rp_conv_out(d[3], d[5], d[6]);
        *flops = 2 * d[0] * h * w * d[4] * d[1] * d[5] * d[5];
        *elements = d[0] * d[1] * d[2] * d[3] + d[4] * d[1] * d[5] * d[5] + d[0] * d[4] * h * w;
        break;
    case RP_OP_ATTENTION: /* the backward pass has five products instead of two */
        back = rp_torch_means(s->op, RP_TORCH_BACKWARDS);
        *flops = (rp_torch_means(s->op, RP_TORCH_CAUSAL) ? 1 : 2) * (back ? 5 : 2) * d[0] * d[1] *
                 d[2] * d[2] * d[3];
        *elements = (back ? 8 : 4) * d[0] * d[1] * d[2] * d[3];
        break;
    default:
        *flops = rp_sample_elements(s) * (name ? name->flops : 1);
        *elements = rp_sample_elements(s) * (name && name->moved > 0 ? name->moved : 2);
    }
}

/* Returns the number of operators in a chain: one more than there are '+' in its name. */
static double chain_length(const char *op)
{
    double n = 1;

    for (; *op; op++)
        n += *op == '+';
    return n;
}

enum rp_code rp_sample_complete(struct rp_sample *s, struct rp_err *err)
{
    const struct rp_op_name *name = rp_op_name_of(s->op, strlen(s->op));
    bool chain = strchr(s->op, '+') != NULL;
    double flops = NAN, elements = NAN;

    s->kind = chain ? RP_OP_FUSED : name ? name->kind : s->ndims == 2 ? RP_OP_ROWS : RP_OP_ELEMENTS;
    if (s->ndims < shape_forms[s->kind].least || s->ndims > shape_forms[s->kind].most)
        return rp_err_set(err, RP_USAGE, "the shape of '%s' is %s", s->op,
                          shape_forms[s->kind].form);
    if (!isnan(s->flops) && !isnan(s->bytes))
        return RP_OK;
    if (!name && !chain)
        return rp_err_set(err, RP_USAGE,
                          "'%s' is not in the table of operators: give its FLOPs and bytes", s->op);
    work_of(s, name, &flops, &elements);
    if (isnan(s->flops))
        s->flops = chain ? flops * chain_length(s->op) : flops;
    if (isnan(s->bytes))
        s->bytes = elements * rp_number_bytes((enum rp_number)s->type);
    return s->flops > RP_SAMPLE_MOST_WORK || s->bytes > RP_SAMPLE_MOST_WORK
               ? rp_err_set(err, RP_USAGE, "'%s': the shape is too large", s->op)
               : RP_OK;
}

bool rp_sample_same_shape(const struct rp_sample *a, const struct rp_sample *b)
{
    return a->ndims == b->ndims && !memcmp(a->dim, b->dim, a->ndims * sizeof a->dim[0]);
}

/* ------------------------------------------------------------------ rows that are the same */

static int compare_dims(const struct rp_sample *a, const struct rp_sample *b)
{
    for (int i = 0; i < a->ndims && i < b->ndims; i++)
        if (a->dim[i] != b->dim[i])
            return a->dim[i] < b->dim[i] ? -1 : 1;
    return RP_COMPARE(a->ndims, b->ndims);
}

RP_ORDER(compare_samples, struct rp_sample, strcmp(a->device, b->device), strcmp(a->op, b->op),
         RP_UP(type), compare_dims(a, b), RP_UP(ns))

static bool is_same(const struct rp_sample *a, const struct rp_sample *b)
{
    return a->type == b->type && !compare_dims(a, b) && !strcmp(a->op, b->op) &&
           !strcmp(a->device, b->device);
}

enum rp_code rp_samples_merge(struct rp_samples *samples, struct rp_err *err)
{
    struct rp_sample *rows = samples->rows.at;
    size_t i, end, n = 0;

    (void)err;
    for (i = 1; i < samples->rows.n && compare_samples(&rows[i - 1], &rows[i]) <= 0; i++)
        ;
    if (i < samples->rows.n) /* rows of a model that was written are already in order */
        qsort(rows, samples->rows.n, sizeof *rows, compare_samples);
    for (i = 0; i < samples->rows.n; i = end) {
        double count = 0;

        for (end = i + 1; end < samples->rows.n && is_same(&rows[i], &rows[end]);)
            end++;
        for (size_t k = i; k < end; k++)
            count += rows[k].count;
        struct rp_sample one = rows[i + (end - i) / 2];
        if ((end - i) % 2 == 0)
            one.ns = (one.ns + rows[i + (end - i) / 2 - 1].ns) / 2;
        one.count = count;
        rows[n++] = one;
    }
    samples->rows.n = n;
    return RP_OK;
}
