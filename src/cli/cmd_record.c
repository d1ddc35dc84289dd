/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `record` runs a program with environment variables that load the injected libraries. Child
 * processes inherit them, so launchers need no support. The libraries read the rank in each
 * process.
 */
#include "cli/record_live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MIN  (64 << 10)
#define KEEP_LAST  20
#define KEEP_LIMIT (64 << 20) /* of the ring, in bytes */

const struct rp_option record_options[] = {
    {"output", 'o', RP_OPT_PATH, "DIR", "recording", "folder of the recording; created if needed",
     0},
    {"with", 'w', RP_OPT_TEXT, "LIST", NULL,
     "comma-separated sources: host, cuda, nvtx, nccl, opencl ... (default: all that are installed); +sample,+blocking adds to these",
     0},
    {"start-after", 0, RP_OPT_DURATION, "TIME", NULL, "start recording after this time: 10s", 0},
    {"duration", 0, RP_OPT_DURATION, "TIME", NULL, "record for this long, then stop", 0},
    {"steps", 0, RP_OPT_TEXT, "FIRST:COUNT", NULL,
     "record only these steps, counted from 0 by ranges and marks named step...", 0},
    {"step-name", 0, RP_OPT_TEXT, "TEXT", NULL, "prefix of the names of steps", 0},
    {"light", 0, RP_OPT_FLAG, NULL, NULL, "steps, kernels and collectives only: no operators", 0},
    {"detail", 0, RP_OPT_TEXT, "N:M", NULL,
     "operators, calls and device work in N of every M steps, as in 2:200; of the others only the steps",
     0},
    {"group", 0, RP_OPT_TEXT, "NAME", NULL,
     "let this group read and continue the recording (default: only its owner can)", 0},
    {"every-step", 0, RP_OPT_FLAG, NULL, NULL,
     "record every step in detail, with none left out to measure the cost of recording", 0},
    {"limit", 0, RP_OPT_BYTES, "SIZE", NULL, "maximum size written by one process: 2GiB", 0},
    {"when-full", 0, RP_OPT_CHOICE, "stop|ring", "stop",
     "at the limit: stop (the rest is counted as lost), or drop the oldest events", 0},
    {"keep", 0, RP_OPT_TEXT, "step>1.5x", NULL,
     "record into a ring of the last steps, and keep it where a step takes so many times as long as "
     "usual, or 'record trigger' asks",
     0},
    {"last", 0, RP_OPT_INT, "2..256", "20", "with --keep: so many steps are in the ring, at least",
     0},
    {"pid", 'p', RP_OPT_TEXT, "PID,...", NULL,
     "record processes that run already; '--with kineto': by PyTorch's own profiler", 0},
    {"all", 0, RP_OPT_TEXT, "NAME", NULL,
     "record all processes of this user whose command has this name", 0},
    {"counters", 0, RP_OPT_TEXT, "LIST", NULL,
     "comma-separated hardware counters to measure for each CUDA kernel: dram__bytes.sum", 0},
    {"set", 0, RP_OPT_TEXT, "KEY=VALUE", NULL, "set an option of a source", RP_OPT_REPEAT},
    {"wait-attach", 0, RP_OPT_FLAG, NULL, NULL,
     "print the process id and wait for a debugger or profiler before the program begins", 0},
    {"quiet", 'q', RP_OPT_FLAG, NULL, NULL, "print no summary at the end", 0},
    RP_OPTION_END};

static const char *setting(const struct cli_call *call, const char *name)
{
    return cli_setting(call->settings, call->nsettings, name);
}

static int64_t number(const struct cli_call *call, const char *name)
{
    const struct rp_option *option = record_options;

    while (option->name && strcmp(option->name, name) != 0)
        option++;
    return rp_option_number(option, setting(call, name));
}

/* -------------------------------------------------------------------------- options */

static bool add_option(struct record *r, struct rp_err *err, const char *key, const char *value)
{
    size_t n = strlen(r->options);
    int more = snprintf(r->options + n, sizeof r->options - n, "%s%s=%s", n ? ";" : "", key, value);

    if (more > 0 && (size_t)more < sizeof r->options - n && !strchr(value, ';'))
        return true;
    snprintf(err->text, sizeof err->text, "invalid value '%.200s' of option '%s'", value, key);
    return false;
}

