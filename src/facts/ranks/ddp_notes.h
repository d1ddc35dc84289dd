/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `record` notes about a model in DistributedDataParallel, once, as metadata of the trace. */
#include "base/err.h"
#include "base/vec.h"
#include "trace/trace.h"

struct rp_ddp_sizes {
    RP_VEC(int64_t) list; /* bytes of its gradients, in the order in which they become ready */
};

/* Appends to an empty list, which stays empty where there are no notes, or of several models, or
   they are damaged. Release the list also after a failure. */
enum rp_code rp_ddp_sizes_read(const struct rp_trace *t, struct rp_ddp_sizes *out,
                               struct rp_err *err);

/* 0 to 1: how far threads of the ranks on this machine wait for a processor; 0 where that is not
   known. */
double rp_ddp_crowded(const struct rp_trace *t);
