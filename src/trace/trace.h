/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The trace model holds one rank of a run, exactly as recorded. A builder makes it
 * (trace/build/build.h); when it is finished, it is frozen and shared by all threads; nothing is
 * built lazily behind a const pointer. Every array may point into a mapped native file
 * (trace/rpt/rpt.h).
 *
 * Events are columns, 46 bytes per event, in canonical order: track, start, longer first, file
 * order. So a track is a contiguous range of events. Arguments are kept by shape: events with the
 * same sequence of keys and types share one small table of narrow columns (args.h).
 *
 * Times are integer nanoseconds as in the file (ts + base_ns = absolute). Ids are 32-bit and dense;
 * RP_NONE is "none". String 0 is "". The kinds of events (enum rp_kind) and tracks are in
 * <reprise/timeline.h>; communication is not a kind but a class of the name (names.h).
 */
#include "base/arena.h"
#include "base/vec.h"
#include "trace/args.h"
#include "trace/health.h"
#include "trace/samples.h"

#include <reprise/timeline.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t rp_event, rp_str, rp_track, rp_link;

/* dur_ns of a span without an end, or of an event without a duration. */
#define RP_OPEN_NS INT64_C(-1)
#define RP_NO_TS   INT64_MIN /* ts_ns of an event without a time (metadata) */
/* Times and ends of events are at most this far from 0, so that the difference of two fits; the
   passes of finish see to it (finish/counts.c), and native files are checked. */
#define RP_TIME_MAX_NS   ((INT64_C(1) << 62) - 1)
#define RP_OUR_FRAMEWORK "reprise" /* of a trace that `reprise record` wrote */
#define RP_NO_RANK       (-1)
/* Instants of recordings that were paused. */
#define RP_PAUSED_NAME  "recording paused"
#define RP_RESUMED_NAME "recording resumed"
/* native_id of a process or track whose id in the file is the empty text (then text is 0). */
#define RP_ID_EMPTY INT64_MIN

/* Flags of an event. */
enum {
    RP_EVENT_CROSSES = 1,  /* starts inside its predecessor on the track, but ends after it */
    RP_EVENT_UNENDED = 2,  /* a begin without an end: dur_ns is RP_OPEN_NS */
    RP_EVENT_NO_BEGIN = 4, /* an end without a begin */
    RP_EVENT_ROUNDED = 8,  /* its time had more digits than nanoseconds */
    RP_EVENT_NO_DUR = 16,  /* a complete event without a duration */
    RP_EVENT_PAIR = 32,    /* made of a begin and an end event */
    RP_EVENT_ASYNC = 64,   /* belongs to an asynchronous chain; its link is the id */
    RP_EVENT_ID_TEXT = 128 /* the id of its link is a string id, not a number */
};

struct rp_events {
    uint32_t n;
    int64_t *ts_ns;
    int64_t *dur_ns;
    rp_str *name;
    rp_track *track;
    rp_event *parent;  /* innermost enclosing span on the track; RP_NONE on streams */
    rp_link *link;     /* RP_NONE: none */
    uint32_t *arg_row; /* row inside its shape */
    uint32_t *seq;     /* position in the file (with gaps where pairs were joined) */
    uint16_t *shape;   /* 0: no arguments */
    uint16_t *origin;  /* (phase, category) as the file wrote them */
    uint8_t *kind;     /* enum rp_kind */
    uint8_t *flags;
};

/* Flags of an origin: the sets used by the definitions of health, and the scope of an instant (at
 * most one of these flags; none if not given). */
enum {
    RP_ORIGIN_GPU = 1,     /* a complete event of kernel, memcpy or memset */
    RP_ORIGIN_RUNTIME = 2, /* a complete event of the CUDA or HIP runtime or driver */
    RP_ORIGIN_NESTS = 4,   /* a complete event of a category whose spans should nest on a thread */
    RP_ORIGIN_MARKS_STEP = 8, /* a complete event of a category in which steps are marked */
    RP_ORIGIN_SCOPE_GLOBAL = 16,
    RP_ORIGIN_SCOPE_PROCESS = 32,
    RP_ORIGIN_SCOPE_THREAD = 64
};

struct rp_origin {
    rp_str category; /* 0 if the file has none; `has_category` distinguishes "" from none */
    char phase;      /* 'X', 'B', 'i', 'C', 'M', ... as in Chrome's format */
    uint8_t kind, flags;
    uint8_t has_category;
};

struct rp_strings {
    uint32_t n;
    const uint64_t *offset; /* n + 1; each string ends with a NUL */
    const char *bytes;
    const uint8_t
        *name_class; /* n entries of enum rp_name_class (names.h), decided once for each string */
};

