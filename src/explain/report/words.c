/* SPDX-License-Identifier: Apache-2.0 */
/* Writes advice as lines on the screen, and the kind of program in words. */
#include "base/escape.h"

#include "base/decides.h"
#include "explain/report/report.h"
#include "result/print_units.h"

#include <math.h>

#define HALF_DIGIT 0.0005
RP_FACT(HALF_DIGIT, "of the step", "percentages are printed with one digit behind the point");

#define TRY(member, type, unit, doc, flags) \
    RP_FIELD(struct rp_report_try, member, type, unit, NULL, doc, flags)

static const struct rp_field try_fields[] = {
    TRY(text, STR, NONE, "what to do", 0),
    TRY(what_if, STR, NONE, "the what-if of simulate that predicts it, or null", 0),
    TRY(step_ns, I64, NS, "a step without the profiler, or null", RP_NULLABLE),
    TRY(predicted_ns, I64, NS, "the same with the change, or null", RP_NULLABLE),
    TRY(change_ratio, F64, RATIO, "change between the two, or null", 0),
    RP_FIELD_END};
const struct rp_type rp_report_try_type = {"try", sizeof(struct rp_report_try), try_fields, NULL};

/* "torch.compile(...) (simulate: graphs 31.2 ms → 28.0 ms a step, -10.3 %)" */
static const char *try_line(struct rp_arena *arena, const struct rp_report_try *t)
{
    if (!t->what_if)
        return t->text;
    if (isnan(t->change_ratio))
        return rp_arena_textf(arena, "%s ('reprise simulate -w %s' predicts it)", t->text,
                              rp_arena_escaped(arena, RP_IN_SHELL, t->what_if));
    if (t->change_ratio > -HALF_DIGIT)
        return rp_arena_textf(arena, "%s (simulate: %s alone brings nothing)", t->text, t->what_if);
    return rp_arena_textf(arena, "%s (simulate: %s %s → %s a step, %+.1f %%)", t->text, t->what_if,
                          rp_units_time(arena, t->step_ns), rp_units_time(arena, t->predicted_ns),
                          100 * t->change_ratio);
}

void rp_report_look_tries(struct rp_arena *arena, const struct rp_report_finding *finding,
                          struct rp_report_look *look)
{
    const char **const lines[] = {&look->first, &look->second, &look->third};

    for (size_t i = 0; i < finding->ntries && i < sizeof lines / sizeof lines[0]; i++)
        *lines[i] = try_line(arena, &finding->tries[i]);
}

/* ------------------------------------------------------------------ the workload, in words */

#define WORKLOAD(member, type, doc) \
    RP_FIELD(struct rp_report_workload, member, type, NONE, NULL, doc, 0)

static const struct rp_field workload_fields[] = {
    WORKLOAD(framework, STR, "what its user configures: a server, else a framework"),
    WORKLOAD(vendor, STR, "vendor of the device, or none"),
    WORKLOAD(mode, STR, "training, inference, serving or unknown"),
    WORKLOAD(parallel, STR, "how the work is distributed, or none"),
    WORKLOAD(transport, STR, "what carries collectives, or none"),
    WORKLOAD(compiled, BOOL, "whether torch.compile or XLA compiled it"),
    WORKLOAD(graphs, BOOL, "graphs of device work are launched"),
    RP_FIELD_END};
const struct rp_type rp_report_workload_type = {"workload", sizeof(struct rp_report_workload),
                                                workload_fields, NULL};

const char *rp_report_program_name(struct rp_arena *arena, const struct rp_report_part *part)
{
    uint8_t framework = part->workload.framework;
    const char *system = rp_system_names[part->workload.system];

    if (part->frameworks)
        return part->frameworks;
    if (!part->framework)
        return !system ? "unknown recorder"
               : framework == RP_FRAMEWORK_UNKNOWN || framework == RP_FRAMEWORK_NATIVE
                   ? rp_arena_textf(arena, "recorded by %s", system)
                   : rp_arena_textf(arena, "%s, recorded by %s", rp_framework_names[framework],
                                    system);
    return framework == RP_FRAMEWORK_VLLM || framework == RP_FRAMEWORK_SGLANG ||
                   framework == RP_FRAMEWORK_TENSORRT_LLM
               ? rp_arena_textf(arena, "%s on %s", rp_framework_names[framework], part->framework)
               : part->framework;
}

struct rp_report_workload rp_report_workload_of(const struct rp_workload *w)
{
    return (struct rp_report_workload){.framework = rp_framework_names[w->framework],
                                       .vendor = rp_vendor_names[w->vendor],
                                       .mode = rp_mode_names[w->mode],
                                       .parallel = rp_parallel_names[w->parallel],
                                       .transport = rp_transport_names[w->transport],
                                       .compiled = w->compiled,
                                       .graphs = w->graphs};
}
