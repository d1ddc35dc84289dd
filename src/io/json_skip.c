/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skips values by the fast functions of json_pull.h in a loop, so that they are checked as strictly
 * as others, at the same speed and without recursion. Raw text is borrowed if the value is in one
 * block; otherwise the part in each block is saved, up to the limit of a token.
 */
#include "io/json_inner.h"

bool rp_json_skip(struct rp_json *p)
{
    struct rp_json_token token;
    uint32_t floor = p->depth;

    if (!rp_json_value(p, &token))
        return false;
    while (p->depth > floor) {
        bool more = rp_json_in_object(p) ? rp_json_field(p, &token) : rp_json_element(p);

        if (more ? !rp_json_value(p, &token) : p->failed)
            return false;
    }
    return !p->failed;
}

bool rp_json_next(struct rp_json *p, struct rp_json_token *key)
{
    if (p->unread && p->unread == rp_json_offset(p) && !rp_json_skip(p))
        return false;
    bool more = rp_json_field(p, key);
    p->unread = more ? rp_json_offset(p) : 0;
    return more;
}

static enum rp_json_kind kind_of(char first)
{
    switch (first) {
    case '{':
        return RP_JSON_OBJECT;
    case '[':
        return RP_JSON_ARRAY;
    case '"':
        return RP_JSON_STRING;
    case 't':
        return RP_JSON_TRUE;
    case 'f':
        return RP_JSON_FALSE;
    case 'n':
        return RP_JSON_NULL;
    default:
        return RP_JSON_NUMBER;
    }
}

bool rp_json_raw(struct rp_json *p, struct rp_json_token *raw)
{
    struct rp_json_inner *inner = p->inner;

    if (!p->depth)
        rp_json_next_byte(p);
    inner->raw.n = 0;
    inner->raw_from = p->at;
    inner->raw_offset = rp_json_offset(p);
    bool ok = rp_json_skip(p);
    const char *from = inner->raw_from;
    inner->raw_from = NULL;
    if (!ok)
        return false;
    while (p->at > from && rp_json_is_space(p->at[-1]))
        p->at--; /* for a number, the next call passes it again */
    if (rp_json_offset(p) - inner->raw_offset > p->token_max)
        return rp_json_fail(p, RP_LIMIT, inner->raw_offset, p->at, "a value over the limit");

    /* Joins the saved parts of earlier blocks with the part in this one. */
    size_t n = (size_t)(p->at - from);
    *raw = (struct rp_json_token){.text = from, .len = (uint32_t)n};
    if (inner->raw.n) {
        if (rp_vec_reserve(&inner->raw, n, NULL) != RP_OK)
            return rp_json_fail_nomem(p);
        memcpy(inner->raw.at + inner->raw.n, from, n);
        raw->len += (uint32_t)inner->raw.n;
        raw->text = inner->raw.at;
    }
    raw->kind = (uint8_t)kind_of(*raw->text);
    return true;
}
