/* SPDX-License-Identifier: Apache-2.0 */
/* The record of `merge`: what its fields are called and what they mean. */
#include "explain/merge/merge.h"

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_merge_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "its number", 0),
    RANK(host, STR, NONE, "host", "ranks of one host share a clock; null: a clock of its own", 0),
    RANK(offset_ns, I64, NS, "offset", "to be added to its times for the first rank's clock",
         RP_NULLABLE),
    RANK(uncertainty_ns, I64, NS, "±", "of the offset", RP_NULLABLE),
    RANK(low_ns, I64, NS, "at least", "the offset is certainly not below", RP_NULLABLE | RP_WIDE),
    RANK(high_ns, I64, NS, "at most", "the offset is certainly not above", RP_NULLABLE | RP_WIDE),
    RANK(drift_ppb, F64, NONE, NULL, "what must be added to the offset each second, in ns", 0),
    RANK(drift_at_ns, I64, NS, NULL, "where in its times the offset holds, if it drifts",
         RP_NULLABLE),
    RANK(drift_text, STR, NONE, "drift", "for the screen", RP_SCREEN),
    RANK(meeting_count, I64, COUNT, "meetings", "ends of collectives on its clock that were used",
         0),
    RANK(message_count, I64, COUNT, "messages", "of its clock to and from others", RP_WIDE),
    RANK(path, STR, NONE, "trace", "what was read", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_merge_rank), rank_fields, NULL};

#define CONFLICT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_merge_conflict, member, type, unit, title, doc, flags)

static const struct rp_field conflict_fields[] = {
    CONFLICT(rank_a, I64, NONE, "rank", "left before", 0),
    CONFLICT(rank_b, I64, NONE, "was done before rank", "this one came", 0),
    CONFLICT(what, STR, NONE, "came to", "the collective or message", 0),
    CONFLICT(by_ns, I64, NS, "by", "how far from possible it is", 0),
    CONFLICT(against, STR, NONE, "if one goes by",
             "what says the opposite; null: nothing but their clock", 0),
    RP_FIELD_END};
static const struct rp_type conflict_type = {"conflict", sizeof(struct rp_merge_conflict),
                                             conflict_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_merge_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "clocks", "for the screen", RP_SCREEN),
    ROOT(output_text, STR, NONE, "written", "for the screen", RP_SCREEN),
    ROOT(matched_by, STR, NONE, NULL, "sequence, order, name, records or none", 0),
    ROOT(meeting_count, I64, COUNT, NULL, "collectives in which clocks met", 0),
    ROOT(message_count, I64, COUNT, NULL, "sends with their receives", 0),
    ROOT(consistent, BOOL, NONE, NULL, "no two facts contradict each other", 0),
    ROOT(output, STR, NONE, NULL, "the merged trace, or null", 0),
    ROOT(format, STR, NONE, NULL, "of the merged trace, or null", 0),
    ROOT(event_count, I64, COUNT, NULL, "events of the merged trace", RP_NULLABLE),
    RP_FIELD_LIST(struct rp_merge_root, ranks, &rank_type, "clocks of the ranks",
                  "one record a rank", 0),
    RP_FIELD_LIST(struct rp_merge_root, conflicts, &conflict_type, "contradictions",
                  "facts that no offsets fit", 0),
    RP_FIELD_LIST(struct rp_merge_root, notes, &rp_type_string, "notes",
                  "what the recording does not tell", 0),
    RP_FIELD_END};

const struct rp_type rp_merge_type = {"merge", sizeof(struct rp_merge_root), root_fields, "ranks"};
