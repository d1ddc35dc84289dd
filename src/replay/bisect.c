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

void rp_reproducer_release(struct rp_reproducer *r, size_t partitions)
{
    rp_tensors_drop(r->arguments, r->cut.inputs.n * partitions);
    rp_tensors_drop(r->expected, r->nexpected);
    rp_cut_release(&r->cut);
    r->arguments = r->expected = NULL;
    r->nexpected = 0;
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
    struct part need;
    struct rp_cut_program lead = {0};
    struct rp_tensor **arguments = NULL, **outputs = NULL;
    size_t n = 0, at = 0;
    enum rp_code code = part_init(b, &need);

    for (size_t i = 0; code == RP_OK && i < cut->inputs.n; i++) {
        uint32_t op = cut->inputs.at[i].op;

        if (rp_values_has(&b->values, op) || need.keep[op - b->first])
            continue;
        need.keep[op - b->first] = 1;
        need.outputs[need.noutputs++] = op;
    }
    if (code == RP_OK && need.noutputs) {
        for (uint32_t i = 0; i < b->n; i++)
            need.keep[i] = !rp_values_has(&b->values, b->first + i);
        part_restrict(b, &need);
        code = rp_program_cut(
            p, &(struct rp_cut){b->computation, need.keep, need.outputs, need.noutputs, false},
            &lead, b->err);
        if (code == RP_OK)
            code = rp_values_arguments(&b->values, &lead, &arguments, b->err);
        if (code == RP_OK)
            code = rp_trial_once(b->s->oracle, lead.program, arguments, lead.inputs.n,
                                 b->s->partitions, &outputs, &n, b->err);
        for (size_t i = 0; code == RP_OK && i < need.noutputs; i++) {
            code = rp_values_put(&b->values, need.outputs[i], outputs, n / b->s->partitions, at,
                                 b->err);
            at += rp_shape_leaves(p, p->shape.at[need.outputs[i]]);
        }
    }
    rp_tensors_drop(outputs, n);
    free(arguments);
    rp_cut_release(&lead);
    part_release(&need);
    return code;
}

/* ---- the complaint about a part ---- */

static enum rp_code complaint_slow(const struct bisect *b, const struct rp_cut_program *cut,
                                   struct rp_tensor *const *arguments, enum rp_complaint *out)
{
    const struct rp_search *s = b->s;
    int64_t best = INT64_MAX, ns;
    struct rp_trial t;
    enum rp_code code =
        rp_trial_open(s->tested, cut->program, arguments, cut->inputs.n, s->partitions, &t, b->err);

    for (int i = 0; code == RP_OK && i < SLOW_RUNS && best >= s->slower_ns; i++) {
        struct rp_tensor **outputs = calloc(t.noutputs + 1, sizeof *outputs);

        code = outputs ? rp_trial_run(&t, arguments, outputs, &ns, b->err)
                       : rp_err_nomem(b->err, "shrinking a program");
        if (code == RP_OK && ns < best)
            best = ns;
        rp_tensors_drop(outputs, t.noutputs);
    }
    *out = code == RP_OK && best >= s->slower_ns ? RP_COMPLAINT_SLOW : RP_COMPLAINT_NONE;
    rp_trial_close(&t);
    return code;
}

static bool is_ours(enum rp_code code)
{
    return code == RP_NOMEM || code == RP_BUG || code == RP_CANCELLED;
}

/* want: a new list with what ref gives; NULL if that is not known. */
static enum rp_code complaint_wrong(const struct bisect *b, const struct rp_cut_program *cut,
                                    struct rp_tensor *const *arguments, struct rp_tensor ***want,
                                    size_t *nwant, enum rp_complaint *out)
{
    const struct rp_search *s = b->s;
    struct rp_trial_judge judge = {s->oracle, s->tolerance};
    struct rp_tensor **got = NULL;
    struct rp_trial_verdict v;
    size_t n = 0;

    *want = NULL;
    *out = RP_COMPLAINT_NONE;
    enum rp_code code = rp_trial_once(s->oracle, cut->program, arguments, cut->inputs.n,
                                      s->partitions, want, nwant, b->err);
    if (code != RP_OK)
        return is_ours(code) ? code : RP_OK; /* such a part tells nothing */
    code = rp_trial_once(s->tested, cut->program, arguments, cut->inputs.n, s->partitions, &got, &n,
                         b->err);
    if (code != RP_OK) {
        *out = RP_COMPLAINT_FAILS;
        rp_trial_message(b->err, b->out->message, sizeof b->out->message);
        return is_ours(code) ? code : RP_OK;
    }
    if (n != *nwant) {
        *out = RP_COMPLAINT_FAILS;
    } else {
        code = rp_trial_judge(&judge, cut, arguments, s->partitions, got, *want, n, &v, b->err);
        if (code == RP_OK && !v.ok && !v.sensitive)
            *out = RP_COMPLAINT_WRONG;
    }
    rp_tensors_drop(got, n);
    return code;
}

