/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The level of an entry is one more than that of its left child, and equal to or one more than that
 * of its right child, but not equal to that of its right grandchild. "None" has level 0. So the
 * depth is at most twice the logarithm of n, which limits the recursion below.
 */
#include "base/ordered.h"

enum { BEFORE, AFTER };

void rp_ordered_release(struct rp_ordered *map)
{
    rp_vec_release(&map->entries);
    *map = (struct rp_ordered){0};
}

static struct rp_ordered_entry *nearest(const struct rp_ordered *map, int64_t key, int side)
{
    struct rp_ordered_entry *best = NULL, *e;

    for (uint32_t at = map->root; at; at = e->child[side == AFTER ? key > e->key : key >= e->key]) {
        e = &map->entries.at[at];
        if (side == AFTER ? e->key >= key : e->key <= key)
            best = e;
    }
    return best;
}

struct rp_ordered_entry *rp_ordered_from(const struct rp_ordered *map, int64_t key)
{
    return nearest(map, key, AFTER);
}

struct rp_ordered_entry *rp_ordered_upto(const struct rp_ordered *map, int64_t key)
{
    return nearest(map, key, BEFORE);
}

/* Makes the child on that side the parent of `top`; returns it. */
static uint32_t rotate(struct rp_ordered_entry *e, uint32_t top, int side)
{
    uint32_t child = e[top].child[side];

    e[top].child[side] = e[child].child[!side];
    e[child].child[!side] = top;
    return child;
}

/* Ensures that no left child has the same level. */
static uint32_t skew(struct rp_ordered_entry *e, uint32_t top)
{
    return top && e[e[top].child[BEFORE]].level == e[top].level ? rotate(e, top, BEFORE) : top;
}

/* Ensures that no three in a row have the same level. */
static uint32_t split(struct rp_ordered_entry *e, uint32_t top)
{
    if (!top || e[e[e[top].child[AFTER]].child[AFTER]].level != e[top].level)
        return top;
    top = rotate(e, top, AFTER);
    e[top].level++;
    return top;
}

static uint32_t insert(struct rp_ordered_entry *e, uint32_t top, uint32_t added)
{
    if (!top)
        return added;
    int side = e[added].key > e[top].key;
    e[top].child[side] = insert(e, e[top].child[side], added);
    return split(e, skew(e, top));
}

enum rp_code rp_ordered_put(struct rp_ordered *map, int64_t key, int64_t value, bool flag,
                            struct rp_err *err)
{
    struct rp_ordered_entry *known = rp_ordered_from(map, key);
    uint32_t added = map->unused;

    if (known && known->key == key) {
        known->value = value;
        known->flag = flag;
        return RP_OK;
    }
    if (added) {
        map->unused = map->entries.at[added].child[BEFORE];
    } else {
        if (map->entries.n >= UINT32_MAX)
            return rp_err_set(err, RP_LIMIT, "over 2^32 entries in a sorted table");
        RP_TRY(rp_vec_reserve(&map->entries, 2, err));
        if (!map->entries.n)
            map->entries.at[map->entries.n++] = (struct rp_ordered_entry){0};
        added = (uint32_t)map->entries.n++;
    }
    map->entries.at[added] =
        (struct rp_ordered_entry){.key = key, .value = value, .flag = flag, .level = 1};
    map->root = insert(map->entries.at, map->root, added);
    map->n++;
    return RP_OK;
}

/* After a child of `top` lost a level, restores the rules at the top of this file. */
static uint32_t rebalance(struct rp_ordered_entry *e, uint32_t top)
{
    const uint32_t *child = e[top].child;
    uint8_t least = e[child[BEFORE]].level < e[child[AFTER]].level ? e[child[BEFORE]].level
                                                                   : e[child[AFTER]].level;

    if (e[top].level > least + 1) {
        e[top].level = (uint8_t)(least + 1);
        if (e[child[AFTER]].level > e[top].level)
            e[child[AFTER]].level = e[top].level;
    }
    top = skew(e, top);
    e[top].child[AFTER] = skew(e, e[top].child[AFTER]);
    if (e[top].child[AFTER]) {
        uint32_t after = e[top].child[AFTER];

        e[after].child[AFTER] = skew(e, e[after].child[AFTER]);
    }
    top = split(e, top);
    e[top].child[AFTER] = split(e, e[top].child[AFTER]);
    return top;
}

/* Removes the last entry below `top`, and returns it in *last. */
static uint32_t take_last(struct rp_ordered_entry *e, uint32_t top, uint32_t *last)
{
    if (!e[top].child[AFTER]) {
        *last = top;
        return e[top].child[BEFORE];
    }
    e[top].child[AFTER] = take_last(e, e[top].child[AFTER], last);
    return rebalance(e, top);
}

static uint32_t take(struct rp_ordered_entry *e, uint32_t top, int64_t key)
{
    uint32_t last;

    if (e[top].key == key) {
        if (!e[top].child[BEFORE])
            return e[top].child[AFTER];
        e[top].child[BEFORE] = take_last(e, e[top].child[BEFORE], &last);
        e[last].child[BEFORE] = e[top].child[BEFORE];
        e[last].child[AFTER] = e[top].child[AFTER];
        e[last].level = e[top].level;
        return rebalance(e, last);
    }
    e[top].child[key > e[top].key] = take(e, e[top].child[key > e[top].key], key);
    return rebalance(e, top);
}

bool rp_ordered_remove(struct rp_ordered *map, int64_t key)
{
    const struct rp_ordered_entry *known = rp_ordered_from(map, key);

    if (!known || known->key != key)
        return false;
    uint32_t removed = (uint32_t)(known - map->entries.at);
    map->root = take(map->entries.at, map->root, key);
    map->entries.at[removed].child[BEFORE] = map->unused;
    map->unused = removed;
    map->n--;
    return true;
}
