/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Texts of traces, programs and files as they are written in a language (base/escape.h): there is
 * no other way to write one.
 */
#include "base/escape.h"
#include "io/emit.h"
#include "io/output.h"

/* NULL is null in JSON, None in Python, else an empty text. */
void rp_out_escaped(struct rp_out *out, enum rp_language language, const char *text);
void rp_out_escaped_bytes(struct rp_out *out, enum rp_language language, const char *bytes,
                          size_t n);
void rp_emit_escaped(struct rp_emit *e, enum rp_language language, const char *bytes, size_t n);
