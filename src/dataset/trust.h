/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an answer rests on. While sources are found, traces are read and ranks are numbered,
 * everything is noted that the reader of the answer must know: inputs that were not read, are
 * truncated, are there twice, were lost or are missing. rp_ask makes the log, gives it to all that
 * reads with the dataset, and turns it into remarks of the result, so that no question has code for
 * it.
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
    RP_UNREAD_UNKNOWN,  /* its format is not known */
    RP_UNREAD_OTHER,    /* any file, such as JSON that is not a trace */
    RP_UNREAD_DAMAGED,  /* its format is known */
    RP_UNREAD_UNOPENED, /* no permission, or a damaged archive */
    RP_UNREAD_HOLE      /* a link to nothing, or a folder that may not be read */
};

struct rp_unread {
    size_t source;
    enum rp_unread_why why;
    const char *path, *reason; /* these are in the arena of the log */
};

/* A trace that was read. */
struct rp_trust_trace {
    size_t source;
    uint32_t part;             /* of a merged trace */
    const char *path;          /* the path, like the texts, is in the arena of the log */
    int32_t number;            /* the number of the rank, or RP_NO_RANK */
    bool unselected;           /* by --rank */
    bool capture;              /* no rank */
    bool cut_archive;          /* the archive ends within the file or right after it */
    enum rp_verdict verdict;   /* whether it is a rank of the run */
    const char *instead;       /* if the verdict is RP_VERDICT_COPY or _CLASH */
    int64_t overwritten;       /* events of a ring */
    const char *cut, *lost;    /* what the reader reported about it, or NULL */
    int64_t hidden, hidden_ns; /* graphs whose kernels were not recorded, and their time */
    const char *joined;        /* for two recorders: how their clocks were aligned, or NULL */
    bool unsure;               /* if joined: nothing tells how well */
    const char *set_back; /* the clock was set back and times were moved: the message, or NULL */
    const char
        *died; /* the last thing its program did, if it did not end by itself; otherwise NULL */
    int64_t stopped_ns; /* if died: its last moment, in time of the day; 0 if not known */
    int64_t nevents;
    int32_t world_size; /* the number in the file; 0 if not given */
    struct rp_health health;
    struct rp_digest *digest; /* if no question numbers the ranks; otherwise NULL */
};

/* A remark of the result, with its text on the screen. */
struct rp_trust_note {
    struct rp_remark remark;
    const char *brief; /* in parentheses after the name of the file, or NULL */
    size_t place;
};

/* The ranks of a run, to tell at the end which are missing. where: "in the first run", or "";
   numbers: those that are there; world: how many the job has; list: the value of --rank, or NULL.
   The texts must live as long as the log. */
struct rp_trust_run {
    const char *where, *list;
    bool waits;              /* the answer depends on what these ranks do */
    int32_t world, *numbers; /* these are in the arena of the log */
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
    bool misjudged; /* a file that was skipped by its name may have been wanted (selection.h) */
    const struct rp_dataset *dataset; /* the question's, set at the end */
    /* If the inputs are digests, these are about the files from which they were made. */
    const char *given; /* the path that all were given by, or NULL */
    size_t nfiles;     /* 0 to count those of the dataset */
};

void rp_trust_log_init(struct rp_trust_log *log);
void rp_trust_log_release(struct rp_trust_log *log);

/* Notes a source that is not a trace or could not be read. May be called for every file, because
   only names that look like those of traces become remarks. May be called from any thread. */
enum rp_code rp_trust_unread(struct rp_trust_log *log, const struct rp_dataset *dataset,
                             size_t source, enum rp_unread_why why, const char *reason,
                             struct rp_err *err);

/* Notes a trace each time it is read. May be called from any thread. */
enum rp_code rp_trust_loaded(struct rp_trust_log *log, const struct rp_loaded *loaded,
                             struct rp_err *err);

/* Notes a recording of graph captures, which is not a rank. May be called from any thread. */
void rp_trust_capture(struct rp_trust_log *log, const struct rp_loaded *loaded);

/* Returns the trace of a source, or NULL. */
struct rp_trust_trace *rp_trust_find(struct rp_trust_log *log, size_t source, uint32_t part);

/* Copies the verdicts; sources and parts are those of the claims. */
void rp_trust_judge(struct rp_trust_log *log, const struct rp_claim *claims, const size_t *source,
                    const uint32_t *part, size_t n);

/* Adds a note about the run as a whole. The text is copied. count: RP_ABSENT_I64 or a number. */
enum rp_code rp_trust_note(struct rp_trust_log *log, const char *kind, bool incomplete,
                           int64_t count, const char *text, struct rp_err *err);

/* Adds a run, whose numbers are copied. */
enum rp_code rp_trust_run(struct rp_trust_log *log, const struct rp_trust_run *run,
                          struct rp_err *err);

/* Says why nothing could be read: the first input that should have been a trace, or NULL. */
const struct rp_unread *rp_trust_failure(const struct rp_trust_log *log);

/* Whether a warning of a trace's reader is the text of a remark. */
bool rp_trust_covers(const struct rp_trace *trace, const char *warning);

/* Makes the remarks of the result. judge: no question numbered the ranks, but this question is
   about them. */
enum rp_code rp_trust_finish(struct rp_trust_log *log, const struct rp_dataset *dataset, bool judge,
                             struct rp_result *result, struct rp_err *err);
