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
    bool used; /* the session's program is of this kind */
    struct rp_blade blade;
    struct rp_tf_ports ports;
    struct rp_bytes graph; /* GraphDef */
    const char **feeds, **fetches;
    size_t nfeeds, nfetches;
    const char *saved_folder;
    struct rp_program *lowered;
    struct rp_err why;  /* it could not be lowered */
    bool *known;        /* by feed: whether its values may be shapes */
    const char **types; /* by feed, if a bundle states it: "f32[2,3]"; or NULL */
    size_t nvariables;  /* number of feeds, counted from the end, that are variables */
    struct rp_checkpoint *checkpoint; /* the checkpoint with their values, or NULL */
    struct rp_tf_restores restores;
};

/* Opens BladeDISC's pair, instead of a file of the dataset. */
enum rp_code rp_replay_open_blade(struct rp_session *s, const char *program, const char *data,
                                  struct rp_err *err);
/* Uses a GraphDef or SavedModel that was loaded; the option --fetch names its outputs. */
enum rp_code rp_replay_open_graph(struct rp_session *s, const struct rp_settings *settings,
                                  struct rp_err *err);
bool rp_replay_is_graph(const struct rp_session *s);

/* Uses what a bundle says about the graph; names and types live as long as the session. fetches:
   false if the user named them. */
struct rp_bundle;
enum rp_code rp_replay_graph_ports(struct rp_session *s, const struct rp_bundle *bundle,
                                   bool fetches, struct rp_err *err);

/* Makes arguments and the signature: from the lowered graph, or from the feeds alone. Notes in root
   where they come from. */
enum rp_code rp_replay_graph_inputs(struct rp_session *s, const struct rp_session_options *options,
                                    struct rp_replay *root, struct rp_err *err);

/* The graph for TensorFlow: unchanged, or with operations in `made` that set its variables from the
   arguments. A SavedModel restores them from its own files, so there they are not arguments. */
enum rp_code rp_replay_graph_module(const struct rp_session *s, struct rp_proto_writer *made,
                                    struct rp_engine_program *out, struct rp_err *err);
/* The number of arguments that an engine takes. */
size_t rp_replay_narguments(const struct rp_session *s, const struct rp_engine *engine);

/* The expected array of a fetch by one of its names; or NULL. */
struct rp_tensor *rp_replay_graph_expected(const struct rp_session *s, size_t i);

/* Adopts the arrays of outputs from an engine if only the engine knows their types. */
void rp_replay_graph_outputs(struct rp_session *s, struct rp_tensor *const *outputs, size_t n);

void rp_replay_graph_release(struct rp_replay_graph *graph);
