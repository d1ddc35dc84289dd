/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what GPU drivers and profilers write: a render stage event is a span in a queue of a GPU,
 * with its duration; a counter event has values of several counters. Each GPU is a process.
 */
#include "formats/perfetto/perfetto.h"

#include "base/decimal.h"
#include "base/text.h"

#include <stdio.h>

struct stage {
    uint64_t event, duration, queue, stage, gpu, submission, name_iid, kernel_iid;
    bool has_queue_iid, has_stage_iid, has_submission;
    int64_t stream; /* -1: not told */
    struct rp_bytes name;
};

/* Keys of PyTorch's files that have another name in its JSON. */
static const char *plain_key(struct rp_bytes key, size_t *n)
{
    static const char *const names[][2] = {{"device id", "device"},
                                           {"stream id", "stream"},
                                           {"context id", "context"},
                                           {"registers_per_thread", "registers per thread"},
                                           {"shared_mem_dynamic", "shared memory"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (key.n == strlen(names[i][0]) && !memcmp(key.at, names[i][0], key.n)) {
            *n = strlen(names[i][1]);
            return names[i][1];
        }
    *n = key.n;
    return (const char *)key.at;
}

/* All values are texts, even numbers; names of groups of processes are texts that look like
   numbers. */
static enum rp_code add_extra(struct rp_perfetto *r, struct rp_proto_cursor c, struct stage *s,
                              struct rp_err *err)
{
    struct rp_arg arg = {.type = RP_ARG_STR};
    struct rp_bytes key = {0}, value = {0};
    struct rp_proto_item it;
    size_t n;

    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_BYTES && it.number == RP_PFT_EXTRA_NAME)
            key = it.bytes;
        else if (it.wire == RP_WIRE_BYTES && it.number == RP_PFT_EXTRA_VALUE)
            value = it.bytes;
    RP_TRY(rp_proto_finish(&c, err));
    if (!key.n)
        return RP_OK;
    const char *name = plain_key(key, &n);
    RP_TRY(
        rp_proto_trace_intern(&r->t, (struct rp_bytes){(const uint8_t *)name, n}, &arg.key, err));
    if (value.n && !rp_text_ends_n(name, n, "ame") &&
        !rp_decimal_parse((const char *)value.at, value.n, 0, &arg.v.i))
        arg.type = RP_ARG_I64;
    else
        RP_TRY(rp_proto_trace_intern(&r->t, value, &arg.v.s, err));
    if (arg.type == RP_ARG_I64 && n == 6 && !memcmp(name, "stream", n) && arg.v.i >= 0)
        s->stream = arg.v.i;
    return rp_vec_push(&r->args, arg, err);
}

/* Writes "[4, 1, 1]", as in PyTorch's JSON. */
static enum rp_code add_dims(struct rp_perfetto *r, struct rp_proto_cursor c, const char *key,
                             struct rp_err *err)
{
    struct rp_arg arg = {.type = RP_ARG_RAW};
    uint64_t xyz[3] = {1, 1, 1};
    struct rp_proto_item it;
    char text[80];

    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_VARINT && it.number >= RP_PFT_DIM3_X && it.number <= RP_PFT_DIM3_Z)
            xyz[it.number - RP_PFT_DIM3_X] = it.value;
    RP_TRY(rp_proto_finish(&c, err));
    snprintf(text, sizeof text, "[%llu, %llu, %llu]", (unsigned long long)xyz[0],
             (unsigned long long)xyz[1], (unsigned long long)xyz[2]);
    RP_TRY(rp_proto_trace_word(&r->t, key, &arg.key, err));
    RP_TRY(rp_proto_trace_text(&r->t, text, &arg.v.s, err));
    return rp_vec_push(&r->args, arg, err);
}

static enum rp_code add_launch_arg(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                   struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_arg arg = {.type = RP_ARG_I64};
    struct rp_proto_item it;
    struct rp_bytes key;
    size_t n;

    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_LAUNCH_ARG_NAME_IID)
            arg.key = rp_perfetto_interned(r, packet->seq, RP_PFT_LAUNCH_KEYS, it.value);
        else if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_LAUNCH_ARG_INT_VALUE)
            arg.v.i = (int64_t)it.value;
    RP_TRY(rp_proto_finish(&c, err));
    if (!arg.key)
        return RP_OK;
    key.at = (const uint8_t *)rp_builder_borrow_str(r->t.builder, arg.key, &key.n);
    const char *name = plain_key(key, &n);
    if (name != (const char *)key.at)
        RP_TRY(rp_proto_trace_text(&r->t, name, &arg.key, err));
    return rp_vec_push(&r->args, arg, err);
}

