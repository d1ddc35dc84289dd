/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the union of several programs. A computation is identified by its name, the entry by being
 * the entry; an operation by its name in its computation, or by a match with the program before.
 * Operations that a program adds come after the one that precedes them there, so the order of every
 * program is kept where they agree. The properties of an operation are those in the last program
 * that has it; its operands come from all. Attributes become text, and costs are copied, since they
 * cannot be counted without typed attributes.
 */
#include "draw/stages.h"

#include "program/opcodes.h"
#include "program/structure.h"

#include <string.h>

struct node {
    uint32_t computation, next; /* next: of the list of its computation */
    uint32_t stage, op;         /* the last program that has it */
    uint32_t first_edge;        /* list */
    uint32_t id;                /* in the union */
};

struct edge {
    uint32_t from, next; /* next: of the operands of the same node; in any order */
};

struct home { /* a computation of the union */
    uint32_t head, tail;
    uint32_t stage, computation; /* the last program that has it */
    uint32_t taken;              /* by which computation of this program, + 1 */
};

struct uniting {
    const struct rp_stage *stages;
    size_t n;
    struct rp_arena *arena;
    struct rp_stages *out;
    struct rp_err *err;
    RP_VEC(struct home) homes;
    RP_VEC(struct node) nodes;
    RP_VEC(struct edge) edges;
    struct rp_map by_name;  /* computations and operations */
    struct rp_map by_ends;  /* edges */
    uint32_t **node_of;     /* of operations, for each program */
    uint32_t **home_of;     /* of computations, for each program */
    struct rp_costs *costs; /* of each program */
};

/* ---- computations ---- */

/* Returns the computation of the union that holds most of the matches, or RP_NONE. */
static uint32_t matched_home(const struct uniting *u, size_t stage, uint32_t c)
{
    const struct rp_stage *s = &u->stages[stage];
    const struct rp_computation *from = &s->p->computations.at[c];

    for (uint32_t op = from->first; s->match && stage && op < from->first + from->n; op++)
        if (s->match[op] != RP_NONE)
            return u->nodes.at[u->node_of[stage - 1][s->match[op]]].computation;
    return RP_NONE;
}

static enum rp_code find_home(struct uniting *u, size_t stage, uint32_t c, uint32_t *found)
{
    uint32_t fresh = (uint32_t)u->homes.n, mark = (uint32_t)stage + 1;

    const char *name =
        rp_program_text(u->stages[stage].p, u->stages[stage].p->computations.at[c].name);
    uint64_t key = c == u->stages[stage].p->entry
                       ? UINT64_C(0x656e747279)
                       : rp_hash_join(UINT64_C(0x636f6d70), rp_hash_bytes(name, strlen(name)));

    *found = matched_home(u, stage, c);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the names found are those of `homes` */
    while (*found == RP_NONE || u->homes.at[*found].taken == mark) {
        RP_TRY(rp_map_intern(&u->by_name, key, fresh, found, u->err));
        if (*found == fresh)
            RP_TRY(
                rp_vec_push(&u->homes, ((struct home){.head = RP_NONE, .tail = RP_NONE}), u->err));
        key = rp_hash_u64(key);
    }
    u->homes.at[*found].taken = mark;
    u->homes.at[*found].stage = (uint32_t)stage;
    u->homes.at[*found].computation = c;
    return RP_OK;
}

/* ---- operations ---- */

static enum rp_code add_node(struct uniting *u, uint32_t home, uint32_t after, uint32_t *id)
{
    struct node fresh = {.computation = home, .next = RP_NONE, .first_edge = RP_NONE};
    struct home *h = &u->homes.at[home];

    *id = (uint32_t)u->nodes.n;
    if (after == RP_NONE) {
        fresh.next = h->head;
        h->head = *id;
    } else {
        fresh.next = u->nodes.at[after].next;
        u->nodes.at[after].next = *id;
    }
    if (h->tail == after || h->tail == RP_NONE)
        h->tail = *id;
    return rp_vec_push(&u->nodes, fresh, u->err);
}

/* Finds an operation by its match or name; a name that occurs twice is a new operation the second
   time. */
