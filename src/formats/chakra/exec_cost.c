/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of operators in execution traces follows from the shapes of their arguments: a table
 * gives each name the rule that counts it. An operator in place ("add_") counts like the one
 * without the '_'. Views and allocations move no data. The rules are those of programs
 * (docs/definitions.md), except that convolutions count the products in the padding.
 */
#include "formats/chakra/exec_trace.h"

#include <string.h>

enum rule {
    RULE_NONE,        /* moves data, but computes nothing that is counted */
    RULE_VIEW,        /* moves nothing */
    RULE_GATHER,      /* reads as many bytes of argument 0 as it writes */
    RULE_EACH,        /* an operation per element of the result */
    RULE_TRANS,       /* a function per element of the result */
    RULE_REDUCE,      /* an operation per element of the input */
    RULE_MM,          /* argument 0 x argument 1 */
    RULE_ADDMM,       /* argument 1 x argument 2 */
    RULE_LINEAR,      /* argument 0 x transposed argument 1 */
    RULE_CONV,        /* input, weight */
    RULE_CONV_BACK,   /* arguments: gradient, input, weight */
    RULE_ATTEND,      /* arguments: query, key, value, each [batch, sequence, heads, size] */
    RULE_ATTEND_BACK, /* arguments: gradient, query, key, value */
    RULE_HEADS,       /* arguments: query, key, value, each [batch, heads, sequence, size] */
    RULE_HEADS_BACK
};

static const struct {
    const char *name; /* without "aten::" */
    enum rule rule;
} rules[] = {
    {"mm", RULE_MM},
    {"bmm", RULE_MM},
    {"mv", RULE_MM},
    {"dot", RULE_MM},
    {"addmm", RULE_ADDMM},
    {"_addmm_activation", RULE_ADDMM},
    {"baddbmm", RULE_ADDMM},
    {"addmv", RULE_ADDMM},
    {"linear", RULE_LINEAR},
    {"cudnn_convolution", RULE_CONV},
    {"cudnn_convolution_relu", RULE_CONV},
    {"miopen_convolution", RULE_CONV},
    {"mkldnn_convolution", RULE_CONV},
    {"convolution_overrideable", RULE_CONV},
    {"_conv_depthwise2d", RULE_CONV},
    {"_slow_conv2d_forward", RULE_CONV},
    {"slow_conv_dilated2d", RULE_CONV},
    {"convolution_backward", RULE_CONV_BACK},
    {"_flash_attention_forward", RULE_ATTEND},
    {"_efficient_attention_forward", RULE_ATTEND},
    {"_flash_attention_backward", RULE_ATTEND_BACK},
    {"_efficient_attention_backward", RULE_ATTEND_BACK},
    {"scaled_dot_product_attention", RULE_HEADS},
    {"_scaled_dot_product_flash_attention", RULE_HEADS},
    {"_scaled_dot_product_flash_attention_for_cpu", RULE_HEADS},
    {"_scaled_dot_product_efficient_attention", RULE_HEADS},
    {"_scaled_dot_product_cudnn_attention", RULE_HEADS},
    {"_scaled_dot_product_flash_attention_backward", RULE_HEADS_BACK},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", RULE_HEADS_BACK},
    {"_scaled_dot_product_efficient_attention_backward", RULE_HEADS_BACK},
    {"_scaled_dot_product_cudnn_attention_backward", RULE_HEADS_BACK},
    {"add", RULE_EACH},
    {"sub", RULE_EACH},
    {"rsub", RULE_EACH},
    {"mul", RULE_EACH},
    {"div", RULE_EACH},
    {"neg", RULE_EACH},
    {"abs", RULE_EACH},
    {"relu", RULE_EACH},
    {"clamp", RULE_EACH},
    {"clamp_min", RULE_EACH},
    {"maximum", RULE_EACH},
    {"minimum", RULE_EACH},
    {"addcmul", RULE_EACH},
    {"addcdiv", RULE_EACH},
    {"threshold_backward", RULE_EACH},
    {"sum", RULE_REDUCE},
    {"mean", RULE_REDUCE},
    {"exp", RULE_TRANS},
    {"log", RULE_TRANS},
    {"pow", RULE_TRANS},
    {"sqrt", RULE_TRANS},
    {"rsqrt", RULE_TRANS},
    {"sin", RULE_TRANS},
    {"cos", RULE_TRANS},
    {"tanh", RULE_TRANS},
    {"sigmoid", RULE_TRANS},
    {"gelu", RULE_TRANS},
    {"silu", RULE_TRANS},
    {"_softmax", RULE_TRANS},
    {"_log_softmax", RULE_TRANS},
    {"embedding", RULE_GATHER},
    {"_embedding_bag", RULE_GATHER},
    {"_embedding_bag_forward_only", RULE_GATHER},
    {"index_select", RULE_GATHER},
    {"index", RULE_GATHER},
    {"gather", RULE_GATHER},
    {"view", RULE_VIEW},
    {"_unsafe_view", RULE_VIEW},
    {"_reshape_alias", RULE_VIEW},
    {"reshape", RULE_VIEW},
    {"as_strided", RULE_VIEW},
    {"t", RULE_VIEW},
    {"transpose", RULE_VIEW},
    {"permute", RULE_VIEW},
    {"expand", RULE_VIEW},
    {"expand_as", RULE_VIEW},
    {"slice", RULE_VIEW},
    {"select", RULE_VIEW},
    {"narrow", RULE_VIEW},
    {"split", RULE_VIEW},
    {"chunk", RULE_VIEW},
    {"unbind", RULE_VIEW},
    {"unsqueeze", RULE_VIEW},
    {"squeeze", RULE_VIEW},
    {"flatten", RULE_VIEW},
    {"detach", RULE_VIEW},
    {"alias", RULE_VIEW},
    {"to", RULE_VIEW},
    {"contiguous", RULE_VIEW},
    {"lift_fresh", RULE_VIEW},
    {"empty", RULE_VIEW},
    {"empty_like", RULE_VIEW},
    {"empty_strided", RULE_VIEW},
    {"new_empty", RULE_VIEW},
    {"new_empty_strided", RULE_VIEW},
    {"resize", RULE_VIEW},
    {"set", RULE_VIEW},
    {"result_type", RULE_VIEW},
    {"item", RULE_VIEW},
    {"is_pinned", RULE_VIEW},
};

