/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operations on every class of types, on both built-in engines. Values by hand. */
#include "exec_fixture.h"

#define MODULE "HloModule m\nENTRY e {\n"

static const struct exec_case floats[] = {
    {"add sub mul div",
     MODULE " a = f32[2] constant({6, -1})\n b = f32[2] constant({4, 0.5})\n s = f32[2] add(a, b)\n"
            " d = f32[2] subtract(a, b)\n p = f32[2] multiply(a, b)\n q = f32[2] divide(a, b)\n"
            " ROOT t = (f32[2], f32[2], f32[2], f32[2]) tuple(s, d, p, q)\n}\n",
     8,
     {10, -0.5, 2, -1.5, 24, -0.5, 1.5, -2}},
    {"NaN in maximum, minimum, sign and compare",
     MODULE " a = f32[3] constant({nan, 1, -0.0})\n b = f32[3] constant({1, nan, 0})\n"
            " x = f32[3] maximum(a, b)\n i = f32[3] minimum(a, b)\n"
            " e = pred[3] compare(a, b), direction=EQ\n n = pred[3] compare(a, b), direction=NE\n"
            " g = f32[3] sign(a)\n"
            " ROOT t = (f32[3], f32[3], pred[3], pred[3], f32[3]) tuple(x, i, e, n, g)\n}\n",
     15,
     {NAN, NAN, 0, NAN, NAN, 0, 0, 0, 1, 1, 1, 0, NAN, 1, 0}},
    {"total order",
     MODULE " a = f32[4] constant({-nan, -0.0, inf, 1})\n b = f32[4] constant({-inf, 0, nan, 1})\n"
            " ROOT l = pred[4] compare(a, b), direction=LT, type=TOTALORDER\n}\n",
     4,
     {1, 1, 1, 0}},
    {"functions",
     MODULE " a = f32[3] constant({0, 1, -1})\n e = f32[3] exponential(a)\n t = f32[3] tanh(a)\n"
            " s = f32[3] logistic(a)\n r = f32[3] erf(a)\n"
            " ROOT o = (f32[3], f32[3], f32[3], f32[3]) tuple(e, t, s, r)\n}\n",
     12,
     {1, 2.718281828, 0.367879441, 0, 0.761594156, -0.761594156, 0.5, 0.731058579, 0.268941421, 0,
      0.842700793, -0.842700793}},
    {"log, sqrt, rsqrt, power",
     MODULE
     " a = f32[3] constant({4, 0, -1})\n b = f32[3] constant({0.5, 2, 3})\n"
     " l = f32[3] log(a)\n s = f32[3] sqrt(a)\n r = f32[3] rsqrt(a)\n"
     " p = f32[3] power(a, b)\n ROOT o = (f32[3], f32[3], f32[3], f32[3]) tuple(l, s, r, p)\n"
     "}\n",
     12,
     {1.386294361, -INFINITY, NAN, 2, 0, NAN, 0.5, INFINITY, NAN, 2, 0, -1}},
    {"rounding",
     MODULE " a = f32[4] constant({2.5, -2.5, 0.5, 1.6})\n e = f32[4] round-nearest-even(a)\n"
            " z = f32[4] round-nearest-afz(a)\n f = f32[4] floor(a)\n c = f32[4] ceil(a)\n"
            " ROOT o = (f32[4], f32[4], f32[4], f32[4]) tuple(e, z, f, c)\n}\n",
     16,
     {2, -2, 0, 2, 3, -3, 1, 2, 2, -3, 0, 1, 3, -2, 1, 2}},
    {"clamp and select with scalars",
     MODULE " a = f32[3] constant({-5, 0.5, 9})\n l = f32[] constant(0)\n h = f32[] constant(1)\n"
            " c = f32[3] clamp(l, a, h)\n y = pred[] constant(true)\n"
            " ROOT s = f32[3] select(y, c, a)\n}\n",
     3,
     {0, 0.5, 1}},
    {"bf16 is rounded behind each operation",
     MODULE " a = bf16[2] constant({256, 1})\n b = bf16[2] constant({1, 0.00390625})\n"
            " s = bf16[2] add(a, b)\n d = bf16[2] subtract(s, a)\n"
            " ROOT o = (bf16[2], bf16[2]) tuple(s, d)\n}\n",
     4,
     {256, 1, 0, 0}},
    {"f16 and f8 ranges",
     MODULE " a = f32[3] constant({65520, 449, 500})\n h = f16[3] convert(a)\n"
            " f = f8e4m3fn[3] convert(a)\n g = f8e5m2[3] convert(a)\n w = f32[3] convert(f)\n"
            " ROOT o = (f16[3], f32[3], f8e5m2[3]) tuple(h, w, g)\n}\n",
     9,
     {INFINITY, 449, 500, NAN, 448, NAN, INFINITY, 448, 512}},
    {"f64",
     MODULE " a = f64[2] constant({1, 1e-17})\n s = f64[2] add(a, a)\n l = f64[2] log-plus-one(a)\n"
            " ROOT o = (f64[2], f64[2]) tuple(s, l)\n}\n",
     4,
     {2, 2e-17, 0.69314718055994531, 1e-17}},
    {"reduce-precision",
     MODULE " a = f32[3] constant({1.3, 1e30, 1e-30})\n"
            " ROOT r = f32[3] reduce-precision(a), exponent_bits=5, mantissa_bits=2\n}\n",
     3,
     {1.25, INFINITY, 0}},
};

