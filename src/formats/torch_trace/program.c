/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a graph that torch.fx printed as a program. Each class is a computation, the first one the
 * entry; a node is an operation whose opcode is the function that it calls:
 *
 *     class GraphModule(torch.nn.Module):
 *         def forward(self, primals_1: "f32[8, 512][512, 1]cuda:0", …):
 *             # File: /home/user/model.py:8 in forward, code: return x + s.f(x)
 *             mul: "f32[8, 512][512, 1]cuda:0" = torch.ops.aten.mul.Tensor(primals_1, 0.5)
 *             return (mul,)
 *
 * Arguments that are not nodes become an attribute, with a '%' for each node, because names are
 * numbered anew in each compilation and must not count as a difference.
 */
#include "formats/chakra/exec_trace.h"
#include "formats/formats.h"
#include "formats/torch_trace/read.h"
#include "program/opcodes.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define MOST_DIMS 64

struct fx_reader {
    struct rp_program *p;
    struct rp_err *err;
    uint64_t most; /* operations */
    uint32_t computation, meta,
        arguments;         /* meta: metadata of the current line; arguments: the key */
    struct rp_map by_name; /* from a name in this computation to its operation */
    int64_t parameters;
    uint32_t result; /* the operation that returns, or RP_NONE */
    bool in_header;  /* "def forward(" continues on the next line */
    bool dynamic;    /* a size is a symbol, so the work is not known */
};

/* ---- shapes ---- */

static unsigned element_of(struct rp_snip s)
{
    char name[16] = "";
    bool integer = s.n > 1 && *s.at == 'i' && s.at[1] >= '0' && s.at[1] <= '9';

    if (rp_snip_is(s, "b8"))
        return RP_ELEM_PRED;
    if (!integer || s.n >= sizeof name)
        return rp_elem_find(s.at, s.n);
    memcpy(name, s.at, s.n);
    name[0] = 's'; /* PyTorch's i64 is HLO's s64 */
    return rp_elem_find(name, s.n);
}

/* The shape of "f32[8, s27, 512][…]cuda:0"; "Sym(s27)" has none. */
static enum rp_code shape_of(struct fx_reader *r, struct rp_snip type, uint32_t *out)
{
    const char *open = type.n ? memchr(type.at, '[', type.n) : NULL, *end = type.at + type.n;
    const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
    int64_t dims[MOST_DIMS];
    uint8_t dynamic[MOST_DIMS];
    size_t n = 0;

    *out = 0;
    if (!close)
        return RP_OK;
    unsigned elem = element_of((struct rp_snip){type.at, (size_t)(open - type.at)});
    for (const char *at = open + 1; at < close && n < MOST_DIMS; n++) {
        const char *comma = memchr(at, ',', (size_t)(close - at));
        struct rp_snip dim = {at, (size_t)((comma ? comma : close) - at)};

        dynamic[n] = !rp_snip_int(rp_snip_trim(dim), &dims[n]) || dims[n] < 0;
        if (dynamic[n])
            dims[n] = RP_DIM_UNKNOWN;
        r->dynamic = r->dynamic || dynamic[n];
        at = comma ? comma + 1 : close;
    }
    if (elem == RP_ELEM_INVALID || elem == RP_ELEM_TUPLE)
        return RP_OK;
    return rp_program_array(r->p, elem, dims, dynamic, n, 0, out, r->err);
}

/* ---- operations ---- */

static enum rp_code text_id(struct fx_reader *r, struct rp_snip s, uint32_t *out)
{
    return rp_program_string(r->p, s.at, s.n, out, r->err);
}

static enum rp_code add_op(struct fx_reader *r, uint16_t code, struct rp_snip opcode,
                           struct rp_snip name, struct rp_snip type)
{
    struct rp_new_op op = {.code = code, .meta = r->meta};
    uint32_t id;

    if (r->computation == RP_NONE)
        return rp_err_set(r->err, RP_FORMAT, "a statement outside of 'def forward'");
    if (r->p->nops >= r->most)
        return rp_err_set(r->err, RP_LIMIT, "too many operations");
    RP_TRY(text_id(r, name, &op.name));
    if (code == RP_OP_FOREIGN)
        RP_TRY(text_id(r, opcode, &op.foreign));
    if (code == RP_OP_PARAMETER)
        op.value = r->parameters++;
    RP_TRY(shape_of(r, type, &op.shape));
    RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));
    return name.n ? rp_map_put(&r->by_name, rp_hash_bytes(name.at, name.n), id, r->err) : RP_OK;
}

