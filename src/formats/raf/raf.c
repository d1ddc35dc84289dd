/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads modules of RAF and TVM Relay as JSON (RATEX_SAVE_IR_FILE, tvm.ir.save_json): a list of
 * objects that refer to each other by index, written as strings.
 *
 *   {"root": 1, "nodes": [{"type_key": ""},
 *     {"type_key": "IRModule", "attrs": {"functions": "2"}},
 *     {"type_key": "Map", "data": [3, 4]},                       function names and functions
 *     {"type_key": "GlobalVar", "attrs": {"name_hint": "main"}},
 *     {"type_key": "relay.Function", "attrs": {"params": "5", "body": "9"}}, ...
 *
 * Each function becomes a computation. Expressions are walked from the body with an explicit stack,
 * so that chains of any length (a training step is one Let after another) can be read; an
 * expression that is used twice is one operation. Cost: one pass over the text, one over the
 * objects.
 */
#include "base/each.h"
#include "formats/formats.h"
#include "io/json_pull.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

enum raf_kind {
    RAF_OTHER,
    RAF_MODULE,
    RAF_FUNCTION,
    RAF_GLOBAL,
    RAF_VAR,
    RAF_ID,
    RAF_CALL,
    RAF_LET,
    RAF_TUPLE,
    RAF_GET,
    RAF_CONSTANT,
    RAF_IF,
    RAF_OP,
    RAF_TENSOR_TYPE,
    RAF_TUPLE_TYPE,
    RAF_INT
};

/* What the last word of a type key means. */
static const struct {
    const char *word;
    enum raf_kind kind;
} kinds[] = {{"IRModule", RAF_MODULE},
             {"Function", RAF_FUNCTION},
             {"GlobalVar", RAF_GLOBAL},
             {"Var", RAF_VAR},
             {"ExtendedVar", RAF_VAR},
             {"Id", RAF_ID},
             {"Call", RAF_CALL},
             {"Let", RAF_LET},
             {"Tuple", RAF_TUPLE},
             {"TupleGetItem", RAF_GET},
             {"Constant", RAF_CONSTANT},
             {"If", RAF_IF},
             {"Op", RAF_OP},
             {"TensorType", RAF_TENSOR_TYPE},
             {"TupleType", RAF_TUPLE_TYPE},
             {"IntImm", RAF_INT}};

/* Fields that refer to other objects, and others that are kept. */
enum { REF_A, REF_B, REF_C, REF_TYPE, REFS };
static const struct {
    enum raf_kind kind;
    const char *key;
    uint8_t ref;
} fields[] = {{RAF_MODULE, "functions", REF_A},
              {RAF_FUNCTION, "params", REF_A},
              {RAF_FUNCTION, "body", REF_B},
              {RAF_VAR, "vid", REF_A},
              {RAF_VAR, "type_annotation", REF_TYPE},
              {RAF_CALL, "op", REF_A},
              {RAF_CALL, "args", REF_B},
              {RAF_CALL, "attrs", REF_C},
              {RAF_LET, "var", REF_A},
              {RAF_LET, "value", REF_B},
              {RAF_LET, "body", REF_C},
              {RAF_TUPLE, "fields", REF_A},
              {RAF_GET, "tuple_value", REF_A},
              {RAF_GET, "tuple", REF_A},
              {RAF_IF, "cond", REF_A},
              {RAF_IF, "true_branch", REF_B},
              {RAF_IF, "false_branch", REF_C},
              {RAF_TENSOR_TYPE, "shape", REF_A},
              {RAF_TUPLE_TYPE, "fields", REF_A}};

struct raf_node {
    uint8_t kind;
    uint32_t ref[REFS];
    uint32_t text; /* string: the name of a variable or operation, or an element type */
    int64_t
        value; /* of an integer or part: its value; of a function or its name: computation + 1 */
    uint32_t data, ndata;   /* of raf.data: lists */
    uint32_t attrs, nattrs; /* place of its attributes in raf.attrs */
    uint32_t op;            /* operation + 1 in the computation `in` */
    uint32_t in;
};

struct raf {
    struct rp_program *p;
    struct rp_json *json;
    struct rp_limits limits;
    struct rp_err *err;
    uint64_t root;
    RP_VEC(struct raf_node) nodes;
    RP_VEC(uint32_t) data;
    RP_VEC(struct rp_slice) attrs;
    RP_VEC(uint32_t) stack;
    RP_VEC(uint32_t) functions; /* indexed by computation: its node */
    uint64_t work; /* list elements visited; with shared lists their number could be exponential */
};

/* ---- the objects ---- */

static uint64_t decimal(const char *s, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && s[i] >= '0' && s[i] <= '9' && v < UINT32_MAX; i++)
        v = v * 10 + (uint64_t)(s[i] - '0');
    return v;
}

static enum raf_kind kind_of(const char *s, size_t n)
{
    const char *dot = memrchr(s, '.', n);
    const char *word = dot ? dot + 1 : s;
    size_t len = (size_t)(s + n - word);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].word) == len && memcmp(kinds[i].word, word, len) == 0)
            return kinds[i].kind;
    return RAF_OTHER;
}

