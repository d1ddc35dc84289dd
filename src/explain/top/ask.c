/* SPDX-License-Identifier: Apache-2.0 */
/* `top`: what takes the time, with statistics. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/top/top.h"

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    return rp_top_rank(loaded->trace, scope, rp_top_by_of(rp_settings_text(settings, "by")),
                       part->data, err);
}

static void release(void *data)
{
    rp_top_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    const struct rp_top_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_top_part *, ranks->n + 1);
    const char *by = rp_settings_text(settings, "by");
    size_t i;

    if (!parts)
        return rp_err_nomem(err, "adding up ranks");
    for (i = 0; i < ranks->n; i++)
        parts[i] = ranks->parts[i].data;
    by = rp_arena_strdup(&result->arena, by);
    return rp_top_join(parts, ranks->n, by ? by : "", rp_settings_text(settings, "sort"),
                       rp_settings_int(settings, "limit"), &result->arena, result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_top_part), .rank = rank, .release = release, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {
    {"by", 'b', RP_OPT_CHOICE, RP_TOP_BY_WORDS, "kernel", "what the rows are", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "at most N rows; 0: all", 0},
    {"sort", 's', RP_OPT_CHOICE, RP_TOP_SORTS, "total", "what is largest in the first row", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_top = {
    .question = {.name = "top",
                 .group = "traces",
                 .summary = "what takes the time: kernels, operators, shapes, modules, …",
                 .details =
                     "Device time of everything with the same name, of all ranks together. By "
                     "operator, shape, module, annotation or Python frame the time is that of the "
                     "device work launched inside; without a device, that of the host. Percentiles "
                     "are exact.",
                 .examples =
                     "reprise top trace.json.gz\tthe kernels that take most time\n"
                     "reprise top --by op --sort self run/\tthe operators that launch it\n"
                     "reprise top --by shape --step 12 run/\tof one step, by input shapes\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_top_type},
    .run = run};
