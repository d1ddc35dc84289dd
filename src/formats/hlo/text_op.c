/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One instruction of HLO text:
 *
 *   [ROOT] %name = shape opcode(operands), key=value, ...
 *
 * Operands are names, with or without '%' and their shapes before them; '%x#1' is a part of a
 * tuple, for which an implicit get-tuple-element is made, only once; an operand may also be a whole
 * instruction. Operands precede their users.
 */
#include "formats/hlo/text.h"
#include "program/opcodes.h"

#include "formats/hlo/comparison.h"

#include <stdio.h>
#include <string.h>

#define HERE(r) ((uint32_t)(r)->p->computations.n) /* number of the current computation + 1 */

/* The slot where operations of this name are looked up; the table is grown to the string's id. */
static enum rp_code name_slot(struct rp_hlo_text *r, uint32_t name, uint64_t **slot)
{
    if (name >= r->op_of.n) {
        size_t more = (size_t)name + 1 - r->op_of.n;

        RP_TRY(rp_vec_reserve(&r->op_of, more, r->err));
        memset(r->op_of.at + r->op_of.n, 0, more * sizeof *r->op_of.at);
        r->op_of.n += more;
    }
    *slot = &r->op_of.at[name];
    return RP_OK;
}

/* ---- operands ---- */

/* Finds the get-tuple-element for the part after '#'. */
static enum rp_code tuple_part(struct rp_hlo_text *r, uint32_t *op, const char *where)
{
    const struct rp_op_shape *of = &r->p->shapes.at[r->p->shape.at[*op]];
    struct rp_new_op part = {.code = RP_OP_GET_TUPLE_ELEMENT, .flags = RP_OPS_IMPLICIT};
    uint32_t next = r->p->nops, known;

    if (!rp_hlo_text_int(r, &part.value) || part.value < 0)
        return RP_HLO_FAIL(r, r->at, "expected the number of a part after '#'");
    if (of->elem != RP_ELEM_TUPLE || part.value >= of->n)
        return RP_HLO_FAIL(r, where, "the operand has no tuple element %lld",
                           (long long)part.value);
    RP_TRY(rp_map_intern(&r->parts_of, (uint64_t)*op << 32 | (uint64_t)part.value, next, &known,
                         r->err));
    if (known == next) {
        part.name = r->p->op_name.at[*op];
        part.shape = r->p->parts.at[of->first + part.value];
        RP_TRY(rp_program_add_op(r->p, &part, &known, r->err));
        RP_TRY(rp_program_add_operand(r->p, *op, 0, r->err));
    }
    *op = known;
    return RP_OK;
}

static enum rp_code read_nested(struct rp_hlo_text *r, struct rp_slice opcode, uint32_t shape);

static enum rp_code read_operand(struct rp_hlo_text *r)
{
    uint32_t shape = 0, id, op;
    uint64_t *slot;

    rp_hlo_text_space(r);
    if (rp_hlo_text_peek(r) != '%' && rp_hlo_text_at_shape(r)) {
        RP_TRY(rp_hlo_text_shape(r, &shape));
        rp_hlo_text_space(r);
    }
    const char *where = r->at;
    struct rp_slice name = rp_hlo_text_name(r);
    if (!name.n)
        return RP_HLO_FAIL(r, where, "expected an operand");
    if (rp_hlo_text_peek(r) == '(')
        return read_nested(r, name, shape);
    RP_TRY(rp_program_string(r->p, name.at, name.n, &id, r->err));
    RP_TRY(name_slot(r, id, &slot));
    if ((uint32_t)(*slot >> 32) != HERE(r))
        return RP_HLO_FAIL(r, where, "operand '%.*s' is not defined", (int)name.n, name.at);
    op = (uint32_t)*slot;
    while (rp_hlo_text_peek(r) == '#') {
        r->at++;
        RP_TRY(tuple_part(r, &op, where));
    }
    return rp_vec_push(&r->operands, op, r->err);
}

/* Appends operands to those that are there already. */
static enum rp_code read_operands(struct rp_hlo_text *r)
{
    if (rp_hlo_text_take(r, ')'))
        return RP_OK;
    do {
        RP_TRY(read_operand(r));
    } while (rp_hlo_text_take(r, ','));
    return rp_hlo_text_expect(r, ')', "after the operands");
}

