/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Computes what is live when from the live ranges of an assignment. Values that share memory at the
 * same time (in-place operations, loops) are counted once: the bytes of a position are the
 * addresses that are taken there, never more than the allocations.
 */
#include "formats/buffers/buffers.h"

struct rp_buffer_live {
    uint32_t value;      /* index in the assignment; RP_NONE if it has no memory */
    int64_t first, last; /* positions, inclusive */
};

struct rp_buffer_lives {
    struct rp_buffer_live *at; /* in the order of the ranges */
    size_t n;                  /* 0 if the assignment has no ranges */
    size_t npositions;
    int64_t *taken;           /* bytes, by position */
    int64_t peak, peak_bytes; /* position and size of the peak; -1 if not known */
    int64_t heap_bytes;       /* size of the temporary allocations */
    int64_t heap_peak_bytes;  /* the most of them that is taken at once; -1 if not known */
};

/* Allocates in the arena. Takes the time of sorting the ranges. */
enum rp_code rp_buffers_lives(const struct rp_buffers *b, struct rp_arena *arena,
                              struct rp_buffer_lives *out, struct rp_err *err);

struct rp_buffer_share { /* a value that is live at a position */
    uint32_t live;       /* index of rp_buffer_lives.at */
    int64_t bytes;       /* the bytes that no value earlier in the list takes already */
};

/* Lists the values that are live at a position, by allocation and offset; their bytes add up to
   `taken` there. Allocates in the arena. */
enum rp_code rp_buffers_live_at(const struct rp_buffers *b, const struct rp_buffer_lives *lives,
                                int64_t position, struct rp_arena *arena,
                                struct rp_buffer_share **out, size_t *n, struct rp_err *err);
