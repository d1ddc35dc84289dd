/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_COMM_COMM_H
#define RP_EXPLAIN_COMM_COMM_H
/*
 * `comm`: collectives matched across ranks, how long each rank waits in them and how long they
 * transfer, which rank arrives last, by how much and why. part.c makes the part of a rank: its
 * collectives, and for each what the rank did since its previous one (leads.h). comm.c has the row
 * of the question and compares the last rank to arrive with the others (late.h).
 */
#include "dataset/ranks.h"
#include "explain/comm/check.h"
#include "explain/comm/late.h"
#include "explain/comm/topology.h"
#include "facts/work/recorder.h"

/* A tensor from one process to another. */
struct rp_comm_transfer {
    const char *edge, *from, *to;
    int64_t rank, size_bytes, begin_ns, wait_ns, transfer_ns;
    double bytes_per_s;
};

/* The collectives of one device of a rank, or of its host: each takes part on its own. */
struct rp_comm_lane {
    struct rp_collectives comm;
    size_t nleads;
    struct rp_comm_lead *leads; /* one a collective */
    int64_t device;             /* its number; RP_ABSENT_I64: not known, or the host */
    int64_t comm_ns, overlap_ns;
    int64_t compute_ns, begin_ns, end_ns; /* the compute, and its first and last moment */
};

struct rp_comm_part {
    size_t nlanes, ntransfers, ncalls;
    struct rp_comm_lane *lanes; /* at least one */
    struct rp_comm_call *calls; /* where they are compared (check.h) */
    int64_t hangs;              /* collectives may not have ended: they are compared */
    int64_t timeline_ranks;     /* in one file of a pipeline's timeline, or 0 */
    struct rp_recorder recorder;
    const char *gpu; /* name of the first device, or NULL */
    const char *now; /* where the program was last, or NULL */
    struct rp_comm_transfer *transfers;
};

/* A participant of a collective: its place among the ranks, and when it was inside, on its clock.
 */
struct rp_comm_arrival {
    size_t rank;
    int64_t begin_ns, end_ns;
};

struct rp_comm_collective {
    const char *name, *kind, *group, *dtype, *algorithm;
    int64_t seq, stream, index, rank_count, seen_count, last_device, begin_ns, skew_ns, last_rank,
        margin_ns, transfer_ns;
    int64_t min_dur_ns, max_dur_ns, end_spread_ns, size_bytes, overlap_ns;
    double algorithm_bytes_per_s, bus_bytes_per_s, imbalance_ratio;
    const char *cause, *evidence;
    int64_t cause_ns;
    int64_t wait_ns, dur_ns; /* added up over the ranks */
    const char *place;       /* "node", "between" or NULL */
    enum rp_place at_place;  /* not shown: the same */
    double link_can;         /* not shown: what the busiest link can carry; 0: not known */
    bool mutual;             /* not shown: no rank leaves before all have come */
    int64_t delay_ns; /* not shown: what of the margin its last rank did not cost at that time
                         already */
    int64_t at_ns;    /* since the first collective, text output only */
    const struct rp_comm_arrival *arrivals; /* not shown: seen_count of them; NULL: alone */
    uint32_t last;                          /* of them */
    const char *label, *cause_text;         /* text output only */
};

struct rp_comm_rank {        /* a device of a rank, where it has several with collectives */
    const char *path, *host; /* host: its name, or NULL */
    int64_t rank, device, collective_count, wait_ns, transfer_ns, last_count, margin_ns, comm_ns,
        overlap_ns;
    double overlap_share;
    const char *cause, *evidence; /* of most of its margin */
    int64_t cause_ns;
    const char *cause_text; /* text output only */
};

/* A stage of a pipeline: what it waited for the stages before and after it. */
struct rp_comm_stage {
    int64_t pipeline, stage, rank, step_count, micro_batch_count, compute_ns, forward_wait_ns,
        backward_wait_ns, first_wait_ns, span_ns;
    double wait_share;
};

/* The waiting of a stage for the data of one micro-batch. */
struct rp_comm_micro_batch {
    int64_t pipeline, stage, rank, micro_batch, forward_wait_ns, backward_wait_ns;
};

