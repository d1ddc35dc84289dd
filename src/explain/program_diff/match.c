/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches two programs. In a pair of computations, operations with the same hash over all their
 * inputs, up to the parameters, are pairs; so are the roots. Every pair leads to others: operands
 * at the same position, and users with the same local hash. The rest is paired by local hash in
 * file order, then by opcode, each time followed by the same propagation. Calls of pairs lead to
 * further computations.
 */
#include "explain/program_diff/match.h"

#include "base/decides.h"
#include "base/order.h"

#include <stdlib.h>

enum { MOST_TRIES = 32 };

struct keyed {
    uint64_t key;
    uint32_t op;
};

struct pair {
    uint32_t left, right;
};

struct match_ctx {
    struct rp_match *m;
    struct rp_arena *arena;
    struct rp_err *err;
    RP_VEC(struct pair) queue;        /* pairs to follow up */
    RP_VEC(struct pair) doubtful;     /* candidates whose opcodes differ */
    size_t doubts;                    /* number of candidates that were resolved */
    RP_VEC(struct pair) computations; /* pairs of computations to compare */
    struct keyed *a, *b;              /* scratch */
    struct rp_map seen;               /* pairs of computations */
};

enum rp_code rp_match_prepare(const struct rp_program *p, struct rp_arena *arena,
                              struct rp_match_side *out, struct rp_err *err)
{
    uint32_t *fill = RP_ARENA_NEW(arena, uint32_t, (size_t)p->nops + 1);

    *out = (struct rp_match_side){.p = p};
    out->user_begin = RP_ARENA_NEW(arena, uint32_t, (size_t)p->nops + 2);
    out->users = RP_ARENA_NEW(arena, uint32_t, p->operands.n + 1);
    RP_TRY(rp_err_need(out->user_begin && out->users && fill, err, "comparing programs"));
    for (size_t i = 0; i < p->operands.n; i++)
        out->user_begin[p->operands.at[i] + 1]++;
    for (uint32_t op = 0; op < p->nops; op++) {
        out->user_begin[op + 1] += out->user_begin[op];
        fill[op] = out->user_begin[op];
    }
    for (uint32_t op = 0; op < p->nops; op++) {
        struct rp_ids operands = rp_op_operands(p, op);

        for (uint32_t i = 0; i < operands.n; i++)
            out->users[fill[operands.at[i]]++] = op;
    }
    return rp_program_hash(p, arena, &out->hashes, err);
}

static enum rp_code begin_side(const struct rp_match_side *prepared, struct rp_arena *arena,
                               struct rp_match_side *s, struct rp_err *err)
{
    size_t n = (size_t)prepared->p->nops + 1;

    *s = *prepared;
    s->match = RP_ARENA_NEW(arena, uint32_t, n);
    s->visited = RP_ARENA_NEW(arena, uint8_t, n);
    RP_TRY(rp_err_need(s->match && s->visited, err, "comparing programs"));
    for (size_t op = 0; op < n; op++)
        s->match[op] = RP_NONE;
    return RP_OK;
}

static bool free_pair(const struct match_ctx *t, uint32_t a, uint32_t b)
{
    return t->m->left.match[a] == RP_NONE && t->m->right.match[b] == RP_NONE;
}

static enum rp_code make_pair(struct match_ctx *t, uint32_t a, uint32_t b)
{
    struct pair pair = {a, b};

    t->m->left.match[a] = b;
    t->m->right.match[b] = a;
    return rp_vec_push(&t->queue, pair, t->err);
}

static uint64_t shape_hash(const struct rp_match_side *s, uint32_t op)
{
    return s->hashes.shape[s->p->shape.at[op]];
}

/* ---- propagation from a pair ---- */

static enum rp_code follow_operands(struct match_ctx *t, uint32_t a, uint32_t b)
{
    struct rp_ids x = rp_op_operands(t->m->left.p, a), y = rp_op_operands(t->m->right.p, b);

    for (uint32_t i = 0; x.n == y.n && i < x.n; i++) {
        struct pair pair = {x.at[i], y.at[i]};

        if (!free_pair(t, pair.left, pair.right))
            continue;
        if (t->m->left.hashes.opcode[pair.left] == t->m->right.hashes.opcode[pair.right])
            RP_TRY(make_pair(t, pair.left, pair.right));
        else if (shape_hash(&t->m->left, pair.left) == shape_hash(&t->m->right, pair.right))
            RP_TRY(rp_vec_push(&t->doubtful, pair, t->err));
    }
    return RP_OK;
}

