/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TensorFlow graphs: GraphDef as protobuf and as text (.pbtxt is turned into the wire form
 * first), and the first graph of a SavedModel or MetaGraphDef. The graph is the entry computation,
 * and each function of its library is another one. Arguments and results of functions are
 * operations that are not counted. Attributes are kept as one line of text each.
 *
 *   input "a:1"       output 1 of node a
 *   input "a:sum:0"   in functions: the first part of output "sum" of a
 *   input "^a"        runs after a
 */
#include "formats/formats.h"
#include "formats/programs.h"
#include "formats/tensorflow/node.h"
#include "formats/tensorflow/tensor.h"
#include "formats/textproto.h"
#include "program/opcodes.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

struct graph_reader {
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint64_t) op_of;       /* from string to computation + 1 (high half) and operation */
    RP_VEC(uint32_t) function_of; /* from string to computation + 1 */
    struct rp_out *text;          /* scratch for attributes */
    RP_VEC(char) control;         /* scratch: "{%a, %b}" */
};

static enum rp_code graph_intern(struct graph_reader *r, struct rp_bytes s, uint32_t *id)
{
    return rp_program_string(r->p, (const char *)s.at, s.n, id, r->err);
}

static enum rp_code set_op(struct graph_reader *r, uint32_t name, uint32_t computation, uint32_t op)
{
    while (r->op_of.n <= name)
        RP_TRY(rp_vec_push(&r->op_of, 0, r->err));
    r->op_of.at[name] = ((uint64_t)computation + 1) << 32 | op;
    return RP_OK;
}

/* ---- inputs ---- */

static enum rp_code add_control(struct graph_reader *r, struct rp_bytes name)
{
    const char *before = r->control.n ? ", %" : "{%";
    size_t n = strlen(before);

    RP_TRY(rp_vec_reserve(&r->control, n + name.n, r->err));
    memcpy(r->control.at + r->control.n, before, n);
    memcpy(r->control.at + r->control.n + n, name.at, name.n);
    r->control.n += n + name.n;
    return RP_OK;
}

static enum rp_code add_node_input(struct graph_reader *r, struct rp_bytes input)
{
    const uint8_t *colon = input.n ? memchr(input.at, ':', input.n) : NULL;
    struct rp_bytes name = {input.at, colon ? (size_t)(colon - input.at) : input.n};
    uint32_t index = 0, here = (uint32_t)r->p->computations.n;

    if (input.n && *input.at == '^')
        return add_control(r, (struct rp_bytes){input.at + 1, input.n - 1});
    if (colon) { /* reads the number after the last colon */
        const uint8_t *last = memrchr(input.at, ':', input.n);

        for (index = 0, last++; last < input.at + input.n && *last >= '0' && *last <= '9'; last++)
            index = index * 10 + (uint32_t)(*last - '0');
    }
    uint32_t id = rp_strtab_find(&r->p->strings, (const char *)name.at, name.n);
    uint64_t slot = id < r->op_of.n ? r->op_of.at[id] : 0;
    if ((uint32_t)(slot >> 32) != here)
        return rp_err_set(r->err, RP_FORMAT, "input '%.*s' of node '%s' is not in the graph",
                          (int)(input.n < 200 ? input.n : 200), (const char *)input.at,
                          rp_program_text(r->p, r->p->op_name.at[r->p->nops - 1]));
    return rp_program_add_operand(r->p, (uint32_t)slot, index, r->err);
}

/* ---- attributes ---- */

static enum rp_code add_text_attr(struct graph_reader *r, uint32_t key, const char *text, size_t n)
{
    char *copy = rp_arena_copy(&r->p->arena, text, n);

    RP_TRY(rp_err_need(copy, r->err, "reading attributes"));
    return rp_program_add_text(r->p, key, copy, n, r->err);
}

