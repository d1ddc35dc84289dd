/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `idle`, for the code that asks for it. */
#include <reprise/result.h>

struct rp_idle_wait;

struct rp_idle_cause {
    const char *cause, *cls, *evidence; /* evidence is NULL if there is none */
    const char *sampled;                /* line in which the launching thread was, or NULL */
    int64_t total_ns, count, longest_ns;
    double share; /* of idle */
};
extern const struct rp_type
    rp_idle_cause_type; /* has all members, for use in the records of a part */

struct rp_idle_gap {
    int64_t rank, device, begin_ns, dur_ns; /* device is RP_ABSENT_I64 if not known */
    int64_t cause_ns; /* the part of dur_ns with that cause, which is the main one */
    const char *cause, *cls, *before, *after, *host, *thread, *sampled;
    const char *host_label, *after_label; /* text output only */
};

/* A stream of a device. */
struct rp_idle_stream {
    int64_t rank, device, count, busy_ns, alone_ns, idle_ns, longest_ns;
    double share; /* share of the device's window */
    const char *stream, *name, *mainly;
    const char *label; /* text output only */
};
extern const struct rp_type rp_idle_stream_type;

/* A device of a rank; the rank itself is represented by its main device. */
struct rp_idle_rank {
    const char *path;
    int64_t rank, device, window_ns, busy_ns, idle_ns, gap_count;
    int64_t span_ns, span_idle_ns, span_gap_count; /* within the steps, as 'report' counts */
    double idle_share,
        explained_share; /* share of the window; share of idle with a cause other than unknown */
    double span_share;   /* of the span */
    size_t ncauses, nspan_causes, ngaps;
    struct rp_idle_cause *causes, *span_causes;
    struct rp_idle_gap *gaps; /* the longest gaps, in that order */
    bool is_main;
};

struct rp_idle_root {
    const char *summary;
    size_t nranks, ndevices, nrows, nsome, ncauses, ngaps, nstreams, nstream_rows;
    struct rp_idle_rank *ranks, *devices; /* ranks: their main devices */
    struct rp_idle_rank *rows,
        *some; /* on the screen: ranks, or if one has several devices, these */
    struct rp_idle_stream *streams, *stream_rows; /* rows: for --by stream */
    struct rp_idle_cause *causes; /* over all ranks and classes, for the text output only */
    size_t nwaits, nwait_rows;
    struct rp_idle_wait *waits, *wait_rows; /* rows: on the screen */
    size_t ngap_rows, ndevice_gaps;
    struct rp_idle_gap *gaps, *gap_rows,
        *device_gaps; /* on the screen: with their devices, or without */
    size_t nnotes;
    const char **notes;
};
