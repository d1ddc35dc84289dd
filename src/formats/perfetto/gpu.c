/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPU drivers and profilers write themselves: a render stage event is a span of a queue of a
 * GPU, with its duration; a counter event has values of several counters. Each GPU is a process.
 */
#include "formats/perfetto/perfetto.h"

#include <stdio.h>

struct stage {
    uint64_t duration, queue, stage, gpu, submission, name_iid;
    bool has_queue_iid, has_stage_iid, has_submission;
    struct rp_bytes name;
};

static enum rp_code add_extra(struct rp_perfetto *r, struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_arg arg = {.type = RP_ARG_STR};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_BYTES && it.number == RP_PFT_EXTRA_NAME)
            RP_TRY(rp_proto_trace_intern(&r->t, it.bytes, &arg.key, err));
        else if (it.wire == RP_WIRE_BYTES && it.number == RP_PFT_EXTRA_VALUE)
            RP_TRY(rp_proto_trace_intern(&r->t, it.bytes, &arg.v.s, err));
    RP_TRY(rp_proto_finish(&c, err));
    return arg.key ? rp_vec_push(&r->args, arg, err) : RP_OK;
}

static enum rp_code parse_stage(struct rp_perfetto *r, struct rp_proto_cursor c, struct stage *s,
                                struct rp_err *err)
{
    struct rp_proto_item it;

    *s = (struct stage){0};
    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_PFT_STAGE_DURATION, RP_WIRE_VARINT):
            s->duration = it.value;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_HW_QUEUE_ID, RP_WIRE_VARINT):
        case RP_PROTO_KEY(RP_PFT_STAGE_HW_QUEUE_IID, RP_WIRE_VARINT):
            s->queue = it.value;
            s->has_queue_iid = it.number == RP_PFT_STAGE_HW_QUEUE_IID;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_STAGE_ID, RP_WIRE_VARINT):
        case RP_PROTO_KEY(RP_PFT_STAGE_STAGE_IID, RP_WIRE_VARINT):
            s->stage = it.value;
            s->has_stage_iid = it.number == RP_PFT_STAGE_STAGE_IID;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_GPU_ID, RP_WIRE_VARINT):
            s->gpu = it.value;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_SUBMISSION_ID, RP_WIRE_VARINT):
            s->submission = it.value;
            s->has_submission = true;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_NAME, RP_WIRE_BYTES):
            s->name = it.bytes;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_NAME_IID, RP_WIRE_VARINT):
            s->name_iid = it.value;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_EXTRA_DATA, RP_WIRE_BYTES):
            RP_TRY(add_extra(r, rp_proto_enter(&c, &it), err));
            break;
        default:
            break;
        }
    return rp_proto_finish(&c, err);
}

/* The text of a specification, or "queue 3" where there is none. */
static enum rp_code spec_name(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              bool interned, uint64_t id, const char *what, rp_str *out,
                              struct rp_err *err)
{
    char text[48];

    *out = interned ? rp_perfetto_interned(r, packet->seq, RP_PFT_GPU_SPECS, id) : 0;
    if (*out)
        return RP_OK;
    snprintf(text, sizeof text, "%s %llu", what, (unsigned long long)id);
    return rp_proto_trace_text(&r->t, text, out, err);
}

static enum rp_code stage_name(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                               const struct stage *s, rp_str *out, struct rp_err *err)
{
    *out = s->name_iid ? rp_perfetto_interned(r, packet->seq, RP_PFT_NAMES, s->name_iid) : 0;
    if (s->name.n)
        return rp_proto_trace_intern(&r->t, s->name, out, err);
    return *out ? RP_OK : spec_name(r, packet, s->has_stage_iid, s->stage, "stage", out, err);
}

static uint8_t stage_kind(const char *name)
{
    if (strcasestr(name, "memcpy") || strcasestr(name, "copy buffer"))
        return RP_KIND_MEMCPY;
    return strcasestr(name, "memset") ? RP_KIND_MEMSET : RP_KIND_KERNEL;
}

enum rp_code rp_perfetto_read_stage(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                    struct rp_err *err)
{
    struct rp_origin origin = {.phase = 'X', .flags = RP_ORIGIN_GPU, .has_category = 1};
    struct rp_raw raw = {0};
    struct stage s;
    char process[32];
    rp_str queue;

