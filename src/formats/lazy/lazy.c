/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads dumps of lazy tensors (LTC_SAVE_TENSORS_FILE and XLA_SAVE_TENSORS_FILE): Ratex, torch_xla
 * and torch.lazy write the same lines with different shape syntax. A file holds one graph per
 * synchronisation; each becomes a computation, and the last one, which is the newest, is the entry.
 *
 *   %20 = tuple[] ratex::relay_expr(%19.1, %8), num_outputs=9, ROOT=21,   fn (/path/sgd.py:241)
 *
 * The graphs may also be in the dot language (dot.c) or HLO, of which the newest is read. A process
 * that died leaves its last graph unterminated; that is accepted, and so are graphs in documents
 * and reports in which a line "..." replaces the middle.
 */
#include "formats/lazy/lazy.h"
#include "formats/formats.h"
#include "formats/programs.h"
#include "program/opcodes.h"

#include <stdio.h>
#include <string.h>

static bool lazy_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *rp_lazy_number(const char *s, const char *end, uint32_t *value)
{
    for (*value = 0; s < end && lazy_digit(*s) && *value < 100000000; s++)
        *value = *value * 10 + (uint32_t)(*s - '0');
    return s;
}

/* ---- shapes ---- */

static unsigned lazy_elem(const char *s, size_t n)
{
    static const struct {
        const char *name;
        uint8_t elem;
    } names[] = {{"Float", RP_ELEM_F32},     {"Double", RP_ELEM_F64},      {"Half", RP_ELEM_F16},
                 {"BFloat16", RP_ELEM_BF16}, {"Long", RP_ELEM_S64},        {"Int", RP_ELEM_S32},
                 {"Short", RP_ELEM_S16},     {"Char", RP_ELEM_S8},         {"Byte", RP_ELEM_U8},
                 {"Bool", RP_ELEM_PRED},     {"ComplexFloat", RP_ELEM_C64}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == n && memcmp(names[i].name, s, n) == 0)
            return names[i].elem;
    return rp_elem_find(s, n);
}

/* Reads one "f32[6,1]", with or without a layout; *s moves past it. */
static enum rp_code lazy_array(struct rp_lazy *r, const char **s, const char *end, uint32_t *id)
{
    const char *from = *s, *bracket = memchr(from, '[', (size_t)(end - from));
    int64_t dims[64];
    uint8_t dynamic[64] = {0};
    size_t n = 0;

    *id = 0;
    *s = end;
    if (!bracket)
        return RP_OK;
    unsigned elem = lazy_elem(from, (size_t)(bracket - from));
    for (from = bracket + 1; from < end && *from != ']' && n < 64;) {
        uint32_t v;

        dynamic[n] = *from == '<';
        from += *from == '<' ? 2 : 0;
        const char *digits = from;
        from = rp_lazy_number(from, end, &v);
        if (from == digits)
            return RP_LAZY_FAIL(r, from, "expected a dimension of the shape");
        dims[n++] = v;
        while (from < end && (*from == ',' || *from == ' '))
            from++;
    }
    from += from < end;
    if (from < end && *from == '{') {
        const char *close = memchr(from, '}', (size_t)(end - from));

        from = close ? close + 1 : end;
    }
    *s = from;
    if (elem == RP_ELEM_INVALID || elem == RP_ELEM_TUPLE)
        return RP_OK;
    return rp_program_array(r->p, elem, dims, dynamic, n, 0, id, r->err);
}

/* "f32[2]", "(f32[2], s64[])" or "[Float[2], Long[]]" */
enum rp_code rp_lazy_shape(struct rp_lazy *r, const char *s, const char *end, uint32_t *id)
{
    uint32_t parts[64];
    size_t n = 0;
    bool list = s < end && (*s == '(' || *s == '[');

    if (!list)
        return lazy_array(r, &s, end, id);
    for (s++, end--; s < end && n < 64; n++) {
        RP_TRY(lazy_array(r, &s, end, &parts[n]));
        while (s < end && (*s == ',' || *s == ' '))
            s++;
    }
    if (n == 1) {
        *id = parts[0];
        return RP_OK;
    }
    return rp_program_tuple(r->p, parts, n, id, r->err);
}

