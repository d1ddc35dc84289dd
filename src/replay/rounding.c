/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs that are within the bounds of their type and still wrong: 5e-3 of the largest value is
 * what products on a GPU may differ by, and more than a whole update of the parameters. What this
 * program's rounding can do is measured on our own engine: how far an output moves if every input
 * changes by about a unit in the last place, and, where one side may have multiplied in TF32, if it
 * does. An output that is off by far more than that, in more than a few elements, is wrong.
 */
#include "program/floats.h"
#include "program/opcodes.h"
#include "replay/trial.h"

#include <math.h>
#include <stdlib.h>

#define ULPS       64 /* of the largest value: any two ways to compute a short formula */
#define PER_ROOT   4  /* and for each root of the longest sum: its rounding errors walk at random */
#define NUDGES     256 /* times what inputs that change by a unit move it by */
#define TF32_TIMES 8   /* times what products in TF32 move it by */
#define LARGE_CONST \
    1024 /* elements: weights that are constants are not nudged, so nothing is known */

/* ---- what the program sums up ---- */

static double elements_of(const struct rp_program *p, uint32_t op)
{
    int64_t n = rp_shape_elements(p, p->shape.at[op]);

    return n > 0 ? (double)n : 1;
}

/* The number of terms of a sum, about. Operands A of m x k and B of k x n give m x n. */
static double terms_of(const struct rp_program *p, uint32_t op)
{
    struct rp_ids in = rp_op_operands(p, op);

    switch (p->code.at[op]) {
    case RP_OP_REDUCE:
    case RP_OP_REDUCE_WINDOW:
    case RP_OP_SELECT_AND_SCATTER:
    case RP_OP_SCATTER:
        return in.n ? elements_of(p, in.at[0]) : 1; /* at most all of them */
    case RP_OP_DOT:
    case RP_OP_CONVOLUTION:
        return in.n < 2
                   ? 1
                   : sqrt(elements_of(p, in.at[0]) * elements_of(p, in.at[1]) / elements_of(p, op));
    default:
        return 1;
    }
}

static bool is_product(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_DOT || p->code.at[op] == RP_OP_CONVOLUTION ||
           p->code.at[op] == RP_OP_CUSTOM_CALL;
}

static bool is_large_constant(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_CONSTANT && elements_of(p, op) > LARGE_CONST &&
           rp_elem_is_float(p->shapes.at[p->shape.at[op]].elem);
}

struct summary {
    double terms; /* of the longest sum */
    bool products, large_constants;
};

static struct summary summarize(const struct rp_program *p)
{
    struct summary s = {.terms = 1};

    for (uint32_t op = 0; op < p->nops; op++) {
        s.terms = fmax(s.terms, terms_of(p, op));
        s.products |= is_product(p, op);
        s.large_constants |= is_large_constant(p, op);
    }
    return s;
}

/* ---- what rounding does ---- */

/* Adds how far products in TF32 move the outputs. */
static enum rp_code add_tf32(const struct rp_trial_engine *on, const struct rp_session *s,
                             double *bounds, size_t n, struct rp_err *err)
{
    struct rp_trial_engine other = *on;
    struct rp_tensor **plain = NULL, **cut = NULL;
    size_t nplain = 0, ncut = 0;
    enum rp_code code;

    other.options.tf32 = !on->options.tf32;
    code = rp_trial_once(on, s->program.program, s->arguments, s->signature.nin, s->partitions,
                         &plain, &nplain, err);
    if (code == RP_OK)
        code = rp_trial_once(&other, s->program.program, s->arguments, s->signature.nin,
                             s->partitions, &cut, &ncut, err);
    for (size_t i = 0; code == RP_OK && i < n && i < nplain && i < ncut; i++) {
        struct rp_comparison c;

        rp_compare(cut[i], plain[i], NULL, &c);
        bounds[i] += TF32_TIMES * c.max_abs;
    }
    rp_tensors_drop(plain, nplain);
    rp_tensors_drop(cut, ncut);
    return code;
}

