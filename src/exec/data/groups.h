/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds which partitions a collective brings together. */
#include "base/arena.h"
#include "program/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_groups {
    int64_t *ids; /* ids of all groups, one group after another */
    size_t nids;
    size_t *begin; /* begin of each group, and the end of the last */
    size_t ngroups;
};

/* Returns false if the groups are not understood, or memory is missing. "{}" means no groups, so
   all partitions. */
bool rp_groups_of(struct rp_arena *arena, const struct rp_attr *attr, struct rp_groups *out);

/* The number of partitions that run: what the program states, else one more than the largest number
   in its collectives; at least 1. The caller distinguishes replicas and partitions. */
unsigned rp_program_runs(const struct rp_program *p);

/* Whether the program computes with whole arrays, the same on every partition, except for parts in
   the view of one device: a program before partitioning. */
bool rp_program_is_whole(const struct rp_program *p);
