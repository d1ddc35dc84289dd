/* SPDX-License-Identifier: Apache-2.0 */
/* `stalls`: host calls far above their own median. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/stalls/stalls.h"

static enum rp_code rule_of(const struct rp_settings *settings, struct rp_stall_rule *rule,
                            struct rp_err *err)
{
    *rule = rp_stall_usual;
    rule->floor_ns = rp_settings_int(settings, "least");
    rule->ratio = rp_settings_int(settings, "over");
    if (rule->floor_ns < 0 || rule->ratio < 1 || rule->ratio > 1000000)
        return rp_err_set(err, RP_USAGE,
                          "--over takes a number from 1 to 1000000, --least no negative time");
    return RP_OK;
}

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    struct rp_stall_rule rule;

    RP_TRY(rule_of(settings, &rule, err));
    return rp_stalls_rank(loaded->trace, scope, rule.floor_ns, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_stalls_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_stalls_input *in = RP_ARENA_NEW(&result->arena, struct rp_stalls_input, ranks->n + 1);
    const char *by = rp_arena_strdup(&result->arena, rp_settings_text(settings, "by"));
    struct rp_stall_rule rule;
    size_t i;

    RP_TRY(rule_of(settings, &rule, err));
    if (!in || !by)
        return rp_err_nomem(err, "adding up stalls");
    for (i = 0; i < ranks->n; i++)
        in[i] = (struct rp_stalls_input){ranks->parts[i].data, ranks->parts[i].path,
                                         ranks->parts[i].number};
    return rp_stalls_join(in, ranks->n, &rule, by, rp_settings_int(settings, "limit"),
                          &result->arena, result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_stalls_part), .rank = rank, .release = release, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {
    {"by", 'b', RP_OPT_CHOICE, RP_STALL_BYS, "name", "what the rows are", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "at most N rows and N single stalls; 0: all", 0},
    {"over", 0, RP_OPT_INT, "K", "50", "a stall takes over K times the median of its name", 0},
    {"least", 0, RP_OPT_DURATION, "TIME", "1ms", "and more than that", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_stalls = {
    .question = {.name = "stalls",
                 .group = "traces",
                 .summary = "host calls far above their own median, and why",
                 .details =
                     "Own time of every operator, annotation, runtime call and Python frame, the "
                     "spans inside it left out, beside the median of its name on all ranks. Each "
                     "stall has the thread, the step, the time in which the device did nothing, "
                     "and a cause where the recording shows one.",
                 .examples = "reprise stalls run/\twhat held the hosts up\n"
                             "reprise stalls --by step trace.json.gz\tin which steps\n"
                             "reprise stalls --over 10 --least 200us trace.json.gz\tlesser ones\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_stalls_type},
    .run = run};
