/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a program on an engine, their values, and whether they are right. */
#include "replay/trial.h"
#include "base/clock.h"
#include "program/opcodes.h"

#include "formats/programs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs ---- */

struct rp_trial_part rp_session_part(const struct rp_session *s)
{
    return (struct rp_trial_part){s->program.program, s->arguments, s->signature.nin,
                                  s->partitions};
}

enum rp_code rp_trial_open(const struct rp_trial_engine *on, const struct rp_trial_part *part,
                           struct rp_trial *out, struct rp_err *err)
{
    struct rp_engine_program program = {
        .program = part->program, .name = "part", .format = "hlo-text"};
    struct rp_engine_options options = on->options;
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer made = {0};
    struct rp_bytes bytes;
    bool planted;

    *out = (struct rp_trial){0};
    if (on->fault)
        RP_TRY(rp_program_plant(part->program, on->fault, &out->planted, &planted, err));
    if (out->planted)
        program.program = out->planted;
    options.partitions = (unsigned)part->partitions;
    options.arguments = part->arguments;
    options.narguments = part->arguments ? part->narguments * part->partitions : 0;
    if (on->engine->wants_module) {
        RP_TRY(rp_hlo_module_write(program.program, &made, err));
        RP_TRY(rp_proto_written(&made, &bytes, err));
        program.module = bytes.at;
        program.nmodule = bytes.n;
    }
    RP_TRY(on->engine->compile(on->where, &program, &options, &out->exe, err));
    if (!out->exe)
        return rp_err_set(err, RP_BUG, "engine '%s' returned no executable", on->engine->name);
    if (out->exe->narguments != part->narguments)
        return rp_err_set(err, RP_FORMAT, "engine '%s' expects %zu inputs, the part has %zu",
                          on->engine->name, out->exe->narguments, part->narguments);
    out->noutputs = out->exe->noutputs * out->exe->partitions;
    return RP_OK;
}

enum rp_code rp_trial_run(struct rp_trial *t, struct rp_tensor *const *arguments,
                          struct rp_tensors *outputs, int64_t *ns, struct rp_err *err)
{
    const struct rp_engine *engine = t->exe->engine;
    int64_t took = 0;

    RP_TRY(engine->upload(t->exe, arguments, err));
    int64_t begin = rp_clock_ns();
    if (engine->run) {
        RP_TRY(engine->run(t->exe, err));
        took = rp_clock_ns() - begin;
    } else {
        RP_TRY(engine->run_timed(t->exe, 1, &took, err));
    }
    if (ns)
        *ns = took;
    rp_tensors_release(outputs);
    RP_TRY(rp_tensors_new(t->noutputs, outputs, err));
    RP_TRY(engine->fetch(t->exe, outputs->at, err));
    /* An output may be a constant, or inside of one; such arrays belong to the executable. */
    for (size_t i = 0; i < outputs->n; i++)
        if (outputs->at[i]->borrowed)
            RP_TRY(rp_tensor_own(&outputs->at[i], err));
    return RP_OK;
}

void rp_trial_close(struct rp_trial *t)
{
    if (t->exe)
        t->exe->engine->release(t->exe);
    rp_program_free(t->planted);
    *t = (struct rp_trial){0};
}

enum rp_code rp_trial_once(const struct rp_trial_engine *on, const struct rp_trial_part *part,
                           struct rp_tensors *outputs, struct rp_err *err)
{
    RP_SCOPED(rp_trial_close) struct rp_trial t = {0};

    RP_TRY(rp_trial_open(on, part, &t, err));
    return rp_trial_run(&t, part->arguments, outputs, NULL, err);
}

void rp_trial_message(const struct rp_err *err, char *out, size_t cap)
{
    size_t n = err ? strcspn(err->text, "\n") : 0;

    n = n < cap - 1 ? n : cap - 1;
    memcpy(out, err ? err->text : "", n);
    out[n] = '\0';
}

/* ---- values ---- */

enum rp_code rp_values_init(struct rp_values *v, const struct rp_program *p, size_t partitions,
                            struct rp_err *err)
{
    *v = (struct rp_values){.p = p, .partitions = partitions};
    v->of = calloc((size_t)p->nops + 1, sizeof *v->of);
    return rp_err_need(v->of, err, "keeping values");
}

void rp_values_forget(struct rp_values *v, uint32_t op)
{
    rp_tensors_release(&v->of[op]);
}

void rp_values_release(struct rp_values *v)
{
    for (uint32_t i = 0; v->of && i < v->p->nops; i++)
        rp_values_forget(v, i);
    free(v->of);
    v->of = NULL;
}

bool rp_values_has(const struct rp_values *v, uint32_t op)
{
    return v->of[op].at != NULL;
}

enum rp_code rp_values_put(struct rp_values *v, uint32_t op, struct rp_tensor *const *list,
                           size_t each, size_t from, struct rp_err *err)
{
    size_t leaves = rp_shape_leaves(v->p, v->p->shape.at[op]);
    struct rp_tensors new;

    RP_TRY(rp_tensors_new(leaves * v->partitions, &new, err));
    for (size_t k = 0; k < v->partitions; k++)
        for (size_t i = 0; i < leaves; i++)
            new.at[k * leaves + i] = rp_tensor_keep(list[k * each + from + i]);
    rp_values_forget(v, op);
    v->of[op] = new;
    return RP_OK;
}

