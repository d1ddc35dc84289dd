/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a program takes and gives, as flat lists of arrays: tuples are opened depth first, tokens
   left out. */
#include "base/arena.h"
#include "program/program.h"

struct rp_slot {
    uint8_t elem;
    uint32_t rank;
    const int64_t *dims; /* borrowed from the program */
    uint32_t shape;      /* of the program */
    uint32_t op;         /* the parameter; for outputs, the operation that makes it */
};
struct rp_signature {
    struct rp_slot *in, *out;
    size_t nin, nout;
    unsigned partitions; /* partitions times replicas, as the program states */
};

/* In the arena. */
enum rp_code rp_signature_find(const struct rp_program *p, struct rp_arena *arena,
                               struct rp_signature *out, struct rp_err *err);

/* Finds how precise each output can be: the float type with the fewest bits that is computed or
   rounded to on the way to it; RP_ELEM_INVALID if there is none. sig->nout entries, in the
   arena. */
enum rp_code rp_precision_find(const struct rp_program *p, const struct rp_signature *sig,
                               struct rp_arena *arena, const uint8_t **out, struct rp_err *err);
