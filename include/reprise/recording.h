/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_RECORDING_H
#define REPRISE_RECORDING_H
/*
 * What a recording holds, from the headers of its packets alone: quick, whatever its size, and
 * while it is still being written. To look into it, open its folder as a dataset.
 */
#include <reprise/error.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_recording {
    uint64_t events, lost;      /* kept, and counted as lost */
    uint64_t bytes;             /* of the packet files */
    uint64_t packets, threads;  /* that recorded something */
    uint64_t processes, traces; /* a trace is the folder of a rank (or of a host without ranks) */
    uint64_t damaged;           /* files that are no packet */
    int64_t cost_ns;            /* estimate of the time that the events took, over all threads */
    int64_t thread_ns;          /* time from the first to the last event, over all threads */
};

/* The folder given to `record -o`. RP_IO where it cannot be read. */
RP_API enum rp_code rp_recording_scan(const char *folder, struct rp_recording *out,
                                      struct rp_err *err);

/* The rank that a launcher gave to this process, or -1; restarts (may be NULL): how often the
   launcher has begun the job again. */
RP_API int32_t rp_recording_rank(int32_t *restarts);

#ifdef __cplusplus
}
#endif
#endif