enum rp_code rp_values_arguments(const struct rp_values *v, struct rp_trial_cut *part,
                                 struct rp_err *err)
{
    size_t n = part->cut.inputs.n;

    RP_TRY(rp_tensors_new(n * v->partitions, &part->arguments, err));
    for (size_t i = 0; i < n; i++) {
        const struct rp_cut_input *input = &part->cut.inputs.at[i];
        const struct rp_tensors *value = &v->of[input->op];
        size_t leaves = value->n / v->partitions;

        if (!value->at && v->p->code.at[input->op] == RP_OP_CONSTANT)
            return rp_err_set(err, RP_FORMAT,
                              "the values of constant '%s' are left out of the file: use the "
                              "protobuf of the program",
                              rp_program_text(v->p, v->p->op_name.at[input->op]));
        if (!value->at || input->leaf >= leaves)
            return rp_err_set(err, RP_BUG, "the value of '%s' is not known",
                              rp_program_text(v->p, v->p->op_name.at[input->op]));
        for (size_t k = 0; k < v->partitions; k++)
            part->arguments.at[k * n + i] = rp_tensor_keep(value->at[k * leaves + input->leaf]);
    }
    return RP_OK;
}

enum rp_code rp_values_run(const struct rp_values *v, const struct rp_trial_engine *on,
                           const struct rp_cut *cut, struct rp_trial_cut *out, struct rp_err *err)
{
    *out = (struct rp_trial_cut){0};
    RP_TRY(rp_program_cut(v->p, cut, &out->cut, err));
    RP_TRY(rp_values_arguments(v, out, err));
    struct rp_trial_part part = rp_trial_cut_part(out, v->partitions);
    return rp_trial_once(on, &part, &out->outputs, err);
}

struct rp_trial_part rp_trial_cut_part(const struct rp_trial_cut *t, size_t partitions)
{
    return (struct rp_trial_part){t->cut.program, t->arguments.at, t->cut.inputs.n, partitions};
}

void rp_trial_cut_release(struct rp_trial_cut *t)
{
    rp_tensors_release(&t->arguments);
    rp_tensors_release(&t->outputs);
    rp_cut_release(&t->cut);
}

/* ---- the judgement ---- */

/* The narrowest type in the part decides, as in checks of whole programs. */
static enum rp_code judge_tolerance(const struct rp_trial_judge *judge, const struct rp_program *p,
                                    struct rp_tolerance *out, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_signature sig;
    const uint8_t *through = NULL;

    *out = judge->tolerance;

    out->through = RP_ELEM_INVALID;
    RP_TRY(rp_signature_find(p, &arena, &sig, err));
    RP_TRY(rp_precision_find(p, &sig, &arena, &through, err));
    for (size_t i = 0; i < sig.nout; i++)
        if (through[i] != RP_ELEM_INVALID &&
            (out->through == RP_ELEM_INVALID ||
             rp_elem_mantissa(through[i]) < rp_elem_mantissa(out->through)))
            out->through = through[i];
    return RP_OK;
}

enum rp_code rp_trial_sensitivity(const struct rp_trial_engine *on,
                                  const struct rp_trial_part *part, double *moved, size_t n,
                                  struct rp_err *err)
{
    struct rp_trial_engine varied = *on;
    RP_SCOPED(rp_tensors_release) struct rp_tensors base = {0}, other = {0};

    memset(moved, 0, n * sizeof *moved);
    RP_TRY(rp_trial_once(on, part, &base, err));
    /* Other inputs; the same, with sums backward and forward. */
    for (uint64_t k = 0; k <= 2; k++) {
        varied.options.vary = k;
        RP_TRY(k ? rp_trial_once(&varied, part, &other, err)
                 : rp_trial_nudged(on, part, &other, err));
        for (size_t i = 0; i < n && i < base.n && i < other.n; i++) {
            struct rp_comparison c;

            rp_compare(other.at[i], base.at[i], NULL, &c);
            moved[i] = fmax(moved[i], c.max_abs);
        }
    }
    return RP_OK;
}

enum rp_code rp_trial_judge(const struct rp_trial_judge *judge, const struct rp_trial_part *part,
                            const struct rp_tensors *got, const struct rp_tensors *want,
                            struct rp_trial_verdict *out, struct rp_err *err)
{
    struct rp_tolerance tolerance;
    double most = 0;

    *out = (struct rp_trial_verdict){.ok = true};
    RP_TRY(judge_tolerance(judge, part->program, &tolerance, err));
    for (size_t i = 0; i < want->n; i++) {
        struct rp_comparison c;

        rp_compare(got->at[i], want->at[i], &tolerance, &c);

        out->ok &= c.ok;
        out->max_abs = fmax(out->max_abs, c.max_abs);
        out->max_rel = fmax(out->max_rel, c.max_rel);
        out->wrong += (int64_t)c.wrong;
        out->elements += (int64_t)c.n;
        if (c.reason)
            out->reason = c.reason;
    }
    if (out->ok || out->reason)
        return RP_OK;
    RP_FREED double *moved = calloc(want->n + 1, sizeof *moved);
    RP_TRY(rp_err_need(moved, err, "measuring sensitivity"));
    RP_TRY(rp_trial_sensitivity(judge->oracle, part, moved, want->n, err));
    for (size_t i = 0; i < want->n; i++)
        most = fmax(most, moved[i]);
    out->sensitive = isfinite(out->max_abs) && most * 4 >= out->max_abs;
    return RP_OK;
}
