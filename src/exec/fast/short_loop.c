/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose body works on short arrays, as scans do: every value gets its memory once, before the
 * first iteration, and an iteration is a list of steps over it. Element-wise loops keep their
 * registers; slices, updates in place and reductions of rows have steps of their own; other
 * permitted operations run through their kernels, whose results replace the previous ones. A body
 * with any other operation, or with long arrays that are not just passed on, sliced or updated in
 * place, is evaluated node by node, and so is a loop whose operations are timed.
 *
 *     slot     0 .. nstate - 1   elements of the state
 *              nstate + i        node i of the body; an update in place has the slot of its operand
 */
#include "exec/eval/strided.h"
#include "exec/eval/tape.h"
#include "exec/fast/kernels.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES    4096
#define MOST_ELEMENTS 1024 /* limit for an array that is computed */

enum step_kind { STEP_LOOP, STEP_SLICE, STEP_UPDATE, STEP_REDUCE, STEP_SAME, STEP_KERNEL };

struct step {
    const struct rp_node *node;
    uint8_t kind;
    bool once;     /* the same in every iteration */
    bool bound;    /* a loop whose registers stay as they are after the first iteration */
    bool in_place; /* an update of its operand's memory; otherwise of a copy */
    bool dense;    /* a slice or an update whose part is contiguous */
    uint32_t out;  /* slots */
    uint32_t *in;
    int64_t *stride, *most; /* for slices and updates, by dimension; the last place of the part */
    struct rp_strided *part;
};

struct short_loop {
    const struct rp_graph *body;
    const struct rp_node *parameter;
    uint32_t nstate, nslots;
    struct step *steps;
    size_t nsteps;
    uint32_t *varying; /* the steps that are not the same in every iteration */
    size_t nvarying;
    uint32_t *next; /* by element of the state: the slot that holds it in the next iteration */
    uint32_t *home; /* by slot: the slot whose memory it uses */
    bool *owned;    /* by element of the state: whether it changes */
};

/* ---- planning ---- */

struct short_ctx {
    struct rp_plan *plan;
    const struct rp_graph *g;
    struct short_loop *l;
    uint32_t *slot;  /* of a node */
    uint32_t *value; /* by node: the first one with its value, as a slot */
    uint32_t *last;  /* by value: the last node that reads it */
};

static bool is_short(const struct rp_value_shape *s)
{
    return rp_shape_is_array(s) && s->n <= MOST_ELEMENTS;
}

/* Whether a node passes its operand on; a broadcast does if it is one element. */
static bool hands_on(const struct rp_graph *g, const struct rp_node *node)
{
    if (node->nin != 1 || !rp_shape_is_array(node->shape) ||
        node->shape->elem != g->nodes[node->in[0]].shape->elem ||
        node->shape->n != g->nodes[node->in[0]].shape->n)
        return false;
    return node->code == RP_OP_RESHAPE || node->code == RP_OP_COPY ||
           (node->code == RP_OP_BROADCAST && node->shape->n == 1);
}

/* Whether a node has no effect and runs through its kernel. */
static bool has_plain_kernel(const struct rp_node *node)
{
    switch (node->code) {
    case RP_OP_CONSTANT:
    case RP_OP_IOTA:
    case RP_OP_BROADCAST:
    case RP_OP_RESHAPE:
    case RP_OP_TRANSPOSE:
    case RP_OP_REVERSE:
    case RP_OP_SLICE:
    case RP_OP_CONCATENATE:
    case RP_OP_PAD:
    case RP_OP_DOT:
    case RP_OP_GATHER:
        return !node->ncalled;
    case RP_OP_REDUCE:
        return true;
    default:
        return !node->ncalled && rp_op_info[node->code].class_ == RP_CLASS_ELEMENT &&
               node->code != RP_OP_MAP && node->code != RP_OP_STOCHASTIC_CONVERT;
    }
}

/* Whether the part is contiguous: all dimensions before the first that is longer than 1 have single
   places, and those after it are whole. */
static bool is_dense(const struct rp_value_shape *whole, const struct rp_value_shape *part)
{
    uint32_t k = 0;

    while (k < part->rank && part->dims[k] == 1)
        k++;
    for (k++; k < part->rank; k++)
        if (part->dims[k] != whole->dims[k])
            return false;
    return true;
}

/* Computes what a slice or an update needs to know about its places. False if it does not have the
   usual form. */
