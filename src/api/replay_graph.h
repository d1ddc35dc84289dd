/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_API_REPLAY_GRAPH_H
#define RP_API_REPLAY_GRAPH_H
/*
 * Replays of TensorFlow's programs: BladeDISC's pair, a GraphDef, a SavedModel. The engine tf takes
 * the graph; for the others it is lowered to HLO, once the shapes of its inputs are known.
 */
#include "api/replay_session.h"
#include "formats/lower_tf.h"
#include "formats/tensor_blade.h"
#include "formats/tf_ports.h"
#include "result/settings.h"

struct rp_replay_graph {
    bool used; /* the session's program is such a one */
    struct rp_blade blade;
    struct rp_tf_ports ports;
    struct rp_bytes graph; /* GraphDef */
    const char **feeds, **fetches;
    size_t nfeeds, nfetches;
    const char *saved_folder;
    struct rp_lowered lowered;
    struct rp_err why; /* it could not be lowered */
};

/* BladeDISC's pair, instead of a file of the dataset. */
enum rp_code rp_replay_open_blade(struct rp_session *s, const char *program, const char *data,
                                  struct rp_err *err);
/* A GraphDef or SavedModel that was loaded; the option --fetch names its outputs. */
enum rp_code rp_replay_open_graph(struct rp_session *s, const struct rp_settings *settings,
                                  struct rp_err *err);
bool rp_replay_is_graph(const struct rp_session *s);

/* Arguments, and the signature: lowered, or of the feeds as they are. */
enum rp_code rp_replay_graph_inputs(struct rp_session *s, const char *inputs, struct rp_err *err);

/* The arrays of outputs that an engine gave, where only it knows their types. */
void rp_replay_graph_outputs(struct rp_session *s, struct rp_tensor *const *outputs, size_t n);

void rp_replay_graph_release(struct rp_replay_graph *graph);

#endif
