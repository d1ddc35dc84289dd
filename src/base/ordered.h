/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A map from 64-bit numbers, such as addresses, to 64-bit numbers, that finds the neighbours of a
 * key. Every call takes logarithmic time whatever the order of the keys: an AA tree, which is a
 * balanced binary tree. A sorted array is smaller and faster to search, but not if entries come and
 * go.
 */
#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_ordered_entry {
    int64_t key, value;
    uint32_t child[2]; /* of the tree: before, after */
    uint8_t level;
    bool flag; /* the caller's */
};

struct rp_ordered {
    RP_VEC(struct rp_ordered_entry) entries; /* the first entry represents "none" */
    uint32_t root, unused;                   /* unused: removed entries, chained by child[0] */
    size_t n;
};

void rp_ordered_release(struct rp_ordered *map);

/* Return the entry with the smallest key that is >= key, or the largest that is <= key; NULL if
   there is none. The caller may change it, except for the key, until the next put or remove. */
struct rp_ordered_entry *rp_ordered_from(const struct rp_ordered *map, int64_t key);
struct rp_ordered_entry *rp_ordered_upto(const struct rp_ordered *map, int64_t key);

/* Sets or replaces the value of a key. */
enum rp_code rp_ordered_put(struct rp_ordered *map, int64_t key, int64_t value, bool flag,
                            struct rp_err *err);
/* Returns false if it is not there. */
bool rp_ordered_remove(struct rp_ordered *map, int64_t key);
