/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `replay bisect`: finds the smallest part of a program that is still wrong, fails or is slow on an
 * engine.
 *
 * If a single operation is to blame, isolate.c finds it. Otherwise the part is shrunk: first to one
 * result, then its beginning is cut off (binary search over the order of operations), then groups
 * of operations, halved again and again, are replaced by the values they have on `ref`. A change
 * stays if the complaint stays. Values on `ref` are computed when a part needs them, and kept.
 */
#include "program/opcodes.h"
#include "replay/search.h"

#include "program/order.h"

#include <stdlib.h>
#include <string.h>

#define SLOW_RUNS 3

struct bisect {
    const struct rp_search *s;
    struct rp_values values;
    uint32_t computation, first, n;
    uint32_t *order; /* operations, each after its operands */
    struct rp_reproducer *out;
    struct rp_err *err;
};

/* A part: operations and results. */
struct part {
    uint8_t *keep; /* by position */
    uint32_t *outputs;
    size_t noutputs;
};

void rp_reproducer_release(struct rp_reproducer *r)
{
    rp_trial_cut_release(&r->part);
    r->complaint = RP_COMPLAINT_NONE;
}

enum rp_code rp_search_parameters(const struct rp_search *s, struct rp_values *values,
                                  struct rp_err *err)
{
    const struct rp_program *p = s->program;
    const struct rp_computation *c = &p->computations.at[p->entry];
    size_t at = 0;

    for (uint32_t number = 0; number < c->nparams; number++)
        for (uint32_t op = c->first; op < c->first + c->n; op++) {
            if (p->code.at[op] != RP_OP_PARAMETER || p->value.at[op] != (int64_t)number)
                continue;
            if (at + rp_shape_leaves(p, p->shape.at[op]) > s->narguments)
                return rp_err_set(err, RP_FORMAT, "the program has more than %zu inputs",
                                  s->narguments);
            RP_TRY(rp_values_put(values, op, s->arguments, s->narguments, at, err));
            at += rp_shape_leaves(p, p->shape.at[op]);
            break;
        }
    return RP_OK;
}

/* ---- parts ---- */

static enum rp_code part_init(const struct bisect *b, struct part *p)
{
    p->keep = calloc((size_t)b->n + 1, 1);
    p->outputs = calloc((size_t)b->n + 1, sizeof *p->outputs);
    p->noutputs = 0;
    return rp_err_need(p->keep && p->outputs, b->err, "shrinking a program");
}

static void part_release(struct part *p)
{
    free(p->keep);
    free(p->outputs);
}

static void part_copy(const struct bisect *b, struct part *to, const struct part *from)
{
    memcpy(to->keep, from->keep, b->n);
    memcpy(to->outputs, from->outputs, from->noutputs * sizeof *to->outputs);
    to->noutputs = from->noutputs;
}

static size_t part_size(const struct bisect *b, const struct part *p)
{
    size_t n = 0;

    for (uint32_t i = 0; i < b->n; i++)
        n += p->keep[i];
    return n;
}

/* Keeps only what the outputs need; parameters and constants follow. */
static void part_restrict(const struct bisect *b, struct part *p)
{
    const struct rp_program *program = b->s->program;
    uint8_t *kept = p->keep;

    for (uint32_t i = 0; i < b->n; i++)
        kept[i] = kept[i] ? 1 : 0;
    for (size_t i = 0; i < p->noutputs; i++)
        kept[p->outputs[i] - b->first] = 2;
    for (uint32_t k = b->n; k-- > 0;) {
        uint32_t op = b->order[k];
        struct rp_ids in = rp_op_operands(program, op);

        for (uint32_t i = 0; kept[op - b->first] == 2 && i < in.n; i++) {
            uint32_t at = in.at[i] - b->first;
            enum rp_opcode code = (enum rp_opcode)program->code.at[in.at[i]];

            if (kept[at] && code != RP_OP_PARAMETER && code != RP_OP_CONSTANT)
                kept[at] = 2;
        }
    }
    for (uint32_t i = 0; i < b->n; i++)
        kept[i] = kept[i] == 2;
}

/* ---- values on ref ---- */

/* Computes the values of all operations that `cut` needs and `keep` does not contain, in one run of
   what leads to them. */
