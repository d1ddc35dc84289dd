/* SPDX-License-Identifier: Apache-2.0 */
/* `launches`: how work gets to the device. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/launches/launches.h"

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    return rp_launches_rank(loaded->trace, scope, rp_settings_text(settings, "by"), &part->arena,
                            part->data, err);
}

static void release(void *data)
{
    rp_launches_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_launches_input *in =
        RP_ARENA_NEW(&result->arena, struct rp_launches_input, ranks->n + 1);
    const char *by = rp_arena_strdup(&result->arena, rp_settings_text(settings, "by"));
    size_t i;

    if (!in || !by)
        return rp_err_nomem(err, "adding up launches");
    for (i = 0; i < ranks->n; i++)
        in[i] = (struct rp_launches_input){ranks->parts[i].data, ranks->parts[i].number};
    return rp_launches_join(in, ranks->n, by, rp_settings_text(settings, "sort"),
                            rp_settings_int(settings, "limit"), &result->arena, result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_launches_part), .rank = rank, .release = release, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {
    {"by", 'b', RP_OPT_CHOICE, RP_LAUNCH_BYS, "call",
     "what the rows are; launch: each one, by its correlation", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "at most N rows; 0: all", 0},
    {"sort", 's', RP_OPT_CHOICE, RP_LAUNCH_SORTS, "delay", "what adds up to most in the first row",
     0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_launches = {
    .question = {.name = "launches",
                 .group = "traces",
                 .summary = "how work gets to the device: calls, delays, queues, copies",
                 .details =
                     "How long the host's launching calls take, how long after them the work "
                     "starts, how many launches wait in each stream, and how fast copies run.",
                 .examples = "reprise launches trace.json.gz\tby runtime call\n"
                             "reprise launches --by kernel run/\twhich kernels start late\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_launches_type},
    .run = run};
