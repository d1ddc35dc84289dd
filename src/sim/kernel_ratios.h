/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a cost model says about the kernels of a part: how long each would take in another number
 * format. Only of operators whose shapes were recorded and that the model was trained on; what-ifs
 * use their own rules for the rest.
 */
#include "dataset/load.h"
#include "sim/model/part.h"

/* Fills part->ratios, for the 16 bits that the device has, by the model of a file; path NULL: by
   the built-in one. Nothing where the device is not known. The part must not be packed yet. */
enum rp_code rp_sim_part_ask_model(struct rp_sim_part *part, const struct rp_loaded *loaded,
                                   const char *path, struct rp_err *err);
