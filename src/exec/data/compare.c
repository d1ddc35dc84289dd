/* SPDX-License-Identifier: Apache-2.0 */
/* Compares arrays element by element in double precision. One pass finds the largest magnitude, one
   the differences. */
#include "exec/data/compare.h"

#include "program/floats.h"

#include <math.h>
#include <string.h>

int rp_elem_mantissa(unsigned elem)
{
    switch (elem) {
    case RP_ELEM_F64:
    case RP_ELEM_C128:
        return 52;
    case RP_ELEM_F32:
    case RP_ELEM_C64:
        return 23;
    case RP_ELEM_F16:
        return 10;
    case RP_ELEM_BF16:
        return 7;
    case RP_ELEM_F8E3M4:
        return 4;
    case RP_ELEM_F8E4M3:
    case RP_ELEM_F8E4M3FN:
    case RP_ELEM_F8E4M3FNUZ:
    case RP_ELEM_F8E4M3B11FNUZ:
    case RP_ELEM_F6E2M3FN:
        return 3;
    case RP_ELEM_F8E5M2:
    case RP_ELEM_F8E5M2FNUZ:
    case RP_ELEM_F6E3M2FN:
        return 2;
    default:
        return 1;
    }
}

/* f64 1e-9, f32 1e-3 (5e-3 of the largest, because GPUs cut operands of f32 products to ten bits),
   f16 8e-3, bf16 3e-2 and more: the effect of another order of sums in a training step. */
static struct rp_tolerance tolerance_of_type(unsigned elem)
{
    struct rp_tolerance t = {.ulp = -1};
    int bits = rp_elem_mantissa(elem);

    if (!rp_elem_is_float(elem) && !rp_elem_is_complex(elem))
        return t;
    t.relative = bits == 52 ? 1e-9 : bits == 23 ? 1e-3 : ldexp(8, -bits - 1);
    if (bits == 10)
        t.relative = 8e-3;
    t.absolute = bits == 52 ? t.relative : bits == 23 ? 5e-3 : t.relative;
    return t;
}

static void note_worst(struct rp_comparison *c, size_t at, double got, double want, double off)
{
    size_t k = c->nworst < RP_WORST ? c->nworst++ : RP_WORST - 1;
    double last = fabs(c->worst[k].got - c->worst[k].want);

    if (k == RP_WORST - 1 && c->nworst == RP_WORST && c->wrong >= RP_WORST && last == last &&
        !(off > last) && off == off)
        return;
    for (; k > 0; k--) {
        double before = fabs(c->worst[k - 1].got - c->worst[k - 1].want);

        if (before != before || (before >= off && off == off))
            break;
        c->worst[k] = c->worst[k - 1];
    }
    c->worst[k] = (struct rp_worst){at, got, want};
}

double rp_largest_magnitude(const struct rp_tensor *t)
{
    double most = 0;

    for (size_t i = 0; i < t->n; i++) {
        double a = fabs(rp_tensor_number(t, i)), b = fabs(rp_tensor_imaginary(t, i));

        if (isfinite(a) && a > most)
            most = a;
        if (isfinite(b) && b > most)
            most = b;
    }
    return most;
}

/* The number of steps between two numbers of a type. */
static double ulp_distance(unsigned elem, double a, double b)
{
    int exponent;

    if (!isfinite(a) || !isfinite(b))
        return a == b ? 0 : INFINITY;
    frexp(fmax(fabs(a), fabs(b)), &exponent);
    return fabs(a - b) / ldexp(1, exponent - 1 - rp_elem_mantissa(elem));
}

static void compare_one(struct rp_comparison *c, const struct rp_tolerance *t, unsigned elem,
                        size_t i, double got, double want, double floor)
{
    double off = fabs(got - want),
           size = isinf(want) ? 0 : fabs(want); /* no finite number is near infinity */
    double far = rp_elem_mantissa(elem) > 4 ? 10 : 2;

    if (got == want || (got != got && want != want && !t->nan_differs))
        return;
    if (off == off && isfinite(off)) {
        if (off > c->max_abs)
            c->max_abs = off;
        if (size > 0 && off / size > c->max_rel)
            c->max_rel = off / size;
    } else {
        off = INFINITY;
        c->max_abs = INFINITY;
    }
    if (off <= floor || off <= t->relative * size)
        return;
    if (t->ulp >= 0 && ulp_distance(elem, got, want) <= (double)t->ulp)
        return;
    c->wrong++;
    c->far += !(off <= far * floor || off <= far * t->relative * size);
    note_worst(c, i, got, want, off);
}

