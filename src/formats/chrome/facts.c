/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the metadata of a trace says, whatever file it is in: rank, devices, the clock, the
 * framework and its version. A value is a JSON text, which is parsed again here, so that its
 * position in the file does not matter.
 */
#include "formats/chrome/facts.h"

#include "base/decimal.h"
#include "base/text.h"
#include "formats/chrome/chrome.h"
#include "io/json_tree.h"
#include "trace/words.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define BASE_MAX_NS (INT64_C(1) << 61) /* times are at most 2^62, so the sum fits in 64 bits */

/* -------------------------------------------------------------------------- facts */

/* Reads an integer, which may be in quotes. */
static bool int_of(const struct rp_json_node *v, int64_t *out)
{
    return (v->kind == RP_JSON_NUMBER || v->kind == RP_JSON_STRING) &&
           rp_chrome_parse_int(v->text, v->len, out);
}

static void set_rank(const struct rp_json_node *v, int32_t *to)
{
    int64_t n;

    if (int_of(v, &n) && n >= 0 && n <= INT_MAX)
        *to = (int32_t)n;
}

/* {"backend": "nccl", "rank": 0, "world_size": 8, ...} */
static enum rp_code read_distributed(struct rp_chrome_facts *f, const struct rp_json_node *v,
                                     struct rp_err *err)
{
    struct rp_trace *trace = rp_builder_borrow_trace(f->builder);

    (void)err;
    set_rank(rp_json_get(v, "rank"), &trace->rank);
    set_rank(rp_json_get(v, "world_size"), &trace->world_size);
    return RP_OK;
}

static enum rp_code read_devices(struct rp_chrome_facts *f, const struct rp_json_node *v,
                                 struct rp_err *err)
{
    RP_JSON_EACH(item, v)
    {
        const struct rp_json_node *name = rp_json_get(item, "name");
        struct rp_device device = {0};

        if (v->kind != RP_JSON_ARRAY || item->kind != RP_JSON_OBJECT)
            continue;
        if (rp_json_text(name))
            RP_TRY(rp_builder_intern(f->builder, name->text, name->len, &device.name, err));
        int_of(rp_json_get(item, "id"), &device.id);
        int_of(rp_json_get(item, "totalGlobalMem"), &device.memory_bytes);
        int_of(rp_json_get(item, "numSms"), &device.multiprocessors);
        RP_TRY(rp_builder_add_device(f->builder, &device, err));
    }
    return RP_OK;
}

/* baseTimeNanoseconds, which may be written as 1.5e18. */
static enum rp_code read_base(struct rp_chrome_facts *f, const struct rp_json_node *v,
                              struct rp_err *err)
{
    int64_t n;
    unsigned flags = rp_decimal_parse(v->text, v->len, 0, &n);

    if (flags & RP_DECIMAL_INVALID)
        return RP_OK;
    if ((flags & RP_DECIMAL_RANGE) || n > BASE_MAX_NS || n < -BASE_MAX_NS)
        return rp_builder_warn(f->builder, err, "baseTimeNanoseconds is out of range: ignored");
    rp_builder_borrow_trace(f->builder)->base_ns = n;
    rp_builder_borrow_trace(f->builder)->has_base = 1;
    return RP_OK;
}

static enum rp_code read_top_rank(struct rp_chrome_facts *f, const struct rp_json_node *v,
                                  struct rp_err *err)
{
    struct rp_trace *trace = rp_builder_borrow_trace(f->builder);

    (void)err;
    if (trace->rank == RP_NO_RANK)
        set_rank(v, &trace->rank);
    return RP_OK;
}

static enum rp_code read_version(struct rp_chrome_facts *f, const struct rp_json_node *v,
                                 struct rp_err *err)
{
    return rp_json_text(v) ? rp_builder_intern(f->builder, v->text, v->len, &f->version, err)
                           : RP_OK;
}

static enum rp_code read_lost(struct rp_chrome_facts *f, const struct rp_json_node *v,
                              struct rp_err *err)
{
    int64_t n, *lost = &rp_builder_borrow_trace(f->builder)->health.lost_events;

    (void)err;
    if (int_of(v, &n) && n > 0 && __builtin_add_overflow(*lost, n, lost))
        *lost = INT64_MAX;
    return RP_OK;
}

static enum rp_code read_weights(struct rp_chrome_facts *f, const struct rp_json_node *v,
                                 struct rp_err *err)
{
    struct rp_trace *trace = rp_builder_borrow_trace(f->builder);
    const struct rp_json_node *unit = rp_json_get(v, "unit"), *name = rp_json_get(v, "name");

    for (uint32_t i = 0; i < RP_WEIGHT_UNITS; i++)
        if (rp_json_text(unit) && !strcmp(unit->text, rp_word_weight_unit(i))) {
            trace->samples.unit = i;
            f->has_weights = true;
        }
    return rp_json_text(name) ? rp_builder_intern(f->builder, name->text, name->len,
                                                  &trace->samples.unit_name, err)
                              : RP_OK;
}

/* {"Agent3.MarketingName": "AMDInstinctMI210", ...}: rocprof's name of the AMD Instinct MI210. */
static enum rp_code read_agents(struct rp_chrome_facts *f, const struct rp_json_node *v,
                                struct rp_err *err)
{
    static const char joined[] = "AMDInstinct";

    RP_JSON_EACH(item, v)
    {
        struct rp_device device = {0};
        char name[64];

        if (v->kind != RP_JSON_OBJECT || !rp_text_begins(item->key, "Agent") ||
            !rp_text_ends(item->key, ".MarketingName") || !rp_text_begins(item->text, joined) ||
            item->len < sizeof joined || item->len + 2 >= sizeof name)
            continue;
        snprintf(name, sizeof name, "AMD Instinct %s", item->text + sizeof joined - 1);
        RP_TRY(rp_builder_intern(f->builder, name, item->len + 2, &device.name, err));
        RP_TRY(rp_builder_add_device(f->builder, &device, err));
    }
    return RP_OK;
}

/* -------------------------------------------------------------------------- keys */

typedef enum rp_code read_fn(struct rp_chrome_facts *f, const struct rp_json_node *v,
                             struct rp_err *err);

static const struct {
    const char *key;
    read_fn *read; /* reads the value; NULL if the key only shows who wrote the file */
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

/* Parses the value. A syntax error is ignored: the value was parsed before, or it is not a fact. */
static enum rp_code parse_fact(struct rp_chrome_facts *f, read_fn *read, const char *json, size_t n,
                               struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    const struct rp_json_node *v;
    enum rp_code code = rp_json_tree_parse("header", json, n, &arena, &v, err);

    if (code == RP_OK)
        code = read(f, v, err);
    else if (code != RP_NOMEM)
        code = RP_OK;
    rp_arena_release(&arena);
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
