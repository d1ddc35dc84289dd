/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning: which fits a model has, and how large their errors are for shapes that were left out.
 * An operator on a device has a fit of its own; with several devices there is also one for all of
 * them, and families of operators have one for operators that were not measured.
 */
#include "cost/learn/learned.h"

#include "base/decides.h"
#include "base/each.h"
#include "base/hash.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ROWS 4
RP_DECISION(LEAST_ROWS, "rows", "a base has four terms: fewer rows do not determine it",
            "cost/an_operator_needs_four_rows");
#define LEAST_RESIDUAL 0.02
RP_DECISION(LEAST_RESIDUAL, "of a logarithm",
            "an interval is not narrower: times repeat within it (bench/measure_ops.py)",
            "cost/intervals_have_a_least_width");
#define UNTESTED 1.5
RP_DECISION(
    UNTESTED, "times",
    "the interval of a fit of which nothing was left out; as wide as on other devices, whose errors are in docs/cli/model.md",
    "cost/intervals_have_a_least_width");
#define TAIL 0.1
RP_DECISION(TAIL, "of the rows",
            "below and above the interval, which holds in four of five cases (learned.h)",
            "cost/intervals_are_wider_for_few_rows");
#define WIDER_OF_FEW 3
RP_DECISION(
    WIDER_OF_FEW, "of n + 1 rows",
    "how much wider the interval of n rows is: 'in interval' of docs/cli/model.md stays near 80 % with it",
    "cost/intervals_are_wider_for_few_rows");

const char *const rp_provenance_names[3] = {"measured", "fitted", "assumed"};

uint32_t rp_learn_fold(const struct rp_sample *s)
{
    uint64_t hash = rp_hash_bytes(s->op, strlen(s->op));

    for (int i = 0; i < s->ndims; i++)
        hash = rp_hash_join(hash, (uint64_t)s->dim[i]);
    return (uint32_t)(rp_hash_u64(hash) % RP_LEARN_FOLDS);
}

static void fit_release(struct rp_fit *fit)
{
    for (size_t i = 0; i < fit->curves.n; i++)
        rp_vec_release(&fit->curves.at[i].pieces);
    rp_vec_release(&fit->curves);
}

void rp_learned_release(struct rp_learned *model)
{
    for (size_t i = 0; i < model->fits.n; i++)
        fit_release(&model->fits.at[i]);
    RP_EACH(rp_vec_release, &model->fits, &model->transfers, &model->smooth, &model->log_s,
            &model->kin, &model->features);
    if (model->rows) {
        pthread_mutex_destroy(&model->rows->lock);
        rp_vec_release(&model->rows->ratios);
        rp_arena_release(&model->rows->arena);
    }
    free(model->rows);
    model->rows = NULL;
    rp_samples_release(&model->samples);
    rp_arena_release(&model->arena);
}

/* ------------------------------------------------------------------ measured shapes */

static bool is_kin(const struct rp_sample *a, const struct rp_sample *b)
{
    return a->type == b->type && !strcmp(a->op, b->op) && !strcmp(a->device, b->device);
}

/* Replaces each time by the middle between the slowest smaller and the fastest larger row, itself
   included, so that no row contradicts the order. O(rows^2) per operator: only operators that
   somebody asks about are smoothed. */
static void smooth_rows(const struct rp_learned *m, size_t first, size_t end)
{
    const double *y = m->log_s.at;

    for (size_t i = first; i < end; i++) {
        double low = y[i], high = low;

        for (size_t k = first; k < end; k++) {
            if (y[k] > low && rp_features_below(&m->features.at[k], &m->features.at[i]))
                low = y[k];
            if (y[k] < high && rp_features_below(&m->features.at[i], &m->features.at[k]))
                high = y[k];
        }
        m->smooth.at[i] = (low + high) / 2;
    }
}

