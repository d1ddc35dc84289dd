/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of MLIR as literals: "dense<[[1, 2], [3, 4]]>" is HLO's text but for the brackets and
 * for floats written as their bits; "dense<"0x00FF...">" holds the bytes, "dense_resource<name>"
 * names bytes at the end of the file. One value for a whole array is written out where the array
 * is small, and a broadcast of a scalar where it is not.
 */
#include "formats/mlir/mlir.h"

#include "base/text.h"
#include "program/floats.h"
#include "program/literal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT   (1 << 20)
#define MAX_REPEAT 64

/* "0x00FF": bytes in file order; false for any other text. */
static bool decode_bytes(struct rp_mlir *r, const char *s, const char *end, struct rp_literal *out)
{
    size_t n = (size_t)(end - s) / 2;
    char *bytes = rp_arena_alloc(&r->p->arena, n + 1, 1);

    for (size_t i = 0; bytes && i < n; i++) {
        int32_t byte = rp_hex_number(s + 2 * i, 2);

        if (byte < 0)
            return false;
        bytes[i] = (char)byte;
    }
    out->at = bytes;
    out->n = n;
    out->form = RP_LITERAL_RAW;
    return bytes != NULL;
}

/* A float by its bits, "0xFF800000", as a number that HLO text can have. */
static size_t float_word(unsigned elem, const char *s, size_t n, char *out, size_t cap)
{
    char word[24];
    double value;

    if (n >= sizeof word || n < 3 || s[0] != '0' || s[1] != 'x' || !rp_elem_is_float(elem))
        return 0;
    memcpy(word, s, n);
    word[n] = '\0';
    value = rp_float_decode(elem, strtoull(word, NULL, 16));
    return (size_t)(value != value ? snprintf(out, cap, "nan") : snprintf(out, cap, "%a", value));
}

/* The text with HLO's brackets; NULL: no memory. */
static char *translate_dense(struct rp_mlir *r, unsigned elem, const char *s, const char *end,
                             size_t *len)
{
    size_t cap = 2 * (size_t)(end - s) + 64, n = 0;
    char *out = rp_arena_alloc(&r->p->arena, cap, 1);

    while (out && s < end && n + 40 < cap) {
        const char *word = s;
        size_t put;

        while (s < end && rp_mlir_word_char(*s))
            s++;
        put = float_word(elem, word, (size_t)(s - word), out + n, cap - n);
        if (!put && s > word) {
            put = (size_t)(s - word);
            if (put + 2 > cap - n)
                return out[0] = '\0', *len = 0, out;
            memcpy(out + n, word, put);
        }
        n += put;
        if (s < end && n < cap) {
            out[n++] = (char)(*s == '[' ? '{' : *s == ']' ? '}' : *s);
            s++;
        }
    }
    *len = n;
    return out;
}

/* One value for all: "1, 1, 1". */
static enum rp_code repeat_word(struct rp_mlir *r, int64_t times, struct rp_literal *literal)
{
    size_t n = literal->n;
    char *out = rp_arena_alloc(&r->p->arena, (n + 2) * (size_t)times + 1, 1);

    if (!out)
        return rp_err_nomem(r->err, "reading a constant");
    for (int64_t i = 0; i < times; i++) {
        memcpy(out + (n + 2) * (size_t)i, literal->at, n);
        memcpy(out + (n + 2) * (size_t)i + n, ", ", 2);
    }
    literal->at = out;
    literal->n = (n + 2) * (size_t)times - 2;
    return RP_OK;
}

static enum rp_code text_literal(struct rp_mlir *r, const char *s, const char *end,
                                 struct rp_literal *literal, bool *splat)
{
    int64_t elements = rp_shape_elements(r->p, literal->shape);
    bool list = memchr(s, '[', (size_t)(end - s)) != NULL;

    if (end - s > MAX_TEXT || s == end)
        return RP_OK;
    literal->at = translate_dense(r, r->p->shapes.at[literal->shape].elem, s, end, &literal->n);
    if (!literal->at)
        return rp_err_nomem(r->err, "reading a constant");
    literal->form = literal->n ? RP_LITERAL_TEXT : RP_LITERAL_NONE;
    *splat = !list && elements > MAX_REPEAT;
    return literal->n && !list && elements > 1 && !*splat ? repeat_word(r, elements, literal)
                                                          : RP_OK;
}

/* ---- resources ---- */

/* The bytes that a name stands for: of bytecode, or in "{-# dialect_resources: ... #-}". The first
   four bytes of the text there are an alignment. */
