/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where metrics are: the files of processes, by number, by folder or all that run, and reports as
 * text. Only files of this user are considered when searching.
 */
#include "base/text.h"
#include "metrics/set.h"

#include "io/input.h"

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

/* Whether a file begins like one of ours or like a report. */
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

/* Every file of a folder for which the pattern fits: its prefix, then the process, if any. */
static enum rp_code list_folder(const char *folder, const char *prefix, const char *process,
                                bool searching, struct rp_arena *arena, rp_metric_paths *out,
                                struct rp_err *err)
{
    DIR *dir = opendir(folder);
    size_t first = out->n, len = strlen(prefix), plen = process ? strlen(process) : 0;
    enum rp_code code = RP_OK;
    struct dirent *entry;

    if (!dir)
        return searching ? RP_OK : rp_err_set_os(err, errno, "'%s'", folder);
    while (code == RP_OK && (entry = readdir(dir))) {
        const char *name = entry->d_name, *path;
        struct stat st;

        if (strncmp(name, prefix, len) != 0 || (searching && !rp_text_ends(name, SUFFIX)))
            continue;
        if (process && (strncmp(name + len, process, plen) != 0 || name[len + plen] != '-'))
            continue;
        path = rp_arena_textf(arena, "%s/%s", folder, name);
        if (lstat(path, &st) || !S_ISREG(st.st_mode) ||
            (searching ? st.st_uid != geteuid() : !begins_like_metrics(path)))
            continue;
        code = rp_vec_push(out, path, err);
    }
    closedir(dir);
    if (out->n > first)
        qsort(out->at + first, out->n - first, sizeof *out->at, by_path);
    return code == RP_OK ? rp_arena_check(arena, "listing metrics", err) : code;
}

/* The folders in which <reprise/metrics.h> creates files. */
static enum rp_code search(const char *process, struct rp_arena *arena, rp_metric_paths *out,
                           struct rp_err *err)
{
    const char *given = getenv("REPRISE_METRICS_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    const char *prefix = rp_arena_textf(arena, "reprise-metrics-%u-", (unsigned)geteuid());

    if (given && *given)
        return list_folder(given, "", process, true, arena, out, err);
    if (runtime && *runtime == '/')
        RP_TRY(list_folder(rp_arena_textf(arena, "%s/reprise-metrics", runtime), "", process, true,
                           arena, out, err));
    RP_TRY(list_folder("/dev/shm", prefix, process, true, arena, out, err));
    return list_folder("/tmp", prefix, process, true, arena, out, err);
}

static bool is_number(const char *word)
{
    size_t i;

    for (i = 0; word[i]; i++)
        if (!isdigit((unsigned char)word[i]))
            return false;
    return i > 0 && i < 11;
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
                          "REPRISE_METRICS_DIR, the runtime folder, /dev/shm or /tmp",
                          word, word);
    }
    if (!S_ISDIR(st.st_mode))
        return rp_vec_push(out, rp_arena_text(arena, word), err);
    RP_TRY(list_folder(word, "", NULL, false, arena, out, err));
    if (out->n == before)
        return rp_err_set(err, RP_FORMAT, "'%s': no metrics in this folder", word);
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

enum rp_code rp_metric_set_read(const char *path, struct rp_metric_set *out, struct rp_err *err)
{
    struct rp_input *in = NULL;
    const uint8_t *bytes;
    enum rp_code code;
    size_t n;

    *out = (struct rp_metric_set){
        .pid = RP_ABSENT_I64, .rank = RP_ABSENT_I64, .world_size = RP_ABSENT_I64};
    rp_arena_init(&out->arena);
    out->source = rp_arena_text(&out->arena, path);
    RP_TRY(rp_input_open(path, NULL, &in, err));
    code = rp_input_peek(in, 8, &bytes, &n, err);
    if (code == RP_OK && n == 8 && !memcmp(bytes, "METRICS1", 8)) {
        rp_input_close(in);
        return rp_metric_set_read_file(path, out, err);
    }
    if (code == RP_OK)
        code = read_stream(path, in, out, err);
    rp_input_close(in);
    return code;
}
