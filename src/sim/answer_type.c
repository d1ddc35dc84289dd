/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `simulate`: keys of the JSON contract, headings of the screen. */
#include "sim/answer.h"

#define BASE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_baseline, member, type, unit, title, doc, flags)

static const struct rp_field base_fields[] = {
    BASE(measured_ns, I64, NS, "measured", "a step of the first rank as recorded", RP_NULLABLE),
    BASE(simulated_ns, I64, NS, "simulated", "the same from the simulation", RP_NULLABLE),
    BASE(unprofiled_ns, I64, NS, "without the profiler", "simulated without its cost", RP_NULLABLE),
    BASE(unprofiled_low_ns, I64, NS, "  at least", "lower end of its interval", RP_NULLABLE),
    BASE(unprofiled_high_ns, I64, NS, "  at most", "upper end of its interval", RP_NULLABLE),
    BASE(span_cost_ns, I64, NS, "recording a span", "its cost on the first rank", RP_NULLABLE),
    BASE(cost_factor, F64, NONE, NULL, "that cost, times the estimate", 0),
    BASE(error_ratio, F64, RATIO, "error", "of simulated against measured", 0),
    BASE(spread_ratio, F64, RATIO, "steps differ by", "one step against the others, or null", 0),
    BASE(ranks, I64, COUNT, "ranks", "in the simulation", RP_NULLABLE),
    BASE(steps, I64, COUNT, "steps", "recorded", RP_NULLABLE),
    BASE(tasks, I64, COUNT, "tasks", "in the simulation", RP_NULLABLE),
    BASE(edges, I64, COUNT, "edges", "between them", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type base_type = {"baseline", sizeof(struct rp_sim_baseline), base_fields,
                                         NULL};

#define PRED(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_prediction, member, type, unit, title, doc, flags)

static const struct rp_field pred_fields[] = {
    PRED(what_if, STR, NONE, "what if", "as asked", 0),
    PRED(simulated_ns, I64, NS, NULL, "a step, recorded by the same profiler", 0),
    PRED(predicted_ns, I64, NS, "a step", "without the profiler", 0),
    PRED(low_ns, I64, NS, "from", "lower end of the interval", 0),
    PRED(high_ns, I64, NS, "to", "upper end of the interval", 0),
    PRED(change_ratio, F64, RATIO, "change", "against the step without the profiler", 0),
    PRED(bound_by, STR, NONE, "mostly", "what most of its critical path is", RP_NULLABLE),
    PRED(assumes, STR, NONE, NULL, "what must hold", 0),
    RP_FIELD_END};
static const struct rp_type pred_type = {"prediction", sizeof(struct rp_sim_prediction),
                                         pred_fields, NULL};

#define BOUND(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_bound, member, type, unit, title, doc, flags)

static const struct rp_field bound_fields[] = {
    BOUND(what, STR, NONE, "on the path", "kernels, host, gaps between them …", 0),
    BOUND(ns, I64, NS, "a step", "of a step", 0),
    BOUND(ratio, F64, RATIO, "part", "of the path", 0), RP_FIELD_END};
static const struct rp_type bound_type = {"bound", sizeof(struct rp_sim_bound), bound_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(rank, I64, COUNT, "rank", "which", 0),
    RANK(host_ns, I64, NS, "host", "work of its threads in a step", 0),
    RANK(compute_ns, I64, NS, "kernels", "of its device", 0),
    RANK(memory_ns, I64, NS, "copies", "of its device", 0),
    RANK(comm_ns, I64, NS, "transfers", "of collectives, without waiting", 0),
    RANK(waiting_ns, I64, NS, "waiting", "for other ranks in collectives", 0),
    RANK(slack_ns, I64, NS, "slack",
         "it may come later to its collectives by this before a step ends later", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_sim_rank), rank_fields, NULL};

#define KNOWN(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_known, member, type, unit, title, doc, flags)

static const struct rp_field known_fields[] = {
    KNOWN(form, STR, NONE, "what if", "how it is asked for", 0),
    KNOWN(summary, STR, NONE, "then", "what it changes", 0),
    KNOWN(assumes, STR, NONE, "if", "what must hold for it to be right", 0), RP_FIELD_END};
static const struct rp_type known_type = {"known", sizeof(struct rp_sim_known), known_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_LIST(struct rp_sim_answer, known, &known_type, "what can be asked",
                  "of '--what-if help'", RP_BLOCKS),
    RP_FIELD_RECORD(struct rp_sim_answer, baseline, &base_type, "as it is",
                    "how well the model repeats the recording", 0),
    RP_FIELD_LIST(struct rp_sim_answer, path, &bound_type, "what a step is limited by",
                  "the critical path of the simulated run", 0),
    RP_FIELD_LIST(struct rp_sim_answer, by_rank, &rank_type, "a step by rank",
                  "of several ranks: sums of what they do; parts may run at once", 0),
    RP_FIELD_LIST(struct rp_sim_answer, predictions, &pred_type, "what if", "one a --what-if", 0),
    RP_FIELD_LIST(struct rp_sim_answer, notes, &rp_type_string, "notes", "what the numbers rest on",
                  0),
    RP_FIELD_END};

const struct rp_type rp_sim_type = {"simulate", sizeof(struct rp_sim_answer), root_fields,
                                    "predictions"};
