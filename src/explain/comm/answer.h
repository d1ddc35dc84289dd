/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `comm`, for the code that asks for it. */
#include "explain/comm/topology.h"

struct rp_comm_check;
struct rp_comm_transfer;

/* A participant of a collective: its place among the ranks, and when it was inside, on its clock.
 */
struct rp_comm_arrival {
    size_t rank, lane; /* lane: index among the devices of all ranks */
    int64_t begin_ns, end_ns;
};

struct rp_comm_collective {
    const char *name, *kind, *group, *dtype, *algorithm;
    const char *dimension; /* "tp" …, or NULL */
    int64_t seq, stream, index, rank_count, seen_count, last_device, begin_ns, skew_ns, last_rank,
        margin_ns, transfer_ns;
    int64_t min_dur_ns, max_dur_ns, end_spread_ns, size_bytes, overlap_ns;
    double algorithm_bytes_per_s, bus_bytes_per_s, imbalance_ratio;
    const char *cause, *evidence;
    int64_t cause_ns, cause_rank;
    int64_t wait_ns, dur_ns; /* added up over the ranks */
    const char *place;       /* "node", "between" (nodes) or NULL */
    enum rp_place at_place;  /* not shown: the same */
    double link_can;         /* not shown: the capacity of the busiest link; 0: not known */
    bool mutual;             /* not shown: no rank leaves before all have come */
    int64_t delay_ns; /* not shown: the part of the margin that its last rank did not already cost
                         then */
    int64_t at_ns;    /* since the first collective; only in the text output */
    size_t nranks;
    int64_t *ranks; /* numbers of the ranks that were given */
    const struct rp_comm_arrival
        *arrivals;                  /* not shown: seen_count of them; NULL if the rank is alone */
    uint32_t last;                  /* of them */
    const char *label, *cause_text; /* text output only */
};

struct rp_comm_rank { /* rp_comm_rank: a rank, or one of its devices if several have collectives */
    const char *path, *host; /* host: its name, or NULL */
    int64_t rank, device, collective_count, wait_ns, transfer_ns, last_count, margin_ns, comm_ns,
        overlap_ns;
    double overlap_share;
    const char *cause, *evidence; /* of most of its margin */
    int64_t cause_ns, cause_rank;
    int64_t
        caused_ns; /* not shown: what it delayed others by, also through ranks that it delayed */
    const char *cause_text; /* text output only */
};

/* The ranks of a host. */
struct rp_comm_host {
    const char *host;
    size_t nranks;
    int64_t *ranks;
    int64_t rank_count, last_count, margin_ns, wait_ns, transfer_ns;
};

/* The collectives of the same participants, between two hosts, or of a dimension of the job. */
struct rp_comm_path {
    const char *label;             /* only in the text output: the hosts, or the ranks */
    const char *dimension, *group; /* "tp" …; name of the process group; or NULL */
    const char *place;             /* "node", "between" (nodes) or NULL */
    size_t nhosts, nranks;
    const char **hosts;
    const int64_t *ranks; /* those that were given */
    int64_t group_count, rank_count, count, size_bytes, wait_ns, transfer_ns;
    int64_t compared_ns,
        expected_ns; /* not shown: totals of the transfers that can be compared with others */
    double bytes_per_s, slower_ratio;
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
    const char *pipeline_text;         /* NULL if there is no pipeline */
    const char *check_text;            /* NULL: not compared */
    const char *matched_by;
    const char
        *sizes_option; /* not shown: the option with which the recorder records sizes, or NULL */
    const char *slow_link[RP_PLACES]; /* not shown: an alarm about a place, or NULL */
    int64_t world_size, given_count;  /* ranks of the job: at least those that were given */
    bool several, dropped;    /* ranks have several devices; matches by order were meaningless */
    int64_t incomplete_count; /* number of collectives with members that were not given */
    int64_t collective_count, matched_count, start_up_count, unmatched_count, margin_ns;
    bool clocks_differ, contradict;
    /* Clocks: by how much they were moved, with what uncertainty; the number of collectives whose
       last rank is in doubt because of that. */
    int64_t apart_ns, uncertainty_ns, doubtful_count,
        set_count;          /* set_count: number of ranks whose clock was set */
    int64_t timeline_ranks; /* number of ranks in a timeline that counts as one rank, or 0 */
    size_t nranks, nrank_rows, nalone_rows, nsizes, nsize_rows, ncollectives, nworst, nlongest;
    size_t nstages, nstage_rows, nmicro_batches;
    struct rp_comm_stage *stages, *stage_rows; /* stage_rows: those that are shown */
    struct rp_comm_micro_batch *micro_batches;
    size_t nnotes, ntransfers, nslowest, ndevice_rows, nworst_devices, nchecks, ncheck_rows;
    struct rp_comm_check *checks, *check_rows; /* what differs between ranks */
    struct rp_comm_transfer *transfers,
        *slowest; /* ordered by begin; only in the text output, by length */
    /* The order on the screen is: the rank that delays the others most first, or ranks without a
       match. */
    struct rp_comm_rank *ranks, *rank_rows, *alone_rows, *device_rows;
    struct rp_comm_size *sizes, *size_rows;
    /* Ordered by time; only in the text output by margin, or if nothing was matched, by length. */
    struct rp_comm_collective *collectives, *worst, *longest, *worst_devices;
    size_t nhosts, nlinks, ngroups, ndimensions;
    struct rp_comm_host *hosts, *host_rows; /* none if some are not known; the latest first */
    struct rp_comm_path *links, *link_rows; /* paths between hosts, the slowest first */
    struct rp_comm_path *groups, *group_rows, *dimensions, *dimension_rows;
    size_t nhost_rows, nlink_rows, ngroup_rows, ndimension_rows;
    const char **notes;
};
