/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that are questions: open the inputs, ask, print the result. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *common_setting(const struct cli_call *call, const char *name)
{
    return cli_setting(call->common, call->ncommon, name);
}

static bool common_flag(const struct cli_call *call, const char *name)
{
    return cli_flag(call->common, call->ncommon, name);
}

/* What to know about the inputs, where the output has no place for it. */
static void ask_warn(const struct rp_result *result)
{
    for (size_t i = 0; rp_result_warning(result, i); i++)
        fprintf(stderr, "reprise: warning: %s\n", rp_result_warning(result, i));
}

static enum rp_code ask_print(const struct cli_call *call, const struct rp_result *result,
                              struct rp_err *err)
{
    const char *path = common_setting(call, "output");
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_TABLE};

    options.wide = common_flag(call, "wide");
    options.all = common_flag(call, "all");
    if (common_flag(call, "json"))
        options.format = RP_PRINT_JSON;
    else if (common_flag(call, "csv"))
        options.format = RP_PRINT_CSV;
    if (options.format == RP_PRINT_CSV)
        ask_warn(result);
    if (path && strcmp(path, "-") != 0)
        return rp_result_save(result, &options, path, err);
    options.color = cli_use_color(common_setting(call, "color"), STDOUT_FILENO);
    options.width = cli_width(STDOUT_FILENO);
    options.bars = cli_bars(STDOUT_FILENO);
    options.ascii = cli_ascii();
    return rp_result_print(result, &options, STDOUT_FILENO, err);
}

/* The words are settings of the question. */
static enum rp_code ask_sources(const struct cli_call *call, struct rp_ctx *ctx,
                                struct rp_result **result, struct rp_err *err)
{
    size_t i, n = call->nsettings;
    struct rp_setting *settings = calloc(n + call->nwords + 1, sizeof *settings);
    enum rp_code code;

    if (!settings) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return err->code = RP_NOMEM;
    }
    for (i = 0; i < n; i++)
        settings[i] = call->settings[i];
    for (i = 0; i < call->nwords; i++)
        settings[n + i] = (struct rp_setting){"source", call->words[i]};
    code =
        rp_ask(ctx, NULL, call->command->question->name, settings, n + call->nwords, result, err);
    free(settings);
    return code;
}

static enum rp_code ask_question(const struct cli_call *call, struct rp_ctx *ctx,
                                 struct rp_result **result, struct rp_err *err)
{
    const struct rp_question *question = call->command->question;
    struct rp_open_options options = {.struct_size = sizeof options,
                                      .salvage = common_flag(call, "salvage")};
    struct rp_dataset *dataset = NULL;
    enum rp_code code = RP_OK;

    if (question->accepts & RP_ACCEPTS_SOURCES)
        return ask_sources(call, ctx, result, err);
    if (question->accepts && (call->nwords || !(question->accepts & RP_ACCEPTS_NONE_TOO)))
        code = rp_open(ctx, call->words, call->nwords, &options, &dataset, err);
    if (code == RP_OK)
        code = rp_ask(ctx, dataset, question->name, call->settings, call->nsettings, result, err);
    rp_dataset_free(dataset);
    return code;
}

/* Whether a command with an output of its own has written its data to standard output. */
static bool wrote_to_stdout(const struct cli_call *call)
{
    static const char *const options[] = {"output", "openmetrics", "html", "svg"};
    bool wrote = false;
    size_t i;

    for (i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *output = cli_setting(call->settings, call->nsettings, options[i]);

        wrote |= output && !strcmp(output, "-");
    }
    return wrote;
}

/* With --watch: waits for the time until the next answer, which replaces this one on a terminal. */
static bool ask_again(const struct cli_call *call)
{
    const struct rp_option *option = call->command->options;
    const char *interval = cli_setting(call->settings, call->nsettings, "interval");
    struct timespec pause = {0};
    int64_t ns;

    if (!cli_flag(call->settings, call->nsettings, "watch"))
        return false;
    while (strcmp(option->name, "interval") != 0)
        option++;
    ns = rp_option_number(option, interval ? interval : option->fallback);
    pause.tv_sec = (time_t)(ns / 1000000000);
    pause.tv_nsec = (long)(ns % 1000000000);
    fflush(stdout);
    nanosleep(&pause, NULL);
    if (isatty(STDOUT_FILENO) && !common_flag(call, "json"))
        (void)!write(STDOUT_FILENO, "\033[H\033[2J", 7);
    else
        (void)!write(STDOUT_FILENO, "\n", 1);
    return true;
}