static bool token_is(const struct rp_json_token *t, const char *word)
{
    return strlen(word) == t->len && memcmp(t->text, word, t->len) == 0;
}

/* Reads the attributes of an object, which are all texts. All are kept until it is known what the
   object is. */
static enum rp_code read_attrs(struct raf *r, struct raf_node *node)
{
    struct rp_json_token key, value;

    node->attrs = (uint32_t)r->attrs.n;
    if (rp_json_value(r->json, &value) != RP_JSON_OBJECT)
        return RP_OK;
    while (rp_json_field(r->json, &key)) {
        struct rp_slice attr = {0};

        RP_TRY(rp_program_string(r->p, key.text, key.len, &attr.key, r->err));
        enum rp_json_kind kind = rp_json_value(r->json, &value);
        if (kind == RP_JSON_OBJECT || kind == RP_JSON_ARRAY)
            return rp_err_set_at(r->err, RP_FORMAT, rp_json_offset(r->json),
                                 "an attribute is not a string");
        attr.at = rp_arena_copy(&r->p->arena, value.text ? value.text : "", value.len);
        RP_TRY(rp_err_need(attr.at, r->err, "reading a module"));
        attr.n = (uint32_t)value.len;
        RP_TRY(rp_vec_push(&r->attrs, attr, r->err));
    }
    node->nattrs = (uint32_t)r->attrs.n - node->attrs;
    return RP_OK;
}

static enum rp_code read_data(struct raf *r, struct raf_node *node)
{
    struct rp_json_token value;

    node->data = (uint32_t)r->data.n;
    if (rp_json_value(r->json, &value) != RP_JSON_ARRAY)
        return RP_OK;
    while (rp_json_element(r->json)) {
        if (rp_json_value(r->json, &value) != RP_JSON_NUMBER)
            return rp_err_set_at(r->err, RP_FORMAT, rp_json_offset(r->json),
                                 "a list element is not a number");
        RP_TRY(rp_vec_push(&r->data, (uint32_t)decimal(value.text, value.len), r->err));
    }
    node->ndata = (uint32_t)r->data.n - node->data;
    return RP_OK;
}

/* Picks out of the attributes what the reader needs later. */
static void note_attrs(const struct raf *r, struct raf_node *node)
{
    for (uint32_t i = 0; i < node->nattrs; i++) {
        const struct rp_slice *attr = &r->attrs.at[node->attrs + i];
        const char *key = rp_program_text(r->p, attr->key);

        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
            if (fields[f].kind == node->kind && strcmp(fields[f].key, key) == 0)
                node->ref[fields[f].ref] = (uint32_t)decimal(attr->at, attr->n);
        if (strcmp(key, "_checked_type_") == 0)
            node->ref[REF_TYPE] = (uint32_t)decimal(attr->at, attr->n);
        if (strcmp(key, "index") == 0 || strcmp(key, "value") == 0)
            node->value = attr->n && *attr->at == '-' ? -1 : (int64_t)decimal(attr->at, attr->n);
    }
    if (node->kind == RAF_FUNCTION || node->kind == RAF_GLOBAL)
        node->value = 0;
}

