/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redacts programs. A replaced value depends only on its position, so nothing of the original is
 * left. Floats, complex numbers and integers of up to eight bits are weights; wider integers are
 * indices and sizes, which decide what a program computes, and are kept. Cost: one pass over the
 * program.
 */
#include "replay/redact.h"

#include "abi/proto/tensorflow.h"
#include "exec/data/tensor.h"
#include "formats/schema.h"
#include "formats/tensorflow/tensor.h"
#include "program/floats.h"
#include "program/literal.h"
#include "program/structure.h"

#include <string.h>

#define DEPTH 100 /* levels of messages */

/* ---- values ---- */

static bool is_weight(unsigned elem, size_t n)
{
    size_t unit = rp_literal_unit(elem);

    return n > RP_HASH_ELEMENTS && elem != RP_ELEM_PRED &&
           (rp_elem_is_float(elem) || rp_elem_is_complex(elem) || unit == 1);
}

/* Fills an array with values that depend on the position only. */
static void fill_pattern(unsigned elem, size_t n, unsigned char *values)
{
    bool pair = rp_elem_is_complex(elem);
    struct rp_tensor view = {.elem = (uint8_t)elem, .n = n, .unit = rp_literal_unit(elem)};

    if (pair) { /* counts as twice as many real numbers */
        view.elem = elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;
        view.n = 2 * n;
        view.unit /= 2;
    }
    view.data = values;
    for (size_t i = 0; i < view.n; i++) {
        uint64_t mixed = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 40;

        if (rp_elem_is_float(view.elem))
            rp_tensor_set(&view, i, ((double)mixed / 8388608 - 1) / 8);
        else
            rp_tensor_set_integer(&view, i, (int64_t)(mixed % 3));
    }
}

/* ---- HLO ---- */

enum rp_code rp_redact_program(struct rp_program *program, struct rp_arena *arena,
                               struct rp_err *err)
{
    for (size_t i = 0; i < program->literals.n; i++) {
        struct rp_literal *literal = &program->literals.at[i];
        unsigned elem = program->shapes.at[literal->shape].elem;
        size_t unit = rp_literal_unit(elem);

        if (literal->form == RP_LITERAL_PROTO)
            return rp_err_set(err, RP_UNSUPPORTED, "a tuple constant cannot be redacted");
        size_t n = (size_t)rp_shape_elements(program, literal->shape);
        if (literal->form == RP_LITERAL_NONE || !unit || !is_weight(elem, n))
            continue;
        unsigned char *values = rp_arena_calloc(arena, n, unit, 16);
        RP_TRY(rp_err_need(values, err, "redacting"));
        fill_pattern(elem, n, values);
        literal->at = (const char *)values;
        literal->n = n * unit;
        literal->form = RP_LITERAL_RAW;
    }
    for (size_t i = 0; i < program->metas.n; i++) {
        struct rp_op_meta *m = &program->metas.at[i];

        m->file = m->frame = 0;
        m->line = m->end_line = m->column = m->end_column = 0;
    }
    program->frames.n = program->locations.n = 0;
    return RP_OK;
}

/* ---- GraphDef ---- */

struct redaction {
    struct rp_proto_writer *to;
    struct rp_arena arena; /* of one constant */
    struct rp_err *err;
};

static void copy_field(struct redaction *r, const struct rp_proto_cursor *c,
                       const struct rp_proto_item *it)
{
    rp_proto_add_bytes(r->to, it->begin, (size_t)(c->at - it->begin));
}

/* Strings become empty; their number is kept. */
static enum rp_code blank_texts(struct redaction *r, struct rp_bytes tensor)
{
    struct rp_proto_cursor c = rp_proto_cursor(tensor.at, tensor.n, 0, DEPTH);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_TF_TENSOR_STRING_VAL && it.wire == RP_WIRE_BYTES)
            rp_proto_put_bytes(r->to, RP_TF_TENSOR_STRING_VAL, "", 0);
        else if (it.number != RP_TF_TENSOR_TENSOR_CONTENT)
            copy_field(r, &c, &it);
    return rp_proto_finish(&c, r->err);
}