static bool add_number(struct record *r, struct rp_err *err, const char *key, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)value);
    return !value || add_option(r, err, key, text);
}

/* Parses "10:5", or "5", which is "0:5". */
static bool add_steps(struct record *r, const char *text, struct rp_err *err)
{
    long long first = 0, count = 0;
    char more;

    if (!text)
        return true;
    if (sscanf(text, "%lld:%lld%c", &first, &count, &more) != 2) {
        first = 0;
        if (sscanf(text, "%lld%c", &count, &more) != 1)
            count = 0;
    }
    if (first < 0 || count <= 0) {
        snprintf(err->text, sizeof err->text,
                 "option '--steps' takes FIRST:COUNT, as in 10:5, not '%.200s'", text);
        return false;
    }
    return add_number(r, err, "first_step", first) && add_number(r, err, "steps", count);
}

/* Handles "step>1.5x" with "20": a ring of that many steps, and the condition that keeps it. */
static bool add_keep(struct record *r, const struct cli_call *call, struct rp_err *err)
{
    const char *keep = setting(call, "keep"), *full = setting(call, "when-full");
    int64_t last = setting(call, "last") ? number(call, "last") : KEEP_LAST;
    char ratio[16], end = '\0';

    if (!keep && setting(call, "last"))
        snprintf(err->text, sizeof err->text,
                 "'--last' is the length of the ring of '--keep', which is missing");
    if (!keep)
        return !setting(call, "last");
    if (sscanf(keep, "step>%15[0-9.]%c", ratio, &end) != 2 || end != 'x' ||
        strtod(ratio, NULL) <= 1) {
        snprintf(
            err->text, sizeof err->text,
            "option '--keep' takes a step's length beside the usual one, as in 'step>1.5x', not "
            "'%.200s'",
            keep);
        return false;
    }
    if (full && strcmp(full, "ring") != 0) {
        snprintf(err->text, sizeof err->text,
                 "'--keep' records into a ring: leave out '--when-full'");
        return false;
    }
    return add_option(r, err, "keep", ratio) && add_number(r, err, "last", last) &&
           (full || add_option(r, err, "full", "ring")) &&
           (setting(call, "limit") || add_number(r, err, "limit", KEEP_LIMIT)) &&
           (cli_flag(call->settings, call->nsettings, "light") ||
            add_option(r, err, "signals", "on"));
}

/* "2:200" */
static bool add_detail(struct record *r, const char *text, struct rp_err *err)
{
    unsigned with = 0, of = 0;
    char more;

    if (!text)
        return true;
    if (sscanf(text, "%u:%u%c", &with, &of, &more) == 2 && with && with < UINT_MAX - 1 &&
        of > with + 1)
        return add_option(r, err, "detail", text);
    snprintf(err->text, sizeof err->text,
             "option '--detail' takes N:M, N of M steps, with M at least N + 2, as in 2:200, not "
             "'%.200s'",
             text);
    return false;
}

/* Turns "--with +sample=1000" into "--set sample.hz=1000". */
static bool add_rate(struct record *r, const char *with, struct rp_err *err)
{
    const char *at = with ? strstr(with, "sample=") : NULL;
    char rate[16];

    if (!at)
        return true;
    at += strlen("sample=");
    snprintf(rate, sizeof rate, "%.*s", (int)strcspn(at, ","), at);
    return record_key_check("sample.hz", rate, err) && add_option(r, err, "sample.hz", rate);
}

static bool add_settings(struct record *r, const struct cli_call *call, struct rp_err *err)
{
    for (size_t i = 0; i < call->nsettings; i++) {
        const char *text = call->settings[i].value, *equal = text ? strchr(text, '=') : NULL;
        char key[64];

        if (strcmp(call->settings[i].name, "set") != 0)
            continue;
        if (!equal || equal == text || (size_t)(equal - text) >= sizeof key) {
            snprintf(err->text, sizeof err->text, "option '--set' takes KEY=VALUE, not '%.200s'",
                     text ? text : "");
            return false;
        }
        snprintf(key, sizeof key, "%.*s", (int)(equal - text), text);
        if (!record_key_check(key, equal + 1, err) || !add_option(r, err, key, equal + 1))
            return false;
    }
    return true;
}

