/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers TensorFlow graphs to HLO (lower.h). From each fetch the graph is walked back to the feeds;
 * every node is lowered once, after its inputs. The cost is one pass over the nodes that the
 * fetches need.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include "abi/proto/tensorflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH          32
#define CALL_DEPTH_MAX 64        /* the limit for functions in functions */
#define INPUTS_MAX     4096      /* of one node */
#define COPIES_MAX     (1 << 18) /* nodes of functions and loops: each may hold two of the next */

bool rp_lower_same(struct rp_bytes a, struct rp_bytes b)
{
    return a.n == b.n && (!a.n || !memcmp(a.at, b.at, a.n));
}

static struct rp_bytes text_bytes(const char *text)
{
    return (struct rp_bytes){(const uint8_t *)text, strlen(text)};
}

bool rp_lower_is(const struct rp_lower_node *node, const char *op)
{
    return rp_lower_same(node->op, text_bytes(op));
}

static enum rp_code add_node(struct rp_lower *l, struct rp_lower_scope *scope,
                             struct rp_lower_node node)
{
    struct rp_lower_node *kept = RP_ARENA_NEW(&l->arena, struct rp_lower_node, 1);

    if ((scope->function.n || scope->base) && ++l->copies > COPIES_MAX)
        return rp_err_set(l->err, RP_LIMIT,
                          "functions and loops in each other make more than %d nodes", COPIES_MAX);
    RP_TRY(rp_err_need(kept, l->err, "lowering a graph"));
    *kept = node;
    RP_TRY(rp_vec_push(&scope->nodes, kept, l->err));
    return rp_map_put(&scope->by_name, rp_hash_bytes(node.name.at, node.name.n),
                      (uint32_t)scope->nodes.n - 1, l->err);
}

static enum rp_code fill_scope(struct rp_lower *l, struct rp_lower_scope *scope,
                               struct rp_bytes message, uint32_t node_field)
{
    struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, DEPTH);
    struct rp_proto_item item;

    while (rp_proto_next_bytes(&c, node_field, &item)) {
        struct rp_lower_node node = {.message = item.bytes, .scope = scope};

        node.name = rp_proto_find(item.bytes, RP_TF_NODE_NAME);
        node.op = rp_proto_find(item.bytes, RP_TF_NODE_OP);
        RP_TRY(add_node(l, scope, node));
    }
    return rp_proto_finish(&c, l->err);
}

struct rp_lower_scope *rp_lower_new_scope(struct rp_lower *l)
{
    struct rp_lower_scope *scope = RP_ARENA_NEW(&l->arena, struct rp_lower_scope, 1);

    if (!scope)
        return NULL;
    scope->next = l->scopes;
    l->scopes = scope;
    return scope;
}

struct rp_bytes rp_lower_node_name(struct rp_bytes tensor)
{
    const uint8_t *colon = tensor.n ? memchr(tensor.at, ':', tensor.n) : NULL;

    return (struct rp_bytes){tensor.at, colon ? (size_t)(colon - tensor.at) : tensor.n};
}

struct rp_bytes rp_lower_input(const struct rp_lower_node *node, size_t i)
{
    return rp_proto_find_nth(node->message, RP_TF_NODE_INPUT, i);
}

static struct rp_lower_node *known_node(const struct rp_lower_scope *scope, struct rp_bytes name)
{
    uint32_t i = rp_map_get(&scope->by_name, rp_hash_bytes(name.at, name.n));

    return i < scope->nodes.n && rp_lower_same(scope->nodes.at[i]->name, name) ? scope->nodes.at[i]
                                                                               : NULL;
}

struct rp_lower_node *rp_lower_find_node(struct rp_lower *l, struct rp_lower_scope *scope,
                                         struct rp_bytes name)
{
    struct rp_lower_node *node = known_node(scope, name), *of;

    if (node || !scope->base || !(of = known_node(scope->base, name)))
        return node;
    l->failed =
        add_node(l, scope,
                 (struct rp_lower_node){
                     .message = of->message, .name = of->name, .op = of->op, .scope = scope});
    return l->failed == RP_OK ? scope->nodes.at[scope->nodes.n - 1] : NULL;
}

