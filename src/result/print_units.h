/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Formats numbers for people: three or four digits, a unit, thousands separators. */
#include "base/arena.h"

#include <reprise/result.h>
#include <stddef.h>

#define RP_CELL_BYTES 256

/* Writes "628.1 ms", "62.4 MB", "97.7 %", "1.41 GHz", or the plain number if it has no unit. */
void rp_units_format(double value, enum rp_unit unit, char *out, size_t cap);

/* Makes the same as a text in an arena, whose failure sticks to it (arena.h). */
const char *rp_units_text(struct rp_arena *arena, double value, enum rp_unit unit);
static inline const char *rp_units_time(struct rp_arena *arena, int64_t ns)
{
    return rp_units_text(arena, (double)ns, RP_UNIT_NS);
}

/* Makes "1 kernel", "2,345 kernels", "0 launches" or "2 copies": a number of things, whose name is
   given in the singular; in an arena, whose failure sticks to it. The verb that follows is the
   caller's. */
const char *rp_units_count(struct rp_arena *arena, int64_t n, const char *one);

/* "239,093" */
const char *rp_units_number(struct rp_arena *arena, int64_t n);
void rp_units_thousands(int64_t value, char *out, size_t cap);

/* Writes the shortest decimal that reads back as the same double, with a '.' in every locale. */
size_t rp_units_double(double value, char out[32]);

/*
 * Returns what the screen shows for a field: a scalar, or a list of plain values joined by commas.
 * It points into buf or to the record's own text; NULL if the value is not known.
 */
const char *rp_units_cell(const struct rp_field *field, const void *record,
                          char buf[RP_CELL_BYTES]);
