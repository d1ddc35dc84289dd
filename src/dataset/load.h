/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the traces of a dataset, several at a time. A trace is in memory only while its job runs:
 * of a run with a thousand ranks, at most as many as there are threads.
 */
#include "dataset/dataset.h"
#include "trace/trace.h"

struct rp_import;

struct rp_loaded {
    const struct rp_source *source;
    const struct rp_trace *trace;
    const char *format; /* "chrome-json" */
    size_t index;       /* the index of the source in the dataset */
    uint32_t part;      /* of a merged trace: which of its ranks, from 0; otherwise 0 */
    const struct rp_dataset *dataset;
    /* The owner of the trace. A job that wants to keep the trace takes it by rp_loaded_take, which
       leaves an empty one. */
    struct rp_import *import;
};

/* Gives the trace to the caller, in the import. */
void rp_loaded_take(const struct rp_loaded *loaded, struct rp_import *out);

/* The user's rows of categories, or NULL. */
static inline const struct rp_category_table *rp_loaded_categories(const struct rp_loaded *loaded)
{
    return loaded->dataset ? &loaded->dataset->categories : NULL;
}

/* Runs on any thread; `loaded` and the trace are gone when it returns. */
typedef enum rp_code rp_trace_job(void *user, const struct rp_loaded *loaded, struct rp_err *err);

/*
 * Calls the job once for every trace. A file that the user named and that is not a trace is an
 * error; one that was found in a folder or an archive and is not a trace, or cannot be read, is
 * noted (trust.h) and skipped. It is an error if there is no trace at all.
 */
enum rp_code rp_each_trace(struct rp_ctx *ctx, const struct rp_dataset *dataset, rp_trace_job *job,
                           void *user, struct rp_err *err);

/* Does the same for a job whose ranks have several files: a file that cannot be read is an
   error. */
enum rp_code rp_each_trace_of_job(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  rp_trace_job *job, void *user, struct rp_err *err);

/* Does the same for ranks: a merged trace (trace/merged.h) is divided into the traces from which it
   was made, and the job is called for each of them, one after the other. */
enum rp_code rp_each_rank(struct rp_ctx *ctx, const struct rp_dataset *dataset, rp_trace_job *job,
                          void *user, struct rp_err *err);

struct rp_capture_files;

/* How the ranks of a question are read. */
struct rp_rank_reading {
    /* Files that were already read; recordings of captures are left out. If NULL, each file is read
       as it stands, as by rp_each_trace. */
    struct rp_capture_files *captures;
    /* Files that record only memory (rp_format.memory_only) are ranks, too; otherwise they are left
       out if they were found in a folder, and an error if the user named them. */
    bool memory;
    size_t shard, nshards; /* only this shard, from 0, of so many; nshards is 0 for all */
    /* The number of the next source that nobody has taken, or NULL: several processes read one
       list, and each source is read once. */
    _Atomic uint64_t *next;
    /* Called from any thread for a source that holds digests; takes the input. If NULL, such a
       source is an error. */
    enum rp_code (*digest)(void *user, size_t source, struct rp_input *in, struct rp_err *err);
    /* Set when all is read; from shards nobody knows whether there is any trace. */
    size_t traces, snapshots; /* the last: left out */
};

enum rp_code rp_each_rank_read(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               struct rp_rank_reading *how, rp_trace_job *job, void *user,
                               struct rp_err *err);

/* Sets the error that there is no trace at all. */
enum rp_code rp_no_trace(const struct rp_dataset *dataset, size_t snapshots, struct rp_err *err);

/* Does the same, one after the other, in the order of the sources. */
enum rp_code rp_each_rank_in_order(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                   rp_trace_job *job, void *user, struct rp_err *err);

/* Makes the trace of a rank of a merged trace as rp_each_rank gives it; `whole` must be read
   completely (RP_NEED_ALL). The caller frees it. */
struct rp_merged_rank;
enum rp_code rp_load_merged_rank(const struct rp_dataset *dataset, const struct rp_trace *whole,
                                 const struct rp_merged_rank *rank, struct rp_trace **out,
                                 struct rp_err *err);

/* Whether a source need not be read for the question (selection.h). */
bool rp_is_skipped(const struct rp_dataset *dataset, size_t i);

/* Whether two paths are the same file; false if one of them does not exist. */
bool rp_is_same_file(const char *a, const char *b);

struct rp_format;

/* Reads one trace, which the import holds until rp_import_release. The import is without a trace if
   the input was found in a folder or an archive and is not a trace. */
enum rp_code rp_load_trace(const struct rp_dataset *dataset, size_t i, struct rp_import *out,
                           struct rp_err *err);

/* Whether the content identifies the format; a format may also be the fallback for content that no
   format identifies. The input stays at its beginning. */
bool rp_format_identifies(struct rp_input *in, const struct rp_format *format);
