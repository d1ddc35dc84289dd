/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the metadata of a trace says, whatever file it is in: rank, devices, the clock, the
 * framework and its version. A value is a JSON text, which is parsed again here, so that its
 * position in the file does not matter.
 */
#include "formats/chrome/facts.h"

#include "base/decimal.h"
#include "formats/chrome/chrome.h"
#include "trace/words.h"

#include <limits.h>

#define BASE_MAX_NS (INT64_C(1) << 61) /* times are up to 2^62, so the sum fits in 64 bits */

/* -------------------------------------------------------------------------- facts */

/* An integer, also one in quotes. */
static bool int_of(const struct rp_json_token *v, int64_t *out)
{
    return (v->kind == RP_JSON_NUMBER || v->kind == RP_JSON_STRING) &&
           rp_chrome_parse_int(v->text, v->len, out);
}

static void set_rank(struct rp_chrome_facts *f, const char *key, size_t len,
                     const struct rp_json_token *v)
{
    int64_t n;

    if (!int_of(v, &n) || n < 0 || n > INT_MAX)
        return;
    if (len == 4 && memcmp(key, "rank", 4) == 0)
        rp_builder_borrow_trace(f->builder)->rank = (int32_t)n;
    else if (len == 10 && memcmp(key, "world_size", 10) == 0)
        rp_builder_borrow_trace(f->builder)->world_size = (int32_t)n;
}

/* {"backend": "nccl", "rank": 0, "world_size": 8, ...} */
static enum rp_code read_distributed(struct rp_chrome_facts *f, struct rp_json *p,
                                     struct rp_err *err)
{
    struct rp_json_token key, v;

    (void)err;
    if (rp_json_value(p, &v) != RP_JSON_OBJECT)
        return RP_OK;
    while (rp_json_field(p, &key)) {
        if (rp_chrome_at_container(p))
            rp_json_skip(p);
        else if (rp_json_value(p, &v))
            set_rank(f, key.text, key.len, &v);
    }
    return RP_OK;
}

static enum rp_code read_device(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
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
            RP_TRY(rp_builder_intern(f->builder, v.text, v.len, &device.name, err));
        } else if (int_of(&v, &n)) {
            if (rp_json_key_is(&key, "id"))
                device.id = n;
            else if (rp_json_key_is(&key, "totalGlobalMem"))
                device.memory_bytes = n;
            else if (rp_json_key_is(&key, "numSms"))
                device.multiprocessors = n;
        }
    }
    return rp_builder_add_device(f->builder, &device, err);
}

static enum rp_code read_devices(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;

    if (rp_json_value(p, &v) != RP_JSON_ARRAY)
        return RP_OK;
    while (rp_json_element(p)) {
        uint32_t depth = rp_json_depth(p);

        if (rp_json_value(p, &v) == RP_JSON_OBJECT)
            RP_TRY(read_device(f, p, err));
        rp_chrome_pass(p, depth);
    }
    return RP_OK;
}

/* baseTimeNanoseconds. */
static enum rp_code read_base(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
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
        return rp_builder_warn(f->builder, err, "baseTimeNanoseconds is out of range: ignored");
    rp_builder_borrow_trace(f->builder)->base_ns = n;
    rp_builder_borrow_trace(f->builder)->has_base = 1;
    return RP_OK;
}

static enum rp_code read_top_rank(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;

    (void)err;
    if (rp_builder_borrow_trace(f->builder)->rank == RP_NO_RANK && rp_json_value(p, &v))
        set_rank(f, "rank", 4, &v);
    return RP_OK;
}

static enum rp_code read_version(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;

    if (rp_json_value(p, &v) != RP_JSON_STRING)
        return RP_OK;
    if (!rp_json_decode(p, &v))
        return rp_json_finish(p, err);
    return rp_builder_intern(f->builder, v.text, v.len, &f->version, err);
}

