/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expresses operations of StableHLO, from text or bytecode, in terms of HLO: opcodes, tuples of
 * loops and branches, regions that are called, and operations for which HLO needs several.
 */
#include "formats/mlir/bytecode.h"
#include "program/opcodes.h"
#include "program/refine.h"

#include <string.h>

/* ---- names of operations ---- */

enum rp_code rp_mlir_opcode(struct rp_mlir *r, struct rp_slice name, struct rp_new_op *op)
{
    static const char *const renamed[][2] = {
        {"dot-general", "dot"},  {"broadcast-in-dim", "broadcast"},
        {"case", "conditional"}, {"if", "conditional"},
        {"top-k", "topk"},       {"optimization-barrier", "opt-barrier"},
        {"composite", "call"},   {"create-token", "after-all"}};
    const char *dot = memrchr(name.at, '.', name.n);
    size_t skip = dot ? (size_t)(dot + 1 - name.at) : 0, n = name.n - skip;
    char text[64];

    RP_TRY(rp_program_string(r->p, name.at, name.n, &op->foreign, r->err));
    op->code = RP_OP_FOREIGN;
    if (n >= sizeof text)
        return RP_OK;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(name.at[skip + i] == '_' ? '-' : name.at[skip + i]);
    text[n] = '\0';
    if (strcmp(text, "square") == 0) { /* CHLO has a square, HLO a product */
        op->code = RP_OP_MULTIPLY;
        return RP_OK;
    }
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(text, renamed[i][0]) == 0)
            strcpy(text, renamed[i][1]);
    uint32_t id = rp_strtab_find(&r->p->strings, text, strlen(text));
    if (id != UINT32_MAX && rp_program_opcode(r->p, id) != RP_OP_PARAMETER)
        op->code = rp_program_opcode(r->p, id);
    return RP_OK;
}

/* "return", "func.return", "stablehlo.return" */
bool rp_mlir_is_return(struct rp_slice name)
{
    return name.n >= 6 && memcmp(name.at + name.n - 6, "return", 6) == 0 &&
           (name.n == 6 || name.at[name.n - 7] == '.');
}

static bool is_operation(const struct rp_mlir *r, const struct rp_new_op *op, const char *name)
{
    return op->code == RP_OP_FOREIGN && strcmp(rp_program_text(r->p, op->foreign), name) == 0;
}

/* Portable artifacts write operations that StableHLO lacks as custom calls: "@mhlo.topk",
   "@chlo.scan". */
static enum rp_code replace_call(struct rp_mlir *r, struct rp_mlir_statement *s)
{
    struct rp_new_op named = s->op;
    struct rp_slice target;

    if (s->op.code != RP_OP_CUSTOM_CALL)
        return RP_OK;
    RP_TRY(rp_mlir_find_string(r, &s->attrs, "call_target_name", &target));
    if (s->called != RP_NONE) {
        target.at = rp_program_text(r->p, s->called);
        target.n = (uint32_t)strlen(target.at);
    }
    if (target.n < 6 || (memcmp(target.at, "mhlo.", 5) != 0 && memcmp(target.at, "chlo.", 5) != 0))
        return RP_OK;
    RP_TRY(rp_mlir_opcode(r, target, &named));
    if (named.code == RP_OP_FOREIGN)
        return RP_OK;
    s->op = named;
    s->called = RP_NONE;
    return RP_OK;
}

/* ---- operands and regions ---- */

enum rp_code rp_mlir_push_operand(struct rp_mlir *r, uint32_t op)
{
    RP_TRY(rp_vec_push(&r->operands, op, r->err));
    return rp_vec_push(&r->operands, 0, r->err);
}

/* Loops and branches get the values that their regions capture as operands, joined into one tuple,
   which replaces the operands from `first` on; a single value is not joined. */
static enum rp_code join_operands(struct rp_mlir *r, size_t first, uint32_t *tuple)
{
    struct rp_new_op op = {.code = RP_OP_TUPLE};
    size_t n = (r->operands.n - first) / 2 + r->outside.n, at = 0;
    uint32_t *ids = RP_ARENA_NEW(&r->p->arena, uint32_t, 2 * n + 1);

