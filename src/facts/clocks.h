/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_CLOCKS_H
#define RP_FACTS_CLOCKS_H
/*
 * One clock for many ranks. Two kinds of facts tie the clocks of two ranks together:
 *
 *     rendezvous    nobody can leave an all-reduce before the last has come, and all leave it
 * together message    nothing is received before it was sent
 *
 *     rank 0  [b0 ........ e0]              certain:  b0 <= e1 and b1 <= e0, on one clock
 *     rank 1        [b1 .... e1]            likely:   e0 = e1
 *
 * What is certain becomes difference constraints (clock_bounds.c): they say whether any offsets fit
 * at all, and between which two values each one lies. What is likely becomes the estimate: medians,
 * where short rendezvous weigh more. Ranks of one host share a clock.
 */
#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_CLOCK_NONE UINT32_MAX

/* A rank in a rendezvous. Participants of one rendezvous stand behind each other. */
struct rp_clock_participant {
    uint32_t rendezvous, rank;
    int64_t begin_ns, end_ns; /* of the rank's own clock */
    bool binds;               /* nobody could leave this rendezvous before this rank came */
};

struct rp_clock_message {
    uint32_t from, to;            /* ranks */
    int64_t sent_ns, received_ns; /* the earliest the one, the latest the other can have been */
};

struct rp_clock_input {
    size_t nranks;
    const uint32_t *clock_of; /* by rank: a number below nranks; NULL: each has its own */
    const int64_t *start_ns;  /* by rank: added to its times beforehand; NULL: nothing */
    size_t nparticipants, nmessages;
    const struct rp_clock_participant *participants;
    const struct rp_clock_message *messages;
    int64_t tolerance_ns; /* by which recorded times may contradict each other */
};

/* Of a rank; time on the first rank's clock = rp_clock_time(). */
struct rp_clock {
    bool known;              /* something ties it to the first rank's clock */
    int64_t offset_ns;       /* to be added to the rank's times, as of at_ns */
    int64_t at_ns;           /* a time in the middle of what was used, of the rank's clock */
    double drift_ppb;        /* how much more must be added each second, in ns; 0: none was seen */
    int64_t uncertainty_ns;  /* of the offset; -1: not known */
    int64_t low_ns, high_ns; /* the offset is certainly between them; INT64_MIN, INT64_MAX: open */
    uint32_t clock;          /* ranks with the same number share it */
    uint32_t rendezvous, messages; /* of its clock that were used */
};

/* Facts that no offsets satisfy: what the pair was left out of the constraints for. */
struct rp_clock_conflict {
    uint32_t rank_a, rank_b;           /* a left `rendezvous` before b came to it */
    uint32_t rendezvous, message;      /* one of them; RP_CLOCK_NONE: the other */
    uint32_t against, against_message; /* what says the opposite, if it is another */
    int64_t by_ns; /* the offsets would have to differ by so much from themselves */
};

struct rp_clocks {
    size_t n;
    struct rp_clock *at; /* by rank */
    size_t nrendezvous;  /* of two clocks or more */
    size_t nmessages;    /* from one clock to another */
    size_t nconflicts;
    struct rp_clock_conflict *conflicts;
    bool consistent; /* without what the conflicts name everything fits */
    bool used_drift;
};

/* Allocates in the arena. O(participants log participants), and a few passes over all of them. */
enum rp_code rp_clocks_find(const struct rp_clock_input *in, struct rp_arena *arena,
                            struct rp_clocks *out, struct rp_err *err);

int64_t rp_clock_time(const struct rp_clock *clock, int64_t ns);

#endif
