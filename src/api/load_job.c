/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of the ranks are listed first; then their traces are read, several at a time, each
 * into the rank of its folder, and the texts after them.
 */
#include "api/load_job.h"

#include "facts/job_records.h"
#include "formats/job_texts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum file { NO_FILE, OPS, TIMELINE, TRANSFERS, GRAPH, RINGS, FILES };

/* Which file of a rank a path is, by its last part. */
static enum file file_of(const char *name)
{
    static const struct {
        const char *name;
        enum file file;
    } files[] = {{"trace.json.gz", OPS},
                 {"trace.json", OPS},
                 {"comm.json", TIMELINE},
                 {"comm.json.gz", TIMELINE},
                 {"comm_detail.json", TRANSFERS},
                 {"comm_detail.json.gz", TRANSFERS},
                 {"dag.gml", GRAPH},
                 {"nccl_rank_graph.json", RINGS}};
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    size_t i;

    for (i = 0; i < sizeof files / sizeof files[0]; i++)
        if (!strcmp(last, files[i].name))
            return files[i].file;
    return NO_FILE;
}

static size_t folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? (size_t)(slash - name) : 0;
}

static bool same_folder(const char *a, const char *b)
{
    size_t n = folder_length(a);

    return n == folder_length(b) && !memcmp(a, b, n);
}

bool rp_dataset_is_job(const struct rp_dataset *dataset)
{
    size_t i, k, n = rp_dataset_count(dataset);

    for (i = 0; i < n; i++) {
        const char *name = rp_sources_borrow(dataset->sources, i)->name;

        if (file_of(name) != TRANSFERS)
            continue;
        for (k = 0; k < n; k++) {
            const char *other = rp_sources_borrow(dataset->sources, k)->name;

            if (file_of(other) == GRAPH && same_folder(name, other))
                return true;
        }
        return false;
    }
    return false;
}

/* ------------------------------------------------------------------ folders */

struct loading {
    const struct rp_dataset *dataset;
    struct rp_job *job;
    const char **folder; /* by rank: the name of a source in it */
    uint8_t *seen;       /* by rank: bits of enum file */
};

/* ".../host1/3": the host and the number on it. */
static enum rp_code name_rank(struct rp_job_rank *r, const char *name, struct rp_err *err)
{
    size_t end = folder_length(name), slash = end, from;

    while (slash > 0 && name[slash - 1] != '/')
        slash--;
    r->local = strtoll(name + slash, NULL, 10);
    end = slash > 0 ? slash - 1 : 0;
    for (from = end; from > 0 && name[from - 1] != '/' && name[from - 1] != '!';)
        from--;
    r->host = rp_arena_copy(&r->arena, name + from, end - from);
    r->number = -1;
    return r->host ? RP_OK : rp_err_nomem(err, "reading a job");
}

static enum rp_code list_ranks(struct loading *l, struct rp_err *err)
{
    size_t i, n = rp_dataset_count(l->dataset);

    l->job->ranks = calloc(n + 1, sizeof *l->job->ranks);
    l->folder = calloc(n + 1, sizeof *l->folder);
    l->seen = calloc(n + 1, 1);
    if (!l->job->ranks || !l->folder || !l->seen)
        return rp_err_nomem(err, "reading a job");
    for (i = 0; i < n; i++) {
        const char *name = rp_sources_borrow(l->dataset->sources, i)->name;
        struct rp_job_rank *r = &l->job->ranks[l->job->nranks];

        if (file_of(name) != TRANSFERS)
            continue;
        rp_arena_init(&r->arena);
        l->folder[l->job->nranks++] = name;
        RP_TRY(name_rank(r, name, err));
    }
    return RP_OK;
}

static size_t rank_of(const struct loading *l, const char *name)
{
    size_t i;

    for (i = 0; i < l->job->nranks; i++)
        if (same_folder(l->folder[i], name))
            return i;
    return SIZE_MAX;
}

/* ------------------------------------------------------------------ files */

struct traces {
    struct loading *l;
    pthread_mutex_t lock; /* files of one rank share its arena */
};

