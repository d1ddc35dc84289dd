/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype, tf32: kernels in other number formats.
 *
 * dtype: kernels run in the device's 16-bit format, as with autocast. For products with recorded
 * shapes, a cost model says what they gain, and what is converted for them (sim/kernel_ratios.h).
 * Other operators of PyTorch follow a table of the effect of autocast in 16 networks on one H200.
 * For the rest, class and time decide, by a table of medians over 1,920 single operators measured
 * there, scaled by how much faster the device's matrix units are than computing in 32 bits; the
 * interval contains the remaining doubt. The host launches the conversions, too.
 *
 * tf32: products of matrices in fp32 run on the matrix units, which round their operands and read
 * as many bytes as before. The cost model says what they gain; if it does not, they gain as in 16
 * bits, at the rate of tf32. Convolutions do not change, because cuDNN uses tf32 for them unless
 * that is forbidden.
 */
#include "cost/devices.h"
#include "facts/torch_names.h"
#include "sim/whatif/nodes.h"

#include <string.h>

/* The time of an operator in bf16 relative to fp32, up to a time in fp32. */
struct gain {
    int64_t up_to_ns;
    double factor;
};

/* For products whose sizes are multiples of 8; others gain half as much or nothing. */
static const struct gain matrix_gain[] = {{6000, 0.76},     {12000, 0.45},  {25000, 0.28},
                                          {50000, 0.19},    {100000, 0.13}, {200000, 0.09},
                                          {INT64_MAX, 0.07}};
static const struct gain convolution_gain[] = {
    {12000, 1.16}, {25000, 0.92}, {50000, 0.70}, {INT64_MAX, 0.52}};
/* For other frameworks: half of the operators run in 16 bits. Long ones, which the memory limits,
   gain half of what half the bytes would save. */
static const struct gain element_gain[] = {
    {15000, 1}, {30000, 0.92}, {60000, 0.84}, {INT64_MAX, 0.75}};
static const struct gain attention_gain[] = {{40000, 0.33}, {120000, 0.22}, {INT64_MAX, 0.17}};
/* For cuDNN's: half the bytes, after the overhead. PyTorch's own take as long as before. */
static const struct gain depthwise_gain[] = {
    {6000, 0.9}, {12000, 0.75}, {25000, 0.65}, {50000, 0.57}, {INT64_MAX, 0.51}};
/* Kernels with another gain, by their names. */
static const struct {
    unsigned kernel;
    const char *name;
    double factor;
} kernel_gain[] = {
    {RP_KERNEL_DEPTHWISE, "at::native", 1},
    {RP_KERNEL_DEPTHWISE, "wgrad2d_grouped", 0.08}, /* this kernel exists only for 16 bits */
    {RP_KERNEL_CONVOLUTION, "f32f32_f32f32", 0.1}}; /* runs on vectors in fp32 */

/* The times of PyTorch's operators relative to fp32, except for an overhead: medians of the steps
   of 16 networks. Operators that are not in the table stay in fp32, or take as long: losses,
   softmax, normalizations of rows and groups, pooling, sums that are kept in fp32. Names begin with
   these texts. cuDNN has no batch normalization of 16 bits in this layout, and PyTorch's own is
   slower. */
static const struct {
    const char *op;
    double factor;
} operator_gain[] = {{"cudnn_batch_norm_backward", 1.19},
                     {"cudnn_batch_norm", 1.59},
                     {"clamp_min", 0.5},
                     {"threshold_backward", 0.5},
                     {"relu", 0.5},
                     {"leaky_relu", 0.5},
                     {"hardswish", 0.5},
                     {"hardtanh", 0.5},
                     {"silu", 0.56},
                     {"gelu", 0.72},
                     {"cat", 0.6},
                     {"copy_", 0.6},
                     {"native_dropout", 0.75},
                     {"add_", 0.62},
                     {"sum", 0.87},
                     {"mul", 0.85},
                     {"div", 0.8},
                     {"mean", 0.8}};

