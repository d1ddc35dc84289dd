/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small files of the user's, a row a line: patterns of steps, categories. */
#include "base/arena.h"

#include <stdbool.h>

/* One line of n bytes, without its end; number: from 1. path is for messages. */
typedef enum rp_code rp_line_fn(void *user, const char *path, size_t number, const char *line,
                                size_t n, struct rp_err *err);

/* The lines of a text, in order, until one fails. */
enum rp_code rp_lines_parse(const char *path, const char *text, rp_line_fn *one, void *user,
                            struct rp_err *err);

/* The same of a file of at most `most` bytes, whose text goes into the arena. */
enum rp_code rp_lines_read(const char *path, size_t most, struct rp_arena *arena, rp_line_fn *one,
                           void *user, struct rp_err *err);

/* A row of a word and what follows it: n bytes of text without space around them, of which the
   first `word` are the word, and those from `rest` on what follows (rest == n: nothing). */
struct rp_line_row {
    const char *text;
    size_t n, word, rest;
};

/* False: the line is empty or a comment (#). */
bool rp_line_split(const char *line, size_t n, struct rp_line_row *out);
