/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DATASET_CTX_H
#define RP_DATASET_CTX_H
/* The context. */
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

#endif
