/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The interface for readers. A reader only appends, in the order of the file: begin and end pairs,
 * order, parents, links, classes of names, steps and health are passes of finish
 * (trace/finish/finish.h). One thread at a time; several builders may run side by side.
 */
#include "base/limits.h"
#include "trace/trace.h"

struct rp_builder;

enum rp_code rp_builder_new(const struct rp_limits *limits, struct rp_builder **out,
                            struct rp_err *err);
void rp_builder_free(struct rp_builder *b); /* may be NULL, and follow a failed finish */

enum rp_code rp_builder_intern(struct rp_builder *b, const char *s, size_t len, rp_str *out,
                               struct rp_err *err);
/* Borrowed until the next intern. */
const char *rp_builder_borrow_str(const struct rp_builder *b, rp_str s, size_t *len);

/*
 * Dense ids, the same for the same arguments. The id of a process or thread is a number (text 0) or
 * a text (the number is then ignored); for the empty text pass the number RP_ID_EMPTY and text 0.
 * has_id false: the file has none.
 *
 * Processes and threads get their names from events, as in Chrome's format: add one on the track,
 * without a time, of phase 'M' and kind RP_KIND_METADATA, named "process_name" or "thread_name",
 * with the name as its argument "name" (formats/byteps/byteps.c, name_process).
 */
enum rp_code rp_builder_process(struct rp_builder *b, int64_t pid, rp_str text, uint32_t *out,
                                struct rp_err *err);
enum rp_code rp_builder_track(struct rp_builder *b, uint32_t process, int64_t tid, rp_str text,
                              bool has_id, rp_track *out, struct rp_err *err);
/* Phase and category as in the file, with what the reader knows about them. After tens of thousands
 * of different ones, further ones share an origin without category, with a warning. */
enum rp_code rp_builder_origin(struct rp_builder *b, const struct rp_origin *origin, uint16_t *out,
                               struct rp_err *err);

/* A shape for this sequence of keys and types (RP_SHAPE_SPILLED where there are too many). */
enum rp_code rp_builder_shape(struct rp_builder *b, const struct rp_arg *args, uint32_t nargs,
                              uint16_t *out, struct rp_err *err);

struct rp_raw {            /* one event as read */
    int64_t ts_ns, dur_ns; /* RP_NO_TS, RP_OPEN_NS */
    rp_str name;
    rp_track track;
    uint16_t origin;
    uint16_t shape; /* from rp_builder_shape; 0: no arguments */
    uint8_t flags;
    bool has_link;
    int64_t link; /* correlation id, with RP_EVENT_ASYNC the async id; RP_EVENT_ID_TEXT: a text */
    const struct rp_arg *args; /* in the order of the shape */
    uint32_t nargs;
};

enum rp_code rp_builder_add(struct rp_builder *b, const struct rp_raw *raw, struct rp_err *err);

/* A metadata event with one text, as Chrome's format has them: "process_name" and "thread_name"
 * with the key "name". */
enum rp_code rp_builder_label(struct rp_builder *b, rp_track track, const char *what,
                              const char *key, rp_str text, struct rp_err *err);
/* Ends an event, counted from 0 in the order of adding, that was added with RP_EVENT_UNENDED. */
void rp_builder_end(struct rp_builder *b, uint32_t event, int64_t dur_ns);

struct rp_raw_flow {
    int64_t ts_ns, id; /* id is a string id with RP_FLOW_ID_TEXT */
    rp_str name;
    rp_track track;
    uint16_t origin;
    uint16_t shape; /* as for an event */
    uint8_t flags;
    const struct rp_arg *args;
    uint32_t nargs;
};

enum rp_code rp_builder_add_flow(struct rp_builder *b, const struct rp_raw_flow *flow,
                                 struct rp_err *err);

/*
 * Samples of call stacks (trace/samples.h). A reader makes the stack from the outermost frame to
 * the innermost, then adds the sample:
 *
 *     stack = RP_NONE;
 *     for each frame, outermost first:
 *         rp_builder_frame(b, &frame, &id, err);          the same id for the same frame
 *         rp_builder_stack(b, stack, id, &stack, err);    the same id for the same stack
 *     rp_builder_add_sample(b, &(struct rp_raw_sample){...}, err);
 *
 * They may be added in any order, before, between and after events. Weights are nanoseconds unless
 * samples.unit of rp_builder_borrow_trace says otherwise, which holds for the whole trace.
 */
enum rp_code rp_builder_frame(struct rp_builder *b, const struct rp_call_frame *frame,
                              uint32_t *out, struct rp_err *err);
enum rp_code rp_builder_stack(struct rp_builder *b, uint32_t parent, uint32_t frame, uint32_t *out,
                              struct rp_err *err);