/* ---- values ---- */

static enum rp_code lower_with_inputs(struct rp_lower *l, struct rp_lower_node *node);

/* Finds "name", "name:2" or, in functions, "name:output:2"; arguments of functions have plain
   names. */
enum rp_code rp_lower_tensor(struct rp_lower *l, struct rp_lower_scope *scope, struct rp_bytes text,
                             struct rp_lower_value *out)
{
    struct rp_bytes name = rp_lower_node_name(text);
    const uint8_t *last = name.n < text.n ? memrchr(text.at, ':', text.n) : NULL;
    size_t index = 0;

    for (const uint8_t *p = last ? last + 1 : NULL; p && p < text.at + text.n; p++) {
        if (*p < '0' || *p > '9' || index > INPUTS_MAX)
            return rp_err_set(l->err, RP_FORMAT, "'%.*s' is not the name of a tensor",
                              (int)(text.n < 200 ? text.n : 200), (const char *)text.at);
        index = index * 10 + (size_t)(*p - '0');
    }
    if (scope->function.n && !last) {
        struct rp_proto_item item;
        struct rp_bytes signature = rp_proto_find(scope->function, RP_TF_FUNCTION_SIGNATURE);
        size_t i = 0;
        struct rp_proto_cursor c = rp_proto_cursor(signature.at, signature.n, 0, DEPTH);

        while (rp_proto_next_bytes(&c, RP_TF_OP_INPUT_ARG, &item)) {
            if (rp_lower_same(rp_proto_find(item.bytes, RP_TF_ARG_NAME), name) &&
                i < scope->narguments) {
                *out = scope->arguments[i];
                return RP_OK;
            }
            i++;
        }
    }
    struct rp_lower_node *node = rp_lower_find_node(l, scope, name);
    if (l->failed != RP_OK)
        return l->failed;
    if (!node)
        return rp_err_set(l->err, RP_FORMAT, "there is no node '%.*s'",
                          (int)(name.n < 200 ? name.n : 200), (const char *)name.at);
    RP_TRY(lower_with_inputs(l, node));
    if (index >= node->noutputs)
        return rp_lower_misfit(l, node, "no such output");
    *out = node->outputs[index];
    return RP_OK;
}

static enum rp_code inputs_of(struct rp_lower *l, struct rp_lower_node *node,
                              struct rp_lower_value **out, size_t *n)
{
    struct rp_proto_cursor c = rp_proto_cursor(node->message.at, node->message.n, 0, DEPTH);
    RP_VEC_LOCAL(struct rp_lower_value, list);
    struct rp_proto_item item;
    struct rp_lower_value value;

    while (rp_proto_next(&c, &item)) {
        if (item.number != RP_TF_NODE_INPUT || item.wire != RP_WIRE_BYTES ||
            (item.bytes.n && *item.bytes.at == '^'))
            continue;
        RP_TRY(list.n == INPUTS_MAX ? rp_lower_refuse(l, node, "too many inputs")
                                    : rp_lower_tensor(l, node->scope, item.bytes, &value));
        RP_TRY(rp_vec_push(&list, value, l->err));
    }
    *n = list.n;
    *out = RP_ARENA_NEW(&l->arena, struct rp_lower_value, list.n + 1);
    if (!*out)
        return rp_err_nomem(l->err, "lowering a graph");
    if (list.n)
        memcpy(*out, list.at, list.n * sizeof **out);
    return RP_OK;
}

/* ---- feeds ---- */

static enum rp_code add_feed(struct rp_lower *l, size_t i, struct rp_lower_value *out)
{
    const struct rp_tf_value *v = &l->feeds[i].value;

    *out = rp_lower_parameter(l, v->elem, v->dims, v->rank, i);
    rp_lower_know_ints(l, v, RP_LOWER_KNOWN, out);
    return RP_OK;
}

