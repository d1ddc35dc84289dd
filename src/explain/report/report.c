/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a run: ranks, steps, the parts of the time, and sentences for people. Parts are
 * sums over the ranks, exact: compute + transfer + waiting + copies + idle by cause = span.
 */
#include "explain/report/report.h"

#include "dataset/question.h"
#include "explain/roofline/xla.h"
#include "facts/trace_host.h"
#include "result/part.h"
#include "result/print_units.h"

#include <stdio.h>
#include <string.h>

#define MOST_PARTS (RP_GAP_CAUSES + RP_PAUSES + 6)
#define MOST_SHOWN 4 /* findings on the screen */
#define MOST_NOTES 10

/* ------------------------------------------------------------------ what is shown */

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
    RANK(idle_ns, I64, NS, "idle", "time in which nothing runs", RP_LARGEST),
    RANK(idle_share, F64, RATIO, "share", "idle / window", 0),
    RANK(wait_ns, I64, NS, "waits", "in collectives, until the last rank arrived, or null",
         RP_NULLABLE),
    RANK(transfer_ns, I64, NS, NULL, "in collectives, after the last rank arrived, or null",
         RP_NULLABLE),
    RANK(last_count, I64, COUNT, "was last", "collectives at which it arrived last, or null",
         RP_NULLABLE),
    RANK(margin_ns, I64, NS, "delays", "by how much it arrived after the second last, or null",
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

/* On the screen, where there is no device. */
static const struct rp_field host_rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(window_ns, I64, NS, "span", "begin of the first step to end of the last", 0),
    RANK(compute_ns, I64, NS, "running", "time in which operators or ranges run and do not wait",
         0),
    RANK(comm_ns, I64, NS, "comm", "time in which communication runs", 0),
    RANK(idle_ns, I64, NS, "neither", "waiting, and what was not recorded", RP_LARGEST),
    RANK(wait_ns, I64, NS, "waits", "in collectives, until the last rank arrived, or null",
         RP_NULLABLE),
    RANK(last_count, I64, COUNT, "was last", "collectives at which it arrived last, or null",
         RP_NULLABLE),
    RANK(margin_ns, I64, NS, "delays", "by how much it arrived after the second last, or null",
         RP_NULLABLE | RP_LARGEST),
    RANK(stall_ns, I64, NS, "stalls", "own time of host calls far above their median", RP_WIDE),
    RP_FIELD_END};
static const struct rp_type host_rank_type = {"rank", sizeof(struct rp_report_rank),
                                              host_rank_fields, NULL};

#define STEP(member, type, unit, doc) \
    RP_FIELD(struct rp_report_step, member, type, unit, NULL, doc, 0)
#define STEP_TIME(key, member, doc)                                                              \
    {                                                                                            \
#key, NULL, RP_T_I64, RP_UNIT_NS, 0, offsetof(struct rp_report_step, b.member), 0, NULL, \
            doc                                                                                  \
    }