static enum rp_code put_pattern(struct redaction *r, struct rp_bytes tensor,
                                const struct rp_tf_value *v, uint32_t list)
{
    struct rp_proto_cursor c = rp_proto_cursor(tensor.at, tensor.n, 0, DEPTH);
    size_t n = list ? 1 : v->n, unit = rp_literal_unit(v->elem);
    unsigned char *values = rp_arena_calloc(&r->arena, n + 1, unit, 16);
    struct rp_proto_item it;

    RP_TRY(rp_err_need(values, r->err, "redacting"));
    fill_pattern(v->elem, n, values);
    while (rp_proto_next(&c, &it))
        if (it.number == RP_TF_TENSOR_DTYPE || it.number == RP_TF_TENSOR_TENSOR_SHAPE)
            copy_field(r, &c, &it);
    if (list) {
        /* A list that repeats an element stays as short as it was: it gets one. Numbers of up to
           two bytes are varints, but for the bytes of FLOAT8_VAL. */
        if (list == RP_TF_TENSOR_HALF_VAL || list == RP_TF_TENSOR_INT_VAL)
            rp_proto_put_varint(r->to, list, (uint64_t)values[0] | (unit > 1 ? values[1] << 8 : 0));
        else
            rp_proto_put_bytes(r->to, list, values, unit);
    } else
        rp_proto_put_bytes(r->to, RP_TF_TENSOR_TENSOR_CONTENT, values, n * unit);
    return rp_proto_finish(&c, r->err);
}

static enum rp_code redact_tensor(struct redaction *r, struct rp_bytes tensor)
{
    struct rp_proto_cursor c = rp_proto_cursor(tensor.at, tensor.n, 0, DEPTH);
    struct rp_proto_item it;
    struct rp_tf_value v;
    uint64_t type = 0;
    uint32_t list;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_TF_TENSOR_DTYPE && it.wire == RP_WIRE_VARINT)
            type = it.value;
    if (type == RP_TF_TYPE_DT_STRING)
        return blank_texts(r, tensor);
    enum rp_code code = rp_tf_value_measure(tensor, &v, &list, r->err);
    if (code == RP_OK && is_weight(v.elem, v.n))
        code = put_pattern(r, tensor, &v, list);
    else if (code == RP_OK)
        rp_proto_add_bytes(r->to, tensor.at, tensor.n);
    rp_arena_release(&r->arena);
    return code;
}

/* Messages inside messages are rewritten down to the tensors, wherever the schema has them; all
   other fields are copied. */
static enum rp_code redact_message(struct redaction *r, const struct rp_schema *schema,
                                   struct rp_proto_cursor c)
{
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        const struct rp_schema_field *field = rp_schema_field(schema, it.number);

        if (schema == &rp_schema_TF_GRAPH && it.number == RP_TF_GRAPH_DEBUG_INFO)
            continue; /* source files and lines */
        if (!field || field->type != RP_SCHEMA_MESSAGE || it.wire != RP_WIRE_BYTES) {
            copy_field(r, &c, &it);
            continue;
        }
        size_t begun = rp_proto_begin(r->to, it.number);
        RP_TRY(field->message == &rp_schema_TF_TENSOR
                   ? redact_tensor(r, it.bytes)
                   : redact_message(r, field->message, rp_proto_enter(&c, &it)));
        rp_proto_end(r->to, begun);
    }
    return rp_proto_finish(&c, r->err);
}

enum rp_code rp_redact_graph(struct rp_bytes graph, struct rp_proto_writer *to, struct rp_err *err)
{
    struct redaction r = {.to = to, .err = err};

    rp_arena_init(&r.arena);
    return redact_message(&r, &rp_schema_TF_GRAPH, rp_proto_cursor(graph.at, graph.n, 0, DEPTH));
}

/* ---- flags ---- */

const char *rp_redact_flags(const char *flags, struct rp_arena *arena)
{
    char *out = flags ? rp_arena_strdup(arena, flags) : NULL, *to = out;

    for (const char *at = flags; out && *at;) {
        size_t n = strcspn(at, " \t\n"), name = strcspn(at, "=");
        size_t kept = name < n && memchr(at + name, '/', n - name) ? name + 1 : n;

        memmove(to, at, kept);
        to += kept;
        at += n;
        if (*at)
            *to++ = *at++;
    }
    if (out)
        *to = '\0';
    return out;
}