static void look_at_rows(const struct rp_learned *m, size_t first, size_t end)
{
    const struct rp_sample *rows = m->samples.rows.at;

    for (size_t i = first; i < end; i++) {
        rp_features_of(&rows[i], (enum rp_op_kind)rows[i].kind, &m->features.at[i]);
        m->log_s.at[i] = log(rows[i].ns / 1e9);
    }
}

/* Finds out about all rows of the device, operator and format of one. */
static void reach_state(const struct rp_learned *m, size_t row, unsigned char wanted)
{
    uint32_t first = m->kin.at[row];
    atomic_uchar *state = &m->rows->state[first];
    size_t end = row + 1;

    if (atomic_load_explicit(state, memory_order_acquire) >= wanted)
        return;
    while (end < m->kin.n && m->kin.at[end] == first)
        end++;
    pthread_mutex_lock(&m->rows->lock);
    unsigned char now = atomic_load_explicit(state, memory_order_relaxed);
    if (now < RP_ROWS_KNOWN)
        look_at_rows(m, first, end);
    if (wanted == RP_ROWS_SMOOTH && now < RP_ROWS_SMOOTH)
        smooth_rows(m, first, end);
    if (now < wanted)
        atomic_store_explicit(state, wanted, memory_order_release);
    pthread_mutex_unlock(&m->rows->lock);
}

const struct rp_features *rp_learned_features(const struct rp_learned *m, size_t row)
{
    reach_state(m, row, RP_ROWS_KNOWN);
    return &m->features.at[row];
}

double rp_learned_smooth(const struct rp_learned *m, size_t row)
{
    bool monotone = rp_op_is_monotone(m->samples.rows.at[row].kind);

    reach_state(m, row, monotone ? RP_ROWS_SMOOTH : RP_ROWS_KNOWN);
    return monotone ? m->smooth.at[row] : m->log_s.at[row];
}

enum rp_code rp_learned_prepare(struct rp_learned *m, struct rp_err *err)
{
    const struct rp_sample *rows = m->samples.rows.at;
    size_t n = m->samples.rows.n;

    RP_TRY(rp_vec_reserve(&m->features, n, err));
    RP_TRY(rp_vec_reserve(&m->smooth, n, err));
    RP_TRY(rp_vec_reserve(&m->log_s, n, err));
    RP_TRY(rp_vec_reserve(&m->kin, n, err));
    m->rows = calloc(1, sizeof *m->rows + n * sizeof m->rows->state[0]);
    RP_TRY(rp_err_need(m->rows, err, "learning a cost model"));
    pthread_mutex_init(&m->rows->lock, NULL);
    rp_arena_init(&m->rows->arena);
    m->features.n = m->smooth.n = m->log_s.n = m->kin.n = n;
    for (size_t i = 0; i < n; i++)
        m->kin.at[i] = i && is_kin(&rows[i - 1], &rows[i]) ? m->kin.at[i - 1] : (uint32_t)i;
    return RP_OK;
}

/* ------------------------------------------------------------------ fits */

/* The rows for which a fit is made. */
struct selection {
    const char *op, *device; /* NULL: any */
    uint8_t kind;            /* the kind as which they are treated */
    bool family;
};

static bool is_in_family(uint8_t kind, uint8_t family)
{
    return family == RP_OP_MATMUL ? kind >= RP_OP_MATMUL && kind <= RP_OP_CONV : kind == family;
}

static bool is_selected(const struct selection *sel, const struct rp_sample *s)
{
    return (sel->family                ? is_in_family(s->kind, sel->kind)
            : sel->kind == RP_OP_FUSED ? s->kind == RP_OP_FUSED
                                       : !strcmp(s->op, sel->op)) &&
           (!sel->device || !strcmp(s->device, sel->device));
}

struct fit_memory {
    const struct rp_features **x;
    struct rp_features *own; /* for a family: features as if of another kind */
    uint8_t *type;
    double *y;
};

static enum rp_code fit_memory_init(struct fit_memory *f, size_t n, bool family, struct rp_err *err)
{
    f->x = calloc(n + 1, sizeof *f->x);
    f->type = calloc(n + 1, 1);
    f->y = calloc(n + 1, sizeof *f->y);
    f->own = family ? calloc(n + 1, sizeof *f->own) : NULL;
    return f->x && f->type && f->y && (!family || f->own)
               ? RP_OK
               : rp_err_nomem(err, "learning a cost model");
}

