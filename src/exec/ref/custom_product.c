/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes matrix products for which XLA calls cuBLAS, cuBLASLt or oneDNN:
 *
 *   activation(alpha * scale_a * scale_b * (A x B) + beta * C + bias) * scale_d
 *
 * in f64 (s64 or c128), rounded once. Operands come in the order A, B, C (if beta is not 0), the
 * two scales of f8, the bias and the scale of the result. An epilogue with AUX also gives the value
 * before the activation; the largest magnitude is the second result on request.
 */
#include "exec/eval/strided.h"
#include "exec/ref/custom.h"
#include "exec/ref/dot.h"
#include "exec/ref/linalg.h"
#include "exec/ref/reduce.h"
#include "program/floats.h"

#include <math.h>
#include <string.h>

enum activation { NONE, RELU, GELU, SILU, GELU_ERF, TANH, ELU, RELU6, SIGMOID };

/* The steps that oneDNN appends to a product: adding an operand (repeated along the leading
   dimensions and those of 1), a factor, or an activation. */
#define STEPS 8
struct step {
    enum activation activation;
    uint32_t operand; /* 0: none */
    double factor;
};

struct gemm {
    struct rp_dot dot;
    rp_c128 alpha;
    double beta;
    enum activation activation;
    bool aux, largest;
    uint32_t matrix, bias, scale[2], scale_result; /* operands; 0: none */
    struct step steps[STEPS];
    uint32_t nsteps;
};

static enum rp_code product_dimensions(struct rp_plan *plan, struct rp_node *node, struct gemm *g,
                                       struct rp_err *err)
{
    static const char *const keys[4] = {"lhs_contracting_dimensions", "rhs_contracting_dimensions",
                                        "lhs_batch_dimensions", "rhs_batch_dimensions"};
    const struct rp_value_shape *lhs = rp_node_operand(plan, node, 0),
                                *rhs = rp_node_operand(plan, node, 1);
    int64_t dims[4][8];
    const int64_t *lists[4] = {dims[0], dims[1], dims[2], dims[3]};
    size_t counts[4];

    for (size_t i = 0; i < 4; i++) {
        counts[i] = rp_config_list(plan, node, keys[i], dims[i], 8);
        for (size_t k = 0; k < counts[i]; k++)
            if (dims[i][k] >= (int64_t)(i % 2 ? rhs : lhs)->rank)
                return rp_node_error(node, RP_FORMAT, err, "the dimensions do not match");
    }
    if (!counts[0] && lhs->rank >= 2 && rhs->rank >= 2) { /* oneDNN's form: rows by columns */
        dims[0][0] = (int64_t)lhs->rank - (rp_config_flag(plan, node, "transpose_a") ? 2 : 1);
        dims[1][0] = (int64_t)rhs->rank - (rp_config_flag(plan, node, "transpose_b") ? 1 : 2);
        counts[0] = counts[1] = 1;
        counts[2] = counts[3] = 0;
        for (size_t k = 0; k + 2 < lhs->rank && k < 8; k++)
            dims[2][counts[2]++] = dims[3][counts[3]++] = (int64_t)k;
    }
    return rp_dot_fill(&g->dot, node, lhs, rhs, lists, counts, err);
}

/* Whether the operand spreads over the result: each of its dimensions is 1 or the result's. */
static bool spreads(const struct rp_value_shape *in, const struct rp_value_shape *out)
{
    for (uint32_t k = 0; k < in->rank; k++)
        if (in->rank > out->rank ||
            (in->dims[k] != 1 && in->dims[k] != out->dims[out->rank - in->rank + k]))
            return false;
    return true;
}

/* Reads "ops":["BIAS","GELU_TANH"], and "alpha":[2] for each LINEAR. */
static enum rp_code product_steps(struct rp_plan *plan, struct rp_node *node, struct gemm *g,
                                  struct rp_err *err)
{
    static const struct {
        const char *name;
        enum activation activation;
        bool operand;
    } known[] = {
        {"BIAS", NONE, true},        {"BINARY_ADD", NONE, true},    {"SUM", NONE, true},
        {"LINEAR", NONE, false},     {"RELU", RELU, false},         {"RELU6", RELU6, false},
        {"TANH", TANH, false},       {"GELU_ERF", GELU_ERF, false}, {"GELU_TANH", GELU, false},
        {"SIGMOID", SIGMOID, false}, {"SWISH", SILU, false},        {"ELU", ELU, false}};
    const char *at = NULL, *end = NULL;
    double factors[STEPS];
    size_t nfactors = rp_config_numbers(plan, node, "alpha", factors, STEPS), used = 0;
    uint32_t operand = 2;