/* Whether the part has the complaint that is followed; if so, it becomes the result. */
static enum rp_code bisect_try(struct bisect *b, const struct part *part, enum rp_complaint follow,
                               bool *stays)
{
    struct rp_reproducer made = {0};
    struct rp_cut cut = {b->computation, part->keep, part->outputs, part->noutputs, false};
    size_t parts = b->s->partitions;
    enum rp_code code = rp_program_cut(b->s->program, &cut, &made.cut, b->err);

    *stays = false;
    b->out->trials++;
    if (code == RP_OK)
        code = bisect_values(b, &made.cut);
    if (code == RP_OK)
        code = rp_values_arguments(&b->values, &made.cut, &made.arguments, b->err);
    for (size_t i = 0; code == RP_OK && i < made.cut.inputs.n * parts; i++)
        rp_tensor_keep(made.arguments[i]);
    if (code != RP_OK) {
        free(made.arguments);
        rp_cut_release(&made.cut);
        return is_ours(code) ? code : RP_OK;
    }
    code = b->s->slower_ns ? complaint_slow(b, &made.cut, made.arguments, &made.complaint)
                           : complaint_wrong(b, &made.cut, made.arguments, &made.expected,
                                             &made.nexpected, &made.complaint);
    if (code == RP_OK && made.complaint != RP_COMPLAINT_NONE &&
        (follow == RP_COMPLAINT_NONE || made.complaint == follow)) {
        *stays = true;
        rp_reproducer_release(b->out, parts);
        made.trials = b->out->trials;
        made.before = b->out->before;
        memcpy(made.message, b->out->message, sizeof made.message);
        *b->out = made;
        return RP_OK;
    }
    rp_reproducer_release(&made, parts);
    return code;
}

/* ---- shrinking ---- */

/* Replaces operations before place `from` by their values. */
static enum rp_code try_suffix(struct bisect *b, struct part *now, struct part *trial,
                               uint32_t from, bool *stays)
{
    part_copy(b, trial, now);
    for (uint32_t k = 0; k < from; k++)
        trial->keep[b->order[k] - b->first] = 0;
    for (size_t i = 0; i < trial->noutputs; i++)
        trial->keep[trial->outputs[i] - b->first] = 1;
    part_restrict(b, trial);
    RP_TRY(bisect_try(b, trial, b->out->complaint, stays));
    if (*stays)
        part_copy(b, now, trial);
    return RP_OK;
}

static enum rp_code shrink_beginning(struct bisect *b, struct part *now)
{
    uint32_t low = 0, high = b->n;
    RP_SCOPED(part_release) struct part trial = {0};
    bool stays;

    RP_TRY(part_init(b, &trial));
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        RP_TRY(try_suffix(b, now, &trial, middle, &stays));
        if (stays)
            low = middle;
        else
            high = middle;
    }
    return RP_OK;
}

/* Replaces groups of `size` kept operations, but not outputs. */
static enum rp_code shrink_groups(struct bisect *b, struct part *now, size_t size, bool *shrunk)
{
    struct part trial;
    enum rp_code code = part_init(b, &trial);
    uint32_t k = 0;

    while (code == RP_OK && k < b->n) {
        size_t taken = 0;
        bool stays = false;

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
        part_restrict(b, &trial);
        code = bisect_try(b, &trial, b->out->complaint, &stays);
        if (stays) {
            part_copy(b, now, &trial);
            *shrunk = true;
        }
    }
    part_release(&trial);
    return code;
}

/* Tries an earlier operation as the only result, the earliest first. */
static enum rp_code shrink_end(struct bisect *b, struct part *now, bool *shrunk)
{
    struct part trial;
    enum rp_code code = part_init(b, &trial);
    bool stays = false;

    for (uint32_t k = 0; code == RP_OK && !stays && k < b->n; k++) {
        uint32_t op = b->order[k];

        if (!now->keep[op - b->first] || (now->noutputs == 1 && now->outputs[0] == op) ||
            !rp_shape_leaves(b->s->program, b->s->program->shape.at[op]))
            continue;
        part_copy(b, &trial, now);
        trial.outputs[0] = op;
        trial.noutputs = 1;
        part_restrict(b, &trial);
        code = bisect_try(b, &trial, b->out->complaint, &stays);
        if (stays) {
            part_copy(b, now, &trial);
            *shrunk = true;
        }
    }
    part_release(&trial);
    return code;
}

