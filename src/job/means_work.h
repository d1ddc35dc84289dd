/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_MEANS_WORK_H
#define RP_JOB_MEANS_WORK_H
/* What the files that make means of a job share while they work. */
#include "job/means.h"

#include <string.h>

struct rp_means_step { /* of a rank */
    int64_t id, begin_ns, end_ns;
    size_t nops, at; /* at: among the steps that all have, or SIZE_MAX */
};

struct rp_means_item {
    size_t step;
    int64_t begin_ns;
    uint32_t at;
};

struct rp_means_order { /* records by (step, begin); those of a step: [first[s], first[s + 1]) */
    uint32_t *at, *first;
};

struct rp_means_rank {
    RP_VEC(struct rp_means_step) steps;    /* by begin */
    RP_VEC(struct rp_means_step *) common; /* by step that all have */
    struct rp_means_order ops, transfers;
    struct rp_map op_of;       /* hash of (name, step) -> op */
    struct rp_map span_of;     /* hash of (phase, tensor, step) -> span */
    struct rp_map transfer_of; /* place -> transfer */
    struct rp_map in_graph;    /* hash of name -> 1: an operator of the graph */
    struct rp_map updates;     /* hash of name -> 1 */
};

struct rp_mean {
    double sum, n;
};

static inline void rp_mean_count(struct rp_mean *x, double value)
{
    x->sum += value;
    x->n++;
}

/* Of lags and durations: nothing is below 0. */
static inline double rp_mean_of(const struct rp_mean *x)
{
    return x->n > 0 && x->sum > 0 ? x->sum / x->n : 0;
}

static inline uint64_t rp_means_name_key(const char *name)
{
    return rp_hash_bytes(name, strlen(name));
}

/* The step in which a moment lies, of those that all ranks have, or SIZE_MAX: what follows the last
   operator of a step belongs to one whose operators are missing. */
size_t rp_means_step(const struct rp_means_rank *w, int64_t ns);
/* Sorts the items, and keeps their order in the arena. */
enum rp_code rp_means_sort(struct rp_job_means *m, struct rp_means_item *items, size_t n,
                           struct rp_means_order *out, struct rp_err *err);
/* The operator of a rank in a step, or NULL. */
const struct rp_job_op *rp_means_op(const struct rp_job_means *m, size_t rank, const char *name,
                                    size_t step);

/* Finds a rank's spans and transfers by step and place. */
enum rp_code rp_means_index_spans(struct rp_job_means *m, size_t rank, struct rp_err *err);
enum rp_code rp_means_index_transfers(struct rp_job_means *m, size_t rank, struct rp_err *err);

/* Of steps [first, end): which groups there are, then what they took, then their transfers. */
enum rp_code rp_means_list_groups(struct rp_job_means *m, size_t step, struct rp_err *err);
enum rp_code rp_means_of_groups(struct rp_job_means *m, size_t first, size_t end,
                                struct rp_err *err);
enum rp_code rp_means_of_transfers(struct rp_job_means *m, size_t rank, size_t first, size_t end,
                                   struct rp_err *err);

#endif
