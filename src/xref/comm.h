/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts how much a distributed program communicates, by collective, by the axis of devices that
 * take part, and by line. Bytes are those of one device and one execution; loops count as often as
 * they run. docs/definitions.md has the formulas.
 */
#include "xref/mesh.h"
#include "xref/xref.h"

#include <reprise/result.h>

struct rp_comm_op {
    const char *name, *collective, *axis, *shape, *operator_, *scope, *line;
    int64_t group_size, groups, payload_bytes;
    double runs, wire_bytes, total_payload_bytes;
};

struct rp_comm_sum {
    const char *collective, *axis, *line;
    int64_t instructions, group_size;
    double runs, payload_bytes, wire_bytes, share;
};

struct rp_comm {
    int64_t devices; /* or RP_ABSENT_I64, like those of groups */
    double payload_bytes, wire_bytes;
    size_t ncollectives, nlines, nops;
    struct rp_comm_sum *collectives, *lines; /* most sent first */
    struct rp_comm_op *ops;
    bool open_loops; /* some loops have an unknown number of iterations */
};

/* Everything is in the arena. A program without an entry computation communicates nothing. */
enum rp_code rp_comm_count(const struct rp_xref *x, const struct rp_meshes *meshes,
                           struct rp_arena *arena, struct rp_comm *out, struct rp_err *err);

/* Whether there is anything to count. */
bool rp_comm_has_any(const struct rp_program *p);
