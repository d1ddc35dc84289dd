/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies columns into arrays. Each loop is written for one size of value, so that compilers
 * vectorise it: a column of ten million rows takes a few hundredths of a second.
 */
#include "tables/gather.h"

size_t rp_gather_size(const struct rp_table_column *c)
{
    switch (c->cell) {
    case RP_CELL_U32:
    case RP_CELL_I32:
    case RP_CELL_NAME:
        return 4;
    case RP_CELL_WORD:
        return 1;
    default:
        return 8;
    }
}

bool rp_gather_in_place(const struct rp_table_rank *r, const struct rp_table_column *c)
{
    return !c->via && c->cell != RP_CELL_END && c->cell != RP_CELL_SINCE &&
           r->arrays[c->array].stride == rp_gather_size(c);
}

struct source {
    const char *at;
    size_t stride;
};

static struct source source_at(const struct rp_table_rank *r, size_t array, size_t offset)
{
    return (struct source){(const char *)r->arrays[array].at + offset, r->arrays[array].stride};
}

static inline uint32_t number_at(struct source numbers, size_t i)
{
    return *(const uint32_t *)(const void *)(numbers.at + numbers.stride * i);
}

/* ------------------------------------------------------------------ values */

#define GATHER(bits)                                                                          \
    static void gather_##bits(struct source from, size_t n, uint##bits##_t *to)               \
    {                                                                                         \
        for (size_t i = 0; i < n; i++)                                                        \
            to[i] = *(const uint##bits##_t *)(const void *)(from.at + from.stride * i);       \
    }                                                                                         \
    static void gather_via_##bits(struct source from, struct source numbers, size_t n,        \
                                  uint##bits##_t none, uint##bits##_t *to)                    \
    {                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                      \
            uint32_t k = number_at(numbers, i);                                               \
                                                                                              \
            to[i] = k == RP_NONE                                                              \
                        ? none                                                                \
                        : *(const uint##bits##_t *)(const void *)(from.at + from.stride * k); \
        }                                                                                     \
    }
GATHER(8)
GATHER(32)
GATHER(64)

/* Returns the same as rp_event_end_ns; RP_NO_TS stays as it is. */
static inline int64_t end_of(int64_t ts, int64_t dur)
{
    int64_t lasts = ts == RP_NO_TS || dur < 0 ? 0 : dur;
    int64_t end = (int64_t)((uint64_t)ts + (uint64_t)lasts);

    return end < ts ? INT64_MAX : end;
}

static void gather_ends(const struct rp_trace *t, size_t n, int64_t *to)
{
    const int64_t *ts = t->ev.ts_ns, *dur = t->ev.dur_ns;

    for (size_t i = 0; i < n; i++)
        to[i] = end_of(ts[i], dur[i]);
}

static void gather_ends_via(const struct rp_trace *t, struct source numbers, size_t n, int64_t none,
                            int64_t *to)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t e = number_at(numbers, i);

        to[i] = e == RP_NONE ? none : end_of(t->ev.ts_ns[e], t->ev.dur_ns[e]);
    }
}

static void count_from(int64_t begin, const struct rp_table_column *c, size_t n, int64_t *to)
{
    for (size_t i = 0; i < n; i++)
        if (!c->nullable || to[i] != c->null)
            to[i] -= begin;
}

void rp_gather(const struct rp_table_rank *r, const struct rp_table_column *c, size_t n, void *to)
{
    struct source from = source_at(r, c->array, c->offset),
                  numbers = source_at(r, c->via, c->via_offset);
    int64_t none = c->nullable ? c->null : 0;

    if (c->cell == RP_CELL_END)
        c->via ? gather_ends_via(r->trace, numbers, n, none, to) : gather_ends(r->trace, n, to);
    else if (rp_gather_size(c) == 1)
        c->via ? gather_via_8(from, numbers, n, (uint8_t)none, to) : gather_8(from, n, to);
    else if (rp_gather_size(c) == 4)
        c->via ? gather_via_32(from, numbers, n, (uint32_t)none, to) : gather_32(from, n, to);
    else
        c->via ? gather_via_64(from, numbers, n, (uint64_t)none, to) : gather_64(from, n, to);
    if (c->cell == RP_CELL_SINCE)
        count_from(r->row.begin_ns, c, n, to);
}

/* ------------------------------------------------------------------ what is missing */

#define NULLS(bits)                                                                         \
    static size_t nulls_##bits(const uint##bits##_t *values, size_t n, uint##bits##_t null) \
    {                                                                                       \
        size_t found = 0;                                                                   \
                                                                                            \
        for (size_t i = 0; i < n; i++)                                                      \
            found += values[i] == null;                                                     \
        return found;                                                                       \
    }                                                                                       \
    static void valid_##bits(const uint##bits##_t *values, size_t n, uint##bits##_t null,   \
                             uint8_t *to)                                                   \
    {                                                                                       \
        for (; n >= 8; n -= 8, values += 8) {                                               \
            unsigned byte = 0;                                                              \
                                                                                            \
            for (unsigned k = 0; k < 8; k++)                                                \
                byte |= (unsigned)(values[k] != null) << k;                                 \
            *to++ = (uint8_t)byte;                                                          \
        }                                                                                   \
        *to = 0;                                                                            \
        for (unsigned k = 0; k < n; k++)                                                    \
            *to = (uint8_t)(*to | (unsigned)(values[k] != null) << k);                      \
    }
NULLS(8)
NULLS(32)
NULLS(64)

size_t rp_gather_nulls(const void *values, size_t size, size_t n, int64_t null)
{
    return size == 1   ? nulls_8(values, n, (uint8_t)null)
           : size == 4 ? nulls_32(values, n, (uint32_t)null)
                       : nulls_64(values, n, (uint64_t)null);
}

void rp_gather_valid(const void *values, size_t size, size_t n, int64_t null, uint8_t *bits)
{
    if (size == 1)
        valid_8(values, n, (uint8_t)null, bits);
    else if (size == 4)
        valid_32(values, n, (uint32_t)null, bits);
    else
        valid_64(values, n, (uint64_t)null, bits);
}

/* ------------------------------------------------------------------ numbers of elements */

uint32_t rp_gather_reach(const struct rp_table_rank *r, const struct rp_table_column *c, size_t n,
                         bool *none)
{
    struct source numbers = source_at(r, c->via, c->via_offset);
    uint32_t most = 0, nones = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t k = number_at(numbers, i) + 1; /* 0: RP_NONE */

        most = k > most ? k : most;
        nones |= k == 0;
    }
    *none = nones;
    return most;
}

void rp_gather_mapped(const struct rp_table_rank *r, const struct rp_table_column *c, size_t n,
                      const int32_t *map, int32_t *to)
{
    struct source numbers = source_at(r, c->via, c->via_offset);

    for (size_t i = 0; i < n; i++) {
        uint32_t k = number_at(numbers, i);

        to[i] = k == RP_NONE ? -1 : map[k];
    }
}
