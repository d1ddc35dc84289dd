/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns the paths that a user gives (files, folders, tars, "-") into the list of things to read, in
 * an order that does not depend on the file system: paths as they were given, within a folder or a
 * tar by natural order ("rank2" before "rank10").
 *
 *     run/           ->  run/rank0.json  run/rank1.json.gz
 *     run.tar.gz     ->  run.tar.gz!rank0.json  run.tar.gz!rank1.json
 *
 * Folders are walked to the bottom. Hidden files are passed over; links are followed, but a file
 * that is there under its own name is not listed again under a link's. Tars are known by their
 * content, also inside folders; a tar inside a tar is not opened. Of a folder that is a CTF trace
 * only its description, the file "metadata", is listed: it represents the trace (in a tar the other
 * files come with its input, rp_input_borrow_beside). Of a profile that XProf or JAX wrote twice,
 * "host.xplane.pb" and its excerpt "host.trace.json.gz", only the first is listed.
 */
#include "base/err.h"
#include "base/limits.h"
#include "io/input.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_source {
    const char *name;   /* the name to show: "run.tar.gz!rank0.json" */
    const char *path;   /* the file on disk; "-" for standard input */
    const char *member; /* of a tar, or NULL */
    bool is_folder; /* path is the description of a CTF trace, and name the folder that it stands
                       for */
    size_t given;   /* index of the user's path that led here */
    bool found;     /* it is from a folder or a tar: the user did not name it, so its format may be
                       unknown; otherwise an unknown format is an error */
    bool truncated; /* the tar stopped within it or right after it */
};

#define RP_HOLE_LINK "a dangling link"

/* A file or folder that was found but could not be opened: a dangling link, or a folder without
   permission. */
struct rp_hole {
    const char *path, *reason;
    size_t given; /* as in a source */
};

struct rp_sources;

/*
 * Lists the sources. A path that cannot be opened is an error here; a file found in a folder, or a
 * tar that is damaged further on, fails when its source is opened. n may be 0, and so may the
 * count.
 *
 * Memory: members of a tar that is compressed (or comes through a pipe) are held decompressed until
 * close, together at most limits.held_bytes a tar; members of a plain tar are slices of its
 * mapping.
 */
enum rp_code rp_sources_open(const char *const *paths, size_t n, const struct rp_limits *limits,
                             struct rp_sources **out, struct rp_err *err);
void rp_sources_close(
    struct rp_sources *sources); /* Must be called after all inputs are closed; NULL is allowed. */

size_t rp_sources_count(const struct rp_sources *sources);
const struct rp_source *rp_sources_borrow(const struct rp_sources *sources, size_t i);
const struct rp_hole *rp_sources_borrow_holes(const struct rp_sources *sources, size_t *n);

/* Opens source i: from several threads at a time and any number of times (standard input and pipes
   only once). The caller closes the input before the sources. */
enum rp_code rp_source_open(struct rp_sources *sources, size_t i, struct rp_input **out,
                            struct rp_err *err);

/* Gives back an input of source i of which nothing was read (it may have been peeked at), so that
   the source can be opened again even if it can be read only once. */
void rp_source_return(struct rp_sources *sources, size_t i, struct rp_input *in);

/* Adds a part of source i as a source of its own, like a member of a tar. Takes the bytes,
   allocated by malloc, also on failure. */
enum rp_code rp_sources_add_part(struct rp_sources *sources, size_t i, const char *member,
                                 uint8_t *bytes, size_t n, struct rp_err *err);
/* Removes the marked ones of the first n sources, and puts parts where their paths were given. No
   input may be open. */
void rp_sources_settle(struct rp_sources *sources, const bool *remove, size_t n);

/* Orders names as people count: runs of digits by their value. Returns 0 only for equal names. */
int rp_natural_compare(const char *a, const char *b);
