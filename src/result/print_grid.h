/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_RESULT_PRINT_GRID_H
#define RP_RESULT_PRINT_GRID_H
/* What the parts of the table printer share: the screen, and a list of records as aligned columns.
 */
#include "io/output.h"

#include <reprise/result.h>
#include <stdbool.h>
#include <stddef.h>

struct rp_screen {
    struct rp_out *to;
    size_t width; /* columns */
    bool color;
    bool open; /* something was printed: the next block wants an empty line before it */
};

/* Printed around a text where colour is on. */
#define RP_STYLE_BOLD "\033[1m"
#define RP_STYLE_DIM  "\033[2m"
#define RP_STYLE_WARN "\033[33m"

void rp_screen_style(struct rp_screen *screen, const char *style); /* NULL: back to normal */

/*
 * n records of a type, one a line. With headings, columns are the titled fields; without, all
 * fields are shown and none has a heading (a map's keys and values). Lists of warnings are not
 * shown: they are lines, not columns.
 */
void rp_grid_print(struct rp_screen *screen, const struct rp_type *type, const void *items,
                   size_t n, size_t indent, bool headings);

#endif
