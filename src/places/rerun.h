/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the courses of all ranks together, with other times than the recorded ones, in eight
 * variants (columns) at once. A collective begins when its last member has arrived, and takes as
 * long as it did on the member that it kept shortest: that one waited least. No time of one rank is
 * compared with one of another, except for the moment at which a rank begins, which its first
 * collective tells.
 *
 * Each operation begins after those for which it waits, plus the delay that it had in the recording
 * (its rest). So without changes a run takes as long as recorded, except for collectives on which
 * every member waited a little.
 */
#include "facts/ranks/rendezvous.h"
#include "places/course.h"

#define RP_RERUN_COLUMNS 8

struct rp_rerun_wait { /* an operation that waits for the end of a collective of its rank */
    uint32_t op, collective;
};

struct rp_rerun_rank {
    const struct rp_course *course;
    const struct rp_collectives *list;
    uint32_t *steps; /* by step of the course: its number among those of all ranks */
    uint32_t *op_of; /* by collective: its operation, or RP_NONE */
    uint32_t *first; /* by collective, plus one: index of its slots */
    float *rest;     /* by operation, ns */
    float *cut; /* by operation: the abnormal part of its time in ns; the caller must fill it */
    size_t nwaits;
    struct rp_rerun_wait *waits; /* by operation */
    double begin_ns;             /* on a common axis */
};

/* Where members of a collective meet. If it is not matched, or not all ranks wait for all others,
   it has a slot for each rank. */
struct rp_rerun_slot {
    float dur_ns, cut_ns; /* the caller must fill cut_ns */
    uint32_t need;        /* members */
    uint32_t rendezvous;  /* RP_NONE: none */
};

struct rp_rerun {
    struct rp_arena arena;
    size_t n, nslots, nsteps;
    struct rp_rerun_rank *ranks;
    struct rp_rerun_slot *slots;
    uint32_t *slot_of; /* the array for the ranks' `first` */
    int64_t *step_numbers;
    double recorded_ns; /* from the first begin to the last end */
    size_t npartial;    /* collectives with members that were not given */
    size_t nunreached;  /* ranks that do not share a collective with the first, not even through
                           others */
};

/* Courses, lists and the rendezvous must outlive it. Must be released also after a failure. */
enum rp_code rp_rerun_init(struct rp_rerun *x, const struct rp_course *const *courses,
                           const struct rp_collectives *const *lists, size_t n,
                           const struct rp_rendezvous_list *list, struct rp_err *err);
void rp_rerun_release(struct rp_rerun *x);

/* What is cut in which columns: bit c of the byte of a rank and step, or of a slot, is for column
   c. */
struct rp_rerun_cuts {
    uint8_t *work; /* by rank * nsteps + step */
    uint8_t *slot;
};

/* Computes by column when the last rank ends, since the first began. *stuck tells that ranks wait
   for each other in a circle, so there is no answer. */
enum rp_code rp_rerun_run(const struct rp_rerun *x, const struct rp_rerun_cuts *cuts,
                          double end_ns[RP_RERUN_COLUMNS], bool *stuck, struct rp_err *err);
