/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an HLO module as an HloProto. Ids are new, because text has none, so everything that
 * refers to them (operands, roots, calls, the schedule) is written with the new ones.
 */
#include "formats/write/hlo_proto.h"

#include "abi/proto/hlo.h"
#include "formats/programs.h"
#include "formats/write/writers.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_text(const struct rp_hlo_writer *put, uint32_t field, uint32_t string)
{
    if (string)
        rp_proto_put_bytes(put->w, field, rp_program_text(put->p, string),
                           rp_strtab_len(&put->p->strings, string));
}

static void put_number(const struct rp_hlo_writer *put, uint32_t field, int64_t value)
{
    if (value)
        rp_proto_put_varint(put->w, field, (uint64_t)value);
}

enum rp_code rp_hlo_write_own(const struct rp_hlo_writer *put, const struct rp_attr *attr)
{
    const char *key = rp_program_text(put->p, attr->key);
    size_t begun = rp_proto_begin(put->w, RP_HLO_OWN_FIELD);
    RP_SCOPED(rp_chars_release) struct rp_chars text = {0};

    rp_attr_print(put->p, attr, &text);
    rp_proto_add_bytes(put->w, key, strlen(key));
    rp_proto_add_bytes(put->w, "=", 1);
    rp_proto_add_bytes(put->w, text.at, text.n);
    rp_proto_end(put->w, begun);
    return text.failed ? rp_err_nomem(put->err, "writing an attribute") : RP_OK;
}

/* ---- shapes ---- */

/* Puts "(8,128)(2,1)" of a layout, one message for each tile. Returns the position after the tiles,
   or NULL. */
static const char *put_tiles(const struct rp_hlo_writer *put, const char *s)
{
    while (*s == '(') {
        size_t tile = rp_proto_begin(put->w, RP_HLO_LAYOUT_TILES),
               list = rp_proto_begin(put->w, RP_HLO_TILE_DIMENSIONS);

        for (s++; *s && *s != ')'; s += strspn(s, ", ")) {
            char *end;
            int64_t v = strtoll(s, &end, 10);

            if (end == s)
                break;
            rp_proto_add_varint(put->w, (uint64_t)v);
            s = end;
        }
        rp_proto_end(put->w, list);
        rp_proto_end(put->w, tile);
        if (*s++ != ')')
            return NULL;
    }
    return s;
}

/* Puts what follows the ':' of a layout, as far as there are fields for it. */
static bool put_layout_rest(const struct rp_hlo_writer *put, const char *s)
{
    while (s && *s && *s != '}') {
        char word = *s++, *end;

        if (*s != '(')
            return false;
        if (word == 'T') {
            s = put_tiles(put, s);
            continue;
        }
        int64_t v = strtoll(s + 1, &end, 10);
        if (*end != ')')
            return false;
        s = end + 1;
        if (word == 'L')
            rp_proto_put_varint(put->w, RP_HLO_LAYOUT_TAIL_PADDING_ALIGNMENT_IN_ELEMENTS,
                                (uint64_t)v);
        else if (word == 'E')
            rp_proto_put_varint(put->w, RP_HLO_LAYOUT_ELEMENT_SIZE_IN_BITS, (uint64_t)v);
        else if (word == 'S')
            rp_proto_put_varint(put->w, RP_HLO_LAYOUT_MEMORY_SPACE, (uint64_t)v);
        else if (word == 'M')
            rp_proto_put_varint(put->w, RP_HLO_LAYOUT_DYNAMIC_SHAPE_METADATA_PREFIX_BYTES,
                                (uint64_t)v);
        else
            return false;
    }
    return s != NULL;
}

static void put_row_major(const struct rp_hlo_writer *put, uint32_t rank)
{
    size_t begun = rp_proto_begin(put->w, RP_HLO_SHAPE_LAYOUT), list;

    if (rank) {
        list = rp_proto_begin(put->w, RP_HLO_LAYOUT_MINOR_TO_MAJOR);
        for (uint32_t i = rank; i-- > 0;)
            rp_proto_add_varint(put->w, i);
        rp_proto_end(put->w, list);
    }
    rp_proto_end(put->w, begun);
}

