/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * NCCL's interface for profiler plugins, versions 1 (NCCL 2.23) to 6 (2.29). NCCL looks up the
 * newest ncclProfiler_v<n> that it supports. The versions differ in the arguments of init and in
 * the event descriptions; the structs have the fields that are used, at their offsets.
 */
#include <stddef.h>
#include <stdint.h>

enum rp_nccl_event {
    RP_NCCL_GROUP = 1,
    RP_NCCL_COLL = 2,
    RP_NCCL_P2P = 4,
    RP_NCCL_PROXY_OP = 8,
    RP_NCCL_KERNEL_CHANNEL = 64, /* from version 3 on */
    RP_NCCL_GROUP_API = 256,     /* from version 5 on, like those below */
    RP_NCCL_COLL_API = 512,
    RP_NCCL_P2P_API = 1024,
    RP_NCCL_KERNEL_LAUNCH = 2048,
    RP_NCCL_CE_COLL = 4096 /* from version 6 on: a collective done by copy engines */
};

struct rp_nccl_coll_v1 {
    const char *name;
    uint64_t comm, seq;
    uint8_t func;
    const void *send;
    void *receive;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t traffic_bytes;
    uint8_t channels, warps, algorithm, protocol;
};
struct rp_nccl_p2p_v1 {
    const char *name;
    uint64_t comm;
    uint8_t func;
    void *buffer;
    uint8_t datatype;
    size_t count;
    int peer;
};

struct rp_nccl_coll_v2 {
    const char *name;
    uint64_t comm, seq;
    const char *func;
    const void *send;
    void *receive;
    size_t count;
    int root;
    const char *datatype;
    size_t traffic_bytes;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
};
struct rp_nccl_coll_v3 {
    const char *name;
    uint64_t comm, seq;
    const char *func;
    const void *send;
    void *receive;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
};
struct rp_nccl_p2p_v2 { /* and 3 */
    const char *name;
    uint64_t comm;
    const char *func;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
};

struct rp_nccl_coll_v4 { /* and later */
    uint64_t seq;
    const char *func;
    const void *send;
    void *receive;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
    void *parent_group; /* from version 5 on */
};
struct rp_nccl_p2p_v4 { /* and later */
    const char *func;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *parent_group;
};

struct rp_nccl_coll_api {
    const char *func;
    size_t count;
    const char *datatype;
    int root;
    void *stream;
};
struct rp_nccl_p2p_api {
    const char *func;
    size_t count;
    const char *datatype;
    void *stream;
};
struct rp_nccl_ce_coll {
    uint64_t seq;
    const char *func;
    const void *send;
    void *receive;
    size_t count;
    int root;
    const char *datatype;
};

/* The type has one byte up to version 4 and eight from 5 on; the following offsets are the same. */
struct rp_nccl_descr {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct rp_nccl_coll_v1 coll1;
        struct rp_nccl_p2p_v1 p2p1;
        struct rp_nccl_coll_v2 coll2;
        struct rp_nccl_coll_v3 coll3;
        struct rp_nccl_p2p_v2 p2p2;
        struct rp_nccl_coll_v4 coll4;
        struct rp_nccl_p2p_v4 p2p4;
        struct rp_nccl_coll_api coll_api;
        struct rp_nccl_p2p_api p2p_api;
        struct rp_nccl_ce_coll ce_coll;
    };
};
_Static_assert(offsetof(struct rp_nccl_descr, parent) == 8 &&
                   offsetof(struct rp_nccl_descr, coll1) == 24,
               "an event's description is elsewhere");

typedef int rp_nccl_init_v1(void **context, int *mask);
typedef int rp_nccl_init_v4(void **context, int *mask, const char *name, uint64_t comm, int nodes,
                            int ranks, int rank, void *log);
typedef int rp_nccl_init_v5(void **context, uint64_t comm, int *mask, const char *name, int nodes,
                            int ranks, int rank, void *log);

struct rp_nccl_profiler {
    const char *name;
    union {
        rp_nccl_init_v1 *init1;
        rp_nccl_init_v4 *init4;
        rp_nccl_init_v5 *init5;
    };
    int (*start)(void *context, void **handle, struct rp_nccl_descr *descr);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, void *args);
    int (*finalize)(void *context);
};
