/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_PATH_H
#define RP_SIM_PATH_H
/*
 * What a simulated step is limited by: the chain of tasks of which each started when the one before
 * it let it, back from where the last step begins to where the first one began.
 */
#include "sim/model/run.h"

/* Kinds of the step graph, then what lies between tasks. */
enum { RP_SIM_PATH_GAPS = RP_SG_KINDS, RP_SIM_PATH_PARTS };

struct rp_sim_path {
    int64_t ns[RP_SIM_PATH_PARTS]; /* of all steps on the path */
    int64_t total_ns;              /* their sum: from its begin to its end */
    size_t tasks;
};

/* O(tasks + edges). */
enum rp_code rp_sim_path(const struct rp_sim_run *run, const struct rp_sim_result *result,
                         struct rp_sim_path *out, struct rp_err *err);

/* The part that takes the most; static text. */
const char *rp_sim_path_most(const struct rp_sim_path *path);
/* "kernels", "host" …; static text. */
const char *rp_sim_path_name(size_t part);

#endif
