/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_CONTEXT_H
#define REPRISE_CONTEXT_H
/*
 * A context holds what a program decides once: how many threads, who hears about progress.
 * Everything else of the library hangs off a context; several may exist side by side. A context is
 * used by one thread at a time.
 */
#include <reprise/error.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_ctx;

/*
 * Called now and then during long work, from the thread that asked: `what` is a phrase ("reading
 * rank3.json.gz"), total is 0 where it is not known. Returning non-zero cancels with RP_CANCELLED.
 */
typedef int rp_progress_fn(void *user, const char *what, uint64_t done, uint64_t total);

struct rp_ctx_options {
    size_t struct_size; /* sizeof(struct rp_ctx_options) */
    unsigned threads;   /* 0: all cores this process may use */
    rp_progress_fn *progress;
    void *progress_user;
};

/* options may be NULL. */
RP_API enum rp_code rp_ctx_new(const struct rp_ctx_options *options, struct rp_ctx **out,
                               struct rp_err *err);
RP_API void rp_ctx_free(struct rp_ctx *ctx); /* NULL is fine */

RP_API const char *rp_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