/* Operands and results of products are converted by separate kernels. Without shapes: */
#define CONVERT_NS 1500
RP_DECISION(CONVERT_NS, "ns of a product", "on one GPT 4 us for a product of 116 us",
            "sim/a_product_gains_by_its_time");
#define CONVERT_PART 0.02
RP_DECISION(CONVERT_PART, "of a product", "as CONVERT_NS", "sim/a_product_gains_by_its_time");

#define TF32_GAIN 0.5
RP_FACT(TF32_GAIN, "of the time in tf32", "matrix units of an H200, as published");

#define TF32_DOUBT 0.2
RP_DECISION(TF32_DOUBT, "of the time",
            "products in tf32 whose shapes were left out when the model was fitted lie within this",
            "sim/the_model_says_what_tf32_gains");

/* How much faster products are in 16 bits than in 32, according to published figures. */
static double half_rate(const struct rp_device_peaks *d)
{
    double half = rp_device_matrix_peak(d, rp_device_half(d));
    double full = rp_device_matrix_peak(d, RP_NUMBER_FP32);

    return half > 0 && full > 0 ? half / full : 1;
}

/* The recorded device, and how its products compare with those on which the table was measured. */
struct half {
    const struct rp_device_peaks *device; /* NULL: not known */
    double slower;                        /* multiplies the factors of the table for products */
    double tf32;                          /* the factor of products in tf32 */
};

static struct half half_of(const struct rp_sim_run *run)
{
    const char *gpu = run->parts[0]->gpu;
    struct half h = {
        .device = gpu ? rp_device_recognise(gpu, 0) : NULL, .slower = 1, .tf32 = TF32_GAIN};
    const struct rp_device_peaks *measured = rp_device_by_name("H200");

    if (!h.device || !measured)
        return h;
    h.slower = half_rate(measured) / half_rate(h.device);
    h.slower = h.slower > 1 ? h.slower : 1;
    if (h.device->matrix[RP_NUMBER_TF32] > 0)
        h.tf32 = h.device->matrix[RP_NUMBER_TF32] /
                 rp_device_matrix_peak(h.device, rp_device_half(h.device));
    return h;
}

/* Whether the operator that launched a kernel has this in its name. */
static bool op_has(const struct rp_sim_run *run, uint32_t node, const char *text)
{
    const char *op = rp_sim_part_of(run, node)->graph.names.at[rp_sim_note_of(run, node)->op];

    return strcasestr(op, text) != NULL;
}

static bool is_attention(const struct rp_sim_run *run, uint32_t node)
{
    return op_has(run, node, "attention");
}

/* Whether the operator computes a whole recurrent network, whose hundreds of products read operands
   that were converted before it. */
static bool is_recurrent(const struct rp_sim_run *run, uint32_t node)
{
    return op_has(run, node, "_rnn");
}

/* The gain of a product, or of an element-wise kernel that no operator of PyTorch launched. */
static double gain_of(const struct half *h, const struct rp_sim_run *run, uint32_t node)
{
    unsigned kernel = rp_sim_kernel_traits(run, node);
    const char *name = rp_sim_node_name(run, node);
    int64_t dur_ns = run->overlay.dur_ns.at[node];
    bool product = kernel & RP_KERNEL_MATRIX;
    const struct gain *g = kernel & RP_KERNEL_DEPTHWISE     ? depthwise_gain
                           : product                        ? matrix_gain
                           : kernel & RP_KERNEL_CONVOLUTION ? convolution_gain
                                                            : element_gain;

    if (product && kernel & RP_KERNEL_TF32)
        return h->tf32;
    for (size_t i = 0; i < sizeof kernel_gain / sizeof *kernel_gain; i++) {
        bool on_vectors = kernel_gain[i].kernel == RP_KERNEL_CONVOLUTION;

        if (kernel & kernel_gain[i].kernel && strstr(name, kernel_gain[i].name) &&
            !(on_vectors && product))
            return kernel_gain[i].factor * (on_vectors ? h->slower : 1);
    }
    if (product && is_attention(run, node))
        g = attention_gain;
    while (dur_ns > g->up_to_ns)
        g++;
    double factor = g->factor * (product ? h->slower : 1);
    return product && factor > 1 ? 1 : factor;
}

