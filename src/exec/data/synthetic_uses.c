/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the program forward from an input, through everything that passes elements on unchanged
 * (reshapes, converts, slices, loops, calls, fusions, parts of tuples), to the operations that
 * restrict their values. A value inside a tuple is a path of part numbers. The walk ends when a
 * value is seen twice on the same path, and after MOST_STEPS readers: a restriction that was not
 * found only means a less fitting input. Cost: one pass over the operands, then at most MOST_STEPS
 * for each input.
 */
#include "exec/data/synthetic.h"
#include "program/opcodes.h"

#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS 4096
#define MOST_DEPTH 200
#define MOST_PARTS 8

struct reader {
    uint32_t op, k; /* operand k of it */
};

struct rp_uses {
    const struct rp_program *p;
    uint32_t *first;        /* by value: its first reader; nops + 1 entries */
    struct reader *readers; /* one an operand */
    uint32_t *caller;       /* by computation: the call or fusion that uses it, or RP_NONE */
    uint64_t *seen;         /* by value: the input and path by which it was last reached */
    uint64_t input;
    unsigned steps, depth;
};

struct path { /* outermost part last */
    uint32_t n, part[MOST_PARTS];
};

static void follow_value(struct rp_uses *u, uint32_t value, struct path path, struct rp_use *use);

void rp_uses_free(struct rp_uses *u)
{
    if (!u)
        return;
    free(u->first);
    free(u->readers);
    free(u->caller);
    free(u->seen);
    free(u);
}

static bool calls_once(unsigned code)
{
    return code == RP_OP_CALL || code == RP_OP_FUSION || code == RP_OP_ASYNC_START;
}

enum rp_code rp_uses_new(const struct rp_program *p, struct rp_uses **out, struct rp_err *err)
{
    struct rp_uses *u = calloc(1, sizeof *u);

    *out = u;
    RP_TRY(rp_err_need(u, err, "looking at inputs"));
    u->p = p;
    u->first = calloc((size_t)p->nops + 2, sizeof *u->first);
    u->readers = calloc(p->operands.n + 1, sizeof *u->readers);
    u->caller = calloc(p->computations.n + 1, sizeof *u->caller);
    u->seen = calloc((size_t)p->nops + 1, sizeof *u->seen);
    RP_TRY(rp_err_need(u->first && u->readers && u->caller && u->seen, err, "looking at inputs"));
    memset(u->caller, 0xff, p->computations.n * sizeof *u->caller);
    for (size_t i = 0; i < p->operands.n; i++)
        u->first[p->operands.at[i] + 2]++;
    for (uint32_t i = 0; i < p->nops; i++)
        u->first[i + 2] += u->first[i + 1];
    for (uint32_t i = 0; i < p->nops; i++) {
        struct rp_ids in = rp_op_operands(p, i), called = rp_op_called(p, i);

        for (uint32_t k = 0; k < in.n; k++)
            u->readers[u->first[in.at[k] + 1]++] = (struct reader){i, k};
        if (called.n && calls_once(p->code.at[i]))
            u->caller[called.at[0]] = i;
    }
    return RP_OK;
}

/* ---- what operations want ---- */

static int64_t dim_of(const struct rp_program *p, uint32_t op, int64_t d)
{
    const struct rp_op_shape *s = &p->shapes.at[p->shape.at[op]];

    return s->elem != RP_ELEM_TUPLE && d >= 0 && d < (int64_t)s->n ? p->dims.at[s->first + d] : 1;
}

static void index_below(struct rp_use *use, int64_t n)
{
    if (n > 0 && (!use->below || n < use->below))
        use->below = n;
}

/* The smallest dimension along which indices of a gather or scatter go. */
static void index_of_map(const struct rp_program *p, uint32_t user, uint32_t operand, unsigned key,
                         struct rp_use *use)
{
    size_t n;
    const int64_t *dims = rp_op_ints(p, user, key, &n);

    for (size_t i = 0; i < n; i++)
        index_below(use, dim_of(p, operand, dims[i]));
}

/* If a class is compared with all classes (a one-hot row), it must be one of them. */
static void compared_with(const struct rp_program *p, uint32_t other, struct rp_use *use)
{
    for (unsigned hops = 0; hops < 4; hops++) {
        unsigned code = p->code.at[other];

        if (code != RP_OP_BROADCAST && code != RP_OP_CONVERT && code != RP_OP_RESHAPE)
            break;
        other = rp_op_operands(p, other).at[0];
    }
    if (p->code.at[other] != RP_OP_IOTA)
        return;
    index_below(use, dim_of(p, other, rp_op_int(p, other, RP_ATTR_IOTA_DIMENSION, 0)));
}

