/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one job per source on the context's pool. If there are fewer sources than threads, a reader
 * may use a second thread for itself. Progress is counted in bytes of a single source, or in files;
 * only the calling thread reports it. Cancelling stops the other threads at their next report.
 */
#include "dataset/load.h"

#include "dataset/captures.h"
#include "dataset/selection.h"
#include "dataset/trust.h"
#include "dataset/windows.h"
#include "formats/formats.h"
#include "trace/copy.h"
#include "trace/merged.h"
#include "trace/meta.h"
#include "trace/step_marks.h"
#include "trace/unfold.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct load {
    struct rp_ctx *ctx;
    const struct rp_dataset *dataset;
    rp_trace_job *job;
    void *user;
    bool threaded;                     /* a reader may use a second thread */
    bool divide;                       /* divide merged traces into their ranks */
    bool memory;                       /* files that record only memory are ranks, too */
    bool no_memory;                    /* naming such a file is an error */
    struct rp_rank_reading *how;       /* NULL for all sources, without digests */
    struct rp_capture_files *captures; /* files that were read before are reused; or NULL */
    struct rp_windows windows; /* the windows of one process; empty if traces are not ranks */
    pthread_t caller;
    size_t nsources;
    bool must_read;                             /* a file that cannot be read is an error */
    _Atomic size_t finished, traces, snapshots; /* the last: left out */
    _Atomic bool cancelled;
};

/* One source being read. */
struct reading {
    struct load *load;
    const char *name;
};

static bool report_progress(void *user, uint64_t done, uint64_t total)
{
    const struct reading *reading = user;
    struct load *load = reading->load;
    struct rp_ctx *ctx = load->ctx;

    if (load->nsources > 1) {
        done = atomic_load(&load->finished);
        total = load->nsources;
    }
    if (ctx->progress && pthread_equal(load->caller, pthread_self()) &&
        ctx->progress(ctx->progress_user, reading->name, done, total))
        atomic_store(&load->cancelled, true);
    return !atomic_load(&load->cancelled);
}

bool rp_format_identifies(struct rp_input *in, const struct rp_format *format)
{
    const uint8_t *head;
    size_t n;

    return format && rp_input_peek(in, RP_SNIFF_BYTES, &head, &n, NULL) == RP_OK &&
           format->sniff(head, n, rp_input_borrow_name(in)) > RP_SNIFF_FALLBACK;
}

/* Whether it is only noted that a file found in a folder cannot be read. That holds for damage, but
   not if memory or descriptors ran out. */
static bool is_noted(const struct load *load, const struct rp_source *source,
                     const struct rp_err *failure)
{
    enum rp_code code = failure->code;

    return source->found && load->dataset->trust && !load->must_read &&
           failure->os_errno != EMFILE && failure->os_errno != ENFILE &&
           (code == RP_FORMAT || code == RP_LIMIT || code == RP_UNSUPPORTED || code == RP_IO);
}

static enum rp_code note_unread(struct load *load, size_t i, enum rp_unread_why why,
                                const char *reason, struct rp_err *err)
{
    if (!load->dataset->trust)
        return RP_OK;
    return rp_trust_unread(load->dataset->trust, load->dataset, i, why, reason, err);
}

/* Marks steps by the name that the user gives or gave to `record`, otherwise by the user's
   patterns. */
static enum rp_code mark_steps(const struct rp_dataset *dataset, struct rp_trace *trace,
                               struct rp_err *err)
{
    const struct rp_step_table *table = &dataset->steps;
    const char *name = dataset->step_name;
    bool found = false;
    char recorded[256];

    if (!name && rp_trace_meta(trace, RP_CUT_KEY))
        return RP_OK; /* a part of a trace has its own steps */

    /* Find in a recording the name that `record --step-name` was given; "" if none. */
    *recorded = '\0';
    for (uint32_t i = 0; i < trace->nmeta; i++)
        if (!strcmp(rp_trace_str(trace, trace->meta[i].key), "step_name")) {
            const char *value = rp_trace_str(trace, trace->meta[i].value);
            size_t n = rp_trace_str_len(trace, trace->meta[i].value);

            if (n > 2 && n - 2 < sizeof recorded && value[0] == '"') /* JSON */
                snprintf(recorded, sizeof recorded, "%.*s", (int)(n - 2), value + 1);
        }

