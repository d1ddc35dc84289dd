/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction. What is replaced becomes a pattern of the position: the same for everybody, without
 * any trace of what stood there. Floats, complex numbers and integers of up to eight bits are
 * weights; wider integers are indices and sizes, without which a program is another one, and stay.
 * Cost: one pass over the program.
 */
#include "replay/redact.h"

#include "abi/proto/tensorflow.h"
#include "exec/data/tensor.h"
#include "formats/tensorflow/tensor.h"
#include "program/floats.h"
#include "program/literal.h"
#include "program/structure.h"

#include <string.h>

#define DEPTH 32

/* ---- values ---- */

static bool is_weight(unsigned elem, size_t n)
{
    size_t unit = rp_literal_unit(elem);

    return n > RP_HASH_ELEMENTS && elem != RP_ELEM_PRED &&
           (rp_elem_is_float(elem) || rp_elem_is_complex(elem) || unit == 1);
}

/* Other values of an element type, from the position. */
static void disguise(unsigned elem, size_t n, unsigned char *values)
{
    bool pair = rp_elem_is_complex(elem);
    struct rp_tensor view = {.elem = (uint8_t)elem, .n = n, .unit = rp_literal_unit(elem)};

    if (pair) { /* as twice as many parts */
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

static enum rp_code redact_literal(const struct rp_program *program, struct rp_literal *literal,
                                   struct rp_arena *arena, struct rp_err *err)
{
    unsigned elem = program->shapes.at[literal->shape].elem;
    size_t n, unit = rp_literal_unit(elem);
    unsigned char *values;

    if (literal->form == RP_LITERAL_PROTO)
        return rp_err_set(err, RP_UNSUPPORTED, "a constant that is a tuple cannot be redacted");
    n = (size_t)rp_shape_elements(program, literal->shape);
    if (literal->form == RP_LITERAL_NONE || !unit || !is_weight(elem, n))
        return RP_OK;
    values = rp_arena_calloc(arena, n, unit, 16);
    if (!values)
        return rp_err_nomem(err, "redacting");
    disguise(elem, n, values);
    literal->at = (const char *)values;
    literal->n = n * unit;
    literal->form = RP_LITERAL_RAW;
    return RP_OK;
}

enum rp_code rp_redact_program(struct rp_program *program, struct rp_arena *arena,
                               struct rp_err *err)
{
    for (size_t i = 0; i < program->literals.n; i++)
        RP_TRY(redact_literal(program, &program->literals.at[i], arena, err));
    for (size_t i = 0; i < program->metas.n; i++) {
        struct rp_op_meta *m = &program->metas.at[i];

        m->file = m->frame = 0;
        m->line = m->end_line = m->column = m->end_column = 0;
    }
    program->frames.n = program->locations.n = 0;
    return RP_OK;
}

/* ---- GraphDef ---- */

struct writer {
    struct rp_proto_writer *to;
    struct rp_arena arena; /* of one constant */
    struct rp_err *err;
};

static void copy_field(struct writer *w, const struct rp_proto_cursor *c,
                       const struct rp_proto_item *it)
{
    rp_proto_add_bytes(w->to, it->begin, (size_t)(c->at - it->begin));
}

/* Texts become empty, whatever their number. */
static enum rp_code blank_texts(struct writer *w, struct rp_bytes tensor)
{
    struct rp_proto_cursor c = rp_proto_cursor(tensor.at, tensor.n, 0, DEPTH);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_TF_TENSOR_STRING_VAL && it.wire == RP_WIRE_BYTES)
            rp_proto_put_bytes(w->to, RP_TF_TENSOR_STRING_VAL, "", 0);
        else if (it.number != RP_TF_TENSOR_TENSOR_CONTENT)
            copy_field(w, &c, &it);
    return rp_proto_finish(&c, w->err);
}

static enum rp_code put_pattern(struct writer *w, struct rp_bytes tensor,
                                const struct rp_tf_value *v)
{
    struct rp_proto_cursor c = rp_proto_cursor(tensor.at, tensor.n, 0, DEPTH);
    unsigned char *values = rp_arena_calloc(&w->arena, v->n + 1, rp_literal_unit(v->elem), 16);
    struct rp_proto_item it;

    if (!values)
        return rp_err_nomem(w->err, "redacting");
    disguise(v->elem, v->n, values);
    while (rp_proto_next(&c, &it))
        if (it.number == RP_TF_TENSOR_DTYPE || it.number == RP_TF_TENSOR_TENSOR_SHAPE)
            copy_field(w, &c, &it);
    rp_proto_put_bytes(w->to, RP_TF_TENSOR_TENSOR_CONTENT, values, v->n * rp_literal_unit(v->elem));
    return rp_proto_finish(&c, w->err);
}

static enum rp_code redact_tensor(struct writer *w, struct rp_bytes tensor)
{
    struct rp_proto_cursor c = rp_proto_cursor(tensor.at, tensor.n, 0, DEPTH);
    struct rp_proto_item it;
    struct rp_tf_value v;
    enum rp_code code;
    uint64_t type = 0;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_TF_TENSOR_DTYPE && it.wire == RP_WIRE_VARINT)
            type = it.value;
    if (type == RP_TF_TYPE_DT_STRING)
        return blank_texts(w, tensor);
    code = rp_tf_value_decode(tensor, 0, NULL, &w->arena, &v, w->err);
    if (code == RP_OK && is_weight(v.elem, v.n))
        code = put_pattern(w, tensor, &v);
    else if (code == RP_OK)
        rp_proto_add_bytes(w->to, tensor.at, tensor.n);
    rp_arena_release(&w->arena);
    return code;
}

