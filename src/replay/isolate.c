/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `replay isolate` finds which operation is wrong on an engine. `ref` computes the real value of
 * every operation; the tested engine runs each operation alone on the real values of its operands.
 * So an error does not spread, and the first operation that differs is where a wrong result begins.
 *
 * Operations are run in batches: `ref` runs a batch as it is, the tested engine runs a program in
 * which every operand is a parameter, so that no operation sees the result of another. A difference
 * is confirmed by running the operation alone. Calls are always entered, because an error inside of
 * one may be small compared with its results. Fusions, branches and loops are entered if they
 * differ or amplify rounding; loops, at the first iteration that differs. Values are dropped after
 * their last use.
 */
#include "program/opcodes.h"
#include "replay/search.h"

#include "program/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_OPS   64
#define BATCH_BYTES ((int64_t)512 << 20)
#define MOST_ROWS   50
#define MOST_DEPTH  16
#define MOST_LOOPS  100000 /* most iterations that are examined */

struct isolate {
    const struct rp_search *search;
    struct rp_arena *arena; /* of the rows */
    struct rp_isolated *out;
    struct rp_reproducer *capture; /* for the first operation that differs; or NULL */
    unsigned depth, captured_depth;
    bool within; /* now inside of the captured operation */
    struct rp_err *err;
};

/* walk: one computation that is visited. */
struct walk {
    struct isolate *i;
    uint32_t computation, first, n;
    const char *inside; /* the operation that calls it, or NULL */
    uint32_t caller;    /* if `called`, the nearest call with a source line */
    bool called;
    int64_t iteration; /* iteration of a loop, or RP_ABSENT_I64 */
    struct rp_values *values;
    uint32_t *order, *last_use; /* by position in the computation: in the file; in `order` */
    uint8_t *live, *keep;
    uint32_t *batch;
    size_t nbatch;
    int64_t bytes;
};

/* ---- which operations ---- */

static bool is_free(const struct rp_program *p, uint32_t op)
{
    switch (p->code.at[op]) {
    case RP_OP_PARAMETER:
    case RP_OP_CONSTANT:
    case RP_OP_TUPLE:
    case RP_OP_GET_TUPLE_ELEMENT:
    case RP_OP_AFTER_ALL:
    case RP_OP_ADD_DEPENDENCY:
    case RP_OP_OPT_BARRIER:
        return true;
    default:
        return false;
    }
}

/* Whether an operation has no value of its own to compare: asynchronous pairs, channels and random
   numbers. */
static bool is_skipped(const struct rp_program *p, uint32_t op)
{
    switch (p->code.at[op]) {
    case RP_OP_RNG:
    case RP_OP_RNG_GET_AND_UPDATE_STATE:
    case RP_OP_INFEED:
    case RP_OP_OUTFEED:
    case RP_OP_SEND:
    case RP_OP_SEND_DONE:
    case RP_OP_RECV:
    case RP_OP_RECV_DONE:
        return true;
    default:
        return !rp_shape_leaves(p, p->shape.at[op]);
    }
}

static void walk_mark_live(struct walk *w, const struct rp_program *p)
{
    for (uint32_t k = w->n; k-- > 0;) {
        uint32_t op = w->order[k];
        struct rp_ids operands = rp_op_operands(p, op);

        if (op == p->computations.at[w->computation].root)
            w->live[op - w->first] = 1;
        if (!w->live[op - w->first])
            continue;
        for (uint32_t i = 0; i < operands.n; i++) {
            uint32_t at = operands.at[i] - w->first;

            if (!w->live[at] || k > w->last_use[at])
                w->last_use[at] = k;
            w->live[at] = 1;
        }
    }
}

static enum rp_code walk_init(struct walk *w, struct isolate *i, uint32_t computation,
                              struct rp_values *values)
{
    const struct rp_program *p = i->search->program;
    const struct rp_computation *c = &p->computations.at[computation];
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;

