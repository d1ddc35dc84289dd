/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_RENDEZVOUS_ORDER_H
#define RP_FACTS_RENDEZVOUS_ORDER_H
/*
 * Aligns the collectives of a rank that recorded fewer of them (its recording began later, ended
 * earlier, or lost some) with those of another rank. Ranks leave a collective together, so at the
 * right positions all ends differ by the same time, the difference of the clocks.
 */
#include <stddef.h>
#include <stdint.h>

struct rp_rendezvous_item {
    int64_t end_ns;
    uint64_t name;
};

/* place[i]: position of some[i] in `all`, ascending; nsome <= nall. O(nall). */
void rp_rendezvous_place(const struct rp_rendezvous_item *all, size_t nall,
                         const struct rp_rendezvous_item *some, size_t nsome, uint32_t *place);

#endif