static enum rp_code bisect_values(struct bisect *b, const struct rp_cut_program *cut)
{
    const struct rp_program *p = b->s->program;
    RP_SCOPED(part_release) struct part need = {0};
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut lead = {0};
    size_t at = 0;

    RP_TRY(part_init(b, &need));
    for (size_t i = 0; i < cut->inputs.n; i++) {
        uint32_t op = cut->inputs.at[i].op;

        if (rp_values_has(&b->values, op) || need.keep[op - b->first])
            continue;
        need.keep[op - b->first] = 1;
        need.outputs[need.noutputs++] = op;
    }
    if (!need.noutputs)
        return RP_OK;
    for (uint32_t i = 0; i < b->n; i++)
        need.keep[i] = !rp_values_has(&b->values, b->first + i);
    part_restrict(b, &need);
    RP_TRY(rp_values_run(
        &b->values, b->s->oracle,
        &(struct rp_cut){b->computation, need.keep, need.outputs, need.noutputs, false}, &lead,
        b->err));
    for (size_t i = 0; i < need.noutputs; i++) {
        RP_TRY(rp_values_put(&b->values, need.outputs[i], lead.outputs.at,
                             lead.outputs.n / b->s->partitions, at, b->err));
        at += rp_shape_leaves(p, p->shape.at[need.outputs[i]]);
    }
    return RP_OK;
}

/* Makes a part with the values that it needs. */
static enum rp_code bisect_cut(struct bisect *b, const struct rp_cut *cut, struct rp_trial_cut *out)
{
    RP_TRY(rp_program_cut(b->s->program, cut, &out->cut, b->err));
    RP_TRY(bisect_values(b, &out->cut));
    return rp_values_arguments(&b->values, out, b->err);
}

/* ---- the complaint about a part ---- */

static enum rp_code complaint_slow(const struct bisect *b, const struct rp_trial_part *part,
                                   enum rp_complaint *out)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors outputs = {0};
    RP_SCOPED(rp_trial_close) struct rp_trial t = {0};
    const struct rp_search *s = b->s;
    int64_t best = INT64_MAX, ns;

    RP_TRY(rp_trial_open(s->tested, part, &t, b->err));
    for (int i = 0; i < SLOW_RUNS && best >= s->slower_ns; i++) {
        RP_TRY(rp_trial_run(&t, part->arguments, &outputs, &ns, b->err));
        best = ns < best ? ns : best;
    }
    *out = best >= s->slower_ns ? RP_COMPLAINT_SLOW : RP_COMPLAINT_NONE;
    return RP_OK;
}

/* want: becomes what ref gives, if that is known. */
static enum rp_code complaint_wrong(const struct bisect *b, const struct rp_trial_part *part,
                                    struct rp_tensors *want, enum rp_complaint *out)
{
    const struct rp_search *s = b->s;
    struct rp_trial_judge judge = {s->oracle, s->tolerance};
    RP_SCOPED(rp_tensors_release) struct rp_tensors got = {0};
    struct rp_trial_verdict v;

    *out = RP_COMPLAINT_NONE;
    enum rp_code code = rp_trial_once(s->oracle, part, want, b->err);
    if (code != RP_OK) {
        rp_tensors_release(want);
        return rp_trial_is_ours(code) ? code : RP_OK; /* such a part tells nothing */
    }
    code = rp_trial_once(s->tested, part, &got, b->err);
    if (code != RP_OK) {
        *out = RP_COMPLAINT_FAILS;
        rp_trial_message(b->err, b->out->message, sizeof b->out->message);
        return rp_trial_is_ours(code) ? code : RP_OK;
    }
    if (got.n != want->n) {
        *out = RP_COMPLAINT_FAILS;
        return RP_OK;
    }
    RP_TRY(rp_trial_judge(&judge, part, &got, want, &v, b->err));
    if (!v.ok && !v.sensitive)
        *out = RP_COMPLAINT_WRONG;
    return RP_OK;
}

