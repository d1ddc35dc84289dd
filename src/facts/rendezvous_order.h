/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_RENDEZVOUS_ORDER_H
#define RP_FACTS_RENDEZVOUS_ORDER_H
/*
 * Where the collectives of a rank that recorded fewer of them belong among those of another: it
 * began later, ended earlier, or lost some. Ranks leave a collective together, so on the right
 * places the ends of both differ by the same time, that of their clocks.
 */
#include <stddef.h>
#include <stdint.h>

struct rp_rendezvous_item {
    int64_t end_ns;
    uint64_t name;
};

/* place[i]: of the i-th of `some` among `all`, growing; nsome <= nall. O(nall). */
void rp_rendezvous_place(const struct rp_rendezvous_item *all, size_t nall,
                         const struct rp_rendezvous_item *some, size_t nsome, uint32_t *place);

#endif
