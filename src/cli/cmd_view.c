/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `view` shows the timeline of a run in a browser. The library serves the page; the browser is
 * opened here.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_RUNS 2

static const char *view_setting(const struct cli_call *call, const char *name)
{
    return cli_setting(call->settings, call->nsettings, name);
}

static bool view_flag(const struct cli_call *call, const char *name)
{
    return cli_flag(call->settings, call->nsettings, name);
}

/* Whether there is a screen on which a browser can appear. */
static bool has_screen(void)
{
    static const char *const names[] = {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]) && *getenv(names[i]))
            return true;
    return false;
}

/* Forks twice, so that nobody has to wait for the browser. */
static bool open_browser(const char *address)
{
    const char *browser = getenv("BROWSER");
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        int null = open("/dev/null", O_RDWR);

        if (null >= 0) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        if (fork() == 0) {
            setsid();
            execlp(browser && *browser ? browser : "xdg-open",
                   browser && *browser ? browser : "xdg-open", address, (char *)NULL);
            _exit(127);
        }
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

struct served {
    bool open, quiet;
};

/* Prints the address as the result; standard error tells what to do with it. */
static void view_ready(void *user, const char *address)
{
    const struct served *served = user;
    bool opened = served->open && has_screen() && open_browser(address);

    printf("%s\n", address);
    fflush(stdout);
    if (served->quiet)
        return;
    fprintf(stderr, "reprise: %s; it ends when the page is closed, or with Ctrl-C\n",
            opened ? "the page is opened in a browser" : "open this address in a browser");
    if (!opened && getenv("SSH_CONNECTION"))
        fprintf(stderr, "reprise: from another machine: 'ssh -L PORT:127.0.0.1:PORT HOST' with the "
                        "port of the address\n");
}

static enum rp_code view_serve(const struct cli_call *call, struct rp_view *view,
                               struct rp_err *err)
{
    const char *port = view_setting(call, "port");
    struct served served = {.open = !view_flag(call, "no-open"), .quiet = view_flag(call, "quiet")};
    struct rp_view_server server = {.struct_size = sizeof server,
                                    .port = port ? (unsigned)strtoul(port, NULL, 10) : 0,
                                    .stop_fd =
                                        -1, /* Ctrl-C ends the program, because nothing is open */
                                    .keep = view_flag(call, "keep"),
                                    .ready = view_ready,
                                    .user = &served};

    return rp_view_serve(view, &server, err);
}

static enum rp_code view_open(const struct cli_call *call, struct rp_ctx *ctx, struct rp_err *err)
{
    struct rp_open_options reading = {.struct_size = sizeof reading,
                                      .salvage = view_flag(call, "salvage")};
    struct rp_view_options options = {.struct_size = sizeof options,
                                      .ranks = view_setting(call, "rank")};
    struct rp_dataset *runs[MOST_RUNS] = {NULL, NULL};
    const struct rp_dataset *given[MOST_RUNS];
    struct rp_view *view = NULL;
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < call->nwords; i++) {
        code = rp_open(ctx, &call->words[i], 1, &reading, &runs[i], err);
        given[i] = runs[i];
    }
    if (code == RP_OK)
        code = rp_view_open(given, call->nwords, &options, &view, err);
    if (code == RP_OK) {
        const char *save = view_setting(call, "save");

        code = save ? rp_view_save(view, save, view_setting(call, "steps"), err)
                    : view_serve(call, view, err);
    }
    rp_view_free(view);
    for (size_t i = 0; i < MOST_RUNS; i++)
        rp_dataset_free(runs[i]);
    return code;
}

static bool view_words_fit(const struct cli_call *call, struct rp_err *err)
{
    if (!call->nwords)
        snprintf(err->text, sizeof err->text, "'view' needs a file or a folder");
    else if (call->nwords > MOST_RUNS)
        snprintf(err->text, sizeof err->text,
                 "'view' shows one run or two: give the folder of the files of a run");
    else if (view_setting(call, "steps") && !view_setting(call, "save"))
        snprintf(err->text, sizeof err->text, "'--steps' chooses what '--save' writes");
    else if (view_setting(call, "save") && (view_setting(call, "port") || view_flag(call, "keep")))
        snprintf(err->text, sizeof err->text,
                 "'--save' writes a file and starts no server: leave out '%s'",
                 view_setting(call, "port") ? "--port" : "--keep");
    else
        return true;
    return false;
}

static int view_run(const struct cli_call *call)
{
    const char *threads = view_setting(call, "threads");
    struct rp_ctx_options options = {.struct_size = sizeof options,
                                     .threads = threads ? (unsigned)strtoul(threads, NULL, 10) : 0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_ctx *ctx = NULL;

    if (!view_words_fit(call, &err))
        return cli_usage("view", &err);
    enum rp_code code = rp_ctx_new(&options, &ctx, &err);
    if (code == RP_OK)
        code = view_open(call, ctx, &err);
    rp_ctx_free(ctx);
    if (code == RP_OK)
        return 0;
    return code == RP_USAGE ? cli_usage("view", &err) : cli_fail(code, &err);
}

static const struct rp_option view_options[] = {
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks: '0,3' or '8-15'", 0},
    {"port", 0, RP_OPT_INT, "0..65535", "0", "listen on this port of 127.0.0.1; 0: any", 0},
    {"no-open", 0, RP_OPT_FLAG, NULL, NULL, "print the address and open no browser", 0},
    {"keep", 0, RP_OPT_FLAG, NULL, NULL, "keep running when the last page is closed, until Ctrl-C",
     0},
    {"save", 0, RP_OPT_PATH, "FILE", NULL, "write the page with its data and serve nothing", 0},
    {"steps", 0, RP_OPT_TEXT, "N[:COUNT]", NULL, "with --save: only step N, or COUNT steps from it",
     0},
    {"salvage", 0, RP_OPT_FLAG, NULL, NULL, "load what precedes the damage in a damaged file", 0},
    {"quiet", 'q', RP_OPT_FLAG, NULL, NULL, "print the address only", 0},
    {"threads", 0, RP_OPT_INT, "0..1024", "0", "number of threads; 0: one per core", 0},
    RP_OPTION_END};

const struct cli_command cli_cmd_view = {
    .name = "view",
    .group = "traces",
    .summary = "the timeline of a run in a browser: every kernel, however long the run is",
    .details =
        "Serves a page on 127.0.0.1, which shows all ranks on one clock: streams, threads, "
        "counters, and the launch of every kernel. Two runs are shown one below the other, aligned at their first steps. The address holds a random token; programs of other users, other "
        "sites and other machines get no answer. It ends when the page is closed.",
    .words = "RUN...",
    .examples = "reprise view run/\topen the timeline\n"
                "reprise view run/ --save page.html --steps 3:2\ttwo steps as a file to send\n"
                "reprise view before/ after/\ttwo runs, one below the other\n",
    .options = view_options,
    .common = cli_help_option,
    .run = view_run};
