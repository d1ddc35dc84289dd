/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_PROFILE_H
#define RP_REPLAY_PROFILE_H
#include "replay/session.h"
#include "result/result.h"

/* The `most` instructions that took longest: by the times that the engine kept, or by its own
   profiler over some more runs. */
enum rp_code rp_replay_instructions(const struct rp_session_run *run, int64_t most,
                                    struct rp_result *result, struct rp_err *err);

/* Some more runs, instruction by instruction, written as a trace; the format is by the ending. */
enum rp_code rp_replay_trace(const struct rp_session_run *run, const char *path,
                             struct rp_result *result, struct rp_err *err);

#endif