static enum rp_code place_part(struct short_ctx *c, struct step *s,
                               const struct rp_value_shape *whole,
                               const struct rp_value_shape *part, uint32_t first, bool *fits,
                               struct rp_err *err)
{
    int64_t inside[RP_TENSOR_RANK];
    uint32_t rank = whole->rank;

    *fits = part->rank == rank && s->node->nin == first + rank && part->elem == whole->elem;
    for (uint32_t k = 0; *fits && k < rank; k++) {
        const struct rp_value_shape *start = c->g->nodes[s->node->in[first + k]].shape;

        *fits = part->dims[k] <= whole->dims[k] && start->n == 1 && rp_shape_is_array(start) &&
                (rp_elem_is_signed(start->elem) || rp_elem_is_unsigned(start->elem));
    }
    if (!*fits)
        return RP_OK;
    s->stride = RP_ARENA_NEW(&c->plan->arena, int64_t, rank + 1);
    s->most = RP_ARENA_NEW(&c->plan->arena, int64_t, rank + 1);
    s->part = RP_NODE_NEW(c->plan, struct rp_strided);
    RP_TRY(rp_err_need(s->stride && s->most && s->part, err, "planning"));
    rp_strides(whole->dims, rank, s->stride);
    rp_strides(part->dims, rank, inside);
    s->part->rank = rank;
    s->part->unit = rp_literal_unit(whole->elem);
    for (uint32_t k = 0; k < rank; k++) {
        bool slice = s->kind == STEP_SLICE;

        s->most[k] = whole->dims[k] - part->dims[k];
        s->part->dims[k] = part->dims[k];
        s->part->from[k] = slice ? s->stride[k] : inside[k];
        s->part->to[k] = slice ? inside[k] : s->stride[k];
    }
    s->dense = is_dense(whole, part);
    return RP_OK;
}

/* An update changes its operand in place if nothing reads the operand afterwards. */
static bool changes_operand(const struct short_ctx *c, uint32_t i)
{
    const struct rp_node *node = &c->g->nodes[i];
    uint32_t value = c->value[node->in[0]];

    if (c->last[value] != i || node->invariant != RP_VARIES)
        return false;
    for (uint32_t k = 1; k < node->nin; k++)
        if (c->value[node->in[k]] == value)
            return false;
    return value < c->l->nstate || c->g->nodes[value - c->l->nstate].invariant == RP_VARIES;
}

/* Whether a value may be elsewhere in each iteration: kernels make new arrays, which others are
   views of. */
static bool moves_memory(const struct short_ctx *c, uint32_t slot)
{
    slot = c->l->home[slot];
    for (size_t i = 0; i < c->l->nsteps; i++)
        if (c->l->steps[i].out == slot && c->l->steps[i].kind == STEP_KERNEL)
            return !c->l->steps[i].once;
    return false;
}

static enum rp_code plan_step(struct short_ctx *c, uint32_t i, struct step *s, bool *fits,
                              struct rp_err *err)
{
    const struct rp_node *node = &c->g->nodes[i];

    *fits = rp_shape_is_array(node->shape) && !node->untimed && !node->into;
    for (uint32_t k = 0; k < node->nin; k++)
        *fits = *fits && rp_shape_is_array(c->g->nodes[node->in[k]].shape);
    if (!*fits)
        return RP_OK;
    if (node->code == RP_OP_DYNAMIC_UPDATE_SLICE && node->nin > 1) {
        s->kind = STEP_UPDATE;
        RP_TRY(place_part(c, s, c->g->nodes[node->in[0]].shape, c->g->nodes[node->in[1]].shape, 2,
                          fits, err));
        s->in_place = *fits && changes_operand(c, i);
        *fits = *fits && (s->in_place || is_short(node->shape));
        if (s->in_place)
            c->slot[i] = s->out = c->slot[node->in[0]];
        if (s->in_place && c->l->home[s->out] < c->l->nstate)
            c->l->owned[c->l->home[s->out]] = true;
        return RP_OK;
    }
    if (hands_on(c->g, node)) {
        s->kind = STEP_SAME;
        c->l->home[s->out] = c->l->home[c->slot[node->in[0]]];
        return RP_OK;
    }
    *fits = is_short(node->shape);
    if (!*fits)
        return RP_OK;
    if (rp_loop_is_short(node)) {
        s->kind = STEP_LOOP;
        s->bound = true;
        for (uint32_t k = 0; k < node->nin; k++) {
            const struct rp_node *in = &c->g->nodes[node->in[k]];
            bool stays = in->invariant != RP_VARIES, moves = moves_memory(c, s->in[k]);

            s->bound = s->bound && !moves && (stays || rp_loop_frame_reads(node, k));
        }
    } else if (node->code == RP_OP_DYNAMIC_SLICE && node->nin) {
        s->kind = STEP_SLICE;
        return place_part(c, s, c->g->nodes[node->in[0]].shape, node->shape, 1, fits, err);
    } else if (rp_fast_reduces_row(c->g, node)) {
        s->kind = STEP_REDUCE;
    } else {
        s->kind = STEP_KERNEL;
        *fits = has_plain_kernel(node) && !rp_loop_is(node);
    }
    return RP_OK;
}

