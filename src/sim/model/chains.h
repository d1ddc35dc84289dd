/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Python frames that follow each other on a thread, with nothing between them that anything else
 * waits for, as one node. Of a recording with frames most nodes are such, and no change that is
 * proposed tells them apart; only what recording each of them cost is still needed.
 */
#include "sim/model/part.h"

/* Of one rank, not packed. Events and names of the frames after the first are gone: no what-if can
   select them. Linear. */
enum rp_code rp_sim_chains_join(struct rp_sim_part *part, struct rp_err *err);

/* The frames (part->links) of the first node from this one on that has several. */
const struct rp_sim_link *rp_sim_chain_from(const struct rp_sim_part *part, uint32_t node);
