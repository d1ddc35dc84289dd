/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the data of the page (web/graph): columns of numbers as base64, tables of strings, the
 * tree of groups, and a layout for each different group. The script makes the rest from them: a
 * page of 30,000 operations has two megabytes.
 */
#include "draw/draw.h"
#include "draw/picture.h"
#include "draw/stages.h"
#include "draw/web.h"
#include "program/opcodes.h"

#include "io/escaped.h"
#include "program/literal.h"

#include <stdio.h>
#include <string.h>

/* Strings of one kind, numbered in the order of their first use. */
struct table {
    struct rp_map number;
    RP_VEC(uint32_t) string;
};

struct page {
    const struct rp_program *p;
    const struct rp_draw_more *more;
    struct rp_out *to;
    struct rp_err *err;
    struct rp_picture picture;
    struct table scopes, files, foreign; /* foreign has opcodes that follow the known ones */
    struct rp_strtab texts;              /* attributes, shardings */
};

static void put_string(struct rp_out *to, const struct rp_program *p, uint32_t string)
{
    rp_out_escaped_bytes(to, RP_IN_SCRIPT, rp_program_text(p, string),
                         rp_strtab_len(&p->strings, string));
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

/* ---- columns ---- */

static void column_begin(struct rp_web_bytes *b, struct page *g, const char *key)
{
    rp_out_printf(g->to, "\"%s\":", key);
    rp_web_bytes_begin(b, g->to);
}

static void column_end(struct rp_web_bytes *b)
{
    rp_web_bytes_end(b);
    rp_out_text(b->to, ",\n");
}

static uint64_t whole(double value)
{
    return !(value > 0) ? 0 : value < 9e15 ? (uint64_t)value : (uint64_t)9e15;
}

static uint64_t zigzag(int64_t value)
{
    return value < 0 ? (uint64_t)-value * 2 - 1 : (uint64_t)value * 2;
}

static enum rp_code put_codes(struct page *g)
{
    const struct rp_program *p = g->p;
    struct rp_web_bytes b;

    column_begin(&b, g, "code");
    for (uint32_t op = 0; op < p->nops; op++) {
        uint32_t code = p->code.at[op];

        if (code == RP_OP_FOREIGN) {
            RP_TRY(number_of(&g->foreign, p->foreign.at[op], &code, g->err));
            code += RP_OP_COUNT;
        }
        rp_web_bytes_number(&b, code);
    }
    column_end(&b);
    rp_out_text(g->to, "\"classes\":[");
    for (size_t i = 0; i < RP_OP_COUNT; i++)
        rp_out_printf(g->to, "%s%u", i ? "," : "", rp_op_info[i].class_);
    for (size_t i = 0; i < g->foreign.string.n; i++)
        rp_out_printf(g->to, ",%u",
                      rp_draw_foreign_class(rp_program_text(p, g->foreign.string.at[i])));
    rp_out_printf(g->to, "],\"known\":%d,\n\"codes\":[", RP_OP_COUNT);
    for (size_t i = 0; i < RP_OP_COUNT; i++) {
        rp_out_text(g->to, i ? "," : "");
        rp_out_escaped(g->to, RP_IN_SCRIPT, rp_op_info[i].name);
    }
    for (size_t i = 0; i < g->foreign.string.n; i++) {
        rp_out_char(g->to, ',');
        put_string(g->to, p, g->foreign.string.at[i]);
    }
    rp_out_text(g->to, "],\n");
    return RP_OK;
}

static void put_shapes(struct page *g)
{
    struct rp_web_bytes b;
    char text[400];

    rp_out_text(g->to, "\"shapes\":[");
    for (uint32_t i = 0; i < g->p->shapes.n; i++) {
        size_t n = rp_shape_text(g->p, i, true, text, sizeof text);

        if (i)
            rp_out_char(g->to, ',');
        rp_out_escaped_bytes(g->to, RP_IN_SCRIPT, text, n < sizeof text ? n : sizeof text - 1);
    }
    rp_out_text(g->to, "],\n");
    column_begin(&b, g, "shapeBytes");
    for (uint32_t i = 0; i < g->p->shapes.n; i++)
        rp_web_bytes_number(&b, whole((double)rp_shape_bytes(g->p, i)));
    column_end(&b);
    column_begin(&b, g, "shape");
    for (uint32_t op = 0; op < g->p->nops; op++)
        rp_web_bytes_number(&b, g->p->shape.at[op]);
    column_end(&b);
}

/* Writes file + 1, line (0 if not known), and scope. */
static enum rp_code put_places(struct page *g)
{
    const struct rp_program *p = g->p;
    struct rp_web_bytes b;
    uint32_t scope, file;

    RP_TRY(number_of(&g->scopes, 0, &scope, g->err));
    column_begin(&b, g, "scope");
    for (uint32_t op = 0; op < p->nops; op++) {
        RP_TRY(number_of(&g->scopes, p->metas.at[p->meta.at[op]].op_name, &scope, g->err));
        rp_web_bytes_number(&b, scope);
    }
    column_end(&b);
    column_begin(&b, g, "place");
    for (uint32_t op = 0; op < p->nops; op++) {
        struct rp_source_line at = {"", "", 0};

        if (!rp_op_source(p, op, &at)) {
            rp_web_bytes_number(&b, 0);
            continue;
        }
        uint32_t string = rp_strtab_find(&p->strings, at.file, strlen(at.file));
        RP_TRY(number_of(&g->files, string == UINT32_MAX ? 0 : string, &file, g->err));
        rp_web_bytes_number(&b, (uint64_t)file + 1);
        rp_web_bytes_number(&b, at.line > 0 ? (uint64_t)at.line : 0);
    }
    column_end(&b);
    put_table(g->to, p, "scopes", &g->scopes);
    put_table(g->to, p, "files", &g->files);
    return RP_OK;
}

/* Writes the numbers of operands and called computations; each of these as the distance from the
   operation. */
static void put_lists(struct page *g)
{
    struct rp_web_bytes b;

    column_begin(&b, g, "operands");
    for (uint32_t op = 0; op < g->p->nops; op++) {
        struct rp_ids ids = rp_op_operands(g->p, op);

        rp_web_bytes_number(&b, ids.n);
        for (uint32_t i = 0; i < ids.n; i++)
            rp_web_bytes_number(&b, zigzag((int64_t)op - ids.at[i]));
    }
    column_end(&b);
    column_begin(&b, g, "calls");
    for (uint32_t op = 0; op < g->p->nops; op++) {
        struct rp_ids ids = rp_op_called(g->p, op);

        rp_web_bytes_number(&b, ids.n * 2 + rp_tree_opens(g->p, op));
        for (uint32_t i = 0; i < ids.n; i++)
            rp_web_bytes_number(&b, ids.at[i]);
    }
    column_end(&b);
}

/* ---- attributes ---- */

/* Writes the values of a small constant; returns the length. */
static size_t constant_text(const struct rp_program *p, uint32_t op, char *out, size_t cap)
{
    unsigned char values[RP_HASH_ELEMENTS * 16];
    unsigned elem = p->shapes.at[p->shape.at[op]].elem;
    int64_t n = rp_shape_elements(p, p->shape.at[op]);
    size_t len = 0;

    if (p->code.at[op] != RP_OP_CONSTANT || (uint64_t)p->value.at[op] >= p->literals.n ||
        n > RP_HASH_ELEMENTS)
        return 0;
    const struct rp_literal *literal = &p->literals.at[p->value.at[op]];
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

/* Writes attributes as one text, which is cut if it is long; returns the length. */
static size_t attrs_text(const struct rp_program *p, uint32_t op, struct rp_chars *value,
                         char *text, size_t cap)
{
    uint32_t n;
    const struct rp_attr *attr = rp_op_attrs(p, op, &n);
    size_t len = constant_text(p, op, text, cap);

    if (p->code.at[op] == RP_OP_PARAMETER)
        len = (size_t)snprintf(text, cap, "%lld", (long long)p->value.at[op]);
    for (; n && len + 40 < cap; n--, attr++) {
        const char *key = rp_program_text(p, attr->key);
        size_t room = cap - len - 4, m;

        if (attr->key == RP_ATTR_PROTO || attr->key == RP_ATTR_SHARDING)
            continue;
        if (len)
            text[len++] = ' ';
        m = strnlen(key, room / 2);
        memcpy(text + len, key, m);
        len += m;
        text[len++] = '=';
        room = cap - len - 2;
        value->n = 0;
        rp_attr_print(p, attr, value);
        m = value->n < room ? value->n : room;
        if (m)
            memcpy(text + len, value->at, m);
        len += m;
    }
    return len;
}

static enum rp_code sharding_number(struct page *g, uint32_t op, struct rp_chars *value,
                                    uint32_t *id)
{
    const struct rp_attr *attr = rp_op_attr(g->p, op, RP_ATTR_SHARDING);

    *id = 0;
    if (!attr)
        return RP_OK;
    value->n = 0;
    rp_attr_print(g->p, attr, value);
    size_t n = value->n < 200 ? value->n : 200;
    return rp_strtab_intern(&g->texts, n ? value->at : "", n, id, g->err);
}

static enum rp_code put_attrs(struct page *g)
{
    struct rp_chars value = {0};
    struct rp_web_bytes b;
    uint32_t id;
    char text[240];
    enum rp_code code = rp_strtab_intern(&g->texts, "", 0, &id, g->err);

    column_begin(&b, g, "attr");
    for (uint32_t op = 0; code == RP_OK && op < g->p->nops; op++) {
        size_t len = attrs_text(g->p, op, &value, text, sizeof text);

        code = rp_strtab_intern(&g->texts, text, len, &id, g->err);
        rp_web_bytes_number(&b, id);
        if (code == RP_OK)
            code = sharding_number(g, op, &value, &id);
        rp_web_bytes_number(&b, id);
    }
    column_end(&b);
    rp_chars_release(&value);
    rp_out_text(g->to, "\"texts\":[");
    for (uint32_t i = 0; i < g->texts.n; i++) {
        if (i)
            rp_out_char(g->to, ',');
        rp_out_escaped_bytes(g->to, RP_IN_SCRIPT, rp_strtab_borrow(&g->texts, i),
                             rp_strtab_len(&g->texts, i));
    }
    rp_out_text(g->to, "],\n");
    return code;
}

/* ---- costs ---- */

/* Finds the last operation that needs each result. Elements of tuples and the like take no memory,
   but keep alive the values to which they refer. */
static bool is_alias(const struct rp_program *p, uint32_t op)
{
    return rp_op_info[p->code.at[op]].flags & RP_OPF_ALIAS || p->code.at[op] == RP_OP_TUPLE;
}

static void find_last_uses(const struct rp_program *p, uint32_t *last)
{
    for (uint32_t op = p->nops; op-- > 0;) {
        const struct rp_computation *c = &p->computations.at[p->computation.at[op]];
        struct rp_ids ids = rp_op_operands(p, op);

        if (last[op] < op)
            last[op] = op;
        if (op == c->root)
            last[op] = c->first + c->n - 1;
        for (uint32_t i = 0; i < ids.n; i++) {
            uint32_t until = is_alias(p, op) ? last[op] : op;

            if (last[ids.at[i]] < until)
                last[ids.at[i]] = until;
        }
    }
}

/* Counts the bytes that are live while an operation runs, in the order of the file: the results of
   its computation from their operation to their last use. */
static enum rp_code put_live(struct page *g, struct rp_arena *arena)
{
    const struct rp_program *p = g->p;
    uint32_t *last = RP_ARENA_NEW(arena, uint32_t, (size_t)p->nops + 1);
    double *change = RP_ARENA_NEW(arena, double, (size_t)p->nops + 2), now = 0;
    struct rp_web_bytes b;

    RP_TRY(rp_err_need(last && change, g->err, "drawing a program"));
    find_last_uses(p, last);
    for (uint32_t op = 0; op < p->nops; op++) {
        double bytes = is_alias(p, op) ? 0 : (double)rp_shape_bytes(p, p->shape.at[op]);

        change[op] += bytes;
        change[last[op] + 1] -= bytes;
    }
    column_begin(&b, g, "live");
    for (uint32_t op = 0; op < p->nops; op++)
        rp_web_bytes_number(&b, whole(now += change[op]));
    column_end(&b);
    return RP_OK;
}

static void put_costs(struct page *g)
{
    const struct rp_cost *cost = g->picture.costs.op;
    const int64_t *time_ns = g->more ? g->more->time_ns : NULL;
    struct rp_web_bytes b;

    column_begin(&b, g, "flops");
    for (uint32_t op = 0; op < g->p->nops; op++)
        rp_web_bytes_number(&b, whole(cost[op].flops));
    column_end(&b);
    column_begin(&b, g, "bytes");
    for (uint32_t op = 0; op < g->p->nops; op++)
        rp_web_bytes_number(&b, whole(cost[op].bytes));
    column_end(&b);
    if (!time_ns)
        return;
    column_begin(&b, g, "time");
    for (uint32_t op = 0; op < g->p->nops; op++)
        rp_web_bytes_number(&b, time_ns[op] < 0 ? 0 : (uint64_t)time_ns[op] + 1);
    column_end(&b);
    rp_out_text(g->to, "\"timeOf\":");
    rp_out_escaped(g->to, RP_IN_SCRIPT, g->more->time_of ? g->more->time_of : "");
    rp_out_text(g->to, ",\n");
}

/* ---- groups ---- */

static void put_groups(struct page *g)
{
    const struct rp_tree *t = &g->picture.tree;
    struct rp_web_bytes b;

    rp_out_text(g->to, "\"groupNames\":[");
    for (uint32_t i = 0; i < t->ngroups; i++) {
        if (i)
            rp_out_char(g->to, ',');
        rp_out_escaped(g->to, RP_IN_SCRIPT, t->groups[i].name);
    }
    rp_out_text(g->to, "],\n");
    column_begin(&b, g, "groups");
    for (uint32_t i = 0; i < t->ngroups; i++) {
        const struct rp_group *group = &t->groups[i];

        rp_web_bytes_number(&b, group->parent == RP_NONE ? 0 : i - group->parent);
        rp_web_bytes_number(&b, group->kind);
        rp_web_bytes_number(&b, i - group->same);
        rp_web_bytes_number(&b, group->number);
        rp_web_bytes_number(&b, group->n);
    }
    column_end(&b);
    column_begin(&b, g, "children"); /* distances from the previous child */
    for (uint32_t i = 0, before = 0; i < t->ngroups; i++)
        for (uint32_t k = 0; k < t->groups[i].n; k++) {
            uint32_t child = t->children[t->groups[i].first + k];

            rp_web_bytes_number(&b, zigzag((int64_t)child - before));
            before = child;
        }
    column_end(&b);
}

/* Writes a layout: rows, tracks to the right and left, width; row, x, width and bends of each
   child; ends, count and track + 1 of each edge. */
static void put_layout(struct rp_web_bytes *b, const struct rp_picture_group *from, uint32_t n)
{
    const struct rp_layout *l = &from->layout;

    rp_web_bytes_number(b, l->nrows);
    rp_web_bytes_number(b, l->tracks_right);
    rp_web_bytes_number(b, l->tracks_left);
    rp_web_bytes_number(b, (uint64_t)l->width);
    for (uint32_t i = 0; i < n; i++) {
        rp_web_bytes_number(b, l->row[i]);
        rp_web_bytes_number(b, whole(l->x[i]));
        rp_web_bytes_number(b, (uint64_t)from->w[i]);
        rp_web_bytes_number(b, l->bend_begin[i + 1] - l->bend_begin[i]);
        for (uint32_t k = l->bend_begin[i]; k < l->bend_begin[i + 1]; k++)
            rp_web_bytes_number(b, whole(l->bends[k]));
    }
    rp_web_bytes_number(b, from->nedges);
    for (uint32_t e = 0; e < from->nedges; e++) {
        rp_web_bytes_number(b, from->edges[e].from);
        rp_web_bytes_number(b, zigzag((int64_t)from->edges[e].to - from->edges[e].from));
        rp_web_bytes_number(b, from->edges[e].count);
        rp_web_bytes_number(b, l->track[e] == RP_NONE ? 0 : (uint64_t)l->track[e] + 1);
    }
}

/* Writes name, operations, root, the first identical computation, its group, and who shows it. */
static enum rp_code put_computations(struct page *g)
{
    const struct rp_program *p = g->p;
    const struct rp_tree *t = &g->picture.tree;
    struct rp_map same = {0};
    enum rp_code code = RP_OK;

    rp_out_text(g->to, "\"comps\":[");
    for (uint32_t i = 0; code == RP_OK && i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];
        uint32_t first = i;

        code = rp_map_intern(&same, g->picture.hashes.computation[i], i, &first, g->err);
        rp_out_text(g->to, i ? ",\n[" : "[");
        put_string(g->to, p, c->name);
        rp_out_printf(g->to, ",%u,%u,%d,%u,%u,%d]", c->first, c->n,
                      c->root == RP_NONE ? -1 : (int)c->root, first, t->root[i],
                      t->caller[i] == RP_NONE ? -1 : (int)t->caller[i]);
    }
    rp_out_text(g->to, "],\n");
    rp_map_release(&same);
    return code;
}

/* ---- stages ---- */

/* Writes the numbers of the stages at which an item comes or goes, each as the distance from the
   previous one. */
static void put_presence(struct rp_web_bytes *b, const struct rp_stages *s, const uint64_t *sets,
                         size_t item)
{
    uint32_t changes = 0, last = 0;
    bool was = false;

    for (int pass = 0; pass < 2; pass++) {
        if (pass)
            rp_web_bytes_number(b, changes);
        was = false;
        for (uint32_t k = 0; k < s->n; k++) {
            bool is = rp_stages_has(sets, s->words, item, k);

            if (is != was && pass) {
                rp_web_bytes_number(b, k - last);
                last = k;
            }
            changes += is != was && !pass;
            was = is;
        }
    }
}

static void put_stages(struct page *g)
{
    const struct rp_stages *s = g->more ? g->more->stages : NULL;
    struct rp_web_bytes b;

    if (!s)
        return;
    rp_out_printf(g->to, "\"sides\":%s,\"stages\":[", s->sides ? "true" : "false");
    for (size_t i = 0; i < s->n; i++) {
        rp_out_text(g->to, i ? "," : "");
        rp_out_escaped(g->to, RP_IN_SCRIPT, s->names[i]);
    }
    rp_out_text(g->to, "],\n");
    column_begin(&b, g, "opStages");
    for (uint32_t op = 0; op < g->p->nops; op++)
        put_presence(&b, s, s->ops, op);
    column_end(&b);
    column_begin(&b, g, "operandStages");
    for (size_t i = 0; i < g->p->operands.n; i++)
        put_presence(&b, s, s->operands, i);
    column_end(&b);
}

/* ---- the page ---- */

static enum rp_code put_data(struct page *g, struct rp_arena *arena)
{
    const struct rp_program *p = g->p;
    double flops = g->picture.costs.program.flops;

    rp_out_text(g->to, "{\"name\":");
    put_string(g->to, p, p->name);
    rp_out_printf(g->to, ",\"hash\":\"%016llx\",\"totalFlops\":%.0f,\"entry\":%d,\"nops\":%u,\n",
                  (unsigned long long)g->picture.hashes.program, flops < 9e18 ? flops : 9e18,
                  p->entry == RP_NONE ? -1 : (int)p->entry, p->nops);
    rp_out_text(g->to, "\"names\":[");
    for (uint32_t op = 0; op < g->p->nops; op++) {
        if (op)
            rp_out_char(g->to, ',');
        put_string(g->to, g->p, g->p->op_name.at[op]);
    }
    rp_out_text(g->to, "],\n");
    RP_TRY(put_codes(g));
    put_shapes(g);
    RP_TRY(put_places(g));
    put_lists(g);
    RP_TRY(put_attrs(g));
    put_costs(g);
    RP_TRY(put_live(g, arena));
    RP_TRY(put_computations(g));
    put_groups(g);

    const struct rp_tree *t = &g->picture.tree;
    struct rp_web_bytes b;
    column_begin(&b, g, "layouts");
    for (uint32_t i = 0; i < t->ngroups; i++)
        if (t->groups[i].same == i)
            put_layout(&b, &g->picture.groups[i], t->groups[i].n);
    column_end(&b);
    put_stages(g);
    rp_out_text(g->to, "\"end\":0}\n");
    return RP_OK;
}

struct filling {
    struct page *g;
    struct rp_arena *arena;
    enum rp_code code;
};

static void fill_data(struct rp_out *to, void *user)
{
    struct filling *f = user;

    (void)to;
    f->code = put_data(f->g, f->arena);
}

static enum rp_code put_page(struct page *g, struct rp_arena *arena)
{
    struct filling f = {g, arena, RP_OK};
    struct rp_web_page page = {
        rp_web_graph_html, rp_web_graph_css, rp_web_graph_js, fill_data, NULL, &f};

    RP_TRY(rp_strtab_init(&g->texts, g->err));
    RP_TRY(rp_picture_make(g->p, arena, &g->picture, g->err));
    RP_TRY(rp_web_put_page(g->to, &page, g->err));
    return f.code;
}

enum rp_code rp_draw_program_html(const struct rp_program *p, const struct rp_draw_more *more,
                                  struct rp_out *to, struct rp_err *err)
{
    struct page g = {.p = p, .more = more, .to = to, .err = err};
    struct table *tables[] = {&g.scopes, &g.files, &g.foreign};
    struct rp_arena arena = RP_ARENA_INIT;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        rp_map_init(&tables[i]->number);
    enum rp_code code = put_page(&g, &arena);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        rp_map_release(&tables[i]->number);
        rp_vec_release(&tables[i]->string);
    }
    rp_strtab_release(&g.texts);
    rp_arena_release(&arena);
    return code;
}
