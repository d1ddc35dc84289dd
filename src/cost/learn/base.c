/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of a fit: overhead, compute time, memory time and the extra of its kind, each times a
 * factor that is not negative. It minimises the squares of the relative error, reweighted so that a
 * few odd rows do not decide. With only four unknowns, trying all subsets satisfies the constraint.
 */
#include "base/decides.h"
#include "cost/learn/learned.h"

#include <float.h>
#include <math.h>

#define ROUNDS 8
RP_LIMIT(ROUNDS, "rounds", "of weighing again: odd rows weigh less from the second round on");
#define LEAST_S 1e-12
RP_LIMIT(LEAST_S, "s", "keeps logarithms finite: no kernel is faster");
#define SINGULAR 1e-12
RP_LIMIT(SINGULAR, "of a scaled matrix",
         "below it a pivot is an error of rounding: that subset of terms has no solution");
#define DAMPING 1e-9
RP_LIMIT(DAMPING, "of a scaled matrix", "added to its diagonal: equal columns have a solution");
#define SMALL_ERROR 0.02
RP_DECISION(SMALL_ERROR, "of a logarithm",
            "rows that the base misses by less weigh the same: times repeat within it "
            "(bench/measure_ops.py)",
            "cost/odd_rows_weigh_less");
#define TERMS RP_BASE_TERMS

double rp_curve_base(const struct rp_curve *curve, const struct rp_features *x)
{
    double s = curve->base[0] + curve->base[1] * x->compute_s + curve->base[2] * x->memory_s +
               curve->base[3] * x->extra_s;

    return log(fmax(s, LEAST_S));
}

/* Solves the normal equations of the unknowns in `set`; false if no solution is free of negative
   values. */
static bool solve_subset(double a[TERMS][TERMS], const double b[TERMS], unsigned set,
                         double out[TERMS])
{
    double m[TERMS][TERMS + 1];
    int index[TERMS], n = 0, i, k, r;

    for (i = 0; i < TERMS; i++) {
        out[i] = 0;
        if (set & 1u << i)
            index[n++] = i;
    }
    for (i = 0; i < n; i++) {
        for (k = 0; k < n; k++)
            m[i][k] = a[index[i]][index[k]];
        m[i][n] = b[index[i]];
    }
    for (i = 0; i < n; i++) {
        if (!(fabs(m[i][i]) > SINGULAR))
            return false;
        for (r = 0; r < n; r++)
            if (r != i) {
                double f = m[r][i] / m[i][i];

                for (k = i; k <= n; k++)
                    m[r][k] -= f * m[i][k];
            }
    }
    for (i = 0; i < n; i++) {
        out[index[i]] = m[i][n] / m[i][i];
        if (!(out[index[i]] >= 0))
            return false;
    }
    return true;
}

/* The loss of a solution: c'Ac - 2 b'c. */
static double loss_of(double a[TERMS][TERMS], const double b[TERMS], const double c[TERMS])
{
    double sum = 0;

    for (int i = 0; i < TERMS; i++) {
        sum -= 2 * b[i] * c[i];
        for (int k = 0; k < TERMS; k++)
            sum += c[i] * a[i][k] * c[k];
    }
    return sum;
}

static void solve(double a[TERMS][TERMS], const double b[TERMS], double out[TERMS])
{
    double best = INFINITY, c[TERMS];

    for (unsigned set = 1; set < 1u << TERMS; set++)
        if (solve_subset(a, b, set, c) && loss_of(a, b, c) < best) {
            best = loss_of(a, b, c);
            for (int i = 0; i < TERMS; i++)
                out[i] = c[i];
        }
}

void rp_curve_fit_base(struct rp_curve *curve, const struct rp_fit_rows *rows, double *weight)
{
    double largest[TERMS] = {DBL_MIN, DBL_MIN, DBL_MIN, DBL_MIN};

    for (size_t r = 0; r < rows->n; r++) {
        double t = exp(rows->y[r]);

        weight[r] = 1;
        largest[0] = fmax(largest[0], 1 / t);
        largest[1] = fmax(largest[1], rows->x[r]->compute_s / t);
        largest[2] = fmax(largest[2], rows->x[r]->memory_s / t);
        largest[3] = fmax(largest[3], rows->x[r]->extra_s / t);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double a[TERMS][TERMS] = {{0}}, b[TERMS] = {0}, c[TERMS] = {0};

        for (size_t r = 0; r < rows->n; r++) {
            double t = exp(rows->y[r]);
            double v[TERMS] = {1 / t / largest[0], rows->x[r]->compute_s / t / largest[1],
                               rows->x[r]->memory_s / t / largest[2],
                               rows->x[r]->extra_s / t / largest[3]};

            for (int i = 0; i < TERMS; i++) {
                b[i] += weight[r] * v[i];
                for (int k = 0; k < TERMS; k++)
                    a[i][k] += weight[r] * v[i] * v[k];
            }
        }
        for (int i = 0; i < TERMS; i++)
            a[i][i] += DAMPING * (double)rows->n;
        solve(a, b, c);
        for (int i = 0; i < TERMS; i++)
            curve->base[i] = c[i] / largest[i];
        for (size_t r = 0; r < rows->n; r++) {
            double ratio = exp(rp_curve_base(curve, rows->x[r]) - rows->y[r]);

            weight[r] = 1 / fmax(fabs(log(ratio)), SMALL_ERROR) / fmax(ratio, 1);
        }
    }
    curve->low = INFINITY;
    curve->high = -INFINITY;
    for (size_t r = 0; r < rows->n; r++) {
        double b = rp_curve_base(curve, rows->x[r]);

        curve->low = fmin(curve->low, b);
        curve->high = fmax(curve->high, b);
    }
}