    *w = (struct walk){.i = i,
                       .computation = computation,
                       .first = c->first,
                       .n = c->n,
                       .iteration = RP_ABSENT_I64,
                       .values = values};
    w->order = calloc((size_t)c->n + 1, sizeof *w->order);
    w->last_use = calloc((size_t)c->n + 1, sizeof *w->last_use);
    w->live = calloc((size_t)c->n + 1, 1);
    w->keep = calloc((size_t)c->n + 1, 1);
    w->batch = calloc(BATCH_OPS + 1, sizeof *w->batch);
    RP_TRY(rp_err_need(w->order && w->last_use && w->live && w->keep && w->batch, i->err,
                       "isolating operations"));
    RP_TRY(rp_computation_order(p, computation, &scratch, w->order, i->err));
    walk_mark_live(w, p);
    return RP_OK;
}

static void walk_release(struct walk *w)
{
    free(w->order);
    free(w->last_use);
    free(w->live);
    free(w->keep);
    free(w->batch);
}

/* ---- rows ---- */

/* The operation whose source line is used for `op`: itself, or what calls it. */
static uint32_t walk_placed(const struct walk *w, uint32_t op)
{
    struct rp_source_line at;

    return w->called && !rp_op_source(w->i->search->program, op, &at) ? w->caller : op;
}

static enum rp_code isolate_row(const struct walk *w, uint32_t op, const char *verdict,
                                const struct rp_trial_verdict *v, const char *message)
{
    struct isolate *i = w->i;
    struct rp_isolated *out = i->out;

    if (out->n == MOST_ROWS)
        return RP_OK;
    if (!out->rows) {
        out->rows = RP_ARENA_NEW(i->arena, struct rp_isolated_op, MOST_ROWS);
        RP_TRY(rp_err_need(out->rows, i->err, "isolating operations"));
    }
    struct rp_isolated_op *row = &out->rows[out->n++];
    *row = (struct rp_isolated_op){.op = op,
                                   .placed = walk_placed(w, op),
                                   .verdict = verdict,
                                   .inside = w->inside,
                                   .iteration = w->iteration,
                                   .wrong = RP_ABSENT_I64,
                                   .elements = RP_ABSENT_I64,
                                   .max_abs = (double)NAN,
                                   .max_rel = (double)NAN};
    if (v) {
        row->max_abs = v->max_abs;
        row->max_rel = v->max_rel;
        row->wrong = v->wrong;
        row->elements = v->elements;
        message = message ? message : v->reason;
    }
    row->message = message ? rp_arena_strdup(i->arena, message) : NULL;
    return rp_arena_check(i->arena, "isolating operations", i->err);
}

/* ---- batches ---- */

/* keep: the operations of the batch that `want` selects. */
static size_t batch_select(const struct walk *w, const uint32_t *ops, size_t n, bool all,
                           uint32_t *selected)
{
    const struct rp_program *p = w->i->search->program;
    size_t count = 0;

    memset(w->keep, 0, w->n);
    for (size_t k = 0; k < n; k++)
        if (all || (!is_free(p, ops[k]) && !is_skipped(p, ops[k]))) {
            w->keep[ops[k] - w->first] = 1;
            selected[count++] = ops[k];
        }
    return count;
}

/* Runs some operations on an engine, with the known values. */
static enum rp_code batch_run(const struct walk *w, const struct rp_trial_engine *on, bool apart,
                              const uint32_t *ops, size_t n, struct rp_trial_cut *out)
{
    struct rp_cut cut = {w->computation, w->keep, ops, n, apart};

    return rp_values_run(w->values, on, &cut, out, w->i->err);
}

static enum rp_code batch_on_ref(struct walk *w)
{
    const struct rp_program *p = w->i->search->program;
    uint32_t selected[BATCH_OPS];
    size_t n = batch_select(w, w->batch, w->nbatch, true, selected), at = 0;
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut run = {0};

    RP_TRY(batch_run(w, w->i->search->oracle, false, selected, n, &run));
    size_t each = run.outputs.n / w->values->partitions;

    for (size_t k = 0; k < n; k++) {
        RP_TRY(rp_values_put(w->values, selected[k], run.outputs.at, each, at, w->i->err));
        at += rp_shape_leaves(p, p->shape.at[selected[k]]);
    }
    return RP_OK;
}

