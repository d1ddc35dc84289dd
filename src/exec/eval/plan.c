/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a plan: every computation becomes a graph in the order of evaluation; every node is
 * prepared by its kernel, which reads the attributes once and refuses what it cannot run, so that
 * an unknown operation is named before anything is executed. In a branch or a loop it may never run
 * (for example checks that call back into Python), so there it is refused only when it is reached.
 * Only computations that the entry reaches are prepared. Cost: a few passes over the operations.
 */
#include "exec/eval/plan.h"
#include "exec/engine/engine.h"

#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- shapes ---- */

static enum rp_code open_shape(struct rp_plan *plan, uint32_t id,
                               const struct rp_value_shape **memo,
                               const struct rp_value_shape **out, struct rp_err *err)
{
    const struct rp_program *p = plan->program;
    const struct rp_op_shape *s = &p->shapes.at[id];

    if (memo[id]) {
        *out = memo[id];
        return RP_OK;
    }
    struct rp_value_shape *to = RP_NODE_NEW(plan, struct rp_value_shape);
    RP_TRY(rp_err_need(to, err, "planning shapes"));
    to->elem = s->elem;
    to->dynamic = (s->flags & RP_SHAPE_DYNAMIC) != 0;
    if (s->elem == RP_ELEM_TUPLE) {
        const struct rp_value_shape **parts =
            RP_ARENA_NEW(&plan->arena, const struct rp_value_shape *, s->n);

        RP_TRY(rp_err_need(parts || !s->n, err, "planning shapes"));
        for (uint32_t i = 0; i < s->n; i++)
            RP_TRY(open_shape(plan, p->parts.at[s->first + i], memo, &parts[i], err));
        to->parts = parts;
        to->nparts = s->n;
    } else if (s->n > RP_TENSOR_RANK) {
        return rp_err_set(err, RP_LIMIT, "a shape of %u dimensions; at most %d", s->n,
                          RP_TENSOR_RANK);
    } else {
        uint32_t order[RP_TENSOR_RANK];

        to->rank = s->n;
        to->dims = s->n ? p->dims.at + s->first : NULL;
        to->n = (size_t)rp_shape_elements(p, id);
        if (rp_shape_minor_to_major(p, id, order, RP_TENSOR_RANK)) {
            uint32_t *copy = RP_ARENA_NEW(&plan->arena, uint32_t, s->n);

            RP_TRY(rp_err_need(copy, err, "planning shapes"));
            memcpy(copy, order, s->n * sizeof *order);
            to->order = copy;
        }
    }
    memo[id] = *out = to;
    return RP_OK;
}

static enum rp_code open_shapes(struct rp_plan *plan, struct rp_err *err)
{
    size_t n = plan->program->shapes.n;
    const struct rp_value_shape **memo =
                                    RP_ARENA_NEW(&plan->arena, const struct rp_value_shape *, n),
                                *at;

    RP_TRY(rp_err_need(memo, err, "planning shapes"));
    for (size_t i = 0; i < n; i++)
        RP_TRY(open_shape(plan, (uint32_t)i, memo, &at, err));
    plan->shapes = memo;
    return RP_OK;
}

/* ---- attributes ---- */

enum rp_code rp_node_error(const struct rp_node *node, enum rp_code code, struct rp_err *err,
                           const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return rp_err_set(err, code, "%s '%s': %s", node->opcode, node->name, text);
}

const struct rp_attr *rp_node_attr(const struct rp_plan *plan, const struct rp_node *node,
                                   unsigned key)
{
    return rp_op_attr(plan->program, node->op, key);
}

enum rp_code rp_node_ints(struct rp_plan *plan, const struct rp_node *node, unsigned key,
                          int64_t below, const int64_t **at, size_t *n, struct rp_err *err)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, key);
    const int64_t *list;

    *at = NULL;
    *n = 0;
    if (!attr)
        return RP_OK;
    if (!rp_attr_numbers(attr, &list, n))
        return rp_node_error(node, RP_FORMAT, err, "attribute '%s' is not a list of integers",
                             rp_program_text(plan->program, key));
    for (size_t i = 0; below && i < *n; i++) {
        bool twice = false;

        for (size_t k = 0; k < i && k < RP_TENSOR_RANK && !twice; k++)
            twice = list[k] == list[i];
        if (list[i] < 0 || list[i] >= below || twice)
            return rp_node_error(node, RP_FORMAT, err, "attribute '%s' has %lld, %s",
                                 rp_program_text(plan->program, key), (long long)list[i],
                                 twice ? "twice" : "out of range");
    }
    *at = list;
    return RP_OK;
}

