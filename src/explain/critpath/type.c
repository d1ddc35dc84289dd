/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `critpath`: keys of the JSON contract, headings of the screen. */
#include "explain/critpath/critpath.h"

#define KIND_DOC "host, runtime, compute, comm, memory or wait"

#define SEGMENT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_segment, member, type, unit, title, doc, flags)

static const struct rp_field segment_fields[] = {
    SEGMENT(kind, STR, NONE, NULL, KIND_DOC, 0),
    SEGMENT(name, STR, NONE, NULL, "the event; null in a wait", 0),
    SEGMENT(start_ns, I64, NS, NULL, "as recorded", 0),
    SEGMENT(dur_ns, I64, NS, NULL, "up to the next segment", 0),
    SEGMENT(cause, STR, NONE, NULL, "of a wait, else null", 0),
    RP_FIELD_END};
static const struct rp_type segment_type = {"segment", sizeof(struct rp_critpath_segment),
                                            segment_fields, NULL};

static const struct rp_field run_segment_fields[] = {
    SEGMENT(rank, I64, NONE, NULL, "where", 0),
    SEGMENT(kind, STR, NONE, NULL, KIND_DOC, 0),
    SEGMENT(name, STR, NONE, NULL, "the event; null in a wait", 0),
    SEGMENT(start_ns, I64, NS, NULL, "on the clock of the first rank", 0),
    SEGMENT(dur_ns, I64, NS, NULL, "up to the next segment", 0),
    SEGMENT(cause, STR, NONE, NULL, "of a wait, else null", 0),
    RP_FIELD_END};
static const struct rp_type run_segment_type = {"segment", sizeof(struct rp_critpath_segment),
                                                run_segment_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_share, member, type, unit, title, doc, flags)

static const struct rp_field kind_fields[] = {
    SHARE(kind, STR, NONE, "kind", KIND_DOC, 0),
    SHARE(total_ns, I64, NS, "on the path", "sum of its segments", 0),
    SHARE(share, F64, RATIO, "share", "of the window", 0),
    SHARE(count, I64, COUNT, "segments", "how many", 0), RP_FIELD_END};
static const struct rp_type kind_type = {"kind", sizeof(struct rp_critpath_share), kind_fields,
                                         NULL};