static enum rp_code isolate_enter(const struct walk *w, uint32_t op);

/* Keeps the first operation that differs, and inside of it again the first; takes over the run. */
static enum rp_code isolate_capture(const struct walk *w, enum rp_complaint complaint,
                                    const char *message, struct rp_trial_cut *run,
                                    const struct rp_tensors *want)
{
    struct isolate *i = w->i;
    struct rp_reproducer *r = i->capture;

    if (!r || (r->complaint != RP_COMPLAINT_NONE && (!i->within || i->depth <= i->captured_depth)))
        return RP_OK;
    rp_reproducer_release(r);
    i->captured_depth = i->depth;
    r->complaint = complaint;
    snprintf(r->message, sizeof r->message, "%s", message);
    r->part = *run;
    *run = (struct rp_trial_cut){0};
    rp_tensors_release(&r->part.outputs);
    RP_TRY(rp_tensors_new(want->n, &r->part.outputs, i->err));
    for (size_t k = 0; k < want->n; k++)
        r->part.outputs.at[k] = rp_tensor_keep(want->at[k]);
    return RP_OK;
}

/* Runs one operation on the tested engine. A failure of the engine counts for the operation. */
static enum rp_code isolate_alone(const struct walk *w, uint32_t op)
{
    struct isolate *i = w->i;
    const struct rp_search *s = i->search;
    const struct rp_tensors *want = &w->values->of[op];
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut run = {0};
    struct rp_trial_judge judge = {s->oracle, s->tolerance};
    struct rp_trial_verdict v;
    uint32_t selected[1];
    char message[256];

    batch_select(w, &op, 1, true, selected);
    enum rp_code code = batch_run(w, s->tested, true, selected, 1, &run);
    if (code == RP_OK && run.outputs.n != want->n)
        code = rp_err_set(i->err, RP_FORMAT, "%zu results instead of %zu", run.outputs.n, want->n);
    if (rp_trial_is_ours(code))
        return code;
    if (code != RP_OK) {
        bool supported = code != RP_UNSUPPORTED;

        i->out->diverging += supported;
        rp_trial_message(i->err, message, sizeof message);
        if (supported)
            RP_TRY(isolate_capture(w, RP_COMPLAINT_FAILS, message, &run, want));
        return isolate_row(w, op, supported ? "fails" : "not supported", NULL, message);
    }
    struct rp_trial_part part = rp_trial_cut_part(&run, w->values->partitions);
    RP_TRY(rp_trial_judge(&judge, &part, &run.outputs, want, &v, i->err));
    if (v.ok) {
        rp_trial_cut_release(&run); /* before others run */
        return s->program->code.at[op] == RP_OP_CALL ? isolate_enter(w, op) : RP_OK;
    }
    bool within = i->within;
    bool captured = i->capture && i->capture->complaint == RP_COMPLAINT_NONE;
    if (!v.sensitive)
        RP_TRY(isolate_capture(w, RP_COMPLAINT_WRONG, "", &run, want));
    rp_trial_cut_release(&run);
    (*(v.sensitive ? &i->out->sensitive : &i->out->diverging))++;
    RP_TRY(isolate_row(w, op, v.sensitive ? "amplifies rounding" : "differs", &v, NULL));
    i->within = within || (captured && !v.sensitive);
    code = isolate_enter(w, op);
    i->within = within;
    return code;
}

/* Whether an operation of a batch is within the tolerance of its type. If not, it is run alone; a
   call is always run alone, and then entered. */
static bool looks_right(const struct walk *w, uint32_t op, struct rp_tensor *const *got,
                        size_t each, size_t from)
{
    const struct rp_tensors *want = &w->values->of[op];
    size_t leaves = want->n / w->values->partitions;

    if (w->i->search->program->code.at[op] == RP_OP_CALL)
        return false;
    for (size_t k = 0; k < want->n; k++) {
        struct rp_comparison c;

        rp_compare(got[k / leaves * each + from + k % leaves], want->at[k],
                   &w->i->search->tolerance, &c);
        if (!c.ok)
            return false;
    }
    return true;
}

