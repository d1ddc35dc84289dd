/* SPDX-License-Identifier: Apache-2.0 */
#include "program/copy.h"

#include <stdlib.h>
#include <string.h>

enum rp_code rp_copy_string(struct rp_program_copy *c, uint32_t string, uint32_t *out)
{
    *out = 0;
    return string ? rp_program_string(c->to, rp_program_text(c->from, string),
                                      rp_strtab_len(&c->from->strings, string), out, c->err)
                  : RP_OK;
}

enum rp_code rp_copy_shape(struct rp_program_copy *c, uint32_t shape, uint32_t *out)
{
    const struct rp_program *p = c->from;
    const struct rp_op_shape *s = &p->shapes.at[shape];
    uint32_t layout;
    RP_FREED uint32_t *parts = NULL;

    *out = 0;
    if (!shape)
        return RP_OK;
    if (s->elem != RP_ELEM_TUPLE) {
        RP_TRY(rp_copy_string(c, s->layout, &layout));
        return rp_program_array(c->to, s->elem, s->n ? p->dims.at + s->first : NULL,
                                s->n ? p->dim_dynamic.at + s->first : NULL, s->n, layout, out,
                                c->err);
    }
    parts = calloc((size_t)s->n + 1, sizeof *parts);
    RP_TRY(rp_err_need(parts, c->err, "copying a program"));
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(rp_copy_shape(c, p->parts.at[s->first + i], &parts[i]));
    return rp_program_tuple(c->to, parts, s->n, out, c->err);
}

enum rp_code rp_copy_meta(struct rp_program_copy *c, uint32_t op, uint32_t *out)
{
    struct rp_op_meta m = c->from->metas.at[c->from->meta.at[op]];
    struct rp_source_line line;

    *out = 0;
    if (!c->from->meta.at[op])
        return RP_OK;
    if (!m.file && rp_op_source(c->from, op, &line)) {
        RP_TRY(rp_program_string(c->to, line.file, strlen(line.file), &m.file, c->err));
        m.line = line.line;
    } else {
        RP_TRY(rp_copy_string(c, m.file, &m.file));
    }
    m.frame = 0;
    RP_TRY(rp_copy_string(c, m.op_name, &m.op_name));
    RP_TRY(rp_copy_string(c, m.op_type, &m.op_type));
    RP_TRY(rp_copy_string(c, m.scheduling_name, &m.scheduling_name));
    RP_TRY(rp_copy_string(c, m.deduplicated_name, &m.deduplicated_name));
    *out = (uint32_t)c->to->metas.n;
    return rp_vec_push(&c->to->metas, m, c->err);
}

enum rp_code rp_copy_literal(struct rp_program_copy *c, int64_t *value)
{
    if (*value < 0 || (size_t)*value >= c->from->literals.n)
        return RP_OK;
    struct rp_literal literal = c->from->literals.at[*value];
    RP_TRY(rp_copy_shape(c, literal.shape, &literal.shape));
    *value = (int64_t)c->to->literals.n;
    return rp_vec_push(&c->to->literals, literal, c->err);
}

enum rp_code rp_copy_attr(struct rp_program_copy *c, struct rp_attr *attr, bool *kept)
{
    *kept = attr->type != RP_VALUE_OPS && attr->key != RP_ATTR_INPUT_OUTPUT_ALIAS &&
            attr->key != RP_ATTR_BUFFER_DONOR && attr->key != RP_ATTR_ENTRY_COMPUTATION_LAYOUT;
    if (!*kept)
        return RP_OK;
    if (attr->type == RP_VALUE_SHAPES) {
        uint32_t *ids = RP_ARENA_NEW(&c->to->arena, uint32_t, (size_t)attr->n + 1);

        RP_TRY(rp_err_need(ids, c->err, "copying a program"));
        for (uint32_t i = 0; i < attr->n; i++)
            RP_TRY(rp_copy_shape(c, attr->ids[i], &ids[i]));
        attr->ids = ids;
    }
    return rp_copy_string(c, attr->key, &attr->key);
}

enum rp_code rp_copy_module_attrs(struct rp_program_copy *c)
{
    for (size_t i = 0; i < c->from->module_attrs.n; i++) {
        struct rp_attr attr = c->from->module_attrs.at[i];
        bool kept;

        RP_TRY(rp_copy_attr(c, &attr, &kept));
        if (kept)
            RP_TRY(rp_program_add_module_attr(c->to, attr, c->err));
    }
    return RP_OK;
}
