/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels written by Inductor, modelled from the record of their launch: all tensors, including
 * results, and the number of elements at the end. Each tensor moves once, but no more of it than
 * there are elements, because a table used for lookups is larger. FLOPs are those of the operators
 * in the name.
 */
#include "cost/models.h"

#include <string.h>

/* FLOPs of an element, by the words between '_' in the name of the kernel. */
static const struct {
    const char *word;
    int flops;
} words[] = {{"native_layer_norm_backward", 12},
             {"native_layer_norm", 7},
             {"native_group_norm", 7},
             {"native_batch_norm", 7},
             {"log_softmax", 5},
             {"softmax", 5},
             {"native_dropout", 2},
             {"addcmul", 3},
             {"addcdiv", 3},
             {"lerp", 3},
             {"sigmoid_backward", 3},
             {"tanh_backward", 3},
             {"threshold_backward", 1},
             {"add", 1},
             {"addmm", 1},
             {"sub", 1},
             {"rsub", 1},
             {"mul", 1},
             {"div", 1},
             {"neg", 1},
             {"exp", 1},
             {"log", 1},
             {"pow", 1},
             {"sqrt", 1},
             {"rsqrt", 1},
             {"abs", 1},
             {"sin", 1},
             {"cos", 1},
             {"tanh", 1},
             {"erf", 1},
             {"gelu", 1},
             {"relu", 1},
             {"silu", 1},
             {"sigmoid", 1},
             {"maximum", 1},
             {"minimum", 1},
             {"amax", 1},
             {"max", 1},
             {"min", 1},
             {"sum", 1},
             {"mean", 1},
             {"var", 4},
             {"where", 1},
             {"clamp", 1},
             {"cumsum", 1},
             {"nll_loss_forward", 1}};

/* Counts the FLOPs of an element from the words after "fused_", each taken once, the longest
   first. */
static int name_flops(const char *name)
{
    const char *at = strstr(name, "fused_");
    int flops = 0;

    for (at = at ? at + 6 : name; at && *at; at = strchr(at, '_'), at = at ? at + 1 : NULL) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            size_t len = strlen(words[i].word);

            if (!strncmp(at, words[i].word, len) && (at[len] == '_' || !at[len])) {
                flops += words[i].flops;
                at += len - 1;
                break;
            }
        }
    }
    return flops;
}

/* Reductions are split into equal parts, the last of which may be partly empty. */
#define ROUNDED_UP 2
RP_DECISION(
    ROUNDED_UP, "times the largest tensor",
    "loops of more elements are other arguments: a part of a split is at most doubled by rounding it up",
    "cost/elements");

/* Counts the elements of its loops: the product of the numbers after the last tensor, xnumel,
   ynumel, rnumel. If they are 0, not recorded, or other arguments, the elements read or written
   count. */
static double loop_elements(const struct rp_inputs *in, double largest, double *outer)
{
    double n = 1, value;
    uint32_t i, found = 0;

    for (i = 0; i < in->count; i++) {
        if (rp_inputs_tensor(in, i)) {
            found = 0;
            n = 1;
        } else if (rp_inputs_int(in, i, &value) && value >= 1) {
            n *= value;
            if (!found++)
                *outer = value;
        }
    }
    return found && n <= ROUNDED_UP * largest ? n : 0;
}

static double largest_tensor(const struct rp_inputs *in)
{
    double most = 0;

    for (uint32_t i = 0; i < in->count; i++)
        if (rp_inputs_tensor(in, i) && in->at[i].tensor.n > most)
            most = in->at[i].tensor.n;
    return most;
}

/* Results come last. If the last tensor does not have the size of a result, the kernel writes into
   its first tensor. */
static bool works_in_place(const struct rp_inputs *in, double n, double outer)
{
    const struct rp_input_tensor *last = NULL;

    for (uint32_t i = 0; i < in->count; i++)
        last = rp_inputs_tensor(in, i) ? &in->at[i].tensor : last;
    return n > 0 && last && last->n < n && last->n != outer && rp_inputs_tensor(in, 0) &&
           in->at[0].tensor.n >= n;
}

const char *rp_model_triton(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    double outer = 0, n = loop_elements(in, largest_tensor(in), &outer), most = 0, bytes = 0;

    (void)arg;
    for (uint32_t i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (!t)
            continue;
        if (t->size <= 0)
            return RP_NO_TYPES;
        bytes += (n > 0 && t->stored > n ? n : t->stored) * (double)t->size;
        if (t->n > most) {
            most = t->n;
            out->type = t->type;
        }
    }
    if (most <= 0)
        return RP_NO_SHAPES;
    if (works_in_place(in, n, outer))
        bytes += n * (double)in->at[0].tensor.size;
    out->flops = name_flops(in->name) * (n > 0 ? n : most);
    out->bytes = bytes;
    return NULL;
}
