/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers fused operators of TensorFlow's optimiser: a product or convolution, then the operators
 * that the attribute fused_ops lists (a bias, a sum, an activation). Each one is lowered as if it
 * were a node of its own, which has the name of the single operator and its inputs.
 */
#include "lower/inner.h"

#include <string.h>

/* Lowers one operator of the list: its inputs are the value so far and the next inputs of the
   node. */
static enum rp_code fused_step(struct rp_lower *l, const struct rp_lower_node *node,
                               struct rp_bytes op, const struct rp_lower_value *in, size_t nin,
                               size_t *used, struct rp_lower_value *out)
{
    static const struct {
        const char *name, *op;
        size_t more; /* the number of inputs besides the value */
    } known[] = {{"BiasAdd", "BiasAdd", 1}, {"Add", "AddV2", 1},      {"Relu", "Relu", 0},
                 {"Relu6", "Relu6", 0},     {"Elu", "Elu", 0},        {"LeakyRelu", "LeakyRelu", 0},
                 {"Tanh", "Tanh", 0},       {"Sigmoid", "Sigmoid", 0}};
    struct rp_lower_value inputs[2] = {*out}, results[RP_LOWER_OUTPUTS];
    struct rp_lower_node plain = *node;
    size_t n = 1;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (op.n != strlen(known[i].name) || memcmp(op.at, known[i].name, op.n) != 0)
            continue;
        if (*used + known[i].more > nin)
            return rp_lower_misfit(l, node, "too few inputs");
        if (known[i].more)
            inputs[1] = in[(*used)++];
        plain.op = (struct rp_bytes){(const uint8_t *)known[i].op, strlen(known[i].op)};
        RP_TRY(rp_lower_as(l, &plain, inputs, 1 + known[i].more, results, &n));
        *out = results[0];
        return RP_OK;
    }
    return rp_lower_refuse(l, node, "a fused operator is not supported");
}

/* "_FusedMatMul", "_FusedConv2D", "_FusedDepthwiseConv2dNative" */
RP_LOWER(fused)
{
    struct rp_lower_value results[RP_LOWER_OUTPUTS];
    struct rp_lower_node plain = *node;
    struct rp_bytes op;
    size_t prefix = node->op.at[0] == '_' ? 6 : 5, used = 2,
           n = 1; /* Operators fused by another library. */

    plain.op = (struct rp_bytes){node->op.at + prefix, node->op.n - prefix};
    RP_TRY(rp_lower_as(l, &plain, in, 2, results, &n));
    *out = results[0];
    for (size_t i = 0; (op = rp_lower_attr_nth_text(node, "fused_ops", i)).at; i++)
        RP_TRY(fused_step(l, node, op, in, nin, &used, out));
    return RP_OK;
}

const struct rp_lower_row rp_lower_fused[] = {
    {"_FusedMatMul", lower_fused, RP_LOWER_NO_OPCODE, 2},
    {"_FusedConv2D", lower_fused, RP_LOWER_NO_OPCODE, 3},
    {"_FusedDepthwiseConv2dNative", lower_fused, RP_LOWER_NO_OPCODE, 2},
    {"FusedMatMul", lower_fused, RP_LOWER_NO_OPCODE, 2},
    {"FusedConv2D", lower_fused, RP_LOWER_NO_OPCODE, 2},
    {"FusedDepthwiseConv2dNative", lower_fused, RP_LOWER_NO_OPCODE, 2},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
