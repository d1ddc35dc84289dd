/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes products of integers of eight bits and fewer, as integers of 32 bits that wrap around.
 * Numbers that follow one another along k share a word of 32 bits, because machines multiply those
 * with each other and add the products in one instruction: two of 16 bits, or four of eight, for
 * which one side must be unsigned and the other signed. In that case a signed a is moved up by 128
 * and an unsigned b down by 128, and the result is corrected by the sums of rows and columns:
 *
 *   a = A - up, b = B + down:   sum a b = sum A B + down sum A - up sum B - k up down
 *
 * Machines with matrix units (AMX) multiply 16 lines of 64 bytes with 64 rows of 16 columns in one
 * instruction, of any signs; their tiles are read from the same lines and panels.
 *
 *   a   lines of words, once for all jobs
 *   b   [word][column] of one panel of columns, DEPTH words at a time, by the job that uses it
 *
 * A job is a panel of columns and a tile of rows; its kernel keeps the sums of some rows in
 * registers. The matrix b is read in place, so that a product of a few rows need not transpose it.
 */
#include "exec/eval/lanes.h"
#include "exec/fast/product.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__x86_64__) && !defined(__clang__) && __has_include(<amxint8intrin.h>)
#include <sys/syscall.h>
#include <unistd.h>
#define WITH_TILES 1
#else
#define WITH_TILES 0
#endif

#define COLUMNS       32  /* of a panel */
#define DEPTH         128 /* words of a panel, which stay in the first cache */
#define TILE_M        256
#define MOST_ROWS     32
#define TILE_WORDS    16 /* words of a line that matrix units take at once */
#define LINES         64 /* lines of a that one job widens */
#define WORTH_THREADS 100000

bool rp_elem_is_byte(unsigned elem)
{
    return elem == RP_ELEM_PRED ||
           (rp_elem_bits(elem) <= 8 && (rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem)));
}

struct bytes_run {
    const struct rp_product *p;
    struct dots {
        /* sets c[rows][COLUMNS], or adds to it, a * b over n words; a has `rows` lines, `length`
           words apart. */
        void (*fn)(int64_t n, const int32_t *a, int64_t length, const int32_t *b, int32_t *c,
                   int64_t stride, bool first);
        int64_t rows, share; /* share: how many numbers share a word */
        bool tiles;          /* uses matrix units, for any signs, TILE_WORDS at a time */
    } dots;
    bool a_signed, b_signed;
    uint32_t up, down;
    int64_t words;  /* of a line */
    int32_t *a;     /* [batch][m][words] */
    uint32_t *sums; /* [batch][m]: of lines */
    int64_t blocks, tiles, panels;
};

/* ---- two numbers in a word ---- */

/* Widens line by line; numbers are `step` elements apart. */
#define WIDEN(name, type)                                                                      \
    RP_CLONES_FEW static void name(const uint8_t *from, int64_t next, int64_t step, int64_t n, \
                                   int64_t k, int64_t length, int16_t *to)                     \
    {                                                                                          \
        const type *in = (const type *)from;                                                   \
                                                                                               \
        for (int64_t k0 = 0; k0 < k; k0 += 64) { /* in blocks that stay in the cache */        \
            int64_t k1 = k0 + 64 < k ? k0 + 64 : k;                                            \
                                                                                               \
            for (int64_t j = 0; j < n; j++)                                                    \
                if (step == 1)                                                                 \
                    for (int64_t i = k0; i < k1; i++)                                          \
                        to[j * length + i] = (int16_t)in[j * next + i];                        \
                else                                                                           \
                    for (int64_t i = k0; i < k1; i++)                                          \
                        to[j * length + i] = (int16_t)in[j * next + i * step];                 \
        }                                                                                      \
        for (int64_t j = 0; j < n && k < length; j++)                                          \
            to[j * length + k] = 0;                                                            \
    }
WIDEN(widen_signed, int8_t)
WIDEN(widen_unsigned, uint8_t)

/* Packs a complete panel of two contiguous rows of b; other panels are packed element by
   element. */