    RP_TRY(rp_err_need(ids, r->err, "reading a region"));
    for (size_t i = first; i + 1 < r->operands.n; i += 2)
        ids[at++] = r->operands.at[i];
    for (size_t i = 0; i < r->outside.n; i++)
        ids[at++] = r->outside.at[i].op;
    r->operands.n = first;
    if (n == 1) {
        *tuple = ids[0];
        return RP_OK;
    }
    uint32_t *shapes = ids + n;
    for (size_t i = 0; i < n; i++)
        shapes[i] = r->p->shape.at[ids[i]];
    RP_TRY(rp_program_tuple(r->p, shapes, n, &op.shape, r->err));
    return rp_mlir_add_implicit(r, &op, ids, n, tuple);
}

static enum rp_code control_operands(struct rp_mlir *r, struct rp_mlir_statement *s)
{
    size_t regions = r->regions.n - s->region, first = s->operand;
    uint32_t tuple;

    if (s->op.code == RP_OP_WHILE && regions) {
        RP_TRY(join_operands(r, first, &tuple));
        if (r->outside.n)
            s->op.shape = r->p->shape.at[tuple];
        return rp_mlir_push_operand(r, tuple);
    }
    if (s->op.code == RP_OP_CONDITIONAL && regions && r->operands.n >= first + 2) {
        RP_TRY(join_operands(r, first + 2, &tuple));
        for (size_t i = 0; i < regions; i++)
            RP_TRY(rp_mlir_push_operand(r, tuple));
        return RP_OK;
    }
    if (s->op.code == RP_OP_OPT_BARRIER && r->operands.n - first > 2) {
        RP_TRY(join_operands(r, first, &tuple));
        return rp_mlir_push_operand(r, tuple);
    }
    return RP_OK;
}

/* Queues the regions; the body of a loop comes first, as in protobufs. */
static enum rp_code add_regions(struct rp_mlir *r, const struct rp_mlir_statement *s)
{
    size_t n = r->regions.n - s->region, args = r->args.n;
    struct rp_mlir_region *region = n ? r->regions.at + s->region : NULL;
    bool tuple = s->op.code == RP_OP_WHILE || s->op.code == RP_OP_CONDITIONAL;

    for (size_t i = 0; i < r->outside.n; i++)
        RP_TRY(rp_vec_push(&r->args, r->outside.at[i], r->err));
    if (s->op.code == RP_OP_WHILE && n == 2) {
        struct rp_mlir_region swap = region[0];

        region[0] = region[1];
        region[1] = swap;
    }
    for (size_t i = 0; i < n; i++) {
        region[i].args = (uint32_t)s->args;
        region[i].nargs = (uint32_t)(args - s->args);
        region[i].outside = (uint32_t)args;
        region[i].noutside = (uint32_t)r->outside.n;
        region[i].tuple = tuple;
        region[i].carry = s->op.code == RP_OP_WHILE && i == 0;
        region[i].called = (uint32_t)r->p->called.n;
        RP_TRY(rp_program_add_called(r->p, 0, r->err));
    }
    if (s->applies.n && r->operands.n > s->operand) {
        uint32_t of = r->p->shape.at[r->operands.at[s->operand]];
        struct rp_mlir_region one = {.applies = s->applies, .called = (uint32_t)r->p->called.n};

        RP_TRY(rp_program_array(r->p, r->p->shapes.at[of].elem, NULL, NULL, 0, 0, &one.element,
                                r->err));
        RP_TRY(rp_vec_push(&r->regions, one, r->err));
        return rp_program_add_called(r->p, 0, r->err);
    }
    return RP_OK;
}

enum rp_code rp_mlir_call_region(struct rp_mlir *r, size_t region, size_t args)
{
    struct rp_mlir_statement s = {.op = {.code = RP_OP_CALL}, .region = region, .args = args};

    return add_regions(r, &s);
}

