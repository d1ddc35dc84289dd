/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the scanner reads comments, strings, brackets and shapes. */
#include "formats/hlo/text.h"

#include <string.h>

#define N RP_HLO_CHAR_NAME
#define D (RP_HLO_CHAR_NAME | RP_HLO_CHAR_DIGIT)
#define B RP_HLO_CHAR_BLANK
const uint8_t rp_hlo_char_class[256] = {
    ['a'] = N, ['b'] = N, ['c'] = N,  ['d'] = N,  ['e'] = N, ['f'] = N, ['g'] = N, ['h'] = N,
    ['i'] = N, ['j'] = N, ['k'] = N,  ['l'] = N,  ['m'] = N, ['n'] = N, ['o'] = N, ['p'] = N,
    ['q'] = N, ['r'] = N, ['s'] = N,  ['t'] = N,  ['u'] = N, ['v'] = N, ['w'] = N, ['x'] = N,
    ['y'] = N, ['z'] = N, ['A'] = N,  ['B'] = N,  ['C'] = N, ['D'] = N, ['E'] = N, ['F'] = N,
    ['G'] = N, ['H'] = N, ['I'] = N,  ['J'] = N,  ['K'] = N, ['L'] = N, ['M'] = N, ['N'] = N,
    ['O'] = N, ['P'] = N, ['Q'] = N,  ['R'] = N,  ['S'] = N, ['T'] = N, ['U'] = N, ['V'] = N,
    ['W'] = N, ['X'] = N, ['Y'] = N,  ['Z'] = N,  ['_'] = N, ['.'] = N, ['-'] = N, ['0'] = D,
    ['1'] = D, ['2'] = D, ['3'] = D,  ['4'] = D,  ['5'] = D, ['6'] = D, ['7'] = D, ['8'] = D,
    ['9'] = D, [' '] = B, ['\n'] = B, ['\t'] = B, ['\r'] = B};
#undef N
#undef D
#undef B

void rp_hlo_text_skip_comment(struct rp_hlo_text *r)
{
    bool block = r->at[1] == '*';
    const char *close = block ? memmem(r->at + 2, (size_t)(r->end - r->at - 2), "*/", 2)
                              : memchr(r->at, '\n', (size_t)(r->end - r->at));

    r->at = close ? close + (block ? 2 : 1) : r->end;
}

enum rp_code rp_hlo_text_expect(struct rp_hlo_text *r, char c, const char *where)
{
    if (rp_hlo_text_take(r, c))
        return RP_OK;
    return RP_HLO_FAIL(r, r->at, "expected '%c' %s", c, where);
}

