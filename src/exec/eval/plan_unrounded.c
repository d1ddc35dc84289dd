/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles bf16 results that the program converts to f32 at once. XLA computes bf16 in f32 and
 * rounds the result, but a conversion to f32 gets the value before rounding; so the conversion
 * becomes the operation itself with a result of f32. Matrix products are an exception: XLA computes
 * them in bf16 and rounds. Operations without readers are then skipped. Optimized programs contain
 * every rounding explicitly and are not changed.
 */
#include "exec/eval/plan.h"
#include "exec/eval/tape.h"
#include "program/opcodes.h"

static bool has_fusions(const struct rp_program *p)
{
    for (size_t i = 0; i < p->code.n; i++)
        if (p->code.at[i] == RP_OP_FUSION)
            return true;
    return false;
}

/* Whether the result of an operation is not exact in bf16. */
static bool result_is_rounded(unsigned code)
{
    switch (code) {
    case RP_OP_CONVOLUTION:
        return true;
    case RP_OP_ABS:
    case RP_OP_NEGATE:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_CLAMP:
    case RP_OP_SELECT:
    case RP_OP_CONVERT:
    case RP_OP_BITCAST_CONVERT:
    case RP_OP_STOCHASTIC_CONVERT:
    case RP_OP_REDUCE_PRECISION:
    case RP_OP_COPY:
    case RP_OP_MAP:
    case RP_OP_REAL:
    case RP_OP_IMAG:
        return false;
    default:
        return rp_op_info[code].class_ == RP_CLASS_ELEMENT;
    }
}

static bool all_of(const struct rp_graph *g, const struct rp_node *node, unsigned elem)
{
    for (uint32_t i = 0; i < node->nin; i++)
        if (g->nodes[node->in[i]].shape->elem != elem)
            return false;
    return node->nin > 0 && node->shape->elem == elem;
}

bool rp_plan_widens(const struct rp_plan *plan, unsigned from, unsigned to)
{
    return plan->like_xla &&
           ((from == RP_ELEM_S4 && to == RP_ELEM_S8) || (from == RP_ELEM_U4 && to == RP_ELEM_U8));
}

/* Whether a conversion to `to` takes the result of this node before it is rounded or cut. */
static bool is_taken_whole(const struct rp_plan *plan, const struct rp_graph *g,
                           const struct rp_node *from, unsigned to)
{
    if (to == RP_ELEM_F32)
        return result_is_rounded(from->code) && all_of(g, from, RP_ELEM_BF16);
    return rp_plan_widens(plan, from->shape->elem, to) && from->code != RP_OP_CONVERT &&
           from->code != RP_OP_BITCAST_CONVERT && rp_opcode_is_elementwise(from->code) &&
           all_of(g, from, from->shape->elem);
}

static enum rp_code unround_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err)
{
    uint32_t *uses = RP_ARENA_NEW(&plan->arena, uint32_t, g->n);
    bool changed = false;

    RP_TRY(rp_err_need(uses, err, "planning"));
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->nodes[i].nin; k++)
            uses[g->nodes[i].in[k]]++;
    for (uint32_t i = 0; i < g->n; i++) {
        struct rp_node *node = &g->nodes[i];

        if (node->code != RP_OP_CONVERT || node->nin != 1)
            continue;
        uint32_t from = node->in[0];
        if (!is_taken_whole(plan, g, &g->nodes[from], node->shape->elem))
            continue;
        /* The conversion takes over the work of its operand, and keeps its own shape and name. */
        struct rp_node *work = &g->nodes[from];
        node->op = work->op;
        node->code = work->code;
        node->opcode = work->opcode;
        node->in = work->in;
        node->nin = work->nin;
        node->value = work->value;
        for (uint32_t k = 0; k < node->nin; k++)
            uses[node->in[k]]++;
        uses[from]--;
        changed = true;
        if (uses[from] || from == g->root)
            continue;
        for (uint32_t k = 0; k < work->nin; k++)
            uses[work->in[k]]--;
        work->skip = true;
        work->nin = 0;
    }
    return changed ? rp_plan_lifetimes(plan, g, err) : RP_OK;
}

/* ---- subnormal numbers ---- */

/* The machine treats subnormal numbers as zeros, except where LLVM has merged several comparisons
   into one test of bits: of a number with zero, and of its magnitude with infinity. */

enum { TESTS_MAX = 8 };

struct tests {
    uint32_t at[TESTS_MAX];
    size_t n;
};

/* Collects what a chain of one operation joins, "a || b || …", as far as there is room. */
static void collect_tests(const struct rp_graph *g, uint32_t i, struct tests *tests)
{
    uint32_t code = g->nodes[i].code;
    size_t k = 0;

    tests->at[0] = i;
    tests->n = 1;
    while (k < tests->n) {
        const struct rp_node *node = &g->nodes[tests->at[k]];

        if (node->code == code && node->nin == 2 && tests->n < TESTS_MAX) {
            tests->at[k] = node->in[0];
            tests->at[tests->n++] = node->in[1];
        } else {
            k++;
        }
    }
}

static bool is_comparison(const struct rp_plan *plan, const struct rp_node *node, const char *how)
{
    return node->code == RP_OP_COMPARE && node->nin == 2 &&
           rp_node_word(plan, node, RP_ATTR_DIRECTION, how);
}

/* Whether a node tests the magnitude of node x: it compares |x|, uses is-finite, or calls a
   function of x that does so. */
static bool tests_size(const struct rp_plan *plan, const struct rp_graph *g,
                       const struct rp_node *node, uint32_t x, const char *how)
{
    bool calls = node->code == RP_OP_CALL && node->nin == 1 && node->ncalled == 1;
    const struct rp_graph *in = calls ? node->called[0] : g;

    if (calls && (node->in[0] != x || !in->n))
        return false;
    if (calls)
        node = &in->nodes[in->root];
    if (is_comparison(plan, node, how))
        node = &in->nodes[node->in[0]];
    else if (node->code != RP_OP_IS_FINITE)
        return false;
    return (node->code == RP_OP_ABS || node->code == RP_OP_IS_FINITE) && node->nin == 1 &&
           (calls ? in->nodes[node->in[0]].code == RP_OP_PARAMETER : node->in[0] == x);
}

static void see_subnormal(const struct rp_plan *plan, struct rp_graph *g, uint32_t i)
{
    const char *how = g->nodes[i].code == RP_OP_OR ? "EQ" : "NE";
    struct tests tests;

    collect_tests(g, i, &tests);
    for (size_t k = 0; k < tests.n; k++) {
        struct rp_node *zero = &g->nodes[tests.at[k]];

        for (size_t m = 0; is_comparison(plan, zero, how) && m < tests.n; m++)
            if (tests_size(plan, g, &g->nodes[tests.at[m]], zero->in[0], how))
                zero->by_bits = true;
    }
}

enum rp_code rp_plan_unrounded(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; plan->like_xla && i < plan->program->computations.n; i++)
        for (uint32_t k = 0; k < plan->graphs[i].n; k++)
            if (plan->graphs[i].nodes[k].code == RP_OP_OR ||
                plan->graphs[i].nodes[k].code == RP_OP_AND)
                see_subnormal(plan, &plan->graphs[i], k);
    if (has_fusions(plan->program) || plan->varies)
        return RP_OK;
    for (size_t i = 0; i < plan->program->computations.n; i++)
        RP_TRY(unround_graph(plan, &plan->graphs[i], err));
    return RP_OK;
}
