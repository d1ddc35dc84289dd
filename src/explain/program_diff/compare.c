/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes differences of two matched programs for the user: what was added, removed or changed,
 * and where; the same change in many layers is one row. If an operation reads something that was
 * added, or its shape differs only because that of an operand does, this is not a change of its
 * own; such consequences are counted separately. Parameters may come in a different order.
 */
#include "explain/program_diff/program_diff.h"
#include "program/opcodes.h"

#include "base/decides.h"
#include "base/order.h"
#include "explain/program_diff/match.h"
#include "explain/program_diff/place.h"
#include "explain/program_diff/words.h"

#include <string.h>

enum { FEW_CHANGES = 4 };

enum kind { ADDED, REMOVED, OPCODE, OPERANDS, ATTRIBUTE, SHAPE, SHARDING, CONSTANT, FOLLOWS };
static const char *const kind_words[] = {"added", "removed",  "opcode",   "operands", "attribute",
                                         "shape", "sharding", "constant", "follows"};

struct change {
    enum kind kind;
    uint32_t left, right; /* operations of the first and second program; RP_NONE: not there */
    uint32_t count;
    uint32_t last; /* index in members of the newest one, which leads to the others */
};

struct member {
    struct rp_op_place place;
    uint32_t before; /* the previous member of the same change, or RP_NONE */
};

struct resized_dim { /* resized_dim: a changed dimension of a parameter */
    int64_t from, to;
};

struct diff_ctx {
    struct rp_match match;
    struct rp_place_finder placer;
    struct rp_arena *arena;
    struct rp_err *err;
    bool sharded; /* both programs state shardings */
    RP_VEC(struct change) changes;
    RP_VEC(struct member) members;
    RP_VEC(struct resized_dim) swaps;
    struct rp_map groups;
};

/* ---- one change ---- */

static uint64_t place_key(const struct rp_op_place *place)
{
    uint64_t hash = rp_hash_join(rp_hash_bytes(place->file, strlen(place->file)),
                                 (uint64_t)(uint32_t)place->line + 1);

    if (*place->scope)
        hash = rp_hash_join(hash, rp_scope_pattern(place->scope));
    if (!strpbrk(place->scope, "0123456789"))
        hash = rp_hash_join(hash, place->repeat.count > 1 ? place->repeat.kind : 1);
    return hash;
}

static uint64_t side_key(const struct rp_match_side *s, uint32_t op)
{
    if (op == RP_NONE)
        return 1;
    return rp_hash_join(s->hashes.shape[s->p->shape.at[op]], s->hashes.opcode[op]);
}

/* Changes are the same if before, after and the place within a layer are the same. */
static uint64_t group_key(const struct diff_ctx *d, enum kind kind, uint32_t left, uint32_t right,
                          const struct rp_op_place *place)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    uint64_t key = rp_hash_join(side_key(l, left) ^ (uint64_t)kind, side_key(r, right));

    if (kind == FOLLOWS)
        return 1;
    if (kind == CONSTANT || kind == ATTRIBUTE)
        key = rp_hash_join(key ^ l->hashes.local[left], r->hashes.local[right]);
    return rp_hash_join(key, place_key(place));
}

static enum rp_code note_change(struct diff_ctx *d, enum kind kind, uint32_t left, uint32_t right)
{
    struct change c = {.kind = kind, .left = left, .right = right, .last = RP_NONE};
    struct member member = {.place = {.scope = "", .file = ""}};
    uint32_t fresh = (uint32_t)d->changes.n, known;

    if (kind != FOLLOWS)
        RP_TRY(rp_place_find(&d->placer, left, right, &member.place));
    RP_TRY(rp_map_intern(&d->groups, group_key(d, kind, left, right, &member.place), fresh, &known,
                         d->err));
    if (known == fresh)
        RP_TRY(rp_vec_push(&d->changes, c, d->err));
    member.before = d->changes.at[known].last;
    d->changes.at[known].last = (uint32_t)d->members.n;
    d->changes.at[known].count++;
    return rp_vec_push(&d->members, member, d->err);
}

/* ---- pairs ---- */

static bool shapes_differ(const struct diff_ctx *d, uint32_t a, uint32_t b)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;

    return l->hashes.shape[l->p->shape.at[a]] != r->hashes.shape[r->p->shape.at[b]];
}

