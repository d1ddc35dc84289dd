/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What engines share whose work is done by a third-party library in a child process (worker.h):
 * finding and probing the library, starting the worker, and the functions of the row.
 */
#include "exec/engine/engine.h"
#include "exec/plugin/plugin.h"
#include "exec/worker/worker.h"

struct rp_worker_exe {
    struct rp_executable base;
    const struct rp_worker_engine *own;
    struct rp_worker *worker;
    char *path; /* of the library */
    const struct rp_engine_program
        *program; /* these two are valid until compile returns, and in a child */
    const struct rp_engine_options *options;
};

/* What an engine adds. */
struct rp_worker_engine {
    const struct rp_engine *engine;
    enum rp_plugin_kind kind;
    size_t size; /* size of its executable, which begins with a struct rp_worker_exe */
    /* Checks the program and makes what `ops` need of it, before the worker starts. */
    enum rp_code (*prepare)(struct rp_worker_exe *exe, struct rp_err *err);
    void (*release)(
        struct rp_worker_exe *exe); /* releases what prepare made, even if only in part; or NULL */
    /* Loads the library in a child process and writes its version, "PJRT 0.81". */
    enum rp_code (*version)(const char *path, char *text, size_t cap, struct rp_err *err);
    struct rp_worker_ops ops; /* self: the executable */
};

/* The version of a library, and its path if it was searched for: `where` is NULL or a name. */
enum rp_code rp_worker_engine_probe(const struct rp_worker_engine *own, const char *where,
                                    char *found, size_t cap, struct rp_err *err);
enum rp_code rp_worker_engine_compile(const struct rp_worker_engine *own, const char *where,
                                      const struct rp_engine_program *program,
                                      const struct rp_engine_options *options,
                                      struct rp_executable **out, struct rp_err *err);

enum rp_code rp_worker_engine_upload(struct rp_executable *exe, struct rp_tensor *const *arguments,
                                     struct rp_err *err);
enum rp_code rp_worker_engine_run(struct rp_executable *exe, struct rp_err *err);
enum rp_code rp_worker_engine_run_timed(struct rp_executable *exe, size_t n, int64_t *ns,
                                        struct rp_err *err);
enum rp_code rp_worker_engine_mark(struct rp_executable *exe, bool begin, struct rp_err *err);
enum rp_code rp_worker_engine_profile(struct rp_executable *exe, unsigned runs, uint8_t **bytes,
                                      size_t *n, struct rp_err *err);
pid_t rp_worker_engine_process(const struct rp_executable *exe);
enum rp_code rp_worker_engine_fetch(struct rp_executable *exe, struct rp_tensor **outputs,
                                    struct rp_err *err);
void rp_worker_engine_release(struct rp_executable *exe);

/* The members of a row (struct rp_engine) that are the same for all such engines. */
#define RP_WORKER_ENGINE_MEMBERS                                                  \
    .takes_where = true, .wants_module = true, .upload = rp_worker_engine_upload, \
    .run = rp_worker_engine_run, .run_timed = rp_worker_engine_run_timed,         \
    .mark = rp_worker_engine_mark, .profile = rp_worker_engine_profile,           \
    .process = rp_worker_engine_process, .fetch = rp_worker_engine_fetch,         \
    .release = rp_worker_engine_release
