/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_TIMELINE_H
#define REPRISE_TIMELINE_H
/*
 * The recorded events of a dataset. A timeline is the trace of one rank, in memory and ready to be
 * walked: its events, the tracks (threads, streams, counters) they are on, and its steps.
 *
 *     struct rp_event_view events[256];
 *     size_t first = 0, n;
 *     while ((n = rp_timeline_events(timeline, first, 256, events, sizeof events[0])) > 0)
 *         for (first += n; n > 0; n--)
 *             use(&events[n - 1]);
 *
 * Events are ordered by track, then by start, longer ones first, so that the events of a track are
 * one range and an event follows those that enclose it. Times are integer nanoseconds, as recorded.
 * A timeline does not change: any number of threads may read it. All texts belong to it.
 *
 * The last argument of the functions that fill an array is the size of one element, so that a
 * program works with a library whose structs have more members, and the reverse: members that the
 * library does not know are 0.
 */
#include <reprise/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_timeline;

#define RP_NO_INDEX UINT32_MAX /* no such event, track or process */
#define RP_NO_TIME  INT64_MIN  /* start_ns of an event without a time */

/* What an event is. Later versions may add kinds. */
enum rp_kind {
    RP_KIND_OTHER,          /* a span of an unknown category */
    RP_KIND_CPU_OP,         /* an operator of the framework, on the host */
    RP_KIND_ANNOTATION,     /* a range named by the user or the framework, on the host */
    RP_KIND_GPU_ANNOTATION, /* the same range as seen on a stream */
    RP_KIND_RUNTIME,        /* a call of the device's runtime or driver */
    RP_KIND_KERNEL,
    RP_KIND_MEMCPY,
    RP_KIND_MEMSET,
    RP_KIND_SYNC,     /* a wait recorded by the device's tracer (cuda_sync) */
    RP_KIND_PYTHON,   /* a Python frame */
    RP_KIND_OVERHEAD, /* the profiler itself */
    RP_KIND_COMM_OP,  /* a collective recorded by the framework, not a kernel */
    RP_KIND_TRANSFER, /* a send or receive between processes */
    RP_KIND_INSTANT,
    RP_KIND_COUNTER,
    RP_KIND_METADATA, /* names of processes and threads */
    RP_KIND_WAIT,     /* a call in which a host thread waits: poll, read, a condition */
    RP_KIND_COUNT
};

enum rp_track_kind { RP_TRACK_THREAD, RP_TRACK_STREAM, RP_TRACK_COUNTER, RP_TRACK_ASYNC };

enum rp_arg_type {
    RP_ARG_I64,
    RP_ARG_F64,
    RP_ARG_STR, /* a text */
    RP_ARG_RAW  /* JSON as the file has it: arrays, objects, true, false, null, huge numbers */
};

/*
 * Reads input i of the dataset. *out is NULL, with RP_OK, where the input was found in a folder or
 * an archive and is not a trace. The dataset must outlive the timeline.
 */
RP_API enum rp_code rp_timeline_open(const struct rp_dataset *dataset, size_t i,
                                     struct rp_timeline **out, struct rp_err *err);
RP_API void rp_timeline_free(struct rp_timeline *timeline); /* NULL is fine */

struct rp_timeline_view {
    size_t struct_size;            /* sizeof(struct rp_timeline_view): set before the call */
    const char *format;            /* "chrome-json" */
    const char *framework;         /* "pytorch", or NULL */
    const char *framework_version; /* or NULL */
    int32_t rank;                  /* as recorded, or -1; see rp_ranks_open */
    int32_t world_size;            /* 0: not recorded */
    uint32_t nevents, ntracks, nsteps;
    uint32_t has_epoch;       /* 1: epoch_ns is known */
    int64_t epoch_ns;         /* add to a time of the timeline for ns since 1970 */
    int64_t begin_ns, end_ns; /* of all events that have a time */
};
RP_API void rp_timeline_describe(const struct rp_timeline *timeline, struct rp_timeline_view *view);

