/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive, since the parser limits the depth. Texts are copied, because those of the parser are
   borrowed. */
#include "formats/torch_memory/json_values.h"

#include "io/json_pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct json_reader {
    struct rp_json *p;
    struct rp_pickle *out;
    struct rp_err *err;
};

static enum rp_code add_text(struct json_reader *r, const struct rp_json_token *token,
                             rp_pickle_id *out)
{
    struct rp_pickle_value value = {.type = RP_PICKLE_TEXT};
    char *text = rp_arena_copy(&r->out->arena, token->text, token->len);

    RP_TRY(rp_err_need(text, r->err, "reading a text"));
    value.n = (uint32_t)(token->has_escapes ? rp_json_unescape(text, token->len, text, NULL)
                                            : token->len);
    value.v.text = text;
    return rp_pickle_new_value(r->out, &value, out, r->err);
}

static enum rp_code add_number(struct json_reader *r, const struct rp_json_token *token,
                               rp_pickle_id *out)
{
    struct rp_pickle_value value = {.type = RP_PICKLE_INT};
    char text[64];

    if (token->len >= sizeof text) {
        value.type = RP_PICKLE_HUGE;
        return rp_pickle_new_value(r->out, &value, out, r->err);
    }
    memcpy(text, token->text, token->len);
    text[token->len] = '\0';
    errno = 0;
    if (token->is_integer) {
        value.v.i = strtoll(text, NULL, 10);
        value.type = errno ? RP_PICKLE_HUGE : RP_PICKLE_INT;
    } else {
        value.v.f = strtod(text, NULL);
        value.type = RP_PICKLE_FLOAT;
    }
    return rp_pickle_new_value(r->out, &value, out, r->err);
}

static enum rp_code add_value(struct json_reader *r, rp_pickle_id *out);

static enum rp_code add_object(struct json_reader *r, rp_pickle_id *out)
{
    struct rp_pickle_value value = {.type = RP_PICKLE_DICT};
    struct rp_json_token key;
    rp_pickle_id pair[2];

    RP_TRY(rp_pickle_new_value(r->out, &value, out, r->err));
    while (rp_json_field(r->p, &key)) {
        RP_TRY(add_text(r, &key, &pair[0]));
        RP_TRY(add_value(r, &pair[1]));
        RP_TRY(rp_pickle_append(r->out, *out, pair, 2, r->err));
    }
    return RP_OK;
}

static enum rp_code add_array(struct json_reader *r, rp_pickle_id *out)
{
    struct rp_pickle_value value = {.type = RP_PICKLE_LIST};
    rp_pickle_id item;

    RP_TRY(rp_pickle_new_value(r->out, &value, out, r->err));
    while (rp_json_element(r->p)) {
        RP_TRY(add_value(r, &item));
        RP_TRY(rp_pickle_append(r->out, *out, &item, 1, r->err));
    }
    return RP_OK;
}

static enum rp_code add_value(struct json_reader *r, rp_pickle_id *out)
{
    struct rp_pickle_value value = {.type = RP_PICKLE_NONE};
    struct rp_json_token token;

    switch (rp_json_value(r->p, &token)) {
    case RP_JSON_OBJECT:
        return add_object(r, out);
    case RP_JSON_ARRAY:
        return add_array(r, out);
    case RP_JSON_STRING:
        return add_text(r, &token, out);
    case RP_JSON_NUMBER:
        return add_number(r, &token, out);
    case RP_JSON_TRUE:
    case RP_JSON_FALSE:
        value.type = RP_PICKLE_BOOL;
        value.v.i = token.kind == RP_JSON_TRUE;
        break;
    default:
        break;
    }
    return rp_pickle_new_value(r->out, &value, out, r->err);
}

enum rp_code rp_json_values_read(struct rp_pickle *out, const void *bytes, size_t n,
                                 const struct rp_limits *limits, struct rp_err *err)
{
    struct rp_json_options options = {.limits = limits};
    struct json_reader r = {.out = out, .err = err};
    struct rp_input *in;

    *out = (struct rp_pickle){.root = RP_NONE, .used = n};
    RP_TRY(rp_input_open_memory("json", bytes, n, limits, &in, err));
    enum rp_code code = rp_json_open(in, &options, &r.p, err);
    if (code == RP_OK)
        code = add_value(&r, &out->root);
    if (code == RP_OK)
        code = rp_json_finish(r.p, err);
    rp_json_close(r.p);
    rp_input_close(in);
    return code;
}
