/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Measures how much longer steps of one kind are than those of another. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_CORE_COMPARED 64 /* most times of each kind */

struct rp_core_times {
    uint64_t at[RP_CORE_COMPARED];
    size_t n; /* number of times so far, of which the last ones are kept */
};

void rp_core_times_add(struct rp_core_times *t, uint64_t time);

uint64_t
rp_core_times_median(const struct rp_core_times *t); /* the times must have at least one value */

/* A usual time of the first kind, and its length in the other kind, with an interval of 95 %. */
struct rp_core_compared {
    uint64_t longer, usual, usual_least, usual_most;
};

/* Returns false if the times vary by more than the kinds differ, and by more than 1 %. */
bool rp_core_compare(const struct rp_core_times *first, const struct rp_core_times *second,
                     struct rp_core_compared *out);
