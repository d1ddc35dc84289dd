/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes literals. Text is in logical order and only its numbers are read (brackets are not
 * checked: the count must match). Lists of protobufs are in the order of the layout, and are
 * permuted if it is not row-major.
 */
#include "program/literal.h"

#include "abi/proto/hlo.h"
#include "program/floats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANK 64

size_t rp_literal_unit(unsigned elem)
{
    return (rp_elem_bits(elem) + 7) / 8;
}

bool rp_literal_known(const struct rp_program *p, const struct rp_literal *literal)
{
    return (literal->form == RP_LITERAL_TEXT || literal->form == RP_LITERAL_MLIR ||
            literal->form == RP_LITERAL_RAW || literal->form == RP_LITERAL_VARINT) &&
           rp_literal_unit(p->shapes.at[literal->shape].elem) > 0;
}

void rp_literal_store(unsigned char *out, size_t unit, uint64_t bits)
{
    for (size_t i = 0; i < unit; i++)
        out[i] = (unsigned char)(bits >> 8 * i);
}

static uint64_t load_element(const unsigned char *in, size_t unit)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < unit; i++)
        bits |= (uint64_t)in[i] << 8 * i;
    return bits;
}

uint32_t rp_literal_field(unsigned elem, bool *varints)
{
    *varints = elem == RP_ELEM_PRED || elem == RP_ELEM_S32 || elem == RP_ELEM_S64 ||
               elem == RP_ELEM_U32 || elem == RP_ELEM_U64;
    switch (elem) {
    case RP_ELEM_PRED:
        return RP_HLO_LITERAL_PREDS;
    case RP_ELEM_U8:
        return RP_HLO_LITERAL_U8S;
    case RP_ELEM_S32:
        return RP_HLO_LITERAL_S32S;
    case RP_ELEM_S64:
        return RP_HLO_LITERAL_S64S;
    case RP_ELEM_U32:
        return RP_HLO_LITERAL_U32S;
    case RP_ELEM_U64:
        return RP_HLO_LITERAL_U64S;
    case RP_ELEM_F32:
        return RP_HLO_LITERAL_F32S;
    case RP_ELEM_F64:
        return RP_HLO_LITERAL_F64S;
    case RP_ELEM_F16:
        return RP_HLO_LITERAL_F16S;
    case RP_ELEM_C64:
        return RP_HLO_LITERAL_C64S;
    case RP_ELEM_BF16:
        return RP_HLO_LITERAL_BF16S;
    case RP_ELEM_S8:
        return RP_HLO_LITERAL_S8S;
    case RP_ELEM_U16:
        return RP_HLO_LITERAL_U16S;
    case RP_ELEM_S16:
        return RP_HLO_LITERAL_S16S;
    default: /* newer types have the number of the type as the field's number */
        return elem;
    }
}

bool rp_elem_is_signed(unsigned elem)
{
    return elem == RP_ELEM_S8 || elem == RP_ELEM_S16 || elem == RP_ELEM_S32 ||
           elem == RP_ELEM_S64 || elem == RP_ELEM_S4 || elem == RP_ELEM_S2 || elem == RP_ELEM_S1;
}

/* ---- text ---- */

/* Parses "nan(0x7fc1)" and "-nan" with the payload, which is the fraction. */
static bool parse_nan(unsigned elem, const char *word, uint64_t *bits)
{
    bool minus = *word == '-';
    const char *payload = word + minus + 3;
    uint64_t mask = rp_float_payload(elem);
    char *end;

    *bits = rp_float_encode(elem, minus ? -(double)NAN : (double)NAN);
    if (!*payload)
        return true;
    if (!mask || strncmp(payload, "(0x", 3) != 0)
        return false;
    *bits = (*bits & ~mask) | (strtoull(payload + 1, &end, 16) & mask);
    return *end == ')' && !end[1];
}

/* "-1.5e-3": digits before the point; MLIR wants the point. */
static bool is_decimal(const char *word, bool mlir)
{
    static const char digits[] = "0123456789";
    const char *s = word + (*word == '-');
    size_t n = strspn(s, digits);

    s += n;
    if (!n || (mlir && *s != '.'))
        return false;
    if (*s == '.')
        s += 1 + strspn(s + 1, digits);
    if (*s == 'e' || *s == 'E') {
        s += s[1] == '+' || s[1] == '-' ? 2 : 1;
        n = strspn(s, digits);
        s += n;
    }
    return n && !*s;
}