int64_t rp_node_int(const struct rp_plan *plan, const struct rp_node *node, unsigned key,
                    int64_t absent)
{
    return rp_op_int(plan->program, node->op, key, absent);
}

bool rp_node_flag(const struct rp_plan *plan, const struct rp_node *node, unsigned key)
{
    return rp_node_word(plan, node, key, "true");
}

bool rp_node_word(const struct rp_plan *plan, const struct rp_node *node, unsigned key,
                  const char *word)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, key);

    return attr && rp_attr_is(attr, word);
}

const struct rp_value_shape *rp_node_operand(const struct rp_plan *plan, const struct rp_node *node,
                                             size_t i)
{
    uint32_t op = rp_op_operands(plan->program, node->op).at[i];

    return plan->shapes[plan->program->shape.at[op]];
}

/* ---- graphs ---- */

/* Finds which values end after which node, the last one that reads them. The root's values never
   end. */
enum rp_code rp_plan_lifetimes(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err)
{
    uint32_t *last = RP_ARENA_NEW(&plan->arena, uint32_t, g->n);
    uint32_t *list = RP_ARENA_NEW(&plan->arena, uint32_t, g->n);
    uint32_t at = 0;

    RP_TRY(rp_err_need(last && list, err, "planning"));
    for (uint32_t i = 0; i < g->n; i++) {
        last[i] = i;
        for (uint32_t k = 0; k < g->nodes[i].nin; k++)
            last[g->nodes[i].in[k]] = i;
    }
    last[g->root] = RP_NONE;
    for (uint32_t i = 0; i < g->n; i++) {
        g->nodes[i].dead = list + at;
        for (uint32_t k = 0; k < g->nodes[i].nin; k++) {
            uint32_t in = g->nodes[i].in[k];

            if (last[in] == i) {
                list[at++] = in;
                last[in] = RP_NONE;
            }
        }
        if (last[i] == i)
            list[at++] = i;
        g->nodes[i].ndead = (uint32_t)(list + at - g->nodes[i].dead);
    }
    /* Finds parts that their last get-tuple-element takes out of the tuple, if only such nodes read
       it: then a value is held only once, and can be changed in place. */
    bool **seen =
        RP_ARENA_NEW(&plan->arena, bool *, g->n); /* parts that are read later; NULL: not a tuple */

    RP_TRY(rp_err_need(seen, err, "planning"));
    for (uint32_t i = 0; i < g->n; i++)
        if (g->nodes[i].shape->elem == RP_ELEM_TUPLE && i != g->root) {
            seen[i] = RP_ARENA_NEW(&plan->arena, bool, (size_t)g->nodes[i].shape->nparts + 1);
            RP_TRY(rp_err_need(seen[i], err, "planning"));
        }
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->nodes[i].nin && g->nodes[i].code != RP_OP_GET_TUPLE_ELEMENT;
             k++)
            seen[g->nodes[i].in[k]] = NULL;
    for (uint32_t i = g->n; i-- > 0;) {
        struct rp_node *node = &g->nodes[i];
        bool *parts =
            node->code == RP_OP_GET_TUPLE_ELEMENT && node->nin == 1 ? seen[node->in[0]] : NULL;

        node->takes_part = false;
        if (!parts || node->value < 0 ||
            (uint64_t)node->value >= g->nodes[node->in[0]].shape->nparts)
            continue;
        node->takes_part = !parts[node->value];
        parts[node->value] = true;
    }
    return RP_OK;
}

bool rp_node_ends(const struct rp_node *node, uint32_t value)
{
    for (uint32_t i = 0; i < node->ndead; i++)
        if (node->dead[i] == value)
            return true;
    return false;
}

