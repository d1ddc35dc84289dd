/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the nccl library. nccl.c is the plugin: communicators, and the begin and
 * end of events; describe.c reads the event descriptions of each version.
 */
#include "abi/nccl_profiler.h"
#include "capture/core/core.h"

#include <stdatomic.h>

#define RP_NCCL_HIDDEN __attribute__((visibility("hidden")))

struct rp_nccl_comm {
    char name[48];
    uint64_t hash;
    int ranks, rank, nodes;
    uint32_t number;
};

struct rp_nccl_op {
    _Atomic uint64_t handle;
    uint64_t type, begin, parent;
    const struct rp_nccl_comm *comm;
    char func[32], datatype[16], algorithm[16], protocol[16], group[48];
    uint64_t hash, seq, count;
    int64_t root, peer, traffic;
    uint32_t tid, channels;
    bool stopped;
    _Atomic uint32_t channels_begun, channels_ended;
    _Atomic uint64_t first, last;
};

/* Fills the event from its description, whose layout depends on the version. */
RP_NCCL_HIDDEN void rp_nccl_describe(struct rp_nccl_op *e, const struct rp_nccl_descr *d,
                                     int version);
/* The arguments of the event's span; `group` is a buffer for one of them. */
RP_NCCL_HIDDEN void rp_nccl_args(const struct rp_nccl_op *e, struct rp_capture_args *a,
                                 char group[40]);
