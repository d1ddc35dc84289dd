/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_RECORDING_H
#define REPRISE_RECORDING_H
/*
 * A summary of a recording from the headers of its packets: takes milliseconds, whatever its size,
 * also while it is being written. To read the events, open its folder as a dataset.
 */
#include <reprise/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_recording {
    size_t struct_size;         /* sizeof(struct rp_recording): set before the call */
    uint64_t events, lost;      /* number of events recorded, and number of those lost */
    uint64_t bytes;             /* size of the packet files */
    uint64_t packets, threads;  /* threads with at least one event */
    uint64_t processes, traces; /* a trace is the folder of a rank (or of a host without ranks) */
    uint64_t damaged;           /* files that are not packet files */
    int64_t cost_ns;            /* estimated time spent recording, summed over all threads */
    int64_t thread_ns;          /* from the first to the last event, summed over all threads */
    uint64_t overwritten;       /* events that newer ones replaced (record --when-full ring) */
    int64_t setup_ns;           /* of cost_ns, measured: opening threads and files */
    int64_t cpu_ns;             /* CPU time of the program; 0: unknown */
    uint64_t commands, marks;   /* of `record start|stop` and `mark` that processes carried out */
    char lost_because[256];     /* why events are lost, "" where none are or it is not known */
    /* time of a step with and without recording, summed over the processes that measured both */
    int64_t recorded_step_ns, unrecorded_step_ns;
    uint64_t loaded; /* processes that loaded the recorder, whether or not they recorded anything */
    int64_t unrecorded_least_ns, unrecorded_most_ns; /* the interval of unrecorded_step_ns, 95 % */
};

/* The folder given to `record -o`. RP_IO where it cannot be read. */
RP_API enum rp_code rp_recording_scan(const char *folder, struct rp_recording *out,
                                      struct rp_err *err);

/* Makes the folder its owner's alone (0700), or also that of a group (its name or number; NULL:
   none). RP_IO where it belongs to another user and is not open to a group of this process. */
RP_API enum rp_code rp_recording_own(const char *folder, const char *group, struct rp_err *err);

/* Prepares the folder for processes of this host: allocates the file in which they count events
   that they cannot record. */
RP_API enum rp_code rp_recording_prepare(const char *folder, struct rp_err *err);

/* How many commands (`record start`, `stop`) and marks (`record mark`) the processes of a running
   recording have carried out so far. */
RP_API void rp_recording_answers(const char *folder, uint64_t *commands, uint64_t *marks);

/* Adds the CPU time of a recorded program, for `cpu_ns`. */
RP_API void rp_recording_spent(const char *folder, int64_t cpu_ns);

/* Gives processes of this host that learned their rank while they ran a folder of their rank each.
   Waits a few seconds for those that still run, and leaves them where they are if they go on. */
RP_API enum rp_code rp_recording_divide(const char *folder, struct rp_err *err);

/* The rank of this process in the environment that its launcher set, or -1. *restarts (restarts may
   be NULL): how often the launcher has restarted the job. */
RP_API int32_t rp_recording_rank(int32_t *restarts);

/* Prints the number of this process, and returns when a debugger or a profiler traces it, when
   Enter is pressed at a terminal, or at SIGUSR1, for profilers that attach unseen. */
RP_API enum rp_code rp_wait_attach(struct rp_err *err);

#ifdef __cplusplus
}
#endif
#endif
