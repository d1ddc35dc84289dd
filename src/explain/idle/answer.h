/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `idle`, for those who ask it. */
#include <reprise/result.h>

struct rp_idle_wait;

struct rp_idle_cause {
    const char *cause, *cls, *evidence; /* evidence: NULL if there is none */
    const char *sampled;                /* where the launching thread was, or NULL */
    int64_t total_ns, count, longest_ns;
    double share; /* of idle */
};
extern const struct rp_type rp_idle_cause_type; /* all members: may be the item of a part */

struct rp_idle_gap {
    int64_t rank, device, begin_ns, dur_ns; /* device: RP_ABSENT_I64: not known */
    int64_t cause_ns;                       /* of dur_ns with that cause, the main one */
    const char *cause, *cls, *before, *after, *host, *thread, *sampled;
    const char *host_label, *after_label; /* text output only */
};

/* A stream of a device. */
struct rp_idle_stream {
    int64_t rank, device, count, busy_ns, alone_ns, idle_ns, longest_ns;
    double share; /* of the device's window */
    const char *stream, *name, *mainly;
    const char *label; /* text output only */
};
extern const struct rp_type rp_idle_stream_type;

/* A device of a rank; a rank is its main device. */
struct rp_idle_rank {
    const char *path;
    int64_t rank, device, window_ns, busy_ns, idle_ns, gap_count;
    int64_t span_ns, span_idle_ns, span_gap_count; /* of the steps, as 'report' counts */
    double idle_share, explained_share; /* of the window; of idle: cause other than unknown */
    double span_share;                  /* of the span */
    size_t ncauses, nspan_causes, ngaps;
    struct rp_idle_cause *causes, *span_causes;
    struct rp_idle_gap *gaps; /* the longest, first the longest */
    bool is_main;
};

struct rp_idle_root {
    const char *summary;
    size_t nranks, ndevices, nrows, nsome, ncauses, ngaps, nstreams, nstream_rows;
    struct rp_idle_rank *ranks, *devices; /* ranks: their main devices */
    struct rp_idle_rank *rows, *some; /* ranks, or devices where a rank has several; on screen */
    struct rp_idle_stream *streams, *stream_rows; /* rows: with --by stream */
    struct rp_idle_cause *causes;                 /* of all ranks and classes, text output only */
    size_t nwaits, nwait_rows;
    struct rp_idle_wait *waits, *wait_rows; /* rows: on the screen */
    size_t ngap_rows, ndevice_gaps;
    struct rp_idle_gap *gaps, *gap_rows,
        *device_gaps; /* on screen: with their devices, or without */
    size_t nnotes;
    const char **notes;
};