/* The position after the shape that begins at s: its brackets, and blanks in them. */
static const char *shape_end(const char *s, const char *end)
{
    int depth = 0;

    for (; s < end; s++) {
        if (*s == '(' || *s == '[' || *s == '{')
            depth++;
        else if (*s == ')' || *s == ']' || *s == '}')
            depth--;
        else if (*s == ' ' && depth <= 0)
            return s;
    }
    return end;
}

/* ---- lines ---- */

/* Adds an operation with its number in the graph. */
static enum rp_code lazy_add(struct rp_lazy *r, const char *where, uint32_t id,
                             const struct rp_new_op *op)
{
    uint32_t made;

    if (r->p->nops >= r->limits.events || id > (uint64_t)(r->end - r->begin))
        return RP_LAZY_FAIL(r, where, "too many operations");
    RP_TRY(rp_program_add_op(r->p, op, &made, r->err));
    while (r->op_of.n <= id)
        RP_TRY(rp_vec_push(&r->op_of, 0, r->err));
    r->op_of.at[id] = made + 1;
    return RP_OK;
}

/* Reads "%19.1, %8)" and moves past the bracket. */
static enum rp_code lazy_operands(struct rp_lazy *r, const char **s, const char *end)
{
    const char *at = *s;

    r->operands.n = 0;
    while (at < end && *at != ')') {
        uint32_t id, index = 0;
        const char *where = at;

        if (*at != '%') {
            at++;
            continue;
        }
        at = rp_lazy_number(at + 1, end, &id);
        if (at < end && *at == '.')
            at = rp_lazy_number(at + 1, end, &index);
        if ((id >= r->op_of.n || !r->op_of.at[id]) && !r->abridged)
            return RP_LAZY_FAIL(r, where, "operand '%%%u' is not defined", id);
        if (id >= r->op_of.n || !r->op_of.at[id]) {
            /* Somebody replaced nodes of the graph by "..."; such a node is known only from the
               nodes that use it. */
            struct rp_new_op op = {.code = RP_OP_FOREIGN};
            char number[16];
            int n = snprintf(number, sizeof number, "%u", id);
            RP_TRY(rp_program_string(r->p, number, (size_t)n, &op.name, r->err));
            RP_TRY(rp_program_string(r->p, "omitted", 7, &op.foreign, r->err));
            RP_TRY(lazy_add(r, where, id, &op));
        }
        RP_TRY(rp_vec_push(&r->operands, r->op_of.at[id] - 1, r->err));
        RP_TRY(rp_vec_push(&r->operands, index, r->err));
    }
    if (at >= end)
        return RP_LAZY_FAIL(r, end, "unterminated operand list");
    *s = at + 1;
    return RP_OK;
}

/* The metadata of the newest operation, created when needed. */
static enum rp_code lazy_meta(struct rp_lazy *r, struct rp_op_meta **meta)
{
    uint32_t *id = &r->p->meta.at[r->p->nops - 1];

    if (!*id) {
        *id = (uint32_t)r->p->metas.n;
        RP_TRY(rp_vec_push(&r->p->metas, (struct rp_op_meta){0}, r->err));
    }
    *meta = &r->p->metas.at[*id];
    return RP_OK;
}

/* Reads "location=fn@file.py:3" or " fn (/path/file.py:3)". */
static enum rp_code lazy_source(struct rp_lazy *r, const char *s, const char *end)
{
    struct rp_op_meta *meta;
    const char *colon = memrchr(s, ':', (size_t)(end - s));
    uint32_t line;

    if (!colon || colon + 1 == end || !lazy_digit(colon[1]))
        return RP_OK;
    rp_lazy_number(colon + 1, end, &line);
    RP_TRY(lazy_meta(r, &meta));
    meta->line = (int32_t)line;
    return rp_program_string(r->p, s, (size_t)(colon - s), &meta->file, r->err);
}

