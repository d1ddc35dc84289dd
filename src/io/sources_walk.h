/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists all files below a folder, in natural order of their names. Only for sources.c. */
#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

enum rp_file_kind { RP_FILE_REGULAR, RP_FILE_FOLDER, RP_FILE_STREAM, RP_FILE_MISSING };

/* Symbolic links are followed. STREAM is a pipe, a device or standard input. */
enum rp_file_kind rp_file_kind(const char *path);

struct rp_walk_file {
    const char *path; /* folder/sub/name */
    dev_t device;
    ino_t inode;
    bool by_link;           /* reached through a symbolic link */
    bool stands_for_folder; /* the metadata of a CTF trace, which stands for the whole folder */
};

/* A link or folder that could not be followed. */
struct rp_walk_hole {
    const char *path;
    int error; /* errno */
};

struct rp_walk {
    RP_VEC(struct rp_walk_file) files;
    RP_VEC(struct rp_walk_hole) holes; /* dangling links, folders that cannot be read */
    struct rp_arena arena;
    uint64_t seen; /* directory entries so far, for the limit */
};

/* `walk` is zeroed by the caller, who must release it also after a failure. */
enum rp_code rp_walk_folder(const char *path, const struct rp_limits *limits, struct rp_walk *walk,
                            struct rp_err *err);
void rp_walk_release(struct rp_walk *walk);

/* XProf and JAX write one profile twice: "host.trace.json.gz" is an excerpt of "host.xplane.pb".
   Gives the name of the latter for that of the former; false for other names. */
bool rp_excerpt_of(const char *name, char *out, size_t cap);

/* Whether content begins like the metadata of a CTF trace, as text or in packets. */
bool rp_describes_ctf(const uint8_t *head, size_t n);
