/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds which value of a checkpoint each variable of a TensorFlow graph is restored from, according
   to the nodes that restore them. */
#include "base/arena.h"
#include "base/vec.h"
#include "io/proto.h"

struct rp_tf_restored {
    struct rp_bytes node; /* the variable's */
    const char *key;      /* key in the checkpoint; in the arena */
};
struct rp_tf_restores {
    RP_VEC(struct rp_tf_restored) list;
};

/* graph is a GraphDef. Call rp_vec_release(&out->list) in every case. */
enum rp_code rp_tf_restores_find(struct rp_bytes graph, struct rp_arena *arena,
                                 struct rp_tf_restores *out, struct rp_err *err);

/* The key of a variable; NULL if the graph does not restore it. */
const char *rp_tf_restored_key(const struct rp_tf_restores *restores, const char *tensor);
