/* SPDX-License-Identifier: Apache-2.0 */
/* Writes custom calls of HLO in StableHLO's words: target, configuration, layouts, aliases. */
#include "formats/write/stablehlo.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <string.h>

/* Whether a text is one dictionary as MLIR writes it: a line of printable characters whose brackets
   and strings are all closed by its end, and not before. */
static bool is_dictionary(const char *at, size_t n)
{
    char open[64];
    size_t depth = 0;

    if (n < 2 || at[0] != '{')
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *pair = strchr("{}[]()<>", at[i]);

        if (at[i] < ' ' || at[i] > '~' || at[i] == '/' || (i && !depth))
            return false;
        if (at[i] == '"') {
            for (i++; i < n && at[i] != '"'; i += at[i] == '\\' ? 2 : 1)
                if (at[i] < ' ' || at[i] > '~')
                    return false;
            if (i >= n)
                return false;
        } else if (pair && strchr("{[(<", at[i])) {
            if (depth == sizeof open)
                return false;
            open[depth++] = pair[1];
        } else if (pair && open[--depth] != at[i]) {
            return false;
        }
    }
    return depth == 0;
}

static enum rp_code put_config(struct rp_shlo *w, uint32_t op)
{
    static const char *const versions[] = {"API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                           "API_VERSION_STATUS_RETURNING_UNIFIED",
                                           "API_VERSION_TYPED_FFI"};
    const struct rp_attr *version = rp_op_attr(w->p, op, RP_ATTR_API_VERSION),
                         *config = rp_op_attr(w->p, op, RP_ATTR_BACKEND_CONFIG);
    size_t number = 0;

    while (version && number < 4 && !rp_attr_is(version, versions[number]))
        number++;
    if (number == 4)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_API_VERSION);
    rp_shlo_key(w, "api_version");
    rp_out_printf(w->to, "%zu : i32", number + 1);
    if (config && (!rp_attr_is_bytes(config) || config->type == RP_VALUE_WIRE))
        return rp_shlo_refuse_attr(w, op, RP_ATTR_BACKEND_CONFIG);
    if (number == 3 && config && config->n && !is_dictionary(config->at, config->n))
        return rp_shlo_refuse_attr(w, op, RP_ATTR_BACKEND_CONFIG);
    rp_shlo_key(w, "backend_config");
    if (number == 3)
        rp_out_write(w->to, config && config->n ? config->at : "{}",
                     config && config->n ? config->n : 2);
    else
        rp_shlo_string(w, config ? config->at : "", config ? config->n : 0);
    return RP_OK;
}

/* Writes "dense<[0, 1]> : tensor<2xindex>"; false if StableHLO has no words for the layout. */
static bool put_layout(const struct rp_shlo *w, uint32_t shape)
{
    const struct rp_op_shape *s = &w->p->shapes.at[shape];
    uint32_t order[RP_SHLO_RANK];

    if (s->n > RP_SHLO_RANK || strstr(rp_program_text(w->p, s->layout), "T("))
        return false;
    bool given = rp_shape_minor_to_major(w->p, shape, order, RP_SHLO_RANK);
    rp_out_text(w->to, s->n ? "dense<[" : "dense<");
    for (uint32_t i = 0; i < s->n; i++)
        rp_out_printf(w->to, i ? ", %u" : "%u", given ? order[i] : s->n - 1 - i);
    rp_out_printf(w->to, "%s> : tensor<%uxindex>", s->n ? "]" : "", s->n);
    return true;
}

static bool is_laid_out(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    for (uint32_t i = 0; s->elem == RP_ELEM_TUPLE && i < s->n; i++)
        if (!(p->shapes.at[p->parts.at[s->first + i]].flags & RP_SHAPE_DEFAULT_LAYOUT))
            return true;
    return s->elem != RP_ELEM_TUPLE && !(s->flags & RP_SHAPE_DEFAULT_LAYOUT);
}

static enum rp_code put_layouts(struct rp_shlo *w, uint32_t op)
{
    const struct rp_program *p = w->p;
    const struct rp_attr *attr = rp_op_attr(p, op, RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    struct rp_ids operands = rp_op_operands(p, op);
    const struct rp_op_shape *result = &p->shapes.at[p->shape.at[op]];
    bool given = attr && attr->type == RP_VALUE_SHAPES && attr->n == operands.n, needed = given;
    bool tuple = result->elem == RP_ELEM_TUPLE;

    if (attr && !given)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    needed = needed || is_laid_out(p, p->shape.at[op]);
    for (uint32_t i = 0; i < operands.n; i++)
        needed = needed || is_laid_out(p, p->shape.at[operands.at[i]]);
    if (!needed)
        return RP_OK;
    rp_shlo_key(w, "operand_layouts");
    rp_out_char(w->to, '[');
    for (uint32_t i = 0; i < operands.n; i++) {
        rp_out_text(w->to, i ? ", " : "");
        if (!put_layout(w, given ? attr->ids[i] : p->shape.at[operands.at[i]]))
            return rp_shlo_refuse(w, op, "the layout of an operand");
    }
    rp_out_char(w->to, ']');
    rp_shlo_key(w, "result_layouts");
    rp_out_char(w->to, '[');
    for (uint32_t i = 0; i < (tuple ? result->n : 1); i++) {
        rp_out_text(w->to, i ? ", " : "");
        if (!put_layout(w, tuple ? p->parts.at[result->first + i] : p->shape.at[op]))
            return rp_shlo_refuse(w, op, "the layout of a result");
    }
    rp_out_char(w->to, ']');
    return RP_OK;
}

/* Whether operands and results are arrays. Tuples would become several operands or results, which
   the called function does not expect; several results are one tuple of arrays in HLO. */
static bool takes_arrays(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);
    const struct rp_op_shape *result = &p->shapes.at[p->shape.at[op]];

