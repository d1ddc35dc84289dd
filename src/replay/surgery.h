/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The words isolate, bisect, extract and flatten of `replay`. */
#include "replay/replay.h"

bool rp_replay_is_surgery(const char *action);

/* Needs a session whose inputs are chosen, and a run whose engine is. */
enum rp_code rp_replay_surgery(const struct rp_session *s, const struct rp_settings *settings,
                               const struct rp_session_run *run, struct rp_result *result,
                               struct rp_err *err);
