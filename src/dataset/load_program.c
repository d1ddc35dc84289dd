/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one job per source on the context's pool, as for traces; a file that is not a program is not
   read. */
#include "dataset/load_program.h"

#include <stdatomic.h>
#include <string.h>

struct load {
    const struct rp_dataset *dataset;
    const size_t *chosen; /* the chosen sources; NULL for all of them */
    rp_program_job *job;
    void *user;
    _Atomic size_t programs;
};

/* Reads nothing if a file that the user did not name is not a program. */
static enum rp_code read_program_source(const struct rp_dataset *dataset, size_t i, bool named,
                                        struct rp_import *import, struct rp_err *err)
{
    const struct rp_source *source = rp_sources_borrow(dataset->sources, i);
    struct rp_read_options options = {.limits = &dataset->limits, .salvage = dataset->salvage};
    const struct rp_format *format;
    struct rp_input *in;

    RP_TRY(rp_source_open(dataset->sources, i, &in, err));
    enum rp_code code = rp_format_sniff(in, &format, err);
    if (code == RP_OK && format->kind == RP_FORMAT_KIND_PROGRAM)
        return rp_format_read(in, &options, import, err);
    rp_input_close(in);
    if (!named && (code == RP_OK || code == RP_FORMAT))
        return RP_OK;
    return code == RP_OK ? rp_err_set(err, RP_FORMAT, "'%s' is not a program but a trace (%s)",
                                      source->name, format->name)
                         : code;
}

static enum rp_code load_program(void *user, size_t which, struct rp_err *err)
{
    struct load *load = user;
    size_t i = load->chosen ? load->chosen[which] : which;
    const struct rp_source *source = rp_sources_borrow(load->dataset->sources, i);
    RP_SCOPED(rp_import_release) struct rp_import import = RP_IMPORT_INIT;

    RP_TRY(read_program_source(load->dataset, i, !source->found, &import, err));
    if (import.program) {
        struct rp_loaded_program loaded = {source, import.program, import.format->name, i};

        atomic_fetch_add(&load->programs, 1);
        RP_TRY(load->job(load->user, &loaded, err));
    }
    return RP_OK;
}

static enum rp_code each_program(struct rp_ctx *ctx, struct load *load, size_t n,
                                 struct rp_err *err)
{
    RP_TRY(rp_pool_each(ctx->pool, n, load_program, load, err));
    if (!atomic_load(&load->programs))
        return rp_err_set(err, RP_FORMAT, "'%s' contains no program",
                          rp_sources_borrow(load->dataset->sources, 0)->path);
    return RP_OK;
}

enum rp_code rp_each_program(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             rp_program_job *job, void *user, struct rp_err *err)
{
    struct load load = {.dataset = dataset, .job = job, .user = user};

    return each_program(ctx, &load, rp_sources_count(dataset->sources), err);
}

enum rp_code rp_each_program_of(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const size_t *sources, size_t n, rp_program_job *job, void *user,
                                struct rp_err *err)
{
    struct load load = {.dataset = dataset, .chosen = sources, .job = job, .user = user};

    return each_program(ctx, &load, n, err);
}

/* A folder that is given twice, to be compared with itself, counts as two folders: the second one
   gets another spelling of its path. */
static const char *distinct_name(const struct rp_dataset *dataset, size_t i, size_t *first,
                                 struct rp_arena *arena)
{
    const struct rp_source *source = rp_sources_borrow(dataset->sources, i), *before;

    if (i && source->given != rp_sources_borrow(dataset->sources, i - 1)->given)
        *first = i;
    before = rp_sources_borrow(dataset->sources, *first);
    if (!*first || strcmp(before->name, rp_sources_borrow(dataset->sources, 0)->name) != 0)
        return source->name;
    return rp_arena_printf(arena, "%s%s", source->name[0] == '/' ? "/" : "./", source->name);
}

enum rp_code rp_dataset_dump(const struct rp_dataset *dataset, struct rp_arena *arena,
                             struct rp_dump *out, struct rp_err *err)
{
    size_t n = rp_sources_count(dataset->sources);
    const char **names = RP_ARENA_NEW(arena, const char *, n + 1);
    size_t first = 0;

    RP_TRY(rp_err_need(names, err, "joining a dump folder"));
    for (size_t i = 0; i < n; i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        names[i] = source->found ? distinct_name(dataset, i, &first, arena) : "";
        RP_TRY(rp_err_need(names[i], err, "joining a dump folder"));
    }
    return rp_dump_index(names, n, arena, out, err);
}

enum rp_code rp_load_program(const struct rp_dataset *dataset, size_t i, struct rp_import *out,
                             struct rp_err *err)
{
    *out = (struct rp_import)RP_IMPORT_INIT;
    return read_program_source(dataset, i, true, out, err);
}
