/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a variant computes the same as the unchanged program, by comparing how the
 * parameters changed in the first steps. Two things make honest runs differ, and each has a run
 * that shows it:
 *
 *     dropout       draws other numbers in compiled code and in other types: both programs again
 *                   without it (the twin of a variant)
 *     sensitivity   some programs make of any rounding another run within few steps: the unchanged
 *                   program whose parameters are rounded once, before the first step
 *
 * A variant may differ three times as much as the rounded program, after as many steps as that is
 * still little.
 */
#include "base/text.h"
#include "try/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT32 1e-4 /* what float32 explains: TF32 and float16 differ by 3e-4 and more */
#define REDUCED 0.1  /* in lower precision, updates that differ by less are the same */
#define BROKEN  0.3  /* a program whose update differs by more is not measured at all */
#define TIMES   3    /* as much as another run that is known to be right, times this */
#define TELLS   0.5  /* a limit above this would let a broken program pass */

/* ------------------------------------------------------------------ kinds of arithmetic */

enum rp_try_same rp_try_arithmetic(const struct rp_try_session *s, const struct rp_try_variant *v)
{
    enum rp_try_same coarsest = v->precision < RP_TRY_TF32    ? RP_TRY_SAME_ROUNDING
                                : v->precision == RP_TRY_TF32 ? RP_TRY_SAME_TF32
                                                              : RP_TRY_SAME_BF16;

    if (!v->program)
        coarsest = RP_TRY_SAME_ROUNDING;
    for (size_t i = 0; i < v->nparts; i++) {
        enum rp_try_same same = v->parts[i]->same;

        if (same == RP_TRY_SAME_KERNELS)
            same =
                rp_try_fact_number(&s->facts, "tf32") > 0 ? RP_TRY_SAME_TF32 : RP_TRY_SAME_ROUNDING;
        if (same > coarsest)
            coarsest = same;
    }
    return coarsest;
}

const char *rp_try_compared(const struct rp_try_session *s)
{
    return rp_text_begins(rp_try_fact(&s->facts, "unit"), "call") ? "the output of the model"
                                                                  : "the update of the parameters";
}

static bool compiles(const struct rp_try_variant *v)
{
    for (size_t i = 0; i < v->nparts; i++)
        if (!strcmp(v->parts[i]->group, "compile"))
            return true;
    return false;
}

/* JAX has no parameters: arrays go into a function, and others come out of it. */
static bool has_parameters(const struct rp_try_session *s)
{
    return !rp_try_is_of(&s->facts, "jax");
}

static bool has_dropout(const struct rp_try_session *s)
{
    return rp_try_fact_number(&s->facts, "dropout") > 0;
}

static bool draws_others(const struct rp_try_session *s, const struct rp_try_variant *v)
{
    return has_dropout(s) && (compiles(v) || rp_try_arithmetic(s, v) == RP_TRY_SAME_BF16);
}

/* ------------------------------------------------------------------ other runs */

static void start_twin(struct rp_try_session *s, struct rp_try_variant *v)
{
    const struct rp_try_mode mode = {.same_random = true};

    if (v->twin || !(v->twin = calloc(1, sizeof *v->twin)))
        return;
    memcpy(v->twin->name, v->name, sizeof v->name);
    memcpy(v->twin->parts, v->parts, sizeof v->parts);
    memcpy(v->twin->values, v->values, sizeof v->values);
    v->twin->nparts = v->nparts;
    rp_try_start(s, v->twin, &mode);
}

static void start_rounded(struct rp_try_session *s, enum rp_try_same kind)
{
    static const char *const formats[] = {[RP_TRY_SAME_ROUNDING] = "float32",
                                          [RP_TRY_SAME_TF32] = "tf32",
                                          [RP_TRY_SAME_BF16] = "bf16"};
    const struct rp_try_mode mode = {.round = formats[kind], .same_random = has_dropout(s)};
    struct rp_try_variant *v = s->rounded[kind];

    if (v || !has_parameters(s) || !(v = calloc(1, sizeof *v)))
        return;
    memcpy(v->name, s->variants[0].name, sizeof v->name);
    s->rounded[kind] = v;
    rp_try_start(s, v, &mode);
}

/* Returns the update of such a run, which is then done; NULL if it failed. */
static const char *update_of(struct rp_try_session *s, struct rp_try_variant *helper)
{
    if (!helper)
        return NULL;
    if (!*helper->update && helper->state == RP_TRY_ALIVE && !rp_try_begin(s, helper))
        helper->update[0] = '\0';
    rp_try_stop(helper);
    return *helper->update ? helper->update : NULL;
}

void rp_try_start_helpers(struct rp_try_session *s, struct rp_try_variant *v)
{
    if (v == &s->variants[0] || v == &s->variants[1])
        return;
    start_rounded(s, rp_try_arithmetic(s, v));
    if (has_dropout(s))
        start_twin(s, &s->variants[0]);
    if (draws_others(s, v))
        start_twin(s, v);
}

size_t rp_try_helpers(const struct rp_try_session *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nvariants; i++)
        n += s->variants[i].twin && s->variants[i].twin->child;
    for (size_t i = 0; i <= RP_TRY_SAME_BF16; i++)
        n += s->rounded[i] && s->rounded[i]->child;
    return n;
}

