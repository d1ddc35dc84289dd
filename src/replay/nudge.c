/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how far the outputs of a program move if its numbers change by about a unit in the last
 * place: its inputs, and the constants inside of its loops, where rounding errors of successive
 * steps meet. A loop that forgets where it began (x = 0.999 x + 0.1) would not move otherwise, and
 * yet two right ways to compute it end far apart.
 */
#include "program/floats.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "replay/trial.h"

#include <math.h>
#include <string.h>

#define MOST_ELEMENTS 1024 /* of a constant */

/* Changes every number of a float or complex array, up or down. */
static enum rp_code nudged(const struct rp_tensor *t, uint64_t *state, struct rp_tensor **out,
                           struct rp_err *err)
{
    unsigned real = t->elem == RP_ELEM_C64    ? RP_ELEM_F32
                    : t->elem == RP_ELEM_C128 ? RP_ELEM_F64
                                              : t->elem;
    size_t parts = real == t->elem ? 1 : 2, unit = t->unit / parts;
    double step = ldexp(1, -rp_elem_mantissa(real) - 1);

    RP_TRY(rp_tensor_new(t->elem, t->dims, t->rank, out, err));
    for (size_t i = 0; i < t->n * parts; i++) {
        uint64_t bits = 0;

        memcpy(&bits, t->data + i * unit, unit);
        double x = rp_float_decode(real, bits);
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint64_t changed = rp_float_encode(real, x + (*state >> 63 ? 1.4 : -1.4) * step * fabs(x));
        if (!isfinite(rp_float_decode(real, changed)))
            changed = bits;
        memcpy((*out)->data + i * unit, &changed, unit);
    }
    return RP_OK;
}

static bool is_nudged(unsigned elem)
{
    return rp_elem_is_float(elem) || rp_elem_is_complex(elem);
}

/* ---- constants of loops ---- */

/* Lists the computations that loops call, and those that these call; returns their number. */
static size_t list_inside(const struct rp_program *p, uint32_t *list, bool *listed)
{
    size_t n = 0;

    for (uint32_t op = 0; op < p->nops; op++)
        for (uint32_t i = 0; p->code.at[op] == RP_OP_WHILE && i < rp_op_called(p, op).n; i++) {
            uint32_t id = rp_op_called(p, op).at[i];

            if (!listed[id])
                list[n++] = id;
            listed[id] = true;
        }
    for (size_t k = 0; k < n; k++) {
        const struct rp_computation *c = &p->computations.at[list[k]];

        for (uint32_t op = c->first; op < c->first + c->n; op++)
            for (uint32_t i = 0; i < rp_op_called(p, op).n; i++) {
                uint32_t id = rp_op_called(p, op).at[i];

                if (!listed[id])
                    list[n++] = id;
                listed[id] = true;
            }
    }
    return n;
}

static enum rp_code nudge_literal(const struct rp_program *p, struct rp_literal *literal,
                                  uint64_t *state, struct rp_arena *arena, struct rp_err *err)
{
    const struct rp_op_shape *s = &p->shapes.at[literal->shape];
    int64_t n = s->elem == RP_ELEM_TUPLE ? 0 : rp_shape_elements(p, literal->shape);
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *values = NULL, *changed = NULL;

    if (n < 1 || n > MOST_ELEMENTS || !is_nudged(s->elem) || !rp_literal_unit(s->elem) ||
        !(s->flags & RP_SHAPE_DEFAULT_LAYOUT) || !rp_literal_known(p, literal))
        return RP_OK;
    RP_TRY(rp_tensor_new(s->elem, &n, 1, &values, err));
    RP_TRY(rp_literal_decode(p, literal, values->data, rp_tensor_bytes(values), err));
    RP_TRY(nudged(values, state, &changed, err));
    literal->n = rp_tensor_bytes(changed);
    literal->at = rp_arena_copy(arena, (const char *)changed->data, literal->n);
    literal->form = RP_LITERAL_RAW;
    return rp_err_need(literal->at, err, "measuring sensitivity");
}

/* Makes a program with other literals, in the arena; everything else is shared. */
static enum rp_code nudge_constants(const struct rp_program *p, uint64_t *state,
                                    struct rp_arena *arena, struct rp_program *out,
                                    struct rp_err *err)
{
    uint32_t *list = RP_ARENA_NEW(arena, uint32_t, p->computations.n + 1);
    bool *listed = RP_ARENA_NEW(arena, bool, p->computations.n + 1),
         *done = RP_ARENA_NEW(arena, bool, p->literals.n + 1);

    *out = *p;
    out->literals.at = RP_ARENA_NEW(arena, struct rp_literal, p->literals.n + 1);
    RP_TRY(rp_err_need(list && listed && done && out->literals.at, err, "measuring sensitivity"));
    if (p->literals.n)
        memcpy(out->literals.at, p->literals.at, p->literals.n * sizeof *p->literals.at);
    size_t n = list_inside(p, list, listed);
    for (size_t k = 0; k < n; k++) {
        const struct rp_computation *c = &p->computations.at[list[k]];

        for (uint32_t op = c->first; op < c->first + c->n; op++) {
            size_t at = (size_t)p->value.at[op];

            if (p->code.at[op] != RP_OP_CONSTANT || at >= p->literals.n || done[at])
                continue;
            done[at] = true;
            RP_TRY(nudge_literal(p, &out->literals.at[at], state, arena, err));
        }
    }
    return RP_OK;
}

enum rp_code rp_trial_nudged(const struct rp_trial_engine *on, const struct rp_trial_part *part,
                             struct rp_tensors *outputs, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors changed = {0};
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_program other;
    uint64_t state = 1;

    RP_TRY(rp_tensors_new(part->narguments * part->partitions, &changed, err));
    for (size_t i = 0; i < changed.n; i++)
        if (is_nudged(part->arguments[i]->elem))
            RP_TRY(nudged(part->arguments[i], &state, &changed.at[i], err));
        else
            changed.at[i] = rp_tensor_keep(part->arguments[i]);
    RP_TRY(nudge_constants(part->program, &state, &arena, &other, err));
    struct rp_trial_part nudged_part = *part;
    nudged_part.program = &other;
    nudged_part.arguments = changed.at;
    return rp_trial_once(on, &nudged_part, outputs, err);
}
