/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is known about clocks from traces: collectives, and messages between two traces. */
#include "facts/clocks/clocks.h"
#include "facts/ranks/rendezvous.h"
#include "facts/times/durations.h"
#include "trace/trace.h"

typedef RP_VEC(struct rp_clock_message) rp_clock_message_vec;

/* One side of a message whose other side is in another trace (logs of BytePS). */
struct rp_half_message {
    uint64_t key; /* the same on both sides */
    int64_t ns;
    uint32_t rank,
        nth; /* nth: ordinal among those of its key, side and rank; set by rp_half_messages_join */
    bool is_begin;
    uint8_t unused[7];
};
typedef RP_VEC(struct rp_half_message) rp_half_message_vec;

/* The half messages of a trace: begins and ends of transfers whose other end is not in it. */
enum rp_code rp_half_messages_find(const struct rp_trace *t, rp_half_message_vec *out,
                                   struct rp_err *err);
/* The n-th begin of a key on one rank and the n-th end on another are a message. Sorts the halves.
 */
enum rp_code rp_half_messages_join(rp_half_message_vec *halves, rp_clock_message_vec *out,
                                   struct rp_err *err);

/* Finds which ranks share a clock, as their traces say: clock_of[r] is the first rank of its boot,
   else of its host's name. Returns whether any do. */
enum rp_code rp_clocks_share(const struct rp_collectives *const *ranks, size_t n,
                             uint32_t *clock_of, bool *shared, struct rp_err *err);

/* Clocks relative to the first rank's trace. clock_of: as in rp_clock_input; messages: may be NULL.
 */
enum rp_code rp_clocks_of_rendezvous(const struct rp_collectives *const *ranks, size_t n,
                                     const struct rp_rendezvous_list *rendezvous,
                                     const uint32_t *clock_of, const rp_clock_message_vec *messages,
                                     struct rp_arena *arena, struct rp_clocks *out,
                                     struct rp_err *err);
