/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compares two runs of which only memory was recorded: how their peaks differ, and which lines,
 * operators and categories account for the difference. The changes of each list add up to that of
 * the peak.
 */
#include "dataset/ranks.h"

struct rp_memory_change {
    const char *name;
    int64_t base_bytes, new_bytes, change_bytes; /* at the peaks */
    int64_t base_buffers, new_buffers;
};

struct rp_memory_pair { /* rp_memory_pair: the same device of the same rank in both runs */
    int64_t rank;
    const char *device;
    int64_t base_peak_bytes, new_peak_bytes, change_bytes;
};

struct rp_memory_two { /* the pair with the largest peak, in the base and in the new run */
    int64_t rank;
    const char *device;
    size_t npeak_bytes, nreserved_bytes, nbegin_bytes, ncategories, nlines, noperators;
    int64_t *peak_bytes, *reserved_bytes, *begin_bytes;
    struct rp_memory_change *categories, *lines, *operators;
};

struct rp_memory_diff {
    const char *inputs, *summary, *start; /* start: text output only */
    struct rp_memory_two memory;
    size_t ndevices, ncategories, nlines, noperators, nnotes;
    struct rp_memory_pair *devices;
    struct rp_memory_change *categories, *lines, *operators; /* text output only */
    const char **notes;
};

extern const struct rp_type rp_memory_diff_type;
extern const struct rp_rank_row rp_memory_diff_ranks; /* its root: struct rp_memory_diff */
