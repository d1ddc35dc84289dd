/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DATASET_DATASET_H
#define RP_DATASET_DATASET_H
/* Inside of a dataset: the list of sources; what they hold is read when a question needs it. */
#include "base/limits.h"
#include "dataset/ctx.h"
#include "io/sources.h"

#include <reprise/dataset.h>
#include <stdbool.h>

struct rp_dataset {
    struct rp_ctx *ctx; /* borrowed */
    char *given;        /* the first path, as the user wrote it */
    size_t ngiven;      /* paths that the user wrote */
    struct rp_sources *sources;
    struct rp_limits limits;
    bool salvage;
};

#endif
