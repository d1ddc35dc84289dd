/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `stalls`: keys of the JSON contract, headings of the screen. */
#include "explain/stalls/stalls.h"

#define MODE(member, unit, doc) RP_FIELD(struct rp_stall_mode, member, I64, unit, NULL, doc, 0)

static const struct rp_field mode_fields[] = {
    MODE(at_ns, NS, "where calls are densest"), MODE(min_ns, NS, "the shortest of the mode"),
    MODE(max_ns, NS, "the longest of the mode"), MODE(count, COUNT, "calls in it"), RP_FIELD_END};
static const struct rp_type mode_type = {"mode", sizeof(struct rp_stall_mode), mode_fields, NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stall_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "what the row is about", 0),
    ROW(kind, STR, NONE, NULL, "operator, annotation, runtime, python …; null where no name", 0),
    ROW(count, I64, COUNT, NULL, "stalls", 0),
    ROW(total_ns, I64, NS, NULL, "own time of the stalls", 0),
    ROW(share, F64, RATIO, NULL, "of the time of all stalls", 0),
    ROW(max_ns, I64, NS, NULL, "the longest", 0),
    ROW(device_idle_ns, I64, NS, NULL, "of it, the device did nothing", 0),
    ROW(calls, I64, COUNT, NULL, "all calls of the name, or null", RP_NULLABLE),
    ROW(median_ns, I64, NS, NULL, "median own time of all calls of the name, or null", RP_NULLABLE),
    ROW(cause, STR, NONE, NULL, "the cause with most of the time", 0),
    ROW(mostly, STR, NONE, NULL, "the name with most of the time", 0),
    RP_FIELD_LIST(struct rp_stall_row, modes, &mode_type, NULL,
                  "where the own times of all calls of the name gather", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_stall_row), row_fields, NULL};

#define SHOWN                                                           \
    ROW(label, STR, NONE, "name", "shortened", RP_SCREEN | RP_SHORTEN), \
        ROW(count, I64, COUNT, "stalls", "how many", 0),                \
        ROW(total_ns, I64, NS, "total", "own time of the stalls", 0),   \
        ROW(max_ns, I64, NS, "longest", "the longest", 0)

static const struct rp_field named_fields[] = {
    SHOWN,
    ROW(median_ns, I64, NS, "median", "of all calls", RP_NULLABLE),
    ROW(calls, I64, COUNT, "calls", "all calls", RP_NULLABLE | RP_WIDE),
    ROW(device_idle_ns, I64, NS, "gpu idle", "of it, the device did nothing", 0),
    ROW(cause, STR, NONE, "cause", "the cause with most of the time", 0),
    RP_FIELD_END};
static const struct rp_type named_type = {"row", sizeof(struct rp_stall_row), named_fields, NULL};

static const struct rp_field plain_fields[] = {
    SHOWN, ROW(device_idle_ns, I64, NS, "gpu idle", "of it, the device did nothing", 0),
    ROW(cause, STR, NONE, "cause", "the cause with most of the time", 0),
    ROW(mostly, STR, NONE, "mostly", "the name with most of the time", RP_SHORTEN), RP_FIELD_END};
static const struct rp_type plain_type = {"row", sizeof(struct rp_stall_row), plain_fields, NULL};

#define STALL(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stall, member, type, unit, title, doc, flags)

static const struct rp_field stall_fields[] = {
    STALL(rank, I64, NONE, "rank", "whose", 0),
    STALL(step, I64, NONE, "step", "number of its step, or null", RP_NULLABLE | RP_WIDE),
    STALL(thread, STR, NONE, "thread", "which thread", RP_SHORTEN),
    STALL(begin_ns, I64, NS, NULL, "when it began, as recorded", 0),
    STALL(dur_ns, I64, NS, NULL, "how long the call took", 0),
    STALL(self_ns, I64, NS, "took", "own time: without the spans inside it", 0),
    STALL(median_ns, I64, NS, "median", "of all calls of its name", 0),
    STALL(times, F64, NONE, NULL, "own time / median; null where that is 0", 0),
    STALL(device_idle_ns, I64, NS, "gpu idle", "of it, the device did nothing; null without one",
          RP_NULLABLE),
    STALL(cause, STR, NONE, "cause", "why, as far as the recording tells", 0),
    STALL(name, STR, NONE, "call", "what was called", RP_SHORTEN),
    STALL(kind, STR, NONE, NULL, "operator, annotation, runtime, python …", 0),
    STALL(during, STR, NONE, NULL, "what ran around it or held it up, or null", 0),
    STALL(hint, STR, NONE, NULL, "what to try", 0),
    RP_FIELD_END};
static const struct rp_type stall_type = {"stall", sizeof(struct rp_stall), stall_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stall_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(count, I64, COUNT, "stalls", "how many", 0),
    RANK(total_ns, I64, NS, "total", "own time of the stalls", 0),
    RANK(max_ns, I64, NS, "longest", "the longest", 0),
    RANK(device_idle_ns, I64, NS, "gpu idle", "of it, the device did nothing; null without one",
         RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_stall_rank), rank_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stalls_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "stalls", "for the screen", RP_SCREEN),
    ROOT(modes_text, STR, NONE, "modes", "for the screen", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(floor_ns, I64, NS, NULL, "a stall has more own time than this", 0),
    ROOT(ratio, I64, NONE, NULL, "and more than so many times the median of its name", 0),
    ROOT(stall_count, I64, COUNT, NULL, "stalls before the limit", 0),
    ROOT(total_ns, I64, NS, NULL, "own time of all stalls", 0),
    ROOT(device_idle_ns, I64, NS, NULL, "of it, the device did nothing", 0),
    RP_FIELD_LIST(struct rp_stalls_root, modes, &mode_type, NULL, "where stalls gather", 0),
    RP_FIELD_LIST(struct rp_stalls_root, rank_rows, &rank_type, "ranks", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_stalls_root, ranks, &rank_type, NULL, "one record a rank", 0),
    RP_FIELD_LIST(struct rp_stalls_root, rows, &row_type, NULL, "the largest first", 0),
    RP_FIELD_LIST(struct rp_stalls_root, named, &named_type, "calls", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_stalls_root, plain, &plain_type, "rows", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_stalls_root, stalls, &stall_type, "longest stalls",
                  "the longest of all ranks", 0),
    RP_FIELD_LIST(struct rp_stalls_root, hints, &rp_type_string, "what to try",
                  "one for each cause", 0),
    RP_FIELD_LIST(struct rp_stalls_root, notes, &rp_type_string, "notes", "what was left out", 0),
    RP_FIELD_END};

const struct rp_type rp_stalls_type = {"stalls", sizeof(struct rp_stalls_root), root_fields,
                                       "rows"};
