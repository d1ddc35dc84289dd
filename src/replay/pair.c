/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which operations of two programs are counterparts: the results; operations that are the
 * same all the way up to the parameters (hash); those with the same scope path and source line,
 * then with the same name, if each program has exactly one. Each pair leads to its operands and
 * users. Among the rest, those with the same value are counterparts; then those paired by matching
 * the structures, and those that repeat equally often, in order. Counterparts have the same shape,
 * because a compiler that computes on other shapes has rewritten it. The programs are flat, so that
 * operations inside of fusions are found. Takes the time of sorting the operations.
 */
#include "base/order.h"
#include "explain/program_diff/match.h"
#include "program/cut.h"
#include "program/opcodes.h"
#include "replay/search.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct keyed {
    uint64_t key;
    uint32_t op;
};
RP_ORDER(keyed_order, struct keyed, RP_UP(key), RP_UP(op))

struct pairing {
    const struct rp_program *p[2];
    struct rp_match_side side[2];
    uint32_t *match[2]; /* by operation: the other side's, or RP_NONE */
    struct keyed *keyed[2];
    uint32_t *queue; /* of the left side: pairs that are to be followed */
    size_t nqueue;
    struct rp_arena scratch;
    struct rp_err *err;
};

/* ---- pairs ---- */

uint64_t rp_pair_shape(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    uint64_t key = rp_hash_join(s->elem, s->n);

    for (uint32_t i = 0; i < s->n; i++)
        key =
            rp_hash_join(key, s->elem == RP_ELEM_TUPLE ? rp_pair_shape(p, p->parts.at[s->first + i])
                                                       : (uint64_t)p->dims.at[s->first + i]);
    return key;
}

static uint64_t text_key(const char *text)
{
    return rp_hash_bytes(text, strlen(text));
}

/* Whether an operation can have a counterpart; parameters always have the same one. */
static bool is_candidate(const struct pairing *g, int side, uint32_t op)
{
    const struct rp_program *p = g->p[side];

    return p->computation.at[op] == p->entry && g->match[side][op] == RP_NONE &&
           p->code.at[op] != RP_OP_PARAMETER && p->code.at[op] != RP_OP_TUPLE &&
           rp_shape_leaves(p, p->shape.at[op]);
}

static bool same_kind(const struct pairing *g, uint32_t left, uint32_t right)
{
    return g->side[0].hashes.opcode[left] == g->side[1].hashes.opcode[right] &&
           rp_pair_shape(g->p[0], g->p[0]->shape.at[left]) ==
               rp_pair_shape(g->p[1], g->p[1]->shape.at[right]);
}

static void pair_add(struct pairing *g, uint32_t left, uint32_t right)
{
    g->match[0][left] = right;
    g->match[1][right] = left;
    g->queue[g->nqueue++] = left;
}

static void pair_if_same(struct pairing *g, uint32_t left, uint32_t right)
{
    if (is_candidate(g, 0, left) && is_candidate(g, 1, right) && same_kind(g, left, right))
        pair_add(g, left, right);
}

/* The only user of the same kind as `like`, an operation of the left side; RP_NONE if there are
   none or several. */
static uint32_t only_user(const struct pairing *g, int side, uint32_t op, uint32_t like)
{
    const struct rp_match_side *s = &g->side[side];
    uint32_t found = RP_NONE;

    for (uint32_t i = s->user_begin[op]; i < s->user_begin[op + 1]; i++) {
        uint32_t user = s->users[i];

        if (!is_candidate(g, side, user) || user == found ||
            s->hashes.opcode[user] != g->side[0].hashes.opcode[like] ||
            rp_pair_shape(g->p[side], g->p[side]->shape.at[user]) !=
                rp_pair_shape(g->p[0], g->p[0]->shape.at[like]))
            continue;
        if (found != RP_NONE)
            return RP_NONE;
        found = user;
    }
    return found;
}

