/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Packs integers into bytes: seven bits per byte, the lowest first, so that small numbers are
 * short. The writer puts RP_PACKED_MOST zeros behind the last number; the reader asks rp_packed_has
 * for as many bytes as the next numbers may have, and need not check each byte.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_PACKED_MOST 10 /* bytes of a number */

static inline uint8_t *rp_pack_number(uint8_t *to, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        *to++ = (uint8_t)(x | 128);
    *to++ = (uint8_t)x;
    return to;
}

/* Small negative numbers are short, too. */
static inline uint8_t *rp_pack_signed(uint8_t *to, int64_t x)
{
    return rp_pack_number(to, (uint64_t)x << 1 ^ (uint64_t)(x >> 63));
}

struct rp_packed {
    const uint8_t *at, *end;
    bool cut; /* there were fewer bytes than there should be */
};

#define RP_PACKED_INLINE static inline __attribute__((always_inline))

RP_PACKED_INLINE bool rp_packed_has(struct rp_packed *b, ptrdiff_t most)
{
    b->cut |= b->end - b->at < most;
    return !b->cut;
}

/* Most numbers take one or two bytes, so these are tried first. The only error that is detected
   is a number that does not end after ten bytes. */
RP_PACKED_INLINE uint64_t rp_packed_number(struct rp_packed *b)
{
    const uint8_t *at = b->at;
    uint64_t x = at[0];
    unsigned shift;

    if (x < 128) {
        b->at = at + 1;
        return x;
    }
    x = (x & 127) | (uint64_t)(at[1] & 127) << 7;
    if (at[1] < 128) {
        b->at = at + 2;
        return x;
    }
    for (at += 2, shift = 14; shift < 70; shift += 7) {
        uint8_t byte = *at++;

        x |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128) {
            b->at = at;
            return x;
        }
    }
    b->cut = true;
    return 0;
}

RP_PACKED_INLINE int64_t rp_packed_signed(struct rp_packed *b)
{
    uint64_t x = rp_packed_number(b);

    return (int64_t)(x >> 1 ^ (0 - (x & 1)));
}