/* The factor for another operator of PyTorch; 0 if it is none. */
static double operator_factor(const struct rp_sim_run *run, uint32_t node)
{
    const char *op = rp_sim_part_of(run, node)->graph.names.at[rp_sim_note_of(run, node)->op];
    double dur_ns = (double)run->overlay.dur_ns.at[node];
    double fixed = dur_ns > RP_SIM_EMPTY_KERNEL_NS ? RP_SIM_EMPTY_KERNEL_NS / dur_ns : 1;

    if (rp_torch_op(op) == op)
        return 0;
    for (size_t i = 0; i < sizeof operator_gain / sizeof *operator_gain; i++)
        if (!strncmp(rp_torch_op(op), operator_gain[i].op, strlen(operator_gain[i].op)) &&
            !(operator_gain[i].factor > 1 && strcasestr(rp_sim_node_name(run, node), "nhwc")))
            return fixed + (1 - fixed) * operator_gain[i].factor;
    return 1;
}

/* What the model says about a node; NULL if nothing. */
static const struct rp_sim_ratio *ratio_of(const struct rp_sim_run *run, uint32_t node)
{
    const struct rp_sim_ratio *ratio = rp_sim_ratio_of(run, node);

    return ratio && ratio->ratio > 0 ? ratio : NULL;
}

static bool is_converted(const struct rp_sim_run *run, uint32_t node)
{
    const struct rp_sim_ratio *ratio = ratio_of(run, node);

    return rp_sim_kernel_traits(run, node) & RP_KERNEL_HALF || (ratio && ratio->ratio == 1);
}

#define HALF_PART 0.9
RP_DECISION(HALF_PART, "of the time of products",
            "from here on a run is in 16 bits: the rest are sums of partial products and the like",
            "sim/a_run_in_16_bits_is_not_asked_again");

/* The shares of the time of products that already run in 16 bits, and that are known to run in 32,
   by names or recorded types; 0 if there are none. */
struct parts {
    double half, single;
};

static struct parts parts_of(const struct rp_sim_run *run)
{
    struct parts p = {0, 0};
    double all = 0;

    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_kernel(run, i) && rp_sim_in_steps(run, i) &&
            rp_sim_kernel_traits(run, i) & RP_KERNEL_PRODUCT) {
            const struct rp_sim_ratio *ratio = ratio_of(run, i);
            double ns = (double)run->overlay.dur_ns.at[i];
            bool known =
                ratio ? ratio->ratio != 1 : rp_sim_kernel_traits(run, i) & RP_KERNEL_SINGLE;

            all += ns;
            p.half += is_converted(run, i) ? ns : 0;
            p.single += known ? ns : 0;
        }
    return all > 0 ? (struct parts){p.half / all, p.single / all} : p;
}

/* The ratio at the end of the model's interval to which the run leans. */
static double leaning_ratio(struct rp_sim_run *run, const struct rp_sim_ratio *ratio)
{
    run->leans |= RP_LEANS_RATES;
    return (double)(run->lean == RP_LEAN_SLOWER   ? ratio->high
                    : run->lean == RP_LEAN_FASTER ? ratio->low
                                                  : ratio->ratio);
}