static enum rp_code find_node(struct uniting *u, size_t stage, uint32_t op, uint32_t home,
                              uint32_t after, uint32_t *id)
{
    const struct rp_stage *s = &u->stages[stage];
    const char *name = rp_program_text(s->p, s->p->op_name.at[op]);
    uint64_t key =
        rp_hash_join(rp_hash_join(UINT64_C(0x6f70), home), rp_hash_bytes(name, strlen(name)));
    uint32_t fresh = (uint32_t)u->nodes.n;

    *id = RP_NONE;
    if (s->match && stage) {
        uint32_t match = s->match[op];

        if (match != RP_NONE && u->nodes.at[u->node_of[stage - 1][match]].computation == home)
            *id = u->node_of[stage - 1][match];
        return *id == RP_NONE || (stage && u->nodes.at[*id].stage == stage)
                   ? add_node(u, home, after, id)
                   : RP_OK;
    }
    for (;; key = rp_hash_u64(key)) {
        RP_TRY(rp_map_intern(&u->by_name, key, fresh, id, u->err));
        if (*id == fresh)
            return add_node(u, home, after, id);
        if (u->nodes.at[*id].stage != stage)
            return RP_OK;
    }
}

static enum rp_code unite_computation(struct uniting *u, size_t stage, uint32_t c)
{
    const struct rp_computation *from = &u->stages[stage].p->computations.at[c];
    uint32_t home, after = RP_NONE;

    RP_TRY(find_home(u, stage, c, &home));
    u->home_of[stage][c] = home;
    for (uint32_t op = from->first; op < from->first + from->n; op++) {
        uint32_t id;

        RP_TRY(find_node(u, stage, op, home, after, &id));
        u->nodes.at[id].stage = (uint32_t)stage;
        u->nodes.at[id].op = op;
        u->node_of[stage][op] = id;
        after = id;
    }
    return RP_OK;
}

static enum rp_code unite_operands(struct uniting *u, size_t stage, uint32_t op)
{
    struct rp_ids ids = rp_op_operands(u->stages[stage].p, op);
    uint32_t to = u->node_of[stage][op];

    for (uint32_t i = 0; i < ids.n; i++) {
        uint32_t from = u->node_of[stage][ids.at[i]], fresh = (uint32_t)u->edges.n, at;

        RP_TRY(rp_map_intern(&u->by_ends, (uint64_t)to << 32 | from, fresh, &at, u->err));
        if (at == fresh) {
            struct edge edge = {.from = from, .next = u->nodes.at[to].first_edge};

            RP_TRY(rp_vec_push(&u->edges, edge, u->err));
            u->nodes.at[to].first_edge = at;
        }
    }
    return RP_OK;
}

/* ---- copying ---- */

static enum rp_code copy_string(struct uniting *u, const struct rp_program *from, uint32_t string,
                                uint32_t *to)
{
    return rp_program_string(u->out->p, rp_program_text(from, string),
                             rp_strtab_len(&from->strings, string), to, u->err);
}

/* Tuples contain other shapes; the readers limit their depth. */
static enum rp_code copy_shape(struct uniting *u, const struct rp_program *from, uint32_t shape,
                               uint32_t *to)
{
    const struct rp_op_shape *s = &from->shapes.at[shape];
    uint32_t layout = 0, *parts;

    if (shape == 0 || s->flags & RP_SHAPE_UNKNOWN) {
        *to = 0;
        return RP_OK;
    }
    if (s->layout)
        RP_TRY(copy_string(u, from, s->layout, &layout));
    if (s->elem != RP_ELEM_TUPLE)
        return rp_program_array(u->out->p, s->elem, from->dims.at + s->first,
                                from->dim_dynamic.n ? from->dim_dynamic.at + s->first : NULL, s->n,
                                layout, to, u->err);
    parts = RP_ARENA_NEW(u->arena, uint32_t, (size_t)s->n + 1);
    RP_TRY(rp_err_need(parts, u->err, "combining programs"));
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(copy_shape(u, from, from->parts.at[s->first + i], &parts[i]));
    return rp_program_tuple(u->out->p, parts, s->n, to, u->err);
}

static enum rp_code copy_meta(struct uniting *u, const struct rp_program *from, uint32_t op,
                              uint32_t *to)
{
    const struct rp_op_meta *meta = &from->metas.at[from->meta.at[op]];
    struct rp_op_meta copy = {0};
    struct rp_source_line at;

    *to = 0;
    if (!from->meta.at[op])
        return RP_OK;
    RP_TRY(copy_string(u, from, meta->op_name, &copy.op_name));
    if (rp_op_source(from, op, &at)) {
        RP_TRY(rp_program_string(u->out->p, at.file, strlen(at.file), &copy.file, u->err));
        copy.line = at.line;
    }
    *to = (uint32_t)u->out->p->metas.n;
    return rp_vec_push(&u->out->p->metas, copy, u->err);
}

