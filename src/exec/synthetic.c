/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic inputs. Floats are normal with a deviation of 1 / sqrt(size of the first dimension of a
 * matrix), so that products keep their magnitude; where an input goes straight into a square root,
 * a logarithm or a division it is positive. Integers that become indices of a gather, a scatter or
 * a dynamic slice (also behind reshapes, converts, clamps and calls) stay below the size they
 * index; other integers are small; pred is either.
 */
#include "exec/synthetic.h"

#include "program/floats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS 64

static uint64_t next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next(state) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double u = 1 - uniform(state), v = uniform(state);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* What is learned of an input from those who read it. */
struct use {
    int64_t below; /* as an index; 0: not one */
    bool positive;
};

struct users {
    const struct rp_program *p;
    unsigned steps;
};

static int64_t dim_of(const struct rp_program *p, uint32_t op, int64_t d)
{
    const struct rp_op_shape *s = &p->shapes.at[p->shape.at[op]];

    return d >= 0 && d < (int64_t)s->n ? p->dims.at[s->first + d] : 1;
}

static void index_below(struct use *use, int64_t n)
{
    if (n > 0 && (!use->below || n < use->below))
        use->below = n;
}

/* The smallest dimension that the indices of a gather or scatter go along. */
static void index_of_map(const struct rp_program *p, uint32_t user, uint32_t operand, unsigned key,
                         struct use *use)
{
    const struct rp_attr *attr = rp_op_attr(p, user, key);
    int64_t dims[64];
    size_t n = 0;

    if (attr && rp_attr_ints(attr, dims, 64, &n))
        for (size_t i = 0; i < n && i < 64; i++)
            index_below(use, dim_of(p, operand, dims[i]));
}

static void follow(struct users *u, uint32_t value, struct use *use);

/* One reader of a value: position k of its operands. */
static void look(struct users *u, uint32_t user, uint32_t k, struct use *use)
{
    const struct rp_program *p = u->p;
    struct rp_ids in = rp_op_operands(p, user), called = rp_op_called(p, user);

    switch (p->code.at[user]) {
    case RP_OP_GATHER:
        if (k == 1)
            index_of_map(p, user, in.at[0], RP_ATTR_START_INDEX_MAP, use);
        break;
    case RP_OP_SCATTER:
        if (k == in.n / 2)
            index_of_map(p, user, in.at[0], RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, use);
        break;
    case RP_OP_DYNAMIC_SLICE:
        if (k >= 1)
            index_below(use, dim_of(p, in.at[0], (int64_t)k - 1));
        break;
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        if (k >= 2)
            index_below(use, dim_of(p, in.at[0], (int64_t)k - 2));
        break;
    case RP_OP_SQRT:
    case RP_OP_RSQRT:
    case RP_OP_LOG:
        use->positive = true;
        break;
    case RP_OP_DIVIDE:
        use->positive |= k == 1;
        break;
    case RP_OP_RESHAPE:
    case RP_OP_BROADCAST:
    case RP_OP_CONVERT:
    case RP_OP_TRANSPOSE:
    case RP_OP_COPY:
    case RP_OP_BITCAST:
    case RP_OP_SLICE:
    case RP_OP_CONCATENATE:
    case RP_OP_SELECT:
    case RP_OP_CLAMP:
    case RP_OP_ADD:
        follow(u, user, use);
        break;
    case RP_OP_CALL:
    case RP_OP_FUSION:
        if (called.n == 1) {
            const struct rp_computation *c = &p->computations.at[called.at[0]];

            for (uint32_t i = c->first; i < c->first + c->n; i++)
                if (p->code.at[i] == RP_OP_PARAMETER && p->value.at[i] == (int64_t)k)
                    follow(u, i, use);
        }
        break;
    default:
        break;
    }
}

static void follow(struct users *u, uint32_t value, struct use *use)
{
    const struct rp_program *p = u->p;
    const struct rp_computation *c = &p->computations.at[p->computation.at[value]];

    if (u->steps++ > MOST_STEPS)
        return;
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        struct rp_ids in = rp_op_operands(p, i);

        for (uint32_t k = 0; k < in.n; k++)
            if (in.at[k] == value)
                look(u, i, k, use);
    }
}

static void fill(struct rp_tensor *t, const struct use *use, uint64_t *state)
{
    bool real = rp_elem_is_float(t->elem) || rp_elem_is_complex(t->elem);
    double scale = t->rank >= 2 && t->dims[0] > 1 ? 1 / sqrt((double)t->dims[0]) : 1;
    struct rp_tensor half;

    if (rp_elem_is_complex(t->elem)) { /* as twice as many parts */
        half = *t;
        half.elem = t->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;
        half.n = 2 * t->n;
        half.unit = t->unit / 2;
        t = &half;
    }
    for (size_t i = 0; i < t->n; i++) {
        if (real)
            rp_tensor_set(t, i, use->positive ? 0.1 + fabs(normal(state)) : normal(state) * scale);
        else if (use->below)
            rp_tensor_set_integer(t, i, (int64_t)(next(state) % (uint64_t)use->below));
        else if (t->elem == RP_ELEM_PRED)
            rp_tensor_set_integer(t, i, (int64_t)(next(state) & 1));
        else
            rp_tensor_set_integer(t, i, (int64_t)(next(state) % 8));
    }
}

enum rp_code rp_synthetic_inputs(const struct rp_program *p, const struct rp_signature *slots,
                                 uint64_t seed, struct rp_tensor **out, struct rp_err *err)
{
    for (size_t i = 0; i < slots->nin; i++) {
        const struct rp_slot *s = &slots->in[i];
        struct users u = {.p = p};
        struct use use = {0};
        uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + i;

        RP_TRY(rp_tensor_new(s->elem, s->dims, s->rank, &out[i], err));
        follow(&u, s->op, &use);
        fill(out[i], &use, &state);
    }
    return RP_OK;
}