/* All collectives of one kind, size and number of ranks. */
struct rp_comm_size {
    const char *kind, *algorithm;
    int64_t size_bytes, rank_count, seen_count, count, wait_ns, transfer_ns;
    const char *place;
    double algorithm_bytes_per_s, bus_bytes_per_s, link_share, overlap_share, imbalance_ratio;
};

struct rp_comm_root {
    const char *run_text, *delay_text; /* text output only */
    const char *pipeline_text;         /* NULL: there is no pipeline */
    const char *check_text;            /* NULL: not compared */
    const char *matched_by;
    const char *sizes_option; /* not shown: with it the recorder records sizes; NULL: none does */
    const char *slow_link[RP_PLACES]; /* not shown: an alarm about a place, or NULL */
    int64_t world_size, given_count;  /* ranks of the job, at least those given */
    bool several, dropped;    /* ranks have several devices; matches by order made no sense */
    int64_t incomplete_count; /* collectives whose members were not all given */
    int64_t collective_count, matched_count, start_up_count, unmatched_count, margin_ns;
    bool clocks_differ, contradict;
    /* Of the clocks: by how much they were moved, to what; collectives whose last rank is not
       certain because of it. */
    int64_t apart_ns, uncertainty_ns, doubtful_count, set_count; /* set_count: ranks whose clock was
    set */
    int64_t timeline_ranks; /* of a timeline that counts as one rank, or 0 */
    size_t nranks, nrank_rows, nalone_rows, nsizes, nsize_rows, ncollectives, nworst, nlongest;
    size_t nstages, nstage_rows, nmicro_batches;
    struct rp_comm_stage *stages, *stage_rows; /* stage_rows: those that are shown */
    struct rp_comm_micro_batch *micro_batches;
    size_t nnotes, ntransfers, nslowest, ndevice_rows, nworst_devices, nchecks, ncheck_rows;
    struct rp_comm_check *checks, *check_rows;    /* what differs between ranks */
    struct rp_comm_transfer *transfers, *slowest; /* by begin; text output only by length */
    /* For the screen: the rank that delays the others most comes first; or ranks without a match.
     */
    struct rp_comm_rank *ranks, *rank_rows, *alone_rows, *device_rows;
    struct rp_comm_size *sizes, *size_rows;
    /* By time; text output only by margin, or by length where nothing was matched. */
    struct rp_comm_collective *collectives, *worst, *longest, *worst_devices;
    const char **notes;
};

/* part.c: the part of a rank. Texts are in the arena; the vectors of the part are the caller's,
   also after a failure. */
enum rp_code rp_comm_fill_part(const struct rp_trace *trace, const struct rp_scope *scope,
                               struct rp_arena *arena, struct rp_comm_part *out,
                               struct rp_err *err);

/* text.c: fills sizes, sentences and notes from what the join has found; at most `limit` rows. */
enum rp_code rp_comm_add_sizes(struct rp_comm_root *out, struct rp_arena *arena,
                               struct rp_err *err);
enum rp_code rp_comm_add_texts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err);

/* pipeline.c: where the ranks are stages of pipelines, what these wait for each other. lanes: by
   rank of the rendezvous; numbers: its number in the job. */
enum rp_code rp_comm_add_stages(const struct rp_rendezvous_list *list,
                                const struct rp_collectives *const *lists,
                                const struct rp_comm_lane *const *lanes, const int64_t *numbers,
                                size_t n, size_t limit, struct rp_arena *arena,
                                struct rp_comm_root *out, struct rp_err *err);
extern const struct rp_type rp_comm_stage_type, rp_comm_micro_batch_type;

/* transfers.c: tensors between processes. */
enum rp_code rp_comm_find_transfers(const struct rp_trace *trace, const struct rp_scope *scope,
                                    struct rp_arena *arena, struct rp_comm_part *out,
                                    struct rp_err *err);
enum rp_code rp_comm_join_transfers(const struct rp_ranks *ranks, size_t limit,
                                    struct rp_arena *arena, struct rp_comm_root *out,
                                    struct rp_err *err);

#endif
