/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The common part of MD5 and SHA-256: blocks of 64 bytes, the last one with the length in bits. */
#include <stddef.h>
#include <stdint.h>

struct rp_block_hash {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
};

typedef void rp_block_fn(uint32_t *h, const uint8_t *at);

void rp_block_hash_add(struct rp_block_hash *s, rp_block_fn *block, const void *bytes, size_t n);
/* Ends it and writes `words` of h in hexadecimal. turn is 0 if the bytes of a number are
   big-endian, and 24 if they are little-endian. */
void rp_block_hash_text(struct rp_block_hash *s, rp_block_fn *block, size_t words, unsigned turn,
                        char *out);
