/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a cost model about the kernels of a part in another number format, once for each call of an
   operator. */
#include "sim/kernel_ratios.h"

#include "base/decides.h"
#include "base/filled.h"
#include "cost/inputs.h"
#include "cost/learn/from_trace.h"
#include "cost/learn/learned.h"
#include "dataset/models.h"
#include "facts/torch_names.h"
#include "facts/work/attribution.h"
#include "sim/model/names.h"
#include "trace/meta.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Attention that runs as products and a softmax, each with kernels of its own. */
struct parted_attention {
    struct rp_sample back; /* its backward pass as a single operator, in fp32 */
    int64_t back_ns;       /* time of all kernels of the backward pass */
};

/* The sample of the calls that have a cost: all have the same operator and shapes. */
struct known_shape {
    enum { SHAPE_NEW, SHAPE_KNOWN, SHAPE_NONE } state;
    struct rp_sample sample;
};

struct ratio_ctx {
    struct rp_sim_part *part;
    const struct rp_trace *trace;
    struct rp_ctx *ctx;
    const char *path;               /* path of the model; NULL: the built-in one */
    const struct rp_learned *model; /* NULL until it is needed */
    enum rp_number to;
    const char *device;
    struct rp_work work;
    struct rp_trace_categories categories;
    struct rp_op_costs costs;
    struct rp_cost_calls calls;
    double memory;   /* bytes/s of the device */
    bool normalised; /* the step has normalizations that autocast computes in fp32 */
    bool trains;     /* it has a backward pass */
    bool asks;       /* it branches on a value of the device */
    bool encodes;    /* it has attention of a text encoder of transformers */
    struct rp_arena arena;
    RP_VEC(struct known_shape) shapes;   /* by cost */
    RP_VEC(struct rp_sim_ratio) of_call; /* ratio 0: not known */
    struct rp_map parted;                /* from the event of attention in parts to its index */
    RP_VEC(struct parted_attention) attention;
    RP_VEC(uint32_t)
    gradient_of; /* by item: 1 + the index of the attention in parts to whose gradient it belongs;
                    0: none */
    RP_VEC(uint32_t) item_of; /* by event: its item + 1, or 0 */
};

/* In 16 bits, convolutions in groups by cuDNN, however slow they are in fp32, and PyTorch's own.
   All of these facts were measured on one H200 (docs/definitions.md, dtype). */
#define GROUPED_RATE 0.083
RP_FACT(GROUPED_RATE, "of the memory's rate", "cuDNN reads and writes at it, forwards");
#define GROUPED_BACKWARD_RATE 0.052
RP_FACT(GROUPED_BACKWARD_RATE, "of the memory's rate", "cuDNN reads and writes at it, backwards");
#define GROUPED_DOUBT 1.4
RP_FACT(GROUPED_DOUBT, "times the time", "cuDNN's lay within it, up and down");
#define GROUPED_MOST 1.05
RP_FACT(GROUPED_MOST, "times the time in fp32", "no longer: cuDNN could keep fp32");
#define OWN_GROUPED 1.03
RP_FACT(OWN_GROUPED, "times the time in fp32", "PyTorch's own kernels take as long as before");
#define OWN_GROUPED_DOUBT 1.1
RP_FACT(OWN_GROUPED_DOUBT, "times the time", "PyTorch's own lay within it, up and down");

static void grouped_ratio(const struct ratio_ctx *c, const struct rp_cost_call *call,
                          const struct rp_sample *from, struct rp_sim_ratio *out)
{
    rp_event kernel = c->work.items.at[call->item].event;
    bool own = rp_sim_means(rp_trace_str(c->trace, c->trace->ev.name[kernel]), RP_SIM_OWN_KERNEL);
    double bytes =
        from->bytes * rp_number_bytes(c->to) / rp_number_bytes((enum rp_number)from->type);
    double rate = c->memory * (rp_torch_means(from->op, RP_TORCH_BACKWARDS) ? GROUPED_BACKWARD_RATE
                                                                            : GROUPED_RATE);
    double ratio = own ? OWN_GROUPED : fmin(1e9 * bytes / rate / from->ns, GROUPED_MOST);
    double doubt = own ? OWN_GROUPED_DOUBT : GROUPED_DOUBT;

    *out = (struct rp_sim_ratio){
        .ratio = (float)ratio, .low = (float)(ratio / doubt), .high = (float)(ratio * doubt)};
}

