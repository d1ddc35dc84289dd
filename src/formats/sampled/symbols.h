/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of functions for profiles that have addresses only. They come from the files that the
 * profile names, if these are on this machine and still the same: they must have the build id that
 * the profile states, or if it states none, the inode. Code that a process has made is named by its
 * map, /tmp/perf-<pid>.map.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "formats/trace_proto.h"

#define RP_BUILD_ID 20 /* bytes at most */

struct rp_symbols_file { /* a file as the profile knows it */
    const char *path;
    uint8_t build_id[RP_BUILD_ID];
    size_t nbuild_id; /* 0: not known */
    uint64_t inode;   /* 0: not known */
};

struct rp_symbols_table;
struct rp_symbols {
    RP_VEC(struct rp_symbols_table *) tables;
    uint64_t map_pid; /* the process whose map is read; 0: none */
    struct rp_symbols_table *map;
};

void rp_symbols_release(struct rp_symbols *s);

/* Finds the table with the functions of a file; RP_NONE if the file is not on this machine. */
enum rp_code rp_symbols_open(struct rp_symbols *s, const struct rp_symbols_file *file,
                             uint32_t *out, struct rp_err *err);
/* The function at an offset of the file, borrowed; empty if there is none. */
struct rp_bytes rp_symbols_at(const struct rp_symbols *s, uint32_t table, uint64_t offset);
/* The name of code that a process compiled while it ran, by its address. */
enum rp_code rp_symbols_made(struct rp_symbols *s, int64_t pid, uint64_t address,
                             struct rp_bytes *out, struct rp_err *err);
