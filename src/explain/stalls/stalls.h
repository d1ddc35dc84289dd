/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_STALLS_STALLS_H
#define RP_EXPLAIN_STALLS_STALLS_H
/*
 * Host calls far above their own median: which, when, on which thread, why, and whether the device
 * went idle meanwhile. A rank's part has every call above the floor; which of them are stalls is
 * known when the medians of all ranks are.
 */
#include "facts/host_calls.h"
#include "facts/modes.h"
#include "result/result.h"

/* X(NAME, "name", what it means, what to try), in the order in which they are looked for */
#define RP_STALL_CAUSE_MAP(X)                                                                      \
    X(PROFILER, "profiler", "the profiler wrote its buffers",                                      \
      "record fewer kinds of events or fewer steps; give the profiler larger buffers")             \
    X(QUEUE_FULL, "queue_full", "the launch queue of its stream was full",                         \
      "nothing: the device has enough to do, the host only runs far ahead of it")                  \
    X(COPY_WAIT, "copy_wait", "the call waited for its copy",                                      \
      "pin the host memory and copy with non_blocking=True; keep .item() and .cpu() out of the "   \
      "step")                                                                                      \
    X(DATA_LOADER, "data_loader", "input data was not ready",                                      \
      "more workers, prefetching, pinned memory, cheaper transforms; check the storage")           \
    X(OTHER_RANK, "other_rank", "it waited for other ranks", "see who comes late: 'reprise comm'") \
    X(ALLOCATION, "allocation", "device memory was allocated or freed in it",                      \
      "expandable segments, fewer different shapes, a warm-up; check for memory near its limit")   \
    X(GARBAGE, "garbage_collection", "Python collected garbage",                                   \
      "gc.freeze() after the warm-up, gc.disable() with a collection between steps")               \
    X(LARGER_INPUT, "larger_input", "its inputs are much larger than those of other calls",        \
      "no stall but more work: compare shapes ('reprise top --by shape')")                         \
    X(FIRST_USE, "first_use", "the first call of it, or the first launch of its kernel",           \
      "warm up before recording: libraries are loaded, kernels compiled and tuned when first "     \
      "used; CUDA_MODULE_LOADING=EAGER")                                                           \
    X(LOCK, "lock", "another thread was in a runtime call all the time",                           \
      "the driver lets one thread in at a time: launch from one thread, allocate elsewhere")       \
    X(TOGETHER, "together", "other threads or ranks stalled at the same time",                     \
      "the machine, not this call: too few cores (cgroup limits, affinity, other jobs), the GIL, " \
      "page faults, or an observer that writes during the step")                                   \
    X(UNKNOWN, "unknown", "nothing recorded tells why",                                            \
      "sample the host meanwhile (perf sched, py-spy): page faults, locks, preemption, garbage "   \
      "collection; record with with_stack")

enum rp_stall_cause {
#define RP_STALL_ENUM(name, text, doc, hint) RP_STALL_##name,
    RP_STALL_CAUSE_MAP(RP_STALL_ENUM)
#undef RP_STALL_ENUM
        RP_STALL_CAUSES
};

extern const char *const rp_stall_cause_names[RP_STALL_CAUSES];
extern const char *const rp_stall_cause_docs[RP_STALL_CAUSES];
extern const char *const rp_stall_hints[RP_STALL_CAUSES];

/* A call above the floor; after the join, a stall. */
struct rp_stall {
    int64_t rank, step; /* step: RP_ABSENT_I64 outside of all */
    const char *thread, *name, *kind, *cause, *during, *hint;
    int64_t begin_ns, dur_ns, self_ns, median_ns, device_idle_ns;
    double times; /* self / median */
    uint32_t group;
    uint8_t why; /* enum rp_stall_cause */
};

struct rp_stalls_part {
    struct rp_host_calls calls;
    struct rp_stall *list; /* one each slow call, in its order */
    bool on_device;
    int64_t base_ns, window_ns; /* window: of the host calls */
};

struct rp_stall_mode {
    int64_t at_ns, min_ns, max_ns, count;
};

struct rp_stall_row {
    const char *name, *label, *kind, *cause, *mostly;
    int64_t calls, median_ns; /* of a name; absent otherwise */
    int64_t count, total_ns, max_ns, device_idle_ns;
    double share; /* of the time of all stalls */
    size_t nmodes;
    struct rp_stall_mode *modes; /* of all calls of a name; else of the row's stalls */
};

struct rp_stall_rank {
    const char *path;
    int64_t rank, count, total_ns, max_ns, device_idle_ns;
};

struct rp_stalls_root {
    const char *summary, *modes_text, *by;
    int64_t floor_ns, ratio, stall_count, total_ns, device_idle_ns;
    size_t nrows, nstalls, nranks, nrank_rows, nmodes, nhints, nnotes, nplain;
    struct rp_stall_row *rows, *plain; /* plain: the same, where they are no names */
    size_t nnamed;
    struct rp_stall_row *named;
    struct rp_stall *stalls; /* the longest */
    struct rp_stall_rank *ranks, *rank_rows;
    struct rp_stall_mode *modes; /* of all stalls */
    const char **hints, **notes;
};

extern const struct rp_type rp_stalls_type;

/* Release the part also after a failure. */
enum rp_code rp_stalls_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            int64_t floor_ns, struct rp_arena *arena, struct rp_stalls_part *out,
                            struct rp_err *err);
void rp_stalls_part_release(struct rp_stalls_part *part);

#define RP_STALL_BYS "name|cause|thread|step|rank"

struct rp_stalls_input {
    const struct rp_stalls_part *part;
    const char *path;
    int32_t number;
};

enum rp_code rp_stalls_join(const struct rp_stalls_input *ranks, size_t n,
                            const struct rp_stall_rule *rule, const char *by, int64_t limit,
                            struct rp_arena *arena, struct rp_stalls_root *out, struct rp_err *err);

#endif
