/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how much of the device is used. FLOPs are those of the recorded shapes (cost/op_cost.h),
 * so work that is done twice, as with checkpoints of activations, counts twice. Tokens are counted
 * as lookups in the largest table of embeddings, samples at the convolution that reads the images.
 * A program with several large tables (a picture from a text with three encoders, categories of a
 * recommendation) does not process tokens, so none are reported.
 */
#include "explain/report/speed.h"

#include "base/decides.h"
#include "cost/inputs.h"
#include "facts/torch_names.h"
#include "result/print_units.h"
#include "sim/predict.h"

#include <math.h>
#include <string.h>

#define LIGHT_LEAST_NS 1000
#define LEAST_KNOWN    0.5
#define ALL_KNOWN      0.95
#define LIGHT_KNOWN    0.8
#define MOST_CHANNELS  4
#define LARGE_TABLE    0.25
#define SAME_STEP      0.1
#define LEAST_SHOWN    0.0005
RP_DECISION(LIGHT_LEAST_NS, "ns of a step", "work of less says nothing about a device",
            "explain/what_is_said_of_the_speed_has_edges");
RP_DECISION(LEAST_KNOWN, "of the time of products",
            "with less, most of what the device computes is missing in its utilization",
            "explain/what_is_said_of_the_speed_has_edges");
RP_DECISION(ALL_KNOWN, "of the time of products", "with less it is said to be a lower bound",
            "explain/what_is_said_of_the_speed_has_edges");
RP_DECISION(LIGHT_KNOWN, "of the device time",
            "with less, the speed of light would be that of another program",
            "explain/what_is_said_of_the_speed_has_edges");
RP_FACT(MOST_CHANNELS, "channels",
        "of images (with transparency) and of latents that become images");
RP_DECISION(LARGE_TABLE, "of the rows of the largest table",
            "positions and types of tokens have far fewer rows than a vocabulary",
            "explain/what_is_said_of_the_speed_has_edges");
RP_DECISION(SAME_STEP, "of the step", "a rate over all steps that differs by more is not its rate",
            "explain/what_is_said_of_the_speed_has_edges");
RP_LIMIT(LEAST_SHOWN, "of the peak", "what would be printed as 0.0 % is said to be below 0.1 %");

/* ------------------------------------------------------------------ a rank */

static bool is_matrix(const struct rp_op_cost *cost, uint8_t category)
{
    return rp_cost_is_known(cost)
               ? cost->on_matrix
               : category == RP_CATEGORY_MATMUL || category == RP_CATEGORY_CONVOLUTION ||
                     category == RP_CATEGORY_ATTENTION;
}

static void add_call(struct rp_speed_sums *out, const struct rp_op_cost *cost,
                     const struct rp_cost_call *call, const struct rp_cost_peaks *peaks)
{
    bool matrix = is_matrix(cost, call->category);

    if (call->on_link || call->category == RP_CATEGORY_COMMUNICATION)
        return;
    rp_ns_add(&out->device_ns, call->device_ns);
    if (matrix)
        rp_ns_add(&out->matrix_ns, call->device_ns);
    if (!rp_cost_is_known(cost) || call->is_part)
        return;
    double least = rp_cost_least_s(call, cost, peaks);
    if (isnan(least))
        return;
    rp_ns_add(&out->known_ns, call->device_ns);
    out->least_s += least;
    if (!matrix)
        return;
    rp_ns_add(&out->known_matrix_ns, call->device_ns);
    out->matrix_s += rp_cost_compute_s(cost, peaks);
    out->flops_of[cost->type] += cost->flops;
}

/* Adds the inputs of the model: the tokens of the largest table, the images of convolutions with
   few channels. */
static void add_inputs(struct rp_speed_sums *out, const struct rp_inputs *in)
{
    const struct rp_input_tensor *first = rp_inputs_tensor(in, 0),
                                 *second = rp_inputs_tensor(in, 1);

    if (!first || !second)
        return;
    if (rp_torch_means(in->name, RP_TORCH_EMBEDS) && first->ndims == 2 && second->ndims >= 2) {
        double n = second->n;
        bool same = first->dim[0] == out->table_rows && first->dim[1] == out->table_width;

        if (same) {
            out->tokens += n;
        } else if (first->dim[0] > out->table_rows) {
            out->other_rows = out->table_rows;
            out->table_rows = first->dim[0];
            out->table_width = first->dim[1];
            out->tokens = n;
        } else if (first->dim[0] > out->other_rows) {
            out->other_rows = first->dim[0];
        }
    } else if (first->ndims >= 4 && second->ndims == first->ndims &&
               first->dim[1] <= MOST_CHANNELS && second->dim[1] == first->dim[1]) {
        out->samples += first->dim[0];
    }
}