/* bounds[i]: what rounding may move output i by. */
static enum rp_code measure(const struct rp_session *s, const struct rp_session_run *run, bool tf32,
                            double *bounds, size_t n, struct rp_err *err)
{
    struct rp_trial_engine on = {.engine = &rp_engine_fast, .options = run->options};

    on.options.profile = false;
    RP_TRY(rp_trial_sensitivity(&on, s->program.program, s->arguments, s->signature.nin,
                                s->partitions, bounds, n, err));
    for (size_t i = 0; i < n; i++)
        bounds[i] *= NUDGES;
    return tf32 ? add_tf32(&on, s, bounds, n, err) : RP_OK;
}

/* ---- outputs ---- */

/* What any way to compute the output may differ by: a few units of its largest value. */
static double least_bound(const struct rp_tensor *want, const struct summary *sum)
{
    return (ULPS + PER_ROOT * sqrt(sum->terms)) * ldexp(1, -rp_elem_mantissa(want->elem)) *
           rp_largest_magnitude(want);
}

/* Whether an output is right by its type, whose bounds are much wider than its precision. */
static bool is_open(const struct rp_replay_output *o, const struct rp_tensor *want,
                    unsigned through)
{
    return o->ok && (rp_elem_is_float(want->elem) || rp_elem_is_complex(want->elem)) &&
           rp_elem_mantissa(want->elem) >= 23 &&
           (through == RP_ELEM_INVALID || rp_elem_mantissa(through) >= 23);
}

static enum rp_code find_wrong(const struct rp_session_run *run, struct rp_tensor *const *want,
                               const double *bounds, struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    size_t more = 0;

    for (size_t i = 0; i < run->noutputs; i++) {
        struct rp_tolerance t = {.absolute = -1, .relative = -1, .ulp = -1, .rounding = bounds[i]};
        struct rp_replay_output *o = &root->outputs[i];

        if (!(bounds[i] > 0) || o->max_abs <= bounds[i])
            continue;
        rp_replay_judge(&result->arena, run->outputs[i], want[i], &t, o);
        if (!o->ok && more++ < RP_REPLAY_WARNINGS)
            RP_TRY(rp_replay_warn(
                root, &result->arena,
                rp_arena_textf(&result->arena,
                               "output %zu is off by up to %.3g; rounding explains %.3g", i,
                               o->max_abs, bounds[i]),
                err));
    }
    return RP_OK;
}

enum rp_code rp_replay_tighten(const struct rp_session *s, const struct rp_session_run *run,
                               struct rp_tensor *const *want, const uint8_t *through, bool any_tf32,
                               struct rp_result *result, struct rp_err *err)
{
    const struct rp_replay *root = result->root;
    struct summary sum = summarize(s->program.program);
    double *least = calloc(2 * run->noutputs + 1, sizeof *least), *bounds;
    bool open = false;
    enum rp_code code = RP_OK;

    if (!least)
        return rp_err_nomem(err, "judging outputs");
    bounds = least + run->noutputs;
    for (size_t i = 0; i < run->noutputs && !sum.large_constants; i++)
        if (is_open(&root->outputs[i], want[i],
                    through ? through[i % s->signature.nout] : RP_ELEM_INVALID)) {
            least[i] = least_bound(want[i], &sum);
            open |= root->outputs[i].max_abs > least[i];
        }
    if (open)
        code = measure(s, run, any_tf32 && sum.products, bounds, run->noutputs, err);
    for (size_t i = 0; i < run->noutputs; i++)
        bounds[i] = least[i] > 0 ? fmax(least[i], bounds[i]) : 0;
    if (open && code == RP_OK)
        code = find_wrong(run, want, bounds, result, err);
    free(least);
    /* an engine of ours that does not know the program cannot tell */
    return code == RP_NOMEM || code == RP_BUG || code == RP_CANCELLED ? code : RP_OK;
}