static enum rp_code read_lost(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
{
    struct rp_json_token v;
    int64_t n;

    (void)err;
    if (rp_json_value(p, &v) && int_of(&v, &n) && n > 0 &&
        __builtin_add_overflow(rp_builder_borrow_trace(f->builder)->health.lost_events, n,
                               &rp_builder_borrow_trace(f->builder)->health.lost_events))
        rp_builder_borrow_trace(f->builder)->health.lost_events = INT64_MAX;
    return RP_OK;
}

static enum rp_code read_weights(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
{
    struct rp_trace *trace = rp_builder_borrow_trace(f->builder);
    struct rp_json_token key, v;

    if (rp_json_value(p, &v) != RP_JSON_OBJECT)
        return RP_OK;
    while (rp_json_field(p, &key)) {
        if (rp_chrome_at_container(p)) {
            rp_json_skip(p);
        } else if (rp_json_value(p, &v) == RP_JSON_STRING && rp_json_key_is(&key, "unit")) {
            for (uint32_t i = 0; i < RP_WEIGHT_UNITS; i++)
                if (rp_json_key_is(&v, rp_word_weight_unit(i))) {
                    trace->samples.unit = i;
                    f->has_weights = true;
                }
        } else if (v.kind == RP_JSON_STRING && rp_json_key_is(&key, "name")) {
            if (!rp_json_decode(p, &v))
                return rp_json_finish(p, err);
            RP_TRY(rp_builder_intern(f->builder, v.text, v.len, &trace->samples.unit_name, err));
        }
    }
    return RP_OK;
}

/* "AMDInstinctMI210", as rocprof writes it, is the AMD Instinct MI210. */
static enum rp_code add_agent(struct rp_chrome_facts *f, const struct rp_json_token *v,
                              struct rp_err *err)
{
    static const char joined[] = "AMDInstinct", apart[] = "AMD Instinct ";
    struct rp_device device = {0};
    char name[64];

    if (v->len <= sizeof joined - 1 || v->len + 2 >= sizeof name ||
        memcmp(v->text, joined, sizeof joined - 1) != 0)
        return RP_OK;
    memcpy(name, apart, sizeof apart - 1);
    memcpy(name + sizeof apart - 1, v->text + sizeof joined - 1, v->len - (sizeof joined - 1));
    RP_TRY(rp_builder_intern(f->builder, name, v->len + 2, &device.name, err));
    return rp_builder_add_device(f->builder, &device, err);
}

/* {"Agent3.MarketingName": "AMDInstinctMI210", ...} */
static enum rp_code read_agents(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err)
{
    static const char ending[] = ".MarketingName";
    struct rp_json_token key, v;

    if (rp_json_value(p, &v) != RP_JSON_OBJECT)
        return RP_OK;
    while (rp_json_field(p, &key)) {
        bool agent = key.len > sizeof ending - 1 && !memcmp(key.text, "Agent", 5) &&
                     !memcmp(key.text + key.len - (sizeof ending - 1), ending, sizeof ending - 1);

        if (rp_chrome_at_container(p))
            rp_json_skip(p);
        else if (rp_json_value(p, &v) == RP_JSON_STRING && agent)
            RP_TRY(add_agent(f, &v, err));
    }
    return RP_OK;
}

/* -------------------------------------------------------------------------- keys */

typedef enum rp_code read_fn(struct rp_chrome_facts *f, struct rp_json *p, struct rp_err *err);

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
    {"viztracer_metadata", NULL, RP_CHROME_VIZTRACER},
    {"otherData", read_agents, 0},
    {"droppedEvents", read_lost, 0},
    {"dropped_events", read_lost, 0},
    {"lostEvents", read_lost, 0},
    {"lost_events", read_lost, 0},
    {RP_CHROME_WEIGHTS, read_weights, 0},
    {NULL, NULL, 0},
};

/* Parses the value. There are no syntax errors: it was parsed before, or is no fact. */
static enum rp_code parse_fact(struct rp_chrome_facts *f, read_fn *read, const char *json, size_t n,
                               struct rp_err *err)
{
    struct rp_input *in = NULL;
    struct rp_json *p = NULL;
    enum rp_code code = rp_input_open_memory("header", json, n, NULL, &in, err);

    if (code == RP_OK)
        code = rp_json_open(in, NULL, &p, err);
    if (code == RP_OK)
        code = read(f, p, err);
    if (code == RP_OK && rp_json_failed(p)) {
        code = rp_json_finish(p, err);
        code = code == RP_NOMEM ? code : RP_OK;
    }
    rp_json_close(p);
    rp_input_close(in);
    return code;
}

enum rp_code rp_chrome_read_fact(struct rp_chrome_facts *f, const char *key, size_t len,
                                 const char *json, size_t n, struct rp_err *err)
{
    size_t i = 0;

    while (keys[i].key && (strlen(keys[i].key) != len || memcmp(keys[i].key, key, len) != 0))
        i++;
    f->signs |= keys[i].signs;
    return keys[i].read ? parse_fact(f, keys[i].read, json, n, err) : RP_OK;
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
    if (signs & RP_CHROME_XPROF)
        return "xprof";
    if (signs & RP_CHROME_VIZTRACER)
        return "viztracer";
    if (signs & RP_CHROME_ROCPROF)
        return "rocprof";
    return signs & RP_CHROME_RAY ? "ray" : NULL;
}

enum rp_code rp_chrome_end_facts(struct rp_chrome_facts *f, struct rp_err *err)
{
    const char *framework = framework_of(f->signs);
    struct rp_trace *trace = rp_builder_borrow_trace(f->builder);

    if (framework)
        RP_TRY(rp_builder_intern(f->builder, framework, strlen(framework), &trace->framework, err));
    trace->framework_version = framework ? f->version : 0;
    return RP_OK;
}
