/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of gradients and types of operators, from metadata.json of a dPRO trial directory:
 *
 *     {"…/BytePSPushPull_7": {"op": "HorovodAllreduce",
 *                             "input": [{"name": "g:0", "shape": [3, 3], "dtype": "float32"}], …}}
 *
 * What a communication reads is the gradient.
 */
#include "base/order.h"
#include "io/json_pull.h"
#include "job/records.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((int64_t)1 << 50)

struct tensors_ctx {
    struct rp_json *json;
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

/* [3, 3, 64, 64]: the product; -1 where a part of it is not a number. */
static int64_t read_shape(struct tensors_ctx *r)
{
    struct rp_json_token value;
    int64_t n = 1;

    if (rp_json_value(r->json, &value) != RP_JSON_ARRAY)
        return -1;
    while (rp_json_element(r->json)) {
        char text[24];
        long long x;

        if (rp_json_value(r->json, &value) != RP_JSON_NUMBER || value.len >= sizeof text) {
            n = -1;
            continue;
        }
        memcpy(text, value.text, value.len);
        text[value.len] = '\0';
        x = strtoll(text, NULL, 10);
        n = n < 0 || x < 0 || (x && n > MOST_BYTES / x) ? -1 : n * x;
    }
    return n;
}

/* {"name": …, "shape": …, "dtype": …} */
static enum rp_code read_tensor(struct tensors_ctx *r, struct rp_job_tensor *t)
{
    struct rp_json_token key, value;
    int64_t count = -1, each = 4;

    while (rp_json_field(r->json, &key)) {
        if (rp_json_key_is(&key, "shape")) {
            count = read_shape(r);
        } else if (rp_json_key_is(&key, "name") || rp_json_key_is(&key, "dtype")) {
            bool name = rp_json_key_is(&key, "name");

            if (rp_json_value(r->json, &value) != RP_JSON_STRING)
                continue;
            if (name)
                t->name = rp_arena_copy(&r->job->arena, value.text, value.len);
            else
                each = bytes_of_dtype(value.text, value.len);
        } else {
            rp_json_skip(r->json);
        }
    }
    t->bytes = count < 0 || count > MOST_BYTES / each ? -1 : count * each;
    return RP_OK;
}

/* Of a communication: the first that it reads. */
static enum rp_code read_inputs(struct tensors_ctx *r, int64_t id)
{
    struct rp_job_tensor t = {.id = id, .bytes = -1};
    struct rp_json_token value;
    size_t n = 0;

    if (rp_json_value(r->json, &value) != RP_JSON_ARRAY)
        return RP_OK;
    while (rp_json_element(r->json)) {
        struct rp_job_tensor other = {0};

        if (rp_json_value(r->json, &value) == RP_JSON_OBJECT)
            RP_TRY(read_tensor(r, n++ ? &other : &t));
    }
    return n ? rp_vec_push(&r->job->tensors, t, r->err) : RP_OK;
}

static enum rp_code read_op(struct tensors_ctx *r, const char *name)
{
    int64_t id = rp_job_tensor_of(name);
    struct rp_json_token key, value;

    if (rp_json_value(r->json, &value) != RP_JSON_OBJECT)
        return RP_OK;
    while (rp_json_field(r->json, &key)) {
        if (id >= 0 && rp_json_key_is(&key, "input")) {
            RP_TRY(read_inputs(r, id));
        } else if (rp_json_key_is(&key, "op")) {
            struct rp_job_type type = {.op = name};

            if (rp_json_value(r->json, &value) != RP_JSON_STRING)
                continue;
            type.type = rp_arena_copy(&r->job->arena, value.text, value.len);
            RP_TRY(rp_vec_push(&r->job->types, type, r->err));
        } else {
            rp_json_skip(r->json);
        }
    }
    return RP_OK;
}

RP_ORDER(by_id, struct rp_job_tensor, RP_UP(id))

enum rp_code rp_job_read_tensors(struct rp_input *in, struct rp_job *out, struct rp_err *err)
{
    struct tensors_ctx r = {.job = out, .err = err};
    struct rp_json_token key, value;
    enum rp_code code = rp_json_open(in, NULL, &r.json, err);

    if (code == RP_OK && rp_json_value(r.json, &value) == RP_JSON_OBJECT)
        while (code == RP_OK && rp_json_field(r.json, &key)) {
            const char *name;

            if (key.has_escapes && !rp_json_decode(r.json, &key))
                break;
            name = rp_arena_copy(&out->arena, key.text, key.len);
            code = name ? read_op(&r, name) : rp_err_nomem(err, "reading operators");
        }
    if (code == RP_OK)
        code = rp_json_finish(r.json, err);
    rp_json_close(r.json);
    if (code == RP_OK)
        rp_sort(out->tensors.at, out->tensors.n, sizeof *out->tensors.at, by_id);
    return code;
}