/* Whether the sources of all keys of `--set`, and that of the counters, are in use. */
static bool keys_are_used(const struct record *r, const struct cli_call *call, struct rp_err *err)
{
    for (size_t i = 0; i < call->nsettings; i++) {
        const char *name = call->settings[i].name;
        bool counters = !strcmp(name, "counters");
        const char *key = counters ? "cuda.counters" : call->settings[i].value;

        if ((!counters && strcmp(name, "set") != 0) || record_key_has_source(r, key))
            continue;
        snprintf(err->text, sizeof err->text,
                 "'--%s%s%.*s' needs the source '%.*s', which is not in use: add it to '--with'",
                 name, counters ? "" : " ", counters ? 0 : (int)strcspn(key, "="), key,
                 (int)strcspn(key, "."), key);
        return false;
    }
    return true;
}

static bool in_range(const struct cli_call *call, struct rp_err *err)
{
    static const struct {
        const char *name;
        int64_t min;
        const char *words;
    } ranges[] = {{"start-after", 0, "must not be negative"},
                  {"duration", 1, "must be greater than 0"},
                  {"limit", LIMIT_MIN, "must be at least 64KiB"}};

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const char *text = setting(call, ranges[i].name);

        if (!text || number(call, ranges[i].name) >= ranges[i].min)
            continue;
        snprintf(err->text, sizeof err->text, "option '--%s' %s, not '%.200s'", ranges[i].name,
                 ranges[i].words, text);
        return false;
    }
    return true;
}

/* observed: another process, whose observer ends after the time. */
static bool gather_options(struct record *r, const struct cli_call *call, bool observed,
                           struct rp_err *err)
{
    const char *step_name = setting(call, "step-name"), *full = setting(call, "when-full");
    const char *counters = setting(call, "counters");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return in_range(call, err) &&
           add_number(r, err, "t0", (int64_t)now.tv_sec * 1000000000 + now.tv_nsec) &&
           add_number(r, err, "start", number(call, "start-after")) &&
           (observed || add_number(r, err, "duration", number(call, "duration"))) &&
           add_steps(r, setting(call, "steps"), err) &&
           (!step_name || add_option(r, err, "step_name", step_name)) &&
           add_number(r, err, "limit", number(call, "limit")) &&
           (!full || add_option(r, err, "full", full)) &&
           (!counters || add_option(r, err, "cuda.counters", counters)) &&
           add_detail(r, setting(call, "detail"), err) && add_keep(r, call, err) &&
           (!cli_flag(call->settings, call->nsettings, "every-step") ||
            add_option(r, err, "every_step", "on")) &&
           add_rate(r, setting(call, "with"), err) && add_settings(r, call, err) &&
           add_option(r, err, "host.processors", "on") && /* of two, the first counts */
           (!cli_flag(call->settings, call->nsettings, "light") ||
            (add_option(r, err, "frameworks.operators", "none") &&
             add_option(r, err, "signals", "on") && add_option(r, err, "cuda.calls", "launches")));
}

/* -------------------------------------------------------------------------- the folder */

/* Whether the folder can be recorded into: it is empty except for hidden files (an earlier run that
   recorded nothing left them). If a launcher starts one `record` per rank, only this rank's folder
   must be absent. A restarted job continues in the same folder. */
static bool folder_is_free(const char *path, const struct record *r)
{
    DIR *dir = r->restarts > 0 ? NULL : opendir(path);
    char kept[PATH_MAX];
    struct dirent *entry;
    bool free_so_far = true;
    char own[32];

    snprintf(own, sizeof own, "rank%d.", (int)r->rank);
    while (dir && free_so_far && (entry = readdir(dir)))
        free_so_far =
            r->rank >= 0 ? strncmp(entry->d_name, own, strlen(own)) != 0 : entry->d_name[0] == '.';
    if (dir)
        closedir(dir);
    snprintf(kept, sizeof kept, "%.4000s.kept", path); /* left by an earlier one with --keep */
    return free_so_far && (r->rank >= 0 || access(kept, F_OK));
}

