/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes functions that StableHLO programs call by name and HLO has no opcode for (the dialect
 * CHLO), one element at a time in double precision. XLA expands them into polynomials before it
 * compiles.
 */
#include "exec/data/complex.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* ---- functions of one number ---- */

/* Applies Halley's method to erfc, which is exact where erf is close to 1. */
static double special_erf_inv(double y)
{
    double a = fabs(y);

    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, y) : NAN;
    double t = log1p(-a * a);
    double x = 2 / (PI * 0.147) + t / 2;
    x = sqrt(sqrt(x * x - t / 0.147) - x);
    for (int i = 0; i < 4 && a > 0; i++) {
        double off = a < 0.5 ? erf(x) - a : (1 - a) - erfc(x);
        double u = off / (2 / sqrt(PI) * exp(-x * x));

        x -= u / (1 + x * u);
    }
    return copysign(a > 0 ? x : 0, y);
}

static double special_lgamma(double x)
{
    int sign;

    return lgamma_r(x == 0 ? 0 : x, &sign); /* subnormals count as zero */
}

static double special_digamma(double x)
{
    static const double series[] = {-1.0 / 12,  1.0 / 120,     -1.0 / 252,  1.0 / 240,
                                    -1.0 / 132, 691.0 / 32760, -1.0 / 12.0, 3617.0 / 8160};
    double sum = 0, square, power;

    if (x <= 0 && x == floor(x))
        return NAN;
    if (x < 0.5)
        return special_digamma(1 - x) - PI / tan(PI * (x - floor(x + 0.5)));
    while (x < 16) {
        sum -= 1 / x;
        x += 1;
    }
    square = power = 1 / (x * x);
    sum += log(x) - 0.5 / x;
    for (size_t i = 0; i < sizeof series / sizeof *series; i++, power *= square)
        sum += series[i] * power;
    return sum;
}

/* exp(-|x|) I1(x), by the power series, whose terms have one sign, then by the asymptotic one. */
static double special_bessel_i1e(double x)
{
    double a = fabs(x), term, sum;

    if (a < 25) {
        sum = term = a / 2;
        for (int k = 1; k < 200 && term > sum * 1e-18; k++)
            sum += term *= a * a / 4 / k / (k + 1);
        return copysign(sum * exp(-a), x);
    }
    sum = term = 1;
    for (int k = 1; k < 20; k++)
        sum += term *= -(4 - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8 * a);
    return copysign(sum / (sqrt(2 * PI) * sqrt(a)), x); /* 2 PI a may be out of range */
}

static double special_is_inf(double x)
{
    return isinf(x) != 0;
}

static double special_is_pos_inf(double x)
{
    return isinf(x) && x > 0;
}

static double special_is_neg_inf(double x)
{
    return isinf(x) && x < 0;
}

static double special_conj(double x)
{
    return x;
}

static double special_square(double x)
{
    return x * x;
}

/* ---- of two ---- */

/* Hurwitz's zeta function by the formula of Euler and Maclaurin. */
static double special_zeta(double x, double q)
{
    static const double bernoulli[] = {1.0 / 12,       -1.0 / 720,
                                       1.0 / 30240,    -1.0 / 1209600,
                                       1.0 / 47900160, -1.8924375803183791606e9,
                                       7.47242496e10,  -2.950130727918164224e12};
    double sum = 0, at;

    if (x == 1)
        return INFINITY;
    if (x < 1 || isnan(x) || isnan(q))
        return NAN;
    if (q <= 0 && q == floor(q))
        return INFINITY;
    if (q <= 0 && x != floor(x))
        return NAN;
    for (at = q; at < q + 16 || at < 16; at++)
        sum += pow(at, -x);
    sum += pow(at, 1 - x) / (x - 1) + 0.5 * pow(at, -x);
    double factor = x;
    double power = pow(at, -x - 1);
    for (int k = 0; k < 8; k++) {
        double b = k < 5 ? bernoulli[k] : 1 / bernoulli[k];

        sum += b * factor * power;
        factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
        power /= at * at;
    }
    return sum;
}

static double special_polygamma(double n, double x)
{
    if (n == 0)
        return special_digamma(x);
    if (n < 0 || n != floor(n))
        return NAN;
    return (fmod(n, 2) == 0 ? -1 : 1) * exp(special_lgamma(n + 1)) * special_zeta(n + 1, x);
}

/* ---- the table ---- */