/* The opcode of a computation's root. */
static unsigned root_opcode(const struct rp_program *p, uint32_t user)
{
    struct rp_ids called = rp_op_called(p, user);

    return called.n ? p->code.at[p->computations.at[called.at[0]].root] : RP_OP_FOREIGN;
}

static void limit_start(const struct rp_program *p, uint32_t user, struct rp_use *use)
{
    switch (root_opcode(p, user)) {
    case RP_OP_ADD:
    case RP_OP_OR:
        use->start = 0;
        break;
    case RP_OP_MULTIPLY:
    case RP_OP_AND:
        use->start = 1;
        break;
    case RP_OP_MAXIMUM:
        use->start = -(double)INFINITY;
        break;
    case RP_OP_MINIMUM:
        use->start = (double)INFINITY;
        break;
    default:
        return;
    }
    use->has_start = true;
}

static void limit_to(struct rp_use *use, enum rp_use_range range)
{
    if (use->range == RP_USE_ANY || range == RP_USE_ABOVE_ONE)
        use->range = range;
}

/* Limits operand k of an operation that takes indices. */
static void limit_index(const struct rp_program *p, uint32_t user, uint32_t k, struct rp_use *use)
{
    struct rp_ids in = rp_op_operands(p, user);

    switch (p->code.at[user]) {
    case RP_OP_GATHER:
        if (k == 1)
            index_of_map(p, user, in.at[0], RP_ATTR_START_INDEX_MAP, use);
        return;
    case RP_OP_SCATTER:
        if (k == in.n / 2)
            index_of_map(p, user, in.at[0], RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, use);
        return;
    case RP_OP_DYNAMIC_SLICE:
        if (k >= 1)
            index_below(use, dim_of(p, in.at[0], (int64_t)k - 1));
        return;
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        if (k >= 2)
            index_below(use, dim_of(p, in.at[0], (int64_t)k - 2));
        return;
    case RP_OP_COMPARE:
        if (in.n == 2)
            compared_with(p, in.at[1 - k], use);
        return;
    default:
        return;
    }
}

/* Limits an operand of an operation that is not defined for all numbers, or begins a reduction. */
static void limit_range(const struct rp_program *p, uint32_t user, uint32_t k, struct rp_use *use)
{
    switch (p->code.at[user]) {
    case RP_OP_SQRT:
    case RP_OP_RSQRT:
    case RP_OP_LOG:
    case RP_OP_LOG1P:
        limit_to(use, RP_USE_POSITIVE);
        return;
    case RP_OP_DIVIDE:
    case RP_OP_REMAINDER:
        if (k == 1)
            limit_to(use, RP_USE_POSITIVE);
        return;
    case RP_OP_POWER:
        if (k == 0)
            limit_to(use, RP_USE_POSITIVE);
        return;
    case RP_OP_ACOS:
    case RP_OP_ASIN:
    case RP_OP_ATANH:
        limit_to(use, RP_USE_UNIT);
        return;
    case RP_OP_ACOSH:
        limit_to(use, RP_USE_ABOVE_ONE);
        return;
    case RP_OP_CHOLESKY:
    case RP_OP_TRIANGULAR_SOLVE:
        use->definite |= k == 0;
        return;
    case RP_OP_REDUCE:
    case RP_OP_REDUCE_WINDOW:
        if (k >= rp_op_operands(p, user).n / 2)
            limit_start(p, user, use);
        return;
    default:
        return;
    }
}

/* ---- where elements go ---- */

/* Whether elements of operand k are elements of the result. */
static bool passes_elements(const struct rp_program *p, uint32_t user, uint32_t k)
{
    uint32_t n = rp_op_operands(p, user).n, half = n / 2;

    switch (p->code.at[user]) {
    case RP_OP_RESHAPE:
    case RP_OP_BROADCAST:
    case RP_OP_CONVERT:
    case RP_OP_TRANSPOSE:
    case RP_OP_COPY:
    case RP_OP_BITCAST:
    case RP_OP_SLICE:
    case RP_OP_REVERSE:
    case RP_OP_CONCATENATE:
    case RP_OP_PAD:
    case RP_OP_ADD:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_OPT_BARRIER:
    case RP_OP_ALL_GATHER:
    case RP_OP_COLLECTIVE_PERMUTE:
    case RP_OP_ALL_TO_ALL:
    case RP_OP_REDUCE_PRECISION:
        return true;
    case RP_OP_SELECT:
        return k >= 1;
    case RP_OP_CLAMP:
        return k == 1;
    case RP_OP_GATHER:
    case RP_OP_DYNAMIC_SLICE:
        return k == 0;
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        return k <= 1;
    case RP_OP_SCATTER:
        return k != half;
    case RP_OP_REDUCE:
        return n == 2 && k == 0 &&
               (root_opcode(p, user) == RP_OP_MAXIMUM || root_opcode(p, user) == RP_OP_MINIMUM);
    case RP_OP_SORT:
        return n == 1;
    default:
        return false;
    }
}

