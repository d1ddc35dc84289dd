/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps thunks to instructions. The metadata of a dump names the instruction of each thunk. Without
 * it, the name of the kernel is that of an instruction in which characters other than letters and
 * digits are replaced by '_'; equal fusions share the kernel of the first of them, so of several
 * thunks with one kernel only the first is certain. CPU dumps have no thunks: every instruction
 * that needs code counts as one.
 */
#include "program/opcodes.h"
#include "xref/xref.h"

#include "program/structure.h"

#include <ctype.h>

const char *const rp_xref_basis_names[] = {"thunk metadata", "kernel name", "thunk around it",
                                           "program", "unknown"};

/* "gemm_fusion_dot.3" has the hash of "gemm_fusion_dot_3". */
static uint64_t kernel_key(const char *name)
{
    uint64_t hash = 7;

    for (; *name && *name != '{'; name++)
        hash = rp_hash_join(hash, (uint64_t)(isalnum((unsigned char)*name) ? *name : '_'));
    return hash;
}

/* Whether the runtime executes an instruction. */
static bool needs_code(const struct rp_program *p, uint32_t op)
{
    switch (p->code.at[op]) {
    case RP_OP_PARAMETER:
    case RP_OP_CONSTANT:
    case RP_OP_TUPLE:
    case RP_OP_GET_TUPLE_ELEMENT:
    case RP_OP_BITCAST:
    case RP_OP_AFTER_ALL:
    case RP_OP_OPT_BARRIER:
    case RP_OP_ADD_DEPENDENCY:
    case RP_OP_PARTITION_ID:
    case RP_OP_REPLICA_ID:
        return false;
    default:
        return true;
    }
}

/* ------------------------------------------------------------------ programs without thunks */

struct program_walk {
    const struct rp_xref *x;
    struct rp_arena *arena;
    RP_VEC(struct rp_xref_kernel) rows;
    bool *visited; /* computations */
    struct rp_err *err;
};

static bool runs_inside(uint16_t code)
{
    return code == RP_OP_WHILE || code == RP_OP_CALL || code == RP_OP_CONDITIONAL ||
           code == RP_OP_ASYNC_START;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static enum rp_code walk_computation(struct program_walk *w, uint32_t computation, uint32_t parent,
                                     uint32_t depth, int64_t runs)
{
    const struct rp_program *p = w->x->program;
    const struct rp_computation *c = &p->computations.at[computation];

    if (w->visited[computation])
        return RP_OK;
    w->visited[computation] = true;
    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        struct rp_ids called = rp_op_called(p, op);
        uint32_t row = (uint32_t)w->rows.n;
        struct rp_xref_kernel kernel = {.op = op, .basis = RP_XREF_PROGRAM, .runs = runs};

        if (!needs_code(p, op))
            continue;
        kernel.thunk = (struct rp_thunk){.id = (int64_t)row,
                                         .parent = parent,
                                         .depth = depth,
                                         .kind = rp_op_opcode_name(p, op),
                                         .kernel = "",
                                         .instruction = rp_program_text(p, p->op_name.at[op])};
        RP_TRY(rp_vec_push(&w->rows, kernel, w->err));
        if (!runs_inside(p->code.at[op]) || depth >= 60)
            continue;
        for (uint32_t i = 0; i < called.n; i++)
            RP_TRY(walk_computation(
                w, called.at[i], row, depth + 1,
                p->code.at[op] == RP_OP_WHILE ? times(runs, rp_op_trip_count(p, op)) : runs));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ thunks */

static void resolve_thunk(const struct rp_xref *x, const struct rp_map *kernels,
                          struct rp_xref_kernel *row)
{
    uint32_t op = RP_NONE;

    row->basis = RP_XREF_UNKNOWN;
    if (*row->thunk.instruction) {
        op = rp_xref_find(x, row->thunk.instruction);
        row->basis = RP_XREF_METADATA;
    } else if (*row->thunk.kernel) {
        op = rp_map_get(kernels, kernel_key(row->thunk.kernel));
        op = op == RP_MAP_NONE ? RP_NONE : op;
        row->basis = op == RP_NONE ? RP_XREF_UNKNOWN : RP_XREF_NAME;
        if (op != RP_NONE)
            row->thunk.instruction = rp_program_text(x->program, x->program->op_name.at[op]);
    }
    row->op = op;
}

enum rp_code rp_xref_kernels(const struct rp_xref *x, const struct rp_thunks *thunks,
                             struct rp_arena *arena, struct rp_xref_kernels *out,
                             struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map kernels = {0};

    *out = (struct rp_xref_kernels){0};
    if (!thunks->n) {
        struct program_walk w = {.x = x, .arena = arena, .err = err};

        if (!x->program || x->program->entry == RP_NONE)
            return RP_OK;
        w.visited = RP_ARENA_NEW(arena, bool, x->program->computations.n + 1);
        RP_TRY(rp_err_need(w.visited, err, "listing kernels"));
        enum rp_code code = walk_computation(&w, x->program->entry, RP_NONE, 0, 1);
        if (code == RP_OK)
            code = rp_arena_adopt_column(arena, w.rows.at, w.rows.cap, sizeof *w.rows.at, err);
        if (code != RP_OK) {
            rp_vec_release(&w.rows);
            return code;
        }
        out->at = w.rows.at;
        out->n = w.rows.n;
        return RP_OK;
    }
    out->at = RP_ARENA_NEW(arena, struct rp_xref_kernel, thunks->n);
    RP_TRY(rp_err_need(out->at, err, "listing kernels"));
    const struct rp_program *p = x->program;
    uint32_t first;
    for (uint32_t i = 0; p && i < p->nops; i++)
        RP_TRY(rp_map_intern(&kernels, kernel_key(rp_program_text(p, p->op_name.at[i])), i, &first,
                             err));
    for (size_t i = 0; i < thunks->n; i++) {
        out->at[i] = (struct rp_xref_kernel){.thunk = thunks->at[i], .runs = 1};
        resolve_thunk(x, &kernels, &out->at[i]);
    }
    out->n = thunks->n;

    /* From outside in: finds how often loops run a thunk, and to what it belongs if that is not
       recorded. */
    for (size_t i = 0; i < out->n; i++) {
        uint32_t parent = out->at[i].thunk.parent;
        const struct rp_xref_kernel *around = parent == RP_NONE ? NULL : &out->at[parent];

        out->at[i].runs = around ? around->runs : 1;
        if (!p || !around || around->op == RP_NONE)
            continue;
        if (p->code.at[around->op] == RP_OP_WHILE) {
            out->at[i].runs = times(around->runs, rp_op_trip_count(p, around->op));
        } else if (out->at[i].op == RP_NONE) {
            out->at[i].op = around->op;
            out->at[i].basis = RP_XREF_AROUND;
        }
    }
    return RP_OK;
}
