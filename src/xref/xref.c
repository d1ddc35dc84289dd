/* SPDX-License-Identifier: Apache-2.0 */
/* Finds instructions by name, and where they come from. Finding a place visits only a few
   neighbours. */
#include "xref/xref.h"

#include <string.h>

#define HOPS 4

static uint64_t name_key(const char *name, size_t n)
{
    return rp_hash_bytes(name, n);
}

static enum rp_code index_users(struct rp_xref *x, struct rp_err *err)
{
    const struct rp_program *p = x->program;

    x->user_begin = RP_ARENA_NEW(&x->arena, uint32_t, (size_t)p->nops + 2);
    x->users = RP_ARENA_NEW(&x->arena, uint32_t, p->operands.n + 1);
    x->caller = RP_ARENA_NEW(&x->arena, uint32_t, p->computations.n + 1);
    uint32_t *at = RP_ARENA_NEW(&x->arena, uint32_t, (size_t)p->nops + 1);
    RP_TRY(rp_err_need(x->user_begin && x->users && x->caller && at, err, "indexing instructions"));
    memset(x->caller, 0xff, (p->computations.n + 1) * sizeof *x->caller);
    for (size_t i = 0; i < p->operands.n; i++)
        x->user_begin[p->operands.at[i] + 1]++;
    for (uint32_t i = 0; i < p->nops; i++) {
        x->user_begin[i + 1] += x->user_begin[i];
        at[i] = x->user_begin[i];
    }
    for (uint32_t op = 0; op < p->nops; op++) {
        struct rp_ids in = rp_op_operands(p, op);

        for (uint32_t k = 0; k < in.n; k++)
            x->users[at[in.at[k]]++] = op;
        in = rp_op_called(p, op);
        for (uint32_t k = 0; k < in.n; k++)
            if (x->caller[in.at[k]] == RP_NONE)
                x->caller[in.at[k]] = op;
    }
    return RP_OK;
}

enum rp_code rp_xref_init(struct rp_xref *x, const struct rp_program *program, struct rp_err *err)
{
    uint32_t first;

    *x = (struct rp_xref){.program = program};
    for (uint32_t i = 0; program && i < program->nops; i++) {
        const char *name = rp_program_text(program, program->op_name.at[i]);

        RP_TRY(rp_map_intern(&x->names, name_key(name, strlen(name)), i, &first, err));
    }
    return program ? index_users(x, err) : RP_OK;
}

void rp_xref_release(struct rp_xref *x)
{
    rp_map_release(&x->names);
    rp_arena_release(&x->arena);
}

uint32_t rp_xref_find(const struct rp_xref *x, const char *name)
{
    if (!x->program)
        return RP_NONE;
    uint32_t op = rp_map_get(&x->names, name_key(name, strcspn(name, "{")));
    return op == RP_MAP_NONE ? RP_NONE : op;
}

const char *rp_xref_scope(const struct rp_xref *x, uint32_t op)
{
    const struct rp_program *p = x->program;

    return op == RP_NONE ? "" : rp_program_text(p, p->metas.at[p->meta.at[op]].op_name);
}

const char *rp_xref_operator(const struct rp_xref *x, uint32_t op)
{
    const char *scope = rp_xref_scope(x, op), *slash = strrchr(scope, '/');

    if (slash && slash[1])
        return slash + 1;
    return *scope ? scope : op == RP_NONE ? NULL : rp_op_opcode_name(x->program, op);
}

const char *rp_xref_own_line(const struct rp_xref *x, uint32_t op, struct rp_arena *arena)
{
    struct rp_source_line line;
    const char *inner;

    if (op == RP_NONE || !rp_op_source(x->program, op, &line))
        return NULL;
    const char *slash = strrchr(line.file, '/');
    /* the function of "step.<locals>.loss" is its last part */
    while ((inner = strstr(line.function, "<locals>.")))
        line.function = inner + 9;
    return rp_arena_textf(arena, "%s:%d%s%s", slash ? slash + 1 : line.file, line.line,
                          *line.function ? " " : "", line.function);
}

static bool has_line(const struct rp_xref *x, uint32_t op)
{
    struct rp_source_line line;

    return rp_op_source(x->program, op, &line);
}

