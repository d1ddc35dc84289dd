/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Digests hold what questions keep of the ranks of a run (slot.h), in a file or on the way between
 * processes.
 *
 *     "RPDIGEST"  version  name of the program that wrote it
 *     head        the runs and their shards, how they were read, what was not
 *     records     each: run, place of the input, which of its ranks; record and answers (slot.h)
 *     SHA-256     of everything before: the name of the content
 *
 * The same inputs, options and build give the same bytes, whatever the number of threads. A digest
 * may hold several shards of a run, and several runs: digests of digests are their union. Numbers
 * are as in memory: a reader of another kind of machine or another build refuses the file.
 */
#include "dataset/slot.h"

#define RP_DIGEST_VERSION 6

/* The inputs of a run. Shards of it have the same id. */
struct rp_digest_run {
    const char *id;               /* a hash of the names and sizes of all inputs */
    const char *given;            /* the first path, as the user wrote it */
    uint64_t ngiven;              /* number of paths */
    uint64_t nsources, nholes;    /* files, and those that could not be opened */
    uint64_t nothers;             /* files that --rank did not select */
    uint64_t ntraces, nsnapshots; /* as in struct rp_rank_reading */
    uint64_t source;              /* its number, from 1, in the digest from which it was copied */
    uint64_t ndigests;            /* the number of digests among the files */
    uint64_t nparts;              /* number of shards; 0 if the run is not divided */
    bool steps_named;             /* a trace has the steps for which --step-name asks */
    size_t nshards;               /* those that are here */
    uint32_t *shards;
};

struct rp_digest_unread {
    uint64_t run, source; /* of the head; like struct rp_unread */
    uint32_t why;
    const char *path, *reason;
};

struct rp_digest_head {
    const char *step_name; /* or NULL */
    const char *tables; /* hash of the user's tables of names (dataset.h), "" if there are none */
    bool salvage;
    size_t nruns, nunread;
    struct rp_digest_run *runs;
    struct rp_digest_unread *unread;
};

/* Of one rank. */
struct rp_digest_record {
    uint64_t run;    /* of the head */
    uint64_t source; /* the index of its input in the run */
    uint32_t in_source;
    bool files;  /* a file as it stands, not a rank (struct rp_rank_row) */
    bool beside; /* as in struct rp_rank_slot */
    const char *bytes;
    size_t n;
};

/* Describes how a dataset is read, as far as answers depend on it, in the arena. sent: the digest
   goes to another process, which may have other files of the same names. */
enum rp_code rp_digest_describe(const struct rp_dataset *dataset, bool sent, struct rp_arena *arena,
                                struct rp_digest_head *head, struct rp_digest_run *run,
                                struct rp_err *err);

/* Sorts the records and writes everything. id receives the hash of the content, RP_SHA256_TEXT
   bytes; if it is NULL, the sum is not needed (rp_digest_open, checked). */
enum rp_code rp_digest_write(const struct rp_digest_head *head, struct rp_digest_record *records,
                             size_t n, struct rp_out *to, char *id, struct rp_err *err);

/* Adds the name of the file to an error of reading it. */
enum rp_code rp_digest_name(const char *name, enum rp_code code, struct rp_err *err);

struct rp_digest_reader {
    struct rp_digest_head head;
    const char *at, *end; /* of the records */
    uint64_t left;
};

/* Checks the bytes and reads the head into the arena. Messages do not name the file. checked: the
   sum need not be verified. */
enum rp_code rp_digest_open(const void *bytes, size_t n, bool checked, struct rp_arena *arena,
                            struct rp_digest_reader *out, struct rp_err *err);

/* Gives the next record, which points into the bytes; *more is false after the last one. */
enum rp_code rp_digest_next(struct rp_digest_reader *reader, struct rp_digest_record *out,
                            bool *more, struct rp_err *err);