struct rp_event_view {
    const char *name;
    const char *category; /* as the file has it, or NULL */
    int64_t start_ns;     /* or RP_NO_TIME */
    int64_t duration_ns;  /* -1: none (an instant, or a span that was not ended) */
    uint32_t index;       /* of this event */
    uint32_t track;       /* index of its track */
    uint32_t parent; /* index of the innermost enclosing event on a host track, or RP_NO_INDEX */
    uint32_t nargs;  /* number of arguments */
    uint32_t kind;   /* enum rp_kind */
    uint32_t phase;  /* 'X', 'i', 'C' ...: Chrome's letter for it */
};

struct rp_track_view {
    const char *name;         /* of the thread or stream, or NULL */
    const char *process_name; /* or NULL */
    int64_t tid, pid;         /* numbers in the file; -1 where it has texts or nothing instead */
    uint32_t index, process;
    uint32_t first, nevents; /* its events */
    uint32_t kind;           /* enum rp_track_kind */
    int32_t device;          /* whose work it shows, or -1 */
};

struct rp_step_view {
    const char *name;
    int64_t number, begin_ns, end_ns; /* the times are those of its mark */
    uint32_t event;                   /* that marks it, or RP_NO_INDEX */
    uint32_t reserved;
    const char *phase;        /* of a server: "prefill", "decode", "mixed"; NULL: not known */
    int64_t requests, tokens; /* of a server; -1: not known */
};

struct rp_arg_view {
    const char *key;
    const char *text; /* RP_ARG_STR, RP_ARG_RAW; else NULL */
    int64_t i64;      /* RP_ARG_I64 */
    double f64;       /* RP_ARG_F64, and RP_ARG_I64 converted */
    uint32_t type;    /* enum rp_arg_type */
    uint32_t reserved;
};

/* Fill out[0] to out[n - 1] with the elements from `first` on; return how many there were. */
RP_API size_t rp_timeline_events(const struct rp_timeline *timeline, size_t first, size_t n,
                                 struct rp_event_view *out, size_t size);
RP_API size_t rp_timeline_tracks(const struct rp_timeline *timeline, size_t first, size_t n,
                                 struct rp_track_view *out, size_t size);
RP_API size_t rp_timeline_steps(const struct rp_timeline *timeline, size_t first, size_t n,
                                struct rp_step_view *out, size_t size);

/* The arguments of an event, in the order of the file; and one by its key (1 where it exists). */
RP_API size_t rp_timeline_args(const struct rp_timeline *timeline, uint32_t event, size_t first,
                               size_t n, struct rp_arg_view *out, size_t size);
RP_API int rp_timeline_arg(const struct rp_timeline *timeline, uint32_t event, const char *key,
                           struct rp_arg_view *out, size_t size);

/* The events that are linked with this one, itself included: a launch and its device work, host
   calls first, each in time order. Fills up to n, returns how many there are. */
RP_API size_t rp_timeline_linked(const struct rp_timeline *timeline, uint32_t event, uint32_t *out,
                                 size_t n);

/*
 * The ranks of a dataset: each trace is read once, on the context's threads, and a summary of it is
 * kept. A rank keeps the number in its file; where two files have the same number or a file has
 * none, free numbers are given, as all questions do. Ranks are ordered by number.
 */
struct rp_rank_list;

struct rp_rank_view {
    const char *name;      /* of its input */
    const char *format;    /* "chrome-json" */
    const char *framework; /* or NULL */
    size_t input;          /* index for rp_timeline_open */
    int32_t number;
    int32_t recorded_number; /* the number in the file, or -1 */
    uint32_t nevents, nsteps;
    int64_t begin_ns, end_ns; /* of all events that have a time */
};

RP_API enum rp_code rp_ranks_open(const struct rp_dataset *dataset, struct rp_rank_list **out,
                                  struct rp_err *err);
RP_API size_t rp_ranks_read(const struct rp_rank_list *ranks, size_t first, size_t n,
                            struct rp_rank_view *out, size_t size);
RP_API size_t rp_ranks_count(const struct rp_rank_list *ranks);
RP_API int32_t
rp_ranks_world_size(const struct rp_rank_list *ranks); /* as recorded, or the count */
RP_API void rp_ranks_free(struct rp_rank_list *ranks); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
