/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A text that is made piece by piece, in time linear in its length; copying it for each added piece
 * would be quadratic. Its failure sticks to the arena.
 *
 *     struct rp_arena_line line = {.arena = arena};
 *     rp_arena_addf(&line, "%s%d", i ? ", " : "", number);
 *     return line.text ? line.text : "";
 */
#include "base/arena.h"

struct rp_arena_line {
    struct rp_arena *arena;
    char *text; /* NULL if nothing was added */
    size_t n, cap;
};
void rp_arena_addf(struct rp_arena_line *line, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
