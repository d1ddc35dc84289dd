/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of f32 as loops that a compiler can turn into vector instructions: no branches, no
 * calls. Errors are a few units in the last place, well inside the tolerance of f32.
 *
 *   exp    2^n * e^r, |r| <= ln(2) / 2, a polynomial of degree 6
 *   log    exponent * ln(2) + a polynomial of the mantissa in [sqrt(1/2), sqrt(2)]
 *   tanh   x * P(x^2) / Q(x^2), clamped where f32 cannot distinguish it from 1; erf likewise
 *   erf_inv  x * P(-log(1 - x^2)), two polynomials (Giles)
 */
#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/fast/kernels.h"
#include "program/floats.h"
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
    /* in two steps, because the factor alone may be out of range where the product is not */
    p = p * as_float((int32_t)((uint32_t)(half + 127) << 23)) *
        as_float((int32_t)((uint32_t)(e - half + 127) << 23));
    return x != x ? x : p;
}

static inline float fast_log(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    uint32_t bits = (uint32_t)as_bits(scaled);
    float offset = x < 1.17549435e-38f ? -23.0f : 0.0f;
    int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    float m = as_float((int32_t)(bits - ((uint32_t)e << 23))) - 1.0f;
    float r = m * m;
    float p = 7.0376836292e-2f;

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
    float special = x == 0 ? -INFINITY : x < 0 ? NAN : x;
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

static inline float fast_log1p(float x)
{
    float u = 1 + x, y = fast_log(u) * (x / (u - 1)); /* makes up for the rounding of u */
    float tiny = x * (1 - 0.5f * x);                  /* subnormals become zero */

    return u == 1 ? tiny : x < INFINITY ? y : x;
}

static inline float fast_erf(float x)
{
    float c = x < -4.0f ? -4.0f : x > 4.0f ? 4.0f : x, s = c * c;
    float p = -2.72614225801306e-10f, q = -1.45660718464996e-05f;

    p = p * s + 2.77068142495902e-08f;
    p = p * s - 2.10102402082508e-06f;
    p = p * s - 5.69250639462346e-05f;
    p = p * s - 7.34990630326855e-04f;
    p = p * s - 2.95459980854025e-03f;
    p = p * s - 1.60960333262415e-02f;
    q = q * s - 2.13374055278905e-04f;
    q = q * s - 1.68282697438203e-03f;
    q = q * s - 7.37332916720468e-03f;
    q = q * s - 1.42647390514189e-02f;
    return x != x ? x : c * (p / q); /* not c * p first: it would be subnormal where erf is not */
}

/* Uses one polynomial of 1 / x^2 on [1, 2], another one above, and one of x^2 below (Cephes). */
static inline float fast_erfc(float x)
{
    static const float low[9] = {
        2.326819970068386e-2f,  -1.387039388740657e-1f, 3.687424674597105e-1f,
        -5.824733027278666e-1f, 6.210004621745983e-1f,  -4.944515323274145e-1f,
        3.404879937665872e-1f,  -2.741127028184656e-1f, 5.638259427386472e-1f};
    static const float high[9] = {0,
                                  -1.047766399936249e+1f,
                                  1.297719955372516e+1f,
                                  -7.495518717768503e+0f,
                                  2.921019019210786e+0f,
                                  -1.015265279202700e+0f,
                                  4.218463358204948e-1f,
                                  -2.820767439740514e-1f,
                                  5.641895067754075e-1f};
    float a = fabsf(x), q = 1 / (a > 1 ? a : 1), y = q * q, s = x * x;
    bool is_low = a < 2;
    float p = is_low ? low[0] : high[0];

    for (int i = 1; i < 9; i++)
        p = p * y + (is_low ? low[i] : high[i]);
    float tail = fast_exp(-a * a) * q * p;
    tail = x < 0 ? 2 - tail : tail;
    float near = 7.853861353153693e-5f;
    near = near * s - 8.010193625184903e-4f;
    near = near * s + 5.188327685732524e-3f;
    near = near * s - 2.685381193529856e-2f;
    near = near * s + 1.128358514861418e-1f;
    near = near * s - 3.761262582423300e-1f;
    near = near * s + 1.128379165726710e+0f;
    return a > 1 ? tail : 1 - x * near; /* NaN: of x */
}

static inline float fast_erf_inv(float x)
{
    static const float near[9] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                  -4.39150654e-06f, 2.1858087e-04f,  -1.25372503e-03f,
                                  -4.17768164e-03f, 2.46640727e-01f, 1.50140941f};
    static const float far[9] = {-2.00214257e-04f, 1.00950558e-04f, 1.34934322e-03f,
                                 -3.67342844e-03f, 5.73950773e-03f, -7.6224613e-03f,
                                 9.43887047e-03f,  1.00167406f,     2.83297682f};
    float w = -fast_log((1 - x) * (1 + x));
    bool is_near = w < 5;
    float y = is_near ? w - 2.5f : sqrtf(w) - 3;
    float p = is_near ? near[0] : far[0];

    for (int i = 1; i < 9; i++)
        p = p * y + (is_near ? near[i] : far[i]);
    return x == 1 || x == -1 ? x * INFINITY : p * x;
}

