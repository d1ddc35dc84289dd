/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operations on c64 and c128, written once for both types. */
#include "exec/data/complex.h"
#include "exec/eval/lanes.h"
#include "program/opcodes.h"

#include <math.h>

#define LANE(name) static RP_LANE(name)

#define UNARY_LIST(X)                            \
    X(NEGATE, negate, -x)                        \
    X(EXP, exp, N(exp_of)(x))                    \
    X(EXPM1, expm1, N(expm1_of)(x))              \
    X(LOG, log, N(log_of)(x))                    \
    X(LOG1P, log1p, N(log1p_of)(x))              \
    X(SQRT, sqrt, N(sqrt_of)(x))                 \
    X(RSQRT, rsqrt, 1 / F(csqrt)(x))             \
    X(CBRT, cbrt, F(cpow)(x, (R)1 / 3))          \
    X(SINE, sine, F(csin)(x))                    \
    X(COSINE, cosine, F(ccos)(x))                \
    X(TAN, tan, N(tan_of)(x))                    \
    X(SINH, sinh, N(sinh_of)(x))                 \
    X(COSH, cosh, N(cosh_of)(x))                 \
    X(TANH, tanh, N(tanh_of)(x))                 \
    X(ASIN, asin, F(casin)(N(above)(x)))         \
    X(ACOS, acos, F(cacos)(N(above)(x)))         \
    X(ASINH, asinh, F(casinh)(N(right)(x)))      \
    X(ACOSH, acosh, F(cacosh)(N(above)(x)))      \
    X(ATANH, atanh, F(catanh)(x))                \
    X(LOGISTIC, logistic, 1 / (1 + F(cexp)(-x))) \
    X(SIGN, sign, x == 0 ? x : x / N(abs_of)(x)) \
    X(COPY, copy, x)

#define BINARY_LIST(X)                      \
    X(ADD, add, x + y)                      \
    X(SUBTRACT, subtract, x - y)            \
    X(MULTIPLY, multiply, N(product)(x, y)) \
    X(DIVIDE, divide, x / y)                \
    X(ATAN2, atan2, N(atan2_of)(x, y))      \
    X(POWER, power, N(power_of)(x, y))

/* Operations with real results. */
#define PART_LIST(X)           \
    X(ABS, abs, N(abs_of)(x))  \
    X(REAL, real, F(creal)(x)) \
    X(IMAG, imag, F(cimag)(x))

#define F(fn)   fn##f
#define R       float
#define T       float complex
#define MAKE    CMPLXF
#define N(name) name##_c64
#include "exec/eval/lanes_complex.inc"
#undef F
#undef R
#undef T
#undef MAKE
#undef N

#define F(fn)   fn
#define R       double
#define T       double complex
#define MAKE    CMPLX
#define N(name) name##_c128
#include "exec/eval/lanes_complex.inc"

rp_lane_fn *rp_lane_complex(unsigned opcode, bool wide, unsigned direction)
{
    return wide ? find_c128(opcode, direction) : find_c64(opcode, direction);
}