/* A batch that fails as a whole is halved until only the failing operation is left. */
static enum rp_code batch_on_tested(struct walk *w, const uint32_t *ops, size_t n)
{
    const struct rp_program *p = w->i->search->program;
    uint32_t selected[BATCH_OPS];
    size_t count = batch_select(w, ops, n, false, selected), at = 0;
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut run = {0};

    if (!count)
        return RP_OK;
    if (count == 1)
        return isolate_alone(w, selected[0]);
    enum rp_code code = batch_run(w, w->i->search->tested, true, selected, count, &run);
    if (rp_trial_is_ours(code))
        return code;
    if (code != RP_OK) {
        rp_trial_cut_release(&run);
        RP_TRY(batch_on_tested(w, ops, n / 2));
        return batch_on_tested(w, ops + n / 2, n - n / 2);
    }
    size_t each = run.outputs.n / w->values->partitions;
    for (size_t k = 0; k < count; k++) {
        if (!looks_right(w, selected[k], run.outputs.at, each, at))
            RP_TRY(isolate_alone(w, selected[k]));
        at += rp_shape_leaves(p, p->shape.at[selected[k]]);
    }
    return RP_OK;
}

static enum rp_code batch_finish(struct walk *w, uint32_t done)
{
    const struct rp_program *p = w->i->search->program;

    if (!w->nbatch)
        return RP_OK;
    RP_TRY(batch_on_ref(w));
    RP_TRY(batch_on_tested(w, w->batch, w->nbatch));
    for (size_t k = 0; k < w->nbatch; k++)
        w->i->out->tested += !is_free(p, w->batch[k]) && !is_skipped(p, w->batch[k]);
    w->nbatch = 0;
    w->bytes = 0;
    for (uint32_t k = 0; k < done; k++)
        if (w->last_use[w->order[k] - w->first] < done &&
            w->order[k] != p->computations.at[w->computation].root)
            rp_values_forget(w->values, w->order[k]);
    return RP_OK;
}

/* Walks a computation whose parameters have values. */
static enum rp_code isolate_walk(struct walk *w)
{
    const struct rp_program *p = w->i->search->program;

    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t op = w->order[k];

        if (!w->live[op - w->first] || p->code.at[op] == RP_OP_PARAMETER ||
            !rp_shape_leaves(p, p->shape.at[op]))
            continue;
        w->batch[w->nbatch++] = op;
        w->bytes += rp_shape_bytes(p, p->shape.at[op]);
        if (w->nbatch == BATCH_OPS || w->bytes > BATCH_BYTES)
            RP_TRY(batch_finish(w, k + 1));
    }
    return batch_finish(w, w->n);
}

/* ---- inside of operations ---- */

/* Sets the values of a computation's parameters: operand k of the call is parameter k. */
static enum rp_code enter_parameters(const struct walk *w, uint32_t computation,
                                     const struct rp_tensors *operands, uint32_t n,
                                     struct rp_values *inner)
{
    const struct rp_program *p = w->i->search->program;
    const struct rp_computation *c = &p->computations.at[computation];

    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t op = c->first + k;
        int64_t number = p->value.at[op];

        if (p->code.at[op] != RP_OP_PARAMETER)
            continue;
        if (number < 0 || number >= (int64_t)n)
            return rp_err_set(w->i->err, RP_FORMAT, "'%s' is called with %u operands",
                              rp_program_text(p, c->name), n);
        size_t each = operands[number].n / inner->partitions;
        if (each)
            RP_TRY(rp_values_put(inner, op, operands[number].at, each, 0, w->i->err));
    }
    return RP_OK;
}