/* A node that only takes an element out of the loop's state, or out of a tuple that the body made,
   computes nothing: it gets the slot and the value of that element. Returns false if it takes the
   element of anything else, which short loops cannot run. */
static bool name_element(struct short_ctx *c, uint32_t i)
{
    const struct rp_node *node = &c->g->nodes[i], *from = &c->g->nodes[node->in[0]];

    if (node->value < 0)
        return false;
    if (from->code == RP_OP_PARAMETER && node->value < (int64_t)c->l->nstate) {
        c->slot[i] = c->value[i] = (uint32_t)node->value;
        return true;
    }
    if (from->code != RP_OP_TUPLE || from->skip || node->value >= (int64_t)from->nin)
        return false;
    uint32_t what = from->in[node->value];
    c->slot[i] = c->slot[what];
    c->value[i] = c->value[what];
    return true;
}

/* Names the slots and values of parameters, and of nodes that pass them on; finds where each value
   is read last. */
static bool name_values(struct short_ctx *c)
{
    const struct rp_graph *g = c->g;

    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];
        bool element = node->code == RP_OP_GET_TUPLE_ELEMENT;

        c->slot[i] = c->value[i] = c->l->nstate + i;
        if (node->skip || node->code == RP_OP_PARAMETER)
            continue;
        if (element && (node->nin != 1 || !name_element(c, i)))
            return false;
        for (uint32_t k = 0; k < node->nin && !element; k++) {
            if (g->nodes[node->in[k]].code == RP_OP_PARAMETER || g->nodes[node->in[k]].skip)
                return false;
            c->last[c->value[node->in[k]]] = i;
        }
        if (!element && hands_on(g, node))
            c->value[i] = c->value[node->in[0]];
    }
    return true;
}

/* Finds where the next state comes from; long arrays stay where they are. */
static bool name_next(struct short_ctx *c)
{
    const struct rp_node *root = &c->g->nodes[c->g->root];
    struct short_loop *l = c->l;

    for (uint32_t p = 0; p < l->nstate; p++) {
        const struct rp_value_shape *from = c->g->nodes[root->in[p]].shape;
        const struct rp_value_shape *to = l->parameter->shape->parts[p];

        l->next[p] = c->slot[root->in[p]];
        if (!rp_shape_is_array(from) || from->elem != to->elem || from->n != to->n)
            return false;
        if (l->home[l->next[p]] == p)
            continue;
        l->owned[p] = true;
        if (!is_short(to))
            return false;
    }
    return true;
}

static enum rp_code plan_steps(struct short_ctx *c, bool *fits, struct rp_err *err)
{
    struct rp_arena *arena = &c->plan->arena;
    const struct rp_graph *g = c->g;
    struct short_loop *l = c->l;

