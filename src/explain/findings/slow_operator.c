/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds operators far below what the device can do. Calls of an operator with the same inputs form
 * a group. Its least work (cost/op_cost.h) at the peaks of the device (cost/devices.h) gives the
 * shortest possible time. The time beyond that at the achievable part of the peaks (as in roofline)
 * is lost. The reason is looked for in its shapes and the name of its kernel.
 */
#include "explain/findings/slow_operator.h"
#include "base/hash.h"
#include "base/order.h"
#include "cost/calls.h"
#include "explain/findings/finding.h"
#include "explain/roofline/roofline.h"
#include "explain/short_name.h"
#include "facts/torch_names.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { OTHER, ALIGNMENT, SMALL, PRECISION, PRODUCT, CONVOLUTION };

#define KINDS          (CONVOLUTION + 1)
#define CALL_NS        5000
#define FULL_SPEED     0.3
#define FAR_BELOW      0.5
#define READ_BELOW     0.65
#define WITHOUT_REASON 0.2
#define TILE           64
#define FASTER         1.25
#define PLACED_SHARE   0.03
#define MOST_JUDGED    64

RP_DECISION(CALL_NS, "ns", "a shorter call is limited by its latency",
            "explain/slow_operators_have_edges");
RP_DECISION(FULL_SPEED, "of the peak of float32",
            "what is slower has other reasons than its format",
            "explain/slow_operators_have_edges");
RP_DECISION(
    FAR_BELOW, "of the peak",
    "large products reach 0.75 to 0.85 of it (bench/roofline_h200.py); between, other limits count",
    "explain/slow_operators_have_edges");
RP_DECISION(
    READ_BELOW, "of the peak of memory",
    "of products that only read their weights: a copy reaches 0.87 (bench/roofline_h200.py)",
    "explain/slow_operators_have_edges");
RP_DECISION(WITHOUT_REASON, "of the peak",
            "what has no reason must be slower still: peaks say little about the arithmetic inside",
            "explain/slow_operators_have_edges");
RP_DECISION(TILE, "rows of a matrix", "the smallest tile of libraries: fewer rows do not fill one",
            "explain/slow_operators_have_edges");
RP_DECISION(
    FASTER, "times its rate",
    "a smaller product in the same format must reach it to show what is possible: kernels of "
    "neighbouring sizes differ by less",
    "explain/slow_operators_have_edges");
RP_DECISION(PLACED_SHARE, "of the span",
            "an upper bound: other limits of the operator leave a part",
            "explain/slow_operators_cost_a_share");
RP_LIMIT(MOST_JUDGED, "groups of calls", "the reasons of those that lose less are not looked for");

RP_PART_TYPE(rp_slow_operator_type, struct rp_slow_operator, RP_SLOW_OPERATOR);
RP_PART_TYPE(rp_kept_slow_operator, struct rp_slow_operators, RP_SLOW_OPERATORS);

struct group {
    rp_event op; /* of its first call */
    uint32_t cost;
    rp_str kernel;                           /* kernel of the longest of its calls */
    int64_t calls, ns, longest_ns, least_ns; /* the last two: longest and least time of its calls */
};

struct placing {
    const struct rp_trace *t;
    const struct rp_work *w;
    struct rp_arena *arena;
    const struct rp_op_costs *costs;
    const struct rp_cost_peaks *peaks;
    struct rp_map known; /* from name and cost to the group */
    RP_VEC(struct group) groups;
};

/* ------------------------------------------------------------------ groups */

static enum rp_code place_call(struct placing *p, const struct rp_cost_call *call,
                               struct rp_err *err)
{
    const struct rp_work_item *x = &p->w->items.at[call->item];
    uint32_t at;

