/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes operations. Values are cut to fit a line; the name of the operation is shown beside
 * them, so that all of it can be looked up.
 */
#include "explain/program_diff/words.h"

#include "program/literal.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SHAPE = 160, MOST_VALUE = 72, MOST_ELEMENTS = 4 };

const char *rp_op_words(const struct rp_program *p, uint32_t op, struct rp_arena *arena)
{
    char shape[MOST_SHAPE];

    if (!p->shape.at[op]) /* the language has no shapes */
        return rp_arena_text(arena, rp_op_opcode_name(p, op));
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    return rp_arena_textf(arena, "%s %s", rp_op_opcode_name(p, op), shape);
}

const char *rp_op_change_words(const struct rp_program *left, uint32_t a,
                               const struct rp_program *right, uint32_t b, struct rp_arena *arena)
{
    char from[MOST_SHAPE], to[MOST_SHAPE];
    const char *was = rp_op_opcode_name(left, a), *is = rp_op_opcode_name(right, b);

    rp_shape_text(left, left->shape.at[a], false, from, sizeof from);
    rp_shape_text(right, right->shape.at[b], false, to, sizeof to);
    if (!strcmp(was, is) && !strcmp(from, to)) { /* then only the layout can differ */
        rp_shape_text(left, left->shape.at[a], true, from, sizeof from);
        rp_shape_text(right, right->shape.at[b], true, to, sizeof to);
    }
    if (strcmp(was, is) != 0 && !left->shape.at[a] && !right->shape.at[b])
        return rp_arena_textf(arena, "%s -> %s", was, is);
    if (strcmp(was, is) != 0)
        return rp_arena_textf(arena, "%s %s -> %s %s", was, from, is, to);
    if (strcmp(from, to) != 0)
        return rp_arena_textf(arena, "%s %s -> %s", was, from, to);
    return rp_op_words(right, b, arena);
}

/* ---- constants ---- */

static bool constant_text(const struct rp_program *p, uint32_t op, char *out, size_t cap)
{
    unsigned char values[RP_HASH_ELEMENTS * 16];
    unsigned elem = p->shapes.at[p->shape.at[op]].elem;
    int64_t n = rp_shape_elements(p, p->shape.at[op]);
    size_t unit = rp_literal_unit(elem), len = 0;

    if ((uint64_t)p->value.at[op] >= p->literals.n || n < 1 || n > RP_HASH_ELEMENTS)
        return false;
    const struct rp_literal *literal = &p->literals.at[p->value.at[op]];
    if (!rp_literal_known(p, literal) ||
        rp_literal_decode(p, literal, values, sizeof values, NULL) != RP_OK)
        return false;
    for (int64_t i = 0; i < n && i < MOST_ELEMENTS && len + 100 < cap; i++) {
        len += (size_t)snprintf(out + len, cap - len, "%s", i ? "," : "");
        len += rp_literal_print(elem, values + unit * (size_t)i, out + len, cap - len);
    }
    if (n > MOST_ELEMENTS && len + 5 < cap)
        snprintf(out + len, cap - len, ",...");
    return true;
}

const char *rp_constant_change_words(const struct rp_program *left, uint32_t a,
                                     const struct rp_program *right, uint32_t b,
                                     struct rp_arena *arena)
{
    const char *op = rp_op_words(right, b, arena);
    char from[500], to[500];

    if (!constant_text(left, a, from, sizeof from) || !constant_text(right, b, to, sizeof to))
        return op;
    return rp_arena_textf(arena, "%s %s -> %s", op, from, to);
}

/* ---- attributes ---- */

static const char *value_text(const struct rp_program *p, const struct rp_attr *attr,
                              struct rp_arena *arena)
{
    const char *text = attr ? rp_attr_text(p, attr, arena) : "(none)";

    return strlen(text) > MOST_VALUE ? rp_arena_textf(arena, "%.*s...", MOST_VALUE, text) : text;
}

/* Finds the attribute of the same name in the other program, whose string ids differ. */
static const struct rp_attr *attr_like(const struct rp_program *p, uint32_t op, const char *key)
{
    uint32_t id = rp_strtab_find(&p->strings, key, strlen(key));

    return id == UINT32_MAX ? NULL : rp_op_attr(p, op, id);
}

struct attr_of {
    const struct rp_program *p;
    const struct rp_attr *attr;
};

static const char *one_attr(const char *words, const char *key, struct attr_of from,
                            struct attr_of to, unsigned n, struct rp_arena *arena)
{
    const char *was = value_text(from.p, from.attr, arena);
    const char *is = value_text(to.p, to.attr, arena);

    return rp_arena_textf(arena, "%s%s%s=%s -> %s", words, n ? ", " : ": ", key, was, is);
}

const char *rp_attr_change_words(const struct rp_program *left, uint32_t a,
                                 const struct rp_program *right, uint32_t b, struct rp_arena *arena)
{
    const char *words = rp_op_words(right, b, arena);
    unsigned listed = 0;
    uint32_t n, m;
    const struct rp_attr *x = rp_op_attrs(left, a, &n), *y = rp_op_attrs(right, b, &m);

    for (uint32_t i = 0; i < n && listed < 2; i++) {
        const char *key = rp_program_text(left, x[i].key);
        const struct rp_attr *other = attr_like(right, b, key);

        if (!rp_attr_counts(left, a, &x[i]) ||
            (other && rp_attr_hash(right, other) == rp_attr_hash(left, &x[i])))
            continue;
        words = one_attr(words, key, (struct attr_of){left, &x[i]}, (struct attr_of){right, other},
                         listed++, arena);
    }
    for (uint32_t i = 0; i < m && listed < 2; i++) {
        const char *key = rp_program_text(right, y[i].key);

        if (rp_attr_counts(right, b, &y[i]) && !attr_like(left, a, key))
            words = one_attr(words, key, (struct attr_of){left, NULL},
                             (struct attr_of){right, &y[i]}, listed++, arena);
    }
    return words;
}

const char *rp_sharding_change_words(const struct rp_program *left, uint32_t a,
                                     const struct rp_program *right, uint32_t b,
                                     struct rp_arena *arena)
{
    return one_attr(rp_op_words(right, b, arena), "sharding",
                    (struct attr_of){left, rp_op_attr(left, a, RP_ATTR_SHARDING)},
                    (struct attr_of){right, rp_op_attr(right, b, RP_ATTR_SHARDING)}, 0, arena);
}
