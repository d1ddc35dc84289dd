/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges outputs that pass through a type narrower than f32. Its width tells little about the
 * effect of rounding: a loss is known better than one element, and the ten-thousandth step of a
 * loop worse. So the program is run a few more times, in which some results of narrow types move to
 * a neighbour (exec/eval/vary.h). An output is wrong if it is off by more than these variants: at
 * its worst element, in the middle of its elements, or all in one direction.
 */
#include "replay/variants.h"
#include "base/decides.h"
#include "base/order.h"
#include "program/floats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TIMES 2.5
RP_DECISION(MOST_TIMES, "of what the variants differ by",
            "a right program differs as one more variant would, which is further out than eight "
            "others by so much once in 500 times (bench/replay_faults.py)",
            "replay/bounds_follow_the_program");
#define MIDDLE_TIMES 1
RP_DECISION(MIDDLE_TIMES, "of what the variants differ by, in the median of elements",
            "right programs are at 0.2, and one more variant would be at a half",
            "replay/bounds_follow_the_program");
#define DRIFT_TIMES 3
RP_DECISION(DRIFT_TIMES, "of what the variants differ by along the expected values",
            "as for one element: rounding cancels there, a wrong factor does not",
            "replay/bounds_follow_the_program");
#define UNDER_ONE_UNIT 0.125
RP_LIMIT(UNDER_ONE_UNIT, "of a unit in the last place of the largest value",
         "no output of a narrow type is known better: nothing is measured for less");
#define MIDDLE_OF 16 /* number of elements that is enough for a median */
RP_LIMIT(MIDDLE_OF, "elements", "the median of fewer is as uncertain as each of them");
#define SAMPLE 65536
RP_LIMIT(SAMPLE, "elements", "a median of so many is as good as that of all");

/* ---- runs ---- */

void rp_variants_release(struct rp_variants *v)
{
    rp_tensors_release(&v->plain);
    rp_tensors_release(&v->cut);
    for (size_t j = 0; j < RP_VARIANTS; j++)
        rp_tensors_release(&v->other[j]);
}

/* Options of a run on our own engine, which is the only one that can round differently. */
static struct rp_trial_engine plain_of(const struct rp_variants_of *of)
{
    struct rp_trial_engine on = {.engine = &rp_engine_fast, .options = of->on->options};

    on.options.profile = false;
    return on;
}

static enum rp_code variant_run(const struct rp_variants_of *of, const struct rp_trial_engine *on,
                                struct rp_tensors *list, struct rp_err *err)
{
    return list->at ? RP_OK : rp_trial_once(on, &of->part, list, err);
}

enum rp_code rp_variants_cut(struct rp_variants *v, const struct rp_variants_of *of,
                             struct rp_err *err)
{
    struct rp_trial_engine on = plain_of(of);

    RP_TRY(variant_run(of, &on, &v->plain, err));
    on.options.tf32 = !on.options.tf32;
    on.options.tf32_convolutions = true;
    return variant_run(of, &on, &v->cut, err);
}

/* ---- the judgement ---- */

static double number(const struct rp_tensor *t, size_t k)
{
    return k < t->n ? rp_tensor_number(t, k) : rp_tensor_imaginary(t, k - t->n);
}

/* The difference between variants in output i, element k. */
static double moved(const struct rp_variants *v, size_t i, size_t k)
{
    double most = 0, plain = number(v->plain.at[i], k);

    for (size_t j = 0; j < v->count; j++) {
        double by = fabs(number(v->other[j].at[i], k) - plain);

        most = by <= most ? most : by; /* NaN stays */
    }
    if (i < v->cut.n)
        most += fabs(number(v->cut.at[i], k) - plain);
    return most;
}

/* The factor by which an array's difference from another follows `along`. */
static double drift(const struct rp_tensor *a, const struct rp_tensor *b,
                    const struct rp_tensor *along, size_t n)
{
    double product = 0, square = 0;

    for (size_t k = 0; k < n; k++) {
        double by = number(a, k) - number(b, k), x = number(along, k);

        if (isfinite(by) && isfinite(x)) {
            product += by * x;
            square += x * x;
        }
    }
    return square > 0 ? product / square : 0;
}

RP_ORDER(by_size, double, RP_COMPARE(*a, *b))

/* The median over elements of the difference divided by that of variants. If an element did not
   move, `share` of the middle movement is used. */
static enum rp_code middle_of(const struct rp_variants *v, size_t i, const struct rp_tensor *got,
                              const struct rp_tensor *want, size_t n, double least, double *out,
                              struct rp_err *err)
{
    size_t count = n < SAMPLE ? n : SAMPLE, used = 0;
    RP_FREED double *list = calloc(2 * count + 1, sizeof *list);

