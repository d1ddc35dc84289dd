/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the data can be trusted: one counter a row. docs/definitions.md has the definitions; the
 * first 22 are the counts of "trace health" there. trace/build/build.h says which of them a reader
 * counts.
 */
#include <stdint.h>

/* ROW(key, unit, doc): the unit is one of COUNT, NS and BYTES. */
#define RP_HEALTH_MAP(ROW)                                                                       \
    ROW(events, COUNT, "all events of the file")                                                 \
    ROW(X, COUNT, "complete events (phase X)")                                                   \
    ROW(M, COUNT, "metadata events")                                                             \
    ROW(flow_s, COUNT, "arrow starts")                                                           \
    ROW(flow_f, COUNT, "arrow ends")                                                             \
    ROW(instant, COUNT, "instants (phase i)")                                                    \
    ROW(counter, COUNT, "counter events")                                                        \
    ROW(gpu_events, COUNT, "kernels, copies and memsets on a device")                            \
    ROW(runtime_events, COUNT, "calls of the CUDA or HIP runtime or driver")                     \
    ROW(gpu_without_runtime, COUNT, "device events whose launch was not recorded")               \
    ROW(launches_without_gpu, COUNT, "launches whose device work was not recorded")              \
    ROW(gpu_start_before_launch, COUNT, "device events that start before their launch")          \
    ROW(same_stream_overlaps, COUNT,                                                             \
        "device events that start before their predecessor on the stream ends")                  \
    ROW(same_stream_overlap_ns, NS, "how long those overlap")                                    \
    ROW(zero_dur_gpu, COUNT, "device events of zero duration")                                   \
    ROW(ts_zero_gpu, COUNT, "device events at time zero")                                        \
    ROW(multi_gpu_per_corr, COUNT, "launches with several device events, such as graphs")        \
    ROW(flow_s_without_f, COUNT, "flow arrows without an end")                                   \
    ROW(flow_f_without_s, COUNT, "flow arrows without a start")                                  \
    ROW(cpu_not_nested, COUNT, "host spans that end after the span that encloses them")          \
    ROW(string_pid, COUNT, "events whose process is named by text")                              \
    ROW(non_int_ts, COUNT, "times written with a fraction")                                      \
    ROW(unended, COUNT, "begin events without an end")                                           \
    ROW(unbegun, COUNT, "end events without a begin")                                            \
    ROW(missing_dur, COUNT, "complete events without a duration")                                \
    ROW(missing_ts, COUNT, "events without a time that need one")                                \
    ROW(bad_time, COUNT, "times that are not a number")                                          \
    ROW(huge_time, COUNT, "times beyond 64-bit nanoseconds")                                     \
    ROW(negative_dur, COUNT, "negative durations")                                               \
    ROW(absurd_dur, COUNT, "durations of more than 7 days")                                      \
    ROW(rounded_time, COUNT, "times with digits below a nanosecond")                             \
    ROW(control_bytes, BYTES, "control characters inside strings")                               \
    ROW(bad_utf8, COUNT, "strings that are not UTF-8")                                           \
    ROW(duplicate_keys, COUNT, "keys given twice in one event")                                  \
    ROW(skipped_bytes, BYTES, "bytes skipped to find the next event")                            \
    ROW(skipped_events, COUNT, "elements of the event list that are not events")                 \
    ROW(empty_events, COUNT, "empty elements of the event list, with which some writers end it") \
    ROW(lost_events, COUNT, "events that the recorder reports as dropped")                       \
    ROW(truncated, COUNT, "1 if the file ends early")                                            \
    ROW(salvaged, COUNT, "1 if the file is damaged and was read up to the damage")

struct rp_health {
#define RP_HEALTH_FIELD(key, unit, doc) int64_t key;
    RP_HEALTH_MAP(RP_HEALTH_FIELD)
#undef RP_HEALTH_FIELD
};
