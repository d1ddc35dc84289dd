/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_IO_SOURCES_WALK_H
#define RP_IO_SOURCES_WALK_H
/* The files of a folder, to the bottom, in natural order. For sources.c. */
#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

enum rp_path_kind { RP_PATH_FILE, RP_PATH_FOLDER, RP_PATH_ONCE, RP_PATH_NONE };

/* What stands there, links followed; ONCE: a pipe, a device, standard input. */
enum rp_path_kind rp_path_kind(const char *path);

struct rp_walk_file {
    const char *path; /* folder/sub/name */
    dev_t device;
    ino_t inode;
    bool by_link;           /* a link was followed on the way */
    bool stands_for_folder; /* the description of a trace that is the folder it lies in */
};

struct rp_walk {
    RP_VEC(struct rp_walk_file) files;
    struct rp_arena arena;
    uint64_t seen; /* names looked at, for the limit */
};

/* walk: zeroed by the caller; released by the caller in every case. */
enum rp_code rp_walk_folder(const char *path, const struct rp_limits *limits, struct rp_walk *walk,
                            struct rp_err *err);
void rp_walk_release(struct rp_walk *walk);

/* Whether content begins as the description of a CTF trace does: text, or packets of it. */
bool rp_describes_ctf(const uint8_t *head, size_t n);

#endif