static enum rp_code add_launch(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                               struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_PFT_LAUNCH_GRID_SIZE)
            RP_TRY(add_dims(r, rp_proto_enter(&c, &it), "grid", err));
        else if (it.number == RP_PFT_LAUNCH_WORKGROUP_SIZE)
            RP_TRY(add_dims(r, rp_proto_enter(&c, &it), "block", err));
        else if (it.number == RP_PFT_LAUNCH_ARGS)
            RP_TRY(add_launch_arg(r, packet, rp_proto_enter(&c, &it), err));
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code parse_stage(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                struct stage *s, struct rp_err *err)
{
    const struct rp_proto_slot slots[] = {{RP_PFT_STAGE_EVENT_ID, .u64 = &s->event},
                                          {RP_PFT_STAGE_KERNEL_IID, .u64 = &s->kernel_iid},
                                          {RP_PFT_STAGE_DURATION, .u64 = &s->duration},
                                          {RP_PFT_STAGE_GPU_ID, .u64 = &s->gpu},
                                          {RP_PFT_STAGE_NAME, .bytes = &s->name},
                                          {RP_PFT_STAGE_NAME_IID, .u64 = &s->name_iid},
                                          {0}};
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_proto_item it;

    *s = (struct stage){.stream = -1};
    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_PFT_STAGE_LAUNCH, RP_WIRE_BYTES):
            RP_TRY(add_launch(r, packet, rp_proto_enter(&c, &it), err));
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
        case RP_PROTO_KEY(RP_PFT_STAGE_SUBMISSION_ID, RP_WIRE_VARINT):
            s->submission = it.value;
            s->has_submission = true;
            break;
        case RP_PROTO_KEY(RP_PFT_STAGE_EXTRA_DATA, RP_WIRE_BYTES):
            RP_TRY(add_extra(r, rp_proto_enter(&c, &it), s, err));
            break;
        default:
            rp_proto_take(slots, &it);
        }
    return rp_proto_finish(&c, err);
}

/* The text of a specification, or "queue 3" if there is none. */
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
    if (!*out && s->kernel_iid)
        *out = rp_perfetto_interned(r, packet->seq, RP_PFT_KERNELS, s->kernel_iid);
    if (s->name.n)
        return rp_proto_trace_intern(&r->t, s->name, out, err);
    return *out ? RP_OK : spec_name(r, packet, s->has_stage_iid, s->stage, "stage", out, err);
}

/* The stream of a device if the file tells it, else the queue of a GPU. */
static enum rp_code stage_track(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                const struct stage *s, rp_track *out, struct rp_err *err)
{
    char process[32];
    rp_str queue;

    if (s->stream >= 0 && s->gpu < 65536)
        return rp_perfetto_stream(r, (int64_t)s->gpu, s->stream, out, err);
    RP_TRY(spec_name(r, packet, s->has_queue_iid, s->queue, "queue", &queue, err));
    snprintf(process, sizeof process, "GPU %u", (unsigned)s->gpu);
    return rp_perfetto_own_track(r, process, queue, out, err);
}

enum rp_code rp_perfetto_read_stage(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                    struct rp_err *err)
{
    struct rp_raw raw = {0};
    struct stage s;

    r->args.n = 0;
    RP_TRY(parse_stage(r, packet, &s, err));
    if (s.has_queue_iid && !rp_perfetto_interned(r, packet->seq, RP_PFT_GPU_SPECS, s.queue)) {
        r->stateless++;
        return RP_OK;
    }
    RP_TRY(stage_name(r, packet, &s, &raw.name, err));
    if (s.has_submission) {
        struct rp_arg arg = {.type = RP_ARG_I64, .v.i = (int64_t)s.submission};

        RP_TRY(rp_proto_trace_word(&r->t, "submission_id", &arg.key, err));
        RP_TRY(rp_vec_push(&r->args, arg, err));
    }
    RP_TRY(stage_track(r, packet, &s, &raw.track, err));
    RP_TRY(rp_perfetto_time(r, packet, &raw.ts_ns, err));
    raw.dur_ns = rp_proto_trace_clamp(&r->t, s.duration);

    /* The name of the event decides; for what PyTorch does not count as device work, the name of
       its stage does. */
    struct rp_origin origin = {
        .phase = 'X', .kind = RP_KIND_KERNEL, .flags = RP_ORIGIN_GPU, .has_category = 1};
    const char *category = "gpu_render_stage";
    struct rp_chrome_kind is = {0};
    rp_str spec;
    RP_TRY(spec_name(r, packet, s.has_stage_iid, s.stage, "stage", &spec, err));
    const char *name = rp_builder_borrow_str(r->t.builder, raw.name, NULL);
    const char *stage = rp_builder_borrow_str(r->t.builder, spec, NULL);
    if (!strcmp(stage, "Annotation"))
        category = "gpu_user_annotation";
    else if (!strcmp(stage, "EventRecord") || !strcmp(stage, "HostNode"))
        category = "cuda_event";
    else if (strcasestr(name, "memcpy") || strcasestr(name, "copy buffer"))
        origin.kind = RP_KIND_MEMCPY;
    else if (strcasestr(name, "memset"))
        origin.kind = RP_KIND_MEMSET;
    RP_TRY(rp_proto_trace_word(&r->t, category, &origin.category, err));
    if (strcmp(category, "gpu_render_stage") != 0) {
        RP_TRY(rp_perfetto_category(r, origin.category, &is, err));
        origin.kind = is.kind;
        origin.flags = is.flags;
    }
    RP_TRY(rp_builder_origin(r->t.builder, &origin, &raw.origin, err));

