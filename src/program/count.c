/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts work by the rules of XLA's cost analysis, so that figures can be compared with those of a
 * framework: a product counts two, other element-wise operations one per element, transcendental
 * functions are a class of their own, and convolutions count only the products inside the input.
 * The figures are doubles because totals of large programs exceed 2^63.
 */
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"
#include "program/window.h"

#include <math.h>
#include <string.h>

#define MAX_DIMS 32

struct counter {
    const struct rp_program *p;
    struct rp_costs *out;
    bool *read; /* scratch: whether an operand of a fusion has already been read as a whole */
    int64_t *elements,
        *bytes; /* indexed by shape, because a large tuple may be the operand of many operations */
};

static double elements(const struct counter *c, uint32_t op)
{
    return (double)c->elements[c->p->shape.at[op]];
}

/* The elements of the result, or of its first array if there are several. */
static double first_elements(const struct counter *c, uint32_t op)
{
    const struct rp_op_shape *s = &c->p->shapes.at[c->p->shape.at[op]];

    if (s->elem == RP_ELEM_TUPLE && s->n)
        return (double)c->elements[c->p->parts.at[s->first]];
    return elements(c, op);
}

/* Dimension i of an operation's array, 1 if there is none. */
static double dim_at(const struct counter *c, uint32_t op, int64_t i)
{
    const struct rp_op_shape *s = &c->p->shapes.at[c->p->shape.at[op]];

    if (s->elem == RP_ELEM_TUPLE || i < 0 || i >= s->n || c->p->dims.at[s->first + i] < 0)
        return 1;
    return (double)c->p->dims.at[s->first + i];
}

static double dot_flops(const struct counter *c, uint32_t op)
{
    size_t n;
    const int64_t *dims = rp_op_ints(c->p, op, RP_ATTR_LHS_CONTRACTING_DIMS, &n);
    struct rp_ids operands = rp_op_operands(c->p, op);
    double flops = 2 * elements(c, op);

    if (!operands.n)
        return 0;
    if (dims) {
        for (size_t i = 0; i < n; i++)
            flops *= dim_at(c, operands.at[0], dims[i]);
    } else { /* very old files omit it: the last dimension of the left is contracted with the first
                of the right */
        const struct rp_op_shape *lhs = &c->p->shapes.at[c->p->shape.at[operands.at[0]]];

        flops *= dim_at(c, operands.at[0], (int64_t)lhs->n - 1);
    }
    return flops;
}

/* How many o in [0, outputs) satisfy 0 <= o * stride + offset < limit. */
static double position_hits(int64_t outputs, int64_t stride, int64_t offset, int64_t limit)
{
    int64_t low = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    int64_t high = limit - 1 - offset < 0 ? -1 : (limit - 1 - offset) / stride;

    if (high > outputs - 1)
        high = outputs - 1;
    return high >= low ? (double)(high - low + 1) : 0;
}

/* The pairs of an output and a window position along one dimension that meet an element of the
   input. */
static double valid_positions(const struct rp_window_dim *d, int64_t input, int64_t output)
{
    int64_t base = d->base_dilation, most = 1 << 30;
    double sum = 0;

    if (d->stride < 1 || d->stride > most || base < 1 || base > 1 << 20 || d->size > 1 << 20 ||
        input > most || output > most || d->pad_low > most || d->pad_low < -most ||
        d->window_dilation < 0 || d->window_dilation > 1 << 20)
        return (double)d->size * (double)output;
    int64_t limit = input ? (input - 1) * base + 1 : 0;
    for (int64_t k = 0; k < d->size; k++) {
        int64_t offset = k * d->window_dilation - d->pad_low;

        if (base == 1) {
            sum += position_hits(output, d->stride, offset, limit);
            continue;
        }
        for (int64_t o = 0; o < output && o < 1 << 16; o++) {
            int64_t at = o * d->stride + offset;

            sum += at >= 0 && at < limit && at % base == 0;
        }
    }
    return sum;
}