static double factor_of(struct rp_sim_run *run, const struct half *h, uint32_t node, bool mixed)
{
    unsigned kernel = rp_sim_kernel_traits(run, node);
    double dur_ns = (double)run->overlay.dur_ns.at[node] + 1;
    const struct rp_sim_ratio *ratio = ratio_of(run, node);

    if (ratio)
        return leaning_ratio(run, ratio) + (double)ratio->casts_ns / dur_ns;
    if (kernel & RP_KERNEL_PRODUCT)
        return gain_of(h, run, node) * rp_sim_lean_by(run, RP_SIM_TABLE_DOUBT) +
               (kernel & RP_KERNEL_DEPTHWISE || is_recurrent(run, node)
                    ? 0
                    : CONVERT_NS / dur_ns + CONVERT_PART);
    if (mixed)
        return 1;
    double other = operator_factor(run, node);
    if (other == 1)
        return 1;
    return other > 0 ? other * rp_sim_lean_by(run, RP_SIM_MEASURED_DOUBT)
                     : gain_of(h, run, node) * rp_sim_lean_by(run, RP_SIM_TABLE_DOUBT);
}

/* ------------------------------------------------------------------ the host */

/* launches: conversions of a pass in all steps, and its kernels. */
struct launches {
    double casts, kernels;
};

/* A conversion takes the host as long as an average operator that launches one kernel. What the
   forward pass converts, the backward pass converts back. */
static enum rp_code launch_conversions(struct rp_sim_run *run, struct rp_err *err)
{
    struct launches forward = {0, 0}, backward = {0, 0};

    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];
        const struct rp_sim_note *note = rp_sim_note_of(run, i);

        if (note->step == RP_NO_STEP || note->phase == RP_PHASE_OPTIMIZER || is_converted(run, i))
            continue;
        (note->phase == RP_PHASE_BACKWARD ? &backward : &forward)->kernels++;

        /* Without shapes: only the weight of a product counts. */
        const struct rp_sim_ratio *ratio = ratio_of(run, i);
        forward.casts += ratio ? (double)ratio->casts
                               : rp_sim_kernel_traits(run, i) & RP_KERNEL_PRODUCT &&
                                     !is_attention(run, i) && !is_recurrent(run, i) &&
                                     rp_sim_note_of(run, i)->phase != RP_PHASE_BACKWARD;
    }
    backward.casts = forward.casts;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_runs_model(run, i)) {
            bool back = rp_sim_note_of(run, i)->phase == RP_PHASE_BACKWARD;
            const struct launches *l = back ? &backward : &forward;

            if (l->kernels > 0)
                RP_TRY(rp_sim_scale_model_code(
                    run, i, 1 + l->casts / l->kernels * rp_sim_lean_by(run, RP_SIM_TABLE_DOUBT),
                    err));
        }
    return RP_OK;
}

static const char *name_of(const struct half *h)
{
    return h->device ? h->device->name : "this device";
}

static bool is_bf16(const struct rp_whatif_args *args)
{
    return args->value && !strcmp(args->value, "bf16");
}

static enum rp_whatif_verdict dtype_applies(const struct rp_sim_run *run,
                                            const struct rp_whatif_args *args, struct rp_err *why)
{
    struct half h = half_of(run);
    enum rp_number has = rp_device_half(h.device);

    if (rp_sim_needs_kernels(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    if (has == RP_NUMBER_NONE)
        return RP_WHATIF_SAY(why, CANNOT, "%s has no matrix units for 16 bits", name_of(&h));
    if (args && is_bf16(args) && has != RP_NUMBER_BF16)
        return RP_WHATIF_SAY(why, CANNOT, "%s has no matrix units for bf16: use dtype=fp16",
                             name_of(&h));
    if (args)
        return RP_WHATIF_APPLIES;
    struct parts p = parts_of(run);
    if (p.half > HALF_PART)
        return RP_WHATIF_SAY(why, NOT, "the products run in 16 bits already");
    if (p.single <= 0)
        return RP_WHATIF_SAY(why, UNSURE, "no product is known to run in 32 bits (%s tells)",
                             rp_sim_shapes_option(run->parts[0]));
    return RP_WHATIF_SAY(why, APPLIES,
                         "%.0f %% of the time of products is known to be spent in 32 bits",
                         100 * p.single);
}

static enum rp_code dtype_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    struct half h = half_of(run);
    uint32_t n = 0;

    if (!is_bf16(args) && (!args->value || strcmp(args->value, "fp16") != 0))
        return rp_err_set(err, RP_USAGE, "'%s': dtype=bf16 or dtype=fp16 is expected", args->text);
    RP_TRY(rp_whatif_check(&rp_whatif_dtype, run, args, err));
    bool mixed =
        2 * parts_of(run).half > 1; /* if so, what is not in 16 bits was left out on purpose */
    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];

        if (rp_sim_note_of(run, i)->phase == RP_PHASE_OPTIMIZER || is_converted(run, i))
            continue;
        double factor = factor_of(run, &h, i, mixed);
        n += !mixed || factor != 1;
        RP_TRY(rp_sim_scale_node(run, i, factor, err));
    }
    if (n && !mixed && rp_sim_is_torch(run->parts[0]) &&
        !rp_whatif_list_has(args->list, &rp_whatif_compile))
        RP_TRY(launch_conversions(run, err));
    return n ? RP_OK
             : rp_err_set(err, RP_UNSUPPORTED, "dtype: all products run in 16 bits already");
}

