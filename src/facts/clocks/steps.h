/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Clocks that were set during the recording. Except for a slow drift, the ends of rendezvous on a
 * clock keep their distance from those on other clocks; a distance that changes at once and stays
 * is a step:
 *
 *     distance   . .. . . .
 *                            : .. .. . .      from here on the clock is 50 ms ahead
 *
 * For clocks.c only.
 */
#include "facts/clocks/clocks.h"

struct rp_clock_series {
    size_t nclocks, nrendezvous;
    struct rp_clock_participant
        *participants;        /* their ranks are numbers of clocks; times are corrected in place */
    const uint32_t *first;    /* by rendezvous, with one more at the end: its first participant */
    const uint32_t *order;    /* rendezvous in the order of time */
    const int64_t *offset_ns; /* by clock, roughly */
};

/* By clock, in the arena; NULL if it has none. */
struct rp_clock_steps {
    size_t n;
    struct rp_clock_step *at;
};

/* Finds the steps and removes them from the times of the participants. Linear in participants, plus
   sorting those of each rendezvous. */
enum rp_code rp_clock_steps_find(const struct rp_clock_series *s, struct rp_arena *arena,
                                 struct rp_clock_steps *out, struct rp_err *err);

/* The time to add to a time of the clock to undo the steps before it. */
int64_t rp_clock_steps_before(const struct rp_clock_step *at, size_t n, int64_t ns);
