/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_RENDEZVOUS_H
#define RP_FACTS_RENDEZVOUS_H
/*
 * Matches the collectives of ranks. A collective proceeds when its last rank has arrived, so the
 * time that other ranks spent in it before is waiting.
 *
 *     rank 0  [wait...........|transfer]
 *     rank 1        [wait.....|transfer]
 *     rank 2                  [transfer]      arrives last; margin: from the start of rank 1 to its
 * own
 */
#include "facts/collectives.h"

enum rp_rendezvous_rule {
    RP_RENDEZVOUS_BY_NONE,     /* one rank, or nothing to match */
    RP_RENDEZVOUS_BY_SEQUENCE, /* process group and sequence number */
    RP_RENDEZVOUS_BY_GROUP,    /* process group, name, and ordinal in the group */
    RP_RENDEZVOUS_BY_ORDER, /* number of the communication stream and position in it, with the same
                               name */
    RP_RENDEZVOUS_BY_NAME,  /* name, size and ordinal, for collectives on the host */
    RP_RENDEZVOUS_BY_TIME   /* name and end, where their order contradicts the recorded times */
};
extern const char *const rp_rendezvous_rule_names[];

struct rp_rendezvous {
    uint32_t n;      /* participants that were given */
    int64_t members; /* all of them, as far as known: at least n */
    uint32_t *rank;  /* by participant: its rank, ascending */
    uint32_t *at;    /* by participant: index of the collective in the list of its rank */
    uint32_t last;   /* index of the participant that arrived last; the first of several */
    int64_t last_ns, second_ns, first_ns; /* last, second last and first start */
    int64_t end_ns, first_end_ns; /* last and first end; all times on the first rank's clock */
};

struct rp_rendezvous_list {
    enum rp_rendezvous_rule rule;
    size_t n;
    struct rp_rendezvous *at; /* sorted by last_ns */
    size_t nlost;             /* collectives of all ranks without a match */
    bool clocks_differ;       /* the recorded times of the ranks contradict each other */
    bool dropped;             /* matches by order were given up: no clock makes sense of them */
    int64_t *base_ns; /* by rank: what to add to its times to get the first rank's, by the bases of
                         the files */
    int64_t *offset_ns; /* the same by estimated clocks, where clocks differ (clocks.h) */
};

/* How many ranks take part in a collective, with those that were not given; 0: not known. */
int64_t rp_collective_members(const struct rp_collectives *rank, const struct rp_collective *c);

/* Forgets all matches: the ranks are not of one run. n: how many they are. */
void rp_rendezvous_drop(struct rp_rendezvous_list *list, size_t n);

/* Allocates in the arena; sorts, so O(n log n) in all collectives. */
enum rp_code rp_rendezvous_find(const struct rp_collectives *const *ranks, size_t n,
                                struct rp_arena *arena, struct rp_rendezvous_list *out,
                                struct rp_err *err);

/*
 * Aligns the collectives of a rank that recorded fewer of them (its recording began later, ended
 * earlier, or lost some) with those of another rank. Ranks leave a collective together, so at the
 * right positions all ends differ by the same time, the difference of the clocks.
 */
struct rp_rendezvous_item {
    int64_t end_ns;
    uint64_t name;
};

/* place[i]: position of some[i] in `all`, ascending; nsome <= nall. O(nall). */
void rp_rendezvous_place(const struct rp_rendezvous_item *all, size_t nall,
                         const struct rp_rendezvous_item *some, size_t nsome, uint32_t *place);

#endif
