/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TensorFlow graph whose variables come with the arguments, for the engine tf: for each of them a
 * placeholder and an assignment are put behind the graph's nodes,
 *
 *   reprise_variable_0           Placeholder       what is fed, once
 *   reprise_variable_0/assign    AssignVariableOp  (variable, reprise_variable_0)
 *
 * which the engine runs when arguments are sent. Variables of the old kind are tensors, and fed as
 * such.
 */
#include "exec/tf/api.h"
#include "replay/graph.h"

#include <stdio.h>
#include <string.h>

enum { GRAPH_NODE = 1, NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5, ATTR_TYPE = 6 };

size_t rp_replay_narguments(const struct rp_session *s, const struct rp_engine *engine)
{
    const struct rp_replay_graph *g = s->graph;

    return g && engine == &rp_engine_tf && g->saved_folder ? g->nfeeds - g->nvariables
                                                           : s->signature.nin;
}

static void put_text(struct rp_proto_writer *w, uint32_t number, const char *text)
{
    rp_proto_put_bytes(w, number, text, strlen(text));
}

static size_t begin_node(struct rp_proto_writer *w, const char *name, const char *op)
{
    size_t node = rp_proto_begin(w, GRAPH_NODE);

    put_text(w, NODE_NAME, name);
    put_text(w, NODE_OP, op);
    return node;
}

static void put_type(struct rp_proto_writer *w, uint64_t type)
{
    size_t attr = rp_proto_begin(w, NODE_ATTR), value;

    put_text(w, 1, "dtype");
    value = rp_proto_begin(w, 2);
    rp_proto_put_varint(w, ATTR_TYPE, type);
    rp_proto_end(w, value);
    rp_proto_end(w, attr);
}

static void put_assignment(struct rp_proto_writer *w, const char *variable, const char *name,
                           uint64_t type)
{
    char text[512];
    size_t node = begin_node(w, name, "Placeholder");

    put_type(w, type);
    rp_proto_end(w, node);
    snprintf(text, sizeof text, "%s/assign", name);
    node = begin_node(w, text, "AssignVariableOp");
    rp_proto_put_bytes(w, NODE_INPUT, variable, strcspn(variable, ":"));
    put_text(w, NODE_INPUT, name);
    put_type(w, type);
    rp_proto_end(w, node);
}

/* Whether a node of the graph is a VarHandleOp. */
static bool is_handle(struct rp_bytes graph, const char *tensor)
{
    struct rp_proto_cursor c = rp_proto_cursor(graph.at, graph.n, 0, 32), node;
    struct rp_proto_item it, field;
    size_t n = strcspn(tensor, ":");

    while (rp_proto_next(&c, &it)) {
        bool named = false, handle = false;

        if (it.number != GRAPH_NODE || it.wire != RP_WIRE_BYTES)
            continue;
        node = rp_proto_enter(&c, &it);
        while (rp_proto_next(&node, &field))
            if (field.wire == RP_WIRE_BYTES && field.number == NODE_NAME)
                named = field.bytes.n == n && !memcmp(field.bytes.at, tensor, n);
            else if (field.wire == RP_WIRE_BYTES && field.number == NODE_OP)
                handle = field.bytes.n == 11 && !memcmp(field.bytes.at, "VarHandleOp", 11);
        if (named)
            return handle;
    }
    return false;
}

/* Placeholders instead of the variables among the feeds; all of them are of one kind. */
static enum rp_code splice(const struct rp_session *s, struct rp_proto_writer *made,
                           struct rp_engine_program *out, struct rp_err *err)
{
    const struct rp_replay_graph *g = s->graph;
    size_t first = g->nfeeds - g->nvariables;
    const char **feeds = RP_ARENA_NEW(s->arena, const char *, g->nfeeds + 1);
    struct rp_bytes graph;

    if (!feeds)
        return rp_err_nomem(err, "preparing a graph");
    memcpy(feeds, g->feeds, g->nfeeds * sizeof *feeds);
    rp_proto_add_bytes(made, g->graph.at, g->graph.n);
    for (size_t i = first; i < g->nfeeds; i++) {
        feeds[i] = rp_arena_printf(s->arena, "reprise_variable_%zu", i - first);
        if (!feeds[i])
            return rp_err_nomem(err, "preparing a graph");
        put_assignment(made, g->feeds[i], feeds[i], (uint64_t)rp_tf_type(s->arguments[i]->elem));
    }
    RP_TRY(rp_proto_written(made, &graph, err));
    out->module = graph.at;
    out->nmodule = graph.n;
    out->feeds = feeds;
    out->nvariables = g->nvariables;
    return RP_OK;
}

enum rp_code rp_replay_graph_module(const struct rp_session *s, struct rp_proto_writer *made,
                                    struct rp_engine_program *out, struct rp_err *err)
{
    const struct rp_replay_graph *g = s->graph;

    out->module = g->graph.at;
    out->nmodule = g->graph.n;
    out->feeds = g->feeds;
    out->fetches = g->fetches;
    out->nfeeds = g->saved_folder ? g->nfeeds - g->nvariables : g->nfeeds;
    out->nfetches = g->nfetches;
    out->saved_folder = g->saved_folder;
    if (g->saved_folder || !g->nvariables || !is_handle(g->graph, g->feeds[g->nfeeds - 1]))
        return RP_OK;
    return splice(s, made, out, err);
}