/* A second recording gets a number: "recording-2". Under a launcher there is none, because all of
   its ranks must choose the same folder. */
static bool choose_folder(struct record *r, const char *name)
{
    size_t n = strlen(name);

    while (n > 1 && name[n - 1] == '/')
        n--;
    snprintf(r->name, sizeof r->name, "%s", name);
    if (folder_is_free(r->name, r))
        return true;
    for (int i = 2; r->rank < 0 && i < 1000; i++) {
        if (snprintf(r->name, sizeof r->name, "%.*s-%d", (int)n, name, i) < (int)sizeof r->name &&
            folder_is_free(r->name, r))
            return true;
    }
    return false;
}

/* Removes the control files that an earlier run left, so that they do not affect this one. */
static void remove_control_files(const struct record *r)
{
    static const char *const names[] = {".control", ".begun", ".ended", ".error"};
    char path[PATH_MAX + 16];

    for (size_t i = 0; i < sizeof names / sizeof names[0] && r->rank < 0; i++) {
        snprintf(path, sizeof path, "%s/%s", r->folder, names[i]);
        unlink(path);
    }
    if (r->rank < 0)
        record_forget_ledgers(r);
}

/* Creates the folder with its control file. If that fails the program runs unrecorded. */
static bool make_folder(struct record *r, const char *name, const char *group, struct rp_err *err)
{
    if (!cli_make_path(name)) {
        snprintf(err->text, sizeof err->text, "cannot create folder '%.500s': %s", name,
                 strerror(errno));
        return false;
    }
    if (!realpath(name, r->folder)) {
        snprintf(err->text, sizeof err->text, "cannot use folder '%.500s': %s", name,
                 strerror(errno));
        return false;
    }
    remove_control_files(r);
    if (rp_recording_own(r->folder, group, err) != RP_OK)
        return false;
    record_note(r, ".begun");
    record_sources_folder(r);
    rp_recording_prepare(r->folder, NULL); /* if it fails, processes try it themselves */
    return true;
}

/* -------------------------------------------------------------------------- the command */

/* For a process that runs already; `used`: what will be loaded. */
static bool find_libraries(struct record *r, const char *used, struct rp_err *err)
{
    snprintf(r->used, sizeof r->used, "%s", used);
    if (record_find_libraries(r))
        return true;
    snprintf(err->text, sizeof err->text,
             "cannot find the libraries of 'record': set REPRISE_CAPTURE_DIR to the folder of "
             "reprise-host.so");
    return false;
}

static void record_tick(void *user)
{
    record_sources_bound(user, false);
}