/* Sets the text of "name_hint" or "dtype", which must be a string of the program. */
static enum rp_code name_node(struct raf *r, struct raf_node *node)
{
    for (uint32_t i = 0; i < node->nattrs; i++) {
        const struct rp_slice *attr = &r->attrs.at[node->attrs + i];
        const char *key = rp_program_text(r->p, attr->key);

        if (strcmp(key, "name_hint") == 0 || strcmp(key, "dtype") == 0)
            return rp_program_string(r->p, attr->at, attr->n, &node->text, r->err);
    }
    return RP_OK;
}

static enum rp_code read_node(struct raf *r)
{
    struct raf_node node = {0};
    struct rp_json_token key, value;

    if (rp_json_value(r->json, &value) != RP_JSON_OBJECT)
        return rp_err_set_at(r->err, RP_FORMAT, rp_json_offset(r->json), "expected an object");
    if (r->nodes.n >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu objects",
                          (unsigned long long)r->limits.events);
    while (rp_json_next(r->json, &key)) {
        if (token_is(&key, "attrs")) {
            RP_TRY(read_attrs(r, &node));
        } else if (token_is(&key, "data")) {
            RP_TRY(read_data(r, &node));
        } else if (token_is(&key, "type_key")) {
            if (rp_json_value(r->json, &value) == RP_JSON_STRING)
                node.kind = (uint8_t)kind_of(value.text, value.len);
        } else if (token_is(&key, "repr_str") || token_is(&key, "global_key")) {
            if (rp_json_value(r->json, &value) == RP_JSON_STRING)
                RP_TRY(rp_program_string(r->p, value.text, value.len, &node.text, r->err));
        }
    }
    if (rp_json_failed(r->json))
        return RP_OK;
    note_attrs(r, &node);
    if (!node.text)
        RP_TRY(name_node(r, &node));
    return rp_vec_push(&r->nodes, node, r->err);
}

static enum rp_code read_objects(struct raf *r)
{
    struct rp_json_token key, value;

    rp_json_value(r->json, &value);
    while (rp_json_next(r->json, &key)) {
        if (token_is(&key, "root")) {
            if (rp_json_value(r->json, &value) == RP_JSON_NUMBER)
                r->root = decimal(value.text, value.len);
        } else if (token_is(&key, "nodes")) {
            if (rp_json_value(r->json, &value) == RP_JSON_ARRAY)
                while (rp_json_element(r->json))
                    RP_TRY(read_node(r));
        }
    }
    return rp_json_finish(r->json, r->err);
}

/* ---- types ---- */

/* The object with an index; for an invalid index the first one, which is empty. */
static struct raf_node *node_at(const struct raf *r, uint32_t i)
{
    return &r->nodes.at[i < r->nodes.n ? i : 0];
}

static unsigned elem_of(const char *name)
{
    static const struct {
        const char *name;
        uint8_t elem;
    } names[] = {{"float32", RP_ELEM_F32},   {"float16", RP_ELEM_F16}, {"float64", RP_ELEM_F64},
                 {"bfloat16", RP_ELEM_BF16}, {"int64", RP_ELEM_S64},   {"int32", RP_ELEM_S32},
                 {"int16", RP_ELEM_S16},     {"int8", RP_ELEM_S8},     {"uint8", RP_ELEM_U8},
                 {"uint16", RP_ELEM_U16},    {"uint32", RP_ELEM_U32},  {"uint64", RP_ELEM_U64},
                 {"bool", RP_ELEM_PRED}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].elem;
    return RP_ELEM_INVALID;
}

static enum rp_code tensor_shape(struct raf *r, const struct raf_node *type, uint32_t *shape)
{
    const struct raf_node *list = node_at(r, type->ref[REF_A]);
    unsigned elem = elem_of(rp_program_text(r->p, type->text));
    int64_t dims[64];
    size_t n = list->ndata < 64 ? list->ndata : 64;

    for (size_t i = 0; i < n; i++) {
        const struct raf_node *dim = node_at(r, r->data.at[list->data + i]);

        dims[i] = dim->kind == RAF_INT ? dim->value : RP_DIM_UNKNOWN;
    }
    return elem == RP_ELEM_INVALID ? RP_OK
                                   : rp_program_array(r->p, elem, dims, NULL, n, 0, shape, r->err);
}

static enum rp_code type_shape(struct raf *r, uint32_t i, unsigned depth, uint32_t *shape)
{
    const struct raf_node *type = node_at(r, i), *list = node_at(r, type->ref[REF_A]);
    uint32_t parts[256];