/* Whether the operands do not contradict a pair. */
static bool operands_agree(const struct match_ctx *t, uint32_t a, uint32_t b)
{
    const struct rp_match_side *l = &t->m->left, *r = &t->m->right;
    struct rp_ids x = rp_op_operands(l->p, a), y = rp_op_operands(r->p, b);

    for (uint32_t i = 0; x.n == y.n && i < x.n; i++)
        if (l->match[x.at[i]] != y.at[i] &&
            (l->match[x.at[i]] != RP_NONE || r->match[y.at[i]] != RP_NONE))
            return false;
    return x.n == y.n;
}

#define MOST_USERS 64
RP_LIMIT(MOST_USERS, "users",
         "all pairs are compared; if there are more, users are matched by other operands");

/* Pairs users with the same local hash, in order; constants have too many users to be a clue. */
static enum rp_code follow_users(struct match_ctx *t, uint32_t a, uint32_t b)
{
    const struct rp_match_side *l = &t->m->left, *r = &t->m->right;
    uint32_t from = r->user_begin[b], to = r->user_begin[b + 1];

    if (to - from > MOST_USERS || l->user_begin[a + 1] - l->user_begin[a] > MOST_USERS)
        return RP_OK;
    for (uint32_t i = l->user_begin[a]; i < l->user_begin[a + 1]; i++)
        for (uint32_t k = from; k < to; k++)
            if (free_pair(t, l->users[i], r->users[k]) &&
                l->hashes.local[l->users[i]] == r->hashes.local[r->users[k]] &&
                operands_agree(t, l->users[i], r->users[k])) {
                RP_TRY(make_pair(t, l->users[i], r->users[k]));
                break;
            }
    return RP_OK;
}

static enum rp_code follow_calls(struct match_ctx *t, uint32_t a, uint32_t b)
{
    struct rp_ids x = rp_op_called(t->m->left.p, a), y = rp_op_called(t->m->right.p, b);

    for (uint32_t i = 0; i < x.n && i < y.n; i++) {
        struct pair pair = {x.at[i], y.at[i]};
        uint32_t known, fresh = (uint32_t)t->computations.n;

        if (t->m->left.hashes.computation[x.at[i]] == t->m->right.hashes.computation[y.at[i]])
            continue;
        RP_TRY(rp_map_intern(&t->seen, (uint64_t)x.at[i] << 32 | y.at[i], fresh, &known, t->err));
        if (known == fresh)
            RP_TRY(rp_vec_push(&t->computations, pair, t->err));
    }
    return RP_OK;
}

/* An unmatched operand of op with the same local hash as `other`, or RP_NONE. */
static uint32_t unmatched_operand(const struct rp_match_side *s, uint32_t op,
                                  const struct rp_match_side *o, uint32_t other)
{
    struct rp_ids operands = rp_op_operands(s->p, op);

    for (uint32_t i = 0; i < operands.n; i++)
        if (s->match[operands.at[i]] == RP_NONE &&
            s->hashes.local[operands.at[i]] == o->hashes.local[other])
            return operands.at[i];
    return RP_NONE;
}

/* Resolves two different operations in the same position: if one was inserted or removed, the other
   has its partner one step further down; otherwise the operation was changed. */
static enum rp_code resolve_doubtful(struct match_ctx *t, struct pair pair)
{
    const struct rp_match_side *l = &t->m->left, *r = &t->m->right;

    if (!free_pair(t, pair.left, pair.right))
        return RP_OK;
    uint32_t below = unmatched_operand(l, pair.left, r, pair.right);
    if (below != RP_NONE)
        return make_pair(t, below, pair.right);
    below = unmatched_operand(r, pair.right, l, pair.left);
    if (below != RP_NONE)
        return make_pair(t, pair.left, below);
    return make_pair(t, pair.left, pair.right);
}

/* Doubtful pairs are resolved last. */
static enum rp_code follow_pairs(struct match_ctx *t)
{
    while (t->queue.n || t->doubts < t->doubtful.n) {
        if (!t->queue.n) {
            RP_TRY(resolve_doubtful(t, t->doubtful.at[t->doubts++]));
            continue;
        }
        struct pair pair = t->queue.at[--t->queue.n];
        RP_TRY(follow_operands(t, pair.left, pair.right));
        RP_TRY(follow_users(t, pair.left, pair.right));
        RP_TRY(follow_calls(t, pair.left, pair.right));
    }
    t->doubtful.n = t->doubts = 0;
    return RP_OK;
}

