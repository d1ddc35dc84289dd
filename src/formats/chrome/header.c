/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything beside the list of events. Every top-level key is kept as raw JSON without white
 * space, in order, before or after the events; a value over META_BYTES is skipped with a warning. A
 * few of them are interpreted with a second parser over the kept text, so that their position in
 * the file does not matter.
 */
#include "base/decimal.h"
#include "formats/chrome/chrome.h"

#include <limits.h>

#define META_BYTES  (16u << 20)
#define BASE_MAX_NS (INT64_C(1) << 61) /* times are up to 2^62, so the sum fits in 64 bits */

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

/* The next element, field or end of the innermost container. */
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

/* -------------------------------------------------------------------------- facts */

/* An integer, also one in quotes. */
static bool int_of(const struct rp_json_token *v, int64_t *out)
{
    return (v->kind == RP_JSON_NUMBER || v->kind == RP_JSON_STRING) &&
           rp_chrome_parse_int(v->text, v->len, out);
}

static void set_rank(struct rp_chrome *r, const char *key, size_t len,
                     const struct rp_json_token *v)
{
    int64_t n;

    if (!int_of(v, &n) || n < 0 || n > INT_MAX)
        return;
    if (len == 4 && memcmp(key, "rank", 4) == 0)
        r->trace->rank = (int32_t)n;
    else if (len == 10 && memcmp(key, "world_size", 10) == 0)
        r->trace->world_size = (int32_t)n;
}

/* {"backend": "nccl", "rank": 0, "world_size": 8, ...} */
static enum rp_code read_distributed(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token key, v;

    (void)err;
    if (rp_json_value(p, &v) != RP_JSON_OBJECT)
        return RP_OK;
    while (rp_json_field(p, &key)) {
        if (rp_chrome_at_container(p))
            rp_json_skip(p);
        else if (rp_json_value(p, &v))
            set_rank(r, key.text, key.len, &v);
    }
    return RP_OK;
}

static enum rp_code read_device(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_device device = {0};
    struct rp_json_token key, v;
    int64_t n;

    while (rp_json_field(p, &key)) {
        if (rp_chrome_at_container(p)) {
            rp_json_skip(p);
            continue;
        }
        if (!rp_json_value(p, &v))
            break;
        if (rp_json_key_is(&key, "name") && v.kind == RP_JSON_STRING) {
            if (!rp_json_decode(p, &v))
                return rp_json_finish(p, err);
            RP_TRY(rp_chrome_intern(r, v.text, v.len, &device.name, err));
        } else if (int_of(&v, &n)) {
            if (rp_json_key_is(&key, "id"))
                device.id = n;
            else if (rp_json_key_is(&key, "totalGlobalMem"))
                device.memory_bytes = n;
            else if (rp_json_key_is(&key, "numSms"))
                device.multiprocessors = n;
        }
    }
    return rp_builder_add_device(r->builder, &device, err);
}

static enum rp_code read_devices(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;

    if (rp_json_value(p, &v) != RP_JSON_ARRAY)
        return RP_OK;
    while (rp_json_element(p)) {
        uint32_t depth = rp_json_depth(p);

        if (rp_json_value(p, &v) == RP_JSON_OBJECT)
            RP_TRY(read_device(r, p, err));
        rp_chrome_pass(p, depth);
    }
    return RP_OK;
}

/* baseTimeNanoseconds. */
static enum rp_code read_base(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;
    unsigned flags;
    int64_t n;

    if (!rp_json_value(p, &v) || (v.kind != RP_JSON_NUMBER && v.kind != RP_JSON_STRING))
        return RP_OK;
    flags = rp_decimal_parse(v.text, v.len, 0, &n); /* may be written as 1.5e18 */
    if (flags & RP_DECIMAL_INVALID)
        return RP_OK;
    if ((flags & RP_DECIMAL_RANGE) || n > BASE_MAX_NS || n < -BASE_MAX_NS)
        return rp_builder_warn(r->builder, err, "baseTimeNanoseconds is out of range: ignored");
    r->trace->base_ns = n;
    r->trace->has_base = 1;
    return RP_OK;
}

static enum rp_code read_top_rank(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;

    (void)err;
    if (r->trace->rank == RP_NO_RANK && rp_json_value(p, &v))
        set_rank(r, "rank", 4, &v);
    return RP_OK;
}

