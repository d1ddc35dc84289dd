/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs that are protobufs. XLA writes text or the wire format, depending on its flags; text is
 * turned into the wire format by its schema first. Each list is counted, then filled. Linear.
 */
#include "formats/dump/logs.h"

#include "abi/proto/xla_dump.h"
#include "base/vec.h"
#include "formats/textproto.h"

#define DEPTH 8

/* ------------------------------------------------------------------ text or wire */

/* Text begins with a name and ':' or '{', after spaces and comments. In the wire format a letter
   can only be the length of a field, and is not followed by them. */
static bool log_is_text(const uint8_t *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\t' || bytes[i] == '\r'))
        i++;
    if (i == n || bytes[i] == '#')
        return true;
    if (!(bytes[i] >= 'a' && bytes[i] <= 'z'))
        return false;
    for (; i < n; i++) {
        if ((bytes[i] >= 'a' && bytes[i] <= 'z') || (bytes[i] >= '0' && bytes[i] <= '9') ||
            bytes[i] == '_' || bytes[i] == ' ')
            continue;
        return bytes[i] == ':' || bytes[i] == '{' || bytes[i] == '<';
    }
    return true;
}

struct log_source {
    struct rp_proto_writer writer;
    struct rp_bytes wire;
};

static enum rp_code log_open(const struct rp_schema *schema, const uint8_t *bytes, size_t n,
                             const struct rp_limits *limits, struct log_source *out,
                             struct rp_err *err)
{
    *out = (struct log_source){.wire = {bytes, n}};
    if (!n || !log_is_text(bytes, n))
        return RP_OK;
    RP_TRY(rp_textproto_parse(schema, (const char *)bytes, n, limits, &out->writer, err));
    return rp_proto_written(&out->writer, &out->wire, err);
}

static size_t log_count(struct rp_bytes wire, uint32_t number)
{
    struct rp_proto_cursor c = rp_proto_cursor(wire.at, wire.n, 0, DEPTH);
    struct rp_proto_item it;
    size_t n = 0;

    while (rp_proto_next_bytes(&c, number, &it))
        n++;
    return n;
}

static const char *log_text(struct rp_arena *arena, struct rp_bytes bytes)
{
    const char *text = rp_arena_copy(arena, (const char *)bytes.at, bytes.n);

    return text ? text : "";
}

/* ------------------------------------------------------------------ passes */

static enum rp_code read_pass(struct rp_proto_cursor c, struct rp_arena *arena,
                              struct rp_pass_time *out, struct rp_err *err)
{
    struct rp_bytes name = {0}, pipeline = {0};

    *out = (struct rp_pass_time){.id = -1, .module = -1};
    RP_TRY(
        rp_proto_read(c,
                      (const struct rp_proto_slot[]){{RP_XLA_PASS_NAME, .bytes = &name},
                                                     {RP_XLA_PASS_PIPELINE, .bytes = &pipeline},
                                                     {RP_XLA_PASS_ID, .i64 = &out->id},
                                                     {RP_XLA_PASS_CHANGED, .flag = &out->changed},
                                                     {RP_XLA_PASS_MODULE_ID, .i64 = &out->module},
                                                     {RP_XLA_PASS_START, .i64 = &out->start_us},
                                                     {RP_XLA_PASS_END, .i64 = &out->end_us},
                                                     {0}},
                      err));
    out->name = log_text(arena, name);
    out->pipeline = log_text(arena, pipeline);
    return RP_OK;
}

static enum rp_code read_passes(struct rp_bytes wire, struct rp_arena *arena,
                                struct rp_pass_times *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(wire.at, wire.n, 0, DEPTH);
    struct rp_proto_item it;

    *out = (struct rp_pass_times){.module = -1};
    out->at = RP_ARENA_NEW(arena, struct rp_pass_time, log_count(wire, RP_XLA_PASSES_PASS) + 1);
    RP_TRY(rp_err_need(out->at, err, "reading times of passes"));
    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_XLA_PASSES_MODULE_ID && it.wire == RP_WIRE_VARINT)
            out->module = (int64_t)it.value;
        else if (it.number == RP_XLA_PASSES_PASS && it.wire == RP_WIRE_BYTES)
            RP_TRY(read_pass(rp_proto_enter(&c, &it), arena, &out->at[out->n++], err));
    }
    RP_TRY(rp_proto_finish(&c, err));
    return rp_arena_check(arena, "reading times of passes", err);
}