static void put_layout(const struct rp_hlo_writer *put, const char *text)
{
    const char *s = text + 1;
    size_t begun = rp_proto_begin(put->w, RP_HLO_SHAPE_LAYOUT), mark = put->w->bytes.n, list;

    list = rp_proto_begin(put->w, RP_HLO_LAYOUT_MINOR_TO_MAJOR);
    while (*s >= '0' && *s <= '9') {
        char *end;

        rp_proto_add_varint(put->w, strtoull(s, &end, 10));
        s = end + (*end == ',');
    }
    rp_proto_end(put->w, list);
    if ((*s == ':' && !put_layout_rest(put, s + 1)) || (*s != ':' && *s != '}')) {
        put->w->bytes.n = mark;
        rp_proto_put_text(put->w, RP_HLO_OWN_FIELD, text);
    }
    rp_proto_end(put->w, begun);
}

static void put_dims(const struct rp_hlo_writer *put, const struct rp_op_shape *s)
{
    if (!s->n)
        return;
    size_t list = rp_proto_begin(put->w, RP_HLO_SHAPE_DIMENSIONS);
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t dim = put->p->dims.at[s->first + i];

        rp_proto_add_varint(put->w, (uint64_t)(dim < 0 ? INT64_MIN : dim));
    }
    rp_proto_end(put->w, list);
    list = rp_proto_begin(put->w, RP_HLO_SHAPE_IS_DYNAMIC_DIMENSION);
    for (uint32_t i = 0; i < s->n; i++)
        rp_proto_add_varint(put->w, put->p->dim_dynamic.at[s->first + i]);
    rp_proto_end(put->w, list);
}

void rp_hlo_write_shape(const struct rp_hlo_writer *put, uint32_t field, uint32_t shape)
{
    const struct rp_op_shape *s = &put->p->shapes.at[shape];
    size_t begun = rp_proto_begin(put->w, field);

    rp_proto_put_varint(put->w, RP_HLO_SHAPE_ELEMENT_TYPE, s->elem);
    if (s->elem == RP_ELEM_TUPLE) {
        for (uint32_t i = 0; i < s->n; i++)
            rp_hlo_write_shape(put, RP_HLO_SHAPE_TUPLE_SHAPES, put->p->parts.at[s->first + i]);
    } else {
        put_dims(put, s);

        /* Text without a layout means row-major; XLA requires it to be explicit. */
        const char *layout = rp_program_text(put->p, s->layout);
        if (*layout)
            put_layout(put, layout);
        else if (s->elem != RP_ELEM_TOKEN && s->elem != RP_ELEM_OPAQUE &&
                 s->elem != RP_ELEM_INVALID)
            put_row_major(put, s->n);
    }
    rp_proto_end(put->w, begun);
}

/* ---- constants ---- */

/* Puts values in row-major order, for a shape that is written without a layout. */
static void put_values(const struct rp_hlo_writer *put, unsigned elem, const unsigned char *values,
                       size_t n)
{
    size_t unit = rp_literal_unit(elem), list;
    bool varints;
    uint32_t field = rp_literal_field(elem, &varints);

    if (!varints) {
        rp_proto_put_bytes(put->w, field, values, n * unit);
        return;
    }
    list = rp_proto_begin(put->w, field);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;

        for (size_t k = 0; k < unit; k++)
            v |= (uint64_t)values[unit * i + k] << 8 * k;
        if (elem == RP_ELEM_S32)
            v = (uint64_t)(int64_t)(int32_t)v;
        rp_proto_add_varint(put->w, v);
    }
    rp_proto_end(put->w, list);
}

