/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates a plan: the nodes of a graph one after another, each value dropped after its last use.
 * Structure and control flow are here: parameters, tuples, calls, fusions, loops, branches and
 * asynchronous pairs (which run where they start).
 */
#include "base/clock.h"
#include "exec/engine/timing.h"
#include "exec/eval/plan.h"
#include "exec/eval/tape.h"
#include "exec/eval/vary.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 512
#define FEW        48 /* graphs with so few nodes need no allocation for their values */

enum rp_code rp_shape_tensor(const struct rp_value_shape *shape, struct rp_tensor **out,
                             struct rp_err *err)
{
    return rp_tensor_new(shape->elem, shape->dims, shape->rank, out, err);
}

enum rp_code rp_node_result(const struct rp_node *node, struct rp_tensor **out, struct rp_err *err)
{
    enum rp_code code = rp_shape_tensor(node->shape, out, err);

    return code == RP_OK ? code : rp_err_prefix(err, code, "%s '%s'", node->opcode, node->name);
}

enum rp_code rp_node_give(const struct rp_node *node, struct rp_tensors *parts,
                          struct rp_tensor **out, struct rp_err *err)
{
    if (node->shape->elem != RP_ELEM_TUPLE) {
        *out = parts->at[0];
        parts->at[0] = NULL;
        return RP_OK;
    }
    size_t n = parts->n;
    parts->n = 0;
    return rp_tensor_tuple(parts->at, n, out, err);
}

/* Kernels rely on the declared shapes, so every value is checked against the shape of its node. */
static bool value_fits(const struct rp_value_shape *shape, const struct rp_tensor *t)
{
    if (shape->elem != t->elem)
        return false;
    if (shape->elem == RP_ELEM_TUPLE) {
        if (shape->nparts != t->nparts)
            return false;
        for (uint32_t i = 0; i < shape->nparts; i++)
            if (!value_fits(shape->parts[i], t->parts[i]))
                return false;
        return true;
    }
    if (shape->elem == RP_ELEM_TOKEN)
        return true;
    if (shape->rank != t->rank)
        return false;
    for (uint32_t k = 0; k < t->rank; k++)
        if (shape->dynamic ? t->dims[k] > shape->dims[k] : t->dims[k] != shape->dims[k])
            return false;
    return true;
}

/* Values between a start and its done hold what they need, not what the program declares, so they
   are not checked. */
static bool is_checked(const struct rp_node *node)
{
    return node->code != RP_OP_ASYNC_START && node->code != RP_OP_ASYNC_UPDATE &&
           node->code != RP_OP_COPY_START && node->code != RP_OP_ALL_GATHER_START &&
           node->code != RP_OP_COLLECTIVE_PERMUTE_START && node->code != RP_OP_ALL_REDUCE_START &&
           node->code != RP_OP_AFTER_ALL;
}

bool rp_shape_is_array(const struct rp_value_shape *shape)
{
    return rp_literal_unit(shape->elem) && !shape->dynamic;
}

enum rp_code rp_node_check_result(const struct rp_node *node, const struct rp_tensor *t,
                                  struct rp_err *err)
{
    if (value_fits(node->shape, t) || !is_checked(node))
        return RP_OK;
    return rp_node_error(node, RP_FORMAT, err,
                         "the computed value does not have the declared shape");
}

/* Copies unaligned operands; the caller drops the copies after the node has run. */
static enum rp_code align_operands(const struct rp_node *node, struct rp_tensor **in, uint32_t *n,
                                   struct rp_err *err)
{
    for (*n = 0; *n < node->nin; ++*n)
        RP_TRY(rp_tensor_align(in[*n], &in[*n], err));
    return RP_OK;
}

static bool any_unaligned(const struct rp_node *node, struct rp_tensor *const *in)
{
    for (uint32_t k = 0; k < node->nin && !node->takes_unaligned; k++)
        if (rp_tensor_is_unaligned(in[k]))
            return true;
    return false;
}

