/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Replays of TensorFlow's programs: BladeDISC's pair, a GraphDef, a SavedModel. The engine tf takes
 * the graph; for the others it is lowered to HLO, once the shapes of its inputs are known.
 */
#include "formats/blade/blade.h"
#include "formats/tensorflow/checkpoint.h"
#include "formats/tensorflow/ports.h"
#include "formats/tensorflow/restore.h"
#include "lower/lower.h"
#include "replay/replay.h"
#include "result/settings.h"

struct rp_replay_graph {
    bool used; /* the session's program is such a one */
    struct rp_blade blade;
    struct rp_tf_ports ports;
    struct rp_bytes graph; /* GraphDef */
    const char **feeds, **fetches;
    size_t nfeeds, nfetches;
    const char *saved_folder;
    struct rp_program *lowered;
    struct rp_err why;  /* it could not be lowered */
    bool *known;        /* of the feeds: their values may say shapes */
    const char **types; /* of the feeds where a bundle says them, "f32[2,3]"; or NULL */
    size_t nvariables;  /* number of feeds, counted from the end, that are variables */
    struct rp_checkpoint *checkpoint; /* that their values are in; or NULL */
    struct rp_tf_restores restores;
};

/* BladeDISC's pair, instead of a file of the dataset. */
enum rp_code rp_replay_open_blade(struct rp_session *s, const char *program, const char *data,
                                  struct rp_err *err);
/* A GraphDef or SavedModel that was loaded; the option --fetch names its outputs. */
enum rp_code rp_replay_open_graph(struct rp_session *s, const struct rp_settings *settings,
                                  struct rp_err *err);
bool rp_replay_is_graph(const struct rp_session *s);

/* What a bundle says of the graph; names and types live as long as the session. fetches: false
   where the user named them. */
struct rp_bundle;
enum rp_code rp_replay_graph_ports(struct rp_session *s, const struct rp_bundle *bundle,
                                   bool fetches, struct rp_err *err);

/* Arguments, and the signature: lowered, or of the feeds as they are. Says in root where they come
   from. */
enum rp_code rp_replay_graph_inputs(struct rp_session *s, const struct rp_session_options *options,
                                    struct rp_replay *root, struct rp_err *err);

/* The graph for TensorFlow: as it is, or with operations in `made` that set its variables from the
   arguments. A SavedModel restores them from its own files, so they are no arguments there. */
enum rp_code rp_replay_graph_module(const struct rp_session *s, struct rp_proto_writer *made,
                                    struct rp_engine_program *out, struct rp_err *err);
/* How many arguments an engine takes. */
size_t rp_replay_narguments(const struct rp_session *s, const struct rp_engine *engine);

/* The expected array of a fetch by one of its names; or NULL. */
struct rp_tensor *rp_replay_graph_expected(const struct rp_session *s, size_t i);

/* The arrays of outputs that an engine gave, where only it knows their types. */
void rp_replay_graph_outputs(struct rp_session *s, struct rp_tensor *const *outputs, size_t n);

void rp_replay_graph_release(struct rp_replay_graph *graph);
