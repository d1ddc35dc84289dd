/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_STALLS_TOGETHER_H
#define RP_EXPLAIN_STALLS_TOGETHER_H
/* Stalls that happen at the same time on several threads or ranks have a cause outside of them. */
#include "explain/stalls/stalls.h"

/* Of stalls without a cause: those in whose middle another thread of the rank, or half of the other
   ranks, is stalled too get one. `offset_ns` by place of the rank: to one clock; `place` by stall.
   O(n log n). */
enum rp_code rp_stalls_find_together(struct rp_stall *stalls, const uint32_t *place, size_t n,
                                     const int64_t *offset_ns, size_t nranks,
                                     struct rp_arena *arena, struct rp_err *err);

#endif
