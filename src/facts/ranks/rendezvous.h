/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Matches the collectives of ranks. A collective proceeds when its last rank has arrived, so the
 * time that other ranks spent in it before is waiting.
 *
 *     rank 0  [wait...........|transfer]
 *     rank 1        [wait.....|transfer]
 *     rank 2                  [transfer]      arrives last; margin: from the start of rank 1 to its
 * own
 *
 * This is true if each rank needs data of every other. In a broadcast or scatter, all wait for the
 * root, and nobody for a rank that only receives; in a reduce or gather, ranks that only send may
 * leave before the last one comes (rendezvous_waits.c). Sends and receives that know their peer are
 * matched as pairs (rendezvous_pairs.c), whatever the rule for collectives is.
 *
 * Times of ranks are compared on the clock of the first. The ends of collectives show the clocks of
 * their hosts (clocks.h); if such a clock differs from the recorded times by at most its
 * uncertainty, the recorded times are used.
 */
#include "facts/clocks/clocks.h"
#include "facts/ranks/collectives.h"
#include "facts/times/intervals.h"

/* The place of a rank in a pipeline of stages that send activations forward and gradients back. */
struct rp_pipe_stage {
    uint32_t pipeline, stage; /* RP_NONE if in none; stages count from 0 */
    uint32_t next, before;    /* the ranks of the neighbouring stages, or RP_NONE */
};

enum rp_rendezvous_rule {
    RP_RENDEZVOUS_BY_NONE,     /* one rank, or nothing to match */
    RP_RENDEZVOUS_BY_SEQUENCE, /* process group and sequence number */
    RP_RENDEZVOUS_BY_GROUP,    /* process group, name, and ordinal in the group */
    RP_RENDEZVOUS_BY_ORDER, /* number of the communication stream and position in it, with the same
                               name */
    RP_RENDEZVOUS_BY_NAME,  /* name, size and ordinal, for collectives on the host */
    RP_RENDEZVOUS_BY_TIME,  /* name and end, if their order contradicts the recorded times */
    RP_RENDEZVOUS_BY_PEER   /* there are only sends and receives, which know their peer */
};
extern const char *const rp_rendezvous_rule_names[];

struct rp_rendezvous {
    uint32_t n;      /* number of participants that were given */
    int64_t members; /* number of all participants, as far as known: at least n */
    uint8_t senders; /* for a pair of sends and receives, bit i: participant i sends; 0: not a pair.
                        An operation may be in several pairs */
    uint32_t *rank;  /* by participant: its rank, ascending */
    uint32_t *at;    /* by participant: index of the collective in the list of its rank */
    uint32_t last;   /* index of the participant that arrived last; the first of several */
    uint32_t second; /* and of that before it */
    uint32_t source; /* the participant whose data the others wait for; RP_NONE if each needs all */
    bool open;       /* a participant may leave before the last one arrives */
    bool
        doubtful; /* the clocks of the last two are not precise enough to tell which one was late */
    int64_t last_ns, second_ns, first_ns; /* last, second last and first start */
    int64_t end_ns, first_end_ns; /* last and first end; all times on the first rank's clock */
    int64_t margin_ns;            /* how long the last one delayed others, after the second last */
    int64_t delay_ns; /* the part of it that its rank did not already delay by another collective; 0
                         if doubtful */
};

struct rp_rendezvous_list {
    enum rp_rendezvous_rule rule;
    size_t n;
    struct rp_rendezvous *at; /* sorted by last_ns */
    size_t nlost;             /* collectives of all ranks without a match */
    bool clocks_differ;       /* the offset of a clock exceeds its uncertainty */
    bool contradict;  /* ... and the rest still contradicts: collectives end before their last rank
                         arrives */
    bool dropped;     /* matches by order were given up, because they make no sense on any clock */
    size_t ndoubtful; /* rendezvous whose last rank is not certain */
    bool trusted;     /* the recorded times do not contradict each other */
    int64_t apart_ns; /* the largest offset that is used, relative to the recorded times */
    int64_t uncertainty_ns; /* the largest uncertainty of the clocks */
    size_t nset;            /* ranks whose clock was set while they were recorded */
    int64_t *base_ns; /* by rank: time to add to get the first rank's, by the bases of the files */
    struct rp_clock *clocks; /* by rank: how its times become the first rank's (rp_clock_time) */
    struct rp_pipe_stage *stages; /* by rank: its place in a pipeline; NULL if there is none */
};

