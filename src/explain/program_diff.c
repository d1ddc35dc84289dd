/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differences of two matched programs, in the words of the user: what was added, removed or
 * changed, where it comes from, and the same change in many layers said once. That an operation
 * reads what was added is not a change of its own. Parameters may come in another order.
 */
#include "explain/program_diff.h"

#include "explain/program_match.h"

#include <stdlib.h>
#include <string.h>

static const struct rp_field change_fields[] = {
    RP_FIELD(struct rp_diff_change, kind, STR, NONE, "change",
             "added, removed, opcode, shape, constant, attribute or operands", 0),
    RP_FIELD(struct rp_diff_change, count, I64, COUNT, "times", "operations changed in this way",
             0),
    RP_FIELD(struct rp_diff_change, what, STR, NONE, "what", "the operation, before and after",
             RP_SHORTEN),
    RP_FIELD(struct rp_diff_change, place, STR, NONE, "source line", "of the user's program",
             RP_SHORTEN),
    RP_FIELD(struct rp_diff_change, example, STR, NONE, "such as", "the first of them", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type change_type = {"change", sizeof(struct rp_diff_change), change_fields,
                                           NULL};

static const struct rp_field side_fields[] = {
    RP_FIELD(struct rp_diff_program, name, STR, NONE, "name", "of the program", RP_SHORTEN),
    RP_FIELD(struct rp_diff_program, hash, STR, NONE, "hash", "structural", 0),
    RP_FIELD(struct rp_diff_program, instructions, I64, COUNT, "operations", "in all computations",
             0),
    RP_FIELD_END};
static const struct rp_type side_type = {"program", sizeof(struct rp_diff_program), side_fields,
                                         NULL};

static const struct rp_field diff_fields[] = {
    RP_FIELD(struct rp_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_diff, same, BOOL, NONE, "same", "whether they are the same program", 0),
    RP_FIELD_RECORD(struct rp_diff, left, &side_type, "left", "the first program", 0),
    RP_FIELD_RECORD(struct rp_diff, right, &side_type, "right", "the second program", 0),
    RP_FIELD(struct rp_diff, matched, I64, COUNT, "matched", "operations in both", 0),
    RP_FIELD(struct rp_diff, changed, I64, COUNT, "changed", "of these, with a difference", 0),
    RP_FIELD(struct rp_diff, added, I64, COUNT, "added", "only in the second", 0),
    RP_FIELD(struct rp_diff, removed, I64, COUNT, "removed", "only in the first", 0),
    RP_FIELD_LIST(struct rp_diff, changes, &change_type, "changes",
                  "the same change in many places is one row", 0),
    RP_FIELD_END};
const struct rp_type rp_diff_type = {"diff", sizeof(struct rp_diff), diff_fields, "changes"};

enum kind { ADDED, REMOVED, OPCODE, SHAPE, CONSTANT, ATTRIBUTE, OPERANDS };
static const char *const kind_words[] = {"added",    "removed",   "opcode",  "shape",
                                         "constant", "attribute", "operands"};

struct change {
    enum kind kind;
    uint32_t left, right; /* RP_NONE: not there */
    uint64_t group;       /* what is the same change */
    uint32_t count;
};

struct differ {
    struct rp_match match;
    struct rp_arena *arena;
    struct rp_err *err;
    RP_VEC(struct change) changes;
    struct rp_map groups;
};

static uint64_t place_key(const struct rp_program *p, uint32_t op)
{
    struct rp_source_line at;

    if (op == RP_NONE || !rp_op_source(p, op, &at))
        return 0;
    return rp_hash_bytes(at.file, strlen(at.file)) ^ rp_hash_u64((uint64_t)at.line);
}

static uint64_t side_key(const struct rp_match_side *s, uint32_t op)
{
    if (op == RP_NONE)
        return 1;
    return rp_hash_mix(s->hashes.shape[s->p->shape.at[op]] ^ s->p->code.at[op],
                       s->p->code.at[op] == RP_OP_FOREIGN ? s->hashes.local[op] : 0x9e37);
}

static enum rp_code note(struct differ *d, enum kind kind, uint32_t left, uint32_t right)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    struct change c = {.kind = kind, .left = left, .right = right, .count = 1};
    uint64_t place = right != RP_NONE ? place_key(r->p, right) : place_key(l->p, left);
    uint32_t fresh = (uint32_t)d->changes.n, known;

    c.group =
        rp_hash_mix(side_key(l, left) ^ (uint64_t)kind, side_key(r, right) ^ rp_hash_u64(place));
    RP_TRY(rp_map_intern(&d->groups, c.group, fresh, &known, d->err));
    if (known == fresh)
        return rp_vec_push(&d->changes, c, d->err);
    d->changes.at[known].count++;
    return RP_OK;
}

/* Both read something that is in both programs, and it is not the same. */
static bool rewired(const struct differ *d, uint32_t a, uint32_t b)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    struct rp_ids x = rp_op_operands(l->p, a), y = rp_op_operands(r->p, b);

    if (x.n != y.n)
        return false; /* something was added or removed, which is said there */
    for (uint32_t i = 0; i < x.n; i++)
        if (l->match[x.at[i]] != RP_NONE && r->match[y.at[i]] != RP_NONE &&
            l->match[x.at[i]] != y.at[i])
            return true;
    return false;
}

