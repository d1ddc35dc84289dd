/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How large the blocks of PyTorch's caching allocator were. The log has the size that was asked
 * for; the statistics (torch.cuda.max_memory_allocated) count the block that was given, which is
 * larger: sizes are rounded up to 512 bytes, and the remainder of a free block is given away with
 * it unless it is larger than 1 MiB (in the segments of 2 MiB for small blocks: unless it has 512
 * bytes or more). Free neighbours are merged at once, so the free blocks of a segment are the gaps
 * between its live blocks, and the size of a new block follows from where it is:
 *
 *     segment  |live|new.............|live|     gap - rounded <= 1 MiB: the whole gap
 *              |live|new....|  free  |live|     otherwise: rounded
 */
#include "base/ordered.h"

struct rp_blocks {
    struct rp_ordered segments; /* address -> bytes */
    struct rp_ordered live; /* blocks of all segments, with the same key; flag: bytes is the size
                               that was asked for, and rp_blocks_settle finds the actual one */
    uint64_t misfits;       /* number of blocks outside of the segments or overlapping others */
};

void rp_blocks_release(struct rp_blocks *b);
enum rp_code rp_blocks_add_segment(struct rp_blocks *b, int64_t addr, int64_t bytes,
                                   struct rp_err *err);
void rp_blocks_remove_segment(struct rp_blocks *b, int64_t addr);

/* Adds a block that is live at the beginning. */
enum rp_code rp_blocks_add(struct rp_blocks *b, int64_t addr, int64_t bytes, bool guess,
                           struct rp_err *err);
/* To be called after the last rp_blocks_add; finds the sizes that are guesses. */
void rp_blocks_settle(struct rp_blocks *b);

/* Adds a new block; *bytes becomes its size. */
enum rp_code rp_blocks_allocate(struct rp_blocks *b, int64_t addr, int64_t asked, int64_t *bytes,
                                struct rp_err *err);
/* The size of a live block, or -1. */
int64_t rp_blocks_size(const struct rp_blocks *b, int64_t addr);
void rp_blocks_free(struct rp_blocks *b, int64_t addr);
