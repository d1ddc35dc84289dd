/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * UTF-8 text on a terminal: measures its width in columns, cuts it in the middle, wraps it. Names
 * in traces may contain anything: control and direction characters and invalid UTF-8 are shown as
 * U+FFFD, line breaks and tabs as a space.
 */
#include "io/output.h"

#include <stddef.h>
#include <stdint.h>

/* Returns the width of a text in columns, as rp_screen_put prints it without a limit. */
size_t rp_screen_width(const char *text);

/* Prints a text in at most `width` columns, cut in its middle with '…' if it is longer. Returns the
   columns used. */
size_t rp_screen_put(struct rp_out *to, const char *text, size_t width);

/*
 * Words of a text that must stay when it is cut, because they distinguish it from other texts: for
 * each other text the first word in which the two differ. The positions are in bytes.
 */
#define RP_KEPT_WORDS 12
struct rp_kept_words {
    size_t n;
    struct rp_kept_word {
        size_t begin, end;
        size_t count; /* the number of texts that differ first in this word */
    } at[RP_KEPT_WORDS];
};

/* Notes in which word a text differs from another one. */
void rp_screen_keep(struct rp_kept_words *kept, const char *text, const char *other);

/* Does the same as rp_screen_put, but as many of the kept words as fit stay. */
size_t rp_screen_put_kept(struct rp_out *to, const char *text, size_t width,
                          const struct rp_kept_words *kept);

/* Prints a text of words from column `start` on; further lines begin with `indent` spaces. Lines
   end before column `width` if the words allow it. */
void rp_screen_wrap(struct rp_out *to, const char *text, size_t start, size_t indent, size_t width);
/* Does the same in a column: a word that is wider than the column is cut in its middle. */
void rp_screen_wrap_within(struct rp_out *to, const char *text, size_t start, size_t indent,
                           size_t width);

void rp_screen_pad(struct rp_out *to, size_t n); /* n spaces */
