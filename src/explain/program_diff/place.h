/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a change is, as the user knows it: the layer, the loop, the source line. */
#include "explain/program_diff/match.h"

struct rp_repeat {
    uint64_t kind;         /* the same for all similar operations */
    uint32_t index, count; /* 1-based, in data-flow order; count 1: unique */
    uint32_t off;          /* difference between the count and the number of layers */
};

/*
 * Of every operation of a computation, from its first one; in the arena, with the scratch it takes
 * (about 100 bytes an operation).
 */
enum rp_code rp_repeats_find(const struct rp_match_side *side, uint32_t computation,
                             struct rp_arena *arena, struct rp_repeat **out, struct rp_err *err);

struct rp_op_place {
    const char *scope;       /* named by the user: "net/layer_17/attn"; or "" */
    struct rp_repeat repeat; /* where there are no names; count 1: not repeated */
    int64_t loop;            /* trip count of the enclosing loop; 1: no loop, or not known */
    const char *file;        /* without folders; "" where it is not known */
    int32_t line;
};

struct rp_place_finder {
    const struct rp_match *match;
    struct rp_arena *arena;
    struct rp_err *err;
    struct rp_repeat **repeats[2]; /* of computations, computed on demand */
    uint32_t *caller[2];           /* of computations: an operation that calls it, or RP_NONE */
};

enum rp_code rp_place_finder_init(struct rp_place_finder *placer, const struct rp_match *match,
                                  struct rp_arena *arena, struct rp_err *err);

/* Of a pair of operations, or of one that only one side has (RP_NONE for the other). What an
   operation does not know of itself is taken from its neighbours. */
enum rp_code rp_place_find(struct rp_place_finder *placer, uint32_t left, uint32_t right,
                           struct rp_op_place *out);

/* Where all of these are, as one text; "" where nothing is known. In the arena. */
const char *rp_places_words(const struct rp_op_place *places, size_t n, struct rp_arena *arena);
