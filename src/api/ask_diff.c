/* SPDX-License-Identifier: Apache-2.0 */
/* `diff`: what changed between two programs. */
#include "api/diff_programs.h"
#include "api/question_row.h"

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_diff_programs(ctx, dataset, settings, result, err);
}

static const struct rp_option options[] = {
    {"module", 0, RP_OPT_TEXT, "NAME", NULL, "of folders of dumps: only this module, by name or id",
     0},
    {"stage", 0, RP_OPT_TEXT, "NAME", NULL,
     "of folders of dumps: only this stage: source, before, after, a pass", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_diff = {
    .question = {.name = "diff",
                 .group = "programs",
                 .summary = "what changed between two programs",
                 .details =
                     "Operations are matched by what they compute: names, ids, the order of "
                     "computations and of parameters do not count. The same change in many "
                     "places is one row. The exit status is 0 where both are the same program "
                     "and 1 where they differ. Of a dump with several graphs, or a folder where "
                     "functions were compiled several times, every compilation is explained by "
                     "the one before. Folders and tars are compared module by module.",
                 .examples = "reprise diff before.txt after.txt\twhat changed\n"
                             "reprise diff --json module.txt module.hlo.pb\tfor a script\n"
                             "reprise diff lazy.txt\twhy each graph was compiled again\n"
                             "reprise diff dump_a/ dump_b/\tmodule by module\n",
                 .accepts = RP_ACCEPTS_PROGRAMS,
                 .options = options,
                 .type = &rp_diff_type},
    .run = run};
