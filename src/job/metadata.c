/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads key_dict.txt of BytePS, one line per name with the keys of its parts, and metadata.json of
 * a dPRO trial directory, operators with the names of their inputs and outputs:
 *
 *     {"net/conv": {"op": "Conv2D", "input": [{"name": "x:0", …}], "output": [{"name": "y:0", …}]}}
 *
 * An edge leads from the operator that writes a name to each that reads it. One pass collects the
 * names, a second over them makes the edges.
 */
#include "job/records.h"

#include "base/hash.h"
#include "io/json_tree.h"

#include <string.h>

struct use {
    uint64_t name;
    const char *op;
};

struct metadata_ctx {
    struct rp_job_rank *out;
    RP_VEC(struct use) reads, writes;
    struct rp_map maker; /* from hash of a name to index in writes */
    struct rp_err *err;
};

/* [{"name": …}, …] */
static enum rp_code add_uses(struct metadata_ctx *r, const struct rp_json_node *list,
                             const char *op, bool writes)
{
    RP_JSON_EACH(item, list)
    {
        const struct rp_json_node *name = rp_json_get(item, "name");
        struct use use = {rp_hash_bytes(name->text, name->len), op};

        if (name->kind == RP_JSON_NONE)
            continue;
        if (name->kind != RP_JSON_STRING)
            return rp_err_set(r->err, RP_FORMAT, "'%s': the name of a tensor must be a text", op);
        if (writes)
            RP_TRY(rp_vec_push(&r->writes, use, r->err));
        else
            RP_TRY(rp_vec_push(&r->reads, use, r->err));
    }
    return RP_OK;
}

static enum rp_code read_operator(const struct rp_json_node *node, void *user)
{
    struct metadata_ctx *r = user;
    const char *op = rp_arena_strdup(&r->out->arena, node->key);

    RP_TRY(rp_err_need(op, r->err, "reading operators"));
    if (node->kind != RP_JSON_OBJECT)
        return rp_err_set(r->err, RP_FORMAT, "'%s': an operator must be an object", op);
    RP_TRY(add_uses(r, rp_json_get(node, "input"), op, false));
    return add_uses(r, rp_json_get(node, "output"), op, true);
}

static enum rp_code make_edges(struct metadata_ctx *r)
{
    for (size_t i = 0; i < r->writes.n; i++)
        RP_TRY(rp_map_put(&r->maker, r->writes.at[i].name, (uint32_t)i, r->err));
    for (size_t i = 0; i < r->reads.n; i++) {
        uint32_t at = rp_map_get(&r->maker, r->reads.at[i].name);
        struct rp_job_edge e = {.to = r->reads.at[i].op};

        if (at == RP_MAP_NONE)
            continue;
        e.from = r->writes.at[at].op;
        e.from_tensor = rp_job_tensor_of(e.from);
        e.to_tensor = rp_job_tensor_of(e.to);
        RP_TRY(rp_vec_push(&r->out->edges, e, r->err));
    }
    return RP_OK;
}

enum rp_code rp_job_read_metadata(struct rp_input *in, struct rp_job_rank *out, struct rp_err *err)
{
    struct metadata_ctx r = {.out = out, .err = err};
    enum rp_code code = rp_json_each(in, RP_JSON_OBJECT, read_operator, &r, err);
    if (code == RP_OK)
        code = make_edges(&r);
    rp_vec_release(&r.reads);
    rp_vec_release(&r.writes);
    rp_map_release(&r.maker);
    return code;
}

/* ------------------------------------------------------------------ keys */

/* Reads the numbers of tensors, "5_6", after the last "PushPull" of a name. */
static const char *tensors_of(const char *name, size_t len)
{
    static const char sign[] = "PushPull";
    const size_t n = sizeof sign - 1;

    for (size_t i = len; i-- > 0;)
        if (i + n + 1 < len && !memcmp(name + i, sign, n) &&
            (name[i + n] == '.' || name[i + n] == '_') && name[i + n + 1] >= '0' &&
            name[i + n + 1] <= '9')
            return name + i + n + 1;
    return NULL;
}

#define DIGITS 18
RP_LIMIT(DIGITS, "digits", "the number ends there: no more fit into 64 bits");

/* Reads a number; *at is moved past it. */
static bool number_at(const char **at, const char *end, int64_t *out)
{
    const char *from = *at;

    *out = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *at - from < DIGITS)
        *out = *out * 10 + (*(*at)++ - '0');
    return *at > from;
}

/* Adds all keys for each tensor of the name. */
static enum rp_code add_keys(const char *tensors, const char *colon, const char *end,
                             struct rp_job *out, struct rp_err *err)
{
    struct rp_job_key k;

    while (tensors < colon && number_at(&tensors, colon, &k.tensor)) {
        const char *at = colon + 1;

        for (k.part = 0; at < end;) {
            if (number_at(&at, end, &k.key)) {
                RP_TRY(rp_vec_push(&out->keys, k, err));
                k.part++;
            } else {
                at++;
            }
        }
        if (tensors < colon && *tensors != '_' && *tensors != '+')
            break;
        tensors++;
    }
    return RP_OK;
}

enum rp_code rp_job_read_keys(const char *text, size_t len, struct rp_job *out, struct rp_err *err)
{
    const char *at = text, *end = text + len;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const char *colon = memchr(at, ':', (size_t)(stop - at));
        const char *tensors = colon ? tensors_of(at, (size_t)(colon - at)) : NULL;

        if (tensors)
            RP_TRY(add_keys(tensors, colon, stop, out, err));
        at = newline ? newline + 1 : end;
    }
    return RP_OK;
}