static enum rp_code add_parameter(struct fx_reader *r, struct rp_snip name, struct rp_snip type)
{
    struct rp_snip none = {name.at, 0};

    if (!name.n || rp_snip_is(name, "self"))
        return RP_OK;
    return add_op(r, RP_OP_PARAMETER, none, name, type);
}

static size_t string_length(struct rp_snip s)
{
    size_t i = 1;

    while (i < s.n && s.at[i] != *s.at)
        i += 1 + (s.at[i] == '\\' && i + 1 < s.n);
    return i < s.n ? i + 1 : s.n;
}

/* Adds the nodes that a text names as operands of the newest operation. rest gets the text without
   them, and has room for all of it; it may be NULL. */
static enum rp_code add_operands(struct fx_reader *r, struct rp_snip s, char *rest, size_t *rest_n)
{
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < s.n; i += n) {
        struct rp_snip at = {s.at + i, s.n - i};
        uint32_t op = RP_MAP_NONE;

        n = rp_torch_name_length(at);
        if (n && (!i || s.at[i - 1] != '.'))
            op = rp_map_get(&r->by_name, rp_hash_bytes(at.at, n));
        if (!n)
            n = *at.at == '\'' || *at.at == '"' ? string_length(at) : 1;
        if (op != RP_MAP_NONE)
            RP_TRY(rp_program_add_operand(r->p, op, 0, r->err));
        if (rest && op != RP_MAP_NONE)
            rest[kept++] = '%';
        else if (rest)
            memcpy(rest + kept, at.at, n);
        kept += op == RP_MAP_NONE ? n : 0;
    }
    if (rest)
        *rest_n = kept;
    return RP_OK;
}

/* Whether a text says more than nodes, like "(%, [2], correction = 0)" and unlike "(%, %)". */
static bool says_more(const char *rest, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rp_snip_is_letter(rest[i]))
            return true;
    return false;
}

/* The called function without the place where PyTorch keeps it: "aten.mm.default", "linear", or the
   name of a method; "getitem" for x[0], the operator for "a + b", "get_attr" for self.x. */
static struct rp_snip opcode_of(const struct fx_reader *r, struct rp_snip what,
                                struct rp_snip *arguments)
{
    static const char *const places[] = {"torch.ops.", "torch._C._nn.", "torch.nn.functional.",
                                         "torch."};
    static const struct rp_snip getitem = {"getitem", 7}, attribute = {"get_attr", 8};
    struct rp_snip path = {what.at, 0};
    size_t first = rp_torch_name_length(what);

    while (path.n < what.n && (rp_snip_is_letter(what.at[path.n]) || what.at[path.n] == '.'))
        path.n++;
    *arguments = what;
    if (path.n == what.n)
        return rp_snip_begins(what, "self.") ? attribute : path;
    if (what.at[path.n] == '[')
        return getitem;
    if (what.at[path.n] != '(') { /* "a + b", "-a" */
        struct rp_snip sign = rp_snip_trim((struct rp_snip){what.at + path.n, what.n - path.n});
        for (first = 0;
             first < sign.n && !rp_snip_is_letter(sign.at[first]) && sign.at[first] != ' ';)
            first++;
        return first ? (struct rp_snip){sign.at, first} : path;
    }
    if (path.n > first + 1 && rp_map_get(&r->by_name, rp_hash_bytes(what.at, first)) != RP_MAP_NONE)
        return (struct rp_snip){path.at + first + 1, path.n - first - 1};
    arguments->at += path.n;
    arguments->n -= path.n;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (rp_snip_begins(path, places[i])) {
            size_t n = strlen(places[i]);

            return (struct rp_snip){path.at + n, path.n - n};
        }
    return path;
}

static enum rp_code read_statement(struct fx_reader *r, const struct rp_torch_statement *s)
{
    struct rp_snip arguments, opcode = opcode_of(r, s->what, &arguments);
    uint32_t same = RP_MAP_NONE;