    *shape = 0;
    if (type->kind == RAF_TENSOR_TYPE)
        return tensor_shape(r, type, shape);
    if (type->kind != RAF_TUPLE_TYPE || !depth || list->ndata > 256)
        return RP_OK;
    for (uint32_t k = 0; k < list->ndata; k++)
        RP_TRY(type_shape(r, r->data.at[list->data + k], depth - 1, &parts[k]));
    return rp_program_tuple(r->p, parts, list->ndata, shape, r->err);
}

/* ---- expressions ---- */

static uint32_t current_computation(const struct raf *r)
{
    return (uint32_t)r->p->computations.n;
}

static bool is_done(const struct raf *r, uint32_t i)
{
    const struct raf_node *node = node_at(r, i);

    return node->op && node->in == current_computation(r);
}

static void set_op(struct raf *r, uint32_t i, uint32_t op)
{
    struct raf_node *node = node_at(r, i);

    node->op = op + 1;
    node->in = current_computation(r);
}

static enum rp_code add_op(struct raf *r, uint32_t i, struct rp_new_op *op, const char *name)
{
    uint32_t id;

    if (!op->shape)
        RP_TRY(type_shape(r, node_at(r, i)->ref[REF_TYPE], 8, &op->shape));
    if (name)
        RP_TRY(rp_program_string(r->p, name, strlen(name), &op->foreign, r->err));
    if (name)
        op->code = RP_OP_FOREIGN;
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu operations",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_add_op(r->p, op, &id, r->err));
    set_op(r, i, id);
    return RP_OK;
}

static enum rp_code add_operand(struct raf *r, uint32_t i)
{
    const struct raf_node *node = node_at(r, i);

    return is_done(r, i) ? rp_program_add_operand(r->p, node->op - 1, 0, r->err) : RP_OK;
}

/* Pushes an expression that is needed first, unless its operation exists; then *ready stays. */
static enum rp_code push_need(struct raf *r, uint32_t i, bool *ready)
{
    const struct raf_node *node = node_at(r, i);

    if (is_done(r, i) || node->kind == RAF_OTHER || node->kind == RAF_OP ||
        node->kind == RAF_GLOBAL)
        return RP_OK;
    *ready = false;
    return rp_vec_push(&r->stack, i, r->err);
}

static enum rp_code push_need_list(struct raf *r, uint32_t list, bool *ready)
{
    const struct raf_node *node = node_at(r, list);

    r->work += node->ndata;
    if (r->work > (1 << 20) + 64 * ((uint64_t)r->nodes.n + r->data.n))
        return rp_err_set(r->err, RP_LIMIT, "lists are referenced too often");
    for (uint32_t k = 0; k < node->ndata; k++)
        RP_TRY(push_need(r, r->data.at[node->data + k], ready));
    return RP_OK;
}

static enum rp_code add_list(struct raf *r, uint32_t list)
{
    const struct raf_node *node = node_at(r, list);

    for (uint32_t k = 0; k < node->ndata; k++)
        RP_TRY(add_operand(r, r->data.at[node->data + k]));
    return RP_OK;
}

static enum rp_code keep_attrs(struct raf *r, uint32_t i)
{
    const struct raf_node *node = node_at(r, i);

    for (uint32_t k = 0; i && k < node->nattrs; k++) {
        const struct rp_slice *attr = &r->attrs.at[node->attrs + k];

        if (*rp_program_text(r->p, attr->key) != '_' && attr->n)
            RP_TRY(rp_program_add_text(r->p, attr->key, attr->at, attr->n, r->err));
    }
    return RP_OK;
}

static enum rp_code add_call(struct raf *r, uint32_t i)
{
    const struct raf_node *node = node_at(r, i), *callee = node_at(r, node->ref[REF_A]);
    struct rp_new_op op = {.code = RP_OP_CALL};
    uint32_t function = RP_NONE;

    if ((callee->kind == RAF_GLOBAL || callee->kind == RAF_FUNCTION) && callee->value)
        function = (uint32_t)callee->value - 1;
    RP_TRY(add_op(r, i, &op,
                  function != RP_NONE ? NULL
                  : callee->text      ? rp_program_text(r->p, callee->text)
                                      : "call"));
    RP_TRY(add_list(r, node->ref[REF_B]));
    RP_TRY(keep_attrs(r, node->ref[REF_C]));
    return function == RP_NONE ? RP_OK : rp_program_add_called(r->p, function, r->err);
}