static bool words_fit(const struct cli_call *call, struct rp_err *err)
{
    const struct rp_question *question = call->command->question;

    if (!question->accepts && call->nwords)
        snprintf(err->text, sizeof err->text, "'%s' takes no file: '%s'", question->name,
                 call->words[0]);
    else if (question->accepts & (RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS) &&
             !(question->accepts & RP_ACCEPTS_NONE_TOO) && !call->nwords)
        snprintf(err->text, sizeof err->text, "'%s' needs a file, a folder or '-'", question->name);
    else if (common_flag(call, "json") && common_flag(call, "csv"))
        snprintf(err->text, sizeof err->text, "choose one of '--json' and '--csv'");
    else
        return true;
    return false;
}

/* The value was checked against the option's range when the command line was parsed. */
static unsigned thread_count(const struct cli_call *call)
{
    const char *text = common_setting(call, "threads");

    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

/* "not_read, truncated": the kinds that make an answer incomplete. Those of a kind are together. */
static void print_kinds(const struct rp_result *result)
{
    const char *kind, *last = NULL;
    struct rp_rows rows;
    bool incomplete;

    if (!rp_result_rows(result, "trust.remarks", &rows))
        return;
    while (rp_rows_next(&rows)) {
        if (!rp_row_bool(&rows.row, "incomplete", &incomplete) || !incomplete ||
            !rp_row_text(&rows.row, "kind", &kind) || (last && !strcmp(kind, last)))
            continue;
        fprintf(stderr, "%s%s", last ? ", " : "", kind);
        last = kind;
    }
}

/* With --strict an incomplete answer is 'no', and standard error says why. */
static int ask_status(const struct cli_call *call, const struct rp_result *result)
{
    int status = rp_result_answer(result);

    if (!common_flag(call, "strict") || rp_result_complete(result))
        return status;
    fprintf(stderr, "reprise: --strict: the answer is incomplete (");
    print_kinds(result);
    fprintf(stderr, "): %s\n", rp_result_warning(result, 0));
    return status ? status : RP_ANSWER_NO;
}

static int ask_once(const struct cli_call *call)
{
    struct cli_progress progress;
    struct rp_ctx_options options = {
        .struct_size = sizeof options, .progress = cli_progress_report, .progress_user = &progress};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result = NULL;
    struct rp_ctx *ctx = NULL;
    enum rp_code code;
    int status;

    if (!words_fit(call, &err))
        return cli_usage(call->command->name, &err);
    options.threads = thread_count(call);
    options.distributed = (call->command->question->accepts & RP_ACCEPTS_TRACES) != 0;
    cli_progress_begin(&progress, common_flag(call, "quiet"));
    if (call->command->question->anytime)
        cli_progress_hold_interrupts(&progress);
    code = rp_ctx_new(&options, &ctx, &err);
    if (code == RP_OK)
        code = ask_question(call, ctx, &result, &err);
    cli_progress_end(&progress);
    if (rp_ctx_helps(ctx)) { /* process 0 answers, and says what went wrong */
        if (result)
            rp_result_free(result);
        rp_ctx_free(ctx);
        return 0;
    }
    if (code == RP_OK && wrote_to_stdout(call))
        ask_warn(result);
    else if (code == RP_OK)
        code = ask_print(call, result, &err);
    if (code == RP_OK)
        status = ask_status(call, result);
    else
        status = code == RP_USAGE ? cli_usage(call->command->name, &err) : cli_fail(code, &err);
    if (result)
        rp_result_free(result);
    rp_ctx_free(ctx);
    return status;
}

/* The actions that run a program of the user's, and so are no questions. */
static bool is_action(const struct cli_call *call, const char *command, const char *name)
{
    const char *action = cli_setting(call->settings, call->nsettings, "action");

    return !strcmp(call->command->name, command) && action && !strcmp(action, name);
}

int cli_ask(const struct cli_call *call)
{
    int status;

    if (is_action(call, "replay", "capture"))
        return cli_capture(call);
    if (is_action(call, "dump", "run") && !cli_flag(call->settings, call->nsettings, "dry-run"))
        return cli_dump_run(call);
    do
        status = ask_once(call);
    while (status == 0 && ask_again(call));
    return status;
}
