/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes strict JSON (RFC 8259) from text that a tolerant reader accepted. */
#include "io/emit.h"

enum rp_raw_state {
    RP_RAW_CLEAN,   /* one JSON value, on one line */
    RP_RAW_UNCLEAN, /* JSON except for NaN, Infinity, invalid bytes or escapes in strings,
                       characters that steer a terminal, or line breaks: rp_json_put_cleaned makes
                       it valid */
    RP_RAW_BROKEN   /* not JSON */
};

enum rp_raw_state rp_json_raw_check(const char *s, size_t n);
/* Writes a value that is RP_RAW_UNCLEAN. */
void rp_json_put_cleaned(struct rp_emit *e, const char *s, size_t n);