/* Whether two ranks are neighbouring stages of a pipeline. */
static inline bool rp_rendezvous_are_stages(const struct rp_rendezvous_list *list, uint32_t a,
                                            uint32_t b)
{
    return list->stages && (list->stages[a].next == b || list->stages[a].before == b);
}

/* The number of ranks that take part in a collective, including those that were not given; 0: not
   known. */
int64_t rp_collective_members(const struct rp_collectives *rank, const struct rp_collective *c);

/* How long participant i waited for others, at most as long as it was inside. */
int64_t rp_rendezvous_wait(const struct rp_rendezvous_list *list,
                           const struct rp_collectives *const *ranks, const struct rp_rendezvous *m,
                           uint32_t i);
/* The participant for which i waited; i itself if it waited for none. */
uint32_t rp_rendezvous_awaited(const struct rp_rendezvous_list *list,
                               const struct rp_collectives *const *ranks,
                               const struct rp_rendezvous *m, uint32_t i);

/* What a rank did in its matched collectives. Several may be under way at once: it waits while any
   of them waits, and wait and transfer together are the time in which any runs. */
struct rp_rendezvous_sums {
    int64_t wait_ns, transfer_ns;
};

/* Adds up each of n ranks in `out`. If `waits` is not NULL, its n empty vectors get the times in
   which each rank waited, on its own clock; the caller releases them, also after a failure. */
enum rp_code rp_rendezvous_sum(const struct rp_rendezvous_list *list,
                               const struct rp_collectives *const *ranks, size_t n,
                               struct rp_rendezvous_sums *out, rp_interval_vec *waits,
                               struct rp_err *err);

/* Fills source, open, doubtful, margin_ns and delay_ns from times and clocks. For rendezvous.c. */
enum rp_code rp_rendezvous_set_delays(struct rp_rendezvous_list *list,
                                      const struct rp_collectives *const *ranks,
                                      struct rp_err *err);

/* Finds pipelines among pairs, and fills `stages`. A stage's waits in its pipeline come from the
   schedule and are not delays by a rank. For rendezvous.c. */
enum rp_code rp_rendezvous_find_stages(struct rp_rendezvous_list *list,
                                       const struct rp_collectives *const *ranks, size_t n,
                                       struct rp_arena *arena, struct rp_err *err);

/* Decides whether the estimated clock of a rank is used, or its recorded times (base_ns). trusted:
   the recorded times do not contradict each other. */
void rp_rendezvous_settle_clock(const struct rp_collectives *rank, int64_t base_ns, bool trusted,
                                struct rp_clock *clock);

/* Drops all matches, because the ranks are not of one run. n is their number. */
void rp_rendezvous_drop(struct rp_rendezvous_list *list, size_t n);

/* Drops those that were over on all their ranks before the first step began, because a start-up is
   not judged, unless there are no others. Returns how many. */
size_t rp_rendezvous_drop_start_up(struct rp_rendezvous_list *list,
                                   const struct rp_collectives *const *ranks);

/* Allocates in the arena; sorts, so O(n log n) in all collectives. */
enum rp_code rp_rendezvous_find(const struct rp_collectives *const *ranks, size_t n,
                                struct rp_arena *arena, struct rp_rendezvous_list *out,
                                struct rp_err *err);

/* Two operations that exchange messages; the lower rank comes first. */
struct rp_rendezvous_pair {
    uint32_t rank[2], at[2];
    uint8_t senders; /* bit i: the i-th sends */
};
typedef RP_VEC(struct rp_rendezvous_pair) rp_rendezvous_pair_vec;

/* Finds the pairs of all ranks that are not left out, each once, ordered by rank and position.
 *noperations: the number of operations in them. For rendezvous.c. */
enum rp_code rp_rendezvous_find_pairs(const struct rp_collectives *const *ranks, size_t n,
                                      const bool *left_out, rp_rendezvous_pair_vec *out,
                                      size_t *noperations, struct rp_err *err);

/*
 * Aligns the collectives of a rank that recorded fewer of them (its recording began later, ended
 * earlier, or lost some) with those of another rank. Ranks leave a collective together, so at the
 * right positions all ends differ by the same time, the difference of the clocks.
 */
struct rp_rendezvous_item {
    int64_t end_ns;
    uint64_t name;
};

/* place[i] is the position of some[i] in `all`, ascending; nsome <= nall. O(nall). */
void rp_rendezvous_place(const struct rp_rendezvous_item *all, size_t nall,
                         const struct rp_rendezvous_item *some, size_t nsome, uint32_t *place);