static bool parse_float(unsigned elem, const char *word, bool mlir, uint64_t *bits)
{
    unsigned width = rp_elem_bits(elem);
    bool minus = *word == '-';
    char *end;

    if (mlir && word[0] == '0' && word[1] == 'x') { /* by its bits */
        errno = 0;
        *bits = strtoull(word, &end, 16);
        return !*end && !errno && (width == 64 || !(*bits >> width));
    }
    if (!mlir && strncmp(word + minus, "nan", 3) == 0)
        return parse_nan(elem, word, bits);
    if (!mlir && strcmp(word + minus, "inf") == 0) {
        *bits = rp_float_encode(elem, minus ? -(double)INFINITY : (double)INFINITY);
        return true;
    }
    *bits = rp_float_encode(elem, strtod(word, &end)); /* XLA and MLIR go through a double, too */
    /* MLIR rounds numbers that are too large to infinity; XLA refuses them */
    return is_decimal(word, mlir) && (mlir || isfinite(rp_float_decode(elem, *bits)));
}

static bool parse_integer(unsigned elem, const char *word, bool mlir, uint64_t *bits)
{
    bool minus = *word == '-', hex = mlir && word[minus] == '0' && word[minus + 1] == 'x';
    unsigned width = elem == RP_ELEM_PRED ? 1 : rp_elem_bits(elem);
    uint64_t top = UINT64_C(1) << (width - 1);
    char *end;

    if (width == 1 && (!strcmp(word, "true") || !strcmp(word, "false"))) {
        *bits = *word == 't';
        return true;
    }
    errno = 0;
    uint64_t value = strtoull(word + minus, &end, hex ? 16 : 10);
    if (word[minus] < '0' || word[minus] > '9' || *end || errno)
        return false;
    *bits = minus ? -value : value;
    if (elem == RP_ELEM_PRED)
        *bits = value != 0;
    if (!mlir && (elem == RP_ELEM_PRED || width == 64)) /* XLA lets them wrap */
        return true;
    if (minus)
        return rp_elem_is_signed(elem) || width == 1 ? value <= top : !value;
    return rp_elem_is_signed(elem) && !mlir ? value < top : value - 1 < 2 * top - 1 || !value;
}

static bool parse_word(unsigned elem, const char *word, bool mlir, uint64_t *bits)
{
    return rp_elem_is_float(elem) ? parse_float(elem, word, mlir, bits)
                                  : parse_integer(elem, word, mlir, bits);
}

/* Copies the next number or word; returns NULL at the end. */
static const char *next_word(const char **at, const char *end, char *out, size_t cap)
{
    const char *s = *at;
    size_t n = 0;

    while (s < end && (strchr("{}[](), \n\t\r/", *s) && *s)) {
        if (*s == '/' && s + 1 < end && s[1] == '*') { /* a comment, such as the index of a row */
            const char *close = memmem(s, (size_t)(end - s), "*/", 2);

            s = close ? close + 1 : end - 1;
        }
        s++;
    }
    if (s == end)
        return NULL;
    while (s < end && (!strchr("}],) \n\t\r", *s) || !*s)) {
        if (n + 2 > cap)
            return NULL;
        out[n++] = *s++;
        if (n > 4 && s < end && *s == ')' && memcmp(out + (*out == '-'), "nan(", 4) == 0)
            out[n++] = *s++;
    }
    out[n] = '\0';
    *at = s;
    return out;
}

/* Extends truth values and types of fewer than eight bits: writers differ in the upper bits of a
   byte. */
static void widen(unsigned elem, unsigned char *values, size_t n)
{
    unsigned bits = rp_elem_bits(elem);

    for (size_t i = 0; elem == RP_ELEM_PRED && i < n; i++)
        values[i] = values[i] != 0; /* MLIR writes 0xFF for true */
    if (bits >= 8)
        return;
    for (size_t i = 0; i < n; i++) {
        values[i] = (unsigned char)(values[i] & ((1u << bits) - 1));
        if (rp_elem_is_signed(elem) && values[i] >> (bits - 1))
            values[i] = (unsigned char)(values[i] | 0xffu << bits);
    }
}