/* Reads ", key=value" to the end; values may have brackets. A frame may be at the end. */
enum rp_code rp_lazy_attributes(struct rp_lazy *r, const char *s, const char *end)
{
    while (s < end) {
        const char *from, *to;
        uint32_t key;
        int depth = 0;

        while (s < end && (*s == ',' || *s == ' '))
            s++;
        for (from = to = s; to < end && !(depth <= 0 && *to == ',' && to + 1 < end && to[1] == ' ');
             to++)
            depth += *to == '[' || *to == '(' || *to == '{'   ? 1
                     : *to == ']' || *to == ')' || *to == '}' ? -1
                                                              : 0;
        s = to;
        if (from == to)
            break;
        const char *assign = memchr(from, '=', (size_t)(to - from));
        if (!assign) {
            const char *open = memchr(from, '(', (size_t)(to - from));

            if (open && to[-1] == ')')
                RP_TRY(lazy_source(r, open + 1, to - 1));
            continue;
        }
        if (assign - from == 8 && memcmp(from, "location", 8) == 0) {
            const char *at = memchr(assign, '@', (size_t)(to - assign));

            RP_TRY(lazy_source(r, at ? at + 1 : assign + 1, to));
            continue;
        }
        if (assign - from == 5 && memcmp(from, "scope", 5) == 0) {
            struct rp_op_meta *meta;

            RP_TRY(lazy_meta(r, &meta));
            RP_TRY(rp_program_string(r->p, assign + 1, (size_t)(to - assign - 1), &meta->op_name,
                                     r->err));
            continue;
        }
        if (assign - from == 8 && memcmp(from, "NodeType", 8) == 0)
            continue; /* a mangled C++ name, which repeats the operation */
        RP_TRY(rp_program_string(r->p, from, (size_t)(assign - from), &key, r->err));
        RP_TRY(rp_program_add_attr(
            r->p, rp_attr_parse(r->p, key, assign + 1, (size_t)(to - assign - 1)), r->err));
    }
    return RP_OK;
}

/* "%0 = shape ns::op(...), ..." */
static enum rp_code lazy_node(struct rp_lazy *r, const char *s, const char *end)
{
    struct rp_new_op op = {.code = RP_OP_FOREIGN};
    const char *name = s + 1;
    uint32_t id;

    s = rp_lazy_number(name, end, &id);
    RP_TRY(rp_program_string(r->p, name, (size_t)(s - name), &op.name, r->err));
    if (end - s < 4 || memcmp(s, " = ", 3) != 0)
        return RP_LAZY_FAIL(r, s, "expected ' = '");
    const char *to = shape_end(s + 3, end);
    RP_TRY(rp_lazy_shape(r, s + 3, to, &op.shape));
    s = to < end ? to + 1 : end;
    const char *open = memchr(s, '(', (size_t)(end - s));
    if (!open)
        return RP_LAZY_FAIL(r, s, "expected an operation with its operands");
    RP_TRY(rp_program_string(r->p, s, (size_t)(open - s), &op.foreign, r->err));
    s = open + 1;
    RP_TRY(lazy_operands(r, &s, end));
    RP_TRY(lazy_add(r, name, id, &op));
    for (size_t i = 0; i + 1 < r->operands.n; i += 2)
        RP_TRY(rp_program_add_operand(r->p, r->operands.at[i], r->operands.at[i + 1], r->err));
    return rp_lazy_attributes(r, s, end);
}

enum rp_code rp_lazy_begin_graph(struct rp_lazy *r)
{
    char text[32];
    uint32_t name, id;
    int n = snprintf(text, sizeof text, "graph_%zu", r->p->computations.n);

    r->op_of.n = 0;
    r->abridged = false;
    RP_TRY(rp_program_string(r->p, text, (size_t)n, &name, r->err));
    return rp_program_begin(r->p, name, &id, r->err);
}

static enum rp_code lazy_lines(struct rp_lazy *r)
{
    bool inside = false;