struct rp_process {
    int64_t native_id; /* the pid, unless text is not 0: then the id is that text */
    rp_str text;
    rp_str name, labels; /* from metadata, or 0 */
    int32_t device;      /* number of its device, or -1 */
    int64_t sort_index;
};

/* Most tracks have no name; then `text` is shown, or else `native_id`. */
struct rp_track_info {
    int64_t native_id; /* tid or stream */
    int64_t sort_index;
    uint32_t process;
    rp_str text;         /* the tid if it is a text, else 0 */
    rp_str name;         /* from metadata, or 0 */
    rp_event first, end; /* its events */
    uint8_t kind;        /* enum rp_track_kind */
    uint8_t has_id;      /* 0: the file has no tid */
    uint16_t reserved;
};

/* CSR over dense link ids: host calls first, then device work, each in time order. */
struct rp_links {
    uint32_t n;
    const int64_t *native_id; /* the correlation id, or the async id */
    const uint32_t *offset;   /* n + 1 */
    const rp_event *member;
    const uint8_t *source; /* enum rp_link_source */
};
enum rp_link_source { RP_LINK_CORRELATION, RP_LINK_FLOW, RP_LINK_EXTERNAL, RP_LINK_ASYNC_ID };

/* Ends of flow arrows as in the file. 32 to 80 % of Kineto's have no partner; they are kept. */
struct rp_flows {
    uint32_t n;
    const int64_t *ts_ns;
    const int64_t *id; /* a number, or if id_is_text, a string id */
    const rp_str *name;
    const rp_track *track;
    const uint16_t *origin; /* phase 's', 't' or 'f' and category */
    const uint8_t *flags;   /* RP_FLOW_* */
    const rp_event *event;  /* the span it is bound to, or RP_NONE */
    const uint16_t
        *shape; /* 0 for no arguments; this and the row need the arguments (RP_NEED_ARGS) */
    const uint32_t *arg_row;
};
enum { RP_FLOW_ID_TEXT = 1, RP_FLOW_BIND_ENCLOSING = 2, RP_FLOW_NO_ID = 4 };

enum rp_step_source {
    RP_STEP_PROFILER,
    RP_STEP_RUN_ID,
    RP_STEP_ANNOTATION,
    RP_STEP_REPETITION,
    RP_STEP_SESSION,
    RP_STEP_MARKS,     /* marks of a server (trace/step_patterns.h) */
    RP_STEP_OPTIMIZER, /* from here on: things that a loop does once in each round
                          (finish/steps_loop.c) */
    RP_STEP_EXECUTABLE,
    RP_STEP_LOADER,
    RP_STEP_FORWARD,
    RP_STEP_BACKWARD,
    RP_STEP_COMPILED,
    RP_STEP_REPLAY,
    RP_STEP_SOURCES
};
/* Whether such a step is exactly what its mark says, from begin to end. */
static inline bool rp_step_source_is_mark(uint32_t source)
{
    return source != RP_STEP_REPETITION && source < RP_STEP_OPTIMIZER;
}
/* What a step of a server did, if its mark tells. */
enum rp_step_phase {
    RP_PHASE_NONE,
    RP_PHASE_PREFILL,
    RP_PHASE_DECODE,
    RP_PHASE_MIXED,
    RP_STEP_PHASES
};
/* Flags of a step. */
enum {
    RP_STEP_ON_DEVICE = 1,   /* its mark has the times of device work, not of the host */
    RP_STEP_BREAK_AFTER = 2, /* something else comes before the next step, so it ends by itself */
    RP_STEP_WARM_UP = 4,   /* one of the first, and far longer than the others; it is not judged */
    RP_STEP_NO_DETAIL = 8, /* only its mark was recorded (`record --detail`); it is not judged */
    RP_STEP_CUT_OFF = 16,  /* recording stopped during it; it is neither judged nor measured */
    RP_STEP_NOT_JUDGED = RP_STEP_WARM_UP | RP_STEP_NO_DETAIL | RP_STEP_CUT_OFF
};
#define RP_NO_COUNT INT64_C(-1)
/* How long a step lasts is in facts/times/step_times.h: work may end after its mark. */
struct rp_step {
    rp_str name;
    uint32_t source;                  /* enum rp_step_source */
    int64_t number, begin_ns, end_ns; /* the times are those of its mark */
    int64_t
        work_end_ns; /* the last end of the device work from its begin to the next; or RP_NO_TS */
    int64_t requests, tokens; /* of a server: numbers in the mark, or RP_NO_COUNT */
    rp_event mark;            /* the event that marks it, or RP_NONE */
    uint8_t phase;            /* enum rp_step_phase */
    uint8_t flags;
    uint16_t reserved;
};

struct rp_device {
    int64_t id;
    int64_t memory_bytes, multiprocessors; /* 0: not known */
    rp_str name;
    uint32_t reserved;
};

