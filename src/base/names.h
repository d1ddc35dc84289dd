/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds numbers by text, for lists that are searched repeatedly. Texts are borrowed, and compared
 * if hashes are equal.
 */
#include "base/hash.h"
#include "base/vec.h"

struct rp_name {
    const char *text;
    uint32_t number;
};
struct rp_names {
    struct rp_map by_hash; /* -> entry */
    RP_VEC(struct rp_name) entries;
};

void rp_names_release(struct rp_names *names);
/* If a text is added again, its first number stays. */
enum rp_code rp_names_add(struct rp_names *names, const char *text, uint32_t number,
                          struct rp_err *err);
/* Returns RP_NONE if there is no such text, or if it is NULL. */
uint32_t rp_names_find(const struct rp_names *names, const char *text);
