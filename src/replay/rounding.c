/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds outputs that are within the bounds of their type but still wrong: products on a GPU may
 * differ by 5e-3 of the largest value, which is more than a whole update of the parameters. The
 * effect of this program's rounding is measured on our own engine: how far an output moves if every
 * input changes by about a unit in the last place, and if products are computed in TF32, if one
 * side may have done that. An output that is off by far more than that, in more than a few
 * elements, is wrong. A few elements that rounding moves far (those of a row that was divided by
 * almost nothing) do not excuse the others: these, the quiet ones, are judged by the effect of
 * rounding on them.
 */
#include "base/order.h"
#include "program/floats.h"
#include "program/opcodes.h"
#include "replay/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ULPS                                                                                     \
    24 /* units of the largest value by which any two ways to compute a short formula may differ \
        */
#define PER_ROOT \
    4 /* and for each root of the longest sum, because its rounding errors form a random walk */
#define TF32_TIMES  8     /* multiple of the movement by products in TF32 */
#define QUIET       0.95  /* of the elements */
#define SAMPLE      65536 /* number of elements from which that share is found */
#define FEW         3     /* elements that may not move by chance */
#define LARGE_CONST 1024  /* elements; constant weights are not nudged, so then nothing is known */

/* ---- what the program sums up ---- */

static double elements_of(const struct rp_program *p, uint32_t op)
{
    int64_t n = rp_shape_elements(p, p->shape.at[op]);

    return n > 0 ? (double)n : 1;
}

/* The approximate number of terms in a sum. Operands A of m x k and B of k x n give m x n. */
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

struct rp_rounding rp_rounding_of(const struct rp_program *p)
{
    struct rp_rounding s = {.terms = 1};

    for (uint32_t op = 0; op < p->nops; op++) {
        s.terms = fmax(s.terms, terms_of(p, op));
        s.products |= p->code.at[op] == RP_OP_DOT || p->code.at[op] == RP_OP_CONVOLUTION ||
                      p->code.at[op] == RP_OP_CUSTOM_CALL;
        s.large_constants |= p->code.at[op] == RP_OP_CONSTANT && elements_of(p, op) > LARGE_CONST &&
                             rp_elem_is_float(p->shapes.at[p->shape.at[op]].elem);
    }
    return s;
}

/* ---- what rounding does ---- */

/* Outputs of the unchanged program, with changed inputs, and with products in TF32 or not. */
struct moves {
    struct rp_tensors plain, nudged, cut;
};

static void moves_release(struct moves *m)
{
    rp_tensors_release(&m->plain);
    rp_tensors_release(&m->nudged);
    rp_tensors_release(&m->cut);
}

static enum rp_code measure(const struct rp_session *s, const struct rp_session_run *run, bool tf32,
                            struct moves *m, struct rp_err *err)
{
    struct rp_trial_engine on = {.engine = &rp_engine_fast, .options = run->options};
    struct rp_trial_part part = rp_session_part(s);

    on.options.profile = false;
    RP_TRY(rp_trial_once(&on, &part, &m->plain, err));
    RP_TRY(rp_trial_nudged(&on, &part, &m->nudged, err));
    on.options.tf32 = !on.options.tf32;
    on.options.tf32_convolutions = true;
    return tf32 ? rp_trial_once(&on, &part, &m->cut, err) : RP_OK;
}

/* The largest movement by rounding of any element of output i. */
static double moved_most(const struct moves *m, size_t i)
{
    struct rp_comparison c;
    double most = 0;

    if (i < m->plain.n && i < m->nudged.n) {
        rp_compare(m->nudged.at[i], m->plain.at[i], NULL, &c);
        most = RP_ROUNDING_NUDGES * c.max_abs;
    }
    if (i < m->plain.n && i < m->cut.n) {
        rp_compare(m->cut.at[i], m->plain.at[i], NULL, &c);
        most += TF32_TIMES * c.max_abs;
    }
    return most;
}

static double apart(const struct rp_tensor *a, const struct rp_tensor *b, size_t k)
{
    return hypot(rp_tensor_number(a, k) - rp_tensor_number(b, k),
                 rp_tensor_imaginary(a, k) - rp_tensor_imaginary(b, k));
}

/* The same for one element; infinite if it is not a number. */
static double moved(const struct moves *m, size_t i, size_t k)
{
    double by = RP_ROUNDING_NUDGES * apart(m->nudged.at[i], m->plain.at[i], k);

    if (i < m->cut.n)
        by += TF32_TIMES * apart(m->cut.at[i], m->plain.at[i], k);
    return isfinite(by) ? by : (double)INFINITY;
}

RP_ORDER(by_size, double, RP_COMPARE(*a, *b))

/* The largest movement of the quiet elements of output i. */
static enum rp_code moved_quiet(const struct moves *m, size_t i, double *out, struct rp_err *err)
{
    size_t n = m->plain.at[i]->n, count = n < SAMPLE ? n : SAMPLE;
    RP_FREED double *list = calloc(count + 1, sizeof *list);

    RP_TRY(rp_err_need(list, err, "judging outputs"));
    for (size_t k = 0; k < count; k++)
        list[k] = moved(m, i, (size_t)((double)k * ((double)n / (double)count)));
    qsort(list, count, sizeof *list, by_size);
    *out = list[(size_t)(QUIET * (double)count)];
    return RP_OK;
}

