/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Narrows an interval by outcomes. The error of a prediction is the logarithm of measured over
 * predicted. Errors of one change on one machine are taken as normal, with a mean and a variance
 * that are not known. Before any outcome, the mean is 0 and the built-in interval contains 90 of
 * 100 errors, which counts as much as PRIOR programs. The interval is then that of the next error:
 * Student's t distribution with PRIOR + n degrees of freedom.
 */
#include "outcomes/change.h"
#include "outcomes/outcomes.h"
#include "rp_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRIOR  3.0
#define Z95    1.644854 /* 95 of 100 values of a normal distribution are below this */
#define LATEST 32       /* how many of the latest programs count, because machines change */

static int by_text(const void *pa, const void *pb)
{
    return strcmp(*(char *const *)pa, *(char *const *)pb);
}

bool rp_change_canonical(const char *text, char *out, size_t cap)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-=.";
    char copy[RP_CHANGE_MOST], *parts[16], *at = copy, *part;
    size_t n = 0, len = strlen(text), used = 0;

    if (!len || len >= sizeof copy || len >= cap || strspn(text, allowed) != len)
        return false;
    memcpy(copy, text, len + 1);
    while ((part = strsep(&at, "+"))) {
        if (!*part || n == sizeof parts / sizeof parts[0])
            return false;
        parts[n++] = part;
    }
    qsort(parts, n, sizeof parts[0], by_text);
    for (size_t i = 0; i < n; i++) {
        if (i)
            out[used++] = '+';
        memcpy(out + used, parts[i], strlen(parts[i]));
        used += strlen(parts[i]);
    }
    out[used] = '\0';
    return true;
}

/* Returns the 95 % quantile of Student's t distribution (Cornish and Fisher), for 6 and more
   degrees. */
static double quantile(double degrees)
{
    const double z = Z95, z3 = z * z * z, z5 = z3 * z * z;

    return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees);
}

static bool is_of(const struct rp_outcomes *x, const struct rp_outcome *o, const char *device,
                  const char *framework, const char *change)
{
    size_t n = strlen(framework);

    return !strcmp(o->change, change) && !strcmp(o->device, device) &&
           !strcmp(o->version, RP_VERSION) && !strcmp(o->host, x->host) &&
           !strncmp(o->framework, framework, n) && (!o->framework[n] || o->framework[n] == ' ');
}

/* Lists the errors of the latest programs. Of programs with the same number of parameters, which
   are mostly the same program, only the latest counts. */
static size_t list_errors(const struct rp_outcomes *x, const char *device, const char *framework,
                          const char *change, double errors[LATEST])
{
    int64_t seen[LATEST];
    size_t n = 0, k;

    for (size_t i = x->list.n; i > 0 && n < LATEST; i--) {
        const struct rp_outcome *o = &x->list.at[i - 1];

        if (!is_of(x, o, device, framework, change))
            continue;
        for (k = 0; k < n && seen[k] != o->parameters;)
            k++;
        if (k < n)
            continue;
        seen[n] = o->parameters;
        errors[n++] = log(o->measured / o->predicted);
    }
    return n;
}

/* Returns how far the next error may be from its expected value on one side, where the built-in
   interval has `width`. */
static double reach(const double *errors, size_t n, double mean, double width)
{
    double count = (double)n, squares = PRIOR * (width / Z95) * (width / Z95);

    for (size_t i = 0; i < n; i++)
        squares += (errors[i] - mean) * (errors[i] - mean);
    squares += PRIOR * count / (PRIOR + count) * mean * mean;
    return quantile(PRIOR + count) * sqrt(squares / (PRIOR + count) * (1 + 1 / (PRIOR + count)));
}

size_t rp_outcomes_narrow(const struct rp_outcomes *x, const char *device, const char *framework,
                          const char *change, double predicted, double *low, double *high)
{
    double errors[LATEST], mean = 0, expected;
    char name[RP_CHANGE_MOST];

    if (!device || !rp_change_canonical(change, name, sizeof name) ||
        !(predicted > 0 && *low > 0 && *low <= predicted && *high >= predicted && isfinite(*high)))
        return 0;
    size_t n = list_errors(x, device, framework, name, errors);
    if (n < RP_OUTCOMES_LEAST)
        return 0;
    for (size_t i = 0; i < n; i++)
        mean += errors[i] / (double)n;
    expected = (double)n * mean / (PRIOR + (double)n);
    *low = predicted * exp(fmin(0, expected - reach(errors, n, mean, log(predicted / *low))));
    *high = predicted * exp(fmax(0, expected + reach(errors, n, mean, log(*high / predicted))));
    return n;
}