/* Returns how much an operation tells about the purpose of a fusion. */
static int op_weight(const struct rp_program *p, uint32_t op)
{
    switch (rp_op_info[p->code.at[op]].class_) {
    case RP_CLASS_DOT:
    case RP_CLASS_CONV:
        return 5;
    case RP_CLASS_REDUCE:
    case RP_CLASS_COLLECTIVE:
    case RP_CLASS_LINALG:
        return 4;
    case RP_CLASS_ELEMENT:
    case RP_CLASS_RANDOM:
        return 3;
    case RP_CLASS_MOVE:
        return 2;
    default:
        return 1;
    }
}

/* Returns the operation inside the called computations that has a line: the root, otherwise the
   heaviest. */
static uint32_t inner_op(const struct rp_xref *x, uint32_t op, int depth, const char **basis)
{
    const struct rp_program *p = x->program;
    struct rp_ids called = rp_op_called(p, op);
    uint32_t best = RP_NONE;
    int weight = 0;

    for (uint32_t i = 0; i < called.n; i++) {
        const struct rp_computation *c = &p->computations.at[called.at[i]];

        if (c->n && c->root < p->nops && has_line(x, c->root)) {
            *basis = "fusion root";
            return c->root;
        }
        for (uint32_t k = c->first; k < c->first + c->n; k++)
            if (op_weight(p, k) > weight && has_line(x, k)) {
                weight = op_weight(p, k);
                best = k;
            }
    }
    *basis = "inside fusion";
    for (uint32_t i = 0; best == RP_NONE && depth > 0 && i < called.n; i++) {
        const struct rp_computation *c = &p->computations.at[called.at[i]];

        for (uint32_t k = c->first; best == RP_NONE && k < c->first + c->n; k++)
            if (rp_op_called(p, k).n)
                best = inner_op(x, k, depth - 1, basis);
    }
    return best;
}

/* Copies and conversions that the compiler inserted belong to the operation whose data they
   move. */
static uint32_t outer_op(const struct rp_xref *x, uint32_t op, bool up, int hops)
{
    const char *basis;

    for (; hops > 0 && op != RP_NONE; hops--) {
        struct rp_ids in = rp_op_operands(x->program, op);

        if (up)
            op = in.n ? in.at[0] : RP_NONE;
        else
            op = x->user_begin[op] < x->user_begin[op + 1] ? x->users[x->user_begin[op]] : RP_NONE;
        if (op == RP_NONE || has_line(x, op))
            return op;
        uint32_t inner = inner_op(x, op, 1, &basis);
        if (inner != RP_NONE)
            return inner;
    }
    return RP_NONE;
}

/* Returns the loop or call that executes an operation, if that has a line. */
static uint32_t around_op(const struct rp_xref *x, uint32_t op)
{
    for (int hops = HOPS; hops > 0; hops--) {
        op = x->caller[x->program->computation.at[op]];
        if (op == RP_NONE || has_line(x, op))
            return op;
    }
    return RP_NONE;
}

void rp_xref_place(const struct rp_xref *x, uint32_t op, struct rp_arena *arena,
                   struct rp_xref_place *out)
{
    uint32_t from = op;

    *out = (struct rp_xref_place){.operator_ = "", .scope = ""};
    if (op == RP_NONE || !x->program)
        return;
    out->basis = "instruction";
    if (!has_line(x, op))
        from = inner_op(x, op, 2, &out->basis);
    bool inner = from != RP_NONE;
    if (!inner) {
        from = outer_op(x, op, true, HOPS);
        out->basis = "operand";
    }
    if (from == RP_NONE) {
        from = outer_op(x, op, false, HOPS);
        out->basis = "user";
    }
    if (from == RP_NONE) {
        from = around_op(x, op);
        out->basis = "loop";
    }
    if (from == RP_NONE)
        out->basis = NULL;
    else
        out->line = rp_xref_own_line(x, from, arena);
    if (!*rp_xref_scope(x, op) && inner)
        op = from;
    out->operator_ = rp_arena_text(arena, rp_xref_operator(x, op));
    out->scope = rp_arena_text(arena, rp_xref_scope(x, op));
}