static enum rp_code compare_pair(struct differ *d, uint32_t a, uint32_t b, bool *differs)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    uint16_t code = l->p->code.at[a];

    *differs = true;
    if (code != r->p->code.at[b])
        return note(d, OPCODE, a, b);
    if (l->hashes.shape[l->p->shape.at[a]] != r->hashes.shape[r->p->shape.at[b]])
        return note(d, SHAPE, a, b);
    if (l->hashes.local[a] != r->hashes.local[b])
        return note(d, code == RP_OP_CONSTANT ? CONSTANT : ATTRIBUTE, a, b);
    if (rewired(d, a, b))
        return note(d, OPERANDS, a, b);
    *differs = false;
    return RP_OK;
}

static enum rp_code find_changes(struct differ *d, struct rp_diff *out)
{
    const struct rp_match_side *l = &d->match.left, *r = &d->match.right;
    bool differs;

    for (uint32_t op = 0; op < l->p->nops; op++) {
        if (!l->visited[op] || l->match[op] != RP_NONE) {
            out->matched += l->match[op] != RP_NONE;
            if (l->match[op] == RP_NONE)
                continue;
            RP_TRY(compare_pair(d, op, l->match[op], &differs));
            out->changed += differs;
        } else if (l->p->code.at[op] != RP_OP_GET_TUPLE_ELEMENT) {
            out->removed++;
            RP_TRY(note(d, REMOVED, op, RP_NONE));
        }
    }
    for (uint32_t op = 0; op < r->p->nops; op++)
        if (r->visited[op] && r->match[op] == RP_NONE &&
            r->p->code.at[op] != RP_OP_GET_TUPLE_ELEMENT) {
            out->added++;
            RP_TRY(note(d, ADDED, RP_NONE, op));
        }
    return RP_OK;
}

/* ---- words ---- */

static const char *words_of(const struct rp_program *p, uint32_t op, struct rp_arena *arena)
{
    char shape[160];

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    return rp_arena_printf(arena, "%s %s", rp_op_opcode_name(p, op), shape);
}

static enum rp_code describe(struct differ *d, const struct change *c, struct rp_diff_change *row)
{
    bool has_left = c->left != RP_NONE, has_right = c->right != RP_NONE;
    const struct rp_program *p = has_right ? d->match.right.p : d->match.left.p;
    uint32_t op = has_right ? c->right : c->left;
    const char *from = has_left ? words_of(d->match.left.p, c->left, d->arena) : NULL;
    const char *to = has_right ? words_of(d->match.right.p, c->right, d->arena) : NULL;
    struct rp_source_line at;

    row->kind = kind_words[c->kind];
    row->count = c->count;
    row->what = !from                          ? to
                : !to || strcmp(from, to) == 0 ? from
                                               : rp_arena_printf(d->arena, "%s -> %s", from, to);
    row->example = rp_arena_printf(d->arena, "%%%s", rp_program_text(p, p->op_name.at[op]));
    row->place = "";
    if (rp_op_source(p, op, &at)) {
        const char *slash = strrchr(at.file, '/');

        row->place = rp_arena_printf(d->arena, "%s:%d", slash ? slash + 1 : at.file, at.line);
    }
    if (!row->what || !row->example || !row->place)
        return rp_err_nomem(d->err, "describing changes");
    return RP_OK;
}

static int by_count(const void *x, const void *y)
{
    const struct change *a = x, *b = y;

    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return (a->left > b->left) - (a->left < b->left);
}

static enum rp_code describe_all(struct differ *d, struct rp_diff *out)
{
    out->changes = RP_ARENA_NEW(d->arena, struct rp_diff_change, d->changes.n + 1);
    if (!out->changes)
        return rp_err_nomem(d->err, "describing changes");
    if (d->changes.n)
        qsort(d->changes.at, d->changes.n, sizeof *d->changes.at, by_count);
    for (size_t i = 0; i < d->changes.n; i++)
        RP_TRY(describe(d, &d->changes.at[i], &out->changes[out->nchanges++]));
    return RP_OK;
}

static enum rp_code describe_side(const struct rp_match_side *s, struct rp_arena *arena,
                                  struct rp_diff_program *out, struct rp_err *err)
{
    out->name = rp_arena_strdup(arena, rp_program_text(s->p, s->p->name));
    out->hash = rp_arena_printf(arena, "%016llx", (unsigned long long)s->hashes.program);
    for (uint32_t op = 0; op < s->p->nops; op++)
        out->instructions += !(s->p->flags.at[op] & RP_OPS_IMPLICIT);
    return out->name && out->hash ? RP_OK : rp_err_nomem(err, "comparing programs");
}

enum rp_code rp_explain_diff(const struct rp_program *left, const struct rp_program *right,
                             struct rp_arena *arena, struct rp_diff *out, struct rp_err *err)
{
    struct differ d = {.arena = arena, .err = err};
    enum rp_code code;

    memset(out, 0, sizeof *out);
    out->inputs = "programs";
    rp_map_init(&d.groups);
    code = rp_program_match(left, right, arena, &d.match, err);
    if (code == RP_OK)
        code = describe_side(&d.match.left, arena, &out->left, err);
    if (code == RP_OK)
        code = describe_side(&d.match.right, arena, &out->right, err);
    if (code == RP_OK && d.match.left.hashes.program == d.match.right.hashes.program) {
        out->same = true;
        out->matched = out->left.instructions;
    } else if (code == RP_OK) {
        code = find_changes(&d, out);
        if (code == RP_OK)
            code = describe_all(&d, out);
        out->same = !d.changes.n; /* parameters in another order */
    }
    rp_map_release(&d.groups);
    rp_vec_release(&d.changes);
    return code;
}