/* Reads the values of a constant, which are kept as text without the parentheses. */
static enum rp_code read_constant(struct rp_hlo_text *r, struct rp_new_op *op)
{
    const char *to = rp_hlo_text_bracket_end(r, r->at - 1);
    struct rp_literal literal = {.at = r->at, .shape = op->shape, .form = RP_LITERAL_TEXT};

    if (!to)
        return RP_HLO_FAIL(r, r->at - 1, "unclosed constant");
    literal.n = (size_t)(to - 1 - r->at);
    if (memmem(literal.at, literal.n, "...", 3))
        literal.form = RP_LITERAL_NONE;
    r->at = to;
    op->value = (int64_t)r->p->literals.n;
    return rp_vec_push(&r->p->literals, literal, r->err);
}

static enum rp_code read_parameter(struct rp_hlo_text *r, struct rp_new_op *op)
{
    rp_hlo_text_space(r);
    if (!rp_hlo_text_int(r, &op->value) || op->value < 0)
        return RP_HLO_FAIL(r, r->at, "expected the number of the parameter");
    return rp_hlo_text_expect(r, ')', "after the number of a parameter");
}

/* ---- attributes ---- */

enum rp_code rp_hlo_text_attr_key(struct rp_hlo_text *r, uint32_t *key)
{
    rp_hlo_text_space(r);
    struct rp_slice name = rp_hlo_text_word(r);
    if (!name.n)
        return RP_HLO_FAIL(r, r->at, "expected an attribute");
    RP_TRY(rp_string_cached(r->p, &r->cache, name.at, name.n, key, r->err));
    return rp_hlo_text_expect(r, '=', "after the name of an attribute");
}

static bool take_root(struct rp_hlo_text *r)
{
    if (r->end - r->at < 5 || memcmp(r->at, "ROOT", 4) != 0 ||
        !rp_hlo_text_is(r, r->at + 4, RP_HLO_CHAR_BLANK))
        return false;
    r->at += 4;
    rp_hlo_text_space(r);
    return true;
}

/* Whether '{' opens a computation: "{ ROOT x = ...", not "{%a, %b}". */
static bool at_body(struct rp_hlo_text *r)
{
    const char *from = r->at;
    bool body = rp_hlo_text_take(r, '{');

    if (body) {
        rp_hlo_text_space(r);
        take_root(r);
        body = rp_hlo_text_name(r).n && rp_hlo_text_take(r, '=');
    }
    r->at = from;
    return body;
}

/* Queues a body that is written in place, as in XLA's canonical form, under a generated name. */
static enum rp_code note_inlined(struct rp_hlo_text *r, struct rp_hlo_call *call)
{
    const char *to = rp_hlo_text_bracket_end(r, r->at);
    struct rp_hlo_inlined body = {.at = r->at + 1, .depth = r->depth + 1};
    char name[32];
    int n = snprintf(name, sizeof name, "inlined.%zu", r->inlined.n);

    if (!to)
        return RP_HLO_FAIL(r, r->at, "unclosed computation");
    if (body.depth > 64)
        return RP_HLO_FAIL(r, r->at, "computations nested too deeply");
    r->at = to;
    RP_TRY(rp_program_string(r->p, name, (size_t)n, &call->name, r->err));
    body.name = call->name;
    return rp_vec_push(&r->inlined, body, r->err);
}

/* "%a", "{%a, %b}" or the computations themselves */
static enum rp_code read_called(struct rp_hlo_text *r, uint32_t slot)
{
    struct rp_hlo_call call = {.slot = slot};

    rp_hlo_text_space(r);
    bool list = !at_body(r) && rp_hlo_text_take(r, '{');
    if (list && rp_hlo_text_take(r, '}'))
        return RP_OK;
    do {
        rp_hlo_text_space(r);
        call.where = r->at;
        if (rp_hlo_text_peek(r) == '{') {
            RP_TRY(note_inlined(r, &call));
        } else {
            struct rp_slice name = rp_hlo_text_name(r);
            if (!name.n)
                return RP_HLO_FAIL(r, r->at, "expected the name of a computation");
            RP_TRY(rp_program_string(r->p, name.at, name.n, &call.name, r->err));
        }
        RP_TRY(rp_vec_push(&r->calls, call, r->err));
        call.slot++;
    } while (list && rp_hlo_text_take(r, ','));
    return list ? rp_hlo_text_expect(r, '}', "after the called computations") : RP_OK;
}

