/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `replay isolate A B` finds the first operation at which the values of two programs differ. Both
 * run on the same inputs and the same engine, flattened, and the values of operations that are
 * counterparts (pair.c) are compared. An apparent counterpart may be false, because a compiler
 * reuses names and scopes for what it rewrites. So a difference counts only if it leads to a result
 * that differs, through operations that differ, too, or have no counterpart, and if both are
 * computed from the same values. The first in the order of the left program is the answer. Two
 * loops or branches that differ are entered.
 */
#include "base/arena.h"
#include "program/opcodes.h"
#include "replay/level.h"

#include <math.h>
#include <string.h>

#define MOST_ROWS 20 /* of one kind */

/* ---- the first that counts ---- */

/* Lists the operations of the results that differ, *n of them, in the arena. */
static enum rp_code differing_results(struct rp_level *l, const struct rp_level_verdict *v,
                                      uint32_t **out, size_t *n)
{
    const struct rp_level_side *s = &l->side[0];
    struct rp_ids in = rp_op_operands(s->flat, s->entry->root);
    bool tuple = s->flat->code.at[s->entry->root] == RP_OP_TUPLE;
    size_t at = 0, each = 0;

    if (!tuple)
        in = (struct rp_ids){&s->entry->root, 1};
    *n = 0;
    *out = RP_ARENA_NEW(&l->arena, uint32_t, (size_t)in.n + 1);
    RP_TRY(rp_err_need(*out, l->err, "comparing programs"));
    each = rp_shape_leaves(s->flat, s->flat->shape.at[s->entry->root]);
    for (uint32_t i = 0; i < in.n; i++) {
        size_t leaves = rp_shape_leaves(s->flat, s->flat->shape.at[in.at[i]]);
        bool differs = false;

        for (size_t p = 0; p < l->search->side[0].partitions; p++)
            for (size_t k = 0; k < leaves; k++)
                differs |= !v[p * each + at + k].is.ok && !v[p * each + at + k].rounded;
        at += leaves;
        if (differs)
            (*out)[(*n)++] = in.at[i];
    }
    return RP_OK;
}

/*
 * Whether two operations that differ can be counterparts, because they are computed from values
 * that agree. The fault may have changed an operand, so a third of the values must be the same, or
 * half if they are only similar. Constants are computed from nothing; they are counterparts if they
 * have the same name.
 */
static bool is_plausible(const struct rp_level *l, uint32_t left)
{
    const struct rp_level_side *s = l->side;
    uint32_t right = s[0].match[left];
    size_t common = 0, all = 0;

    if (right == RP_NONE)
        return false;
    rp_level_mark(l, 0, &left, 1, true);
    rp_level_mark(l, 1, &right, 1, true);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < s[k].entry->n; i++) {
            uint32_t op = s[k].entry->first + i, other = s[k].match[op];

            if (!s[k].reached[i] || !s[k].agreed[op] || s[k].flat->code.at[op] == RP_OP_CONSTANT)
                continue;
            all++;
            common += other != RP_NONE && s[!k].reached[other - s[!k].entry->first];
        }
    if (!all) {
        const struct rp_program *a = l->side[0].flat, *b = l->side[1].flat;

        return !strcmp(rp_program_text(a, a->op_name.at[left]),
                       rp_program_text(b, b->op_name.at[right]));
    }
    return common * (l->known[left] ? 3 : 2) >= all;
}

static uint32_t first_suspect(const struct rp_level *l, const uint32_t *results, size_t n)
{
    const struct rp_level_side *s = &l->side[0];
    uint32_t first = RP_NONE;
    size_t nsuspects = 0;

    rp_level_mark(l, 0, results, n, true);
    for (uint32_t k = 0; k < s->entry->n; k++)
        if (s->reached[s->order[k] - s->entry->first] && l->state[s->order[k]] == RP_LEVEL_DIFFERS)
            l->group[0][nsuspects++] = s->order[k];
    for (size_t i = 0; i < nsuspects && first == RP_NONE; i++)
        if (is_plausible(l, l->group[0][i]))
            first = l->group[0][i];
    if (first != RP_NONE)
        return first;
    /* none: a result that is returned twice, and has another counterpart */
    return nsuspects ? l->group[0][0] : results[0];
}

