/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits curves on the base of a fit: a sum of log-linear pieces between the quantiles of each size,
 * whose gains are not negative, and of steps for traits. Squares are minimised by coordinate
 * descent, reweighted so that a few odd rows do not decide. Each number format with enough rows has
 * its own curve.
 */
#include "base/decides.h"
#include "base/order.h"
#include "cost/learn/learned.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define PIECES 7
RP_DECISION(PIECES, "pieces of a size",
            "between its quantiles; the errors of what they fit are in docs/cli/model.md",
            "cost/a_size_has_seven_pieces");
#define ENOUGH_ROWS 16
RP_DECISION(ENOUGH_ROWS, "rows",
            "of a number format, for a curve of its own: two for each piece; fewer share one",
            "cost/formats_with_enough_rows_have_a_curve");
#define SWEEPS 120
RP_LIMIT(SWEEPS, "sweeps", "of a descent, which ends earlier if nothing moves");
#define REWEIGHTS 3
RP_LIMIT(REWEIGHTS, "rounds", "of weighing again: odd rows weigh less from the second round on");
#define ENOUGH 1e-4
RP_LIMIT(ENOUGH, "of a logarithm", "moves and gains below it change no time by more than 0.01 %");
#define RIDGE 0.3
RP_DECISION(
    RIDGE, "rows",
    "a gain is held back as if so many rows said that it is 0; the errors of what it fits are in"
    " docs/cli/model.md",
    "cost/gains_of_few_rows_are_held_back");
#define NOISE 0.05
RP_DECISION(
    NOISE, "of a logarithm",
    "errors below it weigh nearly the same; the errors of what it fits are in docs/cli/model.md",
    "cost/odd_rows_weigh_less");

struct curve_fit {
    struct rp_curve *curve;
    size_t n;
    const struct rp_features **x;
    double *y, *base, *weight, *rest, *ones;
    double *columns; /* by piece, then by row */
};