/* Whether an operator is converted: autocast and the like convert only products, and leave most of
   the rest. */
static bool is_converted(const struct rp_sample *s)
{
    return s->kind >= RP_OP_MATMUL && s->kind <= RP_OP_ATTENTION &&
           rp_number_bytes((enum rp_number)s->type) == 4;
}

/* ------------------------------------------------------------------ conversions */

/* Kernels that convert tensors, measured in steps of 16 networks on one H200. */
#define TO_HALF_NS 2000
RP_FACT(TO_HALF_NS, "ns", "before the first byte, with the gap before the next kernel");
#define TO_HALF_RATE 0.83
RP_FACT(TO_HALF_RATE, "of the memory's rate", "fp32 to 16 bits");
#define FROM_HALF_NS 2300
RP_FACT(FROM_HALF_NS, "ns", "as TO_HALF_NS, of gradients");
#define FROM_HALF_RATE 0.40
RP_FACT(FROM_HALF_RATE, "of the memory's rate", "gradients to fp32");
#define INPUT_BACK 0.7
RP_FACT(INPUT_BACK, "of the inputs that are converted", "their gradient is converted back");

static double elements(const double *dim, size_t n)
{
    double product = 1;

    while (n--)
        product *= *dim++;
    return product;
}

/* Autocast converts the weight and the bias of a product in the forward pass, and their gradients
   in the backward pass. If a normalization in fp32 precedes or follows it, either its input or the
   gradient of its result is converted, too. That is mostly the smaller one, because a layer widens
   normalized input and narrows what it adds to a residual. */
static void add_conversions(const struct ratio_ctx *c, const struct rp_cost_call *call,
                            const struct rp_sample *s, struct rp_sim_ratio *out)
{
    const double *d = s->dim;
    bool conv = s->kind == RP_OP_CONV, grouped = s->ndims == 1;
    double rows =
        conv ? d[0] * rp_conv_out(d[2], d[5], d[6]) * rp_conv_out(d[3], d[5], d[6]) : d[0];
    double weight = grouped ? 0 : conv ? d[1] * d[4] * d[5] * d[5] : d[1] * d[2];
    double input = grouped ? d[0] : conv ? elements(d, 4) : d[0] * d[1];
    double result = grouped ? input : rows * (conv ? d[4] : d[2]);
    const char *name =
        call->op == RP_NONE ? "" : rp_trace_str(c->trace, c->trace->ev.name[call->op]);
    bool bias = conv || grouped ? c->normalised : rp_sim_means(name, RP_SIM_HAS_BIAS);
    double side = c->normalised ? input < result ? input : result : 0;
    double bytes = rp_number_bytes((enum rp_number)s->type) + rp_number_bytes(c->to);
    double to_half = TO_HALF_NS * (1.0 + bias + c->normalised) +
                     1e9 * bytes * (weight + side) / (TO_HALF_RATE * c->memory);
    double from_half = FROM_HALF_NS * (1.0 + bias + INPUT_BACK * c->normalised) +
                       1e9 * bytes * (weight + INPUT_BACK * side) / (FROM_HALF_RATE * c->memory);

    if ((s->kind != RP_OP_MATMUL && !conv && !grouped) || !(c->memory > 0))
        return;
    out->casts = (float)(1 + bias + c->normalised);
    out->casts_ns = (float)(to_half + (c->trains ? from_half : 0));
}

/* Whether layers normalize the input of products, other than over the batch, which runs in 16
   bits. */
static bool is_normalised(const struct rp_stepgraph *g)
{
    static const char *const names[] = {"layer_norm", "group_norm", "rms_norm", "aten::rsqrt"};

    for (size_t i = 0; i < g->names.n; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strstr(g->names.at[i], names[k]))
                return true;
    return false;
}