static const struct rp_field step_fields[] = {
    STEP(rank, I64, NONE, "whose step"),
    STEP(name, STR, NONE, "its name"),
    STEP(number, I64, NONE, "its number"),
    STEP(phase, STR, NONE, "prefill, decode or mixed, where its mark says so"),
    RP_FIELD(struct rp_report_step, requests, I64, COUNT, NULL, "in its batch", RP_NULLABLE),
    RP_FIELD(struct rp_report_step, tokens, I64, COUNT, NULL, "that it computes", RP_NULLABLE),
    RP_FIELD(struct rp_report_step, warm_up, BOOL, NONE, NULL,
             "one of the first, far longer than usual: is not judged", 0),
    STEP_TIME(begin_ns, begin_ns,
              "its mark, or the end of earlier steps' device work, as recorded"),
    STEP_TIME(dur_ns, window_ns, "from there to the begin of the next step"),
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
    SHARE(share, F64, RATIO, "share", "of the spans", RP_BAR),
    SHARE(note, STR, NONE, "meaning", "what the part means", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type share_type = {"part", sizeof(struct rp_report_share), share_fields,
                                          NULL};

#define FINDING(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_finding, member, type, unit, title, doc, flags)

static const struct rp_field finding_fields[] = {
    FINDING(id, STR, NONE, NULL, "stable name", 0),
    FINDING(title, STR, NONE, NULL, "what was found", 0),
    FINDING(lost_ns, I64, NS, NULL, "by how much the recording would be shorter without it", 0),
    FINDING(share, F64, RATIO, NULL, "of the span", 0),
    FINDING(compute_ns, I64, NS, NULL, "of lost_ns, inside what counts as compute", 0),
    FINDING(at_most, BOOL, NONE, NULL, "it is a bound, or overlaps with other findings", 0),
    RP_FIELD_LIST(struct rp_report_finding, evidence, &rp_type_string, NULL, "evidence", 0),
    FINDING(hint, STR, NONE, NULL, "what to try", 0),
    RP_FIELD_LIST(struct rp_report_finding, tries, &rp_report_try_type, NULL,
                  "the same, one by one, with predictions", 0),
    RP_FIELD_END};
static const struct rp_type finding_type = {"finding", sizeof(struct rp_report_finding),
                                            finding_fields, NULL};

static const struct rp_field latency_fields[] = {
    RP_FIELD(struct rp_report_latency, ops, I64, COUNT, NULL, "operators with recorded inputs", 0),
    RP_FIELD(struct rp_report_latency, p50_ns, I64, NS, NULL, "median, by nearest rank", 0),
    RP_FIELD(struct rp_report_latency, p90_ns, I64, NS, NULL, "90th percentile", 0),
    RP_FIELD(struct rp_report_latency, max_ns, I64, NS, NULL, "the longest", 0),
    RP_FIELD(struct rp_report_latency, slowest, STR, NONE, NULL,
             "the one that waited longest, or null", 0),
    RP_FIELD_END};
static const struct rp_type latency_type = {"latency", sizeof(struct rp_report_latency),
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

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "run", "text output only", RP_SCREEN),
    ROOT(step_text, STR, NONE, "step", "text output only", RP_SCREEN),
    ROOT(lost_text, STR, NONE, "time", "text output only", RP_SCREEN),
    ROOT(work_text, STR, NONE, "work", "text output only", RP_SCREEN),
    ROOT(profiler_text, STR, NONE, "profiler", "text output only", RP_SCREEN),
    ROOT(captured_launches, I64, COUNT, NULL,
         "launches of a recording of a graph capture, which did not execute; else 0", 0),
    ROOT(pace_text, STR, NONE, "pace", "text output only", RP_SCREEN),
    ROOT(stall_text, STR, NONE, "host", "text output only", RP_SCREEN),
    ROOT(window_ns, I64, NS, NULL, "mean of the ranks' windows", 0),
    ROOT(step_ns, I64, NS, NULL, "step time: mean of the ranks' median steps, or null",
         RP_NULLABLE),
    ROOT(unprofiled_ns, I64, NS, NULL, "a step without the profiler, as simulated, or null",
         RP_NULLABLE),
    ROOT(span_ns, I64, NS, NULL, "mean of the ranks' spans", 0),
    ROOT(lost_ns, I64, NS, NULL, "of the span: all but compute", 0),
    ROOT(needed_ns, I64, NS, NULL, "of the span: compute", 0),
    ROOT(collective_span_ns, I64, NS, NULL,
         "first start to last end of the matched collectives, or null", RP_NULLABLE),
    ROOT(stall_count, I64, COUNT, NULL, "host calls far above the median of their name", 0),
    ROOT(stall_ns, I64, NS, NULL, "their own time", 0),
    RP_FIELD_LIST(struct rp_report_root, stall_modes, &mode_type, NULL,
                  "durations around which a tenth of them or more cluster", 0),
    RP_FIELD_LIST(struct rp_report_root, parts, &share_type, "where the time goes, per rank",
                  "parts of the span; they add up to it", 0),
    RP_FIELD_LIST(struct rp_report_root, categories, &rp_report_category_type, NULL,
                  "device time by category of work, the largest first", 0),
    RP_FIELD_LIST(struct rp_report_root, ranks, &rank_type, NULL, "one record per rank", 0),
    RP_FIELD_LIST(struct rp_report_root, waits, &rp_idle_wait_type, NULL,
                  "waits of host threads in the span, by call and range", 0),
    RP_FIELD_LIST(struct rp_report_root, groups, &rp_report_group_type, NULL,
                  "of more than 16 ranks: by host, else by equal behaviour", 0),
    RP_FIELD_LIST(struct rp_report_root, devices, &rp_report_device_row_type, NULL,
                  "one record per device of a rank", 0),
    RP_FIELD_LIST(struct rp_report_root, steps, &step_type, NULL, "the steps of each rank", 0),
    RP_FIELD_RECORD(struct rp_report_root, workload, &rp_report_workload_type, NULL,
                    "what kind of program was recorded", 0),
    RP_FIELD_LIST(struct rp_report_root, phases, &rp_report_phase_type, "time by phase",
                  "the steps of a server by what they did", 0),
    RP_FIELD_LIST(struct rp_report_root, findings, &finding_type, NULL, "most costly first", 0),
    RP_FIELD_LIST(struct rp_report_root, look, &look_type, "what to look at", "text output only",
                  RP_SCREEN | RP_BLOCKS),
    RP_FIELD_LIST(struct rp_report_root, host_rows, &rp_report_host_type, "ranks by host",
                  "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_report_root, alike_rows, &rp_report_alike_type,
                  "ranks that behave alike", "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_report_root, rank_rows, &rank_type, "which ranks delay the others",
                  "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_report_root, host_rank_rows, &host_rank_type,
                  "which ranks delay the others", "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_report_root, wait_rows, &rp_idle_wait_type, "where the threads wait",
                  "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_report_root, device_rows, &rp_report_device_row_type, "devices",
                  "text output only", RP_SCREEN),
    RP_FIELD_RECORD(struct rp_report_root, latency, &latency_type, NULL,
                    "from the last input of an operator to its start", 0),
    RP_FIELD_LIST(struct rp_report_root, pitfalls, &rp_type_string,
                  "what the timeline does not show",
                  "pitfalls of reading it that occur in this trace", 0),
    RP_FIELD_LIST(struct rp_report_root, notes, &rp_type_string, "notes",
                  "coverage, and what was missing", 0),
    RP_FIELD_END};

static const struct rp_type report_type = {"report", sizeof(struct rp_report_root), root_fields,
                                           "ranks"};

/* ------------------------------------------------------------------ what is kept of a rank */

#define SUM(kind, member) RP_PART_##kind(struct rp_report_sums, member)

static const struct rp_field sum_fields[] = {
    SUM(PLAIN, kernels),      SUM(PLAIN, tiny_kernels),  SUM(PLAIN, tiny_gap_ns),
    SUM(PLAIN, overhead_ns),  SUM(PLAIN, first_wait_ns), SUM(PLAIN, graph_wait_ns),
    SUM(PLAIN, host_ops),     SUM(PLAIN, host_op_ns),    SUM(PLAIN, copies),
    SUM(PLAIN, copy_name_ns), SUM(TEXT, copy_name),      RP_PART_END};
static const struct rp_type sums_type = {"sums", sizeof(struct rp_report_sums), sum_fields, NULL};

#define DEVICE(kind, member) RP_PART_##kind(struct rp_report_device, member)

static const struct rp_field device_fields[] = {DEVICE(PLAIN, thin_count),
                                                DEVICE(PLAIN, thin_ns),
                                                DEVICE(PLAIN, thin_lost_ns),
                                                DEVICE(TEXT, thin_name),
                                                DEVICE(PLAIN, thin_name_lost_ns),
                                                DEVICE(PLAIN, slowed_ns),
                                                DEVICE(PLAIN, slowed_ratio),
                                                DEVICE(PLAIN, slowed_kinds),
                                                DEVICE(PLAIN, kinds),
                                                DEVICE(PLAIN, launched),
                                                DEVICE(PLAIN, early_count),
                                                DEVICE(PLAIN, early_most_ns),
                                                DEVICE(PLAIN, reserved_bytes),
                                                DEVICE(PLAIN, allocated_bytes),
                                                DEVICE(PLAIN, device_bytes),
                                                RP_PART_END};
static const struct rp_type device_type = {"device", sizeof(struct rp_report_device), device_fields,
                                           NULL};

#define PAUSE_NAME(name, text, doc) RP_PART_TEXT(struct rp_report_pauses, mainly[RP_PAUSE_##name]),
static const struct rp_field pause_fields[] = {
    RP_PART_PLAIN(struct rp_report_pauses, ns), RP_PART_PLAIN(struct rp_report_pauses, count),
    RP_PART_PLAIN(struct rp_report_pauses, longest_ns),
    RP_PAUSE_MAP(PAUSE_NAME) RP_PART_PLAIN(struct rp_report_pauses, mainly_ns), RP_PART_END};
#undef PAUSE_NAME
static const struct rp_type pauses_type = {"pauses", sizeof(struct rp_report_pauses), pause_fields,
                                           NULL};

static const struct rp_field part_step_fields[] = {
    RP_PART_PLAIN(struct rp_report_step, number),
    RP_PART_TEXT(struct rp_report_step, name),
    RP_PART_TEXT(struct rp_report_step, phase),
    RP_PART_PLAIN(struct rp_report_step, requests),
    RP_PART_PLAIN(struct rp_report_step, tokens),
    RP_PART_PLAIN(struct rp_report_step, b),
    RP_PART_PLAIN(struct rp_report_step, host_ns),
    RP_PART_PLAIN(struct rp_report_step, late_ns),
    RP_PART_PLAIN(struct rp_report_step, work_ns),
    RP_PART_PLAIN(struct rp_report_step, drain_ns),
    RP_PART_PLAIN(struct rp_report_step, earlier_ns),
    RP_PART_PLAIN(struct rp_report_step, unrecorded_ns),
    RP_PART_PLAIN(struct rp_report_step, warm_up),
    RP_PART_PLAIN(struct rp_report_step, no_detail),
    RP_PART_END};
static const struct rp_type part_step_type = {"step", sizeof(struct rp_report_step),
                                              part_step_fields, NULL};

#define PLACED_AT(i)                                                 \
    RP_PART_TEXT(struct rp_report_part, placed[i].op),               \
        RP_PART_TEXT(struct rp_report_part, placed[i].kernel),       \
        RP_PART_TEXT(struct rp_report_part, placed[i].why),          \
        RP_PART_PLAIN(struct rp_report_part, placed[i].kind),        \
        RP_PART_PLAIN(struct rp_report_part, placed[i].by_memory),   \
        RP_PART_PLAIN(struct rp_report_part, placed[i].calls),       \
        RP_PART_PLAIN(struct rp_report_part, placed[i].device_ns),   \
        RP_PART_PLAIN(struct rp_report_part, placed[i].lost_ns),     \
        RP_PART_PLAIN(struct rp_report_part, placed[i].rate),        \
        RP_PART_PLAIN(struct rp_report_part, placed[i].flops_per_s), \
        RP_PART_PLAIN(struct rp_report_part, placed[i].peak)

#define PART(kind, member)          RP_PART_##kind(struct rp_report_part, member)
#define PART_OF(kind, member, item) RP_PART_##kind(struct rp_report_part, member, item)

static const struct rp_field part_fields[] = {PART(PLAIN, on_device),
                                              PART(PLAIN, limited),
                                              PART(PLAIN, b),
                                              PART(PLAIN, whole),
                                              PART(PLAIN, before_ns),
                                              PART(PLAIN, after_ns),
                                              PART(PLAIN, warm_ups),
                                              PART(PLAIN, warm_up_ns),
                                              PART(PLAIN, breaks),
                                              PART(PLAIN, break_ns),
                                              PART(PLAIN, without_detail),
                                              PART(PLAIN, coverage),
                                              PART(PLAIN, category_ns),
                                              PART(PLAIN, nplaced),
                                              PART(PLAIN, placed_lost_ns),
                                              PLACED_AT(0),
                                              PLACED_AT(1),
                                              PLACED_AT(2),
                                              PART_OF(RECORD, sums, &sums_type),
                                              PART_OF(RECORD, wrong, &device_type),
                                              PART_OF(RECORD, pauses, &pauses_type),
                                              PART(PLAIN, by_ranges),
                                              PART(PLAIN, by_calls),
                                              PART_OF(RECORD, waits, &rp_host_waits_type),
                                              PART_OF(RECORD, calls, &rp_host_calls_type),
                                              PART(PLAIN, late_ns),
                                              PART_OF(RECORD, latency, &latency_type),
                                              PART_OF(LIST, idle_causes, &rp_idle_cause_type),
                                              PART_OF(PLAIN_VEC, gaps, struct rp_gap),
                                              PART_OF(RECORD, collectives, &rp_collectives_type),
                                              PART_OF(LIST, leads, &rp_comm_lead_type),
                                              PART_OF(PLAIN_VEC, compute, struct rp_interval),
                                              PART_OF(PLAIN_VEC, busy, struct rp_interval),
                                              PART_OF(PLAIN_VEC, kernels, struct rp_interval),
                                              PART(TEXT, unequal),
                                              PART(TEXT, streams),
                                              PART(TEXT, untypical),
                                              PART_OF(LIST, steps, &part_step_type),
                                              PART(PLAIN, recorded_steps),
                                              PART(PLAIN, step_ns),
                                              PART(TEXT, device),
                                              PART(TEXT, framework),
                                              PART(TEXT, frameworks),
                                              PART(TEXT, host),
                                              PART_OF(LIST, devices, &rp_report_device_row_type),
                                              PART(PLAIN, workload),
                                              PART(PLAIN, modelled),
                                              PART_OF(RECORD, sim, &rp_sim_part_type),
                                              PART_OF(LIST, lanes, &rp_report_lane_type),
                                              PART_OF(RECORD, tops[0], &rp_top_part_type),
                                              PART_OF(RECORD, tops[1], &rp_top_part_type),
                                              PART_OF(RECORD, tops[2], &rp_top_part_type),
                                              PART_OF(RECORD, roof, &rp_roof_part_type),
                                              RP_PART_END};
static const struct rp_type part_type = {"report_part", sizeof(struct rp_report_part), part_fields,
                                         NULL};

/* ------------------------------------------------------------------ all ranks */

static const char *const pause_names[RP_PAUSES] = {
#define PAUSE_NAME(name, text, doc) text,
    RP_PAUSE_MAP(PAUSE_NAME)
#undef PAUSE_NAME
};
static const char *const pause_docs[RP_PAUSES] = {
#define PAUSE_DOC(name, text, doc) doc,
    RP_PAUSE_MAP(PAUSE_DOC)
#undef PAUSE_DOC
};

struct report_ctx {
    const struct rp_ranks *ranks;
    size_t n;
    struct rp_arena *arena;
    struct rp_report_root *out;
    struct rp_chain chain;
    int64_t total_ns;          /* spans of all ranks */
    int64_t idle_ns, start_ns; /* of all ranks: no work runs; start-up */
};

static const struct rp_report_part *part_of(const struct report_ctx *j, size_t rank)
{
    return rp_report_part_of(j->ranks, rank);
}

static int number_of(const struct report_ctx *j, size_t rank)
{
    return j->ranks->parts[rank].number;
}

static const char *duration(const struct report_ctx *j, int64_t ns)
{
    return rp_units_time(j->arena, ns);
}

static void fill_rank(struct report_ctx *j, size_t r)
{
    const struct rp_report_part *p = part_of(j, r);
    const struct rp_chain_rank *c = &j->chain.ranks[r];
    bool matched = j->chain.ncollectives > 0;

    j->out->ranks[r] = (struct rp_report_rank){
        .path = j->ranks->parts[r].path,
        .rank = number_of(j, r),
        .window_ns = p->b.window_ns,
        .busy_ns = p->b.busy_ns,
        .compute_ns = p->b.compute_ns,
        .comm_ns = p->b.comm_ns,
        .exposed_comm_ns = p->b.exposed_comm_ns,
        .memory_ns = p->b.memory_ns,
        .idle_ns = p->b.idle_ns,
        .wait_ns = matched ? c->wait_ns : RP_ABSENT_I64,
        .transfer_ns = matched ? c->transfer_ns : RP_ABSENT_I64,
        .last_count = matched ? c->last_count : RP_ABSENT_I64,
        .margin_ns = matched ? c->margin_ns : RP_ABSENT_I64,
        .late_ns = p->on_device ? p->late_ns : RP_ABSENT_I64,
        .step_ns = p->step_ns,
        .span_ns = p->whole.window_ns,
        .idle_share = p->b.window_ns ? (double)p->b.idle_ns / (double)p->b.window_ns : 0,
        .op_share =
            p->coverage.device_ns ? (double)p->coverage.op_ns / (double)p->coverage.device_ns : 0};
    rp_ns_add(&j->total_ns, p->whole.window_ns);
    rp_ns_add(&j->out->window_ns, p->b.window_ns);
}

/* Without a device: the same for the span, without start-up. */
static void fill_host_ranks(struct report_ctx *j)
{
    struct rp_report_rank *rows = RP_ARENA_NEW(j->arena, struct rp_report_rank, j->n + 1);
    size_t r;

    for (r = 0; r < j->n && rows; r++) {
        const struct rp_breakdown *b = &part_of(j, r)->whole;

        rows[r] = j->out->ranks[r];
        rows[r].window_ns = b->window_ns;
        rows[r].compute_ns = b->compute_ns;
        rows[r].comm_ns = b->comm_ns;
        rows[r].idle_ns = b->idle_ns;
    }
    j->out->host_rank_rows = rows;
    j->out->nhost_rank_rows = rows ? j->n : 0;
}

static void fill_ranks(struct report_ctx *j)
{
    struct rp_report_root *out = j->out;
    size_t r, i, nsteps = 0;

    for (r = 0; r < j->n; r++)
        nsteps += part_of(j, r)->nsteps;
    out->ranks = RP_ARENA_NEW(j->arena, struct rp_report_rank, j->n + 1);
    out->steps = RP_ARENA_NEW(j->arena, struct rp_report_step, nsteps + 1);
    if (!out->ranks || !out->steps)
        return;
    for (r = 0; r < j->n; r++) {
        fill_rank(j, r);
        for (i = 0; i < part_of(j, r)->nsteps; i++) {
            struct rp_report_step *s = &out->steps[out->nsteps++];

            *s = part_of(j, r)->steps[i];
            s->rank = number_of(j, r);
        }
    }
    out->nranks = j->n;
    if (j->n > 1 && part_of(j, 0)->on_device) {
        out->rank_rows = out->ranks;
        out->nrank_rows = out->nranks;
    } else if (j->n > 1) {
        fill_host_ranks(j);
    }
}

static void add_part(struct report_ctx *j, const char *part, int64_t total_ns, const char *note)
{
    struct rp_report_share *s = &j->out->parts[j->out->nparts];

    if (total_ns == 0 || j->out->nparts == MOST_PARTS)
        return;
    *s = (struct rp_report_share){.part = part, .note = note, .total_ns = total_ns};
    s->mean_ns = total_ns / (int64_t)j->n;
    s->share = j->total_ns ? (double)total_ns / (double)j->total_ns : 0;
    j->out->nparts++;
}

/* Runs without operators are about the program's own ranges. */
static const char *pause_name(struct report_ctx *j, int cause)
{
    static const char before[] = "no operator: ";
    const char *name = pause_names[cause];

    if (part_of(j, 0)->by_calls && !strncmp(name, before, sizeof before - 1))
        return cause == RP_PAUSE_SPAN ? "other calls" : name + sizeof before - 1;
    return part_of(j, 0)->by_ranges && !strncmp(name, before, sizeof before - 1)
               ? rp_arena_textf(j->arena, "no range: %s", name + sizeof before - 1)
               : name;
}

/* Time without an operator by what ran instead, where there is no device. */
static void add_pauses(struct report_ctx *j)
{
    int64_t pause[RP_PAUSES] = {0};
    size_t r;
    int c;

    for (r = 0; r < j->n; r++)
        for (c = 0; c < RP_PAUSES; c++)
            rp_ns_add(&pause[c], part_of(j, r)->pauses.ns[c]);
    for (c = 0; c < RP_PAUSES; c++)
        add_part(j, pause_name(j, c), pause[c],
                 !part_of(j, 0)->by_calls ? pause_docs[c]
                 : c == RP_PAUSE_SPAN     ? "MPI_Init, MPI_Finalize, and what returns at once"
                 : c == RP_PAUSE_NOTHING  ? "before the first or after the last call"
                                          : pause_docs[c]);
}

/* Idle time by cause, the largest first. */
static void add_idle(struct report_ctx *j)
{
    int64_t cause[RP_GAP_CAUSES] = {0};
    size_t r, i;
    int c, round;

    for (r = 0; r < j->n; r++) {
        const struct rp_report_part *p = part_of(j, r);

        for (i = 0; i < p->gaps.n; i++)
            rp_ns_add(&cause[p->gaps.at[i].cause],
                      rp_ns_between(p->gaps.at[i].begin_ns, p->gaps.at[i].end_ns));
    }
    for (c = 0; c < RP_GAP_CAUSES; c++)
        rp_ns_add(&j->idle_ns, cause[c]);
    j->start_ns = cause[RP_GAP_START_UP];
    for (round = 0; round < RP_GAP_CAUSES; round++) {
        int best = 0;

        for (c = 1; c < RP_GAP_CAUSES; c++)
            best = cause[c] > cause[best] ? c : best;
        if (cause[best] <= 0)
            break;
        add_part(j, rp_arena_textf(j->arena, "idle: %s", rp_gap_cause_names[best]), cause[best],
                 rp_gap_cause_docs[best]);
        cause[best] = 0;
    }
    add_pauses(j);
}

/* What the work is called. */
static const char *work_word(const struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, 0);

    return p->on_device ? "compute" : p->by_ranges ? "user code" : "operators";
}