    for (const char *s = r->begin; s < r->end;) {
        const char *end = memchr(s, '\n', (size_t)(r->end - s)), *at = s;

        end = end ? end : r->end;
        while (at < end && *at == ' ')
            at++;
        if (end - at >= 4 && memcmp(at, "IR {", 4) == 0) {
            RP_TRY(rp_lazy_begin_graph(r));
            inside = true;
        } else if (end - at >= 9 && memcmp(at, "digraph G", 9) == 0) {
            RP_TRY(rp_lazy_dot(r, &end));
        } else if (inside && at < end && *at == '}') {
            inside = false;
        } else if (inside && end - at > 1 && *at == '%' && lazy_digit(at[1])) {
            RP_TRY(lazy_node(r, at, end));
        } else if (inside && end - at >= 3 && memcmp(at, "...", 3) == 0) {
            r->abridged = true;
        }
        s = end + (end < r->end);
        if (end == r->end)
            break;
    }
    if (!r->p->computations.n)
        return RP_LAZY_FAIL(r, r->end, "the file holds no graph");
    return rp_program_finish(r->p, r->err);
}

/* ---- the file ---- */

#define BEGIN "## BEGIN_GRAPH\n"

/* The last graph of the text if it is HLO; otherwise NULL. */
static const char *newest_hlo(const char *text, size_t n, size_t *len)
{
    const char *end = text + n, *last = NULL;

    for (const char *s = text; (s = memmem(s, (size_t)(end - s), BEGIN, sizeof BEGIN - 1));)
        last = s += sizeof BEGIN - 1;
    if (!last || end - last < 10 || memcmp(last, "HloModule ", 10) != 0)
        return NULL;
    const char *close = memmem(last, (size_t)(end - last), "\n## END_GRAPH", 13);
    for (const char *s = last;
         s < (close ? close : end);) { /* skips lines that torch_xla appends */
        const char *line = memchr(s, '\n', (size_t)(end - s));

        if (*s == '#' || (end - s > 11 && memcmp(s, "Graph Hash:", 11) == 0)) {
            close = s;
            break;
        }
        s = line ? line + 1 : end;
    }
    *len = (size_t)((close ? close : end) - last);
    return last;
}

static void lazy_release(struct rp_lazy *r)
{
    rp_vec_release(&r->op_of);
    rp_vec_release(&r->operands);
    rp_vec_release(&r->edges);
}

static enum rp_code lazy_read(struct rp_input *in, const struct rp_read_options *options,
                              struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(lazy_release) struct rp_lazy r = {.err = err};
    const uint8_t *bytes;
    size_t n, len;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    to->borrows_input = true;
    to->content_bytes = n;
    const char *hlo = newest_hlo((const char *)bytes, n, &len);
    if (hlo)
        return rp_hlo_text_parse(hlo, len, options->limits, &to->program, err);
    RP_TRY(rp_program_new("lazy", &to->program, err));
    r.begin = (const char *)bytes;
    r.end = r.begin + n;
    r.p = to->program;
    r.limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    return lazy_lines(&r);
}

static enum rp_sniff lazy_sniff(const uint8_t *head, size_t n, const char *file)
{
    static const char *const marks[] = {BEGIN "IR {", BEGIN "HloModule ", BEGIN "digraph G"};

    (void)file;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (memmem(head, n, marks[i], strlen(marks[i])))
            return RP_SNIFF_CERTAIN;
    if (n > 9 && memcmp(head, "digraph G", 9) == 0 && memmem(head, n, "\n  node0 [label=\"", 17))
        return RP_SNIFF_LIKELY;
    return n > 4 && memcmp(head, "IR {", 4) == 0 ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

const struct rp_format rp_format_lazy = {
    .name = "lazy-ir",
    .summary = "lazy-tensor graphs, as text, dot or HLO",
    .files = "*.txt",
    .written_by = "torch_xla, torch.lazy, Ratex",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = lazy_sniff,
    .read = lazy_read,
};
