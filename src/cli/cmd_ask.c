/* SPDX-License-Identifier: Apache-2.0 */
/* Every command that is a question: open the inputs, ask, print the result. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *common(const struct cli_call *call, const char *name)
{
    return cli_setting(call->common, call->ncommon, name);
}

static enum rp_code print(const struct cli_call *call, const struct rp_result *result,
                          struct rp_err *err)
{
    const char *path = common(call, "output");
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_TABLE};

    if (common(call, "json"))
        options.format = RP_PRINT_JSON;
    else if (common(call, "csv"))
        options.format = RP_PRINT_CSV;
    if (path && strcmp(path, "-") != 0)
        return rp_result_save(result, &options, path, err);
    options.color = cli_use_color(common(call, "color"), STDOUT_FILENO);
    options.width = cli_width(STDOUT_FILENO);
    return rp_result_print(result, &options, STDOUT_FILENO, err);
}

static enum rp_code ask(const struct cli_call *call, struct rp_ctx *ctx, struct rp_result **result,
                        struct rp_err *err)
{
    const struct rp_question *question = call->command->question;
    struct rp_open_options options = {.struct_size = sizeof options,
                                      .salvage = common(call, "salvage") != NULL};
    struct rp_dataset *dataset = NULL;
    enum rp_code code = RP_OK;

    if (question->accepts)
        code = rp_open(ctx, call->words, call->nwords, &options, &dataset, err);
    if (code == RP_OK)
        code = rp_ask(ctx, dataset, question->name, call->settings, call->nsettings, result, err);
    rp_dataset_free(dataset);
    return code;
}

/* A command with an output of its own has written its data there: nothing may be mixed into it. */
static bool wrote_to_stdout(const struct cli_call *call)
{
    const char *output = cli_setting(call->settings, call->nsettings, "output");

    return output && !strcmp(output, "-");
}

static bool words_fit(const struct cli_call *call, struct rp_err *err)
{
    const struct rp_question *question = call->command->question;

    if (!question->accepts && call->nwords)
        snprintf(err->text, sizeof err->text, "'%s' takes no file: '%s'", question->name,
                 call->words[0]);
    else if (question->accepts && !call->nwords)
        snprintf(err->text, sizeof err->text, "'%s' needs a file, a folder or '-'", question->name);
    else if (common(call, "json") && common(call, "csv"))
        snprintf(err->text, sizeof err->text, "choose one of '--json' and '--csv'");
    else
        return true;
    return false;
}

int cli_ask(const struct cli_call *call)
{
    const char *threads = common(call, "threads");
    struct cli_progress progress;
    struct rp_ctx_options options = {.struct_size = sizeof options,
                                     .threads = threads ? (unsigned)atol(threads) : 0,
                                     .progress = cli_progress_report,
                                     .progress_user = &progress};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result = NULL;
    struct rp_ctx *ctx = NULL;
    enum rp_code code;
    int status;

    if (!words_fit(call, &err))
        return cli_usage(call->command->name, &err);
    cli_progress_begin(&progress, cli_flag(call->common, call->ncommon, "quiet"));
    code = rp_ctx_new(&options, &ctx, &err);
    if (code == RP_OK)
        code = ask(call, ctx, &result, &err);
    cli_progress_end(&progress);
    if (code == RP_OK && !wrote_to_stdout(call))
        code = print(call, result, &err);
    status = code == RP_OK ? rp_result_answer(result) : cli_fail(code, &err);
    if (result)
        rp_result_free(result);
    rp_ctx_free(ctx);
    return status;
}