static enum rp_code fill_node(struct rp_plan *plan, uint32_t op, const uint32_t *place,
                              uint32_t first, struct rp_node *node, struct rp_err *err)
{
    const struct rp_program *p = plan->program;
    struct rp_ids operands = rp_op_operands(p, op), called = rp_op_called(p, op);
    uint32_t *in = RP_ARENA_NEW(&plan->arena, uint32_t, operands.n);

    node->called = RP_ARENA_NEW(&plan->arena, struct rp_graph *, called.n);
    RP_TRY(rp_err_need((!operands.n || in) && (!called.n || node->called), err, "planning"));
    node->op = op;
    node->code = p->code.at[op];
    node->name = rp_program_text(p, p->op_name.at[op]);
    node->opcode = rp_op_opcode_name(p, op);
    node->shape = plan->shapes[p->shape.at[op]];
    node->value = p->value.at[op];
    for (uint32_t i = 0; i < operands.n; i++)
        in[i] = place[operands.at[i] - first];
    for (uint32_t i = 0; i < called.n; i++)
        node->called[i] = &plan->graphs[called.at[i]];
    node->in = in;
    node->nin = operands.n;
    node->ncalled = called.n;
    return RP_OK;
}

static enum rp_code fill_graph(struct rp_plan *plan, uint32_t id, struct rp_err *err)
{
    const struct rp_computation *c = &plan->program->computations.at[id];
    struct rp_graph *g = &plan->graphs[id];
    uint32_t *order = RP_ARENA_NEW(&plan->arena, uint32_t, c->n);
    uint32_t *place = RP_ARENA_NEW(&plan->arena, uint32_t, c->n);

    g->nodes = RP_ARENA_NEW(&plan->arena, struct rp_node, c->n);
    if (!order || !place || !g->nodes || !c->n)
        return c->n ? rp_err_nomem(err, "planning")
                    : rp_err_set(err, RP_FORMAT, "empty computation");
    if (c->root < c->first || c->root - c->first >= c->n)
        return rp_err_set(err, RP_FORMAT, "computation '%s' has no result",
                          rp_program_text(plan->program, c->name));
    RP_TRY(rp_computation_order(plan->program, id, &plan->arena, order, err));
    for (uint32_t i = 0; i < c->n; i++)
        place[order[i] - c->first] = i;
    g->computation = id;
    g->n = c->n;
    g->root = place[c->root - c->first];
    g->nparams = c->nparams;
    for (uint32_t i = 0; i < c->n; i++) {
        RP_TRY(fill_node(plan, order[i], place, c->first, &g->nodes[i], err));
        for (uint32_t k = 0; k < g->nodes[i].nin; k++)
            if (g->nodes[i].in[k] >= i)
                return rp_node_error(&g->nodes[i], RP_FORMAT, err, "part of a cycle");
    }
    return rp_plan_lifetimes(plan, g, err);
}

/* Whether an operation passes values on without reading their elements. */
static bool passes_values(const struct rp_node *node)
{
    switch (node->code) {
    case RP_OP_TUPLE:
    case RP_OP_GET_TUPLE_ELEMENT:
    case RP_OP_CALL:
    case RP_OP_FUSION:
    case RP_OP_WHILE:
    case RP_OP_CONDITIONAL:
    case RP_OP_COPY:
    case RP_OP_OPT_BARRIER:
        return true;
    default:
        return false;
    }
}

/* Whether an operation goes by the size of the value instead of the shape, for sizes that are known
   only at run time. */
static bool takes_dynamic(const struct rp_node *node)
{
    switch (node->code) {
    case RP_OP_REDUCE:
    case RP_OP_GET_DIMENSION_SIZE:
    case RP_OP_SET_DIMENSION_SIZE:
    case RP_OP_REVERSE:
        return true;
    default:
        return passes_values(node) ||
               (rp_op_info[node->code].class_ == RP_CLASS_ELEMENT && node->code != RP_OP_MAP);
    }
}

/* Whether an operation passes values on, or moves elements by the strided copy. */
static bool takes_unaligned(const struct rp_node *node)
{
    switch (node->code) {
    case RP_OP_RESHAPE:
    case RP_OP_BROADCAST:
    case RP_OP_TRANSPOSE:
    case RP_OP_SLICE:
    case RP_OP_DYNAMIC_SLICE:
    case RP_OP_DYNAMIC_UPDATE_SLICE:
    case RP_OP_REVERSE:
    case RP_OP_PAD:
    case RP_OP_CONCATENATE:
        return true;
    default:
        return passes_values(node);
    }
}