/* Whether operands that are in both programs do not correspond to each other. */
static bool operands_differ(const struct diff_ctx *d, uint32_t a, uint32_t b)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    struct rp_ids x = rp_op_operands(l->p, a), y = rp_op_operands(r->p, b);

    if (x.n != y.n)
        return false; /* something was added or removed, which is a separate change */
    for (uint32_t i = 0; i < x.n; i++)
        if (l->match[x.at[i]] != RP_NONE && r->match[y.at[i]] != RP_NONE &&
            l->match[x.at[i]] != y.at[i])
            return true;
    return false;
}

/* Whether this is an input: a parameter, or in other languages an operation without operands. */
static bool is_input(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_PARAMETER ||
           (p->code.at[op] == RP_OP_FOREIGN && !rp_op_operands(p, op).n);
}

/* Whether every dimension that differs also differs in this way in some parameter. */
static bool only_resized_dims(const struct diff_ctx *d, uint32_t a, uint32_t b)
{
    const struct rp_program *l = d->match.left.p, *r = d->match.right.p;
    const struct rp_op_shape *x = &l->shapes.at[l->shape.at[a]], *y = &r->shapes.at[r->shape.at[b]];
    bool known = true;

    if (x->elem == RP_ELEM_TUPLE || x->elem != y->elem || x->n != y->n || !d->swaps.n)
        return false;
    for (uint32_t i = 0; known && i < x->n; i++) {
        int64_t from = l->dims.at[x->first + i], to = r->dims.at[y->first + i];

        known = from == to;
        for (size_t k = 0; !known && k < d->swaps.n; k++)
            known = d->swaps.at[k].from == from && d->swaps.at[k].to == to;
    }
    return known;
}

/* Whether a shape differs because the shapes that it depends on do. */
static bool shape_follows(const struct diff_ctx *d, uint32_t a, uint32_t b)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    struct rp_ids x = rp_op_operands(l->p, a);
    struct rp_ids inner = rp_op_called(l->p, a), inner_too = rp_op_called(r->p, b);

    if (is_input(l->p, a)) /* in a called computation, it depends on the arguments of the call */
        return d->placer.caller[0][l->p->computation.at[a]] != RP_NONE;
    for (uint32_t i = 0; i < x.n; i++)
        if (l->match[x.at[i]] != RP_NONE && shapes_differ(d, x.at[i], l->match[x.at[i]]))
            return true;
    for (uint32_t i = 0; i < inner.n && i < inner_too.n; i++)
        if (l->hashes.computation[inner.at[i]] != r->hashes.computation[inner_too.at[i]])
            return true;
    return only_resized_dims(d, a, b);
}

static bool shardings_differ(const struct diff_ctx *d, uint32_t a, uint32_t b)
{
    const struct rp_attr *x = rp_op_attr(d->match.left.p, a, RP_ATTR_SHARDING);
    const struct rp_attr *y = rp_op_attr(d->match.right.p, b, RP_ATTR_SHARDING);

    return d->sharded && (x ? rp_attr_hash(d->match.left.p, x) : 0) !=
                             (y ? rp_attr_hash(d->match.right.p, y) : 0);
}

/* Whether the difference is a constant value: in languages other than HLO, an operation without
   operands. */
static bool is_value(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_CONSTANT ||
           (p->code.at[op] == RP_OP_FOREIGN && !rp_op_operands(p, op).n);
}

static enum rp_code compare_pair(struct diff_ctx *d, uint32_t a, uint32_t b, bool *differs)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;

    *differs = true;
    if (l->hashes.opcode[a] != r->hashes.opcode[b])
        return note_change(d, OPCODE, a, b);
    if (shapes_differ(d, a, b))
        return note_change(d, shape_follows(d, a, b) ? FOLLOWS : SHAPE, a, b);
    if (l->hashes.local[a] != r->hashes.local[b])
        return note_change(d, is_value(l->p, a) ? CONSTANT : ATTRIBUTE, a, b);
    if (operands_differ(d, a, b))
        return note_change(d, OPERANDS, a, b);
    if (shardings_differ(d, a, b))
        return note_change(d, SHARDING, a, b);
    *differs = false;
    return RP_OK;
}

#define MOST_SWAPS 16
RP_LIMIT(MOST_SWAPS, "dimensions", "changes of shapes that follow from more are listed one by one");

/* Finds changed dimensions of parameters, which explain many other shapes. */
static enum rp_code find_resized_dims(struct diff_ctx *d)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;

    for (uint32_t a = 0; a < l->p->nops && d->swaps.n < MOST_SWAPS; a++) {
        uint32_t b = l->match[a];

        if (b == RP_NONE || !is_input(l->p, a) || l->hashes.opcode[a] != r->hashes.opcode[b] ||
            !shapes_differ(d, a, b))
            continue;
        const struct rp_op_shape *x = &l->p->shapes.at[l->p->shape.at[a]];
        const struct rp_op_shape *y = &r->p->shapes.at[r->p->shape.at[b]];
        for (uint32_t i = 0; x->elem != RP_ELEM_TUPLE && x->n == y->n && i < x->n; i++) {
            struct resized_dim swap = {l->p->dims.at[x->first + i], r->p->dims.at[y->first + i]};

            if (swap.from != swap.to)
                RP_TRY(rp_vec_push(&d->swaps, swap, d->err));
        }
    }
    return RP_OK;
}