/* Runs the kernel on prepared operands: aligned, or rounded as a GPU would. */
static enum rp_code run_prepared(struct rp_eval *e, const struct rp_node *node,
                                 struct rp_tensor **in, struct rp_tensor **out, struct rp_err *err)
{
    bool rounds = rp_vary_takes_tf32(e, node);
    uint32_t n = 0;

    if (!rounds && !any_unaligned(node, in))
        return node->run(e, node, in, out, err);
    enum rp_code code =
        rounds ? rp_vary_operands(node, in, &n, err) : align_operands(node, in, &n, err);
    if (code == RP_OK)
        code = node->run(e, node, in, out, err);
    while (n-- > 0)
        rp_tensor_drop(in[n]);
    return code;
}

/* The values of a graph while it runs. */
struct eval_state {
    struct rp_tensor **values;
    struct rp_tensor **args;
    struct rp_tensor **kept; /* values of nodes that are the same in every iteration, or NULL */
    bool owned;              /* args are given away */
};

/* Moves a part out of its tuple, which nobody else can see. */
static bool take_part(const struct rp_node *node, struct rp_tensor **values, struct rp_tensor **out)
{
    struct rp_tensor *t = node->takes_part ? values[node->in[0]] : NULL;

    if (!t || atomic_load_explicit(&t->users, memory_order_acquire) != 1 ||
        t->elem != RP_ELEM_TUPLE || (size_t)node->value >= t->nparts)
        return false;
    *out = t->parts[node->value];
    t->parts[node->value] = NULL;
    return *out != NULL;
}

/* Whether a short tuple takes over values that end with it, instead of sharing them. */
static bool takes_over(const struct rp_node *node)
{
    return node->code == RP_OP_TUPLE && node->nin <= 16 && node->ndead;
}

static enum rp_code take_values(const struct rp_node *node, struct rp_tensor **values,
                                struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *parts[16];

    for (uint32_t k = 0; k < node->nin; k++) {
        bool last = rp_node_ends(node, node->in[k]);

        for (uint32_t i = k + 1; i < node->nin; i++)
            last = last && node->in[i] != node->in[k];
        parts[k] = last ? values[node->in[k]] : rp_tensor_keep(values[node->in[k]]);
        if (last)
            values[node->in[k]] = NULL;
    }
    return rp_tensor_tuple(parts, node->nin, out, err);
}

static enum rp_code run_node(struct rp_eval *e, const struct rp_node *node, struct eval_state *s,
                             struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *few[8], **in = few, **values = s->values;
    bool timed = (e->times || e->spans) && !node->untimed;
    int64_t begin = 0;

    if (node->code == RP_OP_PARAMETER) {
        if (!s->args[node->value])
            return rp_node_error(node, RP_FORMAT, err, "the parameter is declared twice");
        *out = s->owned ? s->args[node->value] : rp_tensor_keep(s->args[node->value]);
        if (s->owned)
            s->args[node->value] = NULL;
        return rp_node_check_result(node, *out, err);
    }
    if (take_part(node, values, out))
        return rp_node_check_result(node, *out, err);
    if (takes_over(node)) {
        RP_TRY(take_values(node, values, out, err));
        return rp_node_check_result(node, *out, err);
    }
    if (node->nin > 8) {
        in = malloc(node->nin * sizeof(struct rp_tensor *));
        RP_TRY(rp_err_need(in, err, "evaluating"));
    }
    for (uint32_t k = 0; k < node->nin; k++)
        in[k] = values[node->in[k]];
    if (timed)
        begin = rp_clock_ns();
    enum rp_code code = run_prepared(e, node, in, out, err);
    if (code == RP_OK && e->vary)
        code = rp_vary_result(e, node, in, out, err);
    if (timed && e->times) {
        /* Adds the time of a node, and of the calls that it stands for. */
        int64_t ns = rp_clock_ns() - begin;
        e->times[node->op] += ns;
        e->calls[node->op]++;
        for (const struct rp_caller *c = node->caller; c; c = c->up) {
            e->times[c->op] += ns;
            e->calls[c->op] += c->last == node;
        }
    }
    if (timed && e->spans) {
        struct rp_op_span span = {node->name, node->opcode, e->partition, begin, rp_clock_ns()};

        if (e->spans->list.n >= RP_OP_SPANS_MOST ||
            rp_vec_push(&e->spans->list, span, NULL) != RP_OK)
            e->spans->dropped++;
    }
    if (in != few)
        free(in);
    return code == RP_OK ? rp_node_check_result(node, *out, err) : code;
}

