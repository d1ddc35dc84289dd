/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes random rounding errors. Rounding to nearest gives an error of a third of a unit in the last
 * place on average; moving one in four results by a whole unit gives half of one, a little more
 * than any way to round. In a sum that is accumulated in its own narrow type, every addition has an
 * error, and these add up to a random walk. Zeros and small whole numbers stay: in practice they
 * are exact (masks, counts, what was cut off), and decisions by them do not depend on rounding.
 * Sums whose terms cancel run in another order, in types of any width.
 */
#include "exec/eval/vary.h"
#include "exec/data/compare.h"
#include "exec/eval/lanes.h"
#include "program/floats.h"
#include "program/opcodes.h"
#include "program/window.h"

#include <math.h>
#include <string.h>

#define MOVED_ONE_IN 4
#define PER_ROOT                                                                     \
    0.25 /* units for each root of the number of terms in a sum: half of one in four \
          */
#define MOST_UNITS 64

static bool is_exact(unsigned code)
{
    switch (code) {
    case RP_OP_ABS:
    case RP_OP_NEGATE:
    case RP_OP_SIGN:
    case RP_OP_FLOOR:
    case RP_OP_CEIL:
    case RP_OP_ROUND_NEAREST_AFZ:
    case RP_OP_ROUND_NEAREST_EVEN:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_CLAMP:
    case RP_OP_SELECT:
    case RP_OP_COPY:
    case RP_OP_BITCAST_CONVERT:
    case RP_OP_REAL:
    case RP_OP_IMAG:
    case RP_OP_CALL:
    case RP_OP_FUSION:
    case RP_OP_WHILE:
    case RP_OP_CONDITIONAL:
        return true;
    default:
        return false;
    }
}

static bool has_add(const struct rp_node *node)
{
    for (uint32_t i = 0; node->ncalled && i < node->called[0]->n; i++)
        if (node->called[0]->nodes[i].code == RP_OP_ADD ||
            node->called[0]->nodes[i].code == RP_OP_MULTIPLY)
            return true;
    return false;
}

/* The units by which a result may move; 0 if it is exact. terms: about how many a sum has. */
static unsigned units_of(const struct rp_plan *plan, const struct rp_node *node, double *terms)
{
    const struct rp_value_shape *from = node->nin ? rp_node_operand(plan, node, 0) : NULL;

    *terms = 1;
    if (is_exact(node->code) || !from)
        return 0;
    switch (rp_op_info[node->code].class_) {
    case RP_CLASS_ELEMENT:
    case RP_CLASS_DOT:
    case RP_CLASS_CONV:
    case RP_CLASS_LINALG:
    case RP_CLASS_FOREIGN:
        return node->code != RP_OP_CONVERT || from->elem == RP_ELEM_F32 ||
               from->elem == RP_ELEM_F64;
    default:
        break;
    }
    if (rp_op_info[node->code].class_ != RP_CLASS_REDUCE && node->code != RP_OP_SCATTER)
        return node->code == RP_OP_ALL_REDUCE;
    if (!has_add(node))
        return 0;
    if (node->code == RP_OP_SCATTER && node->nin > 2)
        from = rp_node_operand(plan, node, node->nin - 1);
    if (node->shape->n)
        *terms = fmax(1, (double)from->n / (double)node->shape->n);
    struct rp_window w;
    if (node->code == RP_OP_REDUCE_WINDOW &&
        rp_attr_window(rp_node_attr(plan, node, RP_ATTR_WINDOW), &w)) {
        *terms = 1;
        for (size_t d = 0; d < w.n; d++)
            *terms *= (double)w.dim[d].size;
    }
    return (unsigned)fmin(fmax(1, lround(PER_ROOT * sqrt(*terms))), MOST_UNITS);
}

/* Whether a number is a small whole one, if the type has room for quarters of it. */
static bool is_counted(double x, int mantissa)
{
    return x == nearbyint(x) && fabs(x) <= ldexp(1, mantissa > 2 ? mantissa - 2 : 0);
}

/* Terms that cancel: a sum that is smaller than its largest term is what its order makes of it.
   Such sums run one term after the other, forward or backward, and round to the type each time. */
struct sums {
    double *all, *largest, *ordered; /* by element of the result */
    int64_t *stride;                 /* of the result, by dimension of the operand; 0: summed */
};

static void sum_terms(struct sums *s, const struct rp_tensor *in, bool backward)
{
    for (size_t c = 0; c < in->n; c++) {
        size_t i = backward ? in->n - 1 - c : c, rest = i, to = 0;
        double x = rp_tensor_number(in, i);

        for (size_t d = in->rank; d-- > 0; rest /= (size_t)in->dims[d])
            to += rest % (size_t)in->dims[d] * (size_t)s->stride[d];
        s->all[to] += x;
        s->largest[to] = fmax(s->largest[to], fabs(x));
        s->ordered[to] = rp_float_decode(in->elem, rp_float_encode(in->elem, s->ordered[to] + x));
    }
}