    for (rp_config_value(plan, node, "ops", &at, &end); at && at < end && *at != ']';) {
        size_t n = 0, i = 0;

        while (at + n < end && ((at[n] >= 'A' && at[n] <= 'Z') || at[n] == '_' ||
                                (n && at[n] >= '0' && at[n] <= '9')))
            n++;
        if (!n) {
            at++;
            continue;
        }
        while (i < sizeof known / sizeof *known &&
               (strlen(known[i].name) != n || memcmp(known[i].name, at, n) != 0))
            i++;
        if (i == sizeof known / sizeof *known || g->nsteps == STEPS)
            return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported fused %.*s", (int)n, at);
        if (known[i].operand &&
            (operand >= node->nin ||
             !spreads(rp_node_operand(plan, node, operand), rp_custom_shape(node))))
            return rp_node_error(node, RP_FORMAT, err, "no operand for the fused %.*s", (int)n, at);
        g->steps[g->nsteps++] = (struct step){
            known[i].activation, known[i].operand ? operand++ : 0,
            !strcmp(known[i].name, "LINEAR") && used < nfactors ? factors[used++] : 1};
        at += n;
    }
    return RP_OK;
}

/* Reads what cuBLASLt does after the product, by XLA's name for it; false if it is not known. */
static bool read_epilogue(const char *name, struct gemm *g, bool *bias)
{
    static const struct {
        const char *name;
        enum activation activation;
    } known[] = {{"", NONE}, {"DEFAULT", NONE}, {"RELU", RELU}, {"GELU", GELU}, {"SILU", SILU}};

    *bias = !strncmp(name, "BIAS", 4);
    if (*bias)
        name += name[4] == '_' ? 5 : 4;
    size_t n = strlen(name);
    g->aux = n > 4 && !strcmp(name + n - 4, "_AUX");
    n -= g->aux ? 4 : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == n && !memcmp(name, known[i].name, n)) {
            g->activation = known[i].activation;
            return true;
        }
    return false;
}

static RP_PREPARE(product_prepare)
{
    struct gemm *g = RP_NODE_NEW(plan, struct gemm);
    size_t n;
    const char *name = rp_custom_name(plan, node, &n);
    char epilogue[24];
    bool bias;
    size_t parts = node->shape->elem == RP_ELEM_TUPLE ? node->shape->nparts : 1;

    RP_TRY(rp_err_need(g, err, "planning"));
    node->attrs = g;
    if (node->nin < 2)
        return rp_node_error(node, RP_FORMAT, err, "a product of one operand");
    RP_TRY(product_dimensions(plan, node, g, err));
    if ((size_t)(g->dot.batch * g->dot.left * g->dot.right) != rp_custom_shape(node)->n)
        return rp_node_error(node, RP_FORMAT, err, "wrong size of the result");
    g->alpha = CMPLX(rp_config_number(plan, node, "alpha_real", 1),
                     rp_config_number(plan, node, "alpha_imag", 0));
    g->beta = rp_config_number(plan, node, "beta", 0);
    rp_config_word(plan, node, "epilogue", epilogue, sizeof epilogue);
    if (!read_epilogue(epilogue, g, &bias))
        return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported fused %s", epilogue);
    g->largest = rp_config_flag(plan, node, "damax_output");
    if ((g->aux || g->largest) && parts < 2)
        return rp_node_error(node, RP_FORMAT, err, "no second result");
    RP_TRY(product_steps(plan, node, g, err));
    /* Finds which operand is what. */
    bool f8 = n > 3 && !memcmp(name + n - 3, "$f8", 3);
    uint32_t at = 2;
    if (g->beta != 0)
        g->matrix = at++;
    if (f8) {
        g->scale[0] = at++;
        g->scale[1] = at++;
    }
    for (uint32_t i = at; f8 && i < node->nin; i++)
        if (rp_node_operand(plan, node, i)->n == 1 && !(bias && rp_custom_shape(node)->n == 1))
            g->scale_result = i;
    if (bias)
        g->bias = g->scale_result == at ? at + 1 : at;
    if (node->nin < at || (bias && node->nin <= g->bias) ||
        (g->matrix && rp_node_operand(plan, node, g->matrix)->n != rp_custom_shape(node)->n) ||
        (bias && !rp_node_operand(plan, node, g->bias)->n))
        return rp_node_error(node, RP_FORMAT, err, "a missing operand, or one of the wrong shape");
    return RP_OK;
}

static double activate(enum activation which, double x)
{
    switch (which) {
    case RELU:
        return x > 0 || x != x ? x : 0;
    case GELU:
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case SILU:
        return x / (1 + exp(-x));
    case GELU_ERF:
        return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case TANH:
        return tanh(x);
    case ELU:
        return x > 0 ? x : expm1(x);
    case RELU6:
        return x > 6 ? 6 : x > 0 || x != x ? x : 0;
    case SIGMOID:
        return 1 / (1 + exp(-x));
    default:
        return x;
    }
}