/* Puts the shape of a literal: the order of the instruction's layout without its tiles, or
   row-major. */
static void put_plain_shape(const struct rp_hlo_writer *put, uint32_t shape, const uint32_t *order)
{
    const struct rp_op_shape *s = &put->p->shapes.at[shape];
    size_t begun = rp_proto_begin(put->w, RP_HLO_LITERAL_SHAPE), layout, list;

    rp_proto_put_varint(put->w, RP_HLO_SHAPE_ELEMENT_TYPE, s->elem);
    put_dims(put, s);
    if (order) {
        layout = rp_proto_begin(put->w, RP_HLO_SHAPE_LAYOUT);
        list = rp_proto_begin(put->w, RP_HLO_LAYOUT_MINOR_TO_MAJOR);
        for (uint32_t i = 0; i < s->n; i++)
            rp_proto_add_varint(put->w, order[i]);
        rp_proto_end(put->w, list);
        rp_proto_end(put->w, layout);
    } else {
        put_row_major(put, s->n);
    }
    rp_proto_end(put->w, begun);
}

static enum rp_code hlo_write_literal(const struct rp_hlo_writer *put, uint32_t op)
{
    RP_FREED unsigned char *values = NULL;

    if ((uint64_t)put->p->value.at[op] >= put->p->literals.n)
        return RP_OK;
    const struct rp_literal *literal = &put->p->literals.at[put->p->value.at[op]];
    if (literal->form == RP_LITERAL_PROTO)
        rp_proto_put_bytes(put->w, RP_HLO_INSTRUCTION_LITERAL, literal->at, literal->n);
    if (put->complete && literal->form == RP_LITERAL_NONE)
        return rp_err_set(put->err, RP_FORMAT,
                          "the values of the constant '%s' were left out of the text: dump with "
                          "--xla_dump_large_constants, or use the .hlo.pb",
                          rp_program_text(put->p, put->p->op_name.at[op]));
    if (literal->form == RP_LITERAL_NONE || !rp_literal_known(put->p, literal))
        return RP_OK;
    uint32_t shape = put->p->shape.at[op]; /* same type and size as the literal's */
    size_t n = (size_t)rp_shape_elements(put->p, literal->shape);
    /* checked before memory is allocated: each value takes at least a byte */
    if (n > literal->n && n > RP_LITERAL_REPEAT)
        return rp_err_set(put->err, RP_FORMAT, "a constant of %zu values in %zu bytes", n,
                          literal->n);
    if (rp_shape_elements(put->p, shape) != (int64_t)n ||
        put->p->shapes.at[shape].elem != put->p->shapes.at[literal->shape].elem)
        shape = literal->shape;
    size_t size = n * rp_literal_unit(put->p->shapes.at[shape].elem);
    values = malloc(2 * size + 1);
    RP_TRY(rp_err_need(values, put->err, "writing a constant"));

    /* Puts values in the order of the instruction's layout, which XLA requires of the literal. */
    unsigned elem = put->p->shapes.at[shape].elem, bits = rp_elem_bits(elem);
    size_t unit = rp_literal_unit(elem), begun;
    unsigned char *laid_out = values;
    uint32_t order[64];
    bool laid = rp_shape_minor_to_major(put->p, shape, order, 64);
    RP_TRY(rp_literal_decode(put->p, literal, values, n * unit, put->err));
    if (laid) {
        rp_literal_lay(put->p, shape, values, values + n * unit);
        laid_out += n * unit;
    }
    for (size_t i = 0; i < n && bits < 8 && elem != RP_ELEM_PRED; i++)
        laid_out[i] = (unsigned char)(laid_out[i] & ((1u << bits) - 1)); /* as XLA writes them */
    begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_LITERAL);
    put_plain_shape(put, shape, laid ? order : NULL);
    put_values(put, elem, laid_out, n);
    rp_proto_end(put->w, begun);
    return RP_OK;
}

/* ---- instructions ---- */