static void fill_parts(struct report_ctx *j)
{
    bool device = part_of(j, 0)->on_device, by_ranges = part_of(j, 0)->by_ranges;
    int64_t compute = 0, exposed = 0, wait = 0, copies = 0;
    size_t r;

    j->out->parts = RP_ARENA_NEW(j->arena, struct rp_report_share, MOST_PARTS + 1);
    if (!j->out->parts)
        return;
    for (r = 0; r < j->n; r++) {
        const struct rp_breakdown *b = &part_of(j, r)->whole;

        rp_ns_add(&compute, b->compute_ns);
        rp_ns_add(&exposed, b->exposed_comm_ns);
        rp_ns_add(&copies, rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns));
        rp_ns_add(&wait, j->chain.ncollectives && !j->chain.beside
                             ? j->chain.ranks[r].exposed_wait_ns
                             : 0);
    }
    add_part(j, work_word(j), compute,
             device                    ? "at least one kernel runs"
             : part_of(j, 0)->by_calls ? "between calls that communicate or wait"
             : by_ranges               ? "a range runs, and its thread does not wait"
                                       : "at least one operator runs");
    add_part(j, "exposed communication", rp_ns_between(wait, exposed),
             !j->chain.ncollectives ? device ? "transfer and waiting, no compute"
                                             : "transfer and waiting, nothing else runs"
             : device               ? "transfer while no kernel computes"
             : by_ranges            ? "transfer while nothing else runs"
                                    : "transfer while no operator runs");
    add_part(j, "waiting for other ranks", wait, "until the last rank has arrived");
    add_part(j, "copies alone", copies, "copies and memsets, nothing else");
    add_idle(j);
}

