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

enum rp_code rp_trial_open(const struct rp_trial_engine *on, const struct rp_program *p,
                           struct rp_tensor *const *arguments, size_t narguments, size_t partitions,
                           struct rp_trial *out, struct rp_err *err)
{
    struct rp_engine_program program = {.program = p, .name = "part", .format = "hlo-text"};
    struct rp_engine_options options = on->options;
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer made = {0};
    struct rp_bytes bytes;
    bool planted;

    *out = (struct rp_trial){0};
    if (on->fault)
        RP_TRY(rp_program_plant(p, on->fault, &out->planted, &planted, err));
    if (out->planted)
        program.program = out->planted;
    options.partitions = (unsigned)partitions;
    options.arguments = arguments;
    options.narguments = arguments ? narguments * partitions : 0;
    if (on->engine->wants_module) {
        RP_TRY(rp_hlo_module_write(program.program, &made, err));
        RP_TRY(rp_proto_written(&made, &bytes, err));
        program.module = bytes.at;
        program.nmodule = bytes.n;
    }
    RP_TRY(on->engine->compile(on->where, &program, &options, &out->exe, err));
    if (!out->exe)
        return rp_err_set(err, RP_BUG, "engine '%s' returned no executable", on->engine->name);
    if (out->exe->narguments != narguments)
        return rp_err_set(err, RP_FORMAT, "engine '%s' expects %zu inputs, the part has %zu",
                          on->engine->name, out->exe->narguments, narguments);
    out->noutputs = out->exe->noutputs * out->exe->partitions;
    return RP_OK;
}

enum rp_code rp_trial_run(struct rp_trial *t, struct rp_tensor *const *arguments,
                          struct rp_tensor **outputs, int64_t *ns, struct rp_err *err)
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
    RP_TRY(engine->fetch(t->exe, outputs, err));
    /* An output may be a constant, or inside of one; such arrays belong to the executable. */
    size_t n = t->noutputs;
    for (size_t i = 0; i < n; i++) {
        struct rp_tensor *shared = outputs[i], *own;

        if (!shared->borrowed)
            continue;
        RP_TRY(rp_tensor_new(shared->elem, shared->dims, shared->rank, &own, err));
        memcpy(own->data, shared->data, rp_tensor_bytes(shared));
        rp_tensor_drop(shared);
        outputs[i] = own;
    }
    return RP_OK;
}

void rp_trial_close(struct rp_trial *t)
{
    if (t->exe)
        t->exe->engine->release(t->exe);
    rp_program_free(t->planted);
    *t = (struct rp_trial){0};
}

void rp_tensors_drop(struct rp_tensor **list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        rp_tensor_drop(list[i]);
    free(list);
}

enum rp_code rp_trial_once(const struct rp_trial_engine *on, const struct rp_program *p,
                           struct rp_tensor *const *arguments, size_t narguments, size_t partitions,
                           struct rp_tensor ***outputs, size_t *n, struct rp_err *err)
{
    struct rp_trial t;
    enum rp_code code = rp_trial_open(on, p, arguments, narguments, partitions, &t, err);

    *outputs = NULL;
    *n = t.noutputs;
    if (code == RP_OK) {
        *outputs = calloc(t.noutputs + 1, sizeof **outputs);
        code = *outputs ? rp_trial_run(&t, arguments, *outputs, NULL, err)
                        : rp_err_nomem(err, "running a part");
    }
    rp_trial_close(&t);
    if (code != RP_OK) {
        rp_tensors_drop(*outputs, *n);
        *outputs = NULL;
    }
    return code;
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
    rp_tensors_drop(v->of[op].at, v->of[op].n);
    v->of[op] = (struct rp_value){0};
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
    struct rp_value new = {.n = leaves * v->partitions};

    new.at = calloc(new.n + 1, sizeof *new.at);
    RP_TRY(rp_err_need(new.at, err, "keeping values"));
    for (size_t k = 0; k < v->partitions; k++)
        for (size_t i = 0; i < leaves; i++)
            new.at[k * leaves + i] = rp_tensor_keep(list[k * each + from + i]);
    rp_values_forget(v, op);
    v->of[op] = new;
    return RP_OK;
}

enum rp_code rp_values_arguments(const struct rp_values *v, const struct rp_cut_program *cut,
                                 struct rp_tensor ***out, struct rp_err *err)
{
    size_t n = cut->inputs.n;

