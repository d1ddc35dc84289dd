/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page holds the program as a few arrays of numbers and tables of strings, and a script that
 * shows the selected part: a page of 30,000 operations has a few megabytes and opens at once,
 * because only visible rows become elements.
 */
#include "draw/draw.h"

#include "program/literal.h"
#include "program/structure.h"

#include <stdio.h>
#include <string.h>

/* Strings of one kind, numbered in the order of their first use. */
struct table {
    struct rp_map number;
    RP_VEC(uint32_t) string;
};

struct page {
    const struct rp_program *p;
    struct rp_out *to;
    struct rp_err *err;
    struct rp_hashes hashes;
    struct rp_costs costs;
    struct table scopes, files, foreign; /* foreign: opcodes, after the known ones */
};

/* A JSON string that is safe within a script element. */
static void put_json(struct rp_out *to, const char *text, size_t n)
{
    rp_out_char(to, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            rp_out_printf(to, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f)
            rp_out_printf(to, "\\u%04x", c);
        else
            rp_out_char(to, (char)c);
    }
    rp_out_char(to, '"');
}

static void put_string(struct rp_out *to, const struct rp_program *p, uint32_t string)
{
    put_json(to, rp_program_text(p, string), rp_strtab_len(&p->strings, string));
}

static void put_shapes(struct rp_out *to, const struct rp_program *p)
{
    char text[400];

    rp_out_text(to, "\"shapes\":[");
    for (uint32_t i = 0; i < p->shapes.n; i++) {
        size_t n = rp_shape_text(p, i, true, text, sizeof text);

        if (i)
            rp_out_char(to, ',');
        put_json(to, text, n < sizeof text ? n : sizeof text - 1);
    }
    rp_out_text(to, "],\n");
}

/* Name, operations, root, and the number of the first identical computation. */
static enum rp_code put_computations(struct page *g)
{
    const struct rp_program *p = g->p;
    struct rp_map same;
    enum rp_code code = RP_OK;

    rp_map_init(&same);
    rp_out_text(g->to, "\"comps\":[");
    for (uint32_t i = 0; code == RP_OK && i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];
        uint32_t first = i;

        code = rp_map_intern(&same, g->hashes.computation[i], i, &first, g->err);
        rp_out_text(g->to, i ? ",\n[" : "[");
        put_string(g->to, p, c->name);
        rp_out_printf(g->to, ",%u,%u,%u,%u]", c->first, c->n, c->root, first);
    }
    rp_out_text(g->to, "],\n");
    rp_map_release(&same);
    return code;
}

static enum rp_code number_of(struct table *t, uint32_t string, uint32_t *number,
                              struct rp_err *err)
{
    uint32_t next = (uint32_t)t->string.n;

    RP_TRY(rp_map_intern(&t->number, string, next, number, err));
    return *number == next ? rp_vec_push(&t->string, string, err) : RP_OK;
}

static void put_table(struct rp_out *to, const struct rp_program *p, const char *key,
                      const struct table *t)
{
    rp_out_printf(to, "\"%s\":[", key);
    for (size_t i = 0; i < t->string.n; i++) {
        if (i)
            rp_out_char(to, ',');
        put_string(to, p, t->string.at[i]);
    }
    rp_out_text(to, "],\n");
}

static void put_ids(struct rp_out *to, struct rp_ids ids)
{
    rp_out_text(to, ",[");
    for (uint32_t i = 0; i < ids.n; i++)
        rp_out_printf(to, "%s%u", i ? "," : "", ids.at[i]);
    rp_out_char(to, ']');
}

/* The values of a small constant; returns the length. */
static size_t constant_text(const struct rp_program *p, uint32_t op, char *out, size_t cap)
{
    unsigned char values[RP_HASH_ELEMENTS * 16];
    unsigned elem = p->shapes.at[p->shape.at[op]].elem;
    int64_t n = rp_shape_elements(p, p->shape.at[op]);
    const struct rp_literal *literal;
    size_t len = 0;

    if (p->code.at[op] != RP_OP_CONSTANT || (uint64_t)p->value.at[op] >= p->literals.n ||
        n > RP_HASH_ELEMENTS)
        return 0;
    literal = &p->literals.at[p->value.at[op]];
    if (!rp_literal_known(p, literal) ||
        rp_literal_decode(p, literal, values, sizeof values, NULL) != RP_OK)
        return 0;
    for (int64_t i = 0; i < n && len + 100 < cap; i++) {
        if (i)
            out[len++] = ' ';
        len += rp_literal_print(elem, values + rp_literal_unit(elem) * (size_t)i, out + len,
                                cap - len);
    }
    return len;
}

