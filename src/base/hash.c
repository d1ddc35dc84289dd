/* SPDX-License-Identifier: Apache-2.0 */
/* The slow paths of the map: growing and releasing. */
#include "base/hash.h"

#include "base/vec.h"

#include <string.h>

void rp_map_init(struct rp_map *map)
{
    *map = (struct rp_map){0};
}

void rp_map_release(struct rp_map *map)
{
    rp_vec_drop(map->key, map->cap, sizeof *map->key);
    rp_vec_drop(map->value, map->cap, sizeof *map->value);
    rp_map_init(map);
}

static enum rp_code allocate(struct rp_map *map, size_t cap, struct rp_err *err)
{
    size_t nkey = 0, nvalue = 0;

    *map = (struct rp_map){0};
    RP_TRY(rp_vec_grow((void **)&map->key, &nkey, 0, cap, sizeof *map->key, err));
    if (rp_vec_grow((void **)&map->value, &nvalue, 0, cap, sizeof *map->value, err) != RP_OK) {
        rp_vec_drop(map->key, nkey, sizeof *map->key);
        map->key = NULL;
        return RP_NOMEM;
    }
    map->cap = cap;
    memset(map->value, 0xff, cap * sizeof *map->value);
    return RP_OK;
}

enum rp_code rp_map_grow(struct rp_map *map, struct rp_err *err)
{
    struct rp_map old = *map, bigger;

    RP_TRY(allocate(&bigger, old.cap ? old.cap * 2 : 64, err));
    for (size_t i = 0; i < old.cap; i++) {
        if (old.value[i] != RP_MAP_NONE) {
            size_t slot = rp_map_slot(&bigger, old.key[i]);

            bigger.key[slot] = old.key[i];
            bigger.value[slot] = old.value[i];
        }
    }
    bigger.n = old.n;
    rp_map_release(&old);
    *map = bigger;
    return RP_OK;
}

enum rp_code rp_map_put(struct rp_map *map, uint64_t key, uint32_t value, struct rp_err *err)
{
    uint32_t before;

    RP_TRY(rp_map_intern(map, key, value, &before, err));
    if (before != value)
        map->value[rp_map_slot(map, key)] = value;
    return RP_OK;
}