/* Fits the selected rows, unless there are too few. */
static enum rp_code add_fit(struct rp_learned *m, const struct selection *sel, struct rp_err *err)
{
    struct rp_fit fit = {.op = sel->op,
                         .device = sel->device ? sel->device : "*",
                         .kind = sel->kind,
                         .error_low = -log(UNTESTED),
                         .error_high = log(UNTESTED),
                         .median = NAN,
                         .p90 = NAN};
    struct rp_fit_rows rows = {0};
    struct fit_memory f = {0};
    enum rp_code code = fit_memory_init(&f, m->samples.rows.n, sel->family, err);

    for (size_t i = 0; code == RP_OK && i < m->samples.rows.n; i++)
        if (is_selected(sel, &m->samples.rows.at[i])) {
            const struct rp_sample *s = &m->samples.rows.at[i];

            if (sel->family)
                rp_features_of(s, (enum rp_op_kind)sel->kind, &f.own[rows.n]);
            f.x[rows.n] = sel->family ? &f.own[rows.n] : rp_learned_features(m, i);
            f.type[rows.n] = s->type;
            f.y[rows.n++] = log(s->ns / 1e9);
            if (!sel->family && sel->device) {
                fit.first = rows.n == 1 ? (uint32_t)i : fit.first;
                fit.end = (uint32_t)i + 1;
            }
        }
    rows.x = f.x;
    rows.type = f.type;
    rows.y = f.y;
    fit.count = (uint32_t)rows.n;
    if (code == RP_OK && rows.n >= LEAST_ROWS) {
        for (size_t i = 0; i < rows.n; i++)
            fit.types |= 1u << rows.type[i];
        code = rp_fit_curves_to(&fit, &rows, err);
        if (code == RP_OK)
            code = rp_vec_push(&m->fits, fit, err);
        if (code != RP_OK)
            fit_release(&fit);
    }
    RP_EACH(free, (void *)f.x, f.type, f.y, f.own);
    return code;
}

static bool seen_before(const struct rp_learned *m, size_t i, bool by_device)
{
    const struct rp_sample *rows = m->samples.rows.at, *s = &rows[i];

    for (size_t k = 0; k < m->fits.n; k++) {
        const struct rp_fit *f = &m->fits.at[k];
        bool same = s->kind == RP_OP_FUSED ? f->kind == RP_OP_FUSED : !strcmp(f->op, s->op);

        if (same && !strcmp(f->device, by_device ? s->device : "*"))
            return true;
    }
    return false;
}

static const char *fit_name(const struct rp_sample *s)
{
    return s->kind == RP_OP_FUSED ? "fused" : s->op;
}

static enum rp_code add_fits(struct rp_learned *m, struct rp_err *err)
{
    static const struct {
        uint8_t kind;
        const char *name;
    } families[] = {
        {RP_OP_MATMUL, "~products"}, {RP_OP_ROWS, "~rows"}, {RP_OP_ELEMENTS, "~elements"}};
    const struct rp_sample *rows = m->samples.rows.at;
    size_t i, n = m->samples.rows.n;
    bool several = false;

