/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `simulate`: keys of the JSON contract, headings of the screen. */
#include "sim/sim_answer.h"

#define BASE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_baseline, member, type, unit, title, doc, flags)

static const struct rp_field base_fields[] = {
    BASE(measured_ns, I64, NS, "measured", "a step of the first rank as recorded", 0),
    BASE(simulated_ns, I64, NS, "simulated", "the same from the simulation", 0),
    BASE(unprofiled_ns, I64, NS, "without the profiler", "simulated without its cost", 0),
    BASE(error_ratio, F64, RATIO, "error", "of simulated against measured", 0),
    BASE(spread_ratio, F64, RATIO, "steps differ by", "one step against the others, or null", 0),
    BASE(ranks, I64, COUNT, "ranks", "in the simulation", 0),
    BASE(steps, I64, COUNT, "steps", "recorded", 0),
    BASE(tasks, I64, COUNT, "tasks", "in the simulation", 0),
    BASE(edges, I64, COUNT, "edges", "between them", 0),
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
    PRED(assumes, STR, NONE, NULL, "what must hold", 0),
    RP_FIELD_END};
static const struct rp_type pred_type = {"prediction", sizeof(struct rp_sim_prediction),
                                         pred_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_RECORD(struct rp_sim_answer, baseline, &base_type, "as it is",
                    "how well the model repeats the recording", 0),
    RP_FIELD_LIST(struct rp_sim_answer, predictions, &pred_type, "what if", "one a --what-if", 0),
    RP_FIELD_LIST(struct rp_sim_answer, notes, &rp_type_string, "notes", "what the numbers rest on",
                  0),
    RP_FIELD_END};

const struct rp_type rp_sim_type = {"simulate", sizeof(struct rp_sim_answer), root_fields,
                                    "predictions"};