/* The place of a key among the called computations, in the order of protobufs; -1: the key is
   another attribute. */
static int call_slot(uint32_t key, enum rp_opcode code)
{
    switch (key) {
    case RP_ATTR_TO_APPLY:
    case RP_ATTR_CALLS:
    case RP_ATTR_BODY:
    case RP_ATTR_TRUE_COMPUTATION:
    case RP_ATTR_BRANCH_COMPUTATIONS:
    case RP_ATTR_CALLED_COMPUTATIONS:
        return 0;
    case RP_ATTR_CONDITION:
    case RP_ATTR_FALSE_COMPUTATION:
        return 1;
    case RP_ATTR_SELECT:
        return code == RP_OP_SELECT_AND_SCATTER ? 0 : -1;
    case RP_ATTR_SCATTER:
        return code == RP_OP_SELECT_AND_SCATTER ? 1 : -1;
    default:
        return -1;
    }
}

static enum rp_code add_ids_attr(struct rp_hlo_text *r, uint32_t key, enum rp_value_type type)
{
    size_t n = r->ids.n;
    uint32_t *ids = n ? rp_arena_alloc(&r->p->arena, n * sizeof *ids, _Alignof(uint32_t)) : NULL;

    if (ids)
        memcpy(ids, r->ids.at, n * sizeof *ids);
    return rp_program_add_attr(
        r->p, (struct rp_attr){.ids = ids, .n = (uint32_t)n, .key = key, .type = (uint8_t)type},
        r->err);
}

/* Reads "{%a, %b}" into r->ids; false if one of them is not defined. */
static bool find_predecessors(struct rp_hlo_text *r, struct rp_slice value)
{
    const char *behind = r->at;

    r->ids.n = 0;
    r->at = value.at;
    bool good = rp_hlo_text_take(r, '{');
    while (good && !rp_hlo_text_take(r, '}')) {
        rp_hlo_text_space(r);
        struct rp_slice name = rp_hlo_text_name(r);
        uint32_t id = rp_strtab_find(&r->p->strings, name.at, name.n);
        good = name.n && id < r->op_of.n && (uint32_t)(r->op_of.at[id] >> 32) == HERE(r) &&
               rp_vec_push(&r->ids, (uint32_t)r->op_of.at[id], NULL) == RP_OK;
        rp_hlo_text_take(r, ',');
    }
    good = good && r->at == behind;
    r->at = behind;
    return good;
}

/* Reads "{f32[4]{0}, s32[]}" into r->ids; RP_FORMAT if the text is anything else. */
static enum rp_code find_shapes(struct rp_hlo_text *r, struct rp_slice value)
{
    struct rp_err *err = r->err;
    const char *behind = r->at;

    r->ids.n = 0;
    r->err = NULL; /* a value that is not a list of shapes stays text */
    r->at = value.at;
    enum rp_code code = rp_hlo_text_expect(r, '{', "before the shapes");
    bool more = code == RP_OK && !rp_hlo_text_take(r, '}');
    while (more && code == RP_OK) {
        uint32_t shape;

        rp_hlo_text_space(r);
        code = rp_hlo_text_shape(r, &shape);
        if (code == RP_OK)
            code = rp_vec_push(&r->ids, shape, NULL);
        more = rp_hlo_text_take(r, ',');
        if (!more && code == RP_OK)
            code = rp_hlo_text_expect(r, '}', "after the shapes");
    }
    if (code == RP_OK && r->at != behind)
        code = RP_FORMAT;
    r->err = err;
    r->at = behind;
    return code;
}

/* Lists and larger values are parsed once for each distinct text; operations share the value. */
static struct rp_attr parse_value(struct rp_hlo_text *r, uint32_t key, struct rp_slice value)
{
    uint64_t tail = 0;