static enum rp_code dtype_propose(const struct rp_sim_run *run, struct rp_arena *arena,
                                  rp_whatif_texts *out, struct rp_err *err)
{
    (void)arena;
    return rp_vec_push(
        out, rp_device_half(half_of(run).device) == RP_NUMBER_BF16 ? "dtype=bf16" : "dtype=fp16",
        err);
}

static const char *dtype_how(const char *text)
{
    return strstr(text, "fp16")
               ? "run the forward pass under torch.autocast('cuda', dtype=torch.float16), and the "
                 "backward pass with torch.amp.GradScaler"
               : "run the forward pass under torch.autocast('cuda', dtype=torch.bfloat16)";
}

static const struct rp_whatif_move dtype_move = {
    .family = "precision", .effort = 2, .how = dtype_how, .propose = dtype_propose};

const struct rp_whatif rp_whatif_dtype = {
    .name = "dtype",
    .form = "dtype=bf16|fp16",
    .summary =
        "kernels outside the optimizer run in 16 bits instead of fp32, in a format that the device has",
    .assumes =
        "it is done by autocast: products gain what the cost model says of their shapes, or, without "
        "shapes, what products of their time gained on one H200, scaled by the peaks of the device; "
        "weights and inputs are converted; other operators gain what they did in 16 networks there",
    .assumes_elsewhere =
        "it is done as PyTorch's autocast does it: products gain what the cost model says of their "
        "shapes, or, without shapes, what products of their time gained on one H200, scaled by the "
        "peaks of the device; weights and inputs are converted; other operators gain what they did "
        "in 16 networks there",
    .value = RP_WHATIF_WORD,
    .move = &dtype_move,
    .applies = dtype_applies,
    .apply = dtype_apply};

/* ------------------------------------------------------------------ tf32 */

/* Whether a kernel is a product of matrices that runs on vectors; not a convolution that is
   computed as one, nor attention, whose kernels for fp32 ignore the format allowed for products. */
static bool runs_in_fp32(const struct rp_sim_run *run, uint32_t node)
{
    unsigned kernel = rp_sim_kernel_traits(run, node);

    return kernel & RP_KERNEL_MATRIX && !(kernel & RP_KERNEL_TF32) && !op_has(run, node, "conv") &&
           !is_attention(run, node) && !is_converted(run, node) &&
           (kernel & RP_KERNEL_SINGLE || ratio_of(run, node));
}

/* If the model does not know it, it gains as in 16 bits, at the rate of tf32, and nothing if it is
   too small. */
static double tf32_factor(struct rp_sim_run *run, const struct half *h, uint32_t node)
{
    const struct rp_sim_ratio *found = ratio_of(run, node);
    const struct rp_sim_ratio *ratio = found && found->tf32 >= 0 ? found : NULL;
    double half = ratio ? leaning_ratio(run, ratio)
                        : gain_of(h, run, node) * rp_sim_lean_by(run, RP_SIM_TABLE_DOUBT);
    double factor = ratio && ratio->tf32 > 0 ? (double)ratio->tf32 * rp_sim_lean_by(run, TF32_DOUBT)
                                             : half / h->tf32;

    return factor < 1 ? factor : 1;
}

