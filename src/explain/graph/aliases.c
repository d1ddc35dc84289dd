/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that reuse the memory of an input: what was donated, and how much memory that saves. */
#include "explain/graph/graph.h"
#include "program/opcodes.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

/* The inputs of the entry in their order: parameters, or the data of a lazy graph. */
struct inputs {
    uint32_t *op; /* RP_NONE for numbers that are missing */
    uint32_t n;
};

static bool is_data(const struct rp_program *p, uint32_t op)
{
    const char *name = rp_op_opcode_name(p, op), *colon = strrchr(name, ':');

    return strcmp(colon ? colon + 1 : name, "device_data") == 0;
}

static enum rp_code find_inputs(const struct rp_program *p, struct rp_arena *arena,
                                struct inputs *out, struct rp_err *err)
{
    const struct rp_computation *c = &p->computations.at[p->entry];

    out->n = c->nparams;
    out->op = RP_ARENA_NEW(arena, uint32_t, (size_t)c->n + 1);
    RP_TRY(rp_err_need(out->op, err, "listing aliases"));
    memset(out->op, 0xff, ((size_t)c->n + 1) * sizeof *out->op);
    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        int64_t number = p->value.at[op];

        if (p->code.at[op] == RP_OP_PARAMETER && number >= 0 && number < c->nparams)
            out->op[number] = op;
        else if (!c->nparams && is_data(p, op))
            out->op[out->n++] = op;
    }
    return RP_OK;
}

static uint32_t input_at(const struct inputs *inputs, int64_t i)
{
    return i >= 0 && i < inputs->n ? inputs->op[i] : RP_NONE;
}

static enum rp_code describe_input(const struct rp_program *p, uint32_t op, struct rp_arena *arena,
                                   struct rp_graph_alias *row, struct rp_err *err)
{
    char shape[256];

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    row->name = rp_arena_strdup(arena, rp_program_text(p, p->op_name.at[op]));
    row->shape = rp_arena_strdup(arena, shape);
    row->size_bytes = rp_shape_bytes(p, p->shape.at[op]);
    return rp_err_need(row->name && row->shape, err, "listing aliases");
}

static enum rp_code aliases_of_module(const struct rp_program *p, const struct rp_attr *attr,
                                      const struct inputs *inputs, struct rp_arena *arena,
                                      struct rp_graph_answer *out, struct rp_err *err)
{
    out->aliases = RP_ARENA_NEW(arena, struct rp_graph_alias, (size_t)attr->n + 1);
    RP_TRY(rp_err_need(out->aliases, err, "listing aliases"));
    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_alias *alias = &attr->aliases[i];
        struct rp_graph_alias *row = &out->aliases[out->naliases];
        uint32_t op = input_at(inputs, alias->number);

        if (op == RP_NONE)
            continue;
        row->output = alias->output.n ? alias->output.at[0] : 0;
        row->parameter = alias->number;
        row->kind = alias->kind == RP_ALIAS_MUST ? "must" : "may";
        RP_TRY(describe_input(p, op, arena, row, err));
        out->naliases++;
    }
    return RP_OK;
}

/* ---- pairs from an alias dump ---- */

/* Finds the operation of each output of a lazy graph; NULL if the graph does not name its
   outputs. */
static enum rp_code find_outputs(const struct rp_program *p, struct rp_arena *arena, bool **out,
                                 struct rp_err *err)
{
    const struct rp_computation *c = &p->computations.at[p->entry];
    uint32_t root = rp_strtab_find(&p->strings, "ROOT", 4);

    *out = NULL;
    if (root == UINT32_MAX)
        return RP_OK;
    *out = RP_ARENA_NEW(arena, bool, (size_t)c->n + 1);
    RP_TRY(rp_err_need(*out, err, "listing aliases"));
    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        int64_t value = rp_op_int(p, op, root, -1);

        if (value >= 0 && value < c->n)
            (*out)[value] = true;
    }
    return RP_OK;
}

static enum rp_code aliases_of_pairs(const struct rp_program *p, const uint32_t (*numbers)[2],
                                     size_t n, const struct inputs *inputs, struct rp_arena *arena,
                                     struct rp_graph_answer *out, struct rp_err *err)
{
    uint32_t last = p->computations.at[p->entry].n;
    bool *outputs;

    RP_TRY(find_outputs(p, arena, &outputs, err));
    out->aliases = RP_ARENA_NEW(arena, struct rp_graph_alias, n + 1);
    RP_TRY(rp_err_need(out->aliases, err, "listing aliases"));
    for (size_t i = 0; i < n; i++) {
        struct rp_graph_alias *row = &out->aliases[out->naliases++];
        uint32_t op = input_at(inputs, numbers[i][0]), k = numbers[i][1];

        if (op == RP_NONE || (outputs && (k >= last || !outputs[k])))
            return rp_err_set(err, RP_USAGE,
                              "alias '%u %u': the newest graph has no such %s; is the dump "
                              "from another program?",
                              numbers[i][0], k, op == RP_NONE ? "input" : "output");
        *row = (struct rp_graph_alias){.parameter = numbers[i][0], .output = k, .kind = "must"};
        RP_TRY(describe_input(p, op, arena, row, err));
    }
    return RP_OK;
}

RP_ORDER(by_parameter, struct rp_graph_alias, RP_UP(parameter))

enum rp_code rp_graph_list_aliases(const struct rp_program *p, const uint32_t (*numbers)[2],
                                   size_t n, struct rp_arena *arena, struct rp_graph_answer *out,
                                   struct rp_err *err)
{
    struct inputs inputs;

    out->aliased = out->aliased_bytes = RP_ABSENT_I64;
    if (p->entry == RP_NONE)
        return RP_OK;
    RP_TRY(find_inputs(p, arena, &inputs, err));
    for (size_t i = 0; !numbers && i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].type == RP_VALUE_ALIASES)
            RP_TRY(aliases_of_module(p, &p->module_attrs.at[i], &inputs, arena, out, err));
    if (numbers)
        RP_TRY(aliases_of_pairs(p, numbers, n, &inputs, arena, out, err));
    if (!out->naliases)
        return RP_OK;
    qsort(out->aliases, out->naliases, sizeof *out->aliases, by_parameter);
    out->aliased = (int64_t)out->naliases;
    out->aliased_bytes = 0;
    for (size_t i = 0; i < out->naliases; i++)
        out->aliased_bytes += out->aliases[i].size_bytes;
    return RP_OK;
}
