/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads RATEX_DUMP_ALIAS, one pair per line: "0 1" means that output 1 reuses the memory of input
   0. */
#include "base/arena.h"
#include "base/limits.h"
#include "io/input.h"

struct rp_alias_pair {
    uint32_t parameter, output;
};

/* Allocates in the arena. A malformed line gives RP_FORMAT with line and column. An empty file has
   no pairs: Ratex writes it if ENABLE_PARAM_ALIASING was not set. */
enum rp_code rp_alias_dump_read(struct rp_input *in, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_alias_pair **pairs, size_t *n,
                                struct rp_err *err);