    if (call->op == RP_NONE || x->cls != RP_WORK_COMPUTE ||
        !rp_cost_is_known(&p->costs->costs.at[call->cost]))
        return RP_OK;
    RP_TRY(rp_map_intern(&p->known, (uint64_t)p->t->ev.name[call->op] << 32 | call->cost,
                         (uint32_t)p->groups.n, &at, err));
    if (at == p->groups.n)
        RP_TRY(rp_vec_push(
            &p->groups, ((struct group){.op = call->op, .cost = call->cost, .least_ns = INT64_MAX}),
            err));
    struct group *g = &p->groups.at[at];
    g->calls++;
    rp_ns_add(&g->ns, call->device_ns);
    if (call->device_ns > g->longest_ns) {
        g->longest_ns = call->device_ns;
        g->kernel = p->t->ev.name[x->event];
    }
    if (call->device_ns < g->least_ns)
        g->least_ns = call->device_ns;
    return RP_OK;
}

/* ------------------------------------------------------------------ reasons */

/* product: the dimensions of a matrix product, from the last two inputs that are matrices. */
struct product {
    double m, n, k;
    bool known;
};

static size_t read_dims(const char **at, double *dims, size_t most)
{
    size_t n = 0;
    char *end;

    while (**at && **at != ']') {
        if (isdigit((unsigned char)**at)) {
            double v = strtod(*at, &end);

            if (n < most)
                dims[n++] = v;
            *at = end;
        } else {
            ++*at;
        }
    }
    return n;
}

static struct product read_product(const char *name, const char *dims)
{
    struct product out = {0};
    double a[8], b[8], d[8];
    size_t na = 0, nb = 0, n, i;
    bool linear =
        strstr(name, "linear") != NULL; /* the weights of a linear are stored transposed */
    const char *p = *dims == '[' ? dims + 1 : dims;

    for (; (p = strchr(p, '[')) != NULL && nb == 0;) {
        p++;
        n = read_dims(&p, d, 8);
        if (n < 2)
            continue;
        for (i = 0; i < n; i++)
            *(na ? &b[i] : &a[i]) = d[i];
        *(na ? &nb : &na) = n;
    }
    if (na < 2 || nb < 2)
        return out;
    out = (struct product){.m = a[na - 2],
                           .k = a[na - 1],
                           .n = linear ? b[nb - 2] : b[nb - 1],
                           .known = a[na - 1] == (linear ? b[nb - 1] : b[nb - 2])};
    return out;
}

/* The last dimension of the first input that has any; 0: not known. */
static double row_length(const char *dims)
{
    const char *p = *dims == '[' ? dims + 1 : dims;
    double d[8];

    p = strchr(p, '[');
    if (!p)
        return 0;
    p++;
    size_t n = read_dims(&p, d, 8);
    return n ? d[n - 1] : 0;
}

static bool is_multiple(double v, int of)
{
    return v > 0 && fmod(v, of) == 0;
}

static const char *dims_of(const struct placing *p, rp_event op)
{
    rp_str dims;

    return rp_arg_key_text(&p->costs->dims, op, &dims) && dims ? rp_trace_str(p->t, dims) : "";
}

/* "K = 3137 is not a multiple of 8" */
static const char *crooked(struct placing *p, const struct product *d, int of)
{
    const char *which = !is_multiple(d->k, of) ? "K" : !is_multiple(d->n, of) ? "N" : NULL;
    double v = which && *which == 'K' ? d->k : d->n;

    if (!which)
        return NULL;
    return fmod(v, 2) != 0
               ? rp_arena_textf(p->arena, "%s = %.0f is odd", which, v)
               : rp_arena_textf(p->arena, "%s = %.0f is not a multiple of %d", which, v, of);
}