static bool has_backward(const struct rp_sim_part *part)
{
    for (size_t i = 0; i < part->notes.n; i++)
        if (part->notes.at[i].phase == RP_PHASE_BACKWARD)
            return true;
    return false;
}

/* ------------------------------------------------------------------ ratios */

/* Asks for the ratio from fp32 to another format; false if that was not measured. */
static bool ratio_to(const struct ratio_ctx *c, const struct rp_sample *from, enum rp_number type,
                     struct rp_learned_ratio *out)
{
    struct rp_sample to = *from;

    to.type = (uint8_t)type;
    to.bytes = from->bytes * rp_number_bytes(type) / rp_number_bytes((enum rp_number)from->type);
    return rp_learned_ratio_of(c->model, from, &to, out) && out->provenance != RP_ASSUMED;
}

/* ------------------------------------------------------------------ attention in parts */

/* Whether attention ran in parts: PyTorch has no fused attention in fp32 if there are fewer heads
   of keys than of queries, but has one in 16 bits. Attention that needs the gradient of a mask has
   none in either format. */
static bool is_parted(const struct ratio_ctx *c, rp_event op)
{
    const struct rp_events *ev = &c->trace->ev;
    rp_event e, end = op == RP_NONE ? 0 : c->trace->tracks[ev->track[op]].end;

    for (e = op; e < end && (e == op || ev->parent[e] == op); e++)
        if (rp_sim_means(rp_trace_str(c->trace, ev->name[e]), RP_SIM_PARTS_ATTENTION))
            return true;
    return false;
}

/* What transformers does during a capture. In language models it reads a value of the device to
   find that the sequences of a batch are not packed, and then makes attention causal by a flag. In
   a captured or compiled step it cannot read the value and passes a mask, so all pairs are
   computed, and the mask is read. To captured text encoders it passes a mask of one value, which no
   fused kernel accepts (up to 5.17; not in 5.23), so attention runs in parts, in fp32. Times of
   nine models on one H200, with and without. */
#define MASKED 1.4
RP_FACT(MASKED, "times the causal kernel", "in fp32");
#define MASKED_HALF 1.65
RP_FACT(MASKED_HALF, "times the causal kernel", "in 16 bits");
#define ENCODED 1.5
RP_FACT(ENCODED, "times the fused kernel in fp32", "in fp32");
#define ENCODED_HALF 1.7
RP_FACT(ENCODED_HALF, "times the fused kernel in fp32", "under autocast");
#define ENCODERS_FUSED 523
RP_FACT(ENCODERS_FUSED, "100 major + minor", "release of transformers that passes no such mask");

static bool asks_device(const struct rp_trace *t)
{
    rp_str name = 0;

    while (name < t->str.n && !rp_sim_means(rp_trace_str(t, name), RP_SIM_READS_CONDITION))
        name++;
    for (rp_event e = 0; name < t->str.n && e < t->ev.n; e++) {
        rp_event around = t->ev.name[e] == name ? t->ev.parent[e] : e;
        int left = 64;

        if (around == e)
            continue;
        while (around != RP_NONE && left-- &&
               rp_phase_of_name(t, t->ev.name[around]) != RP_PHASE_OPTIMIZER)
            around = t->ev.parent[around];
        if (around == RP_NONE)
            return true;
    }
    return false;
}

/* Its text encoders have dropout, no mask, and pass a scale, which other models leave to
   PyTorch. */
static bool is_encoder(const struct ratio_ctx *c, rp_event op)
{
    static const char name[] = "aten::scaled_dot_product_attention";
    const char *version = rp_trace_note(c->trace, "framework.transformers");
    rp_str dims, concrete;
    double dropout = 0, scale;
    int major, minor;

    if (version && sscanf(version, "%d.%d", &major, &minor) == 2 &&
        100 * major + minor >= ENCODERS_FUSED)
        return false;
    return op != RP_NONE && !strcmp(rp_trace_str(c->trace, c->trace->ev.name[op]), name) &&
           rp_arg_key_text(&c->costs.dims, op, &dims) &&
           rp_arg_key_text(&c->costs.concrete, op, &concrete) &&
           rp_inputs_parse(c->costs.inputs, name, rp_trace_str(c->trace, dims), NULL, NULL,
                           rp_trace_str(c->trace, concrete), NULL) == RP_OK &&
           !rp_inputs_tensor(c->costs.inputs, 3) && rp_inputs_int(c->costs.inputs, 4, &dropout) &&
           dropout > 0 && rp_inputs_int(c->costs.inputs, 6, &scale);
}