/* ---- rows ---- */

static enum rp_code row_add(const struct rp_level *l, uint32_t left, uint32_t right,
                            const char *verdict, const struct rp_level_verdict *v)
{
    const uint32_t op[2] = {left, right};
    struct rp_pair_row row = {.verdict = verdict,
                              .inside = l->inside,
                              .iteration = l->iteration,
                              .wrong = RP_ABSENT_I64,
                              .elements = RP_ABSENT_I64,
                              .max_abs = (double)NAN,
                              .max_rel = (double)NAN};

    for (int k = 0; k < 2; k++) {
        const struct rp_program *p = l->side[k].flat;

        if (op[k] == RP_NONE)
            continue;
        row.name[k] = rp_arena_text(l->texts, rp_program_text(p, p->op_name.at[op[k]]));
        row.opcode[k] = rp_arena_text(l->texts, rp_op_opcode_name(p, op[k]));
        struct rp_source_line at;
        row.source[k] = rp_op_source(p, op[k], &at)
                            ? rp_arena_textf(l->texts, "%s:%d", at.file, at.line)
                            : NULL;
    }
    if (v) {
        row.max_abs = v->is.max_abs;
        row.max_rel = v->is.max_rel;
        row.wrong = (int64_t)v->is.wrong;
        row.elements = (int64_t)v->is.n;
        row.message = v->is.reason;
    }
    RP_TRY(rp_arena_check(l->texts, "comparing programs", l->err));
    return rp_vec_push(&l->out->rows, row, l->err);
}

/* Lists the operations between those that agree and the one that differs, if only one program has
   them, or their counterparts do not fit. The fault may be in one of them. */
static enum rp_code rows_between(struct rp_level *l, int side, uint32_t from)
{
    const struct rp_level_side *s = &l->side[side];
    size_t n = 0;

    rp_level_mark(l, side, &from, 1, true);
    for (uint32_t k = 0; k < s->entry->n && n < MOST_ROWS; k++) {
        uint32_t op = s->order[k];

        if (!s->reached[op - s->entry->first] || op == from || s->agreed[op] ||
            s->flat->code.at[op] == RP_OP_PARAMETER ||
            (rp_op_info[s->flat->code.at[op]].flags & RP_OPF_FREE))
            continue;
        n++;
        RP_TRY(row_add(l, side ? RP_NONE : op, side ? op : RP_NONE,
                       s->match[op] == RP_NONE ? "no counterpart" : "in doubt", NULL));
    }
    return RP_OK;
}

/* Lists the nearest earlier values that still agree. */
static enum rp_code rows_agreed(struct rp_level *l, uint32_t from)
{
    const struct rp_level_side *s = &l->side[0];
    size_t n = 0;

    rp_level_mark(l, 0, &from, 1, true);
    for (uint32_t k = s->entry->n; k-- > 0 && n < MOST_ROWS;) {
        uint32_t op = s->order[k];

        if (!s->reached[op - s->entry->first] || op == from || !s->agreed[op] ||
            s->flat->code.at[op] == RP_OP_CONSTANT)
            continue;
        n++;
        RP_TRY(row_add(l, op, s->match[op], "agrees",
                       s->flat->code.at[op] == RP_OP_PARAMETER ? NULL : &l->verdict[op]));
    }
    return RP_OK;
}

/* ---- all of it ---- */

