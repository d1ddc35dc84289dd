/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `diff` of traces: keys of the JSON contract, headings of the screen. */
#include "explain/diff/diff.h"

#define RUN(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_run, member, type, unit, title, doc, flags)

static const struct rp_field run_fields[] = {
    RUN(path, STR, NONE, NULL, "its file, or the folder of its ranks", 0),
    RUN(device, STR, NONE, NULL, "the first device", 0),
    RUN(framework, STR, NONE, NULL, "what recorded it", 0),
    RUN(ranks, I64, COUNT, NULL, "ranks that it has", 0),
    RUN(steps, I64, COUNT, NULL, "steps that were found, on its first rank that is compared", 0),
    RUN(whole_steps, I64, COUNT, NULL, "of them, with a beginning and an end", 0),
    RUN(typical_steps, I64, COUNT, NULL, "of them, the middle half by length", 0),
    RUN(step_ns, I64, NS, NULL, "mean of the typical steps; without steps the whole recording", 0),
    RUN(median_ns, I64, NS, NULL, "median of the whole steps", 0),
    RUN(spread_ns, I64, NS, NULL, "standard deviation of a step, from the median deviation",
        RP_NULLABLE),
    RUN(work_ns, I64, NS, NULL, "durations of all work of a step, added up", 0),
    RUN(host_ns, I64, NS, NULL, "durations of the host spans of a step that launch it", 0),
    RP_FIELD_END};
static const struct rp_type run_type = {"run", sizeof(struct rp_trace_diff_run), run_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_share, member, type, unit, title, doc, flags)

static const struct rp_field share_fields[] = {
    SHARE(part, STR, NONE, "part", "what the time is", 0),
    SHARE(base_ns, I64, NS, "base", "in a step of the base", 0),
    SHARE(new_ns, I64, NS, "new", "in a step of the new run", 0),
    SHARE(delta_ns, I64, NS, "delta", "new - base", 0),
    SHARE(share, F64, RATIO, "of delta", "of the change of the step; null where that is noise", 0),
    RP_FIELD_END};
static const struct rp_type share_type = {"part", sizeof(struct rp_trace_diff_share), share_fields,
                                          NULL};

static const struct rp_field cause_fields[] = {
    {"cause", "cause", RP_T_STR, RP_UNIT_NONE, 0, offsetof(struct rp_trace_diff_share, part), 0,
     NULL, "why the device was idle, as in 'idle'; 'outside': before or after all device work"},
    SHARE(base_ns, I64, NS, "base", "in a step of the base", 0),
    SHARE(new_ns, I64, NS, "new", "in a step of the new run", 0),
    SHARE(delta_ns, I64, NS, "delta", "new - base", 0),
    SHARE(share, F64, RATIO, "of delta", "of the change of the step; null where that is noise", 0),
    RP_FIELD_END};
static const struct rp_type cause_type = {"cause", sizeof(struct rp_trace_diff_share), cause_fields,
                                          NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "its number in the base", 0),
    RANK(new_rank, I64, NONE, NULL, "its number in the new run", 0),
    RANK(base_ns, I64, NS, "base", "its step in the base", 0),
    RANK(new_ns, I64, NS, "new", "its step in the new run", 0),
    RANK(delta_ns, I64, NS, "delta", "new - base", 0),
    RANK(compute_delta_ns, I64, NS, "compute", "of it, compute", 0),
    RANK(exposed_comm_delta_ns, I64, NS, "exposed comm", "of it, exposed communication", 0),
    RANK(exposed_memory_delta_ns, I64, NS, "copies", "of it, exposed copies", RP_WIDE),
    RANK(idle_delta_ns, I64, NS, "idle", "of it, idle", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_trace_diff_rank), rank_fields,
                                         NULL};

#define RULE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_rule, member, type, unit, title, doc, flags)

static const struct rp_field rule_fields[] = {
    RULE(rule, STR, NONE, NULL, "how operators were found to be the same", 0),
    RULE(base_ns, I64, NS, NULL, "time of a step of the base to which it applies", 0),
    RULE(new_ns, I64, NS, NULL, "the same of the new run", 0),
    RULE(share, F64, RATIO, NULL, "of all time of both", 0), RP_FIELD_END};