/* Whether the part has the complaint that is followed; if so, it becomes the result. */
static enum rp_code bisect_try(struct bisect *b, const struct part *part, enum rp_complaint follow,
                               bool *stays)
{
    RP_SCOPED(rp_reproducer_release) struct rp_reproducer made = {0};
    struct rp_cut cut = {b->computation, part->keep, part->outputs, part->noutputs, false};
    enum rp_code code = bisect_cut(b, &cut, &made.part);

    *stays = false;
    b->out->trials++;
    if (code != RP_OK)
        return rp_trial_is_ours(code) ? code : RP_OK;
    struct rp_trial_part tried = rp_trial_cut_part(&made.part, b->s->partitions);
    RP_TRY(b->s->slower_ns ? complaint_slow(b, &tried, &made.complaint)
                           : complaint_wrong(b, &tried, &made.part.outputs, &made.complaint));
    *stays = made.complaint != RP_COMPLAINT_NONE &&
             (follow == RP_COMPLAINT_NONE || made.complaint == follow);
    if (!*stays)
        return RP_OK;
    rp_reproducer_release(b->out);
    made.trials = b->out->trials;
    made.before = b->out->before;
    memcpy(made.message, b->out->message, sizeof made.message);
    *b->out = made;
    memset(&made, 0, sizeof made); /* nothing is left to release */
    return RP_OK;
}

/* ---- shrinking ---- */

/* Replaces `now` by the trial if the complaint stays; sets *stays then. */
static enum rp_code try_part(struct bisect *b, struct part *now, struct part *trial, bool *stays)
{
    bool kept;

    part_restrict(b, trial);
    RP_TRY(bisect_try(b, trial, b->out->complaint, &kept));
    if (kept)
        part_copy(b, now, trial);
    *stays |= kept;
    return RP_OK;
}

/* Replaces groups of `size` kept operations, but not outputs. */
static enum rp_code shrink_groups(struct bisect *b, struct part *now, size_t size, bool *shrunk)
{
    RP_SCOPED(part_release) struct part trial = {0};
    uint32_t k = 0;

    RP_TRY(part_init(b, &trial));
    while (k < b->n) {
        size_t taken = 0;

        part_copy(b, &trial, now);
        for (; k < b->n && taken < size; k++) {
            uint32_t at = b->order[k] - b->first;
            bool output = false;

            for (size_t i = 0; i < now->noutputs; i++)
                output |= now->outputs[i] == b->order[k];
            if (now->keep[at] && !output) {
                trial.keep[at] = 0;
                taken++;
            }
        }
        if (!taken)
            break;
        RP_TRY(try_part(b, now, &trial, shrunk));
    }
    return RP_OK;
}

/* Tries an operation as the only result. */
static enum rp_code try_result(struct bisect *b, struct part *now, struct part *trial, uint32_t op,
                               bool *stays)
{
    part_copy(b, trial, now);
    trial->outputs[0] = op;
    trial->noutputs = 1;
    return try_part(b, now, trial, stays);
}

/* Tries an earlier operation as the only result, the earliest first. */
static enum rp_code shrink_end(struct bisect *b, struct part *now, bool *shrunk)
{
    RP_SCOPED(part_release) struct part trial = {0};
    bool stays = false;

    RP_TRY(part_init(b, &trial));
    for (uint32_t k = 0; !stays && k < b->n; k++) {
        uint32_t op = b->order[k];

        if (now->keep[op - b->first] && !(now->noutputs == 1 && now->outputs[0] == op) &&
            rp_shape_leaves(b->s->program, b->s->program->shape.at[op]))
            RP_TRY(try_result(b, now, &trial, op, &stays));
    }
    *shrunk |= stays;
    return RP_OK;
}

static enum rp_code bisect_shrink(struct bisect *b, struct part *now)
{
    /* Tries results one by one; the first that shows the complaint alone is kept. */
    const struct rp_program *p = b->s->program;
    uint32_t root = p->computations.at[b->computation].root;
    struct rp_ids in = rp_op_operands(p, root);
    RP_SCOPED(part_release) struct part trial = {0};
    bool stays = false, shrunk = true;

