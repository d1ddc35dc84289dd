/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and datasets. Opening a dataset lists its sources; nothing is parsed here. Structs of
 * options begin with their size: fields that a program with an older header did not know read as
 * zero.
 */
#include "dataset/dataset.h"

#include "dataset/models.h"
#include "formats/formats.h"
#include "team/team.h"

#include "rp_config.h"

#include <stdlib.h>
#include <string.h>

#if RP_VERSION_NUMBER != REPRISE_VERSION_NUMBER
#error "<reprise/context.h> has another version than CMakeLists.txt"
#endif

const char *rp_version(void)
{
    return RP_VERSION;
}

unsigned rp_version_number(void)
{
    return REPRISE_VERSION_NUMBER;
}

enum rp_code rp_ctx_new(const struct rp_ctx_options *options, struct rp_ctx **out,
                        struct rp_err *err)
{
    struct rp_ctx_options o = {0};
    struct rp_ctx *ctx;

    *out = NULL;
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    ctx = calloc(1, sizeof *ctx);
    RP_TRY(rp_err_need(ctx, err, "making a context"));
    enum rp_code code = rp_pool_new(o.threads, &ctx->pool, err);
    if (code == RP_OK)
        code = rp_models_new(&ctx->models, err);
    if (code == RP_OK && o.distributed)
        code = rp_team_join(&ctx->team, err);
    if (code != RP_OK) {
        rp_ctx_free(ctx);
        return code;
    }
    ctx->progress = o.progress;
    ctx->progress_user = o.progress_user;
    *out = ctx;
    return RP_OK;
}

void rp_ctx_free(struct rp_ctx *ctx)
{
    if (!ctx)
        return;
    rp_team_leave(ctx->team);
    rp_pool_free(ctx->pool);
    rp_models_free(ctx->models);
    free(ctx);
}

int rp_ctx_helps(const struct rp_ctx *ctx)
{
    return ctx && rp_team_rank(ctx->team) > 0;
}

/* Reads the user's additions to the built-in tables of names. */
static enum rp_code read_tables(struct rp_dataset *dataset, struct rp_err *err)
{
    const char *steps = getenv("REPRISE_STEPS"), *categories = getenv("REPRISE_CATEGORIES");
    enum rp_code code = RP_OK;

    if (steps && *steps) {
        code = rp_step_table_read(&dataset->steps, steps, err);
        if (code != RP_OK)
            return rp_err_context(err, code, "the patterns of steps that REPRISE_STEPS names");
    }
    if (categories && *categories) {
        code = rp_category_table_read(&dataset->categories, categories, err);
        if (code != RP_OK)
            return rp_err_context(err, code, "the categories that REPRISE_CATEGORIES names");
    }
    return code;
}

enum rp_code rp_open(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                     const struct rp_open_options *options, struct rp_dataset **out,
                     struct rp_err *err)
{
    struct rp_open_options o = {0};
    struct rp_dataset *dataset;

    *out = NULL;
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    if (!npaths)
        return rp_err_set(err, RP_USAGE, "no file, folder or '-' was given");
    dataset = calloc(1, sizeof *dataset);
    RP_TRY(rp_err_need(dataset, err, "opening inputs"));
    dataset->ctx = ctx;
    dataset->limits = RP_LIMITS_DEFAULT;
    dataset->salvage = o.salvage != 0;
    dataset->given = strdup(paths[0]);
    dataset->ngiven = npaths;
    enum rp_code code = rp_err_need(dataset->given, err, "opening inputs");
    if (code == RP_OK)
        code = read_tables(dataset, err);
    if (code == RP_OK)
        code = rp_sources_open(paths, npaths, &dataset->limits, &dataset->sources, err);
    if (code == RP_OK && !rp_sources_count(dataset->sources))
        code = rp_err_set(err, RP_FORMAT, "'%s' contains no files", paths[0]);
    if (ctx && ctx->team)
        code = rp_team_agree(ctx->team, code, err);
    if (code != RP_OK) {
        rp_dataset_free(dataset);
        return code;
    }
    *out = dataset;
    return RP_OK;
}

void rp_dataset_free(struct rp_dataset *dataset)
{
    if (!dataset)
        return;
    rp_sources_close(dataset->sources);
    rp_step_table_release(&dataset->steps);
    rp_category_table_release(&dataset->categories);
    free(dataset->given);
    free(dataset);
}

size_t rp_dataset_count(const struct rp_dataset *dataset)
{
    return rp_sources_count(dataset->sources);
}

size_t rp_formats(size_t first, size_t n, struct rp_format_view *out, size_t size)
{
    static const char *const kinds[] = {[RP_FORMAT_KIND_TRACE] = "trace",
                                        [RP_FORMAT_KIND_PROGRAM] = "program",
                                        [RP_FORMAT_KIND_BUFFERS] = "buffers",
                                        [RP_FORMAT_KIND_DIGEST] = "digest",
                                        [RP_FORMAT_KIND_COMPILES] = "compiles"};
    const struct rp_format *format;
    size_t i;

    for (i = 0; i < n && (format = rp_format_at(first + i)); i++) {
        struct rp_format_view view = {format->name, kinds[format->kind], format->summary,
                                      format->files, format->written_by};

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return i;
}

const char *rp_dataset_borrow_name(const struct rp_dataset *dataset, size_t i)
{
    return i < rp_dataset_count(dataset) ? rp_sources_borrow(dataset->sources, i)->name : NULL;
}
