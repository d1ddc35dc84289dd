/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BladeDISC program as a GraphDef that TensorFlow runs: one Placeholder an argument, and one call
 * of the cluster's function, out of the bytes of the capture as they are.
 *
 *     arg0 (Placeholder) --\
 *     arg1 (Placeholder) ----> cluster (PartitionedCall of f) --> cluster:0, cluster:1 ...
 */
#include "formats/blade/blade.h"

#include <string.h>

#define DEPTH 32

/* Fields of GraphDef, NodeDef, AttrValue and what is in them. */
enum { GRAPH_NODE = 1, GRAPH_LIBRARY = 2, GRAPH_VERSIONS = 4 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5 };
enum { ATTR_LIST = 1, ATTR_TEXT = 2, ATTR_TYPE = 6, ATTR_SHAPE = 7, ATTR_FUNCTION = 10 };
enum { LIST_TYPE = 6 };
enum { LIBRARY_FUNCTION = 1, FUNCTION_SIGNATURE = 1, SIGNATURE_NAME = 1, SIGNATURE_OUTPUT = 3 };
enum { OUTPUT_TYPE = 3 };

/* ---- the types of the outputs ---- */

struct outputs {
    RP_VEC(uint64_t) types;
    bool ours; /* the signature is of the function that is looked for */
};

static enum rp_code read_output(struct rp_proto_cursor c, uint64_t *type, struct rp_err *err)
{
    struct rp_proto_item item;

    *type = 0;
    while (rp_proto_next(&c, &item))
        if (item.number == OUTPUT_TYPE && item.wire == RP_WIRE_VARINT)
            *type = item.value;
    return rp_proto_finish(&c, err);
}

static enum rp_code read_signature(struct rp_proto_cursor c, const char *name, struct outputs *out,
                                   struct rp_err *err)
{
    struct rp_proto_item item;
    uint64_t type;

    out->types.n = 0;
    out->ours = false;
    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == SIGNATURE_NAME)
            out->ours = item.bytes.n == strlen(name) && !memcmp(item.bytes.at, name, item.bytes.n);
        if (item.number == SIGNATURE_OUTPUT) {
            RP_TRY(read_output(rp_proto_enter(&c, &item), &type, err));
            RP_TRY(rp_vec_push(&out->types, type, err));
        }
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_function(struct rp_proto_cursor c, const char *name, struct outputs *out,
                                  struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item))
        if (item.number == FUNCTION_SIGNATURE && item.wire == RP_WIRE_BYTES)
            return read_signature(rp_proto_enter(&c, &item), name, out, err);
    return rp_proto_finish(&c, err);
}

static enum rp_code find_outputs(const struct rp_blade *b, struct outputs *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(b->library.at, b->library.n, 0, DEPTH);
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (item.number != LIBRARY_FUNCTION || item.wire != RP_WIRE_BYTES)
            continue;
        RP_TRY(read_function(rp_proto_enter(&c, &item), b->function, out, err));
        if (out->ours)
            return RP_OK;
    }
    RP_TRY(rp_proto_finish(&c, err));
    return rp_err_set(err, RP_FORMAT, "its library has no function '%s'", b->function);
}

/* ---- nodes ---- */

static void put_type_attr(struct rp_proto_writer *w, const char *key, uint64_t type)
{
    size_t attr = rp_proto_begin(w, NODE_ATTR), value;

    rp_proto_put_text(w, 1, key);
    value = rp_proto_begin(w, 2);
    rp_proto_put_varint(w, ATTR_TYPE, type);
    rp_proto_end(w, value);
    rp_proto_end(w, attr);
}

static void put_types_attr(struct rp_proto_writer *w, const char *key, const uint64_t *types,
                           size_t n)
{
    size_t attr = rp_proto_begin(w, NODE_ATTR), value, list, packed;

    rp_proto_put_text(w, 1, key);
    value = rp_proto_begin(w, 2);
    list = rp_proto_begin(w, ATTR_LIST);
    packed = rp_proto_begin(w, LIST_TYPE);
    for (size_t i = 0; i < n; i++)
        rp_proto_add_varint(w, types[i]);
    rp_proto_end(w, packed);
    rp_proto_end(w, list);
    rp_proto_end(w, value);
    rp_proto_end(w, attr);
}

static void put_bytes_attr(struct rp_proto_writer *w, const char *key, uint32_t field,
                           struct rp_bytes bytes)
{
    size_t attr = rp_proto_begin(w, NODE_ATTR), value;