#define PACK(name, type)                                                                       \
    RP_CLONES_FEW static void name##_rows(const type *restrict even, const type *restrict odd, \
                                          int16_t *restrict to)                                \
    {                                                                                          \
        for (int64_t j = 0; j < COLUMNS; j++) {                                                \
            to[2 * j] = (int16_t)even[j];                                                      \
            to[2 * j + 1] = (int16_t)odd[j];                                                   \
        }                                                                                      \
    }                                                                                          \
    static void name##_any(const type *in, int64_t row, int64_t column, int64_t k, int64_t n,  \
                           int16_t *to)                                                        \
    {                                                                                          \
        if (n < COLUMNS || k % 2)                                                              \
            memset(to, 0, (size_t)((k + 1) / 2 * 2 * COLUMNS) * sizeof *to);                   \
        for (int64_t j = 0; j < n; j++)                                                        \
            for (int64_t i = 0; i < k; i++)                                                    \
                to[(i / 2 * COLUMNS + j) * 2 + i % 2] = (int16_t)in[i * row + j * column];     \
    }                                                                                          \
    static void name(const uint8_t *from, int64_t row, int64_t column, int64_t k, int64_t n,   \
                     int16_t *to)                                                              \
    {                                                                                          \
        const type *in = (const type *)from;                                                   \
        int64_t whole = column == 1 && n == COLUMNS ? k / 2 * 2 : 0;                           \
                                                                                               \
        for (int64_t i = 0; i < whole; i += 2)                                                 \
            name##_rows(in + i * row, in + (i + 1) * row, to + i * COLUMNS);                   \
        if (whole < k)                                                                         \
            name##_any(in + whole * row, row, column, k - whole, n, to + whole * COLUMNS);     \
    }
PACK(pack_signed, int8_t)
PACK(pack_unsigned, uint8_t)

/* ---- four numbers in a word ---- */

static void line_of_bytes(const uint8_t *in, int64_t step, int64_t k, int64_t length, uint8_t flip,
                          uint8_t *to)
{
    if (step == 1)
        for (int64_t i = 0; i < k; i++)
            to[i] = in[i] ^ flip;
    else
        for (int64_t i = 0; i < k; i++)
            to[i] = in[i * step] ^ flip;
    memset(to + k, 0, (size_t)(length - k));
}

static uint32_t sum_of_bytes(const uint8_t *in, int64_t n)
{
    uint32_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += in[i];
    return sum;
}

#if defined(__x86_64__)
/* Packs four rows of 16 columns. */
static void pack_four(const uint8_t *in, int64_t row, __m128i flip, uint8_t *to)
{
    __m128i x[4], y[4];

    for (int64_t i = 0; i < 4; i++)
        x[i] = _mm_xor_si128(_mm_loadu_si128((const void *)(in + i * row)), flip);
    y[0] = _mm_unpacklo_epi8(x[0], x[1]);
    y[1] = _mm_unpackhi_epi8(x[0], x[1]);
    y[2] = _mm_unpacklo_epi8(x[2], x[3]);
    y[3] = _mm_unpackhi_epi8(x[2], x[3]);
    _mm_storeu_si128((void *)to, _mm_unpacklo_epi16(y[0], y[2]));
    _mm_storeu_si128((void *)(to + 16), _mm_unpackhi_epi16(y[0], y[2]));
    _mm_storeu_si128((void *)(to + 32), _mm_unpacklo_epi16(y[1], y[3]));
    _mm_storeu_si128((void *)(to + 48), _mm_unpackhi_epi16(y[1], y[3]));
}

