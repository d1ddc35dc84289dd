/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The context, and a dataset: the list of its sources, whose content is read when a question needs
   it. */
#include "base/limits.h"
#include "base/threads.h"
#include "cost/category.h"
#include "io/sources.h"
#include "trace/step_patterns.h"

#include <reprise/dataset.h>
#include <stdbool.h>
#include <string.h>

struct rp_ctx {
    struct rp_pool *pool;
    rp_progress_fn *progress; /* or NULL */
    void *progress_user;
    bool resend_parts; /* for tests: parts of ranks are written and read back before they are joined
                        */
    uint64_t
        bulk_events; /* for tests: replaces the limit of the questions (bulk.h) unless it is 0 */
    struct rp_team *team;     /* processes that share the work of questions about ranks, or NULL */
    struct rp_models *models; /* cost models that were read (models.h) */
};

struct rp_team;
struct rp_models;
struct rp_trust_log;
struct rp_selection;

struct rp_dataset {
    struct rp_ctx *ctx; /* borrowed */
    char *given;        /* the first path, as the user wrote it */
    size_t ngiven;      /* number of paths that the user wrote */
    struct rp_sources *sources;
    struct rp_limits limits;
    struct rp_step_table steps; /* the patterns in the user's file that REPRISE_STEPS names */
    struct rp_category_table categories; /* the same for REPRISE_CATEGORIES */
    bool salvage;
    /* Of one question, in its copy: */
    struct rp_trust_log *trust; /* notes about the inputs, or NULL */
    const char *wanted;         /* the value of --rank, or NULL */
    const char *step_name;      /* the value of --step-name, or NULL */
    const char *question;       /* its name */
    const struct rp_selection
        *selection;  /* by source: which need not be read; NULL if all are read */
    size_t nskipped; /* the number of sources that are not read for that reason */
};

/* How many of n elements from `first` on exist. */
static inline size_t rp_clip_range(size_t first, size_t n, size_t count)
{
    if (first >= count)
        return 0;
    return n < count - first ? n : count - first;
}

/* Copies element i of a caller's array of elements of `size` bytes, which may be shorter or longer
   than the `known` bytes of this build: missing bytes become 0. */
static inline void rp_copy_view(void *out, size_t i, size_t size, const void *view, size_t known)
{
    char *to = (char *)out + i * size;

    if (size == known) { /* a copy of constant size is faster */
        memcpy(to, view, known);
        return;
    }
    memcpy(to, view, size < known ? size : known);
    if (size > known)
        memset(to + known, 0, size - known);
}
