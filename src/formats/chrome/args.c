/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments. Events of a category nearly always have the same keys in the same order, so walking
 * down the tree of the category (chrome.h) is one comparison of bytes per key; the values become
 * numbers or string ids, and the last node has the shape. Only new keys are interned and get a
 * node. Repeated text is recognised by comparing it with the previous value of the node.
 *
 * Types: integers of 64 bits, doubles, strings (decoded); everything else (arrays, objects, true,
 * false, null, NaN, larger numbers) keeps its text exactly as written, white space included. A
 * duplicate key has its last value at its first position, as in Python; only the first UNIQUE keys
 * are compared. The tree is bounded: lists that do not fit are looked up by the builder.
 */
#include "base/decimal.h"
#include "formats/chrome/chrome.h"

#include <stdio.h>

#define MAX_NODES    65536
#define MAX_CHILDREN 64
#define UNIQUE       RP_SHAPE_KEYS

struct key {       /* a key of the argument that is being read */
    uint32_t node; /* the child with this key and any type; 0: none */
    rp_str str;
    const char *text; /* as written; NULL if the tree is full */
    uint32_t len;
};

enum rp_code rp_chrome_new_root(struct rp_chrome *r, uint32_t *out, struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&r->nodes, 2, err));
    if (!r->nodes.n)
        r->nodes.at[r->nodes.n++] = (struct rp_chrome_node){0};
    *out = (uint32_t)r->nodes.n;
    r->nodes.at[r->nodes.n++] = (struct rp_chrome_node){0};
    return RP_OK;
}

/* The child of `node` with this key and any type, or 0. */
static uint32_t find_child(const struct rp_chrome *r, uint32_t node,
                           const struct rp_json_token *key)
{
    const struct rp_chrome_node *nodes = r->nodes.at, *c;
    uint32_t i = nodes[node].hot;

    c = &nodes[i];
    if (i && c->key_len == key->len && memcmp(c->key, key->text, key->len) == 0)
        return i;
    for (i = nodes[node].first; i; i = c->next) {
        c = &nodes[i];
        if (c->key_len == key->len && memcmp(c->key, key->text, key->len) == 0)
            return i;
    }
    return 0;
}

/* Whether the node may have one more child. */
static bool has_room(const struct rp_chrome *r, uint32_t node)
{
    return node && r->nodes.n < MAX_NODES && r->nodes.at[node].nchildren < MAX_CHILDREN;
}

/* Interns a key that the tree does not have, and keeps its spelling for a node. */
static enum rp_code new_key(struct rp_chrome *r, struct rp_json_token *token, bool keep,
                            struct key *key, struct rp_err *err)
{
    *key = (struct key){.len = token->len};
    if (keep) {
        key->text = rp_arena_copy(&r->arena, token->text, token->len);
        RP_TRY(rp_err_need(key->text, err, "reading arguments"));
    }
    RP_TRY(rp_chrome_intern_token(r, token, &key->str, err));
    rp_chrome_note_key(r, token, key->str);
    return RP_OK;
}

/* The index of an earlier argument with the same key, plus 1; 0: none. */
static uint32_t find_twin(const struct rp_chrome *r, uint32_t n, rp_str key)
{
    for (uint32_t i = 0; i < n && n <= UNIQUE; i++)
        if (r->args.at[i].key == key)
            return i + 1;
    return 0;
}

static bool is_correlation(const struct rp_chrome *r, rp_str key)
{
    size_t len;
    const char *s = rp_builder_borrow_str(r->builder, key, &len);

    return len == 11 && memcmp(s, "correlation", 11) == 0;
}

/* The child of `node` with this key and type, added if missing; 0: the tree is full. */
static enum rp_code enter_child(struct rp_chrome *r, uint32_t node, const struct key *key,
                                uint8_t type, uint32_t nargs, uint32_t *out, struct rp_err *err)
{
    struct rp_chrome_node *parent, *c;
    const char *text = key->node ? r->nodes.at[key->node].key : key->text;
    rp_str str = key->node ? r->nodes.at[key->node].key_str : key->str;
    uint32_t len = key->node ? r->nodes.at[key->node].key_len : key->len, i;

    for (i = key->node ? r->nodes.at[node].first : 0; i; i = r->nodes.at[i].next) {
        c = &r->nodes.at[i];
        if (c->key == text && c->type == type)
            goto found;
    }
    *out = 0;
    if (!text || !has_room(r, node))
        return RP_OK;
    RP_TRY(rp_vec_reserve(&r->nodes, 1, err));
    i = (uint32_t)r->nodes.n++;
    parent = &r->nodes.at[node];
    c = &r->nodes.at[i];
    *c = (struct rp_chrome_node){.key = text, .key_len = len, .key_str = str, .type = type};
    c->replaces = (uint16_t)find_twin(r, nargs, str);
    c->is_correlation = is_correlation(r, str);
    c->next = parent->first;
    parent->first = i;
    parent->nchildren++;
found:
    r->nodes.at[node].hot = i;
    *out = i;
    return RP_OK;
}