/* The names of some kernels do not tell whether they already use tf32. So tf32 is proposed only if
   kernels that certainly do not use it take more time than those. */
static enum rp_whatif_verdict tf32_applies(const struct rp_sim_run *run,
                                           const struct rp_whatif_args *args, struct rp_err *why)
{
    struct half h = half_of(run);
    int64_t told_ns = 0, untold_ns = 0, all_ns = 0;
    bool any = false;

    if (h.device && h.device->matrix[RP_NUMBER_TF32] <= 0)
        return RP_WHATIF_SAY(why, CANNOT, "%s has no matrix units for it", name_of(&h));
    if (rp_sim_needs_kernels(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    if (!args && (!h.device || !rp_sim_is_torch(run->parts[0])))
        return RP_WHATIF_SAY(
            why, UNSURE,
            "no matrix units for it are known of the device, or the program is not "
            "of PyTorch");
    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];

        if (rp_sim_in_steps(run, i))
            all_ns = rp_ns_sum(all_ns, run->overlay.dur_ns.at[i]);
        if (runs_in_fp32(run, i)) {
            bool told = rp_sim_kernel_traits(run, i) & RP_KERNEL_SINGLE;
            int64_t *sum = told ? &told_ns : &untold_ns;

            any = true;
            if (rp_sim_in_steps(run, i))
                *sum = rp_ns_sum(*sum, run->overlay.dur_ns.at[i]);
        }
    }
    if (args && !any)
        return RP_WHATIF_SAY(
            why, CANNOT,
            "no product of matrices is known to run in fp32 (%s tells); cuDNN uses "
            "tf32 for convolutions already",
            rp_sim_shapes_option(run->parts[0]));
    if (!args && told_ns <= untold_ns)
        return RP_WHATIF_SAY(why, UNSURE, "no product of matrices is known to run in fp32");
    return args ? RP_WHATIF_APPLIES
                : RP_WHATIF_SAY(why, APPLIES,
                                "products of matrices in fp32, without the matrix units, take "
                                "%.0f %% of the time of kernels",
                                100 * (double)told_ns / (double)all_ns);
}

static enum rp_code tf32_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                               struct rp_err *err)
{
    struct half h = half_of(run);
    bool half =
        rp_whatif_list_has(args->list, &rp_whatif_dtype); /* it converts the same products */
    bool captured = rp_whatif_list_has(args->list, &rp_whatif_cuda_graphs) ||
                    rp_whatif_list_has(args->list, &rp_whatif_compile);

    RP_TRY(rp_whatif_check(&rp_whatif_tf32, run, args, err));
    if (args->list->n == 1)
        run->way = RP_WAY_SHORTER;
    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];

        if (!runs_in_fp32(run, i))
            continue;
        /* attention that gets a mask has no products of its own */
        if (!half && !(captured && ratio_of(run, i) && ratio_of(run, i)->masked > 0))
            RP_TRY(rp_sim_scale_node(run, i, tf32_factor(run, &h, i), err));
    }
    return RP_OK;
}

static const struct rp_whatif_move tf32_move = {
    .family = "precision", .effort = 1, .apply = "torch.set_float32_matmul_precision(\"high\")"};

const struct rp_whatif rp_whatif_tf32 = {
    .name = "tf32",
    .form = "tf32",
    .summary = "products of matrices in fp32 run on the matrix units in tf32, which has 10 bits of "
               "mantissa",
    .assumes = "products gain what the cost model says, or else what they would in 16 bits, at "
               "the published rate of tf32; convolutions of cuDNN use it already, and attention "
               "stays as it is",
    .move = &tf32_move,
    .applies = tf32_applies,
    .apply = tf32_apply};