/* Pairs operands at the same position, and users of a kind that occurs only once. */
static void pairs_follow(struct pairing *g)
{
    while (g->nqueue) {
        uint32_t left = g->queue[--g->nqueue], right = g->match[0][left];
        struct rp_ids a = rp_op_operands(g->p[0], left), b = rp_op_operands(g->p[1], right);
        const struct rp_match_side *s = &g->side[0];

        for (uint32_t i = 0; a.n == b.n && same_kind(g, left, right) && i < a.n; i++)
            pair_if_same(g, a.at[i], b.at[i]);
        for (uint32_t i = s->user_begin[left]; i < s->user_begin[left + 1]; i++) {
            uint32_t user = s->users[i];

            if (!is_candidate(g, 0, user) || only_user(g, 0, left, user) != user)
                continue;
            uint32_t other = only_user(g, 1, right, user);
            if (other != RP_NONE)
                pair_add(g, user, other);
        }
    }
}

/* ---- by keys ---- */

typedef uint64_t pair_key_fn(const struct pairing *g, int side, uint32_t op); /* 0: none */

static uint64_t key_of_hash(const struct pairing *g, int side, uint32_t op)
{
    return g->side[side].hashes.op[op];
}

static uint64_t key_of_kind(const struct pairing *g, int side, uint32_t op, const char *text)
{
    const struct rp_program *p = g->p[side];
    uint64_t key = rp_hash_join(text_key(text), g->side[side].hashes.opcode[op]);

    return rp_hash_join(key, rp_pair_shape(p, p->shape.at[op]));
}

static uint64_t key_of_scope(const struct pairing *g, int side, uint32_t op)
{
    const struct rp_program *p = g->p[side];
    uint32_t scope = p->metas.at[p->meta.at[op]].op_name;
    struct rp_source_line at;

    if (!scope)
        return 0;
    uint64_t key = key_of_kind(g, side, op, rp_program_text(p, scope));
    return rp_op_source(p, op, &at)
               ? rp_hash_join(rp_hash_join(key, text_key(at.file)), (uint64_t)at.line)
               : key;
}

/* Uses the whole name; the operation may have become another one. */
static uint64_t key_of_whole_name(const struct pairing *g, int side, uint32_t op)
{
    const struct rp_program *p = g->p[side];

    return rp_hash_join(text_key(rp_program_text(p, p->op_name.at[op])),
                        rp_pair_shape(p, p->shape.at[op]));
}

/* Names of flattened operations begin with those of the calls around them: "fusion.3.add.5". */
static uint64_t key_of_name(const struct pairing *g, int side, uint32_t op)
{
    const char *name = rp_program_text(g->p[side], g->p[side]->op_name.at[op]);
    const char *end = strrchr(name, '.'), *from = end;

    if (!end)
        return key_of_kind(g, side, op, name);
    if (isdigit((unsigned char)end[1]))
        do
            from--;
        while (from > name && *from != '.');
    return key_of_kind(g, side, op, *from == '.' ? from + 1 : name);
}

static size_t collect(const struct pairing *g, int side, pair_key_fn *key_of)
{
    const struct rp_computation *c = &g->p[side]->computations.at[g->p[side]->entry];
    size_t n = 0;

    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        uint64_t key = is_candidate(g, side, op) ? key_of(g, side, op) : 0;

        if (key)
            g->keyed[side][n++] = (struct keyed){key, op};
    }
    qsort(g->keyed[side], n, sizeof *g->keyed[side], keyed_order);
    return n;
}

static size_t run_of(const struct keyed *k, size_t from, size_t n)
{
    size_t to = from;

    while (to < n && k[to].key == k[from].key)
        to++;
    return to - from;
}

/* Operations with equal keys, at most `most` on each side, are paired in order, if both sides have
   them equally often, or if equal keys mean equal values. */
static void pairs_by(struct pairing *g, pair_key_fn *key_of, size_t most)
{
    size_t n = collect(g, 0, key_of), m = collect(g, 1, key_of), i = 0, j = 0;

    while (i < n && j < m) {
        const struct keyed *a = &g->keyed[0][i], *b = &g->keyed[1][j];
        size_t na = run_of(g->keyed[0], i, n), nb = run_of(g->keyed[1], j, m);

        if (a->key == b->key && (na == nb || key_of == key_of_hash) && na <= most) {
            /* The remaining ones of one side are paired with the last one of the other, which does
             * not know of it. */
            for (size_t k = 0; k < na && k < nb; k++)
                pair_add(g, a[k].op, b[k].op);
            for (size_t k = nb; k < na; k++)
                g->match[0][a[k].op] = b[nb - 1].op;
            for (size_t k = na; k < nb; k++)
                g->match[1][b[k].op] = a[na - 1].op;
        }
        i += a->key <= b->key ? na : 0;
        j += b->key <= a->key ? nb : 0;
    }
    pairs_follow(g);
}

