/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds where collectives run, within a node or between nodes, and whether they use the capacity of
 * the links there (cost/links.h).
 */
#include "base/decides.h"
#include "cost/links.h"
#include "facts/ranks/rendezvous.h"

enum rp_place { RP_PLACE_NODE, RP_PLACE_BETWEEN, RP_PLACES, RP_PLACE_UNKNOWN = RP_PLACES };
extern const char *const rp_place_names[RP_PLACES + 1]; /* "node", "between", NULL */

/* The large collectives at a place. */
#define RP_COMM_START_S 50e-6
RP_DECISION(RP_COMM_START_S, "s", "what a collective takes beside its bytes, generously",
            "explain/a_slow_link_has_edges, explain/ends_that_are_apart_have_an_edge");

struct rp_place_use {
    const struct rp_link *link; /* link of one device; NULL: not known */
    size_t large, slow;         /* slow: those that take several times as long as the link needs */
    bool alarm;                 /* half of them or more are slow */
    const struct rp_rendezvous *worst; /* the longest of the slow ones */
    double worst_bytes_per_s;          /* over its busiest link */
    double worst_can;                  /* the bandwidth that it could reach */
    int64_t worst_ns, worst_bytes;
};

struct rp_topology {
    const struct rp_rendezvous_list *list;
    const struct rp_collectives *const *ranks;
    int64_t world_size;
    const char *device; /* its name, or NULL */
    bool one_process;   /* the participants are devices of one process */
    struct rp_place_use at[RP_PLACES];
};

/* The place is unknown if hosts are not recorded and the job may have several, or if ranks were not
   given. */
enum rp_place rp_topology_place(const struct rp_topology *t, const struct rp_rendezvous *m);

/* The capacity of the busiest link of a collective, in bytes per second; 0: not known. Between
   nodes it is that of all participants of a node together. */
double rp_topology_can(const struct rp_topology *t, const struct rp_rendezvous *m);

/* How much longer it took than its link needs, if the place has an alarm and it is slow. */
int64_t rp_topology_excess(const struct rp_topology *t, const struct rp_rendezvous *m);

/* Fills `at` from the rest. */
void rp_topology_judge(struct rp_topology *t);

/* Writes "slow link: …" in the arena; NULL if there is no alarm at that place. */
const char *rp_topology_text(const struct rp_topology *t, enum rp_place place,
                             struct rp_arena *arena);