    if (name || *recorded)
        RP_TRY(rp_trace_name_steps(trace, name ? name : recorded, &found, err));
    if (found && dataset->trust)
        dataset->trust->steps_named = true; /* every thread writes the same value */
    return !found && table->patterns.n ? rp_trace_mark_steps(trace, table, err) : RP_OK;
}

static enum rp_code fail_with(struct rp_err *err, const struct rp_err *failure)
{
    if (err)
        *err = *failure;
    return failure->code;
}

static enum rp_code read_trace_source(struct load *load, const struct rp_source *source, size_t i,
                                      struct rp_import *import, struct rp_err *err)
{
    struct reading reading = {.load = load, .name = source->name};
    struct rp_read_options options = {.limits = &load->dataset->limits,
                                      .salvage = load->dataset->salvage,
                                      .threaded = load->threaded,
                                      .progress = report_progress,
                                      .progress_user = &reading};
    struct rp_err failure = RP_ERR_INIT;
    const struct rp_format *format = NULL;
    struct rp_input *in;
    enum rp_code code = rp_source_open(load->dataset->sources, i, &in, &failure);

    if (code != RP_OK && is_noted(load, source, &failure))
        return note_unread(load, i, RP_UNREAD_UNOPENED, failure.text, err);
    if (code != RP_OK)
        return fail_with(err, &failure);
    if (source->found && rp_format_sniff(in, &format, NULL) == RP_FORMAT) {
        /* A file that the user did not name need not be a trace. */
        const uint8_t *head;
        size_t n = 0;
        bool empty = rp_input_peek(in, 1, &head, &n, NULL) == RP_OK && n == 0;
        rp_input_close(in);
        return note_unread(load, i, empty ? RP_UNREAD_EMPTY : RP_UNREAD_UNKNOWN, "", err);
    }
    if (format && format->kind == RP_FORMAT_KIND_PROGRAM && !load->must_read) {
        rp_input_close(in); /* a program beside traces is not one of their ranks */
        return RP_OK;
    }
    bool certain = !source->found || rp_format_identifies(in, format);
    code = rp_format_read(in, &options, import, &failure);
    if (!certain && (code == RP_FORMAT || code == RP_LIMIT || code == RP_UNSUPPORTED))
        code = note_unread(load, i, RP_UNREAD_OTHER, failure.text, err);
    else if (code != RP_OK && is_noted(load, source, &failure))
        code = note_unread(load, i, RP_UNREAD_DAMAGED, failure.text, err);
    else if (code != RP_OK)
        return fail_with(err, &failure);
    if (code == RP_OK && import->trace && !import->borrows_input)
        code = rp_trace_unfold(&import->trace, &load->dataset->limits, err);
    if (code == RP_OK && import->trace)
        code = mark_steps(load->dataset, import->trace, err);
    return code;
}

static enum rp_code not_a_trace(const struct rp_source *source, const struct rp_format *format,
                                struct rp_err *err)
{
    if (!format)
        return rp_err_set(err, RP_FORMAT, "'%s' is not a trace", source->name);
    if (format->kind == RP_FORMAT_KIND_BUFFERS)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' is not a trace but a buffer assignment (%s); try 'reprise memory'",
                          source->name, format->name);
    if (format->kind == RP_FORMAT_KIND_DIGEST)
        return rp_err_set(
            err, RP_FORMAT,
            "'%s' is a digest, which has no events: this needs the traces that it was "
            "made from",
            source->name);
    if (format->kind == RP_FORMAT_KIND_COMPILES)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' is not a trace but a compile log (%s); try 'reprise dump compiles'",
                          source->name, format->name);
    if (format->memory_only)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' is not a trace but a memory snapshot (%s); try 'reprise memory'",
                          source->name, format->name);
    return rp_err_set(err, RP_FORMAT, "'%s' is not a trace but a program (%s); try 'reprise graph'",
                      source->name, format->name);
}

enum rp_code rp_load_merged_rank(const struct rp_dataset *dataset, const struct rp_trace *whole,
                                 const struct rp_merged_rank *rank, struct rp_trace **out,
                                 struct rp_err *err)
{
    RP_TRY(rp_merged_split(whole, rank, &dataset->limits, out, err));
    return mark_steps(dataset, *out, err);
}