static double piece_at(const struct rp_curve_piece *p, const struct rp_features *x, double log_base)
{
    double v = p->feature == RP_FEATURES_MAX ? log_base : (double)x->x[p->feature];

    if (p->low == p->high)
        return v >= (double)p->low;
    v = (v - (double)p->low) / ((double)p->high - (double)p->low);
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

double rp_curve_at(const struct rp_curve *curve, const struct rp_features *x, double log_base)
{
    double sum = curve->bias + curve->slope * log_base;

    for (size_t i = 0; i < curve->pieces.n; i++)
        sum += (double)curve->pieces.at[i].gain * piece_at(&curve->pieces.at[i], x, log_base);
    return sum;
}

RP_ORDER(compare_floats, float, RP_COMPARE(*a, *b))

/* Makes the pieces of one feature: between quantiles for sizes, and a step at each value for
   traits. */
static enum rp_code add_pieces(struct curve_fit *c, uint8_t feature, bool is_size, float *values,
                               struct rp_err *err)
{
    for (size_t i = 0; i < c->n; i++)
        values[i] = feature == RP_FEATURES_MAX ? (float)c->base[i] : c->x[i]->x[feature];
    qsort(values, c->n, sizeof *values, compare_floats);
    float last = values[0];
    if (is_size) {
        for (size_t i = 1; i <= PIECES; i++) {
            float at = values[(c->n - 1) * i / PIECES];

            if (at > last)
                RP_TRY(rp_vec_push(&c->curve->pieces,
                                   ((struct rp_curve_piece){feature, last, at, 0}), err));
            last = at;
        }
        return RP_OK;
    }
    for (size_t i = 1; i < c->n; i++)
        if (values[i] > last) {
            last = values[i];
            RP_TRY(rp_vec_push(&c->curve->pieces, ((struct rp_curve_piece){feature, last, last, 0}),
                               err));
        }
    return RP_OK;
}

/* Finds the best value of one coordinate, at least `low`, with the others fixed. Returns how far it
   moved. */
static double descend(struct curve_fit *c, const double *column, double *value, double ridge,
                      double low)
{
    double top = -ridge * *value, bottom = ridge + DBL_EPSILON, change;

    for (size_t i = 0; i < c->n; i++) {
        top += c->weight[i] * column[i] * c->rest[i];
        bottom += c->weight[i] * column[i] * column[i];
    }
    change = top / bottom;
    if (*value + change < low)
        change = low - *value;
    if (change == 0)
        return 0;
    *value += change;
    for (size_t i = 0; i < c->n; i++)
        c->rest[i] -= change * column[i];
    return fabs(change);
}

static double sweep(struct curve_fit *c, size_t nsizes)
{
    double moved = descend(c, c->ones, &c->curve->bias, 0, -INFINITY);

    moved = fmax(moved, descend(c, c->base, &c->curve->slope, 0, 0));
    for (size_t k = 0; k < c->curve->pieces.n; k++) {
        struct rp_curve_piece *p = &c->curve->pieces.at[k];
        bool is_size = p->feature == RP_FEATURES_MAX || p->feature < nsizes;
        double gain = (double)p->gain;

        moved =
            fmax(moved, descend(c, c->columns + k * c->n, &gain, RIDGE, is_size ? 0 : -INFINITY));
        p->gain = (float)gain;
    }
    return moved;
}

static enum rp_code fill_columns(struct curve_fit *c, struct rp_err *err)
{
    c->columns = malloc((c->curve->pieces.n + 1) * (c->n + 1) * sizeof *c->columns);
    RP_TRY(rp_err_need(c->columns, err, "fitting a cost model"));
    for (size_t k = 0; k < c->curve->pieces.n; k++)
        for (size_t i = 0; i < c->n; i++)
            c->columns[k * c->n + i] = piece_at(&c->curve->pieces.at[k], c->x[i], c->base[i]);
    return RP_OK;
}

static void find_rest(struct curve_fit *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->rest[i] = c->y[i] - rp_curve_at(c->curve, c->x[i], c->base[i]);
}

static void reweigh(struct curve_fit *c)
{
    double sum = 0;

    for (size_t i = 0; i < c->n; i++) {
        c->weight[i] = NOISE / sqrt(c->rest[i] * c->rest[i] + NOISE * NOISE);
        sum += c->weight[i];
    }
    for (size_t i = 0; i < c->n; i++)
        c->weight[i] *= (double)c->n / sum;
}

static void drop_empty(struct rp_curve *curve)
{
    size_t i, n = 0;

    for (i = 0; i < curve->pieces.n; i++)
        if (fabs((double)curve->pieces.at[i].gain) > ENOUGH)
            curve->pieces.at[n++] = curve->pieces.at[i];
    curve->pieces.n = n;
}

static enum rp_code fit_curve(struct curve_fit *c, struct rp_err *err)
{
    size_t i, round, nsizes = c->x[0]->nsizes;
    RP_FREED float *values = malloc(c->n * sizeof *values);

    RP_TRY(values ? add_pieces(c, RP_FEATURES_MAX, true, values, err)
                  : rp_err_nomem(err, "fitting a cost model"));
    for (i = 0; i < c->x[0]->n; i++)
        RP_TRY(add_pieces(c, (uint8_t)i, i < nsizes, values, err));
    RP_TRY(fill_columns(c, err));
    for (i = 0; i < c->n; i++)
        c->weight[i] = 1;
    for (round = 0; round < REWEIGHTS; round++) {
        find_rest(c);
        for (i = 0; i < SWEEPS && sweep(c, nsizes) > ENOUGH; i++)
            ;
        reweigh(c);
    }
    free(c->columns);
    drop_empty(c->curve);
    return RP_OK;
}

static uint8_t alignment_of(const struct rp_features *x)
{
    return x->aligned ? 2 : 1;
}

const struct rp_curve *rp_fit_curve(const struct rp_fit *fit, const struct rp_features *x,
                                    uint8_t type)
{
    const struct rp_curve *found = &fit->curves.at[0];
    uint8_t aligned = alignment_of(x);
    int best = -1;

    for (size_t i = 0; i < fit->curves.n; i++) {
        const struct rp_curve *c = &fit->curves.at[i];
        int fits = (c->type == type             ? 4
                    : c->type == RP_NUMBER_NONE ? 2
                                                : 0) +
                   (c->aligned == aligned);

        if ((!c->aligned || c->aligned == aligned) && fits > best) {
            best = fits;
            found = c;
        }
    }
    return found;
}

static bool is_in_curve(const struct rp_curve *curve, const struct rp_fit_rows *rows, size_t i)
{
    return (curve->type == RP_NUMBER_NONE || rows->type[i] == curve->type) &&
           (!curve->aligned || alignment_of(rows->x[i]) == curve->aligned);
}

static enum rp_code add_curve(struct rp_fit *fit, const struct rp_fit_rows *rows, uint8_t type,
                              uint8_t aligned, struct rp_err *err)
{
    struct rp_curve curve = {.type = type, .aligned = aligned, .slope = 1};
    struct curve_fit c = {.curve = &curve};
    double *memory = calloc(rows->n * 5 + 1, sizeof *memory);
    enum rp_code code = RP_OK;

    c.x = calloc(rows->n + 1, sizeof *c.x);
    if (!memory || !c.x) {
        code = rp_err_nomem(err, "fitting a cost model");
    } else {
        c.y = memory;
        c.base = memory + rows->n;
        c.weight = c.base + rows->n;
        c.rest = c.weight + rows->n;
        c.ones = c.rest + rows->n;
        for (size_t i = 0; i < rows->n; i++)
            if (is_in_curve(&curve, rows, i)) {
                c.x[c.n] = rows->x[i];
                c.y[c.n++] = rows->y[i];
            }
        rp_curve_fit_base(&curve, &(struct rp_fit_rows){.n = c.n, .x = c.x, .y = c.y}, c.weight);
        for (size_t i = 0; i < c.n; i++) {
            c.ones[i] = 1;
            c.base[i] = rp_curve_base(&curve, c.x[i]);
        }
        code = fit_curve(&c, err);
    }
    free(memory);
    free((void *)c.x);
    if (code == RP_OK)
        code = rp_vec_push(&fit->curves, curve, err);
    if (code != RP_OK)
        rp_vec_release(&curve.pieces);
    return code;
}

enum rp_code rp_fit_curves_to(struct rp_fit *fit, const struct rp_fit_rows *rows,
                              struct rp_err *err)
{
    size_t count[RP_NUMBERS][2] = {{0}}, i;
    bool all = true;

    for (i = 0; i < rows->n; i++)
        count[rows->type[i]][alignment_of(rows->x[i]) == 2]++;
    for (i = 0; i < RP_NUMBERS; i++)
        if (count[i][0] >= ENOUGH_ROWS && count[i][1] >= ENOUGH_ROWS) {
            RP_TRY(add_curve(fit, rows, (uint8_t)i, 1, err));
            RP_TRY(add_curve(fit, rows, (uint8_t)i, 2, err));
        } else if (count[i][0] + count[i][1] >= ENOUGH_ROWS) {
            RP_TRY(add_curve(fit, rows, (uint8_t)i, 0, err));
        } else {
            all = all && !count[i][0] && !count[i][1];
        }
    return all ? RP_OK : add_curve(fit, rows, RP_NUMBER_NONE, 0, err);
}