/* Reads a string value; memo is the memo of its node, or NULL. */
static enum rp_code read_string(struct rp_chrome *r, struct rp_chrome_memo *memo,
                                struct rp_json_token *v, rp_str *out, struct rp_err *err)
{
    if (memo && !v->has_escapes && rp_chrome_recall(r, memo, v->text, v->len)) {
        *out = memo->str;
        return RP_OK;
    }
    if (v->has_escapes) {
        memo = NULL;
        RP_TRY(rp_chrome_intern_token(r, v, out, err));
    } else {
        RP_TRY(rp_chrome_intern_name(r, v, out, err));
    }
    if (memo)
        *memo = (struct rp_chrome_memo){.str = *out, .len = v->len};
    return RP_OK;
}

/* A JSON value that the parser has skipped, kept as written. */
static enum rp_code read_raw(struct rp_chrome *r, const struct rp_json_token *v, struct rp_arg *arg,
                             struct rp_err *err)
{
    arg->type = RP_ARG_RAW;
    return rp_chrome_intern_raw(r, v->text, v->len, &arg->v.s, err);
}

static enum rp_code read_number(struct rp_chrome *r, const struct rp_json_token *v,
                                struct rp_arg *arg, struct rp_err *err)
{
    if (v->is_integer && rp_chrome_parse_int(v->text, v->len, &arg->v.i) &&
        (arg->v.i || v->text[0] != '-')) {
        arg->type = RP_ARG_I64;
        return RP_OK;
    }
    if (!v->is_integer && rp_chrome_parse_double(r, v->text, v->len, &arg->v.f)) {
        arg->type = RP_ARG_F64;
        return RP_OK;
    }
    return read_raw(r, v, arg, err);
}

/* Reads the value of the argument with arg's key; v becomes its text. Returns RP_OK also if the
   parser failed. */
static enum rp_code read_value(struct rp_chrome *r, struct rp_chrome_memo *memo, struct rp_arg *arg,
                               struct rp_json_token *v, struct rp_err *err)
{
    rp_chrome_learn_begin(r);
    if (rp_chrome_at_container(r->json)) {
        if (!rp_json_raw(r->json, v))
            return RP_OK;
        RP_TRY(read_raw(r, v, arg, err));
        return rp_chrome_learn_value(r, RP_CHROME_ARGS, v, arg->type, arg->key, err);
    }
    if (!rp_json_value(r->json, v))
        return RP_OK;
    if (v->kind == RP_JSON_NUMBER)
        RP_TRY(read_number(r, v, arg, err));
    else if (v->kind != RP_JSON_STRING)
        RP_TRY(read_raw(r, v, arg, err));
    else
        arg->type = RP_ARG_STR;
    RP_TRY(rp_chrome_learn_value(r, RP_CHROME_ARGS, v, arg->type, arg->key, err));
    return v->kind == RP_JSON_STRING ? read_string(r, memo, v, &arg->v.s, err) : RP_OK;
}

/*
 * The canonical spelling of a number that is not a 64-bit integer: "number -125e-2" for -1.250.
 * Long exponents are kept as written: they do not occur in ids.
 */
static enum rp_code intern_number(struct rp_chrome *r, const char *s, size_t len, rp_str *out,
                                  struct rp_err *err)
{
    const char *e = memchr(s, 'e', len), *end;
    int64_t exponent = 0;
    size_t n = 0;

    e = e ? e : memchr(s, 'E', len);
    end = e ? e : s + len;
    r->scratch.n = 0;
    RP_TRY(rp_vec_reserve(&r->scratch, len + 40, err));
    char *to = r->scratch.at;
    n = (size_t)sprintf(to, "number %s", *s == '-' ? "-" : "");
    if (e && (s + len - e > 18 ||
              !rp_chrome_parse_int(e + 1 + (e[1] == '+'), (size_t)(s + len - e - 1 - (e[1] == '+')),
                                   &exponent)))
        return rp_chrome_intern(r, s, len, out, err);
    for (bool point = false; s < end; s++) {
        point |= *s == '.';
        if ((unsigned char)(*s - '0') > 9 ||
            (*s == '0' && (to[n - 1] == ' ' || to[n - 1] == '-'))) {
            exponent -= point && *s == '0';
            continue;
        }
        to[n++] = *s;
        exponent -= point;
    }
    for (; to[n - 1] == '0'; n--)
        exponent++;
    n += (size_t)sprintf(to + n, "e%lld", (long long)exponent);
    return rp_chrome_intern(r, to, n, out, err);
}

