/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small files of the user's with one row per line: patterns of steps, categories. */
#include "base/arena.h"

#include <stdbool.h>

/* Handles one line of n bytes, without its end; number counts from 1. path is for messages. */
typedef enum rp_code rp_line_fn(void *user, const char *path, size_t number, const char *line,
                                size_t n, struct rp_err *err);

/* Handles the lines of a text in order until one fails. */
enum rp_code rp_lines_parse(const char *path, const char *text, rp_line_fn *one, void *user,
                            struct rp_err *err);

/* Does the same for a file of at most `most` bytes, whose text goes into the arena. */
enum rp_code rp_lines_read(const char *path, size_t most, struct rp_arena *arena, rp_line_fn *one,
                           void *user, struct rp_err *err);

/* A row of a word and its arguments: n bytes of text without space around them. The word is the
   first `word` bytes, and the arguments begin at `rest` (rest == n if there are none). */
struct rp_line_row {
    const char *text;
    size_t n, word, rest;
};

/* Returns false if the line is empty or a comment (#). */
bool rp_line_split(const char *line, size_t n, struct rp_line_row *out);
