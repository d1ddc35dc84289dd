/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the readers of lazy-tensor dumps share: labels of dot graphs have the syntax of the text. */
#include "base/text.h"
#include "program/program.h"

#include <stdbool.h>

struct rp_lazy_edge {
    uint32_t from, to, operand, output; /* nodes by their numbers in the graph */
};

struct rp_lazy {
    const char *begin, *end;
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint32_t) op_of;            /* from the number in the graph to operation + 1 */
    RP_VEC(uint32_t) operands;         /* operands of the line being read: operation, output */
    RP_VEC(struct rp_lazy_edge) edges; /* edges of the dot graph being read */
    bool abridged;                     /* a line of the graph is "...", so nodes were left out */
};

#define RP_LAZY_FAIL(r, where, ...)                                                 \
    rp_text_error((r)->err, RP_FORMAT, (r)->begin, (size_t)((r)->end - (r)->begin), \
                  (size_t)((where) - (r)->begin), __VA_ARGS__)

/* The position after the digits at s; a number that is too large is clamped. */
const char *rp_lazy_number(const char *s, const char *end, uint32_t *value);
/* "f32[2]", "(f32[2], s64[])" or "[Float[2], Long[]]" */
enum rp_code rp_lazy_shape(struct rp_lazy *r, const char *s, const char *end, uint32_t *id);
/* Adds ", key=value" up to the end to the newest operation. */
enum rp_code rp_lazy_attributes(struct rp_lazy *r, const char *s, const char *end);
/* Begins a computation for the next graph. */
enum rp_code rp_lazy_begin_graph(struct rp_lazy *r);

/* Reads "digraph G {" ... "}". *line is the end of its first line, and afterwards of its last. */
enum rp_code rp_lazy_dot(struct rp_lazy *r, const char **line);
