/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asks a cost model how long the kernels of a part would take in another number format. It answers
 * only for operators whose shapes were recorded and on which it was trained; what-ifs use their own
 * rules for the rest.
 */
#include "dataset/load.h"
#include "sim/model/part.h"

/* Fills part->ratios for the 16-bit format of the device, by the model in a file; if path is NULL,
   by the built-in one. Does nothing if the device is not known. The part must not be packed yet. */
enum rp_code rp_sim_part_ask_model(struct rp_sim_part *part, const struct rp_loaded *loaded,
                                   const char *path, struct rp_err *err);