static enum rp_code find_one_sided(struct diff_ctx *d, const struct rp_match_side *s,
                                   enum kind kind, int64_t *count)
{
    for (uint32_t op = 0; op < s->p->nops; op++) {
        if (!s->visited[op] || s->match[op] != RP_NONE ||
            s->p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT)
            continue;
        ++*count;
        RP_TRY(kind == ADDED ? note_change(d, kind, RP_NONE, op)
                             : note_change(d, kind, op, RP_NONE));
    }
    return RP_OK;
}

static enum rp_code find_changes(struct diff_ctx *d, struct rp_program_diff *out)
{
    const struct rp_match_side *l = &d->match.left;
    bool differs;

    RP_TRY(find_resized_dims(d));
    for (uint32_t op = 0; op < l->p->nops; op++) {
        if (l->match[op] == RP_NONE)
            continue;
        out->matched++;
        RP_TRY(compare_pair(d, op, l->match[op], &differs));
        out->changed += differs;
    }
    RP_TRY(find_one_sided(d, l, REMOVED, &out->removed));
    return find_one_sided(d, &d->match.right, ADDED, &out->added);
}

/* Counts operations of computations that were not visited because both programs have them. */
static enum rp_code count_identical(struct diff_ctx *d, struct rp_program_diff *out)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    RP_SCOPED(rp_map_release) struct rp_map known = {0};

    for (uint32_t c = 0; c < r->p->computations.n; c++)
        RP_TRY(rp_map_put(&known, r->hashes.computation[c], c, d->err));
    for (uint32_t c = 0; c < l->p->computations.n; c++) {
        const struct rp_computation *comp = &l->p->computations.at[c];

        if (comp->n && !l->visited[comp->first] && l->hashes.reachable[c] &&
            rp_map_get(&known, l->hashes.computation[c]) != RP_MAP_NONE)
            out->matched += comp->n;
    }
    return RP_OK;
}

/* ---- descriptions ---- */

static const char *what_words(const struct diff_ctx *d, const struct change *c)
{
    const struct rp_program *l = d->match.left.p, *r = d->match.right.p;

    switch (c->kind) {
    case ADDED:
        return rp_op_words(r, c->right, d->arena);
    case REMOVED:
        return rp_op_words(l, c->left, d->arena);
    case CONSTANT:
        if (l->code.at[c->left] == RP_OP_FOREIGN)
            return rp_attr_change_words(l, c->left, r, c->right, d->arena);
        return rp_constant_change_words(l, c->left, r, c->right, d->arena);
    case ATTRIBUTE:
        return rp_attr_change_words(l, c->left, r, c->right, d->arena);
    case SHARDING:
        return rp_sharding_change_words(l, c->left, r, c->right, d->arena);
    case FOLLOWS:
        return "shapes that follow from the above";
    default:
        return rp_op_change_words(l, c->left, r, c->right, d->arena);
    }
}

/* The places of the members of a change, in the order of the file. */
static const char *where_words(const struct diff_ctx *d, const struct change *c)
{
    struct rp_op_place *places = RP_ARENA_NEW(d->arena, struct rp_op_place, c->count);
    size_t n = c->count;

    if (!places)
        return "";
    for (uint32_t m = c->last; m != RP_NONE; m = d->members.at[m].before)
        places[--n] = d->members.at[m].place;
    return c->kind == FOLLOWS ? "" : rp_places_words(places, c->count, d->arena);
}

static const char *example_words(const struct diff_ctx *d, const struct change *c)
{
    const struct rp_program *l = d->match.left.p, *r = d->match.right.p;
    const char *was = c->left != RP_NONE ? rp_program_text(l, l->op_name.at[c->left]) : NULL;
    const char *is = c->right != RP_NONE ? rp_program_text(r, r->op_name.at[c->right]) : NULL;

    if (was && is && strcmp(was, is) != 0)
        return rp_arena_textf(d->arena, "%%%s -> %%%s", was, is);
    return rp_arena_textf(d->arena, "%%%s", is ? is : was);
}