static int record_program(const struct cli_call *call)
{
    const char *folder = setting(call, "output"), *pid = setting(call, "pid");
    struct record r = {.quiet = cli_flag(call->settings, call->nsettings, "quiet")};
    struct record_attach attach = {.pid = pid ? strtoll(pid, NULL, 10) : 0,
                                   .lasts_ns = number(call, "duration")};
    struct rp_err err = RP_ERR_INIT;
    bool usage = false;

    folder = folder ? folder : "recording";
    r.rank = pid ? -1 : rp_recording_rank(&r.restarts);
    if (!gather_options(&r, call, pid, &err) || (pid && !add_option(&r, &err, "pid", pid)))
        return cli_usage("record", &err);
    if (pid && record_attach_check(attach.pid, "sample", &err) != RP_OK)
        return cli_fail(RP_IO, &err);
    if (attach.lasts_ns)
        attach.lasts_ns += number(call, "start-after");
    if (!choose_folder(&r, folder)) {
        snprintf(err.text, sizeof err.text,
                 "'%.500s' %s: choose another folder with '-o', or remove it", folder,
                 r.rank < 0 ? "is not empty" : "already holds a recording of this rank");
        return cli_usage("record", &err);
    }
    if (strcmp(r.name, folder) != 0)
        fprintf(stderr, "reprise: '%.500s' is not empty: recording into '%.500s'\n", folder,
                r.name);
    if (pid ? !find_libraries(&r, "sample", &err)
            : !record_sources(&r, setting(call, "with"), &usage, &err))
        return usage ? cli_usage("record", &err) : cli_fail(RP_UNSUPPORTED, &err);
    if (!keys_are_used(&r, call, &err))
        return cli_usage("record", &err);
    if (!make_folder(&r, r.name, setting(call, "group"), &err)) {
        cli_fail(RP_IO, &err);
        fputs("reprise: continuing without a recording\n", stderr);
        r.folder[0] = '\0';
    } else {
        setenv("REPRISE_RECORD", r.folder, 1);
        setenv("REPRISE_RECORD_OPTIONS", r.options, 1);
        if (!pid) {
            /* Keep the counts of the program (<reprise/metrics.h>) in the recording, so that no
               files are left elsewhere when it has ended; unless a folder was chosen, or the path
               is too long for metrics.h. */
            char path[300];
            int n = snprintf(path, sizeof path, "%s/metrics", r.folder);

            if (n > 0 && (size_t)n < sizeof path)
                setenv("REPRISE_METRICS_DIR", path, 0);
        }
    }
    r.program = pid ? NULL : call->words[0];
    r.words = call->words;
    r.nwords = call->nwords;
    int status = pid ? record_attach(&r, &attach)
                     : record_run_watched(call->words, call->nwords,
                                          cli_flag(call->settings, call->nsettings, "wait-attach"),
                                          r.log_limit ? record_tick : NULL, &r);
    r.status = status;
    record_sources_bound(&r, true);
    if (r.folder[0] && !pid)
        record_spent(&r);
    if (r.folder[0] && status != 126 && status != 127)
        record_summary(&r);
    return status;
}

/* Whether all options are among those that such a recording takes. */
static bool only_has(const struct cli_call *call, const char *const *taken, const char *why,
                     struct rp_err *err)
{
    for (size_t i = 0; i < call->nsettings; i++) {
        size_t k = 0;

        while (taken[k] && strcmp(call->settings[i].name, taken[k]) != 0)
            k++;
        if (taken[k])
            continue;
        snprintf(err->text, sizeof err->text, "'--%s' does not go with '--pid': %s",
                 call->settings[i].name, why);
        return false;
    }
    return true;
}

/* The other options are about what we load, and '--steps' has no first one: the job counts. */
static bool fits_kineto(const struct cli_call *call, struct rp_err *err)
{
    static const char *const taken[] = {"pid",   "with",  "output", "duration",
                                        "steps", "quiet", NULL};
    const char *steps = setting(call, "steps");

    if (!only_has(call, taken, "PyTorch's own profiler takes '--duration' or '--steps'", err))
        return false;
    if (!steps || !strchr(steps, ':') || strtoll(steps, NULL, 10) == 0)
        return true;
    snprintf(err->text, sizeof err->text,
             "'--pid' records the next steps: '--steps %.40s', without the first one",
             strchr(steps, ':') + 1);
    return false;
}

/* The sources that need not be there from the start, in `used`; the recorder loads `list`. */
static bool add_sources_of_running(struct record *r, const char *with, char *used, size_t size,
                                   struct rp_err *err)
{
    static const char *const known[] = {"host", "cuda", "frameworks", NULL};
    char list[64] = "";

    snprintf(used, size, "host");
    for (size_t n, k; *with; with += n + (with[n] == ',')) {
        n = strcspn(with, ",");
        for (k = 0; known[k] && (strlen(known[k]) != n || strncmp(with, known[k], n) != 0);)
            k++;
        if (!known[k]) {
            snprintf(err->text, sizeof err->text,
                     "'--pid' takes the sources host, cuda and frameworks (or kineto alone), not "
                     "'%.*s', which a program must be started with; stacks: reprise sample --pid N",
                     (int)n, with);
            return false;
        }
        if (!k || strstr(list, known[k]))
            continue;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "," : "",
                 known[k]);
        snprintf(used + strlen(used), size - strlen(used), ", %s", known[k]);
    }
    return !*list || add_option(r, err, "sources", list);
}

