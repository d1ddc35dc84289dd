/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What readers of recordings by vendors' profilers share (Nsight Systems, rocprofv3, RPD). Such a
 * file has host calls of threads and activities of devices' streams, in any order, of one or more
 * processes. They become events as PyTorch's profiler writes them: the same categories and
 * arguments, a process for the host and one for each device.
 *
 * A process with device work is a rank. The ranks of one file are all in one trace, which says so
 * as a merged trace does (trace/merged.h): ids of calls are unique only in their process, so they
 * are moved apart by rank.
 */
#include "formats/trace_proto.h"

enum rp_activity_kind {
    RP_ACTIVITY_KERNEL,
    RP_ACTIVITY_MEMCPY,
    RP_ACTIVITY_MEMSET,
    RP_ACTIVITY_SYNC,
    RP_ACTIVITY_GRAPH, /* a graph that ran as a whole, without records of its kernels */
    RP_ACTIVITY_RUNTIME,
    RP_ACTIVITY_DRIVER,
    RP_ACTIVITY_OPERATOR,
    RP_ACTIVITY_ANNOTATION,
    RP_ACTIVITY_COLLECTIVE,
    RP_ACTIVITY_WAIT,
    RP_ACTIVITY_CALL, /* another call of a thread, of the operating system or of a library */
    RP_ACTIVITY_OVERHEAD,
    RP_ACTIVITY_MARK, /* has no duration */
    RP_ACTIVITY_SAMPLE,
    RP_ACTIVITY_COUNTER, /* its value is the argument "value" */
    RP_ACTIVITY_KINDS
};

#define RP_ACTIVITY_ARGS   24
#define RP_ACTIVITY_HOST   (-1) /* the device number of events that belong to a thread */
#define RP_ACTIVITY_NO_END INT64_MIN

struct rp_activity_event {
    enum rp_activity_kind kind;
    uint64_t process;         /* any number that identifies it in the file */
    int64_t device;           /* or RP_ACTIVITY_HOST */
    int64_t track;            /* thread or stream */
    int64_t begin_ns, end_ns; /* end is RP_ACTIVITY_NO_END if it was not recorded */
    rp_str name;
    int64_t correlation; /* 0: none */
    int64_t waits_for;   /* for a wait: the call that recorded the event waited for, or 0 */
    uint32_t nargs;
    struct rp_arg args[RP_ACTIVITY_ARGS]; /* arguments other than device, stream and correlation */
};

struct rp_activity_process {
    uint64_t key;
    int64_t pid;
    rp_str name;      /* or 0 */
    int64_t rank;     /* the rank, if the file states it, or RP_NO_RANK */
    int64_t world;    /* number of ranks of its job, or 0 */
    int64_t device;   /* the lowest device that it used, or INT64_MAX */
    uint32_t index;   /* its index among the ranks, or RP_NONE if it is not a rank */
    uint32_t nplaces; /* of a rank */
};

struct rp_activity_place { /* a process of the trace */
    uint32_t process;      /* index in processes of the process it belongs to */
    int64_t device;
    uint32_t id;    /* of the builder */
    rp_track track; /* any of it, or RP_NONE */
};

struct rp_activity {
    struct rp_proto_trace t;
    RP_VEC(struct rp_activity_process) processes;
    RP_VEC(struct rp_activity_place) places;
    RP_VEC(struct rp_activity_pid) pids; /* of the places */
    RP_VEC(uint32_t) ranks;              /* their processes */
    struct rp_map by_key, place_of, number_of, track_of;
    struct rp_map named; /* tracks that already have a name */
    struct rp_map used;  /* ids of processes that a rank has used */
    uint32_t nnumbers, nranks;
    uint32_t others;  /* number of processes that are not ranks, if there are several ranks */
    uint64_t skipped; /* rows without usable times */
    char first_skipped[160];
    uint16_t origin[RP_ACTIVITY_KINDS][2]; /* the second one is for spans without an end */
    struct {
        uint64_t process;
        int64_t device, track;
        rp_track found;
        uint32_t index;
        bool set;
    } cache[64];
    struct {
        int64_t xyz[3];
        rp_str text;
        bool set;
    } dims[256];
    int64_t first_ns, last_ns; /* of all events */
};

enum rp_code rp_activity_init(struct rp_activity *a, struct rp_input *in,
                              const struct rp_read_options *options, const char *format,
                              struct rp_err *err);
void rp_activity_release(struct rp_activity *a);

/* Describes a process; it may be called again. Texts and numbers that are 0 or RP_NO_RANK change
   nothing. */
enum rp_code rp_activity_process(struct rp_activity *a, uint64_t key, int64_t pid, rp_str name,
                                 struct rp_err *err);
/* Sets its position in the job. If every rank has a different one, the ranks are numbered by it. */
enum rp_code rp_activity_set_rank(struct rp_activity *a, uint64_t key, int64_t rank, int64_t world,
                                  struct rp_err *err);
/* Marks a process with device work as a rank. All of these calls come before the first event; then
   the ranks are ordered by their devices. */
enum rp_code rp_activity_add_rank(struct rp_activity *a, uint64_t key, int64_t device,
                                  struct rp_err *err);
enum rp_code rp_activity_order_ranks(struct rp_activity *a, struct rp_err *err);

enum rp_code rp_activity_add(struct rp_activity *a, struct rp_activity_event *e,
                             struct rp_err *err);
/* Whether the track has events. */
bool rp_activity_has_track(const struct rp_activity *a, uint64_t process, int64_t device,
                           int64_t track);
/* Names a thread or stream; only the first name counts. */
enum rp_code rp_activity_name_track(struct rp_activity *a, uint64_t process, int64_t device,
                                    int64_t track, rp_str name, struct rp_err *err);

/* Appends an argument to an event; keys must be string literals. */
enum rp_code rp_activity_int(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                             int64_t value, struct rp_err *err);
enum rp_code rp_activity_real(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                              double value, struct rp_err *err);
enum rp_code rp_activity_text(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                              rp_str value, struct rp_err *err);
/* "[x, y, z]", as PyTorch's profiler writes grids and blocks. */
enum rp_code rp_activity_dims(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                              const int64_t xyz[3], struct rp_err *err);

/* Interns a text of the file. */
enum rp_code rp_activity_intern(struct rp_activity *a, const char *text, size_t n, rp_str *out,
                                struct rp_err *err);

/* Counts a row that cannot be used, such as "row 12 of 'X'". Only the first is reported, with the
   number of them. */
void rp_activity_skip(struct rp_activity *a, const char *where, uint64_t row);

/* "cudaLaunchKernel" of "cudaLaunchKernel_v7000". */
size_t rp_activity_plain_call(const char *name, size_t n);
/* The kind of a call of the operating system: a wait, or another call. */
enum rp_activity_kind rp_activity_call_kind(const char *name, size_t n);

/* "AllReduce" of "ncclAllReduce"; NULL for ncclGroupStart and other calls that send nothing. */
const char *rp_activity_collective(const char *name);

/* Adds names, ranks and warnings, then runs the passes. Reading began at begin_ns (rp_clock_ns). */
enum rp_code rp_activity_finish(struct rp_activity *a, struct rp_import *to, int64_t begin_ns,
                                struct rp_err *err);