static enum rp_code enter_computation(const struct walk *outer, uint32_t op, uint32_t computation,
                                      const struct rp_tensors *operands, uint32_t n,
                                      int64_t iteration)
{
    struct isolate *i = outer->i;
    const struct rp_program *p = i->search->program;
    RP_SCOPED(rp_values_release) struct rp_values values = {0};
    RP_SCOPED(walk_release) struct walk w = {0};

    if (i->depth >= MOST_DEPTH)
        return RP_OK;
    RP_TRY(rp_values_init(&values, p, outer->values->partitions, i->err));
    RP_TRY(enter_parameters(outer, computation, operands, n, &values));
    RP_TRY(walk_init(&w, i, computation, &values));
    w.inside = rp_program_text(p, p->op_name.at[op]);
    w.caller = walk_placed(outer, op);
    w.called = true;
    w.iteration = iteration;
    i->depth++;
    enum rp_code code = isolate_walk(&w);
    i->depth--;
    return code;
}

/* Cuts out a whole computation: its parameters are the only inputs, in the order of the file. */
static enum rp_code cut_whole(const struct isolate *i, uint32_t computation,
                              struct rp_cut_program *out)
{
    const struct rp_computation *c = &i->search->program->computations.at[computation];
    RP_FREED uint8_t *keep = malloc((size_t)c->n + 1);
    struct rp_cut cut = {computation, keep, &c->root, 1, false};

    RP_TRY(rp_err_need(keep, i->err, "entering a loop"));
    memset(keep, 1, (size_t)c->n + 1);

    return rp_program_cut(i->search->program, &cut, out, i->err);
}

struct loop {
    struct rp_cut_program body, condition;
    struct rp_trial on_ref, ask, on_tested; /* the body on ref; the condition; the body on tested */
    struct rp_tensors state, next, got;
};

static void loop_release(struct loop *l)
{
    rp_trial_close(&l->on_ref);
    rp_trial_close(&l->ask);
    rp_trial_close(&l->on_tested);
    rp_cut_release(&l->body);
    rp_cut_release(&l->condition);
    rp_tensors_release(&l->state);
    rp_tensors_release(&l->next);
    rp_tensors_release(&l->got);
}

/* Runs a part whose only parameter is the state, so its inputs are the leaves of the state. */
static enum rp_code loop_run(const struct walk *w, const struct rp_cut_program *cut,
                             const struct rp_tensors *state, struct rp_trial *t,
                             struct rp_tensors *out)
{
    size_t parts = w->values->partitions, each = state->n / parts, n = cut->inputs.n;
    RP_FREED struct rp_tensor **arguments = calloc(n * parts + 1, sizeof *arguments);

    RP_TRY(rp_err_need(arguments, w->i->err, "entering a loop"));
    for (size_t k = 0; k < parts; k++)
        for (size_t j = 0; j < n; j++) {
            if (cut->inputs.at[j].leaf >= each)
                return rp_err_set(w->i->err, RP_FORMAT, "a loop whose state does not fit its body");
            arguments[k * n + j] = state->at[k * each + cut->inputs.at[j].leaf];
        }
    return rp_trial_run(t, arguments, out, NULL, w->i->err);
}

/* Runs one iteration; *stop is set if the loop ends or was entered. */
static enum rp_code loop_step(const struct walk *w, uint32_t op, struct loop *l, int64_t k,
                              bool *stop)
{
    struct rp_ids called = rp_op_called(w->i->search->program, op);
    RP_SCOPED(rp_tensors_release) struct rp_tensors go = {0};
    bool same = true;

    RP_TRY(loop_run(w, &l->condition, &l->state, &l->ask, &go));
    *stop = !go.n || !rp_tensor_integer(go.at[0], 0);
    if (*stop)
        return RP_OK;
    RP_TRY(loop_run(w, &l->body, &l->state, &l->on_ref, &l->next));
    RP_TRY(loop_run(w, &l->body, &l->state, &l->on_tested, &l->got));
    for (size_t i = 0; same && i < l->next.n && i < l->got.n; i++) {
        struct rp_comparison c;

        rp_compare(l->got.at[i], l->next.at[i], &w->i->search->tolerance, &c);
        same = c.ok;
    }
    if (!same) {
        *stop = true;
        return enter_computation(w, op, called.at[0], &l->state, 1, k);
    }
    rp_tensors_release(&l->state);
    l->state = l->next;
    l->next = (struct rp_tensors){0};
    return RP_OK;
}

