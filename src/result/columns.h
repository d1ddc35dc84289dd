/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The columns that a list shows on the screen, if its field chooses them (RP_FIELD_SHOWN). */
#include <reprise/result.h>

#define RP_COLUMNS_MOST 24

struct rp_columns {
    struct rp_type type; /* of the items, with these fields */
    struct rp_field fields[RP_COLUMNS_MOST + 2];
    char text[512]; /* holds their titles */
};

/*
 * Makes the type whose fields are the chosen columns; "name" follows without a title, for wide
 * tables (RP_LABEL). Returns NULL on success, otherwise the word that names no field, or one
 * without a title, or the first one too many. The texts stay valid as long as `out`.
 */
const char *rp_columns_choose(const struct rp_field *list, struct rp_columns *out);