/* The operation that makes a value, not the one that takes it out of a tuple. */
static uint32_t maker_of(const struct rp_level *l, uint32_t op)
{
    const struct rp_program *p = l->side[0].flat;

    while (p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT) {
        uint32_t of = rp_op_operands(p, op).at[0];

        if (p->code.at[of] == RP_OP_PARAMETER || l->side[0].match[of] == RP_NONE)
            break;
        op = of;
    }
    return op;
}

static enum rp_code level_pair(struct rp_level *l)
{
    const struct rp_level_side *s = &l->side[0];
    size_t n = (size_t)s->flat->nops + 1;
    uint32_t *match[2];

    RP_TRY(rp_pair_known(s->flat, l->side[1].flat, &l->arena, match, l->err));
    l->state = RP_ARENA_NEW(&l->arena, uint8_t, n);
    l->known = RP_ARENA_NEW(&l->arena, uint8_t, n);
    l->verdict = RP_ARENA_NEW(&l->arena, struct rp_level_verdict, n);
    for (int k = 0; k < 2; k++) {
        l->side[k].match = match[k];
        size_t count = (size_t)l->side[k].flat->nops + n;

        l->group[k] = RP_ARENA_NEW(&l->arena, uint32_t, count);
        l->side[k].agreed = RP_ARENA_NEW(&l->arena, uint8_t, count);
        RP_TRY(rp_err_need(l->group[k] && l->side[k].agreed, l->err, "comparing programs"));
    }
    RP_TRY(rp_err_need(l->state && l->known && l->verdict, l->err, "comparing programs"));
    for (uint32_t op = 0; op < s->flat->nops; op++)
        if (s->flat->code.at[op] == RP_OP_PARAMETER && match[0][op] != RP_NONE)
            l->side[0].agreed[op] = l->side[1].agreed[match[0][op]] = 1;
    return RP_OK;
}

static enum rp_code level_search(struct rp_level *l, const struct rp_level_verdict *results)
{
    uint32_t *from, op[2];
    size_t n, nrows = l->out->rows.n;

    RP_TRY(differing_results(l, results, &from, &n));
    if (!n)
        return RP_OK;
    RP_TRY(level_pair(l));
    RP_TRY(rp_level_compare(l, from, n));
    uint32_t first = first_suspect(l, from, n);
    op[0] = maker_of(l, first);
    op[1] = l->side[0].match[op[0]];
    RP_TRY(row_add(l, op[0], op[1], "differs", &l->verdict[first]));
    l->out->first = nrows;
    RP_TRY(rows_agreed(l, op[0]));
    RP_TRY(rows_between(l, 0, op[0]));
    if (op[1] == RP_NONE)
        return RP_OK;
    RP_TRY(rows_between(l, 1, op[1]));
    return rp_level_enter(l, op);
}

/* If the results agree, values on the way may still differ without consequences. */
static enum rp_code level_unseen(struct rp_level *l)
{
    const struct rp_level_side *s = &l->side[0];

    RP_TRY(level_pair(l));
    RP_TRY(rp_level_compare(l, &s->entry->root, 1));
    for (uint32_t k = 0; k < s->entry->n; k++) {
        uint32_t op = s->order[k];

        if (l->state[op] != RP_LEVEL_DIFFERS || !l->known[op] || !is_plausible(l, op))
            continue;
        if (!l->out->unseen++)
            RP_TRY(row_add(l, op, s->match[op], "differs", &l->verdict[op]));
    }
    return RP_OK;
}

static enum rp_code check_results(const struct rp_level *l, const struct rp_tensors *left,
                                  const struct rp_tensors *right)
{
    if (left->n != right->n)
        return rp_err_set(l->err, RP_USAGE, "the programs have %zu and %zu results", left->n,
                          right->n);
    for (size_t i = 0; i < left->n; i++) {
        const struct rp_tensor *a = left->at[i], *b = right->at[i];

        if (!rp_dims_same(a->dims, a->rank, b->dims, b->rank))
            return rp_err_set(l->err, RP_USAGE, "result %zu has another shape in the other program",
                              i);
    }
    return RP_OK;
}

