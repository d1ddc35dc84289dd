/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions for texts: beginnings, endings, digits; and for errors in text inputs: line and column
 * of a byte, the line with a caret under it, and short excerpts that are safe on a terminal
 * (control and non-ASCII bytes as \xNN).
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_text_pos {
    uint32_t line, column; /* 1-based; column counts bytes */
    size_t line_begin, line_end;
};

/* offset may equal len (the end of the text). */
struct rp_text_pos rp_text_position(const char *text, size_t len, size_t offset);

/*
 * Sets err to "message at line L, column C" and the line with a caret below it:
 *
 *   unknown opcode 'ad' at line 3, column 21
 *     ROOT %r = f32[2,3] ad(%a, %b)
 *                        ^
 *
 * Lines over 80 bytes are shown around the caret. fmt gives the message.
 */
enum rp_code rp_text_error(struct rp_err *err, enum rp_code code, const char *text, size_t len,
                           size_t offset, const char *fmt, ...) RP_PRINTF(6, 7);

/* Writes up to len bytes, escaped, with a NUL and cut to fit cap; returns the length. */
size_t rp_text_escape(char *out, size_t cap, const char *bytes, size_t len);

/* Writes up to 60 bytes around offset, escaped, with >>> before the byte at offset. A cap of 280 is
   enough. */
size_t rp_text_excerpt(char *out, size_t cap, const char *bytes, size_t len, size_t offset);

/* Whether a text begins or ends with another one; _n: a text of n bytes. */
bool rp_text_begins(const char *text, const char *begin);
bool rp_text_ends(const char *text, const char *end);
bool rp_text_ends_n(const char *text, size_t n, const char *end);

/* Returns the part of a path after its last '/'. */
const char *rp_text_file(const char *path);

/* Return the value of a hexadecimal digit, or of n of them (up to 7); -1 if a character is not
   one. */
int rp_hex_digit(char c);
int32_t rp_hex_number(const char *digits, size_t n);

/*
 * Returns the distance between two words (insertions, deletions, changes, swaps of neighbours), at
 * most 255, for "did you mean". Words over 64 bytes are far from everything.
 */
unsigned rp_text_distance(const char *a, const char *b);