/* Returns the feed of a node's first output, or nfeeds. */
static size_t feed_of(const struct rp_lower *l, const struct rp_lower_node *node)
{
    struct rp_bytes name = node->name;
    size_t i = node->scope->function.n || node->scope->base ? l->nfeeds : 0;

    for (; i < l->nfeeds; i++) {
        const char *tensor = l->feeds[i].tensor;
        size_t n = strcspn(tensor, ":");

        if (n == name.n && !memcmp(tensor, name.at, n) && (!tensor[n] || !strcmp(tensor + n, ":0")))
            break;
    }
    return i;
}

/* ---- calls ---- */

static struct rp_bytes find_function(const struct rp_lower *l, struct rp_bytes name)
{
    struct rp_proto_cursor c = rp_proto_cursor(l->library.at, l->library.n, 0, DEPTH);
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item))
        if (item.number == RP_TF_LIBRARY_FUNCTION && item.wire == RP_WIRE_BYTES &&
            rp_lower_same(
                rp_proto_find(rp_proto_find(item.bytes, RP_TF_FUNCTION_SIGNATURE), RP_TF_OP_NAME),
                name))
            return item.bytes;
    return (struct rp_bytes){NULL, 0};
}

/* Returns the tensor that a function returns as the output of this name: "Softmax:softmax:0". */
static struct rp_bytes function_result(struct rp_bytes function, struct rp_bytes name)
{
    struct rp_proto_cursor c = rp_proto_cursor(function.at, function.n, 0, DEPTH);
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item))
        if (item.number == RP_TF_FUNCTION_RET && item.wire == RP_WIRE_BYTES &&
            rp_lower_same(rp_proto_find(item.bytes, RP_TF_TEXT_ENTRY_KEY), name))
            return rp_proto_find(item.bytes, RP_TF_TEXT_ENTRY_VALUE);
    return (struct rp_bytes){(const uint8_t *)"", 0};
}

static enum rp_code call_function(struct rp_lower *l, const struct rp_lower_node *node,
                                  struct rp_bytes function, const struct rp_lower_value *in,
                                  size_t nin, struct rp_lower_value *out, size_t *nout)
{
    struct rp_bytes signature = rp_proto_find(function, RP_TF_FUNCTION_SIGNATURE);
    struct rp_proto_cursor c = rp_proto_cursor(signature.at, signature.n, 0, DEPTH);
    struct rp_lower_scope *scope = rp_lower_new_scope(l);
    struct rp_proto_item item;

    RP_TRY(rp_err_need(scope, l->err, "lowering a call"));
    scope->function = function;
    scope->arguments = in;
    scope->narguments = nin;
    RP_TRY(fill_scope(l, scope, function, RP_TF_FUNCTION_NODE_DEF));
    *nout = 0;
    while (rp_proto_next_bytes(&c, RP_TF_OP_OUTPUT_ARG, &item)) {
        if (*nout == RP_LOWER_OUTPUTS)
            return rp_lower_refuse(l, node, "too many outputs");
        RP_TRY(rp_lower_tensor(l, scope,
                               function_result(function, rp_proto_find(item.bytes, RP_TF_ARG_NAME)),
                               &out[*nout]));
        ++*nout;
    }
    return rp_proto_finish(&c, l->err);
}

enum rp_code rp_lower_call(struct rp_lower *l, const struct rp_lower_node *node, const char *attr,
                           const struct rp_lower_value *in, size_t nin, struct rp_lower_value *out,
                           size_t *nout)
{
    struct rp_bytes function =
        find_function(l, rp_proto_find(rp_proto_find(rp_lower_attr(node, attr), RP_TF_ATTR_FUNC),
                                       RP_TF_NAME_ATTRS_NAME));
    struct rp_lower_value *values = RP_ARENA_NEW(&l->arena, struct rp_lower_value, nin + 1);

    RP_TRY(rp_err_need(values, l->err, "lowering a call"));
    if (!function.at)
        return rp_lower_misfit(l, node, "the graph's library does not define its function");
    memcpy(values, in, nin * sizeof *values);
    for (size_t i = 0; i < nin; i++) {
        values[i].ints = NULL;
        values[i].nints = 0;
    }
    return call_function(l, node, function, values, nin, out, nout);
}

