/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds work that is slower than the same work elsewhere, beyond the usual differences of such
 * work.
 *
 * Peers are all ranks that do the same work, wherever they are in the job. If the times of a key
 * differ within a rank (because it was not recorded in detail), only ranks that do it equally often
 * are peers. Each rank has a vote, its usual time; the lower quartile of the votes is the
 * reference, so that up to three quarters of the ranks may be slow. If a step is longer on all
 * ranks (because its batch is), so is its reference.
 *
 * Work is judged in cells: for a rank in a step all work of a class, then each key, then both over
 * all steps. How far cells of a kind scatter among ranks and steps is the measure of what is
 * abnormal. Then ranks of one role are compared: work that one of them does more often in a step
 * than most is abnormal, too, as far as it makes the step longer.
 */
#include "base/arena.h"
#include "base/decides.h"

#include <stdbool.h>
#include <stdint.h>

#define RP_PEERS_CHANCE 7.0
RP_DECISION(RP_PEERS_CHANCE, "deviations",
            "of 40 healthy jobs in which 2 to 10 % of the kernels take longer by chance the rank "
            "that is most late is up to 6.7 beyond the others, and one that is 20 % slower 7.7 or "
            "more: sums of a few rare delays have long tails",
            "places/what_chance_deals_out_is_nobodys");

#define RP_PEERS_STAR UINT32_MAX /* all keys, or all steps */
enum { RP_PEERS_CLASSES = 4 };

struct rp_peer_key { /* of a rank */
    uint64_t hash;   /* the same on all ranks that do the same work */
    double usual_ns, spread;
    uint32_t n, cls; /* cls: below RP_PEERS_CLASSES */
};

/* The work of a key that a rank did in a step. */
struct rp_peer_cell {
    uint32_t key, step; /* key: of the rank */
    uint32_t n;
    double dur_ns, squares; /* squares: of the single times, for rp_peers_usual */
};

struct rp_peer_rank {
    const struct rp_peer_key *keys;
    size_t nkeys;
    const struct rp_peer_cell *cells; /* sorted by step and key, each once */
    size_t ncells;
    uint64_t role; /* the same on ranks that should do equally much; 0 if not known */
    /* Filled: */
    double
        *ref_ns; /* by cell: the reference time of one; NAN if there is nothing to compare with */
    double *factor;  /* by cell: the factor that makes its time normal; it is abnormal if below 1 */
    bool *mixed;     /* by key: whether its times differ within the ranks */
    double *over_ns; /* by cell: see rp_peers_weigh */
};

/* Computes the usual values of the keys from all of their cells, in any order. */
enum rp_code rp_peers_usual(const struct rp_peer_cell *cells, size_t n, struct rp_peer_key *keys,
                            size_t nkeys, struct rp_err *err);

/* step_ns is about the length of a step. Fills the ranks, in the arena. O(n log n) in cells. */
enum rp_code rp_peers_judge(struct rp_peer_rank *ranks, size_t n, double step_ns,
                            struct rp_arena *arena, struct rp_err *err);

/* The excess of a cell is divided among its times: in proportion or, if they should be alike, by
   how much each is above the reference. All times are given first, and then the shares are asked
   for. */
void rp_peers_weigh(struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n);
double rp_peers_cut(const struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n);

struct rp_peer_sum { /* of abnormal work, by rank and step */
    double n, sum, squares;
};
void rp_peers_count(struct rp_peer_sum *to, double ns);
void rp_peers_add(struct rp_peer_sum *to, const struct rp_peer_sum *from);
/* Returns by how many deviations the abnormal work of a place exceeds the amount that it would have
   if that of others were distributed by chance, step by step. INFINITY if others have none. */
double rp_peers_beyond(const struct rp_peer_sum *own, const struct rp_peer_sum *others);

/* Returns the lower quartile, after sorting. NAN for no values. */
double rp_peers_low(double *values, size_t n);
/* Returns how far values are from their middle, as the standard deviation of normal ones; a few
   outliers do not count. Changes them. n > 0. */
double rp_peers_sigma(double *values, size_t n);
