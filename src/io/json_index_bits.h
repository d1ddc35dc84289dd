/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the vector variants of the structural index share: work on masks of 64 bytes, bit i for byte
 * i. Only for json_index_avx2.c and json_index_neon.c.
 */
#include "io/json_index.h"

/* The bytes that follow an unescaped backslash; *carry: whether byte 0 (and then byte 64) does. */
static inline uint64_t json_bits_escaped(uint64_t backslash, uint64_t *carry)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    uint64_t first, follows, odd_starts, runs, mask;

    if (!backslash) {
        mask = *carry;
        *carry = 0;
        return mask;
    }
    /* A run of backslashes escapes the byte after it where its length is odd. Adding the runs that
       begin on odd bits to all of them carries each to its end; parity then shows in the mask. */
    first = backslash & ~*carry;
    follows = first << 1 | *carry;
    odd_starts = first & ~even & ~follows;
    *carry = __builtin_add_overflow(odd_starts, first, &runs);
    return (even ^ runs << 1) & follows;
}

/* Bit i: the parity of bits 0..i. */
static inline uint64_t json_bits_parity(uint64_t x)
{
    for (unsigned shift = 1; shift < 64; shift <<= 1)
        x ^= x << shift;
    return x;
}

/* Writes the positions of the bits of mask: always eight, as most chunks have fewer, then more if
 * needed. */
static inline uint32_t *json_bits_write(uint64_t mask, uint32_t base, uint32_t *out)
{
    const uint64_t top = UINT64_C(1) << 63; /* keeps ctz defined once the mask is used up */
    unsigned n = (unsigned)__builtin_popcountll(mask), k;

    for (k = 0; k < 8; k++, mask &= mask - 1)
        out[k] = base + (uint32_t)__builtin_ctzll(mask | top);
    if (__builtin_expect(n > 8, 0)) {
        for (; k < 16; k++, mask &= mask - 1)
            out[k] = base + (uint32_t)__builtin_ctzll(mask | top);
        for (; k < n; k++, mask &= mask - 1)
            out[k] = base + (uint32_t)__builtin_ctzll(mask);
    }
    return out + n;
}