static const struct rp_field name_fields[] = {
    SHARE(total_ns, I64, NS, "on the path", "sum of its segments", 0),
    SHARE(share, F64, RATIO, "share", "of the window", 0),
    SHARE(gain_ns, I64, NS, "gain", "how much earlier the end comes if it takes no time",
          RP_NULLABLE),
    SHARE(count, I64, COUNT, "segments", "how many", 0),
    SHARE(kind, STR, NONE, "kind", KIND_DOC, 0),
    SHARE(name, STR, NONE, NULL, "of the events, or the cause of the waits", 0),
    SHARE(label, STR, NONE, "name", "for the screen", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type name_type = {"name", sizeof(struct rp_critpath_share), name_fields,
                                         NULL};

#define SLACK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_slack, member, type, unit, title, doc, flags)

static const struct rp_field slack_fields[] = {
    SLACK(slack_ns, I64, NS, "slack", "the least of its parts", 0),
    SLACK(total_ns, I64, NS, "takes", "all its parts, on the path or not", 0),
    SLACK(path_ns, I64, NS, NULL, "those on the path", 0),
    SLACK(count, I64, COUNT, "parts", "how many", 0),
    SLACK(kind, STR, NONE, "kind", "host, runtime, compute, comm or memory", 0),
    SLACK(name, STR, NONE, NULL, "of the events", 0),
    SLACK(label, STR, NONE, "name", "for the screen", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type slack_type = {"slack", sizeof(struct rp_critpath_slack), slack_fields,
                                          NULL};

static const struct rp_field track_fields[] = {
    SLACK(track, STR, NONE, NULL, "the thread or stream", 0),
    SLACK(kind, STR, NONE, NULL, "thread or stream", 0),
    SLACK(rank, I64, NONE, NULL, "where", 0),
    SLACK(slack_ns, I64, NS, NULL, "the least of its parts", 0),
    SLACK(total_ns, I64, NS, NULL, "all its parts, on the path or not", 0),
    SLACK(path_ns, I64, NS, NULL, "those on the path", 0),
    SLACK(count, I64, COUNT, NULL, "how many parts", 0),
    RP_FIELD_END};
static const struct rp_type track_type = {"track", sizeof(struct rp_critpath_slack), track_fields,
                                          NULL};

#define RANK_SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_rank_share, member, type, unit, title, doc, flags)

static const struct rp_field rank_share_fields[] = {
    RANK_SHARE(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK_SHARE(total_ns, I64, NS, NULL, "time of the run's path on it", 0),
    RANK_SHARE(share, F64, RATIO, NULL, "of the run's window", 0),
    RANK_SHARE(median_slack_ns, I64, NS, NULL, "half of its time could be later by this or more",
               0),
    RANK_SHARE(offset_ns, I64, NS, NULL, "added to its times for the clock of the first rank", 0),
    RP_FIELD_END};
static const struct rp_type rank_share_type = {"rank", sizeof(struct rp_critpath_rank_share),
                                               rank_share_fields, NULL};

static const struct rp_field rank_row_fields[] = {
    RANK_SHARE(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK_SHARE(total_ns, I64, NS, "run's path", "time of the run's path on it", 0),
    RANK_SHARE(median_slack_ns, I64, NS, "slack", "half of its time could be later by this or more",
               0),
    RANK_SHARE(window_ns, I64, NS, "own path", "of the rank", 0),
    RANK_SHARE(host_ns, I64, NS, "host", "on its own path", 0),
    RANK_SHARE(runtime_ns, I64, NS, "runtime", "on its own path", RP_WIDE),
    RANK_SHARE(compute_ns, I64, NS, "compute", "on its own path", 0),
    RANK_SHARE(comm_ns, I64, NS, "transfer", "on its own path", 0),
    RANK_SHARE(memory_ns, I64, NS, "memory", "on its own path", RP_WIDE),
    RANK_SHARE(other_rank_ns, I64, NS, "for ranks", "on its own path: waits for other ranks", 0),
    RANK_SHARE(wait_ns, I64, NS, "waits", "on its own path: other waits", 0),
    RP_FIELD_END};
static const struct rp_type rank_row_type = {"rank", sizeof(struct rp_critpath_rank_share),
                                             rank_row_fields, NULL};

#define PATH(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_path, member, type, unit, title, doc, flags)
#define PATH_LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_critpath_path, member, item, title, doc, flags)

#define WINDOW_FIELDS                                                                             \
    PATH(window_ns, I64, NS, NULL, "first start to last end of operators, calls and device work", \
         0),                                                                                      \
        PATH(length_ns, I64, NS, NULL, "sum of the segments: the same", 0),                       \
        PATH(replay_error_ns, I64, NS, NULL,                                                      \
             "largest difference between the recorded times and those of the graph run forward",  \
             0)
#define LIST_FIELDS                                                                     \
    PATH_LIST(kinds, &kind_type, "by kind", "time on the path", 0),                     \
        PATH_LIST(shown, &name_type, "by name", "for the screen", RP_SCREEN),           \
        PATH_LIST(names, &name_type, NULL, "time on the path", 0),                      \
        PATH_LIST(next, &slack_type, "critical next, if the path shrinks by its slack", \
                  "for the screen", RP_SCREEN),                                         \
        PATH_LIST(slack, &slack_type, NULL, "every name, least slack first", 0),        \
        PATH_LIST(tracks, &track_type, NULL, "threads and streams, least slack first", 0)

static const struct rp_field rank_fields[] = {
    PATH(path, STR, NONE, NULL, "the input", 0),
    PATH(rank, I64, NONE, NULL, "number of the process in its job", 0),
    PATH(summary, STR, NONE, "path", "for the screen", RP_SCREEN),
    WINDOW_FIELDS,
    LIST_FIELDS,
    PATH_LIST(segments, &segment_type, NULL, "in time order, without holes", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_critpath_path), rank_fields,
                                         NULL};

static const struct rp_field run_fields[] = {
    PATH(summary, STR, NONE, "run", "for the screen", RP_SCREEN),
    PATH(joined, BOOL, NONE, NULL, "the ranks meet in collectives", 0),
    PATH(clock, STR, NONE, NULL, "recorded, or aligned by the ends of collectives", 0),
    PATH(meeting_count, I64, COUNT, NULL, "collectives in which ranks met", 0),
    WINDOW_FIELDS,
    PATH_LIST(rank_rows, &rank_row_type, "by rank", "for the screen", RP_SCREEN),
    PATH_LIST(shares, &rank_share_type, NULL, "time of the path by rank", 0),
    LIST_FIELDS,
    PATH_LIST(segments, &run_segment_type, NULL, "in time order, without holes", 0),
    RP_FIELD_END};
static const struct rp_type run_type = {"run", sizeof(struct rp_critpath_path), run_fields, NULL};

#define ROOT_LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_critpath_root, member, item, title, doc, flags)

static const struct rp_field root_fields[] = {
    RP_FIELD_RECORD(struct rp_critpath_root, run, &run_type, "critical path", "across the ranks",
                    0),
    ROOT_LIST(blocks, &rank_type, "critical path", "for the screen", RP_BLOCKS | RP_SCREEN),
    ROOT_LIST(ranks, &rank_type, NULL, "one record a rank", 0),
    ROOT_LIST(notes, &rp_type_string, "notes", "what the recording does not tell", 0),
    ROOT_LIST(written, &rp_type_string, "written", "overlays, one a rank", 0),
    RP_FIELD_END};

const struct rp_type rp_critpath_type = {"critpath", sizeof(struct rp_critpath_root), root_fields,
                                         "ranks/segments"};