    l->steps = RP_ARENA_NEW(arena, struct step, g->n + 1);
    l->next = RP_ARENA_NEW(arena, uint32_t, l->nstate + 1);
    l->home = RP_ARENA_NEW(arena, uint32_t, l->nslots + 1);
    l->owned = RP_ARENA_NEW(arena, bool, l->nstate + 1);
    RP_TRY(rp_err_need(l->steps && l->next && l->home && l->owned, err, "planning"));
    for (uint32_t i = 0; i < l->nslots; i++)
        l->home[i] = i;
    *fits = name_values(c);
    for (uint32_t i = 0; *fits && i < g->n; i++) {
        struct step *s = &l->steps[l->nsteps];
        const struct rp_node *node = &g->nodes[i];

        if (node->code == RP_OP_GET_TUPLE_ELEMENT && !node->skip)
            name_element(c, i); /* the tuple may have got the slot of its operand by now */
        if (node->skip || node->code == RP_OP_TUPLE || node->code == RP_OP_PARAMETER ||
            node->code == RP_OP_GET_TUPLE_ELEMENT)
            continue;
        s->node = node;
        s->out = c->slot[i];
        s->once = node->invariant != RP_VARIES;
        s->in = RP_ARENA_NEW(arena, uint32_t, node->nin + 1);
        RP_TRY(rp_err_need(s->in, err, "planning"));
        for (uint32_t k = 0; k < node->nin; k++)
            s->in[k] = c->slot[node->in[k]];
        RP_TRY(plan_step(c, i, s, fits, err));
        l->nsteps++;
    }
    *fits = *fits && name_next(c);
    l->varying = RP_ARENA_NEW(arena, uint32_t, l->nsteps + 1);
    RP_TRY(rp_err_need(l->varying, err, "planning"));
    for (size_t i = 0; i < l->nsteps; i++)
        if (!l->steps[i].once)
            l->varying[l->nvarying++] = (uint32_t)i;
    return RP_OK;
}

static bool is_short_state(const struct rp_node *loop, const struct rp_node **parameter)
{
    const struct rp_graph *g = loop->called[0];
    const struct rp_node *root = &g->nodes[g->root];

    *parameter = NULL;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->nodes[i].code == RP_OP_PARAMETER && *parameter)
            return false;
        else if (g->nodes[i].code == RP_OP_PARAMETER)
            *parameter = &g->nodes[i];
    if (!*parameter || !loop->called[1]->tape || root->code != RP_OP_TUPLE || root->skip ||
        g->n > MOST_NODES)
        return false;
    const struct rp_value_shape *shape = (*parameter)->shape;
    if (shape->elem != RP_ELEM_TUPLE || root->nin != shape->nparts || root->ncalled)
        return false;
    for (uint32_t i = 0; i < shape->nparts; i++)
        if (!rp_shape_is_array(shape->parts[i]))
            return false;
    return true;
}

static RP_KERNEL(run_short_loop);

static enum rp_code form_short(struct rp_plan *plan, struct rp_node *loop, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    const struct rp_node *parameter;
    struct short_ctx c = {.plan = plan, .g = loop->called[0]};
    bool fits = false;

    if (loop->attrs || !is_short_state(loop, &parameter))
        return RP_OK;
    c.l = RP_NODE_NEW(plan, struct short_loop);
    RP_TRY(rp_err_need(c.l, err, "planning"));
    *c.l = (struct short_loop){
        .body = c.g, .parameter = parameter, .nstate = parameter->shape->nparts};
    c.l->nslots = c.l->nstate + c.g->n;
    c.slot = RP_ARENA_NEW(&scratch, uint32_t, c.g->n);
    c.value = RP_ARENA_NEW(&scratch, uint32_t, c.g->n);
    c.last = RP_ARENA_NEW(&scratch, uint32_t, c.l->nslots);
    RP_TRY(rp_arena_check(&scratch, "planning", err));
    RP_TRY(plan_steps(&c, &fits, err));
    if (fits) {
        loop->attrs = c.l;
        loop->run = run_short_loop;
    }
    return RP_OK;
}

enum rp_code rp_short_loops_form(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];

        for (uint32_t k = 0; k < g->n && g->nodes[0].kernel; k++)
            if (g->nodes[k].code == RP_OP_WHILE && !g->nodes[k].skip)
                RP_TRY(form_short(plan, &g->nodes[k], err));
    }
    return RP_OK;
}

/* ---- running ---- */

struct short_run {
    struct rp_eval *e;
    const struct short_loop *l;
    struct rp_tensor **values;   /* by slot */
    struct rp_tensor **memo;     /* by step: a packed operand (exec/eval/plan.h) */
    struct rp_loop_frame *frame; /* by step, if it is a loop */
    char **stage;                /* by element whose next value is another element */
    char *memory;                /* memory of the frames, followed by the stages */
};

/* Makes values that are not copies of others; those of kernels and of parameters come later. */
static enum rp_code make_values(struct short_run *r, struct rp_tensor *state, struct rp_err *err)
{
    const struct short_loop *l = r->l;

