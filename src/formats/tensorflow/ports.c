/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds and fetches of TensorFlow programs. A SavedModel names them in its signatures (in the order
 * of their names, since the file has none). In a GraphDef, placeholders are fed in the order of the
 * file, and what no node takes as its input is fetched. The graph of a function's body has nodes
 * _Arg and _Retval instead, which say their numbers.
 */
#include "formats/tensorflow/ports.h"

#include "abi/proto/tensorflow.h"
#include "base/each.h"
#include "base/order.h"

#include <string.h>

#define DEPTH 64

static bool text_is(struct rp_bytes a, const char *b)
{
    return a.at && a.n == strlen(b) && !memcmp(a.at, b, a.n);
}

/* Reads a TensorShapeProto; one with unknown dimensions is ignored. */
static void read_port_shape(struct rp_bytes message, struct rp_tf_port_name *port)
{
    struct rp_tf_value shape = {0};

    port->has_shape =
        rp_tf_shape_decode(rp_proto_cursor(message.at, message.n, 0, DEPTH), &shape, NULL) == RP_OK;
    port->rank = shape.rank;
    memcpy(port->dims, shape.dims, sizeof port->dims);
}

/* ---- signatures ---- */

static enum rp_code read_info(struct rp_proto_cursor c, struct rp_arena *arena,
                              struct rp_tf_port_name *out, struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (item.number == RP_TF_TENSOR_INFO_NAME && item.wire == RP_WIRE_BYTES) {
            out->tensor = rp_arena_copy(arena, (const char *)item.bytes.at, item.bytes.n);
            RP_TRY(rp_err_need(out->tensor, err, "reading a signature"));
        } else if (item.number == RP_TF_TENSOR_INFO_DTYPE && item.wire == RP_WIRE_VARINT) {
            out->type = item.value;
        } else if (item.number == RP_TF_TENSOR_INFO_TENSOR_SHAPE && item.wire == RP_WIRE_BYTES) {
            read_port_shape(item.bytes, out);
        }
    }
    return rp_proto_finish(&c, err);
}

/* Reads an entry of a map from names to TensorInfo. */
static enum rp_code read_entry(struct rp_proto_cursor c, struct rp_arena *arena,
                               struct rp_tf_port_name *port, struct rp_err *err)
{
    struct rp_proto_item item;

    *port = (struct rp_tf_port_name){.name = "", .tensor = ""};
    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == RP_TF_TENSOR_INFO_ENTRY_KEY) {
            port->name = rp_arena_copy(arena, (const char *)item.bytes.at, item.bytes.n);
            RP_TRY(rp_err_need(port->name, err, "reading a signature"));
        } else if (item.number == RP_TF_TENSOR_INFO_ENTRY_VALUE) {
            RP_TRY(read_info(rp_proto_enter(&c, &item), arena, port, err));
        }
    }
    return rp_proto_finish(&c, err);
}

RP_ORDER(by_name, struct rp_tf_port_name, strcmp(a->name, b->name))

static enum rp_code read_signature(struct rp_bytes bytes, struct rp_arena *arena,
                                   struct rp_tf_ports *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, DEPTH);
    struct rp_tf_port_name port;
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES ||
            (item.number != RP_TF_SIGNATURE_INPUTS && item.number != RP_TF_SIGNATURE_OUTPUTS))
            continue;
        RP_TRY(read_entry(rp_proto_enter(&c, &item), arena, &port, err));
        RP_TRY(item.number == RP_TF_SIGNATURE_INPUTS ? rp_vec_push(&out->feeds, port, err)
                                                     : rp_vec_push(&out->fetches, port, err));
    }
    rp_sort(out->feeds.at, out->feeds.n, sizeof *out->feeds.at, by_name);
    rp_sort(out->fetches.at, out->fetches.n, sizeof *out->fetches.at, by_name);
    return rp_proto_finish(&c, err);
}

struct chosen {
    struct rp_bytes name, body;
    unsigned n;
};

/* One entry of the map of signatures: used if it is the wanted one, or the first. */
static enum rp_code consider_signature(struct rp_proto_cursor c, const char *wanted,
                                       struct chosen *best, struct rp_err *err)
{
    struct rp_bytes name = {0}, body = {0};

