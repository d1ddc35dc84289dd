/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `info`: keys of the JSON contract, headings of the screen. */
#include "explain/info/info.h"

static const struct rp_field kind_fields[] = {
    RP_FIELD(struct rp_info_kind, kind, STR, NONE, "kind", "what the events are", 0),
    RP_FIELD(struct rp_info_kind, count, I64, COUNT, "events", "how many", 0), RP_FIELD_END};
static const struct rp_type kind_type = {"kind", sizeof(struct rp_info_kind), kind_fields, NULL};

static const struct rp_field step_fields[] = {
    RP_FIELD(struct rp_info_step, name, STR, NONE, "step", "its name", 0),
    RP_FIELD(struct rp_info_step, ts_ns, I64, NS, "start", "as recorded", 0),
    RP_FIELD(struct rp_info_step, dur_ns, I64, NS, "length", "from its start to its end", 0),
    RP_FIELD(struct rp_info_step, source, STR, NONE, "by", "how it was found", 0), RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_info_step), step_fields, NULL};

static const struct rp_field device_fields[] = {
    RP_FIELD(struct rp_info_device, id, I64, NONE, "device", "its number", 0),
    RP_FIELD(struct rp_info_device, name, STR, NONE, "name", "its product name", RP_SHORTEN),
    RP_FIELD(struct rp_info_device, memory_bytes, I64, BYTES, "memory", "its memory", RP_NULLABLE),
    RP_FIELD(struct rp_info_device, multiprocessors, I64, COUNT, "processors", "multiprocessors",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type device_type = {"device", sizeof(struct rp_info_device), device_fields,
                                           NULL};

static const struct rp_field track_fields[] = {
    RP_FIELD(struct rp_info_track, process, STR, NONE, "process", "whose track it is", RP_SHORTEN),
    RP_FIELD(struct rp_info_track, name, STR, NONE, "track", "thread or stream", RP_SHORTEN),
    RP_FIELD(struct rp_info_track, kind, STR, NONE, "kind", "thread, stream, counter or async", 0),
    RP_FIELD(struct rp_info_track, events, I64, COUNT, "events", "how many", 0), RP_FIELD_END};
static const struct rp_type track_type = {"track", sizeof(struct rp_info_track), track_fields,
                                          NULL};

static const struct rp_field health_fields[] = {
#define HEALTH_FIELD(key, unit, doc) RP_FIELD(struct rp_health, key, I64, unit, NULL, doc, 0),
    RP_HEALTH_MAP(HEALTH_FIELD)
#undef HEALTH_FIELD
        RP_FIELD_END};
static const struct rp_type health_type = {"health", sizeof(struct rp_health), health_fields, NULL};

#define FIELD(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_info_file, member, type, unit, title, doc, flags)

static const struct rp_field file_fields[] = {
    FIELD(path, STR, NONE, "file", "the input", 0),
    FIELD(recorder, STR, NONE, "recorded by", "for the screen", RP_SCREEN),
    FIELD(format, STR, NONE, NULL, "the format that was read", 0),
    FIELD(framework, STR, NONE, NULL, "what recorded it, or null", 0),
    FIELD(framework_version, STR, NONE, NULL, "its version, or null", 0),
    FIELD(rank_text, STR, NONE, "rank", "for the screen", RP_SCREEN),
    FIELD(rank, I64, NONE, NULL, "number of the process in its job, or null", RP_NULLABLE),
    FIELD(world_size, I64, COUNT, NULL, "processes of the job, or null", RP_NULLABLE),
    FIELD(device_text, STR, NONE, "devices", "for the screen", RP_SCREEN),
    FIELD(window_ns, I64, NS, "time covered", "first start to last end of all events", 0),
    FIELD(begin_ns, I64, NS, NULL, "the first start, since 1970 where the file tells it", 0),
    FIELD(step_text, STR, NONE, "steps", "for the screen", RP_SCREEN),
    FIELD(step_median_ns, I64, NS, "median step", "median length of the steps, or null",
          RP_NULLABLE),
    FIELD(gpu_busy_ns, I64, NS, "device busy", "time in which device work runs, or null",
          RP_NULLABLE),
    FIELD(events, I64, COUNT, "events", "all events of the file", 0),
    FIELD(spans, I64, COUNT, NULL, "events with a length", 0),
    FIELD(instants, I64, COUNT, NULL, "events without a length", 0),
    FIELD(counters, I64, COUNT, NULL, "counter events", 0),
    FIELD(flows, I64, COUNT, NULL, "ends of arrows", 0),
    FIELD(gpu_events, I64, COUNT, NULL, "kernels, copies and memsets", 0),
    FIELD(kernels, I64, COUNT, NULL, "kernels", 0),
    FIELD(lost_events, I64, COUNT, NULL, "events the recorder says it dropped", 0),
    FIELD(trust, STR, NONE, "trust", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_info_file, devices, &device_type, NULL, "devices of the host", 0),
    RP_FIELD_MAP(struct rp_info_file, kinds, &kind_type, "events by kind", "events of each kind",
                 0),
    RP_FIELD_LIST(struct rp_info_file, busiest, &track_type, "busiest tracks", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_info_file, steps, &step_type, NULL, "the steps in time order", 0),
    RP_FIELD_LIST(struct rp_info_file, tracks, &track_type, NULL, "threads and streams", 0),
    RP_FIELD_RECORD(struct rp_info_file, health, &health_type, NULL, "counts of trace health", 0),
    RP_FIELD_LIST(struct rp_info_file, warnings, &rp_type_string, "warnings",
                  "what to know before trusting it", RP_WARN),
    RP_FIELD_END};

const struct rp_type rp_info_file_type = {"file", sizeof(struct rp_info_file), file_fields, NULL};

static const struct rp_field row_fields[] = {
    FIELD(rank_text, STR, NONE, "rank", "number of the process in its job", 0),
    FIELD(base_name, STR, NONE, "file", "the input without its folders", RP_SHORTEN),
    FIELD(window_ns, I64, NS, "covers", "first start to last end of all events", 0),
    FIELD(step_count, I64, COUNT, "steps", "how many were found", 0),
    FIELD(step_median_ns, I64, NS, "median", "median length of the steps", RP_NULLABLE),
    FIELD(gpu_busy_ns, I64, NS, "busy", "time in which device work runs", RP_NULLABLE),
    FIELD(events, I64, COUNT, "events", "all events of the file", 0),
    FIELD(warning_count, I64, COUNT, "warn", "how many warnings", 0),
    RP_FIELD_END};

const struct rp_type rp_info_row_type = {"row", sizeof(struct rp_info_file), row_fields, NULL};
