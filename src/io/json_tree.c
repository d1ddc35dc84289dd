/* SPDX-License-Identifier: Apache-2.0 */
/* The reader is recursive; the parser limits the depth. */
#include "io/json_tree.h"

#include "base/decimal.h"

#include <stdlib.h>

static const struct rp_json_node nothing = {.key = "", .text = ""};

/* Copies the text, because the text of a token is that of the input. */
static const char *keep_text(struct rp_arena *arena, const struct rp_json_token *token,
                             uint32_t *len)
{
    char *text = rp_arena_copy(arena, token->text, token->len);

    *len = text && token->has_escapes ? (uint32_t)rp_json_unescape(text, token->len, text, NULL)
                                      : token->len;
    if (text)
        text[*len] = '\0';
    return text;
}

static enum rp_code read_value(struct rp_json *json, struct rp_arena *arena,
                               struct rp_json_node *node, struct rp_err *err)
{
    struct rp_json_node **tail = &node->first;
    struct rp_json_token token, key;
    uint32_t len;

    node->text = "";
    node->kind = (uint8_t)rp_json_value(json, &token);
    if (node->kind == RP_JSON_STRING || node->kind == RP_JSON_NUMBER) {
        node->is_integer = token.is_integer;
        node->text = keep_text(arena, &token, &node->len);
        RP_TRY(rp_err_need(node->text, err, "reading JSON"));
    }
    while (node->kind == RP_JSON_OBJECT  ? rp_json_field(json, &key)
           : node->kind == RP_JSON_ARRAY ? rp_json_element(json)
                                         : false) {
        struct rp_json_node *item = rp_arena_calloc(arena, 1, sizeof *item, _Alignof(max_align_t));

        RP_TRY(rp_err_need(item, err, "reading JSON"));
        item->key = node->kind == RP_JSON_OBJECT ? keep_text(arena, &key, &len) : "";
        RP_TRY(rp_err_need(item->key, err, "reading JSON"));
        RP_TRY(read_value(json, arena, item, err));
        *tail = item;
        tail = &item->next;
        node->n++;
    }
    return rp_json_failed(json) ? rp_json_finish(json, err) : RP_OK;
}

enum rp_code rp_json_tree(struct rp_json *json, struct rp_arena *arena,
                          const struct rp_json_node **out, struct rp_err *err)
{
    struct rp_json_node *node = rp_arena_calloc(arena, 1, sizeof *node, _Alignof(max_align_t));

    *out = &nothing;
    RP_TRY(rp_err_need(node, err, "reading JSON"));
    node->key = "";
    RP_TRY(read_value(json, arena, node, err));
    *out = node;
    return RP_OK;
}

enum rp_code rp_json_tree_read(struct rp_input *in, struct rp_arena *arena,
                               const struct rp_json_node **out, struct rp_err *err)
{
    struct rp_json *json = NULL;
    enum rp_code code = rp_json_open(in, NULL, &json, err);

    *out = &nothing;
    if (code == RP_OK)
        code = rp_json_tree(json, arena, out, err);
    if (code == RP_OK)
        code = rp_json_finish(json, err);
    rp_json_close(json);
    return code;
}

enum rp_code rp_json_each(struct rp_input *in, enum rp_json_kind kind,
                          enum rp_code (*each)(const struct rp_json_node *node, void *user),
                          void *user, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_json *json = NULL;
    struct rp_json_token token, key = {0};
    enum rp_code code = rp_json_open(in, NULL, &json, err);

    if (code == RP_OK && rp_json_value(json, &token) != kind && !rp_json_failed(json))
        code = rp_err_set(err, RP_FORMAT, "expected %s",
                          kind == RP_JSON_OBJECT ? "an object" : "a list");
    while (code == RP_OK &&
           (kind == RP_JSON_OBJECT ? rp_json_field(json, &key) : rp_json_element(json))) {
        struct rp_json_node node = {0};
        uint32_t len;

        node.key = kind == RP_JSON_OBJECT ? keep_text(&arena, &key, &len) : "";
        code = rp_err_need(node.key, err, "reading JSON");
        if (code == RP_OK)
            code = read_value(json, &arena, &node, err);
        if (code == RP_OK)
            code = each(&node, user);
        rp_arena_release(&arena);
    }
    if (code == RP_OK)
        code = rp_json_finish(json, err);
    rp_json_close(json);
    return code;
}

enum rp_code rp_json_tree_parse(const char *name, const void *bytes, size_t n,
                                struct rp_arena *arena, const struct rp_json_node **out,
                                struct rp_err *err)
{
    struct rp_input *in;

    *out = &nothing;
    RP_TRY(rp_input_open_memory(name, bytes, n, NULL, &in, err));
    enum rp_code code = rp_json_tree_read(in, arena, out, err);
    rp_input_close(in);
    return code;
}

const struct rp_json_node *rp_json_get(const struct rp_json_node *object, const char *key)
{
    const struct rp_json_node *found = &nothing;

    if (object->kind == RP_JSON_OBJECT)
        RP_JSON_EACH(item, object)
    found = !strcmp(item->key, key) ? item : found;
    return found;
}

const char *rp_json_text(const struct rp_json_node *node)
{
    return node->kind == RP_JSON_STRING ? node->text : NULL;
}

int64_t rp_json_int(const struct rp_json_node *node, int64_t otherwise)
{
    int64_t value;

    return node->kind == RP_JSON_NUMBER && node->is_integer &&
                   !(rp_decimal_parse(node->text, node->len, 0, &value) & RP_DECIMAL_RANGE)
               ? value
               : otherwise;
}

double rp_json_float(const struct rp_json_node *node, double otherwise)
{
    return node->kind == RP_JSON_NUMBER ? strtod(node->text, NULL) : otherwise;
}

enum rp_code rp_json_fill(const struct rp_json_node *object, const struct rp_json_row *rows,
                          const char *where, void *record, struct rp_err *err)
{
    if (object->kind != RP_JSON_OBJECT)
        return rp_err_set(err, RP_FORMAT, "a value in %s is not an object", where);
    for (; rows->key; rows++) {
        const struct rp_json_node *node = rp_json_get(object, rows->key);
        void *to = (char *)record + rows->at;
        const char *what = NULL;

        if (node->kind == RP_JSON_NONE || node->kind == RP_JSON_NULL)
            continue;
        if (rows->want == RP_JSON_TRUE)
            *(bool *)to = node->kind == RP_JSON_TRUE;
        else if (rows->want == RP_JSON_NUMBER)
            *(int64_t *)to = rp_json_int(node, 0);
        else if (rows->want == RP_JSON_ARRAY)
            *(const struct rp_json_node **)to = node;
        else
            *(const char **)to = node->text;
        if (rows->want == RP_JSON_TRUE)
            what =
                node->kind == RP_JSON_TRUE || node->kind == RP_JSON_FALSE ? NULL : "true or false";
        else if (rows->want == RP_JSON_NUMBER)
            what = rp_json_int(node, 0) == rp_json_int(node, 1) ? NULL : "an integer";
        else if (rows->want != node->kind)
            what = rows->want == RP_JSON_ARRAY ? "a list" : "a string";
        if (what)
            return rp_err_set(err, RP_FORMAT, "'%s' in %s is not %s", rows->key, where, what);
    }
    return RP_OK;
}
