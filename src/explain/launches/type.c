/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `launches`: keys of the JSON contract, headings of the screen. */
#include "explain/launches/launches.h"

#define TIME(member, doc) RP_FIELD(struct rp_launch_times, member, I64, NS, NULL, doc, 0)

static const struct rp_field times_fields[] = {
    TIME(total_ns, "sum"), TIME(p50_ns, "median, by nearest rank"),
    TIME(p90_ns, "90th percentile, by nearest rank"), TIME(max_ns, "the largest"), RP_FIELD_END};
static const struct rp_type times_type = {"times", sizeof(struct rp_launch_times), times_fields,
                                          NULL};

#define THREE_TIMES(s)                                                                           \
    RP_FIELD_RECORD(s, call, &times_type, NULL, "the host's calls", 0),                          \
        RP_FIELD_RECORD(s, device, &times_type, NULL, "the work they started", 0),               \
        RP_FIELD_RECORD(s, delay, &times_type, NULL,                                             \
                        "from the end of the call to the start of the work; 0 where before", 0), \
        RP_FIELD(s, short_count, I64, COUNT, NULL,                                               \
                 "work shorter than its call, which took at most 50 us", 0),                     \
        RP_FIELD(s, slow_call_count, I64, COUNT, NULL, "calls over 50 us", 0),                   \
        RP_FIELD(s, late_count, I64, COUNT, NULL, "delays over 100 us", 0)

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launch_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "what the row is about", 0),
    ROW(label, STR, NONE, "name", "shortened", RP_SCREEN | RP_SHORTEN),
    ROW(count, I64, COUNT, "count", "launches", 0),
    ROW(call_p50_ns, I64, NS, "call", "for the screen", RP_SCREEN),
    ROW(delay_p50_ns, I64, NS, "delay", "for the screen", RP_SCREEN),
    ROW(delay_p90_ns, I64, NS, "p90", "for the screen", RP_SCREEN),
    ROW(delay_max_ns, I64, NS, "max", "for the screen", RP_SCREEN),
    ROW(device_p50_ns, I64, NS, "work", "for the screen", RP_SCREEN),
    THREE_TIMES(struct rp_launch_row),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_launch_row), row_fields, NULL};

#define QUEUE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launch_queue, member, type, unit, title, doc, flags)

static const struct rp_field queue_fields[] = {
    QUEUE(rank, I64, NONE, "rank", "whose", 0),
    QUEUE(stream, STR, NONE, "stream", "which stream", 0),
    QUEUE(launches, I64, COUNT, "launches", "launched to it", 0),
    QUEUE(samples, I64, COUNT, NULL, "lengths: one after every launch and every start", 0),
    QUEUE(mean, F64, NONE, NULL, "mean of the lengths", 0),
    QUEUE(std, F64, NONE, NULL, "their standard deviation, of a sample", 0),
    QUEUE(p50, I64, COUNT, "p50", "median of the lengths, by nearest rank", 0),
    QUEUE(max, I64, COUNT, "max", "the longest", 0),
    QUEUE(time_mean, F64, NONE, NULL, "mean length, weighted by time", 0),
    QUEUE(full_ns, I64, NS, "full for", "time with 1,024 launches or more", 0),
    RP_FIELD_END};
static const struct rp_type queue_type = {"queue", sizeof(struct rp_launch_queue), queue_fields,
                                          NULL};

#define COPY(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launch_copy, member, type, unit, title, doc, flags)

static const struct rp_field copy_fields[] = {
    COPY(rank, I64, NONE, "rank", "whose", 0),
    COPY(kind, STR, NONE, "kind", "which way", 0),
    COPY(count, I64, COUNT, "count", "how many", 0),
    COPY(size_bytes, I64, BYTES, "bytes", "all together, where recorded", 0),
    COPY(busy_ns, I64, NS, "time", "time in which at least one runs", 0),
    COPY(whole_bytes_per_s, F64, BPS, "rate", "bytes / time; null without time", 0),
    COPY(samples, I64, COUNT, NULL, "rates: one after every begin and end while copies run", 0),
    COPY(mean_bytes_per_s, F64, BPS, NULL, "mean of the rates", 0),
    COPY(min_bytes_per_s, F64, BPS, "least", "the lowest", RP_WIDE),
    COPY(p50_bytes_per_s, F64, BPS, "p50", "their median, by nearest rank", 0),
    COPY(max_bytes_per_s, F64, BPS, "max", "the highest", 0),
    RP_FIELD_END};
static const struct rp_type copy_type = {"copy", sizeof(struct rp_launch_copy), copy_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launches_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "launches", "for the screen", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(launches, I64, COUNT, NULL, "device work with a recorded launch", 0),
    ROOT(unlinked, I64, COUNT, NULL, "device work without one", 0),
    THREE_TIMES(struct rp_launches_root),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_launches_root, rows, &row_type, "medians, and how late the work starts",
                  "the largest first", 0),
    RP_FIELD_LIST(struct rp_launches_root, queues, &queue_type, "queues, launches that wait",
                  "of every stream of every rank", 0),
    RP_FIELD_LIST(struct rp_launches_root, copies, &copy_type, "copies", "of every rank, by kind",
                  0),
    RP_FIELD_LIST(struct rp_launches_root, notes, &rp_type_string, "notes", "about the launches",
                  RP_SCREEN),
    RP_FIELD_END};

const struct rp_type rp_launches_type = {"launches", sizeof(struct rp_launches_root), root_fields,
                                         "rows"};
