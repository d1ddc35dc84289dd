/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which work is slower than the same work elsewhere, beyond what such work differs by anyway.
 *
 * Peers are all ranks that do the same work, wherever they are in the job. Where the times of a key
 * differ within a rank (what it stands for was not recorded in detail), only ranks that do it as
 * often are. Each rank has a vote, what is usual of it; the lower quartile of the votes is the
 * reference, so that up to three quarters of the ranks may be slow. Where a step is longer on all
 * ranks (its batch is), so is the reference in it.
 *
 * Work is judged in cells: of a rank in a step all of a class, then each key, then both over all
 * steps. How far cells of a kind scatter among ranks and steps is the measure of what is abnormal.
 * Then ranks of one role are compared: what one of them does more of in a step than most is
 * abnormal too, as far as it makes the step longer.
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

/* What a rank did of a key in a step. */
struct rp_peer_cell {
    uint32_t key, step; /* key: of the rank */
    uint32_t n;
    double dur_ns, squares; /* squares: of the single times; for rp_peers_usual */
};

struct rp_peer_rank {
    const struct rp_peer_key *keys;
    size_t nkeys;
    const struct rp_peer_cell *cells; /* by step and key, each once */
    size_t ncells;
    uint64_t role; /* the same on ranks that should do as much; 0: nobody knows */
    /* Filled: */
    double *ref_ns;  /* by cell: of one; NAN: nothing to compare with */
    double *factor;  /* by cell: what its time is to be multiplied with; below 1: it is abnormal */
    bool *mixed;     /* by key: its times differ within the ranks */
    double *over_ns; /* by cell: see rp_peers_weigh */
};

/* Fills what is usual of the keys from all of their cells, in any order. */
enum rp_code rp_peers_usual(const struct rp_peer_cell *cells, size_t n, struct rp_peer_key *keys,
                            size_t nkeys, struct rp_err *err);

/* step_ns: how long a step lasts, about. Fills the ranks, in the arena. O(n log n) in cells. */
enum rp_code rp_peers_judge(struct rp_peer_rank *ranks, size_t n, double step_ns,
                            struct rp_arena *arena, struct rp_err *err);

/* What is abnormal of a cell is divided between its times: in proportion, or, where they should be
   alike, to what each is above the reference. First all of them are told, then asked for. */
void rp_peers_weigh(struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n);
double rp_peers_cut(const struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n);

struct rp_peer_sum { /* of abnormal work, by rank and step */
    double n, sum, squares;
};
void rp_peers_count(struct rp_peer_sum *to, double ns);
void rp_peers_add(struct rp_peer_sum *to, const struct rp_peer_sum *from);
/* By how many deviations the abnormal work of a place is beyond what it would have if chance had
   dealt out that of others to it, step by step. INFINITY: others have none. */
double rp_peers_beyond(const struct rp_peer_sum *own, const struct rp_peer_sum *others);

/* The lower quartile, after sorting. NAN of none. */
double rp_peers_low(double *values, size_t n);
/* How far values are from their middle, as the standard deviation of normal ones; a few that are
   far away do not count. Changes them. n > 0. */
double rp_peers_sigma(double *values, size_t n);