/* The times of a fused kernel in fp32 and in 16 bits, relative to the recorded one. */
static void set_encoded(const struct ratio_ctx *c, const struct rp_sample *s, bool half,
                        struct rp_sim_ratio *out)
{
    struct rp_sample single = *s;
    struct rp_learned_time t;
    double in_fp32 = 1;

    single.type = RP_NUMBER_FP32;
    single.bytes =
        s->bytes * rp_number_bytes(RP_NUMBER_FP32) / rp_number_bytes((enum rp_number)s->type);
    if (half && (!c->model || !rp_learned_predict(c->model, &single, &t) || !(s->ns > 0)))
        return;
    if (half)
        in_fp32 = t.ns / s->ns;
    out->captured = true;
    out->masked = (float)(in_fp32 * (half ? ENCODED_HALF : ENCODED));
    out->masked_half = out->ratio > 0 ? (float)(ENCODED_HALF / (double)out->ratio) : 0;
}

/* The factor for the time of attention when it is captured. */
static void set_masked(const struct ratio_ctx *c, const struct rp_sample *s,
                       struct rp_sim_ratio *out)
{
    bool half = rp_number_bytes((enum rp_number)s->type) <= rp_number_bytes(c->to);

    if (c->asks && strstr(s->op, "sdpa_causal")) {
        if (out->masked <= 0)
            out->masked = half ? MASKED_HALF : MASKED;
        out->masked_half = MASKED_HALF;
    } else if (c->encodes && (!strcmp(s->op, "sdpa") || !strcmp(s->op, "sdpa_backward"))) {
        set_encoded(c, s, half, out);
    }
}

/* The time as one operator, relative to that of its parts now. */
static bool fused_part(const struct ratio_ctx *c, const struct rp_sample *s, double now_ns,
                       struct rp_sim_ratio *out)
{
    struct rp_learned_time t;

    if (!(now_ns > 0) || !rp_learned_predict(c->model, s, &t) || t.provenance == RP_ASSUMED)
        return false;
    out->ratio = (float)(t.ns / now_ns);
    out->low = (float)(t.low_ns / now_ns);
    out->high = (float)(t.high_ns / now_ns);
    return true;
}

/* Sets the ratios in 16 bits, and with a mask in fp32. */
static bool fused_ratio(const struct ratio_ctx *c, const struct rp_sample *from, double now_ns,
                        struct rp_sim_ratio *out)
{
    struct rp_sample to = *from, masked = *from;
    struct rp_sim_ratio full;

    to.type = (uint8_t)c->to;
    to.bytes = from->bytes * rp_number_bytes(c->to) / rp_number_bytes((enum rp_number)from->type);
    if (!fused_part(c, &to, now_ns, out))
        return false;
    masked.op = rp_torch_means(from->op, RP_TORCH_BACKWARDS) ? "sdpa_backward" : "sdpa";
    masked.flops *= 2;
    if (c->asks && strstr(from->op, "sdpa_causal") && fused_part(c, &masked, now_ns, &full))
        out->masked = full.ratio;
    set_masked(c, from, out);
    return true;
}

/* Finds kernels of the backward pass that compute gradients of operators in the attention. */
static enum rp_code find_gradients(struct ratio_ctx *c, struct rp_err *err)
{
    RP_SCOPED(rp_attribution_release) struct rp_attribution owners = {0};

