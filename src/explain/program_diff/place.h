/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Says where a change is, in the user's terms: the layer, the loop, the source line. */
#include "explain/program_diff/match.h"

struct rp_repeat {
    uint64_t kind;         /* the same for all similar operations */
    uint32_t index, count; /* 1-based, in data-flow order; count 1 means that it is unique */
    uint32_t off;          /* difference between the count and the number of layers */
};

/*
 * Finds the repeat of every operation of a computation, starting with its first one; in the arena,
 * together with about 100 bytes of scratch for each operation.
 */
enum rp_code rp_repeats_find(const struct rp_match_side *side, uint32_t computation,
                             struct rp_arena *arena, struct rp_repeat **out, struct rp_err *err);

struct rp_op_place {
    const char *scope;       /* the user's name: "net/layer_17/attn"; or "" */
    struct rp_repeat repeat; /* used if there are no names; count 1: not repeated */
    int64_t loop;     /* trip count of the enclosing loop; 1 if there is none, or it is not known */
    const char *file; /* without folders; "" if it is not known */
    int32_t line;
};

struct rp_place_finder {
    const struct rp_match *match;
    struct rp_arena *arena;
    struct rp_err *err;
    struct rp_repeat **repeats[2]; /* by computation, computed on demand */
    uint32_t *caller[2];           /* by computation: an operation that calls it, or RP_NONE */
};

enum rp_code rp_place_finder_init(struct rp_place_finder *placer, const struct rp_match *match,
                                  struct rp_arena *arena, struct rp_err *err);

/* The place of a pair of operations, or of one that only one side has (RP_NONE for the other). What
   is not known about the operation itself is taken from its neighbours. */
enum rp_code rp_place_find(struct rp_place_finder *placer, uint32_t left, uint32_t right,
                           struct rp_op_place *out);

/* Writes where all of these are as one text; "" if nothing is known. In the arena. */
const char *rp_places_words(const struct rp_op_place *places, size_t n, struct rp_arena *arena);