/* Whether nine of ten operations have their names in both programs, as before and after a change in
   the source. A compiler reuses names that became free. */
static bool names_are_kept(struct pairing *g)
{
    size_t n = collect(g, 0, key_of_whole_name), m = collect(g, 1, key_of_whole_name), i = 0, j = 0;
    size_t common = 0;

    while (i < n && j < m) {
        uint64_t a = g->keyed[0][i].key, b = g->keyed[1][j].key;

        common += a == b;
        i += a <= b;
        j += b <= a;
    }
    return common * 10 >= (n > m ? n : m) * 9;
}

/* ---- all of it ---- */

/* The results are counterparts, whatever computes them. */
static void pair_results(struct pairing *g)
{
    uint32_t root[2];
    struct rp_ids in[2];

    for (int k = 0; k < 2; k++) {
        root[k] = g->p[k]->computations.at[g->p[k]->entry].root;
        in[k] = rp_op_operands(g->p[k], root[k]);
        if (g->p[k]->code.at[root[k]] != RP_OP_TUPLE)
            in[k] = (struct rp_ids){&root[k], 1};
    }
    for (uint32_t i = 0; in[0].n == in[1].n && i < in[0].n; i++) {
        uint32_t a = in[0].at[i], b = in[1].at[i];

        if (is_candidate(g, 0, a) && is_candidate(g, 1, b) &&
            rp_pair_shape(g->p[0], g->p[0]->shape.at[a]) ==
                rp_pair_shape(g->p[1], g->p[1]->shape.at[b]))
            pair_add(g, a, b);
    }
}

/* An operation without operands does not show where it belongs. */
static bool is_placed(const struct pairing *g, uint32_t left, uint32_t right)
{
    return rp_op_operands(g->p[0], left).n && rp_op_operands(g->p[1], right).n;
}

static enum rp_code pair_structures(struct pairing *g)
{
    struct rp_match match;
    const struct rp_computation *c = &g->p[0]->computations.at[g->p[0]->entry];

    RP_TRY(rp_program_match(&g->side[0], g->p[0]->entry, &g->side[1], g->p[1]->entry, &g->scratch,
                            &match, g->err));
    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        uint32_t other = match.left.match[op];

        if (other != RP_NONE && is_candidate(g, 0, op) && is_candidate(g, 1, other) &&
            is_placed(g, op, other) &&
            rp_pair_shape(g->p[0], g->p[0]->shape.at[op]) ==
                rp_pair_shape(g->p[1], g->p[1]->shape.at[other]))
            pair_add(g, op, other);
    }
    pairs_follow(g);
    return RP_OK;
}

/* match: the result so far, or NULL to make it in the arena. */
static enum rp_code pairing_init(struct pairing *g, struct rp_arena *arena, uint32_t *match[2])
{
    for (int k = 0; k < 2; k++) {
        size_t n = (size_t)g->p[k]->nops + 1;

        RP_TRY(rp_match_prepare(g->p[k], &g->scratch, &g->side[k], g->err));
        g->keyed[k] = RP_ARENA_NEW(&g->scratch, struct keyed, n);
        if (!match[k]) {
            match[k] = RP_ARENA_NEW(arena, uint32_t, n);
            if (match[k])
                memset(match[k], 0xff, n * sizeof *match[k]);
        }
        g->match[k] = match[k];
        RP_TRY(rp_err_need(g->match[k] && g->keyed[k], g->err, "pairing operations"));
    }
    g->queue = RP_ARENA_NEW(&g->scratch, uint32_t, (size_t)g->p[0]->nops + 1);
    return rp_err_need(g->queue, g->err, "pairing operations");
}