static const struct exec_case integers[] = {
    {"division and remainder by zero and at the end",
     MODULE " a = s32[4] constant({7, -7, -2147483648, 5})\n b = s32[4] constant({2, 2, -1, 0})\n"
            " q = s32[4] divide(a, b)\n r = s32[4] remainder(a, b)\n"
            " ROOT o = (s32[4], s32[4]) tuple(q, r)\n}\n",
     8,
     {3, -3, -2147483648.0, -1, 1, -1, 0, 5}},
    {"shifts beyond the width",
     MODULE " a = s8[3] constant({-128, 64, 1})\n b = s8[3] constant({7, 9, 8})\n"
            " l = s8[3] shift-left(a, b)\n g = s8[3] shift-right-logical(a, b)\n"
            " r = s8[3] shift-right-arithmetic(a, b)\n"
            " ROOT o = (s8[3], s8[3], s8[3]) tuple(l, g, r)\n}\n",
     9,
     {0, 0, 0, 1, 0, 0, -1, 0, 0}},
    {"unsigned wrap, counts and bits",
     MODULE " a = u8[3] constant({250, 1, 0})\n b = u8[3] constant({10, 2, 1})\n"
            " s = u8[3] add(a, b)\n d = u8[3] subtract(b, a)\n p = u8[3] popcnt(a)\n"
            " z = u8[3] count-leading-zeros(a)\n n = u8[3] not(a)\n"
            " ROOT o = (u8[3], u8[3], u8[3], u8[3], u8[3]) tuple(s, d, p, z, n)\n}\n",
     15,
     {4, 3, 1, 16, 1, 1, 6, 1, 0, 0, 7, 8, 5, 254, 255}},
    {"s4 wraps at its width",
     MODULE " a = s4[2] constant({7, -8})\n b = s4[2] constant({1, -1})\n s = s4[2] add(a, b)\n"
            " ROOT w = s32[2] convert(s)\n}\n",
     2,
     {-8, 7}},
    {"float to integer saturates",
     MODULE " a = f32[5] constant({nan, 300, -300, 1.9, -1.9})\n b = s8[5] convert(a)\n"
            " c = u8[5] convert(a)\n p = pred[5] convert(a)\n"
            " ROOT o = (s8[5], u8[5], pred[5]) tuple(b, c, p)\n}\n",
     15,
     {0, 127, -128, 1, -1, 0, 255, 0, 1, 0, 1, 1, 1, 1, 1}},
    {"power of integers",
     MODULE " a = s32[4] constant({3, 2, -1, 5})\n b = s32[4] constant({4, -1, -3, 0})\n"
            " ROOT p = s32[4] power(a, b)\n}\n",
     4,
     {81, 0, -1, 1}},
    {"pred",
     MODULE " a = pred[2] constant({1, 0})\n b = pred[2] constant({1, 1})\n x = pred[2] xor(a, b)\n"
            " n = pred[2] not(a)\n y = pred[2] and(a, b)\n"
            " ROOT o = (pred[2], pred[2], pred[2]) tuple(x, n, y)\n}\n",
     6,
     {0, 1, 0, 1, 1, 0}},
};