/* The lookup or convolution of the forward pass that a call belongs to, or RP_NONE. */
static rp_event entrance_of(const struct rp_op_costs *costs, const struct rp_cost_call *call)
{
    const struct rp_trace *t = costs->trace;
    rp_event op = call->op;

    if (op == RP_NONE || call->is_part)
        return RP_NONE;
    if (call->category == RP_CATEGORY_CONVOLUTION)
        return rp_torch_means(rp_trace_str(t, t->ev.name[op]), RP_TORCH_BACKWARDS) ? RP_NONE : op;
    if (call->category != RP_CATEGORY_EMBEDDING)
        return RP_NONE;
    for (; op != RP_NONE && t->ev.kind[op] == RP_KIND_CPU_OP; op = t->ev.parent[op])
        if (rp_torch_means(rp_trace_str(t, t->ev.name[op]), RP_TORCH_LOOKS_UP))
            return op;
    return RP_NONE;
}

enum rp_code rp_speed_add_calls(struct rp_speed_sums *out, const struct rp_work *work,
                                const struct rp_op_costs *costs, const struct rp_cost_calls *calls,
                                const struct rp_cost_peaks *peaks, int64_t from_ns,
                                struct rp_err *err)
{
    RP_SCOPED(rp_inputs_release) struct rp_inputs in = {0};

