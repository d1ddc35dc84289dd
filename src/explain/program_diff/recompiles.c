/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains recompiles. A lazy-tensor dump has a graph for every synchronisation, a folder of XLA
 * dumps a module for every compilation. A graph that is identical to an earlier one came from the
 * cache; any other had to be compiled, and is compared with the earlier one that has most
 * operations in common, so that dumps in which training and evaluation alternate are handled.
 */
#include "explain/program_diff/program_diff.h"

#include "base/order.h"

enum { MOST_CANDIDATES = 32 }; /* earlier graphs that are considered, newest first */

/* ---- similarity ---- */

RP_ORDER(by_value, uint64_t, RP_COMPARE(*a, *b))

static uint64_t *sorted_hashes(struct rp_program_diff_side side, bool opcode_only,
                               struct rp_arena *scratch, size_t *n)
{
    const struct rp_match_side *s = side.prepared;
    uint32_t first = 0, count = s->p->nops;

    if (side.computation != RP_NONE) {
        first = s->p->computations.at[side.computation].first;
        count = s->p->computations.at[side.computation].n;
    }
    uint64_t *out = RP_ARENA_NEW(scratch, uint64_t, (size_t)count + 1);
    *n = out ? count : 0;
    for (size_t i = 0; i < *n; i++)
        out[i] = opcode_only ? s->hashes.opcode[first + i] : s->hashes.local[first + i];
    rp_sort(out, *n, sizeof *out, by_value);
    return out;
}

static size_t common_hashes(struct rp_program_diff_side a, struct rp_program_diff_side b,
                            bool opcode_only, struct rp_arena *scratch)
{
    size_t n, m, common = 0;
    uint64_t *x = sorted_hashes(a, opcode_only, scratch, &n);
    uint64_t *y = sorted_hashes(b, opcode_only, scratch, &m);

    for (size_t i = 0, k = 0; i < n && k < m;) {
        common += x[i] == y[k];
        if (x[i] == y[k]) {
            i++;
            k++;
        } else if (x[i] < y[k]) {
            i++;
        } else {
            k++;
        }
    }
    return common * 1000000 / (n + m + 1);
}

/* Similarity: the fraction of operations in common, by opcode and by local hash. */
static size_t side_similarity(struct rp_program_diff_side a, struct rp_program_diff_side b,
                              struct rp_arena *scratch)
{
    return common_hashes(a, b, true, scratch) + common_hashes(a, b, false, scratch);
}

/* ---- graphs ---- */

struct recompile_ctx {
    const struct rp_recompile_graph *graphs;
    struct rp_arena *arena;
    struct rp_recompiles *out;
    struct rp_err *err;
    RP_VEC(size_t) fresh; /* fresh: graphs that were compiled; their rows begin at first_row */
    size_t first_row;
};

static size_t most_similar(const struct recompile_ctx *t, size_t graph)
{
    size_t best = t->fresh.n - 1, most = 0;

    for (size_t k = t->fresh.n; k-- > 0 && t->fresh.n - k <= MOST_CANDIDATES;) {
        struct rp_arena scratch = RP_ARENA_INIT;
        size_t like =
            side_similarity(t->graphs[t->fresh.at[k]].side, t->graphs[graph].side, &scratch);

        rp_arena_release(&scratch);
        if (like > most) {
            most = like;
            best = k;
        }
    }
    return t->fresh.at[best];
}

static enum rp_code explain_recompile(struct recompile_ctx *t, size_t graph,
                                      struct rp_program_diff_step *row)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    size_t before = most_similar(t, graph);
    struct rp_program_diff diff;

    RP_TRY(rp_program_diff_sides(t->graphs[before].side, t->graphs[graph].side, &scratch, &diff,
                                 t->err));
    const struct rp_program_diff_change *change = rp_program_diff_main_change(&diff);
    row->against = t->graphs[before].number;
    row->cause = diff.same ? "order" : rp_arena_text(t->arena, diff.cause);
    row->what = change ? rp_program_diff_change_words(change, t->arena)
                       : "the same operations, parameters in a different order";
    row->where = rp_arena_text(t->arena, change ? change->where : "");
    row->place = rp_arena_text(t->arena, change ? change->place : "");
    row->changes = diff.changed - diff.follows + diff.added + diff.removed;
    row->text =
        rp_arena_textf(t->arena, "against %lld: %s", (long long)row->against,
                       rp_program_diff_sentence(row->what, row->where, row->place, t->arena));
    return RP_OK;
}

static enum rp_code add_recompile(struct recompile_ctx *t, size_t graph)
{
    struct rp_program_diff_step row = {.graph = t->graphs[graph].number,
                                       .name = rp_arena_text(t->arena, t->graphs[graph].name),
                                       .runs = 1,
                                       .cause = "first",
                                       .against = RP_ABSENT_I64,
                                       .what = "",
                                       .where = "",
                                       .place = "",
                                       .text = ""};

    row.label = rp_arena_textf(t->arena, "%lld%s%s", (long long)row.graph,
                               *t->graphs[graph].name ? " " : "", t->graphs[graph].name);
    if (t->fresh.n)
        RP_TRY(explain_recompile(t, graph, &row));
    RP_TRY(rp_arena_check(t->arena, "explaining steps", t->err));
    RP_TRY(rp_vec_push(&t->fresh, graph, t->err));
    return rp_vec_push(&t->out->rows, row, t->err);
}

enum rp_code rp_recompiles_explain(const struct rp_recompile_graph *graphs, size_t n,
                                   struct rp_arena *arena, struct rp_recompiles *out,
                                   struct rp_err *err)
{
    struct recompile_ctx t = {
        .graphs = graphs, .arena = arena, .out = out, .err = err, .first_row = out->rows.n};
    struct rp_map seen = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < n; i++) {
        uint64_t key = rp_hash_join(rp_program_diff_side_hash(graphs[i].side),
                                    rp_program_diff_sharding_hash(graphs[i].side));
        uint32_t known, fresh = (uint32_t)t.fresh.n;

        code = rp_map_intern(&seen, key, fresh, &known, err);
        if (code == RP_OK && known != fresh)
            out->rows.at[t.first_row + known].runs++;
        else if (code == RP_OK)
            code = add_recompile(&t, i);
    }
    rp_map_release(&seen);
    rp_vec_release(&t.fresh);
    return code;
}