static enum rp_code call_job(struct load *load, const struct rp_loaded *loaded, struct rp_err *err)
{
    if (load->dataset->trust) {
        RP_TRY(rp_trust_loaded(load->dataset->trust, loaded, err));

        /* Checks that the name by which other files were skipped tells the right number. */
        const struct rp_selection *s =
            load->dataset->selection ? &load->dataset->selection[loaded->index] : NULL;
        if (s && s->by == RP_KNOWN_BY_NAME && loaded->trace->rank >= 0 &&
            loaded->trace->rank != s->number)
            load->dataset->trust->misjudged = true; /* every thread writes the same value */
    }
    return load->job(load->user, loaded, err);
}

void rp_loaded_take(const struct rp_loaded *loaded, struct rp_import *out)
{
    *out = *loaded->import;
    *loaded->import = (struct rp_import)RP_IMPORT_INIT;
}

static enum rp_code run_parts(struct load *load, struct rp_loaded loaded,
                              const struct rp_merged *merged, struct rp_err *err)
{
    const struct rp_trace *whole = loaded.trace;
    enum rp_code code = rp_trace_require(whole, RP_NEED_ALL, err);

    for (size_t i = 0; i < merged->n && code == RP_OK; i++) {
        struct rp_import rank = RP_IMPORT_INIT;

        code = rp_load_merged_rank(load->dataset, whole, &merged->ranks[i], &rank.trace, err);
        loaded.trace = rank.trace;
        loaded.import = &rank;
        loaded.part = (uint32_t)i;
        if (code == RP_OK)
            code = call_job(load, &loaded, err);
        rp_import_release(&rank);
    }
    return code;
}

bool rp_is_skipped(const struct rp_dataset *dataset, size_t i)
{
    return dataset->selection && dataset->selection[i].skip;
}

/* Reads a source; *skip tells that it is known and left out. */
static enum rp_code read_source(struct load *load, size_t i, struct rp_import *import, bool *skip,
                                struct rp_err *err)
{
    const struct rp_source *source = rp_sources_borrow(load->dataset->sources, i);
    enum rp_code code = RP_OK;

    *skip = false;
    if (!load->captures || !rp_capture_files_take(load->captures, i, import, &code, skip, err))
        code = read_trace_source(load, source, i, import, err);
    return code;
}

/* Calls the job if a source turned out to be a trace. */
static enum rp_code use_import(struct load *load, size_t i, struct rp_import *import,
                               struct rp_err *err)
{
    const struct rp_source *source = rp_sources_borrow(load->dataset->sources, i);
    struct rp_loaded loaded = {.source = source, .index = i, .dataset = load->dataset};

    if (!import->trace && import->format && import->format->kind == RP_FORMAT_KIND_DIGEST) {
        struct rp_input *in = import->input;
        if (!load->how || !load->how->digest)
            return not_a_trace(rp_sources_borrow(load->dataset->sources, i), import->format, err);
        atomic_fetch_add(&load->traces, 1);
        import->input = NULL;
        return load->how->digest(load->user, i, in, err);
    }
    if (import->trace && source->found && load->divide && !load->memory &&
        import->format->memory_only) {
        /* a snapshot beside the traces of a run: not one of its ranks */
        atomic_fetch_add(&load->snapshots, 1);
        return RP_OK;
    }
    if (import->trace && source->found && load->divide && import->beside_another)
        return RP_OK; /* its events are in the trace of the other file */
    if (import->trace ? load->no_memory && import->format->memory_only
                      : load->nsources == 1 && !source->found)
        return not_a_trace(source, import->format, err);
    if (!import->trace)
        return RP_OK;
    atomic_fetch_add(&load->traces, 1);
    loaded.trace = import->trace;
    loaded.import = import;
    loaded.format = import->format->name;
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_merged merged = {0};
    if (load->divide)
        RP_TRY(rp_merged_read(loaded.trace, &arena, &merged, err));
    return merged.n ? run_parts(load, loaded, &merged, err) : call_job(load, &loaded, err);
}