static enum rule rule_of(const char *name)
{
    if (!strncmp(name, "aten::", 6))
        name += 6;
    else if (!strcmp(name, "detach") || !strcmp(name, "detach_"))
        return RULE_VIEW;
    else
        return RULE_NONE;
    size_t n = strlen(name);
    n -= n > 1 && name[n - 1] == '_' && name[n - 2] != '_';
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strlen(rules[i].name) == n && !memcmp(rules[i].name, name, n))
            return rules[i].rule;
    return RULE_NONE;
}

static const struct rp_exec_dims *argument(const struct rp_exec_node *node, size_t i)
{
    static const struct rp_exec_dims none = {-1, {0}};

    return i < node->nin ? &node->in[i] : &none;
}

/* Number of elements: 0 if there is no tensor, 1 for a scalar. */
static double elements(const struct rp_exec_dims *t)
{
    double product = t->n < 0 ? 0 : 1;

    for (int i = 0; i < t->n; i++)
        product *= (double)t->d[i];
    return product;
}

static double result_elements(const struct rp_exec_node *node)
{
    return node->nout ? elements(&node->out[0]) : 0;
}

static double last_dim(const struct rp_exec_dims *t)
{
    return t->n > 0 ? (double)t->d[t->n - 1] : 0;
}

/* [.., m, k] x [.., k, n]: every element of the left operand is multiplied n times. */
static double product_flops(const struct rp_exec_dims *left, const struct rp_exec_dims *right)
{
    if (left->n < 1 || right->n < 1)
        return 0;
    return 2 * elements(left) * (right->n > 1 ? last_dim(right) : 1);
}

/* Each element of the result takes as many products as a filter has elements. */
static double conv_flops(double results, const struct rp_exec_dims *weight)
{
    return weight->n > 2 && weight->d[0] > 0 ? 2 * results * elements(weight) / (double)weight->d[0]
                                             : 0;
}

/* Counts the gradients of input and weight, if they were asked for. */
static double conv_back_flops(const struct rp_exec_node *node)
{
    double one = conv_flops(elements(argument(node, 0)), argument(node, 2));
    int wanted = 0;

    for (size_t i = 0; i < 2 && i < node->nout; i++)
        wanted += node->out[i].n > 1;
    return one * wanted;
}

/* Attention is two products, each of the size of queries times keys. */
static double attention_flops(const struct rp_exec_dims *query, const struct rp_exec_dims *key,
                              int sequence)
{
    return query->n == 4 && key->n == 4 ? 4 * elements(query) * (double)key->d[sequence] : 0;
}

struct rp_cost rp_exec_cost(const struct rp_exec_node *node)
{
    enum rule rule = rule_of(node->name);
    struct rp_cost cost = {0, 0, node->in_bytes + node->out_bytes};

    switch (rule) {
    case RULE_VIEW:
        cost.bytes = 0;
        break;
    case RULE_GATHER:
        cost.bytes = 2 * node->out_bytes;
        break;
    case RULE_EACH:
        cost.flops = result_elements(node);
        break;
    case RULE_TRANS:
        cost.transcendentals = result_elements(node);
        break;
    case RULE_REDUCE:
        cost.flops = elements(argument(node, 0));
        break;
    case RULE_MM:
        cost.flops = product_flops(argument(node, 0), argument(node, 1));
        break;
    case RULE_ADDMM:
        cost.flops = product_flops(argument(node, 1), argument(node, 2));
        break;
    case RULE_LINEAR:
        if (argument(node, 1)->n == 2)
            cost.flops = 2 * elements(argument(node, 0)) * (double)argument(node, 1)->d[0];
        break;
    case RULE_CONV:
        cost.flops = conv_flops(result_elements(node), argument(node, 1));
        break;
    case RULE_CONV_BACK:
        cost.flops = conv_back_flops(node);
        break;
    case RULE_ATTEND:
    case RULE_HEADS:
        cost.flops =
            attention_flops(argument(node, 0), argument(node, 1), rule == RULE_ATTEND ? 1 : 2);
        break;
    case RULE_ATTEND_BACK:
    case RULE_HEADS_BACK: /* the backward pass has five products, the forward pass two */
        cost.flops = 2.5 * attention_flops(argument(node, 1), argument(node, 2),
                                           rule == RULE_ATTEND_BACK ? 1 : 2);
        break;
    default:
        break;
    }
    return cost;
}