static enum rp_code copy_attrs(struct uniting *u, const struct rp_program *from, uint32_t op)
{
    uint32_t n, key;
    const struct rp_attr *attr = rp_op_attrs(from, op, &n);

    for (; n; n--, attr++) {
        if (attr->key == RP_ATTR_PROTO)
            continue;
        const char *text = rp_attr_text(from, attr, u->arena);
        RP_TRY(copy_string(u, from, attr->key, &key));
        RP_TRY(rp_program_add_text(u->out->p, key, text, strlen(text), u->err));
    }
    return RP_OK;
}

static enum rp_code copy_value(struct uniting *u, const struct rp_program *from, uint32_t op,
                               uint32_t shape, int64_t *value)
{
    *value = from->value.at[op];
    if (from->code.at[op] != RP_OP_CONSTANT || (uint64_t)*value >= from->literals.n)
        return RP_OK;
    struct rp_literal literal = from->literals.at[*value];
    literal.shape = shape;
    *value = (int64_t)u->out->p->literals.n;
    return rp_vec_push(&u->out->p->literals, literal, u->err);
}

static enum rp_code copy_op(struct uniting *u, const struct node *node)
{
    const struct rp_program *from = u->stages[node->stage].p;
    struct rp_ids called = rp_op_called(from, node->op);
    struct rp_new_op op = {.code = (enum rp_opcode)from->code.at[node->op],
                           .flags = from->flags.at[node->op]};
    uint32_t id;

    RP_TRY(copy_string(u, from, from->op_name.at[node->op], &op.name));
    RP_TRY(copy_string(u, from, from->foreign.at[node->op], &op.foreign));
    RP_TRY(copy_shape(u, from, from->shape.at[node->op], &op.shape));
    RP_TRY(copy_meta(u, from, node->op, &op.meta));
    RP_TRY(copy_value(u, from, node->op, op.shape, &op.value));
    RP_TRY(rp_program_add_op(u->out->p, &op, &id, u->err));
    for (uint32_t i = 0; i < called.n; i++)
        RP_TRY(rp_program_add_called(u->out->p, u->home_of[node->stage][called.at[i]], u->err));
    RP_TRY(rp_vec_push(&u->out->p->given, u->costs[node->stage].op[node->op], u->err));
    return copy_attrs(u, from, node->op);
}

/* Copies operands of the last program in their order, then those of others. of_edge receives the
   new place of each edge. */
static enum rp_code copy_operands(struct uniting *u, const struct node *node, uint32_t *of_edge)
{
    struct rp_ids ids = rp_op_operands(u->stages[node->stage].p, node->op);

    for (uint32_t i = 0; i < ids.n; i++) {
        uint32_t from = u->node_of[node->stage][ids.at[i]];
        uint32_t edge = rp_map_get(&u->by_ends, (uint64_t)(node - u->nodes.at) << 32 | from);

        if (of_edge[edge] != RP_NONE)
            continue;
        of_edge[edge] = (uint32_t)u->out->p->operands.n;
        RP_TRY(rp_program_add_operand(u->out->p, u->nodes.at[from].id, 0, u->err));
    }
    for (uint32_t e = node->first_edge; e != RP_NONE; e = u->edges.at[e].next)
        if (of_edge[e] == RP_NONE) {
            of_edge[e] = (uint32_t)u->out->p->operands.n;
            RP_TRY(
                rp_program_add_operand(u->out->p, u->nodes.at[u->edges.at[e].from].id, 0, u->err));
        }
    return RP_OK;
}

static enum rp_code copy_home(struct uniting *u, const struct home *home, uint32_t *of_edge)
{
    const struct rp_program *from = u->stages[home->stage].p;
    const struct rp_computation *c = &from->computations.at[home->computation];
    struct rp_program *p = u->out->p;
    uint32_t name, id;

    RP_TRY(copy_string(u, from, c->name, &name));
    RP_TRY(rp_program_begin(p, name, &id, u->err));
    for (uint32_t n = home->head; n != RP_NONE; n = u->nodes.at[n].next) {
        RP_TRY(copy_op(u, &u->nodes.at[n]));
        RP_TRY(copy_operands(u, &u->nodes.at[n], of_edge));
    }
    p->computations.at[id].fused = c->fused;
    if (c->root != RP_NONE)
        p->computations.at[id].root = u->nodes.at[u->node_of[home->stage][c->root]].id;
    if (home->computation == from->entry)
        p->entry = id;
    return RP_OK;
}