    for (i = 0; i < n; i++) {
        several = several || strcmp(rows[0].device, rows[i].device) != 0;
        if ((i && is_kin(&rows[i - 1], &rows[i])) || seen_before(m, i, true))
            continue;
        RP_TRY(add_fit(
            m, &(struct selection){fit_name(&rows[i]), rows[i].device, rows[i].kind, false}, err));
    }
    for (i = 0; several && i < n; i++)
        if (!(i && is_kin(&rows[i - 1], &rows[i])) && !seen_before(m, i, false))
            RP_TRY(add_fit(m, &(struct selection){fit_name(&rows[i]), NULL, rows[i].kind, false},
                           err));
    for (i = 0; i < sizeof families / sizeof families[0]; i++)
        RP_TRY(
            add_fit(m, &(struct selection){families[i].name, NULL, families[i].kind, true}, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ intervals */

RP_ORDER(compare_doubles, double, RP_COMPARE(*a, *b))

double rp_quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;

    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* The quantiles of few rows are not known well, so their intervals get wider. */
void rp_fit_interval(struct rp_fit *fit, double *errors, size_t n)
{
    double wider = 1 + WIDER_OF_FEW / (double)(n + 1);

    if (n < LEAST_ROWS)
        return;
    qsort(errors, n, sizeof *errors, compare_doubles);
    fit->error_low = fmin(rp_quantile(errors, n, TAIL) * wider, -LEAST_RESIDUAL);
    fit->error_high = fmax(rp_quantile(errors, n, 1 - TAIL) * wider, LEAST_RESIDUAL);
    for (size_t i = 0; i < n; i++)
        errors[i] = fabs(exp(-errors[i]) - 1);
    qsort(errors, n, sizeof *errors, compare_doubles);
    fit->median = rp_quantile(errors, n, 0.5);
    fit->p90 = rp_quantile(errors, n, 1 - TAIL);
}

/* Finds for each row the logarithm of measured / predicted with its shape left out. */
static enum rp_code find_errors(const struct rp_learned *m, double *errors, struct rp_err *err)
{
    size_t n = m->samples.rows.n, i;
    uint8_t *left_out = calloc(n + 1, 1);
    enum rp_code code = left_out ? RP_OK : rp_err_nomem(err, "learning a cost model");

    for (uint32_t fold = 0; code == RP_OK && fold < RP_LEARN_FOLDS; fold++) {
        struct rp_learned other;

        for (i = 0; i < n; i++)
            left_out[i] = rp_learn_fold(&m->samples.rows.at[i]) == fold;
        code = rp_learn(&other, &m->samples, left_out, false, err);
        for (i = 0; code == RP_OK && i < n; i++)
            if (left_out[i]) {
                struct rp_learned_time t;

                errors[i] = rp_learned_predict(&other, &m->samples.rows.at[i], &t)
                                ? log(m->samples.rows.at[i].ns / t.ns)
                                : NAN;
            }
        rp_learned_release(&other);
    }
    free(left_out);
    return code;
}

static enum rp_code calibrate(struct rp_learned *m, struct rp_err *err)
{
    size_t n = m->samples.rows.n, i, k, count;
    double *errors = calloc(n + 1, sizeof *errors), *own = calloc(n + 1, sizeof *own);
    enum rp_code code =
        errors && own ? find_errors(m, errors, err) : rp_err_nomem(err, "learning a cost model");

    for (k = 0; code == RP_OK && k < m->fits.n; k++) {
        struct rp_fit *fit = &m->fits.at[k];

        for (i = fit->first, count = 0; i < fit->end; i++)
            if (!isnan(errors[i]) && m->samples.rows.at[i].kind == fit->kind)
                own[count++] = errors[i];
        rp_fit_interval(fit, own, count);
    }
    RP_EACH(free, errors, own);
    return code;
}

enum rp_code rp_learn(struct rp_learned *out, const struct rp_samples *samples,
                      const uint8_t *left_out, bool calibrated, struct rp_err *err)
{
    *out = (struct rp_learned){.fits.n = 0};
    for (size_t i = 0; i < samples->rows.n; i++)
        if (!left_out || !left_out[i])
            RP_TRY(rp_vec_push(&out->samples.rows, samples->rows.at[i], err));
    for (size_t i = 0; i < samples->sources.n; i++)
        RP_TRY(rp_vec_push(&out->samples.sources, samples->sources.at[i], err));
    RP_TRY(rp_samples_merge(&out->samples, err));
    RP_TRY(rp_learned_prepare(out, err));
    RP_TRY(add_fits(out, err));
    RP_TRY(rp_learned_compare_formats(out, err));
    return calibrated ? calibrate(out, err) : RP_OK;
}
