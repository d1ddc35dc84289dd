/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural index, 64 bytes at a time with NEON: as the AVX2 variant, but a mask of 64 bits is
 * made by keeping one bit per byte and adding neighbours three times, and the inside of strings by
 * shifts (the carry-less multiplication is not part of every aarch64 processor).
 */
#include "io/json_index_bits.h"

#if defined(__aarch64__)
#include <arm_neon.h>

struct chunk {
    uint8x16_t part[4];
};

/* From bytes of all ones or zero to one bit each. */
static inline uint64_t chunk_mask(struct chunk c)
{
    static const uint8_t one_bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bit = vld1q_u8(one_bit);
    uint8x16_t a = vpaddq_u8(vandq_u8(c.part[0], bit), vandq_u8(c.part[1], bit));
    uint8x16_t b = vpaddq_u8(vandq_u8(c.part[2], bit), vandq_u8(c.part[3], bit));

    a = vpaddq_u8(a, b);
    a = vpaddq_u8(a, a);
    return vgetq_lane_u64(vreinterpretq_u64_u8(a), 0);
}

static inline uint64_t chunk_equal(struct chunk c, uint8_t byte)
{
    for (int i = 0; i < 4; i++)
        c.part[i] = vceqq_u8(c.part[i], vdupq_n_u8(byte));
    return chunk_mask(c);
}

static inline uint64_t chunk_control(struct chunk c)
{
    for (int i = 0; i < 4; i++)
        c.part[i] = vcltq_u8(c.part[i], vdupq_n_u8(0x20));
    return chunk_mask(c);
}

/* [ and ] differ from { and } by one bit. */
static inline uint64_t chunk_structural(struct chunk c)
{
    for (int i = 0; i < 4; i++) {
        uint8x16_t folded = vorrq_u8(c.part[i], vdupq_n_u8(0x20));
        uint8x16_t bracket =
            vorrq_u8(vceqq_u8(folded, vdupq_n_u8('{')), vceqq_u8(folded, vdupq_n_u8('}')));

        c.part[i] = vorrq_u8(bracket, vceqq_u8(c.part[i], vdupq_n_u8(',')));
    }
    return chunk_mask(c);
}

static inline struct chunk chunk_load(const char *text)
{
    struct chunk c;

    for (int i = 0; i < 4; i++)
        c.part[i] = vld1q_u8((const uint8_t *)text + 16 * i);
    return c;
}

size_t rp_json_index_neon(struct rp_json_index_state *state, const char *text, size_t n,
                          uint32_t base, uint32_t *out)
{
    struct rp_json_index_state s = *state;
    uint32_t *o = out;
    size_t i;

    for (i = 0; i + 64 <= n; i += 64) {
        struct chunk c = chunk_load(text + i);
        uint64_t backslash = chunk_equal(c, '\\');
        uint64_t quote = chunk_equal(c, '"') & ~json_bits_escaped(backslash, &s.escaped);
        uint64_t in = json_bits_parity(quote) ^ s.in_string;

        s.backslash |= backslash;
        s.in_string = (uint64_t)((int64_t)in >> 63);
        s.control_bytes += (uint64_t)__builtin_popcountll(chunk_control(c) & in);
        o = json_bits_write((chunk_structural(c) & ~in) | quote, base + (uint32_t)i, o);
    }
    *state = s;
    return (size_t)(o - out) + rp_json_index_scalar(state, text + i, n - i, base + (uint32_t)i, o);
}
#else
typedef int rp_json_index_neon_unused; /* a file must not be empty */
#endif
