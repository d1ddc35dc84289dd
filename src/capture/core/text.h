/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A text of an event: its address, length and hash, inlined into the hot path. A name of up to 16
 * bytes takes one multiplication.
 */
#include "capture/core/state.h"

struct text {
    const char *at;
    size_t len;
    uint64_t hash;
};

static inline uint64_t load8(const char *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return v;
}

static inline uint64_t load4(const char *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t m =
        (__uint128_t)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd1b54a32d192ed03));

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static RP_CORE_INLINE uint64_t hash_text(const char *p, size_t n)
{
    uint64_t h = n * UINT64_C(0xa0761d6478bd642f);

    if (RP_CORE_LIKELY(n <= 16)) {
        if (n >= 8)
            return mix(h ^ load8(p), load8(p + n - 8));
        if (n >= 4)
            return mix(h ^ load4(p), load4(p + n - 4));
        if (!n)
            return h;
        return mix(h ^ (uint8_t)p[0], (uint64_t)(uint8_t)p[n / 2] << 8 | (uint8_t)p[n - 1]);
    }
    for (size_t i = 0; i + 16 < n; i += 16)
        h = mix(h ^ load8(p + i), load8(p + i + 8));
    return mix(h ^ load8(p + n - 16), load8(p + n - 8));
}

static RP_CORE_INLINE struct text text_of(const char *s, size_t max)
{
    struct text t = {s ? s : "", s ? strlen(s) : 0, 0};

    if (RP_CORE_UNLIKELY(t.len > max))
        t.len = max;
    t.hash = hash_text(t.at, t.len);
    return t;
}