/* An entry of the map of attributes: its value's tensor is rewritten, wherever there is one. */
static enum rp_code redact_attr(struct writer *w, struct rp_bytes entry)
{
    struct rp_proto_cursor c = rp_proto_cursor(entry.at, entry.n, 0, DEPTH), value;
    struct rp_proto_item it, field;

    while (rp_proto_next(&c, &it)) {
        size_t begun, inner;

        if (it.number != RP_TF_ATTR_ENTRY_VALUE || it.wire != RP_WIRE_BYTES) {
            copy_field(w, &c, &it);
            continue;
        }
        begun = rp_proto_begin(w->to, RP_TF_ATTR_ENTRY_VALUE);
        value = rp_proto_enter(&c, &it);
        while (rp_proto_next(&value, &field)) {
            if (field.number != RP_TF_ATTR_TENSOR || field.wire != RP_WIRE_BYTES) {
                copy_field(w, &value, &field);
                continue;
            }
            inner = rp_proto_begin(w->to, RP_TF_ATTR_TENSOR);
            RP_TRY(redact_tensor(w, field.bytes));
            rp_proto_end(w->to, inner);
        }
        RP_TRY(rp_proto_finish(&value, w->err));
        rp_proto_end(w->to, begun);
    }
    return rp_proto_finish(&c, w->err);
}

/* A message whose fields of one number are rewritten, the others copied. */
static enum rp_code redact_fields(struct writer *w, struct rp_bytes message, uint32_t number,
                                  enum rp_code (*one)(struct writer *, struct rp_bytes))
{
    struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, DEPTH);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        size_t begun;

        if (it.number != number || it.wire != RP_WIRE_BYTES) {
            copy_field(w, &c, &it);
            continue;
        }
        begun = rp_proto_begin(w->to, number);
        RP_TRY(one(w, it.bytes));
        rp_proto_end(w->to, begun);
    }
    return rp_proto_finish(&c, w->err);
}

static enum rp_code redact_node(struct writer *w, struct rp_bytes node)
{
    return redact_fields(w, node, RP_TF_NODE_ATTR, redact_attr);
}

static enum rp_code redact_function(struct writer *w, struct rp_bytes function)
{
    return redact_fields(w, function, RP_TF_FUNCTION_NODE_DEF, redact_node);
}

enum rp_code rp_redact_graph(struct rp_bytes graph, struct rp_proto_writer *to, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(graph.at, graph.n, 0, DEPTH);
    struct writer w = {.to = to, .err = err};
    struct rp_proto_item it;

    rp_arena_init(&w.arena);
    while (rp_proto_next(&c, &it)) {
        bool nested = it.wire == RP_WIRE_BYTES;
        size_t begun;

        if (it.number == RP_TF_GRAPH_DEBUG_INFO) /* source files and lines */
            continue;
        if (!nested || (it.number != RP_TF_GRAPH_NODE && it.number != RP_TF_GRAPH_LIBRARY)) {
            copy_field(&w, &c, &it);
            continue;
        }
        begun = rp_proto_begin(to, it.number);
        RP_TRY(it.number == RP_TF_GRAPH_NODE
                   ? redact_node(&w, it.bytes)
                   : redact_fields(&w, it.bytes, RP_TF_LIBRARY_FUNCTION, redact_function));
        rp_proto_end(to, begun);
    }
    return rp_proto_finish(&c, err);
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
