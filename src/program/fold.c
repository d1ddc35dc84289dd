/* SPDX-License-Identifier: Apache-2.0 */
#include "program/fold.h"

#include "program/opcodes.h"

#include <string.h>

struct fold {
    const struct rp_program *p;
    uint32_t op;
    const struct rp_known *in;
    size_t n;
    const struct rp_known *out;
    size_t elements; /* of out */
    int64_t *to;
};

static int64_t count_of(const struct rp_infer_dims *dims)
{
    int64_t n = 1;

    for (size_t i = 0; i < dims->n; i++) {
        if (dims->at[i] < 0 || dims->at[i] > RP_FOLD_MOST)
            return -1;
        n *= dims->at[i];
        if (n > RP_FOLD_MOST)
            return -1;
    }
    return n;
}

bool rp_fold_fits(unsigned elem, const struct rp_infer_dims *dims)
{
    bool followed =
        elem == RP_ELEM_PRED || elem == RP_ELEM_S32 || elem == RP_ELEM_S64 || elem == RP_ELEM_U32;

    return followed && count_of(dims) >= 0;
}

int64_t rp_fold_wrap(unsigned elem, int64_t value)
{
    switch (elem) {
    case RP_ELEM_PRED:
        return value != 0;
    case RP_ELEM_S32:
        return (int32_t)value;
    case RP_ELEM_U32:
        return (uint32_t)value;
    default:
        return value;
    }
}

/* ---- element by element ---- */

static int64_t fold_divide(int64_t a, int64_t b)
{
    if (b == 0)
        return -1;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t fold_remainder(int64_t a, int64_t b)
{
    if (b == 0)
        return a;
    return b == -1 ? 0 : a % b;
}

static bool compare_values(const struct fold *f, int64_t a, int64_t b, int64_t *to)
{
    const struct rp_attr *direction = rp_op_attr(f->p, f->op, RP_ATTR_DIRECTION);
    static const char words[][3] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    const bool is[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};

    for (size_t i = 0; direction && i < 6; i++)
        if (rp_attr_is(direction, words[i])) {
            *to = is[i];
            return true;
        }
    return false;
}

/* Computes one element of an operation on two operands; the arithmetic is unsigned so that it
   wraps. */
static bool fold_two(const struct fold *f, unsigned code, int64_t a, int64_t b, int64_t *to)
{
    switch (code) {
    case RP_OP_ADD:
        *to = (int64_t)((uint64_t)a + (uint64_t)b);
        break;
    case RP_OP_SUBTRACT:
        *to = (int64_t)((uint64_t)a - (uint64_t)b);
        break;
    case RP_OP_MULTIPLY:
        *to = (int64_t)((uint64_t)a * (uint64_t)b);
        break;
    case RP_OP_DIVIDE:
        *to = fold_divide(a, b);
        break;
    case RP_OP_REMAINDER:
        *to = fold_remainder(a, b);
        break;
    case RP_OP_MAXIMUM:
        *to = a > b ? a : b;
        break;
    case RP_OP_MINIMUM:
        *to = a < b ? a : b;
        break;
    case RP_OP_AND:
        *to = a & b;
        break;
    case RP_OP_OR:
        *to = a | b;
        break;
    case RP_OP_XOR:
        *to = a ^ b;
        break;
    case RP_OP_COMPARE:
        return compare_values(f, a, b, to);
    default:
        return false;
    }
    return true;
}

static bool fold_one(const struct fold *f, unsigned code, int64_t a, int64_t *to)
{
    switch (code) {
    case RP_OP_CONVERT:
    case RP_OP_COPY:
        *to = a;
        return true;
    case RP_OP_NEGATE:
        *to = (int64_t)(0 - (uint64_t)a);
        return true;
    case RP_OP_ABS:
        *to = a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
        return true;
    case RP_OP_SIGN:
        *to = (a > 0) - (a < 0);
        return true;
    case RP_OP_NOT:
        *to = f->out->elem == RP_ELEM_PRED ? !a : ~a;
        return true;
    default:
        return false;
    }
}

/* Returns an element of an operand; a scalar stands for all elements. */
static int64_t element_of(const struct rp_known *v, size_t i)
{
    return v->at[v->dims.n ? i : 0];
}

static bool fold_elements(const struct fold *f, unsigned code)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->in[i].dims.n && count_of(&f->in[i].dims) != (int64_t)f->elements)
            return false;
    for (size_t i = 0; i < f->elements; i++) {
        int64_t a = element_of(&f->in[0], i), b = f->n > 1 ? element_of(&f->in[1], i) : 0;
        int64_t c = f->n > 2 ? element_of(&f->in[2], i) : 0;

        if (code == RP_OP_SELECT && f->n == 3)
            f->to[i] = a ? b : c;
        else if (code == RP_OP_CLAMP && f->n == 3)
            f->to[i] = b < a ? a : b > c ? c : b;
        else if (!(f->n == 2 ? fold_two(f, code, a, b, &f->to[i])
                             : f->n == 1 && fold_one(f, code, a, &f->to[i])))
            return false;
        f->to[i] = rp_fold_wrap(f->out->elem, f->to[i]);
    }
    return true;
}

