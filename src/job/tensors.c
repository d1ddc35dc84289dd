/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads sizes of gradients and types of operators from metadata.json of a dPRO trial directory:
 *
 *     {"…/BytePSPushPull_7": {"op": "HorovodAllreduce",
 *                             "input": [{"name": "g:0", "shape": [3, 3], "dtype": "float32"}], …}}
 *
 * The input of a communication is the gradient.
 */
#include "base/order.h"
#include "io/json_tree.h"
#include "job/records.h"

#include <string.h>

#define MOST_BYTES ((int64_t)1 << 50)

struct tensors_ctx {
    struct rp_job *job;
    struct rp_err *err;
};

static int64_t bytes_of_dtype(const char *text, size_t len)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } types[] = {{"float16", 2}, {"bfloat16", 2}, {"half", 2},  {"float64", 8}, {"double", 8},
                 {"int64", 8},   {"int8", 1},     {"uint8", 1}, {"bool", 1},    {"int16", 2}};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == len && !memcmp(types[i].name, text, len))
            return types[i].bytes;
    return 4;
}

/* Returns the product of [3, 3, 64, 64]; -1 if a part of it is not a number. */
static int64_t count_of(const struct rp_json_node *shape)
{
    int64_t n = shape->kind == RP_JSON_ARRAY ? 1 : -1;

    RP_JSON_EACH(dim, shape)
    {
        int64_t x = rp_json_int(dim, -1);

        n = n < 0 || x < 0 || (x && n > MOST_BYTES / x) ? -1 : n * x;
    }
    return n;
}

/* Adds the first tensor that a communication reads: {"name": …, "shape": …, "dtype": …} */
static enum rp_code add_tensor(struct tensors_ctx *r, int64_t id, const struct rp_json_node *node)
{
    const struct rp_json_node *name = rp_json_get(node, "name"), *type = rp_json_get(node, "dtype");
    int64_t count = count_of(rp_json_get(node, "shape"));
    int64_t each = bytes_of_dtype(type->text, type->len);
    struct rp_job_tensor t = {.id = id,
                              .bytes = count < 0 || count > MOST_BYTES / each ? -1 : count * each};

    if (rp_json_text(name))
        t.name = rp_arena_strdup(&r->job->arena, name->text);
    return rp_vec_push(&r->job->tensors, t, r->err);
}

static enum rp_code read_op(const struct rp_json_node *node, void *user)
{
    struct tensors_ctx *r = user;
    const char *name = rp_arena_strdup(&r->job->arena, node->key);
    const char *type = rp_json_text(rp_json_get(node, "op"));
    int64_t id = rp_job_tensor_of(name);

    RP_TRY(rp_err_need(name, r->err, "reading operators"));
    if (type) {
        struct rp_job_type row = {name, rp_arena_strdup(&r->job->arena, type)};

        RP_TRY(rp_vec_push(&r->job->types, row, r->err));
    }
    if (id >= 0)
        RP_JSON_EACH(input, rp_json_get(node, "input"))
    if (input->kind == RP_JSON_OBJECT)
        return add_tensor(r, id, input);
    return RP_OK;
}

RP_ORDER(by_id, struct rp_job_tensor, RP_UP(id))

enum rp_code rp_job_read_tensors(struct rp_input *in, struct rp_job *out, struct rp_err *err)
{
    struct tensors_ctx r = {.job = out, .err = err};

    RP_TRY(rp_json_each(in, RP_JSON_OBJECT, read_op, &r, err));
    rp_sort(out->tensors.at, out->tensors.n, sizeof *out->tensors.at, by_id);
    return RP_OK;
}
