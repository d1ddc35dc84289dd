/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_MERGE_MERGE_H
#define RP_EXPLAIN_MERGE_MERGE_H
/*
 * The clocks of the ranks of a run: by how much each must be corrected to be that of the first, how
 * sure that is, and who contradicts whom. What the merged trace is made with is in the same record.
 */
#include "job/clocks.h"
#include "result/result.h"

struct rp_merge_part {
    struct rp_collectives comm;
    uint32_t processes;
    /* Tensors between its processes. */
    size_t nmessages;
    struct rp_clock_message *messages; /* from, to: processes */
    const char **names;                /* of the processes */
    rp_half_message_vec halves;        /* of messages to and from other traces */
    const char *host;                  /* as the trace has it (trace_host.h), or NULL */
};

struct rp_merge_rank {
    int64_t rank;
    const char *path, *host;
    int64_t offset_ns, uncertainty_ns, low_ns, high_ns; /* absent: not known */
    double drift_ppb;
    int64_t drift_at_ns, meeting_count, message_count;
    const char *drift_text; /* for the screen */
    struct rp_clock clock;  /* not shown: what the times are changed by */
};

struct rp_merge_conflict {
    int64_t rank_a, rank_b, by_ns;
    const char *what, *against;
};

struct rp_merge_root {
    const char *run_text, *output_text; /* for the screen */
    const char *matched_by, *output, *format;
    int64_t meeting_count, message_count, event_count;
    bool consistent;
    size_t nranks, nconflicts, nnotes;
    struct rp_merge_rank *ranks;
    struct rp_merge_conflict *conflicts;
    const char **notes;
    /* Not shown. */
    bool by_process; /* the rows are processes of one trace; their numbers are in `source` */
    size_t *source;  /* by rank: its input */
    int64_t pid_step;
};

extern const struct rp_type rp_merge_type;

/* Release the part also after a failure. */
enum rp_code rp_merge_rank(const struct rp_trace *trace, const char *path,
                           const struct rp_scope *scope, struct rp_arena *arena,
                           struct rp_merge_part *out, struct rp_err *err);
void rp_merge_part_release(struct rp_merge_part *part);

struct rp_merge_input {
    const struct rp_merge_part *part;
    const char *path, *host; /* host: NULL: a clock of its own */
    int32_t number;
    size_t source;
};

/* guessed: the hosts are what traces say; where clocks that share one contradict each other, every
   rank has its own. */
enum rp_code rp_merge_join(const struct rp_merge_input *ranks, size_t n, bool guessed,
                           struct rp_arena *arena, struct rp_merge_root *out, struct rp_err *err);
/* The same of a job's own records, its servers behind its ranks; the caller adds the sources. */
enum rp_code rp_merge_job(const struct rp_job *job, struct rp_arena *arena,
                          struct rp_merge_root *out, struct rp_err *err);

#endif
