/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers by text: what a list is searched for again and again. Texts are borrowed, and compared
 * where hashes are equal.
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
/* The first number of a text stays. */
enum rp_code rp_names_add(struct rp_names *names, const char *text, uint32_t number,
                          struct rp_err *err);
/* RP_NONE: no such text; NULL has none. */
uint32_t rp_names_find(const struct rp_names *names, const char *text);
