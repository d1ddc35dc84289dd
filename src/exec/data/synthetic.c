/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes synthetic inputs. Floats are normally distributed with a deviation of 1 / sqrt(size of the
 * first dimension of a matrix), so that products keep their magnitude; an input of a root, a
 * logarithm or a divisor is positive, and so on (synthetic_uses.c). Integers that become indices
 * stay below the size they index; other integers are small; pred is either. A matrix that is to be
 * decomposed is symmetric with a dominant diagonal. Every input has its own random stream.
 */
#include "exec/data/synthetic.h"

#include "program/floats.h"

#include <math.h>

static uint64_t splitmix_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t splitmix_next(uint64_t *state) /* splitmix64 */
{
    return splitmix_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

static double draw_uniform(uint64_t *state)
{
    return (double)(splitmix_next(state) >> 11) * 0x1p-53;
}

static double draw_normal(uint64_t *state)
{
    double u = 1 - draw_uniform(state), v = draw_uniform(state);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double draw_number(const struct rp_use *use, double scale, uint64_t *state)
{
    if (use->has_start)
        return use->start;
    if (use->below) /* an index once it is converted */
        return draw_uniform(state) * (double)use->below;
    switch (use->range) {
    case RP_USE_POSITIVE:
        return 0.1 + fabs(draw_normal(state));
    case RP_USE_UNIT:
        return 1.8 * draw_uniform(state) - 0.9;
    case RP_USE_ABOVE_ONE:
        return 1.1 + fabs(draw_normal(state));
    default:
        return draw_normal(state) * scale;
    }
}

/* The initial value of a reduction, rounded to an integer. */
static int64_t integer_start(const struct rp_tensor *t, double start)
{
    unsigned bits = rp_elem_bits(t->elem);
    bool negative = rp_elem_is_signed(t->elem);

    if (!isinf(start))
        return (int64_t)start;
    if (start < 0)
        return negative ? -(INT64_C(1) << (bits - 2)) * 2 : 0;
    return negative ? ((INT64_C(1) << (bits - 2)) - 1) * 2 + 1 : -1;
}

static int64_t draw_integer(const struct rp_tensor *t, const struct rp_use *use, uint64_t *state)
{
    unsigned bits = t->elem == RP_ELEM_PRED ? 1 : rp_elem_bits(t->elem);
    uint64_t most = bits > 3 ? 8 : UINT64_C(1) << (bits - rp_elem_is_signed(t->elem));

    if (use->has_start)
        return integer_start(t, use->start);
    if (use->below)
        return (int64_t)(splitmix_next(state) % (uint64_t)use->below);
    if (use->range == RP_USE_POSITIVE && most > 1) /* a divisor */
        return 1 + (int64_t)(splitmix_next(state) % (most - 1));
    return (int64_t)(splitmix_next(state) % most);
}

static void fill_input(struct rp_tensor *t, const struct rp_use *use, uint64_t *state)
{
    bool real = rp_elem_is_float(t->elem) || rp_elem_is_complex(t->elem);
    double scale = t->rank >= 2 && t->dims[0] > 1 ? 1 / sqrt((double)t->dims[0]) : 1;
    struct rp_tensor parts = {.elem = t->elem, .n = t->n, .unit = t->unit, .data = t->data};

    if (rp_elem_is_complex(t->elem)) { /* counts as twice as many parts */
        parts.elem = t->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;
        parts.n *= 2;
        parts.unit /= 2;
    }
    for (size_t i = 0; i < parts.n; i++)
        if (real)
            rp_tensor_set(&parts, i, draw_number(use, scale, state));
        else
            rp_tensor_set_integer(&parts, i, draw_integer(&parts, use, state));
    if (use->definite && rp_elem_is_float(t->elem)) {
        /* Makes a matrix symmetric, with a diagonal larger than the rest of each row. */
        size_t n = t->rank >= 2 ? (size_t)t->dims[t->rank - 1] : 0;

        if (n && t->dims[t->rank - 2] == (int64_t)n) {
            size_t matrices = t->n / (n * n);
            for (size_t m = 0; m < matrices; m++)
                for (size_t i = 0; i < n; i++) {
                    size_t row = (m * n + i) * n;

                    for (size_t k = 0; k < i; k++)
                        rp_tensor_set(t, (m * n + k) * n + i, rp_tensor_number(t, row + k));
                    rp_tensor_set(t, row + i, fabs(rp_tensor_number(t, row + i)) + (double)n);
                }
        }
    }
}

enum rp_code rp_synthetic_inputs(const struct rp_program *p, const struct rp_signature *slots,
                                 uint64_t seed, struct rp_tensor **out, struct rp_err *err)
{
    struct rp_uses *uses = NULL;
    enum rp_code code = p ? rp_uses_new(p, &uses, err) : RP_OK;

    for (size_t i = 0; i < slots->nin && code == RP_OK; i++) {
        const struct rp_slot *s = &slots->in[i];
        uint64_t state = splitmix_mix(splitmix_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) + i);
        struct rp_use use = {0};

        code = rp_tensor_new(s->elem, s->dims, s->rank, &out[i], err);
        if (uses)
            rp_uses_look(uses, slots, i, &use);
        if (code == RP_OK)
            fill_input(out[i], &use, &state);
    }
    rp_uses_free(uses);
    return code;
}