static void follow_parameter(struct rp_uses *u, uint32_t computation, uint32_t k, struct path path,
                             struct rp_use *use)
{
    const struct rp_program *p = u->p;
    const struct rp_computation *c = &p->computations.at[computation];

    for (uint32_t i = c->first; i < c->first + c->n; i++)
        if (p->code.at[i] == RP_OP_PARAMETER && p->value.at[i] == (int64_t)k)
            follow_value(u, i, path, use);
}

static void follow_reader(struct rp_uses *u, struct reader r, struct path path, struct rp_use *use)
{
    const struct rp_program *p = u->p;
    struct rp_ids called = rp_op_called(p, r.op);
    unsigned code = p->code.at[r.op];

    if (code == RP_OP_TUPLE) {
        if (path.n < MOST_PARTS) {
            path.part[path.n++] = r.k;
            follow_value(u, r.op, path, use);
        }
    } else if (code == RP_OP_GET_TUPLE_ELEMENT) {
        if (path.n && (int64_t)path.part[path.n - 1] == p->value.at[r.op]) {
            path.n--;
            follow_value(u, r.op, path, use);
        }
    } else if (code == RP_OP_WHILE) {
        for (uint32_t i = 0; i < called.n; i++)
            follow_parameter(u, called.at[i], 0, path, use);
        follow_value(u, r.op, path, use);
    } else if (code == RP_OP_CONDITIONAL) {
        if (r.k >= 1 && r.k <= called.n)
            follow_parameter(u, called.at[r.k - 1], 0, path, use);
    } else if (calls_once(code) || code == RP_OP_MAP) {
        if (called.n)
            follow_parameter(u, called.at[0], r.k, path, use);
    } else {
        if (!path.n) {
            limit_index(p, r.op, r.k, use);
            limit_range(p, r.op, r.k, use);
        }
        if (passes_elements(p, r.op, r.k))
            follow_value(u, r.op, path, use);
    }
}

static void follow_value(struct rp_uses *u, uint32_t value, struct path path, struct rp_use *use)
{
    const struct rp_program *p = u->p;
    uint32_t computation = p->computation.at[value], caller = u->caller[computation];
    uint64_t key = rp_hash_bytes(path.part, path.n * sizeof *path.part) ^
                   u->input * UINT64_C(0x9e3779b97f4a7c15);

    if (u->seen[value] == key || u->depth >= MOST_DEPTH)
        return;
    u->seen[value] = key;
    u->depth++;
    for (uint32_t i = u->first[value]; i < u->first[value + 1] && u->steps < MOST_STEPS; i++) {
        u->steps++;
        follow_reader(u, u->readers[i], path, use);
    }
    if (p->computations.at[computation].root == value && caller != RP_NONE)
        follow_value(u, caller, path, use); /* the value is the result of a call */
    u->depth--;
}

/* ---- inputs ---- */

/* Finds the path to leaf number *leaf of a shape; false if it has fewer, whose number is subtracted
   from *leaf. */
static bool path_to(const struct rp_program *p, uint32_t shape, size_t *leaf, struct path *path)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem != RP_ELEM_TUPLE)
        return rp_elem_bits(s->elem) && (*leaf)-- == 0;
    for (uint32_t i = 0; i < s->n && path->n < MOST_PARTS; i++) {
        uint32_t depth = path->n;

        path->n++;
        if (path_to(p, p->parts.at[s->first + i], leaf, path)) {
            path->part[depth] = i;
            return true;
        }
        path->n = depth;
    }
    return false;
}

/* Paths are kept with the outermost part last, because it is removed first. */
static void reverse_path(struct path *path)
{
    for (uint32_t i = 0; i < path->n / 2; i++) {
        uint32_t other = path->part[path->n - 1 - i];

        path->part[path->n - 1 - i] = path->part[i];
        path->part[i] = other;
    }
}

void rp_uses_look(struct rp_uses *u, const struct rp_signature *slots, size_t i, struct rp_use *out)
{
    uint32_t op = slots->in[i].op;
    struct path path = {0};
    size_t leaf = 0;

    memset(out, 0, sizeof *out);
    while (leaf < i && slots->in[i - leaf - 1].op == op)
        leaf++;
    u->input = i + 1;
    u->steps = u->depth = 0;
    if (path_to(u->p, u->p->shape.at[op], &leaf, &path)) {
        reverse_path(&path);
        follow_value(u, op, path, out);
    }
}
