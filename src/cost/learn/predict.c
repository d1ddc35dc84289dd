/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts from the best information that a model has: a shape that was measured; a fit of the
 * operator on the device; for a format or device that was not measured, a fit of the operator and
 * how its family differs there; otherwise the family alone, or the peaks of the device.
 */
#include "cost/learn/learned.h"

#include "base/decides.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How large the errors of such predictions may be, as factors; found by leaving formats, devices
   and operators out (docs/cli/model.md, Errors). */
#define DOUBT_MEASURED 1.03
RP_DECISION(DOUBT_MEASURED, "times",
            "a shape that was measured: times repeat within it (bench/measure_ops.py)",
            "cost/doubts_are_as_wide_as_the_errors");
#define DOUBT_FORMAT 1.35
RP_DECISION(
    DOUBT_FORMAT, "times",
    "in another format that is as wide: errors of formats that were left out, docs/cli/model.md",
    "cost/doubts_are_as_wide_as_the_errors");
#define DOUBT_WIDTH 1.8
RP_DECISION(
    DOUBT_WIDTH, "times",
    "in a wider or narrower format: errors of formats that were left out, docs/cli/model.md",
    "cost/doubts_are_as_wide_as_the_errors");
#define DOUBT_DEVICE 1.5
RP_DECISION(
    DOUBT_DEVICE, "times",
    "on another device: errors of devices that were left out (model test of several devices)",
    "cost/doubts_are_as_wide_as_the_errors");
#define DOUBT_FAMILY 1.7
RP_DECISION(DOUBT_FAMILY, "times",
            "by the operators of a kind: errors of operators that were left out",
            "cost/doubts_are_as_wide_as_the_errors");
#define DOUBT_PEAKS 3.0
RP_DECISION(
    DOUBT_PEAKS, "times",
    "by the peaks of the device alone: kernels of examples/ops reach a third of what is assumed, or all",
    "cost/doubts_are_as_wide_as_the_errors");

/* The share of the peaks that libraries reach, and the least time of a kernel, for operators that
   were not measured. */
#define REACH_COMPUTE 0.6
RP_DECISION(REACH_COMPUTE, "of the peak",
            "in examples/ops large products reach 0.66 to 0.76 in the median, attention 0.45",
            "cost/peaks_are_not_reached");
#define REACH_MEMORY 0.75
RP_DECISION(REACH_MEMORY, "of the bandwidth",
            "in examples/ops element-wise operators on 200 MB and more reach 0.56 to 0.91",
            "cost/peaks_are_not_reached");
#define OVERHEAD_S 2e-6
RP_DECISION(OVERHEAD_S, "s",
            "in examples/ops the shortest kernels take 1.5 µs, a twentieth less than 2.3",
            "cost/peaks_are_not_reached");

/* The share of the peak that products reach on vector units, and on matrix units. */
#define REACH_SLOW 0.75
RP_DECISION(REACH_SLOW, "of the peak",
            "of vector units: errors of formats that were left out, docs/cli/model.md",
            "cost/other_formats_reach_their_part_of_the_peak");
#define REACH_FAST 0.6
RP_DECISION(REACH_FAST, "of the peak",
            "of matrix units: errors of formats that were left out, docs/cli/model.md",
            "cost/other_formats_reach_their_part_of_the_peak");

/* Above the range of its rows, a fit grows like its base. */
double rp_fit_at(const struct rp_fit *fit, const struct rp_features *x, uint8_t type)
{
    const struct rp_curve *curve = rp_fit_curve(fit, x, type);
    double base = rp_curve_base(curve, x), beyond = base > curve->high ? base - curve->high : 0;

    return rp_curve_at(curve, x, base) + fmax(1 - curve->slope, 0) * beyond;
}

/* Corrects a fit's value by measured rows: it stays between the smaller and the larger shapes, or
   differs as the most similar ones do. */
static double fit_near_rows(const struct rp_learned *m, const struct rp_fit *fit,
                            const struct rp_sample *s, const struct rp_features *x)
{
    double low = -INFINITY, high = INFINITY, y = rp_fit_at(fit, x, s->type);

    if (s->kind == RP_OP_CONV)
        return y + rp_neighbours_shift(m, fit, x);
    for (uint32_t i = fit->first;
         rp_op_is_monotone(s->kind) && i < fit->end && i < m->samples.rows.n; i++) {
        if (m->samples.rows.at[i].type != s->type)
            continue;
        double measured = rp_learned_smooth(m, i);
        if (measured > low && rp_features_below(rp_learned_features(m, i), x))
            low = measured;
        if (measured < high && rp_features_below(x, rp_learned_features(m, i)))
            high = measured;
    }
    return fmin(fmax(y, low), high);
}