static RP_PREPARE(prepare_node)
{
    node->kernel = plan->kernels[node->code];
    if (!node->kernel)
        return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported operation");
    for (uint32_t i = 0; i < node->nin; i++)
        if (rp_node_operand(plan, node, i)->dynamic && !takes_dynamic(node))
            return rp_node_error(node, RP_UNSUPPORTED, err,
                                 "operands of dynamic size are not supported");
    RP_TRY(rp_node_check_shapes(plan, node, err));
    node->run = node->kernel->run;
    node->takes_unaligned = takes_unaligned(node);
    return node->kernel->prepare ? node->kernel->prepare(plan, node, err) : RP_OK;
}

static bool has_unknown_type(const struct rp_plan *plan, const struct rp_node *node)
{
    for (uint32_t i = 0; i < node->nin; i++)
        if (rp_node_operand(plan, node, i)->elem == RP_ELEM_INVALID)
            return true;
    return node->shape->elem == RP_ELEM_INVALID;
}

/* Says where the refused operation comes from, and what may run it. */
static enum rp_code refuse_node(const struct rp_plan *plan, const struct rp_node *node,
                                struct rp_err *err)
{
    const struct rp_program *p = plan->program;
    const struct rp_attr *target = rp_op_attr(p, node->op, RP_ATTR_CUSTOM_CALL_TARGET);
    struct rp_source_line line;

    if (rp_op_source(p, node->op, &line))
        rp_err_context(err, RP_UNSUPPORTED, "made at %s:%d", line.file, line.line);
    if (target && rp_attr_is_bytes(target) && memmem(target->at, target->n, "callback", 8))
        return rp_err_context(err, RP_UNSUPPORTED,
                              "it calls back into the Python program, which is not running: give "
                              "its recorded results as arrays 'callback0_0' ... in --inputs");
    if (has_unknown_type(plan, node))
        return rp_err_context(err, RP_UNSUPPORTED,
                              "XLA does not take such types either: rewrite it in integers and "
                              "floats first, as stablehlo-opt --stablehlo-legalize-quant-to-math "
                              "does");
    return rp_err_context(err, RP_UNSUPPORTED,
                          target ? "XLA runs it where the plugin has this call: --engine pjrt:"
                                 : "XLA may run it: --engine pjrt:");
}

static bool calls_refused(const struct rp_node *node)
{
    for (uint32_t i = 0; i < node->ncalled; i++)
        if (node->called[i]->refused)
            return true;
    return false;
}

static RP_KERNEL(run_refused)
{
    *out = NULL;
    return rp_err_set(err, RP_UNSUPPORTED, "%s", (const char *)node->attrs);
}

/* An operation in a branch or a loop may never run, so it is refused when it is reached. */
static RP_PREPARE(refuse_later)
{
    static const struct rp_kernel refused = {RP_OP_FOREIGN, NULL, run_refused};
    struct rp_err why = RP_ERR_INIT;

    if (err)
        why = *err;
    refuse_node(plan, node, &why);
    node->attrs = rp_arena_strdup(&plan->arena, why.text);
    node->code = RP_OP_FOREIGN; /* so that nothing that looks for patterns recognises it */
    node->kernel = &refused;
    node->run = run_refused;
    node->ncalled = 0;
    node->takes_unaligned = true;
    rp_err_clear(err);
    return rp_err_need(node->attrs, err, "planning");
}

/* certain: whenever the program runs, the graph runs. */
static enum rp_code prepare_graph(struct rp_plan *plan, struct rp_graph *g, bool certain,
                                  struct rp_err *err)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct rp_node *node = &g->nodes[i];
        bool below = plan->refused && calls_refused(node);
        enum rp_code code = node->skip || below ? RP_OK : prepare_node(plan, node, err);

        if (code == RP_UNSUPPORTED && plan->refused) {
            /* For rp_plan_check: takes the message without the name of the operation at its
               beginning. */
            const char *why = strstr(err->text, "': ");

            plan->refused(plan->refused_user, node->op, why ? why + 3 : err->text);
            rp_err_clear(err);
            below = true;
            code = RP_OK;
        }
        g->refused |= below;
        if (code == RP_UNSUPPORTED)
            code = certain ? refuse_node(plan, node, err) : refuse_later(plan, node, err);
        RP_TRY(code);
    }
    return RP_OK;
}

enum reach { NEVER, MAYBE, CERTAINLY }; /* MAYBE: in a branch or the body of a loop */

/* Module protobufs do not contain the number of partitions, so it is inferred from the
   operations. */