/* Is exact even where a double is not. */
static uint64_t difference(const struct rp_tensor *got, const struct rp_tensor *want, size_t i)
{
    uint64_t a = (uint64_t)rp_tensor_integer(got, i), b = (uint64_t)rp_tensor_integer(want, i);
    bool more = got->elem == RP_ELEM_U64 ? a > b : (int64_t)a > (int64_t)b;

    return more ? a - b : b - a;
}

/* strict: the bounds are the user's, so no element may exceed them. */
static void compare_integers(const struct rp_tensor *got, const struct rp_tensor *want,
                             const struct rp_tolerance *t, bool strict, struct rp_comparison *c)
{
    for (size_t i = 0; i < got->n; i++) {
        uint64_t off = difference(got, want, i);
        double a = rp_tensor_number(got, i), b = rp_tensor_number(want, i), d = (double)off;

        if (!off)
            continue;
        c->max_abs = d > c->max_abs ? d : c->max_abs;
        if (b != 0 && d / fabs(b) > c->max_rel)
            c->max_rel = d / fabs(b);
        if (d <= t->absolute || d <= t->relative * fabs(b) || (t->ulp >= 0 && d <= (double)t->ulp))
            continue;
        c->wrong++;
        c->far += strict || off > 1;
        note_worst(c, i, a, b, d);
    }
    c->ok = !c->far && (double)c->wrong <= 0.001 * (double)c->n;
}

/* The absolute bound of the type: a share of the largest magnitude, and never zero. */
static double floor_of(const struct rp_tolerance *t, const struct rp_tensor *want)
{
    double floor = t->absolute * rp_largest_magnitude(want) + 1e-30,
           least = 1e-5 * t->relative / 1e-3;

    return floor < least ? least : floor;
}

void rp_compare(const struct rp_tensor *got, const struct rp_tensor *want,
                const struct rp_tolerance *given, struct rp_comparison *c)
{
    struct rp_tolerance t = tolerance_of_type(got->elem);
    bool floats = rp_elem_is_float(got->elem) || rp_elem_is_complex(got->elem);
    bool strict = given && (given->absolute >= 0 || given->relative >= 0 || given->ulp >= 0);

    memset(c, 0, sizeof *c);
    c->n = got->n;
    if (!rp_dims_same(got->dims, got->rank, want->dims, want->rank)) {
        c->reason = "the shapes differ";
        return;
    }
    if (given && given->through != RP_ELEM_INVALID &&
        rp_elem_mantissa(given->through) < rp_elem_mantissa(got->elem))
        t = tolerance_of_type(given->through);
    else if (given && given->tf32 && rp_elem_mantissa(got->elem) == 23)
        t = tolerance_of_type(RP_ELEM_F16);
    if (strict) { /* a bound that is not given does not limit */
        t.absolute = given->absolute < 0 ? 0 : given->absolute;
        t.relative = given->relative < 0 ? 0 : given->relative;
    }
    if (given) {
        t.ulp = given->ulp;
        t.nan_differs = given->nan_differs;
    }
    if (!floats) {
        compare_integers(got, want, &t, strict, c);
        return;
    }
    /* given bounds are absolute; those of the type are relative to the array's magnitude */
    double floor = strict ? t.absolute : floor_of(&t, want);
    if (given && given->rounding > 0) {
        floor = given->rounding;
        t.relative = 0;
    }
    for (size_t i = 0; i < got->n; i++) {
        size_t wrong = c->wrong, far = c->far;

        compare_one(c, &t, got->elem, i, rp_tensor_number(got, i), rp_tensor_number(want, i),
                    floor);
        if (rp_elem_is_complex(got->elem))
            compare_one(c, &t, got->elem, i, rp_tensor_imaginary(got, i),
                        rp_tensor_imaginary(want, i), floor);
        c->wrong = c->wrong > wrong ? wrong + 1 : wrong; /* both parts count as one element */
        c->far = c->far > far ? far + 1 : far;
    }
    if (given && given->rounding > 0)
        c->far = 0;
    c->ok = strict ? !c->wrong : !c->far && (double)c->wrong <= RP_WRONG_SHARE * (double)c->n;
}