    if (rp_attr_type(key) < RP_VALUE_INTS)
        return rp_attr_parse(r->p, key, value.at, value.n);
    memcpy(&tail, value.at + (value.n > 8 ? value.n - 8 : 0), value.n < 8 ? value.n : 8);
    tail = (tail ^ (uint64_t)key << 32 ^ value.n) * UINT64_C(0x9e3779b97f4a7c15);
    struct rp_hlo_value_memo *memo = &r->values[tail >> 56];
    if (memo->text.key != key || memo->text.n != value.n ||
        memcmp(memo->text.at, value.at, value.n) != 0) {
        memo->value = rp_attr_parse(r->p, key, value.at, value.n);
        memo->text = (struct rp_slice){value.at, value.n, key};
    }
    return memo->value;
}

static enum rp_code read_attribute(struct rp_hlo_text *r, uint32_t op)
{
    struct rp_program *p = r->p;
    struct rp_slice value;
    uint32_t key;

    RP_TRY(rp_hlo_text_attr_key(r, &key));
    int slot = call_slot(key, (enum rp_opcode)p->code.at[op]);
    if (slot >= 0) {
        RP_TRY(read_called(r, (uint32_t)slot));
        if (p->code.at[op] == RP_OP_ASYNC_UPDATE || p->code.at[op] == RP_OP_ASYNC_DONE)
            r->calls.n =
                0; /* the async-start has these calls, and current XLA writes them only there */
        return RP_OK;
    }
    rp_hlo_text_space(r);
    if (key == RP_ATTR_INDEX && p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT) {
        if (!rp_hlo_text_int(r, &p->value.at[op]) || p->value.at[op] < 0)
            return RP_HLO_FAIL(r, r->at, "expected the number of a part");
        return RP_OK;
    }
    RP_TRY(rp_hlo_text_value(r, &value));
    if (key == RP_ATTR_METADATA)
        return rp_hlo_text_metadata(r, value, &p->meta.at[op]);

    /* Adds a value that names operations or shapes, or its raw text if they cannot be found. */
    if (key == RP_ATTR_CONTROL_PREDECESSORS && find_predecessors(r, value))
        return add_ids_attr(r, key, RP_VALUE_OPS);
    if (key == RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS) {
        enum rp_code code = find_shapes(r, value);
        if (code == RP_OK)
            return add_ids_attr(r, key, RP_VALUE_SHAPES);
        if (code == RP_NOMEM)
            return rp_err_nomem(r->err, "reading attributes");
    }
    struct rp_attr attr = parse_value(r, key, value);
    return rp_hlo_comparison_attr(r->p, op, &attr) ? rp_program_add_attr(r->p, attr, r->err)
                                                   : RP_OK;
}

/* Adds calls in the order of their slots; calls of computations defined later are resolved at the
   end. */
enum rp_code rp_hlo_text_add_calls(struct rp_hlo_text *r)
{
    struct rp_hlo_call *call = r->calls.at;

    for (size_t i = 1; i < r->calls.n; i++)
        for (size_t k = i; k && call[k].slot < call[k - 1].slot; k--) {
            struct rp_hlo_call swap = call[k];

            call[k] = call[k - 1];
            call[k - 1] = swap;
        }
    for (size_t i = 0; i < r->calls.n; i++) {
        uint32_t name = call[i].name, known = 0;

        if (name < r->computation_of.n)
            known = r->computation_of.at[name];
        call[i].at = (uint32_t)r->p->called.n;
        RP_TRY(rp_program_add_called(r->p, known ? known - 1 : 0, r->err));
        if (!known)
            RP_TRY(rp_vec_push(&r->waiting, call[i], r->err));
    }
    r->calls.n = 0;
    return RP_OK;
}

/* ---- the whole ---- */

/* The operation has the operands from `first` on. */
static enum rp_code add_instruction(struct rp_hlo_text *r, const struct rp_new_op *op, size_t first,
                                    uint32_t *id)
{
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu instructions",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_add_op(r->p, op, id, r->err));
    for (size_t i = first; i < r->operands.n; i++)
        RP_TRY(rp_program_add_operand(r->p, r->operands.at[i], 0, r->err));
    r->operands.n = first;
    return RP_OK;
}

/* Reads "f32[2] add(a, b)" as an operand: an operation without attributes, with a generated
   name. */
static enum rp_code read_nested(struct rp_hlo_text *r, struct rp_slice opcode, uint32_t shape)
{
    struct rp_new_op op = {.shape = shape, .flags = RP_OPS_IMPLICIT};
    size_t first = r->operands.n;
    char name[32];
    uint32_t id;