static bool is_partitioned(const struct rp_program *p)
{
    for (uint32_t op = 0; op < p->code.n; op++)
        if (p->code.at[op] == RP_OP_PARTITION_ID || rp_op_attr(p, op, RP_ATTR_CHANNEL_ID))
            return true;
    return false;
}

static enum rp_code plan_build(struct rp_plan *plan, struct rp_err *err)
{
    const struct rp_program *p = plan->program;
    size_t n = p->computations.n;
    uint32_t *order;
    uint8_t *reached; /* enum reach */

    if (p->entry == RP_NONE || p->entry >= n)
        return rp_err_set(err, RP_FORMAT, "the program has no entry computation");
    RP_TRY(open_shapes(plan, err));
    plan->graphs = RP_ARENA_NEW(&plan->arena, struct rp_graph, n);
    reached = RP_ARENA_NEW(&plan->arena, uint8_t, n);
    RP_TRY(rp_err_need(plan->graphs && reached, err, "planning"));
    plan->partitions = (unsigned)rp_program_int(p, RP_ATTR_NUM_PARTITIONS, 1);
    plan->replicas = (unsigned)rp_program_int(p, RP_ATTR_REPLICA_COUNT, 1);
    if (plan->partitions <= 1 && plan->replicas <= 1 && is_partitioned(p))
        plan->partitions = UINT16_MAX; /* as many as will run */
    for (uint32_t i = 0; i < n; i++)
        RP_TRY(fill_graph(plan, i, err));
    RP_TRY(rp_plan_unrounded(plan, err));
    plan->entry = &plan->graphs[p->entry];
    RP_TRY(rp_program_call_order(p, &plan->arena, &order, err));
    /* Finds which computations the entry reaches. order has callees before their callers, so from
       its end on, every computation comes after all that call it. */
    reached[plan->entry - plan->graphs] = CERTAINLY;
    for (size_t i = n; i-- > 0;) {
        const struct rp_graph *g = &plan->graphs[order[i]];

        for (uint32_t k = 0; reached[order[i]] && k < g->n; k++) {
            bool may = g->nodes[k].code == RP_OP_WHILE || g->nodes[k].code == RP_OP_CONDITIONAL;
            uint8_t how = may ? MAYBE : reached[order[i]];

            for (uint32_t c = 0; c < g->nodes[k].ncalled; c++) {
                uint8_t *to = &reached[g->nodes[k].called[c] - plan->graphs];

                *to = how > *to ? how : *to;
            }
        }
    }
    for (size_t i = 0; i < n; i++) /* callees first, because their callers look into them */
        if (reached[order[i]])
            RP_TRY(
                prepare_graph(plan, &plan->graphs[order[i]], reached[order[i]] == CERTAINLY, err));
    return RP_OK;
}

enum rp_code rp_plan_new(const struct rp_program *program, const struct rp_kernel *const *kernels,
                         const struct rp_engine_options *options, struct rp_plan **out,
                         struct rp_err *err)
{
    struct rp_plan *plan = calloc(1, sizeof *plan);

    *out = NULL;
    RP_TRY(rp_err_need(plan, err, "planning"));
    plan->program = program;
    plan->kernels = kernels;
    plan->tf32 = options->tf32;
    plan->tf32_convolutions = options->tf32_convolutions;
    plan->like_xla = options->like_xla;
    plan->varies = options->vary != 0;
    enum rp_code code = plan_build(plan, err);
    if (code != RP_OK) {
        rp_plan_free(plan);
        return code;
    }
    *out = plan;
    return RP_OK;
}

enum rp_code rp_plan_check(const struct rp_program *program, const struct rp_kernel *const *kernels,
                           rp_refused_fn *refused, void *user, struct rp_err *err)
{
    struct rp_plan plan = {
        .program = program, .kernels = kernels, .refused = refused, .refused_user = user};
    struct rp_err own = RP_ERR_INIT;
    enum rp_code code = plan_build(&plan, err ? err : &own);

    rp_arena_release(&plan.arena);
    return code;
}

void rp_plan_free(struct rp_plan *plan)
{
    if (!plan)
        return;
    for (const struct rp_plan_code *c = plan->code; c; c = c->next)
        munmap(c->at, c->bytes);
    rp_arena_release(&plan->arena);
    free(plan);
}
