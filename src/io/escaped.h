/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Every text of traces, programs and files must be written by this function, which escapes it for
 * the language of the output (base/escape.h).
 */
#include "base/escape.h"
#include "io/emit.h"
#include "io/output.h"

#include <string.h>

/* NULL is written as null in JSON, as None in Python, and otherwise as an empty text. */
void rp_out_escaped(struct rp_out *out, enum rp_language language, const char *text);
void rp_out_escaped_bytes(struct rp_out *out, enum rp_language language, const char *bytes,
                          size_t n);
void rp_emit_escaped(struct rp_emit *e, enum rp_language language, const char *bytes, size_t n);
static inline void rp_emit_json_text(struct rp_emit *e, const char *text)
{
    rp_emit_escaped(e, RP_IN_JSON, text, strlen(text));
}