static double most_of(unsigned elem)
{
    return elem == RP_ELEM_F8E4M3FN ? 448 : elem == RP_ELEM_F8E5M2 ? 57344 : (double)INFINITY;
}

/* The element of an operand that belongs to element i of the result. */
static double spread_number(const struct rp_tensor *t, const struct rp_value_shape *out, size_t i)
{
    size_t at = 0, stride = 1;

    for (uint32_t k = 0; k < t->rank; k++) {
        size_t size = (size_t)out->dims[out->rank - 1 - k];
        size_t own = (size_t)t->dims[t->rank - 1 - k];

        at += own > 1 ? i % size * stride : 0;
        stride *= own;
        i /= size;
    }
    return rp_tensor_number(t, at);
}

static double product_finish_steps(const struct rp_node *node, const struct gemm *g,
                                   struct rp_tensor *const *in, double x, size_t i)
{
    for (uint32_t k = 0; k < g->nsteps; k++) {
        const struct step *s = &g->steps[k];

        if (s->operand)
            x += spread_number(in[s->operand], rp_custom_shape(node), i);
        x = activate(s->activation, x * s->factor);
    }
    return x;
}

/* Finishes a product in f64, in place; `before` receives the input of the activation, or is NULL.
   Returns the largest magnitude. */
static double product_finish(const struct rp_node *node, const struct gemm *g,
                             struct rp_tensor *const *in, double *w, size_t n, double *before)
{
    double alpha = creal(g->alpha), largest = 0, scale = 1;
    double most = most_of(rp_custom_shape(node)->elem);

    for (size_t k = 0; k < 2; k++)
        if (g->scale[k])
            alpha *= rp_tensor_number(in[g->scale[k]], 0);
    if (g->scale_result)
        scale = rp_tensor_number(in[g->scale_result], 0);
    for (size_t i = 0; i < n; i++) {
        double x = alpha * w[i];

        if (g->matrix)
            x += g->beta * rp_tensor_number(in[g->matrix], i);
        if (g->bias)
            x += rp_tensor_number(in[g->bias], i % in[g->bias]->n);
        if (before)
            before[i] = x;
        x = product_finish_steps(node, g, in, activate(g->activation, x), i);
        largest = fabs(x) > largest ? fabs(x) : largest;
        x *= scale;
        w[i] = x > most ? most : x < -most ? -most : x;
    }
    return largest;
}

static enum rp_code as_shape(struct rp_tensor *t, const struct rp_value_shape *shape,
                             struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *narrow = NULL;

    RP_TRY(rp_tensor_as(t, shape->elem, &narrow, err));
    return rp_tensor_view(narrow, shape->elem, shape->dims, shape->rank, out, err);
}

static RP_KERNEL(product_run)
{
    const struct gemm *g = node->attrs;
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL, *aux = NULL;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    double largest = 0;

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_dot_wide(&g->dot, in[0], in[1], rp_custom_shape(node)->elem, &wide, err));
    if (g->aux)
        RP_TRY(rp_tensor_new(RP_ELEM_F64, wide->dims, wide->rank, &aux, err));
    if (wide->elem == RP_ELEM_F64)
        largest = product_finish(node, g, in, (double *)(void *)wide->data, wide->n,
                                 aux ? (double *)(void *)aux->data : NULL);
    for (size_t i = 0; wide->elem != RP_ELEM_F64 && i < wide->n; i++) {
        if (wide->elem == RP_ELEM_C128) {
            rp_c128 *w = (rp_c128 *)(void *)wide->data + i;

            *w *= g->alpha;
            if (g->matrix)
                *w += g->beta * CMPLX(rp_tensor_number(in[g->matrix], i),
                                      rp_tensor_imaginary(in[g->matrix], i));
        } else if (g->matrix) {
            ((int64_t *)(void *)wide->data)[i] +=
                (int64_t)g->beta * rp_tensor_integer(in[g->matrix], i);
        }
    }
    RP_TRY(as_shape(wide, rp_custom_shape(node), &parts.at[0], err));
    if (aux) {
        RP_TRY(as_shape(aux, node->shape->parts[1], &parts.at[1], err));
    } else if (g->largest) {
        RP_TRY(rp_shape_tensor(node->shape->parts[1], &parts.at[1], err));
        rp_tensor_set(parts.at[1], 0, largest);
    }
    return rp_custom_give(node, &parts, out, err);
}

const struct rp_custom_target rp_custom_products[] = {
    {"__cublas$gemm", product_prepare, product_run},
    {"__cublas$lt$matmul", product_prepare, product_run},
    {"__cublas$lt$matmul$f8", product_prepare, product_run},
    {"__onednn$matmul", product_prepare, product_run},
    {NULL, NULL, NULL},
};
