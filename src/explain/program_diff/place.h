/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_PLACE_H
#define RP_EXPLAIN_PROGRAM_DIFF_PLACE_H
/* Where a change is, in the words of the user: the layer, the loop, the line of the program. */
#include "explain/program_diff/repeat.h"

struct rp_place {
    const char *scope;       /* what the user named it: "net/layer_17/attn"; "" */
    struct rp_repeat repeat; /* where nothing has a name; count 1: not repeated */
    int64_t loop;            /* how often the loop around it runs; 1: no loop, or not known */
    const char *file;        /* without folders; "" where it is not known */
    int32_t line;
};

struct rp_placer {
    const struct rp_match *match;
    struct rp_arena *arena;
    struct rp_err *err;
    struct rp_repeat **repeats[2]; /* of computations, once they were asked for */
    uint32_t *caller[2];           /* of computations: an operation that calls it, or RP_NONE */
};

enum rp_code rp_placer_init(struct rp_placer *placer, const struct rp_match *match,
                            struct rp_arena *arena, struct rp_err *err);

/* Of a pair of operations, or of one that only one side has (RP_NONE for the other). What an
   operation does not know of itself is taken from its neighbours. */
enum rp_code rp_place_find(struct rp_placer *placer, uint32_t left, uint32_t right,
                           struct rp_place *out);

/* Where all of these are, as one text; "" where nothing is known. In the arena, NULL: no memory. */
const char *rp_places_words(const struct rp_place *places, size_t n, struct rp_arena *arena);

#endif
