/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Chakra execution traces for ASTRA-sim and Chakra's own tools: the step graph of a rank as
 * nodes with their dependencies and lengths. Each node is a message, after GlobalMetadata.
 *
 *     thread   [op][launch]      COMP_NODE, is_cpu_op     stream   [kernel]      COMP_NODE
 *     stream   [copy to device]  MEM_LOAD_NODE                     [all-reduce]  COMM_COLL_NODE
 *
 * A node of Chakra begins when the nodes it depends on have ended; an edge of the step graph may
 * count from the start of its predecessor. Such an edge becomes one from the end of the predecessor
 * or from what that waited for, whichever is nearer to the recorded start. All dependencies are in
 * data_deps, because simulators follow no others; ctrl_deps repeats control flow: the order of a
 * thread, launches, hand-offs. Nodes come after those on which they depend.
 */
#include "abi/proto/chakra.h"
#include "base/copies.h"
#include "base/hash.h"
#include "convert/derived.h"
#include "cost/calls.h"
#include "io/emit.h"
#include "io/proto_write.h"
#include "stepgraph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define VERSION "0.0.4" /* of the schema */

enum { COMP = 4, MEM_LOAD = 2, MEM_STORE = 3, COMM_SEND = 5, COMM_RECV = 6, COMM_COLL = 7 };
enum { NO_KIND = 10 };
#define MOST_FOLLOWED 64 /* nodes in whose place their predecessors are dependencies */

struct chakra_writer {
    const struct rp_trace *t;
    struct rp_arena arena;
    struct rp_work work;
    struct rp_collectives collectives;
    struct rp_stepgraph g;
    struct rp_trace_categories categories;
    struct rp_op_costs costs;
    struct rp_cost_calls calls;
    struct rp_arg_key bytes;
    struct rp_map item_of;   /* from event to item of the work */
    RP_VEC(uint32_t) follow; /* nodes in whose place their predecessors are dependencies */
    RP_VEC(uint32_t) deps, control;
    struct rp_emit e;
    struct rp_proto_writer w;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ messages */

static enum rp_code put_message(struct chakra_writer *c)
{
    struct rp_bytes bytes;
    uint64_t n;

    RP_TRY(rp_proto_written(&c->w, &bytes, c->err));
    for (n = bytes.n; n >= 128; n >>= 7)
        rp_emit_char(&c->e, (char)(n | 128));
    rp_emit_char(&c->e, (char)n);
    rp_emit_bytes(&c->e, (const char *)bytes.at, bytes.n);
    rp_proto_rewind(&c->w);
    return RP_OK;
}

static void put_number(struct chakra_writer *c, uint32_t list, const char *name, uint32_t type,
                       uint64_t value)
{
    size_t at = rp_proto_begin(&c->w, list);

    rp_proto_put_text(&c->w, RP_CHAKRA_ATTR_NAME, name);
    rp_proto_put_varint(&c->w, type, value);
    rp_proto_end(&c->w, at);
}

static void put_text(struct chakra_writer *c, uint32_t list, const char *name, const char *text)
{
    size_t at = rp_proto_begin(&c->w, list);

    rp_proto_put_text(&c->w, RP_CHAKRA_ATTR_NAME, name);
    rp_proto_put_text(&c->w, RP_CHAKRA_ATTR_STRING_VAL, text);
    rp_proto_end(&c->w, at);
}

static void put_size(struct chakra_writer *c, const char *name, uint32_t type, double value)
{
    if (value >= 0 && value < 9e18) /* false if the value is not known, NAN */
        put_number(c, RP_CHAKRA_NODE_ATTR, name, type, (uint64_t)llround(value));
}

/* ------------------------------------------------------------------ dependencies */

static bool has_id(const uint32_t *ids, size_t n, uint32_t id)
{
    while (n--)
        if (ids[n] == id)
            return true;
    return false;
}

/* Whether the successor of an edge began nearer to the start of its predecessor than to its end. */
static bool is_nearer_to_start(const struct rp_stepgraph *g, const struct rp_sg_edge *edge)
{
    const struct rp_sg_node *from = &g->nodes.at[edge->from], *to = &g->nodes.at[edge->to];

    return edge->flags & RP_SG_FROM_START && rp_ns_between(from->start_ns, to->start_ns) <
                                                 rp_ns_between(to->start_ns, rp_sg_end_ns(from));
}

static enum rp_code add_dep(struct chakra_writer *c, const struct rp_sg_edge *edge)
{
    const struct rp_sg_node *from = &c->g.nodes.at[edge->from];