static void put_metadata(const struct rp_hlo_writer *put, uint32_t op)
{
    const struct rp_op_meta *m = &put->p->metas.at[put->p->meta.at[op]];

    if (!put->p->meta.at[op])
        return;
    size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_METADATA);
    put_text(put, RP_HLO_METADATA_OP_TYPE, m->op_type);
    put_text(put, RP_HLO_METADATA_OP_NAME, m->op_name);
    put_text(put, RP_HLO_METADATA_SOURCE_FILE, m->file);
    put_number(put, RP_HLO_METADATA_SOURCE_LINE, m->line);
    put_text(put, RP_HLO_METADATA_DEDUPLICATED_NAME, m->deduplicated_name);
    put_number(put, RP_HLO_METADATA_STACK_FRAME_ID, m->frame);
    put_text(put, RP_HLO_METADATA_SCHEDULING_NAME, m->scheduling_name);
    put_number(put, RP_HLO_METADATA_SOURCE_END_LINE, m->end_line);
    put_number(put, RP_HLO_METADATA_SOURCE_COLUMN, m->column);
    put_number(put, RP_HLO_METADATA_SOURCE_END_COLUMN, m->end_column);
    rp_proto_end(put->w, begun);
}

/* Implicit parts of tuples get generated names: "x.gte.0". In text, names are unique in their
   computation; a compiler requires them to be unique in the module, so the second "x" is
   "x.again.7". */
static void put_name(const struct rp_hlo_writer *put, uint32_t op)
{
    uint32_t id = put->p->op_name.at[op];
    const char *name = rp_program_text(put->p, id);
    char text[512];
    int n;

    if (!(put->p->flags.at[op] & RP_OPS_IMPLICIT) && *name) {
        bool letter = (name[0] | 32) >= 'a' && (name[0] | 32) <= 'z';

        if (!letter &&
            name[0] != '_') { /* XLA would replace it by '_', which would not be unique */
            n = snprintf(text, sizeof text, "op.%.400s.%u", name, op);
            rp_proto_put_bytes(put->w, RP_HLO_INSTRUCTION_NAME, text, n < 0 ? 0 : (size_t)n);
        } else if (!put->seen[id]) {
            rp_proto_put_text(put->w, RP_HLO_INSTRUCTION_NAME, name);
        } else {
            n = snprintf(text, sizeof text, "%.400s.again.%u", name, op);
            rp_proto_put_bytes(put->w, RP_HLO_INSTRUCTION_NAME, text, n < 0 ? 0 : (size_t)n);
        }
        put->seen[id] = 1;
        return;
    }
    n = snprintf(text, sizeof text, "%.400s.gte.%lld.%u", *name ? name : "op",
                 (long long)put->p->value.at[op], op);
    rp_proto_put_bytes(put->w, RP_HLO_INSTRUCTION_NAME, text, n < 0 ? 0 : (size_t)n);
}

static enum rp_code put_instruction(const struct rp_hlo_writer *put, uint32_t op)
{
    size_t begun = rp_proto_begin(put->w, RP_HLO_COMPUTATION_INSTRUCTIONS);
    enum rp_opcode code = (enum rp_opcode)put->p->code.at[op];

    put_name(put, op);
    rp_proto_put_text(put->w, RP_HLO_INSTRUCTION_OPCODE, rp_op_opcode_name(put->p, op));
    rp_hlo_write_shape(put, RP_HLO_INSTRUCTION_SHAPE, put->p->shape.at[op]);
    put_metadata(put, op);
    if (code == RP_OP_CONSTANT)
        RP_TRY(hlo_write_literal(put, op));
    else if (code == RP_OP_PARAMETER)
        put_number(put, RP_HLO_INSTRUCTION_PARAMETER_NUMBER, put->p->value.at[op]);
    else if (code == RP_OP_GET_TUPLE_ELEMENT)
        put_number(put, RP_HLO_INSTRUCTION_TUPLE_INDEX, put->p->value.at[op]);

