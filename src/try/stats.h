/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Judges a change from turns of steps. A round gives one number per variant: the logarithm of its
 * time over that of the unchanged program in the same round. Their median gets the interval of the
 * sign test, which assumes nothing about how noise is distributed. It is looked at after 12, 24, 48
 * and 96 rounds, and the allowed error of 5 % is divided by the looks and the variants: looking
 * often does not make false verdicts more frequent.
 */
#include "base/decides.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_TRY_LOOKS 4
extern const size_t rp_try_looks[RP_TRY_LOOKS + 1]; /* the rounds after which verdicts are made */
/* Whether there is a look after so many rounds. */
bool rp_try_is_look(const size_t *looks, size_t rounds);
#define RP_TRY_ERROR 0.05
RP_DECISION(RP_TRY_ERROR, "probability", "of any false verdict in one table",
            "try/verdicts_have_edges");

#define RP_TRY_VALUES 96 /* rounds of variants, at most */

struct rp_try_interval {
    double median, low,
        high; /* of the logarithms; low and high are infinite if there are too few rounds */
};

/* Returns the middle of at most RP_TRY_PROCESSES values; values that are not finite do not count.
 * NaN if there are none. */
double rp_try_middle(const double *values, size_t n);

/* Returns the median of n values (which are sorted) with an interval that misses it with at most
   this probability. */
struct rp_try_interval rp_try_median(double *values, size_t n, double error);

/* ---- rounds of new processes ---- */

#define RP_TRY_PROCESS_LOOKS 20
#define RP_TRY_PROCESSES     600 /* the last of rp_try_process_looks */
/* The numbers of values after which verdicts are made: the first are few, because each value needs
   the start of processes. */
extern const size_t rp_try_process_looks[RP_TRY_PROCESS_LOOKS + 1];

/* Returns the centre of n values of processes, each of which has some luck, with an interval that
   misses it with this probability. Of few values it is their mean, with the interval of Student's
   distribution. Of more it is the middle of all their pairs, with the interval of the signed-rank
   test: a few processes that were disturbed hardly move it. Values that are not finite do not
   count. */
struct rp_try_interval rp_try_center(const double *values, size_t n, double error);

/* Returns the t such that Student's variable is outside of -t and t with this probability. */
double rp_try_student(size_t degrees, double error);

/* Returns the error of one look at one of `others` programs by one of 1 or 2 witnesses, wall clock
   and processor time. It is not RP_TRY_ERROR divided by the looks: most values of a look are those
   of the look before it, so their errors are, too. */
double rp_try_process_error(size_t others, size_t witnesses);

/* Returns the share of RP_TRY_ERROR for one look at one of `variants` variants. */
double rp_try_error(size_t variants);

enum rp_try_verdict {
    RP_TRY_UNDECIDED, /* more rounds may decide */
    RP_TRY_FASTER,
    RP_TRY_SLOWER,
    RP_TRY_EQUAL, /* there is no difference above a bound */
    RP_TRY_NOISY  /* the interval is too wide for a verdict */
};

/* Returns the difference of the two unchanged runs: 0 if they agree within 3 %, as they should;
   their median if they agree within their noise, which is also in the intervals of the others;
   otherwise the end of their interval. Smaller differences than this are not reported. */
double rp_try_floor(const struct rp_try_interval *control);

/* Returns the verdict so far. last: there will be no more rounds. */
enum rp_try_verdict rp_try_judge(const struct rp_try_interval *interval, double floor, bool last);

/* Whether no more rounds are needed: the verdict is settled, and the interval is within 1 % or
   within a fifth of the difference. */
bool rp_try_enough(const struct rp_try_interval *interval, enum rp_try_verdict verdict);

const char *rp_try_verdict_name(enum rp_try_verdict verdict);

/* A difference, as a logarithm, that is not a reason to change a program. */
double rp_try_little(void);

/* exp(x) - 1 of a logarithm: -0.17 is 17 % less time. */
double rp_try_ratio(double logarithm);
