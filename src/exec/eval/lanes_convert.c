/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between all element types like XLA: to an integer, NaN becomes 0, and a value out of
 * range the nearest end; between integers, bits are cut; to pred, everything but zero is true; to a
 * float, the nearest value is taken, with ties to even. A piece of the input becomes f64, s64 or
 * u64, which hold every value, and then the result; f32 and bf16 or f16 have their own loops.
 */
#include "exec/eval/lanes.h"
#include "program/floats.h"

#include <math.h>

#define PIECE 256

float rp_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31;
    uint32_t fraction = h & 0x3ff;
    float value;

    if (!exponent) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    uint32_t bits = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t rp_f32_to_f16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* rounds beyond 65504 */
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { /* below the smallest normal number, adding a constant rounds */
        float a;

        memcpy(&a, &magnitude, sizeof a);
        a += 0.5f;
        memcpy(&magnitude, &a, sizeof a);
        return (uint16_t)(sign | (magnitude - 0x3f000000));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

bool rp_elem_is_small_float(unsigned elem)
{
    return rp_elem_is_float(elem) && elem != RP_ELEM_F32 && elem != RP_ELEM_F64;
}

static float bf16_to_f32(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return value;
}

/* These loops are functions, so that they are compiled for several machines. */
RP_CLONES static void widen_bf16(size_t n, float *restrict out, const uint16_t *restrict in)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_to_f32(in[i]);
}

RP_CLONES static void narrow_bf16(size_t n, uint16_t *restrict out, const float *restrict in)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &in[i], sizeof bits);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        out[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
    }
}

/* In types under a byte the upper bits are zero. */
static void widen_bytes(unsigned elem, size_t n, float *out, const uint8_t *in)
{
    size_t codes = (size_t)1 << rp_elem_bits(elem);
    float table[256];

    if (n < codes) {
        for (size_t i = 0; i < n; i++)
            out[i] = (float)rp_float_decode(elem, in[i]);
        return;
    }
    for (size_t i = 0; i < codes; i++)
        table[i] = (float)rp_float_decode(elem, i);
    for (size_t i = 0; i < n; i++)
        out[i] = table[in[i] & (codes - 1)];
}

void rp_widen(unsigned elem, size_t n, float *out, const void *in)
{
    const uint16_t *half = in;

    if (elem == RP_ELEM_F32)
        memmove(out, in, n * sizeof *out);
    else if (elem == RP_ELEM_BF16)
        widen_bf16(n, out, half);
    else if (elem == RP_ELEM_F16)
        for (size_t i = 0; i < n; i++)
            out[i] = rp_f16_to_f32(half[i]);
    else
        widen_bytes(elem, n, out, in);
}

void rp_narrow(unsigned elem, size_t n, void *out, const float *in)
{
    uint16_t *half = out;
    uint8_t *byte = out;

    if (elem == RP_ELEM_F32)
        memmove(out, in, n * sizeof *in);
    else if (elem == RP_ELEM_BF16)
        narrow_bf16(n, half, in);
    else if (elem == RP_ELEM_F16)
        for (size_t i = 0; i < n; i++)
            half[i] = rp_f32_to_f16(in[i]);
    else
        for (size_t i = 0; i < n; i++)
            byte[i] = (uint8_t)rp_float_encode(elem, (double)in[i]);
}

/* ---- by way of the widest types ---- */

union wide {
    double f[PIECE];
    int64_t s[PIECE];
    uint64_t u[PIECE];
};

#define INT_LIST(X)     \
    X(S8, int8_t, s)    \
    X(S16, int16_t, s)  \
    X(S32, int32_t, s)  \
    X(S64, int64_t, s)  \
    X(U8, uint8_t, u)   \
    X(U16, uint16_t, u) \
    X(U32, uint32_t, u) \
    X(U64, uint64_t, u) \
    X(PRED, uint8_t, u) \
    X(S4, int8_t, s)    \
    X(S2, int8_t, s)    \
    X(S1, int8_t, s)    \
    X(U4, uint8_t, u)   \
    X(U2, uint8_t, u)   \
    X(U1, uint8_t, u)

/* Fetches integers unchanged; returns 's', 'u' or 'f' for the member that was set. */
static char fetch(unsigned elem, const void *in, size_t n, union wide *w)
{
    float piece[PIECE];

    switch (elem) {
#define FETCH(id, type, member)                                      \
    case RP_ELEM_##id:                                               \
        for (size_t i = 0; i < n; i++)                               \
            w->member[i] = (type)((const type *)in)[i]; /* NOLINT */ \
        return #member[0];
        INT_LIST(FETCH)
#undef FETCH
    case RP_ELEM_F64:
        memcpy(w->f, in, n * sizeof(double));
        return 'f';
    default:
        rp_widen(elem, n, piece, in);
        for (size_t i = 0; i < n; i++)
            w->f[i] = (double)piece[i];
        return 'f';
    }
}

/* Clamps to the range of integers. */
static int64_t saturate_s(double x, unsigned bits)
{
    double end = ldexp(1, (int)bits - 1);

    if (x != x)
        return 0;
    if (x >= end)
        return (int64_t)(UINT64_MAX >> (65 - bits));
    return x <= -end ? (int64_t)(-(UINT64_MAX >> (65 - bits)) - 1) : (int64_t)x;
}

static uint64_t saturate_u(double x, unsigned bits)
{
    if (!(x > 0))
        return 0;
    return x >= ldexp(1, (int)bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)x;
}

