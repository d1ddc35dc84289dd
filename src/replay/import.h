/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The word import of `replay`. */
#include "dataset/dataset.h"
#include "replay/replay.h"

enum rp_code rp_replay_import(const struct rp_dataset *dataset, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err);