static double conv_flops(const struct counter *c, uint32_t op)
{
    const struct rp_attr *window = rp_op_attr(c->p, op, RP_ATTR_WINDOW);
    struct rp_ids operands = rp_op_operands(c->p, op);
    struct rp_conv_dims d;
    struct rp_window w = {0};

    if (operands.n < 2 || !rp_attr_conv_dims(rp_op_attr(c->p, op, RP_ATTR_DIM_LABELS), &d) ||
        (window && !rp_attr_window(window, &w)))
        return 0;
    double flops = 2 * dim_at(c, operands.at[0], d.input_feature) *
                   dim_at(c, op, d.output_feature) * dim_at(c, operands.at[0], d.input_batch);
    flops /= (double)rp_op_int(c->p, op, RP_ATTR_FEATURE_GROUP_COUNT, 1);
    flops /= (double)rp_op_int(c->p, op, RP_ATTR_BATCH_GROUP_COUNT, 1);
    for (size_t i = 0; i < w.n && i < d.nspatial; i++)
        flops *= valid_positions(&w.dim[i], (int64_t)dim_at(c, operands.at[0], d.input_spatial[i]),
                                 (int64_t)dim_at(c, op, d.output_spatial[i]));
    return flops;
}

static double window_elements(const struct counter *c, uint32_t op)
{
    struct rp_window w;
    double n = 1;

    if (!rp_attr_window(rp_op_attr(c->p, op, RP_ATTR_WINDOW), &w))
        return 1;
    for (size_t i = 0; i < w.n; i++)
        n *= (double)w.dim[i].size;
    return n;
}

int64_t rp_op_trip_count(const struct rp_program *p, uint32_t op)
{
    const struct rp_attr *attr = rp_op_attr(p, op, RP_ATTR_BACKEND_CONFIG);
    int64_t n = 0;

    if (!attr || !rp_attr_is_bytes(attr))
        return 1;
    const char *end = attr->at + attr->n;
    const char *at = memmem(attr->at, attr->n, "known_trip_count", 16);
    at = at ? memchr(at, '{', (size_t)(end - at)) : NULL;
    while (at && at < end && (*at < '0' || *at > '9') && *at != '}')
        at++;
    for (; at && at < end && *at >= '0' && *at <= '9' && n < INT64_MAX / 20; at++)
        n = n * 10 + (*at - '0');
    return n > 0 ? n : 1;
}

/* Adds the counts of the called computations, `times` each. */
static void add_called(const struct counter *c, uint32_t op, double times, bool bytes,
                       struct rp_cost *cost)
{
    struct rp_ids called = rp_op_called(c->p, op);

    for (uint32_t i = 0; i < called.n; i++) {
        const struct rp_cost *inner = &c->out->computation[called.at[i]];

        cost->flops += inner->flops * times;
        cost->transcendentals += inner->transcendentals * times;
        if (bytes)
            cost->bytes += inner->bytes * times;
    }
}

/* Of the branches of a conditional, only the dearest counts. */
static void add_dearest(const struct counter *c, uint32_t op, struct rp_cost *cost)
{
    struct rp_ids called = rp_op_called(c->p, op);
    struct rp_cost most = {0, 0, 0};

    for (uint32_t i = 0; i < called.n; i++) {
        const struct rp_cost *inner = &c->out->computation[called.at[i]];

        most.flops = fmax(most.flops, inner->flops);
        most.transcendentals = fmax(most.transcendentals, inner->transcendentals);
        most.bytes = fmax(most.bytes, inner->bytes);
    }
    cost->flops += most.flops;
    cost->transcendentals += most.transcendentals;
    cost->bytes += most.bytes;
}

static double operand_elements(const struct counter *c, uint32_t op, uint32_t i)
{
    struct rp_ids operands = rp_op_operands(c->p, op);

    return i < operands.n ? elements(c, operands.at[i]) : 0;
}