/* Calls the job once for the windows of a process, or for each one if they are not windows. */
static enum rp_code use_windows(struct load *load, const size_t *source, struct rp_import *imports,
                                size_t n, struct rp_err *err)
{
    const struct rp_trace **traces = calloc(n, sizeof *traces);
    struct rp_import whole = {.format = imports[0].format};
    bool joined = false;
    enum rp_code code = rp_err_need(traces, err, "joining windows");
    size_t i, count = 0;

    for (i = 0; i < n && traces; i++)
        if (imports[i].trace)
            traces[count++] = imports[i].trace;
    if (code == RP_OK && count == n)
        code = rp_windows_join(traces, n, &load->dataset->limits, &whole.trace, err);
    joined = whole.trace != NULL;
    if (code == RP_OK && joined) {
        code = mark_steps(load->dataset, whole.trace, err);
        if (code == RP_OK)
            code = use_import(load, source[0], &whole, err);
    }
    for (i = 0; i < n && code == RP_OK && !joined; i++)
        code = use_import(load, source[i], &imports[i], err);
    rp_import_release(&whole);
    free(traces);
    return code;
}

/* Lists the windows of the process of which source i is the first; returns how many there are. */
static size_t list_windows(const struct load *load, size_t i, size_t *out)
{
    size_t n = 0;

    for (; i != RP_NO_WINDOW; i = load->windows.next[i])
        if (!rp_is_skipped(load->dataset, i))
            out[n++] = i;
    return n;
}

static enum rp_code load_windows(struct load *load, size_t i, struct rp_err *err)
{
    size_t *source = calloc(load->windows.n, sizeof *source), n, k;
    struct rp_import *imports = NULL;

    n = source ? list_windows(load, i, source) : 0;
    imports = calloc(n + 1, sizeof *imports);
    enum rp_code code = rp_err_need(source && imports, err, "joining windows");
    for (k = 0; k < n && code == RP_OK; k++) {
        bool skip;

        code = read_source(load, source[k], &imports[k], &skip, err);
        atomic_fetch_add(&load->finished, 1);
    }
    if (code == RP_OK && n)
        code = use_windows(load, source, imports, n, err);
    for (k = 0; k < n && imports; k++)
        rp_import_release(&imports[k]);
    free(imports);
    free(source);
    return code;
}

/* Finds the sources of a shard: *begin to *end of n, in the order of the sources. */
static void shard_range(size_t shard, size_t nshards, size_t n, size_t *begin, size_t *end)
{
    *begin = nshards ? n / nshards * shard + n % nshards * shard / nshards : 0;
    shard++;
    *end = nshards ? n / nshards * shard + n % nshards * shard / nshards : n;
}

static bool is_in_shard(const struct load *load, size_t i)
{
    size_t begin = 0, end = load->nsources;

    if (load->how && !load->how->next)
        shard_range(load->how->shard, load->how->nshards, load->nsources, &begin, &end);
    return i >= begin && i < end;
}

static enum rp_code load_trace(void *user, size_t i, struct rp_err *err)
{
    struct load *load = user;
    struct rp_import import = RP_IMPORT_INIT;
    bool skip;

    if (load->how && load->how->next)
        i = (size_t)atomic_fetch_add(load->how->next,
                                     1); /* sources are taken in turn, whatever the pool asks for */
    if (!is_in_shard(load, i))
        return RP_OK;
    if (load->windows.n && load->windows.previous[i] != RP_NO_WINDOW)
        return RP_OK; /* it was read with the first window */
    if (load->windows.n && load->windows.next[i] != RP_NO_WINDOW)
        return load_windows(load, i, err);
    if (rp_is_skipped(load->dataset, i))
        return RP_OK;
    enum rp_code code = read_source(load, i, &import, &skip, err);
    if (code == RP_OK && skip)
        atomic_fetch_add(&load->traces, 1);
    else if (code == RP_OK)
        code = use_import(load, i, &import, err);
    rp_import_release(&import);
    atomic_fetch_add(&load->finished, 1);
    return code;
}