/* Adds the value of a computation: an operation, or several as a tuple. */
static enum rp_code add_return(struct rp_mlir *r, size_t first_operand)
{
    struct rp_new_op op = {.code = RP_OP_TUPLE};
    uint32_t id;

    for (size_t i = 0; i < r->carried.n; i++)
        RP_TRY(rp_mlir_push_operand(r, r->carried.at[i]));
    size_t n = (r->operands.n - first_operand) / 2;
    if (n == 1) {
        r->p->computations.at[r->p->computations.n - 1].root = r->operands.at[first_operand];
        return RP_OK;
    }
    uint32_t *ids = RP_ARENA_NEW(&r->p->arena, uint32_t, 2 * n + 1);
    RP_TRY(rp_err_need(ids, r->err, "reading a region"));
    uint32_t *shapes = ids + n;
    for (size_t i = 0; i < n; i++) {
        ids[i] = r->operands.at[first_operand + 2 * i];
        shapes[i] = r->p->shape.at[ids[i]];
    }
    RP_TRY(rp_program_tuple(r->p, shapes, n, &op.shape, r->err));
    RP_TRY(rp_mlir_add_implicit(r, &op, ids, n, &id));
    r->p->flags.at[id] &= (uint8_t)~RP_OPS_IMPLICIT;
    r->p->computations.at[r->p->computations.n - 1].root = id;
    return RP_OK;
}

/* ---- attributes ---- */

/* Adds '@name', which is a function where it is called, and the target of a custom call. */
static enum rp_code add_symbol(struct rp_mlir *r, const struct rp_mlir_statement *s)
{
    if (s->op.code == RP_OP_CALL)
        return rp_mlir_add_call(r, s->called);
    if (s->op.code != RP_OP_CUSTOM_CALL)
        return RP_OK;
    char *target = rp_arena_strdup(&r->p->arena, rp_program_text(r->p, s->called));
    RP_TRY(rp_err_need(target, r->err, "reading a custom call"));
    return rp_program_add_attr(
        r->p, rp_attr_bytes(RP_ATTR_CUSTOM_CALL_TARGET, RP_VALUE_STRING, target, strlen(target)),
        r->err);
}

/* ---- squares ---- */

/*
 * The square of a real number is a product. For a complex number the real part is (a - b) (a + b),
 * as in JAX: it does not overflow where a² and b² do, and is zero if |a| = |b| is finite. A step
 * names its operands by their step numbers; step 0 is the operand of the square.
 */
enum { SQUARE_REAL, SQUARE_PRED }; /* types of steps */
static const struct square_step {
    uint16_t code;
    uint8_t type, nin, in[3];
} square_steps[] = {
    [1] = {RP_OP_REAL, SQUARE_REAL, 1, {0}},
    [2] = {RP_OP_IMAG, SQUARE_REAL, 1, {0}},
    [3] = {RP_OP_ABS, SQUARE_REAL, 1, {1}},
    [4] = {RP_OP_ABS, SQUARE_REAL, 1, {2}},
    [5] = {RP_OP_COMPARE, SQUARE_PRED, 2, {3, 4}},
    [6] = {RP_OP_IS_FINITE, SQUARE_PRED, 1, {1}},
    [7] = {RP_OP_AND, SQUARE_PRED, 2, {5, 6}},
    [8] = {RP_OP_SUBTRACT, SQUARE_REAL, 2, {1, 2}},
    [9] = {RP_OP_ADD, SQUARE_REAL, 2, {1, 2}},
    [10] = {RP_OP_MULTIPLY, SQUARE_REAL, 2, {8, 9}},
    [11] = {RP_OP_SUBTRACT, SQUARE_REAL, 2, {1, 1}}, /* zero, or not chosen */
    [12] = {RP_OP_SELECT, SQUARE_REAL, 3, {7, 11, 10}},
    [13] = {RP_OP_MULTIPLY, SQUARE_REAL, 2, {1, 2}},
    [14] = {RP_OP_ADD, SQUARE_REAL, 2, {13, 13}},
};
#define SQUARE_STEPS (sizeof square_steps / sizeof *square_steps)

