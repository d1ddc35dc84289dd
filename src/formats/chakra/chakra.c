/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chakra execution tracescome in two forms: a file ".et" has a varint and a message each for the
 * GlobalMetadata and then for every node; a "workload_graph" has the same nodes as JSON. A node is
 * an operation. A collective is named by its kind, a computation by its name without the number
 * that makes it unique. A node reads the nodes of its data dependencies; control dependencies are
 * an attribute. Nodes are in any order, so all are collected first. A dependency on a node that the
 * file does not have (they are often filtered) is left out.
 */
#include "abi/proto/chakra.h"
#include "base/each.h"
#include "formats/chakra/exec_trace.h"
#include "formats/formats.h"
#include "io/json_pull.h"
#include "io/proto.h"
#include "program/opcodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_METADATA = 1, NODE_COLLECTIVE = 7, NODE_TYPES };
static const char *const type_names[NODE_TYPES + 1] = {
    "invalid", "metadata", "mem-load", "mem-store", "compute", "send", "recv", "collective"};
static const char *const collective_names[] = {
    "all-reduce", "reduce",         "all-gather",           "gather", "scatter", "broadcast",
    "all-to-all", "reduce-scatter", "reduce-scatter-block", "barrier"};
#define COLLECTIVES (sizeof collective_names / sizeof *collective_names)

struct node {
    uint64_t id;
    uint64_t type;
    uint64_t collective; /* kind, or UINT64_MAX */
    uint32_t name;       /* string */
    uint32_t shape;
    size_t data, ndata;       /* of deps */
    size_t control, ncontrol; /* place of the control dependencies in deps, after the others */
    size_t attrs, nattrs;
};

struct chakra {
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(struct node) nodes;
    RP_VEC(uint64_t) deps;
    RP_VEC(struct rp_slice) attrs;
    RP_VEC(uint64_t) control; /* control dependencies of the node that is being read */
    RP_VEC(char) text;        /* scratch */
    struct rp_map op_of;      /* id to operation */
    bool known;               /* the file states the work of at least one node */
};

/* ---- from nodes to a program ---- */

static enum rp_code chakra_begin_node(struct chakra *r, struct node *node)
{
    if (r->nodes.n >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu nodes",
                          (unsigned long long)r->limits.events);
    *node = (struct node){.collective = UINT64_MAX, .data = r->deps.n, .attrs = r->attrs.n};
    r->control.n = 0;
    return RP_OK;
}

static enum rp_code chakra_end_node(struct chakra *r, struct node *node)
{
    node->ndata = r->deps.n - node->data;
    node->control = r->deps.n;
    node->ncontrol = r->control.n;
    node->nattrs = r->attrs.n - node->attrs;
    for (size_t i = 0; i < r->control.n; i++)
        RP_TRY(rp_vec_push(&r->deps, r->control.at[i], r->err));
    if (rp_map_get(&r->op_of, node->id) != RP_MAP_NONE)
        return rp_err_set(r->err, RP_FORMAT, "two nodes have the same id %" PRIu64, node->id);
    RP_TRY(rp_map_put(&r->op_of, node->id, (uint32_t)r->nodes.n, r->err));
    return rp_vec_push(&r->nodes, *node, r->err);
}

static enum rp_code keep_attr(struct chakra *r, uint32_t key, const char *text, size_t n)
{
    const char *kept = rp_arena_copy(&r->p->arena, text, n);

    if (!kept || n > UINT32_MAX)
        return rp_err_nomem(r->err, "keeping attributes");
    return rp_vec_push(&r->attrs, ((struct rp_slice){kept, (uint32_t)n, key}), r->err);
}

/* The length of a name without its number: "aten::mm(3)" is the fourth aten::mm. */
static size_t without_number(const char *name, size_t n)
{
    size_t at = n;

    if (n < 3 || name[n - 1] != ')')
        return n;
    for (at--; at && name[at - 1] >= '0' && name[at - 1] <= '9';)
        at--;
    return at > 1 && at < n - 1 && name[at - 1] == '(' ? at - 1 : n;
}

static enum rp_code add_control(struct chakra *r, const struct node *node)
{
    char one[32];