static const struct rp_type rule_type = {"rule", sizeof(struct rp_trace_diff_rule), rule_fields,
                                         NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(label, STR, NONE, "operator", "name and shape", RP_SCREEN | RP_SHORTEN),
    ROW(what, STR, NONE, NULL, "operator, range or kernel; 'a -> b' where the name differs", 0),
    ROW(shape, STR, NONE, NULL, "of its inputs, where recorded", 0),
    ROW(change, STR, NONE, "change",
        "added, removed, replaced, shape, kernel, calls, slower, faster, noise or same", 0),
    ROW(rule, STR, NONE, NULL, "how it was aligned: tree, name and shape, name, kernel, none", 0),
    ROW(places, I64, COUNT, NULL, "places of the call tree", 0),
    ROW(counts, STR, NONE, "calls", "for the screen", RP_SCREEN),
    ROW(base_count, I64, COUNT, NULL, "calls in a step of the base", 0),
    ROW(new_count, I64, COUNT, NULL, "calls in a step of the new run", 0),
    ROW(base_works, I64, COUNT, NULL, "kernels, copies and memsets in a step of the base", 0),
    ROW(new_works, I64, COUNT, NULL, "kernels, copies and memsets in a step of the new run", 0),
    ROW(base_ns, I64, NS, "base", "its time in a step of the base", 0),
    ROW(new_ns, I64, NS, "new", "its time in a step of the new run", 0),
    ROW(delta_ns, I64, NS, "delta", "new - base", 0),
    ROW(noise_ns, I64, NS, "noise", "changes up to this are noise; null: too few steps to tell",
        RP_NULLABLE | RP_WIDE),
    ROW(share, F64, RATIO, "of delta", "of the change of the step; null where that is noise",
        RP_WIDE),
    ROW(base_host_ns, I64, NS, NULL,
        "its calls on the host in a step of the base, without operators inside", 0),
    ROW(new_host_ns, I64, NS, NULL, "the same in the new run", 0),
    ROW(host_delta_ns, I64, NS, "host delta", "new - base", RP_WIDE),
    RP_FIELD_LIST(struct rp_trace_diff_row, base_kernels, &rp_type_string, NULL,
                  "its kernels in the base, the first eight", 0),
    RP_FIELD_LIST(struct rp_trace_diff_row, new_kernels, &rp_type_string, NULL,
                  "its kernels in the new run, the first eight", 0),
    ROW(place, STR, NONE, NULL, "spans around it where it changed most", 0),
    ROW(source, STR, NONE, NULL, "line of the user's Python there, where recorded", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_trace_diff_row), row_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_root, member, type, unit, title, doc, flags)
#define LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_trace_diff_root, member, item, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(verdict_text, STR, NONE, "new run", "for the screen", RP_SCREEN),
    {"base_text", "base step", RP_T_STR, RP_UNIT_NONE, RP_SCREEN,
     offsetof(struct rp_trace_diff_root, base) + offsetof(struct rp_trace_diff_run, text), 0, NULL,
     "for the screen"},
    {"new_text", "new step", RP_T_STR, RP_UNIT_NONE, RP_SCREEN,
     offsetof(struct rp_trace_diff_root, new_run) + offsetof(struct rp_trace_diff_run, text), 0,
     NULL, "for the screen"},
    ROOT(aligned_text, STR, NONE, "aligned", "for the screen", RP_SCREEN),
    ROOT(inputs, STR, NONE, NULL, "traces", 0),
    ROOT(verdict, STR, NONE, NULL, "slower, faster, within the noise or same", 0),
    ROOT(changed, BOOL, NONE, NULL, "the step is slower or faster beyond the noise", 0),
    ROOT(delta_ns, I64, NS, NULL, "step of the new run - step of the base", 0),
    ROOT(delta_share, F64, RATIO, NULL, "of the base's step", 0),
    ROOT(noise_ns, I64, NS, NULL, "changes up to this are noise; null: too few steps to tell",
         RP_NULLABLE),
    ROOT(threshold_ns, I64, NS, NULL, "of --fail-over", RP_NULLABLE),
    ROOT(failed, BOOL, NONE, NULL, "slower than --fail-over allows", 0),
    ROOT(measure, STR, NONE, NULL, "device time, or host time where no device work was recorded",
         0),
    RP_FIELD_RECORD(struct rp_trace_diff_root, base, &run_type, NULL, "the first run", 0),
    {"new", NULL, RP_T_RECORD, RP_UNIT_NONE, 0, offsetof(struct rp_trace_diff_root, new_run), 0,
     &run_type, "the second run"},
    LIST(parts, &share_type, "where the step changed", "they add up to the step", 0),
    LIST(idle_causes, &cause_type, "idle by cause", "they add up to idle", 0),
    LIST(ranks, &rank_type, NULL, "what changed most by itself first", 0),
    LIST(rank_rows, &rank_type, "ranks, what changed most by itself first", "for the screen",
         RP_SCREEN),
    LIST(coverage, &rule_type, NULL, "time by the rule that aligned it", 0),
    ROOT(aligned_share, F64, RATIO, NULL, "of the time of both, aligned by any rule", 0),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    LIST(rows, &row_type, NULL, "largest change first", 0),
    LIST(look, &row_type, "operators, by change of their time", "for the screen", RP_SCREEN),
    LIST(kernels, &rp_type_string, "other kernels", "for the screen", RP_SCREEN),
    LIST(notes, &rp_type_string, "notes", "what to know about the comparison", 0),
    RP_FIELD_END};

const struct rp_type rp_trace_diff_type = {"diff", sizeof(struct rp_trace_diff_root), root_fields,
                                           "rows"};