    if (!c->attention.n)
        return RP_OK;
    RP_TRY(rp_attribution_init(&owners, &c->work, err));
    RP_TRY(rp_vec_reserve(&c->gradient_of, c->work.items.n + 1, err));
    for (size_t i = 0; i < c->work.items.n; i++) {
        const struct rp_work_item *item = &c->work.items.at[i];
        rp_event e = owners.owners.at[i].forward;
        uint32_t found = RP_MAP_NONE;

        for (int left = 8; e != RP_NONE && left && found == RP_MAP_NONE; left--) {
            found = rp_map_get(&c->parted, e);
            e = c->trace->ev.parent[e];
        }
        c->gradient_of.at[c->gradient_of.n++] = found == RP_MAP_NONE ? 0 : found + 1;
        if (found != RP_MAP_NONE)
            rp_ns_add(&c->attention.at[found].back_ns, rp_ns_between(item->begin_ns, item->end_ns));
    }
    return RP_OK;
}

/* Shapes of attention are read each time, because more is asked about its inputs. */
static bool sample_of_call(struct ratio_ctx *c, const struct rp_cost_call *call,
                           struct rp_sample *out)
{
    struct known_shape *known = &c->shapes.at[call->cost];

    if (!rp_call_is_sample(&c->costs, call))
        return false;
    if (known->state == SHAPE_NEW) {
        bool found = rp_sample_of_call(&c->costs, call, c->device, &c->arena, out);

        if (call->op != RP_NONE && !(found && out->kind == RP_OP_ATTENTION))
            *known = (struct known_shape){found ? SHAPE_KNOWN : SHAPE_NONE, *out};
        return found;
    }
    *out = known->sample;
    out->ns = (double)call->device_ns;
    return known->state == SHAPE_KNOWN;
}

/* Some traces have few products, or an unknown device, so the model is only loaded when one is
   found. */
static enum rp_code ratio_of_call(struct ratio_ctx *c, const struct rp_cost_call *call,
                                  struct rp_sim_ratio *out, struct rp_err *err)
{
    struct rp_learned_ratio found;
    struct rp_sample from;

    *out = (struct rp_sim_ratio){0};
    if (!sample_of_call(c, call, &from))
        return RP_OK;
    c->encodes = c->encodes || (!strcmp(from.op, "sdpa") && is_encoder(c, call->op));
    if (rp_number_bytes((enum rp_number)from.type) <= rp_number_bytes(c->to)) {
        if (c->encodes && !c->model)
            RP_TRY(rp_ctx_borrow_model(c->ctx, c->path, &c->model, err));
        *out = (struct rp_sim_ratio){.ratio = 1, .low = 1, .high = 1};
        set_masked(c, &from, out);
        return RP_OK;
    }
    if (!strncmp(from.op, "grouped_conv2d", 14) && c->memory > 0) {
        grouped_ratio(c, call, &from, out);
        add_conversions(c, call, &from, out);
        return RP_OK;
    }
    if (!is_converted(&from))
        return RP_OK;
    if (!c->model)
        RP_TRY(rp_ctx_borrow_model(c->ctx, c->path, &c->model, err));
    if (from.kind == RP_OP_ATTENTION && is_parted(c, call->op)) {
        rp_event op = call->op;
        struct parted_attention a = {.back = from};
        uint32_t known;

        if (rp_inputs_tensor(c->costs.inputs, 3) || !fused_ratio(c, &from, from.ns, out))
            return RP_OK;
        out->tf32 = -1;
        a.back.op =
            rp_torch_means(from.op, RP_TORCH_CAUSAL) ? "sdpa_causal_backward" : "sdpa_backward";
        a.back.flops = a.back.bytes = NAN;
        RP_TRY(rp_sample_complete(&a.back, err));
        RP_TRY(rp_map_intern(&c->parted, op, (uint32_t)c->attention.n, &known, err));
        return known == c->attention.n ? rp_vec_push(&c->attention, a, err) : RP_OK;
    }
    if (ratio_to(c, &from, c->to, &found))
        *out = (struct rp_sim_ratio){
            .ratio = (float)found.ratio, .low = (float)found.low, .high = (float)found.high};
    if (out->ratio > 0 && from.type == RP_NUMBER_FP32 && from.kind <= RP_OP_BMM &&
        ratio_to(c, &from, RP_NUMBER_TF32, &found))
        out->tf32 = (float)found.ratio;
    set_masked(c, &from, out);
    if (out->ratio > 0)
        add_conversions(c, call, &from, out);
    return RP_OK;
}

