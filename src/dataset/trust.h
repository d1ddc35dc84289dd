/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an answer rests on. While sources are found, traces are read and ranks are numbered,
 * everything is noted that the reader of the answer must know: what was not read, is truncated, is
 * there twice, was lost or is missing. rp_ask makes the log, gives it to all that reads with the
 * dataset, and turns it into remarks of the result, so that no question has code for it.
 *
 *     rp_sources_open  holes  ----------------\
 *     load.c           unread, loaded ----------> log -> rp_trust_finish -> result->trust
 *     ranks.c          verdicts, missing … ---/
 *
 * docs/definitions.md ("Trust") has the kinds and what makes an answer incomplete.
 */
#include "dataset/claims.h"
#include "dataset/load.h"
#include "result/result.h"

#include <pthread.h>

enum rp_unread_why {
    RP_UNREAD_EMPTY,    /* no byte */
    RP_UNREAD_UNKNOWN,  /* of no known format */
    RP_UNREAD_OTHER,    /* may be anything, such as a JSON file that is no trace */
    RP_UNREAD_DAMAGED,  /* of a known format */
    RP_UNREAD_UNOPENED, /* permission, an archive that is damaged */
    RP_UNREAD_HOLE      /* a link to nothing, a folder that may not be read */
};

struct rp_unread {
    size_t source;
    enum rp_unread_why why;
    const char *path, *reason; /* in the arena of the log */
};

/* A trace that was read. */
struct rp_trust_trace {
    size_t source;
    uint32_t part;             /* of a merged trace */
    const char *path;          /* this and the texts: in the arena of the log */
    int32_t number;            /* of the rank, or RP_NO_RANK */
    bool unselected;           /* by --rank */
    bool capture;              /* no rank */
    bool cut_archive;          /* the archive ends within the file or right after it */
    enum rp_verdict verdict;   /* whether it is a rank of the run */
    const char *instead;       /* with RP_VERDICT_COPY and _CLASH */
    int64_t overwritten;       /* events of a ring */
    const char *cut, *lost;    /* what the reader said about it, or NULL */
    int64_t hidden, hidden_ns; /* graphs whose kernels were not recorded, and their time */
    const char *joined;        /* of two recorders: how their clocks were aligned, or NULL */
    bool unsure;               /* then: nothing tells how well */
    const char *set_back;      /* the clock was, and times were moved: what was said, or NULL */
    const char *died;   /* its program did not end by itself: the last thing it did; or NULL */
    int64_t stopped_ns; /* then: its last moment, in time of the day; 0: not known */
    int64_t nevents;
    int32_t world_size; /* as in the file; 0: not given */
    struct rp_health health;
    struct rp_digest *digest; /* where nobody else numbers the ranks; else NULL */
};

/* A remark of the result, with what the screen says of it. */
struct rp_trust_note {
    struct rp_remark remark;
    const char *brief; /* in brackets after the name of the file, or NULL */
    size_t place;
};

/* The ranks of a run, to say which are missing in the end. where: "in the first run", or "";
   numbers: those that are there; world: how many the job has; list: the value of --rank, or NULL.
   The texts must live as long as the log. */
struct rp_trust_run {
    const char *where, *list;
    bool waits;              /* the answer depends on what they do */
    int32_t world, *numbers; /* in the arena of the log */
    size_t n;
};

struct rp_trust_log {
    pthread_mutex_t lock;
    struct rp_arena arena;
    RP_VEC(struct rp_unread) unread;
    RP_VEC(struct rp_trust_trace) traces;
    RP_VEC(struct rp_trust_note) notes;
    RP_VEC(struct rp_trust_run) runs;
    bool ranked;              /* a question about ranks numbers them */
    bool is_job;              /* files are parts of ranks, and each must be read */
    _Atomic bool steps_named; /* a trace has the steps that --step-name asks for */
    bool misjudged; /* a file that was not read by its name may have been wanted (selection.h) */
    const struct rp_dataset *dataset; /* of the question, at the end */
    /* Where the inputs are digests: of what these were made from. */
    const char *given; /* the path that all were given by, or NULL */
    size_t nfiles;     /* 0: count those of the dataset */
};

void rp_trust_log_init(struct rp_trust_log *log);
void rp_trust_log_release(struct rp_trust_log *log);

/* A source that is no trace or could not be read. Only names that look like those of traces become
   remarks, so it may be called for every file. Of any thread. */
enum rp_code rp_trust_unread(struct rp_trust_log *log, const struct rp_dataset *dataset,
                             size_t source, enum rp_unread_why why, const char *reason,
                             struct rp_err *err);

/* A trace that was read, each time it is. Of any thread. */
enum rp_code rp_trust_loaded(struct rp_trust_log *log, const struct rp_loaded *loaded,
                             struct rp_err *err);

/* It is a recording of graph captures, no rank. Of any thread. */
void rp_trust_capture(struct rp_trust_log *log, const struct rp_loaded *loaded);

/* The trace of a source, or NULL. */
struct rp_trust_trace *rp_trust_find(struct rp_trust_log *log, size_t source, uint32_t part);

/* Copies the verdicts; sources and parts are those of the claims. */
void rp_trust_judge(struct rp_trust_log *log, const struct rp_claim *claims, const size_t *source,
                    const uint32_t *part, size_t n);

/* About the run as a whole. The text is copied. count: RP_ABSENT_I64 or a number. */
enum rp_code rp_trust_note(struct rp_trust_log *log, const char *kind, bool incomplete,
                           int64_t count, const char *text, struct rp_err *err);

/* Adds a run, whose numbers are copied. */
enum rp_code rp_trust_run(struct rp_trust_log *log, const struct rp_trust_run *run,
                          struct rp_err *err);

/* Why nothing could be read: the first of the inputs that should have been a trace, or NULL. */
const struct rp_unread *rp_trust_failure(const struct rp_trust_log *log);

/* Whether a warning of a trace's reader is the text of a remark. */
bool rp_trust_covers(const struct rp_trace *trace, const char *warning);

/* Makes the remarks of the result. judge: nobody numbered the ranks, and the question is about
   them. */
enum rp_code rp_trust_finish(struct rp_trust_log *log, const struct rp_dataset *dataset, bool judge,
                             struct rp_result *result, struct rp_err *err);
