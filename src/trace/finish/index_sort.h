/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Indirect sorting: the columns stay as they are, an array of row numbers is sorted. Inside
 * src/trace only.
 */
#include "base/err.h"
#include "base/vec.h"

#include <stdint.h>
#include <string.h>

struct rp_sort_keys {
    uint32_t n, ntracks;
    const uint32_t *track; /* RP_NONE: the row is dropped */
    const int64_t *ts_ns;
    const int64_t *dur_ns; /* NULL: rows with the same ts stay in order */
    const uint8_t *flags;  /* with dur_ns: RP_EVENT_UNENDED is longer than anything */
};

typedef RP_VEC(uint32_t) rp_row_vec;
typedef RP_VEC(uint64_t) rp_word_vec;

/* Memory that is passed from one sort to the next, because fresh pages are expensive. */
struct rp_sort_scratch {
    rp_word_vec a, tmp;
    rp_row_vec rows;
};

void rp_sort_scratch_release(struct rp_sort_scratch *scratch);

/*
 * Fills perm with the rows by track, ts (those without first), longer first, row; begin[t] to
 * begin[t + 1] is track t. Needs 16 bytes of scratch for each row of the largest track. Radix sort
 * of (ts, row) in one word where both fit, merge sort otherwise.
 */
enum rp_code rp_index_sort(const struct rp_sort_keys *keys, rp_row_vec *perm, rp_row_vec *begin,
                           struct rp_sort_scratch *scratch, struct rp_err *err);

/* Puts a column into the order of the rows; scratch has room for a word a row. */
#define RP_PERMUTE(column, type, perm, scratch)                  \
    do {                                                         \
        type *to_ = (type *)(void *)(scratch);                   \
        size_t i_;                                               \
        for (i_ = 0; i_ < (perm)->n; i_++)                       \
            to_[i_] = (column)->at[(perm)->at[i_]];              \
        if ((perm)->n)                                           \
            memcpy((column)->at, to_, (perm)->n * sizeof(type)); \
        (column)->n = (perm)->n;                                 \
    } while (0)

/* Stable sort of n words by the bits from `low` up. The result is in a or in tmp (also n words): it
 * is returned. */
uint64_t *rp_radix_sort(uint64_t *a, uint64_t *tmp, size_t n, unsigned low);
