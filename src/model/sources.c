/* SPDX-License-Identifier: Apache-2.0 */
/* Reads sources of models: tables here, and everything else by the readers of traces. */
#include "model/sources.h"
#include "base/order.h"
#include "base/text.h"

#include "cost/learn/from_trace.h"
#include "dataset/load.h"
#include "explain/roofline/programs.h"

#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_DEPTH 12

struct source_reader {
    struct rp_ctx *ctx;
    const char *device;
    struct rp_samples *out;
    pthread_mutex_t lock; /* protects out, because several threads read ranks */
    size_t others;        /* number of files that are not tables */
};

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);

    return n >= k && !strcasecmp(path + n - k, end);
}

/* Returns the device after which a folder of a path is named, beginning with the last one; NULL if
   none is. */
static const char *device_of_path(const char *path, struct rp_arena *arena)
{
    char *copy = rp_arena_strdup(arena, path), *slash;
    const struct rp_device_peaks *d = NULL;

    while (copy && !d && (slash = strrchr(copy, '/')) != NULL) {
        *slash = '\0';
        const char *name = rp_text_file(copy);
        d = rp_device_by_name(name);
        if (!d)
            d = rp_device_recognise(name, 0);
    }
    return d ? d->name : NULL;
}

/* ------------------------------------------------------------------ traces */

static const char *device_of_trace(const struct rp_loaded *loaded, const char *given,
                                   struct rp_arena *arena)
{
    const struct rp_trace *t = loaded->trace;
    const char *own =
        t->ndevices && t->devices[0].name ? rp_trace_str(t, t->devices[0].name) : NULL;
    const struct rp_device_peaks *d =
        own && *own ? rp_device_recognise(own, t->devices[0].memory_bytes) : NULL;

    if (given)
        return given;
    if (d)
        return d->name;
    const char *by_path = loaded->source ? device_of_path(loaded->source->path, arena) : NULL;
    return by_path ? by_path : own && *own ? rp_arena_text(arena, own) : NULL;
}

static enum rp_code read_rank(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct source_reader *r = user;
    struct rp_program_costs programs = {0};
    enum rp_code code = rp_program_costs_init(&programs, loaded, NULL, err);

    pthread_mutex_lock(&r->lock);
    const char *device = device_of_trace(loaded, r->device, &r->out->arena);
    if (code == RP_OK && !device)
        code = rp_err_set(err, RP_USAGE,
                          "'%s': the trace does not name its device: name it with '--device'",
                          loaded->source ? loaded->source->name : "");
    if (code == RP_OK)
        code = rp_samples_of_trace(r->out, loaded->trace, rp_loaded_categories(loaded), device,
                                   rp_program_cost_of, &programs, err);
    pthread_mutex_unlock(&r->lock);
    rp_program_costs_release(&programs);
    return code;
}

static enum rp_code read_traces(struct source_reader *r, const char *path, struct rp_err *err)
{
    struct rp_dataset *dataset = NULL;
    size_t before = r->out->rows.n;
    enum rp_code code = rp_open(r->ctx, &path, 1, NULL, &dataset, err);

    if (code == RP_OK)
        code = rp_each_rank_in_order(r->ctx, dataset, read_rank, r, err);
    rp_dataset_free(dataset);
    RP_TRY(code);
    if (r->out->rows.n == before)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': no operator with shapes and device times: record with "
                          "record_shapes=True",
                          path);
    return rp_vec_push(&r->out->sources, rp_arena_text(&r->out->arena, path), err);
}

/* ------------------------------------------------------------------ folders */

static enum rp_code read_table(struct source_reader *r, const char *path, struct rp_err *err)
{
    const char *device = r->device ? r->device : device_of_path(path, &r->out->arena);

    return rp_samples_read_csv(r->out, path, device, true, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum rp_code read_folder(struct source_reader *r, const char *path, int depth,
                                struct rp_err *err);

static enum rp_code read_entry(struct source_reader *r, const char *path, int depth,
                               struct rp_err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return RP_OK;
    if (S_ISDIR(st.st_mode))
        return depth < MOST_DEPTH ? read_folder(r, path, depth + 1, err) : RP_OK;
    if (ends_with(path, ".csv"))
        return read_table(r, path, err);
    r->others += S_ISREG(st.st_mode);
    return RP_OK;
}

/* Reads the tables of a folder and its subfolders, in the order of their names. */
static enum rp_code read_folder(struct source_reader *r, const char *path, int depth,
                                struct rp_err *err)
{
    RP_VEC(char *) names = {0};
    DIR *dir = opendir(path);
    struct dirent *e;
    enum rp_code code = dir ? RP_OK : rp_err_set(err, RP_IO, "cannot open '%s'", path);

    while (code == RP_OK && (e = readdir(dir)) != NULL)
        if (e->d_name[0] != '.') {
            const char *slash = ends_with(path, "/") ? "" : "/";
            char *name = rp_arena_printf(&r->out->arena, "%s%s%s", path, slash, e->d_name);

            code = name ? rp_vec_push(&names, name, err) : rp_err_nomem(err, "reading a folder");
        }
    if (dir)
        closedir(dir);
    rp_sort(names.at, names.n, sizeof *names.at, by_name);
    for (size_t i = 0; code == RP_OK && i < names.n; i++)
        code = read_entry(r, names.at[i], depth, err);
    rp_vec_release(&names);
    return code;
}

enum rp_code rp_model_read_source(struct rp_ctx *ctx, const char *path, const char *device,
                                  struct rp_samples *out, struct rp_err *err)
{
    struct source_reader r = {
        .ctx = ctx, .device = device, .out = out, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        RP_TRY(read_folder(&r, path, 0, err));
        return r.others ? read_traces(&r, path, err) : RP_OK;
    }
    return ends_with(path, ".csv") || !strcmp(path, "-") ? read_table(&r, path, err)
                                                         : read_traces(&r, path, err);
}