enum rp_code rp_pass_times_read(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_pass_times *out,
                                struct rp_err *err)
{
    struct log_source source;
    enum rp_code code = log_open(&rp_schema_XLA_PASSES, bytes, n, limits, &source, err);

    *out = (struct rp_pass_times){.module = -1};
    if (code == RP_OK)
        code = read_passes(source.wire, arena, out, err);
    rp_proto_writer_release(&source.writer);
    return code;
}

/* ------------------------------------------------------------------ the fusion pass */

static enum rp_code read_priority(struct rp_proto_cursor c, struct rp_bytes whole,
                                  struct rp_arena *arena, struct rp_fusion_step *out,
                                  struct rp_err *err)
{
    struct rp_bytes producer = {0};
    struct rp_proto_item it;

    out->kind = RP_FUSION_PRIORITY;
    out->nconsumers = 0; /* the last of several counts */
    out->consumers =
        RP_ARENA_NEW(arena, const char *, log_count(whole, RP_XLA_PRIORITY_CONSUMERS) + 1);
    RP_TRY(rp_err_need(out->consumers, err, "reading a fusion log"));
    RP_TRY(rp_proto_read(
        c,
        (const struct rp_proto_slot[]){{RP_XLA_PRIORITY_PRODUCER, .bytes = &producer},
                                       {RP_XLA_PRIORITY_US_FUSED, .f32 = &out->fused_us},
                                       {RP_XLA_PRIORITY_US_UNFUSED, .f32 = &out->unfused_us},
                                       {0}},
        err));
    out->producer = log_text(arena, producer);
    while (rp_proto_next_bytes(&c, RP_XLA_PRIORITY_CONSUMERS, &it))
        out->consumers[out->nconsumers++] = log_text(arena, it.bytes);
    return RP_OK;
}

static enum rp_code read_fusion_step(struct rp_proto_cursor c, struct rp_arena *arena,
                                     struct rp_fusion_log *log, struct rp_err *err)
{
    struct rp_fusion_step step = {.producer = "", .consumer = "", .fusion = "", .reason = ""};
    struct rp_proto_item it;
    bool known = false;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_XLA_FUSION_STEP_FUSION) {
            /* Two computations became one. */
            struct rp_bytes fusion = {0}, producer = {0}, consumer = {0};
            RP_TRY(rp_proto_read(
                rp_proto_enter(&c, &it),
                (const struct rp_proto_slot[]){{RP_XLA_FUSED_FUSION, .bytes = &fusion},
                                               {RP_XLA_FUSED_PRODUCER, .bytes = &producer},
                                               {RP_XLA_FUSED_CONSUMER, .bytes = &consumer},
                                               {0}},
                err));
            step.kind = RP_FUSION_FUSED;
            step.fusion = log_text(arena, fusion);
            step.producer = log_text(arena, producer);
            step.consumer = log_text(arena, consumer);
        } else if (it.number == RP_XLA_FUSION_STEP_INELIGIBLE) {
            /* A producer could not be fused. */
            struct rp_bytes producer = {0}, reason = {0};
            RP_TRY(rp_proto_read(
                rp_proto_enter(&c, &it),
                (const struct rp_proto_slot[]){{RP_XLA_INELIGIBLE_PRODUCER, .bytes = &producer},
                                               {RP_XLA_INELIGIBLE_REASON, .bytes = &reason},
                                               {0}},
                err));
            step.kind = RP_FUSION_INELIGIBLE;
            step.producer = log_text(arena, producer);
            step.reason = log_text(arena, reason);
        } else if (it.number == RP_XLA_FUSION_STEP_PRIORITY)
            RP_TRY(read_priority(rp_proto_enter(&c, &it), it.bytes, arena, &step, err));
        else
            continue;
        known = true;
    }
    if (known)
        log->at[log->n++] = step;
    return rp_proto_finish(&c, err);
}

