/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reader of Nsight Systems' SQLite exports: nsys.c reads what describes the recording, device.c
 * the work of devices, nodes.c the nodes of graphs, host.c calls and samples, nvtx.c the ranges of
 * programs and libraries.
 */
#include "formats/activity/activity.h"
#include "formats/sqlite/database.h"
#include "formats/sqlite/texts.h"

#define RP_NSYS_ID_BITS \
    24 /* bits of a thread's number; those above are the process and the machine */

struct rp_nsys_record { /* of a CUDA event */
    int64_t correlation, stream;
};

struct rp_nsys_entry { /* a value of a payload */
    uint64_t schema;   /* domain << 32 | schema */
    int64_t index, type, offset;
    rp_str name;
};

struct rp_nsys_word { /* the name of a value of an enumeration */
    uint64_t schema;
    int64_t value;
    rp_str name;
};

struct rp_nsys_frame { /* of a sampled stack */
    int64_t id, depth, symbol, module;
    bool unresolved;
};

struct rp_nsys_node {      /* of a graph */
    int64_t id, original;  /* 0: it is not a clone */
    int64_t thread, at_ns; /* where it was recorded; thread is a globalTid */
    rp_str kernel;         /* that ran for it, or 0 */
};

struct rp_nsys {
    struct rp_activity *a;
    struct rp_database *db;
    struct rp_texts texts;
    uint64_t only_process; /* process of device work in files that do not tell it */
    bool tells_process;
    int64_t last_process, last_device; /* of the row before, during the search for ranks */
    struct rp_map calls; /* from the text of a call to its name << 1 | whether it is the driver's */
    rp_str memory_kinds[16];
    rp_str copy_names[16][16][16]; /* names of copies by what, from, to; 0: not made yet */
    struct rp_map contexts;        /* from the contexts of a process to their device */
    struct rp_map recorded; /* from process and version of an event to its index in records */
    RP_VEC(struct rp_nsys_record) records;
    struct rp_map
        node_of; /* from process and id of a node to its index in nodes, until they are ordered */
    RP_VEC(struct rp_nsys_node) nodes;
    uint64_t graphs;       /* launches recorded as a whole */
    int64_t graphs_ns;     /* how long they took */
    struct rp_map schemas; /* from domain << 32 | schema to the index of its first entry */
    RP_VEC(struct rp_nsys_entry) entries;
    RP_VEC(struct rp_nsys_word) words; /* names of the values of enumerations, in payloads */
    struct rp_map group_sizes;         /* from a communicator to its number of ranks */
    struct rp_map metrics;             /* from type and number of a metric to its name */
    RP_VEC(struct rp_nsys_frame) frames;
    RP_VEC(char) stack;
    bool is_torch;
};

/* The process of a globalPid or globalTid. */
static inline uint64_t rp_nsys_process(int64_t global)
{
    return (uint64_t)global >> RP_NSYS_ID_BITS;
}

static inline int64_t rp_nsys_thread(int64_t global)
{
    return global & ((INT64_C(1) << RP_NSYS_ID_BITS) - 1);
}

/* Fills process, track and times of an event of a thread from three columns; false: the row cannot
   be used. */
bool rp_nsys_thread_event(struct rp_nsys *r, const struct rp_rows *rows, int start, int end,
                          int thread, struct rp_activity_event *e);

enum rp_code rp_nsys_read_nodes(struct rp_nsys *r, struct rp_err *err);
/* The captured node for one that ran: itself, or the one it is a clone of. kernel is the node that
   ran, or 0. */
int64_t rp_nsys_captured_node(struct rp_nsys *r, uint64_t process, int64_t node, rp_str kernel);
/* To be called after the last kernel; from then on, the kernel that a call captured can be asked
   for (0: none). */
void rp_nsys_order_nodes(struct rp_nsys *r);
rp_str rp_nsys_captured_kernel(const struct rp_nsys *r, const struct rp_activity_event *call);

enum rp_code rp_nsys_find_ranks(struct rp_nsys *r, struct rp_err *err);
enum rp_code rp_nsys_read_device(struct rp_nsys *r, struct rp_err *err);
enum rp_code rp_nsys_read_host(struct rp_nsys *r, struct rp_err *err);
enum rp_code rp_nsys_read_nvtx(struct rp_nsys *r, struct rp_err *err);
