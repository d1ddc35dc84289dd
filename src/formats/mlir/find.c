/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds attributes of a statement by name. Text has a pretty form "dims = [1, 0]" and a generic
 * form "<{permutation = array<i64: 1, 0>}>"; in both, a list is found by its key and read as the
 * integers in it. The values of bytecode are in its tables.
 */
#include "formats/mlir/bytecode.h"

#include <stdio.h>
#include <string.h>

const char *rp_mlir_find_key(const struct rp_mlir_attrs *attrs, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = attrs->at; at < attrs->end;) {
        const char *found = memmem(at, (size_t)(attrs->end - at), key, n), *s;

        if (!found)
            return NULL;
        at = s = found + n;
        if (attrs->region && found >= attrs->region && found < attrs->region_end) {
            at = attrs->region_end;
            continue;
        }
        while (s < attrs->end && *s == ' ')
            s++;
        if ((found == attrs->at || !rp_mlir_word_char(found[-1])) && s < attrs->end && *s == '=')
            return s + 1;
    }
    return NULL;
}

/* The end of the value at s: past the closing bracket if it begins with one, or past a word. */
static const char *value_end(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                             const char *s)
{
    while (s < attrs->end && (rp_mlir_word_char(*s) || *s == '#'))
        s++;
    if (s >= attrs->end || (*s != '[' && *s != '<' && *s != '{'))
        return s;
    const char *to = rp_mlir_bracket_end(r, s);
    return to && to < attrs->end ? to : attrs->end;
}

static const char *value_of(const struct rp_mlir_attrs *attrs, const char *key)
{
    const char *s = rp_mlir_find_key(attrs, key);

    while (s && s < attrs->end && *s == ' ')
        s++;
    return s && s < attrs->end ? s : NULL;
}

/* ---- integers and words ---- */

void rp_mlir_ints_in(const char *s, const char *end, struct rp_mlir_ints *out)
{
    bool typed = s && end - s > 7 && memcmp(s, "array<", 6) == 0;
    const char *colon = typed ? memchr(s, ':', (size_t)(end - s)) : NULL;

    out->n = 0;
    if (typed && !colon)
        return; /* "array<i64>" is an empty one */
    for (s = colon ? colon : s; s < end && out->n < RP_MLIR_INTS; s++) {
        int64_t v = 0;
        bool minus = *s == '-';
        const char *from = s + minus;

        if (end - s >= 4 && memcmp(s, "true", 4) == 0) {
            out->at[out->n++] = 1;
            s += 3;
        } else if (end - s >= 5 && memcmp(s, "false", 5) == 0) {
            out->at[out->n++] = 0;
            s += 4;
        } else if (from < end && *from >= '0' && *from <= '9') {
            for (s = from; s < end && *s >= '0' && *s <= '9' && v < INT64_MAX / 20; s++)
                v = v * 10 + (*s - '0');
            s--;
            out->at[out->n++] = minus ? -v : v;
        }
    }
}

/* "dense<2> : tensor<2x2xi64>" has one value for all elements. Returns the size of the last
   dimension, or 0 if this is not a tensor. */
static size_t repeat_one(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *s,
                         struct rp_mlir_ints *out)
{
    const char *to = value_end(r, attrs, s);
    struct rp_mlir_ints dims;
    int64_t n = 1;
    const char *type = to < attrs->end ? memmem(to, (size_t)(attrs->end - to), "tensor<", 7) : NULL;

    if (!type || type - to > 8 || memcmp(s, "dense", 5) != 0)
        return 0;
    rp_mlir_ints_in(type + 7, rp_mlir_bracket_end(r, type + 6), &dims); /* "2x2xi64": 2, 2, 64 */
    for (size_t i = 0; i + 1 < dims.n; i++)
        if (__builtin_mul_overflow(n, dims.at[i], &n))
            return 0;
    while (out->n && !memchr(s, '[', (size_t)(to - s)) && (int64_t)out->n < n &&
           out->n < RP_MLIR_INTS) {
        out->at[out->n] = out->at[0];
        out->n++;
    }
    return dims.n < 2 || dims.at[dims.n - 2] < 1 ? 0 : (size_t)dims.at[dims.n - 2];
}