    r->text.n = 0;
    for (size_t i = 0; i < node->ncontrol; i++) {
        uint64_t id = r->deps.at[node->control + i];
        int n = snprintf(one, sizeof one, "%s%%%" PRIu64, r->text.n ? ", " : "{", id);

        if (rp_map_get(&r->op_of, id) == RP_MAP_NONE)
            continue;
        RP_TRY(rp_vec_reserve(&r->text, (size_t)n + 1, r->err));
        memcpy(r->text.at + r->text.n, one, (size_t)n);
        r->text.n += (size_t)n;
    }
    if (!r->text.n)
        return RP_OK;
    r->text.at[r->text.n++] = '}';
    return keep_attr(r, RP_ATTR_CONTROL_PREDECESSORS, r->text.at, r->text.n);
}

static enum rp_code chakra_add_node(struct chakra *r, const struct node *node)
{
    struct rp_new_op op = {.code = RP_OP_FOREIGN, .shape = node->shape};
    size_t kept = r->attrs.n;
    char id[24];
    uint32_t made;

    snprintf(id, sizeof id, "%" PRIu64, node->id);
    RP_TRY(rp_program_string(r->p, id, strlen(id), &op.name, r->err));

    /* What a node does is told by its type, or by its name without the number. */
    const char *name = rp_program_text(r->p, node->name);
    if (node->type == NODE_COLLECTIVE && node->collective < COLLECTIVES)
        name = collective_names[node->collective];
    else if (!*name || node->type == NODE_METADATA)
        name = type_names[node->type < NODE_TYPES ? node->type : 0];
    else if (node->type == 5 ||
             node->type == 6) /* these are named by their endpoints, which all differ */
        name = type_names[node->type];
    name = rp_arena_copy(&r->p->arena, name, without_number(name, strlen(name)));
    RP_TRY(name ? rp_program_string(r->p, name, strlen(name), &op.foreign, r->err)
                : rp_err_nomem(r->err, "naming nodes"));
    RP_TRY(rp_program_add_op(r->p, &op, &made, r->err));
    for (size_t i = 0; i < node->ndata; i++) {
        uint32_t from = rp_map_get(&r->op_of, r->deps.at[node->data + i]);

        if (from != RP_MAP_NONE && from != made)
            RP_TRY(rp_program_add_operand(r->p, from, 0, r->err));
    }

    /* Sets the work that the file states for a node: its operations, and the size of its tensors.
     */
    struct rp_cost cost = {0, 0, 0};
    for (size_t i = 0; i < node->nattrs; i++) {
        const struct rp_slice *attr = &r->attrs.at[node->attrs + i];
        const char *key = rp_program_text(r->p, attr->key);
        if (!strcmp(key, "num_ops"))
            cost.flops = strtod(attr->at, NULL);
        else if (!strcmp(key, "tensor_size"))
            cost.bytes = strtod(attr->at, NULL);
    }
    r->known = r->known || cost.flops > 0 || cost.bytes > 0;
    RP_TRY(rp_vec_push(&r->p->given, cost, r->err));
    RP_TRY(add_control(r, node));
    for (size_t i = 0; i < node->nattrs + (r->attrs.n - kept); i++) {
        const struct rp_slice *attr = i < node->nattrs ? &r->attrs.at[node->attrs + i]
                                                       : &r->attrs.at[kept + i - node->nattrs];

        RP_TRY(rp_program_add_text(r->p, attr->key, attr->at, attr->n, r->err));
    }
    r->attrs.n = kept;
    return RP_OK;
}

static enum rp_code chakra_build(struct chakra *r)
{
    uint32_t name, id;

    RP_TRY(rp_program_string(r->p, "trace", 5, &name, r->err));
    RP_TRY(rp_program_begin(r->p, name, &id, r->err));
    for (size_t i = 0; i < r->nodes.n; i++)
        RP_TRY(chakra_add_node(r, &r->nodes.at[i]));
    if (!r->known)
        r->p->given.n = 0;
    return rp_program_finish(r->p, r->err);
}

static void chakra_release(struct chakra *r)
{
    RP_EACH(rp_vec_release, &r->nodes, &r->deps, &r->attrs, &r->control, &r->text);
    rp_map_release(&r->op_of);
}

/* ---- messages ---- */