    if (r->nested >= 64)
        return RP_HLO_FAIL(r, opcode.at, "instructions nested too deeply");
    RP_TRY(rp_program_string(r->p, opcode.at, opcode.n, &op.foreign, r->err));
    op.code = rp_program_opcode(r->p, op.foreign);
    if (op.code == RP_OP_FOREIGN)
        return RP_HLO_FAIL(r, opcode.at, "unknown opcode '%.*s'", (int)opcode.n, opcode.at);
    r->at++;
    r->nested++;
    if (op.code == RP_OP_CONSTANT)
        RP_TRY(read_constant(r, &op));
    else if (op.code == RP_OP_PARAMETER)
        RP_TRY(read_parameter(r, &op));
    else
        RP_TRY(read_operands(r));
    r->nested--;
    int n = snprintf(name, sizeof name, "nested.%u", r->p->nops);
    RP_TRY(rp_program_string(r->p, name, (size_t)n, &op.name, r->err));
    RP_TRY(add_instruction(r, &op, first, &id));
    return rp_vec_push(&r->operands, id, r->err);
}

/* Reads shape, opcode and operands. *wrapped is the opcode that is started asynchronously. */
static enum rp_code read_body(struct rp_hlo_text *r, struct rp_new_op *op, uint32_t *wrapped)
{
    rp_hlo_text_space(r);
    if (rp_hlo_text_at_shape(r)) {
        RP_TRY(rp_hlo_text_shape(r, &op->shape));
        rp_hlo_text_space(r);
    }
    const char *where = r->at;
    struct rp_slice opcode = rp_hlo_text_word(r);
    if (!opcode.n)
        return RP_HLO_FAIL(r, where, "expected an opcode");
    RP_TRY(rp_string_cached(r->p, &r->cache, opcode.at, opcode.n, &op->foreign, r->err));
    op->code = rp_program_opcode(r->p, op->foreign);
    if (op->code == RP_OP_FOREIGN)
        *wrapped = rp_hlo_async_short(r, opcode, &op->code);
    RP_TRY(rp_hlo_text_expect(r, '(', "after the opcode"));
    r->operands.n = 0;
    if (op->code == RP_OP_CONSTANT)
        return read_constant(r, op);
    if (op->code == RP_OP_PARAMETER)
        return read_parameter(r, op);
    RP_TRY(read_operands(r));
    const struct rp_op_info *info = &rp_op_info[op->code];
    if (r->operands.n < info->min_operands ||
        (info->max_operands != 255 && r->operands.n > info->max_operands))
        return RP_HLO_FAIL(r, where, "%s takes %s%u operands, not %zu", info->name,
                           info->max_operands == 255 ? "at least " : "", info->min_operands,
                           r->operands.n);
    return RP_OK;
}

enum rp_code rp_hlo_text_instruction(struct rp_hlo_text *r)
{
    struct rp_new_op op = {0};
    uint64_t *slot;
    uint32_t id, wrapped = RP_NONE;
    bool root = take_root(r);
    const char *where = r->at;
    struct rp_slice name = rp_hlo_text_name(r);

    if (!name.n)
        return RP_HLO_FAIL(r, where, "expected an instruction or '}'");
    RP_TRY(rp_program_string(r->p, name.at, name.n, &op.name, r->err));
    RP_TRY(rp_hlo_text_expect(r, '=', "after the name of an instruction"));
    RP_TRY(read_body(r, &op, &wrapped));
    RP_TRY(add_instruction(r, &op, 0, &id));
    RP_TRY(name_slot(r, op.name, &slot));
    if ((uint32_t)(*slot >> 32) == HERE(r))
        return RP_HLO_FAIL(r, where, "'%.*s' is defined twice", (int)name.n, name.at);
    *slot = (uint64_t)HERE(r) << 32 | id;
    if (root)
        r->p->computations.at[r->p->computations.n - 1].root = id;
    while (rp_hlo_text_take(r, ','))
        RP_TRY(read_attribute(r, id));
    if (wrapped != RP_NONE)
        return rp_hlo_async_defer(r, id, wrapped);
    return r->calls.n ? rp_hlo_text_add_calls(r) : RP_OK;
}
