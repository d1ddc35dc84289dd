/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads everything except the events. The statistics of a plane become one JSON object, under
 * "xplane <name>"; a few of them are interpreted: devices, the version of the framework, the start
 * of the profile. The programs in /host:metadata are listed with their sizes only. Errors and
 * warnings of the profiler become warnings of the trace.
 */
#include "formats/xprof/xplane.h"

#include "io/escaped.h"

#include <stdio.h>
#include <stdlib.h>

#define PROGRAMS_MAX 1000
#define NOTES_MAX    20
#define TEXT_MAX     4096 /* longest text in the metadata */
#define ABSOLUTE_NS                                                                               \
    INT64_C(100000000000000000) /* 1973; a larger value is a time since 1970, not since the start \
                                 */
#define BASE_MAX_NS (INT64_C(1) << 61) /* times are at most 2^62, so the sum fits in 64 bits */

/* -------------------------------------------------------------------------- JSON */

static void put_text(struct rp_emit *e, struct rp_bytes text)
{
    rp_emit_escaped(e, RP_IN_JSON, (const char *)text.at, text.n < TEXT_MAX ? text.n : TEXT_MAX);
}

static void put_str(struct rp_xplane *r, rp_str s)
{
    size_t n;
    const char *text = rp_builder_borrow_str(r->t.builder, s, &n);

    put_text(&r->json, (struct rp_bytes){(const uint8_t *)text, n});
}

static void put_value(struct rp_xplane *r, const struct rp_arg *arg)
{
    size_t n;

    if (arg->type == RP_ARG_I64) {
        rp_emit_i64(&r->json, arg->v.i);
    } else if (arg->type == RP_ARG_F64) {
        r->json.at = rp_put_f64(rp_emit_room(&r->json, RP_PUT_F64_MAX), arg->v.f);
    } else if (arg->type == RP_ARG_RAW) {
        const char *raw = rp_builder_borrow_str(r->t.builder, arg->v.s, &n);

        rp_emit_bytes(&r->json, raw, n);
    } else {
        put_str(r, arg->v.s);
    }
}

/* Puts a comma, unless this is the first element of its list. */
static void put_separator(struct rp_emit *e)
{
    char last = rp_emit_length(e) ? e->at[-1] : 0;

    if (last != '{' && last != '[')
        rp_emit_char(e, ',');
}

/* -------------------------------------------------------------------------- facts */

static bool named(const struct rp_xplane *r, rp_str key, const char *name)
{
    return strcmp(rp_builder_borrow_str(r->t.builder, key, NULL), name) == 0;
}

static const struct {
    const char *key;
    unsigned sign;
} versions[] = {
    {"jax_version", RP_XPLANE_JAX},       {"tensorflow_version", RP_XPLANE_TENSORFLOW},
    {"tf_version", RP_XPLANE_TENSORFLOW}, {"torch_xla_version", RP_XPLANE_TORCH},
    {"torch_version", RP_XPLANE_TORCH},
};

/* What the statistics of its plane say about a device. */
struct device {
    struct rp_device is;
    rp_str vendor;
};

/* "/device:GPU:3" is device 3; a device without a name is named after its vendor. */
static enum rp_code add_device(struct rp_xplane *r, struct device *d, struct rp_err *err)
{
    const char *kind = r->plane_kind == RP_XPLANE_GPU ? "GPU" : "TPU";
    char number[12] = "", name[100];
    size_t at = sizeof "/device:GPU:" - 1, n = r->plane_name.n - at;
    const char *vendor = rp_builder_borrow_str(r->t.builder, d->vendor, NULL);

    if (n == 0 || n >= sizeof number)
        return RP_OK;
    memcpy(number, r->plane_name.at + at, n);
    if (strspn(number, "0123456789") != n) /* "/device:TPU:0 SparseCore 0" is a part of a device */
        return RP_OK;
    d->is.id = strtoll(number, NULL, 10);
    if (!d->is.name && !rp_device_name_by_size(&d->is)) {
        snprintf(name, sizeof name, "%.80s%s%s", vendor, *vendor ? " " : "", kind);
        RP_TRY(rp_proto_trace_text(&r->t, name, &d->is.name, err));
    }
    return rp_builder_add_device(r->t.builder, &d->is, err);
}

static enum rp_code put_stat(struct rp_xplane *r, const struct rp_proto_cursor *plane,
                             const struct rp_proto_item *item, struct device *d, struct rp_err *err)
{
    struct rp_xplane_value v;
    struct rp_arg arg;
    uint32_t stat;

    RP_TRY(rp_xplane_read_value(plane, item, &v, err));
    RP_TRY(rp_xplane_stat(r, v.metadata, &stat, err));
    RP_TRY(rp_xplane_argument(r, &v, &r->stats.at[stat], &arg, err));

    /* Facts about the device and the run that the trace keeps. */
    bool number = arg.type == RP_ARG_I64, text = arg.type == RP_ARG_STR;
    for (size_t i = 0; text && i < sizeof versions / sizeof *versions; i++)
        if (named(r, arg.key, versions[i].key)) {
            r->signs |= versions[i].sign;
            r->version = arg.v.s;
        }
    if (number && named(r, arg.key, "profile_start_time"))
        r->start_ns = arg.v.i;
    else if (text &&
             (named(r, arg.key, "gpu_device_name") || named(r, arg.key, "device_type_string")))
        d->is.name = arg.v.s;
    else if (text && named(r, arg.key, "device_vendor"))
        d->vendor = arg.v.s;
    else if (number && named(r, arg.key, "memory_size"))
        d->is.memory_bytes = arg.v.i;
    else if (number && named(r, arg.key, "core_count"))
        d->is.multiprocessors = arg.v.i;
    put_separator(&r->json);
    put_str(r, arg.key);
    rp_emit_char(&r->json, ':');
    put_value(r, &arg);
    return RP_OK;
}