#define LANE(name, expr)                 \
    RP_CLONES static RP_LANE(name)       \
    {                                    \
        const float *in = a;             \
        float *to = out;                 \
                                         \
        for (size_t i = 0; i < n; i++) { \
            float x = in[i];             \
                                         \
            to[i] = (expr);              \
        }                                \
    }
LANE(lane_exp, fast_exp(x))
LANE(lane_log, fast_log(x))
LANE(lane_tanh, fast_tanh(x))
LANE(lane_logistic, 1.0f / (1.0f + fast_exp(-x)))
LANE(lane_log1p, fast_log1p(x))
LANE(lane_erf, fast_erf(x))
LANE(lane_erfc, fast_erfc(x))
LANE(lane_erf_inv, fast_erf_inv(x))

bool rp_fast_lane(unsigned opcode, struct rp_lane *lane)
{
    rp_lane_fn *fn = opcode == RP_OP_EXP        ? lane_exp
                     : opcode == RP_OP_LOG      ? lane_log
                     : opcode == RP_OP_TANH     ? lane_tanh
                     : opcode == RP_OP_LOGISTIC ? lane_logistic
                     : opcode == RP_OP_LOG1P    ? lane_log1p
                     : opcode == RP_OP_ERF      ? lane_erf
                                                : NULL;

    if (!fn || lane->from == RP_ELEM_F64 || rp_elem_is_complex(lane->from))
        return false;
    *(lane->inner ? &lane->inner : &lane->fn) = fn;
    return true;
}

/* ---- functions without an opcode ---- */

#define SPECIAL_JOB 16384 /* elements */

struct special_run {
    const struct rp_tensor *in;
    struct rp_tensor *out;
    rp_lane_fn *fn;
};

static RP_JOB(special_job)
{
    const struct special_run *r = user;
    size_t at = job * SPECIAL_JOB, n = r->in->n - at < SPECIAL_JOB ? r->in->n - at : SPECIAL_JOB;

    r->fn(NULL, n, r->out->data + 4 * at, r->in->data + 4 * at, NULL, NULL);
    return RP_OK;
}

static rp_lane_fn *special_lane(const char *name)
{
    static const struct {
        const char *name;
        rp_lane_fn *fn;
    } lanes[] = {{"chlo.erf", lane_erf}, {"chlo.erfc", lane_erfc}, {"chlo.erf_inv", lane_erf_inv}};

    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        if (!strcmp(name, lanes[i].name))
            return lanes[i].fn;
    return NULL;
}

bool rp_fast_special_lane(const struct rp_plan *plan, const struct rp_node *node,
                          struct rp_lane *lane)
{
    rp_lane_fn *fn =
        node->code == RP_OP_FOREIGN && node->nin == 1 ? special_lane(node->opcode) : NULL;
    unsigned elem = node->shape->elem;

    if (!fn || !rp_elem_is_float(elem) || elem == RP_ELEM_F64 ||
        rp_node_operand(plan, node, 0)->elem != elem)
        return false;
    *lane = (struct rp_lane){.from = (uint8_t)elem, .to = (uint8_t)elem};
    if (!rp_lane_find(RP_OP_ERF, false, lane)) /* is also a function of one number */
        return false;
    *(lane->inner ? &lane->inner : &lane->fn) = fn;
    return true;
}

RP_KERNEL(rp_fast_special)
{
    struct special_run r = {.in = in[0], .fn = special_lane(node->opcode)};
    size_t jobs = (in[0]->n + SPECIAL_JOB - 1) / SPECIAL_JOB;

    if (!r.fn || in[0]->elem != RP_ELEM_F32 || node->shape->elem != RP_ELEM_F32)
        return e->plan->reference[RP_OP_FOREIGN]->run(e, node, in, out, err);
    RP_TRY(rp_node_result(node, out, err));
    r.out = *out;
    return rp_pool_each(e->pool, jobs, special_job, &r, err);
}
