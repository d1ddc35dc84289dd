/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_FAST_LOOP_H
#define RP_EXEC_FAST_LOOP_H
/* Element-wise operations of one shape become one loop over pieces that stay in the cache. */
#include "exec/eval/plan.h"

/* Forms the loops of every graph of a plan, and computes anew where values end. */
enum rp_code rp_loops_form(struct rp_plan *plan, struct rp_err *err);

/* Whether a vector version of an f32 operation exists: it replaces *fn. */
struct rp_lane;
bool rp_fast_lane(unsigned opcode, struct rp_lane *lane);

#endif