/* Reads an attribute: a name and one value, in the field of its type. Lists are dropped. */
static enum rp_code read_attr(struct chakra *r, struct rp_proto_cursor c, struct node *node)
{
    struct rp_bytes name = {(const uint8_t *)"", 0}, text = name;
    struct rp_proto_item it;
    uint64_t number = 0;
    bool has = false;
    char value[40];
    uint32_t key;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_CHAKRA_ATTR_NAME && it.wire == RP_WIRE_BYTES)
            name = it.bytes;
        else if ((it.number == RP_CHAKRA_ATTR_STRING_VAL ||
                  it.number == RP_CHAKRA_ATTR_BYTES_VAL) &&
                 it.wire == RP_WIRE_BYTES)
            text = it.bytes, has = true;
        else if (it.number >= RP_CHAKRA_ATTR_INT32_VAL && it.number <= RP_CHAKRA_ATTR_BOOL_VAL &&
                 it.wire == RP_WIRE_VARINT)
            number =
                it.number == RP_CHAKRA_ATTR_SINT32_VAL || it.number == RP_CHAKRA_ATTR_SINT64_VAL
                    ? (uint64_t)rp_proto_zigzag(it.value)
                    : it.value,
            has = true;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (!has || !name.n)
        return RP_OK;
    if (name.n == 9 && memcmp(name.at, "comm_type", 9) == 0 && !text.n)
        node->collective = number;
    RP_TRY(rp_program_string(r->p, (const char *)name.at, name.n, &key, r->err));
    if (text.n)
        return keep_attr(r, key, (const char *)text.at, text.n);
    snprintf(value, sizeof value, "%" PRId64, (int64_t)number);
    return keep_attr(r, key, value, strlen(value));
}

static enum rp_code read_outputs(struct chakra *r, struct rp_proto_cursor c, struct node *node)
{
    struct rp_bytes shapes = {0}, types = {0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_CHAKRA_IO_SHAPES && it.wire == RP_WIRE_BYTES)
            shapes = it.bytes;
        else if (it.number == RP_CHAKRA_IO_TYPES && it.wire == RP_WIRE_BYTES)
            types = it.bytes;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (!shapes.n || !types.n || shapes.n + types.n > 1 << 20)
        return RP_OK;
    r->text.n = 0;
    RP_TRY(rp_vec_reserve(&r->text, shapes.n + types.n, r->err));
    char *both = r->text.at;
    memcpy(both, shapes.at, shapes.n);
    memcpy(both + shapes.n, types.at, types.n);
    return rp_exec_shape(r->p, both, both + shapes.n, both + shapes.n + types.n, &node->shape,
                         r->err);
}

/* Reads one id, or a packed list of ids. */
static enum rp_code read_ids(struct chakra *r, const struct rp_proto_item *it, bool control)
{
    const uint8_t *at = it->bytes.at, *end = at + it->bytes.n;
    uint64_t id = it->value;
    bool more = it->wire == RP_WIRE_VARINT || at < end;

    while (more) {
        if (it->wire == RP_WIRE_BYTES) {
            at = rp_proto_varint_at(at, end, &id);
            if (!at)
                return rp_err_set(r->err, RP_FORMAT, "truncated list of ids");
        }
        if (control)
            RP_TRY(rp_vec_push(&r->control, id, r->err));
        else
            RP_TRY(rp_vec_push(&r->deps, id, r->err));
        more = it->wire == RP_WIRE_BYTES && at < end;
    }
    return RP_OK;
}

static enum rp_code read_field(struct chakra *r, const struct rp_proto_cursor *c,
                               const struct rp_proto_item *it, struct node *node)
{
    uint32_t key;
    char value[24];

    switch (RP_PROTO_KEY(it->number, it->wire)) {
    case RP_PROTO_KEY(RP_CHAKRA_NODE_ID, RP_WIRE_VARINT):
        node->id = it->value;
        return RP_OK;
    case RP_PROTO_KEY(RP_CHAKRA_NODE_NAME, RP_WIRE_BYTES):
        return rp_program_string(r->p, (const char *)it->bytes.at, it->bytes.n, &node->name,
                                 r->err);
    case RP_PROTO_KEY(RP_CHAKRA_NODE_TYPE, RP_WIRE_VARINT):
        node->type = it->value;
        return RP_OK;
    case RP_PROTO_KEY(RP_CHAKRA_NODE_CTRL_DEPS, RP_WIRE_VARINT):
    case RP_PROTO_KEY(RP_CHAKRA_NODE_CTRL_DEPS, RP_WIRE_BYTES):
        return read_ids(r, it, true);
    case RP_PROTO_KEY(RP_CHAKRA_NODE_DATA_DEPS, RP_WIRE_VARINT):
    case RP_PROTO_KEY(RP_CHAKRA_NODE_DATA_DEPS, RP_WIRE_BYTES):
        return read_ids(r, it, false);
    case RP_PROTO_KEY(RP_CHAKRA_NODE_DURATION_MICROS, RP_WIRE_VARINT):
        RP_TRY(rp_program_string(r->p, "duration_micros", 15, &key, r->err));
        snprintf(value, sizeof value, "%" PRIu64, it->value);
        return keep_attr(r, key, value, strlen(value));
    case RP_PROTO_KEY(RP_CHAKRA_NODE_OUTPUTS, RP_WIRE_BYTES):
        return read_outputs(r, rp_proto_enter(c, it), node);
    case RP_PROTO_KEY(RP_CHAKRA_NODE_ATTR, RP_WIRE_BYTES):
        return read_attr(r, rp_proto_enter(c, it), node);
    default:
        return RP_OK;
    }
}