    if (from->kind == RP_SG_ORIGIN)
        return RP_OK;
    if (from->kind == RP_SG_ARRIVE ||
        (c->follow.n < MOST_FOLLOWED && is_nearer_to_start(&c->g, edge)))
        return has_id(c->follow.at, c->follow.n, edge->from)
                   ? RP_OK
                   : rp_vec_push(&c->follow, edge->from, c->err);
    return has_id(c->deps.at, c->deps.n, edge->from) ? RP_OK
                                                     : rp_vec_push(&c->deps, edge->from, c->err);
}

/* Finds the dependencies of a node. The arrival at a collective is not a node, so its dependencies
   count. */
static enum rp_code find_deps(struct chakra_writer *c, uint32_t node)
{
    c->deps.n = c->control.n = c->follow.n = 0;
    RP_TRY(rp_vec_push(&c->follow, node, c->err));
    for (size_t i = 0; i < c->follow.n; i++) {
        uint32_t at = c->follow.at[i];
        bool own = at == node || c->g.nodes.at[at].kind == RP_SG_ARRIVE;

        for (uint32_t k = c->g.in.at[at]; k < c->g.in.at[at + 1]; k++) {
            const struct rp_sg_edge *edge = &c->g.edges.at[k];
            bool control = edge->kind == RP_SG_ORDER || edge->kind == RP_SG_LAUNCH ||
                           edge->kind == RP_SG_HAND_OFF;

            RP_TRY(add_dep(c, edge));
            if (control && own && c->g.nodes.at[edge->from].kind != RP_SG_ORIGIN &&
                c->g.nodes.at[edge->from].kind != RP_SG_ARRIVE &&
                !has_id(c->control.at, c->control.n, edge->from))
                RP_TRY(rp_vec_push(&c->control, edge->from, c->err));
        }
    }
    return RP_OK;
}

static void put_ids(struct chakra_writer *c, uint32_t field, const uint32_t *ids, size_t n)
{
    if (!n)
        return;
    size_t at = rp_proto_begin(&c->w, field);
    for (size_t i = 0; i < n; i++)
        rp_proto_add_varint(&c->w, ids[i]);
    rp_proto_end(&c->w, at);
}

/* ------------------------------------------------------------------ nodes */

/* Returns Chakra's number of a kind, or NO_KIND. */
static uint64_t comm_type(uint8_t kind)
{
    static const uint8_t types[RP_COLL_KINDS] = {
        [RP_COLL_OTHER] = NO_KIND,     [RP_COLL_ALL_REDUCE] = 0,     [RP_COLL_ALL_GATHER] = 2,
        [RP_COLL_ALL_TO_ALL] = 6,      [RP_COLL_REDUCE_SCATTER] = 7, [RP_COLL_BROADCAST] = 5,
        [RP_COLL_REDUCE] = 1,          [RP_COLL_GATHER] = 3,         [RP_COLL_SCATTER] = 4,
        [RP_COLL_SEND_RECV] = NO_KIND, [RP_COLL_BARRIER] = 9};

    return types[kind];
}

static uint64_t node_type(const struct rp_stepgraph *g, const struct rp_sg_node *node,
                          const struct rp_collective *coll)
{
    const char *name = g->names.at[node->name];
    enum rp_copy_way way = node->kind == RP_SG_MEMORY ? rp_copy_way(name) : RP_COPY_UNKNOWN;

    if (coll && coll->kind == RP_COLL_SEND_RECV)
        return strcasestr(name, "recv") && !strcasestr(name, "send") ? COMM_RECV : COMM_SEND;
    if (coll && comm_type(coll->kind) != NO_KIND)
        return COMM_COLL;
    return way == RP_COPY_TO_DEVICE ? MEM_LOAD : way == RP_COPY_TO_HOST ? MEM_STORE : COMP;
}

/* Writes operations and bytes of device work. Of the kernels of one operator, the longest one gets
   them. */
static void put_cost(struct chakra_writer *c, const struct rp_sg_node *node)
{
    uint32_t item = rp_map_get(&c->item_of, node->event);
    int64_t bytes;

    if (node->kind == RP_SG_MEMORY && rp_arg_key_int(&c->bytes, node->event, &bytes)) {
        put_size(c, "tensor_size", RP_CHAKRA_ATTR_UINT64_VAL, (double)bytes);
        return;
    }
    if (item == RP_MAP_NONE || item >= c->calls.of_item.n)
        return;
    const struct rp_cost_call *call = &c->calls.calls.at[c->calls.of_item.at[item]];
    if (call->item != item || !rp_cost_is_known(&c->costs.costs.at[call->cost]))
        return;
    put_size(c, "num_ops", RP_CHAKRA_ATTR_INT64_VAL, c->costs.costs.at[call->cost].flops);
    put_size(c, "tensor_size", RP_CHAKRA_ATTR_UINT64_VAL, c->costs.costs.at[call->cost].bytes);
}

static uint64_t micros(int64_t ns)
{
    return ns > 0 ? ((uint64_t)ns + 500) / 1000 : 0;
}

static enum rp_code put_node(struct chakra_writer *c, uint32_t i)
{
    const struct rp_sg_node *node = &c->g.nodes.at[i];
    const struct rp_collective *coll =
        node->collective == RP_NONE ? NULL : &c->collectives.list.at[node->collective];
    uint64_t type = node_type(&c->g, node, coll);
    int64_t start_ns = rp_ns_between(c->g.begin_ns, node->start_ns);

