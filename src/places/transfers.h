/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which transfers take longer than the same elsewhere: of the same kind and size, among as many
 * ranks, within a host or between hosts. The group that is usually fastest shows what a path can
 * do. Where there is only one group of a class, nothing can be compared.
 */
#include "base/decides.h"
#include "places/rerun.h"

#define RP_PLACE_GROUP_SHARE 0.1
RP_DECISION(RP_PLACE_GROUP_SHARE, "of the reference",
            "paths of one kind differ by a few percent in length and load",
            "places/a_slow_group_is_beyond_the_scatter_of_the_best");

struct rp_place_transfer { /* of a slot */
    uint32_t nhosts;       /* number of hosts of its members; 0 if not known */
    uint32_t *hosts;       /* ascending */
    uint32_t step;         /* of its first member */
};

struct rp_place_pair {
    uint32_t a, b; /* hosts, ascending */
};

struct rp_place_transfers {
    struct rp_place_transfer *at; /* by slot of the rerun */
    size_t npairs;
    struct rp_place_pair *pairs; /* pairs of hosts between which there are transfers */
};

/* A transfer among those of its class and group. */
struct rp_place_sample {
    uint64_t cls, group;
    double dur_ns;
    double cut_ns; /* set here: the abnormal part of its time */
    uint32_t at;   /* the caller's */
};
/* Sorts them. */
enum rp_code rp_place_samples_judge(struct rp_place_sample *list, size_t n, struct rp_err *err);
uint64_t rp_place_sample_class(const struct rp_collective *c, uint32_t members, bool between);

/* Fills cut_ns of the slots. host_of is by rank, with RP_NONE if not known. Allocates in the
   arena. */
enum rp_code rp_place_transfers_judge(struct rp_place_transfers *out, struct rp_rerun *rerun,
                                      const struct rp_rendezvous_list *rendezvous,
                                      const uint32_t *host_of, struct rp_arena *arena,
                                      struct rp_err *err);

/* Returns the same value for ranks that should do equally much: they are at the same stage of their
   pipelines, and take part in collectives of the same kinds, sizes and numbers of ranks. */
uint64_t rp_place_role(const struct rp_collectives *list, const struct rp_pipe_stage *stages,
                       size_t rank);

bool rp_place_transfer_touches(const struct rp_place_transfer *t, uint32_t host);