static enum rp_code take(struct rp_job_rank *rank, enum file file, const struct rp_trace *trace,
                         struct rp_err *err)
{
    switch (file) {
    case OPS:
        return rp_job_read_ops(trace, rank, err);
    case TIMELINE:
        return rp_job_read_timeline(trace, rank, err);
    case TRANSFERS:
        return rp_job_read_transfers(trace, rank, err);
    default:
        return RP_OK;
    }
}

static enum rp_code read_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct traces *t = user;
    enum file file = file_of(loaded->source->name);
    size_t rank = rank_of(t->l, loaded->source->name);
    enum rp_code code;

    if (rank == SIZE_MAX)
        return RP_OK;
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ARGS, err));
    pthread_mutex_lock(&t->lock);
    t->l->seen[rank] |= (uint8_t)(1u << file);
    code = take(&t->l->job->ranks[rank], file, loaded->trace, err);
    pthread_mutex_unlock(&t->lock);
    return code;
}

static enum rp_code read_text(struct loading *l, size_t source, size_t rank, enum file file,
                              struct rp_err *err)
{
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;
    enum rp_code code;

    RP_TRY(rp_source_open(l->dataset->sources, source, &in, err));
    code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK)
        code = file == GRAPH ? rp_job_read_graph((const char *)bytes, n, &l->job->ranks[rank], err)
                             : rp_job_read_rings((const char *)bytes, n, &l->job->ranks[rank], err);
    if (code != RP_OK)
        rp_err_prefix(err, code, "%s", rp_sources_borrow(l->dataset->sources, source)->name);
    rp_input_close(in);
    l->seen[rank] |= (uint8_t)(1u << file);
    return code;
}

static enum rp_code read_texts(struct loading *l, struct rp_err *err)
{
    size_t i, rank;

    for (i = 0; i < rp_dataset_count(l->dataset); i++) {
        const char *name = rp_sources_borrow(l->dataset->sources, i)->name;
        enum file file = file_of(name);

        rank = file == GRAPH || file == RINGS ? rank_of(l, name) : SIZE_MAX;
        if (rank != SIZE_MAX)
            RP_TRY(read_text(l, i, rank, file, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static int by_number(const void *pa, const void *pb)
{
    const struct rp_job_rank *a = pa, *b = pb;

    return (a->number > b->number) - (a->number < b->number);
}

static enum rp_code check(const struct loading *l, struct rp_err *err)
{
    static const char *const names[FILES] = {[OPS] = "trace.json.gz",
                                             [TIMELINE] = "comm.json",
                                             [GRAPH] = "dag.gml",
                                             [RINGS] = "nccl_rank_graph.json"};
    size_t i;
    int f;

    for (i = 0; i < l->job->nranks; i++)
        for (f = OPS; f < FILES; f++)
            if (names[f] && !(l->seen[i] & 1u << f))
                return rp_err_set(err, RP_FORMAT, "%.*s has no '%s'",
                                  (int)folder_length(l->folder[i]), l->folder[i], names[f]);
    return RP_OK;
}

static enum rp_code load(struct rp_ctx *ctx, struct loading *l, struct rp_err *err)
{
    struct traces traces = {.l = l};
    enum rp_code code;
    size_t i;

    RP_TRY(list_ranks(l, err));
    pthread_mutex_init(&traces.lock, NULL);
    code = rp_each_trace(ctx, l->dataset, read_trace, &traces, err);
    pthread_mutex_destroy(&traces.lock);
    RP_TRY(code);
    RP_TRY(read_texts(l, err));
    RP_TRY(check(l, err));
    for (i = 0; i < l->job->nranks; i++)
        l->job->has_transfers |= l->job->ranks[i].transfers.n > 0;
    qsort(l->job->ranks, l->job->nranks, sizeof *l->job->ranks, by_number);
    return RP_OK;
}

enum rp_code rp_load_job(struct rp_ctx *ctx, const struct rp_dataset *dataset, struct rp_job *out,
                         struct rp_err *err)
{
    struct loading l = {.dataset = dataset, .job = out};
    enum rp_code code;

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    code = load(ctx, &l, err);
    free((void *)l.folder);
    free(l.seen);
    return code;
}