static enum rp_code read_fusion_log(struct rp_bytes wire, struct rp_arena *arena,
                                    struct rp_fusion_log *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(wire.at, wire.n, 0, DEPTH);
    struct rp_proto_item it;

    out->at =
        RP_ARENA_NEW(arena, struct rp_fusion_step, log_count(wire, RP_XLA_FUSION_LOG_STEP) + 1);
    RP_TRY(rp_err_need(out->at, err, "reading a fusion log"));
    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_XLA_FUSION_LOG_STEP) {
            struct rp_proto_cursor step = rp_proto_enter(&c, &it);

            RP_TRY(read_fusion_step(step, arena, out, err));
        } else if (it.number == RP_XLA_FUSION_LOG_BEFORE) {
            out->before = rp_arena_copy(arena, (const char *)it.bytes.at, it.bytes.n);
            out->before_n = it.bytes.n;
        }
    }
    RP_TRY(rp_proto_finish(&c, err));
    return rp_arena_check(arena, "reading a fusion log", err);
}

enum rp_code rp_fusion_log_read(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_fusion_log *out,
                                struct rp_err *err)
{
    struct log_source source;
    enum rp_code code = log_open(&rp_schema_XLA_FUSION_LOG, bytes, n, limits, &source, err);

    *out = (struct rp_fusion_log){0};
    if (code == RP_OK)
        code = read_fusion_log(source.wire, arena, out, err);
    rp_proto_writer_release(&source.writer);
    return code;
}

/* ------------------------------------------------------------------ metadata of thunks */

static enum rp_code read_thunk_info(struct rp_proto_cursor c, struct rp_arena *arena,
                                    struct rp_thunk *out, struct rp_err *err)
{
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_XLA_THUNK_INFO_ANNOTATION && it.wire == RP_WIRE_BYTES)
            out->instruction = log_text(arena, it.bytes);
        else if (it.number == RP_XLA_THUNK_INFO_ID && it.wire == RP_WIRE_VARINT)
            out->id = (int64_t)it.value;
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_thunk(struct rp_proto_cursor c, struct rp_arena *arena,
                               struct rp_thunk *out, struct rp_err *err)
{
    struct rp_proto_item it;

    *out = (struct rp_thunk){.parent = RP_NONE, .kind = "", .kernel = "", .instruction = ""};
    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_XLA_THUNK_KIND)
            out->kind = log_text(arena, it.bytes);
        else if (it.number == RP_XLA_THUNK_INFO)
            RP_TRY(read_thunk_info(rp_proto_enter(&c, &it), arena, out, err));
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_thunk_list(struct rp_bytes wire, struct rp_arena *arena,
                                    struct rp_thunks *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(wire.at, wire.n, 0, DEPTH);
    struct rp_proto_item it;

    out->at = RP_ARENA_NEW(arena, struct rp_thunk, log_count(wire, RP_XLA_THUNKS_THUNK) + 1);
    RP_TRY(rp_err_need(out->at, err, "reading metadata of thunks"));
    while (rp_proto_next_bytes(&c, RP_XLA_THUNKS_THUNK, &it))
        RP_TRY(read_thunk(rp_proto_enter(&c, &it), arena, &out->at[out->n++], err));
    RP_TRY(rp_proto_finish(&c, err));
    return rp_arena_check(arena, "reading metadata of thunks", err);
}

enum rp_code rp_thunk_metadata_read(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                    struct rp_arena *arena, struct rp_thunks *out,
                                    struct rp_err *err)
{
    struct log_source source;
    enum rp_code code = log_open(&rp_schema_XLA_THUNKS, bytes, n, limits, &source, err);

    *out = (struct rp_thunks){0};
    if (code == RP_OK)
        code = read_thunk_list(source.wire, arena, out, err);
    rp_proto_writer_release(&source.writer);
    return code;
}
