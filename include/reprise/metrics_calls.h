/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_METRICS_CALLS_H
#define REPRISE_METRICS_CALLS_H
/*
 * The metrics of <reprise/metrics.h> as calls of the shared library, for languages without its
 * macros. From Python:
 *
 *     from ctypes import CDLL, c_char_p, c_int64
 *     lib = CDLL("libreprise.so.0")
 *     lib.rp_metrics_call_time.argtypes = lib.rp_metrics_call_count.argtypes = [c_char_p, c_int64]
 *     lib.rp_metrics_call_time(b"load batch", elapsed_ns)
 *     lib.rp_metrics_call_count(b"batches", 1)
 *
 * Any thread may call. Names are copied at their first use by a thread; a null name does nothing.
 */
#include <reprise/error.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

RP_API void rp_metrics_call_time(const char *name, int64_t ns);
RP_API void rp_metrics_call_value(const char *name, int64_t value);
RP_API void rp_metrics_call_bytes(const char *name, int64_t bytes);
RP_API void rp_metrics_call_count(const char *name, int64_t n);

/* The report of a process, file or folder (NULL: of this process), to be freed by
   rp_metrics_call_free; NULL, and the error's text, on failure. */
RP_API char *rp_metrics_call_report(const char *source, struct rp_err *err);
RP_API void rp_metrics_call_free(char *text);

struct rp_metrics_server {
    size_t struct_size; /* sizeof(struct rp_metrics_server) */
    const char *source; /* process, file or folder; NULL: all running processes of this user */
    unsigned port;      /* of 127.0.0.1; 0: any that is free */
    int stop_fd;        /* the server ends when this can be read; -1: none */
    int64_t keep_ns;    /* so long the last numbers of a process that has ended are answered, and in
                           one answer at least, so that they are fetched */
    int clean;          /* 1: then its file is removed */
    /* Called once, when the server listens, with the address of the metrics. */
    void (*ready)(void *user, const char *address);
    void *user;
};

/* Answers GET /metrics in the text format of Prometheus until stop_fd can be read. Each answer
   reads the source again. */
RP_API enum rp_code rp_metrics_call_serve(const struct rp_metrics_server *server,
                                          struct rp_err *err);

struct rp_result;

struct rp_metrics_watcher {
    size_t struct_size;  /* sizeof(struct rp_metrics_watcher) */
    const char *source;  /* process, file or folder; NULL: all running processes of this user */
    int64_t interval_ns; /* between two looks */
    double least_share;  /* of a step: less than that, longer or later, is no alert */
    /* Called after each look with what it saw, and with what was not so at the look before, in
       lines, or NULL. Not 0: the watch ends. */
    int (*show)(void *user, const struct rp_result *seen, const char *alert);
    void *user;
};

/* Watches a job of `record --light` until all of its processes have ended. RP_UNSUPPORTED: there
   are metrics, but of programs whose steps are not counted. */
RP_API enum rp_code rp_metrics_call_watch(const struct rp_metrics_watcher *watcher,
                                          struct rp_err *err);

#ifdef __cplusplus
}
#endif
#endif
