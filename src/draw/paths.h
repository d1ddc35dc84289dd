/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes paths of groups, for viewers that know groups by the names of nodes. */
#include "draw/tree.h"

/* Makes a path such as "GPT/block_0/stack2_x12/layer3" for each group, in the arena: two groups
   never have the same path. A computation that an operation shows is inside a group with the
   operation's name, others are in "computations". The path of the entry is "". */
enum rp_code rp_paths_make(const struct rp_tree *tree, struct rp_arena *arena, const char ***out,
                           struct rp_err *err);
