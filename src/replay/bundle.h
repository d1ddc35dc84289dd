/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_BUNDLE_H
#define RP_REPLAY_BUNDLE_H
/*
 * Bundles: one tar with a program, its inputs and expected outputs by their content, and a manifest
 * with versions, flags, rank and checksums (docs/formats/bundle.md). A bundle is a program as any
 * other to `replay`; pack makes one, unpack takes it apart, info looks at it and needs no engine.
 */
#include "dataset/dataset.h"
#include "replay/manifest.h"
#include "replay/session.h"
#include "result/result.h"
#include "result/settings.h"

/* The source of the dataset that is a bundle's manifest; false: it is none. */
bool rp_replay_is_bundle(const struct rp_dataset *dataset, size_t *manifest);

struct rp_opened_bundle {
    struct rp_bundle bundle;
    size_t program; /* source of the dataset */
};
/* Reads the manifest. Released in every case by rp_bundle_release. */
enum rp_code rp_replay_open_bundle(const struct rp_dataset *dataset, size_t manifest,
                                   struct rp_arena *arena, struct rp_opened_bundle *out,
                                   struct rp_err *err);
/* Whether the program's bytes are those of the manifest. */
enum rp_code rp_replay_check_program(const struct rp_dataset *dataset,
                                     const struct rp_opened_bundle *bundle, struct rp_err *err);
/* Loads the arrays that the user did not give otherwise; of a graph also what is fed, and fetched
   where the user did not say it. */
enum rp_code rp_replay_load_bundle(const struct rp_dataset *dataset,
                                   const struct rp_opened_bundle *bundle, struct rp_session *s,
                                   bool inputs, bool expected, bool fetches, struct rp_err *err);

/* The words pack (of a session whose inputs are chosen), unpack and info. */
enum rp_code rp_replay_pack(struct rp_session *s, const struct rp_settings *settings,
                            struct rp_result *result, struct rp_err *err);
enum rp_code rp_replay_unpack(const struct rp_dataset *dataset, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err);
enum rp_code rp_replay_bundle_info(const struct rp_dataset *dataset, struct rp_result *result,
                                   struct rp_err *err);

#endif