/* Says why a matrix product is slow. */
static const char *product_reason(struct placing *p, const struct group *g, uint8_t *kind)
{
    const char *kernel = rp_trace_str(p->t, g->kernel), *align = strstr(kernel, "align1"), *text;
    const struct rp_op_cost *c = &p->costs->costs.at[g->cost];
    int vector = c->type == RP_NUMBER_FP32 || c->type == RP_NUMBER_TF32 ? 4 : 8;
    struct product d = read_product(rp_trace_str(p->t, p->t->ev.name[g->op]), dims_of(p, g->op));
    bool single = align && !isdigit((unsigned char)align[6]);

    text = d.known ? crooked(p, &d, vector) : NULL;
    if (text) {
        *kind = ALIGNMENT;
        return single ? rp_arena_textf(p->arena, "%s, the kernel is align1", text) : text;
    }
    if (d.known && d.m < TILE && d.n < TILE) {
        *kind = SMALL;
        return rp_arena_textf(p->arena, "matrices of %.0f × %.0f do not fill a tile", d.m, d.n);
    }
    if (d.known && d.m < TILE) {
        *kind = SMALL;
        return rp_arena_textf(p->arena, "M is only %.0f", d.m);
    }
    *kind = OTHER;
    return NULL;
}

static bool is_product(const struct placing *p, const struct group *g)
{
    const struct rp_op_cost *c = &p->costs->costs.at[g->cost];

    return c->category == RP_CATEGORY_MATMUL && c->flops > 0 && g->least_ns >= CALL_NS &&
           rp_cost_compute_s(c, p->peaks) > rp_cost_memory_s(c, p->peaks);
}

/* FLOP/s of the quickest product in the same format that needs no more FLOPs: the library reaches
   this on the device, and a larger product has no reason to be slower. */
static double rate_of_smaller(const struct placing *p, const struct group *g)
{
    const struct rp_op_cost *own = &p->costs->costs.at[g->cost];
    double best = 0;

    for (size_t i = 0; i < p->groups.n; i++) {
        const struct group *other = &p->groups.at[i];
        const struct rp_op_cost *c = &p->costs->costs.at[other->cost];

        if (!is_product(p, other) || c->type != own->type || c->flops > own->flops)
            continue;
        double rate = c->flops * 1e9 / (double)other->least_ns;
        if (rate > best && rate <= c->flops / rp_cost_compute_s(c, p->peaks))
            best = rate;
    }
    return best;
}

/* If no size explains the time of a product, it is compared with the smaller ones. */
/* Clamps times to the range. */
static int64_t whole_ns(double ns)
{
    return (int64_t)fmin(ns, (double)(INT64_MAX / 2));
}

static void compare_products(struct placing *p, const struct group *g, struct rp_slow_operator *out)
{
    const struct rp_op_cost *c = &p->costs->costs.at[g->cost];

    if (out->kind != OTHER || out->by_memory || !is_product(p, g))
        return;
    double own = c->flops * 1e9 / (double)g->least_ns;
    double smaller = rate_of_smaller(p, g);
    if (smaller < FASTER * own)
        return;
    out->kind = PRODUCT;
    out->lost_ns = whole_ns((double)g->calls * (double)g->least_ns * (1 - own / smaller));
    out->why = rp_arena_textf(p->arena, "a smaller product reaches %s",
                              rp_units_text(p->arena, smaller, RP_UNIT_FLOPS));
}

/* Rows that do not begin at multiples of 16 bytes are not read in vectors. */
static const char *memory_reason(struct placing *p, const struct group *g, uint8_t *kind)
{
    const struct rp_op_cost *c = &p->costs->costs.at[g->cost];
    double row = row_length(dims_of(p, g->op));
    int vector = c->type == RP_NUMBER_FP32 ? 4 : 8;

    *kind = OTHER;
    if (row > vector && !is_multiple(row, vector) &&
        (c->category == RP_CATEGORY_REDUCTION || c->category == RP_CATEGORY_NORMALIZATION)) {
        *kind = ALIGNMENT;
        return rp_arena_textf(p->arena, "rows of %.0f elements are not multiples of 16 bytes", row);
    }
    return NULL;
}

/* ------------------------------------------------------------------ the worst */

/* Whether it computes in full precision on vectors although matrix units have a faster format. */
static bool is_full_precision(const struct placing *p, const struct rp_op_cost *c)
{
    return c->on_matrix && c->type == RP_NUMBER_FP32 &&
           p->peaks->matrix[RP_NUMBER_TF32] > 2 * p->peaks->matrix[RP_NUMBER_FP32];
}

