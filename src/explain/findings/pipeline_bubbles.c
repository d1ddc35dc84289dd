/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of a pipeline that wait for each other. */
#include "explain/findings/finding.h"

/* The time that a stage takes by itself. Without a device that includes pauses between operators:
   code that was not recorded. */
static int64_t own_time(const struct rp_report_part *p)
{
    return p->on_device ? p->whole.compute_ns : rp_ns_sum(p->whole.compute_ns, p->whole.idle_ns);
}

/* Finds the stage that works longest, and a median one. */
static void find_slow_stage(const struct rp_findings *f, size_t *slowest, int64_t *median_ns)
{
    int64_t *all = RP_ARENA_NEW(f->arena, int64_t, f->ranks->n + 1);
    size_t r, n = 0;

    *slowest = SIZE_MAX;
    for (r = 0; all && r < f->ranks->n; r++) {
        if (f->chain->stages[r].stage == RP_NONE)
            continue;
        all[n++] = own_time(rp_findings_part(f, r));
        if (*slowest == SIZE_MAX || all[n - 1] > own_time(rp_findings_part(f, *slowest)))
            *slowest = r;
    }
    if (n)
        rp_ns_sort(all, n);
    *median_ns = n ? rp_ns_median(all, n) : 0;
}

/* "a stage waits 7.21 ms on average; stage 2 (rank 2) computes 15.5 ms, the median stage 11.2 ms"
 */
static void pipeline_bubbles_find(struct rp_findings *f)
{
    struct rp_report_finding *finding =
        rp_findings_add(f, 0, f->chain->stages ? f->chain->bubble_ns : 0);
    int64_t median, depth = 0;
    size_t slowest, r;

    if (!finding)
        return;
    for (r = 0; r < f->ranks->n; r++)
        if (f->chain->stages[r].stage != RP_NONE && (int64_t)f->chain->stages[r].stage >= depth)
            depth = (int64_t)f->chain->stages[r].stage + 1;
    find_slow_stage(f, &slowest, &median);
    if (slowest != SIZE_MAX)
        RP_SAY(f, finding,
               "%s; a stage waits %s for others, on average; stage %u (rank %d) %s %s, the median "
               "stage %s",
               rp_units_count(f->arena, depth, "stage"), rp_findings_time(f, f->chain->bubble_ns),
               f->chain->stages[slowest].stage, rp_findings_number(f, slowest),
               rp_findings_lead(f)->on_device ? "computes" : "neither waits nor transfers for",
               rp_findings_time(f, own_time(rp_findings_part(f, slowest))),
               rp_findings_time(f, median));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "'reprise comm' has the waiting by stage and micro-batch: stages of equal length, and "
             "more micro-batches a step"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "ScheduleInterleaved1F1B or ScheduleZBVZeroBubble (torch.distributed.pipelining): "
             "several chunks of the model a stage"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .parallels = PAR(MEGATRON),
     .text = "--num-layers-per-virtual-pipeline-stage N: several chunks of the model a stage"},
};

const struct rp_finding rp_finding_pipeline_bubbles = {
    .id = "pipeline-bubbles",
    .kinds = {{"", "the stages of the pipeline wait for each other"}},
    .cost = "what a stage waits for other stages while it does not compute, the mean of the "
            "stages ([Communication](definitions/ranks.md#communication))",
    .find = pipeline_bubbles_find,
    RP_ADVICE(advice),
};
