/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of f32 as loops that a compiler can turn into vector instructions: no branches, no
 * calls. Errors are a few units in the last place, well inside the tolerance of f32.
 *
 *   exp    2^n * e^r, |r| <= ln(2) / 2, a polynomial of degree 6
 *   log    exponent * ln(2) + a polynomial of the mantissa in [sqrt(1/2), sqrt(2)]
 *   tanh   x * P(x^2) / Q(x^2), clamped where f32 cannot tell it from 1
 */
#include "exec/eval/lanes.h"
#include "exec/fast/kernels.h"
#include "program/opcodes.h"

#include <math.h>

static inline float as_float(int32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int32_t as_bits(float x)
{
    int32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float fast_exp(float x)
{
    float c = x > -104.0f ? (x < 89.0f ? x : 89.0f) : -104.0f; /* NaN too: see the end */
    float n = (c * 1.44269504f + 12582912.0f) - 12582912.0f;
    float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    int32_t e = (int32_t)n, half = e / 2;

    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* in two steps: the factor alone may be beyond the range where the product is not */
    p = p * as_float((int32_t)((uint32_t)(half + 127) << 23)) *
        as_float((int32_t)((uint32_t)(e - half + 127) << 23));
    return x != x ? x : p;
}

static inline float fast_log(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    uint32_t bits = (uint32_t)as_bits(scaled);
    int32_t e;
    float m, r, p, offset = x < 1.17549435e-38f ? -23.0f : 0.0f, special;

    e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    m = as_float((int32_t)(bits - ((uint32_t)e << 23))) - 1.0f;
    r = m * m;
    p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * r;
    offset += (float)e;
    p = p + offset * -2.12194440e-4f - 0.5f * r + m + offset * 0.693359375f;
    special = x == 0 ? -INFINITY : x < 0 ? NAN : x;
    return x > 0 && x < INFINITY ? p : special;
}

static inline float fast_tanh(float x)
{
    float c = x < -7.9053111f ? -7.9053111f : x > 7.9053111f ? 7.9053111f : x, s = c * c;
    float p = -2.76076847742355e-16f, q = 1.19825839466702e-06f;

    p = p * s + 2.00018790482477e-13f;
    p = p * s - 8.60467152213735e-11f;
    p = p * s + 5.12229709037114e-08f;
    p = p * s + 1.48572235717979e-05f;
    p = p * s + 6.37261928875436e-04f;
    p = p * s + 4.89352455891786e-03f;
    q = q * s + 1.18534705686654e-04f;
    q = q * s + 2.26843463243900e-03f;
    q = q * s + 4.89352518554385e-03f;
    p = c * p / q;
    return x != x ? x : (x < 4e-4f && x > -4e-4f) ? x : p;
}

#define LANE(name, expr)                                                                       \
    RP_CLONES static void name(const struct rp_lane *lane, size_t n, void *out, const void *a, \
                               const void *b, const void *c)                                   \
    {                                                                                          \
        const float *in = a;                                                                   \
        float *to = out;                                                                       \
                                                                                               \
        (void)lane;                                                                            \
        (void)b;                                                                               \
        (void)c;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                       \
            float x = in[i];                                                                   \
                                                                                               \
            to[i] = (expr);                                                                    \
        }                                                                                      \
    }
LANE(lane_exp, fast_exp(x))
LANE(lane_log, fast_log(x))
LANE(lane_tanh, fast_tanh(x))
LANE(lane_logistic, 1.0f / (1.0f + fast_exp(-x)))

bool rp_fast_lane(unsigned opcode, struct rp_lane *lane)
{
    rp_lane_fn *fn = opcode == RP_OP_EXP        ? lane_exp
                     : opcode == RP_OP_LOG      ? lane_log
                     : opcode == RP_OP_TANH     ? lane_tanh
                     : opcode == RP_OP_LOGISTIC ? lane_logistic
                                                : NULL;

    if (!fn || lane->from == RP_ELEM_F64 || rp_elem_is_complex(lane->from))
        return false;
    if (lane->inner)
        lane->inner = fn;
    else
        lane->fn = fn;
    return true;
}