static const char *plain_dims(struct rp_arena *arena, const char *dims)
{
    char *out = RP_ARENA_NEW(arena, char, 2 * strlen(dims) + 4);
    const char *end = dims + strlen(dims), *p;
    size_t n = 0;

    if (!out)
        return "";
    while (end > dims &&
           (end[-1] == ']' || end[-1] == '[' || end[-1] == ',' || isspace((unsigned char)end[-1])))
        end--; /* scalars at the end */
    for (p = dims; p < end; p++) {
        if (!isspace((unsigned char)*p))
            out[n++] = *p;
        if (*p == ',')
            out[n++] = ' ';
    }
    memcpy(out + n, "]]", n ? 3 : 1);
    return n ? out : "";
}

/* The time of one call at the achievable part of the peaks, in seconds. */
static double good_time(const struct placing *p, const struct rp_op_cost *c,
                        const struct rp_slow_operator *placed)
{
    double memory = rp_cost_memory_s(c, p->peaks), compute = rp_cost_compute_s(c, p->peaks);

    if (placed->kind == PRECISION)
        compute = c->flops / p->peaks->matrix[RP_NUMBER_TF32];
    return (memory > compute ? memory : compute) / RP_ROOF_ACHIEVABLE;
}

/* The loss is measured on the quickest call: if others take longer, the reason is not the operator
   but what runs beside it. */
static bool judge(const struct placing *p, const struct group *g, struct rp_slow_operator *out)
{
    const struct rp_op_cost *c = &p->costs->costs.at[g->cost];
    double compute = rp_cost_compute_s(c, p->peaks), memory = rp_cost_memory_s(c, p->peaks);

    if (isnan(compute) || isnan(memory) || g->least_ns < CALL_NS)
        return false;
    *out = (struct rp_slow_operator){
        .calls = g->calls, .device_ns = g->ns, .by_memory = memory > compute};
    double best = out->by_memory ? memory : compute;
    double quickest = (double)g->least_ns / 1e9;
    if (best * 1e9 < RP_ROOF_LATENCY_NS)
        return false;
    out->rate = (double)g->calls * (out->by_memory ? c->bytes : c->flops) * 1e9 / (double)g->ns;
    out->peak = out->by_memory ? p->peaks->memory : c->flops / compute;
    if (out->by_memory && c->on_matrix)
        out->flops_per_s = (double)g->calls * c->flops * 1e9 / (double)g->ns;
    if (is_full_precision(p, c) && !out->by_memory && best > FULL_SPEED * quickest) {
        out->kind = PRECISION;
        out->peak = p->peaks->matrix[RP_NUMBER_TF32];
        out->why = "float32 without TF32 does not use the matrix units";
    } else if (best > (out->by_memory && c->on_matrix ? READ_BELOW : FAR_BELOW) * quickest) {
        return false;
    }
    out->lost_ns = whole_ns((double)g->calls * 1e9 * (quickest - good_time(p, c, out)));
    return out->lost_ns > 0;
}

/* "aten::bmm [[96, 3137, 64], [96, 64, 3137]]" */
static void describe(struct placing *p, const struct group *g, struct rp_slow_operator *out)
{
    const char *name = rp_trace_str(p->t, p->t->ev.name[g->op]);
    char kernel[96];

    name = rp_torch_op(name);
    rp_short_name(rp_trace_str(p->t, g->kernel), kernel, sizeof kernel);
    out->op = rp_arena_textf(p->arena, "%s %s", name, plain_dims(p->arena, dims_of(p, g->op)));
    out->kernel = rp_arena_text(p->arena, kernel);
    if (out->why)
        return;
    out->why = p->costs->costs.at[g->cost].category == RP_CATEGORY_MATMUL
                   ? product_reason(p, g, &out->kind)
                   : memory_reason(p, g, &out->kind);
    compare_products(p, g, out);
    if (out->kind == OTHER && p->costs->costs.at[g->cost].category == RP_CATEGORY_CONVOLUTION)
        out->kind = CONVOLUTION;
}

