/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `info`: what is in a trace, and whether it can be trusted. file.c describes one trace; info.c has
 * the row of the question and puts the files side by side.
 */
#include "base/arena.h"
#include "dataset/load.h"

#include <reprise/result.h>

struct rp_info_step {
    int64_t rank; /* in a merged trace: the rank of the step; else RP_ABSENT_I64 */
    const char *name, *source, *phase; /* phase is NULL if not known */
    int64_t requests, tokens;          /* RP_ABSENT_I64 if not known */
    int64_t ts_ns, dur_ns;             /* duration as in facts/times/step_times.h */
    int64_t mark_ns;
};

struct rp_info_device {
    int64_t id;
    const char *name;
    int64_t memory_bytes, multiprocessors;
};

struct rp_info_track {
    const char *process, *name, *kind;
    int64_t events;
};

struct rp_info_kind {
    const char *kind;
    int64_t count;
};

struct rp_info_file {
    const char *path, *format, *framework, *framework_version;
    int64_t rank, world_size; /* RP_ABSENT_I64 if not known */
    int64_t events, spans, instants, counters, gpu_events, kernels, flows, samples;
    int64_t window_ns, begin_ns; /* begin is since 1970 if the file has it, else as recorded */
    int64_t gpu_busy_ns, step_median_ns, lost_events;
    size_t nkinds, nsteps, ndevices, ntracks, nbusiest, nwarnings, nshown;
    struct rp_info_kind *kinds;
    struct rp_info_step *steps;
    struct rp_info_device *devices;
    struct rp_info_track *tracks, *busiest;
    const char **warnings;
    const char **shown; /* the warnings that no remark of the result repeats (dataset/trust.h) */
    struct rp_health health;
    const char *base_name, *recorder, *rank_text, *step_text, *device_text,
        *trust;          /* text output only */
    const char *secrets; /* NULL: none */
    int64_t step_count, warning_count;
    int64_t captured_launches; /* launches that became nodes of a graph */
    bool is_capture;           /* a recording of captures, not a rank of a run */
    bool is_launcher;          /* processes without a rank, which do no work of the job */
    int64_t merged_ranks;      /* number of ranks in a merged trace; else RP_ABSENT_I64 */
    const char *sample_text;   /* text output only */
    const char *content_text;  /* what captures and merged traces are; text output only */
};

/* Fills the record; its texts are in the arena, format is borrowed. */
enum rp_code rp_info_describe(const struct rp_loaded *loaded, const struct rp_dataset *dataset,
                              struct rp_arena *arena, struct rp_info_file *out, struct rp_err *err);
