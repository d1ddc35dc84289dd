/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inputs and outputs of a TensorFlow program as tensor names: the signature of a SavedModel, or the
 * placeholders and unused outputs of a GraphDef.
 */
#include "base/hash.h"
#include "base/vec.h"
#include "formats/tensorflow/tensor.h"
#include "io/proto.h"

struct rp_tf_port_name {
    const char *name;   /* what people call it: "x" */
    const char *tensor; /* in the graph: "serving_default_x:0" */
    uint64_t type;      /* TensorFlow's number; 0: not said */
    uint64_t index;     /* of an argument or result of a function's body */
    bool has_shape;     /* every dimension is said: */
    uint32_t rank;
    int64_t dims[RP_TF_RANK];
};

struct rp_tf_ports {
    struct rp_bytes graph; /* GraphDef, in the bytes given */
    const char *signature; /* of a SavedModel; NULL: it is a plain graph */
    bool has_variables;    /* values are in files beside it */
    RP_VEC(struct rp_tf_port_name) feeds, fetches;
    RP_VEC(struct rp_tf_port_name) variables; /* name: what it is shared by, else the node's */
};

/* bytes: a GraphDef, or where saved is set a SavedModel. signature: NULL for "serving_default",
   else the only one. Names are in the arena. Released in every case by rp_tf_ports_release. */
enum rp_code rp_tf_ports_find(struct rp_bytes bytes, bool saved, const char *signature,
                              struct rp_arena *arena, struct rp_tf_ports *out, struct rp_err *err);
/* Feeds that these fetches do not need go; variables become those that they need. */
enum rp_code rp_tf_ports_narrow(struct rp_tf_ports *ports, const char *const *fetches, size_t n,
                                struct rp_arena *arena, struct rp_err *err);
void rp_tf_ports_release(struct rp_tf_ports *ports);