static const struct special {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    double complex (*whole)(double complex); /* of complex types */
} specials[] = {
    {"chlo.erf_inv", special_erf_inv, NULL, NULL},
    {"chlo.erfc", erfc, NULL, NULL},
    {"chlo.erf", erf, NULL, NULL},
    {"chlo.lgamma", special_lgamma, NULL, NULL},
    {"chlo.digamma", special_digamma, NULL, NULL},
    {"chlo.bessel_i1e", special_bessel_i1e, NULL, NULL},
    {"chlo.is_inf", special_is_inf, NULL, NULL},
    {"chlo.is_pos_inf", special_is_pos_inf, NULL, NULL},
    {"chlo.is_neg_inf", special_is_neg_inf, NULL, NULL},
    {"chlo.conj", special_conj, NULL, conj},
    {"chlo.square", special_square, NULL, NULL},
    {"chlo.atan", atan, NULL, catan},
    {"chlo.zeta", NULL, special_zeta, NULL},
    {"chlo.polygamma", NULL, special_polygamma, NULL},
    {"chlo.next_after", NULL, nextafter, NULL},
};

static const struct special *find_special(const struct rp_node *node)
{
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (!strcmp(specials[i].name, node->opcode))
            return &specials[i];
    return NULL;
}

RP_PREPARE(rp_special_prepare)
{
    const struct special *f = find_special(node);
    const struct rp_value_shape *of = node->nin ? rp_node_operand(plan, node, 0) : NULL;

    if (!f)
        return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported operation");
    if (node->nin != (f->two ? 2u : 1u) || of->elem == RP_ELEM_TUPLE || of->n != node->shape->n ||
        (f->two && rp_node_operand(plan, node, 1)->n != of->n))
        return rp_node_error(node, RP_FORMAT, err, "the operands do not fit the result");
    if (rp_elem_is_complex(of->elem) && !f->whole)
        return rp_node_error(node, RP_UNSUPPORTED, err, "complex operands are not supported");
    return RP_OK;
}

/* Numbers floats in their order, including subnormal ones; both zeros are 0. */
static int64_t float_rank(uint64_t bits, uint64_t sign)
{
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

/* The next number of the type, not of double. */
static void next_after(const struct rp_tensor *x, const struct rp_tensor *y, size_t i,
                       struct rp_tensor *out)
{
    double from = rp_tensor_number(x, i), to = rp_tensor_number(y, i);
    uint64_t bits = rp_tensor_bits(x, i), sign = UINT64_C(1) << (8 * x->unit - 1);
    int64_t at = float_rank(bits, sign), end = float_rank(rp_tensor_bits(y, i), sign);

    if (isnan(from) || isnan(to)) {
        rp_tensor_set(out, i, isnan(from) ? from : to);
        return;
    }
    bits = rp_tensor_bits(y, i);
    if (at != end && from != to) { /* two subnormal numbers count as equal */
        at += end > at ? 1 : -1;
        bits = at < 0 ? sign | (uint64_t)-at : at == 0 && end > 0 ? sign : (uint64_t)at;
    }
    memcpy(out->data + i * out->unit, &bits, out->unit);
}

static void set_complex(struct rp_tensor *t, size_t i, double complex value)
{
    float narrow[2] = {(float)creal(value), (float)cimag(value)};
    double wide[2] = {creal(value), cimag(value)};

    memcpy(t->data + i * t->unit, t->elem == RP_ELEM_C64 ? (void *)narrow : (void *)wide, t->unit);
}

static RP_KERNEL(special_run)
{
    const struct special *f = find_special(node);

    RP_TRY(rp_node_result(node, out, err));
    for (size_t i = 0; i < (*out)->n; i++) {
        double x = rp_tensor_number(in[0], i);

        if (in[0]->elem == RP_ELEM_BF16 && fabs(x) < 0x1p-126)
            x = copysign(0, x); /* subnormals are flushed as in f32, in which XLA computes */
        if (rp_elem_is_complex(in[0]->elem))
            set_complex(*out, i, f->whole(CMPLX(x, rp_tensor_imaginary(in[0], i))));
        else if (f->two == nextafter)
            next_after(in[0], in[1], i, *out);
        else if ((*out)->elem == RP_ELEM_PRED)
            rp_tensor_set_integer(*out, i, f->one(x) != 0);
        else
            rp_tensor_set(*out, i, f->two ? f->two(x, rp_tensor_number(in[1], i)) : f->one(x));
    }
    return RP_OK;
}

const struct rp_kernel rp_kernels_special[] = {
    {RP_OP_FOREIGN, rp_special_prepare, special_run},
    {0, NULL, NULL},
};
