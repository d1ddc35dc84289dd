/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The part of the pull parser's state that its inlined functions do not touch. Private to it. */
#include "base/vec.h"
#include "io/json_blocks.h"

#define RP_JSON_CONTEXT 30 /* bytes shown on either side of an error */

struct rp_json_inner {
    struct rp_json_blocks *blocks;
    const struct rp_json_block *block; /* the current one */
    uint32_t depth_max;
    struct rp_json_stats stats;
    uint32_t bad_escapes;
    struct rp_err err; /* the first */
    uint64_t fail_offset;
    const char *fail_at; /* in the block */
    bool ended_early, trailing_comma, missing_comma;
    char before[RP_JSON_CONTEXT]; /* the end of the block before */
    size_t before_n;
    const char *raw_from; /* where the raw value begins in this block, or NULL */
    uint64_t raw_offset;  /* where it began */
    RP_VEC(char) raw;     /* its part in earlier blocks */
    RP_VEC(char) decoded;
};

/* Advances to the next block; false: there is none. */
bool rp_json_next_block(struct rp_json *p);

/* The next byte that is not white space, in this block or a later one; NULL: there is none. */
const char *rp_json_next_byte(struct rp_json *p);

static inline bool rp_json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Sets the error; at is a byte of the block, or its end, offset usually the same. Always false. */
bool rp_json_fail(struct rp_json *p, enum rp_code code, uint64_t offset, const char *at,
                  const char *what);
bool rp_json_fail_nomem(struct rp_json *p);
