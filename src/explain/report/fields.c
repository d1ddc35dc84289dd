/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the answer of `report`, and those of a rank's part. */
#include "explain/diff/gates.h"
#include "explain/report/report.h"
#include "result/part.h"

/* ------------------------------------------------------------------ what is shown */

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(window_ns, I64, NS, "window", "first start to last end of device work", RP_WIDE),
    RANK(busy_ns, I64, NS, NULL, "time in which device work runs", 0),
    RANK(compute_ns, I64, NS, "compute", "time in which kernels other than communication run", 0),
    RANK(comm_ns, I64, NS, "comm", "time in which communication kernels run", 0),
    RANK(exposed_comm_ns, I64, NS, NULL, "communication while no compute runs", 0),
    RANK(memory_ns, I64, NS, "copies", "time in which copies and memsets run", RP_WIDE),
    RANK(idle_ns, I64, NS, "idle", "time in which nothing runs", RP_LARGEST),
    RANK(idle_share, F64, RATIO, "share", "idle / window", 0),
    RANK(wait_ns, I64, NS, "waits", "time in collectives until the last rank arrived, or null",
         RP_NULLABLE),
    RANK(transfer_ns, I64, NS, NULL, "time in collectives after the last rank arrived, or null",
         RP_NULLABLE),
    RANK(last_count, I64, COUNT, "was last", "collectives at which it arrived last, or null",
         RP_NULLABLE),
    RANK(margin_ns, I64, NS, "delays", "how much later than the second last it arrived, or null",
         RP_NULLABLE | RP_WIDE | RP_LARGEST),
    RANK(late_ns, I64, NS, NULL, "idle before the next work was launched; null without a device",
         RP_NULLABLE),
    RANK(stall_count, I64, COUNT, NULL, "host calls far above the median of their name", 0),
    RANK(stall_ns, I64, NS, "stalls", "their own time", 0),
    RANK(step_ns, I64, NS, NULL, "median step, or null", RP_NULLABLE),
    RANK(span_ns, I64, NS, NULL, "begin of the first step to end of the last", 0),
    RANK(op_share, F64, RATIO, NULL, "device time with a known operator", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_report_rank), rank_fields, NULL};

/* The meaning of the same times on the host, if there is no device. */
#define HOST_RANK                                                                             \
    "rank, span_ns:span, compute_ns:running, comm_ns, idle_ns:neither, wait_ns, last_count, " \
    "margin_ns-, stall_ns+"

#define STEP(member, type, unit, doc) \
    RP_FIELD(struct rp_report_step, member, type, unit, NULL, doc, 0)
#define STEP_TIME(key, member, doc) \
    RP_FIELD_AS(#key, struct rp_report_step, b.member, I64, NS, NULL, doc, 0)

static const struct rp_field step_fields[] = {
    STEP(rank, I64, NONE, "whose step"),
    STEP(name, STR, NONE, "its name"),
    STEP(number, I64, NONE, "its number"),
    STEP(phase, STR, NONE, "prefill, decode or mixed, where its mark says so"),
    RP_FIELD(struct rp_report_step, requests, I64, COUNT, NULL, "requests in its batch",
             RP_NULLABLE),
    RP_FIELD(struct rp_report_step, tokens, I64, COUNT, NULL, "that it computes", RP_NULLABLE),
    RP_FIELD(struct rp_report_step, warm_up, BOOL, NONE, NULL,
             "one of the first, far longer than usual: is not judged", 0),
    STEP_TIME(begin_ns, begin_ns,
              "its mark, or the end of earlier steps' device work, as recorded"),
    STEP_TIME(dur_ns, window_ns, "time from there to the beginning of the next step"),
    STEP(host_ns, I64, NS, "duration of its mark"),
    STEP_TIME(busy_ns, busy_ns, "time in which device work runs"),
    STEP_TIME(compute_ns, compute_ns, "time in which compute runs"),
    STEP_TIME(comm_ns, comm_ns, "time in which communication runs"),
    STEP_TIME(exposed_comm_ns, exposed_comm_ns, "communication while no compute runs"),
    STEP_TIME(memory_ns, memory_ns, "time in which copies and memsets run"),
    STEP_TIME(idle_ns, idle_ns, "time in which nothing runs"),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_report_step), step_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_share, member, type, unit, title, doc, flags)