/* An operator without a known reason must be slower still, because peaks say little about the
   arithmetic inside. */
static bool is_worth_it(const struct placing *p, const struct group *g,
                        const struct rp_slow_operator *placed)
{
    return (placed->kind != OTHER && placed->kind != CONVOLUTION) ||
           (placed->rate < WITHOUT_REASON * placed->peak &&
            p->costs->costs.at[g->cost].category != RP_CATEGORY_ATTENTION);
}

struct candidate {
    struct rp_slow_operator placed;
    size_t group;
};

RP_ORDER(by_loss, struct candidate, RP_DOWN(placed.lost_ns), RP_UP(group))

/* Adds up the loss for each reason, and keeps the worst operators of the reason with the largest
   one. */
static void keep_worst(const struct candidate *all, size_t n, struct rp_slow_operators *out)
{
    int64_t lost[KINDS] = {0};
    size_t i, worst = 0;

    for (i = 0; i < n; i++)
        rp_ns_add(&lost[all[i].placed.kind], all[i].placed.lost_ns);
    for (i = 0; i < KINDS; i++)
        worst = lost[i] > lost[worst] ? i : worst;
    out->lost_ns = lost[worst];
    for (i = 0; i < n && out->n < RP_SLOW_OPERATORS_MOST; i++)
        if (all[i].placed.kind == worst)
            out->at[out->n++] = all[i].placed;
}

static enum rp_code find_worst(struct placing *p, struct rp_slow_operators *out, struct rp_err *err)
{
    RP_VEC(struct candidate) all = {0};
    enum rp_code code = RP_OK;
    size_t i, n, kept = 0;

    for (i = 0; i < p->groups.n && code == RP_OK; i++) {
        struct candidate c = {.group = i};

        if (judge(p, &p->groups.at[i], &c.placed))
            code = rp_vec_push(&all, c, err);
    }
    if (code == RP_OK)
        rp_sort(all.at, all.n, sizeof *all.at, by_loss);
    n = code != RP_OK ? 0 : all.n < MOST_JUDGED ? all.n : MOST_JUDGED;
    for (i = 0; i < n; i++) {
        describe(p, &p->groups.at[all.at[i].group], &all.at[i].placed);
        if (is_worth_it(p, &p->groups.at[all.at[i].group], &all.at[i].placed))
            all.at[kept++] = all.at[i];
    }
    rp_sort(all.at, kept, sizeof *all.at, by_loss);
    keep_worst(all.at, kept, out);
    rp_vec_release(&all);
    return code;
}

static enum rp_code slow_operator_measure(const struct rp_finding_rank *rank, void *kept,
                                          struct rp_err *err)
{
    struct placing p = {.t = rank->trace,
                        .w = rank->work,
                        .arena = rank->arena,
                        .costs = rank->costs,
                        .peaks = rank->peaks};
    enum rp_code code = RP_OK;

    for (size_t i = 0; rank->peaks && i < rank->calls->calls.n && code == RP_OK; i++)
        code = place_call(&p, &rank->calls->calls.at[i], err);
    if (code == RP_OK)
        code = find_worst(&p, kept, err);
    rp_map_release(&p.known);
    rp_vec_release(&p.groups);
    return code;
}

/* ------------------------------------------------------------------ the finding */

