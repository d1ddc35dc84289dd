/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise operations on f32 and f64, written once for both types. Semantics are those of XLA:
 * maximum, minimum and clamp pass NaN on, sign keeps NaN and the sign of zero, comparisons with NaN
 * are false except NE, the total order sorts -NaN < -inf < ... < -0 < +0 < ... < NaN. Subnormal
 * numbers count as zero (subnormals.h); an operation that returns its operand gives a zero or the
 * number, as in XLA.
 */
#include "exec/eval/lanes.h"
#include "program/opcodes.h"

#include <math.h>

#define PLAIN(name) static RP_LANE(name)
#define LANE(name)  RP_CLONES PLAIN(name)

/* X(name, expression over x, y, z); F(f) is the function of the type */
#define UNARY_LIST(X)                                                   \
    X(ABS, abs, F(fabs)(x))                                             \
    X(NEGATE, negate, -x)                                               \
    X(SQRT, sqrt, F(sqrt)(x))                                           \
    X(RSQRT, rsqrt, 1 / F(sqrt)(x))                                     \
    X(FLOOR, floor, F(floor)(x))                                        \
    X(CEIL, ceil, F(ceil)(x))                                           \
    X(ROUND_NEAREST_EVEN, round_even, F(nearbyint)(x))                  \
    X(SIGN, sign, x != x ? x : x == 0 ? N(flushed)(x) : x < 0 ? -1 : 1) \
    X(REAL, real, x)                                                    \
    X(COPY, copy, x)

/* These call a function for each element, whatever the machine. */
#define UNARY_CALL_LIST(X)                                   \
    X(EXP, exp, F(exp)(x))                                   \
    X(EXPM1, expm1, x == 0 ? x : F(expm1)(x))                \
    X(LOG, log, x == 0 ? -(T)INFINITY : F(log)(x))           \
    X(LOG1P, log1p, F(log1p)(N(flushed)(x)))                 \
    X(CBRT, cbrt, F(cbrt)(x))                                \
    X(SINE, sine, F(sin)(x))                                 \
    X(COSINE, cosine, F(cos)(x))                             \
    X(TAN, tan, F(tan)(x))                                   \
    X(SINH, sinh, F(sinh)(N(flushed)(x)))                    \
    X(COSH, cosh, F(cosh)(x))                                \
    X(TANH, tanh, sizeof(T) == 4 && x == 0 ? x : F(tanh)(x)) \
    X(ASIN, asin, F(asin)(x))                                \
    X(ACOS, acos, F(acos)(x))                                \
    X(ASINH, asinh, F(asinh)(N(flushed)(x)))                 \
    X(ACOSH, acosh, F(acosh)(x))                             \
    X(ATANH, atanh, F(atanh)(N(flushed)(x)))                 \
    X(ERF, erf, F(erf)(x))                                   \
    X(LOGISTIC, logistic, 1 / (1 + F(exp)(-x)))              \
    X(ROUND_NEAREST_AFZ, round_afz, F(round)(x))

#define BINARY_LIST(X)                               \
    X(ADD, add, x + y)                               \
    X(SUBTRACT, subtract, x - y)                     \
    X(MULTIPLY, multiply, x *y)                      \
    X(DIVIDE, divide, x / y)                         \
    X(MAXIMUM, maximum, N(flushed)(N(larger)(x, y))) \
    X(MINIMUM, minimum, N(flushed)(N(smaller)(x, y)))

#define BINARY_CALL_LIST(X)                \
    X(REMAINDER, remainder, F(fmod)(x, y)) \
    X(POWER, power, F(pow)(x, y))          \
    X(ATAN2, atan2, F(atan2)(x, y))

#define COMPARE_LIST(X) \
    X(EQ, eq, x == y)   \
    X(NE, ne, x != y)   \
    X(GE, ge, x >= y)   \
    X(GT, gt, x > y)    \
    X(LE, le, x <= y)   \
    X(LT, lt, x < y)

#define F(fn)   fn##f
#define T       float
#define N(name) name##_f32
#define BITS    int32_t
#define UBITS   uint32_t
#include "exec/eval/lanes_float.inc"
#undef F
#undef T
#undef N
#undef BITS
#undef UBITS

#define F(fn)   fn
#define T       double
#define N(name) name##_f64
#define BITS    int64_t
#define UBITS   uint64_t
#include "exec/eval/lanes_float.inc"

#define BY_BITS(bits, name, infinite)                                     \
    static RP_LANE(name)                                                  \
    {                                                                     \
        const bits *x = a, *y = b, rest = (bits)-1 >> 1;                  \
                                                                          \
        for (size_t i = 0; i < n; i++) {                                  \
            bool same = x[i] == y[i] && (x[i] & rest) <= (infinite);      \
                                                                          \
            same |= !((x[i] | y[i]) & rest); /* zeros */                  \
            ((uint8_t *)out)[i] = same == (lane->direction == RP_CMP_EQ); \
        }                                                                 \
    }
BY_BITS(uint32_t, by_bits_f32, UINT32_C(0x7f800000))
BY_BITS(uint64_t, by_bits_f64, UINT64_C(0x7ff) << 52)

rp_lane_fn *rp_lane_by_bits(bool wide)
{
    return wide ? by_bits_f64 : by_bits_f32;
}

rp_lane_fn *rp_lane_float(unsigned opcode, bool wide, unsigned direction, bool total_order)
{
    if (wide)
        return find_f64(opcode, direction, total_order);
    return find_f32(opcode, direction, total_order);
}
