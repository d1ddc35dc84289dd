/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and the live blocks in them are kept in ordered maps, so a block takes logarithmic
   time. */
#include "formats/torch_memory/blocks.h"

#define ROUND_BYTES 512
#define SMALL_BYTES 2097152 /* size of segments for blocks of up to 1 MiB */
#define KEEP_BYTES  1048576 /* a remainder of a large block that is not larger is not split off */

static int64_t rounded(int64_t bytes)
{
    if (bytes < ROUND_BYTES)
        return ROUND_BYTES;
    return bytes > INT64_MAX - ROUND_BYTES ? bytes
                                           : (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
}

static bool splits(const struct rp_ordered_entry *segment, int64_t rest)
{
    return segment->value == SMALL_BYTES ? rest >= ROUND_BYTES : rest > KEEP_BYTES;
}

static const struct rp_ordered_entry *segment_of(const struct rp_blocks *b, int64_t addr)
{
    const struct rp_ordered_entry *s = rp_ordered_upto(&b->segments, addr);

    return s && addr - s->key < s->value ? s : NULL;
}

/* The live block at an address, or NULL. */
static const struct rp_ordered_entry *block_at(const struct rp_blocks *b, int64_t addr)
{
    const struct rp_ordered_entry *block = rp_ordered_from(&b->live, addr);

    return block && block->key == addr ? block : NULL;
}

void rp_blocks_release(struct rp_blocks *b)
{
    rp_ordered_release(&b->segments);
    rp_ordered_release(&b->live);
}

enum rp_code rp_blocks_add_segment(struct rp_blocks *b, int64_t addr, int64_t bytes,
                                   struct rp_err *err)
{
    if (addr < 0 || bytes <= 0 || bytes > INT64_MAX - addr || segment_of(b, addr)) {
        b->misfits++;
        return RP_OK;
    }
    return rp_ordered_put(&b->segments, addr, bytes, false, err);
}

void rp_blocks_remove_segment(struct rp_blocks *b, int64_t addr)
{
    const struct rp_ordered_entry *s = segment_of(b, addr), *block;
    int64_t end = s ? s->key + s->value : 0;

    if (!s || s->key != addr)
        return;
    while ((block = rp_ordered_from(&b->live, addr)) && block->key < end)
        rp_ordered_remove(&b->live, block->key);
    rp_ordered_remove(&b->segments, addr);
}

enum rp_code rp_blocks_add(struct rp_blocks *b, int64_t addr, int64_t bytes, bool guess,
                           struct rp_err *err)
{
    if (!segment_of(b, addr) || block_at(b, addr)) {
        b->misfits++;
        return RP_OK;
    }
    return rp_ordered_put(&b->live, addr, bytes, guess, err);
}

/* Where the free room at an address ends: at the next live block or at the end of the segment. */
static int64_t room_at(const struct rp_blocks *b, const struct rp_ordered_entry *segment,
                       int64_t addr)
{
    const struct rp_ordered_entry *next = rp_ordered_from(&b->live, addr + 1);
    int64_t end = segment->key + segment->value;

    return (next && next->key < end ? next->key : end) - addr;
}

static int64_t block_size(const struct rp_ordered_entry *segment, int64_t room, int64_t asked)
{
    int64_t bytes = rounded(asked);

    return bytes >= room || splits(segment, room - bytes) ? bytes : room;
}

void rp_blocks_settle(struct rp_blocks *b)
{
    struct rp_ordered_entry *block = rp_ordered_from(&b->live, 0);

    for (; block; block = rp_ordered_from(&b->live, block->key + 1)) {
        const struct rp_ordered_entry *s = segment_of(b, block->key);

        if (block->flag && s)
            block->value = block_size(s, room_at(b, s, block->key), block->value);
        block->flag = false;
    }
}

enum rp_code rp_blocks_allocate(struct rp_blocks *b, int64_t addr, int64_t asked, int64_t *bytes,
                                struct rp_err *err)
{
    const struct rp_ordered_entry *s = segment_of(b, addr);

    *bytes = rounded(asked);
    rp_blocks_free(b, addr); /* the end of the block that was there was not recorded */
    if (!s) {
        b->misfits++;
        return RP_OK;
    }
    const struct rp_ordered_entry *before = rp_ordered_upto(&b->live, addr);
    int64_t room = room_at(b, s, addr);
    if (room < *bytes || (before && before->key >= s->key && addr - before->key < before->value))
        b->misfits++;
    *bytes = block_size(s, room, asked);
    return rp_blocks_add(b, addr, *bytes, false, err);
}

int64_t rp_blocks_size(const struct rp_blocks *b, int64_t addr)
{
    const struct rp_ordered_entry *block = block_at(b, addr);

    return block ? block->value : -1;
}

void rp_blocks_free(struct rp_blocks *b, int64_t addr)
{
    rp_ordered_remove(&b->live, addr);
}