    RP_TRY(
        rp_proto_read(c,
                      (const struct rp_proto_slot[]){{RP_TF_SIGNATURE_ENTRY_KEY, .bytes = &name},
                                                     {RP_TF_SIGNATURE_ENTRY_VALUE, .bytes = &body},
                                                     {0}},
                      err));
    if (text_is(name, "__saved_model_init_op"))
        return RP_OK; /* every model has it, but it computes nothing */
    if (text_is(name, wanted ? wanted : "serving_default") || (!wanted && !best->n)) {
        best->name = name;
        best->body = body;
    }
    best->n++;
    return RP_OK;
}

static enum rp_code read_meta(struct rp_proto_cursor c, const char *wanted, struct rp_arena *arena,
                              struct rp_tf_ports *out, struct rp_err *err)
{
    struct chosen best = {0};
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == RP_TF_META_GRAPH_GRAPH_DEF)
            out->graph = item.bytes;
        else if (item.number == RP_TF_META_GRAPH_SIGNATURE_DEF)
            RP_TRY(consider_signature(rp_proto_enter(&c, &item), wanted, &best, err));
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (!best.name.at)
        return rp_err_set(err, RP_FORMAT, "the model has no signature '%s'",
                          wanted ? wanted : "serving_default");
    out->signature = rp_arena_copy(arena, (const char *)best.name.at, best.name.n);
    RP_TRY(rp_err_need(out->signature, err, "reading a signature"));
    return read_signature(best.body, arena, out, err);
}

/* ---- nodes ---- */

struct node {
    struct rp_bytes name, op;
    uint64_t type;                          /* value of its attribute dtype */
    struct rp_bytes shape;                  /* TensorShapeProto in its attribute shape */
    struct rp_bytes shared, message, input; /* the first input */
    uint64_t index;                         /* of _Arg and _Retval */
};
typedef RP_VEC(struct node) node_list;

/* "^x" and "x:1" are inputs from x. */
static uint64_t input_hash(struct rp_bytes input)
{
    if (input.n && *input.at == '^') {
        input.at++;
        input.n--;
    }
    const uint8_t *colon = memchr(input.at, ':', input.n);
    return rp_hash_bytes(input.at, colon ? (size_t)(colon - input.at) : input.n);
}

static enum rp_code read_node(struct rp_proto_cursor c, struct node *node, struct rp_map *used,
                              struct rp_err *err)
{
    struct rp_proto_item item;

    memset(node, 0, sizeof *node);
    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == RP_TF_NODE_NAME)
            node->name = item.bytes;
        else if (item.number == RP_TF_NODE_OP)
            node->op = item.bytes;
        else if (item.number == RP_TF_NODE_INPUT && !node->input.at)
            node->input = item.bytes;
        if (item.number == RP_TF_NODE_INPUT && used)
            RP_TRY(rp_map_put(used, input_hash(item.bytes), 1, err));
        if (item.number == RP_TF_NODE_ATTR) {
            /* Reads the attributes dtype, shape and shared_name. */
            struct rp_bytes key = {0}, value = {0};
            RP_TRY(rp_proto_read(
                rp_proto_enter(&c, &item),
                (const struct rp_proto_slot[]){{RP_TF_ATTR_ENTRY_KEY, .bytes = &key},
                                               {RP_TF_ATTR_ENTRY_VALUE, .bytes = &value},
                                               {0}},
                err));
            if (text_is(key, "dtype") || text_is(key, "T") || text_is(key, "shape") ||
                text_is(key, "shared_name") || text_is(key, "index")) {
                RP_TRY(rp_proto_read(
                    rp_proto_cursor(value.at, value.n, 0, DEPTH),
                    (const struct rp_proto_slot[]){{RP_TF_ATTR_TYPE, .u64 = &node->type},
                                                   {RP_TF_ATTR_SHAPE, .bytes = &node->shape},
                                                   {RP_TF_ATTR_S, .bytes = &node->shared},
                                                   {RP_TF_ATTR_I, .u64 = &node->index},
                                                   {0}},
                    err));
            }
        }
    }
    return rp_proto_finish(&c, err);
}

static bool is_variable(struct rp_bytes op)
{
    return text_is(op, "VarHandleOp") || text_is(op, "VariableV2") || text_is(op, "Variable");
}

static bool has_no_output(struct rp_bytes op)
{
    static const char *const names[] = {"NoOp",   "Const",       "Assert",     "AssignVariableOp",
                                        "SaveV2", "Placeholder", "VarHandleOp"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_is(op, names[i]))
            return true;
    return op.n > 13 && !memcmp(op.at, "ResourceApply", 13);
}