static enum rp_code put_programs(struct rp_xplane *r, const struct rp_proto_cursor *plane,
                                 struct rp_err *err)
{
    struct rp_proto_cursor c = *plane;
    struct rp_proto_item it;
    uint32_t count = 0, label;

    put_separator(&r->json);
    rp_emit_text(&r->json, "\"programs\":[");
    while (rp_proto_next(&c, &it) && count < PROGRAMS_MAX) {
        struct rp_proto_item key;

        if (it.number != RP_XPLANE_EVENT_METADATA || it.wire != RP_WIRE_BYTES)
            continue;
        struct rp_proto_cursor entry = rp_proto_enter(&c, &it);
        if (!rp_proto_next(&entry, &key) || key.number != RP_XENTRY_KEY ||
            key.wire != RP_WIRE_VARINT)
            continue;
        RP_TRY(rp_xplane_label(r, (int64_t)key.value, &label, err));

        /* Writes an event_metadata without events as {"name":"jit_step(7)","Hlo
           Proto.size_bytes":39584}. */
        put_separator(&r->json);
        rp_emit_text(&r->json, "{\"name\":");
        put_str(r, r->labels.at[label].long_name ? r->labels.at[label].long_name
                                                 : r->labels.at[label].name);
        for (uint32_t i = 0; i < r->labels.at[label].nargs; i++) {
            const struct rp_arg *arg = &r->label_args.at[r->labels.at[label].args + i];
            put_separator(&r->json);
            put_str(r, arg->key);
            rp_emit_char(&r->json, ':');
            put_value(r, arg);
        }
        rp_emit_char(&r->json, '}');
        count++;
    }
    rp_emit_char(&r->json, ']');
    if (r->labels.n > count)
        return rp_builder_warn(r->t.builder, err, "only %u of %zu programs are listed", count,
                               r->labels.n);
    return RP_OK;
}

enum rp_code rp_xplane_read_facts(struct rp_xplane *r, const struct rp_proto_cursor *plane,
                                  struct rp_err *err)
{
    struct rp_proto_cursor c = *plane;
    struct device device = {0};
    struct rp_proto_item it;
    char key[200];

    rp_emit_reset(&r->json);
    rp_emit_char(&r->json, '{');
    while (rp_proto_next_bytes(&c, RP_XPLANE_STATS, &it))
        RP_TRY(put_stat(r, &c, &it, &device, err));
    if (rp_bytes_are(r->plane_name, "/host:metadata") && r->labels.n)
        RP_TRY(put_programs(r, plane, err));
    rp_emit_char(&r->json, '}');
    if (r->plane_kind == RP_XPLANE_GPU || r->plane_kind == RP_XPLANE_TPU)
        RP_TRY(add_device(r, &device, err));
    if (rp_emit_length(&r->json) == 2)
        return RP_OK;
    snprintf(key, sizeof key, "xplane %.*s", (int)(r->plane_name.n < 150 ? r->plane_name.n : 150),
             (const char *)r->plane_name.at);
    return rp_proto_trace_meta(&r->t, key, &r->json, err);
}

/* -------------------------------------------------------------------------- the whole file */

enum rp_code rp_xplane_read_note(struct rp_xplane *r, const struct rp_proto_item *item,
                                 uint32_t *count, struct rp_err *err)
{
    int n = (int)(item->bytes.n < 400 ? item->bytes.n : 400);

    if (++*count > NOTES_MAX)
        return RP_OK;
    if (item->number != RP_XSPACE_HOSTNAMES)
        return rp_builder_warn(r->t.builder, err, "the profiler %s: %.*s",
                               item->number == RP_XSPACE_ERRORS ? "reports an error" : "warns", n,
                               (const char *)item->bytes.at);
    rp_emit_reset(&r->json);
    put_text(&r->json, item->bytes);
    return rp_proto_trace_meta(&r->t, "hostname", &r->json, err);
}

static const char *framework_of(unsigned signs)
{
    if (signs & RP_XPLANE_JAX)
        return "jax";
    if (signs & RP_XPLANE_TORCH)
        return "pytorch";
    return signs & RP_XPLANE_TENSORFLOW ? "tensorflow" : "xprof";
}

enum rp_code rp_xplane_end_facts(struct rp_xplane *r, struct rp_err *err)
{
    struct rp_builder *b = r->t.builder;

    /* Times of lines count since 1970, or since the start of the profile. */
    struct rp_trace *trace = r->t.trace;
    if (r->latest_ns >= ABSOLUTE_NS) {
        trace->has_base = 1;
    } else if (r->start_ns > 0 && r->start_ns <= BASE_MAX_NS) {
        trace->base_ns = r->start_ns;
        trace->has_base = 1;
    }
    RP_TRY(rp_proto_trace_text(&r->t, framework_of(r->signs), &r->t.trace->framework, err));
    r->t.trace->framework_version = r->version;
    if (r->aggregated)
        RP_TRY(rp_builder_warn(
            b, err,
            "%llu events are totals without a time; they are kept as metadata of their thread",
            (unsigned long long)r->aggregated));
    if (r->subnano)
        RP_TRY(rp_builder_warn(
            b, err,
            "%llu events have times with fractions of a nanosecond: they are rounded; exact values are in the "
            "arguments offset_ps and duration_ps",
            (unsigned long long)r->subnano));
    return RP_OK;
}