static void slow_operator_find(struct rp_findings *f)
{
    const struct rp_slow_operators *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding =
        k && k->n ? rp_findings_add_compute(f, k->at[0].kind, k->lost_ns) : NULL;

    for (size_t i = 0; finding && i < k->n; i++) {
        const struct rp_slow_operator *p = &k->at[i];

        finding->where.names[i] = p->kernel;

        /* For example "bmm [[96, 3137, 64], [96, 64, 3137]] runs at 63.7 TFLOP/s of 989 TFLOP/s: N
         * = 3137 is odd" */
        enum rp_unit unit = p->by_memory ? RP_UNIT_BPS : RP_UNIT_FLOPS;
        const char *flops =
            p->flops_per_s > 0
                ? rp_arena_textf(f->arena, " (%s)",
                                 rp_units_text(f->arena, p->flops_per_s, RP_UNIT_FLOPS))
                : "";

        RP_SAY(f, finding, "rank %d: %s runs at %s of %s%s%s%s; %s in %s of %s",
               rp_findings_lead_number(f), p->op, rp_units_text(f->arena, p->rate, unit),
               rp_units_text(f->arena, p->peak, unit), flops, p->why ? ": " : "",
               p->why ? p->why : "", rp_findings_time(f, p->device_ns),
               rp_units_count(f->arena, p->calls, "call"), p->kernel);
    }
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(OTHER) | OF(CONVOLUTION),
     .text = "'reprise roofline' lists operators with their rates, 'reprise top --focus NAME' who "
             "calls one"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model): generated kernels for what aten has slow ones for"},
    {RP_ADVISE_CALL, OF(ALIGNMENT),
     .text = "pad the size to a multiple of 8 (float32: 4) elements, so that rows begin at 16 "
             "bytes"},
    {RP_ADVISE_MORE, OF(ALIGNMENT), .frameworks = FW(PYTORCH),
     .text = "attention that is written out (bmm, softmax, bmm): "
             "torch.nn.functional.scaled_dot_product_attention pads inside its kernel"},
    {RP_ADVISE_SIZE, OF(SMALL),
     .text = "larger batches, or several products in one: more rows for the same weights"},
    {RP_ADVISE_CALL, OF(SMALL), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .compiled = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"max-autotune-no-cudagraphs\"): other tiles, split-k"},
    {RP_ADVISE_CALL, OF(SMALL), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "PYTORCH_TUNABLEOP_ENABLED=1: PyTorch tries the kernels of hipBLASLt and "
             "rocBLAS for each shape of a matrix product, and keeps the fastest"},
    {RP_ADVISE_CALL, OF(PRECISION), .text = "bfloat16 or TF32 for matrix products",
     .what_if = "dtype=bf16"},
    {RP_ADVISE_CALL, OF(PRECISION), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text =
         "TF32: torch.set_float32_matmul_precision(\"high\"), torch.backends.cudnn.allow_tf32 = "
         "True; or torch.autocast(\"cuda\", dtype=torch.bfloat16)",
     .what_if = "dtype=bf16"},
    {RP_ADVISE_CALL, OF(PRECISION), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "torch.autocast with dtype=torch.bfloat16", .what_if = "dtype=bf16"},
    {RP_ADVISE_CALL, OF(PRECISION), .frameworks = FW(JAX),
     .text = "jax.default_matmul_precision(\"tensorfloat32\"), or parameters and inputs in "
             "bfloat16",
     .what_if = "dtype=bf16"},
    {RP_ADVISE_CALL, OF(PRECISION), .frameworks = FW(TENSORFLOW),
     .text = "tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\"), or "
             "tf.config.experimental.enable_tensor_float_32_execution(True)",
     .what_if = "dtype=bf16"},
    {RP_ADVISE_CALL, OF(PRECISION), .vendors = BY(NVIDIA), .no_bf16 = RP_KEY_YES,
     .text = "float16 for matrix products: the device has matrix units for no other format",
     .what_if = "dtype=fp16"},
    {RP_ADVISE_CALL, OF(PRECISION), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .no_bf16 = RP_KEY_YES,
     .text = "torch.autocast(\"cuda\", dtype=torch.float16), with torch.amp.GradScaler in "
             "training: the device has matrix units for no other format",
     .what_if = "dtype=fp16"},
    {RP_ADVISE_CALL, OF(PRECISION), .frameworks = FW(TENSORFLOW), .vendors = BY(NVIDIA),
     .no_bf16 = RP_KEY_YES, .text = "tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")",
     .what_if = "dtype=fp16"},
    {RP_ADVISE_LOOK, OF(PRODUCT),
     .text =
         "'reprise roofline' lists the products with their rates: tune the library for those at "
         "the top"},
    {RP_ADVISE_CALL, OF(PRODUCT), .vendors = BY(AMD),
     .frameworks = FW(PYTORCH) | FW(VLLM) | FW(SGLANG),
     .text =
         "PYTORCH_TUNABLEOP_ENABLED=1: PyTorch tries the kernels of hipBLASLt and rocBLAS for each "
         "shape of a matrix product, and keeps the fastest"},
    {RP_ADVISE_CALL, OF(PRODUCT), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text =
         "torch.compile(model, mode=\"max-autotune-no-cudagraphs\") tries other kernels for each "
         "shape"},
    {RP_ADVISE_CALL, OF(PRODUCT), .frameworks = FW(JAX),
     .text = "XLA_FLAGS=--xla_gpu_autotune_level=4: XLA tries the kernels of the library for each "
             "shape"},
    {RP_ADVISE_CALL, OF(CONVOLUTION), .frameworks = FW(PYTORCH),
     .text = "model.to(memory_format=torch.channels_last), inputs too, and torch.autocast: the "
             "matrix units compute in this layout"},
    {RP_ADVISE_MORE, OF(CONVOLUTION), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.backends.cudnn.benchmark = True tries the algorithms of the library for each "
             "shape"},
    {RP_ADVISE_MORE, OF(CONVOLUTION), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text =
         "MIOPEN_FIND_MODE=NORMAL MIOPEN_FIND_ENFORCE=SEARCH in one run: MIOpen tunes its kernels "
         "for each shape, and keeps what it found for later runs"},
};