/* Attributes as one text, cut where they are long. */
static void put_attrs(struct rp_out *to, const struct rp_program *p, uint32_t op)
{
    uint32_t n;
    const struct rp_attr *attr = rp_op_attrs(p, op, &n);
    struct rp_chars value = {0};
    char text[240];
    size_t len = constant_text(p, op, text, sizeof text);

    if (p->code.at[op] == RP_OP_PARAMETER)
        len = (size_t)snprintf(text, sizeof text, "%lld", (long long)p->value.at[op]);

    for (; n && len + 40 < sizeof text; n--, attr++) {
        const char *key = rp_program_text(p, attr->key);
        size_t room = sizeof text - len - 4, m;

        if (attr->key == RP_ATTR_PROTO)
            continue;
        if (len)
            text[len++] = ' ';
        m = strnlen(key, room / 2);
        memcpy(text + len, key, m);
        len += m;
        text[len++] = '=';
        room = sizeof text - len - 2;
        value.n = 0;
        rp_attr_print(p, attr, &value);
        m = value.n < room ? value.n : room;
        if (m)
            memcpy(text + len, value.at, m);
        len += m;
    }
    rp_chars_release(&value);
    rp_out_char(to, ',');
    put_json(to, text, len);
}

static enum rp_code put_op(struct page *g, uint32_t op)
{
    const struct rp_program *p = g->p;
    struct rp_source_line at = {"", "", 0};
    uint32_t scope, file = 0, string, code = p->code.at[op];
    double flops = g->costs.op[op].flops;

    RP_TRY(number_of(&g->scopes, p->metas.at[p->meta.at[op]].op_name, &scope, g->err));
    if (rp_op_source(p, op, &at)) {
        string = rp_strtab_find(&p->strings, at.file, strlen(at.file));
        RP_TRY(number_of(&g->files, string == UINT32_MAX ? 0 : string, &file, g->err));
    }
    if (code == RP_OP_FOREIGN) {
        RP_TRY(number_of(&g->foreign, p->foreign.at[op], &code, g->err));
        code += RP_OP_COUNT;
    }
    rp_out_text(g->to, op ? ",\n[" : "[");
    put_string(g->to, p, p->op_name.at[op]);
    rp_out_printf(g->to, ",%u,%u,%u,%d,%u", code, p->shape.at[op], file, at.line, scope);
    put_ids(g->to, rp_op_operands(p, op));
    put_ids(g->to, rp_op_called(p, op));
    put_attrs(g->to, p, op);
    rp_out_printf(g->to, ",%.0f]", flops < 9e15 ? flops : 9e15);
    return RP_OK;
}

static void put_codes(struct page *g)
{
    rp_out_text(g->to, "\"codes\":[");
    for (size_t i = 0; i < RP_OP_COUNT; i++) {
        rp_out_text(g->to, i ? "," : "");
        put_json(g->to, rp_op_info[i].name, strlen(rp_op_info[i].name));
    }
    for (size_t i = 0; i < g->foreign.string.n; i++) {
        rp_out_char(g->to, ',');
        put_string(g->to, g->p, g->foreign.string.at[i]);
    }
    rp_out_text(g->to, "],\n");
}

static enum rp_code put_ops(struct page *g)
{
    enum rp_code code;
    uint32_t zero;

    code = number_of(&g->scopes, 0, &zero, g->err);
    if (code == RP_OK)
        code = number_of(&g->files, 0, &zero, g->err);
    rp_out_text(g->to, "\"ops\":[");
    for (uint32_t op = 0; code == RP_OK && op < g->p->nops; op++)
        code = put_op(g, op);
    rp_out_text(g->to, "],\n");
    put_codes(g);
    put_table(g->to, g->p, "scopes", &g->scopes);
    put_table(g->to, g->p, "files", &g->files);
    return code;
}

static enum rp_code put_page(struct page *g, struct rp_arena *arena)
{
    const struct rp_program *p = g->p;

    RP_TRY(rp_program_hash(p, arena, &g->hashes, g->err));
    RP_TRY(rp_program_count(p, arena, &g->costs, g->err));
    rp_out_text(g->to, rp_program_page_head);
    rp_out_text(g->to, "\"name\":");
    put_string(g->to, p, p->name);
    rp_out_printf(g->to, ",\"hash\":\"%016llx\",\"flops\":%.0f,\"entry\":%u,\n",
                  (unsigned long long)g->hashes.program, g->costs.program.flops,
                  p->entry == RP_NONE ? 0 : p->entry);
    put_shapes(g->to, p);
    RP_TRY(put_computations(g));
    RP_TRY(put_ops(g));
    rp_out_text(g->to, rp_program_page_tail);
    return RP_OK;
}

enum rp_code rp_draw_program_html(const struct rp_program *p, struct rp_out *to, struct rp_err *err)
{
    struct page g = {.p = p, .to = to, .err = err};
    struct table *tables[] = {&g.scopes, &g.files, &g.foreign};
    struct rp_arena arena = RP_ARENA_INIT;
    enum rp_code code;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        rp_map_init(&tables[i]->number);
    code = put_page(&g, &arena);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        rp_map_release(&tables[i]->number);
        rp_vec_release(&tables[i]->string);
    }
    rp_arena_release(&arena);
    return code;
}
