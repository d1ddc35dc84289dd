/* SPDX-License-Identifier: Apache-2.0 */
/* Computes medians of rounds with the interval of the sign test, and verdicts (stats.h). */
#include "try/stats.h"

#include "base/decides.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define CONTROL_LIMIT 0.03
RP_DECISION(
    CONTROL_LIMIT, "of a logarithm",
    "two unchanged runs that agree within it are equal; else less than they differ by says nothing",
    "try/verdicts_have_edges");
#define NARROW 0.01
RP_DECISION(NARROW, "of a logarithm",
            "half of an interval that is narrow enough: less is no reason to change a program",
            "try/verdicts_have_edges");
#define BOUND 0.05
RP_DECISION(BOUND, "of a logarithm", "'no difference above x' is said up to this x",
            "try/verdicts_have_edges");
#define PART 5
RP_DECISION(PART, "th part of the difference",
            "half of an interval that is narrow enough for a larger difference",
            "try/verdicts_have_edges");
#define FEW 13
RP_DECISION(FEW, "rounds",
            "their mean and Student's distribution decide about fewer: ranks could not yet",
            "try/one_disturbed_round_does_not_hide_a_difference");
#define LOOK_ERROR 0.0045
RP_DECISION(LOOK_ERROR, "probability",
            "of a false verdict at one look, such that all looks together have RP_TRY_ERROR",
            "try/the_same_program_is_undecided_and_three_percent_are_found");
const size_t rp_try_looks[] = {12, 24, 48, 96, 0};
const size_t rp_try_process_looks[] = {4,  5,  6,   8,   10,  13,  17,  22,  29,  38, 50,
                                       66, 87, 115, 150, 200, 260, 340, 450, 600, 0};

bool rp_try_is_look(const size_t *looks, size_t rounds)
{
    while (*looks && *looks != rounds)
        looks++;
    return *looks > 0;
}

RP_ORDER(by_value, double, RP_COMPARE(*a, *b))

static size_t sort_finite(const double *values, size_t n, double *out)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            out[k++] = values[i];
    qsort(out, k, sizeof *out, by_value);
    return k;
}

double rp_try_middle(const double *values, size_t n)
{
    double sorted[RP_TRY_PROCESSES];
    size_t k = sort_finite(values, n, sorted);

    return !k ? NAN : k % 2 ? sorted[k / 2] : (sorted[k / 2 - 1] + sorted[k / 2]) / 2;
}

/* Returns how many values at each end may be left out: the most k such that at most k of n fair
   coins show heads, or at most k tails, with this probability; it returns k + 1, and 0 if even k =
   0 is too likely. */
static size_t cut_of(size_t n, double error)
{
    double chance = pow(0.5, (double)n), sum = 0;
    size_t k = 0;

    for (; k < n / 2; k++) {
        sum += chance; /* of exactly k heads */
        if (2 * sum > error)
            break;
        chance *= (double)(n - k) / (double)(k + 1);
    }
    return k;
}

struct rp_try_interval rp_try_median(double *values, size_t n, double error)
{
    struct rp_try_interval out = {0, -INFINITY, INFINITY};
    size_t k = cut_of(n, error);

    if (!n)
        return out;
    qsort(values, n, sizeof *values, by_value);
    out.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    if (k) {
        out.low = values[k - 1];
        out.high = values[n - k];
    }
    return out;
}

double rp_try_error(size_t variants)
{
    return RP_TRY_ERROR / RP_TRY_LOOKS / (double)(variants ? variants : 1);
}