    for (uint32_t p = 0; p < l->nstate; p++) {
        struct rp_tensor *part = state->parts[p];

        if (!l->owned[p]) {
            RP_TRY(rp_tensor_align(part, &r->values[p], err));
            continue;
        }
        RP_TRY(rp_tensor_copy(part, &r->values[p], err));
    }
    for (size_t i = 0; i < l->nsteps; i++) {
        const struct step *s = &l->steps[i];
        const struct rp_value_shape *shape = s->node->shape;

        if (s->kind == STEP_SAME)
            RP_TRY(rp_tensor_borrow(shape->elem, shape->dims, shape->rank, NULL, &r->values[s->out],
                                    err));
        else if (s->kind != STEP_KERNEL && !s->in_place)
            RP_TRY(rp_shape_tensor(shape, &r->values[s->out], err));
    }
    return RP_OK;
}

/* Makes one block for the registers of all loops and for the stages. */
static enum rp_code make_frames(struct short_run *r, struct rp_err *err)
{
    const struct short_loop *l = r->l;
    size_t bytes = 0, at = 0;

    for (size_t i = 0; i < l->nsteps; i++)
        if (l->steps[i].kind == STEP_LOOP)
            bytes += rp_loop_frame_bytes(l->steps[i].node);
    for (uint32_t p = 0; p < l->nstate; p++)
        bytes += (rp_tensor_bytes(r->values[p]) * (l->home[l->next[p]] != p) + 63) / 64 * 64;
    r->memory = aligned_alloc(64, bytes + 64);
    RP_TRY(rp_err_need(r->memory, err, "evaluating"));
    for (size_t i = 0; i < l->nsteps; i++)
        if (l->steps[i].kind == STEP_LOOP) {
            rp_loop_frame_place(l->steps[i].node, r->memory + at, &r->frame[i]);
            at += rp_loop_frame_bytes(l->steps[i].node);
        }
    for (uint32_t p = 0; p < l->nstate; p++) {
        r->stage[p] = r->memory + at;
        at += (rp_tensor_bytes(r->values[p]) * (l->home[l->next[p]] != p) + 63) / 64 * 64;
    }
    return RP_OK;
}

/* The place of a part, in elements; its starts are the operands from `first` on. */
static inline int64_t part_place(const struct short_run *r, const struct step *s, uint32_t first)
{
    int64_t at = 0;

    for (uint32_t k = 0; k < s->part->rank; k++) {
        const struct rp_tensor *start = r->values[s->in[first + k]];
        int64_t v, most = s->most[k];

        if (!most)
            continue;
        if (start->elem == RP_ELEM_S32) {
            int32_t narrow;

            memcpy(&narrow, start->data, sizeof narrow);
            v = narrow;
        } else {
            v = rp_tensor_integer(start, 0);
            if (start->elem == RP_ELEM_U64 && v < 0)
                v = INT64_MAX;
        }
        at += (v < 0 ? 0 : v > most ? most : v) * s->stride[k];
    }
    return at * (int64_t)s->part->unit;
}

static void copy_part(const struct step *s, unsigned char *to, const unsigned char *from, size_t n)
{
    if (s->dense)
        memcpy(to, from, n);
    else if (n)
        rp_strided_copy(s->part, to, from);
}

static void run_update(struct short_run *r, const struct step *s)
{
    struct rp_tensor *out = r->values[s->out], *part = r->values[s->in[1]];

    if (!s->in_place)
        memcpy(out->data, r->values[s->in[0]]->data, rp_tensor_bytes(out));
    copy_part(s, out->data + part_place(r, s, 2), part->data, rp_tensor_bytes(part));
}

/* Runs the kernel of the node, which may not change what it gets, and gives a result of its own. */
static enum rp_code run_kernel(struct short_run *r, const struct step *s, size_t i,
                               struct rp_err *err)
{
    const struct rp_node *node = s->node;
    RP_SCOPED(rp_tensors_release) struct rp_tensors in = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *out = NULL;

    RP_TRY(rp_tensors_new(node->nin, &in, err));
    for (uint32_t k = 0; k < node->nin; k++)
        in.at[k] = rp_tensor_keep(r->values[s->in[k]]);
    r->e->memo = node->same_second ? &r->memo[i] : NULL;
    RP_TRY(node->run(r->e, node, in.at, &out, err));
    rp_tensors_release(&in);
    RP_TRY(rp_node_check_result(node, out, err));
    RP_TRY(rp_tensor_own(&out, err));
    rp_tensor_drop(r->values[s->out]);
    r->values[s->out] = out;
    out = NULL;
    return RP_OK;
}