/* ---- pairs by a key ---- */

RP_ORDER(by_key, struct keyed, RP_UP(key), RP_UP(op))

enum key { WHOLE, ANONYMOUS, LOCAL, OPCODE };

static size_t collect_unmatched(const struct rp_match_side *s, const struct rp_computation *c,
                                enum key key, struct keyed *out)
{
    size_t n = 0;

    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        if (s->match[op] != RP_NONE)
            continue;
        out[n].op = op;
        out[n++].key = key == WHOLE       ? s->hashes.op[op]
                       : key == ANONYMOUS ? s->anonymous[op]
                       : key == LOCAL     ? s->hashes.local[op]
                                          : s->hashes.opcode[op];
    }
    qsort(out, n, sizeof *out, by_key);
    return n;
}

/* Pairs operations with the same key, in the order of the file. */
static enum rp_code pair_by_key(struct match_ctx *t, const struct rp_computation *x,
                                const struct rp_computation *y, enum key key)
{
    size_t n = collect_unmatched(&t->m->left, x, key, t->a),
           m = collect_unmatched(&t->m->right, y, key, t->b);
    size_t i = 0, k = 0;

    while (i < n && k < m) {
        if (t->a[i].key < t->b[k].key)
            i++;
        else if (t->a[i].key > t->b[k].key)
            k++;
        else
            RP_TRY(make_pair(t, t->a[i++].op, t->b[k++].op));
    }
    return follow_pairs(t);
}

/* Whether the key of entry i is unique in the sorted list. */
static bool only_one(const struct keyed *list, size_t n, size_t i)
{
    return (i == 0 || list[i - 1].key != list[i].key) &&
           (i + 1 == n || list[i + 1].key != list[i].key);
}

/* Goes from the pairs so far to their operands, as long as the local hashes are the same. */
static enum rp_code pair_operands_down(struct match_ctx *t)
{
    const struct rp_match_side *l = &t->m->left, *r = &t->m->right;

    for (size_t q = 0; q < t->queue.n; q++) {
        uint32_t a = t->queue.at[q].left, b = t->queue.at[q].right;
        struct rp_ids x = rp_op_operands(l->p, a), y = rp_op_operands(r->p, b);

        for (uint32_t i = 0; x.n == y.n && i < x.n; i++)
            if (free_pair(t, x.at[i], y.at[i]) &&
                l->hashes.local[x.at[i]] == r->hashes.local[y.at[i]])
                RP_TRY(make_pair(t, x.at[i], y.at[i]));
    }
    return RP_OK;
}

static enum rp_code match_computations(struct match_ctx *t, struct pair pair)
{
    struct rp_match_side *l = &t->m->left, *r = &t->m->right;
    const struct rp_computation *x = &l->p->computations.at[pair.left];
    const struct rp_computation *y = &r->p->computations.at[pair.right];

    if (!x->n || !y->n || l->visited[x->first] || r->visited[y->first])
        return RP_OK; /* each is matched once, with the first partner */
    for (uint32_t i = 0; i < x->n; i++)
        l->visited[x->first + i] = 1;
    for (uint32_t i = 0; i < y->n; i++)
        r->visited[y->first + i] = 1;
    if (l->anonymous && r->anonymous) {
        /* If parameter numbers are ignored, matching starts from the results. */
        if (x->root != RP_NONE && y->root != RP_NONE && free_pair(t, x->root, y->root))
            RP_TRY(make_pair(t, x->root, y->root));

        /* Pair operations whose anonymous hash is unique on both sides. */
        size_t n = collect_unmatched(&t->m->left, x, ANONYMOUS, t->a);
        size_t m = collect_unmatched(&t->m->right, y, ANONYMOUS, t->b), i = 0, k = 0;
        while (i < n && k < m) {
            if (t->a[i].key < t->b[k].key) {
                i++;
            } else if (t->a[i].key > t->b[k].key) {
                k++;
            } else {
                if (only_one(t->a, n, i) && only_one(t->b, m, k))
                    RP_TRY(make_pair(t, t->a[i].op, t->b[k].op));
                i++;
                k++;
            }
        }

        RP_TRY(pair_operands_down(t));
        RP_TRY(follow_pairs(t));
    }
    RP_TRY(pair_by_key(t, x, y, WHOLE));
    if (x->root != RP_NONE && y->root != RP_NONE && free_pair(t, x->root, y->root))
        RP_TRY(make_pair(t, x->root, y->root));
    RP_TRY(follow_pairs(t));

