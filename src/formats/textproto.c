/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recursive walk in each direction. Strings, numbers and enums are converted by the type that
 * the schema gives the field; lists may be written as "[1, 2]" or field by field.
 */
#include "formats/textproto.h"

#include "base/text.h"
#include "io/escaped.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *begin, *at, *end;
    struct rp_proto_writer *to;
    uint32_t depth;
    struct rp_err *err;
};

#define FAIL(p, where, ...)                                                         \
    rp_text_error((p)->err, RP_FORMAT, (p)->begin, (size_t)((p)->end - (p)->begin), \
                  (size_t)((where) - (p)->begin), __VA_ARGS__)

static void skip_space(struct parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#') {
            const char *line = memchr(p->at, '\n', (size_t)(p->end - p->at));

            p->at = line ? line : p->end - 1;
        } else if (*p->at != ' ' && *p->at != '\n' && *p->at != '\t' && *p->at != '\r' &&
                   *p->at != ';' && *p->at != ',') {
            return;
        }
    }
}

static char peek_char(struct parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
}

static struct rp_bytes read_word(struct parser *p)
{
    const char *from;

    skip_space(p);
    for (from = p->at; p->at < p->end && is_word(*p->at); p->at++)
        ;
    return (struct rp_bytes){(const uint8_t *)from, (size_t)(p->at - from)};
}

static bool word_is(struct rp_bytes w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.at, text, w.n) == 0;
}

/* ---- values ---- */

static int read_escape(struct parser *p)
{
    static const char letters[] = "abfnrtv", meant[] = "\a\b\f\n\r\t\v";
    char c = *p->at++;
    const char *letter = c ? strchr(letters, c) : NULL;
    int value = 0, n = 0;

    if (letter)
        return meant[letter - letters];
    if (c == 'x') {
        for (; n < 2 && p->at < p->end && rp_hex_digit(*p->at) >= 0; n++, p->at++)
            value = value * 16 + rp_hex_digit(*p->at);
        return value;
    }
    if (c < '0' || c > '7')
        return (unsigned char)c;
    for (p->at--; n < 3 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; n++, p->at++)
        value = value * 8 + (*p->at - '0');
    return value & 255;
}

/* Adjacent strings are concatenated. */
static enum rp_code parse_strings(struct parser *p, uint32_t number)
{
    size_t begun = rp_proto_begin(p->to, number);

    while (peek_char(p) == '"' || peek_char(p) == '\'') {
        char quote = *p->at;
        const char *from = p->at++;

        while (p->at < p->end && *p->at != quote) {
            const char *run = p->at;

            while (p->at < p->end && *p->at != quote && *p->at != '\\')
                p->at++;
            rp_proto_add_bytes(p->to, run, (size_t)(p->at - run));
            if (p->at + 1 < p->end && *p->at == '\\') {
                p->at++;
                uint8_t byte = (uint8_t)read_escape(p);
                rp_proto_add_bytes(p->to, &byte, 1);
            } else if (p->at < p->end && *p->at == '\\') {
                p->at++;
            }
        }
        if (p->at == p->end)
            return FAIL(p, from, "unterminated string");
        p->at++;
    }
    rp_proto_end(p->to, begun);
    return RP_OK;
}

/* Elements of packed lists have no tags. */
static void write_bits(struct parser *p, const struct rp_schema_field *field, uint64_t bits,
                       bool packed)
{
    switch (field->type) {
    case RP_SCHEMA_FLOAT:
        if (packed)
            rp_proto_add_fixed32(p->to, (uint32_t)bits);
        else
            rp_proto_put_fixed32(p->to, field->number, (uint32_t)bits);
        return;
    case RP_SCHEMA_DOUBLE:
        if (packed)
            rp_proto_add_fixed64(p->to, bits);
        else
            rp_proto_put_fixed64(p->to, field->number, bits);
        return;
    default:
        if (packed)
            rp_proto_add_varint(p->to, bits);
        else
            rp_proto_put_varint(p->to, field->number, bits);
    }
}