static const struct rp_sample *measured_row(const struct rp_learned *m, const struct rp_fit *fit,
                                            const struct rp_sample *s, size_t *at)
{
    for (uint32_t i = fit->first; i < fit->end && i < m->samples.rows.n; i++)
        if (m->samples.rows.at[i].type == s->type &&
            rp_sample_same_shape(&m->samples.rows.at[i], s) &&
            !strcmp(m->samples.rows.at[i].op, s->op)) {
            *at = i;
            return &m->samples.rows.at[i];
        }
    return NULL;
}

/* Finds the fit of an operator, or of a family ("~…"), on a device; "*" stands for several. */
static const struct rp_fit *find_fit(const struct rp_learned *m, const struct rp_sample *s,
                                     const char *device)
{
    for (size_t i = 0; i < m->fits.n; i++) {
        const struct rp_fit *f = &m->fits.at[i];

        if (f->op[0] != '~' && (!device || !strcmp(f->device, device)) &&
            (s->kind == RP_OP_FUSED ? f->kind == RP_OP_FUSED
                                    : f->kind == s->kind && !strcmp(f->op, s->op)))
            return f;
    }
    return NULL;
}

static const struct rp_fit *find_family(const struct rp_learned *m, uint8_t kind)
{
    uint8_t family = kind == RP_OP_BMM || kind == RP_OP_CONV ? RP_OP_MATMUL
                     : kind == RP_OP_FUSED                   ? RP_OP_ELEMENTS
                                                             : kind;

    for (size_t i = 0; i < m->fits.n; i++)
        if (m->fits.at[i].op[0] == '~' && m->fits.at[i].kind == family)
            return &m->fits.at[i];
    return NULL;
}

static double family_at(const struct rp_fit *family, const struct rp_sample *s)
{
    struct rp_features x;

    rp_features_of(s, (enum rp_op_kind)family->kind, &x);
    return rp_fit_at(family, &x, s->type);
}

/* Finds the most similar format of which a fit has rows, of the same width if possible. */
static uint8_t similar_format(const struct rp_fit *fit, uint8_t type)
{
    static const uint8_t order[] = {RP_NUMBER_BF16, RP_NUMBER_FP16, RP_NUMBER_FP32,
                                    RP_NUMBER_TF32, RP_NUMBER_FP64, RP_NUMBER_FP8};
    double wide = rp_number_bytes((enum rp_number)type);
    uint8_t found = RP_NUMBER_NONE;

    for (size_t i = 0; i < sizeof order; i++)
        if (fit->types & 1u << order[i] &&
            (!found || rp_number_bytes((enum rp_number)order[i]) == wide))
            found = order[i];
    return found;
}

/* Predicts an operator in a format of which its fit has no rows. A format as wide and as fast takes
   as long. Otherwise products take what the base tells for the other peak, of which simpler units
   reach more; other operators take as long as for as many bytes. */
static double from_format(const struct rp_learned *m, const struct rp_fit *fit,
                          const struct rp_sample *s, uint8_t from)
{
    struct rp_sample known = *s;
    struct rp_features x, as_known;

    known.type = from;
    rp_features_of(s, (enum rp_op_kind)fit->kind, &x);
    rp_features_of(&known, (enum rp_op_kind)fit->kind, &as_known);
    if (rp_number_bytes((enum rp_number)known.type) == rp_number_bytes((enum rp_number)s->type) &&
        x.peak == as_known.peak)
        return fit_near_rows(m, fit, &known, &as_known);
    if (x.peak == as_known.peak || fit->kind < RP_OP_MATMUL || fit->kind > RP_OP_ATTENTION)
        return rp_fit_at(fit, &x, known.type);
    x.aligned = x.aligned || x.peak < as_known.peak;
    const struct rp_curve *c = rp_fit_curve(fit, &x, known.type);
    double reach =
        1 / (x.peak < as_known.peak ? REACH_SLOW : REACH_FAST) / (c->base[1] + c->base[3]);
    reach = x.peak < as_known.peak ? fmin(reach, 1) : fmax(reach, 1);
    return log(c->base[0] + reach * (c->base[1] * x.compute_s + c->base[3] * x.extra_s) +
               c->base[2] * x.memory_s);
}

