/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs are matched computation by computation. An instruction without a partner is looked
 * for in the other computations: one of the same kind, shape and attributes has moved there (into a
 * fusion, out of a call). Takes the time of the match.
 */
#include "dump/change.h"
#include "program/opcodes.h"

#include "base/hash.h"
#include "base/order.h"

#include <string.h>

#define WORDS 4 /* opcodes of a summary */

enum rp_code rp_dump_version_init(struct rp_dump_version *v, const struct rp_program *program,
                                  struct rp_err *err)
{
    *v = (struct rp_dump_version){.program = program};
    RP_TRY(rp_match_prepare(program, &v->arena, &v->side, err));
    return rp_program_count(program, &v->arena, &v->costs, err);
}

void rp_dump_version_release(struct rp_dump_version *v)
{
    rp_arena_release(&v->arena);
}

/* ------------------------------------------------------------------ what has no partner */

struct op_count {
    const char *name;
    int64_t count, size;
};

struct compare_ctx {
    const struct rp_dump_version *v[2];
    struct rp_match match;
    struct rp_arena scratch;
    struct rp_map rest;    /* from a local hash to an index in left */
    RP_VEC(uint32_t) left; /* by hash: the number of unmatched operations of the left program */
    struct rp_map opcodes; /* from the hash of a name to an index in net */
    RP_VEC(struct op_count) net;
    struct rp_dump_change *out;
    struct rp_err *err;
};

static bool is_counted(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] != RP_OP_PARAMETER || p->computation.at[op] == p->entry;
}

static const struct rp_match_side *side_of(const struct compare_ctx *c, int right)
{
    return right ? &c->match.right : &c->match.left;
}

/* Marks computations that were not compared because the other program has an equal one. */
static enum rp_code find_equal(const struct compare_ctx *c, bool *equal[2])
{
    RP_SCOPED(rp_map_release) struct rp_map hashes = {0};

    for (int right = 0; right < 2; right++) {
        const struct rp_match_side *s = side_of(c, right);
        size_t n = s->p->computations.n;

        for (uint32_t i = 0; i < n; i++) {
            const struct rp_computation *computation = &s->p->computations.at[i];
            uint64_t key = s->hashes.computation[i];
            uint32_t had = rp_map_get(&hashes, key);

            if (computation->n && s->visited[computation->first])
                continue;
            if (!right)
                RP_TRY(rp_map_put(&hashes, key, had == RP_MAP_NONE ? 1 : had + 1, c->err));
            else if (had != RP_MAP_NONE && had > 0) {
                equal[1][i] = true;
                RP_TRY(rp_map_put(&hashes, key, had - 1, c->err));
            }
        }
    }
    /* Whatever remains in the map has no equal on the right. */
    for (uint32_t i = 0; i < c->match.left.p->computations.n; i++) {
        const struct rp_computation *computation = &c->match.left.p->computations.at[i];
        uint64_t key = c->match.left.hashes.computation[i];
        uint32_t rest = rp_map_get(&hashes, key);

        if (computation->n && c->match.left.visited[computation->first])
            continue;
        if (rest == RP_MAP_NONE || rest == 0)
            equal[0][i] = true;
        else
            RP_TRY(rp_map_put(&hashes, key, rest - 1, c->err));
    }
    return RP_OK;
}

/* A partner that replaced another kind of instruction does not count, because that instruction may
   have moved. */
static bool has_partner(const struct compare_ctx *c, int right, bool *const equal[2], uint32_t op)
{
    const struct rp_match_side *s = side_of(c, right), *other = side_of(c, !right);

    if (!s->visited[op])
        return equal[right][s->p->computation.at[op]];
    return s->match[op] != RP_NONE && s->hashes.opcode[op] == other->hashes.opcode[s->match[op]];
}

static enum rp_code add_net(struct compare_ctx *c, const struct rp_program *p, uint32_t op,
                            int64_t by)
{
    const char *name = rp_op_opcode_name(p, op);
    struct op_count fresh = {.name = name};
    uint32_t i;

    RP_TRY(rp_map_intern(&c->opcodes, rp_hash_bytes(name, strlen(name)), (uint32_t)c->net.n, &i,
                         c->err));
    if (i == c->net.n)
        RP_TRY(rp_vec_push(&c->net, fresh, c->err));
    c->net.at[i].count += by;
    return RP_OK;
}

static enum rp_code collect_left(struct compare_ctx *c, bool *const equal[2])
{
    const struct rp_match_side *s = &c->match.left;
    uint32_t i;

