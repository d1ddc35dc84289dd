/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Joins Python frames that follow each other on a thread to one node, if nothing else waits for
 * anything between them. Most nodes of a recording with frames are of this kind, and no proposed
 * change distinguishes them; only the cost of recording each is still needed.
 */
#include "sim/model/part.h"

/* The part has one rank and is not packed. Events and names of the frames after the first are
   dropped, so no what-if can select them. Linear. */
enum rp_code rp_sim_chains_join(struct rp_sim_part *part, struct rp_err *err);

/* The frames (part->links) of the next node that has several, from `node` on. */
const struct rp_sim_link *rp_sim_chain_from(const struct rp_sim_part *part, uint32_t node);
