/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Difference constraints between clocks. For clocks.c only. */
#include "facts/clocks/clocks.h"

/* Times are already converted to one clock by the estimate, so adjustments are close to 0. */
struct rp_clock_facts {
    size_t nclocks, nrendezvous, nparticipants, nmessages;
    int64_t tolerance_ns;
    const struct rp_clock_participant *participants;       /* their rank is a clock */
    const struct rp_clock_message *messages;               /* their from and to are clocks */
    const struct rp_clock_participant *given_participants; /* the same with ranks, for conflicts */
    const struct rp_clock_message *given_messages;
    const uint32_t *first; /* by rendezvous, with one more at the end: its first participant */
    bool *dropped;     /* by rendezvous, then by message: whether it is not used as a constraint */
    const bool *known; /* by clock */
};

/* Finds the conflicts, and adjustments that satisfy the other constraints. */
enum rp_code rp_clock_fit(const struct rp_clock_facts *f, struct rp_arena *arena,
                          int64_t *adjust_ns, struct rp_clocks *out, struct rp_err *err);

/* The bounds of the adjustment of each clock; that of clock 0 is 0. */
enum rp_code rp_clock_bounds(const struct rp_clock_facts *f, struct rp_arena *arena,
                             int64_t *low_ns, int64_t *high_ns, struct rp_err *err);