    memcpy(out->peak_of, peaks->matrix, sizeof out->peak_of);
    for (size_t i = 0; i < calls->calls.n; i++) {
        const struct rp_cost_call *call = &calls->calls.at[i];

        if (work->items.at[call->item].begin_ns < from_ns)
            continue;
        add_call(out, &costs->costs.at[call->cost], call, peaks);

        const struct rp_trace *t = costs->trace;
        rp_event op = entrance_of(costs, call);
        rp_str dims;
        if (op == RP_NONE || !rp_arg_key_text(&costs->dims, op, &dims))
            continue;
        RP_TRY(rp_inputs_parse(&in, rp_trace_str(t, t->ev.name[op]), rp_trace_str(t, dims), NULL,
                               NULL, NULL, err));
        add_inputs(out, &in);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ all ranks */

/* The tokens of a rank: those that its server counted, or those looked up. */
static double tokens_of(const struct rp_speed_rank *rank)
{
    const struct rp_speed_sums *s = rank->sums;

    if (rank->tokens > 0)
        return rank->tokens;
    return s->other_rows < LARGE_TABLE * s->table_rows ? s->tokens : 0;
}

static void add_ranks(const struct rp_speed_rank *ranks, size_t n, struct rp_speed_sums *all,
                      double *window_s, double *steps)
{
    for (size_t r = 0; r < n; r++) {
        const struct rp_speed_sums *s = ranks[r].sums;

        for (size_t f = 0; f < RP_NUMBERS; f++) {
            all->flops_of[f] += s->flops_of[f];
            all->peak_of[f] = fmax(all->peak_of[f], s->peak_of[f]);
        }
        all->matrix_s += s->matrix_s;
        all->least_s += s->least_s;
        rp_ns_add(&all->matrix_ns, s->matrix_ns);
        rp_ns_add(&all->known_matrix_ns, s->known_matrix_ns);
        rp_ns_add(&all->device_ns, s->device_ns);
        rp_ns_add(&all->known_ns, s->known_ns);
        all->tokens += tokens_of(&ranks[r]);
        all->samples += s->samples;
        *window_s += (double)(ranks[r].window_ns - s->earlier_ns) * 1e-9;
        *steps += ranks[r].steps;
    }
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

struct rp_report_speed rp_report_speed_of(const struct rp_speed_rank *ranks, size_t n)
{
    struct rp_report_speed out = {.mfu_share = NAN,
                                  .flops = NAN,
                                  .peak_flops_per_s = NAN,
                                  .known_share = NAN,
                                  .light_ns = RP_ABSENT_I64,
                                  .light_share = NAN,
                                  .light_known_share = NAN,
                                  .tokens = NAN,
                                  .tokens_per_s = NAN,
                                  .samples = NAN,
                                  .samples_per_s = NAN};
    struct rp_speed_sums all = {0};
    double window_s = 0, steps = 0, flops = 0;
    int f, format;

    add_ranks(ranks, n, &all, &window_s, &steps);
    if (!(window_s > 0) || !(steps > 0))
        return out;
    for (f = 0; f < RP_NUMBERS; f++)
        flops += all.flops_of[f];
    out.known_share = share_of(all.known_matrix_ns, all.matrix_ns);
    if (flops > 0 && out.known_share >= LEAST_KNOWN) {
        int i, best = 0; /* the format that most products have */

        for (i = 1; i < RP_NUMBERS; i++)
            best = all.flops_of[i] > all.flops_of[best] ? i : best;
        format = best;
        out.mfu_share = all.matrix_s / window_s;
        out.flops = flops / steps;
        out.format = rp_number_names[format];
        out.peak_flops_per_s = all.peak_of[format] > 0 ? all.peak_of[format] : NAN;
    }
    out.light_known_share = share_of(all.known_ns, all.device_ns);
    if (out.light_known_share >= LIGHT_KNOWN) {
        out.light_ns = (int64_t)(1e9 * all.least_s / steps);
        out.light_share = all.least_s / window_s;
    }
    if (all.tokens > 0) {
        out.tokens = all.tokens / steps;
        out.tokens_per_s = all.tokens / window_s;
    }
    if (all.samples > 0) {
        out.samples = all.samples / steps;
        out.samples_per_s = all.samples / window_s;
    }
    return out;
}

/* ------------------------------------------------------------------ on the screen */

/* The rate is that of all steps; if the median step differs, the text says so. */
static const char *rate_text(struct rp_arena *arena, const char *before, double count, double rate,
                             int64_t step_ns, const char *what)
{
    bool same = step_ns <= 0 || fabs(count / rate * 1e9 / (double)step_ns - 1) <= SAME_STEP;

    if (isnan(count))
        return before;
    return rp_arena_textf(arena, "%s%s%s %ss a step, %s a second%s", before, *before ? "; " : "",
                          rp_units_number(arena, (int64_t)(count + 0.5)), what,
                          rp_units_number(arena, (int64_t)(rate + 0.5)),
                          same ? "" : " over all steps");
}

/* "at least 9.3 % (about 18.5 % without the profiler)" */
static const char *mfu_text(struct rp_arena *arena, const struct rp_report_speed *s,
                            int64_t step_ns, int64_t unprofiled_ns)
{
    const char *least = s->known_share < ALL_KNOWN ? "at least " : "", *without = "";

    if (s->mfu_share < LEAST_SHOWN)
        return "below 0.1 %";
    if (unprofiled_ns > 0 && step_ns > 0 &&
        (double)unprofiled_ns <= (1 - RP_SIM_DISTORTED) * (double)step_ns)
        without = rp_arena_textf(arena, " (about %.1f %% without the profiler)",
                                 100 * s->mfu_share * (double)step_ns / (double)unprofiled_ns);
    return rp_arena_textf(arena, "%s%.1f %%%s", least, 100 * s->mfu_share, without);
}

const char *rp_report_speed_text(const struct rp_report_speed *s, int64_t step_ns,
                                 int64_t unprofiled_ns, bool several_ranks, struct rp_arena *arena)
{
    const char *text = "";

    if (!isnan(s->mfu_share))
        text = rp_arena_textf(arena, "MFU %s: %s a step, %s %s",
                              mfu_text(arena, s, step_ns, unprofiled_ns),
                              rp_units_text(arena, s->flops, RP_UNIT_FLOP), s->format,
                              rp_units_text(arena, s->peak_flops_per_s, RP_UNIT_FLOPS));
    if (s->light_ns != RP_ABSENT_I64 && s->light_ns >= LIGHT_LEAST_NS)
        text = rp_arena_textf(arena, "%s%sat the device's peaks its work takes %s (%.1f %%)", text,
                              *text ? "; " : "", rp_units_time(arena, s->light_ns),
                              100 * s->light_share);
    text = rate_text(arena, text, s->tokens, s->tokens_per_s, step_ns, "token");
    text = rate_text(arena, text, s->samples, s->samples_per_s, step_ns, "image");
    if (several_ranks && *text)
        text = rp_arena_textf(arena, "%s; of a rank, on average", text);
    return *text ? text : NULL;
}

#define SPEED(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_speed, member, type, unit, title, doc, flags)

static const struct rp_field speed_fields[] = {
    SPEED(mfu_share, F64, RATIO, NULL,
          "FLOPs of products, convolutions and attention, of what the peaks of their formats allow "
          "in the time; or null",
          RP_NULLABLE),
    SPEED(flops, F64, FLOP, NULL, "these FLOPs in a step of a rank, or null", RP_NULLABLE),
    SPEED(format, STR, NONE, NULL, "the number format of most of them, or null", 0),
    SPEED(peak_flops_per_s, F64, FLOPS, NULL, "the device's peak in that format, or null",
          RP_NULLABLE),
    SPEED(known_share, F64, RATIO, NULL,
          "share of the device time of products, convolutions and attention whose FLOPs are known",
          RP_NULLABLE),
    SPEED(light_ns, I64, NS, NULL,
          "speed of light: a step's known work at the peaks of its slower limit, one after the "
          "other, or null",
          RP_NULLABLE),
    SPEED(light_share, F64, RATIO, NULL, "light_ns / step, or null", RP_NULLABLE),
    SPEED(light_known_share, F64, RATIO, NULL, "share of the device time whose work is known",
          RP_NULLABLE),
    SPEED(tokens, F64, NONE, NULL, "tokens in a step of a rank, or null", RP_NULLABLE),
    SPEED(tokens_per_s, F64, NONE, NULL, "tokens a second of a rank, or null", RP_NULLABLE),
    SPEED(samples, F64, NONE, NULL, "images in a step of a rank, or null", RP_NULLABLE),
    SPEED(samples_per_s, F64, NONE, NULL, "images a second of a rank, or null", RP_NULLABLE),
    RP_FIELD_END};
const struct rp_type rp_report_speed_type = {"speed", sizeof(struct rp_report_speed), speed_fields,
                                             NULL};