void rp_try_stop_helpers(struct rp_try_session *s)
{
    for (size_t i = 0; i < s->nvariants; i++)
        if (s->variants[i].twin)
            rp_try_stop(s->variants[i].twin);
    for (size_t i = 0; i <= RP_TRY_SAME_BF16; i++)
        if (s->rounded[i])
            rp_try_stop(s->rounded[i]);
}

/* ------------------------------------------------------------------ judging */

/* Returns the update of the unchanged program, without dropout if it has some. */
static const char *unchanged_update(struct rp_try_session *s)
{
    if (!has_dropout(s))
        return s->variants[0].update;
    start_twin(s, &s->variants[0]);
    return update_of(s, s->variants[0].twin);
}

/* Compares both programs without dropout. Returns false if one of them did not run to the end. */
static bool compare_twins(struct rp_try_session *s, struct rp_try_variant *v)
{
    const char *other = unchanged_update(s), *own;

    start_twin(s, v);
    own = other ? update_of(s, v->twin) : NULL;
    return own && rp_try_compare(own, other, &v->difference, NULL) == RP_OK;
}

static double last_ratio(const struct rp_try_difference *d)
{
    return d->n ? d->ratio[d->n - 1] : NAN;
}

/* Another program must do the same in all steps that are compared: the last of them may already be
   as different as rounding makes it. */
static double judged_ratio(const struct rp_try_variant *v)
{
    double most = last_ratio(&v->difference);

    for (size_t i = 0; i < v->difference.n && v->program; i++)
        if (v->difference.ratio[i] > most)
            most = v->difference.ratio[i];
    return most;
}

/* Measures the effect of rounding once in this format on the program. Returns false if that run did
   not come to its end; for JAX, where parameters are not rounded, the effect is none. */
static bool compare_rounded(struct rp_try_session *s, enum rp_try_same kind,
                            struct rp_try_difference *out)
{
    const char *other = unchanged_update(s), *own;

    start_rounded(s, kind);
    own = other ? update_of(s, s->rounded[kind]) : NULL;
    return own ? rp_try_compare(own, other, out, NULL) == RP_OK : !has_parameters(s);
}

/* Compares the unchanged program with itself: for how many steps it repeats itself. */
static void judge_control(struct rp_try_variant *v)
{
    const struct rp_try_difference *d = &v->difference;

    v->judged = true;
    v->exact = d->exact;
    v->update_ratio = last_ratio(d);
    v->update_steps = d->n ? d->steps[d->n - 1] : 0;
    for (size_t i = d->n; i-- > 0 && !(v->update_ratio <= RP_TRY_ROUNDING);) {
        v->update_ratio = d->ratio[i];
        v->update_steps = d->steps[i];
    }
}

static void take(struct rp_try_variant *v, size_t i, double limit)
{
    v->judged = true;
    v->exact = v->difference.exact;
    v->update_ratio = v->difference.ratio[i];
    v->update_steps = v->difference.steps[i];
    v->differs = !(v->update_ratio <= limit);
}

/* Judges at the last step at which another correct run differs so little that a comparison is
   meaningful; another program also at all steps before it. */
static void judge_by_rounding(struct rp_try_session *s, struct rp_try_variant *v, double limit)
{
    const struct rp_try_difference *control = &s->variants[1].difference;
    struct rp_try_difference rounded = {0};

    if (!compare_rounded(s, rp_try_arithmetic(s, v), &rounded))
        return; /* it is not judged */
    for (size_t i = v->difference.n; i-- > 0;) {
        double noise = i < control->n ? control->ratio[i] : 0;
        double least = i < rounded.n ? rounded.ratio[i] : 0;
        double most = fmax(limit, TIMES * fmax(noise, least));

        if (!(most <= TELLS) || (v->judged && v->difference.ratio[i] <= most))
            continue;
        take(v, i, most);
        if (!v->program || v->differs)
            return;
    }
}

void rp_try_judge_update(struct rp_try_session *s, struct rp_try_variant *v)
{
    double limit = rp_try_arithmetic(s, v) != RP_TRY_SAME_ROUNDING ? REDUCED
                   : v->program && v->precision == RP_TRY_FLOAT32  ? FLOAT32
                                                                   : RP_TRY_ROUNDING;
    struct rp_err err = RP_ERR_INIT;

    if (v == &s->variants[0])
        return;
    if (rp_try_compare(v->update, s->variants[0].update, &v->difference, &err) != RP_OK) {
        rp_try_fail(v, "%s", err.text);
        return;
    }
    if (v == &s->variants[1]) {
        judge_control(v);
        return;
    }
    if (!(judged_ratio(v) <= limit) && draws_others(s, v) && !compare_twins(s, v))
        return; /* it is not judged */
    if (judged_ratio(v) <= limit || isnan(judged_ratio(v)))
        take(v, v->difference.n - 1, limit);
    else
        judge_by_rounding(s, v, limit);
    if (v->judged && v->differs && compiles(v) && !v->twin) { /* the random numbers may differ */
        v->judged = v->differs = false;
        if (compare_twins(s, v))
            judge_by_rounding(s, v, limit);
    }
    if (!v->judged || !v->differs || v->update_ratio <= BROKEN)
        return;
    if (isnan(v->update_ratio))
        rp_try_fail(v, "refused: %s became infinite or not a number", rp_try_compared(s));
    else
        rp_try_fail(v, "refused: %s differs by %.2g", rp_try_compared(s), v->update_ratio);
    v->state = RP_TRY_REFUSED;
}