/* The rules that need more than the result; `own` is the number of its elements. */
static void count_special(const struct counter *c, uint32_t op, enum rp_flop_rule rule, double own,
                          struct rp_cost *cost)
{
    double n = operand_elements(c, op, 0);

    switch (rule) {
    case RP_FLOPS_OPERANDS:
        for (uint32_t i = 0; i < rp_op_operands(c->p, op).n; i++)
            cost->flops += operand_elements(c, op, i);
        break;
    case RP_FLOPS_REDUCE:
        add_called(c, op, fmax(n - first_elements(c, op), 0), false, cost);
        break;
    case RP_FLOPS_WINDOW:
        add_called(c, op, first_elements(c, op) * (window_elements(c, op) - 1), false, cost);
        break;
    case RP_FLOPS_SELECT_SCATTER:
        cost->flops = operand_elements(c, op, 1) * window_elements(c, op);
        break;
    case RP_FLOPS_SCATTER:
        add_called(c, op, operand_elements(c, op, rp_op_operands(c->p, op).n - 1), false, cost);
        break;
    case RP_FLOPS_SORT:
        cost->flops = n > 1 ? n * ceil(log2(n)) : 0;
        break;
    case RP_FLOPS_FFT:
        cost->flops = own > 1 ? 8 * own * log2(own) : 0;
        break;
    case RP_FLOPS_CHOLESKY:
    case RP_FLOPS_TRIANGULAR:
        cost->flops = 2 * operand_elements(c, op, 1) + n * dim_at(c, op, -1);
        break;
    default:
        break;
    }
}

static struct rp_cost count_flops(const struct counter *c, uint32_t op)
{
    enum rp_flop_rule rule = (enum rp_flop_rule)rp_op_info[c->p->code.at[op]].flops;
    struct rp_cost cost = {0, 0, 0};
    double own = elements(c, op);

    switch (rule) {
    case RP_FLOPS_EACH:
        cost.flops = own;
        break;
    case RP_FLOPS_TRANS:
        cost.transcendentals = own;
        break;
    case RP_FLOPS_DOT:
        cost.flops = dot_flops(c, op);
        break;
    case RP_FLOPS_CONV:
        cost.flops = conv_flops(c, op);
        break;
    case RP_FLOPS_MAP:
        add_called(c, op, own, false, &cost);
        break;
    case RP_FLOPS_CALL:
        add_called(c, op, 1, c->p->code.at[op] != RP_OP_FUSION, &cost);
        break;
    case RP_FLOPS_LOOP:
        add_called(c, op, (double)rp_op_trip_count(c->p, op), true, &cost);
        break;
    case RP_FLOPS_BRANCH:
        add_dearest(c, op, &cost);
        break;
    default:
        count_special(c, op, rule, own, &cost);
    }
    return cost;
}

static double shape_bytes(const struct counter *c, uint32_t op)
{
    return (double)c->bytes[c->p->shape.at[op]];
}

static double operand_bytes(const struct counter *c, uint32_t op, uint32_t from, uint32_t to)
{
    struct rp_ids operands = rp_op_operands(c->p, op);
    double sum = 0;

    for (uint32_t i = from; i < to && i < operands.n; i++)
        sum += shape_bytes(c, operands.at[i]);
    return sum;
}

/* Positions of a shape's dimensions, minor to major; row-major if there is no layout. */
static bool minor_first(const struct rp_program *p, uint32_t shape, uint32_t *out)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem == RP_ELEM_TUPLE || s->n > MAX_DIMS)
        return false;
    if (!rp_shape_minor_to_major(p, shape, out, MAX_DIMS))
        for (uint32_t i = 0; i < s->n; i++)
            out[i] = s->n - 1 - i;
    return true;
}

