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

#ifdef __cplusplus
}
#endif
#endif