/* Adds the operation of an expression whose parts exist. */
static enum rp_code add_expression(struct raf *r, uint32_t i)
{
    const struct raf_node *node = node_at(r, i);
    struct rp_new_op op = {.code = RP_OP_FOREIGN};

    switch (node->kind) {
    case RAF_CALL:
        return add_call(r, i);
    case RAF_TUPLE:
        op.code = RP_OP_TUPLE;
        RP_TRY(add_op(r, i, &op, NULL));
        return add_list(r, node->ref[REF_A]);
    case RAF_GET:
        op.code = RP_OP_GET_TUPLE_ELEMENT;
        op.value = node->value < 0 ? 0 : node->value;
        RP_TRY(add_op(r, i, &op, NULL));
        return add_operand(r, node->ref[REF_A]);
    case RAF_IF:
        RP_TRY(add_op(r, i, &op, "if"));
        for (int k = 0; k < 3; k++)
            RP_TRY(add_operand(r, node->ref[k]));
        return RP_OK;
    case RAF_CONSTANT:
        return add_op(r, i, &op, "constant");
    case RAF_FUNCTION:
        return add_op(r, i, &op, "closure");
    default:
        op.name = node_at(r, node->ref[REF_A])->text;
        return add_op(r, i, &op, "(free variable)");
    }
}

static enum rp_code push_needs(struct raf *r, uint32_t i, bool *ready)
{
    const struct raf_node *node = node_at(r, i);

    switch (node->kind) {
    case RAF_CALL:
        if (node_at(r, node->ref[REF_A])->kind == RAF_VAR)
            RP_TRY(push_need(r, node->ref[REF_A], ready));
        return push_need_list(r, node->ref[REF_B], ready);
    case RAF_TUPLE:
        return push_need_list(r, node->ref[REF_A], ready);
    case RAF_GET:
        return push_need(r, node->ref[REF_A], ready);
    case RAF_IF:
        for (int k = 0; k < 3; k++)
            RP_TRY(push_need(r, node->ref[k], ready));
        return RP_OK;
    default:
        return RP_OK;
    }
}

/* Enters "let x = value in body": x is the operation of value, and the whole is that of body. */
static enum rp_code enter_let(struct raf *r, uint32_t i)
{
    const struct raf_node *node = node_at(r, i);
    bool ready = true;

    RP_TRY(push_need(r, node->ref[REF_B], &ready));
    if (!ready)
        return RP_OK;
    if (is_done(r, node->ref[REF_B]) && !is_done(r, node->ref[REF_A])) {
        uint32_t op = node_at(r, node->ref[REF_B])->op - 1;

        set_op(r, node->ref[REF_A], op);
        if (!r->p->op_name.at[op])
            r->p->op_name.at[op] = node_at(r, node_at(r, node->ref[REF_A])->ref[REF_A])->text;
    }
    RP_TRY(push_need(r, node->ref[REF_C], &ready));
    if (!ready)
        return RP_OK;
    if (is_done(r, node->ref[REF_C]))
        set_op(r, i, node_at(r, node->ref[REF_C])->op - 1);
    r->stack.n--;
    return RP_OK;
}

/* Walks an expression; everything it needs is above it on the stack. Each object is visited at most
   twice, and once for each of its parts; an object that waits for itself is refused. */
static enum rp_code walk_expression(struct raf *r, uint32_t root)
{
    uint64_t steps = 0, most = 8 * ((uint64_t)r->nodes.n + r->data.n) + 64;

    r->stack.n = 0;
    RP_TRY(rp_vec_push(&r->stack, root, r->err));
    while (r->stack.n) {
        uint32_t i = r->stack.at[r->stack.n - 1];
        bool ready = true;

        if (++steps > most || r->stack.n > most)
            return rp_err_set(r->err, RP_FORMAT, "expressions depend on each other");
        if (is_done(r, i)) {
            r->stack.n--;
        } else if (node_at(r, i)->kind == RAF_LET) {
            RP_TRY(enter_let(r, i));
        } else {
            RP_TRY(push_needs(r, i, &ready));
            if (ready) {
                r->stack.n--;
                RP_TRY(add_expression(r, i));
            }
        }
    }
    return RP_OK;
}

