/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes measured operators from traces. The names of a framework become those of the table of
 * operators if both compute the same: aten::mm and aten::addmm are 'matmul'. Dimensions come from
 * the first tensors and the FLOPs of the call, which determine the rest, such as N for a product
 * with M x K.
 */
#include "cost/learn/from_trace.h"

#include "base/decides.h"
#include "base/named.h"
#include "cost/inputs.h"
#include "facts/torch_names.h"

#include <math.h>
#include <string.h>

static void set_dims(struct rp_sample *s, const char *op, const double *dims, size_t n)
{
    s->op = op;
    s->ndims = (uint8_t)n;
    for (size_t i = 0; i < n; i++)
        s->dim[i] = fmax(round(dims[i]), 1);
}

/* Finds the n-th tensor that has at least `least` dimensions. */
static const struct rp_input_tensor *tensor_of(const struct rp_inputs *in, uint32_t least,
                                               uint32_t nth)
{
    for (uint32_t i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (t && t->ndims >= least && nth-- == 0)
            return t;
    }
    return NULL;
}

static const struct rp_input_tensor *largest_tensor(const struct rp_inputs *in)
{
    const struct rp_input_tensor *found = NULL;

    for (uint32_t i = 0; i < in->count; i++) {
        const struct rp_input_tensor *t = rp_inputs_tensor(in, i);

        if (t && (!found || t->n > found->n))
            found = t;
    }
    return found;
}

static bool product_call(const struct rp_inputs *in, const char *name, struct rp_sample *s)
{
    bool added = rp_torch_means(name, RP_TORCH_ADDS);
    const struct rp_input_tensor *a = rp_inputs_tensor(in, added ? 1 : 0);
    double k, m, b;

    if (!a || a->ndims < 2)
        return false;
    k = rp_input_last(a, 0);
    if (rp_torch_means(name, RP_TORCH_BATCHED) && a->ndims == 3) {
        b = a->dim[0];
        m = a->dim[1];
        set_dims(s, "bmm", (double[]){b, m, k, s->flops / 2 / b / m / k}, 4);
        return true;
    }
    m = a->n / k;
    set_dims(s, "matmul", (double[]){m, k, s->flops / 2 / m / k}, 3);
    return true;
}

/* Libraries compute convolutions of fp32 in tf32 if they can, so both are one format here. */
#define CAUSAL 0.75
RP_DECISION(
    CAUSAL, "of the FLOPs of all pairs",
    "half way between attention with a causal mask, which has half of the pairs, and without",
    "cost/calls_become_rows_of_a_table");
#define LONGEST_NAME 200
RP_LIMIT(LONGEST_NAME, "bytes", "an operator with a longer name is not a row of a table");

static bool conv_call(const struct rp_inputs *in, const char *name, struct rp_sample *s)
{
    bool backward = rp_torch_means(name, RP_TORCH_BACKWARDS);
    const struct rp_input_tensor *x = tensor_of(in, 4, backward ? 1 : 0);
    const struct rp_input_tensor *w = tensor_of(in, 4, backward ? 2 : 1);
    double groups, out;

    if (!x || !w || x->ndims != 4 || w->ndims != 4 || !(w->dim[1] > 0))
        return false;
    groups = x->dim[1] / w->dim[1];
    if (s->type == RP_NUMBER_TF32)
        s->type = RP_NUMBER_FP32;
    if (groups >= 2) {
        set_dims(s, backward ? "grouped_conv2d_backward" : "grouped_conv2d", (double[]){x->n}, 1);
        return true;
    }
    out =
        s->flops / (backward ? 4 : 2) / (x->dim[0] * w->dim[0] * w->dim[1] * w->dim[2] * w->dim[3]);
    set_dims(s, backward ? "conv2d_backward" : "conv2d",
             (double[]){x->dim[0], x->dim[1], x->dim[2], x->dim[3], w->dim[0],
                        fmax(w->dim[2], w->dim[3]),
                        out > 0 ? round(sqrt(x->dim[2] * x->dim[3] / out)) : 1},
             7);
    return true;
}

static bool attention_call(const struct rp_inputs *in, const char *name, struct rp_sample *s)
{
    bool back = rp_torch_means(name, RP_TORCH_BACKWARDS), causal;
    const struct rp_input_tensor *q = tensor_of(in, 4, back ? 1 : 0);

    if (!q || q->ndims != 4)
        return false;
    causal = s->flops < CAUSAL * 2 * (back ? 5 : 2) * q->dim[0] * q->dim[1] * q->dim[2] *
                            q->dim[2] * q->dim[3];
    set_dims(s,
             back     ? causal ? "sdpa_causal_backward" : "sdpa_backward"
             : causal ? "sdpa_causal"
                      : "sdpa",
             q->dim, 4);
    return true;
}

/* Returns the name without that of its library and without the '_' of operators in place. */
static const char *plain_name(const char *name, struct rp_arena *arena)
{
    const char *plain = rp_torch_op(name);
    size_t n = strlen(plain);

    while (n > 1 && plain[n - 1] == '_')
        n--;
    return n < LONGEST_NAME ? rp_arena_copy(arena, plain, n) : NULL;
}

/* Operators on rows whose samples have another name; the first row that fits decides. */
static const struct {
    enum rp_named how;
    const char *text, *op;
} of_rows[] = {
    /* PyTorch 1.8 to 2.11 */
    {RP_NAMED_HAS, "native_layer_norm_backward", "layernorm_backward"},
    {RP_NAMED_HAS, "native_layer_norm", "layernorm"},
    {RP_NAMED_HAS, "_log_softmax", "log_softmax"},
    {RP_NAMED_IS, "aten::_softmax", "softmax"},
    {RP_NAMED_HAS, "_softmax_backward", "softmax_backward"},
};

