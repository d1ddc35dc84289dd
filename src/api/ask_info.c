/* SPDX-License-Identifier: Apache-2.0 */
/* `info`: what each file is, and whether it can be trusted. */
#include "api/load.h"
#include "api/question_row.h"
#include "explain/trace_info.h"

#include <pthread.h>

struct info_root {
    size_t nfiles, nrows, nblocks, nnotes;
    struct rp_info_file *files;
    struct rp_info_file *rows, *blocks; /* the same on the screen: one of the two */
    const char **notes;
};

struct info_run {
    bool verify;
    bool *present; /* one a source */
    struct rp_info_file *files;
    struct rp_arena *arena; /* shared: under the lock */
    pthread_mutex_t lock;
};

static const struct rp_field info_fields[] = {
    RP_FIELD_LIST(struct info_root, files, &rp_info_file_type, NULL, "one record a file", 0),
    RP_FIELD_LIST(struct info_root, rows, &rp_info_row_type, "files", "one row a file", RP_SCREEN),
    RP_FIELD_LIST(struct info_root, blocks, &rp_info_file_type, "files", "one block a file",
                  RP_BLOCKS | RP_SCREEN),
    RP_FIELD_LIST(struct info_root, notes, &rp_type_string, "notes", "about the rows", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type info_type = {"info", sizeof(struct info_root), info_fields, "files"};

static enum rp_code rank(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct info_run *run = user;
    enum rp_code code;

    if (run->verify) {
        RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
        RP_TRY(rp_trace_validate(loaded->trace, err));
    }
    pthread_mutex_lock(&run->lock);
    code = rp_explain_info(loaded->trace, loaded->source->name, loaded->format, run->arena,
                           &run->files[loaded->index], err);
    run->present[loaded->index] = true;
    pthread_mutex_unlock(&run->lock);
    return code;
}

/* What is wrong with how the files fit together as the ranks of one run. */
static enum rp_code note_ranks(struct info_root *root, struct rp_arena *arena, struct rp_err *err)
{
    int64_t world = RP_ABSENT_I64;
    size_t i, known = 0;

    root->notes = RP_ARENA_NEW(arena, const char *, 2);
    if (!root->notes)
        return rp_err_nomem(err, "describing traces");
    for (i = 0; i < root->nfiles; i++) {
        known += root->files[i].rank != RP_ABSENT_I64;
        if (root->files[i].world_size != RP_ABSENT_I64)
            world = root->files[i].world_size;
    }
    if (known == root->nfiles && world != RP_ABSENT_I64 && (int64_t)known < world)
        root->notes[root->nnotes++] = rp_arena_printf(
            arena, "%zu of the %lld ranks of the job are here", known, (long long)world);
    root->notes[root->nnotes++] = "'--long' shows each file";
    return root->notes[0] ? RP_OK : rp_err_nomem(err, "describing traces");
}

/* Moves the files that were traces together, in the order of the sources. */
static enum rp_code join(struct info_run *run, size_t n, bool blocks, struct info_root *root,
                         struct rp_err *err)
{
    size_t i;

    root->files = run->files;
    for (i = 0; i < n; i++) {
        if (run->present[i])
            root->files[root->nfiles++] = run->files[i];
    }
    root->rows = root->blocks = root->files;
    if (blocks || root->nfiles == 1) {
        root->nblocks = root->nfiles;
        return RP_OK;
    }
    root->nrows = root->nfiles;
    return note_ranks(root, run->arena, err);
}

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    size_t n = rp_dataset_count(dataset);
    struct info_run info = {.verify = rp_settings_flag(settings, "verify"),
                            .arena = &result->arena};
    enum rp_code code;

    info.files = RP_ARENA_NEW(&result->arena, struct rp_info_file, n);
    info.present = RP_ARENA_NEW(&result->arena, bool, n);
    if (!info.files || !info.present)
        return rp_err_nomem(err, "describing traces");
    pthread_mutex_init(&info.lock, NULL);
    code = rp_each_trace(ctx, dataset, rank, &info, err);
    pthread_mutex_destroy(&info.lock);
    if (code == RP_OK)
        code = join(&info, n, rp_settings_flag(settings, "long"), result->root, err);
    return code;
}

static const struct rp_option options[] = {
    {"long", 'l', RP_OPT_FLAG, NULL, NULL, "all about each file, also of several", 0},
    {"verify", 0, RP_OPT_FLAG, NULL, NULL, "check everything, also the checksums of a native file",
     0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_info = {
    .question = {.name = "info",
                 .group = "traces",
                 .summary = "what is in a trace, and is it healthy",
                 .details =
                     "Files, folders, tar archives or '-' for standard input; gzip, zstd and "
                     "xz are read as they are. Of a folder, files that are no traces are "
                     "passed over. A file that ends early is read up to the break, with a "
                     "warning; a damaged one is refused unless --salvage is given.",
                 .examples = "reprise info trace.json.gz\tone trace\n"
                             "reprise info run/\tall ranks of a run\n"
                             "reprise info --json trace.json.gz\tfor a script\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &info_type},
    .run = run};