    if (rp_torch_name_length(s->what) == s->what.n) /* "l_x_ = L_x_" */
        same = rp_map_get(&r->by_name, rp_hash_bytes(s->what.at, s->what.n));
    if (same != RP_MAP_NONE)
        return rp_map_put(&r->by_name, rp_hash_bytes(s->name.at, s->name.n), same, r->err);
    RP_TRY(add_op(r, RP_OP_FOREIGN, opcode, s->name, s->type));
    char *rest = rp_arena_alloc(&r->p->arena, arguments.n + 1, 1);
    size_t n;
    RP_TRY(rp_err_need(rest, r->err, "reading a graph"));
    RP_TRY(add_operands(r, arguments, rest, &n));
    return says_more(rest, n) ? rp_program_add_text(r->p, r->arguments, rest, n, r->err) : RP_OK;
}

/* ---- work ---- */

static void dims_of(const struct rp_program *p, uint32_t shape, struct rp_exec_dims *out)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    out->n = s->flags & RP_SHAPE_UNKNOWN || s->n > RP_EXEC_DIMS ? -1 : (int)s->n;
    for (int i = 0; i < out->n; i++)
        out->d[i] = p->dims.at[s->first + (uint32_t)i] > 0 ? p->dims.at[s->first + (uint32_t)i] : 1;
}

/* The cost of an operation by its name in ATen, "aten::mm" for "aten.mm.default". */
static struct rp_cost cost_of(const struct rp_program *p, uint32_t op)
{
    const char *name = rp_op_opcode_name(p, op);
    struct rp_ids operands = rp_op_operands(p, op);
    struct rp_exec_node node = {.nout = 1, .out_bytes = (double)rp_shape_bytes(p, p->shape.at[op])};

    if (p->code.at[op] != RP_OP_FOREIGN || !strcmp(name, "getitem") || !strcmp(name, "get_attr"))
        return (struct rp_cost){0};
    name += rp_text_begins(name, "aten.") ? 5 : 0;
    snprintf(node.name, sizeof node.name, "aten::%.*s", (int)(strcspn(name, ".") & 63), name);
    dims_of(p, p->shape.at[op], &node.out[0]);
    for (uint32_t i = 0; i < operands.n; i++) {
        node.in_bytes += (double)rp_shape_bytes(p, p->shape.at[operands.at[i]]);
        if (node.nin < RP_EXEC_ARGS)
            dims_of(p, p->shape.at[operands.at[i]], &node.in[node.nin++]);
    }
    return rp_exec_cost(&node);
}

/* ---- lines ---- */

static enum rp_code begin_class(struct fx_reader *r, struct rp_snip line)
{
    const char *open = memchr(line.at, '(', line.n);
    struct rp_snip name = {line.at + 6,
                           open && open > line.at + 6 ? (size_t)(open - line.at - 6) : 0};
    uint32_t id;

    RP_TRY(text_id(r, name, &id));
    rp_map_release(&r->by_name);
    r->meta = 0;
    r->parameters = 0;
    r->result = RP_NONE;
    r->in_header = false;
    return rp_program_begin(r->p, id, &r->computation, r->err);
}

/* '(self, a: "f32[2]", b):', or a line of it. */
static enum rp_code read_header(struct fx_reader *r, struct rp_snip line)
{
    struct rp_snip name, type;

    r->in_header = !rp_snip_has(line, "):") && !rp_snip_has(line, ") -> ");
    while (line.n) {
        size_t n = line.n;

        line = rp_torch_typed_name(line, &name, &type);
        if (type.n || !r->in_header) /* if the header has several lines, the inputs follow */
            RP_TRY(add_parameter(r, name, type));
        if (line.n == n || (line.n && !rp_snip_is_letter(*line.at))) {
            line.at++;
            line.n--;
        }
    }
    return RP_OK;
}

static enum rp_code read_place(struct fx_reader *r, struct rp_snip line)
{
    struct rp_torch_frame at;
    struct rp_location location = {0};
    struct rp_op_meta meta = {0};

    if (rp_snip_begins(line, RP_TORCH_NO_STACK))
        r->meta = 0;
    if (!rp_torch_comment_of(line, &at) || at.line < 0 || at.line > INT32_MAX)
        return RP_OK;
    location.line = (int32_t)at.line;
    RP_TRY(text_id(r, at.path, &location.file));
    RP_TRY(text_id(r, at.function, &location.function));
    RP_TRY(rp_vec_push(&r->p->locations, location, r->err));
    RP_TRY(rp_vec_push(&r->p->frames, ((struct rp_frame){(uint32_t)r->p->locations.n - 1, 0}),
                       r->err));
    meta.frame = (uint32_t)r->p->frames.n;
    r->meta = (uint32_t)r->p->metas.n;
    return rp_vec_push(&r->p->metas, meta, r->err);
}