    r->args.n = 0;
    RP_TRY(parse_stage(r, rp_proto_enter(&packet->c, &packet->data), &s, err));
    if (s.has_queue_iid && !rp_perfetto_interned(r, packet->seq, RP_PFT_GPU_SPECS, s.queue)) {
        r->stateless++;
        return RP_OK;
    }
    RP_TRY(spec_name(r, packet, s.has_queue_iid, s.queue, "queue", &queue, err));
    RP_TRY(stage_name(r, packet, &s, &raw.name, err));
    if (s.has_submission) {
        struct rp_arg arg = {.type = RP_ARG_I64, .v.i = (int64_t)s.submission};

        RP_TRY(rp_proto_trace_word(&r->t, "submission_id", &arg.key, err));
        RP_TRY(rp_vec_push(&r->args, arg, err));
    }
    snprintf(process, sizeof process, "GPU %u", (unsigned)s.gpu);
    RP_TRY(rp_perfetto_own_track(r, process, queue, &raw.track, err));
    RP_TRY(rp_perfetto_time(r, packet, &raw.ts_ns, err));
    raw.dur_ns = rp_proto_trace_clamp(&r->t, s.duration);
    origin.kind = stage_kind(rp_builder_borrow_str(r->t.builder, raw.name, NULL));
    RP_TRY(rp_proto_trace_word(&r->t, "gpu_render_stage", &origin.category, err));
    RP_TRY(rp_builder_origin(r->t.builder, &origin, &raw.origin, err));
    raw.args = r->args.at;
    raw.nargs = (uint32_t)r->args.n;
    if (raw.nargs)
        RP_TRY(rp_builder_shape(r->t.builder, raw.args, raw.nargs, &raw.shape, err));
    r->t.nevents++;
    return rp_builder_add(r->t.builder, &raw, err);
}

/* ------------------------------------------------------------------ counters */

static enum rp_code read_specs(struct rp_perfetto *r, struct rp_proto_cursor c, uint64_t gpu,
                               struct rp_err *err)
{
    struct rp_proto_item it, field;

    while (rp_proto_next(&c, &it)) {
        struct rp_proto_cursor inner;
        uint64_t id = 0;
        rp_str name = 0;

        if (it.number != RP_PFT_GPU_DESCRIPTOR_SPECS || it.wire != RP_WIRE_BYTES)
            continue;
        inner = rp_proto_enter(&c, &it);
        while (rp_proto_next(&inner, &field))
            if (field.number == RP_PFT_GPU_SPEC_COUNTER_ID && field.wire == RP_WIRE_VARINT)
                id = field.value;
            else if (field.number == RP_PFT_GPU_SPEC_NAME && field.wire == RP_WIRE_BYTES)
                RP_TRY(rp_proto_trace_intern(&r->t, field.bytes, &name, err));
        RP_TRY(rp_proto_finish(&inner, err));
        RP_TRY(rp_map_put(&r->gpu_names, rp_hash_join(gpu, id), name, err));
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_value(struct rp_perfetto *r, struct rp_proto_cursor c, uint64_t gpu,
                               int64_t ns, struct rp_err *err)
{
    struct rp_arg value = {.type = RP_ARG_I64};
    struct rp_proto_item it;
    char process[32], text[40];
    uint64_t id = 0;
    rp_track track;
    rp_str name;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_PFT_GPU_VALUE_COUNTER_ID && it.wire == RP_WIRE_VARINT) {
            id = it.value;
        } else if (it.number == RP_PFT_GPU_VALUE_INT_VALUE && it.wire == RP_WIRE_VARINT) {
            value.v.i = (int64_t)it.value;
        } else if (it.number == RP_PFT_GPU_VALUE_DOUBLE_VALUE && it.wire == RP_WIRE_FIXED64) {
            value.type = RP_ARG_F64;
            value.v.f = rp_proto_double(it.value);
        }
    RP_TRY(rp_proto_finish(&c, err));
    name = rp_map_get(&r->gpu_names, rp_hash_join(gpu, id));
    if (name == RP_MAP_NONE) {
        snprintf(text, sizeof text, "counter %llu", (unsigned long long)id);
        RP_TRY(rp_proto_trace_text(&r->t, text, &name, err));
    }
    snprintf(process, sizeof process, "GPU %u", (unsigned)gpu);
    RP_TRY(rp_perfetto_own_track(r, process, name, &track, err));
    return rp_perfetto_add_counter(r, track, ns, name, value, err);
}

enum rp_code rp_perfetto_read_gpu_counters(struct rp_perfetto *r,
                                           const struct rp_perfetto_packet *packet,
                                           struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data), scan = c;
    struct rp_proto_item it;
    uint64_t gpu = 0;
    int64_t ns;

    RP_TRY(rp_perfetto_time(r, packet, &ns, err));
    while (rp_proto_next(&scan, &it))
        if (it.number == RP_PFT_GPU_COUNTERS_GPU_ID && it.wire == RP_WIRE_VARINT)
            gpu = it.value;
    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_PFT_GPU_COUNTERS_COUNTER_DESCRIPTOR)
            RP_TRY(read_specs(r, rp_proto_enter(&c, &it), gpu, err));
        else if (it.number == RP_PFT_GPU_COUNTERS_COUNTERS)
            RP_TRY(read_value(r, rp_proto_enter(&c, &it), gpu, ns, err));
    }
    return rp_proto_finish(&c, err);
}

/* ------------------------------------------------------------------ names of GPUs */

enum rp_code rp_perfetto_read_gpus(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                   struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_device device = {0};
    struct rp_proto_item it;

    for (; rp_proto_next(&c, &it); device.id++) {
        if (it.number != RP_PFT_GPU_INFO_GPUS || it.wire != RP_WIRE_BYTES)
            continue;
        RP_TRY(rp_proto_trace_intern(&r->t, rp_proto_find(it.bytes, RP_PFT_GPU_NAME), &device.name,
                                     err));
        RP_TRY(rp_builder_add_device(r->t.builder, &device, err));
    }
    return rp_proto_finish(&c, err);
}