static enum rp_code mark_stages(struct uniting *u, const uint32_t *of_edge)
{
    struct rp_stages *out = u->out;

    out->words = (uint32_t)(u->n + 63) / 64;
    out->ops = RP_ARENA_NEW(u->arena, uint64_t, ((size_t)out->p->nops + 1) * out->words);
    out->operands = RP_ARENA_NEW(u->arena, uint64_t, (out->p->operands.n + 1) * out->words);
    RP_TRY(rp_err_need(out->ops && out->operands, u->err, "combining programs"));
    for (size_t s = 0; s < u->n; s++) {
        const struct rp_program *p = u->stages[s].p;
        uint64_t bit = UINT64_C(1) << s % 64;

        for (uint32_t op = 0; op < p->nops; op++) {
            uint32_t node = u->node_of[s][op];
            struct rp_ids ids = rp_op_operands(p, op);

            out->ops[(size_t)u->nodes.at[node].id * out->words + s / 64] |= bit;
            for (uint32_t i = 0; i < ids.n; i++) {
                uint64_t ends = (uint64_t)node << 32 | u->node_of[s][ids.at[i]];

                out->operands[(size_t)of_edge[rp_map_get(&u->by_ends, ends)] * out->words +
                              s / 64] |= bit;
            }
        }
    }
    return RP_OK;
}

static enum rp_code unite(struct uniting *u)
{
    const struct rp_program *last = u->stages[u->n - 1].p;

    u->node_of = RP_ARENA_NEW(u->arena, uint32_t *, u->n);
    u->home_of = RP_ARENA_NEW(u->arena, uint32_t *, u->n);
    u->costs = RP_ARENA_NEW(u->arena, struct rp_costs, u->n);
    u->out->names = RP_ARENA_NEW(u->arena, const char *, u->n);
    RP_TRY(rp_err_need(u->node_of && u->home_of && u->costs && u->out->names, u->err,
                       "combining programs"));
    for (size_t s = 0; s < u->n; s++) {
        u->out->names[s] = u->stages[s].name;

        const struct rp_program *p = u->stages[s].p;
        u->node_of[s] = RP_ARENA_NEW(u->arena, uint32_t, (size_t)p->nops + 1);
        u->home_of[s] = RP_ARENA_NEW(u->arena, uint32_t, p->computations.n + 1);
        RP_TRY(rp_err_need(u->node_of[s] && u->home_of[s], u->err, "combining programs"));
        RP_TRY(rp_program_count(p, u->arena, &u->costs[s], u->err));
        for (uint32_t c = 0; c < p->computations.n; c++)
            RP_TRY(unite_computation(u, s, c));
        for (uint32_t op = 0; op < p->nops; op++)
            RP_TRY(unite_operands(u, s, op));
    }
    uint32_t *of_edge = RP_ARENA_NEW(u->arena, uint32_t, u->edges.n + 1);
    RP_TRY(rp_err_need(of_edge, u->err, "combining programs"));
    memset(of_edge, 0xff, u->edges.n * sizeof *of_edge);
    uint32_t id = 0;
    for (size_t h = 0; h < u->homes.n; h++)
        for (uint32_t n = u->homes.at[h].head; n != RP_NONE; n = u->nodes.at[n].next)
            u->nodes.at[n].id = id++;
    RP_TRY(rp_program_new(last->language, &u->out->p, u->err));
    RP_TRY(copy_string(u, last, last->name, &u->out->p->name));
    for (size_t h = 0; h < u->homes.n; h++)
        RP_TRY(copy_home(u, &u->homes.at[h], of_edge));
    RP_TRY(rp_program_finish(u->out->p, u->err));
    RP_TRY(rp_arena_check(u->arena, "combining programs", u->err));
    return mark_stages(u, of_edge);
}

enum rp_code rp_stages_make(const struct rp_stage *stages, size_t n, bool sides,
                            struct rp_arena *arena, struct rp_stages *out, struct rp_err *err)
{
    struct uniting u = {.stages = stages, .n = n, .arena = arena, .out = out, .err = err};

    *out = (struct rp_stages){.n = n, .sides = sides};
    enum rp_code code =
        n ? unite(&u) : rp_err_set(err, RP_USAGE, "there are no programs to combine");
    rp_map_release(&u.by_name);
    rp_map_release(&u.by_ends);
    rp_vec_release(&u.homes);
    rp_vec_release(&u.nodes);
    rp_vec_release(&u.edges);
    return code;
}

void rp_stages_release(struct rp_stages *stages)
{
    rp_program_free(stages->p);
    stages->p = NULL;
}
