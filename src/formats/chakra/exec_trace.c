/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch execution traces (Chakra's input) as programs: a node is an operation, whose operands
 * are the nodes that last produced its input tensors. Tensors are tuples of six in the values of
 * inputs and outputs; in the older schema these lists are in the node itself:
 *
 *   "inputs": {"values": [[7,8,0,4096,8,"cuda:0"], [-1]], "shapes": [[16,256],[[]]], "types":
 * [...]}
 *
 * A node may be inside another one (its parent); work is counted at the innermost that has any.
 */
#include "formats/chakra/exec_trace.h"
#include "base/each.h"
#include "formats/formats.h"
#include "io/json_pull.h"
#include "program/opcodes.h"

#include <stdio.h>
#include <string.h>

struct exec_trace {
    struct rp_program *p;
    struct rp_json *json;
    struct rp_limits limits;
    struct rp_err *err;
    struct rp_map maker;    /* tensor to operation */
    RP_VEC(uint64_t) reads; /* input tensors of the node that is being read */
    RP_VEC(uint64_t) makes;
    struct rp_exec_node node; /* the one being read */
    uint64_t id, parent;      /* of it */
    struct rp_map op_of;      /* from the id of a node to its operation */
    RP_VEC(uint64_t) parents; /* by operation */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The next integer at s, or NULL. */
static const char *scan_integer(const char *s, const char *end, int64_t *value)
{
    bool minus = s < end && *s == '-';
    const char *from = s += minus;

    for (*value = 0; s < end && *s >= '0' && *s <= '9' && *value < INT64_MAX / 20; s++)
        *value = *value * 10 + (*s - '0');
    *value = minus ? -*value : *value;
    return s > from ? s : NULL;
}

/* Whether a tensor, "[1,2,0,4096,8,"cuda:0"]", begins at s. Gives its first number, and its size:
   the product of the fourth and the fifth. */
static bool tensor_at(const char *s, const char *end, uint64_t *id, double *bytes)
{
    int64_t first = 0, v;

    *bytes = 1;
    if (s >= end || *s != '[')
        return false;
    for (int i = 0; i < 5; i++) {
        for (s++; s < end && is_space(*s); s++)
            ;
        s = scan_integer(s, end, &v);
        if (!s || s >= end || *s != ',')
            return false;
        if (i == 0)
            first = v;
        if (i >= 3)
            *bytes *= v > 0 ? (double)v : 0;
    }
    for (s++; s < end && is_space(*s); s++)
        ;
    *id = (uint64_t)first;
    return s < end && *s == '"';
}

static enum rp_code find_tensors(struct exec_trace *r, struct rp_json_token raw, bool outputs)
{
    const char *end = raw.text + raw.len;
    uint64_t id;
    double bytes;

    for (const char *s = raw.text; s < end; s++)
        if (*s == '[' && tensor_at(s, end, &id, &bytes)) {
            *(outputs ? &r->node.out_bytes : &r->node.in_bytes) += bytes;
            if (outputs)
                RP_TRY(rp_vec_push(&r->makes, id, r->err));
            else
                RP_TRY(rp_vec_push(&r->reads, id, r->err));
        }
    return RP_OK;
}

static unsigned elem_of_type(const char *s, const char *end)
{
    static const struct {
        const char *name;
        uint8_t elem;
    } names[] = {{"c10::BFloat16", RP_ELEM_BF16}, {"c10::Half", RP_ELEM_F16},
                 {"float", RP_ELEM_F32},          {"double", RP_ELEM_F64},
                 {"long", RP_ELEM_S64},           {"int", RP_ELEM_S32},
                 {"bool", RP_ELEM_PRED},          {"unsigned char", RP_ELEM_U8},
                 {"signed char", RP_ELEM_S8},     {"short", RP_ELEM_S16}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((size_t)(end - s) >= strlen(names[i].name) &&
            memcmp(s, names[i].name, strlen(names[i].name)) == 0)
            return names[i].elem;
    return RP_ELEM_INVALID;
}

enum rp_code rp_exec_shape(struct rp_program *p, const char *shapes, const char *types,
                           const char *end, uint32_t *id, struct rp_err *err)
{
    const char *type = types ? memmem(types, (size_t)(end - types), "Tensor(", 7) : NULL;
    unsigned elem = type ? elem_of_type(type + 7, end) : RP_ELEM_INVALID;
    const char *s = shapes ? memmem(shapes, (size_t)(end - shapes), "[[", 2) : NULL;
    int64_t dims[32], v;
    size_t n = 0;

    *id = 0;
    if (!s || elem == RP_ELEM_INVALID)
        return RP_OK;
    for (s += 2; s < end && *s != ']' && n < 32;) {
        s = scan_integer(s, end, &v);
        if (!s)
            return RP_OK; /* a list of tensors */
        dims[n++] = v < 0 ? RP_DIM_UNKNOWN : v;
        while (s < end && (*s == ',' || *s == ' '))
            s++;
    }
    return rp_program_array(p, elem, dims, NULL, n, 0, id, err);
}

static const char *skip_spaces(const char *s, const char *end)
{
    while (s < end && (is_space(*s) || *s == ','))
        s++;
    return s;
}

/* Reads one argument: a list of numbers is a shape; anything else, such as a list of lists, is not.
   Returns the position after it. */
static const char *read_one(const char *s, const char *end, struct rp_exec_dims *out)
{
    int depth = 0;
    int64_t v;

    *out = (struct rp_exec_dims){-1, {0}};
    if (s < end && *s == '[') {
        const char *p = skip_spaces(s + 1, end);
        int n = 0;

        for (; n < RP_EXEC_DIMS && (p = scan_integer(p, end, &v)) && v >= 0; n++) {
            out->d[n] = v;
            p = skip_spaces(p, end);
            if (p < end && *p == ']')
                break;
        }
        if (p && p < end && *p == ']' && n < RP_EXEC_DIMS)
            out->n = n + 1;
        else if (skip_spaces(s + 1, end) < end && *skip_spaces(s + 1, end) == ']')
            out->n = 0;
    }
    for (; s < end; s++) {
        depth += (*s == '[') - (*s == ']');
        if (depth < 0 || (depth == 0 && (*s == ',' || *s == ']')))
            break;
    }
    return s < end && *s == ']' && depth == 0 ? s + 1 : s;
}

/* Reads "[[16,256],[],[[]]]", the shapes of arguments; returns their number. */
static size_t exec_read_dims(const char *text, const char *end, struct rp_exec_dims *out)
{
    const char *s = memchr(text, '[', (size_t)(end - text));
    size_t n = 0;

    if (!s)
        return 0;
    for (s = skip_spaces(s + 1, end); s < end && *s != ']' && n < RP_EXEC_ARGS;
         s = skip_spaces(s, end))
        s = read_one(s, end, &out[n++]);
    return n;
}

/* Reads the inputs or outputs, which in the newer schema come with their shapes. */
static enum rp_code read_arguments(struct exec_trace *r, struct rp_json_token raw, bool outputs)
{
    const char *end = raw.text + raw.len, *shapes = memmem(raw.text, raw.len, "\"shapes\"", 8);

    if (shapes && outputs)
        r->node.nout = exec_read_dims(shapes, end, r->node.out);
    else if (shapes)
        r->node.nin = exec_read_dims(shapes, end, r->node.in);
    return find_tensors(r, raw, outputs);
}

#define MAX_NESTING 64

static uint64_t integer_of(struct rp_json_token raw)
{
    int64_t v;

    return scan_integer(raw.text, raw.text + raw.len, &v) ? (uint64_t)v : UINT64_MAX;
}

static bool is_key(struct rp_json_token key, const char *name)
{
    return key.len == strlen(name) && !memcmp(key.text, name, key.len);
}

static enum rp_code node_field(struct exec_trace *r, struct rp_json_token key, struct rp_new_op *op)
{
    struct rp_json_token raw;

    if (!rp_json_raw(r->json, &raw))
        return RP_OK; /* rp_json_finish reports it */
    if (is_key(key, "name")) {
        size_t n = raw.len > 1 ? raw.len - 2 : 0;

        snprintf(r->node.name, sizeof r->node.name, "%.*s", n < 64 ? (int)n : 0, raw.text + 1);
        return rp_program_string(r->p, raw.text + (raw.len > 1), n, &op->foreign, r->err);
    }
    if (is_key(key, "id")) {
        r->id = integer_of(raw);
        return rp_program_string(r->p, raw.text, raw.len, &op->name, r->err);
    }
    if (is_key(key, "parent") || is_key(key, "ctrl_deps"))
        r->parent = integer_of(raw);
    if (is_key(key, "inputs"))
        return read_arguments(r, raw, false);
    if (is_key(key, "input_shapes"))
        r->node.nin = exec_read_dims(raw.text, raw.text + raw.len, r->node.in);
    if (is_key(key, "output_shapes"))
        r->node.nout = exec_read_dims(raw.text, raw.text + raw.len, r->node.out);
    if (is_key(key, "outputs")) {
        const char *end = raw.text + raw.len;
        RP_TRY(read_arguments(r, raw, true));
        return rp_exec_shape(r->p, memmem(raw.text, raw.len, "\"shapes\"", 8),
                             memmem(raw.text, raw.len, "\"types\"", 7), end, &op->shape, r->err);
    }
    return RP_OK;
}

static enum rp_code read_node(struct exec_trace *r)
{
    struct rp_new_op op = {.code = RP_OP_FOREIGN};
    struct rp_json_token key, value;
    char name[16];

    r->reads.n = r->makes.n = 0;
    r->node = (struct rp_exec_node){0};
    r->id = r->parent = UINT64_MAX;
    if (rp_json_value(r->json, &value) != RP_JSON_OBJECT)
        return rp_err_set(r->err, RP_FORMAT, "a node is not an object");
    while (rp_json_field(r->json, &key)) {
        /* the key is overwritten when its value is read */
        if (key.len >= sizeof name) {
            rp_json_skip(r->json);
            continue;
        }
        memcpy(name, key.text, key.len);
        key.text = name;
        RP_TRY(node_field(r, key, &op));
    }

    /* The operands are the operators that made the tensors which this one reads. */
    uint32_t id, maker;
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu nodes",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));
    for (size_t i = 0; i < r->reads.n; i++) {
        maker = rp_map_get(&r->maker, r->reads.at[i]);
        if (maker != RP_MAP_NONE && maker != id)
            RP_TRY(rp_program_add_operand(r->p, maker, 0, r->err));
    }
    for (size_t i = 0; i < r->makes.n; i++)
        RP_TRY(rp_map_put(&r->maker, r->makes.at[i], id, r->err));
    RP_TRY(rp_map_put(&r->op_of, r->id, id, r->err));
    RP_TRY(rp_vec_push(&r->parents, r->parent, r->err));
    return rp_vec_push(&r->p->given, rp_exec_cost(&r->node), r->err);
}

static enum rp_code read_nodes(struct exec_trace *r)
{
    struct rp_json_token key, value;
    uint32_t name, id;

    RP_TRY(rp_program_string(r->p, "trace", 5, &name, r->err));
    RP_TRY(rp_program_begin(r->p, name, &id, r->err));
    rp_json_value(r->json, &value);
    while (rp_json_field(r->json, &key)) {
        if (key.len != 5 || memcmp(key.text, "nodes", 5) != 0) {
            rp_json_skip(r->json);
            continue;
        }
        if (rp_json_value(r->json, &value) != RP_JSON_ARRAY)
            continue;
        while (rp_json_element(r->json))
            RP_TRY(read_node(r));
    }
    RP_TRY(rp_json_finish(r->json, r->err));

    /* Work is counted once, at the innermost node that has any: an operator with only a view inside
       keeps its own work. If no node's work is known, none is set. */
    struct rp_cost *given = r->p->given.at;
    bool any = false;
    for (uint32_t i = 0; i < r->parents.n; i++) {
        bool flops = given[i].flops > 0 || given[i].transcendentals > 0;
        uint32_t outer = i;
        for (int left = MAX_NESTING; left && (flops || given[i].bytes > 0); left--) {
            outer = rp_map_get(&r->op_of, r->parents.at[outer]);
            if (outer == RP_MAP_NONE || outer == i)
                break;
            if (flops)
                given[outer].flops = given[outer].transcendentals = 0;
            if (given[i].bytes > 0)
                given[outer].bytes = 0;
        }
        any = any || flops || given[i].bytes > 0;
    }
    if (!any)
        r->p->given.n = 0;
    return rp_program_finish(r->p, r->err);
}

static enum rp_code exec_trace_read(struct rp_input *in, const struct rp_read_options *options,
                                    struct rp_import *to, struct rp_err *err)
{
    struct rp_json_options json = {.limits = options->limits};
    struct exec_trace r = {.err = err};

    RP_TRY(rp_program_new("execution-trace", &to->program, err));
    r.p = to->program;
    r.limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    enum rp_code code = rp_json_open(in, &json, &r.json, err);
    if (code == RP_OK)
        code = read_nodes(&r);
    rp_json_close(r.json);
    RP_EACH(rp_map_release, &r.maker, &r.op_of);
    RP_EACH(rp_vec_release, &r.parents, &r.reads, &r.makes);
    return code;
}

static enum rp_sniff exec_trace_sniff(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_sniff_json_key(head, n, 1, "schema") == 1 &&
                   rp_sniff_json_key(head, n, 1, "nodes") == 1 && memmem(head, n, "\"name\"", 6)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_exec_trace = {
    .name = "execution-trace",
    .summary = "PyTorch execution trace",
    .files = "*.json",
    .written_by = "torch.profiler.ExecutionTraceObserver",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = exec_trace_sniff,
    .read = exec_trace_read,
};
