/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Graphviz files. Labels are quoted, since names in other languages may contain any
   character. */
#include "draw/draw.h"
#include "io/escaped.h"

static bool is_drawn(const bool *wanted, uint32_t op)
{
    return !wanted || wanted[op];
}

static void put_dot_node(struct rp_out *to, const struct rp_program *p, uint32_t op,
                         const bool *wanted)
{
    struct rp_ids operands = rp_op_operands(p, op), called = rp_op_called(p, op);
    char shape[200];

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    rp_out_printf(to, "    n%u [label=\"", op);
    rp_out_escaped(to, RP_IN_DOT, rp_program_text(p, p->op_name.at[op]));
    rp_out_text(to, "\\n");
    rp_out_escaped(to, RP_IN_DOT, rp_op_opcode_name(p, op));
    rp_out_text(to, "\\n");
    rp_out_escaped(to, RP_IN_DOT, shape);
    rp_out_text(to, "\"];\n");
    for (uint32_t i = 0; i < operands.n; i++)
        if (is_drawn(wanted, operands.at[i]))
            rp_out_printf(to, "    n%u -> n%u;\n", operands.at[i], op);
    for (uint32_t i = 0; i < called.n; i++) {
        uint32_t root = p->computations.at[called.at[i]].root;

        if (root != RP_NONE && is_drawn(wanted, root))
            rp_out_printf(to, "    n%u -> n%u [style=dashed];\n", root, op);
    }
}

enum rp_code rp_draw_program_dot(const struct rp_program *p, const bool *wanted, struct rp_out *to)
{
    rp_out_text(to, "digraph program {\n  node [shape=box fontsize=10];\n");
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];
        uint32_t drawn = 0;

        for (uint32_t op = c->first; op < c->first + c->n; op++)
            drawn += is_drawn(wanted, op);
        if (!drawn)
            continue;
        rp_out_printf(to, "  subgraph cluster_%zu {\n    label=\"", i);
        rp_out_escaped(to, RP_IN_DOT, rp_program_text(p, c->name));
        rp_out_text(to, "\";\n");
        for (uint32_t op = c->first; op < c->first + c->n; op++)
            if (is_drawn(wanted, op))
                put_dot_node(to, p, op, wanted);
        rp_out_text(to, "  }\n");
    }
    rp_out_text(to, "}\n");
    return RP_OK;
}
