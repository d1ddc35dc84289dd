/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_CHROME_JSON_CLEAN_H
#define RP_FORMATS_CHROME_JSON_CLEAN_H
/*
 * Text that was read liberally, made into JSON in the strict sense. For formats/write/emit_json.c.
 */
#include "formats/write/emit.h"

enum rp_raw_state {
    RP_RAW_CLEAN,   /* one JSON value, on one line */
    RP_RAW_UNCLEAN, /* one, but for NaN, Infinity, bytes in strings and escapes, or on several
                       lines: cleaning helps */
    RP_RAW_BROKEN   /* not JSON */
};

enum rp_raw_state rp_json_raw_check(const char *s, size_t n);
/* Of an unclean value. */
void rp_json_put_cleaned(struct rp_emit *e, const char *s, size_t n);

/* Whether text may stand between quotes as it is, and putting it there (without the quotes) where
   it may not. */
bool rp_json_text_is_plain(const char *s, size_t n);
void rp_json_put_escaped(struct rp_emit *e, const char *s, size_t n);

#endif
