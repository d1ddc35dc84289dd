/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How names of calls, kernels and operators are compared with the rows of tables: a row has a text
   and the kind of comparison. */
#include <stdbool.h>
#include <string.h>

enum rp_named { RP_NAMED_IS, RP_NAMED_BEGINS, RP_NAMED_HAS };

static inline bool rp_is_named(const char *name, enum rp_named how, const char *text)
{
    return how == RP_NAMED_IS       ? strcmp(name, text) == 0
           : how == RP_NAMED_BEGINS ? strncmp(name, text, strlen(text)) == 0
                                    : strstr(name, text) != NULL;
}

/* Whether a name contains one of the words of a list that ends with NULL, in either case. */
static inline bool rp_has_word(const char *name, const char *const *words)
{
    while (*words && !strcasestr(name, *words))
        words++;
    return *words != NULL;
}
