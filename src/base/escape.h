/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Escapes texts of others in the languages that reprise writes. A name in a trace or a program may
 * contain anything: quotes, line breaks, commands, sequences that steer a terminal, bytes that are
 * not UTF-8. Every writer puts such a text through rp_escape (or rp_out_escaped and
 * rp_emit_escaped, which call it), and says which language it is in; the text then stays one word,
 * string or cell of that language, whatever it contains.
 *
 * If the language can spell a character, it is kept (JSON, Python, protobuf); otherwise line breaks
 * and tabs become blanks, and characters that steer a terminal or are not UTF-8 become U+FFFD.
 */
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rp_language {
    RP_IN_LINE,    /* plain text that stays in one line, as in a comment */
    RP_IN_MESSAGE, /* lines for a person: characters that cannot be shown are written as \xNN */
    RP_IN_WORD,    /* the same, but blanks become '_' */
    RP_IN_NAME,    /* a name in a program: everything except ASCII letters and digits becomes '_' */
    RP_IN_HLO,     /* a name of HLO: the same, but '.' and '-' stay */
    RP_IN_SHELL,   /* a word of a POSIX shell, in single quotes if necessary */
    RP_IN_PYTHON,  /* a string of Python, with its quotes; bytes that are not UTF-8 are written as
                      os.fsdecode returns them */
    RP_IN_JSON,    /* a string of JSON, with its quotes */
    RP_IN_STRING,  /* the same without the quotes, as a part of a string */
    RP_IN_SCRIPT,  /* the same, and also safe inside an element of HTML */
    RP_IN_DOT,     /* inside the quotes of a label for Graphviz */
    RP_IN_MARKUP,  /* text of XML and HTML, inside or outside of an attribute's quotes */
    RP_IN_CSV, /* a cell of RFC 4180; a text that a spreadsheet would read as a formula gets a ' */
    RP_IN_PROTO,   /* a string of protobuf's text form and of HLO, with its quotes */
    RP_IN_MLIR,    /* a string of MLIR, with its quotes */
    RP_IN_METRICS, /* inside the quotes of a label of OpenMetrics */
    RP_LANGUAGES
};

typedef void rp_escape_sink(void *to, const char *bytes, size_t n);

/* Hands n bytes, as they are written in a language, in pieces to `put`. */
void rp_escape(enum rp_language language, const char *text, size_t n, rp_escape_sink *put,
               void *to);
/* Makes the same as a text in an arena; if memory runs out, it behaves like rp_arena_text. */
const char *rp_arena_escaped(struct rp_arena *arena, enum rp_language language, const char *text);
/* Whether a text is written unchanged, except for the quotes around it. */
bool rp_escape_needless(enum rp_language language, const char *text, size_t n);

/* Makes a file name (not a path) from a text: without '/', control characters and characters
   special to a shell, not hidden, not an option, and at most RP_FILE_NAME_MAX - 1 bytes. A text
   that had to be changed ends in a checksum, so that different texts have different names. */
#define RP_FILE_NAME_MAX 128
void rp_file_name(char out[RP_FILE_NAME_MAX], const char *text);

/* ------------------------------------------------------------------ UTF-8 */

#define RP_UTF8_BAD UINT32_MAX

/* Decodes the code point at s, before `end`, and returns its length in bytes; gives RP_UTF8_BAD and
   1 if the bytes are not UTF-8. */
size_t rp_utf8_decode(const char *s, const char *end, uint32_t *code);
/* Does the same for a text that ends with a NUL; *s is not NUL. */
static inline size_t rp_utf8_next(const char *s, uint32_t *code)
{
    return rp_utf8_decode(s, s + 4,
                          code); /* it never reads beyond a NUL, which continues no character */
}

/* Writes the bytes of a code point up to 0x10ffff, at most four, without a NUL; returns their
   number. */
size_t rp_utf8_encode(char *to, uint32_t code);

/* Whether it steers a terminal or turns the direction of a line. */
bool rp_utf8_steers(uint32_t code);
