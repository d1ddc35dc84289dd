/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pairs of XLA's instructions that could be one kernel. */
#include "dataset/load.h"
#include "explain/fusions/fusions.h"

/* Adds to out->fusions what the optimised programs among the inputs show; sets out->xla if the
   trace is one of XLA, and counts the programs that were found. */
enum rp_code rp_fusions_of_xla(const struct rp_loaded *loaded, const struct rp_scope *scope,
                               struct rp_arena *arena, struct rp_fusions_part *out,
                               struct rp_err *err);
