/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes constants of TensorFlow graphs HLO constants. The program borrows the bytes of the graph if
 * it contains them in the same form.
 */
#include "lower/inner.h"

#include <string.h>

void rp_lower_know_ints(struct rp_lower *l, const struct rp_tf_value *v, size_t most,
                        struct rp_lower_value *out)
{
    if ((v->elem != RP_ELEM_S32 && v->elem != RP_ELEM_S64 && v->elem != RP_ELEM_PRED) ||
        v->n > most || !v->data)
        return;
    int64_t *ints = RP_ARENA_NEW(&l->arena, int64_t, v->n + 1);
    for (size_t i = 0; ints && i < v->n; i++) {
        int32_t small;

        if (v->elem == RP_ELEM_S64) {
            memcpy(&ints[i], v->data + 8 * i, 8);
        } else if (v->elem == RP_ELEM_PRED) {
            ints[i] = v->data[i] != 0;
        } else {
            memcpy(&small, v->data + 4 * i, 4);
            ints[i] = small;
        }
    }
    out->ints = ints;
    out->nints = v->n;
}

enum rp_code rp_lower_constant(struct rp_lower *l, const struct rp_lower_node *node,
                               struct rp_lower_value *out)
{
    struct rp_bytes tensor = rp_lower_attr_tensor(node, "value");
    struct rp_tf_value v;
    enum rp_code code = rp_tf_value_decode(tensor, 0, NULL, &l->builder.program->arena, &v, l->err);

    if (code != RP_OK)
        return rp_err_prefix(l->err, code, "constant '%.*s'", (int)(node->name.n & 255),
                             (const char *)node->name.at);
    if (v.elem == RP_ELEM_PRED) {
        /* Booleans are 0 and 1 in HLO; TensorFlow treats any other byte as true. */
        uint8_t *bytes = rp_arena_alloc(&l->builder.program->arena, v.nbytes + 1, 1);

        RP_TRY(rp_err_need(bytes, l->err, "lowering a constant"));
        for (size_t i = 0; i < v.nbytes; i++)
            bytes[i] = v.data[i] != 0;
        v.data = bytes;
    }
    *out = rp_lower_like(l, v.elem, v.dims, v.rank);
    rp_lower_literal(l, out, v.data, v.nbytes);
    rp_lower_know_ints(l, &v, RP_LOWER_KNOWN, out);
    return RP_OK;
}
