/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides which tensors are sent together. Tensors are in the order in which they become ready, a
 * group is a range of them, and groups are sent one after the other: so a plan is a set of ends,
 * and its time is computed group by group from a small state.
 *
 *     tensors   0 1 2 3 4 5 6 7
 *     ends          ^   ^     ^        three groups: 0 1 2, 3 4, 5 6 7
 *
 * Three methods, each starting from what the one before found: all plans where they are few; a walk
 * (dynamic programming) that keeps the best way to have sent the first k tensors; chains of
 * simulated annealing, each with its own random numbers, on threads. The walk leaves out plans that
 * cannot be best: a tensor is not added to a group that would have been sent before the tensor was
 * ready (the second theorem of dPRO, turned round).
 *
 * The number of plans that are tried depends on the number of tensors and on the seed only, unless
 * the budget ends the search.
 */
#include "opt/optimize.h"

struct rp_opt_chain {
    size_t n;          /* tensors; at least 1 */
    size_t state_size; /* bytes */
    bool whole;        /* step_ns covers a whole step: better ones are added to the trajectory */
    bool no_walk;      /* only chains are used, for comparison */
    const uint8_t *joined; /* by tensor: 1 if it must go with the next one; may be NULL */
    const void *user;
    void (*begin)(const void *user, void *state);
    /* Sends tensors [first, end). */
    void (*add)(const void *user, void *state, size_t first, size_t end);
    /* Returns when all that was sent has arrived: the walk compares these times. */
    double (*there_ns)(const void *user, const void *state);
    /* When a tensor is ready. */
    double (*ready_ns)(const void *user, size_t tensor);
    /* Returns the time of a step when all is sent. */
    double (*step_ns)(const void *user, const void *state);
};

/* ends: by tensor, 1 if a group ends there; it is the recorded plan, or all 0 if that is not known,
   and becomes the best one. tried: how many plans were tried. */
enum rp_code rp_opt_search_groups(const struct rp_opt_chain *chain, struct rp_opt_limits *limits,
                                  uint8_t *ends, double *best_ns, size_t *tried,
                                  struct rp_err *err);

/* Returns the time of a plan. */
enum rp_code rp_opt_groups_step(const struct rp_opt_chain *chain, const uint8_t *ends,
                                double *step_ns, struct rp_err *err);