/* Groups operators that differ alike between formats. */
static uint8_t family_of(uint8_t kind)
{
    return kind == RP_OP_BMM ? RP_OP_MATMUL : kind == RP_OP_FUSED ? RP_OP_ELEMENTS : kind;
}

/* Between the times of short and of long kernels, the logarithm is interpolated. */
#define QUICK_S 5e-6
RP_DECISION(QUICK_S, "s",
            "below it overhead is most of a kernel, and formats differ as short kernels do",
            "cost/formats_differ_by_length");
#define SLOW_S 50e-6
RP_DECISION(SLOW_S, "s",
            "above it overhead is a few percent, and formats differ as long kernels do",
            "cost/formats_differ_by_length");
#define ENOUGH_GAPS 8
RP_DECISION(ENOUGH_GAPS, "rows",
            "whose median says how two formats differ; of fewer only the peaks do",
            "cost/formats_differ_by_eight_rows");
/* Beyond the measured sizes the interval is wider: its logarithm grows by a fourth of that of the
 * distance. */
#define WIDENS 4
RP_DECISION(WIDENS, "th root",
            "of how far: at 16 times the largest time an interval is twice as wide",
            "cost/far_away_intervals_are_wider");
#define FAR 4
RP_DECISION(
    FAR, "times",
    "beyond the measured sizes a prediction is assumed; and as many times an interval gets wider at most",
    "cost/far_away_intervals_are_wider");

/* Returns the prediction of a fit for an operator in a format of which it has rows. */
static double fit_in_format(const struct rp_learned *m, const struct rp_fit *fit,
                            const struct rp_sample *s, uint8_t type)
{
    struct rp_sample as = *s;
    struct rp_features x;

    as.type = type;
    as.bytes *= rp_number_bytes((enum rp_number)type) / rp_number_bytes((enum rp_number)s->type);
    rp_features_of(&as, (enum rp_op_kind)fit->kind, &x);
    return fit_near_rows(m, fit, &as, &x);
}

/* Corrects a convolution in a format that was measured only in the other direction, forwards or
   backwards, on the same device: the same shape differs as much. NAN if there was none. */
static double as_kin_differs(const struct rp_learned *m, const struct rp_fit *fit,
                             const struct rp_sample *s, uint8_t from)
{
    uint32_t both = 1u << from | 1u << s->type;

    for (size_t i = 0; i < m->fits.n; i++) {
        const struct rp_fit *kin = &m->fits.at[i];

        if (kin != fit && kin->kind == fit->kind && (kin->types & both) == both &&
            !strcmp(kin->device, fit->device))
            return fit_in_format(m, fit, s, from) + fit_in_format(m, kin, s, s->type) -
                   fit_in_format(m, kin, s, from);
    }
    return NAN;
}

static double in_other_format(const struct rp_learned *m, const struct rp_fit *fit,
                              const struct rp_sample *s)
{
    uint8_t from = similar_format(fit, s->type);
    double y = fit->kind == RP_OP_CONV ? as_kin_differs(m, fit, s, from) : NAN, part;

    if (!isnan(y))
        return y;
    y = from_format(m, fit, s, from);
    part = (y - log(QUICK_S)) / (log(SLOW_S) - log(QUICK_S));
    part = fmin(fmax(part, 0), 1);
    for (size_t i = 0; i < m->transfers.n; i++) {
        const struct rp_format_gap *t = &m->transfers.at[i];

        if (t->kind == family_of(s->kind) && t->from == from && t->to == s->type)
            return y + t->quick + part * (t->slow - t->quick);
    }
    return y;
}

RP_ORDER(compare_doubles, double, RP_COMPARE(*a, *b))

