/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds which rank sets the pace. */
#include "explain/comm/late.h"
#include "explain/comm/topology.h"
#include "facts/idle/gaps.h"
#include "facts/times/intervals.h"
#include "places/places.h"

struct rp_ranks;
struct rp_report_part;

/*
 * A collective delays every rank until the last one arrives, so the time of a run is that of a
 * chain: up to each collective the time of the rank that arrived last, then its transfer, and so
 * on. What was lost on that chain would have made the run shorter; what was lost elsewhere would
 * only have made a rank wait longer.
 *
 *     rank 0  ....idle....[==AR==]..........[wait AR==]   chain: rank 0 up to the first collective,
 *     rank 1  ..[wait......AR==]......idle.......[AR==]   from there rank 1 up to the second
 *
 * If collectives synchronize the hosts (gloo) and not the devices, the waits are counted, but each
 * device has its own time, so the rank that lost most represents the run.
 */
struct rp_chain_rank {
    int64_t wait_ns, transfer_ns, last_count; /* as in docs/definitions.md, "Findings" */
    int64_t margin_ns;         /* how much it delayed the others, as a union in time */
    int64_t exposed_wait_ns;   /* waiting while no compute ran */
    int64_t stage_wait_ns;     /* the part of that spent waiting for other stages of its pipeline */
    struct rp_late_sums lates; /* why it arrived last */
};

struct rp_chain {
    size_t ncollectives;           /* number of collectives that were matched between ranks */
    int64_t span_ns;               /* from the first start to the last end of these */
    bool beside;                   /* they run on the hosts, beside the devices */
    size_t lead;                   /* the rank at the end of the chain */
    bool contradict;               /* the ranks' times contradict each other, whatever the clocks */
    const struct rp_clock *clocks; /* by rank: how its times become those of the first rank */
    bool clocks_differ;            /* they were moved, by up to apart_ns */
    size_t ndoubtful;              /* collectives whose last rank is not certain */
    size_t nset;                   /* number of ranks whose clock was set during the recording */
    int64_t apart_ns, uncertainty_ns; /* of the clocks */
    int64_t cause_ns[RP_GAP_CAUSES];  /* idle on the chain */
    int64_t transfer_ns;              /* exposed communication on the chain, without waiting */
    int64_t copies_ns;                /* copies and memsets on the chain, while no kernel runs */
    int64_t margin_ns;                /* by how much collectives on the chain were delayed */
    const struct rp_pipe_stage
        *stages;       /* by rank: its place in a pipeline; NULL if there is none */
    int64_t bubble_ns; /* mean time that a stage waits for other stages */
    /* Transfer while no compute runs, by enum rp_place, as the mean of the ranks; the time beyond
       what slow links need; and the alarms. */
    int64_t exposed_ns[RP_PLACES + 1], slow_ns;
    const char *slow_link[RP_PLACES];
    struct rp_rendezvous_list matched;         /* which belong together; of all ranks */
    const struct rp_collectives *const *lists; /* by rank */
    struct rp_chain_rank *ranks;               /* one for each rank */
    struct rp_places places;                   /* which of them are slow, and what that costs */
    const rp_interval_vec *waits; /* by rank, on its clock: waiting in collectives, in its span;
                                     NULL: nothing was matched */
};

/* Allocates in the arena. */
enum rp_code rp_chain_make(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err);