/* Returns the probability that Student's variable is between -t and t: sums of sines and cosines of
   atan(t / sqrt(degrees)), for even and odd degrees (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
static double student_inside(double t, size_t degrees)
{
    double angle = atan(t / sqrt((double)degrees)), cosine = cos(angle), sum = 0;
    double term = degrees % 2 ? cosine : 1;

    for (size_t i = degrees % 2 ? 3 : 2; i <= degrees; i += 2) {
        sum += term;
        term *= cosine * cosine * (double)(i - 1) / (double)i;
    }
    return degrees % 2 ? (angle + sin(angle) * sum) * M_2_PI : sin(angle) * sum;
}

double rp_try_student(size_t degrees, double error)
{
    double low = 0, high = 1e6;

    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;

        *(student_inside(middle, degrees) < 1 - error ? &low : &high) = middle;
    }
    return high;
}

static struct rp_try_interval mean_of(const double *values, size_t n, double error)
{
    double sum = 0, squares = 0, mean, half;

    for (size_t i = 0; i < n; i++)
        sum += values[i];
    mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    half = n < 2 ? INFINITY
                 : rp_try_student(n - 1, error) * sqrt(squares / (double)(n - 1) / (double)n);
    return (struct rp_try_interval){mean, mean - half, mean + half};
}

/* Returns the deviations from the mean that a normal variable exceeds with this probability. */
static double normal(double error)
{
    double low = 0, high = 40;

    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;

        *(erfc(middle * M_SQRT1_2) > error ? &low : &high) = middle;
    }
    return high;
}

/* Counts pairs of sorted values, each with itself too, whose middle is at most x. */
static double pairs_below(const double *sorted, size_t n, double x)
{
    double count = 0;
    size_t j = n;

    for (size_t i = 0; i < j; i++) {
        while (j > i && sorted[i] + sorted[j - 1] > 2 * x)
            j--;
        count += (double)(j - i);
    }
    return count;
}

/* Returns the middle of a pair that has so many before it in the order of their middles. */
static double middle_of_pair(const double *sorted, size_t n, double before)
{
    double low = sorted[0], high = sorted[n - 1];

    for (int i = 0; i < 45; i++) {
        double x = (low + high) / 2;

        *(pairs_below(sorted, n, x) > before ? &high : &low) = x;
    }
    return high;
}

struct rp_try_interval rp_try_center(const double *values, size_t n, double error)
{
    double sorted[RP_TRY_PROCESSES], pairs, cut;
    struct rp_try_interval out;

    n = sort_finite(values, n, sorted);
    if (n < FEW)
        return mean_of(sorted, n, error);
    /* the sum of ranks of the values above the truth has this mean and deviation */
    pairs = (double)n * (double)(n + 1) / 2;
    cut = floor(pairs / 2 - 0.5 - normal(error) * sqrt(pairs * (double)(2 * n + 1) / 12));
    out.median = (middle_of_pair(sorted, n, floor((pairs - 1) / 2)) +
                  middle_of_pair(sorted, n, floor(pairs / 2))) /
                 2;
    out.low = cut < 1 ? -INFINITY : middle_of_pair(sorted, n, cut - 1);
    out.high = cut < 1 ? INFINITY : middle_of_pair(sorted, n, pairs - cut);
    return out;
}

double rp_try_process_error(size_t others, size_t witnesses)
{
    return LOOK_ERROR / (double)witnesses / (double)(others ? others : 1);
}

const char *rp_try_verdict_name(enum rp_try_verdict verdict)
{
    static const char *const names[] = {"noisy", "faster", "slower", "equal", "noisy"};

    return names[verdict];
}

double rp_try_little(void)
{
    return NARROW;
}

double rp_try_ratio(double logarithm)
{
    return expm1(logarithm);
}

double rp_try_floor(const struct rp_try_interval *control)
{
    double most = fmax(fabs(control->low), fabs(control->high));

    if (control->low > 0 || control->high < 0 || !isfinite(most))
        return most; /* not by chance, or not known */
    return most <= CONTROL_LIMIT ? 0 : fabs(control->median);
}

enum rp_try_verdict rp_try_judge(const struct rp_try_interval *interval, double floor, bool last)
{
    double most = fmax(fabs(interval->low), fabs(interval->high));

    if (interval->high < -floor)
        return RP_TRY_FASTER;
    if (interval->low > floor)
        return RP_TRY_SLOWER;
    if (most <= NARROW && floor <= NARROW)
        return RP_TRY_EQUAL;
    if (!last)
        return RP_TRY_UNDECIDED;
    return most <= BOUND ? RP_TRY_EQUAL : RP_TRY_NOISY;
}

bool rp_try_enough(const struct rp_try_interval *interval, enum rp_try_verdict verdict)
{
    double half = (interval->high - interval->low) / 2;

    if (verdict == RP_TRY_UNDECIDED)
        return false;
    return half <= fmax(NARROW, fabs(interval->median) / PART);
}