static enum rp_code decode_text(unsigned elem, const struct rp_literal *literal, unsigned char *out,
                                size_t n, struct rp_err *err)
{
    const char *at = literal->at, *end = at + literal->n;
    bool mlir = literal->form == RP_LITERAL_MLIR;
    unsigned part = elem == RP_ELEM_C64 ? RP_ELEM_F32 : elem == RP_ELEM_C128 ? RP_ELEM_F64 : elem;
    size_t unit = rp_literal_unit(part), parts = part == elem ? 1 : 2, got = 0;
    char word[96];
    uint64_t bits;

    while (next_word(&at, end, word, sizeof word)) {
        if (got == parts * n || !parse_word(part, word, mlir, &bits))
            return rp_err_set(err, RP_FORMAT, "a constant does not fit its shape at '%s'", word);
        rp_literal_store(out + unit * got++, unit, bits);
    }
    if (mlir && got == parts && n > 1 && !memchr(literal->at, '[', literal->n)) {
        /* Repeats one value for all elements, which MLIR writes without brackets. */
        for (size_t i = 1; i < n; i++)
            memcpy(out + i * (parts * unit), out, parts * unit);
    } else if (got != parts * n)
        return rp_err_set(err, RP_FORMAT, "a constant has %zu values instead of %zu", got,
                          parts * n);
    widen(elem, out, n);
    return RP_OK;
}

/* ---- lists of protobufs ---- */

/* Reads the integers of the layout "{1,0:T(8,128)}" up to the ':'; returns SIZE_MAX if anything
   else is there. */
static size_t layout_ints(const char *s, int64_t *out, size_t cap)
{
    size_t n = 0;

    for (s += *s == '{'; *s && *s != ':' && *s != '}'; s += *s == ',') {
        char *end;

        while (*s == ' ')
            s++;
        if (n == cap || *s < '0' || *s > '9')
            return SIZE_MAX;
        out[n++] = strtoll(s, &end, 10);
        s = end;
    }
    return n;
}

bool rp_shape_minor_to_major(const struct rp_program *p, uint32_t shape, uint32_t *out, size_t cap)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    int64_t order[MAX_RANK];
    uint64_t seen = 0;

    if (s->flags & RP_SHAPE_DEFAULT_LAYOUT || s->n > cap || s->n > MAX_RANK)
        return false;
    size_t n = layout_ints(rp_program_text(p, s->layout), order, MAX_RANK);
    if (n != s->n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= (int64_t)n)
            return false;
        seen |= UINT64_C(1) << order[i];
        out[i] = (uint32_t)order[i];
    }
    return seen == (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);
}

/* Maps the order of the layout to row-major positions: the index of dimension order[0] runs
   fastest. */
struct element_walk {
    size_t n;
    bool plain;
    uint32_t order[MAX_RANK];
    int64_t index[MAX_RANK], stride[MAX_RANK];
    const int64_t *dims;
};

static void element_walk_init(struct element_walk *w, const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    int64_t stride = 1;

    memset(w, 0, sizeof *w);
    w->n = s->n;
    w->dims = p->dims.at + s->first;
    w->plain = !rp_shape_minor_to_major(p, shape, w->order, MAX_RANK);
    for (size_t i = w->plain ? 0 : w->n; i-- > 0;) {
        w->stride[i] = stride;
        stride *= w->dims[i] < 0 ? 1 : w->dims[i];
    }
}

/* Returns the position of element i of the list; it is called for 0, 1, 2 ... */
static size_t element_walk_next(struct element_walk *w, size_t i)
{
    int64_t at = 0;

    if (w->plain)
        return i;
    for (size_t k = 0; k < w->n; k++)
        at += w->index[k] * w->stride[k];
    for (size_t k = 0; k < w->n; k++) {
        uint32_t dim = w->order[k];

        if (++w->index[dim] < w->dims[dim])
            break;
        w->index[dim] = 0;
    }
    return (size_t)at;
}

static bool next_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    unsigned shift = 0;

    *value = 0;
    while (*at < end && shift < 64) {
        unsigned char c = *(*at)++;

        *value |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return true;
        shift += 7;
    }
    return false;
}

