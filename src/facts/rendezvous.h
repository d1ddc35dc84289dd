/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_RENDEZVOUS_H
#define RP_FACTS_RENDEZVOUS_H
/*
 * How ranks meet in collectives. A collective goes on when its last rank has come, so what every
 * other rank spent in it before is waiting.
 *
 *     rank 0  [wait...........|transfer]
 *     rank 1        [wait.....|transfer]
 *     rank 2                  [transfer]      last; margin: from the start of rank 1 to its own
 */
#include "facts/collectives.h"

enum rp_rendezvous_rule {
    RP_RENDEZVOUS_BY_NONE,     /* one rank, or nothing to match */
    RP_RENDEZVOUS_BY_SEQUENCE, /* process group and sequence number */
    RP_RENDEZVOUS_BY_GROUP,    /* process group, and the n-th of its name in it */
    RP_RENDEZVOUS_BY_ORDER, /* the i-th kernel of the k-th communication stream, with the same name
                             */
    RP_RENDEZVOUS_BY_NAME   /* the n-th on the host of a name and size */
};
extern const char *const rp_rendezvous_rule_names[];

struct rp_rendezvous {
    uint32_t n;     /* ranks that were recorded in it */
    uint32_t *rank; /* which of the given ranks, in their order */
    uint32_t *at;   /* and where in the list of each */
    uint32_t last;  /* place in `rank` of the one that came last; of several the first */
    int64_t last_ns, second_ns, first_ns; /* last, second last and first start */
    int64_t end_ns, first_end_ns;         /* last and first end; all on the first rank's clock */
};

struct rp_rendezvous_list {
    enum rp_rendezvous_rule rule;
    size_t n;
    struct rp_rendezvous *at; /* by last start */
    size_t nlost;             /* collectives of ranks, added up, that met nobody */
    bool clocks_differ;       /* the ranks' times as recorded do not fit together */
    int64_t *base_ns;         /* by rank: add to its times for those of the first, by their bases */
    int64_t *offset_ns; /* the same on the first rank's clock, where clocks differ (clocks.h) */
};

/* Allocates in the arena; sorts, so O(n log n) in all collectives. */
enum rp_code rp_rendezvous_find(const struct rp_collectives *const *ranks, size_t n,
                                struct rp_arena *arena, struct rp_rendezvous_list *out,
                                struct rp_err *err);

#endif
