/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bundles: one tar with a program, its inputs and expected outputs, and a manifest with versions,
 * flags, rank and checksums (docs/formats/bundle.md). `replay` runs a bundle like any other
 * program; pack writes one, unpack extracts it, info shows it and needs no engine.
 */
#include "base/names.h"
#include "dataset/dataset.h"
#include "io/output.h"
#include "replay/replay.h"

/* ---- manifest.c: the member "manifest.json": what the program is, where its arrays are, and the
   checksum of every other member ---- */

#define RP_BUNDLE_MANIFEST "manifest.json"
#define RP_BUNDLE_SCHEMA   "reprise.bundle/1"

struct rp_bundle_array {
    const char *name; /* "in0", "out0", "p1_in0" */
    const char *file; /* member that holds it, an .npy; NULL if redacted */
    const char *type; /* "f32[2,3]" */
    bool known;       /* its values are shapes, which are kept even if others are omitted */
};
struct rp_bundle_file {
    const char *path, *sha256;
    int64_t bytes;
    uint32_t source; /* source in the dataset in which it was opened; RP_NONE: it is missing */
};
typedef RP_VEC(const char *) rp_bundle_names;

struct rp_bundle {
    const char *schema;
    const char *reprise; /* the version that wrote it */
    const char *program; /* member */
    const char *source;  /* name of the file from which it was made, without folders */
    const char *flags;   /* XLA_FLAGS when it was packed, or NULL */
    int64_t rank;        /* RP_ABSENT_I64: unknown */
    int64_t seed, partitions;
    bool redacted; /* inputs, large constants and outputs were left out */
    RP_VEC(struct rp_bundle_array) arrays;
    RP_VEC(struct rp_bundle_file) files;
    struct rp_names paths;          /* -> file */
    rp_bundle_names feeds, fetches; /* of TensorFlow's graphs: names of tensors, "x:0" */
    int64_t variables;              /* number of feeds, counted from the end, that are variables */
};

void rp_bundle_release(struct rp_bundle *b);

void rp_bundle_write(const struct rp_bundle *b, struct rp_out *out);

/* Texts go into the arena. RP_FORMAT if it is not a manifest, RP_UNSUPPORTED if it has another
   version. Call rp_bundle_release in every case. */
enum rp_code rp_bundle_parse(const void *bytes, size_t n, struct rp_arena *arena,
                             struct rp_bundle *out, struct rp_err *err);

enum rp_code rp_bundle_add_file(struct rp_bundle *b, const struct rp_bundle_file *file,
                                struct rp_err *err);
/* The index of a file, or RP_NONE. */
uint32_t rp_bundle_find(const struct rp_bundle *b, const char *path);

/* ---- bundle.c and pack.c ---- */

/* Finds the source of the dataset that is a bundle's manifest; false if it is not a bundle. */
bool rp_replay_is_bundle(const struct rp_dataset *dataset, size_t *manifest);

struct rp_opened_bundle {
    struct rp_bundle bundle;
    size_t program; /* source of the dataset */
};
static inline void rp_replay_close_input(struct rp_input **in)
{
    rp_input_close(*in);
}
static inline void rp_replay_close_bundle(struct rp_opened_bundle *opened)
{
    rp_bundle_release(&opened->bundle);
}
/* Reads the manifest. Call rp_replay_close_bundle in every case. */
enum rp_code rp_replay_open_bundle(const struct rp_dataset *dataset, size_t manifest,
                                   struct rp_arena *arena, struct rp_opened_bundle *out,
                                   struct rp_err *err);
/* Whether the program's bytes are those of the manifest. */
enum rp_code rp_replay_check_program(const struct rp_dataset *dataset,
                                     const struct rp_opened_bundle *bundle, struct rp_err *err);
/* Loads the arrays that the user did not give; for a graph, also the names of what is fed and,
   unless the user named them, fetched. */
enum rp_code rp_replay_load_bundle(const struct rp_dataset *dataset,
                                   const struct rp_opened_bundle *bundle, struct rp_session *s,
                                   bool inputs, bool expected, bool fetches, struct rp_err *err);

/* The words pack (for a session whose inputs are chosen), unpack and info. */
enum rp_code rp_replay_pack(struct rp_session *s, const struct rp_settings *settings,
                            struct rp_result *result, struct rp_err *err);
/* Packs to one of several files, which the answer does not describe. */
enum rp_code rp_replay_pack_to(struct rp_session *s, const char *to,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err);
enum rp_code rp_replay_unpack(const struct rp_dataset *dataset, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err);
enum rp_code rp_replay_bundle_info(const struct rp_dataset *dataset, struct rp_result *result,
                                   struct rp_err *err);