/* ---- outputs ---- */

double rp_rounding_least(const struct rp_rounding *sum, const struct rp_tensor *want,
                         unsigned through)
{
    if (sum->large_constants || !(rp_elem_is_float(want->elem) || rp_elem_is_complex(want->elem)) ||
        rp_elem_mantissa(want->elem) < 23 ||
        (through != RP_ELEM_INVALID && rp_elem_mantissa(through) < 23))
        return 0;
    return (ULPS + PER_ROOT * sqrt(sum->terms)) * ldexp(1, -rp_elem_mantissa(want->elem)) *
           rp_largest_magnitude(want);
}

static enum rp_code judge_by(struct rp_tensor *got, struct rp_tensor *want, size_t i, double bound,
                             const char *which, struct rp_result *result, size_t *wrong,
                             struct rp_err *err)
{
    struct rp_tolerance t = {.absolute = -1, .relative = -1, .ulp = -1, .rounding = bound};
    struct rp_replay *root = result->root;
    struct rp_replay_output *o = &root->outputs[i];

    rp_replay_judge(&result->arena, got, want, &t, o);
    if (o->ok || (*wrong)++ >= RP_REPLAY_WARNINGS)
        return RP_OK;
    return rp_replay_warn(
        root, &result->arena,
        rp_arena_textf(&result->arena, "output %zu is off by up to %.3g%s; rounding explains %.3g",
                       i, o->max_abs, which, bound),
        err);
}

/* Finds whether few elements move much further than the others. */
static enum rp_code find_quiet(const struct rp_session_run *run, struct rp_tensor *const *want,
                               const struct moves *m, size_t i, double least, double bound,
                               struct rp_result *result, size_t *wrong, struct rp_err *err)
{
    const struct rp_tensor *got = run->outputs[i];
    struct rp_replay *root = result->root;
    struct rp_replay_output *o = &root->outputs[i], before = *o;
    struct rp_tolerance t = {.absolute = -1, .relative = -1, .ulp = -1};
    struct rp_comparison c = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *part = NULL;
    double quiet = 0;

    if (i >= m->plain.n || i >= m->nudged.n || m->plain.at[i]->n != got->n ||
        want[i]->n != got->n || want[i]->elem != got->elem || !got->n)
        return RP_OK;
    RP_TRY(moved_quiet(m, i, &quiet, err));
    if (!(fmax(quiet, least) * 4 < bound))
        return RP_OK;
    t.rounding = fmax(quiet, least);

    /* The output with its elements that are not quiet replaced by the expected ones. */
    RP_TRY(rp_tensor_new(got->elem, got->dims, got->rank, &part, err));
    for (size_t k = 0; k < got->n; k++)
        memcpy((part)->data + k * got->unit,
               (moved(m, i, k) <= quiet ? got : want[i])->data + k * got->unit, got->unit);

    rp_compare(part, want[i], &t, &c);
    enum rp_code code = RP_OK;
    if (c.wrong >= FEW)
        code = judge_by(part, want[i], i, t.rounding, " where rounding does little", result, wrong,
                        err);
    if (code != RP_OK || o->ok)
        *o = before;
    else
        o->decided = true;
    return code;
}

/* least[i]: by how much any two ways to compute output i differ; 0: it is not judged. */
static enum rp_code find_wrong(const struct rp_session_run *run, struct rp_tensor *const *want,
                               const double *least, const struct moves *m, struct rp_result *result,
                               struct rp_err *err)
{
    struct rp_replay *root = result->root;
    size_t wrong = 0;

    for (size_t i = 0; i < run->noutputs; i++) {
        struct rp_replay_output *o = &root->outputs[i];
        double bound = fmax(least[i], moved_most(m, i));

        if (!(least[i] > 0) || o->max_abs <= least[i])
            continue;
        if (o->max_abs > bound)
            RP_TRY(judge_by(run->outputs[i], want[i], i, bound, "", result, &wrong, err));
        if (o->ok)
            RP_TRY(find_quiet(run, want, m, i, least[i], bound, result, &wrong, err));
    }
    return RP_OK;
}

enum rp_code rp_replay_tighten(const struct rp_session *s, const struct rp_session_run *run,
                               struct rp_tensor *const *want, const uint8_t *through, bool any_tf32,
                               struct rp_result *result, struct rp_err *err)
{
    const struct rp_replay *root = result->root;
    struct rp_rounding sum = rp_rounding_of(s->program.program);
    RP_FREED double *least = calloc(run->noutputs + 1, sizeof *least);
    RP_SCOPED(moves_release) struct moves moves = {0};
    bool open = false;
    enum rp_code code = RP_OK;

    RP_TRY(rp_err_need(least, err, "judging outputs"));
    for (size_t i = 0; i < run->noutputs; i++)
        if (root->outputs[i]
                .ok) { /* right by its type, whose bounds are wider than its precision */
            least[i] = rp_rounding_least(
                &sum, want[i], through ? through[i % s->signature.nout] : RP_ELEM_INVALID);
            open |= least[i] > 0 && root->outputs[i].max_abs > least[i];
        }
    if (open)
        code = measure(s, run, any_tf32 && sum.products, &moves, err);
    if (open && code == RP_OK)
        code = find_wrong(run, want, least, &moves, result, err);
    /* an engine of ours that does not know the program cannot tell */
    return rp_trial_is_ours(code) ? code : RP_OK;
}
