/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_RESULT_PRINT_GRID_H
#define RP_RESULT_PRINT_GRID_H
/* The screen, and lists of records as aligned columns; used by the table printer. */
#include "io/output.h"

#include <reprise/result.h>
#include <stdbool.h>
#include <stddef.h>

struct rp_screen {
    struct rp_out *to;
    size_t width; /* columns */
    bool color;
    bool open; /* something was printed: an empty line precedes the next block */
};

/* Printed before a text where color is on. */
#define RP_STYLE_BOLD "\033[1m"
#define RP_STYLE_DIM  "\033[2m"
#define RP_STYLE_WARN "\033[33m"

void rp_screen_style(struct rp_screen *screen, const char *style); /* NULL: back to normal */

/*
 * Prints n records of a type, one per line. With headings, the columns are the fields that have a
 * title; without, all fields (the keys and values of a map). Lists of warnings are not shown.
 */
void rp_grid_print(struct rp_screen *screen, const struct rp_type *type, const void *items,
                   size_t n, size_t indent, bool headings);

#endif