enum rp_code rp_pair_known(const struct rp_program *left, const struct rp_program *right,
                           struct rp_arena *arena, uint32_t *match[2], struct rp_err *err)
{
    struct pairing g = {.p = {left, right}, .err = err};

    rp_arena_init(&g.scratch);
    match[0] = match[1] = NULL;
    enum rp_code code = pairing_init(&g, arena, match);
    if (code == RP_OK) {
        /* Pairs parameters with the same number. */
        const struct rp_computation *a = &g.p[0]->computations.at[g.p[0]->entry];
        const struct rp_computation *b = &g.p[1]->computations.at[g.p[1]->entry];
        size_t n = 0;
        for (uint32_t op = b->first; op < b->first + b->n; op++)
            if (g.p[1]->code.at[op] == RP_OP_PARAMETER)
                g.keyed[1][n++] = (struct keyed){(uint64_t)g.p[1]->value.at[op], op};
        qsort(g.keyed[1], n, sizeof *g.keyed[1], keyed_order);
        for (uint32_t op = a->first; op < a->first + a->n; op++) {
            size_t i;

            if (g.p[0]->code.at[op] != RP_OP_PARAMETER)
                continue;
            RP_LOWER_BOUND(i, n, g.keyed[1][i].key < (uint64_t)g.p[0]->value.at[op]);
            if (i < n && g.keyed[1][i].key == (uint64_t)g.p[0]->value.at[op])
                pair_add(&g, op, g.keyed[1][i].op);
        }
        pair_results(&g);
        g.nqueue = 0; /* their operands may be the change itself */
        if (names_are_kept(&g))
            pairs_by(&g, key_of_whole_name, 1);
        pairs_by(&g, key_of_hash, SIZE_MAX);
        pairs_by(&g, key_of_scope, 1);
        pairs_by(&g, key_of_name, 1);
    }
    rp_arena_release(&g.scratch);
    return code;
}

enum rp_code rp_pair_similar(const struct rp_program *left, const struct rp_program *right,
                             uint32_t *match[2], struct rp_err *err)
{
    struct pairing g = {.p = {left, right}, .err = err};

    rp_arena_init(&g.scratch);
    enum rp_code code = pairing_init(&g, NULL, match);
    if (code == RP_OK)
        code = pair_structures(&g);
    if (code == RP_OK)
        pairs_by(&g, key_of_scope, SIZE_MAX);
    rp_arena_release(&g.scratch);
    return code;
}

/* ---- by values ---- */

#define NEAR 1e-4 /* relative to the sum of magnitudes: equal up to rounding */

RP_ORDER(print_order, struct rp_value_print, RP_UP(shape), RP_UP(size), RP_UP(op))

bool rp_value_print(const struct rp_tensor *t, struct rp_value_print *out)
{
    double low = (double)INFINITY, high = -(double)INFINITY;

    out->size = out->sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        double x = rp_tensor_number(t, i);
        double weight = 0.5 + (double)(rp_hash_u64(i) >> 11) * 0x1p-53;

        low = fmin(low, x);
        high = fmax(high, x);
        out->size += fabs(x);
        out->sum += weight * x;
    }
    return isfinite(out->size) && low < high; /* many arrays have only equal elements */
}

void rp_pair_values(struct rp_value_print *left, size_t n, struct rp_value_print *right, size_t m,
                    uint32_t *match[2])
{
    size_t j = 0;

    qsort(left, n, sizeof *left, print_order);
    qsort(right, m, sizeof *right, print_order);
    for (size_t i = 0; i < n; i++) {
        const struct rp_value_print *a = &left[i];
        double near = NEAR * a->size;

        while (j < m && (right[j].shape < a->shape ||
                         (right[j].shape == a->shape && right[j].size < a->size - near)))
            j++;
        for (size_t k = j; k < m && right[k].shape == a->shape && right[k].size <= a->size + near;
             k++)
            if (match[1][right[k].op] == RP_NONE && fabs(right[k].sum - a->sum) <= near) {
                match[0][a->op] = right[k].op;
                match[1][right[k].op] = a->op;
                break;
            }
    }
}