    /* Puts the ids of the instruction, of its operands, and of the computations it calls. */
    struct rp_ids operands = rp_op_operands(put->p, op), called = rp_op_called(put->p, op);
    rp_proto_put_varint(put->w, RP_HLO_INSTRUCTION_ID, rp_hlo_write_id(put->p, op));
    if (operands.n) {
        size_t list = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_OPERAND_IDS);
        for (uint32_t i = 0; i < operands.n; i++)
            rp_proto_add_varint(put->w, rp_hlo_write_id(put->p, operands.at[i]));
        rp_proto_end(put->w, list);
    }
    if (called.n) {
        size_t list = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_CALLED_COMPUTATION_IDS);
        for (uint32_t i = 0; i < called.n; i++)
            rp_proto_add_varint(put->w, (uint64_t)called.at[i] + 1);
        rp_proto_end(put->w, list);
    }
    RP_TRY(rp_hlo_write_attrs(put, op));
    rp_proto_end(put->w, begun);
    return RP_OK;
}

/* ---- computations and the module ---- */

static enum rp_code put_program_shape(const struct rp_hlo_writer *put, uint32_t field,
                                      const struct rp_computation *c)
{
    RP_FREED uint32_t *at = calloc((size_t)c->nparams + 1, sizeof *at);

    RP_TRY(rp_err_need(at, put->err, "writing a computation"));
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        if (put->p->code.at[op] == RP_OP_PARAMETER)
            at[put->p->value.at[op]] = op; /* numbers were checked by rp_program_validate */
    size_t begun = rp_proto_begin(put->w, field);
    for (uint32_t i = 0; i < c->nparams; i++)
        rp_hlo_write_shape(put, RP_HLO_PROGRAM_SHAPE_PARAMETERS, put->p->shape.at[at[i]]);
    rp_hlo_write_shape(put, RP_HLO_PROGRAM_SHAPE_RESULT, put->p->shape.at[c->root]);
    for (uint32_t i = 0; i < c->nparams; i++)
        rp_proto_put_text(put->w, RP_HLO_PROGRAM_SHAPE_PARAMETER_NAMES,
                          rp_program_text(put->p, put->p->op_name.at[at[i]]));
    rp_proto_end(put->w, begun);
    return RP_OK;
}

static enum rp_code put_computation(const struct rp_hlo_writer *put, uint32_t id)
{
    const struct rp_computation *c = &put->p->computations.at[id];
    size_t begun = rp_proto_begin(put->w, RP_HLO_MODULE_COMPUTATIONS);

    put_text(put, RP_HLO_COMPUTATION_NAME, c->name);
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        RP_TRY(put_instruction(put, op));
    RP_TRY(put_program_shape(put, RP_HLO_COMPUTATION_PROGRAM_SHAPE, c));
    rp_proto_put_varint(put->w, RP_HLO_COMPUTATION_ID, (uint64_t)id + 1);
    rp_proto_put_varint(put->w, RP_HLO_COMPUTATION_ROOT_ID, rp_hlo_write_id(put->p, c->root));
    put_number(put, RP_HLO_COMPUTATION_IS_FUSION_COMPUTATION, c->fused);
    put_text(put, RP_HLO_COMPUTATION_EXECUTION_THREAD, c->thread);
    rp_proto_end(put->w, begun);
    return RP_OK;
}

