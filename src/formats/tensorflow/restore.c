/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model restores its variables by nodes such as
 *
 *   RestoreV2(prefix, names, slices) -> Identity -> AssignVariableOp(variable, value)
 *
 * in the graph itself, or in a function that the graph calls with its variables as arguments. Names
 * of variables and keys of checkpoints need not be alike (Keras numbers both anew), so these nodes
 * are read. Cost: one pass over the nodes of the graph and of the functions that restore.
 */
#include "formats/tensorflow/restore.h"

#include "base/hash.h"
#include "formats/tensorflow/node.h"

#include <string.h>

#define DEPTH 32
#define HOPS  8 /* longest chain from an assignment to the value it restores */

struct scope {
    RP_VEC(struct rp_bytes) nodes; /* messages */
    struct rp_map by_name;
};

struct restore_ctx {
    struct rp_bytes graph, library;
    struct rp_arena *arena;
    struct rp_tf_restores *out;
    struct rp_err *err;
};

static bool text_is(struct rp_bytes a, const char *b)
{
    return a.n == strlen(b) && !memcmp(a.at, b, a.n);
}

/* ---- scopes ---- */

static enum rp_code scope_fill(struct scope *s, struct rp_bytes message, uint32_t number,
                               struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, DEPTH);
    struct rp_proto_item it;

    rp_map_init(&s->by_name);
    while (rp_proto_next_bytes(&c, number, &it)) {
        struct rp_bytes name = rp_proto_find(it.bytes, RP_TF_NODE_NAME);

        RP_TRY(rp_map_put(&s->by_name, rp_hash_bytes(name.at, name.n), (uint32_t)s->nodes.n, err));
        RP_TRY(rp_vec_push(&s->nodes, it.bytes, err));
    }
    return rp_proto_finish(&c, err);
}

static void scope_release(struct scope *s)
{
    rp_vec_release(&s->nodes);
    rp_map_release(&s->by_name);
}

static struct rp_bytes without_output(struct rp_bytes text)
{
    const uint8_t *colon = memchr(text.at, ':', text.n);

    return (struct rp_bytes){text.at, colon ? (size_t)(colon - text.at) : text.n};
}

/* The node and output that "name:output:2" refers to. */
static struct rp_bytes scope_find(const struct scope *s, struct rp_bytes text, size_t *output)
{
    struct rp_bytes name = without_output(text);
    const uint8_t *last = memrchr(text.at, ':', text.n);
    uint32_t i = rp_map_get(&s->by_name, rp_hash_bytes(name.at, name.n));

    *output = 0;
    for (const uint8_t *p = last ? last + 1 : NULL; p && p < text.at + text.n; p++)
        *output =
            *p >= '0' && *p <= '9' && *output < 1000000 ? *output * 10 + (size_t)(*p - '0') : 0;
    return i < s->nodes.n ? s->nodes.at[i] : (struct rp_bytes){(const uint8_t *)"", 0};
}

/* ---- one assignment ---- */

/* The key that a value is restored from; empty if it is not restored. */
static struct rp_bytes source_of(const struct scope *s, struct rp_bytes value)
{
    size_t output, ignored;

    for (unsigned hop = 0; hop < HOPS; hop++) {
        struct rp_bytes node = scope_find(s, value, &output),
                        op = rp_proto_find(node, RP_TF_NODE_OP);

        if (text_is(op, "RestoreV2")) {
            struct rp_bytes names =
                scope_find(s, rp_proto_find_nth(node, RP_TF_NODE_INPUT, 1), &ignored);
            return rp_proto_find_nth(
                rp_proto_find(rp_tf_node_attr(names, "value"), RP_TF_ATTR_TENSOR),
                RP_TF_TENSOR_STRING_VAL, output);
        }
        if (!text_is(op, "Identity"))
            break;
        value = rp_proto_find(node, RP_TF_NODE_INPUT);
    }
    return (struct rp_bytes){(const uint8_t *)"", 0};
}

static enum rp_code note_restored(struct restore_ctx *f, struct rp_bytes variable,
                                  struct rp_bytes key)
{
    struct rp_tf_restored row = {without_output(variable),
                                 rp_arena_copy(f->arena, (const char *)key.at, key.n)};

