/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares values of two programs. The bounds are those of checks: the differences that rounding in
 * the left program explains, which is measured. Values are computed for groups of operations, each
 * with a run of what leads to them, so that they need not all be in memory.
 */
#include "replay/level.h"
#include "base/arena.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "replay/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_BYTES ((int64_t)512 << 20)

/* ---- judging ---- */

/* The arrays of the same part in both programs. */
struct compared {
    struct rp_trial_part part; /* of the left side */
    const struct rp_tensors *want, *got;
};

static bool is_given(const struct rp_tolerance *t)
{
    return t->absolute >= 0 || t->relative >= 0 || t->ulp >= 0;
}

static void judge_one(const struct rp_pair_search *s, const struct compared *c, size_t i,
                      unsigned through, const struct rp_rounding *rounding, double moved,
                      struct rp_level_verdict *v)
{
    struct rp_tolerance t = s->tolerance;
    double least = is_given(&t) ? 0 : rp_rounding_least(rounding, c->want->at[i], through);

    t.through = through;
    if (least > 0)
        t.rounding = fmax(least, RP_ROUNDING_NUDGES * moved);
    rp_compare(c->got->at[i], c->want->at[i], &t, &v->is);
    v->rounded = !v->is.ok && !v->is.reason && !(least > 0) && isfinite(v->is.max_abs) &&
                 moved * 4 >= v->is.max_abs;
}

/* Judges arrays of narrow types by runs that round differently, whatever the bounds of the type
   say. */
static enum rp_code judge_narrow(const struct rp_pair_search *s, const struct compared *c,
                                 const uint8_t *through, struct rp_arena *arena,
                                 struct rp_level_verdict *v, struct rp_err *err)
{
    struct rp_variants_of of = {s->on, c->part, false};
    size_t n = c->want->n;
    struct rp_variants_verdict *is = RP_ARENA_NEW(arena, struct rp_variants_verdict, n + 1);
    double *least = RP_ARENA_NEW(arena, double, n + 1);
    enum rp_code code = RP_OK;
    bool open = false;

    RP_TRY(rp_err_need(is && least, err, "comparing values"));
    for (size_t i = 0; i < n; i++) {
        least[i] = rp_variants_least(c->want->at[i], through[i % (n / c->part.partitions)]);
        if (v[i].is.reason || v[i].is.max_abs <= least[i])
            least[i] = 0;
        open |= least[i] > 0;
    }
    if (open)
        code = rp_variants_decide(&of, c->got->at, c->want->at, least, n, is, err);
    if (rp_trial_is_ours(code))
        return code;
    for (size_t i = 0; i < n; i++) /* nothing is known if our engine cannot run it */
        if (is[i].known) {
            v[i].rounded = !is[i].why && !v[i].is.ok;
            v[i].is.ok = v[i].is.ok && !is[i].why;
            if (is[i].why)
                v[i].is.wrong = is[i].wrong ? is[i].wrong : v[i].is.n;
        }
    return RP_OK;
}

/* Whether arrays agree. How far rounding moves them is measured only if that decides. */
static enum rp_code judge(const struct rp_pair_search *s, const struct compared *c,
                          struct rp_level_verdict *v, struct rp_err *err)
{
    size_t n = c->want->n, each = n / c->part.partitions;
    struct rp_rounding rounding = rp_rounding_of(c->part.program);
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    const uint8_t *through = NULL;
    struct rp_signature sig;
    double *moved = RP_ARENA_NEW(&arena, double, n + 1);
    bool open = false;

    RP_TRY(rp_err_need(moved, err, "comparing values"));
    RP_TRY(rp_signature_find(c->part.program, &arena, &sig, err));
    RP_TRY(rp_precision_find(c->part.program, &sig, &arena, &through, err));
    for (size_t i = 0; i < n; i++) {
        judge_one(s, c, i, through[i % each], &rounding, 0, &v[i]);
        open |= !v[i].is.ok && !v[i].is.reason;
    }
    if (open && !is_given(&s->tolerance)) {
        RP_TRY(rp_trial_sensitivity(s->on, &c->part, moved, n, err));
        for (size_t i = 0; i < n; i++)
            if (!v[i].is.ok)
                judge_one(s, c, i, through[i % each], &rounding, moved[i], &v[i]);
    }
    if (!is_given(&s->tolerance))
        RP_TRY(judge_narrow(s, c, through, &arena, v, err));
    return RP_OK;
}

