/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `comm`: collectives matched across ranks, how long each rank waits in them and how long they
 * transfer, which rank arrives last, by how much and why. part.c makes the part of a rank: its
 * collectives, with what the rank did since the previous one (leads.h). comm.c has the row of the
 * question and compares the last rank to arrive with the others (late.h).
 */
#include "base/decides.h"
#include "dataset/ranks.h"
#include "explain/comm/answer.h"
#include "explain/comm/check.h"
#include "explain/comm/late.h"
#include "explain/comm/topology.h"
#include "facts/work/recorder.h"

#define RP_COMM_UNEVEN 0.1
RP_DECISION(
    RP_COMM_UNEVEN, "above the others",
    "stages, and what ranks send, are never quite even; what moving a layer changes is more",
    "explain/uneven_stages_have_an_edge, explain/an_uneven_exchange_has_an_edge");

/* A tensor from one process to another. */
struct rp_comm_transfer {
    const char *edge, *from, *to;
    int64_t rank, size_bytes, begin_ns, wait_ns, transfer_ns;
    double bytes_per_s;
};

/* The collectives of one device of a rank, or of its host; each lane takes part separately. */
struct rp_comm_lane {
    struct rp_collectives comm;
    size_t nleads;
    struct rp_comm_lead *leads; /* one a collective */
    int64_t device;             /* number of the device; RP_ABSENT_I64: not known, or the host */
    int64_t comm_ns, overlap_ns;
    int64_t compute_ns, begin_ns, end_ns; /* time of compute, and its first and last moment */
};

struct rp_comm_part {
    size_t nlanes, ntransfers, ncalls;
    struct rp_comm_lane *lanes; /* at least one */
    struct rp_comm_call *calls; /* calls to compare (check.h) */
    int64_t hangs;              /* collectives may not have ended, so calls are compared */
    int64_t cut;                /* its program did not end by itself */
    int64_t timeline_ranks;     /* number of ranks in one file of a pipeline's timeline, or 0 */
    struct rp_recorder recorder;
    const char *gpu; /* name of the first device, or NULL */
    const char *now; /* where the program was last, or NULL */
    struct rp_comm_transfer *transfers;
};

/* part.c: makes the part of a rank. Texts are in the arena; the caller owns the vectors of the
   part, also after a failure. */
enum rp_code rp_comm_fill_part(const struct rp_trace *trace, const struct rp_scope *scope,
                               struct rp_arena *arena, struct rp_comm_part *out,
                               struct rp_err *err);

/* text.c: fills sizes, sentences and notes from what the join has found; at most `limit` rows. */
enum rp_code rp_comm_add_sizes(struct rp_comm_root *out, struct rp_arena *arena,
                               struct rp_err *err);
enum rp_code rp_comm_add_texts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err);

/* pipeline.c: if the ranks are stages of pipelines, adds how long these wait for each other. lanes
   are by rank of the rendezvous; numbers are the ranks' numbers in the job. */
enum rp_code rp_comm_add_stages(const struct rp_rendezvous_list *list,
                                const struct rp_collectives *const *lists,
                                const struct rp_comm_lane *const *lanes, const int64_t *numbers,
                                size_t n, size_t limit, struct rp_arena *arena,
                                struct rp_comm_root *out, struct rp_err *err);
extern const struct rp_type rp_comm_stage_type, rp_comm_micro_batch_type;

/* hosts.c: fills hosts, links, groups and dimensions from ranks and collectives; at most `limit`
   rows. */
enum rp_code rp_comm_add_hosts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err);
extern const struct rp_type rp_comm_host_type, rp_comm_link_type, rp_comm_group_type,
    rp_comm_dimension_type;

/* transfers.c: finds tensors that were sent between processes. */
enum rp_code rp_comm_find_transfers(const struct rp_trace *trace, const struct rp_scope *scope,
                                    struct rp_arena *arena, struct rp_comm_part *out,
                                    struct rp_err *err);
enum rp_code rp_comm_join_transfers(const struct rp_ranks *ranks, size_t limit,
                                    struct rp_arena *arena, struct rp_comm_root *out,
                                    struct rp_err *err);
