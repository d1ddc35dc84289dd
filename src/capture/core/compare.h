/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much longer steps are in one kind than in the other. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_CORE_COMPARED 64 /* times of each kind, at most */

struct rp_core_times {
    uint64_t at[RP_CORE_COMPARED];
    size_t n; /* there were; the last ones are kept */
};

void rp_core_times_add(struct rp_core_times *t, uint64_t time);

uint64_t rp_core_times_median(const struct rp_core_times *t); /* of at least one */

/* A usual time of the first kind, and what it would be in the other: with an interval of 95 %. */
struct rp_core_compared {
    uint64_t longer, usual, usual_least, usual_most;
};

/* False where the times differ among themselves by more than between the kinds, and by more than
   1 %. */
bool rp_core_compare(const struct rp_core_times *first, const struct rp_core_times *second,
                     struct rp_core_compared *out);