struct rp_raw_sample {
    int64_t ts_ns;  /* on the clock of the events; RP_NO_TS if it is not known */
    int64_t weight; /* how long it stands for, such as the time since the sample before */
    rp_track track; /* its thread */
    uint32_t stack; /* RP_NONE if it could not be read */
    uint8_t flags;  /* RP_SAMPLE_RAN or _WAITED, ...; 0: not known */
};

enum rp_code rp_builder_add_sample(struct rp_builder *b, const struct rp_raw_sample *sample,
                                   struct rp_err *err);

/* Metadata of the file; keys and values are kept in order, for an exact round trip. */
enum rp_code rp_builder_add_meta(struct rp_builder *b, rp_str key, rp_str value, bool after_events,
                                 struct rp_err *err);
/* The name of a device by its size, if no other device has that size, because ROCm leaves some
   names empty; the name says that it was not recorded. NULL if it is not known. The builder uses it
   for devices without a name. */
const char *rp_device_name_by_size(const struct rp_device *device);
enum rp_code rp_builder_add_device(struct rp_builder *b, const struct rp_device *device,
                                   struct rp_err *err);
enum rp_code rp_builder_warn(struct rp_builder *b, struct rp_err *err, const char *fmt, ...)
    RP_PRINTF(3, 4);
/*
 * Fields that the reader sets directly: base_ns, has_base, rank, world_size, format, framework,
 * framework_version, samples.unit and samples.unit_name, and in health non_int_ts and everything
 * from bad_time on. The passes count the rest; for missing_dur, missing_ts, negative_dur and
 * absurd_dur the larger of both counts is kept.
 */
struct rp_trace *rp_builder_borrow_trace(struct rp_builder *b);

uint32_t rp_builder_count(const struct rp_builder *b); /* number of events so far, without flows */

/* Runs the passes (trace/finish/finish.h) and freezes. Frees the builder in every case. */
enum rp_code rp_builder_finish(struct rp_builder *b, struct rp_trace **out, struct rp_err *err);

/* ---- joining traces ---- */

/*
 * Joins several traces into one: a frozen trace is appended to a builder. Its processes and its ids
 * of calls, arrows and async chains are renumbered so that those of different traces never collide,
 * and its times are converted to a common clock.
 */

struct rp_merged_rank; /* trace/merged.h */

/* An arrow to draw between two tracks of the appended trace. */
struct rp_append_arrow {
    rp_track from, to;
    int64_t from_ns, to_ns; /* of the trace */
    const char *name;
};

/* The role of a text in an appended trace. */
enum rp_text_use {
    RP_TEXT_NAME,     /* name of an event or an arrow */
    RP_TEXT_CATEGORY, /* category of events; format, framework and version of a trace */
    RP_TEXT_KEY,      /* key of an argument or of metadata */
    RP_TEXT_VALUE,    /* value of an argument; JSON if its type is RP_ARG_RAW */
    RP_TEXT_JSON,
    RP_TEXT_ID /* text that identifies a process, a thread or a chain */
};

struct rp_append {
    uint32_t index;      /* index of the trace among the joined ones */
    int64_t pid_step;    /* larger than the number of processes of any trace: process k gets index *
                            pid_step + k */
    uint32_t window_of;  /* index of an earlier trace of the same process, whose processes are also
                            its own; 0: none */
    bool same_processes; /* its processes are also those of the other traces, so they keep their
                            ids, and pid_step is not used */
    const char *label;   /* appended to the names of its processes: "rank 3"; NULL: nothing */
    /* Converts a time of a process to the common clock; NULL: unchanged. */
    int64_t (*time)(const void *user, uint32_t process, int64_t ns);
    const void *user;
    const struct rp_append_arrow *arrows;
    size_t narrows;
    bool meta; /* its metadata becomes that of the joined trace */
    /* By event, end of an arrow and sample: 0 leaves it out. NULL: all are appended. */
    const uint8_t *events, *flows, *samples;
    /* By event: by how much it, and arrows bound to it, begin later; and by how much it lasts
       longer. NULL: by nothing. */
    const int64_t *add_ns, *longer_ns;
    /* Interns a replacement of text s in the builder. key: that of the argument that has the value,
       else RP_NONE; both are of the appended trace. NULL: texts stay. */
    enum rp_code (*text)(void *text_user, struct rp_builder *b, enum rp_text_use use, rp_str key,
                         rp_str s, rp_str *out, struct rp_err *err);
    void *text_user;
    /* Undoes a join (trace/merged.h): only the processes of this rank are appended, with their
       former ids and names. pid_step, time, arrows and meta are not used then. NULL: all
       processes. */
    const struct rp_merged_rank *only;
};

/* The trace must be verified completely (RP_NEED_ALL). O(events). */
enum rp_code rp_builder_append(struct rp_builder *b, const struct rp_trace *t,
                               const struct rp_append *how, struct rp_err *err);