const struct rp_finding rp_finding_slow_operator = {
    .id = "slow-operator",
    .kinds = {{"other", "an operator runs far below what the device can do",
               .least_share = PLACED_SHARE},
              {"alignment", "an operator runs far below what the device can do, because of a size",
               .least_share = PLACED_SHARE},
              {"small", "an operator runs far below what the device can do: its matrices are small",
               .least_share = PLACED_SHARE},
              {"precision", "products or convolutions in float32 do not use the matrix units",
               .least_share = PLACED_SHARE},
              {"product", "matrix products run slower than smaller ones of the same recording",
               .least_share = PLACED_SHARE},
              {"convolution", "convolutions run far below what the device can do",
               .least_share = PLACED_SHARE}},
    .condition =
        "operators with the same inputs, of a device whose peaks are known, whose quickest "
        "call takes `CALL_NS` or more, would take 2 µs or more at the peak, and reaches less "
        "than `FAR_BELOW` of it (products that the memory limits: `READ_BELOW`; "
        "[Roofline](definitions/device.md#roofline)). The kind is the reason that loses most: a size "
        "(K, N, or the rows of a reduction) that is not a multiple of 16 bytes; matrices of "
        "fewer than `TILE` rows; products in float32 that reach `FULL_SPEED` of its peak, "
        "where TF32 would be at least twice as fast; a product that stays below 1 / `FASTER` "
        "of the rate that a product with fewer FLOPs in the same format reaches in this "
        "recording; or none, below `WITHOUT_REASON` of the peak, convolutions apart from "
        "other operators and without attention",
    .cost = "what all calls of that kind would take less at 0.8 of the peaks, counted from the "
            "quickest call (of float32: of the peak of TF32; of a large product: at the rate of "
            "the smaller one, which is what the library can do here); an upper bound",
    .numbers = RP_FINDING_NUMBER(PLACED_SHARE) RP_FINDING_NUMBER(CALL_NS)
        RP_FINDING_NUMBER(FAR_BELOW) RP_FINDING_NUMBER(READ_BELOW) RP_FINDING_NUMBER(FULL_SPEED)
            RP_FINDING_NUMBER(WITHOUT_REASON) RP_FINDING_NUMBER(TILE) RP_FINDING_NUMBER(FASTER),
    .test = "explain/slow_operators_cost_a_share",
    RP_KEEPS(slow_operator, slow_operator_measure),
    .changes = {{"dtype", PRECISION}, {"tf32", PRECISION}},
    .find = slow_operator_find,
    RP_ADVICE(advice),
};