/* Adds the functions that an attribute names, alone or in a list, as called. */
static enum rp_code add_calls(struct graph_reader *r, struct rp_bytes value, bool list)
{
    struct rp_proto_cursor c = rp_proto_cursor(value.at, value.n, 0, 100);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_TF_ATTR_LIST && !list)
            RP_TRY(add_calls(r, it.bytes, true));
        if (it.number != (list ? RP_TF_ATTR_LIST_FUNC : RP_TF_ATTR_FUNC))
            continue;
        struct rp_bytes name = rp_proto_find(it.bytes, RP_TF_NAME_ATTRS_NAME);
        uint32_t id = rp_strtab_find(&r->p->strings, (const char *)name.at, name.n);
        if (id < r->function_of.n && r->function_of.at[id])
            RP_TRY(rp_program_add_called(r->p, r->function_of.at[id] - 1, r->err));
    }
    return RP_OK;
}

static enum rp_code add_node_attr(struct graph_reader *r, struct rp_bytes entry)
{
    struct rp_bytes value = rp_proto_find(entry, RP_TF_ATTR_ENTRY_VALUE);
    uint32_t key;
    size_t n;

    RP_TRY(graph_intern(r, rp_proto_find(entry, RP_TF_ATTR_ENTRY_KEY), &key));
    RP_TRY(rp_out_open_memory(&r->text, r->err));
    enum rp_code code = rp_textproto_print(&rp_schema_TF_ATTR, value, true, r->text, r->err);
    if (code == RP_OK)
        code = rp_out_flush(r->text, r->err);
    if (code == RP_OK) {
        const char *text = rp_out_borrow_memory(r->text, &n);
        code = add_text_attr(r, key, text, n);
    }
    rp_out_abandon(r->text);
    return code == RP_OK ? add_calls(r, value, false) : code;
}

/* ---- shapes ---- */

static unsigned elem_of(uint64_t type)
{
    type %= 100; /* the type of a reference is 100 more than that of its value */
    if (type == RP_TF_TYPE_DT_STRING)
        return RP_ELEM_STRING;
    if (type == RP_TF_TYPE_DT_RESOURCE || type == RP_TF_TYPE_DT_VARIANT)
        return RP_ELEM_OPAQUE;
    return rp_tf_elem_of(type);
}

static uint64_t varint_of(struct rp_bytes message, uint32_t number)
{
    struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, 100);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.number == number && it.wire == RP_WIRE_VARINT)
            return it.value;
    return 0;
}

/* The array type of a TensorShapeProto. */
static enum rp_code array_of(struct graph_reader *r, unsigned elem, struct rp_bytes shape,
                             uint32_t *id)
{
    struct rp_proto_cursor c = rp_proto_cursor(shape.at, shape.n, 0, 100);
    struct rp_proto_item it;
    int64_t dims[64];
    size_t n = 0;

    *id = 0;
    if (varint_of(shape, RP_TF_SHAPE_UNKNOWN_RANK))
        return RP_OK; /* unknown rank */
    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_TF_SHAPE_DIM, BYTES) && n < 64) {
            int64_t dim = (int64_t)varint_of(it.bytes, RP_TF_DIM_SIZE);

            dims[n++] = dim < 0 ? RP_DIM_UNKNOWN : dim;
        }
    return rp_program_array(r->p, elem, dims, NULL, n, 0, id, r->err);
}

/* Takes the shape from attributes: the type from T or dtype, and the first of _output_shapes. */
static enum rp_code shape_of_node(struct graph_reader *r, struct rp_bytes node, uint32_t *shape)
{
    struct rp_proto_cursor c = rp_proto_cursor(node.at, node.n, 0, 100);
    struct rp_bytes output = {0};
    struct rp_proto_item it;
    unsigned elem = RP_ELEM_INVALID;
    bool known = false;

    *shape = 0;
    while (rp_proto_next_bytes(&c, RP_TF_NODE_ATTR, &it)) {
        struct rp_bytes key = rp_proto_find(it.bytes, RP_TF_ATTR_ENTRY_KEY);
        struct rp_bytes value = rp_proto_find(it.bytes, RP_TF_ATTR_ENTRY_VALUE);

        if ((key.n == 1 && *key.at == 'T') || (key.n == 5 && !memcmp(key.at, "dtype", 5)) ||
            (key.n == 4 && !memcmp(key.at, "DstT", 4)))
            elem = elem_of(varint_of(value, RP_TF_ATTR_TYPE));
        if (key.n == 14 && !memcmp(key.at, "_output_shapes", 14)) {
            struct rp_bytes list = rp_proto_find(value, RP_TF_ATTR_LIST);

            output = rp_proto_find(list, RP_TF_ATTR_LIST_SHAPE);
            known = list.n > 0;
        }
    }
    return known && elem != RP_ELEM_INVALID ? array_of(r, elem, output, shape) : RP_OK;
}