/* "8 ranks of 8, 1 step, pytorch, NVIDIA A100-SXM4-80GB" */
static void fill_run_text(struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, 0);
    const char *steps;
    char ranks[64];

    if (j->ranks->world_size > (int64_t)j->n)
        snprintf(ranks, sizeof ranks, "%zu of %d ranks", j->n, j->ranks->world_size);
    else
        snprintf(ranks, sizeof ranks, "%s", rp_units_count(j->arena, (int64_t)j->n, "rank"));
    if (p->limited && p->nsteps)
        steps =
            rp_arena_textf(j->arena, "one of %s: '%s'",
                           rp_units_count(j->arena, p->recorded_steps, "step"), p->steps[0].name);
    else if (p->nsteps)
        steps = rp_units_count(j->arena, (int64_t)p->nsteps, "step");
    else
        steps = p->limited ? "a part of the recording" : "no steps found";
    j->out->run_text = rp_arena_textf(j->arena, "%s, %s, %s, %s", ranks, steps,
                                      rp_report_program_name(j->arena, p),
                                      !p->on_device ? "host only"
                                      : p->device   ? p->device
                                                    : "unnamed device");
}

/* "18.5 ms, the median of 3 (18.0 ms to 21.6 ms)" for the steps of one rank. */
static const char *one_rank_step(struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, 0);
    int64_t least = INT64_MAX, most = 0;
    size_t i;

    for (i = 0; i < p->nsteps; i++) {
        if (p->steps[i].warm_up)
            continue;
        least = p->steps[i].b.window_ns < least ? p->steps[i].b.window_ns : least;
        most = p->steps[i].b.window_ns > most ? p->steps[i].b.window_ns : most;
    }
    if (p->nsteps < 2 || least == most)
        return duration(j, j->out->step_ns);
    return rp_arena_textf(j->arena, "%s, the median of %zu (%s to %s)",
                          duration(j, j->out->step_ns), p->nsteps, duration(j, least),
                          duration(j, most));
}