/* Whether the layouts of a transpose leave every element in its place. */
static bool transposes_nothing(const struct rp_program *p, uint32_t op)
{
    size_t n;
    const int64_t *dims = rp_op_ints(p, op, RP_ATTR_DIMENSIONS, &n);
    struct rp_ids operands = rp_op_operands(p, op);
    uint32_t from[MAX_DIMS], to[MAX_DIMS], rank = p->shapes.at[p->shape.at[op]].n;

    if (!dims || !operands.n || n != rank || n > MAX_DIMS ||
        p->shapes.at[p->shape.at[operands.at[0]]].n != rank ||
        !minor_first(p, p->shape.at[operands.at[0]], from) || !minor_first(p, p->shape.at[op], to))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (to[i] >= rank || dims[to[i]] != from[i])
            return false;
    return true;
}

/* What an operation in a fusion reads of a parameter: those that access a part read that part, and
   all others share one reading of the whole. */
static double read_in_fusion(const struct counter *c, uint32_t reader, uint32_t position,
                             uint32_t parameter)
{
    const struct rp_program *p = c->p;
    struct rp_ids operands = rp_op_operands(p, reader);
    int64_t number = p->value.at[parameter];

    switch (p->code.at[reader]) {
    case RP_OP_SLICE:
        return shape_bytes(c, reader);
    case RP_OP_DYNAMIC_SLICE:
        if (position == 0)
            return shape_bytes(c, reader);
        break;
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        if (operands.n > 1)
            return shape_bytes(c, operands.at[1]);
        break;
    case RP_OP_BROADCAST:
    case RP_OP_RESHAPE:
        return shape_bytes(c, parameter);
    default:
        break;
    }
    if (c->read[number])
        return 0;
    c->read[number] = true;
    return shape_bytes(c, parameter);
}

/* An update in place writes what it updates. */
static double written_by(const struct counter *c, uint32_t op)
{
    const struct rp_program *p = c->p;
    struct rp_ids operands = rp_op_operands(p, op);

    if (p->code.at[op] == RP_OP_DYNAMIC_UPDATE_SLICE && operands.n > 1)
        return shape_bytes(c, operands.at[1]);
    return shape_bytes(c, op);
}

/* The reads and writes at the border of a fusion. */
static double fusion_bytes(const struct counter *c, uint32_t op)
{
    const struct rp_program *p = c->p;
    const struct rp_computation *body = &p->computations.at[rp_op_called(p, op).at[0]];
    uint32_t n = rp_op_operands(p, op).n;
    double sum = 0;

    memset(c->read, 0, n * sizeof *c->read);
    for (uint32_t reader = body->first; reader < body->first + body->n; reader++) {
        struct rp_ids operands = rp_op_operands(p, reader);

        for (uint32_t i = 0; i < operands.n; i++)
            if (p->code.at[operands.at[i]] == RP_OP_PARAMETER &&
                (uint64_t)p->value.at[operands.at[i]] < n)
                sum += read_in_fusion(c, reader, i, operands.at[i]);
    }
    if (body->root == RP_NONE)
        return sum + shape_bytes(c, op);
    if (p->code.at[body->root] == RP_OP_PARAMETER) /* it passes on what it reads */
        return sum + 2 * shape_bytes(c, op);
    if (p->code.at[body->root] != RP_OP_TUPLE)
        return sum + written_by(c, body->root);
    for (uint32_t i = 0; i < rp_op_operands(p, body->root).n; i++)
        sum += written_by(c, rp_op_operands(p, body->root).at[i]);
    return sum;
}

/* The bytes that an operation reads and writes: its operands and result; operations that access a
   part of an array count that part. Callers other than fusions take the bytes of their callees. */