static enum rp_code bisect_shrink(struct bisect *b, struct part *now)
{
    bool shrunk = true;

    /* Tries results one by one; the first that shows the complaint alone is kept. */
    const struct rp_program *p = b->s->program;
    uint32_t root = p->computations.at[b->computation].root;
    struct rp_ids in = rp_op_operands(p, root);
    struct part trial;
    bool stays = false;
    enum rp_code code = part_init(b, &trial);
    for (uint32_t i = 0; code == RP_OK && p->code.at[root] == RP_OP_TUPLE && !stays && i < in.n;
         i++) {
        enum rp_opcode made_by = (enum rp_opcode)p->code.at[in.at[i]];

        if (made_by == RP_OP_PARAMETER || made_by == RP_OP_CONSTANT)
            continue;
        part_copy(b, &trial, now);
        trial.outputs[0] = in.at[i];
        trial.noutputs = 1;
        part_restrict(b, &trial);
        code = bisect_try(b, &trial, b->out->complaint, &stays);
        if (code == RP_OK && stays)
            part_copy(b, now, &trial);
    }
    part_release(&trial);
    RP_TRY(code);
    RP_TRY(shrink_beginning(b, now));
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

static enum rp_code bisect_run(struct bisect *b, struct rp_arena *arena)
{
    struct rp_reproducer single = {0};
    struct rp_isolated isolated;
    struct part now;
    enum rp_code code = part_init(b, &now);
    bool stays = false;

    if (code == RP_OK) {
        memset(now.keep, 1, b->n);
        now.outputs[now.noutputs++] = b->s->program->computations.at[b->computation].root;
        part_restrict(b, &now);
        b->out->before = (int64_t)part_size(b, &now);
        code = bisect_try(b, &now, RP_COMPLAINT_NONE, &stays);
    }
    if (code == RP_OK && !b->s->slower_ns) { /* also if the program's own outputs hide it */
        code = rp_isolate(b->s, arena, &isolated, &single, b->err);
        if (code == RP_OK && single.complaint != RP_COMPLAINT_NONE &&
            (!stays || single.complaint == b->out->complaint)) {
            single.hidden = !stays;
            single.trials = b->out->trials + isolated.tested;
            single.before = b->out->before;
            rp_reproducer_release(b->out, b->s->partitions);
            *b->out = single;
            part_release(&now);
            return RP_OK;
        }
        rp_reproducer_release(&single, b->s->partitions);
        code = is_ours(code) ? code : RP_OK; /* ref may not know every operation on its own */
    }
    if (code == RP_OK && stays)
        code = bisect_shrink(b, &now);
    part_release(&now);
    return code;
}

enum rp_code rp_bisect(const struct rp_search *search, struct rp_arena *arena,
                       struct rp_reproducer *out, struct rp_err *err)
{
    struct bisect b = {.s = search, .out = out, .err = err};

    *out = (struct rp_reproducer){0};
    enum rp_code code = bisect_init(&b);
    if (code == RP_OK)
        code = bisect_run(&b, arena);
    rp_values_release(&b.values);
    free(b.order);
    return code;
}

enum rp_code rp_search_part(const struct rp_search *search, const uint8_t *keep,
                            const uint32_t *outputs, size_t noutputs, struct rp_reproducer *out,
                            struct rp_err *err)
{
    struct bisect b = {.s = search, .out = out, .err = err};

    *out = (struct rp_reproducer){0};
    enum rp_code code = bisect_init(&b);
    if (code == RP_OK)
        code = rp_program_cut(search->program,
                              &(struct rp_cut){b.computation, keep, outputs, noutputs, false},
                              &out->cut, err);
    if (code == RP_OK)
        code = bisect_values(&b, &out->cut);
    if (code == RP_OK)
        code = rp_values_arguments(&b.values, &out->cut, &out->arguments, err);
    for (size_t i = 0; code == RP_OK && i < out->cut.inputs.n * search->partitions; i++)
        rp_tensor_keep(out->arguments[i]);
    if (code != RP_OK) { /* the list holds nothing yet */
        free(out->arguments);
        out->arguments = NULL;
    }
    if (code == RP_OK)
        code = rp_trial_once(search->oracle, out->cut.program, out->arguments, out->cut.inputs.n,
                             search->partitions, &out->expected, &out->nexpected, err);
    rp_values_release(&b.values);
    free(b.order);
    return code;
}
