/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A run consists of the ranks of one job. A digest of each rank (kilobytes) stays in memory, but
 * its trace only while it is analysed, so a run may have thousands of ranks.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "trace/trace.h"

struct rp_digest_step {
    const char *name;
    int64_t number, begin_ns, end_ns, work_end_ns, requests, tokens; /* as struct rp_step */
    uint32_t source;                                                 /* enum rp_step_source */
    uint8_t phase;                                                   /* enum rp_step_phase */
    uint8_t flags;                                                   /* RP_STEP_… */
};

struct rp_digest {
    struct rp_arena arena; /* owns the texts and steps */
    const char *name;      /* name of the file, for messages */
    const char *format, *framework;
    int32_t rank, world_size; /* as in the file; RP_NO_RANK and 0 if not given */
    int64_t base_ns;
    uint32_t has_base;
    uint32_t nevents;
    bool is_launcher; /* rp_trace_is_launcher */
    struct rp_totals totals;
    struct rp_health health;
    size_t nsteps;
    struct rp_digest_step *steps;
};

/* Reads tables and strings only, never the events. */
enum rp_code rp_digest_new(const struct rp_trace *trace, const char *name, struct rp_digest **out,
                           struct rp_err *err);
void rp_digest_free(struct rp_digest *digest); /* may be NULL */

/* The number after "rank" in the last part of a path, as in "run/trace_rank-3.json.gz"; or
   RP_NO_RANK. */
int32_t rp_rank_in_name(const char *path);

/* Whether a trace is what `record` saw of a launcher (torchrun, mpirun): processes without a rank
   that run no step, operator, collective or device work. */
bool rp_trace_is_launcher(const struct rp_trace *trace);

struct rp_rank {
    int32_t number; /* unique after rp_run_settle */
    uint32_t file;  /* as given to rp_run_add */
    bool named;     /* the number is from the name of its file */
    struct rp_digest *digest;
};

struct rp_run {
    struct rp_arena arena;
    RP_VEC(struct rp_rank) ranks; /* sorted by number after rp_run_settle */
    int32_t world_size; /* the largest given in a file, and at least the number of ranks */
    size_t nothers; /* number of ranks that exist but were not added, because they were not read */
};

enum rp_code rp_run_new(struct rp_run **out, struct rp_err *err);
void rp_run_free(struct rp_run *run); /* may be NULL; frees the digests */

/* Adds a rank. On success the run owns the digest, and *digest is NULL. */
enum rp_code rp_run_add(struct rp_run *run, struct rp_digest **digest, size_t file,
                        struct rp_err *err);

/*
 * Numbers and sorts the ranks once all are added. A rank keeps the number in its file. One whose
 * file states none gets the one in the name of its file ("rank3.json"), if no other rank has that.
 * All others get the smallest free numbers, in the order of adding; of two files with the same
 * number, the later one. Who shows the numbers must say so (dataset/related.h). If there are ranks
 * with a number, a launcher is not a rank and is dropped.
 */
enum rp_code rp_run_settle(struct rp_run *run, struct rp_err *err);
