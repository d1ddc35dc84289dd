/* SPDX-License-Identifier: Apache-2.0 */
/* MLIR text below the level of statements: brackets, types, names. */
#include "formats/mlir/bytecode.h"
#include "program/opcodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_TUPLES 64

enum rp_code rp_mlir_fail(const struct rp_mlir *r, const char *where, const char *fmt, ...)
{
    char text[256];
    va_list list;

    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    if (r->bytecode)
        return rp_bc_fail(r->bytecode, (const uint8_t *)where, "%s", text);
    return rp_text_error(r->err, RP_FORMAT, r->begin, (size_t)(r->end - r->begin),
                         (size_t)(where - r->begin), "%s", text);
}

/* ---- scanning ---- */

void rp_mlir_space(struct rp_mlir *r)
{
    for (; r->at < r->end; r->at++) {
        if (*r->at == '/' && r->at + 1 < r->end && r->at[1] == '/') {
            const char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));

            r->at = line ? line : r->end - 1;
        } else if (*r->at != ' ' && *r->at != '\n' && *r->at != '\t' && *r->at != '\r') {
            return;
        }
    }
}

bool rp_mlir_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$' || c == '-';
}

struct rp_slice rp_mlir_word(struct rp_mlir *r)
{
    const char *from = r->at;

    while (r->at < r->end && rp_mlir_word_char(*r->at) &&
           !(*r->at == '-' && r->at + 1 < r->end && r->at[1] == '>'))
        r->at++;
    return (struct rp_slice){from, (uint32_t)(r->at - from), 0};
}

bool rp_mlir_take_word(struct rp_mlir *r, const char *text)
{
    size_t n = strlen(text);

    rp_mlir_space(r);
    if ((size_t)(r->end - r->at) <= n || memcmp(r->at, text, n) != 0 || rp_mlir_word_char(r->at[n]))
        return false;
    r->at += n;
    return true;
}

const char *rp_mlir_string_end(const struct rp_mlir *r, const char *s)
{
    for (s++; s < r->end && *s != '"'; s++)
        s += *s == '\\';
    return s < r->end ? s + 1 : r->end;
}

/* The position after the bracket that closes the one at s, or NULL. "->" closes nothing. */
const char *rp_mlir_bracket_end(const struct rp_mlir *r, const char *s)
{
    size_t depth = 0;

    for (; s < r->end; s++) {
        if (*s == '"') {
            s = rp_mlir_string_end(r, s) - 1;
        } else if (*s == '(' || *s == '{' || *s == '[' || *s == '<') {
            depth++;
        } else if (*s == ')' || *s == '}' || *s == ']' || (*s == '>' && s[-1] != '-')) {
            if (--depth == 0)
                return s + 1;
        }
    }
    return NULL;
}

enum rp_code rp_mlir_skip_bracket(struct rp_mlir *r)
{
    const char *to = rp_mlir_bracket_end(r, r->at);

    if (!to)
        return RP_MLIR_FAIL(r, r->at, "unclosed bracket");
    r->at = to;
    return RP_OK;
}

/* ---- types ---- */

unsigned rp_mlir_elem(const char *s, size_t n)
{
    static const struct {
        const char *name;
        uint8_t elem;
    } names[] = {{"i1", RP_ELEM_PRED},
                 {"i2", RP_ELEM_S2},
                 {"i4", RP_ELEM_S4},
                 {"i8", RP_ELEM_S8},
                 {"i16", RP_ELEM_S16},
                 {"i32", RP_ELEM_S32},
                 {"i64", RP_ELEM_S64},
                 {"ui1", RP_ELEM_U1},
                 {"ui2", RP_ELEM_U2},
                 {"ui4", RP_ELEM_U4},
                 {"ui8", RP_ELEM_U8},
                 {"ui16", RP_ELEM_U16},
                 {"ui32", RP_ELEM_U32},
                 {"ui64", RP_ELEM_U64},
                 {"index", RP_ELEM_S64},
                 {"complex<f32>", RP_ELEM_C64},
                 {"complex<f64>", RP_ELEM_C128}};
    char low[24];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == n && memcmp(names[i].name, s, n) == 0)
            return names[i].elem;
    for (size_t i = 0; i < n && n < sizeof low; i++)
        low[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
    return n < sizeof low ? rp_elem_find(low, n) : RP_ELEM_INVALID;
}

