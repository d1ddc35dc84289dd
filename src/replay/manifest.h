/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_MANIFEST_H
#define RP_REPLAY_MANIFEST_H
/*
 * The manifest of a bundle, the member "manifest.json": what the program is, where its arrays are,
 * and the checksum of every other member. Described in docs/formats/bundle.md.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "io/output.h"

#include <stdbool.h>

#define RP_BUNDLE_MANIFEST "manifest.json"
#define RP_BUNDLE_SCHEMA   "reprise.bundle/1"

struct rp_bundle_array {
    const char *name; /* "in0", "out0", "p1_in0" */
    const char *file; /* member that holds it, an .npy; NULL: redacted */
    const char *type; /* "f32[2,3]" */
    bool known;       /* its values say shapes: they are there even where others were left out */
};
struct rp_bundle_file {
    const char *path, *sha256;
    int64_t bytes;
};
struct rp_bundle {
    const char *schema;
    const char *reprise; /* the version that wrote it */
    const char *program; /* member */
    const char *source;  /* the file it was made of, without folders */
    const char *flags;   /* XLA_FLAGS where it was packed, or NULL */
    int64_t rank;        /* RP_ABSENT_I64: not said */
    int64_t seed, partitions;
    bool redacted; /* inputs, large constants and outputs were left out */
    RP_VEC(struct rp_bundle_array) arrays;
    RP_VEC(struct rp_bundle_file) files;
    RP_VEC(const char *) feeds, fetches; /* of TensorFlow's graphs: tensors, "x:0" */
    int64_t variables;                   /* so many of the feeds, the last ones, are variables */
};

void rp_bundle_release(struct rp_bundle *b);

void rp_bundle_write(const struct rp_bundle *b, struct rp_out *out);

/* Texts go into the arena. RP_FORMAT where it is no manifest, RP_UNSUPPORTED where it is one of
   another version. Released in every case by rp_bundle_release. */
enum rp_code rp_bundle_parse(const void *bytes, size_t n, struct rp_arena *arena,
                             struct rp_bundle *out, struct rp_err *err);

const struct rp_bundle_file *rp_bundle_find(const struct rp_bundle *b, const char *path);

#endif
