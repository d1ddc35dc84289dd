/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `top`: keys of the JSON contract, headings of the screen. */
#include "explain/top/top.h"

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_top_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "the name as recorded", 0),
    ROW(kind, STR, NONE, NULL, "compute, comm or memory of device work; else what it is", 0),
    ROW(count, I64, COUNT, NULL, "how often", 0),
    ROW(total_ns, I64, NS, NULL, "sum over all, what is nested inside included", 0),
    ROW(share, F64, RATIO, NULL, "of all time that was asked about", 0),
    ROW(self_ns, I64, NS, NULL, "without what belongs to a nested one", 0),
    ROW(mean_ns, I64, NS, NULL, "total / count", 0),
    ROW(min_ns, I64, NS, NULL, "the smallest", 0),
    ROW(p50_ns, I64, NS, NULL, "median, by nearest rank", 0),
    ROW(p90_ns, I64, NS, NULL, "90th percentile, by nearest rank", 0),
    ROW(p99_ns, I64, NS, NULL, "99th percentile, by nearest rank", 0),
    ROW(max_ns, I64, NS, NULL, "the largest", 0),
    ROW(std_ns, I64, NS, NULL, "standard deviation of the population", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_top_row), row_fields, NULL};

/* On the screen: names shortened; self time only where rows may be nested. */
#define SHOWN_BEGIN                                                                \
    ROW(label, STR, NONE, "name", "the name, shortened", RP_SCREEN | RP_SHORTEN),  \
        ROW(count, I64, COUNT, "count", "how often", 0),                           \
        ROW(total_ns, I64, NS, "total", "sum, what is nested inside included", 0), \
        ROW(share, F64, RATIO, "share", "of all time that was asked about", 0)
#define SHOWN_END                                                \
    ROW(mean_ns, I64, NS, "mean", "total / count", RP_WIDE),     \
        ROW(min_ns, I64, NS, "min", "the smallest", RP_WIDE),    \
        ROW(p50_ns, I64, NS, "p50", "median", 0),                \
        ROW(p90_ns, I64, NS, "p90", "90th percentile", RP_WIDE), \
        ROW(p99_ns, I64, NS, "p99", "99th percentile", RP_WIDE), \
        ROW(max_ns, I64, NS, "max", "the largest", 0),           \
        ROW(std_ns, I64, NS, "std", "standard deviation", RP_WIDE)

static const struct rp_field flat_fields[] = {SHOWN_BEGIN, SHOWN_END, RP_FIELD_END};
static const struct rp_type flat_type = {"row", sizeof(struct rp_top_row), flat_fields, NULL};

static const struct rp_field nested_fields[] = {
    SHOWN_BEGIN, ROW(self_ns, I64, NS, "self", "without what belongs to a nested one", 0),
    SHOWN_END, RP_FIELD_END};
static const struct rp_type nested_type = {"row", sizeof(struct rp_top_row), nested_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_top_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "top", "for the screen", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(measure, STR, NONE, NULL, "device time, or host time where no device work was recorded",
         0),
    ROOT(ranks, I64, COUNT, NULL, "ranks that were added up", 0),
    ROOT(whole_ns, I64, NS, "all", "sum of the durations of all work that was asked about", 0),
    ROOT(covered_ns, I64, NS, NULL, "of it, in a row", 0),
    ROOT(covered_share, F64, RATIO, NULL, "the same as a share", 0),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_top_root, rows, &row_type, NULL, "the largest first", 0),
    RP_FIELD_LIST(struct rp_top_root, flat, &flat_type, "rows", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_top_root, nested, &nested_type, "rows", "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_top_root, notes, &rp_type_string, "notes", "about the rows", RP_SCREEN),
    RP_FIELD_END};

const struct rp_type rp_top_type = {"top", sizeof(struct rp_top_root), root_fields, "rows"};
