/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BladeDISC program as a GraphDef that TensorFlow runs: one Placeholder an argument, and one call
 * of the cluster's function. It consists of the unchanged bytes of the capture.
 *
 *     arg0 (Placeholder) --\
 *     arg1 (Placeholder) ----> cluster (PartitionedCall of f) --> cluster:0, cluster:1 ...
 */
#include "formats/blade/blade.h"

#include "formats/tensorflow/node.h"

#include <string.h>

#define DEPTH 32

/* ---- the types of the outputs ---- */

struct outputs {
    RP_VEC(uint64_t) types;
    bool found; /* the signature belongs to the wanted function */
};

static enum rp_code read_output(struct rp_proto_cursor c, uint64_t *type, struct rp_err *err)
{
    struct rp_proto_item item;

    *type = 0;
    while (rp_proto_next(&c, &item))
        if (item.number == RP_TF_ARG_TYPE && item.wire == RP_WIRE_VARINT)
            *type = item.value;
    return rp_proto_finish(&c, err);
}

static enum rp_code read_signature(struct rp_proto_cursor c, const char *name, struct outputs *out,
                                   struct rp_err *err)
{
    struct rp_proto_item item;
    uint64_t type;

    out->types.n = 0;
    out->found = false;
    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == RP_TF_OP_NAME)
            out->found = item.bytes.n == strlen(name) && !memcmp(item.bytes.at, name, item.bytes.n);
        if (item.number == RP_TF_OP_OUTPUT_ARG) {
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

    if (rp_proto_next_bytes(&c, RP_TF_FUNCTION_SIGNATURE, &item))
        return read_signature(rp_proto_enter(&c, &item), name, out, err);
    return rp_proto_finish(&c, err);
}

static enum rp_code find_outputs(const struct rp_blade *b, struct outputs *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(b->library.at, b->library.n, 0, DEPTH);
    struct rp_proto_item item;

    while (rp_proto_next_bytes(&c, RP_TF_LIBRARY_FUNCTION, &item)) {
        RP_TRY(read_function(rp_proto_enter(&c, &item), b->function, out, err));
        if (out->found)
            return RP_OK;
    }
    RP_TRY(rp_proto_finish(&c, err));
    return rp_err_set(err, RP_FORMAT, "the function library has no function '%s'", b->function);
}

/* ---- nodes ---- */

static void put_types_attr(struct rp_proto_writer *w, const char *key, const uint64_t *types,
                           size_t n)
{
    struct rp_tf_open_attr attr = rp_tf_begin_attr(w, key);
    size_t list = rp_proto_begin(w, RP_TF_ATTR_LIST);
    size_t packed = rp_proto_begin(w, RP_TF_ATTR_LIST_TYPE);

    for (size_t i = 0; i < n; i++)
        rp_proto_add_varint(w, types[i]);
    rp_proto_end(w, packed);
    rp_proto_end(w, list);
    rp_tf_end_attr(w, attr);
}

static void put_placeholder(struct rp_proto_writer *w, const char *name,
                            const struct rp_blade_argument *arg)
{
    size_t node = rp_tf_begin_node(w, name, "Placeholder"), shape, dim;

    rp_tf_put_attr_type(w, "dtype", arg->type);
    struct rp_tf_open_attr attr = rp_tf_begin_attr(w, "shape");
    shape = rp_proto_begin(w, RP_TF_ATTR_SHAPE);
    for (uint32_t i = 0; i < arg->value.rank; i++) {
        dim = rp_proto_begin(w, RP_TF_SHAPE_DIM);
        rp_proto_put_varint(w, RP_TF_DIM_SIZE, (uint64_t)arg->value.dims[i]);
        rp_proto_end(w, dim);
    }
    rp_proto_end(w, shape);
    rp_tf_end_attr(w, attr);
    rp_proto_end(w, node);
}

static enum rp_code name_ports(struct rp_blade *b, size_t noutputs, struct rp_err *err)
{
    b->nfetches = noutputs;
    b->feeds = rp_arena_calloc(&b->arena, b->arguments.n + 1, sizeof *b->feeds, 8);
    b->fetches = rp_arena_calloc(&b->arena, noutputs + 1, sizeof *b->fetches, 8);
    RP_TRY(rp_err_need(b->feeds && b->fetches, err, "making a graph"));
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
    enum rp_code code = rp_err_need(inputs, err, "making a graph");
    struct rp_bytes bytes;

    if (code == RP_OK)
        code = find_outputs(b, &outputs, err);
    if (code == RP_OK)
        code = name_ports(b, outputs.types.n, err);
    if (code == RP_OK) {
        for (size_t i = 0; i < b->arguments.n; i++) {
            inputs[i] = b->arguments.at[i].type;
            put_placeholder(&b->graph, b->feeds[i], &b->arguments.at[i]);
        }
        struct rp_proto_writer *w = &b->graph;
        size_t node = rp_proto_begin(w, RP_TF_GRAPH_NODE);
        rp_proto_put_text(w, RP_TF_NODE_NAME, "cluster");
        rp_proto_put_text(w, RP_TF_NODE_OP, "PartitionedCall");
        for (size_t i = 0; i < b->arguments.n; i++)
            rp_proto_put_text(w, RP_TF_NODE_INPUT, b->feeds[i]);
        put_types_attr(w, "Tin", inputs, b->arguments.n);
        put_types_attr(w, "Tout", outputs.types.at, outputs.types.n);
        rp_tf_put_attr_bytes(w, "f", RP_TF_ATTR_FUNC, b->call.at, b->call.n);
        rp_tf_put_attr_bytes(w, "config", RP_TF_ATTR_S, "", 0);
        rp_tf_put_attr_bytes(w, "config_proto", RP_TF_ATTR_S, "", 0);
        rp_tf_put_attr_bytes(w, "executor_type", RP_TF_ATTR_S, "", 0);
        rp_proto_end(w, node);
        rp_proto_put_bytes(&b->graph, RP_TF_GRAPH_LIBRARY, b->library.at, b->library.n);
        size_t versions = rp_proto_begin(&b->graph, RP_TF_GRAPH_VERSIONS);
        rp_proto_put_varint(&b->graph, RP_TF_VERSIONS_PRODUCER, (uint64_t)b->graph_version);
        rp_proto_end(&b->graph, versions);
        code = rp_proto_written(&b->graph, &bytes, err);
    }
    rp_vec_release(&outputs.types);
    return code;
}