    *out = 0;
    RP_TRY(rp_err_need(list, err, "judging outputs"));
    double *moves = list + count;
    for (size_t c = 0; c < count; c++)
        moves[c] = moved(v, i, (size_t)((double)c * ((double)n / (double)count)));
    memcpy(list, moves, count * sizeof *list);
    qsort(list, count, sizeof *list, by_size);
    double middle = list[count / 2];
    for (size_t c = 0; c < count; c++) {
        size_t k = (size_t)((double)c * ((double)n / (double)count));
        double off = fabs(number(got, k) - number(want, k)), by = fmax(moves[c], middle);

        if (number(want, k) == 0 && off == 0) /* it is cut off or masked, so it tells nothing */
            continue;
        list[used++] = off / fmax(by, least);
    }
    qsort(list, used, sizeof *list, by_size);
    if (used >= MIDDLE_OF)
        *out = list[used / 2];
    return RP_OK;
}

enum rp_code rp_variants_judge(const struct rp_variants *v, size_t i, const struct rp_tensor *got,
                               const struct rp_tensor *want, double least,
                               struct rp_variants_verdict *out, struct rp_err *err)
{
    size_t n = got->n * (rp_elem_is_complex(got->elem) ? 2 : 1);
    double ahead = 0, middle;

    *out = (struct rp_variants_verdict){0};
    if (i >= v->plain.n || v->plain.at[i]->n != got->n || want->n != got->n || !got->n)
        return RP_OK;
    for (size_t j = 0; j < v->count; j++)
        if (i >= v->other[j].n || v->other[j].at[i]->n != got->n)
            return RP_OK;
    out->known = true;
    for (size_t k = 0; k < n; k++)
        out->moved = fmax(out->moved, MOST_TIMES * moved(v, i, k));
    for (size_t k = 0; k < n; k++) {
        double off = fabs(number(got, k) - number(want, k));

        out->wrong += off > fmax(out->moved, least);
    }
    RP_TRY(middle_of(v, i, got, want, n, least, &middle, err));
    for (size_t j = 0; j < v->count; j++)
        ahead = fmax(ahead, fabs(drift(v->other[j].at[i], v->plain.at[i], want, n)));
    if (i < v->cut.n)
        ahead += fabs(drift(v->cut.at[i], v->plain.at[i], want, n));
    out->drift = drift(got, want, want, n);
    ahead = DRIFT_TIMES * fmax(ahead, least / fmax(rp_largest_magnitude(want), 1e-300));
    out->why = out->wrong                 ? "at its worst"
               : middle > MIDDLE_TIMES    ? "in the middle of its elements"
               : fabs(out->drift) > ahead ? "along all of it"
                                          : NULL;
    return RP_OK;
}

/* ---- all outputs ---- */

double rp_variants_least(const struct rp_tensor *want, unsigned through)
{
    unsigned elem =
        through != RP_ELEM_INVALID && rp_elem_mantissa(through) < rp_elem_mantissa(want->elem)
            ? through
            : want->elem;

    if (!(rp_elem_is_float(want->elem) || rp_elem_is_complex(want->elem)) ||
        rp_elem_mantissa(elem) >= 23)
        return 0;
    return UNDER_ONE_UNIT * ldexp(1, -rp_elem_mantissa(elem)) * rp_largest_magnitude(want);
}

enum rp_code rp_variants_decide(const struct rp_variants_of *of, struct rp_tensor *const *got,
                                struct rp_tensor *const *want, const double *least, size_t n,
                                struct rp_variants_verdict *out, struct rp_err *err)
{
    RP_SCOPED(rp_variants_release) struct rp_variants v = {0};
    bool again = true;

    while (again && v.count < RP_VARIANTS) {
        /* Runs two variants, then four, then eight. */
        struct rp_trial_engine on = plain_of(of);
        size_t to = v.count ? 2 * v.count : 2;

        RP_TRY(of->tf32 ? rp_variants_cut(&v, of, err) : variant_run(of, &on, &v.plain, err));
        for (; v.count < to; v.count++) {
            on.options.vary = v.count + 1;
            RP_TRY(variant_run(of, &on, &v.other[v.count], err));
        }

        again = false;
        for (size_t i = 0; i < n; i++) {
            if (least[i] > 0)
                RP_TRY(rp_variants_judge(&v, i, got[i], want[i], least[i], &out[i], err));
            again |= out[i].why != NULL;
        }
    }
    return RP_OK;
}