static RP_KERNEL(reorder_sums)
{
    const struct rp_attr *over = rp_node_attr(e->plan, node, RP_ATTR_DIMENSIONS);
    size_t n = (*out)->n, nover = 0, step = 1;
    const int64_t *dims;

    if (node->code != RP_OP_REDUCE || node->nin != 2 || node->called[0]->n != 3 || !has_add(node) ||
        !rp_elem_is_float(in[0]->elem) || !n || !over || !rp_attr_numbers(over, &dims, &nover))
        return RP_OK;
    RP_FREED double *sums = calloc(3 * n, sizeof *sums);
    RP_FREED int64_t *stride = calloc(in[0]->rank + 1, sizeof *stride);
    RP_TRY(rp_err_need(sums && stride, err, "varying a sum"));
    struct sums s = {sums, sums + n, sums + 2 * n, stride};
    for (size_t d = in[0]->rank; d-- > 0;) {
        bool summed = false;

        for (size_t k = 0; k < nover; k++)
            summed |= dims[k] == (int64_t)d;
        stride[d] = summed ? 0 : (int64_t)step;
        step *= summed ? 1 : (size_t)in[0]->dims[d];
    }
    for (size_t k = 0; k < n; k++)
        s.all[k] = s.ordered[k] = rp_tensor_number(in[1], 0);
    sum_terms(&s, in[0], e->backward);
    RP_TRY(rp_tensor_own(out, err));
    for (size_t k = 0; k < n; k++)
        if (s.largest[k] > fabs(s.all[k]) && isfinite(s.largest[k]))
            rp_tensor_set(*out, k, s.ordered[k]);
    return RP_OK;
}

RP_KERNEL(rp_vary_result)
{
    double terms;
    unsigned units;

    RP_TRY(reorder_sums(e, node, in, out, err));
    struct rp_tensor *t = *out;
    if (!rp_elem_is_small_float(t->elem) || t->unit > 2 ||
        !(units = units_of(e->plan, node, &terms)))
        return RP_OK;
    RP_TRY(rp_tensor_own(out, err));
    t = *out;
    uint64_t top = UINT64_C(1) << (rp_elem_bits(t->elem) - 1);
    int mantissa = rp_elem_mantissa(t->elem);
    /* neighbours in running sums have most of their errors in common */
    size_t same = node->code == RP_OP_REDUCE_WINDOW && units > 1 ? (size_t)terms : 1;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t bits = 0;

        if (i % same == 0)
            e->vary = e->vary * 6364136223846793005u + 1442695040888963407u;
        if (e->vary >> 32 & (MOVED_ONE_IN - 1) && units == 1)
            continue;
        uint64_t by = 1 + (e->vary >> 40) % units;
        memcpy(&bits, t->data + i * t->unit, t->unit);
        if (is_counted(rp_float_decode(t->elem, bits), mantissa))
            continue;
        uint64_t moved = e->vary >> 63 ? bits + by : bits - by;
        if (!((moved ^ bits) & top) && isfinite(rp_float_decode(t->elem, bits)) &&
            isfinite(rp_float_decode(t->elem, moved & (2 * top - 1))))
            memcpy(t->data + i * t->unit, &moved, t->unit);
    }
    return RP_OK;
}

/* ---- TF32 ---- */

bool rp_vary_takes_tf32(const struct rp_eval *e, const struct rp_node *node)
{
    if (!e->plan->tf32_convolutions)
        return false;
    const struct rp_attr *target = node->code == RP_OP_CUSTOM_CALL
                                       ? rp_node_attr(e->plan, node, RP_ATTR_CUSTOM_CALL_TARGET)
                                       : NULL;
    return node->code == RP_OP_CONVOLUTION ||
           (target && rp_attr_is_bytes(target) && memmem(target->at, target->n, "$conv", 5));
}

enum rp_code rp_vary_operands(const struct rp_node *node, struct rp_tensor **in, uint32_t *n,
                              struct rp_err *err)
{
    for (*n = 0; *n < node->nin; ++*n) {
        struct rp_tensor *from = in[*n], *to;

        if (from->elem != RP_ELEM_F32) {
            RP_TRY(rp_tensor_align(from, &in[*n], err));
            continue;
        }
        RP_TRY(rp_tensor_new(from->elem, from->dims, from->rank, &to, err));
        for (size_t i = 0; i < from->n; i++) {
            uint32_t bits;

            memcpy(&bits, from->data + 4 * i, 4);
            bits = (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
            memcpy(to->data + 4 * i, &bits, 4);
        }
        in[*n] = to;
    }
    return RP_OK;
}
