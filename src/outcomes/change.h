/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The name of a change in the file of outcomes. */
#include <stdbool.h>
#include <stddef.h>

#define RP_CHANGE_MOST 200

/* Writes a what-if, or several joined with '+', in alphabetical order. Returns false if it is too
   long, or contains characters other than those of what-ifs about a whole program. */
bool rp_change_canonical(const char *text, char *out, size_t cap);
