/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_COMM_COMM_H
#define RP_EXPLAIN_COMM_COMM_H
/*
 * Who holds up whom: collectives matched across ranks, what each rank waits in them and transfers,
 * who comes last, by how much and why. The part of a rank says for each collective what the rank
 * did since its previous one; the join compares the last rank with the others.
 */
#include "explain/idle/gaps.h"
#include "facts/rendezvous.h"
#include "result/result.h"

/* What a rank did between its previous collective and one. */
struct rp_comm_lead {
    int64_t since_ns; /* where the previous one ended, or the recording begins */
    int64_t compute_ns, copy_ns, idle_ns;
    int64_t overlap_ns;   /* of the collective itself with compute */
    const char *kernel;   /* the longest compute, or NULL */
    const char *idle;     /* the cause of most of idle, or NULL */
    const char *evidence; /* what the host ran meanwhile, or NULL */
};

/* A tensor from one process to another. */
struct rp_comm_transfer {
    const char *edge, *from, *to;
    int64_t rank, size_bytes, begin_ns, wait_ns, transfer_ns;
    double bytes_per_s;
};

struct rp_comm_part {
    struct rp_collectives comm;
    struct rp_comm_transfer *transfers;
    size_t ntransfers;
    struct rp_comm_lead *leads; /* one a collective */
    int64_t comm_ns, overlap_ns;
    int32_t world_size;
};

struct rp_comm_collective {
    const char *name, *kind, *group, *dtype;
    int64_t seq, stream, index, rank_count, begin_ns, skew_ns, last_rank, margin_ns, transfer_ns;
    int64_t min_dur_ns, max_dur_ns, end_spread_ns, size_bytes, overlap_ns;
    double algorithm_bytes_per_s, bus_bytes_per_s, imbalance_ratio;
    const char *cause, *evidence;
    int64_t cause_ns;
    int64_t wait_ns, dur_ns;        /* added up over the ranks */
    int64_t at_ns;                  /* since the first collective, for the screen */
    const char *label, *cause_text; /* for the screen */
};

struct rp_comm_rank {
    const char *path;
    int64_t rank, collective_count, wait_ns, transfer_ns, last_count, margin_ns, comm_ns,
        overlap_ns;
    double overlap_share;
    const char *cause, *evidence; /* of most of its margin */
    int64_t cause_ns;
    const char *cause_text; /* for the screen */
};

/* All collectives of one kind, size and number of ranks. */
struct rp_comm_size {
    const char *kind;
    int64_t size_bytes, rank_count, count, wait_ns, transfer_ns;
    double algorithm_bytes_per_s, bus_bytes_per_s, overlap_share, imbalance_ratio;
};

struct rp_comm_root {
    const char *run_text, *holdup_text; /* for the screen */
    const char *matched_by;
    int64_t collective_count, matched_count, unmatched_count, margin_ns;
    bool clocks_differ;
    size_t nranks, nrank_rows, nalone_rows, nsizes, nsize_rows, ncollectives, nworst, nlongest;
    size_t nnotes, ntransfers, nslowest;
    struct rp_comm_transfer *transfers, *slowest; /* by begin; for the screen by length */
    /* For the screen: who holds up most comes first; or ranks that met nobody. */
    struct rp_comm_rank *ranks, *rank_rows, *alone_rows;
    struct rp_comm_size *sizes, *size_rows;
    /* By time; for the screen by margin, or by length where nobody met. */
    struct rp_comm_collective *collectives, *worst, *longest;
    const char **notes;
};

extern const struct rp_type rp_comm_type;

/* Texts go into the arena; release the part also after a failure. */
enum rp_code rp_comm_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                          struct rp_arena *arena, struct rp_comm_part *out, struct rp_err *err);
void rp_comm_part_release(struct rp_comm_part *part);

/* What the join gets of each rank. */
struct rp_comm_input {
    const struct rp_comm_part *part;
    const char *path;
    int32_t number;
};

/* At most `limit` rows of `worst`. */
enum rp_code rp_comm_join(const struct rp_comm_input *ranks, size_t n, size_t limit,
                          struct rp_arena *arena, struct rp_comm_root *out, struct rp_err *err);

/* Fills sizes, and the sentences and notes, from what the join has found. */
enum rp_code rp_comm_add_sizes(struct rp_comm_root *out, struct rp_arena *arena,
                               struct rp_err *err);
enum rp_code rp_comm_add_texts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err);

/* transfers.c */
enum rp_code rp_comm_find_transfers(const struct rp_trace *trace, const struct rp_scope *scope,
                                    struct rp_arena *arena, struct rp_comm_part *out,
                                    struct rp_err *err);
enum rp_code rp_comm_join_transfers(const struct rp_comm_input *ranks, size_t n, size_t limit,
                                    struct rp_arena *arena, struct rp_comm_root *out,
                                    struct rp_err *err);

#endif