/* Uses the known value of a node that is the same in every iteration; true: nothing has to run. */
static bool reuse_invariant(const struct rp_node *node, uint32_t i, struct eval_state *s,
                            bool again)
{
    if (!s->kept || node->invariant == RP_VARIES || !again)
        return false;
    if (node->invariant == RP_INVARIANT_KEPT)
        s->values[i] = rp_tensor_keep(s->kept[i]);
    return true;
}

enum rp_code rp_eval_on_time(const struct rp_eval *e, struct rp_err *err)
{
    if (!e->deadline_ns || rp_clock_ns() < e->deadline_ns)
        return RP_OK;
    return rp_err_set(err, RP_IO, "a run took longer than %.3g s and was ended",
                      (double)e->timeout_ns / 1e9);
}

/* again: kept has the invariant values of an earlier iteration. */
static enum rp_code eval_nodes(struct rp_eval *e, const struct rp_graph *graph,
                               struct eval_state *s, bool again, struct rp_tensor **out,
                               struct rp_err *err)
{
    struct rp_tensor *few[FEW];
    enum rp_code code = RP_OK;

    *out = NULL;
    if (e->depth >= MOST_DEPTH)
        return rp_err_set(err, RP_LIMIT, "calls are nested more than %d deep", MOST_DEPTH);
    s->values = graph->n <= FEW ? memset(few, 0, graph->n * sizeof *few)
                                : calloc(graph->n, sizeof(struct rp_tensor *));
    RP_TRY(rp_err_need(s->values, err, "evaluating"));
    e->depth++;
    for (uint32_t i = 0; i < graph->n && code == RP_OK; i++) {
        const struct rp_node *node = &graph->nodes[i];

        if (node->skip)
            continue;
        if (!reuse_invariant(node, i, s, again) && (code = rp_eval_on_time(e, err)) == RP_OK) {
            e->memo = s->kept && node->same_second ? &s->kept[i] : NULL;
            code = run_node(e, node, s, &s->values[i], err);
            if (code == RP_OK && s->kept && node->invariant == RP_INVARIANT_KEPT)
                s->kept[i] = rp_tensor_keep(s->values[i]);
        }
        for (uint32_t k = 0; code == RP_OK && k < node->ndead; k++) {
            rp_tensor_drop(s->values[node->dead[k]]);
            s->values[node->dead[k]] = NULL;
        }
    }
    e->depth--;
    if (code == RP_OK) {
        *out = s->values[graph->root];
        s->values[graph->root] = NULL;
    }
    for (uint32_t i = 0; i < graph->n; i++)
        if (s->values[i]) /* few are left */
            rp_tensor_drop(s->values[i]);
    if (s->values != few)
        free(s->values);
    s->values = NULL;
    return code;
}

enum rp_code rp_eval_graph(struct rp_eval *e, const struct rp_graph *graph,
                           struct rp_tensor *const *args, struct rp_tensor **out,
                           struct rp_err *err)
{
    /* arguments that are not owned are not written */
    struct eval_state s = {.args = (struct rp_tensor **)(uintptr_t)args};

    return eval_nodes(e, graph, &s, false, out, err);
}

/* ---- structure ---- */

static RP_KERNEL(eval_parameter)
{
    *out = NULL;
    return rp_node_error(node, RP_BUG, err, "a parameter was evaluated");
}

