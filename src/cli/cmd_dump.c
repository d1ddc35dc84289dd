/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump run -- COMMAND`: sets the environment of the library's plan, runs the command, and keeps
 * the folder small meanwhile. The command is never stopped, and its exit status is passed on.
 */
#include "cli/record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct dumping {
    struct record record; /* folder and rank */
    struct rp_dump_store *store;
    double next_s;
    bool quiet;
};

/* ---- the plan ---- */

static enum rp_code make_plan(const struct cli_call *call, struct rp_ctx *ctx,
                              struct rp_result **out, struct rp_err *err)
{
    const char *folder = cli_setting(call->common, call->ncommon, "output");
    size_t n = call->nsettings;
    struct rp_setting *settings = calloc(n + call->nwords + 2, sizeof *settings);

    if (!settings) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return err->code = RP_NOMEM;
    }
    memcpy(settings, call->settings, n * sizeof *settings);
    if (folder)
        settings[n++] = (struct rp_setting){"into", folder};
    for (size_t i = 0; i < call->nwords; i++)
        settings[n++] = (struct rp_setting){"source", call->words[i]};
    enum rp_code code = rp_ask(ctx, NULL, "dump", settings, n, out, err);
    free(settings);
    return code;
}

bool cli_make_path(const char *path)
{
    char part[PATH_MAX];

    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return false;
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0755);
        *slash = '/';
    }
    return !mkdir(part, 0755) || errno == EEXIST;
}

/* Files of an earlier run may be links to each other: a program that writes to one of them again
   would change the others. Under a launcher, only this rank's folder must be absent. */
static bool is_free(const struct rp_result *plan, int32_t rank, int32_t restarts)
{
    const char *folder = "";
    char own[32];
    struct dirent *entry;
    bool is = true;

    rp_result_text(plan, "folder", &folder);
    snprintf(own, sizeof own, "rank%d", (int)rank);
    DIR *dir = restarts > 0 ? NULL : opendir(folder);
    while (dir && is && (entry = readdir(dir)))
        is = rank >= 0 ? strcmp(entry->d_name, own) != 0 : entry->d_name[0] == '.';
    if (dir)
        closedir(dir);
    return is;
}

static bool make_folders(struct dumping *d, const struct rp_result *plan, struct rp_err *err)
{
    const char *folder = "";
    struct rp_rows rows;

    rp_result_text(plan, "folder", &folder);
    bool made = cli_make_path(folder) && realpath(folder, d->record.folder);
    if (made && rp_result_rows(plan, "folders", &rows))
        while (made && rp_rows_next(&rows))
            made = rp_row_text(&rows.row, "", &folder) && cli_make_path(folder);
    if (!made)
        snprintf(err->text, sizeof err->text, "cannot create folder '%.500s': %s", folder,
                 strerror(errno));
    return made;
}

static void set_variables(const struct rp_result *plan, bool quiet)
{
    const char *name, *value;
    struct rp_rows rows;
    char names[2048] = "";
    size_t n = 0;

    if (!rp_result_rows(plan, "variables", &rows))
        return;
    while (rp_rows_next(&rows)) {
        if (!rp_row_text(&rows.row, "name", &name) || !rp_row_text(&rows.row, "value", &value))
            continue;
        setenv(name, value, 1);
        if (!quiet)
            fprintf(stderr, "reprise: %s=%s\n", name, value);
        if (n + strlen(name) + 2 < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? "," : "", name);
    }
    setenv("REPRISE_DUMP_VARIABLES", names, 1);
}

/* Processes below a launcher find their rank by a preloaded library. Spaces and colons separate the
   entries of LD_PRELOAD. */
static void preload(struct dumping *d)
{
    const char *old = getenv("LD_PRELOAD");
    char library[PATH_MAX + 64] = "", all[8192];

    if (record_find_libraries(&d->record))
        snprintf(library, sizeof library, "%s/reprise-dump.so", d->record.libraries);
    if (access(library, R_OK) || strpbrk(library, " :")) {
        if (d->record.rank < 0)
            fprintf(stderr,
                    "reprise: warning: %s: processes that a launcher starts write into one folder, "
                    "not a folder a rank\n",
                    access(library, R_OK)
                        ? "'reprise-dump.so' is missing (REPRISE_CAPTURE_DIR names its folder)"
                        : "the folder of 'reprise-dump.so' has a space or a colon in its name, "
                          "which LD_PRELOAD does not allow");
        return;
    }
    setenv("REPRISE_DUMP", d->record.folder, 1);
    if (old && *old && snprintf(all, sizeof all, "%s:%s", library, old) < (int)sizeof all)
        setenv("LD_PRELOAD", all, 1);
    else
        setenv("LD_PRELOAD", library, 1);
}

/* ---- watching ---- */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Looking takes at most a twentieth of the time. */
static void dump_tick(void *user)
{
    struct dumping *d = user;
    double begin = now_s();

    if (!d->store || begin < d->next_s)
        return;
    rp_dump_store_look(d->store, NULL);
    d->next_s = now_s() + 0.2 + 20 * (now_s() - begin);
}

static void print_size(uint64_t bytes)
{
    if (bytes < 10000)
        fprintf(stderr, "%llu bytes", (unsigned long long)bytes);
    else if (bytes < 1000000)
        fprintf(stderr, "%.1f kB", (double)bytes / 1e3);
    else
        fprintf(stderr, "%.1f MB", (double)bytes / 1e6);
}

static void print_summary(const struct dumping *d)
{
    struct rp_dump_stored s = {.struct_size = sizeof s};

    rp_dump_store_state(d->store, &s);
    if (s.removed_files) {
        fprintf(stderr, "reprise: warning: %llu file%s (", (unsigned long long)s.removed_files,
                s.removed_files == 1 ? "" : "s");
        print_size(s.removed_bytes);
        fprintf(stderr, ") removed to stay below --max-bytes; '%s/.removed' names them\n",
                d->record.folder);
    }
    if (d->quiet)
        return;
    if (!s.files) {
        fprintf(stderr, "reprise: nothing was dumped into '%s'\n", d->record.folder);
        return;
    }
    fprintf(stderr, "reprise: %llu file%s, ", (unsigned long long)s.files, s.files == 1 ? "" : "s");
    print_size(s.bytes);
    fprintf(stderr, " in '%s'", d->record.folder);
    if (s.shared_files) {
        fprintf(stderr, "; equal content of %llu file%s is stored once (",
                (unsigned long long)s.shared_files, s.shared_files == 1 ? "" : "s");
        print_size(s.shared_bytes);
        fprintf(stderr, " saved)");
    }
    fprintf(stderr, "; 'reprise dump ls %s' lists the modules\n", d->record.folder);
}

/* Of several `dump run`s below a launcher, the last one to end shares files and prints. */
static bool is_last(const struct dumping *d)
{
    long ended = record_note(&d->record, ".ended");
    char path[PATH_MAX + 16];
    struct stat st;

    snprintf(path, sizeof path, "%s/.begun", d->record.folder);
    return d->record.rank < 0 || stat(path, &st) || ended >= (long)st.st_size;
}

/* Removes what earlier runs left: before the run everything, and after it everything except the
   names of removed files. */
static void forget_notes(const struct dumping *d, bool after)
{
    static const char *const names[] = {".begun", ".ended", ".removed"};
    char path[PATH_MAX + 16];

    for (size_t i = 0; i < sizeof names / sizeof names[0] - after; i++) {
        snprintf(path, sizeof path, "%s/%s", d->record.folder, names[i]);
        unlink(path);
    }
}

/* ---- running ---- */

static uint64_t max_bytes(const struct cli_call *call)
{
    const struct rp_option *option = call->command->options;
    const char *text = cli_setting(call->settings, call->nsettings, "max-bytes");

    while (strcmp(option->name, "max-bytes") != 0)
        option++;
    return (uint64_t)rp_option_number(option, text ? text : option->fallback);
}

static int run_planned(const struct cli_call *call, const struct rp_result *plan)
{
    struct dumping d = {.quiet = cli_flag(call->common, call->ncommon, "quiet")};
    struct rp_err err = RP_ERR_INIT;
    const char *summary = "";

    d.record.rank = rp_recording_rank(&d.record.restarts);
    if (!is_free(plan, d.record.rank, d.record.restarts)) {
        rp_result_text(plan, "folder", &summary);
        snprintf(err.text, sizeof err.text,
                 "'%.500s' %s: choose another folder with '-o', or remove it", summary,
                 d.record.rank < 0 ? "is not empty" : "already holds dumps of this rank");
        return cli_usage("dump", &err);
    }
    if (!make_folders(&d, plan, &err))
        return cli_fail(RP_IO, &err);
    if (d.record.rank < 0)
        forget_notes(&d, false);
    record_note(&d.record, ".begun");
    rp_result_text(plan, "summary", &summary);
    if (!d.quiet)
        fprintf(stderr, "reprise: %s; dumps go to '%s'\n", summary, d.record.folder);

    /* Warnings that the user did not ask for are printed even with --quiet. */
    bool keep = cli_flag(call->settings, call->nsettings, "keep-flags");
    const char *variable, *flag, *because;
    struct rp_rows rows;
    if (rp_result_rows(plan, "dropped", &rows))
        while (rp_rows_next(&rows))
            if (rp_row_text(&rows.row, "variable", &variable) &&
                rp_row_text(&rows.row, "flag", &flag) &&
                rp_row_text(&rows.row, "because", &because))
                fprintf(stderr, "reprise: warning: %s: '%s' %s: %s\n", variable, flag,
                        keep ? "may end the process" : "is left out, it would end the process",
                        because);
    if (rp_result_rows(plan, "warnings", &rows))
        while (rp_rows_next(&rows))
            if (rp_row_text(&rows.row, "", &flag))
                fprintf(stderr, "reprise: warning: %s\n", flag);

    set_variables(plan, d.quiet);
    preload(&d);
    rp_dump_store_new(d.record.folder, max_bytes(call), &d.store, NULL);
    int status = record_run_watched(call->words, call->nwords, false, dump_tick, &d);
    bool last = is_last(&d);
    if (d.store && last) {
        rp_dump_store_look(d.store, NULL);
        rp_dump_store_share(d.store, NULL);
        if (status != 126 && status != 127)
            print_summary(&d);
        forget_notes(&d, true);
    }
    rp_dump_store_free(d.store);
    return status;
}

int cli_dump_run(const struct cli_call *call)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *plan = NULL;
    struct rp_ctx *ctx = NULL;
    enum rp_code code = rp_ctx_new(NULL, &ctx, &err);
    int status;

    if (code == RP_OK)
        code = make_plan(call, ctx, &plan, &err);
    if (code == RP_OK)
        status = run_planned(call, plan);
    else
        status = code == RP_USAGE ? cli_usage("dump", &err) : cli_fail(code, &err);
    rp_result_free(plan);
    rp_ctx_free(ctx);
    return status;
}
