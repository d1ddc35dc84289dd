/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of MLIR as literals: "dense<[[1, 2], [3, 4]]>" is HLO's text but for the brackets and
 * for floats written as their bits; "dense<"0x00FF...">" holds the bytes; one value for a whole
 * array is written out where the array is small, and not kept where it is not (nor are resources,
 * which are elsewhere in the file).
 */
#include "formats/mlir/mlir.h"
#include "program/floats.h"
#include "program/literal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT   (1 << 20)
#define MAX_REPEAT 64

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "0x00FF": bytes in file order; false for any other text. */
static bool decode_bytes(struct rp_mlir *r, const char *s, const char *end, struct rp_literal *out)
{
    size_t n = (size_t)(end - s) / 2;
    char *bytes = rp_arena_alloc(&r->p->arena, n + 1, 1);

    for (size_t i = 0; bytes && i < n; i++) {
        int high = hex_digit(s[2 * i]), low = hex_digit(s[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        bytes[i] = (char)(high << 4 | low);
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
                                 struct rp_literal *literal)
{
    int64_t elements = rp_shape_elements(r->p, literal->shape);
    bool list = memchr(s, '[', (size_t)(end - s)) != NULL;

    if (end - s > MAX_TEXT || s == end || (!list && elements > MAX_REPEAT))
        return RP_OK;
    literal->at = translate_dense(r, r->p->shapes.at[literal->shape].elem, s, end, &literal->n);
    if (!literal->at)
        return rp_err_nomem(r->err, "reading a constant");
    literal->form = literal->n ? RP_LITERAL_TEXT : RP_LITERAL_NONE;
    return literal->n && !list && elements > 1 ? repeat_word(r, elements, literal) : RP_OK;
}

enum rp_code rp_mlir_constant(struct rp_mlir *r, const struct rp_mlir_text *text, uint32_t shape,
                              int64_t *value)
{
    struct rp_literal literal = {.shape = shape, .form = RP_LITERAL_NONE, .at = ""};
    const char *s = memmem(text->at, (size_t)(text->end - text->at), "dense<", 6), *end;
    size_t unit = rp_literal_unit(r->p->shapes.at[shape].elem);

    end = s ? rp_mlir_bracket_end(r, s + 5) : NULL;
    if (end && end <= text->end && r->p->shapes.at[shape].elem != RP_ELEM_TUPLE) {
        s += 6;
        end--;
        if (end - s > 4 && memcmp(s, "\"0x", 3) == 0 && end[-1] == '"') {
            if (!decode_bytes(r, s + 3, end - 1, &literal) ||
                literal.n != unit * (uint64_t)rp_shape_elements(r->p, shape))
                literal = (struct rp_literal){.shape = shape, .at = "", .form = RP_LITERAL_NONE};
        } else {
            RP_TRY(text_literal(r, s, end, &literal));
        }
    }
    *value = (int64_t)r->p->literals.n;
    return rp_vec_push(&r->p->literals, literal, r->err);
}
