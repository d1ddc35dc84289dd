/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Buffer assignments of XLA as records of `memory`: one per module. */
#include "dataset/dataset.h"
#include "explain/memory/memory.h"

/* *found tells whether the dataset has any; makes one record for each module that matches `module`
   (NULL: all). RP_USAGE if none does. */
enum rp_code rp_memory_xla(const struct rp_dataset *dataset, const char *module, size_t limit,
                           struct rp_arena *arena, struct rp_memory_device **out, size_t *n,
                           bool *found, struct rp_err *err);
