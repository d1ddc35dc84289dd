/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One routine for all formats: a format is its number of exponent and mantissa bits, its bias, and
 * the meaning of its largest codes. Speed does not matter here because literals of programs are
 * small.
 */
#include "program/floats.h"

#include <math.h>
#include <string.h>

/* What the codes beyond the finite numbers mean. */
enum special {
    IEEE,    /* an exponent of all ones means infinity or NaN */
    FN,      /* there is no infinity, and all ones is NaN */
    FNUZ,    /* there is no infinity and no -0, whose code is the only NaN */
    FINITE,  /* neither */
    UNSIGNED /* e8m0: powers of two; all ones is NaN */
};

struct format {
    uint8_t elem, exponent, mantissa;
    int16_t bias;
    uint8_t special;
};

static const struct format formats[] = {
    {RP_ELEM_F16, 5, 10, 15, IEEE},           {RP_ELEM_BF16, 8, 7, 127, IEEE},
    {RP_ELEM_F8E5M2, 5, 2, 15, IEEE},         {RP_ELEM_F8E4M3, 4, 3, 7, IEEE},
    {RP_ELEM_F8E3M4, 3, 4, 3, IEEE},          {RP_ELEM_F8E4M3FN, 4, 3, 7, FN},
    {RP_ELEM_F8E4M3FNUZ, 4, 3, 8, FNUZ},      {RP_ELEM_F8E5M2FNUZ, 5, 2, 16, FNUZ},
    {RP_ELEM_F8E4M3B11FNUZ, 4, 3, 11, FNUZ},  {RP_ELEM_F4E2M1FN, 2, 1, 1, FINITE},
    {RP_ELEM_F6E3M2FN, 3, 2, 3, FINITE},      {RP_ELEM_F6E2M3FN, 2, 3, 1, FINITE},
    {RP_ELEM_F8E8M0FNU, 8, 0, 127, UNSIGNED},
};

static const struct format *float_format(unsigned elem)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].elem == elem)
            return &formats[i];
    return NULL;
}

bool rp_elem_is_float(unsigned elem)
{
    return elem == RP_ELEM_F32 || elem == RP_ELEM_F64 || float_format(elem) != NULL;
}

uint64_t rp_float_payload(unsigned elem)
{
    const struct format *f = float_format(elem);
    unsigned mantissa = elem == RP_ELEM_F64       ? 52
                        : elem == RP_ELEM_F32     ? 23
                        : f && f->special == IEEE ? f->mantissa
                                                  : 0;

    return (UINT64_C(1) << mantissa) - 1;
}

static uint64_t nan_code(const struct format *f)
{
    unsigned bits = f->exponent + f->mantissa;

    switch (f->special) {
    case FNUZ:
        return UINT64_C(1) << bits;
    case FN:
    case UNSIGNED:
        return (UINT64_C(1) << bits) - 1;
    case FINITE: /* what XLA writes: -0 */
        return UINT64_C(1) << bits;
    default:
        return (((UINT64_C(1) << f->exponent) - 1) << f->mantissa) | UINT64_C(1)
                                                                         << (f->mantissa - 1);
    }
}

/* The largest finite code without its sign. */
static uint64_t max_code(const struct format *f)
{
    uint64_t all = (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;

    switch (f->special) {
    case IEEE:
        return (((UINT64_C(1) << f->exponent) - 1) << f->mantissa) - 1;
    case FN:
    case UNSIGNED:
        return all - 1;
    default:
        return all;
    }
}

static uint64_t overflow_code(const struct format *f)
{
    if (f->special == IEEE)
        return ((UINT64_C(1) << f->exponent) - 1) << f->mantissa;
    return f->special == FINITE ? max_code(f) : nan_code(f);
}

static double float_decode(const struct format *f, uint64_t bits)
{
    uint64_t code = bits & ((UINT64_C(1) << (f->exponent + f->mantissa)) - 1);
    bool minus = f->special != UNSIGNED && (bits >> (f->exponent + f->mantissa) & 1);
    uint64_t fraction = code & ((UINT64_C(1) << f->mantissa) - 1);
    int exponent = (int)(code >> f->mantissa);

    if (f->special == UNSIGNED)
        return code == 255 ? (double)NAN : ldexp(1, exponent - f->bias);
    if (f->special == FNUZ && bits == nan_code(f))
        return (double)NAN;
    if (code > max_code(f)) {
        double value = f->special == IEEE && !fraction ? (double)INFINITY : (double)NAN;
        return minus ? -value : value;
    }
    if (exponent)
        fraction |= UINT64_C(1) << f->mantissa;
    else
        exponent = 1;
    double value = ldexp((double)fraction, exponent - f->bias - f->mantissa);
    return minus ? -value : value;
}

uint64_t rp_float_encode(unsigned elem, double value)
{
    const struct format *f = float_format(elem);
    uint64_t bits = 0;
    float single = (float)value;
    uint32_t low;

    if (f) {
        uint64_t sign = signbit(value) ? UINT64_C(1) << (f->exponent + f->mantissa) : 0;
        uint64_t outside = sign;
        double a = fabs(value);
        int exponent;

        if (f->special == FNUZ || f->special == UNSIGNED)
            outside = 0; /* their NaN has no sign */
        if (isnan(value))
            return f->special == FINITE ? nan_code(f) ^ sign : nan_code(f) | outside;
        if (f->special == UNSIGNED && !(value > 0))
            return nan_code(f);
        if (isinf(value))
            return overflow_code(f) | outside;
        frexp(a, &exponent);
        exponent = a == 0 || exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
        /* in units of the last place; a carry into the exponent needs no special case */
        double scaled = nearbyint(ldexp(a, f->mantissa - exponent));
        uint64_t code = ((uint64_t)(exponent + f->bias - 1) << f->mantissa) + (uint64_t)scaled;
        if (code > max_code(f))
            return overflow_code(f) | outside;
        return f->special == FNUZ && !code ? 0 : code | sign;
    }
    if (elem == RP_ELEM_F32) {
        memcpy(&low, &single, sizeof low);
        return low;
    }
    if (elem == RP_ELEM_F64)
        memcpy(&bits, &value, sizeof bits);
    return bits;
}

double rp_float_decode(unsigned elem, uint64_t bits)
{
    const struct format *f = float_format(elem);
    uint32_t low = (uint32_t)bits;
    double value = 0;
    float single;

    if (f)
        return float_decode(f, bits);
    if (elem == RP_ELEM_F32) {
        memcpy(&single, &low, sizeof single);
        return (double)single;
    }
    if (elem == RP_ELEM_F64)
        memcpy(&value, &bits, sizeof value);
    return value;
}
