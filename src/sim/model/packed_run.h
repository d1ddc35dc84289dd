/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A run of ranks whose parts are packed. The tasks are made rank by rank from nodes that are
 * unpacked temporarily; later the nodes of a rank are unpacked again when somebody asks for one of
 * them, and those of a few ranks are kept. Tasks, edges, lags, nodes and notes are those that
 * joining the unpacked parts gives (stepgraph/join.h).
 */
#include "sim/model/run.h"

/* Fills run->joined (except nodes and edges), run->join, run->tasks and run->blocks from the parts
   of run, at least two, all packed. *done is false if this is impossible: no collective is shared,
   or times of zero length depend on each other in a circle. Then what was filled must be released,
   and the parts must be unpacked and joined. */
enum rp_code rp_sim_packed_join(struct rp_sim_run *run, bool *done, struct rp_err *err);
void rp_sim_blocks_free(struct rp_sim_blocks *blocks);

/* Whether kernels of several streams ran, but never two at a time, among the nodes of one rank,
   whose lanes are those of `lanes`. */
enum rp_code rp_sim_ran_alone(const struct rp_sg_node *nodes, size_t n,
                              const struct rp_sg_lane *lanes, bool *out, struct rp_err *err);