static void pack_bytes(const uint8_t *in, int64_t row, int64_t column, int64_t k, int64_t n,
                       uint8_t flip, uint8_t *to)
{
    int64_t whole = (column == 1 && n == COLUMNS) || row == 1 ? k / 4 * 4 : 0;
    uint32_t word, all = flip * 0x01010101u;

    if (n < COLUMNS || whole < k)
        memset(to, 0, (size_t)((k + 3) / 4 * 4 * COLUMNS));
    if (column == 1 && n == COLUMNS)
        for (int64_t i = 0; i < whole; i += 4)
            for (int64_t j = 0; j < COLUMNS; j += 16)
                pack_four(in + i * row + j, row, _mm_set1_epi8((char)flip),
                          to + i * COLUMNS + 4 * j);
    else
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < whole; i += 4) {
                memcpy(&word, in + j * column + i, sizeof word);
                word ^= all;
                memcpy(to + i * COLUMNS + 4 * j, &word, sizeof word);
            }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = whole; i < k; i++)
            to[(i / 4 * COLUMNS + j) * 4 + i % 4] = in[i * row + j * column] ^ flip;
}
#endif

/* ---- products ---- */

/* vectors of words, for their two halves */
typedef int32_t v8 __attribute__((vector_size(32), aligned(4)));
typedef uint32_t u8 __attribute__((vector_size(32), aligned(4)));

#define VECTORS (COLUMNS / 8)
static void dots_any(int64_t n, const int32_t *a, int64_t length, const int32_t *b, int32_t *c,
                     int64_t stride, bool first)
{
    const u8 zero = {0};
    u8 sum[2][VECTORS];

    for (int64_t r = 0; r < 2; r++)
        for (int64_t v = 0; v < VECTORS; v++)
            sum[r][v] = first ? zero : *(const u8 *)(const void *)(c + r * stride + 8 * v);
    for (int64_t i = 0; i < n; i++, b += COLUMNS)
        for (int64_t v = 0; v < VECTORS; v++) {
            u8 pair = *(const u8 *)(const void *)(b + 8 * v);
            u8 even = (u8)((v8)(pair << 16) >> 16), odd = (u8)((v8)pair >> 16);

            for (int64_t r = 0; r < 2; r++) {
                uint32_t x = (uint32_t)a[r * length + i];

                sum[r][v] +=
                    even * (uint32_t)(int16_t)(x & 0xffff) + odd * (uint32_t)((int32_t)x >> 16);
            }
        }
    for (int64_t r = 0; r < 2; r++)
        for (int64_t v = 0; v < VECTORS; v++)
            *(u8 *)(void *)(c + r * stride + 8 * v) = sum[r][v];
}

#if defined(__x86_64__)
#define DOTS(name, features, ROWS, VEC, LANES, load, store, spread, dot)                         \
    __attribute__((target(features))) static void name(int64_t n, const int32_t *a,              \
                                                       int64_t length, const int32_t *b,         \
                                                       int32_t *c, int64_t stride, bool first)   \
    {                                                                                            \
        VEC sum[ROWS][COLUMNS / LANES];                                                          \
                                                                                                 \
        for (int64_t r = 0; r < ROWS; r++)                                                       \
            for (int64_t v = 0; v < COLUMNS / LANES; v++)                                        \
                sum[r][v] = first ? (VEC){0} : load((const void *)(c + r * stride + LANES * v)); \
        for (int64_t i = 0; i < n; i++, b += COLUMNS) {                                          \
            VEC row[COLUMNS / LANES];                                                            \
                                                                                                 \
            for (int64_t v = 0; v < COLUMNS / LANES; v++)                                        \
                row[v] = load((const void *)(b + LANES * v));                                    \
            for (int64_t r = 0; r < ROWS; r++) {                                                 \
                VEC word = spread(a[r * length + i]);                                            \
                                                                                                 \
                for (int64_t v = 0; v < COLUMNS / LANES; v++)                                    \
                    sum[r][v] = dot(sum[r][v], word, row[v]);                                    \
            }                                                                                    \
        }                                                                                        \
        for (int64_t r = 0; r < ROWS; r++)                                                       \
            for (int64_t v = 0; v < COLUMNS / LANES; v++)                                        \
                store((void *)(c + r * stride + LANES * v), sum[r][v]);                          \
    }
#define MULTIPLY_ADD(sum, x, y) _mm256_add_epi32(sum, _mm256_madd_epi16(x, y))
#define VNNI                    "avx512f,avx512bw,avx512vl,avx512vnni"
DOTS(dots_avx2, "avx2", 2, __m256i, 8, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32,
     MULTIPLY_ADD)
