/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cache in front of a program's string table for strings that repeat (opcodes, files, scopes): a
 * few slots by a cheap hash, so that the large table is not touched. The texts must not move while
 * the cache is used.
 */
#include "base/hash.h"
#include "program/program.h"

#define RP_STRING_SLOTS 64

struct rp_string_cache { /* all zero: empty */
    struct {
        const char *at;
        size_t n;
        uint32_t id;
    } slot[RP_STRING_SLOTS];
};

static inline size_t rp_string_slot(const char *at, size_t n)
{
    uint64_t a = 0, b = 0;

    memcpy(&a, at, n < 8 ? n : 8);
    memcpy(&b, at + (n < 8 ? 0 : n - 8), n < 8 ? n : 8);
    return (size_t)rp_hash_mix(a ^ n, b ^ UINT64_C(0x9e3779b97f4a7c15)) % RP_STRING_SLOTS;
}

static inline enum rp_code rp_string_cached(struct rp_program *p, struct rp_string_cache *cache,
                                            const char *at, size_t n, uint32_t *id,
                                            struct rp_err *err)
{
    size_t i = n ? rp_string_slot(at, n) : 0;

    if (!n)
        return rp_program_string(p, "", 0, id, err);
    if (cache->slot[i].n == n && memcmp(cache->slot[i].at, at, n) == 0) {
        *id = cache->slot[i].id;
        return RP_OK;
    }
    RP_TRY(rp_program_string(p, at, n, id, err));
    cache->slot[i].at = at;
    cache->slot[i].n = n;
    cache->slot[i].id = *id;
    return RP_OK;
}