static enum rp_code loop_open(const struct walk *w, uint32_t op, struct loop *l)
{
    const struct rp_search *s = w->i->search;
    struct rp_ids called = rp_op_called(s->program, op), in = rp_op_operands(s->program, op);
    const struct rp_tensors *start = &w->values->of[in.at[0]];
    struct rp_trial_part part = {.partitions = w->values->partitions};

    if (called.n != 2)
        return rp_err_set(w->i->err, RP_FORMAT, "a loop without a body and a condition");
    RP_TRY(rp_tensors_new(start->n, &l->state, w->i->err));
    for (size_t i = 0; i < start->n; i++)
        l->state.at[i] = rp_tensor_keep(start->at[i]);
    RP_TRY(cut_whole(w->i, called.at[0], &l->body));
    RP_TRY(cut_whole(w->i, called.at[1], &l->condition));
    part.program = l->body.program;
    part.narguments = l->body.inputs.n;
    RP_TRY(rp_trial_open(s->oracle, &part, &l->on_ref, w->i->err));
    RP_TRY(rp_trial_open(s->tested, &part, &l->on_tested, w->i->err));
    part.program = l->condition.program;
    part.narguments = l->condition.inputs.n;
    return rp_trial_open(s->oracle, &part, &l->ask, w->i->err);
}

/* Enters what a diverging operation calls, with the values of the call. */
static enum rp_code isolate_enter(const struct walk *w, uint32_t op)
{
    const struct rp_program *p = w->i->search->program;
    struct rp_ids called = rp_op_called(p, op), in = rp_op_operands(p, op);
    size_t which = 0;

    if (!called.n || !in.n)
        return RP_OK;
    if (p->code.at[op] == RP_OP_WHILE) {
        RP_SCOPED(loop_release) struct loop l = {0};
        bool stop = false;

        RP_TRY(loop_open(w, op, &l));
        for (int64_t k = 0; !stop && k < MOST_LOOPS; k++)
            RP_TRY(loop_step(w, op, &l, k, &stop));
        return RP_OK;
    }
    RP_FREED struct rp_tensors *operands = calloc((size_t)in.n + 1, sizeof *operands);
    RP_TRY(rp_err_need(operands, w->i->err, "isolating operations"));
    for (uint32_t k = 0; k < in.n; k++)
        operands[k] = w->values->of[in.at[k]];
    switch (p->code.at[op]) {
    case RP_OP_CALL:
    case RP_OP_FUSION:
        return enter_computation(w, op, called.at[0], operands, in.n, RP_ABSENT_I64);
    case RP_OP_CONDITIONAL:
        if (!operands[0].n)
            return RP_OK;
        which = (size_t)rp_tensor_integer(operands[0].at[0], 0);
        if (operands[0].at[0]->elem == RP_ELEM_PRED)
            which = which ? 0 : 1;
        which = which < called.n ? which : called.n - 1;
        return which + 1 < in.n ? enter_computation(w, op, called.at[which], operands + which + 1,
                                                    1, RP_ABSENT_I64)
                                : RP_OK;
    default: /* the function of a reduction is not a separate part */
        return RP_OK;
    }
}

/* ---- all of it ---- */

enum rp_code rp_isolate(const struct rp_search *search, struct rp_arena *arena,
                        struct rp_isolated *out, struct rp_reproducer *capture, struct rp_err *err)
{
    const struct rp_program *p = search->program;
    struct isolate i = {
        .search = search, .arena = arena, .out = out, .capture = capture, .err = err};
    RP_SCOPED(rp_values_release) struct rp_values values = {0};
    RP_SCOPED(walk_release) struct walk w = {0};

    *out = (struct rp_isolated){0};

    RP_TRY(rp_values_init(&values, p, search->partitions, err));
    RP_TRY(rp_search_parameters(search, &values, err));
    RP_TRY(walk_init(&w, &i, p->entry, &values));
    return isolate_walk(&w);
}