/* ---- moves ---- */

/* Finds the index of an element in row-major order. */
static void index_of(const struct rp_infer_dims *dims, size_t element, int64_t *index)
{
    for (size_t i = dims->n; i-- > 0;) {
        index[i] = (int64_t)(element % (size_t)dims->at[i]);
        element /= (size_t)dims->at[i];
    }
}

static bool fold_broadcast(const struct fold *f)
{
    const struct rp_infer_dims *in = &f->in[0].dims;
    int64_t index[RP_INFER_RANK];
    size_t n;
    const int64_t *to = rp_op_ints(f->p, f->op, RP_ATTR_DIMENSIONS, &n);

    if (in->n && (!to || n != in->n))
        return false;
    for (size_t i = 0; i < f->elements; i++) {
        int64_t from = 0;

        index_of(&f->out->dims, i, index);
        for (size_t k = 0; k < in->n; k++) {
            if (to[k] < 0 || (size_t)to[k] >= f->out->dims.n)
                return false;
            from = from * in->at[k] + (in->at[k] == 1 ? 0 : index[to[k]]);
        }
        f->to[i] = f->in[0].at[from];
    }
    return true;
}

static bool fold_slice(const struct fold *f)
{
    const struct rp_attr *attr = rp_op_attr(f->p, f->op, RP_ATTR_SLICE);
    const struct rp_infer_dims *in = &f->in[0].dims;
    int64_t index[RP_INFER_RANK];

    if (!attr || attr->type != RP_VALUE_SLICES || attr->n != 3 * in->n || f->out->dims.n != in->n)
        return false;
    const int64_t *at = attr->ints;
    for (size_t i = 0; i < f->elements; i++) {
        int64_t from = 0;

        index_of(&f->out->dims, i, index);
        for (size_t k = 0; k < in->n; k++) {
            int64_t place;

            if (__builtin_mul_overflow(index[k], at[3 * k + 2], &place) ||
                __builtin_add_overflow(place, at[3 * k], &place) || place < 0 || place >= in->at[k])
                return false;
            from = from * in->at[k] + place;
        }
        f->to[i] = f->in[0].at[from];
    }
    return true;
}

/* Puts operands side by side along a dimension: whole rows of each in turn. */
static bool fold_concatenate(const struct fold *f)
{
    size_t n, rows = 1, at = 0;
    const int64_t *dim = rp_op_ints(f->p, f->op, RP_ATTR_DIMENSIONS, &n);

    if (!dim || n != 1 || dim[0] < 0 || (size_t)dim[0] >= f->out->dims.n)
        return false;
    for (int64_t i = 0; i < dim[0]; i++)
        rows *= (size_t)f->out->dims.at[i];
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < f->n; i++) {
            int64_t all = count_of(&f->in[i].dims);
            size_t each = all < 0 ? SIZE_MAX : (size_t)all / rows;

            if (each > f->elements - at)
                return false;
            if (each)
                memcpy(f->to + at, f->in[i].at + row * each, each * sizeof *f->to);
            at += each;
        }
    return at == f->elements;
}

bool rp_fold(const struct rp_program *p, uint32_t op, unsigned code,
             const struct rp_known *operands, size_t n, const struct rp_known *out,
             int64_t *elements)
{
    struct fold f = {p, op, operands, n, out, 0, elements};

    if (!n || !rp_fold_fits(out->elem, &out->dims))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!operands[i].at)
            return false;
    f.elements = (size_t)count_of(&out->dims);
    switch (code) {
    case RP_OP_RESHAPE:
    case RP_OP_OPT_BARRIER:
        if (count_of(&operands[0].dims) != (int64_t)f.elements)
            return false;
        if (f.elements)
            memcpy(elements, operands[0].at, f.elements * sizeof *elements);
        return true;
    case RP_OP_BROADCAST:
        return fold_broadcast(&f);
    case RP_OP_SLICE:
        return fold_slice(&f);
    case RP_OP_CONCATENATE:
        return fold_concatenate(&f);
    default:
        return fold_elements(&f, code);
    }
}
