/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names under which servers mark their steps, and what these names say: a table of patterns,
 * that users extend by a file (docs/definitions.md, "Marks of servers"). One line is one pattern:
 *
 *     decode   step[DECODE bs={requests,tokens}*]
 *     -        execute_context_{prefill_requests}({prefill_tokens})_generation_{…}({…})
 *     outer    execute_diffusion_{requests}_{}x{}
 *
 * The first word is the phase; with "-", the numbers of requests or tokens decide it. An outer
 * range is a step only if it contains no other mark. {…} is a number, with the fields it sets ({}:
 * none; a field that occurs twice is added up), * is any text, \ takes the next character as it is;
 * letters match in either case.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_step_pattern {
    const char *text;
    uint8_t phase; /* enum rp_step_phase; RP_PHASE_NONE: by the numbers */
    bool outer;
};

struct rp_step_table {
    struct rp_arena arena;
    RP_VEC(struct rp_step_pattern)
    patterns; /* the user's patterns, which are tried before the built-in ones */
};

/* What a name says; RP_NO_COUNT for what it does not say. */
struct rp_step_mark {
    int64_t number, requests, tokens;
    uint8_t phase;
    bool outer;
    bool users; /* by a pattern of the user's */
};

/* Adds the patterns of a file. If a line is not a pattern, returns RP_USAGE with its number. */
enum rp_code rp_step_table_read(struct rp_step_table *table, const char *path, struct rp_err *err);
enum rp_code rp_step_table_parse(struct rp_step_table *table, const char *path, const char *text,
                                 struct rp_err *err);
void rp_step_table_release(struct rp_step_table *table);

/* Whether the name marks a step, by the table (which may be NULL) or the built-in patterns. */
bool rp_step_table_match(const struct rp_step_table *table, const char *name,
                         struct rp_step_mark *out);
