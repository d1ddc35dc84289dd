/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A question about ranks while it is answered. The ranks of traces are read here (ranks.c), and
 * those of digests arrive (arrivals.c); making a digest is the first half of answering
 * (digesting.c).
 */
#include "dataset/digest_file.h"

#include <pthread.h>

/* A run whose digests arrived. */
struct rp_known_run {
    const struct rp_digest_run *run; /* as the first digest describes it */
    uint8_t side;                    /* of two runs: which */
    uint64_t base;                   /* its sources begin here, in the order of all sources */
    uint8_t *shards; /* by number of the shard: 1 if it arrived; NULL if the run has no shards */
};

/* A digest that arrived. */
struct rp_arrival {
    const char *name;
    size_t source; /* of the dataset */
    bool checked;  /* it comes from a process of this job */
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;
    struct rp_arena arena;
    struct rp_digest_reader reader;
    size_t *known; /* by run of the digest's head: its number here */
};

/* A rank whose bulk is kept (bulk.h). */
struct rp_bulky {
    struct rp_rank_traits traits;
    size_t source;
    uint32_t in_source;
    struct rp_rank_slot *slot;
};

struct rp_rank_query {
    struct rp_ctx *ctx;
    const struct rp_rank_row *row;
    const struct rp_settings *settings;
    const char *step;
    bool has_window;
    int64_t from_ns, to_ns;              /* of --window */
    bool several;                        /* of inputs that may not be ranks of one run */
    size_t nothers;                      /* ranks that exist but were not read */
    pthread_mutex_t lock;                /* for the lists */
    RP_VEC(struct rp_rank_slot *) slots; /* one per rank */
    RP_VEC(struct rp_bulky) bulky;
    _Atomic uint64_t *bulk_events; /* the events of all that were ever kept */
    _Atomic uint64_t own_events;   /* the same for this process */
    bool bulk_limited;             /* not all need be kept */
    RP_VEC(struct rp_arrival) arrivals;
    RP_VEC(struct rp_known_run) known;
    const uint8_t *run_of; /* by source, its run; NULL if all are one run */
    const struct rp_dataset *dataset;
    struct rp_capture_files captures;
};

/* Must be released also after a failure. */
enum rp_code rp_query_init(struct rp_rank_query *q, struct rp_ctx *ctx,
                           const struct rp_dataset *dataset, struct rp_err *err);
void rp_query_release(struct rp_rank_query *q);

/* Sets what is the same for all questions. */
enum rp_code rp_query_describe(const struct rp_loaded *loaded, bool sketch,
                               struct rp_rank_slot *slot, struct rp_err *err);

/* Makes part->data, as the traits of the part require. reads receives the settings on which it
   depends, or is NULL. */
enum rp_code rp_query_make(struct rp_rank_query *q, const struct rp_loaded *loaded,
                           struct rp_rank_part *part, struct rp_settings_reads *reads,
                           struct rp_err *err);

/* Adds a slot to the list. */
enum rp_code rp_query_add(struct rp_rank_query *q, struct rp_rank_slot **slot, struct rp_err *err);

void rp_query_order(struct rp_rank_query *q); /* sorts the slots by their place in the inputs */

/* Takes the equal part of another rank instead of its own, which is freed. */
enum rp_code rp_query_share(struct rp_rank_query *q, struct rp_rank_slot *slot, struct rp_err *err);

/* Makes the content of a slot of the list. If there are many ranks, parts are compacted and shared,
   and only the bulk of chosen ranks stays (bulk.h). */
enum rp_code rp_query_fill(struct rp_rank_query *q, const struct rp_loaded *loaded, bool sketch,
                           struct rp_rank_slot *slot, struct rp_err *err);

/* Copies what belongs to a part: this frees data that was needed only while it was made, and unused
   room of vectors. */
enum rp_code rp_query_compact(const struct rp_rank_query *q, struct rp_rank_part *part,
                              struct rp_err *err);

/* Adds a digest that is among the inputs; takes `in`, which may be NULL. May be called from any
   thread. */
enum rp_code rp_query_arrive(struct rp_rank_query *q, const struct rp_arrival *arrival,
                             struct rp_err *err);

/* Makes slots of all that arrived. */
enum rp_code rp_query_unpack(struct rp_rank_query *q, struct rp_err *err);
void rp_query_release_arrivals(struct rp_rank_query *q);

/*
 * Reads a shard of the dataset and makes a digest of it. queries have row, settings and nothing
 * else; names are those of the questions. The records of digests among the inputs are copied.
 */
struct rp_digesting {
    struct rp_ctx *ctx;
    const struct rp_dataset *dataset;
    const struct rp_asked *asked;
    size_t nasked;
    const uint8_t *run_of;       /* by source, its run; NULL if all are one run */
    size_t shard, nshards;       /* nshards 0: all */
    bool sent;                   /* it goes to a process that has the same inputs */
    struct rp_team_board *board; /* if sent: the board of all processes */
    bool dealt; /* if sent: the board deals out the sources, and there are no shards */
    /* Out: */
    bool only_files; /* no question is about ranks */
    size_t nranks;
    char id[65];
};
enum rp_code rp_digest_make(struct rp_digesting *d, struct rp_out *to, struct rp_err *err);
