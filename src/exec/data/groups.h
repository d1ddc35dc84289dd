/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which partitions a collective brings together. */
#include "base/arena.h"
#include "program/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_groups {
    int64_t *ids; /* of all groups, one after another */
    size_t nids;
    size_t *begin; /* of each group, and the end */
    size_t ngroups;
};

/* False where it is not understood, or memory is missing. "{}": no groups, which means all. */
bool rp_groups_of(struct rp_arena *arena, const struct rp_attr *attr, struct rp_groups *out);

/* How many run: what the program says, else the largest that its collectives name and one; at
   least 1. Several replicas and partitions are told apart by the caller. */
unsigned rp_program_runs(const struct rp_program *p);

/* Whether it computes with whole arrays, the same on every partition, but for parts in the view of
   one device: a program before partitioning. */
bool rp_program_is_whole(const struct rp_program *p);
