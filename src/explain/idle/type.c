/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `idle`: keys of the JSON contract, headings of the screen. */
#include "explain/idle/idle.h"

#define CAUSE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_cause, member, type, unit, title, doc, flags)

/* "class" is the key; cls the member, for readers in C++. */
#define CLASS(s, title)                                                       \
    {                                                                         \
        "class", title, RP_T_STR, RP_UNIT_NONE, 0, offsetof(s, cls), 0, NULL, \
            "not_launched, short, dependency or unlinked"                     \
    }

static const struct rp_field cause_fields[] = {
    CAUSE(cause, STR, NONE, "cause", "why the device was idle", 0),
    CLASS(struct rp_idle_cause, NULL),
    CAUSE(total_ns, I64, NS, "idle", "sum of the gaps", 0),
    CAUSE(share, F64, RATIO, "share", "of all idle time", 0),
    CAUSE(count, I64, COUNT, "gaps", "how many", 0),
    CAUSE(longest_ns, I64, NS, "longest", "the longest gap", 0),
    CAUSE(evidence, STR, NONE, "mostly", "what was met in most of it", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type cause_type = {"cause", sizeof(struct rp_idle_cause), cause_fields,
                                          NULL};

/* The same on the screen, where classes are added up. */
static const struct rp_field shown_fields[] = {
    CAUSE(cause, STR, NONE, "cause", "why the device was idle", 0),
    CAUSE(total_ns, I64, NS, "idle", "sum of the gaps", 0),
    CAUSE(share, F64, RATIO, "share", "of all idle time", 0),
    CAUSE(count, I64, COUNT, "gaps", "how many", 0),
    CAUSE(longest_ns, I64, NS, "longest", "the longest gap", 0),
    CAUSE(evidence, STR, NONE, "mostly", "what was met in most of it", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type shown_type = {"cause", sizeof(struct rp_idle_cause), shown_fields,
                                          NULL};

#define GAP(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_gap, member, type, unit, title, doc, flags)

static const struct rp_field gap_fields[] = {
    GAP(rank, I64, NONE, "rank", "whose device", 0),
    GAP(begin_ns, I64, NS, NULL, "when it began, as recorded", 0),
    GAP(dur_ns, I64, NS, "idle", "how long it was", 0),
    GAP(cause, STR, NONE, "cause", "why", 0),
    CLASS(struct rp_idle_gap, NULL),
    GAP(before, STR, NONE, NULL, "the work that ended last", 0),
    GAP(after, STR, NONE, NULL, "the work that ended the gap", 0),
    GAP(thread, STR, NONE, NULL, "the thread that launched it, or null", 0),
    GAP(host, STR, NONE, "the host ran", "what the thread ran meanwhile, or null", RP_SHORTEN),
    GAP(after_label, STR, NONE, "until", "for the screen", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type gap_type = {"gap", sizeof(struct rp_idle_gap), gap_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(window_ns, I64, NS, "window", "first start to last end of device work", 0),
    RANK(busy_ns, I64, NS, "busy", "time in which device work runs", 0),
    RANK(idle_ns, I64, NS, "idle", "the rest", 0),
    RANK(idle_share, F64, RATIO, "share", "idle / window", 0),
    RANK(explained_share, F64, RATIO, "explained", "of idle: with a cause that is known", 0),
    RANK(gap_count, I64, COUNT, "gaps", "how many", 0),
    RP_FIELD_LIST(struct rp_idle_rank, causes, &cause_type, NULL, "idle time by cause and class",
                  0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_idle_rank), rank_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct rp_idle_root, summary, STR, NONE, "idle", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_idle_root, rows, &rank_type, "ranks", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_idle_root, ranks, &rank_type, NULL, "one record a rank", 0),
    RP_FIELD_LIST(struct rp_idle_root, causes, &shown_type, "causes", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_idle_root, gaps, &gap_type, "longest gaps", "the longest of all ranks",
                  0),
    RP_FIELD_END};

const struct rp_type rp_idle_type = {"idle", sizeof(struct rp_idle_root), root_fields,
                                     "ranks/causes"};
