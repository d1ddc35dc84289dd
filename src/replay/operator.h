/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `replay extract` of a trace: scripts that run operators of PyTorch alone. */
#include "replay/replay.h"

struct rp_dataset;

/* Whether the first source of the dataset is a trace. */
bool rp_replay_is_recording(const struct rp_dataset *dataset);
enum rp_code rp_replay_operators(const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err);
