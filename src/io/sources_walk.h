/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All files below a folder, in natural order of their names. For sources.c. */
#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

enum rp_file_kind { RP_FILE_REGULAR, RP_FILE_FOLDER, RP_FILE_STREAM, RP_FILE_MISSING };

/* Symbolic links are followed. STREAM: a pipe, a device, standard input. */
enum rp_file_kind rp_file_kind(const char *path);

struct rp_walk_file {
    const char *path; /* folder/sub/name */
    dev_t device;
    ino_t inode;
    bool by_link;           /* reached through a symbolic link */
    bool stands_for_folder; /* the metadata of a CTF trace, which is the whole folder */
};

/* What could not be followed. */
struct rp_walk_hole {
    const char *path;
    int error; /* errno */
};

struct rp_walk {
    RP_VEC(struct rp_walk_file) files;
    RP_VEC(struct rp_walk_hole) holes; /* dangling links, folders that cannot be read */
    struct rp_arena arena;
    uint64_t seen; /* directory entries, for the limit */
};

/* walk: zeroed by the caller, who releases it also after a failure. */
enum rp_code rp_walk_folder(const char *path, const struct rp_limits *limits, struct rp_walk *walk,
                            struct rp_err *err);
void rp_walk_release(struct rp_walk *walk);

/* XProf and JAX write one profile twice: of "host.xplane.pb" and "host.trace.json.gz" the second is
   an excerpt of the first. The name of the first for that of the second; false for other names. */
bool rp_excerpt_of(const char *name, char *out, size_t cap);

/* Whether content begins as the metadata of a CTF trace, as text or as packets. */
bool rp_describes_ctf(const uint8_t *head, size_t n);