/* ---- running ---- */

void rp_level_side_release(struct rp_level_side *s)
{
    if (s->values.p)
        rp_values_release(&s->values);
    rp_program_free(s->flat);
    free(s->order);
    free(s->keep);
    free(s->reached);
    free(s->stack);
}

enum rp_code rp_level_side_init(struct rp_level_side *s, const struct rp_pair_search *search,
                                int which, struct rp_err *err)
{
    const struct rp_trial_part *given = &search->side[which];
    struct rp_search of = {.arguments = given->arguments,
                           .narguments = given->narguments,
                           .partitions = given->partitions};
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;

    RP_TRY(rp_program_flatten(given->program, 0, &s->flat, err));
    of.program = s->flat;
    s->entry = &s->flat->computations.at[s->flat->entry];
    s->order = calloc((size_t)s->entry->n + 1, sizeof *s->order);
    s->keep = calloc((size_t)s->entry->n + 1, 1);
    s->reached = calloc((size_t)s->entry->n + 1, 1);
    s->stack = calloc((size_t)s->entry->n + 1, sizeof *s->stack);
    RP_TRY(rp_err_need(s->order && s->keep && s->reached && s->stack, err, "comparing programs"));
    RP_TRY(rp_values_init(&s->values, s->flat, given->partitions, err));
    RP_TRY(rp_search_parameters(&of, &s->values, err));

    return rp_computation_order(s->flat, s->flat->entry, &scratch, s->order, err);
}

enum rp_code rp_level_part_run(const struct rp_level *l, struct rp_level_side *s,
                               const uint32_t *ops, size_t n, struct rp_trial_cut *out)
{
    struct rp_cut cut = {s->flat->entry, s->keep, ops, n, false};

    memset(s->keep, 0, s->entry->n);
    for (size_t i = 0; i < n; i++)
        s->keep[ops[i] - s->entry->first] = 1;
    for (uint32_t k = s->entry->n; k-- > 0;) {
        struct rp_ids in = rp_op_operands(s->flat, s->order[k]);

        for (uint32_t i = 0; s->keep[s->order[k] - s->entry->first] && i < in.n; i++)
            s->keep[in.at[i] - s->entry->first] = 1;
    }
    return rp_values_run(&s->values, l->search->on, &cut, out, l->err);
}

/* ---- operations in groups ---- */

/* Marks what `from` depends on; if `stop`, not beyond values that agree. */
void rp_level_mark(const struct rp_level *l, int side, const uint32_t *from, size_t n, bool stop)
{
    const struct rp_level_side *s = &l->side[side];
    size_t depth = 0;

    memset(s->reached, 0, s->entry->n);
    for (size_t i = 0; i < n; i++)
        if (!s->reached[from[i] - s->entry->first]) {
            s->reached[from[i] - s->entry->first] = 1;
            s->stack[depth++] = from[i];
        }
    while (depth) {
        uint32_t op = s->stack[--depth];
        struct rp_ids in = rp_op_operands(s->flat, op);

        if (stop && s->agreed[op])
            continue;
        for (uint32_t i = 0; i < in.n; i++)
            if (!s->reached[in.at[i] - s->entry->first]) {
                s->reached[in.at[i] - s->entry->first] = 1;
                s->stack[depth++] = in.at[i];
            }
    }
}

/* Compares the results of both parts array by array; the verdicts are in the order of the
   arrays. */
