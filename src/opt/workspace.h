/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A folder that keeps the results of a search, so that another one can continue from there.
 *
 *     best.txt         the best plan: "round 1", "step 13675666", "groups 0010011", "what-if fuse"
 *     trajectory.csv   when each better plan was found: time, plans tried, a step
 *
 * A round is one search; each has its own random numbers.
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_opt_point {
    int64_t after_ns, tried; /* time and number of plans since the search began */
    double step_ns;
};

struct rp_opt_workspace {
    struct rp_arena arena;
    const char *path;    /* of the folder; NULL if nothing is kept */
    uint64_t round;      /* the number of this search, from 1 */
    const char *groups;  /* the groups of the plan that was resumed, "0010011" by tensor; or NULL */
    const char *whatifs; /* its what-ifs, joined with '+', or NULL */
    int64_t resumed_ns;  /* its step */
    int64_t began_ns;
    RP_VEC(struct rp_opt_point) points;
};

/* path may be NULL. resume: reads the files; without it, a folder that contains a plan is RP_USAGE.
   Must be released also after a failure. */
enum rp_code rp_opt_workspace_open(struct rp_opt_workspace *w, const char *path, bool resume,
                                   struct rp_err *err);
void rp_opt_workspace_release(struct rp_opt_workspace *w);

/* Notes a plan that is better than those before. */
void rp_opt_workspace_point(struct rp_opt_workspace *w, int64_t tried, double step_ns);

/* groups or whatifs may be NULL. */
enum rp_code rp_opt_workspace_save(struct rp_opt_workspace *w, const char *groups,
                                   const char *whatifs, int64_t step_ns, struct rp_err *err);
