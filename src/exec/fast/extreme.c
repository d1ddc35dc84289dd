/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the largest or the smallest value of each line and the first place that has it: a reduction
 * of pairs (value, place) whose places are an iota. Compilers write its function in many ways, so
 * the function itself is tried out. If it consists only of comparisons and choices, its result
 * depends only on which value, and which place, is larger, and these are few cases. Lines are read
 * twice, for the value and for its place; the iota is never made.
 */
#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/fast/kernels.h"
#include "exec/ref/reduce.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <math.h>

#define CASES      12
#define JOB_VALUES 65536

struct extreme {
    struct rp_reduce reduce;
    unsigned opcode; /* maximum, minimum */
};

/* ---- what a function does ---- */

static bool only_chooses(const struct rp_graph *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        switch (g->nodes[i].code) {
        case RP_OP_PARAMETER:
        case RP_OP_COMPARE:
        case RP_OP_SELECT:
        case RP_OP_AND:
        case RP_OP_OR:
        case RP_OP_NOT:
        case RP_OP_TUPLE:
            break;
        default:
            return false;
        }
    return true;
}

static bool is_extreme(const struct rp_tape_frame *f, struct rp_tensor *const *in, bool largest)
{
    struct rp_tensor value = *in[0], place = *in[1];

    value.data = (unsigned char *)(uintptr_t)rp_tape_result(f, 0);
    place.data = (unsigned char *)(uintptr_t)rp_tape_result(f, 1);
    for (size_t i = 0; i < CASES; i++) {
        double x = rp_tensor_number(in[0], i), y = rp_tensor_number(in[2], i);
        bool left = isnan(x) || x == y || (largest ? x > y : x < y);
        double want = left ? x : y, got = rp_tensor_number(&value, i);

        if ((got != want && !(isnan(got) && isnan(want))) ||
            rp_tensor_integer(&place, i) != rp_tensor_integer(in[left ? 1 : 3], i))
            return false;
    }
    return true;
}

/* Whether places count along the one dimension that is reduced, from an initial one that is not
   after them. */
static bool counts_places(const struct rp_plan *plan, const struct rp_node *node,
                          const struct rp_reduce *a)
{
    const struct rp_program *p = plan->program;
    struct rp_ids ops = rp_op_operands(p, node->op);
    const struct rp_value_shape *s = rp_node_operand(plan, node, 1);
    int64_t dim = rp_op_int(p, ops.at[1], RP_ATTR_IOTA_DIMENSION, -1), first = 1;
    struct rp_err ignored = RP_ERR_INIT;
    size_t reduced = 0;

    for (size_t k = 0; k < s->rank; k++)
        reduced += a->reduced[k];
    if (reduced != 1 || p->code.at[ops.at[1]] != RP_OP_IOTA || dim < 0 || dim >= s->rank ||
        !a->reduced[dim] || s->dynamic || p->code.at[ops.at[3]] != RP_OP_CONSTANT ||
        (s->elem != RP_ELEM_S32 && s->elem != RP_ELEM_S64) ||
        (s->elem == RP_ELEM_S32 && s->dims[dim] > INT32_MAX))
        return false;
    const struct rp_literal *literal = &p->literals.at[p->value.at[ops.at[3]]];
    if (!rp_literal_known(p, literal) ||
        rp_literal_decode(p, literal, &first, rp_literal_unit(s->elem), &ignored) != RP_OK)
        return false;
    return (s->elem == RP_ELEM_S32 ? (int32_t)first : first) <= 0;
}

static RP_KERNEL(run_extreme);

/* Whether a reduction leaves every element as it is: it goes over dimensions of one element, and
   the initial value is one that its operation does not see. */
static bool changes_nothing(const struct rp_plan *plan, const struct rp_node *node,
                            const struct rp_reduce *a)
{
    const struct rp_program *p = plan->program;
    uint32_t init = rp_op_operands(p, node->op).at[1];
    unsigned elem = node->shape->elem;
    struct rp_err ignored = RP_ERR_INIT;
    uint64_t value = 0;

    if (a->k != 1 || p->code.at[init] != RP_OP_CONSTANT || node->shape->dynamic ||
        rp_node_operand(plan, node, 0)->dynamic ||
        rp_node_operand(plan, node, 0)->n != node->shape->n ||
        !(elem == RP_ELEM_PRED || rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem)))
        return false;
    const struct rp_literal *literal = &p->literals.at[p->value.at[init]];
    if (!rp_literal_known(p, literal) ||
        rp_literal_decode(p, literal, &value, rp_literal_unit(elem), &ignored) != RP_OK)
        return false;
    switch (a->tape->simple) {
    case RP_OP_OR:
    case RP_OP_ADD:
        return value == 0;
    case RP_OP_MULTIPLY:
        return value == 1;
    case RP_OP_AND:
        return elem == RP_ELEM_PRED && value == 1;
    default:
        return false;
    }
}

