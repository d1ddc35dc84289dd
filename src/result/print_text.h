/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * UTF-8 text on a terminal: its width in columns, cutting it in the middle, wrapping it. Names in
 * traces may contain anything: control and direction characters and invalid UTF-8 are shown as
 * U+FFFD, line breaks and tabs as a space.
 */
#include "io/output.h"

#include <stddef.h>
#include <stdint.h>

/* Width of a text in columns, as rp_screen_put prints it without a limit. */
size_t rp_screen_width(const char *text);

/* Prints a text in at most `width` columns, cut in its middle with '…' where it is longer. Returns
   the columns used. */
size_t rp_screen_put(struct rp_out *to, const char *text, size_t width);

/*
 * Words of a text that must stay where it is cut, because they tell it from other texts: for each
 * other text the first word in which the two differ. The positions are in bytes.
 */
#define RP_KEPT_WORDS 12
struct rp_kept_words {
    size_t n;
    struct rp_kept_word {
        size_t begin, end;
        size_t count; /* texts that differ first in this word */
    } at[RP_KEPT_WORDS];
};

/* Notes in which word a text differs from another one. */
void rp_screen_keep(struct rp_kept_words *kept, const char *text, const char *other);

/* As rp_screen_put; what is left out is chosen so that the kept words stay, as many as fit. */
size_t rp_screen_put_kept(struct rp_out *to, const char *text, size_t width,
                          const struct rp_kept_words *kept);

/* Prints a text of words from column `start` on; further lines begin with `indent` spaces. Lines
   end before column `width` where the words allow it. */
void rp_screen_wrap(struct rp_out *to, const char *text, size_t start, size_t indent, size_t width);
/* The same in a column: a word that is wider than all of it is cut in its middle. */
void rp_screen_wrap_within(struct rp_out *to, const char *text, size_t start, size_t indent,
                           size_t width);

void rp_screen_pad(struct rp_out *to, size_t n); /* n spaces */
