/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A text that is made piece by piece, in time linear in its length; printing it again with each
 * piece added would be quadratic. Its failure sticks to the arena too.
 *
 *     struct rp_arena_line line = {.arena = arena};
 *     rp_arena_addf(&line, "%s%d", i ? ", " : "", number);
 *     return line.text ? line.text : "";
 */
#include "base/arena.h"

struct rp_arena_line {
    struct rp_arena *arena;
    char *text; /* NULL: nothing was added */
    size_t n, cap;
};
void rp_arena_addf(struct rp_arena_line *line, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
