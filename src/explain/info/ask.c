/* SPDX-License-Identifier: Apache-2.0 */
/* `info`: what each file is, and whether it can be trusted. */
#include "dataset/load.h"
#include "dataset/question.h"
#include "explain/info/info.h"

#include <pthread.h>
#include <stdlib.h>

struct info_root {
    size_t nfiles, nrows, nblocks, nnotes, nunread, nfailures;
    struct rp_info_file *files;
    struct rp_info_file *rows, *blocks; /* the same on the screen: one of the two */
    const char **notes;
    struct rp_unread *unread; /* what was found and could not be read */
    const char **failures;    /* the same on the screen */
};

struct info_run {
    struct rp_load_notes notes; /* in an arena of its own, since the jobs use the other */
    bool verify;
    bool *present; /* one a source */
    struct rp_info_file *files;
    struct rp_arena *arena; /* shared: under the lock */
    pthread_mutex_t lock;
};

static const struct rp_field unread_fields[] = {
    RP_FIELD(struct rp_unread, name, STR, NONE, "file", "the input", 0),
    RP_FIELD(struct rp_unread, reason, STR, NONE, "reason", "why it could not be read", 0),
    RP_FIELD_END};
static const struct rp_type unread_type = {"unread", sizeof(struct rp_unread), unread_fields, NULL};

static const struct rp_field info_fields[] = {
    RP_FIELD_LIST(struct info_root, files, &rp_info_file_type, NULL, "one record a file", 0),
    RP_FIELD_LIST(struct info_root, rows, &rp_info_row_type, "files", "one row a file", RP_SCREEN),
    RP_FIELD_LIST(struct info_root, blocks, &rp_info_file_type, "files", "one block a file",
                  RP_BLOCKS | RP_SCREEN),
    RP_FIELD_LIST(struct info_root, unread, &unread_type, NULL,
                  "traces in a folder or archive that could not be read", 0),
    RP_FIELD_LIST(struct info_root, failures, &rp_type_string, "failures", "not read",
                  RP_SCREEN | RP_WARN),
    RP_FIELD_LIST(struct info_root, notes, &rp_type_string, "notes", "about the rows", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type info_type = {"info", sizeof(struct info_root), info_fields, "files"};

static enum rp_code rank(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct info_run *run = user;
    enum rp_code code;

    if (run->verify && (code = rp_trace_verify(loaded->trace, err)) != RP_OK)
        return rp_err_prefix(err, code, "'%s'", loaded->source->name);
    pthread_mutex_lock(&run->lock);
    code = rp_explain_info(loaded->trace, loaded->source->name, loaded->format, run->arena,
                           &run->files[loaded->index], err);
    run->present[loaded->index] = true;
    pthread_mutex_unlock(&run->lock);
    return code;
}

static int compare_ranks(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* What does not fit together about the files as the ranks of one run; a world of -1: they differ.
 */
struct ranks {
    int64_t world, twice, beyond; /* RP_ABSENT_I64: none */
    size_t known;
};

static enum rp_code look_at_ranks(const struct info_root *root, struct rp_arena *arena,
                                  struct ranks *r, struct rp_err *err)
{
    int64_t *rank = RP_ARENA_NEW(arena, int64_t, root->nfiles);
    size_t i;

    *r = (struct ranks){RP_ABSENT_I64, RP_ABSENT_I64, RP_ABSENT_I64, 0};
    if (!rank)
        return rp_err_nomem(err, "describing traces");
    for (i = 0; i < root->nfiles; i++) {
        const struct rp_info_file *f = &root->files[i];

        if (f->rank != RP_ABSENT_I64)
            rank[r->known++] = f->rank;
        if (f->world_size == RP_ABSENT_I64)
            continue;
        if (r->world != RP_ABSENT_I64 && r->world != f->world_size)
            r->world = -1;
        else if (r->world != -1)
            r->world = f->world_size;
        if (f->rank >= f->world_size)
            r->beyond = f->rank;
    }
    qsort(rank, r->known, sizeof *rank, compare_ranks);
    for (i = 1; i < r->known; i++) {
        if (rank[i] == rank[i - 1])
            r->twice = rank[i];
    }
    return RP_OK;
}

static enum rp_code note_ranks(struct info_root *root, struct rp_arena *arena, struct rp_err *err)
{
    struct ranks r;
    size_t i;

    root->notes = RP_ARENA_NEW(arena, const char *, 5);
    if (!root->notes)
        return rp_err_nomem(err, "describing traces");
    RP_TRY(look_at_ranks(root, arena, &r, err));
    if (r.twice != RP_ABSENT_I64)
        root->notes[root->nnotes++] =
            rp_arena_printf(arena, "rank %lld is there twice: these are not the ranks of one run",
                            (long long)r.twice);
    if (r.world == -1)
        root->notes[root->nnotes++] = "the files name different numbers of ranks";
    if (r.beyond != RP_ABSENT_I64)
        root->notes[root->nnotes++] = rp_arena_printf(
            arena, "rank %lld is beyond the number of ranks its file names", (long long)r.beyond);
    if (r.known == root->nfiles && r.world > (int64_t)r.known)
        root->notes[root->nnotes++] = rp_arena_printf(
            arena, "%zu of the %lld ranks of the job are here", r.known, (long long)r.world);
    root->notes[root->nnotes++] = "'--long' shows each file";
    for (i = 0; i < root->nnotes; i++) {
        if (!root->notes[i])
            return rp_err_nomem(err, "describing traces");
    }
    return RP_OK;
}

/* Moves the notes of the loader into the result. */
static enum rp_code note_unread(struct info_run *run, struct info_root *root, struct rp_err *err)
{
    size_t i, n = run->notes.nunread;

    root->unread = RP_ARENA_NEW(run->arena, struct rp_unread, n);
    root->failures = RP_ARENA_NEW(run->arena, const char *, n);
    if (!root->unread || !root->failures)
        return rp_err_nomem(err, "listing what was not read");
    for (i = 0; i < n; i++) {
        struct rp_unread *row = &root->unread[i];

        row->name = rp_arena_strdup(run->arena, run->notes.unread[i].name);
        row->reason = rp_arena_strdup(run->arena, run->notes.unread[i].reason);
        root->failures[i] = row->reason;
        if (!row->name || !row->reason)
            return rp_err_nomem(err, "listing what was not read");
    }
    root->nunread = root->nfailures = n;
    return RP_OK;
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
    struct rp_arena notes = RP_ARENA_INIT;
    struct info_run info = {.notes = {.arena = &notes},
                            .verify = rp_settings_flag(settings, "verify"),
                            .arena = &result->arena};
    enum rp_code code;

    info.files = RP_ARENA_NEW(&result->arena, struct rp_info_file, n);
    info.present = RP_ARENA_NEW(&result->arena, bool, n);
    if (!info.files || !info.present)
        return rp_err_nomem(err, "describing traces");
    pthread_mutex_init(&info.lock, NULL);
    code = rp_each_trace_noting(ctx, dataset, rank, &info, &info.notes, err);
    pthread_mutex_destroy(&info.lock);
    if (code == RP_OK)
        code = join(&info, n, rp_settings_flag(settings, "long"), result->root, err);
    if (code == RP_OK)
        code = note_unread(&info, result->root, err);
    if (info.notes.nunread)
        result->answer = RP_ANSWER_PARTLY;
    rp_arena_release(&notes);
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