    RP_TRY(find_deps(c, i));
    rp_proto_put_varint(&c->w, RP_CHAKRA_NODE_ID, i);
    rp_proto_put_text(&c->w, RP_CHAKRA_NODE_NAME, c->g.names.at[node->name]);
    rp_proto_put_varint(&c->w, RP_CHAKRA_NODE_TYPE, type);
    put_ids(c, RP_CHAKRA_NODE_CTRL_DEPS, c->control.at, c->control.n);
    put_ids(c, RP_CHAKRA_NODE_DATA_DEPS, c->deps.at, c->deps.n);
    rp_proto_put_varint(&c->w, RP_CHAKRA_NODE_START_TIME_MICROS, micros(start_ns));
    rp_proto_put_varint(&c->w, RP_CHAKRA_NODE_DURATION_MICROS, micros(node->dur_ns));
    /* transfers of the host (gloo) are not computations of the host either */
    put_number(c, RP_CHAKRA_NODE_ATTR, "is_cpu_op", RP_CHAKRA_ATTR_BOOL_VAL,
               !rp_sg_on_device(&c->g, i) && type < COMM_SEND);
    put_number(c, RP_CHAKRA_NODE_ATTR, "start_ns", RP_CHAKRA_ATTR_UINT64_VAL, (uint64_t)start_ns);
    put_number(c, RP_CHAKRA_NODE_ATTR, "duration_ns", RP_CHAKRA_ATTR_UINT64_VAL,
               (uint64_t)node->dur_ns);
    put_text(c, RP_CHAKRA_NODE_ATTR, "lane", c->g.lanes.at[node->lane].label);
    if (type >= COMM_SEND) {
        /* A collective has its kind, size and group. */
        int64_t size = coll->in_bytes >= 0 ? coll->in_bytes : coll->out_bytes;
        if (type == COMM_COLL)
            put_number(c, RP_CHAKRA_NODE_ATTR, "comm_type", RP_CHAKRA_ATTR_INT64_VAL,
                       comm_type(coll->kind));
        if (size >= 0)
            put_number(c, RP_CHAKRA_NODE_ATTR, "comm_size", RP_CHAKRA_ATTR_INT64_VAL,
                       (uint64_t)size);
        if (coll->group) {
            /* Simulators require numbers as names of groups, "0" for all ranks. */
            bool is_number = *coll->group && strlen(coll->group) < 8 &&
                             !coll->group[strspn(coll->group, "0123456789")];
            bool of_all = coll->group_size <= 0 || coll->group_size == c->t->world_size;
            char number[24];
            snprintf(
                number, sizeof number, "%u",
                of_all ? 0
                       : 1 + (uint32_t)(rp_hash_bytes(coll->group, strlen(coll->group)) % 999999));
            put_text(c, RP_CHAKRA_NODE_ATTR, "pg_name", is_number ? coll->group : number);
            if (!is_number)
                put_text(c, RP_CHAKRA_NODE_ATTR, "process_group", coll->group);
        }
    } else
        put_cost(c, node);
    return put_message(c);
}

/* ------------------------------------------------------------------ the file */

static void chakra_release(struct chakra_writer *c)
{
    rp_proto_writer_release(&c->w);
    rp_vec_release(&c->control);
    rp_vec_release(&c->deps);
    rp_vec_release(&c->follow);
    rp_map_release(&c->item_of);
    rp_arg_key_release(&c->bytes);
    rp_cost_calls_release(&c->calls);
    rp_op_costs_release(&c->costs);
    rp_trace_categories_release(&c->categories);
    rp_sg_release(&c->g);
    rp_collectives_release(&c->collectives);
    rp_work_release(&c->work);
    rp_arena_release(&c->arena);
}

static enum rp_code write_chakra(const struct rp_trace *trace, const char *path,
                                 const struct rp_write_options *options, struct rp_err *err)
{
    RP_SCOPED(chakra_release)
    struct chakra_writer c = {.t = trace, .arena = RP_ARENA_INIT, .err = err};

    (void)options;
    rp_trace_categories_init(&c.categories, trace, NULL);
    RP_TRY(rp_trace_require(c.t, RP_NEED_ALL, c.err));
    RP_TRY(rp_work_init(&c.work, c.t, NULL, c.err));
    RP_TRY(rp_collectives_init(&c.collectives, &c.work, NULL, &c.arena, c.err));
    RP_TRY(rp_sg_init(&c.g, &c.work, &c.collectives, c.err));
    RP_TRY(rp_op_costs_init(&c.costs, &c.categories, c.err));
    RP_TRY(rp_cost_calls_init(&c.calls, &c.costs, &c.work, NULL, NULL, c.err));
    for (size_t i = 0; i < c.work.items.n; i++)
        RP_TRY(rp_map_put(&c.item_of, c.work.items.at[i].event, (uint32_t)i, c.err));
    RP_TRY(rp_arg_key_init(&c.bytes, c.t, "bytes", c.err));

    RP_TRY(rp_emit_open(&c.e, path, 0, c.err));
    rp_proto_put_text(&c.w, RP_CHAKRA_METADATA_VERSION, VERSION);
    put_text(&c, RP_CHAKRA_METADATA_ATTR, "generated_by", "reprise");
    if (c.t->rank != RP_NO_RANK)
        put_number(&c, RP_CHAKRA_METADATA_ATTR, "rank", RP_CHAKRA_ATTR_INT64_VAL,
                   (uint64_t)c.t->rank);
    if (c.t->world_size > 0)
        put_number(&c, RP_CHAKRA_METADATA_ATTR, "world_size", RP_CHAKRA_ATTR_INT64_VAL,
                   (uint64_t)c.t->world_size);
    enum rp_code code = put_message(&c);
    for (size_t i = 0; code == RP_OK && i < c.g.order.n; i++) {
        uint32_t node = c.g.order.at[i];

        if (c.g.nodes.at[node].kind != RP_SG_ORIGIN && c.g.nodes.at[node].kind != RP_SG_ARRIVE)
            code = put_node(&c, node);
    }
    if (code == RP_OK)
        return rp_emit_close(&c.e, c.err);
    rp_emit_abandon(&c.e);
    return code;
}

const struct rp_writer rp_writer_chakra = {
    .name = "chakra",
    .endings = {".et"},
    .summary = "Chakra execution trace",
    .streams = true,
    .available = true,
    .by_rank = true,
    .numbered = true,
    .write = write_chakra,
};
