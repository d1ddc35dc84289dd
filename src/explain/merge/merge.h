/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The question `merge`: by how much the clock of each rank must be corrected to be that of the
 * first, how certain that is, and which facts contradict each other; then all ranks in one trace.
 *
 *     ask.c      the row: options, the part of a rank, the fields of the answer
 *     clocks.c   from the parts of all ranks, or the records of a job, to their clocks
 *     output.c   the merged trace
 *     recorders.c  two recorders of one rank
 */
#include "dataset/dataset.h"
#include "formats/write/writers.h"
#include "job/job.h"
#include "result/result.h"

struct rp_merge_part {
    struct rp_collectives comm;
    uint32_t processes;
    /* Tensors between its processes. */
    size_t nmessages, nnames;
    struct rp_clock_message *messages; /* from, to: processes */
    const char **names;                /* names of the processes, if there are messages */
    rp_half_message_vec halves;        /* of messages to and from other traces */
    const char *host;                  /* as recorded in the trace (trace_host.h), or NULL */
};

struct rp_merge_rank {
    int64_t rank;
    const char *path, *host;
    int64_t offset_ns, uncertainty_ns, low_ns, high_ns; /* absent: not known */
    double drift_ppb, drift_uncertainty_ppb;            /* NaN: not known */
    int64_t drift_at_ns, meeting_count, message_count, step_count;
    bool used;
    const char *drift_text; /* text output only */
    struct rp_clock clock;  /* not shown: the correction of times */
};

struct rp_merge_conflict {
    int64_t rank_a, rank_b, by_ns;
    const char *what, *against;
};

struct rp_merge_root {
    const char *run_text, *output_text; /* text output only */
    const char *matched_by, *output, *format;
    int64_t meeting_count, message_count, event_count, clock_count, aligned_count;
    bool consistent;
    size_t nranks, nconflicts, nnotes;
    struct rp_merge_rank *ranks;
    struct rp_merge_conflict *conflicts;
    const char **notes;
    /* Not shown. */
    bool by_process;     /* the rows are processes of one trace, whose numbers are in `source` */
    size_t *source;      /* by rank: its input */
    uint32_t *in_source; /* the rank inside the source, if the input is a merged trace */
    int64_t pid_step;
};

struct rp_merge_input {
    const struct rp_merge_part *part;
    const char *path,
        *host;     /* host is NULL if it is not known, or if the rank has a clock of its own */
    uint64_t boot; /* ranks of one boot share a clock; if it is 0, those of one host do */
    int32_t number;
    size_t source;
    uint32_t in_source;
};

/* unrelated: the ranks are not of one run, so nothing connects their clocks. guessed: hosts and
   boots come from the traces; if ranks that share one contradict each other, every rank gets a
   clock of its own. */
enum rp_code rp_merge_ranks(const struct rp_merge_input *ranks, size_t n, bool unrelated,
                            bool guessed, struct rp_arena *arena, struct rp_merge_root *out,
                            struct rp_err *err);
/* The same for the records of a job, with its servers after its ranks. */
enum rp_code rp_merge_job(const struct rp_job *job, struct rp_arena *arena,
                          struct rp_merge_root *out, struct rp_err *err);

/* Writes the traces of all ranks of `root` into one, on the clock of the first. Only one rank at a
   time is in memory besides the merged trace. */
enum rp_code rp_merge_write(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                            const struct rp_writer *writer, const char *output, bool is_job,
                            struct rp_arena *arena, struct rp_merge_root *root, struct rp_err *err);

/* Merges two recordings of one rank by different tools; if output is NULL, only the clocks are
   computed. */
enum rp_code rp_merge_recorders(const struct rp_dataset *dataset, const struct rp_writer *writer,
                                const char *output, struct rp_arena *arena,
                                struct rp_merge_root *root, struct rp_err *err);

/* Moves the trace of a rank to a clock that was never set (steps.c). The trace must be verified
   completely. */
enum rp_code rp_merge_undo_steps(const struct rp_trace *t, const struct rp_clock *clock,
                                 const struct rp_limits *limits, struct rp_trace **out,
                                 struct rp_err *err);
