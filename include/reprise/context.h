/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_CONTEXT_H
#define REPRISE_CONTEXT_H
/*
 * A context holds what a program decides once: the number of threads, and the function that is told
 * about progress. Everything else is made from a context; several may exist side by side. A
 * context, and the datasets made from it, are used by one thread at a time.
 */
#include <reprise/error.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header: 10000 * major + 100 * minor + patch. */
#define REPRISE_VERSION_MAJOR 0
#define REPRISE_VERSION_MINOR 1
#define REPRISE_VERSION_PATCH 0
#define REPRISE_VERSION_NUMBER \
    (REPRISE_VERSION_MAJOR * 10000 + REPRISE_VERSION_MINOR * 100 + REPRISE_VERSION_PATCH)

/* Version of the library in use: REPRISE_VERSION_NUMBER of its own header, and "0.1.0". */
RP_API unsigned rp_version_number(void);
RP_API const char *rp_version(void);

struct rp_ctx;

/*
 * Called from time to time during long work, in the thread that called the library: `what` is the
 * name of the input being read, total is 0 where it is not known. A non-zero return value cancels
 * the work, which then returns RP_CANCELLED, or ends the search of a question that is `anytime`.
 */
typedef int rp_progress_fn(void *user, const char *what, uint64_t done, uint64_t total);

struct rp_ctx_options {
    size_t struct_size;       /* sizeof(struct rp_ctx_options) */
    unsigned threads;         /* 0: one per core that this process may use */
    rp_progress_fn *progress; /* or NULL */
    void *progress_user;
    /* 1: where mpirun or srun has started this process beside others, they divide the inputs of
       questions about ranks; process 0 gets the answer, the others a result of NULL. All must ask
       the same. */
    int distributed;
};

/* options may be NULL. */
RP_API enum rp_code rp_ctx_new(const struct rp_ctx_options *options, struct rp_ctx **out,
                               struct rp_err *err);
/* 1: this process helps another one, which has the answers and reports what goes wrong. */
RP_API int rp_ctx_helps(const struct rp_ctx *ctx);
RP_API void rp_ctx_free(struct rp_ctx *ctx); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
