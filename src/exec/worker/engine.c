/* SPDX-License-Identifier: Apache-2.0 */
/* An engine whose work is done by a worker (engine.h). */
#include "exec/worker/engine.h"

#include <stdio.h>
#include <stdlib.h>

#define PROBE_NS \
    INT64_C(60000000000) /* a library that gives no answer for a minute is considered broken */

static struct rp_worker *worker_of(struct rp_executable *exe)
{
    return ((struct rp_worker_exe *)exe)->worker;
}

/* ---- the library ---- */

struct probe {
    const struct rp_worker_engine *own;
    const char *path;
};

static enum rp_code probe_open(void *self, struct rp_worker_facts *facts, struct rp_err *err)
{
    const struct probe *probe = self;

    return probe->own->version(probe->path, facts->version, sizeof facts->version, err);
}

enum rp_code rp_worker_engine_probe(const struct rp_worker_engine *own, const char *where,
                                    char *found, size_t cap, struct rp_err *err)
{
    static const struct rp_worker_ops ops = {.what = "the library", .open = probe_open};
    struct probe probe = {.own = own};
    struct rp_worker_start start = {.self = &probe, .timeout_ns = PROBE_NS};
    struct rp_worker *worker = NULL;
    char *path = NULL;
    enum rp_code code = rp_plugin_resolve(own->kind, where, &path, err);

    probe.path = path;
    if (code == RP_OK)
        code = rp_worker_start(&ops, &start, &worker, err);
    if (code == RP_OK)
        snprintf(found, cap, "%s", rp_worker_borrow_facts(worker)->version);
    rp_worker_stop(worker);
    free(path);
    return code;
}

/* ---- compiling ---- */

/* Starts in this process if the options or a profiler want it. */
static enum rp_code start_worker(struct rp_worker_exe *exe, struct rp_err *err)
{
    const struct rp_engine_options *options = exe->options;
    struct rp_executable *base = &exe->base;
    struct rp_worker_start start = {.self = exe,
                                    .in_process = options->in_process || rp_worker_is_profiled(),
                                    .arguments = options->arguments,
                                    .narguments = options->narguments,
                                    .timeout_ns = options->timeout_ns};

    RP_TRY(rp_worker_start(&exe->own->ops, &start, &exe->worker, err));
    const struct rp_worker_facts *facts = rp_worker_borrow_facts(exe->worker);
    base->narguments = facts->narguments;
    base->noutputs = facts->noutputs;
    base->partitions = facts->devices;
    base->load_ns = facts->load_ns;
    snprintf(base->device, sizeof base->device, "%s", facts->device);
    return RP_OK;
}

enum rp_code rp_worker_engine_compile(const struct rp_worker_engine *own, const char *where,
                                      const struct rp_engine_program *program,
                                      const struct rp_engine_options *options,
                                      struct rp_executable **out, struct rp_err *err)
{
    struct rp_worker_exe *exe = calloc(1, own->size);

    *out = NULL;
    RP_TRY(rp_err_need(exe, err, "starting an engine"));
    exe->base.engine = own->engine;
    exe->own = own;
    exe->program = program;
    exe->options = options;
    enum rp_code code = own->prepare(exe, err);
    if (code == RP_OK)
        code = rp_plugin_resolve(own->kind, where, &exe->path, err);
    if (code == RP_OK)
        code = start_worker(exe, err);
    if (code != RP_OK) {
        rp_worker_engine_release(&exe->base);
        return code;
    }
    exe->program = NULL;
    exe->options = NULL;
    *out = &exe->base;
    return RP_OK;
}

void rp_worker_engine_release(struct rp_executable *base)
{
    struct rp_worker_exe *exe = (struct rp_worker_exe *)base;

    if (!exe)
        return;
    rp_worker_stop(exe->worker);
    if (exe->own->release)
        exe->own->release(exe);
    free(exe->path);
    free(exe);
}

/* ---- handed on to the worker ---- */

enum rp_code rp_worker_engine_upload(struct rp_executable *exe, struct rp_tensor *const *arguments,
                                     struct rp_err *err)
{
    return rp_worker_upload(worker_of(exe), arguments, err);
}

enum rp_code rp_worker_engine_run(struct rp_executable *exe, struct rp_err *err)
{
    int64_t ns;

    return rp_worker_run(worker_of(exe), 1, &ns, err);
}

enum rp_code rp_worker_engine_run_timed(struct rp_executable *exe, size_t n, int64_t *ns,
                                        struct rp_err *err)
{
    return rp_worker_run(worker_of(exe), n, ns, err);
}

enum rp_code rp_worker_engine_fetch(struct rp_executable *exe, struct rp_tensor **outputs,
                                    struct rp_err *err)
{
    return rp_worker_fetch(worker_of(exe), outputs, err);
}

enum rp_code rp_worker_engine_mark(struct rp_executable *exe, bool begin, struct rp_err *err)
{
    return rp_worker_mark(worker_of(exe), begin, err);
}

enum rp_code rp_worker_engine_profile(struct rp_executable *exe, unsigned runs, uint8_t **bytes,
                                      size_t *n, struct rp_err *err)
{
    return rp_worker_profile(worker_of(exe), runs, bytes, n, err);
}

pid_t rp_worker_engine_process(const struct rp_executable *exe)
{
    return rp_worker_process(((const struct rp_worker_exe *)exe)->worker);
}
