/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds where host threads wait: calls in which a thread blocks (record --with blocking), added up
 * by call and by the range of the program around it. A thread that runs ranges or operators does
 * the program's work, so its waits delay the program. All other threads are workers (pools,
 * loaders, servers), for which waiting is the normal state: a thread with nothing to do.
 */
#include "base/arena.h"
#include "facts/times/name_series.h"
#include "facts/work/work.h"

/* What a call waits for. X(NAME, "word") */
#define RP_WAIT_MAP(X)                                                       \
    X(OTHER, "something else")                                               \
    X(THREAD, "another thread")                                              \
    X(INPUT, "input")   /* data from another process, the network, a file */ \
    X(OUTPUT, "output") /* to one of them */                                 \
    X(CHILD, "a child process")                                              \
    X(RANKS, "other ranks")                                                  \
    X(SLEEP, "time to pass")

enum rp_wait_kind {
#define RP_WAIT_ENUM(name, text) RP_WAIT_##name,
    RP_WAIT_MAP(RP_WAIT_ENUM)
#undef RP_WAIT_ENUM
        RP_WAIT_KINDS
};
extern const char *const rp_wait_kind_names[RP_WAIT_KINDS];
enum rp_wait_kind rp_wait_kind_of(const char *call);

struct rp_host_wait {
    const char *call;
    const char *range; /* the range around it, "step *" for a series; NULL: none */
    bool worker;       /* threads that run no range and no operator */
    int64_t total_ns, count, longest_ns;
};
extern const struct rp_type
    rp_host_wait_type; /* has all members, for use in the records of a part */

struct rp_host_waits {
    RP_VEC(struct rp_host_wait)
    rows;                     /* ordered by time, the longest first, with those of workers last */
    int64_t threads, workers; /* that waited */
    int64_t main_ns, worker_ns;
};
extern const struct rp_type rp_host_waits_type; /* for use as a member of a part (result/part.h) */

/* Adds up the waits of a trace in intervals, which are in the order of time. Waits inside a
   collective belong to that. Texts are in the arena; `out` must be released also after a failure.
   Linear in events. */
enum rp_code rp_host_waits_init(struct rp_host_waits *out, const struct rp_trace *trace,
                                const struct rp_interval *in, size_t n, struct rp_arena *arena,
                                struct rp_err *err);
void rp_host_waits_release(struct rp_host_waits *w);

/* Whether an event is a wait that is not part of a collective or of another wait. */
bool rp_event_is_host_wait(const struct rp_trace *t, rp_event e);

/* Adds up rows with the same call, range and kind of thread. */
enum rp_code rp_host_waits_join(struct rp_host_waits *to, const struct rp_host_waits *from,
                                struct rp_err *err);
void rp_host_waits_sort(struct rp_host_waits *w);

/* Whether only communication and waits of a host were recorded, so that neither operators nor
   ranges show what the program does between them. */
bool rp_trace_has_calls_only(const struct rp_trace *t);

/* Collects the work of a program without operators: the times in which one of its ranges runs on
   some thread that neither waits nor communicates. If only calls were recorded
   (rp_trace_has_calls_only), a thread that is not a worker counts as working from its first call to
   its last. Only ranges that start in the scope (may be NULL); unsorted. */
enum rp_code rp_ranges_unite(const struct rp_trace *trace, const struct rp_scope *scope,
                             rp_interval_vec *out, struct rp_err *err);

/* Whether a thread is a worker, which requires that some other thread runs ranges or operators. */
bool rp_track_is_worker(const struct rp_trace *t, rp_track track);
