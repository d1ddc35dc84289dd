/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `critpath`: keys of the JSON contract, headings of the screen. */
#include "explain/trace_critpath.h"

#define SEGMENT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_segment, member, type, unit, title, doc, flags)

static const struct rp_field segment_fields[] = {
    SEGMENT(kind, STR, NONE, NULL, "host, runtime, compute, comm, memory or wait", 0),
    SEGMENT(name, STR, NONE, NULL, "the event; null in a wait", 0),
    SEGMENT(start_ns, I64, NS, NULL, "as recorded", 0),
    SEGMENT(dur_ns, I64, NS, NULL, "up to the next segment", 0),
    SEGMENT(cause, STR, NONE, NULL, "of a wait, else null", 0),
    RP_FIELD_END};
static const struct rp_type segment_type = {"segment", sizeof(struct rp_critpath_segment),
                                            segment_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_share, member, type, unit, title, doc, flags)

static const struct rp_field kind_fields[] = {
    SHARE(kind, STR, NONE, "kind", "host, runtime, compute, comm, memory or wait", 0),
    SHARE(total_ns, I64, NS, "on the path", "sum of its segments", 0),
    SHARE(share, F64, RATIO, "share", "of the window", 0),
    SHARE(count, I64, COUNT, "segments", "how many", 0), RP_FIELD_END};
static const struct rp_type kind_type = {"kind", sizeof(struct rp_critpath_share), kind_fields,
                                         NULL};

static const struct rp_field name_fields[] = {
    SHARE(total_ns, I64, NS, "on the path", "sum of its segments", 0),
    SHARE(share, F64, RATIO, "share", "of the window", 0),
    SHARE(count, I64, COUNT, "segments", "how many", 0),
    SHARE(kind, STR, NONE, "kind", "host, runtime, compute, comm, memory or wait", 0),
    SHARE(name, STR, NONE, NULL, "of the events, or the cause of the waits", 0),
    SHARE(label, STR, NONE, "name", "for the screen", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type name_type = {"name", sizeof(struct rp_critpath_share), name_fields,
                                         NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_critpath_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, NULL, "number of the process in its job", 0),
    RANK(summary, STR, NONE, "path", "for the screen", RP_SCREEN),
    RANK(window_ns, I64, NS, NULL, "first start to last end of operators, calls and device work",
         0),
    RANK(length_ns, I64, NS, NULL, "sum of the segments: the same", 0),
    RP_FIELD_LIST(struct rp_critpath_rank, kinds, &kind_type, "by kind", "time on the path", 0),
    RP_FIELD_LIST(struct rp_critpath_rank, shown, &name_type, "by name", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_critpath_rank, names, &name_type, NULL, "time on the path", 0),
    RP_FIELD_LIST(struct rp_critpath_rank, segments, &segment_type, NULL,
                  "in time order, without holes", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_critpath_rank), rank_fields,
                                         NULL};

static const struct rp_field root_fields[] = {RP_FIELD_LIST(struct rp_critpath_root, ranks,
                                                            &rank_type, "critical path",
                                                            "one record a rank", RP_BLOCKS),
                                              RP_FIELD_END};

const struct rp_type rp_critpath_type = {"critpath", sizeof(struct rp_critpath_root), root_fields,
                                         "ranks/segments"};
