/* SPDX-License-Identifier: Apache-2.0 */
#include "base/block_hash.h"

#include <string.h>

void rp_block_hash_add(struct rp_block_hash *s, rp_block_fn *block, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    while (n) {
        size_t have = s->bytes % 64, take = 64 - have < n ? 64 - have : n;

        if (take == 64) {
            block(s->h, at);
        } else {
            memcpy(s->block + have, at, take);
            if (have + take == 64)
                block(s->h, s->block);
        }
        s->bytes += take;
        at += take;
        n -= take;
    }
}

void rp_block_hash_text(struct rp_block_hash *s, rp_block_fn *block, size_t words, unsigned turn,
                        char *out)
{
    static const uint8_t pad[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = s->bytes * 8;
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++)
        length[turn ? i : 7 - i] = (uint8_t)(bits >> 8 * i);
    rp_block_hash_add(s, block, pad, 1 + (119 - s->bytes % 64) % 64);
    rp_block_hash_add(s, block, length, sizeof length);
    for (size_t i = 0; i < 4 * words; i++) {
        uint8_t byte = (uint8_t)(s->h[i / 4] >> ((24 - 8 * (i % 4)) ^ turn));

        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out = '\0';
}