/* ---- a node ---- */

/* TensorFlow's optimiser renames operators that another library runs. */
static struct rp_bytes plain_op_name(struct rp_bytes op)
{
    static const char *const prefixes[] = {"_MklNative", "_Mkl"};

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(prefixes[i]);

        if (op.n > n && !memcmp(op.at, prefixes[i], n))
            return (struct rp_bytes){op.at + n, op.n - n};
    }
    return op;
}

const struct rp_lower_row *const rp_lower_rows[] = {rp_lower_elementwise,
                                                    rp_lower_special,
                                                    rp_lower_arrays,
                                                    rp_lower_slices,
                                                    rp_lower_math,
                                                    rp_lower_products,
                                                    rp_lower_tables,
                                                    rp_lower_images,
                                                    rp_lower_spectral,
                                                    rp_lower_inverses,
                                                    rp_lower_fused,
                                                    rp_lower_control,
                                                    NULL};

static const struct rp_lower_row *find_row(struct rp_bytes op)
{
    for (size_t t = 0; rp_lower_rows[t]; t++)
        for (const struct rp_lower_row *row = rp_lower_rows[t]; row->op; row++)
            if (rp_lower_same(text_bytes(row->op), op))
                return row;
    return NULL;
}

/* Operators that lower_operator and lower_one handle without a row. */
static const char *const others[] = {"Const", "PartitionedCall", "StatefulPartitionedCall"};

#define NOTHERS (sizeof others / sizeof *others)

const char *rp_tf_lower_at(size_t i)
{
    if (i < NOTHERS)
        return others[i];
    i -= NOTHERS;
    for (size_t t = 0; rp_lower_rows[t]; t++)
        for (const struct rp_lower_row *row = rp_lower_rows[t]; row->op; row++)
            if (!i--)
                return row->op;
    return NULL;
}

bool rp_tf_lower_knows(const char *op, size_t n, unsigned *opcode)
{
    struct rp_bytes name = plain_op_name((struct rp_bytes){(const uint8_t *)op, n});
    const struct rp_lower_row *row = find_row(name);
    bool known = row != NULL;

    for (size_t i = 0; i < NOTHERS; i++)
        known |= rp_lower_same(name, text_bytes(others[i]));
    if (opcode)
        *opcode = row ? row->opcode : RP_LOWER_NO_OPCODE;
    return known;
}

bool rp_tf_lower_needs_known(const char *op)
{
    static const char *const names[] = {"Where", "Unique", "UniqueWithCounts"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(op, names[i]))
            return true;
    return false;
}

enum rp_opcode rp_lower_opcode(const struct rp_lower_node *node)
{
    const struct rp_lower_row *row = find_row(node->op);

    return row ? row->opcode : RP_LOWER_NO_OPCODE;
}

enum rp_code rp_lower_as(struct rp_lower *l, const struct rp_lower_node *node,
                         const struct rp_lower_value *in, size_t nin, struct rp_lower_value *out,
                         size_t *nout)
{
    const struct rp_lower_row *row = find_row(node->op);

    if (!row || nin < row->min)
        return rp_lower_refuse(l, node, "a part of it is not known");
    return row->lower(l, node, in, nin, out, nout);
}

/* An unsupported operator is treated as a scalar, so that the others are checked as well; failures
   that follow from it are not reported. */
static enum rp_code fake_outputs(struct rp_lower *l, struct rp_lower_value *out, size_t *nout)
{
    *nout = RP_LOWER_OUTPUTS;
    for (size_t i = 0; i < RP_LOWER_OUTPUTS; i++)
        out[i] = rp_lower_like(l, RP_ELEM_F32, NULL, 0);
    return RP_OK;
}