enum rp_code rp_level_judge(const struct rp_level *l, const struct rp_trial_cut *left,
                            const struct rp_trial_cut *right, struct rp_level_verdict **out)
{
    struct compared c = {rp_trial_cut_part(left, l->search->side[0].partitions), &left->outputs,
                         &right->outputs};

    *out = calloc(c.want->n + 1, sizeof **out);
    RP_TRY(rp_err_need(*out, l->err, "comparing values"));
    return judge(l->search, &c, *out, l->err);
}

static void verdict_join(struct rp_level_verdict *to, const struct rp_level_verdict *v)
{
    to->is.ok &= v->is.ok;
    to->rounded |= v->rounded;
    to->is.max_abs = fmax(to->is.max_abs, v->is.max_abs);
    to->is.max_rel = fmax(to->is.max_rel, v->is.max_rel);
    to->is.wrong += v->is.wrong;
    to->is.n += v->is.n;
    to->is.reason = v->is.reason ? v->is.reason : to->is.reason;
}

static enum rp_code group_run(struct rp_level *l)
{
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut left = {0}, right = {0};
    RP_FREED struct rp_level_verdict *v = NULL;
    const struct rp_level_side *s = &l->side[0];
    size_t partitions = l->search->side[0].partitions, at = 0;

    if (!l->ngroup)
        return RP_OK;
    RP_TRY(rp_level_part_run(l, &l->side[0], l->group[0], l->ngroup, &left));
    RP_TRY(rp_level_part_run(l, &l->side[1], l->group[1], l->ngroup, &right));
    size_t each = left.outputs.n / partitions;
    if (left.outputs.n != right.outputs.n)
        return rp_err_set(l->err, RP_BUG, "counterparts with different numbers of arrays");
    RP_TRY(rp_level_judge(l, &left, &right, &v));
    /* Combines verdicts of arrays to those of their operations. */
    for (size_t k = 0; k < l->ngroup; k++) {
        uint32_t op = l->group[0][k];
        size_t leaves = rp_shape_leaves(s->flat, s->flat->shape.at[op]);
        struct rp_level_verdict all = {.is = {.ok = true}};

        for (size_t p = 0; p < partitions; p++)
            for (size_t i = 0; i < leaves; i++)
                verdict_join(&all, &v[p * each + at + i]);
        at += leaves;
        l->verdict[op] = all;
        l->state[op] = all.is.ok     ? RP_LEVEL_AGREES
                       : all.rounded ? RP_LEVEL_ROUNDED
                                     : RP_LEVEL_DIFFERS;
        if (all.is.ok)
            l->side[0].agreed[op] = l->side[1].agreed[l->group[1][k]] = 1;
    }
    l->out->compared += (int64_t)l->ngroup;
    l->ngroup = 0;
    return RP_OK;
}

/* Whether an operation has a value to compare in the computation. */
static bool has_value(const struct rp_level_side *s, uint32_t op)
{
    return s->reached[op - s->entry->first] && s->flat->code.at[op] != RP_OP_PARAMETER &&
           s->flat->code.at[op] != RP_OP_TUPLE && rp_shape_leaves(s->flat, s->flat->shape.at[op]);
}

/* Compares all counterparts on which differing results depend, unless that was done. */
static enum rp_code compare_pairs(struct rp_level *l)
{
    struct rp_level_side *s = &l->side[0];
    int64_t bytes = 0;

    for (uint32_t k = 0; k < s->entry->n; k++) {
        uint32_t op = s->order[k];

        if (!has_value(s, op) || s->match[op] == RP_NONE || l->state[op] != RP_LEVEL_UNPAIRED)
            continue;
        l->group[0][l->ngroup] = op;
        l->group[1][l->ngroup++] = s->match[op];
        bytes += rp_shape_bytes(s->flat, s->flat->shape.at[op]);
        if (bytes > GROUP_BYTES) {
            RP_TRY(group_run(l));
            bytes = 0;
        }
    }
    return group_run(l);
}

/* ---- the same value under another name ---- */

