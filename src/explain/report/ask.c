/* SPDX-License-Identifier: Apache-2.0 */
/* `report`: one screen about where the time of a run goes. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/report/report.h"

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    (void)settings;
    return rp_report_rank(loaded->trace, scope, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_report_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_report_input *in = RP_ARENA_NEW(&result->arena, struct rp_report_input, ranks->n + 1);
    size_t i;

    (void)settings;
    if (!in)
        return rp_err_nomem(err, "writing the report");
    for (i = 0; i < ranks->n; i++)
        in[i] = (struct rp_report_input){ranks->parts[i].data, ranks->parts[i].path,
                                         ranks->parts[i].number};
    return rp_report_join(in, ranks->n, ranks->world_size, &result->arena, result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_report_part), .rank = rank, .release = release, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {RP_RANK_OPTIONS, RP_OPTION_END};

const struct rp_question_row rp_ask_report = {
    .question = {.name = "report",
                 .group = "traces",
                 .summary = "where the time goes, what was lost, and what to try",
                 .details =
                     "One screen about a trace or all ranks of a run: the step time, what the "
                     "devices needed, what was lost to which cause, who holds up whom, and "
                     "findings ranked by what they cost.",
                 .examples = "reprise report run/\tall ranks of a run\n"
                             "reprise report --step 12 run/\tone step of it\n"
                             "reprise report --json trace.json.gz\tfor a script\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_report_type},
    .run = run};
