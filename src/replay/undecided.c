/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds outputs that are off but not wrong: those that depend on random numbers of the device, or
 * on vectors whose signs and order each library chooses (eigenvectors, singular vectors, Schur
 * forms), and those of programs that amplify rounding, such as a training step at a point where a
 * small difference grows. The second is measured, on our own engine: how far an output moves if
 * every input changes by about a unit in its last place, or sums run in another order. If it moves
 * by a quarter of the difference or more, the difference tells nothing about the engine.
 */
#include "program/opcodes.h"
#include "replay/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what reaches an output ---- */

/* Whether the search continues from an operation, or has found it. */
typedef bool rp_reach_fn(const struct rp_program *p, uint32_t op);

static bool is_random(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_RNG || p->code.at[op] == RP_OP_RNG_GET_AND_UPDATE_STATE;
}

/* A custom call that decomposes a matrix, of LAPACK or of a library for GPUs. */
static bool is_decomposition(const struct rp_program *p, uint32_t op)
{
    static const char *const names[] = {"gesdd", "gesvd", "syevd", "syevj",
                                        "heevd", "geev",  "gees",  "hybrid_eig"};
    const struct rp_attr *target =
        p->code.at[op] == RP_OP_CUSTOM_CALL ? rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET) : NULL;

    for (size_t i = 0; target && rp_attr_is_bytes(target) && i < sizeof names / sizeof *names; i++)
        if (memmem(target->at, target->n, names[i], strlen(names[i])))
            return true;
    return false;
}

static uint32_t rank_of(const struct rp_program *p, uint32_t op)
{
    const struct rp_op_shape *shape = &p->shapes.at[p->shape.at[op]];

    return shape->elem == RP_ELEM_TUPLE ? UINT32_MAX : shape->n;
}

/* Whether the part of a decomposition is not a vector: eigenvalues and singular values are the same
   everywhere, in the order of their size or the library's, which differs only for Schur forms. */
static bool is_values(const struct rp_program *p, uint32_t op)
{
    struct rp_ids in = rp_op_operands(p, op);

    if (p->code.at[op] != RP_OP_GET_TUPLE_ELEMENT || !in.n || !is_decomposition(p, in.at[0]))
        return false;
    const struct rp_attr *target = rp_op_attr(p, in.at[0], RP_ATTR_CUSTOM_CALL_TARGET);
    struct rp_ids matrix = rp_op_operands(p, in.at[0]);
    return matrix.n && rank_of(p, op) < rank_of(p, matrix.at[matrix.n - 1]) &&
           !memmem(target->at, target->n, "gees", 4);
}

/* Searches backwards for an operation that is `found`, not through those that `stop`. `seen` is
   cleared, `stack` has room for all. RP_NONE if there is none. */
static uint32_t find_source(const struct rp_program *p, uint32_t from, rp_reach_fn *found,
                            rp_reach_fn *stop, uint8_t *seen, uint32_t *stack)
{
    size_t n = 0;

    memset(seen, 0, p->nops);
    stack[n++] = from;
    seen[from] = 1;
    while (n) {
        uint32_t op = stack[--n];
        struct rp_ids in = rp_op_operands(p, op), called = rp_op_called(p, op);

        if (stop && stop(p, op))
            continue;
        if (found(p, op))
            return op;
        for (uint32_t i = 0; i < in.n; i++)
            if (!seen[in.at[i]]) {
                seen[in.at[i]] = 1;
                stack[n++] = in.at[i];
            }
        for (uint32_t i = 0; i < called.n; i++) {
            uint32_t root = p->computations.at[called.at[i]].root;

            if (root < p->nops && !seen[root]) {
                seen[root] = 1;
                stack[n++] = root;
            }
        }
    }
    return RP_NONE;
}

static void excuse_output(const struct rp_session *s, struct rp_replay_output *o, uint32_t op,
                          uint8_t *seen, uint32_t *stack, struct rp_arena *arena)
{
    const struct rp_program *p = s->program.program;

    if (find_source(p, op, is_random, NULL, seen, stack) != RP_NONE) {
        o->verdict = "not comparable: it depends on random numbers of the device";
        return;
    }
    uint32_t source = find_source(p, op, is_decomposition, is_values, seen, stack);
    if (source != RP_NONE) {
        const struct rp_attr *target = rp_op_attr(p, source, RP_ATTR_CUSTOM_CALL_TARGET);

        o->verdict = rp_arena_textf(arena,
                                    "not comparable: it depends on vectors of '%.*s', whose signs "
                                    "and order each library chooses",
                                    (int)target->n, target->at);
    }
}

static enum rp_code excuse_sources(const struct rp_session *s, struct rp_replay *root,
                                   struct rp_arena *arena, struct rp_err *err)
{
    const struct rp_program *p = s->program.program;
    bool any = false;

    for (uint32_t i = 0; i < p->nops; i++)
        any |= is_random(p, i) || is_decomposition(p, i);
    if (!any)
        return RP_OK;
    RP_FREED uint8_t *seen = malloc((size_t)p->nops + 1);
    RP_FREED uint32_t *stack = malloc(((size_t)p->nops + 1) * sizeof *stack);
    RP_TRY(rp_err_need(seen && stack, err, "judging outputs"));
    for (size_t i = 0; i < root->noutputs; i++)
        if (!root->outputs[i].ok && !root->outputs[i].reason)
            excuse_output(s, &root->outputs[i], s->signature.out[i % s->signature.nout].op, seen,
                          stack, arena);
    return rp_arena_check(arena, "judging outputs", err);
}

