/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Third-party libraries that run programs (PJRT plugins, TensorFlow) may print to standard output
 * and may end the process: a failed check inside XLA aborts instead of returning an error.
 * Therefore the work is done in a child process, which sends back the results; if it dies, its last
 * output becomes the error message. The timed loop runs inside the child, with no communication
 * between two runs.
 *
 *     parent                           child (forked: it has program and inputs without a copy)
 *       |-- upload: arrays ------------->|  open: load the library, compile
 *       |-- run: number of runs -------->|  ... n times, each timed
 *       |<------------ times ------------|
 *
 * For profilers and debuggers the same work is done in this process; standard output then points to
 * standard error as long as the library is loaded.
 */
#include "exec/data/tensor.h"

#include <sys/types.h>

struct rp_worker_facts { /* rp_worker_facts: about the opened library; plain data, sent as it is */
    size_t narguments, noutputs, devices;
    int64_t load_ns;      /* time to load the library and its client */
    int64_t compile_ns;   /* the program */
    uint32_t can_profile; /* 0 or 1, because a bool must not be received */
    char platform[64], version[256], device[192];
};

/* What a library can do; self belongs to the caller. NULL: not available. */
struct rp_worker_ops {
    const char *what; /* "the plugin", for messages */
    enum rp_code (*open)(void *self, struct rp_worker_facts *facts, struct rp_err *err);
    /* Gets devices * narguments arrays, which live until the next upload or close. */
    enum rp_code (*upload)(void *self, struct rp_tensor *const *arguments, struct rp_err *err);
    enum rp_code (*run)(void *self, int64_t *ns, struct rp_err *err); /* once */
    enum rp_code (*fetch)(void *self, struct rp_tensor **outputs, struct rp_err *err);
    void (*mark)(void *self, bool begin); /* the measured runs begin or end */
    enum rp_code (*profile)(void *self, unsigned runs, uint8_t **xspace, size_t *n,
                            struct rp_err *err);
    void (*close)(void *self);
};

struct rp_worker;

struct rp_worker_start {
    void *self; /* used until stop */
    bool in_process;
    /* Arrays that already exist and live until stop: a forked child has them, so an upload of these
       very arrays sends nothing. May be NULL. */
    struct rp_tensor *const *arguments;
    size_t narguments;
    int64_t timeout_ns; /* end a child that does not answer for this time; 0: never */
};
/* Starts and opens. */
enum rp_code rp_worker_start(const struct rp_worker_ops *ops, const struct rp_worker_start *start,
                             struct rp_worker **out, struct rp_err *err);
const struct rp_worker_facts *rp_worker_borrow_facts(const struct rp_worker *worker);

pid_t rp_worker_process(
    const struct rp_worker *worker); /* the process that works: this one or the child */
enum rp_code rp_worker_upload(struct rp_worker *worker, struct rp_tensor *const *arguments,
                              struct rp_err *err);
/* Makes n runs one after another; ns[i] gets the time of each. */
enum rp_code rp_worker_run(struct rp_worker *worker, size_t n, int64_t *ns, struct rp_err *err);
enum rp_code rp_worker_fetch(struct rp_worker *worker, struct rp_tensor **outputs,
                             struct rp_err *err);
enum rp_code rp_worker_mark(struct rp_worker *worker, bool begin, struct rp_err *err);
/* Gives an XSpace, which the caller frees. */
enum rp_code rp_worker_profile(struct rp_worker *worker, unsigned runs, uint8_t **xspace, size_t *n,
                               struct rp_err *err);
void rp_worker_stop(struct rp_worker *worker); /* NULL is fine */

/* Whether the environment injects a profiler's library into this process (Nsight Systems, Nsight
   Compute and others): the work must then be done in this process. */
bool rp_worker_is_profiled(void);
