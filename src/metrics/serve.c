/* SPDX-License-Identifier: Apache-2.0 */
/* Serves metrics to Prometheus. */
#include "base/clock.h"
#include "dataset/dataset.h"
#include "http/request.h"
#include "http/server.h"
#include "metrics/set.h"

#include <reprise/metrics_calls.h>
#include <reprise/result.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file of a process that was seen to run, or that is to be removed. */
struct served_file {
    char *path;
    int64_t ended_ns;  /* when its end was first seen; RP_ABSENT_I64 while it runs */
    uint64_t answered; /* the number of the last answer that contains it */
};

struct served_metrics {
    struct rp_metrics_server options;
    double tick_ns;
    RP_VEC(struct served_file) files;
    uint64_t answers;
};

/* Finds the entry of a file; if there is none and `add`, makes one; otherwise returns NULL. */
static struct served_file *find_file(struct served_metrics *served, const char *path, bool add)
{
    struct served_file file = {.ended_ns = RP_ABSENT_I64};
    struct rp_err err = RP_ERR_INIT;

    for (size_t i = 0; i < served->files.n; i++)
        if (!strcmp(served->files.at[i].path, path))
            return &served->files.at[i];
    if (!add || !(file.path = strdup(path)))
        return NULL;
    if (rp_vec_push(&served->files, file, &err) != RP_OK) {
        free(file.path);
        return NULL;
    }
    return &served->files.at[served->files.n - 1];
}

/* Whether a process is in this answer: it runs, or it ended after an answer and was not kept long
   enough. A source that was named is in all answers, unless its file is removed. A file that is no
   longer found belongs to a recording, and stays there. */
static bool is_served(struct served_metrics *served, const struct rp_metric_set *set, bool found)
{
    const struct rp_metrics_server *o = &served->options;
    struct served_file *file =
        find_file(served, set->source, set->is_live || (set->has_ended && o->clean));
    struct rp_err err = RP_ERR_INIT;
    bool removed, fresh;

    if (!file)
        return set->is_live || o->source;
    file->answered = served->answers;
    if (!set->has_ended)
        return true;
    fresh = file->ended_ns == RP_ABSENT_I64;
    if (fresh)
        file->ended_ns = rp_clock_ns();
    if (fresh || rp_clock_ns() - file->ended_ns < o->keep_ns)
        return true;
    if (!found)
        file->answered = 0;
    else if (o->clean) /* removing is tried again with the next answer */
        rp_metric_set_remove(set, &removed, &err);
    return o->source && !o->clean;
}

/* Forgets files that no longer exist. */
static void forget_files(struct served_metrics *served, uint64_t before)
{
    size_t kept = 0;

    for (size_t i = 0; i < served->files.n; i++)
        if (served->files.at[i].answered < before)
            free(served->files.at[i].path);
        else
            served->files.at[kept++] = served->files.at[i];
    served->files.n = kept;
}

static bool has_path(const rp_metric_paths *paths, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(paths->at[i], path))
            return true;
    return false;
}

/* Files of processes that were seen to run, and through which they are found, are read once more
   when these have ended. */
static enum rp_code add_known(const struct served_metrics *served, rp_metric_paths *paths,
                              struct rp_err *err)
{
    size_t found = paths->n;

    for (size_t i = 0; !served->options.source && i < served->files.n; i++)
        if (!has_path(paths, found, served->files.at[i].path))
            RP_TRY(rp_vec_push(paths, served->files.at[i].path, err));
    return RP_OK;
}

static enum rp_code answer_metrics(void *user, const struct rp_http_request *request,
                                   struct rp_out *body, const char **type, struct rp_err *err)
{
    struct served_metrics *served = user;
    const char *source = served->options.source;
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    rp_metric_sets sets = {0};
    size_t found = 0;
    enum rp_metric_format format = RP_METRIC_PROMETHEUS;

    if (strcmp(request->path, "metrics") != 0)
        return rp_err_set(err, RP_MISSING, "the metrics are at '/metrics'");
    if (rp_http_weight(request, "application/openmetrics-text") >
        rp_http_weight(request, "text/plain"))
        format = RP_METRIC_OPENMETRICS;
    *type = format == RP_METRIC_OPENMETRICS
                ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                : "text/plain; version=0.0.4";
    enum rp_code code = rp_metric_find_sources(source, &arena, &paths, err);
    found = paths.n;
    if (code == RP_OK)
        code = add_known(served, &paths, err);
    if (code == RP_OK)
        code = rp_metric_read_all(&paths, source ? RP_METRIC_ALL : RP_METRIC_READABLE,
                                  &served->tick_ns, &sets, err);
    if (code == RP_OK) {
        /* found: how many of the paths were found for this answer. */
        size_t kept = 0;
        served->answers++;
        for (size_t i = 0; i < sets.n; i++) {
            struct rp_metric_set set = sets.at[i];
            if (is_served(served, &set, has_path(&paths, found, set.source)))
                sets.at[kept++] = set;
            else
                rp_metric_set_release(&set);
        }
        sets.n = kept;
        forget_files(served, served->answers);
        code = rp_metric_expose(sets.at, sets.n, format, body, err);
    }
    rp_metric_sets_release(&sets);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
    return code;
}

static void metrics_are_ready(void *user, const char *address)
{
    const struct rp_metrics_server *options = &((const struct served_metrics *)user)->options;
    char text[128];

    snprintf(text, sizeof text, "%smetrics", address);
    if (options->ready)
        options->ready(options->user, text);
}

enum rp_code rp_metrics_call_serve(const struct rp_metrics_server *options, struct rp_err *err)
{
    struct served_metrics served = {.tick_ns = 0};
    struct rp_http_server server = {.any_user = true,
                                    .keep = true,
                                    .answer = answer_metrics,
                                    .ready = metrics_are_ready,
                                    .user = &served};

    rp_copy_view(&served.options, 0, sizeof served.options, options, options->struct_size);
    server.port = served.options.port;
    server.stop_fd = served.options.stop_fd;
    enum rp_code code = rp_http_serve(&server, err);
    forget_files(&served, UINT64_MAX);
    rp_vec_release(&served.files);
    return code;
}
