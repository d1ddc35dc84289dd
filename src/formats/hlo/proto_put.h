/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_HLO_PROTO_PUT_H
#define RP_FORMATS_HLO_PROTO_PUT_H
/* What the two halves of the HLO protobuf writer share. */
#include "formats/hlo/proto.h"

struct hlo_put {
    const struct rp_program *p;
    struct rp_proto_writer *w;
    struct rp_err *err;
    bool complete; /* for a compiler: shapes have layouts, constants have values */
    uint8_t *seen; /* for a compiler: strings that are names of instructions already */
};

/* As protobuf names them: (computation's id << 32) | number in it. */
static inline uint64_t hlo_put_id(const struct rp_program *p, uint32_t op)
{
    uint32_t c = p->computation.at[op];

    return ((uint64_t)c + 1) << 32 | (op - p->computations.at[c].first);
}

void hlo_put_shape(const struct hlo_put *put, uint32_t field, uint32_t shape);
enum rp_code hlo_put_literal(const struct hlo_put *put, uint32_t op);
/* All attributes of an instruction. */
enum rp_code hlo_put_attrs(const struct hlo_put *put, uint32_t op);
/* input_output_alias of a module. */
void hlo_put_module_aliases(const struct hlo_put *put, const struct rp_attr *attr);
/* "key=value" in our own field. */
enum rp_code hlo_put_own(const struct hlo_put *put, const struct rp_attr *attr);

#endif