static enum rp_code lower_operator(struct rp_lower *l, struct rp_lower_node *node,
                                   struct rp_lower_value *out, size_t *nout)
{
    struct rp_bytes function = {0};
    struct rp_lower_value *in;
    size_t nin = 0;

    node->op = plain_op_name(node->op);
    const struct rp_lower_row *row = find_row(node->op);
    if (rp_lower_is(node, "Const")) {
        *nout = 1;
        return rp_lower_constant(l, node, out);
    }
    if (rp_lower_leaves(node)) {
        *nout = 1;
        return rp_lower_exit(l, node, out);
    }
    RP_TRY(inputs_of(l, node, &in, &nin));
    if (rp_lower_is(node, "PartitionedCall") || rp_lower_is(node, "StatefulPartitionedCall"))
        function =
            find_function(l, rp_proto_find(rp_proto_find(rp_lower_attr(node, "f"), RP_TF_ATTR_FUNC),
                                           RP_TF_NAME_ATTRS_NAME));
    else if (!row)
        function = find_function(l, node->op);
    if (function.at)
        return call_function(l, node, function, in, nin, out, nout);
    if (!row) {
        /* Adds it to the list of unknown operators. */
        size_t n = strlen(l->unknown);
        char name[100];

        snprintf(name, sizeof name, "%s%.*s", n ? ", " : "",
                 (int)(node->op.n < 80 ? node->op.n : 80), (const char *)node->op.at);
        l->nunknown++;
        if (!strstr(l->unknown, n ? name + 2 : name) && n + strlen(name) + 1 < sizeof l->unknown)
            memcpy(l->unknown + n, name, strlen(name) + 1);

        return fake_outputs(l, out, nout);
    }
    if (nin < row->min)
        return rp_lower_misfit(l, node, "too few inputs");
    *nout = 1;
    enum rp_code code = row->lower(l, node, in, nin, out, nout);
    if (code != RP_OK && l->nunknown) /* the failure may only follow from that */
        return fake_outputs(l, out, nout);
    return code;
}

uint32_t rp_lower_deeper(const struct rp_lower *l, uint32_t a, uint32_t b)
{
    return !a || (b && l->guards.at[b - 1].depth > l->guards.at[a - 1].depth) ? b : a;
}

enum rp_code rp_lower_set_outputs(struct rp_lower *l, struct rp_lower_node *node,
                                  const struct rp_lower_value *out, size_t n)
{
    struct rp_lower_value *kept = RP_ARENA_NEW(&l->arena, struct rp_lower_value, n + 1);

    RP_TRY(rp_err_need(kept, l->err, "lowering a graph"));
    memcpy(kept, out, n * sizeof *out);
    node->outputs = kept;
    node->noutputs = n;
    return RP_OK;
}

/* Sets the outputs of a node; `out` has room for as many as there may be. */
static enum rp_code lower_into(struct rp_lower *l, struct rp_lower_node *node,
                               struct rp_lower_value *out)
{
    size_t feed = feed_of(l, node), nout = 1;
    uint32_t guard = 0;

    RP_TRY(feed < l->nfeeds ? add_feed(l, feed, out) : lower_operator(l, node, out, &nout));
    if (feed == l->nfeeds && l->guarded && !rp_lower_is(node, "Merge") && !rp_lower_leaves(node)) {
        /* Finds the innermost side of a switch on which the inputs of a node are. Constants depend
           on a side by an input "^name", an Identity of it. */
        struct rp_proto_cursor c = rp_proto_cursor(node->message.at, node->message.n, 0, DEPTH);
        struct rp_lower_value value;
        struct rp_proto_item item;

        guard = 0;
        while (rp_proto_next_bytes(&c, RP_TF_NODE_INPUT, &item)) {
            struct rp_bytes name = item.bytes;
            bool waits = name.n && *name.at == '^';

            if (!waits) {
                RP_TRY(rp_lower_tensor(l, node->scope, name, &value));
                guard = rp_lower_deeper(l, guard, value.guard);
                continue;
            }
            struct rp_lower_node *side =
                rp_lower_find_node(l, node->scope, (struct rp_bytes){name.at + 1, name.n - 1});
            if (!side || side->busy || (side->opened && !side->outputs) ||
                !rp_lower_is(side, "Identity"))
                continue;
            RP_TRY(lower_with_inputs(l, side));
            guard = rp_lower_deeper(l, guard, side->noutputs ? side->outputs->guard : 0);
        }
        RP_TRY(rp_proto_finish(&c, l->err));
    }
    for (size_t i = 0; i < nout; i++)
        out[i].guard = rp_lower_deeper(l, out[i].guard, guard);
    return rp_lower_set_outputs(l, node, out, nout);
}