    RP_TRY(part_init(b, &trial));
    for (uint32_t i = 0; p->code.at[root] == RP_OP_TUPLE && !stays && i < in.n; i++) {
        enum rp_opcode made_by = (enum rp_opcode)p->code.at[in.at[i]];

        if (made_by != RP_OP_PARAMETER && made_by != RP_OP_CONSTANT)
            RP_TRY(try_result(b, now, &trial, in.at[i], &stays));
    }
    /* Cuts off the beginning: replaces operations before the middle by their values. */
    for (uint32_t low = 0, high = b->n; high - low > 1;) {
        uint32_t middle = low + (high - low) / 2;

        part_copy(b, &trial, now);
        for (uint32_t k = 0; k < middle; k++)
            trial.keep[b->order[k] - b->first] = 0;
        for (size_t i = 0; i < trial.noutputs; i++)
            trial.keep[trial.outputs[i] - b->first] = 1;
        stays = false;
        RP_TRY(try_part(b, now, &trial, &stays));
        if (stays)
            low = middle;
        else
            high = middle;
    }
    while (shrunk && part_size(b, now) > 1) {
        shrunk = false;
        for (size_t size = part_size(b, now) / 2; size > 0; size /= 2)
            RP_TRY(shrink_groups(b, now, size, &shrunk));
        if (part_size(b, now) <= 64)
            RP_TRY(shrink_end(b, now, &shrunk));
    }
    return RP_OK;
}

/* ---- all of it ---- */

static enum rp_code bisect_init(struct bisect *b)
{
    const struct rp_program *p = b->s->program;
    const struct rp_computation *c = &p->computations.at[p->entry];
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;

    b->computation = p->entry;
    b->first = c->first;
    b->n = c->n;
    b->order = calloc((size_t)c->n + 1, sizeof *b->order);
    RP_TRY(rp_err_need(b->order, b->err, "shrinking a program"));
    RP_TRY(rp_values_init(&b->values, p, b->s->partitions, b->err));
    RP_TRY(rp_search_parameters(b->s, &b->values, b->err));

    return rp_computation_order(p, p->entry, &scratch, b->order, b->err);
}

static void bisect_release(struct bisect *b)
{
    rp_values_release(&b->values);
    free(b->order);
}

enum rp_code rp_bisect(const struct rp_search *search, struct rp_arena *arena,
                       struct rp_reproducer *out, struct rp_err *err)
{
    RP_SCOPED(bisect_release) struct bisect b = {.s = search, .out = out, .err = err};
    RP_SCOPED(rp_reproducer_release) struct rp_reproducer single = {0};
    RP_SCOPED(part_release) struct part now = {0};
    struct rp_isolated isolated;
    bool stays = false;

    *out = (struct rp_reproducer){0};
    RP_TRY(bisect_init(&b));
    RP_TRY(part_init(&b, &now));
    memset(now.keep, 1, b.n);
    now.outputs[now.noutputs++] = search->program->computations.at[b.computation].root;
    part_restrict(&b, &now);
    out->before = (int64_t)part_size(&b, &now);
    RP_TRY(bisect_try(&b, &now, RP_COMPLAINT_NONE, &stays));
    if (!search->slower_ns) { /* also if the program's own outputs hide it */
        enum rp_code code = rp_isolate(search, arena, &isolated, &single, err);

        if (code == RP_OK && single.complaint != RP_COMPLAINT_NONE &&
            (!stays || single.complaint == out->complaint)) {
            single.hidden = !stays;
            single.trials = out->trials + isolated.tested;
            single.before = out->before;
            rp_reproducer_release(out);
            *out = single;
            single = (struct rp_reproducer){0};
            return RP_OK;
        }
        if (rp_trial_is_ours(code)) /* ref may not know every operation on its own */
            return code;
    }
    return stays ? bisect_shrink(&b, &now) : RP_OK;
}

enum rp_code rp_search_part(const struct rp_search *search, const uint8_t *keep,
                            const uint32_t *outputs, size_t noutputs, struct rp_reproducer *out,
                            struct rp_err *err)
{
    RP_SCOPED(bisect_release) struct bisect b = {.s = search, .out = out, .err = err};

    *out = (struct rp_reproducer){0};
    RP_TRY(bisect_init(&b));
    RP_TRY(bisect_cut(&b, &(struct rp_cut){b.computation, keep, outputs, noutputs, false},
                      &out->part));
    struct rp_trial_part part = rp_trial_cut_part(&out->part, search->partitions);
    return rp_trial_once(search->oracle, &part, &out->part.outputs, err);
}