static enum rp_code shape_like(struct rp_mlir *r, uint32_t like, unsigned elem, uint32_t *out)
{
    const struct rp_op_shape *s = &r->p->shapes.at[like];
    int64_t *dims = RP_ARENA_NEW(&r->p->arena, int64_t, s->n + 1);

    RP_TRY(rp_err_need(dims, r->err, "reading a square"));
    if (s->n)
        memcpy(dims, r->p->dims.at + s->first, s->n * sizeof *dims);
    return rp_program_array(r->p, elem, dims, NULL, s->n, 0, out, r->err);
}

static enum rp_code add_square(struct rp_mlir *r, struct rp_mlir_statement *s)
{
    uint32_t *operand = &r->operands.at[s->operand], ids[SQUARE_STEPS] = {*operand};
    uint32_t like = r->p->shape.at[*operand], types[2];
    unsigned elem = r->p->shapes.at[like].elem;

    if (elem != RP_ELEM_C64 && elem != RP_ELEM_C128)
        return rp_mlir_push_operand(r, *operand);
    RP_TRY(
        shape_like(r, like, elem == RP_ELEM_C128 ? RP_ELEM_F64 : RP_ELEM_F32, &types[SQUARE_REAL]));
    RP_TRY(shape_like(r, like, RP_ELEM_PRED, &types[SQUARE_PRED]));
    for (size_t i = 1; i < SQUARE_STEPS; i++) {
        const struct square_step *step = &square_steps[i];
        struct rp_new_op op = {.code = step->code, .shape = types[step->type]};
        uint32_t in[3];

        for (size_t k = 0; k < step->nin; k++)
            in[k] = ids[step->in[k]];
        RP_TRY(rp_mlir_add_implicit(r, &op, in, step->nin, &ids[i]));
        if (step->code == RP_OP_COMPARE)
            RP_TRY(rp_program_add_attr(r->p, rp_attr_word(RP_ATTR_DIRECTION, "EQ"), r->err));
    }
    s->op.code = RP_OP_COMPLEX;
    r->operands.at[s->operand] = ids[12];
    return rp_mlir_push_operand(r, ids[14]);
}

/* What HLO needs before the operation itself is added. */
struct making {
    struct rp_mlir_ints rest; /* dimensions of the last step of a broadcast */
    uint32_t scalar;          /* the one value that a whole constant consists of */
    int64_t joined;           /* dimension along which an exchange is joined */
    bool split, manual, mark;
};

static enum rp_code make_operands(struct rp_mlir *r, struct rp_mlir_statement *s, struct making *m)
{
    bool one = r->operands.n == s->operand + 2;

    *m = (struct making){.scalar = RP_NONE, .joined = -1};
    m->manual = is_operation(r, &s->op, "sdy.manual_computation");
    m->mark = is_operation(r, &s->op, "sdy.sharding_constraint") ||
              is_operation(r, &s->op, "sdy.reshard");
    RP_TRY(replace_call(r, s));
    if (s->op.code == RP_OP_CUSTOM_CALL)
        RP_TRY(rp_mlir_result_layouts(r, &s->attrs, &s->op.shape));
    if (m->mark)
        s->op.code = RP_OP_CUSTOM_CALL;
    if (is_operation(r, &s->op, "builtin.unrealized_conversion_cast")) /* between dialects */
        s->op.code = one ? RP_OP_COPY : RP_OP_TUPLE;
    if (s->op.code == RP_OP_CALL && !s->op.shape)
        RP_TRY(rp_program_tuple(r->p, NULL, 0, &s->op.shape, r->err)); /* of nothing */
    RP_TRY(control_operands(r, s));
    if (s->op.code == RP_OP_MULTIPLY && one)
        RP_TRY(add_square(r, s));