static bool find_resource(struct rp_mlir *r, struct rp_slice name, struct rp_literal *out)
{
    size_t n = (size_t)(r->end - r->begin);
    const char *s = r->resources ? r->resources : memmem(r->begin, n, "{-#", 3), *to;

    out->form = RP_LITERAL_RAW;
    for (size_t i = 0; i < r->nblobs; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "rp_%zu", i);

        if (name.n != (uint32_t)len || memcmp(text, name.at, name.n) != 0)
            continue;
        out->at = r->blobs[i].bytes.at;
        out->n = r->blobs[i].bytes.n;
        return true;
    }
    r->resources = s = s ? s : r->end;
    while (s < r->end && (s = memmem(s, (size_t)(r->end - s), name.at, name.n))) {
        to = s + name.n;
        while (to < r->end && (*to == ' ' || *to == ':'))
            to++;
        if (!rp_mlir_word_char(s[-1]) && r->end - to > 12 && memcmp(to, "\"0x", 3) == 0) {
            const char *end = memchr(to + 3, '"', (size_t)(r->end - to - 3));

            return end && end - to >= 11 && decode_bytes(r, to + 11, end, out);
        }
        s = to;
    }
    return false;
}

/* "resource<name>", after "dense_" */
static enum rp_code resource_literal(struct rp_mlir *r, const char *s, const char *end,
                                     struct rp_literal *literal, bool *splat)
{
    size_t unit = rp_literal_unit(r->p->shapes.at[literal->shape].elem);
    uint64_t elements = (uint64_t)rp_shape_elements(r->p, literal->shape);
    struct rp_slice name = {s, (uint32_t)(end - s), 0};
    struct rp_literal found = *literal;
    char *all;

    if (name.n > 1 && s[0] == '"')
        name = (struct rp_slice){s + 1, name.n - 2, 0};
    if (!name.n || name.n > 4096 || !find_resource(r, name, &found))
        return RP_OK;
    if (found.n == unit * elements) {
        *literal = found;
        return RP_OK;
    }
    if (found.n != unit || !unit || !elements)
        return RP_OK;
    *splat = elements > MAX_REPEAT;
    *literal = found;
    if (*splat)
        return RP_OK;
    all = rp_arena_alloc(&r->p->arena, unit * elements, 8);
    if (!all)
        return rp_err_nomem(r->err, "reading a constant");
    for (uint64_t i = 0; i < elements; i++)
        memcpy(all + i * unit, found.at, unit);
    literal->at = all;
    literal->n = unit * elements;
    return RP_OK;
}

static enum rp_code dense_literal(struct rp_mlir *r, const struct rp_mlir_text *text,
                                  struct rp_literal *literal, bool *splat)
{
    const char *s = memmem(text->at, (size_t)(text->end - text->at), "dense", 5), *open, *end;
    size_t unit = rp_literal_unit(r->p->shapes.at[literal->shape].elem);

    open = s ? memchr(s, '<', (size_t)(text->end - s)) : NULL;
    end = open ? rp_mlir_bracket_end(r, open) : NULL;
    if (!end || end > text->end || r->p->shapes.at[literal->shape].elem == RP_ELEM_TUPLE)
        return RP_OK;
    if (open - s > 5)
        return resource_literal(r, open + 1, end - 1, literal, splat);
    s = open + 1;
    end--;
    if (end - s <= 4 || memcmp(s, "\"0x", 3) != 0 || end[-1] != '"')
        return text_literal(r, s, end, literal, splat);
    if (!decode_bytes(r, s + 3, end - 1, literal) ||
        (literal->n != unit * (uint64_t)rp_shape_elements(r->p, literal->shape) &&
         literal->n != unit))
        *literal = (struct rp_literal){.shape = literal->shape, .at = "", .form = RP_LITERAL_NONE};
    *splat = literal->n == unit && rp_shape_elements(r->p, literal->shape) > 1;
    return RP_OK;
}

enum rp_code rp_mlir_constant(struct rp_mlir *r, const struct rp_mlir_text *text,
                              struct rp_new_op *op, uint32_t *scalar)
{
    struct rp_literal literal = {.shape = op->shape, .form = RP_LITERAL_NONE, .at = ""};
    struct rp_new_op one = {.code = RP_OP_CONSTANT, .value = (int64_t)r->p->literals.n};
    bool splat = false;

    *scalar = RP_NONE;
    RP_TRY(dense_literal(r, text, &literal, &splat));
    op->value = (int64_t)r->p->literals.n;
    if (splat && literal.form != RP_LITERAL_NONE) {
        RP_TRY(rp_program_array(r->p, r->p->shapes.at[op->shape].elem, NULL, NULL, 0, 0, &one.shape,
                                r->err));
        RP_TRY(rp_mlir_add_implicit(r, &one, NULL, 0, scalar));
        literal.shape = one.shape;
        op->code = RP_OP_BROADCAST;
        op->value = 0;
    }
    return rp_vec_push(&r->p->literals, literal, r->err);
}
