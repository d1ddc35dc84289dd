/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The words of `replay` that do more than run a program. */
#include "dataset/dataset.h"
#include "replay/replay.h"

/* import */
enum rp_code rp_replay_import(const struct rp_dataset *dataset, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err);

/* extract of a trace: scripts that run operators of PyTorch alone. */
bool rp_replay_is_recording(const struct rp_dataset *dataset); /* its first source is a trace */
enum rp_code rp_replay_operators(const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err);

/* isolate, bisect, extract and flatten. They need a session whose inputs are chosen, and a run
   whose engine is. */
bool rp_replay_is_surgery(const char *action);
enum rp_code rp_replay_surgery(const struct rp_session *s, const struct rp_settings *settings,
                               const struct rp_session_run *run, struct rp_result *result,
                               struct rp_err *err);
