/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `report`: keys of the JSON contract, headings of the screen. */
#include "explain/report/report.h"

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(window_ns, I64, NS, "window", "first start to last end of device work", 0),
    RANK(busy_ns, I64, NS, NULL, "time in which device work runs", 0),
    RANK(compute_ns, I64, NS, "compute", "time in which kernels other than communication run", 0),
    RANK(comm_ns, I64, NS, "comm", "time in which communication kernels run", 0),
    RANK(exposed_comm_ns, I64, NS, NULL, "communication while no compute runs", 0),
    RANK(memory_ns, I64, NS, "copies", "time in which copies and memsets run", RP_WIDE),
    RANK(idle_ns, I64, NS, "idle", "time in which nothing runs", 0),
    RANK(idle_share, F64, RATIO, "share", "idle / window", 0),
    RANK(wait_ns, I64, NS, "waits", "in collectives, until the last rank came, or null",
         RP_NULLABLE),
    RANK(transfer_ns, I64, NS, NULL, "in collectives, after the last rank came, or null",
         RP_NULLABLE),
    RANK(last_count, I64, COUNT, "last", "collectives to which it came last, or null", RP_NULLABLE),
    RANK(margin_ns, I64, NS, NULL, "by how much it came last, after the second last, or null",
         RP_NULLABLE),
    RANK(late_ns, I64, NS, NULL, "idle before the next work was launched; null without a device",
         RP_NULLABLE),
    RANK(stall_count, I64, COUNT, NULL, "host calls far above the median of their name", 0),
    RANK(stall_ns, I64, NS, "stalls", "their own time", 0),
    RANK(step_ns, I64, NS, NULL, "median step, or null", RP_NULLABLE),
    RANK(op_share, F64, RATIO, NULL, "device time with a known operator", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_report_rank), rank_fields, NULL};

#define STEP(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_step, member, type, unit, title, doc, flags)

static const struct rp_field step_fields[] = {
    STEP(rank, I64, NONE, NULL, "whose step", 0),
    STEP(name, STR, NONE, NULL, "its name", 0),
    STEP(number, I64, NONE, NULL, "its number", 0),
    STEP(begin_ns, I64, NS, NULL, "its first device work, as recorded", 0),
    STEP(dur_ns, I64, NS, NULL, "from there to the first of the next step", 0),
    STEP(host_ns, I64, NS, NULL, "length of its mark on the host", 0),
    STEP(busy_ns, I64, NS, NULL, "time in which device work runs", 0),
    STEP(compute_ns, I64, NS, NULL, "time in which compute runs", 0),
    STEP(comm_ns, I64, NS, NULL, "time in which communication runs", 0),
    STEP(exposed_comm_ns, I64, NS, NULL, "communication while no compute runs", 0),
    STEP(memory_ns, I64, NS, NULL, "time in which copies and memsets run", 0),
    STEP(idle_ns, I64, NS, NULL, "time in which nothing runs", 0),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_report_step), step_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_share, member, type, unit, title, doc, flags)

