/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of functions for profiles that have addresses only, from the files that they name, where
 * these are on this machine and the same: they have the build id of the profile, or, where it has
 * none, its inode. Code that a process has made is named by its map, /tmp/perf-<pid>.map.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "formats/trace_proto.h"

#define RP_BUILD_ID 20 /* bytes at most */

struct rp_symbols_file { /* as the profile knows it */
    const char *path;
    uint8_t build_id[RP_BUILD_ID];
    size_t nbuild_id; /* 0: not known */
    uint64_t inode;   /* 0: not known */
};

struct rp_symbols_table;
struct rp_symbols {
    RP_VEC(struct rp_symbols_table *) tables;
    uint64_t map_pid; /* whose map is read; 0: none */
    struct rp_symbols_table *map;
};

void rp_symbols_release(struct rp_symbols *s);

/* Which table has the functions of a file; RP_NONE: it is not here. */
enum rp_code rp_symbols_open(struct rp_symbols *s, const struct rp_symbols_file *file,
                             uint32_t *out, struct rp_err *err);
/* The function at an offset of the file, borrowed; empty: there is none. */
struct rp_bytes rp_symbols_at(const struct rp_symbols *s, uint32_t table, uint64_t offset);
/* The name of code that a process compiled while it ran, by its address. */
enum rp_code rp_symbols_made(struct rp_symbols *s, int64_t pid, uint64_t address,
                             struct rp_bytes *out, struct rp_err *err);