DOTS(dots_vnni, VNNI, 8, __m512i, 16, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32,
     _mm512_dpbusd_epi32)
/* Sums of columns are products with ones. */
DOTS(sums_vnni, VNNI, 1, __m512i, 16, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32,
     _mm512_dpbusd_epi32)
#endif

#if WITH_TILES
#define TILES __attribute__((target("amx-tile,amx-int8")))

/* Configures eight tiles of 16 lines of 64 bytes for this thread. */
TILES static void tiles_begin(void)
{
    static const struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t lines[16];
    } config = {.palette = 1,
                .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .lines = {16, 16, 16, 16, 16, 16, 16, 16}};

    _tile_loadconfig(&config);
}

TILES static void tiles_end(void)
{
    _tile_release();
}

/* Tiles 0 to 3 hold the sums of 32 rows and columns, 4 and 5 lines of a, 6 and 7 columns of b. */
#define DOTS_TILES(name, dot)                                                             \
    TILES static void name(int64_t n, const int32_t *a, int64_t length, const int32_t *b, \
                           int32_t *c, int64_t stride, bool first)                        \
    {                                                                                     \
        int64_t line = length * 4, row = stride * 4;                                      \
                                                                                          \
        if (first) {                                                                      \
            _tile_zero(0);                                                                \
            _tile_zero(1);                                                                \
            _tile_zero(2);                                                                \
            _tile_zero(3);                                                                \
        } else {                                                                          \
            _tile_loadd(0, c, row);                                                       \
            _tile_loadd(1, c + 16, row);                                                  \
            _tile_loadd(2, c + 16 * stride, row);                                         \
            _tile_loadd(3, c + 16 * stride + 16, row);                                    \
        }                                                                                 \
        for (int64_t i = 0; i < n; i += TILE_WORDS, a += TILE_WORDS, b += 16 * COLUMNS) { \
            _tile_loadd(6, b, COLUMNS * 4);                                               \
            _tile_loadd(4, a, line);                                                      \
            dot(0, 4, 6);                                                                 \
            _tile_loadd(7, b + 16, COLUMNS * 4);                                          \
            dot(1, 4, 7);                                                                 \
            _tile_loadd(5, a + 16 * length, line);                                        \
            dot(2, 5, 6);                                                                 \
            dot(3, 5, 7);                                                                 \
        }                                                                                 \
        _tile_stored(0, c, row);                                                          \
        _tile_stored(1, c + 16, row);                                                     \
        _tile_stored(2, c + 16 * stride, row);                                            \
        _tile_stored(3, c + 16 * stride + 16, row);                                       \
    }
DOTS_TILES(tiles_ss, _tile_dpbssd)
DOTS_TILES(tiles_su, _tile_dpbsud)
DOTS_TILES(tiles_us, _tile_dpbusd)
DOTS_TILES(tiles_uu, _tile_dpbuud)

/* Whether the machine has matrix units and the system lets this process use them. */
static bool may_use_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* codes of arch_prctl, and the part of the state */

    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
           syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#endif

static struct dots choose_dots(const struct rp_product *p, bool a_signed, bool b_signed)
{
#if WITH_TILES
    if (p->m >= 16 && may_use_tiles())
        return (struct dots){a_signed   ? b_signed ? tiles_ss : tiles_su
                             : b_signed ? tiles_us
                                        : tiles_uu,
                             32, 4, true};
#else
    (void)p;
    (void)a_signed;
    (void)b_signed;
#endif
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return (struct dots){dots_vnni, 8, 4, false};
    if (__builtin_cpu_supports("avx2"))
        return (struct dots){dots_avx2, 2, 2, false};
#endif
    return (struct dots){dots_any, 2, 2, false};
}

/* ---- jobs ---- */

