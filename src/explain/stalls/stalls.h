/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `stalls` shows host calls far above their own median: which, when, on which thread, why, and
 * whether the device went idle meanwhile. causes.c lists the calls of a rank above the threshold
 * with the cause of each; stalls.c has the row of the question, and decides by the medians of all
 * ranks which calls are stalls; together.c finds stalls of several threads or ranks at the same
 * time.
 */
#include "facts/host/calls.h"

#include <reprise/result.h>

/* X(NAME, "name", what it means, what to try), in the order in which they are tried */
#define RP_STALL_CAUSE_MAP(X)                                                                      \
    X(PROFILER, "profiler", "the profiler wrote its buffers",                                      \
      "record fewer kinds of events or fewer steps; give the profiler larger buffers")             \
    X(QUEUE_FULL, "queue_full", "the launch queue of its stream was full",                         \
      "nothing: the device has enough to do, and the host runs far ahead of it")                   \
    X(RESULT_WAIT, "result_wait", "its copy waited for the work before it: the device was busy",   \
      "nothing for the call, the time is the device's; a result that is read every N steps, or a " \
      "step later, lets the host launch meanwhile")                                                \
    X(COPY_WAIT, "copy_wait", "the call waited for its copy",                                      \
      "pin the host memory and copy with non_blocking=True; keep .item() and .cpu() out of the "   \
      "step")                                                                                      \
    X(DATA_LOADER, "data_loader", "input data was not ready",                                      \
      "more workers, prefetching, pinned memory, cheaper transforms; check the storage")           \
    X(OTHER_RANK, "other_rank", "it waited for other ranks",                                       \
      "see which rank arrives late: 'reprise comm'")                                               \
    X(ALLOCATION, "allocation", "it allocated or freed device memory",                             \
      "expandable segments, fewer different shapes, a warm-up; check for memory near its limit")   \
    X(GARBAGE, "garbage_collection", "Python collected garbage",                                   \
      "gc.freeze() after the warm-up, gc.disable() with a collection between steps")               \
    X(LARGER_INPUT, "larger_input", "its inputs are much larger than those of other calls",        \
      "this is more work, not a stall: compare shapes ('reprise top --by shape')")                 \
    X(NO_PROCESSOR, "no_processor", "its thread was ready and had no processor",                   \
      "fewer threads than processors (OMP_NUM_THREADS, torch.set_num_threads(N), num_workers=N), " \
      "a larger limit of the cgroup, processors of its own for each rank (taskset -c)")            \
    X(FIRST_USE, "first_use", "the first call of its name, or the first launch of its kernel",     \
      "warm up before recording: libraries are loaded, kernels compiled and tuned at their first " \
      "use; CUDA_MODULE_LOADING=EAGER")                                                            \
    X(LOCK, "lock", "another thread was inside a runtime call at the same time",                   \
      "the driver serializes calls: launch from one thread, allocate elsewhere")                   \
    X(TOGETHER, "together", "other threads or ranks stalled at the same time",                     \
      "look at the machine, not at this call: too few cores (cgroup limits, affinity, other "      \
      "jobs), the GIL, page faults, or a monitoring tool that writes during the step")             \
    X(UNKNOWN, "unknown", "nothing in the trace explains it",                                      \
      "'reprise record --with +sample' names the line in which the thread was; look for page "     \
      "faults, locks, preemption (perf sched) and garbage collection")

enum rp_stall_cause {
#define RP_STALL_ENUM(name, text, doc, hint) RP_STALL_##name,
    RP_STALL_CAUSE_MAP(RP_STALL_ENUM)
#undef RP_STALL_ENUM
        RP_STALL_CAUSES
};

extern const char *const rp_stall_cause_names[RP_STALL_CAUSES];

/* A call above the threshold; after the join, a stall. */
struct rp_stall {
    int64_t step; /* RP_ABSENT_I64 if outside of all steps */
    const char *thread, *name, *kind, *during;
    const char *sampled; /* where its thread was, by samples, or NULL */
    int64_t begin_ns, dur_ns, self_ns, device_idle_ns;
    int64_t ready_ns; /* of self_ns its thread had no processor, at most; absent: not recorded */
    uint32_t group;   /* its name: index in the calls of its rank, after the join among all names */
    uint8_t why;      /* enum rp_stall_cause */
    /* by the join: */
    int64_t rank, median_ns;
    double times; /* self / median */
    const char *cause, *hint;
};

/* The part of a rank. */
struct rp_stalls_part {
    struct rp_host_calls calls;
    size_t nlist;
    struct rp_stall *list; /* one for each slow call, in their order */
    bool on_device;
    int64_t base_ns;
    const char *judged;   /* what is judged (rp_judged_words) */
    const char *outside;  /* the part of the recording that does not count, or NULL */
    const char *uncached; /* what to try if nothing caches device memory, or NULL */
};

struct rp_stall_mode {
    int64_t at_ns, min_ns, max_ns, count;
};

struct rp_stall_row {
    const char *name, *label, *kind, *cause, *mostly;
    int64_t calls, median_ns; /* for rows by name; absent otherwise */
    int64_t count, total_ns, max_ns, device_idle_ns;
    double share; /* share of the time of all stalls */
    size_t nmodes;
    struct rp_stall_mode *modes; /* for rows by name: of all its calls */
};

struct rp_stall_rank {
    const char *path;
    int64_t rank, count, total_ns, max_ns, device_idle_ns;
};

struct rp_stalls_root {
    const char *summary, *modes_text, *by;
    int64_t floor_ns, ratio, stall_count, total_ns, device_idle_ns;
    size_t nrows, nnamed, nplain, nstalls, nranks, nrank_rows, nmodes, nhints, nnotes;
    struct rp_stall_row *rows, *named, *plain; /* on the screen, named or plain is the same list */
    struct rp_stall *stalls;                   /* the longest */
    struct rp_stall_rank *ranks, *rank_rows;
    struct rp_stall_mode *modes; /* of all stalls */
    const char **hints, **notes;
};

/* Lists the calls of a rank with more own time than floor_ns, and why each took so long. Texts are
   in the arena; the caller owns the vectors of `out`, also after a failure. */
enum rp_code rp_stalls_list_calls(const struct rp_trace *trace, const struct rp_scope *scope,
                                  int64_t floor_ns, struct rp_arena *arena,
                                  struct rp_stalls_part *out, struct rp_err *err);

/* Gives a stall without a cause the cause `together` if in its middle another thread of its rank,
   or half of the other ranks, is stalled, too. place[i] is the rank of stall i; offset_ns[rank]
   moves its times to a common clock. O(n log n). */
enum rp_code rp_stalls_find_together(struct rp_stall *stalls, const uint32_t *place, size_t n,
                                     const int64_t *offset_ns, size_t nranks,
                                     struct rp_arena *arena, struct rp_err *err);