/* The mean of the ranks' step times, and their range. */
static void fill_step(struct report_ctx *j)
{
    int64_t *v = RP_ARENA_NEW(j->arena, int64_t, j->n + 1), sum = 0;
    size_t r, n = 0;

    j->out->step_ns = RP_ABSENT_I64;
    for (r = 0; r < j->n && v; r++)
        if (part_of(j, r)->step_ns != RP_ABSENT_I64)
            v[n++] = part_of(j, r)->step_ns;
    if (!n)
        return;
    rp_ns_sort(v, n);
    for (r = 0; r < n; r++)
        rp_ns_add(&sum, v[r]);
    j->out->step_ns = sum / (int64_t)n;
    j->out->step_text =
        n == 1 || v[0] == v[n - 1]
            ? one_rank_step(j)
            : rp_arena_textf(j->arena, "%s (ranks %s to %s)", duration(j, j->out->step_ns),
                             duration(j, v[0]), duration(j, v[n - 1]));
}

/* "40.5 %"; a share that is not 0 or 100 % is not shown as if it were. */
static const char *percent(struct report_ctx *j, int64_t part_ns, int64_t whole_ns)
{
    double share = 100.0 * (double)part_ns / (double)whole_ns;

    if (part_ns > 0 && share < 0.05)
        return "< 0.1 %";
    if (part_ns < whole_ns && share > 99.95)
        return "> 99.9 %";
    return rp_arena_textf(j->arena, "%.1f %%", share);
}

/* ", 3.58 ms copies" where there are any. */
static const char *and_lost(struct report_ctx *j, const char *text, const char *part,
                            const char *what)
{
    size_t i;

    for (i = 0; i < j->out->nparts; i++)
        if (!strcmp(j->out->parts[i].part, part))
            return rp_arena_textf(j->arena, "%s%s %s%s%s", text, *text ? "," : ":",
                                  duration(j, j->out->parts[i].mean_ns), *what ? " " : "", what);
    return text;
}

/* "of 382.5 ms in 1 step, 154.9 ms (40.5 %) compute and 227.6 ms (59.5 %) lost: 3.58 ms copies,
   224.1 ms idle" */
static const char *lost_text(struct report_ctx *j, const char *whole)
{
    struct rp_report_root *out = j->out;
    int64_t idle = j->idle_ns / (int64_t)j->n, start = j->start_ns / (int64_t)j->n;
    int64_t earlier = part_of(j, 0)->sums.first_wait_ns;
    const char *lost = "";

    lost = and_lost(j, lost, "exposed communication", "exposed communication");
    lost = and_lost(j, lost, "waiting for other ranks", "waiting for other ranks");
    lost = and_lost(j, lost, "copies alone", "copies");
    if (idle)
        lost = rp_arena_textf(j->arena, "%s%s %s idle", lost, *lost ? "," : ":", duration(j, idle));
    if (start)
        lost = rp_arena_textf(j->arena, "%s (%s of it start-up)", lost, duration(j, start));
    else if (earlier > out->span_ns / 10)
        lost = rp_arena_textf(j->arena, "%s (%s of it waiting for work that was not recorded)",
                              lost, duration(j, earlier));
    if (!out->lost_ns)
        return rp_arena_textf(j->arena, "of %s, all is compute", whole);
    return rp_arena_textf(j->arena, "of %s, %s (%s) compute and %s (%s) lost%s", whole,
                          duration(j, out->needed_ns), percent(j, out->needed_ns, out->span_ns),
                          duration(j, out->lost_ns), percent(j, out->lost_ns, out->span_ns), lost);
}

static size_t judged_steps(const struct rp_report_part *p)
{
    size_t i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        n += !p->steps[i].warm_up && !p->steps[i].no_detail;
    return n;
}