static const struct rp_field share_fields[] = {
    SHARE(part, STR, NONE, "part", "what the time went to", 0),
    SHARE(total_ns, I64, NS, NULL, "sum over the ranks", 0),
    SHARE(mean_ns, I64, NS, "time", "mean of the ranks", 0),
    SHARE(share, F64, RATIO, "share", "of the windows", 0),
    SHARE(note, STR, NONE, "which is", "what the part means", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type share_type = {"part", sizeof(struct rp_report_share), share_fields,
                                          NULL};

#define FINDING(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_finding, member, type, unit, title, doc, flags)

static const struct rp_field finding_fields[] = {
    FINDING(id, STR, NONE, NULL, "stable name", 0),
    FINDING(title, STR, NONE, NULL, "what was found", 0),
    FINDING(lost_ns, I64, NS, NULL, "by how much the recording would be shorter", 0),
    FINDING(share, F64, RATIO, NULL, "of the window", 0),
    RP_FIELD_LIST(struct rp_report_finding, evidence, &rp_type_string, NULL, "what shows it", 0),
    FINDING(hint, STR, NONE, NULL, "what to try", 0),
    RP_FIELD_END};
static const struct rp_type finding_type = {"finding", sizeof(struct rp_report_finding),
                                            finding_fields, NULL};

static const struct rp_field latency_fields[] = {
    RP_FIELD(struct rp_report_latency, ops, I64, COUNT, NULL, "operators with recorded inputs", 0),
    RP_FIELD(struct rp_report_latency, p50_ns, I64, NS, NULL, "median, by nearest rank", 0),
    RP_FIELD(struct rp_report_latency, p90_ns, I64, NS, NULL, "90th percentile", 0),
    RP_FIELD(struct rp_report_latency, max_ns, I64, NS, NULL, "the longest", 0),
    RP_FIELD(struct rp_report_latency, slowest, STR, NONE, NULL, "who waited longest, or null", 0),
    RP_FIELD_END};
static const struct rp_type latency_type = {"latency", sizeof(struct rp_report_latency),
                                            latency_fields, NULL};

#define LOOK(member, title, doc) \
    RP_FIELD(struct rp_report_look, member, STR, NONE, title, doc, RP_SCREEN)

static const struct rp_field look_fields[] = {LOOK(heading, "finding", "its name and cost"),
                                              LOOK(why, "what", "what was found"),
                                              LOOK(seen, "seen", "the evidence that weighs most"),
                                              LOOK(hint, "try", "what may help"), RP_FIELD_END};
static const struct rp_type look_type = {"look", sizeof(struct rp_report_look), look_fields, NULL};

static const struct rp_field mode_fields[] = {
    RP_FIELD(struct rp_report_mode, at_ns, I64, NS, NULL, "where they are densest", 0),
    RP_FIELD(struct rp_report_mode, count, I64, COUNT, NULL, "how many", 0), RP_FIELD_END};
static const struct rp_type mode_type = {"mode", sizeof(struct rp_report_mode), mode_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "run", "for the screen", RP_SCREEN),
    ROOT(step_text, STR, NONE, "step", "for the screen", RP_SCREEN),
    ROOT(lost_text, STR, NONE, "time", "for the screen", RP_SCREEN),
    ROOT(pace_text, STR, NONE, "pace", "for the screen", RP_SCREEN),
    ROOT(stall_text, STR, NONE, "host", "for the screen", RP_SCREEN),
    ROOT(window_ns, I64, NS, NULL, "mean of the ranks' windows", 0),
    ROOT(step_ns, I64, NS, NULL, "median step of the ranks, or null", RP_NULLABLE),
    ROOT(lost_ns, I64, NS, NULL, "of the window: waiting and idle", 0),
    ROOT(needed_ns, I64, NS, NULL, "of the window: compute, transfer, copies", 0),
    ROOT(span_ns, I64, NS, NULL, "first start to last end of what ranks meet in, or null",
         RP_NULLABLE),
    ROOT(stall_count, I64, COUNT, NULL, "host calls far above the median of their name", 0),
    ROOT(stall_ns, I64, NS, NULL, "their own time", 0),
    RP_FIELD_LIST(struct rp_report_root, stall_modes, &mode_type, NULL,
                  "lengths around which a tenth of them or more gather", 0),
    RP_FIELD_LIST(struct rp_report_root, parts, &share_type, "where the time goes, a rank",
                  "parts of the window; they add up to it", 0),
    RP_FIELD_LIST(struct rp_report_root, rank_rows, &rank_type, "who holds up whom",
                  "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_report_root, ranks, &rank_type, NULL, "one record a rank", 0),
    RP_FIELD_LIST(struct rp_report_root, steps, &step_type, NULL, "the steps of each rank", 0),
    RP_FIELD_LIST(struct rp_report_root, findings, &finding_type, NULL, "most costly first", 0),
    RP_FIELD_LIST(struct rp_report_root, look, &look_type, "what to look at", "for the screen",
                  RP_SCREEN | RP_BLOCKS),
    RP_FIELD_RECORD(struct rp_report_root, latency, &latency_type, NULL,
                    "from the last input of an operator to its start", 0),
    RP_FIELD_LIST(struct rp_report_root, pitfalls, &rp_type_string,
                  "what the timeline does not show",
                  "pitfalls of reading it, checked on this trace", 0),
    RP_FIELD_LIST(struct rp_report_root, notes, &rp_type_string, "notes",
                  "coverage, and what was missing", 0),
    RP_FIELD_END};

const struct rp_type rp_report_type = {"report", sizeof(struct rp_report_root), root_fields,
                                       "ranks"};