static RP_JOB(widen_job)
{
    const struct bytes_run *r = user;
    const struct rp_product *p = r->p;
    int64_t matrix = (int64_t)job / r->blocks, line = (int64_t)job % r->blocks * LINES;
    int64_t n = p->m - line < LINES ? p->m - line : LINES;
    const uint8_t *in = (const uint8_t *)p->a + matrix * p->a_batch + line * p->a_row;
    void *to = r->a + (matrix * p->m + line) * r->words;

    if (r->dots.share == 2) {
        (r->a_signed ? widen_signed : widen_unsigned)(in, p->a_row, p->a_column, n, p->k,
                                                      2 * r->words, to);
        return RP_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        uint8_t *at = (uint8_t *)to + 4 * i * r->words;

        line_of_bytes(in + i * p->a_row, p->a_column, p->k, 4 * r->words, (uint8_t)r->up, at);
        if (r->down)
            r->sums[matrix * p->m + line + i] = sum_of_bytes(at, p->k);
    }
    return RP_OK;
}

/* Packs words from rows of b; adds to the sums of its columns. */
static void pack_panel(const struct bytes_run *r, const uint8_t *b, int64_t k, int64_t columns,
                       int32_t *to, int32_t *sums, bool first)
{
    const struct rp_product *p = r->p;

#if defined(__x86_64__)
    if (r->dots.share == 4) {
        int32_t ones[DEPTH];

        pack_bytes(b, p->b_row, p->b_column, k, columns, (uint8_t)r->down, (uint8_t *)to);
        memset(ones, 1, sizeof ones);
        if (r->up)
            sums_vnni((k + 3) / 4, ones, 0, to, sums, 0, first);
        return;
    }
#endif
    (void)sums;
    (void)first;
    (r->b_signed ? pack_signed : pack_unsigned)(b, p->b_row, p->b_column, k, columns, (void *)to);
}

/* If there are fewer rows or columns than the kernel computes, goes through a buffer. */
static void dots_edge(const struct bytes_run *r, const int32_t *a, int64_t n, int64_t rows,
                      int64_t columns, const int32_t *b, int32_t *c, bool first)
{
    int32_t lines[MOST_ROWS * DEPTH], corner[MOST_ROWS * COLUMNS];

    for (int64_t i = 0; i < r->dots.rows; i++)
        if (i < rows)
            memcpy(lines + i * DEPTH, a + i * r->words, (size_t)n * sizeof *a);
        else
            memset(lines + i * DEPTH, 0, (size_t)n * sizeof *a);
    r->dots.fn(n, lines, DEPTH, b, corner, COLUMNS, true);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            uint32_t sum = (uint32_t)corner[i * COLUMNS + j];

            c[i * r->p->n + j] = (int32_t)(first ? sum : sum + (uint32_t)c[i * r->p->n + j]);
        }
}

/* Corrects what moving a up and b down has added. columns: the sums of b's columns, which become
   their corrections. */
static void put_right(const struct bytes_run *r, const uint32_t *rows, int64_t m, int32_t *columns,
                      int64_t n, int32_t *c)
{
    uint32_t both = (uint32_t)r->p->k * r->up * r->down;

    for (int64_t j = 0; j < n; j++)
        columns[j] = r->up ? (int32_t)(0 - r->up * (uint32_t)columns[j]) : 0;
    for (int64_t i = 0; i < m; i++, c += r->p->n) {
        uint32_t row = r->down * rows[i] - both;

        for (int64_t j = 0; j < n; j++)
            c[j] = (int32_t)((uint32_t)c[j] + row + (uint32_t)columns[j]);
    }
}