    for (uint32_t i = 0; i < operands.n; i++)
        if (p->shapes.at[p->shape.at[operands.at[i]]].elem == RP_ELEM_TUPLE)
            return false;
    return result->elem != RP_ELEM_TUPLE || (result->depth <= 1 && result->n != 1);
}

/* Whether this is XLA's own call for the largest values and their places, which other tools do not
   know. Its comparison is always the same. */
bool rp_shlo_is_topk(const struct rp_program *p, uint32_t op)
{
    const struct rp_attr *target = rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET);
    const struct rp_op_shape *result = &p->shapes.at[p->shape.at[op]], *part[2];
    struct rp_ids operands = rp_op_operands(p, op);

    if (p->code.at[op] != RP_OP_CUSTOM_CALL || !target || !rp_attr_is(target, "TopK") ||
        operands.n != 1 || result->elem != RP_ELEM_TUPLE || result->n != 2 ||
        is_laid_out(p, p->shape.at[op]) || is_laid_out(p, p->shape.at[operands.at[0]]))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        part[i] = &p->shapes.at[p->parts.at[result->first + i]];
    return part[0]->elem == p->shapes.at[p->shape.at[operands.at[0]]].elem &&
           rp_literal_unit(part[0]->elem) && part[0]->n && part[1]->elem == RP_ELEM_S32 &&
           part[0]->n == part[1]->n;
}

enum rp_code rp_shlo_custom_call(struct rp_shlo *w, uint32_t op)
{
    const struct rp_attr *target = rp_op_attr(w->p, op, RP_ATTR_CUSTOM_CALL_TARGET),
                         *effect = rp_op_attr(w->p, op, RP_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT),
                         *sharding = rp_op_attr(w->p, op, RP_ATTR_SHARDING);
    struct rp_ids called = rp_op_called(w->p, op);

    if (rp_shlo_is_topk(w->p, op)) {
        const struct rp_program *p = w->p;
        const struct rp_op_shape *values =
            &p->shapes.at[p->parts.at[p->shapes.at[p->shape.at[op]].first]];

        rp_shlo_int(w, "k", p->dims.at[values->first + values->n - 1]);
        return RP_OK;
    }
    if (!target || !rp_attr_is_bytes(target))
        return rp_shlo_refuse_attr(w, op, RP_ATTR_CUSTOM_CALL_TARGET);
    if (sharding && sharding->type != RP_VALUE_SHARDING)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_SHARDING);
    if (target->n > 8 && memcmp(target->at, "xla.sdy.", 8) == 0)
        return rp_shlo_refuse(w, op, "it belongs to Shardy, whose meshes are not written");
    if (!takes_arrays(w->p, op))
        return rp_shlo_refuse(w, op, "it takes or returns a tuple");
    rp_shlo_key(w, "call_target_name");
    rp_shlo_string(w, target->at, target->n);
    rp_shlo_flag(w, "has_side_effect", effect && effect->type == RP_VALUE_FLAG && effect->number);
    RP_TRY(put_config(w, op));
    if (called.n) {
        rp_shlo_key(w, "called_computations");
        for (uint32_t i = 0; i < called.n; i++) {
            RP_TRY(rp_shlo_need_function(w, called.at[i]));
            rp_shlo_symbol(w, i ? ", @" : "[@", called.at[i]);
        }
        rp_out_char(w->to, ']');
    }
    RP_TRY(put_layouts(w, op));
    const struct rp_attr *attr = rp_op_attr(w->p, op, RP_ATTR_OUTPUT_TO_OPERAND_ALIASING);
    if (!attr)
        return RP_OK;
    if (attr->type != RP_VALUE_ALIASES)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_OUTPUT_TO_OPERAND_ALIASING);
    rp_shlo_key(w, "output_operand_aliases");
    rp_out_char(w->to, '[');
    for (uint32_t i = 0; i < attr->n; i++) {
        rp_out_printf(w->to, "%s#stablehlo.output_operand_alias<output_tuple_indices = [",
                      i ? ", " : "");
        rp_shlo_list(w, attr->aliases[i].output.at, attr->aliases[i].output.n);
        rp_out_printf(w->to, "], operand_index = %lld, operand_tuple_indices = [",
                      (long long)attr->aliases[i].number);
        rp_shlo_list(w, attr->aliases[i].operand.at, attr->aliases[i].operand.n);
        rp_out_text(w->to, "]>");
    }
    rp_out_char(w->to, ']');
    return RP_OK;
}
