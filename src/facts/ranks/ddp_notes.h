/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `record` notes about a model in DistributedDataParallel, once, as metadata of the trace. */
#include "base/err.h"
#include "base/vec.h"
#include "trace/trace.h"

struct rp_ddp_sizes {
    RP_VEC(int64_t) list; /* bytes of its gradients, in the order in which they become ready */
};

/* Appends to an empty list, which stays empty if there are no notes, several models, or damaged
   notes. The list must be released also after a failure. */
enum rp_code rp_ddp_sizes_read(const struct rp_trace *t, struct rp_ddp_sizes *out,
                               struct rp_err *err);

/* How much threads of the ranks on this machine wait for a processor, 0 to 1; 0 if that is not
   known. */
double rp_ddp_crowded(const struct rp_trace *t);
