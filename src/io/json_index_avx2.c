/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural index, 64 bytes at a time with AVX2: compares give masks of the interesting bytes,
 * a carry-less multiplication by all ones turns the mask of quotes into the mask of what is inside
 * strings, and the positions are read off the remaining bits. The last bytes go to the plain one.
 */
#include "io/json_index_bits.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,popcnt,pclmul")))

struct chunk {
    __m256i low, high;
};

TARGET static inline uint64_t chunk_mask(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

TARGET static inline uint64_t chunk_equal(struct chunk c, char byte)
{
    __m256i want = _mm256_set1_epi8(byte);

    return chunk_mask(_mm256_cmpeq_epi8(c.low, want), _mm256_cmpeq_epi8(c.high, want));
}

TARGET static inline uint64_t chunk_control(struct chunk c)
{
    __m256i last = _mm256_set1_epi8(0x1f);

    return chunk_mask(_mm256_cmpeq_epi8(_mm256_max_epu8(c.low, last), last),
                      _mm256_cmpeq_epi8(_mm256_max_epu8(c.high, last), last));
}

/* [ and ] differ from { and } by one bit. */
TARGET static inline uint64_t chunk_structural(struct chunk c)
{
    __m256i bit = _mm256_set1_epi8(0x20);
    __m256i open = _mm256_set1_epi8('{'), close = _mm256_set1_epi8('}');
    __m256i comma = _mm256_set1_epi8(',');
    __m256i low = _mm256_or_si256(c.low, bit), high = _mm256_or_si256(c.high, bit);

    low = _mm256_or_si256(_mm256_cmpeq_epi8(low, open), _mm256_cmpeq_epi8(low, close));
    high = _mm256_or_si256(_mm256_cmpeq_epi8(high, open), _mm256_cmpeq_epi8(high, close));
    return chunk_mask(_mm256_or_si256(low, _mm256_cmpeq_epi8(c.low, comma)),
                      _mm256_or_si256(high, _mm256_cmpeq_epi8(c.high, comma)));
}

TARGET static inline uint64_t parity(uint64_t x)
{
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)x), _mm_set1_epi8(-1), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

TARGET size_t rp_json_index_avx2(struct rp_json_index_state *state, const char *text, size_t n,
                                 uint32_t base, uint32_t *out)
{
    struct rp_json_index_state s = *state;
    uint32_t *o = out;
    size_t i;

    for (i = 0; i + 64 <= n; i += 64) {
        struct chunk c = {_mm256_loadu_si256((const void *)(text + i)),
                          _mm256_loadu_si256((const void *)(text + i + 32))};
        uint64_t backslash = chunk_equal(c, '\\');
        uint64_t quote = chunk_equal(c, '"') & ~json_bits_escaped(backslash, &s.escaped);
        uint64_t in = parity(quote) ^ s.in_string;

        s.backslash |= backslash;
        s.in_string = (uint64_t)((int64_t)in >> 63);
        s.control_bytes += (uint64_t)__builtin_popcountll(chunk_control(c) & in);
        o = json_bits_write((chunk_structural(c) & ~in) | quote, base + (uint32_t)i, o);
    }
    *state = s;
    return (size_t)(o - out) + rp_json_index_scalar(state, text + i, n - i, base + (uint32_t)i, o);
}
#else
typedef int rp_json_index_avx2_unused; /* a translation unit must not be empty */
#endif