/* ---- nodes ---- */

static enum rp_code node_field(struct graph_reader *r, const struct rp_proto_item *it)
{
    switch (RP_PROTO_KEY(it->number, it->wire)) {
    case KEY(RP_TF_NODE_INPUT, BYTES):
        return add_node_input(r, it->bytes);
    case KEY(RP_TF_NODE_DEVICE, BYTES):
        if (!it->bytes.n)
            return RP_OK;
        return rp_program_add_text(r->p, RP_ATTR_DEVICE, (const char *)it->bytes.at, it->bytes.n,
                                   r->err);
    case KEY(RP_TF_NODE_ATTR, BYTES):
        return add_node_attr(r, it->bytes);
    default:
        return RP_OK;
    }
}

static enum rp_code add_node(struct graph_reader *r, struct rp_bytes node)
{
    struct rp_proto_cursor c = rp_proto_cursor(node.at, node.n, 0, 100);
    struct rp_new_op op = {.code = RP_OP_FOREIGN};
    struct rp_proto_item it;
    uint32_t id;

    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu nodes",
                          (unsigned long long)r->limits.events);
    RP_TRY(graph_intern(r, rp_proto_find(node, RP_TF_NODE_NAME), &op.name));
    RP_TRY(graph_intern(r, rp_proto_find(node, RP_TF_NODE_OP), &op.foreign));
    RP_TRY(shape_of_node(r, node, &op.shape));
    RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));
    r->control.n = 0;
    while (rp_proto_next(&c, &it))
        RP_TRY(node_field(r, &it));
    RP_TRY(rp_proto_finish(&c, r->err));
    if (!r->control.n)
        return RP_OK;
    RP_TRY(rp_vec_push(&r->control, '}', r->err));
    return add_text_attr(r, RP_ATTR_CONTROL_PREDECESSORS, r->control.at, r->control.n);
}

/* Nodes come in any order, so all names are noted before the first node is read. */
static enum rp_code add_nodes(struct graph_reader *r, struct rp_bytes list, uint32_t number)
{
    struct rp_proto_cursor c = rp_proto_cursor(list.at, list.n, 0, 100);
    uint32_t op = r->p->nops, here = (uint32_t)r->p->computations.n - 1, name;
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, number, &it)) {
        RP_TRY(graph_intern(r, rp_proto_find(it.bytes, RP_TF_NODE_NAME), &name));
        RP_TRY(set_op(r, name, here, op++));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    c = rp_proto_cursor(list.at, list.n, 0, 100);
    while (rp_proto_next_bytes(&c, number, &it))
        RP_TRY(add_node(r, it.bytes));
    return RP_OK;
}

/* ---- functions ---- */

static enum rp_code add_arguments(struct graph_reader *r, struct rp_bytes signature)
{
    struct rp_proto_cursor c = rp_proto_cursor(signature.at, signature.n, 0, 100);
    struct rp_new_op op = {.code = RP_OP_PARAMETER, .flags = RP_OPS_IMPLICIT};
    struct rp_proto_item it;
    uint32_t id;

    while (rp_proto_next_bytes(&c, RP_TF_OP_INPUT_ARG, &it)) {
        RP_TRY(graph_intern(r, rp_proto_find(it.bytes, RP_TF_ARG_NAME), &op.name));
        RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));
        RP_TRY(set_op(r, op.name, (uint32_t)r->p->computations.n - 1, id));
        op.value++;
    }
    return rp_proto_finish(&c, r->err);
}

/* ret: maps the name of a result to its value */
static enum rp_code add_results(struct graph_reader *r, struct rp_bytes function)
{
    struct rp_proto_cursor c = rp_proto_cursor(function.at, function.n, 0, 100);
    struct rp_new_op op = {.code = RP_OP_FOREIGN, .flags = RP_OPS_IMPLICIT};
    struct rp_proto_item it;
    uint32_t id;

