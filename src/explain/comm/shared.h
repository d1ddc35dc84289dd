/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds what late ranks have in common: if most of the delay comes from several ranks of one host,
   or from the same device of several hosts, what they share is at fault. */
#include "base/arena.h"
#include "base/decides.h"

#include <stddef.h>
#include <stdint.h>

#define RP_COMM_MOST 0.8
RP_DECISION(RP_COMM_MOST, "of all delay",
            "few ranks, or one host, are named where repairing them leaves a fifth at most",
            "explain/what_late_ranks_share_has_an_edge, explain/named_ranks_cause_most");

struct rp_late_rank {
    const char *host; /* its name, or NULL */
    int64_t device;   /* number of its device, or RP_ABSENT_I64 */
    int64_t margin_ns;
};

/* Writes "host node2: 2 of its ranks cause 98 % of all delay, …"; NULL if they have nothing in
   common, or all ranks have it. */
const char *rp_late_shared(const struct rp_late_rank *ranks, size_t n, struct rp_arena *arena);
