/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the places of changes. The first choice is the scope path that the framework recorded; then
 * the number of the repeat that the operation, or the caller of its computation, belongs to. An
 * added operation has no repeats of its own kind and takes the place of its neighbours.
 */
#include "explain/program_diff/place.h"

#include "base/decides.h"
#include "explain/program_diff/words.h"
#include "program/opcodes.h"

#include <string.h>

enum {
    MOST_SCOPE = 400,
    MOST_NEAR = 24,
    FEWEST_REPEATS = 3 /* FEWEST_REPEATS: two may be similar by chance */
};

static const struct rp_match_side *side_of(const struct rp_place_finder *t, unsigned side)
{
    return side ? &t->match->right : &t->match->left;
}

enum rp_code rp_place_finder_init(struct rp_place_finder *t, const struct rp_match *match,
                                  struct rp_arena *arena, struct rp_err *err)
{
    *t = (struct rp_place_finder){.match = match, .arena = arena, .err = err};
    for (unsigned side = 0; side < 2; side++) {
        const struct rp_program *p = side_of(t, side)->p;

        t->repeats[side] = RP_ARENA_NEW(arena, struct rp_repeat *, p->computations.n + 1);
        t->caller[side] = RP_ARENA_NEW(arena, uint32_t, p->computations.n + 1);
        RP_TRY(rp_err_need(t->repeats[side] && t->caller[side], err, "comparing programs"));
        for (size_t c = 0; c < p->computations.n; c++)
            t->caller[side][c] = RP_NONE;
        for (uint32_t op = 0; op < p->nops; op++) {
            struct rp_ids called = rp_op_called(p, op);

            for (uint32_t i = 0; i < called.n; i++)
                t->caller[side][called.at[i]] = op;
        }
    }
    return RP_OK;
}

/* ---- repeats ---- */

static enum rp_code repeat_of(struct rp_place_finder *t, unsigned side, uint32_t op,
                              struct rp_repeat *out)
{
    const struct rp_match_side *s = side_of(t, side);
    uint32_t c = s->p->computation.at[op];

    if (!t->repeats[side][c])
        RP_TRY(rp_repeats_find(s, c, t->arena, &t->repeats[side][c], t->err));
    *out = t->repeats[side][c][op - s->p->computations.at[c].first];
    return RP_OK;
}

/* Finds the repeat of the operation, or of the caller of its computation, and so on; calls are
   acyclic. */
static enum rp_code repeat_around(struct rp_place_finder *t, unsigned side, uint32_t op,
                                  struct rp_repeat *out, int64_t *loop)
{
    const struct rp_program *p = side_of(t, side)->p;

    for (uint32_t at = op; at != RP_NONE; at = t->caller[side][p->computation.at[at]]) {
        struct rp_repeat repeat;

        if (at != op && *loop < 1 << 30)
            *loop *= rp_op_trip_count(p, at) & INT32_MAX;
        RP_TRY(repeat_of(t, side, at, &repeat));
        if (out->count <= 1)
            *out = repeat;
    }
    return RP_OK;
}

/* ---- names ---- */

static enum rp_code scope_of(const struct rp_place_finder *t, unsigned side, uint32_t op,
                             const char **out)
{
    const struct rp_program *p = side_of(t, side)->p;
    const char *name = rp_program_text(p, p->metas.at[p->meta.at[op]].op_name);
    char words[MOST_SCOPE];

    *out = "";
    if (!*name || !rp_scope_words(name, words, sizeof words))
        return RP_OK;
    *out = rp_arena_text(t->arena, words);
    return rp_arena_check(t->arena, "comparing programs", t->err);
}

static bool has_line(const struct rp_program *p, uint32_t op, struct rp_op_place *out)
{
    struct rp_source_line at;

    if (!rp_op_source(p, op, &at))
        return false;
    const char *slash = strrchr(at.file, '/');
    out->file = slash ? slash + 1 : at.file;
    out->line = at.line;
    return true;
}

#define MOST_READERS 4
RP_LIMIT(MOST_READERS, "users", "if there are more, as for a constant, no user counts as near");

/* Lists operations around one, nearest first: users, then operands; at most MOST_NEAR of them. */
static size_t nearby_ops(const struct rp_match_side *s, uint32_t op, uint32_t *out)
{
    size_t n = 1;

    out[0] = op;
    for (size_t i = 0; i < n && n < MOST_NEAR; i++) {
        const struct rp_program *p = s->p;
        struct rp_ids operands = rp_op_operands(p, out[i]);
        uint32_t from = s->user_begin[out[i]], to = s->user_begin[out[i] + 1];

        for (uint32_t k = from; k < to && to - from <= MOST_READERS && n < MOST_NEAR; k++)
            out[n++] = s->users[k];
        for (uint32_t k = 0; k < operands.n && p->code.at[out[i]] != RP_OP_TUPLE && n < MOST_NEAR;
             k++)
            out[n++] = operands.at[k]; /* the operands of a tuple are unrelated */
    }
    return n;
}