static enum rp_code find_ratios(struct ratio_ctx *c, struct rp_err *err)
{
    const struct rp_stepgraph *g = &c->part->graph;
    size_t i;

    RP_TRY(rp_vec_reserve(&c->of_call, c->calls.calls.n + 1, err));
    RP_TRY(rp_vec_zeros(&c->shapes, c->costs.costs.n, err));
    for (c->of_call.n = i = 0; i < c->calls.calls.n; i++)
        RP_TRY(ratio_of_call(c, &c->calls.calls.at[i], &c->of_call.at[c->of_call.n++], err));
    RP_TRY(find_gradients(c, err));
    RP_TRY(rp_vec_zeros(&c->item_of, c->trace->ev.n, err));
    for (i = 0; i < c->work.items.n; i++)
        c->item_of.at[c->work.items.at[i].event] = (uint32_t)i + 1;
    for (i = 0; i < g->nodes.n; i++) {
        rp_event e = g->nodes.at[i].event;
        uint32_t item = e == RP_NONE ? 0 : c->item_of.at[e];
        uint32_t call = item ? c->calls.of_item.at[item - 1] : RP_NONE;
        struct rp_sim_ratio found = {0};

        if (call < c->of_call.n) {
            found = c->of_call.at[call];
            if (item - 1 != c->calls.calls.at[call].item ||
                c->part->notes.at[i].phase == RP_PHASE_BACKWARD)
                found.casts = found.casts_ns = 0;
        }
        if (item && c->gradient_of.n && c->gradient_of.at[item - 1]) {
            const struct parted_attention *a = &c->attention.at[c->gradient_of.at[item - 1] - 1];

            if (fused_ratio(c, &a->back, (double)a->back_ns, &found) && !(found.tf32 > 0))
                found.tf32 = -1;
        }
        RP_TRY(rp_vec_push(&c->part->ratios, found, err));
    }
    return rp_arena_check(&c->arena, "simulating", err);
}

enum rp_code rp_sim_part_ask_model(struct rp_sim_part *part, const struct rp_loaded *loaded,
                                   const char *path, struct rp_err *err)
{
    const struct rp_trace *t = loaded->trace;
    const struct rp_device_peaks *d =
        part->gpu ? rp_device_recognise(part->gpu, t->ndevices ? t->devices[0].memory_bytes : 0)
                  : NULL;
    struct ratio_ctx c = {.part = part,
                          .trace = t,
                          .ctx = loaded->dataset ? loaded->dataset->ctx : NULL,
                          .path = path,
                          .to = rp_device_half(d)};
    struct rp_scope all = {0};

    if (!part->graph.nodes.n || !c.ctx) /* without a context there are no models */
        return RP_OK;
    if (path) /* a file that the user names is always read */
        RP_TRY(rp_ctx_borrow_model(c.ctx, path, &c.model, err));
    if (!d)
        return RP_OK;
    c.device = d->name;
    c.memory = d->memory;
    c.normalised = is_normalised(&part->graph);
    c.trains = has_backward(part);
    c.asks = asks_device(t);
    enum rp_code code = rp_work_init(&c.work, t, &all, err);
    rp_trace_categories_init(&c.categories, t, rp_loaded_categories(loaded));
    if (code == RP_OK)
        code = rp_op_costs_init(&c.costs, &c.categories, err);
    if (code == RP_OK)
        code = rp_cost_calls_init(&c.calls, &c.costs, &c.work, NULL, NULL, err);
    if (code == RP_OK)
        code = find_ratios(&c, err);
    rp_vec_release(&c.shapes);
    rp_vec_release(&c.of_call);
    rp_vec_release(&c.item_of);
    rp_map_release(&c.parted);
    rp_vec_release(&c.attention);
    rp_vec_release(&c.gradient_of);
    rp_cost_calls_release(&c.calls);
    rp_op_costs_release(&c.costs);
    rp_trace_categories_release(&c.categories);
    rp_work_release(&c.work);
    rp_arena_release(&c.arena);
    return code;
}
