/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes hashes that do not depend on parameter numbers, in three passes. Up: every operation is
 * hashed with its operands, and all parameters of a shape are equal. Down: every operation gets the
 * sum of its uses, each by user and position, so that equal parameters of the first and the second
 * layer get different values. Up again: these values replace the parameter numbers. Linear.
 */
#include "explain/program_diff/match.h"

#include "program/opcodes.h"
#include "program/order.h"

struct canon {
    const struct rp_match_side *side;
    const struct rp_computation *c;
    const uint32_t *order;
    uint64_t *up, *down, *known; /* by operation of the program */
};

/* The hash of an operation from those of its operands. */
static uint64_t combine_operands(const struct canon *t, uint32_t op, const uint64_t *hashes)
{
    const struct rp_match_side *s = t->side;
    struct rp_ids operands = rp_op_operands(s->p, op), called = rp_op_called(s->p, op);
    uint32_t from = s->p->operand_begin.at[op];
    uint64_t hash = s->hashes.local[op];

    for (uint32_t i = 0; i < operands.n; i++) {
        hash = rp_hash_join(hash, hashes[operands.at[i]]);
        if (s->p->operand_index.n)
            hash = rp_hash_join(hash, s->p->operand_index.at[from + i]);
    }
    for (uint32_t i = 0; i < called.n; i++)
        hash = rp_hash_join(hash, s->hashes.computation[called.at[i]]);
    return hash;
}

static uint64_t hash_computation(const struct canon *t)
{
    const struct rp_program *p = t->side->p;
    uint64_t sum = 0;

    for (uint32_t k = 0; k < t->c->n; k++)
        t->up[t->order[k]] = combine_operands(t, t->order[k], t->up);
    if (t->c->root != RP_NONE)
        t->down[t->c->root] += 1;
    for (uint32_t k = t->c->n; k-- > 0;) {
        uint32_t op = t->order[k];
        struct rp_ids operands = rp_op_operands(t->side->p, op);
        uint64_t use = rp_hash_join(t->up[op], t->down[op]);

        for (uint32_t i = 0; i < operands.n; i++)
            t->down[operands.at[i]] += rp_hash_join(use, i + 1);
    }
    for (uint32_t k = 0; k < t->c->n; k++) {
        uint32_t op = t->order[k];

        t->known[op] = p->code.at[op] == RP_OP_PARAMETER ? rp_hash_join(t->up[op], t->down[op])
                                                         : combine_operands(t, op, t->known);
        if (p->code.at[op] != RP_OP_GET_TUPLE_ELEMENT)
            sum += rp_hash_u64(t->known[op]);
    }
    return rp_hash_join(t->c->root == RP_NONE ? 0 : t->known[t->c->root], sum);
}

enum rp_code rp_canonical_hash(const struct rp_match_side *side, uint32_t computation,
                               struct rp_arena *arena, uint64_t *hash, uint64_t **anonymous,
                               struct rp_err *err)
{
    const struct rp_program *p = side->p;
    uint32_t entry = computation == RP_NONE ? p->entry : computation;
    size_t n = (size_t)p->nops + 1;
    struct canon t = {.side = side};
    uint32_t *order = RP_ARENA_NEW(arena, uint32_t, n);

    t.up = RP_ARENA_NEW(arena, uint64_t, n);
    t.down = RP_ARENA_NEW(arena, uint64_t, n);
    t.known = RP_ARENA_NEW(arena, uint64_t, n);
    RP_TRY(rp_err_need(order && t.up && t.down && t.known, err, "comparing programs"));
    *hash = 0;
    if (anonymous)
        *anonymous = t.up;
    if (entry == RP_NONE)
        return RP_OK;
    t.c = &p->computations.at[entry];
    t.order = order;
    if (t.c->n)
        RP_TRY(rp_computation_order(p, entry, arena, order, err));
    *hash = hash_computation(&t);
    for (uint32_t c = 0; computation == RP_NONE && c < p->computations.n; c++)
        if (!side->hashes.reachable[c])
            *hash += rp_hash_u64(side->hashes.computation[c]);
    return RP_OK;
}
