/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DATASET_CTX_H
#define RP_DATASET_CTX_H
/* Inside of the context. */
#include "base/threads.h"

#include <reprise/context.h>
#include <stdbool.h>

struct rp_ctx {
    struct rp_pool *pool;
    rp_progress_fn *progress; /* or NULL */
    void *progress_user;
    bool resend_parts; /* for tests: parts of ranks are written and read back before they are joined
                        */
};

/* Tells the program about progress; RP_CANCELLED where it asked to stop. */
enum rp_code rp_ctx_progress(struct rp_ctx *ctx, const char *what, uint64_t done, uint64_t total,
                             struct rp_err *err);

#endif