    for (uint32_t op = 0; op < s->p->nops; op++) {
        if (!is_counted(s->p, op))
            continue;
        RP_TRY(add_net(c, s->p, op, -1));
        if (has_partner(c, 0, equal, op))
            continue;
        RP_TRY(rp_map_intern(&c->rest, s->hashes.local[op], (uint32_t)c->left.n, &i, c->err));
        if (i == c->left.n)
            RP_TRY(rp_vec_push(&c->left, 0, c->err));
        c->left.at[i]++;
        c->out->removed++;
    }
    return RP_OK;
}

static enum rp_code collect_right(struct compare_ctx *c, bool *const equal[2])
{
    const struct rp_match_side *l = &c->match.left, *r = &c->match.right;

    for (uint32_t op = 0; op < r->p->nops; op++) {
        if (!is_counted(r->p, op))
            continue;
        RP_TRY(add_net(c, r->p, op, 1));
        if (has_partner(c, 1, equal, op)) {
            c->out->changed +=
                r->visited[op] && l->hashes.local[r->match[op]] != r->hashes.local[op];
            continue;
        }
        uint32_t i = rp_map_get(&c->rest, r->hashes.local[op]);
        if (i != RP_MAP_NONE && c->left.at[i]) {
            c->left.at[i]--;
            c->out->moved++;
            c->out->removed--;
        } else {
            c->out->added++;
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ in words */

RP_ORDER(by_size, struct op_count, RP_DOWN(size), RP_DOWN(count), strcmp(a->name, b->name))

static const char *change_words(struct compare_ctx *c, struct rp_arena *arena)
{
    const struct rp_dump_change *out = c->out;
    const char *text = "";
    size_t shown = 0;

    for (size_t i = 0; i < c->net.n; i++)
        c->net.at[i].size = c->net.at[i].count < 0 ? -c->net.at[i].count : c->net.at[i].count;
    rp_sort(c->net.at, c->net.n, sizeof *c->net.at, by_size);
    for (size_t i = 0; i < c->net.n && shown < WORDS && c->net.at[i].count; i++, shown++)
        text = rp_arena_textf(arena, "%s%s%+lld %s", text, shown ? ", " : "",
                              (long long)c->net.at[i].count, c->net.at[i].name);
    if (shown == WORDS && WORDS < c->net.n && c->net.at[WORDS].count)
        text = rp_arena_textf(arena, "%s, …", text);
    if (out->moved)
        text =
            rp_arena_textf(arena, "%s%s%lld moved", text, *text ? "; " : "", (long long)out->moved);
    if (out->changed)
        text = rp_arena_textf(arena, "%s%s%lld changed", text, *text ? "; " : "",
                              (long long)out->changed);
    if (*text)
        return text;
    return out->same ? "names, metadata or order only" : "operands only";
}

static void compare_release(struct compare_ctx *c)
{
    rp_map_release(&c->rest);
    rp_map_release(&c->opcodes);
    rp_vec_release(&c->left);
    rp_vec_release(&c->net);
    rp_arena_release(&c->scratch);
}

enum rp_code rp_dump_compare(const struct rp_dump_version *left,
                             const struct rp_dump_version *right, struct rp_arena *arena,
                             struct rp_dump_change *out, struct rp_err *err)
{
    RP_SCOPED(compare_release)
    struct compare_ctx c = {.v = {left, right}, .out = out, .err = err};
    bool *equal[2];

    *out = (struct rp_dump_change){.before = left->program->nops,
                                   .after = right->program->nops,
                                   .flops = right->costs.program.flops - left->costs.program.flops,
                                   .bytes = right->costs.program.bytes - left->costs.program.bytes,
                                   .same = left->side.hashes.program == right->side.hashes.program};
    equal[0] = RP_ARENA_NEW(&c.scratch, bool, left->program->computations.n + 1);
    equal[1] = RP_ARENA_NEW(&c.scratch, bool, right->program->computations.n + 1);
    RP_TRY(rp_err_need(equal[0] && equal[1], err, "comparing programs"));
    RP_TRY(
        rp_program_match(&left->side, RP_NONE, &right->side, RP_NONE, &c.scratch, &c.match, err));
    RP_TRY(find_equal(&c, equal));
    RP_TRY(collect_left(&c, equal));
    RP_TRY(collect_right(&c, equal));
    for (size_t i = 0; i < c.net.n; i++)
        if (!strcmp(c.net.at[i].name, "fusion"))
            out->fusions = c.net.at[i].count;
    out->what = change_words(&c, arena);
    return RP_OK;
}