/* ---- rounding ---- */

/* Whether an output is off without a known reason. */
static bool is_open(const struct rp_replay_output *o)
{
    return !o->ok && !o->reason && !o->decided && isfinite(o->max_abs) &&
           !strcmp(o->verdict, "wrong");
}

static enum rp_code excuse_rounding(const struct rp_session *s, struct rp_replay *root,
                                    const struct rp_session_run *run, struct rp_arena *arena,
                                    struct rp_err *err)
{
    struct rp_trial_engine on = {.engine = &rp_engine_fast, .options = run->options};
    struct rp_trial_part part = rp_session_part(s);
    RP_FREED double *moved = calloc(root->noutputs + 1, sizeof *moved);

    RP_TRY(rp_err_need(moved, err, "judging outputs"));
    on.options.profile = false;
    enum rp_code code = rp_trial_sensitivity(&on, &part, moved, root->noutputs, err);
    for (size_t i = 0; code == RP_OK && i < root->noutputs; i++) {
        struct rp_replay_output *o = &root->outputs[i];

        if (!is_open(o))
            continue;
        if (!isnan(o->moved) && o->moved >= o->max_abs)
            o->verdict = rp_arena_textf(
                arena,
                "undecided: the program amplifies rounding (it moves by %.3g if its results round "
                "otherwise)",
                o->moved);
        else if (isnan(o->moved) && moved[i] * 4 >= o->max_abs)
            o->verdict = rp_arena_textf(
                arena,
                "undecided: the program amplifies rounding (it moves by %.3g if its inputs change by "
                "a unit in the last place or its sums run in another order)",
                moved[i]);
    }
    /* an engine of ours that does not know the program cannot tell */
    return rp_trial_is_ours(code) ? code : rp_arena_check(arena, "judging outputs", err);
}

/* ---- all of it ---- */

/* Shows the first few of them as warnings. */
static enum rp_code warn_excused(struct rp_replay *root, struct rp_arena *arena, struct rp_err *err)
{
    size_t more = 0;

    for (size_t i = 0; i < root->noutputs; i++) {
        const char *verdict = root->outputs[i].verdict;

        if (root->outputs[i].ok || !strcmp(verdict, "wrong"))
            continue;
        if (more++ < RP_REPLAY_WARNINGS)
            RP_TRY(rp_replay_warn(root, arena,
                                  rp_arena_textf(arena, "output %zu is %s", i, verdict), err));
    }
    if (more <= RP_REPLAY_WARNINGS)
        return RP_OK;
    return rp_replay_warn(root, arena,
                          rp_arena_textf(arena, "%zu more outputs cannot be judged either",
                                         more - RP_REPLAY_WARNINGS),
                          err);
}

enum rp_code rp_replay_excuse(const struct rp_session *s, const struct rp_session_run *run,
                              bool any_tf32, struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    size_t wrong = 0;

    for (size_t i = 0; i < root->noutputs; i++) {
        root->outputs[i].verdict = root->outputs[i].ok ? "right" : "wrong";
        wrong += !root->outputs[i].ok && !root->outputs[i].reason;
    }
    if (!wrong || !s->program.program || s->graph || !s->signature.nout || !s->arguments)
        return RP_OK;
    RP_TRY(excuse_sources(s, root, &result->arena, err));
    RP_TRY(excuse_rounding(s, root, run, &result->arena, err));
    if (any_tf32 && rp_rounding_of(s->program.program).products) {
        /* The device that computed the expected values may multiply f32 in TF32 by default, which
         * no file says. */
        struct rp_arena *arena = &result->arena;
        struct rp_trial_engine on = {.options = run->options};
        struct rp_variants_of of = {.on = &on, .part = rp_session_part(s)};
        RP_SCOPED(rp_variants_release) struct rp_variants v = {0};
        enum rp_code code = RP_OK;
        bool open = false;
        for (size_t i = 0; i < root->noutputs; i++)
            open |= is_open(&root->outputs[i]);
        if (open)
            code = rp_variants_cut(&v, &of, err);
        for (size_t i = 0;
             open && code == RP_OK && i < root->noutputs && i < v.plain.n && i < v.cut.n; i++) {
            struct rp_comparison c;

            rp_compare(v.cut.at[i], v.plain.at[i], NULL, &c);
            if (is_open(&root->outputs[i]) && 4 * c.max_abs >= root->outputs[i].max_abs)
                root->outputs[i].verdict = rp_arena_textf(
                    arena,
                    "undecided: it was perhaps computed with products in TF32, as NVIDIA's GPUs do by "
                    "default (it moves by %.3g by them; --products f32 says that it was not)",
                    c.max_abs);
        }
        RP_TRY(rp_trial_is_ours(code) ? code : rp_arena_check(arena, "judging outputs", err));
    }
    root->ok = true;
    for (size_t i = 0; i < root->noutputs; i++)
        root->ok &= strcmp(root->outputs[i].verdict, "wrong") != 0;
    return warn_excused(root, &result->arena, err);
}
