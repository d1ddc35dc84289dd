/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_CLOCK_SOURCES_H
#define RP_FACTS_CLOCK_SOURCES_H
/* What records tell about clocks: the collectives of traces, the agreements and rings of a job. */
#include "facts/clocks.h"
#include "facts/meetings.h"
#include "trace/job.h"
#include "trace/trace.h"

/* Recorded times may contradict each other by so much: devices report theirs on the clock of the
   host by a conversion that is a few microseconds off. */
#define RP_CLOCK_TOLERANCE_NS 10000

typedef RP_VEC(struct rp_clock_message) rp_clock_message_vec;

/* A message of which one side is in one trace and the other in another (logs of BytePS). */
struct rp_half_message {
    uint64_t key; /* the same on both sides */
    int64_t ns;
    uint32_t rank, nth; /* nth of its key, side and rank; set by rp_half_messages_join */
    bool is_begin;
};
typedef RP_VEC(struct rp_half_message) rp_half_message_vec;

/* The halves of a trace: begins and ends of transfers that have no other end there. */
enum rp_code rp_half_messages_find(const struct rp_trace *t, rp_half_message_vec *out,
                                   struct rp_err *err);
/* The n-th begin of a key on one rank and the n-th end on another are a message. Sorts the halves.
 */
enum rp_code rp_half_messages_join(rp_half_message_vec *halves, rp_clock_message_vec *out,
                                   struct rp_err *err);

/* Times of the ranks become those of the first rank's trace. clock_of: as in rp_clock_input;
   messages: NULL for none. */
enum rp_code rp_clocks_of_meetings(const struct rp_collectives *const *ranks, size_t n,
                                   const struct rp_meetings *meetings, const uint32_t *clock_of,
                                   const rp_clock_message_vec *messages, struct rp_arena *arena,
                                   struct rp_clocks *out, struct rp_err *err);

/* The ranks of a host share its clock. Meetings are the ends of the agreements (Sync) and messages
   the sends and receives of the rings. `facts` is what it was made of, for names. */
enum rp_code rp_clocks_of_job(const struct rp_job *job, struct rp_arena *arena,
                              struct rp_clocks *out, struct rp_err *err);

/* Of a job with servers: its ranks, then its servers. likely: limits are as tight as is likely, not
   as is certain. */
enum rp_code rp_clocks_of_servers(const struct rp_job *job, bool likely, struct rp_arena *arena,
                                  struct rp_clocks *out, struct rp_err *err);
/* Where the clock of a worker or server of ps-lite stands among them; SIZE_MAX: nowhere. */
size_t rp_job_clock_of(const struct rp_job *job, int32_t id);
size_t rp_job_servers(const struct rp_job *job);
/* The same for both ends of a message, and for no other kind, key or pair. */
uint64_t rp_job_message_key(const struct rp_job_half *half);

/* Brings all times of a job onto the clock of its first rank. */
enum rp_code rp_job_align(struct rp_job *job, struct rp_err *err);

#endif
