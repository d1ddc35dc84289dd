/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow graphs whose variables are given as arguments, for the engine tf: for each variable a
 * placeholder and an assignment are appended to the graph,
 *
 *   reprise_variable_0           Placeholder       what is fed, once
 *   reprise_variable_0/assign    AssignVariableOp  (variable, reprise_variable_0)
 *
 * which the engine runs when arguments are sent. Reference variables are tensors and fed directly.
 */
#include "exec/tf/api.h"
#include "formats/tensorflow/node.h"
#include "replay/graph.h"

#include <stdio.h>
#include <string.h>

size_t rp_replay_narguments(const struct rp_session *s, const struct rp_engine *engine)
{
    const struct rp_replay_graph *g = s->graph;

    return g && engine == &rp_engine_tf && g->saved_folder ? g->nfeeds - g->nvariables
                                                           : s->signature.nin;
}

static void put_assignment(struct rp_proto_writer *w, const char *variable, const char *name,
                           uint64_t type)
{
    char text[512];
    size_t node = rp_tf_begin_node(w, name, "Placeholder");

    rp_tf_put_attr_type(w, "dtype", type);
    rp_proto_end(w, node);
    snprintf(text, sizeof text, "%s/assign", name);
    node = rp_tf_begin_node(w, text, "AssignVariableOp");
    rp_proto_put_bytes(w, RP_TF_NODE_INPUT, variable, strcspn(variable, ":"));
    rp_proto_put_text(w, RP_TF_NODE_INPUT, name);
    rp_tf_put_attr_type(w, "dtype", type);
    rp_proto_end(w, node);
}

/* Whether a node of the graph is a VarHandleOp. */
static bool is_handle(struct rp_bytes graph, const char *tensor)
{
    struct rp_proto_cursor c = rp_proto_cursor(graph.at, graph.n, 0, 32);
    struct rp_proto_item it, field;
    size_t n = strcspn(tensor, ":");

    while (rp_proto_next_bytes(&c, RP_TF_GRAPH_NODE, &it)) {
        bool named = false, handle = false;

        struct rp_proto_cursor node = rp_proto_enter(&c, &it);
        while (rp_proto_next(&node, &field))
            if (field.wire == RP_WIRE_BYTES && field.number == RP_TF_NODE_NAME)
                named = field.bytes.n == n && !memcmp(field.bytes.at, tensor, n);
            else if (field.wire == RP_WIRE_BYTES && field.number == RP_TF_NODE_OP)
                handle = field.bytes.n == 11 && !memcmp(field.bytes.at, "VarHandleOp", 11);
        if (named)
            return handle;
    }
    return false;
}

/* Feeds placeholders instead of variables; all variables must be of one kind. */
static enum rp_code replace_variables(const struct rp_session *s, struct rp_proto_writer *made,
                                      struct rp_engine_program *out, struct rp_err *err)
{
    const struct rp_replay_graph *g = s->graph;
    size_t first = g->nfeeds - g->nvariables;
    const char **feeds = RP_ARENA_NEW(s->arena, const char *, g->nfeeds + 1);
    struct rp_bytes graph;

    RP_TRY(rp_err_need(feeds, err, "preparing a graph"));
    memcpy(feeds, g->feeds, g->nfeeds * sizeof *feeds);
    rp_proto_add_bytes(made, g->graph.at, g->graph.n);
    for (size_t i = first; i < g->nfeeds; i++) {
        feeds[i] = rp_arena_printf(s->arena, "reprise_variable_%zu", i - first);
        RP_TRY(rp_err_need(feeds[i], err, "preparing a graph"));
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
    return replace_variables(s, made, out, err);
}