/* Records into a folder what processes that run already do from now on. */
static int record_from_now(const struct cli_call *call)
{
    static const char *const taken[] = {"pid",   "all",       "with",  "output",     "duration",
                                        "steps", "step-name", "light", "limit",      "when-full",
                                        "set",   "group",     "quiet", "every-step", NULL};
    struct record r = {.quiet = cli_flag(call->settings, call->nsettings, "quiet"), .rank = -1};
    const char *folder = setting(call, "output"), *with = setting(call, "with");
    struct rp_err err = RP_ERR_INIT;
    bool usage = false;
    char used[64];

    folder = folder ? folder : "recording";
    if (!only_has(call, taken, "a program must be started with it", &err) ||
        !gather_options(&r, call, false, &err) || !add_number(&r, &err, "recorder", getpid()) ||
        !add_sources_of_running(&r, with ? with : "cuda,frameworks", used, sizeof used, &err))
        return cli_usage("record", &err);
    if (!find_libraries(&r, used, &err))
        return cli_fail(RP_UNSUPPORTED, &err);
    if (!keys_are_used(&r, call, &err))
        return cli_usage("record", &err);
    struct record_live *live =
        record_live_find(setting(call, "pid"), setting(call, "all"), &usage, &err);
    if (!live)
        return usage ? cli_usage("record", &err) : cli_fail(RP_IO, &err);
    if (!choose_folder(&r, folder) || !make_folder(&r, r.name, setting(call, "group"), &err)) {
        free(live);
        return cli_fail(RP_IO, &err);
    }
    if (strcmp(r.name, folder) != 0)
        fprintf(stderr, "reprise: '%.500s' is not empty: recording into '%.500s'\n", folder,
                r.name);
    int status = record_live(&r, live);
    if (status == 4) { /* nothing was begun */
        remove_control_files(&r);
        rmdir(r.folder);
    } else {
        record_summary(&r);
    }
    return status;
}

static int record_running(const struct cli_call *call)
{
    const char *folder = setting(call, "output"), *with = setting(call, "with");
    struct rp_err err = RP_ERR_INIT;
    struct record unused = {.quiet = true};

    if (call->nwords) {
        snprintf(err.text, sizeof err.text,
                 "'record' takes a program, or processes that run already ('--pid', '--all')");
        return cli_usage("record", &err);
    }
    if (!with || strcmp(with, "kineto") != 0)
        return record_from_now(call);
    if (!in_range(call, &err) || !add_steps(&unused, setting(call, "steps"), &err) ||
        !fits_kineto(call, &err))
        return cli_usage("record", &err);
    return record_kineto(setting(call, "pid"), folder ? folder : "recording",
                         number(call, "duration"), setting(call, "steps"),
                         cli_flag(call->settings, call->nsettings, "quiet"));
}

static int record_command(const struct cli_call *call)
{
    static const char *const verbs[] = {"start", "stop", "mark", "trigger", NULL};
    struct rp_err err = RP_ERR_INIT;

    if (setting(call, "pid") || setting(call, "all"))
        return record_running(call);
    if (!call->nwords) {
        snprintf(err.text, sizeof err.text, "'record' needs a program: reprise record -- PROGRAM");
        return cli_usage("record", &err);
    }
    for (int i = 0; verbs[i] && !call->dashes; i++)
        if (!strcmp(call->words[0], verbs[i]))
            return record_control(call);
    return record_program(call);
}

const struct cli_command cli_cmd_record = {
    .name = "record",
    .group = "capture",
    .summary = "run a program and record what it does",
    .details =
        "Runs the program with small preloaded libraries that write what it does into a folder: "
        "ranges and counters of <reprise/record.h>, threads, processes, and the device work that "
        "the installed sources report. The folder can be read at any time, even after a crash, by "
        "reprise and by any reader of CTF 1.8 (babeltrace2, Trace Compass). The program's output "
        "and exit status are unchanged (128 + n after signal n). 'record start DIR', 'record stop "
        "DIR' and 'record mark DIR NAME' resume, pause or mark a running recording; 'record "
        "trigger DIR' keeps the last steps of one with '--keep'.",
    .examples = "reprise record -- python train.py\tall sources, into ./recording\n"
                "reprise record -o run -- torchrun --nproc-per-node 8 train.py\tall ranks\n"
                "reprise record --steps 10:5 -- ./train\tfive steps\n"
                "reprise record --pid 4711 --duration 30s\ta program that runs already\n"
                "reprise record stop run\tfrom another terminal\n",
    .words = "-- PROGRAM [ARGUMENT...]",
    .tail = true,
    .options = record_options,
    .common = cli_help_option,
    .run = record_command};