static uint64_t float_bits(const char *text, char **end)
{
    float value = strtof(text, end);
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t double_bits(const char *text, char **end)
{
    double value = strtod(text, end);
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns the bits of a number or of "true"; *end is set after the part that was understood. */
static uint64_t scalar_bits(const struct rp_schema_field *field, char *text, char **end)
{
    bool yes = !strcmp(text, "true") || !strcmp(text, "True") || !strcmp(text, "t");
    bool no = !strcmp(text, "false") || !strcmp(text, "False") || !strcmp(text, "f");
    uint64_t bits;

    errno = 0;
    if (field->type == RP_SCHEMA_BOOL && (yes || no)) {
        *end = text + strlen(text);
        return yes;
    }
    if (field->type == RP_SCHEMA_FLOAT || field->type == RP_SCHEMA_DOUBLE) {
        bits = field->type == RP_SCHEMA_FLOAT ? float_bits(text, end) : double_bits(text, end);
        errno = 0; /* a number that is too large becomes infinity, as in protobuf */
        *end += **end == 'f' && *end > text;
        return bits;
    }
    bits = *text == '-' ? (uint64_t)strtoll(text, end, 0) : strtoull(text, end, 0);
    return field->type == RP_SCHEMA_BOOL ? bits != 0 : bits;
}

static enum rp_code parse_scalar(struct parser *p, const struct rp_schema_field *field, bool packed)
{
    const char *where = p->at;
    struct rp_bytes w = read_word(p);
    char text[64], *end;

    if (!w.n || w.n >= sizeof text)
        return FAIL(p, where, "expected a value");
    memcpy(text, w.at, w.n);
    text[w.n] = '\0';
    uint64_t bits = scalar_bits(field, text, &end);
    for (const struct rp_schema_word *e = field->words; e && e->word; e++)
        if (word_is(w, e->word)) {
            bits = (uint64_t)(int64_t)e->value;
            end = text + w.n;
        }
    if (*end && field->type != RP_SCHEMA_ENUM) /* an unknown enum value is read as 0 */
        return FAIL(p, where, "expected %s for '%s'",
                    field->type == RP_SCHEMA_BOOL ? "true or false" : "a number", field->name);
    if (errno == ERANGE)
        return FAIL(p, where, "the number for '%s' does not fit 64 bits", field->name);
    write_bits(p, field, bits, packed);
    return RP_OK;
}

/* ---- messages ---- */

static enum rp_code skip_value(struct parser *p)
{
    size_t depth = 0;

    do {
        char c = peek_char(p);

        if (!c)
            return FAIL(p, p->at, "the text ends inside a message");
        if (c == '{' || c == '<' || c == '[') {
            depth++;
            p->at++;
        } else if (c == '}' || c == '>' || c == ']') {
            if (!depth)
                return FAIL(p, p->at, "expected a value");
            depth--;
            p->at++;
        } else if (c == '"' || c == '\'') {
            size_t mark = p->to->bytes.n;

            RP_TRY(parse_strings(p, 1));
            p->to->bytes.n = mark;
        } else if (c == ':') {
            p->at++;
        } else if (!read_word(p).n) {
            return FAIL(p, p->at, "unexpected character");
        }
    } while (depth);
    return RP_OK;
}

static const struct rp_schema_field *field_by_name(const struct rp_schema *schema,
                                                   struct rp_bytes w)
{
    const struct rp_schema_field *f = schema->fields;

    while (f->type != RP_SCHEMA_END && !word_is(w, f->name))
        f++;
    return f->type == RP_SCHEMA_END ? NULL : f;
}

static enum rp_code parse_fields(struct parser *p, const struct rp_schema *schema, char close);

static enum rp_code parse_value(struct parser *p, const struct rp_schema_field *field, bool packed)
{
    char c = peek_char(p);

    if (field->type == RP_SCHEMA_TEXT)
        return c == '"' || c == '\'' ? parse_strings(p, field->number)
                                     : FAIL(p, p->at, "expected a string");
    if (field->type != RP_SCHEMA_MESSAGE)
        return parse_scalar(p, field, packed);
    if (c != '{' && c != '<')
        return FAIL(p, p->at, "expected '{'");
    if (!p->depth)
        return FAIL(p, p->at, "messages are nested too deeply");
    p->at++;
    p->depth--;
    size_t begun = rp_proto_begin(p->to, field->number);
    enum rp_code code = parse_fields(p, field->message, c == '{' ? '}' : '>');
    rp_proto_end(p->to, begun);
    p->depth++;
    return code;
}

static enum rp_code parse_values(struct parser *p, const struct rp_schema_field *field, bool packed)
{
    if (peek_char(p) != '[')
        return parse_value(p, field, packed);
    p->at++;
    while (peek_char(p) != ']') {
        if (!peek_char(p))
            return FAIL(p, p->at, "unterminated list");
        RP_TRY(parse_value(p, field, packed));
    }
    p->at++;
    return RP_OK;
}

/* Consecutive numbers of a list become one packed field, which compilers write and expect. */
static enum rp_code parse_packed(struct parser *p, const struct rp_schema_field *field)
{
    size_t begun = rp_proto_begin(p->to, field->number);
    const char *mark;

    for (;;) {
        RP_TRY(parse_values(p, field, true));
        mark = p->at;
        peek_char(p);
        if (!word_is(read_word(p), field->name) || peek_char(p) != ':')
            break;
        p->at++;
    }
    p->at = mark;
    rp_proto_end(p->to, begun);
    return RP_OK;
}

static bool is_packed(const struct rp_schema_field *field)
{
    return field->repeated && field->type != RP_SCHEMA_TEXT && field->type != RP_SCHEMA_MESSAGE;
}

/* Reads up to the closing bracket, or if that is 0, to the end of the text. */
static enum rp_code parse_fields(struct parser *p, const struct rp_schema *schema, char close)
{
    for (char c = peek_char(p); c != close; c = peek_char(p)) {
        const char *where = p->at;
        const struct rp_schema_field *field;

        if (!c)
            return FAIL(p, p->at, "the text ends inside a message");
        if (c == '[') { /* an extension */
            RP_TRY(skip_value(p));
            field = NULL;
        } else {
            struct rp_bytes name = read_word(p);
            if (!name.n)
                return FAIL(p, where, "expected a field of '%s'", schema->name);
            field = field_by_name(schema, name);
        }
        if (peek_char(p) == ':')
            p->at++;
        if (!field)
            RP_TRY(skip_value(p));
        else
            RP_TRY(is_packed(field) ? parse_packed(p, field) : parse_values(p, field, false));
    }
    p->at += close != '\0';
    return RP_OK;
}

enum rp_code rp_textproto_parse(const struct rp_schema *schema, const char *text, size_t n,
                                const struct rp_limits *limits, struct rp_proto_writer *to,
                                struct rp_err *err)
{
    struct parser p = {.begin = text, .at = text, .end = text + n, .to = to, .err = err};
    struct rp_bytes bytes;

    p.depth = limits && limits->depth < 200 ? limits->depth : 200;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        p.at += 3;
    RP_TRY(parse_fields(&p, schema, '\0'));
    return rp_proto_written(to, &bytes, err);
}

/* ---- printing ---- */

struct printer {
    struct rp_out *to;
    bool one_line;
    struct rp_err *err;
};

static void begin_line(const struct printer *p, unsigned level, bool first)
{
    if (p->one_line)
        rp_out_text(p->to, first ? "" : " ");
    else
        rp_out_printf(p->to, "%*s", (int)level * 2, "");
}

static void end_line(const struct printer *p)
{
    if (!p->one_line)
        rp_out_char(p->to, '\n');
}

static void print_float(struct rp_out *to, double v, int digits)
{
    char text[40];

    if (isnan(v) || isinf(v)) {
        rp_out_text(to, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (int n = 6; n <= digits; n++) { /* the shortest form that gives the same number when read */
        snprintf(text, sizeof text, "%.*g", n, v);
        double back = digits < 10 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (back == v)
            break;
    }
    rp_out_text(to, text);
}

static void print_scalar(struct rp_out *to, const struct rp_schema_field *field, uint64_t v)
{
    switch (field->type) {
    case RP_SCHEMA_BOOL:
        rp_out_text(to, v ? "true" : "false");
        return;
    case RP_SCHEMA_FLOAT:
        print_float(to, (double)rp_proto_float(v), 9);
        return;
    case RP_SCHEMA_DOUBLE:
        print_float(to, rp_proto_double(v), 17);
        return;
    default:
        break;
    }
    for (const struct rp_schema_word *e = field->words; e && e->word; e++)
        if ((int64_t)v == e->value) {
            rp_out_text(to, e->word);
            return;
        }
    rp_out_printf(to, "%lld", (long long)v);
}

static enum rp_code print_message(const struct printer *p, const struct rp_schema *schema,
                                  struct rp_proto_cursor c, unsigned level);

static bool next_packed(const struct rp_schema_field *field, struct rp_proto_cursor *c, uint64_t *v)
{
    uint32_t low;

    if (field->type == RP_SCHEMA_DOUBLE)
        return rp_proto_packed_fixed64(c, v);
    if (field->type != RP_SCHEMA_FLOAT)
        return rp_proto_packed_varint(c, v);
    if (!rp_proto_packed_fixed32(c, &low))
        return false;
    *v = low;
    return true;
}

static enum rp_code print_field(const struct printer *p, const struct rp_schema_field *field,
                                const struct rp_proto_cursor *c, const struct rp_proto_item *it,
                                unsigned level, bool *first)
{
    uint64_t v = it->value;

    if (field->type == RP_SCHEMA_TEXT && it->wire == RP_WIRE_BYTES) {
        begin_line(p, level, *first);
        rp_out_printf(p->to, "%s: ", field->name);
        rp_out_escaped_bytes(p->to, RP_IN_PROTO, (const char *)it->bytes.at, it->bytes.n);
        end_line(p);
    } else if (field->type == RP_SCHEMA_MESSAGE && it->wire == RP_WIRE_BYTES) {
        begin_line(p, level, *first);
        rp_out_printf(p->to, "%s {%s", field->name, p->one_line ? " " : "\n");
        RP_TRY(print_message(p, field->message, rp_proto_enter(c, it), level + 1));
        begin_line(p, level, false);
        rp_out_char(p->to, '}');
        end_line(p);
    } else if (it->wire == RP_WIRE_BYTES) { /* packed */
        struct rp_proto_cursor inner = rp_proto_enter(c, it);
        while (next_packed(field, &inner, &v)) {
            begin_line(p, level, *first);
            rp_out_printf(p->to, "%s: ", field->name);
            print_scalar(p->to, field, v);
            end_line(p);
            *first = false;
        }
        return rp_proto_finish(&inner, p->err);
    } else {
        begin_line(p, level, *first);
        rp_out_printf(p->to, "%s: ", field->name);
        print_scalar(p->to, field, v);
        end_line(p);
    }
    *first = false;
    return RP_OK;
}

static enum rp_code print_message(const struct printer *p, const struct rp_schema *schema,
                                  struct rp_proto_cursor c, unsigned level)
{
    struct rp_proto_item it;
    bool first = true;

    while (rp_proto_next(&c, &it)) {
        const struct rp_schema_field *field = rp_schema_field(schema, it.number);

        if (field)
            RP_TRY(print_field(p, field, &c, &it, level, &first));
    }
    return rp_proto_finish(&c, p->err);
}

enum rp_code rp_textproto_print(const struct rp_schema *schema, struct rp_bytes bytes,
                                bool one_line, struct rp_out *to, struct rp_err *err)
{
    struct printer p = {to, one_line, err};

    return print_message(&p, schema, rp_proto_cursor(bytes.at, bytes.n, 0, 200), 0);
}