    /* If no other number joins them, the call that submitted a stage names the stage. */
    struct rp_arg arg = {.type = RP_ARG_I64, .v.i = (int64_t)s.event};
    RP_TRY(rp_perfetto_set_link(r, &raw, err));
    r->correlates |= raw.has_link;
    if (r->submits && !r->correlates && s.event) {
        raw.has_link = true;
        raw.link = arg.v.i;
        RP_TRY(rp_proto_trace_word(&r->t, "correlation", &arg.key, err));
        RP_TRY(rp_vec_push(&r->args, arg, err));
    }
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
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_PFT_GPU_DESCRIPTOR_SPECS, &it)) {
        struct rp_bytes text = {0};
        uint64_t id = 0;
        rp_str name = 0;

        RP_TRY(
            rp_proto_read(rp_proto_enter(&c, &it),
                          (const struct rp_proto_slot[]){{RP_PFT_GPU_SPEC_COUNTER_ID, .u64 = &id},
                                                         {RP_PFT_GPU_SPEC_NAME, .bytes = &text},
                                                         {0}},
                          err));
        if (text.at)
            RP_TRY(rp_proto_trace_intern(&r->t, text, &name, err));
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
    rp_str name = rp_map_get(&r->gpu_names, rp_hash_join(gpu, id));
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
    uint32_t set;
    int64_t ns;

    RP_TRY(rp_perfetto_time(r, packet, &ns, err));
    while (rp_proto_next(&scan, &it))
        if (it.number == RP_PFT_GPU_COUNTERS_GPU_ID && it.wire == RP_WIRE_VARINT)
            gpu = it.value;
        else if (it.number == RP_PFT_GPU_COUNTERS_COUNTER_DESCRIPTOR_IID &&
                 it.wire == RP_WIRE_VARINT &&
                 (set = rp_perfetto_id(packet->seq, RP_PFT_COUNTER_SETS, it.value)) != RP_MAP_NONE)
            gpu = set - 1;
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

/* ------------------------------------------------------------------ interned tables */

static enum rp_code read_counter_set(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_cursor scan = c;
    struct rp_proto_item it;
    uint64_t iid = 0, gpu = 0;

    while (rp_proto_next(&scan, &it))
        if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_COUNTER_SET_IID)
            iid = it.value;
        else if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_COUNTER_SET_GPU_ID)
            gpu = it.value < 65536 ? it.value : 0;
    while (rp_proto_next_bytes(&c, RP_PFT_COUNTER_SET_COUNTER_DESCRIPTOR, &it))
        RP_TRY(read_specs(r, rp_proto_enter(&c, &it), gpu, err));
    RP_TRY(rp_proto_finish(&c, err));
    return rp_perfetto_intern(packet->seq, RP_PFT_COUNTER_SETS, iid, (uint32_t)gpu + 1, err);
}

static enum rp_code read_kernel(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_bytes name = {0};
    struct rp_proto_item it;
    bool demangled = false;
    uint64_t iid = 0;
    rp_str text;

    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_COMPUTE_KERNEL_IID) {
            iid = it.value;
        } else if (it.wire == RP_WIRE_BYTES && !demangled &&
                   (it.number == RP_PFT_COMPUTE_KERNEL_NAME ||
                    it.number == RP_PFT_COMPUTE_KERNEL_DEMANGLED_NAME)) {
            name = it.bytes;
            demangled = it.number == RP_PFT_COMPUTE_KERNEL_DEMANGLED_NAME;
        }
    RP_TRY(rp_proto_finish(&c, err));
    RP_TRY(rp_proto_trace_intern(&r->t, name, &text, err));
    return rp_perfetto_intern(packet->seq, RP_PFT_KERNELS, iid, text, err);
}

enum rp_code rp_perfetto_read_gpu_tables(struct rp_perfetto *r,
                                         const struct rp_perfetto_packet *packet,
                                         struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->interned);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_PFT_INTERNED_GPU_COUNTER_DESCRIPTORS)
            RP_TRY(read_counter_set(r, packet, rp_proto_enter(&c, &it), err));
        else if (it.number == RP_PFT_INTERNED_COMPUTE_KERNELS)
            RP_TRY(read_kernel(r, packet, rp_proto_enter(&c, &it), err));
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