/* What the devices compute, and what was lost: means over the ranks. */
static void fill_lost(struct report_ctx *j)
{
    struct rp_report_root *out = j->out;
    size_t nsteps = judged_steps(part_of(j, 0));
    const char *whole, *comm, *waits;

    out->window_ns /= (int64_t)j->n;
    out->span_ns = j->total_ns / (int64_t)j->n;
    out->needed_ns =
        out->nparts && !strcmp(out->parts[0].part, work_word(j)) ? out->parts[0].mean_ns : 0;
    out->lost_ns = rp_ns_between(out->needed_ns, out->span_ns);
    if (out->span_ns <= 0)
        return;
    whole = nsteps ? rp_arena_textf(j->arena, "%s in %s%s", duration(j, out->span_ns),
                                    rp_units_count(j->arena, (int64_t)nsteps, "step"),
                                    j->n > 1 ? " on average" : "")
                   : rp_arena_textf(j->arena, "%s recorded%s", duration(j, out->span_ns),
                                    j->n > 1 ? " on average" : "");
    if (part_of(j, 0)->on_device) {
        out->lost_text = lost_text(j, whole);
        return;
    }
    comm = and_lost(j, "", "exposed communication", "");
    waits = and_lost(j, "", "waiting", "");
    out->lost_text = rp_arena_textf(
        j->arena, "of %s, %s during %s (%s)%s%s%s%s", whole,
        part_of(j, 0)->by_ranges ? "user code runs" : "operators run", duration(j, out->needed_ns),
        percent(j, out->needed_ns, out->span_ns), *comm ? ", communication alone during" : "",
        *comm ? comm + 1 : "", *waits ? ", waiting" : "", *waits ? waits + 1 : "");
}

/* "84 collectives synchronize the ranks, 628.1 ms from the first to the last; ranks 0 and 6 arrived
   last 60 times and delayed the others by 302.5 ms of 326.4 ms" */
static void fill_pace(struct report_ctx *j)
{
    const struct rp_chain *c = &j->chain;
    size_t r, first = 0, second, low;
    int64_t last, margin, all = 0;
    const char *who;

    j->out->collective_span_ns = c->ncollectives ? c->span_ns : RP_ABSENT_I64;
    if (!c->ncollectives || j->n < 2)
        return;
    for (r = 0; r < j->n; r++) {
        rp_ns_add(&all, c->ranks[r].margin_ns);
        if (c->ranks[r].margin_ns > c->ranks[first].margin_ns)
            first = r;
    }
    second = first ? 0 : 1;
    for (r = 0; r < j->n; r++)
        if (r != first && c->ranks[r].margin_ns > c->ranks[second].margin_ns)
            second = r;
    last = c->ranks[first].last_count;
    margin = c->ranks[first].margin_ns;
    who = rp_arena_textf(j->arena, "rank %d", number_of(j, first));
    if (c->ranks[second].margin_ns > margin / 4) {
        low = first < second ? first : second;
        last += c->ranks[second].last_count;
        rp_ns_add(&margin, c->ranks[second].margin_ns);
        who = rp_arena_textf(j->arena, "ranks %d and %d", number_of(j, low),
                             number_of(j, first + second - low));
    }
    j->out->pace_text = rp_arena_textf(
        j->arena,
        "%s %s the ranks, %s from the first to the last; %s%s arrived last %s "
        "and delayed the others by %s%s%s",
        rp_units_count(j->arena, (int64_t)c->ncollectives, "collective"),
        c->ncollectives == 1 ? "synchronizes" : "synchronize", duration(j, c->span_ns),
        j->ranks->world_size > (int64_t)j->n ? "of the ranks given, " : "", who,
        rp_units_count(j->arena, last, "time"), duration(j, margin), margin < all ? " of " : "",
        margin < all ? duration(j, all) : "");
}

static void add_note(struct report_ctx *j, const char *text)
{
    if (text && *text && j->out->nnotes < MOST_NOTES)
        j->out->notes[j->out->nnotes++] = text;
}

/* Kernels of graphs whose capture is not known. */
static void note_graphs(struct report_ctx *j, const struct rp_coverage *sum)
{
    int64_t without = rp_ns_between(sum->graph_op_ns, sum->graph_ns);

    if (!j->ranks->graphs && without > sum->device_ns / 20)
        add_note(j, rp_arena_textf(j->arena,
                                   "%.1f %% of the device time is kernels of graphs, which have no "
                                   "operators here: record the capture of the graphs with the "
                                   "profiler, and give that file beside this one",
                                   100.0 * (double)without / (double)sum->device_ns));
}

/* How much of the device time is attributed, and what was missing in the trace. */
static void note_coverage(struct report_ctx *j)
{
    const char *framework = part_of(j, 0)->framework;
    bool torch = framework && !strcmp(framework, "pytorch");
    struct rp_coverage sum = {0};
    size_t r;

    for (r = 0; r < j->n; r++) {
        rp_ns_add(&sum.device_ns, part_of(j, r)->coverage.device_ns);
        rp_ns_add(&sum.op_ns, part_of(j, r)->coverage.op_ns);
        rp_ns_add(&sum.launched_ns, part_of(j, r)->coverage.launched_ns);
        rp_ns_add(&sum.module_ns, part_of(j, r)->coverage.module_ns);
        rp_ns_add(&sum.graph_ns, part_of(j, r)->coverage.graph_ns);
        rp_ns_add(&sum.graph_op_ns, part_of(j, r)->coverage.graph_op_ns);
    }
    if (!sum.device_ns)
        return;
    add_note(
        j,
        rp_arena_textf(
            j->arena,
            "%.1f %% of the device time is attributed to a launch, %.1f %% to an operator%s",
            100.0 * (double)sum.launched_ns / (double)sum.device_ns,
            100.0 * (double)sum.op_ns / (double)sum.device_ns,
            sum.module_ns || !torch ? "" : "; no modules: record with with_stack or with_modules"));
    note_graphs(j, &sum);
}

static void note_trouble(struct report_ctx *j)
{
    int64_t overhead = 0;
    size_t r;

    for (r = 0; r < j->n; r++)
        rp_ns_add(&overhead, part_of(j, r)->sums.overhead_ns);
    if (overhead && j->total_ns && overhead > j->total_ns / 100)
        add_note(j, rp_arena_textf(j->arena, "the profiler itself took %s", duration(j, overhead)));
}

/* ", 1.2 s between steps": one more thing that does not count. */
static const char *and_outside(struct report_ctx *j, const char *text, int64_t ns, const char *what)
{
    if (ns <= part_of(j, 0)->whole.window_ns / 50)
        return text;
    return rp_arena_textf(j->arena, "%s%s %s %s", text, *text ? "," : "", duration(j, ns), what);
}

/* What was recorded outside of the steps: initialisation, warm-up, evaluation, the end of the run.
 */