bool rp_mlir_find_ints(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                       const char *const *keys, struct rp_mlir_ints *out)
{
    out->n = 0;
    for (; *keys; keys++) {
        const char *s = value_of(attrs, *keys);

        if (attrs->named && rp_bc_find_ints(r, attrs, *keys, out))
            return true;
        if (!s)
            continue;
        rp_mlir_ints_in(s, value_end(r, attrs, s), out);
        repeat_one(r, attrs, s, out);
        return true;
    }
    return false;
}

int64_t rp_mlir_find_int(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                         const char *key, int64_t absent)
{
    struct rp_mlir_ints list;

    return rp_mlir_find_ints(r, attrs, (const char *const[]){key, NULL}, &list) && list.n
               ? list.at[0]
               : absent;
}

bool rp_mlir_find_flag(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key)
{
    const char *at = memmem(attrs->at, (size_t)(attrs->end - attrs->at), key, strlen(key));

    return at ? rp_mlir_find_int(r, attrs, key, 1) != 0 : rp_mlir_find_int(r, attrs, key, 0) != 0;
}

const char *rp_mlir_find_word(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                              const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        const char *at = attrs->at;

        if (attrs->named && rp_bc_has_word(r, attrs, *words))
            return *words;
        while ((at = memmem(at, (size_t)(attrs->end - at), *words, n))) {
            if ((at == attrs->at || !rp_mlir_word_char(at[-1])) &&
                (at + n == attrs->end || !rp_mlir_word_char(at[n])))
                return *words;
            at += n;
        }
    }
    return NULL;
}

enum rp_code rp_mlir_find_groups(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                 const char *key, struct rp_mlir_ints *out, size_t *each)
{
    const char *s = value_of(attrs, key);

    *each = 0;
    if (attrs->named)
        return rp_bc_find_groups(r, attrs, key, out, each);
    if (!s)
        return RP_OK;
    rp_mlir_ints_in(s, value_end(r, attrs, s), out);
    *each = out->n ? repeat_one(r, attrs, s, out) : 0;
    return RP_OK;
}

/* "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" is "b01f_01io->b01f". */
bool rp_mlir_find_labels(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, char *out,
                         size_t cap)
{
    const char *s = rp_mlir_find_key(attrs, "dim_numbers");
    unsigned lists = 0;
    size_t n = 0;

    if (attrs->named)
        return rp_bc_find_labels(r, attrs, out, cap);
    if (!s && (s = rp_mlir_find_key(attrs, "dimension_numbers")))
        s = memchr(s, '[', (size_t)(attrs->end - s));
    while (s && s < attrs->end && *s != '[')
        s++;
    for (; s && s < attrs->end && lists < 3 && n + 4 < cap; s++) {
        if (*s == ']') {
            lists++;
            n += (size_t)snprintf(out + n, cap - n, "%s",
                                  lists == 1   ? "_"
                                  : lists == 2 ? "->"
                                               : "");
            while (lists < 3 && s + 1 < attrs->end && s[1] != '[')
                s++;
        } else if ((*s >= '0' && *s <= '9') || *s == 'b' || *s == 'f' || *s == 'i' || *s == 'o' ||
                   *s == '?') {
            out[n++] = *s;
        }
    }
    out[n] = '\0';
    return lists == 3;
}

/* ---- texts ---- */

/* Undoes MLIR's escapes: \t \" \\ and two hexadecimal digits. */
static size_t unescape_string(const char *in, size_t n, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (in[i] != '\\' || i + 1 == n) {
            out[len++] = in[i];
        } else if (i + 2 < n && rp_hex_number(in + i + 1, 2) >= 0) {
            out[len++] = (char)rp_hex_number(in + i + 1, 2);
            i += 2;
        } else {
            char c = in[++i];

            out[len++] = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
        }
    }
    return len;
}

enum rp_code rp_mlir_unescape(struct rp_mlir *r, struct rp_slice *text)
{
    if (!memchr(text->at, '\\', text->n))
        return RP_OK;
    char *copy = rp_arena_alloc(&r->p->arena, text->n, 1);
    RP_TRY(rp_err_need(copy, r->err, "reading a string"));
    *text = (struct rp_slice){copy, (uint32_t)unescape_string(text->at, text->n, copy), 0};
    return RP_OK;
}

enum rp_code rp_mlir_find_string(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                 const char *key, struct rp_slice *out)
{
    const char *s = value_of(attrs, key);