/* Metadata of the file, key by key; raw JSON text if the format is JSON. */
struct rp_meta {
    rp_str key, value;
    uint32_t after_events; /* 1: it comes after the events in the file */
};

/* Computed once when a trace is finished and saved in the native file. Device work: kernels, copies
 * and memsets. A window without events is 0 to 0. */
struct rp_totals {
    int64_t count[RP_KIND_COUNT], dur_ns[RP_KIND_COUNT];
    int64_t comm_count, comm_ns;        /* kernels whose name is of class communication */
    int64_t gpu_begin_ns, gpu_end_ns;   /* first start and last end of device work */
    int64_t gpu_busy_ns;                /* time in which at least one of them runs (the union) */
    int64_t work_begin_ns, work_end_ns; /* of host operators, runtime calls and device work */
    int64_t span_begin_ns, span_end_ns; /* of everything that has a time, without metadata */
};

struct rp_trace {
    struct rp_arena arena; /* small things */
    int64_t base_ns;       /* ts + base_ns is the time since 1970, if has_base */
    uint32_t has_base;
    int32_t rank, world_size; /* RP_NO_RANK / 0: not known */
    rp_str format;            /* "chrome-json" ... the reader's name */
    rp_str framework;         /* "pytorch", "jax", "tensorflow", "horovod" ..., or 0 */
    rp_str framework_version; /* or 0 */

    struct rp_events ev;
    struct rp_strings str;
    struct rp_args args;
    struct rp_links links;
    struct rp_flows flows;
    struct rp_call_samples samples;
    uint32_t norigins, nprocesses, ntracks, nsteps, ndevices, nmeta, nwarnings;
    struct rp_origin *origins;
    struct rp_process *processes;
    struct rp_track_info *tracks;
    struct rp_step *steps;
    struct rp_device *devices;
    struct rp_meta *meta;
    rp_str *warnings;
    struct rp_health health;
    struct rp_totals totals;
    /* By event: for a kernel of a graph, the span around its launch in the capture of the graph,
       copied into this trace (graft.h), or RP_NONE. NULL if no capture is joined. */
    const rp_event *captured;

    struct rp_trace_store *store; /* owns the columns: vectors or a mapping */
};

void rp_trace_free(struct rp_trace *trace); /* NULL is fine */

static inline const char *rp_trace_str(const struct rp_trace *t, rp_str s)
{
    return t->str.bytes + t->str.offset[s];
}

/* Whether `reprise record` recorded it. */
static inline bool rp_trace_is_ours(const struct rp_trace *t)
{
    return !strcmp(rp_trace_str(t, t->framework), RP_OUR_FRAMEWORK);
}

static inline size_t rp_trace_str_len(const struct rp_trace *t, rp_str s)
{
    return (size_t)(t->str.offset[s + 1] - t->str.offset[s] - 1);
}

/* The end of an event, or its start if it has no duration. Saturates at INT64_MAX. */
static inline int64_t rp_event_end_ns(const struct rp_trace *t, rp_event e)
{
    int64_t end;

    if (t->ev.dur_ns[e] <= 0)
        return t->ev.ts_ns[e];
    return __builtin_add_overflow(t->ev.ts_ns[e], t->ev.dur_ns[e], &end) ? INT64_MAX : end;
}

static inline bool rp_kind_is_device_work(uint8_t kind)
{
    return kind == RP_KIND_KERNEL || kind == RP_KIND_MEMCPY || kind == RP_KIND_MEMSET;
}

/*
 * The sections of a native file are verified (checksum, every id and offset in range) when they are
 * first required, so call rp_trace_require before reading what is listed here. Everything else
 * (strings and tables) is verified when a file is opened. Does nothing for a built trace or the
 * second time. Thread-safe.
 */
enum {
    RP_NEED_EVENTS = 1,   /* ev without arg_row, which needs the arguments */
    RP_NEED_ARGS = 2,     /* args, ev.arg_row and those of flows; implies events */
    RP_NEED_LINKS = 4,    /* links */
    RP_NEED_FLOWS = 8,    /* flows without their arguments */
    RP_NEED_SAMPLES = 16, /* samples, with their frames and stacks; not their counts and unit */
    RP_NEED_ALL = 31
};
enum rp_code rp_trace_require(const struct rp_trace *trace, unsigned needs, struct rp_err *err);

/* Checks every invariant of the frozen model; RP_BUG (or RP_FORMAT for a mapped file) names the
   first that does not hold. Linear. */
enum rp_code rp_trace_validate(const struct rp_trace *trace, struct rp_err *err);

/* Checks everything that can be checked: the invariants, and in a native file every byte. */
enum rp_code rp_trace_verify(const struct rp_trace *trace, struct rp_err *err);
