/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two halves of the HLO protobuf writer share. */
#include "formats/hlo/proto.h"

struct rp_hlo_writer {
    const struct rp_program *p;
    struct rp_proto_writer *w;
    struct rp_err *err;
    bool complete; /* for a compiler: a constant without its values is an error */
    uint8_t *seen; /* strings that are names of instructions already */
};

/* The id in a protobuf: (computation's id << 32) | number in it. */
static inline uint64_t rp_hlo_write_id(const struct rp_program *p, uint32_t op)
{
    uint32_t c = p->computation.at[op];

    return ((uint64_t)c + 1) << 32 | (op - p->computations.at[c].first);
}

void rp_hlo_write_shape(const struct rp_hlo_writer *put, uint32_t field, uint32_t shape);
/* Puts all attributes of an instruction. */
enum rp_code rp_hlo_write_attrs(const struct rp_hlo_writer *put, uint32_t op);
/* Puts input_output_alias of a module. */
/* Returns RP_UNSUPPORTED unless the program is HLO, or StableHLO with operations that HLO has. */
enum rp_code rp_hlo_writable(const struct rp_program *p, struct rp_err *err);
/* Puts frontend attributes of an instruction or a module. */
void rp_hlo_write_map(const struct rp_hlo_writer *put, uint32_t field, const struct rp_attr *attr);
void rp_hlo_write_module_aliases(const struct rp_hlo_writer *put, const struct rp_attr *attr);
/* Puts "key=value" into our own field. */
enum rp_code rp_hlo_write_own(const struct rp_hlo_writer *put, const struct rp_attr *attr);