static void to_integers(unsigned elem, union wide *w, size_t n)
{
    unsigned bits = rp_elem_bits(elem);
    bool is_signed = rp_elem_is_signed(elem);

    for (size_t i = 0; i < n; i++)
        if (elem == RP_ELEM_PRED)
            w->u[i] = w->f[i] != 0;
        else if (is_signed)
            w->s[i] = saturate_s(w->f[i], bits);
        else
            w->u[i] = saturate_u(w->f[i], bits);
}

static void store_integers(unsigned elem, void *out, const union wide *w, size_t n)
{
    switch (elem) {
    case RP_ELEM_PRED:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = w->u[i] != 0;
        return;
#define STORE(id, type)                       \
    case RP_ELEM_##id:                        \
        for (size_t i = 0; i < n; i++)        \
            ((type *)out)[i] = (type)w->u[i]; \
        return;
        STORE(S16, int16_t)
        STORE(U16, uint16_t)
        STORE(S32, int32_t)
        STORE(U32, uint32_t)
        STORE(S64, int64_t)
        STORE(U64, uint64_t)
#undef STORE
    default:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = (uint8_t)w->u[i];
        if (rp_elem_bits(elem) < 8) {
            /* Cuts to the bits of a type under a byte; the sign fills the rest. */
            uint8_t *bytes = out;
            unsigned bits = rp_elem_bits(elem), mask = (1u << bits) - 1;

            for (size_t i = 0; i < n; i++) {
                unsigned b = bytes[i] & mask;

                bytes[i] = (uint8_t)(rp_elem_is_signed(elem) && b >> (bits - 1) ? b | ~mask : b);
            }
        }
    }
}

static void store_floats(unsigned elem, void *out, const union wide *w, char form, size_t n)
{
    float piece[PIECE];

    if (elem == RP_ELEM_F64) {
        for (size_t i = 0; i < n; i++)
            ((double *)out)[i] = form == 'f'   ? w->f[i]
                                 : form == 's' ? (double)w->s[i]
                                               : (double)w->u[i];
        return;
    }
    for (size_t i = 0; i < n; i++)
        piece[i] = form == 'f' ? (float)w->f[i] : form == 's' ? (float)w->s[i] : (float)w->u[i];
    rp_narrow(elem, n, out, piece);
}

static RP_LANE(convert_any)
{
    size_t from = (rp_elem_bits(lane->from) + 7) / 8, to = (rp_elem_bits(lane->to) + 7) / 8;
    union wide w;

    for (size_t at = 0; at < n; at += PIECE) {
        size_t m = n - at < PIECE ? n - at : PIECE;
        char form = fetch(lane->from, (const char *)a + at * from, m, &w);

        if (rp_elem_is_float(lane->to)) {
            store_floats(lane->to, (char *)out + at * to, &w, form, m);
            continue;
        }
        if (form == 'f')
            to_integers(lane->to, &w, m);
        store_integers(lane->to, (char *)out + at * to, &w, m);
    }
}

static RP_LANE(copy_elements)
{
    memmove(out, a, n * ((rp_elem_bits(lane->from) + 7) / 8));
}

static RP_LANE(widen_lane)
{
    rp_widen(lane->from, n, out, a);
}

static RP_LANE(narrow_lane)
{
    rp_narrow(lane->to, n, out, a);
}

/* Converts to and between complex types; the imaginary part of a real number is zero. */
static RP_LANE(convert_complex)
{
    bool pairs = rp_elem_is_complex(lane->from);
    unsigned from = lane->from == RP_ELEM_C64    ? RP_ELEM_F32
                    : lane->from == RP_ELEM_C128 ? RP_ELEM_F64
                                                 : lane->from;
    size_t unit = (size_t)((rp_elem_bits(from) + 7) / 8) * (pairs ? 2 : 1);
    bool real = !rp_elem_is_complex(lane->to), wide = lane->to == RP_ELEM_C128;
    struct rp_lane part = {.from = (uint8_t)from,
                           .to = real   ? lane->to
                                 : wide ? RP_ELEM_F64
                                        : RP_ELEM_F32};
    size_t to = (rp_elem_bits(part.to) + 7) / 8;

    for (size_t i = 0; i < n; i++) {
        const char *in = (const char *)a + i * unit;
        char *at = (char *)out + i * to * (real ? 1 : 2);

        convert_any(&part, 1, at, in, NULL, NULL);
        if (!real && pairs)
            convert_any(&part, 1, at + to, in + unit / 2, NULL, NULL);
        else if (!real)
            memset(at + to, 0, to);
    }
}

/* Takes the low half, as generators do with their counters. */
RP_CLONES_FEW static RP_LANE(halve_lane)
{
    const uint64_t *in = a;
    uint32_t *to = out;

    for (size_t i = 0; i < n; i++)
        to[i] = (uint32_t)in[i];
}

rp_lane_fn *rp_lane_convert(unsigned from, unsigned to)
{
    if (!rp_elem_bits(from) || !rp_elem_bits(to))
        return NULL;
    if (from == to)
        return copy_elements;
    if (rp_elem_is_complex(from) || rp_elem_is_complex(to))
        return convert_complex;
    if ((from == RP_ELEM_U64 || from == RP_ELEM_S64) && (to == RP_ELEM_U32 || to == RP_ELEM_S32))
        return halve_lane;
    if (to == RP_ELEM_F32 && rp_elem_is_small_float(from))
        return widen_lane;
    if (from == RP_ELEM_F32 && rp_elem_is_small_float(to))
        return narrow_lane;
    return convert_any;
}