    *out = calloc(n * v->partitions + 1, sizeof **out);
    RP_TRY(rp_err_need(*out, err, "collecting values"));
    for (size_t i = 0; i < n; i++) {
        const struct rp_value *value = &v->of[cut->inputs.at[i].op];
        size_t leaves = value->n / v->partitions;

        if (!value->at && v->p->code.at[cut->inputs.at[i].op] == RP_OP_CONSTANT)
            return rp_err_set(err, RP_FORMAT,
                              "the values of constant '%s' are left out of the file: use the "
                              "protobuf of the program",
                              rp_program_text(v->p, v->p->op_name.at[cut->inputs.at[i].op]));
        if (!value->at || cut->inputs.at[i].leaf >= leaves)
            return rp_err_set(err, RP_BUG, "the value of '%s' is not known",
                              rp_program_text(v->p, v->p->op_name.at[cut->inputs.at[i].op]));
        for (size_t k = 0; k < v->partitions; k++)
            (*out)[k * n + i] = value->at[k * leaves + cut->inputs.at[i].leaf];
    }
    return RP_OK;
}

/* ---- the judgement ---- */

static void verdict_add(struct rp_trial_verdict *v, const struct rp_comparison *c)
{
    v->ok &= c->ok;
    v->max_abs = fmax(v->max_abs, c->max_abs);
    v->max_rel = fmax(v->max_rel, c->max_rel);
    v->wrong += (int64_t)c->wrong;
    v->elements += (int64_t)c->n;
    if (c->reason)
        v->reason = c->reason;
}

/* The narrowest type in the part decides, as in checks of whole programs. */
static enum rp_code judge_tolerance(const struct rp_trial_judge *judge,
                                    const struct rp_cut_program *cut, struct rp_tolerance *out,
                                    struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_signature sig;
    const uint8_t *through = NULL;

    *out = judge->tolerance;

    out->through = RP_ELEM_INVALID;
    RP_TRY(rp_signature_find(cut->program, &arena, &sig, err));
    RP_TRY(rp_precision_find(cut->program, &sig, &arena, &through, err));
    for (size_t i = 0; i < sig.nout; i++)
        if (through[i] != RP_ELEM_INVALID &&
            (out->through == RP_ELEM_INVALID ||
             rp_elem_mantissa(through[i]) < rp_elem_mantissa(out->through)))
            out->through = through[i];
    return RP_OK;
}

enum rp_code rp_trial_sensitivity(const struct rp_trial_engine *on, const struct rp_program *p,
                                  struct rp_tensor *const *arguments, size_t narguments,
                                  size_t partitions, double *moved, size_t n, struct rp_err *err)
{
    struct rp_trial_engine varied = *on;
    struct rp_tensor **base = NULL, **other = NULL;
    size_t nbase = 0, nother = 0;

    memset(moved, 0, n * sizeof *moved);
    enum rp_code code = rp_trial_once(on, p, arguments, narguments, partitions, &base, &nbase, err);
    /* Other inputs; the same, with sums backward and forward. */
    for (uint64_t k = 0; code == RP_OK && k <= 2; k++) {
        varied.options.vary = k;
        code =
            k ? rp_trial_once(&varied, p, arguments, narguments, partitions, &other, &nother, err)
              : rp_trial_nudged(on, p, arguments, narguments, partitions, &other, &nother, err);
        for (size_t i = 0; code == RP_OK && i < n && i < nbase && i < nother; i++) {
            struct rp_comparison c;

            rp_compare(other[i], base[i], NULL, &c);
            moved[i] = fmax(moved[i], c.max_abs);
        }
        rp_tensors_drop(other, nother);
        other = NULL;
    }
    rp_tensors_drop(base, nbase);
    return code;
}

enum rp_code rp_trial_judge(const struct rp_trial_judge *judge, const struct rp_cut_program *cut,
                            struct rp_tensor *const *arguments, size_t partitions,
                            struct rp_tensor *const *got, struct rp_tensor *const *want, size_t n,
                            struct rp_trial_verdict *out, struct rp_err *err)
{
    struct rp_tolerance tolerance;
    double *moved, most = 0;

    *out = (struct rp_trial_verdict){.ok = true};
    RP_TRY(judge_tolerance(judge, cut, &tolerance, err));
    for (size_t i = 0; i < n; i++) {
        struct rp_comparison c;

        rp_compare(got[i], want[i], &tolerance, &c);
        verdict_add(out, &c);
    }
    if (out->ok || out->reason)
        return RP_OK;
    moved = calloc(n + 1, sizeof *moved);
    enum rp_code code = moved ? rp_trial_sensitivity(judge->oracle, cut->program, arguments,
                                                     cut->inputs.n, partitions, moved, n, err)
                              : rp_err_nomem(err, "measuring sensitivity");
    for (size_t i = 0; code == RP_OK && i < n; i++)
        most = fmax(most, moved[i]);
    free(moved);
    out->sensitive = isfinite(out->max_abs) && most * 4 >= out->max_abs;
    return code;
}