void rp_literal_lay(const struct rp_program *p, uint32_t shape, const void *values, void *out)
{
    size_t unit = rp_literal_unit(p->shapes.at[shape].elem);
    size_t n = (size_t)rp_shape_elements(p, shape);
    struct element_walk walk;

    element_walk_init(&walk, p, shape);
    for (size_t i = 0; i < n; i++)
        memcpy((char *)out + unit * i, (const char *)values + unit * element_walk_next(&walk, i),
               unit);
}

enum rp_code rp_literal_decode(const struct rp_program *p, const struct rp_literal *literal,
                               void *out, size_t cap, struct rp_err *err)
{
    unsigned elem = p->shapes.at[literal->shape].elem;
    size_t n = (size_t)rp_shape_elements(p, literal->shape);

    if (!rp_literal_known(p, literal) || cap / rp_literal_unit(elem) < n)
        return rp_err_set(err, RP_BUG, "a constant cannot be decoded here");
    if (literal->form == RP_LITERAL_TEXT || literal->form == RP_LITERAL_MLIR)
        return decode_text(elem, literal, out, n, err);
    size_t unit = rp_literal_unit(p->shapes.at[literal->shape].elem);
    const unsigned char *at = (const unsigned char *)literal->at, *end = at + literal->n;
    struct element_walk walk;
    uint64_t value;
    element_walk_init(&walk, p, literal->shape);
    if (literal->form == RP_LITERAL_RAW) {
        if (literal->n != n * unit)
            return rp_err_set(err, RP_FORMAT, "a constant has %zu bytes instead of %zu", literal->n,
                              n * unit);
        for (size_t i = 0; i < n; i++)
            memcpy((unsigned char *)out + unit * element_walk_next(&walk, i), at + unit * i, unit);
        widen(p->shapes.at[literal->shape].elem, out, n);
        return RP_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (!next_varint(&at, end, &value))
            return rp_err_set(err, RP_FORMAT, "a constant has %zu values instead of %zu", i, n);
        if (p->shapes.at[literal->shape].elem == RP_ELEM_PRED)
            value = value != 0;
        rp_literal_store((unsigned char *)out + unit * element_walk_next(&walk, i), unit, value);
    }
    return at == end ? RP_OK : rp_err_set(err, RP_FORMAT, "a constant has more than %zu values", n);
}

/* ---- printing ---- */

static size_t print_float(unsigned elem, uint64_t bits, char *out, size_t cap)
{
    double value = rp_float_decode(elem, bits);
    int len;

    if (isnan(value) && (bits ^ rp_float_encode(elem, (double)NAN)) & rp_float_payload(elem))
        len = snprintf(out, cap, "%snan(0x%llx)", signbit(value) ? "-" : "",
                       (unsigned long long)(bits & rp_float_payload(elem)));
    else if (isnan(value))
        len = snprintf(out, cap, "%snan", signbit(value) ? "-" : "");
    else if (isinf(value))
        len = snprintf(out, cap, "%sinf", signbit(value) ? "-" : "");
    else
        len = snprintf(out, cap, "%.*g", elem == RP_ELEM_F64 ? 17 : 9, value);
    for (int i = 0; i < len; i++) /* the decimal point must not depend on the locale */
        if (out[i] == ',')
            out[i] = '.';
    return (size_t)len;
}

size_t rp_literal_print(unsigned elem, const void *element, char *out, size_t cap)
{
    const unsigned char *in = element;
    size_t unit = rp_literal_unit(elem);

    if (elem == RP_ELEM_C64 || elem == RP_ELEM_C128) {
        unsigned part = elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;

        size_t n = (size_t)snprintf(out, cap, "(");
        n += print_float(part, load_element(in, unit / 2), out + n, cap - n);
        n += (size_t)snprintf(out + n, cap - n, ", ");
        n += print_float(part, load_element(in + unit / 2, unit / 2), out + n, cap - n);
        return n + (size_t)snprintf(out + n, cap - n, ")");
    }
    uint64_t bits = load_element(in, unit);
    if (elem == RP_ELEM_PRED)
        return (size_t)snprintf(out, cap, bits ? "true" : "false");
    if (rp_elem_is_float(elem))
        return print_float(elem, bits, out, cap);
    if (!rp_elem_is_signed(elem))
        return (size_t)snprintf(out, cap, "%llu", (unsigned long long)bits);
    if (unit < 8 && bits >> (8 * unit - 1))
        bits |= UINT64_MAX << 8 * unit;
    return (size_t)snprintf(out, cap, "%lld", (long long)bits);
}