/* -------------------------------------------------------------------------- `sample` */

static const struct rp_option sample_options[] = {
    {"output", 'o', RP_OPT_PATH, "DIR", "recording", "folder of the recording; created if needed",
     0},
    {"pid", 'p', RP_OPT_INT, "1..2147483647", NULL,
     "sample a process that is already running, until it ends, for '--duration', or until Ctrl-C",
     0},
    {"hz", 0, RP_OPT_INT, "1..10000", "100", "samples per second and thread", 0},
    {"clock", 0, RP_OPT_CHOICE, "both|cpu|wall", "both",
     "what is sampled: running and waiting threads, told apart; only running threads; both, by wall-clock time",
     0},
    {"start-after", 0, RP_OPT_DURATION, "TIME", NULL, "start recording after this time: 10s", 0},
    {"duration", 0, RP_OPT_DURATION, "TIME", NULL, "record for this long, then stop", 0},
    {"limit", 0, RP_OPT_BYTES, "SIZE", NULL, "maximum size written by one process: 2GiB", 0},
    {"when-full", 0, RP_OPT_CHOICE, "stop|ring", "stop",
     "at the limit: stop (the rest is counted as lost), or drop the oldest events", 0},
    {"group", 0, RP_OPT_TEXT, "NAME", NULL,
     "let this group read and continue the recording (default: only its owner can)", 0},
    {"quiet", 'q', RP_OPT_FLAG, NULL, NULL, "print no summary at the end", 0},
    RP_OPTION_END};

/* Does the same as `record` with only this source, and its options by their own names. */
static int sample_command(const struct cli_call *call)
{
    const char *hz = setting(call, "hz"), *clock = setting(call, "clock");
    struct rp_setting settings[sizeof sample_options / sizeof sample_options[0] + 2];
    struct cli_call record = *call;
    char with[32], set[32];
    struct rp_err err = RP_ERR_INIT;

    if (!call->nwords == !setting(call, "pid")) {
        snprintf(err.text, sizeof err.text,
                 call->nwords ? "'sample' takes a program or '--pid', not both"
                              : "'sample' needs a program or a process: reprise sample -- PROGRAM, "
                                "reprise sample --pid N");
        return cli_usage("sample", &err);
    }
    record.settings = settings;
    record.nsettings = 0;
    for (size_t i = 0;
         i < call->nsettings && record.nsettings < sizeof settings / sizeof *settings - 2; i++)
        if (strcmp(call->settings[i].name, "hz") != 0 &&
            strcmp(call->settings[i].name, "clock") != 0)
            settings[record.nsettings++] = call->settings[i];
    snprintf(with, sizeof with, "sample=%.16s", hz ? hz : "100");
    snprintf(set, sizeof set, "sample.clock=%.8s", clock ? clock : "both");
    settings[record.nsettings++] = (struct rp_setting){"with", with};
    settings[record.nsettings++] = (struct rp_setting){"set", set};
    return record_program(&record);
}

const struct cli_command cli_cmd_sample = {
    .name = "sample",
    .group = "capture",
    .summary = "sample the stacks of all threads of a program or of a running process",
    .details =
        "The same as 'record --with sample': writes the stacks of all threads, many times a "
        "second, into a folder that every command reads. Native and Python frames are in "
        "one stack. No privilege is needed. With '--pid' nothing is loaded into the "
        "process: its memory is read from outside, and a running thread is stopped for some tens of microseconds per sample.",
    .examples = "reprise sample -- python train.py\t100 times a second, into ./recording\n"
                "reprise sample --hz 1000 --duration 10s -o run -- ./train\tthe first ten seconds\n"
                "reprise sample --pid 4711 --duration 10s\ta process that is already running\n",
    .words = "[-- PROGRAM [ARGUMENT...]]",
    .tail = true,
    .options = sample_options,
    .common = cli_help_option,
    .run = sample_command};
