/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 in the form of RFC 1321; the constants are those of sines. */
#include "base/md5.h"

static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static inline uint32_t turn(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

#define STEP(f, a, b, c, d, k, s, i) a = b + turn(a + (f) + w[k] + sines[i], s)
/* Makes four steps, in which the names rotate. */
#define FOUR(F, k0, k1, k2, k3, s0, s1, s2, s3, i)     \
    do {                                               \
        STEP(F(b, c, d), a, b, c, d, k0, s0, (i));     \
        STEP(F(a, b, c), d, a, b, c, k1, s1, (i) + 1); \
        STEP(F(d, a, b), c, d, a, b, k2, s2, (i) + 2); \
        STEP(F(c, d, a), b, c, d, a, k3, s3, (i) + 3); \
    } while (0)
#define CHOOSE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define OTHER(x, y, z)  ((y) ^ ((z) & ((x) ^ (y))))
#define PARITY(x, y, z) ((x) ^ (y) ^ (z))
#define MIX(x, y, z)    ((y) ^ ((x) | ~(z)))

static void block(uint32_t *h, const uint8_t *at)
{
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], w[16];

    for (unsigned i = 0; i < 16; i++, at += 4)
        w[i] = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    for (unsigned i = 0; i < 16; i += 4)
        FOUR(CHOOSE, i, i + 1, i + 2, i + 3, 7, 12, 17, 22, i);
    for (unsigned i = 16; i < 32; i += 4)
        FOUR(OTHER, (5 * i + 1) % 16, (5 * i + 6) % 16, (5 * i + 11) % 16, (5 * i + 16) % 16, 5, 9,
             14, 20, i);
    for (unsigned i = 32; i < 48; i += 4)
        FOUR(PARITY, (3 * i + 5) % 16, (3 * i + 8) % 16, (3 * i + 11) % 16, (3 * i + 14) % 16, 4,
             11, 16, 23, i);
    for (unsigned i = 48; i < 64; i += 4)
        FOUR(MIX, 7 * i % 16, (7 * i + 7) % 16, (7 * i + 14) % 16, (7 * i + 21) % 16, 6, 10, 15, 21,
             i);
    h[0] += a, h[1] += b, h[2] += c, h[3] += d;
}

void rp_md5_begin(struct rp_md5 *s)
{
    *s = (struct rp_md5){{.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}}};
}

void rp_md5_add(struct rp_md5 *s, const void *bytes, size_t n)
{
    rp_block_hash_add(&s->s, block, bytes, n);
}

void rp_md5_text(struct rp_md5 *s, char out[RP_MD5_TEXT])
{
    rp_block_hash_text(&s->s, block, 4, 24, out);
}