static RP_JOB(bytes_job)
{
    const struct bytes_run *r = user;
    const struct rp_product *p = r->p;
    int64_t n0 = (int64_t)job % r->panels * COLUMNS, rest = (int64_t)job / r->panels;
    int64_t m0 = rest % r->tiles * TILE_M, m1 = m0 + TILE_M < p->m ? m0 + TILE_M : p->m;
    int64_t matrix = rest / r->tiles, columns = p->n - n0 < COLUMNS ? p->n - n0 : COLUMNS;
    const int32_t *a = r->a + matrix * p->m * r->words;
    int32_t *c = (int32_t *)p->c + matrix * p->m * p->n + n0;
    int32_t panel[DEPTH * COLUMNS] __attribute__((aligned(64))), sums[COLUMNS] = {0};
    const uint8_t *b = (const uint8_t *)p->b + matrix * p->b_batch + n0 * p->b_column;

#if WITH_TILES
    if (r->dots.tiles)
        tiles_begin();
#endif
    for (int64_t i = 0; i < r->words; i += DEPTH) {
        int64_t n = r->words - i < DEPTH ? r->words - i : DEPTH, k0 = i * r->dots.share;
        int64_t k = p->k - k0 < n * r->dots.share ? p->k - k0 : n * r->dots.share;

        pack_panel(r, b + k0 * p->b_row, k, columns, panel, sums, i == 0);
        if (r->dots.tiles && k < 4 * n)
            memset(panel + (k + 3) / 4 * COLUMNS, 0,
                   (size_t)((n - (k + 3) / 4) * COLUMNS) * sizeof *panel);
        for (int64_t m = m0; m < m1; m += r->dots.rows)
            if (m1 - m >= r->dots.rows && columns == COLUMNS)
                r->dots.fn(n, a + m * r->words + i, r->words, panel, c + m * p->n, p->n, i == 0);
            else
                dots_edge(r, a + m * r->words + i, n, m1 - m < r->dots.rows ? m1 - m : r->dots.rows,
                          columns, panel, c + m * p->n, i == 0);
    }
#if WITH_TILES
    if (r->dots.tiles)
        tiles_end();
#endif
    if (r->up || r->down)
        put_right(r, r->sums + matrix * p->m + m0, m1 - m0, sums, columns, c + m0 * p->n);
    return RP_OK;
}

static enum rp_code each(struct rp_pool *pool, int64_t jobs, rp_job_fn *job, struct bytes_run *r,
                         struct rp_err *err)
{
    if (pool && jobs > 1 && r->p->batch * r->p->m * r->p->n * r->p->k > WORTH_THREADS)
        return rp_pool_each(pool, (size_t)jobs, job, r, err);
    for (int64_t i = 0; i < jobs; i++)
        RP_TRY(job(r, (size_t)i, err));
    return RP_OK;
}

enum rp_code rp_product_bytes(const struct rp_product *p, bool a_signed, bool b_signed,
                              struct rp_pool *pool, struct rp_err *err)
{
    struct bytes_run r = {.p = p,
                          .dots = choose_dots(p, a_signed, b_signed),
                          .a_signed = a_signed,
                          .b_signed = b_signed,
                          .blocks = (p->m + LINES - 1) / LINES,
                          .tiles = (p->m + TILE_M - 1) / TILE_M,
                          .panels = (p->n + COLUMNS - 1) / COLUMNS};
    enum rp_code code = RP_OK;

    if (!p->k) { /* a product without terms is zero */
        memset(p->c, 0, (size_t)(p->batch * p->m * p->n) * sizeof(int32_t));
        return RP_OK;
    }
    r.words = (p->k + r.dots.share - 1) / r.dots.share;
    if (r.dots.tiles)
        r.words = (r.words + TILE_WORDS - 1) / TILE_WORDS * TILE_WORDS;
    r.up = r.dots.share == 4 && !r.dots.tiles && a_signed ? 128 : 0;
    r.down = r.dots.share == 4 && !r.dots.tiles && !b_signed ? 128 : 0;
    r.a = malloc((size_t)(p->batch * p->m * r.words) * sizeof *r.a + 1);
    r.sums = calloc((size_t)(p->batch * p->m) + 1, sizeof *r.sums);
    if (!r.a || !r.sums)
        code = rp_err_nomem(err, "multiplying");
    if (code == RP_OK)
        code = each(pool, p->batch * r.blocks, widen_job, &r, err);
    if (code == RP_OK)
        code = each(pool, p->batch * r.tiles * r.panels, bytes_job, &r, err);
    free(r.a);
    free(r.sums);
    return code;
}