const char *rp_program_diff_sentence(const char *what, const char *where, const char *place,
                                     struct rp_arena *arena)
{
    return rp_arena_textf(arena, "%s%s%s%s%s", what, *where ? ", " : "", where, *place ? ", " : "",
                          place);
}

/* Structure comes before shapes, shapes before constants, consequences last. */
static enum kind weight_of(const struct change *c)
{
    return c->kind < SHAPE ? ADDED : c->kind;
}

RP_ORDER(by_weight, struct change, RP_COMPARE(weight_of(a), weight_of(b)), RP_DOWN(count),
         RP_UP(left), RP_UP(right))

static enum rp_code describe_changes(struct diff_ctx *d, struct rp_program_diff *out)
{
    static const char *const causes[] = {
        [ADDED] = "structure",    [REMOVED] = "structure",   [OPCODE] = "structure",
        [OPERANDS] = "structure", [ATTRIBUTE] = "structure", [SHAPE] = "shape",
        [SHARDING] = "sharding",  [CONSTANT] = "constant",   [FOLLOWS] = "shape"};
    enum kind most = FOLLOWS;

    out->changes = RP_ARENA_NEW(d->arena, struct rp_program_diff_change, d->changes.n + 1);
    RP_TRY(rp_err_need(out->changes, d->err, "describing changes"));
    rp_sort(d->changes.at, d->changes.n, sizeof *d->changes.at, by_weight);
    for (size_t i = 0; i < d->changes.n; i++) {
        const struct change *c = &d->changes.at[i];

        most = c->kind < most ? c->kind : most;
        out->follows += c->kind == FOLLOWS ? c->count : 0;

        struct rp_program_diff_change *row = &out->changes[out->nchanges++];
        const struct rp_op_place *first = &d->members.at[c->last].place;
        row->kind = kind_words[c->kind];
        row->count = c->count;
        row->what = what_words(d, c);
        row->where = where_words(d, c);
        row->example = example_words(d, c);
        row->place =
            *first->file ? rp_arena_textf(d->arena, "%s:%d", first->file, first->line) : "";
        row->text = rp_program_diff_sentence(row->what, row->where, row->place, d->arena);
        if (c->kind != FOLLOWS)
            row->text = rp_arena_textf(d->arena, "%s (%s)", row->text, row->example);
        RP_TRY(rp_arena_check(d->arena, "describing changes", d->err));
    }
    out->cause = d->changes.n ? causes[most] : "";
    return RP_OK;
}

const struct rp_program_diff_change *rp_program_diff_main_change(const struct rp_program_diff *diff)
{
    static const char *const order[] = {"opcode",    "added", "removed",  "operands",
                                        "attribute", "shape", "sharding", "constant"};

    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (size_t i = 0; i < diff->nchanges; i++)
            if (!strcmp(diff->changes[i].kind, order[k]))
                return &diff->changes[i];
    return diff->nchanges ? &diff->changes[0] : NULL;
}

const char *rp_program_diff_change_words(const struct rp_program_diff_change *change,
                                         struct rp_arena *arena)
{
    if (!strcmp(change->kind, "added") || !strcmp(change->kind, "removed"))
        return rp_arena_textf(arena, "%s %s", change->kind, change->what);
    if (!strcmp(change->kind, "operands"))
        return rp_arena_textf(arena, "%s has other operands", change->what);
    return rp_arena_text(arena, change->what);
}

static enum rp_code describe_side(struct rp_program_diff_side side, struct rp_arena *arena,
                                  struct rp_program_diff_program *out, struct rp_err *err)
{
    const struct rp_program *p = side.prepared->p;
    uint32_t name =
        side.computation == RP_NONE ? p->name : p->computations.at[side.computation].name;

    out->name = rp_arena_text(arena, rp_program_text(p, name));
    out->hash =
        rp_arena_textf(arena, "%016llx", (unsigned long long)rp_program_diff_side_hash(side));
    for (uint32_t op = 0; op < p->nops; op++)
        out->instructions +=
            !(p->flags.at[op] & RP_OPS_IMPLICIT) &&
            (side.computation == RP_NONE || p->computation.at[op] == side.computation);
    return rp_arena_check(arena, "comparing programs", err);
}

/* ---- sharding ---- */

uint64_t rp_program_diff_sharding_hash(struct rp_program_diff_side side)
{
    const struct rp_match_side *s = side.prepared;
    uint64_t sum = 0;

    for (uint32_t op = 0; side.computation == RP_NONE && op < s->p->nops; op++) {
        const struct rp_attr *attr = rp_op_attr(s->p, op, RP_ATTR_SHARDING);

        if (attr)
            sum += rp_hash_join(s->hashes.op[op], rp_attr_hash(s->p, attr)) | 1;
    }
    return sum;
}