/* ---- functions ---- */

static enum rp_code add_function(struct raf *r, uint32_t i, uint32_t name)
{
    const struct raf_node *node = node_at(r, i), *params = node_at(r, node->ref[REF_A]);
    uint32_t id;

    RP_TRY(rp_program_begin(r->p, name, &id, r->err));
    if (strcmp(rp_program_text(r->p, name), "main") == 0)
        r->p->entry = id;
    for (uint32_t k = 0; k < params->ndata; k++) {
        uint32_t var = r->data.at[params->data + k];
        struct rp_new_op op = {.code = RP_OP_PARAMETER,
                               .value = k,
                               .name = node_at(r, node_at(r, var)->ref[REF_A])->text};

        RP_TRY(add_op(r, var, &op, NULL));
    }
    RP_TRY(walk_expression(r, node->ref[REF_B]));
    if (is_done(r, node->ref[REF_B]))
        r->p->computations.at[id].root = node_at(r, node->ref[REF_B])->op - 1;
    return RP_OK;
}

static enum rp_code build_program(struct raf *r)
{
    if (!r->nodes.n)
        return rp_err_set(r->err, RP_FORMAT, "the module has no objects");

    /* The root may also be a single function. Closures become computations after those with
       names. */
    const struct raf_node *root = node_at(r, (uint32_t)r->root),
                          *map = node_at(r, root->ref[REF_A]);
    RP_VEC_LOCAL(uint32_t, names);
    uint32_t closure;
    RP_TRY(rp_program_string(r->p, "closure", 7, &closure, r->err));
    for (uint32_t k = 0; root->kind == RAF_MODULE && k + 1 < map->ndata; k += 2) {
        uint32_t f = r->data.at[map->data + k + 1];

        if (node_at(r, f)->kind != RAF_FUNCTION || node_at(r, f)->value)
            continue;
        RP_TRY(rp_vec_push(&r->functions, f, r->err));
        node_at(r, f)->value = node_at(r, r->data.at[map->data + k])->value =
            (int64_t)r->functions.n;
        RP_TRY(rp_vec_push(&names, node_at(r, r->data.at[map->data + k])->text, r->err));
    }
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        if (node_at(r, i)->kind != RAF_FUNCTION || node_at(r, i)->value)
            continue;
        RP_TRY(rp_vec_push(&r->functions, i, r->err));
        node_at(r, i)->value = (int64_t)r->functions.n;
        RP_TRY(rp_vec_push(&names, closure, r->err));
    }
    if (!r->functions.n)
        return rp_err_set(r->err, RP_FORMAT, "the module has no functions");
    for (size_t i = 0; i < r->functions.n; i++)
        RP_TRY(add_function(r, r->functions.at[i], names.at[i]));
    if (r->p->entry == RP_NONE)
        r->p->entry = 0;
    return rp_program_finish(r->p, r->err);
}

static enum rp_code raf_read(struct rp_input *in, const struct rp_read_options *options,
                             struct rp_import *to, struct rp_err *err)
{
    struct rp_json_options settings = {.limits = options->limits};
    struct raf r = {.err = err};

    RP_TRY(rp_program_new("relay", &to->program, err));
    r.p = to->program;
    r.limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    enum rp_code code = rp_json_open(in, &settings, &r.json, err);
    if (code == RP_OK)
        code = read_objects(&r);
    rp_json_close(r.json);
    if (code == RP_OK)
        code = build_program(&r);
    RP_EACH(rp_vec_release, &r.nodes, &r.data, &r.attrs, &r.stack, &r.functions);
    return code;
}

static enum rp_sniff raf_sniff(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_sniff_json_key(head, n, 1, "root") == 1 &&
                   rp_sniff_json_key(head, n, 1, "nodes") == 1 &&
                   memmem(head, n, "\"type_key\"", 10)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_raf = {
    .name = "raf-json",
    .summary = "RAF or TVM Relay module as JSON",
    .files = "*.json",
    .written_by = "RAF, Ratex, tvm.ir.save_json",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = raf_sniff,
    .read = raf_read,
};