static const struct exec_case complexes[] = {
    {"product, quotient, magnitude",
     MODULE
     " a = c64[1] constant({(3, 4)})\n b = c64[1] constant({(0, 1)})\n"
     " p = c64[1] multiply(a, b)\n q = c64[1] divide(a, b)\n m = f32[1] abs(a)\n"
     " i = f32[1] imag(a)\n ROOT o = (c64[1], c64[1], f32[1], f32[1]) tuple(p, q, m, i)\n}\n",
     6,
     {-4, 3, 4, -3, 5, 4}},
    {"of parts",
     MODULE " a = f64[2] constant({1, 2})\n b = f64[2] constant({3, 4})\n"
            " ROOT c = c128[2] complex(a, b)\n}\n",
     4,
     {1, 3, 2, 4}},
};

static const struct exec_case others[] = {
    {"subnormals are zeros, as in XLA on the CPU",
     MODULE " a = f32[2] constant({1e-40, -1e-40})\n z = f32[2] constant({0, 0})\n"
            " d = f64[1] constant({1e-310})\n l = f32[2] log(a)\n s = f32[2] sign(a)\n"
            " e = pred[2] compare(a, z), direction=EQ\n c = f32[2] ceil(a)\n"
            " k = f64[1] log(d)\n b = f32[2] constant({1e30, 1e30})\n p = f32[2] multiply(a, b)\n"
            " ROOT t = (f32[2], f32[2], pred[2], f32[2], f64[1], f32[2]) "
            "tuple(l, s, e, c, k, p)\n}\n",
     11,
     {-INFINITY, -INFINITY, 0, 0, 1, 1, 0, 0, -INFINITY, 0, 0}},
    {"complex numbers where XLA is not C",
     MODULE
     " re = f32[4] constant({-1, nan, inf, 0})\n im = f32[4] constant({-0.0, inf, inf, inf})\n"
     " a = c64[4] complex(re, im)\n s = c64[4] sqrt(a)\n s0 = c64[1] slice(s), slice={[0:1]}\n"
     " b = f32[4] abs(a)\n e = c64[4] exponential(a)\n"
     " e2 = c64[1] slice(e), slice={[2:3]}\n"
     " ROOT t = (c64[1], f32[4], c64[1]) tuple(s0, b, e2)\n}\n",
     8,
     {0, 1, 1, NAN, INFINITY, INFINITY, NAN, NAN}},
    {"bitcast-convert between widths",
     MODULE " a = f32[1] constant({1})\n ROOT b = u16[1,2] bitcast-convert(a)\n}\n",
     2,
     {0, 16256}},
    {"map",
     "HloModule m\nf {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n p = f32[] multiply(x, y)\n"
     " ROOT r = f32[] add(p, x)\n}\nENTRY e {\n a = f32[2] constant({2, 3})\n"
     " b = f32[2] constant({5, 7})\n ROOT m = f32[2] map(a, b), dimensions={0}, to_apply=f\n}\n",
     2,
     {12, 24}},
    {"a chain with broadcasts, which fast reads in place",
     MODULE
     " a = f32[2,3] constant({{1,2,3},{4,5,6}})\n r = f32[3] constant({10,20,30})\n"
     " c = f32[2] constant({100,200})\n s = f32[] constant(0.5)\n"
     " rb = f32[2,3] broadcast(r), dimensions={1}\n cb = f32[2,3] broadcast(c), dimensions={0}\n"
     " sb = f32[2,3] broadcast(s), dimensions={}\n x = f32[2,3] add(a, rb)\n"
     " y = f32[2,3] add(x, cb)\n z = f32[2,3] multiply(y, sb)\n n = f32[2,3] negate(x)\n"
     " ROOT o = (f32[2,3], f32[2,3]) tuple(z, n)\n}\n",
     12,
     {55.5, 61, 66.5, 107, 112.5, 118, -11, -22, -33, -14, -25, -36}},
};

static void elements(void **state)
{
    UNUSED_STATE(state);
    EXEC_ALL(floats);
    EXEC_ALL(integers);
    EXEC_ALL(complexes);
    EXEC_ALL(others);
}

int test_ref_element(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements)};

    return cmocka_run_group_tests_name("ref_element", tests, NULL, NULL);
}
