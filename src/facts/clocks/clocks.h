/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One clock for many ranks. Two kinds of observations relate the clocks of two ranks:
 *
 *     rendezvous   no rank leaves an all-reduce before the last one arrives; all leave together
 *     message      nothing is received before it was sent
 *
 *     rank 0  [b0 ........ e0]              certain:  b0 <= e1 and b1 <= e0, on one clock
 *     rank 1        [b1 .... e1]            likely:   e0 = e1
 *
 * The certain relations become difference constraints (clock_bounds.c), which show whether any
 * offsets satisfy all of them, and give bounds for each offset. The likely ones give the estimate:
 * medians in which short rendezvous weigh more. Ranks of one host share a clock.
 */
#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_CLOCK_NONE UINT32_MAX

/* A rank in a rendezvous. Participants of one rendezvous are adjacent. */
struct rp_clock_participant {
    uint32_t rendezvous, rank;
    int64_t begin_ns, end_ns; /* on the rank's own clock */
    bool binds; /* no participant can leave this rendezvous before this rank arrives */
};

struct rp_clock_message {
    uint32_t from, to;            /* ranks */
    int64_t sent_ns, received_ns; /* the earliest time of sending, the latest of receiving */
};

struct rp_clock_input {
    size_t nranks;
    const uint32_t
        *clock_of; /* by rank: number of its clock, below nranks; NULL: each rank has its own */
    const int64_t *start_ns; /* by rank: first added to its times; NULL: 0 */
    size_t nparticipants, nmessages;
    const struct rp_clock_participant *participants;
    const struct rp_clock_message *messages;
    int64_t tolerance_ns; /* by how much recorded times may contradict each other */
    bool steps;           /* clocks may have been set while they were recorded */
};

/* A clock was set: from from_ns on, add_ns must be added to times. */
struct rp_clock_step {
    int64_t from_ns, add_ns;
};

/* The clock of a rank; rp_clock_time converts a time to the first rank's clock. */
struct rp_clock {
    bool known; /* it is related to the first rank's clock */
    bool used; /* the estimate is used; otherwise the recorded times are, which differ from it by at
                  most its uncertainty (rendezvous.h) */
    int64_t offset_ns;       /* added to the rank's times, at at_ns */
    int64_t at_ns;           /* the middle of the times that were used, on the rank's clock */
    double drift_ppb;        /* change of the offset, in ns per second; 0: no significant drift */
    double drift_doubt_ppb;  /* how far the true drift may be from it; negative: not known */
    int64_t uncertainty_ns;  /* of the offset; -1: not known */
    int64_t low_ns, high_ns; /* bounds of the offset; INT64_MIN, INT64_MAX if there are none */
    uint32_t clock;          /* ranks with the same number share it */
    uint32_t rendezvous, messages; /* number of those that were used for its clock */
    size_t nsteps;
    const struct rp_clock_step
        *steps; /* in the order of time, on the rank's clock; undone before the rest */
};

/* A constraint that contradicts others and was dropped. */
struct rp_clock_conflict {
    uint32_t rank_a, rank_b;           /* rank a left the rendezvous before rank b arrived */
    uint32_t rendezvous, message;      /* one of the two is set, the other is RP_CLOCK_NONE */
    uint32_t against, against_message; /* what it contradicts, or RP_CLOCK_NONE */
    int64_t by_ns;                     /* the size of the contradiction */
};

struct rp_clocks {
    size_t n;
    struct rp_clock *at; /* by rank */
    size_t nrendezvous;  /* of two clocks or more */
    size_t nmessages;    /* from one clock to another */
    size_t nconflicts;
    struct rp_clock_conflict *conflicts;
    bool consistent; /* offsets satisfy everything but the conflicts */
    bool used_drift;
};

/* Allocates in the arena. O(participants log participants), and a few passes over all of them. */
enum rp_code rp_clocks_find(const struct rp_clock_input *in, struct rp_arena *arena,
                            struct rp_clocks *out, struct rp_err *err);

int64_t rp_clock_time(const struct rp_clock *clock, int64_t ns);
/* The opposite, within a nanosecond: a time of the first rank's clock on the rank's own. */
int64_t rp_clock_own_time(const struct rp_clock *clock, int64_t ns);

/* Whether the clock differs from the recorded times (recorded_ns added to the rank's) by more than
   its uncertainty and least_ns. from_ns, to_ns: the time in question, on the rank's clock. */
bool rp_clock_differs(const struct rp_clock *clock, int64_t recorded_ns, int64_t least_ns,
                      int64_t from_ns, int64_t to_ns);