enum rp_code rp_load_trace(const struct rp_dataset *dataset, size_t i, struct rp_import *out,
                           struct rp_err *err)
{
    const struct rp_source *source = rp_sources_borrow(dataset->sources, i);
    struct load load = {.ctx = dataset->ctx,
                        .dataset = dataset,
                        .threaded = true,
                        .caller = pthread_self(),
                        .nsources = 1};

    RP_TRY(read_trace_source(&load, source, i, out, err));
    if (out->trace || source->found)
        return RP_OK;
    not_a_trace(source, out->format, err);
    rp_import_release(out);
    return RP_FORMAT;
}

enum rp_code rp_no_trace(const struct rp_dataset *dataset, size_t snapshots, struct rp_err *err)
{
    const struct rp_unread *failure = dataset->trust ? rp_trust_failure(dataset->trust) : NULL;
    size_t n = rp_sources_count(dataset->sources);

    if (failure)
        return rp_err_set(err, failure->why == RP_UNREAD_UNOPENED ? RP_IO : RP_FORMAT, "%s",
                          failure->reason);
    return rp_err_set(err, RP_FORMAT, "'%s' contains no trace (%zu file%s)%s", dataset->given, n,
                      n == 1 ? "" : "s",
                      snapshots ? "; for the memory snapshots in it try 'reprise memory'" : "");
}

static enum rp_code load_all(struct load load, struct rp_err *err)
{
    const struct rp_dataset *dataset = load.dataset;
    struct rp_arena arena = RP_ARENA_INIT;
    size_t n = rp_sources_count(dataset->sources);
    enum rp_code code = RP_OK;

    load.nsources = n;
    load.threaded = n < rp_pool_threads(load.ctx->pool);
    load.caller = pthread_self();
    if (load.divide)
        code = rp_windows_find(dataset->sources, &arena, &load.windows, err);
    if (code == RP_OK)
        code = rp_pool_each(load.ctx->pool, n, load_trace, &load, err);
    rp_arena_release(&arena);
    if (load.how) {
        load.how->traces = atomic_load(&load.traces);
        load.how->snapshots = atomic_load(&load.snapshots);
    }
    if (code != RP_OK || atomic_load(&load.traces) || (load.how && load.how->nshards))
        return code;
    return rp_no_trace(dataset, atomic_load(&load.snapshots), err);
}

enum rp_code rp_each_trace(struct rp_ctx *ctx, const struct rp_dataset *dataset, rp_trace_job *job,
                           void *user, struct rp_err *err)
{
    return load_all((struct load){.ctx = ctx, .dataset = dataset, .job = job, .user = user}, err);
}

enum rp_code rp_each_trace_of_job(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  rp_trace_job *job, void *user, struct rp_err *err)
{
    if (dataset->trust)
        dataset->trust->is_job = true;
    return load_all(
        (struct load){.ctx = ctx, .dataset = dataset, .job = job, .user = user, .must_read = true},
        err);
}

enum rp_code rp_each_rank(struct rp_ctx *ctx, const struct rp_dataset *dataset, rp_trace_job *job,
                          void *user, struct rp_err *err)
{
    return load_all(
        (struct load){.ctx = ctx, .dataset = dataset, .job = job, .user = user, .divide = true},
        err);
}

enum rp_code rp_each_rank_read(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               struct rp_rank_reading *how, rp_trace_job *job, void *user,
                               struct rp_err *err)
{
    return load_all((struct load){.ctx = ctx,
                                  .dataset = dataset,
                                  .job = job,
                                  .user = user,
                                  .divide = how->captures != NULL,
                                  .memory = how->memory,
                                  .no_memory = how->captures && !how->memory,
                                  .how = how,
                                  .captures = how->captures},
                    err);
}

enum rp_code rp_each_rank_in_order(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                   rp_trace_job *job, void *user, struct rp_err *err)
{
    size_t i, n = rp_sources_count(dataset->sources);
    struct load load = {.ctx = ctx, .dataset = dataset, .job = job, .user = user, .divide = true};
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;

    RP_TRY(rp_windows_find(dataset->sources, &arena, &load.windows, err));
    load.nsources = n;
    load.threaded = rp_pool_threads(ctx->pool) > 1;
    load.caller = pthread_self();
    for (i = 0; i < n; i++)
        RP_TRY(load_trace(&load, i, err));
    return RP_OK;
}

bool rp_is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