/* The order of the file becomes the schedule. */
static void put_schedule(const struct rp_hlo_writer *put)
{
    size_t schedule = rp_proto_begin(put->w, RP_HLO_MODULE_SCHEDULE);

    for (uint32_t i = 0; i < put->p->computations.n; i++) {
        const struct rp_computation *c = &put->p->computations.at[i];

        if (c->fused)
            continue;
        size_t entry = rp_proto_begin(put->w, RP_HLO_SCHEDULE_SEQUENCES);
        rp_proto_put_varint(put->w, RP_HLO_SEQUENCE_ENTRY_KEY, (uint64_t)i + 1);
        size_t sequence = rp_proto_begin(put->w, RP_HLO_SEQUENCE_ENTRY_VALUE);
        size_t list = rp_proto_begin(put->w, RP_HLO_SEQUENCE_INSTRUCTION_IDS);
        for (uint32_t op = c->first; op < c->first + c->n; op++)
            rp_proto_add_varint(put->w, rp_hlo_write_id(put->p, op));
        rp_proto_end(put->w, list);
        rp_proto_end(put->w, sequence);
        rp_proto_end(put->w, entry);
    }
    rp_proto_end(put->w, schedule);
}

static enum rp_code put_module(const struct rp_hlo_writer *put)
{
    const struct rp_program *p = put->p;
    const struct rp_computation *entry = &p->computations.at[p->entry];

    rp_proto_put_text(put->w, RP_HLO_MODULE_NAME, p->name ? rp_program_text(p, p->name) : "module");
    put_text(put, RP_HLO_MODULE_ENTRY_COMPUTATION_NAME, entry->name);

    /* Callees come first, as XLA requires. */
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    uint32_t *order;
    RP_TRY(rp_program_call_order(put->p, &scratch, &order, put->err));
    for (size_t i = 0; i < put->p->computations.n; i++)
        RP_TRY(put_computation(put, order[i]));
    RP_TRY(put_program_shape(put, RP_HLO_MODULE_HOST_PROGRAM_SHAPE, entry));
    rp_proto_put_varint(put->w, RP_HLO_MODULE_ENTRY_COMPUTATION_ID, (uint64_t)p->entry + 1);

    /* Names have the number of their place in the list of locations, so each location has its own
       pair. */
    size_t frames, begun;
    if (put->p->frames.n) {
        frames = rp_proto_begin(put->w, RP_HLO_MODULE_STACK_FRAME_INDEX);
        for (size_t i = 0; i < put->p->locations.n; i++)
            rp_proto_put_text(put->w, RP_HLO_FRAME_INDEX_FILE_NAMES,
                              rp_program_text(put->p, put->p->locations.at[i].file));
        for (size_t i = 0; i < put->p->locations.n; i++)
            rp_proto_put_text(put->w, RP_HLO_FRAME_INDEX_FUNCTION_NAMES,
                              rp_program_text(put->p, put->p->locations.at[i].function));
        for (size_t i = 0; i < put->p->locations.n; i++) {
            const struct rp_location *at = &put->p->locations.at[i];

            begun = rp_proto_begin(put->w, RP_HLO_FRAME_INDEX_FILE_LOCATIONS);
            rp_proto_put_varint(put->w, RP_HLO_FILE_LOCATION_FILE_NAME_ID, i + 1);
            rp_proto_put_varint(put->w, RP_HLO_FILE_LOCATION_FUNCTION_NAME_ID, i + 1);
            put_number(put, RP_HLO_FILE_LOCATION_LINE, at->line);
            put_number(put, RP_HLO_FILE_LOCATION_COLUMN, at->column);
            put_number(put, RP_HLO_FILE_LOCATION_END_LINE, at->end_line);
            put_number(put, RP_HLO_FILE_LOCATION_END_COLUMN, at->end_column);
            rp_proto_end(put->w, begun);
        }
        for (size_t i = 0; i < put->p->frames.n; i++) {
            begun = rp_proto_begin(put->w, RP_HLO_FRAME_INDEX_STACK_FRAMES);
            rp_proto_put_varint(put->w, RP_HLO_STACK_FRAME_FILE_LOCATION_ID,
                                (uint64_t)put->p->frames.at[i].location + 1);
            put_number(put, RP_HLO_STACK_FRAME_PARENT_FRAME_ID, put->p->frames.at[i].parent);
            rp_proto_end(put->w, begun);
        }
        rp_proto_end(put->w, frames);
    }
    for (size_t i = 0; i < put->p->module_attrs.n; i++) {
        const struct rp_attr *attr = &put->p->module_attrs.at[i];

        if (attr->type == RP_VALUE_ALIASES)
            rp_hlo_write_module_aliases(put, attr);
        else if (attr->type == RP_VALUE_WIRE)
            rp_proto_add_bytes(put->w, attr->at, attr->n);
        else if (attr->key == RP_ATTR_FRONTEND_ATTRIBUTES && attr->type == RP_VALUE_MAP)
            rp_hlo_write_map(put, RP_HLO_MODULE_FRONTEND_ATTRIBUTES, attr);
        else if (attr->key == RP_ATTR_IS_SCHEDULED)
            put_schedule(put);
        else
            RP_TRY(rp_hlo_write_own(put, attr));
    }
    return RP_OK;
}