/* Calls of functions come back here, so the outputs, 19 kB, must not be on the stack. */
static enum rp_code lower_one(struct rp_lower *l, struct rp_lower_node *node)
{
    struct rp_lower_value *out;

    if (node->outputs)
        return RP_OK;
    if (node->busy || l->depth >= CALL_DEPTH_MAX)
        return rp_lower_refuse(l, node,
                               node->busy ? "the node is its own input"
                                          : "functions or loops are nested too deep");
    out = malloc(RP_LOWER_OUTPUTS * sizeof *out);
    RP_TRY(rp_err_need(out, l->err, "lowering a graph"));
    node->busy = true;
    l->depth++;
    enum rp_code code = lower_into(l, node, out);
    l->depth--;
    node->busy = false;
    free(out);
    return code;
}

struct node_stack {
    RP_VEC(struct rp_lower_node *) list;
};

/* Pushes the node of a tensor in a scope if it is not yet lowered. */
static enum rp_code push_input(struct rp_lower *l, struct rp_lower_scope *scope,
                               struct rp_bytes text, struct node_stack *stack)
{
    struct rp_bytes name = rp_lower_node_name(text);

    if (!text.n || *text.at == '^' || (name.n == text.n && scope->function.n))
        return RP_OK; /* arguments of functions have no colon */
    struct rp_lower_node *input = rp_lower_find_node(l, scope, name);
    if (!input || input->outputs)
        return RP_OK;
    if (input->opened)
        return rp_lower_refuse(l, input, "the node is its own input");
    return rp_vec_push(&stack->list, input, l->err);
}

static void stack_release(struct node_stack *stack)
{
    rp_vec_release(&stack->list);
}

/* Lowers a node and everything it needs, inputs first. The stack is explicit because a graph may be
   one long chain. */
static enum rp_code lower_with_inputs(struct rp_lower *l, struct rp_lower_node *node)
{
    RP_SCOPED(stack_release) struct node_stack stack = {0};

    RP_TRY(rp_vec_push(&stack.list, node, l->err));
    while (stack.list.n) {
        struct rp_lower_node *top = stack.list.at[stack.list.n - 1];
        size_t before = stack.list.n;

        if (!top->outputs && !top->opened && feed_of(l, top) == l->nfeeds &&
            !rp_lower_is(top, "Const")) {
            top->opened = true;

            /* Pushes the nodes of the same scope that a node reads, the first on top. What leaves a
               loop reads all that enters it. */
            struct rp_proto_cursor c = rp_proto_cursor(top->message.at, top->message.n, 0, DEPTH);
            const struct rp_lower_carried *carried;
            size_t first = stack.list.n, n = 0;
            struct rp_proto_item item;
            if (rp_lower_leaves(top)) {
                RP_TRY(rp_lower_loop_of(l, top, &carried, &n));
                for (size_t i = 0; i < n; i++)
                    RP_TRY(push_input(l, top->scope, rp_lower_input(carried[i].enter, 0), &stack));
            } else {
                while (rp_proto_next_bytes(&c, RP_TF_NODE_INPUT, &item))
                    RP_TRY(push_input(l, top->scope, item.bytes, &stack));
            }
            for (size_t a = first, b = stack.list.n; a + 1 < b; a++) {
                struct rp_lower_node *other = stack.list.at[--b];

                stack.list.at[b] = stack.list.at[a];
                stack.list.at[a] = other;
            }
        }
        if (stack.list.n == before) {
            stack.list.n--;
            RP_TRY(lower_one(l, top));
        }
    }
    return RP_OK;
}