bool rp_program_diff_same_hashes(uint64_t left, uint64_t left_sharding, uint64_t right,
                                 uint64_t right_sharding)
{
    return left == right && (!left_sharding || !right_sharding || left_sharding == right_sharding);
}

/* Matches the two sides and adds the changes to `out`. */
static enum rp_code compare_once(struct diff_ctx *d, struct rp_program_diff_side left,
                                 struct rp_program_diff_side right, struct rp_program_diff *out)
{
    RP_TRY(rp_program_match(left.prepared, left.computation, right.prepared, right.computation,
                            d->arena, &d->match, d->err));
    RP_TRY(rp_place_finder_init(&d->placer, &d->match, d->arena, d->err));
    RP_TRY(find_changes(d, out));
    RP_TRY(count_identical(d, out));
    RP_TRY(describe_changes(d, out));
    out->same = !d->changes.n;
    return RP_OK;
}

static void diff_ctx_init(struct diff_ctx *d, bool sharded, struct rp_arena *arena,
                          struct rp_err *err)
{
    *d = (struct diff_ctx){.arena = arena, .err = err, .sharded = sharded};
}

static void diff_ctx_release(struct diff_ctx *d)
{
    rp_map_release(&d->groups);
    rp_vec_release(&d->changes);
    rp_vec_release(&d->members);
    rp_vec_release(&d->swaps);
}

static int64_t count_differences(const struct rp_program_diff *diff)
{
    return diff->changed + diff->added + diff->removed;
}

/* Matches first by parameter numbers; if that finds many differences, also without them, and uses
   the shorter result. */
static enum rp_code compare_both_ways(struct rp_program_diff_side left,
                                      struct rp_program_diff_side right, bool sharded,
                                      struct rp_arena *arena, struct rp_program_diff *out,
                                      struct rp_err *err)
{
    struct rp_match_side l = *left.prepared, r = *right.prepared;
    struct rp_program_diff other = *out;
    struct diff_ctx d;
    uint64_t x, y, *anonymous[2];

    RP_TRY(rp_canonical_hash(&l, left.computation, arena, &x, &anonymous[0], err));
    RP_TRY(rp_canonical_hash(&r, right.computation, arena, &y, &anonymous[1], err));
    if (x == y && !sharded) {
        out->same = true; /* only the order of parameters differs */
        out->matched = out->left.instructions;
        return RP_OK;
    }
    diff_ctx_init(&d, sharded, arena, err);
    enum rp_code code = compare_once(&d, left, right, out);
    diff_ctx_release(&d);
    if (code != RP_OK || count_differences(out) <= FEW_CHANGES)
        return code;
    l.anonymous = anonymous[0];
    r.anonymous = anonymous[1];
    diff_ctx_init(&d, sharded, arena, err);
    code = compare_once(&d, (struct rp_program_diff_side){&l, left.computation},
                        (struct rp_program_diff_side){&r, right.computation}, &other);
    diff_ctx_release(&d);
    if (code == RP_OK && count_differences(&other) < count_differences(out))
        *out = other;
    return code;
}

enum rp_code rp_program_diff_sides(struct rp_program_diff_side left,
                                   struct rp_program_diff_side right, struct rp_arena *arena,
                                   struct rp_program_diff *out, struct rp_err *err)
{
    uint64_t x = rp_program_diff_sharding_hash(left), y = rp_program_diff_sharding_hash(right);

    memset(out, 0, sizeof *out);
    out->cause = "";
    RP_TRY(describe_side(left, arena, &out->left, err));
    RP_TRY(describe_side(right, arena, &out->right, err));
    if (!rp_program_diff_same_hashes(rp_program_diff_side_hash(left), x,
                                     rp_program_diff_side_hash(right), y))
        return compare_both_ways(left, right, x && y, arena, out, err);
    out->same = true;
    out->matched = out->left.instructions;
    return RP_OK;
}

enum rp_code rp_program_diff_compare(const struct rp_program *left, const struct rp_program *right,
                                     struct rp_arena *arena, struct rp_program_diff *out,
                                     struct rp_err *err)
{
    struct rp_match_side l, r;

    RP_TRY(rp_match_prepare(left, arena, &l, err));
    RP_TRY(rp_match_prepare(right, arena, &r, err));
    return rp_program_diff_sides((struct rp_program_diff_side){&l, RP_NONE},
                                 (struct rp_program_diff_side){&r, RP_NONE}, arena, out, err);
}
