/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hashing, and a map from 64-bit keys to 32-bit values (open addressing, linear probing, at most
 * half full). The hash is stable within a process only: it must not be written to a file.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t rp_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide m = (wide)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t rp_hash_u64(uint64_t x)
{
    return rp_hash_mix(x ^ UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93));
}

/* Combines a hash with a value; unlike rp_hash_mix alone, zeros do not erase the hash so far. */
static inline uint64_t rp_hash_join(uint64_t hash, uint64_t value)
{
    return rp_hash_u64(rp_hash_u64(hash) + value);
}

/* Hashes n bytes; short inputs take one multiplication. */
static inline uint64_t rp_hash_bytes(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t a = 0, b = 0, h = (uint64_t)n * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t x, y;

    if (n > 16) {
        size_t i = 0;

        for (; i + 16 < n; i += 16) {
            memcpy(&a, p + i, 8);
            memcpy(&b, p + i + 8, 8);
            h = rp_hash_mix(a ^ h, b ^ UINT64_C(0x2d358dccaa6c78a5));
        }
        memcpy(&a, p + n - 16, 8);
        memcpy(&b, p + n - 8, 8);
    } else if (n >= 8) {
        memcpy(&a, p, 8);
        memcpy(&b, p + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&x, p, 4);
        memcpy(&y, p + n - 4, 4);
        a = x;
        b = y;
    } else if (n) {
        a = p[0] | (uint64_t)p[n >> 1] << 8 | (uint64_t)p[n - 1] << 16;
    }
    return rp_hash_mix(a ^ h ^ UINT64_C(0xff51afd7ed558ccd), b ^ UINT64_C(0x8bb84b93962eacc9));
}

#define RP_MAP_NONE UINT32_MAX

struct rp_map {
    uint64_t *key;
    uint32_t *value; /* RP_MAP_NONE in a free slot */
    size_t n, cap;   /* cap is 0 or a power of two */
};

void rp_map_init(struct rp_map *map);
void rp_map_release(struct rp_map *map);
enum rp_code rp_map_grow(struct rp_map *map, struct rp_err *err);

static inline size_t rp_map_slot(const struct rp_map *map, uint64_t key)
{
    size_t i = (size_t)rp_hash_u64(key) & (map->cap - 1);

    while (map->value[i] != RP_MAP_NONE && map->key[i] != key)
        i = (i + 1) & (map->cap - 1);
    return i;
}

/* Returns the value of key, or RP_MAP_NONE. */
static inline uint32_t rp_map_get(const struct rp_map *map, uint64_t key)
{
    return map->cap ? map->value[rp_map_slot(map, key)] : RP_MAP_NONE;
}

/* Sets or replaces the value, which must not be RP_MAP_NONE. */
enum rp_code rp_map_put(struct rp_map *map, uint64_t key, uint32_t value, struct rp_err *err);

/* Returns the value of key; a new key gets the value `fresh`. */
static inline enum rp_code rp_map_intern(struct rp_map *map, uint64_t key, uint32_t fresh,
                                         uint32_t *value, struct rp_err *err)
{
    size_t i;

    if (map->n * 2 >= map->cap)
        RP_TRY(rp_map_grow(map, err));
    i = rp_map_slot(map, key);
    if (map->value[i] == RP_MAP_NONE) {
        map->key[i] = key;
        map->value[i] = fresh;
        map->n++;
    }
    *value = map->value[i];
    return RP_OK;
}