/* ---- the program ---- */

static enum rp_code finish_program(struct rp_lower *l, struct rp_lower_scope *graph,
                                   const char *const *fetches, size_t n, struct rp_program **out)
{
    struct rp_lower_value *v = RP_ARENA_NEW(&l->arena, struct rp_lower_value, n + 1);
    struct rp_lower_value root = {.id = 0};

    RP_TRY(rp_err_need(v, l->err, "lowering a graph"));
    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_lower_tensor(l, graph, text_bytes(fetches[i]), &v[i]));
    if (l->nunknown)
        return rp_err_set(l->err, RP_UNSUPPORTED,
                          "TensorFlow operators that only the engine tf supports: %s", l->unknown);
    rp_lower_begin_tuple(l, &root, RP_OP_TUPLE, v, n);
    for (size_t i = 0; i < n; i++)
        rp_lower_operand(l, &v[i]);
    return rp_program_builder_finish(&l->builder, rp_lower_close(l, "main", &root, 0), out, l->err);
}

static enum rp_code lower_graph(struct rp_lower *l, struct rp_bytes graph,
                                const char *const *fetches, size_t nfetches,
                                struct rp_program **out)
{
    struct rp_lower_scope *scope = rp_lower_new_scope(l);

    RP_TRY(rp_err_need(scope, l->err, "lowering a graph"));
    l->library = rp_proto_find(graph, RP_TF_GRAPH_LIBRARY);
    l->guarded = memmem(graph.at, graph.n, "Merge", 5) != NULL;
    RP_TRY(rp_program_builder_init(&l->builder, "hlo", "tensorflow_graph", l->err));
    rp_lower_open(l);
    RP_TRY(fill_scope(l, scope, graph, RP_TF_GRAPH_NODE));
    /* Feeds that no node uses are parameters of the program, too. */
    struct rp_lower_value v;
    for (size_t i = 0; i < l->nfeeds; i++) {
        struct rp_bytes name = {(const uint8_t *)l->feeds[i].tensor,
                                strcspn(l->feeds[i].tensor, ":")};
        struct rp_lower_node *node = rp_lower_find_node(l, scope, name);

        if (node)
            RP_TRY(lower_one(l, node));
        else
            RP_TRY(add_feed(l, i, &v));
    }
    return finish_program(l, scope, fetches, nfetches, out);
}

enum rp_code rp_tf_lower(struct rp_bytes graph, const struct rp_lower_feed *feeds, size_t nfeeds,
                         const char *const *fetches, size_t nfetches,
                         struct rp_lower_computed *computed, struct rp_program **out,
                         struct rp_err *err)
{
    struct rp_lower l = {.feeds = feeds, .nfeeds = nfeeds, .computed = computed, .err = err};

    *out = NULL;
    rp_arena_init(&l.arena);
    if (computed)
        computed->wanted = 0;
    enum rp_code code = lower_graph(&l, graph, fetches, nfetches, out);
    if (code == RP_UNSUPPORTED && computed && computed->wanted && !l.nunknown) {
        /* What was found to be missing, as a program of its own. */
        struct rp_lower_value root = {.id = 0};

        rp_lower_begin_tuple(&l, &root, RP_OP_TUPLE, &l.wanted, 1);
        rp_lower_operand(&l, &l.wanted);
        code =
            rp_program_builder_finish(&l.builder, rp_lower_close(&l, "main", &root, 0), out, l.err);
    }
    for (struct rp_lower_scope *s = l.scopes; s; s = s->next) {
        rp_vec_release(&s->nodes);
        rp_map_release(&s->by_name);
    }
    rp_program_builder_release(&l.builder);
    rp_vec_release(&l.guards);
    rp_vec_release(&l.operations);
    rp_vec_release(&l.regions);
    rp_arena_release(&l.arena);
    return code;
}
