/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted arrays: of the segments, and of the live blocks in each. */
#include "formats/torch_memory/blocks.h"

#include "base/order.h"

#include <string.h>

#define ROUND_BYTES 512
#define SMALL_BYTES 2097152 /* segments for blocks of up to 1 MiB */
#define KEEP_BYTES  1048576 /* a remainder of a large block up to it is not split off */

static int64_t rounded(int64_t bytes)
{
    if (bytes < ROUND_BYTES)
        return ROUND_BYTES;
    return bytes > INT64_MAX - ROUND_BYTES ? bytes
                                           : (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
}

static bool splits(const struct rp_block_segment *s, int64_t rest)
{
    return s->bytes == SMALL_BYTES ? rest >= ROUND_BYTES : rest > KEEP_BYTES;
}

/* The first segment that begins after an address. */
static size_t segment_after(const struct rp_blocks *b, int64_t addr)
{
    size_t i = 0;

    RP_LOWER_BOUND(i, b->segments.n, b->segments.at[i].addr <= addr);
    return i;
}

static struct rp_block_segment *segment_of(const struct rp_blocks *b, int64_t addr)
{
    size_t i = segment_after(b, addr);
    struct rp_block_segment *s = i ? &b->segments.at[i - 1] : NULL;

    return s && addr - s->addr < s->bytes ? s : NULL;
}

/* The first live block of a segment at or after an address. */
static size_t block_from(const struct rp_block_segment *s, int64_t addr)
{
    size_t i = 0;

    RP_LOWER_BOUND(i, s->live.n, s->live.at[i].addr < addr);
    return i;
}

void rp_blocks_release(struct rp_blocks *b)
{
    for (size_t i = 0; i < b->segments.n; i++)
        rp_vec_release(&b->segments.at[i].live);
    rp_vec_release(&b->segments);
}

enum rp_code rp_blocks_add_segment(struct rp_blocks *b, int64_t addr, int64_t bytes,
                                   struct rp_err *err)
{
    size_t i = segment_after(b, addr);

    if (addr < 0 || bytes <= 0 || bytes > INT64_MAX - addr ||
        (i && addr - b->segments.at[i - 1].addr < b->segments.at[i - 1].bytes)) {
        b->misfits++;
        return RP_OK;
    }
    RP_TRY(rp_vec_reserve(&b->segments, 1, err));
    memmove(b->segments.at + i + 1, b->segments.at + i,
            (b->segments.n - i) * sizeof *b->segments.at);
    b->segments.at[i] = (struct rp_block_segment){.addr = addr, .bytes = bytes};
    b->segments.n++;
    return RP_OK;
}

void rp_blocks_remove_segment(struct rp_blocks *b, int64_t addr)
{
    size_t i = segment_after(b, addr);

    if (!i || b->segments.at[i - 1].addr != addr)
        return;
    i--;
    rp_vec_release(&b->segments.at[i].live);
    memmove(b->segments.at + i, b->segments.at + i + 1,
            (b->segments.n - i - 1) * sizeof *b->segments.at);
    b->segments.n--;
}

enum rp_code rp_blocks_add(struct rp_blocks *b, int64_t addr, int64_t bytes, bool guess,
                           struct rp_err *err)
{
    struct rp_block_segment *s = segment_of(b, addr);
    size_t i = s ? block_from(s, addr) : 0;

    if (!s || (i < s->live.n && s->live.at[i].addr == addr)) {
        b->misfits++;
        return RP_OK;
    }
    RP_TRY(rp_vec_reserve(&s->live, 1, err));
    memmove(s->live.at + i + 1, s->live.at + i, (s->live.n - i) * sizeof *s->live.at);
    s->live.at[i] = (struct rp_live_block){addr, bytes, guess};
    s->live.n++;
    return RP_OK;
}

/* Where the room at an address ends: at the next live block or at the end of the segment. */
static int64_t room_at(const struct rp_block_segment *s, size_t next, int64_t addr)
{
    return (next < s->live.n ? s->live.at[next].addr : s->addr + s->bytes) - addr;
}

static int64_t block_size(const struct rp_block_segment *s, int64_t room, int64_t asked)
{
    int64_t bytes = rounded(asked);

    return bytes >= room || splits(s, room - bytes) ? bytes : room;
}

void rp_blocks_settle(struct rp_blocks *b)
{
    for (size_t i = 0; i < b->segments.n; i++) {
        struct rp_block_segment *s = &b->segments.at[i];

        for (size_t k = 0; k < s->live.n; k++) {
            struct rp_live_block *block = &s->live.at[k];

            if (block->guess)
                block->bytes = block_size(s, room_at(s, k + 1, block->addr), block->bytes);
            block->guess = false;
        }
    }
}

enum rp_code rp_blocks_allocate(struct rp_blocks *b, int64_t addr, int64_t asked, int64_t *bytes,
                                struct rp_err *err)
{
    struct rp_block_segment *s = segment_of(b, addr);
    int64_t room;
    size_t i;

    *bytes = rounded(asked);
    rp_blocks_free(b, addr); /* its end was not recorded */
    if (!s) {
        b->misfits++;
        return RP_OK;
    }
    i = block_from(s, addr);
    room = room_at(s, i, addr);
    if (room < *bytes || (i && addr - s->live.at[i - 1].addr < s->live.at[i - 1].bytes))
        b->misfits++;
    *bytes = block_size(s, room, asked);
    return rp_blocks_add(b, addr, *bytes, false, err);
}

int64_t rp_blocks_size(const struct rp_blocks *b, int64_t addr)
{
    const struct rp_block_segment *s = segment_of(b, addr);
    size_t i = s ? block_from(s, addr) : 0;

    return s && i < s->live.n && s->live.at[i].addr == addr ? s->live.at[i].bytes : -1;
}

void rp_blocks_free(struct rp_blocks *b, int64_t addr)
{
    struct rp_block_segment *s = segment_of(b, addr);
    size_t i = s ? block_from(s, addr) : 0;

    if (!s || i == s->live.n || s->live.at[i].addr != addr)
        return;
    memmove(s->live.at + i, s->live.at + i + 1, (s->live.n - i - 1) * sizeof *s->live.at);
    s->live.n--;
}
