/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that TensorFlow's optimiser makes of several: a product or convolution, then a bias, a
 * sum, a batch normalisation for inference and an activation, as the attribute fused_ops lists
 * them. Each is lowered by the rows of the single operators: the node is looked at under their
 * names, with the inputs that are theirs.
 */
#include "lower/inner.h"

#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

/* One operator of the list, over what is there and the next inputs. */
static enum rp_code step(struct lower *l, const struct lower_node *node, struct rp_bytes op,
                         const struct lower_value *in, size_t nin, size_t *used,
                         struct lower_value *out)
{
    static const struct {
        const char *name, *op;
        size_t more; /* inputs beside the value */
    } known[] = {{"BiasAdd", "BiasAdd", 1}, {"Add", "AddV2", 1},      {"Relu", "Relu", 0},
                 {"Relu6", "Relu6", 0},     {"Elu", "Elu", 0},        {"LeakyRelu", "LeakyRelu", 0},
                 {"Tanh", "Tanh", 0},       {"Sigmoid", "Sigmoid", 0}};
    struct lower_value inputs[2] = {*out}, results[LOWER_OUTPUTS];
    struct lower_node plain = *node;
    size_t n = 1;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (op.n != strlen(known[i].name) || memcmp(op.at, known[i].name, op.n) != 0)
            continue;
        if (*used + known[i].more > nin)
            return lower_misfit(l, node, "too few inputs");
        if (known[i].more)
            inputs[1] = in[(*used)++];
        plain.op = (struct rp_bytes){(const uint8_t *)known[i].op, strlen(known[i].op)};
        RP_TRY(lower_as(l, &plain, inputs, 1 + known[i].more, results, &n));
        *out = results[0];
        return RP_OK;
    }
    return lower_refuse(l, node, "a fused operator is not supported");
}

/* "_FusedMatMul", "_FusedConv2D", "_FusedDepthwiseConv2dNative" */
LOWER(fused)
{
    struct lower_value results[LOWER_OUTPUTS];
    struct lower_node plain = *node;
    struct rp_bytes op;
    size_t prefix = node->op.at[0] == '_' ? 6 : 5, used = 2, n = 1; /* Fused, of another library */

    (void)nout;
    plain.op = (struct rp_bytes){node->op.at + prefix, node->op.n - prefix};
    RP_TRY(lower_as(l, &plain, in, 2, results, &n));
    *out = results[0];
    for (size_t i = 0; (op = lower_attr_nth_text(node, "fused_ops", i)).at; i++)
        RP_TRY(step(l, node, op, in, nin, &used, out));
    return RP_OK;
}

const struct lower_row lower_fused[] = {{"_FusedMatMul", fused, LOWER_NO_OPCODE, 2},
                                        {"_FusedConv2D", fused, LOWER_NO_OPCODE, 2},
                                        {"_FusedDepthwiseConv2dNative", fused, LOWER_NO_OPCODE, 2},
                                        {"FusedMatMul", fused, LOWER_NO_OPCODE, 2},
                                        {"FusedConv2D", fused, LOWER_NO_OPCODE, 2},
                                        {"FusedDepthwiseConv2dNative", fused, LOWER_NO_OPCODE, 2},
                                        {NULL, NULL, LOWER_NO_OPCODE, 0}};