/* Reads the inside of "tensor<2x?xf32, #layout>". */
static enum rp_code read_tensor_type(struct rp_mlir *r, const char *s, const char *end,
                                     uint32_t *shape)
{
    int64_t dims[64];
    size_t n = 0, len;

    *shape = 0;
    for (; n < 64; n++, s++) {
        const char *from = s;
        int64_t dim = 0;

        if (s < end && *s == '?') {
            dim = RP_DIM_UNKNOWN;
            s++;
        } else {
            for (; s < end && *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(dim, 10, &dim) ||
                    __builtin_add_overflow(dim, *s - '0', &dim))
                    return RP_MLIR_FAIL(r, from, "a dimension that is too large");
        }
        if (s == from || s >= end || *s != 'x') {
            s = from;
            break;
        }
        dims[n] = dim;
    }
    for (len = 0; s + len < end && s[len] != ','; len++)
        ;
    unsigned elem = rp_mlir_elem(s, len);
    if (elem == RP_ELEM_INVALID)
        return RP_OK;
    return rp_program_array(r->p, elem, dims, NULL, n, 0, shape, r->err);
}

static bool type_char(char c)
{
    return c == '!' || (c != '-' && rp_mlir_word_char(c));
}

static enum rp_code read_types(struct rp_mlir *r, const char *s, const char *end, unsigned depth,
                               bool tuple, uint32_t *shape);

/* Reads "tensor<2xf32>", "!stablehlo.token", "tuple<...>"; of any other type only the place is
   kept. */
static enum rp_code read_type(struct rp_mlir *r, struct rp_slice name, const char *inside,
                              const char *inside_end, unsigned depth, uint32_t *shape)
{
    *shape = 0;
    if (name.n > 6 && name.at[0] == '!' &&
        (memmem(name.at, name.n, ".token", 6) || memmem(name.at, name.n, ".future", 7)))
        return rp_program_array(r->p, RP_ELEM_TOKEN, NULL, NULL, 0, 0, shape, r->err);
    if (inside && name.n == 6 && memcmp(name.at, "tensor", 6) == 0)
        return read_tensor_type(r, inside, inside_end, shape);
    if (!inside || name.n != 5 || memcmp(name.at, "tuple", 5) != 0)
        return RP_OK;
    if (depth == MAX_TUPLES)
        return RP_MLIR_FAIL(r, name.at, "tuples nested too deep");
    return read_types(r, inside, inside_end, depth + 1, true, shape);
}

/* Reads the types in a text, up to attributes or a location: one type, or several as a tuple; with
   `tuple`, one type becomes a tuple, too. */
static enum rp_code read_types(struct rp_mlir *r, const char *s, const char *end, unsigned depth,
                               bool tuple, uint32_t *shape)
{
    RP_VEC_LOCAL(uint32_t, parts);

    while (s < end && *s != '{') {
        struct rp_slice name = {s, 0, 0};
        const char *inside = NULL;
        uint32_t part;

        if (!type_char(*s)) {
            s++;
            continue;
        }
        while (s < end && type_char(*s))
            s++;
        name.n = (uint32_t)(s - name.at);
        if (s < end && *s == '<') {
            inside = s + 1;
            s = rp_mlir_bracket_end(r, s);
            if (!s || s > end)
                break;
        } else if ((name.n == 3 && memcmp(name.at, "loc", 3) == 0) ||
                   (name.n == 10 && memcmp(name.at, "attributes", 10) == 0)) {
            break;
        }
        RP_TRY(read_type(r, name, inside, s - 1, depth, &part));
        RP_TRY(rp_vec_push(&parts, part, r->err));
    }
    *shape = parts.n ? parts.at[0] : 0;
    if (tuple || parts.n > 1)
        RP_TRY(rp_program_tuple(r->p, parts.at, parts.n, shape, r->err));
    return RP_OK;
}

enum rp_code rp_mlir_types(struct rp_mlir *r, const char *s, const char *end, uint32_t *shape)
{
    return read_types(r, s, end, 0, false, shape);
}

/* ---- names ---- */

enum rp_code rp_mlir_define(struct rp_mlir *r, uint32_t key, uint32_t op)
{
    while (r->op_of.n <= key)
        RP_TRY(rp_vec_push(&r->op_of, 0, r->err));
    r->op_of.at[key] = (uint64_t)r->p->computations.n << 32 | op;
    return RP_OK;
}