static enum rp_code read_line(struct fx_reader *r, struct rp_snip line)
{
    struct rp_torch_statement s;

    if (rp_snip_begins(line, "class "))
        return begin_class(r, line);
    if (*line.at == '#')
        return read_place(r, line);
    if (rp_snip_begins(line, "def forward("))
        return read_header(r, (struct rp_snip){line.at + 12, line.n - 12});
    if (r->in_header)
        return read_header(r, line);
    if (rp_snip_begins(line, "return")) {
        struct rp_snip none = {line.at, 0};
        r->meta = 0;
        RP_TRY(add_op(r, RP_OP_TUPLE, none, none, none));
        r->result = r->p->nops - 1;
        r->p->computations.at[r->computation].root = r->result;
        return add_operands(r, line, NULL, NULL);
    }
    if (r->result != RP_NONE) /* the list of results goes on in the next line */
        return add_operands(r, line, NULL, NULL);
    if (rp_torch_statement_of(line, &s))
        return read_statement(r, &s);
    struct rp_snip rest =
        rp_torch_typed_name(line, &s.name, &s.type); /* an input of a header with several lines */
    return s.type.n && (!rest.n || *rp_snip_trim(rest).at == '#') ? add_parameter(r, s.name, s.type)
                                                                  : RP_OK;
}

static enum rp_code read_text(struct fx_reader *r, struct rp_snip rest)
{
    static const char arguments[] = "arguments";
    struct rp_snip line;

    RP_TRY(rp_program_string(r->p, arguments, sizeof arguments - 1, &r->arguments, r->err));
    while (rp_snip_line(&rest, &line)) {
        line = rp_snip_trim(line);
        if (line.n && (r->computation != RP_NONE || rp_snip_begins(line, "class ")))
            RP_TRY(read_line(r, line));
    }
    r->p->entry = 0;
    if (!r->p->computations.n)
        return rp_err_set(r->err, RP_FORMAT, "the text has no graph");
    RP_TRY(rp_program_finish(r->p, r->err));
    for (uint32_t i = 0; i < r->p->nops && !r->dynamic; i++)
        RP_TRY(rp_vec_push(&r->p->given, cost_of(r->p, i), r->err));
    return RP_OK;
}

/* ---- the format ---- */

static void fx_reader_release(struct fx_reader *r)
{
    rp_map_release(&r->by_name);
}

static enum rp_code read_fx(struct rp_input *in, const struct rp_read_options *options,
                            struct rp_import *to, struct rp_err *err)
{
    struct rp_limits limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    RP_SCOPED(fx_reader_release)
    struct fx_reader r = {
        .err = err, .most = limits.events, .computation = RP_NONE, .result = RP_NONE};
    const char *name = strstr(rp_input_borrow_name(in), "!fx:");
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    to->borrows_input = true;
    to->content_bytes = n;
    name = name ? name + 4 : rp_text_file(rp_input_borrow_name(in));
    RP_TRY(rp_program_new("fx", &to->program, err));
    r.p = to->program;
    RP_TRY(rp_program_string(r.p, name, strlen(name), &r.p->name, err));
    return read_text(&r, (struct rp_snip){(const char *)bytes, n});
}

static enum rp_sniff sniff_fx(const uint8_t *head, size_t n, const char *file)
{
    struct rp_snip text = {(const char *)head, n}, line;

    (void)file;
    while (rp_snip_line(&text, &line)) {
        line = rp_snip_trim(line);
        if (line.n && *line.at != '#')
            return rp_snip_begins(line, "class ") && rp_snip_has(line, "(torch.nn.Module):")
                       ? RP_SNIFF_LIKELY
                       : RP_SNIFF_NO;
    }
    return RP_SNIFF_NO;
}

const struct rp_format rp_format_fx = {
    .name = "fx",
    .summary = "graph of torch.fx, as print_readable writes it",
    .files = "*.txt, *.py",
    .written_by = "PyTorch (GraphModule.print_readable, TORCH_TRACE)",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_fx,
    .read = read_fx,
};
