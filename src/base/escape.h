/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Texts of others inside the languages that we write. A name in a trace or a program may hold
 * anything: quotes, line breaks, commands, sequences that steer a terminal, bytes that are not
 * UTF-8. Every writer puts such a text through rp_escape (or rp_out_escaped and rp_emit_escaped,
 * which call it), and says which language it is in; the text then stays one word, string or cell of
 * that language, whatever it holds.
 *
 * Where the language can spell a character it is kept (JSON, Python, protobuf); elsewhere line
 * breaks and tabs become blanks, and what steers a terminal or is not UTF-8 becomes U+FFFD.
 */
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rp_language {
    RP_IN_LINE,    /* plain text that stays in its line, as in a comment */
    RP_IN_MESSAGE, /* lines for a person: what cannot be shown is written as \xNN */
    RP_IN_WORD,    /* the same without blanks: they become '_' */
    RP_IN_NAME,    /* a name in a program: all but ASCII letters and digits become '_' */
    RP_IN_HLO,     /* a name of HLO: the same, and '.' and '-' stay */
    RP_IN_SHELL,   /* a word of a POSIX shell, in single quotes where it needs them */
    RP_IN_PYTHON,  /* a string of Python, with its quotes; bytes that are not UTF-8 are written as
                      os.fsdecode has them */
    RP_IN_JSON,    /* a string of JSON, with its quotes */
    RP_IN_STRING,  /* the same without the quotes: part of a string */
    RP_IN_SCRIPT,  /* the same, safe inside an element of HTML too */
    RP_IN_DOT,     /* inside the quotes of a label for Graphviz */
    RP_IN_MARKUP,  /* text of XML and HTML, inside or outside of an attribute's quotes */
    RP_IN_CSV,     /* a cell of RFC 4180; what a spreadsheet would take for a formula gets a ' */
    RP_IN_PROTO,   /* a string of protobuf's text form and of HLO, with its quotes */
    RP_IN_MLIR,    /* a string of MLIR, with its quotes */
    RP_IN_METRICS, /* inside the quotes of a label of OpenMetrics */
    RP_LANGUAGES
};

typedef void rp_escape_sink(void *to, const char *bytes, size_t n);

/* Hands n bytes, as they are written in a language, to `put` in pieces. */
void rp_escape(enum rp_language language, const char *text, size_t n, rp_escape_sink *put,
               void *to);
/* The same as a text in an arena; as rp_arena_text does it where memory runs out. */
const char *rp_arena_escaped(struct rp_arena *arena, enum rp_language language, const char *text);
/* Whether a text is written as it is, but for the quotes around it. */
bool rp_escape_needless(enum rp_language language, const char *text, size_t n);

/* A file name (no path) that stands for a text: no '/', no control characters, nothing a shell
   takes apart, not hidden, not an option, at most RP_FILE_NAME_MAX - 1 bytes. Texts that had to be
   changed end in a checksum, so that different texts have different names. */
#define RP_FILE_NAME_MAX 128
void rp_file_name(char out[RP_FILE_NAME_MAX], const char *text);

/* ------------------------------------------------------------------ UTF-8 */

#define RP_UTF8_BAD UINT32_MAX

/* The code point at s, before `end`, and its length in bytes; RP_UTF8_BAD and 1 where the bytes are
   not UTF-8. */
size_t rp_utf8_decode(const char *s, const char *end, uint32_t *code);
/* The same of a text that ends at a NUL; *s is not NUL. */
static inline size_t rp_utf8_next(const char *s, uint32_t *code)
{
    return rp_utf8_decode(s, s + 4, code); /* never beyond a NUL, which continues nothing */
}

/* The bytes of a code point up to 0x10ffff, at most four, without a NUL; returns their number. */
size_t rp_utf8_encode(char *to, uint32_t code);

/* Characters that steer a terminal or turn the direction of a line. */
bool rp_utf8_steers(uint32_t code);
