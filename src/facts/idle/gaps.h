/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gaps in which a device does nothing, and why (docs/definitions.md, "Idle"). Gaps are those
 * between the intervals of the union of all device work, so their lengths add up to idle. A gap is
 * split where its work was launched: before that, the host was late; after it, the device waited.
 * Each piece has one cause, with its evidence; all pieces of a gap have the same class, one of
 * four.
 */
#include "facts/work/work.h"

/* X(NAME, "name", doc) */
#define RP_GAP_CAUSE_MAP(X)                                                     \
    X(NOT_LAUNCHED, "not_launched", "the host had not launched it yet")         \
    X(HOST_WORK, "host_work", "the host ran something else for long")           \
    X(START_UP, "start_up", "initialisation, first use of code")                \
    X(DATA_LOADER, "data_loader", "the host waited for input data")             \
    X(HOST_STALL, "host_stall", "a host call far above its median")             \
    X(HOST_WAIT, "host_wait", "the host waited in a call that blocks")          \
    X(HOST_UNRECORDED, "host_unrecorded", "the host ran what was not recorded") \
    X(ALLOCATION, "allocation", "the host allocated device memory")             \
    X(SYNC_DRAIN, "sync_drain", "the host had waited for the device")           \
    X(OTHER_RANK, "other_rank", "the host waited for other ranks")              \
    X(PROFILER, "profiler", "the profiler itself was running")                  \
    X(LAUNCH_LATENCY, "launch_latency", "launched, on its way to the device")   \
    X(EVENT_WAIT, "event_wait", "waited for an event or a stream")              \
    X(COPY, "copy", "waited before or after a copy")                            \
    X(QUEUE_FULL, "queue_full", "1,024 launches were waiting")                  \
    X(DEVICE_WAIT, "device_wait", "launched, waited for what is not recorded")  \
    X(UNKNOWN, "unknown", "nothing recorded explains it")

enum rp_gap_cause {
#define RP_GAP_ENUM(name, text, doc) RP_GAP_##name,
    RP_GAP_CAUSE_MAP(RP_GAP_ENUM)
#undef RP_GAP_ENUM
        RP_GAP_CAUSES
};

enum rp_gap_class {
    RP_GAP_CLASS_NOT_LAUNCHED,
    RP_GAP_CLASS_SHORT,
    RP_GAP_CLASS_DEPENDENCY,
    RP_GAP_CLASS_UNLINKED,
    RP_GAP_CLASSES
};

extern const char *const rp_gap_cause_names[RP_GAP_CAUSES];
extern const char *const rp_gap_cause_docs[RP_GAP_CAUSES];
extern const char *const rp_gap_class_names[RP_GAP_CLASSES];

/* A piece of a gap. */
struct rp_gap {
    int64_t begin_ns, end_ns;
    uint32_t before, after; /* items: the one that ended last, and the one that ends the gap;
                               RP_NONE at the edge of the requested time */
    rp_event host;          /* what the host ran meanwhile, or the launch; or RP_NONE */
    uint8_t cause, cls;     /* enum rp_gap_cause, enum rp_gap_class */
    uint8_t continues;      /* 1: the previous piece belongs to the same gap */
    uint8_t reserved;
};

typedef RP_VEC(struct rp_gap) rp_gap_vec;

/* The thread that launches the work after a gap. After the last work, the thread of the last
   launch, because what it does then is why nothing follows. RP_NONE: not known. */
rp_track rp_gap_thread(const struct rp_work *work, const struct rp_gap *gap);

/* What the host of a trace did, which is examined once for all devices and steps. */
struct rp_gap_finder;

enum rp_code rp_gap_finder_new(const struct rp_trace *trace, struct rp_gap_finder **out,
                               struct rp_err *err);
void rp_gap_finder_free(struct rp_gap_finder *finder); /* NULL is fine */

/* The gaps are in the order of time. `work` must be of the finder's trace. The vector must be
   released also after a failure. */
enum rp_code rp_gaps_find(struct rp_gap_finder *finder, const struct rp_work *work, rp_gap_vec *out,
                          struct rp_err *err);

/* The gaps in [begin, end), also before the first item and after the last. */
enum rp_code rp_gaps_find_in(struct rp_gap_finder *finder, const struct rp_work *work,
                             int64_t begin_ns, int64_t end_ns, rp_gap_vec *out, struct rp_err *err);

/* Adds the idle time of the steps (facts/times/step_times.h) by cause to `ns`. The arena is for
   scratch. */
enum rp_code rp_gaps_sum(const struct rp_trace *trace, struct rp_arena *arena,
                         int64_t ns[RP_GAP_CAUSES], struct rp_err *err);

/* Whether steps with such idle time are mostly a start-up, so that predictions about them say
   nothing about later steps. */
bool rp_gaps_start_up(const int64_t ns[RP_GAP_CAUSES]);
