/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job a source on the context's pool. Where there are fewer sources than threads, a reader may
 * use a second thread for itself. Progress is bytes of a single source, files of several, and is
 * told by the asking thread only; being cancelled stops the others at their next report.
 */
#include "api/load.h"

#include "formats/formats.h"

#include <pthread.h>
#include <stdatomic.h>

struct load {
    struct rp_ctx *ctx;
    const struct rp_dataset *dataset;
    rp_trace_job *job;
    void *user;
    bool threaded; /* a reader may use a second thread */
    pthread_t asker;
    size_t nsources;
    _Atomic size_t finished, traces;
    _Atomic bool cancelled;
};

/* One source being read. */
struct reading {
    struct load *load;
    const char *name;
};

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    const struct reading *reading = user;
    struct load *load = reading->load;
    struct rp_ctx *ctx = load->ctx;

    if (load->nsources > 1) {
        done = atomic_load(&load->finished);
        total = load->nsources;
    }
    if (ctx->progress && pthread_equal(load->asker, pthread_self()) &&
        ctx->progress(ctx->progress_user, reading->name, done, total))
        atomic_store(&load->cancelled, true);
    return !atomic_load(&load->cancelled);
}

static enum rp_code read_source(struct load *load, const struct rp_source *source, size_t i,
                                struct rp_import *import, struct rp_err *err)
{
    struct reading reading = {.load = load, .name = source->name};
    struct rp_read_options options = {.limits = &load->dataset->limits,
                                      .salvage = load->dataset->salvage,
                                      .threaded = load->threaded,
                                      .progress = on_progress,
                                      .progress_user = &reading};
    const struct rp_format *format;
    struct rp_input *in;

    RP_TRY(rp_source_open(load->dataset->sources, i, &in, err));
    /* what the user did not name may be anything */
    if (source->found && rp_format_sniff(in, &format, NULL) == RP_FORMAT) {
        rp_input_close(in);
        return RP_OK;
    }
    return rp_format_read(in, &options, import, err);
}

static enum rp_code load_one(void *user, size_t i, struct rp_err *err)
{
    struct load *load = user;
    const struct rp_source *source = rp_sources_borrow(load->dataset->sources, i);
    struct rp_import import = RP_IMPORT_INIT;
    enum rp_code code;

    code = read_source(load, source, i, &import, err);
    if (code == RP_OK && import.trace) {
        struct rp_loaded loaded = {source, import.trace, import.format->name, i};

        atomic_fetch_add(&load->traces, 1);
        code = load->job(load->user, &loaded, err);
    }
    rp_import_release(&import);
    atomic_fetch_add(&load->finished, 1);
    return code;
}

enum rp_code rp_each_trace(struct rp_ctx *ctx, const struct rp_dataset *dataset, rp_trace_job *job,
                           void *user, struct rp_err *err)
{
    size_t n = rp_sources_count(dataset->sources);
    struct load load = {.ctx = ctx, .dataset = dataset, .job = job, .user = user};

    load.nsources = n;
    load.threaded = n < rp_pool_threads(ctx->pool);
    load.asker = pthread_self();
    RP_TRY(rp_pool_each(ctx->pool, n, load_one, &load, err));
    if (!atomic_load(&load.traces))
        return rp_err_set(err, RP_FORMAT, "'%s': no trace among its %zu files", dataset->given, n);
    return RP_OK;
}