enum rp_code rp_mlir_name_at(struct rp_mlir *r, uint32_t *id)
{
    struct rp_slice name = {0};

    r->at++;
    if (r->at < r->end && *r->at == '"') { /* @"<lambda>" */
        name.at = r->at + 1;
        r->at = rp_mlir_string_end(r, r->at);
        name.n = r->at > name.at ? (uint32_t)(r->at - name.at - 1) : 0;
        RP_TRY(rp_mlir_unescape(r, &name));
    } else {
        name = rp_mlir_word(r);
    }
    return rp_program_string(r->p, name.at, name.n, id, r->err);
}

enum rp_code rp_mlir_part(struct rp_mlir *r, const char *where, uint32_t *op, uint32_t index)
{
    const struct rp_op_shape *shape = &r->p->shapes.at[r->p->shape.at[*op]];
    struct rp_new_op made = {.code = RP_OP_GET_TUPLE_ELEMENT, .value = index};
    uint64_t key = (uint64_t)*op << 32 | index;
    uint32_t known = rp_map_get(&r->parts, key);

    if (index >= shape->n)
        return RP_MLIR_FAIL(r, where, "there are only %u results", shape->n);
    if (known == RP_MAP_NONE) {
        made.shape = r->p->parts.at[shape->first + index];
        made.name = r->p->op_name.at[*op];
        RP_TRY(rp_mlir_add_implicit(r, &made, op, 1, &known));
        RP_TRY(rp_map_put(&r->parts, key, known, r->err));
    }
    *op = known;
    return RP_OK;
}

enum rp_code rp_mlir_use(struct rp_mlir *r, const char *where, uint32_t key, uint32_t name,
                         bool numbered, uint32_t index)
{
    uint64_t slot = key < r->op_of.n ? r->op_of.at[key] : 0;
    uint32_t op = (uint32_t)slot;

    if ((slot >> 32) != r->p->computations.n)
        return RP_MLIR_FAIL(r, where, "'%%%s' is not defined", rp_program_text(r->p, name));
    if (numbered && r->p->shapes.at[r->p->shape.at[op]].elem == RP_ELEM_TUPLE) {
        RP_TRY(rp_mlir_part(r, where, &op, index));
        index = 0;
    }
    RP_TRY(rp_vec_push(&r->operands, op, r->err));
    return rp_vec_push(&r->operands, index, r->err);
}

/* "%3" or "%3#1" */
enum rp_code rp_mlir_operand(struct rp_mlir *r)
{
    const char *where = r->at;
    uint32_t name, index = 0;
    bool numbered = false;

    RP_TRY(rp_mlir_name_at(r, &name));
    if (r->at < r->end && *r->at == '#')
        for (r->at++; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
            index = index * 10 + (uint32_t)(*r->at - '0');
            numbered = true;
        }
    return rp_mlir_use(r, where, name, name, numbered, index);
}

/* "(%a: type, %b: type)" */
enum rp_code rp_mlir_arguments(struct rp_mlir *r)
{
    for (r->at++; r->at < r->end; r->at++) {
        rp_mlir_space(r);
        if (r->at < r->end && *r->at == '%') {
            /* An argument of a function or a block: "%arg0: tensor<2xf32> {...} loc(...)" */
            struct rp_mlir_arg arg = {.op = RP_NONE};
            RP_TRY(rp_mlir_name_at(r, &arg.name));
            arg.key = arg.name;
            const char *from = r->at;
            while (r->at < r->end && *r->at != ',' && *r->at != ')') {
                if (*r->at == '<' || *r->at == '{' || *r->at == '(' || *r->at == '[')
                    RP_TRY(rp_mlir_skip_bracket(r));
                else if (*r->at == '"')
                    r->at = rp_mlir_string_end(r, r->at);
                else
                    r->at++;
            }
            RP_TRY(rp_mlir_types(r, from, r->at, &arg.shape));
            RP_TRY(rp_vec_push(&r->args, arg, r->err));
        }
        if (r->at >= r->end || *r->at != ',')
            break;
    }
    if (r->at >= r->end || *r->at != ')')
        return RP_MLIR_FAIL(r, r->at < r->end ? r->at : r->end, "expected ')' after the arguments");
    r->at++;
    return RP_OK;
}