static RP_KERNEL(eval_tuple)
{
    for (uint32_t i = 0; i < node->nin; i++)
        rp_tensor_keep(in[i]);
    return rp_tensor_tuple(in, node->nin, out, err);
}

static RP_KERNEL(eval_tuple_element)
{
    if (node->value < 0 || (size_t)node->value >= in[0]->nparts)
        return rp_node_error(node, RP_FORMAT, err, "the tuple has no element %lld",
                             (long long)node->value);
    *out = rp_tensor_keep(in[0]->parts[node->value]);
    return RP_OK;
}

static RP_KERNEL(eval_token)
{
    return rp_tensor_token(out, err);
}

/* Copy, opt-barrier, domain, the end of an asynchronous pair. */
RP_KERNEL(rp_kernel_same)
{
    *out = rp_tensor_keep(in[0]);
    return RP_OK;
}

/* A start gives (operands, results, ...), of which its done takes the results. */
static RP_KERNEL(eval_async_done)
{
    if (in[0]->elem != RP_ELEM_TUPLE) {
        *out = rp_tensor_keep(in[0]);
        return RP_OK;
    }
    if (in[0]->nparts < 2)
        return rp_node_error(node, RP_FORMAT, err, "the matching start operation has no result");
    *out = rp_tensor_keep(in[0]->parts[1]);
    return RP_OK;
}

/* copy-start gives (destination, source, context), of which the done takes the first. */
static RP_KERNEL(eval_copy_done)
{
    if (in[0]->elem == RP_ELEM_TUPLE && in[0]->nparts < 1)
        return rp_node_error(node, RP_FORMAT, err, "the matching start operation has no result");
    *out = rp_tensor_keep(in[0]->elem == RP_ELEM_TUPLE ? in[0]->parts[0] : in[0]);
    return RP_OK;
}

static RP_KERNEL(eval_copy_start)
{
    struct rp_tensor *parts[3];

    RP_TRY(rp_tensor_token(&parts[2], err));
    parts[0] = rp_tensor_keep(in[0]);
    parts[1] = rp_tensor_keep(in[0]);
    return rp_tensor_tuple(parts, 3, out, err);
}

/* ---- calls ---- */

static RP_PREPARE(check_call)
{
    if (node->ncalled < 1)
        return rp_node_error(node, RP_FORMAT, err, "no called computation");
    if (node->called[0]->nparams != node->nin)
        return rp_node_error(node, RP_FORMAT, err, "%u operands for %u parameters", node->nin,
                             node->called[0]->nparams);
    return RP_OK;
}

static RP_KERNEL(eval_call)
{
    return rp_eval_graph(e, node->called[0], in, out, err);
}

/* Gives (operands, results), which async-done expects. */
static RP_KERNEL(eval_async_start)
{
    struct rp_tensor *parts[2];

    RP_TRY(rp_eval_graph(e, node->called[0], in, &parts[1], err));
    for (uint32_t i = 0; i < node->nin; i++)
        rp_tensor_keep(in[i]);
    if (rp_tensor_tuple(in, node->nin, &parts[0], err) != RP_OK) {
        rp_tensor_drop(parts[1]);
        return RP_NOMEM;
    }
    return rp_tensor_tuple(parts, 2, out, err);
}

RP_PREPARE(rp_while_prepare)
{
    if (node->ncalled != 2 || node->called[0]->nparams != 1 || node->called[1]->nparams != 1)
        return rp_node_error(node, RP_FORMAT, err, "a body and a condition are required");
    return RP_OK;
}

/* Decides whether the loop goes on, by the condition's tape if there is one. */
static enum rp_code run_condition(struct rp_eval *e, const struct rp_node *node,
                                  const struct rp_tape_frame *more, struct rp_tensor *state,
                                  bool *on, struct rp_err *err)
{
    struct rp_tensor *value;
    bool aligned = true;

    for (size_t i = 0; more->tape && i < state->nparts; i++) {
        more->reg[i] = state->parts[i]->data;
        aligned = aligned && !rp_tensor_is_unaligned(state->parts[i]);
    }
    if (more->tape && aligned) {
        rp_tape_run(more, 1);
        *on = *(const uint8_t *)rp_tape_result(more, 0) != 0;
        return RP_OK;
    }
    RP_TRY(rp_eval_graph(e, node->called[1], &state, &value, err));
    *on = value->n == 1 && value->data[0] != 0;
    rp_tensor_drop(value);
    return RP_OK;
}

