/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of an engine handed on to its worker. */
#include "exec/worker/engine.h"

#include <stdio.h>
#include <stdlib.h>

static struct rp_worker *worker_of(struct rp_executable *exe)
{
    return ((struct rp_worker_exe *)exe)->worker;
}

enum rp_code rp_worker_engine_start(struct rp_worker_exe *exe, const struct rp_worker_ops *ops,
                                    const struct rp_engine_options *options, struct rp_err *err)
{
    struct rp_executable *base = &exe->base;
    struct rp_worker_start start = {.self = exe,
                                    .in_process = options->in_process || rp_worker_is_profiled(),
                                    .arguments = options->arguments,
                                    .narguments = options->narguments,
                                    .timeout_ns = options->timeout_ns};
    const struct rp_worker_facts *facts;

    RP_TRY(rp_worker_start(ops, &start, &exe->worker, err));
    facts = rp_worker_borrow_facts(exe->worker);
    base->narguments = facts->narguments;
    base->noutputs = facts->noutputs;
    base->partitions = facts->devices;
    base->load_ns = facts->load_ns;
    snprintf(base->device, sizeof base->device, "%s", facts->device);
    return RP_OK;
}

enum rp_code rp_worker_engine_probe(enum rp_plugin_kind kind, const char *where, char *found,
                                    size_t cap, struct rp_err *err)
{
    struct rp_plugin_version version;
    char *path = NULL;
    enum rp_code code = rp_plugin_resolve(kind, where, &path, err);

    if (code == RP_OK)
        code = rp_plugin_probe(kind, path, &version, err);
    if (code == RP_OK)
        snprintf(found, cap, "%s, %s", path, version.text);
    free(path);
    return code;
}

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

enum rp_code rp_worker_engine_peak(struct rp_executable *exe, int64_t *bytes, struct rp_err *err)
{
    return rp_worker_peak(worker_of(exe), bytes, err);
}