static enum rp_code read_version(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;

    if (rp_json_value(p, &v) != RP_JSON_STRING)
        return RP_OK;
    if (!rp_json_decode(p, &v))
        return rp_json_finish(p, err);
    return rp_chrome_intern(r, v.text, v.len, &r->version, err);
}

static enum rp_code read_lost(struct rp_chrome *r, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;
    int64_t n;

    (void)err;
    if (rp_json_value(p, &v) && int_of(&v, &n) && n > 0 &&
        __builtin_add_overflow(r->health->lost_events, n, &r->health->lost_events))
        r->health->lost_events = INT64_MAX;
    return RP_OK;
}

/* -------------------------------------------------------------------------- keys */

typedef enum rp_code read_fn(struct rp_chrome *r, struct rp_json *p, struct rp_err *err);

static const struct {
    const char *key;
    read_fn *read; /* reads the value; NULL: the key only shows who wrote the file */
    uint8_t signs;
} keys[] = {
    {"schemaVersion", NULL, RP_CHROME_KINETO},
    {"deviceProperties", read_devices, RP_CHROME_KINETO},
    {"distributedInfo", read_distributed, RP_CHROME_KINETO},
    {"baseTimeNanoseconds", read_base, 0},
    {"rank", read_top_rank, 0},
    {"pytorch_version", read_version, RP_CHROME_KINETO},
    {"torch_version", read_version, RP_CHROME_KINETO},
    {"jax_version", read_version, RP_CHROME_JAX},
    {"tensorflow_version", read_version, RP_CHROME_TF_TIMELINE},
    {"horovod_version", read_version, RP_CHROME_HOROVOD},
    {"droppedEvents", read_lost, 0},
    {"dropped_events", read_lost, 0},
    {"lostEvents", read_lost, 0},
    {"lost_events", read_lost, 0},
    {NULL, NULL, 0},
};

/* Parses the kept text. There are no syntax errors: it was parsed before. */
static enum rp_code read_fact(struct rp_chrome *r, read_fn *read, struct rp_err *err)
{
    struct rp_input *in = NULL;
    struct rp_json *p = NULL;
    enum rp_code code;

    code = rp_input_open_memory("header", r->scratch.at, r->scratch.n, NULL, &in, err);
    if (code == RP_OK)
        code = rp_json_open(in, NULL, &p, err);
    if (code == RP_OK)
        code = read(r, p, err);
    if (code == RP_OK && rp_json_failed(p)) {
        code = rp_json_finish(p, err);
        code = code == RP_NOMEM ? code : RP_OK;
    }
    rp_json_close(p);
    rp_input_close(in);
    return code;
}

enum rp_code rp_chrome_read_header(struct rp_chrome *r, struct rp_json_token *token,
                                   struct rp_err *err)
{
    struct keep k = {.r = r};
    rp_str key, value;
    size_t i = 0;

    while (keys[i].key &&
           (strlen(keys[i].key) != token->len || memcmp(keys[i].key, token->text, token->len) != 0))
        i++;
    RP_TRY(rp_chrome_intern_token(r, token, &key, err));
    RP_TRY(keep_value(&k, err));
    if (rp_json_failed(r->json))
        return RP_OK;
    if (k.too_long) {
        size_t len;

        return rp_builder_warn(r->builder, err,
                               "the value of '%.80s' is larger than %u MiB and was skipped",
                               rp_builder_borrow_str(r->builder, key, &len), META_BYTES >> 20);
    }
    r->signs |= keys[i].signs;
    if (keys[i].read)
        RP_TRY(read_fact(r, keys[i].read, err));
    RP_TRY(rp_chrome_intern(r, r->scratch.at, r->scratch.n, &value, err));
    return rp_builder_add_meta(r->builder, key, value, r->has_list, err);
}

/* -------------------------------------------------------------------------- the framework */

static const char *framework_of(unsigned signs)
{
    if (signs & RP_CHROME_KINETO)
        return "pytorch";
    if (signs & RP_CHROME_JAX)
        return "jax";
    if (signs & RP_CHROME_HOROVOD)
        return "horovod";
    if (signs & RP_CHROME_TF_TIMELINE)
        return "tensorflow";
    return signs & RP_CHROME_XPROF ? "xprof" : NULL;
}

enum rp_code rp_chrome_end_header(struct rp_chrome *r, struct rp_err *err)
{
    const char *framework = framework_of(r->signs);

    if (framework)
        RP_TRY(rp_chrome_intern(r, framework, strlen(framework), &r->trace->framework, err));
    r->trace->framework_version = framework ? r->version : 0;
    return RP_OK;
}
