/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_COMPARE_H
#define RP_REPLAY_COMPARE_H
/* Against the JSON of an earlier replay: is it faster or slower, or is that noise? */
#include "base/arena.h"
#include "base/err.h"
#include "replay/record.h"

/* Fills root->compared from root->run_ns and the file. RP_FORMAT where it is no answer of replay.
 */
enum rp_code rp_replay_compare(const char *path, struct rp_arena *arena, struct rp_replay *root,
                               struct rp_err *err);

/* Two-sided p of equal runs, by the ranks of the low times of their blocks; 1 where there are none.
 */
double rp_replay_p_value(const struct rp_replay_times *a, const struct rp_replay_times *b);

#endif