static const struct rp_field share_fields[] = {
    SHARE(part, STR, NONE, "part", "what the time went to", 0),
    SHARE(total_ns, I64, NS, NULL, "sum over the ranks", 0),
    SHARE(mean_ns, I64, NS, "time", "mean of the ranks", 0),
    SHARE(share, F64, RATIO, "share", "share of the spans", RP_BAR),
    SHARE(note, STR, NONE, "meaning", "what the part means", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type share_type = {"part", sizeof(struct rp_report_share), share_fields,
                                          NULL};

#define WHO(member, type, unit, doc, flags) \
    RP_FIELD(struct rp_report_who, member, type, unit, NULL, doc, flags)

static const struct rp_field who_fields[] = {
    WHO(kind, STR, NONE, "rank, host, stage, link or nic", 0),
    RP_FIELD_LIST(struct rp_report_who, ranks, &rp_type_int, NULL, "their numbers", 0),
    RP_FIELD_LIST(struct rp_report_who, hosts, &rp_type_string, NULL,
                  "their hosts, as far as known; of a link both", 0),
    RP_FIELD_END};
static const struct rp_type who_type = {"who", sizeof(struct rp_report_who), who_fields, NULL};

#define FINDING(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_finding, member, type, unit, title, doc, flags)

static const struct rp_field finding_fields[] = {
    FINDING(id, STR, NONE, NULL, "stable name", 0),
    FINDING(title, STR, NONE, NULL, "what was found", 0),
    FINDING(lost_ns, I64, NS, NULL, "how much shorter the recording would be without it", 0),
    FINDING(share, F64, RATIO, NULL, "share of the span", 0),
    FINDING(compute_ns, I64, NS, NULL, "the part of lost_ns inside of what counts as compute", 0),
    FINDING(at_most, BOOL, NONE, NULL,
            "whether the cost is an upper bound, or overlaps with other findings", 0),
    RP_FIELD_RECORD(struct rp_report_finding, who, &who_type, NULL,
                    "which of the ranks it is about; null: all, or it is not known", RP_NULLABLE),
    RP_FIELD_LIST(struct rp_report_finding, evidence, &rp_type_string, NULL, "evidence", 0),
    FINDING(hint, STR, NONE, NULL, "what to try", 0),
    RP_FIELD_LIST(struct rp_report_finding, tries, &rp_report_try_type, NULL,
                  "the same, one by one, with predictions", 0),
    RP_FIELD_END};
static const struct rp_type finding_type = {"finding", sizeof(struct rp_report_finding),
                                            finding_fields, NULL};

#define CHANGE(member, type, unit, doc, flags) \
    RP_FIELD(struct rp_report_opportunity, member, type, unit, NULL, doc, flags)

static const struct rp_field opportunity_fields[] = {
    CHANGE(what_if, STR, NONE, "the change, as 'simulate --what-if' takes it", 0),
    CHANGE(
        applies, STR, NONE,
        "whether it can be made, by the recording: yes, part (of a step: only that is predicted) "
        "or no",
        0),
    CHANGE(because, STR, NONE, "what that follows from; null: it always applies", RP_NULLABLE),
    CHANGE(gain_ns, I64, NS,
           "a step without the profiler becomes shorter by; as the next three null where it does "
           "not apply",
           RP_NULLABLE),
    CHANGE(gain_low_ns, I64, NS, "lower end of its interval, above 0", RP_NULLABLE),
    CHANGE(gain_high_ns, I64, NS, "upper end of its interval", RP_NULLABLE),
    CHANGE(step_ns, I64, NS, "a step without the profiler, with the change", RP_NULLABLE),
    CHANGE(finding, STR, NONE, "the finding that it answers, or null", 0),
    CHANGE(effort, I64, COUNT, "how much work it is, from 1 (an option) to 6; 0: not known", 0),
    CHANGE(apply, STR, NONE, "how to make it, or null", 0),
    CHANGE(assumes, STR, NONE, "what must hold, or null", RP_NULLABLE),
    CHANGE(tries, I64, COUNT,
           "measured tries of it on this machine that the interval is from; 0: none", 0),
    RP_FIELD_END};
static const struct rp_type opportunity_type = {"opportunity", sizeof(struct rp_report_opportunity),
                                                opportunity_fields, NULL};

static const struct rp_field latency_fields[] = {
    RP_FIELD(struct rp_report_latency, ops, I64, COUNT, NULL, "operators with recorded inputs", 0),
    RP_FIELD(struct rp_report_latency, p50_ns, I64, NS, NULL, "median, by nearest rank", 0),
    RP_FIELD(struct rp_report_latency, p90_ns, I64, NS, NULL, "90th percentile", 0),
    RP_FIELD(struct rp_report_latency, max_ns, I64, NS, NULL, "the longest", 0),
    RP_FIELD(struct rp_report_latency, slowest, STR, NONE, NULL,
             "the one that waited longest, or null", 0),
    RP_FIELD_END};
const struct rp_type rp_report_latency_type = {"latency", sizeof(struct rp_report_latency),
                                               latency_fields, NULL};

#define LOOK(member, title, doc) \
    RP_FIELD(struct rp_report_look, member, STR, NONE, title, doc, RP_SCREEN)

static const struct rp_field look_fields[] = {
    LOOK(heading, "finding", "its name and cost"),
    LOOK(why, "what", "what was found"),
    LOOK(evidence, "evidence", "the most important evidence"),
    LOOK(first, "try", "what may help"),
    LOOK(second, "try", "what may help"),
    LOOK(third, "try", "what may help"),
    RP_FIELD_END};
static const struct rp_type look_type = {"look", sizeof(struct rp_report_look), look_fields, NULL};

static const struct rp_field mode_fields[] = {
    RP_FIELD(struct rp_report_mode, at_ns, I64, NS, NULL, "where durations are densest", 0),
    RP_FIELD(struct rp_report_mode, count, I64, COUNT, NULL, "how many", 0), RP_FIELD_END};
static const struct rp_type mode_type = {"mode", sizeof(struct rp_report_mode), mode_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_root, member, type, unit, title, doc, flags)
#define SHOWN(member, item, title, columns, flags) \
    RP_FIELD_SHOWN(struct rp_report_root, member, item, title, columns, flags)

#define SAMPLED(unit) "label, kind, self_" unit ", self_share, total_" unit

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "run", "text output only", RP_SCREEN),
    ROOT(steps_text, STR, NONE, "steps", "text output only", RP_SCREEN),
    ROOT(step_text, STR, NONE, "step", "text output only", RP_SCREEN),
    ROOT(profiler_text, STR, NONE, "profiler", "text output only", RP_SCREEN),
    ROOT(help_text, STR, NONE, "1st change", "text output only", RP_SCREEN),
    ROOT(help2_text, STR, NONE, "2nd change", "text output only", RP_SCREEN),
    ROOT(help3_text, STR, NONE, "3rd change", "text output only", RP_SCREEN),
    ROOT(lost_text, STR, NONE, "time", "text output only", RP_SCREEN),
    ROOT(work_text, STR, NONE, "work", "text output only", RP_SCREEN),
    ROOT(hot_text, STR, NONE, "hot", "text output only", RP_SCREEN),
    ROOT(lines_text, STR, NONE, "lines", "text output only", RP_SCREEN),
    ROOT(clock_text, STR, NONE, "clock", "text output only", RP_SCREEN),
    ROOT(sampled_text, STR, NONE, "threads", "text output only", RP_SCREEN),
    ROOT(speed_text, STR, NONE, "speed", "text output only", RP_SCREEN),
    ROOT(captured_launches, I64, COUNT, NULL,
         "launches of a recording of a graph capture, which did not execute; else 0", 0),
    ROOT(pace_text, STR, NONE, "pace", "text output only", RP_SCREEN),
    ROOT(stall_text, STR, NONE, "host", "text output only", RP_SCREEN),
    ROOT(window_ns, I64, NS, NULL, "mean of the ranks' windows", 0),
    ROOT(step_ns, I64, NS, NULL, "step time: mean of the ranks' median steps, or null",
         RP_NULLABLE),
    ROOT(step_source, STR, NONE, NULL, "how the steps were found, or null", 0),
    ROOT(step_mark, STR, NONE, NULL, "what the names of their marks have in common, or null", 0),
    ROOT(step_share, F64, RATIO, NULL,
         "share of the device time from the first step on that lies in steps, or null",
         RP_NULLABLE),
    ROOT(unprofiled_ns, I64, NS, NULL,
         "a step without the profiler, as simulated or measured by 'record', or null", RP_NULLABLE),
    ROOT(span_ns, I64, NS, NULL, "mean of the ranks' spans", 0),
    ROOT(lost_ns, I64, NS, NULL, "the part of the span that is not compute", 0),
    ROOT(needed_ns, I64, NS, NULL, "the part of the span that is compute", 0),
    ROOT(exposed_node_ns, I64, NS, NULL,
         "transfer within nodes while no compute runs, mean of the ranks; null: not known",
         RP_NULLABLE),
    ROOT(exposed_between_ns, I64, NS, NULL, "the same between nodes", RP_NULLABLE),
    ROOT(collective_span_ns, I64, NS, NULL,
         "first start to last end of the matched collectives, or null", RP_NULLABLE),
    ROOT(stall_count, I64, COUNT, NULL, "host calls far above the median of their name", 0),
    ROOT(stall_ns, I64, NS, NULL, "their own time", 0),
    RP_FIELD_LIST(struct rp_report_root, stall_modes, &mode_type, NULL,
                  "durations around which a tenth of them or more cluster", 0),
    RP_FIELD_LIST(struct rp_report_root, start_up, &share_type, "before the first step, per rank",
                  "with --start-up: parts of the time before the first step that is judged", 0),
    RP_FIELD_LIST(struct rp_report_root, parts, &share_type, "where the time goes, per rank",
                  "parts of the span; they add up to it", 0),
    RP_FIELD_LIST(struct rp_report_root, categories, &rp_report_category_type, NULL,
                  "device time by category of work, the largest first", 0),
    RP_FIELD_LIST(struct rp_report_root, hot, &rp_report_hot_row_type, NULL,
                  "what takes most of the time that is judged, the largest first", 0),
    RP_FIELD_LIST(struct rp_report_root, lines, &rp_source_line_type, NULL,
                  "of a compiled program what takes most of the device time, by line of its source",
                  0),
    ROOT(
        lines_share, F64, RATIO, NULL,
        "share of the device time, or of the host time in compiled graphs, that has a line; null: not known",
        RP_NULLABLE),
    RP_FIELD_RECORD(struct rp_report_root, speed, &rp_report_speed_type, NULL,
                    "how much of the device a step uses; means over the ranks", 0),
    RP_FIELD_LIST(struct rp_report_root, ranks, &rank_type, NULL, "one record per rank", 0),
    RP_FIELD_LIST(struct rp_report_root, waits, &rp_idle_wait_type, NULL,
                  "waits of host threads in the span, by call and range", 0),
    RP_FIELD_RECORD(struct rp_report_root, sampled, &rp_report_sampled_type, NULL,
                    "where the threads of the host were, by samples; without device work", 0),
    RP_FIELD_LIST(struct rp_report_root, groups, &rp_report_group_type, NULL,
                  "of more than 16 ranks: by host, else by equal behaviour", 0),
    RP_FIELD_LIST(struct rp_report_root, devices, &rp_report_device_row_type, NULL,
                  "one record per device of a rank", 0),
    RP_FIELD_LIST(struct rp_report_root, steps, &step_type, NULL, "the steps of each rank", 0),
    RP_FIELD_RECORD(struct rp_report_root, workload, &rp_report_workload_type, NULL,
                    "what kind of program was recorded", 0),
    RP_FIELD_LIST(struct rp_report_root, phases, &rp_report_phase_type, "time by phase",
                  "the steps of a server by what they did", 0),
    RP_FIELD_LIST(struct rp_report_root, kinds, &rp_report_kind_type, "kinds of steps",
                  "of one rank, where its steps differ", 0),
    RP_FIELD_LIST(struct rp_report_root, requests, &rp_report_request_type, "requests",
                  "of one rank, where their ranges were recorded", 0),
    RP_FIELD_LIST(struct rp_report_root, findings, &finding_type, NULL, "most costly first", 0),
    RP_FIELD_LIST(struct rp_report_root, opportunities, &opportunity_type, NULL,
                  "changes that would make a step at least 1 % shorter for sure, each alone; the "
                  "largest gain first",
                  0),
    RP_FIELD_LIST(struct rp_report_root, gates, &rp_gate_row_type, "gates",
                  "the limits of '--gate', as in 'diff'", 0),
    SHOWN(look, &look_type, "what to look at", NULL, RP_BLOCKS),
    SHOWN(host_rows, &rp_report_host_type, "ranks by host", "host, " RP_REPORT_GROUP_COLUMNS, 0),
    SHOWN(alike_rows, &rp_report_group_type, "ranks that behave alike",
          "like_rank, " RP_REPORT_GROUP_COLUMNS, 0),
    SHOWN(rank_rows, &rank_type, "which ranks delay the others", NULL, 0),
    SHOWN(host_rank_rows, &rank_type, "which ranks delay the others", HOST_RANK, 0),
    SHOWN(sampled_works, &rp_stacks_row_type, "what takes the device's time", SAMPLED("ns"), 0),
    SHOWN(sampled_rows, &rp_stacks_row_type, "lines that take the processors", SAMPLED("ns"), 0),
    SHOWN(sampled_counts, &rp_stacks_row_type, "lines that take the processors", SAMPLED("count"),
          0),
    SHOWN(wait_rows, &rp_idle_wait_type, "where the threads wait", NULL, 0),
    SHOWN(device_rows, &rp_report_device_row_type, "devices", NULL, 0),
    RP_FIELD_RECORD(struct rp_report_root, latency, &rp_report_latency_type, NULL,
                    "time from the last input of an operator to its start", 0),
    RP_FIELD_LIST(struct rp_report_root, pitfalls, &rp_type_string,
                  "what the timeline does not show",
                  "pitfalls of reading it that occur in this trace", 0),
    RP_FIELD_LIST(struct rp_report_root, notes, &rp_type_string, "notes",
                  "coverage, and what was missing", 0),
    RP_FIELD_END};

const struct rp_type rp_report_type = {"report", sizeof(struct rp_report_root), root_fields,
                                       "ranks"};

/* ------------------------------------------------------------------ what is kept of a rank */

/* A step of a part has another table than a step of the answer. */
RP_PART_TYPE(rp_report_sums_type, struct rp_report_sums, RP_REPORT_SUMS);
RP_PART_TYPE(rp_report_pauses_type, struct rp_report_pauses, RP_REPORT_PAUSES);
RP_PART_TYPE(rp_report_hot_type, struct rp_report_hot, RP_REPORT_HOT);
RP_PART_TYPE(rp_report_step_type, struct rp_report_step, RP_REPORT_STEP);
RP_PART_TYPE(rp_report_part_type, struct rp_report_part, RP_REPORT_PART);
