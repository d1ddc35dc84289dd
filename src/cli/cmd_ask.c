/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the commands that are questions: opens the inputs, asks, prints the result. */
#include "cli/cli.h"

#include <reprise/metrics_calls.h>
#include <signal.h>
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

static bool has_option(const struct cli_call *call, const char *name)
{
    const struct rp_option *option;

    for (size_t i = 0; (option = rp_question_option(call->command->question, i)) != NULL; i++)
        if (!strcmp(option->name, name))
            return true;
    return false;
}

/* Returns the output FILE.arrow of a question that can write Arrow files; otherwise NULL. */
static const char *arrow_output(const struct cli_call *call)
{
    const char *path = common_setting(call, "output");
    size_t n = path ? strlen(path) : 0;

    return n > 6 && !strcmp(path + n - 6, ".arrow") && has_option(call, "arrow") &&
                   !common_flag(call, "json") && !common_flag(call, "csv")
               ? path
               : NULL;
}

/* Prints warnings about the inputs if the output has no place for them. */
static void ask_warn(const struct rp_result *result)
{
    for (size_t i = 0; rp_result_warning(result, i); i++)
        fprintf(stderr, "reprise: warning: %s\n", rp_result_warning(result, i));
}

static enum rp_code ask_print(const struct cli_call *call, const struct rp_result *result,
                              struct rp_err *err)
{
    const char *path = arrow_output(call) ? NULL : common_setting(call, "output");
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

/* Copies the settings, followed by words that are settings, too, with room for one more. The caller
   frees them. */
static struct rp_setting *with_words(const struct cli_call *call, const char *name, size_t first,
                                     struct rp_err *err)
{
    size_t n = call->nsettings;
    struct rp_setting *settings = calloc(n + call->nwords + 2, sizeof *settings);

    if (!settings) {
        snprintf(err->text, sizeof err->text, "out of memory");
        err->code = RP_NOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        settings[i] = call->settings[i];
    for (size_t i = first; i < call->nwords; i++)
        settings[n++] = (struct rp_setting){name, call->words[i]};
    return settings;
}

/* The words are settings of the question. */
static enum rp_code ask_sources(const struct cli_call *call, struct rp_ctx *ctx,
                                struct rp_result **result, struct rp_err *err)
{
    const char *name = has_option(call, "command") ? "command" : "source";
    struct rp_setting *settings = with_words(call, name, 0, err);
    enum rp_code code = settings ? rp_ask(ctx, NULL, call->command->question->name, settings,
                                          call->nsettings + call->nwords, result, err)
                                 : RP_NOMEM;

    free(settings);
    return code;
}

/* For a question with the option "sql", the last word is its value, unless it is given
   otherwise. */
static bool last_is_sql(const struct cli_call *call)
{
    return has_option(call, "sql") && call->nwords &&
           !cli_setting(call->settings, call->nsettings, "sql") &&
           !cli_setting(call->settings, call->nsettings, "file");
}

/* Moves a query that is written before the files behind them. */
static void put_sql_last(const struct cli_call *call)
{
    const char *first = call->nwords ? call->words[0] : "";

    if (!last_is_sql(call) || call->nwords < 2 || !access(first, F_OK) || !strpbrk(first, " .") ||
        access(call->words[call->nwords - 1], F_OK))
        return;
    memmove(call->words, call->words + 1, (call->nwords - 1) * sizeof *call->words);
    call->words[call->nwords - 1] = first;
}

static enum rp_code ask_question(const struct cli_call *call, struct rp_ctx *ctx,
                                 struct rp_result **result, struct rp_err *err)
{
    const struct rp_question *question = call->command->question;
    struct rp_open_options options = {.struct_size = sizeof options,
                                      .salvage = common_flag(call, "salvage")};
    size_t nwords = call->nwords - last_is_sql(call), n = call->nsettings + call->nwords - nwords;
    const char *arrow = arrow_output(call);
    struct rp_dataset *dataset = NULL;
    enum rp_code code = RP_OK;