static bool plain_call(const struct rp_inputs *in, const char *name, uint8_t category,
                       struct rp_arena *arena, struct rp_sample *s)
{
    const struct rp_input_tensor *t = largest_tensor(in);
    bool rows = category == RP_CATEGORY_REDUCTION || rp_torch_means(name, RP_TORCH_NORMALIZES);
    const char *op = NULL;

    for (size_t i = 0; !op && i < sizeof of_rows / sizeof *of_rows; i++)
        op = rp_is_named(name, of_rows[i].how, of_rows[i].text) ? of_rows[i].op : NULL;
    op = op ? op : plain_name(name, arena);
    if (!t || !op || strchr(op, '+') || op[0] == '~')
        return false;
    if (rows)
        set_dims(s, op, (double[]){t->n / rp_input_last(t, 0), rp_input_last(t, 0)}, 2);
    else
        set_dims(s, op, (double[]){t->n}, 1);
    return true;
}

static bool shape_call(struct rp_op_costs *costs, rp_event op, const struct rp_op_cost *cost,
                       struct rp_arena *arena, struct rp_sample *s)
{
    const struct rp_trace *t = costs->trace;
    const char *name = rp_trace_str(t, t->ev.name[op]);
    rp_str dims = 0, types = 0;

    if (!rp_arg_key_text(&costs->dims, op, &dims))
        return false;
    if (!rp_arg_key_text(&costs->types, op, &types))
        types = 0;
    if (rp_inputs_parse(costs->inputs, name, rp_trace_str(t, dims), NULL,
                        types ? rp_trace_str(t, types) : NULL, NULL, NULL) != RP_OK)
        return false;
    switch (cost->category) {
    case RP_CATEGORY_MATMUL:
        return product_call(costs->inputs, name, s);
    case RP_CATEGORY_CONVOLUTION:
        return conv_call(costs->inputs, name, s);
    case RP_CATEGORY_ATTENTION:
        return attention_call(costs->inputs, name, s);
    default:
        return plain_call(costs->inputs, name, cost->category, arena, s);
    }
}

bool rp_call_is_sample(const struct rp_op_costs *costs, const struct rp_cost_call *call)
{
    const struct rp_op_cost *cost = &costs->costs.at[call->cost];

    return rp_cost_is_known(cost) && !call->on_link && !call->is_part && call->device_ns > 0 &&
           call->category != RP_CATEGORY_COMMUNICATION && call->category != RP_CATEGORY_OPTIMIZER &&
           cost->bytes > 0 && !(cost->flops > RP_SAMPLE_MOST_WORK) &&
           cost->bytes <= RP_SAMPLE_MOST_WORK;
}

bool rp_sample_of_call(struct rp_op_costs *costs, const struct rp_cost_call *call,
                       const char *device, struct rp_arena *arena, struct rp_sample *out)
{
    const struct rp_op_cost *cost = &costs->costs.at[call->cost];
    bool known;

    if (!rp_call_is_sample(costs, call))
        return false;
    *out = (struct rp_sample){.device = device,
                              .type = cost->type == RP_NUMBER_NONE ? RP_NUMBER_FP32 : cost->type,
                              .flops = cost->flops,
                              .bytes = cost->bytes,
                              .ns = (double)call->device_ns,
                              .count = 1};
    if (call->op == RP_NONE) {
        known = cost->shape != NULL;

        /* Make the sample of work without an operator, such as fusions of XLA, from its program.
         */
        set_dims(out,
                 cost->on_matrix                           ? "xla_product"
                 : cost->category == RP_CATEGORY_REDUCTION ? "xla_reduction"
                                                           : "xla_fusion",
                 (double[]){out->bytes / fmax(rp_number_bytes((enum rp_number)out->type), 0.5)}, 1);
    } else {
        known = shape_call(costs, call->op, cost, arena, out);
    }
    return known && rp_sample_complete(out, NULL) == RP_OK;
}

static enum rp_code add_calls(struct rp_samples *out, struct rp_op_costs *costs,
                              const struct rp_cost_calls *calls, const char *device,
                              struct rp_err *err)
{
    struct rp_sample s;

    for (size_t i = 0; i < calls->calls.n; i++)
        if (!calls->calls.at[i].inferred &&
            rp_sample_of_call(costs, &calls->calls.at[i], device, &out->arena, &s))
            RP_TRY(rp_vec_push(&out->rows, s, err));
    return rp_arena_check(&out->arena, "reading operators", err);
}

enum rp_code rp_samples_of_trace(struct rp_samples *out, const struct rp_trace *trace,
                                 const struct rp_category_table *categories, const char *device,
                                 rp_item_cost_fn *known, void *user, struct rp_err *err)
{
    struct rp_scope all = {0};
    struct rp_work work = {0};
    struct rp_trace_categories by_name;
    struct rp_op_costs costs = {0};
    struct rp_cost_calls calls = {0};
    enum rp_code code = rp_work_init(&work, trace, &all, err);

    rp_trace_categories_init(&by_name, trace, categories);
    if (code == RP_OK)
        code = rp_op_costs_init(&costs, &by_name, err);
    if (code == RP_OK)
        code = rp_cost_calls_init(&calls, &costs, &work, known, user, err);
    if (code == RP_OK)
        code = add_calls(out, &costs, &calls, device, err);
    rp_cost_calls_release(&calls);
    rp_op_costs_release(&costs);
    rp_trace_categories_release(&by_name);
    rp_work_release(&work);
    return code;
}
