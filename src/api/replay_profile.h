/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_API_REPLAY_PROFILE_H
#define RP_API_REPLAY_PROFILE_H
#include "api/replay_session.h"
#include "result/result.h"

/* The `most` instructions that take longest, by the engine's own profiler over some more runs. */
enum rp_code rp_replay_profile(const struct rp_session_run *run, int64_t most,
                               struct rp_result *result, struct rp_err *err);

#endif