    if (question->accepts & RP_ACCEPTS_SOURCES)
        return ask_sources(call, ctx, result, err);
    put_sql_last(call);
    struct rp_setting *settings = with_words(call, "sql", nwords, err);
    if (!settings)
        return RP_NOMEM;
    if (arrow)
        settings[n++] = (struct rp_setting){"arrow", arrow};
    if (question->accepts && (nwords || !(question->accepts & RP_ACCEPTS_NONE_TOO)))
        code = rp_open(ctx, call->words, nwords, &options, &dataset, err);
    if (code == RP_OK)
        code = rp_ask(ctx, dataset, question->name, settings, n, result, err);
    rp_dataset_free(dataset);
    free(settings);
    return code;
}

/* Whether a command with an output of its own has written its data to standard output. */
static bool wrote_to_stdout(const struct cli_call *call)
{
    static const char *const options[] = {"output", "prometheus", "openmetrics",
                                          "html",   "svg",        "arrow"};
    bool wrote = false;

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *output = cli_setting(call->settings, call->nsettings, options[i]);

        wrote |= output && !strcmp(output, "-");
    }
    return wrote;
}

static const struct rp_option *option_of(const struct cli_call *call, const char *name)
{
    const struct rp_option *option = call->command->options;

    while (strcmp(option->name, name) != 0)
        option++;
    return option;
}

/* Returns the value given for an option of the command, or its default. */
static const char *option_text(const struct cli_call *call, const char *name)
{
    const char *given = cli_setting(call->settings, call->nsettings, name);

    return given ? given : option_of(call, name)->fallback;
}

static int64_t option_number(const struct cli_call *call, const char *name)
{
    return rp_option_number(option_of(call, name), option_text(call, name));
}

/* With --watch, waits until it is time for the next answer, which replaces this one on a
   terminal. */
static bool ask_again(const struct cli_call *call)
{
    struct timespec pause = {0};

    if (!cli_flag(call->settings, call->nsettings, "watch"))
        return false;
    int64_t ns = option_number(call, "interval");
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

/* Prints the kinds that make an answer incomplete: "not_read, truncated". Those of a kind are
   together. */
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

/* With --strict an incomplete answer is 'no', and standard error tells why. */
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

/* A launcher ends the other processes when it finds one of the job dead. */
static void say_ended(int signal_number)
{
    static const char text[] =
        "reprise: there is no answer: the launcher has ended this process, as "
        "it does when another one of the job dies\n";

    (void)signal_number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(4);
}

/* Whether mpirun or srun has started it, with others. */
static bool is_launched(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") || getenv("PMIX_RANK");
}

static int ask_once(const struct cli_call *call)
{
    struct cli_progress progress;
    struct rp_ctx_options options = {
        .struct_size = sizeof options, .progress = cli_progress_report, .progress_user = &progress};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result = NULL;
    struct rp_ctx *ctx = NULL;
    int status;

    if (!words_fit(call, &err))
        return cli_usage(call->command->name, &err);

    /* The value was checked against the option's range when the command line was parsed. */
    const char *text = common_setting(call, "threads");
    options.threads = text ? (unsigned)strtoul(text, NULL, 10) : 0;
    options.distributed = (call->command->question->accepts & RP_ACCEPTS_TRACES) != 0;
    cli_progress_begin(&progress, common_flag(call, "quiet"));
    if (call->command->question->anytime)
        cli_progress_hold_interrupts(&progress);
    enum rp_code code = rp_ctx_new(&options, &ctx, &err);
    if (ctx && is_launched() && !rp_ctx_helps(ctx))
        signal(SIGTERM, say_ended);
    if (code == RP_OK)
        code = ask_question(call, ctx, &result, &err);
    cli_progress_end(&progress);
    if (rp_ctx_helps(ctx)) { /* process 0 answers, and reports errors */
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

/* Whether it is an action that runs a program of the user's, and so not a question. */
static bool is_action(const struct cli_call *call, const char *command, const char *name)
{
    const char *action = cli_setting(call->settings, call->nsettings, "action");

    return !strcmp(call->command->name, command) && action && !strcmp(action, name);
}

static void serve_ready(void *user, const char *address)
{
    (void)user;
    printf("%s\n", address);
    fflush(stdout);
}

struct watching {
    const struct cli_call *call;
    int status, looks;
};

/* Prints one screen for each look, which follow each other if there is no terminal. */
static int watch_show(void *user, const struct rp_result *seen, const char *alert)
{
    struct watching *w = user;
    const char *command = cli_setting(w->call->settings, w->call->nsettings, "on-alert");
    struct rp_err err = RP_ERR_INIT;

    if (w->looks++ && isatty(STDOUT_FILENO) && !common_flag(w->call, "json"))
        (void)!write(STDOUT_FILENO, "\033[H\033[2J", 7);
    else if (w->looks > 1)
        (void)!write(STDOUT_FILENO, "\n", 1);
    enum rp_code code = ask_print(w->call, seen, &err);
    if (code != RP_OK)
        w->status = cli_fail(code, &err);
    if (code == RP_OK && alert && command) {
        setenv("REPRISE_ALERT", alert, 1);
        if (system(command) == -1) /* NOLINT(cert-env33-c): it is the user's */
            fprintf(stderr, "reprise: cannot run '%s'\n", command);
    }
    if (code == RP_OK && alert && cli_flag(w->call->settings, w->call->nsettings, "until-alert"))
        w->status = RP_ANSWER_NO;
    return w->status;
}

/* Handles `metrics --watch` for a job; false if its programs count no steps. */
static bool watch_metrics(const struct cli_call *call, int *status)
{
    const char *source = cli_setting(call->settings, call->nsettings, "source");
    bool alerts = cli_setting(call->settings, call->nsettings, "on-alert") ||
                  cli_flag(call->settings, call->nsettings, "until-alert");
    struct watching watching = {.call = call};
    struct timespec pause;
    struct rp_metrics_watcher watcher = {
        .struct_size = sizeof watcher, .show = watch_show, .user = &watching};
    struct rp_err err = RP_ERR_INIT;

    if (call->nwords + (source != NULL) > 1)
        return false;
    watcher.source = call->nwords ? call->words[0] : source;
    watcher.interval_ns = option_number(call, "interval");
    watcher.least_share = rp_option_ratio(option_text(call, "alert-over"));
    pause.tv_sec = watcher.interval_ns / 1000000000;
    pause.tv_nsec = watcher.interval_ns % 1000000000;
    enum rp_code code = rp_metrics_call_watch(&watcher, &err);
    if (code == RP_UNSUPPORTED && !alerts)
        return false;
    if (code == RP_UNSUPPORTED) /* the job has not begun its steps */
        fputs("reprise: these programs count no steps yet: waiting for the first\n", stderr);
    while (code == RP_UNSUPPORTED) {
        nanosleep(&pause, NULL);
        code = rp_metrics_call_watch(&watcher, &err);
    }
    *status = code == RP_OK ? watching.status : cli_fail(code, &err);
    return true;
}

int cli_ask(const struct cli_call *call)
{
    int status;

    if (!strcmp(call->command->name, "metrics") &&
        cli_flag(call->settings, call->nsettings, "serve")) {
        /* `metrics --serve`: Ctrl-C ends the program, which has nothing to finish. */
        const char *source = cli_setting(call->settings, call->nsettings, "source");
        struct rp_metrics_server server = {
            .struct_size = sizeof server, .stop_fd = -1, .ready = serve_ready};
        struct rp_err err = RP_ERR_INIT;

        if (call->nwords + (source != NULL) > 1) {
            snprintf(err.text, sizeof err.text, "'--serve' takes one source");
            return cli_usage(call->command->name, &err);
        }
        server.source = call->nwords ? call->words[0] : source;
        server.port = (unsigned)option_number(call, "port");
        server.keep_ns = (int64_t)option_number(call, "keep");
        server.clean = cli_flag(call->settings, call->nsettings, "clean");
        enum rp_code code = rp_metrics_call_serve(&server, &err);
        return code == RP_OK ? 0 : cli_fail(code, &err);
    }

    if (!strcmp(call->command->name, "metrics") &&
        cli_flag(call->settings, call->nsettings, "watch") && watch_metrics(call, &status))
        return status;
    if (is_action(call, "replay", "capture"))
        return cli_capture(call);
    if (is_action(call, "dump", "run") && !cli_flag(call->settings, call->nsettings, "dry-run"))
        return cli_dump_run(call);
    do
        status = ask_once(call);
    while (status == 0 && ask_again(call));
    return status;
}
