/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_CLOCK_BOUNDS_H
#define RP_FACTS_CLOCK_BOUNDS_H
/* Difference constraints between clocks; between clocks.c and clock_bounds.c only. */
#include "facts/clocks.h"

/* Times are already on one clock, by the estimate: 0 for all adjustments is hoped to be right. */
struct rp_clock_facts {
    size_t nclocks, nrendezvous, nparticipants, nmessages;
    int64_t tolerance_ns;
    const struct rp_clock_participant *participants;       /* rank: the clock */
    const struct rp_clock_message *messages;               /* from, to: clocks */
    const struct rp_clock_participant *given_participants; /* the same with ranks, for names */
    const struct rp_clock_message *given_messages;
    const uint32_t *first; /* by rendezvous, and one more: its participants */
    bool *dropped;         /* by rendezvous, then by message: no part of the constraints */
    const bool *known;     /* by clock */
};

/* The conflicts, and adjustments that satisfy what is left: as close to 0 above as below. */
enum rp_code rp_clock_fit(const struct rp_clock_facts *f, struct rp_arena *arena,
                          int64_t *adjust_ns, struct rp_clocks *out, struct rp_err *err);

/* Between which adjustments each clock certainly is, that of clock 0 being 0. */
enum rp_code rp_clock_bounds(const struct rp_clock_facts *f, struct rp_arena *arena,
                             int64_t *low_ns, int64_t *high_ns, struct rp_err *err);

#endif
