/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The collectives of one rank, small enough to stay in memory for all ranks of a run: communication
 * kernels in time order, each with its position in its communication stream and what the framework
 * recorded about it. If a rank has no such kernels, collectives of the host (gloo, MPI, UCC) are
 * used. rendezvous.h matches them across ranks.
 */
#include "base/arena.h"
#include "facts/ranks/messages.h"
#include "facts/work/work.h"

struct rp_collective {
    int64_t begin_ns, end_ns; /* times of the trace */
    const char *name;
    const char *group;              /* process group, or NULL */
    const char *dtype;              /* "bf16" …, or NULL */
    int64_t seq;                    /* number in its group, or -1 */
    int64_t in_bytes, out_bytes;    /* what this rank sends and receives; -1: not known */
    int64_t group_size;             /* 0: not known */
    uint64_t name_hash, group_hash; /* hash of the group's name and ranks; 0: no group */
    uint64_t key;                   /* the same on all participating ranks; 0: none */
    uint32_t stream, index;         /* number of the communication stream, position in it */
    rp_event event, launch;         /* launch is RP_NONE if it is not known */
    uint8_t kind;                   /* enum rp_coll_kind */
    uint8_t algorithm;              /* rp_coll_algorithm_name */
    uint8_t dimension;              /* of its group, enum rp_dimension */
    bool
        awaited; /* the span is that of the call that waited for it, which may have ended earlier */
};

/* Each rank needs data of every other, so that none leaves before the last one arrives. */
static inline bool rp_collective_is_mutual(const struct rp_collective *c)
{
    return !c->awaited && rp_coll_is_mutual(c->kind);
}

struct rp_collectives {
    RP_VEC(struct rp_collective) list; /* ordered by start, then by place in the file */
    rp_message_vec messages;           /* of sends and receives whose peer is known */
    uint32_t nstreams;
    bool on_host;        /* spans of threads, not kernels */
    bool cut;            /* the trace is truncated or damaged, so any of them may be missing */
    bool sequenced;      /* all but sends and receives have a group and a sequence number */
    bool grouped;        /* all but sends and receives have a group */
    bool mixed;          /* they have different groups */
    uint64_t group_hash; /* hash of the last collective that has a group */
    int64_t base_ns;
    uint64_t boot;         /* of the machine (trace_host.h); 0: not known */
    const char *host;      /* its name, as the trace says, or NULL */
    int32_t world_size;    /* number of ranks in the job; 0: not known */
    int64_t first_step_ns; /* begin of the first step; INT64_MIN if none is marked, or only a part
                              of the trace was requested */
};
extern const struct rp_type rp_collectives_type; /* for use as a member of a part (result/part.h) */

/* Texts are copied into the arena; the trace is not needed afterwards. `out` must be released also
   after a failure. Host collectives are those that start inside the scope. */
enum rp_code rp_collectives_init(struct rp_collectives *out, const struct rp_work *work,
                                 const struct rp_scope *scope, struct rp_arena *arena,
                                 struct rp_err *err);
void rp_collectives_release(struct rp_collectives *c);

/* The size from which bandwidth is computed, among n ranks (docs/definitions.md), or -1. */
int64_t rp_collective_size(const struct rp_collective *c, int64_t n);

/* Whether a span of a thread is a collective that runs on the host. */
bool rp_event_is_host_collective(const struct rp_trace *t, rp_event e);
