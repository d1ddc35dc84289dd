/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Exact decimals: text such as "1623143089861.125" becomes an integer in units of 10^-scale, never
 * through a double. Digits beyond the scale are rounded half to even; flags report what was done,
 * so that a reader can count it.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    RP_DECIMAL_ROUNDED = 1,  /* digits were lost */
    RP_DECIMAL_RANGE = 2,    /* outside of int64, so it was saturated */
    RP_DECIMAL_FRACTION = 4, /* the number as written is not an integer */
    RP_DECIMAL_INVALID = 8,  /* not a number (also NaN and Infinity): the value is 0 */
    RP_DECIMAL_NEGATIVE = 16
};

/* Parses JSON numbers, and a leading '+'; scale is 0 to 18. Returns the flags. */
unsigned rp_decimal_parse(const char *s, size_t len, unsigned scale, int64_t *value);

/* Writes value / 10^scale with exactly `scale` decimals and returns the length (at most 21). */
size_t rp_decimal_format(int64_t value, unsigned scale, char out[24]);