enum rp_code rp_hlo_writable(const struct rp_program *p, struct rp_err *err)
{
    bool stablehlo = strcmp(p->language, "stablehlo") == 0;

    if ((strcmp(p->language, "hlo") != 0 && !stablehlo) || p->entry == RP_NONE)
        return rp_err_set(err, RP_UNSUPPORTED, "a program in %s cannot be written as HLO",
                          p->language);
    for (uint32_t op = 0; stablehlo && op < p->nops; op++)
        if (p->code.at[op] == RP_OP_FOREIGN)
            return rp_err_set(err, RP_UNSUPPORTED,
                              "operation '%s' of StableHLO cannot be written as HLO",
                              rp_op_opcode_name(p, op));
    return RP_OK;
}

/* proto: writes an HloProto, of which the module is a field. */
static enum rp_code write_module(const struct rp_program *p, bool proto, struct rp_proto_writer *to,
                                 struct rp_err *err)
{
    struct rp_hlo_writer put = {.p = p, .w = to, .err = err, .complete = !proto};
    struct rp_bytes bytes;
    size_t module = 0;

    RP_TRY(rp_hlo_writable(p, err));
    put.seen = calloc((size_t)p->strings.n + 1, 1);
    RP_TRY(rp_err_need(put.seen, err, "writing a module"));
    if (proto)
        module = rp_proto_begin(to, RP_HLO_PROTO_HLO_MODULE);
    enum rp_code code = put_module(&put);
    free(put.seen);
    RP_TRY(code);
    if (proto)
        rp_proto_end(to, module);
    return rp_proto_written(to, &bytes, err);
}

enum rp_code rp_hlo_proto_write(const struct rp_program *p, struct rp_proto_writer *to,
                                struct rp_err *err)
{
    return write_module(p, true, to, err);
}

enum rp_code rp_hlo_module_write(const struct rp_program *p, struct rp_proto_writer *to,
                                 struct rp_err *err)
{
    return write_module(p, false, to, err);
}

static enum rp_code write_proto(const struct rp_program *program, const char *path,
                                const struct rp_write_options *options, struct rp_err *err)
{
    struct rp_proto_writer w = {0};
    struct rp_bytes bytes;
    struct rp_out *to = NULL;
    enum rp_code code = rp_hlo_proto_write(program, &w, err);

    (void)options;
    if (code == RP_OK)
        code = rp_out_open(path, &to, err);
    if (code == RP_OK)
        code = rp_proto_written(&w, &bytes, err);
    if (code == RP_OK) {
        rp_out_write(to, bytes.at, bytes.n);
        code = rp_out_close(to, err);
    } else {
        rp_out_abandon(to);
    }
    rp_proto_writer_release(&w);
    return code;
}

const struct rp_writer rp_writer_hlo_proto = {
    .name = "hlo-proto",
    .endings = {".hlo.pb"},
    .summary = "HLO module as a protobuf (HloProto)",
    .streams = true,
    .available = true,
    .write_program = write_proto,
};
