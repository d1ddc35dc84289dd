/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_CHECK_H
#define RP_REPLAY_CHECK_H
/* The outputs of a replay in its answer, and whether they are right. */
#include "replay/session.h"
#include "result/result.h"
#include "result/settings.h"

/* The options --check, --atol, --rtol and --ulp: RP_USAGE where one is wrong, before anything runs.
 */
enum rp_code rp_replay_check_settings(const struct rp_settings *settings, struct rp_err *err);

/* Output i, not compared yet. */
enum rp_code rp_replay_describe(struct rp_arena *arena, const struct rp_tensor *t, size_t i,
                                struct rp_replay_output *row, struct rp_err *err);

/* Compares as --check says, else with what is expected or recorded, if anything is. The answer is
   no where an output is wrong. */
enum rp_code rp_replay_check(const struct rp_session *s, const struct rp_settings *settings,
                             const struct rp_session_run *run, struct rp_result *result,
                             struct rp_err *err);

#endif