RP_PREPARE(rp_fast_reduce_prepare)
{
    RP_TRY(rp_reduce_prepare(plan, node, err));
    struct rp_reduce *a = node->attrs;
    if (changes_nothing(plan, node, a)) {
        node->code = RP_OP_RESHAPE;
        node->kernel = plan->kernels[RP_OP_RESHAPE];
        node->run = node->kernel->run;
        node->nin = 1;
        node->ncalled = 0;
        node->attrs = NULL;
        node->takes_unaligned = true;
        return RP_OK;
    }
    unsigned elem = a->tape->regs[0].elem;
    uint32_t *ins;
    if (a->k != 2 || (elem != RP_ELEM_F32 && !rp_elem_is_small_float(elem)) ||
        !only_chooses(node->called[0]) || !counts_places(plan, node, a))
        return RP_OK;
    /* Values are left and right in every order, including NaN, and the left place comes before the
       right one; for an initial value, they are also the same. */
    static const float values[6][2] = {{1, 2}, {2, 1}, {1, 1}, {NAN, 1}, {1, NAN}, {NAN, NAN}};
    RP_SCOPED(rp_tensors_release) struct rp_tensors in = {0};
    RP_SCOPED(rp_tape_end) struct rp_tape_frame frame = {0};
    RP_TRY(rp_tensors_new(4, &in, err));
    RP_TRY(rp_tape_begin(a->tape, &frame, err));
    for (size_t i = 0; i < 4; i++) {
        RP_TRY(rp_tensor_new(a->tape->regs[i].elem, (const int64_t[]){CASES}, 1, &in.at[i], err));
        frame.reg[i] = in.at[i]->data;
    }
    for (size_t i = 0; i < CASES; i++) {
        rp_tensor_set(in.at[0], i, (double)values[i % 6][0]);
        rp_tensor_set(in.at[2], i, (double)values[i % 6][1]);
        rp_tensor_set_integer(in.at[1], i, i < 6 ? 3 : 5);
        rp_tensor_set_integer(in.at[3], i, 5);
    }
    rp_tape_run(&frame, CASES);
    bool largest = is_extreme(&frame, in.at, true);
    if (!largest && !is_extreme(&frame, in.at, false))
        return RP_OK;
    struct extreme *x = RP_NODE_NEW(plan, struct extreme);
    ins = rp_plan_copy(plan, node->in, 4, sizeof *ins);
    RP_TRY(rp_err_need(x && ins, err, "planning"));
    ins[1] = ins[0]; /* the places are known */
    node->in = ins;
    x->reduce = *a;
    x->opcode = largest ? RP_OP_MAXIMUM : RP_OP_MINIMUM;
    node->attrs = x;
    node->run = run_extreme;
    return RP_OK;
}

/* ---- running ---- */

struct lines {
    const float *in;
    unsigned opcode;
    float init;
    int64_t first; /* the initial place */
    size_t n, length, per_job;
    struct rp_tensor *value, *place;
};

/* Where a line has this value; if it is NaN, the first NaN. */
RP_CLONES static size_t find_value(const float *in, size_t n, float value)
{
    bool number = value == value;
    size_t at = 0;

    for (; at + 64 <= n; at += 64) {
        int found = 0;

        if (number)
            for (size_t i = 0; i < 64; i++)
                found |= in[at + i] == value;
        else
            for (size_t i = 0; i < 64; i++)
                found |= in[at + i] != in[at + i];
        if (found)
            break;
    }
    while (at < n && (number ? in[at] != value : in[at] == in[at]))
        at++;
    return at;
}

static RP_JOB(lines_job)
{
    const struct lines *l = user;
    size_t end = (job + 1) * l->per_job < l->n ? (job + 1) * l->per_job : l->n;

    for (size_t i = job * l->per_job; i < end; i++) {
        const float *in = l->in + i * l->length;
        float best = l->init;
        int64_t place = l->first;

        if (l->length)
            best = rp_fast_row(l->opcode, in, l->length, l->init);
        if (l->length && (best != best ? l->init == l->init : best != l->init))
            place = (int64_t)find_value(in, l->length, best);
        ((float *)(void *)l->value->data)[i] = best;
        rp_tensor_set_integer(l->place, i, place);
    }
    return RP_OK;
}

static RP_KERNEL(run_extreme)
{
    const struct extreme *x = node->attrs;
    const struct rp_value_shape *values = node->shape->parts[0], *places = node->shape->parts[1];
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL, *turned = NULL, *value = NULL;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    struct lines l = {.opcode = x->opcode,
                      .first = rp_tensor_integer(in[3], 0),
                      .init = (float)rp_tensor_number(in[2], 0)};

    RP_TRY(rp_tensors_new(2, &parts, err));
    RP_TRY(rp_tensor_wide(in[0], &wide, err));
    RP_TRY(rp_fast_lines(&x->reduce, wide, &turned, &l.n, &l.length, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F32, values->dims, values->rank, &value, err));
    RP_TRY(rp_shape_tensor(places, &parts.at[1], err));
    if (l.n != value->n)
        return rp_node_error(node, RP_FORMAT, err, "wrong size of the result");
    l.in = (const float *)(void *)turned->data;
    l.value = value;
    l.place = parts.at[1];
    l.per_job = JOB_VALUES / (l.length + 1) + 1;
    RP_TRY(rp_pool_each(e->pool, (l.n + l.per_job - 1) / l.per_job, lines_job, &l, err));
    RP_TRY(rp_tensor_as(value, values->elem, &parts.at[0], err));
    return rp_node_give(node, &parts, out, err);
}