static double median_of(double *values, size_t n)
{
    if (!n)
        return NAN;
    qsort(values, n, sizeof *values, compare_doubles);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Compares operators of a kind that were measured in two formats. */
static enum rp_code compare_formats(struct rp_learned *m, uint8_t kind, uint8_t from, uint8_t to,
                                    double *errors, struct rp_err *err)
{
    size_t n = m->samples.rows.n, nquick = 0, nslow = 0, i;

    for (i = 0; i < m->fits.n; i++) {
        const struct rp_fit *fit = &m->fits.at[i];

        if (fit->op[0] == '~' || family_of(fit->kind) != kind || fit->kind == RP_OP_FUSED ||
            !(fit->types & 1u << from) || !(fit->types & 1u << to))
            continue;
        for (uint32_t r = fit->first; r < fit->end && r < n; r++) {
            const struct rp_sample *s = &m->samples.rows.at[r];
            double y = log(s->ns / 1e9), guess;

            if (s->type != to)
                continue;
            guess = from_format(m, fit, s, from);
            if (guess < log(QUICK_S * 2))
                errors[nquick++] = y - guess;
            else
                errors[n + nslow++] = y - guess;
        }
    }
    double quick = median_of(errors, nquick);
    double slow = median_of(errors + n, nslow);
    if (nquick + nslow < ENOUGH_GAPS)
        return RP_OK;
    return rp_vec_push(&m->transfers,
                       ((struct rp_format_gap){kind, from, to, isnan(quick) ? slow : quick,
                                               isnan(slow) ? quick : slow}),
                       err);
}

enum rp_code rp_learned_compare_formats(struct rp_learned *m, struct rp_err *err)
{
    static const uint8_t kinds[] = {RP_OP_ELEMENTS, RP_OP_MATMUL};
    double *errors = calloc(2 * m->samples.rows.n + 2, sizeof *errors);
    enum rp_code code = errors ? RP_OK : rp_err_nomem(err, "learning a cost model");
    uint32_t types = 0;

    for (size_t i = 0; i < m->fits.n; i++)
        types |= m->fits.at[i].types;
    for (size_t i = 0; i < sizeof kinds; i++)
        for (unsigned from = 1; from < RP_NUMBERS; from++)
            for (unsigned to = 1; code == RP_OK && to < RP_NUMBERS; to++)
                if (from != to && types & 1u << from && types & 1u << to)
                    code = compare_formats(m, kinds[i], (uint8_t)from, (uint8_t)to, errors, err);
    free(errors);
    return code;
}

static double peaks_at(const struct rp_features *x)
{
    return log(OVERHEAD_S + fmax(x->compute_s / REACH_COMPUTE, x->memory_s / REACH_MEMORY));
}

static void set_time(struct rp_learned_time *out, const struct rp_features *x, double y, double low,
                     double high, enum rp_provenance provenance, const char *why)
{
    double least = x->least_s;

    out->ns = fmax(exp(y), least) * 1e9;
    out->low_ns = fmax(exp(y + low), least) * 1e9;
    out->high_ns = fmax(exp(y + high), out->ns / 1e9) * 1e9;
    out->provenance = (uint8_t)provenance;
    out->why = why;
}

static double outside(const struct rp_fit *fit, const struct rp_features *x, uint8_t type)
{
    const struct rp_curve *curve = rp_fit_curve(fit, x, type);
    double base = rp_curve_base(curve, x);

    return base > curve->high  ? fmin((base - curve->high) / WIDENS, log(FAR))
           : base < curve->low ? fmin((curve->low - base) / WIDENS, log(FAR))
                               : 0;
}

static void predict_fitted(const struct rp_learned *m, const struct rp_fit *fit,
                           const struct rp_sample *s, struct rp_learned_time *out)
{
    struct rp_features x;
    double y, wider;
    size_t at;
    const struct rp_sample *row = measured_row(m, fit, s, &at);

    rp_features_of(s, (enum rp_op_kind)fit->kind, &x);
    if (row) {
        y = s->kind == RP_OP_FUSED ? log(row->ns / 1e9) : rp_learned_smooth(m, at);
        set_time(out, &x, y, -log(DOUBT_MEASURED), log(DOUBT_MEASURED), RP_MEASURED,
                 "this shape was measured");
        out->low_ns = fmin(out->low_ns, row->ns);
        out->high_ns = fmax(out->high_ns, row->ns);
        return;
    }
    y = fit_near_rows(m, fit, s, &x);
    wider = outside(fit, &x, s->type);
    set_time(out, &x, y, fit->error_low - wider, fit->error_high + wider,
             wider > log(FAR) / WIDENS ? RP_ASSUMED : RP_FITTED,
             wider > log(FAR) / WIDENS ? "far outside the sizes that were measured"
                                       : "fitted to other shapes of the operator");
}

bool rp_learned_predict(const struct rp_learned *m, const struct rp_sample *s,
                        struct rp_learned_time *out)
{
    const struct rp_fit *fit = find_fit(m, s, s->device), *family;
    struct rp_features x;
    bool known_device;

    rp_features_of(s, (enum rp_op_kind)s->kind, &x);
    if (!(s->flops >= 0 && s->bytes >= 0))
        return false;
    if (fit && fit->types & 1u << s->type) {
        predict_fitted(m, fit, s, out);
        return true;
    }
    if (fit) {
        double doubt = rp_number_bytes((enum rp_number)similar_format(fit, s->type)) ==
                               rp_number_bytes((enum rp_number)s->type)
                           ? DOUBT_FORMAT
                           : DOUBT_WIDTH;

        set_time(out, &x, in_other_format(m, fit, s), -log(doubt), log(doubt), RP_ASSUMED,
                 "from other number formats of the operator");
        return true;
    }
    rp_sample_device(s, &known_device);
    if (!known_device)
        return false;
    fit = find_fit(m, s, "*");
    if (!fit)
        fit = find_fit(m, s, NULL);
    if (fit) {
        set_time(out, &x,
                 fit->types & 1u << s->type ? rp_fit_at(fit, &x, s->type)
                                            : in_other_format(m, fit, s),
                 -log(DOUBT_DEVICE), log(DOUBT_DEVICE), RP_ASSUMED,
                 "from other devices, by the peaks of this one");
        return true;
    }
    family = find_family(m, s->kind);
    if (family)
        set_time(out, &x, family_at(family, s), -log(DOUBT_FAMILY), log(DOUBT_FAMILY), RP_ASSUMED,
                 "from operators of the same kind");
    else
        set_time(out, &x, peaks_at(&x), -log(DOUBT_PEAKS), log(DOUBT_PEAKS), RP_ASSUMED,
                 "from the peaks of the device");
    return true;
}

static bool find_ratio(const struct rp_learned *m, const struct rp_sample *from,
                       const struct rp_sample *to, struct rp_learned_ratio *out)
{
    struct rp_learned_time a, b;

    if (!rp_learned_predict(m, from, &a) || !rp_learned_predict(m, to, &b) || !(a.ns > 0))
        return false;
    out->ratio = b.ns / a.ns;
    /* the errors of both are partly the same: a shape that is slow for its size is so in both
       formats */
    double doubt =
        sqrt((pow(log(a.high_ns / a.low_ns), 2) + pow(log(b.high_ns / b.low_ns), 2)) / 2) / 2;
    out->low = out->ratio * exp(-doubt);
    out->high = out->ratio * exp(doubt);
    out->provenance = a.provenance > b.provenance ? a.provenance : b.provenance;
    return true;
}

#define REMEMBERED 256
RP_LIMIT(REMEMBERED, "samples",
         "a step repeats only a few; for further ones the model is asked again");

static bool is_same_sample(const struct rp_sample *a, const struct rp_sample *b)
{
    return a->type == b->type && a->kind == b->kind && rp_sample_same_shape(a, b) &&
           a->flops == b->flops && a->bytes == b->bytes && !strcmp(a->op, b->op) &&
           !strcmp(a->device, b->device);
}

/* If memory is short, the model is just asked again. */
static void remember(struct rp_learned_rows *r, struct rp_known_ratio *answer)
{
    const char **const texts[] = {&answer->from.op, &answer->from.device, &answer->to.op,
                                  &answer->to.device};
    bool kept = r->ratios.n < REMEMBERED;

    for (size_t i = 0; kept && i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = rp_arena_strdup(&r->arena, *texts[i]);
        kept = *texts[i] != NULL;
    }
    if (kept)
        (void)rp_vec_push(&r->ratios, *answer, NULL);
}

bool rp_learned_ratio_of(const struct rp_learned *m, const struct rp_sample *from,
                         const struct rp_sample *to, struct rp_learned_ratio *out)
{
    struct rp_known_ratio answer = {.from = *from, .to = *to};
    bool found = false;

    pthread_mutex_lock(&m->rows->lock);
    for (size_t i = 0; !found && i < m->rows->ratios.n; i++) {
        const struct rp_known_ratio *known = &m->rows->ratios.at[i];

        found = is_same_sample(&known->from, from) && is_same_sample(&known->to, to);
        if (found)
            answer = *known;
    }
    pthread_mutex_unlock(&m->rows->lock);
    if (!found) {
        answer.known = find_ratio(m, from, to, &answer.ratio);
        pthread_mutex_lock(&m->rows->lock);
        remember(m->rows, &answer);
        pthread_mutex_unlock(&m->rows->lock);
    }
    *out = answer.ratio;
    return answer.known;
}
