/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* RATEX_DUMP_ALIAS: one pair per line, "0 1": output 1 reuses the memory of input 0. */
#include "base/arena.h"
#include "base/limits.h"
#include "io/input.h"

struct rp_alias_pair {
    uint32_t parameter, output;
};

/* In the arena. RP_FORMAT with line and column where a line is malformed. An empty file holds no
   pairs: Ratex writes it where ENABLE_PARAM_ALIASING was not set. */
enum rp_code rp_alias_dump_read(struct rp_input *in, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_alias_pair **pairs, size_t *n,
                                struct rp_err *err);