    /* Expresses a broadcast by operations of HLO; *split tells that there are several, and *rest
       are the dimensions of the last. */
    struct rp_mlir_ints dims;
    m->split = false;
    if (s->op.code == RP_OP_BROADCAST && r->operands.n == s->operand + 2) {
        uint32_t operand = r->operands.at[s->operand];
        rp_mlir_broadcast_dims(r, &s->attrs, &dims);
        RP_TRY(rp_mlir_broadcast(r, &dims, &s->op, &operand, &m->rest, &m->split));
        r->operands.at[s->operand] = operand;
    }
    if (s->op.code == RP_OP_CONSTANT) {
        RP_TRY(rp_mlir_constant(r, &s->attrs, &s->op, &m->scalar));
        if (m->scalar != RP_NONE)
            RP_TRY(rp_mlir_push_operand(r, m->scalar));
    }
    if (s->op.code == RP_OP_ALL_TO_ALL && one)
        RP_TRY(rp_mlir_all_to_all(r, &s->attrs, s->operand, &s->op, &m->joined));
    return m->manual ? rp_mlir_manual(r, &s->attrs, s->operand, s->region, s->args, &s->op) : RP_OK;
}

/* An operation that has its shape from another one gets the attributes of the one that knows it; a
   slice and a padding have those of their counterparts. */
static unsigned attributes_like(const struct rp_mlir *r, const struct rp_new_op *op)
{
    unsigned fixed = op->code == RP_OP_FOREIGN ? rp_refine_fixed(rp_program_text(r->p, op->foreign))
                                               : RP_OP_FOREIGN;

    return fixed == RP_OP_FOREIGN || fixed == RP_OP_SLICE || fixed == RP_OP_PAD ? op->code : fixed;
}

static enum rp_code add_attributes(struct rp_mlir *r, struct rp_mlir_statement *s,
                                   const struct making *m)
{
    bool known = false, steps = m->split || m->scalar != RP_NONE;

    if (m->manual)
        return rp_mlir_manual_attrs(r, &s->attrs, true);
    if (m->mark)
        return rp_mlir_target(r, "Sharding");
    if (m->joined >= 0)
        return rp_program_add_attr(r->p, rp_attr_ints(r->p, RP_ATTR_DIMENSIONS, &m->joined, 1),
                                   r->err);
    if (steps)
        RP_TRY(rp_program_add_attr(
            r->p, rp_attr_ints(r->p, RP_ATTR_DIMENSIONS, m->rest.at, m->rest.n), r->err));
    else
        RP_TRY(rp_mlir_attributes(r, attributes_like(r, &s->op), &s->attrs, &known));
    if (s->op.code == RP_OP_SCAN) {
        /* The number of operands that a scan carries along: those that its region takes whole. */
        static const char *const sizes[] = {"operandSegmentSizes", NULL};
        size_t args = r->args.n, n = (r->operands.n - s->operand) / 2;
        const char *at = r->at;
        struct rp_mlir_ints list;
        int64_t carries = 0;
        if (r->regions.n > s->region) {
            RP_TRY(rp_mlir_region_arguments(r, &r->regions.at[s->region]));
            for (size_t i = 0; i < n && args + i < r->args.n; i++)
                carries += r->p->shapes.at[r->args.at[args + i].shape].n ==
                           r->p->shapes.at[r->p->shape.at[r->operands.at[s->operand + 2 * i]]].n;
            r->args.n = args;
            r->at = at;
        } else if (rp_mlir_find_ints(r, &s->attrs, sizes, &list)) {
            carries = list.n > 1 ? list.at[1] : 0;
        }
        RP_TRY(rp_program_add_attr(r->p, rp_attr_int(RP_ATTR_NUM_CARRIES, carries), r->err));
    }
    if (!known && !steps && s->op.code != RP_OP_RESHAPE)
        RP_TRY(rp_mlir_keep_text(r, &s->attrs, s->op.foreign));
    RP_TRY(add_regions(r, s));
    return s->called == RP_NONE ? RP_OK : add_symbol(r, s);
}

/* ---- statements ---- */