static enum rp_code compare_roots(struct rp_level *l, struct rp_level_verdict **v, size_t *n)
{
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut left = {0}, right = {0};

    RP_TRY(rp_level_part_run(l, &l->side[0], &l->side[0].entry->root, 1, &left));
    RP_TRY(rp_level_part_run(l, &l->side[1], &l->side[1].entry->root, 1, &right));
    RP_TRY(check_results(l, &left.outputs, &right.outputs));
    *n = left.outputs.n;
    return rp_level_judge(l, &left, &right, v);
}

static void level_release(struct rp_level *l)
{
    rp_level_side_release(&l->side[0]);
    rp_level_side_release(&l->side[1]);
    rp_arena_release(&l->arena);
}

enum rp_code rp_level_run(const struct rp_pair_search *search, struct rp_level *outer,
                          const char *inside, int64_t iteration, bool *differs)
{
    RP_SCOPED(level_release)
    struct rp_level l = {.search = search,
                         .inside = inside,
                         .iteration = iteration,
                         .depth = outer->depth + 1,
                         .texts = outer->texts,
                         .out = outer->out,
                         .err = outer->err};

    *differs = false;
    for (int k = 0; k < 2; k++)
        RP_TRY(rp_level_side_init(&l.side[k], search, k, l.err));

    RP_FREED struct rp_level_verdict *v = NULL;
    size_t n;
    RP_TRY(compare_roots(&l, &v, &n));
    for (size_t i = 0; i < n; i++) {
        *differs |= !v[i].is.ok && !v[i].rounded;
        l.out->rounded += l.depth == 1 && v[i].rounded;
    }
    if (l.search->results_only)
        return RP_OK;
    if (*differs)
        return level_search(&l, v);
    return l.depth == 1 ? level_unseen(&l) : RP_OK;
}

enum rp_code rp_isolate_pair(const struct rp_pair_search *search, struct rp_arena *arena,
                             struct rp_isolated_pair *out, struct rp_err *err)
{
    struct rp_level none = {.texts = arena, .out = out, .err = err};

    *out = (struct rp_isolated_pair){0};
    return rp_level_run(search, &none, NULL, RP_ABSENT_I64, &out->differ);
}

/* ---- programs of a session ---- */

enum rp_code rp_session_takes(const struct rp_session *s, const struct rp_program *other,
                              const char *name, struct rp_err *err)
{
    const struct rp_signature *mine = &s->signature;
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_signature sig;

    RP_TRY(rp_signature_find(other, &arena, &sig, err));
    for (size_t i = 0; i < sig.nin || i < mine->nin; i++)
        if (i >= sig.nin || i >= mine->nin || sig.in[i].elem != mine->in[i].elem ||
            !rp_dims_same(sig.in[i].dims, sig.in[i].rank, mine->in[i].dims, mine->in[i].rank))
            return rp_err_set(err, RP_USAGE,
                              "input %zu of '%s' is not the one of '%s': only programs of the same "
                              "inputs can be compared",
                              i, name, s->file);
    return RP_OK;
}

enum rp_code rp_session_compare(const struct rp_session *s, const struct rp_program *left,
                                const struct rp_program *right, const struct rp_trial_engine *on,
                                bool results_only, struct rp_arena *arena,
                                struct rp_isolated_pair *out, struct rp_err *err)
{
    struct rp_pair_search search = {.side = {rp_session_part(s), rp_session_part(s)},
                                    .on = on,
                                    .tolerance = {.absolute = -1, .relative = -1, .ulp = -1},
                                    .results_only = results_only};

    *out = (struct rp_isolated_pair){0};
    search.side[0].program = left;
    search.side[1].program = right;
    RP_TRY(rp_session_takes(s, left, "the last program that is right", err));
    RP_TRY(rp_session_takes(s, right, "the program", err));
    return rp_isolate_pair(&search, arena, out, err);
}
