/* SPDX-License-Identifier: Apache-2.0 */
/* `diff`: what changed between two programs. */
#include "api/load_program.h"
#include "api/question_row.h"
#include "explain/program_diff.h"

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    struct rp_import left = RP_IMPORT_INIT, right = RP_IMPORT_INIT;
    struct rp_diff *root = result->root;
    enum rp_code code;

    (void)ctx;
    (void)settings;
    if (rp_dataset_count(dataset) != 2)
        return rp_err_set(err, RP_USAGE, "'diff' compares two files, not %zu",
                          rp_dataset_count(dataset));
    code = rp_load_program(dataset, 0, &left, err);
    if (code == RP_OK)
        code = rp_load_program(dataset, 1, &right, err);
    if (code == RP_OK)
        code = rp_explain_diff(left.program, right.program, &result->arena, root, err);
    if (code == RP_OK)
        result->answer = root->same ? 0 : 1;
    rp_import_release(&left);
    rp_import_release(&right);
    return code;
}

static const struct rp_option options[] = {RP_OPTION_END};

const struct rp_question_row rp_ask_diff = {
    .question = {.name = "diff",
                 .group = "programs",
                 .summary = "what changed between two programs",
                 .details =
                     "Operations are matched by what they compute: names, ids, the order of "
                     "computations and of parameters do not count. The same change in many "
                     "places is one row. The exit status is 0 where both are the same program "
                     "and 1 where they differ.",
                 .examples = "reprise diff before.txt after.txt\twhat changed\n"
                             "reprise diff --json module.txt module.hlo.pb\tfor a script\n",
                 .accepts = RP_ACCEPTS_PROGRAMS,
                 .options = options,
                 .type = &rp_diff_type},
    .run = run};
