/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/hlo/comparison.h"
#include "program/opcodes.h"

/* The comparison type that follows from the type of the operands. */
static const char *default_type(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);
    unsigned elem = operands.n ? p->shapes.at[p->shape.at[operands.at[0]]].elem : RP_ELEM_INVALID;
    const char *name = rp_elem_name(elem);

    if (name && name[0] == 's')
        return "SIGNED";
    return name && (name[0] == 'u' || name[0] == 'p') ? "UNSIGNED" : "FLOAT";
}

static bool has_type(const struct rp_program *p, uint32_t op)
{
    for (size_t i = p->attr_begin.at[op]; i < p->attrs.n; i++)
        if (p->attrs.at[i].key == RP_ATTR_TYPE)
            return true;
    return false;
}

bool rp_hlo_comparison_attr(const struct rp_program *p, uint32_t op, struct rp_attr *attr)
{
    if (p->code.at[op] != RP_OP_COMPARE)
        return true;
    if (attr->key == RP_ATTR_ORDER) {
        if (rp_attr_is(attr, "PARTIAL"))
            return false;
        if (!rp_attr_is(attr, "TOTAL"))
            return true;
        if (default_type(p, op)[0] != 'F') /* integers have only one order */
            return false;
        *attr = rp_attr_word(RP_ATTR_TYPE, "TOTALORDER");
    }
    return attr->key != RP_ATTR_TYPE ||
           (!rp_attr_is(attr, default_type(p, op)) && !has_type(p, op));
}
