/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything beside the list of events. Every top-level key is kept as raw JSON without white
 * space, in order, before or after the events; a value over META_BYTES is skipped with a warning.
 * What some of them mean is in facts.c.
 */
#include "formats/chrome/chrome.h"

#define META_BYTES (16u << 20)

/* -------------------------------------------------------------------------- keeping */

struct keep {
    struct rp_chrome *r;
    bool too_long;
};

static enum rp_code put(struct keep *k, const char *s, size_t n, struct rp_err *err)
{
    struct rp_chrome *r = k->r;

    if (k->too_long || r->scratch.n + n > META_BYTES) {
        k->too_long = true;
        return RP_OK;
    }
    RP_TRY(rp_vec_reserve(&r->scratch, n, err));
    memcpy(r->scratch.at + r->scratch.n, s, n);
    r->scratch.n += n;
    return RP_OK;
}

static enum rp_code put_token(struct keep *k, const struct rp_json_token *token, struct rp_err *err)
{
    bool quoted = token->kind == RP_JSON_STRING;

    if (quoted)
        RP_TRY(put(k, "\"", 1, err));
    RP_TRY(put(k, token->text, token->len, err));
    return quoted ? put(k, "\"", 1, err) : RP_OK;
}

/* Appends the next element, field or end of the innermost container. */
static enum rp_code put_next(struct keep *k, struct rp_err *err)
{
    struct rp_json *p = k->r->json;
    struct rp_json_token token;
    bool object = rp_json_in_object(p),
         more = object ? rp_json_field(p, &token) : rp_json_element(p);
    char last = k->r->scratch.n ? k->r->scratch.at[k->r->scratch.n - 1] : 0;

    if (rp_json_failed(p))
        return RP_OK;
    if (!more)
        return put(k, object ? "}" : "]", 1, err);
    if (last != '{' && last != '[')
        RP_TRY(put(k, ",", 1, err));
    if (object) {
        RP_TRY(put_token(k, &token, err));
        RP_TRY(put(k, ":", 1, err));
    }
    return rp_json_value(p, &token) ? put_token(k, &token, err) : RP_OK;
}

/* Copies the next value into r->scratch. */
static enum rp_code keep_value(struct keep *k, struct rp_err *err)
{
    struct rp_json *p = k->r->json;
    uint32_t depth = rp_json_depth(p);
    struct rp_json_token token;

    k->r->scratch.n = 0;
    if (!rp_json_value(p, &token))
        return RP_OK;
    RP_TRY(put_token(k, &token, err));
    while (!rp_json_failed(p) && rp_json_depth(p) > depth)
        RP_TRY(put_next(k, err));
    return RP_OK;
}

enum rp_code rp_chrome_read_header(struct rp_chrome *r, struct rp_json_token *token,
                                   struct rp_err *err)
{
    struct keep k = {.r = r};
    rp_str key, value;
    size_t len;

    RP_TRY(rp_chrome_intern_token(r, token, &key, err));
    RP_TRY(keep_value(&k, err));
    if (rp_json_failed(r->json))
        return RP_OK;
    if (k.too_long)
        return rp_builder_warn(r->builder, err,
                               "the value of '%.80s' is larger than %u MiB and was skipped",
                               rp_builder_borrow_str(r->builder, key, &len), META_BYTES >> 20);
    const char *name = rp_builder_borrow_str(r->builder, key, &len);
    RP_TRY(rp_chrome_read_fact(&r->facts, name, len, r->scratch.at, r->scratch.n, err));
    RP_TRY(rp_chrome_intern(r, r->scratch.at, r->scratch.n, &value, err));
    return rp_builder_add_meta(r->builder, key, value, r->has_list, err);
}
