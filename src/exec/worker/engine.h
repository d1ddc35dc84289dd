/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_WORKER_ENGINE_H
#define RP_EXEC_WORKER_ENGINE_H
/* What engines have in common whose work is done by a library of others in a child process
   (worker.h): their executables begin with this struct, and their rows of the table of engines have
   these functions. */
#include "exec/engines.h"
#include "exec/pjrt/plugin_find.h"
#include "exec/worker/worker.h"

struct rp_worker_exe {
    struct rp_executable base;
    struct rp_worker *worker;
};

/* Starts the worker, here where the options or a profiler want it, and fills `base`. */
enum rp_code rp_worker_engine_start(struct rp_worker_exe *exe, const struct rp_worker_ops *ops,
                                    const struct rp_engine_options *options, struct rp_err *err);

enum rp_code rp_worker_engine_probe(enum rp_plugin_kind kind, const char *where, char *found,
                                    size_t cap, struct rp_err *err);
enum rp_code rp_worker_engine_upload(struct rp_executable *exe, struct rp_tensor *const *arguments,
                                     struct rp_err *err);
enum rp_code rp_worker_engine_run(struct rp_executable *exe, struct rp_err *err);
enum rp_code rp_worker_engine_run_timed(struct rp_executable *exe, size_t n, int64_t *ns,
                                        struct rp_err *err);
enum rp_code rp_worker_engine_fetch(struct rp_executable *exe, struct rp_tensor **outputs,
                                    struct rp_err *err);
enum rp_code rp_worker_engine_mark(struct rp_executable *exe, bool begin, struct rp_err *err);
enum rp_code rp_worker_engine_profile(struct rp_executable *exe, unsigned runs, uint8_t **bytes,
                                      size_t *n, struct rp_err *err);
pid_t rp_worker_engine_process(const struct rp_executable *exe);
enum rp_code rp_worker_engine_peak(struct rp_executable *exe, int64_t *bytes, struct rp_err *err);

#endif