static enum rp_code run_step(struct short_run *r, const struct step *s, size_t i, bool again,
                             struct rp_err *err)
{
    struct rp_tensor *out = r->values[s->out], *first;

    switch (s->kind) {
    case STEP_LOOP:
        if (!again || !s->bound)
            rp_loop_frame_bind(s->node, &r->frame[i], r->values, s->in, out);
        rp_loop_frame_run(s->node, &r->frame[i]);
        return RP_OK;
    case STEP_SLICE:
        first = r->values[s->in[0]];
        copy_part(s, out->data, first->data + part_place(r, s, 1), rp_tensor_bytes(out));
        return RP_OK;
    case STEP_UPDATE:
        run_update(r, s);
        return RP_OK;
    case STEP_REDUCE:
        rp_fast_reduce_row(s->node, r->values[s->in[0]], r->values[s->in[1]], out);
        return RP_OK;
    case STEP_SAME:
        out->data = r->values[s->in[0]]->data;
        return RP_OK;
    default:
        return run_kernel(r, s, i, err);
    }
}

static enum rp_code iterate(struct short_run *r, const struct rp_tape_frame *more,
                            struct rp_err *err)
{
    const struct short_loop *l = r->l;

    for (uint32_t p = 0; p < l->nstate; p++)
        more->reg[p] = r->values[p]->data;
    for (bool again = false;; again = true) {
        rp_tape_run(more, 1);
        if (!*(const uint8_t *)rp_tape_result(more, 0))
            return RP_OK;
        RP_TRY(rp_eval_on_time(r->e, err));
        for (size_t k = 0; k < (again ? l->nvarying : l->nsteps); k++) {
            size_t i = again ? l->varying[k] : k;

            RP_TRY(run_step(r, &l->steps[i], i, again, err));
        }
        /* Makes the next state. An element that takes the value of another element is copied first,
           because the other one changes, too. */
        for (uint32_t p = 0; p < l->nstate; p++)
            if (l->home[l->next[p]] != p && l->home[l->next[p]] < l->nstate)
                memcpy(r->stage[p], r->values[l->next[p]]->data, rp_tensor_bytes(r->values[p]));
        for (uint32_t p = 0; p < l->nstate; p++)
            if (l->home[l->next[p]] != p)
                memcpy(r->values[p]->data,
                       l->home[l->next[p]] < l->nstate ? (void *)r->stage[p]
                                                       : r->values[l->next[p]]->data,
                       rp_tensor_bytes(r->values[p]));
    }
}

static void short_release(struct short_run *r)
{
    for (uint32_t i = 0; r->values && i < r->l->nslots; i++)
        rp_tensor_drop(r->values[i]);
    for (size_t i = 0; r->memo && i < r->l->nsteps; i++)
        rp_tensor_drop(r->memo[i]);
    free(r->values);
    free(r->memo);
    free(r->frame);
    free(r->stage);
    free(r->memory);
}

static RP_KERNEL(run_short_loop)
{
    const struct short_loop *l = node->attrs;
    RP_SCOPED(short_release) struct short_run r = {.e = e, .l = l};
    RP_SCOPED(rp_tape_end) struct rp_tape_frame more = {0};
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    if (e->times || e->spans)
        return e->plan->reference[RP_OP_WHILE]->run(e, node, in, out, err);
    RP_TRY(rp_node_check_result(l->parameter, in[0], err));
    r.values = calloc(l->nslots + 1, sizeof(struct rp_tensor *));
    r.memo = calloc(l->nsteps + 1, sizeof(struct rp_tensor *));
    r.frame = calloc(l->nsteps + 1, sizeof *r.frame);
    r.stage = calloc(l->nstate + 1, sizeof *r.stage);
    RP_TRY(rp_err_need(r.values && r.memo && r.frame && r.stage, err, "evaluating"));
    RP_TRY(make_values(&r, in[0], err));
    RP_TRY(make_frames(&r, err));
    RP_TRY(rp_tape_begin(node->called[1]->tape, &more, err));
    RP_TRY(iterate(&r, &more, err));
    RP_TRY(rp_tensors_new(l->nstate, &parts, err));
    for (uint32_t p = 0; p < l->nstate; p++)
        parts.at[p] = rp_tensor_keep(r.values[p]);
    return rp_node_give(node, &parts, out, err);
}