static void note_outside(struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, 0);
    const char *text = and_outside(j, "", p->before_ns, "before the first step (start-up)");

    text = and_outside(
        j, text, p->warm_up_ns,
        rp_arena_textf(j->arena, "in the first %s (warm-up)",
                       p->warm_ups == 1 ? "step" : rp_units_count(j->arena, p->warm_ups, "step")));
    text = and_outside(j, text, p->break_ns,
                       rp_arena_textf(j->arena,
                                      "in %s between steps (evaluation, checkpoints, pauses)",
                                      rp_units_count(j->arena, p->breaks, "break")));
    text = and_outside(j, text, p->after_ns, "after the last step");
    if (p->without_detail)
        add_note(j,
                 rp_arena_textf(j->arena,
                                "kernels and operators are those of %zu of %zu steps: the others "
                                "were recorded without detail",
                                p->nsteps - (size_t)p->without_detail, p->nsteps));
    if (*text)
        add_note(j, rp_arena_textf(j->arena, "not counted:%s", text));
}

/* Of the first rank whose operators name their inputs. */
static void fill_latency(struct report_ctx *j)
{
    struct rp_report_latency *latency = &j->out->latency;
    size_t r;

    for (r = 0; r < j->n && !latency->ops; r++)
        *latency = part_of(j, r)->latency;
    if (!latency->ops)
        return;
    add_note(
        j,
        rp_arena_textf(
            j->arena,
            "operators start %s (median) and %s (p90) after their last input, '%.60s' starts %s after it",
            duration(j, latency->p50_ns), duration(j, latency->p90_ns), latency->slowest,
            duration(j, latency->max_ns)));
}

/* Idle workers are normal: they are told apart from the threads that work. */
static void note_ranges(struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, 0);
    int64_t whole = rp_ns_sum(p->whole.window_ns, 0) * (p->waits.workers ? p->waits.workers : 1);

    if (p->by_calls)
        add_note(j, rp_arena_textf(
                        j->arena,
                        "no device work, operators or ranges were recorded: user code is what runs "
                        "between calls that communicate%s",
                        p->waits.rows.n ? " or wait"
                                        : "; 'record --with blocking' also records "
                                          "where it waits"));
    else
        add_note(j,
                 rp_arena_textf(j->arena,
                                "no device work and no operators were recorded: work is what the "
                                "program's own ranges contain%s",
                                p->waits.rows.n ? " without the waits in them"
                                : p->framework && !strcmp(p->framework, "reprise")
                                    ? "; 'record --with blocking' also records where it waits"
                                    : ""));
    if (p->waits.workers && whole > 0)
        add_note(j, rp_arena_textf(j->arena,
                                   "%s without ranges wait%s during %s of the time: normal for "
                                   "threads that have nothing to do",
                                   rp_units_count(j->arena, p->waits.workers, "thread"),
                                   p->waits.workers == 1 ? "s" : "",
                                   percent(j, p->waits.worker_ns, whole)));
}

static void note_host(struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, 0);

    if (p->on_device || !p->b.busy_ns)
        return;
    if (p->by_ranges) {
        note_ranges(j);
        return;
    }
    add_note(j,
             rp_arena_textf(j->arena,
                            "no device work was recorded: %s on the host, on average %.2f at once",
                            rp_units_count(j->arena, p->sums.host_ops, "operator"),
                            (double)p->sums.host_op_ns / (double)p->b.busy_ns));
}

/* A rank that is late because of its host is a straggler and has a finding about its host. */
static void note_overlap(struct report_ctx *j)
{
    const struct rp_report_root *out = j->out;
    bool overlap = false;
    double shares = 0;
    size_t i;

    for (i = 0; i < out->nfindings; i++) {
        shares += out->findings[i].share;
        overlap |= out->nfindings > 1 && !strcmp(out->findings[i].id, "straggler");
    }
    if (overlap || shares > 1)
        add_note(j,
                 "the costs of the findings overlap and must not be added up: each is what the run "
                 "would save if only that one were fixed");
}

/* How much of a finding the line "time" counts as compute. */
static const char *compute_text(const struct report_ctx *j, const struct rp_report_finding *f)
{
    if (!f->compute_ns)
        return "";
    return f->compute_ns >= f->lost_ns - f->lost_ns / 100
               ? rp_arena_textf(j->arena, " of the %s", work_word(j))
               : rp_arena_textf(j->arena, ", %s of it %s", duration(j, f->compute_ns),
                                work_word(j));
}

/* The findings that cost most, as blocks of lines. */
static void fill_look(struct report_ctx *j)
{
    struct rp_report_root *out = j->out;
    size_t i;

    out->look = RP_ARENA_NEW(j->arena, struct rp_report_look, MOST_SHOWN + 1);
    for (i = 0; i < out->nfindings && i < MOST_SHOWN && out->look; i++) {
        const struct rp_report_finding *f = &out->findings[i];

        out->look[out->nlook++] = (struct rp_report_look){
            .heading = rp_arena_textf(j->arena, "%zu. %s: %s%s%s (%.1f %%)", i + 1, f->id,
                                      f->at_most ? "up to " : "", duration(j, f->lost_ns),
                                      compute_text(j, f), 100 * f->share),
            .why = f->title,
            .evidence = f->nevidence ? f->evidence[0] : NULL};
        rp_report_look_tries(j->arena, f, &out->look[out->nlook - 1]);
    }
    note_overlap(j);
    if (!out->nfindings)
        add_note(j, "no finding costs more than 1 % of the time");
    else if (out->nfindings > MOST_SHOWN)
        add_note(j, rp_arena_textf(j->arena, "%zu of %zu findings are shown: --json has all",
                                   (size_t)MOST_SHOWN, out->nfindings));
}

/* Of a capture nothing is concluded: its kernels did not run. */
static void fill_capture(struct report_ctx *j)
{
    int64_t captured = j->ranks->captured;

    j->out->captured_launches = captured;
    j->out->lost_text =
        rp_arena_textf(j->arena, "a recording of a graph capture: %s %s captured, not executed%s%s",
                       rp_units_count(j->arena, captured, "launch"), captured == 1 ? "was" : "were",
                       part_of(j, 0)->on_device ? "; what ran beside it took " : "",
                       part_of(j, 0)->on_device ? duration(j, j->out->needed_ns) : "");
    add_note(j, "nothing is concluded from a capture: report the trace in which the graph runs, "
                "with this file beside it, to see its kernels by operator");
}

/* Pitfalls: misleading impressions of the timeline, for the rank at the end of the chain. */
static void fill_pitfalls(struct report_ctx *j)
{
    const struct rp_report_part *p = part_of(j, j->chain.lead);
    const struct rp_chain_rank *c = &j->chain.ranks[j->chain.lead];
    int64_t beside = rp_ns_between(p->b.exposed_comm_ns, p->b.comm_ns);
    int64_t waiting = rp_ns_between(c->exposed_wait_ns, c->wait_ns);

    j->out->pitfalls = RP_ARENA_NEW(j->arena, const char *, 5);
    if (!j->out->pitfalls)
        return;
    if (p->unequal)
        j->out->pitfalls[j->out->npitfalls++] = p->unequal;
    if (p->untypical)
        j->out->pitfalls[j->out->npitfalls++] = p->untypical;
    if (p->streams)
        j->out->pitfalls[j->out->npitfalls++] = p->streams;
    if (j->chain.ncollectives && !j->chain.beside && beside > p->whole.window_ns / 100 &&
        waiting > beside / 2)
        j->out->pitfalls[j->out->npitfalls++] = rp_arena_textf(
            j->arena,
            "rank %d: of the %s of communication that overlaps with compute, %s is waiting for other ranks, not transfer",
            number_of(j, j->chain.lead), duration(j, beside), duration(j, waiting));
}