/* A text is its own id; a text that looks like the spelling of a number gets a prefix. */
static enum rp_code intern_text(struct rp_chrome *r, rp_str s, rp_str *out, struct rp_err *err)
{
    size_t len;
    const char *text = rp_builder_borrow_str(r->builder, s, &len);

    *out = s;
    if (strncmp(text, "number ", 7) != 0 && strncmp(text, "text ", 5) != 0)
        return RP_OK;
    r->scratch.n = 0;
    RP_TRY(rp_vec_reserve(&r->scratch, len + 5, err));
    memcpy(r->scratch.at, "text ", 5);
    memcpy(r->scratch.at + 5, text, len);
    return rp_chrome_intern(r, r->scratch.at, len + 5, out, err);
}

/* 5 and 5.0 are the same correlation, "5" is another; null, lists and objects are not
   correlations. */
enum rp_code rp_chrome_set_correlation(struct rp_chrome *r, const struct rp_arg *arg,
                                       const struct rp_json_token *token,
                                       struct rp_chrome_args *out, struct rp_err *err)
{
    bool number = token->len && (unsigned char)(token->text[token->len - 1] - '0') < 10;
    int64_t value = arg->v.i;
    rp_str text;

    out->has_correlation = out->correlation_is_text = false;
    if (arg->type == RP_ARG_STR) {
        RP_TRY(intern_text(r, arg->v.s, &text, err));
        value = text;
        out->correlation_is_text = true;
    } else if (arg->type != RP_ARG_I64) {
        if (!number)
            return RP_OK;
        if (rp_decimal_parse(token->text, token->len, 0, &value) & ~(unsigned)RP_DECIMAL_NEGATIVE) {
            RP_TRY(intern_number(r, token->text, token->len, &text, err));
            value = text;
            out->correlation_is_text = true;
        }
    }
    out->has_correlation = true;
    out->correlation = value;
    return RP_OK;
}

/* Lists that are not in the tree get their shape from the builder. */
static enum rp_code find_shape(struct rp_chrome *r, uint32_t n, uint16_t *out, struct rp_err *err)
{
    *out = 0;
    return n ? rp_builder_shape(r->builder, r->args.at, n, out, err) : RP_OK;
}

/* The shape of the argument list that ends at a node. */
static enum rp_code node_shape(struct rp_chrome *r, uint32_t node, uint32_t n, uint16_t *out,
                               struct rp_err *err)
{
    struct rp_chrome_node *at = &r->nodes.at[node];

    if (!at->has_shape) {
        RP_TRY(find_shape(r, n, &at->shape, err));
        at->has_shape = true;
    }
    *out = at->shape;
    return RP_OK;
}

/* Reads one argument; *node is the node before it and becomes its own, or 0 outside the tree. */
static enum rp_code read_arg(struct rp_chrome *r, struct rp_json_token *token, uint32_t *node,
                             struct rp_chrome_args *out, struct rp_err *err)
{
    struct rp_chrome_memo *memo = NULL;
    struct rp_json_token v = {0};
    struct rp_arg arg = {0};
    struct key key = {0};

    key.node = *node ? find_child(r, *node, token) : 0;
    if (key.node) {
        arg.key = r->nodes.at[key.node].key_str;
        memo = &r->nodes.at[key.node].memo;
    } else {
        RP_TRY(new_key(r, token, has_room(r, *node), &key, err));
        arg.key = key.str;
    }
    RP_TRY(read_value(r, memo, &arg, &v, err));
    if (rp_json_failed(r->json))
        return RP_OK;
    if (key.node && r->nodes.at[key.node].type == arg.type) {
        r->nodes.at[*node].hot = key.node;
        *node = key.node;
    } else if (*node) {
        RP_TRY(enter_child(r, *node, &key, arg.type, out->n, node, err));
    }
    if (*node ? r->nodes.at[*node].is_correlation : is_correlation(r, arg.key))
        RP_TRY(rp_chrome_set_correlation(r, &arg, &v, out, err));
    uint32_t twin = *node ? r->nodes.at[*node].replaces : find_twin(r, out->n, arg.key);

    /* Appends the argument, or replaces the earlier one with its key. */
    if (twin) {
        r->args.at[twin - 1] = arg;
        out->duplicates++;
        return RP_OK;
    }
    r->args.n = out->n;
    RP_TRY(rp_vec_push(&r->args, arg, err));
    out->n++;
    return RP_OK;
}

enum rp_code rp_chrome_read_args(struct rp_chrome *r, uint32_t root, struct rp_chrome_args *out,
                                 struct rp_err *err)
{
    struct rp_json_token token;
    uint32_t node = root;

    *out = (struct rp_chrome_args){0};
    while (rp_json_field(r->json, &token))
        RP_TRY(read_arg(r, &token, &node, out, err));
    if (rp_json_failed(r->json))
        return RP_OK;
    return node ? node_shape(r, node, out->n, &out->shape, err)
                : find_shape(r, out->n, &out->shape, err);
}
