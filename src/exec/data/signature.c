/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the arrays of the entry's parameters and its root. */
#include "exec/data/signature.h"
#include "program/opcodes.h"

#include "exec/data/groups.h"
#include "program/cut.h"

#include <string.h>

static void slots_fill(const struct rp_program *p, uint32_t shape, uint32_t op, struct rp_slot **at)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem == RP_ELEM_TUPLE) {
        for (uint32_t i = 0; i < s->n; i++)
            slots_fill(p, p->parts.at[s->first + i], op, at);
    } else if (rp_elem_bits(s->elem)) {
        *(*at)++ = (struct rp_slot){s->elem, s->n, s->n ? p->dims.at + s->first : NULL, shape, op};
    }
}

/* Lists the root, or its parts if it is a tuple that is made there. */
static size_t slots_outputs(const struct rp_program *p, const struct rp_computation *c,
                            struct rp_slot *at)
{
    const struct rp_op_shape *root = &p->shapes.at[p->shape.at[c->root]];
    struct rp_ids operands = rp_op_operands(p, c->root);

    if (at && p->code.at[c->root] == RP_OP_TUPLE && root->elem == RP_ELEM_TUPLE &&
        root->n == operands.n)
        for (uint32_t i = 0; i < operands.n; i++)
            slots_fill(p, p->parts.at[root->first + i], operands.at[i], &at);
    else if (at)
        slots_fill(p, p->shape.at[c->root], c->root, &at);
    return rp_shape_leaves(p, p->shape.at[c->root]);
}

enum rp_code rp_signature_find(const struct rp_program *p, struct rp_arena *arena,
                               struct rp_signature *out, struct rp_err *err)
{
    memset(out, 0, sizeof *out);
    if (p->entry == RP_NONE || p->entry >= p->computations.n ||
        (strcmp(p->language, "hlo") != 0 && strcmp(p->language, "stablehlo") != 0))
        return rp_err_set(err, RP_FORMAT, "not an HLO program with an entry computation");
    const struct rp_computation *c = &p->computations.at[p->entry];
    if (!c->n || c->root < c->first || c->root - c->first >= c->n)
        return rp_err_set(err, RP_FORMAT, "the entry computation has no result");
    uint32_t *params = RP_ARENA_NEW(arena, uint32_t, c->nparams + 1);
    RP_TRY(rp_err_need(params, err, "looking at parameters"));
    for (uint32_t i = c->first; i < c->first + c->n; i++)
        if (p->code.at[i] == RP_OP_PARAMETER && p->value.at[i] >= 0 &&
            p->value.at[i] < (int64_t)c->nparams) {
            params[p->value.at[i]] = i;
            out->nin += rp_shape_leaves(p, p->shape.at[i]);
        }
    out->nout = slots_outputs(p, c, NULL);
    out->in = RP_ARENA_NEW(arena, struct rp_slot, out->nin + 1);
    out->out = RP_ARENA_NEW(arena, struct rp_slot, out->nout + 1);
    RP_TRY(rp_err_need(out->in && out->out, err, "looking at parameters"));
    struct rp_slot *at = out->in;
    for (uint32_t i = 0; i < c->nparams; i++)
        slots_fill(p, p->shape.at[params[i]], params[i], &at);
    slots_outputs(p, c, out->out);
    out->partitions = rp_program_runs(p);
    return RP_OK;
}