static enum rp_code fill_waits(struct report_ctx *j, struct rp_err *err)
{
    const struct rp_host_waits **waits =
        RP_ARENA_NEW(j->arena, const struct rp_host_waits *, j->n + 1);
    struct rp_idle_wait_list list;
    size_t r;

    if (!waits)
        return rp_err_nomem(err, "listing waits");
    for (r = 0; r < j->n; r++)
        waits[r] = &part_of(j, r)->waits;
    RP_TRY(rp_idle_list_waits(waits, j->n, j->total_ns, j->arena, &list, err));
    j->out->waits = j->out->wait_rows = list.at;
    j->out->nwaits = list.n;
    j->out->nwait_rows = part_of(j, 0)->on_device ? 0 : list.nshown;
    return RP_OK;
}

static bool wants_view(const struct rp_settings *settings)
{
    return rp_settings_has(settings, "html") || rp_settings_has(settings, "svg");
}

static enum rp_code report_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_report_root *out = result->root;
    struct report_ctx j = {.ranks = ranks, .n = ranks->n, .arena = &result->arena, .out = out};

    out->notes = RP_ARENA_NEW(j.arena, const char *, MOST_NOTES);
    RP_TRY(rp_chain_make(ranks, j.arena, &j.chain, err));
    fill_ranks(&j);
    fill_parts(&j);
    rp_report_group_ranks(ranks, j.arena, out);
    RP_TRY(rp_arena_check(j.arena, "writing the report", err));
    fill_run_text(&j);
    fill_step(&j);
    RP_TRY(rp_report_sum_phases(ranks, j.arena, out, err));
    fill_lost(&j);
    RP_TRY(fill_waits(&j, err));
    fill_pace(&j);
    RP_TRY(rp_report_count_stalls(ranks, j.arena, out, err));
    out->workload = rp_report_workload_of(&part_of(&j, j.chain.lead)->workload);
    if (rp_ranks_are_captures(ranks)) {
        fill_capture(&j);
    } else {
        rp_report_join_categories(ranks, j.arena, out);
        RP_TRY(rp_report_find(ranks, &j.chain, j.arena, out, err));
        RP_TRY(rp_report_predict(ranks, j.arena, out, err));
        fill_look(&j);
        fill_pitfalls(&j);
        add_note(&j, ranks->graphs);
    }
    add_note(&j, rp_report_join_devices(ranks, j.arena, out));
    if (!rp_ranks_are_captures(ranks))
        note_coverage(&j);
    note_trouble(&j);
    note_host(&j);
    note_outside(&j);
    fill_latency(&j);
    if (wants_view(settings))
        RP_TRY(rp_report_join_view(ranks, &j.chain, result, err));
    return rp_arena_check(j.arena, "writing the report", err);
}

/* ------------------------------------------------------------------ the row */

extern const struct rp_question_row rp_ask_report;

/* What pages and pictures show besides the answer. */
static enum rp_code report_view(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                const struct rp_settings *settings, struct rp_rank_part *part,
                                struct rp_err *err)
{
    const struct rp_roof_options roof = {.by = RP_ROOF_SHAPE, .achievable = RP_ROOF_ACHIEVABLE};
    const struct rp_category_table *categories = rp_loaded_categories(loaded);
    struct rp_report_part *data = part->data;
    struct rp_xla_costs xla;
    enum rp_code code;
    size_t k;

    RP_TRY(rp_report_draw_lanes(loaded->trace, scope, &part->arena, data, err));
    if (!rp_settings_has(settings, "html"))
        return RP_OK;
    for (k = 0; k < RP_VIEW_TOPS; k++) {
        struct rp_top_groups want = {.by = rp_top_by_of(rp_view_top_words[k]),
                                     .categories = categories};

        RP_TRY(rp_top_group_work(loaded->trace, scope, &want, &part->arena, &data->tops[k], err));
    }
    code = rp_xla_costs_init(&xla, loaded, err);
    if (code == RP_OK)
        code = rp_roof_group_calls(loaded->trace, scope, categories, &roof, rp_xla_cost_of, &xla,
                                   &part->arena, &data->roof, err);
    rp_xla_costs_release(&xla);
    return code;
}

static enum rp_code report_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                const struct rp_settings *settings, struct rp_rank_part *part,
                                struct rp_err *err)
{
    struct rp_report_part *out = part->data;

    RP_TRY(
        rp_report_rank(loaded->trace, scope, rp_loaded_categories(loaded), &part->arena, out, err));
    RP_TRY(rp_trace_host(loaded->trace, loaded->source->name, &part->arena, &out->host, err));
    if (wants_view(settings))
        RP_TRY(report_view(loaded, scope, settings, part, err));
    return rp_settings_flag(settings, "no-simulate")
               ? RP_OK
               : rp_report_model(loaded->trace, &part->arena, out, err);
}

/* The page says what the answer rests on. */
static enum rp_code report_write(const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    const char *html = rp_settings_text(settings, "html"), *svg = rp_settings_text(settings, "svg");

    if (html)
        RP_TRY(rp_report_write_page(result, html, err));
    return svg ? rp_report_write_picture(result, svg, err) : RP_OK;
}

static const struct rp_option options[] = {
    RP_RANK_OPTIONS,
    {"no-simulate", 0, RP_OPT_FLAG, NULL, NULL, "do not predict what the advice would bring", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page for a browser: findings, timeline of all ranks, tables", 0},
    {"svg", 0, RP_OPT_PATH, "FILE", NULL, "also write the timeline of all ranks as a picture", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_report = {
    .question = {.name = "report",
                 .group = "traces",
                 .summary = "where the time goes, what was lost, and what to try",
                 .details =
                     "One screen about a trace or all ranks of a run: the step time, what the "
                     "devices compute, what was lost to which cause, which ranks delay the others, "
                     "and findings ranked by what they cost.",
                 .examples = "reprise report run/\tall ranks of a run\n"
                             "reprise report --step 12 run/\tone step of it\n"
                             "reprise report --html report.html run/\tto look at in a browser\n"
                             "reprise report --json trace.json.gz\tfor a script\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &report_type},
    .ranks = {.part = &part_type, .rank = report_rank, .join = report_join},
    .write = report_write};