/* From the second iteration on, the body owns the state, so that what it replaces can be written in
   place. */
static enum rp_code run_iterations(struct rp_eval *e, const struct rp_node *node,
                                   const struct rp_tape_frame *more, struct rp_tensor **kept,
                                   struct rp_tensor **state, struct rp_err *err)
{
    for (bool again = false;; again = true) {
        struct eval_state s = {.args = state, .kept = kept, .owned = true};
        struct rp_tensor *next;
        bool on;

        RP_TRY(run_condition(e, node, more, *state, &on, err));
        if (!on)
            return RP_OK;
        RP_TRY(rp_eval_on_time(e, err));
        enum rp_code code = eval_nodes(e, node->called[0], &s, again, &next, err);
        rp_tensor_drop(*state);
        *state = code == RP_OK ? next : NULL;
        RP_TRY(code);
    }
}

static RP_KERNEL(eval_while)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *state = rp_tensor_keep(in[0]);
    RP_SCOPED(rp_tensors_release) struct rp_tensors kept = {0};
    RP_SCOPED(rp_tape_end) struct rp_tape_frame more = {0};

    RP_TRY(rp_tensors_new(node->called[0]->n, &kept, err));
    if (node->called[1]->tape && !e->times && !e->spans)
        RP_TRY(rp_tape_begin(node->called[1]->tape, &more, err));
    RP_TRY(run_iterations(e, node, &more, kept.at, &state, err));
    *out = state;
    state = NULL;
    return RP_OK;
}

static RP_PREPARE(check_branches)
{
    if (!node->ncalled || node->nin != node->ncalled + 1)
        return rp_node_error(node, RP_FORMAT, err, "%u operands for %u branches", node->nin,
                             node->ncalled);
    return RP_OK;
}

/* By a pred: true, false; or by an index: a value out of range means the last branch. */
static RP_KERNEL(eval_conditional)
{
    int64_t which = rp_tensor_integer(in[0], 0);

    if (in[0]->elem == RP_ELEM_PRED)
        which = which ? 0 : 1;
    if (which < 0 || which >= (int64_t)node->ncalled)
        which = node->ncalled - 1;
    return rp_eval_graph(e, node->called[which], &in[which + 1], out, err);
}

const struct rp_kernel rp_kernels_control[] = {
    {RP_OP_PARAMETER, NULL, eval_parameter},
    {RP_OP_TUPLE, NULL, eval_tuple},
    {RP_OP_GET_TUPLE_ELEMENT, NULL, eval_tuple_element},
    {RP_OP_AFTER_ALL, NULL, eval_token},
    {RP_OP_ADD_DEPENDENCY, NULL, rp_kernel_same},
    {RP_OP_COPY, NULL, rp_kernel_same},
    {RP_OP_OPT_BARRIER, NULL, rp_kernel_same},
    {RP_OP_DOMAIN, NULL, rp_kernel_same},
    {RP_OP_COPY_START, NULL, eval_copy_start},
    {RP_OP_COPY_DONE, NULL, eval_copy_done},
    {RP_OP_CALL, check_call, eval_call},
    {RP_OP_FUSION, check_call, eval_call},
    {RP_OP_ASYNC_START, check_call, eval_async_start},
    {RP_OP_ASYNC_UPDATE, NULL, rp_kernel_same},
    {RP_OP_ASYNC_DONE, NULL, eval_async_done},
    {RP_OP_WHILE, rp_while_prepare, eval_while},
    {RP_OP_CONDITIONAL, check_branches, eval_conditional},
    {0, NULL, NULL},
};