static enum rp_code add_port(struct rp_arena *arena, const struct node *node,
                             struct rp_tf_port_name *port, struct rp_err *err)
{
    memset(port, 0, sizeof *port);
    if (node->shape.at)
        read_port_shape(node->shape, port);
    port->name = rp_arena_copy(arena, (const char *)node->name.at, node->name.n);
    port->tensor = rp_arena_printf(arena, "%.*s:0", (int)node->name.n, (const char *)node->name.at);
    port->type = node->type;
    port->index = node->index;
    return rp_err_need(port->name && port->tensor, err, "reading a graph");
}

RP_ORDER(by_index, struct rp_tf_port_name, RP_UP(index))

/* If the graph is the body of a function, chooses its arguments and results in their order. */
static enum rp_code choose_arguments(const node_list *nodes, struct rp_arena *arena,
                                     struct rp_tf_ports *out, struct rp_err *err)
{
    struct rp_tf_port_name port;

    for (size_t i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->at[i];

        if (text_is(node->op, "_Arg") || text_is(node->op, "_DeviceArg")) {
            RP_TRY(add_port(arena, node, &port, err));
            RP_TRY(rp_vec_push(&out->feeds, port, err));
        } else if (text_is(node->op, "_Retval") || text_is(node->op, "_DeviceRetval")) {
            /* Uses the value that a _Retval returns, under its own name. */
            const char *input = node->input.at ? (const char *)node->input.at : "";
            bool colon = node->input.n && memchr(input, ':', node->input.n);

            RP_TRY(add_port(arena, node, &port, err));
            port.tensor =
                rp_arena_printf(arena, "%.*s%s", (int)node->input.n, input, colon ? "" : ":0");
            RP_TRY(rp_err_need(port.tensor, err, "reading a graph"));
            RP_TRY(rp_vec_push(&out->fetches, port, err));
        }
    }
    rp_sort(out->feeds.at, out->feeds.n, sizeof *out->feeds.at, by_index);
    rp_sort(out->fetches.at, out->fetches.n, sizeof *out->fetches.at, by_index);
    return RP_OK;
}

static enum rp_code choose_nodes(const node_list *nodes, const struct rp_map *used,
                                 struct rp_arena *arena, struct rp_tf_ports *out,
                                 struct rp_err *err)
{
    struct rp_tf_port_name port;

    RP_TRY(choose_arguments(nodes, arena, out, err));
    if (out->fetches.n)
        return RP_OK;
    for (size_t i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->at[i];

        if (is_variable(node->op))
            out->has_variables = true;
        if (text_is(node->op, "Placeholder") || text_is(node->op, "PlaceholderV2")) {
            RP_TRY(add_port(arena, node, &port, err));
            RP_TRY(rp_vec_push(&out->feeds, port, err));
        } else if (!has_no_output(node->op) &&
                   rp_map_get(used, rp_hash_bytes(node->name.at, node->name.n)) == RP_MAP_NONE) {
            RP_TRY(add_port(arena, node, &port, err));
            RP_TRY(rp_vec_push(&out->fetches, port, err));
        }
    }
    return RP_OK;
}

static enum rp_code read_graph(struct rp_bytes graph, struct rp_arena *arena,
                               struct rp_tf_ports *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(graph.at, graph.n, 0, DEPTH);
    struct rp_proto_item item;
    enum rp_code code = RP_OK;
    node_list nodes = {0};
    struct node node;
    struct rp_map used = {0};

    while (code == RP_OK && rp_proto_next_bytes(&c, RP_TF_GRAPH_NODE, &item)) {
        code = read_node(rp_proto_enter(&c, &item), &node, &used, err);
        if (code == RP_OK)
            code = rp_vec_push(&nodes, node, err);
    }
    if (code == RP_OK)
        code = rp_proto_finish(&c, err);
    if (code == RP_OK)
        code = choose_nodes(&nodes, &used, arena, out, err);
    rp_vec_release(&nodes);
    rp_map_release(&used);
    return code;
}