static enum rp_code read_node(struct chakra *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;
    struct node node;

    RP_TRY(chakra_begin_node(r, &node));
    while (rp_proto_next(&c, &it))
        RP_TRY(read_field(r, &c, &it, &node));
    RP_TRY(rp_proto_finish(&c, r->err));
    return chakra_end_node(r, &node);
}

static enum rp_code chakra_init(struct chakra *r, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    *r = (struct chakra){.err = err};
    RP_TRY(rp_program_new("execution-trace", &to->program, err));
    r->p = to->program;
    r->limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    return RP_OK;
}

static enum rp_code read_binary(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(chakra_release) struct chakra r = {0};
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(chakra_init(&r, options, to, err));
    to->content_bytes = n;

    const uint8_t *at = bytes, *end = bytes + n;
    bool first = true;
    while (at < end) {
        uint64_t length;
        const uint8_t *from = rp_proto_varint_at(at, end, &length);

        if (!from || length > (uint64_t)(end - from))
            return rp_err_set_at(r.err, RP_FORMAT, (uint64_t)(at - bytes),
                                 "a message of the trace is truncated");
        if (!first)
            RP_TRY(
                read_node(&r, (struct rp_bytes){from, (size_t)length}, (uint64_t)(from - bytes)));
        first = false;
        at = from + length;
    }
    return chakra_build(&r);
}

/* Whether two frames follow: GlobalMetadata (a version, or attributes of which the first is the
   schema), then a node, which begins with its id or its name. */
static bool like_metadata(const uint8_t *at, const uint8_t *end)
{
    struct rp_proto_cursor c = rp_proto_cursor(at, (size_t)(end - at), 0, 4);
    struct rp_proto_item it;
    size_t n = 0;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES ||
            (it.number != RP_CHAKRA_METADATA_VERSION && it.number != RP_CHAKRA_METADATA_ATTR))
            return false;
        if (it.number == RP_CHAKRA_METADATA_VERSION &&
            (it.bytes.n < 3 || it.bytes.at[0] < '0' || it.bytes.at[0] > '9'))
            return false;
        if (it.number == RP_CHAKRA_METADATA_ATTR && !n &&
            (it.bytes.n < 8 || memcmp(it.bytes.at, "\n\006schema", 8) != 0))
            return false;
        n++;
    }
    return n && rp_proto_finish(&c, NULL) == RP_OK;
}

static enum rp_sniff sniff_binary(const uint8_t *head, size_t n, const char *file)
{
    const uint8_t *end = head + n, *at;
    uint64_t length;

    (void)file;
    at = n ? rp_proto_varint_at(head, end, &length) : NULL;
    if (!at || !length || length > (uint64_t)(end - at) || !like_metadata(at, at + length))
        return RP_SNIFF_NO;
    at += length;
    if (at == end)
        return RP_SNIFF_LIKELY;
    at = rp_proto_varint_at(at, end, &length);
    return at && at < end &&
                   (*at == RP_PROTO_KEY(RP_CHAKRA_NODE_ID, RP_WIRE_VARINT) ||
                    *at == RP_PROTO_KEY(RP_CHAKRA_NODE_NAME, RP_WIRE_BYTES))
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_chakra = {
    .name = "chakra",
    .summary = "Chakra execution trace",
    .files = "*.et",
    .written_by = "MLCommons Chakra",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_binary,
    .read = read_binary,
};

/* ---- JSON ---- */

static enum rp_code json_ids(struct chakra *r, struct rp_json *json, bool control)
{
    struct rp_json_token value;
    enum rp_json_kind kind = rp_json_value(json, &value);