/* Takes the place of a neighbour that both programs have, for a new or unusual operation. */
static enum rp_code borrow_place(struct rp_place_finder *t, unsigned side, uint32_t op,
                                 struct rp_op_place *out)
{
    const struct rp_match_side *s = side_of(t, side);
    uint32_t near[MOST_NEAR];
    size_t n = nearby_ops(s, op, near);
    int64_t loop = 1;

    for (size_t i = 1; i < n && !*out->scope; i++)
        RP_TRY(scope_of(t, side, near[i], &out->scope));
    for (size_t i = 1; i < n && !*out->file; i++)
        has_line(s->p, near[i], out);
    for (size_t i = 1; i < n && !*out->scope && out->repeat.count <= 1; i++)
        if (s->match[near[i]] != RP_NONE)
            RP_TRY(repeat_around(t, !side, s->match[near[i]], &out->repeat, &loop));
    return RP_OK;
}

/* If the operation's own count is not the number of layers (two norms a layer, or other first and
   last layers), uses the index and count of the nearest operation that has it. */
static enum rp_code use_layer_count(struct rp_place_finder *t, unsigned side, uint32_t op,
                                    struct rp_repeat *out)
{
    const struct rp_match_side *s = side_of(t, side);
    uint32_t near[MOST_NEAR];
    size_t n = nearby_ops(s, op, near);

    for (size_t i = 1; i < n && out->off && out->count > 1; i++) {
        struct rp_repeat repeat;

        RP_TRY(repeat_of(t, side, near[i], &repeat));
        if (!repeat.off) { /* the kind stays, because it identifies the change */
            out->index = repeat.index;
            out->count = repeat.count;
            out->off = 0;
        }
    }
    return RP_OK;
}

enum rp_code rp_place_find(struct rp_place_finder *t, uint32_t left, uint32_t right,
                           struct rp_op_place *out)
{
    uint32_t op[2] = {left, right};
    struct rp_repeat none = {.count = 1, .off = UINT32_MAX}, repeat[2] = {none, none};
    int64_t loop[2] = {1, 1};
    unsigned main = right != RP_NONE;

    *out = (struct rp_op_place){.scope = "", .file = ""};
    for (unsigned side = 2; side-- > 0;) { /* the new program first */
        if (op[side] == RP_NONE)
            continue;
        if (!*out->scope)
            RP_TRY(scope_of(t, side, op[side], &out->scope));
        if (!*out->file)
            has_line(side_of(t, side)->p, op[side], out);
        RP_TRY(repeat_around(t, side, op[side], &repeat[side], &loop[side]));
    }
    out->repeat = repeat[repeat[1].off < repeat[0].off];
    if (out->repeat.off && out->repeat.count > 1) {
        unsigned side = repeat[1].off < repeat[0].off;

        RP_TRY(use_layer_count(t, side, op[side], &out->repeat));
    }
    out->loop = loop[main];
    if (out->repeat.count <= 1 || !*out->scope || !*out->file)
        return borrow_place(t, main, op[main], out);
    return RP_OK;
}

/* ---- descriptions ---- */

static const char *repeat_words(const struct rp_op_place *places, size_t n, struct rp_arena *arena)
{
    int64_t *values = RP_ARENA_NEW(arena, int64_t, n + 1);
    uint32_t count = places[0].repeat.count;
    size_t distinct = 1;
    char ranges[160];

    if (!values || count < FEWEST_REPEATS)
        return "";
    for (size_t i = 0; i < n; i++) {
        values[i] = places[i].repeat.index;
        if (!places[i].repeat.off) /* the count is the number of layers */
            count = places[i].repeat.count;
    }
    rp_ranges_print(values, n, ranges, sizeof ranges);
    for (size_t i = 1; i < n; i++)
        distinct += values[i] != values[i - 1];
    if (distinct == count)
        return rp_arena_textf(arena, "all %u repeats", count);
    return rp_arena_textf(arena, "repeat%s %s of %u", distinct > 1 ? "s" : "", ranges, count);
}

static const char *scope_words(const struct rp_op_place *places, size_t n, struct rp_arena *arena)
{
    const char **scopes = RP_ARENA_NEW(arena, const char *, n);

    if (!scopes)
        return "";
    for (size_t i = 0; i < n; i++)
        scopes[i] = places[i].scope;
    return rp_scope_join(scopes, n, arena);
}

const char *rp_places_words(const struct rp_op_place *places, size_t n, struct rp_arena *arena)
{
    if (!n)
        return "";
    const char *scope = *places[0].scope ? scope_words(places, n, arena) : "";
    const char *repeat = strpbrk(scope, "0123456789") ? "" : repeat_words(places, n, arena);
    if (places[0].loop > 1 && (*scope || *repeat))
        return rp_arena_textf(arena, "%s%s%s, in a loop of %lld", scope,
                              *scope && *repeat ? ", " : "", repeat, (long long)places[0].loop);
    if (places[0].loop > 1)
        return rp_arena_textf(arena, "in a loop of %lld", (long long)places[0].loop);
    return rp_arena_textf(arena, "%s%s%s", scope, *scope && *repeat ? ", " : "", repeat);
}
