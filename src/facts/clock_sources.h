/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_CLOCK_SOURCES_H
#define RP_FACTS_CLOCK_SOURCES_H
/* What records tell about clocks: the collectives of traces, the agreements and rings of a job. */
#include "facts/clocks.h"
#include "facts/meetings.h"
#include "trace/job.h"

/* Recorded times may contradict each other by so much: devices report theirs on the clock of the
   host by a conversion that is a few microseconds off. */
#define RP_CLOCK_TOLERANCE_NS 10000

/* Times of the ranks become those of the first rank's trace. clock_of: as in rp_clock_input. */
enum rp_code rp_clocks_of_meetings(const struct rp_collectives *const *ranks, size_t n,
                                   const struct rp_meetings *meetings, const uint32_t *clock_of,
                                   struct rp_arena *arena, struct rp_clocks *out,
                                   struct rp_err *err);

/* The ranks of a host share its clock. Meetings are the ends of the agreements (Sync) and messages
   the sends and receives of the rings. `facts` is what it was made of, for names. */
enum rp_code rp_clocks_of_job(const struct rp_job *job, struct rp_arena *arena,
                              struct rp_clocks *out, struct rp_err *err);

#endif