/* Makes prints of the values of operations without a counterpart; *n of them, in the arena. */
static enum rp_code prints_make(struct rp_level *l, int side, struct rp_value_print **out,
                                size_t *n)
{
    struct rp_level_side *s = &l->side[side];
    uint32_t *ops = l->group[side];
    size_t count = 0;
    int64_t bytes = 0;

    *n = 0;
    *out = RP_ARENA_NEW(&l->arena, struct rp_value_print, (size_t)s->entry->n + 1);
    RP_TRY(rp_err_need(*out, l->err, "comparing programs"));
    for (uint32_t k = 0; k < s->entry->n; k++) {
        uint32_t op = s->order[k];
        bool wanted = has_value(s, op) && s->match[op] == RP_NONE &&
                      s->flat->shapes.at[s->flat->shape.at[op]].elem != RP_ELEM_TUPLE;

        if (wanted) {
            ops[count++] = op;
            bytes += rp_shape_bytes(s->flat, s->flat->shape.at[op]);
        }
        if (count && (bytes > GROUP_BYTES || k + 1 == s->entry->n)) {
            RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut part = {0};

            RP_TRY(rp_level_part_run(l, s, ops, count, &part));
            for (size_t i = 0; i < count; i++) {
                struct rp_value_print *print = &(*out)[*n];

                print->op = ops[i];
                print->shape = rp_pair_shape(s->flat, s->flat->shape.at[ops[i]]);
                *n += rp_value_print(part.outputs.at[i], print);
            }
            count = 0;
            bytes = 0;
        }
    }
    return RP_OK;
}

/* Pairs values that have no counterpart by name. If values with equal sums turn out to differ, they
   have no counterpart. */
static enum rp_code compare_values(struct rp_level *l)
{
    struct rp_level_side *s = l->side;
    uint32_t *match[2] = {s[0].match, s[1].match};
    struct rp_value_print *print[2];
    size_t n[2];
    uint32_t *known = RP_ARENA_NEW(&l->arena, uint32_t, (size_t)s->flat->nops + 1);

    RP_TRY(rp_err_need(known, l->err, "comparing programs"));
    memcpy(known, match[0], s->flat->nops * sizeof *known);
    for (int k = 0; k < 2; k++)
        RP_TRY(prints_make(l, k, &print[k], &n[k]));
    rp_pair_values(print[0], n[0], print[1], n[1], match);
    RP_TRY(compare_pairs(l));
    for (uint32_t op = 0; op < s->flat->nops; op++)
        if (known[op] == RP_NONE && match[0][op] != RP_NONE && l->state[op] != RP_LEVEL_AGREES) {
            match[1][match[0][op]] = RP_NONE;
            match[0][op] = RP_NONE;
            l->state[op] = RP_LEVEL_UNPAIRED;
        }
    return RP_OK;
}

enum rp_code rp_level_compare(struct rp_level *l, const uint32_t *results, size_t n)
{
    struct rp_level_side *s = l->side;
    const uint32_t *roots = &s[1].entry->root;
    uint32_t *match[2] = {s[0].match, s[1].match};

    rp_level_mark(l, 0, results, n, false);
    rp_level_mark(l, 1, roots, 1, false);
    RP_TRY(compare_pairs(l));
    for (uint32_t op = s[1].entry->first; op < s[1].entry->first + s[1].entry->n; op++)
        if (match[1][op] != RP_NONE && s[0].agreed[match[1][op]])
            s[1].agreed[op] = 1;
    RP_TRY(compare_values(l));
    for (uint32_t op = 0; op < s->flat->nops; op++)
        l->known[op] = match[0][op] != RP_NONE;
    RP_TRY(rp_pair_similar(s[0].flat, s[1].flat, match, l->err));
    RP_TRY(compare_pairs(l));
    for (uint32_t op = s->entry->first; op < s->entry->first + s->entry->n; op++)
        l->out->unpaired += has_value(s, op) && s->match[op] == RP_NONE &&
                            !(rp_op_info[s->flat->code.at[op]].flags & RP_OPF_FREE);
    return RP_OK;
}