    *out = (struct rp_slice){0};
    if (attrs->named) {
        *out = rp_bc_find_string(r, attrs, key);
        return RP_OK;
    }
    const char *to = s && *s == '"' ? rp_mlir_string_end(r, s) : NULL;
    if (!to || to > attrs->end || to - s < 2)
        return RP_OK;
    *out = (struct rp_slice){s + 1, (uint32_t)(to - s - 2), 0};
    return rp_mlir_unescape(r, out);
}

enum rp_code rp_mlir_find_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               const char *key, struct rp_slice *out)
{
    const char *s = value_of(attrs, key);

    *out = (struct rp_slice){0};
    if (attrs->named)
        return rp_bc_find_text(r, attrs, key, out);
    if (s)
        *out = (struct rp_slice){s, (uint32_t)(value_end(r, attrs, s) - s), 0};
    return RP_OK;
}

/* ---- functions ---- */

enum rp_code rp_mlir_add_call(struct rp_mlir *r, uint32_t name)
{
    RP_TRY(rp_vec_push(&r->waiting, (uint32_t)r->p->called.n, r->err));
    RP_TRY(rp_vec_push(&r->waiting, name, r->err));
    return rp_program_add_called(r->p, 0, r->err);
}

/* Portable bytecode printed as text has strings. */
enum rp_code rp_mlir_called_list(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    const char *s = value_of(attrs, "called_computations");
    const char *to = s && *s == '[' ? rp_mlir_bracket_end(r, s) : NULL;
    struct rp_mlir look = *r;
    uint32_t name;

    if (attrs->named)
        return rp_bc_called_list(r, attrs);
    if (!to || to > attrs->end)
        return RP_OK;
    for (look.at = s + 1; look.at < to;) {
        if (*look.at != '@' && *look.at != '"') {
            look.at++;
            continue;
        }
        look.at -= *look.at == '"'; /* without its sign */
        RP_TRY(rp_mlir_name_at(&look, &name));
        RP_TRY(rp_mlir_add_call(r, name));
    }
    return RP_OK;
}

enum rp_code rp_mlir_callee(struct rp_mlir *r, const struct rp_mlir_attrs *attrs, uint32_t *name)
{
    struct rp_mlir look = *r;
    const char *s = value_of(attrs, "callee");

    if (attrs->named) {
        struct rp_slice text = rp_bc_find_string(r, attrs, "callee");
        text = text.at ? text : rp_bc_find_string(r, attrs, "decomposition");
        return text.at ? rp_program_string(r->p, text.at, text.n, name, r->err) : RP_OK;
    }
    s = s ? s : value_of(attrs, "decomposition");
    if (!s || *s != '@')
        return RP_OK;
    look.at = s;
    return rp_mlir_name_at(&look, name);
}

/* ---- what HLO does not have ---- */

enum rp_code rp_mlir_keep_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               uint32_t operation)
{
    /* The text between the operands and the types, from the first word that is not an operand. */
    const char *at = attrs->at, *end = attrs->end;

    while (at < end && (*at == ' ' || *at == ',' || *at == '(' || *at == ')' || *at == '%')) {
        if (*at == '%')
            while (at < end && *at != ' ' && *at != ',' && *at != ')')
                at++;
        else
            at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == ','))
        end--;
    if (memchr(at, '%', (size_t)(end - at)))
        end = at;
    struct rp_slice text = (struct rp_slice){at, (uint32_t)(end - at), 0};

    bool shardy = strncmp(rp_program_text(r->p, operation), "sdy.", 4) == 0;
    uint32_t key = RP_ATTR_SHARDING;

    if (attrs->named)
        RP_TRY(rp_bc_all_text(r, attrs, &text));
    if (!text.n)
        return RP_OK;
    const char *mesh = shardy ? memmem(text.at, text.n, "<@", 2) : NULL;
    if (mesh) { /* the same in both forms */
        struct rp_mlir look = {.end = text.at + text.n};

        const char *to = rp_mlir_bracket_end(&look, mesh);
        text.n = (uint32_t)((to ? to : look.end) - mesh);
        text.at = mesh;
    } else {
        RP_TRY(rp_program_string(r->p, "attributes", 10, &key, r->err));
    }
    return rp_program_add_text(r->p, key, text.at, text.n, r->err);
}