enum rp_code rp_mlir_add(struct rp_mlir *r, struct rp_mlir_statement *s, struct rp_slice name,
                         size_t results, bool counted)
{
    uint32_t id;

    if (s->op.code == RP_OP_CALL && s->called == RP_NONE)
        RP_TRY(rp_mlir_callee(r, &s->attrs, &s->called));
    if (rp_mlir_is_return(name)) {
        RP_TRY(add_return(r, s->operand));
    } else {
        /* Adds the operation itself, and its operands. */
        struct making m;
        RP_TRY(make_operands(r, s, &m));
        if (r->p->nops >= r->limits.events)
            return rp_err_set(r->err, RP_LIMIT, "more than %llu operations",
                              (unsigned long long)r->limits.events);
        RP_TRY(rp_program_add_op(r->p, &s->op, &id, r->err));
        for (size_t i = s->operand; i + 1 < r->operands.n; i += 2)
            RP_TRY(rp_program_add_operand(r->p, r->operands.at[i], r->operands.at[i + 1], r->err));
        s->attrs.operands = rp_op_operands(r->p, id);
        r->p->meta.at[id] = s->loc; /* stays the number of a location until the end */
        RP_TRY(add_attributes(r, s, &m));

        /* "%a, %b = ": each key is one result of the operation. */
        size_t n = r->results.n - results;
        /* a loop with one result and captured values returns a tuple */
        bool carries = r->p->code.at[id] == RP_OP_WHILE && r->outside.n && !counted;
        for (size_t i = 0; i < n; i++) {
            uint32_t op = id;

            if ((n > 1 || carries) && r->p->shapes.at[r->p->shape.at[id]].elem == RP_ELEM_TUPLE)
                RP_TRY(rp_mlir_part(r, r->at < r->end ? r->at : r->end, &op, (uint32_t)i));
            RP_TRY(rp_mlir_define(r, r->results.at[results + i], op));
        }
    }
    r->results.n = results;
    r->operands.n = s->operand;
    return r->bytecode ? rp_bc_status(r->bytecode) : RP_OK;
}

/* ---- functions and the module ---- */

enum rp_code rp_mlir_begin_function(struct rp_mlir *r, uint32_t name)
{
    uint32_t id;

    RP_TRY(rp_program_begin(r->p, name, &id, r->err));
    while (r->function_of.n <= name)
        RP_TRY(rp_vec_push(&r->function_of, 0, r->err));
    r->function_of.at[name] = id + 1;
    if (strcmp(rp_program_text(r->p, name), "main") == 0)
        r->p->entry = id;
    return RP_OK;
}

enum rp_code rp_mlir_finish(struct rp_mlir *r)
{
    if (!r->p->computations.n)
        return RP_MLIR_FAIL(r, r->end, "a module without functions");
    RP_TRY(rp_mlir_add_meshes(r));
    for (size_t i = 0; i + 1 < r->waiting.n; i += 2) {
        uint32_t name = r->waiting.at[i + 1];
        uint32_t id = name < r->function_of.n ? r->function_of.at[name] : 0;

        if (!id)
            return rp_err_set(r->err, RP_FORMAT, "function '@%s' is not defined",
                              rp_program_text(r->p, name));
        r->p->called.at[r->waiting.at[i]] = id - 1;
    }

    /* Replaces location numbers by the locations. */
    for (uint32_t op = 0; op < r->p->nops; op++) {
        uint32_t number = r->p->meta.at[op];
        struct rp_op_meta meta = {0};

        r->p->meta.at[op] = 0;
        for (unsigned hop = 0; number && number <= r->locs.n && hop < 16; hop++) {
            const struct rp_mlir_loc *loc = &r->locs.at[number - 1];

            if (!meta.op_name)
                meta.op_name = loc->name;
            meta.file = loc->file;
            meta.line = loc->line;
            number = loc->file ? 0 : loc->ref;
        }
        if (!meta.op_name && !meta.file)
            continue;
        r->p->meta.at[op] = (uint32_t)r->p->metas.n;
        RP_TRY(rp_vec_push(&r->p->metas, meta, r->err));
    }
    return rp_program_finish(r->p, r->err);
}
