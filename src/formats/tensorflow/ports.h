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
    const char *name;   /* the name that people use: "x" */
    const char *tensor; /* the name in the graph: "serving_default_x:0" */
    uint64_t type;      /* TensorFlow's number; 0: not stated */
    uint64_t index;     /* number of an argument or result of a function's body */
    bool has_shape;     /* every dimension is stated: */
    uint32_t rank;
    int64_t dims[RP_TF_RANK];
};

struct rp_tf_ports {
    struct rp_bytes graph; /* a GraphDef inside the given bytes */
    const char *signature; /* signature of a SavedModel; NULL for a plain graph */
    bool has_variables;    /* values are in files beside it */
    RP_VEC(struct rp_tf_port_name) feeds, fetches;
    RP_VEC(struct rp_tf_port_name) variables; /* name: the shared name, or else the node's */
};

/* bytes: a GraphDef, or if `saved` is set, a SavedModel. signature: if NULL, "serving_default" or
   else the only one is used. Names are in the arena. Call rp_tf_ports_release in every case. */
enum rp_code rp_tf_ports_find(struct rp_bytes bytes, bool saved, const char *signature,
                              struct rp_arena *arena, struct rp_tf_ports *out, struct rp_err *err);
/* Drops feeds that these fetches do not need, and keeps only the variables that they need. */
enum rp_code rp_tf_ports_narrow(struct rp_tf_ports *ports, const char *const *fetches, size_t n,
                                struct rp_arena *arena, struct rp_err *err);
void rp_tf_ports_release(struct rp_tf_ports *ports);
