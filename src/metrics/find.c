/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds metrics: the files of processes by number, by folder or all that run, and reports as text.
 * Searches consider only files of this user.
 */
#include "base/text.h"
#include "metrics/set.h"

#include "io/input.h"
#include "io/sources_walk.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <reprise/result.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".metrics"

/* Whether the begin of a file is that of one of ours or of a report. */
static bool begins_like_metrics(const char *path)
{
    static const char *const begins[] = {"METRICS1", "Metric: ", "Counter:", "[Metrics",
                                         "# repris"};
    FILE *in = fopen(path, "re");
    char head[9] = "";
    bool found = false;
    size_t i, n = in ? fread(head, 1, 8, in) : 0;

    if (in)
        fclose(in);
    for (i = 0; n == 8 && i < sizeof begins / sizeof begins[0]; i++)
        found |= !memcmp(head, begins[i], 8);
    return found;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds files of this user that fit the pattern: its prefix, then the process, if given. */
static enum rp_code search_folder(const char *folder, const char *prefix, const char *process,
                                  struct rp_arena *arena, rp_metric_paths *out, struct rp_err *err)
{
    DIR *dir = opendir(folder);
    size_t first = out->n, len = strlen(prefix), plen = process ? strlen(process) : 0;
    enum rp_code code = RP_OK;
    struct dirent *entry;

    if (!dir)
        return RP_OK;
    while (code == RP_OK && (entry = readdir(dir))) {
        const char *name = entry->d_name, *path;
        struct stat st;

        if (strncmp(name, prefix, len) != 0 || !rp_text_ends(name, SUFFIX))
            continue;
        if (process && (strncmp(name + len, process, plen) != 0 || name[len + plen] != '-'))
            continue;
        path = rp_arena_textf(arena, "%s/%s", folder, name);
        if (lstat(path, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
            continue;
        code = rp_vec_push(out, path, err);
    }
    closedir(dir);
    if (out->n > first)
        qsort(out->at + first, out->n - first, sizeof *out->at, by_path);
    return code == RP_OK ? rp_arena_check(arena, "listing metrics", err) : code;
}

/* Finds all metrics in a folder and its subfolders. */
static enum rp_code walk_folder(const char *folder, struct rp_arena *arena, rp_metric_paths *out,
                                struct rp_err *err)
{
    const struct rp_limits limits = RP_LIMITS_DEFAULT;
    RP_SCOPED(rp_walk_release) struct rp_walk walk = {0};

    RP_TRY(rp_walk_folder(folder, &limits, &walk, err));
    for (size_t i = 0; i < walk.files.n; i++)
        if (begins_like_metrics(walk.files.at[i].path))
            RP_TRY(rp_vec_push(out, rp_arena_text(arena, walk.files.at[i].path), err));
    return rp_arena_check(arena, "listing metrics", err);
}

static bool is_number(const char *word)
{
    size_t i;

    for (i = 0; word[i]; i++)
        if (!isdigit((unsigned char)word[i]))
            return false;
    return i > 0 && i < 11;
}

/* Returns the folder for metrics that a process was given when it started, or NULL. */
static const char *chosen_folder(const char *process, struct rp_arena *arena)
{
    static const char name[] = "REPRISE_METRICS_DIR=/";
    FILE *in = fopen(rp_arena_textf(arena, "/proc/%s/environ", process), "re");
    const char *folder = NULL;
    char *entry = NULL;
    size_t size = 0;

    while (in && !folder && getdelim(&entry, &size, '\0', in) > 0)
        if (!strncmp(entry, name, sizeof name - 1))
            folder = rp_arena_text(arena, strchr(entry, '/'));
    free(entry);
    if (in)
        fclose(in);
    return folder;
}

/* Searches the folders in which <reprise/metrics.h> creates files. */
static enum rp_code search(const char *process, struct rp_arena *arena, rp_metric_paths *out,
                           struct rp_err *err)
{
    const char *given = getenv("REPRISE_METRICS_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    const char *prefix = rp_arena_textf(arena, "reprise-metrics-%u-", (unsigned)geteuid());

    if (given && *given)
        return search_folder(given, "", process, arena, out, err);
    if (runtime && *runtime == '/')
        RP_TRY(search_folder(rp_arena_textf(arena, "%s/reprise-metrics", runtime), "", process,
                             arena, out, err));
    RP_TRY(search_folder("/dev/shm", prefix, process, arena, out, err));
    RP_TRY(search_folder("/tmp", prefix, process, arena, out, err));

    /* Finds metrics of running processes elsewhere: `record` puts them into the recording. Only the
       processes' own files are found there, so that no other file of a recording counts as left
       over. */
    DIR *dir = opendir("/proc");
    enum rp_code code = RP_OK;
    struct dirent *entry;
    const char *folder;
    struct stat st;
    while (dir && code == RP_OK && (entry = readdir(dir)))
        if (is_number(entry->d_name) && (!process || !strcmp(process, entry->d_name)) &&
            !fstatat(dirfd(dir), entry->d_name, &st, 0) && st.st_uid == geteuid() &&
            (folder = chosen_folder(entry->d_name, arena)) != NULL)
            code = search_folder(folder, "", entry->d_name, arena, out, err);
    if (dir)
        closedir(dir);
    return code;
}

enum rp_code rp_metric_find_sources(const char *word, struct rp_arena *arena, rp_metric_paths *out,
                                    struct rp_err *err)
{
    size_t before = out->n;
    struct stat st;

    if (!word)
        return search(NULL, arena, out, err);
    if (stat(word, &st)) {
        if (!is_number(word))
            return rp_err_set_os(err, errno, "'%s'", word);
        RP_TRY(search(word, arena, out, err));
        if (out->n > before)
            return RP_OK;
        return rp_err_set(err, RP_IO,
                          "process %s counts nothing: no file '%s-*.metrics' in "
                          "its REPRISE_METRICS_DIR, the runtime folder, /dev/shm or /tmp",
                          word, word);
    }
    if (!S_ISDIR(st.st_mode))
        return rp_vec_push(out, rp_arena_text(arena, word), err);
    RP_TRY(walk_folder(word, arena, out, err));
    if (out->n == before)
        return rp_err_set(
            err, RP_FORMAT,
            "'%s': no metrics in this folder; 'reprise record --light' writes those of a job",
            word);
    return RP_OK;
}

static enum rp_code read_stream(const char *path, struct rp_input *in, struct rp_metric_set *out,
                                struct rp_err *err)
{
    RP_VEC(char) text = {0};
    enum rp_code code = RP_OK;
    size_t got = 1;

    while (code == RP_OK && got) {
        code = rp_vec_reserve(&text, 1 << 16, err);
        if (code == RP_OK)
            code = rp_input_read(in, text.at + text.n, 1 << 16, &got, err);
        if (code == RP_OK)
            text.n += got;
        if (text.n > (size_t)1 << 28)
            code = rp_err_set(err, RP_LIMIT, "'%s': larger than 256 MB", path);
    }
    if (code == RP_OK)
        code = rp_metric_set_read_text(path, text.at, text.n, out, err);
    rp_vec_release(&text);
    return code;
}

static enum rp_code read_source(const char *path, double *tick_ns, struct rp_metric_set *out,
                                struct rp_err *err)
{
    struct rp_input *in = NULL;
    const uint8_t *bytes;
    size_t n;

    *out = (struct rp_metric_set){.pid = RP_ABSENT_I64,
                                  .rank = RP_ABSENT_I64,
                                  .world_size = RP_ABSENT_I64,
                                  .tick_ns = tick_ns};
    rp_arena_init(&out->arena);
    out->source = rp_arena_text(&out->arena, path);
    RP_TRY(rp_input_open(path, NULL, &in, err));
    enum rp_code code = rp_input_peek(in, 8, &bytes, &n, err);
    if (code == RP_OK && n == 8 && !memcmp(bytes, "METRICS1", 8)) {
        rp_input_close(in);
        return rp_metric_set_read_file(path, out, err);
    }
    if (code == RP_OK)
        code = read_stream(path, in, out, err);
    rp_input_close(in);
    return code;
}

enum rp_code rp_metric_set_read(const char *path, struct rp_metric_set *out, struct rp_err *err)
{
    return read_source(path, NULL, out, err);
}

enum rp_code rp_metric_read_all(const rp_metric_paths *paths, enum rp_metric_choice choice,
                                double *tick_ns, rp_metric_sets *out, struct rp_err *err)
{
    for (size_t i = 0; i < paths->n; i++) {
        struct rp_metric_set set = {0};
        enum rp_code code = read_source(paths->at[i], tick_ns, &set, err);

        if ((choice != RP_METRIC_ALL && (code == RP_FORMAT || code == RP_IO)) ||
            (choice == RP_METRIC_RUNNING && code == RP_OK && !set.is_live)) {
            rp_metric_set_release(&set);
            continue;
        }
        if (code == RP_OK)
            code = rp_vec_push(out, set, err);
        if (code != RP_OK) {
            rp_metric_set_release(&set);
            return code;
        }
    }
    return RP_OK;
}

void rp_metric_sets_release(rp_metric_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        rp_metric_set_release(&sets->at[i]);
    rp_vec_release(sets);
}

enum rp_code rp_metric_set_remove(const struct rp_metric_set *set, bool *removed,
                                  struct rp_err *err)
{
    struct stat st;

    *removed = set->has_ended && rp_text_ends(set->source, SUFFIX) && !lstat(set->source, &st) &&
               S_ISREG(st.st_mode) && st.st_uid == geteuid();
    if (*removed && unlink(set->source) && errno != ENOENT)
        return rp_err_set_os(err, errno, "cannot remove '%s'", set->source);
    return RP_OK;
}
