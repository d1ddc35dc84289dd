/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layouts of a custom call are the order of elements that the called function expects. HLO puts
 * those of the results into their shapes, and those of the operands into a list of shapes:
 *
 *   operand_layouts = [dense<[0, 1]> : tensor<2xindex>] operand_layout_constraints={f32[4,8]{0,1}}
 */
#include "formats/mlir/mlir.h"

#include <stdio.h>
#include <string.h>

/* Takes the next of the lists in a text, as "{0,1}"; false if there is none. */
static bool next_layout(struct rp_slice *rest, char *out, size_t cap)
{
    const char *end = rest->at + rest->n;
    struct rp_mlir_ints list;
    size_t n = 1;
    const char *at = rest->n ? memmem(rest->at, rest->n, "dense<", 6) : NULL;
    const char *to = at ? memchr(at, '>', (size_t)(end - at)) : NULL;

    if (!to)
        return false;
    rp_mlir_ints_in(at + 6, to, &list);
    *rest = (struct rp_slice){to, (uint32_t)(end - to), 0};
    out[0] = '{';
    for (size_t i = 0; i < list.n && n < cap - 24; i++)
        n += (size_t)snprintf(out + n, cap - n, i ? ",%lld" : "%lld", (long long)list.at[i]);
    snprintf(out + n, cap - n, "}");
    return true;
}

/* Gives an array the next layout; scalars have none. */
static enum rp_code lay_out(struct rp_mlir *r, struct rp_slice *layouts, uint32_t shape,
                            uint32_t *out)
{
    struct rp_op_shape s = r->p->shapes.at[shape];
    char text[256];
    uint32_t layout;
    int64_t dims[64];

    *out = shape;
    if (!next_layout(layouts, text, sizeof text) || s.elem == RP_ELEM_TUPLE || !s.n || s.n > 64)
        return RP_OK;
    memcpy(dims, r->p->dims.at + s.first, s.n * sizeof *dims);
    RP_TRY(rp_program_string(r->p, text, strlen(text), &layout, r->err));
    return rp_program_array(r->p, s.elem, dims, NULL, s.n, layout, out, r->err);
}

enum rp_code rp_mlir_result_layouts(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                    uint32_t *shape)
{
    struct rp_op_shape s = r->p->shapes.at[*shape];
    struct rp_slice layouts;

    RP_TRY(rp_mlir_find_text(r, attrs, "result_layouts", &layouts));
    if (!layouts.n)
        return RP_OK;
    if (s.elem != RP_ELEM_TUPLE)
        return lay_out(r, &layouts, *shape, shape);
    uint32_t *parts = RP_ARENA_NEW(&r->p->arena, uint32_t, (size_t)s.n + 1);
    RP_TRY(rp_err_need(parts, r->err, "reading layouts"));
    for (uint32_t i = 0; i < s.n; i++)
        RP_TRY(lay_out(r, &layouts, r->p->parts.at[s.first + i], &parts[i]));
    return rp_program_tuple(r->p, parts, s.n, shape, r->err);
}

enum rp_code rp_mlir_operand_layouts(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    struct rp_attr attr = {
        .key = RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS, .type = RP_VALUE_SHAPES, .n = attrs->operands.n};
    struct rp_slice layouts;

    RP_TRY(rp_mlir_find_text(r, attrs, "operand_layouts", &layouts));
    if (!layouts.n || !attr.n)
        return RP_OK;
    uint32_t *ids = RP_ARENA_NEW(&r->p->arena, uint32_t, attr.n);
    RP_TRY(rp_err_need(ids, r->err, "reading layouts"));
    for (uint32_t i = 0; i < attr.n; i++)
        RP_TRY(lay_out(r, &layouts, r->p->shape.at[attrs->operands.at[i]], &ids[i]));
    attr.ids = ids;
    return rp_program_add_attr(r->p, attr, r->err);
}