    /* Pair operations with the same local hash whose operands agree, in the order of the file. */
    size_t n = collect_unmatched(&t->m->left, x, LOCAL, t->a),
           m = collect_unmatched(&t->m->right, y, LOCAL, t->b);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        while (k < m && t->b[k].key < t->a[i].key)
            k++;
        for (size_t c = k; c < m && c < k + MOST_TRIES && t->b[c].key == t->a[i].key; c++)
            if (free_pair(t, t->a[i].op, t->b[c].op) && operands_agree(t, t->a[i].op, t->b[c].op)) {
                RP_TRY(make_pair(t, t->a[i].op, t->b[c].op));
                break;
            }
        while (k < m && t->m->right.match[t->b[k].op] != RP_NONE)
            k++;
    }
    RP_TRY(follow_pairs(t));

    RP_TRY(pair_by_key(t, x, y, LOCAL));
    return pair_by_key(t, x, y, OPCODE);
}

/* Collects unreachable computations, by hash. */
static size_t collect_dead(const struct rp_match_side *s, struct keyed *out)
{
    size_t n = 0;

    for (uint32_t c = 0; c < s->p->computations.n; c++)
        if (!s->hashes.reachable[c])
            out[n++] = (struct keyed){s->hashes.computation[c], c};
    qsort(out, n, sizeof *out, by_key);
    return n;
}

RP_ORDER(by_op, struct keyed, RP_UP(op))

/* Matches unreachable computations that only one side has, in the order of the file. */
static enum rp_code match_dead(struct match_ctx *t)
{
    size_t n = collect_dead(&t->m->left, t->a), m = collect_dead(&t->m->right, t->b);
    size_t i = 0, k = 0, x = 0, y = 0;

    while (i < n || k < m) {
        if (i < n && k < m && t->a[i].key == t->b[k].key) {
            i++;
            k++;
        } else if (k == m || (i < n && t->a[i].key < t->b[k].key)) {
            t->a[x++] = t->a[i++];
        } else {
            t->b[y++] = t->b[k++];
        }
    }
    qsort(t->a, x, sizeof *t->a, by_op);
    qsort(t->b, y, sizeof *t->b, by_op);
    for (i = 0; i < x && i < y; i++) {
        struct pair pair = {t->a[i].op, t->b[i].op};

        RP_TRY(rp_vec_push(&t->computations, pair, t->err));
    }
    for (; i < x; i++) /* without a partner, it was removed or added as a whole */
        t->m->left.visited[t->m->left.p->computations.at[t->a[i].op].first] = 1;
    for (i = x < y ? x : y; i < y; i++)
        t->m->right.visited[t->m->right.p->computations.at[t->b[i].op].first] = 1;
    return RP_OK;
}

static enum rp_code match_all(struct match_ctx *t, struct pair entries)
{
    const struct rp_program *left = t->m->left.p, *right = t->m->right.p;
    bool whole = entries.left == RP_NONE;

    if (whole)
        entries = (struct pair){left->entry, right->entry};
    t->a = RP_ARENA_NEW(t->arena, struct keyed, left->nops + left->computations.n + 1);
    t->b = RP_ARENA_NEW(t->arena, struct keyed, right->nops + right->computations.n + 1);
    RP_TRY(rp_err_need(t->a && t->b, t->err, "comparing programs"));
    if (entries.left == RP_NONE || entries.right == RP_NONE)
        return RP_OK;
    RP_TRY(rp_vec_push(&t->computations, entries, t->err));
    if (whole)
        RP_TRY(match_dead(t));
    for (size_t i = 0; i < t->computations.n; i++)
        RP_TRY(match_computations(t, t->computations.at[i]));
    return RP_OK;
}

enum rp_code rp_program_match(const struct rp_match_side *left, uint32_t left_entry,
                              const struct rp_match_side *right, uint32_t right_entry,
                              struct rp_arena *arena, struct rp_match *out, struct rp_err *err)
{
    struct match_ctx t = {.m = out, .arena = arena, .err = err};
    enum rp_code code = begin_side(left, arena, &out->left, err);
    if (code == RP_OK)
        code = begin_side(right, arena, &out->right, err);
    if (code == RP_OK)
        code = match_all(&t, (struct pair){left_entry, right_entry});
    rp_map_release(&t.seen);
    rp_vec_release(&t.queue);
    rp_vec_release(&t.doubtful);
    rp_vec_release(&t.computations);
    return code;
}