    RP_TRY(rp_err_need(row.key, f->err, "looking for variables"));
    return rp_vec_push(&f->out->list, row, f->err);
}

static bool assigns(struct rp_bytes op)
{
    return text_is(op, "AssignVariableOp") || text_is(op, "Assign");
}

/* ---- a function that restores its arguments ---- */

static enum rp_code restores_in_function(struct restore_ctx *f, struct rp_bytes call,
                                         struct rp_bytes function)
{
    struct rp_bytes signature = rp_proto_find(function, RP_TF_FUNCTION_SIGNATURE);
    RP_SCOPED(scope_release) struct scope s = {0};

    RP_TRY(scope_fill(&s, function, RP_TF_FUNCTION_NODE_DEF, f->err));
    for (size_t i = 0; i < s.nodes.n; i++) {
        struct rp_bytes node = s.nodes.at[i], argument;

        if (!assigns(rp_proto_find(node, RP_TF_NODE_OP)))
            continue;
        struct rp_bytes key = source_of(&s, rp_proto_find_nth(node, RP_TF_NODE_INPUT, 1));
        struct rp_bytes variable = rp_proto_find(node, RP_TF_NODE_INPUT);
        for (size_t k = 0;
             key.n && (argument = rp_proto_find_nth(signature, RP_TF_OP_INPUT_ARG, k)).n; k++) {
            struct rp_bytes name = rp_proto_find(argument, RP_TF_ARG_NAME);

            if (name.n == variable.n && !memcmp(name.at, variable.at, name.n)) {
                RP_TRY(note_restored(f, rp_proto_find_nth(call, RP_TF_NODE_INPUT, k), key));
                break;
            }
        }
    }
    return RP_OK;
}

static struct rp_bytes find_function(const struct restore_ctx *f, struct rp_bytes name)
{
    struct rp_bytes function;

    for (size_t i = 0; (function = rp_proto_find_nth(f->library, RP_TF_LIBRARY_FUNCTION, i)).n;
         i++) {
        struct rp_bytes own =
            rp_proto_find(rp_proto_find(function, RP_TF_FUNCTION_SIGNATURE), RP_TF_OP_NAME);
        if (own.n == name.n && !memcmp(own.at, name.at, own.n))
            return function;
    }
    return function;
}

/* A cheap test before a function is read in full. */
static bool restores(struct rp_bytes function)
{
    return memmem(function.at, function.n, "RestoreV2", 9) != NULL;
}

enum rp_code rp_tf_restores_find(struct rp_bytes graph, struct rp_arena *arena,
                                 struct rp_tf_restores *out, struct rp_err *err)
{
    struct restore_ctx f = {graph, rp_proto_find(graph, RP_TF_GRAPH_LIBRARY), arena, out, err};
    RP_SCOPED(scope_release) struct scope s = {0};

    RP_TRY(scope_fill(&s, graph, RP_TF_GRAPH_NODE, err));
    for (size_t i = 0; i < s.nodes.n; i++) {
        struct rp_bytes node = s.nodes.at[i], op = rp_proto_find(node, RP_TF_NODE_OP);

        if (assigns(op)) {
            struct rp_bytes key = source_of(&s, rp_proto_find_nth(node, RP_TF_NODE_INPUT, 1));
            if (key.n)
                RP_TRY(note_restored(&f, rp_proto_find(node, RP_TF_NODE_INPUT), key));
        } else if (text_is(op, "StatefulPartitionedCall") || text_is(op, "PartitionedCall")) {
            struct rp_bytes function = find_function(
                &f, rp_proto_find(rp_proto_find(rp_tf_node_attr(node, "f"), RP_TF_ATTR_FUNC),
                                  RP_TF_NAME_ATTRS_NAME));
            if (function.n && restores(function))
                RP_TRY(restores_in_function(&f, node, function));
        }
    }
    return RP_OK;
}

const char *rp_tf_restored_key(const struct rp_tf_restores *r, const char *tensor)
{
    size_t n = strcspn(tensor, ":");

    for (size_t i = 0; i < r->list.n; i++)
        if (r->list.at[i].node.n == n && !memcmp(r->list.at[i].node.at, tensor, n))
            return r->list.at[i].key;
    return NULL;
}
