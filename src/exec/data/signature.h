/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_DATA_SIGNATURE_H
#define RP_EXEC_DATA_SIGNATURE_H
/* What a program takes and gives, as flat lists of arrays: tuples opened depth first, tokens left
   out. */
#include "base/arena.h"
#include "program/program.h"

struct rp_slot {
    uint8_t elem;
    uint32_t rank;
    const int64_t *dims; /* borrowed from the program */
    uint32_t shape;      /* of the program */
    uint32_t op;         /* the parameter; of outputs what makes it */
};
struct rp_signature {
    struct rp_slot *in, *out;
    size_t nin, nout;
    unsigned partitions; /* partitions times replicas that the program says */
};

/* In the arena. */
enum rp_code rp_signature_find(const struct rp_program *p, struct rp_arena *arena,
                               struct rp_signature *out, struct rp_err *err);

#endif