    RP_TRY(rp_program_string(r->p, "(result)", 8, &op.foreign, r->err));
    while (rp_proto_next_bytes(&c, RP_TF_FUNCTION_RET, &it)) {
        RP_TRY(graph_intern(r, rp_proto_find(it.bytes, RP_TF_TEXT_ENTRY_KEY), &op.name));
        RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));
        RP_TRY(add_node_input(r, rp_proto_find(it.bytes, RP_TF_TEXT_ENTRY_VALUE)));
    }
    return rp_proto_finish(&c, r->err);
}

/* Visits all functions of the library: the first time for their names, then for their bodies. */
static enum rp_code each_function(struct graph_reader *r, struct rp_bytes library, bool names)
{
    struct rp_proto_cursor c = rp_proto_cursor(library.at, library.n, 0, 100);
    struct rp_proto_item it;
    uint32_t number = 1, name, id;

    while (rp_proto_next_bytes(&c, RP_TF_LIBRARY_FUNCTION, &it)) {
        struct rp_bytes signature = rp_proto_find(it.bytes, RP_TF_FUNCTION_SIGNATURE);

        RP_TRY(graph_intern(r, rp_proto_find(signature, RP_TF_OP_NAME), &name));
        if (names) {
            while (r->function_of.n <= name)
                RP_TRY(rp_vec_push(&r->function_of, 0, r->err));
            r->function_of.at[name] = ++number;
            continue;
        }
        RP_TRY(rp_program_begin(r->p, name, &id, r->err));
        RP_TRY(add_arguments(r, signature));
        RP_TRY(add_nodes(r, it.bytes, RP_TF_FUNCTION_NODE_DEF));
        RP_TRY(add_results(r, it.bytes));
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code read_graph(struct graph_reader *r, struct rp_bytes graph)
{
    struct rp_bytes library = rp_proto_find(graph, RP_TF_GRAPH_LIBRARY);
    uint32_t entry, name;

    RP_TRY(rp_program_string(r->p, "graph", 5, &name, r->err));
    RP_TRY(each_function(r, library, true));
    RP_TRY(rp_program_begin(r->p, name, &entry, r->err));
    r->p->entry = entry;
    RP_TRY(add_nodes(r, graph, RP_TF_GRAPH_NODE));
    RP_TRY(each_function(r, library, false));
    r->p->source.at = (const char *)graph.at;
    r->p->source.n = graph.n;
    return rp_program_finish(r->p, r->err);
}

static void graph_reader_release(struct graph_reader *r)
{
    rp_vec_release(&r->op_of);
    rp_vec_release(&r->function_of);
    rp_vec_release(&r->control);
}

enum rp_code rp_graphdef_fill(struct rp_program *p, struct rp_bytes graph,
                              const struct rp_limits *limits, struct rp_err *err)
{
    RP_SCOPED(graph_reader_release)
    struct graph_reader r = {.p = p, .limits = limits ? *limits : RP_LIMITS_DEFAULT, .err = err};

    return graph.n > UINT32_MAX ? rp_err_set(err, RP_LIMIT, "the graph is larger than 4 GiB")
                                : read_graph(&r, graph);
}

/* Converts text to the wire format in the program's arena, since the program points into it. */
enum rp_code rp_graphdef_fill_text(struct rp_program *p, const char *text, size_t n,
                                   const struct rp_limits *limits, struct rp_err *err)
{
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer w = {0};
    struct rp_bytes bytes;

    RP_TRY(rp_textproto_parse(&rp_schema_TF_GRAPH, text, n, limits, &w, err));
    RP_TRY(rp_proto_written(&w, &bytes, err));
    char *copy = rp_arena_copy(&p->arena, bytes.n ? (const char *)bytes.at : "", bytes.n);
    return copy
               ? rp_graphdef_fill(p, (struct rp_bytes){(const uint8_t *)copy, bytes.n}, limits, err)
               : rp_err_nomem(err, "reading a graph");
}
