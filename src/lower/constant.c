/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of TensorFlow graphs in HLO. Short ones are written as text; of others the text has
 * "{...}", and the program that is made of it gets their bytes: those of the graph, where it holds
 * them as they are.
 */
#include "lower/inner.h"

#include "program/literal.h"

#include <stdlib.h>
#include <string.h>

#define CONSTANT_MAX 64 /* elements of a constant that is written as text */

static void put_elements(struct lower *l, const struct rp_tf_value *v, uint32_t dim, size_t *at)
{
    size_t unit = rp_literal_unit(v->elem);
    char text[96];

    if (dim == v->rank) {
        rp_literal_print(v->elem, v->data + *at * unit, text, sizeof text);
        rp_out_text(l->body, text);
        ++*at;
        return;
    }
    rp_out_char(l->body, '{');
    for (int64_t i = 0; i < v->dims[dim]; i++) {
        if (i)
            rp_out_text(l->body, ", ");
        put_elements(l, v, dim + 1, at);
    }
    rp_out_char(l->body, '}');
}

void lower_know_ints(struct lower *l, const struct rp_tf_value *v, struct lower_value *out)
{
    int64_t *ints;

    if ((v->elem != RP_ELEM_S32 && v->elem != RP_ELEM_S64) || v->n > 4096 || !v->data)
        return;
    ints = RP_ARENA_NEW(&l->arena, int64_t, v->n + 1);
    for (size_t i = 0; ints && i < v->n; i++) {
        int32_t small;

        if (v->elem == RP_ELEM_S64) {
            memcpy(&ints[i], v->data + 8 * i, 8);
        } else {
            memcpy(&small, v->data + 4 * i, 4);
            ints[i] = small;
        }
    }
    out->ints = ints;
    out->nints = v->n;
}

enum rp_code lower_constant(struct lower *l, const struct lower_node *node, struct lower_value *out)
{
    struct rp_bytes tensor = lower_attr_tensor(node, "value");
    struct rp_tf_value v;
    enum rp_code code = rp_tf_value_decode(tensor, 0, NULL, l->kept, &v, l->err);
    size_t at = 0;

    if (code != RP_OK)
        return rp_err_prefix(l->err, code, "constant '%.*s'", (int)(node->name.n & 255),
                             (const char *)node->name.at);
    *out = lower_like(l, v.elem, v.dims, v.rank);
    lower_begin(l, out, "constant");
    if (v.n > CONSTANT_MAX) {
        struct lower_large large = {out->id, v.data, v.nbytes};

        RP_TRY(rp_vec_push(&l->large, large, l->err));
        lower_put(l, "{...}");
    } else {
        put_elements(l, &v, 0, &at);
    }
    lower_put(l, ")\n");
    lower_know_ints(l, &v, out);
    return RP_OK;
}

/* The large constant of a number, or NULL; they are in the order of their numbers. */
static const struct lower_large *find_large(const struct lower *l, unsigned long id)
{
    size_t low = 0, high = l->large.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (l->large.at[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->large.n && l->large.at[low].id == id ? &l->large.at[low] : NULL;
}

void lower_fill_large(const struct lower *l, struct rp_program *p)
{
    for (uint32_t op = 0; op < p->nops && l->large.n; op++) {
        const char *name = rp_program_text(p, p->op_name.at[op]);
        const struct lower_large *large;
        struct rp_literal *literal;

        if (p->code.at[op] != RP_OP_CONSTANT || *name != 'v')
            continue;
        large = find_large(l, strtoul(name + 1, NULL, 10));
        if (!large)
            continue;
        literal = &p->literals.at[p->value.at[op]];
        literal->at = (const char *)large->data;
        literal->n = large->n;
        literal->form = RP_LITERAL_RAW;
    }
}