    rp_proto_put_text(w, 1, key);
    value = rp_proto_begin(w, 2);
    rp_proto_put_bytes(w, field, bytes.at, bytes.n);
    rp_proto_end(w, value);
    rp_proto_end(w, attr);
}

static void put_placeholder(struct rp_proto_writer *w, const char *name,
                            const struct rp_blade_argument *arg)
{
    size_t node = rp_proto_begin(w, GRAPH_NODE), attr, value, shape, dim;

    rp_proto_put_text(w, NODE_NAME, name);
    rp_proto_put_text(w, NODE_OP, "Placeholder");
    put_type_attr(w, "dtype", arg->type);
    attr = rp_proto_begin(w, NODE_ATTR);
    rp_proto_put_text(w, 1, "shape");
    value = rp_proto_begin(w, 2);
    shape = rp_proto_begin(w, ATTR_SHAPE);
    for (uint32_t i = 0; i < arg->value.rank; i++) {
        dim = rp_proto_begin(w, 2);
        rp_proto_put_varint(w, 1, (uint64_t)arg->value.dims[i]);
        rp_proto_end(w, dim);
    }
    rp_proto_end(w, shape);
    rp_proto_end(w, value);
    rp_proto_end(w, attr);
    rp_proto_end(w, node);
}

static void put_call(struct rp_blade *b, const uint64_t *inputs, const struct outputs *outputs)
{
    struct rp_proto_writer *w = &b->graph;
    size_t node = rp_proto_begin(w, GRAPH_NODE);

    rp_proto_put_text(w, NODE_NAME, "cluster");
    rp_proto_put_text(w, NODE_OP, "PartitionedCall");
    for (size_t i = 0; i < b->arguments.n; i++)
        rp_proto_put_text(w, NODE_INPUT, b->feeds[i]);
    put_types_attr(w, "Tin", inputs, b->arguments.n);
    put_types_attr(w, "Tout", outputs->types.at, outputs->types.n);
    put_bytes_attr(w, "f", ATTR_FUNCTION, b->call);
    put_bytes_attr(w, "config", ATTR_TEXT, (struct rp_bytes){(const uint8_t *)"", 0});
    put_bytes_attr(w, "config_proto", ATTR_TEXT, (struct rp_bytes){(const uint8_t *)"", 0});
    put_bytes_attr(w, "executor_type", ATTR_TEXT, (struct rp_bytes){(const uint8_t *)"", 0});
    rp_proto_end(w, node);
}

static enum rp_code name_ports(struct rp_blade *b, size_t noutputs, struct rp_err *err)
{
    b->nfetches = noutputs;
    b->feeds = rp_arena_calloc(&b->arena, b->arguments.n + 1, sizeof *b->feeds, 8);
    b->fetches = rp_arena_calloc(&b->arena, noutputs + 1, sizeof *b->fetches, 8);
    if (!b->feeds || !b->fetches)
        return rp_err_nomem(err, "making a graph");
    for (size_t i = 0; i < b->arguments.n; i++)
        if (!(b->feeds[i] = rp_arena_printf(&b->arena, "arg%zu", i)))
            return rp_err_nomem(err, "making a graph");
    for (size_t i = 0; i < noutputs; i++)
        if (!(b->fetches[i] = rp_arena_printf(&b->arena, "cluster:%zu", i)))
            return rp_err_nomem(err, "making a graph");
    return RP_OK;
}

enum rp_code rp_blade_make_graph(struct rp_blade *b, struct rp_err *err)
{
    struct outputs outputs = {0};
    uint64_t *inputs = rp_arena_calloc(&b->arena, b->arguments.n + 1, sizeof *inputs, 8);
    enum rp_code code = inputs ? RP_OK : rp_err_nomem(err, "making a graph");
    struct rp_bytes bytes;
    size_t versions;

    if (code == RP_OK)
        code = find_outputs(b, &outputs, err);
    if (code == RP_OK)
        code = name_ports(b, outputs.types.n, err);
    if (code == RP_OK) {
        for (size_t i = 0; i < b->arguments.n; i++) {
            inputs[i] = b->arguments.at[i].type;
            put_placeholder(&b->graph, b->feeds[i], &b->arguments.at[i]);
        }
        put_call(b, inputs, &outputs);
        rp_proto_put_bytes(&b->graph, GRAPH_LIBRARY, b->library.at, b->library.n);
        versions = rp_proto_begin(&b->graph, GRAPH_VERSIONS);
        rp_proto_put_varint(&b->graph, 1, (uint64_t)b->graph_version);
        rp_proto_end(&b->graph, versions);
        code = rp_proto_written(&b->graph, &bytes, err);
    }
    rp_vec_release(&outputs.types);
    return code;
}
