/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The name of a change in the file of outcomes. */
#include <stdbool.h>
#include <stddef.h>

#define RP_CHANGE_MOST 200

/* A what-if, or several joined with '+', in the order of the alphabet. False: it is too long, or
   holds other characters than those of what-ifs that are about a whole program. */
bool rp_change_canonical(const char *text, char *out, size_t cap);