enum rp_code rp_tf_ports_find(struct rp_bytes bytes, bool saved, const char *signature,
                              struct rp_arena *arena, struct rp_tf_ports *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, DEPTH);
    struct rp_tf_ports plain = {0};
    struct rp_proto_item item;

    memset(out, 0, sizeof *out);
    out->graph = bytes;
    if (!saved)
        return read_graph(bytes, arena, out, err);
    if (rp_proto_next_bytes(&c, RP_TF_SAVED_MODEL_META_GRAPHS, &item)) {
        RP_TRY(read_meta(rp_proto_enter(&c, &item), signature, arena, out, err));
        enum rp_code code = read_graph(out->graph, arena, &plain,
                                       err); /* the graph is needed only for its variables */
        out->has_variables = plain.has_variables;
        rp_tf_ports_release(&plain);
        return code;
    }
    RP_TRY(rp_proto_finish(&c, err));
    return rp_err_set(err, RP_FORMAT, "the model has no graph");
}

/* ---- what fetches need ---- */

struct needs {
    node_list nodes;
    struct rp_map by_name, reached;
    RP_VEC(uint32_t) work;
    struct rp_err *err;
};

/* Notes a node, once. */
static enum rp_code reach_node(struct needs *n, struct rp_bytes input)
{
    uint64_t hash = input_hash(input);
    uint32_t i = rp_map_get(&n->by_name, hash);

    if (i == RP_MAP_NONE || rp_map_get(&n->reached, hash) != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_map_put(&n->reached, hash, 1, n->err));
    return rp_vec_push(&n->work, i, n->err);
}

static enum rp_code list_nodes(struct needs *n, struct rp_bytes graph)
{
    struct rp_proto_cursor c = rp_proto_cursor(graph.at, graph.n, 0, DEPTH);
    struct rp_proto_item item;
    struct node node;

    while (rp_proto_next_bytes(&c, RP_TF_GRAPH_NODE, &item)) {
        RP_TRY(read_node(rp_proto_enter(&c, &item), &node, NULL, n->err));
        node.message = item.bytes;
        RP_TRY(rp_map_put(&n->by_name, rp_hash_bytes(node.name.at, node.name.n),
                          (uint32_t)n->nodes.n, n->err));
        RP_TRY(rp_vec_push(&n->nodes, node, n->err));
    }
    return rp_proto_finish(&c, n->err);
}

static bool is_reached(const struct needs *n, const char *tensor)
{
    struct rp_bytes text = {(const uint8_t *)tensor, strlen(tensor)};

    return rp_map_get(&n->reached, input_hash(text)) != RP_MAP_NONE;
}

static void needs_release(struct needs *n)
{
    RP_EACH(rp_vec_release, &n->nodes, &n->work);
    RP_EACH(rp_map_release, &n->by_name, &n->reached);
}

enum rp_code rp_tf_ports_narrow(struct rp_tf_ports *ports, const char *const *fetches, size_t count,
                                struct rp_arena *arena, struct rp_err *err)
{
    RP_SCOPED(needs_release) struct needs n = {.err = err};

    RP_TRY(list_nodes(&n, ports->graph));
    for (size_t i = 0; i < count; i++)
        RP_TRY(reach_node(&n, (struct rp_bytes){(const uint8_t *)fetches[i], strlen(fetches[i])}));
    while (n.work.n) {
        struct rp_bytes message = n.nodes.at[n.work.at[--n.work.n]].message;
        struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, DEPTH);
        struct rp_proto_item item;

        while (rp_proto_next_bytes(&c, RP_TF_NODE_INPUT, &item))
            RP_TRY(reach_node(&n, item.bytes));
    }

    /* Keeps what was reached. */
    struct rp_tf_port_name port;
    size_t kept = 0;
    for (size_t i = 0; i < ports->feeds.n; i++)
        if (is_reached(&n, ports->feeds.at[i].tensor))
            ports->feeds.at[kept++] = ports->feeds.at[i];
    ports->feeds.n = kept;
    ports->variables.n = 0;
    for (size_t i = 0; i < n.nodes.n; i++) {
        const struct node *node = &n.nodes.at[i];

        if (!is_variable(node->op) ||
            rp_map_get(&n.reached, rp_hash_bytes(node->name.at, node->name.n)) == RP_MAP_NONE)
            continue;
        RP_TRY(add_port(arena, node, &port, n.err));
        if (node->shared.n)
            port.name = rp_arena_copy(arena, (const char *)node->shared.at, node->shared.n);
        RP_TRY(rp_err_need(port.name, n.err, "reading a graph"));
        RP_TRY(rp_vec_push(&ports->variables, port, n.err));
    }
    return RP_OK;
}

void rp_tf_ports_release(struct rp_tf_ports *ports)
{
    RP_EACH(rp_vec_release, &ports->variables, &ports->feeds, &ports->fetches);
}