    if (kind != RP_JSON_ARRAY)
        return RP_OK;
    while (rp_json_element(json)) {
        uint64_t id = 0;

        if (rp_json_value(json, &value) != RP_JSON_NUMBER)
            return rp_err_set_at(r->err, RP_FORMAT, rp_json_offset(json),
                                 "a dependency is not a number");
        for (size_t i = 0; i < value.len && value.text[i] >= '0' && value.text[i] <= '9'; i++)
            id = id * 10 + (uint64_t)(value.text[i] - '0');
        if (control)
            RP_TRY(rp_vec_push(&r->control, id, r->err));
        else
            RP_TRY(rp_vec_push(&r->deps, id, r->err));
    }
    return RP_OK;
}

static bool key_is(const char *key, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(key, word, n) == 0;
}

static enum rp_code json_scalar(struct chakra *r, struct rp_json *json, const char *name, size_t n,
                                struct node *node)
{
    struct rp_json_token raw;
    uint64_t number = 0;
    uint32_t key;

    if (!rp_json_raw(json, &raw) || !raw.len)
        return RP_OK;
    for (size_t i = 0; i < raw.len && raw.text[i] >= '0' && raw.text[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(raw.text[i] - '0');
    if (key_is(name, n, "Id"))
        node->id = number;
    else if (key_is(name, n, "NodeType"))
        node->type = number;
    else if (key_is(name, n, "comm_type"))
        node->collective = number;
    if (key_is(name, n, "Name") && raw.len > 1)
        return rp_program_string(r->p, raw.text + 1, raw.len - 2, &node->name, r->err);
    if (key_is(name, n, "Id") || key_is(name, n, "NodeType") || *raw.text == '{' ||
        *raw.text == '[')
        return RP_OK;
    RP_TRY(rp_program_string(r->p, name, n, &key, r->err));
    return *raw.text == '"' ? keep_attr(r, key, raw.text + 1, raw.len - 2)
                            : keep_attr(r, key, raw.text, raw.len);
}

static enum rp_code json_node(struct chakra *r, struct rp_json *json)
{
    struct rp_json_token key, value;
    struct node node;
    char name[32];

    if (rp_json_value(json, &value) != RP_JSON_OBJECT)
        return rp_err_set_at(r->err, RP_FORMAT, rp_json_offset(json), "a node is not an object");
    RP_TRY(chakra_begin_node(r, &node));
    while (rp_json_field(json, &key)) {
        size_t n = key.len;

        if (n >= sizeof name) {
            rp_json_skip(json);
            continue;
        }
        memcpy(name, key.text, n); /* the key is overwritten when its value is read */
        if (key_is(name, n, "data_deps") || key_is(name, n, "ctrlDeps") ||
            key_is(name, n, "ctrl_deps"))
            RP_TRY(json_ids(r, json, *name == 'c'));
        else
            RP_TRY(json_scalar(r, json, name, n, &node));
    }
    return rp_json_failed(json) ? RP_OK : chakra_end_node(r, &node);
}

static enum rp_code json_nodes(struct chakra *r, struct rp_json *json)
{
    struct rp_json_token key, value;

    rp_json_value(json, &value);
    while (rp_json_field(json, &key)) {
        if (!key_is(key.text, key.len, "workload_graph")) {
            rp_json_skip(json);
            continue;
        }
        if (rp_json_value(json, &value) == RP_JSON_ARRAY)
            while (rp_json_element(json))
                RP_TRY(json_node(r, json));
    }
    RP_TRY(rp_json_finish(json, r->err));
    return chakra_build(r);
}

static enum rp_code read_json(struct rp_input *in, const struct rp_read_options *options,
                              struct rp_import *to, struct rp_err *err)
{
    struct rp_json_options settings = {.limits = options->limits};
    struct rp_json *json = NULL;
    struct chakra r;

    RP_TRY(chakra_init(&r, options, to, err));
    enum rp_code code = rp_json_open(in, &settings, &json, err);
    if (code == RP_OK)
        code = json_nodes(&r, json);
    rp_json_close(json);
    chakra_release(&r);
    return code;
}

static enum rp_sniff sniff_json(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_sniff_json_key(head, n, 1, "workload_graph") == 1 ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

const struct rp_format rp_format_chakra_json = {
    .name = "chakra-json",
    .summary = "Chakra workload graph as JSON",
    .files = "*.json",
    .written_by = "MLCommons Chakra",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_json,
    .read = read_json,
};