bool rp_hlo_text_int(struct rp_hlo_text *r, int64_t *value)
{
    bool minus = rp_hlo_text_peek(r) == '-';
    const char *s = r->at + minus;
    uint64_t v = 0;

    if (!rp_hlo_text_is(r, s, RP_HLO_CHAR_DIGIT))
        return false;
    for (; rp_hlo_text_is(r, s, RP_HLO_CHAR_DIGIT); s++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return false;
    if (v > INT64_MAX)
        return false;
    r->at = s;
    *value = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

/* The position after the string that begins at r->at, or the end of the text. */
static const char *hlo_text_string_end(const struct rp_hlo_text *r, const char *s)
{
    char quote = *s++;

    for (;;) {
        s = memchr(s, quote, (size_t)(r->end - s));
        if (!s)
            return r->end;
        if (s[-1] != '\\')
            return s + 1;
        /* an odd number of backslashes before the quote escapes it */
        const char *t = s - 1;

        while (t > r->begin && *t == '\\')
            t--;
        if ((s - 1 - t) % 2 == 0)
            return s + 1;
        s++;
    }
}

enum rp_code rp_hlo_text_string(struct rp_hlo_text *r, struct rp_slice *out)
{
    const char *from = r->at, *to;

    if (rp_hlo_text_peek(r) != '"' && rp_hlo_text_peek(r) != '\'')
        return RP_HLO_FAIL(r, r->at, "expected a string");
    to = hlo_text_string_end(r, from);
    if (to == r->end && (to - from < 2 || to[-1] != *from))
        return RP_HLO_FAIL(r, from, "unterminated string");
    if ((uint64_t)(to - from) > r->limits.token_bytes)
        return RP_HLO_FAIL(r, from, "a string of more than %llu bytes",
                           (unsigned long long)r->limits.token_bytes);
    r->at = to;
    *out = (struct rp_slice){from + 1, (uint32_t)(to - from - 2), 0};
    if (memchr(out->at, '\\', out->n)) {
        char *copy = rp_arena_alloc(&r->p->arena, out->n + 1, 1);

        RP_TRY(rp_err_need(copy, r->err, "reading a string"));
        out->n = (uint32_t)rp_unescape(out->at, out->n, copy);
        out->at = copy;
    }
    return RP_OK;
}

enum { BRACKET_OPENS = 1, BRACKET_CLOSES, BRACKET_QUOTE };
static const uint8_t bracket_class[256] = {
    ['{'] = BRACKET_OPENS,  ['('] = BRACKET_OPENS,  ['['] = BRACKET_OPENS, ['}'] = BRACKET_CLOSES,
    [')'] = BRACKET_CLOSES, [']'] = BRACKET_CLOSES, ['"'] = BRACKET_QUOTE};

const char *rp_hlo_text_bracket_end(const struct rp_hlo_text *r, const char *s)
{
    size_t depth = 0;

    for (;;) {
        unsigned class = 0;

        while (s < r->end && !(class = bracket_class[(unsigned char)*s]))
            s++;
        if (s == r->end)
            return NULL;
        if (class == BRACKET_QUOTE) {
            s = hlo_text_string_end(r, s);
            continue;
        }
        s++;
        depth += class == BRACKET_OPENS ? 1 : (size_t)-1;
        if (!depth)
            return s;
    }
}

/* For "mesh['a'=2,'b'=4], device_ids=(...) {'b'}", the end of what follows the first bracket. */
static const char *mesh_end(const struct rp_hlo_text *r, const char *s)
{
    static const char ids[] = "device_ids=(";
    const char *at = s, *end;

    if (at < r->end && *at == ',')
        at++;
    while (at < r->end && *at == ' ')
        at++;
    if ((size_t)(r->end - at) > sizeof ids && !memcmp(at, ids, sizeof ids - 1)) {
        at = rp_hlo_text_bracket_end(r, at + sizeof ids - 2);
        while (at && at < r->end && *at == ' ')
            at++;
    }
    end = at && at < r->end && *at == '{' ? rp_hlo_text_bracket_end(r, at) : NULL;
    return end ? end : s;
}

enum rp_code rp_hlo_text_value(struct rp_hlo_text *r, struct rp_slice *out)
{
    const char *from = r->at, *s = from;

    while (s < r->end && !rp_hlo_text_is(r, s, RP_HLO_CHAR_BLANK) && *s != ',' && *s != '}' &&
           *s != ')') {
        if (*s == '{' || *s == '(' || *s == '[') {
            s = rp_hlo_text_bracket_end(r, s);
            if (!s)
                return RP_HLO_FAIL(r, from, "unclosed bracket");
        } else if (*s == '"' || (*s == '\'' && s == from)) {
            s = hlo_text_string_end(r, s);
        } else {
            s++;
        }
    }
    if (s - from > 5 && !memcmp(from, "mesh[", 5))
        s = mesh_end(r, s);
    if (s == from)
        return RP_HLO_FAIL(r, from, "an attribute without a value");
    if ((uint64_t)(s - from) > r->limits.token_bytes || s - from > UINT32_MAX)
        return RP_HLO_FAIL(r, from, "an attribute of more than %llu bytes",
                           (unsigned long long)r->limits.token_bytes);
    *out = (struct rp_slice){from, (uint32_t)(s - from), 0};
    r->at = s;
    return RP_OK;
}

/* ---- shapes ---- */

#define MAX_RANK 256

bool rp_hlo_text_at_shape(const struct rp_hlo_text *r)
{
    const char *s = r->at;

    if (s < r->end && *s == '(')
        return true;
    while (rp_hlo_text_is(r, s, RP_HLO_CHAR_NAME))
        s++;
    return s > r->at && s < r->end && *s == '[';
}

static enum rp_code read_layout(struct rp_hlo_text *r, uint32_t *id)
{
    const char *from = r->at, *to;

    *id = 0;
    if (rp_hlo_text_peek(r) != '{' || r->at + 1 >= r->end ||
        !(rp_hlo_text_is(r, r->at + 1, RP_HLO_CHAR_DIGIT) || r->at[1] == ':' || r->at[1] == '}'))
        return RP_OK;
    to = rp_hlo_text_bracket_end(r, from);
    if (!to)
        return RP_HLO_FAIL(r, from, "unclosed layout");
    r->at = to;
    if (to - from == 2)
        return RP_OK;
    for (const char *s = from; s < to; s++)
        if (*s < 0x20 || *s > 0x7e)
            return RP_HLO_FAIL(r, s, "unexpected byte in a layout");
    return rp_program_string(r->p, from, (size_t)(to - from), id, r->err);
}

static enum rp_code read_dimensions(struct rp_hlo_text *r, int64_t *dims, uint8_t *dynamic,
                                    size_t *n)
{
    *n = 0;
    if (rp_hlo_text_take(r, ']'))
        return RP_OK;
    do {
        rp_hlo_text_space(r);
        if (*n == MAX_RANK)
            return RP_HLO_FAIL(r, r->at, "a shape of more than %d dimensions", MAX_RANK);
        dynamic[*n] = 0;
        if (rp_hlo_text_peek(r) == '?') {
            r->at++;
            dims[*n] = RP_DIM_UNKNOWN;
        } else {
            if (rp_hlo_text_peek(r) == '<' && r->at + 1 < r->end && r->at[1] == '=') {
                r->at += 2;
                dynamic[*n] = 1;
            }
            if (!rp_hlo_text_int(r, &dims[*n]) || dims[*n] < 0)
                return RP_HLO_FAIL(r, r->at, "expected a dimension of the shape");
        }
        ++*n;
    } while (rp_hlo_text_take(r, ','));
    return rp_hlo_text_expect(r, ']', "after the dimensions of a shape");
}

static enum rp_code parse_shape(struct rp_hlo_text *r, unsigned depth, uint32_t *id)
{
    const char *from = r->at;
    int64_t dims[MAX_RANK];
    uint8_t dynamic[MAX_RANK];
    uint32_t order;
    size_t n;

    if (depth > 64 || depth > r->limits.depth)
        return RP_HLO_FAIL(r, from, "tuples nested too deeply");
    if (rp_hlo_text_peek(r) == '(') {
        RP_VEC_LOCAL(uint32_t, parts);
        uint32_t part;

        r->at++;
        if (!rp_hlo_text_take(r, ')')) {
            do {
                rp_hlo_text_space(r);
                RP_TRY(parse_shape(r, depth + 1, &part));
                RP_TRY(rp_vec_push(&parts, part, r->err));
            } while (rp_hlo_text_take(r, ','));
            RP_TRY(rp_hlo_text_expect(r, ')', "after the parts of a tuple shape"));
        }
        return rp_program_tuple(r->p, parts.at, parts.n, id, r->err);
    }
    struct rp_slice name = rp_hlo_text_name(r);
    unsigned elem = rp_elem_find(name.at, name.n);
    if (elem == RP_ELEM_INVALID)
        return RP_HLO_FAIL(r, from, "unknown element type '%.*s'", (int)name.n, name.at);
    RP_TRY(rp_hlo_text_expect(r, '[', "after an element type"));
    RP_TRY(read_dimensions(r, dims, dynamic, &n));
    RP_TRY(read_layout(r, &order));
    enum rp_code code = rp_program_array(r->p, elem, dims, dynamic, n, order, id, r->err);
    if (code == RP_LIMIT)
        return rp_text_error(r->err, RP_LIMIT, r->begin, (size_t)(r->end - r->begin),
                             (size_t)(from - r->begin), "a shape of more than 2^63 bits");
    return code;
}

/* The end of the shape at this position, found by its brackets alone. */
static const char *shape_end(const struct rp_hlo_text *r)
{
    const char *s = r->at;

    while (rp_hlo_text_is(r, s, RP_HLO_CHAR_NAME))
        s++;
    s = s < r->end && (*s == '[' || *s == '(') ? rp_hlo_text_bracket_end(r, s) : NULL;
    if (s && s < r->end && *s == '{' && *r->at != '(')
        return s + 1 < r->end &&
                       (rp_hlo_text_is(r, s + 1, RP_HLO_CHAR_DIGIT) || s[1] == ':' || s[1] == '}')
                   ? rp_hlo_text_bracket_end(r, s)
                   : s;
    return s;
}

/* A program has few shapes and writes them often, so each different text is parsed once. */
enum rp_code rp_hlo_text_shape(struct rp_hlo_text *r, uint32_t *id)
{
    const char *from = r->at, *to = shape_end(r);
    uint32_t text, next = r->shape_texts.n;

    if (!to)
        return parse_shape(r, 0, id); /* which reports the error */
    RP_TRY(rp_strtab_intern(&r->shape_texts, from, (size_t)(to - from), &text, r->err));
    if (text < next && r->shape_of.at[text] != RP_NONE) {
        *id = r->shape_of.at[text];
        r->at = to;
        return RP_OK;
    }
    while (r->shape_of.n <= text) /* the text is known only after it was read to its end */
        RP_TRY(rp_vec_push(&r->shape_of, RP_NONE, r->err));
    RP_TRY(parse_shape(r, 0, id));
    if (r->at != to)
        return RP_HLO_FAIL(r, r->at, "unexpected text in a shape");
    r->shape_of.at[text] = *id;
    return RP_OK;
}