static double count_bytes(const struct counter *c, uint32_t op)
{
    const struct rp_program *p = c->p;
    enum rp_opcode code = (enum rp_opcode)p->code.at[op];
    struct rp_ids operands = rp_op_operands(p, op);
    double own = shape_bytes(c, op);

    if (rp_op_info[code].flags & RP_OPF_FREE)
        return 0;
    switch (code) {
    case RP_OP_CALL:
    case RP_OP_WHILE:
    case RP_OP_CONDITIONAL:
    case RP_OP_ASYNC_START:
        return 0;
    case RP_OP_FUSION:
        return rp_op_called(p, op).n ? fusion_bytes(c, op)
                                     : own + operand_bytes(c, op, 0, operands.n);
    case RP_OP_SLICE:
    case RP_OP_DYNAMIC_SLICE:
    case RP_OP_GATHER: /* the part, which is read and written, and its indices */
        return 2 * own + operand_bytes(c, op, 1, operands.n);
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        return operands.n > 1 ? operand_bytes(c, op, 1, operands.n) + operand_bytes(c, op, 1, 2)
                              : own;
    case RP_OP_SCATTER: /* the operands are n arrays, the indices, and n updates */
        return 3 * operand_bytes(c, op, operands.n / 2 + 1, operands.n) +
               operand_bytes(c, op, operands.n / 2, operands.n / 2 + 1);
    case RP_OP_TRANSPOSE:
        return transposes_nothing(p, op) ? 0 : own + operand_bytes(c, op, 0, operands.n);
    default:
        return own + operand_bytes(c, op, 0, operands.n);
    }
}

enum rp_code rp_program_count(const struct rp_program *p, struct rp_arena *arena,
                              struct rp_costs *out, struct rp_err *err)
{
    struct counter counter = {.p = p,
                              .out = out,
                              .read = RP_ARENA_NEW(arena, bool, p->operands.n + 1),
                              .elements = RP_ARENA_NEW(arena, int64_t, p->shapes.n + 1),
                              .bytes = RP_ARENA_NEW(arena, int64_t, p->shapes.n + 1)};
    uint32_t *calls;

    memset(out, 0, sizeof *out);
    out->op = RP_ARENA_NEW(arena, struct rp_cost, (size_t)p->nops + 1);
    out->computation = RP_ARENA_NEW(arena, struct rp_cost, p->computations.n + 1);
    RP_TRY(rp_err_need(out->op && out->computation && counter.read && counter.elements &&
                           counter.bytes,
                       err, "counting a program"));
    /* The parts of a tuple precede it in the table. */
    for (uint32_t i = 0; i < counter.p->shapes.n; i++) {
        const struct rp_op_shape *s = &counter.p->shapes.at[i];

        if (s->elem != RP_ELEM_TUPLE) {
            counter.elements[i] = rp_shape_elements(counter.p, i);
            counter.bytes[i] = rp_shape_bytes(counter.p, i);
        }
        for (uint32_t k = 0; s->elem == RP_ELEM_TUPLE && k < s->n; k++) {
            uint32_t part = counter.p->parts.at[s->first + k];

            if (__builtin_add_overflow(counter.elements[i], counter.elements[part],
                                       &counter.elements[i]))
                counter.elements[i] = INT64_MAX;
            if (__builtin_add_overflow(counter.bytes[i], counter.bytes[part], &counter.bytes[i]))
                counter.bytes[i] = INT64_MAX;
        }
    }
    RP_TRY(rp_program_call_order(p, arena, &calls, err));
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[calls[i]];
        struct rp_cost *sum = &out->computation[calls[i]];

        for (uint32_t op = c->first; op < c->first + c->n; op++) {
            if (p->given.n) {
                out->op[op] = op < p->given.n ? p->given.at[op] : (struct rp_cost){0};
            } else {
                out->op[op] = count_flops(&counter, op);
                out->op[op].bytes += count_bytes(&counter, op);
            }
            sum->flops += out->op[op].flops;
            sum->transcendentals += out->op[op].transcendentals;
            sum->bytes += out->op[op].bytes;
        }
    }
    if (p->entry != RP_NONE)
        out->program = out->computation[p->entry];
    return RP_OK;
}
