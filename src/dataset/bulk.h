/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bulk of a part is the data that grows with the events of its rank, such as a model of its
 * steps. If all ranks of a run together have too many events, only the bulk of a few ranks is kept,
 * a quarter of each sort:
 *
 *     the slowest             others wait for them, so they communicate least
 *     the fastest             they wait most
 *     the first of each kind  the stages of a pipeline are of different kinds
 *     some of the others      by a hash of their numbers
 *
 * Each quarter is the first of an order that depends on the ranks alone, so that a rank which is
 * not among them at any time is not among them in the end. Hence ranks may come in any order, in
 * any number of processes: the choice is the same.
 */
#include "dataset/query.h"

struct rp_rank_bulk {
    uint64_t events_most; /* the most events of all ranks together; if there are more, not all are
                             kept */
    uint32_t ranks_most; /* how many ranks are then kept; a half, a quarter … while they have more
                            events */
    bool whole;          /* the part is nothing but bulk: `join` gets only the chosen ranks */
    /* Whether a few ranks can answer the question as it is asked; may be NULL. */
    bool (*allows)(const struct rp_settings *settings);
    bool (*has)(const void *data);
    void (*drop)(void *data); /* what remains must point into the same arena */
    /* Adds the bulk while the trace is there; NULL if `rank` makes it. */
    enum rp_code (*make)(const struct rp_loaded *loaded, const struct rp_settings *settings,
                         struct rp_rank_part *part, struct rp_err *err);
};

/* Returns the traits by which a rank is chosen. sketch is NULL if there is none. */
struct rp_rank_traits rp_bulk_traits(const struct rp_digest *digest,
                                     const struct rp_sketch *sketch);

/* Called before the bulk of a part is made: whether it would be kept. */
enum rp_code rp_bulk_wants(struct rp_rank_query *q, const struct rp_rank_part *part, bool *out,
                           struct rp_err *err);

/* Called when a part is complete: keeps its bulk, and frees those that are no longer among the
   chosen. */
enum rp_code rp_bulk_keep(struct rp_rank_query *q, struct rp_rank_slot *slot, struct rp_err *err);

/* Called when all parts are there: sets what `ranks` says about the choice, and notes it. */
enum rp_code rp_bulk_choose(struct rp_rank_query *q, struct rp_ranks *ranks, struct rp_arena *arena,
                            struct rp_err *err);
